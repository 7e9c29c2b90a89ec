"""What is proven of a point that somebody else found, without solving again.

The point takes the place of a backend's answer: the problem's own bracket proves the interval, by
the rules of `klopt.engine.certify`. The interval is about the optimum. OPTIMAL is also said of the
answer as it was given, so that two things must hold of it, up to `tol`, beside a narrow interval:

    it satisfies the constraints, row by row, and its value lies in the interval.

Where they do not, the interval stands but nothing is proven of the answer: the verdict is UNPROVEN,
and a note says what is wrong. Both are measured in floating point. They can take a verdict away and
never give one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.certify import certify, violated_row
from klopt.engine.interrupts import call_within
from klopt.engine.planner import Route
from klopt.engine.result import Attempt, Result, Timings, combine
from klopt.engine.run_here import blas_threads
from klopt.errors import InvalidProblem
from klopt.judging.multipliers import fitted_multipliers
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.forms import (
    ConeForm,
    ExplicitForm,
    Form,
    Residuals,
    SaddleForm,
    SimplexForm,
)
from klopt.model.functions import Bilinear, KernelQuadratic, Linear, Quadratic
from klopt.model.problem import Formulation, Point, Problem
from klopt.programs.program import Program
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.time_budget import budget
from klopt.witness.sufficient import sufficient

__all__ = ["Claim", "Given", "expected_arrays", "judged"]

MAX_MAGNITUDE = 1e100
"""Squares and products of larger entries leave the range of floats."""


NO_OPTIMUM = (Stop.INFEASIBLE, Stop.UNBOUNDED, Stop.INFEASIBLE_OR_UNBOUNDED, Stop.STALLED)
"""What a maker says of a problem without an optimum; STALLED stands for "almost infeasible"."""


class Given(Backend):
    """Stands in a route for whoever made the answer."""

    name = "given"
    offers = frozenset()

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return nothing: the answer came from elsewhere, and there is no second one."""
        return Answer(Stop.REJECTED, native="an answer that was given cannot be run again")


@dataclass(frozen=True, eq=False)
class Claim:
    """An answer made elsewhere: its point, and what its maker says of it.

    Parameters
    ----------
    point
        The named arrays of the problem's solution; without primal arrays, multipliers alone.
    stop, native
        Why its maker stopped, in klopt's word and in its own.
    notes
        What a user should know about how the answer was read.
    bound
        The bound of the optimum that the answer states beside its point, such as the primal value
        of a classifier beside its dual coefficients; None where it states none.
    bound_of
        How messages call what has that bound.
    farkas, ray
        Of a claim that there is no optimum: multipliers that contradict the constraints, and a
        direction along which the objective improves without end. Such a claim has no point.
    is_complete
        Whether all entries of the point are known. Of one that is not, nothing is said but the
        interval.
    """

    point: Point
    stop: Stop = Stop.OPTIMAL
    native: str = ""
    notes: tuple[str, ...] = ()
    bound: float | None = None
    bound_of: str = ""
    farkas: FloatArray | None = None
    ray: FloatArray | None = None
    is_complete: bool = True

    @property
    def says_no_optimum(self) -> bool:
        """Whether it is about a problem without an optimum, of which there is no point."""
        if self.point.primal or self.point.dual:
            return False
        return self.stop in NO_OPTIMUM


def judged(problem: Problem, claim: Claim, settings: Settings) -> Result:
    """Return what is proven of an answer to a problem.

    Parameters
    ----------
    problem
        What the verdict is about.
    claim
        The answer.
    settings
        `tol`, the relative gap that counts as optimal, and `time_limit`, the seconds after which no
        further repair of the proof begins.

    >>> from klopt.engine.registry import problem_named
    >>> lp = problem_named("LP")(c=[1.0, 2.0], A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    >>> good = Claim(Point({"x": [1.0, 0.0]}, {"ub": [1.0]}))
    >>> judged(lp, good, Settings()).verdict.name
    'OPTIMAL'
    >>> poor = Claim(Point({"x": [0.0, 1.0]}, {"ub": [1.0]}))
    >>> judged(lp, poor, Settings()).verdict.name
    'FEASIBLE'
    >>> infeasible = Claim(Point({"x": [0.0, 0.0]}, {"ub": [1.0]}))
    >>> judged(lp, infeasible, Settings()).verdict.name
    'UNPROVEN'
    """
    began = time.perf_counter()

    def enter(undo: ExitStack) -> None:
        # What overflows proves nothing; the user need not hear of it.
        undo.enter_context(np.errstate(all="ignore"))
        undo.enter_context(blas_threads(settings.threads))
        # Half of the tolerance, so that constants and units leave the interval narrow enough.
        undo.enter_context(sufficient(settings.tol / 2))
        if settings.time_limit is not None:
            undo.enter_context(budget(began + settings.time_limit))

    judge = _attempt_without_optimum if claim.says_no_optimum else _attempt
    attempt = call_within(enter, lambda: judge(problem, claim, settings))
    return combine(problem, settings, (attempt,), time.perf_counter() - began)


def _attempt(problem: Problem, claim: Claim, settings: Settings) -> Attempt:
    """The claim as an attempt of the route "given"."""
    began = time.perf_counter()
    _refuse_unusable(claim.point)
    has_point = bool(claim.point.primal) or not _needs_primal(problem)
    point = claim.point if has_point else _with_zeros(problem, claim.point)
    way = _way(problem, point)
    notes = claim.notes
    # The multipliers of a program with linear rows follow from the point.
    is_program = isinstance(problem, Program) and isinstance(way.form, ConeForm)
    if is_program and has_point and not point.dual:
        assert isinstance(way.form, ConeForm)
        y = fitted_multipliers(way.form, way.x)
        if y is not None:
            way = replace(way, y=y)
            point = way.formulation.recover(way.x, y)
            notes = (*notes, "no multipliers came with the answer: klopt fitted them to its point")
    built = time.perf_counter()

    # The bracket is that of the point itself, not of what a form keeps of it.
    formulation = replace(way.formulation, recover=lambda x, y: point)
    answer = Answer(claim.stop, way.x, way.y, native=claim.native, notes=notes)
    try:
        certificate, found = certify(
            problem, formulation, way.form, answer, settings.tol, sharpen=False
        )
    except (AttributeError, LookupError, ValueError) as error:
        # A bracket that cannot read the point says which array it misses.
        raise InvalidProblem(f"the answer does not fit {problem.describe()}: {error}") from error
    if has_point and not claim.is_complete:
        note = "parts of the answer are missing: nothing is said of it, but the interval holds"
        certificate = _demoted(certificate, note)
    elif has_point:
        certificate = _about_the_answer(problem, point, way, certificate, found)
        if claim.bound is not None:
            certificate = _about_the_bound(problem, claim.bound, claim.bound_of, certificate)
    else:
        note = "the answer has no point: the interval is what its multipliers prove"
        certificate = _demoted(certificate, note)
    certificate = replace(certificate, notes=(*certificate.notes, *notes))
    if not certificate.verdict.conclusive:
        note = "klopt.solve(result.problem) solves it again and may prove more"
        certificate = replace(certificate, notes=(*certificate.notes, note))

    timings = Timings(built - began, 0.0, time.perf_counter() - built, 0.0)
    return Attempt(Route(way.formulation, Given()), answer, certificate, found, timings)


def _attempt_without_optimum(problem: Problem, claim: Claim, settings: Settings) -> Attempt:
    """The claim that there is no optimum, judged by its vectors."""
    began = time.perf_counter()
    formulation = problem.formulations()[0]
    form = formulation.build()
    built = time.perf_counter()
    answer = Answer(
        claim.stop,
        _feasible_start(form, claim.ray),
        native=claim.native,
        farkas=claim.farkas,
        ray=claim.ray,
        notes=claim.notes,
    )
    certificate, found = certify(problem, formulation, form, answer, settings.tol, sharpen=False)
    certificate = replace(certificate, notes=(*certificate.notes, *claim.notes))
    timings = Timings(built - began, 0.0, time.perf_counter() - built, 0.0)
    return Attempt(Route(formulation, Given()), answer, certificate, found, timings)


def _feasible_start(form: Form, ray: FloatArray | None) -> FloatArray | None:
    """A point from which a feasible one may be found: some way along the ray from 0."""
    if ray is None or not isinstance(form, ConeForm):
        return None
    size = float(np.max(np.abs(ray), initial=0.0))
    stated = form.b[np.isfinite(form.b)]
    reach = 1 + float(np.max(np.abs(stated), initial=0.0))
    return ray * (reach / size) if size else None


def _refuse_unusable(point: Point) -> None:
    """Refuse entries that are NaN, infinite or too large to square."""
    for name in point:
        array = getattr(point, name)
        bad = np.argwhere(~(np.abs(array) <= MAX_MAGNITUDE))
        if bad.size:
            index = ", ".join(str(i) for i in bad[0])
            value = array[tuple(bad[0])]
            raise InvalidProblem(
                f"{name}[{index}] of the answer is {value}; "
                f"every entry must be a number of at most {MAX_MAGNITUDE:g} in size"
            )


# The form on which the answer is measured


@dataclass(frozen=True, eq=False)
class _Way:
    """A formulation, its form, and the answer as a solution (x, y) of that form."""

    formulation: Formulation
    form: Form
    x: FloatArray
    y: FloatArray | None


def _way(problem: Problem, point: Point) -> _Way:
    """The first formulation that the point can be carried to; without one nothing is measured."""
    for formulation in problem.formulations():
        if formulation.lift is None:
            continue
        form = formulation.build()
        try:
            start = formulation.lift(point)
        except (AttributeError, LookupError, ValueError):
            continue
        if _fits(form, start):
            return _Way(formulation, form, start.x, start.y)
    everything = [np.ravel(array) for array in point.primal.values()]
    x = np.concatenate(everything) if everything else np.zeros(0)
    no_form = ExplicitForm(lambda: (x, None))
    return _Way(problem.formulations()[0], no_form, x, None)


def _fits(form: Form, start: Start) -> bool:
    rows, columns = form.shape
    if columns is not None and start.x.shape != (columns,):
        return False
    if start.y is not None and rows is not None and start.y.shape != (rows,):
        return False
    numbers = start.x if start.y is None else np.concatenate((start.x, start.y))
    return bool(np.isfinite(numbers).all())


def expected_arrays(problem: Problem) -> tuple[Mapping[str, tuple[int, ...]], ...]:
    """Return the shapes of the primal and of the dual arrays by name, empty where unknown.

    >>> from klopt.engine.registry import problem_named
    >>> expected_arrays(problem_named("LP")(c=[1.0, 2.0], A_ub=[[1.0, 1.0]], b_ub=[1.0]))
    ({'x': (2,)}, {'ub': (1,), 'eq': (0,), 'lower': (2,), 'upper': (2,)})
    """
    # Those that a point can be carried to come first: their arrays are the problem's own.
    formulations = sorted(problem.formulations(), key=lambda each: each.lift is None)
    for formulation in formulations:
        form = formulation.build()
        rows, columns = form.shape
        if columns is None:
            continue
        x = np.zeros(columns)
        try:
            with np.errstate(all="ignore"):
                primal = formulation.recover(x, None).primal
                dual = formulation.recover(x, np.zeros(rows)).dual if rows else {}
        except (AttributeError, LookupError, ValueError):
            continue
        return _shapes(primal), _shapes(dual)
    return {}, {}


def _shapes(arrays: Mapping[str, FloatArray]) -> Mapping[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def _needs_primal(problem: Problem) -> bool:
    """Whether solutions have primal arrays at all: those of a log det program are multipliers."""
    primal, dual = expected_arrays(problem)
    return bool(primal) or not dual


def _with_zeros(problem: Problem, point: Point) -> Point:
    """The point with zeros for its primal arrays, from which multipliers prove their bound too."""
    primal, _ = expected_arrays(problem)
    if not primal:
        raise InvalidProblem(f"the answer to {problem.describe()} has no point; give x")
    zeros = {name: np.zeros(shape) for name, shape in primal.items()}
    return Point(zeros, point.dual)


# What OPTIMAL asks of the answer itself


def _about_the_answer(
    problem: Problem, point: Point, way: _Way, certificate: Certificate, found: Point | None
) -> Certificate:
    """The certificate with what is measured of the answer, and less of a verdict where it is bad.

    Parameters
    ----------
    problem, point, way
        What is judged, and how it is measured.
    certificate, found
        What is proven, and the feasible point behind it.
    """
    # There is no optimum that an answer could be.
    if certificate.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return certificate
    residuals = certificate.residuals
    flaw = _distance_flaw(_unmeasured(point, way), found, certificate.tol)
    if residuals is not None:
        flaw = flaw or _row_flaw(way, residuals, certificate.tol)
    value = _value(way, residuals)
    if value is not None:
        flaw = flaw or _value_flaw(value, certificate)
    if flaw:
        return _demoted(certificate, f"the answer itself is not optimal: {flaw}")
    if value is None:
        return certificate
    note = f"the answer itself has the value {value:.10g}"
    return replace(certificate, notes=(*certificate.notes, note))


def _value(way: _Way, residuals: Residuals | None) -> float | None:
    """The value of the answer in the problem's units; None where it is not known to rounding."""
    if residuals is None or not _computes_values(way.form):
        return None
    value, _ = way.formulation.to_user(residuals.value, residuals.value)
    return value


def _computes_values(form: Form) -> bool:
    """Whether values of the form are right up to rounding: an oracle may solve a problem inside."""
    if isinstance(form, SimplexForm):
        return isinstance(form.objective, KernelQuadratic | Quadratic | Linear)
    if isinstance(form, SaddleForm):
        return isinstance(form.coupling, Bilinear)
    return isinstance(form, ConeForm)


def _about_the_bound(
    problem: Problem, bound: float, bound_of: str, certificate: Certificate
) -> Certificate:
    """The certificate with less of a verdict where what the answer states beside its point is bad.

    Parameters
    ----------
    problem
        What is judged; its sense says on which side of the optimum the bound lies.
    bound, bound_of
        The bound, and what has it.
    certificate
        What is proven.
    """
    size = 1 + abs(certificate.upper)
    miss = certificate.lower - bound
    if problem.sense == "max":
        miss = bound - certificate.upper
    # An infinite end bounds nothing; a bound that is NaN is no bound.
    if miss <= certificate.tol * size or not np.isfinite(certificate.gap):
        return certificate
    note = (
        f"{bound_of} has the value {bound:.10g}, which misses the interval by "
        f"{miss / size:.1e}, relative"
    )
    # An interval that is wide as it is says no more of a point than that it is feasible.
    if certificate.verdict is Verdict.FEASIBLE:
        return replace(certificate, notes=(*certificate.notes, note))
    return _demoted(certificate, note)


def _demoted(certificate: Certificate, note: str) -> Certificate:
    """The same interval, of which the answer is not the optimum."""
    notes = (*certificate.notes, note)
    # That there is no optimum is proven whatever the answer is.
    if certificate.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return replace(certificate, notes=notes)
    return replace(
        certificate, verdict=Verdict.UNPROVEN, estimate=None, data_change="", notes=notes
    )


def _row_flaw(way: _Way, residuals: Residuals, tol: float) -> str:
    """Return "" if the answer satisfies its constraints up to tol, else which one it violates."""
    if isinstance(way.form, ConeForm):
        return violated_row(way.form, way.x, tol)
    if not residuals.primal <= tol:
        return f"it violates its constraints by {residuals.primal:.1e}"
    return ""


def _value_flaw(value: float, certificate: Certificate) -> str:
    """Return "" if the value lies in the proven interval, up to tol, else by how much it does not."""
    lower = certificate.lower
    upper = certificate.upper
    # Nothing is known of the optimum where an end is missing: then the verdict says so already.
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return ""
    slack = certificate.tol * (1 + abs(upper))
    # Not >, so that NaN is outside.
    if not lower - slack <= value <= upper + slack:
        miss = max(lower - value, value - upper)
        return f"its value is {value:.10g}, {miss:.1e} outside the interval"
    return ""


def _unmeasured(point: Point, way: _Way) -> dict[str, FloatArray]:
    """The primal arrays that the form does not keep, so that it cannot measure them."""
    if not _computes_values(way.form):
        return dict(point.primal)
    kept = way.formulation.recover(way.x, way.y).primal
    return {
        name: array
        for name, array in point.primal.items()
        if name in kept and not np.allclose(array, kept[name], rtol=1e-9, atol=0.0)
    }


def _distance_flaw(arrays: Mapping[str, FloatArray], found: Point | None, tol: float) -> str:
    """Return "" if the proven point has these arrays, else how far it is away.

    Near an optimum the value is flat: a gap of tol leaves a distance of its root.
    """
    for name, array in arrays.items():
        other = None if found is None else found.primal.get(name)
        if other is None or other.shape != array.shape:
            continue
        distance = float(np.max(np.abs(array - other), initial=0.0))
        largest = float(np.max(np.abs(other), initial=0.0))
        if not distance <= np.sqrt(tol) * largest:
            return f"{name} is {distance:.1e} away from that of the proven point"
    return ""
