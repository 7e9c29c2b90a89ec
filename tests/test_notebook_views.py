"""What notebooks show: the verdict as a badge, the formula of the problem, and every text escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import attrs
import numpy as np
import pytest
from report_samples import HOSTILE, Sample, a_run, one_problem

import klopt
from klopt.bench.report.notebook import comparison_html
from klopt.engine.registry import problems
from klopt.model.html import badge, formula, sparkline
from klopt.model.problem import Problem
from klopt.papers.theorems.catalogue import select
from klopt.proof.certificate import Verdict


def a_problem(size: int = 6) -> Problem:
    return klopt.problems.SoftMargin.sample(np.random.default_rng(0), size)


def well_formed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{html}</div>")


def test_a_result_shows_its_verdict_its_gap_and_the_formula() -> None:
    result = klopt.solve(a_problem(), "active_set")
    root = well_formed(result._repr_html_())
    assert next(root.iter("b")).text == "✓ OPTIMAL"
    assert root.find(".//{http://www.w3.org/1998/Math/MathML}math") is not None
    cells = {row[0].text: row[1].text for row in root.iter("tr")}
    assert cells["relative gap"] == f"{result.certificate.relative_gap:.1e}, asked for 1e-06"
    assert cells["solver status"] == "optimal"


def test_the_curve_of_the_gap_is_there_where_a_solver_gives_bounds() -> None:
    assert "<polyline" in klopt.solve(a_problem(60), "nesterov")._repr_html_()
    assert "<polyline" not in klopt.solve(a_problem(), "clarabel")._repr_html_()


def test_a_sparkline_falls_where_the_gap_does() -> None:
    line = next(well_formed(sparkline([1.0, 1e-2, 1e-4, 1e-8], "gap")).iter("polyline"))
    heights = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]
    assert sparkline([1.0, np.inf, np.nan], "gap") == ""


def test_a_plan_shows_its_routes_in_order_and_counts_what_it_refuses() -> None:
    plan = klopt.plan(a_problem())
    root = well_formed(plan._repr_html_())
    names = [row[1].text for row in root.iter("tr")][1:]
    assert names == [route.backend.name for route in plan.routes]
    assert f"Routes refused: {len(plan.refusals)}" in plan._repr_html_()


def test_a_comparison_shows_which_solver_to_take_and_two_charts() -> None:
    html = comparison_html(one_problem())
    assert "✓ 4 of 8 certified" in html
    assert "Take libsvm" in html
    assert html.count("<img ") == 2


def test_a_verification_shows_every_finding() -> None:
    claim = next(claim.name for claim in select() if claim.printed is not None)
    found = klopt.verify([claim], trials=1)
    root = well_formed(found._repr_html_())
    assert next(root.iter("b")).text in ("✓ as expected", f"✗ {len(found.unexpected)} unexpected")
    assert len(list(root.iter("tr"))) == 1 + len(found.findings)


@pytest.mark.parametrize("kind", problems(), ids=lambda kind: kind.__name__)
def test_the_repr_of_a_problem_is_one_short_line(kind: type[Problem]) -> None:
    made = kind.sample(np.random.default_rng(0), 20)
    assert repr(made) == made.describe()
    assert "\n" not in repr(made)
    assert len(repr(made)) < 200
    assert made.describe() in well_formed(made._repr_html_()).findtext(".//b", "")


def test_a_class_may_have_a_repr_of_its_own() -> None:
    @attrs.frozen(slots=False)
    class Own(klopt.problems.LP):  # type: ignore[misc]
        def __repr__(self) -> str:
            return "mine"

    made = object.__new__(Own)
    assert repr(made) == "mine"


def test_texts_are_escaped_and_formulas_are_not() -> None:
    assert "<img" not in badge(HOSTILE) + sparkline([1.0, 0.1, 0.01], HOSTILE)
    assert formula(r"GOAL_{x}\; c^\top x", "max").startswith("<math")


def test_badges_are_told_apart_without_colour() -> None:
    words = {well_formed(badge(verdict.name)).findtext("b") for verdict in Verdict}
    assert len({word.split()[0] for word in words if word}) == len(Verdict)


def test_a_comparison_without_proofs_that_agree_says_so() -> None:
    runs = [a_run(lower=1.0, upper=1.1), a_run(key="1" * 16, backend="b", lower=2.0, upper=2.1)]
    assert "✗ CONTRADICTION" in comparison_html(Sample(runs))
