"""Whether vectors and all their neighbours lie in a power cone or in its dual.

    K = {(x, z) : x_1^a_1 .. x_k^a_k >= |z|,  x >= 0},     a_i = w_i / W,  W = w_1 + .. + w_k

with positive whole numbers w_i.

**Lemma P1 (corner).** The mean x^a grows with each x_i >= 0. So all (x, z) with x >= l >= 0 and
|z| <= t lie in K if (l, t) does; this is l_1^w_1 .. l_k^w_k >= t^W, or t = 0, or t <= min l_i. Powers
are compared in rationals where W is small, otherwise sum_i w_i log l_i > W log t in balls of many
bits (Arb), where equality is not decided.

**Lemma P2 (dual).** (u, v) lies in K* if and only if (u_1/a_1, .., u_k/a_k, v) lies in K: by the
inequality of means, u'x = sum_i a_i (u_i x_i / a_i) >= (u/a)^a x^a, with equality for suitable x.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones.power import Weights
from klopt.proof.balls import working_bits
from klopt.proof.enclosure import Enclosure, round_down, round_up

__all__ = ["dual_power_room", "in_dual_power_cones", "in_power_cones"]

BITS = 1280
"""The precision of the logarithms."""
MAX_EXACT_POWER = 64
"""The largest W for which powers are compared in rationals."""
ROOM_TRIALS = 18
"""How often the room around multipliers is tried, each time an eighth: the last is below rounding."""


def in_power_cones(cones: tuple[Weights, ...], s: Enclosure) -> bool:
    """Return whether every s enclosed lies in a product of power cones (Lemma P1).

    >>> in_power_cones(((1, 1),), Enclosure.of(np.array([2.0, 2.0, -2.0])))
    True
    >>> in_power_cones(((1, 1),), Enclosure.of(np.array([2.0, 2.0, np.nextafter(2.0, 3.0)])))
    False
    """
    return _are_inside(cones, s, dual=False)


def in_dual_power_cones(cones: tuple[Weights, ...], y: Enclosure) -> bool:
    """Return whether every y enclosed lies in the dual of a product of power cones (Lemma P2).

    >>> in_dual_power_cones(((1, 1),), Enclosure.of(np.array([1.0, 1.0, -2.0])))
    True
    """
    return _are_inside(cones, y, dual=True)


def dual_power_room(cones: tuple[Weights, ...], y: FloatArray) -> FloatArray:
    """Return for each row how far y may move in norm within its cone: a trial proves it.

    >>> dual_power_room(((1, 1),), np.array([1.0, 1.0, 0.5]))
    array([0.125, 0.125, 0.125])
    """
    room = np.zeros(y.size)
    start = 0
    for weights in cones:
        rows = slice(start, start + len(weights) + 1)
        part = y[rows]
        size = float(np.min(part[:-1]))
        for trial in range(1, ROOM_TRIALS + 1):
            radius = size * 8.0**-trial
            if _is_inside(weights, Enclosure(part, np.full(part.size, radius)), dual=True):
                room[rows] = radius
                break
        start = rows.stop
    return room


def _are_inside(cones: tuple[Weights, ...], s: Enclosure, *, dual: bool) -> bool:
    if not (np.isfinite(s.mid).all() and np.isfinite(s.rad).all()):
        return False
    start = 0
    for weights in cones:
        stop = start + len(weights) + 1
        if not _is_inside(weights, s[start:stop], dual=dual):
            return False
        start = stop
    return True


def _is_inside(weights: Weights, s: Enclosure, *, dual: bool) -> bool:
    """Whether the corner of the numbers enclosed lies in the cone."""
    exact = s.rad == 0
    low = np.where(exact, s.mid, round_down(s.mid - s.rad))
    high = np.where(exact, np.abs(s.mid), round_up(np.abs(s.mid) + s.rad))
    corner = low[:-1].tolist()
    top = float(high[-1])
    # NaN fails the comparison, too.
    if not (low[:-1] >= 0).all() or not np.isfinite(top):
        return False
    if top == 0:
        return True
    if 0.0 in corner:
        return False
    # The mean is at least the smallest entry; in the dual, u_i / a_i is at least u_i.
    if top <= min(corner):
        return True
    return _decided(weights, corner, top, dual)


def _decided(weights: Weights, corner: list[float], top: float, dual: bool) -> bool:
    """Whether the mean of positive numbers is at least a positive number."""
    from flint import arb, fmpq

    total = sum(weights)
    if total <= MAX_EXACT_POWER:
        product = fmpq(1)
        for weight, entry in zip(weights, corner, strict=True):
            share = fmpq(*entry.as_integer_ratio())
            product *= (share * total / weight if dual else share) ** weight
        return bool(product >= fmpq(*top.as_integer_ratio()) ** total)
    with working_bits(BITS):
        depth = -total * arb(top).log()
        for weight, entry in zip(weights, corner, strict=True):
            ball = arb(entry)
            depth += weight * (ball * total / weight if dual else ball).log()
        return bool(depth > 0)
