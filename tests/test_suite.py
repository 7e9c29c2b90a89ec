"""The bundled suite holds every family, on real data, the same each time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from klopt.bench.digest import digest
from klopt.bench.suite import ENTRIES, data, suite
from klopt.engine.pipeline import solve
from klopt.engine.planner import plan
from klopt.engine.registry import backends, problems
from klopt.errors import InvalidSettings

QUICK = suite("quick")
families = pytest.mark.parametrize(
    "entry", ENTRIES, ids=[f"{entry.family} {entry.data}" for entry in ENTRIES]
)


def test_every_family_of_klopt_has_an_entry() -> None:
    own = {
        problem.__name__
        for problem in problems()
        if problem.__module__.startswith("klopt.problems.")
    }
    assert own == {entry.family for entry in ENTRIES}, (
        "add one line to ENTRIES in klopt/bench/suite.py"
    )


def test_every_backend_of_klopt_takes_part() -> None:
    ready = {
        b.name
        for b in backends()
        if not b.missing and type(b).__module__.startswith("klopt.solvers.")
    }
    used = {route.backend.name for _, problem in suite("demo") for route in plan(problem).routes}
    assert ready <= used, (
        "no problem of the suite is for it; add one line to ENTRIES in klopt/bench/suite.py"
    )


def test_labels_are_unique_and_name_family_data_and_size() -> None:
    labels = [label for label, _ in QUICK]
    assert len(set(labels)) == len(labels) == len({entry.family for entry in ENTRIES})
    named = {f"{entry.family} {entry.data} n={entry.demo[0]}" for entry in ENTRIES}
    assert set(labels) <= named


@families
def test_the_same_problem_is_made_each_time(entry) -> None:
    (_, first), *_ = entry.problems("quick")
    data.cache_clear()
    (_, second), *_ = entry.problems("quick")
    assert digest(first) == digest(second)


@pytest.mark.parametrize(("label", "problem"), QUICK, ids=[label for label, _ in QUICK])
def test_the_best_route_certifies_it_within_a_second_or_so(label: str, problem) -> None:
    result = solve(problem, tol=1e-6, time_limit=10.0)
    assert result.verdict.conclusive, result.explain()


@pytest.mark.parametrize(("label", "problem"), QUICK, ids=[label for label, _ in QUICK])
def test_it_can_be_sent_to_a_child_process(label: str, problem) -> None:
    assert digest(pickle.loads(pickle.dumps(problem))) == digest(problem)
    assert plan(problem).routes


@families
def test_sizes_ascend_and_fit_the_data(entry) -> None:
    for sizes in (entry.demo, entry.full):
        assert list(sizes) == sorted(set(sizes))
        assert len(data(entry.data, sizes[-1]).X) == sizes[-1], (
            "more points asked for than there are"
        )


@pytest.mark.parametrize("name", ["breast", "digits", "iris", "wine"])
def test_a_small_sample_has_every_class_in_proportion(name: str) -> None:
    whole, part = data(name, 10**6), data(name, 60)
    shares = [np.bincount(d.y.astype(int)) / d.y.size for d in (whole, part)]
    assert np.abs(shares[0] - shares[1]).max() < 0.03
    assert set(part.classes) == {-1, *part.y.astype(int)}
    assert part.X.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    assert part.X.std(axis=0) == pytest.approx(1.0)


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    small, large = data("diabetes", 40), data("diabetes", 80)
    ratios = (large.y[:40] - large.y[:40].mean()) / large.y[:40].std()
    assert ratios == pytest.approx(small.y)


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(
        InvalidSettings, match="there is no suite 'huge'; expected quick, demo or full"
    ):
        suite("huge")
