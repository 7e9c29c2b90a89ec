"""Spectral kernels of least squares in fractions, and what proves their optimum.

Kernels that commute with the Laplacian are a cone program, s_i (lam_i + 1/C) >= 1, in the numbers A
and B of the directions. For all kernels it is a saddle program in K and in the coefficients B of
least squares, tr Y'B - tr B'(K_JJ + I/C)B / 2, whose maximum over B is tr Y'(K_JJ + I/C)^-1 Y / 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix
from klopt.errors import NotCertified
from klopt.model.problem import Point
from klopt.problems._margin.exact_claim import MAX_POINTS, Machine, rounded
from klopt.problems._spectral.witness import FreeLeastSquares, SpectralLeastSquares
from klopt.witness.exact_claims import (
    ConeData,
    ConeVectors,
    ExactClaim,
    Part,
    SaddleData,
    SaddleVectors,
    fractions,
    root_between,
)

__all__ = ["commuting_claim", "free_claim"]

ROOM = 1e-10
"""What a kernel gets on the diagonal, as a share of its size, to have a factor."""


def commuting_claim(data: SpectralLeastSquares, point: Point) -> ExactClaim:
    """Return the cone program of the spectrum: variables lam, then s."""
    n = data.A.size
    A, B = fractions(data.A), fractions(data.B)
    C, mu = Fraction(data.C), Fraction(data.mu)
    program = ConeData(2 * n)
    program.bound(range(n), 0, None)
    for i in range(n):
        program.c[i], program.c[n + i] = mu * B[i], A[i] / 2
        program.add("power", [1, 1], [{n + i: -1}, {i: -1}, {}], [0, 1 / C, 1])
    lam = [max(value, Fraction(0)) for value in fractions(point.spectrum)]
    x = lam + [_short(1 / (value + 1 / C)) for value in lam]
    given: dict[int, Fraction] = {}
    for i in range(n):
        # 4 u v >= z^2 with u = A/2 and v <= mu B.
        u = A[i] / 2
        v = min(mu * B[i], u * C * C)
        first = n + 3 * i
        given |= {first: u, first + 1: v, first + 2: -root_between(4 * u * v, up=False)}
    y = program.multipliers(given)
    rest = Fraction(0)
    if not data.complete:
        rest = max(int(np.count_nonzero(data.Y)) - sum(A, Fraction(0)), Fraction(0))
    return ExactClaim(program, ConeVectors(x, y), shift=C * rest / 2)


def _short(value: Fraction) -> Fraction:
    """A number of 100 bits above."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - 100)
    steps = value / unit
    return -(-steps.numerator // steps.denominator) * unit


def free_claim(
    data: FreeLeastSquares, laplacian: SparseMatrix, ridge: float, point: Point
) -> ExactClaim:
    """Return the saddle program of any kernel.

    Parameters
    ----------
    data
        The points that are fitted, their targets and the penalties.
    laplacian, ridge
        The Laplacian and what is added to it.
    point
        It has `factor` and, as its dual part, A.
    """
    n = laplacian.shape[0]
    if n > MAX_POINTS:
        raise NotCertified(f"certificates of kernels of more than {MAX_POINTS} points are too long")
    places = [(i, j) for j in range(n) for i in range(j, n)]
    L = laplacian.toarray()
    mu = Fraction(data.mu)
    left = ConeData(len(places))
    for k, (i, j) in enumerate(places):
        entry = Fraction(float(L[i, j])) + (Fraction(ridge) if i == j else 0)
        left.c[k] = mu * entry * (1 if i == j else 2)
    left.add("semidefinite", n, [{k: -1} for k in range(len(places))], [0] * len(places))
    J = [int(j) for j in data.J]
    at = {point: index for index, point in enumerate(J)}
    count, classes = data.Y.shape
    machine = Machine(data.Y.T.ravel(), np.full(count * classes, data.C), "squared", plane=False)
    right = machine.side()
    one = Fraction(1)
    entries = []
    for k, (i, j) in enumerate(places):
        if i in at and j in at:
            a, b = max(at[i], at[j]), min(at[i], at[j])
            entries += [(k, t * count + a, t * count + b, one) for t in range(classes)]
    saddle = SaddleData(left, right, [Part(entries)])

    B = point.A * _length(data, point.A) * (1 - ROOM)
    y = machine.point(B.T.ravel())
    below = saddle.cost_of_x(y)

    F = point.factor
    K = F @ F.T
    size = max(float(np.abs(K).max(initial=0.0)), 1 / data.C)
    K = rounded(K + ROOM * size * np.eye(n), size, bits=48)
    x = [Fraction(float(K[i, j])) for i, j in places]
    P, c = saddle.program_of_y(x)
    inner = K[np.ix_(J, J)] + np.eye(count) / data.C
    fit = np.linalg.solve(inner, data.Y)
    given, w = machine.given(right, 0.0, fractions(fit.T.ravel()) * 2, P, c)
    above = right.multipliers(given, w, P, c)
    return ExactClaim(saddle, SaddleVectors(ConeVectors(x, below), ConeVectors(y, above, w)))


def _length(data: FreeLeastSquares, A: FloatArray) -> float:
    """The best length of A with A'(L^-1)_JJ A <= 2 mu I."""
    aligned = float(np.vdot(A, data.Y))
    square = float(np.vdot(A, A)) / data.C
    largest = float(np.linalg.eigvalsh(A.T @ data.G @ A)[-1])
    if not (aligned > 0 and largest > 0):
        return 0.0
    return min(float(np.sqrt(2 * data.mu / largest)), aligned / square)
