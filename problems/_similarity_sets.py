"""The set that a learned kernel comes from: of a given trace, or of any up to a bound.

Without a trace the best kernel still has one that is known to be small enough: its losses are not above those of any
other kernel. So the set may be taken to be compact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.cones import Feature, smat, svec, svec_size
from klopt.projections import simplex_projection
from klopt.sets import SimpleSet, Spectrahedron

__all__ = ["Semidefinite", "kernel_set"]


def kernel_set(n: int, trace: float | None, most: float) -> SimpleSet:
    """Return the kernels of the given trace or, without one, those of trace `most` or less."""
    return Semidefinite(n, most) if trace is None else Spectrahedron(n, trace)


@dataclass(frozen=True)
class Semidefinite(SimpleSet):
    """The points svec(M) of positive semidefinite matrices M of trace `most` or less.

    >>> smat(Semidefinite(2, 9.0).project(svec(np.diag([3.0, -1.0]))))
    array([[3., 0.],
           [0., 0.]])
    """

    order: int
    most: float

    _features = frozenset({Feature.SPECTRAL})

    @property
    def size(self) -> int:
        return svec_size(self.order)

    @property
    def radius(self) -> float:
        return float(self.most * (1.0 + (self.order - 1) / np.sqrt(2.0)))

    def project(self, x: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(x))
        mu = np.maximum(lam, 0.0)
        mu = mu if mu.sum() <= self.most else simplex_projection(lam, self.most)
        half = V * np.sqrt(mu)
        return svec(half @ half.T)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(g))
        return svec(np.outer(self.most * V[:, 0], V[:, 0])) if lam[0] < 0 else np.zeros_like(g)

    def linear_minimum(self, g: FloatArray) -> float:
        return min(0.0, float(self.most * np.linalg.eigvalsh(smat(g))[0]))

    def centre(self) -> FloatArray:
        return svec(np.eye(self.order) * (self.most / (2 * self.order)))

    def violation(self, x: FloatArray) -> float:
        M = smat(x)
        return max(0.0, -float(np.linalg.eigvalsh(M)[0]), float(np.trace(M)) - self.most)
