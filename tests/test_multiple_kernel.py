"""Multiple kernel learning: the two meanings of the best mixture, their duality, their limits, bad data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import at_most, gram, radial_gram

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.model.problem import Point
from klopt.model.sets import BoxPlane
from klopt.problems import MultipleKernel, SoftMargin
from klopt.problems._mkl.function import KernelNorm, WeightGame
from klopt.problems._mkl.proof import dual_norm, weights_of
from klopt.problems._mkl.weights import HingeOptimalValue
from klopt.proof.certificate import Verdict

NORMS = ["block-l1", "block-linf", 2.0, 1.5, 4.0]
LOSSES = ["hinge", "squared"]
seeds = st.integers(0, 2**32 - 1)


def kernels(seed: int, n: int, m: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Gaussian kernels of different points, so that none is like another, and labels of both classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    return [radial_gram(rng, n, 2 + i) + 0.1 * np.eye(n) for i in range(m)], y


def optimum(problem: klopt.model.problem.Problem, tol: float = 1e-8) -> klopt.Result:
    return klopt.solve(problem, tol=tol).require()


def same(one: klopt.Result, other: klopt.Result) -> bool:
    """Whether the brackets overlap: two ways to the same optimum."""
    return max(one.lower, other.lower) <= min(one.upper, other.upper) + 1e-12 * (1 + abs(one.upper))


# --- what the problem reduces to


@pytest.mark.parametrize("norm", NORMS)
def test_one_kernel_is_the_support_vector_machine(norm: str | float) -> None:
    (K,), y = kernels(0, 25, 1)
    assert same(optimum(MultipleKernel([K], y, 2.0, norm=norm)), optimum(SoftMargin(K, y, 2.0)))


def test_identical_kernels_are_one_of_them_or_its_multiple() -> None:
    (K,), y = kernels(1, 20, 1)
    single, triple = [K], [K, K, K]
    assert same(optimum(MultipleKernel(triple, y, 1.0)), optimum(MultipleKernel(single, y, 1.0)))
    many = optimum(MultipleKernel(triple, y, 1.0, norm="block-linf"))
    assert same(many, optimum(SoftMargin(9 * K, y, 1.0)))  # (3 r)^2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("norm", NORMS)
def test_a_zero_kernel_changes_nothing_and_has_no_weight(norm: str | float, loss: str) -> None:
    K, y = kernels(2, 15, 2)
    with_zero = optimum(MultipleKernel([K[0], 0 * K[0], K[1]], y, 1.0, loss, norm))
    assert same(with_zero, optimum(MultipleKernel(K, y, 1.0, loss, norm)))
    assert with_zero.point.weights[1] == 0


@pytest.mark.parametrize("norm", NORMS)
def test_zero_kernels_alone_leave_the_trivial_svm(norm: str | float) -> None:
    y = np.array([1.0, -1.0, 1.0])
    assert optimum(
        MultipleKernel([np.zeros((3, 3))] * 2, y, 0.5, norm=norm)
    ).value == pytest.approx(1.0)
    assert optimum(
        MultipleKernel([np.zeros((3, 3))] * 2, y, 0.5, "squared", norm)
    ).value == pytest.approx(0.75)


def test_exponent_two_is_the_sum_of_the_kernels() -> None:
    K, y = kernels(3, 25, 3)
    assert same(optimum(MultipleKernel(K, y, 3.0, norm=2.0)), optimum(SoftMargin(sum(K), y, 3.0)))
    squared = optimum(MultipleKernel(K, y, 3.0, "squared", 2.0))
    assert squared.value == pytest.approx(
        y @ np.linalg.solve(sum(K) + np.eye(25) / 3, y) / 2, rel=1e-8
    )


@given(seeds)
@at_most(10)
def test_the_learned_kernel_gives_one_svm_the_same_value(seed: int) -> None:
    K, y = kernels(seed, 12, 3)
    for norm in NORMS:
        problem = MultipleKernel(K, y, 2.0, norm=norm)
        result = optimum(problem)
        alone = optimum(SoftMargin(Gram.of(problem.kernel(result.point)), y, 2.0))
        assert alone.value == pytest.approx(result.value, rel=1e-5)


# --- the two meanings


def test_weights_of_block_l1_and_inverse_weights_of_block_linf_add_up_to_one() -> None:
    K, y = kernels(4, 30, 4)
    assert optimum(MultipleKernel(K, y, 1.0)).point.weights.sum() == pytest.approx(1.0)
    assert (
        1 / optimum(MultipleKernel(K, y, 1.0, norm="block-linf")).point.weights
    ).sum() == pytest.approx(1.0)


@given(seeds, st.floats(0.1, 10))
@at_most(15)
def test_block_l1_is_above_block_linf_and_values_fall_with_the_exponent(
    seed: int, C: float
) -> None:
    K, y = kernels(seed, 10, 3)
    values = [
        optimum(MultipleKernel(K, y, C, norm=norm)).value
        for norm in ("block-l1", 1.5, 2.0, 4.0, "block-linf")
    ]
    assert all(low <= high * (1 + 1e-7) for high, low in pairwise(values))


def test_block_l1_is_not_convex_in_the_kernels_and_block_linf_is() -> None:
    # n = 2, y = (1, -1): only k = (1, -1)K(1, -1)' matters. (5) gives 2 / max k, (10) gives 2 /
    # (sum root k)^2.
    def value(k1: float, k2: float, norm: str) -> float:
        return optimum(
            MultipleKernel([k1 / 2 * np.eye(2), k2 / 2 * np.eye(2)], [1, -1], 100.0, norm=norm)
        ).value

    ends = [value(2.0, 0.5, "block-l1"), value(0.5, 2.0, "block-l1")]
    assert ends == pytest.approx([1.0, 1.0])
    assert value(1.25, 1.25, "block-l1") == pytest.approx(1.6)
    middle = value(1.25, 1.25, "block-linf")
    assert middle <= (value(2.0, 0.5, "block-linf") + value(0.5, 2.0, "block-linf")) / 2


def test_gamma_in_closed_form_is_the_best_of_many() -> None:
    K, y = kernels(5, 15, 3)
    problem = MultipleKernel(K, y, 1.0, norm="block-linf")
    result = optimum(problem)
    a = y * result.point.alpha
    q = np.array([a @ k @ a for k in K])
    np.testing.assert_allclose(1 / result.point.weights, np.sqrt(q) / np.sqrt(q).sum(), rtol=1e-6)
    others = np.random.default_rng(0).dirichlet(np.ones(3), 2000)
    assert ((q / others).sum(axis=1) >= (q * result.point.weights).sum() * (1 - 1e-9)).all()


def test_squared_loss_is_least_at_the_best_weights_and_has_no_best_kernel_without_their_bound() -> (
    None
):
    K, y = kernels(6, 12, 2)
    result = optimum(MultipleKernel(K, y, 2.0, "squared"))

    def fit(weights: np.ndarray) -> float:
        return float(
            y @ np.linalg.solve(weights[0] * K[0] + weights[1] * K[1] + np.eye(12) / 2, y) / 2
        )

    grid = [fit(np.array([t, 1 - t])) for t in np.linspace(0, 1, 201)]
    assert result.value <= min(grid) * (1 + 1e-9)
    assert fit(result.point.weights) == pytest.approx(result.value, rel=1e-6)
    larger = [fit(t * result.point.weights) for t in (1.0, 1e3, 1e6)]
    assert (
        larger[0] > 100 * larger[1] > 1e4 * larger[2]
    )  # (4) of Mao and Tsang (2010) without a bound: the infimum is 0


# --- the optimal value as a function of the weights


def optimal_value(seed: int, n: int, m: int, C: float) -> tuple[HingeOptimalValue, SoftMargin]:
    K, y = kernels(seed, n, m)
    corner = C * y
    domain = BoxPlane(np.minimum(corner, 0.0), np.maximum(corner, 0.0), np.ones(n))
    return HingeOptimalValue(
        KernelNorm(tuple(K), np.zeros(m), y, np.inf, 1.0, 0.0), domain=domain
    ), SoftMargin(K[0], y, C)


@given(seeds, st.sampled_from([0.01, 0.3, 1.0, 100.0]))
@at_most(10)
def test_the_optimal_value_of_weights_is_that_of_the_svm_of_their_mixture(
    seed: int, C: float
) -> None:
    found, _ = optimal_value(seed, 14, 3, C)
    for theta in np.random.default_rng(seed).dirichlet(np.ones(3), 4):
        mixture = sum(w * K for w, K in zip(theta, found.norm.kernels, strict=True))
        alone = optimum(SoftMargin(Gram.of(mixture), found.norm.y, C))
        assert found.near(theta).value == pytest.approx(alone.value, rel=1e-7)
        assert found.domain.violation(found.solution(theta).a) < 1e-12


@given(seeds, st.sampled_from([0.3, 1.0, 100.0]))
@at_most(15)
def test_gradients_and_curvature_in_the_weights_are_those_of_finite_differences(
    seed: int, C: float
) -> None:
    found, _ = optimal_value(seed, 12, 3, C)
    rng = np.random.default_rng(seed)
    theta, way, step = rng.dirichlet(np.full(3, 3.0)), rng.normal(size=3), 1e-5
    here, left, right = (found.near(theta + t * way) for t in (0.0, -step, step))
    assert (right.value - left.value) / (2 * step) == pytest.approx(
        here.gradient @ way, rel=1e-5, abs=1e-7
    )
    faces = [found.solution(theta + t * way).free for t in (0.0, -step, step)]
    if all(np.array_equal(face, faces[0]) for face in faces):  # elsewhere the gradient has a kink
        difference = (right.gradient - left.gradient) / (2 * step)
        np.testing.assert_allclose(difference, here.curvature() @ way, rtol=1e-3, atol=1e-5)


@given(seeds)
@at_most(10)
def test_any_a_however_inexact_is_a_cut_below_the_optimal_value(seed: int) -> None:
    found, _ = optimal_value(seed, 10, 3, 1.0)
    rng = np.random.default_rng(seed)
    a = found.domain.project(rng.normal(size=10))
    game = WeightGame(found.norm)
    for theta in rng.dirichlet(np.ones(3), 5):
        assert game.value(theta, a) <= found.near(theta).value + 1e-9


def test_a_face_that_runs_in_circles_is_found_by_interior_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("klopt.problems._mkl.weights.MAX_FACES", 0)
    found, one = optimal_value(3, 20, 2, 1.0)
    assert found.near(np.array([1.0, 0.0])).value == pytest.approx(optimum(one).value, rel=1e-8)
    curvature = found.near(np.array([0.5, 0.5])).curvature()
    assert np.linalg.eigvalsh(curvature)[0] >= -1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_weights_and_cuts_lead_to_the_same_optimum_of_block_l1(loss: str, C: float) -> None:
    K, y = kernels(11, 60, 4)
    problem = MultipleKernel(K, y, C, loss)
    best = klopt.solve(problem, "newton", formulation="weights", tol=1e-8).require()
    assert best.iterations <= 12
    cuts = klopt.solve(problem, "cutting_planes", formulation="cutting planes", tol=1e-6).require()
    cone = klopt.solve(problem, "clarabel", formulation="SOCP", tol=1e-6).require()
    assert same(cuts, best)
    assert same(cone, best)


def test_cuts_of_mirror_descent_prove_both_sides_too() -> None:
    K, y = kernels(12, 20, 3)
    problem = MultipleKernel(K, y, 1.0)
    result = klopt.solve(
        problem, "mirror_descent", formulation="cutting planes", tol=1e-2, max_iter=2000
    ).require()
    assert same(result, optimum(problem))


# --- brackets


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_routes_prove_the_same_optimum(norm: str | float, loss: str) -> None:
    K, y = kernels(7, 14, 3)
    problem = MultipleKernel(K, y, 1.5, loss, norm)
    found = []
    for route in klopt.plan(problem).routes:
        if route.backend.rank < 40:
            result = klopt.solve(
                problem, backend=route.backend, formulation=route.formulation.name, tol=1e-6
            )
            assert result.verdict is Verdict.OPTIMAL, result.explain()
            found.append(result)
    assert len(found) >= 2
    assert all(same(result, found[0]) for result in found)


def test_the_game_between_weights_and_coefficients_has_the_same_value() -> None:
    K, y = kernels(8, 10, 3)
    problem = MultipleKernel(K, y, 1.0)
    game = klopt.solve(problem, "mirror_prox", formulation="saddle", tol=1e-6).require()
    assert same(game, optimum(problem))


@given(seeds, st.sampled_from(NORMS), st.sampled_from(LOSSES))
def test_any_point_and_any_weights_bracket_the_optimum(
    seed: int, norm: str | float, loss: str
) -> None:
    rng = np.random.default_rng(seed)
    K, y = kernels(seed % 5, 8, 3)
    problem = MultipleKernel(K, y, 1.0, loss, norm)
    best = optimum(problem)
    for size in (0.0, 0.1, 1.0, 100.0):
        point = Point({"alpha": size * rng.normal(size=8), "weights": rng.normal(size=3)})
        bracket = problem.bracket(point)
        assert bracket.lower <= best.upper
        assert bracket.upper >= best.lower
        coefficients = Point(point.primal, {"coefficients": size * rng.normal(size=(3, 8))})
        assert problem.bracket(coefficients).upper >= best.lower


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_point_that_is_not_finite_still_brackets(bad: float) -> None:
    problem = MultipleKernel.sample(np.random.default_rng(0), 6)
    bracket = problem.bracket(Point({"alpha": np.full(6, bad), "weights": np.full(3, bad)}))
    assert np.isfinite([bracket.lower, bracket.upper]).all()


# --- laws


@given(
    seeds, st.sampled_from(NORMS), st.sampled_from(LOSSES), st.sampled_from([1e-8, 1e-3, 7.0, 1e8])
)
@at_most(15)
def test_kernels_times_c_and_penalty_over_c_divide_the_value_by_c(
    seed: int, norm: str | float, loss: str, c: float
) -> None:
    K, y = kernels(seed, 8, 2)
    one = optimum(MultipleKernel(K, y, 1.0, loss, norm), 1e-9)
    other = optimum(MultipleKernel([c * k for k in K], y, 1.0 / c, loss, norm), 1e-9)
    assert other.value * c == pytest.approx(one.value, rel=1e-6)


@given(seeds, st.sampled_from(NORMS))
@at_most(10)
def test_the_order_of_points_and_kernels_does_not_matter(seed: int, norm: str | float) -> None:
    rng = np.random.default_rng(seed)
    K, y = kernels(seed, 9, 3)
    points, order = rng.permutation(9), rng.permutation(3)
    one = optimum(MultipleKernel(K, y, 1.0, norm=norm))
    other = optimum(
        MultipleKernel([K[i][np.ix_(points, points)] for i in order], y[points], 1.0, norm=norm)
    )
    assert same(one, other)
    np.testing.assert_allclose(other.point.weights, one.point.weights[order], rtol=1e-2, atol=1e-3)


@given(seeds, st.sampled_from([1.0, 1.3, 2.0, 3.0, 10.0]), st.sampled_from([0.0, 0.5]))
def test_gradient_and_hessian_are_those_of_finite_differences(
    seed: int, s: float, ridge: float
) -> None:
    rng = np.random.default_rng(seed)
    K, y = kernels(seed, 7, 3)
    f = KernelNorm(tuple(K), np.ones(3), y, s, 0.5, ridge)
    a, d = rng.normal(size=7), rng.normal(size=7)
    here, step = f.near(a), 1e-5
    left, right = f.near(a - step * d), f.near(a + step * d)
    assert (right.value - left.value) / (2 * step) == pytest.approx(
        here.gradient @ d, rel=1e-6, abs=1e-7
    )
    np.testing.assert_allclose(
        (right.gradient - left.gradient) / (2 * step), here.curvature() @ d, rtol=1e-4, atol=1e-5
    )
    assert np.linalg.eigvalsh(here.curvature())[0] >= -1e-10


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.floats(1, 20))
def test_weights_add_the_squares_up_to_the_square_of_the_norm(r: list[float], s: float) -> None:
    sizes = np.array(r)
    assert weights_of(sizes, s) @ sizes**2 == pytest.approx(dual_norm(sizes, s) ** 2, rel=1e-9)


# --- rank, size, speed


@pytest.mark.parametrize("loss", LOSSES)
def test_kernels_whose_form_vanishes_at_the_optimum_are_certified(loss: str) -> None:
    # A linear and a radial kernel: with block-linf the best a is orthogonal to the few features of
    # the linear one.
    rng = np.random.default_rng(0)
    K = [gram(rng, 30, 4), radial_gram(rng, 30)]
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    assert (
        klopt.solve(MultipleKernel(K, y, 1.0, loss, "block-linf"), tol=2e-6).verdict
        is Verdict.OPTIMAL
    )


def test_newton_takes_a_handful_of_steps() -> None:
    K, y = kernels(9, 120, 4)
    for loss in LOSSES:
        for norm in ("block-linf", 1.5, 4.0):
            result = klopt.solve(
                MultipleKernel(K, y, 5.0, loss, norm), "newton", tol=1e-8
            ).require()
            assert result.iterations <= 8


def test_two_points_are_enough() -> None:
    for norm in NORMS:
        assert (
            optimum(MultipleKernel([np.eye(2), 2 * np.eye(2)], [1, -1], 10.0, norm=norm)).value > 0
        )


# --- data


def test_stacked_kernels_are_a_list_of_kernels() -> None:
    K, y = kernels(10, 8, 3)
    assert same(optimum(MultipleKernel(np.dstack(K), y, 1.0)), optimum(MultipleKernel(K, y, 1.0)))


I2 = np.eye(2)
PAIR = (1.0, -1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], PAIR, 1.0), "kernels is empty; give one kernel at least"),
        ((np.zeros((2, 2, 0)), PAIR, 1.0), "kernels is empty"),
        ((np.zeros((7, 2, 2)), PAIR, 1.0), "with the kernels first; expected .*moveaxis"),
        ((I2, PAIR, 1.0), r"kernels is a ndarray of shape \(2, 2\); expected a list"),
        (("K", PAIR, 1.0), "kernels is a str; expected a list"),
        (
            ([np.ones((2, 3))], PAIR, 1.0),
            r"kernels\[0\] has shape \(2, 3\); expected a square matrix",
        ),
        (([I2, np.ones((2, 3))], PAIR, 1.0), r"kernels\[1\] is 2 x 3; expected 2 x 2"),
        (([I2, np.eye(3)], PAIR, 1.0), r"kernels\[1\] is 3 x 3; expected 2 x 2"),
        (([I2, [[1.0, 0.5], [0.4, 1.0]]], PAIR, 1.0), r"kernels\[1\] is not symmetric"),
        (([I2, [[1.0, np.inf], [np.inf, 1.0]]], PAIR, 1.0), r"kernels\[1\]\[0, 1\] is inf"),
        (([I2, [[1.0, 2.0], [2.0, 1.0]]], PAIR, 1.0), r"kernels\[1\] is not positive semidefinite"),
        (([I2, [[1.0, np.nan], [np.nan, 1.0]]], PAIR, 1.0), r"kernels\[1\]\[0, 1\] is nan"),
        (([I2], (0, 1), 1.0), r"y\[0\] is 0; labels must be the numbers -1 and \+1"),
        (([I2], (2, -1), 1.0), r"y\[0\] is 2; labels must be the numbers -1 and \+1"),
        (([I2], (1, np.nan), 1.0), r"y\[1\] is nan; every entry must be a finite number"),
        (
            ([I2], (1, np.nan), 1.0, "squared"),
            r"y\[1\] is nan; every entry must be a finite number",
        ),
        (([I2], (1, 1), 1.0), "y has one class only"),
        (([I2], (1, -1, 1), 1.0), "y has 3 entries; expected 2"),
        (([I2], PAIR, 0.0), "C is 0.0; expected a positive number"),
        (([I2], PAIR, -1.0), "C is -1.0; expected a positive number"),
        (([I2], PAIR, np.nan), "C is nan; expected a positive number"),
        (([I2], PAIR, np.inf), "C is inf; expected a positive number"),
        (([I2], PAIR, 1.0, "logistic"), "loss is 'logistic'; expected one of hinge, squared"),
        (
            ([I2], PAIR, 1.0, "hinge", "l1"),
            "norm is 'l1'; expected 'block-l1', 'block-linf' or an exponent",
        ),
        (([I2], PAIR, 1.0, "hinge", 0.5), "norm is 0.5; expected"),
    ],
)
def test_bad_data_is_refused_by_name(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        MultipleKernel(*arguments)
