"""Checked data of a problem of similarities, with its set of multipliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.sets import BoxPlane
from klopt.problems._margin.proof import Penalty, largest
from klopt.problems._similarity.losses import Loss

__all__ = ["SimilarityData"]

MIN_RELATIVE_WEIGHT = 1e-10
"""Replaces rho = 0, relative to values over losses, where the kernel nearest to a is looked for."""
ON_PLANE = 4 * EPS
"""A sum that is 0 up to so much of its terms is 0 but for rounding."""


@dataclass(frozen=True, eq=False)
class SimilarityData:
    """Checked similarities, labels and penalties.

    Parameters
    ----------
    S : tuple of (n, n) arrays
        The similarities, symmetric.
    y : (n,) array
        Labels -1 and +1.
    C : float or (n,) array
        Upper bound of the multipliers.
    rho : float
        Weight of the losses.
    trace : float or None
        Trace of each kernel; None leaves it free.
    loss : Loss
        The loss L.
    """

    S: tuple[FloatArray, ...]
    y: FloatArray
    C: Penalty
    rho: float
    trace: float | None
    loss: Loss
    _domains: dict[float, BoxPlane] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        return self.y.size

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of the similarities."""
        if len(self.S) == 1:
            return self.S[0]
        return np.asarray(sum(self.S[1:], self.S[0]) / len(self.S))

    @cached_property
    def scale(self) -> float:
        """The size of the diagonal of a kernel."""
        if self.trace is not None:
            return self.trace / self.n
        mean_norm = float(np.mean([np.linalg.norm(S) for S in self.S]))
        return mean_norm / float(np.sqrt(self.n)) or 1.0

    @property
    def weight(self) -> float:
        """rho; where it is 0 a positive number that is negligible."""
        if self.rho:
            return self.rho
        # psi needs a positive weight to have a nearest kernel.
        typical = largest(self.C) * self.n + 1 / self.scale
        losses = 1 + self.n * self.scale**2 + sum(float(np.vdot(S, S)) for S in self.S)
        return MIN_RELATIVE_WEIGHT * typical / losses

    @property
    def provable(self) -> bool:
        """Whether the optimum can be bounded: the losses are none, or have formulas."""
        return self.loss.name != "own" or not self.rho

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length:  0 <= y_i a_i <= C, 1'a = 0."""
        if length not in self._domains:
            corner = self.y * (self.C / length)
            lower = np.minimum(corner, 0.0)
            upper = np.maximum(corner, 0.0)
            self._domains[length] = BoxPlane(lower, upper, np.ones(self.n))
        return self._domains[length]

    def multipliers(self, alpha: FloatArray) -> FloatArray:
        """Return y o alpha moved into the box and, up to rounding, onto the plane."""
        # Multipliers that are there already need no set to be moved into; NaN is in no box.
        if alpha.min() >= 0 and (alpha <= self.C).all():
            a = alpha * self.y
            if abs(float(a.sum())) <= ON_PLANE * float(alpha.sum()):
                return a
        usable = alpha if np.isfinite(alpha).all() else np.zeros_like(alpha)
        return self.domain().repair(usable * self.y)

    def exact_multipliers(self, a: FloatArray) -> FloatArray:
        """Return multipliers next to a that are in the box and on the plane exactly.

        Their entries are multiples of one power of two, so that their sums are exact; what is left
        of the sum is taken from the largest entries of its sign.
        """
        inside = self.y * np.clip(self.y * a, 0.0, self.C)
        size = float(np.abs(inside).sum())
        if not 0 < size < np.inf:
            return np.zeros_like(a)
        unit = math.ldexp(1.0, max(math.frexp(size)[1] - 51, -1074))
        steps = np.trunc(inside / unit)
        excess = float(steps.sum())
        while excess:
            at = int(np.argmax(steps * np.sign(excess)))
            taken = np.sign(excess) * min(abs(excess), abs(steps[at]))
            steps[at] -= taken
            excess -= taken
        return steps * unit

    def losses(self, K: FloatArray, S: tuple[FloatArray, ...]) -> float:
        """Return rho sum L(K - S_i)."""
        if not self.rho:
            return 0.0
        return self.rho * sum(self.loss.value(K - Si) for Si in S)
