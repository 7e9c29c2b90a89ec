"""The program of a worst case: what a Gram matrix and function values must satisfy.

    maximise  <C, G> + c'F + const   subject to   <A_i, G> + a_i'F + b_i <= 0 or = 0,
                                                  M_k(F, G) positive semidefinite,
                                                  G positive semidefinite

G holds the inner products of points and gradients, F the function values (Drori and Teboulle 2014;
Taylor, Hendrickx and Glineur 2017). As a cone program the variables are F and the lower triangle of
G, column by column; the rows are equations, inequalities, G and the matrices, in this order. All
numbers are fractions; solvers are given them as floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.model.cones import Cones, svec_entries, svec_size

Indices = npt.NDArray[np.intp]

__all__ = ["Affine", "Condition", "Indices", "MatrixCondition", "PerformanceProgram"]


@dataclass(frozen=True, eq=False)
class Affine:
    """An affine function of function values and inner products."""

    values: Mapping[int, Fraction]
    """The factor of each function value."""
    gram: Mapping[tuple[int, int], Fraction]
    """The factor of each G_ij with i >= j, which counts once."""
    constant: Fraction = Fraction(0)

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 for all values and points."""
        return not (self.constant or any(self.values.values()) or any(self.gram.values()))

    def matrix(self, order: int) -> FloatArray:
        """The symmetric A with <A, G> as the terms in G."""
        A = np.zeros((order, order))
        for (i, j), factor in self.gram.items():
            A[i, j] += float(factor) / 2
            A[j, i] += float(factor) / 2
        return A

    def kept(self, points: Mapping[int, int], values: Mapping[int, int]) -> Affine:
        """The same function where points and values that are left out are 0."""
        gram = {
            (max(points[i], points[j]), min(points[i], points[j])): factor
            for (i, j), factor in self.gram.items()
            if i in points and j in points
        }
        return Affine(
            {values[k]: factor for k, factor in self.values.items() if k in values},
            gram,
            self.constant,
        )


@dataclass(frozen=True, eq=False)
class Condition:
    """An expression that is at most 0, or 0."""

    name: str
    expression: Affine
    is_equation: bool


@dataclass(frozen=True, eq=False)
class MatrixCondition:
    """A symmetric matrix of expressions that is positive semidefinite, by its lower triangle."""

    name: str
    entries: tuple[tuple[Affine, ...], ...]
    """Row i has its entries 0 to i."""

    @property
    def order(self) -> int:
        """The number of rows."""
        return len(self.entries)

    def triangle(self) -> Iterator[Affine]:
        """The lower triangle, column by column."""
        for i, j in zip(*(part.tolist() for part in svec_entries(self.order)), strict=True):
            yield self.entries[i][j]


@dataclass(frozen=True, eq=False)
class PerformanceProgram:
    """A worst case as a semidefinite program."""

    points: tuple[str, ...]
    """The names of what G is made of."""
    values: tuple[str, ...]
    """The names of the function values."""
    objective: Affine
    conditions: tuple[Condition, ...]
    matrices: tuple[MatrixCondition, ...] = ()

    @property
    def order(self) -> int:
        """The order of G."""
        return len(self.points)

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.values) + svec_size(self.order)

    @cached_property
    def sorted_conditions(self) -> tuple[Condition, ...]:
        """Equations first, as the rows have them."""
        return (
            *(condition for condition in self.conditions if condition.is_equation),
            *(condition for condition in self.conditions if not condition.is_equation),
        )

    @cached_property
    def equations(self) -> int:
        """The number of equations."""
        return sum(condition.is_equation for condition in self.conditions)

    @cached_property
    def cones(self) -> Cones:
        """The cones of the rows."""
        orders = (self.order, *(matrix.order for matrix in self.matrices))
        return Cones(zero=self.equations, nonneg=len(self.conditions) - self.equations, psd=orders)

    def expressions(self) -> Iterator[Affine]:
        """The objective, the conditions and the entries of the matrices, in the order of the rows."""
        yield self.objective
        for condition in self.sorted_conditions:
            yield condition.expression
        for matrix in self.matrices:
            yield from matrix.triangle()

    def vector(self, expression: Affine) -> dict[int, Fraction]:
        """The factors of the variables in an expression, none of them 0."""
        found = dict(expression.values)
        first = len(self.values)
        for (i, j), factor in expression.gram.items():
            # Column j of the lower triangle begins after those of length n, n - 1, ..
            place = first + j * self.order - j * (j - 1) // 2 + i - j
            found[place] = found.get(place, Fraction(0)) + factor
        return {place: factor for place, factor in found.items() if factor}

    @cached_property
    def exact_cost(self) -> list[Fraction]:
        """The objective's factors of the variables."""
        cost = [Fraction(0)] * self.size
        for place, factor in self.vector(self.objective).items():
            cost[place] = factor
        return cost

    @cached_property
    def cost(self) -> FloatArray:
        """The objective's factors as floats."""
        return np.array([float(factor) for factor in self.exact_cost])

    @cached_property
    def exact_rows(self) -> tuple[list[dict[int, Fraction]], list[Fraction]]:
        """A and b with b - Ax in the cones, matrices by their entries."""
        rows: list[dict[int, Fraction]] = []
        b: list[Fraction] = []
        for condition in self.sorted_conditions:
            rows.append(self.vector(condition.expression))
            b.append(-condition.expression.constant)
        for place in range(len(self.values), self.size):
            rows.append({place: Fraction(-1)})
            b.append(Fraction(0))
        for matrix in self.matrices:
            for entry in matrix.triangle():
                rows.append({place: -v for place, v in self.vector(entry).items()})
                b.append(entry.constant)
        return rows, b

    @cached_property
    def rows(self) -> tuple[sparse.csr_array, FloatArray]:
        """A and b as floats."""
        rows, b = self.exact_rows
        down = [i for i, row in enumerate(rows) for _ in row]
        across = [place for row in rows for place in row]
        data = [float(factor) for row in rows for factor in row.values()]
        A = sparse.csr_array((data, (down, across)), shape=(len(rows), self.size))
        return A, np.array([float(value) for value in b])

    def slack(self, x: Sequence[Fraction]) -> list[Fraction]:
        """b - Ax, exactly."""
        rows, b = self.exact_rows
        found = []
        for row, right in zip(rows, b, strict=True):
            found.append(right - sum((v * x[place] for place, v in row.items()), Fraction(0)))
        return found

    @cached_property
    def gram_rows(self) -> slice:
        """The rows of G."""
        first = len(self.conditions)
        return slice(first, first + svec_size(self.order))

    @cached_property
    def free_rows(self) -> Indices:
        """The rows other than those of G."""
        every = np.arange(self.rows[1].size, dtype=np.intp)
        found: Indices = np.setdiff1d(every, every[self.gram_rows])
        return found
