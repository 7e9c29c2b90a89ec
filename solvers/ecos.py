"""Linear, second-order and exponential cone programs by ECOS, an interior-point method.

ECOS splits the rows into Ax = b and h - Gx in K; its exponential cone is (x, z, y) in klopt's
letters. It is frozen since 2024, has no time limit and crashes on some inputs, so klopt runs it in
a child process.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.memory import matrix_bytes
from klopt.solvers._native.options import INT32_MAX, POSITIVE, check_options, whole

__all__ = ["BACKEND", "Ecos"]

TOLERANCES = ("feastol", "abstol", "reltol")
OPTIONS = {
    **dict.fromkeys(("feastol_inacc", "abstol_inacc", "reltol_inacc"), POSITIVE),
    "nitref": whole(0),
}
RESERVED = {"verbose": "log", "max_iters": "max_iter", **dict.fromkeys(TOLERANCES, "tol")}
MAX_ITER = 200
"""The limit of iterations where the user sets none."""
STOPS = {
    0: Stop.OPTIMAL,
    1: Stop.INFEASIBLE,
    2: Stop.UNBOUNDED,
    # "Close to optimal", "close to primal infeasible", "close to dual infeasible"
    10: Stop.ALMOST_OPTIMAL,
    11: Stop.STALLED,
    12: Stop.STALLED,
    -1: Stop.ITERATION_LIMIT,
    -3: Stop.STALLED,
    -4: Stop.INTERRUPTED,
}
NEARLY = {11: Stop.INFEASIBLE, 12: Stop.UNBOUNDED}
"""What the vectors of an exit flag show that claims nothing."""


class Ecos(Backend):
    """A second opinion on small second-order cone programs."""

    name = "ecos"
    library = "ecos"
    rank = 22
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
        options = _options(settings)

        order = _ecos_order(form.cones)
        zero = form.cones.zero
        rows = form.A[order]
        right = form.b[order]
        # ECOS asks for scipy's old matrices and writes into what it is given.
        A = sparse.csc_matrix(rows[:zero])
        b = np.array(right[:zero])
        G = sparse.csc_matrix(rows[zero:])
        h = np.array(right[zero:])
        dims = {"l": form.cones.nonneg, "q": list(form.cones.soc), "e": form.cones.exp}
        equations = (A, b) if zero else (None, None)

        began = time.perf_counter()
        found = ecos.solve(np.array(form.c), G, h, dims, *equations, **options)
        seconds = time.perf_counter() - began

        x = np.array(found["x"])
        y = np.empty(form.b.size)
        y[order] = np.concatenate([found["y"][:zero], found["z"]])
        info = found["info"]
        flag = info["exitFlag"]
        stop = STOPS.get(flag, Stop.NUMERICAL)
        native = info["infostring"]
        return claim(stop, x, y, info["iter"], seconds, native, nearly=NEARLY.get(flag))

    def memory(self, form: Form) -> float:
        """Return the bytes that ECOS needs at least."""
        return matrix_bytes(form, 100, 0)


def _options(settings: Settings) -> dict[str, Any]:
    tol = max(1e-12, min(1e-8, settings.tol / 100))
    return {
        **dict.fromkeys(TOLERANCES, tol),
        "max_iters": min(settings.max_iter or MAX_ITER, INT32_MAX),
        "verbose": settings.log,
        **settings.raw,
    }


def _ecos_order(cones: Cones) -> npt.NDArray[np.intp]:
    """The order of klopt's rows in which exponential cones (x, y, z) become (x, z, y)."""
    order = np.arange(cones.size)
    triples = order[cones.size - 3 * cones.exp :].reshape(-1, 3)
    triples[:, 1:] = triples[:, :0:-1].copy()
    return order


BACKEND = Ecos()
