"""Cone programs by SCS, an operator splitting method.

SCS has klopt's form, signs, triangles, exponential cones and power cones of three rows; of P it
reads the upper triangle. It uses one thread, and its time limit leaves out the factorisation.
"Solved, inaccurate" is a limit reached, never an optimum.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones.power import exponents
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.memory import matrix_bytes
from klopt.solvers._native.options import (
    FILE,
    FLAG,
    INT32_MAX,
    NUMBER,
    POSITIVE,
    SWITCH,
    OptionKind,
    between,
    check_options,
    whole,
    within,
)

__all__ = ["BACKEND", "Scs"]

MAX_ITER = 100_000
"""The limit of iterations where the user sets none."""
MAX_VARIABLES_HALF_DENSE = 800
"""With more variables, half dense matrices are as fast by "auto": MKL, whose setup takes long."""
MAX_NONZEROS_QDLDL = 300_000
"""With more nonzeros, sparse matrices are as fast by "auto"."""
LINEAR_SOLVERS = (
    "auto",
    "qdldl",
    "cpu_indirect",
    "mkl",
    "accelerate",
    "cpu_dense",
    "gpu_indirect",
    "cudss",
)


def _is_linear_solver(value: Any) -> bool:
    """Whether it is one by name or as a member of scs.LinearSolver."""
    return getattr(value, "value", value) in LINEAR_SOLVERS


OPTIONS = {
    **dict.fromkeys(("normalize", "adaptive_scale"), FLAG),
    **dict.fromkeys(("adaptive_diag_scale", "acceleration_type_1"), SWITCH),
    **dict.fromkeys(("scale", "rho_x"), POSITIVE),
    **dict.fromkeys(("write_data_filename", "log_csv_filename"), FILE),
    "alpha": between(0, 2),
    "acceleration_lookback": whole(0),
    "acceleration_interval": whole(1),
    "acceleration_regularization": NUMBER,
    "acceleration_relaxation": within(0, 2),
    "linear_solver": OptionKind(f"one of {', '.join(LINEAR_SOLVERS)}", _is_linear_solver),
}
RESERVED = {
    "eps_abs": "tol",
    "eps_rel": "tol",
    "eps_infeas": "tol",
    "max_iters": "max_iter",
    "time_limit_secs": "time_limit",
    "verbose": "log",
    "warm_start": "start",
}
STOPS = {
    1: Stop.OPTIMAL,
    -1: Stop.UNBOUNDED,
    -2: Stop.INFEASIBLE,
    -3: Stop.STALLED,
    -4: Stop.NUMERICAL,
}
NEARLY = {2: Stop.OPTIMAL, -6: Stop.UNBOUNDED, -7: Stop.INFEASIBLE}
"""What SCS calls inaccurate: a limit was reached, and no looser tolerance was looked at."""


class Scs(Backend):
    """The one that takes everything: cheap iterations, many of them, modest accuracy."""

    name = "scs"
    library = "scs"
    rank = 30
    references = ("odonoghue2016", "odonoghue2021")
    offers = frozenset(
        {Feature.CONE, Feature.QUADRATIC, Feature.SOC, Feature.PSD, Feature.EXP, Feature.POWER}
    )
    honours = frozenset({"tol", "max_iter", "threads", "seed", "start"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what SCS claims about a cone program."""
        import scs

        assert isinstance(form, ConeForm)
        check_options(self.name, settings.raw, OPTIONS, RESERVED)
        options = _options(form, settings)
        cones = form.cones
        cone = {
            "z": cones.zero,
            "l": cones.nonneg,
            "q": list(cones.soc),
            "s": list(cones.psd),
            "ep": cones.exp,
            "p": [float(exponents(weights)[0]) for weights in cones.power],
        }
        data = {"A": form.A, "b": form.b, "c": form.c}
        if form.P is not None:
            data["P"] = sparse.triu(form.P, format="csc")

        began = time.perf_counter()
        with _interrupts_held():
            solver = scs.SCS(data, cone, **options)
        found = solver.solve(warm_start=start is not None, **_warm_start(form, start))
        seconds = time.perf_counter() - began

        info = found["info"]
        code = info["status_val"]
        native = info["status"]
        if code == scs.SIGINT:
            raise KeyboardInterrupt  # SCS takes the signal for itself
        stop = STOPS.get(code, Stop.NUMERICAL)
        nearly = NEARLY.get(code)
        if nearly is not None:
            stop = Stop.TIME_LIMIT if "time_limit" in native else Stop.ITERATION_LIMIT
        x = found["x"]
        return claim(stop, x, found["y"], info["iter"], seconds, native, nearly=nearly)

    def memory(self, form: Form) -> float:
        """Return the bytes that SCS needs at least."""
        return matrix_bytes(form, 50, 100)


def _options(form: ConeForm, settings: Settings) -> dict[str, Any]:
    return {
        "eps_abs": settings.tol / 10,
        # Its relative errors are relative to the iterate, klopt's to the data, which may be far
        # smaller.
        "eps_rel": settings.tol / 100,
        "eps_infeas": settings.tol / 10,
        "max_iters": min(settings.max_iter or MAX_ITER, INT32_MAX),
        "time_limit_secs": settings.time_limit or 0.0,
        "verbose": settings.log,
        "linear_solver": _linear_solver(form),
        **settings.raw,
    }


def _linear_solver(form: ConeForm) -> str:
    """Which of its factorisations is the fastest: dense where A and P are, QDLDL where sparse."""
    rows, n = form.shape
    nonzeros = form.A.nnz
    places = rows * n
    if form.P is not None:
        nonzeros += form.P.nnz
        places += n * n
    dense_from = 0.3 if n <= MAX_VARIABLES_HALF_DENSE else 0.6
    if nonzeros > dense_from * places and find_spec("scs._scs_dense"):
        return "cpu_dense"
    return "qdldl" if nonzeros < MAX_NONZEROS_QDLDL else "auto"


def _warm_start(form: ConeForm, start: Start | None) -> dict[str, FloatArray]:
    """The start as SCS wants it: a point, multipliers and a slack."""
    if start is None:
        return {}
    x = np.array(start.x, dtype=float)
    y = np.zeros(form.b.size) if start.y is None else np.array(start.y, dtype=float)
    finite = np.isfinite(x).all() and np.isfinite(y).all()
    if (y.size, x.size) != form.shape or not finite:
        rows, n = form.shape
        raise InvalidSettings(f"the start must hold {n} and {rows} finite numbers")
    return {"x": x, "y": y, "s": form.cones.project(form.b - form.A @ x)}


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C until the block ends.

    SCS forgets one that comes while it factors, and reports one that comes while it iterates.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


BACKEND = Scs()
