"""Writes docs/honesty.md from docs/honesty.json, which `python benchmarks/honesty.py` makes.

python docs/write_honesty.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
NARROW = 1e-4
"""Relative width of the proven interval up to which a value is measured against it."""
FAR = 1e-4
"""A relative error that is listed by itself."""

ASKED = {
    "CLARABEL": "1e-8, gap and residuals",
    "SCS": "1e-5, absolute and relative (set by CVXPY)",
    "ECOS": "1e-8, gap and residuals",
    "SDPA": "1e-7, gap and residuals; values beyond 1e5 count as a sign of infeasibility",
    "GLPK": "1e-7, simplex tolerances",
    "CVXOPT": "1e-7 absolute, 1e-6 relative gap; 1e-7 residuals",
    "SCIPY": "1e-7, HiGHS's tolerances",
    "HIGHS": "1e-7, primal and dual",
    "QOCO": "1e-7, absolute and relative",
    "OSQP": "1e-5, absolute and relative, polished (set by CVXPY)",
    "PIQP": "1e-8 absolute, 1e-9 relative",
    "PROXQP": "1e-8, absolute residuals (set by CVXPY)",
    "DAQP": "its own; a proximal term of 1e-5 where P is singular (set by CVXPY)",
}
"""What each solver is asked for where nobody says anything, by its package or by CVXPY."""
NO_ANSWER = ("solver_error", "raises", "no answer", "the process", "user_limit")

HEAD = """# What solvers say, and what is proven

Written by `python docs/write_honesty.py` from `docs/honesty.json`, which `python benchmarks/honesty.py --data
FOLDER` makes.

{count} solvers that CVXPY {cvxpy} finds were given {library} programs of CVXPY's own test library and {public}
public programs (Netlib, Maros-Meszaros, SDPLIB, DIMACS; of at most {max_entries} entries in A), each by
`problem.solve(solver=NAME)` with nothing else set, on one thread, with at most {seconds:g} s for a run. Then
`klopt.judge(problem)` ({klopt}) said what is proven of the answer at a tolerance of {tol:g}. The optimum itself is
enclosed by the best of all these proofs and one solve by klopt, so that a value is measured against an interval
that holds in exact arithmetic, never against another solver.

How to read it:

- **Statuses are quoted as CVXPY has them.** `optimal_inaccurate` is no claim of optimality: the solver says itself
  that it did not reach its tolerance, and it is counted apart.
- **A solver is asked for its own default tolerance**, which is not the {tol:g} of the proof. Beside one that is
  asked for 1e-5, an error of 1e-6 is what it promises. The tables say how far off an answer is; whether that is
  far is for the reader to say.
- **Not proven is not wrong.** It may be the answer that falls short, or klopt. The columns of errors are
  independent of klopt's verdict of the answer.
- Some solvers are made for one kind of program: DAQP, OSQP, PIQP and ProxQP for quadratic ones, of which the linear
  ones are a hard case for some methods. They are counted all the same, since CVXPY offers them for those.
- Statuses `infeasible` and `unbounded` have tolerances of their own, 1e-4 for OSQP and ProxQP.
- Public programs are stated by their cone form, without the constant of the file.
- Programs that a solver has no cones for are not given to it. Interfaces count too: what is measured is the solver
  as CVXPY calls it.
"""


@dataclass(frozen=True)
class Truth:
    """What all proofs together say of a program."""

    verdict: str
    lower: float
    upper: float

    @property
    def is_narrow(self) -> bool:
        width = self.upper - self.lower
        return bool(np.isfinite(width) and width <= NARROW * (1 + abs(self.upper)))

    def error(self, value: float | None) -> float | None:
        """How far a value is from the interval, relative; None where that is not known."""
        if value is None or not self.is_narrow:
            return None
        miss = max(self.lower - value, value - self.upper, 0.0)
        return float(miss / (1 + abs(self.upper)))

    def words(self) -> str:
        if self.verdict in ("INFEASIBLE", "UNBOUNDED"):
            return self.verdict.lower()
        if self.is_narrow:
            return f"optimum {(self.lower + self.upper) / 2:.6g}"
        return f"{self.lower:.4g} <= optimum <= {self.upper:.4g}"


def with_numbers(item: dict[str, Any]) -> dict[str, Any]:
    """The same with the numbers that JSON has as words."""
    return {
        key: float(value) if value in ("inf", "-inf", "nan") else value
        for key, value in item.items()
    }


def truths(content: dict[str, Any]) -> dict[str, Truth]:
    """Return the best of all proofs by program."""
    found = {}
    for name, reference in content["references"].items():
        proofs = [run for run in content["runs"] if run["program"] == name and "lower" in run]
        proofs.append(reference)
        decided = {proof.get("verdict") for proof in proofs} & {"INFEASIBLE", "UNBOUNDED"}
        if decided:
            assert len(decided) == 1, name
            found[name] = Truth(decided.pop(), np.nan, np.nan)
            continue
        lower = max(proof.get("lower", -np.inf) for proof in proofs)
        upper = min(proof.get("upper", np.inf) for proof in proofs)
        # Compilations for several solvers differ in their last digits.
        assert not lower > upper + 1e-9 * (1 + abs(upper)), name
        found[name] = Truth("OPTIMAL", min(lower, upper), max(lower, upper))
    return found


def contradiction(run: dict[str, Any], truth: Truth) -> bool:
    """Whether a status is the contrary of what is proven."""
    status = run["status"]
    if status in ("optimal", "optimal_inaccurate"):
        return truth.verdict in ("INFEASIBLE", "UNBOUNDED")
    if status in ("infeasible", "infeasible_inaccurate"):
        return truth.verdict == "UNBOUNDED" or truth.is_narrow
    if status in ("unbounded", "unbounded_inaccurate"):
        return truth.verdict == "INFEASIBLE" or truth.is_narrow
    return False


def table(header: str, rows: Iterable[Iterable[object]]) -> Iterator[str]:
    columns = header.split("|")
    yield "| " + " | ".join(column.strip() for column in columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def size(value: float | None) -> str:
    """An error in one digit."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:.0e}" if value >= 1e-12 else "< 1e-12"


def optimal_row(solver: str, runs: list[dict[str, Any]], known: dict[str, Truth]) -> list[object]:
    """What became of the answers that a solver calls optimal."""
    mine = [run for run in runs if run["solver"] == solver]
    said = [run for run in mine if run["status"] == "optimal"]
    errors = [known[run["program"]].error(run.get("value")) for run in said]
    measured = np.array([error for error in errors if error is not None])
    violations = [run["infeasibility"] for run in said if run.get("infeasibility") is not None]
    row: list[object] = [solver, len(mine), len(said)]
    row.append(sum(run.get("verdict") == "OPTIMAL" for run in said))
    for limit in (1e-6, 1e-4):
        row.append(int(np.count_nonzero(measured <= limit)))
    row.append(int(np.count_nonzero(measured > FAR)))
    row.append(sum(contradiction(run, known[run["program"]]) for run in said))
    row.append(size(float(np.median(measured))) if measured.size else "")
    row.append(size(float(measured.max())) if measured.size else "")
    row.append(size(float(max(violations))) if violations else "")
    return row


def other_row(solver: str, runs: list[dict[str, Any]], known: dict[str, Truth]) -> list[object]:
    """The other statuses of a solver, and how many of them are confirmed or refuted."""
    mine = [run for run in runs if run["solver"] == solver]
    row: list[object] = [solver]
    for words in (("optimal_inaccurate",), ("infeasible",), ("unbounded",)):
        said = [run for run in mine if run["status"].startswith(words)]
        if not said:
            row.append("")
            continue
        wrong = sum(contradiction(run, known[run["program"]]) for run in said)
        verdicts = ("OPTIMAL",) if words == ("optimal_inaccurate",) else ("INFEASIBLE", "UNBOUNDED")
        proven = sum(run.get("verdict") in verdicts for run in said)
        row.append(f"{len(said)} ({proven} proven from its answer, {wrong} refuted)")
    failures = Counter(
        run["status"] for run in mine if run["status"].startswith(NO_ANSWER)
    ).most_common()
    row.append(", ".join(f"{count} `{status}`" for status, count in failures))
    return row


def page(content: dict[str, Any]) -> str:
    """Return the page."""
    runs = content["runs"]
    known = truths(content)
    solvers = list(content["versions"])
    sets = Counter(content["sets"].values())
    lines = [
        HEAD.format(
            count=len(solvers),
            library=sets["library"],
            public=sets["public"],
            **{key: content[key] for key in ("cvxpy", "klopt", "tol", "seconds", "max_entries")},
        ),
        "## The solvers and what they are asked for",
        "",
        *table(
            "solver | version | tolerance by default",
            ((name, content["versions"][name], ASKED[name]) for name in solvers),
        ),
        "## Answers called `optimal`",
        "",
        "*proven*: klopt proves from that answer alone that it is optimal to "
        f"{content['tol']:g}. *within*: the value that CVXPY reports lies so near the proven "
        "interval of the optimum, relative to 1 + its size. *no optimum*: the program is proven to "
        "be infeasible or unbounded. *violation*: the largest violation of the constraints, "
        "relative to the data.",
        "",
        *table(
            "solver | programs | `optimal` | proven | within 1e-6 | within 1e-4 | farther | no optimum | "
            "median error | largest error | largest violation",
            (optimal_row(solver, runs, known) for solver in solvers),
        ),
        "## Other statuses",
        "",
        "CVXPY keeps the certificates of some solvers only: where it keeps none, nothing is "
        "proven from the answer, right as the status may be.",
        "",
        *table(
            "solver | `optimal_inaccurate` | `infeasible` | `unbounded` | no answer",
            (other_row(solver, runs, known) for solver in solvers),
        ),
        "## Statuses that a proof refutes",
        "",
    ]
    refuted = [run for run in runs if contradiction(run, known[run["program"]])]
    rows = [
        (run["solver"], run["program"], f"`{run['status']}`", known[run["program"]].words())
        for run in sorted(refuted, key=lambda run: (run["solver"], run["program"]))
    ]
    lines += [*table("solver | program | says | proven", rows)] if rows else ["None.", ""]
    lines += [f"## Answers called `optimal` whose value is off by more than {FAR:g}", ""]
    far = []
    for run in runs:
        error = known[run["program"]].error(run.get("value"))
        if run["status"] == "optimal" and error is not None and error > FAR:
            far.append((error, run))
    rows = [
        (
            run["solver"],
            run["program"],
            f"{run['value']:.6g}",
            known[run["program"]].words(),
            size(error),
            size(run.get("infeasibility")),
        )
        for error, run in sorted(far, key=lambda pair: (pair[1]["solver"], -pair[0]))
    ]
    header = "solver | program | value | proven | relative error | violation"
    lines += [*table(header, rows)] if rows else ["None.", ""]
    unknown = [
        name for name, truth in known.items() if truth.verdict == "OPTIMAL" and not truth.is_narrow
    ]
    if unknown:
        lines += [
            "## Programs whose optimum is not enclosed",
            "",
            "Nothing is measured against these: "
            + ", ".join(f"`{name}`" for name in unknown)
            + ".",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    text = (HERE / "honesty.json").read_text(encoding="utf-8")
    content = json.loads(text, object_hook=with_numbers)
    (HERE / "honesty.md").write_text(page(content), encoding="utf-8")
