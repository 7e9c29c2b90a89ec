"""Charts of a comparison as files: SVG by klopt itself, PNG and PDF drawn by an installed Chromium.

Chromium shows the page, too: so the file looks like the chart there, and klopt needs no second
library that draws. Where it is not installed the error says so; SVG always works.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from os import PathLike
from pathlib import Path

from klopt.bench.report.accuracy_chart import accuracy_chart
from klopt.bench.report.charts import standalone
from klopt.bench.report.convergence_chart import rate_bounds
from klopt.bench.report.figures import Figure
from klopt.bench.report.growth_chart import growth_charts
from klopt.bench.report.page import PageSource, panels
from klopt.bench.report.performance_profile import performance_profile
from klopt.bench.report.status_chart import status_chart
from klopt.bench.report.styles import styles_of
from klopt.bench.report.time_chart import time_chart
from klopt.bench.report.verdict_map import verdict_map
from klopt.bench.scores import trials
from klopt.errors import InvalidSettings

__all__ = ["browser", "figures", "save_figure"]

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
"""The names under which Chromium and its relatives are installed."""
WIDTH_PX = 960
"""The width of a picture; a PNG is drawn twice as fine."""
TIMEOUT_S = 60
"""What Chromium may take."""


def figures(comparison: PageSource) -> dict[str, Figure]:
    """Return every chart of a comparison by its name; problems are numbered from 1."""
    runs = tuple(comparison.runs)
    found = trials(runs)
    styles = styles_of(runs)
    drawn = [
        accuracy_chart(found, styles),
        performance_profile(runs, styles),
        time_chart(runs, styles),
        status_chart(runs, styles),
    ]
    drawn += growth_charts(runs, styles)
    if found:
        drawn.append(verdict_map(found, links={}))
    for panel in panels(found, comparison.traces, styles, rate_bounds(runs)):
        drawn += panel.figures
    return {figure.name: figure for figure in drawn}


def save_figure(comparison: PageSource, name: str, path: str | PathLike[str]) -> None:
    """Write one chart as .svg, .png or .pdf."""
    target = Path(path)
    if target.suffix not in (".svg", ".png", ".pdf"):
        raise InvalidSettings(
            f"{target.name} ends in {target.suffix!r}; expected .svg, .png or .pdf"
        )
    known = figures(comparison)
    if name not in known:
        raise InvalidSettings(
            f"there is no figure {name!r}; this comparison has {', '.join(known)}"
        )
    if not known[name].svg:
        raise InvalidSettings(f"the figure {name!r} is empty: {known[name].caption}")
    svg = standalone(known[name].svg)
    if target.suffix == ".svg":
        target.write_text(svg, encoding="utf-8")
    else:
        _print(svg, target)


def browser() -> str:
    """Return the path of an installed Chromium, "" where there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), "")


def _print(svg: str, target: Path) -> None:
    program = browser()
    if not program:
        raise InvalidSettings(
            f"{target.suffix} files are drawn by Chromium, which is not installed; "
            f"write {target.with_suffix('.svg').name} instead, or install chromium"
        )
    width, height = _size(svg)
    height_px = round(WIDTH_PX * height / width)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "figure.html")
        made = Path(folder, f"made{target.suffix}")
        source.write_text(_html(svg, height_px), encoding="utf-8")
        done = subprocess.run(
            _command(program, source, made, height_px),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if not made.is_file():
            said = done.stderr.strip()[-300:]
            raise InvalidSettings(f"{program} wrote no {target.suffix} file; it says: {said}")
        shutil.copyfile(made, target)


def _html(svg: str, height_px: int) -> str:
    """A page of exactly the size of the picture."""
    size = f"width:{WIDTH_PX}px;height:{height_px}px"
    style = f"@page{{size:{WIDTH_PX}px {height_px}px;margin:0}}"
    style += f"body{{margin:0}}svg{{display:block;{size}}}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return f'<!DOCTYPE html><meta charset="utf-8">{meta}<style>{style}</style>{svg}'


def _command(program: str, source: Path, made: Path, height_px: int) -> list[str]:
    command = [
        program,
        "--headless",
        "--disable-gpu",
        f"--user-data-dir={source.parent}/profile",
    ]
    # Chromium refuses to run as root inside its sandbox; the page it opens is klopt's own.
    if getattr(os, "geteuid", lambda: 1)() == 0:
        command.append("--no-sandbox")
    if made.suffix == ".pdf":
        command += [f"--print-to-pdf={made}", "--no-pdf-header-footer"]
    else:
        window = f"--window-size={WIDTH_PX},{height_px}"
        command += [f"--screenshot={made}", window, "--force-device-scale-factor=2"]
    return [*command, source.as_uri()]


def _size(svg: str) -> tuple[float, float]:
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert found is not None
    return float(found[1]), float(found[2])
