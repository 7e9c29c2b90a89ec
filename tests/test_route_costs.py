"""A wrong first choice costs little: routes run in slices of what is expected of them."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest
from bad_backends import Bad
from scipy import sparse

import klopt
from klopt.engine import registry, route_costs
from klopt.model.backend import Answer, Settings, Start, Stop
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.proof.statement import ConeStatement
from klopt.witness.active_rows import on_active_rows

LAW = {"constant": -3.0, "weights": [0.0, 0.0, 0.0, 0.0]}


class Slow(Bad):
    """Keeps its time limit and never gets anywhere."""

    name = "slow"
    rank = 1
    given: ClassVar[list[float | None]] = []

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        self.given.append(settings.time_limit)
        time.sleep(min(settings.time_limit or 60.0, 60.0))
        return Answer(Stop.TIME_LIMIT)


@pytest.fixture
def slow(monkeypatch):
    """The slow backend, registered, with a law that promises a millisecond."""
    laws = {**route_costs._laws(), "slow": {"LP": LAW}}
    monkeypatch.setattr(route_costs, "_laws", lambda: laws)
    Slow.given.clear()
    klopt.register(Slow())
    yield Slow
    registry._registered.pop("slow")


@pytest.mark.parametrize("limit", [None, 30.0])
def test_a_route_that_takes_longer_than_expected_makes_way(slow, limit) -> None:
    problem = klopt.problems.LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
    began = time.perf_counter()
    result = klopt.solve(problem, time_limit=limit)
    assert result.verdict.name == "OPTIMAL"
    assert slow.given == pytest.approx([1.0], abs=0.5), "one slice, not half of the time"
    assert time.perf_counter() - began < 15


def test_a_route_that_was_stopped_comes_again_with_more_time(slow, monkeypatch) -> None:
    monkeypatch.setattr(registry, "_scan", lambda group: ((), (), ()))
    other = type("Other", (Slow,), {"name": "other", "rank": 2, "given": Slow.given})
    klopt.register(other())
    problem = klopt.problems.LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
    try:
        result = klopt.solve(problem, time_limit=4.0)
    finally:
        registry._registered.pop("other")
    assert not result.verdict.conclusive
    names = [attempt.route.backend.name for attempt in result.attempts]
    assert names.count("slow") >= 2
    assert names.index("other") < len(names) - 1, "the others had their turn in between"


def test_cvxpy_does_not_repeat_a_native_route() -> None:
    backend = registry.backend_named("cvxpy")
    cone = frozenset({Feature.CONE, Feature.PSD})
    assert backend.repeats(cone, frozenset({"clarabel", "scs"}))
    assert not backend.repeats(cone, frozenset({"clarabel"}))
    assert not backend.repeats(cone | {Feature.QUADRATIC}, frozenset({"clarabel", "scs"}))
    assert registry.backend_named("cvxpy:SCS").repeats(cone, frozenset({"scs"}))


def test_the_codes_of_highs_are_variants() -> None:
    problem = klopt.problems.LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
    for code in ("simplex", "ipm", "pdlp"):
        result = klopt.solve(problem, f"highs:{code}")
        assert result.verdict.name == "OPTIMAL"
        assert result.lower <= 1.0 <= result.upper
    with pytest.raises(klopt.InvalidSettings, match="it has: simplex, ipm, pdlp"):
        klopt.solve(problem, "highs:barrier")


def test_sizes_count_what_is_there() -> None:
    A = sparse.csc_array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    form = ConeForm(np.ones(3), A, np.ones(3), Cones(psd=(2,)))
    size = route_costs.ProgramSize.of(form)
    assert size.kind == "SDP"
    assert size.entries == 3 + 3 + 4
    # Rows have 2, 1, 1 entries, columns 1, 2, 1.
    assert size.normal == 6
    assert size.matrices == 8
    assert size.scalings == 27


def test_a_vertex_is_moved_onto_its_rows() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    vertex = rng.normal(size=4)
    statement = ConeStatement(np.ones(4), sparse.csc_array(A), A @ vertex, Cones(nonneg=4))
    moved, rows = on_active_rows(statement, vertex + 1e-10 * rng.normal(size=4))
    assert rows.tolist() == [0, 1, 2, 3]
    assert np.abs(moved - vertex).max() < 1e-14
    far = vertex - np.linalg.solve(A, np.ones(4))
    same, none = on_active_rows(statement, far)
    assert not none.size
    assert (same == far).all()
