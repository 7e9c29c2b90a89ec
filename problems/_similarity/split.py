"""The entrywise loss as a game that splits: a kernel against a machine, and against gradients Z_i of the loss.

    phi(K, (x, Z)) = y'x - length/2 x'Kx + sum_i <Z_i, K - S_i>         |Z_i| <= weight in every entry

In both proximal steps of K the machine's is the squared loss next to a matrix V
(`klopt.problems._similarity.block`), and the loss's is taken entry by entry: the median of the s_i
and of the 1 + m numbers v + (m - 2j) weight / sigma, j = 0..m. Matrices are given by svec, which
counts an entry off the diagonal sqrt(2) times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import smat, svec
from klopt.model.forms import SaddleForm
from klopt.model.sets import BoxPlane, Product, Spectrahedron
from klopt.model.splitting import Inner, Splitting
from klopt.problems._similarity.block import Block
from klopt.problems._similarity.smooth import Smooth

__all__ = ["EntrywiseGame"]

# Of the mean diagonal: how far from its similarity a kernel is taken to be at least where sigma is
# chosen.
NEAR = 1e-2


@dataclass(frozen=True, eq=False)
class EntrywiseGame:
    """The game in the units of the form; `weight` is that of the loss there."""

    S: tuple[FloatArray, ...]
    y: FloatArray
    box: BoxPlane
    length: float
    weight: float
    trace: float

    @cached_property
    def targets(self) -> FloatArray:
        """The similarities, one row each."""
        return np.array([svec(S) for S in self.S])

    @cached_property
    def reach(self) -> FloatArray:
        """The largest gradients."""
        n = self.y.size
        return svec(np.full((n, n), self.weight))

    def form(self) -> SaddleForm:
        """Return the game."""
        n, m = self.y.size, len(self.S)
        bound = np.tile(self.reach, m)
        gradients = BoxPlane(-bound, bound)
        lam, V = np.linalg.eigh(np.asarray(sum(self.S) / m))
        nearest = V * Block(self.S[0], self.trace).projected(lam) @ V.T
        away = float(np.mean([np.abs(nearest - S).mean() for S in self.S])) + NEAR * self.trace / n
        coupling = Splitting(
            self.value,
            self.gradient_kernel,
            self.gradient_others,
            self.inner,
            self.outer,
            svec(nearest),
            self.weight * m / away,
        )
        return SaddleForm(coupling, Spectrahedron(n, self.trace), Product((self.box, gradients)))

    def split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x and the rows Z_i."""
        n = self.y.size
        return y[:n], y[n:].reshape(len(self.S), -1)

    def value(self, k: FloatArray, y: FloatArray) -> float:
        x, Z = self.split(y)
        machine = float(self.y @ x) - self.length / 2 * float(x @ (smat(k) @ x))
        return machine + float(np.vdot(Z, k - self.targets))

    def gradient_kernel(self, k: FloatArray, y: FloatArray) -> FloatArray:
        x, Z = self.split(y)
        total: FloatArray = Z.sum(axis=0)
        return total - svec(np.outer(self.length / 2 * x, x))

    def gradient_others(self, k: FloatArray, y: FloatArray) -> FloatArray:
        x, _ = self.split(y)
        return np.concatenate([self.y - self.length * (smat(k) @ x), (k - self.targets).ravel()])

    def inner(self, v: FloatArray, sigma: float) -> Inner:
        """Return the machine's step."""
        weight = sigma * self.length / 2
        smooth = Smooth(
            (Block(smat(v), self.trace),), self.y, weight, False, self.length, apart=False
        )

        def primal(x: FloatArray) -> FloatArray:
            H = smooth.nearest(x)[0][0].factor
            return svec(H @ H.T)

        return Inner(smooth.objective(), primal)

    def outer(self, v: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
        """Return the loss's step and the gradients that go with it."""
        m, step = len(self.S), self.reach / sigma
        if m == 1:
            p = self.targets[0] + np.sign(v - self.targets[0]) * np.maximum(
                np.abs(v - self.targets[0]) - step, 0.0
            )
            return p, np.clip(sigma * (v - p), -self.reach, self.reach)
        shifted = v + (m - 2 * np.arange(m + 1))[:, None] * step
        p = np.median(np.vstack([self.targets, shifted]), axis=0)
        signs = np.sign(p - self.targets)
        tied = signs == 0
        rest = sigma * (v - p) - self.reach * signs.sum(axis=0)
        shares = np.clip(rest / np.maximum(tied.sum(axis=0), 1), -self.reach, self.reach)
        return p, np.where(tied, shares, self.reach * signs).ravel()
