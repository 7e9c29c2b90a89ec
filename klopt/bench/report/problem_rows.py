"""The table of problems on a page: what is proven of each, by how many solvers, and who is fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klopt.bench.report.advice import seconds_text
from klopt.bench.report.figures import relative_gap
from klopt.bench.trials import Agreement, Trial, grouped, leaders

__all__ = ["ProblemRow", "problem_rows"]

MAX_NAMES = 3
"""Solvers that a row names as the fastest."""


@dataclass(frozen=True)
class ProblemRow:
    """One problem, as the table shows it."""

    problem: str
    family: str
    certified: int
    taken: int
    """Solvers that certify it, and those that were run on it."""
    optimum: str
    gap: str
    fastest: str
    seconds: str
    sort_seconds: str
    """The time in seconds, by which the table is sorted."""
    agree: bool


def problem_rows(found: Sequence[Trial], known: Mapping[str, Agreement]) -> tuple[ProblemRow, ...]:
    """Return a row for each problem, in the order of the comparison."""
    first = leaders([run for trial in found for run in trial.runs])
    by_problem = grouped(found, lambda trial: trial.first.problem)
    return tuple(
        _row(own, known[problem], first.get(problem, ())) for problem, own in by_problem.items()
    )


def _row(own: Sequence[Trial], proof: Agreement, first: Sequence[Trial]) -> ProblemRow:
    gap = relative_gap(proof.lower, proof.upper)
    is_known = proof.holds and math.isfinite(gap)
    names = [trial.first.backend for trial in first[:MAX_NAMES]]
    if len(first) > MAX_NAMES:
        names.append("…")
    return ProblemRow(
        problem=proof.problem,
        family=own[0].first.family,
        certified=len({trial.first.backend for trial in own if trial.certified}),
        taken=len({trial.first.backend for trial in own}),
        optimum=f"{proof.upper:.6g}" if is_known else "–",
        gap=f"{gap:.0e}" if is_known else "–",
        fastest=" = ".join(names) or "nobody",
        seconds=_span(first[0]) if first else "–",
        sort_seconds=f"{first[0].seconds:.6g}" if first else "",
        agree=proof.holds,
    )


def _span(trial: Trial) -> str:
    """The median time, and of several repeats the interval in which they lie."""
    middle = seconds_text(trial.seconds)
    if len(trial.runs) == 1:
        return middle
    low, high = trial.interval
    return f"{middle} ({seconds_text(low)} to {seconds_text(high)})"
