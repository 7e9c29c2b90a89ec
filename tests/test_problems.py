"""Every discovered problem through the conformance suite, one test a check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from klopt.conformance.checks import Status, run_check
from klopt.conformance.problem_checks import problem_checks
from klopt.engine.registry import problems

LONG = {
    "SimilarityKernel",
    "SimilarityKernels",
    "SimilaritySpectra",
    "AdaptiveKernel",
    "AdaptiveKernelRegression",
}
"""Problems with semidefinite forms: their own tests compare these too, on smaller instances."""
MANY_ROUTES = {"ConeProgram", "QCQP", "SoftMargin", "EpsilonMargin"}
"""Problems that many backends solve as narrowly as they can, to look for ends that cross."""


def is_slow(name: str, problem: str) -> bool:
    """Whether a check of a problem takes more than a second or two; others of its kind are quick."""
    return (name == "forms_agree" and problem in LONG) or (
        name == "bracket_is_exact" and problem in LONG | MANY_ROUTES
    )


CASES = [
    pytest.param(
        name,
        body,
        id=f"{problem.__name__}-{name}",
        marks=[pytest.mark.slow] if is_slow(name, problem.__name__) else [],
    )
    for problem in problems()
    for name, body in problem_checks(problem)
]


@pytest.mark.parametrize(("name", "body"), CASES)
def test_problem(name: str, body: Callable[[], None]) -> None:
    check = run_check(name, body)
    if check.status is Status.SKIPPED:
        pytest.skip(check.detail)
    assert check.ok, check.detail
