"""Smooth convex functions with a second-order model at every point.

Near a point x, with d the step from x,

    f(x + d)  ~  value + gradient'd + d'Hd/2,     H positive semidefinite

`LocalModel` holds these with H as a matrix (`curvature()`), for few variables; `HessianOperator`
with products Hd and an approximate inverse of H + diag(d), for many. A `SmoothFunction` and a
`MatrixFreeFunction` give one or the other at any x; they keep the last, so that value, gradient and
curvature at one point cost one evaluation.

Some functions also know a lower model: a matrix B, `below()`, with

    f(x + d)  >=  value + gradient'd + d'Bd/2     for every d that stays in the set.

The minimum of that quadratic is a lower bound whose error is quadratic in the distance to the
optimum, while that of the tangent is linear in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import attrs
import numpy as np

from klopt.arrays import FloatArray, accuracy_or_none, read_only
from klopt.model.features import Feature
from klopt.model.functions.protocols import HessianOperator
from klopt.model.memo import lock, remember_last

__all__ = [
    "DenseHessian",
    "LocalModel",
    "MatrixFreeFunction",
    "SmoothFunction",
    "StartModel",
]


def _locked(function: Callable[[], FloatArray]) -> Callable[[], FloatArray]:
    """Return the function with its matrix made read-only."""
    return lambda: lock(function())


def _copied(function: Callable[[], FloatArray]) -> Callable[[], FloatArray]:
    """Return the function with a read-only copy of its matrix: the proof reads it, too."""
    return lambda: read_only(function())


@attrs.frozen(eq=False)
class LocalModel:
    """A convex function near one point x.

    Parameters
    ----------
    value, gradient:
        f(x) and f'(x).
    curvature:
        Computes H, a positive semidefinite matrix; the nearer to the Hessian, the fewer steps.
    lower:
        A lower bound of the minimum over the set where the function knows a better one than its
        tangent gives.
    below:
        Computes B, the matrix of a quadratic that is nowhere above the function.
    """

    value: float
    gradient: FloatArray = attrs.field(converter=read_only)
    curvature: Callable[[], FloatArray] = attrs.field(converter=_locked)
    lower: float = -np.inf
    below: Callable[[], FloatArray] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_copied)
    )


class StartModel(NamedTuple):
    """A quadratic x'Hx/2 + linear'x whose minimiser over a set is a good start.

    `guess` is a guess of that minimiser. `damping` is the share of the curvature that first steps
    should add to it, where it misses what a long step meets.
    """

    H: FloatArray
    linear: FloatArray
    guess: FloatArray | None = None
    damping: float = 0.0


@attrs.frozen(eq=False, slots=False)
class SmoothFunction:
    """A smooth convex function: one call gives value, gradient and a lazy second-order model.

    Parameters
    ----------
    size:
        Number of variables.
    function:
        The local model at x.
    start_model:
        Computes a quadratic whose minimiser over the set is a good start, where there is one.
    lipschitz:
        Computes a bound on how fast the gradient changes over the set, where it is known.
    accuracy:
        By how much values and gradients may be off, as of an `Oracle`.

    >>> def quartic(x):
    ...     square = float(x @ x)
    ...     hessian = 4 * square * np.eye(x.size) + 8 * np.outer(x, x)
    ...     return LocalModel(square**2, 4 * square * x, lambda: hessian)
    >>> SmoothFunction(2, quartic).gradient(np.array([1.0, 0.0]))
    array([4., 0.])
    """

    size: int
    function: Callable[[FloatArray], LocalModel]
    start_model: Callable[[], StartModel] | None = None
    lipschitz: Callable[[], float] | None = None
    accuracy: float | None = attrs.field(default=None, converter=accuracy_or_none)

    feature: ClassVar[Feature] = Feature.CURVED

    @remember_last
    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        return self.function(x)

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient


@attrs.frozen(eq=False)
class DenseHessian:
    """A local model as a `HessianOperator`: H is applied and inverted as a matrix."""

    local: LocalModel

    @property
    def value(self) -> float:
        return self.local.value

    @property
    def gradient(self) -> FloatArray:
        return self.local.gradient

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.local.curvature() @ x

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        inverse = np.linalg.inv(self.local.curvature() + np.diag(d))
        return partial(np.matmul, inverse)


@attrs.frozen(eq=False, slots=False)
class MatrixFreeFunction:
    """A smooth convex function of so many variables that its Hessian is never formed.

    Values and gradients are off by at most `accuracy`, as of an `Oracle`.
    """

    size: int
    function: Callable[[FloatArray], HessianOperator]
    accuracy: float | None = attrs.field(default=None, converter=accuracy_or_none)

    feature: ClassVar[Feature] = Feature.APPLIED

    @remember_last
    def near(self, x: FloatArray) -> HessianOperator:
        """Return the function near x."""
        return self.function(x)

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return read_only(self.near(x).gradient)
