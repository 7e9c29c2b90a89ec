"""Public instances with published optima: what klopt proves agrees with them, and what it cannot prove it says.

The files are not part of the repository; KLOPT_DATA names the folder that holds them and their
table of optima. Some tiny programs of Hock and Schittkowski and of Maros and Meszaros are written
out below.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import klopt
from klopt.errors import InvalidProblem
from klopt.model.problem import Problem
from klopt.problems import QCQP
from klopt.proof.certificate import Verdict

FOLDER = os.environ.get("KLOPT_DATA", "")
needs_data = pytest.mark.skipif(
    not FOLDER, reason="KLOPT_DATA does not name the folder of the public instances"
)
ROUNDING = 1e-9

QUICK = (
    *(
        "lp/afiro.mps",
        "lp/adlittle.mps",
        "lp/kb2.mps",
        "lp/israel.mps",
        "lp/e226.mps",
        "lp/scsd1.mps",
        "lp/degen2.mps",
    ),
    *(
        "lp/infeas_itest2.mps",
        "lp/infeas_itest6.mps",
        "lp/infeas_galenet.mps",
        "lp/infeas_bgprtr.mps",
    ),
    *(
        "qp/HS268.npz",
        "qp/DUALC1.npz",
        "qp/PRIMALC1.npz",
        "qp/CVXQP1_S.npz",
        "qp/QAFIRO.npz",
        "qp/QSC205.npz",
    ),
    *(
        "sdp/truss1.dat-s",
        "sdp/control1.dat-s",
        "sdp/qap5.dat-s",
        "sdp/infd1.dat-s",
        "sdp/infp1.dat-s",
    ),
)


def benchmark() -> ModuleType:
    """The benchmark's module: it knows the references and the corrections of published values."""
    path = Path(__file__).parents[1] / "benchmarks" / "public_instances.py"
    spec = importlib.util.spec_from_file_location("public_instances", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCHMARK = benchmark()
REFERENCES = dict(BENCHMARK.references(Path(FOLDER))) if FOLDER else {}
OPTIMA = Path(FOLDER, "optima.csv").read_text(encoding="utf-8") if FOLDER else ""
SIZES = {row["file"]: row["size"] for row in csv.DictReader(OPTIMA.splitlines())}


def hs21() -> QCQP:
    """x1^2/100 + x2^2 - 100, 10 x1 - x2 >= 10."""
    return QCQP(
        np.diag([0.02, 2.0]),
        [0, 0],
        A_ub=[[-10, 1]],
        b_ub=[-10],
        bounds=[(2, 50), (-50, 50)],
        offset=-100,
    )


def hs35() -> QCQP:
    """9 - 8 x1 - 6 x2 - 4 x3 + 2 x1^2 + 2 x2^2 + x3^2 + 2 x1 x2 + 2 x1 x3, x1 + x2 + 2 x3 <= 3."""
    P = [[4, 2, 2], [2, 4, 0], [2, 0, 2]]
    return QCQP(P, [-8, -6, -4], A_ub=[[1, 1, 2]], b_ub=[3], bounds=(0, None), offset=9)


def hs76() -> QCQP:
    """Four variables, three inequalities."""
    P = [[2, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 2, 1], [0, 0, 1, 1]]
    A = [[1, 2, 1, 1], [3, 1, 2, -1], [0, -1, -4, 0]]
    return QCQP(P, [-1, -3, 1, -1], A_ub=A, b_ub=[5, 4, -1.5], bounds=(0, None))


def tame() -> QCQP:
    """(x - y)^2, x + y = 1: the optimum is 0, and P has rank 1."""
    return QCQP([[2, -2], [-2, 2]], [0, 0], A_eq=[[1, 1]], b_eq=[1], bounds=(0, None))


WRITTEN_OUT = {
    "HS21": (hs21, -99.96),
    "HS35": (hs35, 1 / 9),
    "HS76": (hs76, -103 / 22),
    "TAME": (tame, 0.0),
}


def test_what_is_true_of_the_stored_numbers_contradicts_no_reference() -> None:
    """As float64 the equations of sierra contradict each other; any other outcome stays wrong."""
    sierra = BENCHMARK.Reference(Verdict.OPTIMAL, 1.5e7, as_stored=Verdict.INFEASIBLE)
    assert not sierra.contradicts(Verdict.INFEASIBLE, np.nan)
    assert not sierra.contradicts(Verdict.OPTIMAL, 1.5e7)
    assert sierra.contradicts(Verdict.OPTIMAL, 1.6e7)
    assert sierra.contradicts(Verdict.UNBOUNDED, np.nan)
    assert BENCHMARK.Reference(Verdict.OPTIMAL, 1.5e7).contradicts(Verdict.INFEASIBLE, np.nan)


@pytest.fixture(params=WRITTEN_OUT)
def written_out(request: pytest.FixtureRequest) -> tuple[str, Problem, float]:
    make, optimum = WRITTEN_OUT[request.param]
    return request.param, make(), optimum


def test_klopt_certifies_the_known_optimum(written_out) -> None:
    _, problem, optimum = written_out
    result = klopt.solve(problem).require()
    assert abs(result.value - optimum) <= 1e-6 * (1 + abs(optimum))


def test_every_route_proves_an_interval_around_the_known_optimum(written_out) -> None:
    """Whatever a backend says and however rough it is: lower <= optimum <= upper."""
    _, problem, optimum = written_out
    slack = ROUNDING * (1 + abs(optimum))
    for route in klopt.plan(problem).routes:
        result = klopt.solve(problem, route.backend, formulation=route.formulation.name)
        assert result.lower - slack <= optimum <= result.upper + slack, str(route)
        assert result.verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE), f"{route}: {result.explain()}"


@needs_data
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_the_programs_written_out_are_those_of_the_files(name) -> None:
    mine, theirs = (
        WRITTEN_OUT[name][0]().form,
        QCQP.from_file(Path(FOLDER, "qp", f"{name}.npz")).form,
    )
    rng = np.random.default_rng(0)
    for x in rng.uniform(0, 3, (20, mine.c.size)):
        assert mine.value(x) == pytest.approx(theirs.value(x))
        feasible = [
            (form.cones.distance(form.b - form.A @ x) <= ROUNDING) for form in (mine, theirs)
        ]
        assert feasible[0] == feasible[1]


@needs_data
@pytest.mark.parametrize("file", sorted(REFERENCES))
def test_the_reader_handles_every_file(file) -> None:
    """The number of variables is the one that the table of optima states."""
    if file == "qp/VALUES.npz":
        with pytest.raises(InvalidProblem, match="P is not positive semidefinite: its smallest"):
            BENCHMARK.read(Path(FOLDER), file)
        return
    problem = BENCHMARK.read(Path(FOLDER), file)
    stated = re.match(r"n=(\d+)|m=(\d+)|\d+x(\d+)", SIZES[file])
    assert stated is not None
    variables = problem.formulations()[0].build().shape[1]
    assert variables == int(next(group for group in stated.groups() if group))


@needs_data
@pytest.mark.parametrize("file", QUICK)
def test_what_is_proven_agrees_with_what_is_published(file) -> None:
    row = BENCHMARK.solve(Path(FOLDER), file, REFERENCES[file], 60.0)
    assert row.result.verdict is row.reference.outcome, row.result.explain()
    assert not row.wrong, row.result.explain()
    if row.reference.outcome is Verdict.OPTIMAL:
        assert row.result.certificate.relative_gap <= 1e-6


@needs_data
@pytest.mark.parametrize("formulation", ["LMI", "standard form"])
def test_a_claim_that_is_off_by_a_percent_is_not_certified(formulation) -> None:
    """Clarabel says control1 is solved at 18.06; the optimum is 17.78462672 (computed with 120 digits)."""
    problem = BENCHMARK.read(Path(FOLDER), "sdp/control1.dat-s")
    result = klopt.solve(problem, "clarabel", formulation=formulation)
    assert result.lower <= 17.78462672 <= result.upper + ROUNDING
    if result.verdict is Verdict.OPTIMAL:
        assert result.value == pytest.approx(17.78462672, rel=1e-6)


@needs_data
def test_a_reference_refuses_what_is_wrong() -> None:
    """The comparison itself can fail: a value off by 2e-6, another outcome."""
    afiro, infeasible = REFERENCES["lp/afiro.mps"], REFERENCES["lp/infeas_itest2.mps"]
    assert not afiro.contradicts(Verdict.OPTIMAL, -464.75314286 * (1 + 0.5e-6))
    assert afiro.contradicts(Verdict.OPTIMAL, -464.75314286 * (1 + 2e-6))
    assert afiro.contradicts(Verdict.INFEASIBLE, np.inf)
    assert infeasible.contradicts(Verdict.OPTIMAL, 0.0)
    assert not infeasible.contradicts(Verdict.INFEASIBLE, np.inf)
