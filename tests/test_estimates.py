"""Evidence is no proof: ESTIMATED in results, in several attempts together, in the command, in comparisons."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from recorded import made_run
from report_samples import Sample
from strategies import TINY_LP

import klopt
from klopt.bench.record import Run
from klopt.bench.report.page import page
from klopt.bench.scores import (
    agreement,
    estimated,
    fastest,
    scores,
    status_scores,
    trials,
    verdict_sentence,
)
from klopt.bench.store import Store
from klopt.bench.table import as_text
from klopt.bench.worker import FinishedRun
from klopt.cli.main import main
from klopt.engine.format import document, result_data
from klopt.engine.result import Attempt, Result, Timings, combine
from klopt.errors import InvalidSettings, NotCertified, UncertifiedFit
from klopt.model.backend import Answer, Settings, Stop
from klopt.model.problem import Bracket, Point
from klopt.problems import LP
from klopt.proof.certificate import Certificate, Verdict

INF = np.inf
MINIMUM = LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])
"""Minimise x + y over x, y >= 0 and x + 2 y >= 1; the optimum is 1/2."""


def unbracketed(self: LP, point: Point) -> Bracket:
    return Bracket(-INF, INF, point)


@pytest.fixture
def no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear programs of which no bound is proven: small residuals are all there is."""
    monkeypatch.setattr(LP, "bracket", unbracketed)


def attempt(
    verdict: Verdict, lower: float, upper: float, x: float = 0.0, **parts: object
) -> Attempt:
    """An attempt with that certificate; x tells its point from others."""
    kind = {Verdict.FEASIBLE: "bracket", Verdict.ESTIMATED: "estimate"}.get(verdict, "none")
    certificate = Certificate(verdict, lower, upper, 1e-6, kind, **parts)  # type: ignore[arg-type]
    route = klopt.plan(MINIMUM).routes[0]
    return Attempt(route, Answer(Stop.OPTIMAL), certificate, Point({"x": [x]}), Timings(0, 0, 0, 0))


def joined(*attempts: Attempt) -> Result:
    return combine(MINIMUM, Settings(1e-6), attempts, 0.0)


# One attempt


def test_residuals_within_tol_are_evidence_and_leave_both_ends_open(no_bounds: None) -> None:
    result = klopt.solve(MINIMUM, backend="highs")
    assert (result.verdict, result.certificate.proof) == (Verdict.ESTIMATED, "residuals")
    assert (result.lower, result.upper) == (-INF, INF)
    assert result.estimate is not None
    assert result.estimate[0] <= 0.5 <= result.estimate[1]
    assert result.value == result.estimate[1] == pytest.approx(0.5)
    for text in (repr(result), result.explain(), result._repr_html_()):
        assert "ESTIMATED" in text
        assert "estimate" in text
        assert "not proven" in text


def test_an_estimate_is_required_by_name_only(no_bounds: None) -> None:
    result = klopt.solve(MINIMUM, backend="highs")
    with pytest.raises(NotCertified, match="ESTIMATED: Evidence without proof"):
        result.require()
    with pytest.raises(NotCertified):
        result.require(accept="proven")
    assert result.require(accept="estimated") is result
    with pytest.raises(InvalidSettings, match="accept is 'anything'"):
        result.require(accept="anything")  # type: ignore[arg-type]


def test_what_is_proven_is_accepted_either_way_and_what_is_not_even_estimated_never() -> None:
    proven = klopt.solve(MINIMUM)
    assert proven.verdict is Verdict.OPTIMAL
    assert proven.require() is proven.require(accept="estimated") is proven
    for verdict in (Verdict.FEASIBLE, Verdict.UNPROVEN):
        with pytest.raises(NotCertified):
            joined(attempt(verdict, -INF, 1.0)).require(accept="estimated")


def test_an_estimate_ends_no_search(no_bounds: None) -> None:
    """Like a feasible point, it is not conclusive: every route is tried.

    CVXPY would only ask Clarabel or SCS once more.
    """
    routes = {str(route) for route in klopt.plan(MINIMUM).routes if route.backend.name != "cvxpy"}
    result = klopt.solve(MINIMUM)
    assert {str(each.route) for each in result.attempts} == routes
    assert result.verdict is Verdict.ESTIMATED


def test_where_nothing_can_be_proven_the_first_estimate_is_the_last(
    no_bounds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LP, "provable", False)
    assert len(klopt.solve(MINIMUM).attempts) == 1


def test_json_keeps_the_estimate_apart_from_the_interval(no_bounds: None) -> None:
    result = klopt.solve(MINIMUM, backend="highs")
    found = json.loads(document("solve", result_data(result)))
    assert (found["verdict"], found["certified"], found["proof"]) == (
        "ESTIMATED",
        False,
        "residuals",
    )
    assert (found["lower"], found["upper"]) == ("-inf", "inf")
    assert found["estimate"] == list(result.estimate or ())
    assert found["value"] == result.value
    assert found["attempts"][0]["estimate"] == found["estimate"]


def test_json_of_a_proof_has_no_estimate() -> None:
    found = json.loads(document("solve", result_data(klopt.solve(MINIMUM))))
    assert (found["verdict"], found["estimate"], found["data_change"]) == ("OPTIMAL", None, "")


# Several attempts


def test_only_proven_ends_are_intersected() -> None:
    """The estimate [2, 2] lies inside [1, 5], which two halves of a proof give."""
    result = joined(
        attempt(Verdict.ESTIMATED, -INF, 5.0, estimate=(2.0, 2.0), upper_by="a point"),
        attempt(Verdict.UNPROVEN, 1.0, INF, lower_by="weak duality"),
    )
    assert (result.verdict, result.lower, result.upper) == (Verdict.ESTIMATED, 1.0, 5.0)
    assert result.estimate == (2.0, 2.0)
    assert result.value == 5.0
    certificate = result.certificate
    assert (certificate.lower_by, certificate.upper_by) == ("weak duality", "a point")


def test_an_estimate_is_cut_to_what_others_prove_and_dropped_where_they_refute_it() -> None:
    guess = attempt(Verdict.ESTIMATED, -INF, INF, estimate=(2.0, 2.0 + 1e-7))
    cut = joined(guess, attempt(Verdict.UNPROVEN, 2.0 + 5e-8, INF))
    assert (cut.verdict, cut.estimate) == (Verdict.ESTIMATED, (2.0 + 5e-8, 2.0 + 1e-7))
    refuted = joined(guess, attempt(Verdict.UNPROVEN, 3.0, INF))
    assert (refuted.verdict, refuted.estimate) == (Verdict.UNPROVEN, None)
    assert (refuted.lower, refuted.upper) == (3.0, INF)
    below = joined(guess, attempt(Verdict.FEASIBLE, -INF, 1.0, x=1.0))
    assert (below.verdict, below.estimate, below.value) == (Verdict.FEASIBLE, None, 1.0)
    assert below.point is not None
    assert below.point.x[0] == 1.0
    other_data = replace(guess, certificate=replace(guess.certificate, data_change="b[0] by 1 ulp"))
    kept = joined(other_data, attempt(Verdict.UNPROVEN, 3.0, INF))
    assert (kept.verdict, kept.estimate) == (Verdict.ESTIMATED, (2.0, 2.0 + 1e-7))


def test_evidence_is_worth_more_than_a_point_of_unknown_distance_and_less_than_one_of_known() -> (
    None
):
    guess = attempt(Verdict.ESTIMATED, -INF, INF, x=1.0, estimate=(2.0, 2.0))
    one_sided = attempt(Verdict.FEASIBLE, -INF, 7.0, x=2.0)
    two_sided = attempt(Verdict.FEASIBLE, 1.0, 9.0, x=3.0)
    for several in ((guess, one_sided), (one_sided, guess)):
        result = joined(*several)
        assert (result.verdict, result.value, result.upper) == (Verdict.ESTIMATED, 2.0, 7.0)
        assert result.chosen is guess
    for several in ((guess, two_sided), (two_sided, guess)):
        result = joined(*several)
        assert (result.verdict, result.value, result.chosen) == (Verdict.FEASIBLE, 9.0, two_sided)
    # Of points that are proven feasible the better one counts, whoever proves the other side.
    result = joined(guess, two_sided, one_sided)
    assert (result.verdict, result.value, result.chosen) == (Verdict.FEASIBLE, 7.0, one_sided)
    assert (result.lower, result.upper) == (1.0, 7.0)


def test_two_halves_of_a_proof_supersede_an_estimate() -> None:
    result = joined(
        attempt(Verdict.ESTIMATED, -INF, 2.0, estimate=(2.0, 2.0), data_change="b[0] by 1 ulp"),
        attempt(Verdict.UNPROVEN, 2.0 - 1e-9, INF),
    )
    assert (result.verdict, result.certificate.proof) == (Verdict.OPTIMAL, "bracket")
    assert (result.estimate, result.certificate.data_change) == (None, "")


def test_proofs_that_contradict_each_other_leave_no_estimate() -> None:
    result = joined(
        attempt(Verdict.ESTIMATED, -INF, 1.0, estimate=(1.0, 1.0)),
        attempt(Verdict.UNPROVEN, 2.0, INF),
    )
    assert (result.verdict, result.estimate) == (Verdict.UNPROVEN, None)
    assert (result.lower, result.upper) == (-INF, INF)
    assert "one of their proofs does not hold" in result.explain()


def test_a_conclusive_verdict_that_another_proof_contradicts_is_withdrawn_however_loose_tol_is() -> (
    None
):
    optimal = Certificate(Verdict.OPTIMAL, 1.0, 1.0, 0.1, "bracket")
    tried = replace(attempt(Verdict.OPTIMAL, 1.0, 1.0), certificate=optimal)
    result = combine(MINIMUM, Settings(0.1), (attempt(Verdict.UNPROVEN, 1.001, INF), tried), 0.0)
    assert result.verdict is Verdict.UNPROVEN


# The command


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--accept", "proven"], 1),
        (["--accept", "estimated"], 0),
        (["--accept", "all"], 2),
    ],
)
def test_the_command_accepts_an_estimate_only_if_told_to(
    no_bounds: None, tmp_path: Path, options: list[str], code: int
) -> None:
    model = tmp_path / "model.mps"
    model.write_text(TINY_LP)
    done = CliRunner().invoke(main, ["solve", str(model), "--backend", "highs", *options])
    assert done.exit_code == code
    if code < 2:
        assert done.output.startswith("ESTIMATED")
        assert "not proven" in done.output
        assert "<= optimum <=" not in done.output


# Learners


def test_a_learner_warns_of_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    import klopt.learners._base as base

    learner = klopt.learners.MklSVC()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    solve = base.solve

    def estimate(*arguments: object, **options: object) -> Result:
        result = solve(*arguments, **options)  # type: ignore[arg-type]
        ends = (result.lower, result.upper)
        certificate = Certificate(Verdict.ESTIMATED, -INF, INF, 1e-6, "residuals", estimate=ends)
        return replace(result, certificate=certificate)

    monkeypatch.setattr(base, "solve", estimate)
    with pytest.warns(UncertifiedFit, match="its optimum is estimated without proof"):
        learner.fit(X, X[:, 0] > 0)


# Comparisons


def guessed(**fields: object) -> Run:
    """A run whose optimum is estimated by residuals."""
    told = {
        "verdict": Verdict.ESTIMATED, "proof": "residuals", "lower": -INF, "upper": INF,
        "estimate_lower": 1.0, "estimate_upper": 1.0 + 1e-8,
    }  # fmt: skip
    return made_run(**(told | fields))


def test_an_estimate_is_neither_certified_nor_a_false_claim() -> None:
    runs = [guessed(), made_run(problem="Q"), guessed(problem="Q", backend="b", seconds=0.1)]
    assert [trial.certified for trial in trials(runs)] == [False, True, False]
    assert [trial.estimated for trial in trials(runs)] == [True, False, True]
    assert estimated(runs) == {"a": 1, "b": 1}
    counts = {name: (s.confirmed, s.claimed) for name, s in status_scores(runs).items()}
    assert counts == {"a": (1, 1), "b": (0, 0)}
    assert {problem: run.backend for problem, run in fastest(runs).items()} == {"Q": "a"}
    assert [(score.backend, score.estimated) for score in scores(runs)] == [("a", 1), ("b", 1)]
    assert guessed().value == 1.0 + 1e-8
    assert guessed(sense="max").value == 1.0
    assert guessed().status_confirmed is None
    assert guessed(says=Stop.INFEASIBLE).status_confirmed is False


def test_another_formulation_that_certifies_leaves_nothing_estimated() -> None:
    runs = [guessed(), made_run(formulation="dual")]
    assert estimated(runs) == {"a": 0}
    mixed = [guessed(repeat=0), made_run(repeat=1)]
    assert trials(mixed)[0].estimated
    failed = [guessed(repeat=0), made_run(repeat=1, verdict=Verdict.UNPROVEN)]
    assert not trials(failed)[0].estimated


def test_an_estimate_contradicts_no_proof() -> None:
    runs = [guessed(backend="b", estimate_lower=5.0, estimate_upper=5.0), made_run()]
    found = agreement(runs)["P"]
    assert found.holds
    assert (found.lower, found.upper) == (1.0, 1.0 + 1e-7)


def test_tables_pages_and_sentences_name_what_is_estimated() -> None:
    alone = verdict_sentence([guessed()])
    assert alone.startswith("0 of 1 route certify P to 1e-06; 1 estimates it without proof.")
    runs = (guessed(), made_run(problem="Q"))
    assert "1 only estimated; nobody certifies P" in verdict_sentence(runs)
    text = as_text(Compared(runs))
    assert "ESTIMATED" in text
    assert "~1" in text
    assert "by residuals, without proof" in " ".join(text.split())
    assert "estimated" in text.split("backend  ")[-1]
    html = page(Sample(runs))
    assert "≈" in html
    assert f"[1, {1 + 1e-8:.17g}], not proven" in html
    assert "<button>estimated</button>" in html
    assert "<button>estimated</button>" not in page(Sample((made_run(), made_run(problem="Q"))))


class Compared(Sample):
    """What a table of a comparison is made of."""

    limits = "no limit"
    refusals = ()


def test_a_store_keeps_an_estimate(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(replace(guessed(), key="1")))
        store.add(FinishedRun(replace(made_run(), key="2")))
        first, second = store.runs()
    assert first == replace(guessed(), key="1")
    assert math.isnan(second.estimate_lower)
    assert math.isnan(second.estimate_upper)
