"""Answers that CVXPY holds: proven where they are right, never where they were altered."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from test_cvxpy import PROGRAMS, maximisation

import klopt
from klopt import Cones, InvalidProblem, Verdict
from klopt.conformance.planted import planted_cone_program
from klopt.judging.auxiliary import completed_multipliers, completed_point
from klopt.model.forms import ConeForm

SOLVED = [name for name in PROGRAMS if not np.isinf(float(PROGRAMS[name]().expect_val))]


@pytest.mark.parametrize("name", SOLVED)
def test_answers_of_clarabel_to_the_programs_of_cvxpy_are_proven(name: str) -> None:
    """From the values and duals that CVXPY holds, auxiliary variables recomputed."""
    known = PROGRAMS[name]()
    known.prob.solve(solver="CLARABEL")
    result = klopt.judge(known.prob)
    assert result.verdict is Verdict.OPTIMAL
    digits = 5e-3 if name.startswith("sdp_1") else 1e-6
    assert result.lower - digits <= float(known.expect_val) <= result.upper + digits
    assert result.chosen.answer.native == "CLARABEL: optimal"


def regression() -> tuple[cp.Problem, cp.Variable]:
    """Atoms within atoms: norms, absolute values, a logarithm, an exponential, an eigenvalue."""
    rng = np.random.default_rng(1)
    x = cp.Variable(4)
    S = cp.Variable((2, 2), symmetric=True)
    cost = cp.norm(rng.normal(size=(6, 4)) @ x - 1) + cp.norm1(x) / 2 + cp.exp(x[0] / 2)
    cost += cp.lambda_max(S) - cp.log(x[1] + 3) + cp.max(x) + cp.power(x[2] + 2, 3)
    return cp.Problem(cp.Minimize(cost), [S[0, 1] == 1, cp.trace(S) == 1, x >= -1]), x


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_atoms_within_atoms(solver: str) -> None:
    problem, _ = regression()
    options = {"eps": 1e-9} if solver == "SCS" else {}
    problem.solve(solver=solver, **options)
    result = klopt.judge(problem)
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower - 1e-6 <= problem.value <= result.upper + 1e-6


def test_judging_leaves_the_problem_as_it_is() -> None:
    problem, x = maximisation()
    problem.solve(solver="CLARABEL")
    key = problem._cache.key
    values = (np.copy(x.value), np.copy(problem.constraints[0].dual_value), problem.status)
    klopt.judge(problem)
    assert problem._cache.key == key
    np.testing.assert_array_equal(x.value, values[0])
    np.testing.assert_array_equal(problem.constraints[0].dual_value, values[1])
    assert problem.status == values[2]


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("seed", range(8))
def test_altered_answers_are_never_called_optimal(solver: str, seed: int) -> None:
    """Values perturbed, swapped or of another problem; the interval holds all the same."""
    rng = np.random.default_rng(seed)
    problem, x = regression()
    problem.solve(solver="CLARABEL")
    best = klopt.judge(problem)
    problem.solve(solver=solver)
    change = rng.normal(size=4)
    altered = (
        x.value + 0.05 * change / np.linalg.norm(change),
        x.value[::-1].copy(),
        np.zeros(4),
        rng.normal(size=4) * 10,
    )
    for value in altered:
        x.value = value
        result = klopt.judge(problem)
        assert result.verdict is not Verdict.OPTIMAL
        assert result.lower <= best.upper
        assert best.lower <= result.upper


def test_altered_duals_cost_width_and_never_truth() -> None:
    problem, _ = maximisation()
    problem.solve(solver="CLARABEL")
    best = 3 + np.sqrt(5)
    (constraint,) = problem.constraints
    for dual in (constraint.dual_value * 2, -constraint.dual_value, 0.0):
        constraint.dual_variables[0].save_value(np.asarray(dual))
        result = klopt.judge(problem)
        assert result.lower <= best <= result.upper
    # Without any they are fitted to the point.
    constraint.dual_variables[0].save_value(None)
    assert klopt.judge(problem).verdict is Verdict.OPTIMAL


def test_problems_without_values_are_refused() -> None:
    problem, _ = maximisation()
    with pytest.raises(InvalidProblem, match=r"has the status None and no value of x; solve it"):
        klopt.judge(problem)
    infeasible = cp.Problem(cp.Minimize(cp.sum(cp.Variable(2, name="z"))), [cp.Variable() <= -np.e])
    infeasible.solve(solver="CLARABEL")
    with pytest.raises(InvalidProblem, match="has the status 'unbounded'"):
        klopt.judge(infeasible)


@pytest.mark.parametrize(
    ("cones", "A", "b", "cost", "end"),
    [
        (Cones(zero=1), [[2.0]], [3.0], 0.0, 1.5),
        (Cones(nonneg=2), [[-1.0], [-1.0]], [2.0, -3.0], 1.0, 3.0),
        (Cones(nonneg=2), [[1.0], [-1.0]], [2.0, 3.0], -1.0, 2.0),
        (Cones(soc=(3,)), [[-1.0], [0.0], [0.0]], [0.0, 3.0, 4.0], 1.0, 5.0),
        (Cones(soc=(3,)), [[0.0], [0.0], [-1.0]], [5.0, 3.0, 0.0], -1.0, 4.0),
        (Cones(soc=(3,)), [[-1.0], [-1.0], [0.0]], [2.0, 0.0, 2.0], 1.0, 0.0),
        (Cones(psd=(2,)), [[-1.0], [0.0], [-1.0]], [0.0, np.sqrt(2), 0.0], 1.0, 1.0),
        (Cones(exp=1), [[0.0], [0.0], [-1.0]], [2.0, 2.0, 0.0], 1.0, 2 * np.e),
        (Cones(exp=1), [[-1.0], [0.0], [0.0]], [0.0, 1.0, np.e], -1.0, 1.0),
        (Cones(power=(0.5,)), [[0.0], [0.0], [-1.0]], [2.0, 8.0, 0.0], -1.0, 4.0),
        (Cones(power=(0.25,)), [[-1.0], [0.0], [0.0]], [0.0, 1.0, 2.0], 1.0, 16.0),
    ],
)
def test_an_unknown_takes_the_end_that_its_rows_leave_it(cones, A, b, cost, end) -> None:
    form = ConeForm([cost], A, b, cones)
    x = np.zeros(1)
    assert completed_point(form, x, np.zeros(1, bool)).all()
    assert x[0] == pytest.approx(end, rel=1e-12)


@pytest.mark.parametrize("kind", ["lp", "qp", "socp", "sdp", "exp", "power"])
@pytest.mark.parametrize("seed", range(3))
def test_multipliers_follow_from_an_optimal_point(kind, seed) -> None:
    """Fitted to complementarity and stationarity, where they are unique, they are the known ones."""
    instance = planted_cone_program(np.random.default_rng(seed), kind, n=12, m=12)
    form = instance.form
    y = completed_multipliers(form, instance.x, np.zeros(form.b.size), np.zeros(form.b.size, bool))
    residual = form.curve(instance.x) + form.c + form.A.T @ y
    assert np.abs(residual).max() <= 1e-8 * (1 + np.abs(form.c).max())
