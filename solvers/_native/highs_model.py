"""How HiGHS is given a program and options, how it is run, and how its answer is read.

In x = length u, with the objective times weight, HiGHS gets

    minimise  weight (length^2 u'Pu/2 + length c'u)   over   row_lower <= Au <= b / length

with row_lower = b / length on equations and -inf on inequalities; one-entry rows are bounds of u.
`klopt.solvers.highs` turns the signs of what comes back.

Quadratic programs are run in slices, all programs in a thread that Ctrl-C can stop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import check_raw
from klopt.model.forms import ConeForm
from klopt.solvers._native.bounds import BoundedProgram
from klopt.solvers._native.options import option_names, refusal

__all__ = ["HighsRun", "HighsUnits", "model", "run", "set_option", "set_raw"]

SLICE_ITERATIONS = 500
"""Iterations of the active-set code between two looks at Ctrl-C."""
PROXIMAL_WEIGHT = 1e-7
"""The curvature that the proximal point method adds to a singular P."""
MAX_PROXIMAL_STEPS = 6
PROXIMAL_STEP_TOLERANCE = 1e-13
"""A gradient of the proximal term smaller than this no longer matters."""
DOUBTFUL_OBJECTIVE_ERROR = 1e-8
"""HiGHS's own gap beyond which its "optimal" is not believed."""
INTERRUPT_POLL_S = 0.1
START_S = 0.5
"""How long a thread may take to start."""
FINAL_STATUS = ("kOptimal", "kInfeasible", "kUnbounded", "kTimeLimit")


@dataclass(frozen=True)
class HighsUnits:
    """u = x / length, and the weight of the objective: P and c then have entries of about 1."""

    length: float
    weight: float

    @classmethod
    def of(cls, form: ConeForm, finer: float = 1.0) -> HighsUnits:
        """Return the units of a form.

        The active-set code has absolute tolerances and fails on a kernel matrix scaled by 1e4.
        `finer` makes the length shorter and so u longer. Powers of 2 round nothing.
        """
        # Simplex needs no scaling: it has its own.
        curvature = 0.0 if form.P is None else float(np.abs(form.P.data).max(initial=0.0))
        if not curvature:
            return cls(1.0, 1.0)
        gradient = float(np.abs(form.c).max())
        right = float(np.abs(form.b).max())
        natural_length = gradient / curvature if gradient else right or 1.0
        length = 2.0 ** round(np.log2(natural_length)) / finer
        weight = 2.0 ** round(-np.log2(length**2 * curvature))
        return cls(length, weight)


@dataclass(frozen=True, eq=False)
class HighsRun:
    """What HiGHS says: its status by name and in words, and the scaled point, where it has one."""

    status: str
    native: str
    u: FloatArray | None
    row_dual: FloatArray | None
    iterations: int


def model(form: ConeForm, program: BoundedProgram, units: HighsUnits) -> Any:
    """Return the `HighsModel` of the form, scaled, with its one-entry rows as bounds."""
    import highspy

    made = highspy.HighsModel()
    lp = made.lp_
    A = program.A
    b = program.b / units.length
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_ = units.weight * units.length * form.c
    lp.col_lower_ = program.low / units.length
    lp.col_upper_ = program.high / units.length
    is_equation = np.arange(b.size) < program.zero
    lp.row_lower_ = np.where(is_equation, b, -np.inf)
    lp.row_upper_ = b
    lp.a_matrix_.start_ = A.indptr
    lp.a_matrix_.index_ = A.indices
    lp.a_matrix_.value_ = A.data
    if form.P is not None:
        half = sparse.tril(form.P, format="csc")
        hessian = made.hessian_
        hessian.dim_ = form.c.size
        hessian.start_ = half.indptr
        hessian.index_ = half.indices
        hessian.value_ = units.weight * units.length**2 * half.data
    return made


def set_raw(backend: str, highs: Any, raw: Mapping[str, Any], reserved: Mapping[str, str]) -> None:
    """Set native options, having refused those that HiGHS does not have.

    Parameters
    ----------
    backend
        The name of the backend, for the message.
    highs
        The solver.
    raw
        The options that the user gave.
    reserved
        The native names that a setting of klopt covers, with that setting.
    """
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


def run(highs: Any, limit: int | None, quadratic: bool) -> HighsRun:
    """Run to the end, a quadratic program up to a limit of iterations.

    HiGHS ignores Ctrl-C: it runs in a thread, which an interrupted caller asks to stop and waits
    for.
    """
    interrupted = threading.Event()

    def ask(event: Any) -> None:
        event.interrupt(interrupted.is_set())

    highs.cbSimplexInterrupt += ask
    highs.cbIpmInterrupt += ask
    if quadratic:
        return _in_thread(partial(_run_quadratic, highs, limit, interrupted), interrupted)
    return _in_thread(partial(_run_linear, highs), interrupted)


def _in_thread(task: Callable[[], HighsRun], interrupted: threading.Event) -> HighsRun:
    """What the task returns, from a thread that has ended when this returns or raises.

    A thread left behind would go on with a model that is about to be freed. `ThreadPoolExecutor`
    leaves one where Ctrl-C comes while it starts or ends.
    """
    found: list[HighsRun] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.append(task())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
        # Not `join`: interrupted, it takes a running thread for one that has ended.
        while not done.wait(INTERRUPT_POLL_S):
            pass
    except BaseException:
        interrupted.set()
        # It may have been started a moment ago and not be known to be alive yet.
        deadline = time.monotonic() + START_S
        while thread.ident is None and time.monotonic() < deadline:
            time.sleep(START_S / 100)
        if thread.ident is not None:
            done.wait()
            thread.join()
        raise
    thread.join()
    if errors:
        raise errors[0]
    return found[0]


def _run_linear(highs: Any) -> HighsRun:
    highs.run()
    info = highs.getInfo()
    counts = (
        info.simplex_iteration_count,
        info.ipm_iteration_count,
        info.pdlp_iteration_count,
    )
    # HiGHS says -1 of a method that did not run.
    return _outcome(highs, sum(max(count, 0) for count in counts))


def _run_quadratic(highs: Any, limit: int | None, interrupted: threading.Event) -> HighsRun:
    """Solve as it is; where the active-set code fails at a singular P, by proximal points."""
    # The active-set code may cycle; what takes longer than this has never been seen to end.
    cycling = 5_000 + 10 * (highs.getNumRow() + highs.getNumCol())
    limit = limit or 2 * cycling
    outcome = _run_slices(highs, min(limit, cycling), interrupted)
    objective_error = highs.getInfo().primal_dual_objective_error
    doubtful = outcome.status == "kOptimal" and objective_error > DOUBTFUL_OBJECTIVE_ERROR
    if outcome.status in FINAL_STATUS and not doubtful:
        return outcome
    if outcome.iterations >= limit or interrupted.is_set():
        return outcome
    return _run_proximal_points(highs, outcome, limit, interrupted)


def _run_proximal_points(
    highs: Any, outcome: HighsRun, limit: int, interrupted: threading.Event
) -> HighsRun:
    """Minimise the objective plus PROXIMAL_WEIGHT ||u - last u||^2 / 2 again and again.

    That is never singular, and so the steps end at the optimum itself: 60 of 60 SVMs with kernels
    of rank 1 to 5 against 39 without.

    Parameters
    ----------
    highs
        The solver with its model.
    outcome
        What it said without the proximal term; returned where it is better than nothing.
    limit
        The limit of all iterations.
    interrupted
        Set by Ctrl-C.
    """
    cost = np.array(highs.getLp().col_cost_)
    u = np.zeros(highs.getNumCol())
    columns = np.arange(u.size, dtype=np.int32)
    highs.setOptionValue("qp_regularization_value", PROXIMAL_WEIGHT)
    for _ in range(MAX_PROXIMAL_STEPS):
        highs.clearSolver()
        latest = _run_slices(highs, limit - outcome.iterations, interrupted)
        iterations = outcome.iterations + latest.iterations
        if latest.status != "kOptimal" or latest.u is None:
            # Doubtful, but better than a failure.
            if outcome.status == "kOptimal":
                return outcome
            return replace(latest, iterations=iterations)
        outcome = replace(latest, iterations=iterations)
        step = np.abs(latest.u - u).max()
        u = latest.u
        if PROXIMAL_WEIGHT * step <= PROXIMAL_STEP_TOLERANCE or iterations >= limit:
            break
        highs.changeColsCost(u.size, columns, cost - PROXIMAL_WEIGHT * u)
    return outcome


def _run_slices(highs: Any, limit: int, interrupted: threading.Event) -> HighsRun:
    """Run some hundred iterations at a time, each slice from where the last one ended.

    The active-set code calls nobody back, so Ctrl-C needs the ends of slices. And measured on an
    SVM of 3000 points, one long run ends in NaN and still says "optimal", while slices end at the
    optimum.
    """
    iterations = 0
    size = SLICE_ITERATIONS
    best_value = np.inf
    while True:
        highs.setOptionValue("qp_iteration_limit", min(size, limit - iterations))
        highs.run()
        info = highs.getInfo()
        iterations += max(info.qp_iteration_count, 1)
        ended = highs.getModelStatus().name != "kIterationLimit"
        if ended or iterations >= limit or interrupted.is_set():
            return _outcome(highs, iterations)
        # Without progress the slice began anew, as HiGHS does where its start is refused: a longer
        # one gets further.
        size = SLICE_ITERATIONS if info.objective_function_value < best_value else 2 * size
        best_value = min(best_value, info.objective_function_value)


def _outcome(highs: Any, iterations: int) -> HighsRun:
    status = highs.getModelStatus()
    solution = highs.getSolution()
    return HighsRun(
        status=status.name,
        native=highs.modelStatusToString(status),
        u=np.array(solution.col_value) if solution.value_valid else None,
        row_dual=np.array(solution.row_dual) if solution.dual_valid else None,
        iterations=iterations,
    )
