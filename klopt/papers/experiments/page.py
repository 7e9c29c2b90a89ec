"""The Markdown page of an experiment: our table beside the paper's, tests and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan

from klopt.papers.experiments.comparisons import compare_over_sets
from klopt.papers.experiments.runner import Experiment
from klopt.papers.experiments.summary import Summary, TableCell, conclusions, summarise

__all__ = ["compact", "markdown"]


def markdown(experiment: Experiment, best: Experiment | None = None) -> str:
    """Return the page; every figure in it is from the experiment or, in brackets, from the paper.

    `best` is the same experiment at the choices that are best on the test points, to tell why
    figures differ.
    """
    bound = None if best is None else summarise(best)
    lines = _lines(experiment, summarise(experiment), bound)
    return "\n".join(lines) + "\n"


def _lines(experiment: Experiment, summary: Summary, best: Summary | None) -> Iterator[str]:
    protocol = experiment.protocol
    names = [method.name for method in protocol.methods]
    yield f"## {protocol.title}\n"
    yield (
        f"{experiment.splits} splits, seed {experiment.seed}. "
        "In brackets: the paper. Bold: the best of ours.\n"
    )
    accuracies = ((row.name, map(_accuracy, _of(summary, row.name))) for row in protocol.rows)
    yield from _table(["set", *names], accuracies)

    if protocol.comparisons:
        yield from _over_sets(experiment)
    else:
        yield (
            f"\nDifference from {protocol.reference}; p of the t-test corrected for overlapping "
            "splits, where most points are labelled, and then Wilcoxon's over the splits:\n"
        )
        tests = ((row.name, map(_tests, _of(summary, row.name))) for row in protocol.rows)
        yield from _table(["set", *names], tests)

    yield ""
    said = conclusions(experiment, summary, best, over_sets=not protocol.comparisons)
    yield from (f"- {line}" for line in said)
    yield "\nThe protocol:\n"
    yield (
        f"- {protocol.folds}-fold cross-validation on the labelled points "
        f"chooses parameters{_fold(experiment)}."
    )
    yield from (f"- {note}" for note in protocol.notes)
    yield from (f"- Data: {source}." for source in experiment.sources)
    yield from (f"- Not run: {missing}." for missing in experiment.missing)


def _over_sets(experiment: Experiment) -> Iterator[str]:
    """The table of comparisons over the sets of each kind."""
    yield "\nOver the sets, each counted once (the mean over its numbers of labels):\n"
    head = ["", "sets", "points in the mean", "better / equal / worse", "Wilcoxon's p", "by Holm"]
    rows = []
    for found in compare_over_sets(experiment):
        test = found.test
        name = f"{found.own} against {found.other}, {found.group or 'all sets'}"
        counts = f"{test.wins} / {test.ties} / {test.losses}"
        cells = [str(len(found.sets)), f"{100 * test.difference:+.1f}", counts]
        rows.append((name, [*cells, f"{test.p:.2g}", f"{found.corrected:.2g}"]))
    yield from _table(head, iter(rows))


def compact(experiment: Experiment) -> str:
    """Return the table of accuracies alone, with the mean ranks in the last line."""
    summary = summarise(experiment)
    names, ranks = zip(*summary.mean_ranks, strict=True)
    protocol = experiment.protocol
    rows: list[tuple[str, Iterable[str]]] = [
        (row.name, map(_accuracy, _of(summary, row.name))) for row in protocol.rows
    ]
    rows.append(("mean rank", (f"{rank:.2f}" for rank in ranks)))

    lines = _table(["set", *names], iter(rows))
    notes = (f"\n{note}" for note in protocol.notes)
    head = (f"### {protocol.title}\n", f"{experiment.splits} splits.\n")
    return "\n".join((*head, *lines, *notes, ""))


def _fold(experiment: Experiment) -> str:
    if experiment.protocol.fit_on == "fold":
        return ", fitting on one fold and validating on the others"
    return ""


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
    tests = cell.against
    if tests is None or isnan(tests.t):
        return ""
    corrected = "" if isnan(tests.corrected) else f"{tests.corrected:.2g} / "
    return f"{tests.difference:+.1%}<br>{corrected}{tests.wilcoxon:.2g}"
