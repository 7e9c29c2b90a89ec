"""The map of verdicts: one cell for each problem and backend, coloured by what klopt proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from klopt.bench.report.charts import MapCell, heat_map
from klopt.bench.report.figures import SYMBOLS, TONE, Figure, shown
from klopt.bench.trials import Trial, route

__all__ = ["verdict_map"]

CAPTION = (
    "Each cell is the best formulation of a backend. ! marks a claim of the backend that klopt "
    "could not confirm, also where it made a second one; – marks a backend that was not run."
)


def verdict_map(found: Sequence[Trial], links: Mapping[str, str]) -> Figure:
    """Return the map of verdicts, problems by backends, each at the strictest tolerance.

    `links` says where a click on a run's cell leads, by the run's key.
    """
    title = "Verdicts: problem by backend"
    problems = list(dict.fromkeys(trial.first.problem for trial in found))
    often = Counter(trial.first.backend for trial in found)
    backends = sorted(often, key=lambda name: (-often[name], name))
    cells = [[_cell(problem, name, found, links) for name in backends] for problem in problems]
    return Figure("verdicts", title, CAPTION, heat_map(problems, backends, cells, title))


def _cell(problem: str, backend: str, found: Sequence[Trial], links: Mapping[str, str]) -> MapCell:
    own = [t for t in found if (t.first.problem, t.first.backend) == (problem, backend)]
    if not own:
        return MapCell("–", "", "none", "")
    best = min(own, key=lambda trial: (trial.first.tol, trial.order))
    run = shown(best)
    symbol = SYMBOLS[run.verdict]
    if run.status_confirmed is False:
        symbol += " !"
    said = "" if run.status_confirmed else f"{route(run)} says {run.says.words}"
    return MapCell(symbol, run.verdict.name, TONE[run.verdict], said, links.get(run.key, ""))
