"""A backend in a child process: a crash, hang, leak or print stays there.

The child is a fresh interpreter that speaks pickles over its standard streams and waits for the
next task, a function to call, so one child serves many solves. It is killed, never asked, when the
deadline has passed; what it prints goes to the log.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import IO, Any

from klopt.engine.run_here import CHANGED, flush_c, run_here
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.forms import Form

__all__ = ["Worker", "last_words", "run_isolated"]

GRACE = 0.5
"""Seconds after the deadline before a child is killed, so that a backend which keeps its limit can answer."""

MOST_LOG = 1_000_000
"""Bytes of output kept of one run."""

_HEADER = struct.Struct("!Q")
_CHILD = "import {module}; from klopt.engine.run_in_child import serve; serve({parent})"


class Worker:
    """One child process that calls functions, one at a time.

    It has `variables` in its environment and imports `module` before the first task. Where it is
    `bound` it dies with the thread that made it, whatever ends that thread's process and whatever
    the child is doing.

    >>> worker = Worker()
    >>> worker.run(pickle.dumps(os.getpid), seconds=10.0) == worker.process.pid
    True
    >>> worker.close()
    """

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        module: str = "klopt.engine.run_here",
        *,
        bound: bool = False,
    ) -> None:
        # Opened for appending: reading here must not move where the child writes.
        self.log = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self.read_so_far, self.last_printed = 0, ""
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        environment = {**os.environ, **(variables or {}), "PYTHONPATH": path}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _CHILD.format(module=module, parent=os.getpid() if bound else None),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            start_new_session=True,  # a Ctrl-C at the terminal is for the parent, which ends the child itself
        )
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.replies.get()  # the child says hello once its imports are done, so that they do not count

    @property
    def alive(self) -> bool:
        """Whether the child can take another task."""
        return self.process.poll() is None

    def run(self, task: bytes, seconds: float | None) -> Any:
        """Return the child's reply, `None` where it died, or raise `TimeoutError` after killing it."""
        try:
            _send(self.process.stdin, task)
            # No clock waits longer than this, about three hundred years.
            reply = self.replies.get(
                timeout=None if seconds is None or seconds > threading.TIMEOUT_MAX else seconds
            )
        except queue.Empty:
            self.close()
            raise TimeoutError from None
        except BrokenPipeError:
            return None
        except BaseException:
            self.close()
            raise
        return None if reply is None else pickle.loads(reply)

    def printed(self) -> str:
        """Return what the child has written to its standard streams since last asked."""
        try:
            self.log.seek(self.read_so_far)
            text = self.log.read(MOST_LOG)
            self.read_so_far = self.log.seek(0, os.SEEK_END)
        except ValueError:  # it is closed, if by another thread only now
            return self.last_printed
        return text.decode(errors="replace")

    def close(self) -> None:
        """Kill the child and wait for it; what it printed can be asked for afterwards."""
        if self.alive:
            self._kill()
        self.process.wait()
        self.last_printed = self.printed()
        self.log.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _kill(self) -> None:
        """Kill the child and what it started: it leads a group of its own."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def _listen(self) -> None:
        while (reply := _receive(self.process.stdout)) is not None:
            self.replies.put(reply)
        self.replies.put(None)


_idle: list[Worker] = []
if hasattr(os, "register_at_fork"):  # a forked process must not talk to its parent's children
    os.register_at_fork(after_in_child=_idle.clear)


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()


def run_isolated(
    backend: Backend, form: Form, settings: Settings, start: Start | None = None
) -> Answer:
    """Return the backend's answer from a child process, `CRASHED` if the child died, `TIME_LIMIT` if it was ended.

    The deadline is settings.time_limit plus a grace of half a second, counted from when the child
    has the task.
    """
    import cloudpickle

    try:
        # The parent reads what is printed, so the child need not capture it.
        task = cloudpickle.dumps(partial(run_here, backend, form, settings, start, capture=False))
    except Exception as error:
        raise InvalidSettings(
            f"{backend.name} cannot run in a child process: {error}; pass isolate=False"
        ) from error
    try:
        worker = _idle.pop()  # asking first whether there is one would race with other threads
    except IndexError:
        worker = Worker()
    began = time.perf_counter()
    try:
        reply = worker.run(
            task, None if settings.time_limit is None else settings.time_limit + GRACE
        )
    except TimeoutError:
        seconds = time.perf_counter() - began
        return Answer(
            Stop.TIME_LIMIT,
            seconds=seconds,
            native=f"ended by klopt after {seconds:.2f} s",
            log=worker.printed(),
        )
    log = worker.printed()
    if reply is None:
        code = worker.process.wait()
        worker.close()
        return Answer(Stop.CRASHED, native=last_words(code), log=log)
    # What made a backend crash may have spoilt its process for the next one.
    if (
        worker.alive
        and not _idle
        and not (isinstance(reply, Answer) and reply.stop is Stop.CRASHED)
    ):
        _idle.append(worker)
    else:
        worker.close()
    if isinstance(reply, BaseException):
        raise reply
    assert isinstance(reply, Answer)
    native = "changed its copy of the input" if reply.native == CHANGED else reply.native
    return replace(reply, native=native, log=reply.log + log)


def serve(parent: int | None = None) -> None:
    """Be the child: call what comes from standard input until it closes, and die with the parent if one is given."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent is not None:
        _die_with(parent)
    stream_in = os.fdopen(os.dup(0), "rb")
    stream_out = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.dup2(2, 1)  # stray prints join standard error, never the protocol
    _send(stream_out, b"")
    while (task := _receive(stream_in)) is not None:
        _send(stream_out, pickle.dumps(_answer(task)))


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when its parent is gone; elsewhere look whether it is."""
    set_death_signal = 1
    with suppress(OSError, AttributeError, TypeError):  # no such library, or no such function in it
        if (
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL) == 0
            and os.getppid() == parent
        ):
            return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _answer(task: bytes) -> Any:
    try:
        call = pickle.loads(task)
    except Exception as error:
        return InvalidSettings(
            f"the child process could not load the task: {type(error).__name__}: {error}"
        )
    try:
        return call()
    except BaseException as error:  # SystemExit and bad settings are the parent's to raise
        return error
    finally:
        sys.stdout.flush()
        flush_c()


def last_words(code: int) -> str:
    """Return how a process ended, in words."""
    if code < 0:
        return f"the child process died of {signal.Signals(-code).name}"
    return f"the child process ended with exit code {code}"


def _send(stream: IO[bytes] | None, data: bytes) -> None:
    assert stream is not None
    stream.write(_HEADER.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> bytes | None:
    assert stream is not None
    try:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack(header)
        data = stream.read(size)
    except ValueError:  # closed under our feet by close()
        return None
    return data if len(data) == size else None
