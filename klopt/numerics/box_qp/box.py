"""A box cut by a plane as exact quadratic programs see it: the nearest point by way of a guess of its multiplier.

    {lower <= x <= upper, normal'x = offset}            nearest point: clip(v - tau normal, lower, upper)

`klopt.model.sets.box_plane.BoxPlane` is the same set for everyone else: it checks its data and
needs no guess. Here the sets of many programs are one, or parts of one that nobody has to check
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.sets.box_plane import BoxPlane

__all__ = ["Box", "Indices"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Box:
    """The set, which must not be empty; bounds may be infinite, `normal` may be missing."""

    lower: FloatArray
    upper: FloatArray
    normal: FloatArray | None = None
    offset: float = 0.0

    @classmethod
    def of(cls, domain: BoxPlane) -> Box:
        """Return a checked set."""
        return cls(domain.lower, domain.upper, domain.normal, domain.offset)

    @cached_property
    def bounded(self) -> bool:
        """Whether no variable can go to infinity."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    @cached_property
    def corner(self) -> FloatArray:
        """A point whose entries are bounds where there are any, zero elsewhere."""
        if self.bounded:
            return self.lower
        return np.where(
            np.isfinite(self.lower), self.lower, np.where(np.isfinite(self.upper), self.upper, 0.0)
        )

    @cached_property
    def sizes(self) -> FloatArray:
        """|normal|."""
        assert self.normal is not None
        return np.abs(self.normal)

    @cached_property
    def _reach(self) -> float:
        """The most that |normal|'|x| + |offset| can be in the box."""
        most = float(self.sizes @ np.maximum(-self.lower, self.upper)) if self.bounded else np.inf
        return most + abs(self.offset)

    def clipped(self, x: FloatArray) -> FloatArray:
        """Return the nearest point of the box."""
        return np.minimum(np.maximum(x, self.lower), self.upper)

    def project(self, v: FloatArray, tau: float = 0.0) -> tuple[FloatArray, float]:
        """Return clip(v - tau normal, lower, upper) on the plane, and tau, by Newton's method from a guess of it.

        normal'x is piecewise linear and falls with tau: on its piece Newton's step is exact, and
        the bracket of the root halves where it is not.
        """
        a, low, high = self.normal, -np.inf, np.inf
        if a is None:
            return self.clipped(v), 0.0
        for _ in range(200):
            p = v - tau * a if tau else v
            x = self.clipped(p)
            excess = float(a @ x) - self.offset
            if abs(excess) <= 4 * EPS * self._reach and abs(excess) <= 4 * EPS * self._terms(x):
                return x, tau
            low, high = (tau, high) if excess > 0 else (low, tau)
            moving = a[p == x]
            gradient = float(moving @ moving)
            step = tau + excess / gradient if gradient else np.inf
            if not low < step < high:
                step = (
                    (low + high) / 2
                    if np.isfinite(high - low)
                    else self._next_break(v, tau, excess > 0)
                )
            if step in (tau, low, high):
                break
            tau = step
        return self._between(v, low, high), tau

    def on_plane(self, x: FloatArray) -> bool:
        """Return whether the plane holds up to rounding."""
        return self.normal is None or abs(
            float(self.normal @ x) - self.offset
        ) <= 16 * EPS * self._terms(x)

    def _terms(self, x: FloatArray) -> float:
        """|normal|'|x| + |offset|: what is added up to the plane's equation."""
        return float(self.sizes @ np.abs(x)) + abs(self.offset)

    def _between(self, v: FloatArray, low: float, high: float) -> FloatArray:
        """The point of the plane between those of two neighbouring tau: where v is large, no float lies between."""
        assert self.normal is not None
        ends = [self.clipped(v - tau * self.normal) for tau in (low, high)]
        over, under = (float(self.normal @ end) - self.offset for end in ends)
        return ends[0] + over / (over - under) * (ends[1] - ends[0]) if over > under else ends[0]

    def _next_break(self, v: FloatArray, tau: float, right: bool) -> float:
        """The nearest tau on one side where a variable leaves a bound."""
        assert self.normal is not None
        moving = self.normal != 0
        a = self.normal[moving]
        breaks = np.concatenate([(v - self.lower)[moving] / a, (v - self.upper)[moving] / a])
        breaks = breaks[np.isfinite(breaks)]
        beyond = breaks[breaks > tau] if right else breaks[breaks < tau]
        edge = (beyond.min() if right else beyond.max()) if beyond.size else tau
        # A little further, so that the variable has left.
        return float(edge + (1 if right else -1) * (abs(edge - tau) * 1e-9 + 4 * EPS * abs(edge)))

    def price(self, g: FloatArray, nu: float) -> float:
        """Return the nu nearest to the given one under which no variable of gradients g + nu normal goes to infinity."""
        if self.normal is None or self.bounded:
            return nu
        a = self.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            level = -g / a
        up = (np.isinf(self.upper) & (a > 0)) | (np.isinf(self.lower) & (a < 0))
        down = (np.isinf(self.upper) & (a < 0)) | (np.isinf(self.lower) & (a > 0))
        least, most = (
            float(np.max(level[up], initial=-np.inf)),
            float(np.min(level[down], initial=np.inf)),
        )
        return float(np.clip(nu, least, most)) if least <= most else nu

    def snapped(self, x: FloatArray) -> FloatArray:
        """Return x with what is next to a bound put on it: a projection leaves rounding there, which is no freedom."""
        near = 1e-13 * float(np.abs(x).max(initial=0.0))
        x = np.where(x - self.lower <= near, self.lower, x)
        return np.where(self.upper - x <= near, self.upper, x)

    def restricted(self, moving: Indices, fixed: FloatArray) -> Box:
        """Return the set of some of the variables; the others stay as they are in `fixed`, where these are 0."""
        return Box(
            self.lower[moving],
            self.upper[moving],
            None if self.normal is None else self.normal[moving],
            self.offset if self.normal is None else self.offset - float(self.normal @ fixed),
        )
