"""Results of SciPy's `linprog` and `milp`, judged with the arguments that were given to them.

A result holds the point and, of `linprog`, the marginals: the change of the optimum with each right
side. klopt's multipliers have the signs of a Lagrangian, all >= 0 but those of equations, so that

    ub = -ineqlin.marginals,  eq = -eqlin.marginals,  lower = lower.marginals,  upper = -upper.marginals.

What is judged of a program with integers is its relaxation, in which they may be any numbers. Its
optimum bounds the one over the integers; where the answer is optimal for the relaxation, it is so
for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import LinearConstraint

from klopt.arrays import FloatArray
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.judging.given import Claim, judged
from klopt.model.backend import Settings, Stop
from klopt.model.problem import Point
from klopt.problems import LP

__all__ = ["judge_linear"]

Matrix: TypeAlias = Any
"""An array or a sparse matrix, as SciPy takes them."""
Rows: TypeAlias = tuple[Matrix, FloatArray, FloatArray]
"""A and both sides of lower <= Ax <= upper."""

STOPS = {
    0: Stop.OPTIMAL,
    1: Stop.ITERATION_LIMIT,
    2: Stop.INFEASIBLE,
    3: Stop.UNBOUNDED,
    4: Stop.NUMERICAL,
}
"""What `status` means; of `milp` 1 is a limit of iterations or of time."""


def judge_linear(
    result: Any,
    c: npt.ArrayLike,
    A_ub: Matrix = None,
    b_ub: npt.ArrayLike | None = None,
    A_eq: Matrix = None,
    b_eq: npt.ArrayLike | None = None,
    bounds: Any = None,
    *,
    constraints: Any = None,
    integrality: npt.ArrayLike | None = None,
    settings: Settings,
) -> Result:
    """Return what is proven of a result of `linprog` or `milp`.

    Parameters
    ----------
    result
        What SciPy returned.
    c, A_ub, b_ub, A_eq, b_eq, bounds, integrality
        The arguments of `linprog` ...
    constraints
        ... or, with c, bounds and integrality, those of `milp`.
    settings
        The tolerance and the time limit.

    >>> from scipy.optimize import linprog
    >>> program = dict(c=[1.0, 2.0], A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    >>> judge_linear(linprog(**program), **program, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    if "ineqlin" in result:
        if constraints is not None:
            raise InvalidSettings(
                "a result of linprog is judged with A_ub, b_ub, A_eq, b_eq; constraints are milp's"
            )
        problem = LP(c, A_ub, b_ub, A_eq, b_eq, bounds)
    elif "mip_gap" in result:
        if any(each is not None for each in (A_ub, b_ub, A_eq, b_eq)):
            raise InvalidSettings(
                "a result of milp is judged with bounds and constraints; A_ub, b_ub, A_eq and b_eq "
                "are linprog's"
            )
        problem = _program(c, bounds, constraints)
    else:
        raise InvalidProblem(
            "this OptimizeResult is none of linprog or milp; klopt judges linear programs of SciPy"
        )
    x = result.get("x")
    primal = {} if x is None else {"x": _sized("x", x, problem.c.size)}
    status = int(result.get("status", 4))
    claim = Claim(
        Point(primal, _multipliers(result, problem)),
        STOPS.get(status, Stop.NUMERICAL),
        str(result.get("message", "")),
        _of_integers(problem, integrality, x),
    )
    return judged(problem, claim, settings)


def _multipliers(result: Any, problem: LP) -> dict[str, FloatArray]:
    """The marginals in klopt's signs, as far as there are any."""
    signs = {"ub": -1, "eq": -1, "lower": 1, "upper": -1}
    fields = {"ub": "ineqlin", "eq": "eqlin", "lower": "lower", "upper": "upper"}
    n = problem.c.size
    sizes = {"ub": problem.b_ub.size, "eq": problem.b_eq.size, "lower": n, "upper": n}
    found = {}
    for name, field in fields.items():
        part = result.get(field)
        marginals = None if part is None else part.get("marginals")
        if marginals is not None and np.size(marginals):
            given = _sized(f"{field}.marginals", marginals, sizes[name])
            found[name] = signs[name] * given
    return found


def _sized(name: str, given: npt.ArrayLike, size: int) -> FloatArray:
    """A vector of the right size, or the words that it belongs to another program."""
    array = np.asarray(given, dtype=float)
    if array.shape != (size,):
        raise InvalidProblem(
            f"{name} of the result has shape {array.shape}; the program asks for ({size},): "
            "give the arguments that the result was computed with"
        )
    return array


def _of_integers(problem: LP, integrality: npt.ArrayLike | None, x: Any) -> tuple[str, ...]:
    """What is to be said of variables that have to be integers."""
    if integrality is None:
        return ()
    kinds = np.broadcast_to(np.asarray(integrality), problem.c.shape)
    if (kinds > 1).any():
        raise InvalidProblem(
            "integrality has variables that may be 0 outside their bounds (2, 3); "
            "klopt judges programs whose relaxation only lets integers be any number (0, 1)"
        )
    if not kinds.any():
        return ()
    note = "judged is the relaxation: its optimum bounds that over the integers"
    if x is None:
        return (note,)
    integers = np.asarray(x, dtype=float)[kinds == 1]
    distance = float(np.abs(integers - np.round(integers)).max())
    return (note, f"the answer's integers are integers up to {distance:.1e}")


# The arguments of milp


def _program(c: npt.ArrayLike, bounds: Any, constraints: Any) -> LP:
    """The linear program that `milp` is given: lower <= Ax <= upper in both of its ways to say it."""
    n = np.size(c)
    blocks: list[Matrix] = []
    upper_sides: list[FloatArray] = []
    equations: list[Matrix] = []
    sides: list[FloatArray] = []
    for A, low, high in _rows(constraints, n):
        is_equation = low == high
        equations.append(A[is_equation])
        sides.append(low[is_equation])
        for sign, side in ((1.0, high), (-1.0, -low)):
            kept = ~is_equation & np.isfinite(side)
            blocks.append(sign * A[kept])
            upper_sides.append(side[kept])
    limits = _limits(bounds, n)
    if not blocks:
        return LP(c, bounds=limits)
    return LP(
        c,
        sparse.vstack(blocks),
        np.concatenate(upper_sides),
        sparse.vstack(equations),
        np.concatenate(sides),
        limits,
    )


def _rows(constraints: Any, n: int) -> Iterator[Rows]:
    """The rows of a `LinearConstraint`, of its arguments in a tuple, or of a list of either."""
    if constraints is None:
        return
    is_one = hasattr(constraints, "A") or (
        isinstance(constraints, tuple) and not hasattr(constraints[0], "A")
    )
    for each in [constraints] if is_one else constraints:
        one = each if hasattr(each, "A") else LinearConstraint(*each)
        A = sparse.csr_array(_two_dimensional(one.A))
        if A.shape[1] != n:
            raise InvalidProblem(f"constraints have {A.shape[1]} columns; c has {n} entries")
        sides = (np.asarray(side, dtype=float) for side in (one.lb, one.ub))
        low, high = (np.broadcast_to(side, A.shape[:1]) for side in sides)
        yield A, low, high


def _two_dimensional(A: Matrix) -> Matrix:
    return A if sparse.issparse(A) else np.atleast_2d(A)


def _limits(bounds: Any, n: int) -> FloatArray:
    """The bounds of the variables, x >= 0 by default, from `Bounds` or a pair of arrays."""
    low: npt.ArrayLike = 0.0
    high: npt.ArrayLike = np.inf
    if bounds is not None:
        if hasattr(bounds, "lb"):
            low, high = bounds.lb, bounds.ub
        elif isinstance(bounds, Sequence) and len(bounds) == 2:
            low, high = bounds
        else:
            raise InvalidProblem("bounds are no scipy.optimize.Bounds and no pair (lower, upper)")
    columns = [np.broadcast_to(np.asarray(side, dtype=float), (n,)) for side in (low, high)]
    return np.column_stack(columns)
