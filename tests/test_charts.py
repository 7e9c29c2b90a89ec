"""Charts are well-formed, hold what they were given, and no name in them covers another."""

from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st
from report_samples import HOSTILE

from klopt.bench.report.axes import MAX_POINTS, Axis, thinned
from klopt.bench.report.charts import MapCell, Rule, Series, Style, bars, heat_map, plot, standalone
from klopt.bench.report.labels import FONT, text_width

SVG = "{http://www.w3.org/2000/svg}"
positive = st.floats(1e-12, 1e9)


def tree(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(standalone(svg))


def words(element: ElementTree.Element) -> str:
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def boxes(svg: str) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every text that is not turned, with the space it takes by klopt's own measure of width."""
    found = []
    for element in tree(svg).iter(f"{SVG}text"):
        text, size = words(element), float(element.get("font-size", FONT))
        x, y, wide = float(element.get("x", 0)), float(element.get("y", 0)), text_width(text, size)
        left = {"e": x - wide, "m": x - wide / 2}.get(element.get("class", ""), x)
        found.append((text, (left, y - 0.8 * size, left + wide, y + 0.1 * size)))
    return found


def overlapping(svg: str) -> list[tuple[str, str]]:
    return [
        (a, b)
        for (a, p), (b, q) in combinations(boxes(svg), 2)
        if p[0] < q[2] - 0.5 and q[0] < p[2] - 0.5 and p[1] < q[3] - 0.5 and q[1] < p[3] - 0.5
    ]


def curve(slot: int, x: object, y: object, mark: str = "line", label: str = "") -> Series:
    style = Style(slot, slot % 7, slot // 7)
    return Series(label or f"backend_{slot}", np.array(x, float), np.array(y, float), style, mark)  # type: ignore[arg-type]


@given(positive, positive, st.integers(2, 8), st.booleans())
def test_ticks_lie_on_the_axis_in_order_and_are_few(
    low: float, high: float, most: int, log: bool
) -> None:
    axis = Axis.around("x", [low, high], log=log)
    values = [value for value, _ in axis.ticks(most)]
    assert all(a < b for a, b in pairwise(values))
    margin = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - margin <= value <= axis.high + margin for value in values)
    assert 1 <= len(values) <= max(most, 6) + 3
    assert len({text for _, text in axis.ticks(most)}) == len(values)


@given(st.lists(positive, min_size=2, max_size=20, unique=True), st.booleans())
def test_an_axis_keeps_the_order_of_numbers_and_holds_them_all(
    values: list[float], log: bool
) -> None:
    axis = Axis.around("x", values, log=log)
    places = [axis.share(value) for value in sorted(values)]
    assert all(0 <= a <= b <= 1 for a, b in pairwise(places))


@given(st.integers(1, 5000), st.integers(2, MAX_POINTS))
def test_thinning_keeps_both_ends_and_only_points_that_were_there(count: int, most: int) -> None:
    x = np.arange(count, dtype=float)
    kept, same = thinned(x, -x, most)
    assert len(kept) <= max(most, 1)
    assert kept[0] == 0
    assert kept[-1] == count - 1
    assert set(kept) <= set(x)
    assert np.array_equal(same, -kept)


def test_a_curve_of_a_million_points_is_drawn_with_400() -> None:
    x = np.arange(1, 1_000_001.0)
    svg = plot(
        [curve(0, x, 1 / x)],
        "Fall",
        Axis.around("k", x, log=True),
        Axis.around("gap", 1 / x, log=True),
    )
    path = next(p for p in tree(svg).iter(f"{SVG}path") if p.get("class") == "l")
    moves = sum((path.get("d") or "").count(letter) for letter in "lhv")
    assert 100 < moves < MAX_POINTS


@given(
    st.lists(
        st.lists(st.tuples(st.floats(1e-4, 1e3), st.floats(1e-12, 1.0)), min_size=1, max_size=4),
        min_size=1,
        max_size=14,
    ),
    st.sampled_from(["line", "step", "points"]),
)
def test_no_name_in_a_chart_covers_another(
    points: list[list[tuple[float, float]]], mark: str
) -> None:
    series = [
        curve(i, [p[0] for p in sorted(own)], [p[1] for p in sorted(own)], mark)
        for i, own in enumerate(points)
    ]
    axes = (
        Axis.around("seconds", [p[0] for own in points for p in own], log=True),
        Axis.around("width", [p[1] for own in points for p in own], log=True),
    )
    assert not overlapping(plot(series, "Chart", *axes, [Rule(1e-6, "asked for")]))


def test_every_cell_says_in_words_what_its_colour_says() -> None:
    cells = [[MapCell("✓", "OPTIMAL", "good", ""), MapCell("✗", "UNPROVEN", "bad", "says optimal")]]
    root = tree(heat_map(["p"], ["a", "b"], cells, "Verdicts"))
    assert [tspan.text for tspan in root.iter(f"{SVG}tspan")] == ["OPTIMAL", "UNPROVEN"]


@pytest.mark.parametrize("mark", ["line", "step", "points"])
def test_every_series_has_a_title_and_its_own_class(mark: str) -> None:
    series = [curve(i, [1, 2, 3], [1, 2, 1 + i], mark) for i in range(9)]
    root = tree(plot(series, "Chart", Axis("x", 1, 3), Axis("y", 0, 10)))
    groups = [g for g in root.iter(f"{SVG}g") if (g.get("class") or "").startswith("k")]
    assert [(g.get("class") or "").split()[0] for g in groups] == [f"k{i}" for i in range(9)]
    assert all(next(g.iter(f"{SVG}title")).text == f"backend_{i}" for i, g in enumerate(groups))


def test_series_of_one_colour_differ_in_dash_and_shape() -> None:
    svg = plot(
        [curve(i, [1, 2], [1, 2]) for i in (0, 7)], "Chart", Axis("x", 1, 2), Axis("y", 1, 2)
    )
    classes = [
        p.get("class")
        for p in tree(svg).iter(f"{SVG}path")
        if (p.get("class") or "").startswith("l")
    ]
    assert classes == ["l", "l d1"]
    assert Style(0, 0).glyph != Style(7, 0, 1).glyph


def test_names_from_outside_are_text() -> None:
    svg = plot(
        [curve(0, [1, 2], [1, 2], label=HOSTILE)], HOSTILE, Axis(HOSTILE, 1, 2), Axis(HOSTILE, 1, 2)
    )
    svg += heat_map(
        [HOSTILE], [HOSTILE], [[MapCell(HOSTILE, HOSTILE, "bad", HOSTILE, f'#"{HOSTILE}')]], HOSTILE
    )
    svg += bars(np.array([1.0]), HOSTILE, Style(0, 0), 1.0)
    assert "<img" not in svg


def test_bars_are_as_tall_as_their_values_say() -> None:
    path = next(
        p for p in tree(bars(np.array([1.0, 0.5, -0.0]), "w", Style(0, 0), 1.0)).iter(f"{SVG}path")
    )
    tall = [float(part.split("h")[0]) for part in (path.get("d") or "").split("v-")[1:]]
    assert tall[1] == pytest.approx(tall[0] / 2, abs=0.1)
    assert tall[2] == 0
    assert "--" not in (path.get("d") or "")
