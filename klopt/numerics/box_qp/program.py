"""A convex quadratic program over a box cut by a plane: its data, the projection, the gap.

    minimise  x'Hx/2 + c'x   over   lower <= x <= upper,  normal'x = offset

The nearest point of the set to v is clip(v - tau normal, lower, upper) for the one tau that puts it
on the plane. `klopt.model.sets.box_plane.BoxPlane` is the same set for everyone else: it checks its
data and sorts to find tau. Here the sets of many programs are one, or parts of one that nobody has
to check again, and tau is guessed from the last projection.

With the reduced costs r = Hx + c + nu normal, the gap

    sum_i  max(r_i, 0) (x_i - lower_i) + max(-r_i, 0) (upper_i - x_i)

bounds how far the value at a feasible x is above the optimum, for any nu. Each of its terms is
nonnegative: no digit is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.functions import KernelQuadratic, Quadratic, QuadraticLike
from klopt.model.sets.box_plane import BoxPlane

__all__ = ["Box", "BoxQP", "Indices", "OptimalityGap", "SignedGram"]

Indices = npt.NDArray[np.intp]

MAX_PROJECTION_STEPS = 200
"""Newton or bisection steps of one projection; a handful is usual."""
SNAP_DISTANCE = 1e-13
"""Of the largest entry of x: what is nearer to a bound than this is on it."""


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
        upper_or_zero = np.where(np.isfinite(self.upper), self.upper, 0.0)
        return np.where(np.isfinite(self.lower), self.lower, upper_or_zero)

    @cached_property
    def normal_sizes(self) -> FloatArray:
        """|normal|."""
        assert self.normal is not None
        return np.abs(self.normal)

    @cached_property
    def _max_plane_terms(self) -> float:
        """The maximum of |normal|'|x| + |offset| over the box."""
        if not self.bounded:
            return np.inf
        most = float(self.normal_sizes @ np.maximum(-self.lower, self.upper))
        return most + abs(self.offset)

    def clipped(self, x: FloatArray) -> FloatArray:
        """Return the nearest point of the box."""
        return np.minimum(np.maximum(x, self.lower), self.upper)

    def project(self, v: FloatArray, tau: float = 0.0) -> tuple[FloatArray, float]:
        """Return clip(v - tau normal, lower, upper) on the plane, and tau, from a guess of tau.

        normal'x is piecewise linear and nonincreasing in tau: on its own piece Newton's step is
        exact, elsewhere the bracket [low, high] of the root is halved.
        """
        a = self.normal
        if a is None:
            return self.clipped(v), 0.0

        low = -np.inf
        high = np.inf
        for _ in range(MAX_PROJECTION_STEPS):
            p = v - tau * a if tau else v
            x = self.clipped(p)
            excess = float(a @ x) - self.offset
            # The first test, against a bound of the terms, saves the sum of the second.
            small = abs(excess) <= 4 * EPS * self._max_plane_terms
            if small and abs(excess) <= 4 * EPS * self._plane_terms(x):
                return x, tau

            if excess > 0:
                low = tau
            else:
                high = tau
            # The derivative of normal'x in tau is -a'a over the variables between their bounds.
            moving = a[p == x]
            descent = float(moving @ moving)
            step = tau + excess / descent if descent else np.inf
            if not low < step < high:
                if np.isfinite(high - low):
                    step = (low + high) / 2
                else:
                    step = self._next_breakpoint(v, tau, excess > 0)
            # No float lies between the ends of the bracket any more.
            if step in (tau, low, high):
                break
            tau = step
        return self._between(v, low, high), tau

    def on_plane(self, x: FloatArray) -> bool:
        """Return whether the plane holds up to rounding."""
        if self.normal is None:
            return True
        excess = float(self.normal @ x) - self.offset
        return abs(excess) <= 16 * EPS * self._plane_terms(x)

    def _plane_terms(self, x: FloatArray) -> float:
        """|normal|'|x| + |offset|: the size of the terms of the plane's equation."""
        return float(self.normal_sizes @ np.abs(x)) + abs(self.offset)

    def _between(self, v: FloatArray, low: float, high: float) -> FloatArray:
        """The point of the plane between those of two neighbouring tau, for a large v."""
        assert self.normal is not None
        at_low = self.clipped(v - low * self.normal)
        at_high = self.clipped(v - high * self.normal)
        over = float(self.normal @ at_low) - self.offset
        under = float(self.normal @ at_high) - self.offset
        if not over > under:
            return at_low
        return at_low + over / (over - under) * (at_high - at_low)

    def _next_breakpoint(self, v: FloatArray, tau: float, right: bool) -> float:
        """The nearest tau on one side where a variable leaves a bound."""
        assert self.normal is not None
        moving = self.normal != 0
        a = self.normal[moving]
        breaks = np.concatenate([(v - self.lower)[moving] / a, (v - self.upper)[moving] / a])
        breaks = breaks[np.isfinite(breaks)]
        if right:
            edge = np.min(breaks[breaks > tau], initial=np.inf)
        else:
            edge = np.max(breaks[breaks < tau], initial=-np.inf)
        if np.isinf(edge):  # there is none
            edge = tau
        # A little further, so that the variable has left.
        beyond = abs(edge - tau) * 1e-9 + 4 * EPS * abs(edge)
        return float(edge + beyond if right else edge - beyond)

    def nearest_multiplier(self, g: FloatArray, nu: float) -> float:
        """Return the nu nearest to the given one for which the gap is finite, if there is one.

        A variable without a bound must have a reduced cost g + nu normal that does not drive it to
        infinity, which is a lower or an upper limit of nu.
        """
        if self.normal is None or self.bounded:
            return nu
        a = self.normal
        with np.errstate(divide="ignore", invalid="ignore"):
            level = -g / a
        free_above = np.isinf(self.upper)
        free_below = np.isinf(self.lower)
        at_least = (free_above & (a > 0)) | (free_below & (a < 0))
        at_most = (free_above & (a < 0)) | (free_below & (a > 0))
        low = float(np.max(level[at_least], initial=-np.inf))
        high = float(np.min(level[at_most], initial=np.inf))
        return float(np.clip(nu, low, high)) if low <= high else nu

    def snapped(self, x: FloatArray) -> FloatArray:
        """Return x with what is next to a bound on it: a projection leaves rounding there."""
        near = SNAP_DISTANCE * float(np.abs(x).max(initial=0.0))
        x = np.where(x - self.lower <= near, self.lower, x)
        return np.where(self.upper - x <= near, self.upper, x)

    def restricted(self, moving: Indices, fixed: FloatArray) -> Box:
        """Return the set of some of the variables; `fixed` holds the others, and 0 for these."""
        lower = self.lower[moving]
        upper = self.upper[moving]
        if self.normal is None:
            return Box(lower, upper, None, self.offset)
        return Box(lower, upper, self.normal[moving], self.offset - float(self.normal @ fixed))


@dataclass(frozen=True, eq=False)
class SignedGram:
    """H = S K S' for points that variables belong to with signs; without them H = K.

    Products leave out the points whose coefficient is zero where that is faster.
    """

    K: FloatArray
    sign: FloatArray | None = None
    point: Indices | None = None

    @classmethod
    def of(cls, objective: QuadraticLike) -> SignedGram:
        """Return the curvature of an objective, which is not copied."""
        if isinstance(objective, KernelQuadratic):
            one_variable_a_point = np.array_equal(objective.point, np.arange(len(objective.K)))
            point = None if one_variable_a_point else objective.point
            return cls(objective.K, objective.sign, point)
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
        diagonal = self.K.diagonal()
        if self.point is not None:
            diagonal = diagonal[self.point]
        if self.sign is not None:
            diagonal = diagonal * self.sign**2
        return float(diagonal.max(initial=0.0)) or 1.0

    def gather(self, x: FloatArray) -> FloatArray:
        """Return S'x, the coefficients of the points."""
        z = x if self.sign is None else x * self.sign
        return self._summed(z)

    def spread(self, f: FloatArray) -> FloatArray:
        """Return S f, values of the points for the variables."""
        f = f if self.point is None else f[self.point]
        return f if self.sign is None else f * self.sign

    def gathered_diagonal(self, d: FloatArray) -> FloatArray:
        """Return the diagonal of S' diag(d) S, which is a diagonal matrix."""
        z = d if self.sign is None else d * self.sign**2
        return self._summed(z)

    def _summed(self, z: FloatArray) -> FloatArray:
        """Return the sums over the variables of each point."""
        if self.point is None:
            return z
        return cast(FloatArray, np.bincount(self.point, z, len(self.K)))

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        z = self.gather(x)
        # Few rows of K are read faster than all of it.
        if 4 * np.count_nonzero(z) >= z.size:
            return self.spread(self.K @ z)
        support = np.flatnonzero(z)
        return self.spread(z[support] @ self.K[support])

    def block_and_product(self, rows: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a copy of H[rows, rows], and (Hx)[rows]."""
        # All variables are free: no rows have to be gathered.
        if self.sign is None and self.point is None and rows.size == len(self.K):
            return self.K.copy(), self.K @ x
        points = rows if self.point is None else self.point[rows]
        part = self.K.take(points, 0)
        block = part.take(points, 1)
        product = part @ self.gather(x)
        if self.sign is None:
            return block, product
        sign = self.sign[rows]
        block *= sign
        block *= sign[:, None]
        return block, product * sign


class OptimalityGap(NamedTuple):
    """How far a feasible point may be from optimal."""

    gap: float
    """How far the value may be above the optimum; infinite where nu proves nothing."""
    value_terms: float
    """The size of the terms that the value is the sum of."""
    error: float
    """The largest reduced cost, or curvature times distance to the bound if that is smaller,
    relative to the terms of the gradient."""


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The program."""

    H: SignedGram
    c: FloatArray
    box: Box

    @cached_property
    def _linear_sizes(self) -> tuple[FloatArray, float]:
        """|c| and its largest entry."""
        sizes = np.abs(self.c)
        return sizes, float(sizes.max(initial=0.0))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return Hx + c."""
        g = self.H.matvec(x)
        g += self.c
        return g

    def optimality_gap(self, x: FloatArray, g: FloatArray, nu: float) -> OptimalityGap:
        """Return what the multiplier nu of the plane proves at a feasible x with the gradient g."""
        box = self.box
        linear_sizes, largest_linear = self._linear_sizes
        r = g if box.normal is None else g + nu * box.normal
        costs = np.abs(r)
        sizes = np.abs(x)
        curved = np.abs(g - self.c)
        distance = np.where(r > 0, x - box.lower, box.upper - x)

        # 0 times an infinite distance is 0 here, not NaN.
        finite_distance = distance if box.bounded else np.where(r == 0, 0.0, distance)
        gap = float(costs @ finite_distance)
        value_terms = float(sizes @ curved) / 2 + float(sizes @ linear_sizes)

        gradient_terms = largest_linear + float(curved.max(initial=0.0))
        # No entry of Hx is known better than to a few eps of its terms, however small the sum. The
        # limit is for an x that runs off to infinity: a reduced cost must not vanish beside it.
        hidden_terms = self.H.scale * float(sizes.sum()) / 256
        gradient_terms += min(hidden_terms, 1e3 * gradient_terms)
        largest_cost = float(np.minimum(costs, self.H.scale * distance).max(initial=0.0))
        return OptimalityGap(gap, value_terms, largest_cost / (gradient_terms or 1.0))

    def restricted(self, moving: Indices, x: FloatArray) -> BoxQP:
        """Return the program in some of the variables; the others stay as they are in x."""
        fixed = x.copy()
        fixed[moving] = 0.0
        all_points = np.arange(self.H.size) if self.H.point is None else self.H.point
        points, point = np.unique(all_points[moving], return_inverse=True)
        sign = np.ones(moving.size) if self.H.sign is None else self.H.sign[moving]
        shared = points.size < moving.size
        H = SignedGram(self.H.K[np.ix_(points, points)], sign, point if shared else None)
        return BoxQP(H, self.gradient(fixed)[moving], self.box.restricted(moving, fixed))
