"""The picture of the demo's example: what four solvers say, and how far off their portfolios are."""

from __future__ import annotations

from klopt.bench.caught import Caught, Portfolio
from klopt.bench.report.advice import listed
from klopt.bench.report.axes import Axis
from klopt.bench.report.figures import Figure
from klopt.bench.report.row_chart import Mark, Row, row_chart

__all__ = ["caught_chart", "caught_line", "caught_sentence"]

WIDTH = 640
TITLE = "Success reported, optimum missed"


def caught_chart(example: Portfolio) -> Figure:
    """Return the variance of every solver's portfolio over the proven minimum."""
    rows = [_row(answer) for answer in example.answers]
    largest = max((1 + answer.excess for answer in example.answers), default=2.0)
    axis = Axis("variance of the portfolio / proven minimum", 0.9, 1.05 * largest)
    svg = row_chart(rows, TITLE, axis, (1.0, "proven minimum"), medians=False, width=WIDTH)
    return Figure("caught", TITLE, caught_sentence(example), svg)


def caught_sentence(example: Portfolio) -> str:
    """Return what the picture shows, and why the solvers are content."""
    wrong = [answer for answer in example.answers if not answer.confirmed]
    names = listed([answer.solver for answer in wrong])
    excess = listed([f"{100 * answer.excess:.0f} %" for answer in wrong])
    return (
        "How to read this: the variance of each solver’s minimum-variance portfolio of 50 assets, over the proven "
        f"minimum. At default settings {names} report success, yet their portfolios have {excess} more "
        "variance than need be. Each meets its own stopping rule, whose absolute tolerance does not know "
        f"how small the numbers of this problem are (the optimum is {example.upper:.1e}); klopt.judge does "
        "not confirm them."
    )


def caught_line(example: Portfolio) -> str:
    """Return the same in one sentence."""
    wrong = [answer for answer in example.answers if not answer.confirmed]
    if not wrong:
        return ""
    names = listed([answer.solver for answer in wrong])
    excess = listed([f"{100 * answer.excess:.0f} %" for answer in wrong])
    return (
        f"{names} report success at default settings on a minimum-variance portfolio, with "
        f"{excess} more variance than the proven minimum."
    )


def _row(answer: Caught) -> Row:
    mark = Mark(1 + answer.excess, answer.confirmed, f"{answer.solver}: {_percent(answer.excess)}")
    word = "✓ confirmed" if answer.confirmed else "✗ not confirmed"
    return Row(
        label=answer.solver,
        marks=(mark,),
        note=f"{_percent(answer.excess)}  {word}",
        quote=f"“{answer.status}”",
    )


def _percent(excess: float) -> str:
    share = 100 * excess
    return f"+{share:.0f} %" if share >= 1 else f"+{share:.1g} %"
