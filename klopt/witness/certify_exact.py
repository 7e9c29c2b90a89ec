"""What an answer proves of a linear program that is stated in rationals: its optimum, exactly.

The answer's point and multipliers are a guess of the optimal vertex, its Farkas vector a guess of a
contradiction. What is proven is proven by `klopt.proof.rational` about the rational numbers of the
program, and no tolerance enters; the interval is the exact optimum, rounded down and up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Protocol, runtime_checkable

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer
from klopt.model.problem import Bracket, Formulation, Point, Sense
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.rational import RationalProgram, floats_around
from klopt.witness.exact_simplex import (
    ExactOutcome,
    ExactStatus,
    FloatSolver,
    exact_farkas,
    exact_vertex,
)

__all__ = ["ExactSolution", "StatedInRationals", "bracket_exact", "certify_exact"]

MAX_SHOWN_DIGITS = 40
"""A fraction with more digits is not written out in a note."""


@runtime_checkable
class StatedInRationals(Protocol):
    """A problem whose optimum is sense-sign times that of a program in rationals, plus an offset."""

    @property
    def sense(self) -> Sense:
        """Whether it minimises or maximises."""

    @property
    def rational(self) -> RationalProgram | None:
        """The program, which minimises; None if the data are the float64 arrays alone."""

    @property
    def rational_offset(self) -> Fraction:
        """The constant of the objective."""

    def pair(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """Return (x, y) of the program from a point."""

    def point(self, x: FloatArray, y: FloatArray | None) -> Point:
        """Return the point of (x, y)."""

    def rational_multipliers(self, y: Sequence[Fraction]) -> Mapping[str, tuple[Fraction, ...]]:
        """Return multipliers of the program as those of the user's constraints."""


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The exact optimum of a linear program in the user's units, or the exact proof of none.

    Parameters
    ----------
    value
        The optimum; None where there is none.
    x
        The point that attains it; if unbounded, a feasible one.
    y
        The multipliers by name, in klopt's signs; if infeasible, those of a contradiction.
    ray
        If unbounded, a direction of unbounded improvement.
    """

    value: Fraction | None
    x: tuple[Fraction, ...]
    y: Mapping[str, tuple[Fraction, ...]]
    ray: tuple[Fraction, ...]


def certify_exact(
    problem: StatedInRationals,
    formulation: Formulation,
    answer: Answer,
    tol: float,
    solve: FloatSolver | None = None,
) -> tuple[Certificate, Point | None, ExactSolution | None]:
    """Return what is proven exactly, the rounded point, and the exact solution.

    Parameters
    ----------
    problem
        A linear program in rationals.
    formulation
        The formulation that was solved, which maps the answer back to the problem.
    answer
        What the backend returned: a guess.
    tol
        The relative gap that was asked for; the interval is as narrow as float64 allows.
    solve
        A solver in floats that may refine the answer; it is trusted as little.
    """
    program = _program(problem)
    outcome = _outcome(problem, program, formulation, answer, solve)
    certificate = _certificate(problem, program, outcome, tol)
    if outcome.status is ExactStatus.UNKNOWN:
        x = np.array(outcome.x, dtype=float)
        return certificate, problem.point(x, None) if outcome.x else None, None

    multipliers = outcome.y or outcome.farkas
    solution = ExactSolution(
        value=_user_value(problem, outcome.value),
        x=outcome.x,
        y=problem.rational_multipliers(multipliers) if multipliers else {},
        ray=outcome.ray,
    )
    point = None
    if outcome.status is ExactStatus.OPTIMAL:
        point = problem.point(_rounded(outcome.x), _rounded(outcome.y))
    return certificate, point, solution


def bracket_exact(problem: StatedInRationals, point: Point) -> Bracket:
    """Return the exact optimum rounded down and up, found from a point; what is not proven is inf."""
    program = _program(problem)
    outcome = exact_vertex(program, *problem.pair(point))
    lower, upper = _interval(problem, program, outcome)
    if outcome.x and outcome.y:
        point = problem.point(_rounded(outcome.x), _rounded(outcome.y))
    return Bracket(lower, upper, point, _EXACT)


def _program(problem: StatedInRationals) -> RationalProgram:
    program = problem.rational
    assert program is not None
    return program


def _outcome(
    problem: StatedInRationals,
    program: RationalProgram,
    formulation: Formulation,
    answer: Answer,
    solve: FloatSolver | None,
) -> ExactOutcome:
    """What can be proven from the answer.

    Parameters
    ----------
    problem, program
        The problem and its program.
    formulation
        The formulation that was solved.
    answer
        What the backend returned.
    solve
        A solver in floats, or None.
    """
    # A ray of the dual is a Farkas vector of the program, and the other way round.
    multipliers = answer.farkas
    if formulation.dual:
        multipliers = answer.ray
    if multipliers is not None and np.isfinite(multipliers).all():
        if formulation.dual:
            hint = formulation.recover(multipliers, None)
        else:
            hint = formulation.recover(np.zeros(len(program.c)), multipliers)
        farkas = exact_farkas(program, problem.pair(hint)[1])
        if farkas:
            return ExactOutcome(ExactStatus.INFEASIBLE, farkas=farkas)

    x: FloatArray | None = None
    y: FloatArray | None = None
    if answer.x is not None:
        x, y = problem.pair(formulation.recover(answer.x, answer.y))
    return exact_vertex(program, x, y, solve=solve)


def _certificate(
    problem: StatedInRationals, program: RationalProgram, outcome: ExactOutcome, tol: float
) -> Certificate:
    """The certificate of an outcome, in the user's units.

    Parameters
    ----------
    problem, program
        The problem and its program.
    outcome
        What is proven.
    tol
        The relative gap that was asked for.
    """
    minimises = problem.sense == "min"
    if outcome.status is ExactStatus.INFEASIBLE:
        worst = inf if minimises else -inf
        return Certificate(Verdict.INFEASIBLE, worst, worst, tol, "farkas", notes=(_EXACT,))
    if outcome.status is ExactStatus.UNBOUNDED:
        best = -inf if minimises else inf
        return Certificate(Verdict.UNBOUNDED, best, best, tol, "ray", notes=(_EXACT,))

    lower, upper = _interval(problem, program, outcome)
    value = _user_value(problem, outcome.value)
    # An optimum beyond the largest float64 has no finite interval.
    finite = isfinite(lower) and isfinite(upper)
    if value is not None and finite and upper - lower <= tol * (1 + abs(upper)):
        notes = (_EXACT, _shown(value))
        return Certificate(Verdict.OPTIMAL, lower, upper, tol, "bracket", notes=notes)
    why = outcome.why or "it is beyond the largest float64"
    unknown = f"no interval as narrow as asked for: {why}"
    if outcome.x:
        return Certificate(Verdict.FEASIBLE, lower, upper, tol, "bracket", notes=(unknown,))
    return Certificate(Verdict.UNPROVEN, lower, upper, tol, "none", notes=(unknown,))


def _interval(
    problem: StatedInRationals, program: RationalProgram, outcome: ExactOutcome
) -> tuple[float, float]:
    """What x and y prove: c'x bounds the minimum from above, -b'y from below, rounded outwards."""
    below = -inf
    above = inf
    if outcome.status is ExactStatus.INFEASIBLE or outcome.status is ExactStatus.UNBOUNDED:
        return below, above
    sign = 1 if problem.sense == "min" else -1
    ends = []
    is_optimal = outcome.status is ExactStatus.OPTIMAL  # x is empty if there are no variables
    if outcome.x or is_optimal:
        ends.append((program.value(outcome.x), 1))
    if outcome.y or is_optimal:
        ends.append((program.dual_value(outcome.y), -1))
    for value, side in ends:
        low, high = floats_around(sign * value + problem.rational_offset)
        # The side on which a point bounds changes with the sense.
        if side * sign > 0:
            above = high
        else:
            below = low
    return below, above


_EXACT = "proven in rational arithmetic, without rounding"


def _shown(value: Fraction) -> str:
    text = str(value) if value.denominator.bit_length() < 4 * MAX_SHOWN_DIGITS else ""
    if text and len(text) <= MAX_SHOWN_DIGITS:
        return f"the optimum is {text}"
    digits = round(value.denominator.bit_length() * 0.30103) + 1
    return f"the optimum is a fraction with a denominator of about {digits} digits"


def _user_value(problem: StatedInRationals, value: Fraction | None) -> Fraction | None:
    if value is None:
        return None
    sign = 1 if problem.sense == "min" else -1
    return sign * value + problem.rational_offset


def _rounded(values: Sequence[Fraction]) -> FloatArray:
    """The nearest floats."""
    return np.array([_nearest(value) for value in values], dtype=float)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
