"""Sizes of rows and columns, measured cone by cone.

A curved cone couples its rows, so an error in one of them is judged by the size of the whole block:
||v||_k is the Euclidean norm of v over the rows of cone k. A zero or nonnegative row is a cone of
its own. By the inequality of Cauchy and Schwarz,

    |(A'y)_j|  <=  sum over k of  ||A_.j||_k ||y||_k.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.cones.power import power_sizes
from klopt.model.cones.product import Cones
from klopt.model.cones.svec import svec_size

__all__ = ["block_column_norms", "block_norms", "equilibrate", "largest_entry"]

RUIZ_SWEEPS = 4
"""How often `equilibrate` scales; a sweep about halves the exponents of the entries."""


def largest_entry(v: FloatArray) -> float:
    """Return max|v|, 0 for an empty vector.

    >>> largest_entry(np.array([1.0, -2.0]))
    2.0
    """
    return float(np.max(np.abs(v), initial=0.0))


def block_norms(cones: Cones, v: FloatArray) -> FloatArray:
    """Return for each row the Euclidean norm of v over its cone.

    >>> block_norms(Cones(nonneg=1, soc=(2,)), np.array([-1.0, 3.0, 4.0]))
    array([1., 5., 5.])
    """
    # Scaled to largest entry 1 first: squares of tiny or huge entries would under- or overflow.
    largest = largest_entry(v) or 1.0
    block = _block_of_row(cones)
    squares = (v / largest) ** 2
    sums = np.bincount(block, weights=squares, minlength=1)
    return largest * np.sqrt(sums[block])


def block_column_norms(cones: Cones, A: SparseMatrix) -> sparse.csr_array:
    """Return a matrix whose transpose times `block_norms(cones, y)` bounds |A'y|.

    The norm of a column over a cone stands in the first row of the cone, the other rows are 0, so
    that each block counts once.

    >>> A = sparse.csc_array([[-1.0], [3.0], [4.0]])
    >>> block_column_norms(Cones(nonneg=1, soc=(2,)), A).toarray().ravel()
    array([1., 5., 0.])
    """
    # Where every row is a cone of its own, the norms are absolute values.
    if cones.is_polyhedral:
        return sparse.csr_array(abs(A))

    block = _block_of_row(cones)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    first_of_row = first[np.searchsorted(block[first], block)]

    m = block.size
    ones = np.ones(m)
    places = (first_of_row, np.arange(m))
    add_up = sparse.csr_array((ones, places), shape=(m, m))
    squares = add_up @ A.power(2)
    return sparse.csr_array(squares).sqrt()


def equilibrate(cones: Cones, A: SparseMatrix) -> tuple[FloatArray, FloatArray]:
    """Return positive (r, c) for which the largest entries of diag(r) A diag(c) are near 1.

    They are the units in which rows and variables can be compared (Ruiz, 2001). The rows of one
    cone have one unit, so that scaling by r maps the cone to itself.

    >>> r, c = equilibrate(Cones(nonneg=2), sparse.csc_array([[4.0, 0.0], [0.0, 100.0]]))
    >>> r * c * [4, 100]
    array([1., 1.])
    """
    entries = A.tocoo()
    size = np.abs(entries.data)
    row = entries.row
    column = entries.col

    r = np.ones(A.shape[0])
    c = np.ones(A.shape[1])
    if not size.any():
        return r, c

    for _ in range(RUIZ_SWEEPS):
        scaled = size * r[row] * c[column]

        row_largest = np.zeros(r.size)
        np.maximum.at(row_largest, row, scaled)
        row_largest = block_norms(cones, row_largest)

        column_largest = np.zeros(c.size)
        np.maximum.at(column_largest, column, scaled)

        # Empty rows and columns keep their unit.
        row_largest[row_largest == 0] = 1.0
        column_largest[column_largest == 0] = 1.0
        r /= np.sqrt(row_largest)
        c /= np.sqrt(column_largest)
    return r, c


def _block_of_row(cones: Cones) -> npt.NDArray[np.intp]:
    """The number of the cone that each row belongs to."""
    sizes = [1] * (cones.zero + cones.nonneg)
    sizes += cones.soc
    sizes += map(svec_size, cones.psd)
    sizes += [3] * cones.exp
    sizes += power_sizes(cones.power)
    return np.repeat(np.arange(len(sizes)), sizes)
