"""Linear and convex quadratic programs by HiGHS.

One-entry rows become bounds, the others low <= Ax <= b with low = b on zero rows and -inf on
nonnegative ones. HiGHS puts a minus before the multipliers in its Lagrangian, so its row duals and
dual rays are -y.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import attrs
import numpy as np

from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.bounds import bounded
from klopt.solvers._native.highs_model import (
    directions,
    failed,
    model,
    run,
    scales,
    set_option,
    set_raw,
    turned,
)
from klopt.solvers._native.options import iteration_limit

__all__ = ["BACKEND", "Highs"]

TOLERANCES = (
    "primal_feasibility_tolerance",
    "dual_feasibility_tolerance",
    "ipm_optimality_tolerance",
)
LIMITS = ("simplex_iteration_limit", "ipm_iteration_limit", "pdlp_iteration_limit")
RESERVED = {
    "output_flag": "log",
    "log_to_console": "log",
    "time_limit": "time_limit",
    "threads": "threads",
    "random_seed": "seed",
    "kkt_tolerance": "tol",
    "qp_iteration_limit": "max_iter",
    **dict.fromkeys(TOLERANCES, "tol"),
    **dict.fromkeys(LIMITS, "max_iter"),
}
STOPS = {
    "kOptimal": Stop.OPTIMAL,
    "kInfeasible": Stop.INFEASIBLE,
    "kUnbounded": Stop.UNBOUNDED,
    "kUnboundedOrInfeasible": Stop.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Stop.TIME_LIMIT,
    "kIterationLimit": Stop.ITERATION_LIMIT,
    "kInterrupt": Stop.INTERRUPTED,
}


class Highs(Backend):
    """Dual simplex for linear programs, an active-set method for quadratic ones: exact up to rounding."""

    name, library, rank = "highs", "highspy", 10
    references = ("huangfu2018",)
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what HiGHS claims about a linear or convex quadratic program."""
        assert isinstance(form, ConeForm)
        answer = _solve(form, settings)
        if form.P is not None and failed(form, answer, settings.tol):
            left = settings.time_limit and max(settings.time_limit - answer.seconds, 1e-3)
            other = _solve(turned(form), attrs.evolve(settings, time_limit=left), finer=16.0)
            other = replace(
                other,
                x=None if other.x is None else other.x[::-1],
                seconds=answer.seconds + other.seconds,
            )
            answer = answer if failed(form, other, settings.tol) else other
        if answer.stop is not Stop.UNBOUNDED:
            return answer
        search = _solve(directions(form), attrs.evolve(settings, max_iter=None, raw={}))
        answer = replace(answer, ray=search.x, seconds=answer.seconds + search.seconds)
        steepest = 0.0 if search.x is None else form.c @ search.x
        if search.stop is Stop.OPTIMAL and steepest >= -settings.tol * np.abs(form.c).max():
            # The active-set code says so of some degenerate programs (1 in 300 small random ones).
            return replace(
                answer, stop=Stop.NUMERICAL, ray=None, native=f"{answer.native}, but it has no ray"
            )
        return answer


def _solve(form: ConeForm, settings: Settings, finer: float = 1.0) -> Answer:
    import highspy

    (length, weight), program = scales(form, finer), bounded(form)
    highs: Any = highspy.Highs()
    log: list[str] = []
    highs.setOptionValue("log_to_console", settings.log)
    highs.cbLogging += lambda event: log.append(event.message)
    try:
        _set_options(highs, settings)
        if highs.passModel(model(form, program, length, weight)) == highspy.HighsStatus.kError:
            return Answer(Stop.REJECTED, native="".join(log).strip())
        began = time.perf_counter()
        outcome = run(highs, settings.max_iter, quadratic=form.P is not None)
        seconds = time.perf_counter() - began
        x = None if outcome.u is None else length * outcome.u
        y, farkas = None, None
        if x is not None and outcome.row_dual is not None:
            y = program.multipliers(outcome.row_dual / (-weight * length), form.curve(x) + form.c)
        if outcome.status == "kInfeasible":
            _, exists, ray = highs.getDualRay()
            farkas = program.multipliers(-np.array(ray), np.zeros_like(form.c)) if exists else None
        stop = STOPS.get(outcome.status, Stop.NUMERICAL)
        return Answer(stop, x, y, farkas, None, outcome.iterations, seconds, outcome.native)
    finally:
        highs.disableCallbacks()  # they hold the object, which would never be freed


def _set_options(highs: Any, settings: Settings) -> None:
    options: dict[str, Any] = {"threads": settings.threads, "random_seed": settings.seed % 2**31}
    # The default regularisation of 1e-7 moves the optimum by as much; small entries of A are not
    # for HiGHS to drop.
    options |= {
        "qp_allow_hot_start": True,
        "qp_regularization_value": 1e-12,
        "small_matrix_value": 1e-12,
    }
    options |= dict.fromkeys(TOLERANCES, min(1e-9, max(1e-10, settings.tol / 10)))
    if settings.max_iter:  # a limit reached behind presolve leaves no point
        options |= {"presolve": "off", **dict.fromkeys(LIMITS, iteration_limit(settings.max_iter))}
    options |= {"time_limit": settings.time_limit} if settings.time_limit else {}
    for name, value in options.items():
        set_option("highs", highs, name, value)
    set_raw("highs", highs, settings.raw, RESERVED)


BACKEND = Highs()
