"""The ordered cone cut off by a price: nearest point by pooling, linear minimiser by prefixes.

    X = {x_1/d_1 >= x_2/d_2 >= .. >= x_n/d_n >= 0,  price'x <= total}

Its vertices are 0 and the prefixes (d_1, .., d_k, 0, .., 0) scaled to the total. The steps d carry
a sigma-order (d_i = sigma^-(i-1)) as well as a diagonal metric: with x = d beta, beta is
nonincreasing, and the nearest point is

    x = d max(PAVA((y - lam price) / d, weights d^2), 0),

PAVA the nonincreasing regression (pooled adjacent violators), lam = 0 where the price is not
reached and otherwise the root of a nonincreasing piecewise linear function, solved for on its
piece.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import EPS, FloatArray, as_positive, as_vector, same_size
from klopt.errors import InvalidProblem
from klopt.model.features import Feature
from klopt.model.sets.projections import MAX_NEWTON_STEPS, newton_in_bracket
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["OrderedCone", "pooled"]

MIN_ENTRY_RATIO = 1e-150
"""The smallest entry of steps and of price over the largest: its square is still positive."""


def pooled(y: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the beta >= 0, nonincreasing, for which steps * beta is nearest to y.

    >>> pooled(np.array([1.0, 3.0, -1.0]), np.ones(3))
    array([2., 2., 0.])
    """
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(y / steps, weights=steps * steps, increasing=False)
    return np.maximum(fit.x, 0.0)


@attrs.frozen(eq=False, slots=False)
class OrderedCone(SimpleSet):
    """The points x >= 0 with x / steps nonincreasing and price'x <= total.

    >>> cone = OrderedCone(steps=[1.0, 1.0, 1.0], price=[1.0, 1.0, 1.0], total=3.0)
    >>> cone.project(np.array([0.5, 1.5, -1.0]))
    array([1., 1., 0.])
    >>> cone.linear_minimiser(np.array([1.0, -2.0, 5.0]))
    array([1.5, 1.5, 0. ])
    """

    steps: FloatArray = attrs.field(converter=as_vector)
    price: FloatArray = attrs.field(converter=as_vector, validator=same_size("steps"))
    total: float = attrs.field(default=1.0, converter=as_positive)

    features: ClassVar[frozenset[Feature]] = frozenset({Feature.ORDERED})

    def __attrs_post_init__(self) -> None:
        if not self.steps.size:
            raise InvalidProblem("steps is empty; an ordered cone needs at least one entry")
        for name, values in (("steps", self.steps), ("price", self.price)):
            low = np.flatnonzero(values <= MIN_ENTRY_RATIO * float(np.abs(values).max()))
            if low.size:
                first = low[0]
                raise InvalidProblem(
                    f"{name}[{first}] is {values[first]:g}; expected positive numbers of like size"
                )

    @property
    def size(self) -> int:
        return int(self.steps.size)

    @property
    def radius(self) -> float:
        prefix_norms = np.cumsum(self.steps)
        prefix_prices = np.cumsum(self.steps * self.price)
        return float(self.total * np.max(prefix_norms / prefix_prices))

    def project(self, x: FloatArray) -> FloatArray:
        nearest = self.steps * pooled(x, self.steps)
        if float(self.price @ nearest) <= self.total:
            return nearest
        return self._nearest_at_total(x)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        # The values of g'x at the prefixes, each scaled to price 1; at the vertex 0 it is 0.
        values = np.cumsum(self.steps * g) / np.cumsum(self.steps * self.price)
        best = int(np.argmin(values))
        z = np.zeros_like(g)
        if values[best] < 0:
            z[: best + 1] = self.steps[: best + 1]
            z *= self.total / float(self.price @ z)
        return z

    def centre(self) -> FloatArray:
        """Return the mean of the vertices."""
        heights = self.total / np.cumsum(self.steps * self.price) / (self.size + 1)
        return self.steps * np.cumsum(heights[::-1])[::-1]

    def violation(self, x: FloatArray) -> float:
        # The order of x / steps, measured in units of x.
        smaller = np.minimum(self.steps[1:], self.steps[:-1])
        order_error = float((smaller * np.diff(x / self.steps)).max(initial=0.0))
        price_error = float(self.price @ x) - self.total
        return max(order_error, -float(x[-1]), price_error, 0.0)

    def _nearest_at_total(self, x: FloatArray) -> FloatArray:
        """The nearest point with price'x = total, by Newton's method on lam inside a bracket."""
        from scipy.optimize import isotonic_regression

        d = self.steps
        price = self.price
        squares = d * d
        low = 0.0
        high = float(np.max(np.cumsum(d * x) / np.cumsum(d * price)))
        lam = low
        for _ in range(MAX_NEWTON_STEPS):
            moved = x - lam * price
            fit = isotonic_regression(moved / d, weights=squares, increasing=False)
            starts = fit.blocks[:-1]
            cost = np.add.reduceat(d * price, starts)
            weight = np.add.reduceat(squares, starts)
            beta = np.maximum(np.add.reduceat(d * moved, starts) / weight, 0.0)

            # price'x falls with lam: the sign of the excess says on which side of the root lam is.
            excess = float(cost @ beta) - self.total
            if excess > 0:
                low = lam
            else:
                high = lam
            # On this piece the blocks stay as they are, and beta changes by -cost / weight.
            decrease = float((cost * cost / weight)[beta > 0].sum())
            following = newton_in_bracket(lam, excess, decrease, low, high)
            if abs(excess) <= 4 * EPS * self.total or not low < following < high:
                break
            lam = following

        block_sizes = np.diff(np.append(starts, d.size))
        nearest: FloatArray = d * np.repeat(beta, block_sizes)
        # The last rounding must not leave the set.
        price_now = float(price @ nearest)
        if price_now > self.total:
            nearest = nearest * (self.total / price_now)
        return nearest
