"""No false word: verdicts and intervals hold in exact arithmetic about the data as stored.

`tests/tempting.py` has the families, their exact truths and the judge. Below them stands every
problem on which klopt was once wrong. Files of public programs are read from the folder KLOPT_DATA.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from fractions import Fraction as Q
from pathlib import Path

import flint
import mpmath
import numpy as np
import pytest
import tempting
from hypothesis import Phase, given, settings, strategies as st
from sklearn.datasets import load_breast_cancer
from strategies import at_most
from tempting import Says, Truth, exact_lp, false_word

import klopt
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, NoRoute
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import Form
from klopt.model.functions import Quadratic
from klopt.model.problem import Problem
from klopt.model.sets import Simplex
from klopt.problems import (
    LP,
    QCQP,
    SDP,
    AdaptiveKernel,
    EpsilonMargin,
    LogDetPairs,
    MultipleKernel,
    SaddlePoint,
    SimplexProgram,
    SoftMargin,
    SpectralRls,
)

FOLDER = os.environ.get("KLOPT_DATA", "")
needs_data = pytest.mark.skipif(
    not FOLDER, reason="KLOPT_DATA does not name the folder of the public instances"
)
SECONDS = 5.0
NATIVE = (None, "clarabel", "scs", "ecos")
FREE = (None, None)
BLOCKS = [[-1, -1, 0, 0], [0, 0, 1, 1]]


def judged(
    problem: Problem, truth: Truth, backend: str | Backend | None = None, tol: float = 1e-6
) -> Result:
    """Return the result, of which nothing is false."""
    # In this process, but for ECOS, which may crash: starting others takes most of the limit.
    isolate = None if backend == "ecos" else False
    result = klopt.solve(problem, backend, tol=tol, time_limit=SECONDS, isolate=isolate)
    assert not false_word(result, truth), result.explain()
    return result


# The families


# A smaller seed is no simpler problem: nothing is shrunk.
@pytest.mark.parametrize("family", tempting.FAMILIES)
@settings(at_most(15), phases=(Phase.explicit, Phase.generate))  # of each of thirty families
@given(number=st.integers(0, 10**9), turn=st.integers(0, 10**6))
def test_no_false_word(family: str, number: int, turn: int) -> None:
    """Whoever answers: klopt's own choice, a backend, a liar, or one that writes into its input."""
    try:
        problem, truth = tempting.instance(family, number)
    except InvalidProblem:
        return
    names = tempting.contenders(problem)
    contender = names[turn % len(names)]
    try:
        result = tempting.answer(problem, contender, number, SECONDS)
    except NoRoute:
        return
    assert not false_word(result, truth), f"{contender}: {result.explain()}"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("family", tempting.FAMILIES)
def test_every_contender(family: str, number: int) -> None:
    wrong = []
    for contender in tempting.contenders(tempting.instance(family, number).problem):
        # A problem whose data a backend has changed is not solved again.
        problem, truth = tempting.instance(family, number)
        word = false_word(tempting.answer(problem, contender, number, SECONDS), truth)
        if word:
            wrong.append(f"{contender}: {word}")
    assert not wrong, "\n".join(wrong)


def test_an_answer_of_the_wrong_size_is_an_outcome_and_not_an_error() -> None:
    """A backend's point is no start that the user gave: solve returns what it proves, if anything."""
    problem = SpectralRls([[1.0, -1.0], [-1.0, 1.0]], [0, 1], C=1.0, mu=1.0)
    result = klopt.solve(problem, Says(Stop.OPTIMAL, x=[0.5]), time_limit=SECONDS)
    assert result.verdict.name in ("UNPROVEN", "FEASIBLE", "OPTIMAL")


# The judge of the judge


def result_of(verdict: str, lower: float, upper: float, proof: str = "bracket") -> Result:
    """A result that says so, of a program that minimises."""
    from dataclasses import replace

    result = klopt.solve(LP([1.0], bounds=(1, 2)))
    certificate = replace(
        result.certificate,
        verdict=klopt.Verdict[verdict],
        lower=lower,
        upper=upper,
        proof=proof,  # type: ignore[arg-type]
    )
    return replace(result, certificate=certificate)


ONE = Truth("optimal", Q(1))
EPS = 2.0**-52


@pytest.mark.parametrize(
    ("verdict", "lower", "upper", "truth"),
    [
        ("OPTIMAL", 1.0, 1.0, ONE),
        ("OPTIMAL", 1.0 - EPS, 1.0 + EPS, ONE),
        ("FEASIBLE", -math.inf, 1.0, ONE),
        ("UNPROVEN", -math.inf, math.inf, ONE),
        ("UNPROVEN", 0.5, math.inf, Truth("infeasible")),
        ("UNPROVEN", -math.inf, 7.0, Truth("unbounded")),
        ("FEASIBLE", -math.inf, 7.0, Truth("unbounded")),
        ("INFEASIBLE", math.inf, math.inf, Truth("infeasible")),
        ("UNBOUNDED", -math.inf, -math.inf, Truth("unbounded")),
        ("OPTIMAL", 1.0, 1.0, Truth("not attained", Q(1))),
        ("OPTIMAL", 0.5, 0.5, Truth("optimal", (Q(1, 3), Q(1, 2)))),
    ],
)
def test_the_judge_lets_true_words_pass(
    verdict: str, lower: float, upper: float, truth: Truth
) -> None:
    assert not false_word(result_of(verdict, lower, upper), truth)


@pytest.mark.parametrize(
    ("verdict", "lower", "upper", "truth"),
    [
        ("OPTIMAL", 1.0 + EPS, 1.0 + EPS, ONE),
        ("OPTIMAL", 1.0 - EPS, 1.0 - EPS / 2, ONE),
        ("OPTIMAL", 0.9, 1.1, ONE),
        ("OPTIMAL", -math.inf, 1.0, ONE),
        ("UNPROVEN", math.nan, math.inf, ONE),
        ("UNPROVEN", 1.0 + EPS, math.inf, ONE),
        ("FEASIBLE", -math.inf, 1.0 - EPS / 2, ONE),
        ("INFEASIBLE", math.inf, math.inf, ONE),
        ("UNBOUNDED", -math.inf, -math.inf, ONE),
        ("INFEASIBLE", math.inf, math.inf, Truth("unbounded")),
        ("UNBOUNDED", -math.inf, -math.inf, Truth("infeasible")),
        ("UNBOUNDED", -math.inf, -math.inf, Truth("weakly infeasible")),
        ("FEASIBLE", -math.inf, math.inf, Truth("infeasible")),
        ("UNPROVEN", -math.inf, 5.0, Truth("infeasible")),
        ("UNPROVEN", 5.0, math.inf, Truth("unbounded")),
        ("OPTIMAL", 0.0, 0.0, Truth("unbounded")),
        ("OPTIMAL", 0.6, 0.6, Truth("optimal", (Q(1, 3), Q(1, 2)))),
    ],
)
def test_the_judge_finds_false_words(
    verdict: str, lower: float, upper: float, truth: Truth
) -> None:
    assert false_word(result_of(verdict, lower, upper), truth)


def test_a_weakly_infeasible_program_has_no_farkas_vector() -> None:
    truth = Truth("weakly infeasible")
    assert false_word(result_of("INFEASIBLE", math.inf, math.inf, "farkas"), truth)


def test_exact_optima_of_linear_programs() -> None:
    assert exact_lp([1, 1], [[-1, -2]], [-1]) == Truth("optimal", Q(1, 2))
    assert exact_lp([-1, 0], [[1, -1]], [0]) == Truth("unbounded")
    assert exact_lp([0, 0], [[1, 1], [-1, -1]], [1, -2]) == Truth("infeasible")
    equations = [[1, 2, 3], [2, 4, 6]]
    assert exact_lp([3, 2, 4], A_eq=equations, b_eq=[6, 12]) == Truth("optimal", Q(6))
    assert exact_lp([3, 2, 4], A_eq=equations, b_eq=[6, 13]) == Truth("infeasible")


def test_exact_optima_of_support_vector_machines() -> None:
    # The multipliers (1, 1) of the class docstring, and a box that is tight.
    assert tempting.soft_margin_truth([[2, 1], [1, 2]], [1, -1], 10) == Truth("optimal", Q(1))
    tight = tempting.soft_margin_truth([[2, 1], [1, 2]], [1, -1], 0.5)
    assert tight == Truth("optimal", Q(3, 4))


# T1, T4: infeasible linear matrix inequalities


@pytest.mark.parametrize("cost", [1.0, 0.0, -1.0])
@pytest.mark.parametrize(
    "F",
    [
        # [[x + 2000, 1], [1, 0]] has determinant -1 for every x; then the same under a congruence.
        ([[-2000.0, -1], [-1, 0]], [[1.0, 0], [0, 0]]),
        ([[0.0, -1], [-1, -2000]], [[1.0, 1000], [1000, 1e6]]),
    ],
)
def test_t1_no_point_makes_a_negative_determinant_psd(cost: float, F: tuple[object, ...]) -> None:
    judged(SDP([cost], [np.array(M, dtype=float) for M in F]), Truth("weakly infeasible"))


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_t4_weakly_infeasible_programs(n: int, size: int) -> None:
    rng = np.random.default_rng([1, n, size])
    # Large ones take all routes seconds each.
    for _ in range(3 if n < 4 else 1):
        F = [np.zeros((n, n))]
        F[0][0, 0] = 1
        for _ in range(min(2, n - 2)):
            a = rng.integers(-2, 3, size=(n, n))
            M = (a + a.T).astype(float)
            M[1:, 1:] = 0
            M[0, 1] = M[1, 0] = 0
            F.append(M)
        F0 = -np.eye(n)
        F0[:2, :2] = [[0, -1], [-1, 0]]
        F = tempting.congruent([F0, *F], tempting.congruence(rng, n, size))
        c = rng.integers(-1, 2, size=len(F) - 1).astype(float)
        for backend in ("clarabel", "scs", None):
            judged(SDP(c, F), Truth("weakly infeasible"), backend)


# T2: decoupled blocks


@pytest.mark.parametrize(
    ("dear", "cheap", "side", "backend"),
    [
        *((1e6, 1e-9, 1e5, backend) for backend in (None, "clarabel", "ecos")),
        (1e16, 1.0, 5.0, None),
        (1e12, 1e-4, 5e2, None),
        (1e8, 1e-7, 1e3, None),
        (1e4, 1e-11, 1e7, None),
        (1.0, 1e-15, 1e11, None),
        (1e4, 1e-11, 1e7, "scs"),
    ],
)
def test_t2_a_cheap_block_is_unbounded(
    dear: float, cheap: float, side: float, backend: str | None
) -> None:
    # The ray (0, 0, -1, 1).
    problem = LP([dear, dear, -cheap, -2 * cheap], BLOCKS, [0, side], bounds=FREE)
    judged(problem, Truth("unbounded"), backend)


def test_t2_multipliers_that_forget_a_block() -> None:
    problem = LP([1e16, 1e16, -1, -1], BLOCKS, [0, 5], bounds=FREE)
    liar = Says(Stop.OPTIMAL, x=[0] * 4, y=[1e16, 0])
    judged(problem, Truth("optimal", Q(-5)), liar)


def test_t2_a_point_that_forgets_a_block() -> None:
    problem = LP([0, 0, 1, 1], A_eq=[[1, 1, 0, 0], [0, 0, 1, 1]], b_eq=[1e15, 1.0])
    liar = Says(Stop.OPTIMAL, x=[1e15, 0, 0, 0], y=[0] * 6)
    judged(problem, ONE, liar)


# T3, T8: contradictions beside large numbers


@pytest.mark.parametrize(
    "problem",
    [
        LP([1, 1], A_ub=[[0, 0], [-1, -1]], b_ub=[-1e-7, -1e8]),
        LP([1, 1], A_ub=[[0, 0], [-1, -1]], b_ub=[-1e-3, -1e12]),
        LP([1, 1], A_eq=[[0, 0], [1, 1]], b_eq=[1e-10, 1e6]),
    ],
)
def test_t3_an_empty_row_is_decided_by_its_own_side(problem: LP) -> None:
    assert judged(problem, Truth("infeasible")).verdict.name == "INFEASIBLE"


T8 = (
    (1e-6, 1e9, None),
    (1e-6, 1e9, "clarabel"),
    (1e-6, 1e9, "scs"),
    (1e-6, 1e9, "ecos"),
    (1e-4, 1e12, "scs"),
    (1e-4, 1e12, "ecos"),
    (1e-8, 1e6, "clarabel"),
    (1e-8, 1e6, "scs"),
    (1e-8, 1e6, "ecos"),
)


@pytest.mark.parametrize(("gap", "large", "backend"), T8)
def test_t8_a_contradiction_beside_a_large_block(
    gap: float, large: float, backend: str | None
) -> None:
    A = [[0, 0, 1, 1], [0, 0, -1, -1], [-1, -1, 0, 0]]
    problem = LP([1, 1, 0, 0], A_ub=A, b_ub=[1, -1 - gap, -large])
    result = judged(problem, Truth("infeasible"), backend)
    # The sum of two rows is 0 <= -gap: HiGHS says so, and it is proven.
    if backend is None:
        assert result.verdict.name == "INFEASIBLE"


# T5, T7: a lower end above an exactly feasible point

HINF3 = (
    *("-56.94078801534353", "-186.61482860452182", "-130.19482768277425", "-374.6095939275629"),
    *("-16.648911703556056", "88.26648028776984", "-50.61350343977018", "-1690485.1096887565"),
    *("-3591868.536767377", "-7631845.503240954", "818871.0686721579", "1739901.674779696"),
    "-396661.4711599197",
)
HINF4 = (
    "-2.7150731854388364791692348402958446052249e+2",
    "-4.5252537650027763400741122904211286732405e+2",
    "2.9378264404067262842746274816765234867379e+2",
    "-1.9675169143683659655406664896468301027871e+2",
    "-1.6694494360815223368387754852397797755100e+2",
    "1.1527275145510139745812904546070385205929e+2",
    "-6.9470585310748356304562310614950756701476e+1",
    "-9.9953138493090792361853213150595981505148e+19",
    "5.3479177005103683608739599888141715627884e+19",
    "-2.9155810015177650331316372039428721110309e+19",
    "9.0148630773156917929444614871796788584394e+19",
    "-5.1414846541749032066513943638279017271037e+19",
    "-9.9974888315817770407148422182808282411242e+19",
)
HINF8 = (
    "-107.81568217054986",
    "-3321.8410172538467",
    "194.49187983382801",
    "-400.59653591635101",
    "2106.7872630977086",
    "1438.1583523901753",
    "-7704.5996055249874",
    "-112406193093304.04",
    "20316413455440.708",
    "-63318004447529.688",
    "82320171250053.107",
    "18764294327168.067",
    "-79262879395690.767",
)


def objective_if_definite(path: Path, x: list[Q]) -> Q | None:
    """Return c'x if sum x_i F_i - F_0 of an SDPA file is positive definite, in rationals."""
    lines = [s for s in path.read_text().splitlines() if not s.lstrip().startswith(('"', "*"))]
    m = int(lines[0].split()[0])
    sizes = [int(t) for t in re.findall(r"[-+]?\d+", lines[2])]
    words = " ".join(lines[3:]).replace(",", " ").split()
    c = [Q(float(t)) for t in words[:m]]
    words = words[m:]
    blocks = [[[Q(0)] * n for _ in range(n)] for n in sizes]
    for k in range(0, len(words) - 4, 5):
        i, b, r, s = map(int, words[k : k + 4])
        v = Q(float(words[k + 4])) * (x[i - 1] if i else -1)
        blocks[b - 1][r - 1][s - 1] += v
        if r != s:
            blocks[b - 1][s - 1][r - 1] += v
    if not all(map(tempting.is_definite, blocks)):
        return None
    return tempting.dot(c, x)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "x"), [("hinf3", HINF3), ("hinf4", HINF4), ("hinf8", HINF8)])
def test_t5_t7_no_lower_end_above_a_feasible_point(name: str, x: tuple[str, ...]) -> None:
    path = Path(FOLDER) / "sdp" / f"{name}.dat-s"
    # The point of hinf3 is made of floats, the others of decimals.
    point = [Q(float(v)) if name == "hinf3" else Q(v) for v in x]
    objective = objective_if_definite(path, point)
    assert objective is not None
    result = klopt.solve(SDP.from_file(path), time_limit=60)
    assert result.lower <= objective, result.explain()


# T6: large pivots


@pytest.mark.parametrize("k", [30, 34, 42, 50, 53])
def test_t6_equations_with_one_solution(k: int) -> None:
    R = 2.0**k
    judged(LP([0, 1], A_eq=[[R, 1], [1, 0]], b_eq=[R + 2, 1]), Truth("optimal", Q(2)))


def test_t6_three_variables() -> None:
    R = 2.0**53
    A = [[R, 1, 0], [1, 0, 0], [-R, 0, 1], [-1, 0, 0]]
    problem = LP([1, 1, 1], A_eq=A, b_eq=[R + 2, 1, -R + 2, -1])
    judged(problem, Truth("optimal", Q(5)))


# T9, T10, T12: rows that are nearly parallel


@pytest.mark.parametrize(
    ("tilt", "backend"),
    [(2.0**-26, "ecos"), (1e-7, "scs"), *((1e-9, backend) for backend in NATIVE)],
)
def test_t9_feasible_far_away(tilt: float, backend: str | None) -> None:
    A = [[1, -1], [-(1 + tilt), 1]]
    truth = exact_lp([1, 1], A, [-1, 0])
    if tilt == 2.0**-26:
        assert truth == Truth("optimal", Q(2**27 + 1))
    judged(LP([1, 1], A, [-1, 0]), truth, backend)


@pytest.mark.parametrize(
    ("tilt", "backend"), [(1e-7, "scs"), *((1e-9, backend) for backend in NATIVE)]
)
def test_t10_bounded_far_away(tilt: float, backend: str | None) -> None:
    A = [[1, -1], [-(1 - tilt), 1]]
    truth = exact_lp([-1, 0], A, [0, 1])
    assert truth.kind == "optimal"
    judged(LP([-1, 0], A, [0, 1]), truth, backend)


def test_t10_tol_has_nothing_to_do_with_a_ray() -> None:
    A = [[1, -1], [-0.95, 1]]
    truth = exact_lp([-1, 0], A, [0, 1])
    liar = Says(Stop.UNBOUNDED, x=[0, 0], ray=[1, 1])
    judged(LP([-1, 0], A, [0, 1]), truth, liar, tol=0.1)


def test_t10_a_little_curvature_is_curvature() -> None:
    judged(QCQP(np.diag([1, 1e-16]), [0, -1]), Truth("optimal", -1 / (2 * Q(1e-16))))


def test_t12_a_small_slope_is_a_slope() -> None:
    bounds = [(0, None), (None, None)]
    judged(LP([-1, 1], A_ub=[[1 - 1e-8, -1]], b_ub=[0], bounds=bounds), Truth("unbounded"))
    judged(LP([-1e-11], bounds=FREE), Truth("unbounded"))


# T11: nearly the same points with different labels

NEAR = 0.9999999999999961
T11 = 1 / (1 - Q(NEAR))


@pytest.mark.parametrize(
    ("problem", "value"),
    [
        (SoftMargin([[1, NEAR], [NEAR, 1]], [-1, 1], C=1e16), T11),
        (SoftMargin([[1, NEAR], [NEAR, 1]], [-1, 1], C=math.inf), T11),
        (MultipleKernel([[[1, NEAR], [NEAR, 1]]] * 2, [-1, 1], 1e16), T11),
        (EpsilonMargin([[1, NEAR], [NEAR, 1]], [1, -1], 1e16, 0.0), T11),
    ],
)
def test_t11_two_points(problem: Problem, value: Q) -> None:
    judged(problem, Truth("optimal", value))


@pytest.mark.parametrize(
    ("distance", "C"),
    [
        *((distance, 1e16) for distance in (4e-15, 1e-13, 1e-12, 1e-11)),
        *((1e-12, C) for C in (1e9, 1e10, 1e11)),
    ],
)
def test_t11_the_table(distance: float, C: float) -> None:
    k = 1 - distance
    K = [[1, k], [k, 1]]
    truth = Truth("optimal", tempting.pair_value(Q(2), 2 * (1 - Q(k)), Q(C)))
    judged(SoftMargin(K, [-1, 1], C), truth)
    if C == 1e16:
        judged(MultipleKernel([K, K], [-1, 1], C), truth)
        judged(EpsilonMargin(K, [1, -1], C, 0.0), truth)


def test_t11_adaptive_kernel() -> None:
    k = 1 - 1e-12
    C, eta = 1e11, 1e45
    quartic = (2 + 2 * Q(k) ** 2) / (16 * Q(eta))
    value = tempting.concave_quartic(Q(2), 2 * (1 - Q(k)), quartic, Q(C))
    problem = AdaptiveKernel([[1, k], [k, 1]], [-1, 1], C, eta=eta)
    judged(problem, Truth("optimal", value))


def test_t11_three_points_at_a_tight_tolerance() -> None:
    a, b, c = 0.9999999237164432, 0.9999999646338239, 0.9999999828298992
    K = [[1.0, a, b], [a, 1.0, c], [b, c, 1.0]]
    truth = tempting.soft_margin_truth(K, [-1, 1, -1], 1e9)
    assert truth == Truth("optimal", Q(9007199254740992, 154654519))
    judged(SoftMargin(K, [-1, 1, -1], 1e9), truth, tol=1e-12)


# T13: more than rounding


@pytest.mark.parametrize("backend", [None, "clarabel"])
def test_t13_a_duality_gap(backend: str | None) -> None:
    # x1 = 0 for every feasible x.
    F = (
        [[-4, 2, 2], [2, -1, -1], [2, -1, -1]],
        [[2, -1, -2], [-1, 1, 1], [-2, 1, 1]],
        [[1, -1, 0], [-1, 1, 0], [0, 0, 0]],
    )
    problem = SDP([1, 0], [np.array(M, dtype=float) for M in F])
    judged(problem, Truth("optimal", Q(0)), backend)


def test_t13_a_linear_program() -> None:
    A = [[3, -3], [-(1 + 2.0**-25), 1]]
    truth = exact_lp([1, 1], A, [-6, 0])
    assert truth == Truth("optimal", Q(134217730))
    judged(LP([1, 1], A, [-6, 0]), truth, "ecos")


# T14, T18: pairs

TRIANGLE = (
    *(0.9998936829714148, 0.9996971053947626, 0.9997275490445234, 0.9998435562464022),
    *(0.9999487055452579, 0.9996564561609355, 0.9999518685132065),
    *(0.999828438904931, 0.9999533320091565, 0.9996892991319698, 0.9999148924483394),
    *(0.9997249419300707, 0.9999741269484742),
    *(0.9997014850501057, 0.9998075829645453, 0.9998895763098368, 0.9999788621790171),
    0.9998720238626768,
    *(0.9994073610639175, 0.9997443448394393, 0.999537794166885, 0.9998582088728882),
    *(0.9999292667385273, 0.999865697012004, 0.9998412042830238),
    *(0.9998704380224225, 0.9999823850291606, 0.9998143073295747),
)
SIMILAR = [
    *((0, 4), (3, 6), (0, 5), (0, 1), (5, 6), (0, 7), (0, 3), (6, 7), (2, 6)),
    *((4, 6), (2, 5), (1, 7), (5, 7), (1, 3), (2, 3), (3, 5), (1, 2), (4, 7)),
]
DISSIMILAR = [(0, 2), (1, 5), (1, 4), (1, 6), (2, 7), (3, 7), (2, 4), (3, 4)]


TIGHT = {
    (0, 4): 4972044.6,
    (0, 3): 8107600.2,
    (4, 6): 1283917.3,
    (2, 3): 3737308.8,
    (3, 5): 470876356.8,
    (4, 7): 83573182.4,
    (1, 5): 787469179.9,
    (3, 7): 448156343.7,
}
"""The tight pairs, and multipliers near the optimal ones."""


def test_t14_an_ill_conditioned_kernel() -> None:
    n = 8
    K0 = np.eye(n)
    K0[np.triu_indices(n, 1)] = TRIANGLE
    K0 = np.triu(K0) + np.triu(K0, 1).T
    upper, lower = 0.00029823488070956916, 0.00014911744035478458
    truth = tempting.logdet_truth(K0, SIMILAR, DISSIMILAR, upper, lower, TIGHT)
    judged(LogDetPairs(K0, SIMILAR, DISSIMILAR, upper=upper, lower=lower), truth)


def test_t18_duplicates_force_an_equality() -> None:
    e = float(np.exp(-1))
    d = 1 - e
    K0 = np.array([[1, 1, e], [1, 1, e], [e, e, 1]])
    t = Q(d) / (2 - 2 * Q(e))
    with mpmath.workdps(tempting.DIGITS):
        many = tempting.many_digits(t)
        truth = Truth("optimal", tempting.around(many - mpmath.log(many) - 1))
    judged(LogDetPairs(K0, [(0, 2)], [(1, 2)], upper=d, lower=d), truth)


def test_t18_a_path_that_only_a_singular_kernel_fits() -> None:
    # |a + b|^2 >= 4u with |a|^2, |b|^2 <= u needs a = b: then log det K = -inf.
    problem = LogDetPairs(np.eye(3), [(0, 1), (1, 2)], [(0, 2)], upper=0.5, lower=2.0)
    judged(problem, Truth("infeasible"))


# T15: input changed by native code


class Swaps(Backend):
    """Native code that swaps two entries of its input."""

    name = "swaps"
    offers = frozenset({Feature.CONE})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        n = form.c.size  # type: ignore[union-attr]
        v = (ctypes.c_double * n).from_address(form.c.ctypes.data)  # type: ignore[union-attr]
        v[1], v[2] = v[2], v[1]
        x = np.zeros(n)
        x[1] = 1
        rows = form.b.size  # type: ignore[union-attr]
        return Answer(Stop.OPTIMAL, x, np.r_[0.25, np.zeros(rows - 1)])


def test_t15_a_swap_in_a_long_vector_is_seen() -> None:
    n = 40000
    c = np.ones(n)
    c[1], c[2] = 5.0, 0.25
    problem = LP(c.copy(), A_ub=-np.ones((1, n)), b_ub=[-1.0])
    result = klopt.solve(problem, Swaps())
    assert not false_word(result, Truth("optimal", Q(1, 4)))
    # The point costs 5: no proof may call it optimal.
    if result.point is not None and math.isfinite(result.upper):
        assert c @ result.point.x <= result.upper + 1e-6, result.explain()


# T18: raw features, a linear kernel of rank 30 on 80 points


def definite_shift(K: np.ndarray) -> float:
    """A power of two d for which K + d I is positive definite, by elimination in balls of 300 bits."""
    n = len(K)
    with flint.ctx.workprec(300):
        for power in range(-40, 0):
            shift = 2.0**power
            M = [
                [flint.arb(K[i, j]) + (shift if i == j else 0) for j in range(n)] for i in range(n)
            ]
            for k in range(n):
                if not M[k][k] > 0:
                    break
                for i in range(k + 1, n):
                    share = M[i][k] / M[k][k]
                    for j in range(k + 1, i + 1):
                        M[i][j] -= share * M[j][k]
            else:
                return shift
    raise AssertionError("K is far from positive semidefinite")


def soft_margin_ends(
    K: np.ndarray, y: np.ndarray, C: float, alpha: np.ndarray, bias: float
) -> tuple[Q, Q]:
    """Bounds of the optimum in rationals: a feasible point, and weak duality for K + d I."""
    labels = [int(label) for label in y]
    a = [max(Q(0), min(Q(C), Q(float(x)))) for x in alpha]
    total = {s: sum(x for x, label in zip(a, labels, strict=True) if label == s) for s in (1, -1)}
    least = min(total.values())
    a = [x * least / total[label] for x, label in zip(a, labels, strict=True)]
    z = [x * label for x, label in zip(a, labels, strict=True)]
    Kz = [sum((Q(float(k)) * x for k, x in zip(row, z, strict=True)), Q(0)) for row in K]
    square = sum(x * f for x, f in zip(z, Kz, strict=True))
    shift = Q(definite_shift(K))
    hinge = Q(0)
    for label, f, x in zip(labels, Kz, z, strict=True):
        hinge += max(Q(0), 1 - label * (f + shift * x + Q(bias)))
    norm = sum(x * x for x in z)
    # 1'a - a'Qa / 2 = 1'a - a'(Q + d I)a / 2 + d |a|^2 / 2, and |a|^2 is at most n C^2.
    above = (square + shift * norm) / 2 + Q(C) * hinge + shift * len(y) * Q(C) ** 2 / 2
    return sum(a) - square / 2, above


def test_t18_raw_features() -> None:
    X, classes = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:80]
    K = X[chosen] @ X[chosen].T
    K = (K + K.T) / 2
    y = np.where(classes[chosen] == 1, 1.0, -1.0)
    result = klopt.solve(SoftMargin(K, y, 1.0), backend="active_set")
    lower, upper = soft_margin_ends(K, y, 1.0, result.point.alpha, float(result.point.bias))
    assert upper - lower < 1e-6
    assert Q(result.lower) <= upper
    assert Q(result.upper) >= lower
    assert result.upper - result.lower < 1e-4


# T16: a scaled linear program


def test_t16_a_scaled_program() -> None:
    c = [7.62939453125e-05, -1048576]
    A = [[-2.384185791015625e-07, 4096], [0.0009765625, 0], [-4, 0], [0, 48]]
    b = [-0.09375, 384, -1310720, 0.00018310546875]
    truth = exact_lp(c, A, b)
    assert truth == Truth("optimal", Q(30))
    liar = Says(Stop.OPTIMAL, x=[-393216, 0], y=[-320, 0, 0, 0, 0, -262144])
    judged(LP(c, A, b), truth, liar)


# T17: a repair that loses digits


@needs_data
@pytest.mark.slow
def test_t17_control3() -> None:
    problem = SDP.from_file(Path(FOLDER) / "sdp" / "control3.dat-s")
    result = klopt.solve(problem, "clarabel", formulation="LMI", time_limit=60)
    # Known to about 1e-8.
    assert result.lower <= 13.6332675
    assert result.upper >= 13.6332665


# T19: rounding


def test_t19_matrix_games() -> None:
    rng = np.random.default_rng(0)
    count = 0
    wrong = []
    while count < 100:
        a, b, c, d = (int(v) for v in rng.integers(-5, 6, 4))
        # A mixed equilibrium has the value (ad - bc) / (a + d - b - c).
        if not ((a - b) * (d - c) > 0 and (a - c) * (d - b) > 0):
            continue
        count += 1
        truth = Truth("optimal", Q(a * d - b * c, a + d - b - c))
        game = SaddlePoint.game(np.array([[a, b], [c, d]], dtype=float))
        wrong.append(false_word(klopt.solve(game), truth))
    assert not any(wrong), f"{sum(map(bool, wrong))} of {count}: {next(filter(None, wrong))}"


def test_t19_quadratics_over_a_simplex() -> None:
    rng = np.random.default_rng(0)
    wrong = []
    for _ in range(100):
        k = int(rng.integers(2, 7))
        G = rng.integers(-3, 4, (int(rng.integers(1, k + 1)), k)).astype(float)
        H = G.T @ G
        w = np.where(rng.random(k) < 0.6, rng.integers(1, 6, k), 0).astype(float)
        w[0] += not w.any()
        slack = np.where(w > 0, 0, rng.integers(0, 4, k)) + float(rng.integers(-3, 4))
        c = slack - H @ w
        truth = Truth("optimal", Q(float(w @ H @ w)) / 2 + Q(float(c @ w)))
        problem = SimplexProgram.of(Quadratic(H, c), Simplex(k, float(w.sum())))
        wrong.append(false_word(klopt.solve(problem), truth))
    assert not any(wrong), f"{sum(map(bool, wrong))} of 100: {next(filter(None, wrong))}"


# T20: what the documentation says of repaired points


def test_t20_points_are_feasible_exactly_or_not_called_so() -> None:
    page = (Path(__file__).parents[1] / "docs" / "certificates.md").read_text(encoding="utf-8")
    n = 100
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(2) / 20)
    point = klopt.solve(SoftMargin(K, y, C=1.0), tol=1e-9).point
    assert point is not None
    balance = sum((Q(float(v)) * int(s) for v, s in zip(point.alpha, y, strict=True)), Q(0))
    assert not balance or "are repaired exactly" not in " ".join(page.split())
