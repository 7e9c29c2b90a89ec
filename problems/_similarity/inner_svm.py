"""The value of the best support vector machine as a nonsmooth function of its kernels.

    f(K_1, .., K_m) = max over a, g of  y'a - sum_i a'K_i a / (2 g_i)   +   rho sum L(K_i - S_ij)

    gradient in K_i:   -aa' / (2 g_i) + rho sum_j Z_ij

with shares g >= 0 of sum 1; one kernel has g = 1. The best shares for given multipliers are g_i =
r_i / sum r, r_i = (a'K_i a)^1/2. Where r_i -> 0 the gradient in K_i goes to infinity, and one such
gradient, which a first long step is sure to meet, would make all later steps short. So g >=
MIN_SHARE_SUM / m is imposed: that function is nowhere above f, and has the same minimum unless a
best share is smaller than that. With B the shares above the bound, s their sum, R = sum_B r and u_i
= K_i a, the function -y'a + sum u_i'a / (2 g_i) has

    gradient = sum_i u_i / g_i - y
    Hessian  = sum_i K_i / g_i + s vv' / R^2 - sum_B u_i u_i' / (g_i r_i^2)

v = sum_B u_i / g_i.

f is the value at the multipliers that were found, from below, so that a gradient is one of some
function between f and f + gap. What they prove is decided by the bracket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel
from klopt.model.memo import lock
from klopt.numerics.box_qp.multipliers import best_multipliers
from klopt.problems._similarity.instance import SimilarityData
from klopt.problems._similarity.kernel_sets import KernelCoordinates

__all__ = ["InnerSolution", "InnerSvm", "KernelObjective"]

DESCENT_TOLERANCE = 1e-5
"""Relative gap of the support vector machines along a descent."""
ANSWER_TOLERANCE = 1e-12
"""Relative gap of the support vector machine of an answer."""
MIN_SHARE_SUM = 0.1
"""Sum of the smallest shares along a descent."""
MIN_ANSWER_SHARE = 1e-6
"""Smallest share of an answer."""
MAX_NEWTON_STEPS = 30
MAX_HALVINGS = 10
MAX_KEPT_SOLUTIONS = 10_000
"""Number of solutions that are kept, by a digest of their kernels."""


@dataclass(frozen=True, eq=False)
class InnerSolution:
    """Multipliers and shares that are nearly best for some kernels, and the value at them."""

    a: FloatArray
    g: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class InnerSvm:
    """The support vector machine of kernels, (m, n, n), with shares of at least `min_share`."""

    kernels: FloatArray
    data: SimilarityData
    min_share: float

    def near(self, a: FloatArray) -> tuple[LocalModel, FloatArray]:
        """Return minus the value near a, and the best shares."""
        u = self.kernels @ a
        q = np.maximum(u @ a, np.finfo(float).tiny)
        g, free = _bounded_shares(np.sqrt(q), self.min_share)

        def hessian() -> FloatArray:
            v = (1 / g[free]) @ u[free]
            free_sum = float(g[free].sum())
            radius = float(np.sqrt(q[free]).sum())
            sides = u[free] / np.sqrt(g[free] * q[free])[:, None]
            weighted = np.tensordot(1 / g, self.kernels, 1)
            return np.asarray(weighted + np.outer(free_sum / radius**2 * v, v) - sides.T @ sides)

        value = float(q @ (1 / g)) / 2 - float(self.data.y @ a)
        gradient = (1 / g) @ u - self.data.y
        return LocalModel(value, gradient, hessian), g

    def best(self, start: FloatArray | None, tol: float) -> InnerSolution:
        """Return a solution whose gap is at most tol (1 + |value|), or the best that was met.

        With several kernels (sum_i r_i)^2 / 2 is not quadratic in a, so one quadratic program does
        not solve the problem. This is damped Newton's method: each step is the quadratic program of
        the Hessian, solved by `best_multipliers`; one kernel takes one step.
        """
        box = self.data.domain()
        a = box.centre() if start is None else start
        here, g = self.near(a)
        for _ in range(MAX_NEWTON_STEPS):
            gap = float(here.gradient @ a) - box.linear_minimum(here.gradient)
            if gap <= tol * (1 + abs(here.value)):
                break
            H = here.curvature()
            target = best_multipliers(H, H @ a - here.gradient, box, a, tol).a
            for t in 0.5 ** np.arange(MAX_HALVINGS):
                end = a + t * (target - a)
                there, shares = self.near(end)
                if there.value < here.value:
                    break
            else:
                # No step lowers the value: the rest is rounding.
                break
            a, here, g = end, there, shares
        return InnerSolution(a, g, -here.value)


@dataclass(frozen=True, eq=False)
class KernelObjective:
    """f as a function of a vector of kernels.

    Parameters
    ----------
    data : SimilarityData
        Labels, penalties and loss.
    coordinates : KernelCoordinates
        How kernels are one vector.
    groups : tuple of tuples of (n, n) arrays
        The similarities of each kernel.
    length : float
        Unit of the values.
    """

    data: SimilarityData
    coordinates: KernelCoordinates
    groups: tuple[tuple[FloatArray, ...], ...]
    length: float
    _known: dict[bytes, InnerSolution] = field(default_factory=dict, init=False, repr=False)

    def solution(self, k: FloatArray) -> InnerSolution:
        """Return the solution for some kernels; a proof by many kernels solves none twice."""
        key = blake2b(k.tobytes(), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            # The last kernels are near these: their multipliers are a good start.
            start = next(reversed(self._known.values())).a if self._known else None
            kernels = np.array(self.coordinates.kernels(k))
            svm = InnerSvm(kernels, self.data, MIN_SHARE_SUM / len(kernels))
            found = lock(svm.best(start, DESCENT_TOLERANCE))
            # The oldest solution makes way.
            if len(self._known) >= MAX_KEPT_SOLUTIONS:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found

    def answer(self, k: FloatArray) -> InnerSolution:
        """Return the solution for kernels that are an answer, as accurate as rounding allows."""
        kernels = np.array(self.coordinates.kernels(k))
        svm = InnerSvm(kernels, self.data, MIN_ANSWER_SHARE)
        return svm.best(self.solution(k).a, ANSWER_TOLERANCE)

    def value(self, k: FloatArray) -> float:
        """Return f."""
        loss = 0.0
        if self.data.rho:
            loss = self.data.rho * sum(map(self.data.loss.value, self._differences(k)))
        return (self.solution(k).value + loss) / self.length

    def gradient(self, k: FloatArray) -> FloatArray:
        """Return a subgradient."""
        there = self.solution(k)
        Z = map(self.data.loss.gradient, self._differences(k))
        gradients = [-np.outer(there.a / (2 * gi), there.a) for gi in there.g]
        for gradient, group in zip(gradients, self.groups, strict=True):
            for _ in group:
                gradient += self.data.rho * next(Z)
        return self.coordinates.vector(gradients) / self.length

    def mean_point(self, cuts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weighted means of a, g and the Z over cuts, rows (weight, kernels).

        They are what the cuts prove together.
        """
        weights = np.maximum(cuts[:, 0], 0.0)
        weights = weights / weights.sum()
        vectors = cuts[:, 1:]
        solutions = [self.solution(k) for k in vectors]
        a = weights @ np.array([one.a for one in solutions])
        g = weights @ np.array([one.g for one in solutions])
        Z = np.zeros((sum(map(len, self.groups)), a.size, a.size))
        for weight, k in zip(weights, vectors, strict=True):
            Z += weight * np.array([self.data.loss.gradient(X) for X in self._differences(k)])
        return a, g, Z

    def _differences(self, k: FloatArray) -> list[FloatArray]:
        """The K_i - S_ij, one after the other."""
        pairs = zip(self.coordinates.kernels(k), self.groups, strict=True)
        return [K - S for K, group in pairs for S in group]


def _bounded_shares(r: FloatArray, min_share: float) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The g >= min_share of sum 1 with minimal sum r_i^2 / g_i, and which are larger; r > 0."""
    g = r / r.sum()
    free = np.ones(r.size, dtype=bool)
    # Shares below the bound are fixed there; the others share the rest in proportion to r.
    while (g[free] < min_share).any():
        free &= g >= min_share
        rest = 1 - min_share * np.count_nonzero(~free)
        g = np.where(free, rest * r / r[free].sum(), min_share)
    return g, free
