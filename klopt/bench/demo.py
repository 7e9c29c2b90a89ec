"""`klopt demo`: the bundled suite by every backend, as a page, a table and a short summary.

Real data, each run once in a child process under a short limit, each answer certified. Every route
first solves a small instance, untimed, so that loading a library is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from klopt.bench.comparison import Comparison, compare
from klopt.bench.export import rows
from klopt.bench.store import check_writable
from klopt.bench.suite import suite
from klopt.bench.summary import machine_sentence, summary_lines, verdict_sentence
from klopt.bench.table import class_table
from klopt.engine.format import console, lines
from klopt.engine.progress import waiting

__all__ = ["PAGE", "demo_data", "print_demo", "run_demo"]

PAGE = "klopt-report.html"
TOL = 1e-6
TIME_LIMIT_S = 3.0
"""That of each run."""
STORY = ("certified", "fastest", "statuses")
"""What the lines of the summary are about."""
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
    with waiting("loading the data", wanted=progress):
        problems = suite(size)
    comparison = compare(
        problems,
        backends,
        tol=TOL,
        time_limit=TIME_LIMIT_S,
        repeat=1,
        progress=progress,
        store=store,
        command=command,
        certificates=CERTIFICATE_S,
    )
    comparison.report(output)
    return comparison


def print_demo(comparison: Comparison, output: str | Path = PAGE) -> None:
    """Print what the comparison shows, then who is fastest in each class of problems."""
    out = console()
    runs = comparison.runs
    out.print(lines(zip(STORY, summary_lines(runs), strict=True)))
    out.print()
    out.print(class_table(runs))
    out.print()
    kilobytes = Path(output).stat().st_size / 1000
    closing = [("limits", comparison.limits), ("computer", machine_sentence(runs))]
    page = f"{output} ({kilobytes:.0f} kB): every run, chart and proof; klopt demo --open shows it"
    out.print(lines([pair for pair in (*closing, ("page", page)) if pair[1]]))


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
