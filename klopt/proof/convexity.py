"""How far a sparse symmetric matrix is from positive semidefinite, one component at a time.

After a permutation P is block diagonal over the connected components of its graph. A block of one
entry is decided by its sign; a larger one by Rump's test (`klopt.proof.semidefinite`), and where
that fails because the block is singular, by an exact factorisation in rationals. What cannot be
proven positive semidefinite has a proven bound -phi of its smallest eigenvalue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite

__all__ = ["negative_curvature"]

MAX_ORDER = 3000
"""Blocks of a larger order are not factored: nothing is proven of them."""


def negative_curvature(P: Any) -> float:
    """Return a proven phi >= 0 with P + phi I positive semidefinite, 0 where P itself is.

    >>> negative_curvature(sparse.csc_array([[2.0, 1.0], [1.0, 2.0]]))
    0.0
    >>> 0.99 < negative_curvature(sparse.csc_array([[1.0, 2.0], [2.0, 1.0]])) < 1.01
    True
    """
    from scipy.sparse.csgraph import connected_components

    rows = sparse.csr_array(P)
    _, labels = connected_components(rows, directed=False)
    sizes = np.bincount(labels, minlength=1)
    alone = sizes[labels] == 1
    phi = max(0.0, float(-np.min(rows.diagonal()[alone], initial=0.0)))
    for label in np.flatnonzero(sizes > 1):
        index = np.flatnonzero(labels == label)
        if index.size > MAX_ORDER:
            return float("inf")
        phi = max(phi, _of_block(rows[index][:, index].toarray()))
    return phi


def _of_block(block: Any) -> float:
    if is_positive_semidefinite(block):
        return 0.0
    if rational_positive_semidefinite(block):
        return 0.0
    return max(0.0, -eigenvalue_floor(block))


def rational_positive_semidefinite(block: Any) -> bool:
    """Whether LDL' in fractions proves it: every pivot positive, or 0 with its column 0."""
    from fractions import Fraction

    n = len(block)
    if n > 120:
        return False
    M = [[Fraction(float(v)) for v in row] for row in block]
    for k in range(n):
        pivot = M[k][k]
        if pivot < 0:
            return False
        if pivot == 0:
            if any(M[i][k] for i in range(k + 1, n)):
                return False
            continue
        for i in range(k + 1, n):
            if not M[i][k]:
                continue
            factor = M[i][k] / pivot
            for j in range(k + 1, i + 1):
                M[i][j] -= factor * M[j][k]
        for i in range(k + 1, n):
            for j in range(k + 1, i):
                M[j][i] = M[i][j]
    return True
