"""The formulas of the claims: each becomes MathML that shows what the LaTeX says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")

from latex2mathml.converter import convert

from klopt.papers.theorems.catalogue import claims
from klopt.papers.theorems.claim import Claim

STATED = [claim for claim in claims() if claim.latex]


def texts(claim: Claim) -> list[tuple[str, str]]:
    """The tags and texts of a claim's formula."""
    parts = ElementTree.fromstring(convert(claim.latex, display="block")).iter()
    return [(part.tag.partition("}")[2], part.text or "") for part in parts]


@pytest.mark.parametrize("claim", STATED, ids=lambda claim: claim.name)
def test_every_formula_becomes_mathml_without_an_error(claim: Claim) -> None:
    found = texts(claim)
    assert found[0][0] == "math"
    assert "merror" not in {tag for tag, _ in found}


@pytest.mark.parametrize("claim", STATED, ids=lambda claim: claim.name)
def test_no_command_is_left_as_text(claim: Claim) -> None:
    assert [text for _, text in texts(claim) if "\\" in text] == []


@pytest.mark.parametrize("claim", STATED, ids=lambda claim: claim.name)
def test_braces_and_fences_of_a_formula_match(claim: Claim) -> None:
    # \{ and \} are signs, not groups.
    groups = claim.latex.replace(r"\{", "").replace(r"\}", "")
    assert groups.count("{") == groups.count("}")
    for left, right in ((r"\left", r"\right"), (r"\bigl", r"\bigr"), (r"\Bigl", r"\Bigr")):
        # \leftrightarrow and the like start with the same letters.
        opened, closed = (
            groups.replace(r"\Leftrightarrow", "").count(word) for word in (left, right)
        )
        assert opened == closed, claim.latex


def test_a_command_that_mathml_does_not_know_would_be_seen() -> None:
    unknown = Claim("x", "x", "1", "", r"\arg\min_x f", STATED[0].expected)
    assert any("\\" in text for _, text in texts(unknown))


def test_every_claim_that_is_checked_has_a_formula() -> None:
    assert [claim.name for claim in claims() if claim.printed is not None and not claim.latex] == []
