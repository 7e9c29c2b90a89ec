"""The smoothest eigenvectors of a graph Laplacian, the same ones each time, with proof that they are eigenvectors.

    L v_i = gamma_i v_i,    gamma_1 <= gamma_2 <= .. <= gamma_r

A few pairs of a large sparse L come from a block Lanczos method on shift I - L, whose largest
eigenvalues are wanted: no factorisation, a fixed start (`klopt.numerics.lanczos`). Long thin
graphs, on which it is slow, are factorised instead (shift and invert); many pairs or a small L come
from LAPACK. Residuals are measured, ||L v - gamma v|| <= 1e-8 ||L||. A block of vectors holds as
many copies of a repeated eigenvalue as it has vectors, so that further copies can be missed: where
that many eigenvalues lie together, L is searched again on the complement of what was found, until
the complement holds nothing that is clearly smoother. The sign makes the largest entry of each
vector positive.

A graph in pieces is solved piece by piece, and the smoothest of all pairs are taken. How many of
them come from a piece is not known beforehand: those that turn out to have given all they were
asked for are asked for twice as many.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc, freeze, require_memory
from klopt.errors import InvalidProblem
from klopt.numerics.eigenbasis import Eigenbasis, decomposed
from klopt.numerics.lanczos import BLOCK, largest_eigenpairs

__all__ = ["all_eigenpairs", "checked_laplacian", "smoothest_eigenpairs"]

IntArray = npt.NDArray[np.int64]

MAX_DENSE_ORDER = 600
"""Up to this order LAPACK is the faster one for any r."""
MIN_PAIRS_OF_COMPONENT = 64
"""Fewer pairs of a large graph take no less time."""
COLUMNS_AT_ONCE = 128
"""Eigenvectors whose residuals are computed at a time."""
MAX_RELATIVE_RESIDUAL = 1e-8
"""Residual of a pair, relative to the norm of the Laplacian, above which it is refused."""
MAX_ORTHOGONALITY_ERROR = 1e-10
"""Error of V'V = I up to which a basis by reflections is taken."""
UNSCALED_NORMS = (1e-100, 1e100)
"""Laplacians of smaller or larger norm are scaled by LAPACK itself."""
MAX_NEGATIVE_SHARE = 1e-8
"""Negative eigenvalues up to this share of the norm are rounding."""
PROBE_TOLERANCE = 1e-3
"""Accuracy, relative to the norm, that tells whether the complement hides another eigenvalue."""
SHIFT_SHARE = 1e-6
"""How far below 0, relative to the norm, the Laplacian is shifted before it is factored."""
CLUSTER_SHARE = 1e-4
"""A block of eigenvalues that lie within this, relative to the norm, may hide more of them."""


def checked_laplacian(laplacian: object, name: str = "laplacian") -> SparseMatrix:
    """Return a symmetric matrix as CSC, refusing asymmetry beyond rounding."""
    L = csc(name, laplacian)
    rows, columns = L.shape
    if rows != columns or not rows:
        raise InvalidProblem(f"{name} is {rows} x {columns}; expected a square matrix")
    gaps = abs(L - L.T).tocoo()
    if gaps.nnz and gaps.data.max() > 64 * np.finfo(float).eps * abs(L).max():
        worst = int(np.argmax(gaps.data))
        i, j = sorted((int(gaps.row[worst]), int(gaps.col[worst])))
        raise InvalidProblem(
            f"{name} is not symmetric: {name}[{i}, {j}] is {L[i, j]}, not {L[j, i]}; pass (L + L.T) / 2 if meant"
        )
    return L if not gaps.nnz else csc(name, (L + L.T) / 2)


def smoothest_eigenpairs(laplacian: object, r: int) -> tuple[FloatArray, FloatArray]:
    """Return the r smallest eigenvalues in ascending order and their eigenvectors as orthonormal columns.

    >>> values, V = smoothest_eigenpairs([[1.0, -1.0], [-1.0, 1.0]], 2)
    >>> values.round(12), V.round(3)
    (array([0., 2.]), array([[ 0.707,  0.707],
           [ 0.707, -0.707]]))
    """
    L = checked_laplacian(laplacian)
    n = L.shape[0]
    count = _count(r, n)
    reach = float(np.max(abs(L).sum(axis=0)))  # no eigenvalue is larger
    values, V = _pairs(L, count, reach) if n <= MAX_DENSE_ORDER else _by_pieces(L, count, reach)
    off = _residuals(L, values, V)
    if off.max() > MAX_RELATIVE_RESIDUAL * max(reach, 1e-300):
        worst = int(np.argmax(off))
        raise InvalidProblem(
            f"eigenpair {worst} of the Laplacian has residual {off[worst]:.1e}; rescale the Laplacian"
        )
    _require_semidefinite(values, reach)
    size = np.abs(V)
    largest = np.argmax(size > (1 - 1e-6) * size.max(axis=0), axis=0)
    signs = np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    signed = (
        np.multiply(V, signs, out=V) if V.flags.c_contiguous else np.multiply(V, signs, order="C")
    )
    return cast(FloatArray, freeze(values)), cast(FloatArray, freeze(signed))


def all_eigenpairs(laplacian: object) -> tuple[FloatArray, Eigenbasis]:
    """Return all eigenvalues in ascending order and the eigenvectors, which are multiplied out where they are needed.

    >>> values, basis = all_eigenpairs([[1.0, -1.0], [-1.0, 1.0]])
    >>> values.round(12), basis.U.round(3)
    (array([0., 2.]), array([[ 0.707,  0.707],
           [ 0.707, -0.707]]))
    """
    L = checked_laplacian(laplacian)
    n = L.shape[0]
    reach = float(np.max(abs(L).sum(axis=0)))
    if (
        n > MAX_DENSE_ORDER
        and UNSCALED_NORMS[0] <= reach <= UNSCALED_NORMS[1]
        and len(_components(L)[0]) == 1
    ):
        require_memory(32.0 * n * n, f"all eigenvectors of a Laplacian of order {n}")
        found = decomposed(L.toarray())
        if found is not None:
            tilt, gap = found[1].off(L, found[0])
            if tilt <= MAX_ORTHOGONALITY_ERROR and gap <= MAX_RELATIVE_RESIDUAL * reach:
                _require_semidefinite(found[0], reach)
                return cast(FloatArray, freeze(found[0])), found[1]
    values, V = smoothest_eigenpairs(L, n)
    return values, Eigenbasis(V)


def _require_semidefinite(values: FloatArray, reach: float) -> None:
    if values[0] < -MAX_NEGATIVE_SHARE * reach:
        raise InvalidProblem(
            f"laplacian has the eigenvalue {values[0]:.3g}; a graph Laplacian D - W, W >= 0, is positive semidefinite"
        )


def _residuals(L: SparseMatrix, values: FloatArray, V: FloatArray) -> FloatArray:
    """||L v - gamma v|| of each pair; L' = L has rows, which multiply several columns faster."""
    squares = np.empty(values.size)
    for start in range(0, values.size, COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        images = L.T @ V[:, part]
        images -= V[:, part] * values[part]
        squares[part] = np.einsum("ij,ij->j", images, images)
    return np.sqrt(squares)


def _count(r: object, n: int) -> int:
    if isinstance(r, bool) or not isinstance(r, numbers.Integral) or not 1 <= int(r) <= n:
        raise InvalidProblem(f"r is {r!r}; a Laplacian of order {n} has 1 to {n} eigenpairs")
    return int(r)


def _by_pieces(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs of all connected components."""
    parts, blocks = _components(L)
    if len(parts) == 1:
        return _pairs(L, r, reach)
    n = L.shape[0]
    require_memory(16.0 * n * r, f"{r} eigenvectors of a Laplacian of order {n}")
    # Each piece has an eigenvalue near 0; the rest is shared by size.
    spare = max(r - len(parts), 0) / n
    guesses = [
        p.size
        if p.size <= MAX_DENSE_ORDER
        else max(MIN_PAIRS_OF_COMPONENT, int(1.2 * spare * p.size))
        for p in parts
    ]
    asked = [min(r, p.size, guess) for p, guess in zip(parts, guesses, strict=True)]
    found = [_pairs(block, k, reach) for block, k in zip(blocks, asked, strict=True)]
    while True:
        smallest = np.sort(np.concatenate([values for values, _ in found]))
        limit = smallest[r - 1] if smallest.size >= r else np.inf
        short = [
            j for j, p in enumerate(parts) if asked[j] < min(r, p.size) and found[j][0][-1] < limit
        ]
        if not short:
            return _merged(parts, found, r, n)
        for j in short:
            asked[j] = min(2 * asked[j], r, parts[j].size)
            found[j] = _pairs(blocks[j], asked[j], reach)


def _components(L: SparseMatrix) -> tuple[list[IntArray], list[SparseMatrix]]:
    """The points of each connected component, and its part of L."""
    from scipy.sparse.csgraph import connected_components

    count, of = connected_components(L, directed=False)
    if count == 1:
        return [np.arange(L.shape[0])], [L]
    order = np.argsort(of, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(of)))
    sorted_ = L[order][:, order].tocsc()
    data = sorted_.data
    rows = sorted_.indices
    starts = sorted_.indptr
    blocks = []
    for low, high in pairwise(ends):
        own = slice(starts[low], starts[high])
        inside = data[own], rows[own] - low, starts[low : high + 1] - starts[low]
        blocks.append(sparse.csc_array(inside, shape=(high - low, high - low)))
    return np.split(order, ends[1:-1]), blocks


def _merged(
    parts: list[IntArray], found: list[tuple[FloatArray, FloatArray]], r: int, n: int
) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs of all pieces, on all points."""
    values = np.concatenate([values for values, _ in found])
    piece = np.repeat(np.arange(len(found)), [values.size for values, _ in found])
    chosen = np.argsort(values, kind="stable")[:r]
    V = np.zeros((n, r))
    for j in np.unique(piece[chosen]):
        columns = np.flatnonzero(piece[chosen] == j)
        V[np.ix_(parts[j], columns)] = found[j][1][:, : columns.size]
    return values[chosen], V


def _pairs(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs by what is faster."""
    few = L.shape[0] > MAX_DENSE_ORDER and 4 * r <= L.shape[0] and reach > 0
    return _lanczos(L, r, reach) if few else _lapack(L, r)


def _lapack(L: SparseMatrix, r: int) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    n = L.shape[0]
    require_memory(24.0 * n * n, f"all eigenvectors of a Laplacian of order {n}")
    dense = L.toarray()
    if r == n:
        return cast(
            tuple[FloatArray, FloatArray],
            eigh(dense.T, driver="evd", overwrite_a=True, check_finite=False),
        )
    return cast(tuple[FloatArray, FloatArray], eigh(dense, subset_by_index=[0, r - 1]))


def _lanczos(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs; pairs missed beside their copies are looked for on the complement of the others."""
    n = L.shape[0]
    shift = reach / 2
    rows = L.tocsr()  # multiplies several columns faster
    found = largest_eigenpairs(lambda X: shift * X - rows @ X, n, r, reach)
    start = np.random.default_rng(0).standard_normal(n)
    values, V = _inverted(L, r, reach, start) if found is None else (shift - found[0], found[1])
    while (values[BLOCK - 1 :] - values[: max(r - BLOCK + 1, 0)] < CLUSTER_SHARE * reach).any():
        beside = _Beside(L, V, shift)
        first = beside.outside(start)
        # A rough value tells whether there is something to find, and costs little.
        if (
            not shift - _largest(beside, first, PROBE_TOLERANCE)[0]
            < values[-1] - PROBE_TOLERANCE * reach
        ):
            break
        top, more = _largest(beside, first)
        values = np.append(values, shift - top)
        V = np.column_stack([V, beside.outside(more)])
        V[:, -1] /= np.linalg.norm(V[:, -1])
        order = np.argsort(values, kind="stable")[:r]
        values = values[order]
        V = V[:, order]
    return values, V


def _inverted(
    L: SparseMatrix, r: int, reach: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs by a factorisation: paths and rings have eigenvalues too close for anything else."""
    from scipy.sparse.linalg import ArpackError, eigsh

    try:
        values, V = eigsh(
            L, k=r, sigma=-SHIFT_SHARE * reach, which="LM", ncv=max(2 * r, r + 40), v0=start
        )
    except (ArpackError, MemoryError, RuntimeError) as error:
        raise InvalidProblem(f"no {r} eigenpairs of the Laplacian were found: {error}") from None
    order = np.argsort(values)
    return values[order], V[:, order]


@dataclass(frozen=True, eq=False)
class _Beside:
    """shift I - L on the complement of the columns of V."""

    L: SparseMatrix
    V: FloatArray
    shift: float

    def outside(self, x: FloatArray) -> FloatArray:
        return x - self.V @ (self.V.T @ x)

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.outside(self.shift * x - self.L @ x)


def _largest(apply: _Beside, start: FloatArray, tol: float = 0.0) -> tuple[float, FloatArray]:
    """The largest eigenvalue of a symmetric operator and its eigenvector."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    operator = LinearOperator((start.size, start.size), matvec=apply, dtype=np.float64)
    try:
        values, V = eigsh(
            operator, k=1, which="LA", ncv=40, v0=start, maxiter=100 * start.size, tol=tol
        )
    except ArpackError as error:
        raise InvalidProblem(f"no eigenpairs of the Laplacian were found: {error}") from None
    return float(values[0]), np.asarray(V[:, 0])
