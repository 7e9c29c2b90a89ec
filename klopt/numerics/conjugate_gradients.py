"""A linear system with a plane by preconditioned conjugate gradients that never leave the plane.

    [H + D  a] [x ]   [r   ]
    [a'     0] [nu] = [miss]

H is applied, (H + D)^-1 nearly known. The preconditioned residual is projected on the plane, so
that all steps stay in it, and what the projection takes away is nu.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.smooth_functions import HessianOperator

__all__ = ["Mask", "PlaneSolver"]

Mask = npt.NDArray[np.bool_]

MOST_CG = 60


class PlaneSolver:
    """(H + D) dx + a dnu = r, a'dx = miss, by conjugate gradients on the plane; variables that cannot move stay."""

    def __init__(self, bend: HessianOperator, D: FloatArray, a: FloatArray, wide: Mask) -> None:
        self.bend, self.wide = bend, wide
        self.D = np.where(wide, D, 1.0)
        self.inverse = bend.solver(self.D)
        self.a = np.where(wide, a, 0.0)
        self.plane = self.inverse(self.a) * wide
        self.bend_of_plane = float(self.a @ self.plane)
        self.last = np.zeros_like(D), np.zeros_like(D)

    def _apply(self, x: FloatArray) -> FloatArray:
        return np.where(self.wide, self.bend.matvec(x) + self.D * x, 0.0)

    def _onto(self, r: FloatArray) -> tuple[FloatArray, float]:
        """The preconditioned residual, in the plane, and the price of the plane in it."""
        p = self.inverse(r) * self.wide
        price = float(self.a @ p) / self.bend_of_plane if self.bend_of_plane > 0 else 0.0
        return p - price * self.plane, price

    def __call__(self, r: FloatArray, miss: float, tol: float) -> tuple[FloatArray, float]:
        """Return dx and dnu up to a residual of `tol` times the first; the last answer, made feasible, is the start."""
        r = np.where(self.wide, r, 0.0)
        first = float(r @ self._onto(r)[0])
        x, image = self.last
        short = miss - float(self.a @ x)
        if self.bend_of_plane > 0 and abs(short) > 8 * EPS * float(np.abs(self.a) @ np.abs(x)):
            step = self.plane * (short / self.bend_of_plane)
            x, image = x + step, image + self._apply(step)
        left = r - image
        p, price = self._onto(left)
        d, size = p, float(left @ p)
        for _ in range(MOST_CG):
            if not size > tol * tol * first:
                break
            image = self._apply(d)
            curve = float(d @ image)
            if not curve > 0:
                break
            x, left = x + size / curve * d, left - size / curve * image
            p, price = self._onto(left)
            before, size = size, float(left @ p)
            d = p + size / before * d
        self.last = x, r - left
        return x, price
