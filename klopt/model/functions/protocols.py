"""What an objective answers: every one, a quadratic one, and a smooth one near a point.

    f : R^size -> R convex,     value(x) = f(x),     gradient(x) = f'(x)  (a subgradient at a kink)

A quadratic f(x) = x'Hx/2 + linear'x also opens up: `matvec(x)` is Hx, `block` and `diagonal` are
entries of H, which need not exist as a matrix. A `HessianOperator` is a smooth f near one point:
its value, its gradient and products with its Hessian H there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from klopt.arrays import FloatArray, IntArray
from klopt.model.features import Feature

__all__ = ["HessianOperator", "Objective", "QuadraticLike"]


@runtime_checkable
class Objective(Protocol):
    """A convex function of a vector of `size` entries."""

    @property
    def size(self) -> int: ...

    @property
    def feature(self) -> Feature: ...

    def value(self, x: FloatArray) -> float: ...

    def gradient(self, x: FloatArray) -> FloatArray: ...


@runtime_checkable
class QuadraticLike(Objective, Protocol):
    """A convex quadratic x'Hx/2 + linear'x whose H can be applied and looked into."""

    @property
    def linear(self) -> FloatArray: ...

    def matvec(self, x: FloatArray) -> FloatArray: ...

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray: ...

    def diagonal(self) -> FloatArray: ...


class HessianOperator(Protocol):
    """A convex function near one point, by products with its Hessian H."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> FloatArray: ...

    def matvec(self, x: FloatArray) -> FloatArray: ...

    def solver(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return a preconditioner: a positive definite map near (H + diag(d))^-1, d > 0."""
        ...
