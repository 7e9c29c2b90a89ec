"""A data-adaptive kernel as a saddle program in fractions, and what proves its value.

x is the lower triangle of F, y the coefficients a of the machine. If a is played the best F is a
positive part, whose multiplier is the negative part; any matrix near it bounds the value, since the
objective is a sum of squares of the entries of F.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import NotCertified
from klopt.kernels.gram import Gram
from klopt.model.problem import Point
from klopt.problems._adaptive.witness import AdaptiveDual
from klopt.problems._margin.exact_claim import MAX_POINTS, Machine, rounded
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    Part,
    SaddleData,
    SaddleVectors,
    Vector,
    fractions,
)

__all__ = ["adaptive_kernel_claim"]

ROOM = 1e-10
"""What F and its multiplier get on the diagonal, as a share of their size, to have factors."""


def adaptive_kernel_claim(dual: AdaptiveDual, F: FloatArray, point: Point) -> ExactClaim:
    """Return the saddle program with the vectors of a point, whose best weights are F."""
    n = dual.y.size
    if n > MAX_POINTS:
        raise NotCertified(f"certificates of kernels of more than {MAX_POINTS} points are too long")
    eta = Fraction(dual.eta)
    places = [(i, j) for j in range(n) for i in range(j, n)]
    left = ConeData(len(places))
    left.add("semidefinite", n, [{k: -1} for k in range(len(places))], [0] * len(places))
    for k, (i, j) in enumerate(places):
        times = 1 if i == j else 2
        left.P.append((k, k, 2 * times * eta))
        left.c[k] = -2 * times * eta + (eta * Fraction(dual.tau) if i == j else 0)

    loss = "hinge" if dual.epsilon is None else "tube"
    machine = Machine(dual.y, np.full(n, dual.C), loss, dual.bias, dual.epsilon or 0.0)
    right = machine.side()
    K = _kernel(dual, places)
    part = Part([(k, i, j, K[k]) for k, (i, j) in enumerate(places) if K[k]])
    data = SaddleData(left, right, [part])

    # a is played: P w + c = multipliers.
    a = dual.coefficients(point)
    y = machine.point(a)
    cost = data.cost_of_x(y)
    floats = np.zeros((n, n))
    for k, (i, j) in enumerate(places):
        floats[i, j] = floats[j, i] = float(K[k])
    free = 1 + np.outer(a, a) * floats / (4 * dual.eta) - dual.tau / 2 * np.eye(n)
    Z = 2 * dual.eta * (F - free)
    Z = rounded(_inside(Z, 2 * dual.eta), bits=48)
    below = [Fraction(float(Z[i, j])) * (1 if i == j else 2) for i, j in places]
    w = [(value - c) / P for value, c, (_, _, P) in zip(below, cost, left.P, strict=True)]

    # F is played.
    F = rounded(_inside(F, 1.0), bits=44)
    x = [Fraction(float(F[i, j])) for i, j in places]
    P, c = data.program_of_y(x)
    bias = float(point.bias) if dual.bias else 0.0
    proposals = [a, *(np.asarray(b) for b in [point.dual.get("machine")] if b is not None)]
    reply, bias = machine.reply(P, c, bias, *proposals)
    given, at = machine.given(right, bias, reply, P, c)
    above = right.multipliers(given, at, P, c)
    return ExactClaim(
        data,
        SaddleVectors(ConeVectors(x, below, w), ConeVectors(y, above, at)),
        shift=eta * n * n,
    )


def _kernel(dual: AdaptiveDual, places: list[tuple[int, int]]) -> Vector:
    """The entries of K, exactly: stored, or products of features."""
    if isinstance(dual.K, Gram):
        return [Fraction(float(dual.K.matrix[i, j])) for i, j in places]
    rows = [fractions(row) for row in dual.K.Phi]
    return [
        sum((a * b for a, b in zip(rows[i], rows[j], strict=True)), Fraction(0)) for i, j in places
    ]


def _inside(matrix: FloatArray, size: float) -> FloatArray:
    """The positive part of a matrix, moved off the boundary."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    largest = max(float(np.abs(values).max()), size)
    lifted = np.maximum(values, 0.0) + ROOM * largest
    return np.asarray((vectors * lifted) @ vectors.T)
