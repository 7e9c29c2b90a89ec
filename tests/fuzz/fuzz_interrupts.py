"""Ctrl-C at random moments of solves by every backend: streams stay whole, and the next solve is right.

    python tests/fuzz/fuzz_interrupts.py 1000

A thread sends SIGINT to the process at a random moment of a solve, in process or in a child. Then the
standard streams, the handler of the signal, the threads of BLAS and klopt's own state must be as before,
and the same solve, undisturbed, must give what it gave at first.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np

import klopt
from klopt.engine import run_here as runner, standard_streams
from klopt.engine.registry import problems as problem_classes
from klopt.kernels.nystroem import LowRank
from klopt.proof import time_budget

LIMIT_S = 10.0
"""The time limit of a solve; who takes a second longer hangs."""
ISOLATED = 0.15
"""The share of solves in a child process."""


TOL = 1e-3


def instances() -> dict[str, klopt.Problem]:
    """For each backend that is installed the small problem that it proves with the least work."""
    rng = np.random.default_rng(0)
    features = LowRank(rng.normal(size=(6, 2)))
    drawn = [kind.sample(rng, size) for size in (4, 8) for kind in problem_classes()]
    drawn.append(klopt.problems.AdaptiveKernel(features, np.array([1.0, -1.0] * 3), 1.0))
    best: dict[str, tuple[bool, float, klopt.Problem]] = {}
    for problem in drawn:
        for name in {route.backend.name for route in klopt.plan(problem).routes}:
            began = time.process_time()
            result = solved(problem, name, limit=1.0)
            seconds = time.process_time() - began
            open_ = not result.verdict.conclusive
            if name not in best or (open_, seconds) < best[name][:2]:
                best[name] = (open_, seconds, problem)
    return {name: problem for name, (_, _, problem) in sorted(best.items())}


def solved(
    problem: klopt.Problem, name: str, *, limit: float = LIMIT_S, isolate: bool | None = None
) -> klopt.Result:
    return klopt.solve(problem, name, tol=TOL, time_limit=limit, isolate=isolate)


def state() -> tuple[object, ...]:
    """What a solve changes of the process for its time."""
    return (
        os.fstat(1).st_ino,
        os.fstat(2).st_ino,
        sys.stdout,
        sys.stderr,
        standard_streams._capturing.locked(),
        runner._blas_pools().users,
        time_budget.exhausted(),
        np.geterr()["over"],
        signal.getsignal(signal.SIGINT),
    )


def differ(first: klopt.Result, second: klopt.Result) -> str:
    """How two results of one solve contradict each other, "" if they do not."""
    late = any(attempt.answer.stop is klopt.Stop.TIME_LIMIT for attempt in second.attempts)
    if first.verdict is not second.verdict and not late:
        return f"{second.verdict.name} after {first.verdict.name}"
    # One that stopped at its time limit may prove more or less.
    if max(first.lower, second.lower) > min(first.upper, second.upper):
        return f"[{second.lower}, {second.upper}] after [{first.lower}, {first.upper}]"
    return ""


class Finger:
    """A thread that presses Ctrl-C after so many seconds, unless it is called back before."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.pressed = 0.0
        self.back = threading.Event()
        self.thread = threading.Thread(target=self.press)

    def press(self) -> None:
        if not self.back.wait(self.seconds):
            self.pressed = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

    def call_back(self) -> None:
        self.back.set()
        if self.thread.ident is not None:
            self.thread.join()


def trial(
    problem: klopt.Problem, name: str, moment: float, isolate: bool | None
) -> tuple[str, float]:
    """What came of one solve with a Ctrl-C, and the seconds from it to the end."""
    finger = Finger(moment)
    said = "done before"
    ended = 0.0
    try:
        finger.thread.start()
        try:
            solved(problem, name, isolate=isolate)
            said = "lost" if finger.pressed else said
        finally:
            ended = time.perf_counter()
        finger.call_back()
        # A signal that came in the very last moment is handled by now.
        time.sleep(0.002)
    except KeyboardInterrupt:
        said = "interrupted"
    except BaseException as error:
        said = f"raised {type(error).__name__}: {error}"
    finger.call_back()
    return said, max(0.0, ended - finger.pressed)


def outcomes(
    count: int, seed: int, backends: tuple[str, ...] = ()
) -> Iterator[tuple[str, str, float]]:
    """The backend, what came of it, and the seconds, until so many solves were interrupted."""
    rng = random.Random(seed)
    problems = {name: p for name, p in instances().items() if not backends or name in backends}
    expected: dict[str, klopt.Result] = {}
    seconds: dict[str, float] = {}
    for name, problem in problems.items():
        began = time.perf_counter()
        expected[name] = solved(problem, name)
        seconds[name] = time.perf_counter() - began
    before = state()
    interrupted = 0
    while interrupted < count:
        name = rng.choice(list(problems))
        problem = problems[name]
        isolate = True if rng.random() < ISOLATED else None
        # A new child takes as long as the imports.
        longest = seconds[name] if isolate is None else seconds[name] + 0.7
        said, taken = trial(problem, name, rng.random() * longest, isolate)
        if said == "interrupted":
            interrupted += 1
            changed = [pair for pair in zip(before, state(), strict=True) if pair[0] != pair[1]]
            if changed:
                said = f"changed {changed}"
            elif taken > LIMIT_S + 1.0:
                said = f"hung for {taken:.1f} s"
            elif difference := differ(expected[name], solved(problem, name)):
                said = f"next solve {difference}"
        yield name, said, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", action="append", default=[])
    wanted = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hits: collections.Counter[str] = collections.Counter()
    bad = 0
    slowest = 0.0
    for name, said, taken in outcomes(wanted.count, wanted.seed, tuple(wanted.backend)):
        if said == "interrupted":
            hits[name] += 1
            slowest = max(slowest, taken)
        elif said != "done before":
            bad += 1
            print(name, said, flush=True)
    print(
        f"{sum(hits.values())} interrupts of {len(hits)} backends: {bad} failures, slowest {slowest:.2f} s"
    )
    print(", ".join(f"{name} {number}" for name, number in sorted(hits.items())))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
