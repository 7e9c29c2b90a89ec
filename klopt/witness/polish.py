"""A quadratic program solved again on its active set: a solution with all digits of a float.

The rows that multipliers or slacks say are active are taken for equations. The optimality
conditions are then a linear system,

    [ P    A_W' ] [ x ]   [ -c  ]
    [ A_W  0    ] [ y ] = [ b_W ],

which is solved with a small regularisation that iterative refinement takes out again (Stellato et
al., 2020, section 4: OSQP's polishing). Nothing here is part of a proof.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.fill import product_can_be_factored
from klopt.model.forms import ConeForm
from klopt.proof.time_budget import remaining

__all__ = ["polished"]

REGULARISATION = 1e-10
REFINEMENTS = 8
MAX_ENTRIES = 2e6
"""Entries of the system beyond which it is not factored."""


def polished(form: ConeForm, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return (x, y) solved on the active set of an approximate solution; None where that fails.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([-3.0], [[1.0]], [1.0], Cones(nonneg=1), [[1.0]])
    >>> x, y = polished(form, np.array([0.999]), np.array([1.9]))
    >>> x.round(12), y.round(12)
    (array([1.]), array([2.]))
    """
    from scipy.sparse.linalg import splu

    rows = form.A.tocsr()
    slack = form.b - rows @ x
    size = 1.0 + np.abs(form.b)
    row = np.arange(form.b.size)
    equation = row < form.cones.zero
    active = np.flatnonzero(equation | (y / (1.0 + np.abs(y)) > slack / size))
    A = rows[active]
    n = x.size
    P = sparse.csr_array((n, n)) if form.P is None else sparse.csr_array(form.P)
    if P.nnz + 2 * A.nnz > MAX_ENTRIES:
        return None
    corner = sparse.csr_array((active.size, active.size))
    K = sparse.csc_array(sparse.block_array([[P, sparse.csr_array(A.T)], [A, corner]]))
    # With pivoting a factor has at most the entries of that of K'K.
    if not product_can_be_factored(K, remaining()):
        return None
    signs = np.concatenate((np.ones(n), -np.ones(active.size)))
    try:
        solve = splu(sparse.csc_array(K + REGULARISATION * sparse.diags_array(signs))).solve
    except (RuntimeError, MemoryError):
        return None
    right = np.concatenate((-form.c, form.b[active]))
    z = np.concatenate((x, y[active]))
    for _ in range(REFINEMENTS):
        z = z + solve(right - K @ z)
    if not np.isfinite(z).all():
        return None
    multipliers = np.zeros_like(y)
    multipliers[active] = z[n:]
    return z[:n], multipliers
