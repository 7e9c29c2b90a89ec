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

from klopt.proof.enclosure import UNIT_ROUNDOFF
from klopt.proof.rational_psd import rational_psd
from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite

__all__ = ["negative_curvature", "strong_convexity"]

CURVATURE_SHARES = (0.5, 2.0**-4, 2.0**-8, 2.0**-14, 2.0**-20, 2.0**-28, 2.0**-36)
"""Shares of the diagonal that `strong_convexity` tries, powers of two so that products are exact."""
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


def strong_convexity(P: Any, columns: Any, radius: float = 0.0) -> float:
    """Return a proven share with P - share diag(P) on these columns positive semidefinite, or 0.

    With a radius it holds for every matrix that differs from P by at most so much in norm, and in
    no entry where P has a row of zeros.

    >>> strong_convexity(sparse.csc_array([[2.0, 1.0], [1.0, 2.0]]), np.array([0, 1])) >= 0.05
    True
    """
    rows = sparse.csr_array(P)
    support = np.flatnonzero(np.diff(rows.indptr))
    if support.size > MAX_ORDER:
        return 0.0
    block = rows[support][:, support].toarray()
    if not radius and np.array_equal(block, np.diag(block.diagonal())):
        return 0.5
    taken = np.where(np.isin(support, columns), block.diagonal(), 0.0)
    # The exact diagonal lies within a rounding of the computed one, which the margin takes.
    margin = 4 * UNIT_ROUNDOFF * float(np.max(np.abs(block.diagonal()), initial=0.0))
    margin += radius
    for share in CURVATURE_SHARES:
        moved = block.copy()
        moved.flat[:: support.size + 1] -= share * taken
        if is_positive_semidefinite(moved, margin):
            return share
    return 0.0


def _of_block(block: Any) -> float:
    if is_positive_semidefinite(block):
        return 0.0
    # Singular blocks: exact arithmetic decides, where it is not too much work.
    if rational_psd(sparse.csc_array(block)):
        return 0.0
    return max(0.0, -eigenvalue_floor(block))
