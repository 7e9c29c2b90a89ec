"""The best multipliers of a support vector machine, to an optimality gap that is measured.

    maximise  y'a - a'Ka/2   over   lower <= a <= upper,  normal'a = offset

Functions of the kernel K need them again and again. Multipliers of the last kernel that are still
good enough are kept; otherwise Mehrotra's method (`klopt.numerics.box_qp.interior_point`), which
does not mind a kernel of low rank, takes 8 to 20 factorisations of K plus a diagonal. How far the
value may still be below the maximum is measured, not assumed:

    gap = g'a - min over z of g'z,    g = Ka - y.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets.box_plane import BoxPlane
from klopt.numerics.box_qp.interior_point import interior_iterates
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram

__all__ = ["Multipliers", "best_multipliers"]

MAX_ITERATES = 60
"""Interior points that are looked at."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers a and their value y'a - a'Ka/2, at most `gap` below the maximum."""

    a: FloatArray
    value: float
    gap: float


def best_multipliers(
    K: FloatArray, y: FloatArray, box: BoxPlane, start: FloatArray | None, tol: float
) -> Multipliers:
    """Return multipliers whose gap is at most tol (1 + |value|), or the best that were met.

    Parameters
    ----------
    K
        The kernel matrix, symmetric and positive semidefinite.
    y
        The labels or targets.
    box
        The set of the multipliers; it must be bounded.
    start
        Multipliers that may be good enough already.
    tol
        The gap aimed at.

    Examples
    --------
    >>> box = BoxPlane([0.0, -5.0], [5.0, 0.0], [1.0, 1.0])
    >>> best_multipliers(np.eye(2), np.array([1.0, -1.0]), box, None, 1e-9).a.round(6)
    array([ 1., -1.])
    """
    best = _judged(K, y, box, box.centre() if start is None else box.project(start))
    if best.gap <= tol * (1 + abs(best.value)):
        return best

    whole = BoxQP(SignedGram(K), -y, Box.of(box))
    moving = np.flatnonzero(box.lower < box.upper)
    qp = whole if moving.size == y.size else whole.restricted(moving, box.lower)
    # From the middle, since the best multipliers of a large box are not all near one corner.
    middle = (qp.box.lower + qp.box.upper) / 2
    iterates = interior_iterates(qp, start=middle)
    for iterate in islice(iterates, 1, MAX_ITERATES + 1):
        a = box.lower.copy()
        a[moving] = iterate.x
        a, _ = whole.box.project(a)
        best = min(best, _judged(K, y, box, a), key=lambda found: found.gap)
        if best.gap <= tol * (1 + abs(best.value)):
            break
    return best


def _judged(K: FloatArray, y: FloatArray, box: BoxPlane, a: FloatArray) -> Multipliers:
    Ka = K @ a
    g = Ka - y
    value = float(y @ a - a @ Ka / 2)
    gap = float(g @ a) - box.linear_minimum(g)
    return Multipliers(a, value, max(gap, 0.0))
