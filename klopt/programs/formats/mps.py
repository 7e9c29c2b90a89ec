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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import SparseMatrix, csc
from klopt.programs.formats.model import Model, Names, from_infinite, malformed, number

__all__ = ["read"]

Words = list[str]
_COLUMNS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))


@dataclass
class _MpsDraft:
    """What has been read so far."""

    path: Path
    objective: str = ""
    kinds: dict[str, str] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    entries: dict[tuple[str, str], float] = field(default_factory=dict)
    rhs: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
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

    def pairs(self, line: int, words: Words) -> Iterator[tuple[str, float]]:
        """(row, value) of the last two or four words."""
        if len(words) not in (2, 4):
            raise malformed(
                self.path,
                line,
                f"expected one or two pairs of a row and a number, found {' '.join(words)!r}",
            )
        for name, value in zip(words[::2], words[1::2], strict=True):
            yield self.row(line, name), number(self.path, line, value)


def read(path: Path) -> Model:
    """Return the model that an MPS file states."""
    lines = _decoded(path.read_bytes()).splitlines()
    draft = _MpsDraft(path)
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
    return _model(draft)


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
    value = from_infinite(number(draft.path, line, rest[-1])) if valued else 0.0
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
    rows = [name for name in draft.kinds if name != draft.objective]
    c, A = _costs_and_rows(draft, rows)
    sides = np.array([_side(draft, name) for name in rows]).reshape(-1, 2)
    high = np.array([draft.high.get(name, np.inf) for name in draft.columns])
    low = np.array([_lower_bound(draft, name) for name in draft.columns])
    return Model(
        c=c,
        A=A,
        row_lower=sides[:, 0],
        row_upper=sides[:, 1],
        lower=low,
        upper=high,
        sense="max" if draft.maximise else "min",
        offset=-draft.rhs.get(draft.objective, 0.0),
        P=_quadratic(draft),
        names=Names(tuple(draft.columns), tuple(rows)),
    )


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
            c[draft.columns[column]] = value
        else:
            data.append(value)
            at_row.append(places[row])
            at_column.append(draft.columns[column])
    A = sparse.csc_array((data, (at_row, at_column)), shape=(len(rows), c.size))
    return c, csc("A", A)


def _lower_bound(draft: _MpsDraft, name: str) -> float:
    """The lower bound of a column; a negative upper bound alone makes it -inf."""
    default = -np.inf if draft.high.get(name, 0.0) < 0 else 0.0
    return draft.low.get(name, default)


def _side(draft: _MpsDraft, name: str) -> tuple[float, float]:
    """Both sides of a row, RANGES included."""
    kind = draft.kinds[name]
    b = from_infinite(draft.rhs.get(name, 0.0))
    width = draft.ranges.get(name)
    low, high = {"N": (-np.inf, np.inf), "L": (-np.inf, b), "G": (b, np.inf), "E": (b, b)}[kind]
    if width is None or kind == "N":
        return low, high
    if kind == "E":
        return min(b, b + width), max(b, b + width)
    if kind == "L":
        return b - abs(width), high
    return low, b + abs(width)


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
