"""What a sparse factorisation will cost, estimated from its pattern before it is begun.

A factorisation cannot be interrupted, and its fill may be all of the matrix. Eliminating nodes of the
graph, one of least degree first, counts the operations without a number: a node of degree d costs d^2,
and what is left of r nodes r^3 / 3 at most, which ends the count as soon as that is small.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from scipy import sparse

from klopt.proof.time_budget import exhausted, remaining

__all__ = [
    "bandwidth",
    "can_be_factored",
    "dense_fits",
    "elimination_cost",
    "fits",
    "product_can_be_factored",
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


def fits(products: float) -> bool:
    """Return whether so many products can be computed in the time that is left."""
    return products <= PRODUCTS_PER_SECOND * min(MAX_SECONDS, remaining())


def dense_fits(order: int) -> bool:
    """Return whether a dense symmetric matrix can be factored in the time that is left.

    >>> dense_fits(10_000)
    True
    """
    return order**3 / 3 <= DENSE_PRODUCTS_PER_SECOND * remaining()


def can_be_factored(K: Any, passes: float = 1.0) -> bool:
    """Return whether a symmetric pattern can be factored in the time that is left.

    Parameters
    ----------
    K
        A sparse square matrix; only the places of its entries count.
    passes
        How many times the cost of the factorisation is needed.

    >>> can_be_factored(sparse.eye_array(100_000, format="csr"))
    True
    """
    affordable = PRODUCTS_PER_SECOND * min(MAX_SECONDS, remaining()) / passes
    if affordable <= 0:
        return False
    m = K.shape[0]
    # Even a dense factor of a small matrix is cheap.
    if m**3 / 3 <= affordable:
        return True
    # So is that of a narrow band, which is found much sooner than the entries are counted.
    if m * bandwidth(K) ** 2 <= affordable:
        return True
    return elimination_cost(K, affordable) <= affordable


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


def product_can_be_factored(K: Any) -> bool:
    """Return whether K'K, whose factor holds that of K with any pivots, can be factored in time.

    >>> product_can_be_factored(sparse.csr_array(np.ones((1, 20_000))))
    False
    """
    lengths = np.diff(sparse.csr_array(K).indptr).astype(float)
    # A row of many entries makes a dense product, which is not even formed.
    if float(lengths @ lengths) > MAX_PRODUCT_ENTRIES:
        return False
    return can_be_factored(K.T @ K)


def elimination_cost(K: Any, enough: float = 0.0) -> float:
    """Return an estimate of the products that factoring a symmetric pattern takes.

    Parameters
    ----------
    K
        A sparse square matrix; only the places of its entries count.
    enough
        The count ends where what is left cannot make it larger than this, or it is.

    >>> arrow = sparse.csr_array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    >>> elimination_cost(arrow)
    3.0
    """
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
        if cost > enough > 0 or cost + rest <= enough or touched > MAX_COUNTING or exhausted():
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
