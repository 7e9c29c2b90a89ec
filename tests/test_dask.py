"""The same runs on Dask workers: the same table, also where a worker is lost on the way."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bad_backends
import cloudpickle
import pytest
from bad_backends import Bad, Segfaulter
from processes import PATIENCE_S

import klopt
from klopt.bench.comparison import Comparison, compare
from klopt.bench.record import Run
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Stop
from klopt.model.forms import ConeForm

distributed = pytest.importorskip(
    "distributed", reason="dask is not installed; pip install 'klopt[dask]'"
)

LP = klopt.problems.LP(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-2.0])


class Napper(Bad):
    """Hangs on the problem, not on the small instance of the warm-up."""

    name = "napper"

    def misbehave(self, form: ConeForm) -> Answer:
        time.sleep(60 if form.c.size == 2 else 0)
        return Answer(Stop.STALLED)


BACKENDS = ["highs", "clarabel", Segfaulter(), Napper()]


def outcome(run: Run) -> tuple[object, ...]:
    """All of a run but its times; how long a run lasted until it was ended is a time too."""
    return (
        run.key,
        run.problem,
        run.backend,
        run.says,
        run.verdict,
        run.lower,
        run.upper,
        run.proof,
        run.iterations,
    )


def made(**options: Any) -> Comparison:
    return compare(("line", LP), BACKENDS, repeat=2, time_limit=1.0, **options)


@pytest.fixture(autouse=True, scope="module")
def by_value() -> Iterator[None]:
    """Tests are no package: what they send to another machine goes by value, and by name again when they are done."""
    modules = (bad_backends, sys.modules[__name__])
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def client() -> Iterator[Any]:
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as found:
        yield found


@pytest.mark.slow
def test_a_worker_gives_what_a_child_of_this_process_gives() -> None:
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        there = compare(("line", LP), "highs", repeat=1, time_limit=20.0, jobs=client)
    here = compare(("line", LP), "highs", repeat=1, time_limit=20.0)
    assert [outcome(run) for run in there.runs] == [outcome(run) for run in here.runs]
    with pytest.raises(InvalidSettings, match="expected a number, a Dask client or its address"):
        compare(LP, "highs", jobs=2.5)  # type: ignore[arg-type]


class Killer(threading.Thread):
    """Kills the first worker that is seen at work."""

    def __init__(self, client: Any) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.process_ids: dict[str, int] = client.run(os.getpid)
        self.killed = ""

    def run(self) -> None:
        while not self.killed:
            busy = [address for address, tasks in self.client.processing().items() if tasks]
            time.sleep(0.5)
            if busy:
                self.killed = busy[0]
                os.kill(self.process_ids[self.killed], signal.SIGKILL)


@pytest.mark.slow
def test_a_lost_worker_costs_time_and_nothing_else(client: Any, tmp_path: Path) -> None:
    killer = Killer(client)
    killer.start()
    there = made(jobs=client, store=tmp_path / "there.db")
    killer.join(timeout=60.0)
    assert killer.killed
    assert killer.killed not in client.run(
        os.getpid
    )  # it came back, if it did, under another address
    here = made(jobs=2)
    assert [outcome(run) for run in there.runs] == [outcome(run) for run in here.runs]
    assert len(Comparison.load(there.store).runs) == len(here.runs) == 8
    # Who sleeps does so for a minute.
    assert all(run.wall < PATIENCE_S for run in there.runs)


@pytest.mark.slow
def test_an_address_will_do_and_a_store_is_resumed(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    first = compare(LP, ["highs"], repeat=2, jobs=address, store=tmp_path / "runs.db")
    again = compare(LP, ["highs", "clarabel"], repeat=2, jobs=address, store=tmp_path / "runs.db")
    assert (len(first.reused), len(again.reused)) == (0, 2)
    assert {run.verdict.name for run in again.runs} == {"OPTIMAL"}


def test_a_cluster_that_does_not_answer_is_a_bad_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klopt.bench.dask_cluster.CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(InvalidSettings, match="no Dask scheduler answers at tcp:"):
        compare(LP, jobs="tcp://127.0.0.1:1")
    with pytest.raises(InvalidSettings, match="expected a number, a Dask client"):
        compare(LP, jobs=2.5)
