"""Small tables for notebooks: escaped text, no script, no style that a viewer could strip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]


def html_table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Return a table with a caption and a header; the first cell of a row names it.

    >>> print(html_table("Routes", [], [["<b>", 10]]).replace("<tbody>", "\n<tbody>"))
    <table><caption>Routes</caption>
    <tbody><tr><th scope="row">&lt;b&gt;</th><td>10</td></tr></tbody></table>
    """
    head = ""
    if headers:
        names = "".join(f'<th scope="col">{escape(name)}</th>' for name in headers)
        head = f"<thead><tr>{names}</tr></thead>"
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object]) -> str:
    if not row:
        return ""
    first = f'<th scope="row">{escape(str(row[0]))}</th>'
    others = "".join(f"<td>{escape(str(cell))}</td>" for cell in row[1:])
    return first + others
