"""The best F for given coefficients of a data-adaptive kernel, in floating point.

    g(a) = max over F psd of  a'(F o K)a / 2 - eta ||F - 11'||^2 - tau eta tr F
         = eta ||M_+||^2 - eta n^2,    M = 11' + Gamma - (tau/2) I,    Gamma = D_a K D_a / (4 eta)

(o entrywise, D_a = diag(a), M_+ the positive part) is convex, and the best F is M_+ itself. Without
tau nothing has to be cut off, since 11' + Gamma is positive semidefinite, and g is a quartic
without eigenvalues:

    g(a) = a'Ka/2 + u'(K o K)u / (16 eta),    u = a o a.

With tau the eigenvectors live on the support S of a and one direction more, the constant vector on
its complement; and only those with eigenvalues w_k > tau/2 count. There are few: their sum is at
most n + tr Gamma. g is written as a'(F o K)a/2 - penalty(F), each part from F: eta ||M_+||^2 - eta
n^2 loses the digits of eta n^2.

Nothing here is proven: `klopt.problems._adaptive.proof` takes an F, however inaccurate, and proves
both bounds from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.memo import lock, remember_last
from klopt.problems._adaptive.proof import moments, quadratic_forms

__all__ = [
    "BestWeights",
    "ReducedMatrix",
    "WeightedFeatures",
    "WeightedKernel",
    "is_rounding",
]

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

MAX_DENSE_ORDER = 250
"""Up to this order all eigenpairs cost no more than the few that count."""
EIGENPAIR_COUNTS = (12, 48)
"""How many eigenpairs an iterative method is asked for, first and then."""


@dataclass(frozen=True, eq=False)
class BestWeights:
    """The best F for one a, and what it does to K.

    With tau F is Q diag(f) Q', without it 11' + Gamma; then Q and what belongs to it is None.
    """

    product: FloatArray
    """(F o K)a, which is the gradient of g."""
    curvature: float
    """a'(F o K)a."""
    penalty: float
    """eta ||F - 11'||^2 + tau eta tr F."""
    diagonal: FloatArray
    """The diagonal of F."""
    Q: FloatArray | None = None
    f: FloatArray | None = None
    reduced: ReducedMatrix | None = None
    V: FloatArray | None = None
    """Q in the coordinates of `reduced`."""
    Z: FloatArray | None = None
    """For features, the orthonormal vectors of these coordinates."""
    R: FloatArray | None = None
    """K D_a Q."""

    @property
    def value(self) -> float:
        """g(a)."""
        return self.curvature / 2 - self.penalty


@dataclass(frozen=True, eq=False)
class ReducedMatrix:
    """11' + Gamma where it is not zero.

    Its coordinates are the support of a and, last, the direction constant on the other points.
    """

    support: Indices
    n: int
    gamma: FloatArray
    j: FloatArray
    """The vector 1 in these coordinates."""

    @classmethod
    def of(cls, K: FloatArray, a: FloatArray, eta: float) -> ReducedMatrix:
        """Return the reduced matrices of coefficients a."""
        n = a.size
        support = np.flatnonzero(a)
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
        # All eigenvalues but one are at most those of Gamma, which are nonnegative.
        max_count = 1 + float(self.gamma.trace()) / threshold
        if len(M) > max(MAX_DENSE_ORDER, 6 * max_count):
            w, V = self._largest_eigenpairs(M, threshold)
        else:
            w, V = np.linalg.eigh(M)
        first = int(w.searchsorted(threshold, "right"))
        return w[first:], V[:, first:]

    def _largest_eigenpairs(self, M: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
        """All eigenpairs above the threshold, and some below."""
        from scipy.linalg import eigh
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        start = self.j + np.random.default_rng(0).normal(size=len(M))
        for count in EIGENPAIR_COUNTS:
            try:
                w, V = eigsh(M, k=count, which="LA", v0=start)
            except ArpackNoConvergence:
                break
            # One value below the threshold shows that none above it is missing.
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
class WeightedKernel:
    """The kernel F o K with the best F for given coefficients, eta > 0 and tau >= 0."""

    K: FloatArray
    eta: float
    tau: float

    def __getstate__(self) -> dict[str, object]:
        # K o K is as large as K, and sooner computed than sent.
        return {"K": self.K, "eta": self.eta, "tau": self.tau}

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

    @remember_last
    def at(self, a: FloatArray) -> BestWeights:
        """Return the best F for a; a proof asks for it where a method stopped."""
        return self._cut_off(a) if self.tau else self._quartic(a)

    def _quartic(self, a: FloatArray) -> BestWeights:
        u = a * a
        w = self.squares @ u
        product = self.K @ a + a * w / (4 * self.eta)
        penalty = float(u @ w) / (16 * self.eta)
        diagonal = 1 + u * self.K.diagonal() / (4 * self.eta)
        return BestWeights(product, float(a @ product), penalty, diagonal)

    def _cut_off(self, a: FloatArray) -> BestWeights:
        reduced = ReducedMatrix.of(self.K, a, self.eta)
        S = reduced.support
        w, V = reduced.above(self.tau / 2)
        f = w - self.tau / 2
        Q = reduced.lifted(V)
        columns = self.K if S.size == a.size else self.K.take(S, 0).T
        R: FloatArray = columns @ (V[: S.size] * a[S, None])
        product = (Q * R) @ f
        penalty = _penalty(V, f, reduced.j, self.eta, self.tau)
        diagonal = (Q * Q) @ f
        return BestWeights(product, float(a @ product), penalty, diagonal, Q, f, reduced, V, R=R)


@dataclass(frozen=True, eq=False)
class WeightedFeatures:
    """The kernel F o K with the best F for K = scale Phi Phi', n x n never formed.

    (K o K)u takes two products of n r^2 (`quadratic_forms`). With tau

        11' + Gamma = B B',   B = [1, D_a Phi / (2 eta^1/2)] = Z T   (Z'Z = I)

    has the eigenvalues of T T', and in the coordinates Z everything has the order r + 1: the rank
    of F is at most that.
    """

    Phi: FloatArray
    scale: float
    eta: float
    tau: float
    _last: list[tuple[FloatArray, FloatArray, FloatArray]] = field(
        default_factory=list, init=False, repr=False
    )
    """The last two a without tau and their products: a proof asks for one of them."""

    def __getstate__(self) -> dict[str, object]:
        return {"Phi": self.Phi, "scale": self.scale, "eta": self.eta, "tau": self.tau, "_last": []}

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of K."""
        return np.asarray(self.scale * np.einsum("ik,ik->i", self.Phi, self.Phi))

    def times(self, x: FloatArray) -> FloatArray:
        """Return Kx; x is a vector or has vectors as columns."""
        return np.asarray(self.scale * (self.Phi @ (self.Phi.T @ x)))

    def times_squares(self, u: FloatArray) -> FloatArray:
        """Return (K o K)u."""
        return self.scale**2 * quadratic_forms(self.Phi, moments(self.Phi, u))

    def products(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Ka and (K o K)(a o a), read-only."""
        for known, linear, squares in self._last:
            if np.array_equal(known, a):
                return linear, squares
        linear, squares = lock((self.times(a), self.times_squares(a * a)))
        self._last[:] = [(a.copy(), linear, squares), *self._last[:1]]
        return linear, squares

    def at(self, a: FloatArray) -> BestWeights:
        """Return the best F for a."""
        if self.tau:
            return self._cut_off(a)
        linear, w = self.products(a)
        u = a * a
        product = linear + a * w / (4 * self.eta)
        penalty = float(u @ w) / (16 * self.eta)
        diagonal = 1 + u * self.diagonal / (4 * self.eta)
        return BestWeights(product, float(a @ product), penalty, diagonal)

    def _cut_off(self, a: FloatArray) -> BestWeights:
        b = a * np.sqrt(self.scale / (4 * self.eta))
        Z, T = np.linalg.qr(np.column_stack([np.ones(a.size), self.Phi * b[:, None]]))
        order = len(T)
        gamma = T[:, 1:] @ T[:, 1:].T
        reduced = ReducedMatrix(np.arange(order), order, gamma, T[:, 0].copy())
        w, V = reduced.above(self.tau / 2)
        f = w - self.tau / 2
        Q = Z @ V
        product = (Q * self.times(a[:, None] * Q)) @ f
        penalty = _penalty(V, f, reduced.j, self.eta, self.tau)
        diagonal = (Q * Q) @ f
        return BestWeights(product, float(a @ product), penalty, diagonal, Q, f, reduced, V, Z)


def _penalty(V: FloatArray, f: FloatArray, j: FloatArray, eta: float, tau: float) -> float:
    """eta ||F - 11'||^2 + tau eta tr F for F = V diag(f) V', with 1 = j in the coordinates of V."""
    off = (V * f) @ V.T
    off -= np.multiply.outer(j, j)
    return eta * (float(np.vdot(off, off)) + tau * float(f.sum()))


def is_rounding(a: FloatArray) -> Mask:
    """Return which entries are rounding of a projection: they would pass for support."""
    return np.abs(a) <= 4 * EPS * float(np.abs(a).max(initial=0.0))
