"""The classifier that multipliers propose: its best bias and its best multiple.

    minimum over b and s >= 0 of    s^2 squared_norm / 2 + C sum_i max(0, 1 - s y_i (f_i + b))

taken one after the other. The multiple matters where C is large: a classifier whose margins fall
short of 1 by 1e-12 pays C times for that, one stretched by 1e-12 does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from klopt.arrays import EPS, FloatArray

__all__ = ["ScaledClassifier", "best_bias", "scaled_classifier"]


class ScaledClassifier(NamedTuple):
    """A bias, the multiple of function and bias, and the value of the multiple."""

    bias: float
    multiple: float
    value: float


def scaled_classifier(
    f: FloatArray,
    squared_norm: float,
    y: FloatArray,
    C: float,
    sizes: FloatArray | float = 0.0,
    operations: int = 0,
) -> ScaledClassifier:
    """Return the best bias of f and the best multiple of both.

    Parameters
    ----------
    f : (n,) array
        The function at the points.
    squared_norm : float
        Its squared norm.
    y, C
        Labels and penalty.
    sizes, operations
        The sizes of the terms of f and the operations that it took: a proof will count margins as
        shorter by their rounding, so that the multiple is chosen for those.

    Examples
    --------
    >>> scaled_classifier(np.array([0.5, -0.5]), 1.0, np.array([1.0, -1.0]), 10.0)
    ScaledClassifier(bias=0.0, multiple=2.0, value=2.0)
    """
    bias = best_bias(y, f)
    rounding = operations * EPS * (1 + abs(bias) + sizes)
    margins = np.sort(y * (f + bias) - rounding)
    scales = np.array([1.0, _best_multiple(margins, squared_norm, C)])
    losses = np.maximum(1 - np.multiply.outer(scales, margins), 0.0).sum(axis=1)
    values = scales * scales * (squared_norm / 2) + C * losses
    # The multiple 1 stays where the other one, by rounding, is no better.
    better = int(values[1] < values[0])
    return ScaledClassifier(bias, float(scales[better]), float(values[better]))


def best_bias(y: FloatArray, f: FloatArray) -> float:
    """Return a b that minimises sum_i max(0, 1 - y_i (f_i + b)): a median of y - f.

    >>> best_bias(np.array([1.0, -1.0]), np.array([1.0, 1.0]))
    -1.0
    """
    count = int(np.count_nonzero(y > 0))
    ordered = np.partition(y - f, [count - 1, count])
    left = ordered[count - 1]
    right = ordered[count]
    return float(left + (right - left) / 2)


def _best_multiple(m: FloatArray, squared_norm: float, C: float) -> float:
    """The s >= 0 where the derivative, s squared_norm - C (sum of the m_i < 1/s), changes sign."""
    lost = m.cumsum()
    first = int(m.searchsorted(0.0, "right"))  # margins up to here have no break at s > 0
    with np.errstate(all="ignore"):
        breaks = 1 / m[first:]
        # Beyond the break 1 / m_j only the points before j lose: the derivative falls with j.
        j = first + int(np.count_nonzero(squared_norm * breaks > C * (lost - m)[first:]))

    # Between the breaks `low` and `high` the derivative is linear, with this zero.
    pull = C * float(lost[j - 1]) if j > first else 0.0
    if squared_norm > 0:
        zero = pull / squared_norm
    else:
        zero = np.inf if pull > 0 else 0.0
    low = float(breaks[j - first]) if j < m.size else 0.0
    high = float(breaks[j - first - 1]) if j > first else np.inf
    return min(max(zero, low), high)
