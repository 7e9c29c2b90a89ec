"""The store: what is written is read back, two may write, a full disk is said so, and a row never lacks its files."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.bench.environment import environment
from klopt.bench.record import Run
from klopt.bench.store import SCHEMA, Store, StoreFailed
from klopt.bench.worker import FinishedRun
from klopt.errors import InvalidSettings
from klopt.model.backend import Step, Stop
from klopt.proof.certificate import Verdict

RUN = Run(
    key="k0", problem="p", family="LP", size=3, data="d", sense="min", formulation="primal", backend="highs",
    version="1", tol=1e-6, time_limit=inf, memory_limit=0, threads=1, seed=0, repeat=0, says=Stop.OPTIMAL,
    native="<img src=x>", verdict=Verdict.OPTIMAL, lower=-inf, upper=2.5, proof="bracket", primal=nan, iterations=None,
)  # fmt: skip
numbers = st.floats(allow_nan=True, allow_infinity=True)


def same(one: Run, other: Run) -> bool:
    """Equal, where NaN equals itself."""
    return all(
        a == b or (a != a and b != b)
        for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


@given(
    lower=st.floats(max_value=2.5, allow_nan=False),
    wall=numbers,
    iterations=st.none() | st.integers(0, 2**62),
    text=st.text(),
)
def test_a_run_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    lower: float,
    wall: float,
    iterations: int | None,
    text: str,
) -> None:
    run = replace(
        RUN,
        lower=lower,
        wall=wall,
        iterations=iterations,
        log=text.encode(errors="replace").decode(),
    )
    path = tmp_path_factory.mktemp("store") / "runs.db"
    with Store(path) as store:
        store.add(FinishedRun(run))
    with Store(path, read_only=True) as store:
        (found,) = store.runs()
        assert same(found, run)
        assert isinstance(found.verdict, Verdict)
        assert isinstance(found.says, Stop)


def test_traces_arrays_and_environments_are_kept(tmp_path: Path) -> None:
    trace = (Step(0, 0.5, -inf, 3.0), Step(10, 1.5, 1.0, 2.0))
    here = environment()
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(RUN, trace, {"alpha": np.arange(3.0), "kernel": np.eye(2)}, here))
        assert store.trace("k0") == trace
        arrays = store.arrays("k0")
        assert np.array_equal(arrays["alpha"], [0, 1, 2])
        assert np.array_equal(arrays["kernel"], np.eye(2))
        assert store.environments() == {here.key: here}
        assert store.keys() == {"k0"}
        assert store.run("k1") is None
        assert store.trace("k1") == ()


def test_a_run_of_the_same_key_is_replaced(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(RUN))
        store.add(FinishedRun(replace(RUN, upper=2.0), (Step(1, 1.0, 0.0, 2.0),)))
        (found,) = store.runs()
        assert found.upper == 2.0
        assert len(store.trace("k0")) == 1


def test_no_unfinished_file_is_left(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(RUN))
        assert {file.name for file in store.files.path.iterdir()} == {"k0.npz", "store"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"no database at all" * 100, "file is not a database"),
        ("CREATE TABLE other (x)", "database of something else"),
        (
            "CREATE TABLE runs (x); PRAGMA application_id = 0x6B6C6F70; PRAGMA user_version = 99",
            "has schema 99",
        ),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_untouched(
    tmp_path: Path, content: bytes | str, text: str
) -> None:
    path = tmp_path / "runs.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        database = sqlite3.connect(path)
        database.executescript(content)
        database.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(InvalidSettings, match=text):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_the_schema_is_that_of_the_record(tmp_path: Path) -> None:
    """A field more or less is another schema: change the number when this fails."""
    with Store(tmp_path / "runs.db") as store:
        columns = [row[1] for row in store.database.execute("PRAGMA table_info(runs)")]
    assert (SCHEMA, len(columns), columns[-1]) == (5, 45, "checksum")


def test_a_store_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="no store"):
        Store(tmp_path / "runs.db", read_only=True)
    assert not list(tmp_path.iterdir())


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_store import RUN
from dataclasses import replace
from klopt.bench.worker import FinishedRun
from klopt.bench.store import Store
with Store(sys.argv[1]) as store:
    for i in range(25):
        store.add(FinishedRun(replace(RUN, key=f"{{sys.argv[2]}}-{{i}}")))
"""


def test_two_may_write_to_one_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    code = WRITER.format(tests=str(Path(__file__).parent))
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("one", "two")
    ]
    assert [writer.wait(timeout=600) for writer in writers] == [0, 0]
    with Store(path, read_only=True) as store:
        assert store.keys() == {f"{name}-{i}" for name in ("one", "two") for i in range(25)}


def test_two_may_make_a_store_at_the_same_moment(tmp_path: Path) -> None:
    def make(path: Path, start: threading.Barrier) -> int:
        start.wait()
        with Store(path) as store:
            return len(store.runs())

    with ThreadPoolExecutor(4) as pool:
        for i in range(50):
            start = threading.Barrier(4)
            made = [pool.submit(make, tmp_path / f"{i}.db", start) for _ in range(4)]
            assert [future.result(timeout=600) for future in made] == [0, 0, 0, 0]


FILLS = """
import resource, sys
sys.path.insert(0, {tests!r})
from test_store import RUN
from dataclasses import replace
import numpy as np
from klopt.bench.worker import FinishedRun
from klopt.bench.store import Store, StoreFailed
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(sys.argv[1])
store.add(FinishedRun(replace(RUN, key="before")))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    for i in range(2000):
        arrays = {{"noise": np.random.rand({entries})}}
        run = replace(RUN, key=f"run {{i}}", log="x" * 4000)
        store.add(FinishedRun(run, (), arrays))
        print(i, flush=True)
except StoreFailed as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
@pytest.mark.parametrize(
    ("entries", "reason"),
    [(1, "disk I/O error"), (100_000, "the disk is full")],
    ids=["database", "arrays"],
)
def test_a_file_that_cannot_grow_is_a_clear_error_and_the_store_stays_readable(
    tmp_path: Path, entries: int, reason: str
) -> None:
    path = tmp_path / "runs.db"
    code = textwrap.dedent(FILLS.format(tests=str(Path(__file__).parent), entries=entries))
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), "400000"], capture_output=True, text=True
    )
    assert done.returncode == 7, done.stderr
    *finished, said = done.stdout.splitlines()
    assert f"could not take a run: {reason}" in said
    assert "The runs before it are kept" in said
    with Store(path, read_only=True) as store:
        assert store.keys() == {"before", *(f"run {i}" for i in finished)}
        assert not list(store.files.path.glob("unfinished"))


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small file system: needs root"
)
def test_a_disk_that_is_really_full_is_said_so(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    finished: list[str] = []

    def fill(store: Store) -> None:
        for i in range(1000):
            store.add(FinishedRun(replace(RUN, key=f"run {i}", log="x" * 4000)))
            finished.append(f"run {i}")

    try:
        with (
            Store(tmp_path / "runs.db") as store,
            pytest.raises(StoreFailed, match="the disk is full"),
        ):
            fill(store)
        assert finished
        with Store(tmp_path / "runs.db", read_only=True) as store:
            assert store.keys() == set(finished)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with Store(tmp_path / "runs.db", read_only=True) as store:
            assert store.keys() == set(finished)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_folder_that_may_not_be_written_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(InvalidSettings, match="no permission"):
        Store(tmp_path / "runs.db")


def test_a_failing_disk_says_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Store(tmp_path / "runs.db") as store:
        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(StoreFailed, match="Input/output error"):
            store.add(FinishedRun(RUN))
        assert store.keys() == frozenset()
