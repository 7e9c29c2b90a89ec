"""A problem of CVXPY that somebody has solved, with the values and duals that it holds.

Judged is the cone program that CVXPY compiled for the solver, which it keeps. Solvers that leave
their own solution behind have all of its columns and rows (`klopt.judging.cvxpy_kept`). Otherwise
the columns of the variables take their values; the rows of the constraints take their dual values,
found by sending known multipliers the way back that CVXPY's own take; auxiliary variables and the
multipliers of their rows, which CVXPY drops, are recomputed (`klopt.judging.auxiliary`).

Of a problem without values, one that is claimed to be infeasible or unbounded, the multipliers or
the direction that the solver has left are judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.judging.auxiliary import completed_multipliers, completed_point
from klopt.judging.cvxpy_kept import KeptSolution, kept_reduction, kept_solution
from klopt.judging.given import Claim, judged
from klopt.model.backend import Settings, Stop
from klopt.model.problem import Point
from klopt.problems import ConeProgram
from klopt.programs.cvxpy_reduction import CvxpyReduction, reduced_by_cvxpy, refuse_others

__all__ = ["judge_problem", "reduced_and_kept"]

Mask = npt.NDArray[np.bool_]
STOPS = {
    "optimal": Stop.OPTIMAL,
    "optimal_inaccurate": Stop.ALMOST_OPTIMAL,
    "infeasible": Stop.INFEASIBLE,
    "infeasible_inaccurate": Stop.STALLED,
    "unbounded": Stop.UNBOUNDED,
    "unbounded_inaccurate": Stop.STALLED,
    "infeasible_or_unbounded": Stop.INFEASIBLE_OR_UNBOUNDED,
    "user_limit": Stop.ITERATION_LIMIT,
}
WITHOUT_OPTIMUM = (
    "infeasible",
    "infeasible_inaccurate",
    "unbounded",
    "unbounded_inaccurate",
    "infeasible_or_unbounded",
)
"""Statuses with which CVXPY sets no values."""


def judge_problem(problem: Any, *, settings: Settings) -> Result:
    """Return what is proven of the values and duals that a CVXPY problem holds.

    Parameters
    ----------
    problem
        A `cvxpy.Problem` after `problem.solve(...)`, by any solver.
    settings
        The tolerance and the time limit.

    >>> import cvxpy
    >>> x = cvxpy.Variable(2)
    >>> problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(x - 2)), [x <= 1])
    >>> value = problem.solve(solver="CLARABEL")
    >>> judge_problem(problem, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    missing = [variable.name() for variable in problem.variables() if variable.value is None]
    if problem.status is None or (missing and problem.status not in WITHOUT_OPTIMUM):
        raise InvalidProblem(
            f"the CVXPY problem has the status {problem.status!r} and no value of "
            f"{', '.join(missing) or 'its objective'}; solve it first, or use klopt.solve(problem)"
        )
    refuse_others(problem)
    reduction, raw = reduced_and_kept(problem)
    if missing:
        program = ConeProgram(**reduction.arguments)
        return judged(program, _without_values(problem, raw), settings)

    x, known = _columns(reduction)
    claimed = (_stop(problem), _quoted(problem))
    # Values that were changed since are judged, not those of the solver.
    if raw is not None and raw.x is not None and raw.y is not None and _agree(raw.x, x, known):
        program = ConeProgram(**reduction.arguments)
        note = "auxiliary variables and multipliers are those of the solver's own solution"
        own = Claim(program.point(raw.x, raw.y), *claimed, (note,))
        result = judged(program, own, settings)
        if result.verdict.conclusive or known.all():
            return result
        # Auxiliary variables are not the user's: loose ones say nothing of the values.
        completed_point(program.form, x, known)
        note = "auxiliary variables are recomputed, multipliers those of the solver's own solution"
        again = judged(program, Claim(program.point(x, raw.y), *claimed, (note,)), settings)
        return again if again.verdict.conclusive else result

    # The way back of duals is known for klopt's own reduction.
    reduction = _reduced(problem)
    program = ConeProgram(**reduction.arguments)
    point, note = _recomputed(reduction, program)
    notes = (note,) if note else ()
    claim = Claim(point, *claimed, notes, is_complete=not note)
    return judged(program, claim, settings)


def reduced_and_kept(problem: Any) -> tuple[CvxpyReduction, KeptSolution | None]:
    """Return the reduction of a solved problem, and the solver's own solution where it is kept."""
    # Semidefinite rows are compiled again, since CVXPY keeps them rounded.
    reduction = kept_reduction(problem) or _reduced(problem)
    return reduction, kept_solution(problem, reduction)


def _recomputed(reduction: CvxpyReduction, program: ConeProgram) -> tuple[Point, str]:
    """The point that values and duals of CVXPY lead to, and what is missing of it."""
    note = ""
    x, known = _columns(reduction)
    rows, known_rows = _rows(reduction)
    found = completed_point(program.form, x, known)
    if not found.all():
        left = int(np.count_nonzero(~found))
        note = (
            f"{left} of {int(np.count_nonzero(~known))} auxiliary variables, which CVXPY drops, "
            "were not recomputed; klopt.solve of the CVXPY problem needs none of them"
        )
    y = completed_multipliers(program.form, x, rows / program.weights, known_rows)
    return program.point(x, y), note


def _without_values(problem: Any, raw: KeptSolution | None) -> Claim:
    """What the solver has left of a problem that it calls infeasible or unbounded."""
    more = "klopt.solve of the CVXPY problem looks for a proof of its own"
    stop = _stop(problem)
    farkas = raw.y if raw is not None and "infeasible" in problem.status else None
    ray = raw.x if raw is not None and "unbounded" in problem.status else None
    if farkas is None and ray is None:
        note = f"CVXPY keeps no certificate of this solver for {problem.status!r}; {more}"
        return Claim(Point({}, {}), stop, _quoted(problem), (note,))
    note = "what is judged are the multipliers and the direction of the solver's own solution"
    if ray is None:
        note = "what is judged are the multipliers of the solver's own solution"
    if farkas is None:
        note = "what is judged is the direction of the solver's own solution"
    if stop is Stop.INFEASIBLE_OR_UNBOUNDED:
        note += "; which of the two it is, the solver leaves open"
    return Claim(Point({}, {}), stop, _quoted(problem), (note,), farkas=farkas, ray=ray)


def _stop(problem: Any) -> Stop:
    """What CVXPY has for a solver's status, in klopt's word."""
    return STOPS.get(problem.status, Stop.NUMERICAL)


def _quoted(problem: Any) -> str:
    """The solver and the status, as CVXPY has them."""
    stats = problem.solver_stats
    return f"{stats.solver_name if stats else 'CVXPY'}: {problem.status}"


def _reduced(problem: Any) -> CvxpyReduction:
    """The reduction; what CVXPY has compiled for the user's own solver is kept."""
    cache = problem._cache
    compiled = (cache.key, cache.solving_chain, cache.param_prog, cache.inverse_data)
    solver_cache = problem._solver_cache
    try:
        return reduced_by_cvxpy(problem)
    finally:
        cache.key, cache.solving_chain, cache.param_prog, cache.inverse_data = compiled
        problem._solver_cache = solver_cache


def _agree(raw: FloatArray, held: FloatArray, known: Mask) -> bool:
    """Whether a solver's numbers are those that CVXPY holds, but for rounding."""
    size = 1 + float(np.max(np.abs(raw), initial=0.0))
    return bool(np.all(np.abs(raw - held)[known] <= 1e-9 * size))


def _columns(reduction: CvxpyReduction) -> tuple[FloatArray, Mask]:
    """The values of the problem's variables in the columns of the cone program, and which they are."""
    program = reduction.conic.data["param_prob"]
    x = np.zeros(reduction.conic.data["c"].size)
    known = np.zeros(x.size, dtype=bool)
    for variable in reduction.problem.variables():
        new = variable
        for step in reduction.inverse:
            # Attributes become constraints of another variable.
            if isinstance(step, tuple) and step and variable.id in step[0]:
                new = step[0][variable.id]
        if new.id not in program.var_id_to_col:
            continue
        column = program.var_id_to_col[new.id]
        values = _lowered(variable)
        if values is not None and values.size == new.size:
            x[column : column + new.size] = values
            known[column : column + new.size] = True
    return x, known


def _lowered(variable: Any) -> FloatArray | None:
    """The entries of a variable that its attributes leave free; None where they are complex."""
    value = variable.value
    if hasattr(value, "toarray"):
        value = value.toarray()
    value = np.asarray(value)
    if np.iscomplexobj(value):
        return None
    attributes = variable.attributes
    if attributes["diag"]:
        return np.diag(value).astype(float)
    if any(attributes[name] for name in ("symmetric", "PSD", "NSD")):
        down, across = np.triu_indices(value.shape[-1])
        return value[..., down, across].flatten(order="F").astype(float)
    if attributes.get("sparsity"):
        return np.asarray(value[variable.sparse_idx], float)
    return value.flatten(order="F").astype(float)


def _rows(reduction: CvxpyReduction) -> tuple[FloatArray, Mask]:
    """The dual values of the problem's constraints in the rows of the cone program."""
    m = reduction.arguments["cones"].size
    ones = _duals_of(reduction, np.ones(m))
    counted = _duals_of(reduction, np.arange(1.0, m + 1))
    y = np.zeros(m)
    known = np.zeros(m, dtype=bool)
    for constraint in reduction.problem.constraints:
        held = _held(constraint)
        factor = ones.get(constraint.id)
        count = counted.get(constraint.id)
        if held is None or factor is None or count is None or held.shape != factor.shape:
            continue
        with np.errstate(all="ignore"):
            place = count / factor - 1
            value = held / factor
        whole = np.isfinite(place) & np.isfinite(value) & (np.abs(place - np.round(place)) < 1e-6)
        rows = np.round(place[whole]).astype(int)
        inside = (rows >= 0) & (rows < m)
        y[rows[inside]] = value[whole][inside]
        known[rows[inside]] = True
    return y, known


def _duals_of(reduction: CvxpyReduction, y: FloatArray) -> dict[int, FloatArray]:
    """What CVXPY makes of multipliers of the cone program, constraint by constraint."""
    zeros = np.zeros(reduction.conic.data["c"].size)
    answer = reduction.conic.answer("optimal", zeros, y)
    solution = reduction.chain.invert(answer, reduction.inverse)
    found = {}
    for constraint in reduction.problem.constraints:
        if constraint.id not in solution.dual_vars:
            continue
        before = [variable.value for variable in constraint.dual_variables]
        constraint.save_dual_value(solution.dual_vars[constraint.id])
        held = _held(constraint)
        for variable, value in zip(constraint.dual_variables, before, strict=True):
            variable.save_value(value)
        if held is not None:
            found[constraint.id] = held
    return found


def _held(constraint: Any) -> FloatArray | None:
    """All dual values that a constraint holds, in one vector; None where one is missing."""
    values = [variable.value for variable in constraint.dual_variables]
    if any(value is None for value in values):
        return None
    parts = [np.ravel(np.asarray(value)) for value in values]
    return np.concatenate(parts) if not any(map(np.iscomplexobj, parts)) else None
