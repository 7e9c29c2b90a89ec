"""Charts as SVG text: curves, steps and points on two axes, small bars, and a map of cells.

A chart is one `<svg>` with a viewBox, so that it scales to its place. Text and lines take the
colour of the text around them (`currentColor`), so that a dark page has light charts. Series have
the colours of Okabe and Ito, which people with any kind of colour vision tell apart, and also a
dash pattern, a shape and a name at their end. What a mark means in full is in its `<title>`. All
text is escaped.

Styles are CSS classes, so that a page of many charts holds them once: `STYLE_SHEET` goes with the
charts into the page, and `standalone` puts it into a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.report.axes import MAX_POINTS, Axis, thinned
from klopt.bench.report.labels import FONT, Box, beside, shortened, spread, text, text_width

__all__ = [
    "COLOURS",
    "STYLE_SHEET",
    "MapCell",
    "Rule",
    "Series",
    "Style",
    "bars",
    "heat_map",
    "plot",
    "standalone",
    "svg_element",
]

# Okabe and Ito without yellow, which cannot be seen on white; the last is the colour of the text.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor")
DASHES = ("", "6 3", "2 2.5", "8 3 2 3")
TONES = {"good": "#009e73", "fact": "#56b4e9", "half": "#e69f00", "bad": "#d55e00", "none": "#8888"}
"""The backgrounds of cells: optimal, no optimum, a gap wider than asked for, nothing proven, not run."""
STYLE_SHEET = "".join(
    [
        *(f".c{i}{{color:{colour}}}" for i, colour in enumerate(COLOURS)),
        *(f".d{i}{{stroke-dasharray:{dash}}}" for i, dash in enumerate(DASHES) if dash),
        *(f".cell-{tone}{{fill:{colour};fill-opacity:.27}}" for tone, colour in TONES.items()),
        ".l,.o{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}",
        ".o{stroke-width:1.6}",
        ".n{fill:var(--ink,#1c1e21);stroke:var(--bg,#fff);stroke-width:3px;paint-order:stroke}",
        ".s{font-size:10px}.e{text-anchor:end}.m{text-anchor:middle}",
        ".h,.b,.x,.w{stroke:currentColor}.h{opacity:.12}.b{opacity:.5}",
        ".x{opacity:.6;stroke-dasharray:4 4}.w{opacity:.3}.a{opacity:.09}",
        ".grey{color:#999}.grey .l{stroke-width:1.2;opacity:.7}",
        ".y,.z{color:var(--fact,#1f5f86);stroke:currentColor}.z{color:var(--bad,#a83a00)}",
        ".y{stroke-width:7;stroke-linecap:round;stroke-opacity:.7}.u{stroke:currentColor;stroke-width:2.5}",
    ]
)
"""Curves (l), hollow marks (o), names (n), small words (s), ends (e) and middles (m) of texts, grid
(h), axis (b), rules (x), leads to names (w), bands (a), curves without a name (grey), marks of what is
confirmed (y) and of what is not (z), medians (u)."""
WIDTH = 480
HEIGHT = 320
LEFT = 60
TOP = 36
BOTTOM = 48
"""The size of a chart and of the margins around its axes, in units of the viewBox."""
NAME = ' class="n"'
CELL_WIDTH = 72
CELL_HEIGHT = 38
SMALL_CELL = (44, 25)
"""The sizes of cells with words, and of those with symbols alone."""
MAX_NAME_WIDTH = 140.0
"""What a name at the right of a chart may take."""
MAX_ROW_NAME_WIDTH = 240.0
"""What the name of a row of a map may take."""
Mark = Literal["line", "step", "points"]


@dataclass(frozen=True)
class Style:
    """How a series is drawn; readers hide it by its `slot` on the page, -1 for none."""

    slot: int
    colour: int
    dash: int = 0
    solver: int = -1
    """The number of its solver on the page, by which a reader hides it; -1 for none."""
    grey: bool = False
    """Whether it is drawn in grey, as one of many."""

    @property
    def classes(self) -> str:
        """The names of its slot, solver and colour in the page's style sheet."""
        colour = "grey" if self.grey else f"c{self.colour % len(COLOURS)}"
        solver = f" b-{self.solver}" if self.solver >= 0 else ""
        return f"k{self.slot} {colour}{solver}"

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
    """Points (x, y) under one name; `hollow` marks are empty, `titles` say what each point is."""

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
class MapCell:
    """One cell of a map: symbol, word, tone (of `TONES`), meaning in full, where a click leads."""

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
    max_points: int = MAX_POINTS,
) -> str:
    """Return a chart of curves, steps and points with their names beside them.

    Parameters
    ----------
    series
        What is drawn; series without points are left out.
    title
        What the chart is called where it cannot be seen.
    x, y
        The axes.
    rules
        Levels across the chart.
    max_points
        The number of points to which a curve is thinned.

    >>> one = Series("scs", np.array([1.0, 10.0]), np.array([1e-2, 1e-6]), Style(0, 0))
    >>> svg = plot([one], "Gap", Axis("seconds", 1, 10, log=True), Axis("gap", 1e-6, 1, log=True))
    >>> svg.startswith("<svg"), "<title>Gap</title>" in svg
    (True, True)
    """
    drawn = [s for s in series if len(s.x)]
    named = [s for s in drawn if s.named]
    # Curves have their names in a column at the right, points beside them.
    if any(s.mark != "points" for s in drawn):
        names = (text_width(shortened(s.label, MAX_NAME_WIDTH)) for s in named)
        frame = _Frame(x, y, WIDTH - 18 - max(names, default=0.0))
        labels = _end_labels(named, frame)
    else:
        frame = _Frame(x, y, WIDTH - 12.0)
        labels = _point_labels(named, frame)

    levels = (_ruled(rule, frame) for rule in rules)
    marks = (_group(s.style, _drawn(s, frame, max_points) + labels.get(s, "")) for s in drawn)
    return svg_element(title, WIDTH, HEIGHT, "".join([_grid(frame), *levels, *marks]))


def bars(
    values: FloatArray, title: str, style: Style, top: float, *, width: int = 220, height: int = 96
) -> str:
    """Return a small bar chart of nonnegative values.

    Parameters
    ----------
    values
        The heights; negative ones are drawn as 0.
    title
        What the chart is called where it cannot be seen.
    style
        The colour of the bars.
    top
        The height of the axis, the same for charts that stand side by side.
    width, height
        The size of the chart.
    """
    step = (width - 8) / max(len(values), 1)
    gap = 2 if step > 6 else 0.5
    thick = max(step - gap, 0.6)
    floor = height - 16
    scale = (floor - 8) / (top or 1.0)

    path = ""
    for i, value in enumerate(values):
        tall = abs(max(float(value), 0.0)) * scale
        path += f"M{4 + i * step:.1f} {floor}v-{tall:.1f}h{thick:.1f}v{tall:.1f}z"
    body = _group(style, f'<path d="{path}"/>')
    body += f'<path class="b" d="M4 {floor}H{width - 4}"/>'
    if len(values) > 1:
        body += text(4, height - 3, "1", size=10)
        body += text(width - 4, height - 3, str(len(values)), "end", size=10)
    numbers = ", ".join(f"{value:.3g}" for value in values)
    return svg_element(f"{title}: {numbers}", width, height, body)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[MapCell]],
    title: str,
    *,
    compact: bool = False,
) -> str:
    """Return a map of coloured cells, each with a symbol and a word: the colour is never needed.

    With `compact` cells are smaller and have symbols alone, and those of nothing run are left empty, so
    that many fit.
    """
    if compact:
        cells = [[replace(cell, word="") for cell in line] for line in cells]
    cell_width = SMALL_CELL[0] if compact else CELL_WIDTH
    cell_height = SMALL_CELL[1] if compact else CELL_HEIGHT
    names = [shortened(name, MAX_ROW_NAME_WIDTH) for name in rows]
    left = round(max(map(text_width, names), default=0.0)) + 14
    longest = max(map(text_width, columns), default=0.0)
    slanted = longest > cell_width - 6
    top = round(20 + longest * 0.5) if slanted else 20

    box = f'x="1" y="1" width="{cell_width - 2}" height="{cell_height - 2}" rx="3"'
    shapes = (f'<rect id="cell-{tone}" class="cell-{tone}" {box}/>' for tone in TONES)
    # Most cells of a large map look like others: what they show is drawn once.
    known = {_look(cell): f"map-{number}" for number, cell in enumerate(_plain_cells(cells))}
    drawn_once = (
        f'<g id="{name}">{_shown(*look, x=0.0, width=cell_width)}</g>'
        for look, name in known.items()
    )
    parts = [f"<defs>{''.join(shapes)}{''.join(drawn_once)}</defs>"]
    for j, column in enumerate(columns):
        parts.append(_column_name(column, left + j * cell_width, cell_width, top - 7, slanted))
    for i, (name, line) in enumerate(zip(names, cells, strict=True)):
        down = top + i * cell_height
        parts.append(text(left - 10, down + cell_height / 2 + 4, name, "end", title=rows[i]))
        drawn = "".join(
            _cell(cell, left + j * cell_width, known, cell_width)
            for j, cell in enumerate(line)
            if not (compact and cell.tone == "none")
        )
        place = f'transform="translate(0 {down})"'
        parts.append(f'<g class="m" font-size="14" {place}>{drawn}</g>')

    overhang = max(longest * 0.87 - cell_width * 0.7, 0.0) if slanted else 0.0
    width = round(left + cell_width * len(columns) + overhang + 4)
    height = top + cell_height * len(rows) + 2
    return svg_element(title, width, height, "".join(parts), natural=True)


def _column_name(name: str, left: float, cell_width: float, down: float, slanted: bool) -> str:
    if not slanted:
        return text(left + 0.5 * cell_width, down, name, "middle")
    across = left + 0.3 * cell_width
    turn = f' transform="rotate(-30 {across:.5g} {down})"'
    return text(across, down, name, "start", extra=turn)


def standalone(svg: str) -> str:
    """Return a chart as a file of its own, which holds its style sheet and is black on white.

    >>> standalone("<svg><title>T</title></svg>").count("<style>")
    1
    """
    style = "color:#1c1e21;background:#fff;font-family:sans-serif"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" style="{style}"'
    sheet = f"</title><style>{STYLE_SHEET}</style>"
    return svg.replace("<svg", opening, 1).replace("</title>", sheet, 1)


def _plain_cells(cells: Sequence[Sequence[MapCell]]) -> list[MapCell]:
    """One cell of each look that has no words of its own."""
    plain = {_look(cell): cell for line in cells for cell in line if not cell.title}
    return list(plain.values())


def _look(cell: MapCell) -> tuple[str, str, str]:
    return cell.symbol, cell.word, cell.tone


def _cell(cell: MapCell, x: float, known: Mapping[tuple[str, str, str], str], width: float) -> str:
    if cell.title:
        inside = f"<title>{escape(cell.title)}</title>" + _shown(*_look(cell), x=x, width=width)
    else:
        inside = f'<use href="#{known[_look(cell)]}" x="{x:g}"/>'
    if cell.link:
        return f'<a href="{escape(cell.link)}">{inside}</a>'
    return f"<g>{inside}</g>" if cell.title else inside


def _shown(symbol: str, word: str, tone: str, x: float, width: float) -> str:
    """A symbol and a word on the colour of the tone.

    Parameters
    ----------
    symbol, word, tone
        Those of the cell.
    x, width
        Its left side and its width.
    """
    middle = f"{x + width / 2:g}"
    words = escape(symbol)
    if word:
        words += f'<tspan x="{middle}" dy="14" class="s">{escape(word)}</tspan>'
    return f'<use href="#cell-{tone}" x="{x:g}"/><text x="{middle}" y="17">{words}</text>'


def svg_element(title: str, width: int, height: int, body: str, natural: bool = False) -> str:
    """Return a drawing of that size with its title; with `natural` it is not scaled to its place."""
    size = f' width="{width}" height="{height}"' if natural else ""
    opening = f'<svg viewBox="0 0 {width} {height}"{size} role="img" fill="currentColor"'
    return f'{opening} font-size="{FONT}"><title>{escape(title)}</title>{body}</svg>'


def _group(style: Style, body: str) -> str:
    return f'<g class="{style.classes}">{body}</g>'


def _grid(frame: _Frame) -> str:
    floor = HEIGHT - BOTTOM
    grid = ""
    ticks = ""
    words = []
    for value, name in frame.y.ticks(6):
        down = frame.at(frame.x.low, value)[1]
        grid += f"M{LEFT} {down:g}H{frame.right:.1f}"
        words.append(text(LEFT - 8, down + 4, name, "end"))
    taken = -np.inf
    for value, name in frame.x.ticks(6):
        across = frame.at(value, frame.y.low)[0]
        half = text_width(name) / 2
        if across - half > taken:  # a tick whose text would touch the last one is left out
            ticks += f"M{across:g} {floor}v4"
            words.append(text(across, floor + 19, name, "middle"))
            taken = across + half + 6
    words.append(text(4, 14, frame.y.label))
    words.append(text((LEFT + frame.right) / 2, HEIGHT - 8, frame.x.label, "middle"))
    axis = f'<path class="b" d="{ticks}M{LEFT} {floor}H{frame.right:.1f}"/>'
    return f'<path class="h" d="{grid}"/>{axis}{"".join(words)}'


def _ruled(rule: Rule, frame: _Frame) -> str:
    down = frame.at(frame.x.low, rule.value)[1]
    level = f"M{LEFT} {down:g}H{frame.right:.1f}"
    title = f"<title>{escape(rule.label)}</title>"
    if rule.filled:
        return f'<path class="a" d="{level}V{HEIGHT - BOTTOM}H{LEFT}z">{title}</path>'
    return f'<path class="x" d="{level}">{title}</path>'


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


def _drawn(series: Series, frame: _Frame, max_points: int) -> str:
    """One series: its path, or its points; a path of one point is a mark."""
    style = series.style
    title = f"<title>{escape(series.title or series.label)}</title>"
    # A path of one point would draw nothing.
    if series.mark == "points" or len(series.x) == 1:
        return title + _marks(series, frame)

    curve = zip(*thinned(series.x, series.y, max_points), strict=True)
    places = [frame.at(float(x), float(y)) for x, y in curve]
    dash = style.dash % len(DASHES)
    look = f"l d{dash}" if dash else "l"
    path = f'<path class="{look}" d="{_path(places, series.mark == "step")}">{title}</path>'
    if series.ended:
        path += _shape(*places[-1], style, series.hollow == (True,))
    return path


def _marks(series: Series, frame: _Frame) -> str:
    hollow = series.hollow or (False,) * len(series.x)
    titles = series.titles or ("",) * len(series.x)
    points = zip(series.x, series.y, hollow, titles, strict=True)
    return "".join(_shape(*frame.at(x, y), series.style, h, title) for x, y, h, title in points)


def _path(places: Sequence[tuple[float, float]], steps: bool) -> str:
    """Relative moves in tenths, each from where the last one ended: errors do not add up."""
    x, y = places[0]
    moves = [f"M{x:g} {y:g}"]
    for next_x, next_y in places[1:]:
        right = round(next_x - x, 1)
        down = round(next_y - y, 1)
        # A step goes right, then down; so does a move along one axis, which is shorter to write.
        if steps or right == 0 or down == 0:
            across = f"h{right:g}" if right else ""
            along = f"v{down:g}" if down else ""
            moves.append(across + along)
        else:
            moves.append(f"l{right:g} {down:g}")
        x = next_x
        y = next_y
    return "".join(moves)


def _end_labels(series: Sequence[Series], frame: _Frame) -> dict[Series, str]:
    """Names at the ends of curves, in a column at the right, kept apart."""
    ends = [(frame.at(float(s.x[-1]), float(s.y[-1])), s) for s in series]
    ends.sort(key=lambda end: end[0][1])
    space = min(FONT + 2.5, (HEIGHT - BOTTOM - TOP + 10) / max(len(ends), 1))
    places = spread([down + 4 for (_, down), _ in ends], space, TOP, HEIGHT - BOTTOM + 6.0)
    size = min(FONT, space)
    left = round(frame.right) + 9
    labels = {}
    for ((x, y), s), place in zip(ends, places, strict=True):
        lead = f'<path class="w" d="M{x + 6:g} {y:g}L{frame.right + 5:.0f} {place - 4:.0f}"/>'
        name = shortened(s.label, MAX_NAME_WIDTH)
        labels[s] = lead + text(left, round(place, 1), name, size=size, title=s.label, extra=NAME)
    return labels


def _point_labels(series: Sequence[Series], frame: _Frame) -> dict[Series, str]:
    """Names beside points where nothing is in the way; others have their titles."""
    spots = [
        (frame.at(float(x), float(y)), s) for s in series for x, y in zip(s.x, s.y, strict=True)
    ]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for (x, y), _ in spots]
    inside = (LEFT + 2, TOP - 12, WIDTH, HEIGHT - BOTTOM - 2)
    labels: dict[Series, str] = {}
    for (x, y), s in spots:
        name = shortened(s.label, MAX_NAME_WIDTH)
        box = beside(x, y, text_width(name), taken, inside)
        if box is None:
            continue
        taken.append(box)
        label = text(box[0], box[1] + 12, name, title=s.label, extra=NAME)
        labels[s] = labels.get(s, "") + label
    return labels
