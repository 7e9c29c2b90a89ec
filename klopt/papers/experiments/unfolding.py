"""Coloured maximum variance unfolding: a kernel that agrees with labels and keeps near distances.

    maximise <HKH, L> over K >= 0   subject to   K_ii + K_jj - 2 K_ij = |x_i - x_j|^2, (i, j) near,
                                                 1'K1 = 0,

H = I - 11'/n and L_pq = 1 where p and q have one class. It is the Hilbert-Schmidt independence
criterion [1] in the place of the trace in maximum variance unfolding. With an orthonormal basis B of
the vectors of sum 0, K = BMB', and M >= 0 needs no such equation.
Its n (n - 1) / 2 unknowns make it a method for about a hundred points.

[1] Song, Smola, Borgwardt, Gretton, Colored maximum variance unfolding, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import helmert

from klopt.arrays import FloatArray, matrix
from klopt.kernels.alignment import ideal_kernel
from klopt.kernels.graphs import knn_graph
from klopt.model.problem import Point

if TYPE_CHECKING:
    from klopt.problems.sdp import SDP

__all__ = ["Unfolding", "coloured_unfolding"]


@dataclass(frozen=True, eq=False)
class Unfolding:
    """The semidefinite program of M, and the basis B."""

    program: SDP
    basis: FloatArray
    """n x (n - 1), orthonormal columns of sum 0."""

    def kernel(self, point: Point) -> FloatArray:
        """Return K = BMB' of a solution."""
        M = np.asarray(point.primal["X0"])
        return np.asarray(self.basis @ M @ self.basis.T)


def coloured_unfolding(X: object, labels: npt.ArrayLike, neighbours: int = 4) -> Unfolding:
    """Return the program whose solution unfolds points by their classes.

    Parameters
    ----------
    X
        The points, one in each row. Their neighbour graph must be connected, or the program is
        unbounded.
    labels
        The class of each point.
    neighbours
        How many nearest neighbours of a point keep their distance. With more than there are
        coordinates, groups of neighbours are rigid, no K is definite, and optima are rarely proven.

    >>> import klopt
    >>> line = coloured_unfolding([[0.0], [1.0], [2.0]], [0, 0, 1], neighbours=1)
    >>> result = klopt.solve(line.program)
    >>> result.verdict.name, round(result.value, 4), line.kernel(result.point).shape
    ('OPTIMAL', 2.0, (3, 3))
    """
    from klopt.problems.sdp import SDP

    points = matrix("X", X)
    B = helmert(len(points)).T
    near = sparse.triu(knn_graph(points, neighbours)).tocoo()
    rows = []
    values = []
    for i, j in zip(near.row, near.col, strict=True):
        gap = B[i] - B[j]
        rows.append(np.outer(gap, gap))
        values.append(float(np.sum((points[i] - points[j]) ** 2)))
    # HB = B: centring is done by the basis.
    target = B.T @ ideal_kernel(labels) @ B
    program = SDP.standard((target + target.T) / 2, rows, values, sense="max")
    return Unfolding(program, B)
