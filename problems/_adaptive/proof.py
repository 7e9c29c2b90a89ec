"""What coefficients prove about a data-adaptive kernel: both bounds, in exact arithmetic.

    maximise over a   gain(a) - g(a)

    SVM   gain = y'a                          0 <= y_i a_i <= C       1'a = 0 where there is a bias
    SVR   gain = y'a - epsilon ||a||_1       -C <= a_i <= C

    penalty(F) = eta ||F - 11'||^2 + tau eta tr F
    g(a) = max over F psd of  a'(F o K)a / 2 - penalty(F)
         = eta ||M_+||^2 - eta n^2,    M = 11' + Gamma - (tau/2) I,    Gamma = D_a K D_a / (4 eta)

(o entrywise, D_a = diag(a), M_+ the positive part). The data are the stored numbers: the matrix K,
or the features Phi of K = Phi Phi'. K is known to be positive semidefinite up to its floor -phi
only, and phi = 0 for features; both bounds hold for K itself and for every K + E, 0 <= E <= phi I.

**Lemma A1 (sums).** |K_ij| <= r_i r_j with r_i^2 = K_ii + phi. A sum of products whose terms pass
through m roundings each is off by at most gamma_m times the sum of the sizes of its terms:

    gamma_m r_i r'|b|   in (Kb)_i,        gamma_m r_i^2 sum_j r_j^2 |u_j|   in ((K o K)u)_i.

**Lemma A2 (lower bound).** The value at an exactly feasible a; g(a) is bounded from above. For
every N psd g(a) <= eta ||M + N||^2 - eta n^2, and with X = M + N - 11' that is

    eta ||X||^2 + 2 eta 1'X1      for any symmetric X with   X - Gamma + (tau/2) I   psd.

Without tau X = Gamma: g(a) <= a'Ka/2 + u'(K o K)u / (16 eta), u = a o a. With tau X is made from
any vectors V, best from the eigenvectors of M above zero, and a multiple of I is added that makes
the condition provable (`klopt.proof.semidefinite`).

**Lemma A3 (upper bound).** For any psd F the optimum is at most penalty(F) plus the optimum of the
support vector machine with the kernel Q = F o K, and that at most the primal value of a classifier
s (Qb + bias), for any b, s and bias: for every feasible z, with m_i = s y_i ((Qb)_i + bias),

    1'|z| - z'Qz/2  <=  s^2 b'Qb/2 + sum_i |z_i| (1 - m_i)
                    <=  s^2 b'Qb/2 + C sum_i max(0, 1 - m_i),

in regression with C sum_i max(0, |y_i - s ((Qb)_i + bias)| - epsilon). F is psd by its form: without
tau 11' + D_a (K + phi I) D_a / (4 eta), with it Q diag(f) Q', f >= 0.

**Lemma A4 (floor).** Q has the floor -psi, psi = phi max F_ii (Schur). Then the bound U of Lemma A3
errs by psi/2 ||z - sb||^2 at most. In classification the best z has ||z||^2 <= C 1'|z| <= 2 C v, v
its value (else a smaller multiple were better), so that also v <= (U + psi s^2 ||b||^2) / (1 - 2 psi
C), and as ||z|| <= 1'|z|, v <= U + psi (s^2 ||b||^2 + 4 v^2).

**Lemma A5 (frame).** With tau everything is computed in the coordinates of a frame Z (n x m): the
support of a and the constant vector on its complement, or an orthonormal basis of 1 and D_a Phi.
Let ||Z'Z - I|| <= skew, ||1 - Zj|| <= miss and Gamma <= Z G Z' + excess I, excess <= tau/2. As
I >= ZZ' / (1 + skew), X = Z S Z' meets Lemma A2 if

    S - G + (tau/2) I  >=  (excess + skew tau/2) I.

**Lemma A6 (gradient).** h(F) = a'(F o K)a/2 - penalty(F) is strongly concave: the best F* has
||F - F*||^2 <= (g(a) - h(F)) / eta. So g'(a) = (F* o K)a differs from (F o K)a by at most that
distance times (sum_j K_ij^2 a_j^2)^1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, IntArray
from klopt.kernels.gram import Gram
from klopt.model.memo import LastAnswer, lock
from klopt.model.problem import Bracket, Point
from klopt.proof.directed import norm_up, product_up
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_dot,
    enclose_product,
    gamma,
    round_up,
)
from klopt.proof.semidefinite import cholesky_shift, eigenvalue_floor, is_positive_semidefinite

__all__ = [
    "AdaptiveProof",
    "Classifier",
    "FeatureProducts",
    "MatrixProducts",
    "middle_of",
    "moments",
    "quadratic_forms",
    "sharp_product",
]

Real = TypeVar("Real", np.float64, np.float32)

BLOCK_ROWS = 512
"""Points that are worked on at a time: also the longest sum that BLAS is trusted with."""
BLOCK_ENTRIES = 65_536
"""Entries of K that are squared at a time."""
MAX_SHORT_SUM = 4096
"""A sum of up to so many terms may be added up in any order."""
INFLATION = 1 + 2.0**-20
"""Covers the rounding of a bound that adds up to 2^30 terms, none of them negative."""
MAX_SHARP_ENTRIES = 65_536
"""A product that cancels is computed to its last digit with a matrix of up to so many entries."""
MAX_ROUNDING_SHARE = 1e-10
"""A product is computed more accurately where its rounding costs more than this share."""

LOWER_BY = "value at an exactly feasible point"
UPPER_BY = "weak duality: primal value of a classifier with the kernel F o K, F psd"


def _above(x: float, operations: int = 0) -> float:
    """An upper bound of what a few operations on numbers, none negative, were to give."""
    return x * (1 + (2 * operations + 32) * UNIT_ROUNDOFF) + (operations + 8) * ETA


def _sum_above(*terms: float) -> float:
    """An upper bound of the sum of a few numbers."""
    size = 0.0
    total = 0.0
    for term in terms:
        size += abs(term)
        total += term
    return total + (4 * len(terms) * UNIT_ROUNDOFF) * size + 8 * ETA


# Products with K and with K o K (Lemma A1)


@dataclass(frozen=True, eq=False)
class MatrixProducts:
    """Products with a kernel matrix."""

    K: Gram

    @property
    def phi(self) -> float:
        """Minus the proven floor of K."""
        return max(-self.K.floor, 0.0)

    @cached_property
    def diagonal(self) -> FloatArray:
        """K_ii + phi, rounded up."""
        sums = np.maximum(round_up(self.K.matrix.diagonal() + self.phi), 0.0)
        return np.asarray(sums)

    @cached_property
    def roots(self) -> FloatArray:
        """r, rounded up."""
        return np.asarray(round_up(np.sqrt(self.diagonal)))

    @property
    def steps(self) -> int:
        """Through how many roundings a term of Kb goes."""
        return self.K.size + 2

    def times(self, b: FloatArray) -> Enclosure:
        """Return Kb."""
        rad = _share(self.steps, self.roots, b) * self.roots
        return Enclosure(self.K.matrix @ b, rad + (self.K.size + 4) * ETA)

    def sharp_times(self, b: FloatArray) -> Enclosure | None:
        """Return Kb with hardly any rounding; None where that is too much work."""
        K = self.K.matrix
        return sharp_product(K, b) if K.size <= MAX_SHARP_ENTRIES else None

    def times_squares(
        self, a: FloatArray, b: FloatArray, rows: IntArray | None = None
    ) -> Enclosure:
        """Return (K o K)(a o b), or some rows of it, outside of which a is zero."""
        K = self.K.matrix
        u = a * b
        diagonal = self.diagonal
        if rows is not None and rows.size < u.size:
            K = K.take(rows, 0).take(rows, 1)
            u = u[rows]
            diagonal = diagonal[rows]
        return Enclosure(_squares_times(K, u), _squares_radius(diagonal, u, u.size + 8))

    def times_columns(self, B: FloatArray) -> FloatArray:
        """Return KB, rounded."""
        return np.asarray(self.K.matrix @ B)


@dataclass(frozen=True, eq=False)
class FeatureProducts:
    """Products with K = Phi Phi', n x n never formed.

    The sizes of the terms of phi_i'(Phi'b) add up to |phi_i|'|Phi|'|b| <= r_i r'|b|, those of
    phi_i'S phi_i, S = Phi' diag(u) Phi, to at most r_i^2 sum_j r_j^2 |u_j|.
    """

    Phi: FloatArray

    @property
    def phi(self) -> float:
        """K is a product: no eigenvalue is negative."""
        return 0.0

    @cached_property
    def diagonal(self) -> FloatArray:
        """K_ii, rounded up."""
        squares = np.einsum("ik,ik->i", self.Phi, self.Phi)
        rank = self.Phi.shape[1]
        return np.asarray(squares * (1 + gamma(rank + 2) * INFLATION) + 2 * (rank + 2) * ETA)

    @cached_property
    def roots(self) -> FloatArray:
        """r, rounded up."""
        return np.asarray(round_up(np.sqrt(self.diagonal)))

    @cached_property
    def _largest(self) -> float:
        """1 and more than any |Phi_ik|, which is at most r_i."""
        return 1 + float(self.roots.max(initial=0.0))

    @property
    def steps(self) -> int:
        """Through how many roundings a term of Kb, (K o K)u or a product of columns goes."""
        n, rank = self.Phi.shape
        blocks = -(-n // BLOCK_ROWS)
        return int(min(n, BLOCK_ROWS) + 2 * blocks + 2 * rank + 16)

    def times(self, b: FloatArray) -> Enclosure:
        """Return Kb."""
        rad = _share(self.steps, self.roots, b) * self.roots
        underflow = 4 * self.Phi.size * self._largest * ETA
        return Enclosure(self.times_columns(b), rad + underflow)

    def sharp_times(self, b: FloatArray) -> Enclosure | None:
        """Return Kb with hardly any rounding but that of r terms; None where it is too much work."""
        if self.Phi.size > MAX_SHARP_ENTRIES:
            return None
        return enclose_product(self.Phi, sharp_product(self.Phi.T, b))

    def times_squares(
        self, a: FloatArray, b: FloatArray, rows: IntArray | None = None
    ) -> Enclosure:
        """Return (K o K)(a o b), or some rows of it, outside of which a is zero."""
        Phi = self.Phi
        u = a * b
        diagonal = self.diagonal
        if rows is not None and rows.size < u.size:
            Phi = Phi[rows]
            u = u[rows]
            diagonal = diagonal[rows]
        # The root of |u_j| times Phi may underflow before it is squared.
        most = 1 + float(np.abs(u).max(initial=0.0))
        square = self._largest * self._largest
        underflow = 16 * self.Phi.size**2 * square * square * most * ETA
        radius = _squares_radius(diagonal, u, self.steps, underflow)
        return Enclosure(_feature_squares_times(Phi, u), radius)

    def times_columns(self, B: FloatArray) -> FloatArray:
        """Return KB, rounded; sums over points are made of short ones."""
        return np.asarray(self.Phi @ _tall_product(self.Phi, B))


Products: TypeAlias = MatrixProducts | FeatureProducts


def _share(steps: int, sizes: FloatArray, b: FloatArray) -> float:
    """gamma_m r'|b| of Lemma A1; rounded up where it underflows, as an r_i may be large."""
    size = float(sizes @ np.abs(b)) * INFLATION**2 + b.size * ETA
    return product_up(gamma(steps), size)


def _tall_product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A'B, sums over more than `BLOCK_ROWS` points by blocks of so many."""
    blocks = range(0, len(A), BLOCK_ROWS)
    parts = [A[i : i + BLOCK_ROWS].T @ B[i : i + BLOCK_ROWS] for i in blocks]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return np.asarray(total)


def _squares_times(K: FloatArray, u: FloatArray) -> FloatArray:
    """(K o K)u, some rows of K squared at a time."""
    step = max(1, BLOCK_ENTRIES // max(len(K), 1))
    parts = [np.square(K[i : i + step]) @ u for i in range(0, len(K), step)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])


def _feature_squares_times(Phi: FloatArray, u: FloatArray) -> FloatArray:
    """(K o K)u for K = Phi Phi'; a term passes through `FeatureProducts.steps` roundings at most."""
    n, rank = Phi.shape
    if n <= min(BLOCK_ROWS, 2 * rank):
        # So few points that K is the smaller matrix: r roundings in K_ij, twice of that in K_ij^2.
        return _squares_times(Phi @ Phi.T, u)
    # As many blocks as `steps` counts, all of about one size: BLAS is fastest so.
    rows = -(-n // -(-n // BLOCK_ROWS))
    return quadratic_forms(Phi, moments(Phi, u, rows), rows)


def _squares_radius(
    diagonal: FloatArray, u: FloatArray, steps: int, more: float = 0.0
) -> FloatArray:
    """The radius of (K o K)u by Lemma A1, u rounded once and K_ij^2 once, and `more`."""
    # u_j, K_ij^2 and their products each lose eta at most.
    largest = 1 + float(diagonal.max(initial=0.0))
    most = float(np.abs(u).max(initial=0.0))
    underflow = 4 * (u.size + 1) * (largest * largest + most) * ETA
    return np.asarray(_share(steps, diagonal, u) * diagonal + (underflow + more))


def moments(
    Phi: npt.NDArray[Real], u: npt.NDArray[Real], block: int = BLOCK_ROWS
) -> npt.NDArray[Real]:
    """Return S = Phi' diag(u) Phi: M'M for u > 0 less N'N for u < 0, by half a product each."""
    S: npt.NDArray[Real] | None = None
    for chosen, sign in ((np.flatnonzero(u > 0), 1), (np.flatnonzero(u < 0), -1)):
        roots = np.sqrt(np.abs(u[chosen]))[:, None]
        has_all = chosen.size == u.size
        for start in range(0, chosen.size, block):
            rows = slice(start, start + block)
            part = (Phi[rows] if has_all else Phi[chosen[rows]]) * roots[rows]
            square = part.T @ part
            if S is None:
                S = square if sign > 0 else -square
            else:
                S = S + square if sign > 0 else S - square
    return np.zeros((Phi.shape[1],) * 2, Phi.dtype) if S is None else S


def quadratic_forms(
    Phi: npt.NDArray[Real], S: npt.NDArray[Real], block: int = BLOCK_ROWS
) -> FloatArray:
    """Return phi_i' S phi_i for all i, S symmetric; with S = `moments(Phi, u)` that is (K o K)u.

    It is phi_i' T phi_i, T the lower triangle of S with twice what is below the diagonal: BLAS
    multiplies by a triangle at half the cost.
    """
    from scipy.linalg.blas import dtrmm, strmm

    if not S.any():
        return np.zeros(len(Phi))
    multiply: Callable[..., npt.NDArray[Any]] = dtrmm if Phi.dtype == np.float64 else strmm
    # Its transpose is stored by columns, as BLAS wants it; only the lower triangle is read.
    T = (S + S).T
    np.fill_diagonal(T, S.diagonal())
    found = np.empty(len(Phi))
    for start in range(0, found.size, block):
        part = Phi[start : start + block]
        product = multiply(1.0, T, part.T, lower=1).T
        found[start : start + block] = np.einsum("ik,ik->i", product, part)
    return found


def sharp_product(K: FloatArray, v: FloatArray) -> Enclosure:
    """Return Kv, each sum correctly rounded (`math.fsum`) from exact products.

    Dekker: with both factors split into halves of 26 digits, ab = p + e for floats p = fl(ab) and
    e. Both factors are scaled to sizes up to 1 by powers of two, so that nothing overflows, and
    what underflows is below 2^-900.

    >>> K = np.array([[1.0, 1 - 2.0**-50], [1 - 2.0**-50, 1.0]])
    >>> bool(sharp_product(K, np.array([1e9, -1e9])).mid[0] == 1e9 * 2.0**-50)
    True
    """
    k = math.frexp(float(np.abs(K).max(initial=0.0)))[1]
    x = math.frexp(float(np.abs(v).max(initial=0.0)))[1]
    A = np.ldexp(K, -k)
    b = np.ldexp(v, -x)
    A1, A2 = _halves(A)
    b1, b2 = _halves(b)
    P = A * b
    E = ((A1 * b1 - P) + A1 * b2 + A2 * b1) + A2 * b2
    sums = [math.fsum(p) for p in np.concatenate([P, E], axis=1).tolist()]
    mid = np.array(sums)
    rad = np.abs(mid) * (2 * UNIT_ROUNDOFF) + len(v) * 2.0**-900
    return Enclosure(np.ldexp(mid, k + x), np.ldexp(rad, k + x) + 4 * ETA)


def _halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Veltkamp: x = high + low, exactly, with 26 digits each."""
    c = 134217729.0 * x
    high = c - (c - x)
    return high, x - high


# The bounds


def middle_of(y: FloatArray) -> float:
    """Return about the middle of the range of the targets."""
    return float(y.min() / 2 + y.max() / 2)


@dataclass(frozen=True, eq=False)
class Classifier:
    """(F o K)b for some psd F, and what the F costs."""

    values: Enclosure
    """(F o K)b."""
    curvature: Enclosure
    """b'(F o K)b."""
    penalty: float
    """An upper bound of penalty(F)."""
    largest: float
    """An upper bound of max F_ii."""


@dataclass(frozen=True, eq=False)
class Quartic:
    """What a proves where there is no tau: F = 11' + D_a (K + phi I) D_a / (4 eta)."""

    classifier: Classifier
    above: float
    """An upper bound of g(a)."""


@dataclass(frozen=True, eq=False)
class Frame:
    """11' + Gamma and F = Q diag(f) Q' in the coordinates of Lemma A5."""

    j: FloatArray
    G: FloatArray
    excess: float
    skew: float
    miss: float
    drift: float
    """||Q_k - Z V_k|| <= drift ||V_k||."""
    V: FloatArray
    Q: FloatArray
    size: float
    """About the trace of Gamma."""

    @cached_property
    def gram(self) -> FloatArray:
        """V'V, rounded."""
        return np.asarray(self.V.T @ self.V)

    @cached_property
    def norm_V(self) -> float:
        """An upper bound of ||V||."""
        return _norm(self.V)

    @cached_property
    def skew_V(self) -> float:
        """An upper bound of ||V'V - I||."""
        off = self.gram - np.eye(len(self.gram))
        rounding = gamma(len(self.V) + 4) * (self.norm_V * self.norm_V + len(off))
        return _above(_norm(off) + rounding)

    @cached_property
    def c(self) -> FloatArray:
        """About V'j."""
        return np.asarray(self.j @ self.V)

    @cached_property
    def p(self) -> FloatArray:
        """About what V leaves of j."""
        return np.asarray(self.j - self.V @ self.c)

    @cached_property
    def norm_p(self) -> float:
        """An upper bound of ||p||."""
        return _norm(self.p)


@dataclass(frozen=True, eq=False)
class AdaptiveProof:
    """Both bounds of one problem, from the arrays of a witness.

    Parameters
    ----------
    kernel
        Products with K.
    y, C, eta, tau
        Labels or targets, the penalty of errors, that of F - 11', and the share of tr F in it.
    bias
        Whether there is one; it asks for 1'a = 0.
    epsilon
        The half-width of the tube; None for classification.
    """

    kernel: Products
    y: FloatArray
    C: float
    eta: float
    tau: float
    bias: bool
    epsilon: float | None

    @cached_property
    def middle(self) -> float:
        """What a bias takes off the targets: sums keep their digits."""
        has_offset = self.epsilon is not None and self.bias
        return middle_of(self.y) if has_offset else 0.0

    @cached_property
    def targets(self) -> Enclosure:
        """y - middle."""
        exact = Enclosure.of(self.y)
        return exact - self.middle if self.middle else exact

    @cached_property
    def weight(self) -> Enclosure:
        """1 / (4 eta)."""
        # 4 eta may overflow.
        return (1.0 / Enclosure.of(self.eta)) * 0.25

    def coefficients(self, point: Point) -> FloatArray:
        """Return the a of a point."""
        return self.y * point.alpha if self.epsilon is None else point.beta

    def bracket(self, witness: Point) -> Bracket:
        """Return the bounds that the arrays of a witness prove.

        Parameters
        ----------
        witness
            `alpha` or `beta`, the coefficients; `machine`, those of the classifier of the upper
            bound where they are others; `offset` and `scale`, its bias (targets less their middle)
            and its multiple; with tau `V` and `f`, vectors and values of F in the frame, and for
            features the frame `Z`.
        """
        a = self.coefficients(witness)
        b = witness.dual.get("machine", a)
        offset = float(witness.offset) if self.bias else 0.0
        scale = float(witness.scale)
        with np.errstate(all="ignore"):
            lower, upper, loss = self._bounds(witness, a, b, offset, scale)

        solved = {"alpha": self.y * a} if self.epsilon is None else {"beta": a}
        if self.bias:
            solved["bias"] = np.asarray(offset + self.middle)
        duals = {"slack": loss}
        if b is not a:
            duals["machine"] = b
        return Bracket(lower, upper, Point(solved, duals), lower_by=LOWER_BY, upper_by=UPPER_BY)

    def _bounds(
        self, witness: Point, a: FloatArray, b: FloatArray, offset: float, scale: float
    ) -> tuple[float, float, FloatArray]:
        """Both ends, infinite where nothing is proven, and what each point loses."""
        unknown = -math.inf, math.inf, np.zeros(self.y.size)
        if not _is_vector(a, self.y.size) or not _is_vector(b, self.y.size):
            return unknown
        if self.tau:
            weighted = self.weighted(a, b, witness.dual)
            if weighted is None:
                return unknown
            frame, classifier = weighted
            above = self._cut_off_above(frame)
        else:
            quartic = self.quartic(a)
            above = quartic.above
            classifier = quartic.classifier if b is a else self.classifier(a, b)

        lower = -math.inf
        if self._is_feasible(a):
            gain = self.gain(a)
            lower = -_sum_above(above, -gain.mid, gain.rad)
        upper, loss = self.primal(classifier, b, offset, scale)
        return _finite(lower, -math.inf), _finite(upper, math.inf), loss

    # The gain and the constraints

    def _is_feasible(self, a: FloatArray) -> bool:
        """Whether a meets all constraints exactly: `fsum` is 0 only where the sum is."""
        signed = self.y * a if self.epsilon is None else a
        low = 0.0 if self.epsilon is None else -self.C
        inside = bool(signed.min() >= low and signed.max() <= self.C)
        return inside and (not self.bias or math.fsum(a[np.flatnonzero(a)].tolist()) == 0.0)

    def gain(self, a: FloatArray) -> Enclosure:
        """Return the gain of a feasible a; 1'a = 0 allows to take the middle off the targets."""
        total = float(np.abs(a).sum())
        length = Enclosure(total, _above(gamma(a.size) * total))
        if self.epsilon is None:
            return length
        return enclose_dot(a, self.targets) - length * self.epsilon

    # Without tau

    def quartic(self, a: FloatArray) -> Quartic:
        """Return what a proves without tau (Lemma A2); the last answer is kept, read-only."""
        kept = vars(self).setdefault("_last_quartic", LastAnswer())
        # Read and written as one pair, so that an interrupt leaves no answer beside another's point.
        pair: tuple[FloatArray, Quartic] | None = kept.value
        if pair is None or not np.array_equal(pair[0], a):
            found = self._quartic(a)
            lock((found.classifier.values.mid, found.classifier.values.rad))
            pair = (a.copy(), found)
            kept.value = pair
        return pair[1]

    def _quartic(self, a: FloatArray) -> Quartic:
        linear = self._times(a)
        mixed = self._mixed(a, a)
        of_kernel = _dot(a, linear)
        of_squares = _dot(a, mixed)
        above = _sum_above(
            of_kernel.mid / 2, of_kernel.rad / 2, of_squares.mid / 4, of_squares.rad / 4
        )
        penalty = _sum_above(of_squares.mid / 4, of_squares.rad / 4)
        u = round_up(a * a)
        # T + Gamma_ii, T = phi D_a^2 / (4 eta) >= D_a E D_a / (4 eta).
        shares = round_up(u * round_up(self.kernel.diagonal * self.weight.upper))
        phi = self.kernel.phi
        if phi:
            # The squares of Gamma + E and of Gamma + T exceed that of Gamma by at most
            # 3 <Gamma + T, T> and 2 <Gamma + T, T>.
            more = product_up(phi, _above(float(shares @ u), a.size)) / 4
            length = product_up(phi, _above(float(u.sum()), a.size)) / 2
            above = _sum_above(above, length, 3 * more)
            penalty = _sum_above(penalty, 2 * more)
        largest = _above(1 + float(shares.max()))
        values = _plus(linear, mixed)
        both = of_kernel.mid + of_squares.mid
        spread = of_kernel.rad + of_squares.rad + 2 * UNIT_ROUNDOFF * abs(both)
        curvature = Enclosure(both, spread * INFLATION)
        classifier = self._with_floor(Classifier(values, curvature, penalty, largest), a, a)
        return Quartic(classifier, above)

    def classifier(self, a: FloatArray, b: FloatArray) -> Classifier:
        """Return (F o K)b with the F of `quartic(a)`."""
        of_a = self.quartic(a).classifier
        values = _plus(self._times(b), self._mixed(a, b))
        curvature = _dot(b, values)
        return self._with_floor(Classifier(values, curvature, of_a.penalty, of_a.largest), a, b)

    def _with_floor(self, given: Classifier, a: FloatArray, b: FloatArray) -> Classifier:
        """The classifier with phi D_a^2 / (4 eta) in F: phi K_ii a_i^2 b_i / (4 eta) in f_i."""
        phi = self.kernel.phi
        if not phi:
            return given
        # |K_ii| <= K_ii + 2 phi, and a_i^2 (K_ii + phi) / (4 eta) < max F_ii.
        size = np.abs(b)
        more = product_up(phi, given.largest) * size
        more += round_up(product_up(phi, phi, self.weight.upper) * round_up(a * a)) * size
        more = more * INFLATION + 8 * ETA
        values = Enclosure(given.values.mid, (given.values.rad + more) * INFLATION)
        spread = _above((given.curvature.rad + float(size @ more)) * INFLATION, a.size)
        curvature = Enclosure(given.curvature.mid, spread)
        return Classifier(values, curvature, given.penalty, given.largest)

    def _times(self, b: FloatArray) -> Enclosure:
        """Kb, sharper where its rounding matters."""
        found = self.kernel.times(b)
        size = np.abs(b)
        cost = self.C * float(found.rad.sum()) + float(size @ found.rad)
        if cost <= MAX_ROUNDING_SHARE * float(size @ np.abs(self.targets.mid)):
            return found
        sharp = self.kernel.sharp_times(b)
        return found if sharp is None else sharp

    def _mixed(self, a: FloatArray, b: FloatArray) -> Enclosure:
        """(Gamma o K)b = a o (K o K)(a o b) / (4 eta)."""
        support = np.flatnonzero(a)
        inner = self.kernel.times_squares(a, b, support) * (self.weight * a[support])
        mid = np.zeros(a.size)
        rad = np.zeros(a.size)
        mid[support] = inner.mid
        rad[support] = inner.rad
        return Enclosure(mid, rad)

    # With tau

    def weighted(
        self, a: FloatArray, b: FloatArray, arrays: Mapping[str, FloatArray]
    ) -> tuple[Frame, Classifier] | None:
        """Return the frame of a, and (F o K)b with F = Q diag(f) Q'; the last ones are kept.

        Parameters
        ----------
        a, b
            The coefficients that the frame belongs to, and those of the classifier.
        arrays
            `V`, `f` and, for features, `Z`. Where they are missing or have a wrong shape it is
            None.
        """
        V = arrays.get("V")
        f = arrays.get("f")
        if V is None or f is None or V.ndim != 2 or f.shape != V.shape[1:] or not (f >= 0).all():
            return None
        given: tuple[FloatArray, ...] = (a, b, V, f)
        if not isinstance(self.kernel, MatrixProducts):
            Z = arrays.get("Z")
            if Z is None or Z.shape != (a.size, len(V)):
                return None
            given = (*given, Z)
        kept = vars(self).setdefault("_last_weighted", LastAnswer())
        if kept.value is not None:
            known, found = kept.value
            if all(map(np.array_equal, known, given)):
                return cast(tuple[Frame, Classifier], found)
        frame: Frame | None
        if isinstance(self.kernel, MatrixProducts):
            frame = self._support_frame(self.kernel, a, V.copy())
        else:
            frame = self._basis_frame(self.kernel, a, V.copy(), arrays["Z"])
        if frame is None:
            return None
        found = lock((frame, self._cut_off(frame, f, b)))
        kept.value = (tuple(np.array(array) for array in given), found)
        return found

    def _support_frame(self, kernel: MatrixProducts, a: FloatArray, V: FloatArray) -> Frame | None:
        """The support of a and the constant vector on its complement, exactly orthonormal."""
        n = a.size
        support = np.flatnonzero(a)
        s = support.size
        order = s if s == n else s + 1
        if len(V) != order:
            return None
        K = kernel.K.matrix
        part = K if s == n else K.take(support, 0).take(support, 1)
        b = a[support] / (2 * np.sqrt(self.eta))
        G = np.zeros((order, order)) if s < n else np.empty((s, s))
        np.multiply(part, b, out=G[:s, :s])
        G[:s, :s] *= b[:, None]
        # D_a (K + E) D_a <= D_a (K + phi I) D_a.
        G.flat[: s * order : order + 1] += kernel.phi * (b * b)
        # 8 roundings in each entry, of which |G_ij| <= r_i b_i r_j b_j: a matrix of rank one.
        sizes = kernel.roots[support] * b
        trace = float(sizes @ sizes)
        largest = (1 + float(kernel.diagonal.max())) * (1 + float(np.abs(b).max(initial=0.0)))
        excess = _above(16 * UNIT_ROUNDOFF * trace * INFLATION + 16 * (n + 1) * largest * ETA)

        j = np.ones(order)
        if s == n:
            return Frame(j, G, excess, 0.0, 0.0, 0.0, V, V, trace)
        root = math.sqrt(n - s)
        j[s] = root
        Q = np.empty((n, V.shape[1]))
        Q[:] = V[s] / root
        Q[support] = V[:s]
        miss = 2 * UNIT_ROUNDOFF * root
        return Frame(j, G, excess, 0.0, miss, 4 * UNIT_ROUNDOFF, V, Q, trace)

    def _basis_frame(
        self, kernel: FeatureProducts, a: FloatArray, V: FloatArray, Z: FloatArray
    ) -> Frame:
        """A nearly orthonormal basis Z of 1 and of A = D_a Phi / (2 eta^1/2), Gamma = AA'."""
        n, order = Z.shape
        b = a / (2 * np.sqrt(self.eta))
        A = kernel.Phi * b[:, None]
        steps = min(n, BLOCK_ROWS) + n // BLOCK_ROWS + order + 8
        g = gamma(steps) * INFLATION
        size = _norm(Z)
        gram = _tall_product(Z, Z)
        gram.flat[:: order + 1] -= 1
        skew = _above(_norm(gram) + g * (size * size + order))

        # A = Z T + R up to the 4 roundings of A, for any T.
        T = _tall_product(Z, A)
        norm_T = _norm(T)
        R = _above(_norm(A - Z @ T) + g * (size * norm_T + 2 * _norm(A)))
        G = T @ T.T
        G = (G + G.T) / 2
        across = 2 * (1 + skew) * norm_T * R + R * R
        excess = _above(across + (1 + skew) * (1 + skew) * g * norm_T * norm_T)
        largest = (1 + float(np.abs(kernel.Phi).max())) * (1 + float(np.abs(b).max()))
        excess += 16 * (n + order) ** 2 * largest * largest * ETA

        j = _tall_product(Z, np.ones(n))
        miss = _above(_norm(1 - Z @ j) + g * (math.sqrt(n) + size * _norm(j)))
        return Frame(j, G, excess, skew, miss, _above(g * size), V, Z @ V, norm_T * norm_T)

    def _cut_off_above(self, frame: Frame) -> float:
        """An upper bound of g(a) by Lemmas A2 and A5."""
        half = self.tau / 2
        j = frame.j
        G = frame.G
        V = frame.V
        order = j.size
        if not frame.excess <= half:
            return math.inf
        # S = P M + M P - P M P - 11' = VW' + WV' - pp' with P = VV', M = 11' + G - half I and p = j
        # - Pj, as good as it gets: what is left of M is cut off. Any other W and p were valid.
        p = frame.p
        B = G @ V
        inner = V.T @ B
        inner.flat[:: len(inner) + 1] += half
        W = B - V @ (inner / 2)
        column = p[:, None]
        S = np.concatenate([V, W, column], axis=1) @ np.concatenate([W, V, -column], axis=1).T
        q = frame.norm_p
        size = 2 * frame.norm_V * _norm(W) + q * q
        # The lower triangle is read in place of both: twice the rounding of S.
        rounding = 2 * gamma(2 * V.shape[1] + 4) * size
        norm_S = _norm(S) + rounding
        S -= G
        delta = _psd_shortfall(S, half, frame.size)
        delta = _above(delta + rounding + frame.excess + frame.skew * half)
        norm = _above(norm_S + delta * math.sqrt(order))
        stretch = 1 + frame.skew

        # 1'X1 = (Z'1)'(S + delta I)(Z'1), and Z'1 is as near to j as this.
        length = _norm(j)
        near = frame.skew * length + stretch * frame.miss
        beside = norm * (2 * length * near + near * near)
        steps = 2 * order + V.shape[1] + 8
        # The square of the length first, which is no small number: what underflows then is eta.
        squared_length = length * length
        more = delta * squared_length + beside + gamma(steps) * (size * squared_length)
        missed = float(p @ j)
        mid = 2 * float(frame.c @ (j @ W)) - missed * missed
        linear = Enclosure(mid, _above(more + 4 * order * order * ETA))
        square = _above((stretch * norm) * (stretch * norm))
        return float(((linear * 2.0 + square) * self.eta).upper)

    def _cut_off(self, frame: Frame, f: FloatArray, b: FloatArray) -> Classifier:
        """(F o K)b and penalty(F) for F = Q diag(f) Q'."""
        Q = frame.Q
        kernel = self.kernel
        n, count = Q.shape
        R = kernel.times_columns(Q * b[:, None])
        absolute = np.abs(Q)
        sizes = f * ((kernel.roots * np.abs(b)) @ absolute)
        steps = kernel.steps + count + 8
        rad = (gamma(steps) * INFLATION) * kernel.roots * (absolute @ sizes)
        largest_entry = (1 + float(absolute.max(initial=0.0))) * (1 + float(f.sum()))
        largest_size = largest_entry * largest_entry * (1 + float(kernel.diagonal.max()))
        underflow = 16 * (n + kernel.steps) ** 2 * largest_size * ETA
        values = Enclosure((Q * R) @ f, rad * INFLATION + underflow)

        # A square may underflow where its weight is large.
        diagonal = ((Q * Q + ETA) @ f) * (1 + gamma(count + 4)) + 4 * (count + 1) * ETA
        trace = _above(float(diagonal.sum()), n)
        # F - 11' is Z (V diag(f) V' - jj')Z' up to what Z misses of 1, and Q of ZV.
        weights = _above(float(f @ frame.gram.diagonal()) * INFLATION)
        length = _norm(frame.j)
        stretch = 1 + frame.skew
        inside = stretch * self._distance(frame, f)
        missed = 2 * stretch * length * frame.miss + frame.miss * frame.miss
        drifted = (2 * stretch * frame.drift + frame.drift * frame.drift) * weights
        distance = _above(inside + missed + drifted + underflow)
        penalty = _above(self.eta * (distance * distance + self.tau * trace))
        return Classifier(values, _dot(b, values), penalty, float(diagonal.max()))

    def _distance(self, frame: Frame, f: FloatArray) -> float:
        """An upper bound of ||V diag(f) V' - jj'||.

        With j = Vc + p, p = q u, and D = diag(f) - cc' it is that of [V, u] C [V, u]',

            C = [D, -q c; -q c', -q^2],

        in which n^2 has cancelled entry by entry.
        """
        c = frame.c
        q = frame.norm_p
        length = _norm(c)
        D = np.multiply.outer(c, -c)
        D.flat[:: c.size + 1] += f
        norm_D = _norm(D) + 4 * UNIT_ROUNDOFF * (_norm(f) + length * length)
        # p is rounded: j differs from Vc + p.
        off = gamma(c.size + 4) * (_norm(frame.j) + frame.norm_V * length)
        off = 2 * _norm(frame.j) * off + off * off

        # Either V and u are nearly orthonormal, or p is next to nothing.
        one = 1 + frame.skew_V
        apart = one * norm_D + 2 * one * length * q + q * q
        if not q:
            return _above(apart + off)
        mixed = _norm(frame.p @ frame.V) + gamma(frame.p.size + 2) * frame.norm_V * q
        along = q * length
        across = q * q
        together = math.sqrt(norm_D * norm_D + 2 * along * along + across * across)
        return _above(min(apart, (one + mixed / q) * together) + off)

    # The gradient (Lemma A6)

    def gradient(self, witness: Point) -> Enclosure | None:
        """Return g'(a) for every psd K + E, 0 <= E <= phi I; None where nothing is known.

        `witness` is as in `bracket`.
        """
        a = self.coefficients(witness)
        if not _is_vector(a, self.y.size):
            return None
        phi = self.kernel.phi
        size = np.abs(a)
        length = _norm(a)
        if not self.tau:
            values = self.quartic(a).classifier.values
            # |E_ij| <= phi in (Ea)_i and in a_i sum_j (2 K_ij E_ij + E_ij^2) a_j^2 / (4 eta).
            u = round_up(a * a)
            total = _above(float(self.kernel.roots @ u), a.size)
            across = 2 * self.kernel.roots * total
            across += product_up(phi, _above(float(u.sum()), a.size))
            slope = round_up(round_up(self.weight.upper * size) * round_up(across * INFLATION))
            more = round_up(phi * (length + slope))
            return Enclosure(values.mid, (values.rad + more * INFLATION) * INFLATION + 8 * ETA)

        weighted = self.weighted(a, a, witness.dual)
        if weighted is None:
            return None
        frame, found = weighted
        above = self._cut_off_above(frame)
        # a'(F o K)a/2 - penalty(F), from below.
        value = found.curvature
        short = _sum_above(above, found.penalty, -value.mid / 2, value.rad / 2)
        distance = math.sqrt(_above(max(short, 0.0) / self.eta))
        rows = np.sqrt(self.kernel.times_squares(a, a).upper) + phi * float(size.max()) + ETA
        more = distance * rows + product_up(phi, found.largest, length)
        rad = (found.values.rad + more * INFLATION) * INFLATION + 8 * ETA
        return Enclosure(found.values.mid, rad)

    # The primal value (Lemmas A3 and A4)

    def primal(
        self, classifier: Classifier, b: FloatArray, offset: float, scale: float
    ) -> tuple[float, FloatArray]:
        """Return an upper bound of the optimum, and what each point loses.

        Parameters
        ----------
        classifier
            (F o K)b.
        b, offset, scale
            The coefficients, the bias and the multiple.
        """
        f = classifier.values
        spread = abs(scale) * f.rad
        if self.epsilon is None:
            margins = (f.mid + offset) * (scale * self.y)
            slack = spread + (8 * UNIT_ROUNDOFF) * (1 + np.abs(margins))
            excess = 1 - margins
        else:
            predicted = (f.mid + offset) * scale
            sizes = np.abs(self.targets.mid) + np.abs(predicted) + self.epsilon
            slack = spread + self.targets.rad + (8 * UNIT_ROUNDOFF) * sizes + 8 * ETA
            excess = np.abs(self.targets.mid - predicted) - self.epsilon
        loss = np.maximum(excess + slack * INFLATION, 0.0)
        total = _above(float(loss.sum()), loss.size)
        squared_norm = max(_sum_above(classifier.curvature.mid, classifier.curvature.rad), 0.0)
        # The square of a small multiple may underflow, its product with a large norm does not.
        stretched = product_up(abs(scale), squared_norm, abs(scale))
        bound = _above(stretched / 2 + self.C * total)
        if self.kernel.phi:
            bound = self._charged(bound, _above(self.kernel.phi * classifier.largest), scale * b)
        return _sum_above(bound, classifier.penalty), loss

    def _charged(self, bound: float, psi: float, b: FloatArray) -> float:
        """The bound with the charge of Lemma A4; b is scaled and rounded."""
        size = np.abs(b)
        if self.epsilon is None:
            reach = np.maximum(size, np.abs(self.y * self.C - b))
        else:
            reach = self.C + size
        # b is rounded, also at underflow.
        far = norm_up(reach + ETA)
        charged = _above(bound + product_up(far, psi, far) / 2, b.size)
        share = _above(2 * psi * self.C)
        if self.epsilon is not None or not share < 0.5:
            return charged
        length = norm_up(size + ETA)
        short = product_up(length, psi, length)
        first = min(charged, _above((bound + short) / (1 - share), b.size))
        # Knowing v so far, ||z|| <= 1'|z| <= 2 v.
        return min(first, _above(bound + short + 4 * product_up(first, psi, first), b.size))


def _is_vector(x: FloatArray, size: int) -> bool:
    return x.shape == (size,) and bool(np.isfinite(x).all())


def _dot(a: FloatArray, x: Enclosure) -> Enclosure:
    """a'x."""
    # Each radius is rounded up where it underflows: an a_i may be large.
    rad = float(np.abs(a) @ (x.rad + gamma(a.size + 1) * np.abs(x.mid) + ETA))
    return Enclosure(float(a @ x.mid), rad * INFLATION + (a.size + 8) * ETA)


def _plus(x: Enclosure, y: Enclosure) -> Enclosure:
    """x + y for vectors."""
    mid = x.mid + y.mid
    rad = x.rad + y.rad + (2 * UNIT_ROUNDOFF) * np.abs(mid)
    return Enclosure(mid, rad * INFLATION)


def _finite(end: float, nothing: float) -> float:
    """An end as it is; the one that proves nothing where it is not finite."""
    return float(end) if math.isfinite(end) else nothing


def _norm(x: FloatArray) -> float:
    """An upper bound of the Frobenius norm; squares below 2^-1022 count for nothing."""
    if x.size <= MAX_SHORT_SUM:
        square = float(np.vdot(x, x))
        sums = x.size + 8
    else:
        # Row by row: the bound of a long sum is no better than the number of its terms.
        square = float(np.einsum("...i,...i->...", x, x).sum())
        sums = sum(x.shape) + 8
    return math.sqrt(square) * (1 + sums * UNIT_ROUNDOFF) + x.size * 2.0**-510


def _psd_shortfall(N: FloatArray, half: float, size: float) -> float:
    """What must be added to N + half I, as a multiple of I, to prove it psd; N is overwritten.

    Parameters
    ----------
    N
        A difference of symmetric matrices, rounded: its lower triangle is read.
    half
        What is added to its diagonal.
    size
        About the norm of what it is a difference of, whose rounding it carries.
    """
    order = len(N)
    N.flat[:: order + 1] += half
    # Lemma P1 for N + delta I; N is singular where nothing is cut off.
    delta = 1.25 * cholesky_shift(N) + 4 * UNIT_ROUNDOFF * math.sqrt(order) * size
    if not is_positive_semidefinite(N, -delta):
        delta = max(-eigenvalue_floor(N), 0.0)
    # Two roundings of each entry; N + delta I is psd, so that its norm is below its trace.
    trace = float(np.abs(N.diagonal()).sum()) + 2 * order * delta + order * half
    return _above(delta + 2 * UNIT_ROUNDOFF * trace * INFLATION)
