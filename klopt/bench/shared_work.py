"""`SharedWork`: the missing runs of a comparison, each handed out to one comparison only.

Several comparisons may work for one store. Each claims a run before it makes it, waits for what
others have claimed, and takes over the claims of those that are gone. A run whose child was killed
from outside is made once more, at the end; if that is in vain it is kept as crashed, and the next
comparison tries again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from klopt.bench.record import Run
from klopt.bench.store import Store
from klopt.bench.task import Task
from klopt.bench.worker import FinishedRun

__all__ = ["SharedWork"]

MAX_TRIES = 2
"""How often one comparison makes a run whose child is killed from outside."""
POLL_S = 0.1
"""How often a comparison that has nothing left to do looks whether others are done."""


class SharedWork:
    """An iterator of tasks that threads may share; it ends when all are settled.

    Parameters
    ----------
    store
        Where runs are kept and claimed.
    tasks
        What is to be made, in this order.
    before
        The checksums of the runs that are to be made all the same, by their keys.
    """

    def __init__(self, store: Store, tasks: Sequence[Task], before: Mapping[str, str]) -> None:
        self.store = store
        self.before = dict(before)
        self.waiting = {task.key: task for task in tasks}
        self.in_flight: dict[str, Task] = {}
        self.tries: Counter[str] = Counter()
        self.from_others: list[Run] = []
        """The runs that other comparisons have made meanwhile."""
        self.closed = False
        self.changed = threading.Condition()
        self.owner = store.owner()

    def __len__(self) -> int:
        return len(self.waiting) + len(self.in_flight)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Task:
        """Return the next task that is free; wait while others make all that is left."""
        for task in self._take(1):
            return task
        raise StopIteration

    def all_free(self) -> tuple[Task, ...]:
        """Return all tasks that are free now, at least one of them if any is left; else none."""
        return self._take(None)

    def settle(self, finished: FinishedRun) -> bool:
        """Keep a finished run, or put its task back; return which."""
        run = finished.run
        self.tries[run.key] += 1
        again = run.was_killed and self.tries[run.key] < MAX_TRIES
        if not again:
            self.store.add(finished)
        with self.changed:
            task = self.in_flight.pop(run.key)
            if again:
                self.waiting[run.key] = task
            self.changed.notify_all()
        return not again

    def close(self) -> None:
        """Give up what is claimed and not yet made, and let waiting threads end."""
        with self.changed:
            if self.closed:
                return
            self.closed = True
            self.changed.notify_all()
            try:
                self.store.release(self.owner)
            finally:
                self.owner.release()

    def _take(self, limit: int | None) -> tuple[Task, ...]:
        with self.changed:
            while not self.closed and len(self):
                tasks = self._claimed(limit) if self.waiting else ()
                if tasks:
                    self.in_flight.update({task.key: task for task in tasks})
                    return tasks
                # Others tell nobody when they are done; this comparison's own threads do.
                if len(self):
                    self.changed.wait(POLL_S if self.waiting else None)
        return ()

    def _claimed(self, limit: int | None) -> tuple[Task, ...]:
        """Tasks that are free, claimed; what others have finished is taken out of the list."""
        found = self.store.claim(list(self.waiting), self.owner, self.before, limit)
        for key in found.finished:
            run = self.store.run(key)
            assert run is not None
            # What became of it there says nothing: it is tried here, too.
            if run.was_killed:
                self.before[key] = self.store.checksums()[key]
            else:
                del self.waiting[key]
                self.from_others.append(run)
        return tuple(self.waiting.pop(key) for key in found.mine)
