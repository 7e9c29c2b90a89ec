"""Comparisons in notebooks: which solver to take, a table of results, two charts."""

from __future__ import annotations

import base64
from html import escape

from klopt.bench.report.advice import headline
from klopt.bench.report.charts import standalone
from klopt.bench.report.classes import problem_classes
from klopt.bench.report.figures import Figure, shown
from klopt.bench.report.page import PageSource
from klopt.bench.report.status_chart import status_chart
from klopt.bench.report.styles import styles_of
from klopt.bench.report.time_chart import time_chart
from klopt.bench.report.views import groups
from klopt.bench.scores import agreement, trials, verdict_sentence
from klopt.model.html import BAD, GOOD, badge, html_table

__all__ = ["comparison_html"]

HEADERS = ("route", "solver status", "verdict", "lower", "upper", "gap", "seconds", "iterations")
MAX_ROWS = 60
"""Rows up to which a notebook shows all of them."""


def comparison_html(comparison: PageSource) -> str:
    """Return what a notebook shows of a comparison."""
    runs = tuple(comparison.runs)
    found = trials(runs)
    styles = styles_of(runs)
    one_problem = len({run.problem for run in runs}) == 1
    anchors = {shown(trial).key: "" for trial in found}
    rows = []
    for group in groups(found, agreement(runs), styles, anchors):
        for row in group.rows:
            name = row.route if one_problem else f"{group.problem}: {row.route}"
            verdict = f"{row.symbol} {row.verdict}"
            bounds = (row.lower, row.upper, row.width)
            rows.append([name, row.says, verdict, *bounds, row.times[-1], row.iterations])

    contradicted = any(not found.holds for found in agreement(runs).values())
    certified = sum(trial.certified for trial in found)
    mark = badge("CONTRADICTION", "✗", BAD)
    if not contradicted:
        mark = badge(f"{certified} of {len(found)} certified", "✓", GOOD)
    html = f"<p>{mark} <b>{escape(headline(runs, problem_classes(runs)))}</b></p>"
    html += f"<p>{escape(verdict_sentence(runs))}</p>"
    html += _image(time_chart(runs, styles)) + _image(status_chart(runs, styles))
    html += html_table("Results", HEADERS, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        html += f"<p>{len(rows) - MAX_ROWS} more rows; .report(path) writes them all.</p>"
    return html


def _image(figure: Figure) -> str:
    """A chart as an image, which keeps its style sheet to itself."""
    if not figure.svg:
        return ""
    encoded = base64.b64encode(standalone(figure.svg).encode()).decode()
    source = f'src="data:image/svg+xml;base64,{encoded}"'
    return f'<img {source} width="480" alt="{escape(figure.title)}">'
