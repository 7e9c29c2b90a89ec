"""The bundled suite holds every family, on real data, the same each time."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from klopt.bench.digest import digest
from klopt.bench.suite import data, suite
from klopt.engine.pipeline import solve
from klopt.engine.planner import plan
from klopt.engine.registry import backends, problems
from klopt.errors import InvalidSettings

QUICK = suite("quick")
EXAMPLES = [(kind, example) for kind in problems() for example in kind.examples]
examples = pytest.mark.parametrize(
    ("kind", "example"), EXAMPLES, ids=[f"{kind.__name__} {e.data}" for kind, e in EXAMPLES]
)


def test_every_family_takes_part() -> None:
    assert {label.split()[0] for label, _ in QUICK} == {kind.__name__ for kind in problems()}


def test_a_class_without_an_example_is_there_with_a_random_instance(monkeypatch) -> None:
    kind = problems()[0]
    monkeypatch.setattr(kind, "examples", ())
    assert suite("quick")[0][0] == f"{kind.__name__} sample n=20"


def test_every_backend_of_klopt_takes_part() -> None:
    ready = {
        b.name
        for b in backends()
        if not b.missing and type(b).__module__.startswith("klopt.solvers.")
    }
    used = {route.backend.name for _, problem in suite("demo") for route in plan(problem).routes}
    assert ready <= used, "no problem class has an example for it"


def test_labels_are_unique_and_name_family_data_and_size() -> None:
    labels = [label for label, _ in QUICK]
    assert len(set(labels)) == len(labels) == len(problems())
    named = {f"{kind.__name__} {example.data} n={example.demo[0]}" for kind, example in EXAMPLES}
    assert {label for label in labels if " sample " not in label} <= named


@examples
def test_the_same_problem_is_made_each_time(kind, example) -> None:
    first = example.make(data(example.data, example.demo[0]))
    data.cache_clear()
    second = example.make(data(example.data, example.demo[0]))
    assert type(first) is kind
    assert digest(first) == digest(second)


@pytest.mark.parametrize(("label", "problem"), QUICK, ids=[label for label, _ in QUICK])
def test_the_best_route_certifies_it_within_a_second_or_so(label: str, problem) -> None:
    result = solve(problem, tol=1e-6, time_limit=10.0)
    assert result.verdict.conclusive, result.explain()


@pytest.mark.parametrize(("label", "problem"), QUICK, ids=[label for label, _ in QUICK])
def test_it_can_be_sent_to_a_child_process(label: str, problem) -> None:
    assert digest(pickle.loads(pickle.dumps(problem))) == digest(problem)
    assert plan(problem).routes


@examples
def test_sizes_ascend_and_fit_the_data(kind, example) -> None:
    for sizes in (example.demo, example.full):
        assert list(sizes) == sorted(set(sizes))
        assert len(data(example.data, sizes[-1]).X) == sizes[-1], (
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
