"""Ctrl-C at every moment: what klopt changes of the process is undone, and the next solve is right."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any

import numpy as np
import pytest
from bad_backends import Printer
from threadpoolctl import ThreadpoolController

import klopt
from klopt.engine import interrupts, run_here as runner, standard_streams
from klopt.engine.interrupts import call_within
from klopt.model.memo import remember_last
from klopt.proof import time_budget
from klopt.proof.certificate import Verdict

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")

LP = klopt.problems.LP([1, 1], A_ub=[[-1, -2]], b_ub=[-2])


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press(key: int = signal.SIGINT) -> None:
    signal.raise_signal(key)


def test_a_signal_during_a_change_waits_for_the_call() -> None:
    seen = []

    def enter(undo: ExitStack) -> None:
        press()
        undo.callback(seen.append, "undone")
        seen.append("changed")

    with pytest.raises(KeyboardInterrupt):
        call_within(enter, lambda: seen.append("called"))
    assert seen == ["changed", "undone"]


def test_a_signal_during_the_call_ends_it_and_further_ones_wait_for_the_end() -> None:
    seen = []

    def undone() -> None:
        press()
        seen.append("undone")

    def call() -> None:
        press()
        seen.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        call_within(lambda undo: undo.callback(undone) and None, call)
    assert seen == ["undone"]


def test_a_signal_while_a_change_is_undone_comes_afterwards() -> None:
    seen = []

    def undone() -> None:
        press()
        seen.append("undone")

    with pytest.raises(KeyboardInterrupt):
        call_within(lambda undo: undo.callback(undone) and None, lambda: seen.append("called"))
    assert seen == ["called", "undone"]


def test_a_handler_that_returns_does_not_end_the_call() -> None:
    seen: list[Any] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:

        def call() -> str:
            press(signal.SIGUSR1)
            press(signal.SIGUSR1)
            return "done"

        assert call_within(lambda undo: None, call) == "done"
        assert seen == [signal.SIGUSR1, signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_that_the_call_installs_is_gone_afterwards() -> None:
    call_within(lambda undo: None, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_change_that_fails_halfway_is_undone() -> None:
    seen = []

    def enter(undo: ExitStack) -> None:
        undo.callback(seen.append, "undone")
        raise OSError("no more files")

    with pytest.raises(OSError, match="no more files"):
        call_within(enter, lambda: seen.append("called"))
    assert seen == ["undone"]


def test_other_threads_have_no_signals_to_hold() -> None:
    seen = []
    thread = threading.Thread(
        target=lambda: call_within(
            lambda undo: undo.callback(seen.append, "undone") and None,
            lambda: seen.append("called"),
        )
    )
    thread.start()
    thread.join()
    assert seen == ["called", "undone"]


def test_an_error_between_two_descriptors_restores_both(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [os.fstat(number).st_ino for number in (1, 2)]
    true = os.dup2
    done = []

    def dup2(source: int, target: int, *rest: Any) -> int:
        found = true(source, target, *rest)
        if target == 2 and not done:
            done.append(target)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(os, "dup2", dup2)
    with pytest.raises(KeyboardInterrupt):
        klopt.solve(LP, Printer())
    assert [os.fstat(number).st_ino for number in (1, 2)] == before
    assert not standard_streams._capturing.locked()


WATCHED = {
    interrupts.__file__,
    runner.__file__,
    standard_streams.__file__,
    ExitStack.__init__.__code__.co_filename,
}


POOLS = ThreadpoolController()
"""Looks for the libraries once; their threads are counted anew each time."""


def state() -> tuple[object, ...]:
    """What a solve changes of the process for its time."""
    return (
        os.fstat(1).st_ino,
        os.fstat(2).st_ino,
        sys.stdout,
        sys.stderr,
        standard_streams._capturing.locked(),
        runner._blas_pools().users,
        np.geterr()["over"],
        time_budget.exhausted(),
        signal.getsignal(signal.SIGINT),
        [pool["num_threads"] for pool in POOLS.info()],
    )


def interrupted_at(
    moment: int, call: Callable[[], object], watched: Collection[str] = WATCHED
) -> bool:
    """Whether the call was ended by a Ctrl-C before the so-many-th line of what guards the process."""
    left = moment

    def local(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                press()
        return local

    def watch(frame: FrameType, event: str, _: object) -> Any:
        return local if frame.f_code.co_filename in watched else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_control_c_before_any_line_of_ours_leaves_the_process_as_it_was(stride: int) -> None:
    """Every line of the files that change the process, one after the other, gets its Ctrl-C."""
    problem = LP
    klopt.solve(problem, Printer(), time_limit=60)
    before = state()
    moment = 1
    while interrupted_at(moment, lambda: klopt.solve(problem, Printer(), time_limit=60)):
        assert state() == before, f"line {moment}"
        moment += stride
    assert moment > 200
    assert "hello from C" in klopt.solve(problem, Printer()).chosen.answer.log
    assert klopt.solve(problem).verdict is Verdict.OPTIMAL


def test_control_c_leaves_no_thread_of_highs_behind() -> None:
    """A thread that goes on with a model which is being freed ends the process."""
    from klopt.solvers._native import highs_model

    problem = klopt.problems.QCQP(np.eye(3), [-1.0, -2.0, 3.0], A_ub=np.ones((1, 3)), b_ub=[1.0])
    watched = {highs_model.__file__}

    def call() -> klopt.Result:
        return klopt.solve(problem, "highs", isolate=False)

    value = call().value
    # One that was made and never started has no number.
    threads = [thread for thread in threading.enumerate() if thread.ident is not None]
    moment = 1
    while interrupted_at(moment, call, watched):
        started = [thread for thread in threading.enumerate() if thread.ident is not None]
        assert started == threads, f"line {moment}"
        moment += 1
    assert moment > 20
    assert call().value == value


def test_an_interrupted_answer_is_not_kept_beside_the_point_of_another() -> None:
    """What a function remembers is one pair: the point and its value, or neither."""

    class Square:
        @remember_last
        def value(self, x: Any) -> float:
            return float(x @ x)

    for moment in range(1, 30):
        f = Square()
        f.value(np.array([1.0]))

        def call(f: Square = f) -> object:
            return f.value(np.array([2.0]))

        left = [moment]

        def local(frame: FrameType, event: str, _: object, left: list[int] = left) -> Any:
            frame.f_trace_opcodes = True
            left[0] -= 1
            if left[0] == 0:
                press()
            return local

        sys.settrace(
            lambda frame, event, _, local=local: (
                local if "memo" in frame.f_code.co_filename else None
            )
        )
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert f.value(np.array([1.0])) == 1.0
        assert f.value(np.array([2.0])) == 4.0
