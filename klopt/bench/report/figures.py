"""`Figure`, and what all charts of a comparison share: the repeat shown, names, symbols, units.

What is drawn as accuracy is always the relative gap that klopt proved,

    (upper - lower) / (1 + |upper|),

never a backend's own residual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from klopt.bench.record import Run
from klopt.bench.trials import Trial, route
from klopt.proof.certificate import Verdict

__all__ = ["SMALLEST_DRAWN", "SYMBOLS", "TONE", "WIDTH", "Figure", "shown"]

SMALLEST_DRAWN = 1e-16
"""Smaller relative gaps are drawn here: a logarithmic axis has no place for 0."""
SYMBOLS = {
    Verdict.OPTIMAL: "✓",
    Verdict.INFEASIBLE: "∅",
    Verdict.UNBOUNDED: "∞",
    Verdict.FEASIBLE: "◐",
    Verdict.ESTIMATED: "≈",
    Verdict.UNPROVEN: "✗",
}
"""The verdicts in one character each, the most conclusive ones first."""
TONE = {
    Verdict.OPTIMAL: "good",
    Verdict.INFEASIBLE: "fact",
    Verdict.UNBOUNDED: "fact",
    Verdict.FEASIBLE: "half",
    Verdict.ESTIMATED: "half",
    Verdict.UNPROVEN: "bad",
}
"""The name of each verdict's colour in the style sheet."""
WIDTH = "proven relative gap"
"""The label of axes of accuracy."""


@dataclass(frozen=True)
class Figure:
    """A chart and how to read it; without a chart `caption` says why there is none."""

    name: str
    title: str
    caption: str
    svg: str = ""


def shown(trial: Trial) -> Run:
    """Return the repeat that stands for all: that of median time, or one that failed."""
    failed = [run for run in trial.runs if not run.verdict.conclusive]
    # A route that fails in some repeats must not look certified.
    if failed and trial.middle.verdict.conclusive:
        return failed[0]
    return trial.middle


def short_name(trial: Trial, beside: Sequence[Trial]) -> str:
    """Return the backend's name, with the formulation where others have the same backend."""
    run = trial.first
    routes = {route(other.first) for other in beside if other.first.backend == run.backend}
    if len(routes) == 1:
        return run.backend
    return f"{run.backend} · {run.formulation}"


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) / (1 + |upper|), NaN where an end is infinite."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return math.nan
    return (upper - lower) / (1 + abs(upper))
