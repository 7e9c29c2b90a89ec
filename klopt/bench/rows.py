"""Runs as rows of a database and back: every word and number is checked on both ways.

NaN is NULL, enums are their values. A row ends with the digest of the file of its arrays and with a
checksum of all that stands before it. The checksum promises that damage is noticed. It does not
promise that klopt wrote the row: who can write the file can also compute the checksum.
"""

from __future__ import annotations

import hashlib
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from math import inf, isnan, nan
from types import MappingProxyType
from typing import Any

from klopt.bench.record import Run
from klopt.model.backend import Stop
from klopt.proof.certificate import Argument, Verdict

__all__ = ["CHECKSUM", "TABLE", "InvalidRow", "checksum", "row_of", "run_of", "storable"]

MAX_TEXT_CHARACTERS = 1_000_000
"""What is kept of a text: its beginning."""
MAX_INTEGER = 2**63 - 1
"""The largest integer that SQLite keeps."""
CHECKSUM = "checksum"
"""The last column."""
_SQL_TYPES: Mapping[Any, str] = MappingProxyType(
    {str: "TEXT", float: "REAL", int: "INTEGER", int | None: "INTEGER"}
)
_HINTS = typing.get_type_hints(Run)
_TYPES: Mapping[str, Any] = MappingProxyType({f.name: _HINTS[f.name] for f in fields(Run)})
_COLUMNS = ", ".join(f"{name} {_SQL_TYPES.get(kind, 'TEXT')}" for name, kind in _TYPES.items())
TABLE = f"CREATE TABLE runs ({_COLUMNS}, arrays TEXT, {CHECKSUM} TEXT, PRIMARY KEY (key))"
"""The statement that makes the table."""

_KEY = re.compile(r"\w[\w -]{0,99}", re.ASCII)
"""A key is also the name of a file: it must not lead out of its folder."""
_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"sense": frozenset({"min", "max"}), "proof": frozenset(typing.get_args(Argument))}
)
"""The texts that a column may hold, where not any text may stand there."""
_SMALLEST: Mapping[str, float] = MappingProxyType(
    {
        "size": 0,
        "tol": 0.0,
        "time_limit": 0.0,
        "memory_limit": 0,
        "threads": 1,
        "repeat": 0,
        "lower": -inf,
        "upper": -inf,
    }
)
"""The smallest value of the columns that always have one: NaN must not stand there."""


class InvalidRow(ValueError):
    """What cannot be in a row of runs; the text names the column."""


def storable(run: Run) -> Run:
    """Return the run as a row can hold it: texts that can be encoded, integers of 64 bits.

    One that contradicts itself is kept as a crash, which proves nothing.
    """
    cleaned = replace(run, **{name: _cleaned(name, getattr(run, name)) for name in _TYPES})
    try:
        run_of(row_of(cleaned, ""))
    except InvalidRow as error:
        return replace(
            cleaned,
            says=Stop.CRASHED,
            native=f"klopt could not keep what came of it: {error}",
            verdict=Verdict.UNPROVEN,
            lower=-inf,
            upper=inf,
            proof="none",
        )
    return cleaned


def row_of(run: Run, arrays: str) -> tuple[Any, ...]:
    """Return the row of a run whose arrays have that digest."""
    values = (*(_stored(name, getattr(run, name)) for name in _TYPES), arrays)
    return *values, checksum(values)


def run_of(row: tuple[Any, ...]) -> Run:
    """Return the run of a row, or raise `InvalidRow`."""
    *values, found = row
    run = Run(*map(_restored, _TYPES, values))
    if run.lower > run.upper:
        raise InvalidRow(f"lower is {run.lower!r} and upper is {run.upper!r}, which is less")
    if found != checksum(tuple(values)):
        raise InvalidRow("its checksum is another one")
    return run


def checksum(values: tuple[Any, ...]) -> str:
    """Return 32 hexadecimal digits that notice any change of the values.

    >>> checksum((1.0, "a")) == checksum((1.0, "a")) != checksum((1, "a"))
    True
    """
    return hashlib.sha256(repr(values).encode(errors="backslashreplace")).hexdigest()[:32]


def _cleaned(name: str, value: Any) -> Any:
    kind = _TYPES[name]
    if kind is str:
        return str(value)[:MAX_TEXT_CHARACTERS].encode(errors="replace").decode()
    if kind is int:
        return max(-MAX_INTEGER, min(int(value), MAX_INTEGER))
    # A count that is absurd is not known.
    if kind == int | None:
        return None if value is None or abs(value) > MAX_INTEGER else int(value)
    return value


def _stored(name: str, value: Any) -> Any:
    if _TYPES[name] is float:
        # SQLite keeps no sign of zero, which the checksum would miss.
        return None if isnan(value) else float(value) + 0.0
    return value.value if isinstance(value, Enum) else value


def _restored(name: str, value: Any) -> Any:
    """The field of that name, or `InvalidRow`."""
    kind = _TYPES[name]
    if kind is float:
        return _number(name, value)
    if kind is int or kind == int | None:
        return _integer(name, value, optional=kind is not int)
    if not isinstance(value, str):
        raise InvalidRow(f"{name} is {_short(value)}; expected a text")
    if issubclass(kind, Enum):
        if value not in kind.__members__:
            raise InvalidRow(f"{name} is {_short(value)}, which is no {kind.__name__}")
        return kind[value]
    if name == "key" and not _KEY.fullmatch(value):
        raise InvalidRow(f"key is {_short(value)}; expected letters and digits")
    if name in _WORDS and value not in _WORDS[name]:
        expected = ", ".join(sorted(_WORDS[name]))
        raise InvalidRow(f"{name} is {_short(value)}; expected one of {expected}")
    return value


def _number(name: str, value: Any) -> float:
    if value is None and name not in _SMALLEST:
        return nan
    if not isinstance(value, float) or isnan(value):
        raise InvalidRow(f"{name} is {_short(value)}; expected a number")
    if value < _SMALLEST.get(name, -math.inf):
        raise InvalidRow(f"{name} is {value!r}; expected {_SMALLEST[name]} or more")
    return value


def _integer(name: str, value: Any, *, optional: bool) -> int | None:
    if value is None and optional:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRow(f"{name} is {_short(value)}; expected a whole number")
    if value < _SMALLEST.get(name, -math.inf):
        raise InvalidRow(f"{name} is {value}; expected {_SMALLEST[name]} or more")
    return value


def _short(value: Any) -> str:
    """A value as an error may show it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
