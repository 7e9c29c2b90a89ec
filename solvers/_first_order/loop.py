"""The one loop of klopt's own methods: limits, history, best point so far, NaN guard.

An algorithm is a generator. It yields once for its start (iteration 0) and then once an iteration:
a `Candidate`, a point with bounds that stay valid, or None where it did not look. The loop takes
the time, keeps what is best and stops when the candidate proves itself:

    upper - lower <= 0.9 tol (1 + |upper|)

The tenth is for klopt, which repairs the point and measures again; it is a half where rounding is
of that size. An algorithm ends by itself only where every further iteration would be the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Settings, Step, Stop
from klopt.model.functions import Objective, QuadraticLike
from klopt.model.sets import SimpleSet
from klopt.numerics.candidate import Candidate, require_finite

__all__ = [
    "Candidate",
    "Evaluate",
    "Steps",
    "deadline_of",
    "due",
    "evaluator",
    "iterate",
    "require_finite",
    "starting_point",
]

MAX_ITER = 200_000
"""The limit of iterations where the user sets none."""
HISTORY_SPACING = 1.04
"""Iteration numbers of a history grow by this factor: 300 entries for a million iterations."""
CROSSING_TOLERANCE = 1e-6
"""Rounding never makes bounds cross by so much, relative to the value."""

Steps = Iterator[Candidate | None]
Evaluate = Callable[[FloatArray], tuple[float, FloatArray]]
"""The map x -> (value, gradient)."""


class _Record:
    """The best of a run and its thinned history."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.began = time.perf_counter()
        self.best: Candidate | None = None
        self.lower = -np.inf
        self.upper = np.inf
        self.history: list[Step] = []
        self.next_entry = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def take(self, candidate: Candidate, iteration: int) -> tuple[Stop, str] | None:
        """Keep what is better; return why to stop, if the candidate is a reason."""
        if not candidate.finite:
            return Stop.NUMERICAL, "met a value that is NaN or infinite"
        if self.best is None or candidate.rank <= self.best.rank:
            self.best = candidate
        self.upper = min(self.upper, candidate.upper)
        self.lower = max(self.lower, candidate.lower)
        if iteration >= self.next_entry:
            self.write(iteration)

        if self.lower - self.upper > CROSSING_TOLERANCE * (1 + abs(self.upper)):
            crossing = f"bounds cross ({self.lower:.9g} > {self.upper:.9g})"
            return Stop.NUMERICAL, f"{crossing}: not convex, or a wrong gradient"
        # The bounds must meet at one point: klopt sees no other.
        if candidate.proves(self.settings.tol):
            self.best = candidate
            return Stop.OPTIMAL, "the bounds met"
        return None

    def limit_reached(self, iteration: int) -> tuple[Stop, str] | None:
        """Return why to stop after this iteration, if a limit is reached."""
        limit = MAX_ITER if self.settings.max_iter is None else self.settings.max_iter
        if iteration >= limit:
            return Stop.ITERATION_LIMIT, f"{iteration} iterations"
        time_limit = self.settings.time_limit
        if time_limit is not None and self.seconds >= time_limit:
            return Stop.TIME_LIMIT, f"{self.seconds:.3g} seconds"
        return None

    def write(self, iteration: int) -> None:
        """Add an entry to the history, in the place of one of the same iteration."""
        if self.history and self.history[-1].iteration == iteration:
            self.history.pop()
        # Bounds that crossed by rounding are one.
        lower = min(self.lower, self.upper)
        self.history.append(Step(iteration, self.seconds, lower, self.upper))
        self.next_entry = max(iteration + 1.0, iteration * HISTORY_SPACING)

    def answer(self, stop: Stop, native: str, iteration: int) -> Answer:
        """Return the best point met, with the history up to here."""
        x = None
        y = None
        if self.best is not None:
            self.write(iteration)
            x = self.best.x.copy()
            y = None if self.best.y is None else self.best.y.copy()
        return Answer(
            stop,
            x=x,
            y=y,
            iterations=iteration,
            seconds=self.seconds,
            native=native,
            log=self._log() if self.settings.log else "",
            history=tuple(self.history),
        )

    def _log(self) -> str:
        return "\n".join(
            f"{step.iteration:>9} {step.seconds:>10.3f} s {step.lower:>22.14g} {step.upper:>22.14g}"
            for step in self.history
        )


def iterate(steps: Steps, settings: Settings) -> Answer:
    """Run an algorithm until its candidate proves itself, a limit is reached or floats overflow."""
    record = _Record(settings)
    iteration = 0
    try:
        with np.errstate(all="ignore"):  # what overflows shows up as a candidate that is not finite
            for iteration, candidate in enumerate(steps):
                reason = None
                if candidate is not None:
                    reason = record.take(candidate, iteration)
                if reason is None:
                    reason = record.limit_reached(iteration)
                if reason is not None:
                    return record.answer(*reason, iteration)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return record.answer(Stop.NUMERICAL, f"{type(error).__name__}: {error}", iteration)
    return record.answer(Stop.STALLED, "a step no longer moves the point", iteration)


def deadline_of(settings: Settings) -> float:
    """Return when the time limit ends on the clock of `time.perf_counter`, or infinity."""
    if settings.time_limit is None:
        return np.inf
    return time.perf_counter() + settings.time_limit


def due(iteration: int) -> bool:
    """Whether to look at the bounds: in the first ten iterations, then in every tenth.

    It costs about as much as an iteration.
    """
    return iteration < 10 or iteration % 10 == 0


def starting_point(domain: SimpleSet, given: FloatArray | None, name: str = "x") -> FloatArray:
    """Return the nearest point of the set to a given start, its centre without one."""
    if given is None:
        return domain.centre()
    point = np.asarray(given, dtype=float)
    if point.shape != (domain.size,):
        raise InvalidSettings(f"start.{name} has shape {point.shape}; expected ({domain.size},)")
    bad = np.flatnonzero(~np.isfinite(point))
    if bad.size:
        first = f"start.{name}[{bad[0]}] is {point[bad[0]]}"
        raise InvalidSettings(f"{first}; every entry must be a finite number")
    return domain.project(point)


def evaluator(objective: Objective) -> Evaluate:
    """Return the map x -> (value, gradient), which for a quadratic costs one product with H."""
    if not isinstance(objective, QuadraticLike):
        return lambda x: (objective.value(x), objective.gradient(x))
    linear = objective.linear
    matvec = objective.matvec

    def quadratic(x: FloatArray) -> tuple[float, FloatArray]:
        Hx = matvec(x)
        return float(x @ Hx / 2 + linear @ x), Hx + linear

    return quadratic
