"""Sums of products of floats, correctly rounded: 0 only where the sum is exactly 0.

**Lemma S3 (exact sums).** The products of two floats are sums of two floats (Dekker, 1971), and
`math.fsum` rounds the sum of any floats correctly: it is 0 only if the sum is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import Enclosure

__all__ = ["exact_dot", "exact_row_sums", "two_products"]


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


def _is_exact(a: FloatArray, b: FloatArray, p: FloatArray) -> npt.NDArray[np.bool_]:
    """Where Dekker's product p of a and b is exact: away from the ends of the exponent range."""
    size = np.abs(p)
    factor = np.maximum(np.abs(a), np.abs(b))
    zero = (a == 0) | (b == 0)
    return np.asarray((size < 1e290) & ((size > 1e-280) | zero) & (factor < 1e290))


def _rounded_sum(terms: list[float]) -> tuple[float, float]:
    """The sum of the terms, rounded once, and a bound of what that has cost: 0 if it is a float."""
    total = math.fsum(terms)
    left = abs(math.fsum([*terms, -total]))
    # What is left is rounded once more.
    return total, math.nextafter(left, math.inf) if left else 0.0


def exact_dot(a: FloatArray, b: FloatArray) -> Enclosure:
    """Return a'b, correctly rounded.

    The radius is what the rounding has cost, 0 where the sum is a float; infinite where a product
    may have over- or underflowed.

    >>> exact_dot(np.array([1.0, -1.0]), np.array([1e16 + 2, 1e16]))
    Enclosure(mid=2.0, rad=0.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        p, e = two_products(a, b)
    if not _is_exact(a, b, p).all():
        return Enclosure(0.0, math.inf)
    return Enclosure(*_rounded_sum([*p.tolist(), *e.tolist()]))


def exact_row_sums(
    products: Sequence[tuple[sparse.csr_array, FloatArray]], constant: FloatArray
) -> Enclosure:
    """Return constant + sum of A x over all products (A, x), each entry correctly rounded.

    The radius is what that rounding has cost, 0 where the sum is a float; infinite where a product
    may have over- or underflowed.

    >>> A = sparse.csr_array([[1.0, -1.0], [0.0, 1.0]])
    >>> found = exact_row_sums([(A, np.array([1e16 + 2, 1e16]))], np.array([1.0, 0.0]))
    >>> found.mid, found.rad
    (array([3.e+00, 1.e+16]), array([0., 0.]))
    """
    count = constant.size
    safe = np.isfinite(constant)
    terms: list[list[float]] = [[value] for value in constant.tolist()]
    for A, x in products:
        factor = x[A.indices]
        with np.errstate(over="ignore", invalid="ignore"):
            p, e = two_products(A.data, factor)
        exact = _is_exact(A.data, factor, p)
        if not exact.all():
            row = np.repeat(np.arange(count), np.diff(A.indptr))
            safe[row[~exact]] = False
        high = p.tolist()
        low = e.tolist()
        ends = A.indptr.tolist()
        for index in range(count):
            start = ends[index]
            stop = ends[index + 1]
            terms[index] += high[start:stop]
            terms[index] += low[start:stop]

    mid = np.zeros(count)
    rad = np.full(count, np.inf)
    for index in np.flatnonzero(safe).tolist():
        mid[index], rad[index] = _rounded_sum(terms[index])
    return Enclosure(mid, rad)
