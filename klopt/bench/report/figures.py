"""The charts of a comparison: convergence, accuracy against time, performance profile, growth and the map of verdicts.

What is drawn as accuracy is always the relative width of the interval that klopt proved, (upper -
lower) / (1 + |upper|), never a backend's own residual. Along a run the best bounds so far count. No
run can be narrower than the intersection of all intervals of its problem; that width is the shaded
band in charts of convergence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.record import Run, Trace
from klopt.bench.report.axes import MOST_POINTS, Axis
from klopt.bench.report.charts import Cell, Rule, Series, Style, heat_map, plot
from klopt.bench.report.styles import Looks
from klopt.bench.scores import Trial, agreement, growth, profile, route, trials
from klopt.bench.trials import grouped, strictest
from klopt.proof.certificate import Verdict

__all__ = [
    "SYMBOLS",
    "TONE",
    "Against",
    "Bound",
    "Figure",
    "accuracy",
    "bounds_of",
    "convergence",
    "growths",
    "profiles",
    "progress",
    "shown",
    "verdict_map",
]

Against = Literal["seconds", "iterations"]
RATE_LABEL = "1/k theorem"
"""What a chart calls the bound of a backend that has one (`Backend.rate_constant`)."""
FLOOR = 1e-16
"""Widths below are drawn here: a logarithm has no place for 0."""
FEWEST = 5
"""Problems that a performance profile needs to mean anything."""
NAMED = 14
"""Points up to which a scatter has names in it."""
SYMBOLS = {
    Verdict.OPTIMAL: "✓",
    Verdict.INFEASIBLE: "∅",
    Verdict.UNBOUNDED: "∞",
    Verdict.FEASIBLE: "◐",
    Verdict.UNPROVEN: "✗",
}
TONE = {
    Verdict.OPTIMAL: "good",
    Verdict.INFEASIBLE: "fact",
    Verdict.UNBOUNDED: "fact",
    Verdict.FEASIBLE: "half",
    Verdict.UNPROVEN: "bad",
}
MISSING = {
    "seconds": "Nothing to draw: no route proved an interval.",
    "iterations": "Nothing to draw against iterations: no backend gave bounds along its way.",
}
WIDTH = "proven relative width"


@dataclass(frozen=True)
class Figure:
    """A chart and how to read it; `svg` is empty where there is nothing to draw, and `caption` then says why."""

    name: str
    title: str
    caption: str
    svg: str = ""


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound of the relative width after so many iterations that a theorem promises."""

    label: str
    iterations: FloatArray
    widths: FloatArray


def bounds_of(runs: Sequence[Run]) -> Mapping[str, Sequence[Bound]]:
    """Return for each problem the bounds that theorems promise of its runs, in the units of the chart."""
    found: dict[str, list[Bound]] = {}
    for trial in trials(strictest(runs)):
        run = shown(trial)
        if not (math.isfinite(run.promise) and run.iterations and math.isfinite(run.upper)):
            continue
        k = np.geomspace(1, max(run.iterations, 2), 30)
        found.setdefault(run.problem, []).append(
            Bound(RATE_LABEL, k, run.promise / k / (1 + abs(run.upper)))
        )
    return found


def shown(trial: Trial) -> Run:
    """Return the repeat that stands for all: the one of median time, or where some fail one of those."""
    failed = [run for run in trial.runs if not run.verdict.conclusive]
    return trial.middle if not failed or not trial.middle.verdict.conclusive else failed[0]


def short_name(trial: Trial, beside: Sequence[Trial]) -> str:
    """Return the backend's name, with the formulation where others have the same backend."""
    same = {route(other.first) for other in beside if other.first.backend == trial.first.backend}
    return (
        trial.first.backend
        if len(same) == 1
        else f"{trial.first.backend} · {trial.first.formulation}"
    )


def convergence(
    name: str,
    found: Sequence[Trial],
    traces: Mapping[str, Trace],
    looks: Looks,
    against: Against,
    bounds: Sequence[Bound] = (),
    most: int = MOST_POINTS,
) -> Figure:
    """Return how the proven interval of one problem shrinks, a curve or an end point for each route."""
    series = []
    for trial in found:
        run = shown(trial)
        if against == "iterations" and len(traces.get(run.key, ())) < 2:
            continue
        x, y = progress(run, traces.get(run.key, ()), against)
        hollow = () if run.verdict.conclusive else (True,)
        full = f"{route(run)}: {run.verdict.name}, width {run.relative_width:.1e}"
        series.append(
            Series(
                short_name(trial, found), x, y, looks.of(run), "line", full, (), hollow, ended=True
            )
        )
    title = f"{found[0].first.problem}: proven width against {against}"
    if not any(len(s.x) for s in series):
        return Figure(name, title, MISSING[against])
    if against == "iterations":
        series += [Series(b.label, b.iterations, b.widths, Style(999, 6, 1)) for b in bounds]
    known = agreement([run for trial in found for run in trial.runs])[found[0].first.problem]
    band = max(_width(known.lower, known.upper), FLOOR) if known.holds else math.nan
    tol = min(trial.first.tol for trial in found)
    rules = [Rule(tol, f"asked for: {tol:.0e}")]
    if math.isfinite(band):
        rules.append(Rule(band, f"all proofs together: {band:.1e}", filled=True))
    x_axis = Axis.around(against, np.concatenate([s.x for s in series]), log=True)
    y_axis = Axis.around(WIDTH, [*np.concatenate([s.y for s in series]), tol], log=True)
    return Figure(name, title, "", plot(series, title, x_axis, y_axis, rules, most))


def progress(run: Run, trace: Trace, against: str) -> tuple[FloatArray, FloatArray]:
    """Return seconds or iterations and the width of the best bounds so far, ended by what the certificate proves."""
    last = trace[-1] if trace else None
    steps = [(step.iteration, step.seconds, step.lower, step.upper) for step in trace]
    done = run.iterations if run.iterations is not None else last.iteration if last else -1
    seconds = run.solve if math.isfinite(run.solve) else last.seconds if last else math.nan
    steps.append(
        (
            max(done, last.iteration) if last else done,
            max(seconds, last.seconds if last else 0.0),
            run.lower,
            run.upper,
        )
    )
    iterations, times, lower, upper = np.array(steps, dtype=float).T
    best_upper, best_lower = np.fmin.accumulate(upper), np.fmax.accumulate(lower)
    with np.errstate(invalid="ignore"):
        width = np.maximum((best_upper - best_lower) / (1 + np.abs(best_upper)), FLOOR)
    x = (
        np.maximum(times, 1e-6)
        if against == "seconds"
        else np.where(iterations >= 0, np.maximum(iterations, 1), np.nan)
    )
    kept = np.isfinite(width) & np.isfinite(x)
    return x[kept], width[kept]


def _width(lower: float, upper: float) -> float:
    return (
        (upper - lower) / (1 + abs(upper))
        if math.isfinite(lower) and math.isfinite(upper)
        else math.nan
    )


def accuracy(found: Sequence[Trial], looks: Looks) -> Figure:
    """Return what every route proved against the seconds it took."""
    title = "Accuracy against time"
    series = []
    for style, own in grouped(found, lambda trial: looks.of(trial.first)).items():
        name = own[0].first.backend
        runs = [shown(trial) for trial in own]
        points = [(run, run.seconds, max(_width(run.lower, run.upper), FLOOR)) for run in runs]
        points = [point for point in points if all(map(math.isfinite, point[1:]))]
        titles = tuple(f"{run.backend}, {run.problem}: {t:.3g} s, {w:.1e}" for run, t, w in points)
        x, y = np.array([p[1] for p in points]), np.array([p[2] for p in points])
        hollow = tuple(not run.verdict.conclusive for run, _, _ in points)
        label = short_name(own[0], found)
        series.append(
            Series(label, x, y, style, "points", name, titles, hollow, named=len(found) <= NAMED)
        )
    places = [value for s in series for value in s.y]
    if not places:
        return Figure("accuracy", title, "No run has both a time and a proven interval.")
    caption = "Lower left is better. Filled marks are certified, hollow ones are not."
    tol = min(trial.first.tol for trial in found)
    x_axis = Axis.around("seconds", [value for s in series for value in s.x], log=True)
    rules = [Rule(tol, f"asked for: {tol:.0e}")]
    return Figure(
        "accuracy",
        title,
        caption,
        plot(series, title, x_axis, Axis.around(WIDTH, [*places, tol], log=True), rules),
    )


def profiles(runs: Sequence[Run], looks: Looks) -> Figure:
    """Return the performance profile of all backends, or why there is none."""
    title, problems = "Performance profile", len({run.problem for run in runs})
    if problems < FEWEST:
        have = f"{problems} problem" + "s" * (problems != 1)
        return Figure(
            "profile", title, f"Not drawn: a profile over {have} says little; it needs {FEWEST}."
        )
    curves = {name: found for name, found in profile(runs).items() if len(found[0])}
    if not curves:
        return Figure("profile", title, "Not drawn: no run is certified.")
    end = max(max(float(ratios[-1]) for ratios, _ in curves.values()) * 1.1, 2.0)
    series = []
    for name, (ratios, shares) in curves.items():
        x = np.concatenate([[1.0], ratios, [end]])
        y = np.concatenate([[shares[0] if ratios[0] <= 1 else 0.0], shares, shares[-1:]])
        series.append(
            Series(
                name,
                x,
                y,
                looks.backends[name],
                "step",
                f"{name}: {shares[-1]:.0%} certified in the end",
            )
        )
    caption = (
        "The share of problems that a backend certifies within so many times the time of the fastest. "
        "At 1 a curve says how often it is the fastest, at the right how often it succeeds; higher is better."
    )
    axes = (
        Axis("times as long as the fastest", 1.0, end, log=True),
        Axis("share of problems", 0.0, 1.02),
    )
    return Figure("profile", title, caption, plot(series, title, *axes))


def growths(runs: Sequence[Run], looks: Looks) -> tuple[Figure, ...]:
    """Return for each family of three sizes or more how time grows with size, with the fitted exponents."""
    figures = []
    fits = {pair: fit for pair, fit in growth(runs).items() if fit is not None}
    for family in sorted({pair[0] for pair in fits}):
        found = [
            trial for trial in trials(runs) if trial.first.family == family and trial.certified
        ]
        series = []
        for name, own in grouped(found, lambda trial: route(trial.first)).items():
            fit = fits.get((family, name))
            if fit is None:
                continue
            label = f"n^{fit.exponent:.2g} {short_name(own[0], found)}"
            ends = np.array([fit.sizes[0], fit.sizes[-1]], dtype=float)
            fitted = f"{name}: time grows like {fit}"
            series.append(
                Series(
                    label,
                    ends,
                    fit.factor * ends**fit.exponent,
                    looks.of(own[0].first),
                    "line",
                    fitted,
                )
            )
            sizes, times = np.array([(t.first.size, t.seconds) for t in own], dtype=float).T
            series.append(
                Series(label, sizes, times, looks.of(own[0].first), "points", name, named=False)
            )
        x_axis = Axis.around("size", [value for s in series for value in s.x], log=True)
        y_axis = Axis.around("seconds", [value for s in series for value in s.y], log=True)
        title = f"{family}: time against size"
        caption = "Lines are fits over certified runs; point at one for the 95 % interval of its exponent."
        figures.append(
            Figure(f"growth-{family}", title, caption, plot(series, title, x_axis, y_axis))
        )
    return tuple(figures)


def verdict_map(found: Sequence[Trial], links: Mapping[str, str]) -> Figure:
    """Return the map of verdicts, problems by backends: each backend's best formulation at the strictest tolerance."""
    problems = list(dict.fromkeys(trial.first.problem for trial in found))
    often = Counter(trial.first.backend for trial in found)
    backends = sorted(often, key=lambda name: (-often[name], name))
    cells = [
        [_cell(problem, backend, found, links) for backend in backends] for problem in problems
    ]
    caption = (
        "Each cell is the best formulation of a backend. ! marks a claim, be it the first of two, that klopt could not "
        "bear out, – a backend that was not run."
    )
    title = "Verdicts: problem by backend"
    return Figure("verdicts", title, caption, heat_map(problems, backends, cells, title))


def _cell(problem: str, backend: str, found: Sequence[Trial], links: Mapping[str, str]) -> Cell:
    own = [t for t in found if (t.first.problem, t.first.backend) == (problem, backend)]
    if not own:
        return Cell("–", "", "none", "")
    best = min(own, key=lambda trial: (trial.first.tol, trial.order))
    run = shown(best)
    symbol = SYMBOLS[run.verdict] + (" !" if run.honest is False else "")
    said = "" if run.honest else f"{route(run)} says {run.says.words}"
    return Cell(symbol, run.verdict.name, TONE[run.verdict], said, links.get(run.key, ""))
