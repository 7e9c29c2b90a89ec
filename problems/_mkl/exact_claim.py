"""Multiple kernel learning as a saddle program in fractions, and what proves its value.

    block-l1     min over theta >= 0 of sum 1, max over a of   y'a - loss(a) - sum_i theta_i a'K_i a/2
    1 < p < 2    the same with theta in the unit ball of the norm p / (2 - p)
    block-linf   max over a and gamma >= 0 of sum 1 of         y'a - loss(a) - sum_i a'K_i a/(2 gamma_i)
    p > 2        the same with gamma in the unit ball of the norm p / (p - 2)
    2            max over a of                                 y'a - loss(a) - sum_i a'K_i a/2

Each K_i stands for its positive part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.model.problem import Point
from klopt.problems._margin.exact_claim import MAX_POINTS, Machine, rounded
from klopt.problems._mkl.proof import MultipleKernelDual
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    Part,
    SaddleData,
    SaddleVectors,
    Vector,
    fractions,
    lower_entries,
    negativity,
)

__all__ = ["multiple_kernel_claim"]

ROOM = 1e-11
"""The share by which weights and multipliers are moved into their power cones."""


def multiple_kernel_claim(dual: MultipleKernelDual, point: Point) -> ExactClaim:
    """Return the saddle program with the vectors of a point."""
    n = dual.y.size
    if n > MAX_POINTS:
        raise NotCertified(
            f"certificates of kernel matrices of more than {MAX_POINTS} points are too long"
        )
    loss = "hinge" if dual.hinge else "tube" if dual.epsilon is not None else "squared"
    machine = Machine(dual.y, np.full(n, dual.C), loss, dual.has_plane, dual.epsilon or 0.0)
    bias = float(point.bias) if dual.has_plane else 0.0
    signed = point.alpha * dual.y if dual.hinge else point.alpha
    matrices = [K.matrix for K in dual.present]
    weights = np.asarray(point.weights)[dual.is_present]
    if dual.p > 2:
        share = Fraction(1) if math.isinf(dual.p) else 1 - 2 / Fraction(dual.p)
        return _largest(machine, matrices, signed, weights, bias, share)
    share = 2 / Fraction(dual.p) - 1
    return _mixture(machine, matrices, signed, weights, bias, share)


@dataclass(frozen=True, eq=False)
class _Ball:
    """The weights t >= 0 with sum_i t_i^(1/a) <= 1 for 0 < a <= 1; a = 1 is the simplex.

    Otherwise s_i of sum 1 at most have s_i^a >= t_i: power cones (s_i, 1, t_i), s behind t.
    """

    a: Fraction
    m: int

    @property
    def variables(self) -> int:
        return self.m if self.a == 1 else 2 * self.m

    def add(self, data: ConeData, first: int) -> int:
        """Append the rows for the variables from `first` on; return the first row."""
        m = self.m
        if self.a == 1:
            start = data.add("zero", 1, [dict.fromkeys(range(first, first + m), 1)], [1])
            data.bound(range(first, first + m), 0, None)
            return start
        start = data.add("nonnegative", 1, [dict.fromkeys(range(first + m, first + 2 * m), 1)], [1])
        data.bound(range(first, first + m), 0, None)
        weights = [self.a.numerator, self.a.denominator - self.a.numerator]
        for i in range(m):
            data.add("power", weights, [{first + m + i: -1}, {}, {first + i: -1}], [0, 1, 0])
        return start

    def point(self, t: FloatArray) -> Vector:
        """Return weights near t, and s."""
        if self.a == 1:
            found = fractions(rounded(np.maximum(t, 0.0), bits=60))
            total = sum(found, Fraction(0))
            return [value / total for value in found]
        a = float(self.a)
        s = np.maximum(t, 0.0) ** (1 / a) + ROOM / self.m
        s /= s.sum() * (1 + ROOM)
        return fractions(s**a * (1 - ROOM)) + fractions(s)

    def multipliers(self, start: int, cost: Vector) -> dict[int, Fraction]:
        """Return multipliers that bound cost't from below, for costs that are not positive."""
        if self.a == 1:
            return {start: -min(cost)}
        a = float(self.a)
        z = np.array([-float(value) for value in cost])
        # Of cost't the largest share has t_i = z_i^e, e = a / (1 - a), scaled into the ball.
        power = z ** (a / (1 - a))
        norm = float((power ** (1 / a)).sum()) ** a
        first = Fraction(float(a * (z @ power) / norm)) if norm else Fraction(0)
        given = {start: first}
        for i, value in enumerate(cost):
            row = start + 1 + self.m + 3 * i
            v = (1 - a) * (z[i] * (a / float(first)) ** a) ** (1 / (1 - a)) if z[i] > 0 else 0.0
            given |= {row: first, row + 1: Fraction(v * (1 + ROOM)), row + 2: value}
        return given


def _mixture(
    machine: Machine,
    matrices: Sequence[FloatArray],
    signed: FloatArray,
    weights: FloatArray,
    bias: float,
    share: Fraction,
) -> ExactClaim:
    """Weights that are learned, or, for the share 0, all 1."""
    m = len(matrices)
    ball = _Ball(share, m)
    start = 0
    if not share:
        left = ConeData(m)
        left.add("zero", m, [{k: 1} for k in range(m)], [1] * m)
        left.bound(range(m), 0, None)
        x = [Fraction(1)] * m
    else:
        left = ConeData(ball.variables)
        start = ball.add(left, 0)
        x = ball.point(weights)
    right = machine.side()
    entries = [(k, i, j, v) for k, K in enumerate(matrices) for i, j, v in lower_entries(K)]
    data = SaddleData(left, right, [Part(entries, positive=True)])
    phi = {(0, k): negativity(K) for k, K in enumerate(matrices)}

    y = machine.point(signed)
    cost = data.cost_of_x(y, phi)
    given = ball.multipliers(start, cost[:m]) if share else {k: -cost[k] for k in range(m)}
    below = left.multipliers(given, c=cost)

    P, c = data.program_of_y(x, phi=phi)
    reply, bias = machine.reply(P, c, bias, signed)
    given, w = machine.given(right, bias, reply, P, c)
    above = right.multipliers(given, w, P, c)
    return ExactClaim(data, SaddleVectors(ConeVectors(x, below), ConeVectors(y, above, w), phi=phi))


def _largest(
    machine: Machine,
    matrices: Sequence[FloatArray],
    signed: FloatArray,
    weights: FloatArray,
    bias: float,
    share: Fraction,
) -> ExactClaim:
    """Kernels over gamma."""
    m = len(matrices)
    ball = _Ball(share, m)
    left = ConeData(1)
    left.add("zero", 1, [{0: 1}], [1])
    left.bound(range(1), 0, None)
    x = [Fraction(1)]
    right = machine.side(ball.variables)
    first = machine.variables
    gammas = range(first, first + m)
    start = ball.add(right, first)
    parts = [
        Part([(0, i, j, v) for i, j, v in lower_entries(K)], over=gamma, positive=True)
        for K, gamma in zip(matrices, gammas, strict=True)
    ]
    data = SaddleData(left, right, parts)
    phi = {(p, 0): negativity(K) for p, K in enumerate(matrices)}

    gamma = ball.point(1 / weights)
    y = machine.point(signed) + gamma
    cost = data.cost_of_x(y, phi)
    below = left.multipliers({0: -cost[0]}, c=cost)

    theta = fractions(rounded(np.array([1 / float(value) for value in gamma[:m]])))
    n = machine.n
    rest: Vector = [Fraction(0)] * (right.n - n)
    w = [[weight * value for value in y[:n]] + rest for weight in theta]
    P, c = data.program_of_y(x, w, phi)
    given, at = machine.given(right, bias, y, P, c)
    given |= ball.multipliers(start, [c[j] for j in gammas])
    above = right.multipliers(given, at, P, c)
    return ExactClaim(data, SaddleVectors(ConeVectors(x, below), ConeVectors(y, above, at), w, phi))
