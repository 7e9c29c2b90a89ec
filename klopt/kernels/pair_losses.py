"""Losses of a kernel matrix with respect to labels or pairs.

T_ij is +1 for similar points, -1 for dissimilar ones and 0 where nothing is said (T_ii does not
count in the first two):

    hinge_loss   sum_{i != j, T_ij != 0} max(0, 1 - T_ij K_ij)             Hoi, Jin, Lyu (2007)
    log_loss     sum_{i != j, T_ij != 0} log(1 + exp(-T_ij K_ij))
    scg_loss     sum_ij S_ij K_ij, S the Laplacian of the supervised complete graph

The first two are convex in K, the last is linear; all three take pairs as well as labels.

Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016, Table 1 and (10).
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray, matrix, symmetric
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import supervised_laplacian

__all__ = ["hinge_loss", "log_loss", "scg_loss"]


def hinge_loss(K: object, T: object) -> float:
    """Return the hinge loss of the pairs.

    >>> hinge_loss([[1.0, 0.25], [0.25, 1.0]], [[0, 1], [1, 0]])
    1.5
    """
    return float(np.maximum(0.0, 1.0 - _margins(K, T)).sum())


def log_loss(K: object, T: object) -> float:
    """Return the logistic loss of the pairs.

    >>> round(log_loss(np.zeros((2, 2)), [[0, -1], [-1, 0]]), 6)
    1.386294
    """
    return float(np.logaddexp(0.0, -_margins(K, T)).sum())


def scg_loss(K: object, T: object) -> float:
    """Return the loss of the supervised complete graph, <K, S>.

    >>> round(scg_loss(np.ones((2, 2)), np.ones((2, 2))), 12) + 0.0
    0.0
    """
    kernel, targets = _checked(K, T)
    return float(np.sum(kernel * supervised_laplacian(targets)))


def _margins(K: object, T: object) -> FloatArray:
    """T_ij K_ij of all ordered pairs that something is said about."""
    kernel, targets = _checked(K, T)
    told = targets != 0
    np.fill_diagonal(told, False)
    return np.asarray((targets * kernel)[told])


def _checked(K: object, T: object) -> tuple[FloatArray, FloatArray]:
    kernel = symmetric("K", matrix("K", K))
    targets = symmetric("T", matrix("T", T, kernel.shape))
    strange = ~np.isin(targets, (-1.0, 0.0, 1.0))
    if strange.any():
        i, j = np.argwhere(strange)[0]
        raise InvalidProblem(f"T[{i}, {j}] is {targets[i, j]:g}; expected -1, 0 or 1")
    return kernel, targets
