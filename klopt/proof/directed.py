"""Sums and products of a few floats, rounded outwards.

An operation in rounding to nearest errs by at most half the distance to the next float, also where
it underflows: the next float above its result is an upper bound of the exact one (Lemma E1 of
`klopt.proof.enclosure`). An overflow gives infinity, which bounds nothing, and NaN becomes infinity.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import INFLATION, enclose_norm, enlarged

__all__ = [
    "difference_down",
    "norm_up",
    "norms_by_rows",
    "product_up",
    "quotient_up",
    "row_norms",
    "sum_up",
    "total_up",
]

Indices = npt.NDArray[np.intp]


def sum_up(*terms: float) -> float:
    """Return an upper bound of the sum of floats.

    >>> sum_up(0.1, 0.2) > 0.3
    True
    """
    if not all(map(math.isfinite, terms)):
        return math.inf
    return math.nextafter(math.fsum(terms), math.inf)


def difference_down(a: float, b: float) -> float:
    """Return a lower bound of a - b.

    >>> difference_down(0.3, 0.1) < 0.2
    True
    """
    return -sum_up(b, -a)


def product_up(*factors: float) -> float:
    """Return an upper bound of the product of numbers that are not negative.

    >>> product_up(0.1, 3.0) > 0.3
    True
    """
    product = 1.0
    for factor in factors:
        product = math.nextafter(product * factor, math.inf)
    return product if product < math.inf else math.inf


def quotient_up(a: float, b: float) -> float:
    """Return an upper bound of a / b for a >= 0; infinity unless b > 0.

    >>> quotient_up(1.0, 3.0) > 1 / 3
    True
    """
    if not b > 0:
        return math.inf
    quotient = math.nextafter(a / b, math.inf)
    return quotient if quotient < math.inf else math.inf


def total_up(x: FloatArray) -> float:
    """Return an upper bound of the sum of an array that has no negative entry (Lemma E2).

    >>> total_up(np.full(10, 0.1)) >= 1.0
    True
    """
    total = float(enlarged(np.add.reduce(x, axis=None), x.size))
    return total if total < math.inf else math.inf


def norm_up(x: FloatArray) -> float:
    """Return an upper bound of the Euclidean norm of all entries of an array (Lemma E2).

    >>> norm_up(np.array([3.0, 4.0])) >= 5.0, norm_up(np.array([3e-200, 4e-200])) < 5.1e-200
    (True, True)
    """
    length = float(enclose_norm(x).upper)
    return length if length < math.inf else math.inf


def row_norms(rows: sparse.csr_array) -> FloatArray:
    """Return upper bounds of the Euclidean norms of the rows; 0 for a row of zeros."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return norms_by_rows(rows.data, row, rows.shape[0])


def norms_by_rows(entries: FloatArray, row: Indices, count: int) -> FloatArray:
    """Return the same from entries and the row of each."""
    size = np.abs(entries)
    largest = float(np.max(size, initial=0.0))
    if not 0.0 < largest < np.inf:
        return np.full(count, 0.0 if largest == 0.0 else np.inf)
    squares = np.bincount(row, weights=(size / largest) ** 2, minlength=count)
    # Squares of entries below 1e-150 of the largest one may underflow.
    number = np.bincount(row[size > 0], minlength=count)
    return np.asarray(largest * (np.sqrt(squares) * INFLATION + 1e-150 * number))
