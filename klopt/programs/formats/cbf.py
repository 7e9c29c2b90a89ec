"""Reads cone programs in the Conic Benchmark Format (`.cbf`).

    VAR, CON   x and A x + b in products of cones     ACOORD, BCOORD, OBJACOORD, OBJBCOORD
    POWCONES   weights of power cones, named @0:POW, @1:POW, ..
    PSDCON     sum_j x_j H_j + D psd                  HCOORD, DCOORD, lower triangles
    PSDVAR     X psd, <F, X> in objective and rows    OBJFCOORD, FCOORD, lower triangles

Cones: F free, L+ L- L= signs, Q second-order, QR rotated (2 x_0 x_1 >= ||rest||^2, turned by 45
degrees into Q), EXP exponential (x_0 >= x_1 exp(x_2 / x_1), klopt's rows backwards), @k:POW power
cones, whose weights are read as the decimals they are. A file of PSDVAR and L= rows alone is a
program in standard form; otherwise the entries of X become variables. The format has no bounds of
variables other than 0: klopt writes them as the last rows of CON and says so in a comment. Nor has
it names, which another comment holds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, csc, require_memory
from klopt.model.cones import svec_index, svec_size
from klopt.model.cones.power import Weights, power_weights
from klopt.programs.decimals import decimal
from klopt.programs.formats.model import (
    LINES_AT_A_TIME,
    Block,
    Model,
    Names,
    finite,
    numbers_table,
    require_blocks,
    whole,
)
from klopt.programs.formats.source import SourceFile
from klopt.proof.rational import Number

__all__ = ["BOUNDS_NOTE", "KEEPS_DECIMALS", "NAMES_NOTE", "read"]

KEEPS_DECIMALS = False

Domain = list[tuple[str, int]]
BOUNDS_NOTE = "# klopt: the last {} rows of CON are bounds of variables"
NAMES_NOTE = "# klopt: names of columns and rows "
_BOUNDS = re.compile(BOUNDS_NOTE.replace("{}", r"(\d+)"))
_CONES = ("F", "L+", "L-", "L=", "Q", "QR", "EXP")
_POWER = re.compile(r"@(\d+):POW")
_LINEAR_CONES = ("F", "L+", "L-", "L=")
# How many indices stand before the value.
_TABLES = {
    "OBJACOORD": 1,
    "ACOORD": 2,
    "BCOORD": 1,
    "OBJFCOORD": 3,
    "FCOORD": 4,
    "HCOORD": 4,
    "DCOORD": 3,
}
BYTES_PER_ROW = 300.0
"""The memory that a row or a variable takes at most while a model is made."""
_ROTATION = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)


@dataclass
class _CbfDraft:
    """What has been read so far; a table holds one row of indices and a value per line."""

    source: SourceFile
    sense: str = "MIN"
    var: Domain = field(default_factory=list)
    con: Domain = field(default_factory=list)
    psdvar: list[int] = field(default_factory=list)
    psdcon: list[int] = field(default_factory=list)
    powers: list[Weights] = field(default_factory=list)
    offset: float = 0.0
    bounds: int = 0
    names: Names | None = None
    tables: dict[str, FloatArray] = field(default_factory=dict)

    def table(self, name: str) -> tuple[npt.NDArray[np.intp], FloatArray]:
        rows = self.tables.get(name, np.zeros((0, _TABLES[name] + 1)))
        return rows[:, :-1].astype(int).T, rows[:, -1]


class _Reader:
    """The words of the lines that are neither empty nor comments, with their line numbers."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.bounds = 0
        self.at = 0
        self.names: Names | None = None
        self.lines: list[tuple[int, list[str]]] = []
        for place, text in enumerate(source.lines(), 1):
            if place % LINES_AT_A_TIME == 0:
                source.line = place
                source.check_time()
            if text.startswith("#"):
                self._comment(place, text)
                continue
            # The rest of a line after # is a comment.
            words = text.split("#", 1)[0].split()
            if words:
                self.lines.append((place, words))

    def _comment(self, line: int, text: str) -> None:
        """Take what klopt says in comments."""
        if found := _BOUNDS.fullmatch(text.strip()):
            self.bounds = whole(self.source, line, found[1])
        elif text.startswith(NAMES_NOTE):
            self.names = self._names(line, text.removeprefix(NAMES_NOTE))

    def _names(self, line: int, text: str) -> Names:
        try:
            columns, rows = json.loads(text)
            return Names(tuple(columns), tuple(rows))
        except (ValueError, TypeError, RecursionError) as error:
            raise self.source.malformed(line, f"not two lists of names: {error}") from None

    def next(self, what: str, count: int) -> tuple[int, list[str]]:
        if self.at == len(self.lines):
            last = self.lines[-1][0] if self.lines else 1
            raise self.source.malformed(last, f"the file ends before {what}")
        line, words = self.lines[self.at]
        if len(words) != count:
            raise self.source.malformed(
                line, f"expected {what} ({count} words), found {' '.join(words)[:80]!r}"
            )
        self.at += 1
        return line, words

    def powers(self) -> list[Weights]:
        """The weights of the power cones that the file declares."""
        line, (count, total) = self.next("the numbers of power cones and of their weights", 2)
        found: list[Weights] = []
        for _ in range(whole(self.source, line, count)):
            at, (length,) = self.next("the number of weights of a power cone", 1)
            weights = []
            for _ in range(whole(self.source, at, length, least=1)):
                place, (word,) = self.next("a weight of a power cone", 1)
                weights.append(self._weight(place, word))
            found += power_weights([weights])
        if sum(map(len, found)) != whole(self.source, line, total):
            raise self.source.malformed(
                line, f"the power cones have {sum(map(len, found))} weights, not {total}"
            )
        return found

    def _weight(self, line: int, word: str) -> Number:
        """A positive number as the decimal it is."""
        finite(self.source, line, word)
        try:
            value = decimal(word)
        except ValueError as error:
            raise self.source.malformed(line, str(error)) from None
        if value <= 0:
            raise self.source.malformed(line, f"the weight {word[:20]!r} is not positive")
        return value

    def domain(self, name: str, powers: list[Weights]) -> Domain:
        line, (size, count) = self.next(f"the size of {name} and its number of cones", 2)
        found: Domain = []
        for _ in range(whole(self.source, line, count)):
            at, (cone, part) = self.next("a cone and its size", 2)
            found.append((cone, whole(self.source, at, part)))
            if _POWER.fullmatch(cone):
                self._check_power(at, *found[-1], powers)
            elif cone not in _CONES:
                raise self.source.malformed(
                    at, f"klopt reads no {cone[:20]} cones; it knows {', '.join(_CONES)}, @k:POW"
                )
            if cone == "EXP" and found[-1][1] != 3:
                raise self.source.malformed(at, "an exponential cone has three entries")
            if cone == "QR" and found[-1][1] < 2:
                raise self.source.malformed(at, "a rotated cone has at least two entries")
        rows = _size(found)
        if rows != whole(self.source, line, size):
            raise self.source.malformed(line, f"the cones of {name} have {rows} rows, not {size}")
        require_memory(BYTES_PER_ROW * rows, f"{name} of size {rows} in line {line}")
        return found

    def _check_power(self, line: int, cone: str, size: int, powers: list[Weights]) -> None:
        index = _power_index(cone)
        if index >= len(powers):
            raise self.source.malformed(line, f"POWCONES declares no cone {cone[:20]}")
        wanted = len(powers[index]) + 1
        if size != wanted:
            raise self.source.malformed(
                line,
                f"{cone[:20]} has {len(powers[index])} weights and {size} entries; "
                f"klopt reads power cones with one entry beside those of the weights, {wanted}",
            )

    def orders(self, name: str) -> list[int]:
        line, (count,) = self.next(f"the number of blocks of {name}", 1)
        found = []
        for _ in range(whole(self.source, line, count)):
            at, (word,) = self.next(f"the order of a block of {name}", 1)
            found.append(whole(self.source, at, word))
        return found

    def table(self, name: str, limits: list[int], orders: list[int]) -> FloatArray:
        """Rows of indices, each below its limit, and a value.

        The last two indices of an entry of a matrix stay below the order of its block.
        """
        line, (count,) = self.next(f"the number of entries of {name}", 1)
        end = self.at + whole(self.source, line, count)
        width = len(limits) + 1
        tables = [np.zeros((0, width))]
        while self.at < end:
            self.source.line = line
            self.source.check_time()
            lines = self.lines[self.at : min(end, self.at + LINES_AT_A_TIME)]
            if not lines:
                self.next(f"an entry of {name}", width)
            for place, words in lines:
                if len(words) != width:
                    # Says what is expected and what is there.
                    self.at = self.lines.index((place, words), self.at)
                    self.next(f"an entry of {name}", width)
            tables.append(self._checked(name, lines, limits, orders))
            self.at += len(lines)
        return np.concatenate(tables)

    def _checked(
        self,
        name: str,
        lines: list[tuple[int, list[str]]],
        limits: list[int],
        orders: list[int],
    ) -> FloatArray:
        rows = numbers_table(self.source, lines, len(limits) + 1)
        index = rows[:, :-1]
        # NaN is no whole number.
        odd = ~(index == np.floor(index)) | (index < 0)
        for line, column in np.argwhere(odd)[:1].tolist():
            place, words = lines[line]
            raise self.source.malformed(place, f"{words[column]!r} is not a count or an index")
        outside = (index >= limits).any(axis=1)
        # The limits are those of the largest block; here the entry's own block counts.
        if orders:
            block = index[:, 0 if name in ("HCOORD", "DCOORD", "OBJFCOORD") else 1]
            known = np.array(orders)[np.where(outside, 0, block).astype(int)]
            outside |= index[:, -2:].max(axis=1) >= known
        wrong = np.flatnonzero(outside | ~np.isfinite(rows[:, -1]))
        if wrong.size:
            place, words = lines[wrong[0]]
            text = f"{' '.join(words)!r} lies outside the problem or is not finite"
            raise self.source.malformed(place, text)
        return rows


def read(source: SourceFile) -> Model:
    """Return the model in a CBF file."""
    reader = _Reader(source)
    draft = _CbfDraft(source, bounds=reader.bounds, names=reader.names)
    while reader.at < len(reader.lines):
        line, (section, *_) = reader.lines[reader.at]
        reader.at += 1
        _read_section(reader, draft, line, section)
    # Every entry of a matrix variable is a variable, unless the program is in standard form.
    entries = sum(svec_size(order) for order in draft.psdvar)
    is_standard = _is_standard(draft)
    variables = _size(draft.con) if is_standard else _size(draft.var) + entries
    require_memory(BYTES_PER_ROW * variables, f"a program of {variables} variables")
    require_blocks([*draft.psdvar, *draft.psdcon], variables)
    return _standard(draft) if is_standard else _general(draft)


def _read_section(reader: _Reader, draft: _CbfDraft, line: int, section: str) -> None:
    """Read the section whose name stands in `line` into the draft."""
    if section == "VER":
        reader.next("the version", 1)
    elif section == "OBJSENSE":
        line, (draft.sense,) = reader.next("MIN or MAX", 1)
        if draft.sense not in ("MIN", "MAX"):
            raise reader.source.malformed(
                line, f"the sense {draft.sense[:20]!r} is neither MIN nor MAX"
            )
    elif section in ("VAR", "CON"):
        setattr(draft, section.lower(), reader.domain(section, draft.powers))
    elif section == "POWCONES":
        draft.powers = reader.powers()
    elif section in ("PSDVAR", "PSDCON"):
        setattr(draft, section.lower(), reader.orders(section))
    elif section == "OBJBCOORD":
        line, (word,) = reader.next("the constant of the objective", 1)
        draft.offset = finite(reader.source, line, word)
    elif section in _TABLES:
        draft.tables[section] = reader.table(section, *_limits(draft, section))
    elif section == "INT":
        reason = "klopt solves continuous problems only"
        raise reader.source.malformed(line, f"section {section!r}: {reason}")
    else:
        raise reader.source.malformed(line, f"section {section[:20]!r}: klopt does not read it")


def _is_standard(draft: _CbfDraft) -> bool:
    """Whether the program is: matrix variables and nonnegative ones under equalities."""
    scalar_cones = {cone for cone, _ in draft.var}
    row_cones = {cone for cone, _ in draft.con}
    has_matrices = bool(draft.psdvar) and not draft.psdcon
    return has_matrices and row_cones <= {"L="} and scalar_cones <= {"L+"}


def _size(domain: Domain) -> int:
    """The number of rows of a product of cones."""
    return sum(size for _, size in domain)


def _cone_of_rows(domain: Domain) -> npt.NDArray[np.str_]:
    """The cone of each row."""
    return np.repeat([cone for cone, _ in domain], [size for _, size in domain])


def _limits(draft: _CbfDraft, section: str) -> tuple[list[int], list[int]]:
    """The limits of a table's indices, and the orders of the blocks that it belongs to."""
    n = _size(draft.var)
    m = _size(draft.con)
    variables = draft.psdvar
    blocks = draft.psdcon
    some = max([0, *variables, *blocks])
    return {
        "OBJACOORD": ([n], []),
        "ACOORD": ([m, n], []),
        "BCOORD": ([m], []),
        "OBJFCOORD": ([len(variables), some, some], variables),
        "FCOORD": ([m, len(variables), some, some], variables),
        "HCOORD": ([len(blocks), n, some, some], blocks),
        "DCOORD": ([len(blocks), some, some], blocks),
    }[section]


def _vector(draft: _CbfDraft, name: str, size: int) -> FloatArray:
    (index,), value = draft.table(name)
    return np.bincount(index, weights=value, minlength=size).astype(float)


def _standard(draft: _CbfDraft) -> Model:
    """min <C, X> + l'z subject to <A_i, X> + a_i'z = b_i, as the model with over="X"."""
    n = _size(draft.con)
    k = _size(draft.var)
    (row, column), value = draft.table("ACOORD")
    A = csc("A", sparse.csc_array((value, (column, row)), shape=(k, n)))
    (matrix, i, j), costs = draft.table("OBJFCOORD")
    (con, which, p, q), entries = draft.table("FCOORD")
    blocks = []
    for index, order in enumerate(draft.psdvar):
        # Column 0 is C, column i + 1 is A_i.
        in_C = matrix == index
        in_A = which == index
        of_C = svec_index(i[in_C], j[in_C], order)
        of_A = svec_index(p[in_A], q[in_A], order)
        at = np.concatenate((of_C, of_A))
        columns = np.concatenate((np.zeros(of_C.size, dtype=int), con[in_A] + 1))
        data = np.concatenate((costs[in_C], entries[in_A]))
        blocks.append(_block(order, data, at, columns, n))
    return Model(
        c=-_vector(draft, "BCOORD", n),
        A=A,
        row_lower=np.full(k, -np.inf),
        row_upper=_vector(draft, "OBJACOORD", k),
        lower=np.full(n, -np.inf),
        upper=np.full(n, np.inf),
        sense="max" if draft.sense == "MAX" else "min",
        offset=draft.offset,
        blocks=tuple(blocks),
        over="X",
    )


def _general(draft: _CbfDraft) -> Model:
    """Scalars and entries of matrix variables as one vector x; cones of x and A x + b as rows."""
    scalars = _size(draft.var)
    sizes = [svec_size(order) for order in draft.psdvar]
    starts = scalars + np.concatenate(([0], np.cumsum(sizes))).astype(int)
    n = int(starts[-1])
    c = _costs(draft, scalars, starts)
    A = _row_matrix(draft, starts)
    rows, b = _rows(draft.con, A, _vector(draft, "BCOORD", _size(draft.con)))
    own, zero = _rows(draft.var, sparse.eye_array(scalars, n, format="csr"), np.zeros(scalars))

    lower = np.full(n, -np.inf)
    upper = np.full(n, np.inf)
    cones = _cone_of_rows(draft.var)
    lower[:scalars][np.isin(cones, ("L+", "L="))] = 0.0
    upper[:scalars][np.isin(cones, ("L-", "L="))] = 0.0
    kept, low, high = _linear(draft, rows, b, lower, upper)
    parts = ((draft.con, rows, b), (draft.var, own, zero))
    quadratic, soc = _second_order(*parts)
    curved, exp, powers = _nonsymmetric(*parts)
    power = tuple(draft.powers[index] for index in powers)
    return Model(
        c=c,
        A=csc("A", rows[kept]),
        row_lower=low,
        row_upper=high,
        lower=lower,
        upper=upper,
        sense="max" if draft.sense == "MAX" else "min",
        offset=draft.offset,
        A_soc=csc("A_soc", -quadratic[0]) if soc else None,
        b_soc=quadratic[1] if soc else None,
        soc=soc,
        A_curved=csc("A_curved", -curved[0]) if exp or power else None,
        b_curved=curved[1] if exp or power else None,
        exp=exp,
        power=power,
        blocks=_blocks(draft, starts, n),
        names=draft.names,
    )


def _costs(draft: _CbfDraft, scalars: int, starts: npt.NDArray[np.intp]) -> FloatArray:
    """c of c'x = a'x_scalar + sum_k <F_k, X_k>; an entry off the diagonal counts twice."""
    orders = np.array([*draft.psdvar, 0])
    (matrix, i, j), value = draft.table("OBJFCOORD")
    c = np.zeros(starts[-1])
    c[:scalars] = _vector(draft, "OBJACOORD", scalars)
    at = starts[matrix] + svec_index(i, j, orders[matrix])
    np.add.at(c, at, np.where(i == j, 1.0, 2.0) * value)
    return c


def _row_matrix(draft: _CbfDraft, starts: npt.NDArray[np.intp]) -> sparse.csr_array:
    """A of the rows A x + b, of scalars (ACOORD) and of matrix variables (FCOORD)."""
    orders = np.array([*draft.psdvar, 0])
    (row, column), value = draft.table("ACOORD")
    (con, matrix, i, j), entries = draft.table("FCOORD")
    rows = np.concatenate((row, con))
    columns = np.concatenate((column, starts[matrix] + svec_index(i, j, orders[matrix])))
    data = np.concatenate((value, np.where(i == j, 1.0, 2.0) * entries))
    return sparse.csr_array((data, (rows, columns)), shape=(_size(draft.con), int(starts[-1])))


def _rows(
    domain: Domain, A: sparse.csr_array, b: FloatArray
) -> tuple[sparse.csr_array, FloatArray]:
    """Ax + b with the first two rows of each rotated cone turned by 45 degrees."""
    heads = []
    start = 0
    for cone, size in domain:
        if cone == "QR":
            heads.append(start)
        start += size
    if not heads:
        return A, b
    # The identity but for 2 x 2 blocks.
    first = np.array(heads)
    others = np.setdiff1d(np.arange(b.size), np.concatenate((first, first + 1)))
    row = np.concatenate((others, first, first, first + 1, first + 1))
    column = np.concatenate((others, first, first + 1, first, first + 1))
    entries = np.concatenate((np.ones(others.size), np.repeat(_ROTATION.ravel(), first.size)))
    turn: Any = sparse.csr_array((entries, (row, column)), shape=(b.size, b.size))
    return sparse.csr_array(turn @ A), turn @ b


def _linear(
    draft: _CbfDraft, rows: sparse.csr_array, b: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    """The linear rows and their two sides; rows that are bounds tighten `lower` and `upper`."""
    cones = _cone_of_rows(draft.con)
    low = np.where(np.isin(cones, ("L+", "L=")), -b, -np.inf)
    high = np.where(np.isin(cones, ("L-", "L=")), -b, np.inf)
    linear = np.isin(cones, _LINEAR_CONES)
    # The last rows are bounds by klopt's own comment: one variable each.
    sizes = np.diff(rows.indptr)[b.size - draft.bounds :] if draft.bounds <= b.size else [0]
    if draft.bounds and not np.all(np.asarray(sizes) == 1):
        raise draft.source.malformed(
            None,
            f"a comment calls the last {draft.bounds} rows of CON bounds of variables, but they "
            "have not one entry each; remove the comment",
        )
    for row in range(b.size - draft.bounds, b.size):
        column = rows.indices[rows.indptr[row]]
        lower[column] = max(lower[column], low[row])
        upper[column] = min(upper[column], high[row])
        linear[row] = False
    kept = np.flatnonzero(linear)
    return kept, low[kept], high[kept]


def _second_order(
    *parts: tuple[Domain, sparse.csr_array, FloatArray],
) -> tuple[tuple[sparse.csr_array, FloatArray], tuple[int, ...]]:
    """The rows of all second-order cones and their sizes."""
    soc = tuple(
        size for domain, _, _ in parts for cone, size in domain if cone in ("Q", "QR") and size
    )
    matrices = []
    sides = []
    for domain, A, b in parts:
        mine = np.flatnonzero(np.isin(_cone_of_rows(domain), ("Q", "QR")))
        matrices.append(A[mine])
        sides.append(b[mine])
    return (sparse.csr_array(sparse.vstack(matrices)), np.concatenate(sides)), soc


def _nonsymmetric(
    *parts: tuple[Domain, sparse.csr_array, FloatArray],
) -> tuple[tuple[sparse.csr_array, FloatArray], int, list[int]]:
    """The rows of all exponential cones, then of all power cones; their numbers in the file."""
    exponential: list[tuple[sparse.csr_array, FloatArray]] = []
    power: list[tuple[sparse.csr_array, FloatArray]] = []
    indices = []
    for domain, A, b in parts:
        start = 0
        for cone, size in domain:
            if cone == "EXP":
                # The first entry of the file is klopt's last one.
                backwards = [start + 2, start + 1, start]
                exponential.append((A[backwards], b[backwards]))
            elif _POWER.fullmatch(cone):
                power.append((A[start : start + size], b[start : start + size]))
                indices.append(_power_index(cone))
            start += size
    rows = [A for A, _ in (*exponential, *power)]
    sides = [b for _, b in (*exponential, *power)]
    if not rows:
        return (parts[0][1][:0], np.zeros(0)), 0, []
    stacked = sparse.csr_array(sparse.vstack(rows))
    return (stacked, np.concatenate(sides)), len(exponential), indices


def _power_index(cone: str) -> int:
    """The place in POWCONES of a cone @k:POW."""
    return int(cone[1:].partition(":")[0])


def _block(
    order: int,
    data: FloatArray,
    at: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    n: int,
) -> Block:
    """The block whose entries `data` stand at the places `at` of the matrices `columns`."""
    shape = (svec_size(order), n + 1)
    return Block(order, sparse.csc_array((data, (at, columns)), shape=shape))


def _blocks(draft: _CbfDraft, starts: npt.NDArray[np.intp], n: int) -> tuple[Block, ...]:
    """sum_j x_j H_j + D for the constraints, and X itself for matrix variables."""
    (block, variable, i, j), value = draft.table("HCOORD")
    (constant, p, q), shift = draft.table("DCOORD")
    found = []
    for index, order in enumerate(draft.psdcon):
        # A model has sum_j x_j F_j - F_0: D is -F_0, column 0.
        in_H = block == index
        in_D = constant == index
        of_D = svec_index(p[in_D], q[in_D], order)
        of_H = svec_index(i[in_H], j[in_H], order)
        at = np.concatenate((of_D, of_H))
        columns = np.concatenate((np.zeros(of_D.size, dtype=int), variable[in_H] + 1))
        data = np.concatenate((-shift[in_D], value[in_H]))
        found.append(_block(order, data, at, columns, n))
    for index, order in enumerate(draft.psdvar):
        entries = np.arange(svec_size(order))
        ones = np.ones(entries.size)
        found.append(_block(order, ones, entries, starts[index] + 1 + entries, n))
    return tuple(found)
