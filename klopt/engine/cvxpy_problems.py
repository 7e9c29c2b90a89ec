"""Problems of CVXPY as klopt's cone programs."""

from __future__ import annotations

from typing import Any, cast

from klopt.engine.registry import problem_named
from klopt.model.problem import Problem
from klopt.programs.cvxpy_reduction import (
    CvxpyProblem,
    CvxpyReduction,
    is_cvxpy_problem,
    reduced_by_cvxpy,
)

__all__ = ["as_problem", "cone_program"]


def as_problem(given: Problem | CvxpyProblem) -> Problem:
    """Return the cone program of a CVXPY problem, and anything else as it is."""
    if is_cvxpy_problem(given):
        return cone_program(reduced_by_cvxpy(given))
    return cast(Problem, given)


def cone_program(reduction: CvxpyReduction) -> Problem:
    """Return what CVXPY has reduced its problem to as one of klopt's problems."""
    make: Any = problem_named("ConeProgram")
    problem: Problem = make(**reduction.arguments)
    return problem
