"""Gaussian kernel matrices of points, with bounds of their eigenvalues that need no factorisation.

K_ij = exp(-gamma ||x_i - x_j||^2) is positive semidefinite for any points (Schoenberg), so a
computed matrix K + E has no eigenvalue below -||E||. Squared distances come from one product of
matrices, n_i + n_j - 2 x_i'x_j with n_i = ||x_i||^2: with p columns and unit roundoff u they err by
at most

    d = (2p + 8) u (n_i + n_j),      hence      |E_ij| <= e K_ij,    e = exp(gamma d) - 1 + 16 u.

2p units are for the three sums of products, 3 for the two sums after them and 2 for the product
with gamma, as the distance is at most 2 (n_i + n_j). The 16 u are for an exponential that is right
to 4 units in the last place and for the bound itself. ||E|| is at most the largest row sum of e K.
Points are centred first: of the rounded ones the matrix is a kernel too. Sparse
points are not centred, which would make them dense: the same bound holds, as no sum has more than p
terms and the bound does not depend on their order. Half of a matrix is
computed and mirrored, so it is symmetric to the last bit and takes half the exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import UNIT_ROUNDOFF, FloatArray
from klopt.proof.enclosure import ETA, gamma as gamma_n, round_down

__all__ = ["gamma_scale", "gaussians"]

TILE_ORDER = 128
"""The order of the parts that are worked on at a time: they fit into a cache."""


def gaussians(X: Any, gammas: Sequence[float]) -> list[tuple[FloatArray, float]]:
    """Return exp(-gamma ||x - x'||^2) for each gamma, with a lower bound of its eigenvalues.

    X is a dense matrix, one point in each row, or a sparse one.

    >>> (wide, _), (narrow, floor) = gaussians(np.array([[0.0], [1.0]]), [0.5, 1.0])
    >>> wide.round(4), narrow.round(4), -1e-13 < floor < 0
    (array([[1.    , 0.6065],
           [0.6065, 1.    ]]), array([[1.    , 0.3679],
           [0.3679, 1.    ]]), True)
    """
    inner = _inner_products(X)
    squares = inner.diagonal().copy()
    # The last kernel overwrites x_i'x_j, tile by tile, after all others have used it.
    matrices = [np.empty_like(inner) for _ in gammas[1:]] + [inner]
    parts = [slice(start, start + TILE_ORDER) for start in range(0, len(inner), TILE_ORDER)]
    for place, rows in enumerate(parts):
        for columns in parts[place:]:
            D = squares[rows, None] + squares[columns] - 2 * inner[rows, columns]
            np.maximum(D, 0.0, out=D)
            # Inside a diagonal tile a BLAS product need not be symmetric, nor its diagonal exact.
            if rows is columns:
                D = np.tril(D) + np.tril(D, -1).T
                D.flat[:: len(D) + 1] = 0.0
            for gamma, K in zip(gammas, matrices, strict=True):
                part = D * -gamma
                np.exp(part, out=part)
                K[rows, columns] = part
                K[columns, rows] = part.T
    error = 2 * (2 * X.shape[1] + 8) * UNIT_ROUNDOFF * float(squares.max())
    # Products that underflow lose eta each.
    error += 4 * (X.shape[1] + 2) * ETA
    return [(K, _floor(K, gamma * error)) for gamma, K in zip(gammas, matrices, strict=True)]


def gamma_scale(X: Any, weights: FloatArray | None = None) -> float:
    """Return 1 / (columns x variance), scikit-learn's "scale"; 1 where all entries are equal.

    With weights a row counts as often as its weight says.

    >>> gamma_scale(np.array([[0.0], [2.0]]))
    1.0
    >>> gamma_scale(np.array([[0.0], [2.0]]), np.array([3.0, 1.0])) == gamma_scale(
    ...     np.array([[0.0], [0.0], [0.0], [2.0]])
    ... )
    True
    """
    if sparse.issparse(X):
        variance = _sparse_variance(X, weights)
    elif weights is None:
        variance = float(np.var(X, dtype=float))
    else:
        means = np.average(X, axis=1)
        centre = float(np.average(means, weights=weights))
        variance = float(np.average(np.square(X - centre).mean(axis=1), weights=weights))
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


def _inner_products(X: Any) -> FloatArray:
    """x_i'x_j, of dense points after they are centred."""
    if sparse.issparse(X):
        points: Any = X
        return np.asarray((points @ points.T).toarray(), dtype=np.float64)
    centred = X - X.mean(axis=0)
    return np.asarray(centred @ centred.T, dtype=np.float64)


def _sparse_variance(X: Any, weights: FloatArray | None) -> float:
    """The variance of all entries, whose rows count by weights."""
    rows = np.asarray(X.mean(axis=1), dtype=np.float64).ravel()
    squares = np.asarray(X.multiply(X).mean(axis=1), dtype=np.float64).ravel()
    centre = float(np.average(rows, weights=weights))
    return float(np.average(squares, weights=weights)) - centre**2


def _floor(K: FloatArray, exponent: float) -> float:
    """A lower bound of the eigenvalues where the exponents err by up to `exponent`."""
    # The bound would be too loose to be of use; NaN is caught as well.
    if not exponent < 0.1:
        return -np.inf
    error = float(np.expm1(exponent)) + 16 * UNIT_ROUNDOFF
    # K as computed stands for the true one, which differs by the same share; what underflowed to 0
    # was below tiny.
    largest = float(K.sum(axis=1).max()) * (1 + gamma_n(len(K))) / (1 - error)
    return float(round_down(-(error * largest + 2 * len(K) * float(np.finfo(float).tiny))))
