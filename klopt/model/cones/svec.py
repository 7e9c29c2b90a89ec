"""Symmetric matrices as vectors: the one convention, `svec` and its inverse `smat`.

`svec` stacks the lower triangle by columns with off-diagonals times sqrt(2), so that

    <M, N> = svec(M)'svec(N).
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import numpy as np

from klopt.arrays import FloatArray, IntArray, freeze
from klopt.errors import InvalidProblem

__all__ = [
    "order_of",
    "smat",
    "svec",
    "svec_diagonal",
    "svec_entries",
    "svec_index",
    "svec_places",
    "svec_size",
    "svec_weights",
]


def svec_size(order: int) -> int:
    """Return the number of entries of svec(M) for M of the given order."""
    return order * (order + 1) // 2


def order_of(size: int) -> int:
    """Return the order of the matrix whose svec has `size` entries."""
    # The positive root of k (k + 1) / 2 = size, rounded to the nearest whole number.
    order = int((np.sqrt(8.0 * size + 1.0) - 1.0) / 2.0 + 0.5)
    if svec_size(order) != size:
        raise InvalidProblem(
            f"{size} entries are no triangle; svec of an order-k matrix has k(k+1)/2"
        )
    return order


def svec(M: FloatArray) -> FloatArray:
    """Return the lower triangle of a symmetric matrix by columns, off-diagonals times sqrt(2).

    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 2.828, 3.   ])
    """
    order = M.shape[0]
    rows, columns = svec_entries(order)
    return M[rows, columns] * svec_weights(order)


def smat(v: FloatArray) -> FloatArray:
    """Return the symmetric matrix whose `svec` is v.

    >>> smat(svec(np.array([[1.0, 2.0], [2.0, 3.0]]))).round(12)
    array([[1., 2.],
           [2., 3.]])
    """
    order = order_of(v.size)
    rows, columns = svec_entries(order)
    entries = v / svec_weights(order)
    M = np.empty((order, order))
    M[rows, columns] = entries
    M[columns, rows] = entries
    return M


@lru_cache(maxsize=8)
def svec_entries(order: int) -> tuple[IntArray, IntArray]:
    """Return the rows and the columns of the entries of `svec`: the lower triangle by columns.

    >>> rows, columns = svec_entries(2)
    >>> rows, columns
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    # Column j has the rows j, .., order - 1. No mask of order x order is made on the way.
    columns = np.repeat(np.arange(order), np.arange(order, 0, -1))
    rows = np.arange(svec_size(order)) - svec_diagonal(order)[columns] + columns
    return freeze(rows), freeze(columns)


def svec_diagonal(order: int) -> IntArray:
    """Return the places of the diagonal in `svec`.

    >>> svec_diagonal(3)
    array([0, 3, 5])
    """
    index = np.arange(order)
    return svec_index(index, index, order)


@lru_cache(maxsize=8)
def svec_weights(order: int) -> FloatArray:
    """Return what `svec` multiplies each entry by: 1 on the diagonal, sqrt(2) off it."""
    rows, columns = svec_entries(order)
    return freeze(np.where(rows == columns, 1.0, np.sqrt(2.0)))


def svec_index(row: IntArray, column: IntArray, order: int) -> IntArray:
    """Return the place in `svec` of the entries (row, column), above or below the diagonal.

    >>> svec_index(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    array([0, 1, 2])
    """
    low = np.minimum(row, column)
    high = np.maximum(row, column)
    # Column j of the lower triangle has order - j entries.
    diagonal = low * order - low * (low - 1) // 2
    return cast(IntArray, diagonal + high - low)


def svec_places(order: int) -> IntArray:
    """Return the matrix whose entry (i, j) is the place of that entry in `svec`.

    >>> svec_places(2)
    array([[0, 1],
           [1, 2]])
    """
    rows, columns = svec_entries(order)
    count = np.arange(rows.size)
    places = np.empty((order, order), dtype=np.intp)
    places[rows, columns] = count
    places[columns, rows] = count
    return places
