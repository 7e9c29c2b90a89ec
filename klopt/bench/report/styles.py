"""Which colour, dash and shape stand for which backend on the whole page.

A colour belongs to a backend, the first ones to those that were run most. Where a backend takes
several routes on one problem, the second and later ones differ in dash and shape, so that a legend
rarely needs more than one entry for each backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from klopt.bench.record import Run
from klopt.bench.report.charts import COLOURS, Style
from klopt.bench.scores import route
from klopt.bench.trials import grouped

__all__ = ["StyleMap", "styles_of"]


@dataclass(frozen=True)
class StyleMap:
    """The style of every route on every problem, of every backend, and what a legend says."""

    routes: Mapping[tuple[str, str], Style]
    backends: Mapping[str, Style]
    legend: tuple[tuple[Style, str], ...]

    def of(self, run: Run) -> Style:
        """Return the style of a run."""
        return self.routes[run.problem, route(run)]


def styles_of(runs: Sequence[Run]) -> StyleMap:
    """Return the styles of a comparison."""
    often = Counter(run.backend for run in runs)
    order = sorted(often, key=lambda name: (-often[name], name))
    backends = {
        name: Style(slot=-1, colour=i % len(COLOURS), dash=i // len(COLOURS), solver=i)
        for i, name in enumerate(order)
    }
    slots: dict[tuple[str, int], Style] = {}
    routes: dict[tuple[str, str], Style] = {}
    names: dict[int, set[str]] = {}
    for (problem, backend), own in grouped(runs, lambda run: (run.problem, run.backend)).items():
        base = backends[backend]
        for variant, name in enumerate(dict.fromkeys(route(run) for run in own)):
            new = replace(base, slot=len(slots), dash=base.dash + variant)
            style = slots.setdefault((backend, variant), new)
            routes[problem, name] = style
            names.setdefault(style.slot, set()).add(name)
    legend = [
        (style, _name(backend, variant, names[style.slot]))
        for (backend, variant), style in slots.items()
    ]
    legend.sort(key=lambda entry: (entry[0].colour, entry[0].dash))
    return StyleMap(routes, backends, tuple(legend))


def _name(backend: str, variant: int, routes: set[str]) -> str:
    if len(routes) == 1:
        return next(iter(routes))
    return backend if variant == 0 else f"{backend}, route {variant + 1}"
