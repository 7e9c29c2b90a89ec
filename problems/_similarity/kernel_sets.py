"""The sets that learned kernels come from, and kernels as one vector.

Without a trace the best kernel still has one that is known to be small enough: its losses are not
above those of any other kernel. So the set may be taken to be compact. Several kernels come from a
product, one set for each kernel: svec of it from its spectrahedron or, where eigenvectors are
given, its eigenvalues from a simplex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import smat, svec, svec_size
from klopt.model.features import Feature
from klopt.model.sets import Product, SimpleSet, Simplex, Spectrahedron
from klopt.model.sets.projections import simplex_projection

__all__ = [
    "BoundedTraceCoordinates",
    "BoundedTraceKernels",
    "EigenvalueCoordinates",
    "KernelCoordinates",
    "SvecCoordinates",
    "kernel_set",
]


def kernel_set(n: int, trace: float | None, max_trace: float) -> SimpleSet:
    """Return the kernels of the given trace or, without one, those of trace `max_trace` or less."""
    if trace is None:
        return BoundedTraceKernels(n, max_trace)
    return Spectrahedron(n, trace)


@dataclass(frozen=True)
class BoundedTraceKernels(SimpleSet):
    """The points svec(M) of positive semidefinite matrices M of trace `max_trace` or less.

    >>> smat(BoundedTraceKernels(2, 9.0).project(svec(np.diag([3.0, -1.0]))))
    array([[3., 0.],
           [0., 0.]])
    """

    order: int
    max_trace: float

    features = frozenset({Feature.SPECTRAL})

    @property
    def size(self) -> int:
        return svec_size(self.order)

    @property
    def radius(self) -> float:
        return float(self.max_trace * (1.0 + (self.order - 1) / np.sqrt(2.0)))

    def project(self, x: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(x))
        mu = np.maximum(lam, 0.0)
        # Only where clipping leaves too large a trace does the bound matter.
        if not mu.sum() <= self.max_trace:
            mu = simplex_projection(lam, self.max_trace)
        half = V * np.sqrt(mu)
        return svec(half @ half.T)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        lam, V = np.linalg.eigh(smat(g))
        if not lam[0] < 0:
            return np.zeros_like(g)
        return svec(np.outer(self.max_trace * V[:, 0], V[:, 0]))

    def linear_minimum(self, g: FloatArray) -> float:
        return min(0.0, float(self.max_trace * np.linalg.eigvalsh(smat(g))[0]))

    def centre(self) -> FloatArray:
        return svec(np.eye(self.order) * (self.max_trace / (2 * self.order)))

    def violation(self, x: FloatArray) -> float:
        M = smat(x)
        return max(0.0, -float(np.linalg.eigvalsh(M)[0]), float(np.trace(M)) - self.max_trace)


class KernelCoordinates(Protocol):
    """Kernels as one vector."""

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        """Return the matrices that a vector stands for."""
        ...

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        """Return matrices, kernels or gradients in them, as a vector.

        What no kernel can have is dropped.
        """
        ...

    def domain(self, trace: float) -> SimpleSet:
        """Return the vectors of kernels of a trace."""
        ...


@dataclass(frozen=True)
class SvecCoordinates:
    """Kernels of order n by their svec."""

    n: int
    count: int

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        return [smat(part) for part in k.reshape(self.count, -1)]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        return np.concatenate([svec(M) for M in matrices])

    def domain(self, trace: float) -> SimpleSet:
        one = Spectrahedron(self.n, trace)
        return one if self.count == 1 else Product((one,) * self.count)


@dataclass(frozen=True)
class BoundedTraceCoordinates:
    """One kernel of order n whose trace is at most that of a matrix of order n + 1.

    It is the matrix without its last row and column, so that the set is a spectrahedron.
    """

    n: int

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        return [smat(k)[: self.n, : self.n]]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        return svec(np.pad(matrices[0], (0, 1)))

    def domain(self, trace: float) -> SimpleSet:
        return Spectrahedron(self.n + 1, trace)


@dataclass(frozen=True, eq=False)
class EigenvalueCoordinates:
    """Kernels by their eigenvalues in given bases; of other matrices the diagonals in these."""

    bases: Sequence[FloatArray]

    def kernels(self, k: FloatArray) -> list[FloatArray]:
        spectra = k.reshape(len(self.bases), -1)
        return [V * mu @ V.T for mu, V in zip(spectra, self.bases, strict=True)]

    def vector(self, matrices: Sequence[FloatArray] | FloatArray) -> FloatArray:
        pairs = zip(self.bases, matrices, strict=True)
        return np.concatenate([np.einsum("ij,ij->j", V, M @ V) for V, M in pairs])

    def domain(self, trace: float) -> SimpleSet:
        return Product(tuple(Simplex(len(V), trace) for V in self.bases))
