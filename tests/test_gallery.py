"""Every example of the gallery runs by itself, draws a picture, and uses klopt as a user would; the README has its own.

An example runs in an interpreter of its own, which saves its figures into a folder where they can
be looked at: `pytest tests/test_gallery.py -m "" --basetemp=FOLDER`.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from source import ROOT

GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
QUICK = {"plot_infeasible_triangle"}
"""What runs even where slow tests are left out."""

DRIVER = """
import runpy, sys, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
warnings.simplefilter("error")  # now: what an old Matplotlib warns of when it is loaded is not the example's
plt.show = lambda *args, **kwargs: None
runpy.run_path(sys.argv[1], run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).savefig(f"{number}.png", dpi=100)
"""


def named(path: Path) -> str:
    return path.stem


each = pytest.mark.parametrize("path", EXAMPLES, ids=named)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem)
        for path in EXAMPLES
    ],
)
def test_an_example_runs_without_a_warning_and_draws(path: Path, tmp_path: Path) -> None:
    pytest.importorskip(
        "matplotlib", reason="matplotlib is not installed; pip install 'klopt[docs]'"
    )
    command = [sys.executable, "-c", DRIVER, str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.png"))


@each
def test_an_example_uses_public_names_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported += [f"{node.module}.{alias.name}" for alias in node.names]
    private = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
    }
    assert not private
    assert not [
        name for name in imported if re.search(r"^(problems|solvers|tests)\b|(^|\.)_", name)
    ]


@each
def test_an_example_has_a_title_and_prose_between_its_blocks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    title, underline = (ast.get_docstring(ast.parse(text)) or "\n").splitlines()[:2]
    assert title
    assert underline == "=" * len(title)
    assert text.count("\n# %%\n# ") >= 2


def drawer() -> ModuleType:
    """The script that draws the picture of the README."""
    spec = importlib.util.spec_from_file_location("draw_readme", ROOT / "docs" / "draw_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_readme_is_small_and_is_what_the_script_draws() -> None:
    draw = drawer()
    png, printed = (
        (draw.PICTURES / "page.png").read_bytes(),
        (draw.PICTURES / "page.txt").read_text(encoding="utf-8"),
    )
    width = int.from_bytes(png[16:20], "big")  # of the header of a PNG file
    assert len(png) < 200_000
    assert width == draw.WIDTH
    assert printed.startswith(f"$ {draw.COMMAND}\n")
    assert max(map(len, printed.splitlines())) <= 80


def test_without_a_browser_the_script_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draw = drawer()
    monkeypatch.setattr(draw, "browser", lambda: "")
    with pytest.raises(SystemExit, match="apt-get install chromium"):
        draw.screenshot(tmp_path / "page.html")


def test_the_gallery_is_not_thin() -> None:
    assert len(EXAMPLES) >= 12
    assert {path.stem for path in EXAMPLES} >= QUICK
