"""What the solvers that CVXPY finds say of their answers at default settings, and what klopt proves of them.

    python benchmarks/honesty.py [--data FOLDER] [--solvers A,B] [--seconds S] [--out FILE]

Every solver gets every program that it has the cones for, by `problem.solve(solver=NAME)` and nothing
else, in a child process of its own. The status is quoted as CVXPY has it. Then `klopt.judge` says what
is proven of the answer; the optimum itself is enclosed by the best of all these proofs and one solve
by klopt. Programs are those of CVXPY's test library and, with --data, the linear, quadratic,
second-order cone and semidefinite programs of a folder laid out as `benchmarks/public_instances.py`
reads it. Results go to a JSON file, from which `docs/write_honesty.py` writes docs/honesty.md.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import argparse
import json
import math
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from _cvxpy_programs import library

import klopt
from klopt.model.forms import ConeForm
from klopt.problems import ConeProgram
from klopt.solvers._native.cvxpy_model import constraints_of

PACKAGES = {
    "CLARABEL": "clarabel",
    "SCS": "scs",
    "ECOS": "ecos",
    "SDPA": "sdpa-python",
    "GLPK": "cvxopt",
    "CVXOPT": "cvxopt",
    "SCIPY": "scipy",
    "HIGHS": "highspy",
    "QOCO": "qoco",
    "OSQP": "osqp",
    "PIQP": "piqp",
    "PROXQP": "proxsuite",
    "DAQP": "daqp",
}
"""The solvers for continuous programs that CVXPY may find, and the packages they come in."""
MAX_ENTRIES = 10_000
"""Entries of A of a public program: beyond it CVXPY and the smaller solvers take minutes."""
TOL = 1e-6
JUDGE_SECONDS = 10.0
REFERENCE_SECONDS = 20.0
OUT = Path(__file__).parents[1] / "docs" / "honesty.json"


# Programs


def public_programs(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the programs of a folder as cone programs that minimise, by name."""
    from public_instances import read, references

    for file, _ in references(folder):
        try:
            program: Any = read(folder, file)
            form = program.form
        except klopt.KloptError:
            continue  # such as one that is not convex
        if form.A.nnz <= MAX_ENTRIES:
            yield file, form


def as_cvxpy(form: ConeForm) -> cp.Problem:
    """Return a cone program as a problem of CVXPY."""
    stated = np.isfinite(form.b)
    if not stated.all():
        # Only nonnegative rows may be vacuous.
        cones = klopt.Cones(
            zero=form.cones.zero,
            nonneg=form.cones.nonneg - int(np.count_nonzero(~stated)),
            soc=form.cones.soc,
            psd=form.cones.psd,
            exp=form.cones.exp,
            power=form.cones.power,
        )
        form = ConeForm(form.c, form.A[np.flatnonzero(stated)], form.b[stated], cones, form.P)
    x = cp.Variable(form.c.size)
    cost = form.c @ x
    if form.P is not None:
        cost = cost + cp.quad_form(x, cp.psd_wrap(form.P)) / 2
    return cp.Problem(cp.Minimize(cost), constraints_of(form, x))


def problem_of(name: str, forms: dict[str, Any]) -> cp.Problem:
    """Return a new problem of CVXPY by its name."""
    return as_cvxpy(forms[name]) if name in forms else library()[name]().prob


# One run


def run(solver: str, name: str, forms: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a solver says of a program and what is proven; None where it lacks the cones."""
    problem = problem_of(name, forms)
    try:
        problem.get_problem_data(solver)
    except (cp.SolverError, ValueError):
        return None
    found: dict[str, Any] = {"solver": solver, "program": name}
    began = time.perf_counter()
    try:
        problem.solve(solver=solver)
        found["status"] = problem.status
    except cp.SolverError:
        found["status"] = "solver_error"
    except Exception as error:
        found["status"] = f"raises {type(error).__name__}"
    found["seconds"] = time.perf_counter() - began
    if problem.status is None or found["status"] not in ANSWERS:
        return found
    found["value"] = None if problem.value is None else float(problem.value)
    try:
        result = klopt.judge(problem, tol=TOL, time_limit=JUDGE_SECONDS)
    except klopt.KloptError as error:
        return {**found, "verdict": "UNPROVEN", "note": str(error)}
    residuals = result.certificate.residuals
    return {
        **found,
        "verdict": result.verdict.name,
        "lower": result.lower,
        "upper": result.upper,
        "infeasibility": None if residuals is None else float(residuals.primal),
        "note": "; ".join(result.certificate.notes),
    }


ANSWERS = {
    "optimal",
    "optimal_inaccurate",
    "infeasible",
    "infeasible_inaccurate",
    "unbounded",
    "unbounded_inaccurate",
    "infeasible_or_unbounded",
    "user_limit",
}


def reference(name: str, forms: dict[str, Any]) -> dict[str, Any]:
    """Return what klopt proves of a program by a solve of its own."""
    program = ConeProgram.from_cvxpy(problem_of(name, forms))
    result = klopt.solve(program, tol=1e-7, time_limit=REFERENCE_SECONDS)
    found = {"verdict": result.verdict.name, "lower": result.lower, "upper": result.upper}
    return {**found, "sense": program.sense}


# Children


def serve(pipe: Any, forms: dict[str, Any]) -> None:
    """Answer (solver, program) pairs until there is none."""
    warnings.simplefilter("ignore")
    while True:
        task = pipe.recv()
        if task is None:
            return
        solver, name = task
        if solver is None:
            pipe.send(reference(name, forms))
        else:
            pipe.send(run(solver, name, forms))


class Child:
    """A process that runs solvers, started again where one does not come back."""

    def __init__(self, forms: dict[str, Any]) -> None:
        self.forms = forms
        self.start()

    def start(self) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(other, self.forms), daemon=True)
        self.process.start()
        other.close()

    def ask(self, solver: str | None, name: str, seconds: float) -> Any:
        """Return the answer, or why there is none."""
        self.pipe.send((solver, name))
        try:
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            status = f"no answer in {seconds:g} s"
        except EOFError:
            status = "the process ended"
        self.process.kill()
        self.process.join()
        self.start()
        return {"solver": solver, "program": name, "status": status}

    def close(self) -> None:
        self.pipe.send(None)
        self.process.join(10)


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def jsonable(value: Any) -> Any:
    """Numbers that JSON lacks as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: jsonable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [jsonable(each) for each in value]
    return value


def main() -> None:
    """Run every solver on every program, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder of public programs")
    parser.add_argument("--solvers", default="", help="names of CVXPY, separated by commas")
    parser.add_argument("--seconds", type=float, default=40.0, help="limit of one run")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    installed = [name for name in PACKAGES if name in cp.installed_solvers()]
    solvers = [name.upper() for name in options.solvers.split(",") if name] or installed
    forms = dict(public_programs(options.data)) if options.data else {}
    names = [*library(), *forms]
    child = Child(forms)
    runs: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for name in names:
        references[name] = child.ask(None, name, REFERENCE_SECONDS + options.seconds)
        for solver in solvers:
            found = child.ask(solver, name, options.seconds)
            if found is not None:
                runs.append(found)
        print(name, references[name].get("verdict"), len(runs), flush=True)
        content = {
            "cvxpy": cp.__version__,
            "klopt": klopt.__version__,
            "tol": TOL,
            "seconds": options.seconds,
            "max_entries": MAX_ENTRIES,
            "versions": {name: package_version(PACKAGES[name]) for name in solvers},
            "sets": {name: "public" if name in forms else "library" for name in references},
            "references": references,
            "runs": runs,
        }
        options.out.write_text(json.dumps(jsonable(content), indent=1) + "\n", encoding="utf-8")
    child.close()


if __name__ == "__main__":
    main()
