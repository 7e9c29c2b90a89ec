"""Solves public instances and compares what is proven with what is published.

The instances are of Netlib, Maros-Meszaros, SDPLIB and DIMACS.

    python benchmarks/public_instances.py FOLDER                 every instance, klopt's own choice of routes
    python benchmarks/public_instances.py FOLDER --backends      every capable backend pinned, as well

FOLDER holds `optima.csv` (file, published_optimum, ..) and the files it names. The page goes to
standard output, news of the run to standard error. The exit code is 0 unless something certified
contradicts a published optimum.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import klopt
from klopt.engine.registry import backend_named
from klopt.engine.result import Attempt, Result
from klopt.errors import InvalidProblem
from klopt.model.backend import Stop
from klopt.model.problem import Problem
from klopt.problems import LP, QCQP, SDP
from klopt.proof.certificate import Verdict

TOL = 1e-6
READERS: dict[str, Any] = {"lp": LP, "qp": QCQP, "sdp": SDP, "socp": QCQP}
# SDPLIB's primal is the matrix inequality: where its dual is infeasible and it is not, it is
# unbounded.
OUTCOMES = {
    "infeasible": Verdict.INFEASIBLE,
    "primal infeasible": Verdict.INFEASIBLE,
    "dual infeasible": Verdict.UNBOUNDED,
}
PROOFS = ("bracket", "farkas", "ray")


@dataclass(frozen=True)
class Reference:
    """What is published: an optimum, known to within `known` (absolute), or that there is none."""

    outcome: Verdict
    value: float = np.nan
    known: float = 0.0
    note: str = ""
    as_stored: Verdict | None = None
    """Another outcome that is true, too: that of the float64 numbers, where rounding decides it."""

    def difference(self, value: float) -> float:
        """Return |value - reference| over max(1, |reference|)."""
        return abs(value - self.value) / max(1.0, abs(self.value))

    def contradicts(self, verdict: Verdict, value: float) -> bool:
        """Whether a conclusive verdict with this value cannot be right."""
        if verdict is self.as_stored:
            return False
        if verdict is not Verdict.OPTIMAL or self.outcome is not Verdict.OPTIMAL:
            return verdict is not self.outcome
        return not abs(value - self.value) <= self.known + TOL * max(1.0, abs(self.value))


# Where the published digits are wrong or too few to tell 1e-6: the value to compare with and how
# well it is known.
CORRECTIONS = {
    "e226": (
        -11.638929066,
        0.0,
        "published as -18.751929066, without the constant 7.113 of its objective row",
    ),
    "HS268": (0.0, 0.0, "exactly 0, attained at (1, 2, -1, 3, -4); published as 5.7e-07"),
    "gpp100": (-44.9435, 1e-4, "published to 6 digits"),
    "hinf1": (
        0.0,
        0.0,
        "published as 2.0326; the infimum of the data as stored is 0, approached with x of 1e30 "
        "(exactly feasible points prove it); 2.0326 is what floats see",
    ),
    "hinf2": (10.967055621, 0.0, "published as 10.967; computed with 120 digits"),
    "hinf3": (56.940778, 1e-6, "published as 56.94; computed with 120 digits"),
    "hinf4": (
        271.4977259,
        1e-6,
        "published as 274.764; the infimum of the data as stored is 271.4977259, approached with x "
        "of 1e36; 274.76382 within norm(x) <= 1e12",
    ),
    "hinf8": (
        58.44917374,
        1e-6,
        "published as 116.15; the infimum of the data as stored is 58.44917374, approached with x "
        "of 1e34",
    ),
    "nql30": (-0.946, 5e-4, "published to 4 digits"),
}

# Where the decimals of a file and the float64 numbers next to them have different outcomes.
AS_STORED = {"sierra": Verdict.INFEASIBLE}

# Why an instance resists, where that is known.
HARD = {
    "gpp100": "The block of order 100 is dense: seconds for a step of Clarabel.",
    "truss8": "496 variables in 33 dense blocks: two seconds for a step of Clarabel. With "
    "`time_limit=200` and Clarabel alone it is OPTIMAL, [-133.114589377, -133.114588035].",
    "hinf4": "The infimum is not attained, and all multipliers lie at the edge of their cones, in a face that short "
    "numbers do not span: no lower end is found. Declare how large x can be (`within=`).",
    "hinf8": "As hinf4.",
    "nql30": "One of the 3680 equations follows from the others but for the rounding of 1/30 and 1/60 to float64 "
    "(smallest singular value 1e-16, the next 1e-3): of the program as stored no feasible point is known.",
    "sierra": "528 equality rows of rank 518: consistent as the decimals of the file, contradictory as float64.",
}


@dataclass(frozen=True)
class Published:
    """Rigorous bounds of another program, in the sign of these instances."""

    lower: float
    upper: float
    solver: str


INF = np.inf
# Härter, Jansson and Lange (2012), VSDP: tables `doc/benchmark_sdplib_2012_12_12.csv` and
# `doc/benchmark_dimacs_2012_12_12.csv` of the repository vsdp/vsdp-2020, of the four solvers the one with
# the smallest gap, or the best finite end. SDPLIB is stated there with the opposite sign.
VSDP = {
    "truss1": Published(-8.99999632, -8.99999631, "csdp"),
    "truss3": Published(-9.10999622, -9.10999620, "csdp"),
    "truss4": Published(-9.00999630, -9.00999629, "csdp"),
    "control1": Published(17.7846267, 17.7846267, "sdpt3"),
    "control2": Published(8.29999989, 8.29999999, "csdp"),
    "control3": Published(13.6332516, 13.6332695, "sdpt3"),
    "hinf1": Published(-INF, 2.03261833, "sdpa"),
    "hinf2": Published(10.9670019, 10.9670633, "sdpa"),
    "hinf3": Published(-INF, 56.9455865, "csdp"),
    "hinf4": Published(-INF, 274.764017, "sedumi"),
    "hinf8": Published(-INF, 116.151122, "sedumi"),
    "mcp100": Published(226.157351, 226.157352, "sedumi"),
    "mcp124-1": Published(141.990476, 141.990477, "csdp"),
    "gpp100": Published(-INF, -44.9435488, "sdpt3"),
    "theta1": Published(22.9999997, 23.0000000, "csdp"),
    "qap5": Published(-INF, -436.000000, "csdp"),
    "arch0": Published(0.566517230, 0.566517274, "csdp"),
    "truss8": Published(-133.114589, -133.114589, "sedumi"),
    "nb": Published(-INF, -0.0507030946, "sedumi"),
    "nql30": Published(-INF, INF, "sdpt3"),
}


@dataclass(frozen=True, eq=False)
class Solved:
    """An instance, its reference and what klopt made of it."""

    file: str
    reference: Reference
    problem: Problem
    result: Result
    exactly: Result | None = None
    """That of the decimals of the file, where the float64 numbers are not certified."""

    @property
    def wrong(self) -> bool:
        """Whether a certified outcome contradicts the reference."""
        conclusive = self.result.verdict.conclusive
        return conclusive and self.reference.contradicts(self.result.verdict, self.result.value)


@dataclass(frozen=True)
class Refused:
    """An instance that klopt does not take, and why."""

    file: str
    reason: str


def stem(file: str) -> str:
    """Return the name of an instance: sdp/gpp100.dat-s is gpp100."""
    return Path(file).name.split(".")[0]


def references(folder: Path) -> Iterator[tuple[str, Reference]]:
    """Yield each file of the table of optima with its reference."""
    with (folder / "optima.csv").open(newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            file = row["file"]
            published = row["published_optimum"]
            if published in OUTCOMES:
                yield file, Reference(OUTCOMES[published])
            elif stem(file) in CORRECTIONS:
                yield file, Reference(Verdict.OPTIMAL, *CORRECTIONS[stem(file)])
            else:
                as_stored = AS_STORED.get(stem(file))
                yield file, Reference(Verdict.OPTIMAL, float(published), as_stored=as_stored)


def read(folder: Path, file: str) -> Problem:
    """Return the instance by the reader of its kind."""
    problem: Problem = READERS[file.split("/")[0]].from_file(folder / file)
    return problem


def solve(folder: Path, file: str, reference: Reference, seconds: float) -> Solved | Refused:
    """Read and solve one instance by klopt's own choice of routes."""
    try:
        problem = read(folder, file)
    except InvalidProblem as error:
        # A message begins with the path of its file, which is another one on another machine.
        return Refused(file, str(error).removeprefix(f"{folder / file}: ").removesuffix("."))
    result = klopt.solve(problem, tol=TOL, time_limit=seconds)
    print(
        f"{file:24} {result.verdict.name:10} {result.value:.10g}  {result.seconds:.2f} s",
        file=sys.stderr,
    )
    exactly = None
    if file.startswith("lp/") and not result.verdict.conclusive:
        exactly = klopt.solve(LP.from_file(folder / file, exact=True), tol=TOL, time_limit=seconds)
    return Solved(file, reference, problem, result, exactly)


def table(header: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a markdown table."""
    lines = [f"| {header} |", "|---" * len(header.split(" | ")) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def cells(row: Solved) -> tuple[object, ...]:
    """Return an instance's line of the main table."""
    result = row.result
    reference = row.reference
    certificate = row.result.certificate
    has_optimum = reference.outcome is Verdict.OPTIMAL
    known = f" ± {reference.known:.0e}" if reference.known else ""
    return (
        row.file,
        row.problem.describe().partition("(")[2].rstrip(")"),
        result.verdict.name + (" **WRONG**" if row.wrong else ""),
        certificate.proof,
        f"{result.value:.10g}",
        f"{reference.value:.11g}{known}" if has_optimum else reference.outcome.name.lower(),
        f"{reference.difference(result.value):.0e}" if has_optimum else "",
        f"{certificate.relative_gap:.0e}" if has_optimum else "",
        result.route,
        len(result.attempts),
        f"{result.seconds:.2f}",
    )


def tried(attempt: Attempt) -> str:
    """Return in one line what a route said and what klopt made of it."""
    certificate = attempt.certificate
    answer = attempt.answer
    native = f" ({answer.native})" if answer.native else ""
    notes = "; ".join(certificate.notes)
    ends = f"{certificate.lower:.9g} <= optimum <= {certificate.upper:.9g}"
    return f"  - {attempt.route} says {answer.stop.words}{native}, klopt proves {ends}" + (
        f": {notes}" if notes else ""
    )


KINDS = {"lp": "linear", "qp": "quadratic", "sdp": "semidefinite", "socp": "second-order cone"}


def shares(rows: list[Solved]) -> Iterator[str]:
    """Yield for each kind of program how many are certified."""
    for kind, name in KINDS.items():
        mine = [row for row in rows if row.file.startswith(f"{kind}/")]
        if mine:
            certified = sum(row.result.verdict.conclusive for row in mine)
            yield f"{certified} of {len(mine)} {name} ({100 * certified / len(mine):.0f} %)"


def summary(rows: list[Solved], refused: list[Refused], seconds: float) -> list[str]:
    """Return what the main table says in numbers, and how to read it."""
    certified = [row.result for row in rows if row.result.verdict.conclusive]
    optimal = sum(result.verdict is Verdict.OPTIMAL for result in certified)
    counts = [
        (kind, sum(result.certificate.proof == kind for result in certified)) for kind in PROOFS
    ]
    several = sum(len(result.attempts) > 1 for result in certified)
    estimated = sum(row.result.verdict is Verdict.ESTIMATED for row in rows)
    return [
        f"{len(rows) + len(refused)} instances: {len(certified)} certified, {optimal} of them OPTIMAL "
        f"({', '.join(f'{count} by {kind}' for kind, count in counts if count)}; {several} after several attempts), "
        f"{len(rows) - len(certified)} not certified ({estimated} of them estimated), {len(refused)} refused. "
        f"Certified in contradiction to the reference: {sum(row.wrong for row in rows)}.",
        "",
        "Certified, of those that are convex: " + ", ".join(shares(rows)) + ".",
        "",
        "OPTIMAL, INFEASIBLE and UNBOUNDED are theorems about the float64 numbers of the files, in exact arithmetic; "
        "every finite end is proven. ESTIMATED is evidence without proof.",
        "",
        f"Each was solved by `klopt.solve(problem, tol={TOL:g}, time_limit={seconds:g})` without naming a backend. "
        "*difference* is |value - reference| / max(1, |reference|), *gap* the proven one, (upper - lower) / "
        "(1 + |upper|), *tried* the number of attempts, *route* the one behind the value. What the proofs are worth is "
        "said in [certificates](certificates.md).",
    ]


def main_page(rows: list[Solved], refused: list[Refused], seconds: float) -> list[str]:
    """Return the lines of the page about klopt's own choice of routes."""
    header = "instance | size | verdict | proof | value | reference | difference | gap | route | tried | seconds"
    lines = [*summary(rows, refused, seconds), "", *table(header, map(cells, rows)), ""]
    lines += ["## Where the published value is not taken as it stands", ""]
    lines += [f"- {row.file}: {row.reference.note}." for row in rows if row.reference.note]
    lines += ["", "## Not certified, and why", ""]
    for row in (row for row in rows if not row.result.verdict.conclusive):
        ends = f"{row.result.lower:.9g} <= optimum <= {row.result.upper:.9g}"
        lines.append(
            f"- **{row.file}**: {row.result.verdict.name}, {ends}. {HARD.get(stem(row.file), '')}".rstrip()
        )
        lines += map(tried, row.result.attempts)
        decimals = exact_decimals(row)
        if decimals:
            lines.append(f"  - {decimals}")
    lines += ["", "## Refused", "", *(f"- {item.file}: {item.reason}." for item in refused)]
    return lines + beside_vsdp(rows)


def exact_decimals(row: Solved) -> str:
    """Say what is proven of a linear program with the decimals of its file instead of float64."""
    if row.exactly is None:
        return ""
    ends = f"{row.exactly.lower:.11g} <= optimum <= {row.exactly.upper:.11g}"
    return f"as the decimals of the file (`exact=True`): {row.exactly.verdict.name}, {ends}"


def beside_vsdp(rows: list[Solved]) -> list[str]:
    """Return the lines of the comparison with published rigorous bounds."""
    mine = [row for row in rows if stem(row.file) in VSDP]
    if not mine:
        return []
    lines = []
    better = 0
    lost = 0
    for row in mine:
        published = VSDP[stem(row.file)]
        theirs = relative_gap(published.lower, published.upper)
        ours = relative_gap(row.result.lower, row.result.upper)
        better += np.isfinite(ours) and not np.isfinite(theirs)
        lost += np.isfinite(theirs) and not np.isfinite(ours)
        lines.append(
            (
                row.file,
                f"{published.lower:.9g}",
                f"{published.upper:.9g}",
                f"{theirs:.0e}",
                published.solver,
                f"{row.result.lower:.9g}",
                f"{row.result.upper:.9g}",
                f"{ours:.0e}",
                row.result.verdict.name,
            )
        )
    return [
        "",
        "## Beside VSDP",
        "",
        "VSDP (Jansson, Chaykin and Keil, 2007; MATLAB with INTLAB) publishes rigorous bounds of the same files: the "
        "tables of 12 December 2012 in the repository `vsdp/vsdp-2020` (`doc/benchmark_sdplib_2012_12_12.csv`, "
        "`doc/benchmark_dimacs_2012_12_12.csv`), here the row of the solver with the smallest gap, to the 9 digits "
        "printed there. SDPLIB is stated there with the opposite sign. An infinite end is not proven. "
        f"klopt has two finite ends where VSDP has one or none on {better} instances, and the reverse on {lost}. "
        "VSDP proves infp1 and infd1 to be infeasible as well.",
        "",
        *table(
            "instance | VSDP lower | VSDP upper | gap | by | klopt lower | klopt upper | gap | verdict",
            lines,
        ),
    ]


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) / (1 + |upper|), inf where an end is missing."""
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return np.inf
    return (upper - lower) / (1 + abs(upper))


@dataclass(frozen=True)
class Claim:
    """What one backend said of one instance by one formulation, and what klopt proved."""

    backend: str
    file: str
    words: str
    sure: bool
    error: float
    """How far the claimed optimum is from the reference; inf where another outcome is claimed."""
    certified: bool
    wrong: bool


def claims(row: Solved, seconds: float) -> Iterator[Claim]:
    """Yield the claims of every capable backend on one instance."""
    for backend in sorted({route.backend.name for route in klopt.plan(row.problem).routes}):
        result = klopt.solve(row.problem, backend, tol=TOL, time_limit=seconds)
        print(
            f"{row.file:24} {backend:12} {result.verdict.name}  {result.seconds:.2f} s",
            file=sys.stderr,
        )
        for attempt in result.attempts:
            certificate = attempt.certificate
            sure, error = claim_error(attempt, row.reference)
            ends = certificate.upper if row.problem.sense == "min" else certificate.lower
            conclusive = certificate.verdict.conclusive
            wrong = conclusive and row.reference.contradicts(certificate.verdict, ends)
            words = f"{attempt.answer.stop.words} by {attempt.route.formulation.name!r}"
            yield Claim(backend, row.file, words, sure, error, result.verdict.conclusive, wrong)


def claim_error(attempt: Attempt, reference: Reference) -> tuple[bool, float]:
    """Return whether the backend claims an outcome, and how far off the reference it is."""
    stop = attempt.answer.stop
    residuals = attempt.certificate.residuals
    if stop not in (Stop.OPTIMAL, Stop.INFEASIBLE, Stop.UNBOUNDED):
        return False, 0.0
    # A program and its dual may both be infeasible: which of the two is named is no error.
    if stop is not Stop.OPTIMAL or reference.outcome is not Verdict.OPTIMAL:
        return True, np.inf if Verdict.OPTIMAL in (reference.outcome, Verdict[stop.name]) else 0.0
    value = (
        np.inf
        if residuals is None
        else attempt.route.formulation.to_user(residuals.value, residuals.value)[0]
    )
    return True, max(
        0.0, reference.difference(value) - reference.known / max(1.0, abs(reference.value))
    )


def backend_page(found: list[Claim], seconds: float) -> list[str]:
    """Return the lines of the page about pinned backends."""
    rows = []
    for name in sorted({claim.backend for claim in found}):
        mine = [claim for claim in found if claim.backend == name]
        sure = [claim for claim in mine if claim.sure]
        off = (sum(claim.error > limit for claim in sure) for limit in (1e-6, 1e-3))
        proven, instances = (
            {claim.file for claim in part} for part in ((c for c in mine if c.certified), mine)
        )
        rows.append(
            (
                name,
                len(instances),
                len(mine),
                len(sure),
                *off,
                len(proven),
                sum(claim.wrong for claim in mine),
            )
        )
    return [
        "",
        "## What the backends say by themselves",
        "",
        f"Every capable backend pinned, {seconds:g} s for each instance, by one formulation after the other until one "
        "is proven. *sure* counts the runs that end with optimal, infeasible or unbounded, *off* those of them that "
        "are that far from the reference (or claim another outcome), *certified* the instances that klopt could prove "
        "from the answers, *wrongly* the proofs that contradict the reference.",
        "",
        *table(
            "backend | instances | runs | sure | off by 1e-6 | off by 1e-3 | certified | wrongly",
            rows,
        ),
        "",
        "Sure of it, and off by more than 1e-3 (infinitely: another outcome):",
        "",
        *(
            f"- {c.backend} on {c.file} says {c.words}: off by {c.error:.1g}"
            for c in found
            if c.error > 1e-3
        ),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, write the page, return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds optima.csv and the files it names")
    parser.add_argument(
        "--backends", action="store_true", help="run every capable backend pinned, as well"
    )
    parser.add_argument("--only", default="", help="only files whose name contains this text")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for each instance (default 60)"
    )
    parser.add_argument(
        "--pinned", type=float, default=20.0, help="seconds for each pinned backend (default 20)"
    )
    options = parser.parse_args(arguments)
    chosen = [
        (file, reference) for file, reference in references(options.folder) if options.only in file
    ]
    outcomes = [
        solve(options.folder, file, reference, options.seconds) for file, reference in chosen
    ]
    rows = [row for row in outcomes if isinstance(row, Solved)]
    found = [claim for row in rows if options.backends for claim in claims(row, options.pinned)]
    command = "python benchmarks/public_instances.py FOLDER" + (
        " --backends" if options.backends else ""
    )
    versions = ", ".join(
        f"{package} {version(package)}"
        for package in ("klopt", "highspy", "clarabel", "ecos", "scs", "sdpa-python")
        if package != "sdpa-python" or not backend_named("sdpa").missing
    )
    lines = ["# Public instances", "", f"Written by `{command}`, never by hand ({versions}).", ""]
    lines += main_page(rows, [row for row in outcomes if isinstance(row, Refused)], options.seconds)
    print("\n".join(lines + (backend_page(found, options.pinned) if found else [])))
    return int(any(row.wrong for row in rows) or any(claim.wrong for claim in found))


if __name__ == "__main__":
    sys.exit(main())
