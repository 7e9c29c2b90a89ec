"""Proofs that a symmetric matrix is positive semidefinite, by one Cholesky factorisation.

**Lemma P1 (Rump, BIT 46, 2006).** Let A be symmetric. If the Cholesky factorisation of fl(A - c I)
runs to completion in floating point and

    c  >=  sum_i phi_{i+1} a_ii  +  underflow  +  u max|a_ii|,       phi_k = gamma_k / (1 - gamma_k),

then A is positive semidefinite. A need not be well conditioned, and no directed rounding is used.

**Lemma P2 (radius).** If |E| <= R entry by entry, E symmetric, then ||E|| <= the largest row sum of
R: A + E is positive semidefinite for all such E if A - ||R|| I is.

**Lemma P3 (eigenvalue).** If A - t I is positive semidefinite, the smallest eigenvalue of A is at
least t. An approximate eigenvalue says which t to try; the factorisation decides.
"""

from __future__ import annotations

import math

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, Enclosure, enlarged, gamma

__all__ = [
    "cholesky_shift",
    "eigenvalue_floor",
    "is_positive_semidefinite",
    "radius_norm",
    "spectral_norm_bound",
]


def cholesky_shift(A: FloatArray) -> float:
    """Return the c of Lemma P1 for a matrix with the diagonal of A.

    >>> 0 < cholesky_shift(np.eye(3)) < 1e-14
    True
    """
    n = len(A)
    diagonal = np.abs(A.diagonal())
    trace = enlarged(float(diagonal.sum()), n)
    largest = float(diagonal.max(initial=0.0))
    # phi of the last row bounds that of the others; 4 more roundings for a BLAS that multiplies by
    # the reciprocal of a pivot and for the shift itself.
    g = gamma(n + 5)
    phi = g / (1 - g)
    # Underflow: each of at most n + 2 operations on each entry loses eta at most, n in a row.
    underflow = 4.0 * n * (n + 2) * (largest + 1.0) * ETA
    return float(enlarged(phi * trace + 2 * UNIT_ROUNDOFF * largest + underflow))


def is_positive_semidefinite(A: FloatArray, margin: float = 0.0) -> bool:
    """Return whether A - margin I is proven positive semidefinite by Lemma P1.

    False says nothing. Only the lower triangle is read.

    >>> is_positive_semidefinite(np.array([[2.0, 1.0], [1.0, 2.0]]))
    True
    >>> is_positive_semidefinite(np.array([[2002.0, 1.0], [1.0, 0.0]]))
    False
    """
    from scipy.linalg.lapack import dpotrf

    n = len(A)
    if not n:
        return True
    # Lemma P1 for A - margin I, whose diagonal may be larger by a negative margin.
    shift = cholesky_shift(A) + abs(margin) * gamma(n + 8) * (n + 1) + margin
    if not math.isfinite(shift) or not np.isfinite(A).all():
        return False
    moved = np.array(A, dtype=float, order="C")
    moved.flat[:: n + 1] -= shift
    # LAPACK reads columns: its upper triangle is our lower one.
    factor, failed = dpotrf(moved.T, lower=0, overwrite_a=1, clean=0)
    # A row that overflows leaves a pivot that is not a number, which BLAS takes for a positive one.
    return not failed and bool(np.isfinite(factor.diagonal()).all())


def eigenvalue_floor(A: FloatArray, guess: float | None = None) -> float:
    """Return a proven lower bound of the smallest eigenvalue of a symmetric A; -inf without one.

    Parameters
    ----------
    A
        The matrix, whose lower triangle is read.
    guess
        About the smallest eigenvalue; computed where it is not at hand.

    >>> floor = eigenvalue_floor(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> bool(1 - 1e-12 < floor <= 1)
    True
    """
    if not len(A):
        return math.inf
    if not np.isfinite(A).all():
        return -math.inf
    if guess is None:
        from scipy.linalg import eigvalsh

        guess = float(eigvalsh(A, subset_by_index=(0, 0), check_finite=False)[0])
    step = cholesky_shift(A) + 4 * UNIT_ROUNDOFF * abs(guess)
    for factor in (2.0, 16.0, 1024.0):
        candidate = guess - factor * step
        if is_positive_semidefinite(A, candidate):
            return candidate
    return -math.inf


def spectral_norm_bound(A: FloatArray, radius: FloatArray | float = 0.0) -> float:
    """Return an upper bound of ||A + E||_2 of a symmetric A over |E| <= radius: its row sums.

    >>> spectral_norm_bound(np.array([[0.0, -2.0], [-2.0, 0.0]])) < 2.000001
    True
    """
    if not len(A):
        return 0.0
    sums = Enclosure(np.abs(A), np.broadcast_to(radius, A.shape)).sum(axis=1)
    return float(np.max(sums.upper))


def radius_norm(radius: FloatArray) -> float:
    """Return a bound of ||E||_2 over all symmetric |E| <= radius (Lemma P2).

    >>> radius_norm(np.full((2, 2), 0.5)) >= 1.0
    True
    """
    return spectral_norm_bound(radius)
