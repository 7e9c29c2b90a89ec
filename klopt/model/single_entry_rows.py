"""Rows of a cone program with a single entry, as bounds of single variables.

    entry x_j <= b_i   is   x_j <= b_i / entry   for entry > 0,   x_j >= b_i / entry   for entry < 0

and both for an equation. Of several bounds of one variable the tightest counts, and of equally
tight ones that of the last row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.forms import ConeForm

__all__ = ["SingleEntryRows", "VariableBounds", "single_entry_rows"]

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class VariableBounds:
    """The tightest bounds of all variables and the row behind each, -1 where there is none."""

    lower: FloatArray
    upper: FloatArray
    lower_row: Indices
    upper_row: Indices


@dataclass(frozen=True, eq=False)
class SingleEntryRows:
    """Rows with one entry each: where it is, what it is, and the right hand side."""

    variables: int
    """The number of variables of the program."""
    row: Indices
    column: Indices
    entry: FloatArray
    right: FloatArray
    equation: Mask

    def where(self, kept: Mask) -> SingleEntryRows:
        """Return some of the rows."""
        return SingleEntryRows(
            self.variables,
            self.row[kept],
            self.column[kept],
            self.entry[kept],
            self.right[kept],
            self.equation[kept],
        )

    def bounds(self) -> VariableBounds:
        """Return the tightest bounds that the rows state.

        >>> from klopt.model.cones import Cones
        >>> form = ConeForm([1.0, 1.0], [[-2.0, 0.0], [1.0, 1.0]], [-1.0, 3.0], Cones(nonneg=2))
        >>> bounds = single_entry_rows(form).bounds()
        >>> bounds.lower, bounds.lower_row
        (array([ 0.5, -inf]), array([ 0, -1]))
        """
        value = self.right / self.entry
        lower = np.full(self.variables, -np.inf)
        upper = np.full(self.variables, np.inf)
        states_lower = self.equation | (self.entry < 0)
        states_upper = self.equation | (self.entry > 0)
        np.maximum.at(lower, self.column[states_lower], value[states_lower])
        np.minimum.at(upper, self.column[states_upper], value[states_upper])
        lower_row = self._sources(states_lower & (value == lower[self.column]))
        upper_row = self._sources(states_upper & (value == upper[self.column]))
        return VariableBounds(lower, upper, lower_row, upper_row)

    def _sources(self, tightest: Mask) -> Indices:
        """The row behind the bound of each variable: of several assignments the last one stays."""
        source = np.full(self.variables, -1, dtype=np.intp)
        source[self.column[tightest]] = self.row[tightest]
        return source


def single_entry_rows(form: ConeForm) -> SingleEntryRows:
    """Return the linear rows of a form, equations and inequalities, that have a single entry."""
    A = form.A
    linear = form.cones.zero + form.cones.nonneg
    columns = np.repeat(np.arange(form.c.size), np.diff(A.indptr))
    counts = np.bincount(A.indices, minlength=form.b.size)
    single = (counts == 1)[A.indices] & (A.indices < linear)
    row = A.indices[single].astype(np.intp)
    return SingleEntryRows(
        variables=form.c.size,
        row=row,
        column=columns[single],
        entry=A.data[single],
        right=form.b[row],
        equation=row < form.cones.zero,
    )
