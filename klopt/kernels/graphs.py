"""Neighbour graphs, Laplacians, the supervised complete graph.

A graph is a symmetric matrix W of nonnegative weights with degrees d_i = sum_j W_ij and the
Laplacian

    L = D - W            or, normalised,            L = I - D^-1/2 W D^-1/2,

both positive semidefinite, with as many zero eigenvalues as the graph has connected components.

The supervised complete graph of Pan et al. (2016) joins all points with weights W_ij = exp(T_ij),
where T_ij is +1 for two points of one class, -1 for two of different classes and 0 where a label is
missing; S is its normalised Laplacian. T_ii is left open; with +1 for labelled points W is constant
on groups (each class, and the unlabelled points), and with group sizes N, group weights G, group
degrees D = G N and orthonormal group indicators Z (n x groups)

    S = I - Z R Z',   R = N^1/2 D^-1/2 G D^-1/2 N^1/2,

so that S need not be formed. Every S has q = D^1/2 1 (one degree per point) in its null space.

Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016, (7) and (10). Mao, Tsang, Parameter-free spectral kernel learning, 2010, the experiments.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import (
    EPS,
    FloatArray,
    SparseMatrix,
    csc,
    freeze,
    matrix,
    positive,
    require_memory,
    scaled_to_one,
    symmetric,
    vector,
)
from klopt.errors import InvalidProblem

__all__ = [
    "UNLABELLED",
    "SupervisedGraph",
    "class_labels",
    "knn_graph",
    "laplacian",
    "sparse_norms",
    "supervised_graph",
    "supervised_laplacian",
    "supervised_targets",
]

Points = Any
"""Points, one in each row: a dense matrix, or a sparse one by rows."""
Weights = Literal["binary", "gaussian"]
IntArray = npt.NDArray[np.int64]

UNLABELLED = -1
"""The label of a point whose class is not known."""
MAX_LABEL = 2.0**53
"""Beyond it, floats are no longer all whole numbers, nor whole numbers all floats."""


def knn_graph(
    X: object, neighbours: int = 10, weights: Weights = "binary", bandwidth: float | None = None
) -> SparseMatrix:
    """Return the weights of the undirected graph of nearest neighbours.

    It joins i and j when either is among the nearest neighbours of the other. No point is its own
    neighbour. A weight that underflows to zero is no edge.

    Parameters
    ----------
    X
        The points, one in each row; a sparse matrix stays sparse.
    neighbours
        The number of nearest neighbours of a point.
    weights
        "binary" for 1, "gaussian" for exp(-||x_i - x_j||^2 / (2 bandwidth^2)).
    bandwidth
        Of Gaussian weights; by default its square is the mean of ||x_i - x_j||^2 over the edges, as
        in Mao and Tsang (2010).

    >>> knn_graph([[0.0], [1.0], [3.0]], neighbours=1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    points = csc("X", X).tocsr() if sparse.issparse(X) else matrix("X", X)
    n, columns = points.shape
    if not columns:
        raise InvalidProblem(f"X is {n} x 0; expected points with coordinates")
    count = _neighbour_count(neighbours, n)
    if weights not in get_args(Weights):
        raise InvalidProblem(
            f"weights is {weights!r}; expected one of {', '.join(get_args(Weights))}"
        )
    if bandwidth is not None and weights == "binary":
        raise InvalidProblem(
            f"bandwidth is {bandwidth} but binary weights have none; pass weights='gaussian'"
        )
    width = None if bandwidth is None else positive("bandwidth", bandwidth)

    unit: Points
    if sparse.issparse(points):
        scaled, exponent = scaled_to_one(points.data)
        unit = sparse.csr_array((scaled, points.indices, points.indptr), shape=points.shape)
    else:
        unit, exponent = scaled_to_one(points)
    i, j = _edges(unit, count)
    if weights == "binary":
        values = np.ones(i.size)
    else:
        values = _gaussian(_lengths(unit, i, j), width, exponent)
    upper = sparse.csc_array((values, (i, j)), shape=(n, n))
    return csc("W", upper + upper.T)


def laplacian(W: object, normalised: bool = True, power: int = 1) -> SparseMatrix:
    """Return the Laplacian of a symmetric, nonnegative weight matrix, or a power of it.

    A point without edges has a zero row in both versions, so that it counts as a component of its
    own. A power has the same eigenvectors and joins points that many edges apart: it penalises
    eigenvectors of large eigenvalues more.

    >>> laplacian([[0, 2], [2, 0]]).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    >>> laplacian([[0, 2], [2, 0]], power=3).toarray()
    array([[ 4., -4.],
           [-4.,  4.]])
    """
    factors = _power(power)
    L = factor = _laplacian(W, normalised)
    for _ in range(factors - 1):
        L = L @ factor
    # A product of symmetric matrices is symmetric up to rounding only.
    return L if factors == 1 else csc("L", (L + L.T) / 2)


def _power(power: object) -> int:
    if isinstance(power, bool) or not isinstance(power, numbers.Integral) or int(power) < 1:
        raise InvalidProblem(f"power is {power!r}; expected a positive integer")
    return int(power)


def _laplacian(W: object, normalised: bool) -> SparseMatrix:
    weights = csc("W", W)
    rows, columns = weights.shape
    if rows != columns:
        raise InvalidProblem(f"W is {rows} x {columns}; expected a square matrix")
    _refuse_non_weights(weights)
    degrees = _degrees(weights)
    if not normalised:
        return csc("L", sparse.diags_array(degrees) - weights)

    # D^-1/2 is 0 at points without edges.
    joined = degrees > 0
    roots = np.zeros(rows)
    roots[joined] = 1 / np.sqrt(degrees[joined])
    entries = weights.tocoo()
    first = roots[entries.row]
    second = roots[entries.col]
    # This order keeps L exactly symmetric; W_ij <= D_ii, so that no product overflows.
    values = entries.data * np.maximum(first, second) * np.minimum(first, second)
    scaled = sparse.csc_array((values, (entries.row, entries.col)), shape=weights.shape)
    return csc("L", sparse.diags_array(joined.astype(float)) - scaled)


def _degrees(W: SparseMatrix) -> FloatArray:
    with np.errstate(over="ignore"):
        degrees = np.asarray(W.sum(axis=0), dtype=float)
    beyond = np.flatnonzero(np.isinf(degrees))
    if beyond.size:
        raise InvalidProblem(
            f"W[{beyond[0]}] adds up to more than a float can hold; rescale W towards 1"
        )
    return degrees


def supervised_targets(labels: object) -> FloatArray:
    """Return T_ij = 1 in one class, -1 between classes, 0 where a label is unknown (-1).

    >>> supervised_targets([0, 0, 1, -1])
    array([[ 1.,  1., -1.,  0.],
           [ 1.,  1., -1.,  0.],
           [-1., -1.,  1.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    classes = class_labels(labels)
    require_memory(24.0 * classes.size**2, f"T of order {classes.size}")
    known = (classes != UNLABELLED).astype(float)
    T = np.where(classes[:, None] == classes, 1.0, -1.0) * known * known[:, None]
    return cast(FloatArray, freeze(T + 0.0))  # + 0.0 turns -0.0 into 0.0


def supervised_laplacian(T: object) -> FloatArray:
    """Return the dense S = I - D^-1/2 exp(T) D^-1/2 of a symmetric T with entries in [-1, 1].

    >>> supervised_laplacian([[0, 0], [0, 0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    targets = symmetric("T", matrix("T", T))
    outside = np.abs(targets) > 1
    if outside.any():
        i, j = divmod(int(np.argmax(outside)), len(targets))
        raise InvalidProblem(
            f"T[{i}, {j}] is {targets[i, j]}; expected -1 (dissimilar) to 1 (similar)"
        )
    W = np.exp(targets)
    roots = np.sqrt(W.sum(axis=0))
    return cast(FloatArray, freeze(np.eye(len(W)) - W / np.outer(roots, roots)))


@dataclass(frozen=True, eq=False)
class SupervisedGraph:
    """The supervised complete graph of labelled points, by groups: S = I - Z R Z'."""

    groups: IntArray
    """The group of each point, in ascending order of labels: the unlabelled points (-1) first."""
    degrees: FloatArray
    """D_ii = sum_j exp(T_ij) of each point."""
    Z: SparseMatrix
    """Orthonormal indicators of the groups (points x groups); Z'X is a scaled group sum."""
    R: FloatArray
    """The groups' normalised weights; its largest eigenvalue is 1, with eigenvector Z'D^1/2 1."""

    def apply(self, X: FloatArray) -> FloatArray:
        """Return S X for a vector or the columns of a matrix, in O(n) a column."""
        return cast(FloatArray, X - self.Z @ (self.R @ (self.Z.T @ X)))


def supervised_graph(labels: object) -> SupervisedGraph:
    """Return the supervised complete graph of class labels (-1: unlabelled) by its groups.

    >>> graph = supervised_graph([0, 0, 1, -1])
    >>> graph.R.shape
    (3, 3)
    >>> bool(np.abs(graph.apply(np.sqrt(graph.degrees))).max() < 1e-15)
    True
    """
    classes, groups, sizes = np.unique(
        class_labels(labels), return_inverse=True, return_counts=True
    )
    # exp(T) of two groups: e in one class, 1/e between classes, 1 where a label is unknown.
    G = np.where(np.eye(classes.size, dtype=bool), math.e, 1 / math.e)
    unlabelled = classes == UNLABELLED
    G[unlabelled, :] = G[:, unlabelled] = 1.0
    D = G @ sizes
    roots = np.sqrt(sizes / D)
    n = groups.size
    indicators = sparse.csr_array(
        (1 / np.sqrt(sizes)[groups], groups, np.arange(n + 1)), shape=(n, classes.size)
    )
    return SupervisedGraph(
        groups=freeze(groups),
        degrees=cast(FloatArray, freeze(D[groups])),
        Z=csc("Z", indicators),
        R=cast(FloatArray, freeze(roots[:, None] * G * roots)),
    )


def _neighbour_count(neighbours: object, n: int) -> int:
    if (
        isinstance(neighbours, bool)
        or not isinstance(neighbours, numbers.Integral)
        or not 0 < int(neighbours) < n
    ):
        raise InvalidProblem(
            f"neighbours is {neighbours!r}; each of {n} points has at most {max(n - 1, 0)}, at least 1"
        )
    return int(neighbours)


def _edges(points: Points, neighbours: int) -> tuple[IntArray, IntArray]:
    """Both ends, i < j, of the undirected edges of the neighbour graph, each once."""
    from sklearn.neighbors import NearestNeighbors

    n = points.shape[0]
    centred: Points
    is_sparse: bool = sparse.issparse(points)
    if is_sparse:
        # Moved points would be dense: entries that are mostly 0 are near the origin as they are.
        centred = sparse.csr_matrix(points)
    else:
        # Distances by inner products lose digits far from the origin; a constant column, however
        # large, becomes 0.
        constant = points.max(axis=0) == points.min(axis=0)
        centred, _ = scaled_to_one(points - np.where(constant, points[0], points.mean(axis=0)))
    search = NearestNeighbors(n_neighbors=neighbours).fit(centred)
    others = search.kneighbors(return_distance=False).ravel().astype(np.int64)
    own = np.repeat(np.arange(n), neighbours)
    # The edge (i, j), i < j, as the number i n + j: each direction gives the same one.
    codes = np.unique(np.minimum(own, others) * n + np.maximum(own, others))
    return codes // n, codes % n


def sparse_norms(rows: Any) -> FloatArray:
    """Return the norms of the rows of a sparse matrix.

    >>> sparse_norms(sparse.csr_array(np.array([[3.0, 4.0], [0.0, 0.0]])))
    array([5., 0.])
    """
    squares: FloatArray = np.asarray(rows.multiply(rows).sum(axis=1), dtype=float).ravel()
    return np.sqrt(squares)


def _lengths(points: Points, i: IntArray, j: IntArray) -> FloatArray:
    """||x_i - x_j|| from differences, which unlike inner products give exactly 0 for duplicates."""
    is_sparse: bool = sparse.issparse(points)
    if is_sparse:
        return sparse_norms(points[i] - points[j])
    # Parts of about 10^7 numbers bound the memory of the differences.
    parts = np.array_split(np.arange(i.size), 1 + i.size * points.shape[1] // 10**7)
    return np.concatenate([_norms(points[i[part]] - points[j[part]]) for part in parts])


def _norms(rows: FloatArray) -> FloatArray:
    unit, exponent = scaled_to_one(rows)
    return cast(FloatArray, np.ldexp(np.linalg.norm(unit, axis=1), exponent))


def _gaussian(lengths: FloatArray, width: float | None, exponent: int) -> FloatArray:
    """The weights of edges whose lengths are given in units of 2^exponent, the width is not."""
    with np.errstate(over="ignore"):
        if width is None:
            unit, _ = scaled_to_one(lengths)
            ratios = unit / (np.sqrt(np.mean(unit**2)) or 1.0)  # 1 where all points coincide
        else:
            ratios = np.ldexp(lengths, exponent) / width
        return cast(FloatArray, np.exp(-(ratios**2) / 2))


def _refuse_non_weights(W: SparseMatrix) -> None:
    entries = W.tocoo()
    if (entries.data < 0).any():
        at = int(np.argmin(entries.data))
        raise InvalidProblem(
            f"W[{entries.row[at]}, {entries.col[at]}] is {entries.data[at]}; weights must not be negative"
        )

    # Degrees and products of symmetric weights may differ by rounding.
    gaps = abs(W - W.T).tocoo()
    if not gaps.nnz:
        return
    at = int(np.argmax(gaps.data))
    if gaps.data[at] > 64 * EPS * entries.data.max():
        i, j = sorted((int(gaps.row[at]), int(gaps.col[at])))
        raise InvalidProblem(
            f"W is not symmetric: W[{i}, {j}] = {W[i, j]} but W[{j}, {i}] = {W[j, i]}; pass "
            "W.maximum(W.T) if an undirected graph is meant"
        )


def class_labels(labels: object, size: int | None = None) -> IntArray:
    """Return integer class labels, checked: 0, 1, 2, .. for classes and -1 for unlabelled points.

    >>> class_labels([0, 2, -1])
    array([ 0,  2, -1])
    """
    values = vector("labels", labels, size)
    is_class = (values == np.floor(values)) & (values >= UNLABELLED) & (values <= MAX_LABEL)
    odd = np.flatnonzero(~is_class)
    if odd.size:
        raise InvalidProblem(
            f"labels[{odd[0]}] is {values[odd[0]]:g}; expected integers from 0 up, or {UNLABELLED} for unlabelled"
        )
    if not values.size:
        raise InvalidProblem("labels is empty; a graph needs at least one point")
    return values.astype(np.int64)
