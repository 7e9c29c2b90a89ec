"""What the user gives to a support vector machine, checked field by field and then together.

The functions `given_*` convert one argument of a constructor, the functions `require_*` and
`refuse_*` look at several that must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.problems._margin.proof import Penalty

__all__ = [
    "PenaltyLike",
    "given_kernel",
    "given_penalty",
    "given_targets",
    "given_tube",
    "penalty_text",
    "require_penalty_of_each_point",
    "require_target_of_each_point",
]


PenaltyLike = float | Sequence[float] | npt.NDArray[Any]
"""A penalty of all points, or of each, as users give it."""


def given_kernel(K: Gram | MatrixLike) -> Gram:
    """Return a kernel matrix, positive semidefinite up to rounding."""
    return Gram.of(K)


def given_targets(y: npt.ArrayLike) -> FloatArray:
    """Return finite targets."""
    return vector("y", y)


def given_penalty(C: PenaltyLike, *, infinite: bool = False) -> Penalty:
    """Return a positive finite penalty, or one for each point; equal ones are one number.

    >>> given_penalty([2.0, 2.0]), given_penalty([1.0, 2.0])
    (2.0, array([1., 2.]))
    """
    if np.ndim(C) == 0:
        return positive("C", C, infinite=infinite)
    penalties = vector("C", C)
    if not penalties.size or not (penalties > 0).all():
        at = int(np.argmin(penalties)) if penalties.size else 0
        found = f"C[{at}] is {penalties[at]:g}" if penalties.size else "C has no entries"
        raise InvalidProblem(
            f"{found}; expected a positive number for each point (leave points of weight 0 out)"
        )
    if (penalties == penalties[0]).all():
        return float(penalties[0])
    return penalties


def penalty_text(C: Penalty) -> str:
    """Return a penalty as descriptions show it.

    >>> penalty_text(2.0), penalty_text(np.array([1.0, 3.0]))
    ('C=2', 'C=1..3')
    """
    if isinstance(C, np.ndarray):
        return f"C={C.min():g}..{C.max():g}"
    return f"C={C:g}"


def require_penalty_of_each_point(C: Penalty, n: int) -> None:
    """Refuse penalties that are more or fewer than the n points."""
    if isinstance(C, np.ndarray) and C.size != n:
        raise InvalidProblem(f"C has {C.size} entries; expected one number, or {n}")


def given_tube(epsilon: float) -> float:
    """Return the half-width of a tube, zero or positive."""
    return positive("epsilon", epsilon, zero=True)


def require_target_of_each_point(y: FloatArray, K: Gram) -> None:
    """Refuse targets that are more or fewer than the points of K."""
    if y.size != K.size:
        raise InvalidProblem(f"y has {y.size} entries; expected {K.size}")
