"""The results of an experiment beside the paper's, with ranks and tests, as text and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.export import cell_text
from klopt.papers.experiments.comparisons import compare_over_sets
from klopt.papers.experiments.protocol import Method, PaperFigure, Protocol, TableRow
from klopt.papers.experiments.runner import Experiment
from klopt.papers.experiments.statistics import FriedmanTest, PairedTests, friedman, paired, ranks

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Summary",
    "TableCell",
    "cell_texts",
    "conclusions",
    "print_experiment",
    "summarise",
    "write_csv",
]

MAX_DEVIATIONS = 2.0
"""Number of the paper's deviations above which a difference is reported."""
COLUMNS = ("method", "ours", "paper", "gap", "rank", "t", "t corr.", "Wilc.", "time")


@dataclass(frozen=True)
class TableCell:
    """A method on a data set; accuracies in percent."""

    row: str
    method: str
    mean: float
    deviation: float
    rank: float
    paper: PaperFigure | None
    against: PairedTests | None
    """The tests against the reference; None for itself."""
    seconds: float
    failed: int
    uncertified: int

    @property
    def gap(self) -> float:
        """Our mean minus the paper's, in units of the paper's deviation; NaN without a figure.

        Where the paper has no deviation, ours is the unit.
        """
        if self.paper is None:
            return nan
        # A printed deviation of 0.0 is one of a test part that is always the same.
        deviation = self.paper.deviation if self.paper.deviation > 0 else self.deviation
        return (self.mean - self.paper.mean) / deviation if deviation > 0 else nan

    @property
    def ours(self) -> str:
        """Our accuracy and deviation in words."""
        return _spread(self.mean, self.deviation)

    @property
    def papers(self) -> str:
        """The paper's accuracy and deviation in words."""
        return "" if self.paper is None else _spread(self.paper.mean, self.paper.deviation)

    @property
    def far(self) -> bool:
        """Whether ours differs from the paper's by more than two deviations."""
        return abs(self.gap) > MAX_DEVIATIONS


@dataclass(frozen=True)
class Summary:
    """All cells, and the test over all sets."""

    cells: tuple[TableCell, ...]
    test: FriedmanTest | None
    mean_ranks: tuple[tuple[str, float], ...]


def summarise(experiment: Experiment) -> Summary:
    """Return means, deviations, ranks and tests.

    A method that failed on a split of a data set ranks last there.
    """
    protocol = experiment.protocol
    names = [method.name for method in protocol.methods]
    scores = np.array(
        [
            [experiment.accuracies(row, method) for method in protocol.methods]
            for row in protocol.rows
        ]
    )

    # Equal means of different accuracies differ by rounding; they are to share their rank.
    failed = np.isnan(scores).any(axis=2)
    means = np.where(failed, -1.0, scores.mean(axis=2).round(12))
    order = ranks(means)

    at = names.index(protocol.reference)
    cells = []
    for i, row in enumerate(protocol.rows):
        for j, method in enumerate(protocol.methods):
            tests = None if j == at else _against(experiment, row, scores[i, j], scores[i, at])
            rank = float(order[i, j])
            cells.append(_cell(experiment, row, method, scores[i, j], rank, tests))
    mean_ranks = tuple(zip(names, map(float, order.mean(axis=0)), strict=True))
    return Summary(tuple(cells), friedman(means, protocol.level), mean_ranks)


def _against(
    experiment: Experiment, row: TableRow, own: FloatArray, other: FloatArray
) -> PairedTests | None:
    if np.isnan(own).any() or np.isnan(other).any():
        return None
    some = next(trial for trial in experiment.trials if trial.row == row.name)
    return paired(own, other, some.labelled, some.asked)


def _cell(
    experiment: Experiment,
    row: TableRow,
    method: Method,
    scores: FloatArray,
    rank: float,
    against: PairedTests | None,
) -> TableCell:
    own = (row.name, method.name)
    mine = [trial for trial in experiment.trials if (trial.row, trial.method) == own]
    good = 100 * scores[~np.isnan(scores)]
    mean = float(good.mean()) if good.size else nan
    deviation = float(good.std(ddof=1)) if good.size > 1 else nan
    seconds = float(np.mean([trial.seconds for trial in mine]))
    failed = sum(bool(trial.trouble) for trial in mine)
    uncertified = sum(trial.uncertified > 0 for trial in mine)
    return TableCell(
        row=row.name,
        method=method.name,
        mean=mean,
        deviation=deviation,
        rank=rank,
        paper=row.figure(method.name),
        against=against,
        seconds=seconds,
        failed=failed,
        uncertified=uncertified,
    )


def cell_texts(cell: TableCell) -> tuple[str, ...]:
    """Return the entries of a cell as text, in the order of COLUMNS."""
    mark = "!" if cell.far else ""
    gap = "" if isnan(cell.gap) else f"{cell.gap:+.1f}{mark}"
    tests = cell.against
    p: tuple[str, ...] = ("", "", "")
    if tests is not None:
        p = (_p(tests.t), _p(tests.corrected), _p(tests.wilcoxon))
    return (
        cell.method,
        cell.ours,
        cell.papers,
        gap,
        f"{cell.rank:g}",
        *p,
        f"{cell.seconds:.2g}",
    )


def _spread(mean: float, deviation: float) -> str:
    return f"{mean:.1f}" + ("" if isnan(deviation) else f" ± {deviation:.1f}")


def _p(value: float) -> str:
    """A p-value in few letters, none where there is no test."""
    if isnan(value):
        return ""
    if value < 0.001:
        return "<.001"
    if value < 1:
        return f"{value:.3f}".lstrip("0")
    return "1"


def conclusions(
    experiment: Experiment,
    summary: Summary,
    best: Summary | None = None,
    over_sets: bool = True,
) -> Iterator[str]:
    """Yield the conclusions over all data sets: ranks, tests, the paper's figures, failures.

    `best` has the figures at the choice that is best on the test points, which bound those of any
    choice. Comparisons over the sets are left out where they have a table of their own.
    """
    protocol = experiment.protocol
    test = summary.test
    order = sorted(summary.mean_ranks, key=lambda pair: pair[1])
    yield "Mean ranks: " + ", ".join(f"{name} {rank:.2f}" for name, rank in order) + "."
    yield from _learned(protocol, dict(order))
    if test is None:
        yield "Friedman's test needs two sets and three methods at least."
    elif test.statistic <= test.critical:
        yield (
            f"Friedman: F = {test.statistic:.2f}, critical {test.critical:.2f} (p = "
            f"{test.p:.3f}): no difference of methods over {len(protocol.rows)} sets is "
            f"significant at {protocol.level:g}."
        )
    else:
        own = dict(order)[protocol.reference]
        apart = [
            f"{name} ({rank - own:+.2f})"
            for name, rank in order
            if abs(rank - own) > test.difference
        ]
        yield (
            f"Friedman: F = {test.statistic:.2f}, critical {test.critical:.2f} (p = "
            f"{test.p:.2g}): the methods differ. Nemenyi's difference is {test.difference:.2f}; "
            f"from {protocol.reference} differ: {', '.join(apart) or 'none'}."
        )
    for comparison in compare_over_sets(experiment):
        # One set, however often it was split, is no sample of sets.
        if over_sets and len(comparison.sets) > 1:
            yield f"{comparison.said(protocol.level)}."
    compared = [cell for cell in summary.cells if cell.paper is not None]
    far = [cell for cell in compared if cell.far]
    near = len(compared) - len(far)
    if compared:
        yield (
            f"{near} of {len(compared)} figures are within {MAX_DEVIATIONS:g} deviations of the "
            "paper's."
        )
    for cell in far:
        said = (protocol.why(cell.row, cell.method), _bound(cell, best))
        known = "; ".join(filter(None, said)) or "not known"
        yield f"{cell.method} on {cell.row} is {cell.gap:+.1f} deviations off: {known}."
    if loose := sum(cell.uncertified for cell in summary.cells):
        yield f"{loose} of {len(experiment.trials)} trials have a fit that is not certified."
    for trouble in dict.fromkeys(
        f"{t.method} on {t.row}: {t.trouble}" for t in experiment.trials if t.trouble
    ):
        yield f"Failed: {trouble}"


def _bound(cell: TableCell, best: Summary | None) -> str:
    """What the best choice on the test points says of a figure below the paper's."""
    own = () if best is None or cell.gap > 0 else best.cells
    for bound in own:
        if (bound.row, bound.method) == (cell.row, cell.method):
            if bound.gap < -MAX_DEVIATIONS:
                return (
                    "at no choice of the grid it comes near, "
                    f"the best on the test points gives {bound.mean:.1f}"
                )
            return (
                f"at the choice that is best on the test points it is {bound.mean:.1f}, "
                "so the choice may be why"
            )
    return ""


def _learned(protocol: Protocol, mean_ranks: dict[str, float]) -> Iterator[str]:
    """Whether learned kernels have a better mean rank than the reference."""
    own = mean_ranks[protocol.reference]
    learned = [name for name in protocol.learned if name in mean_ranks]
    better = [name for name in learned if mean_ranks[name] < own]
    if learned:
        rest = [name for name in learned if name not in better]
        yield (
            f"In mean rank {', '.join(better) or 'no learned kernel'} "
            f"{'are' if len(better) > 1 else 'is'} better than "
            f"{protocol.reference}{', which is no worse than ' + ', '.join(rest) if rest else ''}."
        )


def print_experiment(experiment: Experiment, out: Console) -> None:
    """Print a table for each set and what can be said of all."""
    from klopt.engine.format import table, wrapped

    summary = summarise(experiment)
    out.print(
        wrapped(f"{experiment.protocol.title}; splits: {experiment.splits}, seed {experiment.seed}")
    )
    for row, source in zip(experiment.protocol.rows, experiment.sources, strict=True):
        out.print(f"\n{source}", style="bold")
        rows = table(COLUMNS, right=COLUMNS[1:])
        for cell in summary.cells:
            if cell.row == row.name:
                rows.add_row(*cell_texts(cell))
        out.print(rows)
    out.print("")
    for said in conclusions(experiment, summary):
        out.print(wrapped(said))
    out.print(
        wrapped(
            "'gap' is (ours - paper) / the paper's deviation, or ours, where it has none; t, "
            f"corrected t and Wilcoxon are p-values against {experiment.protocol.reference} over "
            "splits, of which the first and the last ignore that splits overlap; the corrected one "
            "is left out where few points are labelled, as it has no power there."
        )
    )
    for missing in experiment.missing:
        out.print(wrapped(f"not run: {missing}"))


def write_csv(experiment: Experiment, path: Path) -> None:
    """Write one row per method and data set."""
    head = (
        "protocol,set,method,splits,mean,deviation,rank,paper_mean,paper_deviation,gap,difference,p_t,p_corrected_t,"
        "p_wilcoxon,seconds,failed,uncertified"
    )
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head.split(","))
        for cell in summarise(experiment).cells:
            paper = ("", "") if cell.paper is None else (cell.paper.mean, cell.paper.deviation)
            a = cell.against
            tests = ("", "", "", "") if a is None else (a.difference, a.t, a.corrected, a.wilcoxon)
            gap = "" if isnan(cell.gap) else cell.gap
            names = map(cell_text, (experiment.protocol.name, cell.row, cell.method))
            writer.writerow(
                (*names, experiment.splits, cell.mean, cell.deviation, cell.rank,
                 *paper, gap, *tests, cell.seconds, cell.failed, cell.uncertified)
            )  # fmt: skip
