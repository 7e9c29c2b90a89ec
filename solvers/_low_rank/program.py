"""The dual of a linear matrix inequality as a program over factors, touching only its sparse entries.

A cone form  minimise c'x subject to b - Ax in K  has the dual

    minimise b'y   subject to  A'y = -c,  y in K*,

whose semidefinite blocks are written Y = VV', whose nonnegative rows are squares and whose rows of
zero cones are free. Only entries of VV' that b or A touch are ever computed; the slack b - Ax of a
block is a sparse symmetric matrix S, and the gradient of <S, VV'> is 2 S V.

Equations that fix one diagonal entry of Y, a Y_ii = -c_j, hold by construction: row i of V lies on
a sphere. The other equations are `general`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones.svec import svec_entries, svec_size
from klopt.model.forms import ConeForm

__all__ = ["Block", "FactorProgram"]

Indices = npt.NDArray[np.intp]

MAX_GATHERED = 4_000_000
"""Numbers that are gathered at a time for entries of VV'."""


@dataclass(frozen=True, eq=False)
class Block:
    """The entries of one semidefinite block that the program touches.

    Attributes
    ----------
    order
        The order of the matrix.
    used
        Which of the used rows of the form belong to it.
    i, j
        Their places in the lower triangle.
    weight
        What `svec` multiplies them by.
    """

    order: int
    used: slice
    i: Indices
    j: Indices
    weight: FloatArray

    @cached_property
    def _pattern(self) -> tuple[Indices, Indices, Indices, FloatArray]:
        """The sparse symmetric matrix of a slack: starts, columns, entry of s and its factor."""
        off = self.i != self.j
        row = np.concatenate((self.i, self.j[off]))
        column = np.concatenate((self.j, self.i[off]))
        number = np.arange(self.i.size)
        entry = np.concatenate((number, number[off]))
        order = np.lexsort((column, row))
        starts = np.searchsorted(row[order], np.arange(self.order + 1))
        factor = (1.0 / self.weight)[entry[order]]
        return starts, column[order], entry[order], factor

    def matrix(self, s: FloatArray) -> sparse.csr_array:
        """Return the symmetric matrix whose used entries of `svec` are s."""
        starts, columns, entry, factor = self._pattern
        shape = (self.order, self.order)
        return sparse.csr_array((s[entry] * factor, columns, starts), shape=shape)

    def products(self, V: FloatArray, W: FloatArray) -> FloatArray:
        """Return the used entries of svec((VW' + WV') / 2)."""
        out = np.empty(self.i.size)
        step = max(1, MAX_GATHERED // max(V.shape[1], 1))
        for first in range(0, out.size, step):
            part = slice(first, first + step)
            i, j = self.i[part], self.j[part]
            out[part] = np.einsum("ab,ab->a", V[i], W[j])
            if W is not V:
                out[part] += np.einsum("ab,ab->a", W[i], V[j])
        return self.weight * (out if W is V else out / 2)


class FactorProgram:
    """minimise b'y subject to A'y = -c over y = (free, squares, VV', ..), as sparse as b and A are.

    Parameters
    ----------
    form
        A cone form with a linear objective and zero, nonnegative and semidefinite cones. Nonnegative
        rows without a bound (b = inf) have multiplier 0.
    """

    def __init__(self, form: ConeForm) -> None:
        cones = form.cones
        linear = cones.zero + cones.nonneg
        touched = form.b != 0
        touched[form.A.indices] = True
        touched[:linear] = np.isfinite(form.b[:linear])
        # The diagonal always: the proof moves it, and spheres read it.
        start = linear
        for order in cones.psd:
            size = svec_size(order)
            rows, columns = svec_entries(order)
            touched[start : start + size] |= rows == columns
            start += size

        self.form = form
        self.used = np.flatnonzero(touched)
        rows_of_A = sparse.csr_array(form.A)[self.used]
        # Equations of unit size, so that one penalty suits them all.
        norms = np.sqrt(np.asarray(rows_of_A.power(2).sum(axis=0)).ravel())
        self.unit = np.where(norms > 0, norms, 1.0)
        self.A = sparse.csr_array(rows_of_A @ sparse.diags_array(1.0 / self.unit))
        self.c = form.c / self.unit
        self.b = form.b[self.used]

        self.free = slice(0, cones.zero)
        kept = int(np.count_nonzero(touched[:linear]))
        self.squares = slice(cones.zero, kept)
        self.blocks = self._blocks(touched, linear, kept)
        self._find_spheres()

    def _blocks(self, touched: npt.NDArray[np.bool_], start: int, first: int) -> tuple[Block, ...]:
        found = []
        for order in self.form.cones.psd:
            size = svec_size(order)
            at = np.flatnonzero(touched[start : start + size])
            rows, columns = svec_entries(order)
            i, j = rows[at], columns[at]
            weight = np.where(i == j, 1.0, np.sqrt(2.0))
            found.append(Block(order, slice(first, first + at.size), i, j, weight))
            start += size
            first += at.size
        return tuple(found)

    def _find_spheres(self) -> None:
        """Which equations fix a diagonal entry, and the length of that row of V."""
        by_column = sparse.csc_array(self.A)
        single = np.diff(by_column.indptr) == 1
        self.lengths: list[FloatArray] = []
        self.sphere_of = np.full(self.c.size, -1, dtype=np.intp)
        for block in self.blocks:
            length = np.full(block.order, np.nan)
            diagonal = np.full(self.used.size, -1, dtype=np.intp)
            at = np.flatnonzero(block.i == block.j)
            diagonal[block.used.start + at] = block.i[at]
            for column in np.flatnonzero(single).tolist():
                place = by_column.indptr[column]
                row = diagonal[by_column.indices[place]]
                if row < 0 or np.isfinite(length[row]):
                    continue
                square = -self.c[column] / by_column.data[place]
                if square > 0:
                    length[row] = np.sqrt(square)
                    self.sphere_of[column] = by_column.indices[place]
            self.lengths.append(length)
        on_sphere = self.sphere_of >= 0
        self.fixed = np.flatnonzero(on_sphere)
        self.general = np.flatnonzero(~on_sphere)
        self.A_general = sparse.csr_array(self.A[:, self.general])
        self.At_general = sparse.csr_array(self.A_general.T)
        self.c_general = self.c[self.general]
