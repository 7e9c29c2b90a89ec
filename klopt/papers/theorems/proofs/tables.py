"""Proofs of what papers read from their tables: linear inequalities between printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from klopt.papers.theorems.proofs.expression import Rational
from klopt.papers.theorems.proofs.proof import NotProven, Proof, tabulated

__all__ = [
    "average_ranks",
    "greater",
    "named",
    "of_table",
    "ratio_between",
    "ratio_is_about",
    "rounds_to",
]

Row = dict[str, Rational]
SCOPE = "the printed numbers"


def named(name: str, values: Any) -> dict[str, str]:
    """Return the entries of an array of printed decimals by name.

    >>> named("a", np.array([70.2, 5.0]))
    {'a[0]': '70.2', 'a[1]': '5.0'}
    """
    array = np.asarray(values)
    return {f"{name}[{','.join(map(str, at))}]": str(array[at]) for at in np.ndindex(*array.shape)}


def greater(large: str, small: str, by: Rational = 0) -> Row:
    """Return large - small - by >= 0."""
    return {large: 1, small: -1, "": -Fraction(by)}


def rounds_to(factors: Mapping[str, Rational], told: str, digits: int) -> list[Row]:
    """Return that a sum lies within half a unit of the last digit of what is printed."""
    half = Fraction(1, 2 * 10**digits)
    value = Fraction(told)
    below = {name: -factor for name, factor in factors.items()}
    return [{**factors, "": half - value}, {**below, "": half + value}]


def ratio_between(above: str, below: str, low: Rational | str, high: Rational | str) -> list[Row]:
    """Return low <= above / below <= high, for a positive divisor."""
    return [
        {below: 1},
        {above: 1, below: -Fraction(low)},
        {above: -1, below: Fraction(high)},
    ]


def ratio_is_about(says: str, above: str, below: str, told: int, within: str) -> Proof:
    """Return the proof that a ratio of two printed numbers is what is told, but for a share of it."""
    low = told * (1 - Fraction(within))
    high = told * (1 + Fraction(within))
    rows = ratio_between("above", "below", low, high)
    text = f"{says}: {above} / {below} is between {low} and {high}"
    return of_table(tabulated(text, {"above": above, "below": below}, rows))


def of_table(*steps: Any, argument: str = "Arithmetic of printed numbers.") -> Proof:
    """Return the proof that consists of facts about printed numbers."""
    return Proof(SCOPE, argument, steps)


def average_ranks(where: str, table: Any, told: Sequence[str], *, unit: str) -> Proof:
    """Return the proof that the average ranks of a table's rows are those printed; ties share ranks.

    An entry beats another one by a unit of the last digit at least, or equals it: so that the ranks,
    1 + the number of larger entries + half the number of equal ones, are what the order says.
    """
    array = np.asarray(table)
    entries = named("a", array)
    rows: list[Row] = []
    ranks = np.array([[Fraction(1)] * array.shape[1] for _ in array], dtype=object)
    for i, j, k in np.ndindex(len(array), array.shape[1], array.shape[1]):
        one, other = f"a[{i},{j}]", f"a[{i},{k}]"
        if j < k and array[i, j] == array[i, k]:
            rows += [greater(one, other), greater(other, one)]
        elif array[i, k] > array[i, j]:
            rows.append(greater(other, one, Fraction(unit)))
        if j != k:
            gain = Fraction(int(array[i, k] > array[i, j]))
            ranks[i, j] += gain + Fraction(int(array[i, k] == array[i, j]), 2)
    order = tabulated(f"the order of the entries in the rows of {where}", entries, rows)
    averages = []
    sums = {f"r[{j}]": sum(ranks[:, j], Fraction(0)) for j in range(array.shape[1])}
    if len(told) != len(sums):
        raise NotProven(f"{where} has {len(sums)} columns, not {len(told)}")
    for name, mean in zip(sums, told, strict=True):
        averages += rounds_to({name: Fraction(1, len(array))}, mean, 2)
    means = tabulated("the sums of these ranks, over the number of rows", sums, averages)
    argument = (
        "The first step proves the order of the entries, with ties, in each row; counting it gives the ranks, "
        "whose sums are the numbers r of the second."
    )
    return Proof(SCOPE, argument, (order, means))
