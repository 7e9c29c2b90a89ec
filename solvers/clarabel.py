"""Cone programs by Clarabel, an interior-point method.

Clarabel has klopt's form, signs and exponential cones; of P it reads the upper triangle. Its
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
from klopt.model.cones import Cones, Feature, svec_places, svec_size
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.options import iteration_limit, option_names, set_options

__all__ = ["BACKEND", "Clarabel"]

TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
RESERVED = {
    "verbose": "log",
    "max_iter": "max_iter",
    "time_limit": "time_limit",
    "max_threads": "threads",
}
RESERVED |= dict.fromkeys(TOLERANCES, "tol")
STOPS = {
    "Solved": Stop.OPTIMAL,
    "AlmostSolved": Stop.OPTIMAL,
    "PrimalInfeasible": Stop.INFEASIBLE,
    "AlmostPrimalInfeasible": Stop.INFEASIBLE,
    "DualInfeasible": Stop.UNBOUNDED,
    "AlmostDualInfeasible": Stop.UNBOUNDED,
    "MaxTime": Stop.TIME_LIMIT,
    "MaxIterations": Stop.ITERATION_LIMIT,
    "InsufficientProgress": Stop.STALLED,
    "CallbackTerminated": Stop.INTERRUPTED,
}
DISCONTENT = ("AlmostSolved", "InsufficientProgress", "NumericalError")


class Clarabel(Backend):
    """The first choice for cone programs of moderate size: few iterations, high accuracy."""

    name, library, rank = "clarabel", "clarabel", 20
    references = ("goulart2024",)
    offers = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.SOC, Feature.PSD, Feature.EXP})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what Clarabel claims about a cone program."""
        import clarabel

        assert isinstance(form, ConeForm)
        order = _upper_triangles(form.cones)
        A, b = (form.A, form.b) if order is None else (form.A[order], form.b[order])
        P = (
            sparse.csc_array((form.c.size, form.c.size))
            if form.P is None
            else sparse.triu(form.P, format="csc")
        )
        began = time.perf_counter()
        for quick in (True, False) if _may_be_quick(form, settings) else (False,):
            options = _options(settings, quick=quick)
            options.time_limit = max(1e-3, options.time_limit - (time.perf_counter() - began))
            with _bad_names_refused(settings.raw):
                found = clarabel.DefaultSolver(P, form.c, A, b, _cones(form.cones), options).solve()
            if str(found.status) not in DISCONTENT:
                break
        seconds = time.perf_counter() - began
        x, y = np.array(found.x), np.array(found.z)
        if order is not None:
            y[order] = y.copy()
        native = str(found.status)
        return claim(STOPS.get(native, Stop.NUMERICAL), x, y, found.iterations, seconds, native)


def _may_be_quick(form: ConeForm, settings: Settings) -> bool:
    """Whether to try without refining each step: where P is dense that costs as much as the step, and seldom matters.

    It does on badly scaled programs, which Clarabel then calls almost solved: those are solved
    again, with it. Each step gains a digit or two: asking for a tenth of the tolerance makes none
    for nothing.
    """
    n = form.c.size
    dense = form.P is not None and n >= 100 and 2 * form.P.nnz > n * n
    polyhedral = form.cones.zero + form.cones.nonneg == form.b.size
    plain = settings.max_iter is None and not settings.raw
    return dense and polyhedral and plain and 1e-6 <= settings.tol <= 1e-3


def _options(settings: Settings, *, quick: bool = False) -> Any:
    import clarabel

    options = clarabel.DefaultSettings()
    check_raw("clarabel", settings.raw, option_names(options), RESERVED)
    options.verbose, options.max_threads = settings.log, settings.threads
    options.max_iter = iteration_limit(settings.max_iter or options.max_iter)
    # It looks at the clock between steps only; the last one needs time to end before klopt ends it.
    options.time_limit = 0.8 * settings.time_limit if settings.time_limit else options.time_limit
    finest = 1e-12
    for name in TOLERANCES:
        setattr(
            options,
            name,
            settings.tol / 10 if quick else max(finest, min(1e-8, settings.tol / 100)),
        )
    # Short steps stay near the central path and end with a digit or two more, after a third more of
    # them.
    options.max_step_fraction = 0.9 if options.tol_feas == finest else options.max_step_fraction
    if quick:
        options.iterative_refinement_enable, options.equilibrate_max_iter = False, 3
    set_options("clarabel", options, settings.raw)
    return options


@contextmanager
def _bad_names_refused(raw: Mapping[str, Any]) -> Iterator[None]:
    """Refuse options whose text names nothing, which Clarabel finds out when it is given the program."""
    try:
        yield
    except Exception as error:  # it has no class of its own
        if not (raw and str(error).startswith("Bad settings")):
            raise
        raise InvalidSettings(f"clarabel refused the options {dict(raw)}: {error}") from None


def _cones(cones: Cones) -> list[Any]:
    import clarabel

    made = [clarabel.ZeroConeT(cones.zero)] if cones.zero else []
    made += [clarabel.NonnegativeConeT(cones.nonneg)] if cones.nonneg else []
    made += [clarabel.SecondOrderConeT(k) for k in cones.soc]
    made += [clarabel.PSDTriangleConeT(k) for k in cones.psd]
    return made + [clarabel.ExponentialConeT()] * cones.exp


def _upper_triangles(cones: Cones) -> npt.NDArray[np.intp] | None:
    """The order of klopt's rows in which lower triangles by columns become upper ones by columns; None: as they are."""
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
