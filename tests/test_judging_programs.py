"""`klopt.judge` of results of SciPy and qpsolvers; the truth is exact rationals or known by construction."""

from __future__ import annotations

import warnings
from fractions import Fraction as Q

import numpy as np
import pytest
import qpsolvers
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp, minimize
from strategies import generators
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


def planted_qp(rng: np.random.Generator, n: int) -> tuple[object, np.ndarray]:
    """A quadratic program with all kinds of rows and bounds, and its solution."""
    x = rng.normal(size=n)
    F = rng.normal(size=(n, n))
    P = F @ F.T + np.eye(n)
    G = rng.normal(size=(n, n))
    A = rng.normal(size=(1, n))
    is_tight = rng.random(n) < 0.4
    z = np.where(is_tight, rng.uniform(0.5, 2, n), 0.0)
    y = rng.normal(size=1)
    at_upper = rng.random(n) < 0.2
    at_lower = ~at_upper & (rng.random(n) < 0.2)
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
