"""Checks that can fail: with any number that it computes replaced by nonsense, a claim stops holding.

How the nonsense is made is in `theorem_mutants`.
"""

from __future__ import annotations

import pytest
from theorem_mutants import deciding, few_cases, holds, noticed, noticed_constants, survivors

from klopt.papers.theorems.catalogue import claims
from klopt.papers.theorems.claim import Claim, Outcome

SUPPORTED = (Outcome.HOLDS, Outcome.CORRECTED, Outcome.PROVEN, Outcome.PROVEN_CORRECTED)
# Claims that a proof alone decides have no check: test_proofs.py changes their constants.
HOLDING = [claim for claim in claims() if claim.expected in SUPPORTED and claim.printed is not None]
FEW = 2
MORE = 8
ANY_DATA = "makes the data; the statement is about any"
POINT_ONLY = "the point of the solve is used, its interval is not"
SLACK_CONSTANT = (
    "L is taken from the gradients of the run; that they are gradients is kundu2010-lemma3.1"
)
STEPS_ONLY = "the steps at which a run is measured"
SIZE_ONLY = "the size of the terms, by which rounding is judged"
UNUSED_B = "makes b, which this claim does not use"
EQUIVALENT = {
    "pan2016-theorem1": {"graph": ANY_DATA, "hull": ANY_DATA},
    "kundu2010-eq10-gamma": {"solve": POINT_ONLY},
    "kundu2010-steps": {"solve": POINT_ONLY},
    "kundu2010-algorithm1": dict.fromkeys(
        ("lipschitz", "_pair", "svm_optimum", "loss", "gradient", "plus", "eskl", "solve"),
        "makes the gradient and the step; the step of mirror descent is optimal for any",
    ),
    "kundu2010-theorem3.2-step": dict.fromkeys(
        ("middle", "initial_gradient_norm", "composed", "exponential"), SLACK_CONSTANT
    ),
    "kundu2010-theorem3.2": dict.fromkeys(
        ("middle", "initial_gradient_norm", "composed", "exponential"), SLACK_CONSTANT
    ),
    "xie2017-lemma2": {"indicators": UNUSED_B},
    "xie2017-nystroem": {"indicators": UNUSED_B},
    "mao2010-kta": {"laplacian": ANY_DATA},
    "mao2010-classes": {"laplacian": ANY_DATA, "spectrum_of": ANY_DATA},
    "liu2020-figure2-rank": {"solve": POINT_ONLY},
    "liu2020-algorithm1": {"marks": STEPS_ONLY},
    "liu2020-monotone": {"marks": STEPS_ONLY},
    "liu2020-nesterov-beta": {"marks": STEPS_ONLY},
    "liu2020-nesterov-rate": {"marks": STEPS_ONLY},
    "liu2020-algorithm2": {"marks": STEPS_ONLY},
    "liu2020-eq30": {"gamma": ANY_DATA, "weights": ANY_DATA},
    "liu2020-figure5c": {"solve": POINT_ONLY},
    "liu2020-prop9-down": {"sharp": SIZE_ONLY},
    "liu2020-prop9-up": {"sharp": SIZE_ONLY},
}
"""Functions whose nonsense changes nothing, because it is as good as sense: for each the reason."""


def takes_long(claim: Claim) -> bool:
    """Whether a check runs an algorithm that solves a problem in each step."""
    return claim.most is not None and 1 < claim.most <= 6


def parameter(claim: Claim) -> object:
    marks = [pytest.mark.slow] if takes_long(claim) else []
    return pytest.param(claim, id=claim.name, marks=marks)


@pytest.mark.parametrize("claim", [parameter(claim) for claim in HOLDING])
def test_a_check_notices_nonsense(claim: Claim) -> None:
    check = deciding(claim)
    cases = few_cases(claim, 1 if takes_long(claim) else FEW)
    assert holds(check, cases)
    number, alive = survivors(claim, cases)
    known = EQUIVALENT.get(claim.name, {})
    assert set(known) <= {name.rpartition(".")[2] for name in alive}  # no exception too many
    doubted = [name for name in alive if name.rpartition(".")[2] not in known]
    # Two cases may both be of a kind that bears it: a few more decide.
    more = few_cases(claim, FEW if takes_long(claim) else MORE) if doubted else []
    assert [name for name in doubted if not noticed(check, more, name)] == []
    if not number:
        assert noticed_constants(claim, cases)


def test_the_exceptions_are_of_claims_that_there_are() -> None:
    assert set(EQUIVALENT) <= {claim.name for claim in HOLDING}


def test_a_check_that_compares_a_number_with_itself_is_found_out() -> None:
    """The kind of check that this file is for: `overlap(I, I)`, whatever I is."""
    import theorem_mutants

    from klopt.papers.theorems.claim import theorem
    from klopt.papers.theorems.evidence import overlap
    from klopt.papers.theorems.liu2020 import quantities

    @theorem("vacuous", says="one value", draw=quantities.random_problem)
    def vacuous(case):  # type: ignore[no-untyped-def]
        best, _ = quantities.svm(case, case["K"])
        return overlap(best, best, tol=1e-6)

    number, alive = survivors(vacuous, few_cases(vacuous, FEW))
    assert number
    assert alive
    assert theorem_mutants.FUNCTIONS["liu2020.quantities.svm"] is quantities.svm
