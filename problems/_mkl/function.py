"""A norm of several quadratic forms as one smooth function, with its weights, gradient and Hessian.

    f(a) = ||r||_s^2 / 2 + ridge a'a / 2 - y'a,      r_i = (a'K_i a)^1/2,      1 <= s < inf

is convex. With u_i = K_i a and the weights theta_i = ||r||^(2-s) r_i^(s-2) its derivatives are

    gradient = g + ridge a - y,     g = sum_i theta_i u_i
    Hessian  = sum_i theta_i K_i + ridge I + (2 - s) (g g' / ||r||^2 - sum_i theta_i u_i u_i' / r_i^2)

so K = sum_i theta_i K_i is the kernel that one machine would have to be given to find the same a.
For s < 2 there is a kink where r_i = 0: a rank-deficient K_i may have its optimum there. K_i +
delta_i I instead of K_i rounds it off and tells which of the many gradients at the kink is the
right one. delta_i is as large as the rounding of a'K_i a, no larger.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.smooth_functions import LocalModel, SmoothFunction, StartModel

__all__ = [
    "KernelNorm",
    "Mixtures",
    "dual_exponent",
    "dual_norm",
    "kernel_list",
    "rounding",
    "weights_of",
]

CACHED = 16_384  # numbers that stay in the cache of a core together with as many others


def rounding(scales: FloatArray, n: int) -> FloatArray:
    """Return delta_i for kernels of n points with mean diagonals `scales`."""
    return 4 * n * EPS * scales


def kernel_list(value: object) -> tuple[Gram, ...]:
    """Return a list of matrices, or an array with the kernels stacked last, as checked kernels of one size."""
    given: object = value
    if isinstance(value, np.ndarray) and value.ndim == 3:
        given = [value[:, :, i] for i in range(value.shape[2])]
    if not isinstance(given, list | tuple):
        shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
        raise InvalidProblem(
            f"kernels is a {type(value).__name__}{shape}; expected a list of n x n matrices or an array (n, n, m)"
        )
    if not given:
        raise InvalidProblem("kernels is empty; give one kernel at least")
    first = Gram.of(given[0], "kernels[0]")
    return (
        first,
        *(Gram.of(K, f"kernels[{i}]", size=first.size) for i, K in enumerate(given[1:], 1)),
    )


def dual_exponent(norm: object) -> float:
    """Return s for the name or the exponent p of a norm: 1/p + 1/s = 1.

    >>> dual_exponent("block-l1"), dual_exponent("block-linf"), dual_exponent(4.0)
    (inf, 1.0, 1.3333333333333333)
    """
    named = {"block-l1": 1.0, "block-linf": np.inf}
    p = named.get(norm, norm) if isinstance(norm, str) else norm
    if isinstance(p, bool) or not isinstance(p, numbers.Real) or not float(p) >= 1:
        raise InvalidProblem(
            f"norm is {norm!r}; expected 'block-l1', 'block-linf' or an exponent of at least 1"
        )
    return np.inf if p == 1 else 1.0 if np.isinf(float(p)) else float(p) / (float(p) - 1)


def dual_norm(r: FloatArray, s: float) -> float:
    """Return ||r||_s without overflow."""
    top = float(r.max(initial=0.0))
    return top if not top or np.isinf(s) else top * float(((r / top) ** s).sum()) ** (1 / s)


def weights_of(r: FloatArray, s: float) -> FloatArray:
    """Return theta with sum_i theta_i r_i^2 = ||r||_s^2, the gradients of ||r||_s^2 / 2 in r_i^2 / 2; s < inf, r > 0.

    >>> weights_of(np.array([1.0, 3.0]), 1.0)
    array([4.        , 1.33333333])
    """
    theta: FloatArray = (r / dual_norm(r, s)) ** (s - 2)
    return theta


@dataclass(frozen=True, eq=False)
class KernelNorm:
    """The function above, in units in which a kernel of scale 1 has entries of size `unit`."""

    kernels: tuple[FloatArray, ...]
    scales: FloatArray
    y: FloatArray
    s: float
    unit: float
    ridge: float

    @property
    def delta(self) -> FloatArray:
        """What is added to the diagonal of each kernel."""
        return self.unit * rounding(self.scales, self.y.size)

    def products(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows u_i = K_i a and the numbers r_i^2, none of them zero; points with a = 0 cost nothing."""
        support = np.flatnonzero(a)
        few = 4 * support.size < a.size
        u = np.array([a[support] @ K[support] if few else K @ a for K in self.kernels])
        u *= self.unit
        u += np.outer(self.delta, a)
        return u, np.maximum(u @ a, np.finfo(float).tiny)

    def mixed(
        self, theta: FloatArray, left: FloatArray | None = None, right: FloatArray | None = None
    ) -> FloatArray:
        """Return sum_i theta_i K_i + ridge I, and left'right on top of it where given, as a new array.

        Rows are made a few at a time, so that they are still in the cache when the next kernel
        comes.
        """
        from scipy.linalg.blas import daxpy

        n, weights = self.y.size, self.unit * theta
        K, step = np.empty((n, n)), max(1, CACHED // n)
        flat, others = K.ravel(), [other.ravel() for other in self.kernels]
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
        part[np.arange(rows.size), rows] += self.ridge + float(theta @ self.delta)
        return part

    def near(self, a: FloatArray) -> LocalModel:
        """Return the function near a."""
        u, q = self.products(a)
        r = np.sqrt(q)
        length, theta = dual_norm(r, self.s), weights_of(r, self.s)

        def curvature() -> FloatArray:
            if self.s == 2 or theta.size == 1:
                return self.mixed(theta)
            M = np.outer(theta, theta) / length**2
            M.flat[:: theta.size + 1] -= theta / q
            return self.mixed(theta, u, (2 - self.s) * M @ u)

        value = length**2 / 2 + self.ridge * float(a @ a) / 2 - float(self.y @ a)
        gradient = theta @ u + self.ridge * a - self.y
        # Without a box the tangent has no least value; the ridge bounds the fall by a parabola
        # instead.
        lower = value - float(gradient @ gradient) / (2 * self.ridge) if self.ridge else -np.inf
        return LocalModel(value, gradient, curvature, lower)

    def rough(self) -> StartModel:
        """Return the quadratic with the weights that the scales of the kernels suggest."""
        return StartModel(self.mixed(weights_of(np.sqrt(self.scales), self.s)), -self.y)

    def objective(self) -> SmoothFunction:
        """Return the function with that start."""
        return SmoothFunction(self.y.size, self.near, self.rough)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """What the largest of the quadratic forms (s = inf) has instead: a game between weights theta and a.

    phi(theta, a) = y'a - sum_i theta_i r_i^2 / 2 - ridge a'a / 2
    """

    norm: KernelNorm

    def value(self, theta: FloatArray, a: FloatArray) -> float:
        """Return phi."""
        _, q = self.norm.products(a)
        return float(self.norm.y @ a - theta @ q / 2 - self.norm.ridge * float(a @ a) / 2)

    def gradient_weights(self, theta: FloatArray, a: FloatArray) -> FloatArray:
        """Return the gradient in theta."""
        return -self.norm.products(a)[1] / 2

    def gradient_a(self, theta: FloatArray, a: FloatArray) -> FloatArray:
        """Return the gradient in a."""
        return self.norm.y - theta @ self.norm.products(a)[0] - self.norm.ridge * a
