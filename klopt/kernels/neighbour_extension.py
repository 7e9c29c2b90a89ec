"""A matrix learned on training points extended to new ones: each takes its neighbour's column.

With D the distances between n training and m new points (rows, columns), and ranks from 1,

    r_ij = rank of new point j among the m new points by distance to training point i
    s_ij = rank of training point i among the n training points by distance to new point j

new point j borrows from the training point with the largest 1 / (r_ij s_ij), the one that is near
to j and to which j is near: (11) of Liu et al. (2020), who leave ties open. Here equal distances
are ordered by index, and of equal products the smaller distance, then the smaller index, wins. r
depends on the other new points of the batch; "nearest" does not: it takes s_ij = 1, which is the
same for m = 1. Borrowed rows and columns repeat a principal submatrix of F, so that the extended F,
and its entrywise product with a kernel, stay positive semidefinite.

Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, require_memory, symmetric
from klopt.errors import InvalidProblem

__all__ = ["Rule", "extend_weights", "neighbours", "squared_distances"]

Rule = Literal["reciprocal", "nearest"]
Indices: TypeAlias = npt.NDArray[np.intp]


def neighbours(distances: npt.ArrayLike, rule: Rule = "reciprocal") -> Indices:
    """Return for each new point (column) the training point (row) that it borrows from.

    >>> neighbours([[1.0, 2.0], [3.0, 2.5]])
    array([0, 0])
    >>> neighbours([[0.1, 1.0, 2.0], [9.0, 9.0, 2.1]])
    array([0, 0, 1])
    >>> neighbours([[0.1, 1.0, 2.0], [9.0, 9.0, 2.1]], "nearest")
    array([0, 0, 0])
    """
    D = matrix("distances", distances)
    if rule not in get_args(Rule):
        raise InvalidProblem(f"rule is {rule!r}; expected one of {', '.join(get_args(Rule))}")
    if not len(D):
        raise InvalidProblem("distances has no rows; there must be a training point to borrow from")
    # The nearest training point is the one with s_ij = 1.
    if rule == "nearest" or not D.size:
        return np.asarray(D.argmin(axis=0), dtype=np.intp)
    require_memory(
        32.0 * D.size, f"places of {D.shape[1]} new points among {D.shape[0]} training points"
    )
    product = _places(D.T).T * _places(D)
    # Products of integers are exact, so that ties are found by equality; of tied points the nearest
    # one is taken, of equally near ones the first.
    best = product == product.min(axis=0)
    return np.asarray(np.where(best, D, np.inf).argmin(axis=0), dtype=np.intp)


def extend_weights(F: npt.ArrayLike, borrowed: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return F between training and new points (n x m) and among new points (m x m).

    >>> cross, among = extend_weights([[1.0, 0.5], [0.5, 2.0]], [1, 1])
    >>> cross, among
    (array([[0.5, 0.5],
           [2. , 2. ]]), array([[2., 2.],
           [2., 2.]]))
    """
    known = symmetric("F", matrix("F", F))
    index = np.asarray(borrowed)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise InvalidProblem(
            "borrowed must give one training point, a whole number, for each new point"
        )
    if index.size and not (index.min() >= 0 and index.max() < len(known)):
        raise InvalidProblem(
            f"borrowed goes from {index.min()} to {index.max()}; expected 0 to {len(known) - 1}"
        )
    return known[:, index], known[np.ix_(index, index)]


def squared_distances(X: npt.ArrayLike, new: npt.ArrayLike) -> FloatArray:
    """Return |x_i - x'_j|^2 between training and new points (rows of each).

    |x|^2 + |x'|^2 - 2 x'x cancels far from the origin: all points are first moved by the mean of
    the training points.
    """
    A = matrix("X", X)
    B = matrix("new", new, (None, A.shape[1]))
    centre = A.sum(axis=0) / max(len(A), 1)
    A = A - centre
    B = B - centre
    require_memory(16.0 * len(A) * len(B), f"distances of {len(A)} by {len(B)} points")
    cross: FloatArray = A @ B.T
    cross *= -2.0
    cross += np.einsum("ij,ij->i", A, A)[:, None]
    cross += np.einsum("ij,ij->i", B, B)
    return np.maximum(cross, 0.0, out=cross)


def _places(D: FloatArray) -> npt.NDArray[np.int64]:
    """The place of each entry in its column, from 1; equal ones in their order."""
    order = D.argsort(axis=0, kind="stable")
    places = np.empty(D.shape, dtype=np.int64)
    np.put_along_axis(places, order, np.arange(1, len(D) + 1)[:, None], axis=0)
    return places
