"""Draws the pictures of the README: a small comparison from the shell with its page, and the demo's example.

OMP_NUM_THREADS=1 python docs/draw_readme.py

writes `docs/pictures/page.png` (the first screens of the page), `docs/pictures/page.txt` (the command
and its table) and `docs/pictures/caught.svg` (solvers that report success with a portfolio far from
the best); with `--caught` the last of these alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from klopt.bench.caught import caught
from klopt.bench.report.caught_chart import caught_chart
from klopt.bench.report.charts import standalone
from klopt.bench.report.files import browser

PICTURES = Path(__file__).with_name("pictures")
COMMAND = "klopt compare AdaptiveKernel --sizes 40 --repeat 1 --time 3s -o page.html"
WIDTH = 1280
COLOURS = 256

END_OF_TABLE = "() => document.querySelector('#more').getBoundingClientRect().top + scrollY"
"""Where the answer, its charts and the table of runs end."""


def compare(folder: Path) -> tuple[Path, str]:
    """Run the command in a folder; return the page that it wrote and what it printed."""
    program = [
        sys.executable,
        "-c",
        "from klopt.cli.main import main; main()",
        *COMMAND.split()[1:],
    ]
    settings = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    done = subprocess.run(
        program, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=True
    )
    return folder / "page.html", done.stdout


def screenshot(page: Path) -> bytes:
    """Return the top of the page as a PNG file."""
    if not browser():
        raise SystemExit(
            "the picture is taken by Chromium, which is not installed; apt-get install chromium"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit(
            "Chromium is driven by playwright, which is not installed; pip install playwright"
        ) from None
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=browser(), args=["--no-sandbox", "--disable-background-networking"]
        )
        seen = chromium.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        seen.goto(page.as_uri())
        height = seen.evaluate(END_OF_TABLE)
        made = seen.screenshot(
            full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height - 24}
        )
        chromium.close()
    return made


def small(png: bytes) -> bytes:
    """Return the picture with a palette, a third of its size; rare colours are kept."""
    from PIL import Image

    made = BytesIO()
    full = Image.open(BytesIO(png)).convert("RGB")
    full.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        made, "PNG", optimize=True
    )
    return made.getvalue()


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    picture = standalone(caught_chart(caught()).svg)
    (PICTURES / "caught.svg").write_text(picture, encoding="utf-8")
    if "--caught" in sys.argv:
        raise SystemExit
    with tempfile.TemporaryDirectory() as folder:
        page, printed = compare(Path(folder))
        (PICTURES / "page.png").write_bytes(small(screenshot(page)))
        (PICTURES / "page.txt").write_text(f"$ {COMMAND}\n{printed}", encoding="utf-8")
