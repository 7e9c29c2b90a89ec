"""The statistics of a comparison obey their laws, and nobody wins without a proof."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from recorded import made_run

from klopt.bench.record import Run
from klopt.bench.scores import (
    LEVELS,
    agreement,
    certified_rate,
    fastest,
    gap_times,
    growth,
    leaders,
    machine_sentence,
    mean_gap,
    pairs,
    profile,
    reference_gap,
    scores,
    shift_of,
    shifted_geometric_mean,
    standings,
    status_scores,
    summary_lines,
    taken,
    trials,
    verdict_sentence,
)
from klopt.bench.table import gap_table
from klopt.engine.format import console
from klopt.model.backend import Stop
from klopt.proof.certificate import Verdict

BACKENDS = ("a", "b", "c")


def failed(**fields: object) -> Run:
    """A run that says optimal and proves nothing."""
    return made_run(
        verdict=Verdict.UNPROVEN, lower=-math.inf, upper=math.inf, proof="none", **fields
    )


@st.composite
def suites(draw: st.DrawFn) -> list[Run]:
    """Up to three backends, two formulations and four problems of one optimum each, proven or not, once or twice."""
    runs = []
    times = st.floats(1e-4, 60.0)
    for problem in range(draw(st.integers(1, 4))):
        for backend in draw(st.lists(st.sampled_from(BACKENDS), min_size=1, unique=True)):
            for formulation in draw(
                st.lists(st.sampled_from(("primal", "dual")), min_size=1, unique=True)
            ):
                for repeat in range(draw(st.integers(1, 2))):
                    fields = {
                        "problem": f"P{problem}",
                        "backend": backend,
                        "formulation": formulation,
                    }
                    make = made_run if draw(st.booleans()) else failed
                    runs.append(make(**fields, repeat=repeat, seconds=draw(times)))
    return runs


@given(suites())
def test_a_profile_rises_and_stays_below_the_certified_rate(runs: list[Run]) -> None:
    rates = certified_rate(runs, 1e-6)
    for backend, (ratios, shares) in profile(runs).items():
        assert (np.diff(ratios) > 0).all()
        assert (np.diff(shares) > 0).all()
        assert (ratios >= 1).all()
        assert shares.max(initial=0.0) <= rates[backend] + 1e-12


@given(suites())
def test_every_certified_problem_has_a_backend_at_ratio_one(runs: list[Run]) -> None:
    at_one = sum(
        shares[0] for ratios, shares in profile(runs).values() if ratios.size and ratios[0] == 1
    )
    certified = {trial.first.problem for trial in trials(runs) if trial.certified}
    assert at_one >= len(certified) / len({run.problem for run in runs}) - 1e-12


def test_a_profile_counts_problems_within_a_ratio_of_the_fastest() -> None:
    runs = [
        made_run(problem="P", backend="a", seconds=1.0),
        made_run(problem="P", backend="b", seconds=4.0),
        made_run(problem="Q", backend="a", seconds=3.0),
        made_run(problem="Q", backend="b", seconds=1.0),
        failed(problem="R", backend="a", seconds=0.1),
    ]
    found = profile(runs)
    assert found["a"][0].tolist() == [1.0, 3.0]
    assert found["a"][1] == pytest.approx([1 / 3, 2 / 3])
    assert found["b"][0].tolist() == [1.0, 4.0]


@given(suites(), st.floats(1e-3, 10.0))
def test_a_mean_time_lies_between_the_least_and_the_most_that_was_charged(
    runs: list[Run], shift: float
) -> None:
    for backend, mean in shifted_geometric_mean(runs, shift).items():
        charged = [trial.seconds for trial in trials(runs) if trial.first.backend == backend]
        assert min(charged) - 1e-9 <= mean <= max(charged) + 1e-9


def test_a_failure_is_charged_the_limit_however_fast_it_failed() -> None:
    assert shifted_geometric_mean([failed(seconds=0.01)])["a"] == pytest.approx(60.0)


def test_a_large_shift_gives_the_ordinary_mean_and_a_small_one_the_geometric_mean() -> None:
    runs = [made_run(problem="P", seconds=1.0), made_run(problem="Q", seconds=4.0)]
    assert shifted_geometric_mean(runs, 1e6)["a"] == pytest.approx(2.5, rel=1e-4)
    assert shifted_geometric_mean(runs, 1e-9)["a"] == pytest.approx(2.0, rel=1e-6)


def test_the_shift_is_a_hundredth_of_the_limit_and_at_most_ten_seconds() -> None:
    assert shift_of([made_run(time_limit=60.0)]) == pytest.approx(0.6)
    assert shift_of([made_run(time_limit=math.inf)]) == 10.0


@given(st.floats(0.5, 4.0), st.floats(-3.0, 0.0))
def test_growth_recovers_a_planted_exponent(exponent: float, scale: float) -> None:
    runs = [
        made_run(problem=str(n), size=n, seconds=10.0**scale * n**exponent)
        for n in (50, 100, 200, 400)
    ]
    found = growth(runs)["LP", "a on primal"]
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.low <= found.exponent <= found.high
    assert found.factor == pytest.approx(10.0**scale, rel=1e-5)


def test_the_interval_of_growth_holds_the_exponent_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        noise = np.exp(rng.normal(scale=0.3, size=5))
        sizes = (50, 100, 200, 400, 800)
        runs = [
            made_run(problem=str(n), size=n, seconds=n**2.5 * e)
            for n, e in zip(sizes, noise, strict=True)
        ]
        found = growth(runs)["LP", "a on primal"]
        hits += found is not None and found.low <= 2.5 <= found.high
    assert 365 <= hits <= 395  # 380 expected, standard deviation 4.4


def test_growth_needs_three_certified_sizes() -> None:
    runs = [made_run(problem=str(n), size=n) for n in (1, 2)] + [failed(problem="3", size=3)]
    assert growth(runs) == {("LP", "a on primal"): None}


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3)), min_size=1, max_size=6))
def test_intervals_are_intersected_or_named_never_averaged(ends: list[tuple[float, float]]) -> None:
    runs = [
        made_run(backend=f"b{i}", lower=low, upper=low + width, verdict=Verdict.FEASIBLE)
        for i, (low, width) in enumerate(ends)
    ]
    found = agreement(runs)["P"]
    low, high = max(run.lower for run in runs), min(run.upper for run in runs)
    if found.holds:
        assert (found.lower, found.upper) == (low, high)
        assert all(run.lower <= found.lower and found.upper <= run.upper for run in runs)
    else:
        assert found.below.lower == low > high == found.above.upper
        assert found.below.backend in str(found)
        assert f"{found.above.upper:.10g}" in str(found)
        assert not fastest(runs)


def test_disjoint_intervals_are_an_error_with_two_names_and_no_winner() -> None:
    runs = [
        made_run(backend="a", lower=1.0, upper=1.0),
        made_run(backend="b", lower=2.0, upper=2.0),
    ]
    assert not agreement(runs)["P"].holds
    assert "[2, 2] by b on primal and [1, 1] by a on primal do not overlap" in verdict_sentence(
        runs
    )
    assert "contradict" in summary_lines(runs)[0]
    assert not fastest(runs)


def test_infeasible_contradicts_a_feasible_point_and_agrees_with_itself() -> None:
    proof = {"verdict": Verdict.INFEASIBLE, "lower": math.inf, "upper": math.inf, "proof": "farkas"}
    assert agreement([made_run(**proof), made_run(backend="b", **proof)])["P"].holds
    assert not agreement([made_run(**proof), made_run(backend="b")])["P"].holds


@pytest.mark.parametrize(("start", "holds"), [(1.0, True), (math.nextafter(1.0, 2.0), False)])
def test_intervals_that_touch_agree_and_no_gap_is_small_enough(start: float, holds: bool) -> None:
    runs = [
        made_run(backend="a", lower=1.0, upper=1.0),
        made_run(backend="b", lower=start, upper=2.0),
    ]
    assert agreement(runs)["P"].holds == holds


@given(suites())
def test_nobody_wins_without_a_proof(runs: list[Run]) -> None:
    for problem, winner in fastest(runs).items():
        same = [
            run for run in runs if (run.problem, run.backend, run.formulation) == _route(winner)
        ]
        assert winner.problem == problem
        assert all(run.verdict.conclusive for run in same)
    certified = {trial.first.problem for trial in trials(runs) if trial.certified}
    assert set(fastest(runs)) == certified


def _route(run: Run) -> tuple[str, str, str]:
    return run.problem, run.backend, run.formulation


def test_the_fastest_is_told_by_the_median_of_its_repeats() -> None:
    slow_once = [made_run(backend="a", repeat=i, seconds=t) for i, t in enumerate((1.0, 1.0, 30.0))]
    quick_once = [made_run(backend="b", repeat=i, seconds=t) for i, t in enumerate((0.1, 2.0, 2.0))]
    assert fastest(slow_once + quick_once)["P"].backend == "a"


def test_the_fastest_is_told_at_the_strictest_tolerance_that_anyone_certifies() -> None:
    loose = made_run(backend="a", tol=1e-3, seconds=0.1)
    strict = made_run(backend="b", tol=1e-6, seconds=5.0)
    hopeless = failed(backend="b", tol=1e-9)
    assert fastest([loose, strict, hopeless])["P"] is strict


def test_rates_go_by_the_width_that_is_proven() -> None:
    runs = [
        made_run(problem="P", tol=1e-3, verdict=Verdict.OPTIMAL, lower=1.0, upper=1 + 1e-10),
        made_run(problem="Q", tol=1e-6, verdict=Verdict.FEASIBLE, lower=1.0, upper=1 + 1e-4),
        made_run(problem="R", verdict=Verdict.INFEASIBLE, lower=math.inf, upper=math.inf),
        failed(problem="S"),
    ]
    assert [certified_rate(runs, level)["a"] for level in LEVELS] == [0.75, 0.5, 0.5]


@given(suites())
def test_rates_fall_as_the_width_does(runs: list[Run]) -> None:
    for score in scores(runs):
        assert sorted(score.certified, reverse=True) == list(score.certified)
        assert 0 <= score.status.confirmed <= score.status.claimed
        assert score.alone + score.tied <= score.taken <= score.problems
        assert 1e-12 <= score.gap <= 1
        assert math.isnan(score.ratio) or score.ratio > 0


def test_one_repeat_that_fails_takes_the_certificate_of_all() -> None:
    runs = [made_run(repeat=0), failed(repeat=1)]
    assert certified_rate(runs, 1e-6)["a"] == 0.0
    assert not fastest(runs)


def confirmed(runs: list[Run], backend: str = "a") -> tuple[int, int]:
    score = status_scores(runs)[backend]
    return score.confirmed, score.claimed


def test_claims_are_counted_and_those_that_are_confirmed() -> None:
    runs = [
        made_run(),
        failed(problem="Q"),
        failed(problem="R", says=Stop.TIME_LIMIT),
        made_run(problem="S", says=Stop.INFEASIBLE),
    ]
    assert confirmed(runs) == (1, 3)
    assert taken(runs)["a"] == 4
    mended = made_run(problem="T", first_gap=1e-4)
    assert confirmed([*runs, mended]) == (2, 5)
    almost = failed(problem="U", says=Stop.ALMOST_OPTIMAL)
    assert confirmed([*runs, almost]) == (1, 3)
    assert status_scores([*runs, almost])["a"].almost == 1


def test_how_far_off_a_claim_of_optimality_is_proven_gap_over_tolerance() -> None:
    runs = [
        made_run(problem="P", lower=0.0, upper=0.0),
        made_run(problem="Q", verdict=Verdict.FEASIBLE, lower=-3e-6, upper=0.0),
        failed(problem="R"),
        failed(problem="S", says=Stop.ALMOST_OPTIMAL),
        made_run(problem="T", lower=0.0, upper=0.0, first_gap=5e-5),
        made_run(problem="U", verdict=Verdict.INFEASIBLE, lower=math.inf, upper=math.inf),
        made_run(problem="V", verdict=Verdict.INFEASIBLE, says=Stop.INFEASIBLE),
    ]
    score = status_scores(runs)["a"]
    assert score.excess == pytest.approx((0.0, 0.0, 3.0, 50.0, math.inf, math.inf))
    assert score.missed == score.excess[2:]
    assert score.quantile(0.5) == pytest.approx(3.0)
    assert score.quantile(0.9) == math.inf
    assert (score.confirmed, score.claimed) == (3, 7)


def test_a_corrected_claim_is_reported_only_where_there_is_no_worse_one() -> None:
    mended = made_run(problem="T", first_gap=1e-4)
    assert (
        'a (primal) on T first reported "optimal", proven gap 1.0e-04 at tol 1e-06'
        in summary_lines([mended])[2]
    )
    assert (
        'a (primal) on Q reported "optimal", nothing proves it'
        in summary_lines([mended, failed(problem="Q")])[2]
    )
    late = made_run(problem="T", first_gap=1e-4, says=Stop.TIME_LIMIT)
    assert 'asked for more digits: "time limit".' in summary_lines([late])[2]


def test_runs_under_other_limits_are_no_repeats() -> None:
    runs = [made_run(), made_run(time_limit=1.0), made_run(version="2.0"), made_run(repeat=1)]
    assert sorted(len(trial.runs) for trial in trials(runs)) == [1, 1, 2]


def test_a_time_that_is_not_known_never_stands_in_the_middle() -> None:
    """NaN compares as neither less nor more: sorted among numbers it would end up anywhere."""
    for order in itertools.permutations([1.0, math.nan, 3.0, 2.0]):
        (trial,) = trials([made_run(repeat=i, seconds=seconds) for i, seconds in enumerate(order)])
        assert trial.middle.seconds == 2.0


@pytest.mark.parametrize("backend", ["highs", "clarabel"])
def test_a_claim_about_the_dual_form_is_told_in_the_terms_of_the_problem(backend: str) -> None:
    from klopt.bench.task import Task
    from klopt.bench.worker import perform
    from klopt.engine.registry import backend_named
    from klopt.model.backend import Settings
    from klopt.problems import LP

    infeasible = LP(c=[1.0, 1.0], A_ub=[[1.0, 1.0]], b_ub=[-1.0])
    run = perform(
        Task(infeasible, "P", "d", "dual", backend_named(backend), Settings(time_limit=10.0))
    ).run
    assert (run.says, run.verdict) == (Stop.INFEASIBLE, Verdict.INFEASIBLE)
    assert confirmed([run], backend) == (1, 1)


def test_a_claim_that_a_proof_refutes_is_told_with_the_proof() -> None:
    run = made_run(
        says=Stop.OPTIMAL,
        verdict=Verdict.INFEASIBLE,
        lower=math.inf,
        upper=math.inf,
        proof="farkas",
    )
    assert verdict_sentence([run]).endswith(
        'a (primal) on P reported "optimal", klopt proves it infeasible.'
    )


def test_a_width_of_zero_is_floored_and_no_interval_counts_as_one() -> None:
    runs = [made_run(problem="P", lower=1.0, upper=1.0), failed(problem="Q")]
    assert mean_gap(runs)["a"] == pytest.approx(1e-6)


def test_the_sentence_names_the_fastest_certified_and_the_false_claim() -> None:
    loose = made_run(
        backend="b", seconds=0.1, verdict=Verdict.FEASIBLE, lower=1.0, upper=1 + 4.45e-4
    )
    said = verdict_sentence([made_run(backend="a", seconds=0.53), loose])
    assert "1 of 2 routes certify P to 1e-06" in said
    assert "Fastest certified: a on primal, 0.53 s" in said
    assert 'b (primal) on P reported "optimal", proven gap 2.2e-04 at tol 1e-06' in said


def test_the_sentence_counts_routes_at_the_strictest_tolerance() -> None:
    runs = [
        made_run(tol=1e-3),
        made_run(backend="b", tol=1e-3),
        made_run(tol=1e-6),
        failed(backend="b", tol=1e-6),
    ]
    assert verdict_sentence(runs).startswith("1 of 2 routes certify P to 1e-06.")
    assert summary_lines(runs)[0].startswith("1 of 1 problem certified to 1e-06 by 2 backends.")


@given(suites())
def test_the_summary_always_has_three_lines(runs: list[Run]) -> None:
    said = summary_lines(runs)
    assert len(said) == 3
    assert all(line.endswith(".") and "\n" not in line for line in said)
    if not fastest(runs):
        assert said[1] == "No winner: nothing is certified."


def test_nothing_run_is_said_so() -> None:
    assert verdict_sentence([]) == "Nothing was run."
    assert len(summary_lines([])) == 3
    assert scores([]) == ()
    assert profile([]) == {}


def times_of(runs: list[Run], gap: float) -> dict[str, float]:
    return {found.backend: found.seconds for found in gap_times(runs, gap)}


def test_the_time_to_a_gap_is_that_of_the_fastest_run_that_proves_it() -> None:
    """By hand: a was asked for 1e-3 and for 1e-9, b for 1e-6 only and missed it."""
    runs = [
        made_run(backend="a", tol=1e-3, seconds=1.0, lower=0.0, upper=1e-4),
        made_run(backend="a", tol=1e-9, seconds=7.0, lower=0.0, upper=1e-10),
        made_run(
            backend="b", tol=1e-6, seconds=2.0, verdict=Verdict.FEASIBLE, lower=0.0, upper=1e-5
        ),
    ]
    assert times_of(runs, 1e-3) == {"a": 1.0, "b": 2.0}
    assert times_of(runs, 1e-5)["a"] == 7.0
    by_backend = {found.backend: found for found in gap_times(runs, 1e-6)}
    assert (by_backend["a"].seconds, by_backend["a"].tol, by_backend["a"].at_most) == (
        7.0,
        1e-9,
        True,
    )
    assert not by_backend["b"].reached
    assert (by_backend["b"].asked, by_backend["b"].charged) == (True, 60.0)
    finest = {found.backend: found for found in gap_times(runs, 1e-9)}
    assert finest["a"].reached
    assert not finest["a"].at_most
    assert not finest["b"].asked


def test_no_optimum_is_proven_to_every_gap() -> None:
    run = made_run(verdict=Verdict.INFEASIBLE, lower=math.inf, upper=math.inf, seconds=2.0)
    assert [times_of([run], level)["a"] for level in LEVELS] == [2.0, 2.0, 2.0]


@given(suites())
def test_a_smaller_gap_never_takes_less_time(runs: list[Run]) -> None:
    charged = [[found.charged for found in gap_times(runs, level)] for level in LEVELS]
    for coarse, fine in itertools.pairwise(charged):
        assert all(a <= b for a, b in zip(coarse, fine, strict=True))


@given(suites())
def test_a_gap_time_is_reached_exactly_where_the_rate_counts_it(runs: list[Run]) -> None:
    for level in LEVELS:
        rates = certified_rate(runs, level)
        for backend, count in taken(runs).items():
            own = [found for found in gap_times(runs, level) if found.backend == backend]
            assert sum(found.reached for found in own) == round(rates[backend] * count)


def test_times_within_ten_percent_or_within_their_repeats_are_ties() -> None:
    close = [made_run(backend="a", seconds=1.0), made_run(backend="b", seconds=1.15)]
    assert [trial.first.backend for trial in leaders(close)["P"]] == ["a", "b"]
    apart = [made_run(backend="a", seconds=1.0), made_run(backend="b", seconds=1.5)]
    assert [trial.first.backend for trial in leaders(apart)["P"]] == ["a"]
    # The repeats of b vary so much that they say nothing.
    noisy = [made_run(backend="a", repeat=i, seconds=1.0) for i in range(3)]
    noisy += [made_run(backend="b", repeat=i, seconds=s) for i, s in enumerate((0.9, 1.5, 4.0))]
    assert [trial.first.backend for trial in leaders(noisy)["P"]] == ["a", "b"]
    (score_a, score_b) = scores(noisy)
    assert (score_a.alone, score_a.tied, score_b.tied) == (0, 1, 1)
    assert "a tie" in verdict_sentence(noisy)


def test_two_backends_are_compared_on_what_both_took() -> None:
    runs = [
        made_run(problem="P", backend="a", seconds=1.0),
        made_run(problem="P", backend="b", seconds=2.0),
        made_run(problem="Q", backend="a", seconds=1.0),
        failed(problem="Q", backend="b"),
        made_run(problem="R", backend="b", seconds=0.001),
        failed(problem="S", backend="a"),
        failed(problem="S", backend="b"),
    ]
    pair = pairs(runs)["a", "b"]
    assert (pair.faster, pair.equal, pair.slower, pair.common) == (2, 0, 0, 2)
    assert pairs(runs)["b", "a"].slower == 2
    by_name = {score.backend: score for score in scores(runs)}
    # R and S say nothing: one took the first alone, nobody certifies the second.
    assert by_name["a"].ratio == pytest.approx(1.0)
    assert by_name["b"].ratio == pytest.approx(math.sqrt(2 * 60))


@given(suites())
def test_pairs_are_mirror_images(runs: list[Run]) -> None:
    found = pairs(runs)
    for (one, other), pair in found.items():
        mirror = found[other, one]
        assert (pair.faster, pair.equal, pair.slower) == (
            mirror.slower,
            mirror.equal,
            mirror.faster,
        )


def test_means_are_compared_within_a_class_and_on_the_same_problems() -> None:
    runs = [
        made_run(problem="P", family="LP", backend="a", seconds=1.0),
        made_run(problem="Q", family="LP", backend="a", seconds=4.0),
        made_run(problem="P", family="LP", backend="b", seconds=1.05),
        made_run(problem="Q", family="LP", backend="b", seconds=4.05),
        made_run(problem="P", family="LP", backend="c", seconds=0.1),
        made_run(problem="R", family="SDP", backend="d", seconds=9.0),
    ]
    found = standings(runs)
    names = [(row.backend, row.leads) for row in found["LP"]]
    assert names == [("a", True), ("b", True), ("c", False)]
    shift = shift_of(runs)
    expected = math.sqrt((1 + shift) * (4 + shift)) - shift
    assert found["LP"][0].seconds == pytest.approx(expected)
    assert math.isnan(found["LP"][2].seconds)
    assert [(row.backend, row.problems) for row in found["SDP"]] == [("d", 1)]


def test_classes_are_compared_by_the_finest_gap_that_was_asked_for_everywhere() -> None:
    runs = [made_run(problem="P", tol=1e-9), made_run(problem="P", tol=1e-3), made_run(problem="Q")]
    assert reference_gap(runs) == 1e-6


def test_a_profile_by_proven_gap_does_not_care_what_was_asked_for() -> None:
    """Both prove 1e-8, one was asked for it and the other for 1e-3: the profile at 1e-6 sees both."""
    runs = [
        made_run(backend="a", tol=1e-8, seconds=1.0, lower=0.0, upper=1e-9),
        made_run(backend="b", tol=1e-3, seconds=2.0, lower=0.0, upper=1e-9),
    ]
    found = profile(runs, 1e-6)
    assert found["a"][0].tolist() == [1.0]
    assert found["b"][0].tolist() == [2.0]
    assert found["b"][1].tolist() == [1.0]
    assert profile(runs)["b"][1].tolist() == [0.5]


def test_a_busy_computer_is_named() -> None:
    quiet = [made_run(load=0.5, cpu=0.98)]
    assert machine_sentence(quiet).startswith("quiet")
    assert machine_sentence([made_run(load=0.5, cpu=0.5)]).startswith("busy")
    assert machine_sentence([made_run(load=3.0, cpu=1.0)]).startswith("busy")
    assert machine_sentence([made_run()]) == ""


def test_the_table_of_gaps_tells_times_counts_and_who_leads() -> None:
    runs = [
        made_run(problem="P", backend="a", tol=1e-3, seconds=1.0, lower=0.0, upper=1e-4),
        made_run(problem="P", backend="a", tol=1e-9, seconds=7.0, lower=0.0, upper=1e-10),
        made_run(problem="P", backend="b", tol=1e-3, seconds=3.0, lower=0.0, upper=1e-4),
    ]
    out = console()
    with out.capture() as text:
        out.print(gap_table(runs))
    rows = [line.split() for line in text.get().splitlines()[2:]]
    assert rows == [
        ["LP", "a", "1", "*", "7", "*", "7", "*"],
        ["b", "3", "0", "of", "1", "0", "of", "1"],
    ]
