"""The cuts of a convex function and the point that they recommend, by a program in their weights.

    minimise over z in the set   max_j h_j + g_j'z  +  |z - c|^2 / (2t)

is, over weights lam >= 0 of sum 1, to maximise  lam'h + min over z of (G'lam)'z + |z - c|^2 / (2t),
where the inner minimiser is the nearest point of the set to c - t G'lam. That function is concave
with the gradients h + Gz, the cuts at z, and the Hessian -t G J G', J the derivative of the
projection: the identity on the variables between their bounds, less their plane's normal. It is
piecewise quadratic, so that Newton's method with the exact quadratic program over the simplex
inside ends after a few steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.forms import SimplexForm
from klopt.model.functions import LocalModel, SmoothFunction
from klopt.model.sets import SimpleSet, Simplex
from klopt.numerics.newton import newton_iterates
from klopt.numerics.newton_step import BoxProduct

__all__ = ["Bundle", "BundleStep"]

MAX_CUTS = 300
"""Cuts that are kept; those without weight go first."""
MAX_NEWTON_STEPS = 40
"""Newton steps of one program."""
PROGRAM_TOLERANCE = 1e-2
"""How exactly the program is solved, as a share of the decrease that it promises."""
MIN_WEIGHT = 1e-14
"""Smaller weights are rounding."""


@dataclass(frozen=True, eq=False)
class BundleStep:
    """The next point, the largest cut there, and the weights of the cuts."""

    point: FloatArray
    model: float
    weights: FloatArray


class Bundle:
    """Points with the cuts there, heights + gradients z."""

    def __init__(
        self, domain: SimpleSet, x: FloatArray, value: float, gradient: FloatArray
    ) -> None:
        self.domain = domain
        self.boxes = BoxProduct(domain)
        self.points = x[None]
        self.gradients = gradient[None]
        self.heights = np.array([value - float(gradient @ x)])
        self.weights = np.ones(1)

    def add(self, x: FloatArray, value: float, gradient: FloatArray, weights: FloatArray) -> None:
        """Take one more cut; of too many leave out those with the smallest weights.

        Parameters
        ----------
        x, value, gradient
            The new point and the cut there.
        weights
            The weights of the old cuts; of equal ones the oldest are left out first.
        """
        kept: slice | np.ndarray = slice(None)
        if weights.size >= MAX_CUTS:
            kept = np.sort(np.argsort(-weights, kind="stable")[: MAX_CUTS - 1])
        self.points = np.vstack([self.points[kept], x])
        self.gradients = np.vstack([self.gradients[kept], gradient])
        self.heights = np.append(self.heights[kept], value - float(gradient @ x))
        self.weights = np.append(weights[kept], 0.0)

    def lower_bound(self, weights: FloatArray) -> float:
        """Return the minimum over the set of the mean of the cuts."""
        return float(weights @ self.heights) + self.domain.linear_minimum(weights @ self.gradients)

    def rows(self, weights: FloatArray) -> FloatArray:
        """Return the cuts that count as klopt takes them: a weight, then the point, end to end."""
        kept = weights > 0
        return np.hstack([weights[kept, None], self.points[kept]]).ravel()

    def step(self, centre: FloatArray, best: float, t: float, deadline: float) -> BundleStep:
        """Return the point that the cuts recommend.

        Parameters
        ----------
        centre, best
            The best point so far and its value.
        t
            How far from the centre the cuts are trusted.
        deadline
            When the program stops, on the clock of `time.perf_counter`.
        """
        errors = self.heights + self.gradients @ centre - best
        # In units of what the steepest cut alone promises, so that the program's numbers are near
        # 1.
        largest_square = float(np.square(self.gradients).sum(axis=1).max())
        unit = max(t * largest_square, 1e-300)

        def near(weights: FloatArray) -> LocalModel:
            gradient = weights @ self.gradients
            way = self.domain.project(centre - t * gradient) - centre
            cuts = errors + self.gradients @ way
            value = float(weights @ cuts) + float(way @ way) / (2 * t)

            def curvature() -> FloatArray:
                return self._projected_gram(centre + way) * (t / unit)

            return LocalModel(-value / unit, -cuts / unit, curvature)

        form = SimplexForm(SmoothFunction(self.weights.size, near), Simplex(self.weights.size))
        start = self.weights / self.weights.sum()
        for number, found in enumerate(newton_iterates(form, start, 1e-9, deadline)):
            weights = found.x
            small_gap = PROGRAM_TOLERANCE * max(-found.lower, 0.0)
            if found.upper - found.lower <= small_gap or number >= MAX_NEWTON_STEPS:
                break
        weights = np.where(weights > MIN_WEIGHT, weights, 0.0)
        weights /= weights.sum()
        z = self.domain.repair(centre - t * (weights @ self.gradients))
        model = best + float((errors + self.gradients @ (z - centre)).max())
        return BundleStep(z, model, weights)

    def _projected_gram(self, z: FloatArray) -> FloatArray:
        """G J G' at z."""
        cuts = len(self.gradients)
        total = np.zeros((cuts, cuts))
        first = 0
        for box in self.boxes.members:
            entries = slice(first, first + box.size)
            first += box.size
            x = z[entries]
            free = (x > box.lower) & (x < box.upper)
            if not free.any():  # the projection does not move with its argument
                continue
            G = self.gradients[:, entries][:, free]
            total += G @ G.T
            if box.normal is not None:
                n = box.normal[free]
                along = G @ n
                total -= np.outer(along, along) / (float(n @ n) or 1.0)
        return total
