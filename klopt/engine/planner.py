"""Routes for a problem, best first, and why each other one is refused.

A route is a formulation and a backend that offers all it needs. Routes are sorted by the backend's
rank, then by the problem's own order of formulations, then by name: cheap, deterministic, and no
form is built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from textwrap import fill

from klopt.engine.registry import Broken, backends, broken
from klopt.errors import InvalidProblem
from klopt.model.backend import Backend
from klopt.model.html import html_table
from klopt.model.problem import Formulation, Problem

__all__ = ["Plan", "Refusal", "Route", "plan"]

COLUMNS = 80


@dataclass(frozen=True, eq=False)
class Route:
    """A formulation and a backend that can take it."""

    formulation: Formulation
    backend: Backend

    @property
    def why(self) -> str:
        """Why it stands where it does."""
        return f"rank {self.backend.rank}"

    def __str__(self) -> str:
        return f"{self.backend.name} on {self.formulation.name}"


@dataclass(frozen=True, eq=False)
class Refusal:
    """A formulation and a backend that cannot take it, with what is missing."""

    formulation: Formulation
    backend: Backend

    @property
    def missing(self) -> str:
        """What the formulation needs and the backend does not offer."""
        return "needs " + ", ".join(sorted(self.formulation.needs - self.backend.offers))


@dataclass(frozen=True, eq=False)
class Plan:
    """All routes of a problem, best first; all refusals; and the backends that are known but cannot run here.

    `klopt.plan(problem)` makes it. `absent` are backends whose library is not installed, `broken`
    what failed to load.
    """

    problem: Problem
    routes: tuple[Route, ...]
    installed: tuple[Backend, ...]
    absent: tuple[Backend, ...]
    broken: tuple[Broken, ...] = ()

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The pairs that are no route, and why."""
        pairs = product(self.problem.formulations(), self.installed)
        return tuple(Refusal(f, backend) for f, backend in pairs if not f.needs <= backend.offers)

    def explain(self) -> str:
        """Return both lists as text that lines up in 80 columns."""
        names = [f.name for f in self.problem.formulations()]
        used, refusals = {backend.name for backend in self.installed}, self.refusals
        head = f"{self.problem.describe()}: {len(names)} formulations x {len(used)} backends"
        pairs = [
            (f"{i:3}", r.formulation.name, r.backend.name, r.why)
            for i, r in enumerate(self.routes, 1)
        ]
        lines = [fill(head, COLUMNS, subsequent_indent="  "), *_aligned(pairs, names, used)]
        if not self.routes:
            lines.append("  no route: nothing installed can take any formulation")
        if refusals:
            lines.append("refused")
            lines += _aligned(
                [("", r.formulation.name, r.backend.name, r.missing) for r in refusals], names, used
            )
        if self.absent or self.broken:
            lines.append("not available")
            away = [("", backend.name, "", backend.missing) for backend in self.absent]
            away += [("", item.name, "", f"broken: {item.reason}") for item in self.broken]
            lines += _aligned(away, [name for _, name, _, _ in away], set())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = [
            (i, r.backend.name, r.formulation.name, r.why) for i, r in enumerate(self.routes, 1)
        ]
        return html_table(self.problem.describe(), ["", "backend", "formulation", "why"], rows)


def _aligned(
    rows: list[tuple[str, str, str, str]], names: Iterable[str], backends: Iterable[str]
) -> list[str]:
    """Rows of number, name, backend and text as wide as the names ask for; a long text goes on below itself."""
    wide, wider = max(map(len, names), default=0), max(map(len, backends), default=0)
    lines = []
    for number, name, backend, text in rows:
        lead = f"{number:5}{name:{wide}}  " + (f"{backend:{wider}}  " if wider else "")
        if len(lead) > COLUMNS - 24:  # names this long leave no room beside them
            lead, text = f"{number:5}", "  ".join((name, backend, text))
        lines.append(
            fill(text, COLUMNS, initial_indent=lead, subsequent_indent=" " * max(len(lead), 7))
        )
    return lines


def plan(problem: Problem) -> Plan:
    """Return the routes of a problem, best first, without building or solving anything.

    `.routes` and `.refusals` hold all pairs of a formulation and an installed backend; `.explain()`
    is both as text.

    >>> from klopt.engine.registry import problem_named
    >>> p = plan(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    >>> p.routes[0].backend.name
    'highs'
    """
    given: object = problem
    if not isinstance(given, Problem):
        what = (
            f"the class {given.__name__}"
            if isinstance(given, type)
            else f"a {type(given).__name__}"
        )
        hint = f"; make one: {given.__name__}(...)" if isinstance(given, type) else ""
        raise InvalidProblem(f"{what} is no klopt problem; klopt.problems lists them{hint}")
    known = backends()
    absent = tuple(backend for backend in known if backend.missing)
    installed = tuple(backend for backend in known if backend not in absent) if absent else known
    pairs = [
        (f, backend)
        for f in problem.formulations()
        for backend in installed
        if f.needs <= backend.offers
    ]
    # The sort is stable: among backends of one rank the formulations stay in the problem's order,
    # backends by name.
    pairs.sort(key=lambda pair: pair[1].rank)
    return Plan(
        problem, tuple(Route(*pair) for pair in pairs), installed, absent, broken("klopt.solvers")
    )
