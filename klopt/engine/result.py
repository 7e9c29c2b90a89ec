"""`Result`, `Attempt`, `Timings`: what a solve returns, what is proven of it, and how.

A result joins what all attempts prove. Each proves an interval that holds the optimum, so their
intersection does; intervals that are disjoint show an error in a proof, and then nothing is proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.planner import Route
from klopt.errors import NotCertified
from klopt.model.backend import Answer, Backend, Settings, Step, Stop
from klopt.model.html import html_table
from klopt.model.problem import Point, Problem, Sense
from klopt.proof.certificate import Certificate, Verdict
from klopt.proof.certify_exact import ExactSolution

__all__ = ["Attempt", "Result", "Timings", "combine"]

ROUNDING = 1e-9
"""Intervals may miss each other by this much, relative to 1 + |upper|: that is rounding."""


@dataclass(frozen=True)
class Timings:
    """Where the wall-clock time of an attempt went, in seconds."""

    build: float
    """Building the form."""
    solve: float
    """Running the backend, with what contains it."""
    certify: float
    """Proving."""
    native: float
    """The native call alone, as the backend tells it."""
    overrun: float = 0.0
    """By how much `solve` exceeded the time limit."""

    @property
    def total(self) -> float:
        """build + solve + certify."""
        return self.build + self.solve + self.certify


@dataclass(frozen=True, eq=False)
class Attempt:
    """One route tried: what the backend said and what klopt made of it."""

    route: Route
    answer: Answer
    certificate: Certificate
    point: Point | None
    timings: Timings
    exact: ExactSolution | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """A certified outcome in the user's units; lower <= optimum <= upper always holds.

    `verdict` says what is proven, `value` is the objective at `point`, `explain()` says it all in
    words, and `require()` raises unless it is conclusive. `attempts` are the routes that were
    tried, `chosen` is the one that the point comes from, `seconds` is what all of it took.

    >>> from klopt.engine.registry import problem_named
    >>> from klopt.engine.pipeline import solve
    >>> problem = problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])
    >>> result = solve(problem).require()
    >>> result.point.x, result.duals["ub"]
    (array([0. , 0.5]), array([0.5]))
    """

    problem: Problem
    settings: Settings
    attempts: tuple[Attempt, ...]
    chosen: Attempt
    certificate: Certificate
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """What is proven."""
        return self.certificate.verdict

    @property
    def lower(self) -> float:
        """A proven lower bound of the optimum."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """A proven upper bound of the optimum."""
        return self.certificate.upper

    @property
    def value(self) -> float:
        """The objective at `point`: the feasible side of the bracket."""
        return self.upper if self.problem.sense == "min" else self.lower

    @property
    def stop(self) -> Stop:
        """Why the backend says it stopped."""
        return self.chosen.answer.stop

    @property
    def point(self) -> Point | None:
        """The named arrays of the solution, repaired to be feasible."""
        return self.chosen.point

    @property
    def exact(self) -> ExactSolution | None:
        """The optimum in rationals, where the problem is stated in them (`exact=True`)."""
        return self.chosen.exact

    @property
    def kernel(self) -> FloatArray | None:
        """The learned kernel matrix, where the problem learns one."""
        return None if self.point is None else self.problem.kernel(self.point)

    @property
    def duals(self) -> Mapping[str, FloatArray]:
        """The named multipliers in klopt's signs; if infeasible, those of a contradiction."""
        if self.verdict is Verdict.INFEASIBLE:
            return self._contradiction()
        return {} if self.point is None else self.point.dual

    def _contradiction(self) -> Mapping[str, FloatArray]:
        """The multipliers that add the rows up to a contradiction, in the problem's own arrays.

        They are the Farkas vector of the form or, where the form is the dual, its ray.
        """
        if self.exact is not None:
            return {name: np.array(y, dtype=float) for name, y in self.exact.y.items()}
        formulation = self.route.formulation
        answer = self.chosen.answer
        rows, columns = formulation.build().shape
        if formulation.dual:
            assert answer.ray is not None
            found = formulation.recover(answer.ray, np.zeros(rows or 0))
        else:
            assert answer.farkas is not None
            found = formulation.recover(np.zeros(columns or 0), answer.farkas)
        nonzero = {name: array for name, array in found.primal.items() if array.any()}
        return nonzero | dict(found.dual)

    @property
    def route(self) -> Route:
        """The formulation and backend behind the point."""
        return self.chosen.route

    @property
    def timings(self) -> Timings:
        """Where the time of the chosen attempt went."""
        return self.chosen.timings

    @property
    def iterations(self) -> int | None:
        """The backend's own count."""
        return self.chosen.answer.iterations

    @property
    def history(self) -> tuple[Step, ...]:
        """Certified bounds along the way in the user's units; native backends give none."""
        formulation = self.route.formulation
        steps = self.chosen.answer.history
        return tuple(
            Step(s.iteration, s.seconds, *formulation.to_user(s.lower, s.upper)) for s in steps
        )

    def require(self) -> Result:
        """Return the result itself if it is conclusive, else raise `NotCertified` with why not."""
        if not self.verdict.conclusive:
            raise NotCertified(self.explain())
        return self

    def explain(self) -> str:
        """Return in plain words what is proven, what is not, and what was tried."""
        answer = self.chosen.answer
        native = f" ({answer.native})" if answer.native else ""
        took = self.timings
        lines = [
            f"{self.problem.describe()} by {self.route}",
            self.certificate.explain(),
            f"  the backend says: {answer.stop.words}{native}",
            f"  {took.total:.3g} s: build {took.build:.2g}, solve {took.solve:.2g}, "
            f"certify {took.certify:.2g}",
        ]
        if not self.verdict.conclusive:
            lines.append(f"  advice: {answer.stop.advice}")
        for other in self.attempts:
            if other is not self.chosen:
                verdict = other.certificate.verdict.name
                lines.append(f"  also tried {other.route}: {verdict} ({other.answer.stop.words})")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle formulations by name: they hold functions, and the problem makes them anew."""
        no_route: Any = None
        attempts = [
            (tried.route.formulation.name, tried.route.backend, replace(tried, route=no_route))
            for tried in self.attempts
        ]
        return _restored, (
            self.problem,
            self.settings,
            attempts,
            self.attempts.index(self.chosen),
            self.certificate,
            self.seconds,
        )

    def __repr__(self) -> str:
        certificate = self.certificate
        settings = self.settings
        return (
            f"Result {self.verdict.name}  {self.problem.describe()} by {self.route}\n"
            f"|- value       {self.value:.10g}   in [{self.lower:.10g}, {self.upper:.10g}]\n"
            f"|- gap         {certificate.relative_gap:.1e} relative, "
            f"asked for {settings.tol:.0e}\n"
            f"|- work        {self.timings.total:.3g} s, {settings.threads} thread(s), "
            f"seed {settings.seed}\n"
            f"`- it says     {self.stop.words}"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("verdict", self.verdict.name),
            ("value", f"{self.value:.10g}"),
            ("interval", f"[{self.lower:.10g}, {self.upper:.10g}]"),
            ("route", self.route),
            ("backend says", self.stop.words),
            ("seconds", f"{self.timings.total:.3g}"),
        ]
        return html_table(self.problem.describe(), [], rows)


def combine(
    problem: Problem, settings: Settings, attempts: tuple[Attempt, ...], seconds: float
) -> Result:
    """Return the result of several attempts: the best one's point, and what all prove together.

    Parameters
    ----------
    problem, settings
        What was asked.
    attempts
        The routes that were tried, at least one.
    seconds
        What all of it took.
    """
    # The usual case: one interval is its own intersection.
    if len(attempts) == 1:
        only = attempts[0]
        return Result(problem, settings, attempts, only, only.certificate, seconds)

    lower = -np.inf
    upper = np.inf
    chosen: Attempt | None = None
    for attempt in attempts:
        lower = max(lower, attempt.certificate.lower)
        upper = min(upper, attempt.certificate.upper)
        if chosen is None and attempt.certificate.verdict.conclusive:
            chosen = attempt

    conclusive = chosen is not None
    if chosen is None:
        chosen = max(attempts, key=lambda attempt: _goodness(attempt, problem.sense))
    certificate = chosen.certificate

    # Where the optimum is nearly not attained, data changed in their last digits move it by more
    # than rounding.
    if _are_disjoint(lower, upper, settings.tol if conclusive else ROUNDING):
        certificate = _refuted(certificate)
    elif not conclusive and (lower, upper) != (certificate.lower, certificate.upper):
        certificate = _intersected(certificate, lower, upper, settings.tol)
    return Result(problem, settings, attempts, chosen, certificate, seconds)


def _goodness(attempt: Attempt, sense: Sense) -> tuple[bool, bool, float, float]:
    """Feasible before unproven, a point before none, then the value, then the gap."""
    certificate = attempt.certificate
    value = -certificate.upper if sense == "min" else certificate.lower
    return (
        certificate.verdict is Verdict.FEASIBLE,
        attempt.point is not None,
        value,
        -certificate.gap,
    )


def _are_disjoint(lower: float, upper: float, rounding: float) -> bool:
    """Whether the greatest lower bound exceeds the least upper bound by more than rounding."""
    allowed = rounding * (1 + abs(upper)) if np.isfinite(upper) else 0.0
    return lower > upper + allowed


def _refuted(certificate: Certificate) -> Certificate:
    """Nothing is proven: at least one of the proofs is wrong, and nobody knows which."""
    note = "the intervals of the attempts are disjoint: one of their proofs does not hold"
    return replace(
        certificate,
        verdict=Verdict.UNPROVEN,
        lower=-np.inf,
        upper=np.inf,
        proof="none",
        notes=(*certificate.notes, note),
    )


def _intersected(certificate: Certificate, lower: float, upper: float, tol: float) -> Certificate:
    """What is proven where no attempt is conclusive alone: two halves of a proof make a whole."""
    note = "the interval is the intersection of those of all attempts"
    # Ends that have crossed by rounding change places.
    lower, upper = min(lower, upper), max(lower, upper)
    certificate = replace(certificate, lower=lower, upper=upper, notes=(*certificate.notes, note))
    gap = upper - lower
    if np.isfinite(gap) and gap <= tol * (1 + abs(upper)):
        return replace(certificate, verdict=Verdict.OPTIMAL, proof="bracket")
    return certificate


def _restored(
    problem: Problem,
    settings: Settings,
    attempts: list[tuple[str, Backend, Attempt]],
    chosen: int,
    certificate: Certificate,
    seconds: float,
) -> Result:
    """The result that was pickled; `Result.__reduce__` gives the arguments."""
    formulations = {formulation.name: formulation for formulation in problem.formulations()}
    tried = tuple(
        replace(attempt, route=Route(formulations[name], backend))
        for name, backend, attempt in attempts
    )
    return Result(problem, settings, tried, tried[chosen], certificate, seconds)
