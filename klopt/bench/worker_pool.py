"""Seats for runs: each a child process with hard limits, kept for the next run, replaced when it dies.

A child starts with its threads pinned in its environment, before anything is imported. Before a
route's first run in a child a small instance is solved, which is neither timed nor kept. The
deadline of a run is its time limit plus half a second of grace; then the child is killed. A crash
costs the run that caused it and a new child.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from klopt.bench.environment import environment
from klopt.bench.task import Task
from klopt.bench.worker import LOG_TAIL, Outcome, make_ready, perform, unenforced, warm_up
from klopt.engine.run_in_child import GRACE, Worker, last_words
from klopt.model.backend import Stop

__all__ = ["WorkerSlot", "run_all"]

POOLS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
LONGEST_LOADING = 10.0
"""Seconds after which loading a library is given up; under load some take five."""
SHORTEST_WARM_UP, LONGEST_WARM_UP = 2.0, 5.0
"""Seconds after which a warm-up is ended: the time limit of the run, between these two."""


class _Ended(Exception):
    """A call to the child that brought no answer."""

    def __init__(self, stop: Stop, native: str) -> None:
        super().__init__(native)
        self.stop = stop
        self.native = native


class WorkerSlot:
    """One place where runs are made, one at a time."""

    def __init__(self) -> None:
        self.environment = environment()
        self.worker: Worker | None = None
        self.threads = 0
        self.warm: set[tuple[str, str, str]] = set()
        self.unwarmable: set[tuple[str, str, str]] = set()
        self.closed = False

    def run(self, task: Task) -> Outcome:
        """Return what came of the task; nothing that a backend does makes it raise."""
        notes = self._prepare(task)
        limit = task.settings.time_limit
        began = time.perf_counter()
        try:
            outcome: Outcome = self._call(
                partial(perform, task), None if limit is None else limit + GRACE
            )
        except _Ended as end:
            # Native code rarely looks whether it got the memory that it asked for.
            under = (
                f" (under the limit of {task.memory_limit / 1e9:.3g} GB)"
                if task.memory_limit
                else ""
            )
            outcome = Outcome(
                task.outcome(end.stop, end.native + under * (end.stop is Stop.CRASHED))
            )
        wall = time.perf_counter() - began
        run = outcome.run
        log = run.log + ("" if self.worker is None else self.worker.printed())
        run = replace(
            run,
            wall=wall,
            unenforced=unenforced(task),
            notes="; ".join(filter(None, (run.notes, notes))),
            log=log[-LOG_TAIL:],
            machine=self.environment.key,
        )
        return replace(outcome, run=run, environment=self.environment)

    def close(self) -> None:
        """Kill the child; a run that is in it ends as crashed."""
        self.closed = True
        if self.worker is not None:
            self.worker.close()

    def _prepare(self, task: Task) -> str:
        """See that there is a child that knows the route; return what a reader of the times should know."""
        kind, backend, threads = type(task.problem), task.backend, task.settings.threads
        self._seat(threads)
        route = kind.__qualname__, task.formulation, backend.name
        if route not in self.warm:
            self._load(task)
        if route not in self.warm | self.unwarmable:
            limit = min(
                max(task.settings.time_limit or LONGEST_WARM_UP, SHORTEST_WARM_UP), LONGEST_WARM_UP
            )
            try:
                self._call(
                    partial(warm_up, kind, task.formulation, backend, task.memory_limit, limit),
                    limit + GRACE,
                )
                self.warm.add(route)
            except _Ended:
                self.unwarmable.add(route)
                self._seat(threads)
                self._load(task)
        assert self.worker is not None
        self.worker.printed()  # what was printed so far is not the run's
        return (
            ""
            if route in self.warm
            else "there was no warm-up: the first use of the library counts"
        )

    def _load(self, task: Task) -> None:
        """Have the child import what the run needs, before a warm-up or, where that ends badly, in place of it."""
        threads = task.settings.threads
        with suppress(_Ended):
            self._call(
                partial(make_ready, type(task.problem), task.backend, threads), LONGEST_LOADING
            )
        self._seat(threads)

    def _seat(self, threads: int) -> None:
        """Have a child that is alive and has so many threads."""
        if self.worker is not None and self.worker.alive and self.threads == threads:
            return
        if self.worker is not None:
            self.worker.close()
        self.warm.clear()
        self.threads = threads
        variables = {f"{name}_THREADS": str(threads) for name in POOLS}
        self.worker = Worker(variables, module="klopt.bench.worker", bound=True)
        if self.closed:  # while the child was starting
            self.worker.close()

    def _call(self, function: partial[Any], seconds: float | None) -> Any:
        import cloudpickle

        assert self.worker is not None
        began = time.perf_counter()
        try:
            task = cloudpickle.dumps(function)
        except Exception as error:
            raise _Ended(Stop.REJECTED, f"it cannot be sent to a child process: {error}") from error
        try:
            reply = self.worker.run(task, seconds)
        except TimeoutError:
            raise _Ended(
                Stop.TIME_LIMIT, f"ended by klopt after {time.perf_counter() - began:.2f} s"
            ) from None
        if reply is None:
            code = self.worker.process.wait()
            self.worker.close()
            raise _Ended(Stop.CRASHED, last_words(code))
        if isinstance(reply, BaseException):
            raise _Ended(Stop.CRASHED, f"{type(reply).__name__}: {reply}")
        return reply


def run_all(tasks: Sequence[Task], jobs: int = 1) -> Generator[Outcome, None, None]:
    """Yield what came of each task, as they finish, from `jobs` seats; leaving early kills what is running."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    finished: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    seats = [WorkerSlot() for _ in range(min(jobs, len(tasks)))]
    threads = [
        threading.Thread(target=_work, args=(seat, waiting, finished), daemon=True)
        for seat in seats
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            outcome = finished.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        for seat in seats:
            seat.close()
        for thread in threads:
            thread.join(timeout=5.0)


def _work(
    seat: WorkerSlot,
    waiting: queue.SimpleQueue[Task],
    finished: queue.SimpleQueue[Outcome | BaseException],
) -> None:
    while not seat.closed:
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            finished.put(seat.run(task))
        except (
            BaseException
        ) as error:  # a bug of ours must reach the caller, who would wait for ever
            finished.put(error)
            return
