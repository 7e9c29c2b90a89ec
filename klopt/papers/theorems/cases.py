"""Cases as files and as exact numbers: counterexamples to be read, replayed and checked again.

A file is JSON: {"claim": name, "case": {entry: number, text or nested lists}}. Floats are written
so that they come back bit for bit, which makes every case a set of rational numbers: `rational`
turns it into them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any, cast

import numpy as np

from klopt.errors import InvalidSettings
from klopt.papers.theorems.claim import Case

__all__ = [
    "ball",
    "document",
    "given",
    "precise",
    "rational",
    "read_case",
    "recorded_givens",
    "rounded",
    "surely_above",
    "write_case",
]


def write_case(path: Path, claim: str, case: Case) -> None:
    """Write the case of a claim to a file."""
    path.write_text(document(claim, case), encoding="utf-8")


def document(claim: str, case: Case) -> str:
    """Return what the file of a case holds, matrices row by row.

    >>> print(document("mao2010-eq5", {"K": np.eye(2), "C": 2.0}), end="")
    {"claim": "mao2010-eq5", "case": {
     "K": [
      [1.0, 0.0],
      [0.0, 1.0]],
     "C": 2.0
    }}
    """
    entries = ",\n".join(f" {json.dumps(name)}: {_written(value)}" for name, value in case.items())
    return f'{{"claim": {json.dumps(claim)}, "case": {{\n{entries}\n}}}}\n'


def read_case(path: Path) -> tuple[str, Case]:
    """Return the claim's name and the case in a file, or raise with what is wrong in it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        name = content["claim"]
        case = content["case"]
        return str(name), {entry: _array(value) for entry, value in case.items()}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidSettings(f"{path} is no readable case: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InvalidSettings(
            f'{path} holds no case; expected {{"claim": name, "case": {{...}}}}'
        ) from None


def _written(value: Any) -> str:
    if np.ndim(value) < 2:
        return json.dumps(_plain(value))
    return "[" + ",".join(f"\n  {json.dumps(_plain(row))}" for row in value) + "]"


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _array(value: Any) -> Any:
    return np.array(value) if isinstance(value, list) else value


def rational(case: Case) -> dict[str, Any]:
    """Return the case with every float as a fraction, arrays as arrays of fractions.

    >>> rational({"a": 0.5, "n": 3})
    {'a': Fraction(1, 2), 'n': 3}
    """
    return {name: _fractions(value) for name, value in case.items()}


def _fractions(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        exact = np.array([Fraction(float(entry)) for entry in value.ravel()], dtype=object)
        return exact.reshape(value.shape)
    return Fraction(value) if isinstance(value, float) else value


def ball(value: Fraction | int) -> Any:
    """Return the number as a ball of python-flint, whose arithmetic encloses its rounding."""
    from flint import arb, fmpq

    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


PRECISION_BITS = 8000
"""Bits of precision: the radii of balls ignore correlation and grow at every step of a run."""


def precise(bits: int = PRECISION_BITS) -> AbstractContextManager[Any]:
    """Return a context in which balls have so many bits."""
    from flint import ctx

    return cast(AbstractContextManager[Any], ctx.workprec(bits))


_givens: ContextVar[dict[str, Any] | None] = ContextVar("givens", default=None)


def given(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose value an exact check takes as it is, however it was found.

    A better point is such a value: what counts is how good it is. In the program that refutes the
    claim (`klopt.papers.theorems.export`) it is a number beside those of the case.
    """

    @wraps(function)
    def recorded(*arguments: Any, **named: Any) -> Any:
        value = function(*arguments, **named)
        seen = _givens.get()
        if seen is not None:
            seen[function.__name__] = value
        return value

    return recorded


@contextmanager
def recorded_givens() -> Iterator[dict[str, Any]]:
    """Collect by their names the values of functions marked by `given` while the block runs."""
    seen: dict[str, Any] = {}
    before = _givens.set(seen)
    try:
        yield seen
    finally:
        _givens.reset(before)


def surely_above(left: Any, right: Any) -> bool:
    """Return whether left > right beyond doubt, for fractions and balls alike."""
    return bool(left > right)


def rounded(case: Case, entries: tuple[str, ...], parts: int) -> Case:
    """Return the case with the named entries rounded to multiples of 1 / parts.

    >>> rounded({"a": 0.3, "b": 0.3}, ("a",), 2)
    {'a': 0.5, 'b': 0.3}
    """
    simpler = dict(case)
    for name in entries:
        if name in simpler:
            simpler[name] = _plain_number(np.round(np.asarray(simpler[name]) * parts) / parts)
    return simpler


def _plain_number(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
