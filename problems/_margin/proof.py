"""The primal value of a classifier under the hinge loss, and the best multiple of it and of its multipliers.

A classifier with margins m_i and squared norm `curve` may be scaled by any s >= 0:

    s^2 curve / 2 + C sum_i max(0, 1 - s m_i)

is convex in s, with breaks at 1 / m_i, so that the least value is found by sorting the margins.
"""

from __future__ import annotations

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["best_stretch", "hinge_primal"]


def best_stretch(a: FloatArray, curve: float, C: float) -> float:
    """Return the factor that raises 1'a - curve / 2 most inside the box [0, C]; 1 where that is rounding."""
    total, most = float(a.sum()), float(a.max())
    if not most > 0:
        return 1.0
    factor = min(total / curve if curve > 0 else np.inf, C / most)
    gain = (factor - 1) * total - (factor**2 - 1) * curve / 2
    return factor if gain > 1e-9 * total else 1.0


def hinge_primal(margins: FloatArray, curve: float, C: float) -> tuple[float, float]:
    """Return the least s^2 curve / 2 + C sum max(0, 1 - s margin) over s >= 0, and that s.

    >>> hinge_primal(np.array([0.5, 2.0]), curve=1.0, C=10.0)
    (2.0, 2.0)
    """
    if np.isinf(C):
        least = float(margins.min())
        return (max(curve, 0.0) / 2 / least**2, 1 / least) if least > 0 else (np.inf, 1.0)
    m = np.sort(margins)
    losing, first = m.cumsum(), int(m.searchsorted(0.0, "right"))
    with np.errstate(all="ignore"):
        breaks = 1 / m[first:]
        # Beyond the break 1 / m_j only the points before j lose: the gradient there falls with j.
        j = first + int(np.count_nonzero(curve * breaks > C * (losing - m)[first:]))
    pull = C * float(losing[j - 1]) if j > first else 0.0
    inner = pull / curve if curve > 0 else np.inf if pull > 0 else 0.0
    low = float(breaks[j - first]) if j < m.size else 0.0
    high = float(breaks[j - first - 1]) if j > first else np.inf
    scales = np.array([1.0, min(max(inner, low), high)])
    values = scales * scales * (curve / 2) + C * np.maximum(
        1 - np.multiply.outer(scales, m), 0.0
    ).sum(axis=1)
    least = int(values[1] < values[0])
    return float(values[least]), float(scales[least])
