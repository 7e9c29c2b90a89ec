"""Several comparisons into one store: each run is made once, and nobody waits for one that is gone."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_backends import Eater, Sleeper
from counted_backends import Counted, Gated, KilledWhile

import klopt
from klopt.bench.comparison import Comparison, compare
from klopt.bench.owner import Owner, clear_gone, is_running
from klopt.bench.record import KILLED, Run
from klopt.bench.shared_work import MAX_TRIES, SharedWork
from klopt.bench.store import Store
from klopt.bench.worker import FinishedRun
from klopt.engine.run_in_child import exit_description
from klopt.model.backend import Backend, Stop

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

WAIT_S = 60.0
"""How long a test waits for what takes a second or two on an idle computer."""
LP = klopt.problems.LP
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import counted_backends, klopt
LP = klopt.problems.LP
place = Path({place!r})
problems = [(f"p{{i}}", LP([1.0 + i, 2], A_ub=[[-1, -1]], b_ub=[-5])) for i in range({problems})]
backend = counted_backends.{backend}(place)
found = klopt.compare(problems, [backend], store=place / "runs.db", repeat={repeat}, time_limit=50, progress=False)
print(len(found.runs), len(found.reused))
"""


def problems(count: int) -> list[tuple[str, klopt.Problem]]:
    return [(f"p{i}", LP([1.0 + i, 2], A_ub=[[-1, -1]], b_ub=[-5])) for i in range(count)]


def start(place: Path, backend: str, count: int, repeat: int = 1) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parent)
    code = SCRIPT.format(
        tests=tests, place=str(place), backend=backend, problems=count, repeat=repeat
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def wait_until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def claims(place: Path) -> list[str]:
    with sqlite3.connect(f"file:{place / 'runs.db'}?mode=ro", uri=True) as database:
        return [key for (key,) in database.execute("SELECT key FROM claims")]


def of(place: Path, backend: Backend, count: int = 1, **options: object) -> Comparison:
    return compare(  # type: ignore[call-overload, no-any-return, unused-ignore]
        problems(count),
        [backend],
        store=place / "runs.db",
        **{"repeat": 1, "time_limit": 50, "progress": False, **options},  # type: ignore[arg-type]
    )


def test_three_comparisons_into_one_store_share_the_work(tmp_path: Path) -> None:
    others = [start(tmp_path, "Counted", 12, repeat=2) for _ in range(3)]
    said = [other.communicate(timeout=2 * WAIT_S)[0].split() for other in others]
    assert [runs for runs, _ in said] == ["24", "24", "24"]
    assert sum(24 - int(reused) for _, reused in said) == 24
    assert Counter(Counted(tmp_path).made()) == {f"{1.0 + i}": 2 for i in range(12)}
    assert len(Comparison.load(tmp_path / "runs.db").runs) == 24
    assert claims(tmp_path) == []
    assert not list(tmp_path.glob("runs.db.arrays/*.owner"))


def test_two_threads_share_the_work_too(tmp_path: Path) -> None:
    """One process with two comparisons: a lock of the process would not tell them apart."""
    backend = Counted(tmp_path)
    found: list[Comparison] = []
    threads = [
        threading.Thread(target=lambda: found.append(of(tmp_path, backend, 6))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=2 * WAIT_S)
    assert [len(each.runs) for each in found] == [6, 6]
    assert len(backend.made()) == len(set(backend.made())) == 6


def test_without_resume_runs_that_another_makes_meanwhile_are_shared(tmp_path: Path) -> None:
    """All are made anew, but not twice: what was finished since the start is new enough."""
    backend = Counted(tmp_path)
    of(tmp_path, backend, 4)
    found: list[Comparison] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(of(tmp_path, backend, 4, resume=False)), daemon=True
        )
        for _ in range(2)
    ]
    (tmp_path / "made").unlink()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=2 * WAIT_S)
    assert [len(each.runs) for each in found] == [4, 4]
    # A comparison that began after the other had finished a run makes it again: it was asked to.
    assert set(backend.made()) == {f"{1.0 + i}" for i in range(4)}


def test_a_killed_comparison_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "shut").touch()
    other = start(tmp_path, "Gated", 3)
    wait_until(lambda: Gated(tmp_path).made())
    assert len(claims(tmp_path)) == 1
    other.kill()
    other.wait()
    (tmp_path / "shut").unlink()
    found = of(tmp_path, Gated(tmp_path), 3)
    assert {run.verdict.name for run in found.runs} == {"OPTIMAL"}
    assert not found.reused
    assert claims(tmp_path) == []
    assert not list(tmp_path.glob("runs.db.arrays/*.owner"))


def test_a_run_in_flight_elsewhere_is_waited_for_and_not_made(tmp_path: Path) -> None:
    (tmp_path / "shut").touch()
    other = start(tmp_path, "Gated", 1)
    wait_until(lambda: Gated(tmp_path).made())
    found: list[Comparison] = []
    waiting = threading.Thread(target=lambda: found.append(of(tmp_path, Gated(tmp_path))))
    waiting.start()
    time.sleep(0.5)
    assert waiting.is_alive()
    (tmp_path / "shut").unlink()
    assert other.communicate(timeout=WAIT_S)[0].split() == ["1", "0"]
    waiting.join(timeout=WAIT_S)
    assert len(found[0].reused) == 1
    assert Gated(tmp_path).made() == ["1.0"]


def test_ctrl_c_frees_what_was_claimed(tmp_path: Path) -> None:
    (tmp_path / "shut").touch()
    other = start(tmp_path, "Gated", 3)
    wait_until(lambda: Gated(tmp_path).made())
    other.send_signal(signal.SIGINT)
    assert other.wait(timeout=WAIT_S) != 0
    assert claims(tmp_path) == []
    assert not list(tmp_path.glob("runs.db.arrays/*.owner"))


@pytest.mark.slow
def test_comparisons_that_are_killed_while_they_share_lose_and_repeat_nothing(
    tmp_path: Path,
) -> None:
    """Of three at a time one is killed, again and again; a run in flight may be begun anew, no other."""
    count = 30
    killed = 0
    running = [start(tmp_path, "Counted", count) for _ in range(3)]
    for number in range(6):
        before = len(Counted(tmp_path).made())
        wait_until(lambda before=before: len(Counted(tmp_path).made()) > before or before >= count)  # type: ignore[misc]
        victim = running[number % 3]
        killed += victim.poll() is None
        victim.kill()
        victim.wait()
        running[number % 3] = start(tmp_path, "Counted", count)
    for each in running:
        assert each.communicate(timeout=2 * WAIT_S)[0].split()[0] == str(count)
    made = Counter(Counted(tmp_path).made())
    assert set(made) == {f"{1.0 + i}" for i in range(count)}
    assert made.total() <= count + killed
    assert len(Comparison.load(tmp_path / "runs.db").runs) == count


# A child that is killed from outside.


def test_a_run_whose_child_was_killed_once_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "once").touch()
    backend = KilledWhile(tmp_path)
    (run,) = of(tmp_path, backend).runs
    assert run.verdict.name == "OPTIMAL"
    assert len(backend.made()) == 2


def test_a_run_whose_child_is_always_killed_is_kept_and_tried_again_on_resume(
    tmp_path: Path,
) -> None:
    (tmp_path / "deadly").touch()
    backend = KilledWhile(tmp_path)
    (run,) = of(tmp_path, backend).runs
    assert run.says is Stop.CRASHED
    assert run.was_killed
    assert len(backend.made()) == MAX_TRIES
    (tmp_path / "deadly").unlink()
    again = of(tmp_path, backend)
    assert not again.reused
    assert again.runs[0].verdict.name == "OPTIMAL"
    assert of(tmp_path, backend).reused == {run.key}
    assert len(backend.made()) == MAX_TRIES + 1


def test_a_run_that_klopt_itself_killed_is_kept(tmp_path: Path) -> None:
    (run,) = of(tmp_path, Sleeper(), time_limit=1).runs
    assert run.says is Stop.TIME_LIMIT
    assert not run.was_killed
    assert of(tmp_path, Sleeper(), time_limit=1).reused == {run.key}


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit is enforced on Linux only")
@pytest.mark.slow
def test_a_run_that_met_its_memory_limit_is_kept(tmp_path: Path) -> None:
    options = {"time_limit": 20, "memory_limit": 400_000_000}
    (run,) = of(tmp_path, Eater(), **options).runs
    assert run.says is Stop.CRASHED
    assert not run.was_killed
    assert of(tmp_path, Eater(), **options).reused == {run.key}


def test_what_is_said_of_a_killed_child_is_what_a_store_looks_for() -> None:
    assert exit_description(-signal.SIGKILL) == KILLED


# Claims by themselves.


def added(store: Store, key: str, run: Run) -> None:
    from dataclasses import replace

    store.add(FinishedRun(replace(run, key=key)))


def test_a_claim_is_one_owners_and_is_free_when_that_owner_is_gone(tmp_path: Path) -> None:
    from recorded import PROVEN

    with Store(tmp_path / "runs.db") as one, Store(tmp_path / "runs.db") as two:
        first, second = one.owner(), two.owner()
        assert one.claim(["a", "b", "c"], first, {}, 2).mine == ("a", "b")
        assert two.claim(["a", "b", "c"], second, {}).mine == ("c",)
        added(one, "a", PROVEN)
        found = two.claim(["a", "b"], second, {})
        assert (found.mine, found.finished) == ((), ("a",))
        one.release(first, ["b"])
        assert two.claim(["b"], second, {}).mine == ("b",)
        assert one.claim(["b", "c"], first, {}).mine == ()
        second.release()
        assert one.claim(["b", "c"], first, {}).mine == ("b", "c")
        first.release()


def test_a_name_that_leads_out_of_the_folder_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / "precious.owner").write_text("precious")
    with Store(tmp_path / "runs.db") as store:
        store.database.execute("INSERT INTO claims VALUES ('a', '../precious')")
        owner = store.owner()
        assert store.claim(["a"], owner, {}).mine == ("a",)
        owner.release()
    assert (tmp_path / "precious.owner").read_text() == "precious"


def test_a_link_in_the_place_of_an_owner_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"{'0' * 32}.owner").symlink_to(tmp_path / "precious")
    os.mkfifo(folder / f"{'1' * 32}.owner")
    assert not is_running(folder, "0" * 32)
    assert not is_running(folder, "1" * 32)
    assert (tmp_path / "precious").read_text() == "precious"


def test_an_owner_is_not_cleared_away_while_it_is_being_made(tmp_path: Path) -> None:
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            clear_gone(tmp_path)

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    try:
        for _ in range(300):
            owner = Owner(tmp_path)
            assert is_running(tmp_path, owner.name)
            owner.release()
            assert not is_running(tmp_path, owner.name)
    finally:
        stop.set()
        sweeping.join()


def test_work_that_is_closed_lets_go_of_threads_that_wait(tmp_path: Path) -> None:
    from klopt.bench.task import Task
    from klopt.model.backend import Settings

    task = Task(problems(1)[0][1], "p", "d", "primal", Counted(tmp_path), Settings(time_limit=9.0))
    with Store(tmp_path / "runs.db") as store:
        work = SharedWork(store, [task], {})
        assert next(work) is task
        ended: list[str] = []

        def ask() -> None:
            ended.extend("more" for _ in work)
            ended.append("end")

        waiting = threading.Thread(target=ask)
        waiting.start()
        time.sleep(0.1)
        assert not ended
        work.close()
        waiting.join(timeout=WAIT_S)
        assert ended == ["end"]
