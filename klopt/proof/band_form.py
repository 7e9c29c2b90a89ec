"""A symmetric matrix as a band, by reflections that are proven: log det(I + g A) for many g.

With k columns at a time, P the part of A below its first k rows in them,

    A  =  [A11, P'; P, A22]   ->   [A11, P'H; H'P, H' A22 H],      H = I - F V',   F = V T,

V and T of a QR factorisation, so that H'P is upper triangular and n / k steps leave a band B. One
reduction takes 4/3 n^3 flops; each g then takes the Cholesky factor of a band, n k^2.

**Lemma W1 (reflection).** For any V (m x k) and T let N = F'F and F = VT + G. Then

    ||H'H - I||_*  =  ||HH' - I||_*  <=  sqrt(k) (||V||^2 ||N - T - T'||_F + 2 ||V|| ||G||_F):

both have the eigenvalues s^2 - 1, s the singular values of H, and H'H - I = V(N - T - T')V' - VG' -
GV' (||.||_* is the sum of the absolute eigenvalues).

**Lemma W2 (two-sided product).** H'AH = A - VW' - WV' with Z = AF, S = F'Z and W = Z - VS/2. Let z,
s and w bound what the computed Z, S and W are off by in the Frobenius norm (Lemma E2: the product
of X and Y, sums of q terms, is off by gamma_q ||X||_F ||Y||_F):

    z = gamma_m ||A||_F ||F||_F,     s = ||F|| z + gamma_m ||F||_F ||Z||_F + 2u ||S||_F,
    w = z + ||V|| s/2 + gamma_{k+2} (||Z||_F + ||V||_F ||S||_F / 2).

Then the computed H'AH is off by 2 ||V|| w + gamma_{2k+2} (||A||_F + 2 ||V||_F ||W||_F) at most.

**Lemma W3 (chain).** Let A_0 = A and A_{i+1} = Q_i' A_i Q_i + E_i with ||Q_i Q_i' - I||_* <= d_i and
||E_i||_F <= e_i, A >= -f I with f >= 0. With d and e their sums, d < 1/2, all eigenvalues of all A_i
are at least -(f + e)(1 + 2d) =: -f', and for g f' <= 1/2 and theta = d + g sqrt(n) e / (1 - g f') < 1

    |log det(I + g B) - log det(I + g A)|  <=  -log(1 - theta),

B the last A_i. For det(I + g Q'AQ) = det(I + g A) det(I + C(QQ' - I)), C = (I + g A)^-1 g A, ||C|| <=
1; and det(M + g E) = det M det(I + M^-1 g E) with ||M^-1 E||_* <= sqrt(n) ||E||_F / (1 - g f'). For
||X||_* < 1 the logarithm of det(I + X) is at most -log(1 - ||X||_*) in size, along t X no
determinant is 0, and the product of 1 - x_i is at least 1 - sum x_i.

**Lemma W4 (band).** If the Cholesky factorisation of M = fl(I + g B), of half-bandwidth b, runs to
completion, its factor is that of I + g B + E with |E_ij| <= c (M_ii M_jj)^1/2, c = gamma_{b+8} / (1 -
gamma_{b+8}) (Higham, Accuracy and Stability, Theorem 10.3: no sum has more than b + 1 terms). With
I + g B >= a I and tau = c tr M / a < 1/2, log det(I + g B) is off by sqrt(n) tau + tau^2 at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, Enclosure, gamma
from klopt.proof.log_det import log_det_change
from klopt.proof.semidefinite import spectral_norm_bound

__all__ = [
    "BandFactor",
    "BandForm",
    "Proposal",
    "Reflection",
    "cholesky_log_det_error",
    "norm_below",
]

WIDTH = 64
"""Columns that are reflected at a time, and the half-bandwidth."""
SUMMED_ROWS = 128
"""Rows that are summed at a time: sums of sums lose fewer digits than one long sum."""
SAFE_NORM = 1e140
"""Norms from its reciprocal to here: their squares neither overflow nor underflow."""
INFLATION = 1 + 2.0**-40
"""Covers the rounding of a bound of a few dozen operations on numbers, none negative."""

Proposal: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class Reflection:
    """H = I - F V' on the coordinates from `start`."""

    start: int
    V: FloatArray
    F: FloatArray


@dataclass(frozen=True, eq=False)
class BandForm:
    """A matrix A as Q B Q', B a band, nearly: Lemma W3 says how nearly.

    Parameters
    ----------
    band
        B: row i has the diagonal number i below the main one, as LAPACK has it.
    reflections
        Their product is Q.
    defect
        d, a bound of the sum of all ||Q_i Q_i' - I||_*.
    error
        e, a bound of the sum of all ||E_i||_F.

    >>> A = np.add.outer(np.arange(4.0), np.arange(4.0)) + 9 * np.eye(4)
    >>> from klopt.numerics.householder import householder
    >>> form = BandForm.of(A, householder, width=1)
    >>> found = form.factor(0.5).log_det(floor=0.0)
    >>> found.contains(np.linalg.slogdet(np.eye(4) + A / 2)[1]), form.band.shape
    (True, (2, 4))
    """

    band: FloatArray
    reflections: tuple[Reflection, ...]
    defect: float
    error: float

    @classmethod
    def of(cls, A: FloatArray, propose: Proposal, width: int = WIDTH) -> BandForm:
        """Return the band of a symmetric matrix: 4/3 n^3 flops, three matrices.

        Parameters
        ----------
        A
            The matrix, whose lower triangle is read.
        propose
            V and T for a panel P (m x width), V of m x min(m, width): any do
            (`klopt.numerics.householder`). It gets a copy of the panel.
        width
            Columns that are reflected at a time.
        """
        n = len(A)
        width = max(min(width, n - 1), 0)
        band = np.zeros((width + 1, n), order="F")
        reflections = []
        defect = 0.0
        error = 0.0
        norm = norm_up(A)
        rest = np.array(A, dtype=float, order="F")

        start = 0
        # What is left is a band once it has no more than one row beside the panel.
        while len(rest) > width + 1 and width:
            panel = rest[width:, :width].copy(order="F")
            below = rest[width:, width:].copy(order="F")
            norm = norm_below(norm, rest[:width, :width], panel)
            step = _Step.of(below, panel, norm, *propose(panel.copy()))
            rest[width:, :width] = 0.0
            rest[width : 2 * width, :width] = step.triangle
            _store(band, start, rest, width)
            reflections.append(Reflection(start + width, step.V, step.F))
            defect += step.defect
            error += step.error
            norm = (norm * (1 + step.defect) + step.error) * INFLATION
            rest = step.below
            start += width
        _store(band, start, rest, len(rest))
        return cls(band, tuple(reflections), defect * INFLATION, error * INFLATION)

    @property
    def size(self) -> int:
        """The order of the matrix."""
        return len(self.band[0])

    def rotate(self, C: FloatArray) -> FloatArray:
        """Return Q'C, rounded."""
        C = np.array(C, dtype=float, order="C")
        for reflection in self.reflections:
            part = C[reflection.start :]
            _subtract_product(part, reflection.V, reflection.F.T @ part)
        return C

    def rotate_back(self, C: FloatArray) -> FloatArray:
        """Return Q C, rounded."""
        C = np.array(C, dtype=float, order="C")
        for reflection in reversed(self.reflections):
            part = C[reflection.start :]
            _subtract_product(part, reflection.F, reflection.V.T @ part)
        return C

    def multiply(self, C: FloatArray) -> FloatArray:
        """Return B C, rounded."""
        from scipy.linalg.blas import dsbmv

        width = len(self.band) - 1
        columns = [dsbmv(width, 1.0, self.band, column, lower=1) for column in C.T]
        return np.stack(columns, axis=1) if columns else np.zeros_like(C)

    def factor(self, gamma: float) -> BandFactor:
        """Return the Cholesky factor of I + gamma B."""
        from scipy.linalg.lapack import dpbtrf

        M = gamma * self.band
        M[0] += 1.0
        diagonal = M[0].copy()
        factor, failed = dpbtrf(M, lower=1, overwrite_ab=1)
        return BandFactor(self, gamma, factor, diagonal, not failed)


@dataclass(frozen=True, eq=False)
class BandFactor:
    """The Cholesky factor of M = I + gamma B.

    Parameters
    ----------
    form
        Where B comes from.
    gamma
        The factor of B.
    factor
        The Cholesky factor, a band.
    diagonal
        That of M.
    complete
        Whether the factorisation ran to completion.
    """

    form: BandForm
    gamma: float
    factor: FloatArray
    diagonal: FloatArray
    complete: bool

    def solve(self, C: FloatArray) -> FloatArray:
        """Return M^-1 C, rounded."""
        from scipy.linalg.lapack import dpbtrs

        return np.asarray(dpbtrs(self.factor, C, lower=1)[0])

    def log_det(self, floor: float) -> Enclosure:
        """Return log det(I + gamma A) for the matrix A that the band comes from.

        Parameters
        ----------
        floor
            A lower bound of the eigenvalues of A.
        """
        form = self.form
        pivots = self.factor[0]
        if not (self.complete and np.isfinite(pivots).all() and form.defect < 0.5):
            return Enclosure(0.0, math.inf)
        below = (max(-floor, 0.0) + form.error) * (1 + 2 * form.defect) * INFLATION
        smallest = 1 - self.gamma * below * INFLATION
        if not smallest >= 0.5:
            return Enclosure(0.0, math.inf)
        # Lemma W3; what is at least 1/2 has lost 2 u of itself at most, which INFLATION covers.
        off = self.gamma * math.sqrt(form.size) * form.error / smallest
        change = log_det_change(1.0, (form.defect + off) * INFLATION)
        logs = Enclosure.of(pivots.copy()).log().sum() * 2.0
        # Lemma W4.
        error = cholesky_log_det_error(self.diagonal, smallest, len(form.band) + 7)
        return logs + change + Enclosure(0.0, error)


def cholesky_log_det_error(diagonal: FloatArray, smallest: float, terms: int) -> float:
    """Return how far 2 sum log L_ii of a computed Cholesky factor of M may be from log det M.

    Parameters
    ----------
    diagonal
        That of M.
    smallest
        No eigenvalue of M is below it.
    terms
        How many roundings a term passes through: the order of M or, for a band, its half-width,
        and a few more for how M was formed (Lemma W4).

    >>> 0 < cholesky_log_det_error(np.ones(3), 1.0, 8) < 1e-13
    True
    """
    n = len(diagonal)
    if not smallest > 0.25:
        return math.inf
    g = gamma(terms)
    tau = g / (1 - g) * math.fsum(diagonal.tolist()) / smallest * INFLATION
    if not tau < 0.5:
        return math.inf
    return (math.sqrt(n) * tau + tau * tau) * INFLATION


@dataclass(frozen=True, eq=False)
class _Step:
    """H'P and H'AH with what they are off by."""

    V: FloatArray
    F: FloatArray
    triangle: FloatArray
    below: FloatArray
    defect: float
    error: float

    @classmethod
    def of(cls, A: FloatArray, P: FloatArray, norm: float, V: FloatArray, T: FloatArray) -> _Step:
        """Return the step by any V and T; A, of which the lower triangle is read, is written over.

        `norm` bounds ||A||_F.
        """
        from scipy.linalg.blas import dsyr2k

        m = len(P)
        k = min(P.shape)
        # Others would be spread over rows that they are not about.
        if V.shape != (m, k) or T.shape != (k, k):
            raise ValueError("the shapes of V and T do not belong to the panel")
        # Sums over points are made of short ones.
        long = gamma(min(m, SUMMED_ROWS) + m // SUMMED_ROWS + 4)
        F = V @ T
        norm_V = norm_up(V)
        norm_F = norm_up(F)
        VV = _tall_product(V, V)
        N = _tall_product(F, F)
        # ||V||^2 <= the row sums of |V'V|, and alike for F.
        spectral_V = math.sqrt(spectral_norm_bound(VV) + long * (norm_V * norm_V)) * INFLATION
        spectral_F = math.sqrt(spectral_norm_bound(N) + long * (norm_F * norm_F)) * INFLATION

        # Lemma W1
        skew = norm_up(N - (T + T.T)) + long * (norm_F * norm_F)
        skew += gamma(4) * (norm_up(N) + 2 * norm_up(T))
        formed = gamma(k + 2) * norm_V * norm_up(T)
        defect = (
            math.sqrt(k) * (spectral_V * spectral_V * skew + 2 * spectral_V * formed) * INFLATION
        )

        # H'P = P - V(F'P): what is not in the triangle is dropped.
        X = _tall_product(F, P)
        reflected = P - V @ X
        triangle = np.triu(reflected[:k])
        reflected[:k] -= triangle
        norm_P = norm_up(P)
        dropped = norm_up(reflected) + spectral_V * long * norm_F * norm_P
        dropped += gamma(k + 4) * (norm_P + norm_V * norm_up(X))

        # Lemma W2
        Z = _symmetric_product(A, F)
        S = _tall_product(F, Z)
        S = (S + S.T) / 2
        W = Z - V @ (S / 2)
        norm_Z = norm_up(Z)
        norm_S = norm_up(S)
        z = long * norm * norm_F
        s = spectral_F * z + long * norm_F * norm_Z + 2 * UNIT_ROUNDOFF * norm_S
        w = z + spectral_V * s / 2 + gamma(k + 4) * (norm_Z + norm_V * norm_S / 2)
        product = gamma(2 * k + 4) * (norm + 2 * norm_V * norm_up(W)) + 2 * spectral_V * w
        below = dsyr2k(
            -1.0, np.asfortranarray(V), np.asfortranarray(W), 1.0, A, lower=1, overwrite_c=1
        )

        # Underflow: each of the sums above may lose eta for each of its terms.
        size = 1.0 + norm + norm_V + norm_F + norm_P + norm_Z + norm_S
        underflow = 64.0 * (m + k) ** 3 * (size * size * size) * ETA
        # H'P and its transpose.
        error = (math.sqrt(2) * dropped + product) * INFLATION + underflow
        return cls(np.ascontiguousarray(V), F, triangle, below, defect + underflow, error)


def _subtract_product(C: FloatArray, X: FloatArray, Y: FloatArray) -> None:
    """Take XY off the rows of a C-ordered matrix, in place."""
    from scipy.linalg.blas import dgemm

    if C.size:
        # BLAS reads columns: it sees the transposes.
        dgemm(-1.0, Y.T, X.T, beta=1.0, c=C.T, overwrite_c=1)


def _tall_product(X: FloatArray, Y: FloatArray) -> FloatArray:
    """X'Y, `SUMMED_ROWS` rows at a time."""
    total = X[:SUMMED_ROWS].T @ Y[:SUMMED_ROWS]
    for start in range(SUMMED_ROWS, len(X), SUMMED_ROWS):
        rows = slice(start, start + SUMMED_ROWS)
        total += X[rows].T @ Y[rows]
    return total


def _symmetric_product(A: FloatArray, X: FloatArray) -> FloatArray:
    """A X by the lower triangle of a symmetric A, `SUMMED_ROWS` terms at a time."""
    Z = np.zeros(X.shape)
    blocks = [slice(start, start + SUMMED_ROWS) for start in range(0, len(A), SUMMED_ROWS)]
    for j, columns in enumerate(blocks):
        corner = np.tril(A[columns, columns])
        Z[columns] += (corner + np.tril(corner, -1).T) @ X[columns]
        for rows in blocks[j + 1 :]:
            part = A[rows, columns]
            Z[rows] += part @ X[columns]
            Z[columns] += part.T @ X[rows]
    return Z


def norm_below(norm: float, corner: FloatArray, panel: FloatArray) -> float:
    """Return a bound of ||A22||_F from one of A = [A11, P'; P, A22], A11 by its lower triangle.

    >>> 2.0 <= norm_below(3.0, np.array([[1.0]]), np.array([[2.0], [0.0]]) ** 0.5) < 2.0001
    True
    """
    # Squares that underflow would say that nothing is left.
    if not 1 / SAFE_NORM < norm < SAFE_NORM:
        return norm
    lower = np.tril(corner, -1)
    diagonal = corner.diagonal()
    taken = 2 * float(np.vdot(panel, panel)) + 2 * float(np.vdot(lower, lower))
    taken += float(diagonal @ diagonal)
    taken *= 1 - 2 * gamma(panel.size + corner.size + 8)
    left = norm * norm * (1 + 4 * UNIT_ROUNDOFF) - taken
    # Nothing below the rounding of the difference is known.
    return math.sqrt(max(left, 0.0) + 4 * UNIT_ROUNDOFF * norm * norm) * INFLATION


def _store(band: FloatArray, start: int, A: FloatArray, columns: int) -> None:
    """Put the first columns of A, from the diagonal down, into the columns of a band."""
    for j in range(columns):
        part = A[j : j + len(band), j]
        band[: len(part), start + j] = part
