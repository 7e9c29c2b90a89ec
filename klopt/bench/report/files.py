"""Charts of a comparison as files: SVG by klopt itself, PNG and PDF drawn by an installed Chromium.

Chromium is asked because it is what shows the page: the file looks like the chart there, and klopt
needs no second library that draws. Where there is none the error says so, and SVG always works.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from os import PathLike
from pathlib import Path

from klopt.bench.report.charts import standalone
from klopt.bench.report.figures import (
    Figure,
    accuracy,
    bounds_of,
    growths,
    profiles,
    verdict_map,
)
from klopt.bench.report.page import Compared, panels
from klopt.bench.report.styles import looks_of
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
WIDTH = 960
"""Pixels of a PNG, which is drawn twice as fine."""
SECONDS = 60


def figures(comparison: Compared) -> dict[str, Figure]:
    """Return every chart of a comparison by its name; convergence is numbered by problem, from 1."""
    runs = tuple(comparison.runs)
    found, looks = trials(runs), looks_of(runs)
    drawn = [accuracy(found, looks), profiles(runs, looks), *growths(runs, looks)]
    drawn += [verdict_map(found, {})] if found else []
    drawn += [
        figure
        for panel in panels(found, comparison.traces, looks, bounds_of(runs))
        for figure in panel.figures
    ]
    return {figure.name: figure for figure in drawn}


def save_figure(comparison: Compared, name: str, path: str | PathLike[str]) -> None:
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
    tall = round(WIDTH * height / width)
    style = f"@page{{size:{WIDTH}px {tall}px;margin:0}}body{{margin:0}}svg{{display:block;width:{WIDTH}px;height:{tall}px}}"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "figure.html"), Path(folder, f"made{target.suffix}")
        source.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><style>{style}</style>{svg}', encoding="utf-8"
        )
        task = [
            f"--screenshot={made}",
            f"--window-size={WIDTH},{tall}",
            "--force-device-scale-factor=2",
        ]
        if target.suffix == ".pdf":
            task = [f"--print-to-pdf={made}", "--no-pdf-header-footer"]
        # Chromium refuses to run as root inside its sandbox; the page it opens is our own.
        sandbox = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        command = [
            program,
            "--headless",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            *sandbox,
            *task,
        ]
        done = subprocess.run(
            [*command, source.as_uri()],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if not made.is_file():
            raise InvalidSettings(
                f"{program} wrote no {target.suffix} file; it says: {done.stderr.strip()[-300:]}"
            )
        shutil.copyfile(made, target)


def _size(svg: str) -> tuple[float, float]:
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert found is not None
    return float(found[1]), float(found[2])
