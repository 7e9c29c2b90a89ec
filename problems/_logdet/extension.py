"""A kernel learned on a few points, carried over to all others through the factor of the given one.

With K0_JJ = R'R and psi(x) the least-squares solution of R'psi = k0(J, x), which on the points of J
is R itself,

    k(x, y) = k0(x, y) + psi(x)'(W - I) psi(y).

This is K0 + K0_:J Q K0_J: with RQR' = W - I ((6) of Pan et al. (2016), and
`klopt.kernels.out_of_sample`) without Q, whose entries cancel where K0 is nearly singular: psi is
as accurate as the root of the condition of K0 allows, not its square.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, require_memory, symmetric
from klopt.model.functions import IntArray

__all__ = ["FactoredKernel"]


@dataclass(frozen=True, eq=False)
class FactoredKernel:
    """k as a function of k0 between new points and the training points.

    Parameters
    ----------
    K0
        k0 on the training points, n x n.
    R
        The factor of K0 on the points in pairs.
    points
        J, these points.
    W
        What was learned.

    >>> half = FactoredKernel(np.eye(2), np.eye(2), np.array([0, 1]), W=np.eye(2) / 2)
    >>> half.cross([[0.5, 0.0]]), half.among([[0.5, 0.0]], [[1.0]])
    (array([[0.25, 0.  ]]), array([[0.875]]))
    """

    K0: FloatArray
    R: FloatArray
    points: IntArray
    W: FloatArray

    def training(self) -> FloatArray:
        """Return K on the training points."""
        n = len(self.K0)
        require_memory(24.0 * n**2, f"the kernel of {n} points")
        change = self._change(self._trained, self._trained)
        # Symmetric up to rounding, of which a W out of proportion makes much.
        return symmetric("K", self.K0 + (change + change.T) / 2)

    def cross(self, cross0: npt.ArrayLike) -> FloatArray:
        """Return k between new and training points (m x n) from k0 between them."""
        given = self._checked(cross0)
        return given + self._change(self._psi(given), self._trained)

    def among(self, cross0: npt.ArrayLike, new0: npt.ArrayLike) -> FloatArray:
        """Return k among new points (m x m) from k0 of them with training points and among them."""
        psi = self._psi(self._checked(cross0))
        m = psi.shape[1]
        new = symmetric("new0", matrix("new0", new0, (m, m)))
        return symmetric("K", new + self._change(psi, psi))

    def _change(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """psi'(W - I) psi."""
        return np.asarray(left.T @ ((self.W - np.eye(len(self.W))) @ right))

    def _psi(self, cross0: FloatArray) -> FloatArray:
        from scipy.linalg import solve_triangular

        Q, T = self._qr
        return np.asarray(solve_triangular(T, Q.T @ cross0[:, self.points].T))

    @cached_property
    def _qr(self) -> tuple[FloatArray, FloatArray]:
        Q, T = np.linalg.qr(self.R.T)
        return np.asarray(Q, dtype=float), np.asarray(T, dtype=float)

    @cached_property
    def _trained(self) -> FloatArray:
        """psi of the training points, exact on J."""
        psi = self._psi(self.K0)
        psi[:, self.points] = self.R
        return psi

    def _checked(self, cross0: npt.ArrayLike) -> FloatArray:
        return matrix("cross0", cross0, (None, len(self.K0)))
