"""A function and a run of the method as fractions: the proof that a worst case is attained.

A Gram matrix and function values that satisfy every condition are those of some function of the
class, where the conditions interpolate. Equations are solved exactly; a small share of an example
that lies inside all conditions gives the room that rounding needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.certificates.exact_witness import exact_columns, exact_product, solved_exactly
from klopt.model.cones import Cones, svec_diagonal, svec_entries
from klopt.worst_cases.interior_point import Pair, solved
from klopt.worst_cases.program import PerformanceProgram

__all__ = ["ExampleSide"]

LARGEST = 1e3
"""The trace of an inner example may be this much larger than 1 plus that of the best one."""
KEPT_DIGITS = 2.0**-70

Vector = list[Fraction]


@dataclass(frozen=True, eq=False)
class ExampleSide:
    """The program of the examples."""

    program: PerformanceProgram

    def best(self, backend: str, seconds: float) -> Pair | None:
        """Return the best example in floats."""
        A, b = self.program.rows
        return solved(-self.program.cost, A, b, self.program.cones, backend, seconds)

    def inner(
        self, best: FloatArray, near: float, backend: str, seconds: float
    ) -> FloatArray | None:
        """Return an example as far inside all conditions as a value lower by a share allows."""
        program = self.program
        value = float(program.cost @ best)
        constant = program.objective.constant
        lowest = value - near * max(abs(value + constant), 1e-6)
        A, b = program.rows
        cones = program.cones
        m = len(program.values)
        diagonal = m + svec_diagonal(program.order)
        inside = np.zeros(b.size)
        inside[cones.zero : cones.zero + cones.nonneg] = 1.0
        at = cones.zero + cones.nonneg
        for order in cones.psd:
            i, j = svec_entries(order)
            inside[at : at + i.size] = i == j
            at += i.size
        # A x + t inside <= b,  t <= 1,  trace of G <= largest,  value >= lowest
        limits = np.zeros((3, program.size + 1))
        limits[0, -1] = 1.0
        limits[1, diagonal] = 1.0
        limits[2, :-1] = -program.cost
        limit = [1.0, LARGEST * (1 + np.abs(best[diagonal]).sum()), -lowest]
        widened = sparse.csr_array(sparse.hstack([A, sparse.csr_array(inside[:, None])]))
        zero = cones.zero
        rows = sparse.vstack(
            [widened[:zero], sparse.csr_array(limits), widened[zero:]], format="csr"
        )
        right = np.concatenate([b[:zero], limit, b[zero:]])
        wider = Cones(zero=zero, nonneg=cones.nonneg + 3, psd=cones.psd)
        cost = np.zeros(program.size + 1)
        cost[-1] = -1.0
        pair = solved(cost, rows, right, wider, backend, seconds)
        return None if pair is None else pair.x[:-1]

    def exact(self, x: FloatArray) -> Vector | None:
        """Return an example near x that satisfies the equations exactly; None where there is none."""
        A, b = self.program.rows
        zero = self.program.equations
        found = [Fraction(round(value / KEPT_DIGITS)) * Fraction(KEPT_DIGITS) for value in x]
        if not zero:
            return found
        E = A[:zero]
        left = [
            Fraction(right) - value
            for right, value in zip(b[:zero].tolist(), exact_product(E, found), strict=True)
        ]
        moved = solved_exactly(
            exact_columns(sparse.csc_array(E)), dict(enumerate(left)), 1e-30 + np.abs(x)
        )
        if moved is None:
            return None
        return [a + b for a, b in zip(found, moved, strict=True)]
