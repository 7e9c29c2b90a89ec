"""Semidefinite programs by SDPA, a primal-dual interior-point method.

SDPA works with the Schur complement of the semidefinite blocks, a matrix as large as there are
variables, and never forms the scaling of a cone: blocks of order 300 are no trouble for it. Its
Python package states min c'x with Ax - b in J, x in K, where J holds whole matrices; the triangles
of klopt are unfolded on the way in and their multipliers folded on the way out. It has no limit of
time, and its own code may end the process, so klopt runs it in a child.

`sdpa:gmp` is SDPA-GMP, the same method in numbers of many digits, for ill-posed programs: the package
sdpa-multiprecision, which takes the place of sdpa-python where it is installed.
"""

from __future__ import annotations

import importlib.metadata
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Cones
from klopt.model.cones.svec import svec_entries, svec_size, svec_weights
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.solvers._native.embedding import claim
from klopt.solvers._native.memory import matrix_bytes
from klopt.solvers._native.options import INT32_MAX, POSITIVE, check_options

__all__ = ["BACKEND", "Sdpa"]

OPTIONS = dict.fromkeys(
    ("lambdaStar", "omegaStar", "upperBound", "betaStar", "betaBar", "gammaStar"), POSITIVE
)
RESERVED = {
    "epsilonStar": "tol",
    "epsilonDash": "tol",
    "maxIteration": "max_iter",
    "numThreads": "threads",
    "print": "log",
}
MAX_ITER = 200
"""The limit of iterations where the user sets none."""
MIN_TOLERANCE = 1e-9
"""The smallest tolerance that SDPA reaches in double precision."""
MIN_GMP_TOLERANCE = 1e-16
"""The smallest tolerance that is worth it in many digits, of which klopt takes the first 16."""
GMP_PACKAGE = "sdpa-multiprecision"
STOPS = {
    "pdOPT": Stop.OPTIMAL,
    "pdFEAS": Stop.STALLED,
    "pFEAS": Stop.STALLED,
    "dFEAS": Stop.STALLED,
    "noINFO": Stop.STALLED,
    # SDPA's primal is over matrices, which is the dual of what its package and klopt state.
    "pINF_dFEAS": Stop.UNBOUNDED,
    "pFEAS_dINF": Stop.INFEASIBLE,
    "pUNBD": Stop.INFEASIBLE,
    "dUNBD": Stop.UNBOUNDED,
    "pdINF": Stop.INFEASIBLE_OR_UNBOUNDED,
}


@dataclass(frozen=True, repr=False)
class Sdpa(Backend):
    """Semidefinite programs with dense blocks, where Clarabel is slow."""

    many_digits: bool = False

    name = "sdpa"
    library = "sdpap"
    rank = 21
    references = ("yamashita2012",)
    offers = frozenset({Feature.CONE, Feature.PSD})
    honours = frozenset({"tol", "max_iter", "threads", "seed", "log"})
    proves = frozenset({"dual", "farkas", "ray"})
    isolate = True
    install_hint = 'pip install "klopt[sdpa]" (GPLv2)'
    exempt = MappingProxyType(
        {
            "contract_silent": "SDPA prints remarks of its own, whatever it is told; "
            "in a child process they do not reach the user",
            "truth_lp_contradictory_equalities": "equations are split into two inequalities, "
            "which leaves no interior; it is meant for semidefinite blocks",
            "proof_lp_known_pair": "for the same reason it stops short of the optimum",
        }
    )

    def __post_init__(self) -> None:
        if self.many_digits:
            object.__setattr__(self, "name", "sdpa:gmp")

    @property
    def missing(self) -> str:
        """Why it cannot run here: both packages have one name for the module."""
        if self.many_digits and not _has_many_digits():
            return f"{GMP_PACKAGE} is not installed; pip install {GMP_PACKAGE} (GPLv2)"
        return super().missing

    def variant(self, name: str) -> Backend:
        """Return SDPA-GMP, which computes with many digits."""
        if name != "gmp":
            raise InvalidSettings(f"sdpa has no variant {name!r}; it has: gmp")
        return Sdpa(many_digits=True)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        """Return what SDPA claims about a semidefinite program."""
        import sdpap

        assert isinstance(form, ConeForm)
        check_options(self.name, settings.raw, OPTIONS, RESERVED)
        cones = form.cones
        unfold = _unfolding(cones)
        columns = sdpap.SymCone(f=form.c.size)
        rows = sdpap.SymCone(f=cones.zero, l=cones.nonneg, s=cones.psd)

        began = time.perf_counter()
        found = sdpap.solve(
            sparse.csc_matrix(-(unfold @ form.A)),
            sparse.csc_matrix(-(unfold @ form.b)[:, None]),
            sparse.csc_matrix(form.c[:, None]),
            columns,
            rows,
            _options(settings, MIN_GMP_TOLERANCE if self.many_digits else MIN_TOLERANCE),
        )
        seconds = time.perf_counter() - began

        x, y, _, _, info = found
        phase = str(info["phasevalue"])
        stop = STOPS.get(phase, Stop.NUMERICAL)
        folded = unfold.T @ _dense(y)
        return claim(stop, _dense(x), folded, int(info["iteration"]), seconds, phase)

    def memory(self, form: Form) -> float:
        """Return the bytes that SDPA needs at least: its Schur complement, and matrices."""
        if not isinstance(form, ConeForm):
            return 0.0
        matrices = sum(float(order) ** 2 for order in form.cones.psd)
        return matrix_bytes(form, 100, 0) + 8.0 * form.c.size**2 + 100.0 * matrices


def _has_many_digits() -> bool:
    try:
        importlib.metadata.version(GMP_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _options(settings: Settings, min_tolerance: float) -> dict[str, Any]:
    tol = max(min_tolerance, settings.tol / 100)
    raw = {name: float(value) for name, value in settings.raw.items()}
    return {
        "epsilonStar": tol,
        "epsilonDash": tol,
        "maxIteration": min(settings.max_iter or MAX_ITER, INT32_MAX),
        "numThreads": settings.threads,
        "print": "display" if settings.log else "no",
        **raw,
    }


def _unfolding(cones: Cones) -> Any:
    """The matrix that turns klopt's rows into SDPA's: every triangle into its whole matrix."""
    linear = cones.zero + cones.nonneg
    parts = [sparse.eye_array(linear, format="csr")]
    for order in cones.psd:
        rows, columns = svec_entries(order)
        entries = 1.0 / svec_weights(order)
        place = np.arange(svec_size(order))
        off = rows != columns
        i = np.concatenate([columns * order + rows, (rows * order + columns)[off]])
        j = np.concatenate([place, place[off]])
        values = np.concatenate([entries, entries[off]])
        parts.append(sparse.csr_array((values, (i, j)), shape=(order * order, place.size)))
    return sparse.block_diag(parts, format="csr")


def _dense(vector: Any) -> FloatArray:
    """What SDPA returns, a sparse column or an array, as a vector."""
    array: Any = vector.toarray() if hasattr(vector, "toarray") else vector
    return np.asarray(array, dtype=float).ravel()


BACKEND = Sdpa()
