"""Slacks of a cone program and values of its objective, enclosed or summed without rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.proof.enclosure import ETA, INFLATION, UNIT_ROUNDOFF, Enclosure, enclose_dot
from klopt.proof.exact_sums import exact_dot, exact_row_sums
from klopt.proof.statement import ConeStatement

__all__ = [
    "FEW_ROWS",
    "MAX_EXACT_DOT",
    "MAX_EXACT_TERMS",
    "enclose_slack",
    "enclose_value",
    "is_zero",
    "slack_summed_exactly",
]

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

MAX_EXACT_TERMS = 200_000
"""Terms that are summed exactly where a sum may be 0: it takes a tenth of a second."""
MAX_EXACT_DOT = 100
"""Terms of a value that are summed exactly: it takes some ten microseconds."""
FEW_ROWS = 4
"""Rows that are summed exactly one by one."""


def enclose_slack(statement: ConeStatement, x: FloatArray) -> Enclosure:
    """Return b - Ax, row by row; vacuous rows have slack 0."""
    b = np.where(statement.vacuous, 0.0, statement.b)
    products = statement.row_products
    count = products.count
    image, terms = products.of(x)
    mid = b - image
    terms = terms + np.abs(b)
    # Lemma E2 row by row: count products and b.
    rad = (count + 1) * terms * (UNIT_ROUNDOFF * INFLATION) + count * ETA
    # Sums of zeros are exact; a product of numbers that are not 0 may be 0 by underflow.
    known = (count == 0) | products.are_zeros(x) & (b == 0)
    return Enclosure(mid, np.where(known, 0.0, rad))


def slack_summed_exactly(
    statement: ConeStatement, x: FloatArray, slack: Enclosure, rows: Indices
) -> Enclosure:
    """Return the slack with some rows summed without rounding (Lemma S3)."""
    if not rows.size or int(statement.row_products.count[rows].sum()) > MAX_EXACT_TERMS:
        return slack
    if rows.size <= FEW_ROWS:
        sums = _few_exact_sums(statement, x, rows)
    else:
        A = sparse.csr_array(statement.rows[rows])
        sums = exact_row_sums([(A, -x)], statement.b[rows])
    mid = slack.mid.copy()
    rad = slack.rad.copy()
    better = sums.rad < rad[rows]
    mid[rows[better]] = sums.mid[better]
    rad[rows[better]] = sums.rad[better]
    return Enclosure(mid, rad)


def _few_exact_sums(statement: ConeStatement, x: FloatArray, rows: Indices) -> Enclosure:
    """The slack of a few rows, which need no matrix of their own."""
    row_of, column_of, entries = statement.entries
    sums = []
    for row in rows.tolist():
        places = np.flatnonzero(row_of == row)
        terms = np.append(entries[places], statement.b[row])
        factors = np.append(-x[column_of[places]], 1.0)
        sums.append(exact_dot(terms, factors))
    return Enclosure(np.array([s.mid for s in sums]), np.array([s.rad for s in sums]))


def is_zero(x: Enclosure) -> Mask:
    """Return where a number is exactly 0."""
    return np.asarray((x.mid == 0) & (x.rad == 0))


def enclose_value(x: FloatArray, y: FloatArray) -> Enclosure:
    """Return x'y, without rounding but the last where there are few terms (Lemma S3)."""
    if x.size <= MAX_EXACT_DOT:
        total = exact_dot(x, y)
        if np.isfinite(total.rad):
            return total
    return enclose_dot(x, y)
