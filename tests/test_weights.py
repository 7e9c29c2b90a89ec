"""A weight of a point is a number of repetitions; a regression with several kernels is that with their mixture."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from klopt.errors import NotCertified, UncertifiedFit
from klopt.learners import EMKL, ESKL, REKL, MklRidge, MklSVC, MklSVR
from klopt.learners.kernels import linear, rbf

X, y = make_classification(60, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=1)
VALUES = np.sin(X[:, 0]) + 0.3 * X[:, 1]
TIMES = np.random.default_rng(4).integers(0, 4, size=60)
OFTEN = np.repeat(np.arange(60), TIMES)
NEW = np.random.default_rng(5).normal(size=(25, 4))

MIXTURES: list[Any] = [
    MklSVC([rbf(["0.5 scale", "2 scale"]), linear()], C=0.7, tol=1e-11),
    MklSVC(rbf([0.1, 1.0]), C=0.7, norm="block-l1", tol=1e-11),
    MklSVR([rbf(["0.5 scale", "2 scale"]), linear()], C=0.7, epsilon=0.05, tol=1e-11),
    MklSVR(rbf([0.1, 1.0]), C=0.7, epsilon=0.05, norm="block-l1", tol=1e-11),
    MklRidge([rbf(["0.5 scale", "2 scale"]), linear()], C=0.7, tol=1e-11),
]


def values_of(model: Any, points: Any) -> Any:
    return getattr(model, "decision_function", model.predict)(points)


@pytest.mark.parametrize("learner", MIXTURES, ids=str)
def test_a_weight_is_a_number_of_repetitions(learner: Any) -> None:
    targets = y if hasattr(learner, "multi_class") else VALUES
    weighted = clone(learner).fit(X, targets, sample_weight=TIMES)
    often = clone(learner).fit(X[OFTEN], targets[OFTEN])
    np.testing.assert_allclose(weighted.weights_, often.weights_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(values_of(weighted, NEW), values_of(often, NEW), atol=1e-8)
    assert weighted.result_.value == pytest.approx(often.result_.value, rel=1e-8)
    plain = clone(learner).fit(X, targets)
    assert np.abs(values_of(plain, NEW) - values_of(weighted, NEW)).max() > 1e-3


def test_weights_of_classes_are_those_of_scikit_learn() -> None:
    iris, classes = load_iris(return_X_y=True)
    model = MklSVC(rbf(0.5), C=0.1, class_weight="balanced", tol=1e-10).fit(iris[20:], classes[20:])
    svc = SVC(C=0.1, gamma=0.5, class_weight="balanced", tol=1e-8).fit(iris[20:], classes[20:])
    np.testing.assert_array_equal(model.predict(iris), svc.predict(iris))
    binary = MklSVC(rbf(0.5), C=0.1, class_weight={0: 5.0, 1: 0.2}, tol=1e-10).fit(X, y)
    libsvm = SVC(C=0.1, gamma=0.5, class_weight={0: 5.0, 1: 0.2}, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        binary.decision_function(NEW), libsvm.decision_function(NEW), atol=1e-5
    )


@pytest.mark.parametrize("norm", ["block-l1", "block-linf", 1.2, 2.0])
def test_a_regression_is_that_of_the_kernel_that_it_learned(norm: Any) -> None:
    model = MklSVR(rbf([0.05, 0.5, 5.0]), C=2.0, epsilon=0.1, norm=norm, tol=1e-10).fit(X, VALUES)
    svr = SVR(C=2.0, epsilon=0.1, kernel="precomputed", tol=1e-9).fit(model.kernel_, VALUES)
    np.testing.assert_allclose(model.predict(X), svr.predict(model.kernel_), atol=1e-4)
    gammas = (0.05, 0.5, 5.0)
    squares = ((NEW[:, None] - X) ** 2).sum(axis=2)
    between = sum(w * np.exp(-g * squares) for w, g in zip(model.weights_[0], gammas, strict=True))
    np.testing.assert_allclose(model.predict(NEW), svr.predict(between), atol=1e-4)


def test_a_regression_with_one_kernel_is_scikit_learns() -> None:
    model = MklSVR(rbf(0.5), C=2.0, epsilon=0.1, tol=1e-10).fit(X, VALUES)
    svr = SVR(C=2.0, epsilon=0.1, gamma=0.5, tol=1e-9).fit(X, VALUES)
    np.testing.assert_allclose(model.predict(NEW), svr.predict(NEW), atol=1e-5)
    assert model.result_.verdict.name == "OPTIMAL"
    search = GridSearchCV(MklSVR(), {"epsilon": [0.05, 0.5]}, cv=3).fit(X, VALUES)
    assert search.best_params_ == {"epsilon": 0.05}


@pytest.mark.parametrize("learner", [ESKL(), EMKL(), REKL(C=1.0)], ids=str)
def test_weights_bound_the_multipliers_of_learned_similarities(learner: Any) -> None:
    weights = np.random.default_rng(0).uniform(0.01, 0.3, size=60)
    weights[7] = 0.0
    model = clone(learner).fit(X, y, sample_weight=weights)
    used = np.flatnonzero(weights)
    assert (model.result_.point.alpha <= weights[used]).all()
    assert not model.kernel_[7].any()
    # Against its own kernel the model is the support vector machine with these weights.
    K = model.kernel_[np.ix_(used, used)]
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y[used], sample_weight=weights[used])
    alpha = np.zeros(used.size)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    np.testing.assert_allclose(
        K @ (np.where(y[used], 1, -1) * model.result_.point.alpha),
        K @ (np.where(y[used], 1, -1) * alpha),
        atol=2e-3,
    )


@pytest.mark.parametrize("loss", ["euclidean", "l1"])
def test_rekl_has_the_loss_of_its_paper_and_another(loss: Any) -> None:
    model = REKL(loss=loss).fit(X, y)
    assert model.result_.verdict.name == "OPTIMAL"
    assert model.result_.problem.loss == loss  # type: ignore[attr-defined]
    assert accuracy_score(y, model.predict(X)) > 0.7


def test_a_time_limit_is_passed_on() -> None:
    """No solver ends in a millionth of a second; what is known by then is a warning or an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncertifiedFit)
        with pytest.raises((NotCertified, UncertifiedFit)):
            MklSVC(time_limit=1e-6).fit(X, y)
    assert MklSVC(time_limit=600.0).fit(X, y).result_.verdict.name == "OPTIMAL"


@parametrize_with_checks([MklSVR()])
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
