"""A file with a solution, judged for the program in another file.

A solver's own file (`klopt.programs.formats.solution`) names columns and rows as the program does. Its
duals d of rows and z of columns are sensitivities, c = A'd + z, so that in klopt's signs, for a
program that minimises,

    eq = -d,    ub = max(0, -d) of an upper side, max(0, d) of a lower one,
    lower = max(0, z),    upper = max(0, -z).

The file of one that maximises has them for its own objective: they change sign. An .npz or .json file
has the arrays of the problem by their names, or as x and y; `klopt solve --json` writes one.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.lookup import read_problem
from klopt.engine.registry import problem_named
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.judging.given import Claim, expected_arrays, judged
from klopt.judging.named_arrays import judge_point
from klopt.model.backend import Settings, Stop
from klopt.model.problem import Point, Problem
from klopt.programs.formats import opened
from klopt.programs.formats.model import Model, Names
from klopt.programs.formats.solution import SolutionFile, read_solution
from klopt.programs.formats.source import reading

__all__ = ["judge_files", "read_point"]

ARRAYS = (".npz", ".json")
"""Files of arrays by name; any other suffix is that of a solver's own file."""
STOPS = (
    ("infeasible or unbounded", Stop.INFEASIBLE_OR_UNBOUNDED),
    ("infeasible", Stop.INFEASIBLE),
    ("unbounded", Stop.UNBOUNDED),
    ("time limit", Stop.TIME_LIMIT),
    ("limit", Stop.ITERATION_LIMIT),
    ("optimal", Stop.OPTIMAL),
)
"""Words of a status and what they mean; the first that occurs counts."""
ALMOST = ("inaccurate", "almost", "near", "close to", "suboptimal", "unscaled infeasibilities")
"""Words of solvers that met looser tolerances than theirs."""


def judge_files(
    program: str | PathLike[str],
    solution: str | PathLike[str],
    *,
    settings: Settings,
) -> Result:
    """Return what is proven of the solution in one file of the program in another.

    Parameters
    ----------
    program
        An .mps, .lp, .dat-s, .cbf or .npz file.
    solution
        A solution of HiGHS, CPLEX, SCIP, Gurobi or CBC for an .mps or .lp file; or an .npz or
        .json file with the arrays of the solution.
    settings
        The tolerance and the time limit.
    """
    place = Path(solution)
    limit = settings.time_limit
    if not place.exists():
        raise InvalidProblem(f"no file {str(solution)!r}")
    if place.name.lower().endswith(ARRAYS):
        problem = read_problem(str(program), None, 0, time_limit=limit)
        x, y = _arrays(place, problem)
        return judge_point(problem, x, y, settings=settings)
    told = read_solution(place, time_limit=limit)
    with opened(program, time_limit=limit) as model:
        if model.kind not in ("LP", "QCQP") or model.soc or model.quadratics:
            raise InvalidProblem(
                f"{program} has cones or quadratic constraints, whose multipliers {place} does not "
                "name; give the arrays of the solution in an .npz or .json file"
            )
        reader: Any = problem_named(model.kind)
        found: Problem = reader.from_model(model, program)
    return judged(found, _claim(place, told, model, found), settings)


def _claim(place: Path, told: SolutionFile, model: Model, problem: Problem) -> Claim:
    """What the file of a solver claims, in the arrays of the problem."""
    columns, rows = _names(model)
    sign = 1.0 if model.sense == "min" else -1.0
    primal = {}
    notes: tuple[str, ...] = ()
    if told.columns:
        primal["x"] = _by_name(place, "column", told.columns, columns, told.lines)
        missing = len(columns) - len(told.columns)
        if missing:
            notes = (f"{missing} of {len(columns)} columns are not in the file and count as 0",)
    dual: dict[str, FloatArray] = {}
    if told.row_duals is not None:
        d = sign * _by_name(place, "row", told.row_duals, rows)
        is_equation, of_rows, side = model.sides()
        dual["eq"] = -d[is_equation]
        dual["ub"] = np.maximum(-side * d[of_rows], 0.0)
    if told.reduced_costs is not None:
        z = sign * _by_name(place, "column", told.reduced_costs, columns)
        dual["lower"] = np.maximum(z, 0.0)
        dual["upper"] = np.maximum(-z, 0.0)
    return Claim(Point(primal, dual), _stop(told.status), told.status, notes)


def _names(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What columns and rows are called, in the order of the model."""
    names = model.names
    if names is None:
        names = Names.default(model.c.size, model.row_lower.size, 0)
    return names.columns, (*names.ub, *names.eq)


def _by_name(
    place: Path,
    kind: str,
    values: Mapping[str, float],
    names: tuple[str, ...],
    lines: Mapping[str, int] | None = None,
) -> FloatArray:
    """The values in the order of the names, 0 where there is none.

    Parameters
    ----------
    place, kind, lines
        The file, what its names are of, and where they stand, for messages.
    values
        What the file says.
    names
        The names of the program.
    """
    index = {name: position for position, name in enumerate(names)}
    array = np.zeros(len(names))
    for name, value in values.items():
        if name not in index:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            line = f", line {lines[name]}" if lines and name in lines else ""
            raise InvalidProblem(f"{place}{line}: the program has no {kind} {name!r}{hint}")
        array[index[name]] = value
    return array


def _stop(status: str) -> Stop:
    """What a solver's own word means; a file without one holds what somebody calls optimal."""
    words = status.lower()
    if any(text in words for text in ALMOST):
        return Stop.ALMOST_OPTIMAL if "optimal" in words else Stop.STALLED
    for text, stop in STOPS:
        if text in words:
            return stop
    return Stop.STALLED if words else Stop.OPTIMAL


# Arrays by name


def read_point(file: str | PathLike[str], problem: Problem) -> Point:
    """Return the point in a file of arrays by name, such as `klopt solve --json` writes.

    Parameters
    ----------
    file
        An .npz or .json file.
    problem
        What the point is of; its solutions have the names.
    """
    place = Path(file)
    if place.suffix.lower() not in ARRAYS:
        raise InvalidProblem(f"{place} is no file of arrays by name; expected .npz or .json")
    x, y = _arrays(place, problem)
    if x is None:
        raise InvalidProblem(f"{place} holds no point to start from")
    primal = x if isinstance(x, dict) else {"x": x}
    dual = y if isinstance(y, dict) else {}
    return Point(
        {name: np.asarray(value, dtype=float) for name, value in primal.items()},
        {name: np.asarray(value, dtype=float) for name, value in dual.items()},
    )


def _arrays(place: Path, problem: Problem) -> tuple[Any, Any]:
    """x and y of a file of arrays: by these names, or primal and dual arrays by their own."""
    with reading(place) as source:
        if place.name.lower().endswith(".npz"):
            with np.load(source.path, allow_pickle=False) as archive:
                content: dict[str, Any] = {name: archive[name] for name in archive.files}
        else:
            content = json.loads(source.text())
    if not isinstance(content, dict):
        raise InvalidProblem(f'{place} holds no arrays by name; write {{"x": [...], "y": [...]}}')
    # What `klopt solve --json` writes.
    point = content.get("point")
    if isinstance(point, dict):
        return point.get("primal"), point.get("dual") or None
    primal, dual = expected_arrays(problem)
    x = {name: content[name] for name in primal if name in content}
    y = {name: content[name] for name in dual if name in content}
    known = {"x", "y", *x, *y}
    unknown = sorted(content.keys() - known)
    if unknown:
        raise InvalidProblem(
            f"{place} has {unknown[0]!r}; expected x and y, or {', '.join((*primal, *dual))}"
        )
    return x or content.get("x"), y or cast(Any, content.get("y"))
