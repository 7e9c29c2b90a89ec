"""A comparison as a table for a terminal: what each backend says beside what klopt proves.

There is one block for each problem and one row for each route, its repeats put together; proven
answers come first, then fast ones. Only a certified run is called the fastest, and intervals that
do not overlap are reported as an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from klopt.bench.record import Run, printable
from klopt.bench.scores import LEVELS, growth, scores
from klopt.bench.summary import verdict_sentence
from klopt.bench.trials import Agreement, Trial, agreement, fastest, grouped, route, trials
from klopt.engine.format import VERDICT_STYLES, console, lines, table
from klopt.model.backend import Stop
from klopt.proof.certificate import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["TableSource", "as_text", "print_comparison", "score_table"]

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
    winners = fastest(runs)
    proofs = agreement(runs)
    found = grouped(trials(runs), lambda trial: trial.first.problem)
    for problem, own in found.items():
        first = own[0].first
        out.print(f"{problem}  {first.family}, data {first.data[:8]}", style="bold")
        out.print(_rows(own))
        out.print(lines(_remarks(own, proofs[problem], winners)) + "\n")
    if len(found) > 1:
        out.print(score_table(runs))
        out.print()
    out.print(printable(lines(_closing(comparison, runs))))


def _printable(run: Run) -> Run:
    texts = {name: printable(value) for name, value in vars(run).items() if type(value) is str}
    return replace(run, **texts)  # type: ignore[arg-type]


def _rows(own: Sequence[Trial]) -> Table:
    several_tols = len({trial.first.tol for trial in own}) > 1
    route_heads = ["backend", "formulation", "tol"] if several_tols else ["backend", "formulation"]
    heads = [*route_heads, "it says", "klopt proves", "value", "width", "seconds"]
    rows = table(heads, right=("value", "width", "seconds", "tol"))
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
            f"{run.relative_width:.0e}" if math.isfinite(run.relative_width) else "-",
            f"{_seconds(trial):.3g}",
        ]
        rows.add_row(*cells, style=VERDICT_STYLES[verdict].removeprefix("bold "))
    _keep_whole(rows, but=("formulation", "it says"))
    return rows


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
    own: Sequence[Trial], proof: Agreement, winners: Mapping[str, Run]
) -> Iterator[tuple[str, str]]:
    if not proof.holds:
        yield "ERROR", str(proof)
    elif math.isfinite(proof.lower) or math.isfinite(proof.upper):
        interval = f"{proof.lower:.10g} <= optimum <= {proof.upper:.10g}"
        yield "optimum", f"{interval} by all proofs together"
    winner = winners.get(proof.problem)
    for trial in own:
        if winner in trial.runs:
            yield "fastest", f"{route(trial.first)}, {_seconds(trial):.3g} s, certified"
    for trial in sorted(own, key=_order):
        yield from _doubts(trial)


def _doubts(trial: Trial) -> Iterator[tuple[str, str]]:
    """What a reader should know of a route that was not certified, or not at first."""
    run = trial.middle
    if run.estimated:
        ends = f"[{run.estimate_lower:.8g}, {run.estimate_upper:.8g}]"
        yield "estimated", f"{route(run)}: optimum near {ends}, by {run.proof}, without proof"
    elif run.says is Stop.OPTIMAL and not trial.certified:
        times = run.relative_width / run.tol
        flaw = "no interval"
        if math.isfinite(times):
            flaw = f"its interval is {times:.2g} times as wide as asked for"
        yield "not proven", f"{route(run)} says optimal; {flaw}"
    elif run.honest is False and math.isfinite(run.first_width):
        times = run.first_width / run.tol
        interval = f"an interval {times:.2g} times as wide as asked for"
        yield "at first", f"{route(run)} said optimal with {interval}; klopt asked again"
    elif run.says in (Stop.CRASHED, Stop.REJECTED, Stop.TIME_LIMIT) and not trial.certified:
        yield run.says.words, f"{route(run)}: {run.native or run.says.advice}"


def score_table(runs: Sequence[Run]) -> Table:
    """Return one row for each backend: certified rates at `LEVELS`, confirmed claims, mean time.

    Where something is only estimated, a column counts on how many problems.
    """
    found = scores(runs)
    has_estimates = any(score.estimated for score in found)
    levels = [f"{level:.0e}" for level in LEVELS]
    heads = ["backend", "problems", *levels]
    if has_estimates:
        heads.append("estimated")
    heads += ["confirmed", "fastest", "mean s"]
    rows = table(heads, right=heads[1:])
    for score in found:
        rows.add_row(
            score.backend,
            f"{score.taken} of {score.problems}",
            *(f"{rate:.0%}" for rate in score.certified),
            *([str(score.estimated)] if has_estimates else []),
            f"{score.agreed} of {score.claimed}" if score.claimed else "-",
            str(score.wins),
            f"{score.seconds:.3g}",
        )
    _keep_whole(rows)
    return rows


def _closing(comparison: TableSource, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    yield "verdict", verdict_sentence(runs)
    for (family, name), found in growth(runs).items():
        if found is not None:
            yield "growth", f"{family} by {name}: time grows like {found}"
    tolerances = sorted({run.tol for run in runs}, reverse=True)
    tols = ", ".join(f"{tol:.0e}" for tol in tolerances)
    yield "limits", f"{comparison.limits}; tol {tols} is the relative width of klopt's own interval"
    for refusal in comparison.refusals:
        yield "left out", refusal
