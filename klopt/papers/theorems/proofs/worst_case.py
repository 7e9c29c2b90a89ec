"""Sharp worst cases by performance estimation: a semidefinite program proposes, fractions prove.

The largest value of a criterion, over all functions of a class and all starting points, is a
semidefinite program in inner products and function values (Drori and Teboulle 2014; Taylor,
Hendrickx and Glineur 2017). klopt solves it; the weights of the conditions are read as short
fractions, and what is left of rate - criterion must then be a sum of squares, by exact elimination.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from klopt.checker import klopt_check
from klopt.papers.theorems.proofs.expression import (
    Expression,
    Rational,
    as_expression,
    symbols,
    total,
)
from klopt.papers.theorems.proofs.proof import NotProven, Proof, Square, Step, at_least
from klopt.worst_cases.program import Affine, Condition, PerformanceProgram
from klopt.worst_cases.proving import proven_ends

__all__ = ["gradient_descent", "proximal_point"]

TIME_LIMIT = 20.0
MAX_DENOMINATOR = 200
"""Weights are fractions with smaller denominators, or not found."""


def worst_case_step(
    says: str,
    criterion: Expression,
    rate: Rational,
    given: Sequence[Expression],
    vectors: str,
) -> Step:
    """Return the step that a criterion is at most a rate where all that is given is not negative.

    Parameters
    ----------
    says
        What is stated, in words.
    criterion, rate
        The statement criterion <= rate.
    given
        What is not negative; affine in function values and inner products.
    vectors
        The names of the vectors; all other variables are function values.
    """
    names: dict[str, None] = {}
    for part in (criterion, *given):
        names |= part.names()
    places = {name: k for k, name in enumerate(names)}
    points = [name for name in names if name in vectors.split()]
    values = [name for name in names if name not in points]

    def affine(expression: Expression) -> Affine:
        problem = {"variables": list(names), "objective": expression.written(places)}
        found = klopt_check.PolynomialProgram(problem).objective
        return _affine(found, list(names), points, values)

    conditions = tuple(
        Condition(f"given {k}", affine(-known), False) for k, known in enumerate(given)
    )
    program = PerformanceProgram(tuple(points), tuple(values), affine(criterion), conditions)
    ends = proven_ends(program, "clarabel", time.perf_counter() + TIME_LIMIT)
    if not ends.y:
        raise NotProven(f"{says}: the solver found no weights")
    weights = [weight.limit_denominator(MAX_DENOMINATOR) for weight in ends.y[: len(given)]]
    by = [
        Square(weight, 1, (known,)) for weight, known in zip(weights, given, strict=True) if weight
    ]
    used = [square.times[0] for square in by]
    rest = as_expression(rate) - criterion - total(square.weight * square.times[0] for square in by)
    by += _squares(affine(rest), points, says)
    return at_least(says, as_expression(rate) - criterion, given=used, by=by, vectors=vectors)


def _affine(
    polynomial: Any, names: Sequence[str], points: Sequence[str], values: Sequence[str]
) -> Affine:
    """A polynomial as an affine function of inner products and values."""
    gram: dict[tuple[int, int], Fraction] = {}
    factors: dict[int, Fraction] = {}
    constant = Fraction(0)
    for key, factor in polynomial.items():
        used = [name for name, power in zip(names, key, strict=True) for _ in range(power)]
        if not used:
            constant = factor
        elif len(used) == 1 and used[0] in values:
            factors[values.index(used[0])] = factor
        elif len(used) == 2 and set(used) <= set(points):
            i, j = sorted((points.index(name) for name in used), reverse=True)
            gram[i, j] = factor
        else:
            raise NotProven(f"the monomial {' '.join(used)} is no inner product and no value")
    return Affine(factors, gram, constant)


def _squares(rest: Affine, points: Sequence[str], says: str) -> list[Square]:
    """The squares of which a quadratic form is the sum, by completing one after the other."""
    if rest.constant < 0 or any(rest.values.values()):
        raise NotProven(f"{says}: the weights do not add up")
    n = len(points)
    M = [[Fraction(0)] * n for _ in range(n)]
    for (i, j), factor in rest.gram.items():
        M[i][j] = M[j][i] = factor if i == j else factor / 2
    x = symbols(" ".join(points))
    found = [Square(rest.constant)] if rest.constant else []
    for k in range(n):
        pivot = M[k][k]
        row = list(M[k])
        if pivot < 0 or (pivot == 0 and any(row)):
            raise NotProven(f"{says}: what is left is no sum of squares")
        if not pivot:
            continue
        found.append(Square(pivot, total(row[i] / pivot * x[i] for i in range(n) if row[i])))
        M = [[M[i][j] - row[i] * row[j] / pivot for j in range(n)] for i in range(n)]
    return found


def _run(N: int, proximal: bool) -> tuple[list[Expression], list[Expression], list[Expression]]:
    """The points, gradients and values of N steps of length 1 from x0; the minimiser is 0, its value too."""
    (x0,) = symbols("x0")
    g = list(symbols(" ".join(f"g{i}" for i in range(N + 1))))
    f = list(symbols(" ".join(f"f{i}" for i in range(N + 1))))
    x = [x0]
    for i in range(N):
        # A proximal step goes along the subgradient where it ends.
        x.append(x[-1] - g[i + 1 if proximal else i])
    return x, g, f


def _interpolated(
    x: Sequence[Expression], g: Sequence[Expression], f: Sequence[Expression], *, smooth: bool
) -> Mapping[tuple[int, int], Expression]:
    """f_i - f_j - <g_j, x_i - x_j> - |g_i - g_j|^2 / 2 (the last for L = 1), by pairs; -1 is the minimiser."""
    zero = as_expression(0)
    found = {}
    for i in range(-1, len(x)):
        for j in range(-1, len(x)):
            if i == j:
                continue
            xi, gi, fi = (zero, zero, zero) if i < 0 else (x[i], g[i], f[i])
            xj, gj, fj = (zero, zero, zero) if j < 0 else (x[j], g[j], f[j])
            known = fi - fj - gj * (xi - xj)
            found[i, j] = known - (gi - gj) ** 2 / 2 if smooth else known
    return found


def gradient_descent(steps: Sequence[int] = (1, 2, 3, 4)) -> Proof:
    """Return the proof of f(x_N) - f* <= L |x_0 - x*|^2 / (4N + 2)."""
    found = []
    for N in steps:
        x, g, f = _run(N, proximal=False)
        known = _interpolated(x, g, f, smooth=True)
        near = 1 - x[0] ** 2
        kept = [k for (i, j), k in known.items() if j >= 0 and (i < 0 or i == j - 1)]
        found.append(
            worst_case_step(
                f"f(x_{N}) - f* <= 1 / {4 * N + 2} where |x_0 - x*| <= 1 and L = 1",
                f[N],
                Fraction(1, 4 * N + 2),
                [near, *kept],
                " ".join(["x0", *(f"g{i}" for i in range(N + 1))]),
            )
        )
    return Proof(
        f"N = {', '.join(map(str, steps))}; every dimension and L, every distance |x_0 - x*|",
        "x* = 0 and f* = 0 by shifting, L = 1 and |x_0 - x*| <= 1 by scaling. What is given are inequalities between "
        "function values, points and gradients that hold for every convex function with a Lipschitz gradient.",
        tuple(found),
    )


def proximal_point(steps: Sequence[int] = (1, 2, 3, 4)) -> Proof:
    """Return the proof of f(x_N) - f* <= |x_0 - x*|^2 / (4 lambda N)."""
    found = []
    for N in steps:
        x, g, f = _run(N, proximal=True)
        known = _interpolated(x, g, f, smooth=False)
        near = 1 - x[0] ** 2
        kept = [k for (i, j), k in known.items() if j >= 1 and i != 0 and (i < 0 or i == j - 1)]
        found.append(
            worst_case_step(
                f"f(x_{N}) - f* <= 1 / {4 * N} where |x_0 - x*| <= 1 and lambda = 1",
                f[N],
                Fraction(1, 4 * N),
                [near, *kept],
                " ".join(["x0", *(f"g{i}" for i in range(1, N + 1))]),
            )
        )
    return Proof(
        f"N = {', '.join(map(str, steps))}; every dimension and lambda, every distance |x_0 - x*|",
        "x* = 0 and f* = 0 by shifting, lambda = 1 and |x_0 - x*| <= 1 by scaling. What is given are the "
        "inequalities of "
        "subgradients.",
        tuple(found),
    )
