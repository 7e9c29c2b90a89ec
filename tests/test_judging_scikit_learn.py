"""`klopt.judge` of scikit-learn's fitted kernel estimators; the truth is weak duality in rationals."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction as Q

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from strategies import generators

import klopt
from klopt import Verdict
from klopt.errors import InvalidProblem
from klopt.judging.joint import JointResult

TIGHT = 1e-11
"""LIBSVM's own tolerance in a fit that is to be proven to 1e-6."""


def points(rng: np.random.Generator, n: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Points with their classes, each of which has at least two."""
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 3)) + y[:, None] / 2
    return X, y


def exact(matrix: np.ndarray) -> list[list[Q]]:
    return [[Q(float(v)) for v in row] for row in matrix]


def exact_ends(
    K: np.ndarray, y: np.ndarray, C: np.ndarray, z: np.ndarray, bias: float
) -> tuple[Q, Q]:
    """Weak duality of the support vector machine in rationals, from any z in its box and any bias.

    The lower end is that of z with its sum put right in its largest entry that can take it.
    """
    n = y.size
    kernel = exact(K)
    penalties = [Q(float(c)) for c in C]
    signs = [int(s) for s in y]
    a = [min(max(Q(float(v)) * s, Q(0)), c) for v, s, c in zip(z, signs, penalties, strict=True)]
    excess = sum((v * s for v, s in zip(a, signs, strict=True)), Q(0))
    for i in range(n):
        moved = a[i] - excess * signs[i]
        if 0 <= moved <= penalties[i]:
            a[i] = moved
            excess = Q(0)
            break
    assert excess == 0
    w = [v * s for v, s in zip(a, signs, strict=True)]
    f = [sum((kernel[i][j] * w[j] for j in range(n)), Q(0)) for i in range(n)]
    square = sum((w[i] * f[i] for i in range(n)), Q(0))
    losses = (
        c * max(Q(0), 1 - s * (v + Q(bias))) for c, s, v in zip(penalties, signs, f, strict=True)
    )
    return sum(a, Q(0)) - square / 2, square / 2 + sum(losses, Q(0))


def coefficients(svc: SVC, n: int, weights: np.ndarray | None = None) -> np.ndarray:
    """y o a of all points; LIBSVM leaves out points without weight, and numbers the others."""
    z = np.zeros(n)
    counted = np.arange(n) if weights is None else np.flatnonzero(weights)
    z[counted[svc.support_]] = svc.dual_coef_[0]
    return z


def square_of_products(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray((X @ Y.T + 1) ** 2)


# What is proven of good fits


KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "rbf, gamma": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "function": {"kernel": square_of_products},
}


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("weighting", ["none", "classes", "samples"])
def test_an_svc_is_proven_and_its_interval_holds_the_optimum(options, weighting: str) -> None:
    rng = np.random.default_rng(1)
    X, y = points(rng, 14)
    weight = {0: 1.0, 1: 3.0} if weighting == "classes" else None
    samples = rng.integers(0, 4, 14).astype(float) if weighting == "samples" else None
    if samples is not None:
        samples[:2] = 1.0
    svc = SVC(C=2.0, tol=TIGHT, class_weight=weight, **options).fit(X, y, samples)
    result = klopt.judge(svc, X, y, sample_weight=samples)
    assert result.verdict is Verdict.OPTIMAL, result.explain()

    K = options["kernel"]
    matrix = (
        K(X, X)
        if callable(K)
        else pairwise_kernels(
            X,
            metric=K,
            filter_params=True,
            gamma=svc._gamma,
            degree=options.get("degree", 3),
            coef0=options.get("coef0", 0.0),
        )
    )
    C = 2.0 * svc.class_weight_[y] * (1.0 if samples is None else samples)
    z = coefficients(svc, 14, samples)
    low, high = exact_ends(matrix, 2.0 * y - 1, C, z, float(svc.intercept_[0]))
    # The problem with weights of its own is a minimisation of the negative.
    lower, upper = (
        (result.lower, result.upper)
        if result.problem.sense == "max"
        else (-result.upper, -result.lower)
    )
    assert lower <= high
    assert low <= upper


def test_precomputed_kernels_and_sparse_points_are_judged_as_dense_ones_are() -> None:
    X, y = points(np.random.default_rng(0), 30)
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    dense = klopt.judge(SVC(gamma=0.5, tol=TIGHT).fit(X, y), X, y).require()
    given = klopt.judge(SVC(kernel="precomputed", tol=TIGHT).fit(K, y), K, y).require()
    rows = sparse.csr_matrix(X)
    thin = klopt.judge(SVC(gamma=0.5, tol=TIGHT).fit(rows, y), rows, y).require()
    for result in (given, thin):
        assert result.lower <= dense.upper
        assert dense.lower <= result.upper


def test_the_default_tolerance_of_libsvm_is_measured_not_believed() -> None:
    X, y = points(np.random.default_rng(0), 80)
    svc = SVC(C=100.0).fit(X, y)
    strict = klopt.judge(svc, X, y, tol=1e-9)
    assert strict.verdict is Verdict.FEASIBLE
    assert "tol 0.001" in strict.explain()
    assert klopt.judge(svc, X, y, tol=1e-2).verdict is Verdict.OPTIMAL


def test_many_classes_are_judged_machine_by_machine() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    svc = SVC(tol=TIGHT, class_weight="balanced", C=0.7).fit(X, names)
    result = klopt.judge(svc, X, names)
    assert isinstance(result, JointResult)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert list(result.parts) == [
        "'setosa' against 'versicolor'",
        "'setosa' against 'virginica'",
        "'versicolor' against 'virginica'",
    ]
    assert all(part.verdict is Verdict.OPTIMAL for part in result.parts.values())
    again = pickle.loads(pickle.dumps(result))
    assert again.explain().splitlines()[0] == result.explain().splitlines()[0]

    # One machine altered: the others stay proven, the whole is not.
    svc.dual_coef_[1, svc.n_support_[0]] *= 1.5
    altered = klopt.judge(svc, X, names)
    assert not altered.verdict.conclusive
    assert [part.verdict for part in altered.parts.values()].count(Verdict.OPTIMAL) == 2


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("has_weights", [False, True])
def test_a_nu_svc_is_proven(classes: int, has_weights: bool) -> None:
    rng = np.random.default_rng(2)
    X, y = points(rng, 40, classes)
    weights = rng.integers(1, 4, 40).astype(float) if has_weights else None
    svc = NuSVC(nu=0.4, tol=TIGHT).fit(X, y, weights)
    result = klopt.judge(svc, X, y, weights)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    svc.intercept_ += 0.5
    assert not klopt.judge(svc, X, y, weights).verdict.conclusive


@pytest.mark.parametrize("estimator", [SVR, NuSVR])
@pytest.mark.parametrize("has_weights", [False, True])
def test_a_support_vector_regression_is_proven(estimator, has_weights: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    weights = rng.integers(0, 3, 30).astype(float) if has_weights else None
    svr = estimator(C=3.0, tol=TIGHT).fit(X, y, weights)
    result = klopt.judge(svr, X, y, weights)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    svr.intercept_ += 0.5
    assert not klopt.judge(svr, X, y, weights).verdict.conclusive


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "precomputed"])
def test_a_ridge_regression_is_proven_and_has_the_value_of_its_closed_form(kernel: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 3))
    Y = rng.normal(size=(20, 2))
    weights = rng.uniform(0.5, 2.0, 20)
    K = pairwise_kernels(X, metric="rbf" if kernel == "precomputed" else kernel)
    given = K if kernel == "precomputed" else X
    ridge = KernelRidge(alpha=0.3, kernel=kernel).fit(given, Y, weights)
    result = klopt.judge(ridge, given, Y, weights)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert "1 / alpha rounded" in result.explain()
    root = np.sqrt(weights)
    for column, part in enumerate(result.parts.values()):
        target = root * Y[:, column]
        solution = np.linalg.solve(K * np.outer(root, root) + 0.3 * np.eye(20), target)
        assert part.value == pytest.approx(target @ solution / 2, rel=1e-9)


# Altered fits


@given(generators, st.floats(-8, 0), st.sampled_from(["noise", "scale", "swap", "sign", "bias"]))
def test_an_altered_svc_is_optimal_only_where_weak_duality_says_so(
    rng, exponent: float, way: str
) -> None:
    X, y = points(rng, 10)
    svc = SVC(C=1.0, tol=TIGHT).fit(X, y)
    K = pairwise_kernels(X, metric="rbf", gamma=svc._gamma)
    signs = 2.0 * y - 1
    good = coefficients(svc, 10)
    low, high = exact_ends(K, signs, np.ones(10), good, float(svc.intercept_[0]))
    size = 10.0**exponent
    if way == "noise":
        svc.dual_coef_ += size * rng.normal(size=svc.dual_coef_.shape)
    elif way == "scale":
        svc.dual_coef_ *= 1 + size
    elif way == "swap":
        svc.dual_coef_ = svc.dual_coef_[:, ::-1].copy()
    elif way == "sign":
        svc.dual_coef_ *= -1
    else:
        svc.intercept_ += size
    result = klopt.judge(svc, X, y)
    assert result.lower <= high
    assert low <= result.upper
    if result.verdict is Verdict.OPTIMAL:
        z = coefficients(svc, 10)
        value = z @ signs - z @ K @ z / 2
        losses = np.maximum(1 - signs * (K @ z + svc.intercept_[0]), 0.0)
        primal = z @ K @ z / 2 + losses.sum()
        allowed = 2e-6 * (1 + float(high)) + float(high - low)
        assert abs(value - float(low)) <= allowed
        assert primal - float(high) <= allowed
        assert abs(z.sum()) <= 2e-6


def test_an_answer_of_other_data_is_told_from_its_own() -> None:
    X, y = points(np.random.default_rng(0), 20)
    svc = SVC(tol=TIGHT).fit(X, y)
    moved = X.copy()
    row = int(svc.support_[0])
    moved[row, 0] += 1e-12
    with pytest.raises(InvalidProblem, match=rf"X\[{row}\] differs from what the estimator keeps"):
        klopt.judge(svc, moved, y)
    flipped = y.copy()
    flipped[row] = 1 - y[row]
    with pytest.raises(InvalidProblem, match=rf"y\[{row}\] is .*, but its support vector was of"):
        klopt.judge(svc, X, flipped)
    ridge = KernelRidge().fit(X, y)
    with pytest.raises(InvalidProblem, match=rf"X\[{row}\] differs"):
        klopt.judge(ridge, moved, y)


def test_a_setting_changed_after_the_fit_states_another_problem() -> None:
    X, y = points(np.random.default_rng(0), 40)
    svc = SVC(C=0.5, tol=TIGHT).fit(X, y)
    svc.C = 5.0
    assert klopt.judge(svc, X, y).verdict is not Verdict.OPTIMAL
    svc.C = 0.05
    assert klopt.judge(svc, X, y).verdict is not Verdict.OPTIMAL


def test_a_fit_that_did_not_converge_says_so() -> None:
    X, y = points(np.random.default_rng(0), 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc = SVC(C=1000.0, max_iter=5).fit(X, y)
    result = klopt.judge(svc, X, y)
    assert result.stop is klopt.Stop.ITERATION_LIMIT
    assert not result.verdict.conclusive
    assert "not converged" in result.explain()


# Bad calls


def test_what_cannot_be_judged_is_refused_with_the_reason() -> None:
    X, y = points(np.random.default_rng(0), 20)
    svc = SVC().fit(X, y)
    with pytest.raises(InvalidProblem, match="this SVC is not fitted; call fit"):
        klopt.judge(SVC(), X, y)
    with pytest.raises(InvalidProblem, match=r"X has shape \(19, 3\); the SVC was fitted to"):
        klopt.judge(svc, X[:-1], y[:-1])
    with pytest.raises(InvalidProblem, match=r"y has shape \(19,\); expected \(20,\)"):
        klopt.judge(svc, X, y[:-1])
    with pytest.raises(InvalidProblem, match=r"y\[0\] is .*9.*, which is none of the classes"):
        klopt.judge(svc, X, np.where(np.arange(20) == 0, 9, y))
    with pytest.raises(InvalidProblem, match="sample_weight"):
        klopt.judge(svc, X, y, np.full(20, np.nan))
    with pytest.raises(InvalidProblem, match="X: Input contains NaN"):
        klopt.judge(svc, np.full(X.shape, np.nan), y)
    svc.dual_coef_[0, 0] = np.nan
    with pytest.raises(InvalidProblem, match=r"alpha\[\d+\] of the answer is nan"):
        klopt.judge(svc, X, y)


def test_an_indefinite_kernel_is_refused() -> None:
    X, y = points(np.random.default_rng(0), 20)
    svc = SVC(kernel="sigmoid", coef0=1.0, gamma=5.0).fit(X, y)
    with pytest.raises(InvalidProblem, match="is not convex, so that klopt cannot judge it"):
        klopt.judge(svc, X, y)
