"""A comparison as one self-contained page: no network, readable without JavaScript, all escaped.

First comes what a reader wants to know: the verdict in a sentence, then the table. What the page
says of a suite is computed by `klopt.bench.scores`. Points of curves, pictures and logs share fixed
budgets, so that a page of ten backends on twenty problems stays below 500 kB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from markupsafe import Markup

from klopt.arrays import FloatArray
from klopt.bench.citations import bibtex
from klopt.bench.environment import Environment
from klopt.bench.record import Run, Trace
from klopt.bench.report.accuracy_chart import accuracy_chart
from klopt.bench.report.axes import MAX_POINTS
from klopt.bench.report.charts import STYLE_SHEET
from klopt.bench.report.convergence_chart import Abscissa, RateBound, convergence_chart
from klopt.bench.report.embed import embedded
from klopt.bench.report.figures import Figure, shown
from klopt.bench.report.growth_chart import growth_charts
from klopt.bench.report.kernels import MAX_BYTES, Learned, learned
from klopt.bench.report.performance_profile import performance_profile
from klopt.bench.report.proofs import page_proofs
from klopt.bench.report.styles import StyleMap, styles_of
from klopt.bench.report.templates import template
from klopt.bench.report.verdict_map import verdict_map
from klopt.bench.report.views import details, families, groups, settings
from klopt.bench.run_certificates import RunCertificate
from klopt.bench.scores import LEVELS, scores
from klopt.bench.summary import summary_lines, verdict_sentence
from klopt.bench.trials import Agreement, Trial, agreement, grouped, trials

__all__ = ["PageSource", "Panel", "page", "panels", "write_page"]

MAX_TOTAL_POINTS = 3_200
"""Points of all curves of convergence together."""
MIN_CURVE_POINTS = 24
"""What each curve gets at least."""
MAX_CURVES = 40
"""With more curves, charts against iterations are left to `klopt.bench.report.files`."""
MAX_PAGE_BYTES = 498_000
"""What a page with certificates may take, unless it takes more without them."""
OPEN_PANELS = 3
"""Problems whose charts of convergence are open from the start."""
NO_BOUNDS: Mapping[str, Sequence[RateBound]] = MappingProxyType({})


class PageSource(Protocol):
    """What a page is made of; `klopt.compare` returns one."""

    @property
    def runs(self) -> Sequence[Run]: ...
    @property
    def traces(self) -> Mapping[str, Trace]: ...
    @property
    def environment(self) -> Environment: ...
    @property
    def command(self) -> str: ...
    def arrays(self, key: str, /) -> Mapping[str, FloatArray]: ...
    def certificates(self) -> Mapping[str, RunCertificate]: ...


@dataclass(frozen=True)
class Panel:
    """The charts of convergence of one problem; `curves` counts routes that give bounds as they go."""

    problem: str
    figures: tuple[Figure, ...]
    curves: int


def page(comparison: PageSource, bounds: Mapping[str, Sequence[RateBound]] = NO_BOUNDS) -> str:
    """Return the page of a comparison, with `bounds` as dashed curves in their charts."""
    runs = tuple(comparison.runs)
    found = trials(runs)
    known = agreement(runs)
    styles = styles_of(runs)
    anchors = {run.key: f"r{i}" for i, trial in enumerate(found) for run in trial.runs}
    content = dict(
        **_header(comparison, runs, known),
        **_results(found, known, styles, anchors),
        **_convergence(comparison, found, styles, bounds),
        **_charts(found, runs, styles, anchors),
        learned=_learned(found, comparison, styles),
        environment=comparison.environment.pairs(),
        bibtex=bibtex(runs),
        data=Markup(embedded(runs, comparison.command)),
    )
    written = template("page.html.jinja")
    certificates = comparison.certificates()
    without = page_proofs(found, anchors, certificates, max_bytes=0)
    page = written.render(**content, proofs=without)
    if without is None:
        return page
    # Certificates get what is left: all the rest of the page is there without them.
    left = MAX_PAGE_BYTES - len(page.encode())
    proofs = page_proofs(found, anchors, certificates, left)
    return written.render(**content, proofs=proofs)


def _header(
    comparison: PageSource, runs: tuple[Run, ...], known: Mapping[str, Agreement]
) -> dict[str, Any]:
    """The verdict in a sentence, what is wrong, and of several problems what they say together."""
    sentence, _, rest = verdict_sentence(runs).partition(". ")
    content = {
        "sentence": f"{sentence}." if rest else sentence,
        "summary": _summary(runs),
        "command": comparison.command,
        "wrong": [str(found) for found in known.values() if not found.holds],
    }
    if len(known) <= 1:
        return content | {"rest": rest, "lessons": [], "scores": (), "levels": []}
    # The first line of the summary begins with the sentence, which stands above it already.
    lines = [line.removeprefix(f"{sentence}. ") for line in summary_lines(runs)]
    levels = [f"{level:.0e}" for level in LEVELS]
    return content | {"rest": "", "lessons": lines, "scores": scores(runs), "levels": levels}


def _results(
    found: Sequence[Trial],
    known: Mapping[str, Agreement],
    styles: StyleMap,
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    """The table of all routes, the statements of the problems, and the details of the runs."""
    return {
        "groups": groups(found, known, styles, anchors),
        "several_tols": len({trial.first.tol for trial in found}) > 1,
        "families": families(found),
        "details": grouped(details(found, anchors), lambda detail: detail.problem),
    }


def _convergence(
    comparison: PageSource,
    found: Sequence[Trial],
    styles: StyleMap,
    bounds: Mapping[str, Sequence[RateBound]],
) -> dict[str, Any]:
    """The charts of convergence, of the problems that have curves if some have."""
    lean = _curves(found, comparison.traces) > MAX_CURVES
    every = panels(found, comparison.traces, styles, bounds, lean=lean)
    curved = tuple(panel for panel in every if panel.curves)
    points_only = [panel.problem for panel in every if not panel.curves] if curved else []
    return {
        "panels": curved or every,
        "points_only": points_only,
        "lean": lean,
        "open_panels": OPEN_PANELS,
    }


def _charts(
    found: Sequence[Trial],
    runs: tuple[Run, ...],
    styles: StyleMap,
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    """The charts of all problems together, and what all charts share."""
    accuracy = accuracy_chart(found, styles)
    profile = performance_profile(runs, styles)
    links = {key: f"#{anchor}" for key, anchor in anchors.items()}
    return {
        "suite": (accuracy, profile, *growth_charts(runs, styles)),
        "map": verdict_map(found, links) if runs else None,
        "keys": styles.legend,
        "slots": [style.slot for style, _ in styles.legend],
        "chart_style": Markup(STYLE_SHEET),
    }


def write_page(
    comparison: PageSource,
    path: str | PathLike[str],
    bounds: Mapping[str, Sequence[RateBound]] = NO_BOUNDS,
) -> int:
    """Write the page of a comparison and return its size in bytes."""
    return Path(path).write_bytes(page(comparison, bounds).encode())


def panels(
    found: Sequence[Trial],
    traces: Mapping[str, Trace],
    styles: StyleMap,
    bounds: Mapping[str, Sequence[RateBound]] = NO_BOUNDS,
    *,
    lean: bool = False,
) -> tuple[Panel, ...]:
    """Return the charts of convergence of every problem, at its strictest tolerance.

    Parameters
    ----------
    found
        All trials.
    traces
        The bounds along each run, by the run's key.
    styles
        The colour and dash of each route.
    bounds
        Curves of theorems, by problem.
    lean
        Whether to leave out charts against iterations where there is no such bound.
    """
    charts_each = 1 if lean else 2
    share = MAX_TOTAL_POINTS // max(charts_each * _curves(found, traces), 1)
    max_points = min(max(share, MIN_CURVE_POINTS), MAX_POINTS)

    by_problem = grouped(found, lambda trial: trial.first.problem)
    out = []
    for number, (problem, own) in enumerate(by_problem.items(), 1):
        strictest = _strictest(own)
        rates = bounds.get(problem, ())
        axes: list[Abscissa] = ["seconds"]
        if rates or not lean:
            axes.append("iterations")
        charts = tuple(
            convergence_chart(
                f"convergence-{number}-{axis}", strictest, traces, styles, axis, rates, max_points
            )
            for axis in axes
        )
        out.append(Panel(problem, charts, _curves(strictest, traces)))
    return tuple(out)


def _strictest(own: Sequence[Trial]) -> list[Trial]:
    """The trials on one problem at the smallest tolerance."""
    tol = min(trial.first.tol for trial in own)
    return [trial for trial in own if trial.first.tol == tol]


def _curves(found: Sequence[Trial], traces: Mapping[str, Trace]) -> int:
    """How many trials have more than an end point."""
    return sum(len(traces.get(shown(trial).key, ())) > 1 for trial in found)


def _learned(found: Sequence[Trial], comparison: PageSource, styles: StyleMap) -> list[Learned]:
    out: list[Learned] = []
    left = MAX_BYTES
    for own in grouped(found, lambda trial: trial.first.problem).values():
        seen = learned(_strictest(own), comparison.arrays, styles, left)
        if seen is not None:
            out.append(seen)
            left -= seen.size
    return out


def _summary(runs: Sequence[Run]) -> str:
    """How much was run, with which settings, and when, in one line."""
    if not runs:
        return "no runs"
    parts = [
        _counted(len(runs), "run"),
        _counted(len({run.problem for run in runs}), "problem"),
        _counted(len({run.backend for run in runs}), "backend"),
    ]
    asked = {settings(run) for run in runs}
    # Settings that differ are told run by run; up here only the tolerances.
    if len(asked) == 1:
        parts += asked
    else:
        parts.append(f"tol {' and '.join(sorted({f'{run.tol:.0e}' for run in runs}))}")
    days = sorted(run.began[:10] for run in runs if run.began)
    return " · ".join([*parts, *dict.fromkeys(days[:1] + days[-1:])])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
