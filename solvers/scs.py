"""Cone programs by SCS, an operator splitting method.

SCS has klopt's form, signs, triangles and exponential cones; of P it reads the upper triangle. It
uses one thread, and its time limit leaves out the factorisation. "Solved, inaccurate" is a limit
reached, never an optimum.
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
from klopt.model.cones import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.options import (
    FILE,
    FLAG,
    NUMBER,
    POSITIVE,
    SWITCH,
    Kind,
    between,
    check_options,
    iteration_limit,
    whole,
    within,
)

__all__ = ["BACKEND", "Scs"]

MAX_ITER = 100_000
FEW = 800  # variables; with more, half dense matrices are as fast by its "auto": MKL, whose setup takes long
SMALL = 300_000  # nonzeros, likewise
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
    "linear_solver": Kind(  # by name or as a member of scs.LinearSolver
        f"one of {', '.join(LINEAR_SOLVERS)}",
        lambda value: getattr(value, "value", value) in LINEAR_SOLVERS,
    ),
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
    -6: Stop.UNBOUNDED,
    -2: Stop.INFEASIBLE,
    -7: Stop.INFEASIBLE,
    -3: Stop.STALLED,
    -4: Stop.NUMERICAL,
}


class Scs(Backend):
    """The one that takes everything: cheap iterations, many of them, modest accuracy."""

    name, library, rank = "scs", "scs", 30
    references = ("odonoghue2016", "odonoghue2021")
    offers = frozenset({Feature.CONE, Feature.QUADRATIC, Feature.SOC, Feature.PSD, Feature.EXP})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "start"})
    proves = frozenset({"dual", "farkas", "ray"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what SCS claims about a cone program."""
        import scs

        assert isinstance(form, ConeForm)
        check_options(self.name, settings.raw, OPTIONS, RESERVED)
        # Its relative errors are relative to the iterate, klopt's to the data, which may be far
        # smaller.
        options: dict[str, Any] = {
            "eps_abs": settings.tol / 10,
            "eps_rel": settings.tol / 100,
            "eps_infeas": settings.tol / 10,
        }
        options |= {"max_iters": iteration_limit(settings.max_iter or MAX_ITER)}
        options |= {"time_limit_secs": settings.time_limit or 0.0}
        options |= {"verbose": settings.log, "linear_solver": _linear_solver(form), **settings.raw}
        K = form.cones
        cone = {"z": K.zero, "l": K.nonneg, "q": list(K.soc), "s": list(K.psd), "ep": K.exp}
        data = {"A": form.A, "b": form.b, "c": form.c}
        if form.P is not None:
            data["P"] = sparse.triu(form.P, format="csc")
        began = time.perf_counter()
        with _interrupts_held():
            solver = scs.SCS(data, cone, **options)
        found = solver.solve(warm_start=start is not None, **_warm(form, start))
        seconds = time.perf_counter() - began
        code, native = found["info"]["status_val"], found["info"]["status"]
        if code == scs.SIGINT:
            raise KeyboardInterrupt  # SCS takes the signal for itself
        limit = Stop.TIME_LIMIT if "time_limit" in native else Stop.ITERATION_LIMIT
        stop = STOPS.get(code, limit if code == scs.SOLVED_INACCURATE else Stop.NUMERICAL)
        return claim(stop, found["x"], found["y"], found["info"]["iter"], seconds, native)


def _linear_solver(form: ConeForm) -> str:
    """Which of its factorisations is the fastest: dense where A and P are, QDLDL where little is to be factored."""
    rows, n = form.shape
    entries, room = form.A.nnz, rows * n
    if form.P is not None:
        entries, room = entries + form.P.nnz, room + n * n
    if entries > (0.3 if n <= FEW else 0.6) * room and find_spec("scs._scs_dense"):
        return "cpu_dense"
    return "qdldl" if entries < SMALL else "auto"


def _warm(form: ConeForm, start: Start | None) -> dict[str, FloatArray]:
    """The start as SCS wants it: a point, multipliers and a slack."""
    if start is None:
        return {}
    x = np.array(start.x, dtype=float)
    y = np.zeros(form.b.size) if start.y is None else np.array(start.y, dtype=float)
    if (y.size, x.size) != form.shape or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InvalidSettings(
            f"the start must hold {form.shape[1]} and {form.shape[0]} finite numbers"
        )
    return {"x": x, "y": y, "s": form.cones.project(form.b - form.A @ x)}


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C until the block ends: SCS forgets one while it factors and reports one while it iterates."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


BACKEND = Scs()
