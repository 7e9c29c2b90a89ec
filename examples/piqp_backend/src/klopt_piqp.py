"""Linear and convex quadratic programs by PIQP, a proximal interior-point method.

PIQP minimises x'Px/2 + c'x subject to Ax = b, h_l <= Gx <= h_u, with klopt's signs: Px + c + A'y +
G'(z_u - z_l) = 0.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from klopt import Answer, Backend, ConeForm, Feature, Settings, Start, Stop
from klopt.model.backend import check_raw
from klopt.model.forms import Form

__all__ = ["BACKEND", "Piqp"]

TOLERANCES = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
RESERVED = {"max_iter": "max_iter", "verbose": "log", **dict.fromkeys(TOLERANCES, "tol")}
STOPS = {  # what the library says when it stops; klopt believes none of it
    "PIQP_SOLVED": Stop.OPTIMAL,
    "PIQP_MAX_ITER_REACHED": Stop.ITERATION_LIMIT,
    "PIQP_PRIMAL_INFEASIBLE": Stop.INFEASIBLE,
    "PIQP_DUAL_INFEASIBLE": Stop.UNBOUNDED,
}


class Piqp(Backend):
    """An interior-point method that asks no independence of the constraints."""

    name, library, rank = "piqp", "piqp", 24
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset(
        {"dual"}
    )  # where there is no optimum it often runs out of iterations before it has a proof

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what PIQP claims about the form."""
        import piqp

        assert isinstance(form, ConeForm)
        solver = piqp.SparseSolver()

        # settings in the library's words
        options = {name for name in dir(solver.settings) if not name.startswith("_")}
        check_raw(self.name, settings.raw, options, RESERVED)
        wanted: dict[str, Any] = dict.fromkeys(
            TOLERANCES, max(1e-12, min(1e-8, settings.tol / 100))
        )
        wanted |= {"verbose": settings.log, **settings.raw}
        if settings.max_iter is not None:
            wanted["max_iter"] = settings.max_iter
        for name, value in wanted.items():
            setattr(solver.settings, name, value)

        # the form in the library's words
        n, zero, rows = form.c.size, form.cones.zero, form.A.tocsr()
        real = zero + np.flatnonzero(np.isfinite(form.b[zero:]))  # inequalities that exist
        P = sparse.csc_matrix((n, n)) if form.P is None else sparse.csc_matrix(form.P, copy=True)
        A, G = sparse.csc_matrix(rows[:zero]), sparse.csc_matrix(rows[real])

        # the call
        began = time.perf_counter()
        solver.setup(P, form.c, A, form.b[:zero], G, None, form.b[real])
        status = solver.solve()
        seconds = time.perf_counter() - began

        # the answer in klopt's words
        found = solver.result
        x, y = np.array(found.x), np.zeros(form.b.size)
        y[:zero], y[real] = found.y, found.z_u
        stop = STOPS.get(status.name, Stop.NUMERICAL)
        # x and y are a point and its multipliers, or a ray, or a proof of infeasibility, as the
        # status says
        return Answer(
            stop,
            x,
            y,
            farkas=y,
            ray=x,
            iterations=found.info.iter,
            seconds=seconds,
            native=status.name,
        )


BACKEND = Piqp()
