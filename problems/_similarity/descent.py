"""The value of the best machine as a function of its kernels, with kinks, for methods that descend over kernels.

    f(K_1, .., K_m) = max over a, g of  y'a - sum_i a'K_i a / (2 g_i)   +   rho sum L(K_i - S_ij)

    gradient in K_i:   -aa' / (2 g_i) + rho sum_j Z_ij          g >= 0 of sum 1; one kernel has g = 1

The best shares for given multipliers are g_i = r_i / sum r, r_i = (a'K_i a)^1/2. Where r_i -> 0 the
gradient in K_i goes to infinity, and one such gradient, which a first long step is sure to meet,
would make all later steps short. So g >= LEAST / m is asked for: that function is nowhere above f,
and has the same least value unless a best share is smaller than that. With B the shares above the
bound, s their sum, R = sum_B r and u_i = K_i a, the machine -y'a + sum u_i'a / (2 g_i) has

    gradient = sum_i u_i / g_i - y          Hessian = sum_i K_i / g_i + s vv' / R^2 - sum_B u_i u_i' / (g_i r_i^2)

v = sum_B u_i / g_i. Newton's method goes from the last multipliers to a small gap.

f is the value at the multipliers that were found, from below, so that a gradient is one of some
function between f and f + gap. What they prove is for the bracket to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.smooth_functions import LocalModel
from klopt.numerics.box_qp.multipliers import best_multipliers
from klopt.problems._similarity.proof import Data
from klopt.problems._similarity.sets import Chart

__all__ = ["Descent", "Machine", "Reply"]

EXACT, SETTLED = 1e-5, 1e-12
LEAST, SMALLEST = 0.1, 1e-6
ROUNDS, HALVINGS = 30, 10
MOST = 10_000  # machines that are kept, by a digest of their kernels


@dataclass(frozen=True, eq=False)
class Machine:
    """Multipliers and shares that are nearly best for some kernels, and the value of the machine at them."""

    a: FloatArray
    g: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class Reply:
    """The machine of some kernels with shares of at least `least`."""

    kernels: FloatArray
    data: Data
    least: float

    def near(self, a: FloatArray) -> tuple[LocalModel, FloatArray]:
        """Return minus the value of the machine near a, and the best shares."""
        u = self.kernels @ a
        q = np.maximum(u @ a, np.finfo(float).tiny)
        g, free = _shares(np.sqrt(q), self.least)
        pull = (1 / g) @ u

        def curvature() -> FloatArray:
            v, room = (1 / g[free]) @ u[free], float(g[free].sum())
            sides = u[free] / np.sqrt(g[free] * q[free])[:, None]
            length = float(np.sqrt(q[free]).sum())
            H = (
                np.tensordot(1 / g, self.kernels, 1)
                + np.outer(room / length**2 * v, v)
                - sides.T @ sides
            )
            return np.asarray(H)

        return LocalModel(
            float(q @ (1 / g)) / 2 - float(self.data.y @ a), pull - self.data.y, curvature
        ), g

    def best(self, start: FloatArray | None, tol: float) -> Machine:
        """Return the machine whose gap is at most tol (1 + |value|), or the best that was met."""
        box = self.data.domain()
        a = box.centre() if start is None else start
        here, g = self.near(a)
        for _ in range(ROUNDS):
            if float(here.gradient @ a) - box.linear_minimum(here.gradient) <= tol * (
                1 + abs(here.value)
            ):
                break
            H = here.curvature()
            z = best_multipliers(H, H @ a - here.gradient, box, a, tol).a
            ends = (
                (end, *self.near(end))
                for end in (a + t * (z - a) for t in 0.5 ** np.arange(HALVINGS))
            )
            lower = next((found for found in ends if found[1].value < here.value), None)
            if lower is None:
                break
            a, here, g = lower
        return Machine(a, g, -here.value)


@dataclass(frozen=True, eq=False)
class Descent:
    """The function of kernels as a `chart` has them, in units of `length`; `groups` are the similarities of each."""

    data: Data
    chart: Chart
    groups: tuple[tuple[FloatArray, ...], ...]
    length: float
    _known: dict[bytes, Machine] = field(default_factory=dict, init=False, repr=False)

    def machine(self, k: FloatArray) -> Machine:
        """Return the machine of some kernels; it is kept, so that a proof by many kernels solves none twice."""
        key = blake2b(k.tobytes(), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            start = next(reversed(self._known.values())).a if self._known else None
            kernels = np.array(self.chart.kernels(k))
            found = Reply(kernels, self.data, LEAST / len(kernels)).best(start, EXACT)
            if len(self._known) >= MOST:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        return found

    def settled(self, k: FloatArray) -> Machine:
        """Return the machine of kernels that are an answer, with any shares and as good as rounding allows."""
        return Reply(np.array(self.chart.kernels(k)), self.data, SMALLEST).best(
            self.machine(k).a, SETTLED
        )

    def value(self, k: FloatArray) -> float:
        """Return f."""
        loss = (
            self.data.rho * sum(map(self.data.loss.value, self._away(k))) if self.data.rho else 0.0
        )
        return (self.machine(k).value + loss) / self.length

    def gradient(self, k: FloatArray) -> FloatArray:
        """Return a subgradient."""
        there, Z = self.machine(k), map(self.data.loss.gradient, self._away(k))
        gradients = [-np.outer(there.a / (2 * gi), there.a) for gi in there.g]
        for gradient, group in zip(gradients, self.groups, strict=True):
            for _ in group:
                gradient += self.data.rho * next(Z)
        return self.chart.vector(gradients) / self.length

    def mean_point(self, cuts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weighted means of a, g and the Z over cuts, rows (weight, kernels): what they prove together."""
        weights = np.maximum(cuts[:, 0], 0.0)
        weights = weights / weights.sum()
        machines = [self.machine(k) for k in cuts[:, 1:]]
        a, g = (
            weights @ np.array(rows)
            for rows in ([one.a for one in machines], [one.g for one in machines])
        )
        Z = np.zeros((sum(map(len, self.groups)), a.size, a.size))
        for weight, k in zip(weights, cuts[:, 1:], strict=True):
            Z += weight * np.array([self.data.loss.gradient(X) for X in self._away(k)])
        return a, g, Z

    def _away(self, k: FloatArray) -> list[FloatArray]:
        """The K_i - S_ij, one after the other."""
        return [
            K - S
            for K, group in zip(self.chart.kernels(k), self.groups, strict=True)
            for S in group
        ]


def _shares(r: FloatArray, least: float) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the g >= least of sum 1 with the least sum r_i^2 / g_i, and which are above that bound; r > 0."""
    g, free = r / r.sum(), np.ones(r.size, dtype=bool)
    while (g[free] < least).any():
        free &= g >= least
        room = 1 - least * np.count_nonzero(~free)
        g = np.where(free, room * r / r[free].sum(), least)
    return g, free
