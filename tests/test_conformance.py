"""The conformance suite itself: it must find what is wrong with a bad backend, and say so as data."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from bad_backends import (
    Bad,
    GradientScaler,
    Liar,
    Mutator,
    NanReturner,
    Pointless,
    Printer,
    Scribbler,
    StartWriter,
    Unlocker,
    Unmutator,
    WrongShaper,
)
from hypothesis import given, strategies as st

from klopt.conformance.checks import Skip, Status, expect, run_check
from klopt.conformance.instances import Instance, reference_instances
from klopt.conformance.suite import check_backend, check_problem
from klopt.engine.registry import backend_named
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form, SimplexForm
from klopt.model.functions import DualFunction, Linear
from klopt.model.problem import Bracket, Point
from klopt.model.sets import Product
from klopt.problems import SimplexProgram, SoftMargin
from klopt.proof.certificate import Verdict


@pytest.mark.parametrize(
    "backend", [Liar(), NanReturner(), Pointless(), WrongShaper()], ids=lambda b: b.name
)
def test_a_bad_backend_fails_the_truths(backend: Bad) -> None:
    failed = {
        check.name for check in check_backend(backend, show=False) if check.status is Status.FAILED
    }
    assert {"truth_lp_unique", "truth_qp_unique", "proof_lp_known_pair"} <= failed


@pytest.mark.parametrize(
    "backend",
    [Mutator(), Unmutator(), Scribbler(), GradientScaler(), Unlocker()],
    ids=lambda b: b.name,
)
def test_writing_into_the_form_is_reported(backend: Backend) -> None:
    checks = {check.name: check for check in check_backend(backend, show=False)}
    assert checks["contract_form_untouched"].status is Status.FAILED


def test_writing_into_the_start_is_reported() -> None:
    checks = {check.name: check for check in check_backend(StartWriter(), show=False)}
    assert checks["contract_start_untouched"].status is Status.FAILED
    assert "the start was changed" in checks["contract_start_untouched"].detail
    honest = {check.name: check for check in check_backend(backend_named("newton"), show=False)}
    assert honest["contract_start_untouched"].status is Status.PASSED


class OneBlock(Backend):
    """Minimises over the first set of a product alone, and leaves the others at their centres."""

    name: ClassVar[str] = "one_block"
    offers = frozenset({Feature.SIMPLEX, Feature.LINEAR, Feature.PRODUCT})
    honours = frozenset({"tol"})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        assert isinstance(form.objective, Linear)
        if not isinstance(form.domain, Product):
            return Answer(Stop.OPTIMAL, form.domain.linear_minimiser(form.objective.c))
        first = form.domain.sets[0]
        x = form.domain.centre()
        x[: first.size] = first.linear_minimiser(form.objective.c[: first.size])
        return Answer(Stop.OPTIMAL, x)


def test_a_backend_that_offers_products_is_tested_on_one() -> None:
    checks = {check.name: check.status for check in check_backend(OneBlock(), show=False)}
    assert checks["truth_simplex_linear"] is Status.PASSED
    assert checks["truth_product_linear"] is Status.FAILED


class Negated(Backend):
    """HiGHS with its multipliers negated: right points, wrong signs."""

    name: ClassVar[str] = "negated"
    offers, honours, proves = (
        backend_named("highs").offers,
        backend_named("highs").honours,
        frozenset({"dual"}),
    )

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        answer = backend_named("highs").run(form, settings)
        return Answer(answer.stop, x=answer.x, y=None if answer.y is None else -answer.y)


def test_negated_multipliers_are_found_out() -> None:
    checks = {check.name: check for check in check_backend(Negated(), show=False)}
    assert checks["proof_multipliers_are_gradients"].status is Status.FAILED
    assert checks["contract_shapes"].status is Status.PASSED


class FullStep(Backend):
    """Newton's method on a dual function with a ray search, but without a line search."""

    name: ClassVar[str] = "full_step"
    offers = frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX})
    honours = frozenset({"tol", "max_iter"})
    proves = frozenset({"ray"})
    steps = 50

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        f = form.objective
        assert isinstance(f, DualFunction)
        if (found := f.ray()) is not None:
            return Answer(Stop.UNBOUNDED, ray=found[0])
        every = np.arange(f.size)
        x = np.zeros(f.size)
        for _ in range(settings.max_iter or self.steps):
            here = f.near(x)
            if not np.isfinite(here.value):
                return Answer(Stop.NUMERICAL, x)
            step = np.linalg.lstsq(here.model(every), -here.gradient)[0]
            x = np.maximum(x + step, 0.0)
        return Answer(Stop.OPTIMAL, x)


class Uncorrected(FullStep):
    """Projections onto one row after the other, which never take back what they did."""

    name = "uncorrected"

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        assert isinstance(form, SimplexForm)
        assert isinstance(form.objective, DualFunction)
        if (found := form.objective.ray()) is not None:
            return Answer(Stop.UNBOUNDED, ray=found[0])
        state = form.objective.rows(np.zeros(form.objective.size))
        for _ in range(self.steps):
            for row in range(form.objective.size):
                state.project(row, corrected=False)
        return Answer(Stop.OPTIMAL, state.x)


@pytest.mark.parametrize("backend", [FullStep(), Uncorrected()], ids=lambda b: b.name)
def test_wrong_methods_on_dual_functions_are_found_out(backend: Backend) -> None:
    checks = {check.name: check.status for check in check_backend(backend, show=False)}
    assert checks["truth_orthant_rows"] is Status.FAILED
    assert checks["truth_orthant_rows_contradict"] is Status.PASSED


DUALS = [each for each in reference_instances() if each.name.startswith("orthant_rows")]


@pytest.mark.parametrize("instance", DUALS, ids=lambda instance: instance.name)
@given(data=st.data())
def test_the_dual_functions_of_the_suite_are_consistent(instance: Instance, data) -> None:
    """Gradient and Hessian are those of the value, a row's step ends at its minimum, bounds are below."""
    f = instance.form.objective
    x = np.array(data.draw(st.lists(st.floats(0.0, 0.4), min_size=f.size, max_size=f.size)))
    every = np.arange(f.size)
    here = f.near(x)
    for row, step in enumerate(1e-6 * np.eye(f.size)):
        slope = (f.value(x + step) - f.value(x - step)) / 2e-6
        curvature = (f.gradient(x + step) - f.gradient(x - step)) / 2e-6
        assert here.gradient[row] == pytest.approx(slope, abs=1e-7)
        assert here.model(every)[row] == pytest.approx(curvature, abs=1e-6)
        state = f.rows(x)
        state.project(row)
        left = f.gradient(state.x)[row]
        assert left == pytest.approx(0.0, abs=1e-12) or (state.x[row] == 0 and left > 0)
    if (thin := here.thin_model(every)) is not None:
        assert np.diag(thin[0]) + thin[1] @ thin[1].T == pytest.approx(here.model(every))
    assert f.bound(x) <= f.value(x)
    if instance.verdict is Verdict.OPTIMAL:
        assert f.bound(x) <= instance.value + 1e-15
        assert f.ray(x) is None
        assert f.ray_flaw(np.ones(f.size))
    else:
        ray, _ = f.ray(x)
        assert f.value(x + 1e6 * ray) < -1e5


class Talker(Negated):
    """Prints although it says that it honours log."""

    name = "talker"

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        print("I am solving")
        return super().run(form, settings, start)


class Changer(Negated):
    """Never the same answer twice."""

    name = "changer"

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        answer = super().run(form, settings, start)
        noise = (
            np.random.default_rng().normal(size=form.shape[1] or 1)
            if isinstance(form, ConeForm)
            else 0.0
        )
        return Answer(
            answer.stop, x=None if answer.x is None else answer.x + 1e-9 * noise, y=answer.y
        )


def test_prints_and_chance_are_found_out() -> None:
    talk = {check.name: check.status for check in check_backend(Talker(), show=False)}
    change = {check.name: check.status for check in check_backend(Changer(), show=False)}
    assert talk["contract_silent"] is Status.FAILED
    assert change["contract_deterministic"] is Status.FAILED


class Constant(SoftMargin):
    """A bracket that never looks at the data."""

    def bracket(self, point: Point) -> Bracket:
        return Bracket(7.0, 7.0, point)


def test_a_bracket_that_ignores_the_data_is_found_out() -> None:
    checks = {check.name: check for check in check_problem(Constant, show=False)}
    failed = [check.detail for check in checks.values() if check.status is Status.FAILED]
    assert any(
        "the form says" in detail and "the bracket 7 <= optimum <= 7" in detail for detail in failed
    )


OFF = 1e-10
"""What an end is off by, relative to 1 + |value|: a ten-thousandth of the default tolerance."""


class LowerTooHigh(SimplexProgram):
    """A lower end that is off by 1e-10."""

    def bracket(self, point: Point) -> Bracket:
        bracket = super().bracket(point)
        return replace(bracket, lower=bracket.lower + OFF * (1 + abs(bracket.upper)))


class UpperTooLow(SimplexProgram):
    """An upper end that is off by 1e-10."""

    def bracket(self, point: Point) -> Bracket:
        bracket = super().bracket(point)
        return replace(bracket, upper=bracket.upper - OFF * (1 + abs(bracket.upper)))


class Disarmed(SimplexProgram):
    """The same, with ends that are not allowed to cross."""

    def bracket(self, point: Point) -> Bracket:
        bracket = super().bracket(point)
        lower = bracket.lower + OFF * (1 + abs(bracket.upper))
        return replace(bracket, lower=min(lower, bracket.upper))


class Shifted(SimplexProgram):
    """Both ends are off by 1e-10 to the same side: they never contradict each other."""

    def bracket(self, point: Point) -> Bracket:
        bracket = super().bracket(point)
        shift = OFF * (1 + abs(bracket.upper))
        return replace(bracket, lower=bracket.lower + shift, upper=bracket.upper + shift)


@pytest.mark.parametrize("problem", [LowerTooHigh, UpperTooLow, Disarmed, Shifted])
def test_ends_that_are_off_by_little_are_found_out(problem: type[SimplexProgram]) -> None:
    checks = {check.name: check for check in check_problem(problem, show=False)}
    assert checks["bracket_is_exact"].status is Status.FAILED, checks["bracket_is_exact"].detail


def test_exact_ends_pass() -> None:
    checks = check_problem(SimplexProgram, show=False)
    assert [check.name for check in checks if check.status is not Status.PASSED] == []


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    checks = check_backend(Printer())
    table = capsys.readouterr().out
    assert all(check.name in table for check in checks)
    assert "printer: " in table


def test_an_exemption_must_fail_and_must_exist() -> None:
    def fails() -> None:
        expect(1 + 1 == 3, "no")

    def skips() -> None:
        raise Skip("not for this one")

    assert run_check("c", fails, "known bug").status is Status.EXEMPT
    assert run_check("c", lambda: None, "known bug").status is Status.FAILED
    assert run_check("c", skips).status is Status.SKIPPED

    class Exempt(Liar):
        exempt: ClassVar[dict[str, str]] = {"truth_of_nothing": "there is no such check"}

    named = {check.name: check.status for check in check_backend(Exempt(), show=False)}
    assert named["truth_of_nothing"] is Status.FAILED
