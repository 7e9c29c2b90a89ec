"""The demo's example is true: the minimum by another method, and the statuses as the libraries have them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import nnls

import klopt
from klopt.bench import caught as example_module
from klopt.bench.caught import CODE, Portfolio, caught, covariance
from klopt.bench.report.caught_chart import caught_chart


@pytest.fixture(scope="module")
def example() -> Portfolio:
    return caught()


def nonnegative_least_squares(S: np.ndarray) -> np.ndarray:
    """The minimum-variance weights by Lawson and Hanson's method, which no solver here uses.

    Minimising |L'v|^2 + (1'v - 1)^2 over v >= 0 gives the same weights up to their sum.
    """
    root = np.linalg.cholesky(S).T / np.sqrt(np.trace(S))
    v, _ = nnls(np.vstack([root, np.ones(len(S))]), np.append(np.zeros(len(S)), 1.0))
    return v / v.sum()


def test_the_proven_minimum_is_that_of_another_method(example: Portfolio) -> None:
    S = covariance()
    w = nonnegative_least_squares(S)
    assert example.lower <= w @ S @ w * (1 + 1e-9)
    assert example.upper == pytest.approx(w @ S @ w, rel=1e-8)


def test_no_portfolio_of_exact_rationals_is_below_the_proven_minimum(example: Portfolio) -> None:
    S = covariance()
    w = [Fraction(float(each)) for each in nonnegative_least_squares(S)]
    total = sum(w)
    variance = sum(
        w[i] * w[j] * Fraction(float(S[i, j])) for i in range(len(w)) for j in range(len(w))
    ) / (total * total)
    assert Fraction(example.lower) <= variance


def test_three_solvers_report_success_far_from_the_minimum_and_are_not_confirmed(
    example: Portfolio,
) -> None:
    found = {answer.solver.rsplit(" ", 1)[0]: answer for answer in example.answers}
    assert found["SciPy SLSQP"].status == "Optimization terminated successfully"
    assert found["SCS"].status == "solved"
    assert found["Clarabel"].status == "Solved"
    for name in ("SciPy SLSQP", "SCS"):
        assert not found[name].confirmed
        # Orders of magnitude beyond the relative tolerance that the solver has by default.
        assert found[name].excess > 1000 * found[name].asked
    assert found["Clarabel"].confirmed
    assert found["Clarabel"].excess < 1e-3


def test_judge_confirms_the_same_answers(
    example: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public verb, on the answers as the libraries return them."""
    judged = []

    def judge(problem: object, answer: object) -> bool:
        given = [answer.x] if answer.y is None else [answer.x, answer.y]  # type: ignore[attr-defined]
        judged.append(klopt.judge(problem, *given).verdict.name == "OPTIMAL")
        return judged[-1]

    monkeypatch.setattr(example_module, "_is_confirmed", judge)
    again = caught.__wrapped__()
    assert [answer.confirmed for answer in again.answers] == judged
    assert judged == [answer.confirmed for answer in example.answers]


def test_the_program_shown_says_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    exec(CODE, {})
    said = capsys.readouterr().out
    assert said.startswith("solved\n")
    assert said.index("Result UNPROVEN") < said.index("Result OPTIMAL")


def test_the_picture_quotes_every_status_and_says_how_far_off_it_is(example: Portfolio) -> None:
    figure = caught_chart(example)
    for answer in example.answers:
        assert f"“{answer.status}”" in figure.svg
    assert figure.svg.count("✗ not confirmed") == sum(not a.confirmed for a in example.answers)
    assert figure.svg.count("✓ confirmed") == sum(a.confirmed for a in example.answers)
    assert "report success" in figure.caption
