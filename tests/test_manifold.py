"""Learners on a graph decide as the formulas of their papers say, written out here in NumPy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.linalg import eigh, expm
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from klopt.errors import InvalidProblem
from klopt.kernels.alignment import alignment, hsic, ideal_kernel, polarisation
from klopt.kernels.graph_kernels import aligned_kernel, diffusion_kernel, gaussian_field_kernel
from klopt.kernels.graphs import knn_graph, laplacian
from klopt.kernels.manifold import DeformedKernel
from klopt.learners import LDK, OSK, SKL, Harmonic, LapRLS, LapSVM, ScgLDK, ScgOSK
from klopt.learners.kernels import rbf

X, y = make_moons(80, noise=0.1, random_state=3)
FEW = np.where(np.arange(80) % 8 == 0, y, -1)
FEW[:2] = y[:2]
KNOWN = np.flatnonzero(FEW >= 0)
L = laplacian(knn_graph(X, 6, "gaussian"), power=2).toarray()
seeds = st.integers(0, 10_000)


def gaussian(A: Any, B: Any, gamma: float) -> Any:
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


# ---------------------------------------------------------------- SKL


def algorithm_1(U: Any, gamma: Any, known: Any, Y: Any, ridge: float) -> Any:
    """Return Algorithm 1 of Mao and Tsang (2010), line by line."""
    A = ((U[known].T @ Y) ** 2).sum(axis=1)
    R = (U * np.sqrt(A / (np.maximum(gamma, 0) + ridge))) @ U.T
    return R[:, known] @ np.linalg.solve(R[np.ix_(known, known)], Y)


@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_skl_decides_by_the_algorithm_of_its_paper(ridge: float) -> None:
    gamma, U = eigh(L)
    signs = np.where(FEW[KNOWN] == 1, 1.0, -1.0)[:, None]
    expected = algorithm_1(U, gamma, KNOWN, signs, ridge)[:, 0]
    model = SKL(
        extension="neighbours", n_neighbors=6, weights="gaussian", power=2, ridge=ridge
    ).fit(X, FEW)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.transduction_, (expected > 0).astype(int))


def test_skl_of_three_classes_decides_by_their_indicators() -> None:
    points, classes = load_iris(return_X_y=True)
    points = points + 1e-3 * np.random.default_rng(0).normal(size=points.shape)
    few = np.where(np.arange(150) % 7 == 0, classes, -1)
    known = np.flatnonzero(few >= 0)
    gamma, U = eigh(laplacian(knn_graph(points, 30, "gaussian")).toarray())
    assert np.diff(gamma).min() > 1e-6  # the eigenvectors are unique
    expected = algorithm_1(U, gamma, known, np.eye(3)[few[known]], 1e-3)
    model = SKL(n_neighbors=30, power=1, ridge=1e-3, extension="neighbours").fit(points, few)
    np.testing.assert_allclose(model.decision_function(points), expected, rtol=1e-6, atol=1e-6)


def test_skl_has_the_clipped_rule_as_an_option_which_may_keep_fewer_eigenvectors() -> None:
    more = np.where(np.arange(80) % 4 == 0, y, FEW)
    free = SKL(n_neighbors=6, weights="gaussian", power=2, ridge=1e-6).fit(X, more)
    clipped = SKL(n_neighbors=6, rule="clipped", extension="neighbours")
    clipped.fit(X, more)
    point = clipped.result_.point
    assert point is not None
    assert float(point.level) > 0
    problem: Any = clipped.result_.problem
    np.testing.assert_array_equal(clipped.decision_function(X), problem.decide(point))
    assert clipped.transform(X).shape[1] < np.count_nonzero(more >= 0) < free.transform(X).shape[1]
    # Both rules have one proof, that of the largest alignment.
    assert free.result_.value == clipped.result_.value
    T = np.where(more < 0, 0, 2 * more - 1)
    aligned = [alignment(m.kernel_, np.outer(T, T)) for m in (clipped, free)]
    assert aligned[0] == pytest.approx(clipped.result_.value, rel=1e-9)
    assert aligned[0] > aligned[1]
    with pytest.raises(InvalidProblem, match="rule is 'paper'; expected one of unclipped, clipped"):
        SKL(rule="paper").fit(X, FEW)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["unclipped", "clipped"])
def test_features_of_skl_belong_to_the_kernel_that_decides(rule: Any) -> None:
    model = SKL(rule=rule).fit(X, FEW)
    features = model.transform(X)
    np.testing.assert_allclose(features @ features.T, model.kernel_, atol=1e-12)


# ---------------------------------------------------------------- LapRLS, LapSVM


def manifold_coefficients(A: float, B: float, weights: Any) -> Any:
    """Return alpha of LapRLS by (8) of Belkin et al. (2006): n equations, with weighted losses."""
    n = len(X)
    J = np.zeros((n, n))
    J[KNOWN, KNOWN] = weights
    Y = np.zeros(n)
    Y[KNOWN] = 2.0 * FEW[KNOWN] - 1
    K = gaussian(X, X, 2.0)
    total = weights.sum()
    system = J @ K + A * total * np.eye(n) + B * total / n**2 * L @ K
    return np.linalg.solve(system, J @ Y)


@pytest.mark.parametrize(("A", "B"), [(1e-3, 1.0), (1e-2, 100.0), (0.1, 0.0)])
def test_laprls_solves_the_equations_of_belkin_et_al(A: float, B: float) -> None:
    weights = np.random.default_rng(1).uniform(0.5, 3.0, KNOWN.size)
    alpha = manifold_coefficients(A, B, weights)
    given_weights = np.ones(len(X))
    given_weights[KNOWN] = weights
    model = LapRLS(
        rbf(2.0),
        gamma_ambient=A,
        gamma_intrinsic=B,
        n_neighbors=6,
        weights="gaussian",
        power=2,
    ).fit(X, FEW, given_weights)
    new = np.random.default_rng(0).normal(size=(20, 2))
    for points in (X, new):
        expected = gaussian(points, X, 2.0) @ alpha
        np.testing.assert_allclose(model.decision_function(points), expected, atol=1e-8)


def test_lapsvm_is_the_margin_with_the_matrix_of_belkin_et_al() -> None:
    """Q = J K (2 A I + 2 B / n^2 L K)^-1 J', 0 <= beta <= 1 / l, as printed there."""
    n, A, B = len(X), 1e-3, 10.0
    K = gaussian(X, X, 2.0)
    inner = np.linalg.inv(2 * A * np.eye(n) + 2 * B / n**2 * L @ K)
    whole = K @ inner
    Q = whole[np.ix_(KNOWN, KNOWN)]
    svc = SVC(C=1 / KNOWN.size, kernel="precomputed", tol=1e-9)
    svc.fit((Q + Q.T) / 2, FEW[KNOWN])
    expected = svc.decision_function(whole[:, KNOWN])
    model = LapSVM(
        rbf(2.0),
        gamma_ambient=A,
        gamma_intrinsic=B,
        n_neighbors=6,
        weights="gaussian",
        power=2,
    ).fit(X, FEW)
    # Both margins are LIBSVM's: its own tolerance is 1e-3.
    np.testing.assert_allclose(model.decision_function(X), expected, atol=5e-3)
    np.testing.assert_array_equal(model.transduction_, model.predict(X))


@given(seeds, st.floats(1e-3, 1e3))
def test_a_deformed_kernel_is_its_formula(seed: int, r: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 2))
    K = gaussian(points, points, 1.0)
    M = laplacian(knn_graph(points, 4)).toarray()
    deformed = DeformedKernel.of(K, M)
    inverse = np.linalg.inv(np.eye(12) + r * M @ K)
    np.testing.assert_allclose(deformed.block(r, slice(None), slice(None)), K @ inverse, atol=1e-7)
    c = rng.normal(size=(12, 2))
    np.testing.assert_allclose(deformed.coefficients(r, c), inverse @ c, atol=1e-6 * (1 + r))


# ---------------------------------------------------------------- harmonic functions


def test_harmonic_values_solve_the_equations_of_the_graph_and_are_probabilities() -> None:
    W = knn_graph(X, 6, "gaussian").toarray()
    u = FEW < 0
    D = np.diag(W.sum(axis=1))
    expected = np.linalg.solve((D - W)[np.ix_(u, u)], W[np.ix_(u, ~u)] @ FEW[~u])
    model = Harmonic(n_neighbors=6, extension="neighbours").fit(X, FEW)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[u, 1], expected, atol=1e-9)
    np.testing.assert_array_equal(proba[~u, 1], FEW[~u])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(proba, axis=1)])


# ---------------------------------------------------------------- labels and weights


SEMI: list[Any] = [
    OSK(),
    ScgOSK(),
    SKL(),
    LDK(random_state=0),
    ScgLDK(),
    LapRLS(),
    LapSVM(),
    Harmonic(),
]


@pytest.mark.parametrize("learner", SEMI, ids=str)
def test_classes_of_minus_one_and_one_are_told_from_points_without_label(learner: Any) -> None:
    from sklearn.base import clone

    expected = clone(learner).fit(X, FEW).predict(X)
    signs = np.where(FEW < 0, 0, 2 * FEW - 1)
    found = clone(learner).set_params(unlabelled=0).fit(X, signs).predict(X)
    np.testing.assert_array_equal(found, 2 * expected - 1)
    with pytest.raises(ValueError, match="choose another mark, such as unlabelled=0"):
        clone(learner).fit(X, 2 * y - 1)
    # No mark at all: every label is a class.
    np.testing.assert_array_equal(
        np.unique(clone(learner).set_params(unlabelled=None).fit(X, 2 * y - 1).classes_), [-1, 1]
    )


@pytest.mark.parametrize(
    "learner",
    [OSK(C=0.5, extension="neighbours"), ScgLDK(C=0.5), LDK(C=0.05, random_state=0)],
    ids=str,
)
def test_weights_of_labelled_points_are_repetitions_for_the_margin(learner: Any) -> None:
    rng = np.random.default_rng(5)
    times = np.ones(len(X), dtype=int)
    times[KNOWN] = rng.integers(1, 4, KNOWN.size)
    model = learner.fit(X, FEW, sample_weight=times)
    K = model.kernel_
    often = np.repeat(KNOWN, times[KNOWN])
    among = K[np.ix_(often, often)]
    svc = SVC(C=learner.C / among.diagonal().mean(), kernel="precomputed", tol=1e-10)
    svc.fit(among, FEW[often])
    found = model.decision_function(X)
    np.testing.assert_allclose(found, svc.decision_function(K[:, often]), atol=3e-3)
    assert np.abs(found - learner.fit(X, FEW).decision_function(X)).max() > 1e-2


def test_class_weights_are_weights_of_their_points() -> None:
    by_class = OSK(C=0.1, class_weight={0: 1.0, 1: 7.0}).fit(X, FEW)
    by_point = OSK(C=0.1).fit(X, FEW, sample_weight=np.where(FEW == 1, 7.0, 1.0))
    np.testing.assert_array_equal(by_class.decision_function(X), by_point.decision_function(X))
    counts = np.bincount(FEW[KNOWN])
    balanced = LapRLS(class_weight="balanced").fit(X, FEW)
    each = KNOWN.size / (2 * counts)
    own = LapRLS().fit(X, FEW, np.where(FEW < 0, 1.0, each[FEW]))
    np.testing.assert_allclose(balanced.decision_function(X), own.decision_function(X), atol=1e-12)


def test_bad_weights_are_refused() -> None:
    weights = np.ones(len(X))
    weights[3] = -1
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -1; weights are 0 or positive"):
        OSK().fit(X, FEW, weights)
    with pytest.raises(ValueError, match="all points of the class 1 have the weight 0"):
        OSK().fit(X, FEW, np.where(FEW == 1, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"is 0 for every point|at least one non-zero"):
        LapRLS().fit(X, FEW, np.zeros(len(X)))


# ---------------------------------------------------------------- sparse points


@pytest.mark.parametrize("learner", [OSK(), SKL(weights="gaussian"), Harmonic()], ids=str)
def test_sparse_points_give_what_dense_ones_give(learner: Any) -> None:
    from sklearn.base import clone

    rng = np.random.default_rng(2)
    points = rng.random((90, 30)) * (rng.random((90, 30)) < 0.2) + np.eye(90, 30)
    points[:45, :5] += 1.0
    labels = np.where(np.arange(90) % 9 == 0, np.arange(90) < 45, -1)
    dense = clone(learner).fit(points, labels)
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        found = clone(learner).fit(kind(points), labels)
        np.testing.assert_array_equal(found.transduction_, dense.transduction_)
        new = points[::7] * 0.9
        for asked in (new, kind(new)):
            np.testing.assert_allclose(
                found.decision_function(asked), dense.decision_function(new), atol=1e-7
            )
        np.testing.assert_array_equal(found.predict(kind(points)), found.transduction_)
    np.testing.assert_allclose(
        dense.decision_function(sparse.csr_array(points)), dense.decision_function(points)
    )


def test_a_graph_of_sparse_points_is_that_of_dense_ones() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((40, 12)) * (rng.random((40, 12)) < 0.4)
    for weights in ("binary", "gaussian"):
        W = knn_graph(sparse.coo_array(points), 4, weights)  # type: ignore[arg-type]
        np.testing.assert_allclose(
            W.toarray(),
            knn_graph(points, 4, weights).toarray(),
            atol=1e-13,  # type: ignore[arg-type]
        )
    with pytest.raises(InvalidProblem, match="X is 3 x 0"):
        knn_graph(sparse.csr_array((3, 0)), 1)


# ---------------------------------------------------------------- scikit-learn


def expected_failures(learner: Any) -> dict[str, str]:
    marks = "-1 means unlabelled, as for LabelSpreading, which scikit-learn leaves out by name"
    graph = "repeated points change the graph of nearest neighbours, weights do not"
    failures = {"check_classifiers_classes": marks}
    if not isinstance(learner, Harmonic):
        failures["check_sample_weight_equivalence_on_dense_data"] = graph
        failures["check_sample_weight_equivalence_on_sparse_data"] = graph
    return failures


@parametrize_with_checks([LapRLS(), LapSVM(), Harmonic()], expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# ---------------------------------------------------------------- alignment, kernels of a graph


entries = st.integers(-9, 9)


@given(st.lists(entries, min_size=6, max_size=6), st.lists(entries, min_size=6, max_size=6))
def test_alignment_is_its_formula_in_rationals(a: list[int], b: list[int]) -> None:
    places = np.tril_indices(3)
    K, M = np.zeros((3, 3)), np.zeros((3, 3))
    K[places], M[places] = a, b
    K, M = K + np.tril(K, -1).T, M + np.tril(M, -1).T
    if not (K.any() and M.any()):
        with pytest.raises(InvalidProblem, match="is zero; it has no direction"):
            alignment(K, M)
        return
    inner = sum(Fraction(k) * Fraction(m) for k, m in zip(K.flat, M.flat, strict=True))
    squares = [sum(Fraction(k) ** 2 for k in each.flat) for each in (K, M)]
    found = alignment(K, M)
    assert found == pytest.approx(float(inner) / float(squares[0] * squares[1]) ** 0.5, abs=1e-14)
    assert alignment(1e300 * K, 1e-300 * M) == pytest.approx(found, abs=1e-13)

    H = np.eye(3) - 1 / 3
    centred_K, centred_M = H @ K @ H, H @ M @ H
    assert hsic(K, M) == pytest.approx(np.trace(K @ H @ M @ H) / 4, abs=1e-10)
    if np.abs(centred_K).max() > 1e-9 and np.abs(centred_M).max() > 1e-9:
        assert alignment(K, M, centre=True) == pytest.approx(
            alignment(centred_K, centred_M), abs=1e-9
        )


def test_labels_are_an_ideal_kernel() -> None:
    K = gaussian(X, X, 1.0)
    signs = 2.0 * y - 1
    assert polarisation(K, y, centre=False) == pytest.approx(signs @ K @ signs)
    np.testing.assert_array_equal(ideal_kernel(y, signed=True), np.outer(signs, signs))
    with pytest.raises(InvalidProblem, match="K is 80 x 80 and L is 2 x 2"):
        alignment(K, np.eye(2))


@pytest.mark.parametrize("width", [0.1, 1.0, 5.0])
def test_kernels_of_a_graph_are_functions_of_its_laplacian(width: float) -> None:
    np.testing.assert_allclose(
        diffusion_kernel(L, width).matrix, expm(-(width**2) / 2 * L), atol=1e-10
    )
    np.testing.assert_allclose(
        gaussian_field_kernel(L, width).matrix, np.linalg.inv(L + width * np.eye(80)), atol=1e-10
    )


@pytest.mark.parametrize("family", ["diffusion", "gaussian field"])
def test_an_aligned_width_is_better_than_every_other_on_a_fine_grid(family: Any) -> None:
    make = {"diffusion": diffusion_kernel, "gaussian field": gaussian_field_kernel}[family]
    signs = 2.0 * FEW[KNOWN] - 1
    target = np.outer(signs, signs)

    def aligned(kernel: Any) -> float:
        return alignment(kernel.matrix[np.ix_(KNOWN, KNOWN)], target)

    best = aligned(aligned_kernel(family, L, FEW))
    assert best >= max(aligned(make(L, width)) for width in np.geomspace(1e-2, 1e2, 41)) - 1e-6
