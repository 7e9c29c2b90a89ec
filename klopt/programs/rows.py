"""Linear rows and bounds as in SciPy: checked, stacked into cone rows, multipliers mapped back.

    A_ub x <= b_ub,   A_eq x = b_eq,   lower <= x <= upper

become  b - A x in {0} x R+  with rows in this order: A_eq and fixed variables (lower = upper); then
A_ub without the rows where b_ub = inf, lower bounds as -x <= -lower, upper bounds as x <= upper.
Multipliers have the signs of L = f + ub'(A_ub x - b_ub) + eq'(A_eq x - b_eq) + lower'(lower - x) +
upper'(x - upper), so ub, lower, upper >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import (
    FAKE_INFINITY,
    FloatArray,
    SparseMatrix,
    csc,
    freeze,
    reals,
    refuse_masked,
    vector,
)
from klopt.errors import InvalidProblem

__all__ = [
    "BoundsLike",
    "LinearRows",
    "bounds_array",
    "equalities",
    "finite_number",
    "inequalities",
]

Mask = npt.NDArray[np.bool_]
Pair: TypeAlias = tuple[float | None, float | None]
BoundsLike: TypeAlias = Pair | Sequence[Pair] | npt.ArrayLike | None
"""A pair (low, high) for all variables or one for each, None for no bound; x >= 0 by default."""


def inequalities(n: int, A: object, b: object, name: str = "ub") -> tuple[SparseMatrix, FloatArray]:
    """Return A_ub and b_ub checked; None stands for no rows, inf in b_ub for a vacuous row.

    >>> inequalities(2, [[1, 2]], [1e30])
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: b_ub[0] is 1e+30; write inf for a bound that does not exist
    """
    matrix, side = _rows(n, A, b, name)
    _refuse_fake_infinity(f"b_{name}", side)
    return matrix, side


def equalities(n: int, A: object, b: object, name: str = "eq") -> tuple[SparseMatrix, FloatArray]:
    """Return A_eq and b_eq checked; every right-hand side must be finite."""
    matrix, side = inequalities(n, A, b, name)
    infinite = np.flatnonzero(np.isinf(side))
    if infinite.size:
        raise InvalidProblem(
            f"b_{name}[{infinite[0]}] is {side[infinite[0]]}; expected a finite number"
        )
    return matrix, side


def bounds_array(n: int, bounds: object) -> FloatArray:
    """Return bounds, one pair for all variables or one for each, as an n x 2 array.

    None in a pair stands for no bound.

    >>> bounds_array(2, (0, None))
    array([[ 0., inf],
           [ 0., inf]])
    """
    refuse_masked("bounds", bounds)
    try:
        array = _pairs_of_floats(n, bounds)
    except (TypeError, ValueError):
        raise InvalidProblem(
            f"bounds must be one pair (low, high) or {n} of them, with None where there is no bound"
        ) from None
    except OverflowError:
        raise InvalidProblem(
            "bounds has a number beyond the range of floats; write None for no bound"
        ) from None
    array = array.reshape(n, 2).astype(float)
    # A lower bound of inf or an upper bound of -inf leaves no value.
    for row, side in np.argwhere(np.isnan(array) | (array == [np.inf, -np.inf])):
        raise InvalidProblem(
            f"bounds[{row}, {side}] is {array[row, side]}; expected a number, or None for no bound"
        )
    _refuse_fake_infinity("bounds", array)
    return cast(FloatArray, freeze(array))


def _pairs_of_floats(n: int, bounds: object) -> FloatArray:
    """One pair for each variable; None becomes -inf below and inf above."""
    # As in linprog, variables are nonnegative unless bounds are given.
    given = np.array((0.0, None) if bounds is None else bounds, dtype=object)
    pairs = np.broadcast_to(given, (n, 2)) if given.shape in ((2,), (1, 2)) else given
    if pairs.shape != (n, 2):
        raise ValueError
    lower = [-np.inf if low is None else float(low) for low, _ in pairs]
    upper = [np.inf if high is None else float(high) for _, high in pairs]
    return np.column_stack((lower, upper))


def finite_number(name: str, value: object) -> float:
    """Return a finite number as a float."""
    return float(vector(name, reals(name, value).reshape(-1), 1)[0])


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Checked rows and bounds, and the cone rows they become.

    >>> ub = inequalities(1, [[2.0]], [3.0])
    >>> rows = LinearRows(*ub, *equalities(1, None, None), bounds_array(1, (-1, None)))
    >>> rows.nonneg[0].toarray().ravel(), rows.nonneg[1]
    (array([ 2., -1.]), array([3., 1.]))
    >>> rows.named(np.zeros(0), np.array([0.5, 0.25]))["lower"]
    array([0.25])
    """

    A_ub: SparseMatrix
    b_ub: FloatArray
    A_eq: SparseMatrix
    b_eq: FloatArray
    bounds: FloatArray

    @cached_property
    def kept(self) -> Mask:
        """Which inequalities are not vacuous."""
        return cast(Mask, self.b_ub != np.inf)

    @property
    def note(self) -> str:
        """What is reported of vacuous rows."""
        vacuous = int(np.count_nonzero(~self.kept))
        if not vacuous:
            return ""
        return f"{vacuous} rows of A_ub are vacuous (b_ub is inf); their multipliers are 0"

    @cached_property
    def fixed(self) -> Mask:
        """Which variables have equal bounds."""
        return cast(Mask, self.bounds[:, 0] == self.bounds[:, 1])

    @cached_property
    def bounded(self) -> tuple[Mask, Mask]:
        """Which variables that are not fixed have a lower, an upper bound."""
        low, high = np.isfinite(self.bounds).T & ~self.fixed
        return low, high

    @property
    def zero(self) -> tuple[SparseMatrix, FloatArray]:
        """A and b of the equality rows."""
        unit = sparse.eye_array(len(self.bounds), format="csr")
        A = sparse.vstack([self.A_eq, unit[self.fixed]], format="csc")
        return A, np.concatenate((self.b_eq, self.bounds[self.fixed, 0]))

    @property
    def nonneg(self) -> tuple[SparseMatrix, FloatArray]:
        """A and b of the inequality rows."""
        low, high = self.bounded
        unit = sparse.eye_array(len(self.bounds), format="csr")
        A = sparse.vstack([self.A_ub.tocsr()[self.kept], -unit[low], unit[high]], format="csc")
        return A, np.concatenate((self.b_ub[self.kept], -self.bounds[low, 0], self.bounds[high, 1]))

    def named(self, zero: FloatArray, nonneg: FloatArray) -> dict[str, FloatArray]:
        """Return the multipliers of the cone rows as those of the user's constraints."""
        n = len(self.bounds)
        equal = self.b_eq.size
        low, high = self.bounded
        first = int(np.count_nonzero(self.kept))
        second = first + int(np.count_nonzero(low))

        ub = np.zeros(self.b_ub.size)
        ub[self.kept] = nonneg[:first]
        lower = np.zeros(n)
        lower[low] = nonneg[first:second]
        upper = np.zeros(n)
        upper[high] = nonneg[second:]
        # One equality stands for both bounds of a fixed variable; its sign tells which is active.
        lower[self.fixed] = np.maximum(-zero[equal:], 0.0)
        upper[self.fixed] = np.maximum(zero[equal:], 0.0)
        return {"ub": ub, "eq": zero[:equal].copy(), "lower": lower, "upper": upper}

    def stacked(self, dual: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers (zero, nonneg) of the cone rows, 0 where none are given."""
        n = len(self.bounds)
        ub = dual.get("ub", np.zeros(self.b_ub.size))
        eq = dual.get("eq", np.zeros(self.b_eq.size))
        lower = dual.get("lower", np.zeros(n))
        upper = dual.get("upper", np.zeros(n))
        low, high = self.bounded
        zero = np.concatenate((eq, (upper - lower)[self.fixed]))
        return zero, np.concatenate((ub[self.kept], lower[low], upper[high]))


def _rows(n: int, A: object, b: object, name: str) -> tuple[SparseMatrix, FloatArray]:
    if A is None and b is None:
        return csc(f"A_{name}", sparse.csc_array((0, n))), cast(FloatArray, freeze(np.zeros(0)))
    if A is None or b is None:
        given = f"b_{name}" if A is None else f"A_{name}"
        missing = f"A_{name}" if A is None else f"b_{name}"
        raise InvalidProblem(f"{given} is given without {missing}; give both or neither")
    side = vector(f"b_{name}", np.atleast_1d(reals(f"b_{name}", b)), infinite=True)
    return csc(f"A_{name}", A, (side.size, n)), side


def _refuse_fake_infinity(name: str, values: FloatArray) -> None:
    """Refuse numbers such as 1e30 that stand for infinity in other programs."""
    for place in np.argwhere(np.isfinite(values) & (np.abs(values) >= FAKE_INFINITY)):
        index = ", ".join(str(i) for i in place)
        raise InvalidProblem(
            f"{name}[{index}] is {values[tuple(place)]:g}; write inf for a bound that does not exist"
        )
