"""The scores in words: one sentence for the top of a page and three lines for the end of a demo.

Never a winner whose answer is not certified, and never a word about the optimum where two proofs
contradict each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from klopt.bench.record import Run
from klopt.bench.trials import agreement, fastest, route, strictest, trials

__all__ = ["lessons", "verdict_sentence"]

TICK = 1e-6
"""Seconds that a clock can tell apart; no ratio is taken of less."""


def verdict_sentence(runs: Sequence[Run]) -> str:
    """Return what a comparison found, in a sentence or two: certified, fastest, and whose claims are not borne out."""
    if not runs:
        return "Nothing was run."
    wrong = [found for found in agreement(runs).values() if not found.holds]
    if wrong:
        return f"Proofs contradict each other: {wrong[0]}."
    many = len({run.problem for run in runs}) > 1
    parts = [_certified(runs), _quickest(runs), _worst_claim(runs)] if many else _one_problem(runs)
    return " ".join(part for part in parts if part)


def lessons(runs: Sequence[Run]) -> list[str]:
    """Return three lines: what is certified and whether all proofs agree, who is fast, who is honest."""
    if not runs:
        return ["Nothing was run.", "Nobody was fast.", "Nobody claimed anything."]
    first = f"{_certified(runs)} {_agreed(runs)}"
    return [first, _quickest(runs) or "No winner: nothing is certified.", _claims(runs)]


def _one_problem(runs: Sequence[Run]) -> list[str]:
    tried = trials(strictest(runs))
    certified = [trial for trial in tried if trial.certified]
    tol = tried[0].first.tol
    winner = fastest(runs).get(runs[0].problem)
    parts = [
        f"{len(certified)} of {_count(len(tried), 'route')} certify {runs[0].problem} to {tol:.0e}."
    ]
    if winner is not None:
        parts.append(f"Fastest certified: {route(winner)}, {_seconds(winner.seconds)}.")
    return [*parts, _worst_claim(runs)]


def _certified(runs: Sequence[Run]) -> str:
    problems, asked_most = {run.problem for run in runs}, strictest(runs)
    proven = {trial.first.problem for trial in trials(asked_most) if trial.certified}
    tols = sorted({run.tol for run in asked_most})
    who = _count(len({run.backend for run in runs}), "backend")
    names = ", ".join(sorted(problems - proven)[:3])
    left = (
        f"; nobody certifies {names}" + (" and others" if len(problems - proven) > 3 else "")
        if names
        else ""
    )
    asked = " or ".join(f"{tol:.0e}" for tol in tols)
    return (
        f"{len(proven)} of {_count(len(problems), 'problem')} certified to {asked} by {who}{left}."
    )


def _agreed(runs: Sequence[Run]) -> str:
    wrong = [found for found in agreement(runs).values() if not found.holds]
    return (
        "All proven intervals overlap."
        if not wrong
        else f"Proofs contradict each other: {wrong[0]}."
    )


def _quickest(runs: Sequence[Run]) -> str:
    winners = fastest(runs)
    if not winners:
        return ""
    ranking = Counter(run.backend for run in winners.values()).most_common(3)
    said = ", ".join(f"{name} on {count}" for name, count in ranking)
    slowest: dict[tuple[str, float], float] = {}
    for trial in (trial for trial in trials(runs) if trial.certified):
        case = trial.first.problem, trial.first.tol
        slowest[case] = max(trial.seconds, slowest.get(case, 0.0))
    spread, problem = max(
        (slowest[name, run.tol] / max(run.seconds, TICK), name) for name, run in winners.items()
    )
    wide = (
        f" The slowest certified route took {_times(spread)} as long on {problem}."
        if spread >= 2
        else ""
    )
    return f"Fastest certified: {said} of {_count(len(winners), 'problem')}.{wide}"


def _claims(runs: Sequence[Run]) -> str:
    claims = [claim for run in runs for claim in run.claims]
    return f"{sum(claims)} of {_count(len(claims), 'claim')} by the backends borne out. {_worst_claim(runs)}".rstrip()


def _worst_claim(runs: Sequence[Run]) -> str:
    """The claim that is farthest from what is proven; one that a second run mends only where there is no other."""
    false = [run for run in runs if run.honest is False]
    if not false:
        return ""
    worst = max(false, key=lambda run: (not run.only_first_false, _excess(run)))
    times = _excess(worst)
    if worst.only_first_false:
        width = (
            f"an interval {_times(times)} as wide as asked for"
            if math.isfinite(times)
            else "nothing to show for it"
        )
        then = "it was right" if worst.claims[-1] else f"it said {worst.says.words}"
        return f"{route(worst)} first said optimal on {worst.problem} with {width}; asked again, {then}."
    flaw = (
        f"its interval is {_times(times)} as wide as asked for"
        if math.isfinite(times)
        else "nothing bears it out"
    )
    if worst.verdict.conclusive:
        flaw = f"klopt proves it {worst.verdict.name.lower()}"
    return f"{route(worst)} says {worst.says.words} on {worst.problem}, but {flaw}."


def _excess(run: Run) -> float:
    return run.claimed_width / run.tol


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _times(ratio: float) -> str:
    """Two digits of a ratio, in words.

    >>> _times(2.24), _times(787.3), _times(4.5e9)
    ('2.2 times', '790 times', '4.5e+09 times')
    """
    short = f"{ratio:.2g}"
    return f"{float(short):.0f} times" if 10 <= ratio < 1e6 else f"{short} times"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s"
