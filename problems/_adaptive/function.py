"""The function that learning a data-adaptive kernel leaves of the coefficients, with its gradient and curvature.

    g(a) = max over F psd of  a'(F o K)a / 2 - penalty(F),      penalty(F) = eta ||F - 11'||^2 + tau eta tr F
         = eta ||M_+||^2 - eta n^2,      M = 11' + Gamma - (tau/2) I,     Gamma = D_a K D_a / (4 eta)

(o entrywise, D_a = diag(a), M_+ the positive part) is convex; the best F is M_+ itself, the
gradient (F o K)a. Without tau nothing has to be cut off, since 11' + Gamma is positive
semidefinite, and g is a quartic without eigenvalues:

    g(a) = a'Ka/2 + u'(K o K)u / (16 eta),    u = a o a.

With tau the eigenvectors live on the support S of a and one direction more, the constant vector on
its complement; and only those with eigenvalues w_k > tau/2 count. There are few: their sum is at
most n + tr Gamma. g is written as a'(F o K)a/2 - penalty(F), each part from F: eta ||M_+||^2 - eta
n^2 loses the digits of eta n^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.smooth_functions import LocalModel
from klopt.numerics.roots import cubic_root

__all__ = ["Adapted", "Adapting", "Reduced"]

Indices = npt.NDArray[np.intp]

SMALL = 250
"""Up to this order all eigenpairs cost no more than the few that count."""
CACHED = 65_536
"""Numbers that stay in the cache of a core together with a few times as many others."""
FEW, MORE = 12, 48
"""How many eigenpairs are asked for, first and then."""
MANY = 8
"""More eigenvalues than one for so many points are many."""
WELL_ABOVE = 10.0
DUST = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Adapted:
    """The best F for one a and what it does to K: F = Q diag(f) Q' with tau, 11' + Gamma without (then Q is None)."""

    product: FloatArray
    """(F o K)a."""
    curve: float
    """a'(F o K)a."""
    penalty: float
    diagonal: FloatArray
    """The diagonal of F."""
    Q: FloatArray | None = None
    f: FloatArray | None = None
    reduced: Reduced | None = None
    V: FloatArray | None = None
    """Q in the coordinates of `reduced`."""
    R: FloatArray | None = None
    """K D_a Q."""

    @property
    def value(self) -> float:
        """g(a)."""
        return self.curve / 2 - self.penalty


@dataclass(frozen=True, eq=False)
class Reduced:
    """11' + Gamma where it is not zero: on the support of a and, last, the direction constant on the other points."""

    support: Indices
    n: int
    gamma: FloatArray
    j: FloatArray
    """The vector 1 in these coordinates."""

    @classmethod
    def of(cls, K: FloatArray, a: FloatArray, eta: float) -> Reduced:
        """Return the reduced matrices of coefficients a."""
        n, support = a.size, np.flatnonzero(a)
        s = support.size
        part = K if s == n else K.take(support, 0).take(support, 1)
        b = a[support] / (2 * np.sqrt(eta))
        gamma = np.zeros((s + 1, s + 1)) if s < n else np.empty((s, s))
        np.multiply(part, b, out=gamma[:s, :s])
        gamma[:s, :s] *= b[:, None]
        j = np.ones(len(gamma))
        j[s:] = np.sqrt(n - s)
        return cls(support, n, gamma, j)

    def lifted(self, V: FloatArray) -> FloatArray:
        """Return vectors (columns) in these coordinates as vectors over all points."""
        s = self.support.size
        if s == self.n:
            return V
        Q = np.empty((self.n, V.shape[1]))
        Q[:] = V[s] / np.sqrt(self.n - s)
        Q[self.support] = V[:s]
        return Q

    def above(self, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Return the eigenpairs of 11' + Gamma whose values are above the threshold."""
        M = self.gamma + np.multiply.outer(self.j, self.j)
        # All eigenvalues but one are at most those of Gamma.
        most = 1 + float(self.gamma.trace()) / threshold
        w, V = self._few(M, threshold) if len(M) > max(SMALL, 6 * most) else np.linalg.eigh(M)
        first = int(w.searchsorted(threshold, "right"))
        return w[first:], V[:, first:]

    def _few(self, M: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
        """All eigenpairs above the threshold, and some below."""
        from scipy.linalg import eigh
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        start = self.j + np.random.default_rng(0).normal(size=len(M))
        for count in (FEW, MORE):
            try:
                w, V = eigsh(M, k=count, which="LA", v0=start)
            except ArpackNoConvergence:
                break
            if w.min() <= threshold:
                return w, V
        w, V = eigh(
            M,
            driver="evr",
            subset_by_value=(threshold, np.inf),
            overwrite_a=True,
            check_finite=False,
        )
        return w, V


@dataclass(frozen=True, eq=False)
class Adapting:
    """g for a kernel matrix K, eta > 0 and tau >= 0. The last answer is kept: a proof asks where a method stopped."""

    K: FloatArray
    eta: float
    tau: float
    _last: list[tuple[FloatArray, Adapted]] = field(default_factory=list, init=False, repr=False)

    def __getstate__(self) -> dict[str, object]:
        return {"K": self.K, "eta": self.eta, "tau": self.tau, "_last": []}

    @cached_property
    def squares(self) -> FloatArray:
        """K o K."""
        return self.K * self.K

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return self.K.diagonal()

    def times_squares(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u."""
        return self.squares @ u

    def at(self, a: FloatArray) -> Adapted:
        """Return the best F for a."""
        if not (self._last and np.array_equal(self._last[0][0], a)):
            self._last[:] = [(a.copy(), self._cut(a) if self.tau else self._whole(a))]
        return self._last[0][1]

    def _whole(self, a: FloatArray) -> Adapted:
        u = a * a
        w = self.squares @ u
        product = self.K @ a + a * w / (4 * self.eta)
        penalty = float(u @ w) / (16 * self.eta)
        diagonal = 1 + u * self.K.diagonal() / (4 * self.eta)
        return Adapted(product, float(a @ product), penalty, diagonal)

    def _cut(self, a: FloatArray) -> Adapted:
        reduced = Reduced.of(self.K, a, self.eta)
        w, V = reduced.above(self.tau / 2)
        f, S = w - self.tau / 2, reduced.support
        Q = reduced.lifted(V)
        columns = self.K if S.size == a.size else self.K.take(S, 0).T
        R: FloatArray = columns @ (V[: S.size] * a[S, None])
        product = (Q * R) @ f
        off = (V * f) @ V.T
        off -= np.multiply.outer(reduced.j, reduced.j)
        penalty = self.eta * (float(np.vdot(off, off)) + self.tau * float(f.sum()))
        return Adapted(product, float(a @ product), penalty, (Q * Q) @ f, Q, f, reduced, V, R)

    def applied(self, a: FloatArray, here: Adapted, b: FloatArray) -> FloatArray:
        """Return (F o K)b, F the best one for a."""
        if here.Q is None or here.f is None:
            return np.asarray(self.K @ b + a * (self.squares @ (a * b)) / (4 * self.eta))
        return np.asarray((here.Q * (self.K @ (here.Q * b[:, None]))) @ here.f)

    def kernel(self, a: FloatArray, here: Adapted | None = None) -> FloatArray:
        """Return F o K."""
        F = self.weights(a, here)
        F *= self.K
        return F

    def weights(self, a: FloatArray, here: Adapted | None = None) -> FloatArray:
        """Return F."""
        here = self.at(a) if here is None else here
        if here.Q is None or here.f is None:
            F = np.multiply.outer(a, a / (4 * self.eta))
            F *= self.K
            F += 1.0
            return F
        half = here.Q * np.sqrt(here.f)
        return half @ half.T

    def curvature(self, a: FloatArray, here: Adapted) -> FloatArray:
        """Return the Hessian of g at a; with tau, a generalised one on the support of a.

        With M = sum_k w_k q_k q_k', r_k = K D_a q_k and O_kl the divided differences of w -> max(w - tau/2, 0) it is

            F o K + sum_kl O_kl {(q_k q_k') o (r_l r_l') + (q_k r_k') o (r_l q_l')} / (4 eta).

        Where one of the two is above tau/2 the other lies between 0 and tau/2 if both are not:
        there O_kl is taken as if it were 0, so that all eigenvectors below come as one projection
        and none of them has to be known. Off the support the sum is left out but for a diagonal: it
        is positive semidefinite, and as soon as a point has a coefficient it counts.
        """
        if here.Q is not None and here.f is not None and here.R is not None:
            return self._cut_curvature(a, here.Q, here.f, here.R)
        return self.majorant(a, here)

    def majorant(self, a: FloatArray, here: Adapted) -> FloatArray:
        """Return the matrix with O_kl = 1 for all k, l: the Hessian where nothing is cut off, else above it.

        F o K + {diag((K o K)u) + D_a (K o K) D_a} / (4 eta)
        """
        H = np.multiply.outer(a, a / (4 * self.eta))
        H *= self.squares
        H += self.kernel(a, here)
        H.flat[:: a.size + 1] += (self.squares @ (a * a)) / (4 * self.eta)
        return H

    def _cut_curvature(
        self, a: FloatArray, Q: FloatArray, f: FloatArray, R: FloatArray
    ) -> FloatArray:
        """F o K, a few rows at a time so that they stay in the cache, and what moves F."""
        n, support = a.size, np.flatnonzero(a)
        s = f / (f + self.tau / 2)
        H, left, Qt = np.empty((n, n)), Q * f, np.ascontiguousarray(Q.T)
        for rows in _slices(n, n):
            np.matmul(left[rows], Qt, out=H[rows])
            H[rows] *= self.K[rows]
        H.flat[:: n + 1] += np.einsum("ik,ik,k->i", R, R, s) / (4 * self.eta)
        if support.size == n:
            H += self._turning(self.K, a, Q, R, s)
        else:
            part = self.K[support].take(support, 1)
            part = self._turning(part, a[support], Q[support], R[support], s)
            for i, row in zip(support, part, strict=True):
                H[i, support] += row
        return H

    def _turning(
        self, K: FloatArray, a: FloatArray, Q: FloatArray, R: FloatArray, s: FloatArray
    ) -> FloatArray:
        """The sum over k, l, but for a diagonal, where a is not zero.

        With s_k = O_kl for l below, c_k = 1 - s_k and the matrices P_x = sum x_k q_k q_k', R_x =
        sum x_k r_k r_k', X_x = sum x_k q_k r_k' it is, all products but the first entrywise,

            P_1 R_c + P_s (K D_a^2 K - R_1) + X_c X_c' - X_s X_s' + X_s K D_a + D_a K X_s' + diag(R_s).
        """
        c, weight = 1 - s, 1 / (4 * self.eta)
        thin = K * (a * np.sqrt(weight))
        H: FloatArray = thin @ thin.T
        left = weight * np.hstack([Q * s, (R * s) * a[:, None]])
        right = np.ascontiguousarray(np.hstack([R * a[:, None], Q]).T)
        Qt, Rt = np.ascontiguousarray(Q.T), np.ascontiguousarray(R.T)
        for rows in _slices(a.size, a.size):
            q, r, block = Q[rows], R[rows], H[rows]
            block -= (weight * r) @ Rt
            block *= (q * s) @ Qt
            block += K[rows] * (left[rows] @ right)
            block -= (weight * (q * s) @ Rt) * ((r * s) @ Qt)
            block += (q @ Qt) * ((weight * r * c) @ Rt)
            block += (weight * (q * c) @ Rt) * ((r * c) @ Qt)
        return H

    def near(self, a: FloatArray) -> LocalModel:
        """Return g near a, up to the rounding that a projection leaves at zero: it would pass for support."""
        a = np.where(np.abs(a) <= DUST * np.abs(a).max(initial=0.0), 0.0, a)
        here = self.at(a)
        # Turning many eigenvectors takes longer than the steps it saves.
        curvature = (
            self.majorant if here.f is not None and MANY * here.f.size > a.size else self.curvature
        )
        # Another a is worth at least what the F that is best here gives it. Without tau a step
        # costs no more than that.
        below = cache(lambda: self.kernel(a, here)) if self.tau else None
        return LocalModel(here.value, here.product, lambda: curvature(a, here), below=below)

    def lipschitz(self, box: float) -> float:
        """Return a bound of how fast the gradient changes for |a_i| <= box.

        lambda_max(K) + box^2 / (4 eta) lambda_max(K o K) + box^2 / (2 eta) max_i sum_j K_ij^2, by
        row sums and norms.
        """
        rows = self.squares.sum(axis=1)
        size = min(float(np.abs(self.K).sum(axis=1).max()), float(np.sqrt(rows.sum())))
        size = float(np.linalg.eigvalsh(self.K)[-1]) if len(rows) <= SMALL else size
        return size + box * box * 0.75 / self.eta * float(rows.max())

    def rough(self, gradient: float, box: float) -> FloatArray:
        """Return the curvature of a quadratic whose minimiser is a good start: K and what F adds to its diagonal.

        Beyond Ka the gradient has a_i sum_j K_ij^2 u_j / (4 eta), that is a_i u r_i with u the mean
        of all a_j^2. Where the other points weigh nothing on average, as their signs differ, all
        |a_i| are the root c of

            c k + c^3 r = gradient            k, r the means of K_ii and r_i

        or the box if that is smaller; u is c^2 where the cubic term decides, about half of it where
        some points stay at zero. With tau, eigenvalues of Gamma of about c^2 r / k that are not
        well above tau/2 are cut off: K alone.
        """
        rows = np.einsum("ij,ij->i", self.K, self.K) / (4 * self.eta)
        k, r = float(self.K.trace()) / rows.size, float(rows.mean())
        c = min(cubic_root(r, k, gradient), box)
        if c * c * r <= WELL_ABOVE * k * self.tau / 2:
            return self.K
        H = self.K.copy()
        H.flat[:: rows.size + 1] += min(1.0, 0.5 + c**3 * r / gradient) * c * c * rows
        return H


def _slices(n: int, columns: int) -> Iterator[slice]:
    """So many rows at a time that they stay in the cache of a core."""
    step = max(1, CACHED // columns)
    return (slice(start, start + step) for start in range(0, n, step))
