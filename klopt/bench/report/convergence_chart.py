"""The chart of convergence: how the proven interval of one problem shrinks as a backend works.

Along a run the best bounds so far count. No run can be narrower than the intersection of all
intervals of its problem; that gap is the shaded band.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.record import Run, Trace
from klopt.bench.report.axes import MAX_POINTS, Axis
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
from klopt.bench.trials import Trial, agreement, route, strictest, trials

__all__ = ["Abscissa", "RateBound", "convergence_chart", "progress", "rate_bounds"]

Abscissa = Literal["seconds", "iterations"]
"""What the relative gap is drawn against."""
RATE_LABEL = "1/k theorem"
"""What a chart calls the bound of a backend that has one (`Backend.rate_constant`)."""
RATE_POINTS = 30
"""Points of the curve of such a bound."""
RATE_STYLE = Style(slot=999, colour=6, dash=1)
"""A dashed curve in the colour of the text, which no entry of a legend hides."""
SHORTEST_DRAWN_S = 1e-6
"""Shorter times are drawn here."""
MISSING = {
    "seconds": "Nothing to draw: no route proved an interval.",
    "iterations": "Nothing to draw against iterations: no backend gave bounds along its way.",
}


@dataclass(frozen=True, eq=False)
class RateBound:
    """An upper bound of the relative gap after so many iterations, by a theorem."""

    label: str
    iterations: FloatArray
    widths: FloatArray


def rate_bounds(runs: Sequence[Run]) -> Mapping[str, Sequence[RateBound]]:
    """Return for each problem the bounds that theorems give for its runs, as relative gaps."""
    found: dict[str, list[RateBound]] = {}
    for trial in trials(strictest(runs)):
        run = shown(trial)
        # A theorem bounds upper - lower; without a finite upper there is no relative gap.
        if not (math.isfinite(run.promise) and run.iterations and math.isfinite(run.upper)):
            continue
        k = np.geomspace(1, max(run.iterations, 2), RATE_POINTS)
        bound = RateBound(RATE_LABEL, k, run.promise / k / (1 + abs(run.upper)))
        found.setdefault(run.problem, []).append(bound)
    return found


def convergence_chart(
    name: str,
    found: Sequence[Trial],
    traces: Mapping[str, Trace],
    styles: StyleMap,
    against: Abscissa,
    bounds: Sequence[RateBound] = (),
    max_points: int = MAX_POINTS,
) -> Figure:
    """Return how the proven interval of one problem shrinks: a curve for each route.

    Parameters
    ----------
    name
        The name of the figure.
    found
        The trials on one problem at one tolerance.
    traces
        The bounds along each run, by the run's key.
    styles
        The colour and dash of each route.
    against
        What is drawn to the right.
    bounds
        Curves of theorems, drawn against iterations only.
    max_points
        The number of points to which a curve is thinned.
    """
    title = f"{found[0].first.problem}: proven width against {against}"
    curves = [
        _curve(trial, found, traces, styles, against)
        for trial in found
        if against == "seconds" or _has_curve(trial, traces)
    ]
    if not any(len(curve.x) for curve in curves):
        return Figure(name, title, MISSING[against])
    # Theorems bound the gap by iterations; they say nothing about seconds.
    if against == "iterations":
        curves += [Series(b.label, b.iterations, b.widths, RATE_STYLE) for b in bounds]

    tol = min(trial.first.tol for trial in found)
    x_axis = Axis.around(against, np.concatenate([curve.x for curve in curves]), log=True)
    y_axis = Axis.around(WIDTH, [*np.concatenate([curve.y for curve in curves]), tol], log=True)
    return Figure(
        name, title, "", plot(curves, title, x_axis, y_axis, _rules(found, tol), max_points)
    )


def _has_curve(trial: Trial, traces: Mapping[str, Trace]) -> bool:
    """Whether the backend gave bounds along its way: a trace of one step is the end point alone."""
    return len(traces.get(shown(trial).key, ())) > 1


def _curve(
    trial: Trial,
    found: Sequence[Trial],
    traces: Mapping[str, Trace],
    styles: StyleMap,
    against: Abscissa,
) -> Series:
    run = shown(trial)
    x, y = progress(run, traces.get(run.key, ()), against)
    return Series(
        short_name(trial, found),
        x,
        y,
        styles.of(run),
        title=f"{route(run)}: {run.verdict.name}, width {run.relative_gap:.1e}",
        hollow=() if run.verdict.conclusive else (True,),
        ended=True,
    )


def _rules(found: Sequence[Trial], tol: float) -> list[Rule]:
    """The level of the tolerance, and the band below what all proofs together leave open."""
    rules = [Rule(tol, f"asked for: {tol:.0e}")]
    runs = [run for trial in found for run in trial.runs]
    known = agreement(runs)[found[0].first.problem]
    gap = relative_gap(known.lower, known.upper)
    if known.holds and math.isfinite(gap):
        band = max(gap, SMALLEST_DRAWN)
        rules.append(Rule(band, f"all proofs together: {band:.1e}", filled=True))
    return rules


def progress(run: Run, trace: Trace, against: str) -> tuple[FloatArray, FloatArray]:
    """Return seconds or iterations and the relative gap of the best bounds so far.

    The last point is what the certificate proves.
    """
    steps = [(step.iteration, step.seconds, step.lower, step.upper) for step in trace]
    steps.append((*_end(run, trace), run.lower, run.upper))
    iterations, seconds, lower, upper = np.array(steps, dtype=float).T
    best_lower = np.fmax.accumulate(lower)
    best_upper = np.fmin.accumulate(upper)
    # Before both bounds are known the gap is infinite or NaN; these steps are dropped below.
    with np.errstate(invalid="ignore"):
        gap = np.maximum((best_upper - best_lower) / (1 + np.abs(best_upper)), SMALLEST_DRAWN)
    if against == "seconds":
        x = np.maximum(seconds, SHORTEST_DRAWN_S)
    else:
        x = np.where(iterations >= 0, np.maximum(iterations, 1), np.nan)
    kept = np.isfinite(gap) & np.isfinite(x)
    return x[kept], gap[kept]


def _end(run: Run, trace: Trace) -> tuple[int, float]:
    """The iterations (-1: not known) and seconds (NaN: not known) at the end of a run."""
    iterations = -1 if run.iterations is None else run.iterations
    seconds = run.solve
    if not trace:
        return iterations, seconds
    last = trace[-1]
    if not math.isfinite(seconds):
        return max(iterations, last.iteration), last.seconds
    return max(iterations, last.iteration), max(seconds, last.seconds)
