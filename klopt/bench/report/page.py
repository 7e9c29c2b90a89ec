"""A comparison as one self-contained page: no network, readable without JavaScript, everything from outside escaped.

What comes first is what a reader came for: the verdict in a sentence, then the table. What the page
says of a suite is computed by `klopt.bench.scores`. Points of curves, pictures and logs share fixed
budgets, so that a page of ten backends on twenty problems stays below 500 kB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from markupsafe import Markup

from klopt.arrays import FloatArray
from klopt.bench.citations import bibtex
from klopt.bench.environment import Environment
from klopt.bench.record import Run, Trace
from klopt.bench.report.axes import MOST_POINTS
from klopt.bench.report.charts import STYLE_SHEET
from klopt.bench.report.embed import embedded
from klopt.bench.report.figures import (
    Against,
    Bound,
    Figure,
    accuracy,
    convergence,
    growths,
    profiles,
    shown,
    verdict_map,
)
from klopt.bench.report.kernels import PICTURES, Learned, learned
from klopt.bench.report.styles import Looks, looks_of
from klopt.bench.report.templates import template
from klopt.bench.report.views import details, groups, programs, settings
from klopt.bench.scores import LEVELS, Trial, agreement, lessons, scores, trials, verdict_sentence
from klopt.bench.trials import grouped

__all__ = ["Compared", "Panel", "page", "panels", "write_page"]

POINTS = 3_200
"""Points of all curves of convergence together."""
LEAN = 40
"""Curves above which charts against iterations are left to `klopt.bench.report.files`."""
OPEN = 3
"""Problems whose charts of convergence are open from the start."""
NO_BOUNDS: Mapping[str, Sequence[Bound]] = MappingProxyType({})


class Compared(Protocol):
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


@dataclass(frozen=True)
class Panel:
    """The charts of convergence of one problem; `curves` counts the routes with more than an end point."""

    problem: str
    figures: tuple[Figure, ...]
    curves: int


def page(comparison: Compared, bounds: Mapping[str, Sequence[Bound]] = NO_BOUNDS) -> str:
    """Return the page of a comparison; `bounds` are drawn dashed in the charts of the problems they are for."""
    runs = tuple(comparison.runs)
    found = trials(runs)
    known, looks = agreement(runs), looks_of(runs)
    anchors = {run.key: f"r{i}" for i, trial in enumerate(found) for run in trial.runs}
    links = {key: f"#{anchor}" for key, anchor in anchors.items()}
    many, lean = len(known) > 1, _curves(found, comparison.traces) > LEAN
    every = panels(found, comparison.traces, looks, bounds, lean=lean)
    curved = tuple(panel for panel in every if panel.curves)
    sentence, _, rest = verdict_sentence(runs).partition(". ")
    return template("page.html.jinja").render(
        sentence=sentence + "." * bool(rest),
        rest="" if many else rest,
        lessons=[text.removeprefix(f"{sentence}. ") for text in lessons(runs)] if many else [],
        summary=_summary(runs),
        command=comparison.command,
        wrong=[str(found) for found in known.values() if not found.holds],
        scores=scores(runs) if many else (),
        levels=[f"{level:.0e}" for level in LEVELS],
        groups=groups(found, known, looks, anchors),
        several_tols=len({run.tol for run in runs}) > 1,
        programs=programs(found, known),
        panels=curved or every,
        points_only=[panel.problem for panel in every if curved and not panel.curves],
        lean=lean,
        open_panels=OPEN,
        keys=looks.legend,
        suite=(accuracy(found, looks), profiles(runs, looks), *growths(runs, looks)),
        map=verdict_map(found, links) if runs else None,
        learned=_learned(found, comparison, looks),
        details=grouped(details(found, anchors), lambda detail: detail.problem),
        chart_style=Markup(STYLE_SHEET),
        slots=[style.slot for style, _ in looks.legend],
        environment=comparison.environment.pairs(),
        bibtex=bibtex(runs),
        data=Markup(embedded(runs, comparison.command)),
    )


def write_page(
    comparison: Compared,
    path: str | PathLike[str],
    bounds: Mapping[str, Sequence[Bound]] = NO_BOUNDS,
) -> int:
    """Write the page of a comparison and return its size in bytes."""
    return Path(path).write_bytes(page(comparison, bounds).encode())


def panels(
    found: Sequence[Trial],
    traces: Mapping[str, Trace],
    looks: Looks,
    bounds: Mapping[str, Sequence[Bound]] = NO_BOUNDS,
    *,
    lean: bool = False,
) -> tuple[Panel, ...]:
    """Return the charts of convergence of every problem at its strictest tolerance, numbered from 1.

    Curves have fewer points where there are many of them; `lean` leaves the charts against
    iterations out where no bound is promised.
    """
    most = min(max(POINTS // max((1 if lean else 2) * _curves(found, traces), 1), 24), MOST_POINTS)
    out = []
    for number, (problem, own) in enumerate(
        grouped(found, lambda trial: trial.first.problem).items(), 1
    ):
        tol = min(trial.first.tol for trial in own)
        strictest = [trial for trial in own if trial.first.tol == tol]
        promised = bounds.get(problem, ())
        axes: tuple[Against, ...] = (
            ("seconds",) if lean and not promised else ("seconds", "iterations")
        )
        charts = (
            convergence(
                f"convergence-{number}-{axis}", strictest, traces, looks, axis, promised, most
            )
            for axis in axes
        )
        out.append(Panel(problem, tuple(charts), _curves(strictest, traces)))
    return tuple(out)


def _curves(found: Sequence[Trial], traces: Mapping[str, Trace]) -> int:
    """How many trials have more than an end point."""
    return sum(len(traces.get(shown(trial).key, ())) > 1 for trial in found)


def _learned(found: Sequence[Trial], comparison: Compared, looks: Looks) -> list[Learned]:
    out: list[Learned] = []
    left = PICTURES
    for own in grouped(found, lambda trial: trial.first.problem).values():
        strictest = [trial for trial in own if trial.first.tol == min(t.first.tol for t in own)]
        seen = learned(strictest, comparison.arrays, looks, left)
        if seen is not None:
            out.append(seen)
            left -= seen.size
    return out


def _summary(runs: Sequence[Run]) -> str:
    """How much was run, when, and where all have the same settings with which, in one line."""
    if not runs:
        return "no runs"
    counts = (
        (len(runs), "run"),
        (len({r.problem for r in runs}), "problem"),
        (len({r.backend for r in runs}), "backend"),
    )
    parts = [f"{number} {noun}" + "s" * (number != 1) for number, noun in counts]
    asked = {settings(run) for run in runs}
    parts += (
        asked
        if len(asked) == 1
        else [f"tol {' and '.join(sorted({f'{run.tol:.0e}' for run in runs}))}"]
    )
    days = sorted(run.began[:10] for run in runs if run.began)
    return " · ".join([*parts, *dict.fromkeys(days[:1] + days[-1:])])
