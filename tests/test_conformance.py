"""The conformance suite itself: it must find what is wrong with a bad backend, and say so as data."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from bad_backends import Bad, Liar, NanReturner, Pointless, Printer, WrongShaper

from klopt.conformance.checks import Skip, Status, expect, run_check
from klopt.conformance.suite import check_backend, check_problem
from klopt.engine.registry import backend_named
from klopt.model.backend import Answer, Backend, Settings, Start
from klopt.model.forms import ConeForm, Form
from klopt.model.problem import Bracket, Point
from klopt.problems import SoftMargin


@pytest.mark.parametrize(
    "backend", [Liar(), NanReturner(), Pointless(), WrongShaper()], ids=lambda b: b.name
)
def test_a_bad_backend_fails_the_truths(backend: Bad) -> None:
    failed = {
        check.name for check in check_backend(backend, show=False) if check.status is Status.FAILED
    }
    assert {"truth_lp_unique", "truth_qp_unique", "proof_lp_known_pair"} <= failed


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
