"""The claims of the papers as properties: Hypothesis draws the instance, the registered verdict says what must hold.

`KLOPT_HYPOTHESIS=thorough` makes 500 new instances of each; by default a few, the same ones each
run.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.strategies import DataObject
from strategies import at_most

from klopt.engine.pipeline import solve
from klopt.engine.planner import plan
from klopt.engine.registry import problems
from klopt.model.problem import Problem
from klopt.papers.theorems.catalogue import claims
from klopt.papers.theorems.claim import Claim, Outcome
from klopt.papers.theorems.verification import examine

CHECKED = [claim for claim in claims() if claim.printed is not None]
TRUE = [claim for claim in CHECKED if claim.expected in (Outcome.HOLDS, Outcome.PROVEN)]
MENDED = (Outcome.CORRECTED, Outcome.PROVEN_CORRECTED)
CORRECTED = [claim for claim in CHECKED if claim.expected in MENDED]
FALSE = [claim for claim in CHECKED if claim.expected in (Outcome.REFUTED, *MENDED)]
EXACT = [claim for claim in FALSE if claim.exact is not None]
AGREE = 1e-5


def name(claim: Claim) -> str:
    return claim.name


def instance(claim: Claim, data: DataObject) -> dict[str, object]:
    """A case of the claim that meets its premise."""
    assert claim.draw is not None
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    case = dict(claim.draw(rng, data.draw(st.sampled_from(claim.sizes), label="size")))
    assume(claim.meets is None or claim.meets(case))
    return case


def budget(claim: Claim) -> settings:
    """Few instances of what is costly to check."""
    return at_most(claim.most or settings().max_examples)


@pytest.mark.parametrize("claim", TRUE, ids=name)
def test_what_is_said_to_hold_is_never_refuted(claim: Claim) -> None:
    @budget(claim)
    @given(st.data())
    def law(data: DataObject) -> None:
        assert claim.printed is not None
        assert not claim.printed(instance(claim, data)).fails

    law()


@pytest.mark.parametrize("claim", CORRECTED, ids=name)
def test_a_correction_is_never_refuted(claim: Claim) -> None:
    if claim.example is not None and claim.meets is not None and claim.most == 1:
        pytest.skip("speaks of one instance, which the next test takes")

    @budget(claim)
    @given(st.data())
    def law(data: DataObject) -> None:
        assert claim.corrected is not None
        assert not claim.corrected(instance(claim, data)).fails

    law()


def test_no_refutation_rests_on_floats() -> None:
    assert [claim.name for claim in FALSE if claim not in EXACT] == []


@pytest.mark.parametrize("claim", CHECKED, ids=name)
def test_the_verdict_is_the_registered_one(claim: Claim) -> None:
    found = examine(claim, min(settings().max_examples, 12), seed=11)
    assert found.outcome is claim.expected, found.trouble
    assert (found.counterexample is not None) == (claim in FALSE)
    assert found.proven == (claim in EXACT)  # the counterexample survives exact arithmetic


@pytest.mark.slow  # quicker, with other instances, in test_problems.py: forms_agree
@pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem.__name__)
def test_formulations_are_equivalent(problem: type[Problem]) -> None:
    """Every formulation, by the first backend that takes it, brackets the same optimum."""

    @at_most(3)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 9))
    def law(seed: int, size: int) -> None:
        declared = problem.sample(np.random.default_rng(seed), size)
        first: dict[str, object] = {}
        for route in plan(declared).routes:
            first.setdefault(route.formulation.name, route.backend)
        # A slow method need not reach the tolerance: what it has proven when its time is over must
        # still be true.
        found = [
            solve(declared, b, formulation=f, tol=AGREE, time_limit=1.0) for f, b in first.items()
        ]  # type: ignore[arg-type]
        lower, upper = max(result.lower for result in found), min(result.upper for result in found)
        assert lower <= upper + AGREE * (1 + abs(upper))

    law()
