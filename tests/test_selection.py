"""Folds and scores leave out points without label; kernels are learned from pairs as from labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from klopt.engine.pipeline import solve
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.learners import LDK, OSK, LapRLS, ScgLDK
from klopt.learners.kernels import rbf
from klopt.learners.selection import LabelledKFold, labelled_score
from klopt.problems import LogDetPairs, ScgLogDet

X, y = make_moons(90, noise=0.1, random_state=0)
FEW = np.where(np.arange(90) % 6 == 0, y, -1)
KNOWN = np.flatnonzero(FEW >= 0)


def test_folds_test_each_labelled_point_once_and_never_another() -> None:
    folds = list(LabelledKFold(3, shuffle=True, random_state=0).split(X, FEW))
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), KNOWN)
    for train, test in folds:
        assert not np.intersect1d(train, test).size
        assert train.size + test.size == 90
        assert set(FEW[test]) == {0, 1}
    signs = np.where(FEW < 0, 0, 2 * FEW - 1)
    for (_, test), (_, other) in zip(
        LabelledKFold(3).split(X, FEW), LabelledKFold(3, unlabelled=0).split(X, signs), strict=True
    ):
        np.testing.assert_array_equal(test, other)
    with pytest.raises(ValueError, match="every label is -1; there is nothing to test with"):
        next(LabelledKFold().split(X, np.full(90, -1)))


@pytest.mark.parametrize("learner", [OSK(), LapRLS()], ids=str)
def test_searches_score_labelled_points_only(learner: Any) -> None:
    whole = make_pipeline(StandardScaler(), clone(learner))
    scores = cross_val_score(whole, X, FEW, cv=LabelledKFold(3), scoring=labelled_score)
    by_hand = []
    for train, test in LabelledKFold(3).split(X, FEW):
        model = clone(whole).fit(X[train], FEW[train])
        by_hand.append(np.mean(model.predict(X[test]) == y[test]))
    np.testing.assert_allclose(scores, by_hand)
    assert scores.mean() > 0.8
    step = whole.steps[-1][0]
    search = GridSearchCV(
        whole, {f"{step}__n_neighbors": [4, 6]}, cv=LabelledKFold(3), scoring=labelled_score
    )
    assert search.fit(X, FEW).best_score_ >= scores.mean() - 0.2


def test_a_score_leaves_out_points_without_label_and_says_so() -> None:
    model = OSK().fit(X, FEW)
    with pytest.warns(UserWarning, match="75 of 90 points have no label"):
        found = model.score(X, FEW)
    assert found == np.mean(model.predict(X[KNOWN]) == y[KNOWN])
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    with pytest.raises(ValueError, match="every label is -1: there is nothing to score"):
        model.score(X, np.full(90, -1))


SIMILAR = [(0, 6), (12, 18)]
DISSIMILAR = [(0, 1), (6, 7), (2, 9)]


def test_a_kernel_is_learned_from_the_pairs_that_are_given() -> None:
    K0 = Gram.rbf(X, 1.0)
    model = ScgLDK(rbf(1.0), gamma=2.0).fit(X, FEW, pairs=(SIMILAR, DISSIMILAR))
    expected = solve(ScgLogDet(K0, (SIMILAR, DISSIMILAR), 2.0)).require()
    np.testing.assert_allclose(model.kernel_, expected.kernel, atol=1e-8)
    by_labels = ScgLDK(rbf(1.0), gamma=2.0).fit(X, FEW)
    assert np.abs(by_labels.kernel_ - model.kernel_).max() > 1e-3

    pairs = LDK(rbf(1.0)).fit(X, FEW, pairs=(SIMILAR, DISSIMILAR))
    distances = 2 - 2 * K0.matrix[np.triu_indices(90, 1)]
    bounds = np.quantile(distances[distances > 1e-12], (0.05, 0.95))
    direct = solve(LogDetPairs(K0, SIMILAR, DISSIMILAR, *bounds, 1.0), "sparse_newton").require()
    assert pairs.result_.value == pytest.approx(direct.value, rel=1e-6)
    np.testing.assert_allclose(pairs.kernel_, direct.kernel, atol=1e-6)


def test_bad_pairs_are_refused() -> None:
    for pairs, text in (
        (([(0, 1, 2)], []), "the similar pairs have shape"),
        (([], [(0.5, 1)]), "the dissimilar pairs have shape"),
        (([], []), "neither similar nor dissimilar"),
        ([(0, 1)], "expected two lists of pairs"),
        (([(0, 400)], []), "400"),
    ):
        for learner in (LDK(), ScgLDK()):
            with pytest.raises(InvalidProblem, match=text):
                learner.fit(X, FEW, pairs=pairs)  # type: ignore[arg-type]
