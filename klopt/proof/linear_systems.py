"""Existence of exact solutions of linear systems next to approximate ones.

**Lemma S1 (a short correction exists).** Let B be m x k and T any m x m matrix. If the smallest
singular value of T'B is at least sigma > 0, then for every r there is a d with

    B d = -r    and    ||d||  <=  ||T'r|| / sigma,

namely the shortest solution of T'B d = -T'r; T is then regular, so that it solves B d = -r.

**Lemma S2 (nearly orthonormal rows).** If ||I - CC'||_F <= alpha < 1, the smallest singular value of
C is at least sqrt(1 - alpha). With T from a triangular factor of B, C = T'B is nearly orthonormal.

Both are evaluated with bounds of all rounding errors; T itself need not be accurate. Since
CC' = T'(BB')T, the small matrix BB' is enough unless B is ill conditioned.

**Lemma S2a (rows with columns of their own).** If the columns with a single entry give row i the norm
b_i > 0, then d in these columns solves such rows one by one, ||d||^2 = sum_i r_i^2 / b_i^2, and moves
no other row. The others are solved before by the columns that are left, with some d' of norm e, which
adds at most e times its norm there to |r_i|.

**Lemma S2b (sparse rows).** If BB' - t I = L D L' + E with D >= 0, the smallest singular value of B is
at least sqrt(t - ||E||): L D L' is positive semidefinite whatever L is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import (
    ETA,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_product,
    gamma,
)
from klopt.proof.time_budget import remaining

__all__ = ["shortest_correction"]

MAX_FLOPS = 1.6e11
"""Operations that the proof of one correction may take."""
FLOPS_PER_SECOND = 4e9
"""Of a slow core: what a time limit allows for."""
MANY_ROWS = 600
"""Rows beyond which a sparse factor is tried before a dense one."""
SMALLEST_ROW = 1e-250
"""Entries of smaller rows may have lost digits to underflow."""
UNDERFLOW = 2.0**-110
"""What underflow may have taken from an entry of a row of unit size."""
MAX_ENTRIES = 6e7
"""Entries of a dense matrix on the way."""
MAX_DENSITY = 0.1
"""Share of entries of BB' beyond which it counts as dense."""
MAX_ORTHONORMALITY_ERROR = 0.5
"""alpha of Lemma S2 beyond which nothing is claimed."""


def shortest_correction(B: Any, r: Enclosure, relative_error: float = 0.0) -> float:
    """Return a bound of ||d|| over the shortest d with B d = -r, for every r enclosed; inf without.

    Parameters
    ----------
    B
        Dense or sparse, m x k; an enclosure of a dense matrix.
    r
        What the system lacks, m entries.
    relative_error
        Entries of the exact B may differ from B by this share of themselves.

    >>> B = np.array([[1.0, 1.0]])
    >>> size = shortest_correction(B, Enclosure.of(np.array([2.0])))
    >>> bool(np.sqrt(2) <= size < 1.5)
    True
    >>> shortest_correction(np.array([[1.0], [1.0]]), Enclosure.of(np.ones(2)))
    inf
    """
    radius: Any = 0.0
    if isinstance(B, Enclosure):
        radius = B.rad
        B = B.mid
    m, k = B.shape
    if not m:
        return 0.0
    known = np.isfinite(r.mid).all() and np.isfinite(r.rad).all()
    if m > k or not known or not np.isfinite(B.data if _is_sparse(B) else B).all():
        return math.inf

    # Rows of about unit size: scaling by powers of two is exact, but for what underflows.
    size = abs(B).max(axis=1)
    largest = size.toarray().ravel() if _is_sparse(size) else np.asarray(size).ravel()
    if not (largest > SMALLEST_ROW).all():
        return math.inf
    unit = np.ldexp(1.0, -np.frexp(largest)[1])
    if _is_sparse(B):
        rows: Any = sparse.csr_array(sparse.diags_array(unit) @ B)
    else:
        rows = B * unit[:, None]
    right = Enclosure(r.mid * unit, r.rad * unit * (1 + 4 * UNIT_ROUNDOFF) + 4 * ETA)
    # Entries that have underflowed, here or on the way here, count with an error of their own.
    spread: Any = UNDERFLOW
    if np.ndim(radius):
        spread = radius * unit[:, None] * (1 + 4 * UNIT_ROUNDOFF) + UNDERFLOW

    # Cheap lemmas first.
    if _is_sparse(rows):
        bound = _by_disjoint_rows(rows, right, relative_error)
        if bound == math.inf and m > MANY_ROWS:
            bound = _by_sparse_factor(rows, right, relative_error)
        if bound < math.inf:
            return bound
    affordable = min(MAX_FLOPS, FLOPS_PER_SECOND * max(remaining(), 0.0))
    if 8.0 * m**3 > affordable:
        return math.inf
    bound = _by_gram(rows, right, relative_error, spread)
    if bound < math.inf or 4.0 * m * m * k > affordable or float(m) * k > MAX_ENTRIES:
        return bound

    dense = rows.toarray() if _is_sparse(rows) else rows
    T = _triangular_inverse(dense)
    if T is None:
        return math.inf
    # Where a factor is nearly singular the products overflow, and nothing is proven.
    with np.errstate(over="ignore", invalid="ignore"):
        C = enclose_product(T.T, Enclosure(dense, relative_error * np.abs(dense) + spread))
        sigma = _smallest_singular_value(C)
    if not sigma > 0:
        return math.inf
    return float((enclose_norm(enclose_product(T.T, right)) / sigma).upper)


def _is_sparse(value: Any) -> bool:
    """Whether a matrix is sparse, in a way that does not narrow its type."""
    return bool(sparse.issparse(value))


def _by_disjoint_rows(B: Any, r: Enclosure, relative_error: float) -> float:
    """Lemma S2a; inf where too few rows have a column of their own."""
    m, k = B.shape
    alone = np.bincount(B.indices, minlength=k) == 1
    used = alone[B.indices]
    row = np.repeat(np.arange(m), np.diff(B.indptr))[used]
    data = B.data[used]
    squares = np.bincount(row, weights=data * data, minlength=m)
    count = np.bincount(row, minlength=m)
    # Rows are of unit size: what underflows is below the roundings of a row that is used.
    lower = squares * (1 - (count + 4) * 2 * UNIT_ROUNDOFF - 4 * relative_error)
    lower = lower - 4 * count * UNDERFLOW
    own = lower > 1e-25
    if 2 * np.count_nonzero(own) < m:
        return math.inf
    first = 0.0
    right = r
    if not own.all():
        shared = B[:, np.flatnonzero(~alone)]
        first = shortest_correction(shared[~own], r[~own], relative_error)
        if not first < math.inf:
            return math.inf
        size = shared.copy()
        size.data = size.data**2
        norms = np.sqrt(np.asarray(size @ np.ones(size.shape[1])))
        reach = norms * first * (1 + gamma(k + 8) + 2 * relative_error) * 1.000001
        # Squares of small entries may have underflowed.
        reach = reach + 1e-30 * first
        right = Enclosure(r.mid, np.where(own, r.rad + reach * 1.000001, r.rad))
    weight = Enclosure.of(np.sqrt(lower[own]) * (1 - 4 * UNIT_ROUNDOFF))
    second = float(enclose_norm(right[own] / weight).upper)
    return math.hypot(first, second) * 1.000001 if first else second


def _by_gram(B: Any, r: Enclosure, relative_error: float, spread: Any) -> float:
    """Lemmas S1 and S2 with CC' = T'(BB')T; inf where B is too ill conditioned for it."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    m, k = B.shape
    if _is_sparse(B):
        terms = int(np.max(np.diff(B.indptr)))
        squares = float(np.sum(B.data * B.data))
        G = (B @ B.T).toarray()
    else:
        terms = k
        squares = float(np.sum(B * B))
        G = B @ B.T
    # |B||B'| has a Frobenius norm of at most ||B||_F^2.
    share = gamma(terms + 4) + 2.1 * relative_error
    squares *= 1 + gamma(m * k + 4)
    off = share * squares
    wide = float(np.sqrt(np.sum(np.square(spread)))) * (1 + gamma(m * k + 8))
    if not np.ndim(spread):
        wide *= math.sqrt(m * k) * 1.000001
    off += 2.1 * wide * math.sqrt(squares) + wide * wide * 1.1
    L, failed = dpotrf(G, lower=1, clean=1)
    if failed:
        return math.inf
    inverse, failed = dtrtri(L, lower=1)
    if failed or not np.isfinite(inverse).all():
        return math.inf
    T = np.tril(inverse).T
    with np.errstate(over="ignore", invalid="ignore"):
        M = T.T @ (G @ T)
        M.flat[:: m + 1] -= 1.0
        norm = float(np.sum(T * T)) * (1 + gamma(m * m + 4))
        size = float(np.sqrt(np.sum(G * G))) * (1 + gamma(m * m + 8))
        # Two products of m terms, each off by gamma_m |T'||G||T| at most, and the diagonal.
        rounding = norm * (off + 3 * gamma(m + 6) * size) + 4 * UNIT_ROUNDOFF * m
        alpha = float(np.sqrt(np.sum(M * M))) * (1 + gamma(m * m + 8)) + rounding * 1.000001
    if not alpha < MAX_ORTHONORMALITY_ERROR:
        return math.inf
    sigma = math.sqrt(1 - alpha) * (1 - 16 * UNIT_ROUNDOFF)
    return float((enclose_norm(enclose_product(T.T, r)) / sigma).upper)


def _by_sparse_factor(B: Any, r: Enclosure, relative_error: float) -> float:
    """Lemma S2b, with L and D from a sparse factorisation without pivoting; inf where it fails."""
    from scipy.sparse.linalg import splu

    m = B.shape[0]
    G = sparse.csc_array(B @ B.T)
    if G.nnz > MAX_DENSITY * m * m:
        return math.inf
    size = abs(B)
    # |fl(BB') - BB'| entry by entry, by the longest row; of entries that have underflowed, too.
    longest = int(np.max(np.diff(B.indptr)))
    share = gamma(longest + 4) + 2.1 * relative_error
    off = float(np.max(size @ (size.T @ np.ones(m)))) * share * 1.0001
    off += 4.0 * m * longest * UNDERFLOW
    for t in (1e-6, 1e-11):
        shifted = sparse.csc_array(G - t * sparse.eye_array(m))
        try:
            factor = splu(
                shifted,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            continue
        D = factor.U.diagonal()
        if not (np.array_equal(factor.perm_r, factor.perm_c) and (D > 0).all()):
            continue
        order = np.argsort(factor.perm_r)
        L = sparse.csr_array(factor.L)
        scaled = sparse.csr_array(sparse.diags_array(D) @ L.T)
        E = abs(sparse.csr_array(shifted[order][:, order]) - L @ scaled)
        ones = np.ones(m)
        rows = np.asarray(E @ ones) * (1 + gamma(m + 4))
        # The roundings of the product, of G - t I and of the difference.
        length = int(np.max(np.diff(L.indptr)))
        rows += 1.0001 * gamma(length + 6) * (abs(L) @ (abs(scaled) @ ones))
        rows += 4 * UNIT_ROUNDOFF * (abs(shifted)[order] @ ones + t)
        floor = t * (1 - 4 * UNIT_ROUNDOFF) - (float(np.max(rows)) + off) * 1.000001
        if floor > 0:
            return float((enclose_norm(r) / Enclosure.of(floor).sqrt()).upper)
    return math.inf


def _triangular_inverse(B: FloatArray) -> FloatArray | None:
    """T with T'B nearly orthonormal: the inverse of R in B' = QR."""
    from scipy.linalg import qr
    from scipy.linalg.lapack import dtrtri

    R = qr(B.T, mode="r", check_finite=False)[0][: len(B)]
    if R.shape[0] < len(B):
        return None
    T, failed = dtrtri(R)
    if failed or not np.isfinite(T).all():
        return None
    return np.triu(np.asarray(T, float))


def _smallest_singular_value(C: Enclosure) -> float:
    """A lower bound over all matrices enclosed (Lemma S2); 0 where none is proven."""
    m, k = C.mid.shape
    M = C.mid @ C.mid.T
    M.flat[:: m + 1] -= 1.0
    squares = float(np.sum(C.mid * C.mid))
    # |fl(CC') - CC'| <= gamma_k |C||C'|, whose Frobenius norm is at most gamma_k ||C||_F^2; the
    # diagonal has one more rounding.
    rounding = gamma(k + 4) * squares * 1.01 + 4 * UNIT_ROUNDOFF * m
    alpha = float(np.sqrt(np.sum(M * M))) * (1 + gamma(m * m + 8)) + rounding
    if not alpha < MAX_ORTHONORMALITY_ERROR:
        return 0.0
    # Squares of radii below 1e-160 may underflow.
    spread = float(np.sqrt(np.sum(C.rad * C.rad))) * (1 + gamma(m * k + 8)) + m * k * 1e-160
    return float(math.sqrt(1 - alpha) * (1 - 8 * UNIT_ROUNDOFF) - spread * (1 + 8 * UNIT_ROUNDOFF))
