"""Damaged and foreign stores: each is refused by klopt's own error or gives exactly the rows that were written.

    python tests/fuzz/fuzz_store.py 500              five hundred stores, and a table of what came of them
    python tests/fuzz/fuzz_store.py 500 --seed 7     others

A store of made-up runs is copied, the copy is damaged in one of the ways below, loaded, and opened for
writing. Beside it lies a folder that no link may lead to: it must stay as it is.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import io
import os
import random
import shutil
import sqlite3
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf, nan
from pathlib import Path

import numpy as np

from klopt.bench.comparison import Comparison
from klopt.bench.environment import environment
from klopt.bench.record import Run
from klopt.bench.rows import checksum
from klopt.bench.store import Store
from klopt.bench.worker import FinishedRun
from klopt.errors import KloptError
from klopt.model.backend import Step, Stop
from klopt.proof.certificate import Verdict

RUNS = 12
LIMIT_S = 10.0
"""What loading a store of so few runs may take; it takes a hundredth of a second."""
OUTCOMES = ("refused", "unharmed", "earlier", "raw exception", "different", "slow", "outside")
GOOD = OUTCOMES[:3]
HOSTILE: tuple[object, ...] = (
    "PROVEN", "", "abc", None, nan, inf, -inf, 1e308, -1, 2**63 - 1, b"\xff\x00", "x" * 5000, "\x1b[2J",
    "../../victim/precious", "<script>alert(1)</script>", 3.5,
)  # fmt: skip


def a_run(number: int) -> Run:
    return Run(
        key=f"{number:032x}", problem=f"p{number % 4}", family="LP", size=3, data=f"d{number % 4}", sense="min",
        formulation="primal", backend="highs", version="1", tol=1e-6, time_limit=60.0, memory_limit=0, threads=1,
        seed=0, repeat=number // 4, says=Stop.OPTIMAL, native="<img src=x>", verdict=Verdict.OPTIMAL,
        lower=1.5 + number, upper=1.5 + number + 1e-9, proof="bracket", build=0.1, solve=0.2, certify=0.3,
        wall=0.7, iterations=number, log="a line\n" * 40, notes="a note", began="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


class Original:
    """An undamaged store, what it holds, and another one with a write-ahead file that is not yet copied into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "original"
        self.with_wal = folder / "with_wal"
        self.other = folder / "other"
        for place, shift in ((self.folder, 0), (self.with_wal, 0), (self.other, 100)):
            place.mkdir()
            with Store(place / "runs.db") as store:
                store.note("klopt compare LP")
                for number in range(RUNS):
                    rng = np.random.default_rng(number)
                    run = a_run(number + shift)
                    trace = (Step(0, 0.5, -inf, 3.0), Step(number, 1.5, run.lower, run.upper))
                    arrays = {"x": rng.normal(size=5), "kernel": rng.normal(size=(3, 3))}
                    store.add(FinishedRun(run, trace, arrays, environment()))
                # While the store is open its last rows are in the write-ahead file only.
                if place != self.folder:
                    for name in os.listdir(place):
                        if name.startswith("runs.db-") or name == "runs.db":
                            shutil.copy(place / name, place / f"kept-{name}")
        self.content = content(self.folder / "runs.db")

    def copy(self, target: Path, *, wal: bool = False) -> None:
        source = self.with_wal if wal else self.folder
        target.mkdir()
        shutil.copytree(source / "runs.db.arrays", target / "runs.db.arrays")
        for name in ("runs.db", "runs.db-wal") if wal else ("runs.db",):
            shutil.copy(source / (f"kept-{name}" if wal else name), target / name)


Content = tuple[tuple[object, ...], ...]


def content(path: Path) -> Content:
    """Every row of a store with all that belongs to it, as something that can be compared."""
    loaded = Comparison.load(path)
    rows = []
    for run in loaded.runs:
        values = tuple(repr(getattr(run, field.name)) for field in fields(Run))
        arrays = loaded.arrays(run.key)
        points = tuple((name, array.tobytes()) for name, array in sorted(arrays.items()))
        rows.append((*values, repr(loaded.traces[run.key]), points))
    return tuple(rows)


# Ways to damage a store: each takes the folder of a copy, and a source of chance.

Damage = Callable[[Path, random.Random], None]


def somewhere(data: bytes | bytearray, chance: random.Random) -> int:
    """A place in a file, mostly one that holds something: half of a small database is empty."""
    places = [chance.randrange(len(data)) for _ in range(8)]
    return next((place for place in places if data[place]), places[0])


def overwrite(name: str, length: int) -> Damage:
    """Random bytes in a random place of a file."""

    def damage(place: Path, chance: random.Random) -> None:
        data = bytearray((place / name).read_bytes())
        for _ in range(chance.choice([1, 1, 3])):
            at = somewhere(data, chance)
            data[at : at + length] = chance.randbytes(length)[: len(data) - at]
        (place / name).write_bytes(data)

    return damage


def flip(name: str) -> Damage:
    def damage(place: Path, chance: random.Random) -> None:
        data = bytearray((place / name).read_bytes())
        data[somewhere(data, chance)] ^= 1 << chance.randrange(8)
        (place / name).write_bytes(data)

    return damage


def cut(name: str) -> Damage:
    def damage(place: Path, chance: random.Random) -> None:
        data = (place / name).read_bytes()
        (place / name).write_bytes(data[: chance.randrange(len(data))])

    return damage


def pages(place: Path, chance: random.Random) -> None:
    """A page emptied, doubled in the place of another, or exchanged with it."""
    data = bytearray((place / "runs.db").read_bytes())
    size = 4096
    one, two = (size * chance.randrange(len(data) // size) for _ in range(2))
    first, second = data[one : one + size], data[two : two + size]
    data[one : one + size] = chance.choice([bytes(size), second, chance.randbytes(size)])
    if chance.random() < 0.5:
        data[two : two + size] = first
    (place / "runs.db").write_bytes(data)


def appended(place: Path, chance: random.Random) -> None:
    with open(place / "runs.db", "ab") as file:
        file.write(chance.randbytes(chance.choice([1, 100, 5000])))


def run_sql(place: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    database = sqlite3.connect(place / "runs.db")
    try:
        for statement in statements:
            database.execute(statement, values)
        database.commit()
    finally:
        database.close()


COLUMNS = [field.name for field in fields(Run)] + ["arrays", "checksum"]


def cell(place: Path, chance: random.Random) -> None:
    """Another value in one cell, by SQL; the checksum stays."""
    column = chance.choice(COLUMNS)
    number = 1 + chance.randrange(RUNS)
    value = chance.choice(HOSTILE)
    run_sql(place, f"UPDATE runs SET {column} = ? WHERE rowid = {number}", values=(value,))


def rows(place: Path, chance: random.Random) -> None:
    """A row removed, doubled under another key, or exchanged with another."""
    number = 1 + chance.randrange(RUNS)
    columns = ", ".join(COLUMNS[1:])
    run_sql(
        place,
        chance.choice(
            [
                f"DELETE FROM runs WHERE rowid = {number}",
                "DELETE FROM runs",
                f"INSERT INTO runs SELECT 'twice', {columns} FROM runs WHERE rowid = {number}",
                f"UPDATE runs SET key = key || '0' WHERE rowid = {number}",
                "DELETE FROM contents",
                "INSERT INTO contents SELECT * FROM contents",
                "UPDATE contents SET rows = rows + 1",
                "UPDATE environments SET content = '{}'",
                "DELETE FROM environments",
                "UPDATE commands SET command = 'rm -r /'",
            ]
        ),
    )


RECURSIVE = "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM g)"
SCHEMAS = (
    ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",),
    ("CREATE VIEW v AS SELECT * FROM runs",),
    ("ALTER TABLE runs RENAME TO r0", f"CREATE VIEW runs AS {RECURSIVE} SELECT r0.* FROM r0, g WHERE g.n<0"),
    ("ALTER TABLE commands RENAME TO c0", f"CREATE VIEW commands AS {RECURSIVE} SELECT 'x' AS command FROM g"),
    ("CREATE INDEX i ON runs (lower + 1)",),
    ("ALTER TABLE runs ADD COLUMN extra TEXT",),
    ("ALTER TABLE runs RENAME COLUMN lower TO lowest",),
    ("DROP TABLE claims",),
    ("DROP TABLE runs",),
    ("CREATE TABLE more (x)",),
    ("PRAGMA user_version = 3",),
    ("PRAGMA application_id = 1",),
    ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = replace(sql, 'REAL', 'TEXT')"),
    ("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 2"),
    ("PRAGMA writable_schema = ON", "DELETE FROM sqlite_master WHERE name LIKE 'sqlite_autoindex%'"),
    ("UPDATE runs SET log = zeroblob(100000000) WHERE rowid = 1",),
    ("INSERT INTO claims VALUES ('x', '../../victim/precious')",),
    ("INSERT INTO claims VALUES (x'ff', 3)",),
    ("PRAGMA journal_mode = DELETE",),
    ("PRAGMA page_size = 512", "VACUUM"),
)  # fmt: skip


def schema(place: Path, chance: random.Random) -> None:
    run_sql(place, *chance.choice(SCHEMAS))


FORGED: tuple[tuple[str, object], ...] = (
    ("lower", 99.0), ("upper", -99.0), ("lower", None), ("tol", None), ("verdict", "PROVEN"), ("verdict", "optimal"),
    ("says", ""), ("sense", "up"), ("proof", "hope"), ("lower", "abc"), ("size", -1), ("threads", 0), ("tol", -1.0),
    ("key", "../../victim/precious"), ("key", ".."), ("key", ""), ("iterations", "many"), ("seed", None),
    ("wall", b"x"), ("problem", b"\xff"), ("log", None), ("memory", 1.5),
)  # fmt: skip


def forge(place: Path, number: int, **changes: object) -> None:
    """Another value in a row whose checksum, and the sum of all, is made to fit."""
    database = sqlite3.connect(place / "runs.db")
    names = ", ".join(COLUMNS)
    row = database.execute(f"SELECT {names} FROM runs WHERE rowid = ?", (number,)).fetchone()
    old = row[-1]
    values = dict(zip(COLUMNS[:-1], row[:-1], strict=True)) | changes
    # As the column would keep it: a REAL column makes a float of an integer.
    new = checksum(tuple(values.values()))
    settings = ", ".join(f"{name} = ?" for name in COLUMNS)
    database.execute(f"UPDATE runs SET {settings} WHERE rowid = {number}", (*values.values(), new))
    ((count, total),) = database.execute("SELECT rows, total FROM contents").fetchall()
    sums = (int(total, 16) + int(new, 16) - int(old, 16)) % 2**128
    database.execute("UPDATE contents SET rows = ?, total = ?", (count, f"{sums:032x}"))
    database.commit()
    database.close()


def forged(place: Path, chance: random.Random) -> None:
    name, value = chance.choice(FORGED)
    forge(place, 1 + chance.randrange(RUNS), **{name: value})


def an_array_file(place: Path, chance: random.Random) -> Path:
    return place / "runs.db.arrays" / f"{a_run(chance.randrange(RUNS)).key}.npz"


def arrays(place: Path, chance: random.Random) -> None:
    """An array file exchanged for something else."""
    file = an_array_file(place, chance)
    data = file.read_bytes()
    way = chance.randrange(9)
    if way == 0:
        return overwrite(file.relative_to(place).as_posix(), 8)(place, chance)
    file.unlink()
    if way == 1:
        file.write_bytes(data[: chance.randrange(len(data))])
    elif way == 2:
        file.write_bytes(an_archive({"trace.npy": npy((1, 4), np.zeros(4).tobytes())}))
    elif way == 3:
        file.mkdir()
    elif way == 4:
        os.mkfifo(file)
    elif way == 5:
        file.symlink_to(place.parent / "victim" / "precious")
    elif way == 6:
        file.symlink_to("/dev/zero")
    elif way == 7:
        file.write_bytes(b"")
    else:
        other = an_array_file(place, chance)
        file.write_bytes(other.read_bytes()[::-1] if other.exists() else b"PK")


def npy(shape: tuple[int, ...], data: bytes, descr: str = "<f8") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def an_archive(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def forged_arrays(place: Path, chance: random.Random) -> None:
    """An array file that breaks a reader, with its digest in a row whose checksum fits."""
    import hashlib

    trace = npy((1, 4), np.zeros(4).tobytes())
    bad: list[dict[str, bytes]] = [
        {"trace.npy": npy((10**12,), b"\0" * 100)},
        {"trace.npy": npy((2, 2), np.zeros(4).tobytes())},
        {"trace.npy": npy((1, 4), np.full(4, nan).tobytes())},
        {"trace.npy": npy((1,), b"cos\nsystem\n(S'true'\ntR.", "|O")},
        {"trace.npy": npy((-1, -4), np.zeros(4).tobytes())},
        {"trace.npy": b"\x93NUMPY\x03\x00junk"},
        {"trace.npy": b""},
        {"trace.npy": trace, "point_x.npy": bytes(300_000_000)},
        {"trace.npy": trace, "point_x.npy": npy((2,), np.zeros(1).tobytes())},
    ]
    contents = [an_archive(members) for members in bad]
    contents += [b"no archive", b"PK\x05\x06" + bytes(18), an_archive({"trace.npy": trace})[:-30]]
    made = chance.choice(contents)
    number = chance.randrange(RUNS)
    (place / "runs.db.arrays" / f"{a_run(number).key}.npz").write_bytes(made)
    forge(place, number + 1, arrays=hashlib.sha256(made).hexdigest()[:32])


def links(place: Path, chance: random.Random) -> None:
    """A link, a folder or a pipe where a file or a folder of the store should be."""
    victim = place.parent / "victim"
    folder = place / "runs.db.arrays"
    way = chance.randrange(10)
    if way == 0:
        shutil.rmtree(folder)
        folder.symlink_to(victim)
    elif way == 1:
        (place / "runs.db").unlink()
        (place / "runs.db").symlink_to(victim / "runs.db")
    elif way in (2, 3, 4):
        beside = place / f"runs.db{('-wal', '-shm', '-journal')[way - 2]}"
        beside.symlink_to(victim / "precious")
    elif way == 5:
        (folder / "unfinished").symlink_to(victim / "precious")
    elif way == 6:
        (place / "runs.db").unlink()
        (place / "runs.db").mkdir()
    elif way == 7:
        (place / "runs.db").unlink()
        os.mkfifo(place / "runs.db")
    elif way == 8:
        shutil.rmtree(folder)
        folder.write_bytes(b"no folder")
    else:
        (place / "runs.db").write_bytes(
            chance.choice([b"", b"no database at all" * 300, bytes(9000)])
        )


def journal(place: Path, chance: random.Random) -> None:
    """The rollback journal of another database."""
    magic = bytes.fromhex("d9d505f920a163d7")
    header = (
        magic
        + (1).to_bytes(4)
        + chance.randbytes(4)
        + (1).to_bytes(4)
        + (512).to_bytes(4)
        + (4096).to_bytes(4)
    )
    page = (2).to_bytes(4) + bytes(4096) + chance.randbytes(4)
    (place / "runs.db-journal").write_bytes(header.ljust(512, b"\0") + page)


def other_wal(original: Original) -> Damage:
    def damage(place: Path, chance: random.Random) -> None:
        shutil.copy(original.other / "kept-runs.db-wal", place / "runs.db-wal")

    return damage


@dataclass(frozen=True)
class Way:
    name: str
    damage: Damage
    wal: bool = False


def ways(original: Original) -> tuple[Way, ...]:
    return (
        Way("random bytes", overwrite("runs.db", 16)),
        Way("one bit", flip("runs.db")),
        Way("cut off", cut("runs.db")),
        Way("pages", pages),
        Way("bytes at the end", appended),
        Way("a cell, by SQL", cell),
        Way("rows, by SQL", rows),
        Way("schema, by SQL", schema),
        Way("forged row", forged),
        Way("array file", arrays),
        Way("forged array file", forged_arrays),
        Way("links and pipes", links),
        Way("another's journal", journal),
        Way("write-ahead file, bytes", overwrite("runs.db-wal", 16), wal=True),
        Way("write-ahead file, cut off", cut("runs.db-wal"), wal=True),
        Way("another's write-ahead file", other_wal(original)),
    )


def examine(place: Path, way: Way, original: Original) -> tuple[str, str]:
    """What came of a damaged store, and the error in words."""
    path = place / "runs.db"
    began = time.monotonic()
    said = ""
    try:
        found = content(path)
        with Store(path) as store:
            store.add(FinishedRun(replace(a_run(999), key="added")))
        after = content(path)
    except KloptError as error:
        outcome, said = "refused", str(error)
    except Exception:
        return "raw exception", traceback.format_exc()
    else:
        outcome = "unharmed" if found == original.content else "different"
        # What was cut off a write-ahead file was never committed, as far as anybody can know.
        if outcome == "different" and way.wal and found == original.content[: len(found)]:
            outcome = "earlier"
        # A run whose file is gone has no arrays, as documented; all else must be there.
        if after[:-1] != found:
            outcome = "different"
    if time.monotonic() - began > LIMIT_S:
        return "slow", said
    return outcome, said


def fuzz(count: int, seed: int, folder: Path) -> dict[str, collections.Counter[str]]:
    """Damage that many stores, each way in turn; return the outcomes by way."""
    original = Original(folder)
    victim = folder / "victim"
    found: dict[str, collections.Counter[str]] = {}
    every = ways(original)
    for number in range(count):
        way = every[number % len(every)]
        chance = random.Random(f"{seed} {number}")
        place = folder / "place"
        original.copy(place, wal=way.wal)
        victim.mkdir()
        (victim / "precious").write_text("precious")
        shutil.copy(original.folder / "runs.db", victim / "runs.db")
        before = {file.name: file.read_bytes() for file in victim.iterdir()}
        way.damage(place, chance)
        # A hang ends the whole process, with a traceback.
        faulthandler.dump_traceback_later(10 * LIMIT_S, exit=True)
        outcome, said = examine(place, way, original)
        faulthandler.cancel_dump_traceback_later()
        if {file.name: file.read_bytes() for file in victim.iterdir()} != before:
            outcome = "outside"
        if outcome not in GOOD:
            print(f"{outcome}: {way.name}, seed {seed}, number {number}: {said}")
        found.setdefault(way.name, collections.Counter())[outcome] += 1
        shutil.rmtree(place)
        shutil.rmtree(victim)
    return found


def table(found: dict[str, collections.Counter[str]]) -> str:
    """The outcomes as a table in Markdown."""
    lines = [
        f"| damage | stores | {' | '.join(OUTCOMES)} |",
        "|---|" + "---:|" * (1 + len(OUTCOMES)),
    ]
    total: collections.Counter[str] = collections.Counter()
    for name, counts in found.items():
        total += counts
        cells = [str(counts[outcome]) for outcome in OUTCOMES]
        lines.append(f"| {name} | {counts.total()} | {' | '.join(cells)} |")
    cells = [str(total[outcome]) for outcome in OUTCOMES]
    lines.append(f"| **all** | {total.total()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("count", type=int, help="how many stores")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz(asked.count, asked.seed, Path(folder))
    print(table(found))
    return int(any(counts[outcome] for counts in found.values() for outcome in OUTCOMES[3:]))


if __name__ == "__main__":
    raise SystemExit(main())
