"""klopt's plain docstrings as reStructuredText.

They have `names` and formulas such as |y|'Ax and y in K*.

A paragraph is escaped, what is indented is shown as it stands, examples and lists stay what they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"`+([^`]+)`+")
_SPECIAL = re.compile(r"([\\*|_])")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def _line(text: str) -> str:
    """Return a line in which only `names` have a meaning."""
    pieces = _CODE.split(text)
    return "".join(f"``{p}``" if i % 2 else _SPECIAL.sub(r"\\\1", p) for i, p in enumerate(pieces))


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


def restructured(lines: list[str]) -> list[str]:
    """Return a plain docstring as reStructuredText.

    >>> restructured(["The cone K* of `Cones`.", "", "    y'x >= 0"])
    ['The cone K\\\\* of ``Cones``.', '', '::', '', "        y'x >= 0", '']
    """
    made: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            made += [*_block(list(group)), ""]
    return made


def _process(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    if name.startswith("klopt") and not str(
        getattr(thing, "__module__", "klopt") or "klopt"
    ).startswith("sklearn"):
        lines[:] = restructured(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to autodoc."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
