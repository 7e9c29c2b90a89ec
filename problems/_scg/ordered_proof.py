"""The ordered linear program by its vertices, with bounds that hold in exact arithmetic.

    minimise over mu   c'mu   subject to   sum_i mu_i = 1,  mu_i >= sigma mu_(i+1),  mu >= 0

With e_i = sigma^-(i-1) and E_k = e_1 + .. + e_k its vertices are the prefixes (e_1, .., e_k, 0, ..,
0) / E_k.

**Lemma L1 (vertices).** The optimum is nu = min_k R_k with R_k = sum_(i <= k) e_i c_i / E_k. For
every feasible mu,

    c'mu - nu = sum_k z_k (mu_k - sigma mu_(k+1)) / e_k,    z_k = (R_k - nu) E_k >= 0;

z_k / e_k are the multipliers of the order, and unlike these the z_k do not overflow.

**Lemma L2 (means).** Let w_i = e_i beta_i with beta >= 0 nonincreasing, so that w / sum w is
feasible. With x_i = log(sigma) (i - 1), e_i = exp(-x_i) is computed within (9 x_i + 8) u by Lemma
E3, and the mean of x_i with the weights w_i is at most 1: w is a mixture of prefixes, and x_i under
a cut-off geometric distribution has a smaller mean than log(sigma) / (sigma - 1) <= 1. So a mean
sum w_i d_i / sum w_i of m terms is computed within gamma_(2m + 48) D, D a mean of |d_i| or their
maximum; for sigma = 1, where w_i is exact, within gamma_(m + 8) D in the means of prefixes.

The c_i are known within `error`, of which a mean with the same weights is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets.projections import prefix_weights
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, gamma

__all__ = ["PrefixBounds", "parts"]

PART = 2**13
"""Entries of a long vector that are worked on at a time."""
NARROW = 1e-9
"""Up to this radius, relative to 1 + |nu|, largest terms stand for means of terms."""
MIN_UNSCALED = 2.0**-100
MAX_UNSCALED = 2.0**100
"""Weights whose largest lies between these two are taken as they are."""
UNDERFLOW = 2.0**-900
"""What underflow may take from a mean."""
MEANS_SLACK = 1.01
"""Covers the rounding of radii and products of errors."""


@dataclass(frozen=True, eq=False)
class PrefixBounds:
    """The means of prefixes, and what they and a point prove.

    Parameters
    ----------
    c
        The cost, as computed.
    sigma
        The ratio of the order.
    error
        How far each c_i may be off.

    >>> program = PrefixBounds(np.array([3.0, 1.0, 5.0]), 1.0, np.zeros(3))
    >>> program.means, round(program.lower, 9), round(program.upper(np.array([0.5, 0.5, 0.0])), 9)
    (array([3., 2., 3.]), 2.0, 2.0)
    """

    c: FloatArray
    sigma: float
    error: FloatArray

    @cached_property
    def e(self) -> FloatArray:
        """e_i."""
        return prefix_weights(self.c.size, self.sigma)

    @cached_property
    def sums(self) -> FloatArray:
        """E_k."""
        if self.sigma == 1:
            return np.arange(1.0, self.c.size + 1)
        return np.cumsum(self.e)

    @cached_property
    def means(self) -> FloatArray:
        """R_k, computed from c - c_1 so that a common level of c costs no digits."""
        # Long vectors are worked on in place: fresh memory takes longer than the sums.
        means: FloatArray = self.c - self.c[0]
        if self.sigma > 1:
            means *= self.e
        np.cumsum(means, out=means)
        for part in parts(means.size):
            means[part] /= self.sums_of(part)
        means += self.c[0]
        return means

    def sums_of(self, part: slice) -> FloatArray:
        """Return E_k of a part, which for sigma = 1 takes no array of all E_k."""
        if self.sigma == 1:
            return np.arange(part.start + 1.0, part.stop + 1.0)
        return self.sums[part]

    @cached_property
    def best(self) -> int:
        """The number of entries of the prefix of the smallest mean."""
        return int(np.argmin(self.means)) + 1

    @cached_property
    def lower(self) -> float:
        """A lower bound of nu, by Lemma L1."""
        smallest = float(self.means[self.best - 1])
        # A NaN is the smallest of all, and proves nothing.
        if not math.isfinite(smallest + self._spread):
            return -math.inf
        radius = self._rounding(self.c.size) * self._spread + self._largest_error
        if radius > NARROW * (1 + abs(smallest)):
            return self._lower_by_terms()
        return _down(smallest, radius)

    def _lower_by_terms(self) -> float:
        """The bound with the radius of each mean by its own terms."""
        terms = np.abs(self.c - self.c[0]) * self._rounding(self.c.size) + self.error
        if self.sigma > 1:
            # Lemma L2 with a mean of |d_i|: the error of e_i grows with x_i.
            exponents = np.log(self.sigma) * np.arange(self.c.size)
            terms += 20 * UNIT_ROUNDOFF * exponents * np.abs(self.c - self.c[0])
            terms *= self.e
            # An e_i that underflows is off by eta, as its products are.
            terms += ETA * (1 + np.abs(self.c - self.c[0]))
        radius = MEANS_SLACK * np.cumsum(terms) / self.sums
        ends = self.means - radius - 4 * UNIT_ROUNDOFF * (np.abs(self.means) + abs(self.c[0]))
        lowest = float(ends.min())
        return _down(lowest, 0.0) if math.isfinite(lowest) else -math.inf

    def upper(self, mu: FloatArray) -> float:
        """Return an upper bound of c'mu at an exactly feasible point: mu, but for rounding."""
        w = self.feasible_multiple(mu)
        # The weights fall: what follows the last positive one plays no part.
        m = int(np.count_nonzero(w))
        w = w[:m]
        total = float(w.sum())
        if not 0 < total < math.inf:
            return math.inf
        value = float(self.c[:m] @ w) / total
        if not math.isfinite(value + self._largest):
            return math.inf
        radius = gamma(2 * m + 48) * self._largest + self._largest_error
        if radius <= NARROW * (1 + abs(value)):
            return _up(value, radius)

        # The same by the terms of this mean.
        d = self.c[:m] - self.c[0]
        value = float(self.c[0]) + float(d @ w) / total
        size = gamma(2 * m + 48) * np.abs(d) + self.error[:m]
        if self.sigma > 1:
            size += 20 * UNIT_ROUNDOFF * np.log(self.sigma) * np.arange(m) * np.abs(d)
        # A weight that underflows is off by eta, as its products are.
        spread = float(size @ w) + ETA * float(np.sum(1 + np.abs(d)))
        radius = MEANS_SLACK * spread / total + 4 * UNIT_ROUNDOFF * abs(float(self.c[0]))
        return _up(value, radius) if math.isfinite(value + radius) else math.inf

    def feasible_multiple(self, mu: FloatArray) -> FloatArray:
        """Return w of Lemma L2: a multiple of mu where that keeps the order."""
        if self.sigma == 1:
            w = mu
            if not (mu[-1] >= 0 and (mu[1:] <= mu[:-1]).all()):
                w = np.maximum(np.minimum.accumulate(mu), 0.0)
            return _near_one(w)
        # Behind the underflow of e_i nothing is kept.
        m = self._normal_steps
        with np.errstate(over="ignore"):
            beta = np.minimum.accumulate(mu[:m] / self.e[:m])
        return self.e[:m] * _near_one(np.maximum(beta, 0.0))

    @cached_property
    def _normal_steps(self) -> int:
        """How many e_i are not subnormal."""
        return int(np.count_nonzero(self.e >= 2.0**-1000))

    @cached_property
    def _range(self) -> tuple[float, float]:
        """The smallest and the largest c_i."""
        return float(self.c.min()), float(self.c.max())

    @property
    def _largest(self) -> float:
        """max |c_i|."""
        return max(-self._range[0], self._range[1])

    @property
    def _spread(self) -> float:
        """A bound of |c_i - c_1|."""
        return (self._range[1] - self._range[0]) * MEANS_SLACK

    @cached_property
    def _largest_error(self) -> float:
        return MEANS_SLACK * float(self.error.max())

    def _rounding(self, terms: int) -> float:
        """The relative error of a mean of so many terms (Lemma L2)."""
        return MEANS_SLACK * (gamma(terms + 8) if self.sigma == 1 else gamma(2 * terms + 48))


def parts(size: int) -> Iterator[slice]:
    """Parts of a vector that fit into a cache."""
    for start in range(0, size, PART):
        yield slice(start, min(start + PART, size))


def _near_one(beta: FloatArray) -> FloatArray:
    """beta, or a multiple whose products neither overflow nor underflow; division is monotone."""
    first = float(beta[0])
    if MIN_UNSCALED <= first <= MAX_UNSCALED or not 0 < first < math.inf:
        return beta
    return beta / first


def _down(value: float, radius: float) -> float:
    return value - (radius + UNDERFLOW + 4 * UNIT_ROUNDOFF * (abs(value) + radius))


def _up(value: float, radius: float) -> float:
    return value + (radius + UNDERFLOW + 4 * UNIT_ROUNDOFF * (abs(value) + radius))
