"""The ordered linear program by its vertices: the least weighted mean of a prefix, its multipliers, and their proof.

    minimise c'mu   subject to   sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0

With e_i = sigma^-(i-1) and E_k = e_1 + .. + e_k the vertices are the prefixes (e_1, .., e_k, 0, .., 0) / E_k, so that
the optimum is nu = min_k R_k with R_k = sum_(i <= k) e_i c_i / E_k, in O(r). For every feasible mu,

    c'mu - nu = sum_k z_k (mu_k - sigma mu_(k+1)) / e_k,    z_k = (R_k - nu) E_k >= 0,

which proves it; z_k / e_k are the multipliers of the order, and unlike these the z_k do not
overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.sets import OrderedSimplex
from klopt.model.sets.projections import prefix_weights

__all__ = ["PrefixMeans"]


@dataclass(frozen=True, eq=False)
class PrefixMeans:
    """The program's data. Long vectors are worked on in place: fresh memory takes longer than the sums.

    >>> program = PrefixMeans(np.array([3.0, 1.0, 5.0]), 1.0)
    >>> program.means, program.prefix(program.best)
    (array([3., 2., 3.]), array([0.5, 0.5, 0. ]))
    """

    c: FloatArray
    sigma: float

    @cached_property
    def e(self) -> FloatArray:
        """e_i."""
        return prefix_weights(self.c.size, self.sigma)

    @cached_property
    def sums(self) -> FloatArray:
        """E_k."""
        return np.arange(1.0, self.c.size + 1) if self.sigma == 1 else np.cumsum(self.e)

    @cached_property
    def means(self) -> FloatArray:
        """R_k, as means of c - c_1 for the sake of the digits that a common level would cost."""
        means: FloatArray = self.c - self.c[0]
        if self.sigma > 1:
            means *= self.e
        np.cumsum(means, out=means)
        means /= self.sums
        means += self.c[0]
        return means

    @cached_property
    def best(self) -> int:
        """How many entries the best prefix has."""
        return int(np.argmin(self.means)) + 1

    def prefix(self, size: int) -> FloatArray:
        """Return the vertex of that many entries."""
        mu = np.zeros(self.c.size)
        mu[:size] = 1 / size if self.sigma == 1 else self.e[:size] / float(self.e[:size].sum())
        return mu

    def multipliers(self) -> tuple[float, FloatArray]:
        """Return nu and z."""
        nu = float(self.means[self.best - 1])
        z = self.means - nu
        z *= self.sums
        return nu, z

    def bounds(self, mu: FloatArray) -> tuple[float, float]:
        """Return nu and c'mu for a feasible mu, rounding included."""
        largest, size = max(float(self.c.max()), -float(self.c.min())), float(np.sqrt(self.c.size))
        nu, value = float(self.means[self.best - 1]), float(self.c @ mu)
        return nu - EPS * (8 + size) * largest, value + 16 * EPS * largest

    def repaired(self, mu: FloatArray) -> FloatArray:
        """Return the nearest feasible mu: mu itself, but for rounding, if it is one."""
        total = float(mu.sum())
        if abs(total - 1) < 1e-9 and mu[-1] >= 0:
            later = mu[1:] if self.sigma == 1 else self.sigma * mu[1:]
            if (later <= mu[:-1]).all() or (later <= (1 + 4 * EPS) * mu[:-1]).all():
                return mu if abs(total - 1) <= 4 * EPS else mu / total
        last = (
            mu.size - int(np.argmax(mu[::-1] != 0)) if mu.any() else mu.size
        )  # a prefix is short, mu may be long
        return np.append(
            OrderedSimplex(last, self.sigma).repair(mu[:last]), np.zeros(mu.size - last)
        )
