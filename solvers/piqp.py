"""Linear and convex quadratic programs by PIQP, a proximal interior-point method.

PIQP minimises x'Px/2 + c'x subject to Ax = b and h_l <= Gx <= h_u, with klopt's signs:

    Px + c + A'y + G'(z_u - z_l) = 0.

Its proximal terms need no linearly independent equations. Where there is no optimum it often runs
out of iterations before it has a proof, so it promises none.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.memory import matrix_bytes
from klopt.solvers._native.options import INT32_MAX, option_names, set_options

__all__ = ["BACKEND", "Piqp"]

TOLERANCES = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
RESERVED = {"max_iter": "max_iter", "verbose": "log", **dict.fromkeys(TOLERANCES, "tol")}
MIN_TOLERANCE = 1e-12
"""The smallest tolerance that it reaches in double precision."""
STOPS = {
    "PIQP_SOLVED": Stop.OPTIMAL,
    "PIQP_MAX_ITER_REACHED": Stop.ITERATION_LIMIT,
    "PIQP_PRIMAL_INFEASIBLE": Stop.INFEASIBLE,
    "PIQP_DUAL_INFEASIBLE": Stop.UNBOUNDED,
    "PIQP_INVALID_SETTINGS": Stop.REJECTED,
}


class Piqp(Backend):
    """Quadratic programs with dependent or degenerate constraints."""

    name = "piqp"
    library = "piqp"
    rank = 24
    references = ("schwan2023",)
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual"})
    install_hint = 'pip install "klopt[piqp]"'

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what PIQP claims about a linear or quadratic program."""
        import piqp

        assert isinstance(form, ConeForm)
        solver = piqp.SparseSolver()
        _set_options(solver.settings, settings)
        n = form.c.size
        zero = form.cones.zero
        rows = form.A.tocsr()
        # Inequalities with b = inf say nothing.
        stated = zero + np.flatnonzero(np.isfinite(form.b[zero:]))
        # It writes into P.
        P = sparse.csc_matrix((n, n)) if form.P is None else sparse.csc_matrix(form.P, copy=True)
        A = sparse.csc_matrix(rows[:zero])
        G = sparse.csc_matrix(rows[stated])

        began = time.perf_counter()
        solver.setup(P, form.c, A, form.b[:zero], G, None, form.b[stated])
        status = solver.solve().name
        seconds = time.perf_counter() - began
        if status == "PIQP_INVALID_SETTINGS":
            raise InvalidSettings(f"piqp refused the options {dict(settings.raw)}")

        # x and y are a point and its multipliers, or a ray, or a proof of infeasibility.
        found = solver.result
        x = np.array(found.x)
        y = np.zeros(form.b.size)
        y[:zero] = found.y
        y[stated] = found.z_u
        stop = STOPS.get(status, Stop.NUMERICAL)
        count = int(found.info.iter)
        return Answer(stop, x, y, farkas=y, ray=x, iterations=count, seconds=seconds, native=status)

    def memory(self, form: Form) -> float:
        """Return the bytes that PIQP needs at least."""
        return matrix_bytes(form, 100, 70)


def _set_options(options: Any, settings: Settings) -> None:
    """Translate the settings, then set the user's own options."""
    check_raw("piqp", settings.raw, option_names(options), RESERVED)
    tolerance = max(MIN_TOLERANCE, min(1e-8, settings.tol / 100))
    for name in TOLERANCES:
        setattr(options, name, tolerance)
    options.verbose = settings.log
    options.max_iter = min(settings.max_iter or options.max_iter, INT32_MAX)
    set_options("piqp", options, settings.raw)


BACKEND = Piqp()
