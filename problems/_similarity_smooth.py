"""A kernel learned from similarities as a smooth problem in the multipliers of the machine alone.

    minimise  f(a) = -y'a - psi(a)      psi(a) = min over K of  rho sum L(K - S_i) - a'Ka/2

for the squared loss, where only the mean of the S_i matters, and for the norm itself with one S. Several kernels have
psi(a, g) = sum_i psi_i(a, g_i), over g >= 0 of sum 1 as well. The variables are x = (a / length, g), values in units of
length. The norm has a kink where K = S; t = ||K - S|| is kept above a share `LEAST` of the size of S.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klopt.arrays import FloatArray
from klopt.objectives import Curved, Local, Quadratic
from klopt.problems._similarity_block import Block, Nearest

__all__ = ["Smooth"]

LEAST = 1e-9


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
    _lengths: list[float] = field(default_factory=list, init=False, repr=False)
    _last: list[tuple[FloatArray, list[tuple[Nearest, float]]]] = field(default_factory=list, init=False, repr=False)

    @property
    def size(self) -> int:
        return self.y.size + (len(self.blocks) if self.apart else 0)

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and g."""
        n = self.y.size
        return self.length * x[:n], x[n:] if self.apart else np.ones(1)

    def nearest(self, x: FloatArray) -> list[tuple[Nearest, float]]:
        """Return the best kernels for x, each with its t; those of the last x are kept."""
        if not (self._last and np.array_equal(self._last[0][0], x)):
            self._last[:] = [(x.copy(), self._computed(x))]
        return self._last[0][1]

    def _computed(self, x: FloatArray) -> list[tuple[Nearest, float]]:
        a, g = self.split(x)
        if not self.norm:
            return [(block.nearest(a, float(gi), self.weight), 0.0) for block, gi in zip(self.blocks, g, strict=True)]
        sizes = [float(np.linalg.norm(block.S)) or 1.0 for block in self.blocks]
        guesses = self._lengths or sizes
        found = [
            block.by_norm(a, float(gi), self.weight, guess, LEAST * size)
            for block, gi, guess, size in zip(self.blocks, g, guesses, sizes, strict=True)
        ]
        self._lengths[:] = [t for _, t in found]  # where the next root is looked for
        return found

    def near(self, x: FloatArray) -> Local:
        """Return the function near x."""
        n, (a, g) = self.y.size, self.split(x)
        if not (g > 0).all():
            nowhere = np.zeros(self.size)
            return Local(np.inf, nowhere, lambda: np.zeros((self.size, self.size)))
        found = self.nearest(x)
        value, gradient = -float(self.y @ a), np.concatenate([-self.y, np.zeros(self.size - n)])
        for i, (near, t) in enumerate(found):
            value -= near.value + (self.weight * t / 2 if self.norm else 0.0)
            gradient[:n] += near.image / near.g
            if self.apart:
                gradient[n + i] -= near.curve / (2 * near.g**2) / self.length
        return Local(value / self.length, gradient, lambda: self._curvature(found))

    def _curvature(self, found: list[tuple[Nearest, float]]) -> FloatArray:
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

    def rough(self) -> Quadratic:
        """Return the machine of the kernels nearest to the similarities, with a ridge for how they will follow a.

        A kernel that follows a as K + c aa' bends like the fourth power, |a|^4 c / 4; near the best multiple s of the
        labels, which is known by a cubic equation, that is as good as a ridge of c |a|^2. g is best for the labels.
        """
        m, n = len(self.blocks), self.y.size
        H, follow, radii = np.zeros((self.size, self.size)), np.zeros(m), np.zeros(m)
        d = self.y - self.y.mean()
        for i, block in enumerate(self.blocks):
            lam, V = np.linalg.eigh(block.S) if block.basis is None else block.basis
            mu = block.projected(lam)
            half = V * np.sqrt(mu)
            H[:n, :n] += half @ half.T
            w = self.weight / (2 * float(np.linalg.norm(mu - lam)) or 1.0) if self.norm else self.weight
            share = 1.0 if block.basis is None else float(((V.T @ d) ** 4).sum()) / float(d @ d) ** 2
            follow[i] = m * m * share / (4 * w)
            radii[i] = np.linalg.norm(half.T @ d)
        H[:n, :n] *= m
        curve, length = float(d @ (H[:n, :n] @ d)), float(d @ d)
        s = _cubic_root(float(follow.sum()) * length**2, curve, length)
        H.flat[: n * self.size : self.size + 1] += float(follow.sum()) * s * s * length
        radii = np.sqrt(radii**2 + follow / m * s * s * length**2)
        H[:n, :n] *= self.length
        linear = np.concatenate([-self.y, -radii / (radii.sum() or 1.0)]) if self.apart else -self.y
        H.flat[n * (self.size + 1) :: self.size + 1] = 1.0
        return Quadratic(H, linear)

    def objective(self) -> Curved:
        """Return the function with that start."""
        return Curved(self.size, self.near, self.rough)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}  # as large as everything else together


def _cubic_root(cubic: float, linear: float, right: float) -> float:
    """The positive root of cubic s^3 + linear s = right, none of them negative."""
    s = float(np.cbrt(right / cubic)) if cubic > 0 else right / linear
    for _ in range(50):
        s -= (cubic * s**3 + linear * s - right) / (3 * cubic * s**2 + linear)
    return s
