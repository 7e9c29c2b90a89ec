"""The checks of the conformance suite that every problem must pass, as named functions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.conformance.checks import Body, Skip, expect, why_not
from klopt.conformance.instances import FormProblem
from klopt.engine.pipeline import solve
from klopt.engine.planner import Route, plan
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.model.forms import ExplicitForm
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import Verdict

__all__ = ["problem_checks"]

SIZES = (2, 5, 12)
"""Those of the random instances."""
TOL = 1e-5
"""The relative gap within which instances are solved."""
OWN_METHOD_TIME_LIMIT_S = 2.0
"""What a route of klopt's own methods may take."""
OWN_METHOD_RANKS = range(40, 50)
"""The ranks of klopt's own methods, which may be slow; see `Backend.rank`."""
NOISE_LEVELS = (0.0, 1e-12, 1e-9, 1e-6, 1e-2, 1.0, 100.0)
"""Multiples of normal noise that are added to an optimal point."""
NARROW_TOL = 1e-12
"""The relative gap that solvers are asked for where ends are compared exactly."""
NARROW_TIME_LIMIT_S = 2.0
"""What such a solve may take."""
NARROW_GAP = 1e-10
"""Ends that are off by this, relative to 1 + |value|, are found where an interval is as narrow."""
FORM_ROUNDING = 1e-11
"""What the rounding of a form's data may change of its optimum, relative to 1 + |value|."""


def problem_checks(problem: type[Problem]) -> Iterator[tuple[str, Body]]:
    """Yield (name, body) of every check that applies to the problem class."""
    yield "sample_is_valid", partial(_sample_is_valid, problem)
    yield "sample_is_reproducible", partial(_sample_is_reproducible, problem)
    yield "forms_state_their_needs", partial(_needs_are_true, problem)
    yield "forms_agree", partial(_forms_agree, problem)
    yield "forms_round_trip", partial(_round_trip, problem)
    yield "recover_is_feasible", partial(_recover_is_feasible, problem)
    yield "bracket_is_ordered", partial(_bracket_is_ordered, problem)
    yield "bracket_is_exact", partial(_bracket_is_exact, problem)
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
        are_distinct = names and len(set(names)) == len(names)
        expect(are_distinct, f"formulations need distinct names: {names}")
        expect(instance.describe(), "describe() is empty")
        pickle.loads(pickle.dumps(instance))
        _solved(instance)


def _sample_is_reproducible(problem: type[Problem]) -> None:
    first = problem.sample(np.random.default_rng(7), 5)
    second = problem.sample(np.random.default_rng(7), 5)
    expect(_solved(first).value == _solved(second).value, "two samples of one seed differ")


def _needs_are_true(problem: type[Problem]) -> None:
    for instance in _samples(problem):
        for formulation in instance.formulations():
            found = formulation.build().needs
            other = f"{formulation.name} declares other needs than {set(found)}"
            expect(found == formulation.needs, other)


def _forms_agree(problem: type[Problem]) -> None:
    """The intervals of all routes overlap, and each holds the value of the form's own objective."""
    for instance in _samples(problem):
        results = [_along(instance, route) for route in plan(instance).routes]
        for result in results:
            _contains_form_value(result)
        highest = max(results, key=lambda result: result.lower)
        lowest = min(results, key=lambda result: result.upper)
        # Proven ends hold exactly: not even the last digit may contradict another.
        expect(
            highest.lower <= lowest.upper,
            f"disjoint intervals: {_interval(highest)} and {_interval(lowest)}",
        )


def _along(instance: Problem, route: Route) -> Result:
    """The result of one route, which must be optimal unless its method is one of klopt's own."""
    backend = route.backend
    # What a slow method has proven when its time is over must still be true.
    limit = OWN_METHOD_TIME_LIMIT_S if backend.rank in OWN_METHOD_RANKS else None
    result = solve(
        instance,
        backend=backend,
        formulation=route.formulation.name,
        tol=max(TOL, backend.accuracy),
        time_limit=limit,
    )
    if backend.rank < OWN_METHOD_RANKS.start:
        expect(result.verdict is Verdict.OPTIMAL, why_not(result, Verdict.OPTIMAL))
    return result


def _interval(result: Result) -> str:
    return f"{result.lower:.17g} <= optimum <= {result.upper:.17g} by {result.route}"


def _contains_form_value(result: Result) -> None:
    """A bracket that ignores the data would agree with itself; the form's objective shows it."""
    residuals = result.certificate.residuals
    # Only an answer that solves the form tells the form's optimum.
    if residuals is None or result.verdict is not Verdict.OPTIMAL or residuals.worst > TOL:
        return
    value = result.route.formulation.to_user(residuals.value, residuals.value)[0]
    slack = 10 * TOL * (1 + abs(value))
    expect(
        result.lower - slack <= value <= result.upper + slack,
        f"{result.route}: the form says {value:.9g}, "
        f"the bracket {result.lower:.9g} <= optimum <= {result.upper:.9g}",
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
            value = again.upper if instance.sense == "min" else again.lower
            moved = abs(value - result.value)
            is_close = moved <= 10 * TOL * (1 + abs(result.value))
            expect(is_close, f"{formulation.name}: the value moves by {moved:.1e}")
    if not tried:
        raise Skip("no formulation lifts a point")


def _recover_is_feasible(problem: type[Problem]) -> None:
    for instance in _samples(problem):
        result = _solved(instance)
        assert result.point is not None
        again = instance.bracket(result.point)
        is_narrow = again.gap <= 10 * TOL * (1 + abs(again.upper))
        expect(is_narrow, "the repaired point does not bracket itself")


def _bracket_is_ordered(problem: type[Problem]) -> None:
    """lower <= optimum <= upper, from points far off too."""
    rng = np.random.default_rng(0)
    for instance in _samples(problem):
        result = _solved(instance)
        for noise in NOISE_LEVELS:
            bracket = instance.bracket(_noisy(result, noise, rng))
            too_high = f"noise {noise}: lower {bracket.lower!r} is above {result.upper!r}"
            expect(bracket.lower <= result.upper, too_high)
            too_low = f"noise {noise}: upper {bracket.upper!r} is below {result.lower!r}"
            expect(bracket.upper >= result.lower, too_low)


@dataclass(frozen=True)
class Interval:
    """An interval that is said to hold the optimum, and by whom."""

    lower: float
    upper: float
    by: str

    @property
    def text(self) -> str:
        return f"{self.lower:.17g} <= optimum <= {self.upper:.17g} ({self.by})"


def _bracket_is_exact(problem: type[Problem]) -> None:
    """No lower end is above an upper end, and the forms' own proofs agree.

    Solved as narrowly as every formulation allows, an end that is off by 1e-10 crosses another one.
    An interval that is off as a whole misses that of a form, which klopt proves without the problem.
    """
    rng = np.random.default_rng(2)
    narrow = False
    for instance in _samples(problem):
        found: list[Interval] = []
        proven: list[Interval] = []
        for route in _one_route_a_formulation(instance):
            result = solve(
                instance,
                backend=route.backend,
                formulation=route.formulation.name,
                tol=max(NARROW_TOL, route.backend.accuracy),
                time_limit=NARROW_TIME_LIMIT_S,
            )
            if result.point is None:
                continue
            for noise in NOISE_LEVELS:
                bracket = instance.bracket(_noisy(result, noise, rng))
                by = f"noise {noise:g} on the point of {route}"
                found.append(Interval(bracket.lower, bracket.upper, by))
            proven += _form_interval(result)
        if not found:
            continue

        highest = max(found, key=lambda each: each.lower)
        lowest = min(found, key=lambda each: each.upper)
        contradiction = f"these contradict each other: {highest.text} and {lowest.text}"
        expect(highest.lower <= lowest.upper, contradiction)
        slack = FORM_ROUNDING * (1 + abs(lowest.upper))
        for form in proven:
            agrees = form.lower - slack <= lowest.upper and highest.lower <= form.upper + slack
            other = lowest if form.lower - slack > lowest.upper else highest
            expect(agrees, f"the form has another optimum: {form.text} and {other.text}")
        narrow |= lowest.upper - highest.lower <= NARROW_GAP * (1 + abs(lowest.upper))
    if not narrow:
        raise Skip(f"no interval is narrower than {NARROW_GAP:g}: smaller errors cannot be seen")


def _one_route_a_formulation(instance: Problem) -> list[Route]:
    """The route to prefer of each formulation."""
    routes: dict[str, Route] = {}
    for route in plan(instance).routes:
        routes.setdefault(route.formulation.name, route)
    return list(routes.values())


def _form_interval(result: Result) -> list[Interval]:
    """What klopt proves of the form by itself, in the units of the problem; nothing without ends."""
    answer = result.chosen.answer
    formulation = result.route.formulation
    form = formulation.build()
    if answer.x is None or isinstance(form, ExplicitForm):
        return []
    dual = {} if answer.y is None else {"y": answer.y}
    try:
        bracket = FormProblem(form).bracket(Point({"x": answer.x}, dual))
    except (InvalidProblem, AttributeError):  # an indefinite P, or a game without y
        return []
    lower, upper = formulation.to_user(bracket.lower, bracket.upper)
    return [Interval(lower, upper, f"klopt's own proof of the form {formulation.name!r}")]


def _bracket_refuses_mutants(problem: type[Problem]) -> None:
    """A point far from the optimum is not certified unless its value really is optimal."""
    rng = np.random.default_rng(1)
    for instance in _samples(problem):
        result = _solved(instance)
        bracket = instance.bracket(_noisy(result, 10.0, rng))
        # A narrow bracket around a noisy point is legitimate where it holds the optimum.
        if bracket.gap <= 1e-9 * (1 + abs(bracket.upper)):
            distance = max(bracket.lower - result.upper, result.lower - bracket.upper)
            expect(distance <= 0, "a mutant is certified at a wrong value")


def _noisy(result: Result, noise: float, rng: np.random.Generator) -> Point:
    assert result.point is not None

    def shaken(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: v + noise * rng.normal(size=v.shape) for name, v in arrays.items()}

    return Point(shaken(result.point.primal), shaken(result.point.dual))
