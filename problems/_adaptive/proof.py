"""What coefficients prove about learning a data-adaptive kernel: both bounds in closed form, F eliminated.

    maximise over a   gain(a) - g(a)        g as in `klopt.problems._adaptive.function`, convex

    SVM   gain = y'a                          0 <= y_i a_i <= C       1'a = 0 where there is a bias
    SVR   gain = y'a - epsilon ||a||_1       -C <= a_i <= C

Lower: the value at a feasible a. For any psd N,  g(a) <= eta ||M + N||^2 - eta n^2  (M as there),
and with X = M + N - 11' the right hand side is  eta ||X||^2 + 2 eta 1'X1,  which no eta n^2 has
been subtracted from. Here N = -(I - P)M(I - P), P the projection on the eigenvectors V of M above
zero: no others have to be known. A Cholesky factorisation proves N psd up to a small multiple of I,
which is added to it.

Upper: the value is least over F at the best F, for every a; so for any psd F the optimum is at most
the optimum of the plain machine with the kernel F o K plus penalty(F), and that at most the primal
value of a classifier (F o K)a + b. With the a of that machine instead of the given one it is off by
the square of the error of F only. The better counts.

K is known to be positive semidefinite only up to its floor -phi: what is meant is K + E with 0 <= E
<= phi I. That adds at most  phi sum_i F_ii a_i^2 / 2 + phi^2 (a'a)^2 / (16 eta)  to g, and phi max
F_ii in place of phi to the upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram, proven_floor
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Bracket, Point
from klopt.model.sets import BoxPlane
from klopt.problems._adaptive.features import AdaptingFeatures
from klopt.problems._adaptive.function import Adapted, Adapting
from klopt.problems._margin.proof import best_shift, finite, hinge_primal

__all__ = ["Machine"]


@dataclass(frozen=True, eq=False)
class Machine:
    """The checked data; `epsilon` is None for classification."""

    K: Gram | LowRank
    y: FloatArray
    C: float
    eta: float
    tau: float
    bias: bool
    epsilon: float | None = None

    @cached_property
    def function(self) -> Adapting | AdaptingFeatures:
        """g."""
        if isinstance(self.K, LowRank):
            return AdaptingFeatures(self.K.Phi, 1.0, self.eta, self.tau)
        return Adapting(self.K.matrix, self.eta, self.tau)

    @cached_property
    def scale(self) -> float:
        """The mean of the diagonal of K, 1.0 for a zero matrix."""
        if isinstance(self.K, LowRank):
            return float(np.vdot(self.K.Phi, self.K.Phi)) / self.K.size
        return self.K.scale

    @property
    def floor(self) -> float:
        """A proven lower bound of the eigenvalues of K: 0 where it is a product."""
        return 0.0 if isinstance(self.K, LowRank) else self.K.floor

    @cached_property
    def targets(self) -> FloatArray:
        """y less the middle of its range where a bias takes that up, so that sums keep their digits."""
        return self.y - self.middle

    @property
    def middle(self) -> float:
        """What is taken off the targets."""
        return (
            float(self.y.min() / 2 + self.y.max() / 2)
            if self.epsilon is not None and self.bias
            else 0.0
        )

    @cached_property
    def _home(self) -> BoxPlane:
        return self._scaled(1.0)

    def domain(self, length: float = 1.0) -> BoxPlane:
        """Return the set of a / length."""
        return self._home if length == 1.0 else self._scaled(length)

    def _scaled(self, length: float) -> BoxPlane:
        n, box = self.y.size, self.C / length
        low, high = np.full(n, -box), np.full(n, box)
        if self.epsilon is None:
            low, high = np.minimum(self.y * box, 0.0), np.maximum(self.y * box, 0.0)
        return BoxPlane(low, high, np.ones(n) if self.bias else None)

    def coefficients(self, point: Point) -> FloatArray:
        """Return the a of a point."""
        return self.y * point.alpha if self.epsilon is None else point.beta

    def bracket(self, a: FloatArray, machine: FloatArray | None = None) -> Bracket:
        """Return the bounds that coefficients a prove, the upper one by the plain machine's, where they are given."""
        a = self._repaired(a)
        if not self.bias:
            a[np.abs(a) <= EPS * self.C] = 0.0
        g = self.function
        here = g.at(a)
        length, phi = float(a @ a), -self.floor
        gain = float(self.targets @ a) - (self.epsilon or 0.0) * float(np.abs(a).sum())
        terms = self._terms(a, here.product)
        above, rounding = self._above(a, here)
        slack = phi / 2 * float(here.diagonal @ (a * a)) + (phi * length) ** 2 / (16 * self.eta)
        lower = gain - above - slack - 8 * EPS * terms - rounding
        reach, proof = phi * float(here.diagonal.max()), {}
        upper, bias, loss = self._upper(a, here.product, reach)
        if (
            machine is not None
            and machine.shape == a.shape
            and np.isfinite(machine).all()
            and isinstance(g, Adapting)
        ):
            b = self._repaired(machine)
            f = g.applied(a, here, b)
            sharper = self._upper(b, f, reach)
            if sharper[0] < upper:
                (upper, bias, loss), proof, terms = (
                    sharper,
                    {"machine": b},
                    max(terms, self._terms(b, f)),
                )
        upper += here.penalty + 8 * EPS * terms + rounding
        names = ("alpha", self.y * a) if self.epsilon is None else ("beta", a)
        primal = {names[0]: names[1], **({"bias": bias + self.middle} if self.bias else {})}
        return Bracket(lower, upper, Point(primal, {"slack": loss, **proof}))

    def _terms(self, a: FloatArray, f: FloatArray) -> float:
        """The size of what is added up in a value at a, where the machine has values f."""
        return float(np.abs(a) @ (np.abs(self.targets) + (self.epsilon or 0.0) + np.abs(f)))

    def _repaired(self, given: FloatArray) -> FloatArray:
        """The nearest feasible point without the dust of the projection, which would pass for support vectors."""
        domain, given = self._home, finite(given)
        a = domain.repair(given)
        dust = (a != 0) & (np.abs(a) <= 4 * EPS * float(np.abs(a).max(initial=0.0)))
        a[dust] = 0.0
        if domain.normal is not None and (dust.any() or not np.array_equal(a, given)):
            roomiest = int(np.argmax(np.minimum(a - domain.lower, domain.upper - a)))
            moved = a[roomiest] - float(a.sum())
            a[roomiest] = np.clip(moved, domain.lower[roomiest], domain.upper[roomiest])
        return a

    def _above(self, a: FloatArray, here: Adapted) -> tuple[float, float]:
        """A bound of g(a) from above, and the rounding in it and in the penalty of F."""
        if here.reduced is None or here.V is None:
            return here.value, 16 * EPS * here.penalty
        reduced, V, half = here.reduced, here.V, self.tau / 2
        gamma, j = reduced.gamma, reduced.j
        p, B = j - V @ (V.T @ j), gamma @ V
        Z = B - V @ (V.T @ B / 2 + np.diag(np.full(V.shape[1], half / 2)))
        X = V @ Z.T
        X += X.T.copy()
        X -= np.multiply.outer(p, p)
        X.flat[:: len(X) + 1] += self._shortfall(X - gamma, half)
        above = self.eta * (float(np.vdot(X, X)) + 2 * float(j @ (X @ j)))
        terms = float(np.vdot(X, X)) + 2 * float(j @ (np.abs(X) @ j)) + 2 * self.tau * float(a.size)
        return above, 8 * EPS * self.eta * terms

    def _upper(self, a: FloatArray, f: FloatArray, phi: float) -> tuple[float, float, FloatArray]:
        """The primal value of the best multiple of the classifier f = (F o K)a, its bias, its losses."""
        length, curve = float(a @ a), float(a @ f)
        bias, loss = self.residuals(f)
        if self.epsilon is not None:
            reach = self.C + np.abs(a)
            near = (
                curve / 2
                + self.C * float(np.maximum(loss, 0.0).sum())
                + phi / 2 * float(reach @ reach)
            )
            far = (curve + phi * length) / 2
            far += self.C * float(np.maximum(loss + phi * np.sqrt(length), 0.0).sum())
            return min(near, far), bias, np.maximum(loss, 0.0)
        margins = self.y * (f + bias)
        near, scale = hinge_primal(margins, curve, self.C)
        if not phi:
            return near, bias, np.maximum(loss, 0.0)
        far, _ = hinge_primal(margins - phi * np.sqrt(length), curve + phi * length, self.C)
        reach = np.maximum(scale * np.abs(a), np.abs(self.C - scale * np.abs(a)))
        return min(far, near + phi / 2 * float(reach @ reach)), bias, np.maximum(loss, 0.0)

    @staticmethod
    def _shortfall(N: FloatArray, half: float) -> float:
        """What must be added to the eigenvalues of N + half I, N overwritten, to prove them nonnegative."""
        N.flat[:: len(N) + 1] += half
        floor = proven_floor(N)
        floor = proven_floor(N, len(N) * EPS * half) if floor is None else floor
        return max(
            -float(np.linalg.eigvalsh(N)[0]) + len(N) * EPS * half if floor is None else -floor, 0.0
        )

    def residuals(self, f: FloatArray) -> tuple[float, FloatArray]:
        """Return the best bias for values f, and what each point loses under it, negative inside margin or tube."""
        if self.epsilon is None:
            positive = int(np.count_nonzero(self.y > 0))
            bias = best_shift(self.y - f, positive) if self.bias else 0.0
            return bias, 1 - self.y * (f + bias)
        left = self.targets - f
        ends = np.concatenate([left - self.epsilon, left + self.epsilon])
        bias = best_shift(ends, f.size) if self.bias else 0.0
        return bias, np.abs(left - bias) - self.epsilon
