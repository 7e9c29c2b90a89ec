"""Cutting planes with a level: known optima, bounds that hold, kinks on every set, trouble."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog
from strategies import at_most

import klopt
from klopt.errors import InvalidSettings
from klopt.model.backend import Settings, Start, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import Oracle
from klopt.model.sets import BoxPlane, OrderedSimplex, Product, SimpleSet, Simplex
from klopt.solvers._first_order.bundle import Bundle
from klopt.solvers.cutting_planes import BACKEND as cutting_planes
from klopt.solvers.mirror_descent import BACKEND as mirror_descent

seeds = st.integers(0, 2**32 - 1)


def steepest_row(A: np.ndarray, b: np.ndarray) -> Oracle:
    """The largest of the linear functions Ax + b."""
    return Oracle(
        A.shape[1],
        lambda x: float((A @ x + b).max()),
        lambda x: A[int(np.argmax(A @ x + b))],
        smooth=False,
    )


def distances(B: np.ndarray, c: np.ndarray) -> Oracle:
    """|Bx - c|_1."""
    return Oracle(
        B.shape[1],
        lambda x: float(np.abs(B @ x - c).sum()),
        lambda x: B.T @ np.sign(B @ x - c),
        smooth=False,
    )


def by_linear_programming(A: np.ndarray, b: np.ndarray, domain: BoxPlane) -> float:
    """The minimum of max(Ax + b): minimise t over Ax + b <= t."""
    rows = np.hstack([A, -np.ones((len(A), 1))])
    plane = None if domain.normal is None else np.append(domain.normal, 0.0)[None]
    right = None if domain.normal is None else [domain.offset]
    bounds = [*zip(domain.lower, domain.upper, strict=True), (None, None)]
    return float(linprog(np.append(np.zeros(A.shape[1]), 1.0), rows, -b, plane, right, bounds).fun)


def proven(form: SimplexForm, tol: float = 1e-6) -> tuple[float, float]:
    """The interval that klopt computes from the answer's point and cuts, checked to be as narrow as was asked for."""
    answer = cutting_planes.run(form, Settings(tol=tol, max_iter=2000))
    assert answer.stop is Stop.OPTIMAL, answer.native
    assert answer.x is not None
    assert form.domain.violation(answer.x) < 1e-9
    lower, upper = form.averaged_bound(answer.y), form.objective.value(answer.x)
    assert upper - lower <= tol * (1 + abs(upper))
    return lower, upper


@given(seeds, st.integers(1, 8), st.integers(1, 10), st.booleans())
@at_most(10)
@pytest.mark.slow
def test_the_largest_of_linear_functions_is_a_linear_program(
    seed: int, n: int, rows: int, plane: bool
) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(rows, n)), rng.normal(size=rows)
    box = BoxPlane(-rng.random(n), rng.random(n), rng.normal(size=n) if plane else None)
    lower, upper = proven(SimplexForm(steepest_row(A, b), box))
    exact = by_linear_programming(A, b, box)
    assert lower - 1e-9 <= exact <= upper + 1e-9


@given(seeds)
@at_most(4)
def test_a_matrix_game_takes_fewer_looks_than_it_has_strategies(seed: int) -> None:
    A = np.random.default_rng(seed).normal(size=(20, 20))
    form = SimplexForm(steepest_row(A, np.zeros(20)), Simplex(20))
    answer = cutting_planes.run(form, Settings(tol=1e-9))
    assert answer.stop is Stop.OPTIMAL
    assert answer.iterations is not None
    assert answer.iterations <= 40


@pytest.mark.parametrize(
    "domain",
    [
        Simplex(6, 3.0),
        BoxPlane(-np.ones(6), np.ones(6)),
        Product((Simplex(4), BoxPlane([0.0, -1.0], [1.0, 1.0]))),
    ],
    ids=["simplex", "box", "product"],
)
def test_least_absolute_deviations_over_every_set(domain: SimpleSet) -> None:
    rng = np.random.default_rng(5)
    oracle = distances(rng.normal(size=(12, 6)), rng.normal(size=12))
    lower, _ = proven(SimplexForm(oracle, domain))
    others = [domain.project(3 * rng.normal(size=6)) for _ in range(300)]
    assert lower <= min(oracle.value(x) for x in others)


def test_a_kink_and_curvature_together() -> None:
    # max(x'x, 2 - x_1 - x_2) on the line x_1 = x_2: 2 u^2 = 2 - 2 u has the root (5^1/2 - 1) / 2.
    u = (np.sqrt(5) - 1) / 2
    pieces = (lambda x: float(x @ x), lambda x: 2 - x[0] - x[1])
    gradients = (lambda x: 2 * x, lambda x: -np.ones(2))
    oracle = Oracle(
        2,
        lambda x: max(p(x) for p in pieces),
        lambda x: gradients[int(pieces[1](x) > pieces[0](x))](x),
        False,
    )
    lower, upper = proven(SimplexForm(oracle, BoxPlane(np.zeros(2), np.full(2, 2.0))), 1e-8)
    assert lower - 1e-12 <= 2 * u**2 <= upper + 1e-12


@pytest.mark.parametrize("power", [-4, 0, 8])
def test_scale_and_shift_of_the_function_do_not_matter(power: int) -> None:
    rng = np.random.default_rng(1)
    A, b, scale = rng.normal(size=(7, 5)), rng.normal(size=7), 10.0**power
    box = BoxPlane(np.zeros(5), np.ones(5))
    answer = cutting_planes.run(
        SimplexForm(steepest_row(scale * A, scale * (b + 3)), box),
        Settings(tol=1e-7 * min(scale, 1.0)),
    )
    exact = scale * (by_linear_programming(A, b, box) + 3)
    assert (
        answer.history[-1].lower - 1e-9 * scale <= exact <= answer.history[-1].upper + 1e-9 * scale
    )
    assert answer.history[-1].upper - answer.history[-1].lower <= 1e-6 * scale


@given(seeds)
@at_most(20)
def test_every_weight_of_the_cuts_gives_a_lower_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    form = SimplexForm(distances(rng.normal(size=(6, 4)), rng.normal(size=6)), Simplex(4))
    f, x = form.objective, form.domain.centre()
    bundle = Bundle(form.domain, x, f.value(x), f.gradient(x))
    for z in rng.dirichlet(np.ones(4), 4):
        bundle.add(z, f.value(z), f.gradient(z), bundle.weights)
    best = min(f.value(z) for z in rng.dirichlet(np.ones(4), 200))
    for weights in rng.dirichlet(np.ones(5), 5):
        assert bundle.lower_bound(weights) <= best + 1e-12
        assert form.averaged_bound(bundle.rows(weights)) == pytest.approx(
            bundle.lower_bound(weights), abs=1e-9
        )


def test_the_recommended_point_is_the_minimiser_of_the_model() -> None:
    rng = np.random.default_rng(2)
    form = SimplexForm(distances(rng.normal(size=(9, 5)), rng.normal(size=9)), Simplex(5))
    f, centre, t = form.objective, form.domain.centre(), 0.3
    bundle = Bundle(form.domain, centre, f.value(centre), f.gradient(centre))
    for z in rng.dirichlet(np.ones(5), 6):
        bundle.add(z, f.value(z), f.gradient(z), bundle.weights)

    def model(z: np.ndarray) -> float:
        return float(
            (bundle.heights + bundle.gradients @ z).max() + (z - centre) @ (z - centre) / (2 * t)
        )

    found = bundle.step(centre, f.value(centre), t, np.inf)
    assert all(model(found.point) <= model(z) + 1e-2 for z in rng.dirichlet(np.ones(5), 2000))


def test_a_start_at_the_optimum_is_soon_proven() -> None:
    A = np.random.default_rng(3).normal(size=(8, 8))
    form = SimplexForm(steepest_row(A, np.zeros(8)), Simplex(8))
    cold = cutting_planes.run(form, Settings(tol=1e-8))
    assert cold.x is not None
    warm = cutting_planes.run(form, Settings(tol=1e-8), Start(cold.x))
    assert warm.stop is Stop.OPTIMAL
    assert warm.iterations is not None
    assert cold.iterations is not None
    assert warm.iterations <= cold.iterations + 8


def test_more_cuts_than_are_kept_still_lead_to_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klopt.solvers._first_order.bundle.MAX_CUTS", 12)
    rng = np.random.default_rng(4)
    proven(SimplexForm(distances(rng.normal(size=(10, 5)), rng.normal(size=10)), Simplex(5)))


def test_it_beats_mirror_descent_where_variables_are_few() -> None:
    A = np.random.default_rng(6).normal(size=(10, 6))
    form = SimplexForm(steepest_row(A, np.zeros(10)), Simplex(6))
    cuts, descent = (
        b.run(form, Settings(tol=1e-4, max_iter=3000)) for b in (cutting_planes, mirror_descent)
    )
    assert cuts.stop is Stop.OPTIMAL
    assert 20 * cuts.iterations <= descent.iterations


def test_a_users_own_function_with_kinks_is_certified() -> None:
    oracle = steepest_row(np.diag([1.0, 2.0, 4.0]), np.zeros(3))
    problem = klopt.problems.SimplexProgram(
        oracle.value, oracle.gradient, Simplex(3), smooth=False, accuracy=1e-14
    )
    result = klopt.solve(problem, "cutting_planes").require()
    assert result.value == pytest.approx(4 / 7, abs=1e-5)


# --- trouble


def test_a_function_of_nan_is_numerical_trouble_at_once_or_later() -> None:
    broken = Oracle(3, lambda x: float("nan"), lambda x: np.full(3, np.nan), smooth=False)
    assert cutting_planes.run(SimplexForm(broken, Simplex(3)), Settings()).stop is Stop.NUMERICAL
    A, calls = np.random.default_rng(0).normal(size=(9, 6)), iter(range(100))
    later = Oracle(
        6,
        lambda x: float((A @ x).max()) if next(calls) < 4 else float("nan"),
        lambda x: A[int(np.argmax(A @ x))],
        False,
    )
    answer = cutting_planes.run(SimplexForm(later, Simplex(6)), Settings())
    assert answer.stop is Stop.NUMERICAL
    assert answer.x is not None
    assert Simplex(6).violation(answer.x) < 1e-12


def test_a_function_that_is_not_convex_is_found_out_or_not_certified() -> None:
    form = SimplexForm(
        Oracle(2, lambda x: float(-x @ x), lambda x: -2 * x, smooth=False), Simplex(2)
    )
    answer = cutting_planes.run(form, Settings(tol=1e-9), Start(np.array([0.9, 0.1])))
    assert answer.stop is Stop.NUMERICAL
    assert "not convex" in answer.native


def test_limits_are_kept_and_options_checked() -> None:
    form = SimplexForm(
        distances(np.random.default_rng(0).normal(size=(30, 15)), np.ones(30)), Simplex(15)
    )
    assert cutting_planes.run(form, Settings(tol=1e-12, max_iter=3)).iterations == 3
    assert cutting_planes.run(form, Settings(tol=1e-12, time_limit=1e-9)).stop is Stop.TIME_LIMIT
    with pytest.raises(
        InvalidSettings, match=r"'level' is 1\.5; expected a number between 0 and 1"
    ):
        cutting_planes.run(form, Settings(raw={"level": 1.5}))
    ordered = SimplexForm(steepest_row(np.eye(3), np.zeros(3)), OrderedSimplex(3))
    assert cutting_planes.run(ordered, Settings()).stop is Stop.REJECTED
