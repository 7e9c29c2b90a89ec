"""The pages on when to use a learner: tables are those of what was measured, distances what they say."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "situations").glob("*.md"))


@cache
def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_tables_are_written_from_what_was_measured(path: Path) -> None:
    writer = loaded(ROOT / "docs" / "write_situations.py")
    content = json.loads((ROOT / "docs" / "situations.json").read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    assert writer.page(text, content) == text, "python docs/write_situations.py"
    assert text.count("<!-- end -->") == len(writer.BLOCK.findall(text))


def test_each_situation_has_a_page_that_says_when_to_take_something_else() -> None:
    assert [path.stem for path in PAGES] == [
        "few-labels",
        "index",
        "kernel-groups",
        "similarities",
    ]
    for path in PAGES:
        if path.stem != "index":
            text = path.read_text(encoding="utf-8")
            assert "## When not to use klopt" in text
            assert f"]({path.stem}.svg)" in text
            assert path.with_suffix(".svg").exists()


def test_every_method_saw_every_split() -> None:
    content = json.loads((ROOT / "docs" / "situations.json").read_text(encoding="utf-8"))
    for name in ("few-labels", "kernel-groups", "similarities"):
        for row in content[name]["rows"]:
            assert len(row["accuracy"]) == len(row["seconds"]) == content["draws"] == 10


def test_warping_distances_are_those_of_the_recursion() -> None:
    bench = loaded(ROOT / "benchmarks" / "situations.py")
    curves = np.random.default_rng(0).normal(size=(3, 6))

    @cache
    def cost(a: int, b: int, i: int, j: int) -> float:
        if i < 0 or j < 0:
            return 0.0 if i == j == -1 else np.inf
        step = min(cost(a, b, i - 1, j), cost(a, b, i, j - 1), cost(a, b, i - 1, j - 1))
        return float((curves[a, i] - curves[b, j]) ** 2) + step

    expected = [[cost(a, b, 5, 5) if a != b else 0.0 for b in range(3)] for a in range(3)]
    np.testing.assert_allclose(bench.warping_distances(curves), expected, rtol=1e-12)


def test_an_image_and_the_same_a_pixel_away_have_the_distance_0() -> None:
    bench = loaded(ROOT / "benchmarks" / "situations.py")
    image = np.zeros((8, 8))
    image[2:5, 2:5] = np.arange(9.0).reshape(3, 3)
    moved = np.roll(image, (1, -1), axis=(0, 1))
    far = np.roll(image, (3, 0), axis=(0, 1))
    D = bench.shift_distances(np.array([image.ravel(), moved.ravel(), far.ravel()]))
    assert D[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert D[0, 2] > 1
    np.testing.assert_array_equal(D, D.T)
