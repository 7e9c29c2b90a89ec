"""The rows of a simple set that is a polyhedron: A x = b and A x <= b.

Simplex          1'x = total,  -x <= 0
OrderedSimplex   1'x = total,  sigma x_{i+1} - x_i <= 0,  -x_n <= 0
BoxPlane         normal'x = offset,  x <= upper,  -x <= -lower  (finite bounds only)
Product          the rows of each set in its own columns
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, SimpleSet, Simplex

__all__ = ["Rows", "is_polyhedral", "rows_of"]

Rows = tuple[SparseMatrix, FloatArray]


def is_polyhedral(domain: SimpleSet) -> bool:
    """Return whether the set is a polyhedron whose rows `rows_of` returns."""
    if isinstance(domain, Product):
        return all(map(is_polyhedral, domain.sets))
    return isinstance(domain, Simplex | OrderedSimplex | BoxPlane)


def rows_of(domain: SimpleSet) -> tuple[Rows, Rows]:
    """Return (A, b) of the equations A x = b and (A, b) of the inequalities A x <= b.

    >>> (A, b), (B, c) = rows_of(Simplex(2))
    >>> A.toarray(), b, B.toarray(), c
    (array([[1., 1.]]), array([1.]), array([[-1.,  0.], [ 0., -1.]]), array([0., 0.]))
    """
    if isinstance(domain, Product):
        equal, at_most = zip(*map(rows_of, domain.sets), strict=True)
        return _side_by_side(equal), _side_by_side(at_most)
    n = domain.size
    unit = sparse.eye_array(n, format="csr")
    if isinstance(domain, BoxPlane):
        normal = np.zeros((0, n)) if domain.normal is None else domain.normal[None, :]
        above = np.isfinite(domain.upper)
        below = np.isfinite(domain.lower)
        bounds = np.concatenate([domain.upper[above], -domain.lower[below]])
        A = csc("A", sparse.vstack([unit[above], -unit[below]]))
        return (csc("A", normal), np.full(len(normal), domain.offset)), (A, bounds)
    assert isinstance(domain, Simplex | OrderedSimplex)

    # sigma x_{i+1} - x_i <= 0; without order, sigma = 0, it is x_i >= 0. The last row is x_n >= 0.
    sigma = domain.sigma if isinstance(domain, OrderedSimplex) else 0.0
    order = csc("A", sigma * sparse.eye_array(n, k=1) - unit)
    total = csc("A", np.ones((1, n)))
    return (total, np.array([domain.total])), (order, np.zeros(n))


def _side_by_side(parts: tuple[Rows, ...]) -> Rows:
    A = csc("A", sparse.block_diag([A for A, _ in parts]))
    return A, np.concatenate([b for _, b in parts])
