"""Learners as they come: what is chosen in a fit, when they warn, and what probabilities mean."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from klopt.errors import InvalidProblem, UnhelpfulKernel
from klopt.kernels.graphs import knn_graph, laplacian
from klopt.kernels.rbf import gamma_scale, gaussians
from klopt.learners import (
    ESKL,
    LDK,
    OSK,
    SKL,
    DankSVC,
    DankSVR,
    Harmonic,
    LapRLS,
    MklRidge,
    MklSVC,
    ScgLDK,
    ScgOSK,
)
from klopt.learners._calibration import SoftDecision
from klopt.learners._ridge import RidgeExtension
from klopt.learners.kernels import linear, rbf

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X) + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
FEW = np.where(np.arange(150) % 5 == 0, y, -1)
NOISY_X = np.random.default_rng(1).normal(size=(160, 4))
NOISY_Y = (NOISY_X[:, 0] + 1.5 * np.random.default_rng(2).normal(size=160) > 0).astype(int)


def test_values_are_carried_by_the_ridge_regression_of_least_error_without_a_point() -> None:
    """The closed form of leaving a point out against leaving each point out."""
    F = np.column_stack([np.sin(NOISY_X[:40, 0]), NOISY_Y[:40] - 0.5])
    found = RidgeExtension(NOISY_X[:40], F)
    gamma = 1 / (4 * NOISY_X[:40].var())

    def regression(rows: Any, ridge: float, new: Any) -> Any:
        """Solve for coefficients and constant at once: the coefficients of a column sum to 0."""
        K = rbf_kernel(NOISY_X[rows], gamma=gamma) + ridge * np.eye(len(rows))
        whole = np.block(
            [[K, np.ones((len(rows), 1))], [np.ones((1, len(rows))), np.zeros((1, 1))]]
        )
        solved = np.linalg.solve(whole, np.vstack([F[rows], np.zeros((1, 2))]))
        return rbf_kernel(new, NOISY_X[rows], gamma=gamma) @ solved[:-1] + solved[-1]

    def left_out(ridge: float) -> Any:
        rest = [np.delete(np.arange(40), i) for i in range(40)]
        return np.vstack([regression(rest[i], ridge, NOISY_X[i : i + 1]) for i in range(40)])

    errors = {r: np.square(F - left_out(r)).sum() for r in (found.ridge / 10, found.ridge * 10)}
    own = left_out(found.ridge)
    np.testing.assert_allclose(found.left_out, own, atol=1e-9)
    assert np.square(F - own).sum() < min(errors.values())
    expected = regression(np.arange(40), found.ridge, NOISY_X[40:])
    np.testing.assert_allclose(found(NOISY_X[40:]), expected, atol=1e-9)


def test_features_of_many_points_are_the_same_regression(monkeypatch: Any) -> None:
    F = NOISY_X[:, :1] ** 2
    exact = RidgeExtension(NOISY_X, F)
    expected = exact(NOISY_X + 0.1)
    monkeypatch.setattr("klopt.learners._ridge.MAX_EXACT_POINTS", 10)
    monkeypatch.setattr("klopt.learners._ridge.FEATURES", 160)
    low = RidgeExtension(NOISY_X, F)
    assert low.ridge == exact.ridge
    np.testing.assert_allclose(low(NOISY_X + 0.1), expected, atol=1e-6)


@pytest.mark.parametrize("learner", [OSK(), SKL(), Harmonic()], ids=str)
def test_noisy_labels_are_smoothed_for_new_points(learner: Any) -> None:
    """Where labels are noise for the most part, the nearest neighbours alone decide worse."""
    scores = {}
    for extension in ("kernel", "neighbours"):
        model = clone(learner).set_params(extension=extension)
        scores[extension] = model.fit(NOISY_X[:120], NOISY_Y[:120]).score(
            NOISY_X, NOISY_X[:, 0] > 0
        )
    assert scores["kernel"] > scores["neighbours"] + 0.05


def test_an_unknown_extension_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="extension is 'mean'; expected one of kernel"):
        OSK(extension="mean").fit(X, FEW)  # type: ignore[arg-type]


def test_a_kernel_that_memorises_is_told_and_by_default_none_is() -> None:
    new = np.random.default_rng(3).normal(size=(300, 4))
    with pytest.warns(UnhelpfulKernel, match="DankSVC: the learned kernel only memorises"):
        memory = DankSVC(deviation=0.3).fit(NOISY_X, NOISY_Y)
    nearest = KNeighborsClassifier(1).fit(NOISY_X, NOISY_Y).predict(new)
    assert np.mean(memory.predict(new) == nearest) > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnhelpfulKernel)
        model = DankSVC().fit(NOISY_X, NOISY_Y)
    assert np.mean(model.predict(new) == nearest) < 0.9
    assert np.mean(model.predict(new) == SVC().fit(NOISY_X, NOISY_Y).predict(new)) > 0.9


@pytest.mark.parametrize(
    "learner",
    [DankSVC(influence=1e-6), ScgLDK(gamma=1e-9), LDK(n_pairs=1, random_state=0, slack=1e-9)],
    ids=str,
)
def test_a_kernel_that_does_nothing_is_told(learner: Any) -> None:
    with pytest.warns(UnhelpfulKernel, match="the learned kernel does nothing"):
        learner.fit(NOISY_X, NOISY_Y)


def test_a_kernel_of_too_few_eigenvectors_is_told() -> None:
    with pytest.warns(UnhelpfulKernel, match="1 eigenvectors for 3 classes"):
        ScgOSK(floor=0.0).fit(X, FEW)


def test_weights_of_the_prior_follow_the_graph_and_stay_ordered() -> None:
    printed = OSK(prior=0.0, rank=40).fit(X, FEW)
    np.testing.assert_array_equal(printed.spectrum_, printed.result_.point.alpha)
    np.testing.assert_allclose(printed.kernel_, printed.result_.kernel, atol=1e-12)
    values = np.linalg.eigvalsh(laplacian(knn_graph(X, 5, "gaussian")).toarray())[:40]
    field = 1 / (np.maximum(values, 0.0) + 1e-3)
    graph_alone = OSK(prior=1.0, rank=40).fit(X, FEW).spectrum_
    np.testing.assert_allclose(graph_alone, field / field.sum(), rtol=1e-5)
    half = OSK(prior=0.5, rank=40).fit(X, FEW).spectrum_
    np.testing.assert_allclose(half, (printed.spectrum_ + graph_alone) / 2, atol=1e-12)
    assert half.sum() == pytest.approx(1.0)
    assert (np.diff(half) <= 1e-12).all()
    # 30 labels, 10 for each of three classes.
    assert OSK().fit(X, FEW).prior_ == pytest.approx(10**-0.5)
    with pytest.raises(InvalidProblem, match=r"prior is 2; expected a share from 0 to 1"):
        OSK(prior=2.0).fit(X, FEW)


def test_one_label_a_class_is_enough_with_a_prior() -> None:
    """The best aligned kernel is then a multiple of the identity, which says nothing."""
    images, digits = load_digits(n_class=5, return_X_y=True)
    images, digits = images[:250], digits[:250]
    one = np.full(250, -1)
    first = [int(np.flatnonzero(digits == c)[0]) for c in range(5)]
    one[first] = range(5)
    right = {
        prior: np.mean(OSK(prior=prior).fit(images, one).transduction_ == digits)
        for prior in (0.0, None)
    }
    assert right[None] > right[0.0] + 0.2


@pytest.mark.parametrize("learner", [OSK(), SKL(), ScgOSK()], ids=str)
def test_points_without_a_way_to_a_label_are_decided_by_their_nearest(learner: Any) -> None:
    """Four clouds in a square; the two without labels lie beside those with them."""
    rng = np.random.default_rng(0)
    middle = np.repeat([[0.0, 0.0], [0.0, 9.0], [6.0, 0.0], [6.0, 9.0]], 30, axis=0)
    points = middle + rng.normal(size=(120, 2)) * 0.5
    labels = np.full(120, -1)
    labels[[0, 1, 30, 31]] = [0, 0, 1, 1]
    model = clone(learner).fit(points, labels)
    expected = (middle[:, 1] > 0).astype(int)
    np.testing.assert_array_equal(model.transduction_, expected)


def test_a_repeated_eigenvalue_counts_by_its_eigenspace_and_not_by_a_basis() -> None:
    """Two components: Algorithm 1 by projectors, which no choice of eigenvectors changes."""
    points = np.vstack([X[:50], X[50:100] + 40.0])
    labels = np.full(100, -1)
    labels[[3, 30, 55, 90]] = [0, 1, 0, 1]
    model = SKL(ridge=1e-3).fit(points, labels)
    assert model._reached.all()
    values, U = np.linalg.eigh(laplacian(knn_graph(points, 5, "gaussian")).toarray())
    values = np.where(values < 1e-9, 0.0, values)
    assert np.count_nonzero(values == 0) >= 2
    known = np.flatnonzero(labels >= 0)
    signs = 2.0 * labels[known] - 1
    R = np.zeros((100, 100))
    for value in np.unique(values.round(9)):
        space = U[:, np.abs(values - value) < 1e-8]
        A = np.mean(np.square(space[known].T @ signs))
        R += np.sqrt(A / (value**2 + 1e-3)) * space @ space.T
    expected = R[:, known] @ np.linalg.solve(R[np.ix_(known, known)], signs)
    np.testing.assert_allclose(model._carrier.values[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(model.kernel_, R / np.trace(R), atol=1e-9)


def test_every_eigenvector_has_its_share_of_the_floor_and_the_rest_is_optimal() -> None:
    """Against the linear program with the floor as a bound of each weight, solved by SciPy."""
    model = ScgOSK(floor=0.4, rank=30).fit(X, FEW)
    c = model.result_.problem.coefficients[1:]
    order = np.eye(29, k=1)[:-1] - np.eye(29)[:-1]
    program = linprog(
        c, A_ub=order, b_ub=np.zeros(28), A_eq=np.ones((1, 29)), b_eq=[1.0], bounds=(0.4 / 29, None)
    )
    assert model.spectrum_[0] == 0
    assert c @ model.spectrum_[1:] == pytest.approx(program.fun, rel=1e-9)
    V = model.result_.problem.V
    np.testing.assert_allclose(model.kernel_, (V * model.spectrum_) @ V.T, atol=1e-12)
    np.testing.assert_allclose(model.spectrum_.sum(), 1.0)


def test_the_floor_grows_with_the_labels() -> None:
    assert ScgOSK().fit(X, FEW).floor_ == pytest.approx(0.26)
    assert ScgOSK().fit(X, y).floor_ == pytest.approx(0.9)
    assert ScgOSK().fit(X, y).score(X, y) > 0.9
    with pytest.raises(InvalidProblem, match=r"floor is 1\.5; expected a share from 0 to 1"):
        ScgOSK(floor=1.5).fit(X, y)


def test_unlabelled_points_pull_the_less_the_more_there_are() -> None:
    assert ScgLDK().fit(X, y).gamma_ == pytest.approx(0.3)
    assert ScgLDK().fit(X, FEW).gamma_ == pytest.approx(0.06)
    assert ScgLDK(gamma=2.0).fit(X, FEW).gamma_ == 2.0


def test_points_without_a_way_to_a_label_get_the_shares_of_the_labels() -> None:
    far = np.vstack([X[:100], X[:20] + 100.0])
    labels = np.full(120, -1)
    labels[[0, 1, 60]] = [0, 0, 1]
    with pytest.warns(UserWarning, match="20 of 120 points have no way to a labelled point"):
        model = Harmonic().fit(far, labels)
    np.testing.assert_allclose(model._probabilities[100:], [[2 / 3, 1 / 3]] * 20)


@pytest.mark.parametrize("learner", [OSK(), SKL(), Harmonic()], ids=str)
def test_probabilities_sum_to_one_and_agree_with_decisions(learner: Any) -> None:
    model = clone(learner).fit(X[::2], y[::2])
    P = model.predict_proba(X[1::2])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() >= 0
    assert np.mean(model.classes_[P.argmax(axis=1)] == model.predict(X[1::2])) > 0.95
    two = clone(learner).fit(X[:100:2], y[:100:2]).predict_proba(X[1:100:2])
    assert two.shape == (50, 2)


def test_probabilities_need_a_regression() -> None:
    assert not hasattr(OSK(extension="neighbours"), "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        OSK(graph="precomputed").predict_proba  # noqa: B018


def test_probabilities_are_those_of_maximum_likelihood() -> None:
    """Against scikit-learn's logistic regression of the same targets, each point taken both ways."""
    values = np.random.default_rng(0).normal(size=80) * 7.0
    codes = (values + np.random.default_rng(1).normal(size=80) * 5.0 > 2.0).astype(int)
    counts = np.bincount(codes)[codes]
    sure = (counts + 1) / (counts + 2)
    twice = np.concatenate([values, values])[:, None]
    both = np.concatenate([codes, 1 - codes])
    weights = np.concatenate([sure, 1 - sure])
    theirs = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10)
    theirs.fit(twice, both, sample_weight=weights)
    own = SoftDecision.of(values, codes)
    assert own.a == pytest.approx(theirs.coef_[0, 0], rel=1e-3)
    np.testing.assert_allclose(own(values), theirs.predict_proba(values[:, None]), atol=1e-4)


@pytest.mark.parametrize("learner", [OSK(), SKL(), SKL(kta=False)], ids=str)
def test_the_class_decided_for_is_the_most_probable_one(learner: Any) -> None:
    for labels, points in ((FEW, X), (np.where(FEW == 2, -1, FEW), X)):
        model = clone(learner).fit(points, labels)
        most = model.classes_[np.argmax(model.predict_proba(points), axis=1)]
        np.testing.assert_array_equal(most, model.predict(points))


def test_probabilities_of_noisy_labels_are_not_far_from_platts() -> None:
    Z, t = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)[:300]
    t = np.where(np.random.default_rng(0).random(300) < 0.2, 1 - t[:300], t[:300])
    own = SKL().fit(Z[:200], t[:200]).predict_proba(Z[200:])[:, 1]
    platt = CalibratedClassifierCV(SKL(), ensemble=False, cv=3).fit(Z[:200], t[:200])
    theirs = platt.predict_proba(Z[200:])[:, 1]
    assert brier_score_loss(t[200:], own) < 1.1 * brier_score_loss(t[200:], theirs)


@pytest.mark.parametrize("learner", [MklSVC(), OSK(), ScgLDK(), LapRLS()], ids=str)
def test_weights_are_routed_to_the_fits_of_a_cross_validation(learner: Any) -> None:
    weights = np.where(np.arange(160) % 3 == 0, 1.0, 0.05)
    with config_context(enable_metadata_routing=True):
        asked = clone(learner).set_fit_request(sample_weight=True)
        asked = asked.set_score_request(sample_weight=False)
        found = cross_validate(
            *(asked, NOISY_X, NOISY_Y),
            params={"sample_weight": weights},
            cv=2,
            return_estimator=True,
        )
    train, _ = next(StratifiedKFold(2).split(NOISY_X, NOISY_Y))
    by_hand = clone(learner).fit(NOISY_X[train], NOISY_Y[train], sample_weight=weights[train])
    plain = clone(learner).fit(NOISY_X[train], NOISY_Y[train])
    routed = found["estimator"][0].decision_function(NOISY_X)
    np.testing.assert_array_equal(routed, by_hand.decision_function(NOISY_X))
    assert np.abs(routed - plain.decision_function(NOISY_X)).max() > 1e-3


@pytest.mark.parametrize(
    "learner",
    [
        *(MklSVC([linear(), rbf(["scale", 0.3])]), ESKL(), ScgLDK(), LDK(random_state=0)),
        *(DankSVC(), LapRLS(), OSK()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_sparse_points_decide_as_dense_ones(learner: Any) -> None:
    points = np.where(np.random.default_rng(5).random(NOISY_X.shape) < 0.5, NOISY_X, 0.0)
    points = np.hstack([points, NOISY_X[:, :1]])
    dense = clone(learner).fit(points[:60], NOISY_Y[:60])
    thin = clone(learner).fit(sparse.csr_array(points[:60]), NOISY_Y[:60])
    expected = dense.decision_function(points[60:])
    for new in (sparse.csr_array(points[60:]), sparse.csc_array(points[60:])):
        np.testing.assert_allclose(thin.decision_function(new), expected, atol=1e-4)
    np.testing.assert_allclose(thin.decision_function(points[60:]), expected, atol=1e-4)


def test_values_at_sparse_points_are_regressed_as_at_dense_ones() -> None:
    t = NOISY_X[:, 0]
    for learner in (MklRidge(), DankSVR()):
        dense = clone(learner).fit(NOISY_X[:60, 1:], t[:60]).predict(NOISY_X[60:, 1:])
        thin = clone(learner).fit(sparse.csr_array(NOISY_X[:60, 1:]), t[:60])
        np.testing.assert_allclose(
            thin.predict(sparse.csr_array(NOISY_X[60:, 1:])), dense, atol=1e-4
        )


def test_a_sparse_gaussian_kernel_has_a_bound_that_holds() -> None:
    """Eigenvalues of the matrix, in double precision, are not below the proven floor."""
    points = sparse.random_array((40, 30), density=0.2, rng=np.random.default_rng(0)).tocsr()
    for (K, floor), (D, _) in zip(
        gaussians(points, [0.1, 3.0]), gaussians(points.toarray(), [0.1, 3.0]), strict=True
    ):
        np.testing.assert_allclose(K, D, atol=1e-13)
        assert np.linalg.eigvalsh(K)[0] >= floor - 1e-13
        assert -1e-10 < floor <= 0
    assert gamma_scale(points) == pytest.approx(gamma_scale(points.toarray()))
    weights = np.arange(40.0)
    assert gamma_scale(points, weights) == pytest.approx(gamma_scale(points.toarray(), weights))


def test_features_of_sparse_points_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="features of low rank need dense points"):
        ScgLDK(rank=5).fit(sparse.csr_array(NOISY_X), NOISY_Y)
