"""Newton's method: a handful of steps on smooth functions over boxes, planes, simplices and their products."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Settings, Start, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import LocalModel, SmoothFunction, StartModel
from klopt.model.sets import BoxPlane, Product, SimpleSet, Simplex, Spectrahedron
from klopt.numerics.newton_step import BoxProduct, minimise_quadratic
from klopt.solvers.nesterov import BACKEND as nesterov
from klopt.solvers.newton import BACKEND as newton

seeds = st.integers(0, 2**32 - 1)


def log_sum_exp(seed: int, n: int, share: float = 1.0) -> SmoothFunction:
    """log sum exp(Ax + b) + |x|^2 / 20: smooth, convex, far from quadratic. `share` scales the model of curvature."""
    rng = np.random.default_rng(seed)
    A, b = 3 * rng.normal(size=(2 * n, n)), rng.normal(size=2 * n)

    def near(x: np.ndarray) -> LocalModel:
        z = A @ x + b
        w = np.exp(z - z.max())
        value = float(np.log(w.sum()) + z.max() + x @ x / 20)
        w /= w.sum()
        gradient = A.T @ w

        def curvature() -> np.ndarray:
            return share * ((A.T * w) @ A - np.outer(gradient, gradient) + np.eye(n) / 10)

        return LocalModel(value, gradient + x / 10, curvature, below=lambda: np.eye(n) / 10)

    return SmoothFunction(n, near)


def quadratic_as_curved(H: np.ndarray, c: np.ndarray) -> SmoothFunction:
    return SmoothFunction(
        c.size, lambda x: LocalModel(float(x @ H @ x / 2 + c @ x), H @ x + c, lambda: H)
    )


def box(rng: np.random.Generator, n: int, plane: bool = True) -> BoxPlane:
    lower = rng.choice([0.0, -1.0], size=n)
    upper = lower + rng.choice([0.0, 0.5, 2.0], size=n, p=[0.1, 0.5, 0.4])
    normal = rng.choice([-1.0, 1.0], size=n) if plane else None
    offset = 0.0 if normal is None else float(normal @ (lower + (upper - lower) * rng.random(n)))
    return BoxPlane(lower, upper, normal, offset)


def some_set(seed: int) -> SimpleSet:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    few = (Simplex(int(rng.integers(1, 4)), 0.7), box(rng, 2), BoxPlane([0.0, -1.0], [0.3, 2.0]))
    return [
        Simplex(n, 2.0),
        box(rng, n),
        box(rng, n, plane=False),
        Product((few[0], box(rng, n), *few[1:])),
    ][seed % 4]


def proven(form: SimplexForm, answer: Answer) -> tuple[float, float]:
    assert answer.x is not None
    measured = form.measure(answer.x, answer.y)
    return measured.dual_value, measured.value


# --- optima


@given(seeds)
def test_the_quadratic_below_bounds_the_optimum_from_any_two_points(seed: int) -> None:
    domain, rng = some_set(seed), np.random.default_rng(seed)
    form = SimplexForm(log_sum_exp(seed, domain.size), domain)
    best = newton.run(form, Settings(tol=1e-10))
    assert best.x is not None
    value = form.objective.value(best.x)
    x, z = (domain.project(rng.normal(size=domain.size)) for _ in range(2))
    assert form.bound_below(x, z) <= value + 1e-12 * (1 + abs(value))
    assert form.bound_below(best.x, best.x) == pytest.approx(form.lower_bound(best.x))
    z = minimise_quadratic(
        BoxProduct(domain),
        np.eye(x.size) / 10,
        form.objective.gradient(x) - x / 10,
        x,
        1e-12,
        np.inf,
    )
    assert form.bound_below(x, z) >= form.lower_bound(x) - 1e-9
    assert form.measure(x, z).dual_value == pytest.approx(form.bound_below(x, z))
    assert form.bound_below(x, None) == form.bound_below(x, z[1:]) == -np.inf


def test_near_the_end_that_bound_is_proof_and_saves_a_step() -> None:
    domain = BoxPlane(np.full(8, -3.0), np.full(8, 3.0), np.ones(8))
    f = log_sum_exp(1, 8)
    blind = SmoothFunction(8, lambda x: evolve(f.near(x), below=None))
    with_it, without = (newton.run(SimplexForm(g, domain), Settings(tol=1e-6)) for g in (f, blind))
    assert with_it.stop is without.stop is Stop.OPTIMAL
    assert with_it.iterations < without.iterations
    assert SimplexForm(f, domain).measure(with_it.x, with_it.y).worst <= 5e-7


@given(seeds)
def test_newton_and_accelerated_gradient_prove_the_same_optimum(seed: int) -> None:
    domain = some_set(seed)
    form = SimplexForm(log_sum_exp(seed, domain.size), domain)
    answer, slow = newton.run(form, Settings(tol=1e-9)), nesterov.run(form, Settings(tol=1e-6))
    assert answer.stop is Stop.OPTIMAL, answer.native
    assert answer.x is not None
    assert slow.x is not None
    assert domain.violation(answer.x) <= 1e-12
    (low, high), (low2, high2) = proven(form, answer), proven(form, slow)
    assert high - low <= 1e-9 * (1 + abs(high))
    assert max(low, low2) <= min(high, high2) + 1e-13 * (1 + abs(high))


@given(seeds)
def test_a_quadratic_over_a_product_takes_one_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Product((Simplex(3), box(rng, 8), BoxPlane(np.zeros(2), np.full(2, 0.4))))
    B = rng.normal(size=(15, domain.size))
    form = SimplexForm(quadratic_as_curved(B.T @ B / 10, 3 * rng.normal(size=domain.size)), domain)
    answer = newton.run(form, Settings(tol=1e-10))
    assert answer.stop is Stop.OPTIMAL, answer.native
    assert answer.iterations is not None
    assert (
        answer.iterations <= 2
    )  # one, and one more where the first was made with a loose quadratic program


@given(seeds, st.sampled_from([1e-6, 1.0, 1e6]))
def test_the_step_of_a_product_leaves_no_gradient(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    domain = Product((box(rng, 10), Simplex(3), Simplex(2, 5.0)))
    B = rng.normal(size=(int(rng.integers(1, 20)), domain.size))
    H, c = scale * B.T @ B, scale * rng.normal(size=domain.size)
    z = minimise_quadratic(BoxProduct(domain), H, c, None, 1e-13, np.inf)
    assert domain.violation(z) <= 1e-12
    g = H @ z + c
    gap = float(g @ z) - domain.linear_minimum(g)
    assert gap <= 1e-8 * scale * (1 + float(np.abs(B.T @ B).max()))


# --- how fast, how robust


def test_the_error_is_squared_on_the_right_face() -> None:
    rng = np.random.default_rng(3)
    form = SimplexForm(
        log_sum_exp(3, 30), BoxPlane(np.zeros(30), np.ones(30), rng.choice([-1.0, 1.0], 30))
    )
    answer = newton.run(form, Settings(tol=1e-12))
    assert answer.stop is Stop.OPTIMAL
    assert answer.iterations is not None
    assert answer.iterations <= 12
    best = answer.history[-1].lower
    errors = [step.upper - best for step in answer.history]
    assert errors[-2] <= 100 * errors[-3] ** 1.5


@pytest.mark.parametrize("share", [1e-3, 0.1, 10.0, 30.0])
def test_a_wrong_model_of_curvature_costs_steps_and_nothing_else(share: float) -> None:
    form = SimplexForm(log_sum_exp(5, 8, share), BoxPlane(np.zeros(8), np.ones(8)))
    exact = newton.run(SimplexForm(log_sum_exp(5, 8), form.domain), Settings(tol=1e-8))
    answer = newton.run(form, Settings(tol=1e-6))
    assert answer.stop is Stop.OPTIMAL
    assert abs(answer.history[-1].upper - exact.history[-1].upper) <= 1e-6
    assert (answer.iterations or 0) >= (exact.iterations or 0)


def test_no_curvature_at_all_still_finds_a_vertex() -> None:
    c = np.array([1.0, -2.0, 0.5])
    form = SimplexForm(
        SmoothFunction(3, lambda x: LocalModel(float(c @ x), c, lambda: np.zeros((3, 3)))),
        Simplex(3),
    )
    answer = newton.run(form, Settings())
    assert answer.stop is Stop.OPTIMAL
    np.testing.assert_allclose(answer.x, [0.0, 1.0, 0.0], atol=1e-12)


def test_a_kink_ends_in_time() -> None:
    # |x_1 - x_2| and a gradient that is less steep: the minimum is at the kink, where no gradient
    # vanishes.
    def kink(x: np.ndarray) -> LocalModel:
        side = 1.0 if x[0] >= x[1] else -1.0
        gradient = np.array([side + 0.3, -side])
        return LocalModel(float(abs(x[0] - x[1]) + 0.3 * x[0]), gradient, lambda: np.eye(2))

    start = Start(np.array([0.9, 0.1]))
    form = SimplexForm(SmoothFunction(2, kink), BoxPlane(np.full(2, -1.0), np.array([1.0, 0.3])))
    answer = newton.run(form, Settings(max_iter=10_000), start)
    assert answer.stop is Stop.STALLED
    assert (answer.iterations or 0) < 1000


def test_a_function_that_ends_inside_the_set_is_minimised() -> None:
    # -log x_1 - log x_2 on the simplex: infinite at the vertices the first steps aim at.
    def barrier(x: np.ndarray) -> LocalModel:
        with np.errstate(all="ignore"):
            return LocalModel(float(-np.log(x).sum()), -1 / x, lambda: np.diag(1 / x**2))

    start = Start(np.array([1e-6, 1 - 1e-6]))
    answer = newton.run(
        SimplexForm(SmoothFunction(2, barrier), Simplex(2)), Settings(tol=1e-10), start
    )
    assert answer.stop is Stop.OPTIMAL
    np.testing.assert_allclose(answer.x, [0.5, 0.5], atol=1e-5)


def test_a_start_at_the_optimum_is_the_answer() -> None:
    form = SimplexForm(log_sum_exp(7, 12), Simplex(12))
    first = newton.run(form, Settings(tol=1e-10))
    assert first.x is not None
    again = newton.run(form, Settings(tol=1e-9), Start(first.x))
    assert (again.stop, again.iterations) == (Stop.OPTIMAL, 0)


def test_the_start_model_is_where_it_starts() -> None:
    def near(x: np.ndarray) -> LocalModel:
        return log_sum_exp(1, 6).near(x)

    form = SimplexForm(
        SmoothFunction(6, near, lambda: StartModel(np.eye(6), -np.arange(6.0))), Simplex(6, 3.0)
    )
    answer = newton.run(form, Settings(max_iter=1))
    assert answer.history[0].upper == pytest.approx(
        near(Simplex(6, 3.0).project(np.arange(6.0))).value, rel=1e-9
    )


def test_the_function_may_know_a_better_bound_than_its_tangent() -> None:
    def near(x: np.ndarray) -> LocalModel:
        return LocalModel(float(x @ x), 2 * x, lambda: 2 * np.eye(2), lower=0.0)

    answer = newton.run(
        SimplexForm(SmoothFunction(2, near), BoxPlane(np.full(2, -np.inf), np.full(2, np.inf))),
        Settings(),
    )
    assert answer.stop is Stop.OPTIMAL
    assert answer.history[-1].lower == 0.0


def test_weights_and_machine_together_reach_what_the_weights_in_closed_form_reach() -> None:
    # sum_i a'K_i a / gamma_i over gamma in the simplex is minimal where gamma_i is like (a'K_i
    # a)^1/2; jointly convex.
    rng = np.random.default_rng(0)
    n, m, y = 20, 3, np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    K = [B @ B.T / n + 0.1 * i * np.eye(n) for i, B in enumerate(rng.normal(size=(m, n, n)))]
    box = BoxPlane(np.minimum(y, 0.0), np.maximum(y, 0.0), np.ones(n))

    def together(x: np.ndarray) -> LocalModel:
        a, gamma = x[:n], x[n:]
        with np.errstate(all="ignore"):
            u = np.array([k @ a for k in K])
            q = u @ a
            gradient = np.concatenate([(u / gamma[:, None]).sum(axis=0) - y, -q / gamma**2 / 2])
            value = float((q / gamma).sum() / 2 - y @ a)

        def curvature() -> np.ndarray:
            cross = -u.T / gamma**2
            return np.block(
                [
                    [sum(k / g for k, g in zip(K, gamma, strict=True)), cross],
                    [cross.T, np.diag(q / gamma**3)],
                ]
            )

        return LocalModel(value, gradient, curvature)

    form = SimplexForm(SmoothFunction(n + m, together), Product((box, Simplex(m))))
    answer = newton.run(form, Settings(tol=1e-9))
    assert answer.stop is Stop.OPTIMAL
    assert answer.x is not None
    assert (answer.iterations or 0) <= 15
    a = answer.x[:n]
    root = np.sqrt([a @ k @ a for k in K])
    np.testing.assert_allclose(answer.x[n:], root / root.sum(), rtol=1e-4)
    assert form.objective.value(answer.x) == pytest.approx(root.sum() ** 2 / 2 - y @ a, rel=1e-8)


# --- claims that hold


def test_a_wrong_gradient_is_found_out() -> None:
    def liar(x: np.ndarray) -> LocalModel:
        return LocalModel(float(x @ x), -2 * x - 1, lambda: np.eye(3))

    answer = newton.run(
        SimplexForm(SmoothFunction(3, liar), BoxPlane(np.zeros(3), np.ones(3))),
        Settings(max_iter=50),
    )
    assert answer.stop in (Stop.NUMERICAL, Stop.STALLED)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_without_numbers_is_no_crash(value: float) -> None:
    form = SimplexForm(
        SmoothFunction(2, lambda x: LocalModel(value, x * value, lambda: np.eye(2))), Simplex(2)
    )
    assert newton.run(form, Settings(max_iter=5)).stop is Stop.NUMERICAL


def test_limits_keep_the_best_point() -> None:
    form = SimplexForm(log_sum_exp(2, 20), Simplex(20))
    answer = newton.run(form, Settings(tol=1e-12, max_iter=1))
    assert (answer.stop, answer.iterations) == (Stop.ITERATION_LIMIT, 1)
    assert answer.x is not None
    assert form.domain.violation(answer.x) <= 1e-12
    assert newton.run(form, Settings(tol=1e-12, time_limit=1e-9)).stop is Stop.TIME_LIMIT


def test_other_sets_and_unknown_options_are_refused() -> None:
    form = SimplexForm(
        SmoothFunction(3, lambda x: LocalModel(0.0, x, lambda: np.eye(3))), Spectrahedron(2)
    )
    assert newton.run(form, Settings()).stop is Stop.REJECTED
    with pytest.raises(InvalidSettings, match="newton has no option 'damping'"):
        newton.run(form, Settings(raw={"damping": 1.0}))


# --- the oracle


def test_one_point_costs_one_evaluation() -> None:
    calls = []

    def near(x: np.ndarray) -> LocalModel:
        calls.append(x)
        return LocalModel(float(x @ x), 2 * x, lambda: 2 * np.eye(2))

    f, x = SmoothFunction(2, near), np.ones(2)
    assert (f.value(x), f.gradient(x).sum(), f.near(x).curvature().sum()) == (2.0, 4.0, 4.0)
    assert len(calls) == 1
    x[0] = 3.0  # the same array, another point
    assert f.value(x) == 10.0


def test_an_evaluated_function_travels() -> None:
    f = SmoothFunction(2, travelling)
    f.value(np.ones(2))
    assert pickle.loads(pickle.dumps(f)).value(np.ones(2)) == 2.0


def travelling(x: np.ndarray) -> LocalModel:
    return LocalModel(float(x @ x), 2 * x, lambda: 2 * np.eye(2))


@given(seeds)
def test_the_terms_of_a_plane_fill_up_to_the_least_gradient_over_the_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = box(rng, int(rng.integers(2, 9)))
    g = rng.normal(size=domain.size) * rng.choice([0.0, 1.0], size=domain.size)
    minimum = float(g @ domain.linear_minimiser(g))
    assert domain.linear_minimum(g) == pytest.approx(minimum, rel=1e-12, abs=1e-12)
