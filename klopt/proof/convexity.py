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

from klopt.arrays import FloatArray
from klopt.proof.enclosure import INFLATION, UNIT_ROUNDOFF, Enclosure
from klopt.proof.rational_psd import rational_psd
from klopt.proof.semidefinite import eigenvalue_floor, is_positive_semidefinite, radius_norm

__all__ = ["curvature_beside", "negative_curvature"]

CURVATURE_SHARES = tuple(np.ldexp(1.0, (-1, -4, -8, -14, -20, -28, -36)).tolist())
"""Shares of the diagonal that `curvature_beside` tries, powers of two so that products are exact."""
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

    # Without many zeros, the variables that P knows are one component.
    known = np.flatnonzero(np.diff(P.indptr))
    if known.size <= MAX_ORDER and 2 * P.nnz >= known.size**2:
        block = P.toarray()
        if is_positive_semidefinite(
            block if known.size == len(block) else block[np.ix_(known, known)]
        ):
            return 0.0
    rows = sparse.csr_array(P)
    _, labels = connected_components(rows, directed=False)
    sizes = np.bincount(labels, minlength=1)
    alone = sizes[labels] == 1
    phi = 0.0 - float(np.min(rows.diagonal()[alone], initial=0.0))
    for label in np.flatnonzero(sizes > 1):
        index = np.flatnonzero(labels == label)
        if index.size > MAX_ORDER:
            return float("inf")
        phi = max(phi, _of_block(rows[index][:, index].toarray()))
    return phi


def curvature_beside(terms: list[tuple[Any, float]], columns: Any) -> FloatArray | None:
    """Return m > 0, one for each column, with H - diag(m) positive semidefinite; None without.

    Parameters
    ----------
    terms
        H is the sum of these matrices times their factors >= 0.
    columns
        Where m is asked for; the other entries of the diagonal are 0.

    >>> P = sparse.csc_array([[2.0, 1.0], [1.0, 2.0]])
    >>> curvature_beside([(P, 1.0)], np.array([0]))
    array([1.])
    """
    rows = [(sparse.csr_array(matrix), factor) for matrix, factor in terms]
    entries = sum(np.diff(matrix.indptr) for matrix, _ in rows)
    support = np.flatnonzero(entries)
    if support.size > MAX_ORDER:
        return None
    total = Enclosure.of(np.zeros((support.size, support.size)))
    for matrix, factor in rows:
        total = total + Enclosure.of(matrix[support][:, support].toarray()) * factor
    H = total.mid
    # One matrix as it is has no rounding.
    rounding = 0.0 if [factor for _, factor in rows] == [1.0] else radius_norm(total.rad)
    diagonal = H.diagonal()
    wanted = np.isin(support, columns)
    if wanted.sum() < np.size(columns) or not (diagonal[wanted] > 0).all():
        return None
    # The diagonal is rounded once more.
    margin = (rounding + UNIT_ROUNDOFF * float(np.max(diagonal, initial=0.0))) * INFLATION
    for share in CURVATURE_SHARES if wanted.any() else (0.0,):
        taken = np.where(wanted, share * diagonal, 0.0)
        moved = H.copy()
        moved.flat[:: support.size + 1] -= taken
        if _is_diagonal(moved) and not rounding:
            proven = bool((moved.diagonal() >= 0).all())
        else:
            proven = is_positive_semidefinite(moved, margin)
        if proven:
            found = np.zeros(rows[0][0].shape[0])
            found[support] = taken
            return np.asarray(found[columns], float)
    return None


def _is_diagonal(block: FloatArray) -> bool:
    return bool(np.count_nonzero(block) == np.count_nonzero(block.diagonal()))


def _of_block(block: Any) -> float:
    if is_positive_semidefinite(block):
        return 0.0
    # Singular blocks: exact arithmetic decides, where it is not too much work.
    if rational_psd(sparse.csc_array(block)):
        return 0.0
    return -eigenvalue_floor(block)
