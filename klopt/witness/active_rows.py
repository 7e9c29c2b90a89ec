"""A point of a linear program moved onto the rows that it nearly meets with equality.

A solver's vertex misses its own rows by its tolerance, 1e-12 say, which is more than rounding: no
proof that some point next to it is feasible starts there. Variables at a bound stay; the others
take the shortest step onto the equations and the active rows. Nothing here is part of a proof.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.statement import ConeStatement
from klopt.witness.least_norm import TooLarge, least_norm

__all__ = ["on_active_rows"]

Indices: TypeAlias = npt.NDArray[np.intp]

ACTIVE = 1e-7
"""A slack below this share of the terms of its row is taken for 0."""
MAX_FLOPS = 2e8
"""A dense factorisation beyond this costs more than what it may save."""


def on_active_rows(statement: ConeStatement, x: FloatArray) -> tuple[FloatArray, Indices]:
    """Return the moved point and the inequalities that it is asked to meet with equality.

    The bounds of variables are not among them: a variable at its bound stays there.

    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, 2.0], [2.0, 1.0]])
    >>> statement = ConeStatement(np.array([-1.0, -1.0]), A, np.array([3.0, 3.0]), Cones(nonneg=2))
    >>> x, rows = on_active_rows(statement, np.array([1.0, 1.0 + 1e-11]))
    >>> bool(abs(x - 1).max() < 1e-15), rows
    (True, array([0, 1]))
    """
    cones = statement.cones
    inner = statement.inner_range
    free = (x > inner.lower) & (x < inner.upper)
    products, terms = statement.row_products.of(x)
    slack = np.where(statement.vacuous, np.inf, statement.b) - products
    linear = cones.zero + cones.nonneg
    entries = np.diff(statement.rows.indptr)
    near = slack <= ACTIVE * (terms + np.abs(np.where(statement.vacuous, 0.0, statement.b)))
    near[: cones.zero] = True
    near[linear:] = False
    # The bound of a variable that is not at it is no row to move onto.
    active = np.flatnonzero(near & (entries > 1))
    tight = active[active >= cones.zero]
    if not active.size or not free.any():
        return x, tight
    matrix = sparse.csr_array(statement.rows[active])[:, np.flatnonzero(free)]
    try:
        step = least_norm(matrix, MAX_FLOPS)(slack[active])
    except TooLarge:
        return x, tight
    moved = x.copy()
    moved[free] += step
    moved = np.clip(moved, inner.lower, np.maximum(inner.lower, inner.upper))
    return moved, tight
