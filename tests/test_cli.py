"""The `klopt` command: exit codes, streams, 80 columns, JSON that parses, typos that are understood."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from processes import PATIENCE_S
from strategies import TINY_LP

from klopt.cli.main import main

COMMANDS = [
    *(
        "solve",
        "judge",
        "plan",
        "backends",
        "problems",
        "demo",
        "check-backend",
        "compare",
        "verify",
        "report",
    ),
    *("export", "cite", "doctor"),
]
ESCAPE = "\x1b["

CONTRADICTION = TINY_LP.replace("ENDATA", "BOUNDS\n UP BND x 0.5\n UP BND y 0.5\nENDATA")
NO_BOTTOM = TINY_LP.replace("cost 1 enough 2", "cost -1 enough 2")

BACKEND = """
import klopt
class Mine(klopt.Backend):
    name, offers = "mine", frozenset({klopt.Feature.CONE})
    def run(self, form, settings, start=None):
        BODY
BACKEND = Mine()
"""
LIAR = "return klopt.Answer(klopt.Stop.OPTIMAL, 0 * form.c, 0 * form.b)"


def klopt(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with its output piped."""
    environment = {
        k: v for k, v in os.environ.items() if k not in {"COLUMNS", "FORCE_COLOR", "NO_COLOR"}
    }
    code = "from klopt.cli.main import main; main(prog_name='klopt')"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        words, capture_output=True, text=True, env=environment | {"TERM": "xterm"}, **options
    )


def strict(text: str) -> dict[str, Any]:
    """Parse JSON as the standard has it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    assert isinstance(document, dict)
    return document


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mps"
    path.write_text(TINY_LP)
    return path


def backend_file(folder: Path, body: str) -> Path:
    path = folder / "mine.py"
    path.write_text(BACKEND.replace("BODY", body))
    return path


# What it proves, and the exit code


def test_a_proven_optimum_is_exit_code_0(model: Path) -> None:
    done = klopt("solve", model)
    assert done.exit_code == 0
    assert done.output.startswith("OPTIMAL")
    assert re.search(r"interval +1 <= optimum <= 1\n", done.output)
    assert re.search(
        r"solver +highs on .*: first choice of \d+ \((less than|about) .* s\)", done.output
    )


def test_proven_infeasible_and_unbounded_are_exit_code_0(tmp_path: Path) -> None:
    for name, text in (("INFEASIBLE", CONTRADICTION), ("UNBOUNDED", NO_BOTTOM)):
        path = tmp_path / f"{name}.mps"
        path.write_text(text)
        done = klopt("solve", path)
        assert (done.exit_code, done.output.split()[0]) == (0, name)
        assert re.search(r"(multipliers|ray) +\w+\[\d\] = ", done.output)


def test_a_claim_that_is_not_borne_out_is_exit_code_1(model: Path, tmp_path: Path) -> None:
    done = klopt("solve", model, "--backend", backend_file(tmp_path, LIAR))
    assert done.exit_code == 1
    assert done.output.split()[0] in {"FEASIBLE", "UNPROVEN"}
    assert re.search(r"its status +optimal", done.output)
    assert "advice" in done.output


def test_verbose_explains_in_full(model: Path) -> None:
    assert "solver status: optimal" in klopt("solve", model, "-v").output
    assert "solver status: optimal" not in klopt("solve", model).output


def test_a_backend_in_a_file_runs_in_a_child_process_too(model: Path, tmp_path: Path) -> None:
    crash = backend_file(tmp_path, "import os; os.abort()")
    done = klopt("solve", model, "--backend", crash, "--isolate")
    assert done.exit_code == 1
    assert re.search(r"its status +crashed", done.output)


def test_native_options_reach_the_backend(model: Path) -> None:
    assert klopt("solve", model, "--backend", "highs", "--raw", "presolve=off").exit_code == 0
    done = klopt("solve", model, "--backend", "highs", "--raw", "presolv=off")
    assert done.exit_code == 2
    assert "'presolve'" in done.output


@pytest.mark.parametrize("text", ["20", "20s", "0.5m", "1h"])
def test_durations_have_units(model: Path, text: str) -> None:
    assert klopt("solve", model, "--time", text).exit_code == 0


def test_the_same_seed_makes_the_same_instance() -> None:
    def value(*options: object) -> float:
        found = strict(klopt("solve", "softmargin", "--json", *options).stdout)["value"]
        assert isinstance(found, float)
        return found

    assert (
        value("--seed", 3, "--size", 12)
        == value("--seed", 3, "--size", 12)
        != value("--seed", 4, "--size", 12)
    )


# Bad calls


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["slove", "LP"], "no command 'slove'; did you mean 'solve'?"),
        (["solve"], "FILE|PROBLEM"),
        (["solve", "LP", "--bakend", "highs"], "--backend"),
        (["solve", "LP", "--backend", "higs"], "no backend 'higs'; did you mean 'highs'?"),
        (["solve", "LP", "--backend", "nowhere.py"], "no file 'nowhere.py'"),
        (["solve", "SoftMargn"], "no problem 'SoftMargn'; did you mean 'SoftMargin'?"),
        (
            ["solve", "SoftMargin", "--formulation", "dual"],
            "has no formulation 'dual'; did you mean",
        ),
        (
            ["solve", "SoftMargin", "--backend", "mirror_prox"],
            "mirror_prox cannot solve SoftMargin",
        ),
        (["solve", "LP", "--tol", "2"], "tol is 2.0; expected a number in [1e-13, 0.1]"),
        (["solve", "LP", "--tol", "small"], "small"),
        (
            ["solve", "LP", "--time", "soon"],
            "'soon' is no duration; write seconds (30), or 30s, 5m, 2h",
        ),
        (["solve", "LP", "--time", "0"], "time_limit is 0.0"),
        (
            ["solve", "LP", "--max-iter", "0"],
            "max_iter is 0; expected a whole number of at least 1",
        ),
        (["solve", "LP", "--threads", "0"], "threads is 0"),
        (["solve", "LP", "--size", "0"], "--size"),
        (["solve", "LP", "--raw", "presolve"], "'presolve' is not of the form KEY=VALUE"),
        (["solve", "LP", "--raw", "presolve=1"], "raw options belong to one backend"),
        (["plan", "SoftMargn"], "did you mean 'SoftMargin'?"),
        (["plan", "nowhere/model.mps"], "no file 'nowhere/model.mps'"),
        (["backends", "clarabell"], "did you mean 'clarabel'?"),
        (["problems", "PL"], "no problem 'PL'"),
        (["check-backend", "highz"], "did you mean 'highs'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_call_is_exit_code_2_and_says_what_is_near(arguments: list[str], text: str) -> None:
    done = klopt(*arguments)
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_file_that_is_not_there_names_its_neighbour(model: Path) -> None:
    done = klopt("solve", model.with_name("modl.mps"))
    assert done.exit_code == 2
    assert "did you mean" in " ".join(done.output.split())
    assert "model.mps'?" in done.output.replace("\n", "")  # a long path is broken at 80 columns


@pytest.mark.parametrize("suffix", [".mps", ".lp", ".dat-s", ".cbf", ".npz"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\xfe garbage \x80", b"one two three\nfour 5 6\n"],
    ids=["empty", "bytes", "words"],
)
def test_a_file_that_holds_no_program_is_exit_code_2(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    done = klopt("solve", path)
    assert done.exit_code == 2, done.output
    assert "broken" in "".join(done.output.split())
    assert "Traceback" not in done.output


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "model.xyz"
    path.write_text("x")
    done = klopt("solve", path)
    assert done.exit_code == 2
    assert ".mps, .lp, .dat-s, .cbf, .npz" in " ".join(done.output.split())


def test_a_size_is_not_for_files(model: Path) -> None:
    assert klopt("solve", model, "--size", 5).exit_code == 2


NAMELESS = """
import klopt
class Mine(klopt.Backend):
    def run(self, form, settings, start=None): ...
BACKEND = Mine()
"""


@pytest.mark.parametrize("verb", [("check-backend",), ("solve", "LP", "--backend")])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ImportError('no luck')", "mine.py"),
        ("BACKEND = 3", "mine.py"),
        ("x = 1", "mine.py"),
        ("import sys; sys.exit(0)", "mine.py cannot be loaded: SystemExit: 0"),
        (NAMELESS, "it has no name"),
    ],
)
def test_a_file_without_a_backend_is_exit_code_2(
    tmp_path: Path, verb: tuple[str], text: str, words: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    done = klopt(*verb, path)
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


# Files, by suffix and content


def test_the_suffix_and_the_content_choose_the_class(tmp_path: Path) -> None:
    from klopt.problems import LP, QCQP, SDP

    rng = np.random.default_rng(0)
    lp, sdp = LP.sample(rng, 6), SDP.sample(rng, 6)
    qp = QCQP(P=[[2.0, 0.0], [0.0, 2.0]], q=[-2.0, -2.0], A_ub=[[1.0, 1.0]], b_ub=[1.0])
    for problem, name in (
        (lp, "a.mps"),
        (lp, "a.lp"),
        (lp, "a.cbf"),
        (qp, "b.mps"),
        (qp, "b.npz"),
        (sdp, "c.cbf"),
        (sdp, "c.dat-s"),
    ):
        problem.to_file(tmp_path / name)
        done = klopt("plan", tmp_path / name, "--json")
        assert done.exit_code == 0, done.output
        assert strict(done.stdout)["problem"]["class"] == type(problem).__name__, name


# JSON


def test_every_command_prints_one_json_document(model: Path) -> None:
    for arguments in (
        ["solve", model],
        ["plan", model],
        ["backends"],
        ["backends", "highs"],
        ["problems"],
        ["problems", "LP"],
        ["check-backend", "explicit"],
    ):
        done = klopt(*arguments, "--json")
        document = strict(done.stdout)
        assert document["schema"] == 3
        assert document["command"] == arguments[0]
        assert document["klopt"]


def test_a_solve_document_holds_verdict_interval_route_point_and_attempts(model: Path) -> None:
    document = strict(klopt("solve", model, "--json").stdout)
    assert (document["verdict"], document["stop"], document["certified"]) == (
        "OPTIMAL",
        "OPTIMAL",
        True,
    )
    assert document["lower"] <= 1 <= document["upper"] + 1e-9
    assert document["route"]["backend"] == "highs"
    assert document["point"]["primal"]
    assert document["timings"]["total"] > 0
    assert [attempt["verdict"] for attempt in document["attempts"]] == ["OPTIMAL"]


def test_infinities_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "model.mps"
    path.write_text(CONTRADICTION)
    document = strict(klopt("solve", path, "--json").stdout)
    assert (document["lower"], document["upper"]) == ("inf", "inf")
    assert float(document["lower"]) == float("inf")


# What it looks like


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    done = klopt(command, "--help")
    assert done.exit_code == 0
    assert done.output.startswith("Usage:")
    assert "--json" in done.output


def test_lines_fit_into_80_columns(model: Path, tmp_path: Path) -> None:
    calls: list[list[object]] = [["--help"], *([command, "--help"] for command in COMMANDS)]
    calls += [
        ["solve", model, "-v"],
        ["solve", "SoftMargin", "-v"],
        ["solve", model, "--backend", "higs"],
    ]
    calls += [
        ["solve", model, "--backend", backend_file(tmp_path, LIAR), "-v"],
        ["plan", "SoftMargin"],
    ]
    calls += [
        ["backends"],
        ["backends", "highs"],
        ["problems"],
        ["problems", "SoftMargin"],
        ["check-backend", "explicit"],
    ]
    for arguments in calls:
        # a path is one word and cannot be broken
        lines = [line.replace(str(tmp_path), "") for line in klopt(*arguments).output.splitlines()]
        assert max(map(len, lines)) <= 80, arguments


def test_tables_line_up() -> None:
    header, *rows = klopt("backends").output.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", header)]
    body = [row for row in rows if re.match(r"\w+ +[*-] ", row)]
    assert body
    for row in body:
        assert all(row[start] != " " and (start == 0 or row[start - 1] == " ") for start in starts)


def test_every_backend_and_problem_is_listed() -> None:
    from klopt.engine.registry import backends, problems

    listed = {line.split()[0] for line in klopt("backends").output.splitlines() if line.strip()}
    assert {backend.name for backend in backends()} <= listed
    listed = {line.split()[0] for line in klopt("problems").output.splitlines() if line.strip()}
    assert {problem.__name__ for problem in problems()} <= listed


def test_a_pipe_carries_no_escape_codes(model: Path) -> None:
    for arguments in (["solve", model, "-v"], ["backends"], ["plan", model]):
        done = process(*arguments)
        assert done.returncode == 0
        assert ESCAPE not in done.stdout + done.stderr
        assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_declines(
    model: Path, variables: dict[str, str], coloured: bool
) -> None:
    import pty

    environment = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    leader, follower = pty.openpty()
    words = [sys.executable, "-c", "from klopt.cli.main import main; main()", "solve", str(model)]
    subprocess.run(
        words,
        stdout=follower,
        stderr=follower,
        env=environment | {"TERM": "xterm-256color"} | variables,
        check=True,
    )
    os.close(follower)
    printed = os.read(leader, 65536).decode()
    os.close(leader)
    assert "OPTIMAL" in printed
    assert ("\x1b[1;32m" in printed) == coloured


def test_a_log_goes_to_standard_error(model: Path) -> None:
    done = process("solve", model, "--backend", "highs", "--log", "--json")
    assert strict(done.stdout)["verdict"] == "OPTIMAL"
    assert "HiGHS" in done.stderr


@pytest.mark.slow
def test_a_printing_backend_does_not_spoil_the_result(model: Path, tmp_path: Path) -> None:
    noisy = backend_file(tmp_path, f"print('noise'); {LIAR}")
    done = process("solve", model, "--backend", noisy, "--json")
    assert strict(done.stdout)["stop"] == "OPTIMAL"


# Ctrl-C


def test_an_interrupt_is_exit_code_130(model: Path, tmp_path: Path) -> None:
    done = klopt("solve", model, "--backend", backend_file(tmp_path, "raise KeyboardInterrupt"))
    assert done.exit_code == 130
    assert "interrupted" in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("where", ["--no-isolate", "--isolate"])
def test_ctrl_c_ends_a_running_solve(model: Path, tmp_path: Path, where: str) -> None:
    running = tmp_path / "running"
    sleeper = backend_file(
        tmp_path, f"open({str(running)!r}, 'w').close(); import time; time.sleep(60)"
    )
    code = "from klopt.cli.main import main; main()"
    words = [sys.executable, "-c", code, "solve", str(model), "--backend", str(sleeper), where]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not running.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.exists(), child.communicate()
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    # It would have slept for a minute.
    assert time.monotonic() - began < PATIENCE_S
    assert child.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr


# The conformance checks


def test_check_backend_is_exit_code_1_where_a_check_fails(tmp_path: Path) -> None:
    done = klopt("check-backend", backend_file(tmp_path, LIAR), "--json")
    document = strict(done.stdout)
    assert done.exit_code == 1
    assert not document["passed"]
    assert {check["status"] for check in document["checks"]} >= {"failed", "passed"}


def test_check_backend_is_exit_code_0_where_none_does() -> None:
    done = klopt("check-backend", "explicit")
    assert done.exit_code == 0, done.output
    assert re.search(r"explicit: .*\d+ passed", done.output)


# Help, plans, starts


def test_the_help_is_in_groups_that_hold_every_command_once() -> None:
    text = klopt("--help").output
    listed = [
        line.split()[0]
        for line in text.partition("Solve and prove:")[2].splitlines()
        if line.startswith("  ")
    ]
    assert sorted(listed) == sorted(main.commands)
    assert "Commands:" not in text, "a command without a group"
    assert max(map(len, text.splitlines())) <= 80


def test_a_plan_counts_what_it_refuses_and_lists_it_on_request() -> None:
    short = klopt("plan", "SoftMargin").output
    listed = klopt("plan", "SoftMargin", "--refused").output
    assert "klopt plan --refused" in short
    assert "no second-order cones" in listed
    assert "needs second-order cones" not in listed
    assert len(listed.splitlines()) > 2 * len(short.splitlines())


def test_a_solve_starts_from_what_another_has_written(tmp_path: Path) -> None:
    point = tmp_path / "point.json"
    first = klopt("solve", "SoftMargin", "--backend", "active_set", "--json")
    point.write_text(first.output)
    again = klopt("solve", "SoftMargin", "--backend", "active_set", "--start", point, "--json")
    assert again.exit_code == 0
    assert strict(again.output)["iterations"] < strict(first.output)["iterations"]

    refused = klopt("solve", "SoftMargin", "--start", tmp_path / "point.txt")
    assert refused.exit_code == 2
    assert "expected .npz or .json" in refused.output


def test_a_backend_that_lies_in_a_file_here_is_pointed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("klopt_mine.py").write_text("")
    refused = klopt("solve", "LP", "--backend", "mine")
    assert refused.exit_code == 2
    assert "the file klopt_mine.py is here: name it" in " ".join(refused.output.split())
