"""Semidefinite programs in the sparse SDPA format (`.dat-s`).

A file states: minimise c'x subject to sum_i x_i F_i - F_0 positive semidefinite.

    "comment                 any number of lines that start with " or *
    n                        number of variables
    blocks
    size size ..             negative: a diagonal block of that size
    c_1 .. c_n
    i block row column value     matrix F_i, upper triangle, everything counted from 1 except i

Brackets, commas and words after the numbers are allowed where the format allows them. Diagonal
blocks are linear rows: they are read as A x <= b with A = -F_i, b = -F_0, and written as one block
after the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import MAX_INDEX, FloatArray, require_memory
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_entries, svec_index, svec_size
from klopt.programs.formats.model import (
    LINES_AT_A_TIME,
    Block,
    Model,
    finite,
    numbers_table,
    require_blocks,
    whole,
)
from klopt.programs.formats.source import SourceFile

__all__ = ["KEEPS_DECIMALS", "read", "write"]

KEEPS_DECIMALS = False

Whole = npt.NDArray[np.signedinteger[Any]]

_SPACES = str.maketrans("{}(),", "     ")


def read(source: SourceFile) -> Model:
    """Return the model that a `.dat-s` file states."""
    lines = [line.translate(_SPACES) for line in source.lines()]
    at = next(
        (
            index
            for index, line in enumerate(lines)
            if line.strip() and line.lstrip()[0] not in '"*'
        ),
        len(lines),
    )
    (n,), at = _whole_numbers(source, lines, at, 1, "the number of variables")
    (count,), at = _whole_numbers(source, lines, at, 1, "the number of blocks")
    if min(n, count) < 1:
        raise source.malformed(
            at, f"{n} variables, {count} blocks: expected whole numbers of at least 1"
        )
    sizes, at = _whole_numbers(source, lines, at, count, "the sizes of the blocks")
    if not all(sizes):
        raise source.malformed(at, "the size of a block is 0; expected other whole numbers")
    c, at = _numbers(source, lines, at, n, "the objective")
    table, where = _entries(source, lines, at)
    _check(source, table, where, n, np.array(sizes))
    # A diagonal block, or one of order 1, is linear rows.
    orders = [size for size in sizes if size > 1]
    linear = sum(abs(size) for size in sizes if size <= 1)
    require_memory(200.0 * linear, f"{linear} linear rows")
    require_blocks(orders, n)
    return _model(source, np.array(c), np.array(sizes), table)


def write(path: Path, model: Model) -> None:
    """Write a model with rows A x <= b and semidefinite blocks; all else is refused."""
    A, b, A_eq, _, _ = model.split()
    for refused, what, instead in (
        (model.P is not None or bool(model.quadratics), "quadratic functions", ".npz"),
        (bool(model.soc), "second-order cones", ".cbf"),
        (bool(model.exp or model.power), "exponential and power cones", ".cbf"),
        (
            model.sense == "max" or model.over == "X",
            "a program that maximises or is in standard form",
            ".cbf",
        ),
        (model.offset != 0, "a constant in the objective", ".cbf"),
        (A_eq.shape[0] > 0, "equalities", ".cbf"),
        (not np.isfinite(b).all(), "infinite right-hand sides", ".cbf"),
        (np.isfinite(model.bounds).any(), "bounds of variables", ".cbf"),
        (model.names is not None, "names", ".cbf"),
        (not model.blocks and not b.size, "a program without constraints", ".cbf"),
    ):
        if refused:
            raise InvalidProblem(f"{path}: SDPA files cannot hold {what}; write a {instead} file")
    orders = [str(block.order) for block in model.blocks] + ([str(-b.size)] if b.size else [])
    text = [
        str(model.c.size),
        str(len(orders)),
        " ".join(orders),
        " ".join(map(repr, model.c.tolist())),
    ]
    for place, block in enumerate(model.blocks, 1):
        down, across = svec_entries(block.order)
        entries = block.entries.tocoo()
        text += _lines(
            entries.col, place, across[entries.row] + 1, down[entries.row] + 1, entries.data
        )
    # Linear rows are a diagonal block after the others: F_i = -A_i, F_0 = -b.
    if b.size:
        entries = sparse.hstack([sparse.csc_array(-b[:, None]), -A]).tocoo()
        text += _lines(entries.col, len(orders), entries.row + 1, entries.row + 1, entries.data)
    path.write_text("\n".join(text) + "\n", encoding="ascii")


def _lines(index: Whole, block: int, row: Whole, column: Whole, value: FloatArray) -> list[str]:
    columns = zip(index.tolist(), row.tolist(), column.tolist(), value.tolist(), strict=True)
    return [f"{i} {block} {j} {k} {v!r}" for i, j, k, v in columns]


def _numbers(
    source: SourceFile, lines: list[str], at: int, count: int, what: str
) -> tuple[list[float], int]:
    """The next `count` finite numbers, on one or more lines, and the line after them."""
    words, where, at = _next_words(source, lines, at, count, what)
    return [finite(source, line, word) for line, word in zip(where, words, strict=True)], at


def _whole_numbers(
    source: SourceFile, lines: list[str], at: int, count: int, what: str
) -> tuple[list[int], int]:
    words, where, at = _next_words(source, lines, at, count, what)
    found = [whole(source, line, word, -MAX_INDEX) for line, word in zip(where, words, strict=True)]
    return found, at


def _next_words(
    source: SourceFile, lines: list[str], at: int, count: int, what: str
) -> tuple[list[str], list[int], int]:
    """The next `count` words, the line of each, and the line after them."""
    found: list[str] = []
    where: list[int] = []
    while len(found) < count:
        if at >= len(lines):
            raise source.malformed(
                len(lines), f"the file ends before {what} ({len(found)} of {count} numbers)"
            )
        # What follows the numbers on their last line is a comment.
        words = lines[at].split()[: count - len(found)]
        at += 1
        found += words
        where += [at] * len(words)
    return found, where, at


def _entries(
    source: SourceFile, lines: list[str], at: int
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The rows (matrix, block, row, column, value) and the line of each."""
    tables = [np.zeros((0, 5))]
    where: list[int] = []
    for start in range(at, len(lines), LINES_AT_A_TIME):
        source.line = start + 1
        source.check_time()
        some = [
            (place, line.split())
            for place, line in enumerate(lines[start : start + LINES_AT_A_TIME], start + 1)
            if line.strip()
        ]
        tables.append(numbers_table(source, some, 5))
        where += [place for place, _ in some]
    return np.concatenate(tables), np.array(where, dtype=np.intp)


def _check(
    source: SourceFile,
    table: FloatArray,
    where: npt.NDArray[np.intp],
    n: int,
    sizes: npt.NDArray[np.intp],
) -> None:
    index, block, row, column, value = table.T
    inside = (block >= 1) & (block <= sizes.size)
    of_block = sizes[np.where(inside, block, 1).astype(int) - 1]
    order = np.abs(of_block)
    diagonal = of_block < 0
    for bad, text in (
        (np.any(table[:, :4] != np.round(table[:, :4]), axis=1), "an index is not a whole number"),
        ((index < 0) | (index > n), f"the matrix must be one of 0..{n}"),
        (~inside, f"the block must be one of 1..{sizes.size}"),
        (
            (np.minimum(row, column) < 1) | (np.maximum(row, column) > order),
            "the entry lies outside its block",
        ),
        (diagonal & (row != column), "an entry off the diagonal of a diagonal block"),
        (~np.isfinite(value), "the value is not a finite number"),
    ):
        if np.any(bad):
            at = int(np.argmax(bad))
            raise source.malformed(
                int(where[at]), f"{text}: {' '.join(f'{v:g}' for v in table[at])}"
            )
    # An entry and its mirror image are the same.
    keys = np.column_stack((index, block, np.minimum(row, column), np.maximum(row, column)))
    _, first = np.unique(keys, axis=0, return_index=True)
    if first.size < len(table):
        again = int(np.setdiff1d(np.arange(len(table)), first)[0])
        raise source.malformed(int(where[again]), "this entry was given before")


def _model(
    source: SourceFile, c: FloatArray, sizes: npt.NDArray[np.intp], table: FloatArray
) -> Model:
    n = c.size
    # Entries of a block stand together, in the order of the blocks.
    table = table[np.argsort(table[:, 1], kind="stable")]
    index, block, row, column = table[:, :4].astype(int).T - np.array([[0], [1], [1], [1]])
    value = table[:, 4]
    # Diagonal blocks and 1 x 1 matrices are linear rows.
    is_linear = sizes <= 1
    heights = np.where(is_linear, np.abs(sizes), 0)
    first_row = np.cumsum(heights) - heights
    mine = is_linear[block]
    places = (first_row[block[mine]] + row[mine], index[mine])
    rows = sparse.csc_array((value[mine], places), shape=(int(heights.sum()), n + 1))

    ends = np.searchsorted(block, np.arange(sizes.size + 1))
    blocks = []
    for place in np.flatnonzero(~is_linear).tolist():
        source.check_time()
        order = int(sizes[place])
        part = slice(ends[place], ends[place + 1])
        at = svec_index(row[part], column[part], order)
        shape = (svec_size(order), n + 1)
        blocks.append(Block(order, sparse.csc_array((value[part], (at, index[part])), shape=shape)))
    limits = -rows[:, [0]].toarray().ravel()
    free = np.full(n, np.inf)
    A = sparse.csc_array(-rows[:, 1:])
    return Model(c, A, np.full(limits.size, -np.inf), limits, -free, free, blocks=tuple(blocks))
