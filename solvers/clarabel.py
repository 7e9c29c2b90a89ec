"""Cone programs by Clarabel, an interior-point method.

Clarabel has klopt's form, signs, exponential and power cones; of P it reads the upper triangle. Its
semidefinite triangle is the upper one by columns where klopt's is the lower one: those rows are
permuted on the way in, their multipliers on the way out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.cones import Cones, svec_places, svec_size
from klopt.model.cones.power import exponents
from klopt.model.features import CURVED_CONES, Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.memory import dense_blocks, matrix_bytes
from klopt.solvers._native.options import INT32_MAX, option_names, set_options

__all__ = ["BACKEND", "Clarabel"]

TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
RESERVED = {
    "verbose": "log",
    "max_iter": "max_iter",
    "time_limit": "time_limit",
    "max_threads": "threads",
    **dict.fromkeys(TOLERANCES, "tol"),
}
MIN_TOLERANCE = 1e-12
"""The smallest tolerance that Clarabel is given."""
SHORT_STEP_FRACTION = 0.9
"""The share of the way to the boundary of a step at the smallest tolerance."""
TIME_SHARE = 0.8
"""The share of the time limit that Clarabel is given; it looks at the clock between steps only."""
MIN_TIME_LIMIT_S = 1e-3
"""What a second run is given at least."""
MIN_VARIABLES_FOR_QUICK_RUN = 100
BYTES_PER_DENSE_ENTRY = 105
"""Of the scaling of a semidefinite cone: measured 105 to 107 on theta1, mcp100 and gpp100."""
STOPS = {
    "Solved": Stop.OPTIMAL,
    "AlmostSolved": Stop.ALMOST_OPTIMAL,
    "PrimalInfeasible": Stop.INFEASIBLE,
    "AlmostPrimalInfeasible": Stop.STALLED,
    "DualInfeasible": Stop.UNBOUNDED,
    "AlmostDualInfeasible": Stop.STALLED,
    "MaxTime": Stop.TIME_LIMIT,
    "MaxIterations": Stop.ITERATION_LIMIT,
    "InsufficientProgress": Stop.STALLED,
    "CallbackTerminated": Stop.INTERRUPTED,
}
NEARLY = {"AlmostPrimalInfeasible": Stop.INFEASIBLE, "AlmostDualInfeasible": Stop.UNBOUNDED}
"""What the vectors of a status show that claims nothing."""
NOT_SOLVED_QUICKLY = ("AlmostSolved", "InsufficientProgress", "NumericalError")
"""After these a quick run is followed by a usual one."""


class Clarabel(Backend):
    """The first choice for cone programs of moderate size: few iterations, high accuracy."""

    name = "clarabel"
    library = "clarabel"
    rank = 20
    references = ("goulart2024",)
    offers = CURVED_CONES | {Feature.CONE, Feature.QUADRATIC}
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what Clarabel claims about a cone program."""
        import clarabel

        assert isinstance(form, ConeForm)
        order = _upper_triangles(form.cones)
        A = form.A if order is None else form.A[order]
        b = form.b if order is None else form.b[order]
        n = form.c.size
        P = sparse.csc_array((n, n)) if form.P is None else sparse.triu(form.P, format="csc")
        cones = _clarabel_cones(form.cones)

        began = time.perf_counter()
        for quick in (True, False) if _may_be_quick(form, settings) else (False,):
            options = _options(settings, quick=quick)
            used = time.perf_counter() - began
            options.time_limit = max(MIN_TIME_LIMIT_S, options.time_limit - used)
            with _bad_names_refused(settings.raw):
                found = clarabel.DefaultSolver(P, form.c, A, b, cones, options).solve()
            native = str(found.status)
            if native not in NOT_SOLVED_QUICKLY:
                break
        seconds = time.perf_counter() - began

        x = np.array(found.x)
        y = np.array(found.z)
        if order is not None:
            y[order] = y.copy()
        stop = STOPS.get(native, Stop.NUMERICAL)
        nearly = NEARLY.get(native)
        return claim(stop, x, y, found.iterations, seconds, native, nearly=nearly)

    def memory(self, form: Form) -> float:
        """Return the bytes that Clarabel needs at least: cones of dense matrices become dense blocks."""
        return BYTES_PER_DENSE_ENTRY * dense_blocks(form) + matrix_bytes(form, 100, 70)


def _may_be_quick(form: ConeForm, settings: Settings) -> bool:
    """Whether to try without refining each step.

    Where P is dense a refinement costs as much as the step, and seldom matters. It does on badly
    scaled programs, which Clarabel then calls almost solved: those are solved again, with it.
    """
    n = form.c.size
    is_large = n >= MIN_VARIABLES_FOR_QUICK_RUN
    is_dense = form.P is not None and 2 * form.P.nnz > n * n
    is_polyhedral = form.cones.zero + form.cones.nonneg == form.b.size
    is_plain = settings.max_iter is None and not settings.raw
    usual_tolerance = 1e-6 <= settings.tol <= 1e-3
    return is_large and is_dense and is_polyhedral and is_plain and usual_tolerance


def _options(settings: Settings, *, quick: bool = False) -> Any:
    import clarabel

    options = clarabel.DefaultSettings()
    check_raw("clarabel", settings.raw, option_names(options), RESERVED)
    options.verbose = settings.log
    options.max_threads = settings.threads
    options.max_iter = min(settings.max_iter or options.max_iter, INT32_MAX)
    if settings.time_limit:
        # The last step needs time to end before klopt ends it.
        options.time_limit = TIME_SHARE * settings.time_limit

    # Each step gains a digit or two: a quick run that asks for a tenth of the tolerance makes none
    # in vain.
    tol = settings.tol / 10 if quick else max(MIN_TOLERANCE, min(1e-8, settings.tol / 100))
    for name in TOLERANCES:
        setattr(options, name, tol)
    if tol == MIN_TOLERANCE:
        # Short steps stay near the central path and end with a digit or two more, after a third
        # more of them.
        options.max_step_fraction = SHORT_STEP_FRACTION
    if quick:
        options.iterative_refinement_enable = False
        options.equilibrate_max_iter = 3
    set_options("clarabel", options, settings.raw)
    return options


@contextmanager
def _bad_names_refused(raw: Mapping[str, Any]) -> Iterator[None]:
    """Refuse options whose text names nothing, which Clarabel finds out when given the program."""
    try:
        yield
    except Exception as error:  # it has no class of its own
        if not (raw and str(error).startswith("Bad settings")):
            raise
        raise InvalidSettings(f"clarabel refused the options {dict(raw)}: {error}") from None


def _clarabel_cones(cones: Cones) -> list[Any]:
    import clarabel

    made = []
    if cones.zero:
        made.append(clarabel.ZeroConeT(cones.zero))
    if cones.nonneg:
        made.append(clarabel.NonnegativeConeT(cones.nonneg))
    made += [clarabel.SecondOrderConeT(size) for size in cones.soc]
    made += [clarabel.PSDTriangleConeT(order) for order in cones.psd]
    made += [clarabel.ExponentialConeT()] * cones.exp
    for weights in cones.power:
        a = exponents(weights)
        if a.size == 2:
            made.append(clarabel.PowerConeT(float(a[0])))
        else:
            made.append(clarabel.GenPowerConeT(a.tolist(), 1))
    return made


def _upper_triangles(cones: Cones) -> npt.NDArray[np.intp] | None:
    """The order of klopt's rows in which lower triangles by columns become upper ones by columns.

    None where the rows can stay as they are.
    """
    if not cones.psd:
        return None
    order = np.arange(cones.size)
    start = cones.zero + cones.nonneg + sum(cones.soc)
    for k in cones.psd:
        # Entry (i, j), i <= j, of the upper triangle is entry (j, i) of the lower one.
        order[start : start + svec_size(k)] = start + svec_places(k)[np.tril_indices(k)]
        start += svec_size(k)
    return order


BACKEND = Clarabel()
