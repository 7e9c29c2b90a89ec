"""What a and the weights of the kernels prove about multiple kernel learning: both bounds in closed form.

Lower, in the sense of the problem, which maximises: its value at a feasible a. Upper: for any
beta_i, with c_i = (beta_i'K_i beta_i)^1/2 and f = sum_i K_i beta_i, Young's and Cauchy's
inequalities give for the best a*

    ||r*||_s^2 / 2 >= sum_i c_i r*_i - ||c||_p^2 / 2 >= f'a* - ||c||_p^2 / 2

so the optimum is at most  ||c||_p^2 / 2 + max over a of (y - f)'a - loss, which is the loss of f in
the primal.

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
from klopt.problems._margin.proof import best_shift, best_stretch, finite, hinge_primal
from klopt.problems._mkl.function import dual_norm, rounding, weights_of

__all__ = ["Machine"]


@dataclass(frozen=True, eq=False)
class Machine:
    """The data of the problem; s is the exponent of the norm in the dual."""

    kernels: tuple[Gram, ...]
    y: FloatArray
    C: float
    hinge: bool
    s: float

    @cached_property
    def there(self) -> npt.NDArray[np.bool_]:
        """Which kernels count: all but those that are zero, and one at least."""
        there = np.array([bool(K.matrix.any()) for K in self.kernels])
        there[0] |= not there.any()
        return there

    @property
    def present(self) -> tuple[Gram, ...]:
        """The kernels that count."""
        return tuple(K for K, there in zip(self.kernels, self.there, strict=True) if there)

    def of_all(self, part: FloatArray) -> FloatArray:
        """Return an array over the kernels that count as one over all, zero elsewhere."""
        whole = np.zeros((len(self.kernels), *part.shape[1:]))
        whole[self.there] = part
        return whole

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length; the squared loss knows a* in a box of its own."""
        n, box = self.y.size, self.reach / length
        if not self.hinge:
            return BoxPlane(np.full(n, -box), np.full(n, box))
        corner = self.y * (self.C / length)
        return BoxPlane(np.minimum(corner, 0.0), np.maximum(corner, 0.0), np.ones(n))

    @property
    def reach(self) -> float:
        """A bound of |a*|. Squared loss: a* = C (y - f*), and f* fits better than 0."""
        return self.C * float(np.sqrt(self.y.size) if self.hinge else np.linalg.norm(self.y))

    def bracket(self, point: Point) -> Bracket:
        """Return the bounds that alpha, and weights or coefficients where the point has them, prove."""
        a = finite(point.alpha) * (self.y if self.hinge else 1.0)
        a = self.domain().repair(a)
        support = np.flatnonzero(a)
        few = 4 * support.size < a.size
        u = np.array(
            [a[support] @ K.matrix[support] if few else K.matrix @ a for K in self.kernels]
        )
        stretch = self._stretch(a, np.sqrt(np.maximum(u @ a, 0.0)))
        a, u = stretch * a, stretch * u
        q = np.maximum(u @ a, 0.0)
        r = np.sqrt(
            [self._most(K, float(square), a) for K, square in zip(self.kernels, q, strict=True)]
        )
        total, loss = float(self.y @ a), 0.0 if self.hinge else float(a @ a) / (2 * self.C)
        terms = float(np.abs(self.y) @ np.abs(a)) + float(np.abs(u).max(axis=0) @ np.abs(a))
        lower = total - dual_norm(r, self.s) ** 2 / 2 - loss - 8 * EPS * terms
        theta = self._weights(point, q, a)
        upper, bias = self._upper(
            theta @ u, theta * r, float(theta @ self._floors) * float(np.linalg.norm(a))
        )
        beta = point.dual.get("coefficients")
        if beta is not None and beta.shape == u.shape and np.isfinite(beta).all():
            upper, bias = min((upper, bias), self._by_coefficients(beta))
        upper += 8 * EPS * (terms + float(theta @ np.abs(u) @ np.abs(a)))
        alpha = a * self.y if self.hinge else a
        extra = {"bias": bias} if self.hinge else {}
        return Bracket(lower, upper, Point({"alpha": alpha, "weights": theta, **extra}))

    @property
    def _floors(self) -> FloatArray:
        return np.array([-K.floor for K in self.kernels])

    @property
    def _p(self) -> float:
        return 1.0 if np.isinf(self.s) else np.inf if self.s == 1 else self.s / (self.s - 1)

    def _stretch(self, a: FloatArray, r: FloatArray) -> float:
        """The multiple of a with the best value."""
        curve = dual_norm(r, self.s) ** 2
        if self.hinge:
            return best_stretch(self.y * a, curve, self.C)
        curve += float(a @ a) / self.C
        return float(self.y @ a) / curve if curve > 0 else 1.0

    @staticmethod
    def _most(K: Gram, square: float, a: FloatArray) -> float:
        """A bound of a'Ka for the kernel that is meant: near 0 its factor knows it better than its floor does."""
        length = float(a @ a)
        plain = square - K.floor * length
        if -K.floor * length <= 1e-9 * square:
            return plain
        Ra = K.factor() @ a
        return min(plain, float(Ra @ Ra) + K.factor_error() * length)

    def _weights(self, point: Point, q: FloatArray, a: FloatArray) -> FloatArray:
        """The weights that a point holds, or those that its alpha asks for; none for a kernel that is zero."""
        if np.isinf(self.s):
            given = point.primal.get("weights")
            if given is None or given.shape != q.shape or not np.isfinite(given).all():
                return np.asarray(np.arange(q.size) == int(np.argmax(q)), dtype=float)
            theta = np.maximum(given, 0.0)
            return theta / theta.sum() if theta.sum() > 0 else np.full(q.size, 1 / q.size)
        scales = np.array([K.scale for K in self.present])
        rounded = q[self.there] + rounding(scales, a.size) * float(a @ a)
        return self.of_all(weights_of(np.sqrt(np.maximum(rounded, np.finfo(float).tiny)), self.s))

    def _by_coefficients(self, beta: FloatArray) -> tuple[float, float]:
        u = np.array([K.matrix @ b for K, b in zip(self.kernels, beta, strict=True)])
        sizes = np.linalg.norm(beta, axis=1)
        c = np.sqrt(np.maximum((u * beta).sum(axis=1), 0.0) + self._floors * sizes**2)
        rounding = 8 * EPS * float(np.abs(u).sum(axis=0).max()) * self.reach
        upper, bias = self._upper(u.sum(axis=0), c, float(self._floors @ sizes))
        return upper + rounding, bias

    def _upper(self, f: FloatArray, c: FloatArray, slack: float) -> tuple[float, float]:
        """The primal value of the best multiple of f with norms c, and its bias; `slack` is what |a*| costs."""
        curve = dual_norm(c, self._p) ** 2
        if not self.hinge:
            bend = curve + self.C * float(f @ f)
            scale = max(self.C * float(self.y @ f) / bend, 0.0) if bend > 0 else 0.0
            miss = self.y - scale * f
            return scale**2 * curve / 2 + self.C / 2 * float(
                miss @ miss
            ) + scale * slack * self.reach, 0.0
        bias = best_shift(self.y - f, int(np.count_nonzero(self.y > 0)))
        margins = self.y * (f + bias)
        rough, _ = hinge_primal(margins - slack, curve, self.C)
        near, scale = hinge_primal(margins, curve, self.C)
        # As ||r*||_s^2 <= 1'alpha*, else a smaller multiple were better, 1'alpha* is at most twice
        # the optimum.
        reach = min(self.reach, float(np.sqrt(2 * rough * self.C)))
        return min(rough, near + scale * slack * reach), bias
