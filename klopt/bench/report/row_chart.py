"""Charts of rows: one row for each solver, a mark for each of its runs on one axis.

Marks of what is confirmed are filled circles, of what is not hollow diamonds: the colour is never
needed. A short upright line in a row is the median of its marks. Words at the right say in numbers
what the marks show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from klopt.bench.report.axes import Axis
from klopt.bench.report.charts import svg_element
from klopt.bench.report.labels import shortened, text, text_width

__all__ = ["Mark", "Row", "row_chart"]

WIDTH = 500
TOP = 22
BOTTOM = 42
ROW_HEIGHT = 17
TALL_ROW_HEIGHT = 34
"""Where rows have a second line of words."""
MAX_LABEL_WIDTH = 150.0
FILLED = 'class="y"'
HOLLOW = 'class="z o"'
SMALL = 11
"""The size of second lines."""


@dataclass(frozen=True)
class Mark:
    """One run: where it lies on the axis, whether it is confirmed, and what it is in words."""

    x: float
    confirmed: bool
    title: str = ""
    span: tuple[float, float] | None = None
    """Where its repeats lie, drawn as a thin line."""


@dataclass(frozen=True)
class Row:
    """The marks of one solver; `note` stands at the right, `quote` below the name."""

    label: str
    marks: tuple[Mark, ...]
    note: str = ""
    quote: str = ""
    slot: str = ""
    """The name of the row in the page's style sheet, by which a reader hides it."""


def row_chart(
    rows: Sequence[Row],
    title: str,
    axis: Axis,
    rule: tuple[float, str] | None = None,
    *,
    medians: bool = True,
    width: int = WIDTH,
) -> str:
    """Return a chart of rows over one axis.

    Parameters
    ----------
    rows
        From top to bottom.
    title
        What the chart is called where it cannot be seen.
    axis
        Where marks lie; values beyond it are drawn at its ends.
    rule
        A value that is marked by an upright line, with its words.
    medians
        Whether rows of three marks or more show their median.
    width
        That of the chart.

    >>> rows = [Row("scs", (Mark(2.0, False, "2 x"),), "not confirmed")]
    >>> svg = row_chart(rows, "Gap", Axis("gap / tol", 0.1, 10, log=True), (1.0, "asked for"))
    >>> svg.startswith("<svg"), "not confirmed" in svg
    (True, True)
    """
    tall = any(row.quote for row in rows)
    height = TALL_ROW_HEIGHT if tall else ROW_HEIGHT
    names = [shortened(row.label, MAX_LABEL_WIDTH) for row in rows]
    widths = [text_width(name) for name in names]
    widths += [text_width(row.quote, SMALL) for row in rows]
    left = round(max(widths, default=0.0)) + 14
    note = round(max((text_width(row.note, SMALL) for row in rows), default=0.0))
    right = width - note - 14
    floor = TOP + height * len(rows) + 4

    def across(value: float) -> float:
        return round(left + axis.share(value) * (right - left), 1)

    parts = [_grid(axis, across, floor)]
    if rule is not None:
        x = across(rule[0])
        parts.append(f'<path class="x" d="M{x:g} {TOP - 6}V{floor}"/>')
        parts.append(_rule_words(x, rule[1], right))
    parts.append(text((left + right) / 2, floor + 36, axis.label, "middle"))
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        middle = TOP + height * (number + 0.5)
        marks = _marks(row.marks, across, middle)
        if medians and len(row.marks) > 2:
            place = across(median(mark.x for mark in row.marks))
            marks += f'<path class="u" d="M{place:g} {middle - 6:g}v12"/>'
        parts.append(_row(row, name, left, width - 4, middle, marks))
    return svg_element(title, width, round(floor + BOTTOM), "".join(parts))


def _grid(axis: Axis, across: Callable[[float], float], floor: float) -> str:
    grid = ""
    words = []
    taken = -1.0
    for value, name in axis.ticks(6):
        x = across(value)
        grid += f"M{x:g} {TOP - 2}V{floor:g}"
        half = text_width(name) / 2
        # A tick whose text would touch the last one has none.
        if x - half > taken:
            words.append(text(x, floor + 17, name, "middle"))
            taken = x + half + 5
    return f'<path class="h" d="{grid}"/>' + "".join(words)


def _rule_words(x: float, words: str, right: float) -> str:
    """The words of a rule beside its upper end, on the side that has the space."""
    wide = text_width(words, SMALL)
    if x + 4 + wide <= right + 60:
        return text(x + 4, TOP - 8, words, size=SMALL)
    return text(x - 4, TOP - 8, words, "end", size=SMALL)


def _row(row: Row, name: str, left: float, right: float, middle: float, marks: str) -> str:
    shift = -3 if row.quote else 4
    words = text(left - 10, middle + shift, name, "end", title=row.label)
    if row.quote:
        words += text(left - 10, middle + 11, row.quote, "end", size=SMALL)
    if row.note:
        words += text(right, middle + 4, row.note, "end", size=SMALL)
    slot = f' class="{escape(row.slot)}"' if row.slot else ""
    return f"<g{slot}>{words}{marks}</g>"


def _marks(marks: Sequence[Mark], across: Callable[[float], float], middle: float) -> str:
    """All marks of a row; circles that have no words of their own are one path."""
    plain = ""
    told = ""
    for mark in marks:
        x = across(mark.x)
        if mark.span is not None:
            low, high = map(across, mark.span)
            told += f'<path class="b" d="M{low:g} {middle:g}H{high:g}"/>'
        outline = _circle(x, middle) if mark.confirmed else _diamond(x, middle)
        if mark.confirmed and not mark.title:
            plain += outline
        else:
            look = FILLED if mark.confirmed else HOLLOW
            told += f'<path {look} d="{outline}"><title>{escape(mark.title)}</title></path>'
    return (f'<path {FILLED} d="{plain}"/>' if plain else "") + told


def _circle(x: float, y: float) -> str:
    """A line of no length, whose round ends make a circle."""
    return f"M{x:g} {y:g}h0"


def _diamond(x: float, y: float) -> str:
    return f"M{x:g} {y - 5:g}l5 5l-5 5l-5-5z"
