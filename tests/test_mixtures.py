"""Weights of given kernels are the best by other means, and similarities are features of any model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import nnls
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from klopt.engine.pipeline import solve
from klopt.errors import InvalidProblem
from klopt.kernels.alignment import alignment, ideal_kernel
from klopt.learners import MklRidge, SimilarityFeatures, aligned_weights, alternating_weights
from klopt.learners.kernels import linear, rbf, stack
from klopt.problems import MultipleKernel, OrderedAlignment

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]
seeds = st.integers(0, 10_000)


def kernels(seed: int, m: int, n: int = 12) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(m, n, 3)) * rng.uniform(0.1, 10.0, size=(m, 1, 1))
    labels = rng.integers(0, 2, size=n)
    labels[:2] = 0, 1
    return [A @ A.T for A in factors], ideal_kernel(labels)


@given(seeds, st.integers(1, 5), st.sampled_from([None, 1.0, 1.5]))
def test_aligned_weights_are_those_of_nonnegative_least_squares(
    seed: int, m: int, sigma: float | None
) -> None:
    """min |sum w_i K_i - T| over w >= 0, with w = cumulated increments where it is ordered."""
    matrices, T = kernels(seed, m)
    columns = np.column_stack([K.ravel() for K in matrices])
    turn = np.eye(m)
    if sigma is not None:
        # w_i = sum over j >= i of sigma^(j - i) b_j, b >= 0.
        power = np.subtract.outer(np.arange(m), np.arange(m))
        turn = np.where(power <= 0, sigma ** (-power.astype(float)), 0.0)
    b, _ = nnls(columns @ turn, T.ravel())
    expected = turn @ b
    found = aligned_weights(matrices, T, ordered=sigma is not None, sigma=sigma or 1.0)
    best = alignment(np.tensordot(expected, matrices, 1), T)
    assert found.alignment == pytest.approx(best, abs=1e-6)
    assert alignment(np.tensordot(found.weights, matrices, 1), T) == pytest.approx(best, abs=1e-6)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.result.verdict.name == "OPTIMAL"
    if sigma is not None:
        assert (found.weights[:-1] >= sigma * found.weights[1:] - 1e-6).all()


def test_of_eigenvectors_they_are_the_ordered_spectral_kernel() -> None:
    rng = np.random.default_rng(0)
    V, _ = np.linalg.qr(rng.normal(size=(20, 6)))
    labels = np.arange(20) % 3
    problem = OrderedAlignment(V, labels, 1.0, True, "indicator")
    found = aligned_weights([np.outer(v, v) for v in V.T], ideal_kernel(labels))
    assert found.alignment == pytest.approx(solve(problem).require().value, abs=1e-6)


def test_bad_kernels_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="kernels is empty"):
        aligned_weights([], np.eye(2))
    with pytest.raises(InvalidProblem, match=r"kernels\[1\] is 3 x 3 and target is 2 x 2"):
        aligned_weights([np.eye(2), np.eye(3)], np.eye(2))
    with pytest.raises(InvalidProblem, match="it has no direction"):
        aligned_weights([np.zeros((2, 2))], np.eye(2))
    with pytest.raises(InvalidProblem, match="no mixture of these kernels has a positive"):
        aligned_weights([np.eye(2)], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidProblem, match=r"mixing is 1\.5"):
        alternating_weights([np.eye(2)], [1.0, 2.0], mixing=1.5)


@given(seeds)
def test_alternating_weights_are_the_proven_optimum(seed: int) -> None:
    """The ball ||w||_2 <= 1 of weights is the block norm with the exponent 4/3 of the functions."""
    matrices, _ = kernels(seed, 3)
    values = np.random.default_rng(seed).normal(size=12)
    w, a = alternating_weights(matrices, values, ridge=2.0)
    problem = MultipleKernel(matrices, values, 1 / 2.0, "squared", 4 / 3)
    best = solve(problem, tol=1e-9).require()
    K = np.tensordot(w, matrices, 1)
    assert np.linalg.norm(w) == pytest.approx(1.0)
    np.testing.assert_allclose((K + 2.0 * np.eye(12)) @ a, values, atol=1e-8)
    # The optimum of ridge regression with K is y'(K + ridge I)^-1 y / 2.
    assert values @ a / 2 == pytest.approx(best.value, rel=1e-6)


def test_alternating_weights_stay_near_their_centre() -> None:
    matrices, _ = kernels(1, 3)
    values = np.random.default_rng(1).normal(size=12)
    w, _ = alternating_weights(matrices, values, radius=0.1, centre=[1.0, 1.0, 1.0])
    assert np.linalg.norm(w - 1) == pytest.approx(0.1)
    assert (w >= 1).all()


# ---------------------------------------------------------------- similarities as features


def test_features_are_the_similarities() -> None:
    features = SimilarityFeatures([linear(), rbf(0.5)]).fit(X[:30])
    K = stack([linear(), rbf(0.5)], X[30:], X[:30])
    np.testing.assert_allclose(features.transform(X[30:]), np.hstack([K[:, :, 0], K[:, :, 1]]))
    names = features.get_feature_names_out()
    assert list(names[[0, 30, 59]]) == ["linear to 0", "rbf(0.5) to 0", "rbf(0.5) to 29"]
    given = SimilarityFeatures("precomputed").fit(stack([linear(), rbf(0.5)], X[:30]))
    np.testing.assert_allclose(given.transform(K), features.transform(X[30:]))
    one = SimilarityFeatures("precomputed").fit(X[:30] @ X[:30].T)
    np.testing.assert_array_equal(one.transform(X[30:] @ X[:30].T), X[30:] @ X[:30].T)


def city_block(A: Any, B: Any) -> Any:
    """A similarity that is no kernel."""
    return -np.abs(A[:, None] - B).sum(axis=2)


def test_any_model_may_follow() -> None:
    for model in (LinearSVC(), SVC()):
        whole = make_pipeline(SimilarityFeatures(city_block), model)
        assert cross_val_score(whole, X, y, cv=3).mean() > 0.85
    S = city_block(X, X)
    given = make_pipeline(SimilarityFeatures("precomputed"), LinearSVC())
    assert cross_val_score(given, S, y, cv=3).mean() > 0.85


@parametrize_with_checks([SimilarityFeatures()])
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_mixtures_of_the_ridge_learner_have_the_same_weights() -> None:
    values = X[:, 0]
    C = 4.0
    model = MklRidge(rbf([0.1, 1.0]), C=C, norm=4 / 3, normalize=False, tol=1e-10)
    model.fit(X[:, 1:], values)
    matrices = np.moveaxis(stack(rbf([0.1, 1.0]), X[:, 1:]), 2, 0)
    w, _ = alternating_weights(list(matrices), values - values.mean(), ridge=1 / C)
    np.testing.assert_allclose(
        w / np.linalg.norm(w), model.weights_[0] / np.linalg.norm(model.weights_[0]), atol=1e-4
    )
