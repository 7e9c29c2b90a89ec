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
from klopt.certificates.exact_witness import Column, exact_product, solved_exactly
from klopt.model.cones import Cones, svec_entries, svec_size
from klopt.worst_cases.interior_point import Pair, solved
from klopt.worst_cases.program import PerformanceProgram

__all__ = ["MultiplierSide", "matrix_of"]

SHARES = (0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0)
"""Shares of the inner multipliers, tried in this order."""
NEAR = (1e-8, 1e-6, 1e-4)
"""By which share the bound of inner multipliers, or the value of an inner example, may be worse."""
LARGEST = 1e4
"""Inner multipliers may be this much larger than 1 plus the best ones."""
KEPT_DIGITS = 2.0**-70
"""Multipliers are rounded to multiples of this before equations are solved, to keep them short."""

Vector = list[Fraction]


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
    def used(self) -> FloatArray:
        """The rows that have multipliers, those of G aside."""
        return np.array([r for r in self.program.free_rows if r not in self.unused], dtype=np.intp)

    @cached_property
    def inequalities(self) -> FloatArray:
        """Places among `used` whose multipliers are at least 0."""
        zero = self.program.equations
        lines = len(self.program.conditions)
        return np.flatnonzero((self.used >= zero) & (self.used < lines))

    @cached_property
    def other_points(self) -> FloatArray:
        """The rows of S that are not determined by others."""
        return np.setdiff1d(np.arange(self.program.order), np.array(self.pivots, dtype=np.intp))

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
        return self._solved(self.bound_cost, E, e, A, b, cones, backend, seconds)

    def margin(self, backend: str, seconds: float) -> float:
        """Return how far inside their cones multipliers can be, at most 1; negative if not at all."""
        inner = self._inner(LARGEST, np.inf, backend, seconds)
        return -np.inf if inner is None else float(inner[-1])

    def inner(
        self, best: FloatArray, near: float, backend: str, seconds: float
    ) -> FloatArray | None:
        """Return multipliers as far inside their cones as a bound that is worse by a share allows."""
        value = float(self.bound_cost @ best)
        constant = self.program.objective.constant
        worse = value + near * max(abs(value + constant), 1e-6)
        largest = LARGEST * (1 + np.abs(best).max(initial=0.0))
        inner = self._inner(largest, worse, backend, seconds)
        return None if inner is None else inner[:-1]

    def _inner(
        self, largest: float, worst: float, backend: str, seconds: float
    ) -> FloatArray | None:
        """Multipliers of bounded sum and bound that are furthest inside, and how far that is."""
        E, e = self.equations
        A, b, cones = self.cone_rows()
        inside = np.zeros(b.size)
        inside[: cones.nonneg] = 1.0
        at = cones.nonneg
        for order in cones.psd:
            i, j = svec_entries(order)
            inside[at : at + i.size] = i == j
            at += i.size
        # A y + t inside <= b,  t <= 1,  sum of y_i <= largest,  bound <= worst
        count = self.used.size
        limits = np.zeros((3, count + 1))
        limits[0, -1] = 1.0
        limits[1, self.inequalities] = 1.0
        limits[2, :-1] = self.bound_cost
        limit = np.array([1.0, largest, worst])
        finite = np.isfinite(limit)
        widened = sparse.hstack([A, sparse.csr_array(inside[:, None])])
        rows = sparse.vstack([sparse.csr_array(limits[finite]), widened], format="csr")
        right = np.concatenate([limit[finite], b])
        wider = Cones(nonneg=cones.nonneg + int(finite.sum()), psd=cones.psd)
        cost = np.zeros(count + 1)
        cost[-1] = -1.0
        E_wide = sparse.hstack([E, sparse.csr_array((E.shape[0], 1))], format="csr")
        pair = self._solved(cost, E_wide, e, rows, right, wider, backend, seconds)
        return None if pair is None else pair.x

    def _solved(
        self,
        cost: FloatArray,
        E: sparse.csr_array,
        e: FloatArray,
        A: sparse.csr_array,
        b: FloatArray,
        cones: Cones,
        backend: str,
        seconds: float,
    ) -> Pair | None:
        # Equations without entries say nothing, or 0 = 0 up to rounding.
        kept = np.diff(E.indptr) > 0
        rows = sparse.vstack([E[kept], A], format="csr")
        whole = Cones(zero=int(np.count_nonzero(kept)), nonneg=cones.nonneg, psd=cones.psd)
        return solved(cost, rows, np.concatenate([e[kept], b]), whole, backend, seconds)

    # Exactly

    @cached_property
    def exact_equations(self) -> tuple[list[Column], Vector]:
        """The equations in fractions, by column."""
        m = len(self.program.values)
        n = self.program.order
        gradient = sparse.csc_array(self.gradient)
        triangle = [
            (p, q) for p, q in zip(*(part.tolist() for part in svec_entries(n)), strict=True)
        ]

        def below(entries: dict[int, Fraction]) -> dict[int, Fraction]:
            """SN for a matrix given by its triangle, off-diagonal entries doubled."""
            found: dict[int, Fraction] = {}
            for place, value in entries.items():
                p, q = triangle[place]
                for row, other in {(p, q), (q, p)}:
                    part = value if p == q else value / 2
                    for k, vector in enumerate(self.kernel):
                        if vector[other]:
                            at = m + k * n + row
                            found[at] = found.get(at, Fraction(0)) + part * vector[other]
            return found

        columns: list[Column] = []
        for r in range(self.used.size):
            part = slice(gradient.indptr[r], gradient.indptr[r + 1])
            places = zip(
                gradient.indices[part].tolist(), gradient.data[part].tolist(), strict=True
            )
            entries: dict[int, Fraction] = {}
            gram: dict[int, Fraction] = {}
            for place, value in places:
                (entries if place < m else gram)[place - (0 if place < m else m)] = Fraction(value)
            columns.append(list((entries | below(gram)).items()))
        right = [Fraction(value) for value in self.program.cost[:m].tolist()]
        right += [Fraction(0)] * (n * len(self.kernel))
        cost = {k: Fraction(v) for k, v in enumerate(self.program.cost[m:].tolist()) if v}
        for place, value in below(cost).items():
            right[place] = value
        return columns, right

    def exact(self, y: FloatArray) -> Vector | None:
        """Return multipliers near y that satisfy the equations exactly; None where there are none."""
        columns, right = self.exact_equations
        rounded = y.copy()
        rounded[self.inequalities] = np.maximum(rounded[self.inequalities], 0.0)
        found = [Fraction(round(value / KEPT_DIGITS)) * Fraction(KEPT_DIGITS) for value in rounded]
        left = dict(enumerate(right))
        for column, value in zip(columns, found, strict=True):
            for equation, entry in column:
                left[equation] -= entry * value
        room = 1e-30 + np.abs(y)
        moved = solved_exactly(columns, left, room)
        if moved is None:
            return None
        return [a + b for a, b in zip(found, moved, strict=True)]

    def whole(self, y: Vector) -> Vector:
        """Return the multipliers of all rows, S included."""
        program = self.program
        m = len(program.values)
        S = [
            value - Fraction(cost)
            for value, cost in zip(
                exact_product(self.gradient[m:], y), program.cost[m:].tolist(), strict=True
            )
        ]
        found = [Fraction(0)] * program.rows[1].size
        for row, value in zip(self.used.tolist(), y, strict=True):
            found[row] = value
        found[program.gram_rows] = S
        return found
