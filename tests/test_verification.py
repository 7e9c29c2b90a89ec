"""Tests of the verifier: what is false is refuted, what is true is not, and what cannot be decided is left open."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import klopt
from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import rational, read_case, write_case
from klopt.papers.theorems.catalogue import PAPERS, claims, select
from klopt.papers.theorems.claim import Case, Claim, Outcome, theorem
from klopt.papers.theorems.evidence import (
    Evidence,
    Interval,
    at_most,
    equal,
    every,
    not_measured,
    overlap,
    reached,
)
from klopt.papers.theorems.verification import examine, replay, verify_claims


def vectors(rng: np.random.Generator, n: int) -> Case:
    return {"a": rng.normal(size=n), "b": rng.normal(size=n)}


def cauchy_schwarz(factor: float) -> Claim:
    """|a'b| <= factor |a| |b|, true exactly for factors from 1 on."""

    @theorem(
        f"cs-{factor}", says="Cauchy-Schwarz", draw=vectors, whole=("a", "b"), sizes=(1, 2, 3),
        exact=lambda case: ((case["a"] @ case["b"]) ** 2,
                            Fraction(factor) ** 2 * (case["a"] @ case["a"]) * (case["b"] @ case["b"])),
    )  # fmt: skip
    def claim(case: Case) -> Evidence:
        left, right = (
            abs(case["a"] @ case["b"]),
            np.linalg.norm(case["a"]) * np.linalg.norm(case["b"]),
        )
        return at_most(float(left), factor * float(right))

    return claim


@pytest.mark.parametrize("factor", [0.999, 0.9, 0.5, 0.1])
def test_a_bound_that_is_too_small_is_refuted_in_exact_arithmetic(factor: float) -> None:
    found = examine(cauchy_schwarz(factor), 50, seed=0)
    assert found.outcome is Outcome.REFUTED
    assert found.proven
    assert not found.expected


def test_the_counterexample_is_small_and_round() -> None:
    found = examine(cauchy_schwarz(0.5), 50, seed=0)
    assert found.counterexample is not None
    assert found.counterexample["a"].size == 1
    assert np.array_equal(found.counterexample["a"], np.round(found.counterexample["a"]))


def test_a_true_bound_is_never_refuted_in_ten_thousand_trials() -> None:
    found = examine(cauchy_schwarz(1.0), 10_000, seed=1)
    assert found.outcome is Outcome.HOLDS
    assert found.trials == 10_000


def test_a_true_identity_is_never_refuted_in_ten_thousand_trials() -> None:
    @theorem("polarisation", says="4 a'b = |a + b|^2 - |a - b|^2", draw=vectors)
    def claim(case: Case) -> Evidence:
        a, b = case["a"], case["b"]
        return equal(4 * a @ b, (a + b) @ (a + b) - (a - b) @ (a - b), scale=float(a @ a + b @ b))

    assert examine(claim, 10_000, seed=2).outcome is Outcome.HOLDS


def test_an_identity_with_a_wrong_constant_is_refuted_and_its_correction_holds() -> None:
    def lengths(case: Case, factor: float) -> Evidence:
        a, b = case["a"], case["b"]
        return equal((a + b) @ (a + b) + (a - b) @ (a - b), factor * (a @ a + b @ b))

    @theorem("parallelogram", says="wrong", draw=vectors, corrected=lambda case: lengths(case, 2.0),
             expected=Outcome.CORRECTED)  # fmt: skip
    def claim(case: Case) -> Evidence:
        return lengths(case, 1.0)

    found = examine(claim, 50, seed=0)
    assert found.outcome is Outcome.CORRECTED
    assert found.expected
    assert found.printed is not None
    assert found.corrected is not None
    assert found.printed.fails
    assert found.corrected.holds


def test_a_wrong_correction_is_refuted_too() -> None:
    @theorem(
        "twice wrong", says="a = 0", draw=vectors, corrected=lambda case: equal(case["a"], 1.0)
    )
    def claim(case: Case) -> Evidence:
        return equal(case["a"], 0.0, scale=1.0)

    assert examine(claim, 20, seed=0).outcome is Outcome.REFUTED


def test_an_interval_that_is_too_wide_decides_nothing() -> None:
    @theorem("wide", says="the optimum is at most 1", draw=lambda rng, n: {})
    def claim(case: Case) -> Evidence:
        return at_most(Interval(0.5, 1.5), 1.0)

    assert examine(claim, 5, seed=0).outcome is Outcome.INCONCLUSIVE


def test_a_wide_reference_leaves_an_equality_open() -> None:
    assert not overlap(Interval(0.0, 2.0), Interval(1.0, 1.0), tol=1e-6).holds
    assert not overlap(Interval(0.0, 2.0), Interval(1.0, 1.0), tol=1e-6).fails
    assert overlap(Interval(1.0, 1.0 + 1e-9), Interval(1.0, 1.0), tol=1e-6).holds
    assert overlap(Interval(0.0, 0.5), Interval(1.0, 1.0), tol=1e-6).fails


def test_a_premise_that_no_case_meets_is_said() -> None:
    @theorem("vacuous", says="anything", draw=vectors, premise="never", meets=lambda case: False)
    def claim(case: Case) -> Evidence:
        raise AssertionError("a case without its premise must not be measured")

    assert examine(claim, 5, seed=0).outcome is Outcome.UNMET


def test_a_check_that_breaks_is_no_verdict() -> None:
    @theorem("broken", says="anything", draw=vectors)
    def claim(case: Case) -> Evidence:
        raise ZeroDivisionError("in the check")

    found = examine(claim, 5, seed=0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "in the check" in found.trouble


@pytest.mark.parametrize("parts", [(np.nan,), (0.5, np.nan), (np.nan, 0.5), (np.nan, 2.0)])
def test_what_is_not_a_number_neither_holds_nor_refutes(parts: tuple[float, ...]) -> None:
    @theorem("nan", says="nan <= 1", draw=vectors)
    def claim(case: Case) -> Evidence:
        return every(at_most(part, 1.0) for part in parts)

    found = examine(claim, 5, seed=0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.trouble == "trial 1: measured / allowed is not a number (NaN)"


def test_the_trial_that_decides_nothing_is_named_and_shown() -> None:
    """Its lower end is not the largest: the evidence shown is that of the trial in doubt."""

    @theorem("open", says="x <= 1", draw=vectors, sizes=(1, 2, 3))
    def claim(case: Case) -> Evidence:
        return at_most(Interval(0.5, 1.5) if case["a"].size == 2 else 0.99, 1.0)

    found = examine(claim, 6, seed=0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.trouble.startswith("trial 2: measured / allowed lies in")
    assert found.printed is not None
    assert found.printed.worst == pytest.approx(1.5)


def test_parts_that_measured_nothing_are_left_out_of_every() -> None:
    assert every([not_measured(), at_most(1.0, 2.0)]).holds
    assert not every([not_measured("odd")]).measured


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_at_most_holds_exactly_where_the_numbers_are_ordered(left: float, right: float) -> None:
    evidence = at_most(left, right)
    if left <= right:
        assert evidence.holds
    elif left - right > 1e-9 * max(abs(left), abs(right)):
        assert evidence.fails


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=5))
def test_every_is_as_strong_as_its_weakest_part(ratios: list[float]) -> None:
    evidence = every(Evidence(ratio, ratio) for ratio in ratios)
    assert evidence.holds == (max(ratios) <= 1.0)


def test_the_exponent_of_a_run_is_fitted_with_its_interval() -> None:
    steps = np.arange(1.0, 200.0)
    evidence = reached(
        steps.tolist(), (2.0 / steps).tolist(), (3.0 / steps).tolist(), predicted=-1.0
    )
    assert evidence.holds
    assert evidence.curve is not None
    fit = evidence.curve.fit()
    assert fit is not None
    assert fit.lower - 1e-9 <= -1.0 <= fit.upper + 1e-9
    assert evidence.worst == pytest.approx(2 / 3)


def test_a_case_file_comes_back_bit_for_bit_and_replays(tmp_path: Path) -> None:
    claim = cauchy_schwarz(0.5)
    found = examine(claim, 50, seed=3)
    assert found.counterexample is not None
    write_case(tmp_path / "case.json", claim.name, found.counterexample)
    name, case = read_case(tmp_path / "case.json")
    assert name == claim.name
    assert all(np.array_equal(case[entry], found.counterexample[entry]) for entry in case)
    again = replay(claim, case)
    assert again.outcome is Outcome.REFUTED
    assert again.proven


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"claim": "x"}', '{"claim": "x", "case": 3}'])
def test_a_file_without_a_case_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "case.json").write_text(text)
    with pytest.raises(InvalidSettings, match="case"):
        read_case(tmp_path / "case.json")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_become_the_fractions_that_they_are(value: float) -> None:
    assert float(rational({"a": value})["a"]) == value
    assert float(rational({"a": np.array([value])})["a"][0]) == value


def test_findings_depend_on_the_seed_and_not_on_the_company() -> None:
    alone = verify_claims(select(["mao2010-eq2"]), trials=20, seed=5).findings[0]
    among = verify_claims(
        select(["pan2016-eq1", "mao2010-eq2"]), trials=20, seed=5, jobs=2
    ).findings[1]
    assert alone.printed == among.printed


def test_claims_have_unique_names_and_say_something() -> None:
    names = [name for claim in claims() for name in (claim.name, claim.formerly) if name]
    assert len(names) == len(set(names))
    for claim in claims():
        assert claim.says, claim.name
        assert claim.number, claim.name
        # What is known of a method is the theorem of another paper, with its reference.
        assert claim.quote or claim.is_of_a_method, claim.name
        assert claim.name.startswith(f"{claim.paper}-"), claim.name
        assert claim.paper in PAPERS, claim.name
        # A remark is klopt's own: it is there because it is true.
        if claim.is_remark:
            assert claim.expected in (Outcome.HOLDS, Outcome.PROVEN), claim.name
        decided = claim.printed is not None or claim.proof is not None
        assert decided == (claim.expected is not Outcome.UNCHECKED), claim.name
        assert claim.reason or decided, claim.name
        if claim.expected in (Outcome.CORRECTED, Outcome.PROVEN_CORRECTED, Outcome.REFUTED):
            assert claim.correction, claim.name


def test_a_typo_names_its_neighbour() -> None:
    with pytest.raises(InvalidSettings, match="did you mean 'mao2010-eq2"):
        select(["mao2010-eq2x"])
    with pytest.raises(InvalidSettings, match="no claim of paper '999'"):
        select(paper="999")


OWN = """
import klopt
from klopt.papers.theorems.evidence import at_most

@klopt.theorem("mine", number="1", says="a <= a^2 + 1/4", draw=lambda rng, n: {"a": rng.normal()})
def mine(case):
    return at_most(case["a"], case["a"] ** 2 + 0.25)
"""


def test_a_third_party_adds_a_theorem_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    found = klopt.verify(str(tmp_path / "mine.py"), trials=200)
    assert found["mine"].outcome is Outcome.HOLDS


def test_cases_of_all_claims_can_be_written_as_json() -> None:
    for claim in claims():
        if claim.draw is not None:
            case = claim.draw(np.random.default_rng(0), claim.sizes[0])
            json.dumps(
                {name: np.asarray(value).tolist() for name, value in case.items()}, allow_nan=False
            )


def test_remarks_are_counted_apart() -> None:
    found = klopt.verify(["xie2017-lemma2", "xie2017-rate"], trials=2)
    assert repr(found) == "Verification of 1 claim: 1 PROVEN; 1 remark: 1 HOLDS; 0 unexpected"
    assert [finding.claim.name for finding in found.remarks] == ["xie2017-rate"]
    assert found["002-16"] is found["xie2017-rate"]
