"""A plan lists every route, best first, and says what each other one lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from bad_backends import Bad, Liar
from scipy import sparse

import klopt
from klopt.conformance.instances import FormProblem
from klopt.engine import registry
from klopt.engine.registry import problems
from klopt.engine.route_costs import ProgramSize, groups_of_alike
from klopt.errors import InvalidProblem, NoRoute
from klopt.model.features import Feature
from klopt.model.problem import Formulation
from klopt.programs.program import Program

RNG = np.random.default_rng(0)
SAMPLES = {problem.__name__: problem.sample(np.random.default_rng(0), 5) for problem in problems()}
every_problem = pytest.mark.parametrize("name", SAMPLES)


@every_problem
def test_routes_and_refusals_are_all_pairs_of_formulations_and_installed_backends(name) -> None:
    plan = klopt.plan(SAMPLES[name])
    installed = [backend for backend in klopt.backends() if not backend.missing]
    pairs = {(f.name, backend.name) for f in SAMPLES[name].formulations() for backend in installed}
    routes = {(route.formulation.name, route.backend.name) for route in plan.routes}
    refused = {(refusal.formulation.name, refusal.backend.name) for refusal in plan.refusals}
    assert routes | refused == pairs
    assert not routes & refused
    assert routes, "a problem that nothing can solve"


@every_problem
def test_a_route_offers_all_and_a_refusal_names_what_is_missing(name) -> None:
    plan = klopt.plan(SAMPLES[name])
    for route in plan.routes:
        assert route.formulation.needs <= route.backend.offers
    for refusal in plan.refusals:
        missing = refusal.formulation.needs - refusal.backend.offers
        assert missing
        for feature in missing:
            assert feature.value in refusal.missing


@pytest.mark.parametrize(
    "name", [name for name in SAMPLES if not isinstance(SAMPLES[name], Program)]
)
def test_routes_are_ordered_by_rank_then_formulation_then_name(name) -> None:
    order = {f.name: index for index, f in enumerate(SAMPLES[name].formulations())}
    keys = [
        (r.backend.rank, order[r.formulation.name], r.backend.name)
        for r in klopt.plan(SAMPLES[name]).routes
    ]
    assert keys == sorted(keys)


@pytest.mark.parametrize("name", ["LP", "QCQP", "SDP"])
def test_routes_of_a_program_are_ordered_by_expected_time_first_formulations_first(name) -> None:
    routes = klopt.plan(SAMPLES[name]).routes
    known = [route for route in routes if route.expected is not None]
    assert known
    assert routes[: len(known)] == tuple(known), "who was never measured comes last"
    seen: set[str] = set()
    repeated = []
    for route in known:
        repeated.append(route.backend.name in seen)
        seen.add(route.backend.name)
    assert repeated == sorted(repeated), "first formulations come first"
    kind = ProgramSize.of(SAMPLES[name].stated_form()).kind
    group = groups_of_alike((route.expected for route in known), kind)
    times = [(group[route.expected], route.backend.rank) for route in known]
    count = repeated.count(False)
    assert times[:count] == sorted(times[:count])
    assert times[count:] == sorted(times[count:])


def large_qp() -> klopt.problems.QCQP:
    n = 900
    rng = np.random.default_rng(0)
    A = sparse.random_array((600, n), density=0.01, rng=rng)
    P = sparse.diags_array(rng.uniform(0.1, 1.0, n))
    return klopt.problems.QCQP(P, rng.normal(size=n), A_ub=A, b_ub=np.ones(600))


def small_qp() -> klopt.problems.QCQP:
    return klopt.problems.QCQP(np.eye(2), [1.0, 1.0], A_ub=[[1.0, 1.0]], b_ub=[1.0])


def test_a_large_quadratic_program_goes_to_an_interior_point_method_first() -> None:
    plan = klopt.plan(large_qp())
    assert plan.routes[0].backend.name == "clarabel"
    by_name = {route.backend.name: route.expected for route in plan.routes}
    assert by_name["clarabel"] < by_name["highs"]
    assert "about" in plan.explain()


def test_an_unknown_backend_stands_where_its_rank_says() -> None:
    class Eager(Liar):
        name, rank = "eager", 1

    class Humble(Liar):
        name, rank = "humble", 60

    problem = SAMPLES["LP"]
    klopt.register(Eager())
    klopt.register(Humble())
    try:
        names = [route.backend.name for route in klopt.plan(problem).routes]
    finally:
        registry._registered.pop("eager")
        registry._registered.pop("humble")
    assert names[0] == "eager"
    assert names[-1] == "humble"


def test_expected_times_grow_with_the_program() -> None:
    small, large = (
        {route.backend.name: route.expected for route in klopt.plan(problem).routes}
        for problem in (small_qp(), large_qp())
    )
    for name in ("highs", "clarabel"):
        assert small[name] < large[name]


@every_problem
def test_a_plan_is_the_same_twice_and_fits_eighty_columns(name) -> None:
    first, second = (klopt.plan(SAMPLES[name]).explain() for _ in range(2))
    assert first == second
    assert max(map(len, first.splitlines())) <= 80, first


@every_problem
def test_declared_needs_are_those_of_the_form(name) -> None:
    for formulation in SAMPLES[name].formulations():
        assert formulation.build().needs <= formulation.needs


def columns(text: str, words: tuple[str, ...]) -> list[set[int]]:
    return [{line.index(word) for line in text.splitlines() if word in line} for word in words]


def test_the_explanation_lines_up() -> None:
    problem = klopt.problems.QCQP(np.eye(2), [1.0, 1.0], A_ub=[[1.0, 1.0]], b_ub=[1.0])
    text = klopt.plan(problem).explain()
    head, *rest = text.splitlines()
    assert head.startswith("QCQP(1 rows, 0 cones, 2 variables): 3 formulations x ")
    assert "refused" in rest
    assert "  1  " in rest[0]
    for where in columns("\n".join(rest), ("  less than ", "  needs ")):
        assert len(where) == 1


@pytest.fixture
def alone(monkeypatch):
    """A registry that holds only what a test puts there."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_scan", lambda group: ((), (), ()))


@pytest.mark.usefixtures("alone")
def test_without_any_route_the_plan_says_what_to_install() -> None:
    class Absent(Bad):
        name, library = "absent", "no_such_solver"

    class Narrow(Liar):
        name, offers = "narrow", frozenset({Feature.SIMPLEX})

    klopt.register(Absent())
    klopt.register(Narrow())
    problem = FormProblem(klopt.ConeForm([1.0], [[-1.0]], [-2.0], klopt.Cones(nonneg=1)))
    text = klopt.plan(problem).explain()
    assert "no route: nothing installed can take any formulation" in text
    assert "narrow  needs cone programs" in text
    assert "no_such_solver is not installed; pip install no_such_solver" in text
    with pytest.raises(NoRoute, match="pip install no_such_solver"):
        klopt.solve(problem)


@pytest.mark.usefixtures("alone")
def test_long_names_and_long_refusals_still_fit_eighty_columns() -> None:
    class Small(Liar):
        name, offers = "a_backend_with_a_very_long_name", frozenset({Feature.SADDLE})

    klopt.register(Small())
    klopt.register(Liar())

    @dataclass(frozen=True, eq=False, repr=False)
    class Wordy(FormProblem):
        def formulations(self):
            name = "semidefinite program with an epigraph of everything and the rest"
            return (Formulation(name, frozenset(Feature), lambda: self.form, lambda x, y: None),)

        def describe(self):
            return (
                "a problem whose description alone takes more than the eighty columns of a terminal"
            )

    text = klopt.plan(
        Wordy(klopt.ConeForm([1.0], [[-1.0]], [-2.0], klopt.Cones(nonneg=1)))
    ).explain()
    assert max(map(len, text.splitlines())) <= 80, text
    for feature in Feature:
        if feature is not Feature.SADDLE:
            assert feature.value in " ".join(text.split())


def test_planning_builds_no_form() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Lazy(FormProblem):
        def formulations(self):
            def build():
                raise AssertionError("built")

            return (Formulation("lazy", frozenset({Feature.CONE}), build, lambda x, y: None),)

    assert klopt.plan(Lazy(klopt.ConeForm([1.0], [[-1.0]], [-2.0], klopt.Cones(nonneg=1)))).routes


@pytest.mark.parametrize("wrong", [None, "LP", [[1.0]], klopt.problems.LP])
def test_only_a_problem_has_a_plan(wrong) -> None:
    with pytest.raises(InvalidProblem, match=r"is no klopt problem; klopt.problems lists them"):
        klopt.plan(wrong)
    with pytest.raises(InvalidProblem, match="is no klopt problem"):
        klopt.solve(wrong)
