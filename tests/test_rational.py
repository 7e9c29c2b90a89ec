"""Linear programs in exact arithmetic: every statement is compared with plain sums of fractions.

Truth comes from enumerating all bases of small programs in `fractions.Fraction`, and from the
published optima of Netlib, whose folder KLOPT_DATA names.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

import klopt
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.problems import LP, QCQP
from klopt.programs.decimals import decimal
from klopt.proof.certificate import Verdict
from klopt.proof.exact_rank import independent_rows
from klopt.proof.rational import (
    as_rational,
    check_rational_dual,
    check_rational_farkas,
    check_rational_primal,
    check_rational_ray,
    floats_around,
)
from klopt.proof.rational_psd import rational_psd
from klopt.proof.rational_systems import RationalMatrix, as_fractions, independent
from klopt.proof.time_budget import budget
from klopt.witness.exact_simplex import ExactStatus, exact_farkas, exact_ray, exact_vertex

FOLDER = os.environ.get("KLOPT_DATA", "")
needs_data = pytest.mark.skipif(
    not FOLDER, reason="KLOPT_DATA does not name the folder of the public instances"
)
Vector = Sequence[Fraction]


# Plain fractions: the truth that everything below is compared with


def dot(a: Sequence[float], x: Vector) -> Fraction:
    return sum((Fraction(float(v)) * w for v, w in zip(a, x, strict=True)), Fraction(0))


def is_feasible(form: ConeForm, x: Vector) -> bool:
    A = form.A.toarray()
    slack = [Fraction(float(b)) - dot(row, x) for b, row in zip(form.b, A, strict=True)]
    zero = form.cones.zero
    return all(s == 0 for s in slack[:zero]) and all(s >= 0 for s in slack[zero:])


def in_dual_cone(form: ConeForm, y: Vector) -> bool:
    return all(value >= 0 for value in y[form.cones.zero :])


def gradient(form: ConeForm, y: Vector) -> list[Fraction]:
    """A'y."""
    return [dot(column, y) for column in form.A.toarray().T]


def solve_square(rows: Sequence[Sequence[Fraction]], right: Vector) -> list[Fraction] | None:
    """Gauss and Jordan; None for a singular matrix."""
    n = len(rows)
    work = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i][k]), None)
        if pivot is None:
            return None
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [value / work[k][k] for value in work[k]]
        for i in range(n):
            if i != k and work[i][k]:
                work[i] = [a - work[i][k] * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[n] for row in work]


def best_vertex(form: ConeForm) -> Fraction | None:
    """The least value at any vertex; None if there is none."""
    A = [[Fraction(float(v)) for v in row] for row in form.A.toarray()]
    b = [Fraction(float(v)) for v in form.b]
    best: Fraction | None = None
    for basis in itertools.combinations(range(len(b)), form.c.size):
        x = solve_square([A[i] for i in basis], [b[i] for i in basis])
        if x is not None and is_feasible(form, x):
            value = dot(form.c, x)
            best = value if best is None else min(best, value)
    return best


@st.composite
def programs(draw: st.DrawFn, boxed: bool) -> ConeForm:
    """Small integer programs, often degenerate, dependent, infeasible or unbounded."""
    n = draw(st.integers(1, 3))
    zero = draw(st.integers(0, 2))
    nonneg = draw(st.integers(0, 4))
    entry = st.integers(-2, 2)
    A = np.array(draw(st.lists(entry, min_size=(zero + nonneg) * n, max_size=(zero + nonneg) * n)))
    b = draw(st.lists(st.integers(-3, 3), min_size=zero + nonneg, max_size=zero + nonneg))
    c = draw(st.lists(entry, min_size=n, max_size=n))
    scale = draw(st.sampled_from((1.0, 0.1, 3.0)))  # 0.1 and its multiples are rounded
    A = A.reshape(-1, n) * scale
    if boxed:
        A = np.vstack([A, np.eye(n), -np.eye(n)])
        b = [*b, *[2] * n, *[1] * n]
        nonneg += 2 * n
    return ConeForm(np.array(c, float), A, np.array(b, float), Cones(zero, nonneg))


class TestVertex:
    @given(programs(boxed=True), st.booleans())
    @settings(max_examples=150, deadline=None)
    def test_the_optimum_of_a_bounded_program_is_that_of_its_best_vertex(
        self, form: ConeForm, hint: bool
    ) -> None:
        m, n = form.shape
        x = np.linspace(-1, 1, n) if hint else None
        y = np.linspace(-1, 2, m) if hint else None
        outcome = exact_vertex(form, x, y)
        best = best_vertex(form)
        if best is None:
            assert outcome.status is ExactStatus.INFEASIBLE
        else:
            assert outcome.status is ExactStatus.OPTIMAL
            assert outcome.value == best

    @given(programs(boxed=False))
    @settings(max_examples=300, deadline=None)
    def test_every_program_is_decided_and_the_proof_holds_in_plain_fractions(
        self, form: ConeForm
    ) -> None:
        outcome = exact_vertex(form)
        if outcome.status is ExactStatus.OPTIMAL:
            assert is_feasible(form, outcome.x)
            assert in_dual_cone(form, outcome.y)
            balance = zip(form.c, gradient(form, outcome.y), strict=True)
            assert all(Fraction(float(c)) + g == 0 for c, g in balance)
            assert outcome.value == dot(form.c, outcome.x) == -dot(form.b, outcome.y)
        elif outcome.status is ExactStatus.INFEASIBLE:
            assert in_dual_cone(form, outcome.farkas)
            assert not any(gradient(form, outcome.farkas))
            assert dot(form.b, outcome.farkas) < 0
        else:
            assert outcome.status is ExactStatus.UNBOUNDED
            assert is_feasible(form, outcome.x)
            far = [x + 10**6 * d for x, d in zip(outcome.x, outcome.ray, strict=True)]
            assert is_feasible(form, far)
            assert dot(form.c, outcome.ray) < 0

    def test_a_row_that_asks_for_less_than_minus_infinity_is_a_contradiction(self) -> None:
        form = ConeForm([1.0], [[1.0]], [-np.inf], Cones(nonneg=1))
        assert exact_vertex(form).status is ExactStatus.INFEASIBLE

    def test_a_vacuous_row_takes_no_part(self) -> None:
        form = ConeForm([1.0], [[1.0], [-1.0]], [np.inf, -2.0], Cones(nonneg=2))
        outcome = exact_vertex(form, [np.nan], [np.inf, 1.0])
        assert (outcome.value, outcome.y) == (2, (0, 1))

    def test_no_variables(self) -> None:
        feasible = ConeForm([], np.zeros((1, 0)), [0.0], Cones(nonneg=1))
        assert exact_vertex(feasible).value == 0
        impossible = ConeForm([], np.zeros((1, 0)), [-1.0], Cones(nonneg=1))
        assert exact_vertex(impossible).status is ExactStatus.INFEASIBLE

    def test_ended_early_it_returns_what_holds(self) -> None:
        # From x = 0 two steps are needed; none is allowed.
        form = ConeForm(
            [-1.0, -1.0], [[1.0, 2.0], [2.0, 1.0], [-1, 0], [0, -1]], [3, 3, 0, 0], Cones(nonneg=4)
        )
        started = exact_vertex(form, [0, 0], [0, 0, 1, 1], max_pivots=0)
        assert started.status is ExactStatus.UNKNOWN
        assert started.x == (0, 0)
        with budget(time.perf_counter() - 1):
            ended = exact_vertex(form, [0, 0], [0, 0, 1, 1])
        assert ended.status is ExactStatus.UNKNOWN
        assert ended.why
        assert exact_vertex(form, [0, 0], [0, 0, 1, 1]).value == -2

    def test_beale_cycles_under_the_rule_of_dantzig_and_ends_here(self) -> None:
        A = [[0.25, -60, -1 / 25, 9], [0.5, -90, -1 / 50, 3], [0, 0, 1, 0]]
        form = ConeForm(
            [-0.75, 150, -0.02, 6],
            np.vstack([A, -np.eye(4)]),
            [0, 0, 1, 0, 0, 0, 0],
            Cones(nonneg=7),
        )
        outcome = exact_vertex(form, np.zeros(4), [0, 0, 0, 1, 1, 1, 1])
        assert outcome.value == best_vertex(form)


class TestForgeries:
    """A vector that is off in its last digit proves nothing."""

    form = ConeForm([1.0, 1.0], [[-3.0, -1.0], [-1.0, -3.0]], [-1.0, -1.0], Cones(nonneg=2))
    third = ConeForm([1.0], [[3.0]], [1.0], Cones(zero=1))

    def test_a_point_off_by_one_ulp(self) -> None:
        quarter = Fraction(1, 4)
        assert check_rational_primal(self.form, [quarter, quarter]) == ""
        off = Fraction(math.nextafter(0.25, 0))
        assert "row 0 is violated" in check_rational_primal(self.form, [off, quarter])
        assert check_rational_primal(self.third, [Fraction(1, 3)]) == ""
        assert "off by" in check_rational_primal(self.third, [Fraction(1 / 3)])

    def test_multipliers_with_a_tiny_error(self) -> None:
        quarter = Fraction(1, 4)
        tiny = Fraction(1, 10**400)  # not even a float
        assert check_rational_dual(self.form, [quarter, quarter]) == ""
        assert "c + A'y" in check_rational_dual(self.form, [quarter + tiny, quarter])
        free = ConeForm([0.0], [[1.0], [1.0]], [1.0, 1.0], Cones(nonneg=2))
        assert check_rational_dual(free, [Fraction(0), Fraction(0)]) == ""
        assert "y[1] is -" in check_rational_dual(free, [tiny, -tiny])

    def test_a_contradiction_that_adds_up_to_nothing(self) -> None:
        one = Fraction(1)
        touching = ConeForm([0.0], [[1.0], [-1.0]], [1.0, -1.0], Cones(nonneg=2))  # x = 1
        assert check_rational_farkas(touching, [one, one]) == "b'y is not negative"
        apart = ConeForm([0.0], [[1.0], [-1.0]], [1.0, -math.nextafter(1, 2)], Cones(nonneg=2))
        assert check_rational_farkas(apart, [one, one]) == ""
        assert "y[0]" in check_rational_farkas(apart, [-one, -one])
        assert "A'y" in check_rational_farkas(apart, [one, one + Fraction(1, 10**30)])

    def test_a_multiplier_of_a_row_without_a_bound(self) -> None:
        form = ConeForm([0.0], [[1.0], [-1.0]], [np.inf, -1.0], Cones(nonneg=2))
        one = Fraction(1)
        assert "infinite" in check_rational_farkas(form, [one, one])
        assert "infinite" in check_rational_dual(form, [one, one])

    def test_a_ray_that_leaves_or_does_not_descend(self) -> None:
        form = ConeForm([-1.0, 0.0], [[1.0, -3.0]], [0.0], Cones(nonneg=1))
        third = Fraction(1, 3)
        assert check_rational_ray(form, [Fraction(1), third]) == ""
        assert "leaves" in check_rational_ray(form, [Fraction(1), Fraction(1 / 3)])
        assert "negative" in check_rational_ray(form, [Fraction(0), Fraction(1)])
        level = ConeForm([1.0, -1.0], [[1.0, -1.0]], [0.0], Cones(zero=1))
        assert "negative" in check_rational_ray(level, [Fraction(1), Fraction(1)])

    def test_each_sign_of_each_error(self) -> None:
        one = Fraction(1)
        at_most_0 = ConeForm([1.0], [[1.0]], [0.0], Cones(nonneg=1))
        assert "row 0 is violated by 1.0e+00" in check_rational_primal(at_most_0, [one])
        equal_0 = ConeForm([1.0], [[1.0]], [0.0], Cones(zero=1))
        for x in (one, -one):
            assert "off by 1.0e+00" in check_rational_primal(equal_0, [x])
            assert "leaves row 0" in check_rational_ray(equal_0, [x])
        assert check_rational_dual(equal_0, [-one]) == ""
        for y in (-2 * one, Fraction(0)):
            assert "c + A'y" in check_rational_dual(equal_0, [y])

    def test_rows_with_infinite_sides(self) -> None:
        one = Fraction(1)
        impossible = ConeForm([1.0], [[1.0]], [-np.inf], Cones(nonneg=1))
        assert "-inf" in check_rational_primal(impossible, [-one])
        assert check_rational_farkas(impossible, [one]) == ""
        assert check_rational_farkas(impossible, [-one]) != ""
        vacuous = ConeForm([-1.0], [[1.0]], [np.inf], Cones(nonneg=1))
        assert check_rational_primal(vacuous, [one]) == ""
        assert check_rational_ray(vacuous, [one]) == ""

    @pytest.mark.parametrize(
        "check",
        [check_rational_primal, check_rational_dual, check_rational_farkas, check_rational_ray],
    )
    def test_a_vector_of_another_length(self, check: object) -> None:
        assert callable(check)
        assert "entries; expected" in check(self.form, [Fraction(1)] * 3)


class TestRepair:
    @given(programs(boxed=False), st.integers(0, 10**6))
    @settings(max_examples=150, deadline=None)
    def test_vectors_next_to_exact_ones_are_made_exact(self, form: ConeForm, seed: int) -> None:
        noise = np.random.default_rng(seed)
        outcome = exact_vertex(form)
        if outcome.status is ExactStatus.INFEASIBLE:
            y = np.array(outcome.farkas, dtype=float)
            near = y * (1 + 1e-6 * noise.uniform(-1, 1, y.size))
            found = exact_farkas(form, near)
            assert found is not None
            assert check_rational_farkas(form, found) == ""
        if outcome.status is ExactStatus.UNBOUNDED:
            d = np.array(outcome.ray, dtype=float)
            ray = exact_ray(form, d * (1 + 1e-6 * noise.uniform(-1, 1, d.size)))
            assert ray is not None
            assert check_rational_ray(form, ray) == ""

    def test_nothing_is_made_of_nothing(self) -> None:
        form = ConeForm([1.0], [[-1.0]], [0.0], Cones(nonneg=1))
        assert exact_farkas(form, [1.0]) is None
        assert exact_ray(form, [-1.0]) is None
        assert exact_ray(form, [1.0]) is None


class TestSystems:
    @given(st.integers(1, 6), st.integers(0, 10**6))
    @settings(max_examples=100, deadline=None)
    def test_sparse_systems_are_solved_as_by_gauss(self, n: int, seed: int) -> None:
        from flint import fmpq

        rng = np.random.default_rng(seed)
        M = rng.integers(-3, 4, (n, n)) * (rng.random((n, n)) < 0.5)
        right = [Fraction(int(v), 3) for v in rng.integers(-5, 6, n)]
        exact = [[Fraction(int(v)) for v in row] for row in M]
        truth = solve_square(exact, right)
        rows = [[(j, int(v)) for j, v in enumerate(row) if v] for row in M]
        chosen, columns = independent(rows, range(n), n)
        assert (len(chosen) == n) == (truth is not None)
        assert len(set(columns)) == len(chosen) == np.linalg.matrix_rank(M)
        if truth is None:
            return
        r = [fmpq(v.numerator, v.denominator) for v in right]
        matrix = RationalMatrix(rows)
        assert list(as_fractions(matrix.solve(r))) == truth
        transposed = [list(column) for column in zip(*exact, strict=True)]
        assert list(as_fractions(matrix.solve_transposed(r))) == solve_square(transposed, right)

    def test_a_dense_kernel(self) -> None:
        from flint import fmpq

        hilbert = [[(j, 2520 // math.gcd(2520, i + j + 1)) for j in range(5)] for i in range(5)]
        exact = [[Fraction(v) for _, v in row] for row in hilbert]
        assert as_fractions(RationalMatrix(hilbert).solve([fmpq(1)] * 5)) == tuple(
            solve_square(exact, [Fraction(1)] * 5) or ()
        )


class TestRank:
    @given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
    @settings(max_examples=100, deadline=None)
    def test_equations_agree_exactly_if_a_solution_exists(self, m: int, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        A = rng.integers(-2, 3, (m, n)) / 10
        b = rng.integers(-1, 2, m) / 10
        found = independent_rows(A, b)
        assert found is not None
        exact = [[Fraction(float(v)) for v in row] for row in A]
        assert len(found.independent) == rank(exact)
        sides = [Fraction(float(v)) for v in b]
        with_b = [[*row, side] for row, side in zip(exact, sides, strict=True)]
        assert found.consistent == (rank(with_b) == rank(exact))
        if found.consistent:
            assert found.farkas == ()
            return
        columns = zip(*exact, strict=True)
        assert not any(
            sum((a * y for a, y in zip(column, found.farkas, strict=True)), Fraction(0))
            for column in columns
        )
        assert sum((s * y for s, y in zip(sides, found.farkas, strict=True)), Fraction(0)) < 0
        for change in found.changes:
            sides[change.row] += change.amount
        mended = [[*row, side] for row, side in zip(exact, sides, strict=True)]
        assert rank(mended) == rank(exact)

    def test_an_amount_in_units_of_the_last_place(self) -> None:
        found = independent_rows([[1.0], [1.0]], [1.0, math.nextafter(1.0, 2)])
        assert found is not None
        (change,) = found.changes
        assert (change.row, change.amount, change.ulps) == (1, -(Fraction(2) ** -52), 1.0)

    def test_an_empty_row_with_a_right_hand_side(self) -> None:
        found = independent_rows(sparse.csc_array((1, 2)), [1e-300])
        assert found is not None
        assert not found.consistent


def rank(rows: Sequence[Sequence[Fraction]]) -> int:
    work = [list(row) for row in rows]
    found = 0
    for column in range(len(work[0])):
        pivot = next((i for i in range(found, len(work)) if work[i][column]), None)
        if pivot is None:
            continue
        work[found], work[pivot] = work[pivot], work[found]
        for i in range(found + 1, len(work)):
            factor = work[i][column] / work[found][column]
            work[i] = [a - factor * b for a, b in zip(work[i], work[found], strict=True)]
        found += 1
    return found


class TestSemidefinite:
    @given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 10**6), st.booleans())
    @settings(max_examples=150, deadline=None)
    def test_decided_as_by_all_principal_minors(
        self, n: int, r: int, seed: int, spoil: bool
    ) -> None:
        rng = np.random.default_rng(seed)
        B = rng.integers(-2, 3, (n, r)) * (rng.random((n, r)) < 0.7)
        P = (B @ B.T).astype(float)
        if spoil:
            P[0, 0] -= 2.0**-40
        minors = (
            determinant([[Fraction(float(P[i, j])) for j in rows] for i in rows])
            for size in range(1, n + 1)
            for rows in itertools.combinations(range(n), size)
        )
        assert rational_psd(P) == all(minor >= 0 for minor in minors)

    def test_too_much_work_is_not_begun(self) -> None:
        rng = np.random.default_rng(0)
        B = rng.normal(size=(30, 30))
        P = B @ B.T
        P = (P + P.T) / 2
        assert rational_psd(P, max_work=1e3) is None
        with budget(time.perf_counter() - 1):
            assert rational_psd(P) is None

    def test_an_asymmetric_matrix_is_refused(self) -> None:
        with pytest.raises(InvalidProblem, match="not symmetric"):
            rational_psd([[1.0, 2.0], [0.0, 1.0]])


def determinant(rows: Sequence[Sequence[Fraction]]) -> Fraction:
    if not rows:
        return Fraction(1)
    return sum(
        (
            (-1) ** j * value * determinant([[*row[:j], *row[j + 1 :]] for row in rows[1:]])
            for j, value in enumerate(rows[0])
            if value
        ),
        Fraction(0),
    )


class TestNumbers:
    @given(st.fractions())
    def test_floats_around_a_fraction_are_neighbours(self, value: Fraction) -> None:
        low, high = floats_around(value)
        assert Fraction(low) <= value <= Fraction(high)
        assert low == high or math.nextafter(low, math.inf) == high

    def test_beyond_the_largest_float(self) -> None:
        largest = np.finfo(float).max
        assert floats_around(Fraction(10) ** 400) == (largest, math.inf)
        assert floats_around(-(Fraction(10) ** 400)) == (-math.inf, -largest)
        low, high = floats_around(Fraction(1, 10**400))
        assert (low, high) == (0.0, 5e-324)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0.1", Fraction(1, 10)),
            ("-1.5D+2", Fraction(-150)),
            (".5e-3", Fraction(1, 2000)),
            ("12.", Fraction(12)),
            ("1e999999999", math.inf),
            ("1e350", math.inf),
            ("1_0.5", Fraction(21, 2)),
            ("-Infinity", -math.inf),
        ],
    )
    def test_decimals_are_not_rounded(self, text: str, value: Fraction | float) -> None:
        assert decimal(text) == value

    @pytest.mark.parametrize("text", ["1/3", "nan", "abc", "0x1", "", "1e-999999999"])
    def test_what_is_no_decimal_is_refused(self, text: str) -> None:
        with pytest.raises(
            ValueError, match=r"not a decimal|exponent beyond|could not convert|invalid literal"
        ):
            decimal(text)


class TestSolve:
    def test_the_optimum_is_a_fraction(self) -> None:
        lp = LP(c=[1, 1], A_ub=[[-3, -1], [-1, -2]], b_ub=[-1, -1], offset=0.5)
        result = klopt.solve(lp, exact=True).require()
        assert result.exact is not None
        assert result.exact.value == Fraction(3, 5) + Fraction(1, 2)
        assert result.exact.x == (Fraction(1, 5), Fraction(2, 5))
        assert result.exact.y["ub"] == (Fraction(1, 5), Fraction(2, 5))
        assert Fraction(result.lower) <= result.exact.value <= Fraction(result.upper)
        assert result.upper <= math.nextafter(result.lower, math.inf)

    def test_a_maximum(self) -> None:
        lp = LP(c=[3, 1], A_ub=[[7, 1]], b_ub=[0.5], bounds=(0, 0.1), sense="max", offset=-1.0)
        result = klopt.solve(lp, exact=True).require()
        assert result.exact is not None
        tenth = Fraction(0.1)
        assert result.exact.value == 3 * (Fraction(1, 2) - tenth) / 7 + tenth - 1
        assert Fraction(result.lower) <= result.exact.value <= Fraction(result.upper)

    @pytest.mark.parametrize("formulation", ["primal", "dual"])
    def test_both_formulations_prove_all_verdicts(self, formulation: str) -> None:
        optimal = LP([1, 2], [[-1, -3]], [-1])
        infeasible = LP([1.0], A_ub=[[1.0], [-1.0]], b_ub=[1.0, -math.nextafter(1.0, 2)])
        unbounded = LP([-1, 0.5], A_ub=[[1, -1]], b_ub=[1])
        verdicts = [
            klopt.solve(lp, formulation=formulation, exact=True).verdict
            for lp in (optimal, infeasible, unbounded)
        ]
        assert verdicts == [Verdict.OPTIMAL, Verdict.INFEASIBLE, Verdict.UNBOUNDED]

    def test_multipliers_of_a_contradiction(self) -> None:
        lp = LP([0.0, 0.0], A_eq=[[1, 1]], b_eq=[-1.0])
        result = klopt.solve(lp, exact=True)
        assert result.verdict is Verdict.INFEASIBLE
        assert result.exact is not None
        y = result.exact.y
        assert y["eq"][0] == y["lower"][0] == y["lower"][1] > 0
        assert result.duals["eq"][0] == float(y["eq"][0])

    def test_a_fixed_variable_and_a_vacuous_row(self) -> None:
        lp = LP([1, 1], A_ub=[[1, 1], [-1, -1]], b_ub=[np.inf, -3], bounds=[(2, 2), (0, None)])
        result = klopt.solve(lp, exact=True)
        assert result.exact is not None
        assert result.exact.value == 3
        assert result.exact.y["ub"] == (0, 1)

    def test_right_hand_sides_that_decide_by_their_last_digits(self) -> None:
        # b = A x0 with few positive x0 is degenerate but for its rounding: a float solver cannot
        # know which of the other variables must leave 0 by 1e-17.
        rng = np.random.default_rng(3)
        A = rng.normal(size=(12, 24)) * (rng.random((12, 24)) < 0.4)
        x0 = np.where(rng.random(24) < 0.2, rng.random(24), 0.0)
        lp = LP(rng.random(24), A_eq=A, b_eq=A @ x0, bounds=(0, 5))
        result = klopt.solve(lp, exact=True).require()
        assert result.exact is not None
        form = lp.form
        if result.verdict is Verdict.OPTIMAL:
            assert is_feasible(form, result.exact.x)
        else:
            assert result.verdict is Verdict.INFEASIBLE

    def test_a_solver_that_returns_nonsense_costs_only_time(self) -> None:
        form = ConeForm([1.0, 1.0], [[-3.0, -1.0], [-1.0, -3.0]], [-1.0, -1.0], Cones(nonneg=2))
        for x, y in (([1e300, -1e300], [1.0, -5.0]), ([0.0, 0.0], [0.0, 0.0]), (None, None)):

            def solve(program: ConeForm, x: object = x, y: object = y) -> tuple[object, object]:
                return (None, None) if x is None else (np.array(x), np.array(y))

            outcome = exact_vertex(form, [9, 9], [0, 0], solve=solve)  # type: ignore[arg-type]
            assert outcome.value == Fraction(1, 2)

    def test_the_command(self, tmp_path: Path) -> None:
        from click.testing import CliRunner

        from klopt.cli.main import main

        path = tmp_path / "tenths.mps"
        path.write_text(MPS, encoding="utf-8")
        run = CliRunner().invoke(main, ["solve", str(path), "--exact"])
        assert run.exit_code == 0
        assert "the optimum is 81/100" in run.output

    def test_other_problems_are_refused(self) -> None:
        with pytest.raises(InvalidSettings, match="exact=True is for linear programs"):
            klopt.solve(QCQP([[1.0]], [1.0]), exact=True)

    def test_the_bracket_of_a_program_in_rationals_is_exact_from_any_point(self) -> None:
        lp = LP([1.0], A_ub=[[-3.0]], b_ub=[-1.0]).in_rationals()
        bracket = lp.bracket(klopt.Point({"x": [0.3]}, {}))
        assert Fraction(bracket.lower) < Fraction(1, 3) < Fraction(bracket.upper)
        assert math.nextafter(bracket.lower, 1) == bracket.upper


MPS = """NAME          TENTHS
ROWS
 N  COST
 E  ONE
 E  THREE
 G  RANGED
COLUMNS
    X  COST  1.  ONE  1.
    X  THREE  3.
    Y  COST  0.1  RANGED  1
RHS
    RHS  ONE  0.1  THREE  0.3
    RHS  RANGED  0.1  COST  -0.7
RANGES
    RNG  RANGED  0.2
BOUNDS
 UP BND  Y  1e30
ENDATA
"""


class TestDecimals:
    """x = 0.1 and 3x = 0.3 agree as decimals and contradict each other as float64."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "tenths.mps"
        path.write_text(MPS, encoding="utf-8")
        return path

    def test_the_program_of_the_file(self, path: Path) -> None:
        lp = LP.from_file(path, exact=True)
        result = klopt.solve(lp).require()
        assert result.verdict is Verdict.OPTIMAL
        assert result.exact is not None
        assert result.exact.value == Fraction("0.1") + Fraction("0.01") + Fraction("0.7")

    def test_its_rounding_is_another_program(self, path: Path) -> None:
        result = klopt.solve(LP.from_file(path), exact=True)
        assert result.verdict is Verdict.INFEASIBLE

    def test_sides_of_a_range_are_exact(self, path: Path) -> None:
        decimals = LP.from_file(path, exact=True).decimals
        assert decimals is not None
        assert decimals.b_ub == (Fraction("0.3"), -Fraction("0.1"))
        assert decimals.bounds[1] == (0, math.inf)

    def test_arrays_that_are_not_the_rounding_are_refused(self, path: Path) -> None:
        lp = LP.from_file(path, exact=True)
        with pytest.raises(InvalidProblem, match="b_eq is not what its decimals round to"):
            LP(
                lp.c,
                lp.A_ub,
                lp.b_ub,
                lp.A_eq,
                [0.1, 0.4],
                lp.bounds,
                lp.offset,
                decimals=lp.decimals,
            )

    def test_bounds_that_differ_beyond_float64_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "near.mps"
        path.write_text(
            MPS.replace(" UP BND  Y  1e30", " LO BND  Y  0.1\n UP BND  Y  0.10000000000000000001"),
            encoding="utf-8",
        )
        with pytest.raises(InvalidProblem, match="by less than float64 can tell"):
            LP.from_file(path, exact=True)

    def test_formats_without_decimals_are_refused(self, path: Path) -> None:
        text = path.with_suffix(".cbf")
        LP([1.0]).to_file(text)
        with pytest.raises(InvalidProblem, match=r"from \.mps and \.lp files only"):
            LP.from_file(text, exact=True)
        binary = path.with_suffix(".npz")
        LP.from_file(path).to_file(binary)
        assert klopt.solve(LP.from_file(binary, exact=True)).verdict is Verdict.INFEASIBLE


def netlib() -> dict[str, float]:
    """The published optimum of each file, NaN where it is infeasible."""
    if not FOLDER:
        return {}
    found = {}
    with Path(FOLDER, "optima.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["file"]
            if name.startswith("lp/"):
                words = row["published_optimum"]
                found[name] = math.nan if "infeasible" in words else float(words)
    return found


@needs_data
class TestNetlib:
    @pytest.mark.parametrize("name", sorted(netlib()))
    def test_published_optima(self, name: str) -> None:
        published = netlib()[name]
        lp = LP.from_file(Path(FOLDER, name), exact=True)
        result = klopt.solve(lp)
        assert result.exact is not None
        if math.isnan(published):
            assert result.verdict is Verdict.INFEASIBLE
            return
        assert result.verdict is Verdict.OPTIMAL
        assert result.exact.value is not None
        assert lp.decimals is not None
        # The table leaves constants out, and has eleven digits.
        value = float(result.exact.value - lp.decimals.offset)
        assert value == pytest.approx(published, rel=1e-9)

    def test_sierra_is_infeasible_as_stored_and_optimal_as_written(self) -> None:
        path = Path(FOLDER, "lp", "sierra.mps")
        stored = klopt.solve(LP.from_file(path), exact=True)
        assert stored.verdict is Verdict.INFEASIBLE
        written = klopt.solve(LP.from_file(path, exact=True))
        assert written.verdict is Verdict.OPTIMAL
        assert written.exact is not None
        assert written.exact.value == Fraction("15394362.18363193")

        lp = LP.from_file(path)
        found = independent_rows(lp.A_eq, lp.b_eq)
        assert found is not None
        assert (lp.b_eq.size, len(found.independent), len(found.changes)) == (528, 518, 10)
        equations = ConeForm(np.zeros(lp.c.size), lp.A_eq, lp.b_eq, Cones(zero=528))
        assert check_rational_farkas(equations, found.farkas) == ""
        assert max(change.ulps for change in found.changes) < 16

    def test_convexity_of_quadratic_programs(self) -> None:
        for path in sorted(Path(FOLDER, "qp").glob("*.npz")):
            data = np.load(path)
            shape = tuple(data["P_shape"])
            P = sparse.csc_array((data["P_data"], data["P_indices"], data["P_indptr"]), shape=shape)
            assert rational_psd(P) is (path.stem != "VALUES"), path.stem


def test_only_linear_programs_have_an_exact_vertex() -> None:
    form = ConeForm([1.0], [[1.0]], [1.0], Cones(nonneg=1), P=[[1.0]])
    with pytest.raises(InvalidProblem, match="exact arithmetic is for linear programs"):
        as_rational(form)
