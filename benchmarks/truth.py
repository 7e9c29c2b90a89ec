"""Counts false words: problems whose truth is known exactly, solved by every backend and by liars.

    python benchmarks/truth.py                              10,000 solves, docs/truth.txt
    python benchmarks/truth.py --family soft_margin --solves 50     one family, nothing is written
    python benchmarks/truth.py --solves 500 --jobs 2 --out FILE --runs FILE

The families, their truths and the judge are those of `tests/tempting.py`. Each solve has an instance
of its own, and the contenders take turns: klopt's own choice, each capable backend, backends that
lie, backends that write into their input. The same number is the same solve in every run. Each
finished solve is a line of the file of runs (`--runs`); a run that was interrupted goes on where it stopped, and
`--fresh` begins anew. The table goes to standard output, news of the run to standard error.

    conclusive   OPTIMAL, INFEASIBLE or UNBOUNDED, and how many of them are true
    verdicts     verdicts that are false, compared without any tolerance
    intervals    intervals that exclude the optimum, likewise
    worst        the largest distance of the optimum from its interval, over 1 + |optimum|

The exit code is 0 if there is no false word and no error.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import tempting

from klopt.errors import InvalidProblem, NoRoute

SOLVES = 10_000
PAGE = ROOT / "docs" / "truth.txt"
REPORT_EVERY_S = 5.0


@dataclass(frozen=True)
class Task:
    """One solve: the same family, number and choice of contenders are the same solve in every run."""

    family: str
    number: int
    among: str
    """Only contenders with this text in their name take turns."""

    @property
    def key(self) -> str:
        return f"{self.family}/{self.number}/{self.among}"


@dataclass(frozen=True)
class Run:
    """What became of a solve."""

    family: str
    number: int
    among: str
    contender: str
    """Who answered."""
    kind: str
    verdict: str
    """The verdict, or REFUSED (klopt does not take the data), NO ROUTE, ERROR, CRASHED."""
    verdict_error: str
    interval_error: str
    excess: float
    settled: bool
    """Conclusive and true."""
    seconds: float

    @property
    def key(self) -> str:
        return f"{self.family}/{self.number}/{self.among}"


def tasks(families: Iterable[str], solves: int, among: str) -> list[Task]:
    """Return so many solves, spread evenly over the families, each of an instance of its own."""
    names = list(families)
    rounds = math.ceil(solves / len(names))
    return [Task(name, number, among) for number in range(rounds) for name in names][:solves]


def solved(task: Task, seconds: float) -> Run:
    """Solve and judge one instance; nothing is raised."""
    began = time.perf_counter()
    contender = kind = ""

    def failed(verdict: str, error: str = "") -> Run:
        return Run(
            **asdict(task), contender=contender, kind=kind, verdict=verdict, verdict_error=error,
            interval_error="", excess=0.0, settled=False, seconds=time.perf_counter() - began,
        )  # fmt: skip

    try:
        problem, truth = tempting.instance(task.family, task.number)
    except InvalidProblem:
        return failed("REFUSED")
    kind = truth.kind
    names = [name for name in tempting.contenders(problem) if task.among in name]
    if not names:
        return failed("NO ROUTE")
    contender = names[task.number % len(names)]
    try:
        result = tempting.answer(problem, contender, task.number, seconds)
    except NoRoute:
        return failed("NO ROUTE")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library is no Exception
        return failed("ERROR", f"{type(error).__name__}: {error}")
    return Run(
        **asdict(task),
        contender=contender,
        kind=kind,
        verdict=result.verdict.name,
        verdict_error=tempting.false_verdict(result, truth),
        interval_error=tempting.false_interval(result, truth),
        excess=tempting.excess(result, truth),
        settled=tempting.is_settled(result, truth),
        seconds=time.perf_counter() - began,
    )


def crashed(task: Task) -> Run:
    return Run(
        **asdict(task), contender="", kind="", verdict="CRASHED", verdict_error="the process died",
        interval_error="", excess=0.0, settled=False, seconds=0.0,
    )  # fmt: skip


# The run


def all_runs(todo: list[Task], jobs: int, seconds: float) -> Iterator[Run]:
    """Yield what became of each task, in the order in which they end."""
    while todo:
        lost = yield from _until_a_crash(todo, jobs, seconds)
        # Each task that was under way gets a process of its own: one of them is the culprit.
        for task in lost:
            with ProcessPoolExecutor(1) as alone:
                try:
                    yield alone.submit(solved, task, seconds).result()
                except BrokenProcessPool:
                    yield crashed(task)


def _until_a_crash(todo: list[Task], jobs: int, seconds: float) -> Generator[Run, None, list[Task]]:
    """Run tasks, taking them off the list; return those that a dead worker took with it."""
    lost: list[Task] = []
    with ProcessPoolExecutor(jobs) as pool:
        under_way: dict[Future[Run], Task] = {}
        while todo or under_way:
            while todo and len(under_way) < 2 * jobs and not lost:
                task = todo.pop(0)
                try:
                    under_way[pool.submit(solved, task, seconds)] = task
                except BrokenProcessPool:
                    lost.append(task)
            if not under_way:
                break
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                task = under_way.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    lost.append(task)
    return lost


def stored(path: Path | None) -> dict[str, Run]:
    """Return the runs of a file, by key; a last line that was cut off is left out."""
    found: dict[str, Run] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            run = Run(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        found[run.key] = run
    return found


def news(done: int, total: int, false: int, began: float, first: int) -> None:
    """Tell how far the run is, and when it will end."""
    took = time.perf_counter() - began
    left = took / max(done - first, 1) * (total - done)
    minutes, rest = divmod(round(left), 60)
    print(
        f"{done:6d} of {total} solves, {false} with a false word, about {minutes} min {rest:02d} s left",
        file=sys.stderr,
        flush=True,
    )


# The table

COLUMNS = (
    "family", "solves", "conclusive", "true", "FEASIBLE", "ESTIMATED", "UNPROVEN", "other",
    "verdicts", "intervals", "worst",
)  # fmt: skip
CONCLUSIVE = ("OPTIMAL", "INFEASIBLE", "UNBOUNDED")


def row(name: str, runs: list[Run]) -> tuple[str, ...]:
    """Return one line of a table."""
    verdicts = Counter(run.verdict for run in runs)
    conclusive = sum(verdicts[name] for name in CONCLUSIVE)
    named = ("FEASIBLE", "ESTIMATED", "UNPROVEN")
    other = len(runs) - conclusive - sum(verdicts[name] for name in named)
    worst = max((run.excess for run in runs), default=0.0)
    return (
        name,
        str(len(runs)),
        str(conclusive),
        str(sum(run.settled for run in runs)),
        *(str(verdicts[name]) for name in named),
        str(other),
        str(sum(bool(run.verdict_error) and run.verdict in VERDICTS for run in runs)),
        str(sum(bool(run.interval_error) for run in runs)),
        f"{worst:.1e}" if worst else "0",
    )


VERDICTS = {*CONCLUSIVE, "FEASIBLE", "ESTIMATED", "UNPROVEN"}


def table(rows: list[tuple[str, ...]], first: str) -> list[str]:
    """Return the lines of a table in columns of equal width."""
    lines = [(first, *COLUMNS[1:]), *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]


def group(contender: str) -> str:
    if contender.startswith("lie:"):
        return "lies"
    if contender in tempting.SCRIBBLERS:
        return "writes into its input"
    return contender


def page(runs: list[Run], command: str) -> list[str]:
    """Return the lines of the page: the families, the contenders, then examples of false words."""
    families = {run.family: None for run in runs}
    contenders = sorted({group(run.contender) for run in runs}, key=lambda name: name != "default")
    false = [run for run in runs if run.verdict_error or run.interval_error]
    packages = ("klopt", "highspy", "clarabel", "scs", "ecos", "cvxpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    judged = [run for run in runs if run.verdict in VERDICTS]
    lines = [
        f"Written by `{command}`, never by hand ({versions}).",
        "",
        f"{len(runs)} solves of {len(families)} families of problems with a known truth, "
        f"tol 1e-6: {sum(bool(r.verdict_error) for r in judged)} false verdicts, "
        f"{sum(bool(r.interval_error) for r in judged)} intervals that exclude the optimum, "
        f"{sum(r.verdict in ('ERROR', 'CRASHED') for r in runs)} errors.",
        "true: conclusive and not false. other: refused data, no route, errors.",
        "worst: distance of the optimum from its interval over 1 + |optimum|; inf where there is no optimum.",
        "",
        *table(
            [
                *(row(name, [run for run in runs if run.family == name]) for name in families),
                row("all", runs),
            ],
            "family",
        ),
        "",
        *table(
            [
                row(name, [run for run in runs if group(run.contender) == name])
                for name in contenders
            ],
            "answered by",
        ),
    ]
    if false:
        lines += ["", "Some of what is false, worst first, at most three for each family:", ""]
    seen: Counter[str] = Counter()
    for run in sorted(false, key=lambda run: (run.family, not run.verdict_error, -run.excess)):
        seen[run.family] += 1
        if seen[run.family] <= 3:
            words = "; ".join(filter(None, (run.verdict_error, run.interval_error)))
            lines.append(f"  {run.family} {run.number} by {run.contender}: {words}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run the solves that are left, print the table, return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--family",
        action="append",
        choices=sorted(tempting.FAMILIES),
        help="only this family; may be given more than once",
    )
    parser.add_argument(
        "--contender", default="", help="only contenders with this text in their name"
    )
    parser.add_argument("--solves", type=int, default=SOLVES, help=f"how many (default {SOLVES})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of a solve (default 5)")
    parser.add_argument("--runs", type=Path, help="file of finished solves, to go on from")
    parser.add_argument("--fresh", action="store_true", help="forget the file of finished solves")
    parser.add_argument("--out", type=Path, help="write the page to this file as well")
    options = parser.parse_args(arguments)

    whole = not options.family and not options.contender
    out = options.out or (PAGE if whole and options.solves >= SOLVES else None)
    if options.fresh and options.runs is not None:
        options.runs.unlink(missing_ok=True)
    wanted = tasks(options.family or tempting.FAMILIES, options.solves, options.contender)
    runs = stored(options.runs)
    todo = [task for task in wanted if task.key not in runs]
    first = len(wanted) - len(todo)
    began = said = time.perf_counter()
    file = None if options.runs is None else options.runs.open("a", encoding="utf-8")
    for run in all_runs(todo, options.jobs, options.seconds):
        runs[run.key] = run
        if file is not None:
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
        if time.perf_counter() - said > REPORT_EVERY_S:
            said = time.perf_counter()
            mine = [runs[task.key] for task in wanted if task.key in runs]
            false = sum(bool(run.verdict_error or run.interval_error) for run in mine)
            news(len(mine), len(wanted), false, began, first)
    if file is not None:
        file.close()

    finished = [runs[task.key] for task in wanted]
    shown = " ".join(
        ["python benchmarks/truth.py", *(f"--family {f}" for f in options.family or ())]
    )
    lines = page(finished, f"{shown} --solves {options.solves}")
    print("\n".join(lines))
    if out is not None:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(any(run.verdict_error or run.interval_error for run in finished))


if __name__ == "__main__":
    sys.exit(main())
