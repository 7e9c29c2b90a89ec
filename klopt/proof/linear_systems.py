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

**Lemma S2c (some of the columns).** A d that is 0 in all but some columns of B and solves the system in
these is a solution. Where a few columns have entries in most rows, only without them is BB' sparse.

Rows are scaled by powers of two to about unit size, from 1e-250 or more: what underflows, here or
where B was computed, is at most 2^-240 in each entry, and d at most 2^100 times as long as r. That is
less than a millionth of the roundings that are charged, and the factors that cover the evaluation
of their bounds cover it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.fill import dense_fits, gram_fits, is_large, product_fits
from klopt.model.sparse_factor import shifted_factors
from klopt.proof.directed import difference_down, norm_up, quotient_up, row_norms, sum_up
from klopt.proof.enclosure import (
    INFLATION,
    UNIT_ROUNDOFF,
    Enclosure,
    enclose_norm,
    enclose_product,
    gamma,
)
from klopt.proof.time_budget import remaining

__all__ = ["shortest_correction"]

MAX_LIGHT = 16
"""Entries of a column that makes no product dense."""

ROUNDED = 4 * UNIT_ROUNDOFF
"""The relative error of numbers that have been multiplied by two others, one of them a root."""
SMALLEST_ROW = 1e-250
"""Entries of smaller rows may have lost digits to underflow."""
SMALLEST_SQUARE = 1e-25
"""Of the entries of a row that only it has: smaller ones make long corrections."""


def shortest_correction(B: Any, r: Enclosure, relative_error: float = ROUNDED) -> float:
    """Return a bound of ||d|| over the shortest d with B d = -r, for every r enclosed; inf without.

    Parameters
    ----------
    B
        Dense or sparse, m x k.
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
    right = r * unit

    # Cheap lemmas first.
    if _is_sparse(rows):
        bound = _by_disjoint_rows(rows, right, relative_error)
        if bound == math.inf and is_large(m):
            bound = _by_light_columns(rows, right, relative_error)
        if bound == math.inf and is_large(m) and product_fits(rows):
            bound = _by_sparse_factor(rows, right, relative_error)
        if bound < math.inf:
            return bound
    if not gram_fits(m, remaining()):
        return math.inf
    bound = _by_gram(rows, right, relative_error)
    if bound < math.inf or not dense_fits(m, k, remaining()):
        return bound

    dense = rows.toarray() if _is_sparse(rows) else rows
    T = _triangular_inverse(dense)
    if T is None:
        return math.inf
    # Where a factor is nearly singular the products overflow, and nothing is proven.
    with np.errstate(over="ignore", invalid="ignore"):
        C = enclose_product(T.T, Enclosure(dense, relative_error * np.abs(dense)))
        sigma = _smallest_singular_value(C)
        lengths = enclose_norm(enclose_product(T.T, right))
    return quotient_up(float(lengths.upper), sigma)


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
    # The least that the entries of the exact B can be.
    least = np.maximum(np.abs(data) * (1 - relative_error), 0.0)
    squares = np.bincount(row, weights=least * least, minlength=m).astype(float)
    own = squares > SMALLEST_SQUARE
    if 2 * np.count_nonzero(own) < m:
        return math.inf
    first = 0.0
    right = r
    if not own.all():
        shared = B[:, np.flatnonzero(~alone)]
        first = shortest_correction(shared[~own], r[~own], relative_error)
        if not first < math.inf:
            return math.inf
        # The most that d' moves the other rows, over all matrices within the error.
        norms = row_norms(shared) * (1 + relative_error)
        right = r + Enclosure(np.zeros(m), norms * first)
    second = norm_up((right[own] / Enclosure.of(squares[own]).sqrt()).magnitude)
    # INFLATION covers the roundings of sums of squares, and underflow.
    return norm_up(np.array([first, second])) * INFLATION


def _by_gram(B: Any, r: Enclosure, relative_error: float) -> float:
    """Lemmas S1 and S2 with CC' = T'(BB')T; inf where B is too ill conditioned for it."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    m, k = B.shape
    if _is_sparse(B):
        terms = int(np.max(np.diff(B.indptr)))
        size = norm_up(B.data)
        G = (B @ B.T).toarray()
    else:
        terms = k
        size = norm_up(B)
        G = B @ B.T
    # The Frobenius norm of what the exact B may differ by, and of what BB' then does:
    # |B||B'| has a norm of at most ||B||^2.
    error = relative_error * size
    off = gamma(terms) * size**2 + (2 * size + error) * error
    L, failed = dpotrf(G, lower=1, clean=1)
    if failed:
        return math.inf
    inverse, _ = dtrtri(L, lower=1)
    T = np.tril(inverse).T
    with np.errstate(over="ignore", invalid="ignore"):
        M = T.T @ (G @ T)
        M.flat[:: m + 1] -= 1.0
        # Two products of m terms, |T'||G||T| in size, and the diagonal.
        rounding = norm_up(T) ** 2 * (off + gamma(2 * m + 1) * norm_up(G))
        alpha = sum_up(norm_up(M), rounding * INFLATION)
        lengths = enclose_norm(enclose_product(T.T, r))
    return quotient_up(float(lengths.upper), _root_of_rest(alpha))


def _root_of_rest(alpha: float) -> float:
    """A lower bound of sqrt(1 - alpha), the singular values of Lemma S2; 0 where there is none."""
    return float(Enclosure.of(difference_down(1.0, alpha)).sqrt().lower)


def _by_light_columns(B: Any, r: Enclosure, relative_error: float) -> float:
    """Lemma S2c, by the columns with few entries; inf where these are all or do not suffice."""
    light = np.bincount(B.indices, minlength=B.shape[1]) <= MAX_LIGHT
    kept = sparse.csr_array(B[:, np.flatnonzero(light)])
    if light.all() or not np.diff(kept.indptr).all():
        return math.inf
    bound = _by_disjoint_rows(kept, r, relative_error)
    if bound < math.inf or kept.shape[1] < kept.shape[0]:
        return bound
    return _by_sparse_factor(kept, r, relative_error)


def _by_sparse_factor(B: Any, r: Enclosure, relative_error: float) -> float:
    """Lemma S2b, with t, L and D as they are proposed; inf where they prove nothing."""
    G = sparse.csc_array(B @ B.T)
    size = abs(B)
    ones = np.ones(G.shape[0])
    # The largest row sum of |fl(BB') - BB'|, by the longest row.
    share = gamma(int(np.max(np.diff(B.indptr)))) + (2 + relative_error) * relative_error
    off = float(np.max(size @ (size.T @ ones))) * share
    for t, order, L, D in shifted_factors(G, remaining()):
        if (D < 0).any() or not np.array_equal(np.sort(order), np.arange(ones.size)):
            continue
        placed = sparse.csr_array((G - t * sparse.eye_array(ones.size))[order][:, order])
        scaled = sparse.csr_array(sparse.diags_array(D) @ L.T)
        rows = abs(placed - L @ scaled) @ ones
        # The roundings of the products, of DL' and of G - t I.
        length = int(np.max(np.diff(L.indptr)))
        rows += gamma(length + 1) * (abs(L) @ (abs(scaled) @ ones))
        rows += UNIT_ROUNDOFF * np.abs(placed.diagonal())
        floor = difference_down(t, (float(np.max(rows)) + off) * INFLATION)
        bound = quotient_up(float(enclose_norm(r).upper), float(Enclosure.of(floor).sqrt().lower))
        if bound < math.inf:
            return bound
    return math.inf


def _triangular_inverse(B: FloatArray) -> FloatArray | None:
    """T with T'B nearly orthonormal: the inverse of R in B' = QR."""
    from scipy.linalg import qr
    from scipy.linalg.lapack import dtrtri

    R = qr(B.T, mode="r", check_finite=False)[0][: len(B)]
    if R.shape[0] < len(B):
        return None
    T, failed = dtrtri(R)
    return None if failed else np.triu(np.asarray(T, float))


def _smallest_singular_value(C: Enclosure) -> float:
    """A lower bound over all matrices enclosed (Lemma S2); 0 where none is proven."""
    M = Enclosure.of(C.mid) @ C.mid.T - np.eye(len(C))
    alpha = sum_up(norm_up(M.mid), norm_up(M.rad))
    return difference_down(_root_of_rest(alpha), norm_up(C.rad))
