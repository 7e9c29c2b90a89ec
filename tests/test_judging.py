"""`klopt.judge` of a point of a klopt problem: true verdicts of good answers, altered answers and nonsense."""

from __future__ import annotations

import pickle
from fractions import Fraction as Q

import numpy as np
import pytest
import tempting
from hypothesis import given, strategies as st
from strategies import few_bits, generators
from tempting import dot, false_word, rational

import klopt
from klopt import Point, Verdict
from klopt.engine.registry import problems
from klopt.errors import InvalidProblem, InvalidSettings, NotCertified
from klopt.judging.entry import SOURCES
from klopt.problems import LP, QCQP, SoftMargin

TOL = 1e-6
TWO_VARIABLES = LP([1, 2], A_ub=[[-1, -1]], b_ub=[-1])


def planted_lp(rng: np.random.Generator, n: int) -> tuple[LP, np.ndarray, dict[str, np.ndarray]]:
    """A linear program of numbers with few bits, its exact solution and its exact multipliers."""
    m = n // 2 + 1
    x = np.where(rng.random(n) < 0.5, few_bits(rng.uniform(0.5, 2.0, n)), 0.0)
    A = few_bits(rng.normal(size=(m, n)))
    E = few_bits(rng.normal(size=(1, n)))
    is_tight = rng.random(m) < 0.5
    ub = np.where(is_tight, few_bits(rng.uniform(0.5, 2.0, m)), 0.0)
    eq = few_bits(rng.normal(size=1))
    lower = np.where(x == 0.0, few_bits(rng.uniform(0.5, 2.0, n)), 0.0)
    b = A @ x + np.where(is_tight, 0.0, few_bits(rng.uniform(0.5, 2.0, m)))
    c = lower - A.T @ ub - E.T @ eq
    return LP(c, A, b, E, E @ x), x, {"ub": ub, "eq": eq, "lower": lower}


def exact_value(lp: LP, x: np.ndarray) -> Q:
    return dot(*rational(lp.c), *rational(x))


def exact_violation(lp: LP, x: np.ndarray) -> Q:
    """The largest violation of a row, relative to 1 plus the size of its right-hand side."""
    point = rational(x)[0]
    over = [
        (dot(row, point) - side) / (1 + abs(side))
        for row, side in zip(rational(lp.A_ub.toarray()), rational(lp.b_ub)[0], strict=True)
    ]
    off = [
        abs(dot(row, point) - side) / (1 + abs(side))
        for row, side in zip(rational(lp.A_eq.toarray()), rational(lp.b_eq)[0], strict=True)
    ]
    return max(*over, *off, *(-v for v in point))


# Good answers


@given(generators, st.integers(2, 12))
def test_an_exact_solution_is_proven_and_its_value_is_exact(rng, n: int) -> None:
    lp, x, y = planted_lp(rng, n)
    result = klopt.judge(lp, x, y)
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower <= exact_value(lp, x) <= result.upper
    assert result.iterations is None
    assert str(result.route) == "given on primal"


@pytest.mark.parametrize("problem", problems(), ids=lambda cls: cls.__name__)
def test_what_klopt_itself_solves_is_judged_optimal_for_every_problem(problem) -> None:
    instance = problem.sample(np.random.default_rng(0), 6)
    solved = klopt.solve(instance).require()
    result = klopt.judge(instance, solved)
    assert result.verdict is Verdict.OPTIMAL, result.explain()
    assert result.lower <= solved.upper
    assert solved.lower <= result.upper


def test_one_vector_of_multipliers_may_leave_out_those_of_bounds() -> None:
    rows_only = klopt.judge(TWO_VARIABLES, [1, 0], [1])
    everything = klopt.judge(TWO_VARIABLES, [1, 0], [1, 0, 1, 0, 0])
    by_name = klopt.judge(TWO_VARIABLES, {"x": [1, 0]}, {"ub": [1]})
    for result in (rows_only, everything, by_name):
        assert result.verdict is Verdict.OPTIMAL
        assert result.lower <= 1 <= result.upper


def test_multipliers_alone_bound_the_optimum_and_claim_no_point() -> None:
    result = klopt.judge(TWO_VARIABLES, y={"ub": [1]})
    assert result.lower == pytest.approx(1, abs=1e-9)
    assert result.verdict is Verdict.UNPROVEN
    assert "has no point" in result.explain()


def test_a_judged_result_can_be_pickled_explained_and_required() -> None:
    result = klopt.judge(TWO_VARIABLES, [1, 0], [1]).require()
    again = pickle.loads(pickle.dumps(result))
    assert (again.lower, again.upper, again.verdict) == (result.lower, result.upper, result.verdict)
    assert "given on primal" in result.explain()
    with pytest.raises(NotCertified, match="the answer itself is not optimal"):
        klopt.judge(TWO_VARIABLES, [0, 0], [1]).require()


def test_the_certificate_of_a_judged_answer_travels(tmp_path) -> None:
    file = tmp_path / "proof.json"
    klopt.judge(TWO_VARIABLES, [1, 0], [1]).certificate.save(file)
    assert klopt.check(file)


# Altered answers


@given(generators, st.integers(2, 10), st.floats(-9, 0), st.booleans(), st.booleans())
def test_an_altered_solution_is_called_optimal_only_where_it_is_as_good_as_optimal(
    rng, n: int, exponent: float, has_duals: bool, are_swapped: bool
) -> None:
    lp, x, y = planted_lp(rng, n)
    optimum = exact_value(lp, x)
    altered = x + 10.0**exponent * rng.normal(size=n)
    duals = {name: rng.permutation(array) for name, array in y.items()} if are_swapped else y
    result = klopt.judge(lp, altered, duals if has_duals else None)
    assert result.lower <= optimum <= result.upper
    if result.verdict is Verdict.OPTIMAL:
        # Once for the interval, once for the value beside it.
        allowed = 2 * Q(TOL) * (1 + abs(Q(result.upper)))
        assert abs(exact_value(lp, altered) - optimum) <= allowed
        assert exact_violation(lp, altered) <= Q(TOL) * Q(1 + 1e-9)


@given(generators, st.integers(2, 8))
def test_the_answer_of_another_problem_is_never_optimal_unless_it_is(rng, n: int) -> None:
    lp, x, _ = planted_lp(rng, n)
    _, other, duals = planted_lp(rng, n)
    result = klopt.judge(lp, other, duals)
    assert result.lower <= exact_value(lp, x) <= result.upper
    if exact_violation(lp, other) > Q(TOL):
        assert result.verdict is not Verdict.OPTIMAL


@pytest.mark.parametrize("family", tempting.FAMILIES)
def test_no_false_word_about_problems_made_to_tempt_a_judge(family: str) -> None:
    """Random, huge and tiny answers to problems whose optimum is known in exact arithmetic."""
    rng = np.random.default_rng(7)
    problem, truth = tempting.instance(family, 0)
    shapes = klopt.judging.given.expected_arrays(problem)
    for size in (0.0, 1e-8, 1.0, 1e8):
        primal, dual = (
            {name: size * rng.normal(size=shape) for name, shape in part.items()} for part in shapes
        )
        if not (primal or dual):
            return
        result = klopt.judge(problem, Point(primal, dual), time_limit=10)
        assert false_word(result, truth) == ""


def test_a_point_that_meets_the_constraints_only_on_the_scale_of_another_row_is_not_optimal() -> (
    None
):
    """Row 1 is violated by 0.1 of its own side, 1e-10 of the largest."""
    lp = LP([1, 1], A_ub=[[-1, 0], [0, -1]], b_ub=[-1e9, -1])
    result = klopt.judge(lp, [1e9, 0.9], {"ub": [1, 1]})
    assert result.verdict is Verdict.UNPROVEN
    assert "row 1 is violated" in result.explain()


def test_arrays_that_a_form_does_not_keep_are_compared_with_the_proven_ones() -> None:
    problem = klopt.problems.MultipleKernel.sample(np.random.default_rng(0), 8)
    solved = klopt.solve(problem).require().point
    alpha = solved.alpha.copy()
    alpha[:2] += 0.5
    altered = klopt.judge(problem, Point({**solved.primal, "alpha": alpha}, solved.dual))
    assert altered.verdict is not Verdict.OPTIMAL


def test_an_infeasible_program_stays_infeasible_whatever_the_answer() -> None:
    lp = LP([1.0], A_ub=[[1.0], [-1.0]], b_ub=[0.0, -1.0])
    result = klopt.judge(lp, [0.5], [1.0, 1.0])
    assert result.verdict in (Verdict.INFEASIBLE, Verdict.UNPROVEN)
    assert set(result.duals) <= {"ub", "eq", "lower", "upper"}


# Bad calls


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        ([1, 0, 0], None, r"x of the answer has shape \(3,\); expected \(2,\)"),
        ([np.nan, 0], None, r"x\[0\] of the answer is nan; every entry must be a number"),
        ([1, -np.inf], None, r"x\[1\] of the answer is -inf"),
        ([1, 1e200], None, r"x\[1\] of the answer is 1e\+200"),
        ([1, 0], [1, 1], "y has 2 entries; the multipliers of this problem are ub"),
        ([1, 0], {"up": [1]}, "y has 'up'; this problem has ub, eq, lower, upper"),
        ([1, 0], {"ub": [1, 2]}, r"ub of the answer has shape \(2,\); expected \(1,\)"),
        ([1, 0], {"ub": [np.nan]}, r"ub\[0\] of the answer is nan"),
        (None, None, "needs a point x, multipliers y or both"),
        ({"z": [1, 0]}, None, "x has 'z'; this problem has x"),
        ("abc", None, "x"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_is_wrong(x, y, text: str) -> None:
    with pytest.raises(InvalidProblem, match=text):
        klopt.judge(TWO_VARIABLES, x, y)


def test_a_bad_call_says_what_may_be_given() -> None:
    with pytest.raises(InvalidProblem, match="klopt cannot judge a dict; it can judge"):
        klopt.judge({"x": 1})
    with pytest.raises(InvalidSettings, match=r"judge\(LP, ...\) takes x, y"):
        klopt.judge(TWO_VARIABLES, [1, 0], [1], sample_weight=[1])
    with pytest.raises(InvalidSettings, match="tol is 2"):
        klopt.judge(TWO_VARIABLES, [1, 0], tol=2)


def test_points_of_another_problem_are_refused() -> None:
    svm = SoftMargin(np.eye(2), [1, -1], 1.0)
    with pytest.raises(InvalidProblem, match="does not fit SoftMargin"):
        klopt.judge(svm, Point({"x": [1.0, 1.0]}))
    with pytest.raises(InvalidProblem, match=r"alpha of the answer has shape \(3,\)"):
        klopt.judge(svm, Point({"alpha": [1.0, 1.0, 1.0]}))


def test_the_table_of_sources_names_functions_that_take_an_answer_and_settings() -> None:
    import inspect
    from importlib import import_module

    for place in SOURCES.values():
        module, _, name = place.partition(":")
        read = getattr(import_module(f"klopt.judging.{module}"), name)
        assert "settings" in inspect.signature(read).parameters


def test_a_quadratic_program_is_judged_like_any_other() -> None:
    qp = QCQP(2 * np.eye(2), [-2, -2], A_ub=[[1, 1]], b_ub=[1])
    result = klopt.judge(qp, [0.5, 0.5], {"ub": [1.0]})
    assert result.verdict is Verdict.OPTIMAL
    assert result.lower <= -1.5 <= result.upper
    # The repair of a proof finds the optimum itself; the answer is not it all the same.
    off = klopt.judge(qp, [0.6, 0.4], {"ub": [1.0]})
    assert off.verdict is Verdict.UNPROVEN
    assert "its value is -1.48" in off.explain()
