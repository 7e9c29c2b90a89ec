"""Which solver to take, in words: one sentence for the top of a page, one for each class of problems.

Advice rests on times to a proven gap alone (`klopt.bench.gap_times`). The solver to take for a class
is the one that is first, or ties with the first, on half of its problems or more; where there is none
such, the one that proves the gap on most problems. The other one of the two is mentioned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klopt.bench.gap_times import GapTime, gap_times, reference_gap
from klopt.bench.record import Run
from klopt.bench.report.classes import ProblemClass
from klopt.bench.times import geometric_mean
from klopt.bench.trials import agreement, grouped
from klopt.engine.words import counted

__all__ = ["Advice", "advice", "class_sentence", "headline", "listed", "seconds_text"]

MAX_CLASSES = 4
"""Classes of problems that a headline names."""
MAX_TIED = 2
"""Solvers that it names for one class."""


@dataclass(frozen=True)
class Advice:
    """What the runs on some problems say of the solver to take."""

    gap: float
    problems: int
    proven: int
    """Problems on which some solver proves the gap."""
    first: Mapping[str, int]
    """On how many problems a solver is the fastest, or ties with it."""
    reached: Mapping[str, int]
    taken: Mapping[str, int]
    """On how many problems a solver proves the gap, and on how many it was run."""
    seconds: Mapping[str, float]
    """The geometric mean of a solver's times where it proves the gap."""

    @property
    def fastest(self) -> tuple[str, ...]:
        """The solver that is first on most problems, or two where they are on equally many.

        Of several, those that prove the gap on most problems count, the faster ones first.
        """
        if not self.first:
            return ()
        best = max((count, self.reached[name]) for name, count in self.first.items())
        equal = [name for name in self.first if (self.first[name], self.reached[name]) == best]
        return tuple(sorted(equal, key=lambda name: (self.seconds[name], name))[:MAX_TIED])

    @property
    def leads(self) -> bool:
        """Whether some solver is first, or ties with the first, on half of the problems."""
        return 2 * max(self.first.values(), default=0) >= self.problems

    @property
    def choice(self) -> tuple[str, ...]:
        """The solver to take, or two that are equally good; none where nothing is proven."""
        if not self.proven:
            return ()
        return self.fastest if self.leads else (self.broadest,)

    @property
    def broadest(self) -> str:
        """The solver that proves the gap on most problems, the faster one of two; "" if none does."""
        proven = [name for name, count in self.reached.items() if count]
        order = sorted(proven, key=lambda name: (-self.reached[name], self.seconds[name]))
        return order[0] if order else ""


def advice(runs: Sequence[Run], gap: float | None = None) -> Advice:
    """Return what the runs say, by the gap that was asked for on every problem."""
    wanted = reference_gap(runs) if gap is None else gap
    times = gap_times(runs, wanted)
    by_problem = grouped(times, lambda found: found.problem)
    first = Counter(name for own in by_problem.values() for name in _leading(own))
    by_solver = grouped(times, lambda found: found.backend)
    reached = {name: [each for each in own if each.reached] for name, own in by_solver.items()}
    return Advice(
        gap=wanted,
        problems=len(by_problem),
        proven=sum(any(each.reached for each in own) for own in by_problem.values()),
        first=dict(first),
        reached={name: len(own) for name, own in reached.items()},
        taken={name: len(own) for name, own in by_solver.items()},
        seconds={
            name: geometric_mean([each.seconds for each in own])
            for name, own in reached.items()
            if own
        },
    )


def _leading(times: Sequence[GapTime]) -> list[str]:
    """The fastest solver of a problem, and those that tie with it."""
    reached = [each for each in times if each.reached]
    if not reached:
        return []
    best = min(reached, key=lambda each: each.seconds)
    return [each.backend for each in reached if each is best or each.ties(best)]


def headline(runs: Sequence[Run], classes: Sequence[ProblemClass]) -> str:
    """Return the answer to "which solver should I take?" in one sentence."""
    if not runs:
        return "Nothing was run."
    wrong = [found for found in agreement(runs).values() if not found.holds]
    # Nothing is advised where a proof is wrong.
    if wrong:
        return f"Proofs contradict each other: {wrong[0]}."
    known = advice(runs)
    if not known.proven:
        problems = "the problem" if known.problems == 1 else f"any of {known.problems} problems"
        return f"No solver proves a relative gap of {known.gap:.0e} on {problems}."
    if len(classes) == 1:
        return class_sentence(classes[0])
    chosen = {own.name: advice(own.runs, known.gap).choice for own in classes}
    named = [name for name, solvers in chosen.items() if solvers][:MAX_CLASSES]
    parts = [
        f"{' or '.join(solvers)} for {listed([_in_text(name) for name in own])}"
        for solvers, own in grouped(named, lambda name: chosen[name]).items()
    ]
    return f"Take {'; '.join(parts)}." if len(named) > len(parts) else f"Take {listed(parts)}."


def class_sentence(own: ProblemClass) -> str:
    """Return which solver to take for one class of problems, and how fast it is."""
    found = advice(own.runs)
    subject = _in_text(own.name)
    if found.problems == 1:
        subject = own.runs[0].problem
    if not found.proven:
        return f"No solver proves a relative gap of {found.gap:.0e} for {subject}."
    if not found.leads:
        return _broad_sentence(found, subject)
    best = found.fastest
    each = " each" if len(best) > 1 else ""
    count = found.first[best[0]]
    where = f"on {count} of {counted(found.problems, 'problem')}{each}, typically in"
    if found.problems == 1:
        where = f"of {counted(len(found.taken), 'solver')}, in"
    text = (
        f"Take {' or '.join(best)} for {subject}: fastest to a proven gap of {found.gap:.0e} "
        f"{where} {seconds_text(found.seconds[best[0]])}."
    )
    broad = found.broadest
    if found.reached[broad] > found.reached[best[0]]:
        text += (
            f" {broad} proves it on more, {found.reached[broad]} of {found.problems}, "
            f"typically in {seconds_text(found.seconds[broad])}."
        )
    return text


def _broad_sentence(found: Advice, subject: str) -> str:
    """What to take where no solver is the fastest on half of the problems."""
    broad = found.broadest
    text = (
        f"Take {broad} for {subject}: it proves a gap of {found.gap:.0e} on most, "
        f"{found.reached[broad]} of {counted(found.problems, 'problem')}, typically in "
        f"{seconds_text(found.seconds[broad])}."
    )
    quick = found.fastest
    if found.first[quick[0]] > found.first.get(broad, 0):
        verb = "is" if len(quick) == 1 else "are"
        text += f" {' and '.join(quick)} {verb} most often the fastest, on {found.first[quick[0]]}"
        text += " each." if len(quick) > 1 else "."
    return text


def seconds_text(seconds: float) -> str:
    """Return a time in a unit in which it is easily read.

    >>> seconds_text(0.00213), seconds_text(0.25), seconds_text(12.3)
    ('2.1 ms', '250 ms', '12 s')
    """
    if seconds < 1:
        return f"{_two_digits(1000 * seconds)} ms"
    return f"{_two_digits(seconds)} s"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def _in_text(name: str) -> str:
    """The name of a class within a sentence: that of a Python class is kept as it is."""
    return name[0].lower() + name[1:] if " " in name else name


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence in a row, "and" before the last.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
