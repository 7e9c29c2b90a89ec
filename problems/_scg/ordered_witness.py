"""The best prefix of an ordered linear program, its multipliers, and the nearest feasible point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.sets import OrderedSimplex
from klopt.problems._scg.ordered_proof import PrefixBounds, parts

__all__ = ["PrefixMeans"]

SUM_TOLERANCE = 1e-9
"""Weights whose sum is this near to 1 are rescaled, others are projected."""

FAR_AWAY = 1e6
"""A sum beyond this, where 1 is asked for, is scaled before it is projected."""


@dataclass(frozen=True, eq=False)
class PrefixMeans(PrefixBounds):
    """The ordered linear program by its vertices, its multipliers and its bounds.

    >>> program = PrefixMeans(np.array([3.0, 1.0, 5.0]), 1.0, np.zeros(3))
    >>> program.means, program.prefix(program.best)
    (array([3., 2., 3.]), array([0.5, 0.5, 0. ]))
    """

    @property
    def optimum(self) -> float:
        """nu, the smallest mean."""
        return float(self.means[self.best - 1])

    def prefix(self, size: int) -> FloatArray:
        """Return the vertex of that many entries."""
        mu = np.zeros(self.c.size)
        if self.sigma == 1:
            mu[:size] = 1 / size
        else:
            mu[:size] = self.e[:size] / float(self.e[:size].sum())
        return mu

    def multipliers(self) -> tuple[float, FloatArray]:
        """Return nu and z."""
        nu = self.optimum
        z = self.means - nu
        for part in parts(z.size):
            z[part] *= self.sums_of(part)
        return nu, z

    def nearest_feasible(self, mu: FloatArray) -> FloatArray:
        """Return the nearest feasible mu: mu itself, but for rounding, if it is one."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(mu.sum())
        if abs(total - 1) < SUM_TOLERANCE and self._is_ordered(mu):
            return mu if abs(total - 1) <= 4 * EPS else mu / total
        if not abs(total) < FAR_AWAY:
            # A point so far away says little; of its direction the projection is computed safely.
            mu = np.nan_to_num(mu)
            mu = mu / max(float(np.abs(mu).max()), 1.0)

        # A prefix is short, mu may be long: only the entries up to the last nonzero are projected.
        last = mu.size - int(np.argmax(mu[::-1] != 0)) if mu.any() else mu.size
        repaired = OrderedSimplex(last, self.sigma).repair(mu[:last])
        return np.append(repaired, np.zeros(mu.size - last))

    def _is_ordered(self, mu: FloatArray) -> bool:
        """Whether mu >= 0 keeps the order up to rounding."""
        if mu[-1] < 0:
            return False
        later = mu[1:] if self.sigma == 1 else self.sigma * mu[1:]
        # Exact order first: it is the rule, and needs one pass instead of two.
        return bool((later <= mu[:-1]).all() or (later <= (1 + 4 * EPS) * mu[:-1]).all())
