"""Stores of others and damaged ones: one kind of error that says where, nothing run, nothing outside touched."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import Counter
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fuzz.fuzz_store import GOOD, LIMIT_S, Original, a_run, content, forge, fuzz, run_sql

import klopt
from klopt.bench.array_files import MAX_BYTES
from klopt.bench.comparison import Comparison, compare
from klopt.bench.database import MAX_CELL_BYTES, InvalidStore
from klopt.bench.rows import storable
from klopt.bench.store import Store, StoreFailed
from klopt.bench.worker import FinishedRun
from klopt.cli.main import main
from klopt.errors import InvalidSettings
from klopt.model.backend import Step, Stop
from klopt.proof.certificate import Verdict

pytestmark = pytest.mark.skipif(os.name != "posix", reason="makes links and pipes")
LP = klopt.problems.LP([1.0, 2], A_ub=[[-1, -1]], b_ub=[-5])
HANGS = "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM g)"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def place(original: Original, tmp_path: Path) -> Path:
    """A copy of the store, to be damaged."""
    original.copy(tmp_path / "place")
    return tmp_path / "place"


def read_while_writing(path: Path) -> None:
    with Store(path) as store:
        for run in store.runs():
            store.trace(run.key)


def refused(path: Path, text: str) -> None:
    """Reading and writing are refused with the same kind of error, and the command says it in a paragraph."""
    with pytest.raises(InvalidSettings, match=text):
        content(path)
    with pytest.raises(InvalidSettings, match=text):
        read_while_writing(path)
    done = CliRunner().invoke(main, ["report", str(path)])
    assert done.exit_code == 2
    assert done.output.startswith("klopt:")
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE runs SET verdict = 'PROVEN' WHERE rowid = 3", r"row 3 .*verdict is 'PROVEN'"),
        ("UPDATE runs SET lower = 'abc' WHERE rowid = 2", r"row 2 .*lower is 'abc'; expected a nu"),
        ("UPDATE runs SET upper = NULL WHERE rowid = 2", r"row 2 .*upper is None"),
        ("UPDATE runs SET lower = 1e9 WHERE rowid = 1", r"row 1 .*lower is 1000000000\.0 and upper"),
        ("UPDATE runs SET upper = upper + 1e-9 WHERE rowid = 4", r"row 4 .*checksum"),
        ("UPDATE runs SET log = x'ff'", "row 1 .*log is b"),
        ("UPDATE runs SET size = 'x'", "row 1 .*size is 'x'; expected a whole number"),
        ("DELETE FROM runs WHERE rowid = 5", "rows are missing"),
        ("DELETE FROM contents", "rows are missing"),
        ("UPDATE commands SET command = 'rm -r /'", "rows are missing, changed"),
        ("UPDATE environments SET content = '{}'", "rows are missing, changed"),
        ("CREATE VIEW v AS SELECT 1", "its view 'v' is none that klopt makes"),
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "its trigger 't'"),
        ("CREATE INDEX i ON runs (lower)", "its index 'i'"),
        ("ALTER TABLE runs ADD COLUMN x", "its table 'runs' is none that klopt makes"),
        ("DROP TABLE claims", "no (table|index) 'claims|sqlite_autoindex_claims_1"),
        ("PRAGMA user_version = 3", "has schema 3 and this klopt knows 5; use the klopt"),
        ("PRAGMA application_id = 7", "database of something else than klopt's runs"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(place: Path, statement: str, text: str) -> None:
    run_sql(place, statement)
    refused(place / "runs.db", text)


def test_a_trigger_runs_in_no_comparison(place: Path) -> None:
    """`klopt.compare` used to meet it in its own assertion, after the trigger had emptied the table."""
    run_sql(place, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
    with pytest.raises(InvalidStore, match="its trigger 't'"):
        compare(LP, ["highs"], store=place / "runs.db", repeat=1, time_limit=5, progress=False)


def test_a_view_without_an_end_is_not_run(place: Path) -> None:
    run_sql(
        place,
        "ALTER TABLE runs RENAME TO r0",
        f"CREATE VIEW runs AS {HANGS} SELECT r0.* FROM r0, g WHERE g.n < 0",
    )
    began = time.monotonic()
    refused(place / "runs.db", "is none that klopt makes")
    assert time.monotonic() - began < LIMIT_S


def test_a_statement_without_an_end_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klopt.bench.database.MAX_STATEMENT_S", 0.3)
    with (
        Store(place / "runs.db", read_only=True) as store,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        store.database.execute(f"{HANGS} SELECT count(*) FROM g WHERE n < 0").fetchall()


def test_a_cell_that_is_too_large_is_not_read(place: Path) -> None:
    run_sql(place, f"UPDATE runs SET log = zeroblob({2 * MAX_CELL_BYTES})")
    refused(place / "runs.db", "too big")


@pytest.mark.parametrize(
    ("content_", "text"),
    [(b"", "is empty|holds no runs"), (b"no database" * 99, "not a database"), (bytes(9000), "not a")],
)  # fmt: skip
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content_: bytes, text: str) -> None:
    (tmp_path / "runs.db").write_bytes(content_)
    with pytest.raises(InvalidSettings, match=text):
        Comparison.load(tmp_path / "runs.db")


def test_a_store_that_is_cut_off_is_refused(place: Path) -> None:
    data = (place / "runs.db").read_bytes()
    (place / "runs.db").write_bytes(data[: len(data) // 2])
    refused(place / "runs.db", "malformed|damaged")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_that_may_not_be_read_is_refused(place: Path) -> None:
    (place / "runs.db").chmod(0)
    with pytest.raises(InvalidSettings, match="cannot be used as a store"):
        Comparison.load(place / "runs.db")


def test_the_write_ahead_file_of_another_store_is_refused_and_not_copied(
    place: Path, original: Original
) -> None:
    before = (place / "runs.db").read_bytes()
    shutil.copy(original.other / "kept-runs.db-wal", place / "runs.db-wal")
    refused(place / "runs.db", "belongs to another store than runs.db, or the files runs.db-wal")
    assert (place / "runs.db").read_bytes() == before
    # Without the stranger the store is what it was.
    for name in ("runs.db-wal", "runs.db-shm"):
        (place / name).unlink(missing_ok=True)
    assert content(place / "runs.db") == original.content


def test_the_journal_of_another_database_is_refused_and_not_played_back(place: Path) -> None:
    before = (place / "runs.db").read_bytes()
    (place / "runs.db-journal").write_bytes(bytes.fromhex("d9d505f920a163d7").ljust(5000, b"\1"))
    refused(place / "runs.db", "runs.db-journal is not of this store")
    assert (place / "runs.db").read_bytes() == before


# Links.


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    """A file named `unfinished` in it used to be overwritten and removed."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "unfinished").write_text("precious")
    (tmp_path / "link.db.arrays").symlink_to(victim)
    with pytest.raises(InvalidStore, match=r"link\.db\.arrays is no folder, or a link to one"):
        compare(LP, ["highs"], store=tmp_path / "link.db", repeat=1, time_limit=5, progress=False)
    assert [file.name for file in victim.iterdir()] == ["unfinished"]
    assert (victim / "unfinished").read_text() == "precious"


def test_a_link_inside_the_folder_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "runs.db.arrays"
    folder.mkdir()
    run = a_run(1)
    for name in ("unfinished", "store", f"{run.key}.npz"):
        (folder / name).symlink_to(victim)
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(run))
        assert store.trace(run.key) == ()
    assert victim.read_text() == "precious"
    assert not any(file.is_symlink() for file in folder.iterdir())


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_linked_file_is_refused(place: Path, end: str) -> None:
    victim = place.parent / "victim"
    victim.write_bytes((place / "runs.db").read_bytes())
    before = victim.read_bytes()
    (place / f"runs.db{end}").unlink(missing_ok=True)
    (place / f"runs.db{end}").symlink_to(victim)
    refused(place / "runs.db", f"runs.db{end} is a symbolic link")
    assert victim.read_bytes() == before


def test_a_pipe_or_a_folder_in_the_place_of_a_store_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    refused(tmp_path / "pipe.db", "is no ordinary file")
    (tmp_path / "folder.db").mkdir()
    refused(tmp_path / "folder.db", "is a folder")


# Arrays.


def test_a_changed_array_file_is_refused(place: Path) -> None:
    run = a_run(3)
    (place / "runs.db.arrays" / f"{run.key}.npz").write_bytes(b"PK")
    refused(place / "runs.db", f"{run.key}.npz is not the file that was written")


def test_an_array_file_that_is_gone_leaves_the_run(place: Path, original: Original) -> None:
    run = a_run(3)
    (place / "runs.db.arrays" / f"{run.key}.npz").unlink()
    loaded = Comparison.load(place / "runs.db")
    assert loaded.traces[run.key] == ()
    assert len(loaded.runs) == len(original.content)


def test_a_forged_key_leads_nowhere(place: Path) -> None:
    np.savez(place / "victim.npz", trace=np.zeros((1, 4)))
    forge(place, 1, key="../victim")
    refused(place / "runs.db", r"key is '\.\./victim'; expected letters and digits")


def test_a_forged_interval_is_loaded_as_it_is(place: Path) -> None:
    """A checksum notices damage. It cannot tell who wrote a row: SECURITY.md says so."""
    forge(place, 1, lower=-5.0)
    assert Comparison.load(place / "runs.db").runs[0].lower == -5.0


def test_a_text_does_nothing_to_a_terminal(place: Path) -> None:
    """A name may move the cursor, set the title of the window or clear the screen."""
    evil = "\x1b[2J\x1b]0;title\x07\x9b31m"
    names = ("problem", "backend", "formulation", "native", "unenforced", "family", "data")
    texts = dict.fromkeys(names, evil)
    forge(place, 1, **texts, says="CRASHED", verdict="UNPROVEN", lower=-inf, upper=inf)
    done = CliRunner().invoke(main, ["report", str(place / "runs.db")])
    assert "?[2J?]0;title??31m" in done.output
    assert not {character for character in done.output if not character.isprintable()} - {"\n"}
    assert repr(Comparison.load(place / "runs.db")).isprintable()


# What is written.


def test_what_a_row_cannot_hold_is_kept_as_far_as_it_can_be(tmp_path: Path) -> None:
    odd = replace(
        a_run(0), native="\ud800 odd", iterations=2**70, log="x" * 3_000_000, memory_limit=2**70
    )
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(odd, (Step(0, 0.0, -0.0, 1.0),), {"x": np.zeros(())}))
        (found,) = store.runs()
        assert (found.native, found.iterations, len(found.log)) == ("? odd", None, 1_000_000)
        assert found.verdict is Verdict.OPTIMAL
        assert store.arrays(odd.key)["x"].shape == ()


@pytest.mark.parametrize("flaw", [{"lower": 3.0, "upper": 2.0}, {"lower": nan}, {"sense": "up"}])
def test_a_run_that_contradicts_itself_proves_nothing(flaw: dict[str, object]) -> None:
    kept = storable(replace(a_run(0), **{"sense": "min", **flaw}))  # type: ignore[arg-type]
    assert kept.says is Stop.CRASHED
    assert kept.verdict is Verdict.UNPROVEN
    assert (kept.lower, kept.upper) == (-inf, inf)
    assert "klopt could not keep what came of it" in kept.native


def test_arrays_beyond_the_limit_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klopt.bench.array_files.MAX_BYTES", 1000)
    assert MAX_BYTES > 1000
    with Store(tmp_path / "runs.db") as store:
        store.add(FinishedRun(a_run(0), (), {"small": np.zeros(9), "large": np.zeros(900)}))
        assert set(store.arrays(a_run(0).key)) == {"small"}


def test_a_store_that_is_damaged_while_it_is_open_is_said_so(place: Path) -> None:
    with Store(place / "runs.db") as store:
        size = (place / "runs.db").stat().st_size
        with open(place / "runs.db", "r+b") as file:
            file.seek(4096)
            file.write(b"\xaa" * (size - 4096))
        for end in ("-wal", "-shm"):
            (place / f"runs.db{end}").unlink(missing_ok=True)
        with pytest.raises((InvalidStore, StoreFailed), match=r"malformed|damaged|could not take"):
            store.add(FinishedRun(replace(a_run(50), key="later")))


# The fuzzer, for a fixed time; `python tests/fuzz/fuzz_store.py 500` is the long one.


def test_no_damaged_store_gets_through(tmp_path: Path) -> None:
    count = 48
    outcomes: Counter[str] = Counter()
    for counts in fuzz(count, 20261118, tmp_path).values():
        outcomes += counts
    assert outcomes.total() == count
    assert set(outcomes) <= set(GOOD), outcomes
    assert outcomes["refused"] > count / 2
