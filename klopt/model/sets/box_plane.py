"""The box cut by a plane: its nearest point, linear minimiser and centre, all by sorting breakpoints.

    {lower <= x <= upper, normal'x = offset}        nearest point: clip(x - lam normal, lower, upper)

The multiplier lam is the root of a nonincreasing piecewise linear function, found on its piece and
then solved for, never approached in the limit. Without a plane it is a box (lower = 0, upper = inf:
the nonnegative orthant).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, vector
from klopt.errors import InvalidProblem
from klopt.model.cones import Feature
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["BoxPlane"]


@dataclass(frozen=True, eq=False)
class BoxPlane(SimpleSet):
    """The points with lower <= x <= upper and, where a normal is given, normal'x = offset. Bounds may be infinite.

    >>> box = BoxPlane([0.0, 0.0], [1.0, 1.0], normal=[1.0, -1.0])
    >>> box.project(np.array([1.0, 0.0]))
    array([0.5, 0.5])
    """

    lower: FloatArray
    upper: FloatArray
    normal: FloatArray | None = None
    offset: float = 0.0

    _features = frozenset({Feature.BOX})

    if TYPE_CHECKING:

        def __init__(
            self,
            lower: npt.ArrayLike,
            upper: npt.ArrayLike,
            normal: npt.ArrayLike | None = None,
            offset: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        lower = vector("lower", self.lower, infinite=True)
        upper = vector("upper", self.upper, lower.size, infinite=True)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        bad = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
        if bad.size:
            i = int(bad[0])
            raise InvalidProblem(
                f"lower[{i}] = {lower[i]} and upper[{i}] = {upper[i]} leave no number between them"
            )
        object.__setattr__(self, "offset", float(vector("offset", [self.offset])[0]))
        if self.normal is not None:
            object.__setattr__(self, "normal", vector("normal", self.normal, lower.size))
            self._refuse_empty()
        elif self.offset != 0:
            raise InvalidProblem(
                f"offset is {self.offset} but there is no normal; give normal, or leave offset at 0"
            )

    def _refuse_empty(self) -> None:
        least, most = self._terms
        sizes = [float(np.abs(terms[np.isfinite(terms)]).sum()) for terms in (least, most)]
        rounding = 8 * np.finfo(float).eps * (abs(self.offset) + max(sizes))
        low, high = float(least.sum()), float(most.sum())
        if not low - rounding <= self.offset <= high + rounding:
            raise InvalidProblem(
                f"the set is empty: normal'x runs from {low} to {high} over the box, so it never is "
                f"offset = {self.offset}; widen the bounds or change the offset"
            )

    @property
    def _normal(self) -> FloatArray:
        return np.zeros(self.lower.size) if self.normal is None else self.normal

    @cached_property
    def _terms(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest value of each normal_i x_i."""
        return _plane_terms(self.lower, self.upper, self._normal)

    @cached_property
    def _ranges(self) -> FloatArray | None:
        """How far each normal_i x_i can go, where all can go somewhere and none to infinity."""
        if self.normal is None or not self.normal.all():
            return None
        ranges = self._terms[1] - self._terms[0]
        return ranges if np.isfinite(ranges).all() else None

    @property
    def size(self) -> int:
        return int(self.lower.size)

    @property
    def radius(self) -> float:
        """An upper bound on ||x||_1, |x_i| being below its chord; exact where no interval has zero inside."""
        wide = (self.lower < 0) & (self.upper > 0)
        if not np.isfinite(self.upper[wide] - self.lower[wide]).all():
            return np.inf
        gradient = np.where(self.lower >= 0, 1.0, -1.0)
        gradient[wide] = (self.upper[wide] + self.lower[wide]) / (
            self.upper[wide] - self.lower[wide]
        )
        level = -self.lower[wide] * (1.0 + gradient[wide])
        return float(level.sum()) - self.linear_minimum(-gradient)

    def project(self, x: FloatArray) -> FloatArray:
        if self.normal is None:
            return np.clip(x, self.lower, self.upper)
        p = np.minimum(np.maximum(x, self.lower), self.upper)
        if self._on_plane(
            p
        ):  # the nearest point of the box is the nearest of the set if it lies in it
            return p
        p = _nearest(x, self.lower, self.upper, self.normal, self.offset)
        # lam carries the rounding of x, which is larger than that of the set when x is far away
        return (
            p
            if self._on_plane(p)
            else _nearest(p, self.lower, self.upper, self.normal, self.offset)
        )

    def _on_plane(self, x: FloatArray) -> bool:
        assert self.normal is not None
        rounding = (
            4 * np.finfo(float).eps * (float(np.abs(self.normal) @ np.abs(x)) + abs(self.offset))
        )
        return bool(abs(float(self.normal @ x) - self.offset) <= rounding)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        z = _minimiser(g, self.lower, self.upper, self._normal, self.offset)
        if z is None:
            raise InvalidProblem(
                "g'x is unbounded below over this BoxPlane: some bounds are infinite; linear_minimum gives -inf"
            )
        return z

    def linear_minimum(self, g: FloatArray) -> float:
        if self._ranges is not None:
            return self._filled(g / self._normal, self._ranges)
        z = _minimiser(g, self.lower, self.upper, self._normal, self.offset)
        return -np.inf if z is None else float(g @ z)

    def _filled(self, price: FloatArray, ranges: FloatArray) -> float:
        """The least price'(terms of the plane): from their least values they fill up to the offset, cheapest first."""
        (least, most), order = self._terms, price.argsort()
        filled, left = ranges[order].cumsum(), self.offset - self._emptiest
        last = min(int(filled.searchsorted(left)), filled.size - 1)
        terms, full = least.copy(), order[:last]
        terms[full] = most[full]
        terms[order[last]] += left - (filled[last - 1] if last else 0.0)
        return float(price @ terms)

    @cached_property
    def _emptiest(self) -> float:
        return float(self._terms[0].sum())

    def centre(self) -> FloatArray:
        return self.project(_centre(self.lower, self.upper, self._normal, self.offset))

    def violation(self, x: FloatArray) -> float:
        bounds = float(np.maximum(self.lower - x, x - self.upper).max(initial=0.0))
        return max(bounds, abs(float(self._normal @ x) - self.offset))


def _plane_terms(
    lower: FloatArray, upper: FloatArray, normal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each normal_i x_i over the box."""
    with np.errstate(invalid="ignore"):
        one, other = (
            np.where(normal == 0, 0.0, normal * lower),
            np.where(normal == 0, 0.0, normal * upper),
        )
    return np.minimum(one, other), np.maximum(one, other)


def _nearest(
    x: FloatArray, lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float
) -> FloatArray:
    """Return the nearest point of {lower <= x <= upper, normal'x = offset}, a set that must not be empty."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one = np.where(normal == 0, -np.inf, (x - lower) / normal)
        other = np.where(normal == 0, np.inf, (x - upper) / normal)
    start, end = np.minimum(one, other), np.maximum(one, other)
    breaks = np.concatenate((start, end))
    breaks = np.sort(breaks[np.isfinite(breaks)])

    def residual(lam: float) -> float:
        return float(normal @ np.clip(x - lam * normal, lower, upper)) - offset

    below, above = -1, breaks.size
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if residual(float(breaks[middle])) >= 0 else (below, middle)
    if breaks.size == 0:
        anchor, moving = 0.0, normal != 0
    elif below >= 0:
        anchor = float(breaks[below])
        moving = (start <= anchor) & (anchor < end)
    else:
        anchor = float(breaks[0])
        moving = (start < anchor) & (anchor <= end)
    curvature = float(normal[moving] @ normal[moving])
    if curvature == 0.0:
        return np.clip(x - anchor * normal, lower, upper)
    p = np.clip(x - (anchor + residual(anchor) / curvature) * normal, lower, upper)
    # Once more on the same piece: a product lam normal has lost the digits that x has below its own
    # last place.
    p[moving] -= (float(normal @ p) - offset) / curvature * normal[moving]
    return np.clip(p, lower, upper)


def _minimiser(
    g: FloatArray, lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float
) -> FloatArray | None:
    """Return a minimiser of g'x over {lower <= x <= upper, normal'x = offset}, or None where g'x has no minimum.

    A knapsack: in the order of the prices -g_i / normal_i, the terms normal_i x_i go from their
    greatest value to their least until the plane is met, and the one at which that happens takes
    what is left.
    """
    z = np.clip(np.zeros_like(g), lower, upper)
    flat = (normal == 0) & (g != 0)
    z[flat] = np.where(g[flat] > 0, lower[flat], upper[flat])
    if not np.isfinite(z).all():
        return None
    items = np.flatnonzero(normal)
    if not items.size:
        return z
    price = -g[items] / normal[items]
    least, most = _plane_terms(lower[items], upper[items], normal[items])
    # Free variables of one price can replace each other: all but the first may stay at zero.
    free = np.flatnonzero(np.isinf(least) & np.isinf(most))
    spare = free[1:][price[free[1:]] == price[free[0]]] if free.size else free
    least[spare] = most[spare] = 0.0
    # Among equal prices, what must leave infinity comes first and what must not reach it comes
    # last.
    order = np.lexsort((np.isinf(least).astype(int) - np.isinf(most).astype(int), price))
    pivot = _pivot(least[order], most[order], offset)
    if pivot is None:
        return None
    at_least, at_most = items[order[:pivot]], items[order[pivot + 1 :]]
    z[at_least] = np.where(normal[at_least] > 0, lower[at_least], upper[at_least])
    z[at_most] = np.where(normal[at_most] > 0, upper[at_most], lower[at_most])
    z[items[spare]] = 0.0
    i = items[order[pivot]]
    z[i] = 0.0
    z[i] = np.clip((offset - float(normal @ z)) / normal[i], lower[i], upper[i])
    return z


def _pivot(least: FloatArray, most: FloatArray, offset: float) -> int | None:
    """The term that takes what is left when those before it are at their least and those after it at their most.

    None where an infinite term would have to stay: there the plane's price has no value that bounds
    g'x.
    """
    up, down = np.flatnonzero(np.isinf(most)), np.flatnonzero(np.isinf(least))
    first = int(up[-1]) if up.size else 0
    last = int(down[0]) if down.size else least.size - 1
    if first > last:
        return None
    after = np.append(np.cumsum(most[:first:-1])[::-1], 0.0)
    reached = np.cumsum(least[: last + 1])[first:] + after[: last - first + 1]
    met = np.flatnonzero(reached <= offset)
    return first + int(met[0]) if met.size else last


def _centre(lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float) -> FloatArray:
    """Return a point of {lower <= x <= upper, normal'x = offset} that is at a bound only where the set makes it be.

    The middle of the box, moved to the plane along the way to the corner of the box that is
    farthest on that side.
    """
    middle = np.where(
        np.isfinite(lower), lower + 1.0, np.where(np.isfinite(upper), upper - 1.0, 0.0)
    )
    both = np.isfinite(lower) & np.isfinite(upper)
    middle[both] = lower[both] / 2 + upper[both] / 2
    gap = offset - float(normal @ middle)
    if gap == 0.0:
        return middle
    corner = np.where(normal == 0, middle, np.where((normal > 0) == (gap > 0), upper, lower))
    far = np.isinf(corner)
    if far.any():
        corner[far] = middle[far] + 2.0 * gap / float(normal[far] @ normal[far]) * normal[far]
    reach = float(normal @ (corner - middle))
    if reach == 0.0:  # every variable of the plane is fixed, and the gap is rounding
        return middle
    return np.clip(middle + gap / reach * (corner - middle), lower, upper)
