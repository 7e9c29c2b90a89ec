"""Points divided into clusters by k-means, and the cluster that a new point falls into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import pairwise_distances_argmin

from klopt.arrays import FloatArray
from klopt.learners.decomposition import kmeans_centres

__all__ = ["Division"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Division:
    """The points of each cluster, none of which is empty, and the centres; one cluster needs none.

    >>> points = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> division = Division.of(points, 2, seed=0)
    >>> sorted(rows.tolist() for rows in division.rows)
    [[0, 1], [2, 3]]
    >>> [int(division.rows[i][0]) for i in division.assigned(np.array([[1.0], [9.0]]))]
    [0, 2]
    """

    rows: tuple[Indices, ...]
    centres: FloatArray | None = None

    @classmethod
    def of(cls, X: Any, count: int, seed: int) -> Division:
        """Return at most `count` clusters of the rows of X, which may be sparse."""
        centres = kmeans_centres(X, count, seed)
        nearest = pairwise_distances_argmin(X, centres)
        kept = np.unique(nearest)
        return cls(tuple(np.flatnonzero(nearest == c) for c in kept), centres[kept])

    def assigned(self, points: Any) -> Indices:
        """Return the cluster of each point: that of the nearest centre."""
        if self.centres is None:
            return np.zeros(points.shape[0], dtype=np.intp)
        return np.asarray(pairwise_distances_argmin(points, self.centres), dtype=np.intp)
