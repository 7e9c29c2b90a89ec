"""Convex quadratic constraints as second-order cones, and their multipliers both ways.

    ||Fx||^2 / 2 + q'x <= r,    w = 2 (r - q'x),    any sigma > 0

is  ||Fx||^2 <= w, that is  s = ( w/sigma + sigma,  2 F x,  w/sigma - sigma )  in the second-order
cone. A multiplier u of the cone is lambda = 2 (u_0 + u_last) / sigma of the constraint. Given
lambda and x, the multiplier that supports the constraint at x is

    u = lambda/4 ( sigma + ||Fx||^2/sigma,  -2 F x,  sigma - ||Fx||^2/sigma ),

for which A'u = lambda (F'Fx + q).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc

__all__ = ["QuadraticCone"]

BOUNDARY_MARGIN = 4e-12
"""The relative distance by which a multiplier is moved into its cone, against rounding."""


@dataclass(frozen=True, eq=False)
class QuadraticCone:
    """The constraint ||Fx||^2 / 2 + q'x <= r.

    >>> cone = QuadraticCone(csc("F", [[1.0]]), np.array([0.0]), 2.0)
    >>> A, b = cone.rows()
    >>> s = b - A @ np.array([2.0])
    >>> bool(abs(s[0] - np.hypot(s[1], s[2])) < 1e-12)
    True
    >>> cone.multiplier(cone.support(3.0, np.array([2.0])))
    3.0
    """

    F: SparseMatrix
    q: FloatArray
    r: float

    @property
    def sigma(self) -> float:
        """Near the size of ||Fx||, so that the first and the last entry of s do not cancel."""
        return float(np.sqrt(1 + 2 * abs(self.r)))

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.F.shape[0] + 2

    def rows(self) -> tuple[SparseMatrix, FloatArray]:
        """Return A and b with s = b - Ax."""
        line = sparse.csc_array(2 * self.q[None, :] / self.sigma)
        b = np.zeros(self.size)
        b[[0, -1]] = 2 * self.r / self.sigma + self.sigma * np.array([1.0, -1.0])
        return csc("A", sparse.vstack([line, -2 * self.F, line], format="csc")), b

    def multiplier(self, u: FloatArray) -> float:
        """Return lambda of the constraint from the multiplier u of the cone."""
        return float(2 * (u[0] + u[-1]) / self.sigma)

    def support(self, multiplier: float, x: FloatArray) -> FloatArray:
        """Return the multiplier u of the cone for the multiplier lambda of the constraint at x."""
        Fx = self.F @ x
        square = float(Fx @ Fx) / self.sigma
        # Into the interior, so that rounding does not leave the cone; A'u stays as it is, since the
        # first and the last row of A are equal.
        square += BOUNDARY_MARGIN * (self.sigma + square)
        u = np.concatenate(([self.sigma + square], -2 * Fx, [self.sigma - square]))
        return multiplier / 4 * u
