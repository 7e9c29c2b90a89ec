"""Linear functions and convex quadratics, by a matrix or by a kernel.

    Linear            f(x) = c'x
    Quadratic         f(x) = x'Hx/2 + linear'x
    KernelQuadratic   f(x) = z'Kz/2 + linear'x,     z_p = sum of sign_i x_i over i with point_i = p

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
    require_shape,
    same_size,
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

    Parameters
    ----------
    H : (n, n) matrix
        The Hessian.
    linear : (n,) array
        The linear part.

    Examples
    --------
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
    rows = function.K.shape[0]
    variables = function.sign.size
    points = np.arange(variables) if value is None else np.array(value, dtype=np.intp)
    is_row = (points >= 0) & (points < rows)
    if points.size != variables or not is_row.all():
        raise InvalidProblem("point must give, for each variable, the row of K it belongs to")
    points.flags.writeable = False
    return points


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
    sign: FloatArray = attrs.field(converter=as_vector, validator=same_size("linear"))
    linear: FloatArray = attrs.field(converter=as_vector)
    point: IntArray = attrs.field(default=None, converter=_as_points)

    feature: ClassVar[Feature] = Feature.MARGIN

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
