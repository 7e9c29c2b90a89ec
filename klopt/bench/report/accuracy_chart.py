"""The chart of accuracy against time: what every route proved, and in how many seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import Rule, Series, Style, plot
from klopt.bench.report.figures import (
    SMALLEST_DRAWN,
    WIDTH,
    Figure,
    relative_gap,
    short_name,
    shown,
)
from klopt.bench.report.styles import StyleMap
from klopt.bench.trials import Trial, grouped

__all__ = ["accuracy_chart"]

MAX_NAMED = 14
"""Points up to which the chart has names in it."""


def accuracy_chart(found: Sequence[Trial], styles: StyleMap) -> Figure:
    """Return what every route proved against the seconds it took."""
    title = "Accuracy against time"
    groups = grouped(found, lambda trial: styles.of(trial.first))
    series = [_points(style, own, found) for style, own in groups.items()]
    seconds = [value for each in series for value in each.x]
    gaps = [value for each in series for value in each.y]
    if not gaps:
        return Figure("accuracy", title, "No run has both a time and a proven interval.")
    tol = min(trial.first.tol for trial in found)
    x_axis = Axis.around("seconds", seconds, log=True)
    y_axis = Axis.around(WIDTH, [*gaps, tol], log=True)
    svg = plot(series, title, x_axis, y_axis, [Rule(tol, f"asked for: {tol:.0e}")])
    caption = "Lower left is better. Filled marks are certified, hollow ones are not."
    return Figure("accuracy", title, caption, svg)


def _points(style: Style, own: Sequence[Trial], found: Sequence[Trial]) -> Series:
    """The runs of one style, those that have both a time and an interval."""
    points = []
    for run in map(shown, own):
        gap = relative_gap(run.lower, run.upper)
        if math.isfinite(run.seconds) and math.isfinite(gap):
            points.append((run, run.seconds, max(gap, SMALLEST_DRAWN)))
    return Series(
        short_name(own[0], found),
        np.array([seconds for _, seconds, _ in points]),
        np.array([gap for _, _, gap in points]),
        style,
        mark="points",
        title=own[0].first.backend,
        titles=tuple(f"{run.backend}, {run.problem}: {t:.3g} s, {w:.1e}" for run, t, w in points),
        hollow=tuple(not run.verdict.conclusive for run, _, _ in points),
        named=len(found) <= MAX_NAMED,
    )
