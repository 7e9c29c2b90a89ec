"""The chart of solver statuses: how far from the tolerance each answer called optimal is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klopt.bench.record import Run
from klopt.bench.report.axes import Axis
from klopt.bench.report.figures import Figure
from klopt.bench.report.row_chart import Mark, Row, row_chart
from klopt.bench.report.styles import StyleMap
from klopt.bench.report.templates import short
from klopt.bench.status_scores import StatusScore, status_scores
from klopt.bench.trials import grouped

__all__ = ["status_chart", "status_sentence"]

SMALLEST_RATIO = 1e-4
"""Smaller ratios are drawn here: an answer that is so good is good enough."""
CAPTION = (
    "How to read this: each mark is an answer that the solver called optimal, at its proven gap "
    "over the tolerance klopt asked for. Circles left of the line are confirmed. Diamonds right of "
    "it are not: 10 means a gap ten times as wide. A ratio near 1 is a matter of measure, not a "
    "fault; a large one is an answer not to be used as it is. The numbers say how many statuses are "
    "confirmed."
)


def status_chart(runs: Sequence[Run], styles: StyleMap, name: str = "status") -> Figure:
    """Return the proven gap over the tolerance of every claim of optimality, most misses first."""
    title = "Was the solver’s “optimal” right?"
    found = status_scores(runs)
    known = [score for score in found.values() if score.excess]
    if not known:
        return Figure(name, title, "Not drawn: no solver called an answer optimal.")
    known.sort(key=_order)
    by_solver = grouped(runs, lambda run: run.backend)
    rows = [_row(score, by_solver[score.backend], styles) for score in known]
    largest = max((r for score in known for r in score.excess if math.isfinite(r)), default=1.0)
    axis = Axis("proven gap / tolerance", SMALLEST_RATIO, max(20.0, 4 * largest), log=True)
    svg = row_chart(rows, title, axis, (1.0, "asked for"), medians=False)
    return Figure(name, title, f"{status_sentence(runs)} {CAPTION}", svg)


def status_sentence(runs: Sequence[Run]) -> str:
    """Return whose status was wrong most often, and by how much at most."""
    scores = status_scores(runs).values()
    claimed = sum(score.claimed for score in scores)
    confirmed = sum(score.confirmed for score in scores)
    if not claimed:
        return "No solver claimed anything."
    text = f"{confirmed} of {claimed} solver statuses are confirmed."
    worst = min(scores, key=_order)
    missed = worst.claimed - worst.confirmed
    if not missed:
        return text
    largest = worst.missed[-1] if worst.missed else math.inf
    far = f"at most {short(largest)} times the tolerance" if math.isfinite(largest) else "refuted"
    return f"{text} Most often not confirmed: {worst.backend}, {missed} of {worst.claimed}, {far}."


def _order(score: StatusScore) -> tuple[int, float, float, str]:
    largest = score.excess[-1] if score.excess else 0.0
    return score.confirmed - score.claimed, -largest, -len(score.excess), score.backend


def _row(score: StatusScore, runs: Sequence[Run], styles: StyleMap) -> Row:
    marks = [
        Mark(max(gap / run.tol, SMALLEST_RATIO), gap <= run.tol, _title(run, gap))
        for run in runs
        for gap in run.claimed_gaps
    ]
    return Row(
        label=score.backend,
        marks=tuple(marks),
        note=f"{score.confirmed} of {score.claimed}",
        slot=f"b-{styles.backends[score.backend].solver}",
    )


def _title(run: Run, gap: float) -> str:
    """What a mark is; those that are confirmed need no words."""
    if gap <= run.tol:
        return ""
    if not math.isfinite(gap):
        return f"{run.problem}: no interval is proven"
    return f"{run.problem}: gap {gap:.1e}, {short(gap / run.tol)} times the tolerance"
