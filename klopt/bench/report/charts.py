"""The charts of the page as SVG text: curves, steps and points on two axes, small bars, and a map of cells.

A chart is one `<svg>` with a viewBox, so that it is as wide as its place. Text and lines take the
colour of the text around them (`currentColor`), so that a dark page has light charts; series have
the colours of Okabe and Ito, which people with any kind of colour vision tell apart, and besides a
dash pattern, a shape and a name at their end. What a mark means in full is in its `<title>`. All
text is escaped.

Looks are classes, so that a page of many charts says them once: `STYLE_SHEET` goes with the charts
into the page, and `standalone` puts it into a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.report.axes import MOST_POINTS, Axis, thinned
from klopt.bench.report.labels import FONT, Box, beside, shortened, spread, text, text_width

__all__ = [
    "COLOURS",
    "STYLE_SHEET",
    "Cell",
    "Rule",
    "Series",
    "Style",
    "bars",
    "heat_map",
    "plot",
    "standalone",
]

# Okabe and Ito without yellow, which cannot be seen on white; the last is the colour of the text.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor")
DASHES = ("", "6 3", "2 2.5", "8 3 2 3")
TONES = {"good": "#009e73", "fact": "#56b4e9", "half": "#e69f00", "bad": "#d55e00", "none": "#8888"}
"""What the background of a cell means: certified, certified to have no optimum, one side proven, nothing, not run."""
STYLE_SHEET = "".join(
    [
        *(f".c{i}{{color:{colour}}}" for i, colour in enumerate(COLOURS)),
        *(f".d{i}{{stroke-dasharray:{dash}}}" for i, dash in enumerate(DASHES) if dash),
        *(f".cell-{tone}{{fill:{colour};fill-opacity:.27}}" for tone, colour in TONES.items()),
        ".l,.o{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.o{stroke-width:1.6}",
        ".n{fill:var(--ink,#1c1e21);stroke:var(--bg,#fff);stroke-width:3px;paint-order:stroke}",
        ".s{font-size:10px}.e{text-anchor:end}.m{text-anchor:middle}.h,.b,.x,.w{stroke:currentColor}",
        ".h{opacity:.12}.b{opacity:.5}.x{opacity:.6;stroke-dasharray:4 4}.w{opacity:.3}.a{opacity:.09}",
    ]
)
"""Curves and hollow marks, names, small words, ends and middles of texts, grid, axis, rules, leads to names, bands."""
WIDTH, HEIGHT = 480, 320
LEFT, TOP, BOTTOM = 60, 36, 48
NAME = ' class="n"'
CELL_WIDTH, CELL_HEIGHT = 72, 38
CELL_BOX = f'x="1" y="1" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" rx="3"'
LONGEST = 140.0
"""The room for a name at the right of a chart."""
Mark = Literal["line", "step", "points"]


@dataclass(frozen=True)
class Style:
    """The looks of a series: `slot` is its number on the page, by which a reader can hide it; -1 for what stays."""

    slot: int
    colour: int
    dash: int = 0

    @property
    def classes(self) -> str:
        """The names of its slot and colour in the page's style sheet."""
        return f"k{self.slot} c{self.colour % len(COLOURS)}"

    @property
    def glyph(self) -> str:
        """Its shape as a character."""
        return "●■▲◆"[self.dash % 4]

    @property
    def line(self) -> str:
        """Its line in the words of a style sheet."""
        return ("solid", "dashed", "dotted", "double")[self.dash % 4]


@dataclass(frozen=True, eq=False)
class Series:
    """Points (x, y) under one name; `hollow` marks are drawn empty, `titles` say what each point is."""

    label: str
    x: FloatArray
    y: FloatArray
    style: Style
    mark: Mark = "line"
    title: str = ""
    titles: tuple[str, ...] = ()
    hollow: tuple[bool, ...] = ()
    named: bool = True
    ended: bool = False
    """Whether a mark stands at the end of the curve."""


@dataclass(frozen=True)
class Rule:
    """A dashed level across the chart, or with `filled` the band below it."""

    value: float
    label: str
    filled: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell of a heat map: a symbol, a word, a tone of `TONES`, its meaning in full, and where a click leads."""

    symbol: str
    word: str
    tone: str
    title: str
    link: str = ""


@dataclass(frozen=True)
class _Frame:
    """Where the axes lie in the picture."""

    x: Axis
    y: Axis
    right: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point, to a tenth."""
        across = LEFT + self.x.share(x) * (self.right - LEFT)
        down = HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - BOTTOM - TOP)
        return round(across, 1), round(down, 1)


def plot(
    series: Sequence[Series],
    title: str,
    x: Axis,
    y: Axis,
    rules: Sequence[Rule] = (),
    most: int = MOST_POINTS,
) -> str:
    """Return a chart of curves, steps and points with their names beside them.

    >>> one = Series("scs", np.array([1.0, 10.0]), np.array([1e-2, 1e-6]), Style(0, 0))
    >>> svg = plot([one], "Gap", Axis("seconds", 1, 10, log=True), Axis("gap", 1e-6, 1, log=True))
    >>> svg.startswith("<svg"), "<title>Gap</title>" in svg
    (True, True)
    """
    drawn = [s for s in series if len(s.x)]
    named = [s for s in drawn if s.named]
    curves = any(s.mark != "points" for s in drawn)
    names = [text_width(shortened(s.label, LONGEST)) for s in named]
    frame = _Frame(x, y, WIDTH - (max(names, default=0.0) + 18 if curves else 12.0))
    labels = _end_labels(named, frame) if curves else _point_labels(named, frame)
    marks = [_group(s.style, _drawn(s, frame, most) + labels.get(s, "")) for s in drawn]
    return _svg(
        title,
        WIDTH,
        HEIGHT,
        "".join([_grid(frame), *(_ruled(rule, frame) for rule in rules), *marks]),
    )


def bars(
    values: FloatArray, title: str, style: Style, top: float, *, width: int = 220, height: int = 96
) -> str:
    """Return a small bar chart of nonnegative values; `top` is the height of the axis, shared by those beside it."""
    step = (width - 8) / max(len(values), 1)
    thick = max(step - (2 if step > 6 else 0.5), 0.6)
    floor = height - 16
    heights = [abs(max(float(value), 0.0)) / (top or 1.0) * (floor - 8) for value in values]
    drawn = "".join(
        f"M{4 + i * step:.1f} {floor}v-{h:.1f}h{thick:.1f}v{h:.1f}z" for i, h in enumerate(heights)
    )
    base = f'<path class="b" d="M4 {floor}H{width - 4}"/>'
    ends = text(4, height - 3, "1", size=10) + text(
        width - 4, height - 3, str(len(values)), "end", size=10
    )
    told = f"{title}: {', '.join(f'{value:.3g}' for value in values)}"
    return _svg(
        told,
        width,
        height,
        _group(style, f'<path d="{drawn}"/>') + base + (ends if len(values) > 1 else ""),
    )


def heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell]], title: str
) -> str:
    """Return a map of coloured cells, each with a symbol and a word, so that the colour is never needed."""
    names = [shortened(name, 240.0) for name in rows]
    left = round(max(map(text_width, names), default=0.0)) + 14
    longest = max(map(text_width, columns), default=0.0)
    slanted = longest > CELL_WIDTH - 6
    top = round(20 + (longest * 0.5 if slanted else 0))
    shapes = (f'<rect id="cell-{tone}" class="cell-{tone}" {CELL_BOX}/>' for tone in TONES)
    parts = [f"<defs>{''.join(shapes)}</defs>"]
    for j, column in enumerate(columns):
        across = left + (j + (0.3 if slanted else 0.5)) * CELL_WIDTH
        turn = f' transform="rotate(-30 {across:.5g} {top - 7})"' if slanted else ""
        parts.append(text(across, top - 7, column, "start" if slanted else "middle", extra=turn))
    for i, (name, line) in enumerate(zip(names, cells, strict=True)):
        down = top + i * CELL_HEIGHT
        parts.append(text(left - 10, down + CELL_HEIGHT / 2 + 4, name, "end", title=rows[i]))
        drawn = (_cell(cell, left + j * CELL_WIDTH) for j, cell in enumerate(line))
        parts.append(
            f'<g class="m" font-size="14" transform="translate(0 {down})">{"".join(drawn)}</g>'
        )
    overhang = max(longest * 0.87 - CELL_WIDTH * 0.7, 0.0) if slanted else 0.0
    width = round(left + CELL_WIDTH * len(columns) + overhang + 4)
    return _svg(title, width, top + CELL_HEIGHT * len(rows) + 2, "".join(parts), natural=True)


def standalone(svg: str) -> str:
    """Return a chart as a file of its own, which holds its style sheet and is black on white.

    >>> standalone("<svg><title>T</title></svg>").count("<style>")
    1
    """
    opening = '<svg xmlns="http://www.w3.org/2000/svg" style="color:#1c1e21;background:#fff;font-family:sans-serif"'
    return svg.replace("<svg", opening, 1).replace(
        "</title>", f"</title><style>{STYLE_SHEET}</style>", 1
    )


def _cell(cell: Cell, x: float) -> str:
    middle = f"{x + CELL_WIDTH / 2:g}"
    word = f'<tspan x="{middle}" dy="14" class="s">{escape(cell.word)}</tspan>' if cell.word else ""
    words = escape(cell.symbol) + word
    title = f"<title>{escape(cell.title)}</title>" if cell.title else ""
    inside = (
        f'{title}<use href="#cell-{cell.tone}" x="{x:g}"/><text x="{middle}" y="17">{words}</text>'
    )
    return f'<a href="{escape(cell.link)}">{inside}</a>' if cell.link else f"<g>{inside}</g>"


def _svg(title: str, width: int, height: int, body: str, natural: bool = False) -> str:
    size = f' width="{width}" height="{height}"' if natural else ""
    return (
        f'<svg viewBox="0 0 {width} {height}"{size} role="img" fill="currentColor" font-size="{FONT}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _group(style: Style, body: str) -> str:
    return f'<g class="{style.classes}">{body}</g>'


def _grid(frame: _Frame) -> str:
    floor, taken, lines, ticks, words = HEIGHT - BOTTOM, -np.inf, "", "", []
    for value, name in frame.y.ticks(6):
        down = frame.at(frame.x.low, value)[1]
        lines += f"M{LEFT} {down:g}H{frame.right:.1f}"
        words.append(text(LEFT - 8, down + 4, name, "end"))
    for value, name in frame.x.ticks(6):
        across, half = frame.at(value, frame.y.low)[0], text_width(name) / 2
        if across - half > taken:
            ticks += f"M{across:g} {floor}v4"
            words.append(text(across, floor + 19, name, "middle"))
            taken = across + half + 6
    words.append(text(4, 14, frame.y.label))
    words.append(text((LEFT + frame.right) / 2, HEIGHT - 8, frame.x.label, "middle"))
    axis = f'<path class="b" d="{ticks}M{LEFT} {floor}H{frame.right:.1f}"/>'
    return f'<path class="h" d="{lines}"/>{axis}{"".join(words)}'


def _ruled(rule: Rule, frame: _Frame) -> str:
    down, floor = frame.at(frame.x.low, rule.value)[1], HEIGHT - BOTTOM
    title = f"<title>{escape(rule.label)}</title>"
    if rule.filled:
        return (
            f'<path class="a" d="M{LEFT} {down:g}H{frame.right:.1f}V{floor}H{LEFT}z">{title}</path>'
        )
    return f'<path class="x" d="M{LEFT} {down:g}H{frame.right:.1f}">{title}</path>'


def _shape(x: float, y: float, style: Style, hollow: bool, title: str = "") -> str:
    """A circle, square, triangle or diamond: series of one colour differ in it."""
    outlines = (
        f"M{x - 4:g} {y:g}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        f"M{x - 3.6:g} {y - 3.6:g}h7.2v7.2h-7.2z",
        f"M{x:g} {y - 4.6:g}l4.6 8h-9.2z",
        f"M{x:g} {y - 5:g}l5 5l-5 5l-5-5z",
    )
    empty = ' class="o"' if hollow else ""
    told = f"><title>{escape(title)}</title></path>" if title else "/>"
    return f'<path{empty} d="{outlines[style.dash % len(outlines)]}"{told}'


def _drawn(series: Series, frame: _Frame, most: int) -> str:
    """One series: its path, or its points; a path of one point is a mark."""
    style, title = series.style, f"<title>{escape(series.title or series.label)}</title>"
    if series.mark == "points" or len(series.x) == 1:
        hollow = series.hollow or (False,) * len(series.x)
        spots = zip(series.x, series.y, hollow, series.titles or ("",) * len(series.x), strict=True)
        return title + "".join(_shape(*frame.at(x, y), style, h, t) for x, y, h, t in spots)
    places = [
        frame.at(float(a), float(b))
        for a, b in zip(*thinned(series.x, series.y, most), strict=True)
    ]
    look = f"l d{style.dash % len(DASHES)}" if style.dash % len(DASHES) else "l"
    path = f'<path class="{look}" d="{_path(places, series.mark == "step")}">{title}</path>'
    end = _shape(*places[-1], style, series.hollow == (True,)) if series.ended else ""
    return path + end


def _path(places: Sequence[tuple[float, float]], steps: bool) -> str:
    """Relative moves in tenths of a unit: short, and errors do not add up, since each starts where the last ended."""
    (x, y), moves = places[0], [f"M{places[0][0]:g} {places[0][1]:g}"]
    for a, b in places[1:]:
        right, down = round(a - x, 1), round(b - y, 1)
        if steps or right == 0 or down == 0:
            moves.append((f"h{right:g}" if right else "") + (f"v{down:g}" if down else ""))
        else:
            moves.append(f"l{right:g} {down:g}")
        x, y = a, b
    return "".join(moves)


def _end_labels(series: Sequence[Series], frame: _Frame) -> dict[Series, str]:
    """Names at the ends of curves, in a column at the right, pushed apart where they would touch."""
    ends = sorted(
        ((frame.at(float(s.x[-1]), float(s.y[-1])), s) for s in series), key=lambda end: end[0][1]
    )
    space = min(FONT + 2.5, (HEIGHT - BOTTOM - TOP + 10) / max(len(ends), 1))
    places = spread([down + 4 for (_, down), _ in ends], space, TOP, HEIGHT - BOTTOM + 6.0)
    labels = {}
    for ((x, y), s), place in zip(ends, places, strict=True):
        lead = f'<path class="w" d="M{x + 6:g} {y:g}L{frame.right + 5:.0f} {place - 4:.0f}"/>'
        name = text(
            round(frame.right) + 9,
            round(place, 1),
            shortened(s.label, LONGEST),
            size=min(FONT, space),
            title=s.label,
            extra=NAME,
        )
        labels[s] = lead + name
    return labels


def _point_labels(series: Sequence[Series], frame: _Frame) -> dict[Series, str]:
    """Names beside points where there is room for them; the rest have only their titles and the legend."""
    spots = [
        (frame.at(float(x), float(y)), s) for s in series for x, y in zip(s.x, s.y, strict=True)
    ]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for (x, y), _ in spots]
    inside = (LEFT + 2, TOP - 12, WIDTH, HEIGHT - BOTTOM - 2)
    labels: dict[Series, str] = {}
    for (x, y), s in spots:
        name = shortened(s.label, LONGEST)
        box = beside(x, y, text_width(name), taken, inside)
        if box is not None:
            taken.append(box)
            labels[s] = labels.get(s, "") + text(
                box[0], box[1] + 12, name, title=s.label, extra=NAME
            )
    return labels
