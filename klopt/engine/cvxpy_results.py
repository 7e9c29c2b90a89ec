"""Results handed back to CVXPY: values, duals, and a status that claims no more than is proven."""

from __future__ import annotations

from klopt.engine.result import Result
from klopt.model.backend import Stop
from klopt.programs.cvxpy_reduction import CvxpyReduction
from klopt.proof.certificate import Verdict

__all__ = ["cvxpy_status", "hand_back"]

PROVEN = {
    Verdict.OPTIMAL: "optimal",
    Verdict.INFEASIBLE: "infeasible",
    Verdict.UNBOUNDED: "unbounded",
}
CLAIMED = {
    Stop.INFEASIBLE: "infeasible_inaccurate",
    Stop.UNBOUNDED: "unbounded_inaccurate",
    Stop.INFEASIBLE_OR_UNBOUNDED: "infeasible_or_unbounded",
}
LIMITS = (Stop.TIME_LIMIT, Stop.ITERATION_LIMIT, Stop.INTERRUPTED)


def cvxpy_status(result: Result) -> str:
    """Return CVXPY's word for a result: `optimal`, `infeasible` and `unbounded` only where proven.

    What is not proven is called inaccurate, or a limit reached, or an error.
    """
    if result.verdict in PROVEN:
        return PROVEN[result.verdict]
    if result.stop in CLAIMED:
        return CLAIMED[result.stop]
    if result.point is None:
        return _inaccurate(result)
    return "user_limit" if result.stop in LIMITS else "optimal_inaccurate"


def _inaccurate(result: Result) -> str:
    """The word for a result without a point: a vector may show that there is none, almost."""
    answer = result.attempts[-1].answer
    if answer.farkas is not None:
        return CLAIMED[Stop.INFEASIBLE]
    if answer.ray is not None:
        return CLAIMED[Stop.UNBOUNDED]
    return "solver_error"


def hand_back(reduction: CvxpyReduction, result: Result) -> None:
    """Set values, duals and status of the CVXPY problem."""
    x = None if result.point is None else result.point.primal["x"]
    reduction.unpack(cvxpy_status(result), x, result.duals.get("y"))
