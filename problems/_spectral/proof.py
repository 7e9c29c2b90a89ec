"""What spectra, kernels and levels prove about spectral kernels, in exact arithmetic.

Kernels that commute with the Laplacian (`SpectralBounds`). The directions A, B of
`klopt.problems._spectral.data` are the data. With rest = max(||Y||^2 - sum A, 0) (what the
directions that were left out see of the labels; 0 where none was),

    minimise over lam >= 0   sum_i A_i / (lam_i + 1/C) / 2 + mu B_i lam_i  +  C rest / 2.

**Lemma S1.** For a_i^2 <= 2 mu B_i the value is at least sum_i a_i A_i^1/2 - a_i^2 / (2C) + C rest /
2, since A / h >= 2 a A^1/2 - a^2 h for h = lam + 1/C. The best a_i is min(C A_i^1/2, (2 mu
B_i)^1/2). All terms of both sums are nonnegative, and a_i^2 / (2C) <= a_i A_i^1/2 / 2: the rounding
of n terms is gamma_(n + 40) of the sum.

All kernels (`FreeBounds`).

    minimise over K >= 0   tr Y'(K_JJ + I/C)^-1 Y / 2 + mu tr(K L)

((6) and (7) of Mao, Tsang). L is positive definite; J are the labelled points, or all points, Y = 0
on the others.

**Lemma S2 (value).** With H = K_JJ + I/C >= I/C, any A and E = Y - H A,

    Y'H^-1 Y = A'Y + A'E + E'H^-1 E,    0 <= tr E'H^-1 E <= C ||E||^2.

**Lemma S3 (dual value).** If A'(L^-1)_JJ A <= 2 mu I, the value is at least tr A'Y - ||A||^2 / (2C),
since <K, mu L - AA'/2> >= 0. With A = 0 outside J, any X, E = A - L X and L >= floor I > 0,

    A'L^-1 A = A'X + X'E + E'L^-1 E,    ||E'L^-1 E|| <= ||E||^2 / floor.

Sums are charged by Lemma E2, in Frobenius norms: || |L||X| || <= ||L||_1 ||X|| for a symmetric L.

Alignment (`CurveBounds`). The levels r_i and strengths A_i of the directions are the data. With the
target T of the labelled points

    maximise over 0 <= t < max r   h(t) = sum_i lam_i A_i / (||lam|| ||T||),    lam_i = [r_i - t]_+.

**Lemma S4 (pieces).** Sort r_1 >= r_2 >= .. and set r_(n+1) = 0. For r_(k+1) <= t <= r_k lam is a
nonnegative combination x_1 p + x_2 q of p = [r - r_k]_+ and q = [r - r_(k+1)]_+. With N the inner
products of p and q and a their products with A, h = a'x / (x'N x)^1/2 / ||T||, and for every y >= 0
with N y >= a it is at most (y'N y)^1/2 / ||T|| (Cauchy and Schwarz). A multiple y of any x >= 0 will
do; that of the maximum is exact. With the gaps g_k = r_k - r_(k+1)

    sum_i q_i = sum_(j <= k) j g_j,    a'q = sum_(j <= k) Z_j g_j,    Z_j = A_1 + .. + A_j,
    ||q||^2 = ||p||^2 + 2 g_k sum_i p_i + k g_k^2,    p'q = ||p||^2 + g_k sum_i p_i:

nothing but sums of nonnegative numbers, all within gamma_(2n + 12), so that h is within twice that.

Mao, Tsang (2010), Parameter-free spectral kernel learning, (6), (7), (8) and Propositions 2 to 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix
from klopt.proof.directed import norm_up, product_up, quotient_up
from klopt.proof.enclosure import UNIT_ROUNDOFF, gamma, round_up
from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite

__all__ = ["CurveBounds", "FreeBounds", "SpectralBounds"]

UNDERFLOW = 2.0**-900
"""What underflow may take from a sum of numbers that are not huge."""
MIN_SIZE = 2.0**-300
MAX_SIZE = 2.0**300
"""Of arrays whose norm is smaller or larger nothing is said: squares leave the range of floats."""
SLACK = 1.01
"""Covers the rounding of error bounds and products of errors."""


# --- kernels that commute with the Laplacian


@dataclass(frozen=True, eq=False)
class SpectralBounds:
    """Bounds over the kernels that commute with a Laplacian.

    Parameters
    ----------
    A, B : arrays
        Strength and roughness of the directions.
    Y : array
        Targets of the labelled points.
    C, mu : float
        Penalties of errors and of rough kernels.
    """

    A: FloatArray
    B: FloatArray
    Y: FloatArray
    C: float
    mu: float
    complete: bool = False
    """Whether no direction was left out: then nothing of Y lies beyond them."""

    @cached_property
    def rest(self) -> float:
        """What is lost for every kernel: C ||Y||^2 / 2 beyond the directions."""
        if self.complete:
            return 0.0
        # The entries of Y are 0, 1 and -1.
        beyond = math.fsum([float(np.count_nonzero(self.Y)), *(-self.A).tolist()])
        return self.C * max(beyond, 0.0) / 2

    def upper(self, spectrum: FloatArray) -> float:
        """Return an upper bound of the value at lam = [spectrum]_+."""
        lam = np.maximum(spectrum, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            # mu B may underflow where lam is large: it is rounded up.
            rough = np.where(self.B > 0, round_up(self.mu * self.B), 0.0) * lam
            loss = self.A / (lam + 1 / self.C)
            if math.isinf(1 / self.C):
                # A C bounds it for all lam >= 0.
                loss = round_up(self.A * self.C)
            terms = loss / 2 + rough
            total = float(terms.sum()) + self.rest
        if not math.isfinite(total):
            return math.inf
        return total * (1 + SLACK * gamma(lam.size + 40)) + UNDERFLOW

    @cached_property
    def multipliers(self) -> FloatArray:
        """The best a of Lemma S1, rounded down."""
        with np.errstate(over="ignore"):
            # Roots do not overflow: an infinite one would be no constraint.
            steepest = math.sqrt(2.0) * math.sqrt(self.mu) * np.sqrt(self.B)
            best = np.minimum(self.C * np.sqrt(self.A), steepest * (1 - 8 * UNIT_ROUNDOFF))
        # Their product is not known to 8 u where it is subnormal.
        return np.where(steepest > 2.0**-480, best, 0.0)

    @cached_property
    def lower(self) -> float:
        """The dual value of Lemma S1; 0 is a bound as well."""
        a = self.multipliers
        with np.errstate(over="ignore", invalid="ignore"):
            # a / C is at most A^1/2, and its rounding beside that one's: a a may underflow.
            total = float(np.sum(a * np.sqrt(self.A) - a * (a / self.C) / 2)) + self.rest
        if not math.isfinite(total):
            return 0.0
        return max(0.0, total * (1 - SLACK * gamma(a.size + 40)) - UNDERFLOW)


# --- all kernels


@dataclass(frozen=True, eq=False)
class FreeBounds:
    """Bounds over all kernels.

    Parameters
    ----------
    L : sparse matrix
        The Laplacian with its ridge, each entry of the diagonal rounded once.
    J : array
        The points that are fitted.
    Y : array
        Their targets.
    C, mu : float
        Penalties of errors and of rough kernels.
    ridge : float
        What was added to the diagonal.
    """

    L: SparseMatrix
    J: npt.NDArray[np.intp]
    Y: FloatArray
    C: float
    mu: float
    ridge: float

    @cached_property
    def floor(self) -> float:
        """A proven lower bound of the eigenvalues of L."""
        dense = self.L.toarray()
        rounding = 2 * UNIT_ROUNDOFF * float(np.abs(dense.diagonal()).max())
        half = self.ridge / 2
        # Half the ridge is a bound that takes one factorisation, and as good as any.
        if half > rounding and is_positive_semidefinite(dense, half):
            return half - rounding
        return eigenvalue_floor(dense) - rounding

    @cached_property
    def _size_of_L(self) -> float:
        """||L||_1."""
        return SLACK * float(np.max(abs(self.L).sum(axis=0)))

    @cached_property
    def _size_of_Y(self) -> float:
        return _norm(self.Y)

    @cached_property
    def _terms_of_L(self) -> int:
        """The most entries of a row of L, and some more operations: rounding of L X."""
        return int(np.diff(self.L.indptr).max()) + 4

    def upper(self, F: FloatArray, A: FloatArray) -> float:
        """Return an upper bound of the value of K = FF', by Lemma S2 with any A."""
        F_J = F[self.J]
        images = F_J.T @ A
        H_A = F_J @ images
        E = self.Y - H_A - A / self.C
        LF = self.L @ F

        # The errors of E by the norms of the factors.
        p, q = F_J.shape
        size_F_J = _norm(F_J)
        size_A = _norm(A)
        size_F = _norm(F)
        size_E = _norm(E) * (1 + SLACK * gamma(E.size + 4))
        formed = product_up(size_F_J, size_A, size_F_J, gamma(p + q + 4))
        subtracted = 4 * UNIT_ROUNDOFF * (_norm(H_A) + size_A / self.C + self._size_of_Y)
        error = SLACK * (formed + subtracted) + UNDERFLOW

        loss = float(np.vdot(A, self.Y)) + float(np.vdot(A, E))
        loss += self.C * (size_E + error) * (size_E + error)
        loss_error = gamma(A.size + 4) * size_A * (self._size_of_Y + size_E) + size_A * error

        roughness = float(np.vdot(F, LF))
        summed = gamma(F.size + 4) * size_F * _norm(LF)
        rough_error = product_up(size_F, self._size_of_L, size_F, gamma(self._terms_of_L)) + summed

        value = loss / 2 + self.mu * roughness
        value += SLACK * (loss_error / 2 + self.mu * rough_error) + UNDERFLOW * (1 + self.mu)
        size = size_A + size_F + self._size_of_L + self.C + self.mu
        if not (math.isfinite(value) and size < MAX_SIZE):
            return math.inf
        # The last sums: no more than a few units of their terms.
        return value + 16 * UNIT_ROUNDOFF * (abs(loss) + self.C * size_E * size_E + abs(value))

    def lower(self, A: FloatArray, X: FloatArray) -> float:
        """Return the dual value of A at its best length, by Lemma S3 with any X; at least 0.

        L must be positive definite; otherwise nothing is proven.
        """
        if not self.floor > 0:
            return -math.inf
        aligned = float(np.vdot(A, self.Y))
        size_A = _norm(A)
        # Where no multiple of A is better than 0, or where squares leave the range of floats.
        if not (aligned > 0 and MIN_SIZE < size_A < MAX_SIZE):
            return 0.0
        largest = self._largest(A, X)
        size = quotient_up(size_A * size_A, self.C)
        if not (0 < largest < math.inf and size < math.inf):
            return 0.0

        # Any length s with s^2 largest <= 2 mu will do. Roots do not underflow, a quotient may.
        length = math.sqrt(2 * self.mu) / math.sqrt(largest) * (1 - 8 * UNIT_ROUNDOFF)
        if length * size > aligned:
            length = aligned / size
        error = SLACK * gamma(A.size + 16) * (size_A * self._size_of_Y + length * size)
        # length size is at most about what is aligned: this product does not underflow alone.
        value = length * aligned - length * (length * size) / 2 - length * error
        value -= 16 * UNIT_ROUNDOFF * length * aligned + UNDERFLOW * (1 + length) * (1 + length)
        return max(0.0, value) if math.isfinite(value) else 0.0

    def _largest(self, A: FloatArray, X: FloatArray) -> float:
        """An upper bound of the largest eigenvalue of A'(L^-1)_JJ A."""
        X_J = X[self.J]
        E = -(self.L @ X)
        E[self.J] += A
        M = A.T @ X_J + X.T @ E

        size_A = _norm(A)
        size_X = _norm(X)
        size_E = _norm(E)
        formed = product_up(size_X, self._size_of_L, gamma(self._terms_of_L))
        formed += 2 * UNIT_ROUNDOFF * size_A
        off = size_E + SLACK * formed + UNDERFLOW
        summed = gamma(len(X) + 4) * (size_A * _norm(X_J) + size_X * size_E)
        # Divided first: the square of what is off may underflow, and the floor be small.
        beyond = product_up(off, quotient_up(off, self.floor))
        error = SLACK * (summed + size_X * formed + beyond) + UNDERFLOW

        largest = float(M.trace())
        if len(M) > 1 and math.isfinite(largest):
            # The trace is a bound, up to the error in each direction; most often there is a better.
            error += gamma(len(M)) * _norm(M)
            guess = float(np.linalg.eigvalsh(M)[-1]) + 64 * gamma(len(M) + 8) * largest
            if is_positive_semidefinite(-(M + M.T) / 2, -guess):
                largest = guess
            else:
                error *= len(M)
        return largest + error + 4 * UNIT_ROUNDOFF * (abs(largest) + error)


def _norm(M: FloatArray) -> float:
    """An upper bound of the Frobenius norm; infinite where that is not known."""
    return norm_up(M)


# --- alignment


@dataclass(frozen=True, eq=False)
class CurveBounds:
    """Bounds of the alignment h(t) of spectral kernels with the target.

    Parameters
    ----------
    r, A : arrays
        Levels and strengths of the directions.
    target_norm : float
        ||T||, rounded at most twice.
    """

    r: FloatArray
    A: FloatArray
    target_norm: float

    def weights(self, level: float) -> FloatArray:
        """Return [r - level]_+ and, at the top of the curve, its limit: the largest r alone."""
        weights = np.maximum(self.r - level, 0.0)
        # The curve itself ends before its top, where all weights vanish.
        if weights.any():
            return weights
        return np.asarray(self.r == self._top, dtype=np.float64)

    @cached_property
    def _top(self) -> float:
        """max r."""
        return float(self.r.max())

    def lower(self, level: float) -> float:
        """Return a lower bound of h at a level; nothing is cancelled."""
        # A level below 0, or NaN, is none of the curve.
        if not (level >= 0 and self._top > 0):
            return -math.inf
        weights = self.weights(level)
        weights = weights / float(weights.max())
        aligned = float(weights @ self.A)
        h = aligned / (math.sqrt(float(weights @ weights)) * self.target_norm)
        # Weights that underflow count A times.
        lost = UNDERFLOW * (1 + float(self.A.max()) / self.target_norm)
        return h * (1 - SLACK * gamma(2 * weights.size + 24)) - lost

    @cached_property
    def upper(self) -> float:
        """The largest bound of all pieces (Lemma S4)."""
        if not self._top > 0:
            return math.inf
        # All proposals at once: one row for each.
        x_p, x_q = zip(*self.proposals, strict=True)
        bounds = self._bounds(np.array(x_p), np.array(x_q))
        highest = float(bounds.min(axis=0).max()) + UNDERFLOW
        if not math.isfinite(highest):
            return math.inf
        # A bound of scaled sums is far from both ends of the range, its multiple may not be.
        highest = float(np.ldexp(highest, self._exponent_of_A))
        if not math.isfinite(highest):
            return math.inf
        h = highest / self.target_norm
        return h * (1 + SLACK * 2 * gamma(2 * self.r.size + 32)) + UNDERFLOW

    def _bounds(self, x_p: FloatArray, x_q: FloatArray) -> FloatArray:
        """(y'N y)^1/2 of the smallest multiple y of x with N y >= a, for each piece."""
        s = self.pieces
        N_x_p = s.pp * x_p + s.pq * x_q
        N_x_q = s.pq * x_p + s.qq * x_q
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            length_p = np.where(s.a_p > 0, s.a_p / N_x_p, 0.0)
            length_q = np.where(s.a_q > 0, s.a_q / N_x_q, 0.0)
            length = np.maximum(length_p, length_q)
            bound = length * np.sqrt(x_p * N_x_p + x_q * N_x_q)
        bound[~np.isfinite(bound)] = np.inf
        return bound

    @cached_property
    def proposals(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """The x to try: both ends of each piece, and the stationary point, if it lies between."""
        s = self.pieces
        zero = np.zeros_like(s.pp)
        one = np.ones_like(s.pp)
        x_p = np.maximum(s.qq * s.a_p - s.pq * s.a_q, 0.0)
        x_q = np.maximum(s.pp * s.a_q - s.pq * s.a_p, 0.0)
        # p may be far shorter than q: x is left as it is, since shares would lose their digits.
        x_q[(x_p == 0) & (x_q == 0)] = 1.0
        # A power of two, so that products of x with N x do not underflow. Any x will do.
        _, exponent = np.frexp(np.maximum(x_p, x_q))
        x_p = np.ldexp(x_p, -exponent)
        x_q = np.ldexp(x_q, -exponent)
        return (one, zero), (zero, one), (x_p, x_q)

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        return np.argsort(-self.r, kind="stable")

    @cached_property
    def _exponent_of_A(self) -> int:
        return math.frexp(float(self.A.max()))[1]

    @cached_property
    def pieces(self) -> _Pieces:
        """The sums of Lemma S4, r and A scaled to 1 by powers of two."""
        r = np.ldexp(self.r[self._order], -math.frexp(self._top)[1])
        A = np.ldexp(self.A[self._order], -self._exponent_of_A)
        gap = r - np.append(r[1:], 0.0)
        k = np.arange(1.0, r.size + 1)
        before = np.append(0.0, np.cumsum(k * gap)[:-1])
        qq = np.cumsum(2 * gap * before + k * gap * gap)
        pp = np.append(0.0, qq[:-1])
        a_q = np.cumsum(np.cumsum(A) * gap)
        a_p = np.append(0.0, a_q[:-1])
        return _Pieces(pp, pp + gap * before, qq, a_p, a_q)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """||p||^2, p'q, ||q||^2, A'p and A'q of each piece."""

    pp: FloatArray
    pq: FloatArray
    qq: FloatArray
    a_p: FloatArray
    a_q: FloatArray
