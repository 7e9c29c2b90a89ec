"""The sets that learned kernels come from, of a given trace or of any up to a bound, and kernels as one vector.

Without a trace the best kernel still has one that is known to be small enough: its losses are not
above those of any other kernel. So the set may be taken to be compact. Several kernels come from a
product, one set a kernel: svec of each from its spectrahedron or, where eigenvectors are given, the
eigenvalues from a simplex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature, smat, svec, svec_size
from klopt.model.sets import Product, SimpleSet, Simplex, Spectrahedron
from klopt.model.sets.projections import simplex_projection

__all__ = ["Chart", "Free", "Kept", "Semidefinite", "Within", "kernel_set"]


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

    features = frozenset({Feature.SPECTRAL})

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


class Chart(Protocol):
    """Kernels as one vector."""

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        """Return the matrices that a vector stands for."""
        ...

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        """Return matrices, kernels or gradients in them, as a vector; only what kernels can have of them counts."""
        ...

    def home(self, trace: float) -> SimpleSet:
        """Return the vectors of kernels of a trace."""
        ...


@dataclass(frozen=True)
class Free:
    """Kernels of order n by their svec."""

    n: int
    count: int

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        return [smat(part) for part in k.reshape(self.count, -1)]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        return np.concatenate([svec(M) for M in matrices])

    def home(self, trace: float) -> SimpleSet:
        one = Spectrahedron(self.n, trace)
        return one if self.count == 1 else Product((one,) * self.count)


@dataclass(frozen=True)
class Within:
    """One kernel of order n and of any trace up to a bound: the first rows and columns of one of order n + 1."""

    n: int

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        return [smat(k)[: self.n, : self.n]]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        return svec(np.pad(matrices[0], (0, 1)))

    def home(self, trace: float) -> SimpleSet:
        return Spectrahedron(self.n + 1, trace)


@dataclass(frozen=True, eq=False)
class Kept:
    """Kernels by their eigenvalues in given bases; of other matrices only the diagonals in these count."""

    bases: Sequence[FloatArray]

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        return [
            V * mu @ V.T for mu, V in zip(k.reshape(len(self.bases), -1), self.bases, strict=True)
        ]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        pairs = zip(self.bases, matrices, strict=True)
        return np.concatenate([np.einsum("ij,ij->j", V, M @ V) for V, M in pairs])

    def home(self, trace: float) -> SimpleSet:
        return Product(tuple(Simplex(len(V), trace) for V in self.bases))
