"""Moves a point into its inequalities along variables that no row holds back.

Where all entries of a column of A are negative or 0, raising its variable increases the slack b - Ax
of every row it is in; where all are positive, lowering it does. Variables that measure a deviation
or a violation are of this kind. A point that misses some inequalities by rounding meets all of them
after a move of about that size.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.proof.enclosure import UNIT_ROUNDOFF
from klopt.proof.statement import ConeStatement

__all__ = ["lifted_point"]


def lifted_point(statement: ConeStatement, x: FloatArray) -> FloatArray:
    """Return x with such variables moved until no inequality they are in is missed by rounding.

    >>> from scipy import sparse
    >>> from klopt.model.cones import Cones
    >>> A = sparse.csc_array([[1.0, -1.0], [-1.0, -1.0]])
    >>> statement = ConeStatement(np.array([0.0, 1.0]), A, np.array([0.1, -0.1]), Cones(nonneg=2))
    >>> moved = lifted_point(statement, np.array([0.3, 0.2]))
    >>> bool(0.2 < moved[1] < 0.2 + 1e-12)
    True
    """
    row, column, entry = statement.linear_entries
    n = x.size
    rises = np.bincount(column[entry > 0], minlength=n) == 0
    falls = np.bincount(column[entry < 0], minlength=n) == 0
    useful = (rises ^ falls)[column] & (row >= statement.cones.zero)
    row, column, entry = row[useful], column[useful], entry[useful]
    if not row.size:
        return x

    # What the slack is short of, with room for the rounding of the sum that a proof will charge.
    products, terms = statement.row_products.of(x)
    terms = terms + np.abs(np.where(statement.vacuous, 0.0, statement.b))
    rounding = 4 * (statement.row_products.count + 8) * UNIT_ROUNDOFF * terms
    short = rounding - (statement.b - products)
    missed = short[row] > 0
    column = column[missed]
    step = np.zeros(n)
    np.maximum.at(step, column, short[row[missed]] / np.abs(entry[missed]))
    return np.asarray(x + np.where(rises, step, -step))
