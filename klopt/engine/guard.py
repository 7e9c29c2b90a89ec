"""Ends a child process and all that it started, once it is to end or its parent is gone.

A child of klopt consists of two processes. The first one is the guard: it forks the second, which
does the work, and waits until that one ends or the parent is gone; then it kills whatever is left
of what the worker started. On Linux the guard adopts every orphan below it, so that nothing gets
away by a session, a group or an environment of its own. Elsewhere only the worker's own group is
known. This module imports nothing but the standard library: it is running before the rest is
loaded, so a parent that is killed early leaves nobody behind.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["end_descendants", "has_strangers", "stand_guard"]

PR_SET_PDEATHSIG = 1
"""The option of Linux' `prctl` for the signal to get when the parent dies, by sys/prctl.h."""
PR_SET_CHILD_SUBREAPER = 36
"""The option by which a process adopts the orphans among its descendants."""

POLL_S = 0.25
"""How often the guard looks after its parent where the system does not tell it."""
MAX_SWEEP_S = 1.0
"""How long descendants that start new ones are killed again and again."""
SWEEP_PAUSE_S = 0.002
"""How long the killed are given to disappear before the next look."""

_PROCESSES = Path("/proc")


def stand_guard(parent: int) -> None:
    """Fork the worker and return in it; this process stays behind as its guard, and never returns.

    Where there is no fork nothing guards: the worker ends when its input is closed.
    """
    if not hasattr(os, "fork"):
        return
    # A parent that is gone by now would never be missed.
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard = os.getpid()
    worker = os.fork()
    if worker == 0:
        # A group of its own: a backend that kills its group must not kill its guard.
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)
        return
    try:
        # The pipes must close when the worker ends.
        for number in (0, 1, 2):
            os.close(number)
        status = _wait(worker, parent)
        end_descendants(guard, worker)
        # Whoever would adopt them need not know them.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        _end_like(status)
    finally:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes

    # There may be no such function in the C library.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wait(worker: int, parent: int) -> int | None:
    """The worker's exit status once it has ended, None once the parent is gone."""
    watched: list[int] = []
    # Linux tells at once when a process ends; elsewhere one has to ask.
    with suppress(AttributeError, OSError):
        watched = [os.pidfd_open(worker), os.pidfd_open(parent)]
    while True:
        select.select(watched, [], [], POLL_S if not watched else None)
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            return status
        if os.getppid() != parent:
            return None


def _end_like(status: int | None) -> None:
    """End as the worker did, so that the parent learns of it."""
    if status is None:
        os._exit(1)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        # One dump of memory is enough.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # not every signal has a handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def end_descendants(guard: int, worker: int | None) -> None:
    """Kill all processes below the guard, until there are none.

    Parameters
    ----------
    guard
        The first process of a child; it is not killed.
    worker
        The second one, whose group is killed where descendants cannot be listed.
    """
    if not _PROCESSES.joinpath(str(os.getpid())).exists():
        if worker is not None:
            with suppress(OSError):
                os.killpg(worker, signal.SIGKILL)
        return
    deadline = time.monotonic() + MAX_SWEEP_S
    while (found := _descendants(guard)) and time.monotonic() < deadline:
        for process in found:
            with suppress(OSError):  # it has ended by itself
                os.kill(process, signal.SIGKILL)
        time.sleep(SWEEP_PAUSE_S)


def has_strangers(guard: int, worker: int) -> bool:
    """Return whether a backend has left processes behind, False where that cannot be known."""
    return any(process != worker for process in _children(guard)) or any(_children(worker))


def _children(process: int) -> list[int]:
    """The children of a process, by its threads' lists; none where the system keeps no such."""
    found: list[int] = []
    with suppress(OSError):
        for task in _PROCESSES.joinpath(str(process), "task").iterdir():
            found += map(int, task.joinpath("children").read_text().split())
    return found


def _descendants(process: int) -> set[int]:
    """All that is below a process and still runs."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(_PROCESSES):
        if entry.isdigit():
            # What ends while one looks is none of them.
            with suppress(OSError, ValueError, IndexError):
                text = _PROCESSES.joinpath(entry, "stat").read_text(errors="replace")
                # The name in brackets may hold anything; the state and the parent follow it.
                state, above = text.rpartition(")")[2].split()[:2]
                if state not in ("Z", "X"):
                    children.setdefault(int(above), []).append(int(entry))
    found: set[int] = set()
    waiting = [process]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
