"""`klopt demo`: the bundled suite by every backend, as a page, a table and a short summary.

Real data, each run once in a child process under a short limit, each answer certified. Every route
first solves a small instance, untimed, so that loading a library is not counted. The page also shows
solvers that report success far from the optimum (`klopt.bench.caught`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klopt.bench.caught import caught
from klopt.bench.comparison import Comparison, compare
from klopt.bench.export import rows
from klopt.bench.report.convergence_chart import rate_bounds
from klopt.bench.report.page import write_page
from klopt.bench.store import check_writable
from klopt.bench.suite import suite
from klopt.bench.summary import summary_lines, verdict_sentence
from klopt.bench.table import score_table
from klopt.bench.trials import Agreement, agreement, fastest, grouped, trials
from klopt.engine.format import console, lines, table

if TYPE_CHECKING:
    from rich.table import Table

    from klopt.bench.record import Run

__all__ = ["PAGE", "demo_data", "print_demo", "run_demo"]

PAGE = "klopt-report.html"
TOL = 1e-6
TIME_LIMIT_S = 3.0
"""That of each run."""
CERTIFICATE_S = 0.1
"""For the certificate of one run: the demo is over in a minute."""


def run_demo(
    output: str | Path = PAGE,
    backends: Sequence[str] | None = None,
    *,
    size: str = "demo",
    progress: bool = True,
    store: str | Path | None = None,
) -> Comparison:
    """Compare backends on the bundled suite, write the page and return the comparison.

    Parameters
    ----------
    output
        The file of the page.
    backends
        Names; None for all.
    size
        That of the suite: quick, demo or full.
    progress
        Whether a bar is shown on a terminal.
    store
        A file that keeps the runs and their certificates; None for none.
    """
    check_writable(Path(output))
    command = "klopt demo" if size == "demo" else f"klopt demo --size {size}"
    comparison = compare(
        suite(size),
        backends,
        tol=TOL,
        time_limit=TIME_LIMIT_S,
        repeat=1,
        progress=progress,
        store=store,
        command=command,
        certificates=CERTIFICATE_S,
    )
    write_page(comparison, output, rate_bounds(comparison.runs), caught())
    return comparison


def print_demo(comparison: Comparison, output: str | Path = PAGE) -> None:
    """Print what is proven of each problem, how each backend did, and a summary."""
    out = console()
    out.print(_problems(comparison.runs))
    out.print()
    out.print(score_table(comparison.runs))
    out.print()
    labels = ("proven", "fast", "claims")
    out.print(lines(zip(labels, summary_lines(comparison.runs), strict=True)))
    kilobytes = Path(output).stat().st_size / 1000
    out.print(lines([("limits", comparison.limits), ("page", f"{output} ({kilobytes:.0f} kB)")]))


def demo_data(comparison: Comparison, output: str | Path = PAGE) -> Mapping[str, Any]:
    """Return the same for a JSON document."""
    runs = comparison.runs
    return {
        "verdict": verdict_sentence(runs),
        "lessons": summary_lines(runs),
        "page": str(output),
        "limits": comparison.limits,
        "runs": rows(runs),
    }


def _problems(runs: tuple[Run, ...]) -> Table:
    """One row for each problem: how many routes prove it, its optimum, the fastest route."""
    proofs = agreement(runs)
    winners = fastest(runs)
    heads = ["problem", "proven", "optimum", "width", "fastest", "seconds"]
    made = table(heads, right=("proven", "optimum", "width", "seconds"))
    for problem, own in grouped(trials(runs), lambda trial: trial.first.problem).items():
        count = f"{sum(trial.certified for trial in own)} of {len(own)}"
        winner = winners.get(problem)
        first = ("nobody", "-") if winner is None else (winner.backend, f"{winner.seconds:.2g}")
        made.add_row(problem, count, *_optimum(proofs[problem]), *first)
    return made


def _optimum(proof: Agreement) -> tuple[str, str]:
    """The optimum and the relative width of its interval."""
    if not proof.holds:
        return "ERROR", "-"
    if not (math.isfinite(proof.lower) and math.isfinite(proof.upper)):
        return "?", "-"
    width = (proof.upper - proof.lower) / (1 + abs(proof.upper))
    return f"{proof.upper:.4g}", f"{width:.0e}"
