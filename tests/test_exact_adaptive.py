"""Both ends of a data-adaptive kernel hold in exact arithmetic; truth from rationals and 60 digits.

Two points x, x' with K(x, x) = K(x', x') = k, K(x, x') = c and a bias have a = (t, -t), so that the
eigenvectors of 11' + Gamma are (1, 1) and (1, -1) and the value is a rational function of t, concave
where K is positive semidefinite: bisection encloses the optimum. One point without a bias likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction as Q
from itertools import product
from math import fsum

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from strategies import radial_gram, signs

import klopt
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Bracket, Point
from klopt.problems import AdaptiveKernel, AdaptiveKernelRegression
from klopt.problems._adaptive.proof import FeatureProducts, MatrixProducts, sharp_product

Value = Callable[[Q], Q]
seeds = st.integers(0, 2**32 - 1)
powers = st.integers(-50, 50).map(lambda e: 2.0**e)
sizes = st.builds(lambda m, e: m * e, st.floats(1.0, 2.0), powers)
taus = st.one_of(st.just(0.0), st.floats(1e-9, 6.0))


# --- the optimum by bisection


def enclosed(value: Value, slope: Value, low: Q, high: Q) -> tuple[Q, Q]:
    """Bounds of the maximum of a concave function over [low, high]."""
    if slope(low) <= 0:
        return value(low), value(low)
    if slope(high) >= 0:
        return value(high), value(high)
    for _ in range(120):
        middle = (low + high) / 2
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return value(low), value(low) + slope(low) * (high - low)


def of_two(k: float, c: float, eta: float, tau: float) -> tuple[Value, Value]:
    """g(t, -t) and its derivative for two points."""
    e, half = Q(eta), Q(tau) / 2
    across, along = (Q(k) + Q(c)) / (4 * e), (Q(k) - Q(c)) / (4 * e)

    # Gamma has K_12 with the sign of a_1 a_2: (1, 1) goes with k - c.
    def parts(t: Q) -> tuple[Q, Q]:
        return max(2 + t * t * along - half, Q(0)), max(t * t * across - half, Q(0))

    def g(t: Q) -> Q:
        one, other = parts(t)
        return e * (one * one + other * other - 4)

    def slope(t: Q) -> Q:
        one, other = parts(t)
        return 4 * e * t * (one * along + other * across)

    return g, slope


def of_one(k: float, eta: float, tau: float) -> tuple[Value, Value]:
    """g(t) and its derivative for one point."""
    e, half, rate = Q(eta), Q(tau) / 2, Q(k) / (4 * Q(eta))

    def part(t: Q) -> Q:
        return max(1 + t * t * rate - half, Q(0))

    return lambda t: e * (part(t) ** 2 - 1), lambda t: 4 * e * t * part(t) * rate


def maximum(g: tuple[Value, Value], gain: Q, box: float) -> tuple[Q, Q]:
    """Bounds of the maximum of gain t - g(t) over 0 <= t <= box."""
    value, slope = g
    return enclosed(lambda t: gain * t - value(t), lambda t: gain - slope(t), Q(0), Q(box))


def holds(bracket: Bracket, truth: tuple[Q, Q]) -> bool:
    """Whether neither end is beyond the optimum."""
    low, high = truth
    below = bracket.lower == -np.inf or Q(bracket.lower) <= high
    above = bracket.upper == np.inf or Q(bracket.upper) >= low
    return below and above


def is_sharp(bracket: Bracket, truth: tuple[Q, Q], share: float) -> bool:
    size = 1 + abs(float(truth[0]))
    return bracket.upper - bracket.lower <= share * size


# --- two points and a bias


@given(sizes, st.integers(0, 52), sizes, sizes, taus, st.floats(-3.0, 3.0), st.booleans())
@example(1.0, 48, 1e11, 1e45, 0.0, 1.0, False)
@example(1.0, 0, 1e-10, 1e10, 1e-9, 1e300, True)
def test_both_ends_hold_for_two_points(
    k: float, near: int, C: float, eta: float, tau: float, share: float, opposite: bool
) -> None:
    c = k - k * 2.0**-near
    assume(C * k <= 1e17)
    if opposite:
        c = -c
    truth = maximum(of_two(k, c, eta, tau), Q(2), C)
    problem = AdaptiveKernel([[k, c], [c, k]], [1, -1], C, eta, tau)
    for size in (0.0, 1.0, 0.5, share):
        for t in (C, 1 / k):
            point = Point({"alpha": np.array([size * t, size * t * (1 + 1e-9)])})
            assert holds(problem.bracket(point), truth)


@given(
    sizes, st.integers(1, 50), sizes, st.floats(0.0, 2.0), sizes, taus, st.floats(-1e6, 1e6), seeds
)
def test_both_ends_hold_for_the_regression_of_two_points(
    k: float, near: int, C: float, epsilon: float, eta: float, tau: float, middle: float, seed: int
) -> None:
    assume(C * k <= 1e17)
    c = k - k * 2.0**-near
    rng = np.random.default_rng(seed)
    y = middle + rng.normal(size=2)
    y.sort()
    gain = Q(y[1]) - Q(y[0]) - 2 * Q(epsilon)
    truth = maximum(of_two(k, c, eta, tau), gain, C)
    problem = AdaptiveKernelRegression([[k, c], [c, k]], y, C, epsilon, eta, tau)
    for t in (0.0, C, 0.3 * C, 1 / k, -C, 1e300):
        beta = np.array([-t, t * (1 + 1e-10)])
        assert holds(problem.bracket(Point({"beta": beta})), truth)


@pytest.mark.parametrize("C", [1e3, 1e11, 1e16])
@pytest.mark.parametrize("near", [1e-3, 1e-12, 2.0**-48])
def test_without_a_price_to_pay_it_is_the_plain_machine(C: float, near: float) -> None:
    """eta so large that F = 11': a = min(C, 1 / (1 - k)), two near-coincident points of both classes."""
    k = 1 - near
    a = min(Q(C), 1 / (1 - Q(k)))
    plain = 2 * a - a * a * (1 - Q(k))
    eta = 2.0**330
    truth = maximum(of_two(1.0, k, eta, 0.0), Q(2), C)
    assert abs(truth[0] - plain) <= plain * Q(1, 10**30)
    result = klopt.solve(AdaptiveKernel([[1, k], [k, 1]], [-1, 1], C, eta)).require()
    assert Q(result.lower) <= truth[1]
    assert truth[0] <= Q(result.upper)


@given(st.floats(0.5, 2.0), st.floats(0.1, 0.9), st.floats(0.1, 10.0), st.floats(0.1, 10.0), taus)
def test_solutions_of_two_points_are_enclosed_narrowly(
    k: float, share: float, C: float, eta: float, tau: float
) -> None:
    c = share * k
    truth = maximum(of_two(k, c, eta, tau), Q(2), C)
    result = klopt.solve(AdaptiveKernel([[k, c], [c, k]], [1, -1], C, eta, tau), tol=1e-9)
    bracket = Bracket(result.lower, result.upper, result.point)
    assert holds(bracket, truth)
    assert is_sharp(bracket, truth, 1e-9)


@pytest.mark.parametrize("tau", [0.0, 1e-6])
@pytest.mark.parametrize("share", [0.0, 1e-9, 1.0])
def test_a_kernel_that_is_indefinite_by_rounding_is_taken_as_stored(
    tau: float, share: float
) -> None:
    """-k + c > 0: the value grows with t beyond what a convex problem could have."""
    C, eta, c = 1e12, 2.0**200, 1 + 2.0**-52
    g, _ = of_two(1.0, c, eta, tau)
    problem = AdaptiveKernel([[1.0, c], [c, 1.0]], [1, -1], C, eta, tau)
    assert problem.K.floor < 0
    bracket = problem.bracket(Point({"alpha": np.full(2, share * C)}))
    t = Q(C)
    best = 2 * t - g(t)
    if not tau:
        assert best > 2 * t
    assert Q(bracket.lower) <= best <= Q(bracket.upper)


# --- one point without a bias, by its kernel and by its features


@given(st.integers(-40, 40), sizes, sizes, taus, st.floats(-2.0, 2.0))
def test_both_ends_hold_for_one_point(
    e: int, C: float, eta: float, tau: float, share: float
) -> None:
    phi = 1.5 * 2.0**e
    k = phi * phi
    assume(C * k <= 1e17)
    truth = maximum(of_one(k, eta, tau), Q(1), C)
    for kernel in ([[k]], LowRank([[phi]])):
        problem = AdaptiveKernel(kernel, [1], C, eta, tau, bias=False)
        for t in (0.0, share * C, C, share / k):
            assert holds(problem.bracket(Point({"alpha": np.array([t])})), truth)


# --- more points: the value at the point of the bracket


def exact_value(problem: AdaptiveKernel | AdaptiveKernelRegression, a: np.ndarray) -> mpmath.mpf:
    """gain(a) - g(a) with 60 digits, from the eigenvalues of the whole matrix."""
    with mpmath.workdps(60):
        n = a.size
        exact = [mpmath.mpf(float(x)) for x in a]
        if isinstance(problem.K, LowRank):
            Phi = mpmath.matrix(problem.K.Phi.tolist())
            K = Phi * Phi.T
        else:
            K = mpmath.matrix(problem.K.matrix.tolist())
        eta, half = mpmath.mpf(problem.eta), mpmath.mpf(problem.tau) / 2
        M = mpmath.matrix(n, n)
        for i, j in product(range(n), range(n)):
            M[i, j] = 1 + exact[i] * exact[j] * K[i, j] / (4 * eta) - (half if i == j else 0)
        values = mpmath.eigsy(M, eigvals_only=True)
        g = eta * (sum((max(w, 0) ** 2 for w in values), mpmath.mpf(0)) - n * n)
        gain = sum(
            (mpmath.mpf(float(t)) * x for t, x in zip(problem.y, exact, strict=True)), mpmath.mpf(0)
        )
        if isinstance(problem, AdaptiveKernelRegression):
            gain -= mpmath.mpf(problem.epsilon) * sum(map(abs, exact))
        return gain - g


def made(
    seed: int, tau: float, C: float, eta: float, bias: bool, kind: str
) -> AdaptiveKernel | AdaptiveKernelRegression:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    Phi = rng.normal(size=(n, 3))
    K = LowRank(Phi) if kind == "features" else radial_gram(rng, n)
    if kind == "singular":
        K = np.outer(Phi[:, 0], Phi[:, 0])
    if kind == "regression":
        return AdaptiveKernelRegression(K, 1e3 + rng.normal(size=n), C, 0.1, eta, tau, bias)
    return AdaptiveKernel(K, signs(rng, n), C, eta, tau, bias)


@given(
    seeds,
    st.sampled_from([0.0, 1e-6, 0.02, 1.0, 20.0]),
    st.sampled_from([1e-8, 0.3, 1.0, 1e5]),
    st.sampled_from([1e-6, 1.0, 1e9]),
    st.booleans(),
    st.sampled_from(["matrix", "singular", "features", "regression"]),
)
def test_ends_are_on_their_side_of_exact_values(
    seed: int, tau: float, C: float, eta: float, bias: bool, kind: str
) -> None:
    problem = made(seed, tau, C, eta, bias, kind)
    rng = np.random.default_rng(seed + 1)
    n = problem.y.size
    name = "beta" if kind == "regression" else "alpha"
    brackets = [
        problem.bracket(Point({name: size * C * rng.uniform(-0.2, 1.0, n)}))
        for size in (0.0, 1e-3, 1.0, 1e12)
    ]
    values = []
    for bracket in brackets:
        a = problem.machine.coefficients(bracket.point)
        if bias:
            assert fsum(a) == 0.0
        assert (np.abs(a) <= C).all()
        value = exact_value(problem, a)
        # 60 digits of eta n^2 are what the truth itself is known to.
        known_to = mpmath.mpf(10) ** -50 * eta * n * n
        assert mpmath.mpf(bracket.lower) <= value + known_to
        values.append(value - known_to)
    best = max(values)
    for bracket in brackets:
        assert mpmath.mpf(bracket.upper) >= best


# --- forged witnesses


@given(seeds, st.sampled_from([0.0, 0.3]), st.sampled_from([1.0, 1e-3, 1e6]))
def test_no_witness_moves_an_end_beyond_the_optimum(seed: int, tau: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    k, c, C, eta = 1.0, 0.25, 2.0, 1.0
    truth = maximum(of_two(k, c, eta, tau), Q(2), C)
    problem = AdaptiveKernel([[k, c], [c, k]], [1, -1], C, eta, tau)
    t = rng.uniform(0, 2.0)
    arrays = {
        "machine": size * rng.normal(size=2),
        "offset": size * rng.normal(size=()),
        "scale": size * rng.normal(size=()),
        "V": size * rng.normal(size=(2, 2)),
        "f": size * np.abs(rng.normal(size=2)),
    }
    for alpha in ([t, t], [t, t + 1e-16], [t, 2 * t], [-t, -t], [5.0, 5.0], [np.nan, t]):
        assert holds(problem.proof(Point({"alpha": np.array(alpha)}, arrays)), truth)


@pytest.mark.parametrize("alpha", [[0.5, 0.5000001], [3.0, 3.0], [-0.5, -0.5], [np.inf, np.inf]])
@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_an_infeasible_point_is_no_lower_bound(alpha: list[float], tau: float) -> None:
    problem = AdaptiveKernel([[1, 0.5], [0.5, 1]], [1, -1], 2.0, 1.0, tau)
    good = problem.witness(Point({"alpha": np.array([0.5, 0.5])}))
    assert np.isfinite(problem.proof(good).lower)
    bad = problem.proof(Point({"alpha": np.array(alpha)}, dict(good.dual)))
    assert bad.lower == -np.inf


@pytest.mark.parametrize("name", ["V", "f"])
@pytest.mark.parametrize("change", [np.nan, -1.0])
def test_eigenvectors_that_are_none_prove_nothing_false(name: str, change: float) -> None:
    problem = AdaptiveKernel([[1, 0.5], [0.5, 1]], [1, -1], 2.0, 1.0, 0.1)
    good = problem.witness(Point({"alpha": np.array([0.5, 0.5])}))
    truth = maximum(of_two(1.0, 0.5, 1.0, 0.1), Q(2), 2.0)
    bad = problem.proof(Point(good.primal, {**good.dual, name: good.dual[name] * change}))
    assert holds(bad, truth)
    if name == "f" or np.isnan(change):
        assert bad.upper == np.inf


def test_a_bracket_is_the_proof_of_its_witness_and_names_its_lemmas() -> None:
    problem = AdaptiveKernel([[1, 0.5], [0.5, 1]], [1, -1], 2.0, 1.0)
    point = Point({"alpha": np.array([0.7, 0.6])})
    bracket, proven = problem.bracket(point), problem.proof(problem.witness(point))
    assert (bracket.lower, bracket.upper) == (proven.lower, proven.upper)
    assert bracket.lower_by
    assert bracket.upper_by


# --- the products


@given(
    seeds,
    st.sampled_from([1e-60, 1e-9, 1.0, 1e30]),
    st.sampled_from([1e-20, 1.0, 1e20]),
    st.integers(0, 5),
)
def test_products_enclose_those_of_rationals(
    seed: int, scale: float, size: float, zeros: int
) -> None:
    rng = np.random.default_rng(seed)
    Phi = scale * rng.normal(size=(6, 2))
    a, b = size * rng.normal(size=(2, 6))
    a[rng.permutation(6)[:zeros]] = 0.0
    K = scale * radial_gram(rng, 6)
    rows = [[Q(x) for x in row] for row in Phi.tolist()]
    by_features = [[sum(x * z for x, z in zip(p, q, strict=True)) for q in rows] for p in rows]
    by_matrix = [[Q(x) for x in row] for row in K.tolist()]
    for products, exact in (
        (FeatureProducts(Phi), by_features),
        (MatrixProducts(klopt.Gram.of(K)), by_matrix),
    ):
        linear, squares = products.times(b), products.times_squares(a, b)
        support = np.flatnonzero(a)
        on_support = products.times_squares(a, b, support)
        sharp = products.sharp_times(b)
        assert sharp is not None
        for i, row in enumerate(exact):
            true = sum((x * Q(z) for x, z in zip(row, b.tolist(), strict=True)), Q(0))
            square = sum(
                (x * x * Q(w) * Q(z) for x, w, z in zip(row, a.tolist(), b.tolist(), strict=True)),
                Q(0),
            )
            for found, truth in ((linear, true), (sharp, true), (squares, square)):
                assert Q(float(found.lower[i])) <= truth <= Q(float(found.upper[i]))
            if a[i]:
                at = int(np.searchsorted(support, i))
                assert Q(float(on_support.lower[at])) <= square <= Q(float(on_support.upper[at]))
        assert (
            squares.rad <= 1e-13 * products.diagonal * float(products.diagonal @ np.abs(a * b))
        ).all()


def test_coefficients_too_small_to_count_leave_both_ends_where_they_are() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(40, 3)) + y[:, None]
    problem = AdaptiveKernel(LowRank(X), y, 1.0, 0.5)
    result = klopt.solve(problem, tol=1e-9).require()
    alpha = result.point.alpha
    unused = alpha < 1e-7
    assert 10 < np.count_nonzero(unused) < 40
    # As an interior-point method leaves them.
    dust = np.where(unused, 1e-10 * rng.random(40), alpha)
    bracket = problem.bracket(Point({"alpha": dust}))
    assert not bracket.point.alpha[unused].any()
    assert bracket.upper - bracket.lower <= 1e-9 * (1 + abs(bracket.upper))


@given(seeds, st.integers(1, 40))
def test_sharp_products_keep_the_digits_that_cancellation_leaves(seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(3, 3))
    v = rng.normal(size=3) * 2.0 ** rng.integers(-digits, digits, 3)
    K[:, 2] = -(K[:, 0] * v[0] + K[:, 1] * v[1]) / v[2]
    found = sharp_product(K, v)
    for i in range(3):
        true = sum((Q(x) * Q(z) for x, z in zip(K[i].tolist(), v.tolist(), strict=True)), Q(0))
        assert Q(float(found.lower[i])) <= true <= Q(float(found.upper[i]))
        assert Q(float(found.rad[i])) <= abs(true) * Q(1, 2**50) + Q(2) ** -800


# --- screening


@given(
    st.integers(-6, 6), st.floats(0.01, 20.0), st.floats(0.01, 100.0), taus, st.floats(-0.1, 1.1)
)
def test_screening_of_one_point_is_true(
    e: int, C: float, eta: float, tau: float, share: float
) -> None:
    k = 2.25 * 4.0**e
    _, slope = of_one(k, eta, tau)
    problem = AdaptiveKernel([[k]], [1], C, eta, tau, bias=False)
    low, high = Q(0), Q(C)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 1 else (low, middle)
    for t in (share * C, float(low), float(high)):
        zero, full = problem.screen(Point({"alpha": np.array([t])}))
        assert not zero[0]
        assert not full[0] or slope(Q(C)) <= 1


@given(seeds, st.sampled_from([0.0, 0.1]))
def test_the_gradient_encloses_that_of_the_positive_part(seed: int, tau: float) -> None:
    problem = made(seed, tau, 1.0, 0.7, False, "matrix")
    n = problem.y.size
    witness = problem.witness(Point({"alpha": np.random.default_rng(seed).uniform(0, 1, n)}))
    found = problem.machine.proof.gradient(witness)
    assert found is not None
    a = problem.machine.coefficients(witness)
    with mpmath.workdps(50):
        K = mpmath.matrix(problem.K.matrix.tolist())
        x = [mpmath.mpf(float(t)) for t in a]
        M = mpmath.matrix(n, n)
        for i, j in product(range(n), range(n)):
            M[i, j] = 1 + x[i] * x[j] * K[i, j] / (4 * mpmath.mpf(0.7))
        w, V = mpmath.eigsy(M)
        half = mpmath.mpf(tau) / 2
        for i in range(n):
            exact = mpmath.mpf(0)
            for j, m in product(range(n), range(n)):
                exact += max(w[m] - half, 0) * V[i, m] * V[j, m] * K[i, j] * x[j]
            assert mpmath.mpf(float(found.lower[i])) <= exact <= mpmath.mpf(float(found.upper[i]))
    assert float(found.rad.max()) <= 1e-5
