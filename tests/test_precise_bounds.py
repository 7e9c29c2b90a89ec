"""Points and multipliers of many digits: what they prove holds in rationals, forgeries prove nothing."""

from __future__ import annotations

import math
import os
from fractions import Fraction as Q
from pathlib import Path

import numpy as np
import pytest
import tempting
from hypothesis import given, strategies as st
from scipy import sparse
from strategies import at_most
from test_truth import objective_if_definite

import klopt
from klopt.model.cones import Cones, svec_entries
from klopt.problems import SDP
from klopt.proof.balls import working_bits
from klopt.proof.precise_bounds import (
    PreciseWitness,
    open_columns,
    precise_lower_bound,
    precise_upper_bound,
)
from klopt.proof.statement import ConeStatement
from klopt.proof.time_budget import budget
from klopt.witness.precise_barrier import BITS, is_affordable, precise_pairs
from klopt.witness.precise_witness import precise_proof, short_multipliers

FOLDER = os.environ.get("KLOPT_DATA", "")
needs_data = pytest.mark.skipif(
    not FOLDER, reason="KLOPT_DATA does not name the folder of the public instances"
)
TINY = 2.0**-250
"""Less than floats next to 1 can tell, more than 640 bits can."""


def parts(*numbers: tuple[float, ...]) -> np.ndarray:
    """Return numbers, each a sum of floats, as the parts of a witness."""
    count = max(map(len, numbers))
    return np.array([[*n, *[0.0] * (count - len(n))] for n in numbers]).T


def exactly(witness: PreciseWitness) -> list[Q]:
    """Return the sums of floats as rationals."""
    return [sum(map(Q, column), Q(0)) for column in witness.parts.T.tolist()]


def block(statement: ConeStatement, v: list[Q]) -> list[list[Q]]:
    """Return the first semidefinite block of plain rows as a matrix."""
    order = statement.cones.psd[0]
    M = [[Q(0)] * order for _ in range(order)]
    first = statement.cones.zero + statement.cones.nonneg
    for k, (i, j) in enumerate(zip(*svec_entries(order), strict=True)):
        M[i][j] = M[j][i] = v[first + k]
    return M


def at_least(bound: float) -> ConeStatement:
    """Minimise x subject to x >= bound."""
    return ConeStatement(
        np.ones(1), sparse.csc_array([[-1.0]]), np.array([-bound]), Cones(nonneg=1)
    )


def matrix_program(c: list[float], F: list[list[list[float]]]) -> ConeStatement:
    """Minimise c'x subject to sum_i x_i F_i - F_0 psd."""
    return SDP(c, [np.array(M, float) for M in F]).cone_statement


UNIT = matrix_program([1.0], [[[0, -1], [-1, 0]], [[1, 0], [0, 1]]])
"""Minimise x subject to [[x, 1], [1, x]] psd: 1, by Y = [[1, -1], [-1, 1]] / 2."""


# What is proven


def test_a_point_is_judged_by_all_of_its_digits() -> None:
    statement = at_least(1.0)
    assert precise_upper_bound(statement, PreciseWitness(parts((1.0, TINY)))).value >= 1.0
    below = precise_upper_bound(statement, PreciseWitness(parts((1.0, -TINY))))
    assert below.value == np.inf
    assert "nonnegative" in below.by


def test_a_matrix_is_judged_by_all_of_its_digits() -> None:
    inside = precise_upper_bound(UNIT, PreciseWitness(parts((1.0, TINY))))
    assert 1.0 <= inside.value <= 1.0 + 2**-51
    for x in ((1.0, -TINY), (1.0,)):
        # At x = 1 the matrix is singular, which balls do not decide.
        assert precise_upper_bound(UNIT, PreciseWitness(parts(x))).value == np.inf


@pytest.mark.parametrize("across", [1.0, 3e-9, 1e7])
def test_rows_of_a_scaled_triangle(across: float) -> None:
    """Minimise x + z subject to [[x, t], [t, z]] psd, with the row t sqrt(2): 2 t, its square 2 row^2."""
    A = sparse.csc_array(np.array([[-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]]))
    b = np.array([0.0, across, 0.0])
    proof = precise_proof(ConeStatement(np.ones(2), A, b, Cones(psd=(2,))))
    assert proof is not None
    square = 2 * Q(across) ** 2
    assert 0 < Q(proof.lower.value) ** 2 <= square <= Q(proof.upper.value) ** 2
    assert proof.upper.value - proof.lower.value <= 1e-8 * (1 + proof.upper.value)


@pytest.mark.parametrize(
    ("head", "proven"), [((5.0, TINY), True), ((5.0,), True), ((5.0, -TINY), False)]
)
def test_second_order_cones(head: tuple[float, ...], proven: bool) -> None:
    statement = ConeStatement(
        np.array([1.0, 0.0, 0.0]), -sparse.eye_array(3, format="csc"), np.zeros(3), Cones(soc=(3,))
    )
    found = precise_upper_bound(statement, PreciseWitness(parts(head, (3.0,), (4.0,))))
    assert np.isfinite(found.value) == proven


def test_equations_are_solved_in_the_columns_named() -> None:
    """x1 = 1/3 and x1 + x2 = 1, both not floats."""
    A = sparse.csc_array([[3.0, 0.0], [1.0, 1.0]])
    statement = ConeStatement(np.array([0.0, 1.0]), A, np.ones(2), Cones(zero=2))
    start = np.array([[0.33, 0.67]])
    found = precise_upper_bound(statement, PreciseWitness(start, np.array([0, 1])))
    assert Q(found.value) >= Q(2, 3) > Q(math.nextafter(math.nextafter(found.value, 0), 0))
    for moved in ([], [0], [0, 0], [0, 5], [-1, 0]):
        wrong = PreciseWitness(start, np.array(moved, np.intp))
        assert precise_upper_bound(statement, wrong).value == np.inf
    singular = ConeStatement(
        np.zeros(2), sparse.csc_array(np.ones((2, 2))), np.ones(2), Cones(zero=2)
    )
    assert precise_upper_bound(singular, PreciseWitness(start, np.array([0, 1]))).value == np.inf


def test_gradients_are_made_zero_in_the_rows_named() -> None:
    """The multipliers (1/2, -1/2, 1/2) from ones that are off by 1e-3."""
    y = np.array([[0.501, -0.499, 0.5]])
    found = precise_lower_bound(UNIT, PreciseWitness(y, np.array([0])))
    assert 0.997 < found.value <= 1.0
    for moved in ([], [0, 0], [0, 1], [7], [-1]):
        wrong = PreciseWitness(y, np.array(moved, np.intp))
        assert precise_lower_bound(UNIT, wrong).value == -np.inf


def test_multipliers_at_the_edge_of_their_cone_are_no_proof_in_balls() -> None:
    """Y = [[1, -1 - t], [-1 - t, 1]] / 2 would prove 1 + t."""
    for t in (0.0, TINY, 1e-9):
        y = parts((0.5,), (-0.5, -t / 2), (0.5,))
        assert precise_lower_bound(UNIT, PreciseWitness(y, np.array([0]))).value == -np.inf
    inside = parts((0.5,), (-0.5, TINY), (0.5,))
    assert precise_lower_bound(UNIT, PreciseWitness(inside, np.array([0]))).value <= 1.0


def test_multipliers_of_inequalities_have_a_sign() -> None:
    """Minimise x subject to x >= 1 and x <= 2: the multiplier -1 of the second would prove 2."""
    A = sparse.csc_array([[-1.0], [1.0]])
    statement = ConeStatement(np.ones(1), A, np.array([-1.0, 2.0]), Cones(nonneg=2))
    assert precise_lower_bound(statement, PreciseWitness(np.array([[0.0, -1.0]]))).value == -np.inf
    # Both bounds are known: no gradient need be 0.
    assert open_columns(statement).size == 0
    for y in ([0.0, 0.0], [0.5, 0.0], [1.0, 0.0]):
        assert 1 - 1e-15 < precise_lower_bound(statement, PreciseWitness(np.array([y]))).value <= 1


def test_rows_that_say_nothing_prove_nothing() -> None:
    A = sparse.csc_array([[-1.0, -1.0], [1.0, 1.0]])
    statement = ConeStatement(np.ones(2), A, np.array([np.inf, np.inf]), Cones(nonneg=2))
    for moved in ([0, 1], [1, 0], []):
        witness = PreciseWitness(np.array([[1.0, 0.0]]), np.array(moved, np.intp))
        assert precise_lower_bound(statement, witness).value == -np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_proves_nothing(bad: float) -> None:
    assert precise_upper_bound(UNIT, PreciseWitness(np.array([[bad]]))).value == np.inf
    y = np.array([[0.5, -0.5, bad]])
    assert precise_lower_bound(UNIT, PreciseWitness(y, np.array([0]))).value == -np.inf


def test_a_witness_of_the_wrong_shape_proves_nothing() -> None:
    assert precise_upper_bound(UNIT, PreciseWitness(np.ones(1))).value == np.inf
    assert precise_upper_bound(UNIT, PreciseWitness(np.ones((1, 2)))).value == np.inf
    assert precise_lower_bound(UNIT, PreciseWitness(np.ones((1, 2)))).value == -np.inf


def test_curved_terms_are_left_to_others() -> None:
    curved = ConeStatement(
        np.ones(1),
        sparse.csc_array([[-1.0]]),
        np.zeros(1),
        Cones(nonneg=1),
        P=sparse.eye_array(1, format="csc"),
    )
    assert precise_upper_bound(curved, PreciseWitness(np.ones((1, 1)))).value == np.inf
    assert precise_lower_bound(curved, PreciseWitness(np.ones((1, 1)))).value == -np.inf
    assert not is_affordable(curved)
    exponential = ConeStatement(
        np.ones(3), -sparse.eye_array(3, format="csc"), np.zeros(3), Cones(exp=1)
    )
    assert precise_upper_bound(exponential, PreciseWitness(np.ones((1, 3)))).value == np.inf
    assert not is_affordable(exponential)


def test_a_declared_bound_of_x_is_part_of_the_statement() -> None:
    """Minimise x1 over [[x1, 1], [1, x2]] psd within norm(x) <= R: x1 x2 = 1 and x2 about R."""
    statement = SDP([1.0, 0.0], not_attained(), within=1e3).cone_statement
    best = 1e-3
    x = parts((best, 1e-6), (1e3, -1e-3))
    assert best < precise_upper_bound(statement, PreciseWitness(x)).value < 1.01 * best
    too_far = parts((best,), (1e3, 1.0))
    assert precise_upper_bound(statement, PreciseWitness(too_far)).value == np.inf
    # <Y, F_0> - R ||(1 - Y_11, Y_22)|| with Y = [[1, -t], [-t, t^2]].
    t = 1e-3
    y = parts((1.0, 1e-12), (-t,), (t * t, 1e-12))
    found = precise_lower_bound(statement, PreciseWitness(y)).value
    assert 0.99 * (2 * t - 1e3 * t * t) < found <= best


def not_attained() -> list[np.ndarray]:
    """[[x1, 1], [1, x2]] psd."""
    return [np.array([[0.0, -1], [-1, 0]]), np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]


# What the method in high precision finds


def test_pairs_are_feasible_in_rationals() -> None:
    """The optimum -sqrt(2) of x1 + x2 over the unit disc, as [[1 + x1, x2], [x2, 1 - x1]] psd."""
    statement = matrix_program(
        [1.0, 1.0], [[[-1, 0], [0, -1]], [[1, 0], [0, -1]], [[0, 1], [1, 0]]]
    )
    pair = next(precise_pairs(statement, 1e-12))
    x1, x2 = exactly(pair.x)
    assert tempting.is_definite([[1 + x1, x2], [x2, 1 - x1]])
    assert tempting.is_definite(block(statement, exactly(pair.y)))
    proof = precise_proof(statement)
    assert proof is not None
    low, high = tempting.root(Q(2))
    assert proof.lower.value <= -low
    assert proof.upper.value >= -high
    assert proof.upper.value - proof.lower.value < 1e-8


def test_digits_beyond_floats() -> None:
    """[[x - 1, 1], [1, 2^60]] psd: the optimum is 1 + 2^-60."""
    F0 = np.array([[1.0, -1.0], [-1.0, -(2.0**60)]])
    statement = matrix_program([1.0], [F0.tolist(), [[1.0, 0.0], [0.0, 0.0]]])
    found = precise_proof(statement)
    assert found is not None
    assert found.lower.value <= 1 + Q(1, 2**60) <= Q(found.upper.value)
    assert found.upper.value - found.lower.value < 1e-6


def test_equations_and_all_kinds_of_cones_together() -> None:
    """Minimise t over ||(x, y)|| <= t, x + y = 2, t <= 10: sqrt(2)."""
    A = sparse.csc_array(np.array([[0.0, 1, 1], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]))
    b = np.array([2.0, 10, 0, 0, 0])
    statement = ConeStatement(np.array([1.0, 0, 0]), A, b, Cones(1, 1, soc=(3,)), plain=True)
    found = precise_proof(statement)
    assert found is not None
    low, high = tempting.root(Q(2))
    assert found.lower.value <= high
    assert found.upper.value >= low
    assert found.upper.value - found.lower.value < 1e-8


def test_short_multipliers_are_near_and_few() -> None:
    y = np.array([0.49999, 0.00001, 3.0])
    found = list(short_multipliers(y))
    assert [v.tolist() for v in found] == [[0.5, 0.0, 3.0]]
    assert not list(short_multipliers(np.array([0.3, 0.3])))


def test_precision_is_left_as_it_was() -> None:
    from flint import ctx

    before = ctx.prec
    for _ in precise_pairs(UNIT, 1e-9):
        assert ctx.prec == before
    precise_proof(UNIT)
    assert ctx.prec == before
    with working_bits(BITS):
        assert ctx.prec == BITS


def test_no_time_no_pairs() -> None:
    with budget(0.0):
        assert not is_affordable(UNIT)
        assert precise_proof(UNIT) is None


# Solved through klopt


def test_an_optimum_that_is_not_attained() -> None:
    """No float comes near 0: x1 = 1 / x2 exactly at the edge."""
    result = klopt.solve(SDP([1.0, 0.0], not_attained()), time_limit=20)
    assert result.verdict.name == "OPTIMAL"
    assert result.lower <= 0.0 <= result.upper


def test_multipliers_at_the_edge_that_are_short_numbers() -> None:
    """Minimise 2 x1 + x2 over [[x1, 1, 0], [1, x2, 1], [0, 1, x3]] psd: 2 sqrt(2), x3 without end."""
    F = [np.zeros((3, 3)) for _ in range(4)]
    F[0][0, 1] = F[0][1, 0] = F[0][1, 2] = F[0][2, 1] = -1.0
    for i in range(3):
        F[i + 1][i, i] = 1.0
    result = klopt.solve(SDP([2.0, 1.0, 0.0], F), time_limit=20)
    low, high = tempting.root(Q(8))
    assert result.lower <= high
    assert result.upper >= low


def test_a_user_hears_of_huge_points() -> None:
    """[[x1, 1], [1, 2^-60 x2]] psd: x1 < 1e-9 needs x2 > 1e27."""
    F = [np.zeros((2, 2)), np.diag([1.0, 0.0]), np.diag([0.0, 2.0**-60])]
    F[0][0, 1] = F[0][1, 0] = -1.0
    result = klopt.solve(SDP([1.0, 0.0], F), tol=1e-8, time_limit=20)
    assert result.verdict.name == "OPTIMAL"
    assert any("within=" in note for note in result.certificate.notes)


@needs_data
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("hinf1", 0.0, 1e-9), ("hinf2", 10.96705562, 10.96705563), ("hinf3", 56.940777, 56.940779)],
)
def test_public_programs_beyond_floats(name: str, low: float, high: float) -> None:
    """A feasible point of the file, in rationals, agrees with the upper end."""
    path = Path(FOLDER) / "sdp" / f"{name}.dat-s"
    problem = SDP.from_file(path)
    result = klopt.solve(problem, time_limit=60)
    assert result.verdict.name == "OPTIMAL", result.explain()
    assert low - 1e-6 <= result.lower <= result.upper <= high + 1e-6
    *_, pair = precise_pairs(problem.cone_statement, 1e-9)
    objective = objective_if_definite(path, exactly(pair.x))
    assert objective is not None
    assert result.lower <= objective


@needs_data
def test_multipliers_of_an_assignment_are_integers() -> None:
    result = klopt.solve(SDP.from_file(Path(FOLDER) / "sdp" / "qap5.dat-s"), time_limit=60)
    assert result.verdict.name == "OPTIMAL", result.explain()
    assert result.lower == -436.0


@needs_data
def test_a_declared_bound_gives_both_ends_where_the_infimum_is_not_attained() -> None:
    """hinf4: 274.76382 within norm(x) <= 1e12 (a barrier of 300 bits), 271.4977 over all x."""
    program = SDP.from_file(Path(FOLDER) / "sdp" / "hinf4.dat-s")
    result = klopt.solve(SDP(program.c, program.F, within=1e12), time_limit=60)
    assert result.verdict.name == "OPTIMAL", result.explain()
    assert result.lower <= 274.763825
    assert result.upper >= 274.763815


def test_a_declared_bound_is_a_cone_of_the_method() -> None:
    """Minimise x1 over [[x1, 1], [1, x2]] psd within norm(x) <= 100: x1 x2 = 1, x1^2 + x2^2 = 1e4."""
    found = precise_proof(SDP([1.0, 0.0], not_attained(), within=100.0).cone_statement)
    assert found is not None
    # x1^2 = 1e4 / 2 - sqrt(1e8 / 4 - 1), as a root of t^2 - 1e4 t + 1.
    low, high = tempting.root(Q(10**8, 4) - 1)
    smallest = tempting.root(5000 - high)[0]
    largest = tempting.root(5000 - low)[1]
    assert found.lower.value <= largest
    assert found.upper.value >= smallest
    assert found.upper.value - found.lower.value < 1e-8


@pytest.mark.parametrize(
    "family",
    [
        "weakly_infeasible",
        "duality_gap",
        "not_attained",
        "tiny_interior",
        "nearly_weakly_infeasible",
    ],
)
@at_most(25)
@given(number=st.integers(0, 10**9))
def test_no_false_end(family: str, number: int) -> None:
    problem, truth = tempting.instance(family, number)
    found = precise_proof(problem.cone_statement)
    if found is None:
        return
    low, high = truth.ends("min")
    assert found.lower.value <= high
    assert found.upper.value >= low


@at_most(40)
@given(number=st.integers(0, 10**9))
def test_ends_around_an_optimum_with_an_exact_pair(number: int) -> None:
    """Integer data with S X = 0 exactly, one of them singular under an integer congruence."""
    rng = np.random.default_rng(number)
    order = int(rng.integers(2, 5))
    rank = int(rng.integers(1, order))
    T = tempting.congruence(rng, order, int(rng.integers(0, 3)))
    inverse = np.rint(np.linalg.inv(T))
    S = T.T @ np.diag([*rng.integers(1, 4, rank), *[0] * (order - rank)]) @ T
    X = inverse @ np.diag([*[0] * rank, *rng.integers(1, 4, order - rank)]) @ inverse.T
    n = int(rng.integers(1, 4))
    F = []
    for _ in range(n):
        M = rng.integers(-2, 3, (order, order))
        F.append((M + M.T).astype(float))
    x = rng.integers(-2, 3, n)
    F0 = sum((v * M for v, M in zip(x, F, strict=True)), np.zeros((order, order))) - S
    c = [float(np.sum(M * X)) for M in F]
    value = Q(float(np.dot(c, x)))
    found = precise_proof(SDP(c, [F0, *F]).cone_statement)
    assert found is not None
    assert found.lower.value <= value <= found.upper.value
