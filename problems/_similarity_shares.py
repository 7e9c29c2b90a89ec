"""Spectra learned from similarities as a smooth problem in the multipliers alone: the shares g are eliminated as well.

For given a the function -sum psi_i(a, g_i) of `klopt.problems._similarity_smooth` is a sum of convex functions of one
share each, which cost next to nothing where eigenvectors are given. Its least point over g >= 0 of sum 1 is found by
Newton's method, kept away from zero, where the functions are infinite. With h_i the second derivatives there and
B = the mixed ones, the curvature that is left is  H_aa - B P B',  P = diag(1/h) - (1/h)(1/h)' / sum(1/h).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klopt.arrays import FloatArray
from klopt.objectives import Curved, Local, Quadratic
from klopt.problems._similarity_smooth import Smooth

__all__ = ["Eliminated"]

STEPS, EXACT = 60, 1e-11
KEPT = 0.2  # what a step leaves of a share at least


@dataclass(frozen=True, eq=False)
class Eliminated:
    """The function of a alone."""

    smooth: Smooth
    _last: list[FloatArray] = field(default_factory=list, init=False, repr=False)

    def shares(self, x: FloatArray) -> FloatArray:
        """Return the best g; the search starts at the last one."""
        f, a, m = self.smooth, self.smooth.length * x, len(self.smooth.blocks)
        g = self._last[0] if self._last else np.full(m, 1 / m)
        if not a.any():
            return np.full(m, 1 / m)
        images = [block.nearest(a, 1.0, f.weight).u for block in f.blocks]
        for _ in range(STEPS):
            near = [block.along(u, float(gi), f.weight) for block, u, gi in zip(f.blocks, images, g, strict=True)]
            slope = np.array([-found.curve / (2 * found.g**2) for found in near])
            bend = np.array([(found.curve + found.c * found.bend_curve / 2) / found.g**3 for found in near])
            price = float((slope / bend).sum() / (1 / bend).sum())
            step = (price - slope) / bend
            if float(np.abs(step / g).max()) <= EXACT:
                break
            g = g + min(1.0, float(np.min((1 - KEPT) * g / np.maximum(-step, 1e-300)))) * step
        g = g / g.sum()
        self._last[:] = [g]
        return np.asarray(g)

    def joined(self, x: FloatArray) -> FloatArray:
        """Return (x, g)."""
        return np.concatenate([x, self.shares(x)])

    def near(self, x: FloatArray) -> Local:
        """Return the function near x."""
        n = x.size
        both = self.smooth.near(self.joined(x))

        def curvature() -> FloatArray:
            H = both.curvature()
            B, inverse = H[:n, n:], 1 / np.maximum(H.diagonal()[n:], 1e-300)
            P = np.diag(inverse) - np.outer(inverse, inverse) / inverse.sum()
            return np.asarray(H[:n, :n] - B @ P @ B.T)

        return Local(both.value, both.gradient[:n], curvature)

    def rough(self) -> Quadratic:
        """Return the start of the function with shares, without them."""
        whole, n = self.smooth.rough(), self.smooth.y.size
        return Quadratic(whole.H[:n, :n], whole.linear[:n])

    def objective(self) -> Curved:
        """Return the function with that start."""
        return Curved(self.smooth.y.size, self.near, self.rough)
