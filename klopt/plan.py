"""Routes for a problem, best first, and why each other one is refused.

A route is a formulation and a backend that offers all it needs. Routes are sorted by the backend's rank, then by the
problem's own order of formulations, then by name: cheap, deterministic, and no form is built.
"""

from __future__ import annotations

from dataclasses import dataclass

from klopt.backend import Backend
from klopt.errors import InvalidProblem
from klopt.problem import Formulation, Problem
from klopt.registry import Broken, backends, broken

__all__ = ["Plan", "Refusal", "Route", "plan"]


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
    """All routes, all refusals, and the backends that are known but cannot run here."""

    problem: Problem
    routes: tuple[Route, ...]
    refusals: tuple[Refusal, ...]
    absent: tuple[Backend, ...]
    broken: tuple[Broken, ...] = ()

    def explain(self) -> str:
        """Return both lists as text that lines up in 80 columns."""
        names = [f.name for f in self.problem.formulations()]
        wide = max(map(len, names), default=0)
        used = {route.backend.name for route in self.routes} | {refusal.backend.name for refusal in self.refusals}
        lines = [f"{self.problem.describe()}: {len(names)} formulations x {len(used)} backends"]
        lines += [
            f"{number:3}  {route.formulation.name:{wide}}  {route.backend.name:14}  {route.why}"
            for number, route in enumerate(self.routes, 1)
        ]
        if not self.routes:
            lines.append("  no route: nothing installed can take any formulation")
        if self.refusals:
            lines.append("refused")
            lines += [f"     {r.formulation.name:{wide}}  {r.backend.name:14}  {r.missing}" for r in self.refusals]
        if self.absent or self.broken:
            lines.append("not available")
            lines += [f"     {backend.name:14}  {backend.missing}" for backend in self.absent]
            lines += [f"     {item.name:14}  broken: {item.reason}" for item in self.broken]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.explain()


def plan(problem: Problem) -> Plan:
    """Return the routes of a problem, best first, without building or solving anything.

    >>> from klopt.registry import problem_named
    >>> p = plan(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    >>> p.routes[0].backend.name
    'highs'
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"{type(problem).__name__} is no klopt problem; klopt.problems lists them")
    present = [backend for backend in backends() if not backend.missing]
    absent = tuple(backend for backend in backends() if backend.missing)
    pairs = [(f, backend) for f in problem.formulations() for backend in present]
    order = {f.name: index for index, f in enumerate(problem.formulations())}
    routes = [Route(f, backend) for f, backend in pairs if f.needs <= backend.offers]
    routes.sort(key=lambda route: (route.backend.rank, order[route.formulation.name], route.backend.name))
    refusals = tuple(Refusal(f, backend) for f, backend in pairs if not f.needs <= backend.offers)
    return Plan(problem, tuple(routes), refusals, absent, broken())
