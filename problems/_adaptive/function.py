"""The function g of the coefficients that learning a data-adaptive kernel leaves, with its Hessian.

    g(a) = max over F psd of  a'(F o K)a / 2 - eta ||F - 11'||^2 - tau eta tr F

is convex (`klopt.problems._adaptive.weights` has its value and the best F). Its gradient is (F o
K)a. With 11' + Gamma = sum_k w_k q_k q_k' (as there), r_k = K D_a q_k and O_kl the divided
differences of w -> max(w - tau/2, 0) its Hessian is

    F o K + sum_kl O_kl {(q_k q_k') o (r_l r_l') + (q_k r_k') o (r_l q_l')} / (4 eta).

Without tau all O_kl are 1 and the sum is diag((K o K)u) + D_a (K o K) D_a, u = a o a.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel
from klopt.numerics.roots import cubic_root
from klopt.problems._adaptive.weights import (
    MAX_DENSE_ORDER,
    BestWeights,
    WeightedKernel,
    is_rounding,
)

__all__ = ["AdaptiveFunction", "without_rounding"]

CACHE_SIZE = 65_536
"""Numbers that stay in the cache of a core together with a few times as many others."""
POINTS_PER_EIGENVECTOR = 8
"""With fewer points than this for each eigenvector, their turning costs more than it saves."""
CUT_OFF_FACTOR = 10.0
"""Eigenvalues of Gamma below this multiple of tau/2 are expected to be cut off."""


def without_rounding(a: FloatArray) -> FloatArray:
    """Return a with zeros where it is zero up to the rounding of a projection.

    >>> without_rounding(np.array([1.0, 1e-17]))
    array([1., 0.])
    """
    return np.where(is_rounding(a), 0.0, a)


class AdaptiveFunction(WeightedKernel):
    """g for a kernel matrix K, eta > 0 and tau >= 0."""

    def near(self, a: FloatArray) -> LocalModel:
        """Return g near a, up to the rounding that a projection leaves at zero."""
        a = without_rounding(a)
        best = self.at(a)
        has_many = best.f is not None and POINTS_PER_EIGENVECTOR * best.f.size > a.size
        curvature = self.majorant if has_many else self.curvature
        # Another a is worth at least what the F that is best here gives it. Without tau a step
        # costs no more than that.
        below = cache(lambda: self.kernel(a, best)) if self.tau else None
        return LocalModel(best.value, best.product, lambda: curvature(a, best), below=below)

    def weights(self, a: FloatArray, best: BestWeights | None = None) -> FloatArray:
        """Return F."""
        best = self.at(a) if best is None else best
        if best.Q is None or best.f is None:
            F = np.multiply.outer(a, a / (4 * self.eta))
            F *= self.K
            F += 1.0
            return F
        half = best.Q * np.sqrt(best.f)
        return half @ half.T

    def kernel(self, a: FloatArray, best: BestWeights | None = None) -> FloatArray:
        """Return F o K."""
        F = self.weights(a, best)
        F *= self.K
        return F

    def curvature(self, a: FloatArray, best: BestWeights) -> FloatArray:
        """Return the Hessian of g at a; with tau, a generalised one on the support of a.

        Where one of w_k, w_l is above tau/2 and the other is not, that lies between 0 and tau/2:
        there O_kl is taken as if it were 0, so that all eigenvectors below come as one projection
        and none of them has to be known. Off the support the sum is left out but for a diagonal: it
        is positive semidefinite, and as soon as a point has a coefficient it counts.
        """
        if best.Q is None or best.f is None or best.R is None:
            return self.majorant(a, best)
        return self._cut_off_curvature(a, best.Q, best.f, best.R)

    def majorant(self, a: FloatArray, best: BestWeights) -> FloatArray:
        """Return the matrix with O_kl = 1 for all k, l: the Hessian without tau, else above it.

        F o K + {diag((K o K)u) + D_a (K o K) D_a} / (4 eta)
        """
        H = np.multiply.outer(a, a / (4 * self.eta))
        H *= self.squares
        H += self.kernel(a, best)
        H.flat[:: a.size + 1] += (self.squares @ (a * a)) / (4 * self.eta)
        return H

    def _cut_off_curvature(
        self, a: FloatArray, Q: FloatArray, f: FloatArray, R: FloatArray
    ) -> FloatArray:
        """F o K, a few rows at a time so that they stay in the cache, and what turns F."""
        n = a.size
        s = f / (f + self.tau / 2)
        H = np.empty((n, n))
        left = Q * f
        Qt = np.ascontiguousarray(Q.T)
        for rows in _slices(n, n):
            np.matmul(left[rows], Qt, out=H[rows])
            H[rows] *= self.K[rows]
        H.flat[:: n + 1] += np.einsum("ik,ik,k->i", R, R, s) / (4 * self.eta)

        support = np.flatnonzero(a)
        if support.size == n:
            H += self._turning(self.K, a, Q, R, s)
        else:
            K = self.K[support].take(support, 1)
            part = self._turning(K, a[support], Q[support], R[support], s)
            for i, row in zip(support, part, strict=True):
                H[i, support] += row
        return H

    def _turning(
        self, K: FloatArray, a: FloatArray, Q: FloatArray, R: FloatArray, s: FloatArray
    ) -> FloatArray:
        """The sum over k, l, but for a diagonal, where a is not zero: how F turns with a.

        With s_k = O_kl for l below, c_k = 1 - s_k and the matrices P_x = sum x_k q_k q_k', R_x =
        sum x_k r_k r_k', X_x = sum x_k q_k r_k' it is, all products but the first entrywise,

            P_1 R_c + P_s (K D_a^2 K - R_1) + X_c X_c' - X_s X_s'
                + X_s K D_a + D_a K X_s' + diag(R_s).

        Parameters
        ----------
        K, a, Q, R
            Those of the support of a.
        s
            f_k / w_k.
        """
        c = 1 - s
        weight = 1 / (4 * self.eta)
        scaled = K * (a * np.sqrt(weight))
        H: FloatArray = scaled @ scaled.T
        left = weight * np.hstack([Q * s, (R * s) * a[:, None]])
        right = np.ascontiguousarray(np.hstack([R * a[:, None], Q]).T)
        Qt = np.ascontiguousarray(Q.T)
        Rt = np.ascontiguousarray(R.T)
        for rows in _slices(a.size, a.size):
            q = Q[rows]
            r = R[rows]
            block = H[rows]
            block -= (weight * r) @ Rt
            block *= (q * s) @ Qt
            block += K[rows] * (left[rows] @ right)
            block -= (weight * (q * s) @ Rt) * ((r * s) @ Qt)
            block += (q @ Qt) * ((weight * r * c) @ Rt)
            block += (weight * (q * c) @ Rt) * ((r * c) @ Qt)
        return H

    def lipschitz(self, box: float) -> float:
        """Return a bound of how fast the gradient changes for |a_i| <= box.

        lambda_max(K) + box^2 / (4 eta) lambda_max(K o K) + box^2 / (2 eta) max_i sum_j K_ij^2, by
        row sums and norms.
        """
        rows = self.squares.sum(axis=1)
        if len(rows) <= MAX_DENSE_ORDER:
            size = float(np.linalg.eigvalsh(self.K)[-1])
        else:
            size = min(float(np.abs(self.K).sum(axis=1).max()), float(np.sqrt(rows.sum())))
        return size + box * box * 0.75 / self.eta * float(rows.max())

    def start_curvature(self, gradient: float, box: float) -> FloatArray:
        """Return the curvature of a quadratic whose minimiser is a good start.

        It is K and what F adds to its diagonal. Beyond Ka the gradient has a_i sum_j K_ij^2 u_j /
        (4 eta), that is a_i u r_i with u the mean of all a_j^2. Where the other points weigh
        nothing on average, as their signs differ, all |a_i| are the root c of

            c k + c^3 r = gradient            k, r the means of K_ii and r_i

        or the box if that is smaller; u is c^2 where the cubic term decides, about half of it where
        some points stay at zero. With tau, eigenvalues of Gamma of about c^2 r / k that are not
        well above tau/2 are cut off: K alone.
        """
        rows = np.einsum("ij,ij->i", self.K, self.K) / (4 * self.eta)
        k = float(self.K.trace()) / rows.size
        r = float(rows.mean())
        c = min(cubic_root(r, k, gradient), box)
        if c * c * r <= CUT_OFF_FACTOR * k * self.tau / 2:
            return self.K
        H = self.K.copy()
        H.flat[:: rows.size + 1] += min(1.0, 0.5 + c**3 * r / gradient) * c * c * rows
        return H


def _slices(n: int, columns: int) -> Iterator[slice]:
    """So many rows at a time that they stay in the cache of a core."""
    step = max(1, CACHE_SIZE // columns)
    return (slice(start, start + step) for start in range(0, n, step))
