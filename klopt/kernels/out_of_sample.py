"""Learned kernels on new points: the change of the training block extended to all pairs of points.

A kernel learned in LogDet divergence from K0 is a linear map of the feature space of k0, phi(x) ->
U^1/2 phi(x) with U = I + F Q F', F the features of the training points X (Pan et al. (2016), (6)
and (31)-(32), where (31) has I_n for the identity of the feature space). It is a kernel function,
positive semidefinite on any points because U is:

    k(x, y) = k0(x, y) + k0(x, X) Q k0(X, y).

On the training points this is K = K0 + K0 Q K0. Pan et al. print Q = K0^-1 (K - K0) K0^-1; the
solution has Q without that inverse, and often on few points J only (the others have rows of zeros).
Where k0 itself is given by r features, k0(x, y) = phi(x)'phi(y), the map is an r x p matrix C:

    k(x, y) = psi(x)'psi(y),   psi(x) = C'phi(x).

Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, require_memory, symmetric
from klopt.errors import InvalidProblem

__all__ = ["ExtendedFeatures", "ExtendedKernel"]


@dataclass(frozen=True, eq=False)
class ExtendedKernel:
    """k(x, y) = k0(x, y) + k0(x, X_J) Q k0(X_J, y), J the training points that Q is about.

    >>> double = ExtendedKernel(np.eye(2), Q=np.eye(2))
    >>> double.cross([[0.5, 0.0]])
    array([[1., 0.]])
    >>> double.among([[0.5, 0.0]], [[1.0]])
    array([[1.25]])
    """

    K0: FloatArray
    """k0 on the training points, n x n."""
    Q: FloatArray
    """The change, symmetric; of the order of J."""
    points: npt.NDArray[np.intp] | None = None
    """J, or None where Q is about all training points."""

    def __post_init__(self) -> None:
        about = len(self.K0) if self.points is None else len(self.points)
        if self.Q.shape != (about, about):
            raise InvalidProblem(
                f"Q is {self.Q.shape[0]} x {self.Q.shape[1]}; expected {about} x {about}"
            )

    def cross(self, cross0: npt.ArrayLike) -> FloatArray:
        """Return k between new and training points (m x n) from k0 between them."""
        given = self._checked(cross0)
        require_memory(
            24.0 * given.size,
            f"the kernel of {given.shape[0]} new and {given.shape[1]} training points",
        )
        if self.points is None:
            return given + (given @ self.Q) @ self.K0
        return given + (given[:, self.points] @ self.Q) @ self.K0[self.points]

    def among(self, cross0: npt.ArrayLike, new0: npt.ArrayLike) -> FloatArray:
        """Return k among m new points from k0 to the training points and among the new ones."""
        given = self._checked(cross0)
        new = symmetric("new0", matrix("new0", new0, (len(given), len(given))))
        seen = given if self.points is None else given[:, self.points]
        change = (seen @ self.Q) @ seen.T
        # Symmetric to the last bit, as a kernel matrix is.
        return new + (change + change.T) / 2

    def _checked(self, cross0: npt.ArrayLike) -> FloatArray:
        return matrix("cross0", cross0, (None, len(self.K0)))


@dataclass(frozen=True, eq=False)
class ExtendedFeatures:
    """k(x, y) = psi(x)'psi(y) with psi(x) = C'phi(x), independent of the number of points.

    >>> learned = ExtendedFeatures(np.array([[2.0], [0.0]]))
    >>> learned.among([[1.0, 5.0], [2.0, 7.0]])
    array([[ 4.,  8.],
           [ 8., 16.]])
    """

    C: FloatArray

    def features(self, phi: npt.ArrayLike) -> FloatArray:
        """Return psi of points (rows) given by their phi."""
        return self._checked("phi", phi) @ self.C

    def cross(self, phi: npt.ArrayLike, others: npt.ArrayLike) -> FloatArray:
        """Return k between two sets of points; `others`, often the training set, is not copied."""
        left = self.features(phi)
        right = np.asarray(others, dtype=float)
        if right.ndim != 2 or right.shape[1] != len(self.C):
            raise InvalidProblem(
                f"others has shape {right.shape}; expected rows of {len(self.C)} features"
            )
        require_memory(
            8.0 * len(left) * len(right), f"the kernel of {len(left)} by {len(right)} points"
        )
        return np.asarray((left @ self.C.T) @ right.T)

    def among(self, phi: npt.ArrayLike) -> FloatArray:
        """Return k among points, exactly symmetric."""
        psi = self.features(phi)
        return psi @ psi.T

    def _checked(self, name: str, phi: npt.ArrayLike) -> FloatArray:
        return matrix(name, phi, (None, len(self.C)))
