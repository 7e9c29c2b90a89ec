"""Reflections that make a panel of columns upper triangular, as the proposals of a band form."""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["householder"]


def householder(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return V and T with (I - V T V')'P upper triangular: a proposal.

    >>> P = np.array([[3.0], [4.0]])
    >>> V, T = householder(P)
    >>> (P - V @ T.T @ V.T @ P).round(12)
    array([[-5.],
           [ 0.]])
    """
    from scipy.linalg.lapack import dgeqrf

    k = min(P.shape)
    factored, scales, _, _ = dgeqrf(P, lwork=64 * P.shape[1])
    V = np.tril(factored[:, :k], -1)
    np.fill_diagonal(V, 1.0)
    # A column that is zero below its diagonal needs no reflection.
    V[:, scales == 0] = 0.0
    # The inverse of T has V'V above its diagonal, and 1 / scale on it.
    inverse = np.triu(V.T @ V, 1)
    inverse.flat[:: k + 1] = 1 / np.where(scales == 0, 1.0, scales)
    T = np.triu(np.linalg.inv(inverse))
    T[:, scales == 0] = 0.0
    return V, T
