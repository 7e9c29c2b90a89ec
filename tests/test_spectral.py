"""Spectral kernels: reproducible eigenpairs, regularised least squares, alignment."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.eigenpairs import all_eigenpairs, smoothest_eigenpairs
from klopt.kernels.graphs import knn_graph, laplacian
from klopt.model.problem import Point
from klopt.problems import SpectralAlignment, SpectralRls
from klopt.problems._spectral.data import solve_semidefinite, targets
from klopt.problems._spectral.secular import Secular, single_target
from klopt.proof.certificate import Verdict

seeds = st.integers(0, 2**32 - 1)
COMPLETE = 3 * np.eye(3) - np.ones((3, 3))


def graph(seed, size=None):
    """The normalised Laplacian of a random connected graph and labels of two to four classes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12)) if size is None else size
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1) + np.eye(n, k=1)
    labels = rng.integers(-1, int(rng.integers(2, 5)), n)
    labels[:2] = 0, 1
    return laplacian(W + W.T).toarray(), labels, rng


def rls(seed, basis="spectral", size=None):
    L, labels, rng = graph(seed, size)
    return SpectralRls(
        L,
        labels,
        10 ** rng.uniform(-1, 2),
        10 ** rng.uniform(-3, 1),
        basis,
        10 ** rng.uniform(-3, 0),
    )


def value(problem, K):
    """The objective of (6) or (7) by its definition."""
    known, Y = targets(problem.labels)
    n = problem.labels.size
    if problem.basis != "labelled":
        full = np.zeros((n, Y.shape[1]))
        full[known] = Y
        known, Y = np.arange(n), full
    L = problem.laplacian.toarray() + problem.ridge * np.eye(n)
    inner = K[np.ix_(known, known)] + np.eye(known.size) / problem.C
    return float(np.sum(Y * np.linalg.solve(inner, Y)) / 2 + problem.mu * np.sum(K * L))


def regularised_decision(K, labels, C):
    known, Y = targets(labels)
    scores = K[:, known] @ np.linalg.solve(K[np.ix_(known, known)] + np.eye(known.size) / C, Y)
    return scores[:, 0] if scores.shape[1] == 1 else scores


# eigenpairs


def ring(n):
    """The normalised Laplacian of a ring with random chords: connected, every weight its own."""
    rng = np.random.default_rng(n)
    rows, columns = np.hstack(
        [[np.arange(n), np.arange(1, n + 1) % n], rng.integers(0, n, (2, 3 * n))]
    )
    apart = rows != columns
    W = sparse.csr_array(
        (rng.random(4 * n)[apart] + 0.1, (rows[apart], columns[apart])), shape=(n, n)
    )
    return laplacian(W + W.T)


def test_eigenvectors_kept_as_factors_are_eigenvectors():
    n, rng = 640, np.random.default_rng(0)
    L = ring(n)
    values, basis = all_eigenpairs(L)
    some, x, X = np.array([0, 5, 639]), rng.normal(size=n), rng.normal(size=(n, 3))
    tilt, gap = basis.off(L, values)
    rows, first = basis.rows(some), basis.times(x)
    U = basis.U
    np.testing.assert_allclose(U.T @ U, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(L @ U, U * values, atol=1e-12)
    np.testing.assert_allclose(values, smoothest_eigenpairs(L, n)[0], atol=1e-12)
    np.testing.assert_allclose(rows, U[some], atol=1e-12)
    np.testing.assert_allclose(first, U @ x, atol=1e-12)
    np.testing.assert_allclose(all_eigenpairs(L)[1].times(X), U @ X, atol=1e-12)
    np.testing.assert_allclose(basis.rows(some), U[some], atol=0)
    assert max(tilt, gap) < 1e-12


def test_wrong_factors_are_noticed():
    L = ring(640)
    values, basis = all_eigenpairs(L)
    wrong = values.copy()
    wrong[300] += 1e-6
    assert basis.off(L, wrong)[1] > 1e-9
    turned = basis.turned([(10, np.array([[1.0, 1e-6], [0.0, 1.0]]))], np.ones(640, dtype=bool))
    assert turned.off(L, values)[0] > 1e-9


def test_decisions_do_not_depend_on_whether_eigenvectors_are_multiplied_out():
    labels = np.where(np.arange(640) % 10, -1, np.arange(640) % 3)
    problem = SpectralAlignment(ring(640), labels)
    first, second = problem.decide(), problem.decide()
    known, Y = targets(labels)
    d = problem.directions
    R = (d.U * np.sqrt(d.A / d.B)) @ d.U.T
    expected = R[:, known] @ np.linalg.solve(R[np.ix_(known, known)], Y)
    np.testing.assert_allclose(first, expected, atol=1e-9)
    np.testing.assert_allclose(second, first, atol=1e-11)


def test_few_eigenpairs_of_a_large_graph_are_those_of_lapack():
    rng = np.random.default_rng(0)
    L = laplacian(knn_graph(rng.normal(size=(800, 3)), 6))
    values, V = smoothest_eigenpairs(L, 30)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[:30], atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(30), atol=1e-10)
    assert np.linalg.norm(L @ V - V * values, axis=0).max() <= 1e-8
    again = smoothest_eigenpairs(L, 30)[1]
    assert (again == V).all()


def test_copies_of_an_eigenvalue_are_all_found():
    piece = laplacian(knn_graph(np.random.default_rng(1).normal(size=(90, 2)), 5))
    L = sparse.block_diag([piece] * 8).tocsc()
    values, V = smoothest_eigenpairs(L, 20)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[:20], atol=1e-9)
    assert np.sum(values < 1e-9) >= 8
    np.testing.assert_allclose(V.T @ V, np.eye(20), atol=1e-9)


def test_pieces_of_a_graph_give_the_smoothest_pairs_of_all_of_them():
    """One large piece, small ones and single points."""
    rng = np.random.default_rng(5)
    large = laplacian(
        knn_graph(np.vstack([rng.normal(size=(9, 2)) * 0.1 + 4 * k for k in range(80)]), 12)
    )
    small = [laplacian(knn_graph(rng.normal(size=(int(m), 2)), 3)) for m in rng.integers(5, 30, 6)]
    L = sparse.block_diag([small[0], large, *small[1:], np.zeros((4, 4))]).tocsc()
    order = rng.permutation(L.shape[0])
    L = L[order][:, order]
    for r in (3, 40, 130, L.shape[0]):
        values, V = smoothest_eigenpairs(L, r)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[:r], atol=1e-9)
        np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-9)
        assert np.linalg.norm(L @ V - V * values, axis=0).max() <= 1e-8


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_power_of_a_laplacian_has_its_eigenvectors(power):
    W = knn_graph(np.random.default_rng(6).normal(size=(30, 2)), 5, weights="gaussian")
    values, V = np.linalg.eigh(laplacian(W).toarray())
    np.testing.assert_allclose(
        laplacian(W, power=power).toarray(), (V * values**power) @ V.T, atol=1e-13
    )
    assert abs(laplacian(W, power=power) - laplacian(W, power=power).T).max() == 0


@pytest.mark.parametrize("power", [0, 1.5, True])
def test_a_power_is_a_positive_integer(power):
    with pytest.raises(InvalidProblem, match="power is"):
        laplacian([[0, 1], [1, 0]], power=power)


def test_duplicate_points_have_eigenvectors():
    X = np.repeat(np.random.default_rng(2).normal(size=(50, 2)), 20, axis=0)
    L = laplacian(knn_graph(X, 5))
    values, V = smoothest_eigenpairs(L, 12)
    assert np.linalg.norm(L @ V - V * values, axis=0).max() <= 1e-8
    assert values.min() >= -1e-9


@pytest.mark.parametrize(
    ("L", "r", "message"),
    [
        (np.eye(3), 0, "r is 0"),
        (np.eye(3), 4, "r is 4"),
        (np.eye(3), 1.5, "r is 1.5"),
        (np.ones((2, 3)), 1, "2 x 3"),
        ([[0.0, 1.0], [0.0, 0.0]], 1, "not symmetric"),
        ([[np.nan]], 1, "nan"),
        (-np.eye(3), 1, "positive semidefinite"),
    ],
)
def test_eigenpairs_refuse_what_is_no_laplacian(L, r, message):
    with pytest.raises(InvalidProblem, match=message):
        smoothest_eigenpairs(L, r)


# regularised least squares


@given(seed=seeds, basis=st.sampled_from(["spectral", "padded", "labelled"]))
def test_closed_forms_are_optimal_and_primal_equals_dual(seed, basis):
    problem = rls(seed, basis)
    result = klopt.solve(problem, tol=1e-9).require()
    assert result.route.backend.name == "explicit"
    assert result.upper - result.lower <= 1e-9 * result.upper
    assert value(problem, result.kernel) == pytest.approx(result.value, rel=1e-9)


@pytest.mark.parametrize("basis", ["padded", "labelled"])
@pytest.mark.parametrize("seed", range(6))
def test_exact_kernels_are_those_of_the_semidefinite_program(seed, basis):
    problem = rls(seed, basis, size=6)
    exact = klopt.solve(problem, tol=1e-9).require()
    conic = klopt.solve(problem, "clarabel", formulation="SDP", tol=1e-5).require()
    assert max(exact.lower, conic.lower) <= min(exact.upper, conic.upper)


@pytest.mark.parametrize("seed", range(4))
def test_exact_kernels_are_what_an_independent_solver_finds(seed):
    import cvxpy as cp

    problem = rls(seed, "labelled", size=6)
    known, Y = targets(problem.labels)
    n, p, c = 6, *Y.shape
    K, T = cp.Variable((n, n), PSD=True), cp.Variable((c, c), symmetric=True)
    block = cp.bmat(
        [[np.eye(n)[known] @ K @ np.eye(n)[known].T + np.eye(p) / problem.C, Y], [Y.T, T]]
    )
    L = problem.laplacian.toarray() + problem.ridge * np.eye(n)
    program = cp.Problem(cp.Minimize(cp.trace(T) / 2 + problem.mu * cp.trace(L @ K)), [block >> 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL")
    assert klopt.solve(problem).require().value == pytest.approx(program.value, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_spectral_kernels_are_those_of_the_cone_program(seed):
    problem = rls(seed)
    exact = klopt.solve(problem, tol=1e-10).require()
    conic = klopt.solve(problem, "clarabel", formulation="SOCP", tol=1e-6).require()
    assert max(exact.lower, conic.lower) <= min(exact.upper, conic.upper)


@given(seed=seeds)
def test_bracket_of_least_squares_holds_from_any_point(seed):
    rng = np.random.default_rng(seed)
    for basis in ("spectral", "padded", "labelled"):
        problem = rls(seed, basis)
        best = klopt.solve(problem, tol=1e-9).require()
        spectrum = {"spectrum": rng.normal(size=problem.directions.A.size)}
        factor = {"factor": rng.normal(size=(problem.labels.size, 3))}
        bracket = problem.bracket(Point(spectrum if basis == "spectral" else factor))
        assert bracket.lower <= best.upper
        assert bracket.upper >= best.lower
        assert bracket.upper == pytest.approx(
            value(problem, problem.kernel(bracket.point)), rel=1e-9
        )


@given(seed=seeds)
def test_more_freedom_gives_smaller_values(seed):
    values = [
        klopt.solve(rls(seed, basis), tol=1e-9).require().value
        for basis in ("spectral", "padded", "labelled")
    ]
    assert values[0] * (1 + 1e-9) >= values[1]
    assert values[1] * (1 + 1e-9) >= values[2]


@given(seed=seeds)
def test_best_kernel_has_the_rank_of_the_targets(seed):
    problem = rls(seed, "labelled")
    result = klopt.solve(problem, tol=1e-9).require()
    assert result.point.factor.shape[1] == targets(problem.labels)[1].shape[1]


def test_the_printed_closed_form_is_not_the_minimiser():
    """A = 2, B = 1, mu = 1, C = 2: lam = 0.5, value 1.5; as printed 0.7071 and 1.5355."""
    problem = SpectralRls(np.array([[1.0, 0.0], [0.0, 0.5]]), [0, 1], C=2.0, mu=1.0, ridge=0.0)
    lam = klopt.solve(problem, tol=1e-12).require().point.spectrum
    A, B = problem.directions.A, problem.directions.B
    np.testing.assert_allclose(lam, np.maximum(np.sqrt(A / (2 * B)) - 0.5, 0), atol=1e-14)
    printed = np.sqrt(np.maximum(A / (2 * B) - 0.5, 0))
    assert value(problem, (problem.directions.U * printed) @ problem.directions.U.T) > 1.01 * value(
        problem, (problem.directions.U * lam) @ problem.directions.U.T
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_kernels_do_not_depend_on_the_eigenbasis(classes):
    """LAPACK returns other eigenvectors of permuted points; the kernel is the same."""
    L = np.kron(np.eye(2), COMPLETE) + 0.3 * np.kron([[1, -1], [-1, 1]], np.eye(3))
    labels = np.array([0, 1, -1, classes - 1, 0, -1])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(6)
        for problem in (
            lambda L, y: SpectralRls(L, y, C=5.0, mu=0.05, ridge=0.1),
            lambda L, y: SpectralAlignment(L, y, ridge=0.1),
        ):
            one, other = problem(L, labels), problem(L[np.ix_(order, order)], labels[order])
            first, second = (klopt.solve(p, tol=1e-10).require() for p in (one, other))
            assert first.value == pytest.approx(second.value, rel=1e-10)
            np.testing.assert_allclose(first.kernel[np.ix_(order, order)], second.kernel, atol=1e-9)
            np.testing.assert_allclose(
                one.decide(first.point)[order], other.decide(second.point), atol=1e-8
            )


def test_no_rotation_of_an_eigenbasis_is_better():
    problem = SpectralRls(COMPLETE, [0, 1, -1], C=2.0, mu=0.1, ridge=0.1)
    best = klopt.solve(problem, tol=1e-12).require().value
    plane = np.linalg.svd(np.ones((1, 3)))[2][1:].T
    y = np.array([-1.0, 1.0, 0.0])
    for angle in np.linspace(0, np.pi, 13):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        U = np.column_stack([np.ones(3) / np.sqrt(3), plane @ turn])
        lam = np.maximum(np.sqrt((U.T @ y) ** 2 / (0.2 * np.array([0.1, 3.1, 3.1]))) - 0.5, 0)
        assert value(problem, (U * lam) @ U.T) >= best - 1e-12


@given(seed=seeds, factor=st.sampled_from([0.1, 10.0]))
def test_decisions_do_not_depend_on_c_along_a_level(seed, factor):
    """mu = (C / tau)^2: the level, and with it C K, stays."""
    L, labels, rng = graph(seed)
    C, tau = 2.0, rng.uniform(1, 20)
    one, other = (SpectralRls(L, labels, c, (c / tau) ** 2, ridge=0.1) for c in (C, factor * C))
    scores = [problem.decide(klopt.solve(problem).require().point) for problem in (one, other)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-9)


@given(seed=seeds, basis=st.sampled_from(["spectral", "padded", "labelled"]))
def test_decisions_are_those_of_the_kernel_matrix(seed, basis):
    problem = rls(seed, basis)
    result = klopt.solve(problem).require()
    expected = regularised_decision(result.kernel, problem.labels, problem.C)
    np.testing.assert_allclose(
        problem.decide(result.point), expected, atol=1e-7 * (1 + np.abs(expected).max())
    )


def test_disconnected_graphs_and_duplicate_points_are_learned_from():
    X = np.repeat(np.array([[0.0], [0.1], [5.0], [5.1]]), 5, axis=0)
    L, truth = laplacian(knn_graph(X, 4)), np.repeat([0, 0, 1, 1], 5)
    labels = np.where(np.arange(20) % 3 == 0, truth, -1)
    for basis in ("spectral", "padded", "labelled"):
        problem = SpectralRls(L, labels, C=10.0, mu=0.1, basis=basis)
        result = klopt.solve(problem, tol=1e-9).require()
        assert value(problem, result.kernel) == pytest.approx(result.value, rel=1e-9)
    problem = SpectralAlignment(L, labels)
    result = klopt.solve(problem, tol=1e-9).require()
    assert np.isfinite(problem.decide(result.point)).all()
    assert ((problem.decide(result.point) > 0) == truth)[labels >= 0].all()


def test_a_kernel_beside_which_the_regulariser_is_rounding_proves_what_no_kernel_does():
    L, labels, _ = graph(4)
    problem = SpectralRls(L, labels, C=1e3, mu=1.0, basis="labelled", ridge=0.1)
    best = klopt.solve(problem, tol=1e-9).require()
    for size in (1e3, 1e9, 1e30):
        bracket = problem.bracket(Point({"factor": np.full((labels.size, 1), size)}))
        assert bracket.lower <= best.value <= bracket.upper
        assert bracket.upper >= 0.99 * value(problem, bracket.point.factor @ bracket.point.factor.T)


def test_a_heavy_price_makes_the_kernel_zero():
    for basis in ("spectral", "padded", "labelled"):
        L, labels, _ = graph(3)
        problem = SpectralRls(L, labels, C=1.0, mu=1e4, basis=basis, ridge=0.1)
        result = klopt.solve(problem, tol=1e-10).require()
        assert np.abs(result.kernel).max() <= 1e-6
        assert result.value == pytest.approx(np.sum(targets(labels)[1] ** 2) / 2)


@given(seed=seeds, columns=st.integers(1, 4))
def test_secular_equation_has_its_optimality_conditions(seed, columns):
    rng = np.random.default_rng(seed)
    w, Z = rng.uniform(0.5, 50, 8), rng.normal(size=(8, columns))
    C, mu = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-3, 1)
    equation = Secular(w, Z, C, mu)
    N = equation.solve()
    a = equation.rows(N)[0]
    slack = 2 * mu * np.eye(columns) - np.einsum("i,ij,ik->jk", w, a, a)
    assert np.linalg.eigvalsh(N)[0] >= 0
    assert np.linalg.eigvalsh(slack)[0] >= -1e-8 * mu
    assert np.abs(N @ slack).max() <= 1e-8 * mu * (1 + np.abs(N).max())


@given(seed=seeds, spread=st.sampled_from([1.0, 6.0, 12.0]))
def test_one_target_has_the_multiplier_of_its_secular_equation(seed, spread):
    rng = np.random.default_rng(seed)
    w, y, C = (
        10 ** rng.uniform(-spread, spread / 4, 7),
        rng.normal(size=7),
        10 ** rng.uniform(-2, 3),
    )
    heavy = C**2 * float(w @ y**2) / 2
    mu = heavy * 10 ** rng.uniform(-6, 0.5)
    nu, a = single_target(np.diag(w), y, C, mu)
    np.testing.assert_allclose(a, y / (1 / C + nu * w), rtol=1e-9)
    assert (nu == 0) == (mu >= heavy)
    assert a @ (w * a) == pytest.approx(2 * min(mu, heavy), rel=1e-9)
    several = Secular(w, y[:, None], C, mu).solve()[0, 0]
    assert several == pytest.approx(nu, rel=1e-4, abs=1e-6 * (1 + abs(nu)))


def test_a_truncated_spectrum_keeps_whole_eigenspaces():
    L = np.kron(np.eye(4), COMPLETE)  # eigenvalues 0 four times, 3 eight times
    labels = np.arange(12) % 2
    problem = SpectralRls(L, labels, C=1.0, mu=0.1, ridge=0.1, rank=6)
    assert problem.directions.A.size == 1
    full = SpectralRls(L, labels, C=1.0, mu=0.1, ridge=0.1, rank=12)
    assert klopt.solve(full).require().value <= klopt.solve(problem).require().value
    with pytest.raises(InvalidProblem, match="multiplicity"):
        SpectralRls(L, labels, C=1.0, mu=0.1, ridge=0.1, rank=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((COMPLETE, [0, 1], 1.0, 1.0), "labels has 2 entries"),
        ((COMPLETE, [-1, -1, -1], 1.0, 1.0), "no class"),
        ((COMPLETE, [0, 0, -1], 1.0, 1.0), "one class only"),
        ((COMPLETE, [0, 1, -1], 0.0, 1.0), "C is 0"),
        ((COMPLETE, [0, 1, -1], 1.0, -1.0), "mu is -1"),
        ((COMPLETE, [0, 1, -1], 1.0, 1.0, "any"), "basis is 'any'"),
        ((COMPLETE, [0, 1, -1], 1.0, 1.0, "spectral", 0.0), "give a positive ridge"),
        ((COMPLETE, [0, 1, -1], 1.0, 1.0, "padded", 0.0), "give a positive ridge"),
        ((COMPLETE, [0, 1, -1], 1.0, 1.0, "labelled", 0.1, 2), "uses no eigenvectors"),
        ((COMPLETE, [0, 1, -1], 1.0, 1.0, "spectral", 0.1, 9), "rank is 9"),
        ((np.ones((2, 3)), [0, 1], 1.0, 1.0), "2 x 3"),
        ((-COMPLETE, [0, 1, -1], 1.0, 1.0), "positive semidefinite"),
        ((-COMPLETE, [0, 1, -1], 1.0, 1.0, "labelled"), "positive"),
    ],
)
def test_least_squares_refuses_invalid_data(arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        SpectralRls(*arguments)


# alignment


def spectral_alignment(seed, ridge=None):
    L, labels, rng = graph(seed)
    return SpectralAlignment(L, labels, 10 ** rng.uniform(-6, 0) if ridge is None else ridge)


@given(seed=seeds)
def test_no_level_is_better_than_the_best_piece(seed):
    problem = spectral_alignment(seed)
    result = klopt.solve(problem, tol=1e-10).require()
    top = float(np.sqrt(np.max(problem.directions.A / problem.directions.B) / 2))
    levels = np.concatenate([np.linspace(0, top, 400), top * (1 - np.logspace(-9, 0, 100))])
    assert all(problem.bracket(Point({"level": t})).lower <= result.upper for t in levels)


@given(seed=seeds)
def test_value_is_the_alignment_of_the_kernel_with_the_targets(seed):
    problem = spectral_alignment(seed)
    result = klopt.solve(problem).require()
    known, Y = targets(problem.labels)
    T = np.zeros_like(result.kernel)
    T[np.ix_(known, known)] = Y @ Y.T
    rho = np.sum(result.kernel * T) / (np.linalg.norm(result.kernel) * np.linalg.norm(T))
    assert rho == pytest.approx(result.value, rel=1e-10)
    assert (
        rho <= np.linalg.norm(problem.directions.A) / np.linalg.norm(T) + 1e-12
    )  # over all spectra, lam ~ A is best


@given(seed=seeds)
def test_the_level_is_a_kernel_of_least_squares(seed):
    """Level t and any C give the kernel of SpectralRls with mu = (C t)^2, up to scale."""
    problem, C = spectral_alignment(seed, ridge=0.1), 3.0
    level = 0.3 * float(np.sqrt(np.max(problem.directions.A / problem.directions.B) / 2))
    rls_problem = SpectralRls(problem.laplacian, problem.labels, C, (C * level) ** 2, ridge=0.1)
    point = klopt.solve(rls_problem).require().point
    K, other = rls_problem.kernel(point), problem.kernel(Point({"level": level}))
    np.testing.assert_allclose(K / np.trace(K), other, atol=1e-9)
    np.testing.assert_allclose(
        rls_problem.decide(point), problem.decide(Point({"level": level})), atol=1e-8
    )


@given(seed=seeds)
def test_published_decision_needs_no_matrix_of_all_points(seed):
    problem = spectral_alignment(seed, ridge=0.1)
    U, A, B = problem.directions.U, problem.directions.A, problem.directions.B
    R = (U * np.sqrt(A / B)) @ U.T
    known, Y = targets(problem.labels)
    R_ll = R[np.ix_(known, known)]
    if np.linalg.cond(R_ll) > 1e8:
        return
    expected = R[:, known] @ np.linalg.solve(R_ll, Y)
    np.testing.assert_allclose(
        problem.decide(), expected[:, 0] if Y.shape[1] == 1 else expected, atol=1e-6
    )


@given(seed=seeds, rank=st.integers(1, 12))
def test_where_the_kernel_is_singular_the_least_norm_solution_is_taken(seed, rank):
    rng = np.random.default_rng(seed)
    G, Y = rng.normal(size=(12, rank)) @ np.diag(rng.uniform(1, 10, rank)), rng.normal(size=(12, 2))
    K = G @ G.T
    found, expected = solve_semidefinite(K, Y), np.linalg.pinv(K, rcond=1e-11, hermitian=True) @ Y
    np.testing.assert_allclose(found, expected, atol=1e-6 * abs(expected).max())


def test_twins_with_two_labels_share_the_mean():
    """Points with the same kernel row but different labels get the mean."""
    star = np.diag([3.0, 1.0, 1.0, 1.0])
    star[0, 1:] = star[1:, 0] = -1.0
    twins = SpectralAlignment(star, [-1, 0, 1, 1], ridge=0.1, rank=1)
    scores = twins.decide()
    np.testing.assert_allclose(scores, np.full(4, 1 / 3), atol=1e-12)


def test_a_singular_kernel_of_the_labelled_points_still_decides():
    problem = SpectralAlignment(np.diag([1.0, 2.0, 3.0, 3.0]), [0, 1, 0, 1], rank=2)
    assert np.isfinite(problem.decide()).all()


def test_alignment_of_a_large_sparse_graph_by_few_eigenpairs():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(700, 2)), rng.normal(size=(700, 2)) + 4])
    truth = np.repeat([0, 1], 700)
    labels = np.full(1400, -1)
    labels[::70] = truth[::70]
    problem = SpectralAlignment(laplacian(knn_graph(X, 8)), labels, rank=40)
    result = klopt.solve(problem).require()
    assert result.verdict is Verdict.OPTIMAL
    assert np.mean((problem.decide(result.point) > 0) == truth) > 0.95
    assert np.mean((problem.decide() > 0) == truth) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((COMPLETE, [0, 1]), "labels has 2 entries"),
        ((COMPLETE, [0, 0, -1]), "one class only"),
        ((COMPLETE, [0, 1, -1], -1.0), "ridge is -1"),
        ((COMPLETE, [0, 1, -1], 0.0), "give a positive ridge"),
        ((COMPLETE, [0, 1, -1], 0.1, 0), "rank is 0"),
        ((np.diag([1.0, 2.0, 3.0]), [-1, 0, 1], 0.1, 1), "raise the rank"),
        (([[1.0, -1.0], [0.0, 1.0]], [0, 1]), "not symmetric"),
    ],
)
def test_alignment_of_spectra_refuses_invalid_data(arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        SpectralAlignment(*arguments)
