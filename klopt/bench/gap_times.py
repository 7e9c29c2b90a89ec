"""Time to a proven gap: how long each backend takes until klopt has proven its answer that well.

Solvers mean different things by their tolerances, so that a time to "the tolerance asked for"
compares what they were asked, not what they did. What is compared here is one thing for all: the
seconds after which klopt has proven an interval of relative gap g that holds the optimum. A proof
that there is no optimum counts for every g.

The time of a backend is that of its fastest trial, over all formulations and tolerances, whose
repeats all prove the gap. It includes building the form and the proof itself. A run that was asked
for more than g proves g as well, perhaps long before it ends: its time is then an upper bound
(`at_most`), and `klopt compare --tol 1e-3,1e-6,1e-9` asks for each gap by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from klopt.bench.record import Run
from klopt.bench.times import Interval, overlap, shift_of, shifted_mean, time_interval
from klopt.bench.trials import Trial, certified_at, grouped, trials

__all__ = ["LEVELS", "GapTime", "Standing", "gap_times", "reference_gap", "standings"]

LEVELS = (1e-3, 1e-6, 1e-9)
"""The relative gaps at which backends are compared."""


@dataclass(frozen=True)
class GapTime:
    """How long a backend takes on a problem until a relative gap is proven."""

    problem: str
    family: str
    size: int
    backend: str
    gap: float
    times: tuple[float, ...]
    """The seconds of each repeat of the fastest trial that proves the gap; empty if none does."""
    formulation: str
    tol: float
    """The formulation of that trial and the tolerance that it was asked for; "" and NaN if none."""
    asked: bool
    """Whether any run was asked for this gap or a smaller one."""
    limit: float
    """The longest time limit: what is charged where the gap is not proven."""

    @property
    def reached(self) -> bool:
        """Whether the gap is proven."""
        return bool(self.times)

    @property
    def seconds(self) -> float:
        """The median of the repeats; NaN where the gap is not proven."""
        return median(self.times) if self.times else math.nan

    @property
    def charged(self) -> float:
        """The median of the repeats, or the limit where the gap is not proven."""
        return median(self.times) if self.times else self.limit

    @property
    def interval(self) -> Interval:
        """The time interval of the repeats, or the limit twice where the gap is not proven."""
        return time_interval(self.times) if self.times else (self.limit, self.limit)

    @property
    def at_most(self) -> bool:
        """Whether the run was asked for a smaller gap, so that its time is only an upper bound."""
        return self.tol < self.gap

    def ties(self, other: GapTime) -> bool:
        """Whether both prove the gap and their times cannot be told apart."""
        return self.reached and other.reached and overlap(self.interval, other.interval)


def gap_times(runs: Sequence[Run], gap: float) -> tuple[GapTime, ...]:
    """Return the time to a proven gap of every backend on every problem that it was run on."""
    groups = grouped(trials(runs), lambda trial: (trial.first.problem, trial.first.backend))
    return tuple(_gap_time(own, gap) for own in groups.values())


def _gap_time(own: Sequence[Trial], gap: float) -> GapTime:
    reaching = [trial for trial in own if all(certified_at(run, gap) for run in trial.runs)]
    best = min(reaching, key=_median, default=None)
    first = own[0].first
    return GapTime(
        problem=first.problem,
        family=first.family,
        size=first.size,
        backend=first.backend,
        gap=gap,
        times=() if best is None else tuple(run.seconds for run in best.runs),
        formulation="" if best is None else best.first.formulation,
        tol=math.nan if best is None else best.first.tol,
        asked=any(trial.first.tol <= gap for trial in own),
        limit=max(trial.first.time_limit for trial in own),
    )


def _median(trial: Trial) -> float:
    # A run that misses its own tolerance may prove a larger gap all the same.
    return median(run.seconds for run in trial.runs)


def reference_gap(runs: Sequence[Run]) -> float:
    """Return the smallest gap that was asked for on every problem: the one to compare all by."""
    strictest: dict[str, float] = {}
    for run in runs:
        strictest[run.problem] = min(run.tol, strictest.get(run.problem, math.inf))
    return max(strictest.values(), default=LEVELS[1])


@dataclass(frozen=True)
class Standing:
    """One backend among those that were run on a class of problems."""

    family: str
    backend: str
    problems: int
    """Problems of the class in the comparison."""
    taken: int
    """Those that it was run on."""
    reached: int
    """Those on which the gap is proven."""
    seconds: float
    """Shifted geometric mean over all problems of the class, those not proven charged the limit; NaN
    where it was not run on all: means over different problems cannot be compared."""
    low: float
    high: float
    """The same of the ends of the time intervals."""
    leads: bool
    """Whether it is first, or ties with the first: as many problems proven, intervals overlap."""


def standings(runs: Sequence[Run], gap: float | None = None) -> Mapping[str, tuple[Standing, ...]]:
    """Return for each class of problems who proves the gap most often, then who is fastest.

    Parameters
    ----------
    runs
        Those of a comparison.
    gap
        The relative gap to be proven; None for `reference_gap`.
    """
    wanted = reference_gap(runs) if gap is None else gap
    by_family = grouped(gap_times(runs, wanted), lambda found: found.family)
    shift = shift_of(runs)
    return {family: _ranked(family, own, shift) for family, own in by_family.items()}


def _ranked(family: str, times: Sequence[GapTime], shift: float) -> tuple[Standing, ...]:
    problems = len({found.problem for found in times})
    by_backend = grouped(times, lambda found: found.backend)
    rows = [_standing(family, problems, own, shift) for own in by_backend.values()]
    rows.sort(key=lambda row: (-row.reached, math.isnan(row.seconds), row.seconds, row.backend))
    first = rows[0]

    ranked = []
    for row in rows:
        as_many = row.reached == first.reached > 0
        overlaps = row is first or row.low <= first.high
        ranked.append(replace(row, leads=as_many and overlaps))
    return tuple(ranked)


def _standing(family: str, problems: int, own: Sequence[GapTime], shift: float) -> Standing:
    on_all = len(own) == problems
    lows, highs = zip(*(found.interval for found in own), strict=True)
    return Standing(
        family=family,
        backend=own[0].backend,
        problems=problems,
        taken=len(own),
        reached=sum(found.reached for found in own),
        seconds=shifted_mean([found.charged for found in own], shift) if on_all else math.nan,
        low=shifted_mean(lows, shift) if on_all else math.nan,
        high=shifted_mean(highs, shift) if on_all else math.nan,
        leads=False,
    )
