"""Ends of cone programs hold in exact arithmetic from good, random and forged witnesses.

Optima come from elsewhere: all bases of a linear program in rationals, all active sets of a quadratic
one, closed forms of a ball, of 2 x 2 matrices and of an exponential.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, strategies as st
from scipy import sparse
from strategies import at_most

from klopt.model.cones import Cones
from klopt.proof.cone_infeasibility import is_infeasible, is_ray
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.statement import ConeStatement, QuadraticConstraint
from klopt.witness.tight_rows import doubtful_rows

seeds = st.integers(0, 10**9).map(np.random.default_rng)
NONE = np.zeros(0, np.intp)


def rational(v: float) -> fmpq:
    return fmpq(*float(v).as_integer_ratio())


def fraction(v: fmpq) -> Fraction:
    return Fraction(int(v.p), int(v.q))


def solved(M: list[list[fmpq]], r: list[fmpq]) -> list[Fraction] | None:
    """The exact solution of a square system; None where it is singular."""
    matrix = fmpq_mat(M)
    if matrix.det() == 0:
        return None
    found = matrix.solve(fmpq_mat([[v] for v in r]))
    return [fraction(found[i, 0]) for i in range(len(r))]


def ulps(rng: np.random.Generator, v: np.ndarray, most: int = 2) -> np.ndarray:
    """Each entry moved by a few units in its last place."""
    return v + rng.integers(-most, most + 1, v.shape) * np.spacing(v)


# Linear and quadratic programs


@dataclass
class Solved:
    """A polyhedral program with its exact optimum (inf where there is no point) and optimal pair."""

    statement: ConeStatement
    optimum: Fraction | float
    x: np.ndarray
    y: np.ndarray
    active: np.ndarray


def polyhedral(
    rng: np.random.Generator, quadratic: bool
) -> tuple[ConeStatement, np.ndarray, np.ndarray]:
    """Rows with few or many bits, on many scales, some repeated, some empty, some vacuous; a box ends them."""
    n = int(rng.integers(1, 3 if quadratic else 4))
    zero = int(rng.integers(0, 2)) if n > 1 else 0
    general = int(rng.integers(0, 4))
    G = rng.integers(-3, 4, size=(zero + general, n)).astype(float)
    h = rng.integers(-3, 4, size=zero + general).astype(float)
    if rng.integers(2):
        G, h = G * 0.1, h * 0.1
    if rng.integers(3) == 0 and zero + general:
        G *= 10.0 ** rng.integers(-9, 10, (zero + general, 1))
    if rng.integers(3) == 0 and zero + general > 1:
        G[-1], h[-1] = G[0], h[0] if rng.integers(2) else np.nextafter(h[0], -np.inf)
    if rng.integers(4) == 0 and general:
        G[-1] = 0.0
    if rng.integers(4) == 0 and general:
        h[-1] = np.inf
    A = np.vstack([G, -np.eye(n), np.eye(n)])
    b = np.concatenate([h, np.full(2 * n, 2.0)])
    c = rng.integers(-4, 5, size=n) * float(rng.choice([1.0, 0.1, 1e6]))
    P = None
    if quadratic:
        factor = rng.integers(-3, 4, size=(n, n)).astype(float)
        P = sparse.csc_array(factor.T @ factor + np.eye(n))
    cones = Cones(zero=zero, nonneg=general + 2 * n)
    return ConeStatement(c, sparse.csc_array(A), b, cones, P), A, b


def solve_exactly(rng: np.random.Generator, quadratic: bool) -> Solved:
    """All sets of active rows are tried: the conditions of optimality in rationals."""
    statement, A, b = polyhedral(rng, quadratic)
    m, n = A.shape
    zero = statement.cones.zero
    exact_A = [[rational(v) for v in row] for row in A.tolist()]
    usable = [i for i in range(m) if np.isfinite(b[i])]
    P = np.zeros((n, n)) if statement.P is None else statement.P.toarray()
    exact_P = [[rational(v) for v in row] for row in P.tolist()]
    c = [rational(v) for v in statement.c]
    sizes = range(n + 1) if quadratic else (n,)
    for size in sizes:
        for rows in itertools.combinations(usable, size):
            # [P A'; A 0] (x, y) = (-c, b) on the active rows.
            top = [exact_P[j] + [exact_A[i][j] for i in rows] for j in range(n)]
            bottom = [exact_A[i] + [fmpq(0)] * size for i in rows]
            right = [-v for v in c] + [rational(b[i]) for i in rows]
            found = solved(top + bottom, right)
            if found is None:
                continue
            x, multipliers = found[:n], dict(zip(rows, found[n:], strict=True))
            if any(value < 0 for i, value in multipliers.items() if i >= zero):
                continue
            slack = [
                Fraction(b[i]) - sum((Fraction(A[i, j]) * x[j] for j in range(n)), Fraction(0))
                for i in usable
            ]
            if any(s < 0 or (i < zero and s) for i, s in zip(usable, slack, strict=True)):
                continue
            value = sum((Fraction(float(statement.c[j])) * x[j] for j in range(n)), Fraction(0))
            value += (
                sum(
                    (Fraction(P[i, j]) * x[i] * x[j] for i in range(n) for j in range(n)),
                    Fraction(0),
                )
                / 2
            )
            y = np.zeros(m)
            for i, multiplier in multipliers.items():
                y[i] = float(multiplier)
            active = np.array(
                [i for i, s in zip(usable, slack, strict=True) if i >= zero and not s]
            )
            return Solved(
                statement, value, np.array([float(v) for v in x]), y, active.astype(np.intp)
            )
    return Solved(statement, math.inf, np.zeros(n), np.zeros(m), NONE)


def assert_true(
    instance: Solved, x: np.ndarray, y: np.ndarray, tight: np.ndarray
) -> tuple[float, float]:
    statement = instance.statement
    lower = max(
        lower_bound(statement, DualWitness(w, y)).value for w in (x, np.zeros_like(x), instance.x)
    )
    upper = min(
        upper_bound(statement, PrimalWitness(x)).value,
        upper_bound(statement, PrimalWitness(x, tight)).value,
        upper_bound(statement, PrimalWitness(x, doubtful_rows(statement, x))).value,
    )
    assert lower <= instance.optimum <= upper
    assert not is_infeasible(statement, DualWitness(x, y)) or instance.optimum == math.inf
    # The box leaves no ray.
    assert not is_ray(statement, x)
    assert not is_ray(statement, -x)
    return lower, upper


@pytest.mark.parametrize("quadratic", [False, True])
@at_most(15)
@given(rng=seeds)
def test_linear_and_quadratic_programs(quadratic, rng) -> None:
    instance = solve_exactly(rng, quadratic)
    lower, _ = assert_true(instance, instance.x, instance.y, instance.active)
    if instance.optimum < math.inf:
        size = 1 + abs(float(instance.optimum)) + np.abs(instance.y).max() * 1e-3
        assert lower >= instance.optimum - Fraction(1e-9 * size)
    m, n = instance.statement.A.shape
    rows = np.arange(instance.statement.cones.zero, m)
    for _ in range(4):
        tight = rng.choice(rows, size=int(rng.integers(0, rows.size)), replace=False).astype(
            np.intp
        )
        assert_true(instance, ulps(rng, instance.x), ulps(rng, instance.y), tight)
        assert_true(instance, rng.normal(size=n), 10 * rng.normal(size=m), tight)
        assert_true(instance, rng.integers(-2, 3, size=n) / 2, np.abs(rng.normal(size=m)), tight)
        assert_true(instance, 1e300 * rng.normal(size=n), 1e300 * rng.normal(size=m), tight)
    for number in (np.nan, np.inf, -np.inf):
        assert_true(instance, np.full(n, number), instance.y, NONE)
        assert_true(instance, instance.x, np.full(m, number), NONE)


def test_most_points_next_to_an_optimum_are_proven() -> None:
    """Not by giving up: of the programs above that have a point, most have both ends."""
    proven = total = 0
    for seed in range(60):
        instance = solve_exactly(np.random.default_rng(seed), bool(seed % 2))
        if instance.optimum < math.inf:
            lower, upper = assert_true(instance, instance.x, instance.y, instance.active)
            total += 1
            proven += upper - lower <= 1e-8 * (1 + abs(upper))
    assert total > 20
    assert proven >= 0.9 * total


# Balls: minimise c'x over ||x|| <= r, which is -r ||c||


def below_root(value: float, square: Fraction) -> bool:
    """Whether value <= -sqrt(square)."""
    return value == -math.inf or (value <= 0 and Fraction(value) ** 2 >= square)


def above_root(value: float, square: Fraction) -> bool:
    return value == math.inf or value >= 0 or Fraction(value) ** 2 <= square


@at_most(15)
@given(seeds, st.integers(1, 4), st.sampled_from([1.0, 1e-6, 1e6]))
def test_balls_as_cones_and_as_quadratic_constraints(rng, n, scale) -> None:
    c, r = rng.normal(size=n) * scale, abs(float(rng.normal())) + 0.1
    square = Fraction(r) ** 2 * sum((Fraction(v) ** 2 for v in c.tolist()), Fraction(0))
    A = sparse.csc_array(np.vstack([np.zeros(n), -np.eye(n)]))
    cone = ConeStatement(c, A, np.append(r, np.zeros(n)), Cones(soc=(n + 1,)))
    ball = QuadraticConstraint(sparse.csc_array(np.eye(n)), np.zeros(n), r * r / 2)
    empty = sparse.csc_array((0, n))
    disc = ConeStatement(c, empty, np.zeros(0), Cones(), quadratics=(ball,))
    # (r r / 2) is rounded: its exact square decides.
    disc_square = 2 * Fraction(r * r / 2) * sum((Fraction(v) ** 2 for v in c.tolist()), Fraction(0))
    size = float(np.linalg.norm(c))
    best = -r * c / size
    for share in (1.0, 1 - 1e-15, 1 - 1e-12, 1 + 1e-15, 1 + 1e-12, float(rng.normal())):
        for x in (share * best, ulps(rng, best), rng.normal(size=n)):
            assert above_root(upper_bound(cone, PrimalWitness(x)).value, square)
            assert above_root(upper_bound(disc, PrimalWitness(x)).value, disc_square)
            for y in (
                np.append(size * share, c),
                np.append(size, ulps(rng, c)),
                np.append(np.nextafter(size, 0.0), c),
                rng.normal(size=n + 1),
            ):
                assert below_root(lower_bound(cone, DualWitness(x, y)).value, square)
                # Of the multipliers only those of a nonempty ball prove that it is empty.
                assert not is_infeasible(cone, DualWitness(x, y))
            for weight in (size / r * share, abs(float(rng.normal())), 0.0, -1.0):
                witness = DualWitness(x, np.zeros(0), np.array([weight]))
                assert below_root(lower_bound(disc, witness).value, disc_square)
                assert not is_infeasible(disc, witness)
    near = upper_bound(cone, PrimalWitness((1 - 1e-12) * best)).value
    far = lower_bound(disc, DualWitness(best, np.zeros(0), np.array([size / r]))).value
    assert near <= -r * size * (1 - 1e-11)
    assert far >= -r * size * (1 + 1e-11)


# Matrices of order 2: minimise <C, X> over tr X = 1, X psd, which is the smallest eigenvalue


def is_floor(t: float, a: Fraction, square: Fraction, d: Fraction) -> bool:
    """Whether [[a, b], [b, d]] - t I is positive semidefinite, b^2 = square."""
    t_ = Fraction(t)
    return a >= t_ and d >= t_ and (a - t_) * (d - t_) >= square


def is_ceiling(t: float, a: Fraction, square: Fraction, d: Fraction) -> bool:
    """Whether it is not positive definite."""
    t_ = Fraction(t)
    return not (a > t_ and d > t_ and (a - t_) * (d - t_) > square)


@given(seeds, st.booleans(), st.sampled_from([1.0, 1e-8, 1e8]))
def test_smallest_eigenvalues(rng, plain, scale) -> None:
    a, g, d = (rng.normal(size=3) * scale).tolist()
    if rng.integers(3) == 0:
        a, g, d = (
            scale,
            (1.0 if plain else math.sqrt(2.0)) * scale,
            scale,
        )  # singular, or next to it
    # The rows are x11, x21, x22: as they are, or with x21 times sqrt(2).
    weight = 2.0 if plain else 1.0
    c = np.array([a, weight * g, d])
    square = Fraction(g) ** 2 if plain else Fraction(g) ** 2 / 2
    A = sparse.csc_array(np.vstack([[1.0, 0.0, 1.0], -np.eye(3)]))
    statement = ConeStatement(c, A, np.array([1.0, 0, 0, 0]), Cones(zero=1, psd=(2,)), plain=plain)
    root = math.sqrt(2.0)
    C = np.array([[a, g if plain else g / root], [g if plain else g / root, d]])
    values, vectors = np.linalg.eigh(C)
    exact = (Fraction(a), square, Fraction(d))
    proven = []
    for share in (0.0, 1e-16, 1e-14, 1e-10, -1e-16, -1e-14, 1.0):
        t = float(values[0]) - share * scale
        Y = C - t * np.eye(2)
        y = np.array([-t, Y[0, 0], Y[1, 0] if plain else root * Y[1, 0], Y[1, 1]])
        for witness in (y, ulps(rng, y), rng.normal(size=4)):
            lower = lower_bound(statement, DualWitness(np.zeros(3), witness)).value
            assert lower == -math.inf or is_floor(lower, *exact)
            proven.append(lower)
            assert not is_infeasible(statement, DualWitness(np.zeros(3), witness))
        X = (1 - abs(share)) * np.outer(vectors[:, 0], vectors[:, 0]) + abs(share) * np.eye(2) / 2
        x = np.array([X[0, 0], X[1, 0] if plain else root * X[1, 0], X[1, 1]])
        for point in (x, ulps(rng, x), rng.normal(size=3)):
            upper = upper_bound(statement, PrimalWitness(point)).value
            assert upper == math.inf or is_ceiling(upper, *exact)
            proven.append(upper)
    finite = [v for v in proven if math.isfinite(v)]
    assert min(abs(v - values[0]) for v in finite) <= 1e-8 * scale


# Exponentials: minimise z with (x, 1, z) in the cone, which is exp(x)


@given(seeds)
def test_exponentials(rng) -> None:
    mpmath.mp.prec = 200
    point = float(rng.normal() * rng.choice([1.0, 30.0]))
    truth = mpmath.exp(mpmath.mpf(point))
    statement = ConeStatement(
        np.ones(1),
        sparse.csc_array([[0.0], [0.0], [-1.0]]),
        np.array([point, 1.0, 0.0]),
        Cones(exp=1),
    )
    value = math.exp(point)
    found = []
    for share in (0.0, 1e-16, 1e-14, 1e-12, -1e-16, -1e-14, float(rng.normal())):
        upper = upper_bound(statement, PrimalWitness(np.array([value * (1 + share)]))).value
        assert truth <= upper
        # (-e^x, (x - 1) e^x, 1) is the normal of the cone at (x, 1, e^x).
        y = np.array([-value, (point - 1) * value * (1 + share) + share * value, 1.0])
        # With a larger second entry it lies inside, by more than its own rounding.
        inside = y + np.array([0.0, 1e-12 * value * (1 + abs(point)), 0.0])
        for witness in (y, inside, ulps(rng, y), rng.normal(size=3), np.array([0.0, 1.0, 1.0])):
            lower = lower_bound(statement, DualWitness(np.zeros(1), witness)).value
            assert lower <= truth
            assert not is_infeasible(statement, DualWitness(np.zeros(1), witness))
            found.append(lower)
    assert max(found) >= value * (1 - 1e-9) - 1e-300


@given(seeds)
def test_room_in_the_dual_exponential_cone_is_true(rng) -> None:
    """All corners of the cube of that half-width lie in {-u exp(v / u - 1) <= w, u < 0}: mpmath decides."""
    from klopt.proof.cone_membership import _dual_exponential_room

    mpmath.mp.prec = 300
    r = float(rng.normal() * 3)
    y = np.array([[-math.exp(r), (r - 1) * math.exp(r), 1.0]]) + 10.0 ** rng.integers(
        -16, 1
    ) * np.array([[-1.05, 0.56, 1.26]]) * float(rng.choice([1.0, 1.0, -1.0]))
    (room,) = _dual_exponential_room(y).tolist()
    for signs in itertools.product((-1, 1), repeat=3):
        if room:
            u, v, w = (
                mpmath.mpf(e) + s * mpmath.mpf(room)
                for e, s in zip(y[0].tolist(), signs, strict=True)
            )
            assert u < 0
            assert -u * mpmath.exp(v / u - 1) <= w


# Forged witnesses


def lp(c: list, A: list, b: list, zero: int = 0) -> ConeStatement:
    return ConeStatement(
        np.array(c, float),
        sparse.csc_array(np.array(A, float)),
        np.array(b, float),
        Cones(zero, len(b) - zero),
    )


def witness(y: list, n: int = 1) -> DualWitness:
    return DualWitness(np.zeros(n), np.array(y, float))


class TestForgeries:
    def test_multipliers_off_by_one_unit_in_the_last_place(self) -> None:
        """x1 + x2 >= 1 for free x: c = (1, 1) is bounded by 1, c = (1, 1 + ulp) not at all."""
        for c, bounded in ((1.0, True), (np.nextafter(1.0, 2.0), False)):
            statement = lp([1.0, c], [[-1.0, -1.0]], [-1.0])
            for y in (1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)):
                end = lower_bound(statement, witness([y], 2)).value
                assert end <= 1 if bounded else end == -math.inf
        assert lower_bound(lp([1.0, 1.0], [[-1.0, -1.0]], [-1.0]), witness([1.0], 2)).value == 1.0

    def test_a_matrix_that_is_not_semidefinite_by_1e_17(self) -> None:
        """y = diag(1, -1e-17) is in no cone: for X = [[1, 0], [0, t]] it would prove t <= 1e17."""
        A = sparse.csc_array([[0.0], [0.0], [-1.0]])
        statement = ConeStatement(np.array([-1e-17]), A, np.array([1.0, 0, 0]), Cones(psd=(2,)))
        assert lower_bound(statement, witness([1.0, 0.0, -1e-17])).value == -math.inf
        assert not is_infeasible(statement, witness([1.0, 0.0, -1e-17]))

    def test_a_point_that_is_not_semidefinite_by_1e_17(self) -> None:
        """[[1, x], [x, 0]] is semidefinite at x = 0 only."""
        A = sparse.csc_array([[0.0], [-1.0], [0.0]])
        statement = ConeStatement(
            np.array([1.0]), A, np.array([1.0, 0, 0]), Cones(psd=(2,)), plain=True
        )
        for x in (-1e-17, -1e-160, -5e-324):
            assert upper_bound(statement, PrimalWitness(np.array([x]))).value == math.inf
        assert upper_bound(statement, PrimalWitness(np.array([0.0]))).value == 0.0

    def test_a_ray_off_by_one_unit_in_the_last_place(self) -> None:
        for entry, falls in ((1.0, True), (np.nextafter(1.0, 2.0), False)):
            statement = lp([-1.0, 0.0], [[entry, -1.0], [-1.0, 1.0]], [0.0, 0.0])
            assert is_ray(statement, np.array([1.0, 1.0])) == falls
            # x2 >= entry x1 and x2 <= x1 leave x = 0 alone, or x1 <= 0, where c'd > 0.
            assert falls or not is_ray(statement, np.array([1.0, np.nextafter(1.0, 2.0)]))

    def test_a_ray_of_a_curved_objective(self) -> None:
        P = sparse.csc_array(np.diag([5e-324, 0.0]))
        curved = ConeStatement(
            np.array([-1.0, 0.0]), sparse.csc_array((0, 2)), np.zeros(0), Cones(), P
        )
        assert not is_ray(curved, np.array([1.0, 0.0]))
        flat = ConeStatement(
            np.array([0.0, -1.0]), sparse.csc_array((0, 2)), np.zeros(0), Cones(), P
        )
        assert is_ray(flat, np.array([0.0, 1.0]))

    def test_a_bounded_set_has_no_ray(self) -> None:
        for bound in ({"within": 1e12}, {"radius": 1e300}):
            c, A = np.array([-1.0]), sparse.csc_array((0, 1))
            assert not is_ray(ConeStatement(c, A, np.zeros(0), Cones(), **bound), np.ones(1))

    def test_tight_rows_that_contradict_each_other(self) -> None:
        """x <= 1 and x <= 2 cannot both be met with equality, nor 3x = 0.3 and x <= 0.1 - ulp."""
        statement = lp([-1.0], [[1.0], [1.0]], [1.0, 2.0])
        for x in (1.0, 1.5, 2.0):
            end = upper_bound(statement, PrimalWitness(np.array([x]), np.array([0, 1]))).value
            assert end >= -1.0
        wrong = lp([-1.0], [[3.0], [1.0]], [0.3, 0.1], zero=1)  # 0.3 / 3 is not 0.1 as stored
        feasible = Fraction(0.3) / 3 <= Fraction(0.1)
        for x in (0.1, np.nextafter(0.1, 0.0), np.nextafter(0.1, 1.0)):
            for tight in (NONE, np.array([1])):
                end = upper_bound(wrong, PrimalWitness(np.array([x]), tight)).value
                assert end == math.inf or (feasible and end >= -Fraction(0.3) / 3)

    def test_tight_rows_out_of_place(self) -> None:
        """Rows of a cone, the last row by a negative index, the same row twice."""
        statement = lp([-1.0], [[1.0], [1.0]], [1.0, 2.0])
        for tight in ([-1], [-2], [0, 0], [0, 0, 1, -1], [1]):
            end = upper_bound(statement, PrimalWitness(np.array([2.0]), np.array(tight))).value
            assert end >= -1.0
        below = lp([1.0], [[-1.0], [1.0]], [3.0, -2.0])  # x <= -2, which x = 0 is not
        for tight in ([-1], [-2], [5], [1, -1]):
            end = upper_bound(below, PrimalWitness(np.zeros(1), np.array(tight))).value
            assert end >= -2.0 if 1 in tight else end == math.inf
        soc = ConeStatement(
            np.array([-1.0]),
            sparse.csc_array([[0.0], [-1.0]]),
            np.array([1.0, 0.0]),
            Cones(soc=(2,)),
        )
        for tight in ([0], [1], [0, 1]):
            end = upper_bound(soc, PrimalWitness(np.array([2.0]), np.array(tight))).value
            assert end >= -1.0

    def test_rows_below_minus_infinity(self) -> None:
        statement = lp([1.0], [[1.0], [-1.0]], [-np.inf, 0.0])
        assert upper_bound(statement, PrimalWitness(np.zeros(1))).value == math.inf
        assert is_infeasible(statement, witness([0.0, 0.0]))

    def test_vacuous_rows_prove_nothing(self) -> None:
        """x <= inf has no multiplier: without it x >= 0 leaves -x unbounded."""
        statement = lp([-1.0], [[1.0], [-1.0]], [np.inf, 0.0])
        assert lower_bound(statement, witness([1.0, 0.0])).value == -math.inf
        assert not is_infeasible(statement, witness([1.0, 1.0]))
        assert is_ray(statement, np.ones(1))
        end = upper_bound(statement, PrimalWitness(np.array([7.0]), np.array([0]))).value
        assert end >= -7.0 - 1e-9 or end == math.inf

    @pytest.mark.parametrize("b", [1.0, 0.0, 5e-324, -5e-324, -1.0])
    def test_empty_rows_are_decided_by_their_right_hand_side(self, b) -> None:
        for zero in (0, 1):
            statement = lp([1.0], [[0.0], [-1.0]], [b, 0.0], zero=zero)
            holds = b == 0 or (b > 0 and not zero)
            sign = -math.copysign(1.0, b)
            assert is_infeasible(statement, witness([sign if zero else 1.0, 0.0])) == (not holds)
            assert (upper_bound(statement, PrimalWitness(np.zeros(1))).value < math.inf) == holds

    def test_repeated_rows(self) -> None:
        """x = 1 three times; then once with another unit in the last place."""
        for last, consistent in ((1.0, True), (np.nextafter(1.0, 2.0), False)):
            statement = lp(
                [1.0, 1.0], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [1.0, 1.0, last], zero=3
            )
            for x in ([1.0, 0.0], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9]):
                end = upper_bound(statement, PrimalWitness(np.array(x))).value
                assert end >= 1 if consistent else end == math.inf
            contradiction = witness([1.0, 0.0, -1.0], 2)
            assert is_infeasible(statement, contradiction) == (not consistent)

    def test_a_huge_multiplier_hides_no_other(self) -> None:
        """g = (0, 1e-9): the second variable is free, whatever the first row's size."""
        statement = lp([0.0, 1e-9], [[1e16, 0.0], [-1e16, 0.0]], [1e16, -1e16])
        assert lower_bound(statement, witness([1e16, 1e16], 2)).value == -math.inf

    def test_numbers_that_overflow_prove_nothing_and_raise_nothing(self) -> None:
        huge = 1.7e308
        statement = lp(
            [huge, huge], [[-huge, -huge], [-1.0, 0.0], [0.0, -1.0]], [-huge, huge, huge]
        )
        with np.errstate(all="ignore"):
            for y in ([huge, huge, huge], [1.0, huge, 0.0], [0.0, 0.0, 0.0]):
                lower = lower_bound(statement, witness(y, 2)).value
                assert not lower > 0 or lower <= huge
            for x in ([huge, huge], [-huge, huge], [0.5, 0.5]):
                upper = upper_bound(statement, PrimalWitness(np.array(x))).value
                assert not upper < -1.7e308

    def test_a_gradient_that_overflows_is_not_zero(self) -> None:
        """b'y = -1e300 and A'y = inf: x = 1 is feasible, of value 1."""
        statement = lp([1.0], [[-1e10], [1.0], [-1.0]], [-1.0, 2.0, 2.0])
        assert upper_bound(statement, PrimalWitness(np.ones(1))).value == 1.0
        assert not lower_bound(statement, witness([1e300, 0.0, 0.0])).value > 1
        assert not is_infeasible(statement, witness([1e300, 0.0, 0.0]))

    def test_objectives_that_are_not_convex(self) -> None:
        """-x^2 / 2 over |x| <= 2 is at least -2; over all x it has no bound."""
        P = sparse.csc_array([[-1.0]])
        box = ConeStatement(
            np.zeros(1), sparse.csc_array([[1.0], [-1.0]]), np.full(2, 2.0), Cones(nonneg=2), P
        )
        for w in (-2.0, 0.0, 1.0, 2.0):
            assert lower_bound(box, DualWitness(np.array([w]), np.zeros(2))).value <= -2.0
        free = ConeStatement(np.zeros(1), sparse.csc_array((0, 1)), np.zeros(0), Cones(), P)
        assert lower_bound(free, DualWitness(np.zeros(1), np.zeros(0))).value == -math.inf

    def test_negative_weights_of_quadratic_constraints_count_as_none(self) -> None:
        row = QuadraticConstraint(sparse.csc_array([[2.0]]), np.zeros(1), -1.0)  # x^2 <= -1
        statement = ConeStatement(
            np.zeros(1), sparse.csc_array((0, 1)), np.zeros(0), Cones(), quadratics=(row,)
        )
        for weight, proven in ((1.0, True), (-1.0, False), (0.0, False), (math.nan, False)):
            multipliers = DualWitness(np.zeros(1), np.zeros(0), np.array([weight]))
            assert is_infeasible(statement, multipliers) == proven
