"""The commands about many runs: compare, report, export, cite, doctor.

`compare` keeps every finished run in a store, `klopt-runs.db` unless told otherwise, so Ctrl-C or a
crash costs the run in flight and nothing else; `--resume` does what is missing. The others read
such a store.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klopt.cli.common import as_json as _json

if TYPE_CHECKING:
    from klopt.bench.comparison import Comparison

__all__ = ["cite", "compare", "doctor", "export", "report"]

STORE = "klopt-runs.db"


@click.command(short_help="Run many backends on the same problems.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME|FILE.py",
    help="Only this one; may be repeated.",
)
@click.option(
    "--formulation", metavar="all|NAME", help="All, or this one.  [default: each backend's first]"
)
@click.option(
    "--tol",
    default="1e-6",
    show_default=True,
    metavar="T,..",
    help="Relative width that counts as optimal.",
)
@click.option(
    "--time",
    "time_limit",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Kill a run after it.",
)
@click.option(
    "--mem",
    "memory_limit",
    metavar="BYTES",
    help="Memory a run may use: 500M, 2G.  [default: no limit]",
)
@click.option("--repeat", default=3, show_default=True, help="Runs of each route.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed of random instances, of backends and of the order.",
)
@click.option("--threads", default=1, show_default=True, help="Threads a run may use.")
@click.option(
    "--sizes", metavar="N,..", help="Sizes of random instances, such as 50,100,200.  [default: 20]"
)
@click.option(
    "--store",
    default=STORE,
    show_default=True,
    metavar="FILE",
    help="Where finished runs are kept.",
)
@click.option("--resume", is_flag=True, help="Do not repeat runs that the store holds.")
@click.option("-j", "--jobs", default=1, show_default=True, help="Runs to make at once.")
@click.option(
    "--cluster", metavar="ADDRESS", help="Make the runs on this Dask cluster: tcp://host:8786."
)
@click.option("-o", "--output", metavar="FILE.html", help="Write a page about it.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no table.")
@_json
def compare(
    targets: tuple[str, ...], backends: tuple[str, ...], formulation: str | None, tol: str, time_limit: str,
    memory_limit: str | None, repeat: int, seed: int, threads: int, sizes: str | None, store: str, resume: bool,
    jobs: int, cluster: str | None, output: str | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run all capable backends, or those named, on each TARGET and certify every answer.

    A TARGET is a file (.mps .lp .dat-s .cbf .npz), the name of a problem, or module:function. Every
    run is made in a child process that is killed at its limits. Exit code 0 if all was run,
    whatever came of it; 1 if two proofs contradict each other.
    """
    from klopt.bench.comparison import compare as run
    from klopt.bench.store import StoreFailed, check_writable
    from klopt.cli.arguments import read_duration, read_memory, read_numbers

    if output is not None:
        check_writable(Path(output))
    command = f"klopt {shlex.join(sys.argv[1:])}"
    try:
        comparison = run(
            targets, backends or None, formulation=formulation, tol=read_numbers(tol, "tolerances"),
            time_limit=read_duration(time_limit), memory_limit=read_memory(memory_limit) if memory_limit else 0,
            repeat=repeat, seed=seed, threads=threads, sizes=_sizes(sizes), store=store, resume=resume,
            jobs=cluster or jobs, progress=not quiet, command=command,
        )  # fmt: skip
    except (KeyboardInterrupt, StoreFailed) as error:
        again = command if resume else f"{command} --resume"
        said = (
            "interrupted; the finished runs are kept."
            if isinstance(error, KeyboardInterrupt)
            else str(error)
        )
        click.echo(f"klopt: {said}\nresume with: {again}", err=True)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    by = Counter(run.backend for run in comparison.runs if run.key in comparison.reused)
    told = f", {len(comparison.reused)} of them reused" + (f" ({_counts(by)})" if by else "")
    _show(comparison, output, quiet, as_json, told)


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
    comparison: Comparison, output: str | None, quiet: bool, as_json: bool, told: str = ""
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
        places += (
            [("page", f"{output} ({Path(output).stat().st_size / 1000:.0f} kB)")] if output else []
        )
        click.echo(lines(places))
    sys.exit(0 if all(found.holds for found in agreement(comparison.runs).values()) else 1)


def _print_json(comparison: Comparison) -> None:
    from klopt.bench.export import rows
    from klopt.bench.scores import agreement, scores, verdict_sentence
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
        "scores": [vars(score) for score in scores(runs)],
        "runs": rows(runs),
    }
    click.echo(document(click.get_current_context().info_name or "compare", content))


_store = click.argument("store", metavar="RUNS.db", default=STORE)


@click.command(short_help="Write the page of a store of runs.")
@_store
@click.option("-o", "--output", metavar="FILE.html", help="Write a page about them.")
@_json
def report(store: str, output: str | None, as_json: bool) -> None:
    """Show all runs of a store, klopt-runs.db if none is named: the table, and with -o a page."""
    from klopt.bench.comparison import Comparison
    from klopt.bench.store import check_writable

    if output is not None:
        check_writable(Path(output))
    _show(Comparison.load(store), output, False, as_json)


@click.command(short_help="Write the runs of a store, or a chart of them, to a file.")
@_store
@click.option("--csv", "suffix", flag_value=".csv", help="One row a run, as CSV.")
@click.option("--json", "suffix", flag_value=".json", help="One JSON document.")
@click.option("--parquet", "suffix", flag_value=".parquet", help="A Parquet file; needs -o.")
@click.option("--figure", metavar="NAME", help="A chart of the page, to -o FILE.svg, .png or .pdf.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to a file, whose suffix says the format if nothing else.",
)
def export(store: str, suffix: str | None, figure: str | None, output: str | None) -> None:
    """Print the runs of a store as a table for other programs, or write them or a chart to a file.

    Without an option it is CSV on standard output.
    """
    from klopt.bench.comparison import Comparison
    from klopt.bench.export import FORMATS
    from klopt.bench.store import check_writable
    from klopt.errors import InvalidSettings

    if output is not None:
        check_writable(Path(output))
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
        raise InvalidSettings("Parquet is no text; name a file with -o")
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
    """List what klopt runs on: versions, linear algebra, threads, limits, what is missing and how to get it."""
    from klopt.bench.environment import doctor as examine
    from klopt.engine.format import document, lines

    found = examine()
    click.echo(document("doctor", {"findings": found}) if as_json else lines(found))
