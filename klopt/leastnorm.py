"""Least-norm corrections: the shortest step onto a linear system, sparse or dense, whatever its rank.

    least_norm(B)(g)       the u of least ||u|| with B u = g
    nearest(M, G)(h, g)    the d of least ||M d - h|| with G d = g

Both factor once and solve often. Dependent rows are allowed where they agree: the factors belong to a slightly shifted
system, and a few rounds of refinement on the true one remove the shift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray

__all__ = ["TooLarge", "least_norm", "nearest"]

Solve: TypeAlias = Callable[[FloatArray], FloatArray]

SHIFT = 1e-11
ROUNDS = 4
# What may be factored: a correction must stay cheap next to the solve it corrects.
MOST_DENSE = 4000
MOST_ENTRIES = 2e7


class TooLarge(Exception):
    """The system would cost more to factor than a correction is worth; the caller does without."""


def least_norm(B: Any) -> Solve:
    """Return the map from g to the shortest u with Bu = g (least squares where there is none).

    >>> least_norm(np.array([[1.0, 1.0]]))(np.array([2.0])).round(9)
    array([1., 1.])
    """
    norms = _row_norms(B)
    unit = _scale_rows(B, 1 / norms)
    inner = _factor(unit @ unit.T, np.full(unit.shape[0], SHIFT))

    def solve(g: FloatArray) -> FloatArray:
        target = g / norms
        z = np.zeros_like(target)
        for _ in range(ROUNDS):
            z = z + inner(target - unit @ (unit.T @ z))
        return cast(FloatArray, unit.T @ z)

    return solve


def nearest(M: Any, G: Any, small: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the map from (h, g) to the d of least ||Md - h||^2 + ||small * d||^2 with Gd = g.

    >>> nearest(np.eye(2), np.array([[1.0, 1.0]]), np.zeros(2))(np.array([3.0, 0.0]), np.zeros(1)).round(9)
    array([ 1.5, -1.5])
    """
    H = M.T @ M
    unit = 1 / np.sqrt(_diagonal(H) + small**2 + np.finfo(float).tiny)
    M, ridge = _scale_columns(M, unit), (small * unit) ** 2
    G = _scale_columns(G, unit)
    norms = _row_norms(G)
    G = _scale_rows(G, 1 / norms)
    n, p = unit.size, norms.size
    K = _saddle(M.T @ M, G)
    inner = _factor(K, np.concatenate((ridge + SHIFT, np.full(p, -SHIFT))))

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        target = np.concatenate((M.T @ h, g / norms))
        z = np.zeros(n + p)
        for _ in range(ROUNDS):
            d, q = z[:n], z[n:]
            image = np.concatenate((M.T @ (M @ d) + ridge * d + G.T @ q, G @ d))
            z = z + inner(target - image)
        return unit * z[:n]

    return solve


def _factor(S: Any, shift: FloatArray) -> Solve:
    """The solution map of the symmetric S + diag(shift)."""
    size = S.shape[0]
    if not size:
        return lambda g: g
    if sparse.issparse(S) and S.nnz < 0.1 * size**2 and size > 200:
        if S.nnz > MOST_ENTRIES:
            raise TooLarge
        from scipy.sparse.linalg import splu

        system = sparse.csc_array(S + sparse.diags_array(shift))
        options = {"SymmetricMode": True}
        try:
            return cast(Solve, splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options=options).solve)
        except (RuntimeError, MemoryError) as error:
            raise TooLarge from error
    if size > MOST_DENSE:
        raise TooLarge
    from scipy.linalg import lu_factor, lu_solve

    dense = S.toarray() if sparse.issparse(S) else S.copy()
    dense.flat[:: size + 1] += shift
    factors = lu_factor(dense, overwrite_a=True, check_finite=False)
    return lambda g: cast(FloatArray, lu_solve(factors, g, check_finite=False))


def _saddle(H: Any, G: Any) -> Any:
    if sparse.issparse(H):
        return sparse.block_array([[H, G.T], [G, None]], format="csc") if G.shape[0] else H
    G = G.toarray() if sparse.issparse(G) else G
    return np.block([[H, G.T], [G, np.zeros((G.shape[0], G.shape[0]))]])


def _row_norms(B: Any) -> FloatArray:
    """The norms of the rows, 1 for an empty row."""
    largest = abs(B).max(axis=1) if B.shape[1] else np.zeros(B.shape[0])
    largest = largest.toarray().ravel() if sparse.issparse(largest) else largest
    safe = np.where(largest > 0, largest, 1.0)
    squares = (_scale_rows(B, 1 / safe) ** 2).sum(axis=1)
    return cast(FloatArray, np.where(largest > 0, safe * np.sqrt(np.asarray(squares).ravel()), 1.0))


def _diagonal(H: Any) -> FloatArray:
    return cast(FloatArray, H.diagonal())


def _scale_rows(B: Any, by: FloatArray) -> Any:
    return sparse.csr_array(sparse.diags_array(by) @ B) if sparse.issparse(B) else by[:, None] * B


def _scale_columns(B: Any, by: FloatArray) -> Any:
    return sparse.csr_array(B @ sparse.diags_array(by)) if sparse.issparse(B) else B * by
