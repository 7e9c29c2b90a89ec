"""A quadratic objective as a second-order cone, which leaves a linear objective.

    minimise x'Px/2 + c'x  subject to  b - Ax in K

is  minimise t + c'x  subject to  b - Ax in K,  x'Px/2 <= t,  in (x, t).
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, csc
from klopt.model.forms import ConeForm
from klopt.programs.psd_factor import factor
from klopt.programs.quadratic_constraints import QuadraticCone

__all__ = ["Epigraph"]


@attrs.frozen(eq=False, slots=False)
class Epigraph:
    """The epigraph of a cone program's objective, and the way between their solutions.

    >>> from klopt.model.cones import Cones
    >>> form = ConeForm([-1.0], np.zeros((0, 1)), [], Cones(), P=[[1.0]])
    >>> Epigraph(form).form.cones.soc
    (3,)
    """

    original: ConeForm

    @cached_property
    def cone(self) -> QuadraticCone | None:
        """x'Px/2 <= t as a cone in (x, t); None for a linear objective."""
        form = self.original
        if form.P is None:
            return None
        F = factor("P", form.P)
        wide = sparse.hstack([F, sparse.csc_array((F.shape[0], 1))], format="csc")
        return QuadraticCone(csc("F", wide), np.append(np.zeros(form.c.size), -1.0), 0.0)

    @property
    def _place(self) -> int:
        """The rows of the cone follow those of the other second-order cones."""
        cones = self.original.cones
        return cones.zero + cones.nonneg + sum(cones.soc)

    @cached_property
    def form(self) -> ConeForm:
        """The program with a linear objective; the original where it has one already."""
        form = self.original
        if self.cone is None:
            return form
        A, b = self.cone.rows()
        above = sparse.csr_array(sparse.hstack([form.A, sparse.csc_array((form.b.size, 1))]))
        place = self._place
        stacked = sparse.vstack([above[:place], A, above[place:]], format="csc")
        sides = np.concatenate((form.b[:place], b, form.b[place:]))
        cones = attrs.evolve(form.cones, soc=(*form.cones.soc, b.size))
        return ConeForm(np.append(form.c, 1.0), csc("A", stacked), sides, cones)

    def lower(self, x: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Return (x, y) of the original from a solution of `form`."""
        if self.cone is None:
            return x, y
        if y is not None:
            y = np.delete(y, np.s_[self._place : self._place + self.cone.size])
        return x[:-1], y

    def lift(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (x, y) of `form` from one of the original."""
        if self.cone is None:
            return x, y
        high = np.append(x, float(x @ self.original.curve(x)) / 2)
        place = self._place
        return high, np.concatenate((y[:place], self.cone.support(1.0, high), y[place:]))
