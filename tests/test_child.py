"""What a child process does with a task, done here: the record says what was solved, proven, promised or went wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bad_backends import Raiser

import klopt
from klopt.bench.task import Task
from klopt.bench.worker import WARM_UP_SIZE, make_ready, perform, warm_up
from klopt.engine.registry import backend_named
from klopt.model.backend import Backend, Settings, Stop
from klopt.model.problem import Problem

LP = klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
SVM = klopt.problems.SoftMargin.sample(np.random.default_rng(0), 12)
PLENTY = 100_000_000_000


def task(
    problem: Problem,
    formulation: str,
    backend: Backend | str,
    memory_limit: int = 0,
    **settings: object,
) -> Task:
    taken = backend_named(backend) if isinstance(backend, str) else backend
    return Task(problem, "it", "data", formulation, taken, Settings(**settings), memory_limit)  # type: ignore[arg-type]


def test_the_record_has_what_solve_proves() -> None:
    outcome = perform(task(SVM, "dual QP", "highs", time_limit=20.0))
    alone = klopt.solve(SVM, "highs", formulation="dual QP")
    run = outcome.run
    assert (run.says, run.verdict, run.lower, run.upper) == (
        Stop.OPTIMAL,
        alone.verdict,
        alone.lower,
        alone.upper,
    )
    assert (outcome.trace[-1].lower, outcome.trace[-1].upper) == (run.lower, run.upper)
    np.testing.assert_array_equal(outcome.arrays["alpha"], alone.point.alpha)
    assert run.memory is None or 0 <= run.memory < 1e8
    assert run.began


def test_a_method_of_ours_leaves_its_way_and_its_promise() -> None:
    game = klopt.problems.SaddlePoint.sample(np.random.default_rng(0), 6)
    (form,) = (
        route.formulation.name
        for route in klopt.plan(game).routes
        if route.backend.name == "mirror_prox"
    )
    outcome = perform(task(game, form, "mirror_prox", tol=1e-2))
    assert len(outcome.trace) > 1
    assert outcome.run.promise > 0
    assert outcome.run.iterations


def test_an_unbounded_dual_is_the_claim_that_the_problem_is_infeasible() -> None:
    twice = klopt.problems.SoftMargin(
        np.ones((2, 2)), [1, -1], np.inf
    )  # one point with both labels
    run = perform(task(twice, "dual QP", "highs")).run
    assert run.says in (Stop.INFEASIBLE, Stop.INFEASIBLE_OR_UNBOUNDED)
    assert run.verdict is klopt.Verdict.INFEASIBLE


def test_what_runs_out_of_memory_under_a_limit_is_said_to() -> None:
    run = perform(task(LP, "primal", Raiser(MemoryError("cannot allocate 7 GB")), PLENTY)).run
    assert run.says is Stop.CRASHED
    assert "MemoryError" in run.native
    assert "under the limit of 100 GB" in run.native


@pytest.mark.parametrize(
    ("error", "says", "words"),
    [
        (MemoryError(), Stop.CRASHED, "out of memory (under the limit of 100 GB)"),
        (klopt.InvalidProblem("no such cone"), Stop.REJECTED, "InvalidProblem: no such cone"),
        (RuntimeError("a bug"), Stop.CRASHED, "RuntimeError: a bug"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_before_the_backend_is_reached_is_an_outcome_too(
    error: Exception, says: Stop, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Problem) -> object:
        raise error

    monkeypatch.setattr(type(LP), "formulations", fails)
    run = perform(task(LP, "primal", "highs", PLENTY)).run
    assert (run.says, run.native) == (says, words)
    assert not run.verdict.conclusive
    assert math.isinf(run.upper)


def test_a_route_is_warmed_up_on_a_small_instance_of_the_same_class() -> None:
    sizes: list[int] = []

    class Seen(type(backend_named("highs"))):  # type: ignore[misc]
        def run(self, form, settings, start=None):  # type: ignore[no-untyped-def]
            sizes.append(form.c.size)
            return super().run(form, settings, start)

    assert warm_up(type(LP), "primal", Seen(), PLENTY, 5.0)
    assert warm_up(type(LP), "a formulation of larger instances only", Seen(), 0, 5.0)
    assert sizes == [WARM_UP_SIZE, WARM_UP_SIZE]
    assert make_ready(type(LP), Seen(), 1) == "LP"
