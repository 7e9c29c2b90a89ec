"""The pipeline: check, plan, run, certify, recover, next route.

A backend named by the user is never switched. Otherwise the routes of the plan are tried in order
until what they prove together is conclusive; each attempt stays on record, and a good point starts
the next attempt. A route whose optimum is nearly proven is asked once more, by a finer tolerance.
The deadline is shared: while another backend is still to come, no route may take more than half of
what is left.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from klopt.engine.planner import Plan, Route, plan
from klopt.engine.presolve import Reduced, reduce_rows
from klopt.engine.registry import backend_named
from klopt.engine.result import Attempt, Result, Timings, combine
from klopt.engine.run_here import CHANGED, blas_threads, run_here
from klopt.engine.run_in_child import run_isolated
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, contract_flaw
from klopt.model.forms import ConeForm, Form, SaddleForm, SimplexForm
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import Certificate, certify, check_ray
from klopt.proof.time_budget import budget

__all__ = ["answer_form", "solve"]

SOON = 1e-6
"""Seconds left where none are; some libraries read a limit of 0 as no limit."""

OUTSIDE = 1e-9
"""How far, relatively, a start may lie outside its set by rounding."""

NEARLY = 1e3
FINER = 1e-4
"""An optimum proven to within NEARLY times the tolerance is worth a second run that is asked for FINER times it."""
FINEST = 1e-12

JUDGING, LEAST_JUDGING = 0.1, 2.0
"""By this share of the time limit, or so many seconds, the check of the last answer may go beyond it."""


def solve(
    problem: Problem,
    backend: str | Backend | None = None,
    *,
    formulation: str | None = None,
    tol: float = 1e-6,
    time_limit: float | None = None,
    max_iter: int | None = None,
    threads: int = 1,
    seed: int = 0,
    start: Point | Result | None = None,
    isolate: bool | None = None,
    log: bool = False,
    raw: Mapping[str, Any] | None = None,
) -> Result:
    """Return a certified result: klopt's own verdict on what a backend claims.

    The routes of `klopt.plan(problem)` are tried, best first, until what they prove is conclusive.
    An outcome is never raised: read `.verdict`, or ask for `.require()`.

    - `backend`: its name or an instance; it is never switched. None leaves the choice to klopt.
    - `formulation`: the name of the only one to use. None allows all.
    - `tol`: the relative width of the bracket that counts as optimal, from 1e-13 to 0.1; not a native tolerance.
    - `time_limit`: seconds for all routes together; judging the last answer may take a tenth, or 2 s, more. None sets
      no limit.
    - `max_iter`: iterations of each backend; those that cannot count are left out. None leaves it to them.
    - `threads`, `seed`: what a backend may use, and what it draws from.
    - `start`: a `Point` or an earlier `Result` to start from, where the backend takes one.
    - `isolate`: True runs the backend in a child process, False never does; None does where its library is
      known to crash or klopt must enforce a limit.
    - `log`: whether the library prints as it goes; from a child process it comes in `result.chosen.answer.log`.
    - `raw`: native options by their native names; needs a named backend.

    >>> from klopt.engine.registry import problem_named
    >>> result = solve(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    >>> result.verdict.name, round(result.value, 9)
    ('OPTIMAL', 0.5)
    """
    settings = Settings(tol, time_limit, max_iter, threads, seed, log, {} if raw is None else raw)
    if raw and backend is None:
        raise InvalidSettings(
            "raw options belong to one backend; name it: solve(problem, backend=..., raw=...)"
        )
    if isolate not in (None, True, False):
        raise InvalidSettings(
            f"isolate is {isolate!r}; expected True, False, or None to leave it to klopt"
        )
    began = time.perf_counter()
    routes = _routes(plan(problem), backend, formulation, settings)
    if problem.data_changed:
        raise InvalidProblem(
            f"the data of {problem.describe()} were changed by a backend; build the problem anew"
        )
    given = point = _checked_start(start)
    attempts: list[Attempt] = []
    for index, route in enumerate(routes):
        left = _until_deadline(settings, began)
        if attempts and left.time_limit == SOON:
            break
        if any(later.backend is not route.backend for later in routes[index:]):
            if _ran_out_of_time(attempts, route.backend):
                continue
            left = (
                left
                if left.time_limit is None
                else attrs.evolve(left, time_limit=left.time_limit / 2)
            )
        for attempt in _attempts(problem, route, left, point, isolate, tell=point is given):
            attempts.append(attempt)
            point = attempt.point if attempt.point is not None else point
            if attempt.answer.native == CHANGED:
                object.__setattr__(
                    problem, "data_changed", True
                )  # its other formulations share the arrays
        if (
            problem.data_changed
            or combine(problem, settings, tuple(attempts), 0.0).verdict.conclusive
        ):
            break
        if (
            not problem.provable
            and attempts[-1].answer.stop is Stop.OPTIMAL
            and attempts[-1].point is not None
        ):
            break
    return combine(problem, settings, tuple(attempts), time.perf_counter() - began)


def answer_form(
    backend: Backend,
    form: Form,
    settings: Settings,
    start: Start | None = None,
    isolate: bool | None = None,
) -> Answer:
    """Return a backend's contained answer to a form: trivial rows taken out before and put back after."""
    reduced = reduce_rows(form) if isinstance(form, ConeForm) else None
    if reduced is not None and reduced.answer is not None:
        return reduced.answer
    target: Form = form if reduced is None else reduced.form
    start = start if reduced is None else reduced.shrink(start)
    if isolate is None:
        isolate = backend.isolate or (
            settings.time_limit is not None and "time_limit" not in backend.honours
        )
    run = run_isolated if isolate else run_here
    began = time.perf_counter()
    answer = run(backend, target, settings, start)
    if reduced is not None:
        settings = _until_deadline(settings, began)
        answer = reduced.restore(_with_feasible_point(answer, backend, reduced, settings, run))
    return answer


def _with_feasible_point(
    answer: Answer, backend: Backend, reduced: Reduced, settings: Settings, run: Any
) -> Answer:
    """An unbounded claim needs a feasible point as well as a ray; ask the backend for one if it gave none."""
    form = reduced.form
    if (
        answer.stop is not Stop.UNBOUNDED
        or answer.ray is None
        or check_ray(form, answer.ray, settings.tol)
    ):
        return answer
    if answer.x is not None and form.measure(answer.x).primal <= settings.tol:
        return answer
    found: Answer = run(
        backend,
        attrs.evolve(form, c=np.zeros_like(form.c), P=None),
        attrs.evolve(settings, raw={}),
        None,
    )
    if found.farkas is not None:
        return replace(answer, farkas=found.farkas)
    return answer if found.x is None else replace(answer, x=found.x, y=None)


def _until_deadline(settings: Settings, began: float) -> Settings:
    """The settings with what is left of the time limit: the deadline is shared by all that happens in a solve."""
    if settings.time_limit is None:
        return settings
    return attrs.evolve(
        settings, time_limit=max(SOON, settings.time_limit - (time.perf_counter() - began))
    )


def _end_of_checks(settings: Settings, began: float) -> float:
    """When no further repair of a proof is begun: backends that use up their time must be judged after it."""
    limit = np.inf if settings.time_limit is None else settings.time_limit
    return began + limit + max(JUDGING * limit, LEAST_JUDGING)


def _ran_out_of_time(attempts: list[Attempt], backend: Backend) -> bool:
    """Whether the backend had nothing to show when its time was over: by another form it rarely has."""
    last = [attempt.answer for attempt in attempts if attempt.route.backend is backend]
    return any(answer.stop is Stop.TIME_LIMIT and answer.x is None for answer in last)


def _attempts(
    problem: Problem,
    route: Route,
    settings: Settings,
    point: Point | None,
    isolate: bool | None,
    *,
    tell: bool,
) -> Iterator[Attempt]:
    """One attempt, and a second one by a finer tolerance where the backend claims what is nearly proven."""
    began = time.perf_counter()
    first = _attempt(problem, route, settings, point, isolate, tell=tell)
    yield first
    certificate, finer = first.certificate, max(FINER * settings.tol, FINEST)
    if (
        certificate.holds
        or first.answer.stop is not Stop.OPTIMAL
        or "tol" not in route.backend.honours
    ):
        return
    off = (
        certificate.relative_width if certificate.residuals is None else certificate.residuals.worst
    )
    left = _until_deadline(settings, began)
    near = min(off, certificate.relative_width) <= NEARLY * settings.tol
    if near and finer <= 0.1 * settings.tol and left.time_limit != SOON:
        yield _attempt(problem, route, left, first.point, isolate, tell=False, ask=finer)


def _attempt(
    problem: Problem,
    route: Route,
    settings: Settings,
    point: Point | None,
    isolate: bool | None,
    *,
    tell: bool,
    ask: float | None = None,
) -> Attempt:
    """Build, run, certify; `tell` says that the user gave the point and wants to know what became of it.

    `ask` is the tolerance that the backend is asked for, if not that of the certificate.
    """
    clock = [time.perf_counter()]
    try:
        form = route.formulation.build()
    except InvalidProblem as error:
        return _unwritten(route, settings, str(error), time.perf_counter() - clock[0])
    clock.append(time.perf_counter())
    settings = _until_deadline(settings, clock[0])
    start, notes = _lifted(route, form, point)
    asked = settings if ask is None else attrs.evolve(settings, tol=ask)
    answer = answer_form(route.backend, form, asked, start, isolate)
    clock.append(time.perf_counter())
    # What overflows proves nothing; the user need not hear of it.
    with (
        np.errstate(all="ignore"),
        blas_threads(settings.threads),
        budget(_end_of_checks(settings, clock[0])),
    ):
        certificate, found = _judged(problem, route, form, answer, settings.tol)
    clock.append(time.perf_counter())
    build, run, judge = (after - before for before, after in pairwise(clock))
    overrun = 0.0 if settings.time_limit is None else max(0.0, run - settings.time_limit)
    timings = Timings(build, run, judge, answer.seconds, overrun)
    notes = notes if tell else ()
    if ask is not None:
        notes = (*notes, f"the second run of this route, asked for {ask:.0e}")
    if answer.notes or notes:
        certificate = replace(certificate, notes=certificate.notes + answer.notes + notes)
    return Attempt(route, answer, certificate, found, timings)


def _judged(
    problem: Problem, route: Route, form: Form, answer: Answer, tol: float
) -> tuple[Certificate, Point | None]:
    """What the answer proves; numbers of which none can be computed prove nothing and cost their own route only."""
    try:
        return certify(problem, route.formulation, form, answer, tol)
    except Exception as error:  # a user's own function may fail in any way
        text = f"what the answer proves cannot be computed: {type(error).__name__}: {error}"
        return Certificate.unproven(tol, text), None


def _unwritten(route: Route, settings: Settings, why: str, seconds: float) -> Attempt:
    """The problem checked its data; what its form cannot hold is their size, and another form may."""
    note = f"{route.formulation.name} cannot be written down: {why}; rescale the problem or leave the choice to klopt"
    certificate = Certificate.unproven(settings.tol, note)
    return Attempt(
        route,
        Answer(Stop.REJECTED, native=why),
        certificate,
        None,
        Timings(seconds, 0.0, 0.0, 0.0, 0.0),
    )


def _checked_start(start: Point | Result | None) -> Point | None:
    point = start.point if isinstance(start, Result) else start
    if point is None:
        return None
    if not isinstance(point, Point):
        raise InvalidSettings(
            f"start is a {type(point).__name__}; expected a klopt.Point or an earlier Result"
        )
    for name in point:
        array = getattr(point, name)
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            where = [int(i) for i in bad[0]]
            raise InvalidSettings(
                f"start.{name}{where} is {array[tuple(bad[0])]}; every entry must be a finite number"
            )
    return point


def _lifted(route: Route, form: Form, point: Point | None) -> tuple[Start | None, tuple[str, ...]]:
    """The point as a start of the form, inside its set, and what the user should know about it."""
    if point is None:
        return None, ()
    if "start" not in route.backend.honours:
        return None, (f"the start was not used: {route.backend.name} takes none",)
    if route.formulation.lift is None:
        return None, (
            f"the start was not used: no way from a point to the form {route.formulation.name!r}",
        )
    try:
        start = route.formulation.lift(point)
    except (AttributeError, LookupError) as error:
        missing = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidSettings(
            f"start does not fit {route.formulation.name!r}: {missing}"
        ) from error
    except ValueError as error:
        raise InvalidSettings(
            f"start does not fit {route.formulation.name!r}, by its shapes: {error}"
        ) from error
    rows, columns = form.shape
    for what, vector, size in (
        ("start has", start.x, columns),
        ("start's multipliers have", start.y, rows),
    ):
        if vector is not None and size is not None and vector.shape != (size,):
            raise InvalidSettings(
                f"{what} shape {vector.shape} for {route.formulation.name!r}; expected ({size},)"
            )
    domain = (
        form.domain
        if isinstance(form, SimplexForm)
        else form.left
        if isinstance(form, SaddleForm)
        else None
    )
    if domain is None or domain.violation(start.x) <= OUTSIDE * (
        1 + np.abs(start.x).max(initial=0.0)
    ):
        return start, ()
    return replace(start, x=domain.project(start.x)), (
        "the start was outside its set and was projected onto it",
    )


def _routes(
    options: Plan, backend: str | Backend | None, formulation: str | None, settings: Settings
) -> tuple[Route, ...]:
    """The plan's routes that the user's choice leaves; an empty choice is explained."""
    names = [] if formulation is None else [f.name for f in options.problem.formulations()]
    if formulation is not None and not isinstance(formulation, str):
        raise InvalidSettings(
            f"formulation is {formulation!r}; expected a name, one of: {', '.join(names)}"
        )
    if formulation is not None and formulation not in names:
        near = difflib.get_close_matches(formulation, names, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise NoRoute(
            f"{options.problem.describe()} has no formulation {formulation!r}{hint} It has: {', '.join(names)}"
        )
    routes = options.routes
    if backend is not None:
        routes = _pinned(options, backend_named(backend) if isinstance(backend, str) else backend)
    able, routes = (
        routes,
        tuple(route for route in routes if formulation in (None, route.formulation.name)),
    )
    if not routes and able and backend is not None:
        taken = ", ".join(dict.fromkeys(repr(route.formulation.name) for route in able))
        raise NoRoute(
            f"{able[0].backend.name} cannot take the formulation {formulation!r}; it takes {taken}"
        )
    if not routes:
        chosen = f" by formulation {formulation!r}" if formulation else ""
        raise NoRoute(
            f"nothing installed can solve {options.problem.describe()}{chosen}\n{options.explain()}"
        )
    if settings.max_iter is not None:
        keeping = tuple(route for route in routes if "max_iter" in route.backend.honours)
        if not keeping:
            raise InvalidSettings(
                f"{routes[0].backend.name} has no iteration limit; leave max_iter out or set time_limit"
            )
        routes = keeping
    return routes


def _pinned(options: Plan, backend: Backend) -> tuple[Route, ...]:
    if not isinstance(backend, Backend):
        raise InvalidSettings(
            f"backend is {backend!r}; expected a name or an instance of klopt.Backend"
        )
    if flaw := contract_flaw(backend):
        raise InvalidSettings(f"{type(backend).__name__} cannot be asked: {flaw}")
    if backend.missing:
        raise NoRoute(f"backend {backend.name!r} cannot run here: {backend.missing}")
    formulations = options.problem.formulations()
    routes = tuple(Route(f, backend) for f in formulations if f.needs <= backend.offers)
    if not routes:
        lacking = "; ".join(
            f"{f.name}: {', '.join(sorted(f.needs - backend.offers))}" for f in formulations
        )
        able = sorted({route.backend.name for route in options.routes})
        raise NoRoute(
            f"{backend.name} cannot solve {options.problem.describe()}. It lacks, by formulation, {lacking}. "
            f"Backends here that can: {', '.join(able) or 'none'}"
        )
    return routes
