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
    "PROVEN",
    "PROVEN AS CORRECTED",
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
    done = process("kundu2010-eq5", "mao2010-eq5", "mao2010-ridge-value", "--trials", 3)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"kundu2010-eq5 .*REFUTED, exact", done.stdout)
    assert re.search(r"mao2010-eq5 .*PROVEN AS CORRECTED, exact", done.stdout)
    assert re.search(r"mao2010-ridge-value .*NOT CHECKABLE", done.stdout)
    said = " ".join(done.stdout.split())
    assert "1 PROVEN AS CORRECTED, 1 REFUTED, 1 NOT CHECKABLE; 0 unexpected" in said
    assert "it does not prove it" in said


def test_the_document_holds_what_the_table_shows_and_more() -> None:
    refuted, holds = findings("kundu2010-eq5", "mao2010-eq2", "--trials", 3)
    assert (refuted["claim"], refuted["verdict"], refuted["exact"]) == (
        "kundu2010-eq5",
        "REFUTED",
        True,
    )
    assert refuted["printed"] > 1
    assert refuted["correction"]
    assert refuted["source"].startswith("klopt.papers.theorems.kundu2010.claims:")
    assert set(refuted["counterexample"]) >= {"K", "other", "C"}
    assert (holds["verdict"], holds["trials"], holds["counterexample"]) == ("HOLDS", 3, None)
    assert holds["printed"] <= 1


def test_a_paper_is_all_of_its_claims_and_no_other() -> None:
    found = findings("--paper", "xie2017", "--trials", 1)
    assert {finding["paper"] for finding in found} == {"xie2017"}
    assert {finding["verdict"] for finding in found} <= VERDICTS
    assert [finding["claim"] for finding in found[:2]] == ["xie2017-theorem1a", "xie2017-theorem1b"]
    assert len(found) >= 21
    assert all(finding["quote"] for finding in found)
    assert {finding["basis"] for finding in found} == {"stated", "implied", "remark"}


def test_the_list_names_every_paper_and_checks_nothing() -> None:
    done = klopt("--list")
    assert done.exit_code == 0
    papers = set(re.findall(r"^ *([a-z]+\d{4})-", done.stdout, flags=re.MULTILINE))
    assert papers >= {"pan2016", "kundu2010", "xie2017", "liu2020", "mao2010"}
    assert "REFUTED" not in done.stdout


def test_a_saved_counterexample_replays(tmp_path: Path) -> None:
    assert (
        klopt("kundu2010-eq5", "mao2010-eq2", "--trials", 2, "--save", tmp_path / "cases").exit_code
        == 0
    )
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["kundu2010-eq5.json"]
    done = klopt("kundu2010-eq5", "--case", tmp_path / "cases" / "kundu2010-eq5.json")
    assert done.exit_code == 0, done.output
    assert re.search(r"kundu2010-eq5 .*REFUTED, exact", done.stdout)


def test_a_case_of_another_claim_is_exit_code_2(tmp_path: Path) -> None:
    klopt("kundu2010-eq5", "--trials", 1, "--save", tmp_path)
    done = klopt("mao2010-eq5", "--case", tmp_path / "kundu2010-eq5.json")
    assert done.exit_code == 2
    assert "is a case of 'kundu2010-eq5'" in " ".join(done.output.split())


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
        (("004-3x",), "did you mean 'mao2010-eq5'"),
        (("nothing-like-it",), "--list shows them all"),
        (("--paper", "999"), "no claim of paper '999'"),
        (("absent.py",), "no file absent.py"),
        (("mao2010-eq5", "--case", "absent.json"), "absent.json"),
        (("mao2010-eq5", "--trials", "0"), "--trials"),
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
        findings("mao2010-eq2", "kundu2010-bregman", "--trials", 4, "--seed", seed)
        for seed in (3, 3, 4)
    )
    assert first == again
    assert [finding["printed"] for finding in first] != [finding["printed"] for finding in other]


@pytest.mark.slow
def test_processes_do_not_change_what_is_found() -> None:
    names = ("mao2010-eq2", "kundu2010-bregman", "kundu2010-eq15", "--trials", 4)
    assert findings(*names) == findings(*names, "--jobs", 2)


def test_names_that_claims_and_papers_had_before_are_found() -> None:
    (found,) = findings("000-9", "--trials", 1)
    assert (found["claim"], found["formerly"]) == ("pan2016-eq10", "000-9")
    papers = {finding["paper"] for finding in findings("--paper", "004", "--trials", 1)}
    assert papers == {"mao2010"}


BROKEN = """
import numpy as np
import klopt
from klopt.papers.theorems.evidence import Interval, at_most, not_measured

draw = lambda rng, n: {"x": rng.uniform(size=n)}

@klopt.theorem("nan", says="x <= 1", draw=draw)
def nan(case): return at_most(np.nan, 1.0)

@klopt.theorem("bool", says="x <= 1", draw=draw)
def a_bool(case): return bool(np.all(case["x"] <= 1))

@klopt.theorem("key", says="x <= 1", draw=draw)
def key(case): return at_most(case["z"].max(), 1.0)

@klopt.theorem("draw", says="x <= 1", draw=lambda rng: {})
def drawn(case): return at_most(0.0, 1.0)

@klopt.theorem("wide", says="x <= 1", draw=draw)
def wide(case): return at_most(Interval(0.5, 1.5) if len(case["x"]) == 5 else 0.0, 1.0)

@klopt.theorem("idle", says="x <= 1", draw=draw)
def idle(case): return not_measured("no x is above 2")

@klopt.theorem("true", says="x <= 1", draw=draw)
def true(case): return at_most(case["x"].max(), 1.0)
"""


def test_a_broken_check_is_said_for_what_it_is_and_costs_no_other_claim(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    done = klopt(tmp_path / "broken.py", "--trials", 8)
    assert done.exit_code == 1
    assert "Traceback" not in done.output
    assert not isinstance(done.exception, Exception)
    found = {one["claim"]: one for one in findings(tmp_path / "broken.py", "--trials", 8)}
    assert {name for name, one in found.items() if one["verdict"] == "INCONCLUSIVE"} == (
        set(found) - {"true"}
    )
    assert found["true"]["verdict"] == "HOLDS"
    for name, said in (
        ("nan", "trial 1: measured / allowed is not a number (NaN)"),
        ("bool", "trial 1: TypeError: the check returned True, a bool; expected evidence"),
        ("key", "trial 1: KeyError: 'z' (broken.py:15)"),
        ("draw", "trial 1: TypeError"),
        ("wide", "trial 3: measured / allowed lies in"),
        ("idle", "none of 8 trials measured anything: no x is above 2"),
    ):
        assert said in found[name]["trouble"]
        assert name in done.output


def test_trials_that_measured_nothing_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(
        "import klopt\n"
        "from klopt.papers.theorems.evidence import at_most, not_measured\n"
        "@klopt.theorem('half', says='even sizes', sizes=(2, 3), draw=lambda rng, n: {'n': n})\n"
        "def half(case): return at_most(0.0, 1.0) if case['n'] == 2 else not_measured('odd')\n"
    )
    (found,) = findings(tmp_path / "half.py", "--trials", 10)
    assert (found["verdict"], found["measured"], found["trials"]) == ("HOLDS", 5, 10)
    assert "5 of 10" in klopt(tmp_path / "half.py", "--trials", 10).output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module', line 1"),
        ("x = (", "SyntaxError"),
        ("x = 1", "holds no claim"),
        (WRONGLY_REGISTERED.replace('"whole"', '"half"').replace("def whole", "def other"),
         "has two claims called 'half'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_run_is_exit_code_2_and_says_why(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "bad.py").write_text(text)
    done = klopt(tmp_path / "bad.py")
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
