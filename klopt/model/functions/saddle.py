"""Couplings phi(x, y) of saddle points, convex in x and concave in y.

    Bilinear       phi(x, y) = x'My + left'x + right'y
    SaddleOracle   a user's own phi, by its value and both (sub)gradients
    Splitting      a phi whose y = (z, w) splits into two parts:

        minimise over x   max over z of h(x, z)   +   max over w of k(x, w)   =:   f(x) + g(x)

Besides value and gradients a `Splitting` knows a proximal step of both functions,

    inner(v, sigma)   argmin over x of the left set of  f(x) + sigma/2 |x - v|^2,  by its dual in z
    outer(v, sigma)   argmin over all x of              g(x) + sigma/2 |x - v|^2,  and its w

so that methods which alternate between the two need nothing else, and the form measures what they
find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, accuracy_or_none, as_matrix, read_only, vector
from klopt.model.functions.smooth import SmoothFunction

__all__ = ["Bilinear", "ProximalStep", "SaddleOracle", "Splitting"]


def _linear_term(
    value: npt.ArrayLike | None, coupling: Bilinear, field: attrs.Attribute[Any]
) -> FloatArray:
    """Return the vector left or right of a coupling; without a value it is zero."""
    rows, columns = coupling.M.shape
    size = rows if field.name == "left" else columns
    return vector(field.name, np.zeros(size) if value is None else value, size)


if TYPE_CHECKING:

    def _as_linear_term(value: npt.ArrayLike | None) -> FloatArray: ...

else:
    _as_linear_term = attrs.Converter(_linear_term, takes_self=True, takes_field=True)


@attrs.frozen(eq=False, slots=False)
class Bilinear:
    """phi(x, y) = x'My + left'x + right'y, minimised over x and maximised over y.

    The linear terms are zero by default.
    """

    M: FloatArray = attrs.field(converter=as_matrix)
    left: FloatArray = attrs.field(default=None, converter=_as_linear_term)
    right: FloatArray = attrs.field(default=None, converter=_as_linear_term)

    def value(self, x: FloatArray, y: FloatArray) -> float:
        return float(x @ (self.M @ y) + self.left @ x + self.right @ y)

    def gradients(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients (in x, in y)."""
        return self.M @ y + self.left, x @ self.M + self.right


@attrs.frozen(eq=False, slots=False)
class SaddleOracle:
    """A user's own phi(x, y), convex in x and concave in y, by its value and (sub)gradients.

    Values and gradients are off by at most `accuracy`, as of an `Oracle`.
    """

    function: Callable[[FloatArray, FloatArray], float]
    gradient_x: Callable[[FloatArray, FloatArray], FloatArray]
    gradient_y: Callable[[FloatArray, FloatArray], FloatArray]
    accuracy: float | None = attrs.field(default=None, converter=accuracy_or_none, kw_only=True)

    def value(self, x: FloatArray, y: FloatArray) -> float:
        return float(self.function(x, y))

    def gradients(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients (in x, in y)."""
        # The arrays may be the user's own, handed out at every call.
        return read_only(self.gradient_x(x, y)), read_only(self.gradient_y(x, y))


@attrs.frozen(eq=False)
class ProximalStep:
    """A proximal step of f: minimise `dual` over z's set, then take x = primal(z)."""

    dual: SmoothFunction
    primal: Callable[[FloatArray], FloatArray]


@attrs.frozen(eq=False, slots=False)
class Splitting(SaddleOracle):
    """A coupling with its two proximal steps.

    Parameters
    ----------
    function, gradient_x, gradient_y:
        phi and its gradients, y being z and w end to end.
    inner:
        The proximal step of f at (v, sigma), by its dual.
    outer:
        The proximal step (x, w) of g at (v, sigma).
    start, sigma:
        The first x and the first sigma.
    accuracy:
        By how much values and gradients may be off.
    """

    inner: Callable[[FloatArray, float], ProximalStep]
    outer: Callable[[FloatArray, float], tuple[FloatArray, FloatArray]]
    start: FloatArray = attrs.field(converter=read_only)
    sigma: float
