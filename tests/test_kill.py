"""SIGKILL at random moments: nothing that was finished is lost, nothing is done twice, and the end is the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import alive, soon

from klopt.bench.comparison import Comparison
from klopt.bench.record import Run
from klopt.bench.store import Store

STORES, TRIALS = 2, 7
"""Kills in all: 14, in two series side by side, since a trial is mostly waiting for two interpreters to start."""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")

SCRIPT = """
import sys
from klopt.bench.comparison import compare
from klopt.bench.store import Store

add = Store.add
def told(self, outcome):
    print("ran", outcome.run.key, flush=True)
    add(self, outcome)
    print("kept", outcome.run.key, flush=True)
Store.add = told
print("began", flush=True)
backends = ["highs", "clarabel", "scs"]  # quick to load
comparison = compare(["LP", "SoftMargin"], backends, sizes=[4, 6], time_limit=20, repeat=4, store=sys.argv[1])
print("reused", len(comparison.reused), flush=True)
"""


def outcome(run: Run) -> tuple[object, ...]:
    """All of a run but its times, its memory and its machine."""
    return (
        run.key,
        run.problem,
        run.backend,
        run.formulation,
        run.says,
        run.native,
        run.verdict,
        run.lower,
        run.upper,
    )


def start(store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store)], stdout=subprocess.PIPE, text=True
    )


def killed(store: Path, chance: random.Random) -> list[str]:
    """What a comparison says until it is killed, a moment after one of its first lines."""
    process = start(store)
    assert process.stdout is not None
    said = []
    for _ in range(1 + chance.randrange(8)):
        said.append(process.stdout.readline())
    time.sleep(chance.choice([0.0, 0.001, 0.003, 0.01, 0.03, 0.1]))
    process.kill()
    said += process.stdout.readlines()
    process.wait()
    return [line.strip() for line in said if line.endswith("\n")]


def series(torn: Path, seed: int) -> tuple[list[str], int]:
    """Kill a comparison and resume it again and again: the runs reported as kept, and how often it was interrupted."""
    chance, kept, interrupted = random.Random(seed), [], 0
    for _ in range(TRIALS):
        said = killed(torn, chance)
        kept += [line.split()[1] for line in said if line.startswith("kept")]
        interrupted += not said[-1].startswith("reused")
        if torn.exists() and kept:
            with Store(torn, read_only=True) as store:
                assert set(kept) <= store.keys(), "a finished run was lost"
    assert start(torn).wait(timeout=600) == 0
    return kept, interrupted


@pytest.mark.slow
def test_a_comparison_survives_being_killed_at_any_moment(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole.db", [tmp_path / f"torn{i}.db" for i in range(STORES)]
    assert start(whole).wait(timeout=600) == 0
    expected = {run.key: outcome(run) for run in Comparison.load(whole).runs}
    with ThreadPoolExecutor(STORES) as pool:
        found = list(pool.map(series, torn, range(20261116, 20261116 + STORES)))
    assert sum(interrupted for _, interrupted in found) >= 11
    for store, (kept, _) in zip(torn, found, strict=True):
        assert len(kept) == len(set(kept)), "a finished run was done again"
        assert {run.key: outcome(run) for run in Comparison.load(store).runs} == expected
        assert sorted(Comparison.load(store).traces) == sorted(expected)
        assert not list(store.with_name(f"{store.name}.arrays").glob("unfinished"))


ORPHAN = """
import sys
sys.path.insert(0, {tests!r})
from bad_backends import Sleeper
from klopt.model.backend import Settings
from klopt.conformance.instances import FormProblem, reference_instances
from klopt.bench.worker_pool import WorkerSlot
from klopt.bench.task import Task
slot = WorkerSlot()
slot._ensure_child(threads=1)
print(slot.worker.process.pid, flush=True)
problem = FormProblem(reference_instances()[0].form)
slot.run(Task(problem, "", "", "as given", Sleeper(), Settings(time_limit=60.0)))
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a child looks for its parent twice a second"
)
@pytest.mark.slow
def test_a_child_does_not_outlive_its_parent() -> None:
    code = ORPHAN.format(tests=str(Path(__file__).parent))
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    os.kill(child, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    # It would have slept for a minute.
    assert soon(lambda: not alive(child))
