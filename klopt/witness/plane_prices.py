"""The price of a plane that cuts a box: a multiplier for which weak duality says much."""

from __future__ import annotations

import math

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.sets import BoxPlane
from klopt.proof.enclosure import Enclosure

__all__ = ["plane_price"]

LARGE = 1e100
"""Stands for an infinite term of a plane where its multiplier is chosen."""


def plane_price(domain: BoxPlane, g: Enclosure, curvature: FloatArray | None) -> float:
    """Return a good multiplier lam of the plane for the minimum of g'z over the set.

    Below its price g_i / normal_i a term normal_i z_i of the plane is at its minimum, above it at its
    maximum; the best lam is the price at which the terms add up to the offset. Any lam is right:
    this is a proposal in plain floats.

    >>> box = BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 1.5)
    >>> plane_price(box, Enclosure.of(np.array([1.0, 2.0])), None)
    2.0
    """
    assert domain.normal is not None
    seen = np.flatnonzero(domain.normal)
    if not seen.size:
        return 0.0
    normal = domain.normal[seen]
    at_lower = normal * domain.lower[seen]
    at_upper = normal * domain.upper[seen]
    low = np.minimum(at_lower, at_upper)
    high = np.maximum(at_lower, at_upper)
    price = g.mid[seen] / normal
    order = np.argsort(price)
    ranges = np.minimum(high, LARGE) - np.maximum(low, -LARGE)
    filled = np.maximum(low, -LARGE).sum() + np.cumsum(ranges[order])
    pivot = min(int(np.searchsorted(filled, domain.offset)), seen.size - 1)
    lam = float(price[order[pivot]])

    # Where a side is infinite the sign of g_i - lam normal_i must be sure, rounding included.
    slack = 2 * np.abs(g.rad[seen] / normal) + 4 * EPS * np.abs(price)
    flat = np.full(seen.size, True) if curvature is None else curvature[seen] <= 0
    least = np.max((price + slack)[flat & np.isinf(low)], initial=-np.inf)
    most = np.min((price - slack)[flat & np.isinf(high)], initial=np.inf)
    lam = float(min(max(lam, least), most))
    return lam if math.isfinite(lam) else 0.0
