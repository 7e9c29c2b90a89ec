"""Paths over the penalty: every interval holds, at the grid and between, and so do bounds of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.learners.paths import cross_validate_path
from klopt.problems import EpsilonMargin, SoftMargin

GRID = np.logspace(-2, 2, 9)


def points(n: int, seed: int, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
    return rng.normal(size=(n, columns)) + 0.4 * y[:, None], y


def classifier(n: int = 60, seed: int = 0, columns: int = 4) -> SoftMargin:
    X, y = points(n, seed, columns)
    return SoftMargin(Gram.rbf(X), y, 1.0)


def regression(n: int = 50, seed: int = 0) -> EpsilonMargin:
    X, y = points(n, seed)
    noise = np.random.default_rng(seed + 1).normal(size=n)
    return EpsilonMargin(Gram.rbf(X), 3 * X[:, 0] + y + noise, 1.0, 0.3)


def optimum(problem: Any) -> tuple[float, float]:
    """Return a proven interval by another solver."""
    result = klopt.solve(problem, "clarabel", tol=1e-8)
    return float(result.lower), float(result.upper)


@pytest.mark.parametrize(
    "problem",
    [classifier(), classifier(seed=1, columns=1), regression(), regression(seed=3)],
    ids=["classes", "classes on a line", "targets", "other targets"],
)
def test_intervals_meet_those_of_another_solver(problem: Any) -> None:
    path = problem.path(GRID)
    assert path.relative_gap < 1e-6
    assert [member.C for member in path] == GRID.tolist()
    for C in [*GRID[::2], *np.sqrt(GRID[1:] * GRID[:-1])[::2], 0.3 * GRID[0], 7 * GRID[-1]]:
        lower, upper = path.bounds(float(C))
        low, high = optimum(type(problem)(**_data(problem, C)))
        assert low <= upper
        assert lower <= high


def _data(problem: Any, C: float) -> dict[str, Any]:
    data = {"K": problem.K, "y": problem.y, "C": float(C)}
    return data | ({"epsilon": problem.epsilon} if hasattr(problem, "epsilon") else {})


def test_bounds_between_are_narrow_where_neighbours_are_near() -> None:
    problem = classifier()
    wide = problem.path([1.0, 2.0]).bounds(1.4)
    near = problem.path([1.3, 1.5]).bounds(1.4)
    assert near[1] - near[0] < 0.2 * (wide[1] - wide[0])


def test_where_the_partition_stays_bounds_between_are_exact() -> None:
    """Two points: alpha = C up to 1, so that the optimum is 2C - C^2, and 1 from there on."""
    path = SoftMargin([[1.0, 0.0], [0.0, 1.0]], [1, -1], 1.0).path([0.25, 0.5, 1.0, 8.0])
    for C, value in ((0.4, 0.64), (0.75, 0.9375), (3.0, 1.0)):
        lower, upper = path.bounds(C)
        assert lower <= value <= upper
        assert upper - lower < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_values_between_penalties_hold_for_the_machines_there(seed: int) -> None:
    X, y = points(90, seed)
    K = Gram.rbf(X)
    problem = SoftMargin(Gram(K.matrix[:60, :60].copy(), 1.0, K.floor, ""), y[:60], 1.0)
    grid = np.geomspace(0.5, 1.0, 6)
    path = problem.path(grid)
    cross = K.matrix[60:, :60]
    low, high = path.values_between(cross, np.ones(30))
    assert (high - low).max() < 3.0
    for i in range(5):
        for C in np.linspace(grid[i], grid[i + 1], 4):
            there = SoftMargin(problem.K, problem.y, float(C)).path([C])
            values = there.values(cross)[0]
            assert (low[i] <= values + 1e-6).all()
            assert (values - 1e-6 <= high[i]).all()


def test_huge_penalties_and_coinciding_points() -> None:
    """Points that differ in the last digits, with different labels, and a C up to 1e12."""
    X = np.array([[0.0], [1e-15], [1.0], [1.0], [2.0], [2.0 + 4e-16]])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
    problem = SoftMargin(Gram.rbf(X, 0.5), y, 1.0)
    path = problem.path([1e-3, 1.0, 1e6, 1e12])
    for C, bracket in zip(path.penalties, path.brackets, strict=True):
        assert bracket.lower <= bracket.upper
        found = klopt.solve(SoftMargin(problem.K, y, float(C)))
        assert bracket.lower <= found.upper
        assert found.lower <= bracket.upper


@pytest.mark.parametrize(
    ("penalties", "text"),
    [
        ([], "penalties has no entries"),
        ([0.0, 1.0], r"penalties\[0\] is 0; expected positive numbers that rise"),
        ([1.0, 1.0], r"penalties\[1\] is 1 after 1"),
        ([1.0, np.inf], "penalties"),
    ],
)
def test_penalties_are_positive_and_rise(penalties: list[float], text: str) -> None:
    with pytest.raises(InvalidProblem, match=text):
        classifier(6).path(penalties)


def test_cross_validation_scores_are_those_of_svc() -> None:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    X, y = points(120, 5)
    folds = StratifiedKFold(4)
    found = cross_validate_path(X, y, GRID, gamma=0.2, cv=folds)
    search = GridSearchCV(SVC(gamma=0.2, tol=1e-8), {"C": GRID}, cv=folds, refit=False).fit(X, y)
    theirs = [search.cv_results_[f"split{i}_test_score"] for i in range(4)]
    assert found.scores == pytest.approx(np.array(theirs), abs=1e-12)
    assert found.relative_gap < 1e-6
    assert found.best_C == search.cv_results_["param_C"][np.argmax(found.mean_scores)]
    errors = (1 - found.scores) * found.test_sizes[:, None]
    # Both ends of a range belong to it.
    for ends in (errors[:, 1:], errors[:, :-1]):
        assert (found.fewest_errors <= ends + 1e-9).all()
        assert (found.most_errors >= ends - 1e-9).all()
    assert "No C between" in found.explain()


def test_cross_validation_of_regressions() -> None:
    from sklearn.svm import SVR

    X, _ = points(80, 2)
    y = X[:, 0] ** 2
    found = cross_validate_path(
        X, y, [0.1, 1.0], gamma=0.2, epsilon=0.1, cv=[(range(60), range(60, 80))]
    )
    model = SVR(C=1.0, gamma=0.2, epsilon=0.1, tol=1e-8).fit(X[:60], y[:60])
    assert found.scores[0, 1] == pytest.approx(model.score(X[60:], y[60:]), abs=1e-5)
    assert not found.fewest_errors.size


@pytest.mark.parametrize(
    ("y", "text"), [([0, 1, 2], "3 classes; expected 2"), ([0, 1], "expected .3,., one label")]
)
def test_labels_are_of_two_classes(y: list[int], text: str) -> None:
    with pytest.raises(InvalidProblem, match=text):
        cross_validate_path(np.eye(3), y, [1.0])
