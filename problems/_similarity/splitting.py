"""The entrywise loss as a saddle point problem that splits into two proximal steps.

    phi(K, (x, Z)) = y'x - length/2 x'Kx + sum_i <Z_i, K - S_i>

is minimised over a kernel K and maximised over the multipliers x of a support vector machine and
over gradients Z_i of the loss, |Z_i| <= weight in every entry. The proximal
step of the first is the squared loss next to a matrix V (`klopt.problems._similarity.function`).
That of the loss is taken entry by entry: the median of the s_i and of the 1 + m numbers
v + (m - 2j) weight / sigma, j = 0..m. Matrices are given by svec, which counts an entry off the
diagonal sqrt(2) times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.cones import smat, svec
from klopt.model.forms import SaddleForm
from klopt.model.functions import ProximalStep, Splitting
from klopt.model.sets import BoxPlane, Product, Spectrahedron
from klopt.problems._similarity.function import MultiplierObjective
from klopt.problems._similarity.nearest import KernelProjection

__all__ = ["EntrywiseSplitting"]

MIN_RELATIVE_DISTANCE = 1e-2
"""Smallest distance of a kernel from its similarity that the first sigma assumes.

It is relative to the mean diagonal of the kernel.
"""


@dataclass(frozen=True, eq=False)
class EntrywiseSplitting:
    """The saddle point problem in the units of the form.

    Parameters
    ----------
    S : tuple of (n, n) arrays
        The similarities.
    y : (n,) array
        Labels.
    box : BoxPlane
        The set of x.
    length : float
        Unit of the multipliers.
    weight : float
        Weight of the loss in the form's units.
    trace : float
        Trace of the kernel.
    """

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
    def max_gradient(self) -> FloatArray:
        """The bound of the entries of Z_i."""
        n = self.y.size
        return svec(np.full((n, n), self.weight))

    def form(self) -> SaddleForm:
        """Return the saddle form with its proximal steps, its start and a first sigma."""
        n = self.y.size
        m = len(self.S)
        lam, V = np.linalg.eigh(np.asarray(sum(self.S) / m))
        mu = KernelProjection(self.S[0], self.trace).eigenvalues(lam)
        nearest = V * mu @ V.T
        distances = [np.abs(nearest - S).mean() for S in self.S]
        distance = float(np.mean(distances)) + MIN_RELATIVE_DISTANCE * self.trace / n
        coupling = Splitting(
            self.value,
            self.kernel_gradient,
            self.others_gradient,
            self.inner,
            self.outer,
            start=svec(nearest),
            sigma=self.weight * m / distance,
        )
        bound = np.tile(self.max_gradient, m)
        others = Product((self.box, BoxPlane(-bound, bound)))
        return SaddleForm(coupling, Spectrahedron(n, self.trace), others)

    def split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x and the rows Z_i."""
        n = self.y.size
        return y[:n], y[n:].reshape(len(self.S), -1)

    def value(self, k: FloatArray, y: FloatArray) -> float:
        """Return phi."""
        x, Z = self.split(y)
        svm_value = float(self.y @ x) - self.length / 2 * float(x @ (smat(k) @ x))
        return svm_value + float(np.vdot(Z, k - self.targets))

    def kernel_gradient(self, k: FloatArray, y: FloatArray) -> FloatArray:
        """Return the gradient of phi in the kernel."""
        x, Z = self.split(y)
        total: FloatArray = Z.sum(axis=0)
        return total - svec(np.outer(self.length / 2 * x, x))

    def others_gradient(self, k: FloatArray, y: FloatArray) -> FloatArray:
        """Return the gradient of phi in x and the Z_i."""
        x, _ = self.split(y)
        return np.concatenate([self.y - self.length * (smat(k) @ x), (k - self.targets).ravel()])

    def inner(self, v: FloatArray, sigma: float) -> ProximalStep:
        """Return the proximal step of the support vector machine."""
        projection = KernelProjection(smat(v), self.trace)
        weight = sigma * self.length / 2
        function = MultiplierObjective(
            (projection,), self.y, weight, by_norm=False, length=self.length, has_shares=False
        )

        def primal(x: FloatArray) -> FloatArray:
            ((here, _),) = function.nearest(x)
            H = here.near.factor
            return svec(H @ H.T)

        return ProximalStep(function.objective(), primal)

    def outer(self, v: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
        """Return the proximal step of the loss and the gradients that go with it."""
        bound = self.max_gradient
        step = bound / sigma
        if len(self.S) == 1:
            # The median of three numbers is soft thresholding.
            change = v - self.targets[0]
            p = self.targets[0] + np.sign(change) * np.maximum(np.abs(change) - step, 0.0)
            return p, np.clip(sigma * (v - p), -bound, bound)
        m = len(self.S)
        shifted = v + (m - 2 * np.arange(m + 1))[:, None] * step
        p = np.median(np.vstack([self.targets, shifted]), axis=0)
        # Where p = s_i the gradient is free: those that are share what the others leave.
        signs = np.sign(p - self.targets)
        tied = signs == 0
        rest = sigma * (v - p) - bound * signs.sum(axis=0)
        shares = np.clip(rest / np.maximum(tied.sum(axis=0), 1), -bound, bound)
        return p, np.where(tied, shares, bound * signs).ravel()
