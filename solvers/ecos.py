"""Linear, second-order and exponential cone programs by ECOS, an interior-point method.

ECOS splits the rows into Ax = b and h - Gx in K; its exponential cone is (x, z, y) in klopt's
letters. It is frozen since 2024, has no time limit and crashes on some inputs, so klopt runs it in
a child process.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Cones, Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.options import POSITIVE, check_options, iteration_limit, whole

__all__ = ["BACKEND", "Ecos"]

TOLERANCES = ("feastol", "abstol", "reltol")
OPTIONS = {
    **dict.fromkeys(("feastol_inacc", "abstol_inacc", "reltol_inacc"), POSITIVE),
    "nitref": whole(0),
}
RESERVED = {"verbose": "log", "max_iters": "max_iter", **dict.fromkeys(TOLERANCES, "tol")}
MAX_ITER = 200
STOPS = {
    0: Stop.OPTIMAL,
    10: Stop.OPTIMAL,
    1: Stop.INFEASIBLE,
    11: Stop.INFEASIBLE,
    2: Stop.UNBOUNDED,
    12: Stop.UNBOUNDED,
    -1: Stop.ITERATION_LIMIT,
    -3: Stop.STALLED,
    -4: Stop.INTERRUPTED,
}


class Ecos(Backend):
    """A second opinion on small second-order cone programs."""

    name, library, rank = "ecos", "ecos", 22
    references = ("domahidi2013",)
    offers = frozenset({Feature.CONE, Feature.SOC, Feature.EXP})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})
    isolate = True
    install_hint = 'pip install "klopt[ecos]" (GPLv3; no wheel for Python >= 3.13)'

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what ECOS claims about a cone program."""
        import ecos

        assert isinstance(form, ConeForm)
        check_options(self.name, settings.raw, OPTIONS, RESERVED)
        options = dict.fromkeys(TOLERANCES, max(1e-12, min(1e-8, settings.tol / 100)))
        options |= {
            "max_iters": iteration_limit(settings.max_iter or MAX_ITER),
            "verbose": settings.log,
        }
        options |= settings.raw
        order, zero = _order(form.cones), form.cones.zero
        rows = form.A[order]
        # ECOS asks for scipy's old matrices and writes into what it is given.
        A, b = sparse.csc_matrix(rows[:zero]), np.array(form.b[order][:zero])
        G, h = sparse.csc_matrix(rows[zero:]), np.array(form.b[order][zero:])
        dims = {"l": form.cones.nonneg, "q": list(form.cones.soc), "e": form.cones.exp}
        equations = (A, b) if zero else (None, None)
        began = time.perf_counter()
        found = ecos.solve(np.array(form.c), G, h, dims, *equations, **options)
        seconds = time.perf_counter() - began
        x, y = np.array(found["x"]), np.empty(form.b.size)
        y[order] = np.concatenate([found["y"][:zero], found["z"]])
        info = found["info"]
        stop = STOPS.get(info["exitFlag"], Stop.NUMERICAL)
        return claim(stop, x, y, info["iter"], seconds, info["infostring"])


def _order(cones: Cones) -> npt.NDArray[np.intp]:
    """The order of klopt's rows in which exponential cones (x, y, z) become (x, z, y)."""
    order = np.arange(cones.size)
    triples = order[cones.size - 3 * cones.exp :].reshape(-1, 3)
    triples[:, 1:] = triples[:, :0:-1].copy()
    return order


BACKEND = Ecos()
