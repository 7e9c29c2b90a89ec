"""The kernel of a norm that a graph deforms: the data part of LapRLS and LapSVM.

Functions are measured by gamma_A ||f||^2 + gamma_I f'Mf, with the kernel matrix K of all points,
labelled or not, and a power M of their Laplacian. The same functions with the norm gamma_A ||f||~^2
alone have the kernel

    K~ = K (I + r M K)^-1,    r = gamma_I / gamma_A.

With K = QQ' and Q'MQ = V diag(s) V' it is K~ = P diag(1 / (1 + r s)) P', P = QV, so that one
decomposition does for every r. A model K~ c on the training points is the function

    f(x) = k(x, X) a,    a = (I + r M K)^-1 c = c - r M K~ c

of any point x (the representer theorem of Belkin et al.).

Belkin, Niyogi, Sindhwani, Manifold regularization, 2006. Sindhwani, Niyogi, Belkin, Beyond the
point cloud, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix

__all__ = ["DeformedKernel"]

MIN_EIGENVALUE_SHARE = 1e-12
"""Eigenvalues of K below this share of the largest are rounding and are left out."""

Rows = npt.NDArray[np.intp] | slice


@dataclass(frozen=True, eq=False)
class DeformedKernel:
    """A kernel and a Laplacian, decomposed once for every ratio r of the two penalties.

    >>> kernel = DeformedKernel.of(np.eye(2), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> kernel.block(1.0, slice(None), slice(None)).round(6)
    array([[0.666667, 0.333333],
           [0.333333, 0.666667]])
    """

    M: SparseMatrix | FloatArray
    P: FloatArray
    s: FloatArray

    @classmethod
    def of(cls, K: FloatArray, M: SparseMatrix | FloatArray) -> DeformedKernel:
        """Return the decomposition of a kernel matrix and a power of a Laplacian."""
        values, U = np.linalg.eigh(K)
        kept = values > MIN_EIGENVALUE_SHARE * values[-1]
        Q = U[:, kept] * np.sqrt(values[kept])
        s, V = np.linalg.eigh(Q.T @ (M @ Q))
        return cls(M, Q @ V, np.maximum(s, 0.0))

    def block(self, r: float, rows: Rows, columns: Rows) -> FloatArray:
        """Return K~ of some of the points with others."""
        return np.asarray((self.P[rows] / (1 + r * self.s)) @ self.P[columns].T)

    def coefficients(self, r: float, c: FloatArray) -> FloatArray:
        """Return a with k(x, X) a the function whose values on the training points are K~ c."""
        values = self.P @ ((self.P.T @ c) / (1 + r * self.s)[:, None])
        return np.asarray(c - r * (self.M @ values))
