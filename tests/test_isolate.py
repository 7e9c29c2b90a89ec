"""A backend in a child process: crashes, hangs and prints stay there."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from bad_backends import Aborter, Liar, LimitTeller, Panic, Printer, Raiser, Segfaulter, Sleeper
from processes import PATIENCE_S, alive, soon

from klopt.conformance.instances import FormProblem
from klopt.engine import run_in_child
from klopt.engine.pipeline import solve
from klopt.engine.run_here import run_here
from klopt.engine.run_in_child import GRACE_S, MIN_RUN_S, ChildProcess, run_isolated
from klopt.errors import InvalidSettings
from klopt.model.backend import Settings, Stop
from klopt.model.cones import Cones
from klopt.model.forms import ConeForm

FORM = ConeForm([1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [-2.0, -3.0], Cones(nonneg=2))


def test_the_answer_is_the_same_in_a_child() -> None:
    here, there = run_here(Liar(), FORM, Settings()), run_isolated(Liar(), FORM, Settings())
    assert np.array_equal(here.x, there.x)
    assert (here.stop, here.native) == (there.stop, there.native)


@pytest.mark.parametrize(("backend", "sign"), [(Segfaulter(), "SIGSEGV"), (Aborter(), "SIGABRT")])
def test_a_native_crash_is_an_outcome(backend: Segfaulter | Aborter, sign: str) -> None:
    answer = run_isolated(backend, FORM, Settings())
    assert answer.stop is Stop.CRASHED
    assert sign in answer.native
    assert run_isolated(Liar(), FORM, Settings()).stop is Stop.OPTIMAL  # the next one is unaffected


def test_the_last_words_of_a_crash_are_kept() -> None:
    assert "assertion failed in a native library" in run_isolated(Aborter(), FORM, Settings()).log


def test_a_backend_without_a_time_limit_is_ended_at_the_deadline() -> None:
    result = solve(FormProblem(FORM), backend=Sleeper(), time_limit=0.5)
    assert result.stop is Stop.TIME_LIMIT
    assert "ended by klopt" in result.chosen.answer.native
    # It would have slept for a minute.
    assert GRACE_S <= result.timings.overrun < PATIENCE_S


@pytest.mark.parametrize("limit", [1e-3, 30.0])
def test_the_start_of_a_child_counts(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_in_child, "_idle", [])
    began = time.perf_counter()
    answer = run_isolated(LimitTeller(), FORM, Settings(time_limit=limit))
    seconds = time.perf_counter() - began
    told = float(answer.native)
    # A child takes longer to start than this; one that took all of the limit gets it once more.
    assert told == limit if limit < MIN_RUN_S else limit - seconds <= told <= limit - 0.02
    run_in_child._idle.pop().close()


def test_a_child_that_is_ended_leaves_no_file_open_but_its_last_words() -> None:
    worker = ChildProcess()
    with pytest.raises(TimeoutError):
        worker.run(
            pickle.dumps(
                partial(exec, "import os, time; os.write(2, b'so far so good'); time.sleep(60)")
            ),
            4.0,
        )
    assert worker.log.closed
    assert worker.printed() == "so far so good"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")
def test_what_the_child_started_ends_with_it(tmp_path) -> None:
    class Parent(Sleeper):
        def misbehave(self, form):
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            (tmp_path / "pid").write_text(str(child.pid))
            return super().misbehave(form)

    assert run_isolated(Parent(), FORM, Settings(time_limit=4.0)).stop is Stop.TIME_LIMIT
    pid = int((tmp_path / "pid").read_text())
    assert soon(lambda: not alive(pid))


def test_a_process_that_a_crash_has_spoilt_serves_no_other_backend() -> None:
    class Closer(Liar):
        def misbehave(self, form):
            os.close(1)
            os.close(2)
            print("into nothing", flush=True)
            return super().misbehave(form)

    assert run_isolated(Closer(), FORM, Settings()).stop is Stop.CRASHED
    assert "hello from python" in run_isolated(Printer(), FORM, Settings()).log


def test_prints_of_the_child_go_to_the_log() -> None:
    answer = run_isolated(Printer(), FORM, Settings())
    for line in ("hello from python", "hello from C", "error from C"):
        assert line in answer.log


def test_a_panic_is_an_outcome_and_bad_settings_are_raised() -> None:
    assert run_isolated(Raiser(Panic("index out of bounds")), FORM, Settings()).stop is Stop.CRASHED
    with pytest.raises(InvalidSettings, match="no such option"):
        run_isolated(Raiser(InvalidSettings("no such option")), FORM, Settings())


def test_one_child_serves_many_tasks() -> None:
    class Namer(Liar):
        def misbehave(self, form):
            return replace(super().misbehave(form), native=f"process {os.getpid()}")

    assert len({run_isolated(Namer(), FORM, Settings()).native for _ in range(10)}) == 1


SCRIPT = """
import os, sys, time
import numpy as np
import klopt
from klopt.conformance.instances import FormProblem

class Napper(klopt.Backend):
    name = "napper"
    offers = frozenset({klopt.Feature.CONE})
    def run(self, form, settings, start=None):
        time.sleep(60)

form = klopt.ConeForm([1.0], [[-1.0]], [-2.0], klopt.Cones(nonneg=1))
print("ready", flush=True)
try:
    klopt.solve(FormProblem(form), backend=Napper(), isolate=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_reaches_the_caller_at_once_and_ends_the_child() -> None:
    """A class of __main__, no `if __name__` guard: as in a notebook or a short script."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.stdout.readline() == "interrupted\n"
    # It would have slept for a minute.
    assert time.monotonic() - began < PATIENCE_S
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_backend_of_the_users_that_says_klopt_goes_to_a_child() -> None:
    code = SCRIPT.replace("time.sleep(60)", "return klopt.Answer(klopt.Stop.STALLED)")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code) + ONE_MORE], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.split()) == (0, ["ready", "STALLED"]), done.stderr


ONE_MORE = """
print(klopt.solve(FormProblem(form), backend=Napper(), isolate=True).stop.name)
"""


SERVE = "from klopt.engine.run_in_child import serve; serve()"
WORD = b"sixteen letters."


def framed(number: int, data: bytes) -> bytes:
    return struct.pack("!16sQQ", WORD, number, len(data)) + data


def unframed(data: bytes) -> Iterator[tuple[int, object]]:
    while data:
        word, number, size = struct.unpack("!16sQQ", data[:32])
        assert word == WORD
        yield number, pickle.loads(data[32 : 32 + size])
        data = data[32 + size :]


def test_a_child_answers_what_it_is_sent_and_ends_with_its_input() -> None:
    tasks = [pickle.dumps(partial(int, "7")), b"no pickle", pickle.dumps(partial(int, "seven"))]
    sent = WORD + b"".join(framed(number, task) for number, task in enumerate(tasks, 5))
    done = subprocess.run(
        [sys.executable, "-c", SERVE], input=sent, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    hello, number, unread, error = unframed(done.stdout)
    assert hello[0] == 0
    assert number == (5, ("value", 7))
    assert unread[0] == 6
    assert unread[1][0] == "settings"
    assert "could not load the task" in unread[1][1]
    assert (error[0], error[1][0]) == (7, "raised")
    assert error[1][1].startswith("ValueError: invalid literal")


@pytest.mark.skipif(os.name != "posix", reason="asks for the parent's number")
def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    # Not the process that starts it.
    script = f"from klopt.engine.guard import stand_guard; stand_guard({os.getppid()})"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    try:
        assert child.wait(timeout=60) == 1
    finally:
        child.kill()
        child.communicate()
