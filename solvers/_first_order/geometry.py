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

__all__ = ["Player", "first_step_ratio", "player_at", "rebalanced_step_ratio"]

MAX_STEP_RATIO_CHANGE = 30.0
"""The ratio of the steps stays within this factor of the first one."""


@dataclass(frozen=True, eq=False)
class Player:
    """One player's point, and where the next step starts from.

    That is the point itself, or in the entropy's geometry theta with mirror(theta) = point.
    """

    home: SimpleSet
    point: FloatArray
    base: FloatArray
    mirror: bool

    def step(self, g: FloatArray, eta: float) -> Player:
        """Return the player after a step of length eta against g."""
        base = self.base - eta * g
        if self.mirror:
            return Player(self.home, self.home.mirror(base), base, True)
        point = self.home.project(base)
        return Player(self.home, point, point, False)

    def divergence(self, other: Player) -> float:
        """Half of D(a, b) + D(b, a), to second order D: no logarithms, no cancellation."""
        return float((self.base - other.base) @ (self.point - other.point)) / 2


def player_at(home: SimpleSet, point: FloatArray, mirror: bool) -> Player:
    """Return a player at a point of the set."""
    return Player(home, point, home.mirror_dual(point) if mirror else point, mirror)


def first_step_ratio(form: SaddleForm, at: tuple[Player, Player]) -> float:
    """Return how much longer x's steps should be than y's.

    It is the ratio of the distances that they may have to go.
    """
    # An unbounded set tells nothing of the distance.
    if not np.isfinite(form.left.radius) or not np.isfinite(form.right.radius):
        return 1.0
    left, right = at
    if left.mirror:
        depths = form.left.mirror_depth, form.right.mirror_depth
        return float(np.sqrt(depths[0] / depths[1])) if min(depths) > 0 else 1.0
    gx, gy = form.coupling.gradients(left.point, right.point)
    way_x = np.linalg.norm(form.left.linear_minimiser(gx) - left.point)
    way_y = np.linalg.norm(form.right.linear_minimiser(-gy) - right.point)
    return float(way_x / way_y) if min(way_x, way_y) > 0 else 1.0


def rebalanced_step_ratio(
    ratio: float, origin: tuple[Player, Player], at: tuple[Player, Player], first: float
) -> float:
    """Return the ratio moved half way, in the logarithm, to what the last distances suggest.

    It stays near the first one: a player with short steps goes a short way, which would make its
    steps shorter still.

    Parameters
    ----------
    ratio
        The ratio of the steps so far.
    origin, at
        The players at the last restart and now.
    first
        The first ratio.
    """
    way_x = at[0].divergence(origin[0])
    way_y = at[1].divergence(origin[1])
    # A player that did not move tells nothing.
    if not min(way_x, way_y) > 1e-30:
        return ratio
    suggested = np.sqrt(ratio * np.sqrt(way_x / way_y))
    low = first / MAX_STEP_RATIO_CHANGE
    high = first * MAX_STEP_RATIO_CHANGE
    return float(np.clip(suggested, low, high))
