"""Several kernels from indefinite similarities: duality, brackets, laws, bad data."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import at_most, radial_gram

import klopt
from klopt.errors import InvalidProblem
from klopt.model.problem import Point
from klopt.problems import MultipleKernel, SimilarityKernel, SimilarityKernels, SimilaritySpectra
from klopt.problems._similarity.inner_svm import InnerSvm
from klopt.proof.certificate import Verdict

LOSSES = ["squared", "frobenius", "l1"]
seeds = st.integers(0, 2**32 - 1)


def similarities(seed: int, n: int, m: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Gaussian kernels made indefinite by symmetric noise, and labels of both classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    noise = [rng.normal(size=(n, n)) for _ in range(m)]
    return [radial_gram(rng, n, 2 + i) + 0.15 * (E + E.T) for i, E in enumerate(noise)], y


def optimum(problem: klopt.model.problem.Problem, tol: float = 1e-7) -> klopt.Result:
    return klopt.solve(problem, tol=tol).require()


def overlap(one: klopt.Result, other: klopt.Result) -> bool:
    """Whether the brackets of two ways to the same optimum overlap."""
    return max(one.lower, other.lower) <= min(one.upper, other.upper) + 1e-10 * (1 + abs(one.upper))


# --- what the problems reduce to


@pytest.mark.parametrize("loss", LOSSES)
def test_one_similarity_is_the_problem_of_a_single_kernel(loss: str) -> None:
    S, y = similarities(0, 10, 1)
    several = optimum(SimilarityKernels(S, y, 1.0, 0.2, 10.0, loss), 1e-6)
    assert overlap(several, optimum(SimilarityKernel(S, y, 1.0, 0.2, 10.0, loss), 1e-6))


def test_spectra_restrict_the_kernels_so_their_optimum_is_not_below() -> None:
    S, y = similarities(1, 15, 3)
    free, fixed = (
        optimum(SimilarityKernels(S, y, 1.0, 0.1, 15.0)),
        optimum(SimilaritySpectra(S, y, 1.0, 0.1, 15.0)),
    )
    assert free.lower <= fixed.upper
    assert fixed.value > free.value + 1e-3


def test_learned_kernels_keep_the_eigenvectors_of_their_similarities() -> None:
    S, y = similarities(2, 12, 2)
    result = optimum(SimilaritySpectra(S, y, 1.0, 0.1, 12.0))
    for matrix, K, mu in zip(S, result.point.kernels, result.point.spectra, strict=True):
        V = np.linalg.eigh(matrix)[1]
        np.testing.assert_allclose(V.T @ K @ V, np.diag(mu), atol=1e-9)
        assert mu.min() >= -1e-12
        assert mu.sum() == pytest.approx(12.0)


@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
def test_at_the_optimum_the_svm_is_multiple_kernel_learning_with_the_learned_kernels(
    kind: type,
) -> None:
    S, y = similarities(3, 14, 3)
    result = optimum(kind(S, y, 1.0, 0.2, 14.0))
    kernels = result.point.kernels
    mkl = optimum(
        MultipleKernel([klopt.kernels.gram.Gram.of(K) for K in kernels], y, 1.0, norm="block-linf"),
        1e-6,
    )
    loss = 0.2 * sum(np.sum((K - matrix) ** 2) for K, matrix in zip(kernels, S, strict=True))
    assert mkl.value + loss == pytest.approx(result.value, rel=1e-5)
    np.testing.assert_allclose(1 / mkl.point.weights, result.point.gamma, atol=1e-2)
    assert result.point.gamma.sum() == pytest.approx(1.0)


# --- brackets


@pytest.mark.parametrize("loss", ["euclidean", "l1", "hinge"])
@pytest.mark.parametrize("seed", [0, 1])
def test_spectra_near_in_a_norm_are_those_of_another_solver(seed: int, loss: Any) -> None:
    """(7) of Kundu et al. (2010), as CVXPY reads it; section 4 has the Euclidean distance.

    The hinge, the sum of max(0, lambda - mu), is half the sum of absolute values and a constant.
    """
    cp = pytest.importorskip("cvxpy")
    S, y = similarities(seed, 10, 2)
    C = np.random.default_rng(seed).uniform(0.2, 3.0, size=10)
    t, b, xi = cp.Variable(), cp.Variable(), cp.Variable(10, nonneg=True)
    rules, f, losses = [], 0, 0
    for M in S:
        lam, V = np.linalg.eigh(M)
        mu, r, u = (cp.Variable(10, nonneg=True), cp.Variable(10, nonneg=True), cp.Variable(10))
        rules += [cp.SOC(mu[j] + r[j], cp.hstack([2 * u[j], mu[j] - r[j]])) for j in range(10)]
        rules += [cp.sum(r) <= t, cp.sum(mu) == 10]
        f = f + V @ u
        distances = {
            "euclidean": cp.norm(mu - lam),
            "l1": cp.sum(cp.abs(mu - lam)),
            "hinge": 2 * cp.sum(cp.pos(lam - mu)) + 10 - lam.sum(),
        }
        losses = losses + distances[loss]
    rules.append(cp.multiply(y, f + b) >= 1 - xi)
    program = cp.Problem(cp.Minimize(t / 2 + C @ xi + 0.3 * losses), rules)
    program.solve(solver="CLARABEL")
    problem = SimilaritySpectra(S, y, C, 0.3, 10.0, "l1" if loss == "hinge" else loss)
    result = optimum(problem)
    assert result.value == pytest.approx(program.value, abs=2e-6)
    assert not any(form.name == "smooth" for form in problem.formulations())
    with pytest.raises(klopt.InvalidProblem, match="loss is 'hinge'; expected one of squared"):
        SimilaritySpectra(S, y, 1.0, 0.3, 10.0, "hinge")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
def test_a_penalty_of_each_point_is_a_box_of_each_multiplier(kind: type) -> None:
    S, y = similarities(2, 8, 2)
    C = np.random.default_rng(2).uniform(0.05, 1.0, size=8)
    result = optimum(kind(S, y, C, 0.2, 8.0))
    assert (result.point.alpha <= C).all()
    # Against its own kernel the multipliers are those of a support vector machine.
    svm = klopt.solve(klopt.problems.SoftMargin(result.kernel, y, C), tol=1e-9).require()
    a = y * result.point.alpha
    value = result.point.alpha.sum() - a @ result.kernel @ a / 2
    assert value == pytest.approx(svm.value, abs=1e-5)


@pytest.mark.parametrize("loss", [*LOSSES, "spectra"])
def test_all_routes_prove_the_same_optimum(loss: str) -> None:
    S, y = similarities(4, 8, 2)
    problem = (
        SimilaritySpectra(S, y, 1.0, 0.2, 8.0)
        if loss == "spectra"
        else SimilarityKernels(S, y, 1.0, 0.2, 8.0, loss)
    )
    found = []
    for route in klopt.plan(problem).routes:
        if route.backend.rank < 40:
            result = klopt.solve(
                problem, route.backend, formulation=route.formulation.name, tol=1e-5
            )
            assert result.verdict is Verdict.OPTIMAL, result.explain()
            found.append(result)
    assert len(found) >= 4
    assert all(overlap(result, found[0]) for result in found)


@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
def test_the_saddle_point_of_kernels_and_multipliers_has_the_same_value(kind: type) -> None:
    S, y = similarities(5, 8, 2)
    problem = kind(S, y, 1.0, 0.3, 8.0)
    game = klopt.solve(problem, "mirror_prox", formulation="saddle", tol=1e-4).require()
    assert overlap(game, optimum(problem))


@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
def test_mirror_descent_over_products_brackets_the_optimum(kind: type) -> None:
    S, y = similarities(5, 6, 2)
    problem = kind(S, y, 1.0, 0.3, 6.0)
    found = klopt.solve(problem, "mirror_descent", tol=3e-2, max_iter=300)
    assert found.verdict is Verdict.OPTIMAL, found.explain()
    assert overlap(found, optimum(problem))


@given(seeds, st.sampled_from([SimilarityKernels, SimilaritySpectra]))
@at_most(10)
def test_gradients_of_the_svm_value_are_cuts(seed: int, kind: type) -> None:
    rng = np.random.default_rng(seed)
    S, y = similarities(seed, 6, 2)
    form = kind(S, y, 1.0, 0.3, 6.0).formulations()[-1].build()
    x, z = (form.domain.project(rng.normal(size=form.domain.size)) for _ in range(2))
    f, gradient = form.objective.value, form.objective.gradient(x)
    assert f(z) >= f(x) + gradient @ (z - x) - 1e-4 * (1 + abs(f(z)))


@given(seeds)
@at_most(10)
def test_the_inner_svm_is_multiple_kernel_learning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, y = similarities(seed, 8, 3)
    problem = SimilarityKernels(S, y, 1.0, 0.0, 8.0)
    form = problem.formulations()[-1]
    x = form.build().domain.project(rng.normal(size=3 * 36))
    value, kernels = form.scale * form.build().objective.value(x), form.recover(x, None).kernels
    grams = [klopt.kernels.gram.Gram.of(K, repair="clip") for K in kernels]
    mkl = optimum(MultipleKernel(grams, y, 1.0, norm="block-linf"), 1e-6)
    assert value <= mkl.upper
    if (1 / mkl.point.weights).min() > 0.1 / 3:  # descent keeps shares above that
        assert value == pytest.approx(mkl.value, rel=1e-4)


def test_the_inner_svm_knows_gradient_and_curvature() -> None:
    S, y = similarities(11, 7, 3)
    rng, data = np.random.default_rng(0), SimilarityKernels(S, y, 1.0, 0.0, 7.0).several.data
    kernels = np.array([radial_gram(rng, 7), 1e-4 * radial_gram(rng, 7), radial_gram(rng, 7, 5)])
    svm = InnerSvm(kernels, data, 0.1)
    a = rng.normal(size=7)
    d = rng.normal(size=7)
    step = 1e-5
    (left, _), (here, g), (right, _) = (svm.near(a + move * d) for move in (-step, 0.0, step))
    assert (g == 0.1).sum() == 1
    assert g.sum() == pytest.approx(1.0)
    assert (right.value - left.value) / (2 * step) == pytest.approx(here.gradient @ d, rel=1e-6)
    np.testing.assert_allclose(
        (right.gradient - left.gradient) / (2 * step), here.curvature() @ d, rtol=1e-5
    )


class Entrywise:
    """The sum of all |X_ij|, as a user may write it."""

    def value(self, X: np.ndarray) -> float:
        return float(np.abs(X).sum())

    def subgradient(self, X: np.ndarray) -> np.ndarray:
        return np.sign(X)


class EntrywiseWithConjugate(Entrywise):
    def conjugate(self, Z: np.ndarray) -> float:
        return 0.0 if np.abs(Z).max() <= 1 + 1e-12 else np.inf


class NowhereFinite(Entrywise):
    def conjugate(self, Z: np.ndarray) -> float:
        return np.inf


def test_a_users_loss_with_kinks_is_bracketed_by_descent() -> None:
    S, y = similarities(10, 8, 2)
    best = optimum(SimilarityKernels(S, y, 1.0, 0.1, 8.0, "l1"), 1e-5)
    result = klopt.solve(
        SimilarityKernels(S, y, 1.0, 0.1, 8.0, EntrywiseWithConjugate()),
        "mirror_descent",
        max_iter=800,
    )
    # Values of a user's loss prove nothing: the interval is an estimate.
    assert (result.lower, result.upper) == (-np.inf, np.inf)
    again = result.problem.bracket(result.point)
    assert again.estimate is not None
    assert best.lower - 0.5 <= again.estimate[0] <= best.upper
    assert best.lower <= again.estimate[1] <= 1.1 * best.upper


@pytest.mark.parametrize(
    ("loss", "note"),
    [
        (Entrywise(), "the loss has no conjugate"),
        (NowhereFinite(), "the gradients lie outside the domain of conjugate"),
    ],
)
def test_what_is_missing_for_a_lower_bound_is_said(loss: Entrywise, note: str) -> None:
    S, y = similarities(0, 5, 2)
    bracket = SimilarityKernels(S, y, 1.0, 0.2, 5.0, loss).bracket(
        Point({"alpha": np.full(5, 0.5)})
    )
    assert (bracket.lower, bracket.upper) == (-np.inf, np.inf)
    assert bracket.estimate is not None
    assert bracket.estimate[0] == -np.inf
    assert np.isfinite(bracket.estimate[1])
    assert note in bracket.note


def test_a_users_loss_has_a_saddle_form_and_a_descent() -> None:
    S, y = similarities(0, 5, 2)
    found = SimilarityKernels(S, y, 1.0, 0.2, 5.0, Entrywise()).formulations()
    assert [f.name for f in found] == ["saddle", "spectrahedra"]


@given(seeds, st.sampled_from([*LOSSES, "spectra"]))
@at_most(16)
def test_any_point_brackets_the_optimum(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    S, y = similarities(seed % 4, 6, 2)
    problem = (
        SimilaritySpectra(S, y, 1.0, 0.2, 6.0)
        if loss == "spectra"
        else SimilarityKernels(S, y, 1.0, 0.2, 6.0, loss)
    )
    best = optimum(problem, 1e-6)
    for size in (0.0, 0.1, 1.0, 100.0):
        alpha, gamma = size * rng.normal(size=6), rng.normal(size=2)
        kernels, gradients = (size * rng.normal(size=(2, 6, 6)) for _ in range(2))
        plain = Point({"alpha": alpha})
        for point in (
            plain,
            Point({"alpha": alpha, "gamma": gamma, "kernels": kernels}, {"gradients": gradients}),
        ):
            bracket = problem.bracket(point)
            assert bracket.lower <= best.upper
            assert bracket.upper >= best.lower


# --- no loss at all, shares that nearly vanish, laws


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_without_a_loss_the_spectra_are_a_game_of_eigenvectors(m: int, C: float) -> None:
    """The value is  max over a of  y'a - tau/2 (sum_i max_j |V_i'a|_j)^2."""
    S, y = similarities(8 + m, 9, m)
    result = optimum(SimilaritySpectra(S, y, C, 0.0, 9.0))
    a = cp.Variable(9)
    worst = sum(cp.norm_inf(np.linalg.eigh(matrix)[1].T @ a) for matrix in S)
    box = [cp.multiply(y, a) >= 0, cp.multiply(y, a) <= C, cp.sum(a) == 0]
    value = cp.Problem(cp.Maximize(y @ a - 4.5 * cp.square(worst)), box).solve(solver=cp.CLARABEL)
    assert result.value == pytest.approx(value, rel=1e-6)
    assert np.allclose(result.point.spectra.sum(axis=1), 9.0)


def test_a_share_of_zero_is_a_point_like_any_other() -> None:
    S, y = similarities(9, 8, 2)
    problem = SimilarityKernels(S, y, 1.0, 0.0, 8.0, "frobenius")
    (smooth,) = (f for f in problem.formulations() if f.name == "smooth")
    x = np.concatenate([0.1 * y, [1.0, 0.0]])
    bracket = problem.bracket(smooth.recover(x, None))
    best = optimum(problem, 1e-6)
    assert bracket.lower <= best.upper
    assert best.lower <= bracket.upper < np.inf


def test_a_similarity_far_from_every_kernel_of_the_trace_keeps_a_positive_share() -> None:
    S, y = similarities(6, 20, 2)
    result = optimum(SimilarityKernels([S[0], 1e-3 * S[1]], y, 1.0, 5.0, 1e-2), 1e-6)
    assert (result.point.gamma > 0).all()
    far = optimum(SimilarityKernels([30 * S[0], -30 * S[0]], y, 1.0, 1.0, 1.0), 1e-6)
    assert (far.point.gamma > 0).all()


@pytest.mark.parametrize("seed", [3, 13, 26, 32])
def test_a_share_that_a_tiny_eigenvalue_hangs_on_is_found_to_all_digits(seed: int) -> None:
    """Multipliers are orthogonal to the ones; the next eigenvector has 1e-7 of the trace."""
    S, y = similarities(seed, 9, 2)
    v = np.random.default_rng(seed).normal(size=9)
    problem = SimilaritySpectra([-S[0], np.ones((9, 9)), np.outer(v, v), S[1]], y, 20.0, 10.0, 9.0)
    assert klopt.solve(problem, "newton", tol=1e-8).verdict is Verdict.OPTIMAL


@pytest.mark.parametrize("seed", range(3))
def test_spectra_of_small_trace_and_large_penalty_are_certified(seed: int) -> None:
    """The kernels nearest to given multipliers jump with them: those of the answer are kept."""
    S, y = similarities(seed, 6, 6)
    problem = SimilaritySpectra(S, y, 100.0, 0.001, 0.01)
    assert klopt.solve(problem, time_limit=30).verdict is Verdict.OPTIMAL


@given(seeds, st.sampled_from(["squared", "spectra"]))
@at_most(10)
def test_the_order_of_points_and_similarities_does_not_matter(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    S, y = similarities(seed, 9, 3)
    kind = SimilaritySpectra if loss == "spectra" else SimilarityKernels
    points, order = rng.permutation(9), rng.permutation(3)
    one = optimum(kind(S, y, 1.0, 0.2, 9.0))
    other = optimum(kind([S[i][np.ix_(points, points)] for i in order], y[points], 1.0, 0.2, 9.0))
    assert overlap(one, other)
    np.testing.assert_allclose(other.point.gamma, one.point.gamma[order], atol=1e-2)


@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
@pytest.mark.parametrize(("rho", "C"), [(0.05, 1.0), (0.5, 10.0)])
def test_newton_takes_a_handful_of_steps(kind: type, rho: float, C: float) -> None:
    S, y = similarities(7, 50, 3)
    assert klopt.solve(kind(S, y, C, rho, 50.0), "newton", tol=1e-8).require().iterations <= 20


def test_training_points_taken_as_new_ones_keep_their_rows() -> None:
    S, y = similarities(8, 10, 2)
    problem = SimilaritySpectra(S, y, 1.0, 0.2, 10.0)
    result = optimum(problem)
    for extension, matrix, K in zip(
        problem.extensions(result.point), S, result.point.kernels, strict=True
    ):
        np.testing.assert_allclose(extension.cross(matrix), K, atol=1e-8)


# --- data

I2 = np.eye(2)
PAIR = (1.0, -1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], PAIR, 1.0, 1.0, 2.0), "S is empty; give one similarity matrix at least"),
        (([I2, np.eye(3)], PAIR, 1.0, 1.0, 2.0), r"S\[1\] is 3 x 3; expected 2 x 2"),
        (
            ([np.zeros((2, 3))], PAIR, 1.0, 1.0, 2.0),
            r"S\[0\] has shape \(2, 3\); expected a square matrix",
        ),
        (([I2, [[1.0, np.nan], [np.nan, 1.0]]], PAIR, 1.0, 1.0, 2.0), r"S\[1\]\[0, 1\] is nan"),
        (([I2], (0, 1), 1.0, 1.0, 2.0), r"y\[0\] is 0; labels must be the numbers -1 and \+1"),
        (([I2], PAIR, -1.0, 1.0, 2.0), "C is -1.0; expected a positive number"),
        (([I2], PAIR, 1.0, -1.0, 2.0), "rho is -1.0; expected a nonnegative number"),
        (([I2], PAIR, 1.0, 1.0, 0.0), "trace is 0.0; expected a positive number"),
        (([I2], PAIR, 1.0, 1.0, None), "trace is None; expected a positive number"),
    ],
)
@pytest.mark.parametrize("kind", [SimilarityKernels, SimilaritySpectra])
def test_bad_data_is_refused_by_name(kind: type, arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        kind(*arguments)


def test_an_unknown_loss_is_refused_by_name() -> None:
    with pytest.raises(
        InvalidProblem, match="loss is 'hinge'; expected one of l1, frobenius, squared"
    ):
        SimilarityKernels([I2], PAIR, 1.0, 1.0, 2.0, "hinge")
