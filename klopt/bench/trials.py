"""Repeats put together into trials, the fastest certified run, and the intersection of all proofs.

A *trial* is one route on one problem with one tolerance, limits, seed and version, and all its
repeats. It is certified if every repeat is, and its time is the median of its repeats, each that is
not certified charged the time limit. Two trials tie if their time intervals (`klopt.bench.times`)
overlap. It is estimated if it is not certified and no repeat is less
than ESTIMATED: evidence without proof, which is counted apart.

The optimum lies in every proven interval, hence in their intersection. Where that is empty a proof
is wrong: an error with two names, never an average. Estimates take no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TypeVar

from klopt.bench.record import Run
from klopt.bench.times import Interval, overlap, time_interval
from klopt.proof.certificate import Verdict, is_narrow

__all__ = [
    "Agreement",
    "Trial",
    "agreement",
    "certified_at",
    "fastest",
    "grouped",
    "leaders",
    "route",
    "strictest",
    "trials",
]

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def route(run: Run) -> str:
    """Return the name of a run's route, as `klopt.plan.Route` writes it."""
    return f"{run.backend} on {run.formulation}"


def certified_at(run: Run, tol: float) -> bool:
    """Return whether klopt proved an interval of that relative width, or no optimum."""
    if run.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return True
    return is_narrow(run.lower, run.upper, tol)


@dataclass(frozen=True)
class Trial:
    """All repeats of one route on one problem at one tolerance."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """The first repeat, for what all have in common."""
        return self.runs[0]

    @property
    def certified(self) -> bool:
        """Whether the verdict of every repeat is conclusive."""
        return all(run.verdict.conclusive for run in self.runs)

    @property
    def estimated(self) -> bool:
        """Whether every repeat is at least ESTIMATED, and not every one is certified."""
        at_least = all(run.verdict.conclusive or run.estimated for run in self.runs)
        return at_least and not self.certified

    @cached_property
    def seconds(self) -> float:
        """The median time, repeats that are not certified charged the limit."""
        return median(self._charged)

    @cached_property
    def interval(self) -> Interval:
        """The time interval of the repeats, those that are not certified charged the limit."""
        return time_interval(self._charged)

    def ties(self, other: Trial) -> bool:
        """Whether the times of two trials cannot be told apart."""
        return overlap(self.interval, other.interval)

    @property
    def _charged(self) -> list[float]:
        return [run.seconds if run.verdict.conclusive else run.time_limit for run in self.runs]

    @property
    def middle(self) -> Run:
        """The repeat of (lower) median time."""
        unknown_last = sorted(self.runs, key=lambda run: (math.isnan(run.seconds), run.seconds))
        return unknown_last[(len(self.runs) - 1) // 2]

    @property
    def order(self) -> tuple[bool, bool, float, str]:
        """What trials on one problem are sorted by: certified first, then estimated, then fast."""
        return not self.certified, not self.estimated, self.seconds, route(self.first)


def trials(runs: Sequence[Run]) -> tuple[Trial, ...]:
    """Return the runs with their repeats put together, in the order of their first appearance."""
    groups = grouped(runs, _alike).values()
    return tuple(Trial(tuple(sorted(group, key=lambda run: run.repeat))) for group in groups)


def _alike(run: Run) -> Hashable:
    """All but the number of the repeat: a store may hold a route under several limits."""
    limits = (run.time_limit, run.memory_limit, run.threads, run.seed)
    return run.problem, run.backend, run.formulation, run.tol, limits, run.version, run.source


@dataclass(frozen=True)
class Agreement:
    """The intersection of all intervals of a problem, and the two runs that give its ends."""

    problem: str
    lower: float
    upper: float
    below: Run
    above: Run

    @property
    def holds(self) -> bool:
        """Whether the intersection is not empty."""
        return self.lower <= self.upper

    def __str__(self) -> str:
        if self.holds:
            return f"{self.problem}: {self.lower:.10g} <= optimum <= {self.upper:.10g}"
        ends = f"{_claim(self.below)} and {_claim(self.above)}"
        return f"{self.problem}: {ends} do not overlap; one of the two proofs is wrong"


def agreement(runs: Sequence[Run]) -> Mapping[str, Agreement]:
    """Return the intersection of all intervals of each problem; `holds` if it is not empty."""
    by_problem = grouped(runs, lambda run: run.problem)
    return {problem: _intersection(problem, own) for problem, own in by_problem.items()}


def _intersection(problem: str, runs: Sequence[Run]) -> Agreement:
    known = [run for run in runs if not (math.isnan(run.lower) or math.isnan(run.upper))]
    if not known:
        return Agreement(problem, -math.inf, math.inf, runs[0], runs[0])
    below = max(known, key=lambda run: run.lower)
    above = min(known, key=lambda run: run.upper)
    return Agreement(problem, below.lower, above.upper, below, above)


def _claim(run: Run) -> str:
    return f"[{run.lower:.10g}, {run.upper:.10g}] by {route(run)}"


def fastest(runs: Sequence[Run]) -> Mapping[str, Run]:
    """Return the fastest certified run of each problem, by median time at the strictest tolerance.

    A problem that nobody certifies, or on which the proofs contradict each other, has none.
    """
    return {problem: found[0].middle for problem, found in leaders(runs).items()}


def leaders(runs: Sequence[Run]) -> Mapping[str, tuple[Trial, ...]]:
    """Return for each problem the fastest certified trial, then those of other backends that tie with it.

    They are those of the strictest tolerance that anybody certifies, one of each backend. A problem
    that nobody certifies, or on which the proofs contradict each other, has none.
    """
    agreed = {problem for problem, found in agreement(runs).items() if found.holds}
    certified = [trial for trial in trials(runs) if trial.certified]
    found = {}
    for problem, own in grouped(certified, lambda trial: trial.first.problem).items():
        if problem not in agreed:
            continue
        smallest = min(trial.first.tol for trial in own)
        strict = sorted((each for each in own if each.first.tol == smallest), key=_by_order)
        best = {trial.first.backend: trial for trial in reversed(strict)}
        first, *others = sorted(best.values(), key=_by_order)
        found[problem] = (first, *(other for other in others if other.ties(first)))
    return found


def _by_order(trial: Trial) -> tuple[bool, bool, float, str]:
    return trial.order


def strictest(runs: Sequence[Run]) -> list[Run]:
    """Return the runs at the smallest tolerance asked for on their problem."""
    by_problem = grouped(runs, lambda run: run.problem)
    smallest = {problem: min(run.tol for run in own) for problem, own in by_problem.items()}
    return [run for run in runs if run.tol == smallest[run.problem]]


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items that share a key, in order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
