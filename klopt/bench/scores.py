"""Scores of backends over many runs, on problems that they have in common.

A backend is judged on a problem by its best formulation there. Backends take different problems, so
that nothing is averaged over different sets and set side by side: what is compared is

    time to a proven gap     the seconds until klopt has proven a relative gap of 1e-3, 1e-6, 1e-9,
                             whatever the solver was asked for (`gap_times`, `standings`)
    pairs                    for two backends, who is faster on the problems that both took; times
                             whose intervals of repeats overlap are ties (`pairs`)
    ratio                    the geometric mean of its time over that of the fastest certified
                             backend, on problems that several took, failures charged the limit
    performance profile      rho(r) = share of all problems that a backend certifies within r times
                             the time of the fastest backend that certifies them (Dolan and Moré,
                             2002)
    growth                   the exponent p in t ~ size^p, by least squares of log time on log size
                             over certified trials, with the 95 % interval of Student's t, which is
                             wide for three sizes

What there is for a table, a chart or a page; all of it is importable from here:

    scores(runs)             -> (Score, ...), one for each backend: backend, taken, problems,
                             certified (rates at LEVELS), status (StatusScore), ratio, alone, tied,
                             faster, equal, slower, gap, estimated
    status_scores(runs)      -> {backend: StatusScore}: confirmed, claimed, almost, excess (proven
                             gap over tolerance of each claim of optimality, ascending), missed,
                             quantile(share)
    gap_times(runs, gap)     -> (GapTime, ...), one for each problem and backend: problem, family,
                             size, backend, gap, times, seconds, interval, formulation, tol, reached,
                             asked, at_most, charged, limit, ties(other)
    standings(runs, gap)     -> {family: (Standing, ...)}, best first: backend, problems, taken,
                             reached, seconds, low, high (means over the same problems), leads
    pairs(runs)              -> {(first, second): Pair}: common, faster, equal, slower
    leaders(runs)            -> {problem: (Trial, ...)}: the fastest certified, then its ties
    trials(runs)             -> (Trial, ...): runs, certified, estimated, seconds (median), interval
                             (of the repeats), ties(other), middle, first
    machine_sentence(runs)   -> how busy the computer was; of one run: load, cpu, processor_share
    summary_lines, verdict_sentence, certified_rate, estimated, fastest, agreement, growth, profile
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.gap_times import LEVELS, GapTime, Standing, gap_times, reference_gap, standings
from klopt.bench.record import Run
from klopt.bench.status_scores import StatusScore, status_scores
from klopt.bench.summary import machine_sentence, summary_lines, verdict_sentence
from klopt.bench.times import CLOCK_TICK_S, geometric_mean, shift_of, shifted_mean
from klopt.bench.trials import (
    Agreement,
    Trial,
    agreement,
    certified_at,
    fastest,
    grouped,
    leaders,
    route,
    strictest,
    trials,
)
from klopt.proof.certificate import Verdict

__all__ = [
    "LEVELS",
    "Agreement",
    "GapTime",
    "Growth",
    "Pair",
    "Score",
    "Standing",
    "StatusScore",
    "Trial",
    "agreement",
    "certified_at",
    "certified_rate",
    "estimated",
    "fastest",
    "gap_times",
    "growth",
    "leaders",
    "machine_sentence",
    "mean_gap",
    "pairs",
    "profile",
    "ratios",
    "reference_gap",
    "route",
    "scores",
    "shift_of",
    "shifted_geometric_mean",
    "standings",
    "status_scores",
    "summary_lines",
    "taken",
    "trials",
    "verdict_sentence",
]

CONFIDENCE = 0.95
"""That of the interval of a growth exponent."""
MIN_SIZES = 3
"""Sizes that a fit of growth needs."""
SMALLEST_GAP = 1e-12
"""The smallest relative gap that is told from 0."""


def taken(runs: Sequence[Run]) -> Mapping[str, int]:
    """Return on how many problems each backend was run."""
    own_runs = _by_backend(runs).items()
    return {backend: len({run.problem for run in own}) for backend, own in own_runs}


def certified_rate(runs: Sequence[Run], tol: float) -> Mapping[str, float]:
    """Return the share of its problems that each backend certified to a relative gap of `tol`.

    What counts is the gap that klopt proved, not the tolerance that was asked for.
    """
    proven: dict[str, set[str]] = {}
    for trial in trials(runs):
        if all(certified_at(run, tol) for run in trial.runs):
            proven.setdefault(trial.first.backend, set()).add(trial.first.problem)
    return {name: len(proven.get(name, ())) / count for name, count in taken(runs).items()}


def estimated(runs: Sequence[Run]) -> Mapping[str, int]:
    """Return on how many problems each backend gives an estimate and no proof.

    What counts is the strictest tolerance asked for on each problem.
    """
    certified: dict[str, set[str]] = {}
    only_estimated: dict[str, set[str]] = {}
    for trial in trials(strictest(runs)):
        if trial.certified:
            certified.setdefault(trial.first.backend, set()).add(trial.first.problem)
        elif trial.estimated:
            only_estimated.setdefault(trial.first.backend, set()).add(trial.first.problem)
    return {
        name: len(only_estimated.get(name, set()) - certified.get(name, set()))
        for name in taken(runs)
    }


def shifted_geometric_mean(runs: Sequence[Run], shift: float | None = None) -> Mapping[str, float]:
    """Return each backend's shifted geometric mean of seconds over the problems it was run on.

    Compare the means of backends that took the same problems; `taken` says how many.
    """
    s = shift_of(runs) if shift is None else shift
    best = _best(runs).items()
    return {name: shifted_mean([trial.seconds for trial in own], s) for name, own in best}


def mean_gap(runs: Sequence[Run], floor: float = SMALLEST_GAP) -> Mapping[str, float]:
    """Return each backend's geometric mean of the relative gaps proven.

    Gaps lie between `floor`, which keeps a single 0 from deciding, and 1, for nothing proven.
    """
    best = _best(runs).items()
    return {
        name: geometric_mean([_gap(trial.middle, floor) for trial in own]) for name, own in best
    }


@dataclass(frozen=True)
class Pair:
    """Two backends on the problems and tolerances that both took and one of them certifies."""

    faster: int
    """Where the first is faster, or the only one that is certified."""
    equal: int
    """Where both are certified and their times cannot be told apart."""
    slower: int

    @property
    def common(self) -> int:
        """On how many they are compared."""
        return self.faster + self.equal + self.slower


def pairs(runs: Sequence[Run]) -> Mapping[tuple[str, str], Pair]:
    """Return for each ordered pair of backends who is faster on what both took."""
    best = {name: {_case(trial): trial for trial in own} for name, own in _best(runs).items()}
    found = {}
    for one, other in combinations(best, 2):
        common = best[one].keys() & best[other].keys()
        outcomes = [_outcome(best[one][case], best[other][case]) for case in common]
        faster = outcomes.count("faster")
        slower = outcomes.count("slower")
        equal = outcomes.count("equal")
        found[one, other] = Pair(faster, equal, slower)
        found[other, one] = Pair(slower, equal, faster)
    return found


def _outcome(one: Trial, other: Trial) -> str:
    """How the first of two compares; "" where neither is certified."""
    if not (one.certified or other.certified):
        return ""
    if one.certified and other.certified:
        if one.ties(other):
            return "equal"
        return "faster" if one.seconds < other.seconds else "slower"
    return "faster" if one.certified else "slower"


def ratios(runs: Sequence[Run]) -> Mapping[str, float]:
    """Return how many times as long as the fastest each backend takes, in the geometric mean.

    What counts are problems that several backends took and one certifies; NaN without such.
    """
    best = _best(runs)
    on_case: dict[tuple[str, float], list[Trial]] = {}
    for own in best.values():
        for trial in own:
            on_case.setdefault(_case(trial), []).append(trial)
    least = {
        case: min(max(trial.seconds, CLOCK_TICK_S) for trial in own if trial.certified)
        for case, own in on_case.items()
        if len(own) > 1 and any(trial.certified for trial in own)
    }
    found = {}
    for name, own in best.items():
        shared = [
            max(trial.seconds, CLOCK_TICK_S) / least[_case(trial)]
            for trial in own
            if _case(trial) in least
        ]
        found[name] = geometric_mean(shared) if shared else math.nan
    return found


def profile(
    runs: Sequence[Run], gap: float | None = None
) -> Mapping[str, tuple[FloatArray, FloatArray]]:
    """Return each backend's performance profile: from ratio r_i on, it certifies the share rho_i.

    Ratios ascend from 1 on. Backends that certify nothing have empty arrays; problems that a
    backend does not take or does not certify count as not solved.

    Parameters
    ----------
    runs
        Those of a comparison, or of one class of problems in it.
    gap
        With it, times are those to a proven gap; without it, those to the tolerance asked for, and
        each tolerance of a problem counts by itself.
    """
    times = _certified_times(runs) if gap is None else _times_to(runs, gap)
    cases = {(run.problem, run.tol if gap is None else gap) for run in runs}
    count = len(cases)
    fastest_times: dict[tuple[str, float], float] = {}
    for own in times.values():
        for case, seconds in own.items():
            fastest_times[case] = min(seconds, fastest_times.get(case, math.inf))

    profiles = {}
    for name, own in times.items():
        relative = [seconds / fastest_times[case] for case, seconds in own.items()]
        distinct, often = np.unique(relative, return_counts=True)
        profiles[name] = distinct.astype(float), np.cumsum(often) / count
    return profiles


def _certified_times(runs: Sequence[Run]) -> dict[str, dict[tuple[str, float], float]]:
    return {
        name: {_case(trial): max(trial.seconds, CLOCK_TICK_S) for trial in own if trial.certified}
        for name, own in _best(runs).items()
    }


def _times_to(runs: Sequence[Run], gap: float) -> dict[str, dict[tuple[str, float], float]]:
    by_backend = grouped(gap_times(runs, gap), lambda found: found.backend)
    return {
        name: {(each.problem, gap): max(each.seconds, CLOCK_TICK_S) for each in own if each.reached}
        for name, own in by_backend.items()
    }


@dataclass(frozen=True)
class Growth:
    """Time grows like size^exponent; the interval holds the exponent with 95 % confidence."""

    exponent: float
    low: float
    high: float
    factor: float
    """Seconds at size 1 on the fitted line."""
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"size^{self.exponent:.2g} ({self.low:.2g} to {self.high:.2g})"


def growth(runs: Sequence[Run]) -> Mapping[tuple[str, str], Growth | None]:
    """Return how time grows with size for each family and route.

    None where fewer than three sizes are certified.
    """
    tried = trials(strictest(runs))
    routes = grouped(tried, lambda trial: (trial.first.family, route(trial.first)))
    return {key: _fitted(own) for key, own in routes.items()}


def _fitted(tried: Sequence[Trial]) -> Growth | None:
    found = [trial for trial in tried if trial.certified and trial.first.size > 0]
    sizes = tuple(sorted({trial.first.size for trial in found}))
    if len(sizes) < MIN_SIZES:
        return None
    from scipy import stats

    log_size = np.log([trial.first.size for trial in found])
    log_time = np.log([max(trial.seconds, CLOCK_TICK_S) for trial in found])
    line = stats.linregress(log_size, log_time)
    exponent = float(line.slope)
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(found) - 2)
    half = float(quantile * line.stderr)
    factor = float(np.exp(line.intercept))
    return Growth(exponent, exponent - half, exponent + half, factor, sizes)


@dataclass(frozen=True)
class Score:
    """One backend over a whole comparison."""

    backend: str
    taken: int
    """Problems it was run on."""
    problems: int
    """Problems in the comparison."""
    certified: tuple[float, ...]
    """Certified rates at `LEVELS`."""
    status: StatusScore
    """How its statuses compare with what is proven."""
    ratio: float
    """Times as long as the fastest certified backend, on problems that several took."""
    alone: int
    """Problems on which it is the fastest certified one, and no other ties with it."""
    tied: int
    """Problems on which it ties with others for the fastest."""
    faster: int
    equal: int
    slower: int
    """Pairs with another backend on one problem: where it is faster, ties, is slower."""
    gap: float
    """Geometric mean of the relative gaps proven."""
    estimated: int = 0
    """Problems on which it gives an estimate and no proof."""


def scores(runs: Sequence[Run]) -> tuple[Score, ...]:
    """Return one score for each backend: most problems certified first, then fastest."""
    problems = len({run.problem for run in runs})
    statuses = status_scores(runs)
    rates = [certified_rate(runs, level) for level in LEVELS]
    estimates = estimated(runs)
    slowness = ratios(runs)
    gaps = mean_gap(runs)
    first = list(leaders(runs).values())
    compared = pairs(runs)
    found = []
    for name, count in taken(runs).items():
        leading = [own for own in first if name in {trial.first.backend for trial in own}]
        alone = sum(len(own) == 1 for own in leading)
        own_pairs = [pair for (one, _), pair in compared.items() if one == name]
        score = Score(
            backend=name,
            taken=count,
            problems=problems,
            certified=tuple(rate[name] for rate in rates),
            status=statuses[name],
            ratio=slowness[name],
            alone=alone,
            tied=len(leading) - alone,
            faster=sum(pair.faster for pair in own_pairs),
            equal=sum(pair.equal for pair in own_pairs),
            slower=sum(pair.slower for pair in own_pairs),
            gap=gaps[name],
            estimated=estimates[name],
        )
        found.append(score)
    return tuple(sorted(found, key=_order))


def _order(score: Score) -> tuple[float, float, str]:
    ratio = math.inf if math.isnan(score.ratio) else score.ratio
    return -score.certified[1] * score.taken, ratio, score.backend


def _by_backend(runs: Sequence[Run]) -> dict[str, list[Run]]:
    return grouped(runs, lambda run: run.backend)


def _case(trial: Trial) -> tuple[str, float]:
    return trial.first.problem, trial.first.tol


def _best(runs: Sequence[Run]) -> dict[str, list[Trial]]:
    """Each backend's best trial for each problem and tolerance."""
    groups = grouped(trials(runs), lambda trial: (trial.first.backend, *_case(trial)))
    best = [min(own, key=lambda trial: trial.order) for own in groups.values()]
    return grouped(best, lambda trial: trial.first.backend)


def _gap(run: Run, floor: float) -> float:
    # A proof that there is no optimum leaves nothing open.
    if run.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return floor
    if not (math.isfinite(run.lower) and math.isfinite(run.upper)):
        return 1.0
    return min(max(run.relative_gap, floor), 1.0)
