"""`Dataset`: points with labels or targets, and the kernels and graphs made of them in examples.

The kernel is K_ij = exp(-|x_i - x_j|^2 / features). Where a problem learns from some labels, those
of every second point of a class are hidden; graphs join five neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import UNLABELLED, knn_graph, laplacian
from klopt.kernels.nystroem import LowRank

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Dataset"]

NEIGHBOURS = 5
SMOOTH_EIGENVECTORS = 40
"""The number of eigenvectors that ordered kernels are made of."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Standardised points with class labels 0, 1, .. or, for regression, standardised targets."""

    X: FloatArray
    y: FloatArray

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.X)

    @property
    def signs(self) -> FloatArray:
        """+1 for the first class, -1 for the others."""
        return np.where(self.y == 0, 1.0, -1.0)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """The labels, those of every second point of each class hidden."""
        known = np.zeros(self.y.size, dtype=bool)
        for label in np.unique(self.y):
            known[np.flatnonzero(self.y == label)[::2]] = True
        return np.where(known, self.y, UNLABELLED).astype(np.int64)

    @property
    def pairs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All pairs of labelled points, similar ones and dissimilar ones."""
        known = np.flatnonzero(self.classes != UNLABELLED)
        i, j = known[np.array(np.triu_indices(known.size, 1))]
        pairs = np.column_stack([i, j])
        same = self.y[i] == self.y[j]
        return pairs[same], pairs[~same]

    @property
    def distances(self) -> FloatArray:
        """|x_i - x_j|^2 / features."""
        squares = np.square(self.X).sum(axis=1)
        distances = np.maximum(squares[:, None] + squares - 2 * self.X @ self.X.T, 0.0)
        np.fill_diagonal(distances, 0.0)
        return np.asarray(distances / self.X.shape[1])

    def kernel(self, width: float = 1.0) -> FloatArray:
        """Return exp(-|x_i - x_j|^2 / (width features))."""
        return np.asarray(np.exp(-self.distances / width))

    @property
    def kernels(self) -> list[FloatArray]:
        """Kernels of three widths, from local to smooth."""
        return [self.kernel(width) for width in (0.3, 1.0, 3.0)]

    @property
    def similarities(self) -> list[FloatArray]:
        """Two indefinite ones: tanh(x_i'x_j / features) and 1 - |x_i - x_j|^2 / (2 features)."""
        sigmoid = np.tanh(self.X @ self.X.T / self.X.shape[1])
        return [sigmoid, 1 - self.distances / 2]

    @property
    def features(self) -> LowRank:
        """The linear kernel by its features, without the matrix."""
        return LowRank(self.X / np.sqrt(self.X.shape[1]))

    @property
    def laplacian(self) -> SparseMatrix:
        """The normalised Laplacian of the neighbour graph."""
        return laplacian(knn_graph(self.X, NEIGHBOURS))

    @property
    def smooth(self) -> FloatArray:
        """The smoothest eigenvectors of that graph, as columns."""
        return smoothest_eigenpairs(self.laplacian, SMOOTH_EIGENVECTORS)[1]

    @property
    def graph_laplacian(self) -> SparseMatrix:
        """The Laplacian D - W of the neighbour graph, not normalised."""
        return laplacian(knn_graph(self.X, NEIGHBOURS), normalised=False)
