"""The chart of times to a proven gap: a row for each solver, a mark for each problem of a class."""

from __future__ import annotations

from collections.abc import Sequence

from klopt.bench.gap_times import GapTime, gap_times, reference_gap
from klopt.bench.record import Run
from klopt.bench.report.advice import advice, seconds_text
from klopt.bench.report.axes import Axis
from klopt.bench.report.figures import Figure
from klopt.bench.report.row_chart import Mark, Row, row_chart
from klopt.bench.report.styles import StyleMap
from klopt.bench.times import quantile_interval
from klopt.bench.trials import grouped

__all__ = ["time_chart"]

MAX_NAMED = 80
"""Marks of a chart that each say which problem they are."""
CAPTION = (
    "How to read this: each circle is a problem, at the seconds until a gap of {gap:.0e} was proven, "
    "proof included; further left is faster. A diamond at the right is a problem on which the gap was not "
    "proven within the limit. The numbers say on how many of its problems a solver proves it."
)


def time_chart(runs: Sequence[Run], styles: StyleMap, name: str = "time") -> Figure:
    """Return how long each solver takes to a proven gap, those that prove most first."""
    title = "Time to a proven gap"
    gap = reference_gap(runs)
    times = gap_times(runs, gap)
    if not any(found.reached for found in times):
        return Figure(name, title, f"Not drawn: no run proves a gap of {gap:.0e}.")
    known = advice(runs, gap)
    by_solver = grouped(times, lambda found: found.backend)
    order = sorted(
        by_solver,
        key=lambda solver: (
            -known.first.get(solver, 0),
            -known.reached[solver],
            known.seconds.get(solver, float("inf")),
            solver,
        ),
    )
    # Where there are many, the table tells them apart.
    named = len(times) <= MAX_NAMED
    rows = [_row(solver, by_solver[solver], styles, named) for solver in order]
    axis = Axis.around("seconds", [found.charged for found in times], log=True)
    caption = CAPTION.format(gap=gap)
    if any(len(found.times) > 1 for found in times):
        caption += " A thin line spans the repeats, from the 10 % to the 90 % quantile."
    return Figure(name, title, caption, row_chart(rows, title, axis))


def _row(solver: str, times: Sequence[GapTime], styles: StyleMap, named: bool) -> Row:
    reached = sum(found.reached for found in times)
    return Row(
        label=solver,
        marks=tuple(_mark(found, named) for found in times),
        note=f"{reached} of {len(times)}",
        slot=f"b-{styles.backends[solver].solver}",
    )


def _mark(found: GapTime, named: bool) -> Mark:
    if not found.reached:
        return Mark(found.limit, False, f"{found.problem}: not proven in {found.limit:g} s")
    words = f"{found.problem}: {seconds_text(found.seconds)}" if named else ""
    if len(found.times) == 1:
        return Mark(found.seconds, True, words)
    # The interval of the repeats is drawn; in words it would be a tenth of the page.
    return Mark(found.seconds, True, words, quantile_interval(found.times))
