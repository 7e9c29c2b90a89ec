"""Linear functions and convex quadratics, by a matrix or by a kernel.

    Linear            f(x) = c'x
    Quadratic         f(x) = x'Hx/2 + linear'x
    KernelQuadratic   f(x) = z'Kz/2 + linear'x,     z_p = sum of sign_i x_i over the variables i of p

The last is the dual of a support vector machine: H = S K S' with S the signs of the variables at
their points. H is never formed, so a point with two variables (regression) costs no more than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import (
    FloatArray,
    IntArray,
    as_symmetric,
    as_vector,
    freeze,
    require_shape,
    require_size,
)
from klopt.errors import InvalidProblem
from klopt.model.features import Feature

__all__ = ["KernelQuadratic", "Linear", "Quadratic"]


@attrs.frozen(eq=False, slots=False)
class Linear:
    """f(x) = c'x."""

    c: FloatArray = attrs.field(converter=as_vector)

    feature: ClassVar[Feature] = Feature.LINEAR

    @property
    def size(self) -> int:
        return int(self.c.size)

    def value(self, x: FloatArray) -> float:
        return float(self.c @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.c


@attrs.frozen(eq=False, slots=False)
class Quadratic:
    """f(x) = x'Hx/2 + linear'x with an explicit symmetric, positive semidefinite matrix H.

    >>> Quadratic([[2.0, 0.0], [0.0, 2.0]], [0.0, -2.0]).gradient(np.array([1.0, 1.0]))
    array([2., 0.])
    """

    H: FloatArray = attrs.field(converter=as_symmetric)
    linear: FloatArray = attrs.field(converter=as_vector)

    feature: ClassVar[Feature] = Feature.QUADRATIC

    def __attrs_post_init__(self) -> None:
        n = self.linear.size
        require_shape("H", self.H.shape, (n, n))

    @property
    def size(self) -> int:
        return int(self.linear.size)

    def value(self, x: FloatArray) -> float:
        return float(x @ (self.H @ x) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.H @ x + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.H @ x

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        block: FloatArray = self.H[np.ix_(rows, columns)]
        return block

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.H)


def _points(value: npt.ArrayLike | None, function: KernelQuadratic) -> IntArray:
    """Return the point of each variable; without a value each variable has one of its own."""
    points = np.arange(function.sign.size) if value is None else np.array(value, dtype=np.intp)
    return freeze(points)


if TYPE_CHECKING:

    def _as_points(value: npt.ArrayLike | None) -> IntArray: ...

else:
    _as_points = attrs.Converter(_points, takes_self=True)


@attrs.frozen(eq=False, slots=False)
class KernelQuadratic:
    """f(x) = z'Kz/2 + linear'x with z the signed sums of x over the points it belongs to.

    Parameters
    ----------
    K:
        Kernel matrix of the points.
    sign:
        Sign of each variable: the label in classification, +1 and -1 in regression.
    linear:
        Linear term of each variable.
    point:
        Point, a row of K, that each variable belongs to; one variable a point by default.
    """

    K: FloatArray
    sign: FloatArray = attrs.field(converter=as_vector)
    linear: FloatArray = attrs.field(converter=as_vector)
    point: IntArray = attrs.field(default=None, converter=_as_points)

    feature: ClassVar[Feature] = Feature.MARGIN

    def __attrs_post_init__(self) -> None:
        require_size("sign", self.sign, self.linear.size)
        rows = self.K.shape[0]
        each_has_one = self.point.size == self.sign.size
        if not each_has_one or ((self.point < 0) | (self.point >= rows)).any():
            raise InvalidProblem("point must give, for each variable, the row of K it belongs to")

    @property
    def size(self) -> int:
        return int(self.linear.size)

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Return z, the coefficients of the points."""
        weights: FloatArray = self.sign * x
        z = np.bincount(self.point, weights=weights, minlength=self.K.shape[0])
        return z.astype(float, copy=False)

    def value(self, x: FloatArray) -> float:
        z = self.coefficients(x)
        return float(z @ (self.K @ z) / 2 + self.linear @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.matvec(x) + self.linear

    def matvec(self, x: FloatArray) -> FloatArray:
        z = self.coefficients(x)
        return self.sign * (self.K @ z)[self.point]

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        K = self.K[np.ix_(self.point[rows], self.point[columns])]
        return K * np.outer(self.sign[rows], self.sign[columns])

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.K)[self.point] * self.sign**2
