"""Rows that need no solver are judged by klopt; what is left out comes back with multiplier 0."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st
from vectors import falls_along, is_contradicted_by

import klopt
from klopt.conformance.instances import FormProblem
from klopt.conformance.planted import planted_cone_program
from klopt.engine.presolve import reduce_rows
from klopt.model.backend import Answer, Start, Stop
from klopt.model.cones import Cones, svec
from klopt.model.forms import ConeForm
from klopt.proof.certificate import Verdict

seeds = st.integers(0, 10**6)


def with_trivial_rows(form: ConeForm, rng: np.random.Generator) -> ConeForm:
    """The same program with empty and vacuous rows strewn among its nonnegative ones."""
    zero, nonneg = form.cones.zero, form.cones.nonneg
    A, b = form.A.toarray(), form.b
    for _ in range(3):
        at = zero + int(rng.integers(0, nonneg + 1))
        vacuous = bool(rng.integers(2))
        row = rng.normal(size=A.shape[1]) if vacuous else np.zeros(A.shape[1])
        A, b = (
            np.insert(A, at, row, axis=0),
            np.insert(b, at, np.inf if vacuous else rng.uniform(0, 2)),
        )
        nonneg += 1
    A, b = np.insert(A, 0, 0.0, axis=0), np.insert(b, 0, 0.0)  # 0'x = 0
    cones = attrs.evolve(form.cones, zero=zero + 1, nonneg=nonneg)
    return ConeForm(form.c, A, b, cones, form.P)


@pytest.mark.parametrize("kind", ["lp", "qp", "socp", "sdp", "exp", "power"])
@given(seed=seeds)
def test_multipliers_return_to_the_rows_they_came_from(kind, seed) -> None:
    """The solution of the untouched form, spread over the cluttered one, is optimal there."""
    rng = np.random.default_rng(seed)
    clean = planted_cone_program(rng, kind)
    cluttered = with_trivial_rows(clean.form, rng)
    reduced = reduce_rows(cluttered)
    assert reduced.answer is None
    assert reduced.form.cones == clean.form.cones
    np.testing.assert_array_equal(reduced.form.A.toarray(), clean.form.A.toarray())
    np.testing.assert_array_equal(reduced.form.b, clean.form.b)
    back = reduced.restore(Answer(Stop.OPTIMAL, x=clean.x, y=clean.y))
    assert cluttered.measure(back.x, back.y).worst < 1e-10
    assert np.count_nonzero(back.y) <= np.count_nonzero(clean.y)
    assert "trivial rows were left out" in back.notes[0]


@pytest.mark.parametrize("kind", ["lp", "qp"])
@given(seed=seeds)
def test_a_cluttered_program_has_the_optimum_and_the_multipliers_of_the_clean_one(
    kind, seed
) -> None:
    rng = np.random.default_rng(seed)
    clean = planted_cone_program(rng, kind)
    cluttered = with_trivial_rows(clean.form, rng)
    answers = [klopt.solve(FormProblem(form), backend="highs") for form in (clean.form, cluttered)]
    assert [answer.verdict for answer in answers] == [Verdict.OPTIMAL, Verdict.OPTIMAL]
    assert answers[1].value == pytest.approx(clean.value, rel=1e-6, abs=1e-6)
    y = answers[1].duals["y"]
    assert y.shape == cluttered.b.shape
    assert (
        np.abs(cluttered.A.T @ y + cluttered.curve(answers[1].point.x) + cluttered.c).max() < 1e-5
    )
    trivial = np.isinf(cluttered.b) | (np.abs(cluttered.A.toarray()).sum(axis=1) == 0)
    assert not y[trivial].any()


@given(seed=seeds)
def test_a_start_loses_the_rows_that_the_form_loses(seed) -> None:
    rng = np.random.default_rng(seed)
    cluttered = with_trivial_rows(planted_cone_program(rng, "lp").form, rng)
    reduced = reduce_rows(cluttered)
    y = rng.normal(size=cluttered.b.size)
    start = reduced.shrink(Start(np.zeros(cluttered.c.size), y))
    np.testing.assert_array_equal(start.y, y[reduced.rows])
    np.testing.assert_array_equal(
        reduced.restore(Answer(Stop.OPTIMAL, y=start.y)).y[reduced.rows], start.y
    )


def test_a_form_without_trivial_rows_is_passed_on_as_it_is() -> None:
    form = planted_cone_program(np.random.default_rng(0), "socp").form
    assert reduce_rows(form).form is form
    answer = Answer(Stop.NUMERICAL)
    assert reduce_rows(form).restore(answer) is answer


@pytest.mark.parametrize(
    ("cones", "A", "b"),
    [
        (Cones(nonneg=2), [[0], [1]], [-1, 5]),
        (Cones(zero=1, nonneg=1), [[0], [1]], [2, 5]),
        (Cones(zero=1, nonneg=1), [[0], [1]], [-2, 5]),
        (Cones(nonneg=2), [[1], [1]], [-np.inf, 5]),
        (Cones(nonneg=1, soc=(2,)), [[1], [0], [0]], [5, 1, 2]),
        (Cones(nonneg=1, psd=(2,)), [[1], [0], [0], [0]], [5, -1, 0, 1]),
    ],
    ids=["0 <= -1", "0 = 2", "0 = -2", "x <= -inf", "|2| <= 1", "[[-1, 0], [0, 1]] PSD"],
)
def test_a_row_that_no_x_satisfies_is_infeasibility_with_a_vector(cones, A, b) -> None:
    form = ConeForm([1.0], A, b, cones)
    answer = reduce_rows(form).answer
    assert answer.stop is Stop.INFEASIBLE
    assert is_contradicted_by(form, answer.farkas)
    assert klopt.solve(FormProblem(form), backend="clarabel").verdict is Verdict.INFEASIBLE


@pytest.mark.parametrize("b", [1e-15, -1e-300, 5e-324])
def test_an_empty_row_is_decided_by_its_right_hand_side_without_tolerance(b) -> None:
    form = ConeForm([1.0], [[0.0], [-1.0]], [b, -2.0], Cones(zero=1, nonneg=1))
    assert klopt.solve(FormProblem(form)).verdict is Verdict.INFEASIBLE


@pytest.mark.parametrize(
    ("tail", "verdicts"),
    [
        (1.0, {Verdict.OPTIMAL, Verdict.ESTIMATED}),
        (1.0 + 2.0**-52, {Verdict.INFEASIBLE, Verdict.UNPROVEN, Verdict.ESTIMATED}),
    ],
)
def test_a_constant_block_that_is_wrong_by_rounding_is_not_left_out(tail, verdicts) -> None:
    """|tail| <= 1 is false by one unit in the last place: then there is no optimum."""
    form = ConeForm([1.0], [[-1.0], [0.0], [0.0]], [-2.0, 1.0, tail], Cones(nonneg=1, soc=(2,)))
    result = klopt.solve(FormProblem(form), backend="clarabel")
    assert result.verdict in verdicts
    assert tail == 1.0 or result.upper == np.inf


def test_cones_of_size_one_become_plain_inequalities_and_those_of_size_zero_vanish() -> None:
    form = ConeForm([1.0, 1.0], -np.eye(2), [-2.0, -3.0], Cones(soc=(0, 1), psd=(0, 1)))
    reduced = reduce_rows(form)
    assert reduced.form.cones == Cones(nonneg=2)
    assert reduced.form.needs == {klopt.Feature.CONE}


def test_cones_of_size_one_keep_their_multipliers_among_other_cones() -> None:
    """Turning soc(1) into an inequality moves its row before the larger cones; the multiplier must move back."""
    # minimise x0 + x1 + x2: x0 >= 3 as soc(1), |(x1, 1)| <= 2 as soc(3), x2 >= -1 as psd(1), [[x2 +
    # 2, 0], [0, 1]] PSD
    A = np.zeros((8, 3))
    A[0, 0], A[2, 1], A[4, 2], A[5, 2] = -1.0, -1.0, -1.0, -1.0
    b = np.array([-3.0, 2.0, 0.0, 1.0, 1.0, *svec(np.array([[2.0, 0.0], [0.0, 1.0]]))])
    form = ConeForm([1.0, 1.0, 1.0], A, b, Cones(soc=(1, 3), psd=(1, 2)))
    assert reduce_rows(form).form.cones == Cones(nonneg=2, soc=(3,), psd=(2,))
    result = klopt.solve(FormProblem(form), backend="clarabel")
    assert result.verdict is Verdict.OPTIMAL
    assert result.value == pytest.approx(3.0 - np.sqrt(3.0) - 1.0, abs=1e-5)
    y = result.duals["y"]
    assert (y[0], y[4]) == pytest.approx((1.0, 1.0), abs=1e-5)
    assert form.measure(result.point.x, y).worst < 1e-5


def test_empty_psd_blocks_that_hold_are_left_out() -> None:
    b = [0.0, *svec(np.eye(2)), *svec(np.diag([2.0, 0.0, 1.0])), *svec(np.eye(2))]
    A = np.zeros((13, 1))
    A[0], A[10] = -1.0, -1.0  # x >= 0, and [[x + 1, 0], [0, 1]] in the last block
    form = ConeForm([1.0], A, b, Cones(nonneg=1, psd=(2, 3, 2)))
    assert reduce_rows(form).form.cones == Cones(nonneg=1, psd=(2,))


class TestWithoutRows:
    """A form without rows is solved by klopt itself, whatever the backend."""

    @given(seed=seeds)
    def test_the_least_of_a_convex_quadratic_solves_its_normal_equations(self, seed) -> None:
        rng = np.random.default_rng(seed)
        factor, x = rng.integers(-99, 100, size=(3, 5)) / 32, rng.integers(-99, 100, size=5) / 32
        P = factor.T @ factor  # few bits, no rounding: singular, and exactly convex
        form = ConeForm(P @ x, np.zeros((0, 5)), [], Cones(), P)
        result = klopt.solve(FormProblem(form), backend="highs")
        assert result.verdict is Verdict.OPTIMAL
        assert result.value == pytest.approx(
            -form.c @ np.linalg.pinv(P) @ form.c / 2, rel=1e-6, abs=1e-9
        )

    def test_a_gradient_outside_the_range_of_P_is_a_ray(self) -> None:
        form = ConeForm([1.0, 1.0], np.zeros((0, 2)), [], Cones(), np.diag([1.0, 0.0]))
        answer = reduce_rows(form).answer
        assert answer.stop is Stop.UNBOUNDED
        assert falls_along(form, answer.ray)
        assert klopt.solve(FormProblem(form), backend="highs").verdict is Verdict.UNBOUNDED

    def test_no_variables(self) -> None:
        for b, verdict in ((1.0, Verdict.OPTIMAL), (-1.0, Verdict.INFEASIBLE)):
            form = ConeForm([], np.zeros((1, 0)), [b], Cones(nonneg=1))
            result = klopt.solve(FormProblem(form))
            assert result.verdict is verdict
        assert klopt.solve(FormProblem(ConeForm([], np.zeros((0, 0)), [], Cones()))).value == 0.0

    def test_all_rows_vacuous(self) -> None:
        form = ConeForm([0.0], [[1.0], [0.0]], [np.inf, 3.0], Cones(nonneg=2))
        result = klopt.solve(FormProblem(form), backend="highs")
        assert result.verdict is Verdict.OPTIMAL
        assert result.value == 0.0
        assert result.duals["y"].tolist() == [0.0, 0.0]
