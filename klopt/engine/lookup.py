"""The problem, the backend or the problem class that a text or a file names.

    FILE       its suffix says how to read it, its content which class holds it
    PROBLEM    the name of a problem class, in any case: a random instance of it
    MODULE:NAME
               what that module or Python file has under the name: a problem of klopt or of CVXPY,
               several with their labels, or a function that returns them
    BACKEND    the name of a backend, or a Python file with one `BACKEND`
    CLASS      the name of a problem class, or a Python file with one, FILE.py or FILE.py:CLASS

A text that names nothing is a bad call: the error says what was expected and what is near.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from klopt.engine.cvxpy_problems import as_problem
from klopt.engine.registry import backend_named, problem_classes, problem_named
from klopt.errors import InvalidProblem, InvalidSettings, NoRoute
from klopt.model.backend import Backend, contract_flaw
from klopt.model.problem import Problem

__all__ = [
    "read_backend",
    "read_object",
    "read_problem",
    "read_problem_class",
    "read_problems",
]

DEFAULT_SIZE = 20
"""The size of a random instance where none is asked for."""

SUFFIXES = (".mps", ".lp", ".dat-s", ".cbf", ".npz")
"""How the names of files end that state a problem."""

Labelled = list[tuple[str, Problem]]


def read_problem(
    text: str,
    size: int | None,
    seed: int,
    exact: bool = False,
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> Problem:
    """Return the problem in a file or of a module, or a random instance of the class of that name.

    Parameters
    ----------
    text
        A path or a name; FILE.py:NAME and MODULE:NAME are what a Python file or module has.
    size, seed
        Those of a random instance.
    exact
        Whether the decimals of a file are kept as rationals.
    time_limit, memory_limit
        The seconds that reading a file may take and the bytes that it may ask for.
    """
    if _names_an_object(text):
        if exact:
            raise InvalidSettings(f"--exact is for files of linear programs; {text} is none")
        return _only(text, read_problems(text, () if size is None else (size,), seed))
    if not _names_a_file(text):
        rng = np.random.default_rng(seed)
        return problem_named(text).sample(rng, DEFAULT_SIZE if size is None else size)
    if size is not None:
        raise InvalidSettings(f"--size is for random instances; {text} is a file")
    path = Path(text)
    if not path.exists():
        folder = path.parent.glob("*") if path.parent.is_dir() else ()
        files = [str(file) for file in folder if file.is_file()]
        raise InvalidProblem(f"no file {text!r}{_did_you_mean(text, files)}")
    return _from_file(path, exact, time_limit, memory_limit)


def _names_an_object(text: str) -> bool:
    """Whether a text is MODULE:NAME or FILE.py:NAME."""
    module, colon, name = text.rpartition(":")
    return bool(colon and module and name.isidentifier()) and not Path(text).is_file()


def _only(text: str, found: Labelled) -> Problem:
    """The problem where there is one."""
    if len(found) != 1:
        raise InvalidProblem(f"{text} has {len(found)} problems; name one that has a single one")
    return found[0][1]


def _names_a_file(text: str) -> bool:
    """Whether a text means a file, even a missing one: by its suffix or its folder."""
    path = Path(text)
    return path.is_file() or len(path.parts) > 1 or path.name.lower().endswith(SUFFIXES)


def _from_file(
    path: Path,
    exact: bool = False,
    time_limit: float | None = None,
    memory_limit: float | None = None,
) -> Problem:
    """The problem of the smallest class that holds what the file states."""
    from klopt.programs.formats import opened

    with opened(path, exact, time_limit=time_limit, memory_limit=memory_limit) as model:
        if not model.c.size:  # a valid program, but from a file it is a file of another kind
            raise InvalidProblem(f"{path} states no variables; is it a file of this kind?")
        reader: Any = problem_named("SDP" if model.kind == "nothing" else model.kind)
        if exact and model.kind != "LP":
            raise InvalidProblem(f"{path} states no linear program; --exact is for those")
        problem: Problem = reader.from_model(model, path)
        return cast(Any, problem).in_rationals() if exact else problem


def read_problems(
    text: str, sizes: Sequence[int], seed: int, time_limit: float | None = None
) -> Labelled:
    """Return the problems that a text names, with labels.

    Of a class there is one for each size, of a file one, of a function all it returns. Reading a
    file may take `time_limit` seconds.

    >>> [label for label, _ in read_problems("SoftMargin", [10, 20], seed=0)]
    ['SoftMargin n=10', 'SoftMargin n=20']
    """
    if _names_an_object(text):
        module, _, name = text.rpartition(":")
        return _from_module(module, name, sizes)
    if _names_a_file(text):
        return [(Path(text).name, read_problem(text, None, seed, time_limit=time_limit))]
    found: Labelled = []
    for size in sizes or (DEFAULT_SIZE,):
        problem = read_problem(text, size, seed)
        found.append((f"{type(problem).__name__} n={size}", problem))
    return found


def _from_module(module: str, name: str, sizes: Sequence[int]) -> Labelled:
    """What a module has under a name; a function is called once for each size if it takes one."""
    home = _module(module)
    if not hasattr(home, name):
        known = [known for known in vars(home) if not known.startswith("_")]
        raise InvalidProblem(
            f"{module} has no function or problem {name!r}{_did_you_mean(name, known)}"
        )
    named = getattr(home, name)
    found: list[tuple[str, Any]] = []
    if not inspect.isroutine(named):
        if sizes:
            raise InvalidSettings(f"sizes are for random instances; {module}:{name} is a problem")
        found += _labelled(named, name)
    elif sizes and inspect.signature(named).parameters:
        for size in sizes:
            found += _labelled(named(size), f"{name} n={size}")
    else:
        found += _labelled(named(), name)
    if not (found and all(isinstance(problem, Problem) for _, problem in found)):
        what = "returned" if inspect.isroutine(named) else "is"
        raise InvalidProblem(
            f"{module}:{name} {what} no klopt problem and none of CVXPY; it may be one, or pairs "
            "(label, problem), or a function that returns them"
        )
    return found


def _labelled(made: Any, label: str) -> list[tuple[str, Any]]:
    """One thing under its label, or several: pairs as they are, others numbered."""
    if not isinstance(made, Iterable):
        return [(label, as_problem(made))]
    pairs = [
        item if isinstance(item, tuple) else (f"{label} {number}", item)
        for number, item in enumerate(made, 1)
    ]
    return [(label, as_problem(item)) for label, item in pairs]


def _module(name: str) -> ModuleType:
    """The module of that name or in that Python file."""
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InvalidProblem(f"no file {name!r}")
        return _load(Path(name))
    # A module beside the user, as `python -m` finds it; child processes look there too.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append("")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidProblem(f"no module {name!r}: {error}") from error


def read_object(text: str) -> Any:
    """Return what MODULE:NAME or FILE.py:NAME names; a function is called and returns it.

    >>> read_object("math:pi")
    3.141592653589793
    """
    module, colon, name = text.rpartition(":")
    if not (colon and module and name.isidentifier()):
        raise InvalidProblem(f"{text!r} names nothing; write MODULE:NAME or FILE.py:NAME")
    home = _module(module)
    if not hasattr(home, name):
        raise InvalidProblem(f"{module} has no {name!r}{_did_you_mean(name, list(vars(home)))}")
    found = getattr(home, name)
    return found() if inspect.isfunction(found) else found


def read_backend(text: str | None) -> Backend | None:
    """Return the backend of that name or in that Python file; None for none."""
    if text is None:
        return None
    if not text.endswith(".py"):
        try:
            return backend_named(text)
        except NoRoute as error:
            # What `klopt new backend NAME` wrote goes by the name of its file.
            if Path(f"klopt_{text}.py").is_file():
                raise NoRoute(f"{error}; the file klopt_{text}.py is here: name it") from None
            raise
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
    stem, suffix, rest = text.partition(".py")
    if not suffix:
        return problem_named(text)
    file = f"{stem}{suffix}"
    if not Path(file).is_file():
        raise NoRoute(f"no file {file!r}")

    found = {problem.__name__: problem for problem in problem_classes(_load(Path(file)))}
    wanted = rest.removeprefix(":")
    if wanted in found:
        return found[wanted]
    if not found:
        raise NoRoute(f"{file} holds no problem; write a class that inherits from klopt.Problem")
    first = next(iter(found))
    if len(found) == 1 and not wanted:
        return found[first]
    raise NoRoute(f"{file} holds {', '.join(found)}; say which one: {file}:{first}")


def _load(path: Path) -> ModuleType:
    """The module in a file, its name one that hides no library; children get it by its text."""
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
