"""Smooth convex functions that know their curvature: as a matrix where variables are few, by products where many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import attrs
import numpy as np

from klopt.arrays import FloatArray, read_only
from klopt.model.cones import Feature
from klopt.model.memo import remember_last

__all__ = [
    "DenseHessian",
    "HessianOperator",
    "LocalModel",
    "MatrixFreeFunction",
    "SmoothFunction",
    "StartModel",
]


def _read_only_matrix(function: Callable[[], FloatArray]) -> Callable[[], FloatArray]:
    """The function, its matrix read-only: a proof may read it after a backend did."""
    return lambda: read_only(function())


@attrs.frozen(eq=False)
class LocalModel:
    """A convex function near one point: value and gradient there and, when asked for, a model of its curvature.

    `curvature()` returns a positive semidefinite matrix; the nearer to the Hessian, the fewer
    steps. `lower` bounds the least value over the set from below where the function knows a better
    bound than its tangent gives. Where it is nowhere below  value + gradient'd + d'Bd/2,  d the way
    from the point, `below()` returns such a B: the least value of that quadratic is a bound whose
    error is a square.
    """

    value: float
    gradient: FloatArray = attrs.field(converter=read_only)
    curvature: Callable[[], FloatArray]
    lower: float = -np.inf
    below: Callable[[], FloatArray] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_read_only_matrix)
    )


class StartModel(NamedTuple):
    """A quadratic x'Hx/2 + linear'x whose least point over a set is a good start, and a guess of that point.

    `damping` is the share of the curvature that first steps should add to it, where it misses what
    a long step meets.
    """

    H: FloatArray
    linear: FloatArray
    guess: FloatArray | None = None
    damping: float = 0.0


@dataclass(frozen=True, eq=False)
class SmoothFunction:
    """A smooth convex function that knows its curvature: one call gives value, gradient and a lazy second order model.

    `rough()` is a quadratic whose least point over the set is a good start, and `lipschitz()`
    bounds how fast the gradient changes over the set, where the function knows that. The last
    answer is kept, so that value, gradient and curvature at one point cost one evaluation.

    >>> def quartic(x):
    ...     square = float(x @ x)
    ...     hessian = 4 * square * np.eye(x.size) + 8 * np.outer(x, x)
    ...     return LocalModel(square**2, 4 * square * x, lambda: hessian)
    >>> SmoothFunction(2, quartic).gradient(np.array([1.0, 0.0]))
    array([4., 0.])
    """

    size: int
    function: Callable[[FloatArray], LocalModel]
    rough: Callable[[], StartModel] | None = None
    lipschitz: Callable[[], float] | None = None

    feature = property(lambda self: Feature.CURVED)

    @remember_last
    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        return self.function(x)

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient


class HessianOperator(Protocol):
    """A convex function near one point: value, gradient, products with its Hessian H, and nearly (H + diag(d))^-1."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> FloatArray: ...

    def matvec(self, x: FloatArray) -> FloatArray: ...

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return a symmetric positive definite map near (H + diag(d))^-1, d > 0: it preconditions."""
        ...


@dataclass(frozen=True, eq=False)
class DenseHessian:
    """A function that knows its curvature as one that applies and inverts it: for few variables."""

    local: LocalModel

    value = property(lambda self: self.local.value)
    gradient = property(lambda self: self.local.gradient)

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.local.curvature() @ x

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        return partial(np.matmul, np.linalg.inv(self.local.curvature() + np.diag(d)))


@dataclass(frozen=True, eq=False)
class MatrixFreeFunction:
    """A smooth convex function of so many variables that its Hessian is never formed. The last answer is kept."""

    size: int
    function: Callable[[FloatArray], HessianOperator]

    feature = property(lambda self: Feature.APPLIED)

    @remember_last
    def near(self, x: FloatArray) -> HessianOperator:
        """Return the function near x."""
        return self.function(x)

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return read_only(self.near(x).gradient)
