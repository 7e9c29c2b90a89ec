"""What is given of an SCG-LDK problem, checked, and the Laplacian as the proof takes it.

Labels and pairs give S = I - U R U' with few orthonormal columns U. Labels have a column for each
class and one for the unlabelled points. Pairs have W = 11' + E with E on the points that they
touch: a column for each of those, and one for the points that E leaves alone, which are alike. A
matrix T gives S itself.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, MatrixLike, csc
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import SupervisedGraph
from klopt.kernels.nystroem import LowRank
from klopt.kernels.side_information import DenseGraph, PairGraph, SideGraph
from klopt.problems._scg.proof import LowRankLaplacian

__all__ = [
    "given_kernel",
    "laplacian_of",
]


def given_kernel(K0: Gram | LowRank | MatrixLike) -> Gram | LowRank:
    """Return K0, checked: features as they are, a matrix as one that is positive semidefinite."""
    if isinstance(K0, LowRank):
        return K0
    kernel = Gram.of(K0, "K0")
    if not kernel.matrix.any():
        raise InvalidProblem("K0 has no entry but 0; there is no kernel near it but 0")
    return kernel


def laplacian_of(graph: SideGraph) -> LowRankLaplacian | FloatArray:
    """Return S by its few columns, or S itself where a matrix T was given.

    >>> from klopt.kernels.side_information import side_graph
    >>> pairs = laplacian_of(side_graph(([(0, 1)], [(1, 4)]), 9))
    >>> pairs.U.shape, pairs.R.shape
    ((9, 4), (4, 4))
    """
    if isinstance(graph, DenseGraph):
        return graph.S
    if isinstance(graph, SupervisedGraph):
        return LowRankLaplacian(graph.Z, graph.R)
    return _of_pairs(graph)


def _of_pairs(graph: PairGraph) -> LowRankLaplacian:
    n = graph.degrees.size
    touched = np.flatnonzero(np.diff(graph.E.indptr))
    p = touched.size
    alone = n - p

    # A column of its own for each touched point, the last one for all others.
    column = np.full(n, p)
    column[touched] = np.arange(p)
    weight = np.where(column == p, 1 / np.sqrt(max(alone, 1)), 1.0)
    places = (np.arange(n), column)
    U = csc("U", sparse.csc_array((weight, places), shape=(n, p + (alone > 0))))

    roots = 1 / np.sqrt(graph.degrees)
    d = np.asarray(U.T @ roots, dtype=float)
    R = np.outer(d, d)
    E = graph.E.tocsr()[touched][:, touched].toarray()
    R[:p, :p] += E * np.outer(roots[touched], roots[touched])
    return LowRankLaplacian(U, cast(FloatArray, R))
