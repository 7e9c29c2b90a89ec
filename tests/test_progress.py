"""Progress is one line on a terminal that tells the time left, and silence everywhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from klopt.conformance.suite import Check, Status, explain_checks
from klopt.engine.progress import Counter, _Silent, clock, cut

SCRIPT = """
import sys, time
import klopt.engine.progress as progress
progress.SHOWN_AFTER_S = 0.05
progress.REFRESH_S = 0.02
with progress.counting(4) as count:
    for number in range(3):
        time.sleep(0.1)
        count.advance("a problem with a long name " * 8)
        count.write(f"line {number}")
with progress.waiting("solving", limit=60.0):
    progress.tell("highs on dual: proving")
    time.sleep(0.2)
"""


def on_terminal(script: str, columns: int = 80) -> tuple[str, str]:
    """What a script writes to a terminal as standard error, and to standard output."""
    import pty

    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=follower,
        env=environment,
        text=True,
        check=True,
    )
    os.close(follower)
    shown = os.read(leader, 1 << 20).decode()
    os.close(leader)
    return shown, done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_sees_one_line_that_fits_and_is_gone_at_the_end() -> None:
    shown, printed = on_terminal(SCRIPT)
    assert printed.split("\n") == ["line 0", "line 1", "line 2", ""]
    assert "\n" not in shown
    drawn = [text.rstrip() for text in shown.split("\r")]
    assert max(map(len, drawn)) <= 79
    assert any(re.match(r"━+╌+ 2/4  about 0:0\d left  a problem", text) for text in drawn)
    assert any(re.match(r"0:00, at most 1:00 left  highs on dual: proving", t) for t in drawn)
    assert drawn[-1] == "", "the line is taken away"


def test_nothing_is_written_where_it_is_no_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout.split("\n") == ["line 0", "line 1", "line 2", ""]


def test_the_time_left_is_that_of_the_rest_at_the_mean_pace() -> None:
    count = Counter(10, 4, _Silent())
    count.began = time.perf_counter() - 30.0
    count.advance()
    count.advance()
    # Two took 30 s, four are left.
    assert "about 1:00 left" in count.compose()
    assert count.compose().split()[1] == "6/10"


def test_texts_are_cut_and_cleaned() -> None:
    assert cut("\x1b[2Jname", 80) == "?[2Jname"
    assert len(cut("x" * 100, 79)) == 79
    assert clock(59.6) == "1:00"


def test_what_several_checks_fail_for_is_told_once() -> None:
    """One wrong keyword fails most checks: its text stands there once, and the rest points to it."""
    wrong = "TypeError: solve() got an unexpected keyword argument 'eps'"
    checks = [
        Check("contract_shapes", Status.FAILED, f"{wrong} (mine.py, line 9: solve(eps=1))"),
        *(
            Check(f"truth_{i}", Status.FAILED, f"program {i}: the backend says rejected ({wrong})")
            for i in range(30)
        ),
        Check("limit_one", Status.FAILED, "it claims an optimum"),
    ]
    text = explain_checks("mine", checks)
    assert len(text.splitlines()) < 50
    assert text.count("unexpected keyword") == 2
    assert "truth_7          failed   as contract_shapes" in text
    assert "31 of them for one reason" in text
    assert "it claims an optimum" in text
