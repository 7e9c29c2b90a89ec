"""Pairs and bounds as a user gives them, checked."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze, vector
from klopt.errors import InvalidProblem
from klopt.model.functions import IntArray

__all__ = ["IntArray", "bounds", "pair_list"]


def pair_list(name: str, given: object, size: int) -> IntArray:
    """Return a frozen array with a row (i, j) for each pair, in the order given.

    >>> pair_list("similar", [(0, 0)], 3)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: similar[0] is (0, 0); expected two different points from 0 to 2
    """
    pairs = np.asarray(given)
    if not pairs.size:
        return cast(IntArray, freeze(np.zeros((0, 2), dtype=np.intp)))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidProblem(
            f"{name} has shape {pairs.shape} and dtype {pairs.dtype}; expected a list of pairs (i, j)"
        )
    bad = np.flatnonzero(
        (pairs < 0).any(axis=1) | (pairs >= size).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    )
    if bad.size:
        i, j = pairs[bad[0]]
        raise InvalidProblem(
            f"{name}[{bad[0]}] is ({i}, {j}); expected two different points from 0 to {size - 1}"
        )
    return cast(IntArray, freeze(pairs.astype(np.intp)))


def bounds(name: str, given: npt.ArrayLike, count: int, *, zero: bool) -> FloatArray:
    """Return one bound a pair from one number or one a pair, positive or, with `zero`, not negative."""
    one = np.ndim(given) == 0
    found = vector(name, [given] if one else given, None if one else count)
    bad = np.flatnonzero((found < 0) | ((found == 0) & (not zero)))
    if bad.size:
        where, why = name if one else f"{name}[{bad[0]}]", "a squared distance is not negative"
        why = why if zero else "no kernel that is finitely far away makes two points equal"
        raise InvalidProblem(f"{where} is {found[bad[0]]:g}; {why}, give a larger number")
    return vector(name, np.full(count, found[0])) if one else found
