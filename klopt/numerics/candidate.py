"""A feasible point with the bounds of the optimum that it proves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, isnan

import numpy as np

from klopt.arrays import FloatArray

__all__ = ["Candidate", "require_finite"]

STOP_SHARE = 0.9
"""The share of a tolerance that ends a run: klopt repairs the point and measures again."""
ROUNDED_STOP_SHARE = 0.5
"""That share for a tolerance below `ROUNDED_TOLERANCE`, where rounding is of its size."""
ROUNDED_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Candidate:
    """A feasible point and what it proves: lower <= optimum <= upper.

    Both are what klopt will find again from the candidate alone. `y` is what proves `lower` where
    the point does not: the other player's point, or a set of cuts.
    """

    x: FloatArray
    upper: float
    lower: float
    y: FloatArray | None = None

    @property
    def finite(self) -> bool:
        """Whether no entry is NaN or infinite and no bound NaN; an infinite bound says nothing."""
        bounds = self.upper > -inf and not isnan(self.lower)
        parts = (self.x,) if self.y is None else (self.x, self.y)
        return bool(bounds) and all(bool(np.isfinite(part).all()) for part in parts)

    def proves(self, tol: float) -> bool:
        """Whether the bounds are so close that klopt will find them close enough."""
        gap = self.upper - self.lower
        share = STOP_SHARE if tol >= ROUNDED_TOLERANCE else ROUNDED_STOP_SHARE
        return isfinite(gap) and gap <= share * tol * (1 + abs(self.upper))

    @property
    def rank(self) -> tuple[float, float]:
        """The smallest gap first, then the lowest value."""
        return self.upper - self.lower, self.upper


def require_finite(*arrays: FloatArray) -> None:
    """Raise where an entry is NaN or infinite, before a projection has to make sense of it."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise FloatingPointError("a gradient has entries that are NaN or infinite")
