"""Problems of CVXPY: its own suites pass with klopt as the solver, and what klopt says is exact."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.tests import solver_test_helpers as suites

import klopt
from klopt import InvalidProblem, InvalidSettings, Verdict
from klopt.problems import ConeProgram
from klopt.programs.cvxpy_reduction import conic_solver_class

SUITES = [
    suites.StandardTestLPs,
    suites.StandardTestQPs,
    suites.StandardTestSOCPs,
    suites.StandardTestSDPs,
    suites.StandardTestECPs,
    suites.StandardTestPCPs,
    suites.StandardTestMixedCPs,
]
NOT_FOR_CONIC_SOLVERS = {
    "test_lp_7",  # imports SDPA; its program is below
    "test_qp_bound_attr",  # reads data that CVXPY makes for QP solvers only; its program is below
}
TESTS = [
    pytest.param(test, id=f"{suite.__name__}.{name}")
    for suite in SUITES
    for name, test in inspect.getmembers(suite, inspect.isfunction)
    if name.startswith("test_")
    and not name.startswith("test_mi_")
    and name not in NOT_FOR_CONIC_SOLVERS
]
INFEASIBLE = [
    pytest.param(test, id=name)
    for name, test in inspect.getmembers(
        getattr(suites, "StandardTestInfeasibleProblems", None), inspect.ismethod
    )
    if name.startswith("test_")
]
# Versions of CVXPY differ in what they have.
PLAIN = re.compile(r"(expcone|expcone_socp|lp|pcp|qp|sdp|sdp_pcp|socp)_(\d|bounds?_attr|batched)")
PROGRAMS: dict[str, Callable[[], Any]] = {
    name: make
    for name, make in inspect.getmembers(suites, inspect.isfunction)
    if PLAIN.fullmatch(name) and not inspect.signature(make).parameters
} | {
    "sdp_1max": lambda: suites.sdp_1("max"),
    "sdp_1min": lambda: suites.sdp_1("min"),
    "socp_3ax0": lambda: suites.socp_3(axis=0),
    "socp_3ax1": lambda: suites.socp_3(axis=1),
}


def test_no_program_of_the_suites_is_missed() -> None:
    assert len(PROGRAMS) >= 23
    assert {"lp_7", "qp_0", "socp_4", "sdp_2", "expcone_socp_1", "pcp_3", "sdp_pcp_1"} <= {
        *PROGRAMS
    }


@pytest.mark.parametrize("test", TESTS)
def test_suites_of_cvxpy_pass_with_klopt_as_the_solver(test: Callable[..., Any]) -> None:
    """Objective, variables, feasibility, complementarity and duals, as CVXPY asks of its solvers."""
    test(klopt.CVXPY(), tol=1e-8)


@pytest.mark.parametrize("test", INFEASIBLE)
def test_infeasible_problems_of_cvxpy_are_proven_so_with_duals(test: Callable[..., Any]) -> None:
    test(klopt.CVXPY())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_cvxpy_are_solved_in_the_exact_sense(name: str) -> None:
    """OPTIMAL around the known value, or the right word; CVXPY's variables hold the solution."""
    known = PROGRAMS[name]()
    result = klopt.solve(known.prob, tol=1e-7)
    # Known to CVXPY by the digits that it writes down.
    best = float(known.expect_val)
    if np.isinf(best):
        infeasible = best > 0 if result.problem.sense == "min" else best < 0
        word = Verdict.INFEASIBLE if infeasible else Verdict.UNBOUNDED
        assert result.verdict is word
        assert known.prob.status == word.name.lower()
        assert known.prob.value == best
        return
    assert result.verdict is Verdict.OPTIMAL
    assert known.prob.status == "optimal"
    digits = 5e-3 if name.startswith("sdp_1") else 1e-6
    assert result.lower - digits <= best <= result.upper + digits
    assert known.prob.value == pytest.approx(result.value, abs=1e-6)
    if name != "lp_5":  # whose optimum is attained at more points than one
        known.verify_primal_values(places=3)
    known.check_primal_feasibility(places=4)
    known.check_complementarity(places=4)


def maximisation() -> tuple[cp.Problem, cp.Variable]:
    """Maximise 3 + x + 2 y over the unit disc: 3 + sqrt(5) at (1, 2) / sqrt(5)."""
    x = cp.Variable(2, name="x")
    return cp.Problem(cp.Maximize(3 + x[0] + 2 * x[1]), [cp.norm(x) <= 1]), x


def test_results_are_in_the_users_sense_and_units() -> None:
    problem, x = maximisation()
    result = klopt.solve(problem)
    best = 3 + np.sqrt(5)
    assert result.problem.sense == "max"
    assert result.lower <= best <= result.upper
    assert result.upper - result.lower <= 1e-6 * (1 + best)
    assert problem.value == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(x.value, np.array([1, 2]) / np.sqrt(5), atol=1e-3)
    # The dual of ||x|| <= r is what a larger radius is worth.
    np.testing.assert_allclose(problem.constraints[0].dual_value, np.sqrt(5), atol=1e-4)


def test_the_quadratic_of_a_maximisation_and_its_constant() -> None:
    """Maximise 1 + 4x - x^2 subject to x <= 1: 4 at x = 1, where the row is worth 2."""
    x = cp.Variable()
    problem = cp.Problem(cp.Maximize(1 + 4 * x - cp.square(x)), [x <= 1])
    result = klopt.solve(problem).require()
    assert result.lower <= 4 <= result.upper
    assert x.value == pytest.approx(1.0, abs=1e-6)
    assert problem.constraints[0].dual_value == pytest.approx(2.0, abs=1e-4)


@pytest.mark.parametrize("backend", ["scs", "clarabel", "cvxpy:SCS"])
def test_any_backend_solves(backend: str) -> None:
    problem, _ = maximisation()
    result = klopt.solve(problem, backend)
    assert result.verdict is Verdict.OPTIMAL
    assert result.route.backend.name == backend


def test_attributes_of_variables_are_part_of_the_problem() -> None:
    """Nonnegative, bounded, symmetric, semidefinite and complex variables."""
    x = cp.Variable(2, nonneg=True)
    y = cp.Variable(bounds=[-1, 2])
    S = cp.Variable((2, 2), PSD=True)
    z = cp.Variable(complex=True)
    cost = cp.sum(x) - y + cp.trace(S) - 2 * S[0, 1] + cp.abs(z - (1 + 2j))
    problem = cp.Problem(cp.Minimize(cost), [cp.sum(x) >= 1, S[0, 0] == 3])
    result = klopt.solve(problem)
    assert result.verdict is Verdict.OPTIMAL
    # Of S with S_00 = 3, S_11 - 2 S_01 is least, -1, ... at S_01 = 3, S_11 = 3: 3 + 3 - 6 = 0.
    assert result.lower <= 1 - 2 + 0 + 0 <= result.upper
    assert y.value == pytest.approx(2.0, abs=1e-5)
    np.testing.assert_allclose(S.value, np.full((2, 2), 3.0), atol=1e-2)
    assert z.value == pytest.approx(1 + 2j, abs=1e-4)


def test_rows_of_matrices_are_not_rounded() -> None:
    """X with unit diagonal and X_01 = 1 exactly is semidefinite, on the edge of the cone."""
    X = cp.Variable((2, 2), symmetric=True)
    problem = cp.Problem(cp.Minimize(cp.sum(X)), [X >> 0, cp.diag(X) == 1, X[0, 1] == 1])
    program = ConeProgram.from_cvxpy(problem)
    # Older versions of CVXPY multiply them by sqrt(2), whatever the solver.
    assert program.svec == conic_solver_class().ROWS_OF_SVEC
    if not program.svec:
        assert set(np.abs(program.A.toarray()).ravel()) <= {0.0, 0.5, 1.0}


def test_parameters_are_changed_without_compiling_again() -> None:
    p = cp.Parameter(nonneg=True)
    x = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.norm(x - 1) + p * cp.norm1(x)), [x >= 0])
    p.value = 0.0
    assert klopt.solve(problem).upper == pytest.approx(0.0, abs=1e-6)
    reduced = problem._cache.param_prog
    assert reduced is not None
    p.value = 10.0
    result = klopt.solve(problem)
    assert result.lower <= np.sqrt(3) <= result.upper
    assert problem._cache.param_prog is reduced

    # So does the solver, equal arguments making equal solvers.
    assert problem.solve(solver=klopt.CVXPY(tol=1e-7)) == pytest.approx(np.sqrt(3), abs=1e-6)
    reduced = problem._cache.param_prog
    p.value = 0.0
    assert problem.solve(solver=klopt.CVXPY(tol=1e-7)) == pytest.approx(0.0, abs=1e-6)
    assert problem._cache.param_prog is reduced


def test_plans_and_comparisons_take_problems_of_cvxpy() -> None:
    problem, _ = maximisation()
    assert {"clarabel", "scs"} <= {route.backend.name for route in klopt.plan(problem).routes}
    other = cp.Problem(cp.Minimize(cp.norm(x - 1)))
    comparison = klopt.compare(
        [problem, ("distance", other)], ["clarabel"], repeat=1, time_limit=20, progress=False
    )
    assert [run.verdict for run in comparison.runs] == [Verdict.OPTIMAL] * 2
    assert "distance" in {run.problem for run in comparison.runs}


x = cp.Variable(2, name="x")
k = cp.Variable(name="k", integer=True)
REFUSED = {
    "integer": (cp.Problem(cp.Minimize(cp.abs(k - 0.5))), r"has integer variables \(k\)"),
    "nonconvex": (
        cp.Problem(cp.Minimize(cp.sqrt(x[0])), [x >= 0]),
        "is not convex by CVXPY's rules",
    ),
    "no value": (
        cp.Problem(cp.Minimize(cp.sum(x) * cp.Parameter(name="weight", nonneg=True)), [x >= 0]),
        "the parameter weight of the CVXPY problem has no value",
    ),
    "constant": (cp.Problem(cp.Minimize(1.0)), "has no variables"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_problems_are_refused_with_the_reason(name: str) -> None:
    problem, text = REFUSED[name]
    for verb in (klopt.solve, klopt.plan, ConeProgram.from_cvxpy):
        with pytest.raises(InvalidProblem, match=text):
            verb(problem)


def test_geometric_and_quasiconvex_problems_are_refused_with_the_way_to_solve_them() -> None:
    y = cp.Variable(2, pos=True)
    # The product is at least 12 / y_0, which is least at the largest y_0.
    geometric = cp.Problem(cp.Minimize(y[0] * y[1]), [y[0] <= 3, y[1] * y[0] ** 2 >= 12])
    with pytest.raises(InvalidProblem, match=r"geometric program: .*gp=True"):
        klopt.solve(geometric)
    assert geometric.solve(solver=klopt.CVXPY(), gp=True) == pytest.approx(4.0, abs=1e-5)

    v = cp.Variable()
    quasiconvex = cp.Problem(cp.Minimize(cp.ceil(v)), [v >= 1.5])
    with pytest.raises(InvalidProblem, match=r"quasiconvex: .*qcp=True"):
        klopt.solve(quasiconvex)


def test_things_that_are_no_problems_of_cvxpy_are_refused() -> None:
    with pytest.raises(InvalidProblem, match=r"a list is no cvxpy\.Problem"):
        ConeProgram.from_cvxpy([1, 2])


def test_the_status_is_optimal_only_where_proven() -> None:
    """One iteration proves nothing: CVXPY is told of a limit or of an inaccurate answer."""
    rng = np.random.default_rng(0)
    v = cp.Variable(30)
    A = rng.normal(size=(40, 30))
    problem = cp.Problem(cp.Minimize(cp.norm(A @ v - 1) + cp.norm1(v)), [cp.log(v + 5) >= 1])
    with pytest.warns(UserWarning, match="inaccurate"):
        problem.solve(solver=klopt.CVXPY("scs", max_iter=1))
    assert problem.status in ("user_limit", "optimal_inaccurate")
    result = problem.solver_stats.extra_stats["result"]
    assert not result.verdict.conclusive
    problem.solve(solver=klopt.CVXPY("scs"))
    assert problem.status == "optimal"
    assert problem.solver_stats.solver_name == "KLOPT"
    assert problem.solver_stats.extra_stats["result"].verdict is Verdict.OPTIMAL


def test_unknown_settings_of_the_solver_are_refused() -> None:
    problem, _ = maximisation()
    with pytest.raises(InvalidSettings, match=r"klopt has no setting 'eps'; it has: .*tol"):
        klopt.CVXPY(eps=1e-3)
    with pytest.raises(InvalidSettings, match="klopt has no setting 'eps'"):
        problem.solve(solver=klopt.CVXPY(), eps=1e-3)


def test_integer_problems_are_refused_by_the_solver() -> None:
    problem, _ = REFUSED["integer"]
    with pytest.raises(cp.SolverError, match="not MIP-capable"):
        problem.solve(solver=klopt.CVXPY())


def test_klopt_does_not_import_cvxpy_before_a_problem_of_it_is_given() -> None:
    code = (
        "import sys, klopt; klopt.solve(klopt.problems.LP([1.0], bounds=(1, 2)), 'highs');"
        "klopt.problems.ConeProgram; print('cvxpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
