"""Axes of a chart: from numbers to places, ticks that people would choose, and curves thinned to what an eye can see.

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

__all__ = ["MOST_POINTS", "Axis", "thinned"]

MOST_POINTS = 400
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
        """Return an axis that holds the finite values with a little room; a logarithmic one drops what is not positive.

        >>> axis = Axis.around("n", [100.0, 400.0], log=True)
        >>> axis.low < 100 < 400 < axis.high
        True
        """
        kept = [float(v) for v in values if isfinite(v) and (v > 0 or not log)]
        low, high = (min(kept), max(kept)) if kept else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            room = max(0.04 * log10(high / low), 0.15)
            return cls(label, 10 ** (log10(low) - room), 10 ** (log10(high) + room), log=True)
        low = min(low, 0.0) if zero else low
        narrow = high - low <= 1e-6 * max(abs(low), abs(high))
        room = 0.5 * (abs(high) or 1.0) if narrow else 0.05 * (high - low)
        return cls(label, low if zero and low == 0.0 else low - room, high + room)

    def share(self, value: float) -> float:
        """Return where a value lies between `low` (0) and `high` (1), clipped to them."""
        low, high = (log10(self.low), log10(self.high)) if self.log else (self.low, self.high)
        place = log10(max(value, self.low)) if self.log else value
        return min(max((place - low) / (high - low), 0.0), 1.0)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return at most about so many ticks, each with its text."""
        values = self._log_ticks(most) if self.log else self._linear_ticks(most)
        if self.log and any(v < 1e-3 * (1 - 1e-9) or v > 9999 for v in values):
            return [(v, _power(v)) for v in values]
        return [(v, f"{v:.10g}") for v in values]

    def _log_ticks(self, most: int) -> list[float]:
        first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
        every = max(1, ceil((last - first + 1) / most))
        whole = [10.0**k for k in range(first, last + 1) if k % every == 0]
        fine = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        inside = [v for v in fine if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
        return whole if len(whole) >= 3 or not inside else inside

    def _linear_ticks(self, most: int) -> list[float]:
        rough = (self.high - self.low) / most
        size = 10.0 ** floor(log10(rough))
        step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= rough * (1 - 1e-9))
        first = ceil(self.low / step - 1e-9)
        return [float(f"{k * step:.12g}") for k in range(first, floor(self.high / step + 1e-9) + 1)]


def _power(value: float) -> str:
    """Return 10⁻⁶ for 1e-6, 2·10⁻⁶ for 2e-6, and 1, 10, 100, 1000 as they are."""
    exponent = floor(log10(value) + 1e-9)
    lead = round(value / 10.0**exponent)
    if 0 <= exponent <= 3:
        return f"{value:.0f}"
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if lead == 1 else f"{lead}·{power}"


def thinned(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[FloatArray, FloatArray]:
    """Return at most so many of the points, dense at the start and sparse at the end; both ends are kept.

    >>> x, y = thinned(np.arange(1, 100001.0), np.arange(1, 100001.0))
    >>> len(x) <= 400, x[0], x[-1]
    (True, np.float64(1.0), np.float64(100000.0))
    """
    if len(x) <= most:
        return x, y
    kept = np.unique(np.rint(np.geomspace(1, len(x), most)).astype(int) - 1)
    return x[kept], y[kept]
