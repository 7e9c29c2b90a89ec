"""What the words of the command line mean: a problem, a backend, a duration, a native option.

    FILE       its suffix says how to read it, its content which class holds it
    PROBLEM    the name of a problem class, in any case: a random instance of it
    MODULE:FUNCTION
               what the function of that module or Python file returns: a problem, or several with their labels
    BACKEND    the name of a backend, or a Python file with one `BACKEND`
    DURATION   30, 30s, 5m, 2h
    MEMORY     bytes, or 500M, 2G, 2GB
    NUMBERS    50,100,200
    KEY=VALUE  a native option; the value is a Python literal, or else plain text

A word that means nothing is a bad call: the text says what was expected and what is near.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from klopt.errors import InvalidProblem, InvalidSettings, NoRoute

if TYPE_CHECKING:
    from klopt.model.backend import Backend
    from klopt.model.problem import Problem

__all__ = [
    "read_backend",
    "read_duration",
    "read_memory",
    "read_numbers",
    "read_options",
    "read_problem",
    "read_problem_class",
    "read_problems",
]

SIZE = 20
SUFFIXES = (".mps", ".lp", ".dat-s", ".cbf", ".npz")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)\s*([smh]?)")
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_MEMORY = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgt]?)i?b?")


def read_duration(text: str) -> float:
    """Return the seconds that a text like 30, 30s, 5m or 2h means.

    >>> read_duration("1.5m")
    90.0
    """
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidSettings(f"{text!r} is no duration; write seconds (30), or 30s, 5m, 2h")
    return float(found[1]) * _UNITS[found[2]]


def read_memory(text: str) -> int:
    """Return the bytes that a text like 500M or 2G means.

    >>> read_memory("1.5G")
    1500000000
    """
    found = _MEMORY.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidSettings(f"{text!r} is no amount of memory; write bytes, or 500M, 2G")
    return int(float(found[1]) * _BYTES[found[2]])


def read_numbers(text: str, what: str) -> list[float]:
    """Return the numbers in a text like 50,100,200.

    >>> read_numbers("1e-6, 1e-9", "tolerances")
    [1e-06, 1e-09]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSettings(
            f"{text!r} is no list of {what}; write numbers with commas between them"
        ) from None


def read_options(texts: tuple[str, ...]) -> dict[str, Any]:
    """Return native options from texts KEY=VALUE.

    >>> read_options(("max_step_fraction=0.9", "presolve_enable=False", "solver=ipm"))
    {'max_step_fraction': 0.9, 'presolve_enable': False, 'solver': 'ipm'}
    """
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InvalidSettings(f"raw option {text!r} is not of the form KEY=VALUE")
        if key in options:
            raise InvalidSettings(
                f"raw option {key!r} is given twice; one of the values would be lost"
            )
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = value
    return options


def read_problem(text: str, size: int | None, seed: int) -> Problem:
    """Return the problem in a file, or a random instance of the class of that name."""
    path = Path(text)
    if not (path.is_file() or len(path.parts) > 1 or path.name.lower().endswith(SUFFIXES)):
        import numpy as np

        from klopt.engine.registry import problem_named

        return problem_named(text).sample(
            np.random.default_rng(seed), SIZE if size is None else size
        )
    if size is not None:
        raise InvalidSettings(f"--size is for random instances; {text} is a file")
    if not path.is_file():
        here = (
            [str(near) for near in path.parent.glob("*") if near.is_file()]
            if path.parent.is_dir()
            else []
        )
        raise InvalidProblem(f"no file {text!r}{_did_you_mean(text, here)}")
    return _from_file(path)


def read_problems(text: str, sizes: Sequence[int], seed: int) -> list[tuple[str, Problem]]:
    """Return the problems that a word means, with labels: of a class one for each size, of a function all it returns.

    >>> [label for label, _ in read_problems("SoftMargin", [10, 20], seed=0)]
    ['SoftMargin n=10', 'SoftMargin n=20']
    """
    module, colon, function = text.rpartition(":")
    if colon and function.isidentifier() and not Path(text).is_file():
        return _from_function(module, function, sizes)
    path = Path(text)
    if path.is_file() or len(path.parts) > 1 or path.name.lower().endswith(SUFFIXES):
        return [(path.name, read_problem(text, None, seed))]
    made = [read_problem(text, size, seed) for size in sizes or (SIZE,)]
    return [
        (f"{type(p).__name__} n={size}", p) for p, size in zip(made, sizes or (SIZE,), strict=True)
    ]


def _from_function(module: str, function: str, sizes: Sequence[int]) -> list[tuple[str, Problem]]:
    """What the function returns; it is called once for each size if it takes one."""
    import inspect

    from klopt.model.problem import Problem

    home = _module(module)
    make = getattr(home, function, None)
    if not callable(make):
        known = [name for name, value in vars(home).items() if callable(value)]
        raise InvalidProblem(
            f"{module} has no function {function!r}{_did_you_mean(function, known)}"
        )
    sized = bool(sizes and inspect.signature(make).parameters)
    calls = (
        [(make(size), f"{function} n={size}") for size in sizes] if sized else [(make(), function)]
    )
    found: list[tuple[str, Any]] = []
    for made, label in calls:
        if isinstance(made, Iterable):
            found += [
                item if isinstance(item, tuple) else (f"{label} {i}", item)
                for i, item in enumerate(made, 1)
            ]
        else:
            found.append((label, made))
    if not (found and all(isinstance(problem, Problem) for _, problem in found)):
        raise InvalidProblem(
            f"{module}:{function} returned no klopt problem; return one, or pairs (label, problem)"
        )
    return found


def _module(name: str) -> ModuleType:
    import importlib
    import sys

    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InvalidProblem(f"no file {name!r}")
        return _load(Path(name))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(
            ""
        )  # a module beside the user, as `python -m` finds it; children look there too
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidProblem(f"no module {name!r}: {error}") from error


def _from_file(path: Path) -> Problem:
    """The problem of the smallest class that holds what the file says."""
    from klopt.engine.registry import problem_named
    from klopt.programs.formats import read

    try:
        model = read(path)
        if not model.c.size:  # a valid program, but from a file it is a file of another kind
            raise InvalidProblem(f"{path} states no variables; is it a file of this kind?")
        reader: Any = problem_named("SDP" if model.kind == "nothing" else model.kind)
        problem: Problem = reader.from_file(path)
    except OSError as error:
        raise InvalidProblem(f"{path} cannot be read: {error.strerror or error}") from error
    return problem


def read_backend(text: str | None) -> Backend | None:
    """Return the backend of that name or in that Python file; None for none."""
    if text is None:
        return None
    if not text.endswith(".py"):
        from klopt.engine.registry import backend_named

        return backend_named(text)
    from klopt.model.backend import Backend, contract_flaw

    if not Path(text).is_file():
        raise NoRoute(f"no file {text!r}")
    found = getattr(_load(Path(text)), "BACKEND", None)
    if not isinstance(found, Backend):
        raise NoRoute(f"{text} holds no BACKEND; end it with BACKEND = YourBackend()")
    if flaw := contract_flaw(found):
        raise NoRoute(f"the BACKEND of {text} cannot be asked: {flaw}")
    return found


def read_problem_class(text: str) -> type[Problem]:
    """Return the problem class of that name or in that Python file, FILE.py or FILE.py:CLASS."""
    from klopt.engine.registry import problem_classes, problem_named

    stem, ending, wanted = text.partition(".py")
    file, wanted = f"{stem}{ending}", wanted.removeprefix(":")
    if not ending:
        return problem_named(text)
    if not Path(file).is_file():
        raise NoRoute(f"no file {file!r}")
    found = {problem.__name__: problem for problem in problem_classes(_load(Path(file)))}
    if wanted in found:
        return found[wanted]
    if len(found) == 1 and not wanted:
        return next(iter(found.values()))
    if not found:
        raise NoRoute(f"{file} holds no problem; write a class that inherits from klopt.Problem")
    raise NoRoute(f"{file} holds {', '.join(found)}; say which one: {file}:{next(iter(found))}")


def _load(path: Path) -> ModuleType:
    """The module in the file, under a name that cannot hide a library, and known to child processes by its text."""
    import importlib.util
    import sys

    import cloudpickle

    spec = importlib.util.spec_from_file_location(f"klopt_file_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # by sys.exit too
        raise NoRoute(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    cloudpickle.register_pickle_by_value(module)
    return module


def _did_you_mean(text: str, known: list[str]) -> str:
    near = difflib.get_close_matches(text, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
