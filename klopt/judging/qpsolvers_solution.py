"""A `Solution` of qpsolvers, which holds its problem.

qpsolvers minimises x'Px/2 + q'x subject to Gx <= h, Ax = b, lb <= x <= ub. Its multipliers z and y
have klopt's signs; z_box is that of the upper bound where it is positive, and minus that of the
lower one where it is negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.result import Result
from klopt.judging.given import Claim, expected_arrays, judged
from klopt.judging.named_arrays import require_shape
from klopt.model.backend import Settings, Stop
from klopt.model.problem import Point
from klopt.problems import QCQP

__all__ = ["judge_solution"]


def judge_solution(solution: Any, *, settings: Settings) -> Result:
    """Return what is proven of a solution of a quadratic program.

    Parameters
    ----------
    solution
        What `qpsolvers.solve_problem` returned.
    settings
        The tolerance and the time limit.

    >>> import qpsolvers
    >>> problem = qpsolvers.Problem(np.eye(2), -np.ones(2))
    >>> solution = qpsolvers.Solution(problem, found=True, x=np.ones(2))
    >>> judge_solution(solution, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    given = solution.problem
    n = np.size(given.q)
    low = np.full(n, -np.inf) if given.lb is None else given.lb
    high = np.full(n, np.inf) if given.ub is None else given.ub
    problem = QCQP(
        given.P,
        given.q,
        A_ub=_two_dimensional(given.G),
        b_ub=given.h,
        A_eq=_two_dimensional(given.A),
        b_eq=given.b,
        bounds=np.column_stack((low, high)),
    )
    shapes: dict[str, tuple[int, ...]] = {}
    for part in expected_arrays(problem):
        shapes |= dict(part)
    primal = _present({"x": solution.x}, shapes)
    dual = _present({"ub": solution.z, "eq": solution.y}, shapes)
    box = _present({"upper": solution.z_box}, shapes).get("upper")
    if box is not None:
        dual |= {"upper": np.maximum(box, 0.0), "lower": np.maximum(-box, 0.0)}
    stop = Stop.OPTIMAL if solution.found else Stop.NUMERICAL
    native = "found" if solution.found else "not found"
    claim = Claim(Point(primal, dual), stop, f"qpsolvers: {native}")
    return judged(problem, claim, settings)


def _two_dimensional(matrix: Any) -> Any:
    """One row may be given as a vector."""
    return np.atleast_2d(matrix) if isinstance(matrix, np.ndarray) else matrix


def _present(arrays: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """The arrays that there are, each of the size that the problem asks for."""
    found = {}
    for name, value in arrays.items():
        if value is not None and np.size(value):
            found[name] = np.asarray(value, dtype=float)
            require_shape(name, found[name], shapes[name])
    return found
