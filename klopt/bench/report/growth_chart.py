"""The charts of growth: time against size on one data set, with fitted exponents where sizes are many.

Instances of one data set at several sizes are alike; instances of two data sets are not, and no line
is fitted through both. Three points fit any line too well: up to three sizes are joined, from four
on an exponent is fitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from klopt.bench.record import Run
from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import Series, plot
from klopt.bench.report.figures import Figure, short_name
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import Growth, growth
from klopt.bench.trials import Trial, grouped, route, strictest, trials

__all__ = ["growth_charts", "target_of"]

MIN_FITTED_SIZES = 4
"""Sizes from which on an exponent is fitted."""
MIN_SIZES = 3
"""Sizes that a chart needs."""
JOINED = "How to read this: medians of certified runs, joined; so few sizes say no rate."
FITTED = (
    "How to read this: medians of certified runs and fitted lines; a steeper line grows faster with the size. "
    "The interval of an exponent holds it with 95 % confidence."
)


def target_of(run: Run) -> str:
    """Return what all sizes of a problem have in common: its label without the size."""
    return re.sub(r"\s*\bn=\d+$", "", run.problem) or run.problem


def growth_charts(runs: Sequence[Run], styles: StyleMap) -> tuple[Figure, ...]:
    """Return for each data set of three sizes or more how time grows with size."""
    figures = []
    for target, own in grouped(strictest(runs), target_of).items():
        certified = [trial for trial in trials(own) if trial.certified and trial.first.size > 0]
        by_route = grouped(certified, lambda trial: route(trial.first))
        enough = {name: each for name, each in by_route.items() if _sizes(each) >= MIN_SIZES}
        if enough:
            fits = growth([replace(run, family=target) for run in own])
            figures.append(_chart(target, enough, fits, styles))
    return tuple(figures)


def _sizes(found: Sequence[Trial]) -> int:
    return len({trial.first.size for trial in found})


def _chart(
    target: str,
    by_route: Mapping[str, Sequence[Trial]],
    fits: Mapping[tuple[str, str], Growth | None],
    styles: StyleMap,
) -> Figure:
    every = [trial for own in by_route.values() for trial in own]
    series: list[Series] = []
    fitted = False
    for name, own in by_route.items():
        fit = fits.get((target, name))
        if fit is not None and _sizes(own) >= MIN_FITTED_SIZES:
            series += _fit_and_points(name, own, fit, every, styles)
            fitted = True
        else:
            series.append(_joined(name, own, every, styles))
    x_axis = Axis.around("size", [value for each in series for value in each.x], log=True)
    y_axis = Axis.around("seconds", [value for each in series for value in each.y], log=True)
    title = f"{target}: time against size"
    svg = plot(series, title, x_axis, y_axis)
    return Figure(f"growth-{target}", title, FITTED if fitted else JOINED, svg)


def _joined(name: str, own: Sequence[Trial], every: Sequence[Trial], styles: StyleMap) -> Series:
    points = sorted((trial.first.size, trial.seconds) for trial in own)
    sizes, times = np.array(points, dtype=float).T
    style = styles.of(own[0].first)
    return Series(short_name(own[0], every), sizes, times, style, title=name, ended=True)


def _fit_and_points(
    name: str, own: Sequence[Trial], fit: Growth, every: Sequence[Trial], styles: StyleMap
) -> tuple[Series, Series]:
    """The fitted line of one route, with its name and exponent, and the measured times, without."""
    style = styles.of(own[0].first)
    label = f"{short_name(own[0], every)} n^{fit.exponent:.1f} ({fit.low:.1f}–{fit.high:.1f})"
    ends = np.array([fit.sizes[0], fit.sizes[-1]], dtype=float)
    line = Series(label, ends, fit.factor * ends**fit.exponent, style, title=f"{name}: {fit}")
    sizes, times = np.array([(t.first.size, t.seconds) for t in own], dtype=float).T
    points = Series(label, sizes, times, style, mark="points", title=name, named=False)
    return line, points
