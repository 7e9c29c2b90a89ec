"""`Evidence`: how far a statement holds on one instance, as an interval of measured over allowed.

A statement "measured <= allowed" holds where the ratio is at most 1 and fails where it is above. An
optimum is known as an interval only, so the ratio is one too: the statement holds if even its upper
end is at most 1, fails if even its lower end is above 1, and is undecided in between. Rounding is
part of what is allowed. A ratio that is not a number says nothing and is reported as such; a trial on
which the statement claims nothing has no ratio at all (`not_measured`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS

__all__ = [
    "Curve",
    "Evidence",
    "ExponentFit",
    "Interval",
    "at_most",
    "equal",
    "every",
    "exact_interval",
    "not_measured",
    "overlap",
    "reached",
]

ROUNDING_TOLERANCE = 64 * EPS
"""Relative error of a few operations in floating point."""


class Interval(NamedTuple):
    """Two ends between which a number lies for certain."""

    lower: float
    upper: float


class ExponentFit(NamedTuple):
    """An exponent fitted to a curve, with its 95 % interval."""

    exponent: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Curve:
    """Measurements along a run beside the bound of a theorem and the exponent it predicts."""

    steps: tuple[float, ...]
    measured: tuple[float, ...]
    bound: tuple[float, ...]
    predicted: float
    label: str = ""

    def fit(self) -> ExponentFit | None:
        """Return the exponent of measured ~ steps^exponent over the later half, or None."""
        from scipy import stats

        t = np.array(self.steps)
        gap = np.array(self.measured)
        late = (t >= np.sqrt(t.max(initial=1.0))) & (gap > 0)
        if np.unique(t[late]).size < 3:
            return None
        line = stats.linregress(np.log(t[late]), np.log(gap[late]))
        spread = stats.t.ppf(0.975, late.sum() - 2) * line.stderr
        return ExponentFit(
            float(line.slope), float(line.slope - spread), float(line.slope + spread)
        )


@dataclass(frozen=True)
class Evidence:
    """The interval of measured / allowed, the curve of a run, and what was compared in words.

    `measured` is False where the statement claims nothing of the instance: such a trial counts
    neither for it nor against it.
    """

    best: float
    worst: float
    curve: Curve | None = None
    detail: str = ""
    measured: bool = True

    @property
    def holds(self) -> bool:
        """Whether the statement holds for certain."""
        return self.measured and self.best <= 1.0 and self.worst <= 1.0

    @property
    def fails(self) -> bool:
        """Whether the statement fails for certain."""
        return self.measured and self.best > 1.0 and not isnan(self.worst)

    @property
    def undefined(self) -> bool:
        """Whether an end of the ratio is not a number: neither support nor refutation."""
        return self.measured and (isnan(self.best) or isnan(self.worst))


def not_measured(why: str = "") -> Evidence:
    """Return the evidence of a trial of which the statement claims nothing.

    >>> nothing = not_measured("not a fixed point")
    >>> nothing.holds, nothing.fails, nothing.measured
    (False, False, False)
    """
    return Evidence(nan, nan, detail=why, measured=False)


def exact_interval(value: SupportsFloat | Interval) -> Interval:
    """Return the value as an interval; a plain number is its own two ends."""
    return value if isinstance(value, Interval) else Interval(float(value), float(value))


def at_most(
    left: SupportsFloat | Interval,
    right: SupportsFloat | Interval,
    *,
    tol: float = ROUNDING_TOLERANCE,
    scale: float = 0.0,
    detail: str = "",
) -> Evidence:
    """Return the evidence for left <= right.

    An excess of `tol` times the size of the terms, at least `scale`, is allowed.

    The ratio is left / right where right is positive, and else 1 plus the excess in units of
    |right|.

    >>> round(at_most(1.0, 2.0).worst, 9)
    0.5
    >>> at_most(Interval(0.9, 1.2), 1.0).holds, at_most(Interval(0.9, 1.2), 1.0).fails
    (False, False)
    """
    (a, b) = exact_interval(left)
    (c, d) = exact_interval(right)
    slack = tol * max(scale, *(abs(end) for end in (b, c) if np.isfinite(end)), 0.0)
    return Evidence(_ratio(a - slack, d), _ratio(b - slack, c), detail=detail)


def _ratio(left: float, right: float) -> float:
    """left / right in the sense of left <= right: at most 1 exactly where that holds."""
    if right > 0:
        return max(left / right, 0.0)
    if left <= right:
        return 0.0
    if right == 0:
        return np.inf
    # Both are negative and the quotient would be below 1: measure the excess instead.
    return 1.0 + (left - right) / abs(right)


def equal(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    tol: float = 1e-10,
    scale: float = 0.0,
    detail: str = "",
) -> Evidence:
    """Return the evidence for left = right.

    The ratio is the largest difference over `tol` times the size of the entries.

    >>> equal([1.0, 2.0], [1.0, 2.0]).holds, equal(1.0, 2.0).fails
    (True, True)
    """
    a = np.asarray(left, float)
    b = np.asarray(right, float)
    size = max(_largest(a), _largest(b), scale)
    off = _largest(a - b)
    ratio = 0.0 if off == 0.0 else off / (tol * size)
    return Evidence(ratio, ratio, detail=detail)


def _largest(entries: npt.NDArray[np.float64]) -> float:
    return float(np.abs(entries).max(initial=0.0))


def overlap(left: Interval, right: Interval, *, tol: float = 0.0, detail: str = "") -> Evidence:
    """Return the evidence that two optima are equal: their intervals overlap.

    Disjoint intervals refute it for certain. Overlapping ones support it only as far as they are
    narrow: an interval wider than `tol` relative decides nothing.
    """
    apart = max(left.lower - right.upper, right.lower - left.upper)
    size = 1 + max(abs(left.upper), abs(right.upper))
    if apart > ROUNDING_TOLERANCE * size:
        return Evidence(np.inf, np.inf, detail=detail)
    wide = max(left.upper - left.lower, right.upper - right.lower) / size
    return Evidence(0.0, wide / tol if tol else 0.0, detail=detail)


def every(parts: Iterable[Evidence]) -> Evidence:
    """Return the evidence for several statements at once: the one that holds least.

    Parts that measured nothing are left out; one that is not a number makes the whole so.
    """
    found = [part for part in parts if part.measured]
    if not found:
        return not_measured("no part measured anything")
    for part in found:
        if part.undefined:
            return part
    worst = max(found, key=lambda part: (part.best, part.worst))
    return Evidence(worst.best, max(part.worst for part in found), worst.curve, worst.detail)


def reached(
    steps: Sequence[float],
    gaps: Sequence[float | Interval],
    bounds: Sequence[float],
    predicted: float,
    label: str = "",
) -> Evidence:
    """Return the evidence for gap_t <= bound_t along a run, with the curve."""
    pairs = [at_most(gap, bound) for gap, bound in zip(gaps, bounds, strict=True)]
    measured = tuple(exact_interval(gap).upper for gap in gaps)
    curve = Curve(tuple(map(float, steps)), measured, tuple(map(float, bounds)), predicted, label)
    worst = every(pairs)
    return Evidence(worst.best, worst.worst, curve, worst.detail)
