"""What coefficients and weights prove about multiple kernel learning: both bounds in closed form.

    maximise  y'a - ||r||_s^2 / 2 - loss(a)        r_i = (a'K_i a)^1/2

Lower: the value at a feasible a. Upper, weak duality: for any beta_i, with c_i = (beta_i'K_i
beta_i)^1/2 and f = sum_i K_i beta_i, Young's and Cauchy's inequalities give for the best a*

    ||r*||_s^2 / 2 >= sum_i c_i r*_i - ||c||_p^2 / 2 >= f'a* - ||c||_p^2 / 2         1/p + 1/s = 1

so the optimum is at most  ||c||_p^2 / 2 + max over a of (y - f)'a - loss(a), which is the loss of f
in the primal. With weights theta, beta_i = theta_i a.

K_i is known to be positive semidefinite only up to its floor -phi_i: what is meant is K_i + E with
0 <= E <= phi_i I. That adds phi_i |beta_i|^2 to c_i^2, and at most  sum_i phi_i |beta_i| |a*|  to
the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._margin.proof import best_stretch, hinge_bias, hinge_primal, zeros_unless_finite

__all__ = ["MultipleKernelDual", "diagonal_shifts", "dual_norm", "weights_of"]

ROUNDING = 8 * EPS
"""The relative error of a sum as it is computed here, with a factor to spare."""
MAX_FLOOR_SHARE = 1e-9
"""Up to this share of a'Ka the floor of K is not worth a factorisation."""


# The norm of the r_i


def dual_norm(r: FloatArray, s: float) -> float:
    """Return ||r||_s without overflow."""
    largest = float(r.max(initial=0.0))
    if not largest or np.isinf(s):
        return largest
    total = float(((r / largest) ** s).sum())
    return float(largest * total ** (1 / s))


def weights_of(r: FloatArray, s: float) -> FloatArray:
    """Return theta with sum_i theta_i r_i^2 = ||r||_s^2, for s < inf and r > 0.

    They are the gradients of ||r||_s^2 / 2 in r_i^2 / 2.

    >>> weights_of(np.array([1.0, 3.0]), 1.0)
    array([4.        , 1.33333333])
    """
    theta: FloatArray = (r / dual_norm(r, s)) ** (s - 2)
    return theta


def diagonal_shifts(scales: FloatArray, n: int) -> FloatArray:
    """Return delta_i, the rounding of a'K_i a for a'a = 1, n points and mean diagonals `scales`.

    K_i + delta_i I in place of K_i keeps r_i away from 0 (`klopt.problems._mkl.function`).
    """
    return 4 * n * EPS * scales


# Both bounds


@dataclass(frozen=True, eq=False)
class MultipleKernelDual:
    """The dual in signed coefficients a.

    Parameters
    ----------
    kernels, y, C
        The kernels, labels or targets, and the penalty of errors.
    hinge
        Whether the loss is the hinge, else it is the squared one.
    s
        The exponent of the norm in the dual.
    """

    kernels: tuple[Gram, ...]
    y: FloatArray
    C: float
    hinge: bool
    s: float

    @cached_property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Which kernels count: all but those that are zero, and one at least."""
        is_present = np.array([bool(K.matrix.any()) for K in self.kernels])
        is_present[0] |= not is_present.any()
        return is_present

    @property
    def present(self) -> tuple[Gram, ...]:
        """The kernels that count."""
        pairs = zip(self.kernels, self.is_present, strict=True)
        return tuple(K for K, is_present in pairs if is_present)

    def of_all(self, part: FloatArray) -> FloatArray:
        """Return an array over the kernels that count as one over all, zero elsewhere."""
        whole = np.zeros((len(self.kernels), *part.shape[1:]))
        whole[self.is_present] = part
        return whole

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length; the squared loss knows a* in a box of its own."""
        n = self.y.size
        if not self.hinge:
            box = self.max_norm / length
            return BoxPlane(np.full(n, -box), np.full(n, box))
        corner = self.y * (self.C / length)
        return BoxPlane(np.minimum(corner, 0.0), np.maximum(corner, 0.0), np.ones(n))

    @property
    def max_norm(self) -> float:
        """A bound of |a*|: by the box, or as a* = C (y - f*) and f* fits better than 0."""
        norm = np.sqrt(self.y.size) if self.hinge else np.linalg.norm(self.y)
        return self.C * float(norm)

    def bracket(self, point: Point) -> Bracket:
        """Return the bounds that alpha proves, by weights or coefficients if the point has some."""
        a, u = self._feasible(point)
        q = np.maximum(u @ a, 0.0)
        r = np.sqrt(
            [
                self._max_square(K, float(square), a)
                for K, square in zip(self.kernels, q, strict=True)
            ]
        )
        loss = 0.0 if self.hinge else float(a @ a) / (2 * self.C)
        terms = float(np.abs(self.y) @ np.abs(a)) + float(np.abs(u).max(axis=0) @ np.abs(a))
        value = float(self.y @ a) - dual_norm(r, self.s) ** 2 / 2 - loss
        lower = value - ROUNDING * terms

        theta = self._weights(point, q, a)
        charge = float(theta @ self._floors) * float(np.linalg.norm(a))
        upper, bias = self._upper(theta @ u, theta * r, charge)
        beta = point.dual.get("coefficients")
        if beta is not None and beta.shape == u.shape and np.isfinite(beta).all():
            upper, bias = min((upper, bias), self._upper_by_coefficients(beta))
        upper += ROUNDING * (terms + float(theta @ np.abs(u) @ np.abs(a)))

        if not self.hinge:
            return Bracket(lower, upper, Point({"alpha": a, "weights": theta}))
        solved = {"alpha": a * self.y, "weights": theta, "bias": bias}
        return Bracket(lower, upper, Point(solved))

    def _feasible(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """The best multiple a of the nearest feasible point, and the rows u_i = K_i a."""
        a = zeros_unless_finite(point.alpha) * (self.y if self.hinge else 1.0)
        a = self.domain().project(a)
        support = np.flatnonzero(a)
        has_few = 4 * support.size < a.size
        u = np.array(
            [a[support] @ K.matrix[support] if has_few else K.matrix @ a for K in self.kernels]
        )
        stretch = self._stretch(a, np.sqrt(np.maximum(u @ a, 0.0)))
        return stretch * a, stretch * u

    def _stretch(self, a: FloatArray, r: FloatArray) -> float:
        """The multiple of a with the best value."""
        curvature = dual_norm(r, self.s) ** 2
        if self.hinge:
            return best_stretch(self.y * a, curvature, self.C)
        curvature += float(a @ a) / self.C
        return float(self.y @ a) / curvature if curvature > 0 else 1.0

    @staticmethod
    def _max_square(K: Gram, square: float, a: FloatArray) -> float:
        """A bound of a'Ka for the kernel that is meant."""
        squared_length = float(a @ a)
        by_floor = square - K.floor * squared_length
        if -K.floor * squared_length <= MAX_FLOOR_SHARE * square:
            return by_floor
        # Near 0 the factor of K knows a'Ka better than its floor does.
        Ra = K.factor() @ a
        return min(by_floor, float(Ra @ Ra) + K.factor_error() * squared_length)

    def _weights(self, point: Point, q: FloatArray, a: FloatArray) -> FloatArray:
        """The weights that a point holds, or those that its alpha asks for; 0 for a zero kernel."""
        if np.isinf(self.s):
            return self._weights_of_simplex(point.primal.get("weights"), q)
        scales = np.array([K.scale for K in self.present])
        shifted = q[self.is_present] + diagonal_shifts(scales, a.size) * float(a @ a)
        r = np.sqrt(np.maximum(shifted, np.finfo(float).tiny))
        return self.of_all(weights_of(r, self.s))

    @staticmethod
    def _weights_of_simplex(given: FloatArray | None, q: FloatArray) -> FloatArray:
        """Given weights made nonnegative with sum 1; where there are none, those best against a."""
        if given is None or given.shape != q.shape or not np.isfinite(given).all():
            return np.asarray(np.arange(q.size) == int(np.argmax(q)), dtype=float)
        theta = np.maximum(given, 0.0)
        total = theta.sum()
        return theta / total if total > 0 else np.full(q.size, 1 / q.size)

    @property
    def _floors(self) -> FloatArray:
        """phi_i."""
        return np.array([-K.floor for K in self.kernels])

    @property
    def _p(self) -> float:
        """The exponent of the norm in the primal."""
        if np.isinf(self.s):
            return 1.0
        return np.inf if self.s == 1 else self.s / (self.s - 1)

    def _upper_by_coefficients(self, beta: FloatArray) -> tuple[float, float]:
        """The primal value of f = sum_i K_i beta_i, and its bias."""
        u = np.array([K.matrix @ b for K, b in zip(self.kernels, beta, strict=True)])
        sizes = np.linalg.norm(beta, axis=1)
        c = np.sqrt(np.maximum((u * beta).sum(axis=1), 0.0) + self._floors * sizes**2)
        rounding = ROUNDING * float(np.abs(u).sum(axis=0).max()) * self.max_norm
        upper, bias = self._upper(u.sum(axis=0), c, float(self._floors @ sizes))
        return upper + rounding, bias

    def _upper(self, f: FloatArray, c: FloatArray, charge: float) -> tuple[float, float]:
        """The primal value of the best multiple of f with norms c, and its bias.

        `charge` is what each unit of |a*| costs for the floors.
        """
        squared_norm = dual_norm(c, self._p) ** 2
        if not self.hinge:
            return self._squared_loss_upper(f, squared_norm, charge), 0.0
        bias = hinge_bias(self.y, f)
        margins = self.y * (f + bias)
        far, _ = hinge_primal(margins - charge, squared_norm, self.C)
        near, scale = hinge_primal(margins, squared_norm, self.C)
        # ||r*||_s^2 <= 1'alpha*, else a smaller multiple were better: so 1'alpha* is at most twice
        # the optimum, and |a*|^2 <= C 1'alpha*.
        max_norm = min(self.max_norm, float(np.sqrt(2 * far * self.C)))
        return min(far, near + scale * charge * max_norm), bias

    def _squared_loss_upper(self, f: FloatArray, squared_norm: float, charge: float) -> float:
        """s^2 ||c||_p^2 / 2 + C/2 |y - s f|^2 at its best s >= 0, charged for the floors."""
        curvature = squared_norm + self.C * float(f @ f)
        scale = max(self.C * float(self.y @ f) / curvature, 0.0) if curvature > 0 else 0.0
        miss = self.y - scale * f
        primal = scale**2 * squared_norm / 2 + self.C / 2 * float(miss @ miss)
        return primal + scale * charge * self.max_norm
