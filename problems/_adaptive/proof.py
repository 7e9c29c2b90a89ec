"""What coefficients prove about a data-adaptive kernel: the best F for them, and both bounds.

    maximise over a   gain(a) - g(a)

    SVM   gain = y'a                          0 <= y_i a_i <= C       1'a = 0 where there is a bias
    SVR   gain = y'a - epsilon ||a||_1       -C <= a_i <= C

    penalty(F) = eta ||F - 11'||^2 + tau eta tr F
    g(a) = max over F psd of  a'(F o K)a / 2 - penalty(F)
         = eta ||M_+||^2 - eta n^2,    M = 11' + Gamma - (tau/2) I,    Gamma = D_a K D_a / (4 eta)

(o entrywise, D_a = diag(a), M_+ the positive part) is convex, and the best F is M_+ itself. Without
tau nothing has to be cut off, since 11' + Gamma is positive semidefinite, and g is a quartic
without eigenvalues:

    g(a) = a'Ka/2 + u'(K o K)u / (16 eta),    u = a o a.

With tau the eigenvectors live on the support S of a and one direction more, the constant vector on
its complement; and only those with eigenvalues w_k > tau/2 count. There are few: their sum is at
most n + tr Gamma. g is written as a'(F o K)a/2 - penalty(F), each part from F: eta ||M_+||^2 - eta
n^2 loses the digits of eta n^2.

Lower bound: the value at a feasible a, with g(a) bounded from above. For any psd N,  g(a) <= eta
||M + N||^2 - eta n^2,  and with X = M + N - 11' the right hand side is  eta ||X||^2 + 2 eta 1'X1,
which no eta n^2 has been subtracted from. Here N = -(I - P)M(I - P), P the projection on the
eigenvectors V of M above zero: no others have to be known. A Cholesky factorisation proves N psd up
to a small multiple of I, which is added to it.

Upper bound, weak duality: for every a the value is smallest over F at the best F. So for any psd F
the optimum is at most penalty(F) plus the optimum of the support vector machine with the kernel F o
K, and that at most the primal value of a classifier (F o K)b + bias, for any b. With the b of that
support vector machine instead of the given a it is off by the square of the error of F only. The
better counts.

K is known to be positive semidefinite only up to its floor -phi: what is meant is K + E with 0 <= E
<= phi I. That adds at most  phi sum_i F_ii a_i^2 / 2 + phi^2 (a'a)^2 / (16 eta)  to g, and phi max
F_ii in place of phi to the upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram, proven_floor
from klopt.model.memo import lock, remember_last
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._margin.proof import (
    best_tube,
    hinge_bias,
    hinge_primal,
    middle_of,
    tube_upper,
    zeros_unless_finite,
)

__all__ = [
    "AdaptiveDual",
    "BestWeights",
    "FeatureKernel",
    "ReducedMatrix",
    "WeightedFeatures",
    "WeightedKernel",
    "is_rounding",
    "moments",
    "quadratic_forms",
]

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Real = TypeVar("Real", np.float64, np.float32)

ROUNDING = 8 * EPS
"""The relative error of a sum as it is computed here, with a factor to spare."""
MAX_DENSE_ORDER = 250
"""Up to this order all eigenpairs cost no more than the few that count."""
EIGENPAIR_COUNTS = (12, 48)
"""How many eigenpairs an iterative method is asked for, first and then."""
BLOCK_ROWS = 512
"""Points that are worked on at a time."""


# The best F for given coefficients


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
        return BestWeights(product, float(a @ product), penalty, diagonal, Q, f, reduced, V, R)

    def applied(self, a: FloatArray, best: BestWeights, b: FloatArray) -> FloatArray:
        """Return (F o K)b, F the best one for a."""
        if best.Q is None or best.f is None:
            return np.asarray(self.K @ b + a * (self.squares @ (a * b)) / (4 * self.eta))
        return np.asarray((best.Q * (self.K @ (best.Q * b[:, None]))) @ best.f)


class FeatureKernel(Protocol):
    """A kernel given by features, K = Phi Phi', positive semidefinite by construction."""

    @property
    def Phi(self) -> FloatArray: ...

    @property
    def size(self) -> int: ...


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
        return BestWeights(product, float(a @ product), penalty, diagonal, Q, f, reduced, V)


def _penalty(V: FloatArray, f: FloatArray, j: FloatArray, eta: float, tau: float) -> float:
    """eta ||F - 11'||^2 + tau eta tr F for F = V diag(f) V', with 1 = j in the coordinates of V."""
    off = (V * f) @ V.T
    off -= np.multiply.outer(j, j)
    return eta * (float(np.vdot(off, off)) + tau * float(f.sum()))


def moments(Phi: npt.NDArray[Real], u: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """Return S = Phi' diag(u) Phi: M'M for u > 0 less N'N for u < 0, by half a product each."""
    S = np.zeros((Phi.shape[1],) * 2, Phi.dtype)
    for chosen, sign in ((np.flatnonzero(u > 0), 1), (np.flatnonzero(u < 0), -1)):
        roots = np.sqrt(np.abs(u[chosen]))[:, None]
        has_all = chosen.size == u.size
        for start in range(0, chosen.size, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            part = (Phi[rows] if has_all else Phi[chosen[rows]]) * roots[rows]
            square = part.T @ part
            S = S + square if sign > 0 else S - square
    return S


def quadratic_forms(Phi: npt.NDArray[Real], S: npt.NDArray[Real]) -> FloatArray:
    """Return phi_i' S phi_i for all i, S symmetric; with S = `moments(Phi, u)` that is (K o K)u.

    It is phi_i' T phi_i, T the lower triangle of S with twice what is below the diagonal: BLAS
    multiplies by a triangle at half the cost.
    """
    from scipy.linalg.blas import dtrmm, strmm

    if not S.any():
        return np.zeros(len(Phi))
    multiply: Callable[..., npt.NDArray[Any]] = dtrmm if Phi.dtype == np.float64 else strmm
    T = np.asfortranarray(np.tril(S) + np.tril(S, -1))
    found = np.empty(len(Phi))
    for start in range(0, found.size, BLOCK_ROWS):
        part = Phi[start : start + BLOCK_ROWS]
        product = multiply(1.0, T, part.T, lower=1).T
        found[start : start + BLOCK_ROWS] = np.einsum("ik,ik->i", product, part)
    return found


def is_rounding(a: FloatArray) -> Mask:
    """Return which entries are rounding of a projection: they would pass for support."""
    return np.abs(a) <= 4 * EPS * float(np.abs(a).max(initial=0.0))


# Both bounds


class PrimalValue(NamedTuple):
    """The primal value of a classifier or regression, its bias, and what each point loses."""

    value: float
    bias: float
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class AdaptiveDual:
    """The dual in signed coefficients a, of classification or regression.

    Parameters
    ----------
    K
        The kernel, by its matrix or by features.
    y, C, eta, tau
        Labels or targets, the penalty of errors, that of F - 11', and the share of tr F in it.
    bias
        Whether there is one; it asks for 1'a = 0.
    epsilon
        The half-width of the tube; None for classification.
    function
        g: the best F for given coefficients.
    """

    K: Gram | FeatureKernel
    y: FloatArray
    C: float
    eta: float
    tau: float
    bias: bool
    epsilon: float | None
    function: WeightedKernel | WeightedFeatures

    @property
    def floor(self) -> float:
        """A proven lower bound of the eigenvalues of K: 0 where it is a product."""
        return self.K.floor if isinstance(self.K, Gram) else 0.0

    @cached_property
    def targets(self) -> FloatArray:
        """y less the middle of its range where a bias takes that up: sums keep their digits."""
        return self.y - self.middle

    @property
    def middle(self) -> float:
        """What is taken off the targets."""
        has_offset = self.epsilon is not None and self.bias
        return middle_of(self.y) if has_offset else 0.0

    @property
    def tube(self) -> float:
        """epsilon, or 0 for classification: what a unit of |a_i| costs."""
        return self.epsilon or 0.0

    @cached_property
    def _domain(self) -> BoxPlane:
        return self._scaled_domain(1.0)

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length."""
        return self._domain if length == 1.0 else self._scaled_domain(length)

    def _scaled_domain(self, length: float) -> BoxPlane:
        n = self.y.size
        box = self.C / length
        if self.epsilon is None:
            low = np.minimum(self.y * box, 0.0)
            high = np.maximum(self.y * box, 0.0)
        else:
            low = np.full(n, -box)
            high = np.full(n, box)
        return BoxPlane(low, high, np.ones(n) if self.bias else None)

    def coefficients(self, point: Point) -> FloatArray:
        """Return the a of a point."""
        return self.y * point.alpha if self.epsilon is None else point.beta

    def bracket(self, a: FloatArray, svm: FloatArray | None = None) -> Bracket:
        """Return the bounds that coefficients a prove.

        `svm` are coefficients of the support vector machine with the kernel F o K, where there are
        some: the upper bound may be sharper by them.
        """
        a = self._feasible(a)
        if not self.bias:
            # Without a plane no sum has to be met, so what is zero up to the rounding of C may go.
            a[np.abs(a) <= EPS * self.C] = 0.0
        best = self.function.at(a)
        terms = self._terms(a, best.product)
        above, rounding = self._above(a, best)

        phi = -self.floor
        gain = float(self.targets @ a) - self.tube * float(np.abs(a).sum())
        charge = phi / 2 * float(best.diagonal @ (a * a))
        charge += (phi * float(a @ a)) ** 2 / (16 * self.eta)
        lower = gain - above - charge - ROUNDING * terms - rounding

        # F o K has the floor -phi max F_ii, by Schur's product theorem.
        phi_weighted = phi * float(best.diagonal.max())
        primal = self._primal(a, best.product, phi_weighted)
        proof = {}
        b = self._usable(svm)
        if b is not None and isinstance(self.function, WeightedKernel):
            f = self.function.applied(a, best, b)
            sharper = self._primal(b, f, phi_weighted)
            if sharper.value < primal.value:
                primal = sharper
                proof = {"machine": b}
                terms = max(terms, self._terms(b, f))
        upper = primal.value + (best.penalty + ROUNDING * terms + rounding)

        solved = {"alpha": self.y * a} if self.epsilon is None else {"beta": a}
        if self.bias:
            solved["bias"] = np.asarray(primal.bias + self.middle)
        return Bracket(lower, upper, Point(solved, {"slack": primal.loss, **proof}))

    def _usable(self, svm: FloatArray | None) -> FloatArray | None:
        """Coefficients made feasible; None where they have a wrong shape or are not finite."""
        if svm is None or svm.shape != self.y.shape or not np.isfinite(svm).all():
            return None
        return self._feasible(svm)

    def _terms(self, a: FloatArray, f: FloatArray) -> float:
        """The size of what is added up in a value at a, where the classifier has values f."""
        return float(np.abs(a) @ (np.abs(self.targets) + self.tube + np.abs(f)))

    def _feasible(self, given: FloatArray) -> FloatArray:
        """The nearest feasible point, without the rounding of the projection."""
        domain = self._domain
        given = zeros_unless_finite(given)
        a = domain.project(given)
        dropped = (a != 0) & is_rounding(a)
        a[dropped] = 0.0
        if domain.normal is not None and (dropped.any() or not np.array_equal(a, given)):
            # The point farthest from its bounds takes up what the sum is off zero.
            i = int(np.argmax(np.minimum(a - domain.lower, domain.upper - a)))
            moved = a[i] - float(a.sum())
            a[i] = np.clip(moved, domain.lower[i], domain.upper[i])
        return a

    def _above(self, a: FloatArray, best: BestWeights) -> tuple[float, float]:
        """A bound of g(a) from above, and the rounding in it and in the penalty of F."""
        if best.reduced is None or best.V is None:
            return best.value, 2 * ROUNDING * best.penalty
        gamma = best.reduced.gamma
        j = best.reduced.j
        V = best.V
        half = self.tau / 2

        # X = M + N - 11' with N = -(I - P)M(I - P) and P = VV', in the coordinates of `reduced`:
        # what P leaves of M, that is PM + MP - PMP, less 11'. p is what P leaves out of j.
        p = j - V @ (V.T @ j)
        B = gamma @ V
        Z = B - V @ (V.T @ B / 2 + np.diag(np.full(V.shape[1], half / 2)))
        X = V @ Z.T
        X += X.T.copy()
        X -= np.multiply.outer(p, p)
        X.flat[:: len(X) + 1] += _psd_shortfall(X - gamma, half)

        squared_norm = float(np.vdot(X, X))
        above = self.eta * (squared_norm + 2 * float(j @ (X @ j)))
        terms = squared_norm + 2 * float(j @ (np.abs(X) @ j)) + 2 * self.tau * float(a.size)
        return above, ROUNDING * self.eta * terms

    def _primal(self, a: FloatArray, f: FloatArray, phi: float) -> PrimalValue:
        """The primal value of the best multiple of the classifier f = (F o K)a."""
        curvature = float(a @ f)
        bias, excess = self.residuals(f)
        loss = np.maximum(excess, 0.0)
        if self.epsilon is not None:
            return PrimalValue(tube_upper(a, excess, curvature, self.C, phi), bias, loss)

        margins = self.y * (f + bias)
        near, scale = hinge_primal(margins, curvature, self.C)
        if not phi:
            return PrimalValue(near, bias, loss)
        # The smaller of the two charges for the floor, as in `klopt.problems._margin.proof`.
        squared_length = float(a @ a)
        shorter = margins - phi * np.sqrt(squared_length)
        far, _ = hinge_primal(shorter, curvature + phi * squared_length, self.C)
        reach = np.maximum(scale * np.abs(a), np.abs(self.C - scale * np.abs(a)))
        return PrimalValue(min(far, near + phi / 2 * float(reach @ reach)), bias, loss)

    def residuals(self, f: FloatArray) -> tuple[float, FloatArray]:
        """Return the best bias for values f, and what each point loses under it.

        Inside the margin or the tube a loss is negative.
        """
        if self.epsilon is None:
            bias = hinge_bias(self.y, f) if self.bias else 0.0
            return bias, 1 - self.y * (f + bias)
        left = self.targets - f
        if not self.bias:
            return 0.0, np.abs(left) - self.epsilon
        return best_tube(left, self.epsilon)


def _psd_shortfall(N: FloatArray, half: float) -> float:
    """What must be added to N + half I, as a multiple of I, to prove it psd; N is overwritten."""
    N.flat[:: len(N) + 1] += half
    rounding = len(N) * EPS * half
    floor = proven_floor(N)
    if floor is None:
        floor = proven_floor(N, rounding)
    if floor is None:
        # Neither factorisation ran to its end: the eigenvalues themselves, less their rounding.
        floor = float(np.linalg.eigvalsh(N)[0]) - rounding
    return max(-floor, 0.0)
