"""A norm of several quadratic forms as one smooth function, with its weights, gradient and Hessian.

    f(a) = ||r||_s^2 / 2 + ridge a'a / 2 - y'a,      r_i = (a'K_i a)^1/2,      1 <= s < inf

is convex. With u_i = K_i a and the weights theta_i = ||r||^(2-s) r_i^(s-2) its derivatives are

    gradient = g + ridge a - y,     g = sum_i theta_i u_i
    Hessian  = sum_i theta_i K_i + ridge I
               + (2 - s) (g g' / ||r||^2 - sum_i theta_i u_i u_i' / r_i^2)

so K = sum_i theta_i K_i is the kernel with which one support vector machine finds the same a. For s
< 2 there is a kink where r_i = 0: a rank-deficient K_i may have its optimum there. K_i + delta_i I
instead of K_i rounds it off and tells which of the many gradients at the kink is the right one.
delta_i is as large as the rounding of a'K_i a, no larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.functions import LocalModel, SmoothFunction, StartModel
from klopt.problems._mkl.proof import diagonal_shifts, dual_norm, weights_of

__all__ = ["KernelNorm", "WeightGame"]

CACHE_SIZE = 16_384
"""Numbers that stay in the cache of a core together with as many others."""


@dataclass(frozen=True, eq=False)
class KernelNorm:
    """The function f, in units in which a kernel of scale 1 has entries of size `unit`.

    Parameters
    ----------
    kernels, scales
        The matrices K_i and the means of their diagonals.
    y, s, ridge
        As above; the ridge is one number, or one for each entry of a.
    unit
        What each kernel is multiplied by.
    """

    kernels: tuple[FloatArray, ...]
    scales: FloatArray
    y: FloatArray
    s: float
    unit: float
    ridge: float | FloatArray

    @property
    def has_ridge(self) -> bool:
        """Whether there is a ridge."""
        return bool(np.any(self.ridge))

    def ridge_term(self, a: FloatArray) -> float:
        """Return ridge a'a / 2."""
        return float((self.ridge * a) @ a) / 2

    @property
    def delta(self) -> FloatArray:
        """What is added to the diagonal of each kernel."""
        return self.unit * diagonal_shifts(self.scales, self.y.size)

    def products(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows u_i = K_i a and the numbers r_i^2, none of them zero."""
        support = np.flatnonzero(a)
        has_few = 4 * support.size < a.size  # then points with a = 0 cost nothing
        u = np.array([a[support] @ K[support] if has_few else K @ a for K in self.kernels])
        u *= self.unit
        u += np.outer(self.delta, a)
        return u, np.maximum(u @ a, np.finfo(float).tiny)

    def mixed(
        self, theta: FloatArray, left: FloatArray | None = None, right: FloatArray | None = None
    ) -> FloatArray:
        """Return sum_i theta_i K_i + ridge I, plus left'right where given, as a new array.

        Rows are made a few at a time, so that they are still in the cache when the next kernel
        comes.
        """
        from scipy.linalg.blas import daxpy

        n = self.y.size
        weights = self.unit * theta
        K = np.empty((n, n))
        flat = K.ravel()
        others = [other.ravel() for other in self.kernels]
        step = max(1, CACHE_SIZE // n)
        for start in range(0, n, step):
            entries = slice(start * n, min(start + step, n) * n)
            if left is None or right is None:
                flat[entries] = 0.0
            else:
                np.matmul(left[:, start : start + step].T, right, out=K[start : start + step])
            for weight, other in zip(weights, others, strict=True):
                daxpy(other[entries], flat[entries], a=weight)  # in place: the block is contiguous
        K.flat[:: n + 1] += self.ridge + float(theta @ self.delta)
        return K

    def mixed_rows(self, theta: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Return some rows of sum_i theta_i K_i + ridge I."""
        weights = self.unit * theta
        part: FloatArray = weights[0] * self.kernels[0][rows]
        for weight, K in zip(weights[1:], self.kernels[1:], strict=True):
            if weight:
                part += weight * K[rows]
        ridge = self.ridge[rows] if isinstance(self.ridge, np.ndarray) else self.ridge
        part[np.arange(rows.size), rows] += ridge + float(theta @ self.delta)
        return part

    def near(self, a: FloatArray) -> LocalModel:
        """Return the function near a."""
        u, q = self.products(a)
        r = np.sqrt(q)
        length = dual_norm(r, self.s)
        theta = weights_of(r, self.s)

        def curvature() -> FloatArray:
            if self.s == 2 or theta.size == 1:
                # ||r||_2^2 and one kernel alone are quadratic forms.
                return self.mixed(theta)
            M = np.outer(theta, theta) / length**2
            M.flat[:: theta.size + 1] -= theta / q
            return self.mixed(theta, u, (2 - self.s) * M @ u)

        value = length**2 / 2 + self.ridge_term(a) - float(self.y @ a)
        gradient = theta @ u + self.ridge * a - self.y
        # Without a box the tangent has no minimum; the ridge bounds the fall by a parabola instead.
        lower = -np.inf
        if self.has_ridge:
            lower = value - float((gradient / self.ridge) @ gradient) / 2
        return LocalModel(value, gradient, curvature, lower)

    def start_model(self) -> StartModel:
        """Return the quadratic with the weights that the scales of the kernels suggest."""
        return StartModel(self.mixed(weights_of(np.sqrt(self.scales), self.s)), -self.y)

    def objective(self) -> SmoothFunction:
        """Return the function with that start."""
        return SmoothFunction(self.y.size, self.near, self.start_model)


@dataclass(frozen=True, eq=False)
class WeightGame:
    """What the largest of the quadratic forms (s = inf) has instead: a game between theta and a.

    phi(theta, a) = y'a - sum_i theta_i r_i^2 / 2 - ridge a'a / 2
    """

    norm: KernelNorm

    def value(self, theta: FloatArray, a: FloatArray) -> float:
        """Return phi."""
        _, q = self.norm.products(a)
        return float(self.norm.y @ a - theta @ q / 2) - self.norm.ridge_term(a)

    def gradient_weights(self, theta: FloatArray, a: FloatArray) -> FloatArray:
        """Return the gradient in theta."""
        _, q = self.norm.products(a)
        return -q / 2

    def gradient_a(self, theta: FloatArray, a: FloatArray) -> FloatArray:
        """Return the gradient in a."""
        u, _ = self.norm.products(a)
        return self.norm.y - theta @ u - self.norm.ridge * a
