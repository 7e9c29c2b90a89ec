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

from klopt.arrays import EPS, FloatArray, SparseMatrix
from klopt.model.forms import ConeForm
from klopt.model.single_entry_rows import single_entry_rows

__all__ = ["BoundedProgram", "bounded"]

MIN_ENTRY = 1e-3
"""A bound keeps x, not the row, within the solver's tolerance: below, the two differ too much."""
MAX_ENTRY = 1e3
"""Above, likewise."""
MAX_BOUND = 1e15
"""The size of a bound beyond which it stays a row."""


@dataclass(frozen=True, eq=False)
class BoundedProgram:
    """A linear or quadratic program as (A, b, zero) with bounds.

    `rows`, `low_row`, `high_row` say which row of the form each row and bound was (-1: no bound),
    `entries` what its one entry was.
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
        """Return the multipliers of all rows from those of the remaining ones.

        `gradient` is Px + c, zero for a Farkas vector.
        """
        full = np.zeros(self.entries.size)
        full[self.rows] = y
        z = gradient + self.A.T @ y
        owed_to_low = np.flatnonzero((z > 0) & (self.low_row >= 0))
        owed_to_high = np.flatnonzero((z < 0) & (self.high_row >= 0))
        for columns, source in ((owed_to_low, self.low_row), (owed_to_high, self.high_row)):
            rows = source[columns]
            full[rows] = -z[columns] / self.entries[rows]
        return full


def bounded(form: ConeForm) -> BoundedProgram:
    """Return the form with its one-entry rows as bounds.

    >>> from klopt.model.cones import Cones
    >>> A = [[-2.0, 0.0], [1.0, 1.0]]
    >>> program = bounded(ConeForm([1.0, 1.0], A, [-1.0, 3.0], Cones(nonneg=2)))
    >>> program.low, program.high, program.A.shape
    (array([ 0.5, -inf]), array([inf, inf]), (1, 2))
    >>> program.multipliers(np.zeros(1), np.array([1.0, 0.0]))
    array([0.5, 0. ])
    """
    single = single_entry_rows(form)
    sizes = np.abs(single.entry)
    of_usual_size = (sizes >= MIN_ENTRY) & (sizes <= MAX_ENTRY)
    single = single.where(of_usual_size & (np.abs(single.right) / MAX_BOUND <= sizes))
    bounds = single.bounds()
    low = bounds.lower
    high = bounds.upper
    high_row = bounds.upper_row

    # An equation stated as two inequalities: bounds that differ by rounding only are one.
    same = np.isfinite(low) & (np.abs(high - low) <= 8 * EPS * np.abs(low))
    high[same] = low[same]
    # Bounds that contradict each other: one stays a row, so that the solver proves the
    # contradiction.
    crossed = low > high
    remains = np.ones(form.b.size, dtype=bool)
    remains[single.row] = False
    remains[high_row[crossed]] = True
    high[crossed] = np.inf
    high_row[crossed] = -1

    rows = np.flatnonzero(remains)
    zero = int(remains[: form.cones.zero].sum())
    entries = np.zeros(form.b.size)
    entries[single.row] = single.entry
    return BoundedProgram(
        form.A[rows], form.b[rows], zero, low, high, rows, bounds.lower_row, high_row, entries
    )
