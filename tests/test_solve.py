"""The pipeline: what is pinned stays pinned, what is tried is recorded, what misbehaves is contained."""

from __future__ import annotations

import copy
import ctypes
import math
import os
import pickle
import threading
import time
from dataclasses import dataclass, replace

import attrs
import bad_backends as bad
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import klopt
from klopt.conformance.instances import FormProblem
from klopt.engine import registry
from klopt.engine.registry import backend_named
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute, NotCertified
from klopt.model.backend import Answer, Backend, Settings, Start, Step, Stop
from klopt.model.cones import Cones, svec
from klopt.model.features import Feature
from klopt.model.forms import ConeForm
from klopt.model.functions import LocalModel, MatrixFreeFunction, SmoothFunction
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.problems import SimplexProgram
from klopt.proof.certificate import Verdict

HIGHS = backend_named("highs")


def corner() -> ConeForm:
    """Minimise x0 + x1 over x0 + 2 x1 >= 4, 2 x0 + x1 >= 5, x0 - x1 <= 3, x1 - x0 <= 3; the optimum is 3 at (2, 1)."""
    A = [[-1.0, -2.0], [-2.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]
    return ConeForm([1.0, 1.0], A, [-4.0, -5.0, 3.0, 3.0], Cones(nonneg=4))


@dataclass(frozen=True, eq=False)
class Recorder(Backend):
    """A backend that writes down what it was given and then answers with what it was made with."""

    name, offers, rank = "recorder", frozenset({Feature.CONE}), 1
    honours = frozenset({"tol", "time_limit", "max_iter", "start", "log"})
    answer: Answer | None = None
    seen: list = None  # type: ignore[assignment]
    seconds: float = 0.0

    def run(self, form, settings, start=None):
        self.seen.append((form, settings, start))
        time.sleep(self.seconds)
        return self.answer or HIGHS.run(form, settings)


def recorder(
    answer: Answer | None = None, seconds: float = 0.0, name: str = "recorder", rank: int = 1
) -> Recorder:
    kind = type(name.title(), (Recorder,), {"name": name, "rank": rank})
    return kind(answer, [], seconds)


@dataclass(frozen=True, eq=False, repr=False)
class Two(Problem):
    """The corner in two formulations and other units, value = 2 (form's value) + 10; it maximises if told.

    Its bracket repairs nothing, so that only a right answer is conclusive.
    """

    sense: str = "min"
    seconds: float = 0.0

    def formulations(self):
        units = {"scale": 2.0 if self.sense == "min" else -2.0, "shift": 10.0}
        needs = frozenset({Feature.CONE})
        return (
            Formulation("direct", needs, self.build, self.recover, self.lift, **units),
            Formulation("second way", needs, self.build, self.recover, None, **units),
        )

    def build(self):
        time.sleep(self.seconds)
        return corner()

    def recover(self, x, y):
        return Point({"x": x}, {} if y is None else {"y": y})

    def lift(self, point):
        return Start(point.x, point.dual.get("y"))

    def bracket(self, point):
        form, y = corner(), point.dual.get("y", np.zeros(4))
        upper = form.value(point.x) if form.measure(point.x).primal < 1e-12 else np.inf
        lower = (
            -form.b @ y if np.allclose(form.A.T @ y, -form.c) and (y >= -1e-12).all() else -np.inf
        )
        sign = 1.0 if self.sense == "min" else -1.0
        ends = sorted((2 * sign * lower + 10, 2 * sign * upper + 10))
        return Bracket(ends[0], ends[1], point)

    @classmethod
    def sample(cls, rng, size):
        return cls()


@pytest.fixture
def only(monkeypatch):
    """A registry with nothing but the given backends."""

    def register(*backends: Backend) -> None:
        monkeypatch.setattr(
            registry, "_registered", {backend.name: backend for backend in backends}
        )
        monkeypatch.setattr(registry, "_scan", lambda group: ((), (), ()))

    return register


class TestRoutes:
    def test_a_pinned_backend_is_never_switched(self) -> None:
        result = klopt.solve(Two(), backend=bad.Liar())
        assert {attempt.route.backend.name for attempt in result.attempts} == {"liar"}
        assert result.verdict is not Verdict.OPTIMAL

    def test_a_pinned_formulation_is_never_switched(self) -> None:
        result = klopt.solve(Two(), backend=bad.Liar(), formulation="second way")
        assert [attempt.route.formulation.name for attempt in result.attempts] == ["second way"]

    def test_the_next_route_is_tried_until_one_is_conclusive_and_all_are_on_record(
        self, only
    ) -> None:
        liar, good = (
            recorder(Answer(Stop.OPTIMAL, x=np.zeros(2)), name="first", rank=1),
            recorder(rank=2),
        )
        unused = recorder(name="third", rank=3)
        only(liar, good, unused)
        result = klopt.solve(Two())
        assert result.verdict is Verdict.OPTIMAL
        routes = [str(attempt.route) for attempt in result.attempts]
        assert routes == ["first on direct", "first on second way", "recorder on direct"]
        assert result.route.backend is good
        assert not unused.seen
        assert "also tried first on second way: " in result.explain()

    def test_the_best_of_inconclusive_attempts_is_the_result(self, only) -> None:
        """One proves the upper side, one the lower: the result has both, and says so."""
        up = recorder(Answer(Stop.STALLED, x=np.array([4.0, 4.0])), name="up", rank=1)
        y = np.array([1 / 3, 1 / 3, 0.1, 0.1])  # A'y = -c, worth 2.4
        down = recorder(Answer(Stop.STALLED, x=np.zeros(2), y=y), name="down", rank=2)
        only(up, down)
        result = klopt.solve(Two(), formulation="direct")
        assert result.verdict is Verdict.FEASIBLE
        assert (result.lower, result.upper) == pytest.approx((10 + 2 * 2.4, 10 + 2 * 8.0))
        assert result.route.backend is up
        assert "intersection" in result.explain()

    def test_attempts_that_contradict_each_other_prove_nothing(self, only) -> None:
        """Disjoint intervals are an error in somebody's proof; neither is believed, and nothing is averaged."""

        class Gullible(Two):
            def bracket(self, point):
                return Bracket(float(point.x[0]), float(point.x[1]), point)

        low = recorder(Answer(Stop.OPTIMAL, x=np.array([1.0, 2.0])), name="low", rank=1)
        high = recorder(Answer(Stop.OPTIMAL, x=np.array([3.0, 4.0])), name="high", rank=2)
        only(low, high)
        result = klopt.solve(Gullible(), formulation="direct")
        assert result.verdict is Verdict.UNPROVEN
        assert (result.lower, result.upper) == (-np.inf, np.inf)
        assert (
            "the intervals of the attempts are disjoint: one of their proofs does not hold"
            in result.explain()
        )

    def test_a_proof_of_infeasibility_against_a_feasible_point_proves_nothing(self, only) -> None:
        """x >= 1 and x <= 1 - 1e-7 rule each other out only as far as 1e-7 counts; a point that passed counts too."""

        class Trusting(Two):
            def build(self):
                return ConeForm([1.0], [[-1.0], [1.0]], [-1.0, 1.0 - 1e-7], Cones(nonneg=2))

            def bracket(self, point):
                return Bracket(-np.inf, 1.0, point)

        feasible = recorder(Answer(Stop.STALLED, x=np.ones(1)), name="feasible", rank=1)
        infeasible = recorder(Answer(Stop.INFEASIBLE, farkas=np.ones(2)), name="infeasible", rank=2)
        only(feasible, infeasible)
        result = klopt.solve(Trusting(), formulation="direct")
        assert [a.certificate.verdict for a in result.attempts] == [
            Verdict.FEASIBLE,
            Verdict.INFEASIBLE,
        ]
        assert result.verdict is Verdict.UNPROVEN
        assert "disjoint" in result.explain()

    def test_two_halves_of_a_proof_end_the_search(self, only) -> None:
        """One attempt proves the upper end, another one the lower: no third is needed, and the point is the first's."""
        up = recorder(Answer(Stop.STALLED, x=np.array([2.0, 1.0])), name="up", rank=1)
        y = np.array([1 / 3, 1 / 3, 0.0, 0.0])
        worse = recorder(Answer(Stop.STALLED, x=np.array([4.0, 4.0]), y=y), name="worse", rank=2)
        unused = recorder(name="unused", rank=3)
        only(up, worse, unused)
        result = klopt.solve(Two(), formulation="direct")
        assert result.verdict is Verdict.OPTIMAL
        assert not unused.seen
        np.testing.assert_array_equal(result.point.x, [2.0, 1.0])
        assert result.value == pytest.approx(16.0)

    def test_what_is_nearly_proven_is_asked_for_once_more_by_a_finer_tolerance(self) -> None:
        near = np.array([2.0, 1.0]) + 1e-5
        backend = recorder(Answer(Stop.OPTIMAL, x=near, y=np.array([1 / 3, 1 / 3, 0.0, 0.0])))
        result = klopt.solve(Two(), backend=backend, formulation="direct")
        assert [seen[1].tol for seen in backend.seen] == [1e-6, pytest.approx(1e-10)]
        np.testing.assert_array_equal(backend.seen[1][2].x, near)
        assert [attempt.certificate.tol for attempt in result.attempts] == [1e-6, 1e-6]
        assert result.verdict is Verdict.FEASIBLE
        assert (
            "the second run of this route, asked for 1e-10" in result.attempts[1].certificate.notes
        )

    @pytest.mark.parametrize("stop", [Stop.STALLED, Stop.ITERATION_LIMIT, Stop.TIME_LIMIT])
    def test_who_does_not_claim_the_optimum_is_not_asked_again(self, stop) -> None:
        backend = recorder(
            Answer(stop, x=np.array([2.0, 1.0]) + 1e-5, y=np.array([1 / 3, 1 / 3, 0.0, 0.0]))
        )
        klopt.solve(Two(), backend=backend, formulation="direct")
        assert len(backend.seen) == 1

    def test_a_good_point_starts_the_next_attempt(self, only) -> None:
        rough = recorder(Answer(Stop.STALLED, x=np.array([4.0, 4.0])), name="rough", rank=1)
        fine = recorder(rank=2)
        only(rough, fine)
        result = klopt.solve(Two(), formulation="direct")
        np.testing.assert_array_equal(fine.seen[0][2].x, [4.0, 4.0])
        assert "start" not in result.explain(), "the user gave none and need not hear of it"

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                {"formulation": "secnd way"},
                r"has no formulation 'secnd way'; did you mean 'second way'\? It has: direct, ",
            ),
            ({"formulation": "Q"}, r"has no formulation 'Q'\. It has: direct, second way"),
            ({"backend": "scss"}, r"no backend 'scss'; did you mean 'scs'\?"),
            (
                {"backend": "mirror_prox"},
                r"mirror_prox cannot solve Two. It lacks, by formulation, direct: cone programs; ",
            ),
        ],
    )
    def test_a_choice_that_leaves_nothing_is_explained(self, arguments, text) -> None:
        with pytest.raises(NoRoute, match=text):
            klopt.solve(Two(), **arguments)

    def test_a_refused_pin_names_those_who_can(self) -> None:
        with pytest.raises(NoRoute, match=r"Backends here that can: .*highs"):
            klopt.solve(Two(), backend="explicit")

    @pytest.mark.parametrize("wrong", [3, bad.Liar, object()])
    def test_a_backend_is_a_name_or_an_instance(self, wrong) -> None:
        with pytest.raises(InvalidSettings, match="expected a name or an instance of"):
            klopt.solve(Two(), backend=wrong)

    def test_an_iteration_limit_skips_backends_without_one(self, only) -> None:
        class Tireless(Recorder):
            name, rank, honours = "tireless", 0, frozenset({"tol", "log"})

        tireless, fine = Tireless(None, []), recorder()
        only(tireless, fine)
        klopt.solve(Two(), max_iter=10)
        assert not tireless.seen
        assert fine.seen[0][1].max_iter == 10
        with pytest.raises(
            InvalidSettings,
            match="tireless has no iteration limit; leave max_iter out or set time_limit",
        ):
            klopt.solve(Two(), max_iter=10, backend=tireless)


class TestDeadline:
    def test_the_deadline_is_shared_by_all_attempts(self, only) -> None:
        backends = [recorder(Answer(Stop.STALLED), 0.1, f"slow{i}", i) for i in range(9)]
        only(*backends)
        result = klopt.solve(Two(), time_limit=0.25)
        limits = [seen[1].time_limit for backend in backends for seen in backend.seen]
        # Each of the eighteen routes takes a tenth of a second at least.
        assert 1 <= len(limits) <= 4
        assert limits == sorted(limits, reverse=True)
        assert len(result.attempts) == len(limits)

    def test_no_backend_may_use_up_the_time_of_the_next(self, only) -> None:
        """Half of what is left for each while others are to come; who had nothing to show is not asked again."""
        stuck = recorder(Answer(Stop.TIME_LIMIT), name="stuck", rank=1)
        rough = recorder(Answer(Stop.TIME_LIMIT, x=np.array([4.0, 4.0])), name="rough", rank=2)
        last = recorder(Answer(Stop.STALLED), name="last", rank=3)
        only(stuck, rough, last)
        klopt.solve(Two(), time_limit=100.0)
        limits = [[seen[1].time_limit for seen in backend.seen] for backend in (stuck, rough, last)]
        assert limits[0] == [pytest.approx(50.0, abs=5.0)]
        assert limits[1] == [pytest.approx(50.0, abs=5.0)] * 2
        assert limits[2] == [pytest.approx(100.0, abs=10.0)] * 2

    def test_a_pinned_backend_has_all_the_time(self) -> None:
        backend = recorder(Answer(Stop.TIME_LIMIT))
        klopt.solve(Two(), backend=backend, time_limit=100.0)
        assert [seen[1].time_limit for seen in backend.seen] == [pytest.approx(100.0, abs=9.0)] * 2

    def test_building_the_form_counts(self) -> None:
        backend = recorder()
        klopt.solve(Two(seconds=0.2), backend=backend, time_limit=100.0)
        assert 90.0 < backend.seen[0][1].time_limit <= 99.8

    def test_asking_for_a_feasible_point_counts(self) -> None:
        ray = Answer(Stop.UNBOUNDED, ray=np.array([1.0, 0.0]))
        backend = recorder(ray, seconds=0.2)
        form = ConeForm([-1.0, 0.0], [[-1.0, 0.0], [0.0, 1.0]], [0.0, 1.0], Cones(nonneg=2))
        klopt.solve(FormProblem(form), backend=backend, time_limit=10.0)
        first, second = (seen[1].time_limit for seen in backend.seen)
        assert second <= first - 0.2

    def test_a_limit_that_is_over_at_once_is_an_outcome(self) -> None:
        for limit in (1e-300, 1e-9):
            result = klopt.solve(Two(), backend=recorder(Answer(Stop.TIME_LIMIT)), time_limit=limit)
            assert result.stop is Stop.TIME_LIMIT
            assert result.timings.overrun > 0

    def test_the_result_keeps_what_the_user_asked_for(self) -> None:
        result = klopt.solve(Two(), backend="highs", time_limit=7.0, seed=5, tol=1e-5)
        assert (result.settings.time_limit, result.settings.seed, result.settings.tol) == (
            7.0,
            5,
            1e-5,
        )


class TestRaw:
    def test_raw_options_need_a_pinned_backend(self) -> None:
        with pytest.raises(InvalidSettings, match="raw options belong to one backend; name it"):
            klopt.solve(Two(), raw={"presolve": "off"})

    def test_raw_is_passed_on_and_never_modified_or_remembered(self) -> None:
        raw = {"presolve": "off"}
        backend = recorder(Answer(Stop.STALLED))
        klopt.solve(Two(), backend=backend, formulation="direct", raw=raw)
        klopt.solve(Two(), backend=backend, formulation="direct")
        assert raw == {"presolve": "off"}
        assert [dict(seen[1].raw) for seen in backend.seen] == [raw, {}]
        raw["presolve"] = "on"
        assert dict(backend.seen[0][1].raw) == {"presolve": "off"}

    def test_a_backend_cannot_change_the_options(self) -> None:
        with pytest.raises(TypeError):
            Settings(raw={"a": 1}).raw["a"] = 2
        assert dict(pickle.loads(pickle.dumps(Settings(raw={"a": 1}))).raw) == {"a": 1}

    @pytest.mark.parametrize("raw", ["presolve", [("presolve", "off")], {1: 2}, 7])
    def test_raw_is_a_mapping_of_names(self, raw) -> None:
        with pytest.raises(InvalidSettings, match="raw must map the native names of options"):
            klopt.solve(Two(), backend="highs", raw=raw)


class TestStart:
    def test_a_point_or_an_earlier_result_is_lifted(self) -> None:
        earlier = klopt.solve(Two(), backend="highs")
        for start in (earlier, earlier.point, Point({"x": [2.5, 3.5]})):
            backend = recorder()
            klopt.solve(Two(), backend=backend, start=start)
            point = start.point if isinstance(start, klopt.Result) else start
            np.testing.assert_array_equal(backend.seen[0][2].x, point.x)

    def test_an_earlier_result_without_a_point_is_no_start(self) -> None:
        nothing = klopt.solve(Two(), backend=bad.Pointless())
        backend = recorder()
        assert klopt.solve(Two(), backend=backend, start=nothing).verdict is Verdict.OPTIMAL
        assert backend.seen[0][2] is None

    def test_a_start_that_is_not_used_is_said(self) -> None:
        start = Point({"x": [2.5, 3.5]})
        by_backend = klopt.solve(Two(), backend=bad.Liar(), start=start, formulation="direct")
        assert "the start was not used: liar takes none" in by_backend.explain()
        by_form = klopt.solve(Two(), backend=recorder(), start=start, formulation="second way")
        assert (
            "the start was not used: no way from a point to the form 'second way'"
            in by_form.explain()
        )

    @pytest.mark.parametrize(
        ("start", "text"),
        [
            (
                Point({"x": [np.nan, 1.0]}),
                r"start\.x\[0\] is nan; every entry must be a finite number",
            ),
            (Point({"x": [1.0, 1.0]}, {"y": [0.0, np.inf]}), r"start\.y\[1\] is inf"),
            (Point({"z": [1.0, 1.0]}), r"start does not fit 'direct': this point has z; not 'x'"),
            (
                Point({"x": [1.0, 1.0, 1.0]}),
                r"start has shape \(3,\) for 'direct'; expected \(2,\)",
            ),
            (np.zeros(2), r"start is a ndarray; expected a klopt.Point or an earlier Result"),
        ],
    )
    def test_rubbish_is_refused(self, start, text) -> None:
        with pytest.raises(InvalidSettings, match=text):
            klopt.solve(Two(), backend=recorder(), start=start)

    def test_a_start_outside_its_set_is_projected_and_noted(self) -> None:
        from klopt.model.functions import Quadratic
        from klopt.model.sets import Simplex

        program = klopt.problems.SimplexProgram.of(Quadratic(np.eye(3), np.zeros(3)), Simplex(3))
        note = "the start was outside its set and was projected onto it"
        outside = klopt.solve(program, backend="nesterov", start=Point({"x": [5.0, -1.0, 0.0]}))
        inside = klopt.solve(program, backend="nesterov", start=Point({"x": [0.2, 0.3, 0.5]}))
        assert note in outside.certificate.notes
        assert note not in inside.certificate.notes
        for result in (outside, inside):
            assert result.verdict is Verdict.OPTIMAL
            assert result.value == pytest.approx(1 / 6)


class TestResult:
    def test_require_returns_itself_or_raises_the_explanation(self) -> None:
        proven = klopt.solve(Two(), backend="highs")
        assert proven.require() is proven
        unproven = klopt.solve(Two(), backend=bad.Liar())
        with pytest.raises(NotCertified) as error:
            unproven.require()
        assert str(error.value) == unproven.explain()

    def test_infeasible_and_unbounded_are_conclusive(self) -> None:
        no = klopt.problems.LP([1.0], A_ub=[[1.0], [-1.0]], b_ub=[1.0, -2.0])
        endless = klopt.problems.LP([-1.0])
        assert klopt.solve(no).require().verdict is Verdict.INFEASIBLE
        assert klopt.solve(endless).require().verdict is Verdict.UNBOUNDED

    def test_the_explanation_says_what_is_proven_what_is_claimed_and_what_to_do(self) -> None:
        text = klopt.solve(Two(), backend=bad.Liar(), formulation="direct").explain()
        assert text.startswith("Two by liar on direct\n")
        assert "solver status: optimal (solved, trust me)" in text
        assert "advice: Read the verdict" in text

    @pytest.mark.parametrize("sense", ["min", "max"])
    def test_value_and_history_are_in_the_users_units(self, sense) -> None:
        steps = (Step(1, 0.1, 0.0, 8.0), Step(2, 0.2, 2.0, 4.0))
        answer = Answer(
            Stop.OPTIMAL, x=np.array([2.0, 1.0]), y=np.array([1 / 3, 1 / 3, 0, 0]), history=steps
        )
        result = klopt.solve(Two(sense=sense), backend=recorder(answer))
        sign = 1 if sense == "min" else -1
        assert result.value == pytest.approx(10 + sign * 2 * 3.0)
        assert result.lower <= result.value <= result.upper
        expected = [
            sorted((10 + sign * 2 * step.lower, 10 + sign * 2 * step.upper)) for step in steps
        ]
        assert [[step.lower, step.upper] for step in result.history] == expected
        assert all(step.lower <= result.value <= step.upper for step in result.history)

    def test_the_html_is_escaped(self) -> None:
        class Tagged(Two):
            def describe(self):
                return "<script>alert('x')</script>"

            def formulations(self):
                return tuple(replace(f, name=f"<b>{f.name}</b>") for f in super().formulations())

        html = klopt.solve(Tagged(), backend="highs")._repr_html_()
        assert "&lt;script&gt;" in html
        assert "&lt;b&gt;direct&lt;/b&gt;" in html
        assert "<script" not in html
        assert "<b>" not in html
        assert html.startswith("<table>")

    def test_the_printed_form_shows_the_interval(self) -> None:
        text = repr(klopt.solve(klopt.problems.LP([1.0], A_ub=[[-1.0]], b_ub=[-2.0]), seed=3))
        assert text.startswith("Result OPTIMAL")
        assert "value       2 " in text
        assert "1 thread, seed 3" in text

    def test_nothing_is_lost_on_the_way_through_a_pickle(self) -> None:
        problem = klopt.problems.LP([1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])
        result = klopt.solve(problem, backend="highs", start=Point({"x": [1.0, 0.0]}))
        again = pickle.loads(pickle.dumps(result))
        assert again.explain() == result.explain()
        assert again.certificate == result.certificate
        assert again.settings == result.settings
        assert len(again.attempts) == len(result.attempts)
        np.testing.assert_array_equal(again.point.x, result.point.x)
        np.testing.assert_array_equal(again.chosen.answer.y, result.chosen.answer.y)
        assert again.route.formulation.build().needs == result.route.formulation.needs

    @pytest.mark.parametrize("formulation", ["primal", "dual"])
    def test_the_multipliers_of_an_infeasible_program_add_it_up_to_a_contradiction(
        self, formulation
    ) -> None:
        """x + y <= 1, x + y >= 2: one of each says 0 <= -1."""
        problem = klopt.problems.LP([1.0, 1.0], A_ub=[[1.0, 1.0], [-1.0, -1.0]], b_ub=[1.0, -2.0])
        result = klopt.solve(problem, backend="highs", formulation=formulation)
        assert result.verdict is Verdict.INFEASIBLE
        assert result.point is None
        y = result.duals
        assert (y["ub"] >= 0).all()
        assert (y["lower"] >= 0).all()
        np.testing.assert_allclose(
            problem.A_ub.T @ y["ub"] - y["lower"] + y["upper"], 0.0, atol=1e-9
        )
        assert problem.b_ub @ y["ub"] < 0


BAD = [
    bad.Liar(),
    *(bad.FalseWitness(stop) for stop in Stop),
    *(bad.ClaimsWithoutVectors(stop) for stop in Stop),
    bad.Segfaulter(),
    bad.Aborter(),
    bad.Printer(),
    bad.Mutator(),
    bad.Unmutator(),
    bad.NanReturner(),
    bad.WrongShaper(),
    bad.Pointless(),
    bad.NoAnswer(),
    *(
        bad.Raiser(error)
        for error in (
            ValueError("no"),
            KeyError("k"),
            MemoryError("all gone"),
            RecursionError("deep"),
        )
    ),
    bad.Raiser(bad.Panic("rust")),
]


def _name(backend) -> str:
    detail = getattr(backend, "stop", None) or getattr(backend, "error", None)
    return f"{backend.name} {detail!r}" if detail is not None else backend.name


def a_bounded_sdp() -> tuple[ConeForm, float]:
    """The smallest eigenvalue of [[1, 2], [2, 1]], as an SDP over trace-one matrices: -1."""
    trace = np.vstack([[1.0, 0.0, 1.0], -np.eye(3)])
    return ConeForm(
        svec(np.array([[1.0, 2.0], [2.0, 1.0]])),
        trace,
        [1.0, 0.0, 0.0, 0.0],
        Cones(zero=1, psd=(2,)),
    ), -1.0


def blas_threads() -> dict[str, int]:
    return {
        pool["filepath"]: pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }


def nothing_false(result, truth: float) -> bool:
    """A bad backend may hand klopt a point that it can repair; then the value must be right, to the width asked for."""
    near = 2e-6 * (1 + abs(truth))
    right = result.verdict is not Verdict.OPTIMAL or abs(result.value - truth) <= near
    conclusive = result.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED)
    return right and not conclusive and result.lower - near <= truth <= result.upper + near


class TestContainment:
    def test_one_changed_entry_of_many_is_noticed(self) -> None:
        """Native code can write to arrays that are read-only; a sample of the entries would miss it."""

        class Pricker(bad.Bad):
            name = "pricker"

            def misbehave(self, form: ConeForm) -> Answer:
                ctypes.memmove(form.c.ctypes.data + 8, bytes(8), 8)
                return Answer(Stop.OPTIMAL, x=np.eye(1, form.c.size, 1)[0], y=np.zeros(form.b.size))

        n = 140_000
        problem = klopt.problems.LP(np.ones(n), A_eq=np.ones((1, n)), b_eq=[1.0])
        result = klopt.solve(problem, Pricker(), isolate=False)
        assert (result.verdict, result.stop) == (Verdict.UNPROVEN, Stop.CRASHED)
        assert "changed its input" in result.chosen.answer.native

    @pytest.mark.parametrize("backend", BAD, ids=_name)
    def test_a_bad_backend_proves_nothing_false_prints_nothing_and_leaves_the_form_alone(
        self, backend, capfd
    ) -> None:
        for form, truth in ((corner(), 3.0), a_bounded_sdp()):
            before = copy.deepcopy((form.c, form.b, form.A.toarray()))
            result = klopt.solve(FormProblem(form), backend=backend)
            assert nothing_false(result, truth), result.explain()
            assert result._repr_html_()
            for old, new in zip(before, (form.c, form.b, form.A.toarray()), strict=True):
                np.testing.assert_array_equal(old, new)
            assert klopt.solve(FormProblem(form), backend="clarabel").value == pytest.approx(
                truth, abs=1e-5
            )
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize("backend", BAD, ids=_name)
    def test_the_next_route_takes_over(self, backend, only, capfd) -> None:
        kind = type("First", (type(backend),), {"rank": 0})
        first = kind.__new__(kind)
        first.__dict__.update(backend.__dict__)
        only(first, HIGHS)
        result = klopt.solve(Two(), formulation="direct")
        assert result.verdict is Verdict.OPTIMAL
        assert result.value == pytest.approx(16.0)
        assert [attempt.route.backend.name for attempt in result.attempts] == [
            backend.name,
            "highs",
        ]
        assert capfd.readouterr() == ("", "")

    def test_arrays_of_a_form_cannot_be_unlocked(self) -> None:
        result = klopt.solve(FormProblem(corner()), backend=bad.Unmutator())
        assert result.stop is Stop.REJECTED
        assert "WRITEABLE" in result.chosen.answer.native

    def test_native_code_that_writes_into_the_form_has_crashed(self) -> None:
        """Read-only is a promise between Pythons; C writes where it likes."""

        class NativeWriter(bad.Bad):
            name = "native_writer"

            def misbehave(self, form):
                ctypes.memset(form.c.ctypes.data, 0, 8)
                return Answer(
                    Stop.OPTIMAL, x=np.array([2.0, 1.0]), y=np.array([1.0, 0.0, 0.0, 1.0])
                )

        problem = FormProblem(corner())
        result = klopt.solve(problem, backend=NativeWriter())
        assert result.stop is Stop.CRASHED
        assert "changed its input" in result.explain()
        assert result.point is None
        with pytest.raises(
            InvalidProblem, match="were changed by a backend; build the problem anew"
        ):
            klopt.solve(problem)
        fresh = FormProblem(corner())
        alone = klopt.solve(fresh, backend=NativeWriter(), isolate=True)
        assert "changed its copy of the input" in alone.explain()
        assert klopt.solve(fresh).value == pytest.approx(3.0)

    def test_no_other_route_judges_data_that_were_changed(self) -> None:
        class Twice(FormProblem):
            def formulations(self):
                (good,) = super().formulations()
                return good, replace(good, name="the same again")

        class NativeWriter(bad.Bad):
            name = "native_writer"

            def misbehave(self, form):
                ctypes.memset(form.c.ctypes.data, 0, 8)
                return Answer(Stop.NUMERICAL)

        assert len(klopt.solve(Twice(corner()), backend=bad.NanReturner()).attempts) == 2
        assert len(klopt.solve(Twice(corner()), backend=NativeWriter()).attempts) == 1

    def test_a_backend_that_loosens_its_settings_is_judged_by_those_asked_for(self) -> None:
        class Lenient(bad.Bad):
            name = "lenient"

            def run(self, form, settings, start=None):
                object.__setattr__(settings, "tol", 0.5)
                return Answer(
                    Stop.OPTIMAL, x=np.array([2.1, 1.1]), y=np.array([1.0, 0.0, 0.0, 1.0])
                )

        result = klopt.solve(FormProblem(corner()), backend=Lenient())
        assert (result.certificate.tol, result.settings.tol) == (1e-6, 1e-6)
        assert result.verdict is not Verdict.OPTIMAL

    @pytest.mark.parametrize("odd", [
        {"notes": "one text"}, {"notes": 5}, {"history": [1, "x"]}, {"iterations": "many"}, {"seconds": np.nan},
        {"seconds": "long"}, {"log": 5}, {"native": len}, {"x": np.array([2.0, 1.0 + 1e-3j])}, {"y": ["a", "b"]},
    ], ids=str)  # fmt: skip
    def test_an_answer_with_odd_parts_is_told_about_like_any_other(self, odd, recwarn) -> None:
        class Odd(bad.Bad):
            name = "odd"

            def misbehave(self, form):
                return Answer(**{"stop": Stop.OPTIMAL, "x": np.array([2.0, 1.0]), **odd})

        result = klopt.solve(FormProblem(corner()), backend=Odd())
        assert result.explain()
        assert repr(result)
        assert result._repr_html_()
        assert not recwarn.list

    @pytest.mark.parametrize("swap", ["data", "indices"])
    def test_a_matrix_with_exchanged_parts_is_a_changed_input(self, swap) -> None:
        class Exchanger(bad.Bad):
            name = "exchanger"

            def misbehave(self, form):
                setattr(form.A, swap, np.ones_like(getattr(form.A, swap)))
                return Answer(Stop.OPTIMAL, x=np.zeros(2), y=np.zeros(2))

        assert (
            "changed its input" in klopt.solve(FormProblem(corner()), backend=Exchanger()).explain()
        )

    @pytest.mark.parametrize("size", [1e99, 1e155, 1e300, 1e-320])
    def test_numbers_at_the_ends_of_the_range_prove_nothing(self, size, capfd) -> None:
        class Giant(bad.Bad):
            name = "giant"

            def misbehave(self, form):
                x, y = np.full(form.c.size, size), np.full(form.b.size, -size)
                return Answer(Stop.OPTIMAL, x=x, y=y, farkas=y, ray=x)

        for form, truth in ((corner(), 3.0), a_bounded_sdp()):
            assert nothing_false(klopt.solve(FormProblem(form), backend=Giant()), truth)
        assert capfd.readouterr() == ("", "")

    def test_an_answer_in_the_wrong_types_is_no_answer(self) -> None:
        for answer in (
            Answer("solved", x=np.zeros(2)),
            Answer(None),
            Answer(Stop.OPTIMAL, x="zero"),
            Answer(Stop.OPTIMAL, x=[[0.0], [1.0, 2.0]]),
            Answer(Stop.OPTIMAL, x=np.zeros(2), native=404, log=None),
        ):
            assert not klopt.solve(Two(), backend=recorder(answer)).verdict.conclusive

    def test_the_answer_owns_its_memory(self) -> None:
        """A library may hand out the same buffer each time."""
        shared = np.array([2.0, 1.0])
        result = klopt.solve(
            FormProblem(corner()), backend=recorder(Answer(Stop.OPTIMAL, x=shared))
        )
        shared[:] = 7.0
        assert result.chosen.answer.x.tolist() == [2.0, 1.0]

    def test_buffered_prints_of_c_code_are_captured_too(self, capfd) -> None:
        """Where standard output is a file, C keeps its text back until long after the call."""

        class Puts(bad.Bad):
            name = "puts"
            honours = frozenset({"tol"})

            def misbehave(self, form):
                ctypes.CDLL(None).puts(b"a line by C")
                return Answer(Stop.NUMERICAL)

        for isolate in (False, True):
            result = klopt.solve(FormProblem(corner()), backend=Puts(), isolate=isolate)
            assert result.chosen.answer.log == "a line by C\n"
        ctypes.CDLL(None).fflush(None)
        assert capfd.readouterr() == ("", "")

    def test_what_was_printed_before_stays_before(self, capfd) -> None:
        libc = ctypes.CDLL(None)
        libc.puts(b"the caller's own line")
        result = klopt.solve(FormProblem(corner()), backend=bad.Printer())
        libc.fflush(None)
        assert "caller" not in result.chosen.answer.log
        assert capfd.readouterr().out == "the caller's own line\n"

    def test_a_log_that_is_asked_for_is_printed(self, capfd) -> None:
        klopt.solve(FormProblem(corner()), backend=bad.Printer(), log=True)
        assert "hello from C" in capfd.readouterr().out

    def test_control_c_and_exit_pass_through(self) -> None:
        for error in (KeyboardInterrupt(), SystemExit(3)):
            with pytest.raises(type(error)):
                klopt.solve(FormProblem(corner()), backend=bad.Raiser(error))
        assert klopt.solve(FormProblem(corner())).verdict is Verdict.OPTIMAL

    @pytest.mark.slow
    def test_crashes_leave_no_process_thread_or_file_behind(self) -> None:
        def open_files() -> int:
            return len(os.listdir("/proc/self/fd"))

        klopt.solve(FormProblem(corner()), backend=bad.Segfaulter())
        files, threads = open_files(), threading.active_count()
        for _ in range(3):
            klopt.solve(FormProblem(corner()), backend=bad.Segfaulter())
            klopt.solve(FormProblem(corner()), backend=bad.Printer())
        assert open_files() <= files
        assert threading.active_count() <= threads

    def test_blas_threads_are_one_inside_and_as_before_outside(self) -> None:
        inside = []

        class Counter(bad.Bad):
            name = "counter"

            def misbehave(self, form):
                time.sleep(0.02)
                inside.append(blas_threads())
                return Answer(Stop.NUMERICAL)

        def work() -> None:
            klopt.solve(FormProblem(corner()), backend=Counter())

        outside = threadpool_limits(
            2
        )  # not as a context, which would forbid other threads to change it
        try:
            before = blas_threads()
            assert 2 in before.values()
            workers = [threading.Thread(target=work) for _ in range(8)]
            for worker in workers:
                worker.start()
                time.sleep(0.005)
            for worker in workers:
                worker.join()
            assert [set(pools.values()) for pools in inside] == [{1}] * 8
            assert blas_threads() == before
        finally:
            outside.restore_original_limits()

    def test_the_certificate_keeps_to_the_threads_asked_for(self) -> None:
        """On a busy machine two threads made the repair of a semidefinite point fifteen times as slow as one."""
        inside = []

        class Watched(Two):
            def bracket(self, point):
                inside.append(set(blas_threads().values()))
                return super().bracket(point)

        outside = threadpool_limits(2)
        try:
            klopt.solve(Watched(), backend="highs")
            assert inside == [{1}]
            assert 2 in blas_threads().values()
        finally:
            outside.restore_original_limits()


@pytest.mark.parametrize("backend", [None, "scs", "clarabel", "ecos", "cvxpy", "highs"])
@pytest.mark.parametrize("limit", [1e12, np.inf])
def test_a_time_limit_beyond_all_clocks_is_none(backend, limit) -> None:
    sample = klopt.problems.LP.sample(np.random.default_rng(0), 4)
    assert klopt.solve(sample, backend, time_limit=limit).verdict is Verdict.OPTIMAL


def test_numbers_of_numpy_are_settings_too() -> None:
    sample = klopt.problems.LP.sample(np.random.default_rng(0), 4)
    result = klopt.solve(sample, threads=np.int64(2), seed=np.int32(1), max_iter=np.int64(500))
    assert result.verdict is Verdict.OPTIMAL
    with pytest.raises(InvalidSettings, match="expected a positive number of seconds"):
        klopt.solve(sample, time_limit=10**400)


@pytest.mark.parametrize("wrong", [5, None, "abc", np.ones(3)])
def test_what_is_no_problem_is_refused(wrong) -> None:
    with pytest.raises(InvalidProblem, match="is no klopt problem"):
        klopt.solve(wrong)


def test_a_formulation_that_the_backend_cannot_take_is_answered_with_those_it_can() -> None:
    sample = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 6)
    with pytest.raises(
        NoRoute, match="libsvm cannot take the formulation 'dual QP'; it takes 'box and plane'"
    ):
        klopt.solve(sample, "libsvm", formulation="dual QP")


def test_a_users_function_that_fails_is_an_outcome() -> None:
    for many in range(1, 12):
        calls = iter(range(many))

        def gradient(x: np.ndarray, calls=calls) -> np.ndarray:
            if next(calls, None) is None:
                raise ValueError("out of calls")
            return 2 * x - np.array([1.0, 0.2, 0.0])

        problem = klopt.problems.SimplexProgram(
            lambda x: float(x @ x - x @ [1.0, 0.2, 0.0]), gradient, klopt.Simplex(3), accuracy=1e-14
        )
        result = klopt.solve(problem)
        assert result.verdict in (Verdict.UNPROVEN, Verdict.OPTIMAL)
    assert result.explain()


def test_a_start_with_other_multipliers_is_refused() -> None:
    problem = klopt.problems.QCQP(
        np.eye(2), [1.0, 1.0], soc=(2,), A_soc=np.eye(2), b_soc=[1.0, 0.5]
    )
    with pytest.raises(InvalidSettings, match="start's multipliers have shape"):
        klopt.solve(
            problem,
            "scs",
            formulation="conic QP",
            start=Point({"x": np.zeros(2)}, {"soc": np.ones(7)}),
        )
    with pytest.raises(InvalidSettings, match="start does not fit 'conic QP': it lacks 'x'"):
        klopt.solve(problem, "scs", formulation="conic QP", start=Point({"z": np.zeros(2)}))


def test_the_users_way_with_rounding_does_not_matter() -> None:
    sample = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 6)
    with np.errstate(all="raise"):
        assert klopt.solve(sample, time_limit=60.0).verdict is Verdict.OPTIMAL


def test_a_form_that_cannot_be_written_down_costs_nothing_but_its_route() -> None:
    sample = klopt.problems.SimilaritySpectra.sample(np.random.default_rng(0), 5)
    huge = attrs.evolve(sample, C=1e-7, rho=50.0, trace=5e6)
    pinned = klopt.solve(huge, "clarabel", formulation="SOCP dual")
    assert (pinned.verdict, pinned.chosen.answer.stop) == (Verdict.UNPROVEN, Stop.REJECTED)
    assert "SOCP dual cannot be written down: b[31] is" in pinned.explain()
    assert klopt.solve(huge).verdict is Verdict.OPTIMAL


class TestSharedState:
    """What a backend can write, the proof does not read."""

    COST = np.array([2.0, -1.0, 0.0])
    """The minimum of c'x over the simplex is -1."""

    def quartic(self) -> SimplexProgram:
        """Minimise |x|^4 - x_0, which is -0.4167 at the optimum, as a function that knows its curvature."""

        def near(x):
            square = float(x @ x)
            gradient = 4 * square * x - np.eye(3)[0]
            return LocalModel(
                square**2 - float(x[0]),
                gradient,
                lambda: 4 * square * np.eye(3) + 8 * np.outer(x, x),
            )

        return SimplexProgram.of(SmoothFunction(3, near, accuracy=1e-14), klopt.Simplex(3))

    def oracle(self) -> tuple[SimplexProgram, np.ndarray]:
        """Minimise c'x; the user's gradient is the user's own array."""
        own = self.COST.copy()
        linear = klopt.Oracle(3, lambda x: float(self.COST @ x), lambda x: own, accuracy=1e-14)
        return SimplexProgram.of(linear, klopt.Simplex(3)), own

    def plain_functions(self) -> tuple[SimplexProgram, np.ndarray]:
        """The same by two plain functions."""
        own = self.COST.copy()
        value = lambda x: float(self.COST @ x)  # noqa: E731
        return SimplexProgram(value, lambda x: own, klopt.Simplex(3), accuracy=1e-14), own

    @pytest.mark.parametrize("isolate", [False, True])
    @pytest.mark.parametrize("backend", [bad.Scribbler(), bad.GradientScaler()], ids=_name)
    def test_a_gradient_cannot_be_changed_in_place(self, backend, isolate) -> None:
        by_oracle, first = self.oracle()
        by_functions, second = self.plain_functions()
        for problem in (self.quartic(), by_oracle, by_functions):
            result = klopt.solve(problem, backend, isolate=isolate)
            assert result.verdict is Verdict.UNPROVEN
            assert result.stop is Stop.REJECTED
            assert "read-only" in result.chosen.answer.native
            assert klopt.solve(problem).verdict is Verdict.OPTIMAL
        np.testing.assert_array_equal(first, self.COST)
        np.testing.assert_array_equal(second, self.COST)

    def test_what_a_backend_unlocks_is_its_own(self) -> None:
        """A function keeps its last evaluation; the proof asks one that no backend has seen."""

        @dataclass(frozen=True)
        class Evaluation:
            value: float
            gradient: np.ndarray

        def near(x):
            return Evaluation(float(self.COST @ x), self.COST.copy())

        problem = SimplexProgram.of(MatrixFreeFunction(3, near, 1e-14), klopt.Simplex(3))
        result = klopt.solve(problem, bad.Unlocker())
        assert result.stop is Stop.OPTIMAL
        assert result.verdict is Verdict.FEASIBLE
        assert (result.lower, result.upper) == pytest.approx((-1.0, 1 / 3))

    def test_a_start_may_be_written_and_stays_the_users(self) -> None:
        problem, _ = self.oracle()
        x = np.array([0.0, 1.0, 0.0])
        result = klopt.solve(problem, bad.StartWriter(), start=Point({"x": x}))
        assert result.verdict is Verdict.FEASIBLE
        np.testing.assert_array_equal(x, [0.0, 1.0, 0.0])

    def test_a_backend_that_changes_the_form_when_asked_for_a_feasible_point_has_crashed(
        self,
    ) -> None:
        """An unbounded claim without a point is followed by a second run: that one is watched too."""

        class SecondThoughts(bad.Bad):
            name = "second_thoughts"

            def misbehave(self, form):
                if form.c.any():
                    return Answer(Stop.UNBOUNDED, ray=np.array([1.0, 0.0]))
                ctypes.memset(form.b.ctypes.data, 0, 8)
                return Answer(Stop.OPTIMAL, x=np.zeros(2))

        form = ConeForm([-1.0, 0.0], [[-1.0, 0.0], [0.0, 1.0]], [-3.0, 1.0], Cones(nonneg=2))
        problem = FormProblem(form)
        result = klopt.solve(problem, SecondThoughts())
        assert result.stop is Stop.CRASHED
        assert problem.data_changed
        with pytest.raises(InvalidProblem, match="build the problem anew"):
            klopt.solve(problem)


@dataclass(frozen=True, eq=False)
class HalfWritable(FormProblem):
    """Its first formulation refuses to be written down."""

    def formulations(self) -> tuple[Formulation, ...]:
        (good,) = super().formulations()

        def refuse() -> ConeForm:
            raise InvalidProblem("b[0] is 1e+21")

        return replace(good, name="too large", build=refuse), good


def test_the_next_formulation_is_tried_where_one_cannot_be_written_down() -> None:
    result = klopt.solve(HalfWritable(corner()), HIGHS)
    assert result.attempts[0].route.formulation.name == "too large"
    assert (result.verdict, len(result.attempts)) == (Verdict.OPTIMAL, 2)


@dataclass(frozen=True, eq=False)
class Incomputable(FormProblem):
    """What a point of its first formulation proves overflows."""

    def formulations(self) -> tuple[Formulation, ...]:
        (good,) = super().formulations()

        def overflow(x: np.ndarray, y: np.ndarray | None) -> Point:
            return Point({"x": [math.exp(1e4)]})

        return replace(good, name="beyond floats", recover=overflow), good


def test_a_proof_that_cannot_be_computed_costs_nothing_but_its_route() -> None:
    result = klopt.solve(Incomputable(corner()), HIGHS)
    assert (result.verdict, len(result.attempts)) == (Verdict.OPTIMAL, 2)
    alone = klopt.solve(Incomputable(corner()), HIGHS, formulation="beyond floats")
    assert alone.verdict is Verdict.UNPROVEN
    assert (
        "what the answer proves cannot be computed: OverflowError: math range error"
        in alone.explain()
    )


@dataclass(frozen=True, eq=False)
class UsersFunction:
    """A function of the user's, which holds an array that the user goes on using."""

    c: np.ndarray

    size = 3
    feature = Feature.SMOOTH

    def value(self, x: np.ndarray) -> float:
        return float(self.c @ x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.c


def test_a_users_own_array_is_locked_only_while_a_backend_runs() -> None:
    seen = []

    class Looker(bad.Scribbler):
        def run(self, form, settings, start=None):
            seen.append(form.objective.c.flags.writeable)
            return Answer(Stop.STALLED, x=form.domain.centre())

    c = np.array([2.0, -1.0, 0.0])
    klopt.solve(SimplexProgram.of(UsersFunction(c), klopt.Simplex(3)), Looker())
    assert seen == [False]
    c[0] = 3.0  # still the user's own
    assert c.tolist() == [3.0, -1.0, 0.0]
