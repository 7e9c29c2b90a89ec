"""Text in charts: how wide it is, and where names go so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["FONT", "Box", "beside", "shortened", "spread", "text", "text_width"]

FONT = 13
"""The size of text, in units of the chart."""
WIDE_LETTERS = "mwMW@%"
NARROW_LETTERS = "ilj.,:;'|! ()[]"
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def text_width(words: str, size: float = FONT) -> float:
    """Return an estimate of the width of a text in a sans-serif face, an overestimate if anything.

    >>> text_width("iii") < text_width("aaa") < text_width("mmm")
    True
    """
    return sum(map(_letter_width, words)) * size


def _letter_width(letter: str) -> float:
    if letter in WIDE_LETTERS:
        return 0.92
    if letter in NARROW_LETTERS:
        return 0.34
    return 0.64


def shortened(words: str, most: float) -> str:
    """Return the text, cut with an ellipsis where it is wider than `most`.

    >>> shortened("a name that is far too long", 60)
    'a name…'
    """
    while text_width(words) > most and len(words) > 1:
        words = words.rstrip("…")[:-1] + "…"
    return words


def text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    *,
    size: float = FONT,
    title: str = "",
    extra: str = "",
) -> str:
    """Return one line of text; `title` is shown where a reader points at it."""
    anchored = "" if anchor == "start" else f' class="{anchor[0]}"'
    sized = "" if size == FONT else f' font-size="{size:.3g}"'
    hint = f"<title>{escape(title)}</title>" if title and title != words else ""
    return f'<text x="{x:.5g}" y="{y:.5g}"{anchored}{sized}{extra}>{hint}{escape(words)}</text>'


def spread(places: Sequence[float], space: float, low: float, high: float) -> list[float]:
    """Return ascending places, moved down and then up as far as keeps them `space` apart.

    >>> spread([10.0, 11.0, 50.0], 14.0, 0.0, 60.0)
    [10.0, 24.0, 50.0]
    >>> spread([55.0, 58.0, 59.0], 14.0, 0.0, 60.0)
    [32.0, 46.0, 60.0]
    """
    moved: list[float] = []
    for place in places:
        first_free = moved[-1] + space if moved else low
        moved.append(max(place, first_free))
    limit = high
    for i in range(len(moved) - 1, -1, -1):
        moved[i] = min(moved[i], limit)
        limit = moved[i] - space
    return moved


def beside(x: float, y: float, width: float, taken: Sequence[Box], inside: Box) -> Box | None:
    """Return the first of six places around a point where a name covers nothing, else None.

    >>> beside(50, 50, 30, [], (0, 0, 100, 100))
    (58, 42, 88, 57)
    """
    lefts = (x + 8, x - 8 - width, x + 6, x - 6 - width, x - width / 2, x - width / 2)
    tops = (y - 8, y - 8, y - 20, y - 20, y + 7, y - 22)
    for left, top in zip(lefts, tops, strict=True):
        box = (left, top, left + width, top + FONT + 2)
        if _contains(inside, box) and not any(_meet(box, other) for other in taken):
            return box
    return None


def _contains(a: Box, b: Box) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and b[2] <= a[2] and b[3] <= a[3]


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
