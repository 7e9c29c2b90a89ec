"""The bundled suite by every backend: a page to look at, a table, and three lines of what was learned.

Real data, each run once in a child process under a short limit, each answer certified. Every route
first solves a small instance, untimed, so that loading a library is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klopt.bench.comparison import Comparison, compare
from klopt.bench.export import rows
from klopt.bench.scores import agreement, fastest, lessons, trials, verdict_sentence
from klopt.bench.store import check_writable
from klopt.bench.suite import suite
from klopt.bench.table import summary
from klopt.bench.trials import grouped
from klopt.engine.format import console, lines, table

if TYPE_CHECKING:
    from rich.table import Table

    from klopt.bench.record import Run

__all__ = ["PAGE", "demo_data", "print_demo", "run_demo"]

PAGE = "klopt-report.html"
TOL = 1e-6
SECONDS_EACH = 3.0


def run_demo(
    output: str | Path = PAGE,
    backends: Sequence[str] | None = None,
    *,
    size: str = "demo",
    progress: bool = True,
) -> Comparison:
    """Compare all backends, or those named, on the bundled suite, write the page and return the comparison.

    `size` is that of the suite: quick, demo or full. Progress goes to standard error, where
    somebody watches it.
    """
    check_writable(Path(output))
    command = "klopt demo" if size == "demo" else f"klopt demo --size {size}"
    comparison = compare(
        suite(size),
        backends,
        tol=TOL,
        time_limit=SECONDS_EACH,
        repeat=1,
        progress=progress,
        command=command,
    )
    comparison.report(output)
    return comparison


def print_demo(comparison: Comparison, output: str | Path = PAGE) -> None:
    """Print what is proven of each problem, how each backend did, three lessons and where the page is."""
    out = console()
    out.print(_problems(comparison.runs))
    out.print()
    out.print(summary(comparison.runs))
    out.print()
    out.print(lines(zip(("proven", "fast", "honest"), lessons(comparison.runs), strict=True)))
    kilobytes = Path(output).stat().st_size / 1000
    out.print(lines([("limits", comparison.limits), ("page", f"{output} ({kilobytes:.0f} kB)")]))


def demo_data(comparison: Comparison, output: str | Path = PAGE) -> Mapping[str, Any]:
    """Return the same for a JSON document."""
    runs = comparison.runs
    said = {"verdict": verdict_sentence(runs), "lessons": lessons(runs), "page": str(output)}
    return {**said, "limits": comparison.limits, "runs": rows(runs)}


def _problems(runs: tuple[Run, ...]) -> Table:
    """One row a problem: who proved it, where the optimum lies by all proofs together, who was first."""
    proofs, winners = agreement(runs), fastest(runs)
    heads = ["problem", "proven", "optimum", "width", "fastest", "seconds"]
    made = table(heads, right=("proven", "optimum", "width", "seconds"))
    for problem, own in grouped(trials(runs), lambda trial: trial.first.problem).items():
        proof, winner = proofs[problem], winners.get(problem)
        count = f"{sum(trial.certified for trial in own)} of {len(own)}"
        known = proof.holds and math.isfinite(proof.lower) and math.isfinite(proof.upper)
        width = f"{(proof.upper - proof.lower) / (1 + abs(proof.upper)):.0e}" if known else "-"
        optimum = f"{proof.upper:.4g}" if known else "?" if proof.holds else "ERROR"
        first = ("nobody", "-") if winner is None else (winner.backend, f"{winner.seconds:.2g}")
        made.add_row(problem, count, optimum, width, *first)
    return made
