"""The simplex of sigma-ordered vectors: nearest point by pooling, linear minimiser at a prefix.

    X = {x_i >= sigma x_{i+1} >= 0, 1'x = total},     sigma >= 1

Its vertices are the prefixes (e_1, .., e_k, 0, .., 0) of e_i = sigma^-(i-1), scaled to the total.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import FloatArray, as_positive, as_positive_integer, positive
from klopt.errors import InvalidProblem
from klopt.model.features import Feature
from klopt.model.sets.projections import nearest_ordered, prefix_minimiser, prefix_weights
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["OrderedSimplex"]


def _sigma(value: float) -> float:
    sigma = positive("sigma", value)
    if sigma < 1:
        raise InvalidProblem(f"sigma is {sigma}; an order x_i >= sigma x_(i+1) needs sigma >= 1")
    return sigma


@attrs.frozen(slots=False)
class OrderedSimplex(SimpleSet):
    """The points with x_i >= sigma x_{i+1} >= 0 and 1'x = total.

    Parameters
    ----------
    n : int
        The number of entries.
    sigma : float
        The ratio of the order, at least 1.
    total : float
        The sum of the entries.

    Examples
    --------
    >>> OrderedSimplex(3).linear_minimiser(np.array([1.0, -2.0, 5.0]))
    array([0.5, 0.5, 0. ])
    """

    n: int = attrs.field(converter=as_positive_integer)
    sigma: float = attrs.field(default=1.0, converter=_sigma)
    total: float = attrs.field(default=1.0, converter=as_positive)

    features: ClassVar[frozenset[Feature]] = frozenset({Feature.ORDERED})

    @property
    def size(self) -> int:
        return self.n

    @property
    def radius(self) -> float:
        return self.total

    def project(self, x: FloatArray) -> FloatArray:
        return nearest_ordered(x, self.sigma, self.total)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        return prefix_minimiser(g, self.sigma, self.total)

    def centre(self) -> FloatArray:
        """Return the mean of the vertices.

        The vertex of length k is e / (e_1 + .. + e_k) up to entry k: entry i of the sum of all
        vertices is e_i times the sum of those factors over k >= i.
        """
        weights = prefix_weights(self.n, self.sigma)
        factors = 1.0 / np.cumsum(weights)
        sum_of_vertices = weights * np.cumsum(factors[::-1])[::-1]
        return sum_of_vertices * (self.total / float(sum_of_vertices.sum()))

    def violation(self, x: FloatArray) -> float:
        sum_error = abs(float(x.sum()) - self.total)
        order_error = float((self.sigma * x[1:] - x[:-1]).max(initial=0.0))
        return max(sum_error, order_error, -float(x[-1]))
