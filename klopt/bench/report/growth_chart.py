"""The charts of growth: time against size for each family, with the fitted exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from klopt.bench.record import Run
from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import Series, plot
from klopt.bench.report.figures import Figure, short_name
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import Growth, growth
from klopt.bench.trials import Trial, grouped, route, trials

__all__ = ["growth_charts"]

CAPTION = "Lines are fits over certified runs; point at one for the 95 % interval of its exponent."


def growth_charts(runs: Sequence[Run], styles: StyleMap) -> tuple[Figure, ...]:
    """Return for each family of three sizes or more how time grows with size."""
    fits = {pair: fit for pair, fit in growth(runs).items() if fit is not None}
    certified = [trial for trial in trials(runs) if trial.certified]
    figures = []
    for family in sorted({family for family, _ in fits}):
        own = [trial for trial in certified if trial.first.family == family]
        figures.append(_chart(family, own, fits, styles))
    return tuple(figures)


def _chart(
    family: str,
    found: Sequence[Trial],
    fits: Mapping[tuple[str, str], Growth],
    styles: StyleMap,
) -> Figure:
    series: list[Series] = []
    for name, own in grouped(found, lambda trial: route(trial.first)).items():
        fit = fits.get((family, name))
        if fit is not None:
            series += _fit_and_points(name, own, fit, found, styles)
    x_axis = Axis.around("size", [value for each in series for value in each.x], log=True)
    y_axis = Axis.around("seconds", [value for each in series for value in each.y], log=True)
    title = f"{family}: time against size"
    return Figure(f"growth-{family}", title, CAPTION, plot(series, title, x_axis, y_axis))


def _fit_and_points(
    name: str, own: Sequence[Trial], fit: Growth, found: Sequence[Trial], styles: StyleMap
) -> tuple[Series, Series]:
    """The fitted line of one route, with its name, and the measured times, without."""
    style = styles.of(own[0].first)
    label = f"n^{fit.exponent:.2g} {short_name(own[0], found)}"
    ends = np.array([fit.sizes[0], fit.sizes[-1]], dtype=float)
    fitted = fit.factor * ends**fit.exponent
    line = Series(label, ends, fitted, style, title=f"{name}: time grows like {fit}")
    sizes, times = np.array([(t.first.size, t.seconds) for t in own], dtype=float).T
    points = Series(label, sizes, times, style, mark="points", title=name, named=False)
    return line, points
