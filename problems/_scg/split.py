"""The Laplacian of labels or pairs as the identity less a small matrix, S = I - U R U' with orthonormal columns U.

Labels have a column for each class and one for the unlabelled points. Pairs have W = 11' + E with E
on the points that they touch: a column for each of those, and one for the points that E leaves
alone, which are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc
from klopt.kernels.graphs import SupervisedGraph
from klopt.kernels.side_information import PairGraph, SideGraph

__all__ = ["Split", "split"]


@dataclass(frozen=True, eq=False)
class Split:
    """S = I - U R U'."""

    U: SparseMatrix
    R: FloatArray


def split(graph: SideGraph) -> Split | None:
    """Return U and R of a graph that has them; None for a dense matrix T.

    >>> from klopt.kernels.side_information import side_graph
    >>> pairs = split(side_graph(([(0, 1)], [(1, 4)]), 9))
    >>> pairs.U.shape, pairs.R.shape
    ((9, 4), (4, 4))
    """
    if isinstance(graph, SupervisedGraph):
        return Split(graph.Z, graph.R)
    return _of_pairs(graph) if isinstance(graph, PairGraph) else None


def _of_pairs(graph: PairGraph) -> Split:
    n = graph.degrees.size
    touched = np.flatnonzero(np.diff(graph.E.indptr))
    p, alone = touched.size, n - touched.size
    column = np.full(n, p)
    column[touched] = np.arange(p)
    weight = np.where(column == p, 1 / np.sqrt(max(alone, 1)), 1.0)
    U = csc("U", sparse.csc_array((weight, (np.arange(n), column)), shape=(n, p + (alone > 0))))
    roots = 1 / np.sqrt(graph.degrees)
    d = np.asarray(U.T @ roots, dtype=float)
    R = np.outer(d, d)
    R[:p, :p] += graph.E.tocsr()[touched][:, touched].toarray() * np.outer(
        roots[touched], roots[touched]
    )
    return Split(U, cast(FloatArray, R))
