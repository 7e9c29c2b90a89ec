"""The box cut by a plane: nearest point, linear minimiser and centre, all by sorting breakpoints.

    X = {lower <= x <= upper, normal'x = offset},
    nearest point of x = clip(x - lam normal, lower, upper)

The multiplier lam is the root of a nonincreasing piecewise linear function, found on its piece and
then solved for, never approached in the limit. Without a plane X is a box (lower = 0, upper = inf:
the nonnegative orthant).

A linear function g'x is minimised as a knapsack: the terms normal_i x_i of the plane go, in the
order of their prices -g_i / normal_i, from their maximum to their minimum until the plane is met.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import EPS, FloatArray, as_bounds, as_number, as_vector, same_size
from klopt.errors import InvalidProblem
from klopt.model.features import Feature
from klopt.model.sets.simple_set import SimpleSet

__all__ = ["BoxPlane"]


@attrs.frozen(eq=False, slots=False)
class BoxPlane(SimpleSet):
    """The points with lower <= x <= upper and, where a normal is given, normal'x = offset.

    Parameters
    ----------
    lower, upper:
        Bounds of each entry; they may be infinite.
    normal:
        Normal of the plane; None for the box alone.
    offset:
        What normal'x is on the plane; 0 where there is none.

    >>> box = BoxPlane([0.0, 0.0], [1.0, 1.0], normal=[1.0, -1.0])
    >>> box.project(np.array([1.0, 0.0]))
    array([0.5, 0.5])
    """

    lower: FloatArray = attrs.field(converter=as_bounds)
    upper: FloatArray = attrs.field(converter=as_bounds, validator=same_size("lower"))
    normal: FloatArray | None = attrs.field(
        default=None,
        converter=attrs.converters.optional(as_vector),
        validator=attrs.validators.optional(same_size("lower")),
    )
    offset: float = attrs.field(default=0.0, converter=as_number)

    features: ClassVar[frozenset[Feature]] = frozenset({Feature.BOX})

    def __attrs_post_init__(self) -> None:
        no_number = self.lower > self.upper
        no_number |= self.lower == np.inf
        no_number |= self.upper == -np.inf
        if no_number.any():
            i = int(np.argmax(no_number))
            raise InvalidProblem(
                f"lower[{i}] = {self.lower[i]} and upper[{i}] = {self.upper[i]} "
                "leave no number between them"
            )

        if self.normal is not None:
            self._refuse_empty()
        elif self.offset != 0:
            raise InvalidProblem(
                f"offset is {self.offset} but there is no normal; give normal, or leave offset at 0"
            )

    def _refuse_empty(self) -> None:
        low, high = self._terms
        lowest = float(low.sum())
        highest = float(high.sum())
        # An offset that the sum of finite terms misses by its own rounding is met.
        sizes = [float(np.abs(terms[np.isfinite(terms)]).sum()) for terms in (low, high)]
        rounding = 8 * EPS * (abs(self.offset) + max(sizes))
        if not lowest - rounding <= self.offset <= highest + rounding:
            raise InvalidProblem(
                f"the set is empty: normal'x runs from {lowest} to {highest} over the box, "
                f"so it never is offset = {self.offset}; widen the bounds or change the offset"
            )

    @property
    def size(self) -> int:
        return int(self.lower.size)

    @property
    def radius(self) -> float:
        """An upper bound on ||x||_1, exact where no interval has zero inside.

        Over an interval with zero inside, |x_i| is below the chord between its ends.
        """
        wide = (self.lower < 0) & (self.upper > 0)
        low = self.lower[wide]
        high = self.upper[wide]
        if not np.isfinite(high - low).all():
            return np.inf
        gradient = np.where(self.lower >= 0, 1.0, -1.0)
        gradient[wide] = (high + low) / (high - low)
        constants = -low * (1.0 + gradient[wide])
        return float(constants.sum()) - self.linear_minimum(-gradient)

    def project(self, x: FloatArray) -> FloatArray:
        if self.normal is None:
            return np.clip(x, self.lower, self.upper)
        # The nearest point of the box is the nearest point of the set where it lies in the set.
        p: FloatArray = np.minimum(np.maximum(x, self.lower), self.upper)
        if self._is_on_plane(p):
            return p
        p = _nearest(x, self.lower, self.upper, self.normal, self.offset)
        if self._is_on_plane(p):
            return p
        # lam carries the rounding of x, which is larger than that of the set when x is far away.
        return _nearest(p, self.lower, self.upper, self.normal, self.offset)

    def linear_minimiser(self, g: FloatArray) -> FloatArray:
        z = _minimiser(g, self.lower, self.upper, self._normal, self.offset)
        if z is None:
            raise InvalidProblem(
                "g'x is unbounded below over this BoxPlane: some bounds are infinite; "
                "linear_minimum gives -inf"
            )
        return z

    def linear_minimum(self, g: FloatArray) -> float:
        if self._ranges is not None:
            return self._filled(g / self._normal, self._ranges)
        z = _minimiser(g, self.lower, self.upper, self._normal, self.offset)
        return -np.inf if z is None else float(g @ z)

    def centre(self) -> FloatArray:
        return self.project(_centre(self.lower, self.upper, self._normal, self.offset))

    def violation(self, x: FloatArray) -> float:
        below = self.lower - x
        above = x - self.upper
        bound_error = float(np.maximum(below, above).max(initial=0.0))
        plane_error = abs(float(self._normal @ x) - self.offset)
        return max(bound_error, plane_error)

    def repair(self, x: FloatArray) -> FloatArray:
        return self.project(x)

    @property
    def _normal(self) -> FloatArray:
        return np.zeros(self.lower.size) if self.normal is None else self.normal

    @cached_property
    def _terms(self) -> tuple[FloatArray, FloatArray]:
        """The minimum and the maximum of each normal_i x_i."""
        return _plane_terms(self.lower, self.upper, self._normal)

    @cached_property
    def _ranges(self) -> FloatArray | None:
        """How far each normal_i x_i can go, where all can go somewhere and none to infinity."""
        if self.normal is None or not self.normal.all():
            return None
        low, high = self._terms
        ranges = high - low
        return ranges if np.isfinite(ranges).all() else None

    @cached_property
    def _lowest(self) -> float:
        """The minimum of normal'x over the box."""
        return float(self._terms[0].sum())

    def _is_on_plane(self, x: FloatArray) -> bool:
        assert self.normal is not None
        rounding = 4 * EPS * (float(np.abs(self.normal) @ np.abs(x)) + abs(self.offset))
        return bool(abs(float(self.normal @ x) - self.offset) <= rounding)

    def _filled(self, price: FloatArray, ranges: FloatArray) -> float:
        """The minimum of price'(terms of the plane), every one of which has a finite range.

        From their minima the terms fill up to the offset, the cheapest first.
        """
        low, high = self._terms
        missing = self.offset - self._lowest
        order = price.argsort()
        filled = ranges[order].cumsum()
        last = min(int(filled.searchsorted(missing)), filled.size - 1)

        full = order[:last]
        terms = low.copy()
        terms[full] = high[full]
        filled_before = filled[last - 1] if last else 0.0
        terms[order[last]] += missing - filled_before
        return float(price @ terms)


def _plane_terms(
    lower: FloatArray, upper: FloatArray, normal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the minimum and the maximum of each normal_i x_i over the box."""
    # 0 times an infinite bound is NaN, but a term with normal_i = 0 is zero.
    with np.errstate(invalid="ignore"):
        at_lower = np.where(normal == 0, 0.0, normal * lower)
        at_upper = np.where(normal == 0, 0.0, normal * upper)
    return np.minimum(at_lower, at_upper), np.maximum(at_lower, at_upper)


def _nearest(
    x: FloatArray, lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float
) -> FloatArray:
    """Return the nearest point of {lower <= x <= upper, normal'x = offset}, not an empty set.

    Entry i of clip(x - lam normal, lower, upper) moves with lam between start_i and end_i, where it
    is at a bound, and stands still elsewhere.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at_lower = np.where(normal == 0, -np.inf, (x - lower) / normal)
        at_upper = np.where(normal == 0, np.inf, (x - upper) / normal)
    start = np.minimum(at_lower, at_upper)
    end = np.maximum(at_lower, at_upper)
    breaks = np.concatenate((start, end))
    breaks = np.sort(breaks[np.isfinite(breaks)])

    def residual(lam: float) -> float:
        return float(normal @ np.clip(x - lam * normal, lower, upper)) - offset

    # The residual falls with lam: bisect for the last breakpoint at which it is not negative.
    below = -1
    above = breaks.size
    while above - below > 1:
        middle = (below + above) // 2
        if residual(float(breaks[middle])) >= 0:
            below = middle
        else:
            above = middle

    # The root lies on the piece that begins at that breakpoint, or on the one before the first.
    if breaks.size == 0:
        anchor = 0.0
        moving = normal != 0
    elif below >= 0:
        anchor = float(breaks[below])
        moving = (start <= anchor) & (anchor < end)
    else:
        anchor = float(breaks[0])
        moving = (start < anchor) & (anchor <= end)

    # On its piece the residual is linear in lam with derivative -|normal|^2 over moving entries.
    curvature = float(normal[moving] @ normal[moving])
    if curvature == 0.0:
        return np.clip(x - anchor * normal, lower, upper)
    lam = anchor + residual(anchor) / curvature
    p = np.clip(x - lam * normal, lower, upper)
    # Once more on the same piece: a product lam normal has lost the digits that x has below its own
    # last place.
    p[moving] -= (float(normal @ p) - offset) / curvature * normal[moving]
    return np.clip(p, lower, upper)


def _minimiser(
    g: FloatArray, lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float
) -> FloatArray | None:
    """Return a minimiser of g'x over {lower <= x <= upper, normal'x = offset}, or None.

    None says that g'x has no minimum. A knapsack: in the order of the prices -g_i / normal_i, the
    terms normal_i x_i go from their maximum to their minimum until the plane is met, and the one at
    which that happens, the pivot, takes what is left.
    """
    # Entries that the plane does not see go to the better bound, those without a price stay near 0.
    z = np.clip(np.zeros_like(g), lower, upper)
    unseen = (normal == 0) & (g != 0)
    z[unseen] = np.where(g[unseen] > 0, lower[unseen], upper[unseen])
    if not np.isfinite(z).all():
        return None

    items = np.flatnonzero(normal)
    if not items.size:
        return z
    price = -g[items] / normal[items]
    low, high = _plane_terms(lower[items], upper[items], normal[items])
    # Free variables of one price can replace each other: all but the first may stay at zero.
    free = np.flatnonzero(np.isinf(low) & np.isinf(high))
    spare = free
    if free.size:
        others = free[1:]
        spare = others[price[others] == price[free[0]]]
    low[spare] = 0.0
    high[spare] = 0.0
    # Among equal prices, what must leave infinity comes first and what must not reach it last.
    infinite_ends = np.isinf(low).astype(int) - np.isinf(high).astype(int)
    order = np.lexsort((infinite_ends, price))
    pivot = _pivot(low[order], high[order], offset)
    if pivot is None:
        return None

    at_low = items[order[:pivot]]
    z[at_low] = np.where(normal[at_low] > 0, lower[at_low], upper[at_low])
    at_high = items[order[pivot + 1 :]]
    z[at_high] = np.where(normal[at_high] > 0, upper[at_high], lower[at_high])
    z[items[spare]] = 0.0

    i = items[order[pivot]]
    z[i] = 0.0
    z[i] = np.clip((offset - float(normal @ z)) / normal[i], lower[i], upper[i])
    return z


def _pivot(low: FloatArray, high: FloatArray, offset: float) -> int | None:
    """The term that takes what is left, those before it being low and those after it high.

    None where an infinite term would have to stay: there no multiplier of the plane bounds g'x.
    """
    infinite_high = np.flatnonzero(np.isinf(high))
    infinite_low = np.flatnonzero(np.isinf(low))
    first = int(infinite_high[-1]) if infinite_high.size else 0
    last = int(infinite_low[0]) if infinite_low.size else low.size - 1
    if first > last:
        return None
    sum_after = np.append(np.cumsum(high[:first:-1])[::-1], 0.0)
    sum_up_to = np.cumsum(low[: last + 1])[first:]
    reached = sum_up_to + sum_after[: last - first + 1]
    met = np.flatnonzero(reached <= offset)
    return first + int(met[0]) if met.size else last


def _centre(lower: FloatArray, upper: FloatArray, normal: FloatArray, offset: float) -> FloatArray:
    """Return a point of {lower <= x <= upper, normal'x = offset} that is inside where it can be.

    The middle of the box, moved to the plane along the way to the corner of the box that is
    farthest on that side: an entry reaches a bound only where the set makes it.
    """
    finite_lower = np.isfinite(lower)
    finite_upper = np.isfinite(upper)
    middle = np.zeros_like(lower)
    middle[finite_upper] = upper[finite_upper] - 1.0
    middle[finite_lower] = lower[finite_lower] + 1.0
    both = finite_lower & finite_upper
    middle[both] = lower[both] / 2 + upper[both] / 2
    gap = offset - float(normal @ middle)
    if gap == 0.0:
        return middle

    corner = np.where((normal > 0) == (gap > 0), upper, lower)
    corner = np.where(normal == 0, middle, corner)
    # Towards an infinite corner the plane is reached halfway of a step along the normal.
    far = np.isinf(corner)
    if far.any():
        corner[far] = middle[far] + 2.0 * gap / float(normal[far] @ normal[far]) * normal[far]
    reach = float(normal @ (corner - middle))
    # Every entry that the plane sees is fixed, and the gap is rounding.
    if reach == 0.0:
        return middle
    return np.clip(middle + gap / reach * (corner - middle), lower, upper)
