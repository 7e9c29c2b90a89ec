"""Positive semidefinite or not, decided for a sparse matrix of float64 without rounding.

**Schur complement.** Let A be symmetric with the entry d in the diagonal and the rest a of its row.
If d > 0, then A is positive semidefinite exactly if A' - aa'/d is, A' being A without that row and
column. If d = 0, exactly if a = 0 and A' is: a 2 x 2 block with the diagonal 0, e and an entry
f != 0 off it has the determinant -f^2. If d < 0, never.

Taking rows off one by one in rationals decides every symmetric matrix, singular ones included,
where a factorisation in floats can decide only those that are definite by more than rounding.
Components that share no entry are decided one by one, and in each the row with the fewest entries
goes first, which keeps the fill small.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import MatrixLike, SparseMatrix, csc
from klopt.errors import InvalidProblem
from klopt.proof.time_budget import exhausted

if TYPE_CHECKING:
    from flint import fmpq

__all__ = ["rational_psd"]

MAX_WORK = 1e9
"""What may be done, in updates of an entry times the bits it may have: some three seconds."""
ENTRIES_BETWEEN_LOOKS = 10_000
"""Entries that are read before the clock is looked at again: some hundredths of a second."""


def rational_psd(P: MatrixLike, max_work: float = MAX_WORK) -> bool | None:
    """Return whether a symmetric matrix is positive semidefinite; None if that takes too long.

    >>> rational_psd([[1.0, 2.0], [2.0, 4.0]]), rational_psd([[1.0, 2.0], [2.0, 4.0 - 1e-15]])
    (True, False)
    """
    matrix = csc("P", P)
    if matrix.shape[0] != matrix.shape[1] or (matrix - matrix.T).count_nonzero():
        raise InvalidProblem("P is not symmetric")

    # What a single entry decides comes first: it costs nothing.
    diagonal = matrix.diagonal()
    if np.any(diagonal < 0):
        return False

    # Loads a tenth of a second of other modules: for those who need it.
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(matrix, directed=False)
    if _least_work(matrix, labels) > max_work:
        return None
    rows = _rows(matrix)
    if rows is None:
        return None
    members: list[list[int]] = [[] for _ in range(count)]
    for index, label in enumerate(labels.tolist()):
        members[label].append(index)
    blocks = [block for block in members if len(block) > 1]

    # All orders are found before the first number is computed: too much work is not begun.
    orders = []
    work = 0.0
    for block in blocks:
        bits = max(_bits(value) for index in block for value in rows[index].values())
        cost = bits * len(block)
        order, updates = _order(block, rows, (max_work - work) / cost)
        work += updates * cost
        if work > max_work or len(order) < len(block) or exhausted():
            return None
        orders.append(order)

    for order in orders:
        verdict = _decide(order, rows)
        if verdict is not True:
            return verdict
    return True


def _least_work(matrix: SparseMatrix, labels: npt.NDArray[np.integer[Any]]) -> float:
    """What is to be done at least: each entry above the diagonal changes one, and has a bit."""
    coordinates = matrix.tocoo()
    above = coordinates.row < coordinates.col
    entries = np.bincount(labels[coordinates.row[above]], minlength=labels.max(initial=0) + 1)
    return float(entries @ np.bincount(labels).astype(float))


def _rows(matrix: SparseMatrix) -> list[dict[int, Fraction]] | None:
    """The entries of each row; None when time is up."""
    coordinates = matrix.tocoo()
    rows: list[dict[int, Fraction]] = [{} for _ in range(coordinates.shape[0])]
    entries = zip(
        coordinates.row.tolist(), coordinates.col.tolist(), coordinates.data.tolist(), strict=True
    )
    for number, (row, column, value) in enumerate(entries):
        if number % ENTRIES_BETWEEN_LOOKS == 0 and exhausted():
            return None
        if value:
            rows[row][column] = Fraction(value)
    return rows


def _order(block: list[int], rows: list[dict[int, Fraction]], most: float) -> tuple[list[int], int]:
    """In which order rows are taken off, fewest entries first, and how many entries that changes.

    The order is not finished where that is more than `most`, or time is up.
    """
    neighbours = {index: set(rows[index]) - {index} for index in block}
    order = []
    updates = 0
    while neighbours and updates <= most and not exhausted():
        pivot = min(neighbours, key=lambda index: (len(neighbours[index]), index))
        around = neighbours.pop(pivot)
        order.append(pivot)
        updates += len(around) * (len(around) + 1) // 2
        for index in around:
            neighbours[index] |= around
            neighbours[index] -= {index, pivot}
    return order, updates


def _decide(order: list[int], rows: list[dict[int, Fraction]]) -> bool | None:
    """Whether the block is positive semidefinite, by Schur complements; None when time is up."""
    from flint import fmpq

    left: dict[int, dict[int, fmpq]] = {
        index: {
            column: fmpq(value.numerator, value.denominator)
            for column, value in rows[index].items()
        }
        for index in order
    }
    for pivot in order:
        if exhausted():
            return None
        row = left.pop(pivot)
        d = row.pop(pivot, fmpq(0))
        around = [(column, value) for column, value in row.items() if value != 0]
        if d < 0 or (d == 0 and around):
            return False
        for place, (i, value) in enumerate(around):
            left[i].pop(pivot)
            share = value / d
            for j, other in around[place:]:
                entry = left[i].get(j, 0) - share * other
                left[i][j] = entry
                left[j][i] = entry
        for i in row:
            left[i].pop(pivot, None)
    return True


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length() - 1
