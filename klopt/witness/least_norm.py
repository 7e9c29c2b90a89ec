"""Minimum-norm solutions of linear systems and inequalities, sparse or dense, of any rank.

    least_norm(B)(g)               the u of minimum ||u|| with B u = g
    nearest(M, G, ridge)(h, g)     the d of minimum ||M d - h||^2 + ||ridge * d||^2 with G d = g
    least_distance(E, e, G, h)     the z of minimum ||z|| with E z = e and G z >= h

Weights of a point near the boundary of its cone spread over many powers of ten, so none squares its
matrix: small systems go through orthogonal factors, large sparse ones through the augmented system
(Bjorck, 1996, section 2.5)

    [ a I  B' ] [ . ]   [ 0 ]              [ a I  M   0  ] [ . ]   [ h ]
    [ B    0  ] [ z ] = [ g ],  u = B'z,   [ M'   0   G' ] [ d ] = [ 0 ]
                                           [ 0    G   0  ] [ . ]   [ g ]

with a regularisation that iterative refinement takes out again. The first two are factored once and
solved often; dependent rows are allowed where they agree. The third is least distance programming
by nonnegative least squares (Lawson and Hanson, 1974, chapter 23): where u >= 0 minimises
||(G'u, h'u - 1)|| with the residual (p, q), z = -p / q.

Nothing here is part of a proof: a correction is a proposal, and what it leads to is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.fill import product_can_be_factored
from klopt.proof.time_budget import remaining
from klopt.witness.cone_interior import is_sparse

__all__ = [
    "MAX_DENSE_FLOPS",
    "TooLarge",
    "is_affordable",
    "least_distance",
    "least_norm",
    "nearest",
]

Solve: TypeAlias = Callable[[FloatArray], FloatArray]
SolvePair: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]

REFINEMENTS = 3
"""Solves per right-hand side, each after the first of the residual that the last one left."""
RANK_TOLERANCE = 1e-14
"""Pivots below this share of the first one count as 0."""
AUGMENTED_SCALE = 1e-5
"""a in the augmented systems: it balances the unknowns that are thrown away."""
REGULARISATION = 1e-26
"""Subtracted from the zero block of an augmented system: dependent rows would make it singular."""
MAX_VIOLATION_SHARE = 1e-9
"""The share of the initial violation that a solution of inequalities may leave."""
MAX_DENSE_FLOPS = 2e9
"""Operations that a dense factorisation may take: a correction must be cheap next to a solve."""
MAX_SPARSE_ENTRIES = 5e6
"""Entries that an augmented system may have."""


class TooLarge(Exception):
    """The system would cost more to factor than a correction is worth; the caller does without."""


def least_norm(B: Any, max_flops: float = MAX_DENSE_FLOPS) -> Solve:
    """Return the map from g to the shortest u with Bu = g (least squares where there is none).

    Systems of up to `max_flops` operations are solved by orthogonal factors, larger ones by the
    augmented system.

    >>> least_norm(np.array([[1.0, 1.0]]))(np.array([2.0])).round(9)
    array([1., 1.])
    """
    norms = _norms(B, axis=1)
    unit = _scaled(B, 1 / norms, np.ones(B.shape[1]))

    inner: Solve
    if _is_small(unit.shape, max_flops):
        row_space, _ = _factor_rows(_dense(unit), "economic")
        inner = row_space.shortest_solution
    else:
        inner = _augmented(unit)

    def solve(g: FloatArray) -> FloatArray:
        target = g / norms
        u = np.zeros(unit.shape[1])
        for _ in range(REFINEMENTS):
            u = u + inner(target - unit @ u)
        return u

    return solve


def nearest(M: Any, G: Any, ridge: FloatArray) -> SolvePair:
    """Return the map from (h, g) to the d of minimum ||Md - h||^2 + ||ridge * d||^2 with Gd = g.

    >>> onto_plane = nearest(np.eye(2), np.array([[1.0, 1.0]]), np.zeros(2))
    >>> onto_plane(np.array([3.0, 0.0]), np.zeros(1)).round(9)
    array([ 1.5, -1.5])
    """
    tall = _stacked(M, sparse.diags_array(ridge, format="csr"))

    # Columns of unit norm, then equations of unit norm: the units of d and g drop out.
    column_unit = 1 / _norms(tall, axis=0)
    norms = _norms(_scaled(G, np.ones(G.shape[0]), column_unit), axis=1)
    tall = _scaled(tall, np.ones(tall.shape[0]), column_unit)
    G = _scaled(G, 1 / norms, column_unit)

    n = column_unit.size
    inner: SolvePair
    if _is_small(tall.shape) and _is_small((n, n)):
        inner = _null_space(_dense(tall), _dense(G))
    else:
        inner = _augmented_nearest(tall, G)

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        aim = np.concatenate((h, np.zeros(n)))
        target = g / norms
        d = np.zeros(n)
        for _ in range(REFINEMENTS):
            d = d + inner(aim - tall @ d, target - G @ d)
        return column_unit * d

    return solve


def least_distance(
    E: Any,
    e: FloatArray,
    G: Any,
    h: FloatArray,
    max_flops: float = MAX_DENSE_FLOPS,
) -> FloatArray:
    """Return the shortest z with Ez = e and Gz >= h, an approximate one where there is none.

    Parameters
    ----------
    E, e
        The equations.
    G, h
        The inequalities.
    max_flops
        Operations that one factorisation may take.

    Raises
    ------
    TooLarge
        Where it would take more, or where nonnegative least squares does not converge.

    >>> plane, one = np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]])
    >>> least_distance(plane, np.array([2.0]), one, np.array([1.5])).round(9)
    array([1.5, 0.5])
    """
    from scipy.optimize import nnls

    n = E.shape[1]
    small = _is_small((n, n), max_flops) and _is_small(G.shape, max_flops)
    if not small:
        raise TooLarge
    E = _dense(E)
    G = _dense(G)

    # All solutions of the equations are start + N t, and start is orthogonal to N.
    row_space, N = _factor_rows(E, "full")
    start = row_space.shortest_solution(e)
    lacking = h - G @ start
    worst = float(np.max(lacking, initial=0.0))
    if worst <= 0 or not N.shape[1]:
        return start

    # The dual of the least distance program in t, in units of the worst violation.
    stacked = np.vstack([(G @ N).T, lacking / worst])
    aim = np.zeros(stacked.shape[0])
    aim[-1] = 1.0
    try:
        u, _ = nnls(stacked, aim, maxiter=10 * stacked.shape[1])
    except RuntimeError as error:
        raise TooLarge from error

    residual = stacked @ u - aim
    ratio = worst / residual[-1] if residual[-1] else 0.0
    by_ratio = start - N @ (residual[:-1] * ratio)
    if np.max(h - G @ by_ratio) <= MAX_VIOLATION_SHARE * worst:
        return by_ratio

    # Where the polyhedron is nearly empty the ratio is one of rounding errors; by complementary
    # slackness the rows with a multiplier hold with equality.
    tight = np.flatnonzero(u)
    face, _ = _factor_rows(np.vstack([E, G[tight]]), "full")
    by_face = face.shortest_solution(np.concatenate([e, h[tight]]))
    return min((by_ratio, by_face), key=lambda z: float(np.max(h - G @ z)))


def is_affordable(
    shape: tuple[int, ...],
    entries: float,
    max_flops: float = MAX_DENSE_FLOPS,
) -> bool:
    """Return whether a matrix may be factored: as a dense one, or in its augmented system."""
    return _is_small(shape, max_flops) or 2 * entries + sum(shape) <= MAX_SPARSE_ENTRIES


@dataclass(frozen=True, eq=False)
class _RowSpace:
    """The independent rows of E, from E'P = QR with column pivoting."""

    Q: npt.NDArray[np.floating[Any]]
    R: npt.NDArray[np.floating[Any]]
    order: npt.NDArray[np.signedinteger[Any]]

    def shortest_solution(self, e: FloatArray) -> FloatArray:
        """Return Q R'^-1 P'e, the shortest z with Ez = e."""
        from scipy.linalg import solve_triangular

        z = solve_triangular(self.R, e[self.order], trans="T", check_finite=False)
        return np.asarray(self.Q @ z, dtype=np.float64)


def _factor_rows(E: FloatArray, mode: Literal["full", "economic"]) -> tuple[_RowSpace, FloatArray]:
    """The row space of E and, with mode "full", an orthonormal basis of its null space."""
    from scipy.linalg import qr

    Q, R, order = qr(E.T, mode=mode, pivoting=True, check_finite=False)
    # Pivoting sorts the diagonal of R; without rows there is no first pivot, hence the sum.
    pivots = np.abs(R.diagonal())
    first = pivots[:1].sum()
    rank = int(np.sum(pivots > RANK_TOLERANCE * first))
    null_space = np.asarray(Q[:, rank:], dtype=np.float64)
    return _RowSpace(Q[:, :rank], R[:rank, :rank], order[:rank]), null_space


def _null_space(M: FloatArray, G: FloatArray) -> SolvePair:
    """d = d_0 + N z with G d_0 = g, G N = 0, and z by least squares."""
    from scipy.linalg import qr, solve_triangular

    row_space, N = _factor_rows(G, "full")
    Z, S = qr(M @ N, mode="economic", check_finite=False)

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        start = row_space.shortest_solution(g)
        if not N.shape[1]:
            return start
        z = solve_triangular(S, Z.T @ (h - M @ start), check_finite=False)
        return start + N @ z

    return solve


def _augmented(B: Any) -> Solve:
    """The augmented system of `least_norm`."""
    rows, columns = B.shape
    top = AUGMENTED_SCALE * sparse.eye_array(columns)
    corner = -REGULARISATION * sparse.eye_array(rows)
    inner = _sparse_lu(sparse.block_array([[top, B.T], [B, corner]]))

    def solve(g: FloatArray) -> FloatArray:
        right = np.concatenate((np.zeros(columns), g))
        return inner(right)[:columns]

    return solve


def _augmented_nearest(M: Any, G: Any) -> SolvePair:
    """The augmented system of `nearest`."""
    m, n = M.shape
    p = G.shape[0]
    top = AUGMENTED_SCALE * sparse.eye_array(m)
    corner = -REGULARISATION * sparse.eye_array(p)
    if p:
        blocks = [[top, M, None], [M.T, None, G.T], [None, G, corner]]
    else:
        blocks = [[top, M], [M.T, None]]
    inner = _sparse_lu(sparse.block_array(blocks))

    def solve(h: FloatArray, g: FloatArray) -> FloatArray:
        right = np.concatenate((h, np.zeros(n), g))
        return inner(right)[m : m + n]

    return solve


def _sparse_lu(K: Any) -> Solve:
    # With pivoting a factor has at most the entries of that of K'K.
    if K.nnz > MAX_SPARSE_ENTRIES or not product_can_be_factored(K, remaining()):
        raise TooLarge
    from scipy.sparse.linalg import splu

    # SuperLU raises RuntimeError for a singular matrix and for a factor beyond its index range.
    try:
        return cast(Solve, splu(sparse.csc_array(K)).solve)
    except (RuntimeError, MemoryError) as error:
        raise TooLarge from error


def _is_small(shape: tuple[int, ...], max_flops: float = MAX_DENSE_FLOPS) -> bool:
    """Whether a dense QR factorisation stays within the operations."""
    return float(max(shape)) * float(min(shape)) ** 2 <= max_flops


def _dense(B: Any) -> FloatArray:
    if is_sparse(B):
        B = B.toarray()
    return cast(FloatArray, B)


def _stacked(top: Any, bottom: sparse.csr_array) -> Any:
    """The two matrices above each other; dense where the first one is."""
    if is_sparse(top):
        return sparse.vstack([top, bottom], format="csr")
    return np.vstack([top, bottom.toarray()])


def _norms(B: Any, axis: int) -> FloatArray:
    """The norms of rows (axis 1) or columns (axis 0), 1 for empty ones, without overflow."""
    if not min(B.shape):
        return np.ones(B.shape[1 - axis])

    largest = abs(B).max(axis=axis)
    if is_sparse(largest):
        largest = largest.toarray().ravel()
    safe = np.where(largest > 0, largest, 1.0)
    ones = np.ones(B.shape[axis])
    if axis:
        unit = _scaled(B, 1 / safe, ones)
    else:
        unit = _scaled(B, ones, 1 / safe)

    squares = (unit**2).sum(axis=axis)
    norms = safe * np.sqrt(np.asarray(squares).ravel())
    return cast(FloatArray, np.where(largest > 0, norms, 1.0))


def _scaled(B: Any, rows: FloatArray, columns: FloatArray) -> Any:
    """diag(rows) B diag(columns)."""
    if is_sparse(B):
        left = sparse.diags_array(rows)
        right = sparse.diags_array(columns)
        return sparse.csr_array(left @ B @ right)
    return rows[:, None] * B * columns
