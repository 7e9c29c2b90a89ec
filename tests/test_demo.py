"""The demo runs every family by every backend, writes its page and says what was learned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from klopt.bench.comparison import Comparison
from klopt.bench.demo import demo_data, print_demo, run_demo
from klopt.bench.scores import agreement, summary_lines
from klopt.bench.suite import suite
from klopt.errors import InvalidSettings

pytestmark = pytest.mark.slow  # the suite itself is in test_suite, the page in test_report

QUICKEST = ["explicit", "active_set", "highs", "sparse_newton", "clarabel"]
"""Few backends that can do the whole suite between them."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "page.html"


@pytest.fixture(scope="module")
def comparison(page: Path) -> Comparison:
    return run_demo(page, QUICKEST, size="quick", progress=False)


def test_every_problem_is_certified_and_all_proofs_agree(comparison: Comparison) -> None:
    certified = {run.problem for run in comparison.runs if run.verdict.conclusive}
    assert certified == {label for label, _ in suite("quick")}
    assert all(found.holds for found in agreement(comparison.runs).values())


def test_the_page_is_one_file_that_starts_with_what_was_found(
    comparison: Comparison, page: Path
) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html")
    assert all(label in text for label, _ in suite("quick"))


def test_what_is_printed_fits_and_ends_with_a_summary_and_the_path(
    comparison: Comparison, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_demo(comparison, page)
    said = capsys.readouterr().out
    assert said.startswith("certified "), "the story comes first"
    rows = [line for line in said.splitlines() if str(page.parent) not in line]
    assert max(map(len, rows)) <= 80
    for label in ("certified", "fastest", "statuses", "page"):
        assert any(line.startswith(f"{label} ") for line in rows + said.splitlines())
    flat = " ".join(said.split())
    assert all(" ".join(lesson.split()) in flat for lesson in summary_lines(comparison.runs))
    assert page.name in said
    assert "\x1b" not in said


def test_the_same_as_data(comparison: Comparison, page: Path) -> None:
    found = demo_data(comparison, page)
    assert len(found["runs"]) == len(comparison.runs)
    assert len(found["lessons"]) == 3
    assert found["page"] == str(page)


def test_a_page_that_cannot_be_written_is_refused_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="there is no folder"):
        run_demo(tmp_path / "missing" / "page.html")


def test_the_command_writes_its_page_here_within_ninety_seconds_of_cpu_time(tmp_path: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", "from klopt.cli.main import main; main()", "demo", "--json"]
    before = os.times()
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800
    )
    after = os.times()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["klopt-report.html"]
    document = json.loads(done.stdout)
    assert document["command"] == "demo"
    user = after.children_user - before.children_user
    system = after.children_system - before.children_system
    assert user + system < 90
