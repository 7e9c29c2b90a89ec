"""Child processes for runs: killed at their deadline, noticed when they die, replaced.

A child starts with its threads pinned in its environment, before anything is imported. Before a
route's first run in a child a small instance is solved, which is neither timed nor kept. The
deadline of a run is its time limit plus half a second of grace; then the child is killed. A crash
costs the run that caused it and a new child. `klopt.bench.worker` is what runs inside the child.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from klopt.bench.environment import environment
from klopt.bench.run_certificates import MAX_WAIT_S, RunCertificate, write_certificate
from klopt.bench.task import Task
from klopt.bench.worker import (
    MAX_LOG_CHARACTERS,
    FinishedRun,
    make_ready,
    perform,
    unenforced,
    warm_up,
)
from klopt.engine.clean_answer import error_text
from klopt.engine.run_in_child import (
    GRACE_S,
    UNREADABLE,
    ChildDied,
    ChildProcess,
    TaskFailed,
    under_limit,
)
from klopt.errors import InvalidSettings
from klopt.model.backend import Stop

__all__ = ["WorkerSlot", "run_all"]

POOLS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
"""The environment variables that pin threads begin so and end in `_THREADS`."""
MAX_LOADING_S = 10.0
"""Loading a library is given up after this time; on a busy computer some take five."""
MIN_WARM_UP_S = 2.0
MAX_WARM_UP_S = 5.0
"""A warm-up may take as long as the run, but between these two."""
MAX_CERTIFICATES = 50
"""How many certificates are remembered for runs that find the same point."""
JOIN_TIMEOUT_S = 5.0
"""How long a thread is waited for after its child was killed."""


class _ChildFailed(Exception):
    """A call to the child that brought no answer."""

    def __init__(self, stop: Stop, native: str) -> None:
        super().__init__(native)
        self.stop = stop
        self.native = native


class WorkerSlot:
    """One child process at a time, in which runs are made one after the other."""

    def __init__(self) -> None:
        self.environment = environment()
        self.worker: ChildProcess | None = None
        self.threads = 0
        self.warm: set[tuple[str, str, str]] = set()
        self.unwarmable: set[tuple[str, str, str]] = set()
        self.closed = False
        self.certificates: dict[str, RunCertificate] = {}
        """Those written last: repeats of a run find the same point."""
        self.slow: set[str] = set()
        """The data of problems whose certificates take too long."""
        self.kept = threading.Semaphore(0)
        """Released when the caller has dealt with a run, and when there is no more to do."""

    def run(self, task: Task) -> FinishedRun:
        """Return what came of the task; nothing that a backend does makes it raise."""
        notes = self._prepare(task)
        limit = task.settings.time_limit
        deadline = None if limit is None else limit + GRACE_S
        began = time.perf_counter()
        try:
            finished = self._call(partial(perform, task), deadline)
            # What ran in the child may have replied in its place.
            if not isinstance(finished, FinishedRun) or finished.run.key != task.key:
                raise _ChildFailed(Stop.CRASHED, UNREADABLE)
        except _ChildFailed as failure:
            native = failure.native
            # Native code rarely looks whether it got the memory that it asked for.
            if failure.stop is Stop.CRASHED:
                native += under_limit(task.memory_limit)
            finished = FinishedRun(task.unproven_run(failure.stop, native))
        wall = time.perf_counter() - began

        run = finished.run
        printed = "" if self.worker is None else self.worker.printed()
        run = replace(
            run,
            wall=wall,
            unenforced=unenforced(task),
            notes="; ".join(filter(None, (run.notes, notes))),
            log=(run.log + printed)[-MAX_LOG_CHARACTERS:],
            machine=self.environment.key,
        )
        return replace(
            finished,
            run=run,
            environment=self.environment,
            evidence=None,
            certificate=self._certificate(task, finished),
        )

    def _certificate(self, task: Task, finished: FinishedRun) -> RunCertificate:
        """Have the child write the certificate of the run, whose clock has stopped."""
        evidence = finished.evidence
        if not task.certificate or evidence is None:
            return RunCertificate()
        too_slow = RunCertificate(reason=f"writing it takes more than {task.certificate:g} s")
        if task.data in self.slow:
            return too_slow
        key = evidence.key(task.data)
        if key not in self.certificates:
            made: Any = too_slow
            write = partial(write_certificate, task.problem, evidence, task.certificate)
            with suppress(_ChildFailed):
                made = self._call(write, MAX_WAIT_S)
            if not isinstance(made, RunCertificate):
                made = RunCertificate(reason=UNREADABLE)
            if made == too_slow:
                self.slow.add(task.data)
            self.certificates[key] = made
            if len(self.certificates) > MAX_CERTIFICATES:
                del self.certificates[next(iter(self.certificates))]
        return self.certificates[key]

    def close(self) -> None:
        """Kill the child; a run that is in it ends as crashed."""
        self.closed = True
        self.kept.release()
        if self.worker is not None:
            self.worker.close()

    def _prepare(self, task: Task) -> str:
        """See that a child is alive and warm for the route; return a note on the times."""
        self._ensure_child(task.settings.threads)
        route = (type(task.problem).__qualname__, task.formulation, task.backend.name)
        if route not in self.warm:
            self._load(task)
        if route not in self.warm | self.unwarmable:
            self._warm_up(task, route)
        assert self.worker is not None
        self.worker.printed()  # what was printed so far does not belong to the run
        if route in self.warm:
            return ""
        return "there was no warm-up: the first use of the library counts"

    def _warm_up(self, task: Task, route: tuple[str, str, str]) -> None:
        wanted = task.settings.time_limit or MAX_WARM_UP_S
        limit = min(max(wanted, MIN_WARM_UP_S), MAX_WARM_UP_S)
        small = partial(
            warm_up, type(task.problem), task.formulation, task.backend, task.memory_limit, limit
        )
        try:
            self._call(small, limit + GRACE_S)
            self.warm.add(route)
        except _ChildFailed:
            # The child may be dead: the run gets a new one, with its libraries loaded at least.
            self.unwarmable.add(route)
            self._ensure_child(task.settings.threads)
            self._load(task)

    def _load(self, task: Task) -> None:
        """Have the child import what the run needs."""
        threads = task.settings.threads
        ready = partial(make_ready, type(task.problem), task.backend, threads)
        with suppress(_ChildFailed):
            self._call(ready, MAX_LOADING_S)
        self._ensure_child(threads)

    def _ensure_child(self, threads: int) -> None:
        """Keep the child if it is fit for another run with so many threads, else start one."""
        if self.worker is not None and self.worker.reusable and self.threads == threads:
            return
        if self.worker is not None:
            self.worker.close()
        self.warm.clear()
        self.threads = threads
        variables = {f"{name}_THREADS": str(threads) for name in POOLS}
        self.worker = ChildProcess(variables, module="klopt.bench.worker")
        if self.closed:  # while the child was starting
            self.worker.close()

    def _call(self, function: partial[Any], seconds: float | None) -> Any:
        """Return what the function returns in the child; raise where that is killed or dies."""
        import cloudpickle

        assert self.worker is not None
        began = time.perf_counter()
        try:
            task = cloudpickle.dumps(function)
        except Exception as error:
            unsent = f"it cannot be sent to a child process: {error_text(error)}"
            raise _ChildFailed(Stop.REJECTED, unsent) from error
        try:
            return self.worker.run(task, seconds)
        except TimeoutError:
            killed = f"ended by klopt after {time.perf_counter() - began:.2f} s"
            raise _ChildFailed(Stop.TIME_LIMIT, killed) from None
        except (ChildDied, TaskFailed, InvalidSettings) as error:
            raise _ChildFailed(Stop.CRASHED, str(error)) from error


_Done = tuple[WorkerSlot, FinishedRun | BaseException | None]
"""A run that was made, an error that was met, or None from a thread that has no more to do."""


class TaskSource(Protocol):
    """Tasks that several threads may ask for, and how many there are."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Task]: ...


def run_all(tasks: TaskSource, jobs: int = 1) -> Generator[FinishedRun, None, None]:
    """Yield each run as it is finished, `jobs` at a time; leaving early kills the rest.

    The tasks are asked for one by one, when a child is free, by several threads; an iterator that
    waits ends when it is closed by its owner. A child begins its next run when the caller has dealt
    with the last one and asks for more: a caller that keeps each run, and is killed, loses of each
    child the one run that it has not kept, however slow the disk is.
    """
    waiting = iter(tasks)
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    slots = [WorkerSlot() for _ in range(min(jobs, len(tasks)))]
    threads = [
        threading.Thread(target=_work, args=(slot, waiting, done), daemon=True) for slot in slots
    ]
    for thread in threads:
        thread.start()
    working = len(threads)
    try:
        while working:
            slot, finished = done.get()
            if finished is None:
                working -= 1
            elif isinstance(finished, BaseException):
                raise finished
            else:
                yield finished
                slot.kept.release()
    finally:
        for slot in slots:
            slot.close()
        for thread in threads:
            thread.join(timeout=JOIN_TIMEOUT_S)


def _work(slot: WorkerSlot, waiting: Iterator[Task], done: queue.SimpleQueue[_Done]) -> None:
    """Make runs until there are no more, then say so by None."""
    try:
        for task in waiting:
            if slot.closed:
                return
            done.put((slot, slot.run(task)))
            slot.kept.acquire()
    except BaseException as error:
        # An error of klopt itself must reach the caller, who would wait without end.
        done.put((slot, error))
        return
    done.put((slot, None))
