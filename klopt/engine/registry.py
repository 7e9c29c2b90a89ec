"""Finds the files in `problems/` and `solvers/` and third-party entry points.

A backend is a file of `klopt.solvers` with one `BACKEND`, an entry point of the group
`klopt.solvers`, or an object given to `register`. A problem is a `Problem` class in a file of
`klopt.problems` or an entry point of that group. A plug-in that fails to load, or that takes a name
already given, is listed as broken with its reason; it never stops klopt.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from types import ModuleType

from klopt.errors import InvalidSettings, NoRoute
from klopt.model.backend import Backend, contract_flaw
from klopt.model.problem import Problem

__all__ = [
    "Broken",
    "backend_named",
    "backends",
    "broken",
    "problem_classes",
    "problem_named",
    "problems",
    "register",
]


@dataclass(frozen=True)
class Broken:
    """A file or plug-in that could not be loaded, and why."""

    name: str
    reason: str


_registered: dict[str, Backend] = {}


def register(backend: Backend) -> Backend:
    """Make a backend known for this process and return it; a second one of the same name replaces the first.

    What is to be known always goes into a package with an entry point of the group `klopt.solvers`.

    >>> register(backend_named("highs")).name
    'highs'
    """
    if not isinstance(backend, Backend):
        raise InvalidSettings(
            f"{backend!r} is no klopt.Backend; derive a class from it and register an instance"
        )
    if flaw := contract_flaw(backend):
        raise InvalidSettings(f"{type(backend).__name__} cannot be registered: {flaw}")
    _registered[backend.name] = backend
    return backend


def backends() -> tuple[Backend, ...]:
    """Return every known backend, installed or not, by rank and name.

    >>> "clarabel" in {backend.name for backend in backends()}
    True
    """
    known = {backend.name: backend for backend in _scan("klopt.solvers")[0]} | _registered
    return tuple(sorted(known.values(), key=lambda backend: (backend.rank, backend.name)))


def problems() -> tuple[type[Problem], ...]:
    """Return every known problem class, by name."""
    return tuple(sorted(_scan("klopt.problems")[1], key=lambda problem: problem.__name__))


def broken(*groups: str) -> tuple[Broken, ...]:
    """Return what could not be loaded, of some entry-point groups or of both."""
    return tuple(
        item for group in groups or ("klopt.solvers", "klopt.problems") for item in _scan(group)[2]
    )


def backend_named(name: str) -> Backend:
    """Return the backend of that name; `cvxpy:SCS` asks a backend for one of its variants."""
    base, _, variant = name.partition(":")
    known = {backend.name: backend for backend in backends()}
    if name in known:
        return known[name]
    if base not in known:
        for item in broken("klopt.solvers"):
            if item.name == base:
                raise NoRoute(f"backend {base!r} is broken: {item.reason}")
        near = difflib.get_close_matches(base, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise NoRoute(f"no backend {name!r}{hint} Known: {', '.join(known)}")
    make = getattr(known[base], "variant", None)
    if make is None:
        raise NoRoute(f"backend {base!r} has no variants; use {base!r}")
    found = make(variant)
    assert isinstance(found, Backend)
    return found


def problem_named(name: str) -> type[Problem]:
    """Return the problem class of that name, whatever its case."""
    known = {problem.__name__.lower(): problem for problem in problems()}
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f"; did you mean {known[near[0]].__name__!r}?" if near else "."
        raise NoRoute(
            f"no problem {name!r}{hint} Known: {', '.join(p.__name__ for p in problems())}"
        )
    return known[name.lower()]


Found = tuple[tuple[Backend, ...], tuple[type[Problem], ...], tuple[Broken, ...]]


@cache
def _scan(group: str) -> Found:
    found_backends: dict[str, Backend] = {}
    found_problems: list[type[Problem]] = []
    failures: list[Broken] = []
    for name, loaded in _load(group):
        if isinstance(loaded, Broken):
            failures.append(loaded)
        elif isinstance(loaded, Backend):
            if flaw := contract_flaw(loaded) or (
                loaded.name in found_backends and f"there is another {loaded.name!r}"
            ):
                failures.append(Broken(name, flaw))
            else:
                found_backends[loaded.name] = loaded
        elif isinstance(loaded, type) and issubclass(loaded, Problem):
            found_problems.append(loaded)
        elif not isinstance(loaded, ModuleType):  # a module may hold helpers only
            failures.append(
                Broken(name, f"{loaded!r} is neither a backend, a problem nor a module of them")
            )
    return tuple(found_backends.values()), tuple(found_problems), tuple(failures)


def _load(group: str) -> Iterator[tuple[str, object]]:
    """Yield (name, what it is) for all there is in the package's files and the entry points; a failure as `Broken`."""
    package = importlib.import_module(group)
    sources: list[tuple[str, Callable[[], object]]] = [
        (item.name, partial(importlib.import_module, f"{group}.{item.name}"))
        for item in pkgutil.iter_modules(package.__path__)
        if not item.name.startswith("_")
    ]
    sources += [(point.name, point.load) for point in entry_points(group=group)]
    for name, load in sources:
        loaded = _guarded(name, load)
        yield name, loaded
        if isinstance(loaded, ModuleType):
            yield from (
                (name, item)
                for item in (getattr(loaded, "BACKEND", None), *problem_classes(loaded))
                if item
            )


def _guarded(name: str, load: Callable[[], object]) -> object:
    try:
        loaded = load()
        return loaded() if isinstance(loaded, type) and issubclass(loaded, Backend) else loaded
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # a plug-in may fail in any way, by sys.exit too; it is listed, not raised
        return Broken(name, f"{type(error).__name__}: {error}")


def problem_classes(module: ModuleType) -> list[type[Problem]]:
    """Return the problems that a module defines."""
    own = (
        item
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__
    )
    return [item for item in own if issubclass(item, Problem) and not item.__name__.startswith("_")]
