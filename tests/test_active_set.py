"""The active-set method: exact on every kind of quadratic over a box cut by a plane, from any start."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import nnls

from klopt.errors import InvalidSettings
from klopt.model.backend import Settings, Stop
from klopt.model.forms import SimplexForm, Start
from klopt.model.functions import KernelQuadratic, Quadratic
from klopt.model.sets import BoxPlane, Product, Simplex
from klopt.numerics.box_qp.active_set import solve_box_qp, solve_on_face
from klopt.numerics.box_qp.interior_point import interior_point
from klopt.numerics.box_qp.program import Box, BoxQP, SignedGram
from klopt.solvers.active_set import BACKEND

seeds = st.integers(0, 2**32 - 1)


def quadratic(rng: np.random.Generator, n: int, rank: int) -> np.ndarray:
    factor = rng.normal(size=(rank, n))
    return factor.T @ factor


def random_program(seed: int, rank_share: float = 1.0) -> BoxQP:
    """A bounded program with fixed variables, infinite bounds where H is definite, planes of all kinds or none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    H = quadratic(rng, n, max(1, round(rank_share * (n + 2))))
    lower = rng.choice([0.0, -1.0, 2.0], size=n)
    upper = lower + rng.choice([0.0, 0.1, 1.0, 10.0], size=n, p=[0.1, 0.3, 0.3, 0.3])
    if rank_share >= 1:
        upper[rng.random(n) < 0.2] = np.inf
    normal = [None, np.ones(n), rng.choice([-1.0, 1.0], size=n), rng.normal(size=n)][
        int(rng.integers(4))
    ]
    inside = lower + np.minimum(upper - lower, 1.0) * rng.random(n)
    offset = 0.0 if normal is None else float(normal @ inside)
    return BoxQP(SignedGram(H), rng.normal(size=n), Box(lower, upper, normal, offset))


def reference(qp: BoxQP) -> float:
    """The optimum by Clarabel."""
    n, eye = qp.c.size, np.eye(qp.c.size)
    H = np.array([qp.H.matvec(row) for row in eye])
    low, high = np.isfinite(qp.box.lower), np.isfinite(qp.box.upper)
    plane = np.zeros((0, n)) if qp.box.normal is None else qp.box.normal[None, :]
    A = sparse.csc_matrix(np.vstack([plane, -eye[low], eye[high]]))
    b = np.concatenate([[qp.box.offset][: len(plane)], -qp.box.lower[low], qp.box.upper[high]])
    cones = [clarabel.ZeroConeT(len(plane)), clarabel.NonnegativeConeT(len(b) - len(plane))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    return (
        clarabel.DefaultSolver(sparse.csc_matrix(np.triu(H)), qp.c, A, b, cones, settings)
        .solve()
        .obj_val
    )


def svm_dual(n: int, C: float, kind: str = "rbf", seed: int = 0) -> BoxQP:
    """An SVM dual: "rbf" is well conditioned, "smooth" and "linear" are numerically singular, "twins" exactly."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, 2 if kind == "smooth" else 10)) + y[:, None] / 3
    if kind == "twins":
        X, y = X[np.arange(n) // 2], y[np.arange(n) // 2]
    squares = np.square(X[:, None] - X).sum(axis=2)
    K = X @ X.T if kind == "linear" else np.exp(-squares / X.shape[1])
    return BoxQP(SignedGram(K, y), np.full(n, -1.0), Box(np.zeros(n), np.full(n, C), y))


def assert_optimal(qp: BoxQP, x: np.ndarray, nu: float, tol: float = 1e-10) -> None:
    """Feasible to the last digit, and no gradient left along which a variable could move."""
    assert (x >= qp.box.lower).all()
    assert (x <= qp.box.upper).all()
    assert qp.box.on_plane(x)
    assert qp.optimality_gap(x, qp.H.matvec(x) + qp.c, nu).error <= tol


@given(seeds, st.sampled_from([1.0, 0.5, 0.1]))
def test_value_is_that_of_an_interior_point_solver(seed: int, rank_share: float) -> None:
    qp = random_program(seed, rank_share)
    solved = solve_box_qp(qp)
    assert solved.stop is Stop.OPTIMAL
    assert_optimal(qp, solved.x, solved.nu)
    assert solved.value == pytest.approx(reference(qp), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("kind", ["rbf", "smooth", "linear", "twins"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4, 1e6])
def test_support_vector_machines_of_every_rank_and_penalty(kind: str, C: float) -> None:
    qp = svm_dual(160, C, kind)
    solved = solve_box_qp(qp)
    assert solved.stop is Stop.OPTIMAL
    assert_optimal(qp, solved.x, solved.nu)
    # The gap sums rounding of size eps over a box of size C.
    assert solved.relative <= 1e-12 * max(1.0, C)


@given(seeds)
def test_gap_bounds_the_distance_to_the_optimum(seed: int) -> None:
    qp = random_program(seed, rank_share=0.5)
    best = solve_box_qp(qp).value
    rng = np.random.default_rng(seed + 1)
    x, _ = qp.box.project(rng.normal(size=qp.c.size))
    g = qp.H.matvec(x) + qp.c
    value = x @ (g + qp.c) / 2
    gap = qp.optimality_gap(x, g, float(rng.normal())).gap
    assert value - gap <= best + 1e-9 * (1 + abs(best))


@given(seeds, st.sampled_from([1.0, 1e6, 1e14]))
def test_projection_is_that_of_the_set(seed: int, size: float) -> None:
    qp = random_program(seed)
    v = size * np.random.default_rng(seed + 1).normal(size=qp.c.size)
    x, tau = qp.box.project(v)
    assert qp.box.on_plane(x)
    nearest = BoxPlane(qp.box.lower, qp.box.upper, qp.box.normal, qp.box.offset).project(v)
    assert x == pytest.approx(
        nearest, rel=1e-9, abs=1e-9 * np.abs(nearest).max() + 16 * np.finfo(float).eps * size
    )
    assert np.isfinite(tau)


@given(seeds)
def test_orthant_solves_nonnegative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 30)), int(rng.integers(1, 12))
    M, target = rng.normal(size=(m, n)), rng.normal(size=m)
    form = SimplexForm(Quadratic(M.T @ M, -M.T @ target), BoxPlane(np.zeros(n), np.full(n, np.inf)))
    answer = BACKEND.run(form, Settings())
    assert answer.stop is Stop.OPTIMAL
    expected, norm = nnls(M, target)
    assert np.square(M @ answer.x - target).sum() == pytest.approx(norm**2, rel=1e-10, abs=1e-11)
    if m >= n:
        assert answer.x == pytest.approx(expected, abs=1e-8)


@given(seeds)
def test_simplex_projection_is_a_quadratic_over_a_simplex(seed: int) -> None:
    v = np.random.default_rng(seed).normal(size=8)
    domain = Simplex(8, total=2.0)
    answer = BACKEND.run(SimplexForm(Quadratic(np.eye(8), -v), domain), Settings())
    assert answer.x == pytest.approx(domain.project(v), abs=1e-12)


@given(seeds, st.sampled_from([0.0, 0.1]))
def test_regression_with_two_variables_a_point(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    n, C = 20, 2.0
    X, target = rng.normal(size=(n, 1)), rng.normal(size=n)
    K = np.exp(-np.square(X - X.T))
    sign, point = np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)
    objective = KernelQuadratic(K, sign, epsilon - sign * np.tile(target, 2), point)
    form = SimplexForm(objective, BoxPlane(np.zeros(2 * n), np.full(2 * n, C), sign))
    answer = BACKEND.run(form, Settings())
    qp = BoxQP(
        SignedGram(K, sign, point), objective.linear, Box(np.zeros(2 * n), np.full(2 * n, C), sign)
    )
    assert objective.value(answer.x) == pytest.approx(reference(qp), rel=1e-7, abs=1e-8)
    assert form.measure(answer.x).gap <= 1e-10
    if epsilon:
        assert not (np.minimum(answer.x[:n], answer.x[n:]) > 1e-12).any(), (
            "both halves of a pair are used"
        )


@given(seeds)
def test_no_curvature_is_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    domain = BoxPlane(np.zeros(n), rng.uniform(0.5, 2.0, n), rng.choice([-1.0, 1.0], n), 0.0)
    c = rng.normal(size=n)
    answer = BACKEND.run(SimplexForm(Quadratic(np.zeros((n, n)), c), domain), Settings())
    assert answer.stop is Stop.OPTIMAL
    assert c @ answer.x == pytest.approx(domain.linear_minimum(c), abs=1e-9)


def test_fixed_variables_stay() -> None:
    qp = BoxQP(
        SignedGram(np.eye(3)),
        np.full(3, -5.0),
        Box(np.array([0.0, 0.3, 0.0]), np.array([1.0, 0.3, 9.0])),
    )
    assert solve_box_qp(qp).x == pytest.approx([1.0, 0.3, 5.0])


def test_one_point_sets() -> None:
    everything_fixed = BoxQP(
        SignedGram(np.eye(2)), np.ones(2), Box(np.ones(2), np.ones(2), np.array([1.0, -1.0]))
    )
    assert solve_box_qp(everything_fixed).x == pytest.approx([1.0, 1.0])
    only_zero = BoxQP(
        SignedGram(np.eye(2)), np.full(2, -1.0), Box(np.zeros(2), np.ones(2), np.ones(2))
    )
    assert solve_box_qp(only_zero).x == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_start_at_a_neighbouring_optimum_saves_work(C: float) -> None:
    qp = svm_dual(300, C)
    before = solve_box_qp(qp)
    changed = BoxQP(SignedGram(qp.H.K**1.02, qp.H.sign), qp.c, qp.box)
    cold, warm = solve_box_qp(changed), solve_box_qp(changed, start=before.x)
    assert warm.stop is Stop.OPTIMAL
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    assert warm.iterations < cold.iterations
    assert solve_box_qp(qp, start=before.x).iterations <= 2


@pytest.mark.parametrize("start", [0.0, 1.0, 1e9])
def test_a_bad_start_costs_time_only(start: float) -> None:
    qp = svm_dual(80, 10.0, "smooth")
    point = start * np.random.default_rng(0).normal(size=80)
    assert solve_box_qp(qp, start=point).value == pytest.approx(solve_box_qp(qp).value, rel=1e-11)


def test_a_small_working_set_is_enough_from_a_start_where_no_face_is_kept() -> None:
    qp = svm_dual(400, 10.0, "smooth")
    before = solve_box_qp(qp)
    changed = BoxQP(SignedGram(qp.H.K**1.02, qp.H.sign), qp.c, qp.box)
    form = SimplexForm(
        KernelQuadratic(changed.H.K, qp.H.sign, qp.c),
        BoxPlane(qp.box.lower, qp.box.upper, qp.box.normal),
    )
    warm = BACKEND.run(form, Settings(), Start(before.x))
    assert warm.native == "the working set is final"
    assert form.objective.value(warm.x) == pytest.approx(solve_box_qp(changed).value, rel=1e-12)


@pytest.mark.parametrize("kind", ["rbf", "smooth", "linear"])
def test_interior_points_reach_the_same_optimum(kind: str) -> None:
    """ "rbf" has full rank, the others take the way through a low-rank factor."""
    qp = svm_dual(200, 10.0, kind)
    inner = interior_point(qp, 1e-11, lambda: True)
    assert inner.error <= 1e-11
    x, _ = qp.box.project(inner.x)
    value = x @ (qp.H.matvec(x) + 2 * qp.c) / 2
    assert value == pytest.approx(solve_box_qp(qp).value, rel=1e-9)


def test_a_rough_point_becomes_the_minimiser_on_its_face() -> None:
    qp = svm_dual(200, 10.0)
    exact = solve_box_qp(qp)
    rough = exact.x * (1 + 1e-5 * np.random.default_rng(0).normal(size=200))
    assert solve_on_face(qp, rough, 1e-6).relative <= 1e-12
    assert solve_on_face(qp, exact.x, 1e-6).iterations == 0, "nothing to do"


def test_an_unbounded_program_is_not_called_optimal() -> None:
    H = np.diag([1.0, 0.0])
    qp = BoxQP(SignedGram(H), np.array([1.0, -1.0]), Box(np.zeros(2), np.full(2, np.inf)))
    assert solve_box_qp(qp).stop is not Stop.OPTIMAL


@pytest.mark.parametrize("kind", ["rbf", "smooth"])
def test_two_runs_give_the_same_bits(kind: str) -> None:
    first, second = (solve_box_qp(svm_dual(120, 10.0, kind)) for _ in range(2))
    assert first.x.tobytes() == second.x.tobytes()


def test_limits_end_a_run_with_a_feasible_point() -> None:
    qp = svm_dual(200, 100.0, "smooth")
    form = SimplexForm(
        KernelQuadratic(qp.H.K, qp.H.sign, qp.c),
        BoxPlane(qp.box.lower, qp.box.upper, qp.box.normal),
    )
    for settings, stop in (
        (Settings(max_iter=2), Stop.ITERATION_LIMIT),
        (Settings(time_limit=1e-9), Stop.TIME_LIMIT),
    ):
        answer = BACKEND.run(form, settings)
        assert answer.stop is stop
        assert form.domain.violation(answer.x) <= 1e-12


def test_settings_and_sets_it_cannot_use() -> None:
    form = SimplexForm(Quadratic(np.eye(2), np.zeros(2)), Product((Simplex(1), Simplex(1))))
    assert BACKEND.run(form, Settings()).stop is Stop.REJECTED
    box = SimplexForm(Quadratic(np.eye(2), np.zeros(2)), BoxPlane(np.zeros(2), np.ones(2)))
    with pytest.raises(InvalidSettings, match="finite"):
        BACKEND.run(box, Settings(), Start(np.array([0.5, np.nan])))
    with pytest.raises(InvalidSettings, match="has no option"):
        BACKEND.run(box, Settings(raw={"fast": True}))


@given(seeds, st.sampled_from([1e-10, 1e10]))
def test_units_do_not_matter(seed: int, unit: float) -> None:
    """x = unit u turns (H, c, bounds) into (H / unit, c, bounds unit) with unit times the value."""
    qp = random_program(seed)
    other = BoxQP(
        SignedGram(qp.H.K / unit),
        qp.c,
        Box(qp.box.lower * unit, qp.box.upper * unit, qp.box.normal, qp.box.offset * unit),
    )
    assert solve_box_qp(other).value / unit == pytest.approx(
        solve_box_qp(qp).value, rel=1e-8, abs=1e-8
    )
