"""Values known at training points carried to any point by kernel ridge regression.

    f(x) = m + k(x, X) A (F - m),    A = (K + r I)^-1,    m = 1'A F / 1'A 1,

with the Gaussian kernel of scikit-learn's "scale" and a constant m that is not penalised. The ridge
r is the one of a grid whose squared error of leaving one point out is smallest: with P = A - A 1 1'A
/ 1'A 1 the error at point i is (P F)_i / P_ii, and one eigendecomposition gives it for every r.
Values that noise has made rough are smoothed, values that are smooth already are kept. For many
points K is replaced by features (`klopt.kernels.nystroem`), K = Phi Phi'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.nystroem import Nystrom, nystrom
from klopt.learners.kernels import Radial, blocks

__all__ = ["RidgeExtension"]

RIDGES = 10.0 ** np.arange(-4.0, 3.5, 0.5)
MAX_EXACT_POINTS = 2000
"""Up to here the kernel matrix is decomposed; beyond, that many features would be no faster."""
FEATURES = 500


@dataclass(frozen=True, eq=False)
class RidgeExtension:
    """The function of x that values F at the rows of X are carried by.

    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> line = RidgeExtension(X, X)
    >>> line(np.array([[0.25], [0.5]])).ravel().round(2)
    array([0.25, 0.5 ])
    """

    X: Any
    F: FloatArray

    @cached_property
    def _kernel(self) -> Radial:
        return Radial("scale").fix(self.X)

    @cached_property
    def _low(self) -> Nystrom | None:
        if self.X.shape[0] <= MAX_EXACT_POINTS:
            return None
        return nystrom(self.X, self._kernel, FEATURES)

    @cached_property
    def _eigen(self) -> tuple[FloatArray, FloatArray]:
        """The eigenvalues of K, and the eigenvectors of those that are not 0 by construction."""
        if self._low is None:
            values, U = np.linalg.eigh(self._kernel(self.X))
        else:
            values, V = np.linalg.eigh(self._low.Phi.T @ self._low.Phi)
            U = self._low.Phi @ (V / np.sqrt(np.maximum(values, np.finfo(float).tiny)))
        return np.maximum(values, 0.0), U

    @cached_property
    def ridge(self) -> float:
        """The ridge whose squared error of leaving one point out is smallest."""
        errors = [float(np.square(self._errors(ridge)).sum()) for ridge in RIDGES]
        # Of equal errors the largest ridge, the smoothest function.
        best = len(errors) - 1 - int(np.argmin(errors[::-1]))
        return float(RIDGES[best])

    def _shrunk(self, ridge: float, v: FloatArray) -> FloatArray:
        """r A v, one column of v at a time."""
        values, U = self._eigen
        kept = values / (values + ridge)
        return np.asarray(v - U @ (kept[:, None] * (U.T @ v)))

    def _constant(self, ridge: float) -> FloatArray:
        """m, one number for each column of F."""
        ones = self._shrunk(ridge, np.ones((len(self.F), 1)))
        return np.asarray((ones.T @ self.F / ones.sum()).ravel())

    def _errors(self, ridge: float) -> FloatArray:
        """F less the values that are found at each point when it is left out."""
        values, U = self._eigen
        ones = self._shrunk(ridge, np.ones((len(self.F), 1)))[:, 0]
        diagonal = 1 - U**2 @ (values / (values + ridge)) - ones**2 / ones.sum()
        shrunk = self._shrunk(ridge, self.F - self._constant(ridge))
        return np.asarray(shrunk / diagonal[:, None])

    @property
    def left_out(self) -> FloatArray:
        """The value at each training point that the regression of all others gives."""
        return self.F - self._errors(self.ridge)

    @cached_property
    def _fit(self) -> tuple[FloatArray, FloatArray]:
        """The constant, and b with k(x, X) b, or phi(x)'b for features, the values less it."""
        values, U = self._eigen
        constant = self._constant(self.ridge)
        shares = U.T @ (self.F - constant) / (values + self.ridge)[:, None]
        b = U @ shares
        return constant, np.asarray(b if self._low is None else self._low.Phi.T @ b)

    def __call__(self, points: Any) -> FloatArray:
        """Return the values at the rows of `points`."""
        count = points.shape[0]
        constant, b = self._fit
        found = np.empty((count, self.F.shape[1]))
        for rows in blocks(count, 8 * self.X.shape[0]):
            if self._low is None:
                seen = self._kernel(points[rows], self.X)
            else:
                seen = self._low.features(points[rows])
            found[rows] = seen @ b + constant
        return cast(FloatArray, found)
