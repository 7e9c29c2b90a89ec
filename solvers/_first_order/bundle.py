"""The cuts of a convex function and the point that they recommend: a small quadratic program in their weights.

    minimise over z in the set   max_j h_j + g_j'z  +  |z - c|^2 / (2t)

is, over weights lam >= 0 of sum 1, to maximise  lam'h + min over z of (G'lam)'z + |z - c|^2 / (2t),
where the inner minimiser is the nearest point of the set to c - t G'lam. That function is concave
with the gradients h + Gz, the cuts at z, and the second derivatives -t G J G', J the derivative of
the projection: the identity on the variables between their bounds, less their plane's normal. It is
piecewise quadratic, so that Newton's method with the exact quadratic program over the simplex
inside ends after a few steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SimplexForm
from klopt.model.sets import SimpleSet, Simplex
from klopt.model.smooth_functions import LocalModel, SmoothFunction
from klopt.numerics.newton_step import Boxes
from klopt.solvers.newton import newton_steps

__all__ = ["Bundle", "Recommended"]

MOST = 300  # cuts that are kept; those without weight go first
ROUNDS = 40
SHARE = 1e-2  # how exact the program is solved, of what it promises


@dataclass(frozen=True, eq=False)
class Recommended:
    """The next point, the largest cut there, and the weights of the cuts."""

    point: FloatArray
    model: float
    weights: FloatArray


class Bundle:
    """Points with the cuts there, heights + gradients z."""

    def __init__(
        self, domain: SimpleSet, x: FloatArray, value: float, gradient: FloatArray
    ) -> None:
        self.domain, self.boxes = domain, Boxes(domain)
        self.points, self.gradients = x[None], gradient[None]
        self.heights = np.array([value - float(gradient @ x)])
        self.weights = np.ones(1)

    def add(self, x: FloatArray, value: float, gradient: FloatArray, weights: FloatArray) -> None:
        """Take one more cut; of too many leave out those with the least weights, the oldest first."""
        kept = (
            np.sort(np.argsort(-weights, kind="stable")[: MOST - 1])
            if weights.size >= MOST
            else slice(None)
        )
        self.points = np.vstack([self.points[kept], x])
        self.gradients = np.vstack([self.gradients[kept], gradient])
        self.heights = np.append(self.heights[kept], value - float(gradient @ x))
        self.weights = np.append(weights[kept], 0.0)

    def lower_bound(self, weights: FloatArray) -> float:
        """Return the least value over the set of the mean of the cuts."""
        return float(weights @ self.heights) + self.domain.linear_minimum(weights @ self.gradients)

    def rows(self, weights: FloatArray) -> FloatArray:
        """Return the cuts that count as klopt takes them: a weight, then the point, end to end."""
        kept = weights > 0
        return np.hstack([weights[kept, None], self.points[kept]]).ravel()

    def step(self, centre: FloatArray, best: float, t: float, deadline: float) -> Recommended:
        """Return the point that the cuts recommend near the centre, whose value is `best`."""
        errors = self.heights + self.gradients @ centre - best
        # In units of what the steepest cut alone promises, so that the program's numbers are near
        # 1.
        unit = max(t * float(np.square(self.gradients).sum(axis=1).max()), 1e-300)

        def near(weights: FloatArray) -> LocalModel:
            gradient = weights @ self.gradients
            way = self.domain.project(centre - t * gradient) - centre
            cuts = errors + self.gradients @ way
            value = float(weights @ cuts) + float(way @ way) / (2 * t)
            return LocalModel(
                -value / unit, -cuts / unit, lambda: self._curvature(centre + way) * (t / unit)
            )

        form = SimplexForm(SmoothFunction(self.weights.size, near), Simplex(self.weights.size))
        weights = self.weights
        for round_, found in enumerate(newton_steps(form, weights / weights.sum(), 1e-9, deadline)):
            assert found is not None
            weights = found.x
            if found.upper - found.lower <= SHARE * max(-found.lower, 0.0) or round_ >= ROUNDS:
                break
        weights = np.where(weights > 1e-14, weights, 0.0)
        weights /= weights.sum()
        z = self.domain.repair(centre - t * (weights @ self.gradients))
        return Recommended(z, best + float((errors + self.gradients @ (z - centre)).max()), weights)

    def _curvature(self, z: FloatArray) -> FloatArray:
        """G J G' at z."""
        total, first = np.zeros((len(self.gradients),) * 2), 0
        for box in self.boxes.members:
            x, part = z[first : first + box.size], self.gradients[:, first : first + box.size]
            first += box.size
            free = (x > box.lower) & (x < box.upper)
            if not free.any():
                continue
            G = part[:, free]
            total += G @ G.T
            if box.normal is not None:
                n = box.normal[free]
                along = G @ n
                total -= np.outer(along, along) / (float(n @ n) or 1.0)
        return total
