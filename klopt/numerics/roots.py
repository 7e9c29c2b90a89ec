"""Roots of equations in one unknown."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["cubic_root", "falling_root"]

MAX_NEWTON_STEPS = 100
"""Steps for a falling function; a handful is usual."""
MAX_CUBIC_STEPS = 50
"""Newton steps for a cubic, which from above converge without safeguards."""
RELATIVE_STEP = 1e-14
"""A step smaller than this is rounding."""


def cubic_root(cubic: float, linear: float, right: float) -> float:
    """Return the root s >= 0 of cubic s^3 + linear s = right to three digits, inf without one.

    None of the three may be negative.

    >>> round(cubic_root(1.0, 3.0, 14.0), 3), cubic_root(0.0, 0.0, 1.0)
    (2.0, inf)
    """
    if not right:
        return 0.0
    if not (cubic or linear):
        return inf
    s = (right / cubic) ** (1 / 3) if cubic > 0 else right / linear
    if s == inf:  # the quotient overflowed
        return s
    for _ in range(MAX_CUBIC_STEPS):
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
    """Return the roots of falling functions, one for each entry, by safeguarded Newton steps.

    Every fourth step, and each that leaves the bracket of its root, goes to the bracket's middle.

    Parameters
    ----------
    function
        Returns the values and how steeply they fall.
    x
        Where to start.
    low, high
        What is known to hold all roots.

    Examples
    --------
    >>> falling_root(lambda x: (np.array([8.0, 27.0]) - x**3, 3 * x**2), np.ones(2))
    array([2., 3.])
    """
    lows = np.full_like(x, low)
    highs = np.full_like(x, high)
    for step_number in range(1, MAX_NEWTON_STEPS + 1):
        values, falls = function(x)
        left_of_root = values > 0
        lows = np.where(left_of_root, x, lows)
        highs = np.where(left_of_root, highs, x)
        steps = values / falls
        if (np.abs(steps) <= RELATIVE_STEP * (1 + np.abs(x))).all():
            break
        middles = (lows + highs) / 2
        inside = (lows < x + steps) & (x + steps < highs)
        bisect = np.isfinite(middles) & (~inside | (step_number % 4 == 0))
        x = np.where(bisect, middles, x + steps)
    return x
