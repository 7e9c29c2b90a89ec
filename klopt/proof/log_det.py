"""Enclosures of log det A of a symmetric matrix A, and of congruences F A F'.

**Lemma D1 (log det).** Let X be lower triangular with a diagonal that is not zero and T = XAX' - I,
||T||_F <= tau < 1. Then A is positive definite and

    |log det A + 2 sum_i log|X_ii| - tr T|  <=  tau^2 / (2 (1 - tau)),

since log det(I + T) = tr T - tr T^2 / 2 + ... and |tr T^k| <= tau^k for k >= 2. X is about the
inverse of a Cholesky factor; how it was found does not matter.

**Lemma D2 (relative change).** Let A, E be symmetric, G and G + E positive semidefinite, I + RAR'
positive definite for some R'R = G, and C = (I + AG)^-1 A. If theta = ||C||_F ||E||_F < 1, then I +
SAS' is positive definite for S'S = G + E, and

    |log det(I + A(G + E)) - log det(I + AG)|  <=  -log(1 - theta):

the difference is log det(I + CE); det(I + t CE) has no zero for 0 <= t <= 1, and the eigenvalues of
I + A(G + tE), which are real, cannot change their sign.

**Lemma D3 (congruence).** With H = |F| + rad F + rad F / g, g = gamma_{2n+1} and rad A the radius of
A, the computed FAF' is within H (g |A| + rad A) H' of the exact one (Lemma E2, twice).

**Lemma D4 (response).** C of Lemma D2 is A - AF'(I + FAF')^-1 FA, so that with Lemma D1 for X and
tau of I + FAF' and with the computed XFA, F of r rows and A of n,

    ||C||_F <= a + (||XFA||_F + ||X||_F (f rad A + a rad F + gamma_{n+r} f a))^2 / (1 - tau),

a and f being Frobenius norms of A and F with those of their radii (Lemma E2 by Frobenius norms).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.directed import difference_down, norm_up, product_up, quotient_up, sum_up
from klopt.proof.enclosure import (
    ELEMENTARY_ULPS,
    ETA,
    INFLATION,
    UNIT_ROUNDOFF,
    Enclosure,
    EnclosureLike,
    enclose_norm,
    enclose_sum,
    gamma,
)

__all__ = [
    "LogDet",
    "enclose_congruence",
    "enclose_log_det",
    "enclose_relative_log_det",
    "log_det_change",
]

NOTHING = Enclosure(0.0, math.inf)
"""The enclosure of all numbers."""


@dataclass(frozen=True, eq=False)
class LogDet:
    """log det A with what proves it.

    Parameters
    ----------
    value
        Encloses log det A; its radius is infinite where A is not proven positive definite.
    X
        The lower triangular matrix of Lemma D1; None where there is none.
    defect
        tau, a bound of ||XAX' - I||_F: the inverse of A is X'(I + T)^-1 X.
    """

    value: Enclosure
    X: FloatArray | None
    defect: float


def enclose_log_det(A: EnclosureLike) -> LogDet:
    """Return log det A of a symmetric matrix, or of all symmetric matrices of an enclosure.

    >>> found = enclose_log_det(np.array([[2.0, 1.0], [1.0, 2.0]])).value
    >>> found.contains(np.log(3.0)), bool(found.rad < 1e-14)
    (True, True)
    """
    from scipy.linalg.lapack import dpotrf, dtrtri

    M = Enclosure.of(A)
    n = len(M)
    if not n:
        return LogDet(Enclosure(0.0, 0.0), np.zeros((0, 0)), 0.0)
    with np.errstate(over="ignore"):
        if not np.isfinite(M.mid + M.rad).all():
            return LogDet(NOTHING, None, math.inf)
    L, failed = dpotrf(M.mid, lower=1, clean=1)
    if not failed:
        X, failed = dtrtri(L, lower=1)
    if failed or not np.isfinite(X).all():
        return LogDet(NOTHING, None, math.inf)

    X = np.tril(X)
    T = _plus_identity(enclose_congruence(X, M), -1.0)
    tau = enclose_norm(T).upper
    if not tau < 0.5:
        return LogDet(NOTHING, None, math.inf)
    # Lemma E3: twice a logarithm is off by twice 4 units in the last place, of at most 2 u each.
    logs = np.log(np.abs(X.diagonal()))
    off = 4 * ELEMENTARY_ULPS * UNIT_ROUNDOFF * math.fsum(np.abs(logs).tolist())
    # tau^2 / (2 (1 - tau)) <= tau^2 for tau < 1/2. Radii are enlarged for a few roundings.
    radii = (off, math.fsum(T.rad.diagonal().tolist()), tau * tau)
    terms = np.concatenate((-2.0 * logs, T.mid.diagonal()))
    value = enclose_sum([Enclosure(0.0, radius) for radius in radii], terms)
    return LogDet(value, cast(FloatArray, X), tau)


def _plus_identity(A: Enclosure, factor: float) -> Enclosure:
    """A + factor I, for the factor 1 or -1; A is written over."""
    step = len(A) + 1
    diagonal = Enclosure(A.mid.diagonal(), A.rad.diagonal()) + factor
    A.mid.flat[::step] = diagonal.mid
    A.rad.flat[::step] = diagonal.rad
    return A


def enclose_congruence(F: EnclosureLike, A: EnclosureLike) -> Enclosure:
    """Return F A F' of a symmetric A by Lemma D3.

    >>> enclose_congruence(np.array([[1.0, 2.0]]), np.eye(2)).contains(np.array([[5.0]]))
    True
    """
    left, left_rad = _parts(F)
    middle, middle_rad = _parts(A)
    n = len(middle)
    # Two products of n terms each, and the mean with the transpose.
    g = gamma(2 * n + 1)
    mid = left @ middle @ left.T
    H = np.abs(left)
    if left_rad is not None:
        # 1 + 1/g, as g is far below what the last factor adds.
        H += left_rad / g * INFLATION
    inner = g * np.abs(middle)
    # This product may underflow where H is large.
    inner += ETA
    if middle_rad is not None:
        inner += middle_rad
    # Each sum of n products may lose n eta to underflow.
    product = H @ inner
    product += 4 * n * ETA
    outer = product @ H.T
    mid = mid + mid.T
    mid *= 0.5
    rad = outer + outer.T
    rad *= 0.5 * INFLATION
    rad += (4 * n + 2) * ETA
    return Enclosure(mid, rad)


def _parts(x: EnclosureLike) -> tuple[FloatArray, FloatArray | None]:
    """Midpoint and radius of a matrix; None for a radius of 0."""
    if not isinstance(x, Enclosure):
        return np.asarray(x, float), None
    return x.mid, x.rad if np.any(x.rad) else None


def enclose_relative_log_det(
    A: EnclosureLike, F: EnclosureLike, remainder: float = 0.0
) -> Enclosure:
    """Return log det(I + AG) for a symmetric A and a positive semidefinite G near F'F (Lemma D2).

    The radius is infinite where I + FAF' is not proven positive definite.

    Parameters
    ----------
    A
        The symmetric matrix.
    F
        A factor, r x n.
    remainder
        A bound of ||G - F'F||_F; 0 for G = F'F.

    >>> found = enclose_relative_log_det(np.eye(2), np.eye(2))
    >>> found.contains(2 * np.log(2.0)), bool(found.rad < 1e-14)
    (True, True)
    """
    middle, middle_rad = _parts(A)
    factor, factor_rad = _parts(F)
    found = enclose_log_det(_plus_identity(enclose_congruence(F, A), 1.0))
    if found.X is None or remainder == 0:
        return found.value

    # Lemma D4.
    half = found.X @ (factor @ middle)
    size, spread = _sizes(middle, middle_rad)
    factor_size, factor_spread = _sizes(factor, factor_rad)
    error = sum_up(
        product_up(factor_size, spread),
        product_up(size, factor_spread),
        product_up(gamma(sum(factor.shape)), factor_size, size),
    )
    half_size = sum_up(norm_up(half), product_up(norm_up(found.X), error))
    square = quotient_up(product_up(half_size, half_size), difference_down(1.0, found.defect))
    return found.value + log_det_change(sum_up(size, square), remainder)


def _sizes(mid: FloatArray, rad: FloatArray | None) -> tuple[float, float]:
    """Bounds of the Frobenius norms of what is enclosed, and of its radius."""
    spread = 0.0 if rad is None else norm_up(rad)
    return sum_up(norm_up(mid), spread), spread


def log_det_change(C_norm: float, E_norm: float) -> Enclosure:
    """Return the change of log det(I + AG) by Lemma D2: all numbers up to -log(1 - theta).

    >>> log_det_change(0.5, 0.5).contains(-np.log(0.75)), log_det_change(2.0, 1.0).rad
    (True, inf)
    """
    if E_norm == 0:
        return Enclosure(0.0, 0.0)
    theta = product_up(C_norm, E_norm)
    if not theta < 0.5:
        return NOTHING
    # -log(1 - theta) <= theta + theta^2 for theta <= 1/2.
    return Enclosure(0.0, product_up(theta, sum_up(1.0, theta)))
