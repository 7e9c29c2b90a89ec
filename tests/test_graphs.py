"""Laplacians are positive semidefinite, count components, and the supervised graph by groups equals its dense form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import (
    knn_graph,
    laplacian,
    supervised_graph,
    supervised_laplacian,
    supervised_targets,
)
from klopt.kernels.side_information import side_graph

seeds = st.integers(0, 2**32 - 1)
labels = st.lists(st.integers(-1, 4), min_size=1, max_size=40)


def cloud(seed: int, n: int, features: int = 3) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n, features))


def brute_force(X: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Adjacency of the union graph and all squared distances, by definition."""
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    away = squares.copy()
    np.fill_diagonal(away, np.inf)
    directed = np.zeros_like(squares)
    np.put_along_axis(directed, np.argsort(away, axis=1)[:, :k], 1.0, axis=1)
    return np.maximum(directed, directed.T), squares


# --- neighbour graphs
# -------------------------------------------------------------------------------------------------


@given(
    seeds,
    st.integers(2, 30),
    st.integers(1, 29),
    st.sampled_from([1, 3, 20]),
    st.sampled_from([0.0, 1e6]),
)
def test_two_points_are_joined_when_either_is_near_the_other(
    seed: int, n: int, k: int, features: int, offset: float
) -> None:
    k = min(k, n - 1)
    X = cloud(seed, n, features)
    want, _ = brute_force(X, k)
    assert np.array_equal(knn_graph(X + offset, k).toarray(), want)


@given(seeds, st.integers(3, 30), st.integers(1, 5))
def test_gaussian_weights_follow_the_mean_squared_edge_length(seed: int, n: int, k: int) -> None:
    k = min(k, n - 1)
    X = cloud(seed, n)
    joined, squares = brute_force(X, k)
    mean = squares[joined > 0].mean()  # each undirected edge counted twice, so the mean over edges
    W = knn_graph(X, k, weights="gaussian").toarray()
    assert np.allclose(W, joined * np.exp(-squares / (2 * mean)), rtol=1e-12, atol=0)
    assert np.array_equal(W, W.T)
    given_width = knn_graph(X, k, weights="gaussian", bandwidth=np.sqrt(mean)).toarray()
    assert np.allclose(W, given_width, rtol=1e-12, atol=0)


@given(seeds, st.floats(1e-3, 1e3))
def test_the_default_gaussian_graph_does_not_depend_on_units(seed: int, unit: float) -> None:
    X = cloud(seed, 15)
    W, scaled = (knn_graph(points, 4, weights="gaussian").toarray() for points in (X, unit * X))
    assert np.allclose(W, scaled, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [2.0**1020, 1e160, 1e-170, 1e-300])
@pytest.mark.parametrize("features", [3, 30])
def test_neighbours_do_not_depend_on_units_however_far_from_one(
    scale: float, features: int
) -> None:
    X = cloud(0, 20, features)
    assert np.array_equal(knn_graph(scale * X, 3).toarray(), knn_graph(X, 3).toarray())
    for width in (None, 2.0):
        near = knn_graph(X, 3, weights="gaussian", bandwidth=width).toarray()
        far = knn_graph(
            scale * X, 3, weights="gaussian", bandwidth=width and width * scale
        ).toarray()
        assert np.allclose(far, near, rtol=1e-12, atol=0)


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_a_large_constant_coordinate_does_not_change_the_neighbours(weights: Any) -> None:
    X = cloud(0, 20)
    wide = np.column_stack((X, np.full(20, 1e200)))
    assert np.allclose(
        knn_graph(wide, 3, weights).toarray(),
        knn_graph(X, 3, weights).toarray(),
        rtol=1e-12,
        atol=0,
    )


@pytest.mark.parametrize("features", [1, 30])
def test_duplicate_points_are_joined_with_full_weight_and_never_to_themselves(
    features: int,
) -> None:
    X = np.repeat(cloud(0, 6, features) + 100.0, 3, axis=0)  # every point three times
    for weights in ("binary", "gaussian"):
        W = knn_graph(X, 2, weights=weights).toarray()
        assert np.array_equal(W, np.kron(np.eye(6), np.ones((3, 3)) - np.eye(3)))


def test_coinciding_points_have_binary_weights() -> None:
    W = knn_graph(np.ones((4, 2)), 3, weights="gaussian")
    assert np.array_equal(W.toarray(), np.ones((4, 4)) - np.eye(4))


def test_a_weight_that_underflows_is_no_edge() -> None:
    W = knn_graph([[0.0], [1.0], [100.0]], 1, weights="gaussian", bandwidth=1.0)
    assert W.nnz == 2
    assert W[0, 1] == np.exp(-0.5)


def test_the_graph_is_frozen_canonical_csc() -> None:
    W = knn_graph(cloud(0, 20), 3)
    assert type(W) is sparse.csc_array
    assert W.has_canonical_format
    assert not W.data.flags.writeable


@pytest.mark.parametrize("neighbours", [5, 6, 0, -1, 2.0, True, "3", None])
def test_a_number_of_neighbours_no_point_can_have_is_refused(neighbours: Any) -> None:
    with pytest.raises(InvalidProblem, match=r"^neighbours is .*; each of 5 points has at most 4"):
        knn_graph(cloud(0, 5), neighbours)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "cosine"}, "weights is 'cosine'; expected one of binary, gaussian"),
        ({"bandwidth": 1.0}, "binary weights have none"),
        ({"weights": "gaussian", "bandwidth": 0.0}, "bandwidth is 0.0; expected a positive number"),
        ({"weights": "gaussian", "bandwidth": float("nan")}, "bandwidth is nan"),
    ],
)
def test_other_weights_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        knn_graph(cloud(0, 5), 2, **options)


def test_points_that_are_not_finite_numbers_are_refused() -> None:
    X = cloud(0, 5)
    X[3, 1] = np.nan
    with pytest.raises(InvalidProblem, match=r"X\[3, 1\] is nan"):
        knn_graph(X, 2)


def test_points_without_coordinates_are_refused() -> None:
    with pytest.raises(InvalidProblem, match=r"^X is 3 x 0; expected points with coordinates$"):
        knn_graph(np.zeros((3, 0)), 1)


# --- Laplacians
# -------------------------------------------------------------------------------------------------------


@st.composite
def weight_matrices(draw: st.DrawFn) -> FloatArray:
    """Symmetric nonnegative weights with loops, isolated points and several components."""
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(seeds))
    upper = np.triu(
        rng.uniform(0.1, 10, (n, n))
        * (rng.random((n, n)) < draw(st.sampled_from([0.05, 0.2, 0.9])))
    )
    return upper + np.triu(upper, 1).T


@given(weight_matrices(), st.booleans())
def test_a_laplacian_is_symmetric_psd_with_one_zero_eigenvalue_per_component(
    W: FloatArray, normalised: bool
) -> None:
    L = laplacian(sparse.coo_array(W), normalised).toarray()
    values = np.linalg.eigvalsh(L)
    components = connected_components(W, directed=False, return_labels=False)
    tolerance = 1e-12 * (1 + np.abs(L).max())
    assert np.array_equal(L, L.T)
    assert values[0] >= -tolerance
    assert (values < tolerance).sum() == components
    if normalised:
        assert values[-1] <= 2 + tolerance


@given(weight_matrices(), seeds)
def test_the_laplacian_measures_squared_differences_over_edges(W: FloatArray, seed: int) -> None:
    f = np.random.default_rng(seed).normal(size=len(W))
    energy = (W * (f[:, None] - f) ** 2).sum() / 2
    assert f @ (laplacian(W, normalised=False) @ f) == pytest.approx(energy, rel=1e-12, abs=1e-12)
    g = np.sqrt(W.sum(axis=0)) * f
    assert g @ (laplacian(W) @ g) == pytest.approx(energy, rel=1e-12, abs=1e-12)


def test_an_isolated_point_has_a_zero_row() -> None:
    W = np.array([[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert laplacian(W).toarray().tolist() == [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert laplacian(W, normalised=False).toarray().tolist() == [
        [4.0, -4.0, 0.0],
        [-4.0, 4.0, 0.0],
        [0.0, 0.0, 0.0],
    ]
    assert laplacian(np.zeros((2, 2))).nnz == 0


@pytest.mark.parametrize("weight", [5e-324, 1e-320, 1e-200, 1e200, 1e308])
def test_a_normalised_laplacian_does_not_depend_on_the_size_of_the_weights(weight: float) -> None:
    W = np.array([[0.0, weight, 0.0], [weight, 0.0, 0.0], [0.0, 0.0, 1.0]])
    want = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.allclose(laplacian(W).toarray(), want, rtol=0, atol=1e-15)


@pytest.mark.parametrize("normalised", [True, False])
def test_degrees_beyond_the_range_of_floats_are_blamed_on_the_weights(normalised: bool) -> None:
    with pytest.raises(
        InvalidProblem, match=r"^W\[0\] adds up to more than a float can hold; rescale W"
    ):
        laplacian(np.full((3, 3), 1e308), normalised)


def test_far_clusters_are_separate_components() -> None:
    X = np.concatenate([cloud(0, 10), cloud(1, 12) + 1e3, cloud(2, 9) - 1e3])
    values = np.linalg.eigvalsh(laplacian(knn_graph(X, 8)).toarray())
    assert (values < 1e-12).sum() == 3


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), "W is 2 x 3; expected a square matrix"),
        ([[0.0, -1.0], [-1.0, 0.0]], r"W\[[01], [01]\] is -1.0; weights must not be negative"),
        (
            [[0.0, 1.0], [0.0, 0.0]],
            r"W is not symmetric: W\[0, 1\] = 1.0 but W\[1, 0\] = 0.0; pass W.maximum\(W.T\)",
        ),
        ([[0.0, np.nan], [0.0, 0.0]], r"W\[0, 1\] is nan"),
    ],
)
def test_what_is_no_weight_matrix_is_refused(W: object, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        laplacian(W)


# --- the supervised complete graph
# ------------------------------------------------------------------------------------


@given(labels)
def test_targets_state_what_the_labels_say_of_each_pair(classes: list[int]) -> None:
    T = supervised_targets(classes)
    for i, a in enumerate(classes):
        for j, b in enumerate(classes):
            known = -1 not in (a, b)
            same = 1 if a == b else -1
            assert T[i, j] == (same if known else 0)


@given(labels)
def test_the_group_form_equals_the_dense_laplacian(classes: list[int]) -> None:
    graph = supervised_graph(classes)
    dense = supervised_laplacian(supervised_targets(classes))
    n = len(classes)
    assert np.abs(graph.apply(np.eye(n)) - dense).max() < 1e-12
    assert np.abs(np.eye(n) - graph.Z @ graph.R @ graph.Z.T - dense).max() < 1e-12
    assert np.abs(graph.Z.T @ graph.Z - np.eye(len(graph.R))).max() < 1e-12
    assert graph.degrees == pytest.approx(
        np.exp(supervised_targets(classes)).sum(axis=0), rel=1e-14
    )


@given(labels, seeds)
def test_the_group_form_applies_to_vectors_and_columns_alike(classes: list[int], seed: int) -> None:
    graph = supervised_graph(classes)
    X = np.random.default_rng(seed).normal(size=(len(classes), 3))
    assert np.abs(graph.apply(X) - np.column_stack([graph.apply(x) for x in X.T])).max() < 1e-14


@given(labels)
def test_the_supervised_laplacian_is_psd_with_the_root_degrees_in_its_null_space(
    classes: list[int],
) -> None:
    graph = supervised_graph(classes)
    values = np.linalg.eigvalsh(supervised_laplacian(supervised_targets(classes)))
    q = np.sqrt(graph.degrees)
    assert values[0] >= -1e-14
    assert values[-1] <= 2 + 1e-14
    assert np.abs(graph.apply(q)).max() < 1e-12 * np.abs(q).max()
    assert np.linalg.eigvalsh(graph.R)[-1] == pytest.approx(1.0, abs=1e-14)


@given(seeds, st.integers(1, 8))
def test_the_scg_loss_is_twice_the_inner_product_with_the_laplacian(seed: int, n: int) -> None:
    # (10) of the paper prints the loss without the factor 2: every pair is counted in both orders.
    rng = np.random.default_rng(seed)
    T = np.triu(rng.uniform(-1, 1, (n, n)))
    T = T + np.triu(T, 1).T
    points = rng.normal(size=(n, 3))
    W = np.exp(T)
    scaled = points / np.sqrt(W.sum(axis=0))[:, None]
    loss = (W * ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)).sum()
    assert loss == pytest.approx(
        2 * np.sum(points @ points.T * supervised_laplacian(T)), rel=1e-10, abs=1e-10
    )


def test_only_the_partition_matters_not_the_names_of_the_classes() -> None:
    a, b = supervised_graph([0, 0, 1, -1, 2]), supervised_graph([7, 7, 3, -1, 100])
    assert np.abs(a.apply(np.eye(5)) - b.apply(np.eye(5))).max() < 1e-15


def test_many_points_need_no_square_matrix() -> None:
    n = 200_000
    graph = supervised_graph(np.arange(n) % 5 - 1)
    assert graph.R.shape == (5, 5)
    assert np.abs(graph.apply(np.sqrt(graph.degrees))).max() < 1e-9
    with pytest.raises(InvalidProblem, match=r"T of order 200000 needs 960\.0 GB"):
        supervised_targets(np.arange(n) % 5 - 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 1, -2], r"labels\[2\] is -2; expected integers from 0 up, or -1 for unlabelled"),
        ([0, 0.5], r"labels\[1\] is 0.5"),
        ([0, np.nan], r"labels\[1\] is nan"),
        (["a", "b"], "labels has dtype <U1"),
        ([[0, 1]], r"labels has shape \(1, 2\)"),
        ([], "labels is empty"),
    ],
)
def test_what_is_no_class_label_is_refused(value: object, message: str) -> None:
    for build in (supervised_graph, supervised_targets):
        with pytest.raises(InvalidProblem, match=message):
            build(value)


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (
            [[0.0, 2.0], [2.0, 0.0]],
            r"T\[0, 1\] is 2.0; expected -1 \(dissimilar\) to 1 \(similar\)",
        ),
        ([[0.0, 1.0], [0.0, 0.0]], "T is not symmetric"),
        (np.ones((2, 3)), "expected a square matrix"),
    ],
)
def test_what_is_no_target_matrix_is_refused(T: object, message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        supervised_laplacian(T)


def pairs_of(T: np.ndarray) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The similar and the dissimilar pairs of a matrix T."""
    points = range(len(T))
    above = [(i, j) for i in points for j in points if i < j]
    return [p for p in above if T[p] > 0], [p for p in above if T[p] < 0]


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.booleans())
def test_labels_their_pairs_and_the_matrix_of_their_pairs_make_one_graph(
    seed: int, n: int, self_similar: bool
) -> None:
    rng = np.random.default_rng(seed)
    labels = np.append([0, 1], rng.integers(-1, 3, n - 2)) if n > 2 else np.array([0, 1])
    known = np.flatnonzero(labels >= 0)
    # (7) of Pan et al. (2016), entry by entry.
    T = np.zeros((n, n))
    for i in known:
        for j in known:
            if i != j:
                T[i, j] = 1.0 if labels[i] == labels[j] else -1.0
    # The convention: T_ii = 1 for a point that is spoken of.
    full = T + np.diag(np.isin(np.arange(n), known) * 1.0 * self_similar)
    expected = supervised_laplacian(full)
    for side in (labels, T, pairs_of(T)):
        graph = side_graph(side, n, self_similar=self_similar)
        np.testing.assert_allclose(graph.apply(np.eye(n)), expected, atol=1e-14)
        assert side_graph(graph, n) is graph


def test_a_diagonal_that_is_given_stands() -> None:
    T = np.array([[0.5, 1.0], [1.0, 0.0]])
    for self_similar in (True, False):
        found = side_graph(T, 2, self_similar=self_similar).apply(np.eye(2))
        np.testing.assert_array_equal(found, supervised_laplacian(T))


def test_a_graph_of_other_points_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="side is about 3 points; expected 4"):
        side_graph(side_graph([0, 1, 1], 3), 4)
