"""`Proof`: the certificates of a claim, what each of them states, and the argument that joins them.

A proof consists of steps. Each step states that something holds for all real numbers (or for a table
of printed ones) and carries a certificate of that; the checker decides about it, and a step that it
rejects is none. What leads from the steps to the claim, for every n and every number of iterations,
is the argument, in words. Three lemmas serve again and again; docs/proofs.md states them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from klopt.certificates.encoding import encode_number, encode_triples, encode_vector
from klopt.checker import klopt_check
from klopt.errors import KloptError
from klopt.papers.theorems.proofs.expression import Expression, Rational, as_expression, total

__all__ = ["NotProven", "Proof", "Square", "Step", "at_least", "identity", "tabulated"]


class NotProven(KloptError):
    """A step of a proof is not accepted by the checker."""


class Square(NamedTuple):
    """weight times the square of an expression times expressions that are given to be >= 0."""

    weight: Rational
    of: Expression | Rational = 1
    times: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Step:
    """What is stated, and its certificate."""

    says: str
    certificate: str
    """The text of the file, which the checker has accepted."""


@dataclass(frozen=True)
class Proof:
    """A claim that is decided once and for all.

    `scope` says for what it is proven, `argument` how the steps make the claim.
    """

    scope: str
    argument: str
    steps: tuple[Step, ...]

    def save(self, path: Path) -> list[Path]:
        """Write the certificates; of several each has its number before the ending."""
        written = self.paths(path)
        for each, step in zip(written, self.steps, strict=True):
            each.write_text(step.certificate, encoding="utf-8")
        return written

    def paths(self, path: Path) -> list[Path]:
        """Return where `save` writes."""
        if len(self.steps) == 1:
            return [path]
        numbers = range(1, len(self.steps) + 1)
        return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in numbers]


def at_least(
    says: str,
    objective: Expression,
    bound: Rational = 0,
    *,
    by: Sequence[Square] = (),
    given: Sequence[Expression] = (),
    zero: Sequence[Expression] = (),
    using: Sequence[tuple[Expression | Rational, Expression]] = (),
    at: Mapping[str, Rational] | None = None,
    vectors: str = "",
) -> Step:
    """Return the step that an expression is at least a number, proven by squares.

    Parameters
    ----------
    says
        What is stated, in words.
    objective, bound
        The statement objective >= bound.
    by
        Squares that add up to objective - bound.
    given, zero
        What is known to be at least 0, and to be 0.
    using
        Multiples (factor, equation) that are added to the squares.
    at
        A point where all that is given holds; variables that are not named are 0.
    vectors
        Names of variables that may be read as vectors of any dimension (Lemma V): it is checked
        that they occur in products of two only.
    """
    known = list(given)
    equations = list(zero)
    parts = [objective, *known, *equations]
    names: dict[str, None] = {}
    for part in parts:
        names |= part.names()
    places = {name: k for k, name in enumerate(names)}
    point = {name: Fraction((at or {}).get(name, 0)) for name in names}
    problem = {
        "rule": "polynomial program",
        "says": says,
        "variables": list(names),
        "vectors": vectors.split(),
        "objective": objective.written(places),
        "nonnegative": [part.written(places) for part in known],
        "zero": [part.written(places) for part in equations],
    }
    squares = []
    for square in by:
        chosen = [next(k for k, g in enumerate(known) if g is each) for each in square.times]
        squares.append(
            {
                "weight": encode_number(Fraction(square.weight)),
                "of": as_expression(square.of).written(places),
                "times": chosen,
            }
        )
    multiples = [
        {
            "of": as_expression(factor).written(places),
            "times": next(k for k, h in enumerate(equations) if h is equation),
        }
        for factor, equation in using
    ]
    claim = {
        "verdict": "FEASIBLE",
        "lower": encode_number(Fraction(bound)),
        "upper": encode_number(objective.value(point)),
    }
    witness = {"x": encode_vector(list(point.values())), "squares": squares, "zeros": multiples}
    step = accepted(says, problem, claim, witness)
    _require_vectors(problem, witness)
    return step


def _require_vectors(problem: dict[str, Any], witness: dict[str, Any]) -> None:
    """Raise unless the variables called vectors occur as Lemma V allows."""
    if not problem["vectors"]:
        return
    program = klopt_check.PolynomialProgram(problem)
    where = [k for k, name in enumerate(problem["variables"]) if name in problem["vectors"]]
    roots = [program.expanded(square["of"]) for square in witness["squares"]]
    factors = [program.expanded(multiple["of"]) for multiple in witness["zeros"]]

    def degrees(polynomial: Any) -> set[int]:
        return {sum(key[k] for k in where) for key in polynomial}

    inner = [program.objective, *program.nonnegative, *program.zero]
    products = all(degrees(part) <= {0, 2} for part in inner)
    # A weight may not be an inner product: then a product of two would be of degree four.
    single = all(degrees(part) in ({0}, {1}, set()) for part in roots)
    scalar = all(degrees(part) <= {0} for part in factors)
    for square, root in zip(witness["squares"], roots, strict=True):
        weights = [degrees(program.nonnegative[k]) - {0} for k in square["times"]]
        single = single and sum(map(bool, [*weights, degrees(root) - {0}])) <= 1
    if not (products and single and scalar):
        raise NotProven(f"{problem['says']}: these variables cannot be read as vectors")


def identity(says: str, left: Any, right: Any) -> Step:
    """Return the step that two expressions, or arrays of them, are the same polynomials.

    Stated as -(left - right)^2 >= 0, which no real numbers satisfy unless both are equal.
    """
    one = np.atleast_1d(np.asarray(left, dtype=object))
    other = np.broadcast_to(np.asarray(right, dtype=object), one.shape)
    gaps = [as_expression(a) - b for a, b in zip(one.ravel(), other.ravel(), strict=True)]
    return at_least(says, total(-(gap**2) for gap in gaps))


def tabulated(
    says: str, entries: Mapping[str, str | Rational], holding: Sequence[Mapping[str, Rational]]
) -> Step:
    """Return the step that linear inequalities hold of printed numbers.

    Parameters
    ----------
    says
        What is stated, in words.
    entries
        The printed numbers by name, as decimals.
    holding
        The factors of the entries in sums that are at least 0; "" is the factor of 1.
    """
    names = list(entries)
    places = {name: k for k, name in enumerate(names)}
    x = [Fraction(entries[name]) for name in names]
    n = len(names)
    # The entries are fixed by equations; then b - Ax >= 0 says that each sum is not negative.
    b = list(x)
    rows = [(k, k, Fraction(1)) for k in range(n)]
    for row, factors in enumerate(holding, n):
        b.append(Fraction(factors.get("", 0)))
        for name, factor in factors.items():
            if name:
                rows.append((row, places[name], -Fraction(factor)))
    problem = {
        "rule": "cone program",
        "says": says,
        "names": names,
        "variables": n,
        "c": encode_vector([Fraction(0)] * n),
        "A": encode_triples(rows),
        "b": encode_vector(b),
        "cones": [["zero", n], ["nonnegative", len(holding)]],
    }
    claim = {"verdict": "FEASIBLE", "upper": "0x0"}
    return accepted(says, problem, claim, {"x": encode_vector(x)})


def accepted(
    says: str, problem: dict[str, Any], claim: dict[str, Any], witness: dict[str, Any]
) -> Step:
    """Return the step with its certificate, or raise `NotProven` with the checker's reason."""
    parts = {
        "format": klopt_check.FORMAT,
        "problem": problem,
        "digest": klopt_check.digest(problem),
        "claim": claim,
        "witness": witness,
    }
    text = json.dumps(parts)
    try:
        klopt_check.check(text)
    except klopt_check.Rejected as reason:
        raise NotProven(f"{says}: {reason}") from None
    return Step(says, text)
