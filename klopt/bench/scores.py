"""Scores of backends over many runs: certified rates, mean times, performance profiles, growth.

A backend is judged on a problem by its best formulation there. `klopt.bench.trials` puts repeats
together and intersects proofs, `klopt.bench.summary` says the scores in words; both are importable
from here.

    shifted geometric mean   exp(mean log(t + s)) - s. Times far below the shift s are averaged like
                             ordinary numbers, so that milliseconds do not decide; times far above
                             it by their ratios, so that one slow problem does not decide. s is a
                             hundredth of the limit, at most 10 s.
    performance profile      rho(r) = share of all problems that a backend certifies within r times
                             the time of the fastest backend that certifies them (Dolan and Moré,
                             2002).
    growth                   the exponent p in t ~ size^p, by least squares of log time on log size
                             over certified trials, with the 95 % interval of Student's t, which is
                             wide for three sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.record import Run
from klopt.bench.summary import summary_lines, verdict_sentence
from klopt.bench.trials import (
    Agreement,
    Trial,
    agreement,
    certified_at,
    fastest,
    grouped,
    route,
    strictest,
    trials,
)
from klopt.proof.certificate import Verdict

__all__ = [
    "LEVELS",
    "Agreement",
    "Growth",
    "Score",
    "Trial",
    "agreement",
    "certified_at",
    "certified_rate",
    "estimated",
    "fastest",
    "growth",
    "honesty",
    "mean_width",
    "profile",
    "route",
    "scores",
    "shift_of",
    "shifted_geometric_mean",
    "summary_lines",
    "taken",
    "trials",
    "verdict_sentence",
]

LEVELS = (1e-3, 1e-6, 1e-9)
"""The relative widths at which certified rates are given."""
CONFIDENCE = 0.95
"""That of the interval of a growth exponent."""
MIN_SIZES = 3
"""Sizes that a fit of growth needs."""
CLOCK_TICK_S = 1e-6
"""What a clock can resolve; no ratio is taken of shorter times."""
SMALLEST_WIDTH = 1e-12
"""The smallest relative width that is told from 0."""
MAX_SHIFT_S = 10.0
"""The largest shift of a geometric mean."""


def taken(runs: Sequence[Run]) -> Mapping[str, int]:
    """Return on how many problems each backend was run."""
    own_runs = _by_backend(runs).items()
    return {backend: len({run.problem for run in own}) for backend, own in own_runs}


def certified_rate(runs: Sequence[Run], tol: float) -> Mapping[str, float]:
    """Return the share of its problems that each backend certified to a relative width of `tol`.

    What counts is the width that klopt proved, not the tolerance that was asked for.
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


def honesty(runs: Sequence[Run]) -> Mapping[str, tuple[int, int]]:
    """Return how many claims of each backend klopt confirms, and how many it made.

    Where klopt asked twice both claims count, the first one as false: it is why klopt asked again.
    A claim that klopt can only estimate does not count.
    """
    counts = {}
    for name, own in _by_backend(runs).items():
        claims = [claim for run in own for claim in run.claims]
        counts[name] = (sum(claims), len(claims))
    return counts


def shift_of(runs: Sequence[Run]) -> float:
    """Return the shift of the geometric mean: a hundredth of the longest limit, at most 10 s."""
    longest = max((run.time_limit for run in runs), default=0.0)
    return min(MAX_SHIFT_S, longest / 100) or 1.0


def shifted_geometric_mean(runs: Sequence[Run], shift: float | None = None) -> Mapping[str, float]:
    """Return each backend's shifted geometric mean of seconds over the problems it was run on.

    Compare the means of backends that took the same problems; `taken` says how many.
    """
    s = shift_of(runs) if shift is None else shift
    times = {name: np.array([trial.seconds for trial in own]) for name, own in _best(runs).items()}
    return {name: _geometric_mean(t + s) - s for name, t in times.items()}


def mean_width(runs: Sequence[Run], floor: float = SMALLEST_WIDTH) -> Mapping[str, float]:
    """Return each backend's geometric mean of the relative widths proven.

    Widths lie between `floor`, which keeps a single 0 from deciding, and 1, for nothing proven.
    """
    means = {}
    for name, own in _best(runs).items():
        widths = [_width(trial.middle, floor) for trial in own]
        means[name] = _geometric_mean(np.array(widths))
    return means


def profile(runs: Sequence[Run]) -> Mapping[str, tuple[FloatArray, FloatArray]]:
    """Return each backend's performance profile: from ratio r_i on, it certifies the share rho_i.

    Ratios ascend from 1 on. Backends that certify nothing have empty arrays; problems that a
    backend does not take or does not certify count as not solved.
    """
    count = len({(run.problem, run.tol) for run in runs})
    times = {
        name: {_case(trial): max(trial.seconds, CLOCK_TICK_S) for trial in own if trial.certified}
        for name, own in _best(runs).items()
    }
    fastest_times: dict[tuple[str, float], float] = {}
    for own in times.values():
        for case, seconds in own.items():
            fastest_times[case] = min(seconds, fastest_times.get(case, math.inf))

    profiles = {}
    for name, own in times.items():
        ratios = [seconds / fastest_times[case] for case, seconds in own.items()]
        distinct, often = np.unique(ratios, return_counts=True)
        profiles[name] = distinct.astype(float), np.cumsum(often) / count
    return profiles


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
    agreed: int
    """Claims that klopt confirms."""
    claimed: int
    """Claims that it made."""
    seconds: float
    """Shifted geometric mean."""
    width: float
    """Geometric mean of the relative widths proven."""
    wins: int
    """Problems on which it is the fastest certified one."""
    estimated: int = 0
    """Problems on which it gives an estimate and no proof."""


def scores(runs: Sequence[Run]) -> tuple[Score, ...]:
    """Return one score for each backend: most problems certified first, then fastest."""
    problems = len({run.problem for run in runs})
    claims = honesty(runs)
    rates = [certified_rate(runs, level) for level in LEVELS]
    estimates = estimated(runs)
    seconds = shifted_geometric_mean(runs)
    widths = mean_width(runs)
    winners = [run.backend for run in fastest(runs).values()]
    found = []
    for name, count in taken(runs).items():
        agreed, claimed = claims[name]
        score = Score(
            backend=name,
            taken=count,
            problems=problems,
            certified=tuple(rate[name] for rate in rates),
            agreed=agreed,
            claimed=claimed,
            seconds=seconds[name],
            width=widths[name],
            wins=winners.count(name),
            estimated=estimates[name],
        )
        found.append(score)
    return tuple(sorted(found, key=_order))


def _order(score: Score) -> tuple[float, float, str]:
    return -score.certified[1] * score.taken, score.seconds, score.backend


def _by_backend(runs: Sequence[Run]) -> dict[str, list[Run]]:
    return grouped(runs, lambda run: run.backend)


def _case(trial: Trial) -> tuple[str, float]:
    return trial.first.problem, trial.first.tol


def _best(runs: Sequence[Run]) -> dict[str, list[Trial]]:
    """Each backend's best trial for each problem and tolerance."""
    groups = grouped(trials(runs), lambda trial: (trial.first.backend, *_case(trial)))
    best = [min(own, key=lambda trial: trial.order) for own in groups.values()]
    return grouped(best, lambda trial: trial.first.backend)


def _width(run: Run, floor: float) -> float:
    # A proof that there is no optimum leaves nothing open.
    if run.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return floor
    if not (math.isfinite(run.lower) and math.isfinite(run.upper)):
        return 1.0
    return min(max(run.relative_width, floor), 1.0)


def _geometric_mean(values: FloatArray) -> float:
    from scipy import stats

    return float(stats.gmean(values))
