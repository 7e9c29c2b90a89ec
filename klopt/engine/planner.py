"""Routes for a problem, best first, and why each other one is refused.

A route is a formulation and a backend that offers all it needs. For a general program, whose form is
its own statement, the expected seconds decide (`klopt.engine.route_costs`): every backend's first
formulation, the quickest backend first, then the other formulations in the same order. Elsewhere,
and where times are too short to matter, it is the backend's rank, then the problem's own order of
formulations, then the backend's name. Planning is cheap, deterministic, and builds no form.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from itertools import product
from textwrap import fill
from typing import NamedTuple

from klopt.engine.cvxpy_problems import as_problem
from klopt.engine.memory import memory_refusal
from klopt.engine.registry import Broken, backend_named, backends, broken
from klopt.engine.route_costs import ProgramSize, about, expected_seconds, groups_of_alike
from klopt.engine.words import counted
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Backend, Settings, contract_flaw
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, Form
from klopt.model.html import formula, html_table
from klopt.model.problem import Formulation, Problem
from klopt.programs.cvxpy_reduction import CvxpyProblem

__all__ = ["Plan", "Refusal", "Route", "plan", "routes_for"]

TEXT_COLUMNS = 80
"""The width of a plan as text."""

MAX_REASONS = 3
"""How many reasons are named where refusals are counted."""
RANKS = (
    "order: by expected time where it is known, else by rank (10 exact, 20 interior point, "
    "30 first order, 50 through another library)"
)
"""What a rank means."""
MIN_REASON_COLUMNS = 24
"""What the names of a row must leave for its text; where they leave less, all of it is one text."""


@dataclass(frozen=True, eq=False)
class Route:
    """A formulation and a backend that can take it."""

    formulation: Formulation
    backend: Backend
    expected: float | None = None
    """The seconds that it is expected to take; None where nothing is known."""

    @property
    def why(self) -> str:
        """Why it stands where it does."""
        if self.expected is None:
            return f"rank {self.backend.rank}"
        return about(self.expected)

    def __str__(self) -> str:
        return f"{self.backend.name} on {self.formulation.name}"


@dataclass(frozen=True, eq=False)
class Refusal:
    """A formulation and a backend that cannot take it, with what is missing."""

    formulation: Formulation
    backend: Backend
    memory: str = ""
    """Why it would need too much memory; "" where it lacks something else."""

    @property
    def missing(self) -> str:
        """What the formulation needs and the backend or the computer does not offer."""
        lacking = sorted(self.formulation.needs - self.backend.offers)
        return self.memory or ", ".join(map(_without, lacking))


def _without(feature: Feature) -> str:
    """A feature that a backend lacks, in words.

    >>> _without(Feature.SOC), _without(Feature.QUADRATIC)
    ('no second-order cones', 'no quadratic objective')
    """
    return f"no {feature.value.removeprefix('a ')}"


@dataclass(frozen=True, eq=False)
class Plan:
    """All routes of a problem, best first; all refusals; and the backends that cannot run here.

    `klopt.plan(problem)` makes it.

    Attributes
    ----------
    routes : tuple of Route
        What can be tried, best first.
    refusals : tuple of Refusal
        What cannot, with the feature that is missing.
    installed, absent : tuple of Backend
        The backends that can run, and those whose library is not installed.
    broken : tuple
        The plug-ins that failed to load.
    """

    problem: Problem
    routes: tuple[Route, ...]
    installed: tuple[Backend, ...]
    absent: tuple[Backend, ...]
    too_large: tuple[Refusal, ...] = ()
    """The pairs that need more memory than the limit, where one was given."""

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The pairs that are no route, and why."""
        pairs = product(self.problem.formulations(), self.installed)
        unfit = (Refusal(f, backend) for f, backend in pairs if not f.needs <= backend.offers)
        return (*self.too_large, *unfit)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The solver files and plug-ins that failed to load, and why."""
        return broken("klopt.solvers")

    def explain(self, *, refused: bool = False) -> str:
        """Return the routes as text that lines up in 80 columns, and how many pairs are refused.

        With `refused` each of these is listed, with what it lacks.
        """
        formulations = [formulation.name for formulation in self.problem.formulations()]
        installed = {backend.name for backend in self.installed}
        head = (
            f"{self.problem.describe()}: {counted(len(formulations), 'formulation')} x "
            f"{counted(len(installed), 'backend')}"
        )
        lines = [fill(head, TEXT_COLUMNS, subsequent_indent="  ")]

        routes = [
            _Row(f"{number:3}", route.formulation.name, route.backend.name, route.why)
            for number, route in enumerate(self.routes, 1)
        ]
        lines += _aligned(routes, formulations, installed)
        if not routes:
            lines.append("  no route: nothing installed can take any formulation")

        if any(route.expected is None for route in self.routes):
            lines.append(fill(RANKS, TEXT_COLUMNS, subsequent_indent="  "))

        refusals = self.refusals
        if refusals and (refused or not routes):
            rows = [_Row("", r.formulation.name, r.backend.name, r.missing) for r in refusals]
            lines.append("refused")
            lines += _aligned(rows, formulations, installed)
        elif refusals:
            lines.append(fill(_counted_refusals(refusals), TEXT_COLUMNS, subsequent_indent="  "))

        away = [_Row("", backend.name, "", backend.missing) for backend in self.absent]
        away += [_Row("", item.name, "", f"broken: {item.reason}") for item in self.broken]
        if away:
            lines.append("not available")
            lines += _aligned(away, [row.name for row in away], ())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = [
            (number, route.backend.name, route.formulation.name, route.why)
            for number, route in enumerate(self.routes, 1)
        ]
        title = f"<p><b>Plan</b> for {escape(self.problem.describe())}</p>"
        stated = formula(self.problem.statement.latex, self.problem.sense)
        heads = ["", "solver", "formulation", "why"]
        left_out = f"<p>Routes refused: {len(self.refusals)}; explain() says why.</p>"
        refused = left_out if self.refusals else ""
        return title + stated + html_table("Best first", heads, rows) + refused


def _counted_refusals(refusals: Collection[Refusal]) -> str:
    """How many pairs are refused, and what they lack most often."""
    often = Counter(
        _without(feature)
        for refusal in refusals
        for feature in refusal.formulation.needs - refusal.backend.offers
    )
    ranking = sorted(often.items(), key=lambda item: (-item[1], item[0]))
    most = ", ".join(f"{words} ({count})" for words, count in ranking[:MAX_REASONS])
    why = f": {most}" if most else ""
    pairs = counted(len(refusals), "other pair")
    return f"refused: {pairs}{why}; klopt plan --refused or .explain(refused=True) lists them"


class _Row(NamedTuple):
    """One row of a plan as text."""

    number: str
    name: str
    backend: str
    text: str


def _aligned(rows: list[_Row], names: Collection[str], backends: Collection[str]) -> list[str]:
    """The rows with columns as wide as the names; a long text continues below itself."""
    name_columns = max(map(len, names), default=0)
    backend_columns = max(map(len, backends), default=0)

    lines = []
    for number, name, backend, text in rows:
        lead = f"{number:5}{name:{name_columns}}  "
        if backend_columns:
            lead += f"{backend:{backend_columns}}  "
        # Beside names this long a text would be a column of single words.
        if len(lead) > TEXT_COLUMNS - MIN_REASON_COLUMNS:
            lead = f"{number:5}"
            text = "  ".join((name, backend, text))
        below = " " * max(len(lead), 7)
        lines.append(fill(text, TEXT_COLUMNS, initial_indent=lead, subsequent_indent=below))
    return lines


def plan(problem: Problem | CvxpyProblem, *, memory_limit: int | None = None) -> Plan:
    """Return the routes of a problem, best first, without building or solving anything.

    `.routes` and `.refusals` hold all pairs of a formulation and an installed backend; `.explain()`
    is the first as text, `.explain(refused=True)` both. With a `memory_limit` in bytes each form is
    built, and a route that is foreseen to need more is refused with the figure. A `cvxpy.Problem` is
    planned as the cone program that CVXPY reduces it to.

    Parameters
    ----------
    problem : Problem or cvxpy.Problem
        What would be solved.
    memory_limit : int or None
        Bytes that a route may need.

    Returns
    -------
    Plan
        The routes, best first, and what was left out and why.

    Examples
    --------
    >>> from klopt.engine.registry import problem_named
    >>> p = plan(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    >>> p.routes[0].backend.name
    'highs'
    """
    stated = as_problem(problem)
    _refuse_other_things(stated)
    installed = []
    absent = []
    for backend in backends():
        if backend.missing:
            absent.append(backend)
        else:
            installed.append(backend)

    routes = _ordered(stated, installed)
    limit = Settings(memory_limit=memory_limit).memory_limit
    too_large = [] if limit is None else _too_large(routes, limit)
    refused = {(refusal.formulation.name, refusal.backend) for refusal in too_large}
    fit = [route for route in routes if (route.formulation.name, route.backend) not in refused]
    return Plan(stated, tuple(fit), tuple(installed), tuple(absent), tuple(too_large))


def _ordered(problem: Problem, installed: list[Backend]) -> list[Route]:
    """All routes of a problem, best first."""
    size = _size(problem)
    routes = []
    for formulation in problem.formulations():
        for backend in installed:
            if formulation.needs <= backend.offers:
                expected = None if size is None else expected_seconds(backend, size)
                routes.append(Route(formulation, backend, expected))
    # Sorts are stable: among backends of one rank the formulations stay in the problem's order,
    # backends by name.
    routes.sort(key=lambda route: route.backend.rank)
    if size is None:
        return routes

    first: dict[Backend, Route] = {}
    for route in routes:
        first.setdefault(route.backend, route)
    measured = [route.backend.rank for route in routes if route.expected is not None]
    best_rank = min(measured, default=0)
    times = [route.expected for route in routes if route.expected is not None]
    group = groups_of_alike(times, size.kind)

    def place(route: Route) -> tuple[int, bool, int, int]:
        """Where it stands: smaller is sooner."""
        rank = route.backend.rank
        if route.expected is None:
            # Who was never measured stands where its rank says, before or after all that were.
            return (0 if rank < best_rank else 2), False, 0, rank
        return 1, route is not first[route.backend], group[route.expected], rank

    return sorted(routes, key=place)


def _size(problem: Problem) -> ProgramSize | None:
    """The size of a general program; None of other problems, whose forms are not built here."""
    try:
        form = problem.stated_form()
    except InvalidProblem:  # its numbers cannot be written down; a solve says more of that
        return None
    return ProgramSize.of(form) if isinstance(form, ConeForm) else None


def _too_large(routes: list[Route], memory_limit: int) -> list[Refusal]:
    """The routes that need more memory than the limit."""
    forms: dict[str, Form | None] = {}
    found = []
    for route in routes:
        formulation = route.formulation
        if formulation.name not in forms:
            forms[formulation.name] = _built(formulation)
        form = forms[formulation.name]
        if form is None:
            continue
        if reason := memory_refusal(route.backend, form, memory_limit):
            found.append(Refusal(formulation, route.backend, reason))
    return found


def _built(formulation: Formulation) -> Form | None:
    """The form, None where its numbers cannot be written down; a solve says more of that."""
    try:
        return formulation.build()
    except InvalidProblem:
        return None


def _refuse_other_things(given: object) -> None:
    """Refuse what is no problem; a class of problems is a frequent slip and gets a hint."""
    if isinstance(given, Problem):
        return
    what = f"a {type(given).__name__}"
    hint = ""
    if isinstance(given, type):
        what = f"the class {given.__name__}"
        hint = f"; make one: {given.__name__}(...)"
    raise InvalidProblem(f"{what} is no klopt problem; klopt.problems lists them{hint}")


def routes_for(
    problem: Problem,
    backend: str | Backend | None,
    formulation: str | None,
    settings: Settings,
) -> tuple[Route, ...]:
    """Return the routes that the user's choice leaves, at least one; an empty choice is explained.

    Parameters
    ----------
    problem
        What is to be solved.
    backend
        The name or instance of the only backend to use; None allows all.
    formulation
        The name of the only formulation to use; None allows all.
    settings
        An iteration limit leaves out the backends that cannot keep one.
    """
    options = plan(problem)
    # A wrong name is told before anything is said of backends.
    if formulation is not None:
        _check_formulation(problem, formulation)

    routes = options.routes
    if backend is not None:
        pinned = backend_named(backend) if isinstance(backend, str) else backend
        routes = _routes_of_backend(options, pinned)
    if formulation is not None:
        routes = _routes_of_formulation(routes, formulation, pinned=backend is not None)
    if not routes:
        chosen = f" by formulation {formulation!r}" if formulation else ""
        raise NoRoute(
            f"nothing installed can solve {problem.describe()}{chosen}\n{options.explain(refused=True)}"
        )
    if settings.max_iter is not None:
        routes = _routes_with_iteration_limit(routes)
    return routes


def _check_formulation(problem: Problem, formulation: object) -> None:
    names = [known.name for known in problem.formulations()]
    if not isinstance(formulation, str):
        raise InvalidSettings(
            f"formulation is {formulation!r}; expected a name, one of: {', '.join(names)}"
        )
    if formulation in names:
        return
    near = difflib.get_close_matches(formulation, names, n=1, cutoff=0.3)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise NoRoute(
        f"{problem.describe()} has no formulation {formulation!r}{hint} It has: {', '.join(names)}"
    )


def _routes_of_backend(options: Plan, backend: object) -> tuple[Route, ...]:
    """The routes of a backend that the user named: it need not be registered, so it is checked."""
    if not isinstance(backend, Backend):
        raise InvalidSettings(
            f"backend is {backend!r}; expected a name or an instance of klopt.Backend"
        )
    if flaw := contract_flaw(backend):
        raise InvalidSettings(f"{type(backend).__name__} cannot be asked: {flaw}")
    # A missing library is told here, not in the middle of a solve.
    if backend.missing:
        raise NoRoute(f"backend {backend.name!r} cannot run here: {backend.missing}")

    formulations = options.problem.formulations()
    routes = tuple(_ordered(options.problem, [backend]))
    if routes:
        return routes
    lacking = "; ".join(
        f"{f.name}: {', '.join(sorted(f.needs - backend.offers))}" for f in formulations
    )
    able = sorted({route.backend.name for route in options.routes})
    raise NoRoute(
        f"{backend.name} cannot solve {options.problem.describe()}. "
        f"It lacks, by formulation, {lacking}. "
        f"Backends here that can: {', '.join(able) or 'none'}"
    )


def _routes_of_formulation(
    routes: tuple[Route, ...], formulation: str, *, pinned: bool
) -> tuple[Route, ...]:
    """The routes by one formulation; a pinned backend that refuses it says what it takes."""
    left = tuple(route for route in routes if route.formulation.name == formulation)
    if left or not (pinned and routes):
        return left
    taken = ", ".join(dict.fromkeys(repr(route.formulation.name) for route in routes))
    raise NoRoute(
        f"{routes[0].backend.name} cannot take the formulation {formulation!r}; it takes {taken}"
    )


def _routes_with_iteration_limit(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    counting = tuple(route for route in routes if "max_iter" in route.backend.honours)
    if not counting:
        raise InvalidSettings(
            f"{routes[0].backend.name} has no iteration limit; leave max_iter out or set time_limit"
        )
    return counting
