"""Pairs of methods compared over the data sets of an experiment, each set counted once.

The rows of one set with several numbers of labels are averaged first: their points are the same, so
they are no independent evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.protocol import Protocol
from klopt.papers.experiments.runner import Experiment
from klopt.papers.experiments.statistics import SetsTest, holm, over_sets

__all__ = ["SetComparison", "compare_over_sets", "compared_pairs", "set_means"]


@dataclass(frozen=True)
class SetComparison:
    """One method against another over the sets of one kind."""

    own: str
    other: str
    group: str
    """The kind of sets; "" for all."""
    sets: tuple[str, ...]
    test: SetsTest
    corrected: float
    """The p-value corrected for as many comparisons over the same sets."""

    def said(self, level: float) -> str:
        """Return the comparison in words."""
        test = self.test
        significant = not isnan(self.corrected) and self.corrected < level
        which = f" ({self.group})" if self.group else ""
        return (
            f"{self.own} against {self.other} over {len(self.sets)} sets{which}: "
            f"{100 * test.difference:+.1f} points in the mean, {test.wins} better, {test.ties} equal, "
            f"{test.losses} worse; Wilcoxon p = {test.p:.2g}, {self.corrected:.2g} by Holm: "
            f"{'' if significant else 'not '}significant at {level:g}"
        )


def compared_pairs(protocol: Protocol) -> tuple[tuple[str, str], ...]:
    """Return the pairs that a protocol asks for: its own, or each learned kernel and the reference.

    >>> from klopt.papers.experiments.runner import protocol_named
    >>> compared_pairs(protocol_named("xie2017"))
    (('KA1 SVM', 'KA0 SVM'), ('KA1 LP', 'KA0 LP'))
    """
    names = {method.name for method in protocol.methods}
    learned = tuple((name, protocol.reference) for name in protocol.learned)
    pairs = protocol.comparisons or learned
    return tuple(pair for pair in pairs if names.issuperset(pair))


def compare_over_sets(experiment: Experiment) -> tuple[SetComparison, ...]:
    """Return the comparisons over all sets, and over those of each kind where there are several."""
    protocol = experiment.protocol
    groups = dict.fromkeys(row.group for row in protocol.rows)
    kinds = [""] if len(groups) == 1 else ["", *groups]
    found = []
    for group in kinds:
        sets = dict.fromkeys(row.data for row in protocol.rows if group in ("", row.group))
        tests = []
        for own, other in compared_pairs(protocol):
            tests.append(
                over_sets(set_means(experiment, own, sets), set_means(experiment, other, sets))
            )
        corrected = holm(np.array([test.p for test in tests]))
        for (own, other), test, p in zip(compared_pairs(protocol), tests, corrected, strict=True):
            found.append(SetComparison(own, other, group, tuple(sets), test, float(p)))
    return tuple(found)


def set_means(experiment: Experiment, method: str, sets: dict[str, None]) -> FloatArray:
    """Return the mean accuracy of a method on each set, over its rows and splits."""
    rows = {row.name: row.data for row in experiment.protocol.rows}
    of_set: dict[str, list[float]] = {name: [] for name in sets}
    by_row: dict[str, list[float]] = {}
    for trial in experiment.trials:
        if trial.method == method:
            by_row.setdefault(trial.row, []).append(trial.accuracy)
    for row, accuracies in by_row.items():
        if rows[row] in of_set:
            of_set[rows[row]].append(float(np.nanmean(accuracies)))
    return np.array([np.mean(values) for values in of_set.values()])
