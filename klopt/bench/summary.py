"""The scores in words: one sentence for the top of a page, and three lines for the end of a demo.

A winner is always certified, and nothing is said of an optimum where two proofs contradict each
other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from klopt.bench.record import Run
from klopt.bench.times import CLOCK_TICK_S
from klopt.bench.trials import agreement, fastest, leaders, route, strictest, trials
from klopt.engine.words import counted
from klopt.model.backend import Stop

__all__ = ["machine_sentence", "summary_lines", "verdict_sentence"]

BUSY_LOAD = 1.0
"""From this load on a core has more than one process to run; one of them is klopt's own."""
MIN_PROCESSOR_SHARE = 0.9
"""Below this share of a processor a time is said to be too long."""
MIN_SPREAD = 2
"""From this ratio on, the slowest certified route is mentioned."""
MAX_NAMES = 3
"""Names that a sentence lists."""


def verdict_sentence(runs: Sequence[Run]) -> str:
    """Return in a sentence or two what is certified, who is fastest, and the largest miss."""
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
    """Return three lines: what is certified, who is fast, how many statuses are confirmed."""
    if not runs:
        return ["Nothing was run.", "No winner: nothing was run.", "No solver reported a status."]
    first = f"{_certified(runs)} {_agreed(runs)}"
    return [first, _quickest(runs) or "No winner: nothing is certified.", _claims(runs)]


def _one_problem(runs: Sequence[Run]) -> list[str]:
    tried = trials(strictest(runs))
    certified = [trial for trial in tried if trial.certified]
    tol = tried[0].first.tol
    routes = counted(len(tried), "route")
    only = sum(trial.estimated for trial in tried)
    estimated = f"; {only} estimate{'s' * (only == 1)} it without proof" if only else ""
    parts = [f"{len(certified)} of {routes} certify {runs[0].problem} to {tol:.0e}{estimated}."]
    first = leaders(runs).get(runs[0].problem, ())
    if first:
        tied = ", ".join(route(trial.first) for trial in first[1:])
        tie = f" (a tie with {tied})" if tied else ""
        parts.append(
            f"Fastest certified: {route(first[0].first)}, {_seconds(first[0].seconds)}{tie}."
        )
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
    found = f"{len(proven)} of {counted(len(problems), 'problem')} certified to {tolerances}"
    backends = counted(len({run.backend for run in runs}), "backend")
    return f"{found} by {backends}{left}."


def _agreed(runs: Sequence[Run]) -> str:
    wrong = [found for found in agreement(runs).values() if not found.holds]
    if wrong:
        return f"Proofs contradict each other: {wrong[0]}."
    return "No two certificates contradict each other."


def _quickest(runs: Sequence[Run]) -> str:
    winners = fastest(runs)
    if not winners:
        return ""
    found = list(leaders(runs).values())
    alone = [own[0].first.backend for own in found if len(own) == 1]
    ranking = Counter(alone).most_common(MAX_NAMES)
    parts = [f"{name} on {count}" for name, count in ranking]
    if len(alone) < len(found):
        parts.append(f"a tie on {len(found) - len(alone)}")
    sentence = f"Fastest certified: {', '.join(parts)} of {counted(len(found), 'problem')}."

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
    if not claims:
        return "No solver claimed anything."
    sentence = f"Solver status confirmed in {sum(claims)} of {counted(len(claims), 'claim')}."
    return f"{sentence} {_worst_claim(runs)}".rstrip()


def _worst_claim(runs: Sequence[Run]) -> str:
    """The claim farthest from what is proven, preferably one that no second run corrects."""
    missed = [run for run in runs if run.status_confirmed is False]
    if not missed:
        return ""
    worst = max(missed, key=lambda run: (not run.only_first_false, _excess(run)))
    if worst.only_first_false:
        return _first_claim(worst)
    said = f'reported "{worst.says.words}"'
    if worst.verdict.conclusive:
        flaw = f"klopt proves it {worst.verdict.name.lower()}"
    elif worst.says is Stop.OPTIMAL and math.isfinite(worst.relative_gap):
        flaw = _gap(worst.relative_gap, worst)
    else:
        flaw = "nothing proves it"
    return f"Largest miss: {_where(worst)} {said}, {flaw}."


def _first_claim(run: Run) -> str:
    """A first claim that is not confirmed, and what the backend said when it was asked again."""
    proven = "no proven interval"
    if math.isfinite(run.first_gap):
        proven = _gap(run.first_gap, run)
    then = "confirmed" if run.claims[-1] else f'"{run.says.words}"'
    claim = f'Largest miss: {_where(run)} first reported "optimal", {proven}'
    return f"{claim}; asked for more digits: {then}."


def _where(run: Run) -> str:
    return f"{run.backend} ({run.formulation}) on {run.problem}"


def _gap(gap: float, run: Run) -> str:
    return f"proven gap {gap:.1e} at tol {run.tol:.0e}"


def _excess(run: Run) -> float:
    return max(run.claimed_gaps, default=math.inf) / run.tol


def machine_sentence(runs: Sequence[Run]) -> str:
    """Return how busy the computer was, "" where nobody knows.

    A load of 1 means that every core had work to do in the minute before a run began. A run by one
    thread that has less than the whole of a processor waits for others, and its time is too long.
    """
    loads = [run.load for run in runs if not math.isnan(run.load)]
    known = [run for run in runs if not math.isnan(run.cpu + run.seconds)]
    seconds = math.fsum(run.seconds for run in known)
    if not loads or not seconds:
        return ""
    share = math.fsum(run.cpu for run in known) / seconds
    load = median(loads)
    is_busy = load > BUSY_LOAD or share < MIN_PROCESSOR_SHARE
    text = f"load {load:.1f} per core (median), runs had {share:.0%} of a processor"
    return f"busy: {text}; times are too long" if is_busy else f"quiet: {text}"


def _times(ratio: float) -> str:
    """Two digits of a ratio, in words.

    >>> _times(2.24), _times(787.3), _times(4.5e9)
    ('2.2 times', '790 times', '4.5e+09 times')
    """
    short = f"{ratio:.2g}"
    return f"{float(short):.0f} times" if 10 <= ratio < 1e6 else f"{short} times"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s"
