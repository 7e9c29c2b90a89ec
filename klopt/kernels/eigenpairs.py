"""The smoothest eigenvectors of a graph Laplacian, reproducible and with measured residuals.

    L v_i = gamma_i v_i,    gamma_1 <= gamma_2 <= .. <= gamma_r

A few pairs of a large sparse L come from a block Lanczos method on shift I - L, whose largest
eigenvalues are wanted: no factorisation, a fixed start (`klopt.numerics.lanczos`). Long thin
graphs, on which it is slow, are factorised instead (shift and invert); many pairs or a small L come
from LAPACK. Residuals are measured, ||L v - gamma v|| <= 1e-8 ||L||. A block of vectors holds as
many copies of a repeated eigenvalue as it has vectors, so that further copies can be missed: where
that many eigenvalues lie together, L is searched again on the complement of what was found, until
the complement holds nothing that is clearly smoother. The sign makes the largest entry of each
vector positive.

A disconnected graph is solved one connected component at a time, and the smallest of all pairs are
taken. How many come from each component is not known beforehand: where all computed pairs of a
component are among them, twice as many are computed.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import EPS, FloatArray, SparseMatrix, csc, freeze, require_memory
from klopt.errors import InvalidProblem
from klopt.numerics.eigenbasis import Eigenbasis, decomposed
from klopt.numerics.lanczos import BLOCK, largest_eigenpairs

__all__ = ["all_eigenpairs", "checked_laplacian", "smoothest_eigenpairs"]

IntArray = npt.NDArray[np.int64]

MAX_DENSE_ORDER = 600
"""Up to this order LAPACK is the faster one for any r."""
MIN_PAIRS_OF_COMPONENT = 64
"""The minimum number of pairs computed of a large component: fewer take no less time."""
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
    rounding = 64 * EPS * abs(L).max()
    if gaps.nnz and gaps.data.max() > rounding:
        worst = int(np.argmax(gaps.data))
        i, j = sorted((int(gaps.row[worst]), int(gaps.col[worst])))
        raise InvalidProblem(
            f"{name} is not symmetric: {name}[{i}, {j}] is {L[i, j]}, not {L[j, i]}; pass (L + L.T) / 2 if meant"
        )
    return L if not gaps.nnz else csc(name, (L + L.T) / 2)


def smoothest_eigenpairs(laplacian: object, r: int) -> tuple[FloatArray, FloatArray]:
    """Return the r smallest eigenvalues, ascending, and their orthonormal eigenvectors as columns.

    >>> values, V = smoothest_eigenpairs([[1.0, -1.0], [-1.0, 1.0]], 2)
    >>> values.round(12), V.round(3)
    (array([0., 2.]), array([[ 0.707,  0.707],
           [ 0.707, -0.707]]))
    """
    L = checked_laplacian(laplacian)
    n = L.shape[0]
    count = _count(r, n)
    reach = float(np.max(abs(L).sum(axis=0)))  # no eigenvalue is larger
    if n <= MAX_DENSE_ORDER:
        values, V = _pairs(L, count, reach)
    else:
        values, V = _by_components(L, count, reach)

    off = _residuals(L, values, V)
    if off.max() > MAX_RELATIVE_RESIDUAL * max(reach, 1e-300):
        worst = int(np.argmax(off))
        raise InvalidProblem(
            f"eigenpair {worst} of the Laplacian has residual {off[worst]:.1e}; rescale the Laplacian"
        )
    _require_semidefinite(values, reach)

    # The first of the entries that are largest up to rounding: ties must not decide the sign.
    size = np.abs(V)
    largest = np.argmax(size > (1 - 1e-6) * size.max(axis=0), axis=0)
    signs = np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    if V.flags.c_contiguous:
        signed = np.multiply(V, signs, out=V)
    else:
        signed = np.multiply(V, signs, order="C")
    return cast(FloatArray, freeze(values)), cast(FloatArray, freeze(signed))


def all_eigenpairs(laplacian: object) -> tuple[FloatArray, Eigenbasis]:
    """Return all eigenvalues, ascending, and the eigenvectors as a basis formed on demand.

    >>> values, basis = all_eigenpairs([[1.0, -1.0], [-1.0, 1.0]])
    >>> values.round(12), basis.U.round(3)
    (array([0., 2.]), array([[ 0.707,  0.707],
           [ 0.707, -0.707]]))
    """
    L = checked_laplacian(laplacian)
    n = L.shape[0]
    reach = float(np.max(abs(L).sum(axis=0)))
    unscaled = UNSCALED_NORMS[0] <= reach <= UNSCALED_NORMS[1]
    if n > MAX_DENSE_ORDER and unscaled and len(_components(L)[0]) == 1:
        found = _by_reflections(L, reach)
        if found is not None:
            return found
    values, V = smoothest_eigenpairs(L, n)
    return values, Eigenbasis(V)


def _by_reflections(L: SparseMatrix, reach: float) -> tuple[FloatArray, Eigenbasis] | None:
    """All eigenpairs, the basis as a product of reflections; None where it is not accurate."""
    n = L.shape[0]
    require_memory(32.0 * n * n, f"all eigenvectors of a Laplacian of order {n}")
    found = decomposed(L.toarray())
    if found is None:
        return None
    values, basis = found
    orthogonality_error, residual = basis.off(L, values)
    if orthogonality_error > MAX_ORTHOGONALITY_ERROR or residual > MAX_RELATIVE_RESIDUAL * reach:
        return None
    _require_semidefinite(values, reach)
    return cast(FloatArray, freeze(values)), basis


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


def _by_components(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs of all connected components."""
    parts, blocks = _components(L)
    if len(parts) == 1:
        return _pairs(L, r, reach)
    n = L.shape[0]
    require_memory(16.0 * n * r, f"{r} eigenvectors of a Laplacian of order {n}")
    limits = [min(r, part.size) for part in parts]
    counts = _first_counts(parts, limits, r, n)
    found = [_pairs(block, count, reach) for block, count in zip(blocks, counts, strict=True)]
    while True:
        # A component may hide a further pair only where its largest computed eigenvalue is below
        # the r-th smallest of all: the next one of it may then be below, too.
        r_th = _r_th_smallest([values for values, _ in found], r)
        incomplete = [
            j for j, (values, _) in enumerate(found) if counts[j] < limits[j] and values[-1] < r_th
        ]
        if not incomplete:
            return _merged(parts, found, r, n)
        for j in incomplete:
            counts[j] = min(2 * counts[j], limits[j])
            found[j] = _pairs(blocks[j], counts[j], reach)


def _first_counts(parts: list[IntArray], limits: list[int], r: int, n: int) -> list[int]:
    """How many pairs of each component are computed first."""
    # Each component has the eigenvalue 0 once; the others are expected in proportion to its size.
    others = max(r - len(parts), 0) / n
    counts = []
    for part, limit in zip(parts, limits, strict=True):
        # LAPACK computes all pairs of a small component at once.
        expected = part.size
        if part.size > MAX_DENSE_ORDER:
            expected = max(MIN_PAIRS_OF_COMPONENT, int(1.2 * others * part.size))
        counts.append(min(limit, expected))
    return counts


def _r_th_smallest(values: list[FloatArray], r: int) -> float:
    """The r-th smallest of all values; infinite where there are fewer."""
    ordered = np.sort(np.concatenate(values))
    return float(ordered[r - 1]) if ordered.size >= r else np.inf


def _components(L: SparseMatrix) -> tuple[list[IntArray], list[SparseMatrix]]:
    """The points of each connected component, and its part of L."""
    from scipy.sparse.csgraph import connected_components

    count, of = connected_components(L, directed=False)
    if count == 1:
        return [np.arange(L.shape[0])], [L]
    order = np.argsort(of, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(of)))
    # With the points of a component side by side, its block is a range of columns of L.
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
    """The r smallest pairs of all components, on all points."""
    values = np.concatenate([values for values, _ in found])
    piece = np.repeat(np.arange(len(found)), [values.size for values, _ in found])
    chosen = np.argsort(values, kind="stable")[:r]
    V = np.zeros((n, r))
    for j in np.unique(piece[chosen]):
        columns = np.flatnonzero(piece[chosen] == j)
        # Pairs of a component are ascending: those chosen are its first ones.
        V[np.ix_(parts[j], columns)] = found[j][1][:, : columns.size]
    return values[chosen], V


def _pairs(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs of a connected graph, by the faster of Lanczos and LAPACK."""
    few = L.shape[0] > MAX_DENSE_ORDER and 4 * r <= L.shape[0] and reach > 0
    return _lanczos(L, r, reach) if few else _lapack(L, r)


def _lapack(L: SparseMatrix, r: int) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    n = L.shape[0]
    require_memory(24.0 * n * n, f"all eigenvectors of a Laplacian of order {n}")
    dense = L.toarray()
    if r < n:
        values, V = eigh(dense, subset_by_index=[0, r - 1])
    else:
        # Divide and conquer is the fastest for all pairs, but cannot compute a part of them.
        values, V = eigh(dense.T, driver="evd", overwrite_a=True, check_finite=False)
    return values, V


def _lanczos(L: SparseMatrix, r: int, reach: float) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs, missed copies of repeated eigenvalues included."""
    n = L.shape[0]
    shift = reach / 2
    rows = L.tocsr()  # multiplies several columns faster
    found = largest_eigenpairs(lambda X: shift * X - rows @ X, n, r, reach)
    start = np.random.default_rng(0).standard_normal(n)
    if found is None:
        values, V = _inverted(L, r, reach, start)
    else:
        values = shift - found[0]
        V = found[1]

    # A block of BLOCK vectors holds BLOCK copies of an eigenvalue at most: where as many lie
    # together, a further copy is searched for on the complement of the vectors found.
    while _has_cluster(values, CLUSTER_SHARE * reach):
        complement = _Complement(L, V, shift)
        first = complement.project(start)
        # An inaccurate value tells whether there is something to find, and costs little.
        probe, _ = _largest(complement, first, PROBE_TOLERANCE)
        if not shift - probe < values[-1] - PROBE_TOLERANCE * reach:
            break
        largest, vector = _largest(complement, first)
        values = np.append(values, shift - largest)
        V = np.column_stack([V, complement.project(vector)])
        V[:, -1] /= np.linalg.norm(V[:, -1])
        order = np.argsort(values, kind="stable")[:r]
        values = values[order]
        V = V[:, order]
    return values, V


def _has_cluster(values: FloatArray, distance: float) -> bool:
    """Whether `BLOCK` consecutive eigenvalues lie within a distance."""
    last = values[BLOCK - 1 :]
    first = values[: last.size]
    return bool((last - first < distance).any())


def _inverted(
    L: SparseMatrix, r: int, reach: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The r smallest pairs by shift and invert, for the close eigenvalues of paths and rings."""
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
class _Complement:
    """shift I - L on the orthogonal complement of the columns of V."""

    L: SparseMatrix
    V: FloatArray
    shift: float

    def project(self, x: FloatArray) -> FloatArray:
        return x - self.V @ (self.V.T @ x)

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.project(self.shift * x - self.L @ x)


def _largest(apply: _Complement, start: FloatArray, tol: float = 0.0) -> tuple[float, FloatArray]:
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
