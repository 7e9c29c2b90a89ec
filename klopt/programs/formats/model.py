"""`Model`: the content of a file of an optimisation problem, in any of the formats.

    minimise or maximise   x'Px/2 + c'x + offset
    subject to             row_lower <= A x <= row_upper,   lower <= x <= upper
                           x'P_i x/2 + q_i'x <= r_i
                           b_soc - A_soc x  in second-order cones
                           b_curved - A_curved x  in exponential cones, then in power cones
                           sum_j x_j F_j - F_0  positive semidefinite, block by block

or, with over="X", the program in standard form whose data are c = b and F = (C, A_1, .., A_n):

    minimise or maximise   <C, X> + offset   subject to   <A_i, X> = b_i,  X positive semidefinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import copysign, isinf
from os import PathLike
from typing import Any, Literal, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import (
    FAKE_INFINITY,
    MAX_INDEX,
    FloatArray,
    MatrixLike,
    SparseMatrix,
    csc,
    require_memory,
)
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_diagonal, svec_entries, svec_size, svec_weights
from klopt.model.cones.power import Weights
from klopt.programs.decimals import Decimals
from klopt.programs.formats.source import SourceFile
from klopt.programs.rows import LinearRows
from klopt.proof.rational import Entries, Number

__all__ = [
    "LINES_AT_A_TIME",
    "Block",
    "FileNumbers",
    "Model",
    "Names",
    "QuadraticRow",
    "finite",
    "floats",
    "from_infinite",
    "number",
    "numbers_table",
    "require_blocks",
    "whole",
]

LINES_AT_A_TIME = 20_000
"""How many lines are read between two looks at the clock."""
SAMPLE_TEXTS = 256
"""How many numbers are looked at to see whether a file repeats them."""


class Names(NamedTuple):
    """What columns and rows are called in a file: columns, then inequalities, then equalities."""

    columns: tuple[str, ...] = ()
    ub: tuple[str, ...] = ()
    eq: tuple[str, ...] = ()

    @classmethod
    def default(cls, columns: int, ub: int, eq: int) -> Names:
        """Return the names that a file gives by default; read back they count as no names."""
        counts = (("x", columns), ("ub", ub), ("eq", eq))
        return cls(
            *(tuple(f"{letter}{index}" for index in range(count)) for letter, count in counts)
        )

    def is_default(self, columns: int, ub: int, eq: int) -> bool:
        """Return whether these are the names of `default`."""
        # Most files have names of their own, which the first of each kind tells.
        first = (part[:1] for part in self)
        expected = Names.default(min(columns, 1), min(ub, 1), min(eq, 1))
        return tuple(first) == expected and self == Names.default(columns, ub, eq)

    @classmethod
    def check(cls, names: object, columns: int, ub: int, eq: int) -> None:
        """Refuse what is neither None nor `Names` of so many columns and rows."""
        if names is None:
            return
        if not isinstance(names, cls):
            text = "expected klopt.programs.formats.model.Names, such as Names(columns=('x', 'y'))"
            raise InvalidProblem(f"names is {names!r}; {text}")
        for part, labels, count in zip(cls._fields, names, (columns, ub, eq), strict=True):
            is_list = isinstance(labels, list | tuple)
            if not is_list or not all(isinstance(label, str) for label in labels):
                raise InvalidProblem(
                    f"names.{part} is {labels!r}; expected a tuple of {count} texts"
                )
            if len(labels) != count:
                raise InvalidProblem(
                    f"names.{part} holds {len(labels)} names; expected {count} texts"
                )


class QuadraticRow(NamedTuple):
    """One constraint x'Px/2 + q'x <= r."""

    P: SparseMatrix
    q: FloatArray
    r: float


@attrs.frozen(eq=False, slots=False, init=False)
class Block:
    """One block of F_0, F_1, .., F_n: column i holds the lower triangle of F_i by columns.

    Entries are not scaled, so that the numbers of a file come back as they were;
    `klopt.model.cones.svec` scales off-diagonals by sqrt(2).
    """

    order: int
    entries: SparseMatrix

    def __init__(self, order: int, entries: MatrixLike) -> None:
        self.__attrs_init__(order, csc("F", entries, (svec_size(order), None)))

    @property
    def weights(self) -> FloatArray:
        """1 on the diagonal, sqrt(2) off it: what turns entries into svec."""
        return svec_weights(self.order)

    @property
    def is_diagonal(self) -> bool:
        """Whether all matrices of the block are diagonal, so that it states linear rows."""
        return bool(np.isin(self.entries.indices, svec_diagonal(self.order)).all())

    def diagonal(self) -> SparseMatrix:
        """Return the diagonals of F_0, .., F_n as columns."""
        return csc("F", self.entries.tocsr()[svec_diagonal(self.order)])

    def matrix(self, index: int) -> FloatArray:
        """Return F_index of this block as a dense matrix.

        >>> Block(2, sparse.csc_array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])).matrix(0)
        array([[1., 2.],
               [2., 3.]])
        """
        M = np.zeros((self.order, self.order))
        down, across = svec_entries(self.order)
        M[across, down] = M[down, across] = self.entries[:, [index]].toarray().ravel()
        return M


class FileNumbers(NamedTuple):
    """The numbers of a linear model as a file states them; fields as in `Model`."""

    c: tuple[Fraction, ...]
    rows: tuple[Entries, ...]
    row_lower: tuple[Number, ...]
    row_upper: tuple[Number, ...]
    bounds: tuple[tuple[Number, Number], ...]
    offset: Fraction


@dataclass(frozen=True, eq=False)
class Model:
    """A problem as a file states it; readers fill in what they found."""

    c: FloatArray
    A: SparseMatrix
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    sense: Literal["min", "max"] = "min"
    offset: float = 0.0
    P: SparseMatrix | None = None
    quadratics: tuple[QuadraticRow, ...] = ()
    A_soc: SparseMatrix | None = None
    b_soc: FloatArray | None = None
    soc: tuple[int, ...] = ()
    A_curved: SparseMatrix | None = None
    b_curved: FloatArray | None = None
    exp: int = 0
    power: tuple[Weights, ...] = ()
    blocks: tuple[Block, ...] = ()
    over: Literal["x", "X"] = "x"
    names: Names | None = None
    numbers: FileNumbers | None = None
    """The linear part in rationals, where the decimals of the file were kept."""

    @property
    def kind(self) -> str:
        """The smallest class that holds this model."""
        quadratic = bool(self.soc or self.quadratics or self.P is not None)
        curved = bool(self.exp or self.power)
        if curved or (self.blocks and quadratic):
            # Quadratic constraints are no cones as they are.
            return "nothing" if self.quadratics or self.over == "X" else "ConeProgram"
        if self.blocks:
            return "SDP"
        return "QCQP" if quadratic else "LP"

    def expect(self, path: str | PathLike[str], wanted: str, holds: Sequence[str]) -> None:
        """Refuse a model that the class `wanted` cannot represent."""
        if self.kind in holds:
            return
        parts = {
            "a quadratic objective": self.P is not None,
            "quadratic constraints": bool(self.quadratics),
            "second-order cones": bool(self.soc),
            "semidefinite blocks": bool(self.blocks),
            "exponential cones": bool(self.exp),
            "power cones": bool(self.power),
        }
        found = " and ".join(part for part, present in parts.items() if present)
        advice = f"use {self.kind}.from_file"
        if self.kind == "nothing":
            advice = "no class of klopt holds them together"
        raise InvalidProblem(f"{path} has {found}, which {wanted} does not hold; {advice}")

    @classmethod
    def of_rows(
        cls,
        c: FloatArray,
        rows: LinearRows,
        offset: float,
        sense: Literal["min", "max"],
        names: Names | None = None,
    ) -> Model:
        """Return the model of a linear objective under linear rows and bounds.

        Parameters
        ----------
        c, offset, sense
            The objective c'x + offset and whether it is minimised.
        rows
            Inequalities, which come first, equalities and bounds.
        names
            What columns and rows are called.
        """
        A = csc("A", sparse.vstack([rows.A_ub, rows.A_eq], format="csc"))
        low = np.concatenate((np.full(rows.b_ub.size, -np.inf), rows.b_eq))
        high = np.concatenate((rows.b_ub, rows.b_eq))
        return cls(
            c, A, low, high, rows.bounds[:, 0], rows.bounds[:, 1], sense, offset, names=names
        )

    @property
    def bounds(self) -> FloatArray:
        """The bounds as an n x 2 array."""
        return np.column_stack((self.lower, self.upper))

    def split(self) -> tuple[SparseMatrix, FloatArray, SparseMatrix, FloatArray, Names | None]:
        """Return (A_ub, b_ub, A_eq, b_eq, names).

        A row with two sides gives two inequalities, a free one the right-hand side inf.
        """
        equal, rows, signs = self.sides()
        limits = np.where(signs > 0, self.row_upper[rows], -self.row_lower[rows])
        A = self.A.tocsr()
        A_ub = csc("A_ub", sparse.diags_array(signs) @ A[rows])
        return (
            A_ub,
            limits,
            csc("A_eq", A[equal]),
            self.row_lower[equal],
            self._names(rows, np.flatnonzero(equal)),
        )

    def sides(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp], FloatArray]:
        """Return which rows are equations; of which rows inequalities are sides, and their signs."""
        equal = (self.row_lower == self.row_upper) & np.isfinite(self.row_lower)
        upper = ~equal & (np.isfinite(self.row_upper) | ~np.isfinite(self.row_lower))
        lower = ~equal & np.isfinite(self.row_lower)
        rows = np.concatenate((np.flatnonzero(upper), np.flatnonzero(lower)))
        signs = np.concatenate((np.ones(upper.sum()), -np.ones(lower.sum())))

        # Back to the order of the file; the upper side of a row stays before its lower side.
        order = np.argsort(rows, kind="stable")
        return equal, rows[order], signs[order]

    def decimals(self) -> Decimals | None:
        """Return the rows after `split` in rationals; None where the decimals were not kept."""
        numbers = self.numbers
        if numbers is None:
            return None
        equal, rows, signs = self.sides()
        equations = np.flatnonzero(equal).tolist()
        for row in equations:
            if numbers.row_lower[row] != numbers.row_upper[row]:
                raise InvalidProblem(
                    f"the sides of row {row} differ, but by less than float64 can tell"
                )
        ub = []
        b_ub = []
        for row, sign in zip(rows.tolist(), signs.tolist(), strict=True):
            ub.append(tuple((column, int(sign) * value) for column, value in numbers.rows[row]))
            b_ub.append(numbers.row_upper[row] if sign > 0 else -numbers.row_lower[row])
        return Decimals(
            c=numbers.c,
            ub=tuple(ub),
            b_ub=tuple(b_ub),
            eq=tuple(numbers.rows[row] for row in equations),
            b_eq=tuple(numbers.row_lower[row] for row in equations),
            bounds=numbers.bounds,
            offset=numbers.offset,
        )

    def _names(self, ub: npt.NDArray[np.intp], eq: npt.NDArray[np.intp]) -> Names | None:
        """The names after `split`; the second side of a row gets a suffix, defaults are dropped."""
        if self.names is None:
            return None
        rows = (*self.names.ub, *self.names.eq)
        if len(rows) != self.row_lower.size:
            raise InvalidProblem(
                f"there are {len(rows)} names of rows and {self.row_lower.size} rows; "
                "name every row or none"
            )
        seen: set[int] = set()
        labels = []
        for row in ub.tolist():
            labels.append(f"{rows[row]}:lower" if row in seen else rows[row])
            seen.add(row)
        names = Names(self.names.columns, tuple(labels), tuple(rows[row] for row in eq.tolist()))
        return None if names.is_default(self.c.size, ub.size, eq.size) else names


def number(source: SourceFile, line: int, text: str) -> float:
    """Return the number that a file writes as text; Fortran's exponent D counts as E."""
    digits = text
    # Words such as "inf" hold no exponent.
    if text[-1:].isdigit():
        digits = text.replace("D", "E").replace("d", "e")
    # Python would read 1_000 as a number, which no other reader does.
    try:
        value = float("" if "_" in text or not text.isascii() else digits)
    except ValueError:
        raise source.malformed(line, f"{text!r} is not a number") from None
    if np.isnan(value):
        raise source.malformed(line, f"{text!r} is not a number")
    return value


def floats(texts: list[str] | list[bytes]) -> FloatArray:
    """Return the numbers that texts state; ValueError if one of them states none.

    >>> floats(["1", "2.5", "1"])
    array([1. , 2.5, 1. ])
    """
    sample = dict.fromkeys(texts[:SAMPLE_TEXTS])
    if 2 * len(sample) > min(len(texts), SAMPLE_TEXTS):
        _refuse_underscores(texts)
        return np.fromiter(map(float, texts), float, len(texts))
    # Most files write few numbers again and again: to look one up takes less than to read it.
    distinct: list[Any] = list(dict.fromkeys(texts))
    _refuse_underscores(distinct)
    value_of = dict(zip(distinct, map(float, distinct), strict=True))
    return np.fromiter(map(value_of.__getitem__, texts), float, len(texts))


def _refuse_underscores(texts: list[Any]) -> None:
    """Refuse 1_000, which Python would read as a number, and no other reader does."""
    if not texts:
        return
    letters = texts[0][:0].join(texts)
    underscore = "_" if isinstance(letters, str) else b"_"
    if underscore in letters:
        raise ValueError("an underscore stands in a number")


def finite(source: SourceFile, line: int, text: str) -> float:
    """Return the finite number that a file writes as text."""
    value = number(source, line, text)
    if isinf(value):
        raise source.malformed(line, f"{text!r} is not a finite number")
    return value


def whole(source: SourceFile, line: int, text: str, least: int = 0) -> int:
    """Return the count or index that a file writes as text."""
    value = number(source, line, text)
    if isinf(value) or value != int(value) or not least <= value <= MAX_INDEX:
        raise source.malformed(
            line, f"{text!r} is not a count or an index: a whole number from {least} to {MAX_INDEX}"
        )
    return int(value)


def numbers_table(
    source: SourceFile, lines: Sequence[tuple[int, list[str]]], width: int
) -> FloatArray:
    """Return the numbers of lines that are given by their words, `width` in each."""
    words = [row for _, row in lines]
    with suppress(ValueError):
        # Python would read 1_000 as a number, which no other reader does.
        if not any("_" in word for row in words for word in row):
            return np.array(words, dtype=float).reshape(-1, width)
    # Fortran exponents, or a mistake, which is searched for line by line.
    for line, row in lines:
        if len(row) != width:
            raise source.malformed(line, f"expected {width} numbers, found {len(row)}")
    table = [[number(source, line, word) for word in row] for line, row in lines]
    return np.array(table, dtype=float).reshape(-1, width)


def require_blocks(orders: Sequence[int], variables: int) -> None:
    """Refuse semidefinite blocks that a solver could not hold, before they are made."""
    entries = float(sum(svec_size(order) for order in orders))
    # Indices, weights and right-hand sides of each entry; a pointer of each matrix of each block.
    needed = 40.0 * entries + 12.0 * len(orders) * (variables + 1)
    largest = max(orders, default=0)
    require_memory(needed, f"{len(orders)} blocks of order up to {largest}, {variables} variables")


def from_infinite(value: Number) -> Number:
    """Return a bound of a file, infinite where the file writes 1e20 or 1e30 for that."""
    return value if -FAKE_INFINITY < value < FAKE_INFINITY else copysign(np.inf, value)
