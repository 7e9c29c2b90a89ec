"""Least-norm corrections: the shortest step onto a linear system, sparse or dense, whatever its rank.

    least_norm(B)(g)               the u of least ||u|| with B u = g
    nearest(M, G, small)(h, g)     the d of least ||M d - h||^2 + ||small * d||^2 with G d = g
    least_distance(E, e, G, h)     the z of least ||z|| with E z = e and G z >= h

Weights of a point near the boundary of its cone spread over many powers of ten, so none squares its
matrix: small systems go through orthogonal factors, large sparse ones through the augmented system

    [ a I  B' ] [ . ]   [ 0 ]              [ a I  M   0  ] [ . ]   [ h ]
    [ B    0  ] [ z ] = [ g ],  u = B'z,   [ M'   0   G' ] [ d ] = [ 0 ]
                                           [ 0    G   0  ] [ . ]   [ g ]

with a shift that is refined away. The first two are factored once and solved often; rows that
depend on each other are allowed where they agree. The third is least distance programming by
nonnegative least squares (Lawson and Hanson, 1974, chapter 23): with u >= 0 of least ||(G'u, h'u -
1)|| and that residual (p, q), z = -p / q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.cone_interior import is_sparse

__all__ = ["MOST_DENSE_WORK", "TooLarge", "is_bearable", "least_distance", "least_norm", "nearest"]

Solve: TypeAlias = Callable[[FloatArray], FloatArray]

ROUNDS = 3
RANK = 1e-14
BALANCE = 1e-5
# By so much of what was lacking an inequality may still be violated.
CLOSE = 1e-9
SHIFT = 1e-26
# What may be factored: a correction must stay cheap next to the solve it corrects.
MOST_DENSE_WORK = 2e9
MOST_ENTRIES = 5e6


class TooLarge(Exception):
    """The system would cost more to factor than a correction is worth; the caller does without."""


def least_norm(B: Any, most: float = MOST_DENSE_WORK) -> Solve:
    """Return the map from g to the shortest u with Bu = g (least squares where there is none).

    Up to `most` operations it goes by orthogonal factors.

    >>> least_norm(np.array([[1.0, 1.0]]))(np.array([2.0])).round(9)
    array([1., 1.])
    """
    norms = _norms(B, axis=1)
    unit = _scaled(B, 1 / norms, np.ones(B.shape[1]))
    inner = _orthogonal(_dense(unit)) if _is_small(unit.shape, most) else _augmented(unit)

    def solve(g: FloatArray) -> FloatArray:
        target = g / norms
        u = np.zeros(unit.shape[1])
        for _ in range(ROUNDS):
            u = u + inner(target - unit @ u)
        return u

    return solve


def nearest(M: Any, G: Any, small: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return the map from (h, g) to the d of least ||Md - h||^2 + ||small * d||^2 with Gd = g.

    >>> nearest(np.eye(2), np.array([[1.0, 1.0]]), np.zeros(2))(np.array([3.0, 0.0]), np.zeros(1)).round(9)
    array([ 1.5, -1.5])
    """
    ridge = sparse.diags_array(small, format="csr")
    tall = (
        sparse.vstack([M, ridge], format="csr") if is_sparse(M) else np.vstack([M, ridge.toarray()])
    )
    unit = 1 / _norms(tall, axis=0)
    norms = _norms(_scaled(G, np.ones(G.shape[0]), unit), axis=1)
    tall, G = _scaled(tall, np.ones(tall.shape[0]), unit), _scaled(G, 1 / norms, unit)
    dense = _is_small(tall.shape) and _is_small((unit.size, unit.size))
    inner = _null_space(_dense(tall), _dense(G)) if dense else _augmented_nearest(tall, G)

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        aim, target = np.concatenate((h, np.zeros(unit.size))), g / norms
        d = np.zeros(unit.size)
        for _ in range(ROUNDS):
            d = d + inner(aim - tall @ d, target - G @ d)
        return unit * d

    return solve


def least_distance(
    E: Any, e: FloatArray, G: Any, h: FloatArray, most: float = MOST_DENSE_WORK
) -> FloatArray:
    """Return the shortest z with Ez = e and Gz >= h, about right where there is none; `most` operations at a time.

    >>> least_distance(np.array([[1.0, 1.0]]), np.array([2.0]), np.array([[1.0, 0.0]]), np.array([1.5])).round(9)
    array([1.5, 0.5])
    """
    from scipy.optimize import nnls

    columns = E.shape[1]
    if not _is_small((columns, columns), most) or not _is_small(G.shape, most):
        raise TooLarge
    E, G = _dense(E), _dense(G)
    start, N = _solutions(E, e)
    lacking = h - G @ start
    worst = float(np.max(lacking, initial=0.0))
    if worst <= 0 or not N.shape[1]:
        return start
    stacked = np.vstack([(G @ N).T, lacking / worst])
    aim = np.zeros(stacked.shape[0])
    aim[-1] = 1.0
    try:
        u, _ = nnls(stacked, aim, maxiter=10 * stacked.shape[1])
    except RuntimeError as error:
        raise TooLarge from error
    rest = stacked @ u - aim
    by_ratio = start - N @ (rest[:-1] * (worst / rest[-1] if rest[-1] else 0.0))
    if np.max(h - G @ by_ratio) <= CLOSE * worst:
        return by_ratio
    # Where hardly any z is left the ratio is one of rounding errors; the rows with a multiplier
    # hold with equality.
    tight = np.flatnonzero(u)
    by_face, _ = _solutions(np.vstack([E, G[tight]]), np.concatenate([e, h[tight]]))
    return min((by_ratio, by_face), key=lambda z: float(np.max(h - G @ z)))


def _solutions(E: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The shortest solution of Ez = e and an orthonormal basis of the null space."""
    from scipy.linalg import qr, solve_triangular

    full, R, order = qr(E.T, mode="full", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    rank = int(np.sum(size > RANK * size[:1].sum()))
    start = full[:, :rank] @ solve_triangular(
        R[:rank, :rank], e[order[:rank]], trans="T", check_finite=False
    )
    return start, np.asarray(full[:, rank:], dtype=np.float64)


def _orthogonal(B: FloatArray) -> Solve:
    """B'P = QR with pivots, u = Q R'^-1 P'g, on the leading part of full rank."""
    from scipy.linalg import qr, solve_triangular

    Q, R, order = qr(B.T, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    rank = int(np.sum(size > RANK * size[:1].sum()))
    Q, R, order = Q[:, :rank], R[:rank, :rank], order[:rank]
    return lambda g: Q @ solve_triangular(R, g[order], trans="T", check_finite=False)


def _null_space(M: FloatArray, G: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """d = d_0 + N z with G d_0 = g, G N = 0, and z by least squares."""
    from scipy.linalg import qr, solve_triangular

    full, R, order = qr(G.T, mode="full", pivoting=True, check_finite=False)
    size = np.abs(R.diagonal())
    rank = int(np.sum(size > RANK * size[:1].sum()))
    Q, N, R, order = full[:, :rank], full[:, rank:], R[:rank, :rank], order[:rank]
    Z, S = qr(M @ N, mode="economic", check_finite=False)

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        start = Q @ solve_triangular(R, g[order], trans="T", check_finite=False)
        if not N.shape[1]:
            return start
        return start + N @ solve_triangular(S, Z.T @ (h - M @ start), check_finite=False)

    return solve


def _augmented(B: Any) -> Solve:
    rows, columns = B.shape
    K = sparse.block_array(
        [[BALANCE * sparse.eye_array(columns), B.T], [B, -SHIFT * sparse.eye_array(rows)]]
    )
    inner = _sparse_lu(K)
    return lambda g: inner(np.concatenate((np.zeros(columns), g)))[:columns]


def _augmented_nearest(M: Any, G: Any) -> Callable[[FloatArray, FloatArray], FloatArray]:
    (m, n), p = M.shape, G.shape[0]
    corner = -SHIFT * sparse.eye_array(p)
    blocks = [[BALANCE * sparse.eye_array(m), M, None], [M.T, None, G.T], [None, G, corner]]
    inner = _sparse_lu(sparse.block_array(blocks if p else [row[:2] for row in blocks[:2]]))
    return lambda h, g: inner(np.concatenate((h, np.zeros(n), g)))[m : m + n]


def _sparse_lu(K: Any) -> Solve:
    if K.nnz > MOST_ENTRIES:
        raise TooLarge
    from scipy.sparse.linalg import splu

    try:
        return cast(Solve, splu(sparse.csc_array(K)).solve)
    except (RuntimeError, MemoryError) as error:
        raise TooLarge from error


def is_bearable(shape: tuple[int, ...], entries: float, most: float = MOST_DENSE_WORK) -> bool:
    """Return whether a matrix of so many entries may be factored: as a dense one, or in its augmented system."""
    return _is_small(shape, most) or 2 * entries + sum(shape) <= MOST_ENTRIES


def _is_small(shape: tuple[int, ...], most: float = MOST_DENSE_WORK) -> bool:
    return float(max(shape)) * float(min(shape)) ** 2 <= most


def _dense(B: Any) -> FloatArray:
    return cast(FloatArray, B.toarray() if is_sparse(B) else B)


def _norms(B: Any, axis: int) -> FloatArray:
    """The norms of rows (axis 1) or columns (axis 0), 1 for empty ones, without overflow."""
    if not min(B.shape):
        return np.ones(B.shape[1 - axis])
    largest = abs(B).max(axis=axis)
    largest = largest.toarray().ravel() if is_sparse(largest) else largest
    safe = np.where(largest > 0, largest, 1.0)
    ones = np.ones(B.shape[axis])
    part = _scaled(B, 1 / safe, ones) if axis else _scaled(B, ones, 1 / safe)
    squares = np.asarray((part**2).sum(axis=axis)).ravel()
    return cast(FloatArray, np.where(largest > 0, safe * np.sqrt(squares), 1.0))


def _scaled(B: Any, rows: FloatArray, columns: FloatArray) -> Any:
    if is_sparse(B):
        return sparse.csr_array(sparse.diags_array(rows) @ B @ sparse.diags_array(columns))
    return rows[:, None] * B * columns
