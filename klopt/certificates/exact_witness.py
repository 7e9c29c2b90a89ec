"""From a point and multipliers in floats to fractions that satisfy every equation exactly.

What is left of an equation is tiny, and so is the correction. Inequalities and cones need room for
it: the points and multipliers that klopt proves its ends from have some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix
from klopt.proof.rational_systems import RationalMatrix, TooLarge, as_fractions, independent

__all__ = [
    "Column",
    "exact_columns",
    "exact_product",
    "fractions_of",
    "solved_exactly",
    "transposed_product",
]

Column = list[tuple[int, Fraction]]
"""The entries (equation, value) of one unknown."""

MAX_DENSE = 4_000_000
"""Entries up to which unknowns are chosen by a QR factorisation."""


def fractions_of(values: FloatArray) -> list[Fraction]:
    """Return floats as the fractions that they are."""
    return [Fraction(value) for value in values.tolist()]


def exact_product(matrix: SparseMatrix, x: Sequence[Fraction]) -> list[Fraction]:
    """Return matrix @ x without rounding.

    >>> exact_product(sparse.csc_array([[0.5, 2.0]]), [Fraction(1, 3), Fraction(1, 2)])
    [Fraction(7, 6)]
    """
    found = matrix.tocoo()
    # Integers over one denominator each: fractions would be reduced after every sum.
    ratios = [value.as_integer_ratio() for value in found.data.tolist()]
    over = max((below for _, below in ratios), default=1)
    common = lcm(*(value.denominator for value in x))
    numerators = [value.numerator * (common // value.denominator) for value in x]
    total = [0] * matrix.shape[0]
    places = zip(found.row.tolist(), found.col.tolist(), ratios, strict=True)
    for i, j, (above, below) in places:
        total[i] += above * (over // below) * numerators[j]
    return [Fraction(value, over * common) for value in total]


def transposed_product(matrix: SparseMatrix, y: Sequence[Fraction]) -> list[Fraction]:
    """Return matrix.T @ y without rounding."""
    return exact_product(sparse.csc_array(matrix.T), y)


def exact_columns(matrix: SparseMatrix) -> list[Column]:
    """Return the entries of each column of a matrix, exactly."""
    columns: list[Column] = [[] for _ in range(matrix.shape[1])]
    found = matrix.tocoo()
    places = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    for i, j, value in places:
        if value:
            columns[j].append((i, Fraction(value)))
    return columns


def solved_exactly(
    columns: Sequence[Column], r: Mapping[int, Fraction], room: FloatArray
) -> list[Fraction] | None:
    """Return z with Mz = r exactly, where entries without room stay 0; None where there is none.

    Parameters
    ----------
    columns
        The entries (equation, value) of each unknown.
    r
        The right-hand side of each equation; entries of others do not count.
    room
        How far each unknown may move: those that may move far are preferred.
    """
    found = [Fraction(0)] * len(columns)
    if not any(r.values()):
        return found
    at = {equation: place for place, equation in enumerate(r)}
    usable = [index for index in range(len(columns)) if room[index] > 0]
    rows = [_integers(columns[index], at) for index in usable]
    order = _order(rows, len(at), room[usable])
    right = list(r.values())
    try:
        chosen, pivots = independent([row for row, _ in rows], order, len(at))
        place = {pivot: index for index, pivot in enumerate(pivots)}
        square = [[(place[j], v) for j, v in rows[index][0] if j in place] for index in chosen]
        z = as_fractions(
            RationalMatrix(square).solve_transposed(_flint([right[j] for j in pivots]))
        )
    except TooLarge:
        return None
    left = dict(enumerate(right))
    for index, value in zip(chosen, z, strict=True):
        entries, scale = rows[index]
        found[usable[index]] = value * scale
        # Equations that depend on the others must hold, too.
        if len(pivots) < len(at):
            for j, entry in entries:
                left[j] -= value * entry
    if len(pivots) < len(at) and any(left.values()):
        return None
    return found


def _order(
    rows: Sequence[tuple[list[tuple[int, int]], int]], equations: int, room: FloatArray
) -> list[int]:
    """The order in which unknowns are taken.

    Those of a single equation come first, since they disturb no other; then well-conditioned ones
    with much room.
    """
    by_room = [int(index) for index in np.argsort(-room, kind="stable")]
    singles = [index for index in by_room if len(rows[index][0]) == 1]
    if len({rows[index][0][0][0] for index in singles}) == equations:
        return singles
    if len(rows) * equations <= MAX_DENSE:
        weighted = np.zeros((equations, len(rows)))
        for index, (entries, scale) in enumerate(rows):
            for j, value in entries:
                weighted[j, index] = value / scale
        weighted *= np.minimum(room, 1e100)
        if np.isfinite(weighted).all():
            *_, pivots = scipy.linalg.qr(weighted, mode="economic", pivoting=True)
            return [int(index) for index in pivots]
    return singles + [index for index in by_room if len(rows[index][0]) != 1]


def _integers(column: Column, at: Mapping[int, int]) -> tuple[list[tuple[int, int]], int]:
    """The entries of a column in the equations that count, times a scale that makes them integers."""
    entries = [(at[i], value) for i, value in column if i in at]
    scale = lcm(*(value.denominator for _, value in entries))
    return [(j, value.numerator * (scale // value.denominator)) for j, value in entries], scale


def _flint(values: Sequence[Fraction]) -> list[Any]:
    from flint import fmpq

    return [fmpq(value.numerator, value.denominator) for value in values]
