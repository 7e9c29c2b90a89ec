"""What many runs say together: who is certified, honest and fast, how time grows, and whether all proofs agree.

A backend is judged on a problem by its best formulation there. See `klopt.bench.trials` for repeats
and agreement, `klopt.bench.summary` for the same in words; both are importable from here.

    shifted geometric mean   exp(mean log(t + s)) - s. Times far below the shift s are averaged like ordinary numbers,
                             so that milliseconds do not decide; times far above it by their ratios, so that one slow
                             problem does not decide. s is a hundredth of the limit, at most 10 s.
    performance profile      rho(r) = share of all problems that a backend certifies within r times the time of the
                             fastest backend that certifies them (Dolan and Moré, 2002).
    growth                   the gradient p of log time on log size over certified trials, t ~ size^p, with the 95 %
                             interval of Student's t; with three sizes it is wide, and rightly so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.record import Run
from klopt.bench.summary import lessons, verdict_sentence
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
    "fastest",
    "growth",
    "honesty",
    "lessons",
    "mean_width",
    "profile",
    "route",
    "scores",
    "shift_of",
    "shifted_geometric_mean",
    "taken",
    "trials",
    "verdict_sentence",
]

LEVELS = (1e-3, 1e-6, 1e-9)
"""The relative widths at which certified rates are told."""
CONFIDENCE = 0.95
TICK = 1e-6
"""Seconds that a clock can tell apart; no ratio is taken of less."""
FLOOR = 1e-12
"""The smallest relative width that is told from 0."""


def taken(runs: Sequence[Run]) -> Mapping[str, int]:
    """Return on how many problems each backend was run."""
    return {
        backend: len({run.problem for run in own}) for backend, own in _by_backend(runs).items()
    }


def certified_rate(runs: Sequence[Run], tol: float) -> Mapping[str, float]:
    """Return the share of the problems it was run on that each backend certified to a relative width of `tol`.

    What counts is the width that klopt proved, not the tolerance that was asked for.
    """
    tried = taken(runs)
    proven = [
        trial.first for trial in trials(runs) if all(certified_at(run, tol) for run in trial.runs)
    ]
    return {
        name: len({run.problem for run in proven if run.backend == name}) / tried[name]
        for name in tried
    }


def honesty(runs: Sequence[Run]) -> Mapping[str, tuple[int, int]]:
    """Return how many claims of each backend agree with klopt's verdict, and how many it made.

    Where klopt asked twice both claims count, the first one as false: it is why klopt asked again.
    """
    claims = {
        name: [claim for run in own for claim in run.claims]
        for name, own in _by_backend(runs).items()
    }
    return {name: (sum(own), len(own)) for name, own in claims.items()}


def shift_of(runs: Sequence[Run]) -> float:
    """Return the shift of the geometric mean: a hundredth of the longest limit, at most 10 s."""
    return min(10.0, max((run.time_limit for run in runs), default=0.0) / 100) or 1.0


def shifted_geometric_mean(runs: Sequence[Run], shift: float | None = None) -> Mapping[str, float]:
    """Return each backend's shifted geometric mean of seconds over the problems it was run on.

    Compare the means of backends that took the same problems; `taken` says how many.
    """
    s = shift_of(runs) if shift is None else shift
    times = {name: np.array([trial.seconds for trial in own]) for name, own in _best(runs).items()}
    return {name: _geometric_mean(t + s) - s for name, t in times.items()}


def mean_width(runs: Sequence[Run], floor: float = FLOOR) -> Mapping[str, float]:
    """Return each backend's geometric mean of the relative widths proven, between `floor` and 1 (nothing proven).

    The floor keeps a width of 0 from making the mean 0 whatever the rest.
    """
    best = {name: [trial.middle for trial in own] for name, own in _best(runs).items()}
    return {
        name: _geometric_mean(np.array([_width(run, floor) for run in own]))
        for name, own in best.items()
    }


def profile(runs: Sequence[Run]) -> Mapping[str, tuple[FloatArray, FloatArray]]:
    """Return each backend's performance profile: from ratio r_i on, it certifies the share rho_i of all problems.

    Ratios ascend from 1 on. Backends that certify nothing have empty arrays; problems that a
    backend does not take or does not certify count as not solved.
    """
    best = _best(runs)
    count = len({(run.problem, run.tol) for run in runs})
    certified = {
        name: {_case(trial): max(trial.seconds, TICK) for trial in own if trial.certified}
        for name, own in best.items()
    }
    record = {
        case: min(own[case] for own in certified.values() if case in own)
        for case in set().union(*certified.values())
    }
    profiles = {}
    for name, own in certified.items():
        ratios, counts = np.unique(
            [seconds / record[case] for case, seconds in own.items()], return_counts=True
        )
        profiles[name] = ratios.astype(float), np.cumsum(counts) / count
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
    """Return how time grows with size for each family and route; None where fewer than three sizes are certified."""
    routes = grouped(
        trials(strictest(runs)), lambda trial: (trial.first.family, route(trial.first))
    )
    return {
        key: _fitted([trial for trial in own if trial.certified]) for key, own in routes.items()
    }


def _fitted(found: Sequence[Trial]) -> Growth | None:
    sizes = tuple(sorted({trial.first.size for trial in found if trial.first.size > 0}))
    if len(sizes) < 3:
        return None
    from scipy import stats

    points = [
        (trial.first.size, max(trial.seconds, TICK)) for trial in found if trial.first.size > 0
    ]
    x, t = np.log(np.array(points, dtype=float)).T
    line = stats.linregress(x, t)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(points) - 2) * line.stderr)
    gradient = float(line.slope)
    return Growth(gradient, gradient - half, gradient + half, float(np.exp(line.intercept)), sizes)


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
    claimed: int
    seconds: float
    """Shifted geometric mean."""
    width: float
    """Geometric mean of the relative widths proven."""
    wins: int
    """Problems on which it is the fastest certified one."""


def scores(runs: Sequence[Run]) -> tuple[Score, ...]:
    """Return one score for each backend: most problems certified first, then fastest."""
    count, tried, claims = len({run.problem for run in runs}), taken(runs), honesty(runs)
    rates = [certified_rate(runs, level) for level in LEVELS]
    means, widths, winners = (
        shifted_geometric_mean(runs),
        mean_width(runs),
        [run.backend for run in fastest(runs).values()],
    )
    found = [
        Score(
            n,
            tried[n],
            count,
            tuple(rate[n] for rate in rates),
            *claims[n],
            means[n],
            widths[n],
            winners.count(n),
        )
        for n in tried
    ]
    return tuple(
        sorted(
            found,
            key=lambda score: (-score.certified[1] * score.taken, score.seconds, score.backend),
        )
    )


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
    if run.verdict in (Verdict.INFEASIBLE, Verdict.UNBOUNDED):
        return floor
    finite = math.isfinite(run.lower) and math.isfinite(run.upper)
    return min(max(run.relative_width, floor), 1.0) if finite else 1.0


def _geometric_mean(values: FloatArray) -> float:
    from scipy import stats

    return float(stats.gmean(values))
