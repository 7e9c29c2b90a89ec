"""Spectra learned from similarities as a smooth problem in the multipliers alone: the shares are eliminated as well.

    minimise  f(a) = -y'a - max over g of psi(a, g)            psi as in `klopt.problems._similarity.spectra`

The variables are x = a / length, values in units of length.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.smooth_functions import LocalModel, SmoothFunction, StartModel
from klopt.numerics.roots import cubic_root
from klopt.problems._similarity.spectra import Kept, Spectra

__all__ = ["Eliminated"]

RIDGE = 1e-8
DAMPING = 0.02  # of 70 instances: half the time of 0


@dataclass(frozen=True, eq=False)
class Eliminated:
    """The function of x alone."""

    spectra: Spectra
    y: FloatArray
    weight: float
    length: float
    _last: list[tuple[FloatArray, Kept]] = field(default_factory=list, init=False, repr=False)

    def nearest(self, x: FloatArray) -> Kept:
        """Return the best eigenvalues and shares; the search starts at the last ones, which are kept."""
        if self._last and np.array_equal(self._last[0][0], x):
            return self._last[0][1]
        m = len(self.spectra.values)
        g = self._last[0][1].g if self._last else np.full(m, 1 / m)
        found = self.spectra.balanced(self.length * x, self.weight, g)
        self._last[:] = [(x.copy(), found)]
        return found

    def near(self, x: FloatArray) -> LocalModel:
        """Return the function near x."""
        here = self.nearest(x)
        value = -float(self.y @ x) - here.value / self.length
        return LocalModel(value, here.image - self.y, lambda: self.length * here.curvature())

    def rough(self) -> StartModel:
        """Return the machine of the kernels nearest to the similarities, with a ridge for how they will follow a.

        That bends the function like the sum of c_i b_i / (4 g_i), a fourth power of a, which near a
        is as good as a ridge of four times that over a'a; a is a multiple of the labels, by a cubic
        equation. An eigenvalue at zero has no curvature until a long step makes it positive: first
        steps are damped.
        """
        m, n, d = len(self.spectra.values), self.y.size, self.y - self.y.mean()
        start = self.spectra.nearest(np.zeros(n), np.full(m, 1 / m), self.weight)
        H, length = m * start.kernel, float(d @ d)
        bends = replace(start, squares=np.square(self.spectra.along(d))).bends
        bend = float(np.sum(start.c / start.g * np.maximum(bends, RIDGE * length * length)))
        s = cubic_root(bend, float(d @ (H @ d)), length)
        H.flat[:: n + 1] += s * s * bend / length
        H *= self.length
        return StartModel(H, -self.y, damping=DAMPING)

    def objective(self) -> SmoothFunction:
        """Return the function with that start."""
        return SmoothFunction(self.y.size, self.near, self.rough)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_last": []}  # as large as everything else together
