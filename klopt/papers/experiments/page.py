"""The page of an experiment, in Markdown: our table with the paper's figures, tests, and what differs and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan

from klopt.papers.experiments.runner import Experiment
from klopt.papers.experiments.summary import Summary, TableCell, conclusions, summarise

__all__ = ["compact", "markdown"]


def markdown(experiment: Experiment, best: Experiment | None = None) -> str:
    """Return the page; every figure in it is from the experiment or, in brackets, from the paper.

    `best` is the same experiment at the choices that are best on the test points, to tell why
    figures differ.
    """
    return (
        "\n".join(
            _lines(experiment, summarise(experiment), None if best is None else summarise(best))
        )
        + "\n"
    )


def _lines(experiment: Experiment, summary: Summary, best: Summary | None) -> Iterator[str]:
    protocol = experiment.protocol
    names = [method.name for method in protocol.methods]
    yield f"## {protocol.title}\n"
    yield f"{experiment.splits} splits, seed {experiment.seed}. In brackets: the paper. Bold: the best of ours.\n"
    yield from _table(
        ["set", *names],
        ((row.name, map(_accuracy, _of(summary, row.name))) for row in protocol.rows),
    )
    yield f"\nDifference from {protocol.reference}; p of the t-test, corrected for overlapping splits / Wilcoxon's:\n"
    yield from _table(
        ["set", *names], ((row.name, map(_tests, _of(summary, row.name))) for row in protocol.rows)
    )
    yield ""
    yield from (f"- {said}" for said in conclusions(experiment, summary, best))
    yield "\nThe protocol:\n"
    yield f"- {protocol.folds}-fold cross-validation on the labelled points chooses parameters{_fold(experiment)}."
    yield from (f"- {note}" for note in protocol.notes)
    yield from (f"- Data: {source}." for source in experiment.sources)
    yield from (f"- Not run: {missing}." for missing in experiment.missing)


def compact(experiment: Experiment) -> str:
    """Return the table of accuracies alone, with the mean ranks in the last line."""
    summary = summarise(experiment)
    names, ranks = zip(*summary.mean_ranks, strict=True)
    rows = [(row.name, map(_accuracy, _of(summary, row.name))) for row in experiment.protocol.rows]
    lines = _table(["set", *names], iter([*rows, ("mean rank", (f"{rank:.2f}" for rank in ranks))]))
    return "\n".join(
        (
            f"### {experiment.protocol.title}\n",
            *lines,
            *(f"\n{x}" for x in experiment.protocol.notes),
            "",
        )
    )


def _fold(experiment: Experiment) -> str:
    return (
        ", fitting on one fold and validating on the others"
        if experiment.protocol.fit_on == "fold"
        else ""
    )


def _of(summary: Summary, row: str) -> list[TableCell]:
    return [cell for cell in summary.cells if cell.row == row]


def _table(head: list[str], rows: Iterator[tuple[str, Iterable[str]]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for name, cells in rows:
        yield f"| {name} | {' | '.join(cells)} |"


def _accuracy(cell: TableCell) -> str:
    ours = f"**{cell.ours}**" if cell.rank < 2 else cell.ours
    return ours if cell.paper is None else f"{ours}<br>({cell.papers})"


def _tests(cell: TableCell) -> str:
    if cell.against is None or isnan(cell.against.t):
        return ""
    return f"{cell.against.difference:+.1%}<br>{cell.against.corrected:.2g} / {cell.against.wilcoxon:.2g}"
