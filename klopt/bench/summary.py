"""The scores in words: one sentence for the top of a page, and three lines for the end of a demo.

A winner is always certified, and nothing is said of an optimum where two proofs contradict each
other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from klopt.bench.record import Run
from klopt.bench.trials import agreement, fastest, route, strictest, trials

__all__ = ["summary_lines", "verdict_sentence"]

CLOCK_TICK_S = 1e-6
"""What a clock can resolve; no ratio is taken of shorter times."""
MIN_SPREAD = 2
"""From this ratio on, the slowest certified route is mentioned."""
MAX_NAMES = 3
"""Names that a sentence lists."""


def verdict_sentence(runs: Sequence[Run]) -> str:
    """Return in a sentence or two what is certified, who is fastest, and the worst false claim."""
    if not runs:
        return "Nothing was run."
    # Nothing else matters where a proof is wrong.
    wrong = [found for found in agreement(runs).values() if not found.holds]
    if wrong:
        return f"Proofs contradict each other: {wrong[0]}."
    if len({run.problem for run in runs}) > 1:
        parts = [_certified(runs), _quickest(runs), _worst_claim(runs)]
    else:
        parts = _one_problem(runs)
    return " ".join(part for part in parts if part)


def summary_lines(runs: Sequence[Run]) -> list[str]:
    """Return three lines: what is certified, who is fast, how many claims are confirmed."""
    if not runs:
        return ["Nothing was run.", "No winner: nothing was run.", "No claims were made."]
    first = f"{_certified(runs)} {_agreed(runs)}"
    return [first, _quickest(runs) or "No winner: nothing is certified.", _claims(runs)]


def _one_problem(runs: Sequence[Run]) -> list[str]:
    tried = trials(strictest(runs))
    certified = [trial for trial in tried if trial.certified]
    tol = tried[0].first.tol
    routes = _count(len(tried), "route")
    only = sum(trial.estimated for trial in tried)
    estimated = f"; {only} estimate{'s' * (only == 1)} it without proof" if only else ""
    parts = [f"{len(certified)} of {routes} certify {runs[0].problem} to {tol:.0e}{estimated}."]
    winner = fastest(runs).get(runs[0].problem)
    if winner is not None:
        parts.append(f"Fastest certified: {route(winner)}, {_seconds(winner.seconds)}.")
    return [*parts, _worst_claim(runs)]


def _certified(runs: Sequence[Run]) -> str:
    strict = strictest(runs)
    problems = {run.problem for run in runs}
    proven = {trial.first.problem for trial in trials(strict) if trial.certified}
    open_problems = sorted(problems - proven)
    estimated = {trial.first.problem for trial in trials(strict) if trial.estimated} - proven
    left = ""
    if estimated:
        left = f"; {len(estimated)} only estimated"
    if open_problems:
        left += f"; nobody certifies {', '.join(open_problems[:MAX_NAMES])}"
        if len(open_problems) > MAX_NAMES:
            left += " and others"
    tolerances = " or ".join(f"{tol:.0e}" for tol in sorted({run.tol for run in strict}))
    found = f"{len(proven)} of {_count(len(problems), 'problem')} certified to {tolerances}"
    backends = _count(len({run.backend for run in runs}), "backend")
    return f"{found} by {backends}{left}."


def _agreed(runs: Sequence[Run]) -> str:
    wrong = [found for found in agreement(runs).values() if not found.holds]
    if wrong:
        return f"Proofs contradict each other: {wrong[0]}."
    return "All proven intervals overlap."


def _quickest(runs: Sequence[Run]) -> str:
    winners = fastest(runs)
    if not winners:
        return ""
    ranking = Counter(run.backend for run in winners.values()).most_common(MAX_NAMES)
    names = ", ".join(f"{name} on {count}" for name, count in ranking)
    sentence = f"Fastest certified: {names} of {_count(len(winners), 'problem')}."

    slowest: dict[tuple[str, float], float] = {}
    for trial in trials(runs):
        if trial.certified:
            case = (trial.first.problem, trial.first.tol)
            slowest[case] = max(trial.seconds, slowest.get(case, 0.0))
    spread, problem = max(
        (slowest[name, run.tol] / max(run.seconds, CLOCK_TICK_S), name)
        for name, run in winners.items()
    )
    if spread >= MIN_SPREAD:
        sentence += f" The slowest certified route took {_times(spread)} as long on {problem}."
    return sentence


def _claims(runs: Sequence[Run]) -> str:
    claims = [claim for run in runs for claim in run.claims]
    counted = f"{sum(claims)} of {_count(len(claims), 'claim')} by the backends confirmed."
    return f"{counted} {_worst_claim(runs)}".rstrip()


def _worst_claim(runs: Sequence[Run]) -> str:
    """The claim farthest from what is proven, preferably one that no second run corrects."""
    false = [run for run in runs if run.honest is False]
    if not false:
        return ""
    worst = max(false, key=lambda run: (not run.only_first_false, _excess(run)))
    if worst.only_first_false:
        return _first_claim(worst)
    times = _excess(worst)
    if worst.verdict.conclusive:
        flaw = f"klopt proves it {worst.verdict.name.lower()}"
    elif math.isfinite(times):
        flaw = f"its interval is {_times(times)} as wide as asked for"
    else:
        flaw = "nothing confirms it"
    return f"{route(worst)} says {worst.says.words} on {worst.problem}, but {flaw}."


def _first_claim(run: Run) -> str:
    """A first claim that is false, and what the backend said when it was asked again."""
    times = _excess(run)
    if math.isfinite(times):
        proven = f"an interval {_times(times)} as wide as asked for"
    else:
        proven = "no proven interval"
    then = "it was right" if run.claims[-1] else f"it said {run.says.words}"
    claim = f"{route(run)} first said optimal on {run.problem} with {proven}"
    return f"{claim}; asked again, {then}."


def _excess(run: Run) -> float:
    return run.claimed_width / run.tol


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _times(ratio: float) -> str:
    """Two digits of a ratio, in words.

    >>> _times(2.24), _times(787.3), _times(4.5e9)
    ('2.2 times', '790 times', '4.5e+09 times')
    """
    short = f"{ratio:.2g}"
    return f"{float(short):.0f} times" if 10 <= ratio < 1e6 else f"{short} times"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s"
