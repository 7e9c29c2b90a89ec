"""Reads linear and quadratic programs from MPS files, free or fixed format.

HiGHS reads MPS too, but takes `abc` for a number, an unknown row for a sign of fixed format, and
drops entries below 1e-9. A misprint must be reported and no number lost, so klopt reads MPS by
itself.

    N        the first is the objective, further ones are free rows (b = inf)
    RHS      of the objective row: minus the constant
    RANGES   with right-hand side b: L [b - |R|, b], G [b, b + |R|], E [b, b + R] or [b + R, b]
    BOUNDS   0 <= x unless stated; a negative UP without LO makes the lower bound -inf, as usual
    QUADOBJ  one triangle of P in x'Px/2;  QMATRIX, QSECTION all of it / one triangle

The lines of a section are read many at a time. Lines in which anything is unusual are read again
one by one, which accepts more (Fortran's exponents, names with spaces) and says what is wrong
where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from math import isinf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, IntArray, SparseMatrix, csc, frozen_csc
from klopt.programs.decimals import decimal
from klopt.programs.formats.model import (
    FileNumbers,
    Model,
    Names,
    finite,
    floats,
    from_infinite,
    number,
)
from klopt.programs.formats.source import SourceFile
from klopt.proof.rational import Number

__all__ = ["KEEPS_DECIMALS", "read"]

KEEPS_DECIMALS = True
BLOCK_BYTES = 1 << 18
"""How much of a file is read at a time; between two blocks the clock is looked at."""
FEW_LINES = 8
"""So few lines are read one by one, which takes less than to set up arrays."""
MAX_NAME_IN_MESSAGE = 60

Words = list[bytes]
_FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
_KINDS = {b"N": "N", b"L": "L", b"G": "G", b"E": "E", b"n": "N", b"l": "L", b"g": "G", b"e": "E"}
_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[list(b" \t\n\v\f\r")] = True


class _NamesHoldSpaces(Exception):
    """A line of ROWS has more than two words: names are found by their place in the line."""


class _Unusual(Exception):
    """Lines that must be read one by one."""


class _Lines(NamedTuple):
    """Some lines of one section."""

    text: bytes
    first: int
    """The number of the first of them."""
    ends: IntArray
    """Where in the text they end."""

    def each(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are not blank with their numbers."""
        for at, line in enumerate(self.text.split(b"\n"), self.first):
            if line.strip():
                yield at, line


class _Entries(NamedTuple):
    """Entries of the matrix, the objective among them, and the line of each."""

    row: IntArray
    column: IntArray
    value: FloatArray
    line: IntArray
    exact: list[Number]


@dataclass
class _MpsDraft:
    """What has been read so far; rows and columns are numbered as they come."""

    source: SourceFile
    encoding: str
    fixed: bool = False
    objective: int = -1
    rows: dict[bytes, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    columns: defaultdict[bytes, int] = field(default_factory=lambda: defaultdict(count().__next__))
    """A name that is looked up by [..] for the first time gets the next number."""
    entries: list[_Entries] = field(default_factory=list)
    rhs: dict[int, Number] = field(default_factory=dict)
    ranges: dict[int, Number] = field(default_factory=dict)
    low: dict[int, Number] = field(default_factory=dict)
    high: dict[int, Number] = field(default_factory=dict)
    hessian: dict[tuple[int, int], float] = field(default_factory=dict)
    triangle: bool = True
    maximise: bool = False

    def show(self, word: bytes) -> str:
        """A word of the file for a message."""
        return repr(word.decode(self.encoding)[:MAX_NAME_IN_MESSAGE])

    def words(self, line: bytes) -> Words:
        if not self.fixed:
            return line.split()
        text = line.decode(self.encoding)
        fields = (text[start:end].strip() for start, end in _FIELDS)
        return [word.encode(self.encoding) for word in fields if word]

    def column(self, line: int, name: bytes) -> int:
        if name not in self.columns:
            raise self.source.malformed(line, f"the column {self.show(name)} is not in COLUMNS")
        return self.columns[name]

    def row(self, line: int, name: bytes) -> int:
        if name not in self.rows:
            raise self.source.malformed(line, f"the row {self.show(name)} is not in ROWS")
        return self.rows[name]

    def pairs(self, line: int, words: Words) -> Iterator[tuple[int, bytes]]:
        """(row, text of the value) of the last two or four words."""
        if len(words) not in (2, 4):
            raise self.source.malformed(
                line,
                "expected one or two pairs of a row and a number, found "
                f"{self.show(b' '.join(words))}",
            )
        for name, value in zip(words[::2], words[1::2], strict=True):
            yield self.row(line, name), value

    def number(self, line: int, word: bytes) -> Number:
        """The number that a word states: as a float or, if that is asked for, as a rational."""
        text = word.decode(self.encoding)
        rounded = number(self.source, line, text)
        if not self.source.exact:
            return rounded
        try:
            return decimal(text)
        except ValueError as error:
            raise self.source.malformed(line, str(error)) from None


def read(source: SourceFile) -> Model:
    """Return the model that an MPS file states, its decimals beside it if they are kept."""
    raw = source.content().removeprefix(b"\xef\xbb\xbf")
    # A carriage return before the end of a line is a space like others; alone it ends a line.
    if b"\r" in raw and raw.count(b"\r") != raw.count(b"\r\n"):
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        draft = _draft(_MpsDraft(source, _encoding(raw)), raw)
    except _NamesHoldSpaces:
        draft = _draft(_MpsDraft(source, _encoding(raw), fixed=True), raw)
    model = _model(draft)
    return replace(model, numbers=_numbers(draft)) if source.exact else model


def _encoding(raw: bytes) -> str:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _draft(draft: _MpsDraft, raw: bytes) -> _MpsDraft:
    section = ""
    ended = False
    line = 1
    for block in _blocks(raw):
        draft.source.line = line
        draft.source.check_time()
        for lines in _parts(block, line):
            text = lines.text
            line = lines.first + max(lines.ends.size, 1)
            # Lines of data start with a space; others hold a comment or the name of a section.
            if text[:1].isspace():
                _read_data(draft, section, lines)
            elif not text.startswith(b"*"):
                section = _section(draft, lines)
                if section == "ENDATA":
                    ended = True
                    break
        if ended:
            break
    if ended and draft.objective >= 0:
        return draft
    last = raw.count(b"\n", 0, -1) + 1
    if not ended:
        raise draft.source.malformed(last, "the file ends before ENDATA")
    raise draft.source.malformed(last, "no row of type N: the objective is missing")


def _blocks(raw: bytes) -> Iterator[bytes]:
    """The file in parts that end where a line ends."""
    start = 0
    while start < len(raw):
        end = raw.find(b"\n", start + BLOCK_BYTES) + 1
        # The last line may have no end.
        yield raw[start:end] if end else raw[start:] + b"\n"
        start = end or len(raw)


def _parts(block: bytes, first: int) -> Iterator[_Lines]:
    """Single lines that do not start with a space, and all lines between two of them."""
    letters = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    heads = np.flatnonzero(~_IS_SPACE[letters[starts]]).tolist()
    done = 0
    for head in heads:
        if head > done:
            begin = starts[done]
            yield _Lines(block[begin : starts[head]], first + done, ends[done:head] - begin)
        yield _Lines(block[starts[head] : ends[head]], first + head, ends[:0])
        done = head + 1
    if done < starts.size:
        begin = starts[done]
        yield _Lines(block[begin:], first + done, ends[done:] - begin)


def _section(draft: _MpsDraft, lines: _Lines) -> str:
    """The section that a line names."""
    name, *rest = lines.text.split()
    section = name.decode(draft.encoding).upper()
    if section == "ENDATA":
        return section
    if section not in _SECTIONS:
        raise draft.source.malformed(
            lines.first,
            f"unknown section {draft.show(name.upper())}; expected one of {', '.join(_SECTIONS)}",
        )
    if section == "OBJSENSE" and rest:
        _objsense(draft, lines.first, rest)
    draft.triangle = draft.triangle and section != "QMATRIX"
    return section


def _read_data(draft: _MpsDraft, section: str, lines: _Lines) -> None:
    """Read lines of a section, all at once where that can be, else one by one."""
    many = _MANY.get(section)
    if many is not None and not draft.fixed and lines.ends.size > FEW_LINES:
        try:
            many(draft, lines)
            return
        except _Unusual:
            pass
    for at, line in lines.each():
        if not section:
            raise draft.source.malformed(at, "data before the first section")
        draft.source.line = at
        _SECTIONS[section](draft, at, draft.words(line))


def _objsense(draft: _MpsDraft, line: int, words: Words) -> None:
    sense = words[0].upper()
    if sense not in (b"MAX", b"MAXIMIZE", b"MAXIMISE", b"MIN", b"MINIMIZE", b"MINIMISE"):
        raise draft.source.malformed(
            line, f"the sense {draft.show(words[0])} is neither MIN nor MAX"
        )
    draft.maximise = sense.startswith(b"MAX")


def _rows(draft: _MpsDraft, line: int, words: Words) -> None:
    if len(words) > 2 and not draft.fixed:
        raise _NamesHoldSpaces
    if len(words) != 2 or words[0] not in _KINDS:
        raise draft.source.malformed(
            line,
            f"expected a type (N, L, G or E) and a name, found {draft.show(b' '.join(words))}",
        )
    kind = _KINDS[words[0]]
    name = words[1]
    if name in draft.rows:
        raise draft.source.malformed(line, f"the row {draft.show(name)} was named before")
    # The first N row is the objective, further ones are free rows.
    if kind == "N" and draft.objective < 0:
        draft.objective = len(draft.rows)
    draft.rows[name] = len(draft.rows)
    draft.kinds.append(kind)


def _columns(draft: _MpsDraft, line: int, words: Words) -> None:
    # Markers enclose integer variables.
    if b"'MARKER'" in words:
        if b"'INTORG'" in words:
            raise draft.source.malformed(
                line, "integer variables: klopt solves continuous problems only"
            )
        return
    column = draft.columns[words[0]]
    for row, word in draft.pairs(line, words[1:]):
        value = finite(draft.source, line, word.decode(draft.encoding))
        exact = [draft.number(line, word)] if draft.source.exact else []
        draft.entries.append(
            _Entries(
                np.array([row]), np.array([column]), np.array([value]), np.array([line]), exact
            )
        )


def _of_rows(target: str) -> Callable[[_MpsDraft, int, Words], None]:
    def take(draft: _MpsDraft, line: int, words: Words) -> None:
        # The name of the set may be left out.
        for row, word in draft.pairs(line, words[len(words) % 2 :]):
            # Only the side of a row may be infinite, no range and no constant.
            if target == "ranges" or row == draft.objective:
                finite(draft.source, line, word.decode(draft.encoding))
            getattr(draft, target)[row] = draft.number(line, word)

    return take


def _bounds(draft: _MpsDraft, line: int, words: Words) -> None:
    kind = words[0].upper()
    if kind in (b"BV", b"LI", b"UI", b"SC", b"SI"):
        raise draft.source.malformed(
            line, f"bound type {kind.decode()}: klopt solves continuous problems only"
        )
    if kind not in _BOUND_CODES:
        raise draft.source.malformed(line, f"unknown bound type {draft.show(words[0])}")
    # The name of the set may be left out; FR, MI and PL may have a value, which means nothing.
    valued = kind in (b"UP", b"LO", b"FX")
    rest = words[1:] if valued or len(words) < 4 else words[1:3]
    if len(rest) not in ((2, 3) if valued else (1, 2)):
        raise draft.source.malformed(
            line,
            f"expected a set, a column{' and a number' if valued else ''} after {kind.decode()}",
        )
    column = draft.column(line, rest[-2] if valued else rest[-1])
    value = from_infinite(draft.number(line, rest[-1])) if valued else 0.0
    _set_bound(draft, _BOUND_CODES[kind], column, value)


_BOUND_CODES = {b"UP": 0, b"LO": 1, b"FX": 2, b"FR": 3, b"MI": 4, b"PL": 5}


def _set_bound(draft: _MpsDraft, code: int, column: int, value: Number) -> None:
    """Enter a bound; of FR, MI and PL the value means nothing."""
    if code == 0:
        draft.high[column] = value
    elif code == 1:
        draft.low[column] = value
    elif code == 2:
        draft.low[column] = value
        draft.high[column] = value
    if code in (3, 4):
        draft.low[column] = -np.inf
    if code in (3, 5):
        draft.high[column] = np.inf


def _hessian(draft: _MpsDraft, line: int, words: Words) -> None:
    if len(words) != 3:
        raise draft.source.malformed(
            line, f"expected two columns and a number, found {draft.show(b' '.join(words))}"
        )
    first = draft.column(line, words[0])
    second = draft.column(line, words[1])
    draft.hessian[first, second] = finite(draft.source, line, words[2].decode(draft.encoding))


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


def _word_counts(lines: _Lines) -> IntArray:
    """The number of words in each line."""
    # Several times as fast as a table of what is a space; `_split` sees where the two differ.
    space = np.frombuffer(lines.text, dtype=np.uint8) <= ord(" ")
    # Lines of data start with a space, so that every word follows one.
    starts = np.flatnonzero(space[:-1] > space[1:])
    before = np.searchsorted(starts, lines.ends)
    before[1:] -= before[:-1].copy()
    return before


def _split(lines: _Lines, counts: IntArray) -> Words:
    """The words of lines, of which each has so many."""
    words = lines.text.split()
    # A control character within a word was taken for a space.
    if len(words) != counts.sum():
        raise _Unusual
    return words


def _all_among(counts: IntArray, allowed: tuple[int, ...]) -> bool:
    """Whether each count is one of those, faster than by `np.isin`."""
    return set(np.flatnonzero(np.bincount(counts)).tolist()).issubset(allowed)


def _many_rows(draft: _MpsDraft, lines: _Lines) -> None:
    counts = _word_counts(lines)
    words = _split(lines, counts)
    kinds = words[0::2]
    names = words[1::2]
    if not _all_among(counts, (0, 2)) or not _KINDS.keys() >= set(kinds):
        raise _Unusual
    first = len(draft.rows)
    numbered = dict(zip(names, range(first, first + len(names)), strict=True))
    # A name that stands twice is an error, which has a line.
    if len(numbered) < len(names) or not draft.rows.keys().isdisjoint(numbered):
        raise _Unusual
    letters = [_KINDS[kind] for kind in kinds]
    if draft.objective < 0 and "N" in letters:
        draft.objective = first + letters.index("N")
    draft.rows |= numbered
    draft.kinds += letters


class _Pairs(NamedTuple):
    """Lines of one or two pairs, a row and a number each."""

    labels: Words
    """The first word of each line."""
    lines: IntArray
    """The number of each line in the file."""
    line: IntArray
    """Which of these lines a pair stands in."""
    row: IntArray
    value: FloatArray
    exact: list[Number]


def _many_pairs(draft: _MpsDraft, lines: _Lines, lengths: tuple[int, ...]) -> _Pairs:
    """The pairs of lines that have one of so many words."""
    counts = _word_counts(lines)
    if not _all_among(counts, (0, *lengths)):
        raise _Unusual
    words = _split(lines, counts)
    stated = np.flatnonzero(counts)
    labels, line, rows, texts = _pair_words(words, counts[stated])
    value, exact = _many_numbers(draft, texts)
    if not np.isfinite(value).all():
        raise _Unusual
    row = _places(draft.rows, rows)
    return _Pairs(labels, stated + lines.first, line, row, value, exact)


def _pair_words(words: Words, counts: IntArray) -> tuple[Words, IntArray, Words, Words]:
    """The first word of each line; the line, the row and the number of each pair."""
    if (counts == 3).all():
        return words[0::3], np.arange(counts.size), words[1::3], words[2::3]
    each = np.array(words, dtype=object)
    ends = np.cumsum(counts)
    line = np.repeat(np.arange(counts.size), counts // 2)
    # The pairs of a line are its last words, two and two.
    at = ends[line] - 2
    is_first_of_two = line[:-1] == line[1:]
    at[:-1][is_first_of_two] -= 2
    return each[ends - counts].tolist(), line, each[at].tolist(), each[at + 1].tolist()


def _places(numbered: dict[bytes, int], names: Words) -> IntArray:
    """The numbers of rows or columns by their names."""
    try:
        return np.fromiter(map(numbered.__getitem__, names), np.intp, len(names))
    except KeyError:
        raise _Unusual from None


def _many_numbers(draft: _MpsDraft, texts: Words) -> tuple[FloatArray, list[Number]]:
    """The numbers that texts state, and their decimals where they are kept."""
    try:
        value = floats(texts)
        exact = [decimal(text.decode("ascii")) for text in texts] if draft.source.exact else []
    except ValueError:
        raise _Unusual from None
    if np.isnan(value).any():
        raise _Unusual
    return value, exact


def _many_entries(draft: _MpsDraft, lines: _Lines) -> None:
    # One letter is looked for many times as fast as a word.
    if b"'" in lines.text and b"'MARKER'" in lines.text:
        raise _Unusual
    pairs = _many_pairs(draft, lines, (3, 5))
    column = _places(draft.columns, pairs.labels)[pairs.line]
    line = pairs.lines[pairs.line]
    draft.entries.append(_Entries(pairs.row, column, pairs.value, line, pairs.exact))


def _many_of_rows(target: str) -> Callable[[_MpsDraft, _Lines], None]:
    def take(draft: _MpsDraft, lines: _Lines) -> None:
        pairs = _many_pairs(draft, lines, (2, 3, 4, 5))
        values: Any = pairs.exact if draft.source.exact else pairs.value.tolist()
        getattr(draft, target).update(zip(pairs.row.tolist(), values, strict=True))

    return take


def _many_bounds(draft: _MpsDraft, lines: _Lines) -> None:
    counts = _word_counts(lines)
    counts = counts[counts > 0]
    words = np.array(_split(lines, counts), dtype=object)
    starts = np.cumsum(counts) - counts
    kinds = words[starts].tolist()
    codes = _places(_BOUND_CODES, kinds)
    # A set, which may be left out, and a column; after UP, LO and FX a number.
    valued = codes <= _BOUND_CODES[b"FX"]
    further = counts - valued
    if not _all_among(further, (2, 3)):
        raise _Unusual
    column = _places(dict(draft.columns), words[starts + further - 1].tolist())
    value, exact = _many_numbers(draft, words[(starts + further)[valued]].tolist())
    limits = np.zeros(codes.size, dtype=object)
    limits[valued] = list(map(from_infinite, exact or value.tolist()))
    # Later lines of a column count, in either direction.
    for bounds, infinity, has_value, has_none in (
        (draft.high, np.inf, (b"UP", b"FX"), (b"FR", b"PL")),
        (draft.low, -np.inf, (b"LO", b"FX"), (b"FR", b"MI")),
    ):
        at = np.isin(codes, [_BOUND_CODES[kind] for kind in (*has_value, *has_none)])
        stated = np.where(valued, limits, infinity)[at]
        bounds.update(zip(column[at].tolist(), stated.tolist(), strict=True))


_MANY: dict[str, Callable[[_MpsDraft, _Lines], None]] = {
    "ROWS": _many_rows,
    "COLUMNS": _many_entries,
    "RHS": _many_of_rows("rhs"),
    "RANGES": _many_of_rows("ranges"),
    "BOUNDS": _many_bounds,
}


def _model(draft: _MpsDraft) -> Model:
    c, A = _costs_and_rows(draft)
    row_lower, row_upper = _sides(draft)
    high = np.full(c.size, np.inf)
    high[list(draft.high)] = np.array(list(draft.high.values()), dtype=float)
    low = np.where(high < 0, -np.inf, 0.0)  # as `_lower_bound` says
    low[list(draft.low)] = np.array(list(draft.low.values()), dtype=float)
    rows = _decoded(draft, draft.rows)
    del rows[draft.objective]
    return Model(
        c=c,
        A=A,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=low,
        upper=high,
        sense="max" if draft.maximise else "min",
        offset=-float(draft.rhs.get(draft.objective, 0.0)),
        P=_quadratic(draft),
        names=Names(tuple(_decoded(draft, draft.columns)), tuple(rows)),
    )


def _decoded(draft: _MpsDraft, names: Iterable[bytes]) -> list[str]:
    """Names as text, all at once: none of them holds the end of a line."""
    joined = b"\n".join(names)
    return joined.decode(draft.encoding).split("\n") if joined else []


def _sides(draft: _MpsDraft) -> tuple[FloatArray, FloatArray]:
    """Both sides of all rows but the objective, RANGES included; `_side` says it of one row."""
    kinds = np.frombuffer("".join(draft.kinds).encode("ascii"), dtype=np.uint8)
    b = np.zeros(kinds.size)
    b[list(draft.rhs)] = list(map(from_infinite, draft.rhs.values()))
    low = np.where((kinds == ord("L")) | (kinds == ord("N")), -np.inf, b)
    high = np.where((kinds == ord("G")) | (kinds == ord("N")), np.inf, b)
    for row in draft.ranges:
        low[row], high[row] = _side(draft, row)
    others = np.arange(kinds.size) != draft.objective
    return low[others], high[others]


def _numbers(draft: _MpsDraft) -> FileNumbers:
    """The linear part of a draft that was read exactly; what is not stated is 0."""
    rows = [row for row in range(len(draft.rows)) if row != draft.objective]
    costs = [Fraction(0)] * len(draft.columns)
    entries: list[list[tuple[int, Fraction]]] = [[] for _ in draft.rows]
    for part in draft.entries:
        places = zip(part.row.tolist(), part.column.tolist(), part.exact, strict=True)
        for row, column, value in places:
            if not value:
                continue
            if row == draft.objective:
                costs[column] = Fraction(value)
            else:
                entries[row].append((column, Fraction(value)))
    sides = [_side(draft, row) for row in rows]
    bounds = [
        (_lower_bound(draft, column), draft.high.get(column, np.inf))
        for column in range(len(draft.columns))
    ]
    return FileNumbers(
        c=tuple(costs),
        rows=tuple(tuple(entries[row]) for row in rows),
        row_lower=tuple(_rational(low) for low, _ in sides),
        row_upper=tuple(_rational(high) for _, high in sides),
        bounds=tuple((_rational(low), _rational(high)) for low, high in bounds),
        offset=-Fraction(draft.rhs.get(draft.objective, 0)),
    )


def _rational(value: Number) -> Number:
    """A default such as 0.0 as a rational; infinity stays what it is."""
    return value if isinf(value) else Fraction(value)


def _costs_and_rows(draft: _MpsDraft) -> tuple[FloatArray, SparseMatrix]:
    """The objective c and the matrix A of the other rows."""
    shape = (len(draft.rows) - 1, len(draft.columns))
    c = np.zeros(shape[1])
    if not draft.entries:
        return c, frozen_csc(sparse.csc_array(shape))
    row = np.concatenate([part.row for part in draft.entries])
    column = np.concatenate([part.column for part in draft.entries])
    value = np.concatenate([part.value for part in draft.entries])
    is_cost = row == draft.objective
    c[column[is_cost]] = value[is_cost]
    others = ~is_cost
    below = row[others] - (row[others] > draft.objective)
    A = sparse.csc_array((value[others], (below, column[others])), shape=shape)
    has_cost = np.zeros(c.size, dtype=bool)
    has_cost[column[is_cost]] = True
    # Entries of one place were added up.
    if A.nnz + np.count_nonzero(has_cost) < row.size:
        _refuse_second_entry(draft, row, column)
    return c, frozen_csc(A)


def _refuse_second_entry(draft: _MpsDraft, row: IntArray, column: IntArray) -> None:
    line = np.concatenate([part.line for part in draft.entries])
    _, first = np.unique(column * len(draft.rows) + row, return_index=True)
    again = int(np.setdiff1d(np.arange(row.size), first)[0])
    of_column = draft.show(list(draft.columns)[column[again]])
    of_row = draft.show(list(draft.rows)[row[again]])
    raise draft.source.malformed(
        int(line[again]), f"column {of_column} has two entries in row {of_row}"
    )


def _lower_bound(draft: _MpsDraft, column: int) -> Number:
    """The lower bound of a column; a negative upper bound alone makes it -inf."""
    low = draft.low.get(column)
    if low is not None:
        return low
    return -np.inf if draft.high.get(column, 0.0) < 0 else 0.0


def _side(draft: _MpsDraft, row: int) -> tuple[Number, Number]:
    """Both sides of a row, RANGES included."""
    kind = draft.kinds[row]
    if kind == "N":
        return -np.inf, np.inf
    b = from_infinite(draft.rhs.get(row, 0.0))
    width = draft.ranges.get(row)
    if kind == "E":
        return (b, b) if width is None else (min(b, b + width), max(b, b + width))
    if width is None:
        return (-np.inf, b) if kind == "L" else (b, np.inf)
    size = max(width, -width)
    return (b - size, b) if kind == "L" else (b, b + size)


def _quadratic(draft: _MpsDraft) -> SparseMatrix | None:
    if not draft.hessian:
        return None
    n = len(draft.columns)
    at = np.array(list(draft.hessian), dtype=np.intp).T
    P = sparse.csc_array((list(draft.hessian.values()), (at[0], at[1])), shape=(n, n))
    # The other triangle is implied; the diagonal would count twice.
    if draft.triangle:
        P = P + P.T - sparse.diags_array(P.diagonal())
    return csc("P", P)
