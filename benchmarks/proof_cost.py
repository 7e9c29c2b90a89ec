"""What exact proofs cost: certifying an answer here against certifying it in a former checkout.

    python benchmarks/proof_cost.py --former DIR [--repeats K] [--only TEXT ...]

Every problem of `klopt demo` is solved once by the route that klopt picks itself. Its answer is then
certified in both trees, each in a process of its own that imports klopt from its own tree, in turns,
so that both meet the same computer. Each repeat makes the problem anew and runs the same backend on
the same formulation, as a solve does: what a proof computes once for a problem is part of its cost.
One BLAS thread, CPU seconds, smallest of several repeats.

The gates: the median of the ratios is at most 1.2 and the largest is at most 2. `share` is the part
of a whole solve that certifying takes here.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from _rows import Row

MEDIAN_GATE = 1.2
WORST_GATE = 2.0
TOL = 1e-6
REPEATS = 9
HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Timed:
    """One certificate: CPU seconds of certifying and of the whole solve, and what is proven."""

    certify: float
    solve: float
    verdict: str
    gap: float


# The process of one tree


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more: `solve` label, or `certify` label and answer."""
    from klopt.bench.suite import suite

    while True:
        try:
            command, label, *given = pickle.load(requests)
        except EOFError:
            return
        if command == "labels":
            reply: Any = [label for label, _ in suite("demo")]
        elif command == "solve":
            reply = solved(label)
        else:
            reply = certified(label, *given)
        pickle.dump(reply, replies)
        replies.flush()


def problem_of(label: str) -> Any:
    """Return the problem of the suite with this label, made anew."""
    from klopt.bench.suite import SAMPLE_SIZE, data
    from klopt.engine.registry import problem_named

    family, source, size = label.split()
    kind = problem_named(family)
    points = int(size.removeprefix("n="))
    if source == "sample":
        return kind.sample(np.random.default_rng(0), SAMPLE_SIZE)
    example = next(e for e in kind.examples if e.data == source and points in e.demo)
    return example.make(data(source, points))


def solved(label: str) -> tuple[str, str, Any, Any]:
    """Return the route that klopt picks, and the vectors of its answer."""
    import klopt

    chosen = klopt.solve(problem_of(label), tol=TOL).chosen
    route = chosen.route
    return route.backend.name, route.formulation.name, chosen.answer.x, chosen.answer.y


def certified(label: str, backend: str, formulation: str, x: Any, y: Any) -> Timed:
    """Solve by a route, put the given vectors in place of its answer, and time the certificate."""
    from dataclasses import replace
    from importlib import import_module

    import klopt

    pipeline: Any = import_module("klopt.engine.pipeline")
    judge = pipeline.certify
    seconds: list[float] = []

    def timed(problem: Any, made: Any, form: Any, answer: Any, tol: float) -> Any:
        answer = replace(answer, x=x, y=y)
        began = time.process_time()
        found = judge(problem, made, form, answer, tol)
        seconds.append(time.process_time() - began)
        return found

    problem = problem_of(label)
    pipeline.certify = timed
    try:
        began = time.process_time()
        result = klopt.solve(problem, backend, formulation=formulation, tol=TOL, isolate=False)
        whole = time.process_time() - began
    finally:
        pipeline.certify = judge
    gap = float(result.certificate.relative_gap)
    return Timed(seconds[0], whole, result.verdict.name, gap)


# The process that compares


class Tree:
    """A checkout whose klopt runs in a process of its own."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(root)},
            cwd=root,
        )

    def ask(self, *request: Any) -> Any:
        """Return the reply to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def close(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(former: Tree, here: Tree, label: str, repeats: int) -> float:
    """Print the row of one problem and return its ratio."""
    route = here.ask("solve", label)
    before: list[Timed] = []
    now: list[Timed] = []
    for _ in range(repeats):
        before.append(former.ask("certify", label, *route))
        now.append(here.ask("certify", label, *route))

    then_s = min(run.certify for run in before)
    now_s = min(run.certify for run in now)
    share = now_s / min(run.solve for run in now)
    ratio = now_s / then_s
    verdicts = f"{now[0].verdict} {now[0].gap:.0e}"
    if now[0].verdict != before[0].verdict:
        verdicts += f" (formerly {before[0].verdict})"
    print(
        f"{label:34} {1e3 * then_s:9.2f} {1e3 * now_s:9.2f} {ratio:7.2f} {share:7.0%}"
        f"   {route[0]} on {route[1]}; {verdicts}",
        flush=True,
    )
    return ratio


def main() -> int:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--former", type=Path, help="the checkout to compare with")
    reader.add_argument("--repeats", type=int, default=REPEATS)
    reader.add_argument("--only", nargs="*", default=[""], help="parts of the labels to take")
    reader.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = reader.parse_args()

    if given.serve:
        # Nothing that a library prints may get among the replies.
        replies = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        serve(sys.stdin.buffer, replies)
        return 0
    if given.former is None:
        reader.error("--former DIR names the checkout to compare with")

    former = Tree(given.former.resolve())
    here = Tree(HERE)
    print(
        f"{'problem':34} {'former ms':>9} {'here ms':>9} {'ratio':>7} {'share':>7}"
        "   route; verdict and relative gap here"
    )
    # Problems that came later have nothing to be compared with.
    known = set(former.ask("labels", ""))
    labels = [label for label in here.ask("labels", "") if label in known]
    labels = [label for label in labels if any(part in label for part in given.only)]
    ratios = [compare(former, here, label, given.repeats) for label in labels]
    former.close()
    here.close()

    median = float(np.median(ratios))
    worst = max(ratios)
    print(f"\n{len(ratios)} problems, smallest of {given.repeats} repeats")
    former = "certify, former checkout"
    print(Row("demo, median", former, MEDIAN_GATE, median, "", at_most=True))
    print(Row("demo, worst", former, WORST_GATE, worst, "", at_most=True))
    return 0 if median <= MEDIAN_GATE and worst <= WORST_GATE else 1


if __name__ == "__main__":
    sys.exit(main())
