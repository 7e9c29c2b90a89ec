"""A user's own convex function, by its value and its (sub)gradient."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from klopt.arrays import FloatArray, accuracy_or_none, read_only
from klopt.errors import InvalidProblem
from klopt.model.features import Feature

__all__ = ["Oracle"]


@attrs.frozen(eq=False, slots=False)
class Oracle:
    """A user's own convex function of `size` variables, by its value and (sub)gradient.

    Parameters
    ----------
    size:
        Number of variables.
    function, gradient_function:
        The value and the (sub)gradient at x.
    smooth:
        False says that the gradient jumps.
    lipschitz:
        A bound on the change of the gradient per unit step, None where it is not known; a backend
        may then backtrack.
    accuracy:
        By how much value and gradient may be off, None where that is not known: then what klopt
        finds is an estimate. |value(x) - f(x)| <= accuracy (1 + |f(x)|), also where f is meant at
        a point that differs from x by the rounding of its entries, and each entry of the gradient
        is right up to accuracy (1 + its largest entry).

    >>> import numpy as np
    >>> Oracle(2, lambda x: float(x @ x), lambda x: 2 * x).gradient(np.array([1.0, -1.0]))
    array([ 2., -2.])
    """

    size: int
    function: Callable[[FloatArray], float]
    gradient_function: Callable[[FloatArray], FloatArray]
    smooth: bool = True
    lipschitz: float | None = None
    accuracy: float | None = attrs.field(default=None, converter=accuracy_or_none)

    def __attrs_post_init__(self) -> None:
        if not (callable(self.function) and callable(self.gradient_function)):
            raise InvalidProblem(
                "function and gradient must be functions of x: its value and its (sub)gradient"
            )

    @property
    def feature(self) -> Feature:
        return Feature.SMOOTH if self.smooth else Feature.NONSMOOTH

    def value(self, x: FloatArray) -> float:
        return float(self.function(x))

    def gradient(self, x: FloatArray) -> FloatArray:
        # The array may be the user's own, handed out at every call.
        return read_only(self.gradient_function(x))
