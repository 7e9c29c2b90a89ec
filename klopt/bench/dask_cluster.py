"""The same isolated runs on the workers of a Dask cluster.

Dask sends a task to a worker, which runs it in a child process of its own, with the same limits as
here, and sends back the finished run. A task whose worker is lost is given to another one; it is
yielded once, whatever became of its earlier attempts. A worker should have one thread, or its runs
disturb each other.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from klopt.bench.task import Task
from klopt.bench.worker import FinishedRun
from klopt.bench.worker_pool import WorkerSlot
from klopt.errors import InvalidSettings
from klopt.model.backend import Stop

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["connected", "run_on"]

CONNECT_TIMEOUT_S = 10.0
"""How long a scheduler is looked for."""


def connected(cluster: str | Client) -> Client:
    """Return a client of the cluster at that address, or the client itself."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InvalidSettings(
            "a cluster needs Dask, which is not installed; pip install 'klopt[dask]'"
        ) from error
    if isinstance(cluster, Client):
        return cluster
    if not isinstance(cluster, str):
        raise InvalidSettings(
            f"jobs is {cluster!r}; expected a number, a Dask client or its address"
        )
    try:
        return Client(cluster, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise InvalidSettings(f"no Dask scheduler answers at {cluster}: {error}") from error


def run_on(client: Client, tasks: Sequence[Task]) -> Generator[FinishedRun, None, None]:
    """Yield what came of each task, as they finish; leaving early cancels what has not begun."""
    import cloudpickle
    from distributed import KilledWorker, as_completed

    # Dask would answer a key that it has seen from memory.
    call = uuid.uuid4().hex
    pending = {f"klopt-{task.key}-{call}": task for task in tasks}
    futures = [
        client.submit(_run_there, cloudpickle.dumps(task), key=name)
        for name, task in pending.items()
    ]
    try:
        for future in as_completed(futures, loop=client.loop):
            try:
                finished = future.result()
            except KilledWorker as error:
                killed = f"it took its workers with it: {error}"
                finished = FinishedRun(pending[future.key].unproven_run(Stop.CRASHED, killed))
            # A task that was given to a second worker may come back twice.
            if pending.pop(future.key, None) is not None:
                yield finished
    finally:
        client.cancel([future for future in futures if future.key in pending])


_here = threading.local()


def _run_there(task: bytes) -> Any:
    """Run a task on a worker, in the child process that belongs to its thread."""
    if not hasattr(_here, "slot"):
        _here.slot = WorkerSlot()
    return _here.slot.run(pickle.loads(task))
