"""How HiGHS is given a program and options, and run.

Quadratic programs are scaled and run in slices, all programs in a thread that Ctrl-C can stop.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, cast

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Stop, check_raw
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.solvers._native.bounds import Bounded
from klopt.solvers._native.options import option_names, refusal

__all__ = [
    "Outcome",
    "directions",
    "failed",
    "model",
    "run",
    "scales",
    "set_option",
    "set_raw",
    "turned",
]

SLICE = 500
PROXIMITY = 1e-7
ROUNDS = 6
DONE = ("kOptimal", "kInfeasible", "kUnbounded", "kTimeLimit")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What HiGHS says: its status by name and in words, the scaled point and the row duals where it has them."""

    status: str
    native: str
    u: FloatArray | None
    row_dual: FloatArray | None
    iterations: int


def scales(form: ConeForm, finer: float = 1.0) -> tuple[float, float]:
    """Return (length, weight): in u = x / length, with the objective times weight, P and c have entries of about 1.

    The active-set code has absolute tolerances and fails on a kernel matrix scaled by 1e4. `finer`
    makes the length shorter and so u longer. Powers of 2 round nothing.
    """
    curvature = 0.0 if form.P is None else float(np.abs(form.P.data).max(initial=0.0))
    if not curvature:
        return 1.0, 1.0
    gradient, size = float(np.abs(form.c).max()), float(np.abs(form.b).max())
    length = 2.0 ** round(np.log2(gradient / curvature if gradient else size or 1.0)) / finer
    return length, 2.0 ** round(-np.log2(length**2 * curvature))


def model(form: ConeForm, program: Bounded, length: float, weight: float) -> Any:
    """Return the `HighsModel` of the form, scaled, with its one-entry rows as bounds."""
    import highspy

    made = highspy.HighsModel()
    lp, hessian, A, b = made.lp_, made.hessian_, program.A, program.b / length
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = (
        weight * length * form.c,
        program.low / length,
        program.high / length,
    )
    lp.row_lower_, lp.row_upper_ = np.where(np.arange(b.size) < program.zero, b, -np.inf), b
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    if form.P is not None:
        half = sparse.tril(form.P, format="csc")
        hessian.dim_, hessian.value_ = form.c.size, weight * length**2 * half.data
        hessian.start_, hessian.index_ = half.indptr, half.indices
    return made


def directions(form: ConeForm) -> ConeForm:
    """Return the search for a ray, which HiGHS lacks for quadratic programs: c'd over the recession cone and a box."""
    n, unit = form.c.size, sparse.eye_array(form.c.size)
    flat = sparse.csc_array((0, n)) if form.P is None else form.P
    A = sparse.vstack([flat, form.A, unit, -unit], format="csc")
    b = np.concatenate([np.zeros(A.shape[0] - 2 * n), np.ones(2 * n)])
    return ConeForm(form.c, A, b, Cones(form.cones.zero + flat.shape[0], form.cones.nonneg + 2 * n))


def failed(form: ConeForm, answer: Answer, tol: float) -> bool:
    """Whether HiGHS gave up, or calls optimal what is not; a limit that was reached is no failure."""
    if answer.stop is not Stop.OPTIMAL:
        return answer.stop is Stop.NUMERICAL
    found = answer.x is not None and bool(np.isfinite(answer.x).all())
    return not (found and form.measure(cast(FloatArray, answer.x), answer.y).worst <= tol)


def turned(form: ConeForm) -> ConeForm:
    """Return the program with its columns in reverse order, which leads the active-set code along another path.

    It fails on 1 in 200 small random programs with a singular P; on none of 5000 did it fail again,
    turned and finer.
    """
    assert form.P is not None
    return attrs.evolve(form, c=form.c[::-1], A=form.A[:, ::-1], P=form.P[::-1, ::-1])


def set_raw(backend: str, highs: Any, raw: Mapping[str, Any], reserved: Mapping[str, str]) -> None:
    """Set native options, having refused those that HiGHS does not have."""
    from highspy import HighsStatus

    # The list of names lacks the advanced options, which only a question finds.
    advanced = (key for key in raw if highs.getOptionType(key)[0] == HighsStatus.kOk)
    check_raw(backend, raw, {*option_names(highs.getOptions()), *advanced}, reserved)
    for name, value in raw.items():
        set_option(backend, highs, name, value)


def set_option(backend: str, highs: Any, name: str, value: object) -> None:
    """Set an option; HiGHS knows the type and the range of each."""
    from highspy import HighsStatus

    try:
        taken = highs.setOptionValue(name, value) != HighsStatus.kError
    except TypeError:  # of a type that no option has
        taken = False
    if not taken:
        raise InvalidSettings(refusal(backend, name, value, highs.getOptionValue(name)[1]))


def run(highs: Any, limit: int | None, quadratic: bool) -> Outcome:
    """Run to the end, a quadratic program up to a limit of iterations.

    HiGHS ignores Ctrl-C: it runs in a thread, which an interrupted caller asks to stop and waits
    for.
    """
    interrupted = threading.Event()

    def ask(event: Any) -> None:
        event.interrupt(interrupted.is_set())

    highs.cbSimplexInterrupt += ask
    highs.cbIpmInterrupt += ask
    with ThreadPoolExecutor(1) as pool:
        future = (
            pool.submit(_quadratic, highs, limit, interrupted)
            if quadratic
            else pool.submit(_linear, highs)
        )
        try:
            while not future.done():
                wait([future], timeout=0.1)
        except BaseException:
            interrupted.set()
            raise
    return future.result()


def _linear(highs: Any) -> Outcome:
    highs.run()
    info = highs.getInfo()
    counts = info.simplex_iteration_count, info.ipm_iteration_count, info.pdlp_iteration_count
    return _outcome(highs, sum(max(count, 0) for count in counts))


def _quadratic(highs: Any, limit: int | None, interrupted: threading.Event) -> Outcome:
    """Solve as it is; where the active-set code fails at a singular P, or doubts itself, by the proximal point method.

    Each round minimises the objective plus PROXIMITY ||u - last u||^2 / 2, which is never singular,
    and so the rounds end at the optimum itself: 60 of 60 SVMs with kernels of rank 1 to 5 against
    39 without.
    """
    # The active-set code may cycle for ever; what takes longer than this has never been seen to
    # end.
    patience = 5_000 + 10 * (highs.getNumRow() + highs.getNumCol())
    limit = limit or 2 * patience
    outcome = _slices(highs, min(limit, patience), interrupted)
    doubtful = outcome.status == "kOptimal" and highs.getInfo().primal_dual_objective_error > 1e-8
    if (
        (outcome.status in DONE and not doubtful)
        or outcome.iterations >= limit
        or interrupted.is_set()
    ):
        return outcome
    cost, u = np.array(highs.getLp().col_cost_), np.zeros(highs.getNumCol())
    highs.setOptionValue("qp_regularization_value", PROXIMITY)
    for _ in range(ROUNDS):
        highs.clearSolver()
        latest = _slices(highs, limit - outcome.iterations, interrupted)
        done = outcome.iterations + latest.iterations
        if latest.status != "kOptimal" or latest.u is None:
            return outcome if outcome.status == "kOptimal" else replace(latest, iterations=done)
        outcome, step, u = replace(latest, iterations=done), np.abs(latest.u - u).max(), latest.u
        if PROXIMITY * step <= 1e-13 or done >= limit:
            break
        highs.changeColsCost(u.size, np.arange(u.size, dtype=np.int32), cost - PROXIMITY * u)
    return outcome


def _slices(highs: Any, limit: int, interrupted: threading.Event) -> Outcome:
    """Run some hundred iterations at a time, each slice from where the last one ended.

    The active-set code calls nobody back, so Ctrl-C needs the ends of slices. And measured on an
    SVM of 3000 points, one long run ends in NaN and still says "optimal", while slices end at the
    optimum.
    """
    done, size, best = 0, SLICE, np.inf
    while True:
        highs.setOptionValue("qp_iteration_limit", min(size, limit - done))
        highs.run()
        info = highs.getInfo()
        done += max(info.qp_iteration_count, 1)
        if (
            highs.getModelStatus().name != "kIterationLimit"
            or done >= limit
            or interrupted.is_set()
        ):
            return _outcome(highs, done)
        # Without progress the slice began anew, as HiGHS does where its start is refused: a longer
        # one gets further.
        size = SLICE if info.objective_function_value < best else 2 * size
        best = min(best, info.objective_function_value)


def _outcome(highs: Any, iterations: int) -> Outcome:
    status, solution = highs.getModelStatus(), highs.getSolution()
    return Outcome(
        status=status.name,
        native=highs.modelStatusToString(status),
        u=np.array(solution.col_value) if solution.value_valid else None,
        row_dual=np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=iterations,
    )
