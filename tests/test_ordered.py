"""Ordered spectral kernels: the order, its prefixes and its projection; alignment and graph loss by every form."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog, minimize

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import knn_graph, laplacian, supervised_laplacian, supervised_targets
from klopt.kernels.side_information import energies, side_graph
from klopt.model.features import Feature
from klopt.model.problem import Point
from klopt.model.sets import OrderedCone
from klopt.problems import OrderedAlignment, ScgOrdered
from klopt.problems._ordered.function import (
    ColumnQuadratic,
    PrefixKernels,
    PrefixQuadratic,
    PrefixStore,
    falling,
    rising,
)
from klopt.problems._ordered.proof import RankOneColumns
from klopt.proof.certificate import Verdict

seeds = st.integers(0, 2**32 - 1)
SIGMAS = (1.0, 1.05, 1.5, 3.0)


def instance(seed, ordered=None):
    """A random alignment, often degenerate: zero or equal columns, low rank, one point or class, signed targets."""
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(1, 14)), int(rng.integers(1, 10))
    V = rng.normal(size=(n, r))
    kind = seed % 6
    if kind == 1:
        V = np.linalg.qr(rng.normal(size=(max(n, r), max(n, r))))[0][:n, :r]
    if kind == 2:
        V[:, rng.integers(r)] = 0.0
    if kind == 3 and r > 1:
        V[:, -1] = V[:, 0]
    if kind == 4:
        V = np.outer(rng.normal(size=n), rng.uniform(0.5, 2, r))  # F of rank one
    labels = rng.integers(-1, int(rng.integers(1, 5)), n)
    labels[rng.integers(n)] = 0
    V[labels >= 0] += 1e-3 * (np.abs(V[labels >= 0]).sum() == 0)
    ordered = bool(rng.random() < 0.8) if ordered is None else ordered
    sigma = float(rng.choice(SIGMAS)) if ordered else 1.0
    return OrderedAlignment(
        V, labels, sigma, ordered, ["indicator", "signed"][int(rng.random() < 0.4)]
    )


def matrices(problem):
    """F, b and ||T|| by their definitions."""
    known = problem.labels >= 0
    V, y = problem.V[known], problem.labels[known]
    T = (y[:, None] == y).astype(float)
    T = T if problem.target == "indicator" else 2 * T - 1
    return (V.T @ V) ** 2, np.diag(V.T @ T @ V), float(np.linalg.norm(T))


def random_alpha(problem, rng):
    """A point of the cone made from its definition."""
    s = rng.exponential(size=problem.V.shape[1]) * (
        rng.random(problem.V.shape[1]) < rng.uniform(0.1, 1)
    )
    if not problem.ordered:
        return s
    alpha = np.zeros_like(s)
    for i in reversed(range(s.size)):
        alpha[i] = s[i] + (problem.sigma * alpha[i + 1] if i + 1 < s.size else 0.0)
    return alpha / (alpha.max() or 1.0)


def alignment(problem, alpha):
    F, b, norm = matrices(problem)
    return float(b @ alpha) / (np.sqrt(float(alpha @ F @ alpha)) * norm)


# the order and its set


@given(seed=seeds)
def test_slack_transform_is_a_bijection_onto_the_ordered_cone(seed):
    s = np.random.default_rng(seed).exponential(size=9)
    a = rising(s)
    assert (np.diff(a) <= 0).all()
    np.testing.assert_allclose(falling(a), s, atol=1e-14)
    np.testing.assert_allclose(a, np.triu(np.ones((9, 9))) @ s, rtol=1e-14)


def cone(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    return OrderedCone(rng.uniform(0.2, 3, n), rng.uniform(0.2, 3, n), rng.uniform(0.5, 4)), rng


def member(domain, rng):
    weights = rng.dirichlet(np.full(domain.size + 1, 0.4))[1:]
    prefixes = np.tril(np.ones((domain.size, domain.size))) * domain.steps
    return weights @ (domain.total * prefixes / (prefixes @ domain.price)[:, None])


@given(seed=seeds)
def test_pooling_gives_the_nearest_point_of_the_ordered_cone(seed):
    domain, rng = cone(seed)
    x = 3 * rng.normal(size=domain.size)
    p = domain.project(x)
    assert domain.violation(p) <= 1e-13
    np.testing.assert_allclose(domain.project(p), p, atol=1e-13)
    for _ in range(10):  # x - p makes no acute angle with the way to any other point
        assert (x - p) @ (member(domain, rng) - p) <= 1e-12 * (1 + x @ x)


@given(seed=seeds)
def test_projection_in_a_diagonal_metric_is_weighted_isotonic_regression(seed):
    """x = d beta with beta nonincreasing: the nearest x is d times the fit of x / d with weights d^2, cut off at 0."""
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(seed)
    d, x = rng.uniform(0.2, 3, 9), 3 * rng.normal(size=9)
    fit = IsotonicRegression(increasing=False).fit_transform(
        np.arange(9), x / d, sample_weight=d**2
    )
    np.testing.assert_allclose(
        OrderedCone(d, np.ones(9), 1e6).project(x), d * np.maximum(fit, 0), atol=1e-12
    )


@given(seed=seeds)
def test_prefixes_minimise_linear_functions_over_the_ordered_cone(seed):
    domain, rng = cone(seed)
    g = rng.normal(size=domain.size)
    z = domain.linear_minimiser(g)
    assert domain.violation(z) <= 1e-13
    order = np.diff(np.eye(domain.size), axis=0) / domain.steps
    rows = np.vstack([order, domain.price])
    minimum = linprog(g, A_ub=rows, b_ub=np.append(np.zeros(len(order)), domain.total)).fun
    assert g @ z == pytest.approx(minimum, abs=1e-9)
    assert np.abs(member(domain, rng)).sum() <= domain.radius + 1e-12
    assert domain.violation(domain.centre()) == 0
    assert (np.diff(domain.centre() / domain.steps) < 0).all()


@pytest.mark.parametrize(
    ("steps", "price", "message"),
    [
        ([], [], "steps is empty"),
        ([1.0, 0.0], [1.0, 1.0], r"steps\[1\]"),
        ([1.0], [-1.0], r"price\[0\]"),
    ],
)
def test_ordered_cone_refuses_steps_and_prices_that_are_not_positive(steps, price, message):
    with pytest.raises(InvalidProblem, match=message):
        OrderedCone(steps, price)


@pytest.mark.parametrize("shape", [(3, 200), (12, 20)])
def test_quadratics_that_never_form_f_are_those_that_do(shape):
    rng = np.random.default_rng(0)
    W = rng.normal(size=shape)
    m = shape[1]
    columns, d, linear = RankOneColumns(W), rng.uniform(0.5, 2, m), rng.normal(size=m)
    assert columns.is_small == (shape == (12, 20))
    F = (W.T @ W) ** 2
    C = np.triu(np.ones((m, m)))
    every, some = np.arange(m), np.array([m - 1, 0, 7])
    for quadratic, H in (
        (ColumnQuadratic(columns, d, linear), F * np.outer(d, d)),
        (PrefixQuadratic(PrefixKernels(columns), d, linear), C.T @ F @ C * np.outer(d, d)),
    ):
        few = np.zeros(m)
        few[[2, 5, m - 1]] = [1.0, -0.5, 2.0]
        for x in (rng.normal(size=m), few, np.zeros(m)):
            np.testing.assert_allclose(quadratic.matvec(x), H @ x, rtol=1e-10, atol=1e-8 * H.max())
            assert quadratic.value(x) == pytest.approx(x @ H @ x / 2 + linear @ x, rel=1e-10)
        np.testing.assert_allclose(quadratic.block(some, every), H[np.ix_(some, every)], rtol=1e-11)
        np.testing.assert_allclose(
            quadratic.block(some, some[:2]), H[np.ix_(some, some[:2])], rtol=1e-11
        )
        assert quadratic.block(some[:0], some[:0]).shape == (0, 0)
        np.testing.assert_allclose(quadratic.diagonal(), np.diag(H), rtol=1e-11)


# alignment


@pytest.mark.parametrize("seed", range(12))
def test_alignment_is_what_an_independent_solver_finds(seed):
    import cvxpy as cp

    problem = instance(seed)
    known = problem.labels >= 0
    V, (_, b, norm) = problem.V[known], matrices(problem)
    alpha = cp.Variable(problem.V.shape[1], nonneg=True)
    rows = np.array([np.outer(v, v).ravel() for v in V.T]).T
    constraints = [cp.norm(rows @ alpha) <= 1]
    if problem.ordered and alpha.size > 1:
        constraints.append(alpha[:-1] >= problem.sigma * alpha[1:])
    program = cp.Problem(cp.Maximize(b @ alpha / norm), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL")
    result = klopt.solve(problem, tol=1e-8).require()
    if problem.reduced.is_positive:
        assert result.value == pytest.approx(program.value, abs=1e-6)
        assert alignment(problem, result.point.alpha) == pytest.approx(result.value, abs=1e-9)
    else:
        assert result.value <= 1e-12


@pytest.mark.parametrize(
    "batch", [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(1, 10))]
)
def test_all_formulations_agree(batch):
    for seed in range(25 * batch, 25 * (batch + 1)):
        problem = instance(seed)
        brackets = []
        for name in (form.name for form in problem.formulations()):
            by = {"explicit": "explicit", "NNLS": "active_set", "ordered cone": "nesterov"}.get(
                name, "clarabel"
            )
            result = klopt.solve(
                problem, by, formulation=name, tol=1e-6 if by == "clarabel" else 1e-8
            )
            assert result.verdict is Verdict.OPTIMAL, (seed, name, result.explain())
            brackets.append((result.lower, result.upper))
        assert max(low for low, _ in brackets) <= min(high for _, high in brackets), seed


@pytest.mark.parametrize("target", ["indicator", "signed"])
def test_a_single_column_is_aligned_by_every_form(target):
    problem = OrderedAlignment([[1.0], [2.0], [-1.0]], [0, 0, 1], target=target)
    for form in problem.formulations():
        by = {"explicit": "explicit", "NNLS": "active_set", "ordered cone": "nesterov"}.get(
            form.name, "clarabel"
        )
        result = klopt.solve(problem, by, formulation=form.name, tol=1e-6).require()
        assert result.value == pytest.approx(alignment(problem, np.ones(1)), abs=1e-6)


@given(seed=seeds)
def test_bracket_holds_from_any_point(seed):
    problem, rng = instance(seed), np.random.default_rng(seed + 1)
    best = klopt.solve(problem, tol=1e-9).require()
    for alpha in (
        random_alpha(problem, rng),
        rng.normal(size=problem.V.shape[1]),
        np.zeros(problem.V.shape[1]),
    ):
        bracket = problem.bracket(Point({"alpha": alpha}))
        assert bracket.lower <= best.upper
        assert bracket.upper >= best.lower
        assert bracket.lower == pytest.approx(alignment(problem, bracket.point.alpha), abs=1e-7)
        gaps = bracket.point.alpha[:-1] - problem.sigma * bracket.point.alpha[1:]
        assert not problem.ordered or (gaps >= -1e-12).all()
        assert (bracket.point.alpha >= 0).all()


@given(seed=seeds)
def test_certificate_of_the_quadratic_program_sandwiches_its_optimum(seed):
    """theta^2 lam <= lam* <= lam for lam = s'F~s at b~'s = 1 and theta = min (F~s)_k / (lam b~_k) over b~_k > 0."""
    problem = instance(seed, ordered=True)
    F, b, norm = matrices(problem)
    reduced, rng = problem.reduced, np.random.default_rng(seed)
    beta = reduced.beta(random_alpha(problem, rng))
    lower, upper = reduced.bounds(beta)
    if not reduced.is_positive or lower <= 0.01:
        return
    alpha = reduced.alpha(beta)
    e = problem.sigma ** -np.arange(float(alpha.size))
    alpha = alpha / (b @ alpha)
    lam, rows, B = alpha @ F @ alpha, np.cumsum(e * (F @ alpha)), np.cumsum(e * b)
    floor = 1e-12 * float(np.abs(B).max())
    positive = np.flatnonzero(B - floor > 0)
    theta = float(np.min(rows[positive] / (lam * B[positive])))
    assert lower == pytest.approx(1 / (np.sqrt(lam) * norm), rel=1e-9)
    assert upper <= 1 / (theta * np.sqrt(lam) * norm) * (1 + 1e-9)
    best = klopt.solve(problem, tol=1e-9).require().value
    optimum = 1 / (best * norm) ** 2
    assert theta**2 * lam * (1 - 1e-9) <= optimum <= lam * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [1.0, 1.1])
def test_first_order_steps_in_the_metric_reach_the_exact_optimum(sigma):
    rng = np.random.default_rng(11)
    V = np.linalg.qr(rng.normal(size=(80, 60)))[0]
    problem = OrderedAlignment(V, np.where(np.arange(80) < 40, np.arange(80) % 4, -1), sigma)
    exact = klopt.solve(problem, tol=1e-10).require()
    first = klopt.solve(problem, "nesterov", formulation="ordered cone", tol=1e-9).require()
    assert exact.route.backend.name == "active_set"
    assert max(exact.lower, first.lower) <= min(exact.upper, first.upper)
    form = next(f for f in problem.formulations() if f.name == "ordered cone").build()
    F = form.objective.block(np.arange(form.domain.size), np.arange(form.domain.size))
    assert (
        np.linalg.eigvalsh(F)[-1] <= 1 + 1e-12
    )  # F <= diag(F1): a step of length 1 needs no search


@given(seed=seeds)
def test_the_order_costs_alignment(seed):
    free = instance(seed, ordered=False)
    values = [klopt.solve(free, tol=1e-9).require().value]
    for sigma in (1.0, 1.2, 2.0):
        ordered = OrderedAlignment(free.V, free.labels, sigma, target=free.target)
        values.append(klopt.solve(ordered, tol=1e-9).require().value)
    assert (np.diff(values) <= 1e-8).all()


@given(seed=seeds)
def test_a_sigma_order_is_the_plain_order_of_scaled_columns(seed):
    problem = instance(seed, ordered=True)
    e = problem.sigma ** -np.arange(float(problem.V.shape[1]))
    plain = OrderedAlignment(problem.V * np.sqrt(e), problem.labels, target=problem.target)
    one, other = (klopt.solve(p, tol=1e-9).require() for p in (problem, plain))
    assert one.value == pytest.approx(other.value, abs=1e-8)
    assert alignment(problem, e * other.point.alpha) == pytest.approx(one.value, abs=1e-7)


@given(seed=seeds, scale=st.sampled_from([1e-9, 1e-3, 1e6]))
def test_alignment_does_not_change_with_the_unit_of_v(seed, scale):
    problem = instance(seed)
    scaled = OrderedAlignment(
        scale * problem.V, problem.labels, problem.sigma, problem.ordered, problem.target
    )
    one, other = (klopt.solve(p, tol=1e-9).require().value for p in (problem, scaled))
    assert one == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("sigma", [1.0, 1.1])
def test_orthonormal_columns_and_all_labels_are_solved_by_pooling(ordered, sigma):
    if sigma > 1 and not ordered:
        return
    rng = np.random.default_rng(3)
    V = np.linalg.qr(rng.normal(size=(30, 30)))[0][:, :20]
    problem = OrderedAlignment(V, rng.integers(0, 3, 30), sigma, ordered)
    assert klopt.plan(problem).routes[0].formulation.name == "explicit"
    closed, exact = (
        klopt.solve(problem, "explicit", tol=1e-12),
        klopt.solve(problem, "active_set", tol=1e-9),
    )
    assert closed.verdict is Verdict.OPTIMAL
    assert closed.value == pytest.approx(exact.value, abs=1e-9)
    if not ordered:
        b = matrices(problem)[1]
        np.testing.assert_allclose(closed.point.alpha, b / b.sum(), atol=1e-12)


def test_three_points_of_three_classes_have_alignment_minus_one_third():
    problem = OrderedAlignment(np.ones((3, 1)), [0, 1, 2], target="signed")
    result = klopt.solve(problem, tol=1e-12).require()
    assert result.value == pytest.approx(-1 / 3)
    assert [form.name for form in problem.formulations()] == ["explicit"]


@given(seed=seeds, ordered=st.booleans())
def test_negative_alignment_is_best_at_a_single_ray(seed, ordered):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 6))
    V = 1.0 + 0.2 * rng.normal(size=(3 * classes, int(rng.integers(1, 6))))
    problem = OrderedAlignment(
        V, np.arange(3 * classes) % classes, 1.3 if ordered else 1.0, ordered, "signed"
    )
    assert not problem.reduced.is_positive
    result = klopt.solve(problem, tol=1e-11).require()
    assert result.value < 0
    best = max(
        alignment(problem, alpha)
        for alpha in (random_alpha(problem, rng) for _ in range(200))
        if alpha.any()
    )
    assert best <= result.upper
    bracket = problem.bracket(Point({"alpha": random_alpha(problem, rng)}))
    assert bracket.lower <= result.value <= bracket.upper


def test_a_prefix_sum_of_zero_gives_alignment_zero():
    # b_1 = 0 for two classes in balance, and every further column makes it worse: 4 classes in two
    # pairs.
    V = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    problem = OrderedAlignment(V, [0, 1, 2, 3], target="signed")
    result = klopt.solve(problem, tol=1e-12).require()
    F, b, _ = matrices(problem)
    assert result.value == pytest.approx(max(b[0] / F[0, 0] ** 0.5, b.sum() / F.sum() ** 0.5) / 4)


def test_zero_columns_keep_the_order_and_change_nothing():
    rng = np.random.default_rng(5)
    V, labels = rng.normal(size=(8, 4)), [0, 1, 0, 1, 0, 1, -1, -1]
    full = np.zeros((8, 8))
    full[:, [1, 3, 4, 6]] = V
    for sigma in (1.0, 1.5):
        powers = sigma ** -np.array(
            [0.0, 2.0, 3.0, 5.0]
        )  # what the columns between them take of the order
        plain = OrderedAlignment(V * np.sqrt(powers), labels)
        padded = OrderedAlignment(full, labels, sigma)
        one, other = (klopt.solve(p, tol=1e-10).require() for p in (plain, padded))
        assert one.value == pytest.approx(other.value, abs=1e-9)
        alpha = other.point.alpha
        assert (alpha[:-1] - sigma * alpha[1:] >= -1e-14).all()


def test_columns_that_are_rounding_on_the_labelled_points_count_as_zero():
    rng = np.random.default_rng(6)
    V = rng.normal(size=(9, 4))
    noisy = V.copy()
    V[:6, 0], noisy[:6, 0] = 0.0, 1e-15 * rng.normal(size=6)
    labels = [0, 1, 0, 1, 0, 1, -1, -1, -1]
    one, other = (
        klopt.solve(OrderedAlignment(columns, labels), tol=1e-10).require()
        for columns in (V, noisy)
    )
    assert one.value == pytest.approx(other.value, abs=1e-12)


def test_a_steep_order_of_many_columns_does_not_overflow():
    rng = np.random.default_rng(7)
    V = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    V = np.hstack([V] * 70)
    problem = OrderedAlignment(V, rng.integers(-1, 2, 60), sigma=1.2)
    result = klopt.solve(problem, tol=1e-9).require()
    alpha = result.point.alpha
    assert alpha.size == 4200
    assert np.isfinite(alpha).all()
    assert (alpha[:-1] - 1.2 * alpha[1:] >= -1e-15).all()


def test_low_rank_route_never_forms_f():
    rng = np.random.default_rng(8)
    V = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    labels = np.full(300, -1)
    labels[:40] = np.arange(40) % 2
    wide, problem = OrderedAlignment(V, labels), OrderedAlignment(V, labels)
    result = klopt.solve(wide, "nesterov", formulation="ordered cone", tol=1e-7).require()
    assert "F" not in wide.reduced.columns.__dict__
    exact = klopt.solve(problem, "clarabel", formulation="slack QP", tol=1e-6).require()
    assert max(result.lower, exact.lower) <= min(result.upper, exact.upper)


def test_history_is_in_units_of_the_alignment():
    problem = instance(1, ordered=True)
    result = klopt.solve(problem, "nesterov", formulation="ordered cone", tol=1e-8).require()
    assert result.history
    assert all(
        step.lower <= result.upper + 1e-9 and step.upper >= result.lower - 1e-9
        for step in result.history
    )
    assert result.history[-1].upper == pytest.approx(result.value, abs=1e-6)


def test_a_quadratic_in_the_first_prefixes_is_a_part_of_the_whole():
    rng = np.random.default_rng(13)
    kernels = PrefixKernels(RankOneColumns(rng.normal(size=(6, 2000))))
    whole = PrefixQuadratic(kernels, rng.uniform(0.5, 2, 2000), rng.normal(size=2000))
    part = whole.leading()
    assert part.size == 640
    x, some = np.zeros(2000), np.array([3, 77, 600])
    x[some] = 1.0, 0.5, 2.0
    np.testing.assert_allclose(part.matvec(x[:640]), whole.matvec(x)[:640], rtol=1e-12)
    np.testing.assert_allclose(
        part.matvec(x[:640]), whole.matvec(x)[:640], rtol=1e-12
    )  # whichever was asked last
    np.testing.assert_allclose(part.block(some, some), whole.block(some, some), rtol=1e-12)
    assert part.leading() is None


def test_prefix_kernels_are_kept_within_bounds():
    """A store that overflows forgets what is not asked for, and its products stay right."""
    rng = np.random.default_rng(12)
    W = rng.normal(size=(4, 3000))
    store = PrefixStore(W)
    P = lambda k: W[:, : k + 1] @ W[:, : k + 1].T  # noqa: E731
    assert store.capacity == 512
    for _ in range(6):
        ends = np.sort(rng.choice(3000, 200, replace=False))
        inner = store.inner(ends)
        some = rng.choice(200, 5)
        for i, j in zip(some, some[::-1], strict=True):
            assert inner[i, j] == pytest.approx(np.sum(P(ends[i]) * P(ends[j])), rel=1e-11)
        assert len(store.slots) <= store.capacity
    w, T = rng.normal(size=4), store.triangle(ends[:3], np.array([1.0, -2.0, 0.5]))
    assert (np.tril(T, -1) == 0).all()
    K = P(ends[0]) - 2 * P(ends[1]) + 0.5 * P(ends[2])
    assert w @ T @ w == pytest.approx(w @ K @ w, rel=1e-10)


def test_kernel_is_the_weighted_sum_of_eigenvectors():
    problem = instance(1)
    result = klopt.solve(problem).require()
    expected = sum(a * np.outer(v, v) for a, v in zip(result.point.alpha, problem.V.T, strict=True))
    np.testing.assert_allclose(result.kernel, expected, atol=1e-12)
    assert result.point.alpha.sum() == pytest.approx(1)


V3 = np.eye(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[np.nan, 1.0]], [0]), r"V\[0, 0\] is nan"),
        ((V3, [0, 1]), "labels has 2 entries; expected 3"),
        ((V3, [-1, -1, -1]), "none of the 3 points is labelled"),
        ((V3, [0.5, 1, 0]), r"labels\[0\] is 0.5"),
        ((V3, [0, -2, 0]), r"labels\[1\] is -2"),
        ((np.zeros((3, 0)), [0, 1, 0]), "V is 3 x 0"),
        ((V3, [0, 1, 0], 0.9), "sigma is 0.9"),
        ((V3, [0, 1, 0], np.inf), "sigma"),
        ((V3, [0, 1, 0], 1.1, False), "ordered=False"),
        ((V3, [0, 1, 0], 1.0, True, "ones"), "target is 'ones'"),
        ((np.diag([0.0, 0.0, 1.0]), [0, 1, -1]), "V is zero on every labelled point"),
        ((np.eye(3)[0], [0, 1, 0]), "expected a matrix"),
    ],
)
def test_alignment_refuses_data_that_mean_nothing(arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        OrderedAlignment(*arguments)


def test_one_class_is_aligned_with_the_constant():
    rng = np.random.default_rng(9)
    V = np.linalg.qr(np.column_stack([np.ones(6), rng.normal(size=(6, 3))]))[0]
    result = klopt.solve(OrderedAlignment(V, np.zeros(6)), tol=1e-10).require()
    assert result.value == pytest.approx(1.0)
    np.testing.assert_allclose(result.point.alpha, [1, 0, 0, 0], atol=1e-8)


def test_disconnected_graphs_and_duplicate_points_are_aligned():
    X = np.repeat(np.array([[0.0], [0.1], [5.0], [5.1]]), 5, axis=0)
    values, V = np.linalg.eigh(laplacian(knn_graph(X, 4)).toarray())
    assert np.sum(values < 1e-9) > 1
    result = klopt.solve(OrderedAlignment(V[:, :6], np.repeat([0, 0, 1, 1], 5)), tol=1e-9).require()
    assert 0 < result.value <= 1


# graph loss


def ordered_lp(c, sigma):
    rows = sigma * np.eye(c.size, k=1)[:-1] - np.eye(c.size)[:-1]
    return linprog(c, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, c.size)), b_eq=[1.0])


@given(seed=seeds, sigma=st.sampled_from(SIGMAS), skip=st.booleans())
def test_prefix_means_solve_the_ordered_lp(seed, sigma, skip):
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(2, 12)), int(rng.integers(2, 12))
    labels = rng.integers(-1, 3, n)
    labels[0] = 0
    problem = ScgOrdered(rng.normal(size=(n, r)), labels, sigma, skip)
    c = problem.coefficients[int(skip) :]
    result = klopt.solve(problem, tol=1e-12).require()
    assert result.route.backend.name == "explicit"
    assert result.value == pytest.approx(ordered_lp(c, sigma).fun, abs=1e-9)
    mu, nu, z = result.point.mu[int(skip) :], float(result.point.nu), result.point.order
    assert (result.point.mu[: int(skip)] == 0).all()
    e = sigma ** -np.arange(float(c.size))
    y = z / e
    np.testing.assert_allclose(
        c, nu + y - sigma * np.append(0.0, y[:-1]), atol=1e-8 * sigma**c.size
    )
    assert (z >= -1e-12 * np.abs(c).max()).all()
    assert np.abs(z * (mu - sigma * np.append(mu[1:], 0.0))).max() <= 1e-12 * (1 + np.abs(c).max())


@pytest.mark.parametrize("seed", range(4))
def test_every_route_of_the_graph_loss_agrees(seed):
    rng = np.random.default_rng(seed)
    problem = ScgOrdered(
        rng.normal(size=(9, 7)), rng.integers(0, 3, 9), SIGMAS[seed], skip_constant=bool(seed % 2)
    )
    brackets = []
    for form, by in (
        ("explicit", "explicit"),
        ("over the set", "nesterov"),
        ("LP", "highs"),
        ("slack LP", "highs"),
    ):
        result = klopt.solve(problem, by, formulation=form, tol=1e-6).require()
        brackets.append((result.lower, result.upper))
    assert max(low for low, _ in brackets) <= min(high for _, high in brackets)


@pytest.mark.parametrize("sigma", [1.0, 1.2])
def test_a_million_eigenvectors_are_ordered_without_overflow(sigma):
    V = np.random.default_rng(0).normal(size=(3, 10**6))
    problem = ScgOrdered(V, [0, 0, 1], sigma)
    began = time.process_time()
    result = klopt.solve(problem, tol=1e-9).require()
    assert time.process_time() - began < 10.0  # half a second on an idle machine
    weights = sigma ** -np.arange(200.0)
    means = np.cumsum(weights * problem.coefficients[:200]) / np.cumsum(weights)
    assert result.value <= means.min() + 1e-12
    assert np.isfinite(result.point.order).all()


@given(seed=seeds)
def test_energies_of_labels_pairs_and_matrix_are_those_of_the_dense_laplacian(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    labels, V = rng.integers(0, 3, n), rng.normal(size=(n, 4))
    i, j = np.triu_indices(n, 1)
    same = labels[i] == labels[j]
    pairs = tuple(
        list(zip(i[which].tolist(), j[which].tolist(), strict=True)) for which in (same, ~same)
    )
    T = supervised_targets(labels)
    dense = np.einsum("ij,ik,kj->j", V, supervised_laplacian(T), V)
    for side in (labels, pairs, T):
        np.testing.assert_allclose(energies(side_graph(side, n), V), dense, atol=1e-12)
        np.testing.assert_allclose(
            side_graph(side, n).apply(V), supervised_laplacian(T) @ V, atol=1e-12
        )
        np.testing.assert_allclose(ScgOrdered(V, side).coefficients, dense, atol=1e-12)


@pytest.mark.parametrize("sigma", [1.0, 1.3])
def test_one_class_disconnected_graphs_and_duplicate_points_have_a_graph_loss(sigma):
    X = np.repeat(np.array([[0.0], [0.1], [5.0], [5.1]]), 5, axis=0)
    V = np.linalg.eigh(laplacian(knn_graph(X, 4)).toarray())[1][:, :6]
    for side in (np.zeros(20), np.repeat([0, 0, 1, 1], 5)):
        problem = ScgOrdered(V, side, sigma, skip_constant=True)
        result = klopt.solve(problem, tol=1e-9).require()
        assert result.value == pytest.approx(
            ordered_lp(problem.coefficients[1:], sigma).fun, abs=1e-9
        )


def test_points_outside_the_order_are_brought_into_it():
    problem = ScgOrdered(
        np.random.default_rng(3).normal(size=(6, 5)), [0, 0, 1, 1, -1, -1], sigma=1.5
    )
    best = klopt.solve(problem, tol=1e-12).require()
    for mu in (
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [-1.0, 2.0, 0.0, 0.0, 0.0],
        np.zeros(5),
        np.full(5, 0.2 + 1e-12),
    ):
        bracket = problem.bracket(Point({"mu": mu}))
        found = bracket.point.mu
        assert found.sum() == pytest.approx(1)
        assert (found[:-1] - 1.5 * found[1:] >= -1e-12).all()
        assert bracket.lower <= best.value <= bracket.upper
        assert bracket.upper == pytest.approx(problem.coefficients @ found)


def test_some_pairs_leave_the_other_points_unknown():
    T = np.zeros((4, 4))
    T[0, 1] = T[1, 0] = T[0, 0] = T[1, 1] = T[2, 2] = 1.0
    T[1, 2] = T[2, 1] = -1.0
    side = ([(1, 0), (0, 1)], [(1, 2)])
    np.testing.assert_allclose(
        side_graph(side, 4).apply(np.eye(4)), supervised_laplacian(T), atol=1e-14
    )


def test_the_printed_program_picks_the_constant_eigenvector():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 3])
    V = np.linalg.eigh(laplacian(knn_graph(X, 10)).toarray())[1][:, :10]
    labels = np.repeat([0, 1], 20)
    literal, skipping = (
        klopt.solve(ScgOrdered(V, labels, skip_constant=skip)).require() for skip in (False, True)
    )
    assert np.flatnonzero(literal.point.mu).tolist() == [0]
    assert literal.value < 0.05 < skipping.value
    assert skipping.point.mu[0] == 0
    np.testing.assert_allclose(skipping.kernel, (V * skipping.point.mu) @ V.T)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((V3, [0, 1]), "labels has 2 entries"),
        ((V3, [-1, -1, -1]), "none of the 3 points is labelled"),
        ((V3, np.zeros((2, 2))), "T is 2 x 2"),
        ((V3, 2 * np.eye(3)), r"T\[0, 0\] is 2.0"),
        ((V3, np.triu(np.ones((3, 3)))), "T is not symmetric"),
        ((V3, ([(0, 3)], [])), r"similar\[0\] is \(0, 3\)"),
        ((V3, ([], [(1, 1)])), r"dissimilar\[0\] is \(1, 1\)"),
        ((V3, ([(0, 1)], [(1, 0)])), "both similar and dissimilar"),
        ((V3, ([], [])), "both lists of pairs are empty"),
        ((V3, ([(0.5, 1.0)], [])), "expected a list of pairs"),
        ((V3, np.zeros((3, 3, 3))), "3 dimensions"),
        ((V3, [0, 1, 0], 0.5), "sigma is 0.5"),
        ((np.ones((3, 1)), [0, 1, 0], 1.0, True), "nothing is left"),
        ((np.ones((3, 0)), [0, 1, 0]), "V is 3 x 0"),
        (([[np.inf]], [0]), r"V\[0, 0\] is inf"),
    ],
)
def test_graph_loss_refuses_data_that_mean_nothing(arguments, message):
    with pytest.raises(InvalidProblem, match=message):
        ScgOrdered(*arguments)


def test_first_order_form_has_curvature_one():
    problem = instance(1, ordered=True)
    form = next(f for f in problem.formulations() if f.name == "ordered cone").build()
    every = np.arange(form.domain.size)
    assert np.linalg.eigvalsh(form.objective.block(every, every))[-1] == pytest.approx(1.0)
    assert Feature.ORDERED in form.needs


def test_a_general_minimiser_does_not_beat_the_optimum():
    problem = instance(7, ordered=True)
    best = klopt.solve(problem, tol=1e-9).require().value
    e = problem.sigma ** -np.arange(float(problem.V.shape[1]))
    found = minimize(
        lambda s: -alignment(problem, e * rising(s**2)), np.ones(e.size), method="BFGS"
    )
    assert -found.fun <= best + 1e-9
