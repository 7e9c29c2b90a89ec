"""`Decimals`: the data of a linear program as rational numbers, beside their float64 rounding.

A file states decimals such as 0.1, which float64 rounds. A program that keeps them is the program
of the file; its float arrays are what solvers get. Rows have the order of `LinearRows`, so that
multipliers of the one are multipliers of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix
from klopt.errors import InvalidProblem
from klopt.programs.rows import LinearRows
from klopt.proof.rational import Entries, Number, RationalProgram, rational_rows

__all__ = ["Decimals", "decimal"]

MAX_DECIMAL_EXPONENT = 400
"""No float64 needs more; a text such as 1e999999999 must not fill the memory."""


def decimal(text: str) -> Number:
    """Return the number that a decimal text states, without rounding; Fortran's D counts as E.

    >>> decimal("-1.25D1"), decimal("Inf")
    (Fraction(-25, 2), inf)
    """
    word = text.strip()
    # Words such as "inf" hold no exponent.
    if not word[-1:].isdigit() and word[-1:] != ".":
        value = float(word)
        if not isinf(value):
            raise ValueError(f"{text!r} is not a decimal number")
        return value
    word = word.replace("D", "E").replace("d", "e")
    rounded = float(word)  # refuses what is no decimal, such as 1/3
    if isinf(rounded):
        return rounded
    exponent = word.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > MAX_DECIMAL_EXPONENT:
        raise ValueError(f"{text!r} has an exponent beyond {MAX_DECIMAL_EXPONENT}")
    return Fraction(word)


@dataclass(frozen=True, eq=False)
class Decimals:
    """A linear program in rationals.

    Parameters
    ----------
    c, offset
        The objective c'x + offset.
    ub, b_ub, eq, b_eq
        The rows of A_ub and A_eq, without zeros, and their right-hand sides.
    bounds
        A pair (lower, upper) for each variable; inf where there is none.
    """

    c: tuple[Fraction, ...]
    ub: tuple[Entries, ...]
    b_ub: tuple[Number, ...]
    eq: tuple[Entries, ...]
    b_eq: tuple[Number, ...]
    bounds: tuple[tuple[Number, Number], ...]
    offset: Fraction

    @classmethod
    def of_floats(cls, c: FloatArray, rows: LinearRows, offset: float) -> Decimals:
        """Return data in float64 as the rational numbers that they are."""
        return cls(
            c=tuple(map(Fraction, c.tolist())),
            ub=rational_rows(rows.A_ub),
            b_ub=_numbers(rows.b_ub),
            eq=rational_rows(rows.A_eq),
            b_eq=_numbers(rows.b_eq),
            bounds=tuple(
                zip(_numbers(rows.bounds[:, 0]), _numbers(rows.bounds[:, 1]), strict=True)
            ),
            offset=Fraction(offset),
        )

    def check(self, c: FloatArray, rows: LinearRows, offset: float) -> None:
        """Refuse float arrays that are not these numbers, rounded."""
        pairs: dict[str, tuple[Sequence[Number], FloatArray]] = {
            "c": (self.c, c),
            "b_ub": (self.b_ub, rows.b_ub),
            "b_eq": (self.b_eq, rows.b_eq),
            "bounds[:, 0]": ([low for low, _ in self.bounds], rows.bounds[:, 0]),
            "bounds[:, 1]": ([high for _, high in self.bounds], rows.bounds[:, 1]),
            "offset": ([self.offset], np.array([offset])),
            "A_ub": _aligned(self.ub, rows.A_ub),
            "A_eq": _aligned(self.eq, rows.A_eq),
        }
        for name, (exact, floats) in pairs.items():
            if not np.array_equal(np.array(list(map(float, exact)), dtype=float), floats):
                raise InvalidProblem(f"{name} is not what its decimals round to")
        # Whether a variable is fixed is a statement about its bounds, not about their rounding.
        for index in np.flatnonzero(rows.fixed).tolist():
            low, high = self.bounds[index]
            if low != high:
                raise InvalidProblem(
                    f"the bounds of variable {index} differ, but by less than float64 can tell"
                )

    def program(self, rows: LinearRows, sign: int) -> RationalProgram:
        """Return the program that minimises sign c'x, with rows in the order of `rows`."""
        entries: list[Entries] = []
        sides: list[Number] = []
        for name, index in _labels(rows):
            if name in ("eq", "ub"):
                equal = name == "eq"
                entries.append((self.eq if equal else self.ub)[index])
                sides.append((self.b_eq if equal else self.b_ub)[index])
            elif name == "lower":
                entries.append(((index, Fraction(-1)),))
                sides.append(-self.bounds[index][0])
            else:
                entries.append(((index, Fraction(1)),))
                sides.append(self.bounds[index][1])
        c = tuple(sign * cost for cost in self.c)
        return RationalProgram(c, tuple(entries), tuple(sides), rows.zero[1].size)

    def named(self, rows: LinearRows, y: Sequence[Fraction]) -> Mapping[str, tuple[Fraction, ...]]:
        """Return exact multipliers of the program as those of the user's constraints."""
        n = len(self.c)
        zero = Fraction(0)
        sizes = {"ub": len(self.b_ub), "eq": len(self.b_eq), "lower": n, "upper": n}
        found = {name: [zero] * size for name, size in sizes.items()}
        for (name, index), value in zip(_labels(rows), y, strict=True):
            if name == "fixed":
                # One equality stands for both bounds; its sign tells which is active.
                found["lower" if value < 0 else "upper"][index] = abs(value)
            else:
                found[name][index] = value
        return {name: tuple(values) for name, values in found.items()}


def _labels(rows: LinearRows) -> Iterator[tuple[str, int]]:
    """What each cone row is made of, in the order of `LinearRows`."""
    low, high = rows.bounded
    parts = (
        ("eq", np.ones(rows.b_eq.size, dtype=bool)),
        ("fixed", rows.fixed),
        ("ub", rows.kept),
        ("lower", low),
        ("upper", high),
    )
    for name, mask in parts:
        for index in np.flatnonzero(mask).tolist():
            yield name, index


def _numbers(values: FloatArray) -> tuple[Number, ...]:
    return tuple(value if isinf(value) else Fraction(value) for value in values.tolist())


def _aligned(rows: Sequence[Entries], A: SparseMatrix) -> tuple[Sequence[Number], FloatArray]:
    """The entries of rows in rationals, and those of A in the same places, 0 where it has none."""
    places = [(row, column) for row, entries in enumerate(rows) for column, _ in entries]
    exact = [value for entries in rows for _, value in entries]
    if len(rows) != A.shape[0]:
        return exact, np.zeros(0)
    known = dict(_entries(A))
    found = [known.pop(place, 0.0) for place in places]
    # What is left has no decimal.
    return exact, np.array(found + list(known.values()), dtype=float)


def _entries(A: SparseMatrix) -> Iterator[tuple[tuple[int, int], float]]:
    coordinates = A.tocoo()
    places = zip(coordinates.row.tolist(), coordinates.col.tolist(), strict=True)
    return zip(places, coordinates.data.tolist(), strict=True)
