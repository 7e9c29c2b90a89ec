"""Rows with a single entry as bounds low <= x <= high, and their multipliers back.

Simplex and active-set codes treat bounds much better than rows. What they return is the multipliers
y of the other rows; the reduced costs z = Px + c + A'y are then owed to the bounds: z_j > 0 to the
lower one, z_j < 0 to the upper,

    y_row = -z_j / A[row, j],    so that Px + c + A'y = 0 holds exactly.

A Farkas vector comes back in the same way, from z = A'y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix
from klopt.model.forms import ConeForm

__all__ = ["Bounded", "bounded"]

# A bound keeps x, not the row, within the solver's tolerance; beyond these the two differ too much.
ENTRIES = (1e-3, 1e3)
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class Bounded:
    """A linear or quadratic program as (A, b, zero) with bounds.

    `rows`, `low_row`, `high_row` say which row of the form each row and bound was, `entries` what
    its one entry was.
    """

    A: SparseMatrix
    b: FloatArray
    zero: int
    low: FloatArray
    high: FloatArray
    rows: npt.NDArray[np.intp]
    low_row: npt.NDArray[np.intp]
    high_row: npt.NDArray[np.intp]
    entries: FloatArray

    def multipliers(self, y: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the multipliers of all rows from those of the remaining ones and Px + c (zero for a Farkas vector)."""
        full = np.zeros(self.entries.size)
        full[self.rows] = y
        z = gradient + self.A.T @ y
        for owed, row in (
            ((z > 0) & (self.low_row >= 0), self.low_row),
            ((z < 0) & (self.high_row >= 0), self.high_row),
        ):
            columns = np.flatnonzero(owed)
            full[row[columns]] = -z[columns] / self.entries[row[columns]]
        return full


def bounded(form: ConeForm) -> Bounded:
    """Return the form with its one-entry rows as bounds.

    >>> from klopt.model.cones import Cones
    >>> program = bounded(ConeForm([1.0, 1.0], [[-2.0, 0.0], [1.0, 1.0]], [-1.0, 3.0], Cones(nonneg=2)))
    >>> program.low, program.high, program.A.shape
    (array([ 0.5, -inf]), array([inf, inf]), (1, 2))
    >>> program.multipliers(np.zeros(1), np.array([1.0, 0.0]))
    array([0.5, 0. ])
    """
    A, b, zero, n = form.A, form.b, form.cones.zero, form.c.size
    columns = np.repeat(np.arange(n), np.diff(A.indptr))
    alone = (np.bincount(A.indices, minlength=b.size) == 1)[A.indices]
    alone &= (np.abs(A.data) >= ENTRIES[0]) & (np.abs(A.data) <= ENTRIES[1])
    alone &= np.abs(b[A.indices]) / LARGEST <= np.abs(A.data)
    row, column, entry = A.indices[alone], columns[alone], A.data[alone]
    value = b[row] / entry
    low, low_row = _tightest(value, row, column, (row < zero) | (entry < 0), n, np.maximum, -np.inf)
    high, high_row = _tightest(
        value, row, column, (row < zero) | (entry > 0), n, np.minimum, np.inf
    )
    # An equation stated as two inequalities: bounds that differ by rounding only are one.
    same = np.isfinite(low) & (np.abs(high - low) <= 8 * np.finfo(float).eps * np.abs(low))
    high[same] = low[same]
    # Bounds that contradict each other: one stays a row, so that the solver proves the
    # contradiction.
    crossed = low > high
    rest = np.ones(b.size, dtype=bool)
    rest[row] = False
    rest[high_row[crossed]] = True
    high[crossed], high_row[crossed] = np.inf, -1
    rows, entries = np.flatnonzero(rest), np.zeros(b.size)
    entries[row] = entry
    return Bounded(
        A[rows], b[rows], int(rest[:zero].sum()), low, high, rows, low_row, high_row, entries
    )


def _tightest(
    value: FloatArray,
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.intp],
    which: npt.NDArray[np.bool_],
    n: int,
    tighter: np.ufunc,
    none: float,
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The tightest bound on each column and the row it comes from (-1: no bound)."""
    bound, source = np.full(n, none), np.full(n, -1, dtype=np.intp)
    tighter.at(bound, column[which], value[which])
    which = which & (value == bound[column])
    source[column[which]] = row[which]
    return bound, source
