"""Axes of a chart: from numbers to places, round ticks, and curves thinned to what an eye can see.

A linear axis has ticks at 1, 2 or 5 times a power of ten. A logarithmic one has them at the powers
of ten, every k-th where they would crowd, and at 2 and 5 times them where it spans less than two
decades.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["MAX_POINTS", "Axis", "thinned"]

MAX_POINTS = 400
"""Points of a curve that are drawn; an eye sees no more."""
PLAIN_FROM = 1e-3
PLAIN_TO = 9999
"""Ticks of a logarithmic axis between these are written out, others as powers of ten."""
ROUNDING = 1e-9
"""The relative distance within which a tick counts as on the end of its axis."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """A range of numbers with a label, linear or logarithmic.

    >>> Axis("seconds", 0.001, 10.0, log=True).ticks(5)
    [(0.001, '0.001'), (0.01, '0.01'), (0.1, '0.1'), (1.0, '1'), (10.0, '10')]
    >>> Axis("width", 1e-9, 1.0, log=True).ticks(4)
    [(1e-09, '10⁻⁹'), (1e-06, '10⁻⁶'), (0.001, '10⁻³'), (1.0, '1')]
    >>> Axis("share", 0.0, 1.0).ticks(5)
    [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')]
    """

    label: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def around(
        cls, label: str, values: Iterable[float], *, log: bool = False, zero: bool = False
    ) -> Axis:
        """Return an axis that holds the finite values, with a margin.

        A logarithmic axis drops what is not positive; with `zero` a linear one begins there.

        >>> axis = Axis.around("n", [100.0, 400.0], log=True)
        >>> axis.low < 100 < 400 < axis.high
        True
        """
        kept = [float(v) for v in values if isfinite(v) and (v > 0 or not log)]
        if log:
            return cls._around_log(label, kept or [1.0, 10.0])
        return cls._around_linear(label, kept or [0.0, 1.0], zero)

    @classmethod
    def _around_log(cls, label: str, values: list[float]) -> Axis:
        low = log10(min(values))
        high = log10(max(values))
        margin = max(0.04 * (high - low), 0.15)
        return cls(label, 10 ** (low - margin), 10 ** (high + margin), log=True)

    @classmethod
    def _around_linear(cls, label: str, values: list[float], zero: bool) -> Axis:
        low = min(values)
        high = max(values)
        if zero:
            low = min(low, 0.0)
        margin = 0.05 * (high - low)
        if high - low <= 1e-6 * max(abs(low), abs(high)):
            margin = 0.5 * (abs(high) or 1.0)  # one value, or values that differ by rounding
        if zero and low == 0.0:
            return cls(label, 0.0, high + margin)
        return cls(label, low - margin, high + margin)

    def share(self, value: float) -> float:
        """Return where a value lies between `low` (0) and `high` (1), clipped to them."""
        if self.log:
            decades = log10(self.high) - log10(self.low)
            place = (log10(max(value, self.low)) - log10(self.low)) / decades
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(max(place, 0.0), 1.0)

    def ticks(self, count: int = 6) -> list[tuple[float, str]]:
        """Return at most about so many ticks, each with its text."""
        values = self._log_ticks(count) if self.log else self._linear_ticks(count)
        if self.log and any(v < PLAIN_FROM * (1 - ROUNDING) or v > PLAIN_TO for v in values):
            return [(v, _power(v)) for v in values]
        return [(v, f"{v:.10g}") for v in values]

    def _log_ticks(self, count: int) -> list[float]:
        first = ceil(log10(self.low) - ROUNDING)
        last = floor(log10(self.high) + ROUNDING)
        decades = last - first + 1
        every = max(1, ceil(decades / count))
        powers = [10.0**k for k in range(first, last + 1) if k % every == 0]
        if decades >= 3:
            return powers
        # Less than two decades: multiples of the powers of ten, too.
        low = self.low * (1 - ROUNDING)
        high = self.high * (1 + ROUNDING)
        for multiples in ((1, 2, 5), range(1, 10)):
            fine = [m * 10.0**k for k in range(first - 1, last + 1) for m in multiples]
            inside = [value for value in fine if low <= value <= high]
            if inside:
                return inside
        # An axis around a single number, with no round one near it.
        return [(self.low * self.high) ** 0.5]

    def _linear_ticks(self, count: int) -> list[float]:
        spacing = (self.high - self.low) / count
        power = 10.0 ** floor(log10(spacing))
        wide_enough = (
            m * power for m in (1, 2, 2.5, 5, 10) if m * power >= spacing * (1 - ROUNDING)
        )
        step = next(wide_enough)
        first = ceil(self.low / step - ROUNDING)
        last = floor(self.high / step + ROUNDING)
        return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _power(value: float) -> str:
    """Return 10⁻⁶ for 1e-6, 2·10⁻⁶ for 2e-6, and 1, 10, 100, 1000 as they are."""
    exponent = floor(log10(value) + 1e-9)
    lead = round(value / 10.0**exponent)
    if 0 <= exponent <= 3:
        return f"{value:.0f}"
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if lead == 1 else f"{lead}·{power}"


def thinned(x: FloatArray, y: FloatArray, count: int = MAX_POINTS) -> tuple[FloatArray, FloatArray]:
    """Return at most so many of the points, dense at the start, with both ends.

    >>> x, y = thinned(np.arange(1, 100001.0), np.arange(1, 100001.0))
    >>> len(x) <= 400, x[0], x[-1]
    (True, np.float64(1.0), np.float64(100000.0))
    """
    if len(x) <= count:
        return x, y
    kept = np.unique(np.rint(np.geomspace(1, len(x), count)).astype(int) - 1)
    return x[kept], y[kept]
