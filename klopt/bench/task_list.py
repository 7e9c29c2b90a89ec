"""`task_list`: what a comparison is asked for, checked before the first solve, as tasks.

    problems x formulations x backends x tolerances x repeats

By default every capable backend runs on the first formulation of the plan that it takes. A backend
that cannot take a problem is no failure: the reason is kept and reported.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypeAlias

from klopt.bench.digest import digest, pristine
from klopt.bench.task import Task, size_of
from klopt.engine.cvxpy_problems import as_problem
from klopt.engine.lookup import read_backend, read_problems
from klopt.engine.planner import Plan, Route, plan
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Backend, Settings, memory_limit_of
from klopt.model.problem import Problem
from klopt.programs.cvxpy_reduction import CvxpyProblem, is_cvxpy_problem

__all__ = ["Target", "TaskList", "task_list"]

Target: TypeAlias = Problem | tuple[str, Problem] | type[Problem] | str | Path | CvxpyProblem
"""A problem of klopt or CVXPY, one with its label, a class or its name, a file, or `module:function`."""
MAX_LABELS = 3
"""Problems that a refusal names."""


@dataclass(frozen=True, eq=False)
class TaskList:
    """The tasks, no two of the same key, and why some backends take part in none or not in all."""

    tasks: tuple[Task, ...]
    refusals: tuple[str, ...]


def task_list(
    problems: Target | Iterable[Target],
    backends: str | Backend | Iterable[str | Backend] | None,
    *,
    formulation: str | None,
    settings: Sequence[Settings],
    memory_limit: int,
    repeat: int,
    sizes: Sequence[int],
) -> TaskList:
    """Return all tasks; whatever makes no sense is refused here.

    Parameters
    ----------
    problems, backends, formulation, sizes
        As in `klopt.compare`.
    settings
        One for each tolerance.
    memory_limit
        In bytes; 0 for none.
    repeat
        How often each run is made.
    """
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise InvalidSettings(f"repeat is {repeat!r}; expected a whole number of at least 1")
    memory_limit = memory_limit_of(memory_limit) or 0
    chosen = _backends(backends)
    tasks: dict[str, Task] = {}
    refusals: list[str] = []
    unable: dict[tuple[str, ...], list[str]] = {}
    for label, given in _labelled(problems, sizes, settings[0]):
        problem = pristine(given)
        data = digest(problem)
        routes = _routes(label, problem, chosen, formulation, refusals, unable)
        for route, setting, number in product(routes, settings, range(repeat)):
            task = Task(
                problem=problem,
                label=label,
                data=data,
                formulation=route.formulation.name,
                backend=route.backend,
                settings=setting,
                memory_limit=memory_limit,
                repeat=number,
                size=size_of(problem),
            )
            # The same problem given twice, or a backend under two names, is run once.
            tasks.setdefault(task.key, task)
    refusals += [_unable(names, labels) for names, labels in unable.items()]
    if not tasks:
        raise NoRoute("\n".join(["nothing to compare:", *dict.fromkeys(refusals)]))
    return TaskList(tuple(tasks.values()), tuple(dict.fromkeys(refusals)))


def _labelled(
    problems: Target | Iterable[Target], sizes: Sequence[int], setting: Settings
) -> list[tuple[str, Problem]]:
    alone = isinstance(problems, Problem | str | Path | type) or is_cvxpy_problem(problems)
    if alone or _is_pair(problems):
        problems = [problems]  # type: ignore[list-item]
    if not isinstance(problems, Iterable):
        raise InvalidProblem(
            f"problems is {problems!r}; "
            "expected a klopt problem, a file, a name, or several of them"
        )
    found: list[tuple[str, Problem]] = []
    for target in problems:
        if isinstance(target, str | Path):
            # Reading a file may take as long as a run.
            found += read_problems(str(target), sizes, setting.seed, setting.time_limit)
        elif isinstance(target, type):
            found += read_problems(target.__name__, sizes, setting.seed)
        elif _is_pair(target):
            label, problem = target  # type: ignore[misc]
            found.append((label, as_problem(problem)))
        else:
            problem = as_problem(target)  # type: ignore[arg-type]  # checked below
            label = problem.describe() if isinstance(problem, Problem) else ""
            found.append((label, problem))
    if not found:
        raise InvalidSettings(
            "there is no problem to compare on; "
            'give one, a file, or the name of one: compare("SoftMargin")'
        )
    for label, problem in found:
        if not isinstance(problem, Problem):
            raise InvalidProblem(
                f"{label or problem!r} is a {type(problem).__name__}; expected a klopt problem"
            )
    return _unique(found)


def _is_pair(target: object) -> bool:
    """Whether it is (label, problem): two names, files or classes are two targets."""
    if not (isinstance(target, tuple) and len(target) == 2):
        return False
    label, problem = target
    return isinstance(label, str) and not isinstance(problem, str | Path | type | tuple)


def _unique(found: list[tuple[str, Problem]]) -> list[tuple[str, Problem]]:
    """The same with labels that differ: the second `x` is `x (2)`."""
    seen: dict[str, int] = {}
    unique = []
    for label, problem in found:
        seen[label] = seen.get(label, 0) + 1
        number = seen[label]
        unique.append((label if number == 1 else f"{label} ({number})", problem))
    return unique


def _backends(
    backends: str | Backend | Iterable[str | Backend] | None,
) -> tuple[Backend, ...] | None:
    if backends is None:
        return None
    named = [backends] if isinstance(backends, str | Backend) else list(backends)
    found = [read_backend(item) if isinstance(item, str) else item for item in named]
    for backend in found:
        if not isinstance(backend, Backend):
            raise InvalidSettings(
                f"backend is {backend!r}; expected a name or an instance of klopt.Backend"
            )
        if backend.missing:
            raise NoRoute(f"backend {backend.name!r} cannot run here: {backend.missing}")
    if not found:
        raise InvalidSettings(
            "there is no backend to compare; leave `backends` out for all of them"
        )
    return tuple(backend for backend in found if backend is not None)


def _routes(
    label: str,
    problem: Problem,
    backends: tuple[Backend, ...] | None,
    formulation: str | None,
    refusals: list[str],
    unable: dict[tuple[str, ...], list[str]],
) -> list[Route]:
    """The routes of one problem.

    By all formulations for `all`, by the one named, else by the first that each backend takes.
    What cannot take part is added to `refusals`, and to `unable` the label under the names of the
    backends that take no formulation of it.
    """
    names = [f.name for f in problem.formulations()]
    if formulation not in (None, "all", *names):
        refusals.append(_no_formulation(label, str(formulation), names))
        return []

    if backends is None:
        options = plan(problem)
        backends = tuple(dict.fromkeys(route.backend for route in options.routes))
        refusals += [f"{backend.name}: {backend.missing}" for backend in options.absent]
        refused = _refused(options)
    else:
        refused = {backend.name for backend in backends if not _taken(problem, backend)}
    if refused:
        unable.setdefault(tuple(sorted(refused)), []).append(label)

    routes = [route for backend in backends for route in _taken(problem, backend)]
    # Plans list the preferred formulation first.
    if formulation is None:
        first: dict[str, Route] = {}
        for route in routes:
            first.setdefault(route.backend.name, route)
        return list(first.values())
    return [route for route in routes if formulation in ("all", route.formulation.name)]


def _unable(names: Sequence[str], labels: Sequence[str]) -> str:
    """Which backends take no formulation of which problems.

    >>> _unable(["highs"], ["LP n=1", "LP n=2", "LP n=3", "LP n=4"])
    'no formulation of LP n=1, LP n=2, LP n=3 and 1 more is for highs'
    """
    shown = ", ".join(labels[:MAX_LABELS])
    if len(labels) > MAX_LABELS:
        shown += f" and {len(labels) - MAX_LABELS} more"
    return f"no formulation of {shown} is for {', '.join(names)}"


def _no_formulation(label: str, formulation: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(formulation, names, n=1, cutoff=0.3)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{label} has no formulation {formulation!r}{hint}; it has: {', '.join(names)}"


def _refused(options: Plan) -> set[str]:
    """The names of installed backends that take no formulation."""
    able = {route.backend.name for route in options.routes}
    return {refusal.backend.name for refusal in options.refusals} - able


def _taken(problem: Problem, backend: Backend) -> list[Route]:
    """The routes by one backend, in the order of the formulations."""
    return [Route(f, backend) for f in problem.formulations() if f.needs <= backend.offers]
