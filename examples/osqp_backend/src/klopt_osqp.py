"""Linear and convex quadratic programs by OSQP, an operator-splitting method.

OSQP minimises x'Px/2 + q'x subject to l <= Ax <= u, with klopt's signs: Px + q + A'y = 0. A row of a
zero cone has l = u = b, an inequality l = -inf, u = b.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from klopt.model.backend import Answer, Backend, Settings, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form, Start

__all__ = ["BACKEND", "Osqp"]

TOLERANCES = ("eps_abs", "eps_rel")
RESERVED = {
    "max_iter": "max_iter",
    "time_limit": "time_limit",
    "verbose": "log",
    **dict.fromkeys(TOLERANCES, "tol"),
}
"""The native names of klopt's own settings."""
MAX_ITER = 100_000
"""The limit of iterations where the user sets none; OSQP's own is 4000."""
STOPS = {
    "solved": Stop.OPTIMAL,
    "solved inaccurate": Stop.STALLED,
    "maximum iterations reached": Stop.ITERATION_LIMIT,
    "run time limit reached": Stop.TIME_LIMIT,
    "primal infeasible": Stop.INFEASIBLE,
    "primal infeasible inaccurate": Stop.INFEASIBLE,
    "dual infeasible": Stop.UNBOUNDED,
    "dual infeasible inaccurate": Stop.UNBOUNDED,
}
"""What the library says when it stops; klopt believes none of it."""
OSQP = """
@article{stellato2020,
  author = {Stellato, Bartolomeo and Banjac, Goran and Goulart, Paul and Bemporad, Alberto and Boyd, Stephen},
  title = {{OSQP}: An Operator Splitting Solver for Quadratic Programs},
  journal = {Mathematical Programming Computation},
  volume = {12},
  pages = {637--672},
  year = {2020},
}
"""


class Osqp(Backend):
    """A first-order method with one factorisation, warm-startable and robust."""

    name = "osqp"
    library = "osqp"
    rank = 32
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})
    references = (OSQP,)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what OSQP claims about the form."""
        import osqp

        assert isinstance(form, ConeForm)
        solver = osqp.OSQP()

        # the settings, translated
        known = [name for name in dir(solver.ext.OSQPSettings()) if not name.startswith("_")]
        check_raw(self.name, settings.raw, known, RESERVED)
        options: dict[str, Any] = dict.fromkeys(TOLERANCES, max(1e-10, settings.tol / 1000))
        options |= {"verbose": settings.log, **settings.raw}
        options["max_iter"] = settings.max_iter or MAX_ITER
        if settings.time_limit is not None:
            options["time_limit"] = settings.time_limit

        # the form, translated; OSQP wants one triangle of P and matrices that it may keep
        n = form.c.size
        P = sparse.csc_matrix((n, n)) if form.P is None else sparse.csc_matrix(form.P)
        lower = form.b.copy()
        lower[form.cones.zero :] = -np.inf

        # the call
        began = time.perf_counter()
        solver.setup(
            sparse.triu(P, format="csc"),
            form.c.copy(),
            sparse.csc_matrix(form.A, copy=True),
            lower,
            form.b.copy(),
            **options,
        )
        found = solver.solve()
        seconds = time.perf_counter() - began

        # the answer, translated: a point and its multipliers, or a ray, or a proof of infeasibility
        status = found.info.status
        stop = STOPS.get(status, Stop.NUMERICAL)
        proof = np.array(found.prim_inf_cert) if stop is Stop.INFEASIBLE else None
        ray = np.array(found.dual_inf_cert) if stop is Stop.UNBOUNDED else None
        has_point = proof is None and ray is None
        return Answer(
            stop,
            np.array(found.x) if has_point else None,
            np.array(found.y) if has_point else None,
            farkas=proof,
            ray=ray,
            iterations=found.info.iter,
            seconds=seconds,
            native=status,
        )


BACKEND = Osqp()
