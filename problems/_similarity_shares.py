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
from klopt.curved import Curved, Local, Rough
from klopt.problems._similarity_block import Nearest
from klopt.problems._similarity_smooth import Smooth

__all__ = ["Eliminated"]

STEPS, SHORT = 60, 1e-6  # Newton's step squares the error: one that short is the last
KEPT = 0.2  # what a step leaves of a share at least
DAMPING = 0.02  # of 70 instances: half the time of 0


@dataclass(frozen=True, eq=False)
class Eliminated:
    """The function of a alone."""

    smooth: Smooth
    _last: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def _bases(self) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """The eigenvalues of the similarities, one row each, and their eigenvectors."""
        bases = [block.basis for block in self.smooth.blocks if block.basis is not None]
        return np.array([values for values, _ in bases]), tuple(V for _, V in bases)

    def _along(self, x: FloatArray) -> FloatArray:
        """The u, one row each."""
        a = self.smooth.length * x
        return np.array([a @ V for V in self._bases[1]])

    def shares(self, x: FloatArray) -> FloatArray:
        """Return the best g; the search starts at the last one, which is the answer where x is the last one too."""
        if self._last and np.array_equal(self._last[0][0], x):
            return self._last[0][1]
        return self._best(x, self._along(x))

    def _best(self, x: FloatArray, u: FloatArray) -> FloatArray:
        m = len(self.smooth.blocks)
        if not u.any():
            return np.full(m, 1 / m)
        g, squares = self._last[0][1] if self._last else np.full(m, 1 / m), u * u
        for _ in range(STEPS):
            slope, bend = self._slopes(squares, g)
            price = float((slope / bend).sum() / (1 / bend).sum())
            step = (price - slope) / bend
            short = float(np.abs(step / g).max()) <= SHORT
            g = g + min(1.0, float(np.min((1 - KEPT) * g / np.maximum(-step, 1e-300)))) * step
            if short:
                break
        g = g / g.sum()
        self._last[:] = [(x.copy(), g)]
        return np.asarray(g)

    def _slopes(self, squares: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first and second derivatives in the shares, all blocks at once; `squares` are the u^2."""
        c = 1 / (4 * self.smooth.weight * g)
        _, mu = self._projected(squares, c)
        inside = mu > 0
        kept = squares * inside
        curve = np.einsum("ij,ij->i", mu, squares)
        bends = np.einsum("ij,ij->i", kept, kept) - kept.sum(axis=1) ** 2 / np.count_nonzero(inside, axis=1)
        return -curve / (2 * g**2), (curve + c * bends / 2) / g**3

    def _projected(self, squares: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The eigenvalues before and after the projection on the simplex, one row each."""
        total = self.smooth.blocks[0].trace
        assert total is not None
        lam = self._bases[0] + c[:, None] * squares
        falling = np.sort(lam, axis=1)[:, ::-1]
        top = falling[:, :1]
        levels = ((falling - top).cumsum(axis=1) - total) / self._counts
        last = np.count_nonzero(falling - top > levels, axis=1) - 1
        mu = np.maximum(lam - top - levels[np.arange(len(lam)), last][:, None], 0.0)
        return lam, mu * (total / mu.sum(axis=1, keepdims=True))

    @cached_property
    def _counts(self) -> FloatArray:
        return np.arange(1.0, self.smooth.y.size + 1)

    def joined(self, x: FloatArray) -> FloatArray:
        """Return (x, g)."""
        return np.concatenate([x, self.shares(x)])

    def near(self, x: FloatArray) -> Local:
        """Return the function near x."""
        f, n, u = self.smooth, x.size, self._along(x)
        g = self._best(x, u)
        lam, mu = self._projected(u * u, 1 / (4 * f.weight * g))
        parts = zip(self._bases[1], lam, mu, u, g, strict=True)
        found = [(Nearest(V, li, mi, ui, float(gi), f.weight, True, True), 0.0) for V, li, mi, ui, gi in parts]
        both = f.local(f.length * x, found)

        def curvature() -> FloatArray:
            H = both.curvature()
            B, inverse = H[:n, n:], 1 / np.maximum(H.diagonal()[n:], 1e-300)
            half = B * np.sqrt(inverse)
            w = B @ inverse
            return np.asarray(H[:n, :n] - half @ half.T + np.outer(w / inverse.sum(), w))

        return Local(both.value, both.gradient[:n], curvature)

    def rough(self) -> Rough:
        """Return the start of the function with shares, without them.

        An eigenvalue at zero has no curvature until a long step makes it positive: first steps are damped.
        """
        whole, n = self.smooth.rough(), self.smooth.y.size
        return Rough(whole.H[:n, :n], whole.linear[:n], damping=DAMPING)

    def objective(self) -> Curved:
        """Return the function with that start."""
        return Curved(self.smooth.y.size, self.near, self.rough)
