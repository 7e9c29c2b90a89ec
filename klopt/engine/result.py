"""`Result`, `Attempt`, `Timings`: what a solve returns, what is proven of it, and how.

A result joins what all attempts prove. Each proves an interval that holds the optimum, so their
intersection does; intervals that are disjoint show an error in a proof, and then nothing is proven.
Estimates are no proofs: they are cut to the intersection and never move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from typing import Any, Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.planner import Route
from klopt.engine.words import counted
from klopt.errors import InvalidSettings, NotCertified
from klopt.model.backend import Answer, Backend, Settings, Step, Stop
from klopt.model.html import badge, formula, html_table, sparkline
from klopt.model.problem import Point, Problem, Sense
from klopt.proof.certificate import Certificate, Verdict, contradict, is_narrow, within
from klopt.witness.certify_exact import ExactSolution

__all__ = ["ACCEPT", "Accept", "Attempt", "Result", "Timings", "combine", "proof_points"]

Accept = Literal["proven", "estimated"]
"""Which verdicts a user accepts: conclusive ones, or ESTIMATED as well."""
MIN_LOAD_S = 0.001
"""Below so many seconds nothing was loaded."""
ACCEPT: tuple[Accept, ...] = ("proven", "estimated")


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
    """By how much `load` + `solve` exceeded the time limit."""
    load: float = 0.0
    """Importing libraries and starting a process before the backend ran: once in a session."""

    @property
    def total(self) -> float:
        """build + solve + certify."""
        return self.build + self.solve + self.certify

    def words(self) -> str:
        """Return the total and its parts as text, and what is not counted.

        >>> Timings(build=0.001, solve=0.02, certify=0.003, native=0.01, load=1.5).words()
        '0.024 s: build 0.001, solve 0.02, certify 0.003 (plus 1.5 s loading libraries)'
        """
        parts = f"build {self.build:.2g}, solve {self.solve:.2g}, certify {self.certify:.2g}"
        load = self.load if self.load >= MIN_LOAD_S else 0.0
        return f"{self.total:.3g} s: {parts} (plus {load:.2g} s loading libraries)"


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

    `klopt.solve` and `klopt.judge` return it. `explain()` says it all in words, and `require()`
    raises unless the verdict is conclusive.

    Attributes
    ----------
    verdict : Verdict
        What is proven.
    lower, upper : float
        The proven bounds of the optimum, or infinite.
    value : float
        The objective at `point`.
    point : Point
        The solution, as named arrays.
    duals : dict
        The multipliers, as named arrays.
    estimate : tuple of two floats or None
        An interval that is evidence and no proof.
    certificate : Certificate
        The proof; `certificate.save(path)` writes it as a file.
    attempts : tuple of Attempt
        The routes that were tried; `chosen` is the one that the point comes from.
    seconds : float
        The time that all of it took.

    Examples
    --------
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
    def estimate(self) -> tuple[float, float] | None:
        """An interval that is evidence and no proof; None where there is none."""
        return self.certificate.estimate

    @property
    def value(self) -> float:
        """The objective at `point`: the feasible side of the bracket, or of the estimate.

        The estimate's, where the attempt behind the point does not prove that side.
        """
        sense = self.problem.sense
        if self.estimate is not None and not _proves_a_point(self.chosen.certificate, sense):
            return _attained(*self.estimate, sense)
        return _attained(self.lower, self.upper, sense)

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
        found = _contradiction(self.chosen)
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

    def accepted(self, accept: Accept = "proven") -> bool:
        """Return whether the verdict is conclusive or, with "estimated", at least ESTIMATED."""
        if accept not in ACCEPT:
            raise InvalidSettings(f"accept is {accept!r}; expected 'proven' or 'estimated'")
        estimated = self.verdict is Verdict.ESTIMATED and accept == "estimated"
        return self.verdict.conclusive or estimated

    def require(self, accept: Accept = "proven") -> Result:
        """Return the result itself if its verdict is accepted, else raise `NotCertified`.

        Only a proof is accepted, unless `accept="estimated"` takes evidence as well.
        """
        if not self.accepted(accept):
            raise NotCertified(self.explain())
        return self

    def explain(self) -> str:
        """Return in plain words what is proven, what is not, and what was tried."""
        answer = self.chosen.answer
        native = f" ({answer.native})" if answer.native else ""
        lines = [
            f"{self.problem.describe()} by {self.route}",
            self.certificate.explain(),
            *([f"  data: {self.problem.statement.data}"] if self.problem.statement.data else []),
            f"  solver status: {answer.stop.words}{native}",
            f"  {self.timings.words()}",
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
        estimate = ""
        if self.estimate is not None:
            estimate = f"|- estimate    {_interval(self.estimate)}, not proven\n"
        return (
            f"Result {self.verdict.name}  {self.problem.describe()} by {self.route}\n"
            f"|- value       {self.value:.10g}   in {_interval((self.lower, self.upper))}\n"
            f"|- gap         {certificate.relative_gap:.1e} relative, "
            f"asked for {settings.tol:.0e}\n"
            f"{estimate}"
            f"|- work        {self.timings.total:.3g} s, {counted(settings.threads, 'thread')}, "
            f"seed {settings.seed}\n"
            f"`- status      {self.stop.words}"
        )

    def _repr_html_(self) -> str:
        asked = f"asked for {self.settings.tol:.0e}"
        rows = [
            ("value", f"{self.value:.10g}"),
            ("proven interval", _interval((self.lower, self.upper))),
            ("relative gap", f"{self.certificate.relative_gap:.1e}, {asked}"),
            ("solver", self.route),
            ("solver status", self.stop.words),
            ("seconds", f"{self.timings.total:.3g}"),
        ]
        if self.estimate is not None:
            rows.insert(2, ("estimate", f"{_interval(self.estimate)}, not proven"))
        title = f"<p>{badge(self.verdict.name)} {escape(self.problem.describe())}</p>"
        stated = formula(self.problem.statement.latex, self.problem.sense)
        gaps = [step.upper - step.lower for step in self.history]
        curve = sparkline(gaps, "gap as the solver worked, logarithmic")
        return title + stated + html_table("", [], rows) + curve


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
        certificate = _to_be_saved(problem, only, only.certificate)
        return Result(problem, settings, attempts, only, certificate, seconds)

    # Proven ends alone are intersected; each keeps the lemma that proves it.
    below = max(attempts, key=lambda attempt: attempt.certificate.lower).certificate
    above = min(attempts, key=lambda attempt: attempt.certificate.upper).certificate
    lower = below.lower
    upper = above.upper

    chosen = next((each for each in attempts if each.certificate.verdict.conclusive), None)
    conclusive = chosen is not None
    if chosen is None:
        chosen = max(attempts, key=lambda attempt: _goodness(attempt, problem.sense, lower, upper))
    certificate = chosen.certificate

    if contradict(lower, upper):
        certificate = _refuted(certificate)
    elif not conclusive and (lower, upper) != (certificate.lower, certificate.upper):
        certificate = _intersected(certificate, below, above, problem.sense)
    certificate = _to_be_saved(problem, chosen, certificate)
    return Result(problem, settings, attempts, chosen, certificate, seconds)


def _to_be_saved(problem: Problem, chosen: Attempt, certificate: Certificate) -> Certificate:
    """The certificate with the function that writes it to a file, which `save` calls."""
    if not certificate.verdict.conclusive:
        return certificate

    def write(path: str | PathLike[str]) -> None:
        # Few results are saved: what writes them is imported by those.
        from klopt.certificates.files import certificate_text, write_text
        from klopt.certificates.vipr import vipr_text

        point, ray = proof_points(problem, chosen, certificate)
        text = certificate_text(problem, certificate, point, ray)
        write_text(path, vipr_text(text) if str(path).endswith(".vipr") else text)

    return replace(certificate, writer=write)


def proof_points(
    problem: Problem, chosen: Attempt, certificate: Certificate
) -> tuple[Point | None, Point | None]:
    """Return the point and the ray that a verdict was proven from, where there are any.

    Parameters
    ----------
    problem
        What the verdict is about.
    chosen
        The attempt whose answer proves it.
    certificate
        The verdict.
    """
    formulation = chosen.route.formulation
    answer = chosen.answer
    ray = None if answer.ray is None else formulation.recover(answer.ray, None)
    if certificate.verdict is Verdict.INFEASIBLE:
        return _contradiction(chosen), ray
    point = chosen.point
    if point is None and answer.x is not None:
        point = problem.bracket(formulation.recover(answer.x, None)).point
    return point, ray


def _contradiction(chosen: Attempt) -> Point:
    """The multipliers that add the rows up to a contradiction.

    They are the Farkas vector of the form or, where the form is the dual, its ray.
    """
    formulation = chosen.route.formulation
    answer = chosen.answer
    rows, columns = formulation.build().shape
    if formulation.dual:
        ray = np.zeros(columns or 0) if answer.ray is None else answer.ray
        return formulation.recover(ray, np.zeros(rows or 0))
    farkas = np.zeros(rows or 0) if answer.farkas is None else answer.farkas
    return formulation.recover(np.zeros(columns or 0), farkas)


def _goodness(
    attempt: Attempt, sense: Sense, lower: float, upper: float
) -> tuple[bool, bool, bool, float, float]:
    """How good an attempt's point is, where no attempt is conclusive.

    If all proofs together bound the optimum on both sides, the best point is one that is proven to
    be feasible: its distance from the optimum is proven, too. If not, nothing is known about how
    far such a point is from the optimum, and evidence of optimality is worth more. Then a point
    before none, the value, the gap.

    Parameters
    ----------
    attempt
        What was tried.
    sense
        Whether the problem minimises or maximises.
    lower, upper
        The intersection of all proven intervals.
    """
    certificate = attempt.certificate
    proven = _proves_a_point(certificate, sense)
    estimated = certificate.verdict is Verdict.ESTIMATED
    if estimated:
        estimated = _cut_estimate(certificate, lower, upper) is not None
    value = _attained(certificate.lower, certificate.upper, sense)
    if sense == "min":
        value = -value

    two_sided = bool(np.isfinite(lower) and np.isfinite(upper))
    first, second = (proven, estimated) if two_sided else (estimated, proven)
    # Among proven points the value decides before any estimate does.
    if two_sided and proven:
        second = True
    return first, second, attempt.point is not None, value, -certificate.gap


def _attained(lower: float, upper: float, sense: Sense) -> float:
    """The end that a feasible point attains."""
    return upper if sense == "min" else lower


def _proves_a_point(certificate: Certificate, sense: Sense) -> bool:
    """Whether the end that a feasible point attains is proven."""
    return bool(np.isfinite(_attained(certificate.lower, certificate.upper, sense)))


def _interval(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.10g}, {ends[1]:.10g}]"


def _refuted(certificate: Certificate) -> Certificate:
    """Nothing is proven: at least one of the proofs is wrong, and nobody knows which."""
    note = "the intervals of the attempts are disjoint: one of their proofs does not hold"
    return replace(
        Certificate.unproven(certificate.tol, *certificate.notes, note),
        residuals=certificate.residuals,
    )


def _intersected(
    certificate: Certificate, below: Certificate, above: Certificate, sense: Sense
) -> Certificate:
    """What is proven where no attempt is conclusive alone: two halves of a proof make a whole.

    Parameters
    ----------
    certificate
        That of the chosen attempt.
    below, above
        Those with the greatest lower and the least upper bound.
    sense
        Whether the problem minimises or maximises.
    """
    note = "the interval is the intersection of those of all attempts"
    joined = replace(
        certificate,
        lower=min(below.lower, above.upper),
        upper=max(below.lower, above.upper),
        lower_by=below.lower_by,
        upper_by=above.upper_by,
        notes=(*certificate.notes, note),
    )
    if is_narrow(joined.lower, joined.upper, joined.tol):
        return replace(
            joined, verdict=Verdict.OPTIMAL, proof="bracket", estimate=None, data_change=""
        )
    if joined.verdict is not Verdict.ESTIMATED:
        return joined

    estimate = _cut_estimate(joined, joined.lower, joined.upper)
    if estimate is not None:
        return replace(joined, estimate=estimate)
    proven = _proves_a_point(certificate, sense)
    return replace(
        joined,
        verdict=Verdict.FEASIBLE if proven else Verdict.UNPROVEN,
        proof="bracket" if proven else "none",
        estimate=None,
        notes=(*joined.notes, "the estimate contradicts a proven bound"),
    )


def _cut_estimate(
    certificate: Certificate, lower: float, upper: float
) -> tuple[float, float] | None:
    """The estimate within proven ends; None where they contradict it."""
    # One for changed data is about another problem, which these ends do not bound.
    if certificate.estimate is None or certificate.data_change:
        return certificate.estimate
    return within(certificate.estimate, lower, upper)


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
    certificate = _to_be_saved(problem, tried[chosen], certificate)
    return Result(problem, settings, tried, tried[chosen], certificate, seconds)
