"""The ordered cone cut off by a price: its nearest point by pooling, its linear minimiser by prefixes.

    {x_1/d_1 >= x_2/d_2 >= .. >= x_n/d_n >= 0,  price'x <= total}

Its vertices are 0 and the prefixes (d_1, .., d_k, 0, .., 0) scaled to the total. The steps d carry
a sigma-order (d_i = sigma^-(i-1)) as well as a diagonal metric: with x = d beta, beta is
nonincreasing, and the nearest point is

    x = d max(PAVA((y - lam price) / d, weights d^2), 0),

PAVA the nonincreasing regression (pooled adjacent violators), lam = 0 where the price is not
reached and otherwise the root of a nonincreasing piecewise linear function, solved for on its
piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Feature
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["OrderedCone", "pooled"]

_STEPS = 100
_RANGE = 1e-150


def pooled(y: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the beta for which steps * beta is the nearest point to y with beta nonincreasing and nonnegative.

    >>> pooled(np.array([1.0, 3.0, -1.0]), np.ones(3))
    array([2., 2., 0.])
    """
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(y / steps, weights=steps * steps, increasing=False)
    return np.maximum(fit.x, 0.0)


@dataclass(frozen=True, eq=False)
class OrderedCone(SimpleSet):
    """The points x >= 0 with x / steps nonincreasing and price'x <= total.

    >>> cone = OrderedCone(steps=[1.0, 1.0, 1.0], price=[1.0, 1.0, 1.0], total=3.0)
    >>> cone.project(np.array([0.5, 1.5, -1.0]))
    array([1., 1., 0.])
    >>> cone.linear_minimiser(np.array([1.0, -2.0, 5.0]))
    array([1.5, 1.5, 0. ])
    """

    steps: FloatArray
    price: FloatArray
    total: float = 1.0

    _features = frozenset({Feature.ORDERED})

    if TYPE_CHECKING:

        def __init__(
            self, steps: npt.ArrayLike, price: npt.ArrayLike, total: float = 1.0
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", vector("steps", self.steps))
        object.__setattr__(self, "price", vector("price", self.price, self.steps.size))
        object.__setattr__(self, "total", positive("total", self.total))
        if not self.steps.size:
            raise InvalidProblem("steps is empty; an ordered cone needs at least one entry")
        for name, values in (("steps", self.steps), ("price", self.price)):
            low = np.flatnonzero(values <= _RANGE * float(np.abs(values).max()))
            if low.size:
                raise InvalidProblem(
                    f"{name}[{low[0]}] is {values[low[0]]:g}; expected positive numbers of like size"
                )

    @property
    def size(self) -> int:
        return int(self.steps.size)

    @property
    def radius(self) -> float:
        return float(
            self.total * np.max(np.cumsum(self.steps) / np.cumsum(self.steps * self.price))
        )

    def project(self, x: FloatArray) -> FloatArray:
        nearest = self.steps * pooled(x, self.steps)
        if float(self.price @ nearest) <= self.total:
            return nearest
        return self._priced(x)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        values = np.cumsum(self.steps * g) / np.cumsum(self.steps * self.price)
        best = int(np.argmin(values))
        z = np.zeros_like(g)
        if values[best] < 0:
            z[: best + 1] = self.steps[: best + 1]
            z *= self.total / float(self.price @ z)
        return z

    def centre(self) -> FloatArray:
        heights = self.total / np.cumsum(self.steps * self.price) / (self.size + 1)
        return self.steps * np.cumsum(heights[::-1])[::-1]

    def violation(self, x: FloatArray) -> float:
        smaller = np.minimum(self.steps[1:], self.steps[:-1])
        order = float((smaller * np.diff(x / self.steps)).max(initial=0.0))
        return max(order, -float(x[-1]), float(self.price @ x) - self.total, 0.0)

    def _priced(self, x: FloatArray) -> FloatArray:
        """The nearest point with price'x = total, by Newton's method on lam, kept inside a bracket."""
        from scipy.optimize import isotonic_regression

        d, price = self.steps, self.price
        squares = d * d
        low, high = 0.0, float(np.max(np.cumsum(d * x) / np.cumsum(d * price)))
        lam = low
        for _ in range(_STEPS):
            moved = x - lam * price
            starts = isotonic_regression(moved / d, weights=squares, increasing=False).blocks[:-1]
            cost, weight = np.add.reduceat(d * price, starts), np.add.reduceat(squares, starts)
            beta = np.maximum(np.add.reduceat(d * moved, starts) / weight, 0.0)
            excess = float(cost @ beta) - self.total
            low, high = (lam, high) if excess > 0 else (low, lam)
            gradient = float((cost * cost / weight)[beta > 0].sum())
            newton = lam + excess / gradient if gradient > 0 else low
            following = newton if low < newton < high else (low + high) / 2
            if abs(excess) <= 4 * np.finfo(float).eps * self.total or not low < following < high:
                break
            lam = following
        nearest: FloatArray = d * np.repeat(beta, np.diff(np.append(starts, d.size)))
        cost_now = float(price @ nearest)
        return nearest * (self.total / cost_now) if cost_now > self.total else nearest
