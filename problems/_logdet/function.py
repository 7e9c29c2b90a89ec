"""The dual of LogDet kernel learning with pairs: value, gradient, curvature, and exact row steps.

    f(x) = sum_c s_c x_c - log det M,    M = I + R A R',    A = sum_c s_c x_c z_c z_c' / t_c

is minimised over x >= 0, the multipliers being x_c / t_c (`constraints` has the notation). With K = R'WR,
W = M^-1,

    f'_c = -s_c (q_c - 1),      f''_cd = s_c s_d (z_c'K z_d)^2 / (t_c t_d).

One row alone has its minimum at the distance eta = s (1 - 1/q), but not below x_c = 0; K changes by
rank one. That is Bregman's projection with its correction.

Slack: the targets t_c may move to u_c t_c at the price weight (u - log u - 1). Then s_c x_c becomes
-weight log(1 - s_c x_c / weight), and eta = s weight / (1 + weight) (1 - s x / weight - 1/q).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np

from klopt.arrays import FloatArray, freeze
from klopt.model.cones import svec_entries, svec_weights
from klopt.model.features import Feature
from klopt.model.functions import IntArray
from klopt.model.memo import remember_last
from klopt.problems._logdet.constraints import DistanceConstraints, PairEvaluation
from klopt.problems._logdet.contradictions import Contradiction, diverging_ray, violated_cycle
from klopt.problems._logdet.proof import ray_flaw
from klopt.problems._logdet.witness import FeasibleKernel, feasible_kernel

__all__ = ["BregmanProjections", "LogDetDual", "LogDetEvaluation"]


class LogDetEvaluation(PairEvaluation):
    """f at one x with its gradient and models of its curvature, as solvers need them."""

    @cached_property
    def gradient(self) -> FloatArray:
        """The gradient of f, s (u - q) with u = 1, or what slack has made of it."""
        sign = self.constraints.sign
        u = 1 / (1 - sign * self.x / self.constraints.weight)
        return cast(FloatArray, freeze(sign * (u - self.ratios)))

    def model(self, chosen: IntArray) -> FloatArray:
        """Return the curvature for which Newton's step of each pair alone is its exact one.

        Far from its bound f has the curvature q^2 along a pair, but the exact step is that of the
        curvature q: rows and columns are scaled by (u / q)^1/2, u = 1 or what slack has made of it,
        which at the bound is 1.
        """
        return self.scaled_hessian(chosen, self._share(chosen))

    def thin_model(self, chosen: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return (a, V) with diag(a) + VV' the model, a > 0 and V of fewer columns than rows.

        None without slack, which makes a positive, and where V is not thin.
        """
        constraints = self.constraints
        r = len(constraints.R)
        if constraints.is_hard or self.Y is None or r * (r + 1) > chosen.size:
            return None
        sign = constraints.sign[chosen]
        share = self._share(chosen)

        # z_c'K z_d is the inner product of y_c and y_d, its square that of svec(y y').
        y = self.differences(chosen)
        rows, columns = svec_entries(r)
        V = (y[rows] * y[columns] * svec_weights(r)[:, None]).T
        V *= (sign * np.sqrt(share) / constraints.target[chosen])[:, None]
        slack = 1 - sign * self.x[chosen] / constraints.weight
        return 1 / (share * constraints.weight * slack**2), V

    def _share(self, chosen: IntArray) -> FloatArray:
        """Return u / q."""
        sign = self.constraints.sign[chosen]
        share: FloatArray = self.gradient[chosen] * sign / self.ratios[chosen] + 1
        return share


@attrs.frozen(eq=False, slots=False)
class LogDetDual:
    """f, minus the dual function of the problem with these constraints.

    >>> pairs = DistanceConstraints(np.eye(2), [0], [1], [1.0], [1.0])
    >>> round(LogDetDual(pairs).value(np.array([0.5])), 6)
    -0.193147
    """

    constraints: DistanceConstraints

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.constraints.size

    @property
    def feature(self) -> Feature:
        """What a backend must offer."""
        return Feature.ROWS

    @remember_last
    def near(self, x: FloatArray) -> LogDetEvaluation:
        """Return the function near x."""
        return LogDetEvaluation.at(self.constraints, x)

    def value(self, x: FloatArray) -> float:
        return self.near(x).value

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.near(x).gradient

    def rows(self, x: FloatArray) -> BregmanProjections:
        """Return x with its kernel, ready to move one row after the other."""
        return BregmanProjections(self, x)

    def feasible(self, x: FloatArray) -> FeasibleKernel | None:
        """Return a feasible W made from W(x) and its objective; None where none was found."""
        return feasible_kernel(self.near(x))

    def bound(self, x: FloatArray) -> float:
        """Return a lower bound of the minimum of f: minus the objective of a feasible W."""
        found = self.feasible(x)
        return -np.inf if found is None else -found.value

    def ray(self, x: FloatArray | None = None) -> Contradiction | None:
        """Return a direction along which f is unbounded below, and why in words.

        Without x it is a cycle of pairs that violates the triangle inequality, else one found at x.
        """
        if x is None:
            return violated_cycle(self.constraints)
        return diverging_ray(self.constraints, x)

    def ray_flaw(self, ray: FloatArray) -> str:
        """Return what is wrong with a ray; "" if f is unbounded below along it."""
        if ray.shape == self.constraints.target.shape:
            ray = ray / self.constraints.target
        return ray_flaw(self.constraints.data, ray)


class BregmanProjections:
    """Multipliers x and their kernel, which is projected onto one constraint at a time."""

    def __init__(self, dual: LogDetDual, x: FloatArray) -> None:
        from scipy.linalg.blas import dger

        constraints = dual.constraints
        self.dual = dual
        self.x = x.copy()
        self._rank_one_update = dger
        # Plain numbers: reading them from arrays would take longer than a projection.
        columns = (constraints.first, constraints.second, constraints.sign, constraints.target)
        lists: Any = (column.tolist() for column in columns)
        self._pairs: list[tuple[int, int, float, float]] = list(zip(*lists, strict=True))
        self._weight = constraints.weight
        self._step_share = 1.0
        if not constraints.is_hard:
            self._step_share = self._weight / (1 + self._weight)
        self.refresh()

    def refresh(self) -> None:
        """Compute the kernel from x afresh: rank-one changes add up their rounding."""
        self._K: Any = np.array(self.dual.near(self.x).kernel, order="F")

    def project(self, row: int, corrected: bool = True) -> float:
        """Move x[row] to the minimum of f along it and return by how much.

        Uncorrected, x[row] may only grow: the kernel is projected onto a constraint that it
        violates, and what an earlier projection did too much is never taken back.
        """
        i, j, s, t = self._pairs[row]
        K = self._K
        x = self.x[row]
        q = (K[i, i] + K[j, j] - 2 * K[i, j]) / t
        # Points that have become equal cannot be moved by a multiple of their difference.
        if q <= 0:
            return 0.0
        best = s * self._step_share * (1 - s * x / self._weight - 1 / q)
        eta = max(best, -x if corrected else 0.0)
        if eta == 0:
            return 0.0

        v = K[:, i] - K[:, j]
        change = -(s * eta / t) / (1 + s * eta * q)
        self._rank_one_update(change, v, v, a=K, overwrite_a=1)
        self.x[row] = x + eta
        return float(eta)
