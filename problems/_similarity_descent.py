"""The value of the best machine as a function of the kernel, with kinks, for methods that descend over kernels.

    f(K) = max over a of  y'a - a'Ka/2   +   rho sum L(K - S_i)          slope  -aa'/2 + rho sum Z_i

The inner machine is solved from the last multipliers, to a small gap: f is its value from below, so that a slope is
one of some function between f and f + gap. What the multipliers prove is for the bracket to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from klopt.arrays import FloatArray
from klopt.cones import smat, svec
from klopt.multipliers import Multipliers, best_multipliers
from klopt.problems._similarity_bracket import Data

__all__ = ["Descent"]

EXACT = 1e-5
MOST = 10_000  # machines that are kept, by a digest of their kernel


@dataclass(frozen=True, eq=False)
class Descent:
    """The function of svec(K), in units of `length`."""

    data: Data
    length: float
    _known: dict[bytes, Multipliers] = field(default_factory=dict, init=False, repr=False)

    def machine(self, k: FloatArray) -> Multipliers:
        """Return the machine of a kernel; machines are kept, so that a proof by many kernels solves none twice."""
        key = blake2b(k.tobytes(), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            start = next(reversed(self._known.values())).a if self._known else None
            found = best_multipliers(smat(k), self.data.y, self.data.domain(), start, EXACT)
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = found
        return found

    def value(self, k: FloatArray) -> float:
        """Return f."""
        return (self.machine(k).value + self.data.losses(smat(k), self.data.S)) / self.length

    def slope(self, k: FloatArray) -> FloatArray:
        """Return a subgradient."""
        K, a = smat(k), self.machine(k).a
        slopes = sum((self.data.loss.slope(K - S) for S in self.data.S), np.zeros_like(K))
        return svec(self.data.rho * slopes - np.outer(a / 2, a)) / self.length

    def mean_point(self, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weighted means of a and of the Z_i over cuts, rows (weight, svec(K)): what they prove together."""
        weights = np.maximum(cuts[:, 0], 0.0)
        a, Z = np.zeros(self.data.n), np.zeros((len(self.data.S), self.data.n, self.data.n))
        for weight, k in zip(weights / weights.sum(), cuts[:, 1:], strict=True):
            a += weight * self.machine(k).a
            Z += weight * np.array([self.data.loss.slope(smat(k) - S) for S in self.data.S])
        return a, Z
