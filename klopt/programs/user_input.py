"""Checks of the arguments of `LP`, `QCQP` and `SDP` that are not arrays."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from klopt.errors import InvalidProblem

__all__ = ["choice", "cone_sizes", "listed", "matrices", "refuse_no_matrix"]

_NO_LIST = (Mapping, Set, str, bytes)


def choice(name: str, value: object, *options: str) -> None:
    """Refuse anything but one of the texts.

    >>> choice("sense", "maximise", "min", "max")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: sense is 'maximise'; expected 'min' or 'max'
    """
    if not isinstance(value, str) or value not in options:
        raise InvalidProblem(f"{name} is {value!r}; expected {' or '.join(map(repr, options))}")


def listed(name: str, value: Any, what: str) -> tuple[Any, ...]:
    """Return the items of a list, a tuple or an array; texts, sets and mappings are refused.

    >>> listed("soc", 2, "a list of whole numbers")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: soc is 2; expected a list of whole numbers
    """
    try:
        if isinstance(value, _NO_LIST):
            raise TypeError
        return tuple(value)
    except TypeError:
        raise InvalidProblem(f"{name} is {value!r}; expected {what}") from None


def cone_sizes(name: str, value: object, rows: int) -> tuple[int, ...]:
    """Return the sizes of cones, whole numbers from 1 up that add up to the number of rows."""
    sizes = listed(name, value, "a list of whole numbers, the sizes of the cones")
    for index, size in enumerate(sizes):
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
            raise InvalidProblem(
                f"{name}[{index}] is {size!r}; expected a whole number of at least 1"
            )
    if sum(sizes) != rows:
        raise InvalidProblem(
            f"{name} has sizes {sizes}; expected positive sizes that add up to {rows} rows"
        )
    return tuple(int(size) for size in sizes)


def matrices(name: str, value: object, what: str) -> tuple[Any, ...]:
    """Return the list of matrices, none of which may be missing."""
    given = listed(name, value, what)
    for index, item in enumerate(given):
        refuse_no_matrix(f"{name}[{index}]", item)
    return given


def refuse_no_matrix(name: str, item: object) -> None:
    """Refuse an empty object that is no matrix but would count as a zero matrix."""
    for part in item if isinstance(item, list | tuple) else (item,):
        if part is None or part is np.ma.masked or isinstance(part, _NO_LIST):
            raise InvalidProblem(
                f"{name} is {item!r}; expected a symmetric matrix, a tuple of blocks, or 0 for zero"
            )
