"""Linear and convex quadratic programs by HiGHS.

The rows of a form become low <= Ax <= b with low = b on zero rows and -inf on nonnegative ones; all variables are free.
HiGHS puts a minus before the multipliers in its Lagrangian, so its row duals and dual rays are -y.

Quadratic programs run in slices of active-set iterations, each starting where the last one ended. Measured on an SVM
with 3000 points: one long run ends in NaN and still says "optimal", slices end at the optimum. They are also what
makes Ctrl-C work, since the active-set code calls nobody back.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.cones import Cones, Feature
from klopt.errors import InvalidSettings
from klopt.forms import ConeForm, Form

__all__ = ["BACKEND", "Highs"]

SLICE = 500
TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance")
LIMITS = ("simplex_iteration_limit", "ipm_iteration_limit", "pdlp_iteration_limit")
RESERVED = {"output_flag": "log", "log_to_console": "log", "time_limit": "time_limit", "threads": "threads"}
RESERVED |= {"random_seed": "seed", "kkt_tolerance": "tol", "qp_iteration_limit": "max_iter"}
RESERVED |= dict.fromkeys(TOLERANCES, "tol") | dict.fromkeys(LIMITS, "max_iter")
STOPS = {
    "kOptimal": Stop.OPTIMAL,
    "kInfeasible": Stop.INFEASIBLE,
    "kUnbounded": Stop.UNBOUNDED,
    "kUnboundedOrInfeasible": Stop.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Stop.TIME_LIMIT,
    "kIterationLimit": Stop.ITERATION_LIMIT,
    "kInterrupt": Stop.INTERRUPTED,
    "kModelError": Stop.REJECTED,
    "kLoadError": Stop.REJECTED,
}


class Highs(Backend):
    """Dual simplex for linear programs, an active-set method for quadratic ones: exact up to rounding."""

    name, library, rank = "highs", "highspy", 10
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what HiGHS claims about a linear or convex quadratic program."""
        assert isinstance(form, ConeForm)
        answer = _solve(form, settings)
        if answer.stop is not Stop.UNBOUNDED:
            return answer
        rest = replace(settings, max_iter=None)
        point = _solve(ConeForm(np.zeros_like(form.c), form.A, form.b, form.cones), rest)
        ray = _solve(_directions(form), rest)
        return replace(answer, x=point.x, ray=ray.x, seconds=answer.seconds + point.seconds + ray.seconds)


def _directions(form: ConeForm) -> ConeForm:
    """Minimise c'd over the recession cone cut by a box: the ray that HiGHS does not give for quadratic programs."""
    n, unit = form.c.size, sparse.eye_array(form.c.size)
    flat = sparse.csc_array((0, n)) if form.P is None else form.P
    A = sparse.vstack([flat, form.A, unit, -unit], format="csc")
    b = np.concatenate([np.zeros(A.shape[0] - 2 * n), np.ones(2 * n)])
    return ConeForm(form.c, A, b, Cones(form.cones.zero + flat.shape[0], form.cones.nonneg + 2 * n))


def _solve(form: ConeForm, settings: Settings) -> Answer:
    import highspy

    log: list[str] = []
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", settings.log)
    highs.cbLogging += lambda event: log.append(event.message)
    try:
        _set_options(highs, settings)
        if highs.passModel(_model(form)) == highspy.HighsStatus.kError:
            return Answer(Stop.REJECTED, native="".join(log).strip())
        began = time.perf_counter()
        iterations, farkas = _run(highs, settings.max_iter or 2**31 - 1, sliced=form.P is not None)
        seconds = time.perf_counter() - began
        status, solution = highs.getModelStatus(), highs.getSolution()
        x = np.array(solution.col_value) if solution.value_valid else None
        y = -np.array(solution.row_dual) if solution.dual_valid else None
        stop, native = STOPS.get(status.name, Stop.NUMERICAL), highs.modelStatusToString(status)
        return Answer(stop, x, y, farkas, None, iterations, seconds, native, "".join(log))
    finally:
        highs.disableCallbacks()  # they hold the object, which would never be freed


def _set_options(highs: Any, settings: Settings) -> None:
    from highspy import HighsStatus

    # The list of names lacks the advanced options, which only a question finds.
    known = {*dir(highs.getOptions()), *(key for key in settings.raw if highs.getOptionType(key)[0] == HighsStatus.kOk)}
    check_raw("highs", settings.raw, known, RESERVED)
    # The default regularisation of 1e-7 moves the optimum by as much; small entries of A are not for HiGHS to drop.
    options = {"qp_allow_hot_start": True, "qp_regularization_value": 1e-12, "small_matrix_value": 1e-12}
    options |= {"threads": settings.threads, "random_seed": settings.seed % 2**31}
    options |= dict.fromkeys(TOLERANCES, min(1e-9, max(1e-10, settings.tol / 10)))
    options |= dict.fromkeys(LIMITS, settings.max_iter) if settings.max_iter else {}
    options |= {"time_limit": settings.time_limit} if settings.time_limit else {}
    for name, value in (options | dict(settings.raw)).items():
        if highs.setOptionValue(name, value) == HighsStatus.kError:
            raise InvalidSettings(f"highs refused the option {name} = {value!r}")


def _model(form: ConeForm) -> Any:
    import highspy

    model = highspy.HighsModel()
    lp, hessian = model.lp_, model.hessian_
    lp.num_row_, lp.num_col_ = form.shape
    lp.col_cost_ = form.c
    lp.col_lower_, lp.col_upper_ = np.full(form.c.size, -np.inf), np.full(form.c.size, np.inf)
    lp.row_lower_ = np.where(np.arange(form.b.size) < form.cones.zero, form.b, -np.inf)
    lp.row_upper_ = form.b
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = form.A.indptr, form.A.indices, form.A.data
    if form.P is not None:
        lower = sparse.tril(form.P, format="csc")
        hessian.dim_ = form.c.size
        hessian.start_, hessian.index_, hessian.value_ = lower.indptr, lower.indices, lower.data
    return model


def _run(highs: Any, limit: int, sliced: bool) -> tuple[int, FloatArray | None]:
    """Run to the end or to the limit in a thread, so that Ctrl-C reaches the caller, and ask for a dual ray."""
    interrupted = threading.Event()

    def work() -> tuple[int, FloatArray | None]:
        info, done = highs.getInfo(), 0
        while not interrupted.is_set():
            if sliced:
                highs.setOptionValue("qp_iteration_limit", min(SLICE, limit - done))
            highs.run()
            step = highs.getInfo().qp_iteration_count
            done += step
            if not (sliced and 0 < step and done < limit and highs.getModelStatus().name == "kIterationLimit"):
                break
        info = highs.getInfo()
        done = max(done, info.simplex_iteration_count, info.ipm_iteration_count)
        if highs.getModelStatus().name == "kInfeasible":
            _, exists, ray = highs.getDualRay()
            return done, -np.array(ray) if exists else None
        return done, None

    def ask(event: Any) -> None:
        event.interrupt(interrupted.is_set())

    highs.cbSimplexInterrupt += ask
    highs.cbIpmInterrupt += ask
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            while not future.done():
                wait([future], timeout=0.1)
        except BaseException:
            interrupted.set()
            raise
    return future.result()


BACKEND = Highs()
