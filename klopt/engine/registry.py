"""Finds backends and problems: in `problems/` and `solvers/`, by entry points, by `register`.

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
    """Make a backend known for this process and return it; the last one of a name counts.

    A backend that every process should know belongs in a package with an entry point of the group
    `klopt.solvers`.

    Parameters
    ----------
    backend : Backend
        An instance with a name.

    Returns
    -------
    Backend
        The same instance.

    Examples
    --------
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

    Returns
    -------
    tuple of Backend
        Those of klopt, of installed packages, and those that were registered.

    Examples
    --------
    >>> "clarabel" in {backend.name for backend in backends()}
    True
    """
    found, _, _ = _scan("klopt.solvers")
    known = {backend.name: backend for backend in found} | _registered
    return tuple(sorted(known.values(), key=lambda backend: (backend.rank, backend.name)))


def problems() -> tuple[type[Problem], ...]:
    """Return every known problem class, by name."""
    _, found, _ = _scan("klopt.problems")
    return tuple(sorted(found, key=lambda problem: problem.__name__))


def broken(*groups: str) -> tuple[Broken, ...]:
    """Return what could not be loaded, of some entry-point groups or of both."""
    listed: list[Broken] = []
    for group in groups or ("klopt.solvers", "klopt.problems"):
        _, _, failures = _scan(group)
        listed += failures
    return tuple(listed)


def backend_named(name: str) -> Backend:
    """Return the backend of that name; `cvxpy:SCS` asks a backend for one of its variants."""
    known = {backend.name: backend for backend in backends()}
    if name in known:
        return known[name]
    base, _, variant = name.partition(":")
    if base not in known:
        raise NoRoute(_no_backend(name, base, list(known)))
    make = getattr(known[base], "variant", None)
    if make is None:
        raise NoRoute(f"backend {base!r} has no variants; use {base!r}")
    found = make(variant)
    assert isinstance(found, Backend)
    return found


def _no_backend(name: str, base: str, known: list[str]) -> str:
    """Why there is no such backend: it failed to load, or the name is wrong."""
    for item in broken("klopt.solvers"):
        if item.name == base:
            return f"backend {base!r} is broken: {item.reason}"
    near = difflib.get_close_matches(base, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"no backend {name!r}{hint} Known: {', '.join(known)}"


def problem_named(name: str) -> type[Problem]:
    """Return the problem class of that name, whatever its case."""
    known = {problem.__name__.lower(): problem for problem in problems()}
    found = known.get(name.lower())
    if found is not None:
        return found
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean {known[near[0]].__name__!r}?" if near else "."
    names = ", ".join(problem.__name__ for problem in known.values())
    raise NoRoute(f"no problem {name!r}{hint} Known: {names}")


Found = tuple[tuple[Backend, ...], tuple[type[Problem], ...], tuple[Broken, ...]]


@cache
def _scan(group: str) -> Found:
    """The backends, problems and failures of one entry-point group, found once per process."""
    found_backends: dict[str, Backend] = {}
    found_problems: list[type[Problem]] = []
    failures: list[Broken] = []
    for name, loaded in _load(group):
        if isinstance(loaded, Broken):
            failures.append(loaded)
        elif isinstance(loaded, Backend):
            flaw = contract_flaw(loaded)
            # What klopt ships is loaded first, so no plug-in can take the place of it.
            if not flaw and loaded.name in found_backends:
                flaw = f"there is another {loaded.name!r}"
            if flaw:
                failures.append(Broken(name, flaw))
            else:
                found_backends[loaded.name] = loaded
        elif isinstance(loaded, type) and issubclass(loaded, Problem):
            found_problems.append(loaded)
        elif not isinstance(loaded, ModuleType):  # a module may hold helpers only
            what = f"{loaded!r} is neither a backend, a problem nor a module of them"
            failures.append(Broken(name, what))
    return tuple(found_backends.values()), tuple(found_problems), tuple(failures)


def _load(group: str) -> Iterator[tuple[str, object]]:
    """Yield (name, thing) for the package's files and the entry points; a failure as `Broken`."""
    package = importlib.import_module(group)
    sources: list[tuple[str, Callable[[], object]]] = []
    for file in pkgutil.iter_modules(package.__path__):
        if not file.name.startswith("_"):
            import_file = partial(importlib.import_module, f"{group}.{file.name}")
            sources.append((file.name, import_file))
    for point in entry_points(group=group):
        sources.append((point.name, point.load))

    for name, load in sources:
        loaded = _guarded(name, load)
        yield name, loaded
        if isinstance(loaded, ModuleType):
            backend = getattr(loaded, "BACKEND", None)
            if backend:
                yield name, backend
            for problem in problem_classes(loaded):
                yield name, problem


def _guarded(name: str, load: Callable[[], object]) -> object:
    """What a source holds, of a backend's class an instance; a failure is listed, not raised."""
    try:
        loaded = load()
        if isinstance(loaded, type) and issubclass(loaded, Backend):
            return loaded()
        return loaded
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plug-in may fail in any way, by sys.exit too
        return Broken(name, f"{type(error).__name__}: {error}")


def problem_classes(module: ModuleType) -> list[type[Problem]]:
    """Return the public problems that a module defines, not those that it imports."""
    found = []
    for item in vars(module).values():
        is_own = isinstance(item, type) and item.__module__ == module.__name__
        if is_own and issubclass(item, Problem) and not item.__name__.startswith("_"):
            found.append(item)
    return found
