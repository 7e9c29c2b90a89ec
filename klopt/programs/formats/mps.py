"""Reads linear and quadratic programs from MPS files, free or fixed format.

HiGHS reads MPS too, but takes `abc` for a number, an unknown row for a sign of fixed format, and
drops entries below 1e-9. A misprint must be reported and no number lost, so klopt reads MPS by
itself.

    N        the first is the objective, further ones are free rows (b = inf)
    RHS      of the objective row: minus the constant
    RANGES   with right-hand side b: L [b - |R|, b], G [b, b + |R|], E [b, b + R] or [b + R, b]
    BOUNDS   0 <= x unless stated; a negative UP without LO makes the lower bound -inf, as usual
    QUADOBJ  one triangle of P in x'Px/2;  QMATRIX, QSECTION all of it / one triangle
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isinf
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import SparseMatrix, csc
from klopt.programs.formats.model import (
    FileNumbers,
    Model,
    Names,
    from_infinite,
    malformed,
    number,
)
from klopt.proof.rational import Number, decimal

__all__ = ["read", "read_exact"]

Words = list[str]
_COLUMNS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))


@dataclass
class _MpsDraft:
    """What has been read so far."""

    path: Path
    exact: bool = False
    objective: str = ""
    kinds: dict[str, str] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    entries: dict[tuple[str, str], Number] = field(default_factory=dict)
    rhs: dict[str, Number] = field(default_factory=dict)
    ranges: dict[str, Number] = field(default_factory=dict)
    low: dict[str, Number] = field(default_factory=dict)
    high: dict[str, Number] = field(default_factory=dict)
    hessian: dict[tuple[str, str], float] = field(default_factory=dict)
    triangle: bool = True
    maximise: bool = False

    def column(self, line: int, name: str) -> str:
        if name not in self.columns:
            raise malformed(self.path, line, f"the column {name!r} is not in COLUMNS")
        return name

    def row(self, line: int, name: str) -> str:
        if name not in self.kinds:
            raise malformed(self.path, line, f"the row {name!r} is not in ROWS")
        return name

    def pairs(self, line: int, words: Words) -> Iterator[tuple[str, Number]]:
        """(row, value) of the last two or four words."""
        if len(words) not in (2, 4):
            raise malformed(
                self.path,
                line,
                f"expected one or two pairs of a row and a number, found {' '.join(words)!r}",
            )
        for name, value in zip(words[::2], words[1::2], strict=True):
            yield self.row(line, name), self.number(line, value)

    def number(self, line: int, text: str) -> Number:
        """The number that a text states: as a float or, if that is asked for, as a rational."""
        rounded = number(self.path, line, text)
        if not self.exact:
            return rounded
        try:
            return decimal(text)
        except ValueError as error:
            raise malformed(self.path, line, str(error)) from None


def read(path: Path) -> Model:
    """Return the model that an MPS file states."""
    return _model(_draft(path, exact=False))


def read_exact(path: Path) -> Model:
    """Return the model with its decimals as rationals, beside their rounding."""
    draft = _draft(path, exact=True)
    return replace(_model(draft), numbers=_numbers(draft))


def _draft(path: Path, exact: bool) -> _MpsDraft:
    lines = _decoded(path.read_bytes()).splitlines()
    draft = _MpsDraft(path, exact)
    section = ""
    ended = False
    fixed = _names_hold_spaces(lines)
    for at, text in enumerate(lines, 1):
        if not text.strip() or text.startswith("*"):
            continue
        # A line that starts in the first column names a section.
        if not text[0].isspace():
            section, *rest = text.split()
            section = section.upper()
            if section == "ENDATA":
                ended = True
                break
            if section not in _SECTIONS:
                raise malformed(
                    path, at, f"unknown section {section!r}; expected one of {', '.join(_SECTIONS)}"
                )
            if section == "OBJSENSE" and rest:
                _objsense(draft, at, rest)
            draft.triangle = draft.triangle and section != "QMATRIX"
            continue
        if not section:
            raise malformed(path, at, "data before the first section")
        words = _fixed_words(text) if fixed else text.split()
        _SECTIONS[section](draft, at, words)
    if not ended:
        raise malformed(path, len(lines), "the file ends before ENDATA")
    if not draft.objective:
        raise malformed(path, len(lines), "no row of type N: the objective is missing")
    return draft


def _fixed_words(text: str) -> Words:
    """The words of a line in fixed format, found by their columns."""
    fields = (text[start:end].strip() for start, end in _COLUMNS)
    return [word for word in fields if word]


def _decoded(raw: bytes) -> str:
    """The text of a file in UTF-8 or, if it is none, in Latin-1."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _names_hold_spaces(lines: list[str]) -> bool:
    """Whether a line of ROWS has more than two words: then names are found by their place."""
    section = ""
    for text in lines:
        if text.startswith("*"):
            continue
        if text[:1].strip():
            section = text.split()[0].upper()
        elif section == "ROWS" and len(text.split()) > 2:
            return True
    return False


def _objsense(draft: _MpsDraft, line: int, words: Words) -> None:
    if words[0].upper() not in ("MAX", "MAXIMIZE", "MAXIMISE", "MIN", "MINIMIZE", "MINIMISE"):
        raise malformed(draft.path, line, f"the sense {words[0]!r} is neither MIN nor MAX")
    draft.maximise = words[0].upper().startswith("MAX")


def _rows(draft: _MpsDraft, line: int, words: Words) -> None:
    if len(words) != 2 or words[0].upper() not in "NLGE":
        raise malformed(
            draft.path,
            line,
            f"expected a type (N, L, G or E) and a name, found {' '.join(words)!r}",
        )
    kind = words[0].upper()
    name = words[1]
    if name in draft.kinds:
        raise malformed(draft.path, line, f"the row {name!r} was named before")
    draft.kinds[name] = kind
    # The first N row is the objective, further ones are free rows.
    if kind == "N" and not draft.objective:
        draft.objective = name


def _columns(draft: _MpsDraft, line: int, words: Words) -> None:
    # Markers enclose integer variables.
    if "'MARKER'" in words:
        if "'INTORG'" in words:
            raise malformed(
                draft.path, line, "integer variables: klopt solves continuous problems only"
            )
        return
    column = words[0]
    draft.columns.setdefault(column, len(draft.columns))
    for row, value in draft.pairs(line, words[1:]):
        if (row, column) in draft.entries:
            raise malformed(draft.path, line, f"column {column!r} has two entries in row {row!r}")
        draft.entries[row, column] = value


def _of_rows(target: str) -> Callable[[_MpsDraft, int, Words], None]:
    def take(draft: _MpsDraft, line: int, words: Words) -> None:
        # The name of the set may be left out.
        for row, value in draft.pairs(line, words[len(words) % 2 :]):
            getattr(draft, target)[row] = value

    return take


def _bounds(draft: _MpsDraft, line: int, words: Words) -> None:
    kind = words[0].upper()
    if kind in ("BV", "LI", "UI", "SC", "SI"):
        raise malformed(
            draft.path, line, f"bound type {kind}: klopt solves continuous problems only"
        )
    if kind not in ("UP", "LO", "FX", "FR", "MI", "PL"):
        raise malformed(draft.path, line, f"unknown bound type {words[0]!r}")
    # The name of the set may be left out; FR, MI and PL may have a value, which means nothing.
    valued = kind in ("UP", "LO", "FX")
    rest = words[1:] if valued or len(words) < 4 else words[1:3]
    if len(rest) not in ((2, 3) if valued else (1, 2)):
        raise malformed(
            draft.path,
            line,
            f"expected a set, a column{' and a number' if valued else ''} after {kind}",
        )
    column = draft.column(line, rest[-2] if valued else rest[-1])
    value = from_infinite(draft.number(line, rest[-1])) if valued else 0.0
    if kind in ("LO", "FX"):
        draft.low[column] = value
    if kind in ("UP", "FX"):
        draft.high[column] = value
    if kind in ("FR", "MI"):
        draft.low[column] = -np.inf
    if kind in ("FR", "PL"):
        draft.high[column] = np.inf


def _hessian(draft: _MpsDraft, line: int, words: Words) -> None:
    if len(words) != 3:
        raise malformed(
            draft.path, line, f"expected two columns and a number, found {' '.join(words)!r}"
        )
    first = draft.column(line, words[0])
    second = draft.column(line, words[1])
    draft.hessian[first, second] = number(draft.path, line, words[2])


def _ignore(draft: _MpsDraft, line: int, words: Words) -> None:
    return


_SECTIONS: dict[str, Callable[[_MpsDraft, int, Words], None]] = {
    "NAME": _ignore,
    "OBJSENSE": _objsense,
    "ROWS": _rows,
    "COLUMNS": _columns,
    "RHS": _of_rows("rhs"),
    "RANGES": _of_rows("ranges"),
    "BOUNDS": _bounds,
    "QUADOBJ": _hessian,
    "QSECTION": _hessian,
    "QMATRIX": _hessian,
}


def _model(draft: _MpsDraft) -> Model:
    rows = _row_names(draft)
    c, A = _costs_and_rows(draft, rows)
    sides = np.array([_side(draft, name) for name in rows], dtype=float).reshape(-1, 2)
    high = np.array([draft.high.get(name, np.inf) for name in draft.columns], dtype=float)
    low = np.array([_lower_bound(draft, name) for name in draft.columns], dtype=float)
    return Model(
        c=c,
        A=A,
        row_lower=sides[:, 0],
        row_upper=sides[:, 1],
        lower=low,
        upper=high,
        sense="max" if draft.maximise else "min",
        offset=-float(draft.rhs.get(draft.objective, 0.0)),
        P=_quadratic(draft),
        names=Names(tuple(draft.columns), tuple(rows)),
    )


def _row_names(draft: _MpsDraft) -> list[str]:
    """The rows but the objective."""
    return [name for name in draft.kinds if name != draft.objective]


def _numbers(draft: _MpsDraft) -> FileNumbers:
    """The linear part of a draft that was read exactly; what is not stated is 0."""
    rows = _row_names(draft)
    places = {name: index for index, name in enumerate(rows)}
    costs = [Fraction(0)] * len(draft.columns)
    entries: list[list[tuple[int, Fraction]]] = [[] for _ in rows]
    for (row, column), value in draft.entries.items():
        if not value:
            continue
        if row == draft.objective:
            costs[draft.columns[column]] = Fraction(value)
        else:
            entries[places[row]].append((draft.columns[column], Fraction(value)))
    sides = [_side(draft, name) for name in rows]
    bounds = [(_lower_bound(draft, name), draft.high.get(name, np.inf)) for name in draft.columns]
    return FileNumbers(
        c=tuple(costs),
        rows=tuple(map(tuple, entries)),
        row_lower=tuple(_rational(low) for low, _ in sides),
        row_upper=tuple(_rational(high) for _, high in sides),
        bounds=tuple((_rational(low), _rational(high)) for low, high in bounds),
        offset=-Fraction(draft.rhs.get(draft.objective, 0)),
    )


def _rational(value: Number) -> Number:
    """A default such as 0.0 as a rational; infinity stays what it is."""
    return value if isinf(value) else Fraction(value)


def _costs_and_rows(
    draft: _MpsDraft, rows: list[str]
) -> tuple[npt.NDArray[np.float64], SparseMatrix]:
    """The objective c and the matrix A of the other rows."""
    places = {name: index for index, name in enumerate(rows)}
    c = np.zeros(len(draft.columns))
    data: list[float] = []
    at_row: list[int] = []
    at_column: list[int] = []
    for (row, column), value in draft.entries.items():
        if row == draft.objective:
            c[draft.columns[column]] = float(value)
        else:
            data.append(float(value))
            at_row.append(places[row])
            at_column.append(draft.columns[column])
    A = sparse.csc_array((data, (at_row, at_column)), shape=(len(rows), c.size))
    return c, csc("A", A)


def _lower_bound(draft: _MpsDraft, name: str) -> Number:
    """The lower bound of a column; a negative upper bound alone makes it -inf."""
    default = -np.inf if draft.high.get(name, 0.0) < 0 else 0.0
    return draft.low.get(name, default)


def _side(draft: _MpsDraft, name: str) -> tuple[Number, Number]:
    """Both sides of a row, RANGES included."""
    kind = draft.kinds[name]
    b = from_infinite(draft.rhs.get(name, 0.0))
    width = draft.ranges.get(name)
    sides: dict[str, tuple[Number, Number]] = {
        "N": (-np.inf, np.inf),
        "L": (-np.inf, b),
        "G": (b, np.inf),
        "E": (b, b),
    }
    low, high = sides[kind]
    if width is None or kind == "N":
        return low, high
    if kind == "E":
        return min(b, b + width), max(b, b + width)
    size = max(width, -width)
    if kind == "L":
        return b - size, high
    return low, b + size


def _quadratic(draft: _MpsDraft) -> SparseMatrix | None:
    if not draft.hessian:
        return None
    n = len(draft.columns)
    at = [[draft.columns[key[side]] for key in draft.hessian] for side in (0, 1)]
    P = sparse.csc_array((list(draft.hessian.values()), (at[0], at[1])), shape=(n, n))
    # The other triangle is implied; the diagonal would count twice.
    if draft.triangle:
        P = P + P.T - sparse.diags_array(P.diagonal())
    return csc("P", P)
