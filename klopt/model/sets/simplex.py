"""The simplex: nearest point by sorting, linear minimiser at a vertex, entropy as mirror map.

    X = {x >= 0, 1'x = total}

The entropy h(x) = sum_i x_i log(x_i / total) has, up to a constant in theta, the mirror map

    mirror(theta) = total exp(theta) / 1'exp(theta),     mirror_dual(x) = log(x / total),

and is strongly convex in the 1-norm, whose dual is the maximum norm.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import FloatArray, as_positive, as_positive_integer
from klopt.model.sets.projections import simplex_projection
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["Simplex", "entropy_gradient", "entropy_point"]

LOG_ARGUMENT_FLOOR = 1e-300
"""What the logarithm of zero is the logarithm of: finite, and the mirror map takes it back to 0."""


def entropy_point(theta: FloatArray, total: float) -> FloatArray:
    """Return total exp(theta) / 1'exp(theta), the mirror map of the entropy.

    >>> entropy_point(np.log([1.0, 3.0]), 2.0)
    array([0.5, 1.5])
    """
    # The largest exponent is 0: nothing overflows, and what underflows is zero beside it.
    with np.errstate(under="ignore"):
        weights: FloatArray = np.exp(theta - theta.max())
    return weights * (total / float(weights.sum()))


def entropy_gradient(x: FloatArray, total: float) -> FloatArray:
    """Return log(x / total), finite also where x is zero."""
    return np.log(np.maximum(x / total, LOG_ARGUMENT_FLOOR))


@attrs.frozen(slots=False)
class Simplex(SimpleSet):
    """The points x >= 0 with 1'x = total.

    Parameters
    ----------
    n : int
        The number of entries.
    total : float
        Their sum.

    Examples
    --------
    >>> Simplex(3).project(np.array([2.0, 1.5, -3.0]))
    array([0.75, 0.25, 0.  ])
    """

    n: int = attrs.field(converter=as_positive_integer)
    total: float = attrs.field(default=1.0, converter=as_positive)

    has_mirror: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.n

    @property
    def radius(self) -> float:
        return self.total

    def project(self, x: FloatArray) -> FloatArray:
        return simplex_projection(x, self.total)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        vertex = np.zeros(self.n)
        vertex[int(np.argmin(g))] = self.total
        return vertex

    def centre(self) -> FloatArray:
        return np.full(self.n, self.total / self.n)

    def violation(self, x: FloatArray) -> float:
        sum_error = abs(float(x.sum()) - self.total)
        return max(sum_error, -float(x.min()))

    def mirror(self, theta: FloatArray) -> FloatArray:
        return entropy_point(theta, self.total)

    def mirror_dual(self, x: FloatArray) -> FloatArray:
        return entropy_gradient(x, self.total)

    @property
    def mirror_depth(self) -> float:
        return float(self.total * np.log(self.n))

    def dual_norm(self, g: FloatArray) -> float:
        return float(np.abs(g).max())
