"""Existence of exact solutions of linear systems next to approximate ones.

**Lemma S1 (a short correction exists).** Let B be m x k and T any m x m matrix. If the smallest
singular value of T'B is at least sigma > 0, then for every r there is a d with

    B d = -r    and    ||d||  <=  ||T'r|| / sigma,

namely the shortest solution of T'B d = -T'r; T is then regular, so that it solves B d = -r.

**Lemma S2 (nearly orthonormal rows).** If ||I - CC'||_F <= alpha < 1, the smallest singular value of
C is at least sqrt(1 - alpha). With T from a triangular factor of B, C = T'B is nearly orthonormal.

Both are evaluated with bounds of all rounding errors; T itself need not be accurate.

**Lemma S3 (exact sums).** The products of two floats are sums of two floats (Dekker, 1971), and
`math.fsum` rounds the sum of any floats correctly: it is 0 only if the sum is.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_product,
    gamma,
)

__all__ = ["exact_sums", "shortest_correction", "two_products"]

MAX_FLOPS = 4e10
"""Operations that the proof of one correction may take."""
MAX_ENTRIES = 6e7
"""Entries of a dense matrix on the way."""
MAX_ORTHONORMALITY_ERROR = 0.5
"""alpha of Lemma S2 beyond which nothing is claimed."""


def two_products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (p, e) with a b = p + e exactly, where nothing overflows or underflows.

    >>> p, e = two_products(np.array([1 + 2.0**-30]), np.array([1 - 2.0**-30]))
    >>> p + e == 1.0, e[0] == -(2.0**-60)
    (array([ True]), np.True_)
    """
    p = a * b
    high_a, low_a = _split(a)
    high_b, low_b = _split(b)
    e = low_a * low_b - (((p - high_a * high_b) - low_a * high_b) - high_a * low_b)
    return p, e


def _split(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Dekker's split of a float into two of 26 bits."""
    scaled = 134217729.0 * a  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def exact_sums(parts: list[list[tuple[FloatArray, FloatArray]]]) -> Enclosure:
    """Return for each list of factor pairs the sum of all their products, correctly rounded.

    The radius is what the rounding has cost, 0 where the sum is a float; infinite where a product
    may have over- or underflowed.

    >>> one, big = np.array([1.0, -1.0]), np.array([1e16 + 2, 1e16])
    >>> exact_sums([[(one, big)]]).mid
    array([2.])
    """
    mid = np.zeros(len(parts))
    rad = np.zeros(len(parts))
    if not parts:
        return Enclosure(mid, rad)
    # All products at once; the sums of each part are slices of them.
    a = np.concatenate([pair[0] for factors in parts for pair in factors])
    b = np.concatenate([pair[1] for factors in parts for pair in factors])
    p, e = two_products(a, b)
    size = np.abs(p)
    factor = np.maximum(np.abs(a), np.abs(b))
    # Dekker's product is exact away from the ends of the exponent range.
    regular = (size < 1e290) & ((size > 1e-280) | (a == 0) | (b == 0)) & (factor < 1e290)
    products, errors, safe = p.tolist(), e.tolist(), regular.tolist()
    end = 0
    for index, factors in enumerate(parts):
        start = end
        end = start + sum(len(pair[0]) for pair in factors)
        if not all(safe[start:end]):
            rad[index] = math.inf
            continue
        terms = products[start:end] + errors[start:end]
        total = math.fsum(terms)
        mid[index] = total
        # What is left is rounded once more.
        terms.append(-total)
        rad[index] = abs(math.fsum(terms)) * (1 + 4 * UNIT_ROUNDOFF)
    return Enclosure(mid, rad)


def shortest_correction(B: Any, r: Enclosure, relative_error: float = 0.0) -> float:
    """Return a bound of ||d|| over the shortest d with B d = -r, for every r enclosed; inf without.

    Parameters
    ----------
    B
        Dense or sparse, m x k.
    r
        What the system lacks, m entries.
    relative_error
        Entries of the exact B may differ from B by this share of themselves.

    >>> B = np.array([[1.0, 1.0]])
    >>> size = shortest_correction(B, Enclosure.of(np.array([2.0])))
    >>> bool(np.sqrt(2) <= size < 1.5)
    True
    >>> shortest_correction(np.array([[1.0], [1.0]]), Enclosure.of(np.ones(2)))
    inf
    """
    m, k = B.shape
    if not m:
        return 0.0
    known = np.isfinite(r.mid).all() and np.isfinite(r.rad).all()
    if m > k or not known or float(m) * m * k > MAX_FLOPS or float(m) * k > MAX_ENTRIES:
        return math.inf
    dense = cast(Any, B).toarray() if sparse.issparse(B) else np.asarray(B, float)
    if not np.isfinite(dense).all():
        return math.inf

    # Rows of about unit size: scaling by powers of two is exact, but for what underflows.
    largest = np.abs(dense).max(axis=1)
    if not (largest > 2.0**-960).all():
        return math.inf
    unit = np.ldexp(1.0, -np.frexp(largest)[1])
    dense = dense * unit[:, None]
    right = Enclosure(r.mid * unit, r.rad * unit * (1 + 4 * UNIT_ROUNDOFF) + 4 * ETA)
    # Entries that have underflowed, here or on the way here, count with an error of their own.
    radius = relative_error * np.abs(dense) * (1 + 4 * UNIT_ROUNDOFF) + 2.0**-110

    T = _triangular_inverse(dense)
    if T is None:
        return math.inf
    # Where a factor is nearly singular the products overflow, and nothing is proven.
    with np.errstate(over="ignore", invalid="ignore"):
        C = enclose_product(T.T, Enclosure(dense, radius))
        sigma = _smallest_singular_value(C)
    if not sigma > 0:
        return math.inf
    size = enclose_norm(enclose_product(T.T, right))
    return float((size / sigma).upper)


def _triangular_inverse(B: FloatArray) -> FloatArray | None:
    """T with T'B nearly orthonormal: the inverse of R in B' = QR."""
    from scipy.linalg import qr
    from scipy.linalg.lapack import dtrtri

    R = qr(B.T, mode="r", check_finite=False)[0][: len(B)]
    if R.shape[0] < len(B):
        return None
    T, failed = dtrtri(R)
    if failed or not np.isfinite(T).all():
        return None
    return np.triu(np.asarray(T, float))


def _smallest_singular_value(C: Enclosure) -> float:
    """A lower bound over all matrices enclosed (Lemma S2); 0 where none is proven."""
    m, k = C.mid.shape
    M = C.mid @ C.mid.T
    M.flat[:: m + 1] -= 1.0
    squares = float(np.sum(C.mid * C.mid))
    # |fl(CC') - CC'| <= gamma_k |C||C'|, whose Frobenius norm is at most gamma_k ||C||_F^2; the
    # diagonal has one more rounding.
    rounding = gamma(k + 4) * squares * 1.01 + 4 * UNIT_ROUNDOFF * m
    alpha = float(np.sqrt(np.sum(M * M))) * (1 + gamma(m * m + 8)) + rounding
    if not alpha < MAX_ORTHONORMALITY_ERROR:
        return 0.0
    # Squares of radii below 1e-160 may underflow.
    spread = float(np.sqrt(np.sum(C.rad * C.rad))) * (1 + gamma(m * k + 8)) + m * k * 1e-160
    root = math.sqrt(1 - alpha)
    return float(root * (1 - 8 * UNIT_ROUNDOFF) - spread * (1 + 8 * UNIT_ROUNDOFF))
