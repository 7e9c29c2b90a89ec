"""`klopt.worst_case`: the proven worst case of a first-order method, and its proof."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from klopt.engine.registry import problem_named
from klopt.errors import InvalidProblem, NotCertified
from klopt.model.backend import Settings
from klopt.model.cones import svec_entries
from klopt.model.problem import Problem
from klopt.proof.certificate import Certificate, Verdict, is_narrow
from klopt.proof.rational import floats_around
from klopt.worst_cases.origin import with_origin
from klopt.worst_cases.program import PerformanceProgram
from klopt.worst_cases.proving import Ends, proven_ends
from klopt.worst_cases.reading import is_pep, read_pep
from klopt.worst_cases.wording import proof_text

__all__ = ["WorstCase", "worst_case"]

TIME_LIMIT = 20.0
"""Seconds, unless told otherwise."""
STATED = "For PEPit's program, its numbers read as the short fractions next to them"
"""What an interval is about: the certificate holds that program."""


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A proven worst case: lower <= worst case <= upper, whatever the function of the class.

    `klopt.worst_case` returns it. `proof()` writes the argument down, `at_most(rate)` and
    `exceeds(rate)` decide a claim, `save(path)` writes a certificate.

    Attributes
    ----------
    verdict : Verdict
        OPTIMAL where both ends are within the tolerance.
    lower, upper : float
        An example attains `lower`; no function of the class exceeds `upper`.
    multipliers : dict of Fraction
        The weights of the conditions in the proof of `upper`, by name.
    gram, values : fractions
        The example that proves `lower`: inner products of its points and gradients, and its values.
    """

    program: PerformanceProgram
    """What was decided: points that nothing depends on are at 0."""
    certificate: Certificate
    multipliers: dict[str, Fraction]
    """The weights that are not 0, by the names of the conditions."""
    gram: tuple[tuple[Fraction, ...], ...]
    """The inner products of the example's points and gradients."""
    values: dict[str, Fraction]
    """The function values of the example, by name."""
    seconds: float
    ends: Ends
    """Both ends as the checker accepted them."""

    @property
    def verdict(self) -> Verdict:
        """What is proven: OPTIMAL where both ends are as close as was asked for."""
        return self.certificate.verdict

    @property
    def lower(self) -> float:
        """A value that some function of the class attains, or -inf."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """A value that no function of the class exceeds, or inf."""
        return self.certificate.upper

    @property
    def relative_width(self) -> float:
        """(upper - lower) / |upper|."""
        if not math.isfinite(self.upper - self.lower):
            return math.inf
        return (
            (self.upper - self.lower) / abs(self.upper) if self.upper else self.upper - self.lower
        )

    @property
    def problem(self) -> Problem:
        """The semidefinite program in floats, as one of klopt's problems."""
        make: Any = problem_named("ConeProgram")
        program = self.program
        A, b = program.rows
        constant = float(program.objective.constant)
        problem: Problem = make(
            None, program.cost, A, b, program.cones, constant, "max", svec=False
        )
        return problem

    def at_most(self, rate: float | Fraction) -> bool:
        """Return whether the worst case is proven to be at most a rate."""
        return self.ends.upper is not None and self.ends.upper <= Fraction(rate)

    def exceeds(self, rate: float | Fraction) -> bool:
        """Return whether an example proves that the worst case is above a rate."""
        return self.ends.lower is not None and self.ends.lower > Fraction(rate)

    def require(self) -> Self:
        """Return this; raise `NotCertified` unless both ends are proven as close as was asked for."""
        if not self.verdict.conclusive:
            raise NotCertified(self.explain())
        return self

    def proof(self) -> str:
        """Return the proof of the upper end as a combination of inequalities."""
        if self.ends.upper is None:
            raise NotCertified("no upper bound of the worst case is proven")
        return proof_text(self.program, self.ends.upper, self.ends.y)

    def explain(self) -> str:
        """Return the verdict and what it rests on, in words."""
        said = self.certificate.explain().replace("optimum", "worst case")
        # What is stored is what PEPit made of numbers such as 1/3 and sqrt(2).
        return said.replace("For the data as stored", STATED).replace(
            "for the data as stored", STATED[0].lower() + STATED[1:]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate, which `klopt check` and the independent checkers accept."""
        self.certificate.save(path)

    def __str__(self) -> str:
        return f"{self.verdict.name}: {self.lower:.12g} <= worst case <= {self.upper:.12g}"


def worst_case(
    method: Any,
    *,
    tol: float = 1e-6,
    time_limit: float = TIME_LIMIT,
    backend: str = "clarabel",
) -> WorstCase:
    """Return the worst case of a first-order method as a proven interval.

    Parameters
    ----------
    method
        A PEP of PEPit (a class of functions, a method, a starting condition and a criterion), or a
        function without arguments that returns one.
    tol
        The width upper - lower that is asked for, relative to 1 + |upper|.
    time_limit
        Seconds after which no further attempt begins.
    backend
        The solver that proposes; what it says is not trusted.

    Examples
    --------
    >>> from PEPit import PEP
    >>> from PEPit.functions import SmoothConvexFunction
    >>> def gradient_descent():
    ...     pep = PEP()
    ...     f = pep.declare_function(SmoothConvexFunction, L=1.0)
    ...     minimiser = f.stationary_point()
    ...     x = pep.set_initial_point()
    ...     pep.set_initial_condition((x - minimiser) ** 2 <= 1)
    ...     pep.set_performance_metric(f(x - f.gradient(x)) - f(minimiser))
    ...     return pep
    >>> found = worst_case(gradient_descent)
    >>> found.at_most(0.1666666667), found.exceeds(0.1666666666)  # L R^2 / (4 N + 2) is 1/6
    (True, True)
    """
    began = time.perf_counter()
    settings = Settings(tol, time_limit)
    pep = method if is_pep(method) or not callable(method) else method()
    if not is_pep(pep):
        raise InvalidProblem(
            f"worst_case needs a PEP of PEPit or a function that returns one, got a "
            f"{type(pep).__name__}"
        )
    program = with_origin(read_pep(pep))
    ends = proven_ends(program, backend, began + time_limit)
    m = len(program.values)
    gram: tuple[tuple[Fraction, ...], ...] = ()
    values: dict[str, Fraction] = {}
    if ends.x:
        places = np.zeros((program.order, program.order), dtype=np.intp)
        i, j = svec_entries(program.order)
        places[i, j] = places[j, i] = m + np.arange(i.size)
        gram = tuple(tuple(ends.x[place] for place in row) for row in places.tolist())
        values = dict(zip(program.values, ends.x[:m], strict=True))
    names = [condition.name for condition in program.sorted_conditions]
    weights = dict(zip(_distinct(names), ends.y[: len(names)], strict=True)) if ends.y else {}
    return WorstCase(
        program,
        _certificate(ends, settings.tol),
        {name: weight for name, weight in weights.items() if weight},
        gram,
        values,
        time.perf_counter() - began,
        ends,
    )


def _distinct(names: list[str]) -> list[str]:
    """Names with a number where one stands twice."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _certificate(ends: Ends, tol: float) -> Certificate:
    """What the ends prove."""
    lower = -math.inf if ends.lower is None else floats_around(ends.lower)[0]
    upper = math.inf if ends.upper is None else floats_around(ends.upper)[1]
    notes = tuple(dict.fromkeys(ends.notes))
    if is_narrow(lower, upper, tol):
        verdict = Verdict.OPTIMAL
    elif ends.lower is not None:
        verdict = Verdict.FEASIBLE
    else:
        verdict = Verdict.UNPROVEN

    def write(path: str | PathLike[str]) -> None:
        Path(path).write_text(ends.certificate(tol), encoding="utf-8")

    found = Certificate(
        verdict,
        lower,
        upper,
        tol,
        "none" if verdict is Verdict.UNPROVEN else "bracket",
        None,
        notes,
        lower_by="a function and a run of the method, as fractions"
        if ends.lower is not None
        else "",
        upper_by="multipliers of the conditions, as fractions" if ends.upper is not None else "",
    )
    return found if ends.lower is None else replace(found, writer=write)
