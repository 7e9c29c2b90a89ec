"""`Result`, `Attempt`, `Timings`: what a solve returns, what is proven of it, and how it came about."""

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

__all__ = ["Attempt", "Result", "Timings", "combine"]


@dataclass(frozen=True)
class Timings:
    """Wall-clock seconds: building the form, running the backend, certifying; and the native call alone."""

    build: float
    solve: float
    certify: float
    native: float
    overrun: float = 0.0

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


@dataclass(frozen=True, eq=False)
class Result:
    """A certified outcome in the user's units; lower <= optimum <= upper always holds.

    `verdict` says what is proven, `value` is the objective at `point`, `explain()` says it all in
    words, and `require()` raises unless it is conclusive. `attempts` are the routes that were
    tried, `chosen` is the one that the point comes from, `seconds` is what all of it took.

    >>> from klopt.engine.registry import problem_named
    >>> from klopt.engine.pipeline import solve
    >>> result = solve(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])).require()
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
    def kernel(self) -> FloatArray | None:
        """The learned kernel matrix, where the problem learns one."""
        return None if self.point is None else self.problem.kernel(self.point)

    @property
    def duals(self) -> Mapping[str, FloatArray]:
        """The named multipliers in klopt's signs; if infeasible, those that add the rows up to a contradiction."""
        if self.verdict is Verdict.INFEASIBLE:
            return self._contradiction()
        return {} if self.point is None else self.point.dual

    def _contradiction(self) -> Mapping[str, FloatArray]:
        """The Farkas vector, or where the form is the dual its ray, carried back to the problem's own arrays."""
        formulation, answer = self.route.formulation, self.chosen.answer
        rows, columns = (size or 0 for size in formulation.build().shape)
        vector = answer.ray if formulation.dual else answer.farkas
        assert vector is not None
        pair = (vector, np.zeros(rows)) if formulation.dual else (np.zeros(columns), vector)
        found = formulation.recover(*pair)
        return {name: array for name, array in found.primal.items() if array.any()} | dict(
            found.dual
        )

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
        """Return the result itself if it is conclusive, else raise `NotCertified` with the explanation."""
        if not self.verdict.conclusive:
            raise NotCertified(self.explain())
        return self

    def explain(self) -> str:
        """Return in plain words what is proven, what is not, and what was tried."""
        answer = self.chosen.answer
        lines = [f"{self.problem.describe()} by {self.route}", self.certificate.explain()]
        lines.append(
            f"  the backend says: {answer.stop.words}"
            + (f" ({answer.native})" if answer.native else "")
        )
        t = self.timings
        lines.append(
            f"  {t.total:.3g} s: build {t.build:.2g}, solve {t.solve:.2g}, certify {t.certify:.2g}"
        )
        if not self.verdict.conclusive:
            lines.append(f"  advice: {answer.stop.advice}")
        others = [attempt for attempt in self.attempts if attempt is not self.chosen]
        lines += [
            f"  also tried {a.route}: {a.certificate.verdict.name} ({a.answer.stop.words})"
            for a in others
        ]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        """Formulations are functions, which no pickle holds; the problem makes them anew from their names."""
        nowhere: Any = None  # a route holds its formulation, and that holds functions
        attempts = [
            (a.route.formulation.name, a.route.backend, replace(a, route=nowhere))
            for a in self.attempts
        ]
        chosen = self.attempts.index(self.chosen)
        return _restored, (
            self.problem,
            self.settings,
            attempts,
            chosen,
            self.certificate,
            self.seconds,
        )

    def __repr__(self) -> str:
        return (
            f"Result {self.verdict.name}  {self.problem.describe()} by {self.route}\n"
            f"|- value       {self.value:.10g}   in [{self.lower:.10g}, {self.upper:.10g}]\n"
            f"|- width       {self.certificate.relative_width:.1e} relative, asked for {self.settings.tol:.0e}\n"
            f"|- work        {self.timings.total:.3g} s, {self.settings.threads} thread(s), seed {self.settings.seed}\n"
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
    """Return the result of several attempts: the best one's point, and the intersection of all proven intervals."""
    conclusive = [attempt for attempt in attempts if attempt.certificate.verdict.conclusive]
    chosen = (
        conclusive[0]
        if conclusive
        else max(attempts, key=lambda attempt: _goodness(attempt, problem.sense))
    )
    lower = max(a.certificate.lower for a in attempts)
    upper = min(a.certificate.upper for a in attempts)
    certificate = chosen.certificate
    # Where the optimum is nearly not attained, data changed in their last digits move it by more
    # than rounding.
    rounding = settings.tol if conclusive else 1e-9
    if lower > upper + (rounding * (1 + abs(upper)) if np.isfinite(upper) else 0.0):
        notes = (
            *certificate.notes,
            "the intervals of the attempts are disjoint: one of their proofs does not hold",
        )
        certificate = replace(
            certificate,
            verdict=Verdict.UNPROVEN,
            lower=-np.inf,
            upper=np.inf,
            proof="none",
            notes=notes,
        )
        return Result(problem, settings, attempts, chosen, certificate, seconds)
    if conclusive or (lower, upper) == (certificate.lower, certificate.upper):
        return Result(problem, settings, attempts, chosen, certificate, seconds)
    notes = (*certificate.notes, "the interval is the intersection of those of all attempts")
    lower, upper = min(lower, upper), max(lower, upper)
    narrow = np.isfinite(upper - lower) and upper - lower <= settings.tol * (1 + abs(upper))
    verdict = Verdict.OPTIMAL if narrow else certificate.verdict
    proof = "bracket" if narrow else certificate.proof
    certificate = replace(
        certificate, verdict=verdict, lower=lower, upper=upper, proof=proof, notes=notes
    )
    return Result(problem, settings, attempts, chosen, certificate, seconds)


def _restored(
    problem: Problem,
    settings: Settings,
    attempts: list[tuple[str, Backend, Attempt]],
    chosen: int,
    certificate: Certificate,
    seconds: float,
) -> Result:
    """The result that was pickled; `Result.__reduce__` says how."""
    formulations = {formulation.name: formulation for formulation in problem.formulations()}
    tried = tuple(
        replace(a, route=Route(formulations[name], backend)) for name, backend, a in attempts
    )
    return Result(problem, settings, tried, tried[chosen], certificate, seconds)


def _goodness(attempt: Attempt, sense: Sense) -> tuple[bool, bool, float, float]:
    """Feasible before unproven, with a point before without, then the better value, then the narrower interval."""
    certificate = attempt.certificate
    value = -certificate.upper if sense == "min" else certificate.lower
    return (
        certificate.verdict is Verdict.FEASIBLE,
        attempt.point is not None,
        value,
        -certificate.width,
    )
