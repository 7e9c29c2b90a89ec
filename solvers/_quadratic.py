"""A convex quadratic over a box cut by a plane: the data, the exact projection with its multiplier, the gap.

    minimise  x'Hx/2 + c'x   over   lower <= x <= upper,  normal'x = offset

The gap  sum_i max(r_i, 0) (x_i - lower_i) + max(-r_i, 0) (upper_i - x_i),  r = Hx + c + nu normal,  bounds how far the
value at a feasible x is above the optimum, for any nu, and each of its terms is nonnegative: no digit is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.objectives import KernelQuadratic, Quadratic, QuadraticLike

__all__ = ["BoxQP", "Indices", "SignedGram"]

Indices = npt.NDArray[np.intp]

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class SignedGram:
    """H = S K S' for points that variables belong to with signs; without them H = K.

    Products leave out the points whose coefficient is zero where that pays.
    """

    K: FloatArray
    sign: FloatArray | None = None
    point: Indices | None = None

    @classmethod
    def of(cls, objective: QuadraticLike) -> SignedGram:
        """Return the curvature of an objective, which is not copied."""
        if isinstance(objective, KernelQuadratic):
            plain = np.array_equal(objective.point, np.arange(len(objective.K)))
            return cls(objective.K, objective.sign, None if plain else objective.point)
        if isinstance(objective, Quadratic):
            return cls(objective.H)
        everything = np.arange(objective.size)
        return cls(objective.block(everything, everything))

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.K) if self.sign is None else int(self.sign.size)

    @cached_property
    def scale(self) -> float:
        """The largest diagonal entry, 1 where all are zero."""
        diagonal = self.K.diagonal() if self.point is None else self.K.diagonal()[self.point]
        return float(np.max(diagonal if self.sign is None else diagonal * self.sign**2, initial=0.0)) or 1.0

    def gather(self, x: FloatArray) -> FloatArray:
        """Return S'x, the coefficients of the points."""
        z = x if self.sign is None else x * self.sign
        return z if self.point is None else cast(FloatArray, np.bincount(self.point, z, len(self.K)))

    def spread(self, f: FloatArray) -> FloatArray:
        """Return S f, values of the points for the variables."""
        f = f if self.point is None else f[self.point]
        return f if self.sign is None else f * self.sign

    def diagonal(self, d: FloatArray) -> FloatArray:
        """Return the diagonal of S' diag(d) S, which is a diagonal matrix."""
        z = d if self.sign is None else d * self.sign**2
        return z if self.point is None else cast(FloatArray, np.bincount(self.point, z, len(self.K)))

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        z = self.gather(x)
        if 4 * np.count_nonzero(z) >= z.size:
            return self.spread(self.K @ z)
        support = np.flatnonzero(z)
        return self.spread(z[support] @ self.K[support])

    def face(self, rows: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a copy of H[rows, rows], and (Hx)[rows]."""
        if self.sign is None and self.point is None and rows.size == len(self.K):
            return self.K.copy(), self.K @ x
        points = rows if self.point is None else self.point[rows]
        part = self.K.take(points, 0)
        block, product = part.take(points, 1), part @ self.gather(x)
        if self.sign is None:
            return block, product
        sign = self.sign[rows]
        block *= sign
        block *= sign[:, None]
        return block, product * sign


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The data; bounds may be infinite, `normal` may be missing, the set must not be empty."""

    H: SignedGram
    c: FloatArray
    lower: FloatArray
    upper: FloatArray
    normal: FloatArray | None = None
    offset: float = 0.0

    @cached_property
    def bounded(self) -> bool:
        """Whether no variable can go to infinity."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    @cached_property
    def corner(self) -> FloatArray:
        """A point whose entries are bounds where there are any, zero elsewhere."""
        if self.bounded:
            return self.lower
        return np.where(np.isfinite(self.lower), self.lower, np.where(np.isfinite(self.upper), self.upper, 0.0))

    def clipped(self, x: FloatArray) -> FloatArray:
        """Return the nearest point of the box."""
        return np.minimum(np.maximum(x, self.lower), self.upper)

    @cached_property
    def _sizes(self) -> tuple[FloatArray, float]:
        """|normal|, and the most that |normal|'|x| + |offset| can be in the box."""
        assert self.normal is not None
        sizes = np.abs(self.normal)
        reach = float(sizes @ np.maximum(-self.lower, self.upper)) if self.bounded else np.inf
        return sizes, reach + abs(self.offset)

    @cached_property
    def _steepness(self) -> FloatArray:
        return np.abs(self.c)

    def project(self, v: FloatArray, tau: float = 0.0) -> tuple[FloatArray, float]:
        """Return clip(v - tau normal, lower, upper) on the plane, and tau, by Newton's method from a guess of it.

        normal'x is piecewise linear and falls with tau: on its piece Newton's step is exact, and the bracket of
        the root halves where it is not.
        """
        a, low, high = self.normal, -np.inf, np.inf
        if a is None:
            return self.clipped(v), 0.0
        sizes, most = self._sizes
        for _ in range(200):
            p = v - tau * a if tau else v
            x = self.clipped(p)
            excess = float(a @ x) - self.offset
            if abs(excess) <= 4 * EPS * most and abs(excess) <= 4 * EPS * (float(sizes @ np.abs(x)) + abs(self.offset)):
                return x, tau
            low, high = (tau, high) if excess > 0 else (low, tau)
            moving = a[p == x]
            slope = float(moving @ moving)
            step = tau + excess / slope if slope else np.inf
            if not low < step < high:
                step = (low + high) / 2 if np.isfinite(high - low) else self._next_break(v, tau, excess > 0)
            if step in (tau, low, high):
                break
            tau = step
        return self._between(v, low, high), tau

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

    def measured(self, x: FloatArray, g: FloatArray, nu: float) -> tuple[float, float, float]:
        """Return the gap, the size of what is added up to the value, and the residual, at a feasible x.

        The gap says how far the value may be above the optimum, infinite where nu proves nothing. The residual is the
        largest slope, or curvature times room if that is less, relative to the terms of the gradient.
        """
        r = g if self.normal is None else g + nu * self.normal
        slopes, sizes, curves = np.abs(r), np.abs(x), np.abs(g - self.c)
        room = np.where(r > 0, x - self.lower, self.upper - x)
        gap = float(slopes @ (room if self.bounded else np.where(r == 0, 0.0, room)))
        terms = float(sizes @ (curves / 2 + self._steepness))
        scale = float(self._steepness.max(initial=0.0) + curves.max(initial=0.0))
        # No entry of Hx is known better than to a few eps of what was added up, however small the sum. The limit is
        # for an x that runs off to infinity: a slope must not vanish beside it.
        scale += min(self.H.scale * float(sizes.sum()) / 256, 1e3 * scale)
        return gap, terms, float(np.minimum(slopes, self.H.scale * room).max(initial=0.0)) / (scale or 1.0)

    def price(self, g: FloatArray, nu: float) -> float:
        """Return the nu nearest to the given one under which no variable wants to go to infinity, if there is one."""
        if self.normal is None or self.bounded:
            return nu
        a = self.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            level = -g / a
        up = (np.isinf(self.upper) & (a > 0)) | (np.isinf(self.lower) & (a < 0))
        down = (np.isinf(self.upper) & (a < 0)) | (np.isinf(self.lower) & (a > 0))
        least, most = float(np.max(level[up], initial=-np.inf)), float(np.min(level[down], initial=np.inf))
        return float(np.clip(nu, least, most)) if least <= most else nu

    def snapped(self, x: FloatArray) -> FloatArray:
        """Return x with what is next to a bound put on it: a projection leaves rounding there, which is no freedom."""
        near = 1e-13 * float(np.abs(x).max(initial=0.0))
        x = np.where(x - self.lower <= near, self.lower, x)
        return np.where(self.upper - x <= near, self.upper, x)

    def on_plane(self, x: FloatArray) -> bool:
        """Return whether the plane holds up to rounding."""
        if self.normal is None:
            return True
        terms = float(np.abs(self.normal) @ np.abs(x)) + abs(self.offset)
        return abs(float(self.normal @ x) - self.offset) <= 16 * EPS * terms

    def restricted(self, moving: Indices, x: FloatArray) -> BoxQP:
        """Return the program in some of the variables; the others stay as they are in x."""
        fixed = x.copy()
        fixed[moving] = 0.0
        points = np.arange(self.H.size) if self.H.point is None else self.H.point
        points, point = np.unique(points[moving], return_inverse=True)
        sign = np.ones(moving.size) if self.H.sign is None else self.H.sign[moving]
        return BoxQP(
            SignedGram(self.H.K[np.ix_(points, points)], sign, point if points.size < moving.size else None),
            (self.c + self.H.matvec(fixed))[moving],
            self.lower[moving],
            self.upper[moving],
            None if self.normal is None else self.normal[moving],
            self.offset if self.normal is None else self.offset - float(self.normal @ fixed),
        )
