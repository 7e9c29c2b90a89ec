"""Tables for papers: who proves the gap on which class of problems, in LaTeX (booktabs) or Markdown.

One row for each class and solver, the best first as `klopt.bench.gap_times.standings` ranks them:
problems on which the gap is proven, the shifted geometric mean of the times to it with the interval
of the repeats, and how many solver statuses klopt confirms. Solvers that were not run on all problems
of a class have no mean: means over different problems cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from klopt.bench.gap_times import Standing, reference_gap, standings
from klopt.bench.record import Run
from klopt.bench.status_scores import StatusScore, status_scores
from klopt.bench.trials import grouped

__all__ = ["to_latex", "to_markdown"]

COLUMNS = ("class", "solver", "proven", "time [s]", "status confirmed")
LATEX_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class _Row:
    """One line of the table, as texts."""

    family: str
    backend: str
    proven: str
    seconds: str
    confirmed: str
    leads: bool


def to_latex(runs: Sequence[Run]) -> str:
    """Return a table environment for LaTeX; it needs the package booktabs.

    The solver that leads a class, or those that tie, are in bold.

    >>> print(to_latex([]).splitlines()[0])
    % needs \\usepackage{booktabs}
    """
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\begin{tabular}{llrrr}",
        r"\toprule",
        " & ".join(COLUMNS) + r" \\",
    ]
    for family, rows in grouped(_rows(runs), lambda row: row.family).items():
        lines.append(r"\midrule")
        for number, row in enumerate(rows):
            name = row.backend.translate(LATEX_SPECIAL)
            cells = [
                family.translate(LATEX_SPECIAL) if number == 0 else "",
                rf"\textbf{{{name}}}" if row.leads else name,
                row.proven,
                row.seconds,
                row.confirmed,
            ]
            lines.append(" & ".join(cells) + r" \\")
    caption = _caption(runs).translate(LATEX_SPECIAL)
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def to_markdown(runs: Sequence[Run]) -> str:
    """Return a Markdown table with its caption.

    >>> to_markdown([]).splitlines()[0]
    '| class | solver | proven | time [s] | status confirmed |'
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|--:|--:|--:|"]
    for row in _rows(runs):
        name = row.backend.replace("|", r"\|")
        family = row.family.replace("|", r"\|")
        shown = f"**{name}**" if row.leads else name
        lines.append(f"| {family} | {shown} | {row.proven} | {row.seconds} | {row.confirmed} |")
    return "\n".join([*lines, "", _caption(runs), ""])


def _rows(runs: Sequence[Run]) -> list[_Row]:
    """The rows of all classes, in the order of the standings."""
    found = []
    by_family = grouped(runs, lambda run: run.family)
    for family, ranked in standings(runs).items():
        statuses = status_scores(by_family[family])
        found += [_row(family, standing, statuses[standing.backend]) for standing in ranked]
    return found


def _row(family: str, standing: Standing, status: StatusScore) -> _Row:
    confirmed = f"{status.confirmed} of {status.claimed}" if status.claimed else "no claim"
    return _Row(
        family=family,
        backend=standing.backend,
        proven=f"{standing.reached} of {standing.problems}",
        seconds=_seconds(standing),
        confirmed=confirmed,
        leads=standing.leads,
    )


def _seconds(standing: Standing) -> str:
    """The mean, and the interval of the repeats where there is one."""
    if math.isnan(standing.seconds):
        return "--"
    if standing.low == standing.high:
        return f"{standing.seconds:.2g}"
    return f"{standing.seconds:.2g} [{standing.low:.2g}, {standing.high:.2g}]"


def _caption(runs: Sequence[Run]) -> str:
    """What the numbers mean, and on how many problems."""
    problems = len({run.problem for run in runs})
    limit = max((run.time_limit for run in runs), default=math.nan)
    return (
        f"Relative gap of {reference_gap(runs):.0e} proven in exact arithmetic, {problems} problems, time limit "
        f"{limit:g} s. Time: shifted geometric mean over the class, unproven problems charged the limit, with the "
        "interval of the repeats; less is better. Bold: first, or tied with the first. Status confirmed: claims of "
        "optimality, infeasibility or unboundedness that were proven."
    )
