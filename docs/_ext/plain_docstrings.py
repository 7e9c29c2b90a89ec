"""klopt's plain docstrings as reStructuredText, and signatures as they are written.

They have `names` and formulas such as |y|'Ax and y in K*, and the sections of numpydoc.

A paragraph is escaped, what is indented is shown as it stands, examples and lists stay what they
are. A signature shows the types by the names they have in the source: `ArrayLike`, not its union.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"`+([^`]+)`+")
_SPECIAL = re.compile(r"([\\*|_])")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Other Parameters")
"""Sections that list names, each with what it means below it."""


def _line(text: str) -> str:
    """Return a line in which only `names` have a meaning."""
    pieces = _CODE.split(text)
    made = ""
    for place, piece in enumerate(pieces):
        if place % 2:
            # reStructuredText needs a mark between a literal and the letter that follows it.
            plural = pieces[place + 1][:1].isalnum()
            made += f"``{piece}``" + ("\\ " if plural else "")
        else:
            made += _SPECIAL.sub(r"\\\1", piece)
    return made


def _joined(lines: list[str]) -> Iterator[str]:
    """Close a `name` that goes on in the next line before it is escaped line by line."""
    held = ""
    for line in lines:
        held = f"{held} {line.strip()}" if held else line
        if held.count("`") % 2 == 0:
            yield held
            held = ""
    if held:
        yield held


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block(lines: list[str]) -> list[str]:
    """Return one block of lines that stand together."""
    first = lines[0].lstrip()
    if first.startswith(">>>"):
        return lines
    if _indent(lines[0]):
        return ["::", "", *(f"    {line}" for line in lines)]
    if _ITEM.match(first):
        marker = len(_ITEM.match(first)[0])  # type: ignore[index]
        return [
            (_ITEM.match(line) or [" " * marker])[0] + _line(_ITEM.sub("", line).strip())
            for line in _joined(lines)
        ]
    head = [line for line in lines if not _indent(line)]
    if len(head) < len(lines) and not any(
        map(_indent, lines[: len(head)])
    ):  # text, then an indented formula below it
        return [*map(_line, _joined(head)), "", *_block(lines[len(head) :])]
    return [_line(line.strip()) for line in _joined(lines)]


def _paragraphs(lines: list[str]) -> list[str]:
    made: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            made += [*_block(list(group)), ""]
    return made


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield titles and lines; what comes before the first underlined title has none."""
    title = ""
    held: list[str] = []
    for line in lines:
        if held and re.fullmatch(r"-{3,}", line) and re.fullmatch(r"[A-Z][\w ]+", held[-1]):
            yield title, held[:-1]
            title = held[-1]
            held = []
        else:
            held.append(line)
    yield title, held


def _listed(lines: list[str]) -> list[str]:
    """Return the items of a section as a definition list; examples may follow below them."""
    for place, line in enumerate(lines):
        if line.startswith(">>>"):
            return [*_listed(lines[:place]), *_paragraphs(lines[place:])]
    made: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        if _indent(line):
            made.append(f"    {_line(line.strip())}")
        else:
            names, colon, kind = line.partition(" : ")
            made += ["", f"``{names}``{colon}{_line(kind)}"]
    return [*made, ""]


def restructured(lines: list[str]) -> list[str]:
    """Return a plain docstring as reStructuredText.

    >>> restructured(["The cone K* of `Cones`.", "", "    y'x >= 0"])
    ['The cone K\\\\* of ``Cones``.', '', '::', '', "        y'x >= 0", '']
    >>> restructured(["Sum.", "", "Parameters", "----------", "x : float", "    A number."])
    ['Sum.', '', '.. rubric:: Parameters', '', '', '``x`` : float', '    A number.', '']
    """
    made: list[str] = []
    for title, body in _sections(lines):
        if title:
            made += [f".. rubric:: {title}", ""]
        made += _listed(body) if title in _LISTS else _paragraphs(body)
    return made


def as_written(thing: object) -> str | None:
    """Return the parameters of a class or function with their types as the source names them.

    >>> def power(base: "npt.ArrayLike", *, exponent: "float | None" = None) -> "FloatArray": ...
    >>> as_written(power)
    '(base: ArrayLike, *, exponent: float | None = None)'
    """
    try:
        signature = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if not all(
        isinstance(p.annotation, str) or p.annotation is p.empty
        for p in signature.parameters.values()
    ):
        return None
    text = str(signature.replace(return_annotation=signature.empty))
    text = re.sub(r": '([^']*)'", r": \1", text)
    return re.sub(r"\b(?:npt|np|sparse)\.", "", text)


def _process(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    if name.startswith("klopt") and not str(
        getattr(thing, "__module__", "klopt") or "klopt"
    ).startswith("sklearn"):
        lines[:] = restructured(lines)


def _sign(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    args: str | None,
    returns: str | None,
) -> tuple[str | None, str | None] | None:
    if what not in ("class", "function") or not name.startswith("klopt"):
        return None
    written = as_written(thing)
    return None if written is None else (written, returns)


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to autodoc."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _sign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
