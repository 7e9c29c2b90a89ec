"""Sums of products, row by row, without rounding (Lemma S3 of `klopt.proof.linear_systems`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import UNIT_ROUNDOFF, Enclosure
from klopt.proof.linear_systems import two_products

__all__ = ["exact_row_sums"]


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
        p, e = two_products(A.data, factor)
        size = np.abs(p)
        largest = np.maximum(np.abs(A.data), np.abs(factor))
        # Dekker's product is exact away from the ends of the exponent range.
        zero = (A.data == 0) | (factor == 0)
        regular = (size < 1e290) & ((size > 1e-280) | zero) & (largest < 1e290)
        if not regular.all():
            row = np.repeat(np.arange(count), np.diff(A.indptr))
            safe[row[~regular]] = False
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
        parts = terms[index]
        total = math.fsum(parts)
        parts.append(-total)
        mid[index] = total
        # What is left is rounded once more.
        rad[index] = abs(math.fsum(parts)) * (1 + 4 * UNIT_ROUNDOFF)
    return Enclosure(mid, rad)
