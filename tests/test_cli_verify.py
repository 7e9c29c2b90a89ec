"""`klopt verify`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from klopt.cli.main import main

VERDICTS = {
    "HOLDS",
    "HOLDS AS CORRECTED",
    "REFUTED",
    "PREMISE NOT MET",
    "INCONCLUSIVE",
    "NOT CHECKABLE",
}
WRONGLY_REGISTERED = """
import klopt
from klopt.papers.theorems.evidence import at_most

@klopt.theorem("half", number="1", says="|a| <= |a| / 2", draw=lambda rng, n: {"a": float(rng.normal())}, whole=("a",),
               latex="|a|\\\\le|a|/2", exact=lambda case: (abs(case["a"]), abs(case["a"]) / 2))
def half(case):
    return at_most(abs(case["a"]), abs(case["a"]) / 2)

@klopt.theorem("whole", number="2", says="|a| <= |a|", draw=lambda rng, n: {"a": float(rng.normal())})
def whole(case):
    return at_most(abs(case["a"]), abs(case["a"]))
"""


def klopt(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with its output piped."""
    code = "from klopt.cli.main import main; main(prog_name='klopt')"
    environment = {
        name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}
    }
    words = [sys.executable, "-c", code, "verify", *map(str, arguments)]
    return subprocess.run(
        words, capture_output=True, text=True, env=environment | {"TERM": "xterm"}, timeout=600
    )


def findings(*arguments: object) -> list[dict[str, Any]]:
    """What `klopt verify --json` finds."""
    done = klopt(*arguments, "--json")
    assert done.exit_code in (0, 1), done.output
    found = json.loads(done.stdout)["findings"]
    assert isinstance(found, list)
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(WRONGLY_REGISTERED)
    return path


def test_the_table_has_one_row_a_claim_with_its_verdict() -> None:
    done = process("001-A5", "004-3", "004-19", "--trials", 3)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"001-A5 .*REFUTED, exact", done.stdout)
    assert re.search(r"004-3 .*HOLDS AS CORRECTED, exact", done.stdout)
    assert re.search(r"004-19 .*NOT CHECKABLE", done.stdout)
    said = " ".join(done.stdout.split())
    assert "1 HOLDS AS CORRECTED, 1 REFUTED, 1 NOT CHECKABLE; 0 unexpected" in said
    assert "it does not prove it" in said


def test_the_document_holds_what_the_table_shows_and_more() -> None:
    refuted, holds = findings("001-A5", "004-1", "--trials", 3)
    assert (refuted["claim"], refuted["verdict"], refuted["exact"]) == ("001-A5", "REFUTED", True)
    assert refuted["printed"] > 1
    assert refuted["correction"]
    assert refuted["source"].startswith("klopt.papers.theorems.kundu2010.claims:")
    assert set(refuted["counterexample"]) >= {"K", "other", "C"}
    assert (holds["verdict"], holds["trials"], holds["counterexample"]) == ("HOLDS", 3, None)
    assert holds["printed"] <= 1


def test_a_paper_is_all_of_its_claims_and_no_other() -> None:
    found = findings("--paper", "002", "--trials", 1)
    assert {finding["paper"] for finding in found} == {"002"}
    assert {finding["verdict"] for finding in found} <= VERDICTS
    assert [finding["claim"] for finding in found[:2]] == ["002-1", "002-2"]
    assert len(found) >= 21


def test_the_list_names_every_paper_and_checks_nothing() -> None:
    done = klopt("--list")
    assert done.exit_code == 0
    papers = {word[:3] for word in re.findall(r"^ *(\d{3}-\w+)", done.stdout, flags=re.MULTILINE)}
    assert papers >= {"000", "001", "002", "003", "004"}
    assert "REFUTED" not in done.stdout


def test_a_saved_counterexample_replays(tmp_path: Path) -> None:
    assert klopt("001-A5", "004-1", "--trials", 2, "--save", tmp_path / "cases").exit_code == 0
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["001-A5.json"]
    done = klopt("001-A5", "--case", tmp_path / "cases" / "001-A5.json")
    assert done.exit_code == 0, done.output
    assert re.search(r"001-A5 .*REFUTED, exact", done.stdout)


def test_a_case_of_another_claim_is_exit_code_2(tmp_path: Path) -> None:
    klopt("001-A5", "--trials", 1, "--save", tmp_path)
    done = klopt("004-3", "--case", tmp_path / "001-A5.json")
    assert done.exit_code == 2
    assert "is a case of '001-A5'" in " ".join(done.output.split())


def test_a_verdict_that_differs_from_the_registered_one_is_exit_code_1(mine: Path) -> None:
    done = klopt(mine, "--trials", 5)
    assert done.exit_code == 1, done.output
    assert re.search(r"half .*REFUTED, exact  \(!\)", done.stdout)
    assert re.search(r"unexpected +half: registered as HOLDS", done.stdout)
    assert re.search(r"whole .*HOLDS", done.stdout)


def test_the_counterexample_of_a_claim_of_ones_own_replays(mine: Path, tmp_path: Path) -> None:
    assert klopt(mine, "--trials", 5, "--save", tmp_path).exit_code == 1
    case = json.loads((tmp_path / "half.json").read_text())
    assert case["claim"] == "half"
    assert case["case"]["a"] == int(case["case"]["a"])  # shrunk to a whole number
    assert klopt(mine, "--case", tmp_path / "half.json").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("004-3x",), "did you mean '004-3'"),
        (("nothing-like-it",), "--list shows them all"),
        (("--paper", "999"), "no claim of paper '999'"),
        (("absent.py",), "no file absent.py"),
        (("004-3", "--case", "absent.json"), "absent.json"),
        (("004-3", "--trials", "0"), "--trials"),
        (("--jbos", "2"), "--jobs"),
    ],
)
def test_a_call_that_cannot_be_is_exit_code_2_and_says_why(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = klopt(*arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_seed_makes_the_same_run_and_another_seed_another() -> None:
    first, again, other = (
        findings("004-1", "001-A12", "--trials", 4, "--seed", seed) for seed in (3, 3, 4)
    )
    assert first == again
    assert [finding["printed"] for finding in first] != [finding["printed"] for finding in other]


@pytest.mark.slow
def test_processes_do_not_change_what_is_found() -> None:
    names = ("004-1", "001-A12", "001-A15", "--trials", 4)
    assert findings(*names) == findings(*names, "--jobs", 2)
