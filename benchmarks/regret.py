"""What the default choice of routes costs against the best single backend, and against bare solvers.

    python benchmarks/regret.py FOLDER            the public programs of FOLDER (optima.csv names them)
    python benchmarks/regret.py FOLDER --kinds qp the quadratic ones only

For each program: processor seconds of `klopt.solve(problem, time_limit=20)`, of every measured
backend named, and of one backend's run alone, without planning and proof (HiGHS for linear, Clarabel
for quadratic programs, at the settings that klopt gives them). The regret is the default over the
best backend that proves the optimum; times below a hundredth of a second count as one.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import klopt
from klopt.engine.route_costs import NEGLIGIBLE_S
from klopt.problems import LP, QCQP, SDP
from klopt.programs.program import Program

TIME_LIMIT_S = 20.0
READERS: dict[str, Any] = {"lp": LP, "qp": QCQP, "sdp": SDP, "socp": QCQP}
MAX_MEDIAN = 1.5
MAX_95TH = 3.0
MAX_OVERRUN_S = 1.0
MAX_OVERRUN_SHARE = 0.1


def seconds_of(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """Processor seconds with those of children, wall seconds, and what the call returns."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, own = time.perf_counter(), time.process_time()
    found = call()
    own, wall = time.process_time() - own, time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return own + children, wall, found


def bare_highs(problem: Program) -> None:
    """HiGHS without planning and proof."""
    from klopt.solvers import highs

    highs.BACKEND.run(problem.form, klopt.Settings())


def bare_clarabel(problem: Program) -> None:
    """Clarabel without planning and proof."""
    from klopt.solvers import clarabel

    clarabel.BACKEND.run(problem.form, klopt.Settings())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", nargs="*", default=list(READERS))
    arguments = parser.parse_args()
    klopt.solve(LP([1.0], bounds=(0.0, 1.0)))
    for backend in ("highs", "clarabel", "scs"):
        klopt.solve(QCQP(np.eye(2), [1.0, 1.0], bounds=(0.0, 1.0)), backend)

    regrets: list[float] = []
    overruns: list[float] = []
    totals = {"lp": [0.0, 0.0], "qp": [0.0, 0.0]}
    certified = {kind: [0, 0] for kind in arguments.kinds}
    with (arguments.folder / "optima.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        kind = row["file"].split("/")[0]
        if kind not in arguments.kinds:
            continue
        try:
            problem: Program = READERS[kind].from_file(arguments.folder / row["file"])
        except klopt.InvalidProblem as refusal:
            print(f"{row['file']:28} refused: {str(refusal)[:60]}")
            continue
        taken, wall, result = seconds_of(partial(klopt.solve, problem, time_limit=TIME_LIMIT_S))
        overruns.append(wall - TIME_LIMIT_S)
        certified[kind][1] += 1
        certified[kind][0] += result.verdict.conclusive
        best = np.inf
        chosen = ""
        for name in dict.fromkeys(
            r.backend.name for r in klopt.plan(problem).routes if r.expected is not None
        ):
            own, _, pinned = seconds_of(
                partial(klopt.solve, problem, name, time_limit=TIME_LIMIT_S)
            )
            if pinned.verdict.conclusive and own < best:
                best, chosen = own, name
        regret = max(taken, NEGLIGIBLE_S) / max(best, NEGLIGIBLE_S)
        if np.isfinite(best) or result.verdict.conclusive:
            regrets.append(regret)
        if kind in totals:
            bare_call = bare_highs if kind == "lp" else bare_clarabel
            bare, _, _ = seconds_of(partial(bare_call, problem))
            totals[kind][0] += taken
            totals[kind][1] += bare
        print(
            f"{row['file']:28} {result.verdict.name:10} {taken:8.3f} s by {result.route}, "
            f"{len(result.attempts)} tried; best {best:8.3f} s by {chosen or 'none'}; regret {regret:.2f}",
            flush=True,
        )

    def verdict(name: str, value: float, most: float) -> bool:
        passed = value <= most
        print(f"{'PASS' if passed else 'FAIL'}  {name:40} {value:8.3g}  <= {most:g}")
        return passed

    passed = [
        verdict("regret, median", float(np.median(regrets)), MAX_MEDIAN),
        verdict("regret, 95th percentile", float(np.quantile(regrets, 0.95)), MAX_95TH),
        verdict(
            "longest overrun of the limit, s",
            max(overruns),
            max(MAX_OVERRUN_S, MAX_OVERRUN_SHARE * TIME_LIMIT_S),
        ),
    ]
    for kind, most in (("lp", 1.5), ("qp", 3.0)):
        klopt_total, bare_total = totals[kind]
        if bare_total:
            library = "HiGHS" if kind == "lp" else "Clarabel"
            passed.append(
                verdict(f"{kind}: total over bare {library}", klopt_total / bare_total, most)
            )
    for kind, (proven, tried) in certified.items():
        print(f"      {kind}: {proven} of {tried} certified")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
