"""Smooth convex functions that know their curvature: as a matrix where variables are few, by products where many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import Feature

__all__ = [
    "DenseHessian",
    "HessianOperator",
    "LocalModel",
    "MatrixFreeFunction",
    "SmoothFunction",
    "StartModel",
]


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A convex function near one point: value and gradient there and, when asked for, a model of its curvature.

    `curvature()` returns a positive semidefinite matrix; the nearer to the Hessian, the fewer
    steps. `lower` bounds the least value over the set from below where the function knows a better
    bound than its tangent gives. Where it is nowhere below  value + gradient'd + d'Bd/2,  d the way
    from the point, `below()` returns such a B: the least value of that quadratic is a bound whose
    error is a square.
    """

    value: float
    gradient: FloatArray
    curvature: Callable[[], FloatArray]
    lower: float = -np.inf
    below: Callable[[], FloatArray] | None = None


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
    ...     return LocalModel(float(x @ x) ** 2, 4 * (x @ x) * x, lambda: 4 * (x @ x) * np.eye(x.size) + 8 * np.outer(x, x))
    >>> SmoothFunction(2, quartic).gradient(np.array([1.0, 0.0]))
    array([4., 0.])
    """

    size: int
    function: Callable[[FloatArray], LocalModel]
    rough: Callable[[], StartModel] | None = None
    lipschitz: Callable[[], float] | None = None
    _last: list[tuple[FloatArray, LocalModel]] = field(default_factory=list, init=False, repr=False)

    feature = property(lambda self: Feature.CURVED)

    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        for point, known in self._last:
            if np.array_equal(point, x):
                return known
        local = self.function(x)
        self._last[:] = [(x.copy(), local)]
        return local

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient

    def __getstate__(self) -> dict[str, object]:
        return {
            **self.__dict__,
            "_last": [],
        }  # a curvature not asked for yet is a closure, which cannot travel


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
    _last: list[tuple[FloatArray, HessianOperator]] = field(
        default_factory=list, init=False, repr=False
    )

    feature = property(lambda self: Feature.APPLIED)

    def near(self, x: FloatArray) -> HessianOperator:
        """Return the function near x."""
        if not (self._last and np.array_equal(self._last[0][0], x)):
            self._last[:] = [(x.copy(), self.function(x))]
        return self._last[0][1]

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}
