"""Labels spread over graphs and kernels as the formulas say, and points that cannot be reached are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from klopt.errors import InvalidProblem
from klopt.kernels.graphs import knn_graph
from klopt.kernels.transduction import harmonic, least_squares, spread

seeds = st.integers(0, 10_000)


def instance(seed, n=40, classes=3, known=12):
    """Points of overlapping clusters on a connected graph, labels of some of them."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % classes
    X = rng.normal(size=(n, 2)) + 2.0 * np.eye(classes, 2)[group]
    W = knn_graph(X, 5, weights="gaussian").toarray()
    W += 1e-3 * (np.eye(n, k=1) + np.eye(n, k=-1))
    labels = np.where(np.isin(np.arange(n), rng.permutation(n)[classes:known]), group, -1)
    labels[:classes] = np.arange(classes)
    return W, labels


def indicators(labels):
    return (labels[:, None] == np.unique(labels[labels >= 0])).astype(float)


@given(seeds)
def test_a_harmonic_score_is_the_mean_of_its_neighbours(seed):
    W, labels = instance(seed)
    F = harmonic(W, labels).values
    mean = (W @ F) / W.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(F[labels < 0], mean[labels < 0], atol=1e-10)
    np.testing.assert_array_equal(F[labels >= 0], indicators(labels)[labels >= 0])


@given(seeds)
def test_harmonic_scores_are_the_direct_formula_and_probabilities(seed):
    W, labels = instance(seed)
    L, u = np.diag(W.sum(axis=1)) - W, labels < 0
    scores = harmonic(W, labels)
    direct = np.linalg.solve(L[np.ix_(u, u)], W[np.ix_(u, ~u)] @ indicators(labels)[~u])
    np.testing.assert_allclose(scores.values[u], direct, atol=1e-10)
    np.testing.assert_allclose(scores.values.sum(axis=1), 1.0, atol=1e-10)
    assert scores.values.min() >= -1e-10
    np.testing.assert_array_equal(scores.labels[~u], labels[~u])


def test_a_random_walk_meets_the_classes_as_often_as_their_scores_say():
    rng = np.random.default_rng(0)
    W = np.array([[0, 1, 2, 0], [1, 0, 1, 1], [2, 1, 0, 3], [0, 1, 3, 0.0]])
    at = np.ones(40_000, dtype=int)  # all walks start at point 1; 0 and 3 are labelled
    steps = np.cumsum(W / W.sum(axis=1, keepdims=True), axis=1)
    while (moving := np.flatnonzero((at == 1) | (at == 2))).size:
        at[moving] = (rng.random(moving.size)[:, None] > steps[at[moving]]).sum(axis=1)
    scores = harmonic(W, [0, -1, -1, 1]).values[1]
    assert np.mean(at == 3) == pytest.approx(scores[1], abs=4 * 0.5 / np.sqrt(at.size))


def test_a_long_path_is_solved_although_gradients_are_slow():
    n = 3000
    W = sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])
    labels = np.full(n, -1)
    labels[[0, -1]] = 0, 1
    np.testing.assert_allclose(harmonic(W, labels).values[:, 1], np.linspace(0, 1, n), atol=1e-9)


@given(seeds, st.floats(0.05, 0.99))
def test_spreading_is_the_direct_formula(seed, alpha):
    W, labels = instance(seed)
    roots = 1 / np.sqrt(W.sum(axis=1))
    S = W * np.outer(roots, roots)
    direct = (1 - alpha) * np.linalg.solve(np.eye(len(W)) - alpha * S, indicators(labels))
    np.testing.assert_allclose(spread(W, labels, alpha).values, direct, atol=1e-10)


def test_spreading_is_the_limit_of_the_iteration_of_scikit_learn():
    from sklearn.semi_supervised import LabelSpreading

    W, labels = instance(1)
    model = LabelSpreading(kernel=lambda X, Z: W, alpha=0.8, max_iter=2000, tol=1e-12)
    model.fit(np.arange(len(W))[:, None], labels)
    F = spread(W, labels, 0.8).values
    np.testing.assert_allclose(
        F / F.sum(axis=1, keepdims=True), model.label_distributions_, atol=1e-9
    )


@given(seeds, st.sampled_from([3, 8, 30]), st.floats(0.1, 100.0))
def test_least_squares_is_the_direct_formula_by_matrix_and_by_factor(seed, r, C):
    rng = np.random.default_rng(seed)
    _, labels = instance(seed)
    V, w = rng.normal(size=(40, r)), rng.random(r) * (rng.random(r) < 0.8)
    K, known = (V * w) @ V.T, labels >= 0
    inner = K[np.ix_(known, known)] + np.eye(known.sum()) / C
    direct = K[:, known] @ np.linalg.solve(inner, indicators(labels)[known])
    np.testing.assert_allclose(least_squares(K, labels, C).values, direct, atol=1e-8)
    np.testing.assert_allclose(least_squares((V, w), labels, C).values, direct, atol=1e-8)


@given(seeds)
def test_two_classes_are_told_apart_as_by_targets_of_minus_and_plus_one(seed):
    rng = np.random.default_rng(seed)
    _, labels = instance(seed, classes=2)
    V = rng.normal(size=(40, 6))
    K, known = V @ V.T, labels >= 0
    y = 2.0 * labels[known] - 1
    f = K[:, known] @ np.linalg.solve(K[np.ix_(known, known)] + np.eye(known.sum()), y)
    scores = least_squares((V, np.ones(6)), labels, 1.0)
    np.testing.assert_allclose(scores.values[:, 1] - scores.values[:, 0], f, atol=1e-9)
    np.testing.assert_array_equal(scores.labels, np.where(f > 0, 1, 0))


def test_least_squares_agrees_with_the_decision_of_a_learned_kernel():
    import klopt
    from klopt.kernels.graphs import laplacian

    W, labels = instance(3)
    problem = klopt.problems.SpectralRls(laplacian(W), labels, C=5.0, mu=0.05)
    point = klopt.solve(problem).require().point
    scores = least_squares((problem.directions.U, point.spectrum), labels, 5.0)
    np.testing.assert_allclose(scores.values, problem.decide(point), atol=1e-10)


def test_classes_keep_their_names():
    W, labels = instance(0)
    renamed = np.where(labels >= 0, 10 * labels + 3, -1)
    scores = harmonic(W, renamed)
    assert scores.classes.tolist() == [3, 13, 23]
    np.testing.assert_array_equal(scores.labels, 10 * harmonic(W, labels).labels + 3)


def test_fully_labelled_points_keep_their_labels():
    W, _ = instance(0)
    np.testing.assert_array_equal(
        harmonic(W, np.arange(len(W)) % 3).values, np.eye(3)[np.arange(len(W)) % 3]
    )


APART = np.kron(np.eye(3), np.ones((2, 2)) - np.eye(2))


@pytest.mark.parametrize("method", [harmonic, spread])
@pytest.mark.parametrize(
    ("W", "labels", "message"),
    [
        (
            APART,
            [0, -1, -1, 1, -1, -1],
            r"2 of 6 points have no way to a labelled point and get no answer: 4, 5;",
        ),
        (APART, [-1] * 6, "every point is unlabelled"),
        (APART, [4, 4, -1, -1, 4, -1], "one class only, 4"),
        (APART, [0, 1], "labels"),
        (APART, [0, 1, 0.5, 0, 0, 0], r"labels\[2\] is 0.5"),
        (np.ones((2, 3)), [0, 1], "2 x 3"),
        ([[0, -1], [-1, 0]], [0, 1], "must not be negative"),
    ],
)
def test_graphs_refuse_what_cannot_be_answered(method, W, labels, message):
    with pytest.raises(InvalidProblem, match=message):
        method(W, labels)


@pytest.mark.parametrize(
    ("K", "labels", "C", "message"),
    [
        (np.eye(3), [0, 1, -1], 0.0, "C"),
        (np.eye(3), [0, 0, -1], 1.0, "one class only"),
        (np.eye(3), [0, 1], 1.0, "labels"),
        ([[0.0, 1.0], [0.0, 0.0]], [0, 1], 1.0, "symmetric"),
        (-2 * np.eye(2), [0, 1], 1.0, "not positive definite on the labelled points"),
        ((np.eye(3), [1.0, -1.0, 0.0]), [0, 1, -1], 1.0, r"w\[1\] is -1"),
        ((np.eye(3), [1.0, 1.0]), [0, 1, -1], 1.0, "w"),
        ((np.eye(3),), [0, 1, -1], 1.0, "tuple of 1"),
    ],
)
def test_least_squares_refuses_what_is_no_kernel(K, labels, C, message):
    with pytest.raises(InvalidProblem, match=message):
        least_squares(K, labels, C)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5, np.nan])
def test_spreading_needs_a_share_below_one(alpha):
    with pytest.raises(InvalidProblem, match="alpha"):
        spread([[0, 1], [1, 0]], [0, 1], alpha)
