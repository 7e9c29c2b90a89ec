"""The programs that refute claims: they run with Python alone, and refute nothing that is harmless."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from klopt.papers.theorems.cases import rational, surely_above
from klopt.papers.theorems.catalogue import select
from klopt.papers.theorems.export import program

FOLDER = Path(__file__).parents[1] / "docs" / "refutations"
PROGRAMS = sorted(FOLDER.glob("*.py"))
QUICK = [path for path in PROGRAMS if path.stem.endswith(("eq5", "eq2", "-trace", "-eq10", "-sdp"))]
# The same numbers do no harm: none at all, ones, and opposite signs.
HARMLESS = ("0 * x", "0 * x + 1", "-x", "x + 1", "x / 1000", "abs(x)", "100 * x + 1")


FAIL_EVERYWHERE = {
    "kundu2010-theorem3.2-step",
    "mao2010-ridge",
    "pan2016-definite",
    "pan2016-eq29-floats",
    "pan2016-eq31",
}
"""Claims for which no change of one entry was found that makes them true."""
NO_INSTANCE = {
    "kundu2010-algorithm1",
    "liu2020-figure5c",
    "pan2016-theorem1",
    "xie2017-lemma1",
}
"""Claims for which the changes that refute nothing make numbers of which the claim says nothing."""


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def outcome(text: str) -> str:
    """What a changed program prints at its end; the error where it has no answer."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "<changed>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is not None:
            return str(end.code)
    except Exception as error:
        return type(error).__name__
    return out.getvalue().splitlines()[-1]


def changed(text: str, entry: str, to: str) -> str:
    """The program with every number of an entry replaced."""
    line = (
        f"def other(x): return Array(map(other, x)) if isinstance(x, list) else {to}\n"
        f"CASE[{entry!r}] = other(CASE[{entry!r}])\n"
    )
    if "class Array" not in text:
        line = line.replace("Array(map(other, x))", "list(map(other, x))")
    at = text.index("\n}\n", text.index("CASE = {")) + 3
    return text[:at] + line + text[at:]


def entries(text: str) -> list[str]:
    block = text[text.index("CASE = {") :]
    return re.findall(r"^    '(\w+)':", block[: block.index("\n}\n")], re.MULTILINE)


def test_most_claims_that_fail_have_a_program() -> None:
    failing = {
        claim.name
        for claim in select((), None)
        if claim.expected.name in ("CORRECTED", "PROVEN_CORRECTED", "REFUTED")
        and not claim.is_remark
    }
    assert {path.stem for path in PROGRAMS} <= failing
    assert len(PROGRAMS) >= 64


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_a_program_refutes_its_claim(path: Path) -> None:
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "REFUTED"
    assert "Claim: " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_refutes_its_claim(path: Path) -> None:
    test_a_program_refutes_its_claim(path)


def is_harmless(found: str) -> bool:
    """Whether a changed program refutes nothing: the claim holds there."""
    return found == "not refuted"


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_harmless_numbers_refute_nothing(path: Path) -> None:
    text = path.read_text()
    assert outcome(text) == "REFUTED"
    # Some change of some entry leaves an instance on which the claim holds.
    tried = ((entry, to) for entry in entries(text) for to in HARMLESS)
    assert any(is_harmless(outcome(changed(text, entry, to))) for entry, to in tried)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_harmless_numbers_refute_nothing_in_every_program(path: Path) -> None:
    if path.stem in FAIL_EVERYWHERE | NO_INSTANCE:
        pytest.skip("no harmless instance is known")
    test_harmless_numbers_refute_nothing(path)


def test_numbers_that_are_no_instance_are_said_to_be_none() -> None:
    for name in sorted(NO_INSTANCE):
        text = (FOLDER / f"{name}.py").read_text()
        tried = (outcome(changed(text, e, to)) for e in entries(text) for to in HARMLESS)
        assert any(found.startswith("not refuted: no instance") for found in tried)


def test_the_programs_are_short() -> None:
    sizes = [len(path.read_text().splitlines()) for path in PROGRAMS]
    assert sum(size <= 60 for size in sizes) >= 45
    assert max(sizes) <= 125


def test_both_sides_are_those_of_the_check() -> None:
    (claim,) = select(("mao2010-eq5",), None)
    assert claim.example is not None
    assert claim.exact is not None
    text = program(claim, claim.example)
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        exec(compile(text, "<program>", "exec"), names)
    sides = claim.exact(rational(claim.example))
    assert (names["left"], names["right"]) == sides
    assert surely_above(*map(Fraction, sides))
    assert len(text.splitlines()) <= 60


def test_imports_are_of_the_standard_library() -> None:
    for path in PROGRAMS:
        found = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE))
        assert found <= set(sys.stdlib_module_names)
