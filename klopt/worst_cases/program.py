"""The program of a worst case: what a Gram matrix and function values must satisfy.

    maximise  <C, G> + c'F + const   subject to   <A_i, G> + a_i'F + b_i <= 0 or = 0,
                                                  M_k(F, G) positive semidefinite,
                                                  G positive semidefinite

G holds the inner products of points and gradients, F the function values (Drori and Teboulle 2014;
Taylor, Hendrickx and Glineur 2017). As a cone program the variables are F and the lower triangle of
G, column by column; the rows are equations, inequalities, G and the matrices, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray
from klopt.engine.registry import problem_named
from klopt.model.cones import Cones, svec_entries, svec_size
from klopt.model.problem import Problem

__all__ = ["Affine", "Condition", "MatrixCondition", "PerformanceProgram"]


@dataclass(frozen=True, eq=False)
class Affine:
    """An affine function of function values and inner products."""

    values: Mapping[int, float]
    """The factor of each function value."""
    gram: Mapping[tuple[int, int], float]
    """The factor of each G_ij with i >= j, which counts once."""
    constant: float

    def matrix(self, order: int) -> FloatArray:
        """The symmetric A with <A, G> as the terms in G."""
        A = np.zeros((order, order))
        for (i, j), factor in self.gram.items():
            A[i, j] += factor / 2
            A[j, i] += factor / 2
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
        return Cones(
            zero=self.equations, nonneg=len(self.conditions) - self.equations, psd=orders
        )

    def expressions(self) -> Iterator[Affine]:
        """The objective, the conditions and the entries of the matrices, in the order of the rows."""
        yield self.objective
        for condition in self.sorted_conditions:
            yield condition.expression
        for matrix in self.matrices:
            yield from matrix.triangle()

    def vector(self, expression: Affine) -> dict[int, float]:
        """The factors of the variables in an expression."""
        found = dict(expression.values)
        first = len(self.values)
        for (i, j), factor in expression.gram.items():
            # Column j of the lower triangle begins after those of length n, n - 1, ..
            place = first + j * self.order - j * (j - 1) // 2 + i - j
            found[place] = found.get(place, 0.0) + factor
        return found

    @cached_property
    def cost(self) -> FloatArray:
        """The objective's factors of the variables."""
        cost = np.zeros(self.size)
        for place, factor in self.vector(self.objective).items():
            cost[place] = factor
        return cost

    @cached_property
    def rows(self) -> tuple[sparse.csr_array, FloatArray]:
        """A and b with b - Ax in the cones, matrices by their entries."""
        rows: list[dict[int, float]] = []
        b: list[float] = []
        for condition in self.sorted_conditions:
            rows.append(self.vector(condition.expression))
            b.append(-condition.expression.constant)
        for place in range(len(self.values), self.size):
            rows.append({place: -1.0})
            b.append(0.0)
        for matrix in self.matrices:
            for entry in matrix.triangle():
                rows.append({place: -v for place, v in self.vector(entry).items()})
                b.append(entry.constant)
        down = [i for i, row in enumerate(rows) for _ in row]
        across = [place for row in rows for place in row]
        data = [factor for row in rows for factor in row.values()]
        A = sparse.csr_array((data, (down, across)), shape=(len(rows), self.size))
        A.eliminate_zeros()
        return A, np.array(b)

    @cached_property
    def cone_program(self) -> Problem:
        """The program as one of klopt's problems."""
        make: Any = problem_named("ConeProgram")
        A, b = self.rows
        problem: Problem = make(
            None, self.cost, A, b, self.cones, self.objective.constant, "max", svec=False
        )
        return problem

    @cached_property
    def gram_rows(self) -> slice:
        """The rows of G."""
        first = len(self.conditions)
        return slice(first, first + svec_size(self.order))

    @cached_property
    def free_rows(self) -> FloatArray:
        """The rows other than those of G."""
        every = np.arange(self.rows[1].size)
        return np.setdiff1d(every, every[self.gram_rows])
