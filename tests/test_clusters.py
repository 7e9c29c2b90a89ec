"""Data-adaptive kernels by clusters, models solved in parallel: one cluster and one job are the rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.preprocessing import StandardScaler

from klopt.errors import InvalidProblem, UncertifiedFit, UnhelpfulKernel
from klopt.learners import EMKL, ESKL, REKL, DankSVC, DankSVR, MklSVC
from klopt.learners._clusters import Division
from klopt.learners.kernels import rbf

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X) + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
TRAIN = np.arange(150) % 2 == 0
NEW = X[~TRAIN]
WAVE = np.linspace(0.0, 12.0, 80)[:, None]


def test_clusters_hold_each_point_once_and_at_its_nearest_centre() -> None:
    division = Division.of(X, 6, seed=3)
    np.testing.assert_array_equal(np.sort(np.concatenate(division.rows)), np.arange(150))
    assert division.centres is not None
    nearest = euclidean_distances(X, division.centres).argmin(axis=1)
    for cluster, rows in enumerate(division.rows):
        assert rows.size
        assert (nearest[rows] == cluster).all()
    np.testing.assert_array_equal(division.assigned(X), nearest)
    thin = Division.of(sparse.csr_matrix(X), 6, seed=3)
    assert [rows.tolist() for rows in thin.rows] == [rows.tolist() for rows in division.rows]


@pytest.mark.parametrize("learner", [DankSVC(), DankSVC(multi_class="ovr", tau=1.0)], ids=str)
def test_one_cluster_is_the_undivided_model(learner: Any) -> None:
    whole = clone(learner).fit(X[TRAIN], y[TRAIN])
    one = clone(learner).set_params(clusters=1).fit(X[TRAIN], y[TRAIN])
    np.testing.assert_array_equal(one.decision_function(NEW), whole.decision_function(NEW))
    np.testing.assert_array_equal(one.kernel_, whole.kernel_)
    assert len(one.results_) == len(whole.results_) == 3


def test_one_cluster_is_the_undivided_regression() -> None:
    values = np.sin(WAVE.ravel())
    whole = DankSVR(C=10.0).fit(WAVE, values)
    one = DankSVR(C=10.0, clusters=1).fit(WAVE, values)
    np.testing.assert_array_equal(one.predict(WAVE + 0.05), whole.predict(WAVE + 0.05))


def test_each_cluster_decides_as_a_model_of_its_points_alone() -> None:
    """With a given eta and width nothing else is shared."""
    cancer, benign = load_breast_cancer(return_X_y=True)
    cancer = StandardScaler().fit_transform(cancer)
    learner = DankSVC(rbf(0.03), eta=50.0, clusters=3, random_state=1)
    learner.fit(cancer[:300], benign[:300])
    division = Division.of(cancer[:300], 3, seed=1)
    found = learner.decision_function(cancer[300:])
    where = division.assigned(cancer[300:])
    models = 0
    for cluster, rows in enumerate(division.rows):
        new = cancer[300:][where == cluster]
        if np.unique(benign[rows]).size == 1:
            np.testing.assert_array_equal(found[where == cluster], 2.0 * benign[rows[0]] - 1)
            continue
        models += 1
        alone = DankSVC(rbf(0.03), eta=50.0).fit(cancer[rows], benign[rows])
        np.testing.assert_allclose(
            found[where == cluster], alone.decision_function(new), atol=1e-12
        )
        np.testing.assert_allclose(learner.kernel_[np.ix_(rows, rows)], alone.kernel_)
    assert models == len(learner.results_) > 1
    assert all(result.verdict.name == "OPTIMAL" for result in learner.results_)


def test_far_clusters_leave_nothing_out() -> None:
    """Where the kernel is 0 between clusters, the divided model without bias is the whole one."""
    rng = np.random.default_rng(5)
    middle = np.repeat([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]], 20, axis=0)
    points = middle + rng.normal(size=(60, 2))
    assert rbf_kernel(points[:20], points[20:], gamma=1.0).max() == 0
    # Classes that mirror each other leave every bias at 0.
    points[10:20] = points[:10] * [1, -1]
    signs = np.where(points[:, 1] - middle[:, 1] > 0, 1, 0)
    parts = DankSVC(rbf(1.0), eta=2.0, clusters=3).fit(points, signs)
    whole = DankSVC(rbf(1.0), eta=2.0).fit(points, signs)
    assert np.mean(parts.predict(points) == whole.predict(points)) > 0.95


def test_a_local_regression_needs_no_common_level() -> None:
    """Two levels far apart: each cluster has a bias of its own."""
    values = np.where(WAVE.ravel() < 6, 0.0, 1000.0) + np.sin(WAVE.ravel())
    learner = DankSVR(C=10.0, clusters=2).fit(WAVE, values)
    new = WAVE[::5] + 0.01
    expected = np.where(new.ravel() < 6, 0.0, 1000.0) + np.sin(new.ravel())
    near = np.abs(new.ravel() - 6) > 0.3
    assert np.abs(learner.predict(new) - expected)[near].max() < 0.5


def test_sparse_points_are_divided_as_dense_ones() -> None:
    dense = DankSVC(clusters=3).fit(X[TRAIN], y[TRAIN])
    thin = DankSVC(clusters=3).fit(sparse.csr_matrix(X[TRAIN]), y[TRAIN])
    found = thin.decision_function(sparse.csr_matrix(NEW))
    np.testing.assert_allclose(found, dense.decision_function(NEW), atol=1e-9)


def test_ranks_are_those_of_the_points_of_a_cluster() -> None:
    learner = DankSVC(clusters=2, rule="reciprocal").fit(X[TRAIN], y[TRAIN])
    assert np.mean(learner.predict(NEW) == y[~TRAIN]) > 0.9


def test_pure_clusters_and_clusters_of_kernels_are_refused() -> None:
    apart = np.repeat([[0.0], [9.0]], 5, axis=0) + np.arange(10)[:, None] * 0.01
    with pytest.raises(InvalidProblem, match="each of the 2 clusters holds one class only"):
        DankSVC(clusters=2).fit(apart, np.repeat([0, 1], 5))
    with pytest.raises(InvalidProblem, match="k-means needs points; with a precomputed kernel"):
        DankSVC("precomputed", clusters=2).fit(rbf_kernel(X), y)
    with pytest.raises(InvalidProblem, match="clusters is 200; expected a whole number from 1 to"):
        DankSVC(clusters=200).fit(X, y)


# ------------------------------------------------------------------------ n_jobs


@pytest.mark.parametrize(
    "learner",
    [
        MklSVC(),
        DankSVC(),
        DankSVC(clusters=3),
        *(pytest.param(each, marks=pytest.mark.slow) for each in (ESKL(), EMKL(), REKL())),
    ],
    ids=str,
)
def test_jobs_change_nothing(learner: Any) -> None:
    one = clone(learner).fit(X[TRAIN], y[TRAIN])
    two = clone(learner).set_params(n_jobs=2).fit(X[TRAIN], y[TRAIN])
    np.testing.assert_array_equal(one.decision_function(NEW), two.decision_function(NEW))
    for own, other in zip(one.results_, two.results_, strict=True):
        assert (own.lower, own.upper, own.verdict) == (other.lower, other.upper, other.verdict)


def test_a_fit_in_jobs_warns_here_of_what_is_not_proven() -> None:
    """Warnings of other processes would be lost: they are raised by the process that fits."""
    learner = ESKL(loss="l1", backend="mirror_descent", tol=1e-12, time_limit=0.1, n_jobs=2)
    with pytest.warns(UncertifiedFit, match="ESKL is not certified") as told:
        learner.fit(X[:100:5], y[:100:5])
    assert told[0].filename == __file__


def test_a_warning_of_the_kernel_points_to_the_call_of_fit() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UnhelpfulKernel)
        DankSVC(influence=1e-6, clusters=2).fit(X[TRAIN], y[TRAIN])
    assert [warning.filename for warning in told] == [__file__]
