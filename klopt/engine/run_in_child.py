"""A backend in a child process: a crash, hang, leak or print stays there.

The child is a fresh interpreter that speaks over its standard streams and waits for the next task,
a function to call, so one child serves many solves. Tasks and replies are numbered, and a reply
carries a word that only the two of them know: what else comes through the pipe is no reply. A reply
is read as data: numbers, text, arrays and klopt's own records. The child is killed, never asked,
when the deadline has passed; what it prints goes to the log. `klopt.engine.guard` ends what it has
started, and ends it with its parent.
"""

from __future__ import annotations

import atexit
import enum
import importlib
import os
import pickle
import queue
import random
import secrets
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import is_dataclass, replace
from functools import partial
from io import BytesIO
from typing import IO, Any

import attrs

from klopt.engine.clean_answer import clean_text, error_text
from klopt.engine.guard import end_descendants, has_strangers
from klopt.engine.interrupts import call_within
from klopt.engine.memory import gigabytes, limited_memory
from klopt.engine.run_here import CHANGED, run_here
from klopt.engine.standard_streams import MAX_LOG_BYTES, flush_c
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.forms import Form

__all__ = [
    "GRACE_S",
    "MIN_RUN_S",
    "UNREADABLE",
    "ChildDied",
    "ChildProcess",
    "TaskFailed",
    "exit_description",
    "run_isolated",
    "under_limit",
]

GRACE_S = 0.5
"""Seconds from the deadline until a child is killed: who keeps the limit can still answer."""
MIN_RUN_S = 0.5
"""Seconds that a run has, or its whole limit, however long its child took to start."""
MIN_GRACE_S = 0.4
"""What it gets beyond that where its start has used up the limit."""
MAX_START_S = 60.0
"""How long a child may take to load what it needs before the first task."""
POLL_S = 0.25
"""How often a child that says nothing is looked at: a pipe may outlive its process."""
MAX_END_S = 0.5
"""How long a killed child is waited for before its guard is killed, too."""

UNREADABLE = "the child process sent something that is no reply"
NEVER_STARTED = f"the child process was not ready after {MAX_START_S:g} s"
NO_REPLY_EXIT_CODE = 70
"""That of a child whose pipe was closed by what ran in it."""

_WORD_BYTES = 16
_HEADER = struct.Struct(f"!{_WORD_BYTES}sQQ")
"""The word, the number of the task, the size of what follows."""
_CHILD = (
    "from klopt.engine.guard import stand_guard; stand_guard({parent}); "
    "import {module}; from klopt.engine.run_in_child import serve; serve()"
)


class ChildDied(Exception):
    """The child has ended, or can no longer be understood; the message says how."""


class TaskFailed(Exception):
    """The task raised an error in the child; the message is its text."""


class ChildProcess:
    """One child process that calls functions, one at a time.

    Parameters
    ----------
    variables
        What its environment has beside that of this process.
    module
        What it imports before the first task, so that no task waits for it.

    >>> worker = ChildProcess()
    >>> worker.run(pickle.dumps(os.getpid), seconds=10.0) == worker.worker
    True
    >>> worker.close()
    """

    def __init__(
        self, variables: Mapping[str, str] | None = None, module: str = "klopt.engine.run_here"
    ) -> None:
        # Opened for appending: reading here must not move where the child writes.
        self.log = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self.read_so_far = 0
        self.last_printed = ""
        self.worker: int | None = None
        """The process that does the work, known once it is ready."""
        self.busy = False
        """Whether a task was sent whose reply has not come."""

        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        script = _CHILD.format(module=module, parent=os.getpid())
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, **(variables or {}), "PYTHONPATH": path},
            # A Ctrl-C at the terminal is for the parent, which ends the child itself.
            start_new_session=True,
        )
        self.closing = threading.Lock()
        self.number = 0
        self.word = secrets.token_bytes(_WORD_BYTES)
        self.tasks: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[tuple[int, bytes] | str] = queue.SimpleQueue()
        # Neither a child that does not read nor one that does not answer holds up the caller.
        self.threads = [
            threading.Thread(target=work, daemon=True) for work in (self._speak, self._listen)
        ]
        for thread in self.threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether the child can take another task."""
        return self.process.poll() is None

    @property
    def reusable(self) -> bool:
        """Whether the child is alive, has no task and has left no processes behind."""
        if self.busy or not self.alive:
            return False
        return self.worker is None or not has_strangers(self.process.pid, self.worker)

    def run(self, task: bytes, seconds: float | None) -> Any:
        """Return what the task, a pickled function, returns in the child.

        Parameters
        ----------
        task
            What is called there.
        seconds
            How long it may take from when the child is ready; None for no limit.

        Raises
        ------
        TimeoutError
            It took longer; the child has been killed.
        ChildDied
            The child ended without a reply, or sent something else; it has been killed.
        TaskFailed, InvalidSettings
            The task raised an error.
        """
        self.wait_until_ready()
        self.number += 1
        self.busy = True
        self.tasks.put((self.number, task))
        try:
            reply = self._reply(seconds)
            kind, value = _loaded(reply)
        except BaseException:  # a Ctrl-C too
            self.close()
            raise
        self.busy = False
        if kind == "settings":
            raise InvalidSettings(value)
        if kind == "raised":
            raise TaskFailed(value)
        return value

    def wait_until_ready(self) -> None:
        """Wait for the first reply, the number of the process, sent once its imports are done."""
        if self.worker is not None:
            return
        try:
            kind, value = _loaded(self._reply(MAX_START_S))
            if kind != "value" or not isinstance(value, int):
                raise ChildDied(UNREADABLE)
            self.worker = value
        except TimeoutError:
            self.close()
            raise ChildDied(NEVER_STARTED) from None
        except BaseException:
            self.close()
            raise

    def _reply(self, seconds: float | None) -> bytes:
        """The reply to the latest task."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            wait = POLL_S
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - time.monotonic()))
            try:
                said = self.replies.get(timeout=wait)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError from None
                if not self.alive and self.replies.empty():
                    raise ChildDied(self._how_it_ended()) from None
                continue
            if isinstance(said, str):
                raise ChildDied(said or self._how_it_ended())
            number, data = said
            # What replies to an earlier task came too late.
            if number == self.number:
                return data

    def _how_it_ended(self) -> str:
        """How the child ended by itself; one that only closed its pipe is killed."""
        try:
            code = self.process.wait(timeout=POLL_S)
        except subprocess.TimeoutExpired:
            return "the child process closed its pipe"
        return exit_description(code)

    def printed(self) -> str:
        """Return what the child has written to its standard streams since last asked."""
        try:
            self.log.seek(self.read_so_far)
            text = self.log.read(MAX_LOG_BYTES)
            self.read_so_far = self.log.seek(0, os.SEEK_END)
        except ValueError:  # it is closed, if by another thread only now
            return self.last_printed
        return clean_text(text.decode(errors="replace"))

    def close(self) -> None:
        """Kill the child and all that it started; what it printed can be asked for afterwards."""
        with self.closing:
            if self.log.closed:
                return
            self._kill()
            self.tasks.put(None)
            # They close the pipes; a pipe that somebody else holds is not waited for.
            for thread in self.threads:
                thread.join(timeout=MAX_END_S)
            self.last_printed = self.printed()
            self.log.close()

    def _kill(self) -> None:
        """Kill first, then wait, and never for long."""
        if self.worker is not None and self.alive:
            end_descendants(self.process.pid, self.worker)
            # The guard ends by itself when all below it have ended, and says how.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=MAX_END_S)
        # Before it is ready, and where the guard does not do its duty; its worker dies with it.
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=MAX_END_S)

    def _speak(self) -> None:
        """Send the tasks; the pipe belongs to this thread, which closes it."""
        stream = self.process.stdin
        assert stream is not None
        # A broken pipe is noticed by who listens.
        with suppress(OSError, ValueError), stream:
            stream.write(self.word)
            stream.flush()
            while (task := self.tasks.get()) is not None:
                _send(stream, self.word, *task)

    def _listen(self) -> None:
        """Pass on the replies, and at last why there are no more."""
        stream = self.process.stdout
        assert stream is not None
        why = ""
        try:
            with stream:
                while (frame := _receive(stream, self.word)) is not None:
                    self.replies.put(frame)
        except Exception:  # what came is no reply, or is larger than the memory
            why = UNREADABLE
        self.replies.put(why)


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
    the deadline. The start of the child counts; what is left of the limit is the limit in the child.

    Parameters
    ----------
    backend, form, settings, start
        As in `run_here`; all of them are pickled.
    """
    began = time.perf_counter()
    taken: list[ChildProcess] = []

    def enter(undo: ExitStack) -> None:
        taken.append(_take_child())
        undo.callback(_give_back, taken[0])

    def run() -> Answer:
        child = taken[0]
        try:
            child.wait_until_ready()
        except ChildDied as error:
            return _crashed(child, error, settings)
        # Its first import belongs to the start.
        importlib.import_module("cloudpickle")
        used = time.perf_counter() - began
        left = _with_time_left(settings, used)
        task = _pickled(backend, form, left, start)
        answer = _answer_of(child, task, left, _patience(settings, left, used))
        return replace(answer, load=answer.load + used)

    return call_within(enter, run)


def _with_time_left(settings: Settings, used: float) -> Settings:
    """The settings with what the start of a child has left of the time limit."""
    limit = settings.time_limit
    if limit is None:
        return settings
    return attrs.evolve(settings, time_limit=max(limit - used, min(limit, MIN_RUN_S)))


def _patience(settings: Settings, left: Settings, used: float) -> float | None:
    """When a child is ended, in seconds from now: the grace is counted from the limit itself."""
    if settings.time_limit is None or left.time_limit is None:
        return None
    return max(settings.time_limit + GRACE_S - used, left.time_limit + MIN_GRACE_S)


def _crashed(child: ChildProcess, error: Exception, settings: Settings) -> Answer:
    """The answer of a child that died."""
    # Native code rarely looks whether it got the memory that it asked for.
    native = f"{error}{under_limit(settings.memory_limit)}"
    child.close()
    return Answer(Stop.CRASHED, native=native, log=child.printed())


def _answer_of(
    child: ChildProcess, task: bytes, settings: Settings, patience: float | None
) -> Answer:
    """What the child answers within so many seconds, or what became of it."""
    began = time.perf_counter()
    try:
        reply = child.run(task, patience)
    except TimeoutError:
        seconds = time.perf_counter() - began
        native = f"ended by klopt after {seconds:.2f} s"
        return Answer(Stop.TIME_LIMIT, seconds=seconds, native=native, log=child.printed())
    except (ChildDied, TaskFailed) as error:
        return _crashed(child, error, settings)
    if not isinstance(reply, Answer):
        child.close()
        return Answer(Stop.CRASHED, native=UNREADABLE, log=child.printed())

    # What made a backend crash may have left its process unfit for the next one.
    if reply.stop is Stop.CRASHED:
        child.close()
    native = reply.native
    # The problem of this process is as it was: it need not be built anew.
    if native == CHANGED:
        native = "changed its copy of the input"
    elif reply.stop is Stop.CRASHED and native.startswith("MemoryError"):
        native += under_limit(settings.memory_limit)
    return replace(reply, native=native, log=reply.log + child.printed())


def under_limit(memory_limit: int | None) -> str:
    """Return the memory limit as what may explain a crash, "" where there was none."""
    return f" (under the limit of {gigabytes(memory_limit)})" if memory_limit else ""


def _pickled(backend: Backend, form: Form, settings: Settings, start: Start | None) -> bytes:
    """The run as a task for a child; the parent reads what is printed, so the child need not."""
    import cloudpickle

    try:
        task: bytes = cloudpickle.dumps(partial(_run_within_memory, backend, form, settings, start))
    except Exception as error:
        raise InvalidSettings(
            f"{backend.name} cannot run in a child process: {error_text(error)}; pass isolate=False"
        ) from error
    return task


def _run_within_memory(
    backend: Backend, form: Form, settings: Settings, start: Start | None
) -> Answer:
    with limited_memory(settings.memory_limit or 0):
        return run_here(backend, form, settings, start, capture=False)


def _take_child() -> ChildProcess:
    """An idle child, or a new one."""
    while True:
        # Asking first whether there is one would race with other threads.
        try:
            child = _idle.pop()
        except IndexError:
            return ChildProcess()
        # Somebody may have killed it meanwhile.
        if child.alive:
            return child
        child.close()


def _give_back(child: ChildProcess) -> None:
    if child.reusable and not _idle:
        _idle.append(child)
    else:
        child.close()


# In the child.


def serve() -> None:
    """Be the child: call what comes from standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Where a backend that closes or writes to files at random hardly finds them.
    tasks = os.fdopen(_moved_away(0), "rb")
    replies = os.fdopen(_moved_away(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.dup2(2, 1)  # stray prints join standard error, never the protocol
    os.close(quiet)

    own = os.getpid()
    word = tasks.read(_WORD_BYTES)
    try:
        _send(replies, word, 0, _dumped("value", own))
        while (frame := _receive(tasks, word)) is not None:
            number, task = frame
            reply = _reply_to(task)
            # A fork that came back from the task is not the process that was asked.
            if os.getpid() != own:
                os._exit(0)
            _send(replies, word, number, reply)
    except OSError:
        os._exit(NO_REPLY_EXIT_CODE)


def _moved_away(number: int) -> int:
    """The number of a copy of the file that is far from the others, at random."""
    try:
        import fcntl
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Some systems have no limit, and a table of open files for as many as the largest number.
        top = min(soft, 4096) if soft > 0 else 4096
        lowest = random.SystemRandom().randrange(top // 2, top - top // 8)
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, lowest)
    except (ImportError, OSError, ValueError):
        return os.dup(number)


def _reply_to(task: bytes) -> bytes:
    """What the task returns, or the text of the error that it raised."""
    try:
        call = pickle.loads(task)
    except BaseException as error:
        text = f"the child process could not load the task: {error_text(error)}"
        return _dumped("settings", text)
    try:
        return _dumped("value", call())
    except InvalidSettings as error:
        return _dumped("settings", clean_text(str(error)))
    except BaseException as error:  # by sys.exit too
        return _dumped("raised", error_text(error))
    finally:
        # A backend may have closed or replaced them.
        with suppress(Exception):
            sys.stdout.flush()
        flush_c()


def exit_description(code: int) -> str:
    """Return how a process ended, in words."""
    if code < 0:
        return f"the child process died of {signal.Signals(-code).name}"
    return f"the child process ended with exit code {code}"


# What is said, and how it is read.


def _dumped(kind: str, value: object) -> bytes:
    return pickle.dumps((kind, value))


class _DataReader(pickle.Unpickler):
    """Reads records and enumerations of klopt, and arrays: nothing that a reply could run."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if _is_known(module, name) else None
        is_array = module.partition(".")[0] == "numpy"
        if is_array or is_dataclass(found) or _is_enumeration(found):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no data")


ARRAY_NAMES = {"_reconstruct", "_frombuffer", "scalar", "ndarray", "dtype"}
"""What NumPy's arrays and numbers are made of when they are unpickled."""


def _is_known(module: str, name: str) -> bool:
    package = module.partition(".")[0]
    return package == "klopt" or (package == "numpy" and name in ARRAY_NAMES)


def _is_enumeration(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, enum.Enum)


def _loaded(data: bytes) -> tuple[str, Any]:
    """The kind of a reply and its value."""
    try:
        kind, value = _DataReader(BytesIO(data)).load()
    except Exception as error:
        raise ChildDied(UNREADABLE) from error
    return str(kind), value


def _send(stream: IO[bytes], word: bytes, number: int, data: bytes) -> None:
    stream.write(_HEADER.pack(word, number, len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes], word: bytes) -> tuple[int, bytes] | None:
    """The next number and what belongs to it, None at the end; a wrong word raises."""
    header = stream.read(_HEADER.size)
    if not header:
        return None
    if len(header) < _HEADER.size or header[:_WORD_BYTES] != word:
        raise ValueError(UNREADABLE)
    _, number, size = _HEADER.unpack(header)
    data = stream.read(size)
    return (number, data) if len(data) == size else None
