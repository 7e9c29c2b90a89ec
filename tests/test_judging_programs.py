"""`klopt.judge` of results of SciPy and qpsolvers; the truth is exact rationals or known by construction."""

from __future__ import annotations

import warnings
from fractions import Fraction as Q
from pathlib import Path

import numpy as np
import pytest
import qpsolvers
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp, minimize
from strategies import TINY_LP, generators
from tempting import dot, rational
from test_judging import exact_value, planted_lp

import klopt
from klopt import Verdict
from klopt.errors import InvalidProblem, InvalidSettings

PROGRAM = {"c": [1, 2], "A_ub": [[-1, -1]], "b_ub": [-1]}


def arguments(lp: klopt.problems.LP) -> dict[str, np.ndarray]:
    return {
        "c": lp.c,
        "A_ub": lp.A_ub.toarray(),
        "b_ub": lp.b_ub,
        "A_eq": lp.A_eq.toarray(),
        "b_eq": lp.b_eq,
    }


@given(generators, st.integers(2, 15))
def test_what_linprog_solves_is_proven_and_the_interval_holds_the_exact_optimum(rng, n) -> None:
    lp, x, _ = planted_lp(rng, n)
    program = arguments(lp)
    result = klopt.judge(linprog(**program), **program)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.lower <= exact_value(lp, x) <= result.upper


@pytest.mark.parametrize("method", ["highs-ds", "highs-ipm"])
def test_all_kinds_of_bounds_have_their_multipliers(method: str) -> None:
    """Every marginal is needed: a lower, an upper, a fixed and a free variable."""
    program = {
        "c": [1, -1, 2, 1],
        "A_ub": sparse.csc_array([[-1.0, 0, 0, -1.0]]),
        "b_ub": [-1],
        "A_eq": [[1, 1, 1, -1]],
        "b_eq": [0],
        "bounds": [(-2, None), (None, 3), (1, 1), (None, None)],
    }
    result = klopt.judge(linprog(**program, method=method), **program)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    exact = klopt.solve(klopt.problems.LP(**program), exact=True).exact
    assert exact is not None
    assert result.lower <= exact.value <= result.upper


@given(generators, st.integers(2, 8), st.sampled_from(["x", "swap", "missing", "sign"]))
def test_altered_results_of_linprog_are_never_called_optimal_falsely(rng, n, way: str) -> None:
    lp, x, _ = planted_lp(rng, n)
    program = arguments(lp)
    found = linprog(**program)
    if way == "x":
        found.x = found.x + rng.normal(size=n)
    elif way == "swap":
        found.ineqlin.marginals = found.ineqlin.marginals[::-1].copy()
    elif way == "missing":
        found = OptimizeResult(x=found.x, status=0, message="", ineqlin=OptimizeResult())
    else:
        found.eqlin.marginals = -found.eqlin.marginals
    result = klopt.judge(found, **program)
    optimum = exact_value(lp, x)
    assert result.lower <= optimum <= result.upper
    if result.verdict is Verdict.OPTIMAL:
        assert abs(exact_value(lp, found.x) - optimum) <= 2 * Q(1e-6) * (1 + abs(optimum))


def test_the_result_of_another_program_is_refused_or_not_optimal() -> None:
    other = linprog([1, 2, 3], A_ub=[[-1, -1, -1]], b_ub=[-1])
    with pytest.raises(InvalidProblem, match=r"x of the result has shape \(3,\); the program asks"):
        klopt.judge(other, **PROGRAM)
    similar = linprog([2, 1], A_ub=[[-1, -1]], b_ub=[-1])
    assert klopt.judge(similar, **PROGRAM).verdict is not Verdict.OPTIMAL


@pytest.mark.parametrize(
    ("program", "verdicts"),
    [
        (
            {"c": [1], "A_ub": [[1], [-1]], "b_ub": [0, -1]},
            (Verdict.INFEASIBLE, Verdict.UNPROVEN),
        ),
        ({"c": [-1], "A_ub": [[-1]], "b_ub": [0]}, (Verdict.UNBOUNDED, Verdict.UNPROVEN)),
    ],
)
def test_a_program_without_optimum_is_never_called_optimal(program, verdicts) -> None:
    result = klopt.judge(linprog(**program), **program)
    assert result.verdict in verdicts
    assert result.explain()


def test_other_results_of_scipy_and_other_arguments_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="none of linprog or milp"):
        klopt.judge(minimize(lambda x: x @ x, [1.0]), [1.0])
    with pytest.raises(InvalidSettings, match="constraints are milp's"):
        klopt.judge(linprog(**PROGRAM), [1, 2], constraints=())
    with pytest.raises(InvalidSettings, match="are linprog's"):
        klopt.judge(milp([1, 2]), **PROGRAM)
    with pytest.raises(InvalidSettings, match="missing a required argument: 'c'"):
        klopt.judge(linprog(**PROGRAM))
    broken = linprog(**PROGRAM)
    broken.x[0] = np.nan
    with pytest.raises(InvalidProblem, match=r"x\[0\] of the answer is nan"):
        klopt.judge(broken, **PROGRAM)


# milp


@pytest.mark.parametrize(
    "constraints",
    [
        LinearConstraint([[1, 1], [1, -1]], [2.5, 0], [np.inf, 0]),
        ([[1, 1], [1, -1]], [2.5, 0], [np.inf, 0]),
        [LinearConstraint([[1, 1]], 2.5), ([[1, -1]], 0, 0)],
        [([[1, 1]], 2.5), (sparse.csr_array([[1.0, -1.0]]), 0, 0), ([1, 1], -np.inf, 9)],
    ],
)
def test_a_linear_program_by_milp_is_judged_in_every_way_to_say_it(constraints) -> None:
    found = milp([1, 2], constraints=constraints, bounds=Bounds(0, 10))
    result = klopt.judge(found, [1, 2], constraints=constraints, bounds=Bounds(0, 10))
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.lower <= Q(15, 4) <= result.upper


def test_of_integers_the_relaxation_is_judged_and_said_to_be() -> None:
    rows = LinearConstraint([[1, 1]], 2.5, np.inf)
    integral = {"constraints": rows, "integrality": [1, 1]}
    found = milp([1, 2], **integral)
    result = klopt.judge(found, [1, 2], **integral)
    assert "judged is the relaxation" in result.explain()
    # x = (3, 0) costs 3, the relaxation 2.5.
    assert result.verdict is not Verdict.OPTIMAL
    assert result.lower <= 2.5
    whole = {"constraints": LinearConstraint([[1, 1]], 3, np.inf), "integrality": [1, 1]}
    same = klopt.judge(milp([1, 2], **whole), [1, 2], **whole)
    assert same.verdict is Verdict.OPTIMAL
    with pytest.raises(InvalidProblem, match="may be 0 outside their bounds"):
        klopt.judge(found, [1, 2], constraints=rows, integrality=[2, 0])


# qpsolvers


def _few(rng: np.random.Generator, size: int, most: int) -> np.ndarray:
    """A mask with at most so many places."""
    chosen = np.zeros(size, bool)
    chosen[rng.choice(size, rng.integers(0, most + 1), replace=False)] = True
    return chosen


def planted_qp(rng: np.random.Generator, n: int) -> tuple[object, np.ndarray]:
    """A quadratic program with all kinds of rows and bounds, and its solution."""
    x = rng.normal(size=n)
    F = rng.normal(size=(n, n))
    P = F @ F.T + np.eye(n)
    G = rng.normal(size=(n, n))
    A = rng.normal(size=(1, n))
    # At most n - 1 rows and bounds are tight beside the equation: with more of them, rounding of
    # the right sides decides whether there is a point at all.
    tight_rows, upper_bounds, lower_bounds = np.split(_few(rng, 3 * n, n - 1), 3)
    is_tight = tight_rows
    z = np.where(is_tight, rng.uniform(0.5, 2, n), 0.0)
    y = rng.normal(size=1)
    at_upper = upper_bounds
    at_lower = lower_bounds & ~at_upper
    z_box = rng.uniform(0.5, 2, n) * (at_upper * 1.0 - at_lower * 1.0)
    q = -(P @ x + G.T @ z + A.T @ y + z_box)
    h = G @ x + np.where(is_tight, 0.0, 1.0)
    lb = np.where(at_lower, x, x - 1)
    ub = np.where(at_upper, x, x + 1)
    return qpsolvers.Problem(P, q, G, h, A, A @ x, lb, ub), x


@given(generators, st.integers(2, 10))
def test_what_qpsolvers_finds_is_proven_near_the_planted_value(rng, n: int) -> None:
    problem, x = planted_qp(rng, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = qpsolvers.solve_problem(problem, "clarabel")
    result = klopt.judge(solution)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    # The planted pair solves the program but for rounding of its right sides.
    value = x @ problem.P @ x / 2 + problem.q @ x
    assert result.lower - 1e-9 * (1 + abs(value)) <= value <= result.upper + 1e-6 * (1 + abs(value))

    solution.x = solution.x + 0.01 * rng.normal(size=n)
    assert klopt.judge(solution).verdict is not Verdict.OPTIMAL


def test_a_solution_with_swapped_or_missing_multipliers_is_judged_by_what_is_left() -> None:
    P, q, G, h = 2 * np.eye(2), np.array([-2.0, -2.0]), np.array([1.0, 1.0]), np.array([1.0])
    problem = qpsolvers.Problem(P, q, G, h)
    solution = qpsolvers.Solution(problem, found=True, x=np.array([0.5, 0.5]), z=np.array([1.0]))
    exact = dot(*rational(q), *rational(solution.x)) + Q(1, 2)
    for z in (np.array([1.0]), np.array([-1.0]), None):
        solution.z = z
        result = klopt.judge(solution)
        assert result.lower <= exact <= result.upper
    solution.z = np.ones(3)
    with pytest.raises(InvalidProblem, match=r"ub of the answer has shape \(3,\)"):
        klopt.judge(solution)
    solution.x, solution.z = None, None
    solution.found = False
    assert klopt.judge(solution).verdict is not Verdict.OPTIMAL


# Files


RANGED = """NAME ranged
ROWS
 N cost
 G enough
 L cap
 E balance
 G range
COLUMNS
 x cost 1 enough 1
 x cap 1 balance 1
 y cost 2 enough 1
 y range 1
 z cost -1 balance -1
 z cap 1
RHS
 RHS enough 2 cap 6
 RHS balance 1 range 1
RANGES
 RNG range 3
BOUNDS
 UP BND x 4
 MI BND z
ENDATA
"""
"""Rows of every kind, a range, and bounds of every kind."""


def highs_solution(folder: Path, text: str) -> tuple[Path, Path]:
    """A program and its solution as HiGHS writes it."""
    import highspy

    model = folder / "model.mps"
    model.write_text(text)
    solution = folder / "model.sol"
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(model))
    solver.run()
    solver.writeSolution(str(solution), 0)
    return model, solution


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("flip", [False, True])
def test_a_solution_of_highs_is_proven_whatever_the_sense(tmp_path, sense: str, flip) -> None:
    text = RANGED
    if sense == "max":
        text = text.replace("ROWS", "OBJSENSE\n MAX\nROWS", 1)
    if (sense == "max") != flip:
        # The other way round, so that other rows and bounds are active.
        for name, cost in (("x", "1"), ("y", "2"), ("z", "-1")):
            negative = cost[1:] if cost.startswith("-") else f"-{cost}"
            text = text.replace(f" {name} cost {cost} ", f" {name} cost {negative} ")
    model, solution = highs_solution(tmp_path, text)
    result = klopt.judge(model, solution)
    exact = klopt.solve(klopt.problems.LP.from_file(model), exact=True)
    if exact.verdict is not Verdict.OPTIMAL:
        assert result.verdict in (exact.verdict, Verdict.UNPROVEN)
        return
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.problem.sense == sense
    assert "fitted" not in result.explain()
    assert exact.exact is not None
    assert result.lower <= exact.exact.value <= result.upper


def test_a_file_of_duals_with_the_wrong_sign_proves_less(tmp_path) -> None:
    model, solution = highs_solution(tmp_path, RANGED)
    good = klopt.judge(str(model), str(solution)).require()
    head, _, tail = solution.read_text().partition("# Dual solution values")
    solution.write_text(head + "# Dual solution values" + tail.replace("0.5", "-0.5"))
    altered = klopt.judge(model, solution)
    assert altered.lower <= good.upper
    assert good.lower <= altered.upper


SOLUTIONS = {
    "gurobi": "# Solution for model tiny\n# Objective value = 1\nx 0\ny 1\n",
    "scip": "solution status: optimal solution found\nobjective value:    1\ny    1 \t(obj:1)\n",
    "cbc": "Optimal - objective value 1.00000000\n      0 x      0      0.5\n      1 y      1      0\n",
    "cplex": (
        '<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n<CPLEXSolution version="1.2">'
        ' <header problemName="tiny" objectiveValue="1" solutionStatusString="optimal"/>'
        ' <linearConstraints><constraint name="enough" index="0" slack="0" dual="0.5"/>'
        "</linearConstraints><variables>"
        '<variable name="x" index="0" value="0" reducedCost="0.5"/>'
        '<variable name="y" index="1" value="1" reducedCost="0"/></variables></CPLEXSolution>'
    ),
}


@pytest.mark.parametrize("kind", SOLUTIONS)
def test_files_of_other_solvers_are_read(tmp_path, kind: str) -> None:
    model = tmp_path / "tiny.mps"
    model.write_text(TINY_LP)
    solution = tmp_path / "tiny.sol"
    solution.write_text(SOLUTIONS[kind])
    result = klopt.judge(model, solution)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.lower <= 1 <= result.upper
    assert ("fitted" in result.explain()) == (kind != "cplex")
    solution.write_text(SOLUTIONS[kind].replace('value="1"', 'value="2"').replace("y 1", "y 2"))
    if kind in ("gurobi", "cplex"):
        assert klopt.judge(model, solution).verdict is not Verdict.OPTIMAL


def test_files_of_arrays_are_read(tmp_path) -> None:
    model = tmp_path / "tiny.mps"
    model.write_text(TINY_LP)
    npz = tmp_path / "a.npz"
    np.savez(npz, x=[0, 1], ub=[0.5])
    written = {
        "x.json": '{"x": [0, 1], "y": [0.5]}',
        "named.json": '{"x": [0, 1], "y": {"ub": [0.5]}}',
        "klopt.json": '{"klopt": "0", "point": {"primal": {"x": [0, 1]}, "dual": {"ub": [0.5]}}}',
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    for file in (npz, *(tmp_path / name for name in written)):
        assert klopt.judge(model, file).verdict is Verdict.OPTIMAL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x 0\nyy 1\n", r"tiny.sol, line 2: the program has no column 'yy'; did you mean 'y'"),
        ("x zero\n", r"tiny.sol, line 1: 'zero' is not a number"),
        ("x\n", r"tiny.sol, line 1: expected a name and a value"),
        ("", "no values are in it"),
        ("<a></a>", "its XML holds <a>; expected <CPLEXSolution>"),
        ("<a>", "its XML is broken"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "its XML defines a document type"),
        ("x nan\n", "'nan' is not a number"),
        ("x inf\n", r"x\[0\] of the answer is inf"),
    ],
)
def test_a_file_that_is_no_solution_is_refused_with_its_line(tmp_path, text, message) -> None:
    model = tmp_path / "tiny.mps"
    model.write_text(TINY_LP)
    solution = tmp_path / "tiny.sol"
    solution.write_text(text)
    with pytest.raises(InvalidProblem, match=message):
        klopt.judge(model, solution)


def test_a_missing_file_and_a_file_of_other_arrays_are_refused(tmp_path) -> None:
    model = tmp_path / "tiny.mps"
    model.write_text(TINY_LP)
    with pytest.raises(InvalidProblem, match="no file"):
        klopt.judge(model, tmp_path / "absent.sol")
    other = tmp_path / "other.npz"
    np.savez(other, alpha=[1.0])
    with pytest.raises(InvalidProblem, match="has 'alpha'; expected x and y, or x, ub, eq"):
        klopt.judge(model, other)
    listed = tmp_path / "list.json"
    listed.write_text("[1, 2]")
    with pytest.raises(InvalidProblem, match="holds no arrays by name"):
        klopt.judge(model, listed)
