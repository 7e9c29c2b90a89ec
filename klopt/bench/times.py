"""Times that were measured several times: their interval, ties, and means over many problems.

time interval            from the 10 % to the 90 % quantile of the repeats, and at least 10 % to
                         both sides of the median: what two runs on one computer differ by,
                         however few were made. Two times tie if their intervals overlap.
shifted geometric mean   exp(mean log(t + s)) - s. Times far below the shift s are averaged like
                         ordinary numbers, so that milliseconds do not decide; times far above
                         it by their ratios, so that one slow problem does not decide. s is a
                         hundredth of the limit, at most 10 s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from klopt.bench.record import Run

__all__ = [
    "CLOCK_TICK_S",
    "Interval",
    "geometric_mean",
    "overlap",
    "quantile_interval",
    "shift_of",
    "shifted_mean",
    "time_interval",
]

Interval: TypeAlias = tuple[float, float]
"""Two ends, the smaller one first."""

LOW_QUANTILE = 0.1
HIGH_QUANTILE = 0.9
"""The quantiles of its repeats between which a time is said to lie."""
MIN_SPREAD = 0.1
"""The share of its median by which a time is uncertain at least."""
CLOCK_TICK_S = 1e-6
"""What a clock can resolve; no ratio is taken of shorter times."""
MAX_SHIFT_S = 10.0
"""The largest shift of a geometric mean."""


def time_interval(times: Sequence[float]) -> Interval:
    """Return where a further repeat would probably lie.

    >>> time_interval([1.0])
    (0.9, 1.1)
    >>> time_interval([1.0, 1.0, 3.0])
    (0.9, 2.6)
    """
    middle = float(np.median(times))
    low, high = quantile_interval(times)
    return min(low, (1 - MIN_SPREAD) * middle), max(high, (1 + MIN_SPREAD) * middle)


def quantile_interval(times: Sequence[float]) -> Interval:
    """Return the 10 % and the 90 % quantile.

    >>> quantile_interval([1.0, 2.0, 3.0])
    (1.2, 2.8)
    """
    low, high = np.quantile(times, (LOW_QUANTILE, HIGH_QUANTILE))
    return float(low), float(high)


def overlap(first: Interval, second: Interval) -> bool:
    """Return whether two intervals have a point in common.

    >>> overlap((0.9, 1.1), (1.0, 2.0)), overlap((0.9, 1.1), (1.2, 2.0))
    (True, False)
    """
    return first[0] <= second[1] and second[0] <= first[1]


def shift_of(runs: Sequence[Run]) -> float:
    """Return the shift of the geometric mean: a hundredth of the longest limit, at most 10 s."""
    longest = max((run.time_limit for run in runs), default=0.0)
    return min(MAX_SHIFT_S, longest / 100) or 1.0


def shifted_mean(times: Sequence[float], shift: float) -> float:
    """Return the shifted geometric mean.

    >>> round(shifted_mean([1.0, 4.0], 0.0), 9)
    2.0
    """
    return geometric_mean([seconds + shift for seconds in times]) - shift


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers.

    >>> round(geometric_mean([1.0, 100.0]), 9)
    10.0
    """
    return math.exp(math.fsum(map(math.log, values)) / len(values))
