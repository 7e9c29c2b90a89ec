"""What a run in a comparison costs beyond the solve itself.

    alone     the median time of klopt.solve in this process, without anything around it
    inside    the median time of the same solve as the child measures it
    waited    the median time that the parent waits for it: with sending the problem, certifying, sending back
    kept      the median time between two finished runs: with writing the run to the store too
    start-up  what is paid once a child: a new interpreter, its imports, one warm-up a route

The rule: for runs of a second and more, `kept` is at most 5 % above `inside`. `inside` differs from
`alone` by the noise of the computer only; it is printed so that one can see it.

    python benchmarks/harness.py [SECONDS] [REPEATS]
"""

from __future__ import annotations

import os
import sys
import time

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

from itertools import pairwise
from typing import ClassVar

import numpy as np

import klopt
from klopt.bench.comparison import compare
from klopt.bench.record import Run
from klopt.bench.store import Store
from klopt.bench.worker import FinishedRun

ALLOWED = 0.05
BACKEND = "clarabel"
FORMULATION = "dual QP"


def lasting(seconds: float) -> klopt.Problem:
    """Return a soft-margin problem that takes the backend about so long or longer."""
    size = 100
    while True:
        problem = klopt.problems.SoftMargin.sample(np.random.default_rng(0), size)
        result = klopt.solve(problem, BACKEND, formulation=FORMULATION)
        if result.timings.total >= seconds:
            return problem
        size = int(size * min(2.0, 1.1 * (seconds / result.timings.total) ** 0.4))


class Timed(Store):
    """A store that notes which run was safe when."""

    finished: ClassVar[list[tuple[float, Run]]] = []

    def add(self, outcome: FinishedRun) -> None:
        super().add(outcome)
        self.finished.append((time.perf_counter(), outcome.run))


def main(seconds: float = 1.0, repeats: int = 5) -> int:
    problem = lasting(seconds)
    alone = [
        klopt.solve(problem, BACKEND, formulation=FORMULATION).timings.total for _ in range(repeats)
    ]
    sys.modules["klopt.bench.comparison"].Store = Timed  # type: ignore[attr-defined]
    began = time.perf_counter()
    compare(problem, BACKEND, formulation=FORMULATION, repeat=repeats + 1)
    first, *runs = (run for _, run in Timed.finished)
    kept = [later - sooner for (sooner, _), (later, _) in pairwise(Timed.finished)]
    rows = {
        "alone": alone,
        "inside": [r.seconds for r in runs],
        "waited": [r.wall for r in runs],
        "kept": kept,
    }
    print(f"{problem.describe()} by {BACKEND} on {FORMULATION}, {repeats} runs")
    for name, values in rows.items():
        print(f"  {name:9}{np.median(values):8.3f} s   ({min(values):.3f} to {max(values):.3f})")
    print(f"  start-up {Timed.finished[0][0] - began - first.wall:8.3f} s   once")
    overhead = (
        float(np.median([gap / run.seconds for gap, run in zip(kept, runs, strict=True)])) - 1
    )
    print(f"  overhead {overhead:8.1%}     allowed {ALLOWED:.0%}")
    return 0 if overhead <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3])))
