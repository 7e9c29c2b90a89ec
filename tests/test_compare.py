"""A comparison: what is run, in which order, what is kept, and what is said of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import attrs
import cloudpickle
import numpy as np
import pytest
from bad_backends import Bad, Liar

import klopt
from klopt.bench.comparison import Comparison, compare
from klopt.bench.digest import digest, pristine
from klopt.bench.record import Run
from klopt.bench.scores import agreement
from klopt.bench.table import _keep_whole
from klopt.engine.format import console, table
from klopt.engine.registry import backend_named
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.cones import Cones
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.proof.certificate import Verdict

# Tests are no package: what they send to another process goes by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

LP = klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
SVM = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 12)


def outcome(run: Run) -> tuple[object, ...]:
    """What must be the same in every run of the same task."""
    return (
        run.key,
        run.problem,
        run.backend,
        run.formulation,
        run.says,
        run.verdict,
        run.lower,
        run.upper,
        run.proof,
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    store = tmp_path_factory.mktemp("compare") / "runs.db"
    return compare(
        [("line", LP), ("machine", SVM)],
        ["highs", "clarabel", "nesterov"],
        repeat=2,
        time_limit=20,
        store=store,
    )


def test_every_capable_backend_runs_on_every_problem_as_often_as_asked(small: Comparison) -> None:
    counted = {(run.problem, run.backend, run.repeat) for run in small.runs}
    assert counted == {
        (problem, backend, repeat)
        for problem, backend in [("line", "highs"), ("line", "clarabel")]
        + [("machine", backend) for backend in ("highs", "clarabel", "nesterov")]
        for repeat in (0, 1)
    }
    assert len(small.runs) == len(counted)
    assert small.refusals == ("no formulation of line is for nesterov",)


def test_every_answer_is_certified_by_the_same_rule(small: Comparison) -> None:
    assert {run.verdict for run in small.runs} == {Verdict.OPTIMAL}
    assert all(run.relative_gap <= 1e-6 for run in small.runs)
    for problem, value in (("line", 1.0), ("machine", klopt.solve(SVM, tol=1e-9).value)):
        assert all(
            run.lower - 1e-9 <= value <= run.upper + 1e-9
            for run in small.runs
            if run.problem == problem
        )


def test_time_is_split_and_measured_inside_the_child(small: Comparison) -> None:
    for run in small.runs:
        assert min(run.build, run.solve, run.certify) > 0
        assert run.seconds == run.build + run.solve + run.certify <= run.wall
        assert run.threads == 1
        assert run.memory is not None
        assert 0 <= run.memory < 1e8, "what a small run takes, not what its child holds"
        assert run.cpu > 0
        assert run.load >= 0


def test_home_made_backends_stream_a_trace_and_native_ones_give_their_end(
    small: Comparison,
) -> None:
    for run in small.runs:
        trace = small.traces[run.key]
        assert (len(trace) > 1) == (run.backend == "nesterov")
        assert trace[-1].lower == run.lower
        assert trace[-1].upper == run.upper
        assert all(np.diff([step.seconds for step in trace]) >= 0)
        assert all(
            step.lower <= run.upper + 1e-9 and step.upper >= run.lower - 1e-9 for step in trace
        )


def test_the_arrays_of_the_point_are_kept(small: Comparison) -> None:
    for run in small.runs:
        arrays = small.arrays(run.key)
        if run.problem == "machine":
            bracket = SVM.bracket(Point(arrays))
            assert bracket.lower == pytest.approx(run.lower, abs=1e-6)
        else:
            assert arrays["x"].sum() == pytest.approx(1.0, abs=1e-6)


def test_a_second_call_reuses_all_and_a_larger_one_does_what_is_missing(small: Comparison) -> None:
    pair = [("line", LP), ("machine", SVM)]
    again = compare(
        pair, ["highs", "clarabel", "nesterov"], repeat=2, time_limit=20, store=small.store
    )
    assert again.reused == {run.key for run in small.runs} == {run.key for run in again.runs}
    assert [outcome(run) for run in again.runs] == [outcome(run) for run in small.runs]
    assert [run.wall for run in again.runs] == [run.wall for run in small.runs]
    more = compare(pair, ["highs", "scs"], repeat=2, time_limit=20, store=small.store)
    assert more.reused == {run.key for run in small.runs if run.backend == "highs"}
    assert {run.backend for run in more.runs} == {"highs", "scs"}


@pytest.mark.slow
def test_without_resume_everything_is_run_again(tmp_path: Path) -> None:
    first, again = (
        compare(LP, "highs", repeat=2, store=tmp_path / "runs.db", resume=False) for _ in range(2)
    )
    assert not again.reused
    assert [outcome(run) for run in again.runs] == [outcome(run) for run in first.runs]
    assert all(new.wall != old.wall for new, old in zip(again.runs, first.runs, strict=True))


def test_a_label_is_no_part_of_a_run(small: Comparison) -> None:
    renamed = compare(("another name", LP), "highs", repeat=2, time_limit=20, store=small.store)
    assert len(renamed.reused) == 2
    assert {run.problem for run in renamed.runs} == {"another name"}


def test_several_runs_at_once_give_what_one_at_a_time_gives(small: Comparison) -> None:
    pair = [("line", LP), ("machine", SVM)]
    several = compare(
        pair, ["highs", "clarabel", "nesterov"], repeat=2, time_limit=20, jobs=2, seed=0
    )
    assert [outcome(run) for run in several.runs] == [outcome(run) for run in small.runs]


def test_a_store_is_a_comparison_again(small: Comparison) -> None:
    loaded = Comparison.load(small.store)
    assert {run.key for run in small.runs} <= {run.key for run in loaded.runs}
    assert loaded.environment == small.environment
    assert small.command in loaded.command.splitlines()
    assert loaded.traces[small.runs[0].key] == small.traces[small.runs[0].key]


@pytest.mark.slow
def test_one_label_for_two_problems_in_a_store_is_no_contradiction(tmp_path: Path) -> None:
    """Two seeds make two instances under one name; their optima differ, and neither proof is wrong."""
    for seed in (0, 1):
        compare("LP", "highs", sizes=[5], repeat=1, seed=seed, store=tmp_path / "runs.db")
    loaded = Comparison.load(tmp_path / "runs.db")
    assert len({run.problem for run in loaded.runs}) == 2
    assert all(run.problem == f"LP n=5 ({run.data[:8]})" for run in loaded.runs)
    assert len(loaded.best) == 2


# What is asked for


@pytest.mark.slow
def test_sizes_make_random_instances_and_the_seed_the_same_ones() -> None:
    one, other = (
        compare("SoftMargin", "highs", sizes=[6, 10], repeat=1, seed=seed) for seed in (1, 2)
    )
    assert [run.problem for run in one.runs] == ["SoftMargin n=6", "SoftMargin n=10"]
    assert [run.size for run in one.runs] == [6, 10]
    assert {run.data for run in one.runs}.isdisjoint(run.data for run in other.runs)


def test_all_formulations_can_be_asked_for(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    runs = compare(SVM, ["clarabel"], formulation="all", repeat=1, store=store).runs
    assert [run.formulation for run in runs] == ["dual QP", "SOCP epigraph"]
    assert [run.formulation for run in compare(SVM, ["clarabel"], repeat=1, store=store).runs] == [
        "dual QP"
    ]
    named = compare(SVM, ["clarabel"], formulation="SOCP epigraph", repeat=1, store=store).runs
    assert [run.formulation for run in named] == ["SOCP epigraph"]


def test_several_tolerances_are_several_runs() -> None:
    runs = compare(LP, "highs", tol=[1e-3, 1e-9], repeat=1).runs
    assert [run.tol for run in runs] == [1e-3, 1e-9]
    assert len({run.key for run in runs}) == 2


MODULE = """
import klopt
def one():
    return klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
def several():
    return [("first", one()), ("second", klopt.problems.LP(c=[2.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0]))]
def nothing():
    return 3
"""


def test_a_function_of_a_file_or_module_makes_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "declared_here.py"
    path.write_text(MODULE)
    store = tmp_path / "runs.db"
    made = compare(f"{path}:several", "highs", repeat=1, store=store)
    assert [run.problem for run in made.runs] == ["first", "second"]
    monkeypatch.chdir(tmp_path)
    again = compare("declared_here:one", "highs", repeat=1, store=store)
    assert [run.problem for run in again.runs] == ["one"]
    assert again.reused == {made.runs[0].key}
    with pytest.raises(InvalidProblem, match="returned no klopt problem"):
        compare(f"{path}:nothing", "highs")
    with pytest.raises(
        InvalidProblem, match="no function or problem 'severl'; did you mean 'several'"
    ):
        compare(f"{path}:severl", "highs")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"backends": "higs"}, "did you mean 'highs'"),
        ({"backends": []}, "no backend to compare"),
        ({"backends": "nesterov"}, "no formulation of .* is for nesterov"),
        ({"tol": 2.0}, "tol is 2.0"),
        ({"tol": [1e-6, -1.0]}, "tol is -1.0"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"repeat": 0}, "repeat is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"formulation": "primall"}, "did you mean 'primal'"),
        ({"memory_limit": -1}, "memory_limit is -1"),
        ({"store": "no/such/folder/runs.db"}, "no folder"),
        ({"store": "."}, "is a folder"),
    ],
)
def test_a_call_that_cannot_work_is_refused_before_the_first_solve(
    options: dict[str, object], text: str
) -> None:
    with pytest.raises((InvalidSettings, NoRoute), match=text):
        compare(LP, **{"backends": "highs", **options})  # type: ignore[arg-type]


# The key


def test_what_a_problem_has_cached_is_no_part_of_it() -> None:
    problem = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 12)
    before = digest(problem)
    klopt.solve(problem, "clarabel", formulation="SOCP epigraph")
    assert "_factor" in vars(problem.K)
    assert digest(problem) == before == digest(pristine(problem))
    assert "_factor" not in vars(pristine(problem).K)


def test_a_changed_entry_is_another_problem() -> None:
    K = SVM.K.matrix.copy()
    K[0, 0] += 1e-9
    other = attrs.evolve(SVM, K=K)
    dearer = attrs.evolve(SVM, C=2 * SVM.C)
    assert digest(other) != digest(SVM) != digest(dearer)


def test_a_function_is_known_by_what_it_computes() -> None:
    def scaled(factor: float) -> object:
        return lambda x: factor * x

    assert digest(scaled(2.0)) == digest(scaled(2.0)) != digest(scaled(3.0))
    assert digest(lambda x: x + 1) != digest(lambda x: x - 1)


# What is said


@dataclass(frozen=True, eq=False)
class Gullible(Problem):
    """A problem whose bracket proves whatever it is told: the fault that only a comparison can find."""

    c: np.ndarray

    def formulations(self) -> tuple[Formulation, ...]:
        form = ConeForm(
            self.c, -np.eye(self.c.size), np.zeros(self.c.size), Cones(nonneg=self.c.size)
        )
        return (
            Formulation(
                "as given", frozenset({Feature.CONE}), lambda: form, lambda x, y: Point({"x": x})
            ),
        )

    def bracket(self, point: Point) -> Bracket:
        value = float(self.c @ point.x)
        return Bracket(value, value, point)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        return cls(rng.uniform(1.0, 2.0, size))


class Teller(Bad):
    """Says that every entry of the optimum is the number it was made with."""

    def __init__(self, name: str, entry: float) -> None:
        self.name = name  # type: ignore[misc]
        self.entry = entry

    def misbehave(self, form: ConeForm) -> Answer:
        return Answer(Stop.OPTIMAL, x=np.full(form.c.size, self.entry), y=np.zeros(form.b.size))


def test_two_backends_that_disagree_are_an_error_and_never_averaged() -> None:
    problem = Gullible(np.ones(3))
    found = compare(("torn", problem), [Teller("one", 1.0), Teller("two", 2.0)], repeat=1)
    assert {run.verdict for run in found.runs} == {Verdict.OPTIMAL}
    proof = agreement(found.runs)["torn"]
    assert not proof.holds
    text = found.table()
    assert "ERROR" in text
    assert "do not overlap" in text
    assert "fastest" not in text
    assert found.best == {}
    assert "contradict" in repr(found)


@pytest.fixture(scope="module")
def doubtful() -> Comparison:
    return compare(("line", LP), [Liar(), "clarabel"], repeat=1)


def test_an_uncertified_run_is_never_the_fastest(doubtful: Comparison) -> None:
    assert doubtful.best["line"].backend == "clarabel"
    lines = doubtful.table().splitlines()
    rows = [line.split()[0] for line in lines if line.startswith(("liar", "clarabel"))]
    assert rows == ["clarabel", "liar"]
    assert any("liar on" in line and "reports optimal" in line for line in lines)
    assert not any("fastest" in line and "liar" in line for line in lines)


class Hasty(Backend):
    """Says optimal a little too early, unless it is asked for very much."""

    name, honours = "hasty", frozenset({"tol"})
    offers = frozenset({Feature.CONE, Feature.QUADRATIC})

    def run(self, form: Form, settings: Settings, start: Start | None = None) -> Answer:
        answer = backend_named("highs").run(form, attrs.evolve(settings, raw={}), start)
        assert answer.x is not None
        error = np.linspace(-3e-4, 3e-4, answer.x.size)
        return replace(answer, x=answer.x + (error if settings.tol >= 1e-6 else 0.0))


def test_a_first_claim_that_a_second_run_mends_was_still_false() -> None:
    # Not a linear program: from a point as near as this, klopt proves its optimum all the same.
    comparison = compare(("line", SVM), [Hasty(), "highs"], repeat=1, time_limit=20)
    hasty, highs = comparison.runs
    assert hasty.says is Stop.OPTIMAL
    assert hasty.verdict is Verdict.OPTIMAL
    assert hasty.first_gap > 10 * hasty.tol
    assert (hasty.claims, hasty.status_confirmed) == ((False, True), False)
    assert (highs.claims, highs.status_confirmed) == ((True,), True)
    assert np.isnan(highs.first_gap)
    assert {
        score.backend: (score.status.confirmed, score.status.claimed) for score in comparison.scores
    } == {
        "hasty": (1, 2),
        "highs": (1, 1),
    }
    assert "hasty on dual QP reported optimal; proven gap" in " ".join(comparison.table().split())
    assert 'hasty (dual QP) on line first reported "optimal", proven gap' in repr(comparison)


def test_a_home_made_method_gives_its_bounds_on_the_way() -> None:
    machine = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 40)
    comparison = compare(machine, ["active_set", "nesterov"], repeat=1, time_limit=20)
    assert {run.backend for run in comparison.runs} == {"active_set", "nesterov"}
    for run in comparison.runs:
        trace = comparison.traces[run.key]
        assert len(trace) >= 3, run.backend
        widths = [step.upper - step.lower for step in trace]
        assert min(widths[:-1]) < widths[0], run.backend


def test_a_promised_rate_is_kept_and_drawn(tmp_path: Path) -> None:
    """Mirror-prox from the centres: the gap after k iterations is at most ||M|| / k."""
    game = klopt.problems.SaddlePoint.sample(np.random.default_rng(0), 30)
    comparison = compare(("game", game), ["mirror_prox", "highs"], repeat=1, time_limit=20)
    run = next(run for run in comparison.runs if run.backend == "mirror_prox")
    norm = np.linalg.norm(game.bilinear.M, 2)
    assert run.promise == pytest.approx(norm)
    trace = comparison.traces[run.key]
    assert len(trace) > 5
    assert all(step.upper - step.lower <= run.promise / max(step.iteration, 1) for step in trace)
    assert np.isnan(next(run for run in comparison.runs if run.backend == "highs").promise)
    text = comparison.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1/k theorem" in text


def test_the_table_keeps_to_80_columns(small: Comparison) -> None:
    text = small.table()
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_runs_that_prove_nothing_are_kept_too(doubtful: Comparison) -> None:
    (run,) = (run for run in doubtful.runs if run.backend == "liar")
    assert run.says is Stop.OPTIMAL
    assert not run.verdict.conclusive
    assert run.status_confirmed is False


def test_a_frame_has_a_row_for_each_run(small: Comparison) -> None:
    pytest.importorskip("pandas")
    frame = small.to_frame()
    assert len(frame) == len(small.runs)
    assert not frame["seconds"].isna().any()


def test_the_best_runs_are_real_runs(small: Comparison) -> None:
    best: Sequence[Run] = list(small.best.values())
    assert {run.problem for run in best} == {"line", "machine"}
    assert all(run in small.runs and math.isfinite(run.seconds) for run in best)


def test_a_notebook_shows_the_runs_without_a_script(small: Comparison) -> None:
    shown = small._repr_html_()
    assert "OPTIMAL" in shown
    assert "<script" not in shown


@pytest.mark.parametrize("thing", [3, None, ("label", 3), [3]])
def test_what_is_no_problem_is_refused(thing: object) -> None:
    with pytest.raises(InvalidProblem, match="expected a klopt problem"):
        compare(thing)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["0.085177464", "-0.0085177464"])
def test_names_and_numbers_are_never_broken_at_80_columns(value: str) -> None:
    row = [
        "multiplicative",
        "smooth over the simplex",
        "1e-06",
        "time limit",
        "INFEASIBLE",
        value,
        "2e-08",
        "0.000241",
    ]
    rows = table(
        ["backend", "formulation", "tol", "it says", "klopt proves", "value", "width", "seconds"]
    )
    rows.add_row(*row)
    _keep_whole(rows, but=("formulation", "it says"))
    out = console()
    with out.capture() as text:
        out.print(rows)
    words = text.get().split()
    assert {row[0], row[2], *row[4:]} <= set(words)
    assert max(map(len, text.get().splitlines())) <= 80


def test_nothing_to_compare_on_is_a_bad_call() -> None:
    with pytest.raises(InvalidSettings, match="give one"):
        compare([])
