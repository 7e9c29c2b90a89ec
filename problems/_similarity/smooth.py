"""A kernel learned from similarities as a smooth problem in the multipliers of the machine alone.

    minimise  f(a) = -y'a - psi(a)      psi(a) = min over K of  rho sum L(K - S_i) - a'Ka/2

for the squared loss, where only the mean of the S_i matters, and for the norm itself with one S.
Several kernels have psi(a, g) = sum_i psi_i(a, g_i), over g >= 0 of sum 1 as well. The variables
are x = (a / length, g), values in units of length. The norm has a kink where K = S; t = ||K - S||
is kept above a share `LEAST` of the size of S.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.smooth_functions import LocalModel, SmoothFunction, StartModel
from klopt.numerics.roots import cubic_root
from klopt.problems._similarity.block import Block, Nearest

__all__ = ["Smooth"]

LEAST = 1e-9
ROUNDS, RIDGE = 3, 1e-8
FOLLOW = 0.25  # of 44 instances: 151 steps, 160 with 0 and with 0.5


@dataclass(frozen=True, eq=False)
class Smooth:
    """-y'a - sum psi_i for blocks with weights w_i; `norm` says that the loss is the norm, not its square."""

    blocks: tuple[Block, ...]
    y: FloatArray
    weight: float
    norm: bool
    length: float
    apart: bool
    """Whether each block has its own g; else there is one block and g = 1."""
    C: float = np.inf
    """The box of a, which only the start asks for."""
    _last: list[tuple[FloatArray, list[tuple[Nearest, float]]]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def size(self) -> int:
        return self.y.size + (len(self.blocks) if self.apart else 0)

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and g."""
        n = self.y.size
        return self.length * x[:n], x[n:] if self.apart else np.ones(1)

    def nearest(self, x: FloatArray) -> list[tuple[Nearest, float]]:
        """Return the best kernels for x, each with its t; where t has to be found those of the last x are kept."""
        if not self.norm:
            return self._computed(x)
        if not (self._last and np.array_equal(self._last[0][0], x)):
            self._last[:] = [(x.copy(), self._computed(x))]
        return self._last[0][1]

    def _computed(self, x: FloatArray) -> list[tuple[Nearest, float]]:
        a, g = self.split(x)
        if not self.norm:
            return [
                (block.nearest(a, float(gi), self.weight), 0.0)
                for block, gi in zip(self.blocks, g, strict=True)
            ]
        sizes = [float(np.linalg.norm(block.S)) or 1.0 for block in self.blocks]
        return [
            block.by_norm(a, float(gi), self.weight, guess, LEAST * size)
            for block, gi, guess, size in zip(
                self.blocks, g, self._guesses(x) or sizes, sizes, strict=True
            )
        ]

    def _guesses(self, x: FloatArray) -> list[float]:
        """The t that the last ones and their gradients, -psi_at / psi_tt and -psi_gt / psi_tt, let expect at x."""
        guesses = []
        for last, found in self._last:
            moves = [
                now - before for now, before in zip(self.split(x), self.split(last), strict=True)
            ]
            for (near, t), share in zip(found, moves[1], strict=True):
                at, gt, tt = near.by_length(t)
                fall = float(at @ moves[0]) + gt * float(share)
                guesses.append(max(t - fall / tt, t / 4) if tt > 0 else t)
        return guesses

    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        a, g = self.split(x)
        if self.apart and not (g > 0).all():
            nowhere = np.zeros(self.size)
            return LocalModel(np.inf, nowhere, lambda: np.zeros((self.size, self.size)))
        return self.local(a, self.nearest(x))

    def local(self, a: FloatArray, found: list[tuple[Nearest, float]]) -> LocalModel:
        """Return the function near a and the shares of the best kernels there."""
        n = self.y.size
        value, gradient = -float(self.y @ a), np.concatenate([-self.y, np.zeros(self.size - n)])
        for i, (near, t) in enumerate(found):
            value -= near.value + (self.weight * t / 2 if self.norm else 0.0)
            gradient[:n] += near.image / near.g
            if self.apart:
                gradient[n + i] -= near.curve / (2 * near.g**2) / self.length
        return LocalModel(value / self.length, gradient, lambda: self._curvature(found))

    def _curvature(self, found: list[tuple[Nearest, float]]) -> FloatArray:
        if not (self.apart or self.norm):
            H = found[0][0].curvature()
            H *= self.length
            return H
        n = self.y.size
        H = np.zeros((self.size, self.size))
        for i, (near, t) in enumerate(found):
            H[:n, :n] += near.curvature()
            if self.apart:
                cross, corner = near.bordered()
                H[:n, n + i] = H[n + i, :n] = cross
                H[n + i, n + i] = corner
            if self.norm:
                at, gt, tt = near.by_length(t)
                v = np.zeros(self.size)
                v[:n] = at
                if self.apart:
                    v[n + i] = gt
                if tt > 0:
                    H += np.outer(v / tt, v)
        H[:n, :n] *= self.length
        H[n:, n:] /= self.length
        return H

    def rough(self) -> StartModel:
        """Return the machine of the kernels nearest to the similarities, with a ridge for how they will follow a.

        A kernel that follows a bends the function like c u'r / (4g), a fourth power, which near a
        is as good as a ridge of c u'r / (g u'u) (`klopt.problems._similarity.block`). At first a is
        a multiple of the labels, by a cubic equation, then the machine's with that ridge, in the
        box only.
        """
        m, n, d = len(self.blocks), self.y.size, self.y - self.y.mean()
        start = [self._unmoved(block, 1 / m) for block in self.blocks]
        H = m * np.asarray(sum(near.factor @ near.factor.T for near in start))
        bend, length = self._bend(start, d), float(d @ d)
        s = cubic_root(bend, float(d @ (H @ d)), length)
        values, V = (start[0].mu, start[0].V) if m == 1 else np.linalg.eigh(H)
        a, ridge = self._followed(start, values, V, s * s * bend / length)
        H.flat[:: n + 1] += ridge
        H *= self.length
        guess = a / self.length
        if not self.apart:
            return StartModel(H, -self.y, guess)
        whole = np.eye(self.size)
        whole[:n, :n] = H
        moved = [(near, np.square(near.V.T @ a)) for near in start]
        radii = np.sqrt(
            [
                float(near.mu @ squares) + near.c * near.bend_along(squares)
                for near, squares in moved
            ]
        )
        shares = radii / (radii.sum() or 1.0)
        return StartModel(
            whole, np.concatenate([-self.y, -shares]), np.concatenate([guess, shares])
        )

    def _followed(
        self, start: list[Nearest], values: FloatArray, V: FloatArray, ridge: float
    ) -> tuple[FloatArray, float]:
        """The a of that machine and its ridge, each from the other in turn; values and V are those of its kernel."""
        least, corner = RIDGE * float(values[-1]), self.C * self.y
        low, high = np.minimum(corner, 0.0), np.maximum(corner, 0.0)
        values, right, sums = np.maximum(values, 0.0), self.y @ V, V.sum(axis=0)
        for _ in range(ROUNDS):
            weights = 1 / (values + max(ridge, least))
            shift = float(sums @ (weights * right)) / float(sums @ (weights * sums))
            a = np.minimum(np.maximum(V @ (weights * (right - shift * sums)), low), high)
            ridge = float(np.sqrt(ridge * self._bend(start, a) / (float(a @ a) or 1.0)))
        return a, ridge

    def _bend(self, start: list[Nearest], a: FloatArray) -> float:
        """sum c u'r / g, that of kernels which hardly follow, moved towards sum c |a|^4 / g, the most there is."""
        bend = sum(near.c * near.bend_along(np.square(near.V.T @ a)) / near.g for near in start)
        most = sum(near.c / near.g for near in start) * float(a @ a) ** 2
        share = 1.0 if self.norm else FOLLOW
        return max(float(bend ** (1 - share) * most**share), RIDGE * most)

    def _unmoved(self, block: Block, g: float) -> Nearest:
        """The kernel nearest to the similarity alone."""
        near = block.nearest(np.zeros_like(self.y), g, self.weight)
        return (
            replace(near, w=self.weight / (2 * float(np.sqrt(near.distance)) or 1.0))
            if self.norm
            else near
        )

    def objective(self) -> SmoothFunction:
        """Return the function with that start."""
        return SmoothFunction(self.size, self.near, self.rough)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}  # as large as everything else together
