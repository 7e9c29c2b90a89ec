"""Compares all capable backends on public instances and writes a summary.

The instances are of Netlib, Maros-Meszaros, SDPLIB and DIMACS.

    python benchmarks/compare_public.py FOLDER > docs/compared.md
    python benchmarks/compare_public.py FOLDER --store runs.db --page public.html     keep the runs, and a page of them

FOLDER holds `optima.csv` and the files it names; without it the environment variable KLOPT_DATA is
asked. Every backend runs once on the first formulation that it takes, in a child process that is
killed at the limit. With a store, runs that it holds are not made again. The exit code is 0 unless
two proofs, or a proof and a published optimum, contradict.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from public_instances import Reference, read, references, table

from klopt.bench.comparison import Comparison, compare
from klopt.bench.record import Run
from klopt.bench.scores import (
    LEVELS,
    agreement,
    fastest,
    route,
    scores,
    trials,
    verdict_sentence,
)
from klopt.bench.trials import grouped
from klopt.errors import InvalidProblem

COMMAND = "python benchmarks/compare_public.py FOLDER > docs/compared.md"


def wrong(run: Run, reference: Reference) -> bool:
    """Whether a certified run contradicts what is published."""
    return run.verdict.conclusive and reference.contradicts(run.verdict, run.value)


def backends(runs: Sequence[Run]) -> list[str]:
    """Return the table of backends."""
    header = (
        "backend | instances | "
        + " | ".join(f"{level:.0e}" for level in LEVELS)
        + " | status confirmed | fastest alone | x fastest | mean gap"
    )
    rows = [
        (
            score.backend,
            score.taken,
            *(f"{rate:.0%}" for rate in score.certified),
            f"{score.status.confirmed} of {score.status.claimed}",
            score.alone,
            f"{score.ratio:.2g}",
            f"{score.gap:.0e}",
        )
        for score in scores(runs)
    ]
    return table(header, rows)


def instances(runs: Sequence[Run], known: Mapping[str, Reference]) -> Iterator[tuple[object, ...]]:
    """Yield one line for each instance."""
    proofs = agreement(runs)
    winners = fastest(runs)
    for name, own in grouped(trials(runs), lambda trial: trial.first.problem).items():
        proof = proofs[name]
        winner = winners.get(name)
        failed = [trial.first for trial in own if not trial.certified]
        said = ", ".join(f"{run.backend} ({run.says.words})" for run in failed)
        bounds = f"[{proof.lower:.9g}, {proof.upper:.9g}]" if proof.holds else "**disjoint**"
        if proof.holds and proof.lower == proof.upper and math.isinf(proof.lower):
            bounds = proof.below.verdict.name.lower()
        against = " **WRONG**" if any(wrong(trial.middle, known[name]) for trial in own) else ""
        first = ("nobody", "") if winner is None else (winner.backend, f"{winner.seconds:.3g}")
        yield (
            name,
            own[0].first.size,
            f"{len(own) - len(failed)} of {len(own)}{against}",
            bounds,
            *first,
            said,
        )


def page(
    comparison: Comparison, known: Mapping[str, Reference], refused: Sequence[str], seconds: float
) -> list[str]:
    """Return the lines of the summary."""
    runs = comparison.runs
    false = [run for run in runs if run.status_confirmed is False]
    broken = [str(found) for found in agreement(runs).values() if not found.holds]
    against = [run for run in runs if wrong(run, known[run.problem])]
    judged = sum(run.status_confirmed is not None for run in runs)
    env = comparison.environment
    return [
        "# Backends compared on public instances",
        "",
        f"Written by `{COMMAND}`, never by hand (klopt {env.klopt}, "
        + ", ".join(f"{name} {version}" for name, version in env.backends if version != env.klopt)
        + f"; {env.cpu}, one thread).",
        "",
        verdict_sentence(runs),
        "",
        f"Every capable backend, once, on the first formulation that it takes; {seconds:g} s for each run, tol 1e-06. "
        "The columns 1e-03, 1e-06 and 1e-09 say on what share of its instances klopt proved an optimum "
        "to that relative gap (or that there is no optimum), *status confirmed* how many claims of optimal, "
        "infeasible or unbounded agree with the verdict (where klopt asked again by a smaller tolerance, both count), "
        "*fastest alone* on how many instances it was the fastest certified backend and none tied with it. "
        "*x fastest* is the geometric mean of its time over that of the fastest certified backend, on instances that "
        "several took, failures charged the limit; *mean gap* that of the relative gaps proven. "
        "Other programs were running at the same time: read the times as indications.",
        "",
        *backends(runs),
        "",
        f"Proven intervals that do not overlap: {len(broken)}. Certified in contradiction to the published optimum: "
        f"{len(against)}.",
        *(f"- **ERROR** {text}" for text in broken),
        *(
            f"- **ERROR** {route(run)} on {run.problem}: {run.verdict.name}, {run.value:.10g}"
            for run in against
        ),
        "",
        f"## Runs whose status is not confirmed ({len(false)} of {judged})",
        "",
        *(f"- {text}" for text in map(claim, false)),
        "",
        "## Instances",
        "",
        "*optimum* is the intersection of all proven intervals.",
        "",
        *table(
            "instance | size | certified | optimum | fastest | seconds | not certified (it says)",
            instances(runs, known),
        ),
        "",
        *(f"Refused: {text}." for text in refused),
    ]


def claim(run: Run) -> str:
    """Return in one line what a backend said and what is proven."""
    ends = f"[{run.lower:.9g}, {run.upper:.9g}]"
    if run.only_first_false:
        first = "no finite interval"
        if math.isfinite(run.first_gap):
            first = f"a proven gap of {run.first_gap:.1e}"
        said = f"{route(run)} first reports optimal on {run.problem} with {first}"
        return f"{said}; asked for more digits, it proves {ends}"
    if math.isfinite(run.relative_gap):
        ends += f", gap {run.relative_gap:.1e}"
    native = f"{run.says.words} ({run.native})"
    return (
        f"{route(run)} reports {native} on {run.problem}; klopt proves {run.verdict.name}, {ends}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison, write the summary, return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = os.environ.get("KLOPT_DATA")
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=folder,
        help="holds optima.csv and the files it names",
    )
    parser.add_argument("--only", default="", help="only files whose name contains this text")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each run (default 20)")
    parser.add_argument(
        "--store", type=Path, help="keep the runs here and reuse those that it holds"
    )
    parser.add_argument("--page", type=Path, help="write a page of the comparison")
    options = parser.parse_args(arguments)
    if options.folder is None:
        parser.error("name the folder of the instances, or set KLOPT_DATA")
    known = {}
    problems = []
    refused = []
    for file, reference in references(options.folder):
        if options.only in file:
            try:
                problems.append((file, read(options.folder, file)))
                known[file] = reference
            except InvalidProblem as error:
                refused.append(f"{file}, {error}")
    comparison = compare(
        problems,
        tol=1e-6,
        time_limit=options.seconds,
        repeat=1,
        store=options.store,
        command=COMMAND,
    )
    if options.page is not None:
        comparison.report(options.page)
    lines = page(comparison, known, refused, options.seconds)
    print("\n".join(lines))
    bad = any(not found.holds for found in agreement(comparison.runs).values())
    return int(bad or any(wrong(run, known[run.problem]) for run in comparison.runs))


if __name__ == "__main__":
    sys.exit(main())
