"""`scaffold`: writes the file, or the package, that a new backend, problem or theorem starts from.

What is written passes the conformance checks before a line is changed, also when it is moved into
`problems/` or `solvers/`. The templates are in `klopt/conformance/templates`. Nothing that exists
is overwritten.
"""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal

from klopt.engine.registry import backends, problems
from klopt.errors import InvalidSettings

__all__ = ["PluginKind", "Scaffold", "Takes", "scaffold"]

PluginKind = Literal["backend", "problem", "theorem"]
Takes = Literal["cone", "sets"]


@dataclass(frozen=True)
class Scaffold:
    """What was written, and the two commands to go on with."""

    files: tuple[Path, ...]
    commands: tuple[str, str]


def scaffold(
    kind: PluginKind,
    name: str,
    *,
    takes: Takes = "cone",
    package: bool = False,
    folder: Path | None = None,
) -> Scaffold:
    """Write a backend, a problem or a theorem called `name` and return what was written.

    Parameters
    ----------
    kind
        What to write.
    name
        Its name, from which those of the class and of the file are made. The file is called
        `klopt_<name>.py`, so that it cannot shadow the library that it imports.
    takes
        Of a backend: cone programs, solved by a library, or functions over simple sets, minimised
        by a method of one's own.
    package
        Whether to write an installable package with its entry point and tests; not of a theorem.
    folder
        Where; the current one if it is not given.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     made = scaffold("backend", "fast", folder=Path(folder))
    >>> made.files[0].name
    'klopt_fast.py'
    >>> scaffold("backend", "highs")
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: there is a backend 'highs' already; choose another name
    """
    _refuse_bad(kind, name)
    words = _words(kind, name)
    template = f"backend_{takes}.py" if kind == "backend" else f"{kind}.py"
    code = _filled(template, words)
    _refuse_taken(kind, words, code)
    folder = Path() if folder is None else folder
    if package and kind == "theorem":
        raise InvalidSettings("a theorem is one file; a package names its module as an entry point")
    if package:
        return _write_package(kind, words, code, folder)

    file = folder / f"{words['module']}.py"
    _write(file, {file: code})
    path = file.as_posix()
    if kind == "theorem":
        return Scaffold((file,), (f"klopt verify {path}", f"klopt verify {path} -o page.html"))
    if kind == "problem":
        use = f"klopt compare {path}:instance"
    elif takes == "cone":
        use = f"klopt solve LP --backend {path}"
    else:
        use = f"klopt solve SimplexProgram --backend {path}"
    return Scaffold((file,), (f"klopt check-{kind} {path}", use))


def _write_package(kind: PluginKind, words: dict[str, str], code: str, folder: Path) -> Scaffold:
    home = folder / words["project"]
    texts = {
        home / "pyproject.toml": _filled("pyproject.toml", words),
        home / "README.md": _filled("README.md", words),
        home / "src" / f"{words['module']}.py": code,
        home / "tests" / "test_conformance.py": _filled(f"test_{kind}.py", words),
    }
    _write(home, texts)
    path = home.as_posix()
    return Scaffold(tuple(texts), (f'pip install -e "./{path}[test]"', f"pytest {path}"))


def _refuse_bad(kind: PluginKind, name: str) -> None:
    if not name.isidentifier():
        plain = re.sub(r"\W+", "_", name.strip()).strip("_") or f"my_{kind}"
        better = plain if plain.isidentifier() else f"my_{plain}"
        raise InvalidSettings(
            f"{name!r} is not a Python identifier (letters, digits, underscores); try {better!r}"
        )
    if not name.isascii() or name.startswith("_"):
        raise InvalidSettings(
            f"{name!r} must start with a letter and be ASCII: a package is named after it"
        )
    if keyword.iskeyword(name) or keyword.iskeyword(name.lower()) or keyword.issoftkeyword(name):
        better = f"my_{name.lower()}"
        raise InvalidSettings(f"{name!r} is a keyword of Python; try {better!r}")
    if kind == "backend" and name != name.lower():
        raise InvalidSettings(
            f"{name!r} has capitals; backends have lower-case names: try {_snake(name)!r}"
        )


def _snake(name: str) -> str:
    """NearestPoint, nearestPoint and nearest_point as nearest_point."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _words(kind: PluginKind, name: str) -> dict[str, str]:
    """What the placeholders of the templates stand for."""
    from klopt import __version__

    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    snake = _snake(name)
    words = {
        "kind": kind,
        "name": snake,
        "Class": class_name,
        "module": f"klopt_{snake}",
        "project": f"klopt-{snake.replace('_', '-')}",
        "version": ".".join(__version__.split(".")[:2]),
    }
    if kind == "backend":
        return words | {"group": "klopt.solvers", "thing": "BACKEND", "thing_name": snake}
    if kind == "theorem":
        return words | {"group": "klopt.theorems", "thing": snake, "thing_name": snake}
    return words | {"group": "klopt.problems", "thing": class_name, "thing_name": class_name}


def _refuse_taken(kind: PluginKind, words: dict[str, str], code: str) -> None:
    if kind == "backend":
        taken = {backend.name for backend in backends()}
    elif kind == "theorem":
        # The name of the function must not hide what its own file defines and imports.
        taken = {"draw", "np", "klopt", "at_most"}
    else:
        taken = {problem.__name__.lower() for problem in problems()}
    name = words["thing_name"]
    if name.lower() in taken:
        raise InvalidSettings(f"there is a {kind} {name!r} already; choose another name")
    imported = {
        alias.name
        for node in ast.parse(code).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    # The class would hide what its own file imports.
    if words["Class"] in imported:
        raise InvalidSettings(f"{words['Class']!r} is a name of klopt; choose another name")


def _filled(template: str, words: dict[str, str]) -> str:
    text = (files("klopt.conformance.templates") / f"{template}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _write(home: Path, texts: dict[Path, str]) -> None:
    """Write all of the files or, where there is something already, none."""
    if home.exists() or home.is_symlink():
        raise InvalidSettings(
            f"{home} exists; nothing was written. Choose another name or folder, or remove it"
        )
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise InvalidSettings(f"{home} cannot be written: {error.strerror or error}") from error
