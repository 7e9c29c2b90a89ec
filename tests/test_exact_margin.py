"""Margin duals and multiple kernel learning: the ends hold in exact arithmetic, whatever the witness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction as Q
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_breast_cancer
from strategies import at_most, generators, radial_gram, signs

import klopt
from klopt.engine.certify import certify
from klopt.kernels.gram import Gram, proven_floor
from klopt.kernels.rbf import gaussians
from klopt.model.problem import Bracket, Point
from klopt.problems._margin.witness import with_sum
from klopt.problems.epsilon_margin import EpsilonMargin
from klopt.problems.multiple_kernel import Loss, MultipleKernel
from klopt.problems.nu_margin import NuMargin
from klopt.problems.soft_margin import SoftMargin
from klopt.proof.directed import (
    difference_down,
    product_up,
    quotient_up,
    sum_up,
    total_up,
)
from klopt.proof.dyadic import balanced, exact_sign_of_sum
from klopt.proof.kernel_product import enclose_in_blocks, enclose_in_slices, entry_bounds

Generator = np.random.Generator
Rows = list[list[Q]]

# --- exact optima
# ---------------------------------------------------------------------------------------------------


def exact(values: object) -> list[Q]:
    return [Q(float(value)) for value in np.ravel(np.asarray(values, dtype=float))]


def rows_of(K: np.ndarray) -> Rows:
    return [exact(row) for row in K]


def solution(A: Rows, b: Sequence[Q]) -> list[Q] | None:
    """Gaussian elimination; None for a singular matrix."""
    M = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(len(M)):
        pivot = next((i for i in range(k, len(M)) if M[i][k]), None)
        if pivot is None:
            return None
        M[k], M[pivot] = M[pivot], M[k]
        M[k] = [entry / M[k][k] for entry in M[k]]
        for i, row in enumerate(M):
            if i != k and row[k]:
                M[i] = [x - row[k] * p for x, p in zip(row, M[k], strict=True)]
    return [row[-1] for row in M]


def corners(
    H: Rows, pieces: Sequence[Sequence[tuple[Q, Q, Q]]], planes: Sequence[tuple[list[Q], Q]]
) -> Iterator[list[Q]]:
    """All stationary points of x'Hx/2 - c'x on the faces of a box cut by planes.

    Each entry lies in one of its pieces (low, high, c): fixed where low = high, free between. A
    quadratic function, convex or not, is largest and smallest at one of these points.
    """
    n = len(H)
    for chosen in product(*pieces):
        free = [i for i, (low, high, _) in enumerate(chosen) if low != high]
        x = [low if low == high else Q(0) for low, high, _ in chosen]
        A = [[H[i][j] for j in free] + [normal[i] for normal, _ in planes] for i in free]
        b = [chosen[i][2] - sum(H[i][j] * x[j] for j in range(n)) for i in free]
        for normal, offset in planes:
            A.append([normal[j] for j in free] + [Q(0)] * len(planes))
            b.append(offset - sum(normal[j] * x[j] for j in range(n)))
        if free:
            # Planes that the free entries do not see have no multiplier.
            seen = [k for k, (normal, _) in enumerate(planes) if any(normal[i] for i in free)]
            keep = [*range(len(free)), *(len(free) + k for k in seen)]
            found = solution([[A[i][j] for j in keep] for i in keep], [b[i] for i in keep])
            if found is None:
                continue
            for i, value in zip(free, found, strict=False):
                x[i] = value
        inside = all(low <= v <= high for v, (low, high, _) in zip(x, chosen, strict=True))
        on_planes = all(
            sum(a * v for a, v in zip(normal, x, strict=True)) == offset
            for normal, offset in planes
        )
        if inside and on_planes:
            yield x


def form(H: Rows, x: Sequence[Q]) -> Q:
    n = len(x)
    return sum((x[i] * H[i][j] * x[j] for i in range(n) for j in range(n)), Q(0))


def soft_margin_optimum(K: np.ndarray, y: np.ndarray, C: float | np.ndarray, scale: Q = Q(1)) -> Q:
    n = len(y)
    labels, boxes = exact(y), exact(np.broadcast_to(C, n))
    entries = rows_of(K)
    H = [[scale * labels[i] * entries[i][j] * labels[j] for j in range(n)] for i in range(n)]
    pieces = [[(Q(0), Q(0), Q(1)), (box, box, Q(1)), (Q(0), box, Q(1))] for box in boxes]
    points = corners(H, pieces, [(labels, Q(0))])
    return max(sum(x) - form(H, x) / 2 for x in points)


def epsilon_margin_optimum(
    K: np.ndarray, y: np.ndarray, C: float | np.ndarray, epsilon: float, scale: Q = Q(1)
) -> Q:
    n = len(y)
    H, tube = [[scale * entry for entry in row] for row in rows_of(K)], Q(epsilon)
    pieces = [
        [
            (Q(0), Q(0), Q(0)),
            (box, box, Q(0)),
            (-box, -box, Q(0)),
            (Q(0), box, target - tube),
            (-box, Q(0), target + tube),
        ]
        for target, box in zip(exact(y), exact(np.broadcast_to(C, n)), strict=True)
    ]
    points = corners(H, pieces, [([Q(1)] * n, Q(0))])
    targets = exact(y)
    return max(
        sum(t * v - tube * abs(v) for t, v in zip(targets, x, strict=True)) - form(H, x) / 2
        for x in points
    )


def nu_margin_optimum(K: np.ndarray, y: np.ndarray, nu: float) -> Q:
    n = len(y)
    labels, entries = exact(y), rows_of(K)
    H = [[labels[i] * entries[i][j] * labels[j] for j in range(n)] for i in range(n)]
    smaller = int(min((y > 0).sum(), (y < 0).sum()))
    least = min(Q(nu), Q(2 * smaller, n))
    piece = [(Q(0), Q(0), Q(0)), (Q(1, n), Q(1, n), Q(0)), (Q(0), Q(1, n), Q(0))]
    planes = [(labels, Q(0)), ([Q(1)] * n, least)]
    # The sum is nu or lies above it.
    found = [form(H, x) / 2 for x in corners(H, [piece] * n, planes)]
    above = corners(H, [piece] * n, planes[:1])
    found += [form(H, x) / 2 for x in above if sum(x) >= least]
    return min(found)


def repeated(K: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The kernel of points of which each stands there several times."""
    often = np.repeat(np.arange(len(times)), times)
    return np.asarray(K[np.ix_(often, often)])


def assert_holds(bracket: Bracket, optimum: Q) -> None:
    assert not np.isnan(bracket.lower)
    assert not np.isnan(bracket.upper)
    assert bracket.lower == -np.inf or Q(bracket.lower) <= optimum
    assert bracket.upper == np.inf or optimum <= Q(bracket.upper)


# --- tempting data
# --------------------------------------------------------------------------------------------------


def tempting_gram(rng: Generator, n: int) -> Gram:
    """Points that nearly coincide, kernels that are singular, and any unit."""
    apart = 10.0 ** rng.uniform(-9, 0, size=(n, 1))
    X = rng.normal(size=(n, 2)) * apart
    unit = 10.0 ** rng.integers(-8, 9)
    if rng.random() < 0.3:
        return Gram.of(unit * (X @ X.T))
    if rng.random() < 0.3:
        return Gram.rbf(X, 1.0)
    return Gram.of(unit * np.exp(-np.square(X[:, None] - X).sum(axis=2)))


def any_vector(rng: Generator, n: int, C: float | np.ndarray) -> np.ndarray:
    """A good or an absurd guess of coefficients."""
    size = rng.choice([0.0, 1e-30, 1e-3, 1.0, 1e3, 1e30, np.nan])
    return np.asarray(size * np.minimum(C, 1e280) * rng.normal(size=n))


def any_penalty(rng: Generator, n: int, share: float, K: Gram) -> float | np.ndarray:
    """One penalty, or one for each point, up to a million times apart."""
    C = share / K.scale
    return C if rng.random() < 0.4 else C * 10.0 ** rng.uniform(-3, 3, size=n)


penalties = st.sampled_from([1e-6, 1.0, 1e3, 1e9])


@given(rng=generators, n=st.integers(2, 4), share=penalties)
@at_most(40)
def test_soft_margin(rng: Generator, n: int, share: float) -> None:
    K, y = tempting_gram(rng, n), signs(rng, n)
    C = any_penalty(rng, n, share, K)
    problem = SoftMargin(K, y, C)
    optimum = soft_margin_optimum(K.matrix, y, C)
    assert_holds(problem.bracket(Point({"alpha": any_vector(rng, n, C)})), optimum)
    found = klopt.solve(problem)
    assert_holds(Bracket(found.lower, found.upper, found.point), optimum)
    # Forged witnesses: not feasible, or a normal vector from nowhere.
    normal = rng.normal(size=len(K.factor())) * rng.choice([1.0, 1e9, 1e-9])
    for alpha in (rng.normal(size=n) / K.scale, 2 * C * np.ones(n), found.point.alpha):
        assert_holds(problem.proof(Point({"alpha": alpha}, {"normal": normal})), optimum)


@given(rng=generators, n=st.integers(2, 3), share=penalties, epsilon=st.sampled_from([0.0, 0.1]))
@at_most(30)
def test_epsilon_margin(rng: Generator, n: int, share: float, epsilon: float) -> None:
    K = tempting_gram(rng, n)
    C = any_penalty(rng, n, share, K)
    y = rng.normal(size=n) + rng.choice([0.0, 1e8])
    problem = EpsilonMargin(K, y, C, epsilon)
    optimum = epsilon_margin_optimum(K.matrix, y, C, epsilon)
    assert_holds(problem.bracket(Point({"beta": any_vector(rng, n, C)})), optimum)
    found = klopt.solve(problem)
    assert_holds(Bracket(found.lower, found.upper, found.point), optimum)
    normal = rng.normal(size=len(K.factor()))
    for beta in (rng.normal(size=n), 2 * C * np.ones(n), found.point.beta):
        assert_holds(problem.proof(Point({"beta": beta}, {"normal": normal})), optimum)


@given(rng=generators, n=st.integers(4, 20), share=st.sampled_from([0.1, 1.0, 100.0]))
@at_most(20)
def test_a_point_with_twice_the_penalty_is_two_points(rng: Generator, n: int, share: float) -> None:
    X = rng.normal(size=(n, 2))
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    times = rng.integers(1, 4, size=n)
    more = repeated(K, times)
    y = signs(rng, n)
    targets = rng.normal(size=n)
    squared = repeated(K**2, times)
    pairs = [
        *(
            (
                MultipleKernel([K, K**2], y, share * times, loss, norm),
                MultipleKernel([more, squared], np.repeat(y, times), share, loss, norm),
            )
            for loss in get_args(Loss)
            for norm in ("block-l1", 1.5)
        ),
        (SoftMargin(K, y, share * times), SoftMargin(more, np.repeat(y, times), share)),
        (
            EpsilonMargin(K, targets, share * times, 0.1),
            EpsilonMargin(more, np.repeat(targets, times), share, 0.1),
        ),
    ]
    for weighted, often in pairs:
        one = klopt.solve(weighted, tol=1e-9).require()
        two = klopt.solve(often, tol=1e-9).require()
        assert abs(one.value - two.value) <= 1e-8 * (1 + abs(two.value))


@pytest.mark.parametrize("backend", ["libsvm", "highs", "clarabel", "active_set"])
def test_every_route_takes_a_penalty_of_each_point(backend: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), signs(rng, 30)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    C = 10.0 ** rng.uniform(-1, 1, size=30)
    truth = klopt.solve(SoftMargin(K, y, C), tol=1e-9).require().value
    found = klopt.solve(SoftMargin(K, y, C), backend)
    assert found.lower <= truth + 1e-7
    assert found.upper >= truth - 1e-7
    assert found.certificate.relative_gap < 1e-2


def test_penalties_that_are_none_are_refused() -> None:
    K = np.eye(2)
    with pytest.raises(klopt.InvalidProblem, match=r"C\[1\] is 0; expected a positive number"):
        SoftMargin(K, [1, -1], [1.0, 0.0])
    with pytest.raises(klopt.InvalidProblem, match="C has 3 entries; expected one number, or 2"):
        EpsilonMargin(K, [1, -1], [1.0, 2.0, 3.0], 0.1)
    assert SoftMargin(K, [1, -1], [2.0, 2.0]).C == 2.0
    assert SoftMargin(K, [1, -1], [1.0, 2.0]).describe() == "SoftMargin(n=2, C=1..2)"


@given(rng=generators, n=st.integers(2, 4), share=st.sampled_from([1e-9, 0.1, 0.7, 1.0]))
@at_most(40)
def test_nu_margin(rng: Generator, n: int, share: float) -> None:
    K, y = tempting_gram(rng, n), signs(rng, n)
    nu = share * 2 * min((y > 0).sum(), (y < 0).sum()) / n
    problem = NuMargin(K, y, nu)
    optimum = nu_margin_optimum(K.matrix, y, problem.nu)
    bracket = problem.bracket(Point({"alpha": any_vector(rng, n, 1.0)}))
    assert np.isfinite(bracket.upper), "every point is repaired to a feasible one"
    assert_holds(bracket, optimum)
    found = klopt.solve(problem)
    assert_holds(Bracket(found.lower, found.upper, found.point), optimum)
    normal = rng.normal(size=len(K.factor())) * rng.choice([1.0, 1e6])
    for shares in (rng.normal(size=n), np.ones(n) / 3, np.zeros(n)):
        assert_holds(problem.proof(Point({"shares": shares}, {"normal": normal})), optimum)


@given(rng=generators, n=st.integers(2, 3), share=penalties, norm=st.sampled_from([1, 2, np.inf]))
@at_most(30)
def test_multiple_kernel_of_equal_kernels(
    rng: Generator, n: int, share: float, norm: float
) -> None:
    """m copies of K are one kernel: m^(2/s) K, which is rational for p = 1, 2 and inf."""
    K, y = tempting_gram(rng, n), signs(rng, n)
    if K.floor < 0:
        K = Gram.of(K.matrix + 1e-3 * K.scale * np.eye(n))
    C = any_penalty(rng, n, share, K)
    problem = MultipleKernel([K, K], y, C, norm=norm)
    optimum = soft_margin_optimum(K.matrix, y, C, {1: Q(1), 2: Q(2), np.inf: Q(4)}[norm])
    weights = rng.normal(size=2)
    point = Point({"alpha": any_vector(rng, n, C), "weights": weights})
    assert_holds(problem.bracket(point), optimum)
    found = klopt.solve(problem)
    assert_holds(Bracket(found.lower, found.upper, found.point), optimum)
    beta = rng.normal(size=(2, n)) / K.scale
    forged = {"signed": rng.normal(size=n) / K.scale, "weights": rng.normal(size=2)}
    assert_holds(problem.proof(Point(forged, {"classifier": beta})), optimum)


@given(rng=generators, n=st.integers(2, 3), share=penalties, norm=st.sampled_from([1, 2, np.inf]))
@at_most(30)
def test_multiple_kernel_regression_of_equal_kernels(
    rng: Generator, n: int, share: float, norm: float
) -> None:
    K = tempting_gram(rng, n)
    if K.floor < 0:
        K = Gram.of(K.matrix + 1e-3 * K.scale * np.eye(n))
    C = any_penalty(rng, n, share, K)
    y = rng.normal(size=n) + rng.choice([0.0, 1e8])
    epsilon = float(rng.choice([0.0, 0.1]))
    problem = MultipleKernel([K, K], y, C, "epsilon", norm, epsilon)
    scale = {1: Q(1), 2: Q(2), np.inf: Q(4)}[norm]
    optimum = epsilon_margin_optimum(K.matrix, y, C, epsilon, scale)
    weights = rng.normal(size=2)
    point = Point({"alpha": any_vector(rng, n, C), "weights": weights})
    assert_holds(problem.bracket(point), optimum)
    found = klopt.solve(problem)
    assert_holds(Bracket(found.lower, found.upper, found.point), optimum)
    beta = rng.normal(size=(2, n)) / K.scale
    for signed in (rng.normal(size=n) / K.scale, 2 * C * np.ones(n), balanced(C * np.ones(n))):
        forged = {"signed": signed, "weights": rng.normal(size=2)}
        assert_holds(problem.proof(Point(forged, {"classifier": beta})), optimum)


@pytest.mark.parametrize("norm", ["block-l1", "block-linf", 1.5])
def test_a_regression_with_several_kernels_is_that_with_their_mixture(norm: float | str) -> None:
    """Given its weights, and for any norm but "block-l1" by Young's inequality, the value is that of one kernel."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    squares = np.square(X[:, None] - X).sum(axis=2)
    kernels = [np.exp(-squares / width) for width in (0.3, 3.0)]
    C = 10.0 ** rng.uniform(-1, 1, size=40)
    problem = MultipleKernel(kernels, y, C, "epsilon", norm, 0.05)  # type: ignore[arg-type]
    found = klopt.solve(problem, tol=1e-9).require()
    mixture = np.asarray(found.kernel)
    plain = klopt.solve(EpsilonMargin(mixture, y, C, 0.05), tol=1e-9).require()
    np.testing.assert_allclose(mixture @ found.point.alpha, mixture @ plain.point.beta, atol=1e-4)
    assert float(found.point.bias) == pytest.approx(float(plain.point.bias), abs=1e-3)


@given(rng=generators, n=st.integers(1, 5), norm=st.sampled_from([1, 1.5, 3, np.inf]))
@at_most(30)
def test_multiple_kernel_with_the_squared_loss(rng: Generator, n: int, norm: float) -> None:
    """y'(t K + I/C)^-1 y / 2 with t = 2^(2/s), 2/s = 2 - 2/p, between two rationals."""
    K = Gram.of(radial_gram(rng, n) + 1e-2 * np.eye(n))
    y = rng.normal(size=n)
    C = 10.0 ** rng.integers(-3, 4) * (1.0 if n % 2 else rng.uniform(0.1, 9.0, size=n))
    power = Q(2) if np.isinf(norm) else 2 - 2 / Q(norm)
    root = float(2 ** float(power))
    optima = []
    for t in (Q(root) * (1 + Q(1, 2**50)), Q(root) * (1 - Q(1, 2**50))):
        A = [[t * entry for entry in row] for row in rows_of(K.matrix)]
        for i in range(n):
            A[i][i] += 1 / Q(float(np.broadcast_to(C, n)[i]))
        x = solution(A, exact(y))
        assert x is not None
        optima.append(sum(a * b for a, b in zip(x, exact(y), strict=True)) / 2)
    problem = MultipleKernel([K, K], y, C, loss="squared", norm=norm)
    for bracket in (
        problem.bracket(Point({"alpha": any_vector(rng, n, 1.0)})),
        problem.bracket(klopt.solve(problem).point),
    ):
        assert Q(bracket.lower) <= optima[1]
        assert bracket.upper == np.inf or Q(bracket.upper) >= optima[0]


@np.errstate(all="ignore")
def test_numbers_that_are_not_finite_prove_nothing() -> None:
    K, y = np.array([[2.0, 1.0], [1.0, 2.0]]), [1, -1]
    for bad in ([np.nan, 1.0], [np.inf, np.inf], [1e300, 1e300], [-1.0, -1.0]):
        z = np.array(bad)
        for bracket, optimum in (
            (SoftMargin(K, y, np.inf).proof(Point({"alpha": z})), Q(1)),
            (SoftMargin(K, y, 10.0).proof(Point({"alpha": z})), Q(1)),
            (EpsilonMargin(K, y, 10.0, 0.0).proof(Point({"beta": z})), Q(1)),
            (NuMargin(K, y, 1.0).proof(Point({"shares": z})), Q(1, 4)),
            (MultipleKernel([K, K], y, 10.0).proof(Point({"signed": z})), Q(1)),
            (MultipleKernel([K], y, 10.0, "epsilon", 1, 0.0).proof(Point({"signed": z})), Q(1)),
        ):
            assert_holds(bracket, optimum)


# --- narrow where it matters
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1 - 2.0**-48, 1 - 1e-13, 1 - 1e-12, 1 - 1e-11])
def test_points_that_nearly_coincide_are_certified_at_their_optimum(k: float) -> None:
    K, C = np.array([[1.0, k], [k, 1.0]]), 1e16
    optimum = 1 / (1 - Q(k))
    for problem, value in (
        (SoftMargin(K, [-1, 1], C), optimum),
        (SoftMargin(K, [-1, 1], np.inf), optimum),
        (MultipleKernel([K, K], [-1, 1], C), optimum),
        (MultipleKernel([K, K], [-1, 1], C, norm="block-linf"), optimum / 4),
        (EpsilonMargin(K, [1, -1], C, 0.0), optimum),
    ):
        found = klopt.solve(problem)
        assert found.verdict is klopt.Verdict.OPTIMAL, found.explain()
        assert_holds(Bracket(found.lower, found.upper, found.point), value)
        assert found.certificate.relative_gap <= 1e-9


@given(rng=generators, n=st.integers(2, 30), C=st.sampled_from([0.1, 1.0, 1e3]))
@at_most(20)
def test_the_point_is_exactly_feasible_and_attains_the_lower_end(
    rng: Generator, n: int, C: float
) -> None:
    K, y = radial_gram(rng, n), signs(rng, n)
    found = klopt.solve(SoftMargin(K, y, C))
    alpha = exact(found.point.alpha)
    z = [a * s for a, s in zip(alpha, exact(y), strict=True)]
    assert sum(z) == 0
    assert all(0 <= a <= Q(C) for a in alpha)
    value = sum(alpha) - form(rows_of(K), z) / 2
    assert Q(found.lower) <= value * (1 + Q(1, 10**12))
    assert value <= Q(found.upper)


# --- the parts of the core that these proofs added
# ------------------------------------------------------------------


@given(rng=generators, n=st.integers(1, 90), unit=st.sampled_from([1e-100, 1.0, 1e100]))
@at_most(25)
def test_kernel_products_enclose_the_exact_ones(rng: Generator, n: int, unit: float) -> None:
    K = Gram.of(radial_gram(rng, n) * unit)
    v = rng.normal(size=n) * 10.0 ** rng.uniform(-15, 15, n) * (rng.random(n) < rng.random())
    more = rng.normal(size=n) * unit
    entries, numbers = rows_of(K.matrix), exact(v)
    truth = [sum(a * b for a, b in zip(row, numbers, strict=True)) for row in entries]
    blocks = enclose_in_blocks(K.matrix, v, entry_bounds(K.matrix, K.floor))
    slices = enclose_in_slices(K.matrix, v, (more, 1.5))
    for i, value in enumerate(truth):
        assert abs(Q(float(blocks.mid[i])) - value) <= Q(float(blocks.rad[i]))
        value += Q(float(more[i])) + Q(1.5)
        assert abs(Q(float(slices.mid[i])) - value) <= Q(float(slices.rad[i]))


@given(rng=generators, n=st.integers(2, 40), power=st.integers(-200, 200))
def test_balanced_vectors_have_the_sum_zero(rng: Generator, n: int, power: int) -> None:
    z = rng.normal(size=n) * 10.0 ** rng.uniform(-9, 0, n) * 10.0**power
    z -= z.mean()
    w = balanced(z)
    assert sum(exact(w)) == 0
    assert (np.abs(w) <= np.abs(z)).all()
    assert (np.sign(w) * np.sign(z) >= 0).all()
    assert np.abs(w - z).max() <= 1e-13 * n * np.abs(z).max()


@given(rng=generators, n=st.integers(1, 40), share=st.floats(1e-9, 1.0))
def test_vectors_with_a_sum_stay_in_their_box(rng: Generator, n: int, share: float) -> None:
    total = share * n
    x = np.full(n, share) + rng.normal(size=n) * 1e-15
    w = with_sum(x, total)
    assert ((w >= 0) & (w <= 1)).all()
    assert Q(total) <= sum(exact(w)) <= Q(total) * (1 + Q(1, 2**50))
    assert exact_sign_of_sum(w, total) == (sum(exact(w)) > Q(total))


finite = st.floats(0.0, 1e300)


@given(finite, finite, st.lists(finite, max_size=30))
def test_directed_operations_bound_the_exact_ones(a: float, b: float, many: list[float]) -> None:
    def at_least(x: float, truth: Q) -> bool:
        return x == np.inf or Q(x) >= truth

    assert at_least(sum_up(a, b, *many), Q(a) + Q(b) + sum(map(Q, many)))
    assert at_least(product_up(a, b), Q(a) * Q(b))
    assert at_least(quotient_up(a, b), Q(a) / Q(b) if b else Q(0))
    assert Q(difference_down(a, b)) <= Q(a) - Q(b)
    assert at_least(total_up(np.array(many)), sum(map(Q, many), Q(0)))


# --- kernel matrices
# -------------------------------------------------------------------------------------------------


def is_semidefinite(A: Rows) -> bool:
    """By symmetric elimination, exactly: a zero pivot must have a zero row."""
    A = [row[:] for row in A]
    for k, pivot in enumerate(A):
        if pivot[k] < 0 or (pivot[k] == 0 and any(pivot[k:])):
            return False
        for row in A[k + 1 :]:
            if pivot[k]:
                factor = row[k] / pivot[k]
                row[k:] = [x - factor * y for x, y in zip(row[k:], pivot[k:], strict=True)]
    return True


def minus_identity(K: np.ndarray, floor: float) -> Rows:
    A = rows_of(K)
    for i in range(len(A)):
        A[i][i] -= Q(floor)
    return A


@given(rng=generators, n=st.integers(1, 7))
@at_most(60)
def test_floors_are_below_the_eigenvalues_of_the_stored_matrix(rng: Generator, n: int) -> None:
    K = tempting_gram(rng, n)
    assert is_semidefinite(minus_identity(K.matrix, K.floor))
    X = rng.normal(size=(n, 2))
    S = np.tanh(X @ X.T - 1)
    for repair in ("clip", "flip", "shift"):
        repaired = Gram.of(S, repair=repair)
        assert np.array_equal(repaired.matrix, repaired.matrix.T)
        assert is_semidefinite(minus_identity(repaired.matrix, repaired.floor))
    shift = float(10.0 ** rng.uniform(-16, 1))
    floor = proven_floor(S, shift)
    assert floor is None or is_semidefinite(minus_identity(S, floor))
    ((wide, wide_floor),) = gaussians(rng.normal(size=(n, 3)) * 1e3, [10.0 ** rng.uniform(-9, 0)])
    assert wide_floor == -np.inf or is_semidefinite(minus_identity(wide, wide_floor))


@given(rng=generators, n=st.integers(2, 7))
@at_most(30)
def test_floors_of_singular_matrices_in_balls(rng: Generator, n: int) -> None:
    """Products of large numbers are singular by rounding: the floor is that of the stored matrix."""
    X = np.exp(rng.normal(size=(n, 1)) * 4)
    K = Gram.of(X @ X.T)
    assert is_semidefinite(minus_identity(K.matrix, K.sharpened.floor))
    assert K.floor <= K.sharpened.floor <= 0


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_linear_kernel_of_raw_features_is_certified(C: float) -> None:
    """Columns of very different sizes: the rounding of Cholesky is a hundred times the true floor."""
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:80]
    K = X[chosen] @ X[chosen].T
    problem = SoftMargin((K + K.T) / 2, np.where(y[chosen] == 1, 1.0, -1.0), C)
    assert problem.K.sharpened.floor > problem.K.floor / 100
    result = klopt.solve(problem, "active_set")
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()


@given(rng=generators, n=st.integers(1, 7))
@at_most(40)
def test_the_distance_of_the_factor_is_an_upper_bound(rng: Generator, n: int) -> None:
    K = tempting_gram(rng, n)
    R = [exact(row) for row in K.factor()]
    entries = rows_of(K.matrix)
    error = Q(K.factor_error())
    off = [
        [entries[i][j] - sum((row[i] * row[j] for row in R), Q(0)) for j in range(n)]
        for i in range(n)
    ]
    for sign in (1, -1):
        A = [[sign * entry for entry in row] for row in off]
        for i in range(n):
            A[i][i] += error
        assert is_semidefinite(A)


@pytest.mark.parametrize("formulation", ["dual QP", "SOCP epigraph"])
def test_a_hard_margin_that_only_a_factor_of_K_misses_is_not_called_infeasible(
    formulation: str,
) -> None:
    """K is positive definite by one unit in the last place; its computed factor is singular."""
    k = 3.694644520472026
    K = np.array([[k, k], [k, np.nextafter(k, 4.0)]])
    assert Q(K[0, 0]) * Q(K[1, 1]) > Q(K[0, 1]) ** 2
    problem = SoftMargin(K, [1, -1], np.inf)
    (route,) = (way for way in problem.formulations() if way.name == formulation)
    form = route.build()
    ray = np.zeros(form.c.size)
    ray[:2] = 1.0
    answer = klopt.Answer(klopt.Stop.UNBOUNDED, np.zeros(form.c.size), ray=ray)
    certificate, _ = certify(problem, route, form, answer, 1e-6)
    assert certificate.verdict is not klopt.Verdict.INFEASIBLE

    same = SoftMargin(np.full((2, 2), k), [1, -1], np.inf)
    assert same.proves_infeasible(Point({"alpha": [1.0, 1.0]}))
    assert not same.proves_infeasible(Point({"alpha": [1.0, 0.0]}))
    assert not SoftMargin(np.full((2, 2), k), [1, -1], 1.0).proves_infeasible(
        Point({"alpha": [1.0, 1.0]})
    )
