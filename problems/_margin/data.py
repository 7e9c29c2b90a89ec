"""What the user gives to a support vector regression, checked field by field and then together.

The functions `given_*` convert one argument of a constructor, the functions `require_*` and
`refuse_*` look at several that must agree.
"""

from __future__ import annotations

import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram

__all__ = [
    "given_kernel",
    "given_penalty",
    "given_targets",
    "given_tube",
    "require_target_of_each_point",
]


def given_kernel(K: Gram | MatrixLike) -> Gram:
    """Return a kernel matrix, positive semidefinite up to rounding."""
    return Gram.of(K)


def given_targets(y: npt.ArrayLike) -> FloatArray:
    """Return finite targets."""
    return vector("y", y)


def given_penalty(C: float) -> float:
    """Return a positive finite penalty."""
    return positive("C", C)


def given_tube(epsilon: float) -> float:
    """Return the half-width of a tube, zero or positive."""
    return positive("epsilon", epsilon, zero=True)


def require_target_of_each_point(y: FloatArray, K: Gram) -> None:
    """Refuse targets that are more or fewer than the points of K."""
    if y.size != K.size:
        raise InvalidProblem(f"y has {y.size} entries; expected {K.size}")
