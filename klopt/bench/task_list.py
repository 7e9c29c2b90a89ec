"""What a comparison is asked for, checked before the first solve and turned into tasks.

    problems x formulations x backends x tolerances x repeats

By default every capable backend runs on the first formulation of the plan that it takes. A backend
that cannot take a problem is no failure: the reason is kept and told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from klopt.bench.digest import digest, pristine
from klopt.bench.task import Task, size_of
from klopt.engine.lookup import read_backend, read_problems
from klopt.engine.planner import Route, plan
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Backend, Settings
from klopt.model.problem import Problem

__all__ = ["Target", "TaskList", "ask"]

Target: TypeAlias = Problem | tuple[str, Problem] | type[Problem] | str | Path
"""A problem, one with its label, a class or its name, a file, or `module:function`."""


@dataclass(frozen=True, eq=False)
class TaskList:
    """The tasks, no two of the same key, and why some backends take part in none or not in all."""

    tasks: tuple[Task, ...]
    refusals: tuple[str, ...]


def ask(
    problems: Target | Iterable[Target],
    backends: str | Backend | Iterable[str | Backend] | None,
    *,
    formulation: str | None,
    settings: Sequence[Settings],
    memory_limit: int,
    repeat: int,
    sizes: Sequence[int],
) -> TaskList:
    """Return all tasks, one settings after the other; whatever cannot be meant is refused here."""
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise InvalidSettings(f"repeat is {repeat!r}; expected a whole number of at least 1")
    if not isinstance(memory_limit, int) or memory_limit < 0:
        raise InvalidSettings(f"memory_limit is {memory_limit!r}; expected a number of bytes")
    chosen = _backends(backends)
    tasks: dict[str, Task] = {}
    refusals: list[str] = []
    for label, problem in _labelled(problems, sizes, settings[0].seed):
        problem = pristine(problem)
        data, size = digest(problem), size_of(problem)
        for route in _routes(label, problem, chosen, formulation, refusals):
            for setting in settings:
                for number in range(repeat):
                    task = Task(
                        problem,
                        label,
                        data,
                        route.formulation.name,
                        route.backend,
                        setting,
                        memory_limit,
                        number,
                        size,
                    )
                    tasks.setdefault(task.key, task)
    if not tasks:
        raise NoRoute("\n".join(["nothing to compare:", *dict.fromkeys(refusals)]))
    return TaskList(tuple(tasks.values()), tuple(dict.fromkeys(refusals)))


def _labelled(
    problems: Target | Iterable[Target], sizes: Sequence[int], seed: int
) -> list[tuple[str, Problem]]:
    if isinstance(problems, Problem | str | Path | type) or _is_pair(problems):
        problems = [problems]  # type: ignore[list-item]
    if not isinstance(problems, Iterable):
        raise InvalidProblem(
            f"problems is {problems!r}; expected a klopt problem, a file, a name, or several of them"
        )
    found: list[tuple[str, Problem]] = []
    for target in problems:
        if isinstance(target, str | Path):
            found += read_problems(str(target), sizes, seed)
        elif isinstance(target, type):
            found += read_problems(target.__name__, sizes, seed)
        elif _is_pair(target):
            found.append(target)  # type: ignore[arg-type]
        else:
            found.append((getattr(target, "describe", lambda: "")(), target))  # type: ignore[arg-type]
    if not found:
        raise InvalidSettings(
            'there is no problem to compare on; give one, a file, or the name of one: compare("SoftMargin")'
        )
    for label, problem in found:
        if not isinstance(problem, Problem):
            raise InvalidProblem(
                f"{label or problem!r} is a {type(problem).__name__}; expected a klopt problem"
            )
    return _unique(found)


def _is_pair(target: object) -> bool:
    return (
        isinstance(target, tuple)
        and len(target) == 2
        and isinstance(target[0], str)
        and not _names(target[1])
    )


def _names(thing: object) -> bool:
    return isinstance(thing, str | Path | type | tuple)


def _unique(found: list[tuple[str, Problem]]) -> list[tuple[str, Problem]]:
    """The same with labels that differ: the second `x` is `x (2)`."""
    seen: dict[str, int] = {}
    unique = []
    for label, problem in found:
        seen[label] = seen.get(label, 0) + 1
        unique.append((label if seen[label] == 1 else f"{label} ({seen[label]})", problem))
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
) -> list[Route]:
    """The routes of one problem: all formulations for `all`, the one named, else the first that each backend takes."""
    options = plan(problem)
    names = [f.name for f in problem.formulations()]
    if formulation not in (None, "all", *names):
        near = difflib.get_close_matches(str(formulation), names, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        refusals.append(
            f"{label} has no formulation {formulation!r}{hint}; it has: {', '.join(names)}"
        )
        return []
    if backends is None:
        backends = tuple(dict.fromkeys(route.backend for route in options.routes))
        refusals += [f"{backend.name}: {backend.missing}" for backend in options.absent]
        unable = {refusal.backend.name for refusal in options.refusals} - {
            backend.name for backend in backends
        }
    else:
        unable = {
            b.name for b in backends if not any(f.needs <= b.offers for f in problem.formulations())
        }
    if unable:
        refusals.append(f"no formulation of {label} is for {', '.join(sorted(unable))}")
    routes = [Route(f, b) for b in backends for f in problem.formulations() if f.needs <= b.offers]
    if formulation is not None:
        return [route for route in routes if formulation in ("all", route.formulation.name)]
    return list({route.backend.name: route for route in reversed(routes)}.values())[::-1]
