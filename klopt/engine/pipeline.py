"""The pipeline of `klopt.solve`: check, plan, build, run, certify, recover, next route.

A backend named by the user is never switched. Otherwise the routes of the plan are tried in order
until what they prove together is conclusive; each attempt stays on record, and a good point starts
the next attempt. A route whose optimum is nearly proven is run once more, at a tighter tolerance.
The deadline is shared: while another backend is still to come, no route may take more than half of
what is left. Where the plan expects a time, a route is stopped after a multiple of it, and comes
again with more once the others had theirs: a wrong first choice costs little.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Any, cast

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.certify import certify
from klopt.engine.clean_answer import error_text
from klopt.engine.cvxpy_problems import cone_program
from klopt.engine.cvxpy_results import hand_back
from klopt.engine.interrupts import call_within
from klopt.engine.memory import memory_refusal
from klopt.engine.planner import Route, routes_for
from klopt.engine.presolve import Reduced, reduce_rows
from klopt.engine.progress import tell as tell_progress
from klopt.engine.result import Attempt, Result, Timings, combine
from klopt.engine.run_here import CHANGED, blas_threads, run_here
from klopt.engine.run_in_child import run_isolated
from klopt.engine.warm_start import check_point, lifted
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.forms import ConeForm, Form
from klopt.model.problem import Point, Problem
from klopt.programs.cvxpy_reduction import CvxpyProblem, is_cvxpy_problem, reduced_by_cvxpy
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.certify_exact import ExactSolution, StatedInRationals, certify_exact
from klopt.witness.cone_witness import proven_ray

__all__ = ["answer_form", "solve"]

MIN_TIME_LIMIT_S = 1e-6
"""The time limit in seconds once the deadline has passed; some libraries read 0 as no limit."""

RETRY_WITHIN = 1e3
"""A claimed optimum is worth a second run if it is proven to within this multiple of `tol`."""
RETRY_FACTOR = 1e-4
"""The second run asks the backend for this multiple of `tol` ..."""
MIN_RETRY_TOL = 1e-12
"""... but for no tolerance below this one."""
MAX_RETRY_FACTOR = 0.1
"""A second run at a larger multiple of `tol` would return much the same answer."""

MIN_SLICE_S = 1.0
"""The seconds that a route is given at least before another backend has its turn ..."""
SLICE_FACTOR = 10.0
"""... or this multiple of what is expected of it, which is known to a factor of three or so."""
SLICE_GROWTH = 8.0
"""A route that was stopped comes again with so many times its slice."""

CERTIFY_S = 0.5
"""Certifying may exceed the deadline by so many seconds: its last step may take as long again."""

Run = Callable[[Backend, Form, Settings, Start | None], Answer]


def solve(
    problem: Problem | CvxpyProblem,
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
    exact: bool = False,
    memory_limit: int | None = None,
) -> Result:
    """Return a certified result: klopt's own verdict on what a backend claims.

    The routes of `klopt.plan(problem)` are tried, best first, until what they prove is conclusive.
    An outcome is never raised: read `.verdict`, or ask for `.require()`.

    Parameters
    ----------
    problem
        What is to be solved; `klopt.problems` lists the classes. Or a `cvxpy.Problem`: its variables
        and constraints get their values, and the result is in its sense and units.
    backend
        A backend's name or an instance; it is never switched. None leaves the choice to klopt.
    formulation
        The name of the only formulation to use. None allows all.
    tol
        The relative gap between the proven bounds that counts as optimal, from 1e-13 to 0.1; it is
        not a native tolerance.
    time_limit
        Seconds for all routes together; certifying the last answer may take about 1 s more.
        None sets no limit.
    max_iter
        Iterations of each backend; those that cannot count are left out. None leaves it to them.
    threads, seed
        How many threads a backend may use, and the seed of its random numbers.
    start
        A `Point` or an earlier `Result` to start from, where the backend takes one.
    isolate
        True runs the backend in a child process, False never does; None does where its library is
        known to crash or klopt must enforce a limit.
    log
        Whether the library prints as it runs; from a child process the text is returned in
        `result.chosen.answer.log`.
    raw
        Native options by their native names; needs a named backend.
    exact
        Whether a linear program is proven in rational arithmetic: `result.exact` then has the
        optimum as a fraction. An `LP` that keeps its decimals always is.
    memory_limit
        Bytes that the process of a backend may have: it runs in a child process then, where the
        system keeps the limit, unless `isolate` is False. A route that is foreseen to need more
        is refused, as it is without a limit where it would need more than the computer has left.
        None or 0 sets no limit; one below 100,000,000 bytes, which the libraries take by
        themselves, raises `InvalidSettings`.

    Returns
    -------
    Result
        The verdict, the proven interval and the point, in the user's units.

    Examples
    --------
    >>> from klopt.engine.registry import problem_named
    >>> result = solve(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    >>> result.verdict.name, round(result.value, 9)
    ('OPTIMAL', 0.5)
    """
    options = {} if raw is None else raw
    settings = Settings(tol, time_limit, max_iter, threads, seed, log, options, memory_limit)
    # Another backend would refuse options that it does not have, or read them in its own way.
    if raw and backend is None:
        raise InvalidSettings(
            "raw options belong to one backend; name it: solve(problem, backend=..., raw=...)"
        )
    if isolate not in (None, True, False):
        raise InvalidSettings(
            f"isolate is {isolate!r}; expected True, False, or None to leave it to klopt"
        )

    began = time.perf_counter()
    reduction = reduced_by_cvxpy(problem) if is_cvxpy_problem(problem) else None
    stated = cast(Problem, problem) if reduction is None else cone_program(reduction)
    if exact:
        stated = _in_rationals(stated)

    routes = routes_for(stated, backend, formulation, settings)
    if stated.data_changed:
        raise InvalidProblem(
            f"the data of {stated.describe()} were changed by a backend; build the problem anew"
        )
    point = start.point if isinstance(start, Result) else start
    given = None if point is None else check_point(point)
    result = _first_conclusive(stated, routes, settings, given, isolate, began)
    if reduction is not None:
        hand_back(reduction, result)
    return result


def _in_rationals(problem: Problem) -> Problem:
    """The problem with data as rationals."""
    restate: Callable[[], Problem] | None = getattr(problem, "in_rationals", None)
    if restate is None:
        raise InvalidSettings(
            f"exact=True is for linear programs (klopt.problems.LP); {problem.describe()} is none"
        )
    return restate()


def _first_conclusive(
    problem: Problem,
    routes: tuple[Route, ...],
    settings: Settings,
    given: Point | None,
    isolate: bool | None,
    began: float,
) -> Result:
    """Try the routes in order until their proofs, taken together, are conclusive.

    Parameters
    ----------
    problem, settings, isolate
        As in `solve`.
    routes
        What to try, at least one route, best first.
    given
        The user's own start; later routes start from the latest point that was found.
    began
        When the solve began, by `time.perf_counter`.
    """
    attempts: list[Attempt] = []
    point = given
    queue = deque((route, _first_slice(route)) for route in routes)
    while queue:
        route, piece = queue.popleft()
        left = _with_time_left(settings, began)
        # The first route is run even then: there must be something to return.
        if attempts and left.time_limit == MIN_TIME_LIMIT_S:
            break
        tried = {attempt.route.backend.name for attempt in attempts}
        if attempts and route.backend.repeats(route.formulation.needs, frozenset(tried)):
            continue

        slice_ = whole = left
        if any(later.backend is not route.backend for later, _ in queue):
            if piece is None and _ran_out_of_time(attempts, route.backend):
                continue
            slice_ = _slice(left, piece, route.backend)
            whole = _slice(left, None, route.backend)
        # An answer that came in time is judged even if that takes longer than its slice.
        judged_until = _deadline(whole)

        asked = (problem, route, slice_, point, isolate)
        for attempt in _attempts(*asked, judged_until, tell=point is given):
            attempts.append(attempt)
            if attempt.point is not None:
                point = attempt.point

        result = combine(problem, settings, tuple(attempts), time.perf_counter() - began)
        if result.certificate.verdict.conclusive or _is_final(problem, attempts[-1]):
            break
        if piece is not None and _was_stopped(attempts[-1], slice_):
            queue.append((route, SLICE_GROWTH * piece))
    return result


def _deadline(settings: Settings) -> float | None:
    """When the time limit of the settings is over, by `time.perf_counter`; None without one."""
    if settings.time_limit is None:
        return None
    return time.perf_counter() + settings.time_limit


def _first_slice(route: Route) -> float | None:
    """The seconds after which another backend has its turn; None where nothing is expected."""
    if route.expected is None:
        return None
    return max(MIN_SLICE_S, SLICE_FACTOR * route.expected)


def _slice(left: Settings, piece: float | None, backend: Backend) -> Settings:
    """The settings of a route while another backend is still to come.

    Parameters
    ----------
    left
        The settings with what is left of the time.
    piece
        The seconds of its slice; None where nothing is expected of the route.
    backend
        Who is asked. Without a limit by the user, one that keeps none by itself gets none: it
        would have to run in a child process.
    """
    if left.time_limit is None:
        if piece is None or "time_limit" not in backend.honours:
            return left
        return attrs.evolve(left, time_limit=piece)
    # A backend that is still to come must find half of the time left.
    seconds = left.time_limit / 2
    return attrs.evolve(left, time_limit=seconds if piece is None else min(seconds, piece))


def _was_stopped(attempt: Attempt, given: Settings) -> bool:
    """Whether a route used up its slice and might have ended with more."""
    if attempt.answer.stop is not Stop.TIME_LIMIT or given.time_limit is None:
        return False
    # One that only says so, at once, would come again and again.
    return attempt.timings.solve >= given.time_limit / 4


def _is_final(problem: Problem, last: Attempt) -> bool:
    """Whether further routes are of no use although nothing conclusive is proven."""
    # All formulations share the arrays that the backend has changed.
    if problem.data_changed:
        return True
    # Data that contradict themselves by rounding do so on every route.
    if last.certificate.data_change:
        return True
    # Where one side of the optimum cannot be bounded no other route would prove more.
    claimed = last.answer.stop is Stop.OPTIMAL and last.point is not None
    return claimed and not problem.provable


def _with_time_left(settings: Settings, began: float) -> Settings:
    """The settings with what is left of the time limit, which all steps of a solve share."""
    if settings.time_limit is None:
        return settings
    left = settings.time_limit - (time.perf_counter() - began)
    return attrs.evolve(settings, time_limit=max(MIN_TIME_LIMIT_S, left))


def _ran_out_of_time(attempts: list[Attempt], backend: Backend) -> bool:
    """Whether the backend once reached its time limit without a point; other forms rarely help."""
    answers = [attempt.answer for attempt in attempts if attempt.route.backend is backend]
    return any(answer.stop is Stop.TIME_LIMIT and answer.x is None for answer in answers)


def _attempts(
    problem: Problem,
    route: Route,
    settings: Settings,
    point: Point | None,
    isolate: bool | None,
    judged_until: float | None,
    *,
    tell: bool,
) -> Iterator[Attempt]:
    """One attempt, and a second one at a tighter tolerance where an optimum is nearly proven.

    Parameters
    ----------
    problem, settings, isolate
        As in `solve`; the time limit is what is left for this route.
    route
        The formulation and the backend.
    point
        Where to start; the second attempt starts from what the first one found.
    judged_until
        Until when its proof may be looked for, by `time.perf_counter`; None without a limit.
    tell
        Whether the user gave the point and wants to know what became of it.
    """
    began = time.perf_counter()
    first = _attempt(problem, route, settings, point, isolate, judged_until, tell=tell)
    yield first

    if not _is_nearly_proven(first, settings.tol):
        return
    # Where no proof can be had, a finer run would only estimate again.
    if first.certificate.verdict is Verdict.ESTIMATED and not problem.provable:
        return
    ask = max(RETRY_FACTOR * settings.tol, MIN_RETRY_TOL)
    left = _with_time_left(settings, began)
    if ask <= MAX_RETRY_FACTOR * settings.tol and left.time_limit != MIN_TIME_LIMIT_S:
        found = (first.point, isolate, judged_until)
        yield _attempt(problem, route, left, *found, tell=False, ask=ask)


def _is_nearly_proven(attempt: Attempt, tol: float) -> bool:
    """Whether the backend has an optimum, or almost, that a tighter native tolerance may well prove."""
    if attempt.answer.stop not in (Stop.OPTIMAL, Stop.ALMOST_OPTIMAL):
        return False
    if "tol" not in attempt.route.backend.honours:
        return False
    certificate = attempt.certificate
    # A proof of infeasibility, say, contradicts the claim but needs no second run.
    if certificate.verdict.conclusive or certificate.data_change:
        return False
    # Either is near: the proven gap, or residuals that a tighter run turns into a proof.
    error = certificate.relative_gap
    if certificate.residuals is not None:
        error = min(error, certificate.residuals.worst)
    return error <= RETRY_WITHIN * tol


def _attempt(
    problem: Problem,
    route: Route,
    settings: Settings,
    point: Point | None,
    isolate: bool | None,
    judged_until: float | None,
    *,
    tell: bool,
    ask: float | None = None,
) -> Attempt:
    """Build the form, run the backend, certify its answer.

    Parameters
    ----------
    problem, route, settings, point, isolate, judged_until, tell
        As in `_attempts`.
    ask
        The tolerance that the backend is asked for, if it is not that of the certificate.
    """
    began = time.perf_counter()
    tell_progress(f"{route}: building")
    try:
        form = route.formulation.build()
    except InvalidProblem as error:
        # The data passed the problem's own checks: it is their size that this form cannot hold.
        name = route.formulation.name
        note = f"{name} cannot be written down: {error}; rescale the problem"
        return _not_run(route, settings, str(error), note, time.perf_counter() - began)
    built = time.perf_counter()

    if refusal := memory_refusal(route.backend, form, settings.memory_limit):
        why = f"{route.backend.name} {refusal}"
        note = f"{route} was not run: it {refusal}; raise memory_limit"
        return _not_run(route, settings, why, note, time.perf_counter() - began)

    settings = _with_time_left(settings, began)
    start: Start | None = None
    notes: tuple[str, ...] = ()
    if point is not None:
        try:
            start, notes = lifted(route, form, point)
        except InvalidSettings:
            # An earlier attempt's point that does not fit is no mistake of the user's.
            if tell:
                raise
    asked = settings if ask is None else attrs.evolve(settings, tol=ask)
    tell_progress(f"{route}: solving")
    answer = answer_form(route.backend, form, asked, start, isolate)
    if answer.native == CHANGED:
        problem.mark_data_changed()
    answered = time.perf_counter()

    def enter(undo: ExitStack) -> None:
        # What overflows proves nothing; the user need not hear of it.
        undo.enter_context(np.errstate(all="ignore"))
        undo.enter_context(blas_threads(settings.threads))
        undo.enter_context(_budget(judged_until))

    tell_progress(f"{route}: proving")
    certificate, found, exact = call_within(
        enter, lambda: _certified(problem, route, form, answer, settings)
    )
    certified = time.perf_counter()

    # Only what the user gave is told: that a later route ignores an earlier point is no news.
    if not tell:
        notes = ()
    if ask is not None:
        notes = (*notes, f"the second run of this route, asked for {ask:.0e}")
    if answer.notes or notes:
        certificate = replace(certificate, notes=certificate.notes + answer.notes + notes)

    seconds = answered - built
    overrun = 0.0 if settings.time_limit is None else max(0.0, seconds - settings.time_limit)
    timings = Timings(
        build=built - began,
        solve=max(0.0, seconds - answer.load),
        certify=certified - answered,
        native=answer.seconds,
        overrun=overrun,
        load=answer.load,
    )
    return Attempt(route, answer, certificate, found, timings, exact)


def _not_run(route: Route, settings: Settings, why: str, note: str, seconds: float) -> Attempt:
    """An attempt that ends before the backend is asked."""
    note = f"{note} or leave the choice to klopt"
    certificate = Certificate.unproven(settings.tol, note)
    answer = Answer(Stop.REJECTED, native=why)
    timings = Timings(build=seconds, solve=0.0, certify=0.0, native=0.0)
    return Attempt(route, answer, certificate, None, timings)


def _budget(judged_until: float | None) -> AbstractContextManager[None]:
    """Until when a repair of a proof may begin: an answer that used up its time is judged too."""
    if judged_until is None:
        return nullcontext()
    return budget(judged_until + CERTIFY_S)


def _certified(
    problem: Problem, route: Route, form: Form, answer: Answer, settings: Settings
) -> tuple[Certificate, Point | None, ExactSolution | None]:
    """What the answer proves; an error in computing it proves nothing and costs this route only."""
    tol = settings.tol

    def again(program: ConeForm) -> tuple[FloatArray | None, FloatArray | None]:
        found = answer_form(route.backend, program, settings)
        return found.x, found.y

    try:
        if isinstance(problem, StatedInRationals) and problem.rational is not None:
            return certify_exact(problem, route.formulation, answer, tol, again)
        return *certify(problem, route.formulation, form, answer, tol), None
    except Exception as error:  # a user's own function may fail in any way
        text = f"what the answer proves cannot be computed: {error_text(error)}"
        return Certificate.unproven(tol, text), None, None


def answer_form(
    backend: Backend,
    form: Form,
    settings: Settings,
    start: Start | None = None,
    isolate: bool | None = None,
) -> Answer:
    """Return a backend's contained answer to a form, its trivial rows taken out and put back.

    Parameters
    ----------
    backend
        Who answers; it is trusted in nothing.
    form
        The form as stated; a backend sees no row of a `ConeForm` that needs no solver.
    settings
        What the backend is asked for.
    start
        Where it may start.
    isolate
        Whether it runs in a child process; None as in `solve`.
    """
    # A limit that the backend does not keep by itself is kept by ending its process.
    if isolate is None:
        enforced = settings.time_limit is not None and "time_limit" not in backend.honours
        isolate = backend.isolate or enforced or settings.memory_limit is not None
    run: Run = run_isolated if isolate else run_here
    if not isinstance(form, ConeForm):
        return run(backend, form, settings, start)

    reduced = reduce_rows(form)
    if reduced.answer is not None:
        return reduced.answer
    began = time.perf_counter()
    answer = run(backend, reduced.form, settings, reduced.shrink(start))
    left = _with_time_left(settings, began)
    return reduced.restore(_with_feasible_point(answer, backend, reduced, left, run))


def _with_feasible_point(
    answer: Answer, backend: Backend, reduced: Reduced, settings: Settings, run: Run
) -> Answer:
    """The answer with a feasible point: an unbounded claim needs one as well as a ray.

    Parameters
    ----------
    answer
        What the backend claims about the reduced form; returned as it is unless its ray is right
        and its point is missing or infeasible.
    backend, reduced, settings, run
        Who is asked, about which form, within which limits and in which process.
    """
    if answer.ray is None:
        return answer
    form = reduced.form
    if answer.x is not None and form.measure(answer.x).primal <= settings.tol:
        return answer
    if not proven_ray(ConeStatement.of_form(form), form, answer.ray):
        return answer

    # Without an objective every feasible point is optimal; native options were meant for the other.
    feasibility = attrs.evolve(form, c=np.zeros_like(form.c), P=None)
    found = run(backend, feasibility, attrs.evolve(settings, raw={}), None)
    if found.native == CHANGED:
        return found
    # No point at all: the problem is infeasible, and the ray only says that its dual is, too.
    if found.farkas is not None:
        return replace(answer, farkas=found.farkas)
    if found.x is not None:
        return replace(answer, x=found.x, y=None)
    return answer
