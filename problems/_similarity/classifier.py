"""The classifier that multipliers propose: its best bias and its best multiple.

    minimum over b and s >= 0 of    s^2 squared_norm / 2 + C sum_i max(0, 1 - s y_i (f_i + b))

taken one after the other. The multiple matters where C is large: a classifier whose margins fall
short of 1 by 1e-12 pays C times for that, one stretched by 1e-12 does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.problems._margin.proof import Penalty, best_scale, hinge_bias

__all__ = ["ScaledClassifier", "scaled_classifier"]


class ScaledClassifier(NamedTuple):
    """A bias, the multiple of function and bias, and the value of the multiple."""

    bias: float
    multiple: float
    value: float


def scaled_classifier(
    f: FloatArray,
    squared_norm: float,
    y: FloatArray,
    C: Penalty,
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
        Labels and penalty, one number or one for each point.
    sizes, operations
        The sizes of the terms of f and the operations that it took: a proof will count margins as
        shorter by their rounding, so that the multiple is chosen for those.

    Examples
    --------
    >>> scaled_classifier(np.array([0.5, -0.5]), 1.0, np.array([1.0, -1.0]), 10.0)
    ScaledClassifier(bias=0.0, multiple=2.0, value=2.0)
    """
    bias = hinge_bias(y, f, C)
    rounding = operations * EPS * (1 + abs(bias) + sizes)
    margins = y * (f + bias) - rounding
    scales = np.array([1.0, best_scale(margins, squared_norm, C)])
    losses = C * np.maximum(1 - np.multiply.outer(scales, margins), 0.0)
    values = scales * scales * (squared_norm / 2) + losses.sum(axis=1)
    # The multiple 1 stays where the other one, by rounding, is no better.
    better = int(values[1] < values[0])
    return ScaledClassifier(bias, float(scales[better]), float(values[better]))
