"""What a factorisation will cost, estimated before it is begun.

A sparse factorisation cannot be interrupted, and its fill may be all of the matrix. Eliminating nodes of the
graph, one of least degree first, counts the operations without a number: a node of degree d costs d^2,
and what is left of r nodes r^3 / 3 at most, which ends the count as soon as that is small.

Nothing that klopt states rests on it: it only decides what is begun.
"""

from __future__ import annotations

import math
import time
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from scipy import sparse

__all__ = [
    "bandwidth",
    "can_be_factored",
    "cholesky_fits",
    "dense_fits",
    "elimination_cost",
    "fits",
    "gram_fits",
    "is_large",
    "product_can_be_factored",
    "product_fits",
    "sparse_factor_fits",
    "sparse_square_fits",
]

PRODUCTS_PER_SECOND = 1.5e9
"""Of a sparse factorisation on a slow core."""
DENSE_PRODUCTS_PER_SECOND = 1e10
"""Of a dense one."""
MAX_SECONDS = 20.0
"""No factorisation may be expected to take longer."""
MAX_COUNTING = 3_000_000
"""Entries of sets that the count may touch: some tenths of a second."""
MAX_PRODUCT_ENTRIES = 2e7
"""Terms of a product whose pattern is formed to be looked at."""
MAX_FLOPS = 1.6e11
"""Operations that dense products and factors may take ..."""
FLOPS_PER_SECOND = 4e9
"""... of a slow core ..."""
MAX_ENTRIES = 6e7
"""... and entries of a dense matrix on the way."""
MANY_ROWS = 600
"""Rows beyond which a sparse factor is tried before a dense one."""
MAX_DENSITY = 0.1
"""Share of entries beyond which a matrix counts as dense."""
SPARSE_PRODUCT = 5.0
"""How much longer a product of sparse factors takes than their factorisation ..."""
FACTOR_PASSES = 2 * (1 + SPARSE_PRODUCT)
"""... and what both take for two shifts, in factorisations."""


def is_large(rows: int) -> bool:
    """Return whether a sparse factor of so many rows is tried before a dense one.

    >>> is_large(100), is_large(1000)
    (False, True)
    """
    return rows > MANY_ROWS


def gram_fits(rows: int, seconds: float) -> bool:
    """Return whether dense products and factors of so many rows fit into so many seconds.

    >>> gram_fits(1000, 10.0), gram_fits(1000, 1.0)
    (True, False)
    """
    return 8.0 * rows**3 <= min(MAX_FLOPS, FLOPS_PER_SECOND * max(seconds, 0.0))


def dense_fits(rows: int, columns: int, seconds: float) -> bool:
    """Return whether a dense matrix of so many rows and columns can be formed and factored.

    >>> dense_fits(1000, 2000, 10.0), dense_fits(10, 10**7, 10.0)
    (True, False)
    """
    flops = 4.0 * rows * rows * columns
    affordable = min(MAX_FLOPS, FLOPS_PER_SECOND * max(seconds, 0.0))
    return flops <= affordable and float(rows) * columns <= MAX_ENTRIES


def sparse_factor_fits(G: Any, seconds: float) -> bool:
    """Return whether a symmetric matrix is sparse, and two factors L and products LL' fit.

    >>> sparse_factor_fits(sparse.eye_array(100, format="csc"), 1.0)
    True
    >>> sparse_factor_fits(sparse.csc_array(np.ones((9, 9))), 1.0)
    False
    """
    is_sparse = G.nnz <= MAX_DENSITY * G.shape[0] ** 2
    return is_sparse and can_be_factored(G, seconds, FACTOR_PASSES)


def sparse_square_fits(L: Any, seconds: float) -> bool:
    """Return whether LL' of a sparse factor L fits: it takes longer than the factor itself.

    >>> sparse_square_fits(sparse.eye_array(100, format="csc"), 1.0)
    True
    """
    lengths = np.diff(L.indptr).astype(float)
    return fits(SPARSE_PRODUCT * float(lengths @ lengths), seconds)


def fits(products: float, seconds: float = math.inf) -> bool:
    """Return whether so many products can be computed in so many seconds.

    >>> fits(1e9), fits(1e9, 0.5)
    (True, False)
    """
    return products <= PRODUCTS_PER_SECOND * min(MAX_SECONDS, seconds)


def cholesky_fits(order: int, seconds: float = math.inf) -> bool:
    """Return whether a dense symmetric matrix can be factored in so many seconds.

    >>> cholesky_fits(10_000), cholesky_fits(10_000, 1.0)
    (True, False)
    """
    return order**3 / 3 <= DENSE_PRODUCTS_PER_SECOND * seconds


def can_be_factored(K: Any, seconds: float = math.inf, passes: float = 1.0) -> bool:
    """Return whether a symmetric pattern can be factored in so many seconds.

    Parameters
    ----------
    K
        A sparse square matrix; only the places of its entries count.
    seconds
        The time that is left; no more than `MAX_SECONDS` are used.
    passes
        How many times the cost of the factorisation is needed.

    >>> can_be_factored(sparse.eye_array(100_000, format="csr"))
    True
    """
    affordable = PRODUCTS_PER_SECOND * min(MAX_SECONDS, seconds) / passes
    if affordable <= 0:
        return False
    m = K.shape[0]
    # Even a dense factor of a small matrix is cheap.
    if m**3 / 3 <= affordable:
        return True
    # So is that of a narrow band, which is found much sooner than the entries are counted.
    if m * bandwidth(K) ** 2 <= affordable:
        return True
    return elimination_cost(K, affordable, seconds) <= affordable


def bandwidth(K: Any) -> float:
    """Return how far the entries of a symmetric pattern are from the diagonal, in a good order.

    >>> bandwidth(sparse.csr_array([[1, 0, 1], [0, 1, 1], [1, 1, 1]]))
    1.0
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rows = sparse.csr_array(K)
    place = np.empty(rows.shape[0], dtype=int)
    place[reverse_cuthill_mckee(rows, symmetric_mode=False)] = np.arange(rows.shape[0])
    i, j = rows.nonzero()
    return float(np.abs(place[i] - place[j]).max(initial=0))


def product_can_be_factored(K: Any, seconds: float = math.inf) -> bool:
    """Return whether K'K, whose factor holds that of K with any pivots, can be factored in time.

    >>> product_can_be_factored(sparse.csr_array(np.ones((1, 20_000))))
    False
    """
    # A row of many entries makes a dense product, which is not even formed.
    return product_fits(sparse.csr_array(K.T)) and can_be_factored(K.T @ K, seconds)


def product_fits(B: Any) -> bool:
    """Return whether BB' can be formed: a column of many entries makes it dense.

    >>> product_fits(sparse.csr_array(np.ones((20_000, 1))))
    False
    """
    lengths = np.bincount(B.indices, minlength=B.shape[1]).astype(float)
    return float(lengths @ lengths) <= MAX_PRODUCT_ENTRIES


def elimination_cost(K: Any, enough: float = 0.0, seconds: float = math.inf) -> float:
    """Return an estimate of the products that factoring a symmetric pattern takes.

    Parameters
    ----------
    K
        A sparse square matrix; only the places of its entries count.
    enough
        The count ends where what is left cannot make it larger than this, or it is.
    seconds
        It ends then, too.

    >>> arrow = sparse.csr_array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    >>> elimination_cost(arrow)
    3.0
    """
    end = time.perf_counter() + seconds
    rows = sparse.csr_array(K)
    m = rows.shape[0]
    # So many entries are not even looked at: no more is said than of a dense matrix.
    if rows.nnz > MAX_COUNTING:
        return float(m**3) / 3
    around = [
        set(rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tolist()) - {i} for i in range(m)
    ]
    for i in range(m):
        for j in list(around[i]):
            around[j].add(i)
    heap = [(len(around[i]), i) for i in range(m)]
    heapify(heap)
    gone = [False] * m
    left = m
    cost = 0.0
    touched = 0
    while heap:
        rest = left**3 / 3
        late = touched > MAX_COUNTING or time.perf_counter() > end
        if cost > enough > 0 or cost + rest <= enough or late:
            return cost if cost > enough > 0 else cost + rest
        degree, i = heappop(heap)
        # Degrees change: an entry that is out of date is dropped.
        if gone[i] or degree != len(around[i]):
            continue
        gone[i] = True
        left -= 1
        cost += float(degree) ** 2
        touched += degree * degree
        clique = around[i]
        for j in clique:
            around[j] |= clique
            around[j] -= {i, j}
            heappush(heap, (len(around[j]), j))
        around[i] = set()
    return cost
