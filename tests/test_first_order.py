"""What klopt's own methods promise: bounds that hold, limits that are kept, optima that are known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import smat, svec
from klopt.model.forms import ExplicitForm, SaddleForm, SimplexForm
from klopt.model.functions import Bilinear, KernelQuadratic, Linear, Oracle, Quadratic, SaddleOracle
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, SimpleSet, Simplex, Spectrahedron
from klopt.solvers._first_order.loop import Candidate, iterate
from klopt.solvers.explicit import BACKEND as explicit
from klopt.solvers.mirror_descent import BACKEND as mirror_descent
from klopt.solvers.mirror_prox import BACKEND as mirror_prox
from klopt.solvers.nesterov import BACKEND as nesterov

SETTINGS = Settings(tol=1e-6, max_iter=20_000)
DESCENT = [mirror_descent, nesterov]
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def convex_quadratic(seed: int, n: int) -> Quadratic:
    B = rng(seed).normal(size=(n, n))
    return Quadratic(B @ B.T / n + 0.01 * np.eye(n), rng(seed + 1).normal(size=n))


def soft_margin(seed: int, n: int, C: float) -> SimplexForm:
    X = rng(seed).normal(size=(n, 3))
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    return SimplexForm(KernelQuadratic(K, y, -np.ones(n)), BoxPlane(np.zeros(n), np.full(n, C), y))


def random_game(seed: int, rows: int, columns: int) -> SaddleForm:
    return SaddleForm(
        Bilinear(rng(seed).normal(size=(rows, columns))), Simplex(rows), Simplex(columns)
    )


def optimal_in(answer: Answer, form: SimplexForm) -> tuple[float, float]:
    """The interval that the answer's point proves by itself, checked to be as narrow as was asked for."""
    assert answer.stop is Stop.OPTIMAL, answer.native
    assert answer.x is not None
    assert form.domain.violation(answer.x) < 1e-9
    value = form.objective.value(answer.x)
    lower = form.lower_bound(answer.x)
    assert value - lower <= 1e-6 * (1 + abs(value))
    return lower, value


# --- known optima


@pytest.mark.parametrize("backend", DESCENT)
def test_least_squares_over_the_simplex_has_weights_inverse_to_the_diagonal(
    backend: Backend,
) -> None:
    d = np.array([1.0, 2.0, 4.0])
    form = SimplexForm(Quadratic(np.diag(d), np.zeros(3)), Simplex(3))
    answer = backend.run(form, SETTINGS)
    lower, upper = optimal_in(answer, form)
    exact = 0.5 / (1 / d).sum()
    assert lower - 1e-12 <= exact <= upper + 1e-12
    np.testing.assert_allclose(answer.x, (1 / d) / (1 / d).sum(), atol=2e-3)


@pytest.mark.parametrize("backend", [explicit, mirror_descent, nesterov])
@given(seed=seeds, order=st.integers(1, 6), total=st.sampled_from([1.0, 0.01, 30.0]))
def test_least_linear_value_over_the_spectrahedron_is_the_smallest_eigenvalue(
    backend: Backend, seed: int, order: int, total: float
) -> None:
    S = rng(seed).normal(size=(order, order))
    form = SimplexForm(Linear(svec(S + S.T)), Spectrahedron(order, total))
    lower, upper = optimal_in(backend.run(form, SETTINGS), form)
    exact = total * np.linalg.eigvalsh(S + S.T)[0]
    slack = 1e-12 * (1 + abs(exact))
    assert lower - slack <= exact <= upper + slack


def test_nearest_point_is_what_nesterov_finds_in_every_set() -> None:
    sets = [
        Simplex(4, 2.0),
        OrderedSimplex(4, 1.5),
        BoxPlane(-np.ones(4), np.ones(4), np.arange(4.0), 1.0),
    ]
    sets += [Product((Simplex(2), BoxPlane([0.0, 0.0], [1.0, 2.0])))]
    target = np.array([1.0, -2.0, 0.5, 0.3])
    for domain in sets:
        form = SimplexForm(Quadratic(np.eye(4), -target), domain)
        answer = nesterov.run(form, Settings(tol=1e-12))
        assert answer.stop is Stop.OPTIMAL
        np.testing.assert_allclose(answer.x, domain.project(target), atol=1e-6)


@pytest.mark.parametrize("geometry", ["euclidean", "entropy"])
def test_rock_paper_scissors_is_fair(geometry: str) -> None:
    M = np.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 3.0], [2.0, -3.0, 0.0]])
    answer = mirror_prox.run(
        SaddleForm(Bilinear(M), Simplex(3), Simplex(3)), Settings(raw={"geometry": geometry})
    )
    assert answer.stop is Stop.OPTIMAL
    np.testing.assert_allclose(answer.x, np.array([3.0, 2.0, 1.0]) / 6, atol=1e-4)
    np.testing.assert_allclose(answer.y, np.array([3.0, 2.0, 1.0]) / 6, atol=1e-4)


@given(a=st.floats(1, 9), b=st.floats(1, 9), c=st.floats(1, 9), d=st.floats(1, 9))
def test_value_of_a_two_by_two_game_without_saddle_entry(
    a: float, b: float, c: float, d: float
) -> None:
    # [[a, -b], [-c, d]]: no saddle entry, so the value is the determinant over the alternating sum.
    form = SaddleForm(Bilinear([[a, -b], [-c, d]]), Simplex(2), Simplex(2))
    answer = mirror_prox.run(form, SETTINGS)
    assert answer.stop is Stop.OPTIMAL
    assert answer.x is not None
    assert answer.y is not None
    lower, upper = form.bounds(answer.x, answer.y)
    value = (a * d - b * c) / (a + b + c + d)
    assert lower - 1e-12 <= value <= upper + 1e-12
    assert upper - lower <= 1e-6 * (1 + abs(upper))


@pytest.mark.slow
def test_games_of_fifty_strategies_are_solved_to_six_digits() -> None:
    for seed in range(3):
        form = random_game(seed, 50, 50)
        answer = mirror_prox.run(form, Settings(tol=1e-6, max_iter=10_000))
        assert answer.stop is Stop.OPTIMAL


def test_players_on_sets_of_every_kind() -> None:
    n = 6
    box = BoxPlane(np.zeros(n), np.full(n, 3.0), np.where(np.arange(n) % 2, 1.0, -1.0))
    pairs = [
        (Simplex(n, 100.0), Simplex(n, 0.01)),
        (OrderedSimplex(n, 1.2), box),
        (Spectrahedron(3), Simplex(n)),
    ]
    for left, right in pairs:
        form = SaddleForm(Bilinear(rng(3).normal(size=(n, n)), rng(4).normal(size=n)), left, right)
        answer = mirror_prox.run(form, SETTINGS)
        assert answer.stop is Stop.OPTIMAL
        assert answer.x is not None
        assert form.measure(answer.x, answer.y).worst <= 1e-6


def test_strongly_convex_concave_oracle() -> None:
    A, c = rng(0).normal(size=(5, 7)), rng(1).normal(size=5)
    phi = SaddleOracle(
        lambda x, y: float(x @ x / 2 + x @ A @ y - y @ y / 2 + c @ x),
        lambda x, y: x + A @ y + c,
        lambda x, y: x @ A - y,
    )
    form = SaddleForm(phi, Simplex(5), Simplex(7))
    answer = mirror_prox.run(form, SETTINGS)
    assert answer.stop is Stop.OPTIMAL
    assert answer.x is not None
    assert form.measure(answer.x, answer.y).worst <= 1e-6


def test_closed_form_is_its_rule() -> None:
    answer = explicit.run(ExplicitForm(lambda: (np.array([2.0]), np.array([3.0]))), Settings())
    assert answer.stop is Stop.OPTIMAL
    assert (answer.x, answer.y) == (np.array([2.0]), np.array([3.0]))


def test_linear_function_without_a_least_value_is_called_unbounded() -> None:
    form = SimplexForm(Linear([-1.0, 1.0]), BoxPlane([0.0, 0.0], [np.inf, 1.0]))
    assert explicit.run(form, Settings()).stop is Stop.UNBOUNDED


# --- laws


@given(seed=seeds, n=st.integers(1, 15))
def test_both_descents_bracket_the_same_optimum(seed: int, n: int) -> None:
    form = SimplexForm(convex_quadratic(seed, n), Simplex(n))
    one, other = (optimal_in(backend.run(form, SETTINGS), form) for backend in DESCENT)
    slack = 1e-12 * (1 + abs(one[1]))
    assert one[0] <= other[1] + slack
    assert other[0] <= one[1] + slack


@given(seed=seeds, n=st.integers(2, 20), C=st.sampled_from([0.1, 1.0, 100.0]))
def test_soft_margin_dual_over_box_and_plane(seed: int, n: int, C: float) -> None:
    form = soft_margin(seed, n, C)
    optimal_in(nesterov.run(form, SETTINGS), form)


FORMS = {
    "quadratic": (nesterov, SimplexForm(convex_quadratic(0, 12), Simplex(12))),
    "entropic": (mirror_descent, SimplexForm(convex_quadratic(0, 12), Simplex(12))),
    "margin": (nesterov, soft_margin(0, 30, 10.0)),
    "spectral": (mirror_descent, SimplexForm(convex_quadratic(1, 10), Spectrahedron(4))),
    "ordered": (nesterov, SimplexForm(convex_quadratic(2, 8), OrderedSimplex(8, 1.3))),
    "kink": (
        mirror_descent,
        SimplexForm(Oracle(4, np.max, lambda x: np.eye(4)[np.argmax(x)], False), Simplex(4, 2.0)),
    ),
    "game": (mirror_prox, random_game(0, 10, 12)),
}
each_method = pytest.mark.parametrize(("backend", "form"), FORMS.values(), ids=FORMS)


@each_method
def test_history_closes_in_on_the_optimum_from_both_sides(
    backend: Backend, form: SimplexForm | SaddleForm
) -> None:
    for tol in (1e-2, 1e-6):
        history = backend.run(form, Settings(tol=tol, max_iter=300)).history
        assert all(step.lower <= step.upper for step in history)
        for before, after in pairwise(history):
            assert before.iteration < after.iteration
            assert before.seconds <= after.seconds
            assert before.lower <= after.lower
            assert after.upper <= before.upper


@each_method
def test_reruns_are_identical_to_the_last_bit(
    backend: Backend, form: SimplexForm | SaddleForm
) -> None:
    one, other = (backend.run(form, Settings(max_iter=200)) for _ in range(2))
    assert one.x is not None
    assert other.x is not None
    assert one.x.tobytes() == other.x.tobytes()
    assert one.iterations == other.iterations
    assert [(s.lower, s.upper) for s in one.history] == [(s.lower, s.upper) for s in other.history]


@each_method
def test_one_iteration_returns_a_point_of_the_set(
    backend: Backend, form: SimplexForm | SaddleForm
) -> None:
    answer = backend.run(form, Settings(tol=1e-13, max_iter=1))
    assert answer.iterations is not None
    assert answer.iterations <= 1
    assert answer.x is not None
    assert form.measure(answer.x, answer.y).primal < 1e-12


@each_method
def test_next_to_no_time_is_kept(backend: Backend, form: SimplexForm | SaddleForm) -> None:
    answer = backend.run(form, Settings(tol=1e-13, time_limit=1e-9))
    assert answer.stop in (Stop.TIME_LIMIT, Stop.OPTIMAL)
    assert answer.iterations == 0
    assert answer.x is not None


@each_method
def test_a_start_at_the_optimum_is_the_answer(
    backend: Backend, form: SimplexForm | SaddleForm
) -> None:
    cold = backend.run(form, Settings(max_iter=2000))
    assert cold.x is not None
    warm = backend.run(form, Settings(max_iter=2000), Start(cold.x, cold.y))
    assert warm.stop is cold.stop
    if form is not FORMS["kink"][1]:
        assert warm.iterations == 0


@each_method
def test_a_start_off_the_set_is_projected_and_one_of_nan_refused(
    backend: Backend, form: SimplexForm | SaddleForm
) -> None:
    n = form.shape[1]
    answer = backend.run(form, SETTINGS, Start(np.full(n, -7.0)))
    assert answer.stop is Stop.OPTIMAL
    with pytest.raises(InvalidSettings, match=r"start.x\[0\] is nan"):
        backend.run(form, SETTINGS, Start(np.full(n, np.nan)))
    with pytest.raises(InvalidSettings, match=r"start.x has shape"):
        backend.run(form, SETTINGS, Start(np.zeros(n + 1)))


def test_mirror_descent_leaves_the_wrong_vertex() -> None:
    form = SimplexForm(Quadratic(np.eye(3), [0.0, 0.0, -5.0]), Simplex(3))
    answer = mirror_descent.run(form, SETTINGS, Start(np.array([1.0, 0.0, 0.0])))
    lower, upper = optimal_in(answer, form)
    assert lower - 1e-12 <= -4.5 <= upper + 1e-12


@given(seed=seeds)
def test_mean_of_tangents_bounds_a_nonsmooth_function(seed: int) -> None:
    # The maximum of linear functions over the simplex is a matrix game, whose value another method
    # knows.
    A = rng(seed).normal(size=(6, 5))
    oracle = Oracle(
        5, lambda x: float((A @ x).max()), lambda x: A[int(np.argmax(A @ x))], smooth=False
    )
    answer = mirror_descent.run(
        SimplexForm(oracle, Simplex(5)), Settings(tol=0.02, max_iter=50_000)
    )
    assert answer.stop is Stop.OPTIMAL
    game = SaddleForm(Bilinear(A.T), Simplex(5), Simplex(6))
    exact = mirror_prox.run(game, SETTINGS)
    assert exact.stop is Stop.OPTIMAL
    last, value = answer.history[-1], exact.history[-1]
    assert last.lower <= value.upper + 1e-12
    assert value.lower <= last.upper + 1e-12


def largest_of_matrices(seed: int, domain: SimpleSet) -> tuple[SimplexForm, float]:
    """The largest of six linear functions over a set, and their steepest gradient in the norm of the set."""
    A = rng(seed).normal(size=(6, domain.size))
    oracle = Oracle(
        domain.size,
        lambda x: float((A @ x).max()),
        lambda x: A[int(np.argmax(A @ x))],
        smooth=False,
    )
    return SimplexForm(oracle, domain), max(domain.dual_norm(row) for row in A)


MIRRORED = {
    "simplex": Simplex(7, 2.0),
    "spectrahedron": Spectrahedron(4, 3.0),
    "product": Product((Simplex(4), Spectrahedron(3, 0.5), Simplex(2, 2.0))),
}


@pytest.mark.parametrize("domain", MIRRORED.values(), ids=MIRRORED)
@pytest.mark.parametrize(("steps", "factor"), [("horizon", np.sqrt(2)), ("anytime", 2.0)])
@pytest.mark.parametrize("T", [3, 30, 300])
def test_named_steps_keep_the_bound_of_their_theorem(
    domain: SimpleSet, steps: str, factor: float, T: int
) -> None:
    totals = {"simplex": 2.0, "spectrahedron": 3.0, "product": 2.0}
    width = next(totals[name] for name, known in MIRRORED.items() if known is domain)
    for seed in range(3):
        form, L = largest_of_matrices(seed, domain)
        raw = {"steps": steps, "lipschitz": L}
        answer = mirror_descent.run(form, Settings(tol=1e-9, max_iter=T, raw=raw))
        assert answer.iterations == T
        assert answer.x is not None
        # Regret bounds the mean of the values less the minimum of the mean tangent: the certificate
        # itself.
        bound = factor * L * np.sqrt(domain.mirror_depth * width / T)
        proven = form.objective.value(answer.x) - form.averaged_bound(answer.y)
        assert 0 <= proven <= bound * (1 + 1e-4)


@pytest.mark.parametrize("steps", ["horizon", "anytime"])
def test_named_steps_need_no_bound_of_the_gradients_and_take_smooth_functions_too(
    steps: str,
) -> None:
    kinks, _ = largest_of_matrices(0, MIRRORED["product"])
    smooth = SimplexForm(convex_quadratic(0, 8), Simplex(8))
    for form in (kinks, smooth):
        few, many = (
            mirror_descent.run(form, Settings(tol=1e-9, max_iter=T, raw={"steps": steps})).history[
                -1
            ]
            for T in (20, 2000)
        )
        assert many.upper - many.lower < 0.3 * (few.upper - few.lower)
        assert many.lower <= few.upper
    assert (
        mirror_descent.run(smooth, Settings(tol=1e-9, max_iter=20, raw={"steps": steps})).y is None
    )


def test_a_fixed_horizon_is_plain_mirror_descent_in_the_logarithm() -> None:
    form, L = largest_of_matrices(1, Simplex(7, 2.0))
    T, theta, values, domain = 40, np.zeros(7), [], form.domain
    for _ in range(T):
        x = domain.mirror(theta)
        values.append(form.objective.value(x))
        theta = theta - np.sqrt(2 * np.log(7) / T) / L * form.objective.gradient(x)
    answer = mirror_descent.run(
        form, Settings(tol=1e-9, max_iter=T, raw={"steps": "horizon", "lipschitz": L})
    )
    assert answer.y is not None
    visited = answer.y.reshape(-1, 8)[:, 1:]
    np.testing.assert_allclose(
        [form.objective.value(x) for x in visited], values[: len(visited)], rtol=1e-9
    )


@pytest.mark.parametrize("power", [-8, 0, 8])
def test_scaling_a_game_scales_its_value(power: int) -> None:
    form = random_game(5, 8, 9)
    scaled = SaddleForm(Bilinear(form.coupling.M * 10.0**power), form.left, form.right)  # type: ignore[union-attr]
    one, other = (
        mirror_prox.run(form, SETTINGS).history[-1],
        mirror_prox.run(scaled, SETTINGS).history[-1],
    )
    slack = 1e-12 * 10.0**power
    assert one.lower * 10.0**power <= other.upper + slack
    assert other.lower <= one.upper * 10.0**power + slack


# --- trouble


@pytest.mark.parametrize("backend", DESCENT)
@pytest.mark.parametrize("domain", [Simplex(3), Spectrahedron(2)])
def test_an_oracle_of_nan_is_numerical_trouble(backend: Backend, domain: Simplex) -> None:
    broken = Oracle(3, lambda x: float("nan"), lambda x: np.full(3, np.nan))
    answer = backend.run(SimplexForm(broken, domain), Settings())
    assert answer.stop is Stop.NUMERICAL
    assert answer.x is None


@pytest.mark.parametrize("backend", DESCENT)
def test_an_oracle_that_breaks_down_later_leaves_the_best_point(backend: Backend) -> None:
    calls = iter(range(1000))
    weights, target = np.array([1.0, 10.0, 100.0]), np.array([0.5, 0.3, 0.4])

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.full(3, np.nan) if next(calls) > 5 else weights * (x - target)

    oracle = Oracle(3, lambda x: float(weights @ (x - target) ** 2 / 2), gradient)
    answer = backend.run(SimplexForm(oracle, Simplex(3)), Settings(tol=1e-12))
    assert answer.stop is Stop.NUMERICAL
    assert answer.x is not None
    assert Simplex(3).violation(answer.x) < 1e-12


def test_a_saddle_of_nan_is_numerical_trouble() -> None:
    phi = SaddleOracle(lambda x, y: float("nan"), lambda x, y: x * np.nan, lambda x, y: y * np.nan)
    assert (
        mirror_prox.run(SaddleForm(phi, Simplex(2), Simplex(3)), Settings()).stop is Stop.NUMERICAL
    )


@pytest.mark.parametrize("backend", DESCENT)
def test_a_function_that_is_not_convex_is_found_out(backend: Backend) -> None:
    form = SimplexForm(Oracle(2, lambda x: float(-x @ x), lambda x: -2 * x), Simplex(2))
    answer = backend.run(form, Settings(tol=1e-9), Start(np.array([0.9, 0.1])))
    assert answer.stop is Stop.NUMERICAL
    assert "not convex" in answer.native


@pytest.mark.parametrize("backend", [explicit, mirror_descent, mirror_prox, nesterov])
def test_unknown_options_are_refused(backend: Backend) -> None:
    form = (
        random_game(0, 2, 2) if backend is mirror_prox else SimplexForm(Linear([1.0]), Simplex(1))
    )
    with pytest.raises(InvalidSettings, match="has no option 'speed'"):
        backend.run(form, Settings(raw={"speed": 1}))


def test_known_options_are_checked() -> None:
    line, game = SimplexForm(Linear([1.0, 2.0]), Simplex(2)), random_game(0, 2, 2)
    with pytest.raises(InvalidSettings, match="'step' is -1"):
        mirror_descent.run(line, Settings(raw={"step": -1}))
    with pytest.raises(
        InvalidSettings, match="'steps' is 'long'; expected one of adaptive, horizon, anytime"
    ):
        mirror_descent.run(line, Settings(raw={"steps": "long"}))
    with pytest.raises(InvalidSettings, match="'lipschitz' is 0; expected a positive number"):
        mirror_descent.run(line, Settings(raw={"steps": "anytime", "lipschitz": 0}))
    with pytest.raises(
        InvalidSettings, match="'step' means nothing to steps of the kind 'anytime'"
    ):
        mirror_descent.run(line, Settings(raw={"steps": "anytime", "step": 1.0}))
    with pytest.raises(InvalidSettings, match="need max_iter"):
        mirror_descent.run(line, Settings(raw={"steps": "horizon"}))
    with pytest.raises(InvalidSettings, match="'lipschitz' is nan"):
        nesterov.run(line, Settings(raw={"lipschitz": float("nan")}))
    with pytest.raises(InvalidSettings, match="'geometry' is 'flat'"):
        mirror_prox.run(game, Settings(raw={"geometry": "flat"}))
    ordered = SaddleForm(Bilinear(np.eye(2)), OrderedSimplex(2), Simplex(2))
    with pytest.raises(InvalidSettings, match="needs simplices or spectrahedra"):
        mirror_prox.run(ordered, Settings(raw={"geometry": "entropy"}))


# --- the loop


def candidates(n: int):
    for k in range(n):
        yield (
            Candidate(np.array([float(k)]), 1.0 + 1.0 / (k + 1), -1.0 / (k + 1))
            if k % 3 == 0
            else None
        )


def test_a_long_history_is_thinned() -> None:
    answer = iterate(candidates(100_000), Settings(max_iter=90_000))
    assert answer.stop is Stop.ITERATION_LIMIT
    assert answer.iterations == 90_000
    assert 100 < len(answer.history) < 400
    assert answer.history[-1].iteration == 90_000


def test_an_algorithm_that_ends_by_itself_has_stalled() -> None:
    answer = iterate(candidates(7), Settings())
    assert answer.stop is Stop.STALLED
    assert answer.x == np.array([6.0])


def test_bounds_that_cross_are_no_proof() -> None:
    answer = iterate(iter([Candidate(np.zeros(1), 1.0, 2.0)]), Settings())
    assert answer.stop is Stop.NUMERICAL
    assert "bounds cross" in answer.native


def test_an_interrupt_reaches_the_caller() -> None:
    def interrupted():
        yield Candidate(np.zeros(1), 1.0, 0.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        iterate(interrupted(), Settings())


def test_a_log_has_a_line_for_each_step_and_is_empty_unless_asked_for() -> None:
    form = SimplexForm(convex_quadratic(0, 5), Simplex(5))
    assert nesterov.run(form, Settings()).log == ""
    answer = nesterov.run(form, Settings(log=True))
    assert len(answer.log.splitlines()) == len(answer.history)


def test_the_point_of_the_smallest_eigenvalue_is_a_projector() -> None:
    S = np.diag([3.0, 1.0, 2.0])
    answer = explicit.run(SimplexForm(Linear(svec(S)), Spectrahedron(3)), Settings())
    assert answer.x is not None
    np.testing.assert_allclose(smat(answer.x), np.diag([0.0, 1.0, 0.0]), atol=1e-12)
