"""Comparisons in notebooks: the verdict, a table of results, and the chart of accuracy."""

from __future__ import annotations

import base64
from html import escape

from klopt.bench.report.accuracy_chart import accuracy_chart
from klopt.bench.report.charts import standalone
from klopt.bench.report.figures import shown
from klopt.bench.report.page import PageSource
from klopt.bench.report.styles import styles_of
from klopt.bench.report.views import groups
from klopt.bench.scores import agreement, trials, verdict_sentence
from klopt.model.html import html_table

__all__ = ["comparison_html"]

HEADERS = ("route", "it says", "klopt proves", "lower", "upper", "width", "seconds", "iterations")
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

    html = f"<p>{escape(verdict_sentence(runs))}</p>"
    html += html_table("Results", HEADERS, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        html += f"<p>{len(rows) - MAX_ROWS} more rows; .report(path) writes them all.</p>"
    return html + _image(accuracy_chart(found, styles).svg)


def _image(chart: str) -> str:
    """A chart as an image, which keeps its style sheet to itself."""
    if not chart:
        return ""
    encoded = base64.b64encode(standalone(chart).encode()).decode()
    source = f'src="data:image/svg+xml;base64,{encoded}"'
    return f'<img {source} width="480" alt="accuracy against time">'
