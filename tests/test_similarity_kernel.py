"""One kernel from indefinite similarities: closed forms, duality, brackets, laws, bad data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import at_most, radial_gram

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.similarities import LinearExtension, Similarity
from klopt.model.problem import Point
from klopt.numerics.box_qp.multipliers import best_multipliers
from klopt.problems import SimilarityKernel, SimilarityKernels, SoftMargin
from klopt.problems._similarity.function import MultiplierObjective
from klopt.problems._similarity.nearest import KernelProjection, KernelSpectra
from klopt.problems._similarity.spectra import SpectraObjective, best_shares
from klopt.proof.certificate import Verdict

LOSSES = ["squared", "frobenius", "l1"]
seeds = st.integers(0, 2**32 - 1)


def similarity(seed: int, n: int, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian kernel made indefinite by symmetric noise, and labels of both classes."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(n) < n // 2, 1.0, -1.0)
    E = rng.normal(size=(n, n))
    return radial_gram(rng, n) + noise * (E + E.T) / 2, y


def optimum(problem: klopt.model.problem.Problem, tol: float = 1e-7) -> klopt.Result:
    return klopt.solve(problem, tol=tol).require()


def overlap(one: klopt.Result, other: klopt.Result, shift: float = 0.0) -> bool:
    """Whether the brackets of two ways to the same optimum overlap."""
    slack = 1e-10 * (1 + abs(one.upper))
    return max(one.lower, other.lower + shift) <= min(one.upper, other.upper + shift) + slack


# --- the support vector machine as a function of its kernel


@given(seeds)
def test_the_svm_value_is_convex_in_the_kernel_and_falls_as_the_kernel_grows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(9) % 2 == 0, 1.0, -1.0)
    K, L = radial_gram(rng, 9), radial_gram(rng, 9, 2)
    ends = [klopt.solve(SoftMargin(M, y, 2.0), "active_set") for M in (K, L)]
    middle, sum_of_both = (
        klopt.solve(SoftMargin(M, y, 2.0), "active_set") for M in ((K + L) / 2, K + L)
    )
    assert middle.lower <= (ends[0].upper + ends[1].upper) / 2
    assert sum_of_both.lower <= min(end.upper for end in ends)


# --- the nearest kernel


@given(seeds, st.sampled_from([None, 4.0]))
def test_the_projected_eigenvalues_give_the_nearest_kernel(seed: int, trace: float | None) -> None:
    rng = np.random.default_rng(seed)
    S, _ = similarity(seed, 6)
    a, w = rng.normal(size=6), 0.3
    near = KernelProjection(S, trace).nearest(a, 1.0, w)
    K = near.factor @ near.factor.T
    assert near.value == pytest.approx(w * np.sum((K - S) ** 2) - a @ K @ a / 2, rel=1e-9, abs=1e-9)
    assert trace is None or np.trace(K) == pytest.approx(trace)
    for _ in range(20):
        half = rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-2, 1)
        other = half @ half.T if trace is None else trace * half @ half.T / np.vdot(half, half)
        mixed = K + rng.uniform(0, 1) * (other - K)
        assert w * np.sum((mixed - S) ** 2) - a @ mixed @ a / 2 >= near.value - 1e-9


def test_clipping_and_rescaling_is_not_the_nearest_kernel_of_a_trace() -> None:
    S, _ = similarity(0, 12)
    near = KernelProjection(S, 12.0).nearest(np.zeros(12), 1.0, 1.0)
    lam, V = np.linalg.eigh(S)
    clipped = V * np.maximum(lam, 0) @ V.T
    rescaled = 12 * clipped / np.trace(clipped)
    assert np.sum((rescaled - S) ** 2) > near.value + 0.01


@given(seeds, st.sampled_from([False, True]), st.sampled_from([False, True]))
def test_gradient_and_curvature_are_those_of_finite_differences(
    seed: int, norm: bool, apart: bool
) -> None:
    rng = np.random.default_rng(seed)
    blocks = tuple(
        KernelProjection(similarity(seed + i, 7)[0], 7.0) for i in range(2 if apart else 1)
    )
    f = MultiplierObjective(
        blocks, np.where(np.arange(7) % 2 == 0, 1.0, -1.0), 0.4, norm, 0.5, apart
    )
    x = np.concatenate([rng.normal(size=7), rng.uniform(0.3, 0.7, 2 if apart else 0)])
    assert_differences_agree(f, rng, x)


@given(seeds, st.integers(1, 4))
def test_gradient_and_curvature_without_shares_are_those_of_finite_differences(
    seed: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    spectra = KernelSpectra.of([similarity(seed + i, 7)[0] for i in range(m)], 7.0)
    f = SpectraObjective(spectra, np.where(np.arange(7) % 2 == 0, 1.0, -1.0), 0.4, 0.5)
    assert_differences_agree(f, rng, rng.normal(size=7))


@pytest.mark.parametrize("trace", [8.0, 0.8, 0.08])
def test_no_other_shares_are_better(trace: float) -> None:
    """Kernels of small trace have one eigenvector each; another share makes them jump."""
    odd = [np.ones((8, 8)), np.zeros((8, 8)), np.diag(np.arange(8.0))]
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, w = int(rng.integers(2, 6)), 10.0 ** rng.uniform(-3, 3)
        S = [
            odd[i] if i < 3 and rng.random() < 0.3 else similarity(seed + i, 8)[0] * 10.0**-i
            for i in range(m)
        ]
        spectra = KernelSpectra.of(S, trace)
        a = rng.normal(size=8) * 10.0 ** rng.uniform(-2, 2)
        a -= a.mean()  # orthogonal to the eigenvector of the ones, up to rounding
        start, *others = rng.dirichlet(np.ones(m), size=11) * (1 - m * 1e-9) + 1e-9
        best = best_shares(spectra, a, w, start).near
        assert best.g.sum() == pytest.approx(1.0)
        for g in others:
            value = spectra.nearest(a, g, w).value
            assert value <= best.value + 1e-9 * (abs(best.value) + w * np.sum(spectra.values**2))


def assert_differences_agree(
    f: MultiplierObjective | SpectraObjective, rng: np.random.Generator, x: np.ndarray
) -> None:
    d, step = rng.normal(size=x.size), 1e-5
    left, here, right = (f.near(x + move * d) for move in (-step, 0.0, step))
    assert (right.value - left.value) / (2 * step) == pytest.approx(
        here.gradient @ d, rel=1e-5, abs=1e-5
    )
    measured = (right.gradient - left.gradient) / (2 * step)
    H = here.curvature()
    np.testing.assert_allclose(measured, H @ d, rtol=1e-3, atol=1e-3 * np.abs(H).max())
    assert np.linalg.eigvalsh(H)[0] >= -1e-9 * np.abs(H).max()


@pytest.mark.parametrize("loss", ["frobenius", "l1"])
def test_the_kink_at_a_kernel_that_is_kept_is_proven(loss: str) -> None:
    """K = S leaves the gradient of a norm open; that of the support vector machine chooses one."""
    K = radial_gram(np.random.default_rng(0), 8)
    y = np.where(np.arange(8) % 2 == 0, 1.0, -1.0)
    problem = SimilarityKernel(K, y, 1.0, 50.0, float(np.trace(K)), loss)
    best = klopt.solve(SoftMargin(K, y, 1.0), tol=1e-10)
    bracket = problem.bracket(Point({"alpha": best.point.alpha, "kernel": K}))
    assert bracket.upper - bracket.lower <= 1e-8
    assert bracket.lower <= best.upper + 1e-12


# --- what the problem reduces to


def test_squared_loss_without_trace_is_indsvm_in_closed_form() -> None:
    S, y = similarity(1, 20)
    result = optimum(SimilarityKernel(S, y, 1.0, 0.2, None))
    a = y * result.point.alpha
    lam, V = np.linalg.eigh(S + np.outer(a, a) / (4 * 0.2))
    K = V * np.maximum(lam, 0) @ V.T
    np.testing.assert_allclose(result.kernel, K, atol=1e-9)
    value = a @ y - a @ K @ a / 2 + 0.2 * np.sum((K - S) ** 2)
    assert value == pytest.approx(result.value, rel=1e-6)
    svm = optimum(SoftMargin(klopt.kernels.gram.Gram.of(K), y, 1.0))
    assert svm.value + 0.2 * np.sum((K - S) ** 2) == pytest.approx(result.value, rel=1e-5)


@pytest.mark.parametrize("trace", [None, 15.0])
def test_several_similarities_with_squared_loss_are_their_mean(trace: float | None) -> None:
    matrices = [similarity(seed, 15)[0] for seed in range(3)]
    y = similarity(0, 15)[1]
    mean = sum(matrices) / 3
    spread = 0.1 * sum(np.sum((S - mean) ** 2) for S in matrices)
    many = optimum(SimilarityKernel(matrices, y, 1.0, 0.1, trace))
    assert overlap(many, optimum(SimilarityKernel(mean, y, 1.0, 0.3, trace)), spread)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_large_weight_of_the_loss_keeps_a_kernel(loss: str) -> None:
    K = radial_gram(np.random.default_rng(0), 10)
    y = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)
    result = optimum(SimilarityKernel(K, y, 1.0, 1e4, 10.0, loss), 1e-6)
    np.testing.assert_allclose(result.kernel, K, atol=1e-3)
    assert result.value == pytest.approx(optimum(SoftMargin(K, y, 1.0)).value, rel=1e-3)


def test_without_a_loss_the_kernel_is_that_of_the_labels() -> None:
    S, y = similarity(2, 8)
    result = optimum(SimilarityKernel(S, y, 1.0, 0.0, 8.0), 1e-6)
    a = y * result.point.alpha
    np.testing.assert_allclose(result.kernel, 8 * np.outer(a, a) / (a @ a), atol=1e-4)
    assert result.value == pytest.approx(optimum(SoftMargin(8 * np.eye(8), y, 1.0)).value, rel=1e-5)


# --- brackets


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("trace", [None, 9.0])
@pytest.mark.parametrize("m", [1, 2])
def test_all_routes_prove_the_same_optimum(loss: str, trace: float | None, m: int) -> None:
    matrices = [similarity(seed, 9)[0] for seed in range(m)]
    problem = SimilarityKernel(matrices, similarity(0, 9)[1], 1.0, 0.2, trace, loss)
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


@pytest.mark.parametrize("loss", ["squared", "frobenius"])
def test_the_saddle_point_of_kernel_and_multipliers_has_the_same_value(loss: str) -> None:
    S, y = similarity(3, 8)
    problem = SimilarityKernel(S, y, 1.0, 0.3, 8.0, loss)
    game = klopt.solve(problem, "mirror_prox", formulation="saddle", tol=1e-4).require()
    assert overlap(game, optimum(problem))


@given(seeds, st.sampled_from(LOSSES), st.sampled_from([None, 6.0]))
@at_most(20)
def test_any_point_brackets_the_optimum(seed: int, loss: str, trace: float | None) -> None:
    rng = np.random.default_rng(seed)
    S, y = similarity(seed % 4, 6)
    problem = SimilarityKernel(S, y, 1.0, 0.2, trace, loss)
    best = optimum(problem, 1e-6)
    for size in (0.0, 0.1, 1.0, 100.0):
        alpha, K, Z = (size * rng.normal(size=shape) for shape in (6, (6, 6), (1, 6, 6)))
        for point in (
            Point({"alpha": alpha}),
            Point({"alpha": alpha, "kernel": K}, {"gradients": Z}),
        ):
            bracket = problem.bracket(point)
            assert bracket.lower <= best.upper
            assert bracket.upper >= best.lower


@pytest.mark.parametrize("loss", LOSSES)
def test_a_point_of_nan_and_inf_still_brackets(loss: str) -> None:
    S, y = similarity(0, 5)
    problem = SimilarityKernel(S, y, 1.0, 0.2, 5.0, loss)
    bad = Point(
        {"alpha": np.full(5, np.nan), "kernel": np.full((5, 5), np.inf)},
        {"gradients": np.full((1, 5, 5), np.nan)},
    )
    bracket = problem.bracket(bad)
    assert np.isfinite([bracket.lower, bracket.upper]).all()


# --- a user's own loss


class Huber:
    """sum of h(X_ij), h(x) = x^2/2 up to 1 and |x| - 1/2 beyond.

    The conjugate of h is z^2/2 on [-1, 1].
    """

    def value(self, X: np.ndarray) -> float:
        size = np.abs(X)
        return float(np.where(size <= 1, size**2 / 2, size - 0.5).sum())

    def subgradient(self, X: np.ndarray) -> np.ndarray:
        return np.clip(X, -1, 1)


class HuberWithConjugate(Huber):
    def conjugate(self, Z: np.ndarray) -> float:
        return float((Z**2).sum()) / 2 if np.abs(Z).max() <= 1 + 1e-12 else np.inf


def estimate(result: klopt.Result) -> tuple[float, float]:
    """The interval of a loss whose values are a user's: nothing of it is proven."""
    bracket = result.problem.bracket(result.point)
    assert (result.lower, result.upper) == (bracket.lower, bracket.upper) == (-np.inf, np.inf)
    assert not result.verdict.conclusive
    assert bracket.estimate is not None
    return bracket.estimate


def test_a_users_loss_is_estimated_by_its_conjugate_and_proves_nothing() -> None:
    S, y = similarity(4, 8)
    result = klopt.solve(SimilarityKernel(S, y, 1.0, 0.5, 8.0, HuberWithConjugate()), tol=1e-4)
    lower, upper = estimate(result)
    assert 0 <= upper - lower <= 1e-4 * (1 + upper)


def test_a_users_loss_without_weight_leaves_nothing_unproven() -> None:
    S, y = similarity(2, 8)
    own, named = (SimilarityKernel(S, y, 1.0, 0.0, 8.0, loss) for loss in (Huber(), "squared"))
    point = optimum(named, 1e-6).point
    one, other = own.bracket(point), named.bracket(point)
    assert one.upper - one.lower <= 1e-5
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)


def test_a_loss_without_conjugate_has_an_estimate_from_above_only() -> None:
    S, y = similarity(4, 8)
    result = klopt.solve(SimilarityKernel(S, y, 1.0, 0.5, 8.0, Huber()), tol=1e-4, max_iter=300)
    lower, upper = estimate(result)
    assert lower == -np.inf
    best = klopt.solve(SimilarityKernel(S, y, 1.0, 0.5, 8.0, HuberWithConjugate()), tol=1e-4)
    low, high = estimate(best)
    assert low <= upper <= high + 1e-2 * abs(high)


class Squared:
    def value(self, X: np.ndarray) -> float:
        return float(np.vdot(X, X))

    def subgradient(self, X: np.ndarray) -> np.ndarray:
        return 2 * X


class SquaredWithConjugate(Squared):
    def conjugate(self, Z: np.ndarray) -> float:
        return float(np.vdot(Z, Z)) / 4


class Entrywise:
    def value(self, X: np.ndarray) -> float:
        return float(np.abs(X).sum())

    def subgradient(self, X: np.ndarray) -> np.ndarray:
        return np.sign(X)

    def conjugate(self, Z: np.ndarray) -> float:
        return 0.0 if np.abs(Z).max() <= 1 + 1e-12 else np.inf


class Diagonal:
    """What the diagonal of X is below 0: such a loss does not grow with the trace."""

    def value(self, X: np.ndarray) -> float:
        return float(np.maximum(-X.diagonal(), 0.0).sum())

    def subgradient(self, X: np.ndarray) -> np.ndarray:
        return -np.diag(np.where(X.diagonal() < 0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("loss", "name"), [(SquaredWithConjugate(), "squared"), (Squared(), "squared")]
)
def test_a_users_loss_without_a_trace_has_the_optimum_of_the_built_in_one(
    loss: Squared, name: str
) -> None:
    S, y = similarity(10, 12)
    built_in = optimum(SimilarityKernel(S, y, 1.0, 0.1, None, name))
    result = klopt.solve(SimilarityKernel(S, y, 1.0, 0.1, None, loss))
    lower, upper = estimate(result)
    assert upper == pytest.approx(built_in.value, rel=1e-5)
    if isinstance(loss, SquaredWithConjugate):
        assert lower == pytest.approx(built_in.value, rel=1e-5)
    else:
        assert lower == -np.inf


def test_a_users_loss_with_kinks_is_bracketed_without_a_trace_by_descent() -> None:
    S, y = similarity(10, 8)
    best = optimum(SimilarityKernel(S, y, 1.0, 0.1, None, "l1"), 1e-5)
    result = klopt.solve(
        SimilarityKernel(S, y, 1.0, 0.1, None, Entrywise()), "mirror_descent", max_iter=600
    )
    lower, upper = estimate(result)
    assert best.lower - 1.0 <= lower <= best.upper
    assert best.lower <= upper <= 1.25 * best.upper


@given(seeds, st.sampled_from([*LOSSES, "own", "no conjugate"]))
def test_no_kernel_with_smaller_losses_has_a_larger_trace_than_the_bound(
    seed: int, loss: str
) -> None:
    rng, kinds = np.random.default_rng(seed), {"own": HuberWithConjugate(), "no conjugate": Huber()}
    S = [similarity(seed + i, 6)[0] for i in range(2)]
    single = SimilarityKernel(S, similarity(0, 6)[1], 1.0, 0.1, None, kinds.get(loss, loss)).single
    half = rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-2, 2)
    K = half @ half.T
    assert np.trace(K) <= single.trace_bound(single.data.losses(K, single.data.S)) * (1 + 1e-12)


class DiagonalWithConjugate(Diagonal):
    def conjugate(self, Z: np.ndarray) -> float:
        d = Z.diagonal()
        return 0.0 if np.array_equal(Z, np.diag(d)) and d.min() >= -1 and d.max() <= 0 else np.inf


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        (Diagonal(), "the loss has no conjugate"),
        (DiagonalWithConjugate(), "the loss does not bound the trace"),
    ],
)
def test_where_no_trace_bound_is_known_the_note_says_how_far_was_looked(
    loss: Diagonal, reason: str
) -> None:
    S, y = similarity(10, 6)
    bracket = SimilarityKernel(S, y, 1.0, 0.1, None, loss).bracket(
        Point({"alpha": np.full(6, 0.5), "kernel": S})
    )
    assert (bracket.lower, bracket.upper) == (-np.inf, np.inf)
    assert bracket.estimate is not None
    assert bracket.estimate[0] == -np.inf
    assert np.isfinite(bracket.estimate[1])
    assert bracket.note.startswith(reason)
    assert "kernels were looked for up to trace" in bracket.note


@pytest.mark.parametrize("trace", [None, 8.0])
def test_without_a_conjugate_the_first_answer_that_converged_is_the_last(
    trace: float | None,
) -> None:
    S, y = similarity(4, 8)
    problem = SimilarityKernel(S, y, 1.0, 0.5, trace, Huber())
    assert [f.name for f in problem.formulations()] == ["saddle", "spectrahedron"]
    result = klopt.solve(problem)
    assert len({attempt.route.backend.name for attempt in result.attempts}) == 1
    assert np.isfinite(estimate(result)[1])
    assert np.isfinite(estimate(klopt.solve(problem, "mirror_descent", max_iter=50))[1])


class RaisingConjugate(Huber):
    def conjugate(self, Z: np.ndarray) -> float:
        raise NotImplementedError


class ArrayConjugate(Huber):
    def conjugate(self, Z: np.ndarray) -> np.ndarray:
        return Z * Z / 2


class NumberConjugate(Huber):
    conjugate = 3


class ArrayValue(Huber):
    def value(self, X: np.ndarray) -> np.ndarray:
        return np.abs(X)


class NumberGradient(Huber):
    def subgradient(self, X: np.ndarray) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Huber, r"loss is the class Huber; give an object of it: Huber\(\)"),
        (
            RaisingConjugate(),
            r"loss.conjugate\(Z\) at Z = 0 raises NotImplementedError\(\); .* or leave it out",
        ),
        (ArrayConjugate(), r"loss.conjugate\(Z\) at Z = 0 is of shape \(2, 2\); expected a number"),
        (NumberConjugate(), "loss.conjugate is 3; expected a method of a matrix"),
        (ArrayValue(), r"loss.value\(X\) at X = I is of shape \(2, 2\); expected a number"),
        (
            NumberGradient(),
            r"loss.subgradient\(X\) at X = I is float64 of shape \(\); expected an array of numbers",
        ),
    ],
)
@pytest.mark.parametrize("kind", [SimilarityKernel, SimilarityKernels])
def test_a_bad_loss_of_ones_own_is_refused_when_the_problem_is_built(
    kind: type, loss: object, message: str
) -> None:
    with pytest.raises(InvalidProblem, match=message):
        kind([np.eye(2)], (1.0, -1.0), 1.0, 1.0, 2.0, loss)


# --- laws


@given(seeds, st.sampled_from(LOSSES), st.sampled_from([1e-6, 1e-2, 7.0]))
@at_most(12)
@pytest.mark.slow
def test_scaling_similarities_trace_and_penalties_scales_the_value(
    seed: int, loss: str, c: float
) -> None:
    S, y = similarity(seed, 7)
    rho = 0.2 / c ** (3 if loss == "squared" else 2)
    one = optimum(SimilarityKernel(S, y, 1.0, 0.2, 7.0, loss), 1e-6)
    other = klopt.solve(
        SimilarityKernel(c * S, y, 1.0 / c, rho, 7.0 * c, loss), tol=1e-6 / max(c, 1.0)
    )
    assert other.value * c == pytest.approx(one.value, rel=1e-4)


@pytest.mark.slow
@given(seeds, st.sampled_from(LOSSES))
@at_most(9)
def test_the_order_of_the_points_does_not_matter(seed: int, loss: str) -> None:
    S, y = similarity(seed, 8)
    order = np.random.default_rng(seed).permutation(8)
    one = optimum(SimilarityKernel(S, y, 1.0, 0.2, 8.0, loss), 1e-6)
    other = optimum(SimilarityKernel(S[np.ix_(order, order)], y[order], 1.0, 0.2, 8.0, loss), 1e-6)
    assert overlap(one, other)


@pytest.mark.parametrize("loss", ["squared", "frobenius"])
@pytest.mark.parametrize(("rho", "C"), [(0.05, 1.0), (0.5, 10.0), (5.0, 100.0)])
def test_newton_takes_a_handful_of_steps(loss: str, rho: float, C: float) -> None:
    S, y = similarity(5, 60)
    result = klopt.solve(SimilarityKernel(S, y, C, rho, 60.0, loss), "newton", tol=1e-8).require()
    assert result.iterations <= 15


# --- indefinite input and new points


def test_denoise_is_the_nearest_kernel_and_flip_and_shift_are_kernels() -> None:
    S = Similarity.of(similarity(6, 10)[0])
    nearest = KernelProjection(S.matrix, None).nearest(np.zeros(10), 1.0, 1.0)
    np.testing.assert_allclose(
        S.repaired("denoise").matrix, nearest.factor @ nearest.factor.T, atol=1e-12
    )
    lam, V = S.eigen
    np.testing.assert_allclose(S.repaired("flip").matrix, V * np.abs(lam) @ V.T, atol=1e-12)
    np.testing.assert_allclose(
        S.repaired("shift").matrix, S.matrix - lam[0] * np.eye(10), atol=1e-12
    )


def test_training_points_taken_as_new_ones_keep_their_rows() -> None:
    S, y = similarity(7, 12)
    problem = SimilarityKernel(S, y, 1.0, 0.2, 12.0)
    result = optimum(problem)
    extension = problem.extension(result.point)
    np.testing.assert_allclose(extension.cross(S), result.kernel, atol=1e-7)
    np.testing.assert_allclose(extension.among(S), result.kernel, atol=1e-6)


@given(seeds)
def test_kernels_of_new_points_are_positive_semidefinite_with_the_old_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, _ = similarity(seed, 8)
    extension = LinearExtension(Similarity.of(S), radial_gram(rng, 8))
    s = rng.normal(size=(4, 8))
    whole = np.block(
        [[extension.K, extension.cross(s).T], [extension.cross(s), extension.among(s)]]
    )
    assert np.linalg.eigvalsh(whole)[0] >= -1e-8 * np.abs(whole).max()


# --- data

I2 = np.eye(2)
PAIR = (1.0, -1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], PAIR, 1.0, 1.0, 2.0), "S is empty; give one similarity matrix at least"),
        ((np.zeros((2, 2, 0)), PAIR, 1.0, 1.0, 2.0), "S is empty"),
        (("S", PAIR, 1.0, 1.0, 2.0), "S is a str; expected n x n matrices"),
        (
            (np.zeros((2, 3)), PAIR, 1.0, 1.0, 2.0),
            r"S has shape \(2, 3\); expected a square matrix",
        ),
        (([I2, np.eye(3)], PAIR, 1.0, 1.0, 2.0), r"S\[1\] is 3 x 3; expected 2 x 2"),
        (
            ([[1, 2], [0, 1]], PAIR, 1.0, 1.0, 2.0),
            r"S is not symmetric.*Similarity.of\(S, symmetrise=True\) does that",
        ),
        (([I2, [[1.0, np.nan], [np.nan, 1.0]]], PAIR, 1.0, 1.0, 2.0), r"S\[1\]\[0, 1\] is nan"),
        ((I2, (0, 1), 1.0, 1.0, 2.0), r"y\[0\] is 0; labels must be the numbers -1 and \+1"),
        ((I2, (1, 1), 1.0, 1.0, 2.0), "y has one class only"),
        ((I2, PAIR, 0.0, 1.0, 2.0), "C is 0.0; expected a positive number"),
        ((I2, PAIR, 1.0, -1.0, 2.0), "rho is -1.0; expected a nonnegative number"),
        ((I2, PAIR, 1.0, 0.0, None), "rho is 0 and trace is None"),
        ((I2, PAIR, 1.0, 1.0, 0.0), "trace is 0.0; expected a positive number"),
        (
            (I2, PAIR, 1.0, 1.0, 2.0, "hinge"),
            "loss is 'hinge'; expected one of l1, frobenius, squared",
        ),
        (
            (I2, PAIR, 1.0, 1.0, 2.0, 3),
            r"loss is a int; expected one of .* an object with value\(X\)",
        ),
    ],
)
def test_bad_data_is_refused_by_name(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        SimilarityKernel(*arguments)


def test_stacked_and_nested_similarities_are_a_list() -> None:
    S, y = similarity(0, 5)
    plain = SimilarityKernel([S, 2 * S], y, 1.0, 0.2, 5.0)
    stacked = SimilarityKernel(np.dstack([S, 2 * S]), y, 1.0, 0.2, 5.0)
    assert overlap(optimum(plain), optimum(stacked))
    assert len(SimilarityKernel(S.tolist(), y, 1.0, 0.2, 5.0).S) == 1


def test_asymmetric_scores_are_symmetrised_on_request_with_a_record() -> None:
    S = Similarity.of([[1.0, 0.2], [0.4, 1.0]], symmetrise=True)
    assert S.matrix[0, 1] == pytest.approx(0.3)
    assert S.record == "averaged with its transpose; they differed by up to 0.2"
    assert SimilarityKernel(S, PAIR, 1.0, 1.0, 2.0).S[0] is S


def test_averaging_large_scores_does_not_overflow() -> None:
    S = Similarity.of([[1.0, 1e308], [1.7e308, 1.0]], symmetrise=True)
    assert S.matrix[0, 1] == pytest.approx(1.35e308)


def test_a_kernel_is_a_similarity_like_any_other() -> None:
    K = klopt.kernels.gram.Gram.of(I2)
    assert (
        len(SimilarityKernel(K, PAIR, 1.0, 1.0, 2.0).S)
        == len(SimilarityKernel([K], PAIR, 1.0, 1.0, 2.0).S)
        == 1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.diag([1.0, np.nan]),), r"K\[1, 1\] is nan; every entry must be a finite number"),
        ((np.eye(3),), "K is 3 x 3; expected 2 x 2"),
        ((I2, -1.0), "cutoff is -1.0; expected a nonnegative number"),
    ],
)
def test_an_extension_checks_its_kernel_and_cutoff(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        LinearExtension(Similarity.of(I2), *arguments)


def test_an_unknown_repair_is_refused() -> None:
    with pytest.raises(
        InvalidProblem, match=r"repair is \['flip'\]; expected one of denoise, flip, shift"
    ):
        Similarity.of(I2).repaired(["flip"])


# --- the inner support vector machine, and descent over kernels


@given(seeds, st.integers(1, 12), st.sampled_from([0.1, 10.0]))
def test_inner_multipliers_are_those_of_the_svm_even_for_kernels_of_low_rank(
    seed: int, rank: int, C: float
) -> None:
    rng = np.random.default_rng(seed)
    factor, y = rng.normal(size=(12, rank)), np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    K = factor @ factor.T
    box = SimilarityKernel(K, y, C, 1.0, 1.0).single.data.domain()
    found = best_multipliers(K, y, box, None, 1e-7)
    exact = optimum(SoftMargin(klopt.kernels.gram.Gram.of(K), y, C))
    assert found.gap <= 1e-7 * (1 + abs(found.value))
    assert found.value <= exact.upper <= found.value + found.gap + 1e-7 * (1 + exact.upper)


def test_mirror_descent_over_the_spectrahedron_brackets_the_optimum() -> None:
    S, y = similarity(9, 6)
    problem = SimilarityKernel(S, y, 1.0, 0.2, 6.0)
    found = klopt.solve(
        problem, "mirror_descent", formulation="spectrahedron", tol=3e-2, max_iter=150
    )
    assert found.verdict is Verdict.OPTIMAL, found.explain()
    assert overlap(found, optimum(problem))


def test_a_proof_where_newton_stopped_needs_no_second_decomposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    S, y = similarity(4, 20)
    problem = SimilarityKernel(S, y, 1.0, 0.1, 20.0)
    result = optimum(problem)
    monkeypatch.setattr(np.linalg, "eigh", None)
    again = problem.bracket(result.point)
    assert (again.lower, again.upper) == (result.lower, result.upper)


def test_a_proof_by_many_kernels_solves_no_svm_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    S, y = similarity(5, 8)
    problem = SimilarityKernel(S, y, 1.0, 0.1, 8.0, "l1")
    solved = []
    monkeypatch.setattr(
        "klopt.problems._similarity.inner_svm.best_multipliers",
        lambda K, *rest: solved.append(K) or best_multipliers(K, *rest),
    )
    result = klopt.solve(problem, "mirror_descent", tol=1e-2, max_iter=20)
    assert result.lower < result.upper
    kernels = {K.tobytes() for K in solved}
    assert len(kernels) == len(solved) > 10
