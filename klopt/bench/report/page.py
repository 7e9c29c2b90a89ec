"""A comparison as one self-contained page: no network, readable without JavaScript, all escaped.

First comes what a reader wants to know: which solver to take, in a sentence and two charts, for each
class of problems; then whether to believe it; then tables; then all else, folded, formulas last.
What the page says of a suite is computed by `klopt.bench.scores`. Points of curves, pictures and logs
share fixed budgets, so that a page of ten backends on twenty problems stays below 500 kB.
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
from klopt.bench.caught import CODE, Portfolio
from klopt.bench.citations import bibtex
from klopt.bench.environment import Environment
from klopt.bench.gap_times import reference_gap
from klopt.bench.record import Run, Trace
from klopt.bench.report.accuracy_chart import accuracy_chart
from klopt.bench.report.advice import class_sentence, headline
from klopt.bench.report.axes import MAX_POINTS
from klopt.bench.report.caught_chart import caught_chart
from klopt.bench.report.charts import STYLE_SHEET
from klopt.bench.report.classes import ProblemClass, area_of, problem_classes, slug
from klopt.bench.report.convergence_chart import Abscissa, RateBound, convergence_chart
from klopt.bench.report.embed import embedded
from klopt.bench.report.figures import Figure, shown
from klopt.bench.report.growth_chart import growth_charts, target_of
from klopt.bench.report.kernels import MAX_BYTES, Learned, learned
from klopt.bench.report.performance_profile import performance_profile
from klopt.bench.report.problem_rows import problem_rows
from klopt.bench.report.proofs import page_proofs
from klopt.bench.report.solver_notes import solver_notes
from klopt.bench.report.status_chart import status_chart
from klopt.bench.report.styles import StyleMap, styles_of
from klopt.bench.report.templates import template
from klopt.bench.report.time_chart import time_chart
from klopt.bench.report.verdict_map import verdict_map
from klopt.bench.report.views import details, families, groups, settings
from klopt.bench.run_certificates import RunCertificate
from klopt.bench.scores import LEVELS, Score, scores
from klopt.bench.summary import machine_sentence
from klopt.bench.trials import Agreement, Trial, agreement, grouped, trials
from klopt.engine.words import counted

__all__ = ["PageSource", "Panel", "page", "panels", "write_page"]

MAX_TOTAL_POINTS = 2_000
"""Points of all curves of convergence together."""
MIN_CURVE_POINTS = 20
"""What each curve gets at least."""
MAX_CURVES = 40
"""With more curves, charts against iterations are left to `klopt.bench.report.files`."""
MAX_PAGE_BYTES = 498_000
"""What a page with certificates may take, unless it takes more without them."""
MAX_POINT_PANELS = 1
"""Charts of convergence where no backend gave bounds along its way."""
MAX_KEY_CHARACTERS = 12
"""As many digits of a run's key are in its address."""
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


def page(
    comparison: PageSource,
    bounds: Mapping[str, Sequence[RateBound]] = NO_BOUNDS,
    example: Portfolio | None = None,
) -> str:
    """Return the page of a comparison, with `bounds` as dashed curves in their charts.

    `example` is shown near the top: solvers whose status is wrong on a problem that everybody knows.
    """
    runs = tuple(comparison.runs)
    found = _ordered(runs)
    known = agreement(runs)
    styles = styles_of(runs)
    anchors = _anchors(found)
    content = dict(
        **_header(comparison, runs, known),
        **_classes(runs, styles),
        **_results(found, known, styles, anchors),
        **_convergence(comparison, found, styles, bounds),
        **_charts(found, runs, styles, anchors),
        example=example,
        example_code=CODE,
        example_chart=None if example is None else caught_chart(example),
        learned=_learned(found, comparison, styles),
        environment=comparison.environment.pairs(),
        bibtex=bibtex(runs),
        data=Markup(embedded(runs, comparison.command)),
        slug=slug,
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


def _ordered(runs: Sequence[Run]) -> tuple[Trial, ...]:
    """All trials: large classes of problems first, then by name and size, whatever ran first."""
    classes = {each.name: number for number, each in enumerate(problem_classes(runs))}

    def place(trial: Trial) -> tuple[int, str, str, int, str]:
        run = trial.first
        return classes[area_of(run.family)], run.family, target_of(run), run.size, run.problem

    return tuple(sorted(trials(runs), key=place))


def _anchors(found: Sequence[Trial]) -> dict[str, str]:
    """Where the details of each run stand: by its key, so that an address outlives the page."""
    anchors: dict[str, str] = {}
    taken: set[str] = set()
    for trial in found:
        name = f"run-{slug(shown(trial).key[:MAX_KEY_CHARACTERS])}"
        while name in taken:
            name += "-x"
        taken.add(name)
        for run in trial.runs:
            anchors[run.key] = name
    return anchors


def _header(
    comparison: PageSource, runs: tuple[Run, ...], known: Mapping[str, Agreement]
) -> dict[str, Any]:
    """What was run, which statuses are confirmed, and what is wrong."""
    proven = sum(run.verdict.conclusive for run in runs)
    return {
        "summary": _summary(runs),
        "machine": machine_sentence(runs),
        "command": comparison.command,
        "wrong": [str(found) for found in known.values() if not found.holds],
        "proven": f"{proven} of {counted(len(runs), 'run')}",
        "gap": f"{reference_gap(runs):.0e}",
    }


@dataclass(frozen=True)
class ClassView:
    """What the page shows of a class of problems, or of all."""

    name: str
    slug: str
    problems: int
    sentence: str
    charts: tuple[Figure, ...]
    scores: tuple[Score, ...]


def _classes(runs: tuple[Run, ...], styles: StyleMap) -> dict[str, Any]:
    """The answer for all problems and for each class: a sentence, two charts, a table of solvers."""
    classes = problem_classes(runs)
    problems = len({run.problem for run in runs})
    profile = performance_profile(runs, styles)
    first = profile if profile.svg else time_chart(runs, styles)
    charts = (first, status_chart(runs, styles))
    every = ClassView(
        "All problems", "all", problems, headline(runs, classes), charts, scores(runs)
    )
    views = [every]
    if len(classes) > 1:
        views += [_class_view(own, styles) for own in classes]
    return {
        "classes": views,
        "levels": [f"{level:.0e}" for level in LEVELS],
        "notes": solver_notes(runs),
        "class_of": {run.family: slug(area_of(run.family)) for run in runs},
        "solvers": sorted((style.solver, name) for name, style in styles.backends.items()),
    }


def _class_view(own: ProblemClass, styles: StyleMap) -> ClassView:
    charts = (
        time_chart(own.runs, styles, f"time-{own.slug}"),
        status_chart(own.runs, styles, f"status-{own.slug}"),
    )
    sentence = class_sentence(own)
    return ClassView(own.name, own.slug, own.problems, sentence, charts, scores(own.runs))


def _results(
    found: Sequence[Trial],
    known: Mapping[str, Agreement],
    styles: StyleMap,
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    """The tables of problems and of all routes, the statements, and the details of the runs."""
    return {
        "problem_rows": problem_rows(found, known),
        "groups": groups(found, known, styles, anchors),
        "several_tols": len({trial.first.tol for trial in found}) > 1,
        "families": families(found),
        "family_of": {trial.first.problem: trial.first.family for trial in found},
        "details": grouped(details(found, anchors, styles), lambda detail: detail.problem),
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
    # On a page of many problems an end point alone says no more than the tables.
    shown_panels = [panel for panel in every if panel.curves] or every[:MAX_POINT_PANELS]
    return {"panels": {panel.problem: panel for panel in shown_panels}, "lean": lean}


def _charts(
    found: Sequence[Trial],
    runs: tuple[Run, ...],
    styles: StyleMap,
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    """The charts of all problems together, and what all charts share."""
    links = {key: f"#{anchor}" for key, anchor in anchors.items()}
    one = len({run.problem for run in runs}) == 1
    return {
        "accuracy": accuracy_chart(found, styles) if one else None,
        "growths": growth_charts(runs, styles),
        "map": verdict_map(found, links) if runs else None,
        "chart_style": Markup(STYLE_SHEET),
    }


def write_page(
    comparison: PageSource,
    path: str | PathLike[str],
    bounds: Mapping[str, Sequence[RateBound]] = NO_BOUNDS,
    example: Portfolio | None = None,
) -> int:
    """Write the page of a comparison and return its size in bytes."""
    return Path(path).write_bytes(page(comparison, bounds, example).encode())


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
        counted(len(runs), "run"),
        counted(len({run.problem for run in runs}), "problem"),
        counted(len({run.backend for run in runs}), "solver"),
    ]
    asked = {settings(run) for run in runs}
    # Settings that differ are told run by run; up here only the tolerances.
    if len(asked) == 1:
        parts += asked
    else:
        parts.append(f"tol {' and '.join(sorted({f'{run.tol:.0e}' for run in runs}))}")
    days = sorted(run.began[:10] for run in runs if run.began)
    return " · ".join([*parts, *dict.fromkeys(days[:1] + days[-1:])])
