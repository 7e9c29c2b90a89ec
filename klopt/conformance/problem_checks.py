"""The checks of the conformance suite that every problem must pass, as named functions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial

import numpy as np

from klopt.conformance.checks import Body, Skip, expect
from klopt.conformance.format import why_not
from klopt.engine.pipeline import solve
from klopt.engine.planner import plan
from klopt.engine.result import Result
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import Verdict

__all__ = ["problem_checks"]

SIZES = (2, 5, 12)
TOL = 1e-5
HOME_MADE = 2.0
"""Seconds for a route of a home-made method."""


def problem_checks(problem: type[Problem]) -> Iterator[tuple[str, Body]]:
    """Yield (name, body) of every check that applies to the problem class."""
    yield "sample_is_valid", partial(_sample_is_valid, problem)
    yield "sample_is_reproducible", partial(_sample_is_reproducible, problem)
    yield "forms_state_their_needs", partial(_needs_are_true, problem)
    yield "forms_agree", partial(_forms_agree, problem)
    yield "forms_round_trip", partial(_round_trip, problem)
    yield "recover_is_feasible", partial(_recover_is_feasible, problem)
    yield "bracket_is_ordered", partial(_bracket_is_ordered, problem)
    yield "bracket_refuses_mutants", partial(_bracket_refuses_mutants, problem)


def _samples(problem: type[Problem]) -> Iterator[Problem]:
    for seed, size in enumerate(SIZES):
        yield problem.sample(np.random.default_rng(seed), size)


def _solved(instance: Problem) -> Result:
    result = solve(instance, tol=TOL)
    expect(result.verdict is Verdict.OPTIMAL, why_not(result, Verdict.OPTIMAL))
    return result


def _sample_is_valid(problem: type[Problem]) -> None:
    for instance in _samples(problem):
        expect(instance.sense in ("min", "max"), f"sense is {instance.sense!r}")
        names = [formulation.name for formulation in instance.formulations()]
        expect(
            names and len(set(names)) == len(names), f"formulations need distinct names: {names}"
        )
        expect(instance.describe(), "describe() is empty")
        pickle.loads(pickle.dumps(instance))
        _solved(instance)


def _sample_is_reproducible(problem: type[Problem]) -> None:
    first, second = (problem.sample(np.random.default_rng(7), 5) for _ in range(2))
    expect(_solved(first).value == _solved(second).value, "two samples of one seed differ")


def _needs_are_true(problem: type[Problem]) -> None:
    for instance in _samples(problem):
        for formulation in instance.formulations():
            found = formulation.build().needs
            expect(
                found == formulation.needs,
                f"{formulation.name} declares other needs than {set(found)}",
            )


def _forms_agree(problem: type[Problem]) -> None:
    """Along every route of every formulation the intervals overlap, and hold what the form's own objective says."""
    for instance in _samples(problem):
        proven = []
        for route in plan(instance).routes:
            tol = max(TOL, route.backend.accuracy)
            # A home-made method may be slow; what it has proven when its time is over must still be
            # true.
            limit = HOME_MADE if 40 <= route.backend.rank < 50 else None
            result = solve(
                instance,
                backend=route.backend,
                formulation=route.formulation.name,
                tol=tol,
                time_limit=limit,
            )
            if route.backend.rank < 40:
                expect(result.verdict is Verdict.OPTIMAL, why_not(result, Verdict.OPTIMAL))
            proven.append((str(route), result.lower, result.upper))
            _holds_the_form(result)
        low = max(proven, key=lambda item: item[1])
        high = min(proven, key=lambda item: item[2])
        slack = TOL * (1 + abs(high[2]))
        expect(low[1] <= high[2] + slack, f"disjoint intervals: {low} and {high}")


def _holds_the_form(result: Result) -> None:
    """A bracket that has nothing to do with the data would agree with itself; the form's objective tells."""
    residuals = result.certificate.residuals
    if residuals is None or result.verdict is not Verdict.OPTIMAL or residuals.worst > TOL:
        return
    value = result.route.formulation.to_user(residuals.value, residuals.value)[0]
    slack = 10 * TOL * (1 + abs(value))
    expect(
        result.lower - slack <= value <= result.upper + slack,
        f"{result.route}: the form says {value:.9g}, the bracket {result.lower:.9g} <= optimum <= {result.upper:.9g}",
    )


def _round_trip(problem: type[Problem]) -> None:
    """recover(lift(point)) brackets as narrowly as the point itself."""
    tried = 0
    for instance in _samples(problem):
        result = _solved(instance)
        assert result.point is not None
        for formulation in instance.formulations():
            if formulation.lift is None:
                continue
            tried += 1
            start = formulation.lift(result.point)
            again = instance.bracket(formulation.recover(start.x, start.y))
            gap = abs((again.upper if instance.sense == "min" else again.lower) - result.value)
            expect(
                gap <= 10 * TOL * (1 + abs(result.value)),
                f"{formulation.name}: the value moves by {gap:.1e}",
            )
    if not tried:
        raise Skip("no formulation lifts a point")


def _recover_is_feasible(problem: type[Problem]) -> None:
    for instance in _samples(problem):
        result = _solved(instance)
        assert result.point is not None
        again = instance.bracket(result.point)
        expect(
            again.width <= 10 * TOL * (1 + abs(again.upper)),
            "the repaired point does not bracket itself",
        )


def _bracket_is_ordered(problem: type[Problem]) -> None:
    """From rough points too: lower <= optimum <= upper."""
    rng = np.random.default_rng(0)
    for instance in _samples(problem):
        result = _solved(instance)
        slack = TOL * (1 + abs(result.value))
        for noise in (0.0, 1e-6, 1e-2, 1.0, 100.0):
            bracket = instance.bracket(_noisy(result, noise, rng))
            expect(
                bracket.lower <= result.upper + slack,
                f"noise {noise}: lower {bracket.lower} is too high",
            )
            expect(
                bracket.upper >= result.lower - slack,
                f"noise {noise}: upper {bracket.upper} is too low",
            )


def _bracket_refuses_mutants(problem: type[Problem]) -> None:
    """A point far from the optimum is not certified unless its value really is optimal."""
    rng = np.random.default_rng(1)
    for instance in _samples(problem):
        result = _solved(instance)
        bracket = instance.bracket(_noisy(result, 10.0, rng))
        if bracket.width <= 1e-9 * (1 + abs(bracket.upper)):
            off = max(bracket.lower - result.upper, result.lower - bracket.upper)
            expect(off <= TOL * (1 + abs(result.value)), "a mutant is certified at a wrong value")


def _noisy(result: Result, noise: float, rng: np.random.Generator) -> Point:
    assert result.point is not None
    shaken = [
        {name: value + noise * rng.normal(size=value.shape) for name, value in part.items()}
        for part in (result.point.primal, result.point.dual)
    ]
    return Point(*shaken)
