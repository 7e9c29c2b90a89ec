"""Mehrotra's interior-point method for a quadratic program over a box cut by a plane, cheap where H has low rank.

    minimise  x'Hx/2 + c'x   over   x - s = lower,  x + t = upper,  a'x = offset,   s, t >= 0

with multipliers z of s, v of t and nu of the plane, mu = (s'z + t'v) / m. A Newton step on s z = t v = mu solves

    [H + D  a] [dx ]   [right hand side]
    [a'     0] [dnu] = [offset - a'x   ],      D = z / s + v / t  (diagonal)

H = S K S' is known by points: with E = S' D^-1 S (diagonal), M = K + E^-1 and q = S' D^-1 r, the points of the solution
of (H + D) x = r are p = M^-1 E^-1 q, and x = D^-1 (r - S K p). So a pair of variables of one point costs nothing, and
where K = L L' has low rank, M^-1 comes from I + L'E L. One step of refinement removes what D, which spans all scales,
does to the digits. s and t are kept by themselves: their digits are lost in x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.solvers._signed import SignedGram

__all__ = ["Inner", "Interior", "interior_point"]

EPS = float(np.finfo(float).eps)
Solve = Callable[[FloatArray], FloatArray]
