"""The performance profile of all backends as a chart (Dolan and Moré, 2002).

`klopt.bench.scores.profile` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.gap_times import reference_gap
from klopt.bench.record import Run
from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import Series, Style, plot
from klopt.bench.report.figures import Figure
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import profile
from klopt.engine.words import counted

__all__ = ["performance_profile"]

MIN_PROBLEMS = 5
"""Problems that a performance profile needs to mean anything."""
MAX_NAMED = 6
"""Solvers whose curves have a colour and a name; the others are grey."""
CAPTION = (
    "How to read this: the share of all problems on which a solver has a proven gap of {gap:.0e} "
    "within so many times the time of the fastest solver. Higher is better; at 1 it is how often "
    "a solver is the fastest, at the right how often it succeeds. A solver that takes few problems "
    "stays low; choose a class to compare it there.{grey}"
)


def performance_profile(runs: Sequence[Run], styles: StyleMap) -> Figure:
    """Return the performance profile of all solvers, or why there is none."""
    title = "Performance profile"
    count = len({run.problem for run in runs})
    if count < MIN_PROBLEMS:
        problems = "1 problem" if count == 1 else f"{count} problems"
        why = f"Not drawn: a profile over {problems} says little; it needs {MIN_PROBLEMS}."
        return Figure("profile", title, why)
    gap = reference_gap(runs)
    curves = {name: found for name, found in profile(runs, gap).items() if len(found[0])}
    if not curves:
        return Figure("profile", title, "Not drawn: no run is certified.")

    slowest = max(float(ratios[-1]) for ratios, _ in curves.values())
    end = max(1.1 * slowest, 2.0)
    ranked = sorted(curves, key=lambda name: -_area(*curves[name], end))
    named = dict(zip(ranked[:MAX_NAMED], _distinct(styles, ranked[:MAX_NAMED]), strict=True))
    # Grey curves come first, so that they lie below the others.
    series = []
    for name in reversed(ranked):
        grey = replace(styles.backends[name], grey=True, dash=0)
        series.append(_step(name, *curves[name], end, named.get(name, grey)))
    x_axis = Axis("time / time of the fastest solver", 1.0, end, log=True)
    y_axis = Axis("share of problems", 0.0, 1.02)
    others = len(ranked) - len(named)
    grey_words = f" Grey: {counted(others, 'other solver')}." if others else ""
    caption = CAPTION.format(gap=gap, grey=grey_words)
    return Figure("profile", title, caption, plot(series, title, x_axis, y_axis))


def _area(ratios: FloatArray, shares: FloatArray, end: float) -> float:
    """The area under a curve over the logarithmic axis: high and early is large."""
    steps = np.diff(np.log(np.append(ratios, end)))
    return float(steps @ shares)


def _distinct(styles: StyleMap, names: Sequence[str]) -> list[Style]:
    """One colour for each of a few solvers, all solid."""
    return [
        replace(styles.backends[name], colour=number, dash=0) for number, name in enumerate(names)
    ]


def _step(name: str, ratios: FloatArray, shares: FloatArray, end: float, style: Style) -> Series:
    """The step function of one backend from ratio 1 to the end of the axis."""
    # A backend that is never the fastest starts at 0.
    at_one = shares[0] if ratios[0] <= 1 else 0.0
    x = np.concatenate([[1.0], ratios, [end]])
    y = np.concatenate([[at_one], shares, shares[-1:]])
    title = f"{name}: {shares[-1]:.0%} proven in the end"
    return Series(name, x, y, style, mark="step", title=title, named=not style.grey)
