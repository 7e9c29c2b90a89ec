"""Comparisons in notebooks: the verdict, a table of results, and the chart of accuracy against time, all static."""

from __future__ import annotations

import base64
from html import escape

from klopt.bench.report.charts import standalone
from klopt.bench.report.figures import accuracy, shown
from klopt.bench.report.page import Compared
from klopt.bench.report.styles import looks_of
from klopt.bench.report.views import groups
from klopt.bench.scores import agreement, trials, verdict_sentence
from klopt.model.html import html_table

__all__ = ["comparison_html"]

HEADERS = ("route", "it says", "klopt proves", "lower", "upper", "width", "seconds", "iterations")
MOST = 60
"""Rows up to which a notebook shows all of them."""


def comparison_html(comparison: Compared) -> str:
    """Return what a notebook shows of a comparison."""
    runs = tuple(comparison.runs)
    found, looks = trials(runs), looks_of(runs)
    anchors = {shown(trial).key: "" for trial in found}
    rows = []
    for group in groups(found, agreement(runs), looks, anchors):
        for row in group.rows:
            name = (
                row.route
                if len({run.problem for run in runs}) == 1
                else f"{group.problem}: {row.route}"
            )
            verdict = f"{row.symbol} {row.verdict}"
            rows.append(
                [
                    name,
                    row.says,
                    verdict,
                    row.lower,
                    row.upper,
                    row.width,
                    row.times[-1],
                    row.iterations,
                ]
            )
    left = (
        f"<p>{len(rows) - MOST} more rows; .report(path) writes them all.</p>"
        if len(rows) > MOST
        else ""
    )
    chart = accuracy(found, looks).svg
    # As an image a chart keeps its style sheet to itself.
    encoded = base64.b64encode(standalone(chart).encode()).decode()
    drawn = (
        f'<img src="data:image/svg+xml;base64,{encoded}" width="480" alt="accuracy against time">'
        if chart
        else ""
    )
    return f"<p>{escape(verdict_sentence(runs))}</p>{html_table('Results', HEADERS, rows[:MOST])}{left}{drawn}"
