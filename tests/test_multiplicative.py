"""The multiplicative update as published: Theorem 4, the certificate, the mandatory last step, and the guards."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.arrays import FloatArray
from klopt.model.backend import Settings, Start, Stop
from klopt.model.forms import SimplexForm
from klopt.model.functions import Quadratic
from klopt.model.sets import BoxPlane, Product, Simplex
from klopt.solvers.active_set import BACKEND as EXACT
from klopt.solvers.multiplicative import BACKEND, _program, _steps

seeds = st.integers(0, 10_000)
MORE = Settings(tol=1e-5, max_iter=20_000)


def program(seed: int, n: int = 12) -> tuple[FloatArray, FloatArray]:
    """F_ij = (v_i'v_j)^2 >= 0, positive semidefinite by Schur, and b > 0."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(5, n))
    return np.square(V.T @ V), rng.uniform(0.1, 2.0, n)


def orthant(F: FloatArray, b: FloatArray) -> SimplexForm:
    return SimplexForm(Quadratic(F, -b), BoxPlane(np.zeros(b.size), np.full(b.size, np.inf)))


def on_plane(F: FloatArray, b: FloatArray) -> SimplexForm:
    return SimplexForm(
        Quadratic(F, np.zeros(b.size)), BoxPlane(np.zeros(b.size), np.full(b.size, np.inf), b, 1.0)
    )


def points(form: SimplexForm, iterations: int) -> list[FloatArray]:
    """The first points, each with b'x = 1."""
    b = form.domain.normal
    steps = _steps(form, _program(form), np.full(b.size, 1 / b.sum()))
    return [candidate.x for candidate in islice(steps, iterations) if candidate is not None]


@given(seeds)
def test_the_step_is_the_published_one(seed: int) -> None:
    F, b = program(seed)
    x = np.full(12, 1 / b.sum())
    for found in points(on_plane(F, b), 10):
        assert found == pytest.approx(x, rel=1e-12)
        x = x * (x @ F @ x) * b / (F @ x)
        x /= b @ x


@given(seeds)
def test_every_step_lowers_the_objective(seed: int) -> None:
    """Theorem 4."""
    F, b = program(seed)
    values = [float(x @ F @ x) for x in points(on_plane(F, b), 200)]
    assert all(later <= earlier * (1 + 1e-14) for earlier, later in pairwise(values))


@given(seeds)
def test_the_certificate_holds_the_optimum(seed: int) -> None:
    """rho^2 lam <= lam* <= lam, as bounds -1/(2 rho^2 lam) and -1/(2 lam) of the program over the orthant."""
    F, b = program(seed)
    best = orthant(F, b).objective.value(EXACT.run(orthant(F, b), Settings()).x)
    answer = BACKEND.run(orthant(F, b), Settings(max_iter=50))
    x = answer.x / (b @ answer.x)
    lam, rho = float(x @ F @ x), float(np.min((F @ x) / b) / (x @ F @ x))
    last = answer.history[-1]
    assert last.lower - 1e-12 <= best <= last.upper + 1e-12
    assert orthant(F, b).lower_bound(answer.x) == pytest.approx(-1 / (2 * rho**2 * lam), rel=1e-9)
    # The answer is the point with the narrowest interval; a later one may have had a lower value.
    assert best <= last.upper + 1e-12
    assert last.upper <= -1 / (2 * lam) + 1e-9


@given(seeds)
def test_both_programs_have_one_solution_up_to_its_length(seed: int) -> None:
    F, b = program(seed)
    for form, exact in ((orthant(F, b), EXACT), (on_plane(F, b), EXACT)):
        answer = BACKEND.run(form, MORE)
        best = exact.run(form, Settings())
        assert answer.stop is Stop.OPTIMAL
        assert form.objective.value(answer.x) == pytest.approx(
            form.objective.value(best.x), rel=1e-4
        )


def test_the_history_streams_bounds_that_meet() -> None:
    F, b = program(3)
    answer = BACKEND.run(orthant(F, b), MORE)
    widths = [step.upper - step.lower for step in answer.history]
    assert len(widths) > 5
    assert widths[-1] <= 1e-5
    assert all(later <= earlier for earlier, later in pairwise(widths))


def test_a_rate_may_be_sublinear() -> None:
    """F = [[1, 1], [1, 2]], b = (1, 1): x_2 falls like 1/k."""
    form = on_plane(np.array([[1.0, 1.0], [1.0, 2.0]]), np.ones(2))
    x = points(form, 1001)[-1]
    assert 5e-4 < x[1] < 2e-3


def test_a_zero_of_the_start_comes_back() -> None:
    """A fixed point of the bare update that is not optimal (Theorem 3 as stated): F = I, b = 1, x = (1, 0)."""
    form = on_plane(np.eye(2), np.ones(2))
    answer = BACKEND.run(form, Settings(tol=1e-10), Start(np.array([1.0, 0.0])))
    assert answer.x == pytest.approx([0.5, 0.5])


def test_variables_that_never_pay_are_zero() -> None:
    F = np.eye(3) + 1.0
    answer = BACKEND.run(orthant(F, np.array([4.0, 5.0, -1.0])), Settings(tol=1e-8))
    assert answer.stop is Stop.OPTIMAL
    assert answer.x == pytest.approx([1.0, 2.0, 0.0], abs=1e-4)
    nothing = BACKEND.run(orthant(F, np.array([-1.0, 0.0, -2.0])), Settings())
    assert nothing.stop is Stop.OPTIMAL
    assert not nothing.x.any()


def test_zero_columns_are_no_division_by_zero() -> None:
    F = np.diag([1.0, 0.0])
    assert BACKEND.run(orthant(F, np.array([1.0, 0.0])), Settings(tol=1e-9)).x == pytest.approx(
        [1.0, 0.0]
    )
    assert BACKEND.run(orthant(F, np.array([1.0, 1.0])), Settings()).stop is Stop.UNBOUNDED
    answer = BACKEND.run(on_plane(F, np.array([1.0, 2.0])), Settings(tol=1e-9))
    assert answer.stop is Stop.OPTIMAL
    assert answer.x == pytest.approx([0.0, 0.5])


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    eye, two = np.eye(2), np.ones(2)
    endless = np.full(2, np.inf)
    cases = {
        "neither an orthant": SimplexForm(Quadratic(eye, -two), BoxPlane(-two, two)),
        "nor a simplex": SimplexForm(Quadratic(eye, -two), Product((Simplex(1), Simplex(1)))),
        "linear term": SimplexForm(Quadratic(eye, -two), Simplex(2)),
        "does not cut a simplex": SimplexForm(
            Quadratic(eye, 0 * two), BoxPlane(0 * two, endless, np.array([1, -1]))
        ),
        "negative entries": orthant(np.array([[1.0, -0.5], [-0.5, 1.0]]), two),
    }
    for reason, form in cases.items():
        answer = BACKEND.run(form, Settings())
        assert answer.stop is Stop.REJECTED
        assert reason in answer.native


def test_a_loose_upper_bound_changes_nothing_and_a_tight_one_is_never_crossed() -> None:
    F, b = program(5)
    free = BACKEND.run(orthant(F, b), MORE)
    loose = SimplexForm(Quadratic(F, -b), BoxPlane(np.zeros(12), 2 * free.x + 1))
    assert BACKEND.run(loose, MORE).stop is Stop.OPTIMAL
    tight = SimplexForm(
        Quadratic(F, -b), BoxPlane(np.zeros(12), np.full(12, float(free.x.max()) / 2))
    )
    answer = BACKEND.run(tight, Settings(max_iter=500))
    assert tight.domain.violation(answer.x) <= 1e-15
    assert answer.stop is not Stop.OPTIMAL
