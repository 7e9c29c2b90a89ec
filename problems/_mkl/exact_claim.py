"""Multiple kernel learning as a saddle program in fractions, and what proves its value.

    block-l1     min over theta >= 0 of sum 1, max over a of   y'a - loss(a) - sum_i theta_i a'K_i a/2
    block-linf   max over a and gamma >= 0 of sum 1 of         y'a - loss(a) - sum_i a'K_i a/(2 gamma_i)
    2            max over a of                                 y'a - loss(a) - sum_i a'K_i a/2

Each K_i stands for its positive part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.model.problem import Point
from klopt.problems._margin.exact_claim import MAX_POINTS, Machine, rounded, simplex_multiplier
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


def multiple_kernel_claim(dual: MultipleKernelDual, point: Point) -> ExactClaim:
    """Return the saddle program with the vectors of a point."""
    n = dual.y.size
    if n > MAX_POINTS:
        raise NotCertified(
            f"certificates of kernel matrices of more than {MAX_POINTS} points are too long"
        )
    if dual.p not in (1.0, 2.0, math.inf):
        raise NotCertified(
            "norms other than block-l1, block-linf and 2 have no certificate that travels yet"
        )
    loss = "hinge" if dual.hinge else "tube" if dual.epsilon is not None else "squared"
    machine = Machine(dual.y, np.full(n, dual.C), loss, dual.has_plane, dual.epsilon or 0.0)
    bias = float(point.bias) if dual.has_plane else 0.0
    signed = point.alpha * dual.y if dual.hinge else point.alpha
    matrices = [K.matrix for K in dual.present]
    if math.isinf(dual.p):
        return _largest(machine, matrices, signed, np.asarray(point.weights)[dual.is_present], bias)
    weights = None
    if dual.p == 1.0:
        weights = np.asarray(point.weights)[dual.is_present]
    return _mixture(machine, matrices, signed, weights, bias)


def _mixture(
    machine: Machine,
    matrices: Sequence[FloatArray],
    signed: FloatArray,
    weights: FloatArray | None,
    bias: float,
) -> ExactClaim:
    """Weights that are learned, or all 1."""
    m = len(matrices)
    left = ConeData(m)
    if weights is None:
        left.add("zero", m, [{k: 1} for k in range(m)], [1] * m)
        x = [Fraction(1)] * m
        left.bound(range(m), 0, None)
    else:
        left.add("zero", 1, [dict.fromkeys(range(m), 1)], [1])
        left.bound(range(m), 0, None)
        x = fractions(rounded(np.maximum(weights, 0.0)))
        total = sum(x, Fraction(0))
        x = [value / total for value in x]
    right = machine.side()
    entries = [(k, i, j, v) for k, K in enumerate(matrices) for i, j, v in lower_entries(K)]
    data = SaddleData(left, right, [Part(entries, positive=True)])
    phi = {(0, k): negativity(K) for k, K in enumerate(matrices)}

    y = machine.point(signed)
    cost = data.cost_of_x(y, phi)
    if weights is None:
        below = left.multipliers({k: -cost[k] for k in range(m)}, c=cost)
    else:
        below = left.multipliers({0: simplex_multiplier(cost, range(m))}, c=cost)

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
) -> ExactClaim:
    """Kernels over gamma."""
    m = len(matrices)
    left = ConeData(1)
    left.add("zero", 1, [{0: 1}], [1])
    left.bound(range(1), 0, None)
    x = [Fraction(1)]
    right = machine.side(m)
    first = machine.variables
    gammas = range(first, first + m)
    total = right.add("zero", 1, [dict.fromkeys(gammas, 1)], [1])
    right.bound(gammas, 0, None)
    parts = [
        Part([(0, i, j, v) for i, j, v in lower_entries(K)], over=gamma, positive=True)
        for K, gamma in zip(matrices, gammas, strict=True)
    ]
    data = SaddleData(left, right, parts)
    phi = {(p, 0): negativity(K) for p, K in enumerate(matrices)}

    gamma = fractions(rounded(1 / weights, bits=60))
    gamma = [value / sum(gamma) for value in gamma]
    y = machine.point(signed) + gamma
    cost = data.cost_of_x(y, phi)
    below = left.multipliers({0: -cost[0]}, c=cost)

    theta = fractions(rounded(np.array([1 / float(value) for value in gamma])))
    n = machine.n
    rest: Vector = [Fraction(0)] * (right.n - n)
    w = [[weight * value for value in y[:n]] + rest for weight in theta]
    P, c = data.program_of_y(x, w, phi)
    given, at = machine.given(right, bias, y, P, c)
    given[total] = simplex_multiplier(c, gammas)
    above = right.multipliers(given, at, P, c)
    return ExactClaim(data, SaddleVectors(ConeVectors(x, below), ConeVectors(y, above, at), w, phi))
