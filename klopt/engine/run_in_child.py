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

__all__ = ["ChildProcess", "exit_description", "run_isolated"]

GRACE_S = 0.5
"""Seconds from the deadline until a child is killed: who keeps the limit can still answer."""

MAX_LOG_BYTES = 1_000_000
"""How much of what one run prints is kept."""

PR_SET_PDEATHSIG = 1
"""The option of Linux' `prctl` for the signal to get when the parent dies, by sys/prctl.h."""

_HEADER = struct.Struct("!Q")
_CHILD = "import {module}; from klopt.engine.run_in_child import serve; serve({parent})"


class ChildProcess:
    """One child process that calls functions, one at a time.

    Parameters
    ----------
    variables
        What its environment has beside that of this process.
    module
        What it imports before the first task, so that no task waits for it.
    bound
        Whether it dies with the thread that made it, whatever ends that thread's process and
        whatever the child is doing.

    >>> worker = ChildProcess()
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
        self.read_so_far = 0
        self.last_printed = ""

        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        script = _CHILD.format(module=module, parent=os.getpid() if bound else None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, **(variables or {}), "PYTHONPATH": path},
            # A Ctrl-C at the terminal is for the parent, which ends the child itself.
            start_new_session=True,
        )
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        # The child sends its first reply once its imports are done, so that they do not count.
        self.replies.get()

    @property
    def alive(self) -> bool:
        """Whether the child can take another task."""
        return self.process.poll() is None

    def run(self, task: bytes, seconds: float | None) -> Any:
        """Return the child's reply, None where it died; after so many seconds kill it and raise."""
        # No clock waits longer than TIMEOUT_MAX, about three hundred years.
        if seconds is not None and seconds > threading.TIMEOUT_MAX:
            seconds = None
        try:
            _send(self.process.stdin, task)
            reply = self.replies.get(timeout=seconds)
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
            text = self.log.read(MAX_LOG_BYTES)
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


_idle: list[ChildProcess] = []
if hasattr(os, "register_at_fork"):  # a forked process must not talk to its parent's children
    os.register_at_fork(after_in_child=_idle.clear)


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()


def run_isolated(
    backend: Backend, form: Form, settings: Settings, start: Start | None = None
) -> Answer:
    """Return the backend's answer from a child process.

    Its stop is `CRASHED` if the child died and `TIME_LIMIT` if klopt ended it, half a second after
    the deadline, which counts from when the child has the task.

    Parameters
    ----------
    backend, form, settings, start
        As in `run_here`; all of them are pickled.
    """
    task = _pickled(backend, form, settings, start)
    worker = _take_worker()
    limit = None if settings.time_limit is None else settings.time_limit + GRACE_S
    began = time.perf_counter()
    try:
        reply = worker.run(task, limit)
    except TimeoutError:
        seconds = time.perf_counter() - began
        native = f"ended by klopt after {seconds:.2f} s"
        return Answer(Stop.TIME_LIMIT, seconds=seconds, native=native, log=worker.printed())

    log = worker.printed()
    if reply is None:
        code = worker.process.wait()
        worker.close()
        return Answer(Stop.CRASHED, native=exit_description(code), log=log)

    # What made a backend crash may have left its process unfit for the next one.
    crashed = isinstance(reply, Answer) and reply.stop is Stop.CRASHED
    if worker.alive and not crashed and not _idle:
        _idle.append(worker)
    else:
        worker.close()
    if isinstance(reply, BaseException):
        raise reply
    assert isinstance(reply, Answer)
    # The problem of this process is as it was: it need not be built anew.
    native = "changed its copy of the input" if reply.native == CHANGED else reply.native
    return replace(reply, native=native, log=reply.log + log)


def _pickled(backend: Backend, form: Form, settings: Settings, start: Start | None) -> bytes:
    """The run as a task for a child; the parent reads what is printed, so the child need not."""
    import cloudpickle

    try:
        task: bytes = cloudpickle.dumps(
            partial(run_here, backend, form, settings, start, capture=False)
        )
    except Exception as error:
        raise InvalidSettings(
            f"{backend.name} cannot run in a child process: {error}; pass isolate=False"
        ) from error
    return task


def _take_worker() -> ChildProcess:
    """An idle child, or a new one."""
    # Asking first whether there is one would race with other threads.
    try:
        return _idle.pop()
    except IndexError:
        return ChildProcess()


def serve(parent: int | None = None) -> None:
    """Be the child: call what comes from standard input until it closes, or the parent is gone."""
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
    # There may be no C library, or no such function in it.
    with suppress(OSError, AttributeError, TypeError):
        status = ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A parent that was gone before sends no signal any more.
        if status == 0 and os.getppid() == parent:
            return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(GRACE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _answer(task: bytes) -> Any:
    """What the task returns, or the exception that it raised: the parent raises it."""
    try:
        call = pickle.loads(task)
    except Exception as error:
        return InvalidSettings(
            f"the child process could not load the task: {type(error).__name__}: {error}"
        )
    try:
        return call()
    except BaseException as error:  # by sys.exit too
        return error
    finally:
        sys.stdout.flush()
        flush_c()


def exit_description(code: int) -> str:
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
    except ValueError:  # `close` has closed the stream while another thread reads it
        return None
    return data if len(data) == size else None
