"""Multipliers of the conditions as fractions: the proof that a worst case is not exceeded.

For y with y_i >= 0 for inequalities, Y_k positive semidefinite for matrices, the sums

    sum y_i a_i - sum_k <Y_k, m_k> = c      and      S = sum y_i A_i - sum_k <Y_k, M_k> - C

say that objective = bound - <S, G> - sum y_i slack_i - .. <= bound if S is positive semidefinite. S
follows from y; the equations for c are solved exactly. A small share of multipliers that lie inside
gives S the room that rounding needs.

Where S cannot be definite, whatever y is, it has a kernel N: SN = 0 is solved with the equations,
and only S without the rows of N must be definite (`klopt.worst_cases.multiplier_face`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.certificates.exact_witness import Column, solved_exactly
from klopt.model.cones import Cones, svec_entries, svec_size
from klopt.worst_cases.interior_point import Pair, Region, best_of, furthest_inside
from klopt.worst_cases.program import Indices, PerformanceProgram

__all__ = ["NEAR", "SHARES", "MultiplierSide", "matrix_of", "shortened"]

SHARES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
"""Shares of inner vectors, tried in this order."""
NEAR = (1e-8, 1e-7, 4e-7, 2e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""By which share the bound of inner multipliers, or the value of an inner example, may be worse."""
LARGEST = 1e4
"""Inner multipliers may be this much larger than 1 plus the best ones."""
KEPT_BITS = 70
"""Numbers are rounded to multiples of 2^-70 before equations are solved, to keep them short."""

Vector = list[Fraction]


def shortened(value: Fraction) -> Fraction:
    """Return the nearest multiple of 2^-70."""
    return Fraction(round(value * 2**KEPT_BITS), 2**KEPT_BITS)


def matrix_of(entries: FloatArray, order: int) -> FloatArray:
    """Return the symmetric matrix of a lower triangle, column by column.

    >>> matrix_of(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    i, j = svec_entries(order)
    M = np.zeros((order, order))
    M[i, j] = M[j, i] = entries
    return M


@dataclass(frozen=True, eq=False)
class MultiplierSide:
    """The program of the multipliers, with the kernel of S and the conditions that cannot be used."""

    program: PerformanceProgram
    unused: frozenset[int] = frozenset()
    """Rows whose multipliers are 0."""
    pivots: tuple[int, ...] = ()
    kernel: tuple[tuple[Fraction, ...], ...] = field(default=())
    """Vectors n with Sn = 0; entry `pivots[k]` of vector k is 1, of the others 0."""

    @cached_property
    def used(self) -> Indices:
        """The rows that have multipliers, those of G aside."""
        return np.array([r for r in self.program.free_rows if r not in self.unused], dtype=np.intp)

    @cached_property
    def inequalities(self) -> Indices:
        """Places among `used` whose multipliers are at least 0."""
        zero = self.program.equations
        lines = len(self.program.conditions)
        return np.flatnonzero((self.used >= zero) & (self.used < lines))

    @cached_property
    def other_points(self) -> Indices:
        """The rows of S that are not determined by others."""
        every = np.arange(self.program.order, dtype=np.intp)
        found: Indices = np.setdiff1d(every, np.array(self.pivots, dtype=np.intp))
        return found

    @cached_property
    def gradient(self) -> sparse.csr_array:
        """The matrix that takes y to A'y, one row for each variable."""
        A, _ = self.program.rows
        return sparse.csr_array(A[self.used].T)

    @cached_property
    def kernel_rows(self) -> sparse.csr_array:
        """The matrix that takes the lower triangle of S (off-diagonal entries doubled) to SN."""
        n = self.program.order
        i, j = (part.tolist() for part in svec_entries(n))
        rows, columns, data = [], [], []
        for k, vector in enumerate(self.kernel):
            for place, (p, q) in enumerate(zip(i, j, strict=True)):
                half = 1.0 if p == q else 0.5
                for row, other in {(p, q), (q, p)}:
                    if vector[other]:
                        rows.append(k * n + row)
                        columns.append(place)
                        data.append(half * float(vector[other]))
        shape = (n * len(self.kernel), svec_size(n))
        return sparse.csr_array((data, (rows, columns)), shape=shape)

    @cached_property
    def equations(self) -> tuple[sparse.csr_array, FloatArray]:
        """What multipliers must satisfy: the function values cancel, and SN = 0."""
        m = len(self.program.values)
        cost = self.program.cost
        below = sparse.csr_array(self.kernel_rows @ self.gradient[m:])
        right = self.kernel_rows @ cost[m:]
        rows = sparse.vstack([self.gradient[:m], below], format="csr")
        return rows, np.concatenate([cost[:m], right])

    def cone_rows(self) -> tuple[sparse.csr_array, FloatArray, Cones]:
        """The conditions of y as b - Ay in cones: inequalities, S without its kernel, the matrices."""
        program = self.program
        m = len(program.values)
        count = self.used.size
        identity = sparse.eye_array(count, format="csr")
        i, j = svec_entries(program.order)
        within = np.isin(i, self.other_points) & np.isin(j, self.other_points)
        places = np.flatnonzero(within)
        half = sparse.diags_array(np.where(i[places] == j[places], 1.0, 0.5))
        rows = [-identity[self.inequalities], -(half @ self.gradient[m:][places])]
        right = [np.zeros(self.inequalities.size), -(half @ program.cost[m:][places])]
        orders = [self.other_points.size]
        at = len(program.conditions) - len(self.unused)
        for matrix in program.matrices:
            size = svec_size(matrix.order)
            i, j = svec_entries(matrix.order)
            half = sparse.diags_array(np.where(i == j, 1.0, 0.5))
            rows.append(-(half @ identity[at : at + size]))
            right.append(np.zeros(size))
            orders.append(matrix.order)
            at += size
        kept = [order for order in orders if order]
        cones = Cones(nonneg=self.inequalities.size, psd=tuple(kept))
        return sparse.vstack(rows, format="csr"), np.concatenate(right), cones

    @cached_property
    def bound_cost(self) -> FloatArray:
        """The bound is this times y plus the objective's constant."""
        _, b = self.program.rows
        return b[self.used]

    def best(self, backend: str, seconds: float) -> Pair | None:
        """Return the best multipliers in floats."""
        E, e = self.equations
        A, b, cones = self.cone_rows()
        return best_of(self.bound_cost, Region(E, e, A, b, cones), backend, seconds)

    def margin(self, backend: str, seconds: float) -> float:
        """Return how far inside their cones multipliers can be, at most 1; -inf if not at all."""
        E, e = self.equations
        A, b, cones = self.cone_rows()
        total = np.zeros(self.used.size)
        total[self.inequalities] = 1.0
        found = furthest_inside(Region(E, e, A, b, cones), total, LARGEST, backend, seconds)
        return -np.inf if found is None else found[0]

    def inner(
        self, best: FloatArray, near: float, backend: str, seconds: float
    ) -> FloatArray | None:
        """Return multipliers as far inside their cones as a bound that is worse by a share allows."""
        value = float(self.bound_cost @ best)
        worse = near * max(abs(value + float(self.program.objective.constant)), 1e-6)
        E, e = self.equations
        A, b, cones = self.cone_rows()
        region = Region(E, e, A, b, cones)
        found = furthest_inside(region, self.bound_cost, value + worse, backend, seconds)
        return None if found is None else found[1]

    # Exactly

    @cached_property
    def exact_equations(self) -> tuple[list[Column], Vector]:
        """The equations in fractions, by column."""
        program = self.program
        m = len(program.values)
        n = program.order
        down, across = (part.tolist() for part in svec_entries(n))

        def equations_of(row: dict[int, Fraction]) -> dict[int, Fraction]:
            """What a row of A, or the objective, has in the equations."""
            found = {place: value for place, value in row.items() if place < m}
            for place, value in row.items():
                if place < m:
                    continue
                p, q = down[place - m], across[place - m]
                part = value if p == q else value / 2
                for point, other in {(p, q), (q, p)}:
                    for k, vector in enumerate(self.kernel):
                        if vector[other]:
                            at = m + k * n + point
                            found[at] = found.get(at, Fraction(0)) + part * vector[other]
            return {place: value for place, value in found.items() if value}

        rows, _ = program.exact_rows
        columns = [list(equations_of(rows[r]).items()) for r in self.used.tolist()]
        right = [Fraction(0)] * (m + n * len(self.kernel))
        cost = {place: value for place, value in enumerate(program.exact_cost) if value}
        for place, value in equations_of(cost).items():
            right[place] = value
        return columns, right

    def exact(self, y: FloatArray) -> Vector | None:
        """Return multipliers near y that satisfy the equations exactly; None where there are none."""
        return self.exact_near([Fraction(value) for value in y.tolist()], y)

    def exact_near(self, y: Vector, sizes: FloatArray) -> Vector | None:
        """Return the same for fractions; those of large size are moved rather than others."""
        columns, right = self.exact_equations
        found = [shortened(value) for value in y]
        for place in self.inequalities.tolist():
            found[place] = max(found[place], Fraction(0))
        left = dict(enumerate(right))
        for column, value in zip(columns, found, strict=True):
            for equation, entry in column:
                left[equation] -= entry * value
        moved = solved_exactly(columns, left, 1e-30 + np.abs(sizes))
        if moved is None:
            return None
        return [a + b for a, b in zip(found, moved, strict=True)]

    def whole(self, y: Vector) -> Vector:
        """Return the multipliers of all rows, S included."""
        program = self.program
        m = len(program.values)
        rows, b = program.exact_rows
        S = [-value for value in program.exact_cost[m:]]
        found = [Fraction(0)] * len(b)
        for row, value in zip(self.used.tolist(), y, strict=True):
            found[row] = value
            if value:
                for place, factor in rows[row].items():
                    if place >= m:
                        S[place - m] += value * factor
        found[program.gram_rows] = S
        return found
