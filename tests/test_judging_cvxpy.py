"""Answers that CVXPY holds: proven where they are right, never where they were altered."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from test_cvxpy import PROGRAMS, maximisation

import klopt
from klopt import Cones, InvalidProblem, Verdict
from klopt.conformance.planted import planted_cone_program
from klopt.judging.auxiliary import completed_multipliers, completed_point
from klopt.judging.cvxpy_kept import kept_reduction
from klopt.model.forms import ConeForm
from klopt.programs.cvxpy_reduction import reduced_by_cvxpy

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


def lasso(n: int, rng: np.random.Generator) -> cp.Problem:
    """Least squares with a 1-norm, twice as many variables as observations."""
    D = rng.normal(size=(n // 2, n)) / np.sqrt(n)
    x = cp.Variable(n)
    target = D @ (rng.normal(size=n) * (rng.uniform(size=n) < 0.05))
    return cp.Problem(cp.Minimize(cp.sum_squares(D @ x - target) + 0.1 * cp.norm1(x)))


def logistic(n: int, rng: np.random.Generator) -> cp.Problem:
    """Logistic regression with a 1-norm."""
    D = rng.normal(size=(n, n // 10))
    w = cp.Variable(n // 10)
    loss = cp.sum(cp.logistic(-cp.multiply(np.sign(D[:, 0] + rng.normal(size=n)), D @ w))) / n
    return cp.Problem(cp.Minimize(loss + 0.01 * cp.norm1(w)))


def entropy(n: int, rng: np.random.Generator) -> cp.Problem:
    """The distribution of largest entropy with some given moments."""
    D = rng.uniform(size=(3, n))
    x = cp.Variable(n)
    rows = [D @ x == D @ rng.dirichlet(np.ones(n)), cp.sum(x) == 1]
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), rows)


@pytest.mark.parametrize("make", [lasso, logistic, entropy])
def test_large_programs_whose_variables_have_rows_of_their_own(make: Any) -> None:
    """Too large for a dense linear system in the time that they are given."""
    problem = make(700, np.random.default_rng(7))
    problem.solve()
    result = klopt.judge(problem)
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower - 1e-5 <= problem.value <= result.upper + 1e-5
    assert "own rows chosen exactly" in result.certificate.lower_by + result.certificate.upper_by


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
@pytest.mark.parametrize("seed", range(3))
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


# Problems without an optimum

CERTIFIED = [
    ("lp_4", "CLARABEL"),
    ("lp_4", "SCS"),
    ("lp_4", "ECOS"),
    ("lp_4", "OSQP"),
    ("lp_4", "HIGHS"),
    ("lp_3", "CLARABEL"),
    ("lp_3", "SCS"),
    ("lp_3", "ECOS"),
    ("lp_3", "OSQP"),
    ("lp_6", "CLARABEL"),
]


@pytest.mark.parametrize(("name", "solver"), CERTIFIED)
def test_the_certificate_that_a_solver_leaves_is_proven(name: str, solver: str) -> None:
    """Infeasible lp_4, unbounded lp_3 and lp_6 of CVXPY's library, whose values it knows."""
    known = PROGRAMS[name]()
    known.prob.solve(solver=solver)
    result = klopt.judge(known.prob)
    word = Verdict.INFEASIBLE if name == "lp_4" else Verdict.UNBOUNDED
    assert result.verdict is word
    assert result.chosen.answer.native == f"{solver}: {word.name.lower()}"
    assert result.lower == result.upper == float(known.expect_val)


@pytest.mark.parametrize("name", ["lp_3", "lp_4"])
def test_without_a_certificate_the_status_is_quoted_and_nothing_proven(name: str) -> None:
    known = PROGRAMS[name]()
    known.prob.solve(solver="SCIPY")
    result = klopt.judge(known.prob)
    assert result.verdict is Verdict.UNPROVEN
    status = known.prob.status
    assert result.chosen.answer.native == f"SCIPY: {status}"
    note = f"CVXPY keeps no certificate of this solver for '{status}'; klopt.solve of the CVXPY"
    assert any(note in each for each in result.certificate.notes)


def test_a_certificate_of_another_problem_proves_nothing() -> None:
    """Once the bound gives way the problem has an optimum, and the old multipliers refute nothing."""
    bound = cp.Parameter(value=0.0)
    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(x), [x >= 1, x <= bound])
    problem.solve(solver="CLARABEL")
    assert klopt.judge(problem).verdict is Verdict.INFEASIBLE
    bound.value = 3.0
    result = klopt.judge(problem)
    assert result.verdict is Verdict.UNPROVEN
    assert result.lower <= 1 <= result.upper


# What CVXPY keeps


@pytest.mark.parametrize("name", [name for name in SOLVED if "sdp" not in name])
def test_the_program_that_was_compiled_is_the_one_that_klopt_would_have(name: str) -> None:
    """Row by row and without rounding; only the order of variables may differ."""
    problem = PROGRAMS[name]().prob
    problem.solve(solver="CLARABEL")
    kept = kept_reduction(problem)
    assert kept is not None
    own = reduced_by_cvxpy(problem).arguments
    assert kept.arguments["offset"] == own["offset"]
    sizes = {key: np.sort(np.abs(kept.arguments[key])) for key in ("b", "c")}
    if kept.arguments["A"].shape == own["A"].shape:
        for key, size in sizes.items():
            np.testing.assert_array_equal(size, np.sort(np.abs(own[key])))
        ours = np.sort(np.abs(own["A"].toarray()), axis=None)
        theirs = np.sort(np.abs(kept.arguments["A"].toarray()), axis=None)
        np.testing.assert_array_equal(theirs, ours)
        assert kept.arguments["cones"] == own["cones"]


@pytest.mark.parametrize("solver", ["CLARABEL", "ECOS", "SCS"])
def test_exponential_cones_are_read_in_the_order_of_each_solver(solver: str) -> None:
    """Maximise entropy over the simplex: log(n) at equal shares."""
    x = cp.Variable(5)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    options = {"eps": 1e-9} if solver == "SCS" else {}
    problem.solve(solver=solver, **options)
    result = klopt.judge(problem)
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower <= np.log(5) <= result.upper
    assert "multipliers are those of the solver's own solution" in result.explain()


def test_a_solved_problem_is_judged_without_compiling_again() -> None:
    """CVXPY reports each compilation on its log."""
    p = cp.Parameter(nonneg=True, value=0.5)
    x = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1) + p * cp.norm1(x)))
    for p.value in (0.5, 1.0):
        problem.solve(solver="CLARABEL")
        compiled = problem._cache.param_prog
        seconds = problem._compilation_time
        result = klopt.judge(problem)
        assert result.verdict is Verdict.OPTIMAL
        # At x = 1 - p / 2 the value is 3 (p - p^2 / 4).
        best = 3 * (p.value - p.value**2 / 4)
        assert result.lower - 1e-12 <= best <= result.upper + 1e-12
        assert problem._cache.param_prog is compiled
        assert problem._compilation_time == seconds


def test_loose_auxiliary_variables_say_nothing_of_the_values() -> None:
    """SCS leaves the bound of a norm loose; the values themselves are optimal."""
    known = PROGRAMS["lp_0"]()
    known.prob.solve(solver="SCS")
    assert klopt.judge(known.prob).verdict is Verdict.OPTIMAL


def test_where_auxiliary_variables_are_missing_nothing_is_said_of_the_answer() -> None:
    """A sum of eigenvalues has a matrix of them, which does not follow from the values alone."""
    S = cp.Variable((3, 3), symmetric=True)
    problem = cp.Problem(
        cp.Minimize(cp.lambda_sum_largest(S, 2)), [cp.diag(S) == 1, S[0, 1] == 0.5]
    )
    problem.solve(solver="CLARABEL")
    assert klopt.judge(problem).verdict is Verdict.OPTIMAL
    # Other values than those of the solver: its own solution is of no use.
    S.save_value(S.value + 1e-3 * np.eye(3))
    result = klopt.judge(problem)
    assert result.verdict is Verdict.UNPROVEN
    assert result.lower <= 2.5 <= result.upper
    notes = " ".join(result.certificate.notes)
    assert "7 of 7 auxiliary variables, which CVXPY drops, were not recomputed" in notes
    assert "nothing is said of it, but the interval holds" in notes
    assert "is not optimal" not in notes


# Altered answers


@cache
def solved_program(name: str, solver: str) -> tuple[cp.Problem, list[Any], list[list[Any]]]:
    """A solved problem with a known optimum, and copies of its values and duals."""
    problem = ALTERED[name]()
    problem.solve(solver=solver)
    values = [np.copy(variable.value) for variable in problem.variables()]
    duals = [
        [np.copy(each.value) for each in constraint.dual_variables]
        for constraint in problem.constraints
    ]
    return problem, values, duals


def linear_program() -> cp.Problem:
    """Maximise x + y over x + 2 y <= 4, 3 x + y <= 6: 14 / 5 at (8/5, 6/5)."""
    x = cp.Variable(2)
    rows = [x[0] + 2 * x[1] <= 4, 3 * x[0] + x[1] <= 6, x >= 0]
    return cp.Problem(cp.Maximize(x[0] + x[1]), rows)


def projection() -> cp.Problem:
    """The distance of (3, 4) from the unit disc: 4."""
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.norm(x - np.array([3.0, 4.0]))), [cp.norm(x) <= 1])


def quadratic_program() -> cp.Problem:
    """Minimise ||x - (1, 2, 3)||^2 on x_1 + x_2 + x_3 = 3: 3 at (0, 1, 2)."""
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - np.arange(1.0, 4))), [cp.sum(x) == 3])


def entropy() -> cp.Problem:
    """The largest entropy of four shares with x_1 = 1/2: log(2) + log(3) / 2."""
    x = cp.Variable(4)
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1, x[0] == 0.5])


def largest_eigenvalue() -> cp.Problem:
    """Maximise <M, X> over X >= 0 of trace 1: the largest eigenvalue of M, 3."""
    X = cp.Variable((2, 2), symmetric=True)
    M = np.array([[2.0, 1.0], [1.0, 2.0]])
    return cp.Problem(cp.Maximize(cp.trace(M @ X)), [X >> 0, cp.trace(X) == 1])


ALTERED = {
    "linear": linear_program,
    "projection": projection,
    "quadratic": quadratic_program,
    "entropy": entropy,
    "eigenvalue": largest_eigenvalue,
}
OPTIMA = {
    "linear": 14 / 5,
    "projection": 4.0,
    "quadratic": 3.0,
    "entropy": np.log(2) + np.log(3) / 2,
    "eigenvalue": 3.0,
}
SOLVERS = {
    "linear": ("CLARABEL", "HIGHS", "ECOS", "SCIPY", "SCS"),
    "projection": ("CLARABEL", "ECOS", "SCS"),
    "quadratic": ("CLARABEL", "OSQP", "PIQP", "SCS"),
    "entropy": ("CLARABEL", "ECOS", "SCS"),
    "eigenvalue": ("CLARABEL", "SCS"),
}


@given(data=st.data())
def test_no_wrong_verdict_of_an_altered_answer(data: st.DataObject) -> None:
    """Whatever values and duals a problem holds: the interval contains the known optimum, and OPTIMAL
    is said only of values that satisfy the constraints and have nearly that value, as CVXPY computes
    them."""
    name = data.draw(st.sampled_from(sorted(ALTERED)))
    solver = data.draw(st.sampled_from(SOLVERS[name]))
    problem, values, duals = solved_program(name, solver)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    of_values = data.draw(
        st.sampled_from(("kept", "perturbed", "reversed", "zero", "random", "scaled"))
    )
    of_duals = data.draw(
        st.sampled_from(("kept", "missing", "negated", "random", "swapped", "huge", "zero"))
    )
    size = 10.0 ** data.draw(st.integers(-8, 1))
    for variable, value in zip(problem.variables(), values, strict=True):
        variable.save_value(altered_value(of_values, value, size, rng))
    altered_duals(problem, of_duals, duals, rng)

    result = klopt.judge(problem)
    best = OPTIMA[name]
    slack = 1e-12 * (1 + abs(best))
    assert result.lower - slack <= best <= result.upper + slack
    assert result.verdict not in (Verdict.INFEASIBLE, Verdict.UNBOUNDED)
    if result.verdict is Verdict.OPTIMAL:
        assert problem.objective.value == pytest.approx(best, abs=5e-6 * (1 + abs(best)))
        for constraint in problem.constraints:
            assert np.max(constraint.violation()) <= 1e-5
    if of_values in ("reversed", "zero", "random") and name in ("linear", "projection"):
        assert result.verdict is not Verdict.OPTIMAL


def altered_value(how: str, value: Any, size: float, rng: np.random.Generator) -> Any:
    """A value changed in one way; symmetric matrices stay symmetric."""
    noise = rng.normal(size=value.shape)
    if value.ndim == 2:
        noise = noise + noise.T
    changed = {
        "kept": value,
        "perturbed": value + size * noise,
        "reversed": value[::-1, ::-1] if value.ndim == 2 else value[::-1],
        "zero": np.zeros_like(value),
        "random": 10 * noise,
        "scaled": (1 + size) * value,
    }
    return np.array(changed[how])


def altered_duals(problem: cp.Problem, how: str, duals: Any, rng: np.random.Generator) -> None:
    """Set the duals of all constraints, changed in one way; swapped ones are those of another."""
    for index, constraint in enumerate(problem.constraints):
        for place, variable in enumerate(constraint.dual_variables):
            own = duals[index][place]
            other = duals[index - 1][0]
            changed = {
                "kept": own,
                "missing": None,
                "negated": -own,
                "random": rng.normal(size=own.shape),
                "swapped": np.resize(other, own.shape),
                "huge": 1e9 * own,
                "zero": 0 * own,
            }
            variable.save_value(changed[how])


@given(seed=st.integers(0, 2**32 - 1), solver=st.sampled_from(["CLARABEL", "SCS", "ECOS"]))
def test_the_answer_of_another_problem_is_never_optimal(seed: int, solver: str) -> None:
    """The costs change after the solve: the old answer is optimal for the new ones only by chance."""
    rng = np.random.default_rng(seed)
    cost = cp.Parameter(2, value=np.array([1.0, 2.0]))
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cost @ x), [cp.norm(x) <= 1])
    problem.solve(solver=solver)
    cost.value = rng.normal(size=2)
    result = klopt.judge(problem)
    best = -float(np.linalg.norm(cost.value))
    assert result.lower <= best <= result.upper
    near = float(cost.value @ x.value) <= best + 5e-6 * (1 + abs(best))
    assert near or result.verdict is not Verdict.OPTIMAL


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
