"""Writes the file, or the installable package, that a new backend or problem starts from.

What is written passes the conformance checks before a line is changed. The files are templates in
`klopt/templates`; nothing that exists is ever written over.
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

__all__ = ["Kind", "Scaffold", "Takes", "scaffold"]

Kind = Literal["backend", "problem"]
Takes = Literal["cone", "sets"]


@dataclass(frozen=True)
class Scaffold:
    """What was written, and the two commands to go on with."""

    files: tuple[Path, ...]
    commands: tuple[str, str]


def scaffold(
    kind: Kind,
    name: str,
    *,
    takes: Takes = "cone",
    package: bool = False,
    folder: Path | None = None,
) -> Scaffold:
    """Write a backend or a problem called `name` into `folder` and return what was written.

    A backend takes cone programs (the call of a library) or functions over simple sets (a method of
    one's own). The file is called `klopt_<name>.py`, so that it cannot hide the library it imports.

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
    code = _filled(f"backend_{takes}.py" if kind == "backend" else "problem.py", words)
    _refuse_taken(kind, words, code)
    folder = Path() if folder is None else folder
    if package:
        home = folder / words["project"]
        texts = {
            home / "pyproject.toml": _filled("pyproject.toml", words),
            home / "README.md": _filled("README.md", words),
            home / "src" / f"{words['module']}.py": code,
            home / "tests" / "test_conformance.py": _filled(f"test_{kind}.py", words),
        }
        _write(home, texts)
        return Scaffold(
            tuple(texts),
            (f'pip install -e "./{home.as_posix()}[test]"', f"pytest {home.as_posix()}"),
        )
    file = folder / f"{words['module']}.py"
    _write(file, {file: code})
    use = (
        f"klopt solve {'LP' if takes == 'cone' else 'SimplexProgram'} --backend {file.as_posix()}"
        if kind == "backend"
        else f"klopt compare {file.as_posix()}:instance"
    )
    return Scaffold((file,), (f"klopt check-{kind} {file.as_posix()}", use))


def _refuse_bad(kind: Kind, name: str) -> None:
    plain = re.sub(r"\W+", "_", name.strip()).strip("_") or f"my_{kind}"
    if not name.isidentifier():
        better = plain if plain.isidentifier() else f"my_{plain}"
        raise InvalidSettings(
            f"{name!r} is no name in Python: letters, digits and underscores; try {better!r}"
        )
    if not name.isascii() or name.startswith("_"):
        raise InvalidSettings(
            f"{name!r} must start with a letter and keep to ASCII: a package is named after it"
        )
    if keyword.iskeyword(name.lower()) or keyword.issoftkeyword(name) or keyword.iskeyword(name):
        raise InvalidSettings(f"{name!r} is a word of Python's own; try {'my_' + name.lower()!r}")
    if kind == "backend" and name != name.lower():
        raise InvalidSettings(
            f"{name!r} has capitals; names of backends have none: try {_snake(name)!r}"
        )


def _snake(name: str) -> str:
    """NearestPoint, nearestPoint and nearest_point as nearest_point."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _words(kind: Kind, name: str) -> dict[str, str]:
    """What the templates leave open."""
    from klopt import __version__

    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    name = _snake(name)
    thing = "BACKEND" if kind == "backend" else class_name
    return {
        "kind": kind,
        "name": name,
        "Class": class_name,
        "module": f"klopt_{name}",
        "project": f"klopt-{name.replace('_', '-')}",
        "group": "klopt.solvers" if kind == "backend" else "klopt.problems",
        "thing": thing,
        "thing_name": name if kind == "backend" else class_name,
        "version": ".".join(__version__.split(".")[:2]),
    }


def _refuse_taken(kind: Kind, words: dict[str, str], code: str) -> None:
    if kind == "backend":
        taken = {backend.name for backend in backends()}
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
    if words["Class"] in imported:
        raise InvalidSettings(f"{words['Class']!r} is a name of klopt's own; choose another name")


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
