"""Sparse linear systems over the rationals: independent rows, and exact solutions.

**Independence modulo a prime.** Rows of integers that are independent modulo a prime p are
independent over the rationals: a nonzero minor modulo p is a nonzero minor. So elimination modulo p
*proves* independence. That the other rows depend on them is only likely, and must be proven by an
exact combination.

**Block triangular form.** A basis of a linear program is nearly triangular. Rows with one entry
left are taken off the front, columns with one entry left off the back, until a kernel K remains:

        | L  0  0 |
    M = | B  K  0 |     L and U triangular after permutation,
        | D  E  U |

and Mz = r needs one dense solve, that of K, for which python-flint lifts a solution modulo a prime
to the rationals (Dixon 1982). M'w = r is solved from the other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from klopt.proof.time_budget import exhausted

if TYPE_CHECKING:
    from flint import fmpq, fmpz, fmpz_mat

__all__ = [
    "IntegerEntries",
    "RationalMatrix",
    "TooLarge",
    "as_fractions",
    "independent",
    "over_one_denominator",
]

IntegerEntries: TypeAlias = Sequence[tuple[int, int]]
"""The entries (column, value) of one row that are not 0."""

PRIME = 2**61 - 1
MAX_KERNEL = 600
"""A dense rational solve of a kernel of this size takes about ten seconds."""


MAX_UPDATES = 100_000_000
"""Entries that elimination may change: about half a minute."""


class TooLarge(Exception):
    """An exact solve would take too long."""


def independent(
    rows: Sequence[IntegerEntries],
    order: Iterable[int],
    columns: int,
    prime: int = PRIME,
) -> tuple[list[int], list[int]]:
    """Return rows that are independent, the first ones in an order, and a column for each.

    The square matrix of these rows and columns is regular.

    Parameters
    ----------
    rows
        The rows of integers.
    order
        In which order they are tried.
    columns
        How many columns there are; no more rows are independent.
    prime
        The modulus.

    >>> independent([[(0, 2), (1, 1)], [(0, 4), (1, 2)], [(1, 5)]], range(3), 2)
    ([0, 2], [0, 1])
    """
    counts = [0] * columns
    for row in rows:
        for column, _ in row:
            counts[column] += 1

    chosen: list[int] = []
    pivots: list[int] = []
    updates = 0
    rank_of: dict[int, int] = {}  # of a pivot's column
    reduced: list[list[tuple[int, int]]] = []  # the pivots' rows, divided by and without the pivot
    for index in order:
        if len(chosen) == columns:
            break
        if updates > MAX_UPDATES or exhausted():
            raise TooLarge("too many rows to find independent ones")
        left = {column: value % prime for column, value in rows[index]}
        left = {column: value for column, value in left.items() if value}
        # A pivot's row holds columns of later pivots only, so they are eliminated in that order.
        waiting = [rank_of[column] for column in left if column in rank_of]
        heapify(waiting)
        while waiting:
            rank = heappop(waiting)
            factor = left.pop(pivots[rank], 0)
            if not factor:
                continue
            updates += len(reduced[rank])
            for column, value in reduced[rank]:
                known = left.get(column)
                entry = ((known or 0) - factor * value) % prime
                if entry:
                    left[column] = entry
                    if known is None and column in rank_of:
                        heappush(waiting, rank_of[column])
                elif known is not None:
                    del left[column]
        if not left:
            continue
        # The column with the fewest entries causes the least fill.
        pivot = min(left, key=lambda column: (counts[column], column))
        inverse = pow(left.pop(pivot), -1, prime)
        rank_of[pivot] = len(chosen)
        chosen.append(index)
        pivots.append(pivot)
        reduced.append([(column, value * inverse % prime) for column, value in left.items()])
    return chosen, pivots


@dataclass(frozen=True, eq=False)
class RationalMatrix:
    """A regular sparse matrix of integers, in block triangular form.

    >>> from flint import fmpq
    >>> matrix = RationalMatrix([[(0, 2)], [(0, 1), (1, 3)]])
    >>> as_fractions(matrix.solve([fmpq(1), fmpq(1)]))
    (Fraction(1, 2), Fraction(1, 6))
    >>> as_fractions(matrix.solve_transposed([fmpq(1), fmpq(1)]))
    (Fraction(1, 3), Fraction(1, 3))
    """

    rows: Sequence[IntegerEntries]

    @cached_property
    def columns(self) -> list[list[tuple[int, int]]]:
        """The entries (row, value) of each column."""
        columns: list[list[tuple[int, int]]] = [[] for _ in self.rows]
        for index, row in enumerate(self.rows):
            for column, value in row:
                columns[column].append((index, value))
        return columns

    @cached_property
    def blocks(self) -> tuple[list[tuple[int, int]], list[int], list[int], list[tuple[int, int]]]:
        """Pivots (row, column) of L in order, rows and columns of K, pivots of U in reverse."""
        n = len(self.rows)
        row_counts = [len(row) for row in self.rows]
        column_counts = [len(column) for column in self.columns]
        row_left = [True] * n
        column_left = [True] * n
        lone_rows = [i for i in range(n) if row_counts[i] == 1]
        lone_columns = [j for j in range(n) if column_counts[j] == 1]
        front: list[tuple[int, int]] = []
        back: list[tuple[int, int]] = []

        def remove(row: int, column: int) -> None:
            row_left[row] = False
            column_left[column] = False
            for j, _ in self.rows[row]:
                column_counts[j] -= 1
                if column_left[j] and column_counts[j] == 1:
                    lone_columns.append(j)
            for i, _ in self.columns[column]:
                row_counts[i] -= 1
                if row_left[i] and row_counts[i] == 1:
                    lone_rows.append(i)

        while lone_rows or lone_columns:
            if lone_rows:
                row = lone_rows.pop()
                if row_left[row] and row_counts[row] == 1:
                    column = next(j for j, _ in self.rows[row] if column_left[j])
                    front.append((row, column))
                    remove(row, column)
                continue
            column = lone_columns.pop()
            if column_left[column] and column_counts[column] == 1:
                row = next(i for i, _ in self.columns[column] if row_left[i])
                back.append((row, column))
                remove(row, column)
        kernel_rows = [i for i in range(n) if row_left[i]]
        kernel_columns = [j for j in range(n) if column_left[j]]
        return front, kernel_rows, kernel_columns, back

    @cached_property
    def kernel(self) -> fmpz_mat:
        """K."""
        from flint import fmpz_mat

        _, rows, columns, _ = self.blocks
        if len(rows) > MAX_KERNEL:
            raise TooLarge(f"the kernel of a basis has {len(rows)} rows, more than {MAX_KERNEL}")
        places = {column: place for place, column in enumerate(columns)}
        size = len(rows)
        K = fmpz_mat(size, size)
        for place, row in enumerate(rows):
            for column, value in self.rows[row]:
                if column in places:
                    K[place, places[column]] = value
        return K

    def solve(self, r: Sequence[fmpq]) -> list[fmpq]:
        """Return z with Mz = r."""
        front, rows, columns, back = self.blocks
        z = _PartialSolution(len(self.rows))
        for row, column in front:
            z.set(column, z.rest(r[row], self.rows[row], column))
        if rows:
            # The entries of z in the kernel are still 0.
            z.set_kernel(columns, self.kernel, [z.rest(r[row], self.rows[row]) for row in rows])
        for row, column in reversed(back):
            z.set(column, z.rest(r[row], self.rows[row], column))
        return z.values()

    def solve_transposed(self, r: Sequence[fmpq]) -> list[fmpq]:
        """Return w with M'w = r."""
        front, rows, columns, back = self.blocks
        w = _PartialSolution(len(self.rows))
        for row, column in back:
            w.set(row, w.rest(r[column], self.columns[column], row))
        if rows:
            right = [w.rest(r[column], self.columns[column]) for column in columns]
            w.set_kernel(rows, self.kernel.transpose(), right)
        for row, column in reversed(front):
            w.set(row, w.rest(r[column], self.columns[column], row))
        return w.values()


class _PartialSolution:
    """A solution that is found entry by entry, 0 where it is not known yet.

    The entries of a kernel share one denominator, which is what makes sums over them cheap: to
    reduce a fraction costs more than all else.
    """

    def __init__(self, size: int) -> None:
        from flint import fmpz

        self.numerators = [fmpz(0)] * size
        self.denominators = [fmpz(1)] * size

    def set(self, place: int, value: fmpq) -> None:
        self.numerators[place] = value.p
        self.denominators[place] = value.q

    def set_kernel(self, places: Sequence[int], K: fmpz_mat, right: Sequence[fmpq]) -> None:
        """Set the entries at `places` to the solution of a dense regular system."""
        from flint import fmpz_mat

        integers, denominator = over_one_denominator(right)
        rational: Any = K.solve(fmpz_mat(len(right), 1, integers))
        solution, common = rational.numer_denom()
        common *= denominator
        for index, place in enumerate(places):
            self.numerators[place] = solution[index, 0]
            self.denominators[place] = common

    def rest(self, right: fmpq, entries: IntegerEntries, pivot: int | None = None) -> fmpq:
        """What the known terms of a sum leave of its right-hand side, over the pivot's entry."""
        from flint import fmpq

        divisor = 1
        sums: dict[int, fmpz] = {}  # of the terms with the same denominator
        shared: dict[int, fmpz] = {}
        for place, value in entries:
            if place == pivot:
                divisor = value
            elif self.numerators[place] != 0:
                denominator = self.denominators[place]
                key = id(denominator)
                sums[key] = sums.get(key, 0) + value * self.numerators[place]
                shared[key] = denominator
        for key, total in sums.items():
            right = right - fmpq(total, shared[key])
        return right / divisor

    def values(self) -> list[fmpq]:
        from flint import fmpq

        return [fmpq(*pair) for pair in zip(self.numerators, self.denominators, strict=True)]


def over_one_denominator(values: Sequence[fmpq]) -> tuple[list[fmpz], fmpz]:
    """Return the numerators of the values over their least common denominator, and that.

    >>> from flint import fmpq
    >>> over_one_denominator([fmpq(1, 2), fmpq(2, 3)])
    ([3, 4], 6)
    """
    from flint import fmpz

    denominator = fmpz(1)
    for value in values:
        denominator = denominator.lcm(value.q)
    return [value.p * (denominator // value.q) for value in values], denominator


def as_fractions(values: Iterable[fmpq]) -> tuple[Fraction, ...]:
    """Return numbers of python-flint as those of Python."""
    return tuple(Fraction(int(value.p), int(value.q)) for value in values)
