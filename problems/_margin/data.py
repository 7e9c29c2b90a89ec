"""What the user gives to a support vector machine, checked field by field and then together.

The functions `given_*` convert one argument of a constructor, the functions `require_*` and
`refuse_*` look at several that must agree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels

__all__ = [
    "given_kernel",
    "given_labels",
    "given_penalty",
    "given_penalty_or_inf",
    "given_targets",
    "given_tube",
    "refuse_large",
    "require_label_of_each_point",
    "require_target_of_each_point",
]

MAX_PENALTY_TIMES_KERNEL = 1e18
"""The largest finite C times mean K_ii: beyond it no solver can tell C from infinity."""


def given_kernel(K: Gram | MatrixLike) -> Gram:
    """Return a kernel matrix, positive semidefinite up to rounding."""
    return Gram.of(K)


def given_labels(y: npt.ArrayLike) -> FloatArray:
    """Return labels -1 and +1, both of which occur."""
    return binary_labels(y, None)


def given_targets(y: npt.ArrayLike) -> FloatArray:
    """Return finite targets."""
    return vector("y", y)


def given_penalty(C: float) -> float:
    """Return a positive finite penalty."""
    return positive("C", C)


def given_penalty_or_inf(C: float) -> float:
    """Return a positive penalty, infinite for the hard margin."""
    return positive("C", C, infinite=True)


def given_tube(epsilon: float) -> float:
    """Return the half-width of a tube, zero or positive."""
    return positive("epsilon", epsilon, zero=True)


def require_label_of_each_point(y: FloatArray, K: Gram) -> None:
    """Refuse labels that are more or fewer than the points of K."""
    if y.size != K.size:
        raise InvalidProblem(
            f"y has {y.size} entries; expected {K.size}; labels must be the numbers -1 and +1"
        )


def require_target_of_each_point(y: FloatArray, K: Gram) -> None:
    """Refuse targets that are more or fewer than the points of K."""
    if y.size != K.size:
        raise InvalidProblem(f"y has {y.size} entries; expected {K.size}")


def refuse_large(C: float, kappa: float) -> None:
    """Refuse a finite C that no solver can tell from an infinite one; kappa is the mean K_ii."""
    if np.isfinite(C) and C * kappa > MAX_PENALTY_TIMES_KERNEL:
        raise InvalidProblem(
            f"C is {C:g}, which times K is {C * kappa:.0e}; write inf for the hard margin"
        )
