"""What notebooks show: tables, verdict badges, formulas and sparklines, escaped and without scripts.

All can be read where a viewer strips styles: a badge is then a bold word with its symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, log10

__all__ = ["BAD", "GOOD", "badge", "formula", "html_table", "sparkline"]

GOOD = "#00694c"
FAIR = "#8a5a00"
BAD = "#a83a00"
"""Colours of badges, which stand out from light and dark pages."""
BADGES = {
    "OPTIMAL": ("✓", GOOD),
    "INFEASIBLE": ("∅", GOOD),
    "UNBOUNDED": ("∞", GOOD),
    "FEASIBLE": ("◐", FAIR),
    "ESTIMATED": ("≈", FAIR),
    "UNPROVEN": ("✗", BAD),
}
"""The symbol and the colour of each verdict."""
SPARK_WIDTH = 120
SPARK_HEIGHT = 24
SPARK_FLOOR = 1e-16
"""The size of a sparkline, and the smallest value that it tells from 0."""
MAX_SPARK_POINTS = 60


def badge(word: str, symbol: str = "", colour: str = "") -> str:
    """Return a word as a badge; a verdict has its own symbol and colour.

    >>> badge("OPTIMAL").startswith("<b style="), "✓ OPTIMAL" in badge("OPTIMAL")
    (True, True)
    """
    own_symbol, own_colour = BADGES.get(word, ("", BAD))
    shown = f"{symbol or own_symbol} {word}".strip()
    look = f"background:{colour or own_colour};color:#fff;border-radius:4px;padding:1px 7px"
    return f'<b style="{look}">{escape(shown)}</b>'


def formula(latex: str, sense: str) -> str:
    """Return a statement as MathML, `GOAL` in it being max or min; "" where there is none.

    >>> formula(r"GOAL_x\\; c^\top x", "min")[:5], formula("", "min")
    ('<math', '')
    """
    if not latex:
        return ""
    from latex2mathml.converter import convert

    goal = r"\max" if sense == "max" else r"\min"
    return str(convert(latex.replace("GOAL", goal), display="block"))


def sparkline(values: Sequence[float], title: str) -> str:
    """Return positive values over their place as a small curve on a logarithmic scale.

    "" where fewer than three are finite.

    >>> sparkline([1.0, 1e-3, 1e-6], "gap").startswith("<svg"), sparkline([1.0], "gap")
    (True, '')
    """
    known = [log10(max(value, SPARK_FLOOR)) for value in values if isfinite(value)]
    if len(known) < 3:
        return ""
    every = -(-len(known) // MAX_SPARK_POINTS)
    drawn = [*known[::every], known[-1]]
    low = min(drawn)
    span = (max(drawn) - low) or 1.0
    step = (SPARK_WIDTH - 4) / (len(drawn) - 1)
    points = " ".join(
        f"{2 + i * step:.1f},{2 + (1 - (value - low) / span) * (SPARK_HEIGHT - 4):.1f}"
        for i, value in enumerate(drawn)
    )
    size = f'width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}"'
    line = f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return f'<svg {size} role="img"><title>{escape(title)}</title>{line}</svg>'


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
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{named}{head}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object]) -> str:
    if not row:
        return ""
    first = f'<th scope="row">{escape(str(row[0]))}</th>'
    others = "".join(f"<td>{escape(str(cell))}</td>" for cell in row[1:])
    return first + others
