"""A function and a run of the method as fractions: the proof that a worst case is attained.

A Gram matrix and function values that satisfy every condition are those of some function of the
class, where the conditions interpolate. Equations are solved exactly; a small share of an example
that lies inside all conditions gives the room that rounding needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.certificates.exact_witness import Column, solved_exactly
from klopt.model.cones import Cones
from klopt.worst_cases.interior_point import Pair, Region, best_of, furthest_inside
from klopt.worst_cases.multiplier_side import shortened
from klopt.worst_cases.program import PerformanceProgram

__all__ = ["ExampleSide"]

Vector = list[Fraction]


@dataclass(frozen=True, eq=False)
class ExampleSide:
    """The program of the examples."""

    program: PerformanceProgram

    @property
    def region(self) -> Region:
        """The conditions."""
        A, b = self.program.rows
        cones = self.program.cones
        zero = cones.zero
        others = Cones(nonneg=cones.nonneg, psd=cones.psd)
        return Region(A[:zero], b[:zero], A[zero:], b[zero:], others)

    def best(self, backend: str, seconds: float) -> Pair | None:
        """Return the best example in floats."""
        return best_of(-self.program.cost, self.region, backend, seconds)

    def inner(
        self, best: FloatArray, near: float, backend: str, seconds: float
    ) -> FloatArray | None:
        """Return an example as far inside all conditions as a value lower by a share allows."""
        program = self.program
        value = float(program.cost @ best)
        lower = near * max(abs(value + float(program.objective.constant)), 1e-6)
        found = furthest_inside(self.region, -program.cost, lower - value, backend, seconds)
        return None if found is None else found[1]

    def exact(self, x: FloatArray) -> Vector | None:
        """Return an example near x that satisfies the equations exactly; None where there is none."""
        return self.exact_near([Fraction(value) for value in x.tolist()], x)

    def exact_near(self, x: Vector, sizes: FloatArray) -> Vector | None:
        """Return the same for fractions; those of large size are moved rather than others."""
        program = self.program
        zero = program.equations
        found = [shortened(value) for value in x]
        if not zero:
            return found
        rows, b = program.exact_rows
        columns: list[Column] = [[] for _ in range(program.size)]
        left: dict[int, Fraction] = {}
        for i in range(zero):
            left[i] = b[i]
            for place, value in rows[i].items():
                columns[place].append((i, value))
                left[i] -= value * found[place]
        moved = solved_exactly(columns, left, 1e-30 + np.abs(sizes))
        if moved is None:
            return None
        return [a + b for a, b in zip(found, moved, strict=True)]
