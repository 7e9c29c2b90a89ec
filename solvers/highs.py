"""Linear and convex quadratic programs by HiGHS.

One-entry rows become bounds, the others low <= Ax <= b with low = b on zero rows and -inf on
nonnegative ones. HiGHS puts a minus before the multipliers in its Lagrangian, f(x) - dual'(Ax - b),
where klopt has f(x) + y'(Ax - b): its row duals and dual rays are turned in `klopt_signs`.

`highs:simplex`, `highs:ipm` (interior points, then a vertex) and `highs:pdlp` (first order) name one
of its codes for linear programs; by itself it takes the simplex method.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.bounds import BoundedProgram, bounded
from klopt.solvers._native.highs_model import (
    HighsRun,
    HighsUnits,
    model,
    run,
    set_option,
    set_raw,
)
from klopt.solvers._native.memory import matrix_bytes
from klopt.solvers._native.options import INT32_MAX

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
SETUP_PRODUCTS_PER_SECOND = 1e9
"""Of entries of P with variables: one of order 1000 is set up within a second, 3000 in minutes."""
SETUP_GRACE_S = 0.5
"""How long after the time limit it may end."""
MIN_TIME_LIMIT_S = 1e-3
"""What a second run is given at least."""
SECOND_RUN_FINER = 16.0
"""By how much shorter the unit of length of a second run is."""
STOPS = {
    "kOptimal": Stop.OPTIMAL,
    "kInfeasible": Stop.INFEASIBLE,
    "kUnbounded": Stop.UNBOUNDED,
    "kUnboundedOrInfeasible": Stop.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Stop.TIME_LIMIT,
    "kIterationLimit": Stop.ITERATION_LIMIT,
    "kInterrupt": Stop.INTERRUPTED,
}


VARIANTS = ("simplex", "ipm", "pdlp")
"""Its codes for linear programs, by the names that HiGHS has for them."""


@dataclass(frozen=True, repr=False)
class Highs(Backend):
    """Dual simplex for linear programs, an active-set method for quadratic ones.

    Both are exact up to rounding.
    """

    code: str | None = None

    name = "highs"
    library = "highspy"
    rank = 10
    references = ("huangfu2018",)
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})

    def __post_init__(self) -> None:
        # Of one code both are its own, which the class cannot know.
        if self.code is not None:
            object.__setattr__(self, "name", f"highs:{self.code}")
            object.__setattr__(self, "offers", frozenset({Feature.CONE}))
            # The first-order code prints whatever it is told.
            object.__setattr__(self, "isolate", self.code == "pdlp")

    def variant(self, name: str) -> Backend:
        """Return the backend that uses one of HiGHS's codes for linear programs."""
        if name not in VARIANTS:
            raise InvalidSettings(f"highs has no code {name!r}; it has: {', '.join(VARIANTS)}")
        return Highs(name)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what HiGHS claims about a linear or convex quadratic program."""
        assert isinstance(form, ConeForm)
        if not _can_begin(form, settings.time_limit):
            native = "not begun: HiGHS does not look at the clock while it sets up so large a P"
            return Answer(Stop.TIME_LIMIT, native=native)
        if self.code is not None:
            check_raw(self.name, settings.raw, settings.raw, {"solver": "backend"})
            settings = attrs.evolve(settings, raw={**settings.raw, "solver": self.code})
        answer = _solve(form, settings)
        if form.P is not None and _failed(form, answer, settings.tol):
            answer = _second_run(form, settings, answer)
        if answer.stop is Stop.UNBOUNDED:
            answer = _with_ray(form, settings, answer)
        return answer

    def memory(self, form: Form) -> float:
        """Return the bytes that HiGHS needs at least."""
        return matrix_bytes(form, 100, 100)


def _can_begin(form: ConeForm, time_limit: float | None) -> bool:
    """Whether what cannot be interrupted, products of P with a basis, ends soon after the limit."""
    if form.P is None or time_limit is None:
        return True
    return form.P.nnz * form.P.shape[0] <= SETUP_PRODUCTS_PER_SECOND * (time_limit + SETUP_GRACE_S)


def _solve(form: ConeForm, settings: Settings, finer: float = 1.0) -> Answer:
    """One run of HiGHS: program and options translated, the call, the answer translated."""
    import highspy

    units = HighsUnits.of(form, finer)
    program = bounded(form)
    highs: Any = highspy.Highs()
    log: list[str] = []
    highs.setOptionValue("log_to_console", settings.log)
    highs.cbLogging += lambda event: log.append(event.message)
    try:
        _set_options(highs, settings)
        if highs.passModel(model(form, program, units)) == highspy.HighsStatus.kError:
            return Answer(Stop.REJECTED, native="".join(log).strip())
        began = time.perf_counter()
        outcome = run(highs, settings.max_iter, quadratic=form.P is not None)
        seconds = time.perf_counter() - began
        return replace(_read_answer(highs, outcome, form, program, units), seconds=seconds)
    finally:
        highs.disableCallbacks()  # they hold the object, which would never be freed


def _set_options(highs: Any, settings: Settings) -> None:
    tol = min(1e-9, max(1e-10, settings.tol / 10))
    options: dict[str, Any] = {
        "threads": settings.threads,
        "random_seed": settings.seed % 2**31,
        "qp_allow_hot_start": True,
        # The default of 1e-7 moves the optimum by as much.
        "qp_regularization_value": 1e-12,
        # Small entries of A are not for HiGHS to drop.
        "small_matrix_value": 1e-12,
        **dict.fromkeys(TOLERANCES, tol),
    }
    if settings.max_iter:
        # A limit reached behind presolve leaves no point.
        options["presolve"] = "off"
        options |= dict.fromkeys(LIMITS, min(settings.max_iter, INT32_MAX))
    if settings.time_limit:
        options["time_limit"] = settings.time_limit
    for name, value in options.items():
        set_option("highs", highs, name, value)
    set_raw("highs", highs, settings.raw, RESERVED)


def klopt_signs(dual: FloatArray) -> FloatArray:
    """Return HiGHS's row duals, or its dual ray, with the signs of klopt's multipliers."""
    return -dual


def _read_answer(
    highs: Any, outcome: HighsRun, form: ConeForm, program: BoundedProgram, units: HighsUnits
) -> Answer:
    """Return the answer in klopt's units and signs, with the multipliers of the bounds.

    Parameters
    ----------
    highs, outcome
        The solver and what it said.
    form, program, units
        The program as klopt states it, with bounds, and the units of HiGHS.
    """
    x = None if outcome.u is None else units.length * outcome.u
    y = None
    if x is not None and outcome.row_dual is not None:
        # The remaining rows first, negated; what they leave of the gradient is owed to the bounds.
        y_rows = klopt_signs(outcome.row_dual) / (units.weight * units.length)
        y = program.multipliers(y_rows, form.curve(x) + form.c)

    # HiGHS's dual ray has the signs of its row duals; its length does not matter.
    farkas = None
    if outcome.status == "kInfeasible":
        _, exists, dual_ray = highs.getDualRay()
        if exists:
            farkas = program.multipliers(klopt_signs(np.array(dual_ray)), np.zeros_like(form.c))
    return Answer(
        STOPS.get(outcome.status, Stop.NUMERICAL),
        x=x,
        y=y,
        farkas=farkas,
        iterations=outcome.iterations,
        native=outcome.native,
    )


def _failed(form: ConeForm, answer: Answer, tol: float) -> bool:
    """Whether HiGHS gave up, or calls optimal what is not; a limit reached is no failure."""
    if answer.stop is not Stop.OPTIMAL:
        return answer.stop is Stop.NUMERICAL
    if answer.x is None or not np.isfinite(answer.x).all():
        return True
    return not form.measure(answer.x, answer.y).worst <= tol


def _second_run(form: ConeForm, settings: Settings, answer: Answer) -> Answer:
    """Return a better answer by the columns in reverse order, if that has one.

    It leads the active-set code along another path. The code fails on 1 in 200 small random
    programs with a singular P; on none of 5000 did it fail again, reversed and in finer units.
    """
    assert form.P is not None
    c = form.c[::-1]
    A = form.A[:, ::-1]
    P = form.P[::-1, ::-1]
    backwards = ConeForm(c, A, form.b, form.cones, P, form.radius)
    if settings.time_limit:
        left = max(settings.time_limit - answer.seconds, MIN_TIME_LIMIT_S)
        settings = attrs.evolve(settings, time_limit=left)
    other = _solve(backwards, settings, finer=SECOND_RUN_FINER)
    x = None if other.x is None else other.x[::-1]
    other = replace(other, x=x, seconds=answer.seconds + other.seconds)
    return answer if _failed(form, other, settings.tol) else other


def _with_ray(form: ConeForm, settings: Settings, answer: Answer) -> Answer:
    """Return the claim of unboundedness with the ray that proves it, which HiGHS does not return.

    The ray minimises c'd over the recession cone Pd = 0, -Ad in K and the box |d| <= 1.
    """
    search = _solve(_recession_program(form), attrs.evolve(settings, max_iter=None, raw={}))
    seconds = answer.seconds + search.seconds
    descent = 0.0 if search.x is None else form.c @ search.x
    if search.stop is Stop.OPTIMAL and descent >= -settings.tol * np.abs(form.c).max():
        # The active-set code says so of some degenerate programs (1 in 300 small random ones).
        native = f"{answer.native}, but it has no ray"
        return replace(answer, stop=Stop.NUMERICAL, seconds=seconds, native=native)
    return replace(answer, ray=search.x, seconds=seconds)


def _recession_program(form: ConeForm) -> ConeForm:
    """c'd over the recession cone of the form and a box."""
    n = form.c.size
    unit = sparse.eye_array(n)
    P = sparse.csc_array((0, n)) if form.P is None else form.P
    A = sparse.vstack([P, form.A, unit, -unit], format="csc")
    b = np.concatenate([np.zeros(A.shape[0] - 2 * n), np.ones(2 * n)])
    cones = Cones(form.cones.zero + P.shape[0], form.cones.nonneg + 2 * n)
    return ConeForm(form.c, A, b, cones)


BACKEND = Highs()
