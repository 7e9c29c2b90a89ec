"""The exact rank of equations Ax = b, and whether the dependent ones agree with the others.

Let R be rows that are independent modulo a prime, hence over the rationals, and k another row. If

    A_k = sum over i in R of u_i A_i     in exact arithmetic,

then row k says nothing new if b_k = sum u_i b_i, and contradicts the others otherwise: with

    amount = sum u_i b_i - b_k,     y = sign(amount) (e_k - sum u_i e_i),

A'y = 0 and b'y = -|amount| < 0 is a Farkas vector. If b_k changes by `amount`, and only then among
changes of b_k alone, the row becomes redundant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klopt.arrays import MatrixLike, csc
from klopt.proof.rational import IntegerRow, Number, RationalProgram, rational_rows
from klopt.proof.rational_systems import RationalMatrix, TooLarge, as_fractions, independent
from klopt.proof.time_budget import exhausted

__all__ = ["RightHandSideChange", "RowDependence", "dependence", "independent_rows"]

PRIMES = (2**61 - 1, 2**31 - 1, 2**89 - 1)
"""A prime that divides a minor of A by chance finds too small a rank; the next one is tried."""


class RightHandSideChange(NamedTuple):
    """What is added to b in a dependent row, so that it agrees with the others."""

    row: int
    amount: Fraction
    ulps: float
    """The amount in units of the last place of b in that row."""


@dataclass(frozen=True, eq=False)
class RowDependence:
    """A largest set of independent equations, and how the others depend on it.

    Parameters
    ----------
    independent
        Rows that are independent; their number is the rank.
    dependent
        The others, each an exact combination of the independent ones.
    farkas
        One multiplier for each row, with A'y = 0 and b'y < 0, where the equations contradict each
        other; empty where they do not.
    changes
        Of each dependent row that contradicts the others, the change of b that makes it agree.
    """

    independent: npt.NDArray[np.intp]
    dependent: npt.NDArray[np.intp]
    farkas: tuple[Fraction, ...]
    changes: tuple[RightHandSideChange, ...]

    @property
    def consistent(self) -> bool:
        """Whether the equations have a solution."""
        return not self.changes


def independent_rows(A: MatrixLike, b: npt.ArrayLike) -> RowDependence | None:
    """Return how the equations Ax = b depend on each other; None where that takes too long.

    >>> found = independent_rows([[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]], [0.1, 0.2, 3.0])
    >>> found.independent, found.consistent
    (array([0, 2]), True)
    >>> found = independent_rows([[1.0], [3.0]], [0.1, 0.3])  # 3 times 0.1 is not 0.3 in float64
    >>> found.changes[0].row, found.changes[0].ulps
    (1, 0.5)
    """
    matrix = csc("A", A)
    sides = tuple(Fraction(value) for value in np.asarray(b, dtype=float).tolist())
    c = (Fraction(0),) * matrix.shape[1]
    return dependence(RationalProgram(c, rational_rows(matrix), sides, len(sides)))


def dependence(program: RationalProgram) -> RowDependence | None:
    """Return how the equations of a program in rationals depend on each other.

    >>> one, three = Fraction(1), Fraction(3)
    >>> rows = (((0, one),), ((0, three),))
    >>> b = (Fraction("0.1"), Fraction("0.3"))
    >>> dependence(RationalProgram((one,), rows, b, zero=2)).consistent
    True
    """
    for prime in PRIMES:
        try:
            found = _dependence(program, prime)
        except TooLarge:
            return None
        if found is not None or exhausted():
            return found
    return None


def _dependence(program: RationalProgram, prime: int) -> RowDependence | None:
    """The same by one prime; None if it finds too small a rank, or if time is up."""
    from flint import fmpq

    rows = program.integer_rows[: program.zero]
    entries = [row.entries for row in rows]
    # Short rows first: they cause little fill.
    order = sorted(range(len(rows)), key=lambda index: (len(entries[index]), index))
    chosen, pivots = independent(entries, order, len(program.c), prime)
    pairs = sorted(zip(chosen, pivots, strict=True))
    chosen = [row for row, _ in pairs]
    places = {column: place for place, (_, column) in enumerate(pairs)}
    inside = set(chosen)
    dependent = [index for index in range(len(rows)) if index not in inside]

    # The square part: independent rows, one column for each.
    square = RationalMatrix(
        [[(places[j], value) for j, value in entries[row] if j in places] for row in chosen]
    )
    farkas: tuple[Fraction, ...] = ()
    changes: list[RightHandSideChange] = []
    for row in dependent:
        if exhausted():
            return None
        right = [fmpq(0)] * len(chosen)
        for column, value in entries[row]:
            if column in places:
                right[places[column]] = fmpq(value)
        u = as_fractions(square.solve_transposed(right))
        if not _is_combination(rows, chosen, u, row):
            return None
        amount = _amount(rows, chosen, u, row)
        if not amount:
            continue
        changes.append(RightHandSideChange(row, amount, _ulps(amount, program.b[row])))
        if not farkas:
            farkas = _contradiction(rows, chosen, u, row, amount)
    return RowDependence(
        np.array(chosen, dtype=np.intp), np.array(dependent, dtype=np.intp), farkas, tuple(changes)
    )


def _is_combination(
    rows: Sequence[IntegerRow], chosen: Sequence[int], u: Sequence[Fraction], row: int
) -> bool:
    """Whether row = sum of u_i times the chosen rows, in every column, as integers.

    Parameters
    ----------
    rows
        All rows.
    chosen, u
        The independent rows and their weights.
    row
        The dependent row.
    """
    rest = {column: Fraction(value) for column, value in rows[row].entries}
    for index, weight in zip(chosen, u, strict=True):
        if weight:
            for column, value in rows[index].entries:
                rest[column] = rest.get(column, Fraction(0)) - weight * value
    return not any(rest.values())


def _amount(
    rows: Sequence[IntegerRow], chosen: Sequence[int], u: Sequence[Fraction], row: int
) -> Fraction:
    """What is added to b of the row, as it was given, to make it agree.

    Parameters
    ----------
    rows
        All rows.
    chosen, u
        The independent rows and their weights.
    row
        The dependent row.
    """
    terms = (weight * rows[index].b for index, weight in zip(chosen, u, strict=True) if weight)
    return (sum(terms, Fraction(0)) - rows[row].b) / rows[row].scale


def _contradiction(
    rows: Sequence[IntegerRow],
    chosen: Sequence[int],
    u: Sequence[Fraction],
    row: int,
    amount: Fraction,
) -> tuple[Fraction, ...]:
    """The Farkas vector of a row that contradicts the others.

    Parameters
    ----------
    rows
        All rows.
    chosen, u
        The independent rows and their weights.
    row, amount
        The dependent row and by how much it is off.
    """
    sign = 1 if amount > 0 else -1
    y = [Fraction(0)] * len(rows)
    y[row] = Fraction(sign * rows[row].scale)
    for index, weight in zip(chosen, u, strict=True):
        y[index] = -sign * weight * rows[index].scale
    return tuple(y)


def _ulps(amount: Fraction, b: Number) -> float:
    """The size of an amount in units of the last place of b; infinite if b is 0 and it is not tiny."""
    try:
        return float(abs(amount) / Fraction(math.ulp(float(b))))
    except OverflowError:
        return math.inf
