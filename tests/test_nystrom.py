"""Nystroem's features: below the kernel, exact on the landmarks, the same on every run, open about what they miss."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from strategies import generators

from klopt.errors import InvalidProblem
from klopt.kernels.nystroem import LowRank, nystrom

ways = st.sampled_from(["kmeans", "leverage"])


def points(rng, n=60, d=3):
    return rng.normal(size=(n, d)) + 3 * rng.integers(0, 2, n)[:, None]


@given(rng=generators, landmarks=ways, rank=st.integers(1, 40))
def test_what_is_missing_is_a_kernel_and_its_trace_is_reported(rng, landmarks, rank):
    X = points(rng)
    found = nystrom(X, rank=rank, landmarks=landmarks)
    K = rbf_kernel(X)
    rest = K - found.Phi @ found.Phi.T
    assert np.linalg.eigvalsh(rest)[0] >= -1e-8
    assert found.missing == pytest.approx(np.linalg.norm(rest, "nuc") / np.trace(K), abs=1e-7)
    assert found.rank <= rank


@given(rng=generators, landmarks=ways)
def test_more_landmarks_miss_less(rng, landmarks):
    X = points(rng)
    missing = [nystrom(X, rank=rank, landmarks=landmarks).missing for rank in (2, 10, 60)]
    assert missing[0] > missing[1] > missing[2] - 1e-9
    assert missing[2] < 1e-6


@given(rng=generators, landmarks=ways)
def test_new_points_have_the_features_of_the_training_points(rng, landmarks):
    X = points(rng)
    found = nystrom(X, partial(rbf_kernel, gamma=0.3), rank=12, landmarks=landmarks)
    np.testing.assert_allclose(found.features(X), found.Phi, atol=1e-9)
    on_landmarks = found.features(found.landmarks)
    np.testing.assert_allclose(
        on_landmarks @ on_landmarks.T, rbf_kernel(found.landmarks, gamma=0.3), atol=1e-10
    )


def test_the_same_landmarks_as_in_scikit_learn_give_the_same_kernel():
    X = points(np.random.default_rng(0), 80)
    theirs = Nystroem(gamma=0.5, n_components=15, random_state=0).fit(X)
    Phi = theirs.transform(X)
    ours = nystrom(X, partial(rbf_kernel, gamma=0.5), rank=80)
    whitened = ours.__class__(
        ours.Phi, ours.kernel, theirs.components_, theirs.normalization_.T, 0.0
    )
    np.testing.assert_allclose(
        whitened.features(X) @ whitened.features(X).T, Phi @ Phi.T, atol=1e-10
    )


@pytest.mark.parametrize("landmarks", ["kmeans", "leverage"])
def test_a_seed_fixes_everything(landmarks):
    X = points(np.random.default_rng(1), 500)
    one, two, other = (nystrom(X, rank=10, landmarks=landmarks, seed=seed) for seed in (0, 0, 1))
    assert (one.Phi == two.Phi).all()
    assert (one.landmarks != other.landmarks).any()


def test_chosen_landmarks_beat_uniform_ones_where_clusters_are_uneven():
    rng = np.random.default_rng(2)
    X = np.concatenate(
        [rng.normal(size=(960, 2)) * 0.05, rng.normal(size=(40, 2)) + rng.integers(4, 9, (40, 1))]
    )
    uniform = np.mean([_uniform(X, seed) for seed in range(5)])
    for landmarks in ("kmeans", "leverage"):
        assert nystrom(X, rank=25, landmarks=landmarks).missing < 0.7 * uniform


def _uniform(X, seed):
    Phi = Nystroem(gamma=0.5, n_components=25, random_state=seed).fit_transform(X)
    return 1 - np.sum(Phi**2) / len(X)


def test_duplicate_points_are_one_landmark():
    X = np.repeat([[0.0], [1.0], [5.0]], 20, axis=0)
    for landmarks in ("kmeans", "leverage"):
        found = nystrom(X, rank=10, landmarks=landmarks)
        assert found.rank <= 3
        assert np.isfinite(found.Phi).all()
    assert nystrom(X, rank=10).missing < 1e-12


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda X: nystrom(X, rank=0), "rank is 0"),
        (lambda X: nystrom(X, rank=len(X) + 1), "rank is 61"),
        (lambda X: nystrom(X, rank=2.5), "rank is 2.5"),
        (lambda X: nystrom(X, rank=2, landmarks="first"), "landmarks is 'first'"),
        (lambda X: nystrom(X, "no such kernel", rank=2), "no such kernel"),
        (lambda X: nystrom(X, lambda A, B: np.ones(3), rank=2), "shape"),
        (lambda X: nystrom(X, lambda A, B: -rbf_kernel(A, B), rank=2), "no kernel"),
        (lambda X: nystrom(X * np.nan, rank=2), "X"),
        (lambda X: nystrom(X, rank=2).features(X[:, :2]), "X is 60 x 2"),
        (lambda X: LowRank(np.zeros((3, 2))), "no entry but 0"),
        (lambda X: LowRank([[np.inf]]), "Phi"),
    ],
)
def test_bad_data_are_refused_with_a_reason(run, message):
    with pytest.raises(InvalidProblem, match=message):
        run(points(np.random.default_rng(3)))


def test_features_are_copied_unless_they_are_frozen():
    given = np.ones((3, 1))
    low = LowRank(given)
    given[0] = 7.0
    assert low.Phi[0] == 1.0
    assert LowRank(low.Phi).Phi is low.Phi
