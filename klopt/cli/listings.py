"""What the command lists: backends and problems."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from klopt.engine.format import PROGRAM_CLASSES, TEXT_COLUMNS, console, lines, table, wrapped
from klopt.model.records import field_defaults

if TYPE_CHECKING:
    from klopt.engine.registry import Broken
    from klopt.model.backend import Backend
    from klopt.model.problem import Formulation, Problem

__all__ = ["print_backend", "print_backends", "print_problem", "print_problems", "problem_data"]

INSTANCES = 8
"""Random instances whose formulations are listed."""
INSTANCE_SIZE = 6
MIN_CUT_COLUMNS = 60
"""A shorter line of a docstring ends where its author wanted."""
MAX_COLUMN_START = 56
"""A column that begins further right has no space to continue below itself."""


def print_backends(backends: Sequence[Backend], broken: Sequence[Broken]) -> None:
    """Print the table of backends, then how to get the missing ones and why the broken ones are."""
    out = console()
    rows = table(["backend", *PROGRAM_CLASSES, "version", "status"])
    notes = []
    for backend in backends:
        marks = ["*" if needs <= backend.offers else "-" for needs in PROGRAM_CLASSES.values()]
        if backend.missing:
            rows.add_row(backend.name, *marks, "-", "missing", style="dim")
            notes.append((backend.name, backend.missing))
        else:
            version = backend.version if backend.library else "built in"
            rows.add_row(backend.name, *marks, version, "ready")
    for item in broken:
        rows.add_row(item.name, *("" for _ in PROGRAM_CLASSES), "-", "broken", style="red")
        notes.append((item.name, item.reason))
    out.print(rows)
    if notes:
        out.print()
        out.print(wrapped("\n".join(f"{name}: {text}" for name, text in notes)))


def print_backend(backend: Backend) -> None:
    """Print all that a backend says of itself, and whether its library can be imported."""
    version = "" if backend.missing else backend.version
    takes = ", ".join(name for name, needs in PROGRAM_CLASSES.items() if needs <= backend.offers)
    honours = ", ".join(sorted(backend.honours)) or "nothing"
    isolated = "on request, or to keep a time limit"
    if backend.isolate:
        isolated = "always, unless told otherwise"
    pairs = [
        ("backend", f"{backend.name} {version}"),
        ("", _sentence(backend)),
        ("status", _status(backend)),
        ("takes", takes or "-"),
        ("offers", ", ".join(sorted(backend.offers))),
        ("honours", f"{honours} (klopt enforces the rest)"),
        ("proves", ", ".join(sorted(backend.proves)) or "nothing beyond the point"),
        ("rank", f"{backend.rank} (a plan tries low ranks first)"),
        ("accuracy", f"{backend.accuracy:.0e} (the smallest tol it is meant for)"),
        ("isolated", isolated),
    ]
    pairs += [("exempt", f"{check}: {reason}") for check, reason in backend.exempt.items()]
    console().print(lines(pairs))


def _sentence(backend: Backend) -> str:
    """The first line of its file, or else of its class."""
    for source in (inspect.getmodule(type(backend)), type(backend)):
        if source is not None and (text := inspect.getdoc(source)):
            return text.splitlines()[0]
    return ""


def _status(backend: Backend) -> str:
    if backend.missing:
        return f"not installed: {backend.missing}"
    try:
        backend.load()
    except Exception as error:  # a library may fail to load in any way
        return f"broken: {type(error).__name__}: {error}"
    return "ready"


def problem_data(problem: type[Problem]) -> dict[str, Any]:
    """Return what a problem class says of itself as data."""
    formulations, flaw = _formulations(problem)
    return {
        "name": problem.__name__,
        "about": _about(problem),
        "arguments": _arguments(problem),
        "formulations": [
            {"name": f.name, "needs": {need.name for need in f.needs}, "because": f.because}
            for f in formulations
        ],
        "broken": flaw,
    }


def print_problems(problems: Sequence[type[Problem]], broken: Sequence[Broken]) -> None:
    """Print the table of problems, then what could not be loaded and why."""
    out = console()
    rows = table(["problem", "what it is", "formulations"])
    for problem in problems:
        formulations, flaw = _formulations(problem)
        names = ", ".join(formulation.name for formulation in formulations)
        rows.add_row(problem.__name__, _about(problem), flaw or names)
    out.print(rows)
    out.print(f"\nFormulations of {INSTANCES} random instances; `klopt plan` lists those of one.")
    if broken:
        reasons = "\n".join(f"broken: {item.name}: {item.reason}" for item in broken)
        out.print("\n" + wrapped(reasons))


def print_problem(problem: type[Problem]) -> None:
    """Print a problem's mathematics, its arguments and its formulations, each with its theorem."""
    out = console()
    out.print(problem.__name__, style="bold")
    out.print(_reflowed((inspect.getdoc(problem) or "").partition(">>>")[0].strip()))
    module = inspect.getmodule(problem)
    mathematics = (inspect.getdoc(module) or "").partition("\n")[2].strip("\n") if module else ""
    if mathematics:
        out.print("\n" + _reflowed(mathematics))
    out.print("\n" + lines([("arguments", ", ".join(_arguments(problem)))]))
    formulations, flaw = _formulations(problem)
    if flaw:
        out.print(lines([("broken", flaw)]))
    for f in formulations:
        out.print("\n" + lines([("formulation", f.name), ("needs", ", ".join(sorted(f.needs)))]))
        if f.because:
            out.print(lines([("because", f.because)]))


def _reflowed(text: str) -> str:
    """Paragraphs filled anew; the columns of what is displayed stay columns."""
    return "\n\n".join(_filled(paragraph) for paragraph in text.split("\n\n"))


def _filled(paragraph: str) -> str:
    """A paragraph in 80 columns.

    A line that is continued, because it was cut where the source ends, is joined with the next one of
    the same indentation. What is too long continues below its last column.

    >>> print(_filled('    norm "block-l1"     ' + "few weights are not zero " * 3))
        norm "block-l1"     few weights are not zero few weights are not zero few
                            weights are not zero
    """
    joined: list[str] = []
    for line in paragraph.splitlines():
        if joined and _continues(joined[-1], line):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return "\n".join(_wrapped_line(line) for line in joined)


def _continues(line: str, next_line: str) -> bool:
    """Whether a line was cut only because it was long."""
    if _indent(line) != _indent(next_line) or _last_column(next_line) > _indent(next_line):
        return False
    # A reference ends with its year.
    if len(line) <= MIN_CUT_COLUMNS or re.search(r"\d{4}\.$", line):
        return False
    return not _indent(line) or not line.endswith((".", ":"))


def _wrapped_line(line: str) -> str:
    below = " " * _last_column(line)
    kept = line[: len(below)]
    return fill(
        line[len(below) :].strip(),
        TEXT_COLUMNS,
        initial_indent=kept,
        subsequent_indent=below,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_column(line: str) -> int:
    """Where the last of the columns begins that two spaces or more set apart."""
    places = [match.end() for match in re.finditer(r" {2,}", line.rstrip())]
    fitting = [place for place in places if place <= MAX_COLUMN_START]
    return max(fitting, default=_indent(line))


def _about(problem: type[Problem]) -> str:
    return (inspect.getdoc(problem) or "").split("\n\n")[0].replace("\n", " ")


def _arguments(problem: type[Problem]) -> list[str]:
    defaults = field_defaults(problem)
    return [name if value is ... else f"{name}={value!r}" for name, value in defaults.items()]


def _formulations(problem: type[Problem]) -> tuple[tuple[Formulation, ...], str]:
    """All formulations of some small instances, since options decide which has what; or a flaw."""
    import numpy as np

    try:
        found: dict[str, Formulation] = {}
        for seed in range(INSTANCES):
            for formulation in problem.sample(
                np.random.default_rng(seed), INSTANCE_SIZE
            ).formulations():
                found.setdefault(formulation.name, formulation)
        return tuple(found.values()), ""
    except Exception as error:  # a plug-in may fail in any way; it is listed, not raised
        return (), f"its sample fails: {type(error).__name__}: {error}"
