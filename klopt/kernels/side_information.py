"""Side information on pairs of points as a graph whose Laplacian is applied without being formed.

The supervised complete graph of `klopt.kernels.graphs` has the weights W_ij = exp(T_ij), T_ij = 1
for similar points, -1 for dissimilar ones, 0 for unknown pairs, and the normalised Laplacian S
= I - D^-1/2 W D^-1/2. S V and the energies

    c_i = v_i'S v_i

of the columns of V (n x r) never need S where it has structure:

    labels   S = I - Z R Z' by groups                          O(n r + r groups^2)
    pairs    W = 11' + E, E on the given pairs only            O((n + pairs) r)
    T        S dense                                           O(n^2 r)

**The diagonal of T.** One convention for all three: T_ii = 1 for every point that the side information
speaks of, that is, one with a label, in a pair, or with an entry of T off the diagonal; 0 for the
others. The labels, their pairs and the T of their pairs then make one graph, and S of labels is the
identity minus a low rank. (7) of Pan et al. (2016) leaves T_ii = 0; `self_similar=False` takes it
literally. The two differ by terms of the order 1 / n. A T whose diagonal is not 0 is taken as it
stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, freeze, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import (
    SupervisedGraph,
    class_labels,
    supervised_graph,
    supervised_laplacian,
    supervised_targets,
)
from klopt.proof.enclosure import gamma

__all__ = [
    "DenseGraph",
    "PairGraph",
    "SideGraph",
    "SideLike",
    "energies",
    "energy_error",
    "side_graph",
]

UNDERFLOW = 2.0**-1000
"""What underflow may take from an energy."""


@dataclass(frozen=True, eq=False)
class DenseGraph:
    """The graph of a full matrix T, by its Laplacian."""

    S: FloatArray

    def apply(self, X: FloatArray) -> FloatArray:
        """Return S X."""
        return self.S @ X


@dataclass(frozen=True, eq=False)
class PairGraph:
    """The graph of some pairs: W = 11' + E with a sparse E."""

    E: SparseMatrix
    degrees: FloatArray

    def apply(self, X: FloatArray) -> FloatArray:
        """Return S X for a vector or the columns of a matrix."""
        roots = 1 / np.sqrt(self.degrees)
        scaled = (X.T * roots).T
        return cast(FloatArray, X - ((scaled.sum(axis=0) + self.E @ scaled).T * roots).T)


SideGraph: TypeAlias = SupervisedGraph | PairGraph | DenseGraph
SideLike: TypeAlias = MatrixLike | tuple[npt.ArrayLike, npt.ArrayLike]
"""What `side_graph` takes: class labels, a matrix T, or two lists of pairs."""


def side_graph(side: object, size: int, *, self_similar: bool = True) -> SideGraph:
    """Return the graph of side information on `size` points.

    Parameters
    ----------
    side
        A vector of class labels (-1: unlabelled), a symmetric matrix T, a tuple of two lists of
        pairs (similar, dissimilar), or a graph, which is kept.
    size
        The number of points.
    self_similar
        Whether a point that the side information speaks of is similar to itself, T_ii = 1; False
        leaves T_ii = 0, as (7) of Pan et al. (2016) does. A diagonal of T that is not 0 stands.

    Examples
    --------
    >>> labels, pairs = side_graph([0, 0, 1], 3), side_graph(([(0, 1)], [(0, 2), (1, 2)]), 3)
    >>> matrix = side_graph([[0, 1, -1], [1, 0, -1], [-1, -1, 0]], 3)
    >>> bool(np.allclose(labels.apply(np.eye(3)), pairs.apply(np.eye(3))))
    True
    >>> bool(np.allclose(labels.apply(np.eye(3)), matrix.apply(np.eye(3))))
    True
    """
    if isinstance(side, SupervisedGraph | PairGraph | DenseGraph):
        about = len(side.S) if isinstance(side, DenseGraph) else side.degrees.size
        if about != size:
            raise InvalidProblem(f"side is about {about} points; expected {size}")
        return side
    # A tuple of two numbers is a vector of labels.
    if isinstance(side, tuple) and len(side) == 2 and not np.isscalar(side[0]):
        similar = _pairs("similar", side[0], size)
        dissimilar = _pairs("dissimilar", side[1], size)
        return _pair_graph(similar, dissimilar, size, self_similar)
    given = cast(Any, side) if sparse.issparse(side) else np.asarray(side)
    if given.ndim == 1:
        labels = class_labels(given, size)
        if (labels < 0).all():
            raise InvalidProblem(
                f"labels are all -1: none of the {size} points is labelled; label at least one"
            )
        if self_similar:
            return supervised_graph(labels)
        require_memory(24.0 * size**2, f"S of order {size}")
        return DenseGraph(supervised_laplacian(_between(labels)))
    if given.ndim != 2:
        raise InvalidProblem(
            f"side has {given.ndim} dimensions; expected labels, a matrix T, or two lists of pairs"
        )
    if given.shape != (size, size):
        raise InvalidProblem(
            f"T is {given.shape[0]} x {given.shape[1]}; expected {size} x {size}, one row a point"
        )
    require_memory(24.0 * size**2, f"S of order {size}")
    return DenseGraph(supervised_laplacian(_with_diagonal(given) if self_similar else given))


def _between(labels: npt.NDArray[np.int64]) -> FloatArray:
    """T of labels as (7) has it: 0 on the diagonal and for unlabelled points."""
    T = np.array(supervised_targets(labels))
    np.fill_diagonal(T, 0.0)
    return T


def _with_diagonal(T: Any) -> Any:
    """T with T_ii = 1 for every point with another entry, where nothing stands on the diagonal."""
    # Checked before compiled code sees its indices.
    dense = csc("T", T).toarray() if sparse.issparse(T) else np.array(T)
    if dense.dtype.kind not in "fiu" or np.diagonal(dense).any():
        return T
    spoken_of = dense.any(axis=1)
    np.fill_diagonal(dense, np.where(spoken_of, 1, 0))
    return dense


def energies(graph: SideGraph, V: FloatArray) -> FloatArray:
    """Return c_i = v_i'S v_i for the columns of V.

    >>> energies(side_graph([0, 0], 2), np.array([[1.0, 1.0], [1.0, -1.0]])).round(12)
    array([0., 2.])
    """
    # v'S v = v'v - (Z'v)'R (Z'v), without any array of the size of S V.
    if isinstance(graph, SupervisedGraph):
        P = graph.Z.T @ V
        squares = np.einsum("ij,ij->j", V, V)
        return cast(FloatArray, squares - np.einsum("ij,ij->j", P, graph.R @ P))
    return cast(FloatArray, np.einsum("ij,ij->j", V, graph.apply(V)))


def energy_error(graph: SideGraph, V: FloatArray) -> FloatArray:
    """Return how far `energies` may be from v_i'S v_i of the exact V and S, for each column.

    The matrix N = D^-1/2 W D^-1/2 of positive entries has the norm 1, so that |v|'N|v| <= ||v||^2:
    relative errors of entries of W and D and of sums (Lemma E2) cost as much times ||v||^2. With u
    the unit roundoff, n points and g groups:

        labels   Z within 2 u, R within (g + 14) u; sums of n, n, g and g terms
        T        W = exp(T) within 8 u, D within gamma_n + 8 u; |S| <= I + N
        pairs    11' + |E| <= 4.5 W; D_ii >= n / e from terms of at most 2.72 n: within 7.4 gamma_n

    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> bool((energy_error(side_graph([0, 0], 2), V) < 1e-13).all())
    True
    """
    n = len(V)
    if isinstance(graph, SupervisedGraph):
        share = 3 * gamma(n + len(graph.R) + 16)
    elif isinstance(graph, DenseGraph):
        share = 6 * gamma(n + 16)
    else:
        share = 50 * gamma(n + 16)
    # One per cent covers products of errors, the last term underflow. Long vectors are worked on in
    # place.
    error: FloatArray = np.einsum("ij,ij->j", V, V)
    error *= 1.01 * share
    error += UNDERFLOW
    return error


def _pairs(name: str, given: object, size: int) -> np.ndarray[Any, Any]:
    """The pairs i < j, each once."""
    pairs = np.asarray(given)
    if not pairs.size:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidProblem(
            f"{name} has shape {pairs.shape} and dtype {pairs.dtype}; expected a list of pairs (i, j)"
        )
    outside = (pairs < 0).any(axis=1) | (pairs >= size).any(axis=1)
    bad = np.flatnonzero(outside | (pairs[:, 0] == pairs[:, 1]))
    if bad.size:
        i, j = pairs[bad[0]]
        raise InvalidProblem(
            f"{name}[{bad[0]}] is ({i}, {j}); expected two different points from 0 to {size - 1}"
        )
    return np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0)


def _pair_graph(
    similar: np.ndarray[Any, Any], dissimilar: np.ndarray[Any, Any], size: int, self_similar: bool
) -> PairGraph:
    both = np.concatenate([similar, dissimilar])
    if not len(both):
        raise InvalidProblem("both lists of pairs are empty; give at least one pair")

    # The pair (i, j) as the number i size + j.
    codes = both @ np.array([size, 1])
    again = np.flatnonzero(np.isin(codes[: len(similar)], codes[len(similar) :]))
    if again.size:
        i, j = similar[again[0]]
        raise InvalidProblem(f"the pair ({i}, {j}) is both similar and dissimilar; keep one")

    # E_ij = exp(T_ij) - exp(0); on the diagonal too, where every point of a pair has T_ii = 1.
    values = np.repeat([math.e - 1, 1 / math.e - 1], [len(similar), len(dissimilar)])
    upper = sparse.csc_array((values, (both[:, 0], both[:, 1])), shape=(size, size))
    touched = np.isin(np.arange(size), both) & self_similar
    E = csc("E", upper + upper.T + sparse.diags_array(np.where(touched, math.e - 1, 0.0)))
    return PairGraph(E, cast(FloatArray, freeze(size + np.asarray(E.sum(axis=0), dtype=float))))
