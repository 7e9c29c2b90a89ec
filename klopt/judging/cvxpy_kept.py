"""What CVXPY keeps after a solve: the cone program it compiled, and its solver's own solution.

The compiled program is that of the solver that was used. Its rows are brought to klopt's conventions,
s = b - Ax in zero, nonnegative, second-order, exponential and power cones, without rounding and
without compiling again. Programs with semidefinite cones are compiled anew: CVXPY multiplies their
rows by sqrt(2), which rounds them.

Solvers that leave their solution behind do so in two places: `problem.solver_stats.extra_stats` and
the cache from which CVXPY warm-starts. Both hold all columns and rows, auxiliary ones included, and
mostly the certificate of a program that is infeasible or unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.cones import Cones
from klopt.programs.cvxpy_reduction import ConicData, CvxpyReduction

__all__ = ["KeptSolution", "kept_reduction", "kept_solution"]

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KeptSolution:
    """A solver's own solution of the cone program that CVXPY compiled for it.

    Parameters
    ----------
    x
        The columns; of a program without an optimum the direction that the solver returned.
    y
        The multipliers of the rows; of a program without an optimum those of a contradiction.
    """

    x: FloatArray | None
    y: FloatArray | None


# The compiled program


def kept_reduction(problem: Any) -> CvxpyReduction | None:
    """Return the reduction for the solver that was used last; None where it must be made again.

    >>> import cvxpy
    >>> x = cvxpy.Variable(2)
    >>> problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(x - 2)), [x <= 1])
    >>> kept_reduction(problem) is None
    True
    >>> value = problem.solve(solver="CLARABEL")
    >>> kept_reduction(problem).arguments["cones"].soc
    (3,)
    """
    cache = problem._cache
    program = cache.param_prog
    chain = cache.solving_chain
    if program is None or chain is None or cache.gp():
        return None
    dims = program.cone_dims
    # Cones on variables themselves are a novelty of CVXPY that klopt does not read.
    if dims.psd or getattr(program, "dir_cones", None):
        return None
    is_linear = not (dims.soc or dims.exp or dims.p3d or getattr(dims, "pnd", ()))
    if not program.formatted and not is_linear:
        return None
    order = getattr(chain.solver, "EXP_CONE_ORDER", None)
    if dims.exp and (order is None or not program.formatted):
        return None

    # As CVXPY does before it solves again with other parameters.
    for reduction in chain.reductions:
        reduction.update_parameters(problem)
    data: dict[str, Any] = {"dims": dims, "param_prob": program, "P": None}
    if program.P is None:
        data["c"], offset, A, b = program.apply_parameters()
    else:
        data["P"], data["c"], offset, A, b = program.apply_parameters(quad_obj=True)
    A = -A
    if not program.formatted:
        # Equations Ax + b = 0 that were not formatted for a conic solver have the other sign.
        sign = np.ones(b.size)
        sign[: dims.zero] = -1.0
        A = A.multiply(sign[:, None])
        b = b * sign
    if dims.exp and order is not None and list(order) != [0, 1, 2]:
        rows = _exponential_rows(dims, order)
        A = A.tocsr()[rows]
        b = b[rows]
    data["A"] = A
    data["b"] = b
    inverse = [*cache.inverse_data, {"offset": offset}]
    return CvxpyReduction(problem, ConicData(data, svec=True), chain, inverse)


def _exponential_rows(dims: Any, order: Any) -> Indices:
    """The rows as CVXPY has them, for each row of klopt's: order[i] is where argument i stands."""
    start = dims.zero + dims.nonneg + sum(dims.soc)
    size = start + 3 * dims.exp + 3 * len(dims.p3d)
    size += sum(len(weights) + 1 for weights in getattr(dims, "pnd", ()))
    rows = np.arange(size, dtype=np.intp)
    cones = start + 3 * np.arange(dims.exp, dtype=np.intp)
    for place in range(3):
        rows[cones + place] = cones + order[place]
    return rows


def _lower_triangles(cones: Cones) -> Indices:
    """The rows of Clarabel, upper triangles column by column, for each row of klopt's."""
    rows = np.arange(cones.size, dtype=np.intp)
    orders = iter(order for order in cones.psd if order)
    for kind, block in cones.blocks():
        if kind != "psd":
            continue
        order = next(orders)
        # Entry (i, j) with i <= j stands at j (j + 1) / 2 + i of the upper triangle.
        j, i = np.triu_indices(order)[::-1]
        rows[block] = block.start + j * (j + 1) // 2 + i
    return rows


# The solver's own solution


def kept_solution(problem: Any, reduction: CvxpyReduction) -> KeptSolution | None:
    """Return the solver's own solution in klopt's rows; None where there is none that fits.

    Parameters
    ----------
    problem
        A `cvxpy.Problem` after `problem.solve(...)`.
    reduction
        What `kept_reduction` has returned, or the reduction for klopt.
    """
    stats = problem.solver_stats
    if stats is None or stats.solver_name not in READERS:
        return None
    try:
        found = READERS[stats.solver_name](problem)
    except (AttributeError, LookupError, TypeError, ValueError):
        # Another version of a solver keeps another thing, or nothing.
        return None
    if found is None:
        return None
    x = _vector(found.x)
    y = _vector(found.y)
    data = reduction.conic.data
    if x is not None and x.shape != data["c"].shape:
        return None
    if y is not None:
        if y.shape != data["b"].shape:
            return None
        order = getattr(problem._cache.solving_chain.solver, "EXP_CONE_ORDER", None)
        if data["dims"].exp and order is not None and list(order) != [0, 1, 2]:
            y = y[_exponential_rows(data["dims"], order)]
        if data["dims"].psd and stats.solver_name == "CLARABEL":
            y = y[_lower_triangles(reduction.arguments["cones"])]
        direction = x is not None and problem.status not in ("optimal", "optimal_inaccurate")
        y = reduction.conic.with_bound_multipliers(None if direction else x, y)
    return KeptSolution(x, y)


def _vector(value: object) -> FloatArray | None:
    """A vector of finite numbers; None where there is none."""
    if value is None:
        return None
    found = np.array(value, float).ravel()
    return found if found.size and np.isfinite(found).all() else None


def _of_clarabel(problem: Any) -> KeptSolution | None:
    solution = problem._solver_cache["CLARABEL"].get_solution()
    return KeptSolution(solution.x, solution.z)


def _of_scs(problem: Any) -> KeptSolution | None:
    raw = problem.solver_stats.extra_stats
    return KeptSolution(raw["x"], raw["y"])


def _of_ecos(problem: Any) -> KeptSolution | None:
    raw = problem.solver_stats.extra_stats
    # Equations and cones apart; either may be missing.
    parts = [np.ravel(raw[name]) for name in ("y", "z") if raw[name] is not None]
    return KeptSolution(raw["x"], np.concatenate(parts))


def _of_osqp(problem: Any) -> KeptSolution | None:
    raw = problem.solver_stats.extra_stats
    if problem.status.startswith("infeasible"):
        return KeptSolution(None, raw.prim_inf_cert)
    if problem.status.startswith("unbounded"):
        return KeptSolution(raw.dual_inf_cert, None)
    return KeptSolution(raw.x, raw.y)


def _of_piqp(problem: Any) -> KeptSolution | None:
    raw = problem.solver_stats.extra_stats["solution"]
    z = raw.z if hasattr(raw, "z") else raw.z_u
    return KeptSolution(raw.x, np.concatenate((np.ravel(raw.y), np.ravel(z))))


def _of_proxqp(problem: Any) -> KeptSolution | None:
    raw = problem.solver_stats.extra_stats["solution"]
    return KeptSolution(raw.x, np.concatenate((np.ravel(raw.y), np.ravel(raw.z))))


def _of_highs(problem: Any) -> KeptSolution | None:
    solver, _, raw = problem._solver_cache["HIGHS"]
    if problem.status == "infeasible":
        has_ray, multipliers = raw["dual_ray"][1:3]
        return KeptSolution(None, -np.array(multipliers)) if has_ray else None
    if problem.status == "unbounded":
        has_ray, direction = solver.getPrimalRay()[1:3]
        return KeptSolution(direction, None) if has_ray else None
    if problem.status != "optimal":
        return None
    solution = raw["solution"]
    return KeptSolution(solution.col_value, -np.array(solution.row_dual))


def _of_klopt(problem: Any) -> KeptSolution | None:
    point = problem.solver_stats.extra_stats["result"].point
    return KeptSolution(point.primal["x"], point.dual["y"])


READERS: dict[str, Callable[[Any], KeptSolution | None]] = {
    "CLARABEL": _of_clarabel,
    "SCS": _of_scs,
    "ECOS": _of_ecos,
    "OSQP": _of_osqp,
    "PIQP": _of_piqp,
    "PROXQP": _of_proxqp,
    "HIGHS": _of_highs,
    "KLOPT": _of_klopt,
}
"""How the solution of each solver is read, by CVXPY's name for it."""
