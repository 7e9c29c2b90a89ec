"""Children that close, fork, write, leave, stop or are killed: nobody waits for them, and none of them stays."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from bad_backends import (
    Dawdler,
    FileCloser,
    Forker,
    GroupKiller,
    GuardStopper,
    Leaver,
    Liar,
    PipeWriter,
    Segfaulter,
    Stopper,
)
from processes import PATIENCE_S, alive, soon

import klopt
from klopt.engine import run_in_child
from klopt.engine.run_in_child import ChildDied, ChildProcess, TaskFailed, run_isolated
from klopt.model.backend import Backend, Settings, Stop
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm
from klopt.proof.certificate import Verdict

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

FORM = ConeForm([1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [-2.0, -3.0], Cones(nonneg=2))
LP = klopt.problems.LP([1.0, 2.0], A_ub=[[1.0, 1.0]], b_ub=[5.0])
LIMIT_S = 1.0
"""For who only sleeps; who has to start something first is given more."""


def noted(file: Path) -> int:
    """The number of a process that wrote it into a file."""
    assert soon(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


def descendants() -> set[int]:
    """The processes below this one that run, but for the child that waits for the next solve."""
    kept = {child.process.pid for child in run_in_child._idle}
    kept |= {child.worker for child in run_in_child._idle if child.worker is not None}
    from klopt.engine.guard import _descendants

    return {process for process in _descendants(os.getpid()) if alive(process)} - kept


@pytest.mark.parametrize(
    ("backend", "stop", "words"),
    [
        (FileCloser(), Stop.CRASHED, "closed its pipe"),
        (Stopper(), Stop.TIME_LIMIT, "ended by klopt"),
        (GroupKiller(), Stop.CRASHED, "SIGKILL"),
        (GuardStopper(signal.SIGSTOP), Stop.TIME_LIMIT, "ended by klopt"),
        (GuardStopper(signal.SIGKILL), Stop.CRASHED, "SIGKILL"),
        (Segfaulter(), Stop.CRASHED, "SIGSEGV"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_child_that_cannot_answer_is_ended_and_replaced(
    backend: Backend, stop: Stop, words: str
) -> None:
    before = descendants()
    # Left alone, all but the crashes would sleep for a minute.
    limit = LIMIT_S if stop is Stop.TIME_LIMIT else PATIENCE_S
    answer = run_isolated(backend, FORM, Settings(time_limit=limit))
    assert answer.stop is stop
    assert words in answer.native
    assert answer.seconds < PATIENCE_S
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL
    assert soon(lambda: descendants() <= before)


def test_a_fork_that_comes_back_gives_no_second_reply() -> None:
    assert run_isolated(Forker(), FORM, Settings()).native == "solved, trust me"
    assert run_isolated(Liar(), FORM, Settings()).native == "solved, trust me"


def test_a_child_that_left_processes_behind_is_not_used_again(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert run_isolated(Dawdler(str(file)), FORM, Settings()).stop is Stop.OPTIMAL
    assert soon(lambda: not alive(noted(file)))


@pytest.mark.parametrize("hostile", [Forker(), PipeWriter(b"\0" * 7 + b"\x05hello")])
def test_the_next_run_of_a_comparison_is_unaffected(hostile: Backend) -> None:
    runs = klopt.compare(LP, [hostile, "highs"], repeat=1, time_limit=20.0, progress=False).runs
    assert [run.backend for run in runs] == [hostile.name, "highs"]
    assert runs[1].verdict is Verdict.OPTIMAL


def header(word: bytes = b"sixteen letters.", number: int = 1, size: int = 5) -> bytes:
    return struct.pack("!16sQQ", word, number, size)


@pytest.mark.parametrize(
    "data", [b"\0" * 7 + b"\x05hello", b"x", header() + b"hello", header(size=2**60)]
)
def test_what_a_backend_writes_to_its_pipes_is_no_reply(data: bytes) -> None:
    answer = run_isolated(PipeWriter(data), FORM, Settings(time_limit=20.0))
    assert answer.stop is Stop.CRASHED
    assert "no reply" in answer.native
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL


def test_a_reply_is_read_as_data() -> None:
    """A pickle that would call something is not loaded, and the child that sent it is not used."""

    class Runs:
        def __reduce__(self) -> tuple[object, ...]:
            return os.putenv, ("KLOPT_WAS_HERE", "1")

    import cloudpickle

    child = ChildProcess()
    with pytest.raises(ChildDied, match="no reply"):
        child.run(cloudpickle.dumps(Runs), 20.0)
    assert not child.alive


def test_an_error_in_a_child_is_text_here() -> None:
    child = ChildProcess()
    try:
        with pytest.raises(TaskFailed, match="ValueError: invalid literal"):
            child.run(pickle.dumps(partial(int, "seven")), 20.0)
        assert child.run(pickle.dumps(partial(int, "7")), 20.0) == 7
    finally:
        child.close()


def test_a_task_that_nobody_reads_is_given_up_at_its_limit() -> None:
    """The pipe takes no more than 64 kB of a task while the child does not read."""
    child = ChildProcess()
    assert child.run(pickle.dumps(os.getpid), 60.0) == child.worker
    assert child.worker is not None
    os.kill(child.worker, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        child.run(pickle.dumps(partial(len, bytes(10**7))), LIMIT_S)
    assert time.monotonic() - began < PATIENCE_S
    assert not child.alive


def test_an_idle_child_that_was_killed_is_no_outcome_of_the_next_solve() -> None:
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL
    (idle,) = run_in_child._idle
    assert idle.worker is not None
    os.kill(idle.worker, signal.SIGKILL)
    assert soon(lambda: not idle.alive)
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL


def test_a_child_of_a_thread_that_has_ended_serves_another(tmp_path: Path) -> None:
    thread = threading.Thread(target=run_isolated, args=(Liar(), FORM, Settings()))
    thread.start()
    thread.join()
    (idle,) = run_in_child._idle
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL
    assert run_in_child._idle == [idle]


def test_a_process_that_leaves_session_parent_and_environment_is_found(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    answer = run_isolated(Leaver(str(file)), FORM, Settings(time_limit=4 * LIMIT_S))
    assert answer.stop is Stop.TIME_LIMIT
    assert soon(lambda: not alive(noted(file)))


ORPHANS = """
import sys
sys.path.insert(0, {tests!r})
from bad_backends import Leaver, Spinner
import klopt
lp = klopt.problems.LP([1.0, 2.0], A_ub=[[1.0, 1.0]], b_ub=[5.0])
backend = Leaver({file!r}) if sys.argv[2] == "leaver" else Spinner({file!r})
print("ready", flush=True)
if sys.argv[1] == "solve":
    klopt.solve(lp, backend, isolate=True)
else:
    klopt.compare(lp, [backend], repeat=1, time_limit=60.0, progress=False)
"""


@pytest.mark.parametrize("how", ["solve", pytest.param("compare", marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["spinner", "leaver"])
def test_all_below_a_killed_parent_end_with_it(how: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = ORPHANS.format(tests=str(Path(__file__).parent), file=str(file))
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), how, what])
    try:
        process = noted(file)
        assert alive(process)
    finally:
        parent.kill()
        parent.wait()
    assert soon(lambda: not alive(process))


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_parent_that_is_killed_while_its_child_starts_leaves_nobody(moment: float) -> None:
    """From its first instant the child looks after its parent: nothing is loaded before."""
    script = """
import os, time
from klopt.engine.run_in_child import ChildProcess
child = ChildProcess()
print(child.process.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(moment)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    # Above the child nobody is left who could tell it anything.
    assert soon(lambda: not alive(child))


# Memory.


def test_a_memory_limit_of_a_solve_is_kept_and_named() -> None:
    from bad_backends import Eater

    result = klopt.solve(LP, Eater(), formulation="primal", memory_limit=400_000_000)
    assert result.stop is Stop.CRASHED
    assert "MemoryError" in result.explain()
    assert "under the limit of 0.4 GB" in result.explain()
    assert klopt.solve(LP, memory_limit=10**9).verdict is Verdict.OPTIMAL


@pytest.mark.parametrize("value", [-1, 1.5, "2G", True])
def test_a_memory_limit_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(klopt.InvalidSettings, match=r"memory_limit is .*; expected a whole number"):
        klopt.solve(LP, memory_limit=value)  # type: ignore[arg-type]


def test_a_memory_limit_that_cannot_be_kept_is_refused_everywhere() -> None:
    says = r"memory_limit is 99999999 bytes; the libraries .* at least 100000000 \(100M\)"
    with pytest.raises(klopt.InvalidSettings, match=says):
        klopt.solve(LP, memory_limit=99_999_999)
    with pytest.raises(klopt.InvalidSettings, match=says):
        klopt.plan(LP, memory_limit=99_999_999)
    with pytest.raises(klopt.InvalidSettings, match=says):
        klopt.compare(LP, memory_limit=99_999_999)


def test_the_smallest_memory_limit_ends_and_proves_a_small_program() -> None:
    # Denied a buffer, OpenBLAS asks for it without end: the libraries are loaded before the limit.
    result = klopt.solve(LP, "highs", memory_limit=100_000_000, time_limit=30.0)
    assert result.verdict is Verdict.OPTIMAL
