"""Derives the statement of a certificate again from the user's own file, and compares the two.

A digest shows that a certificate is whole, not that its problem is the user's. Here the file is
read, the problem stated as a cone program once more, and every number compared with the one that the
certificate states.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from klopt.certificates.cone_certificate import ExactProgram
from klopt.certificates.files import StatedAsConeProgram, check
from klopt.checker import klopt_check
from klopt.errors import InvalidProblem
from klopt.model.problem import Problem

__all__ = ["check_about", "differences", "statement_of"]

MAX_SHOWN = 5
"""How many differences are told."""


def check_about(path: str | PathLike[str], problem: Problem, name: str = "the problem") -> str:
    """Return what a certificate proves about this problem; raise where it proves nothing about it.

    Parameters
    ----------
    path
        The certificate.
    problem
        What it must be about.
    name
        What the problem is called in errors.

    >>> import tempfile
    >>> from klopt.engine.pipeline import solve
    >>> from klopt.engine.registry import problem_named
    >>> lp = problem_named("LP")
    >>> path = Path(tempfile.mkdtemp()) / "proof.json"
    >>> solve(lp([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])).certificate.save(path)
    >>> check_about(path, lp([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0]))
    'OPTIMAL: 1 <= optimum <= 1'
    """
    says = check(path)
    stated = json.loads(Path(path).read_text(encoding="utf-8"))["problem"]
    found = list(differences(stated, statement_of(problem)))
    if found:
        more = f"; and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
        raise InvalidProblem(
            f"{path} is about another problem than {name}: {'; '.join(found[:MAX_SHOWN])}{more}"
        )
    return says


def statement_of(problem: Problem) -> dict[str, Any]:
    """Return a problem as a certificate of it states it."""
    formulation = next(iter(problem.formulations()))
    rows, columns = formulation.build().shape
    # The statement does not depend on the point, but comes with one.
    point = formulation.recover(np.zeros(columns or 0), np.zeros(rows) if rows else None)
    claim = problem.cone_claim(point) if isinstance(problem, StatedAsConeProgram) else None
    if claim is None:
        raise InvalidProblem(
            f"{type(problem).__name__} has no statement that a certificate could be compared with"
        )
    program = ExactProgram.of(claim.statement)
    return program.encoded(Fraction(claim.scale), Fraction(claim.shift))


def differences(stated: dict[str, Any], given: dict[str, Any]) -> Iterator[str]:
    """Yield in words every entry in which the statement of a certificate is not the one given.

    Parameters
    ----------
    stated
        The problem of a certificate.
    given
        The same, derived from the user's data.
    """
    if stated.get("rule") != given.get("rule"):
        yield f"its rule is {stated.get('rule')!r}, not {given.get('rule')!r}"
        return
    mine = klopt_check.ConeProgram(given)
    theirs = klopt_check.ConeProgram(stated)
    if theirs.n != mine.n:
        yield f"it has {theirs.n} variables, not {mine.n}"
        return
    cones = [[kind, size] for kind, size, *_ in mine.blocks]
    if [[kind, size] for kind, size, *_ in theirs.blocks] != cones:
        yield "its cones are others"
        return
    yield from _unequal("the factor of the objective", theirs.scale, mine.scale)
    yield from _unequal("the constant of the objective", theirs.shift, mine.shift)
    yield from _vectors("c", theirs.c, mine.c)
    yield from _matrices("A", theirs.A, mine.A)
    yield from _vectors("b", theirs.b, mine.b)
    yield from _matrices("P", theirs.P, mine.P)
    if len(theirs.quadratics) != len(mine.quadratics):
        yield f"it has {len(theirs.quadratics)} quadratic constraints, not {len(mine.quadratics)}"
        return
    for number, (left, right) in enumerate(zip(theirs.quadratics, mine.quadratics, strict=True)):
        yield from _matrices(f"P of quadratic constraint {number}", left[0], right[0])
        yield from _vectors(f"q of quadratic constraint {number}", left[1], right[1])
        yield from _unequal(f"r of quadratic constraint {number}", left[2], right[2])


def _unequal(name: str, stated: Fraction, given: Fraction) -> Iterator[str]:
    if stated != given:
        yield f"{name} is {_shown(stated)}, not {_shown(given)}"


def _vectors(name: str, stated: Any, given: Any) -> Iterator[str]:
    for i in range(len(given.of)):
        yield from _unequal(f"{name}[{i}]", stated[i], given[i])


def _matrices(name: str, stated: Any, given: Any) -> Iterator[str]:
    zero = Fraction(0)
    left = {(i, j): Fraction(value, stated.over) for i, j, value in stated.entries}
    right = {(i, j): Fraction(value, given.over) for i, j, value in given.entries}
    for i, j in sorted(left.keys() | right.keys()):
        yield from _unequal(f"{name}[{i}, {j}]", left.get((i, j), zero), right.get((i, j), zero))


def _shown(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(float(value))
