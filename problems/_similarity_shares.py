"""Spectra learned from similarities as a smooth problem in the multipliers alone: the shares g are eliminated as well.

For given a the function -sum psi_i(a, g_i) of `klopt.problems._similarity_smooth` is a sum of convex functions of one
share each, which cost next to nothing where eigenvectors are given. Its least point over g >= 0 of sum 1 is found by
Newton's method, kept away from zero, where the functions are infinite. With h_i the second derivatives there and
B = the mixed ones, the curvature that is left is  H_aa - B P B',  P = diag(1/h) - (1/h)(1/h)' / sum(1/h).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.objectives import Curved, Local, Quadratic
from klopt.problems._similarity_smooth import Smooth

__all__ = ["Eliminated"]

STEPS, SHORT = 60, 1e-6  # Newton's step squares the error: one that short is the last
KEPT = 0.2  # what a step leaves of a share at least


@dataclass(frozen=True, eq=False)
class Eliminated:
    """The function of a alone."""

    smooth: Smooth
    _last: list[FloatArray] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def _spectra(self) -> FloatArray:
        """The eigenvalues of the similarities, one row each."""
        return np.array([block.basis[0] for block in self.smooth.blocks if block.basis is not None])

    def shares(self, x: FloatArray) -> FloatArray:
        """Return the best g; the search starts at the last one."""
        f, a, m = self.smooth, self.smooth.length * x, len(self.smooth.blocks)
        g = self._last[0] if self._last else np.full(m, 1 / m)
        if not a.any():
            return np.full(m, 1 / m)
        squares = np.array([block.basis[1].T @ a for block in f.blocks if block.basis is not None]) ** 2
        for _ in range(STEPS):
            slope, bend = self._slopes(squares, g)
            price = float((slope / bend).sum() / (1 / bend).sum())
            step = (price - slope) / bend
            short = float(np.abs(step / g).max()) <= SHORT
            g = g + min(1.0, float(np.min((1 - KEPT) * g / np.maximum(-step, 1e-300)))) * step
            if short:
                break
        g = g / g.sum()
        self._last[:] = [g]
        return np.asarray(g)

    def _slopes(self, squares: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first and second derivatives in the shares, all blocks at once; `squares` are the u^2."""
        c = 1 / (4 * self.smooth.weight * g)
        mu = self._projected(self._spectra + c[:, None] * squares)
        curve, kept = (mu * squares).sum(axis=1), np.where(mu > 0, squares, 0.0)
        bends = (kept**2).sum(axis=1) - kept.sum(axis=1) ** 2 / np.count_nonzero(mu, axis=1)
        return -curve / (2 * g**2), (curve + c * bends / 2) / g**3

    def _projected(self, lam: FloatArray) -> FloatArray:
        """The nearest points of the simplex to all rows."""
        total = self.smooth.blocks[0].trace
        assert total is not None
        x = lam - lam.max(axis=1, keepdims=True)
        falling = np.sort(x, axis=1)[:, ::-1]
        levels = (np.cumsum(falling, axis=1) - total) / np.arange(1, x.shape[1] + 1)
        last = np.count_nonzero(falling > levels, axis=1) - 1
        mu = np.maximum(x - np.take_along_axis(levels, last[:, None], axis=1), 0.0)
        return np.asarray(mu * (total / mu.sum(axis=1, keepdims=True)))

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
