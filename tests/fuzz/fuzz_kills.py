"""SIGKILL to parents and children at random moments: no finished run is lost or done twice, and nobody survives.

    python tests/fuzz/fuzz_kills.py 300

Half of the processes that are killed solve in child processes, the other half compare into a store. A
killed child is an outcome of its own run at most. What was below a killed parent is gone a second later.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from klopt.bench.store import Store
from klopt.engine.guard import _descendants

SURVIVAL_S = 1.0
"""Who is still there so long after its parent has survived it ..."""
BUSY_S = 10.0
"""... unless the computer is too busy to let it end: until then it is only late."""
PATIENCE_S = 120.0
"""A process that says nothing for so long hangs."""

WORK = """
import random, sys, time
import numpy as np
import klopt
from klopt import Answer, Backend, Feature, Stop

class Slow(Backend):
    name, offers, honours = "slow", frozenset({{Feature.CONE}}), frozenset({{"tol", "time_limit", "log"}})
    def run(self, form, settings, start=None):
        time.sleep(0.02 + 0.15 * random.random())
        y = form.c[0] * np.array([0.5, 0.5, 0.0])
        return Answer(Stop.OPTIMAL, x=[0.0, 1.0], y=y[: form.b.size])

def program(i):
    return klopt.problems.LP([1.0 + i, 1 + i], A_ub=[[-1, -2]], b_ub=[-2])
"""
SOLVES = (
    WORK
    + """
for i in range(10_000):
    result = klopt.solve(program(i), Slow(), formulation="primal", isolate=True, time_limit=20.0)
    print("solved", result.verdict.name, result.chosen.answer.native.replace(" ", "_") or "-", flush=True)
"""
)
COMPARES = (
    WORK
    + """
from klopt.bench.store import Store
add = Store.add
def told(self, finished):
    run = finished.run
    kind = "killed" if "SIGKILL" in run.native else run.verdict.name
    add(self, finished)
    print("kept", run.key, kind, flush=True)
Store.add = told
comparison = klopt.compare(
    [(f"p{{i}}", program(i)) for i in range(10)], [Slow(), "highs"], repeat=2, time_limit=20.0, store={store!r},
    progress=False,
)
print("finished", len(comparison.runs), flush=True)
"""
)
RUNS = 40
"""What a comparison has."""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Tally:
    """What was done, and what went wrong."""

    parents: int = 0
    children: int = 0
    late: int = 0
    runs: int = 0
    comparisons: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.parents + self.children

    def __str__(self) -> str:
        return (
            f"{self.kills} kills ({self.parents} of parents, {self.children} of children), {self.runs} finished "
            f"runs, {self.comparisons} comparisons completed: {len(self.faults)} failures, {self.late} late ends"
        )


class Process:
    """A process that works and says what it does."""

    def __init__(self, script: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A line that the kill has cut was not said.
            if line.endswith("\n"):
                self.lines.put(line.strip())
        self.lines.put(None)

    def said(self) -> Iterator[str]:
        """What it has said by now, and to its end if it has ended."""
        ended = self.process.poll() is not None
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE_S if ended else 0.0)
            except queue.Empty:
                return
            if line is None:
                return
            yield line

    def kill(self, tally: Tally) -> None:
        """Kill it, and look who is left of all that were below it."""
        below = _descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        tally.parents += 1
        began = time.monotonic()
        while any(map(alive, below)):
            if time.monotonic() - began > BUSY_S:
                tally.faults.append(f"survivors {sorted(filter(alive, below))}")
                return
            time.sleep(0.01)
        tally.late += time.monotonic() - began > SURVIVAL_S


def kill_a_child(process: Process, rng: random.Random, tally: Tally) -> None:
    below = sorted(_descendants(process.process.pid))
    if below:
        try:
            os.kill(rng.choice(below), signal.SIGKILL)
        except ProcessLookupError:
            return
        tally.children += 1


def disturbed(process: Process, rng: random.Random, tally: Tally, most: int) -> Iterator[str]:
    """What a process says while its children are killed, and at last, mostly, itself."""
    heard = time.monotonic()
    # Its imports take most of a second; then every moment is as likely.
    time.sleep(rng.choice((0.05, 0.3, 1.0, 1.5)))
    for _ in range(rng.randrange(1, 8)):
        time.sleep(rng.random() * 0.4)
        for line in process.said():
            heard = time.monotonic()
            yield line
        if process.process.poll() is not None or tally.kills >= most:
            break
        if time.monotonic() - heard > PATIENCE_S:
            tally.faults.append("hangs")
            break
        kill_a_child(process, rng, tally)
    if process.process.poll() is None:
        process.kill(tally)
    elif process.process.returncode:
        assert process.process.stderr is not None
        tally.faults.append(f"died: {process.process.stderr.read()[-300:]}")
    yield from process.said()


def solve_series(rng: random.Random, tally: Tally, most: int) -> None:
    for line in disturbed(Process(SOLVES.format()), rng, tally, most):
        _, verdict, native = line.split()
        tally.runs += 1
        if verdict != "OPTIMAL" and "SIGKILL" not in native:
            tally.faults.append(f"solve: {line}")


def compare_series(rng: random.Random, tally: Tally, most: int, folder: Path) -> None:
    """One comparison, killed and resumed until it is complete."""
    store = folder / f"runs{rng.randrange(10**9)}.db"
    kept: dict[str, str] = {}
    while True:
        script = COMPARES.format(store=str(store))
        process = Process(script)
        enough = tally.kills >= most
        finished = False
        lines = disturbed(process, rng, tally, most) if not enough else undisturbed(process, tally)
        for line in lines:
            word, *rest = line.split()
            if word == "finished":
                finished = True
                continue
            key, kind = rest
            # A run whose child was killed says nothing of its backend: it may be made again.
            if key in kept and kept[key] != "killed":
                tally.faults.append(f"{key} was {kept[key]} and was done again")
            if kind not in ("OPTIMAL", "killed"):
                tally.faults.append(f"compare: {line}")
            kept[key] = kind
        if store.exists() and kept:
            with Store(store, read_only=True) as opened:
                lost = set(kept) - opened.keys()
            tally.faults += [f"{key} was lost" for key in sorted(lost)]
        if finished or tally.faults:
            break
    tally.runs += len(kept)
    tally.comparisons += finished


def undisturbed(process: Process, tally: Tally) -> Iterator[str]:
    if process.process.wait(timeout=PATIENCE_S):
        tally.faults.append(f"exit code {process.process.returncode}")
    yield from process.said()


def kills(count: int, seed: int) -> Tally:
    """Kill so many processes."""
    rng = random.Random(seed)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        while tally.kills < count and not tally.faults:
            solve_series(rng, tally, min(count, tally.kills + 12))
            compare_series(rng, tally, min(count, tally.kills + 12), Path(folder))
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    tally = kills(wanted.count, wanted.seed)
    for fault in tally.faults:
        print(fault)
    print(tally)
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
