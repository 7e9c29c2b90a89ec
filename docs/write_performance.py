"""Writes docs/performance.md, its bars and docs/goals.md from what the scripts in `benchmarks/` printed.

    python benchmarks/ordered.py > ordered.out
    python docs/write_performance.py ordered=ordered.out       keeps it in docs/performance/, with the machine's stamp
    python docs/write_performance.py                           writes the pages anew

Ratios of times of one run are what counts; the stamp names the processor and the versions, never
the host.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from klopt.bench.environment import environment

HERE = Path(__file__).parent
KEPT = HERE / "performance"
NUMBER = r"(?:[-+.\de]+|inf|nan)"
ROW = re.compile(
    rf"(?P<passed>PASS|FAIL)  (?P<text>.*?) *(?<= )(?P<figure>{NUMBER}) +(?P<sign>[<>]=) (?P<goal>{NUMBER})"
    r"(?:   (?P<remarks>.*))?"
)
BASELINE = 30
"""Letters of the column of baselines; a long instance pushes it to the right."""
BARS = (
    ("mkl", "n = 400, m = 5", "CVXPY SOCP CLARABEL", "Multiple kernel learning, n = 400", "CVXPY + Clarabel"),
    ("dank", "n = 50, tau = 0.01", "CVXPY SDP SCS", "Data-adaptive kernel, n = 50", "CVXPY + SCS"),
    ("logdet_pairs", "4,950 pairs to 1e-2", "n x n projections", "LogDet kernel, 4950 pairs", "Bregman projections"),
    ("similarity", "ESKL squared, n=200", "CVXPY SDP SCS", "Kernel from similarities, n = 200", "CVXPY + SCS"),
    ("ordered", "KA1 r = 200", "CVXPY QCQP, the better", "Ordered spectral kernel, r = 200", "CVXPY + ECOS, Clarabel"),
)  # fmt: skip
"""The rows behind the bars: script, instance, baseline; what the bar is called and what it is measured against."""
SVM = ("overhead", "n = 2000, C = 1, declaring", "SVC on K")
DECLARED = ("overhead", "n = 2000, C = 1, declared", "SVC on K")
POINTS = ("overhead", "n = 2000, C = 1, points", "SVC on points")
JUDGING = ("judging", "SVC C=1, n = 2000", "one fit and one proof of K")
"""The rows about support vector machines, which the head of the page quotes."""
HEAD = """# Performance

How many times as long general solvers and published methods take as klopt with its certificate. Baseline and klopt
are measured in the same run, on one thread; longer bars are better.

![Speed-ups of klopt with its certificate over five baselines, on a logarithmic scale](performance/bars.svg)

| problem | baseline | speed-up |
|---|---|---|
{bars}
What a certificate costs where there is no structure to gain from: on 2000 points a certified support vector machine
takes {points} times as long as scikit-learn's uncertified `SVC` from points, {declared} times on a kernel matrix that
is proven positive semidefinite once and reused (`klopt.Gram`), and {svm} times on a kernel matrix that has to be proven
first. Judging a fitted `SVC` takes {judging} times the fit and one such proof.

In the tables below, *× 182* is a speed-up over the baseline, certification included (higher is better); a plain
number is the ratio or quantity that the row names (lower is better). Data, settings and baselines are in the scripts,
absolute times in the remarks. The page is written by `docs/write_performance.py` from the output of the scripts;
[the goals of the project](goals.md) are checked against the same figures.
"""
GOALS = """# Goals of the project

Each figure of [the performance page](performance.md) has a goal. {summary}

| script | instance | against, or what is measured | figure | goal | |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One measurement and its goal."""

    passed: bool
    instance: str
    baseline: str
    figure: float
    sign: str
    goal: float
    remarks: str

    @property
    def number(self) -> str:
        """Return the figure as the pages print it."""
        return (
            f"{self.figure:.3g}"
            if abs(self.figure) < 1000
            else f"{self.figure:,.0f}".replace(",", " ")
        )

    @property
    def target(self) -> str:
        """Return the goal in words."""
        return f"{'at least' if self.sign == '>=' else 'at most'} {self.goal:g}"

    def cells(self) -> list[str]:
        """Return the row of the page's table."""
        figure = f"× {self.number}" if self.sign == ">=" else self.number
        return [self.instance, self.baseline, f"**{figure}**", self.remarks]


def rows(text: str) -> Iterator[Row | str]:
    """Yield the rows of a run's output, and the sentences between them."""
    for line in (text.rpartition("gates hold")[0] or text).splitlines():
        if found := ROW.fullmatch(line):
            end = min(
                found.end("figure") - 10, found.start("sign") - 1
            )  # a figure has nine letters and a space
            instance = line[6 : end - BASELINE].strip()
            baseline = line[end - BASELINE : end].strip()
            passed = found["passed"] == "PASS"
            remarks = found["remarks"] or ""
            yield Row(
                passed,
                instance,
                baseline,
                float(found["figure"]),
                found["sign"],
                float(found["goal"]),
                remarks,
            )
        elif line.startswith("      ") and line.split()[:2] != ["instance", "baseline"]:
            yield line.strip()


def title(name: str) -> str:
    """Return the first line of what a script says of itself."""
    docstring = ast.get_docstring(
        ast.parse((HERE.parent / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))
    )
    return (docstring or name).splitlines()[0].rstrip(".")


def stamp() -> str:
    """Return the line that says when and on what a run was made."""
    here = environment()
    day = datetime.now(UTC).date().isoformat()
    return f"# {day}; {here.cpu}, {here.cores} cores, {here.platform}; klopt {here.klopt}, {here.python}, {here.blas}"


def keep(name: str, output: str) -> None:
    """Keep what a script printed, without warnings of libraries, behind the stamp."""
    lines = [
        line for line in output.splitlines() if re.match(r"PASS|FAIL|      |\d+ of \d+ gates", line)
    ]
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{name}.txt").write_text("\n".join([stamp(), *lines, ""]), encoding="utf-8")


def section(name: str, found: list[Row | str], said: str) -> str:
    """Return what the page says of one script."""
    measured = [row for row in found if isinstance(row, Row)]
    text = f"\n## {title(name)}\n\n`python benchmarks/{name}.py`. {said}.\n\n"
    text += "| instance | against, or what is measured | figure | remarks |\n|---|---|---|---|\n"
    text += "".join(
        f"| {' | '.join(cell.replace('|', '∣') for cell in row.cells())} |\n" for row in measured
    )
    sentences = [row for row in found if isinstance(row, str)]
    return text + ("\n" + "".join(f"- {sentence}\n" for sentence in sentences) if sentences else "")


def kept() -> dict[str, tuple[str, list[Row | str]]]:
    """Return stamp and rows of every script whose output is kept."""
    found = {}
    for file in sorted(KEPT.glob("*.txt")):
        said, _, output = file.read_text(encoding="utf-8").partition("\n")
        found[file.stem] = (said.removeprefix("# "), list(rows(output)))
    return found


def figure_of(name: str, instance: str, baseline: str) -> Row:
    """Return the row of a script with that instance and baseline."""
    for row in kept()[name][1]:
        if isinstance(row, Row) and (row.instance, row.baseline) == (instance, baseline):
            return row
    raise LookupError(f"docs/performance/{name}.txt has no row {instance!r} against {baseline!r}")


def bars() -> str:
    """Return the picture of the five bars, on a logarithmic scale."""
    left, right, top, step = 250, 560, 24, 40
    found = [(figure_of(*key).figure, title, against) for *key, title, against in BARS]
    found.sort(reverse=True)
    decades = math.ceil(math.log10(found[0][0]))
    unit = (right - left) / decades
    height = top + step * len(found) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Speed-ups of klopt with its certificate</title>",
        f'<rect width="660" height="{height}" fill="#fff"/>',
    ]
    for decade in range(decades + 1):
        x = left + decade * unit
        lines.append(f'<path d="M{x:.0f} {top - 8}V{height - 28}" stroke="#ddd"/>')
        lines.append(
            f'<text x="{x:.0f}" y="{height - 10}" text-anchor="middle" fill="#555">× {10**decade}</text>'
        )
    for place, (figure, title, against) in enumerate(found):
        y = top + place * step
        width = math.log10(figure) * unit
        lines.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{title}</text>')
        lines.append(
            f'<text x="{left - 8}" y="{y + 26}" text-anchor="end" font-size="11" fill="#555">against {against}</text>'
        )
        lines.append(f'<rect x="{left}" y="{y}" width="{width:.0f}" height="26" fill="#0060a8"/>')
        lines.append(
            f'<text x="{left + width + 6:.0f}" y="{y + 18}" font-weight="600">× {figure:.0f}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def page() -> str:
    """Return the page from everything that is kept."""
    table = "".join(
        f"| {title} | {against} | × {figure_of(*key).number} |\n" for *key, title, against in BARS
    )
    head = HEAD.format(
        bars=table,
        svm=figure_of(*SVM).number,
        points=figure_of(*POINTS).number,
        declared=figure_of(*DECLARED).number,
        judging=figure_of(*JUDGING).number,
    )
    return head + "".join(section(name, found, said) for name, (said, found) in kept().items())


def goals() -> str:
    """Return the page of the goals, missed ones first."""
    measured = [
        (name, row) for name, (_, found) in kept().items() for row in found if isinstance(row, Row)
    ]
    missed = [row for _, row in measured if not row.passed]
    summary = f"{len(measured) - len(missed)} of {len(measured)} are met; the others come first."
    text = GOALS.format(summary=summary)
    for name, row in sorted(measured, key=lambda pair: pair[1].passed):
        cells = [f"`{name}`", row.instance, row.baseline, row.number, row.target]
        verdict = "" if row.passed else "**missed**"
        text += f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} | {verdict} |\n"
    return text


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        script, _, path = argument.partition("=")
        keep(script, Path(path).read_text(encoding="utf-8"))
    (HERE / "performance.md").write_text(page(), encoding="utf-8")
    (HERE / "goals.md").write_text(goals(), encoding="utf-8")
    (KEPT / "bars.svg").write_text(bars(), encoding="utf-8")
