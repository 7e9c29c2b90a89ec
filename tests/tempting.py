"""Problems made to tempt a judge, the truth about each in exact arithmetic, and a judge of the judge.

A family is a generator `rng -> Case(problem, truth)`. The data are float64 numbers, read as exact
rationals; the truth about them comes from `fractions.Fraction`, a closed form or 60 digits of
mpmath, never from klopt. Where it is irrational it is an enclosure [low, high] of rationals.

`false_word(result, truth)` says what is false about a result, without any tolerance. `contenders`
names who may answer a problem: klopt's own choice, each capable backend, backends that lie
(`Lying`) and backends that write into what they are given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction as Q
from typing import ClassVar, Literal, NamedTuple

import bad_backends as bad
import mpmath
import numpy as np

import klopt
from klopt import problems
from klopt.engine.result import Result
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm, Form, SimplexForm
from klopt.model.functions import Quadratic
from klopt.model.problem import Problem
from klopt.model.sets import Simplex

DIGITS = 60
Rng = np.random.Generator
Rows = Sequence[Sequence[Q]]
Kind = Literal["optimal", "infeasible", "unbounded", "not attained", "weakly infeasible"]


@dataclass(frozen=True)
class Truth:
    """What is true of a problem: its kind and, where it has one, its optimal value (infimum).

    "weakly infeasible" has no feasible point, yet points that are feasible up to any error: no
    Farkas vector exists.
    """

    kind: Kind
    value: Q | tuple[Q, Q] | None = None

    def __post_init__(self) -> None:
        assert (self.value is not None) == (self.kind in ("optimal", "not attained"))

    def ends(self, sense: str) -> tuple[Q | float, Q | float]:
        """Return an enclosure of the optimum, which is infinite where there is none."""
        if isinstance(self.value, tuple):
            return self.value
        if self.value is not None:
            return self.value, self.value
        worst = math.inf if sense == "min" else -math.inf
        optimum = -worst if self.kind == "unbounded" else worst
        return optimum, optimum


class Case(NamedTuple):
    problem: Problem
    truth: Truth


# The judge of the judge


def false_verdict(result: Result, truth: Truth) -> str:
    """Return what is false about the verdict, "" if nothing is."""
    verdict = result.verdict.name
    solvable = truth.value is not None
    if verdict == "OPTIMAL" and not solvable:
        return f"OPTIMAL, but the problem is {truth.kind}"
    if verdict == "INFEASIBLE" and (solvable or truth.kind == "unbounded"):
        return f"INFEASIBLE, but the problem is {truth.kind}"
    by_farkas = verdict == "INFEASIBLE" and result.certificate.proof == "farkas"
    if by_farkas and truth.kind == "weakly infeasible":
        return "INFEASIBLE by a Farkas vector, which a weakly infeasible problem does not have"
    if verdict == "UNBOUNDED" and truth.kind != "unbounded":
        return f"UNBOUNDED, but the problem is {truth.kind}"
    if verdict == "FEASIBLE" and truth.kind in ("infeasible", "weakly infeasible"):
        return f"FEASIBLE, but the problem is {truth.kind}"
    if verdict == "OPTIMAL":
        ends = (float(result.lower), float(result.upper))
        if not all(map(math.isfinite, ends)):
            return f"OPTIMAL with the interval {ends}"
        lower, upper = map(Q, ends)
        if upper - lower > Q(result.settings.tol) * (1 + abs(upper)):
            return f"OPTIMAL with a gap of {float(upper - lower):.3g} above tol"
    return ""


def false_interval(result: Result, truth: Truth) -> str:
    """Return how the interval excludes the optimum, "" if it does not."""
    lower = float(result.lower)
    upper = float(result.upper)
    low, high = truth.ends(result.problem.sense)
    if math.isnan(lower) or math.isnan(upper):
        return f"an end is NaN: [{lower}, {upper}]"
    # Python compares floats with fractions exactly.
    if lower > high:
        return f"lower end {lower!r} above the optimum {float(high)!r}{_by(Q, lower, high)}"
    if upper < low:
        return f"upper end {upper!r} below the optimum {float(low)!r}{_by(Q, upper, low)}"
    return ""


def _by(convert: Callable[[float], Q], end: float, optimum: Q | float) -> str:
    if not math.isfinite(end) or not isinstance(optimum, Q):
        return ""
    return f" by {float(abs(convert(end) - optimum)):.3g}"


def excess(result: Result, truth: Truth) -> float:
    """Return by how much the interval misses the optimum, over 1 + |optimum|; 0 if it does not."""
    if not false_interval(result, truth):
        return 0.0
    low, high = truth.ends(result.problem.sense)
    lower = float(result.lower)
    upper = float(result.upper)
    # An infinite optimum, or an infinite end on the wrong side.
    if not isinstance(low, Q) or not isinstance(high, Q) or not lower < math.inf:
        return math.inf
    if not upper > -math.inf:
        return math.inf
    above = Q(lower) - high if lower > -math.inf else Q(0)
    below = low - Q(upper) if upper < math.inf else Q(0)
    return float(max(above, below) / (1 + min(abs(low), abs(high))))


def false_word(result: Result, truth: Truth) -> str:
    """Return what is false about a result, "" if nothing is."""
    found = (false_verdict(result, truth), false_interval(result, truth))
    return "; ".join(word for word in found if word)


def is_settled(result: Result, truth: Truth) -> bool:
    """Whether the result is conclusive and true: what a user hopes for."""
    return result.verdict.conclusive and not false_word(result, truth)


# Exact arithmetic


def rational(matrix: object) -> list[list[Q]]:
    return [[Q(float(v)) for v in row] for row in np.atleast_2d(np.asarray(matrix, dtype=float))]


def dot(x: Sequence[Q], y: Sequence[Q]) -> Q:
    return sum((a * b for a, b in zip(x, y, strict=True)), Q(0))


def solution(A: Rows, b: Sequence[Q]) -> list[Q] | None:
    """Return a solution of A x = b, undetermined entries 0; None where there is none."""
    columns = len(A[0]) if A else 0
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    pivots: list[int] = []
    for column in range(columns):
        k = len(pivots)
        found = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[k], rows[found] = rows[found], rows[k]
        pivot = rows[k][column]
        rows[k] = [v / pivot for v in rows[k]]
        for i, row in enumerate(rows):
            factor = row[column]
            if i != k and factor:
                rows[i] = [v - factor * p for v, p in zip(row, rows[k], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    x = [Q(0)] * columns
    for k, column in enumerate(pivots):
        x[column] = rows[k][-1]
    return x


def is_definite(M: Rows) -> bool:
    """Whether M is positive definite, by elimination without rounding."""
    B = [list(row) for row in M]
    for k in range(len(B)):
        if B[k][k] <= 0:
            return False
        for i in range(k + 1, len(B)):
            factor = B[i][k] / B[k][k]
            B[i] = [v - factor * p for v, p in zip(B[i], B[k], strict=True)]
    return True


def _vertices(A: Rows, b: Sequence[Q], E: Rows, e: Sequence[Q], n: int) -> list[list[Q]]:
    """All vertices of {x >= 0, A x <= b, E x = e}, some of them more than once."""
    unit = [[Q(int(i == j)) for j in range(n)] for i in range(n)]
    rows = [*A, *[[-v for v in row] for row in unit]]
    right = [*b, *[Q(0)] * n]
    found = []
    # A vertex is determined by E and some tight rows; at most n of them are needed.
    for size in range(max(n - len(E), 0), n + 1):
        for tight in itertools.combinations(range(len(rows)), size):
            if not E and not tight:
                continue
            x = solution([*E, *(rows[i] for i in tight)], [*e, *(right[i] for i in tight)])
            # Where the rows leave x open another choice of more rows finds the vertex.
            if x is None:
                continue
            if all(dot(row, x) <= side for row, side in zip(rows, right, strict=True)):
                found.append(x)
    return found


def exact_lp(
    c: object, A_ub: object = None, b_ub: object = None, A_eq: object = None, b_eq: object = None
) -> Truth:
    """Return the truth about min c'x over x >= 0, A_ub x <= b_ub, A_eq x = b_eq, n small.

    A set with x >= 0 has a vertex as soon as it has a point. The minimum over it is attained at one
    unless some direction d >= 0 of it, scaled to 1'd = 1, has c'd < 0.
    """
    cost = rational(c)[0]
    n = len(cost)
    A = [] if A_ub is None else rational(A_ub)
    b = [] if b_ub is None else rational(b_ub)[0]
    E = [] if A_eq is None else rational(A_eq)
    e = [] if b_eq is None else rational(b_eq)[0]
    points = _vertices(A, b, E, e, n)
    if not points:
        return Truth("infeasible")
    rays = _vertices(A, [Q(0)] * len(A), [*E, [Q(1)] * n], [*[Q(0)] * len(E), Q(1)], n)
    if any(dot(cost, ray) < 0 for ray in rays):
        return Truth("unbounded")
    return Truth("optimal", min(dot(cost, x) for x in points))


def exact_box_qp(H: Rows, c: Sequence[Q], upper: Q | None, E: Rows, e: Sequence[Q]) -> Q:
    """Return min x'Hx/2 + c'x over 0 <= x <= upper, E x = e for a positive semidefinite H.

    Of all minimisers take one with as few free entries (neither 0 nor upper) as can be: given which
    they are, stationarity determines them, else one could move on until one more is not free. So
    the minimum is the smallest value of all feasible stationary points of all 3^n patterns.
    """
    n = len(c)
    best: Q | None = None
    states = (0, 1) if upper is None else (0, 1, 2)
    for pattern in itertools.product(states, repeat=n):
        free = [i for i in range(n) if pattern[i] == 1]
        fixed = [(upper or Q(0)) if pattern[i] == 2 else Q(0) for i in range(n)]
        rows = [[*(H[i][j] for j in free), *(row[i] for row in E)] for i in free]
        rows += [[*(row[j] for j in free), *[Q(0)] * len(E)] for row in E]
        right = [-c[i] - dot(H[i], fixed) for i in free]
        right += [side - dot(row, fixed) for row, side in zip(E, e, strict=True)]
        found = solution(rows, right)
        if found is None:
            continue
        x = list(fixed)
        for place, i in enumerate(free):
            x[i] = found[place]
        if any(v < 0 or (upper is not None and v > upper) for v in x):
            continue
        if any(dot(row, x) != side for row, side in zip(E, e, strict=True)):
            continue
        value = dot(x, [dot(row, x) for row in H]) / 2 + dot(c, x)
        best = value if best is None else min(best, value)
    assert best is not None
    return best


def concave_quartic(p: Q, q: Q, r: Q, C: Q | None) -> tuple[Q, Q]:
    """Enclose the maximum of f(a) = p a - q a^2/2 - r a^4 over 0 <= a <= C; p, q, r >= 0.

    f' falls. Where it changes sign between a and a', f(a) <= maximum <= f(a) + f'(a) (a' - a).
    """

    def f(a: Q) -> Q:
        return p * a - q * a * a / 2 - r * a**4

    def slope(a: Q) -> Q:
        return p - q * a - 4 * r * a**3

    if C is not None and slope(C) >= 0:
        return f(C), f(C)
    left = Q(0)
    right = Q(1) if C is None else C
    while slope(right) > 0:
        right *= 2
    if not r:
        return f(p / q), f(p / q)
    for _ in range(240):
        middle = (left + right) / 2
        if slope(middle) >= 0:
            left = middle
        else:
            right = middle
    return f(left), f(left) + slope(left) * (right - left)


def root(x: Q) -> tuple[Q, Q]:
    """Enclose the square root of x >= 0 to about 200 bits."""
    scale = 1 << 200
    # sqrt(p/q) = sqrt(p q) / q
    whole = math.isqrt(x.numerator * x.denominator * scale * scale)
    return Q(whole, x.denominator * scale), Q(whole + 1, x.denominator * scale)


def around(value: mpmath.mpf) -> tuple[Q, Q]:
    """Enclose a number that is known to 50 of its 60 digits."""
    centre = Q(mpmath.nstr(value, DIGITS))
    radius = Q(1, 10**48) * (1 + abs(centre))
    return centre - radius, centre + radius


def many_digits(x: Q) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / mpmath.mpf(x.denominator)


# Parts of generators


def power(rng: Rng, low: int, high: int) -> float:
    """2^k with low <= k <= high."""
    return 2.0 ** int(rng.integers(low, high + 1))


def decimal(rng: Rng, low: int, high: int) -> float:
    """A random digit times 10^k, low <= k <= high: in general no dyadic number."""
    return float(f"{int(rng.integers(1, 10))}e{int(rng.integers(low, high + 1))}")


def congruence(rng: Rng, n: int, size: int) -> np.ndarray:
    """A random integer matrix of determinant 1."""
    T = np.eye(n)
    for _ in range(2 * n if size else 0):
        i, j = rng.choice(n, 2, replace=False)
        T[i] += int(rng.integers(-size, size + 1)) * T[j]
    return T


def congruent(matrices: Sequence[np.ndarray], T: np.ndarray) -> list[np.ndarray]:
    """T'MT of integer matrices, without rounding."""
    found = [T.T @ M @ T for M in matrices]
    assert all(np.abs(M).max() < 2.0**50 for M in found)
    return found


def near_pair(rng: Rng) -> tuple[list[list[float]], Q]:
    """The kernel matrix [[1, k], [k, 1]] of two points nearly the same, and their distance^2."""
    k = 1.0 - decimal(rng, -15, -3)
    return [[1.0, k], [k, 1.0]], 2 * (1 - Q(k))


def near_points(rng: Rng, n: int) -> np.ndarray:
    """The exact Gram matrix of n points (1, j 2^-26) or (1, j 2^-20), j small whole numbers."""
    j = rng.permutation(np.arange(-4, 5))[:n].astype(float)
    unit = 2.0 ** int(rng.choice([-52, -40, -30]))
    return 1.0 + np.multiply.outer(j, j) * unit


def both_labels(rng: Rng, n: int) -> np.ndarray:
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = rng.permutation([1.0, -1.0])
    return y


def penalty(rng: Rng) -> float:
    return decimal(rng, 0, 16)


# Linear programs


def decoupled_unbounded(rng: Rng) -> Case:
    """An expensive block that is solved beside a cheap one that is unbounded (T2)."""
    dear = decimal(rng, 0, 16)
    cheap = decimal(rng, -15, 0)
    side = decimal(rng, 0, 11)
    A = [[-1, -1, 0, 0], [0, 0, 1, 1]]
    # The ray (0, 0, -1, 1) has the cost -cheap.
    cost = [dear, dear, -cheap, -2 * cheap]
    return Case(problems.LP(cost, A, [0, side], bounds=(None, None)), Truth("unbounded"))


def decoupled_bounded(rng: Rng) -> Case:
    """The same, bounded: multipliers or a point without the small block look right (T2)."""
    large = decimal(rng, 6, 17)
    small = decimal(rng, -6, 0)
    side = decimal(rng, -3, 3)
    if rng.random() < 0.5:
        A = [[-1, -1, 0, 0], [0, 0, 1, 1]]
        problem = problems.LP([large, large, -small, -small], A, [0, side], bounds=(None, None))
        return Case(problem, Truth("optimal", -Q(small) * Q(side)))
    E = [[1, 1, 0, 0], [0, 0, 1, 1]]
    problem = problems.LP([0, 0, side, 2 * side], A_eq=E, b_eq=[large, small])
    return Case(problem, Truth("optimal", Q(side) * Q(small)))


def empty_rows(rng: Rng) -> Case:
    """A row of zeros whose right-hand side is small beside the others (T3)."""
    side = decimal(rng, -15, -1) * int(rng.choice([-1, 1]))
    large = decimal(rng, 3, 13)
    contradicts = Truth("infeasible")
    if rng.random() < 0.6:
        problem = problems.LP([1, 1], [[0, 0], [-1, -1]], [side, -large])
        return Case(problem, contradicts if side < 0 else Truth("optimal", Q(large)))
    side *= int(rng.integers(0, 2))
    problem = problems.LP([1, 1], A_eq=[[0, 0], [1, 1]], b_eq=[side, large])
    return Case(problem, contradicts if side else Truth("optimal", Q(large)))


def contradiction_beside(rng: Rng) -> Case:
    """x3 + x4 <= 1 and x3 + x4 >= 1 + gap beside a large block (T8)."""
    gap = decimal(rng, -12, -2) * int(rng.choice([1, 1, 1, -1]))
    large = decimal(rng, 3, 13)
    A = [[0, 0, 1, 1], [0, 0, -1, -1], [-1, -1, 0, 0]]
    b = [1.0, -1.0 - gap, -large]
    empty = Q(b[0]) + Q(b[1]) < 0
    truth = Truth("infeasible") if empty else Truth("optimal", Q(large))
    return Case(problems.LP([1, 1, 0, 0], A, b), truth)


def feasible_far_away(rng: Rng) -> Case:
    """Rows that are nearly parallel and meet far away, if at all (T9)."""
    tilt = decimal(rng, -12, -2) * int(rng.choice([1, 1, 1, -1]))
    scale = power(rng, -8, 8)
    side = decimal(rng, -3, 3)
    A = [[scale, -scale], [-(1 + tilt), 1]]
    b = [-side, 0]
    return Case(problems.LP([1, 1], A, b), exact_lp([1, 1], A, b))


def bounded_far_away(rng: Rng) -> Case:
    """A cone that is nearly a ray and ends far away, if at all (T10, T12)."""
    tilt = decimal(rng, -12, -2) * int(rng.choice([1, 1, 1, -1]))
    scale = power(rng, -8, 8)
    side = decimal(rng, -3, 3)
    A = [[scale, -scale], [-(1 - tilt), 1]]
    b = [0, side]
    return Case(problems.LP([-1, 0], A, b), exact_lp([-1, 0], A, b))


def large_pivots(rng: Rng) -> Case:
    """Equations R x_(i-1) + x_i = .. of a small whole solution, R up to 2^53 (T6)."""
    n = int(rng.integers(2, 5))
    R = power(rng, 20, 53)
    E = np.eye(n)
    for i in range(1, n):
        E[i, i - 1] = R * float(rng.choice([-1, 1]))
    # Only right-hand sides that are floats: the solution is exact.
    while True:
        x = rng.integers(0, 4, n).astype(float)
        b = E @ x
        if rational(b)[0] == [dot(row, rational(x)[0]) for row in rational(E)]:
            break
    order = rng.permutation(n)
    c = rng.integers(-2, 3, n).astype(float)
    problem = problems.LP(c, A_eq=E[order], b_eq=b[order])
    return Case(problem, Truth("optimal", dot(rational(c)[0], rational(x)[0])))


def scaled_lp(rng: Rng) -> Case:
    """A small integer LP, its rows and columns scaled by powers of two up to 2^53 (T16)."""
    n = int(rng.integers(2, 4))
    m = int(rng.integers(2, 5))
    A = rng.integers(-4, 5, (m, n)).astype(float)
    inside = rng.integers(0, 4, n)
    b = A @ inside + rng.integers(-1, 4, m)
    c = rng.integers(-3, 6, n).astype(float)
    truth = exact_lp(c, A, b)
    spread = int(rng.choice([4, 20, 53]))
    row = np.exp2(rng.integers(-spread, spread + 1, m))
    column = np.exp2(rng.integers(-spread, spread + 1, n))
    unit = power(rng, -spread, spread)
    problem = problems.LP(unit * c * column, (row * (A * column).T).T, row * b)
    if truth.value is None:
        return Case(problem, truth)
    assert isinstance(truth.value, Q)
    return Case(problem, Truth(truth.kind, Q(unit) * truth.value))


def redundant_rows(rng: Rng) -> Case:
    """Equations of which one is the sum of the others: exactly, by rounding, or off by one ulp."""
    n = 3
    E = rng.integers(1, 6, (2, n)).astype(float)
    x = rng.integers(1, 5, n).astype(float)
    # Tenths make the sum of two rows another number than the row of the sums.
    unit = float(rng.choice([1.0, 0.1, 1e-3]))
    E *= unit
    b = E @ x
    E = np.vstack([E, E[0] + E[1]])
    b = np.append(b, b[0] + b[1])
    if rng.random() < 0.5:
        b[2] = np.nextafter(b[2], rng.choice([-np.inf, np.inf]))
    c = rng.integers(-2, 4, n).astype(float)
    return Case(problems.LP(c, A_eq=E, b_eq=b), exact_lp(c, A_eq=E, b_eq=b))


def no_objective(rng: Rng) -> Case:
    """No objective, or no constraints and a tiny slope (T12)."""
    kind = int(rng.integers(0, 5))
    tiny = decimal(rng, -18, -6)
    if kind == 0:
        return Case(problems.LP([-tiny], bounds=(None, None)), Truth("unbounded"))
    if kind == 1:
        A = [[1.0, 1.0], [-1.0, -1.0]]
        b = [1.0, -1.0 + float(rng.choice([-1, 1])) * tiny]
        return Case(problems.LP([0, 0], A, b), exact_lp([0, 0], A, b))
    if kind == 2:
        # A slope along which there is no curvature.
        problem = problems.QCQP(np.diag([1.0, 0.0]), [1.0, float(rng.choice([-1, 1])) * tiny])
        return Case(problem, Truth("unbounded"))
    if kind == 3:
        slope = float(rng.integers(-4, 5))
        problem = problems.QCQP(np.diag([2.0, 0.0]), [slope, 0.0])
        return Case(problem, Truth("optimal", -(Q(slope) ** 2) / 4))
    # T12: x2 >= (1 - tilt) x1, minimise x2 - x1.
    tilt = float(rng.choice([-1, 1])) * decimal(rng, -12, -6)
    bounds = [(0, None), (None, None)]
    problem = problems.LP([-1, 1], [[1 - tilt, -1]], [0], bounds=bounds)
    falls = Q(1 - tilt) < 1
    return Case(problem, Truth("unbounded") if falls else Truth("optimal", Q(0)))


# Quadratic and semidefinite programs


def tiny_curvature(rng: Rng) -> Case:
    """x'Px/2 + q'x without constraints, P with an eigenvalue down to 2^-60 (T10)."""
    n = int(rng.integers(2, 4))
    T = congruence(rng, n, int(rng.integers(0, 2)))
    plain = np.array_equal(T, np.eye(n))
    curvature = np.exp2(rng.integers(-60 if plain else -30, 1, n))
    q = rng.integers(-3, 4, n).astype(float)
    P = T.T @ np.diag(curvature) @ T
    exact = [
        [sum((Q(T[k, i]) * Q(curvature[k]) * Q(T[k, j]) for k in range(n)), Q(0)) for j in range(n)]
        for i in range(n)
    ]
    assert rational(P) == exact
    # With z = T x: sum of curvature_k z_k^2/2 + q_k z_k.
    value = -sum((Q(a) ** 2 / (2 * Q(d)) for a, d in zip(q, curvature, strict=True)), Q(0))
    return Case(problems.QCQP(P, T.T @ q), Truth("optimal", value))


def weakly_infeasible(rng: Rng) -> Case:
    """Entry (1, 1) is 0 and (0, 1) is 1 for every x; then a unimodular congruence (T1, T4)."""
    n = int(rng.choice([2, 2, 3, 4, 6]))
    first = np.zeros((n, n))
    first[0, 0] = 1
    F = [first]
    for _ in range(min(2, n - 2)):
        a = rng.integers(-2, 3, size=(n, n))
        M = (a + a.T).astype(float)
        M[1:, 1:] = 0
        M[0, 1] = M[1, 0] = 0
        F.append(M)
    F0 = -np.eye(n)
    F0[:2, :2] = [[-float(rng.choice([0, 0, 200, 2000])), -1], [-1, 0]]
    T = congruence(rng, n, int(rng.choice([0, 1, 3])))
    if n == 2 and rng.random() < 0.5:
        T = np.array([[1.0, float(rng.choice([10, 100, 1000]))], [0.0, 1.0]])
    c = rng.integers(-1, 2, size=len(F)).astype(float)
    return Case(problems.SDP(c, congruent([F0, *F], T)), Truth("weakly infeasible"))


def duality_gap(rng: Rng) -> Case:
    """[[0, x1, 0], [x1, x2, 0], [0, 0, x1 + g]] psd forces x1 = 0; its dual proves -g (T13)."""
    g = float(rng.integers(1, 4))
    F0 = np.zeros((3, 3))
    F0[2, 2] = -g
    F1 = np.zeros((3, 3))
    F1[0, 1] = F1[1, 0] = 1
    F1[2, 2] = 1
    F2 = np.zeros((3, 3))
    F2[1, 1] = 1
    T = congruence(rng, 3, int(rng.integers(0, 4)))
    slope = power(rng, -3, 3)
    problem = problems.SDP([slope, 0], congruent([F0, F1, F2], T))
    return Case(problem, Truth("optimal", Q(0)))


def not_attained(rng: Rng) -> Case:
    """[[x1, g], [g, x2]] psd, minimise x1: the infimum 0 is approached only as x2 grows."""
    g = float(rng.integers(1, 100))
    F0 = np.array([[0.0, -g], [-g, 0.0]])
    F1 = np.diag([1.0, 0.0])
    F2 = np.diag([0.0, 1.0])
    T = congruence(rng, 2, int(rng.integers(0, 4)))
    slope = power(rng, -3, 3)
    problem = problems.SDP([slope, 0], congruent([F0, F1, F2], T))
    return Case(problem, Truth("not attained", Q(0)))


def tiny_interior(rng: Rng) -> Case:
    """Minimise x1 + 4^-k x2 over [[x1, g], [g, x2]] psd: 2 g / 2^k, at x2 = g 2^k; multipliers have room 4^-k."""
    g = float(rng.integers(1, 100))
    k = int(rng.integers(0, 60))
    F = [np.array([[0.0, -g], [-g, 0.0]]), np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    T = congruence(rng, 2, int(rng.integers(0, 4)))
    problem = problems.SDP([1.0, 4.0**-k], congruent(F, T))
    return Case(problem, Truth("optimal", 2 * Q(g) / 2**k))


def nearly_weakly_infeasible(rng: Rng) -> Case:
    """[[x, g], [g, e]] psd with e = 4^-k, 0 or -4^-k: the least x is g^2 4^k, or there is none."""
    g = float(rng.integers(1, 10))
    k = int(rng.integers(1, 30))
    sign = int(rng.integers(-1, 2))
    F0 = np.array([[0.0, -g], [-g, -sign * 4.0**-k]])
    # A congruence adds no digits to 4^-k but those of its own integers.
    T = congruence(rng, 2, int(rng.integers(0, 3))) if k < 12 else np.eye(2)
    problem = problems.SDP([1.0], congruent([F0, np.diag([1.0, 0.0])], T))
    if sign > 0:
        return Case(problem, Truth("optimal", Q(g) ** 2 * 4**k))
    return Case(problem, Truth("infeasible" if sign else "weakly infeasible"))


# Kernel machines


def soft_margin_truth(K: object, y: object, C: float) -> Truth:
    """max 1'a - a'Qa/2 over 0 <= a <= C, y'a = 0, in exact rationals."""
    kernel = rational(K)
    labels = rational(y)[0]
    n = len(labels)
    H = [[labels[i] * kernel[i][j] * labels[j] for j in range(n)] for i in range(n)]
    upper = Q(C) if math.isfinite(C) else None
    return Truth("optimal", -exact_box_qp(H, [Q(-1)] * n, upper, [labels], [Q(0)]))


def pair_value(p: Q, d: Q, C: Q | None) -> Q:
    """max p a - d a^2/2 over 0 <= a <= C."""
    a = max(p / d, Q(0))
    if C is not None:
        a = min(a, C)
    return p * a - d * a * a / 2


def soft_margin(rng: Rng) -> Case:
    """Nearly the same points with different labels, large C (T11)."""
    C = math.inf if rng.random() < 0.15 else penalty(rng)
    if rng.random() < 0.5:
        K, d = near_pair(rng)
        value = pair_value(Q(2), d, None if math.isinf(C) else Q(C))
        return Case(problems.SoftMargin(K, rng.permutation([1, -1]), C), Truth("optimal", value))
    n = int(rng.integers(3, 5))
    K = near_points(rng, n)
    y = both_labels(rng, n)
    # On a line a hard margin may not exist, and the dual is unbounded: C stays finite.
    C = penalty(rng)
    return Case(problems.SoftMargin(K, y, C), soft_margin_truth(K, y, C))


def epsilon_margin(rng: Rng) -> Case:
    """Nearly the same points with different targets: b (y1 - y2 - 2 eps) - d b^2/2, |b| <= C."""
    K, d = near_pair(rng)
    C = penalty(rng)
    y = [decimal(rng, -2, 2), -decimal(rng, -2, 2)]
    epsilon = float(rng.choice([0.0, 0.125, decimal(rng, -3, 0)]))
    gain = Q(y[0]) - Q(y[1]) - 2 * Q(epsilon)
    if rng.random() < 0.5:
        y = y[::-1]
    return Case(
        problems.EpsilonMargin(K, y, C, epsilon), Truth("optimal", pair_value(gain, d, Q(C)))
    )


def nu_margin(rng: Rng) -> Case:
    """The nu-SVM of nearly the same points: each class has the sum nu/2 at an optimum."""
    n = int(rng.choice([2, 3, 4]))
    K = np.array(near_pair(rng)[0]) if n == 2 else near_points(rng, n)
    K = K * power(rng, 0, 60)
    y = both_labels(rng, n)
    smaller = int(min((y > 0).sum(), (y < 0).sum()))
    nu = float(rng.integers(1, 9)) / 8 * 2 * smaller / n
    if Q(nu) > Q(2 * smaller, n):
        nu = float(np.nextafter(nu, 0.0))
    kernel = rational(K)
    labels = rational(y)[0]
    H = [[labels[i] * kernel[i][j] * labels[j] for j in range(n)] for i in range(n)]
    E = [[Q(int(v > 0)) for v in labels], [Q(int(v < 0)) for v in labels]]
    value = exact_box_qp(H, [Q(0)] * n, Q(1, n), E, [Q(nu) / 2] * 2)
    return Case(problems.NuMargin(K, y, nu), Truth("optimal", value))


def multiple_kernel(rng: Rng) -> Case:
    """Two kernels on two points nearly the same: r_i^2 = a^2 d_i."""
    C = penalty(rng)
    y = rng.permutation([1.0, -1.0])
    K1, d1 = near_pair(rng)
    kind = int(rng.integers(0, 4))
    if kind == 0:
        # One kernel twice, squared loss: y'(K + I/C)^-1 y / 2.
        exact = rational(K1)
        exact[0][0] += 1 / Q(C)
        exact[1][1] += 1 / Q(C)
        a = solution(exact, [Q(v) for v in y])
        assert a is not None
        problem = problems.MultipleKernel([K1, K1], y, C, loss="squared")
        return Case(problem, Truth("optimal", dot([Q(v) for v in y], a) / 2))
    K2, d2 = near_pair(rng)
    if kind == 1:
        problem = problems.MultipleKernel([K1, K2], y, C)
        return Case(problem, Truth("optimal", pair_value(Q(2), max(d1, d2), Q(C))))
    if kind == 2:
        problem = problems.MultipleKernel([K1, K2], y, C, norm=2.0)
        return Case(problem, Truth("optimal", pair_value(Q(2), d1 + d2, Q(C))))
    # (sqrt d1 + sqrt d2)^2, and the value falls as it grows.
    low, high = root(d1 * d2)
    problem = problems.MultipleKernel([K1, K2], y, C, norm="block-linf")
    ends = [pair_value(Q(2), d1 + d2 + 2 * mean, Q(C)) for mean in (high, low)]
    return Case(problem, Truth("optimal", (ends[0], ends[1])))


def adaptive_kernel(rng: Rng) -> Case:
    """F o K on two points nearly the same.

    With tau = 0 the best F is 11' + Gamma, so that sum_ij (a_i a_j K_ij)^2 / (16 eta) is taken off.
    """
    K, d = near_pair(rng)
    C = penalty(rng)
    eta = float(rng.choice([1e45, decimal(rng, 20, 40), decimal(rng, 0, 12)]))
    r = (2 + 2 * Q(K[0][1]) ** 2) / (16 * Q(eta))
    if rng.random() < 0.7:
        problem: Problem = problems.AdaptiveKernel(K, rng.permutation([1, -1]), C, eta=eta)
        return Case(problem, Truth("optimal", concave_quartic(Q(2), d, r, Q(C))))
    y = [decimal(rng, -2, 2), -decimal(rng, -2, 2)]
    gain = Q(y[0]) - Q(y[1])
    problem = problems.AdaptiveKernelRegression(K, y, C, 0.0, eta=eta)
    return Case(problem, Truth("optimal", concave_quartic(gain, d, r, Q(C))))


def similarity_kernel(rng: Rng) -> Case:
    """Squared loss, any trace, a psd S: K = S + aa'/(4 rho), which takes |a|^4/(16 rho) off."""
    S, d = near_pair(rng)
    C = decimal(rng, 0, 12)
    rho = decimal(rng, -3, 30)
    problem = problems.SimilarityKernel(S, rng.permutation([1, -1]), C, rho, None, "squared")
    # a = (s, -s): |a|^4 = 4 s^4.
    return Case(problem, Truth("optimal", concave_quartic(Q(2), d, 1 / (4 * Q(rho)), Q(C))))


# Kernels from graphs and pairs


def logdet_one_pair(rng: Rng) -> Case:
    """One pair, or two without a common point: each costs t - log t - 1, t = bound / distance."""
    count = int(rng.integers(1, 3))
    K0 = np.eye(2 * count)
    similar: list[tuple[int, int]] = []
    dissimilar: list[tuple[int, int]] = []
    upper: list[float] = []
    lower: list[float] = []
    ends = [Q(0), Q(0)]
    with mpmath.workdps(DIGITS):
        for pair in range(count):
            i = 2 * pair
            block, d = near_pair(rng)
            K0[i : i + 2, i : i + 2] = block
            closer = bool(rng.random() < 0.5)
            bound = float(d) * (1 + float(rng.choice([-1, 1])) * float(rng.random()) * 0.9)
            (similar if closer else dissimilar).append((i, i + 1))
            (upper if closer else lower).append(bound)
            t = Q(bound) / d
            # A bound that holds already costs nothing.
            if (t < 1) == closer:
                low, high = around(many_digits(t) - mpmath.log(many_digits(t)) - 1)
                ends = [ends[0] + low, ends[1] + high]
    problem = problems.LogDetPairs(
        K0, similar, dissimilar, upper=upper if upper else 1.0, lower=lower if lower else 1.0
    )
    return Case(problem, Truth("optimal", (ends[0], ends[1])))


def logdet_truth(
    K0: np.ndarray,
    similar: Sequence[tuple[int, int]],
    dissimilar: Sequence[tuple[int, int]],
    upper: float,
    lower: float,
    start: dict[tuple[int, int], float] | None = None,
) -> Truth:
    """The optimum of LogDetPairs in 60 digits: Newton's method for each set of tight pairs.

    The kernel of multipliers lam is K = (K0^-1 + sum s lam zz')^-1, z = e_i - e_j, s = 1 for
    similar pairs and -1 for others. If the tight pairs have lam >= 0 and meet their bounds and the
    others keep theirs, K is optimal. `start` names the tight pairs, with multipliers to start from.
    """
    with mpmath.workdps(DIGITS):
        n = len(K0)
        inverse = mpmath.matrix(K0.tolist()) ** -1
        pairs = [(p, 1, mpmath.mpf(upper)) for p in similar]
        pairs += [(p, -1, mpmath.mpf(lower)) for p in dissimilar]
        if start is None:
            sizes = range(len(pairs) + 1)
            sets = [tight for size in sizes for tight in itertools.combinations(pairs, size)]
        else:
            sets = [tuple(pair for pair in pairs if pair[0] in start)]
        for tight in sets:
            lam = mpmath.matrix([start[p] if start else 0 for p, _, _ in tight])
            found = _tight_kernel(inverse, tight, lam)
            if found is None:
                continue
            multipliers, K = found
            kept = all(s * (_product(K, p, p) - b) <= abs(b) * SMALL for p, s, b in pairs)
            if kept and all(v >= 0 for v in multipliers):
                M = inverse * K
                trace = sum(M[i, i] for i in range(n))
                return Truth("optimal", _wide(trace - mpmath.log(mpmath.det(M)) - n))
    raise AssertionError("no set of tight pairs is optimal")


SMALL = mpmath.mpf("1e-40")
"""What counts as zero in 60 digits, of which an inverse may have cost 16."""


def _wide(value: mpmath.mpf) -> tuple[Q, Q]:
    """Enclose a number computed with an inverse of condition up to 1e16."""
    centre = Q(mpmath.nstr(value, DIGITS))
    radius = Q(1, 10**30) * (1 + abs(centre))
    return centre - radius, centre + radius


def _product(K: mpmath.matrix, p: tuple[int, int], q: tuple[int, int]) -> mpmath.mpf:
    return K[p[0], q[0]] - K[p[0], q[1]] - K[p[1], q[0]] + K[p[1], q[1]]


def _tight_kernel(
    inverse: mpmath.matrix,
    tight: Sequence[tuple[tuple[int, int], int, mpmath.mpf]],
    lam: mpmath.matrix,
) -> tuple[list[mpmath.mpf], mpmath.matrix] | None:
    """Multipliers and kernel that meet these bounds, by damped Newton steps; None if none is found."""
    m = len(tight)
    for _ in range(200):
        A = inverse.copy()
        for ((i, j), s, _), v in zip(tight, lam, strict=True):
            for a, b, t in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                A[a, b] += s * v * t
        try:
            mpmath.cholesky(A)
            K = A**-1
        except (ValueError, ZeroDivisionError):
            return None
        if not m:
            return [], K
        g = mpmath.matrix([s * (_product(K, p, p) - b) for p, s, b in tight])
        if max(abs(g[k] / tight[k][2]) for k in range(m)) < SMALL / 1000:
            return list(lam), K
        H = mpmath.matrix(m, m)
        for a, (p, s, _) in enumerate(tight):
            for b, (q, t, _) in enumerate(tight):
                H[a, b] = s * t * _product(K, p, q) ** 2
        try:
            d = mpmath.lu_solve(H, g)
        except ZeroDivisionError:
            return None
        size = mpmath.sqrt(abs((g.T * d)[0]))
        step = 1 if size < 0.25 else 1 / (1 + size)
        lam = lam + step * d
    return None


def logdet_pairs(rng: Rng) -> Case:
    """`_logdet_pairs`, drawn again where 60 digits leave open which pairs are tight."""
    while True:
        with suppress(AssertionError):
            return _logdet_pairs(rng)


def _logdet_pairs(rng: Rng) -> Case:
    """Three points nearly the same, a similar and a dissimilar pair with a common point (T14)."""
    while True:
        x = rng.integers(-50, 51, (3, 2)) * 10.0 ** -float(rng.integers(1, 5))
        K0 = np.exp(-((x[:, None] - x) ** 2).sum(2))
        exact = rational(K0)
        distances = [exact[i][i] + exact[j][j] - 2 * exact[i][j] for i, j in ((0, 1), (1, 2))]
        if is_definite(exact) and min(distances) > 0:
            break
    upper = float(distances[0]) * float(rng.uniform(0.3, 1.2))
    lower = float(distances[1]) * float(rng.uniform(0.8, 2.0))
    problem = problems.LogDetPairs(K0, [(0, 1)], [(1, 2)], upper=upper, lower=lower)
    return Case(problem, logdet_truth(K0, [(0, 1)], [(1, 2)], upper, lower))


def supervised_laplacian(labels: Sequence[int]) -> mpmath.matrix:
    """S = I - D^-1/2 W D^-1/2, W = e within a class and 1/e between classes."""
    n = len(labels)
    W = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            W[i, j] = mpmath.e if labels[i] == labels[j] else 1 / mpmath.e
    degree = [sum(W[i, j] for j in range(n)) for i in range(n)]
    S = mpmath.eye(n)
    for i in range(n):
        for j in range(n):
            S[i, j] -= W[i, j] / mpmath.sqrt(degree[i] * degree[j])
    return S


def scg(rng: Rng) -> Case:
    """The supervised graph: the smallest mean of a prefix, or log det(I + gamma S K0)."""
    n = int(rng.integers(2, 5))
    labels = [0, 1, *(int(v) for v in rng.integers(0, 2, n - 2))]
    with mpmath.workdps(DIGITS):
        S = supervised_laplacian(labels)
        if rng.random() < 0.5:
            K0 = near_points(rng, n)
            gamma = decimal(rng, -3, 12)
            M = mpmath.eye(n) + mpmath.mpf(gamma) * S * mpmath.matrix(K0.tolist())
            truth = Truth("optimal", _wide(mpmath.log(mpmath.det(M))))
            return Case(problems.ScgLogDet(K0, labels, gamma), truth)
        V = rng.integers(-4, 5, (n, 3)) / 4.0
        sigma = float(rng.choice([1.0, 1.25, 2.0]))
        c = []
        for k in range(3):
            v = mpmath.matrix(V[:, k].tolist())
            c.append((v.T * S * v)[0])
        means = []
        for length in range(1, 4):
            w = [mpmath.mpf(sigma) ** (length - 1 - i) for i in range(length)]
            means.append(sum(a * b for a, b in zip(w, c, strict=False)) / sum(w))
        return Case(problems.ScgOrdered(V, labels, sigma), Truth("optimal", around(min(means))))


def ordered_alignment(rng: Rng) -> Case:
    """rho^2 = max (t'alpha)^2 / (alpha'F alpha ||T||^2) over the ordered cone, by its faces.

    alpha = sum_j s_j (prefix j), s >= 0. With t'alpha > 0 somewhere, minus twice the minimum of
    alpha'F alpha/2 - t'alpha is the maximum of (t'alpha)^2 / alpha'F alpha.
    """
    n = int(rng.integers(3, 6))
    r = int(rng.integers(2, 4))
    while True:
        V = rng.integers(-4, 5, (n, r)) / 4.0
        if rng.random() < 0.4:
            # Columns that are nearly the same.
            V[:, 1] = V[:, 0] + rng.integers(-1, 2, n) * power(rng, -24, -12)
        # Columns of zeros are refused, and the indicator needs t > 0.
        if (np.abs(V).max(axis=0) > 0).all():
            break
    labels = [0, 1, *(int(v) for v in rng.integers(0, 2, n - 2))]
    sigma = float(rng.choice([1.0, 1.25]))
    v = [[Q(float(V[i, k])) for i in range(n)] for k in range(r)]
    F = [[dot(a, b) ** 2 for b in v] for a in v]
    same = [[Q(int(a == b)) for b in labels] for a in labels]
    t = [dot(a, [dot(row, a) for row in same]) for a in v]
    prefixes = [[Q(sigma) ** (j - k) if k <= j else Q(0) for k in range(r)] for j in range(r)]
    H = [[dot(a, [dot(row, b) for row in F]) for b in prefixes] for a in prefixes]
    linear = [-dot(a, t) for a in prefixes]
    best = exact_box_qp(H, linear, None, [], [])
    squared = -2 * best / sum(map(sum, same), Q(0))
    low, high = root(squared)
    return Case(problems.OrderedAlignment(V, labels, sigma), Truth("optimal", (low, high)))


def spectral_rls(rng: Rng) -> Case:
    """Two points of different class on one edge: eigenvalues 0 and 2w, targets along the second.

    The computed strengths A and roughnesses B of the directions are the data of the problem:
    min over lam >= 0 of sum_i A_i / (lam_i + 1/C) / 2 + mu B_i lam_i.
    """
    w = decimal(rng, -8, 8)
    C = decimal(rng, -3, 8)
    mu = decimal(rng, -8, 3)
    ridge = decimal(rng, -3, 0)
    problem = problems.SpectralRls([[w, -w], [-w, w]], [0, 1], C, mu, ridge=ridge)
    least = most = Q(0)
    directions = problem.directions
    for A, B in zip(directions.A.tolist(), directions.B.tolist(), strict=True):
        price = 2 * Q(mu) * Q(B)
        # The derivative at lam = 0 is (-A C^2 + price) / 2.
        if price >= Q(A) * Q(C) ** 2:
            value = Q(A) * Q(C) / 2
            least, most = least + value, most + value
            continue
        # lam + 1/C = (A / price)^1/2: the value is (A price)^1/2 - price / (2C).
        low, high = root(Q(A) * price)
        less = price / (2 * Q(C))
        least, most = least + low - less, most + high - less
    return Case(problem, Truth("optimal", (least, most)))


# Simple sets and games


def simplex_program(rng: Rng) -> Case:
    """w'Hw/2 + c'w over a simplex: c makes a chosen w optimal, exactly (T19)."""
    k = int(rng.integers(2, 7))
    G = rng.integers(-3, 4, (int(rng.integers(1, k + 1)), k)).astype(float)
    H = G.T @ G
    w = np.where(rng.random(k) < 0.6, rng.integers(1, 6, k), 0).astype(float)
    w[0] += not w.any()
    slack = np.where(w > 0, 0, rng.integers(0, 4, k)) + float(rng.integers(-3, 4))
    c = slack - H @ w
    value = Q(float(w @ H @ w)) / 2 + Q(float(c @ w))
    unit = power(rng, -30, 30)
    objective = Quadratic(unit * H, unit * c)
    problem = problems.SimplexProgram.of(objective, Simplex(k, float(w.sum())))
    return Case(problem, Truth("optimal", Q(unit) * value))


def matrix_game(rng: Rng) -> Case:
    """min over p in [0, 1] of the largest of the lines p a_j + (1 - p) b_j (T19)."""
    columns = int(rng.integers(2, 5))
    M = rng.integers(-5, 6, (2, columns)).astype(float)
    M *= power(rng, -20, 20)
    if rng.random() < 0.3:
        M += decimal(rng, 0, 8)
    lines = list(zip(*rational(M), strict=True))
    corners = [Q(0), Q(1)]
    for (a, b), (c, d) in itertools.combinations(lines, 2):
        if a - b != c - d:
            p = (d - b) / (a - b - c + d)
            if 0 < p < 1:
                corners.append(p)
    value = min(max(p * a + (1 - p) * b for a, b in lines) for p in corners)
    return Case(problems.SaddlePoint.game(M), Truth("optimal", value))


FAMILIES: dict[str, Callable[[Rng], Case]] = {
    f.__name__: f
    for f in (
        decoupled_unbounded,
        decoupled_bounded,
        empty_rows,
        contradiction_beside,
        feasible_far_away,
        bounded_far_away,
        tiny_curvature,
        large_pivots,
        scaled_lp,
        redundant_rows,
        no_objective,
        weakly_infeasible,
        duality_gap,
        not_attained,
        tiny_interior,
        nearly_weakly_infeasible,
        soft_margin,
        epsilon_margin,
        nu_margin,
        multiple_kernel,
        adaptive_kernel,
        similarity_kernel,
        logdet_one_pair,
        logdet_pairs,
        scg,
        ordered_alignment,
        spectral_rls,
        simplex_program,
        matrix_game,
    )
}
"""Every family by its name."""


def instance(family: str, number: int) -> Case:
    """Return one instance of a family: the same for the same number."""
    return FAMILIES[family](np.random.default_rng([number, *family.encode()]))


# Who answers


class Says(Backend):
    """Gives the answer it was told."""

    name: ClassVar[str] = "says"
    offers = frozenset(Feature)
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})

    def __init__(self, stop: Stop, **parts: object) -> None:
        arrays = {name: np.array(part, dtype=float) for name, part in parts.items()}
        self.answer = Answer(stop, **arrays)

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        return self.answer


LIES = ("random", "zero", "noise", "scaled", "dominant", "floor", "swapped", "null")


class Lying(Backend):
    """Claims what it likes: points, multipliers, Farkas vectors and rays, with any status.

    It asks an honest backend first where there is one, since the best lies are nearly true.

        random     random vectors of random size
        zero       zeros
        noise      the honest vectors with relative noise in every entry
        scaled     the honest vectors times powers of two
        dominant   the honest vectors without their small entries, or none: a block is forgotten
        floor      the honest vectors with noise of the size of rounding of their largest entry
        swapped    the point as a ray, the multipliers as a Farkas vector
        null       vectors that A and A' nearly annihilate
    """

    name: ClassVar[str] = "lying"
    offers = frozenset(Feature)
    honours = frozenset({"tol", "time_limit", "max_iter", "threads", "seed", "log", "start"})

    def __init__(self, lie: str, seed: int) -> None:
        assert lie in LIES
        self.lie = lie
        self.rng = np.random.default_rng([seed, LIES.index(lie)])

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        rows, columns = form.shape
        x, y = self._honest(form, settings, columns or 1, rows or 0)
        stop = Stop.OPTIMAL
        if self.lie in ("swapped", "null") or self.rng.random() < 0.3:
            stop = self.rng.choice(
                [Stop.OPTIMAL, Stop.INFEASIBLE, Stop.UNBOUNDED, Stop.INFEASIBLE_OR_UNBOUNDED]
            )
        farkas, ray = self._bend(y), self._bend(x)
        if self.lie == "null" and isinstance(form, ConeForm):
            farkas, ray = self._null(form)
        return Answer(Stop(stop), x=self._bend(x), y=self._bend(y), farkas=farkas, ray=ray)

    def _honest(
        self, form: Form, settings: Settings, columns: int, rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        x = self.rng.normal(size=columns) * 10.0 ** self.rng.integers(-8, 9)
        y = self.rng.normal(size=rows) * 10.0 ** self.rng.integers(-8, 9)
        if isinstance(form, ExplicitForm):
            best, multipliers = form.rule()
            x = self.rng.normal(size=best.size) if self.lie == "random" else best
            return x, (y if multipliers is None else multipliers)
        if self.lie in ("random", "zero"):
            return x, y
        if isinstance(form, ConeForm):
            said = _honest_answer(form, settings)
            ray = said.ray if said.x is None else said.x
            farkas = said.farkas if said.y is None else said.y
            return (x if ray is None else ray), (y if farkas is None else farkas)
        if isinstance(form, SimplexForm):
            return form.domain.project(x), y
        return form.left.project(x), form.right.project(y)

    def _bend(self, v: np.ndarray) -> np.ndarray:
        v = np.array(v, dtype=float)
        size = float(np.abs(v).max(initial=0.0))
        if self.lie == "zero":
            return np.zeros_like(v)
        if self.lie == "noise":
            v *= 1 + 10.0 ** -self.rng.uniform(1, 15) * self.rng.normal(size=v.size)
        if self.lie == "scaled":
            v *= 2.0 ** int(self.rng.integers(-60, 61))
        if self.lie == "dominant":
            v[np.abs(v) < size * 10.0 ** -self.rng.uniform(0, 12)] = 0.0
            v *= self.rng.random() < 0.7
        if self.lie == "floor":
            v += size * 2.0**-52 * self.rng.integers(-8, 9, v.size)
        return v

    def _null(self, form: ConeForm) -> tuple[np.ndarray, np.ndarray]:
        """The singular vectors of the smallest singular value, in the better of both signs."""
        left, _, right = np.linalg.svd(form.A.toarray())
        farkas = left[:, min(form.shape[1], form.shape[0]) - 1] if left.size else np.zeros(0)
        ray = right[-1]
        finite = np.where(np.isfinite(form.b), form.b, 0.0)
        if finite @ farkas > 0:
            farkas = -farkas
        if form.c @ ray > 0:
            ray = -ray
        return farkas, ray


def _honest_answer(form: ConeForm, settings: Settings) -> Answer:
    """What a real solver says of a cone program: the simplex method where it can."""
    from klopt.solvers.clarabel import Clarabel
    from klopt.solvers.highs import Highs

    for solver in (Highs(), Clarabel()):
        if not form.needs <= solver.offers:
            continue
        try:
            found = solver.run(form, settings)
        except Exception:  # the library refuses the data, or panics
            continue
        if found.x is not None or found.ray is not None or found.farkas is not None:
            return found
    return Answer(Stop.NUMERICAL)


SCRIBBLERS: dict[str, Callable[[], Backend]] = {
    "scribbler": bad.Scribbler,
    "gradient_scaler": bad.GradientScaler,
    "unlocker": bad.Unlocker,
    "start_writer": bad.StartWriter,
    "unmutator": bad.Unmutator,
}
"""Backends that write into what they are given."""


def contenders(problem: Problem) -> list[str]:
    """Return who may answer: "default", the capable backends, "lie:NAME" and the scribblers."""
    names = {route.backend.name: None for route in klopt.plan(problem).routes}
    over_sets = any(Feature.SIMPLEX in f.needs for f in problem.formulations())
    conic = any(Feature.CONE in f.needs for f in problem.formulations())
    scribblers = [name for name in SCRIBBLERS if (conic if name == "unmutator" else over_sets)]
    return ["default", *names, *(f"lie:{lie}" for lie in LIES), *scribblers]


def answer(problem: Problem, contender: str, seed: int = 0, time_limit: float = 10.0) -> Result:
    """Return klopt's result for a problem that the contender answers."""
    # ECOS may crash: it stays in the child process that klopt gives it.
    isolate = None if contender == "ecos" else False
    backend: str | Backend | None = contender
    if contender == "default":
        backend = None
    elif contender.startswith("lie:"):
        backend = Lying(contender.removeprefix("lie:"), seed)
    elif contender in SCRIBBLERS:
        backend = SCRIBBLERS[contender]()
    return klopt.solve(problem, backend, time_limit=time_limit, isolate=isolate)
