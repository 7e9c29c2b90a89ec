"""Steps of the two players of a saddle point, in the Euclidean or the entropy's geometry.

    Euclidean   point+ = project(point - eta g)
    entropy     point+ = mirror(theta - eta g),  point = mirror(theta)

Where the two sides differ in size, one takes longer steps than the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SaddleForm
from klopt.model.sets import SimpleSet

__all__ = ["Side", "balance", "rebalanced", "side_at"]

FARTHEST = 30.0


@dataclass(frozen=True, eq=False)
class Side:
    """One player's point and where the next step starts from: the point itself, or theta with mirror(theta) = point."""

    home: SimpleSet
    point: FloatArray
    base: FloatArray
    mirror: bool

    def step(self, g: FloatArray, eta: float) -> Side:
        base = self.base - eta * g
        point = self.home.mirror(base) if self.mirror else self.home.project(base)
        return Side(self.home, point, base if self.mirror else point, self.mirror)

    def divergence(self, other: Side) -> float:
        """Half of D(a, b) + D(b, a), which to second order is D: no logarithms, no cancellation."""
        return float((self.base - other.base) @ (self.point - other.point)) / 2


def side_at(home: SimpleSet, point: FloatArray, mirror: bool) -> Side:
    """Return a player at a point of the set."""
    return Side(home, point, home.mirror_dual(point) if mirror else point, mirror)


def balance(form: SaddleForm, at: tuple[Side, Side]) -> float:
    """Return how much longer x's steps should be than y's: the ratio of the distances they may have to go."""
    if not np.isfinite(form.left.radius) or not np.isfinite(form.right.radius):
        return 1.0
    if at[0].mirror:
        depths = form.left.mirror_depth, form.right.mirror_depth
        return float(np.sqrt(depths[0] / depths[1])) if min(depths) > 0 else 1.0
    gx, gy = form.coupling.gradients(at[0].point, at[1].point)
    ways = (
        np.linalg.norm(form.left.linear_minimiser(gx) - at[0].point),
        np.linalg.norm(form.right.linear_minimiser(-gy) - at[1].point),
    )
    return float(ways[0] / ways[1]) if min(ways) > 0 else 1.0


def rebalanced(
    weight: float, origin: tuple[Side, Side], at: tuple[Side, Side], first: float
) -> float:
    """Return the weight moved half way, in the logarithm, to what the distances since the last restart suggest.

    It stays near the first one: a player with short steps goes a short way, which would make its
    steps shorter still.
    """
    ways = [now.divergence(then) for now, then in zip(at, origin, strict=True)]
    if not min(ways) > 1e-30:
        return weight
    return float(
        np.clip(np.sqrt(weight * np.sqrt(ways[0] / ways[1])), first / FARTHEST, first * FARTHEST)
    )
