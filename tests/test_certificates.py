"""What `certify` says, case by case: on either side of each threshold, for each claim, in each sense."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from vectors import falls_along, is_contradicted_by

from klopt.conformance.instances import FormProblem
from klopt.engine.certify import certify
from klopt.model.backend import Answer, Stop
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form, SimplexForm
from klopt.model.functions import Linear
from klopt.model.problem import Bracket, Formulation, Point
from klopt.model.sets import BoxPlane, Simplex
from klopt.proof.certificate import Certificate, Verdict, contradict, is_narrow

INF = np.inf
ABOVE_ZERO = ConeForm([1.0], [[-1.0]], [0.0], Cones(nonneg=1))
"""Minimise x over x >= 0."""
INDIFFERENT = ConeForm([0.0], [[-1.0]], [0.0], Cones(nonneg=1))
"""Minimise 0 over x >= 0."""
RECEDING = ConeForm([-1.0], [[-1.0]], [0.0], Cones(nonneg=1))
"""Minimise -x over x >= 0."""
CONTRADICTION = ConeForm([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, -2.0], Cones(nonneg=2))
"""x + y <= 1 and x + y >= 2."""


class Told(FormProblem):
    """A form whose bracket is given, so that everything but the bracket is judged."""

    def __init__(
        self, form: Form, ends: tuple[float, float] = (-INF, INF), *, sense: str = "min", trusts: bool = True,
        note: str = "", dual: bool = False, scale: float = 1.0, shift: float = 0.0, **parts: object,
    ) -> None:  # fmt: skip
        super().__init__(form)
        told = {
            "ends": ends,
            "sense": sense,
            "trusts_residuals": trusts,
            "note": note,
            "parts": parts,
        }
        for name, value in (told | {"way": (dual, scale, shift)}).items():
            object.__setattr__(self, name, value)

    def formulations(self) -> tuple[Formulation, ...]:
        dual, scale, shift = self.way
        return (
            Formulation(
                "told", self.form.needs, lambda: self.form, lambda x, y: Point({"x": x}),
                dual=dual, scale=scale, shift=shift,
            ),
        )  # fmt: skip

    def bracket(self, point: Point) -> Bracket:
        return Bracket(*self.ends, point, self.note, **self.parts)


def judged(problem: FormProblem, answer: Answer, tol: float = 1e-6) -> Certificate:
    return certify(problem, problem.formulations()[0], problem.form, answer, tol)[0]


def at(*x: float, y: tuple[float, ...] | None = None, stop: Stop = Stop.OPTIMAL) -> Answer:
    return Answer(stop, x=np.array(x), y=None if y is None else np.array(y))


def proof(verdict: Verdict, lower: float, upper: float, **more: object) -> Certificate:
    return Certificate(verdict, lower, upper, 1e-6, "bracket", **more)  # type: ignore[arg-type]


# The certificate


def test_three_verdicts_leave_nothing_to_find_out() -> None:
    conclusive = {Verdict.OPTIMAL, Verdict.INFEASIBLE, Verdict.UNBOUNDED}
    assert {verdict for verdict in Verdict if verdict.conclusive} == conclusive
    assert {
        verdict for verdict in Verdict if proof(verdict, 0.0, 0.0).verdict.conclusive
    } == conclusive
    with pytest.raises(AttributeError):
        proof(Verdict.UNPROVEN, 0.0, 0.0).verdict = Verdict.OPTIMAL  # type: ignore[misc]


@pytest.mark.parametrize(
    ("lower", "upper", "width", "relative"),
    [
        (1.0, 3.0, 2.0, 0.5),
        (-5.0, -3.0, 2.0, 0.5),
        (INF, INF, 0.0, 0.0),
        (-INF, -INF, 0.0, 0.0),
        (1.0, INF, INF, INF),
    ],
)
def test_the_width_is_relative_to_one_plus_the_upper_end(lower, upper, width, relative) -> None:
    found = proof(Verdict.FEASIBLE, lower, upper)
    assert (found.gap, found.relative_gap) == (width, relative)


def test_the_explanation_names_interval_argument_residuals_and_notes() -> None:
    residuals = ABOVE_ZERO.measure(np.array([0.5]), np.array([1.0]))
    said = proof(Verdict.FEASIBLE, 1.0, 3.0, residuals=residuals, notes=("look here",)).explain()
    for words in (
        "FEASIBLE: For the data as stored, there is a feasible point",
        "1 <= optimum <= 3",
        "relative gap 5.0e-01, asked for 1e-06",
        "proven by a feasible point and a dual bound",
        "residuals: primal 0.0e+00, dual 0.0e+00, cone 0.0e+00, gap 3.3e-01",
        "note: look here",
    ):
        assert words in said
    assert "-inf <= optimum <= 3" in proof(Verdict.FEASIBLE, -INF, 3.0).explain()
    assert "1 <= optimum <= inf" in proof(Verdict.FEASIBLE, 1.0, INF).explain()
    assert "optimum <=" not in proof(Verdict.UNPROVEN, -INF, INF).explain()
    assert "residuals" not in proof(Verdict.UNPROVEN, -INF, INF).explain()


# The bracket


@pytest.mark.parametrize(
    ("lower", "upper", "times"),
    [
        (0.5, 1.0, None),
        (0.499, 1.0, "1"),
        (0.0, 1.0, "2"),
        (-1.5, -1.0, None),
        (-3.0, -1.0, "4"),
        (0.0, 0.0, None),
    ],
)
def test_optimal_is_a_width_of_at_most_tol_times_one_plus_the_upper_end(
    lower, upper, times
) -> None:
    found = judged(Told(ABOVE_ZERO, (lower, upper)), at(1.0), tol=0.25)
    assert (found.lower, found.upper, found.tol, found.proof) == (lower, upper, 0.25, "bracket")
    assert found.verdict is (Verdict.FEASIBLE if times else Verdict.OPTIMAL)
    assert found.notes == (
        (f"the interval is {times} times as wide as asked for",) if times else ()
    )


@pytest.mark.parametrize(("sense", "ends"), [("min", (-INF, 1.0)), ("max", (1.0, INF))])
def test_one_end_is_feasible_if_it_is_that_of_the_point(sense, ends) -> None:
    found = judged(Told(ABOVE_ZERO, ends, sense=sense, trusts=False, note="half"), at(1.0))
    assert (found.verdict, found.proof, found.notes) == (Verdict.FEASIBLE, "bracket", ("half",))
    assert (found.lower, found.upper) == ends
    other = judged(
        Told(ABOVE_ZERO, ends, sense="max" if sense == "min" else "min", trusts=False), at(1.0)
    )
    assert (other.verdict, other.proof, other.notes) == (Verdict.UNPROVEN, "none", ())


@pytest.mark.parametrize(
    "ends",
    [
        (5e-324, 0.0),
        (np.nextafter(1.0, 2.0), 1.0),
        (2.0, 1.0),
        (-1.0, -2.0),
        (np.nan, 1.0),
        (1.0, np.nan),
    ],
)
def test_ends_that_cross_prove_nothing(ends) -> None:
    found = judged(Told(ABOVE_ZERO, ends, trusts=False), at(1.0))
    assert (found.lower, found.upper) == (-INF, INF)
    assert found.verdict is Verdict.UNPROVEN
    why = "not a number" if np.isnan(ends).any() else f"crossed by {ends[0] - ends[1]:.1e}"
    assert why in found.notes[0]


def test_no_point_proves_nothing() -> None:
    found = judged(Told(ABOVE_ZERO, (0.0, 0.0)), Answer(Stop.STALLED))
    assert (found.verdict, found.lower, found.upper, found.proof) == (
        Verdict.UNPROVEN,
        -INF,
        INF,
        "none",
    )
    assert "returned no point" in found.notes[0]


def test_a_broken_proof_leaves_no_estimate_either() -> None:
    crossed = Told(ABOVE_ZERO, (2.0, 1.0), estimate=(0.0, 0.0))
    found = judged(crossed, at(0.0, y=(1.0,)))
    assert (found.verdict, found.proof, found.estimate) == (Verdict.UNPROVEN, "none", None)
    assert (found.lower, found.upper) == (-INF, INF)


def test_any_crossing_is_a_contradiction() -> None:
    touching = np.nextafter(1.0, 2.0)
    assert contradict(touching, 1.0)
    assert not contradict(1.0, 1.0)
    assert contradict(-INF, np.nan)
    for ends in ((INF, 1.0), (1.0, -INF), (INF, -INF)):
        assert contradict(*ends)
    for ends in ((INF, INF), (-INF, -INF), (-INF, INF), (-INF, 0.0), (0.0, INF)):
        assert not contradict(*ends)
    assert judged(Told(ABOVE_ZERO, (touching, 1.0)), at(1.0)).verdict is Verdict.UNPROVEN


@given(
    st.floats(-1e9, 1e9),
    st.floats(0.0, 1e3),
    st.sampled_from([1e-13, 1e-6, 0.1]),
)
def test_the_gap_is_compared_with_tol_without_rounding(lower, gap, tol) -> None:
    upper = lower + gap
    exact = Fraction(upper) - Fraction(lower) <= Fraction(tol) * (1 + abs(Fraction(upper)))
    assert is_narrow(lower, upper, tol) == exact


def test_a_gap_that_rounds_to_the_tolerance_is_too_wide() -> None:
    # 1 - 2^-60 is no float, so the difference of the ends is rounded to 1 = 0.5 (1 + 1).
    assert 1.0 - 2.0**-60 == 1.0
    assert is_narrow(0.0, 1.0, 0.5)
    assert not is_narrow(-(2.0**-60), 1.0, 0.5)


# An estimate of the problem's own


@pytest.mark.parametrize("sense", ["min", "max"])
def test_an_estimate_of_the_bracket_moves_no_proven_end(sense) -> None:
    found = judged(
        Told(
            ABOVE_ZERO, (-1.0, 2.0), sense=sense, estimate=(0.5, 0.5 + 1e-7),
            lower_by="weak duality", upper_by="a feasible point",
        ),
        at(0.5),
    )  # fmt: skip
    assert (found.verdict, found.proof) == (Verdict.ESTIMATED, "estimate")
    assert (found.lower, found.upper, found.estimate) == (-1.0, 2.0, (0.5, 0.5 + 1e-7))
    said = found.explain()
    for words in (
        "-1 <= optimum <= 2",
        "lower end: weak duality",
        "upper end: a feasible point",
        "estimate: 0.5 to 0.5000001",
        "not proven: the estimate holds up to rounding",
    ):
        assert words in said


def test_an_estimate_that_is_wide_or_contradicted_is_none() -> None:
    wide = judged(Told(ABOVE_ZERO, (-INF, 2.0), trusts=False, estimate=(0.0, 1.0)), at(0.5))
    assert (wide.verdict, wide.estimate) == (Verdict.FEASIBLE, None)
    narrow = judged(Told(ABOVE_ZERO, (1.0, 1.0 + 1e-9), estimate=(1.0, 1.0)), at(0.5))
    assert (narrow.verdict, narrow.proof, narrow.estimate) == (Verdict.OPTIMAL, "bracket", None)
    for estimate in ((3.0, 3.0), (1.0, 0.0), (np.nan, 1.0), (1.0, np.nan)):
        off = judged(Told(ABOVE_ZERO, (-1.0, 2.0), estimate=estimate), at(0.5))
        assert (off.verdict, off.estimate) == (Verdict.FEASIBLE, None)
        assert "the estimate is empty or contradicts a proven bound" in off.notes


def test_an_estimate_for_changed_data_names_the_change_and_is_not_cut() -> None:
    change = "b[17] changed by 1 ulp"
    told = Told(ABOVE_ZERO, (3.0, INF), estimate=(1.0, 1.0), data_change=change)
    found = judged(told, at(1.0))
    assert (found.verdict, found.estimate) == (Verdict.ESTIMATED, (1.0, 1.0))
    assert (found.lower, found.upper, found.data_change) == (3.0, INF, change)
    assert f"the estimate is proven for changed data: {change}" in found.explain()


def test_what_is_judged_is_a_copy_of_the_answer() -> None:
    """A bracket that writes into the point it is given changes no array of the answer."""

    class Writing(Told):
        def bracket(self, point: Point) -> Bracket:
            point.x[:] = 7.0
            return super().bracket(point)

    answer = at(0.5)
    judged(Writing(ABOVE_ZERO, (0.0, 1.0)), answer)
    assert answer.x is not None
    assert answer.x[0] == 0.5


# Residuals where there is no bracket


def test_residuals_count_only_where_they_are_trusted() -> None:
    for trusts, verdict in ((True, Verdict.ESTIMATED), (False, Verdict.UNPROVEN)):
        found = judged(Told(ABOVE_ZERO, trusts=trusts), at(0.0, y=(1.0,)))
        assert found.verdict is verdict
        assert found.residuals is not None
        assert found.residuals.worst == 0.0
    for cuts in (None, (1.0, 1.0, 0.0)):
        over_a_set = judged(Told(SimplexForm(Linear([1.0, 2.0]), Simplex(2))), at(1.0, 0.0, y=cuts))
        assert (over_a_set.verdict, over_a_set.proof) == (Verdict.ESTIMATED, "residuals")
        assert over_a_set.estimate is not None
        assert over_a_set.estimate[0] == 1.0
        assert (over_a_set.lower, over_a_set.upper) == (-INF, INF)


def test_the_estimate_is_widened_by_what_the_residuals_may_be_worth() -> None:
    """At x = -1e-7 the value is -1e-7, the dual value 0, and the violation is worth 1e-7 at a multiplier of 1."""
    found = judged(Told(ABOVE_ZERO), at(-1e-7, y=(1.0,)))
    assert (found.verdict, found.proof) == (Verdict.ESTIMATED, "residuals")
    assert found.estimate == pytest.approx((-2e-7, 1e-7), rel=1e-6)
    inside = judged(Told(ABOVE_ZERO), at(1e-7, y=(1.0,)))
    assert inside.estimate == (0.0, 1e-7)
    found = judged(Told(ABOVE_ZERO, scale=-2.0, shift=1.0), at(-1e-7, y=(1.0,)))
    assert found.estimate is not None
    assert (found.estimate[0] - 1, found.estimate[1] - 1) == pytest.approx((-2e-7, 4e-7), rel=1e-6)
    curved = ConeForm([-2.0], [[-1.0]], [0.0], Cones(nonneg=1), [[2.0]])
    found = judged(Told(curved), at(1.0 + 1e-7, y=(0.0,)))
    assert found.verdict is Verdict.ESTIMATED
    assert found.estimate is not None
    assert (found.estimate[0] + 1, found.estimate[1] + 1) == pytest.approx((-4e-7, 2e-7), rel=1e-5)
    assert (found.lower, found.upper) == (-INF, INF)


def test_an_estimate_that_is_too_wide_says_by_how_much() -> None:
    form = ConeForm([1.0, 1.0], np.eye(2), [1e5, -1e5], Cones(zero=2))
    found = judged(Told(form), at(1e5, -1e5, y=(5e-9 - 1.0, 5e-9 - 1.0)))
    assert found.verdict is Verdict.UNPROVEN
    assert "makes the interval 2e+03 times as wide as asked for" in found.notes[0]
    found = judged(Told(ABOVE_ZERO), at(-5e-7, y=(1.0,)))
    assert "makes the interval 1.5 times as wide as asked for" in found.notes[0]


@pytest.mark.parametrize(
    ("ends", "proven"),
    [
        ((0.0, INF), True),
        ((-INF, 0.0), True),
        ((0.5, INF), False),
        ((-INF, -0.5), False),
        ((-1.0, INF), True),
    ],
)
def test_residuals_never_contradict_a_proven_end(ends, proven) -> None:
    found = judged(Told(ABOVE_ZERO, ends), at(0.0, y=(1.0,)))
    assert (found.verdict is Verdict.ESTIMATED) == proven
    assert ("they contradict a proven bound" in " ".join(found.notes)) != proven
    assert (found.lower, found.upper) == ends
    assert found.estimate == ((0.0, 0.0) if proven else None)


def test_residuals_say_nothing_of_a_point_a_million_times_the_data() -> None:
    assert judged(Told(INDIFFERENT), at(1e6, y=(0.0,))) == Certificate(
        Verdict.ESTIMATED,
        -INF,
        INF,
        1e-6,
        "residuals",
        INDIFFERENT.measure(np.array([1e6]), np.zeros(1)),
        estimate=(0.0, 0.0),
    )
    found = judged(Told(INDIFFERENT), at(1e6 + 0.5, y=(0.0,)))
    assert found.verdict is Verdict.UNPROVEN
    assert "1e+06 times the data" in found.notes[0]
    assert "residuals say nothing at such a size" in found.notes[1]


@pytest.mark.parametrize(
    ("c", "b", "x", "y", "words"),
    [
        (1.0, 0.0, -1e-3, 1.0, "the primal residual is 1.0e-03, asked for 1e-06"),
        (1.0, 0.0, 0.0, 1.001, "the dual residual is 5.0e-04"),
        (-1e-3, 0.0, 0.0, -1e-3, "the cone residual is 1.0e-03"),
        (1.0, -1.0, 2.0, 1.0, "the gap residual is 3.3e-01"),
        (1.0, 0.0, np.nan, 1.0, "the gap residual is nan"),
    ],
)
def test_the_residual_that_is_too_large_is_named(c, b, x, y, words) -> None:
    found = judged(Told(ConeForm([c], [[-1.0]], [b], Cones(nonneg=1))), at(x, y=(y,)))
    assert found.verdict is Verdict.UNPROVEN
    assert words in found.notes[-1]


def test_a_residual_of_exactly_the_tolerance_is_small_enough() -> None:
    tol = 2.0**-20
    assert judged(Told(INDIFFERENT), at(-tol, y=(0.0,)), tol).verdict is Verdict.ESTIMATED
    assert judged(Told(INDIFFERENT), at(0.0, y=(tol,)), tol).verdict is Verdict.ESTIMATED
    assert judged(Told(INDIFFERENT), at(-1.001 * tol, y=(0.0,)), tol).verdict is Verdict.UNPROVEN


def test_an_error_that_hides_behind_a_large_entry_is_found_in_its_row_or_column() -> None:
    for b, size in ((0.0, "1.0e-01"), (-3.0, "2.5e-02")):  # 0.1 over 1 + |b|
        form = ConeForm([0.0, 0.0], [[1.0, 0.0], [0.0, -1.0]], [1e6, b], Cones(nonneg=2))
        found = judged(Told(form), at(0.0, -b - 0.1, y=(0.0, 0.0)))
        assert found.residuals is not None
        assert found.residuals.worst <= 1e-6
        assert f"row 1 is violated by {size} of its right-hand side" in found.notes[0]
    for c, size in ((0.0, "1.0e-01"), (4.0, "2.0e-02")):
        form = ConeForm([1e6, c], -np.eye(2), [0.0, 0.0], Cones(nonneg=2))
        found = judged(Told(form), at(0.0, 0.0, y=(1e6, c + 0.1)))
        assert found.residuals is not None
        assert found.residuals.worst <= 1e-6
        assert f"the gradient in variable 1 is off by {size} of its cost" in found.notes[0]
    small = ConeForm([0.0, 4.0], [[1.0, 0.0], [0.0, -1.0]], [INF, -3.0], Cones(nonneg=2))
    near = at(0.0, 3.0 - 3e-6, y=(0.0, 4.0 + 3e-6))  # by 3e-6 of 1 + 3 and of 1 + 4
    assert judged(Told(small), near, tol=1e-5).verdict is Verdict.ESTIMATED
    assert (
        judged(Told(small), at(5.0, 3.0, y=(0.0, 4.0))).verdict is Verdict.ESTIMATED
    )  # an infinite row is vacuous


# Multipliers of a contradiction, rays: exact or nothing


def test_a_row_that_asks_for_less_than_anything_is_a_contradiction_by_itself() -> None:
    form = ConeForm([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [-INF, INF], Cones(nonneg=2))
    assert is_contradicted_by(form, np.array([1.0, 0.0]))
    vacuous = ConeForm(
        [0.0, 0.0], [[1.0, 1.0], [-1.0, -1.0], [1.0, 0.0]], [1.0, -2.0, INF], Cones(nonneg=3)
    )
    assert is_contradicted_by(vacuous, np.array([1.0, 1.0, 0.0]))


@pytest.mark.parametrize("excess", [1e-3, 1e-11, 1e-13, 0.0, -1e-13])
def test_what_is_left_of_a_sum_that_cancels_counts_however_small(excess: float) -> None:
    """x + y <= 1 and x + y >= 1 + e contradict each other if and only if the float 1 + e exceeds 1."""
    side = 1.0 + excess
    form = ConeForm([0.0, 0.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, -side], Cones(nonneg=2))
    assert is_contradicted_by(form, np.ones(2)) == (side > 1)
    ray = ConeForm([1.0, -side], [[-1.0, 0.0]], [0.0], Cones(nonneg=1))
    assert falls_along(ray, np.ones(2)) == (side > 1)


@pytest.mark.parametrize("radius", [2e9, INF])
def test_a_coefficient_counts_where_x_may_be_large(radius: float) -> None:
    """1e-9 (x + y) >= 2 holds at x = 2e9: the float 1e-9 is no less than its decimal."""
    assert Fraction(1e-9) * 2 * 10**9 >= 2
    form = ConeForm([0.0, 0.0], [[-1e-9, -1e-9]], [-2.0], Cones(nonneg=1), radius=radius)
    assert not is_contradicted_by(form, np.ones(1))


@pytest.mark.parametrize("e", [0.5, 1e-3, 1e-9, 1e-11, 2.0**-52])
def test_rows_that_hold_far_out_are_no_contradiction(e: float) -> None:
    """x + y <= 1 and (1 - e) x + y >= 1.01 hold far out, in exact arithmetic."""
    A, b = [[1.0, 1.0], [e - 1.0, -1.0]], [1.0, -1.01]
    x = Fraction(-(10**20))
    y = 1 - x
    for row, side in zip(A, b, strict=True):
        assert Fraction(row[0]) * x + Fraction(row[1]) * y <= Fraction(side)
    assert not is_contradicted_by(ConeForm([0.0, 0.0], A, b, Cones(nonneg=2)), np.ones(2))


@pytest.mark.parametrize("e", [0.05, 1e-3, 1e-9, 2.0**-52])
def test_a_row_that_is_left_slowly_is_left(e: float) -> None:
    """x <= y and y <= (1 - e) x + 1 bound x by 1 / e, though d = (1, 1) leaves by e per step only."""
    A = [[1.0, -1.0], [e - 1.0, 1.0]]
    assert not falls_along(ConeForm([-1.0, 0.0], A, [0.0, 1.0], Cones(nonneg=2)), np.ones(2))
    kept = ConeForm([-1.0, 0.0], [[1.0, -1.0], [-1.0, 1.0]], [0.0, 1.0], Cones(nonneg=2))
    assert falls_along(kept, np.ones(2))


@pytest.mark.parametrize("e", [1e-3, 1e-9, 2.0**-52])
def test_a_ray_outside_a_curved_cone_is_none(e: float) -> None:
    """Minimise x - 1.0 y over |(y, z)| <= x: bounded by 0, though d = (1, 1 + e, 0) falls."""
    form = ConeForm([1.0, -1.0, 0.0], -np.eye(3), np.zeros(3), Cones(soc=(3,)))
    assert not falls_along(form, np.array([1.0, 1.0 + e, 0.0]))
    falling = ConeForm([-1.0, 0.0, 0.0], -np.eye(3), np.zeros(3), Cones(soc=(3,)))
    assert falls_along(falling, np.array([1.0, 0.5, 0.0]))


@pytest.mark.parametrize("e", [1.0, 1e-7, 1e-16])
def test_curvature_along_a_ray_ends_it_however_small(e: float) -> None:
    """Minimise e x^2 / 2 - x over x >= 0: the optimum is -1 / (2 e)."""
    form = ConeForm([-1.0], [[-1.0]], [0.0], Cones(nonneg=1), [[e]])
    assert not falls_along(form, np.ones(1))
    assert falls_along(RECEDING, np.ones(1))


def test_no_direction_is_no_ray() -> None:
    assert not falls_along(RECEDING, np.zeros(1))


@pytest.mark.parametrize("tol", [1e-13, 1e-6, 0.1])
def test_tol_enters_no_check_of_a_vector(tol: float) -> None:
    """x <= y and y <= 0.95 x + 1 bound x by 20; x >= y + 1 and y >= 1.01 x hold at x = -100 and beyond."""
    bounded = ConeForm([-1.0, 0.0], [[1.0, -1.0], [-0.95, 1.0]], [0.0, 1.0], Cones(nonneg=2))
    ray = Answer(Stop.UNBOUNDED, x=np.zeros(2), ray=np.ones(2))
    assert judged(Told(bounded, (-INF, 0.0), trusts=False), ray, tol).verdict is Verdict.FEASIBLE
    feasible = ConeForm([0.0, 0.0], [[-1.0, 1.0], [1.01, -1.0]], [-1.0, 0.0], Cones(nonneg=2))
    farkas = Answer(Stop.INFEASIBLE, farkas=np.ones(2))
    assert judged(Told(feasible, trusts=False), farkas, tol).verdict is Verdict.UNPROVEN


# Claims


@pytest.mark.parametrize(("scale", "value"), [(1.0, INF), (-1.0, -INF)])
def test_a_contradiction_leaves_no_point_in_either_sense(scale, value) -> None:
    told = Told(CONTRADICTION, sense="min" if scale > 0 else "max", scale=scale)
    found = judged(told, Answer(Stop.INFEASIBLE, farkas=np.ones(2)))
    assert found == Certificate(Verdict.INFEASIBLE, value, value, 1e-6, "farkas")
    silent = judged(told, Answer(Stop.STALLED, farkas=np.ones(2)))
    assert silent == found


def test_a_contradiction_in_the_dual_bounds_nothing() -> None:
    found = judged(Told(CONTRADICTION, dual=True), Answer(Stop.INFEASIBLE, farkas=np.ones(2)))
    assert found.verdict is Verdict.UNPROVEN
    assert found.notes[0] == "the dual is claimed to be infeasible: no bound can be had"


@pytest.mark.parametrize(
    ("form", "answer", "words"),
    [
        (
            CONTRADICTION,
            Answer(Stop.INFEASIBLE),
            "infeasibility not proven: no multipliers came with the claim",
        ),
        (
            ABOVE_ZERO,
            Answer(Stop.INFEASIBLE, farkas=np.ones(1)),
            "infeasibility not proven: ",
        ),
        (RECEDING, Answer(Stop.UNBOUNDED), "unboundedness not proven: no ray came with the claim"),
        (
            RECEDING,
            Answer(Stop.UNBOUNDED, ray=-np.ones(1)),
            "unboundedness not proven: ",
        ),
        (
            RECEDING,
            Answer(Stop.UNBOUNDED, ray=np.ones(1)),
            "dual infeasible: unbounded if a feasible point exists",
        ),
        (
            SimplexForm(Linear([1.0]), Simplex(1)),
            Answer(Stop.UNBOUNDED, ray=np.ones(1)),
            "unbounded, which cannot be verified for this form",
        ),
    ],
)
def test_a_claim_without_proof_is_noted_and_nothing_more(form, answer, words) -> None:
    found = judged(Told(form), answer)
    assert found.verdict is Verdict.UNPROVEN
    assert words in found.notes[0]


@pytest.mark.parametrize(("scale", "value"), [(1.0, -INF), (-1.0, INF)])
def test_a_ray_from_a_feasible_point_has_no_end_in_either_sense(scale, value) -> None:
    sense, ends = ("min", (-INF, 0.0)) if scale > 0 else ("max", (0.0, INF))
    answer = Answer(Stop.UNBOUNDED, x=np.zeros(1), ray=np.ones(1))
    found = judged(Told(RECEDING, ends, sense=sense, scale=scale), answer)
    assert found == Certificate(Verdict.UNBOUNDED, value, value, 1e-6, "ray")
    silent = Answer(Stop.STALLED, x=np.zeros(1), ray=np.ones(1))
    assert judged(Told(RECEDING, ends, sense=sense, scale=scale), silent) == found
    unrepaired = judged(Told(RECEDING, ends[::-1], sense=sense, scale=scale), answer)
    assert unrepaired.verdict is not Verdict.UNBOUNDED
    nothing = judged(Told(RECEDING, sense=sense, scale=scale), answer)
    assert nothing.verdict is Verdict.UNPROVEN
    # The bracket alone decides: it may repair any point, and small residuals prove none.
    far = Answer(Stop.UNBOUNDED, x=np.array([-1e-3]), ray=np.ones(1))
    assert judged(Told(RECEDING, ends, sense=sense, scale=scale), far) == found
    crossed = judged(Told(RECEDING, (1.0, 0.0), sense=sense, scale=scale), answer)
    assert crossed.verdict is Verdict.UNPROVEN


@pytest.mark.parametrize(("scale", "value"), [(-1.0, INF), (1.0, -INF)])
def test_a_ray_of_the_dual_leaves_the_problem_without_a_point(scale, value) -> None:
    told = Told(RECEDING, sense="min" if scale < 0 else "max", dual=True, scale=scale)
    found = judged(told, Answer(Stop.UNBOUNDED, ray=np.ones(1)))
    assert found == Certificate(Verdict.INFEASIBLE, value, value, 1e-6, "farkas")


class Gradient(Linear):
    """f(x) = c'x as the dual of rows: falls along a ray with c'd < 0."""

    feature = property(lambda self: Feature.ROWS)

    def near(self, x): ...
    def rows(self, x): ...
    def bound(self, x): ...
    def ray(self, x=None): ...

    def ray_flaw(self, ray: np.ndarray) -> str:
        return "" if self.c @ ray < 0 else "it does not fall along the ray"


@pytest.mark.parametrize(
    ("dual", "scale", "verdict", "value", "argument"),
    [
        (True, -1.0, Verdict.INFEASIBLE, INF, "farkas"),
        (False, 1.0, Verdict.UNBOUNDED, -INF, "ray"),
        (False, -1.0, Verdict.UNBOUNDED, INF, "ray"),
    ],
)
def test_a_dual_of_rows_checks_its_own_rays(dual, scale, verdict, value, argument) -> None:
    form = SimplexForm(Gradient([-1.0]), BoxPlane(np.zeros(1), np.full(1, INF)))
    sense = "min" if (scale > 0) != dual else "max"
    problem = Told(form, sense=sense, dual=dual, scale=scale, trusts=False)
    assert judged(problem, Answer(Stop.UNBOUNDED, ray=np.ones(1))) == Certificate(
        verdict, value, value, 1e-6, argument
    )
    found = judged(problem, Answer(Stop.UNBOUNDED, ray=-np.ones(1)))
    assert found.verdict is Verdict.UNPROVEN
    assert found.notes[0] == "unboundedness not proven: it does not fall along the ray"
