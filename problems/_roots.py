"""Roots of equations in one unknown that starts are made of."""

from __future__ import annotations

from math import inf

__all__ = ["cubic_root"]


def cubic_root(cubic: float, linear: float, right: float) -> float:
    """Return the root s >= 0 of cubic s^3 + linear s = right to three digits, inf where there is none.

    None of the three may be negative.

    >>> round(cubic_root(1.0, 3.0, 14.0), 3), cubic_root(0.0, 0.0, 1.0)
    (2.0, inf)
    """
    if not right or not (cubic or linear):
        return inf if right else 0.0
    s = (right / cubic) ** (1 / 3) if cubic > 0 else right / linear
    for _ in range(50):
        step = (cubic * s**3 + linear * s - right) / (3 * cubic * s**2 + linear)
        s -= step
        if abs(step) <= 1e-3 * s:
            break
    return s
