"""Bad backends in one comparison: each is reported for what it is, and the others do not notice."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from bad_backends import (
    Aborter,
    Counter,
    Deaf,
    Eater,
    Liar,
    NanReturner,
    Printer,
    Quitter,
    Segfaulter,
    Sleeper,
    Threads,
)
from processes import PATIENCE_S

import klopt
from klopt.bench.comparison import Comparison, compare
from klopt.bench.record import Run
from klopt.bench.worker import WARM_UP_SIZE
from klopt.engine.run_in_child import GRACE_S
from klopt.model.backend import Backend, Stop
from klopt.proof.certificate import Verdict

pytestmark = (
    pytest.mark.slow
)  # each fault waits for its limit; quicker ones of a kind are in test_solve and test_isolate

LIMIT = 3.0
MEMORY = 400_000_000
LP = klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])
on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="the memory limit is enforced on Linux only"
)


BAD: list[Backend] = [
    Segfaulter(),
    Aborter(),
    Sleeper(),
    Deaf(),
    Eater(),
    Liar(),
    NanReturner(),
    Quitter(),
    Printer(),
]
GOOD = ["highs", "clarabel", "scs"]


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(
        ("line", LP), [*BAD, *GOOD], repeat=1, time_limit=LIMIT, memory_limit=MEMORY, jobs=2
    )


def of(comparison: Comparison, name: str) -> Run:
    (run,) = (run for run in comparison.runs if run.backend == name)
    return run


def test_all_others_are_unaffected(found: Comparison) -> None:
    alone = compare(("line", LP), GOOD, repeat=1, time_limit=LIMIT, memory_limit=MEMORY)
    for name in GOOD:
        run, by_itself = of(found, name), of(alone, name)
        assert run.verdict is Verdict.OPTIMAL
        assert (run.key, run.lower, run.upper, run.iterations) == (
            by_itself.key,
            by_itself.lower,
            by_itself.upper,
            by_itself.iterations,
        )


@pytest.mark.parametrize(
    ("name", "says", "words"),
    [
        ("segfaulter", Stop.CRASHED, "SIGSEGV"),
        ("aborter", Stop.CRASHED, "SIGABRT"),
        ("quitter", Stop.CRASHED, "exit code 0"),
        ("sleeper", Stop.TIME_LIMIT, "ended by klopt"),
        ("deaf", Stop.TIME_LIMIT, "ended by klopt"),
        ("nan_returner", Stop.OPTIMAL, "NaN or infinite"),
        ("liar", Stop.OPTIMAL, "trust me"),
        ("printer", Stop.NUMERICAL, ""),
    ],
)
def test_each_is_reported_for_what_it_is(
    found: Comparison, name: str, says: Stop, words: str
) -> None:
    run = of(found, name)
    assert run.says is says
    assert words in run.native
    assert not run.verdict.conclusive


@on_linux
def test_a_memory_limit_is_kept_and_named(found: Comparison) -> None:
    run = of(found, "eater")
    assert run.says is Stop.CRASHED
    assert "MemoryError" in run.native
    assert "0.4 GB" in run.native
    assert run.memory is not None
    assert run.memory < 1.2 * MEMORY
    assert run.unenforced == ""


def test_time_limits_are_kept(found: Comparison) -> None:
    for name in ("sleeper", "deaf"):
        # Both would have slept for a minute.
        assert LIMIT + GRACE_S <= of(found, name).wall < PATIENCE_S


def test_what_a_backend_has_at_its_time_limit_is_still_certified() -> None:
    # Far too large for 3 s, however fast the computer is.
    game = klopt.problems.SaddlePoint.sample(np.random.default_rng(0), 500)
    (run,) = compare(game, "mirror_prox", repeat=1, tol=1e-12, time_limit=3.0).runs
    assert run.says is Stop.TIME_LIMIT
    assert "ended by klopt" not in run.native
    assert not run.verdict.conclusive
    assert 0 < run.relative_gap < 0.1


def test_last_words_and_prints_are_kept(found: Comparison) -> None:
    assert "assertion failed in a native library" in of(found, "aborter").log
    assert "hello from C" in of(found, "printer").log
    assert of(found, "highs").log == ""


def test_the_table_names_the_culprits_and_calls_none_of_them_fastest(found: Comparison) -> None:
    text = found.table()
    for words in (
        "SIGSEGV",
        "ended by klopt",
        "liar on primal says optimal",
        "nan_returner on primal says optimal",
    ):
        assert words in text
    assert found.best["line"].backend in GOOD
    assert found.scores[0].backend in GOOD


def test_a_route_is_warmed_up_once_in_a_child_on_a_small_instance() -> None:
    runs = compare(LP, [Counter()], repeat=3).runs
    sizes = sorted((run.native for run in runs), key=len)
    assert sizes == [
        f"[{WARM_UP_SIZE}, 2]",
        f"[{WARM_UP_SIZE}, 2, 2]",
        f"[{WARM_UP_SIZE}, 2, 2, 2]",
    ]
    assert {run.notes for run in runs} == {runs[0].notes}
    assert "no warm-up" not in runs[0].notes


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_pinned_before_numpy_is_there(threads: int) -> None:
    (run,) = compare(LP, [Threads()], repeat=1, threads=threads).runs
    assert run.native == f"{threads} {{{threads}}}"
    assert run.threads == threads


def test_leaving_early_ends_the_child_at_once() -> None:
    from klopt.bench.task import Task
    from klopt.bench.worker_pool import run_all
    from klopt.model.backend import Settings

    task = Task(LP, "line", "", "primal", Sleeper(), Settings(time_limit=50.0))
    quick = Task(LP, "line", "", "primal", Liar(), Settings(time_limit=50.0))
    outcomes = run_all([quick, task], jobs=2)
    assert next(outcomes).run.backend == "liar"
    began = time.monotonic()
    outcomes.close()
    # It would have slept for a minute.
    assert time.monotonic() - began < PATIENCE_S
