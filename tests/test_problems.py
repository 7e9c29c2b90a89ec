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
CASES = [
    pytest.param(
        name,
        body,
        id=f"{problem.__name__}-{name}",
        marks=[pytest.mark.slow] if name == "forms_agree" and problem.__name__ in LONG else [],
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
