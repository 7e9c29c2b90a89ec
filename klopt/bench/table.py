"""A comparison as a table for a terminal: what each backend says beside what klopt proves.

There is one block for each problem and one row for each route, its repeats put together; proven
answers come first, then fast ones. Only a certified run is called the fastest, and intervals that
do not overlap are reported as an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Protocol

from klopt.bench.record import Run, printable
from klopt.bench.scores import LEVELS, Standing, growth, reference_gap, scores, standings
from klopt.bench.summary import machine_sentence, verdict_sentence
from klopt.bench.times import CLOCK_TICK_S, quantile_interval
from klopt.bench.trials import Agreement, Trial, agreement, grouped, leaders, route, trials
from klopt.engine.format import VERDICT_STYLES, console, lines, table
from klopt.engine.words import counted
from klopt.model.backend import Stop
from klopt.proof.certificate import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "TableSource",
    "as_text",
    "class_table",
    "gap_table",
    "print_comparison",
    "score_table",
]

GAP_HEAD = "relative\ngap"
SCORE_LEGEND = (
    ("gap 1e-06", "share of its problems with a proven relative gap of at most 1e-06"),
    ("confirmed", "claims (optimal, infeasible, unbounded) that klopt proves, of all it made"),
    (
        "x fastest",
        "its time over that of the fastest certified solver: geometric mean over the problems that "
        "several took, failures counted with the time limit",
    ),
)
"""What the columns of the scores mean."""
GAP_LEGEND = (
    (
        "gap 1e-06",
        "seconds until klopt has proven a relative gap of at most 1e-06: shifted geometric "
        "mean over the problems of the class, or on how many of them it was proven",
    ),
    ("*", "the fastest, and who ties with it"),
)
"""What the columns of the times to a proven gap mean."""
MAX_LEADERS = 3
"""Names of tied solvers that a row of classes shows."""
VERDICTS = list(Verdict)
"""From the most to the least conclusive."""


class TableSource(Protocol):
    """What a table is made of: the runs, and what they were limited to."""

    @property
    def runs(self) -> Sequence[Run]:
        """The runs, in any order."""

    @property
    def limits(self) -> str:
        """What every run was limited to, in words."""

    @property
    def refusals(self) -> Sequence[str]:
        """Which backends took no part, and why."""


def as_text(comparison: TableSource) -> str:
    """Return the table as plain text of 80 columns."""
    out = console()
    with out.capture() as text:
        print_comparison(comparison, out)
    return text.get()


def print_comparison(comparison: TableSource, out: Console) -> None:
    """Print one block for each problem, then what all of them say of the backends."""
    # Names and messages come from files and libraries of others.
    runs = tuple(map(_printable, comparison.runs))
    first_ones = leaders(runs)
    proofs = agreement(runs)
    found = grouped(trials(runs), lambda trial: trial.first.problem)
    for problem, own in found.items():
        first = own[0].first
        out.print(f"{problem}  {first.family}, data {first.data[:8]}", style="bold")
        out.print(_rows(own))
        remarks = _remarks(own, proofs[problem], first_ones.get(problem, ()))
        out.print(lines(remarks) + "\n")
    if len(found) > 1:
        out.print(score_table(runs))
        out.print(lines(SCORE_LEGEND) + "\n")
    if len({run.family for run in runs}) > 1:
        out.print(class_table(runs))
        out.print()
    # With one tolerance the times to coarser gaps are only upper bounds.
    if len({run.tol for run in runs}) > 1:
        out.print(gap_table(runs))
        out.print(lines(GAP_LEGEND) + "\n")
    out.print(printable(lines(_closing(comparison, runs))))


def _printable(run: Run) -> Run:
    texts = {name: printable(value) for name, value in vars(run).items() if type(value) is str}
    return replace(run, **texts)  # type: ignore[arg-type]


def _rows(own: Sequence[Trial]) -> Table:
    several_tols = len({trial.first.tol for trial in own}) > 1
    route_heads = ["backend", "formulation", "tol"] if several_tols else ["backend", "formulation"]
    heads = [*route_heads, "solver status", "verdict", "value", GAP_HEAD, "seconds"]
    repeated = any(len(trial.runs) > 1 for trial in own)
    if repeated:
        heads.append("±")
    rows = table(heads, right=("value", GAP_HEAD, "seconds", "±", "tol"))
    for trial in sorted(own, key=_order):
        run = trial.middle
        verdict = _verdict(trial)
        cells = [run.backend, run.formulation]
        if several_tols:
            cells.append(f"{run.tol:.0e}")
        cells += [
            run.says.words,
            verdict.name,
            _value(run),
            f"{run.relative_gap:.0e}" if math.isfinite(run.relative_gap) else "-",
            f"{_seconds(trial):.3g}",
        ]
        if repeated:
            cells.append(_spread(trial))
        rows.add_row(*cells, style=VERDICT_STYLES[verdict].removeprefix("bold "))
    _keep_whole(rows, but=("formulation", "solver status"))
    return rows


def _spread(trial: Trial) -> str:
    """Half the distance from the 10 % to the 90 % quantile of the repeats, over the median."""
    times = [run.seconds for run in trial.runs]
    if len(times) < 2 or any(map(math.isnan, times)):
        return "-"
    low, high = quantile_interval(times)
    return f"{(high - low) / 2 / max(median(times), CLOCK_TICK_S):.0%}"


def _keep_whole(rows: Table, but: Sequence[str] = ()) -> None:
    """Let only the columns of `but` wrap, and only where less space between columns is not enough.

    Names and numbers are copied from a terminal: they must not be broken.
    """
    for column in rows.columns:
        column.no_wrap = column.header not in but
    out = console()
    # Wider than the terminal: columns stand closer before anything wraps.
    if out.measure(rows, options=out.options.update(max_width=10 * out.width)).maximum > out.width:
        rows.padding = (0, 1, 0, 0)


def _value(run: Run) -> str:
    """The proven value of the point; "~" marks one that is only estimated."""
    if not math.isfinite(run.value):
        return "-"
    is_proven = run.value in (run.lower, run.upper)
    return f"{run.value:.8g}" if is_proven else f"~{run.value:.8g}"


def _verdict(trial: Trial) -> Verdict:
    """The weakest verdict of the repeats."""
    return max((run.verdict for run in trial.runs), key=VERDICTS.index)


def _seconds(trial: Trial) -> float:
    """The median time if certified, else that of the middle repeat, or how long klopt waited."""
    seconds = trial.seconds if trial.certified else trial.middle.seconds
    return trial.middle.wall if math.isnan(seconds) else seconds


def _order(trial: Trial) -> tuple[int, float, float]:
    return VERDICTS.index(_verdict(trial)), -trial.first.tol, _seconds(trial)


def _remarks(
    own: Sequence[Trial], proof: Agreement, first_ones: Sequence[Trial]
) -> Iterator[tuple[str, str]]:
    if not proof.holds:
        yield "ERROR", str(proof)
    elif math.isfinite(proof.lower) or math.isfinite(proof.upper):
        interval = f"{proof.lower:.10g} <= optimum <= {proof.upper:.10g}"
        yield "optimum", f"{interval} by all proofs together"
    if first_ones:
        first, *tied = first_ones
        text = f"{route(first.first)}, {_seconds(first):.3g} s, certified"
        if tied:
            text += f"; a tie with {', '.join(route(trial.first) for trial in tied)}"
        yield "fastest", text
    for trial in sorted(own, key=_order):
        yield from _doubts(trial)


def _doubts(trial: Trial) -> Iterator[tuple[str, str]]:
    """What a reader should know of a route that was not certified, or not at first."""
    run = trial.middle
    if run.estimated:
        ends = f"[{run.estimate_lower:.8g}, {run.estimate_upper:.8g}]"
        yield "estimated", f"{route(run)}: optimum near {ends}, by {run.proof}, without proof"
    elif run.says is Stop.OPTIMAL and not trial.certified:
        flaw = "no proven interval"
        if math.isfinite(run.relative_gap):
            flaw = f"proven gap {run.relative_gap:.1e}, tol {run.tol:.0e}"
        yield "not proven", f"{route(run)} reports optimal; {flaw}"
    elif run.status_confirmed is False and math.isfinite(run.first_gap):
        flaw = f"proven gap {run.first_gap:.1e}, tol {run.tol:.0e}"
        yield "at first", f"{route(run)} reported optimal; {flaw}; klopt asked again"
    elif run.says in (Stop.CRASHED, Stop.REJECTED, Stop.TIME_LIMIT) and not trial.certified:
        yield run.says.words, f"{route(run)}: {run.native or run.says.advice}"


def score_table(runs: Sequence[Run]) -> Table:
    """Return one row for each backend: certified rates at `LEVELS`, statuses confirmed, times.

    Where something is only estimated, a column counts on how many problems.
    """
    found = scores(runs)
    has_estimates = any(score.estimated for score in found)
    levels = [f"gap\n{level:.0e}" for level in LEVELS]
    heads = ["backend", "problems", *levels]
    if has_estimates:
        heads.append("only\nestimated")
    heads += ["status\nconfirmed", "fastest", "tied", "x fastest"]
    rows = table(heads, right=heads[1:])
    for score in found:
        rows.add_row(
            score.backend,
            f"{score.taken} of {score.problems}",
            *(f"{rate:.0%}" for rate in score.certified),
            *([str(score.estimated)] if has_estimates else []),
            f"{score.status.confirmed} of {score.status.claimed}" if score.status.claimed else "-",
            str(score.alone),
            str(score.tied),
            "-" if math.isnan(score.ratio) else f"{score.ratio:.2g}",
        )
    _keep_whole(rows)
    return rows


def class_table(runs: Sequence[Run]) -> Table:
    """Return one row for each class of problems: who certifies it, and who is fastest at that."""
    gap = reference_gap(runs)
    heads = ["class", "problems", "certified by", "fastest", "seconds"]
    rows = table(heads, right=("problems", "seconds"))
    for family, own in standings(runs, gap).items():
        complete = [row for row in own if row.reached == row.problems]
        leading = [row for row in own if row.leads]
        names = ", ".join(row.backend for row in leading[:MAX_LEADERS])
        if len(leading) > MAX_LEADERS:
            names += f" +{len(leading) - MAX_LEADERS}"
        rows.add_row(
            family,
            str(own[0].problems),
            f"{len(complete)} of {counted(len(own), 'solver')}",
            names or "nobody",
            f"{leading[0].seconds:.2g}" if leading else "-",
        )
    _keep_whole(rows, but=("fastest",))
    return rows


def gap_table(runs: Sequence[Run]) -> Table:
    """Return the seconds to a proven gap, by class of problems and backend, for each of `LEVELS`."""
    heads = ["class", "backend", *(f"gap\n{level:.0e}" for level in LEVELS)]
    rows = table(heads, right=heads[2:])
    levels = [standings(runs, level) for level in LEVELS]
    for family, ranked in levels[0].items():
        shown = family
        for row in ranked:
            times = [_time_to(found[family], row.backend) for found in levels]
            rows.add_row(shown, row.backend, *times)
            shown = ""
    _keep_whole(rows)
    return rows


def _time_to(ranked: Sequence[Standing], backend: str) -> str:
    """The mean time of a backend, or on how many problems of the class it proves the gap."""
    (row,) = (row for row in ranked if row.backend == backend)
    if row.reached < row.problems:
        return f"{row.reached} of {row.problems}"
    return f"{row.seconds:.2g}{' *' if row.leads else '  '}"


def _closing(comparison: TableSource, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    yield "verdict", verdict_sentence(runs)
    for (family, name), found in growth(runs).items():
        if found is not None:
            yield "growth", f"{family} by {name}: time grows like {found}"
    tolerances = sorted({run.tol for run in runs}, reverse=True)
    tols = ", ".join(f"{tol:.0e}" for tol in tolerances)
    yield "limits", f"{comparison.limits}; tol {tols} is the relative gap that klopt must prove"
    if busy := machine_sentence(runs):
        yield "computer", busy
    for refusal in comparison.refusals:
        yield "left out", refusal
