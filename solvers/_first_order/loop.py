"""The one loop of the home-made methods: deadline, history, best-so-far, NaN guard.

An algorithm is a generator. It yields once for its start (iteration 0) and then once an iteration:
a `Candidate`, a point with bounds that hold for ever, or None where it did not look. The loop takes
the time, keeps what is best and stops when the candidate proves itself:

    upper - lower <= 0.9 tol (1 + |upper|)

The tenth is for klopt, which repairs the point and measures again; it is a half where rounding is
of that size. An algorithm ends by itself only where every further iteration would be the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isfinite, isnan

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Settings, Step, Stop
from klopt.model.functions import Objective, QuadraticLike
from klopt.model.sets import SimpleSet

__all__ = ["Candidate", "Steps", "due", "evaluator", "iterate", "require_finite", "starting_point"]

MAX_ITER = 200_000
SPACING = (
    1.04  # iteration numbers of a history grow by this factor: 300 entries for a million iterations
)
CROSSED = 1e-6  # relative; rounding never makes bounds cross by so much
ENOUGH, ENOUGH_WHERE_ROUNDED, ROUNDED = (
    0.9,
    0.5,
    1e-9,
)  # the share of a tolerance that ends a run, below ROUNDED less


@dataclass(frozen=True, eq=False)
class Candidate:
    """A feasible point and what it proves: lower <= optimum <= upper.

    Both are what klopt will find again from the candidate alone.
    """

    x: FloatArray
    upper: float
    lower: float
    y: FloatArray | None = None

    @property
    def finite(self) -> bool:
        """Whether it may be kept: numbers as entries and bounds; a bound may be infinite, which says nothing."""
        parts = (self.x,) if self.y is None else (self.x, self.y)
        bounds = self.upper > -inf and not isnan(self.lower)
        return bool(bounds) and all(bool(np.isfinite(part).all()) for part in parts)

    def proves(self, tol: float) -> bool:
        """Whether the bounds are so close that klopt will find them close enough."""
        width, share = self.upper - self.lower, ENOUGH if tol >= ROUNDED else ENOUGH_WHERE_ROUNDED
        return isfinite(width) and width <= share * tol * (1 + abs(self.upper))

    @property
    def rank(self) -> tuple[float, float]:
        """Narrowest first, then lowest."""
        return self.upper - self.lower, self.upper


Steps = Iterator[Candidate | None]


class _Record:
    """The best of a run and its thinned history."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.began = time.perf_counter()
        self.best: Candidate | None = None
        self.lower, self.upper = -np.inf, np.inf
        self.history: list[Step] = []
        self.following = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def take(self, candidate: Candidate, iteration: int) -> tuple[Stop, str] | None:
        """Keep what is better; return why to stop, if the candidate is a reason."""
        if not candidate.finite:
            return Stop.NUMERICAL, "met a value that is no finite number"
        if self.best is None or candidate.rank <= self.best.rank:
            self.best = candidate
        self.upper = min(self.upper, candidate.upper)
        self.lower = max(self.lower, candidate.lower)
        if iteration >= self.following:
            self.write(iteration)
        if self.lower - self.upper > CROSSED * (1 + abs(self.upper)):
            return (
                Stop.NUMERICAL,
                f"bounds cross ({self.lower:.9g} > {self.upper:.9g}): not convex, or a wrong gradient",
            )
        if candidate.proves(self.settings.tol):
            self.best = candidate
            return Stop.OPTIMAL, "the bounds met"
        return None

    def write(self, iteration: int) -> None:
        if self.history and self.history[-1].iteration == iteration:
            self.history.pop()
        self.history.append(Step(iteration, self.seconds, min(self.lower, self.upper), self.upper))
        self.following = max(iteration + 1.0, iteration * SPACING)

    def answer(self, stop: Stop, native: str, iteration: int) -> Answer:
        if self.best is not None:
            self.write(iteration)
        steps = self.history if self.settings.log else []
        lines = [
            f"{i.iteration:>9} {i.seconds:>10.3f} s {i.lower:>22.14g} {i.upper:>22.14g}"
            for i in steps
        ]
        return Answer(
            stop,
            x=None if self.best is None else self.best.x.copy(),
            y=None if self.best is None or self.best.y is None else self.best.y.copy(),
            iterations=iteration,
            seconds=self.seconds,
            native=native,
            log="\n".join(lines),
            history=tuple(self.history),
        )


def iterate(steps: Steps, settings: Settings) -> Answer:
    """Run an algorithm until its candidate proves itself, a limit is reached or numbers run out."""
    record = _Record(settings)
    limit = MAX_ITER if settings.max_iter is None else settings.max_iter
    deadline = np.inf if settings.time_limit is None else settings.time_limit
    iteration = 0
    try:
        with np.errstate(all="ignore"):  # what overflows shows up as a candidate that is not finite
            for iteration, candidate in enumerate(steps):
                reason = None if candidate is None else record.take(candidate, iteration)
                if reason is not None:
                    return record.answer(*reason, iteration)
                if iteration >= limit:
                    return record.answer(Stop.ITERATION_LIMIT, f"{iteration} iterations", iteration)
                if record.seconds >= deadline:
                    return record.answer(
                        Stop.TIME_LIMIT, f"{record.seconds:.3g} seconds", iteration
                    )
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return record.answer(Stop.NUMERICAL, f"{type(error).__name__}: {error}", iteration)
    return record.answer(Stop.STALLED, "a step no longer moves the point", iteration)


def require_finite(*arrays: FloatArray) -> None:
    """Raise where an entry is no finite number, before a projection has to make sense of it."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise FloatingPointError("a gradient has entries that are no finite numbers")


def due(iteration: int) -> bool:
    """Whether to look at the bounds, which costs about as much as an iteration: first always, then every tenth time."""
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
        raise InvalidSettings(
            f"start.{name}[{bad[0]}] is {point[bad[0]]}; every entry must be a finite number"
        )
    return domain.project(point)


def evaluator(objective: Objective) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Return the function x -> (value, gradient), which for a quadratic costs one product with its matrix."""
    if not isinstance(objective, QuadraticLike):
        return lambda x: (objective.value(x), objective.gradient(x))
    linear, matvec = objective.linear, objective.matvec

    def quadratic(x: FloatArray) -> tuple[float, FloatArray]:
        Hx = matvec(x)
        return float(x @ Hx / 2 + linear @ x), Hx + linear

    return quadratic
