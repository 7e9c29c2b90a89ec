"""Roots of equations in one unknown."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["cubic_root", "falling_root"]

STEPS = 100
EXACT = 1e-14


def cubic_root(cubic: float, linear: float, right: float) -> float:
    """Return the root s >= 0 of cubic s^3 + linear s = right to three digits, inf where there is none.

    None of the three may be negative.

    >>> round(cubic_root(1.0, 3.0, 14.0), 3), cubic_root(0.0, 0.0, 1.0)
    (2.0, inf)
    """
    if not right or not (cubic or linear):
        return inf if right else 0.0
    s = (right / cubic) ** (1 / 3) if cubic > 0 else right / linear
    if s == inf:
        return s
    for _ in range(50):
        step = (cubic * s**3 + linear * s - right) / (3 * cubic * s**2 + linear)
        s -= step
        if abs(step) <= 1e-3 * s:
            break
    return s


def falling_root(
    function: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    x: FloatArray,
    low: float = -inf,
    high: float = inf,
) -> FloatArray:
    """Return the roots of falling functions, one for each entry; `function` returns values and how steeply they fall.

    Newton's steps, with every fourth one, and those that leave what is known to hold the root, to
    its middle.

    >>> falling_root(lambda x: (np.array([8.0, 27.0]) - x**3, 3 * x**2), np.ones(2))
    array([2., 3.])
    """
    lows, highs = np.full_like(x, low), np.full_like(x, high)
    for tried in range(1, STEPS + 1):
        values, falls = function(x)
        lows, highs = np.where(values > 0, x, lows), np.where(values > 0, highs, x)
        steps = values / falls
        if (np.abs(steps) <= EXACT * (1 + np.abs(x))).all():
            break
        middles = (lows + highs) / 2
        inside = (lows < x + steps) & (x + steps < highs)
        x = np.where(np.isfinite(middles) & (~inside | (tried % 4 == 0)), middles, x + steps)
    return x
