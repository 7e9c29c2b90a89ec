"""A linear system with a plane by preconditioned conjugate gradients that never leave the plane.

    [H + D  a] [x ]   [r        ]
    [a'     0] [nu] = [shortfall]

H is applied, (H + D)^-1 nearly known. The preconditioned residual is projected on the plane, so
that all steps stay in it, and what the projection takes away is nu.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.model.functions import HessianOperator

__all__ = ["Mask", "PlaneConjugateGradients"]

Mask = npt.NDArray[np.bool_]

MAX_CG_ITERATIONS = 60
"""The limit of the products with H of one solve."""


class PlaneConjugateGradients:
    """The solver of (H + D) dx + a dnu = r, a'dx = shortfall.

    Parameters
    ----------
    hessian
        H, with what it knows of (H + D)^-1.
    D
        A positive diagonal.
    a
        The normal of the plane, zeros without one.
    movable
        The variables that can move; the others stay.
    """

    def __init__(
        self, hessian: HessianOperator, D: FloatArray, a: FloatArray, movable: Mask
    ) -> None:
        self.hessian = hessian
        self.movable = movable
        self.D = np.where(movable, D, 1.0)
        self.inverse = hessian.solver(self.D)
        self.a = np.where(movable, a, 0.0)
        self.along_normal = self.inverse(self.a) * movable
        self.normal_curvature = float(self.a @ self.along_normal)
        self.last_solution = np.zeros_like(D)
        self.last_product = np.zeros_like(D)

    def _apply(self, x: FloatArray) -> FloatArray:
        return np.where(self.movable, self.hessian.matvec(x) + self.D * x, 0.0)

    def _preconditioned(self, r: FloatArray) -> tuple[FloatArray, float]:
        """The preconditioned residual, in the plane, and the multiplier of the plane in it."""
        p = self.inverse(r) * self.movable
        nu = 0.0
        if self.normal_curvature > 0:  # else no variable of the plane can move
            nu = float(self.a @ p) / self.normal_curvature
        return p - nu * self.along_normal, nu

    def __call__(self, r: FloatArray, shortfall: float, tol: float) -> tuple[FloatArray, float]:
        """Return dx and dnu up to a residual of `tol` times the first.

        The start is the last solution, moved on the plane.
        """
        r = np.where(self.movable, r, 0.0)
        first_size = float(r @ self._preconditioned(r)[0])
        x = self.last_solution
        product = self.last_product
        off_plane = shortfall - float(self.a @ x)
        rounding = 8 * EPS * float(np.abs(self.a) @ np.abs(x))
        if self.normal_curvature > 0 and abs(off_plane) > rounding:
            step = self.along_normal * (off_plane / self.normal_curvature)
            x = x + step
            product = product + self._apply(step)

        residual = r - product
        p, nu = self._preconditioned(residual)
        direction = p
        size = float(residual @ p)
        for _ in range(MAX_CG_ITERATIONS):
            if not size > tol * tol * first_size:  # squares of norms
                break
            product = self._apply(direction)
            curvature = float(direction @ product)
            if not curvature > 0:  # H is indefinite by rounding
                break
            length = size / curvature
            x = x + length * direction
            residual = residual - length * product
            p, nu = self._preconditioned(residual)
            last_size = size
            size = float(residual @ p)
            direction = p + size / last_size * direction

        self.last_solution = x
        self.last_product = r - residual
        return x, nu
