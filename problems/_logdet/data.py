"""Pairs of points and bounds of their distances as a user gives them, checked."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, freeze, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.functions import IntArray

__all__ = [
    "distance_bounds",
    "given_kernel",
    "pair_rows",
    "refuse_unknown_points",
    "slack_price",
]


def given_kernel(K0: Gram | LowRank | MatrixLike) -> Gram | LowRank:
    """Return K0, checked: features as they are, a matrix as one that is positive semidefinite."""
    return K0 if isinstance(K0, LowRank) else Gram.of(K0, "K0")


def pair_rows(name: str, given: npt.ArrayLike) -> IntArray:
    """A frozen array with a row (i, j) for each pair, in the order given."""
    pairs = np.asarray(given)
    if not pairs.size:
        return cast(IntArray, freeze(np.zeros((0, 2), dtype=np.intp)))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidProblem(
            f"{name} has shape {pairs.shape} and dtype {pairs.dtype}; "
            "expected a list of pairs (i, j)"
        )
    return cast(IntArray, freeze(pairs.astype(np.intp)))


def refuse_unknown_points(name: str, pairs: IntArray, size: int) -> None:
    """Refuse pairs that are not of two different points from 0 to size - 1.

    >>> refuse_unknown_points("similar", np.array([(0, 0)]), 3)
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: similar[0] is (0, 0); expected two different points from 0 to 2
    """
    outside = ((pairs < 0) | (pairs >= size)).any(axis=1)
    wrong = np.flatnonzero(outside | (pairs[:, 0] == pairs[:, 1]))
    if wrong.size:
        i, j = pairs[wrong[0]]
        raise InvalidProblem(
            f"{name}[{wrong[0]}] is ({i}, {j}); expected two different points from 0 to {size - 1}"
        )


def distance_bounds(name: str, given: npt.ArrayLike, count: int, *, zero: bool) -> FloatArray:
    """Return one bound for each pair.

    Parameters
    ----------
    name
        What error messages call the bounds.
    given
        One number for all pairs, or one for each.
    count
        The number of pairs.
    zero
        Whether a bound may be 0.
    """
    one_for_all = np.ndim(given) == 0
    # A number is checked even where there is no pair that it bounds.
    bounds = vector(name, [given]) if one_for_all else vector(name, given, count)
    wrong = np.flatnonzero(bounds < 0 if zero else bounds <= 0)
    if wrong.size:
        where = name if one_for_all else f"{name}[{wrong[0]}]"
        why = "no kernel that is finitely far away makes two points equal"
        if zero:
            why = "a squared distance is not negative"
        raise InvalidProblem(f"{where} is {bounds[wrong[0]]:g}; {why}, give a larger number")
    return vector(name, np.full(count, bounds[0])) if one_for_all else bounds


def slack_price(slack: float | None) -> float | None:
    """Return the price of moving a bound, checked; None where no bound may move."""
    return None if slack is None else positive("slack", slack)
