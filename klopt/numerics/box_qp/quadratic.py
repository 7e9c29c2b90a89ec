"""A convex quadratic over a box cut by a plane: the data and the gap.

    minimise  x'Hx/2 + c'x   over   lower <= x <= upper,  normal'x = offset

The gap  sum_i max(r_i, 0) (x_i - lower_i) + max(-r_i, 0) (upper_i - x_i),  r = Hx + c + nu normal,
bounds how far the value at a feasible x is above the optimum, for any nu, and each of its terms is
nonnegative: no digit is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.functions import KernelQuadratic, Quadratic, QuadraticLike
from klopt.numerics.box_qp.box import Box, Indices

__all__ = ["Box", "BoxQP", "Indices", "SignedGram"]


@dataclass(frozen=True, eq=False)
class SignedGram:
    """H = S K S' for points that variables belong to with signs; without them H = K.

    Products leave out the points whose coefficient is zero where that pays.
    """

    K: FloatArray
    sign: FloatArray | None = None
    point: Indices | None = None

    @classmethod
    def of(cls, objective: QuadraticLike) -> SignedGram:
        """Return the curvature of an objective, which is not copied."""
        if isinstance(objective, KernelQuadratic):
            plain = np.array_equal(objective.point, np.arange(len(objective.K)))
            return cls(objective.K, objective.sign, None if plain else objective.point)
        if isinstance(objective, Quadratic):
            return cls(objective.H)
        everything = np.arange(objective.size)
        return cls(objective.block(everything, everything))

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.K) if self.sign is None else int(self.sign.size)

    @cached_property
    def scale(self) -> float:
        """The largest diagonal entry, 1 where all are zero."""
        diagonal = self.K.diagonal() if self.point is None else self.K.diagonal()[self.point]
        diagonal = diagonal if self.sign is None else diagonal * self.sign**2
        return max(float(diagonal.max()), 0.0) or 1.0 if diagonal.size else 1.0

    def gather(self, x: FloatArray) -> FloatArray:
        """Return S'x, the coefficients of the points."""
        z = x if self.sign is None else x * self.sign
        return (
            z if self.point is None else cast(FloatArray, np.bincount(self.point, z, len(self.K)))
        )

    def spread(self, f: FloatArray) -> FloatArray:
        """Return S f, values of the points for the variables."""
        f = f if self.point is None else f[self.point]
        return f if self.sign is None else f * self.sign

    def diagonal(self, d: FloatArray) -> FloatArray:
        """Return the diagonal of S' diag(d) S, which is a diagonal matrix."""
        z = d if self.sign is None else d * self.sign**2
        return (
            z if self.point is None else cast(FloatArray, np.bincount(self.point, z, len(self.K)))
        )

    def matvec(self, x: FloatArray) -> FloatArray:
        """Return Hx."""
        z = self.gather(x)
        if 4 * np.count_nonzero(z) >= z.size:
            return self.spread(self.K @ z)
        support = np.flatnonzero(z)
        return self.spread(z[support] @ self.K[support])

    def face(self, rows: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a copy of H[rows, rows], and (Hx)[rows]."""
        if self.sign is None and self.point is None and rows.size == len(self.K):
            return self.K.copy(), self.K @ x
        points = rows if self.point is None else self.point[rows]
        part = self.K.take(points, 0)
        block, product = part.take(points, 1), part @ self.gather(x)
        if self.sign is None:
            return block, product
        sign = self.sign[rows]
        block *= sign
        block *= sign[:, None]
        return block, product * sign


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The data."""

    H: SignedGram
    c: FloatArray
    box: Box

    @cached_property
    def _steepness(self) -> tuple[FloatArray, float]:
        """|c| and its largest entry."""
        sizes = np.abs(self.c)
        return sizes, float(sizes.max(initial=0.0))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return Hx + c."""
        g = self.H.matvec(x)
        g += self.c
        return g

    def measured(self, x: FloatArray, g: FloatArray, nu: float) -> tuple[float, float, float]:
        """Return the gap, the size of what is added up to the value, and the residual, at a feasible x.

        The gap says how far the value may be above the optimum, infinite where nu proves nothing.
        The residual is the largest gradient, or curvature times room if that is less, relative to
        the terms of the gradient.
        """
        box, (steepness, steepest) = self.box, self._steepness
        r = g if box.normal is None else g + nu * box.normal
        gradients, sizes, curves = np.abs(r), np.abs(x), np.abs(g - self.c)
        room = np.where(r > 0, x - box.lower, box.upper - x)
        gap = float(gradients @ (room if box.bounded else np.where(r == 0, 0.0, room)))
        terms = float(sizes @ curves) / 2 + float(sizes @ steepness)
        scale = steepest + float(curves.max(initial=0.0))
        # No entry of Hx is known better than to a few eps of what was added up, however small the
        # sum. The limit is for an x that runs off to infinity: a gradient must not vanish beside
        # it.
        scale += min(self.H.scale * float(sizes.sum()) / 256, 1e3 * scale)
        return (
            gap,
            terms,
            float(np.minimum(gradients, self.H.scale * room).max(initial=0.0)) / (scale or 1.0),
        )

    def restricted(self, moving: Indices, x: FloatArray) -> BoxQP:
        """Return the program in some of the variables; the others stay as they are in x."""
        fixed = x.copy()
        fixed[moving] = 0.0
        points = np.arange(self.H.size) if self.H.point is None else self.H.point
        points, point = np.unique(points[moving], return_inverse=True)
        sign = np.ones(moving.size) if self.H.sign is None else self.H.sign[moving]
        H = SignedGram(
            self.H.K[np.ix_(points, points)], sign, point if points.size < moving.size else None
        )
        return BoxQP(H, self.gradient(fixed)[moving], self.box.restricted(moving, fixed))
