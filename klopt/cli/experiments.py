"""The command about the papers' experiments.

Exit codes: 0 if every trial was run, 1 if one failed or the store could not take one, 2 for a bad
call, 130 after Ctrl-C. Finished trials are kept in a store, `klopt-experiments.db` by default;
`--resume` makes the missing ones.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klopt.cli.common import as_json as _json, stop_with_advice

if TYPE_CHECKING:
    from klopt.engine.progress import Counter
    from klopt.papers.experiments.runner import Experiment
    from klopt.papers.experiments.summary import TableCell
    from klopt.papers.experiments.trial import SplitTrial

__all__ = ["experiments"]

STORE = "klopt-experiments.db"


@click.command(short_help="Re-run the papers' experiments.")
@click.argument("paper", metavar="PAPER")
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    metavar="N",
    help="Random splits.  [default: the paper's]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the splits."
)
@click.option(
    "-j",
    "--jobs",
    type=int,
    default=1,
    show_default=True,
    help="Processes; -1 for as many as there are processors.",
)
@click.option(
    "--store",
    default=STORE,
    show_default=True,
    metavar="FILE",
    help="File in which finished trials are kept.",
)
@click.option("--resume", is_flag=True, help="Skip trials that the store already holds.")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder of your own data sets: NAME.csv (class last), NAME.npz (X or S, and y) or LIBSVM's text format.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="Use only this data set; may be repeated."
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Use only this method and the reference; may be repeated.",
)
@click.option("--csv", "csv_file", metavar="FILE", help="Write the table as CSV.")
@click.option("-o", "--output", metavar="FILE.md", help="Write a report in Markdown.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@_json
def experiments(
    paper: str,
    splits: int | None,
    seed: int,
    jobs: int,
    store: str,
    resume: bool,
    data: str | None,
    sets: tuple[str, ...],
    methods: tuple[str, ...],
    csv_file: str | None,
    output: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Re-run the table of a PAPER: pan2016, kundu2010, xie2017, liu2020 or mao2010.

    Other tables of a paper are named behind a dash: pan2016-unseen, pan2016-adult, xie2017-sigma,
    liu2020-regression, liu2020-training, liu2020-tau, mao2010-cv, mao2010-ridge; a wrong name lists all.

    The data sets that are installed take part. Parameters are chosen by cross-validation on the
    labelled points alone. The paper's figures stand beside those found here, with ranks and tests
    of significance.
    """
    from klopt.bench.store import StoreFailed, check_writable
    from klopt.engine.format import console
    from klopt.engine.progress import counting
    from klopt.papers.experiments.page import markdown
    from klopt.papers.experiments.runner import run_experiment
    from klopt.papers.experiments.summary import print_experiment, write_csv

    for path in filter(None, (csv_file, output)):
        check_writable(Path(path))
    try:
        with counting(0, wanted=not quiet) as count:
            found = run_experiment(
                paper,
                splits=splits,
                seed=seed,
                jobs=jobs,
                store=store,
                resume=resume,
                data=data,
                sets=sets,
                methods=methods,
                told=partial(_tell, count),
            )
    except (KeyboardInterrupt, StoreFailed) as error:
        stop_with_advice(error, "trials", resume)
    if csv_file is not None:
        write_csv(found, Path(csv_file))
    if output is not None:
        Path(output).write_text(markdown(found), encoding="utf-8")
    if as_json:
        from klopt.engine.format import document

        click.echo(document("experiments", _data(found)))
    else:
        print_experiment(found, console())
    sys.exit(1 if any(trial.trouble for trial in found.trials) else 0)


def _tell(count: Counter, trial: SplitTrial, number: int, total: int) -> None:
    said = trial.trouble or f"{trial.accuracy:.1%}"
    count.total = total
    count.advance(f"{trial.row}, split {trial.split}, {trial.method}: {said}")


def _data(found: Experiment) -> dict[str, Any]:
    from klopt.papers.experiments.summary import summarise

    summary = summarise(found)
    return {
        "protocol": found.protocol.name,
        "splits": found.splits,
        "seed": found.seed,
        "cells": [_cell_data(cell) for cell in summary.cells],
        "mean_ranks": dict(summary.mean_ranks),
        "missing": list(found.missing),
        "notes": list(found.protocol.notes),
    }


def _cell_data(cell: TableCell) -> dict[str, Any]:
    paper = None if cell.paper is None else [cell.paper.mean, cell.paper.deviation]
    return {
        "set": cell.row,
        "method": cell.method,
        "mean": cell.mean,
        "deviation": cell.deviation,
        "rank": cell.rank,
        "paper": paper,
        "gap": cell.gap,
        "against": None if cell.against is None else vars(cell.against),
        "seconds": cell.seconds,
        "failed": cell.failed,
        "uncertified": cell.uncertified,
    }
