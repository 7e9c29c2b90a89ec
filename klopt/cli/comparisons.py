"""The commands about many runs: compare, report, export, cite, doctor.

`compare` keeps every finished run in a store, `klopt-runs.db` by default, so Ctrl-C or a crash
costs the run in flight and nothing else; `--resume` makes the missing runs. The others read such a
store.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klopt.cli.common import (
    BadCall,
    as_json as _json,
    open_page,
    opened as _opened,
    stop_with_advice,
)

if TYPE_CHECKING:
    from klopt.bench.comparison import Comparison

__all__ = ["cite", "compare", "doctor", "export", "report"]

STORE = "klopt-runs.db"
RELOAD_S = 5
"""How often a page that is watched is written and loaded, in seconds."""


@click.command(short_help="Run many backends on the same problems.")
@click.argument("targets", nargs=-1, metavar="TARGET...")
@click.option(
    "--suite",
    metavar="NAME",
    help="A named test set besides the targets: netlib, maros-meszaros, sdplib or cvxpy.",
)
@click.option("--data", metavar="FOLDER", help="With --suite: the folder of its files.")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME|FILE.py,..",
    help="Use only these backends; may be repeated.",
)
@click.option(
    "--formulation",
    metavar="all|NAME",
    help="All formulations, or this one.  [default: the first that a backend takes]",
)
@click.option(
    "--tol",
    default="1e-6",
    show_default=True,
    metavar="T,..",
    help="Relative gap at which an answer counts as optimal.",
)
@click.option(
    "--time",
    "time_limit",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Time limit of a run, after which it is killed.",
)
@click.option(
    "--mem",
    "memory_limit",
    metavar="BYTES",
    help="Memory limit of a run: 500M, 2G.  [default: no limit]",
)
@click.option("--repeat", default=3, show_default=True, help="How often each route is run.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed of random instances, of backends and of the order of runs.",
)
@click.option("--threads", default=1, show_default=True, help="Threads of each run.")
@click.option(
    "--sizes", metavar="N,..", help="Sizes of random instances, such as 50,100,200.  [default: 20]"
)
@click.option(
    "--store",
    default=STORE,
    show_default=True,
    metavar="FILE",
    help="File in which finished runs are kept.",
)
@click.option("--resume", is_flag=True, help="Skip runs that the store already holds.")
@click.option(
    "--certificates/--no-certificates",
    default=True,
    show_default=True,
    help="Keep a certificate of each certified run, written after the run.",
)
@click.option("-j", "--jobs", default=1, show_default=True, help="Number of runs at a time.")
@click.option(
    "--cluster", metavar="ADDRESS", help="Run on the Dask cluster at this address: tcp://host:8786."
)
@click.option("-o", "--output", metavar="FILE.html", help="Write a report as an HTML page.")
@click.option("--watch", is_flag=True, help="With -o: rewrite the page as runs finish.")
@_opened
@click.option("-q", "--quiet", is_flag=True, help="Show neither progress nor table.")
@_json
def compare(
    targets: tuple[str, ...],
    suite: str | None,
    data: str | None,
    backends: tuple[str, ...],
    formulation: str | None,
    tol: str,
    time_limit: str,
    memory_limit: str | None,
    repeat: int,
    seed: int,
    threads: int,
    sizes: str | None,
    store: str,
    resume: bool,
    certificates: bool,
    jobs: int,
    cluster: str | None,
    output: str | None,
    watch: bool,
    show: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run all capable backends, or those named, on each TARGET and certify every answer.

    A TARGET is a file (.mps .lp .dat-s .cbf .npz), the name of a problem, or module:function. Every
    run is made in a child process that is killed at its limits. Exit code 0 if everything was run,
    whatever the verdicts; 1 if two proofs contradict each other.
    """
    from klopt.bench.comparison import compare as run
    from klopt.bench.store import StoreFailed, check_writable
    from klopt.cli.arguments import read_duration, read_memory, read_numbers

    chosen = _problems(targets, suite, data)
    if output is None and (watch or show):
        raise BadCall("--watch and --open need a page: add -o FILE.html")
    if output is not None:
        check_writable(Path(output))
    # One who watches wants to see the page from the first run on.
    page = _LivePage(output, show) if watch and output is not None else None
    command = f"klopt {shlex.join(sys.argv[1:])}"
    try:
        comparison = run(
            chosen,
            [name for text in backends for name in text.split(",")] or None,
            formulation=formulation,
            tol=read_numbers(tol, "tolerances"),
            time_limit=read_duration(time_limit),
            memory_limit=read_memory(memory_limit) if memory_limit else 0,
            repeat=repeat,
            seed=seed,
            threads=threads,
            sizes=_sizes(sizes),
            store=store,
            resume=resume,
            certificates=certificates,
            jobs=cluster or jobs,
            progress=not quiet,
            command=command,
            watch=page,
        )
    except (KeyboardInterrupt, StoreFailed) as error:
        stop_with_advice(error, "runs", resume)
    by_backend = Counter(each.backend for each in comparison.runs if each.key in comparison.reused)
    told = f", {len(comparison.reused)} of them reused"
    if by_backend:
        told += f" ({_counts(by_backend)})"
    _show(comparison, output, quiet, as_json, told, show=show and not watch)


def _problems(targets: tuple[str, ...], suite: str | None, data: str | None) -> list[Any]:
    """The targets, and what a test set adds to them."""
    if suite is None and data is not None:
        raise BadCall("--data is the folder of a test set; name the set with --suite")
    if suite is None and not targets:
        raise BadCall("nothing to compare on; name a TARGET, or a test set with --suite")
    if suite is None:
        return list(targets)
    from klopt.bench.test_sets import members

    return [*targets, *members(suite, data)]


class _LivePage:
    """The page of the runs so far, rewritten every few seconds; the browser loads it again."""

    def __init__(self, path: str, show: bool) -> None:
        self.path = path
        self.show = show
        self.next = 0.0
        """When it is written next, by `time.monotonic`."""

    def __call__(self, so_far: Callable[[], Comparison]) -> None:
        """Write the page where that is due: it must not take more than a tenth of the time."""
        began = time.monotonic()
        if began < self.next:
            return
        so_far().report(self.path, refresh=RELOAD_S)
        now = time.monotonic()
        self.next = now + max(RELOAD_S, 9 * (now - began))
        if self.show:
            self.show = False
            open_page(self.path)


def _counts(often: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(often.items()))


def _sizes(text: str | None) -> list[int]:
    from klopt.cli.arguments import read_numbers
    from klopt.errors import InvalidSettings

    sizes = [] if text is None else read_numbers(text, "sizes")
    if not all(size >= 1 and size == int(size) for size in sizes):
        raise InvalidSettings(
            f"{text!r} is no list of sizes; write whole numbers such as 50,100,200"
        )
    return [int(size) for size in sizes]


def _show(
    comparison: Comparison,
    output: str | None,
    quiet: bool,
    as_json: bool,
    told: str = "",
    *,
    show: bool = False,
) -> None:
    """Write the page and print the table; proofs that contradict each other are exit code 1."""
    from klopt.bench.scores import agreement

    if output is not None:
        comparison.report(output)
    if as_json:
        _print_json(comparison)
    elif not quiet:
        from klopt.bench.table import print_comparison
        from klopt.engine.format import console, lines

        print_comparison(comparison, console())
        places = [("runs", f"{len(comparison.runs)} in {comparison.store}{told}")]
        if output:
            kilobytes = Path(output).stat().st_size / 1000
            places.append(("page", f"{output} ({kilobytes:.0f} kB)"))
        click.echo(lines(places))
    if show and output is not None:
        open_page(output)
    agreed = all(found.holds for found in agreement(comparison.runs).values())
    sys.exit(0 if agreed else 1)


def _print_json(comparison: Comparison) -> None:
    from klopt.bench.export import rows
    from klopt.bench.scores import (
        LEVELS,
        agreement,
        gap_times,
        machine_sentence,
        scores,
        standings,
        verdict_sentence,
    )
    from klopt.engine.format import document

    runs = comparison.runs
    proofs = {
        problem: {"lower": found.lower, "upper": found.upper, "holds": found.holds}
        for problem, found in agreement(runs).items()
    }
    content: dict[str, Any] = {
        "verdict": verdict_sentence(runs),
        "reproduce": comparison.command,
        "store": str(comparison.store),
        "reused": sorted(comparison.reused),
        "limits": comparison.limits,
        "refusals": comparison.refusals,
        "best": {problem: run.key for problem, run in comparison.best.items()},
        "agreement": proofs,
        "scores": [asdict(score) for score in scores(runs)],
        "classes": {
            family: [asdict(row) for row in rows_of] for family, rows_of in standings(runs).items()
        },
        "gap_times": [asdict(found) for gap in LEVELS for found in gap_times(runs, gap)],
        "computer": machine_sentence(runs),
        "runs": rows(runs),
    }
    click.echo(document(click.get_current_context().info_name or "compare", content))


_store = click.argument("store", metavar="RUNS.db", default=STORE)


@click.command(short_help="Write the page of a store of runs.")
@_store
@click.option("-o", "--output", metavar="FILE.html", help="Write a report as an HTML page.")
@_opened
@_json
def report(store: str, output: str | None, show: bool, as_json: bool) -> None:
    """Show all runs of a store, klopt-runs.db by default: a table, and with -o an HTML page."""
    from klopt.bench.comparison import Comparison
    from klopt.bench.store import check_writable

    if output is None and show:
        raise BadCall("--open needs a page: add -o FILE.html")
    if output is not None:
        check_writable(Path(output))
    _show(Comparison.load(store), output, False, as_json, show=show)


@click.command(short_help="Write the runs of a store, or a chart of them, to a file.")
@_store
@click.option("--csv", "suffix", flag_value=".csv", help="CSV, one row for each run.")
@click.option("--json", "suffix", flag_value=".json", help="One JSON document.")
@click.option("--parquet", "suffix", flag_value=".parquet", help="A Parquet file; needs -o.")
@click.option("--latex", "suffix", flag_value=".tex", help="A LaTeX table: solvers by class.")
@click.option("--markdown", "suffix", flag_value=".md", help="The same table in Markdown.")
@click.option("--figure", metavar="NAME", help="A chart of the page, to -o FILE.svg, .png or .pdf.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to this file; without another option its suffix is the format.",
)
def export(store: str, suffix: str | None, figure: str | None, output: str | None) -> None:
    """Print the runs of a store as a table for other programs, or write them or a chart to a file.

    By default CSV is written to standard output.
    """
    from klopt.bench.comparison import Comparison
    from klopt.bench.export import FORMATS
    from klopt.bench.store import check_writable
    from klopt.errors import InvalidSettings

    if output is not None:
        check_writable(Path(output))
    # A chart is a picture: it cannot go to standard output.
    if figure is not None:
        if output is None:
            raise InvalidSettings("name the file of the figure with -o: .svg, .png or .pdf")
        Comparison.load(store).figure(figure, output)
        return
    suffix = suffix or (".csv" if output is None else Path(output).suffix)
    if suffix not in FORMATS:
        raise InvalidSettings(
            f"{output} has no suffix that klopt writes; use one of {', '.join(FORMATS)}"
        )
    if output is None and suffix == ".parquet":
        raise InvalidSettings("Parquet is a binary format; name a file with -o")
    content = FORMATS[suffix](Comparison.load(store).runs)
    if output is None:
        click.echo(content, nl=False)
    else:
        Path(output).write_bytes(content)


@click.command(short_help="Print the BibTeX of what a store of runs used.")
@_store
@_json
def cite(store: str, as_json: bool) -> None:
    """Print the BibTeX entries of klopt, the papers and the solvers behind the runs of a store."""
    from klopt.bench.citations import bibtex
    from klopt.bench.comparison import Comparison
    from klopt.engine.format import document

    entries = bibtex(Comparison.load(store).runs)
    click.echo(document("cite", {"bibtex": entries}) if as_json else entries.rstrip())


@click.command(short_help="List versions, BLAS, threads and what is missing.")
@_json
def doctor(as_json: bool) -> None:
    """List versions, linear algebra, threads, limits, what is missing and how to install it."""
    from klopt.bench.environment import doctor as examine
    from klopt.engine.format import document, lines

    found = examine()
    click.echo(document("doctor", {"findings": found}) if as_json else lines(found))
