"""The point of a problem from what a user has: one vector, arrays by name, a `Point` or a `Result`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, reals
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.judging.given import Claim, expected_arrays, judged
from klopt.model.backend import Settings
from klopt.model.problem import Point, Problem

__all__ = ["Arrays", "judge_point", "require_shape"]

Arrays: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

OF_BOUNDS = ("lower", "upper")
"""The multipliers that one vector may leave out: the rows' own determine them."""


def judge_point(
    problem: Problem,
    x: Arrays | Point | Result | None = None,
    y: Arrays | None = None,
    *,
    settings: Settings,
) -> Result:
    """Return what is proven of a point of a klopt problem.

    Parameters
    ----------
    problem
        What the verdict is about.
    x
        The solution: a vector where the problem has one array, arrays by name, a `Point` or a
        `Result`. None where there are multipliers alone.
    y
        Its multipliers: arrays by name, or one vector in the order of `klopt.solve(problem).duals`,
        those of bounds left out or last. None where there are none.
    settings
        The tolerance and the time limit.

    >>> from klopt.engine.registry import problem_named
    >>> lp = problem_named("LP")(c=[1.0, 2.0], A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    >>> result = judge_point(lp, [1.0, 0.0], [1.0], settings=Settings())
    >>> result.verdict.name, round(result.lower, 9), round(result.upper, 9)
    ('OPTIMAL', 1.0, 1.0)
    """
    if isinstance(x, Result):
        if x.point is None:
            raise InvalidProblem("the result that was given has no point")
        x = x.point
    if isinstance(x, Point) and y is None:
        return judged(problem, Claim(_checked_point(problem, x)), settings)
    if isinstance(x, Point):
        x = x.primal
    if x is None and y is None:
        raise InvalidProblem(
            f"an answer to {problem.describe()} needs a point x, multipliers y or both"
        )
    primal_shapes, dual_shapes = expected_arrays(problem)
    primal = {} if x is None else _named("x", x, primal_shapes)
    dual = {} if y is None else _named("y", y, dual_shapes)
    return judged(problem, Claim(Point(primal, dual)), settings)


def _checked_point(problem: Problem, point: Point) -> Point:
    """A point whose arrays have the shapes that the problem asks for; it may hold others as well."""
    for shapes in expected_arrays(problem):
        for name, shape in shapes.items():
            if name in tuple(point):
                require_shape(name, getattr(point, name), shape)
    return point


def _named(argument: str, given: Arrays, shapes: Shapes) -> dict[str, FloatArray]:
    """What was given by the names of the problem's arrays, each of the right shape.

    Parameters
    ----------
    argument
        What messages call it: x or y.
    given
        One vector, or arrays by name.
    shapes
        The arrays that the problem's solutions have.
    """
    if isinstance(given, Mapping):
        arrays = {str(name): reals(str(name), value) for name, value in given.items()}
    else:
        arrays = _split(argument, reals(argument, given), shapes)
    for name, array in arrays.items():
        # Problems with closed forms alone do not say which arrays they have.
        if not shapes:
            continue
        if name not in shapes:
            near = difflib.get_close_matches(name, shapes, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(shapes) or "no arrays"
            raise InvalidProblem(f"{argument} has {name!r}; this problem has {known}{hint}")
        require_shape(name, array, shapes[name])
    return {name: array.astype(np.float64) for name, array in arrays.items()}


def _split(argument: str, values: FloatArray, shapes: Shapes) -> dict[str, FloatArray]:
    """One vector as the problem's arrays: the only one, or all of them one after the other."""
    if not shapes:
        raise InvalidProblem(
            f"{argument} is one array, and this problem does not say what its arrays are called; "
            "give them by name, as in klopt.solve(problem).point"
        )
    if argument == "x":
        return {next(iter(shapes)): values}
    flat = values.ravel()
    for names in (tuple(shapes), tuple(name for name in shapes if name not in OF_BOUNDS)):
        sizes = [int(np.prod(shapes[name])) for name in names]
        if flat.size == sum(sizes):
            parts = np.split(flat, np.cumsum(sizes)[:-1])
            return {
                name: part.reshape(shapes[name]) for name, part in zip(names, parts, strict=True)
            }
    expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    raise InvalidProblem(
        f"y has {flat.size} entries; the multipliers of this problem are {expected}: "
        "give them by name, or all in this order"
    )


def require_shape(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse an array of an answer that has another shape than the problem's."""
    if array.shape != shape:
        raise InvalidProblem(f"{name} of the answer has shape {array.shape}; expected {shape}")
