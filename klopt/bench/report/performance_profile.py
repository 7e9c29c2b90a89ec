"""The performance profile of all backends as a chart (Dolan and Moré, 2002).

`klopt.bench.scores.profile` computes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.record import Run
from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import Series, Style, plot
from klopt.bench.report.figures import Figure
from klopt.bench.report.styles import StyleMap
from klopt.bench.scores import profile

__all__ = ["performance_profile"]

MIN_PROBLEMS = 5
"""Problems that a performance profile needs to mean anything."""
CAPTION = (
    "The share of problems that a backend certifies within so many times the time of the fastest. "
    "At 1 a curve says how often it is the fastest, at the right how often it succeeds; "
    "higher is better."
)


def performance_profile(runs: Sequence[Run], styles: StyleMap) -> Figure:
    """Return the performance profile of all backends, or why there is none."""
    title = "Performance profile"
    count = len({run.problem for run in runs})
    if count < MIN_PROBLEMS:
        problems = "1 problem" if count == 1 else f"{count} problems"
        why = f"Not drawn: a profile over {problems} says little; it needs {MIN_PROBLEMS}."
        return Figure("profile", title, why)
    curves = {name: found for name, found in profile(runs).items() if len(found[0])}
    if not curves:
        return Figure("profile", title, "Not drawn: no run is certified.")

    slowest = max(float(ratios[-1]) for ratios, _ in curves.values())
    end = max(1.1 * slowest, 2.0)
    series = [
        _step(name, ratios, shares, end, styles.backends[name])
        for name, (ratios, shares) in curves.items()
    ]
    x_axis = Axis("times as long as the fastest", 1.0, end, log=True)
    y_axis = Axis("share of problems", 0.0, 1.02)
    return Figure("profile", title, CAPTION, plot(series, title, x_axis, y_axis))


def _step(name: str, ratios: FloatArray, shares: FloatArray, end: float, style: Style) -> Series:
    """The step function of one backend from ratio 1 to the end of the axis."""
    # A backend that is never the fastest starts at 0.
    at_one = shares[0] if ratios[0] <= 1 else 0.0
    x = np.concatenate([[1.0], ratios, [end]])
    y = np.concatenate([[at_one], shares, shares[-1:]])
    title = f"{name}: {shares[-1]:.0%} certified in the end"
    return Series(name, x, y, style, mark="step", title=title)
