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

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.model.cones import svec_entries, svec_index, svec_size
from klopt.programs.formats.model import Block, Model, malformed, number

__all__ = ["read", "write"]

Whole = npt.NDArray[np.signedinteger[Any]]

_SPACES = str.maketrans("{}(),", "     ")


def read(path: Path) -> Model:
    """Return the model that a `.dat-s` file states."""
    lines = path.read_text(encoding="latin-1").translate(_SPACES).splitlines()
    at = next(
        (
            index
            for index, line in enumerate(lines)
            if line.strip() and line.lstrip()[0] not in '"*'
        ),
        len(lines),
    )
    (n,), at = _numbers(path, lines, at, 1, "the number of variables")
    (count,), at = _numbers(path, lines, at, 1, "the number of blocks")
    sizes, at = _numbers(path, lines, at, int(count), "the sizes of the blocks")
    c, at = _numbers(path, lines, at, int(n), "the objective")
    if not all(float(size).is_integer() and size for size in (n, count, *sizes)):
        raise malformed(
            path,
            at,
            f"n = {n:g}, {count:g} blocks of sizes {sizes}: expected whole numbers other than 0",
        )
    table, where = _entries(path, lines, at)
    _check(path, table, where, int(n), sizes.astype(int))
    return _model(c, sizes.astype(int), table)


def write(path: Path, model: Model) -> None:
    """Write a model with rows A x <= b and semidefinite blocks; all else is refused."""
    A, b, A_eq, _, _ = model.split()
    for refused, what, instead in (
        (model.P is not None or bool(model.quadratics), "quadratic functions", ".npz"),
        (bool(model.soc), "second-order cones", ".cbf"),
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
    path: Path, lines: list[str], at: int, count: int, what: str
) -> tuple[FloatArray, int]:
    """The next `count` numbers, on one or more lines, and the line after them."""
    found: list[float] = []
    while len(found) < count:
        if at >= len(lines):
            raise malformed(
                path, len(lines), f"the file ends before {what} ({len(found)} of {count} numbers)"
            )
        for word in lines[at].split():
            # What follows the numbers on their last line is a comment.
            if len(found) == count:
                break
            found.append(number(path, at + 1, word))
        at += 1
    return np.array(found), at


def _entries(path: Path, lines: list[str], at: int) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The rows (matrix, block, row, column, value) and the line of each."""
    where = np.array(
        [at + offset + 1 for offset, line in enumerate(lines[at:]) if line.strip()], dtype=int
    )
    rows = [line.split() for line in lines[at:] if line.strip()]
    try:
        table = np.array(rows, dtype=float).reshape(-1, 5)
    except ValueError:
        # Fortran exponents, or a mistake, which is searched for line by line.
        for line, row in zip(where.tolist(), rows, strict=True):
            if len(row) != 5:
                raise malformed(path, line, f"expected 5 numbers, found {len(row)}") from None
            for word in row:
                number(path, line, word)
        table = np.array([[number(path, 0, word) for word in row] for row in rows])
    return table, where


def _check(
    path: Path, table: FloatArray, where: npt.NDArray[np.intp], n: int, sizes: npt.NDArray[np.intp]
) -> None:
    index, block, row, column, value = table.T
    inside = (block >= 1) & (block <= sizes.size)
    order = np.abs(sizes)[np.where(inside, block, 1).astype(int) - 1]
    diagonal = sizes[np.where(inside, block, 1).astype(int) - 1] < 0
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
            raise malformed(
                path, int(where[at]), f"{text}: {' '.join(f'{v:g}' for v in table[at])}"
            )
    # An entry and its mirror image are the same.
    keys = np.column_stack((index, block, np.minimum(row, column), np.maximum(row, column)))
    _, first = np.unique(keys, axis=0, return_index=True)
    if first.size < len(table):
        again = int(np.setdiff1d(np.arange(len(table)), first)[0])
        raise malformed(path, int(where[again]), "this entry was given before")


def _model(c: FloatArray, sizes: npt.NDArray[np.intp], table: FloatArray) -> Model:
    n = c.size
    index, block, row, column = table[:, :4].astype(int).T - np.array([[0], [1], [1], [1]])
    value = table[:, 4]
    blocks = []
    linear = []
    for place, size in enumerate(sizes.tolist()):
        mine = block == place
        order = abs(size)
        # Diagonal blocks and 1 x 1 matrices are linear rows.
        if size < 0 or order == 1:
            linear.append(
                sparse.csc_array((value[mine], (row[mine], index[mine])), shape=(order, n + 1))
            )
        else:
            at = svec_index(row[mine], column[mine], order)
            entries = sparse.csc_array(
                (value[mine], (at, index[mine])), shape=(svec_size(order), n + 1)
            )
            blocks.append(Block(order, entries))
    rows = sparse.csc_array(sparse.vstack([sparse.csc_array((0, n + 1)), *linear]))
    limits = -rows[:, [0]].toarray().ravel()
    free = np.full(n, np.inf)
    A = sparse.csc_array(-rows[:, 1:])
    return Model(c, A, np.full(limits.size, -np.inf), limits, -free, free, blocks=tuple(blocks))
