"""Linear and convex quadratic programs by PIQP, a proximal interior-point method.

PIQP minimises x'Px/2 + c'x subject to Ax = b and h_l <= Gx <= h_u, with klopt's signs:

    Px + c + A'y + G'(z_u - z_l) = 0.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from klopt.model.backend import Answer, Backend, Settings, Stop, check_raw
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form, Start

__all__ = ["BACKEND", "Piqp"]

TOLERANCES = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
RESERVED = {"max_iter": "max_iter", "verbose": "log", **dict.fromkeys(TOLERANCES, "tol")}
"""The native names of klopt's own settings."""
STOPS = {
    "PIQP_SOLVED": Stop.OPTIMAL,
    "PIQP_MAX_ITER_REACHED": Stop.ITERATION_LIMIT,
    "PIQP_PRIMAL_INFEASIBLE": Stop.INFEASIBLE,
    "PIQP_DUAL_INFEASIBLE": Stop.UNBOUNDED,
}
"""What the library says when it stops; klopt believes none of it."""
PIQP = """
@inproceedings{schwan2023,
  author = {Schwan, Roland and Jiang, Yuning and Kuhn, Daniel and Jones, Colin N.},
  title = {{PIQP}: A Proximal Interior-Point Quadratic Programming Solver},
  booktitle = {62nd IEEE Conference on Decision and Control},
  year = {2023},
}
"""


class Piqp(Backend):
    """An interior-point method that does not need linearly independent constraints."""

    name = "piqp"
    library = "piqp"
    rank = 24
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    # Where there is no optimum it often runs out of iterations before it has a proof.
    proves = frozenset({"dual"})
    references = (PIQP,)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what PIQP claims about the form."""
        import piqp

        assert isinstance(form, ConeForm)
        solver = piqp.SparseSolver()

        # the settings, translated
        known = {name for name in dir(solver.settings) if not name.startswith("_")}
        check_raw(self.name, settings.raw, known, RESERVED)
        tolerance = max(1e-12, min(1e-8, settings.tol / 100))
        options: dict[str, Any] = dict.fromkeys(TOLERANCES, tolerance)
        options |= {"verbose": settings.log, **settings.raw}
        if settings.max_iter is not None:
            options["max_iter"] = settings.max_iter
        for name, value in options.items():
            setattr(solver.settings, name, value)

        # the form, translated
        n = form.c.size
        zero = form.cones.zero
        rows = form.A.tocsr()
        finite = zero + np.flatnonzero(np.isfinite(form.b[zero:]))  # inequalities that exist
        P = sparse.csc_matrix((n, n)) if form.P is None else sparse.csc_matrix(form.P, copy=True)
        A = sparse.csc_matrix(rows[:zero])
        G = sparse.csc_matrix(rows[finite])

        # the call
        began = time.perf_counter()
        solver.setup(P, form.c, A, form.b[:zero], G, None, form.b[finite])
        status = solver.solve()
        seconds = time.perf_counter() - began

        # the answer, translated: x and y are a point and its multipliers, or a ray, or a proof of
        # infeasibility, as the status says
        found = solver.result
        x = np.array(found.x)
        y = np.zeros(form.b.size)
        y[:zero] = found.y
        y[finite] = found.z_u
        return Answer(
            STOPS.get(status.name, Stop.NUMERICAL),
            x,
            y,
            farkas=y,
            ray=x,
            iterations=found.info.iter,
            seconds=seconds,
            native=status.name,
        )


BACKEND = Piqp()
