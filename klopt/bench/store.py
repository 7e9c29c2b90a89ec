"""`Store`: finished runs in one SQLite database, with their arrays in `.npz` files beside it.

One row is committed per run. The file of a run is written whole before its row is committed, so a
row never lacks its arrays, and whatever kills the process loses at most the run in flight. The
database is in write-ahead mode: several comparisons may write to it while others read.

Every row has a checksum, and one row of its own holds the number and the sum of all of them. What
is read is therefore what was committed at some moment, or an `InvalidStore`: no row is lost, changed
or taken twice by damage. That is no seal: who can write the file can forge a store that is whole.
A store has a name of its own, which stands in the database and in the folder of its arrays: the
write-ahead file of another store, which SQLite would take for this one's, is noticed by it.
"""

from __future__ import annotations

import errno
import re
import sqlite3
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.array_files import (
    CERTIFICATE,
    NO_CERTIFICATE,
    TRACE,
    ArrayFolder,
    as_array,
    as_bytes,
)
from klopt.bench.database import (
    InvalidStore,
    Layout,
    StoreFailed,
    check_writable,
    damaged,
    open_database,
    reading,
)
from klopt.bench.environment import Environment
from klopt.bench.owner import Owner, clear_gone, is_running
from klopt.bench.record import Run, Trace
from klopt.bench.rows import CHECKSUM, TABLE, InvalidRow, checksum, row_of, run_of, storable
from klopt.bench.run_certificates import RunCertificate, packed, unpacked
from klopt.bench.worker import FinishedRun
from klopt.errors import InvalidSettings
from klopt.model.backend import Step

__all__ = ["Claimed", "InvalidStore", "Store", "StoreFailed", "check_writable"]

SCHEMA = 5
"""The version of the tables."""
LAYOUT = Layout(
    content="runs",
    application=0x6B6C6F70,  # the letters `klop`
    version=SCHEMA,
    statements=(
        TABLE,
        "CREATE TABLE environments (key TEXT PRIMARY KEY, content TEXT)",
        "CREATE TABLE commands (command TEXT PRIMARY KEY)",
        "CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT)",
        "CREATE TABLE contents (rows INTEGER, total TEXT, name TEXT)",
        f"INSERT INTO contents VALUES (0, '{0:032x}', '')",
    ),
)
MAX_COMMAND_CHARACTERS = 100_000
"""What is kept of a command: its beginning."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MODULUS = 2**128
_DIGEST = re.compile("[0-9a-f]{32}")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
"""What SQLite calls a file that it cannot read any more."""


@dataclass(frozen=True)
class Claimed:
    """What came of asking for runs: those to make now, and those that another has finished."""

    mine: tuple[str, ...]
    finished: tuple[str, ...]


class Store:
    """A file of runs; `Store(path)` creates it where it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.db") as store:
    ...     store.runs()
    ()
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not (self.path.is_symlink() or self.path.exists()):
            raise InvalidSettings(f"no store {str(path)!r}")
        if not read_only:
            check_writable(self.path)
        self.files = ArrayFolder(self.path)
        self.files.check()
        # Worker threads ask for claims while the main thread adds runs.
        self.lock = threading.RLock()
        self.known: set[str] = set()
        """The environments that are known to be kept."""
        self.database = open_database(
            self.path, LAYOUT, read_only=read_only, check=self._check_contents
        )
        if not read_only:
            self._identify()

    def add(self, finished: FinishedRun) -> None:
        """Keep a finished run: its files first, then its row; a run of the same key is replaced."""
        run = storable(finished.run)
        with self._writing():
            digest = self._write(run.key, finished)
            row = row_of(run, digest)
            old = self._checksum(run.key)
            marks = ", ".join("?" for _ in row)
            self.database.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", row)
            self.database.execute("DELETE FROM claims WHERE key = ?", (run.key,))
            self._count(added=row[-1], removed=old)
            here = finished.environment
            # The same in every run of a comparison, and large.
            if here is not None and not (run.machine and run.machine in self.known):
                pair = (here.key, here.to_json())
                self._insert_new("INSERT OR IGNORE INTO environments VALUES (?, ?)", pair)
        if here is not None:
            self.known.add(run.machine)

    def note(self, command: str) -> None:
        """Keep the command that is about to add runs."""
        text = command[:MAX_COMMAND_CHARACTERS].encode(errors="replace").decode()
        with self._writing():
            self._insert_new("INSERT OR IGNORE INTO commands VALUES (?)", (text,))

    def commands(self) -> tuple[str, ...]:
        """Return the commands that have added runs, the first one first."""
        with reading(self.path):
            rows = self.database.execute("SELECT command FROM commands ORDER BY rowid").fetchall()
        return tuple(str(command) for (command,) in rows)

    def runs(self) -> tuple[Run, ...]:
        """Return every run, in the order of their writing."""
        with reading(self.path):
            rows = self.database.execute("SELECT rowid, * FROM runs ORDER BY rowid").fetchall()
        return tuple(self._run(number, row) for number, *row in rows)

    def run(self, key: str) -> Run | None:
        """Return the run of that key, None where there is none."""
        with reading(self.path):
            row = self.database.execute(
                "SELECT rowid, * FROM runs WHERE key = ?", (key,)
            ).fetchone()
        return None if row is None else self._run(row[0], row[1:])

    def checksums(self) -> Mapping[str, str]:
        """Return the checksum of every run by its key: a run that was made again has another."""
        with reading(self.path):
            return dict(self.database.execute(f"SELECT key, {CHECKSUM} FROM runs").fetchall())

    def keys(self) -> frozenset[str]:
        """Return the keys of all runs."""
        return frozenset(self.checksums())

    def environments(self) -> Mapping[str, Environment]:
        """Return the environments that the runs were made in, by their keys."""
        with reading(self.path):
            rows = self.database.execute("SELECT key, content FROM environments").fetchall()
        found = {}
        for key, content in rows:
            try:
                found[key] = Environment.from_json(content)
            except (ValueError, RecursionError) as error:
                where = f"table environments, {str(key)[:40]!r}: {error}"
                raise InvalidStore(damaged(self.path, where)) from error
        return found

    def trace(self, key: str) -> Trace:
        """Return the bounds along the way of a run; none where its file is gone."""
        table = self._read(key, TRACE).get(TRACE, np.zeros((0, 4)))
        if table.ndim != 2 or table.shape[1] != 4 or not np.isfinite(table[:, :2]).all():
            raise InvalidStore(damaged(self.path, f"the trace of run {key} is no table of steps"))
        return tuple(Step(int(row[0]), *map(float, row[1:])) for row in table)

    def arrays(self, key: str) -> Mapping[str, FloatArray]:
        """Return the arrays of a run's point by their names."""
        prefix = "point_"
        content = self._read(key, prefix).items()
        return {name.removeprefix(prefix): a for name, a in content if name.startswith(prefix)}

    def certificate(self, key: str) -> RunCertificate:
        """Return the certificate of a run as the run left it, or why there is none."""
        content = self._read(key, CERTIFICATE, NO_CERTIFICATE)
        written = as_bytes(content.get(CERTIFICATE, np.zeros(0)))
        reason = as_bytes(content.get(NO_CERTIFICATE, np.zeros(0)))
        with reading(self.path):
            return RunCertificate(written, unpacked(reason) if reason else "")

    # Who makes which run.

    def owner(self) -> Owner:
        """Return a new owner of claims, known as running until it is released or its process ends."""
        with self._explained():
            self.files.make()
            clear_gone(self.files.path)
            return Owner(self.files.path)

    def claim(
        self, keys: Sequence[str], owner: Owner, before: Mapping[str, str], limit: int | None = None
    ) -> Claimed:
        """Claim runs that nobody is making.

        Parameters
        ----------
        keys
            The runs that are wanted, the most urgent one first.
        owner
            Who will make them.
        before
            The checksums of runs that are to be made all the same; one that differs was made since.
        limit
            How many to claim at most; None for all that are free.
        """
        mine: list[str] = []
        finished: list[str] = []
        known: dict[str, bool] = {owner.name: False}
        # After a power cut no owner runs: claims need not survive one, so that no disk is waited for.
        with self._writing(durable=False):
            for key in keys:
                if limit is not None and len(mine) >= limit:
                    break
                now = self._checksum(key)
                if now is not None and now != before.get(key):
                    finished.append(key)
                elif not self._is_claimed(key, known):
                    row = (key, owner.name)
                    self.database.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", row)
                    mine.append(key)
        return Claimed(tuple(mine), tuple(finished))

    def release(self, owner: Owner, keys: Collection[str] | None = None) -> None:
        """Give up claims, all of an owner or those of the keys."""
        with self._writing(durable=False):
            if keys is None:
                self.database.execute("DELETE FROM claims WHERE owner = ?", (owner.name,))
            for key in keys or ():
                pair = (key, owner.name)
                self.database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", pair)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _is_claimed(self, key: str, known: dict[str, bool]) -> bool:
        """Whether somebody who is running makes that run; `known` remembers who is."""
        row = self.database.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
        if row is None:
            return False
        name = row[0]
        # The name becomes that of a file: one that klopt has not made is no owner at all.
        if not (isinstance(name, str) and _DIGEST.fullmatch(name)):
            return False
        if name not in known:
            known[name] = is_running(self.files.path, name)
        return known[name]

    def _identify(self) -> None:
        """Give a new store a name, and write it into its folder as well."""
        with self._writing():
            ((name,),) = self.database.execute("SELECT name FROM contents").fetchall()
            if not name:
                name = uuid.uuid4().hex
                self.files.sign(name)
                self.database.execute("UPDATE contents SET name = ?", (name,))

    def _check_contents(self, database: sqlite3.Connection) -> None:
        """Compare the checksums of all rows with the sum that was written last."""
        with database:
            database.execute("BEGIN")  # all at one moment: another comparison may be writing
            sums = [row[0] for row in database.execute(f"SELECT {CHECKSUM} FROM runs")]
            rows = database.execute("SELECT key, content FROM environments").fetchall()
            rows += database.execute("SELECT command FROM commands").fetchall()
            told = database.execute("SELECT rows, total, name FROM contents").fetchall()
        sums += map(checksum, rows)
        if [row[:2] for row in told] != [(len(sums), _sum(sums))]:
            where = "rows are missing, changed or there twice: the sum of their checksums differs"
            raise InvalidStore(damaged(self.path, where))
        # Whoever is naming a new store signs its folder a moment before the name can be read here.
        is_new = told[0][0] == 0 and told[0][2] == ""
        if not is_new:
            self.files.check_signature(told[0][2])

    def _checksum(self, key: str) -> str | None:
        row = self.database.execute(f"SELECT {CHECKSUM} FROM runs WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def _insert_new(self, statement: str, row: tuple[str, ...]) -> None:
        """Add a row of texts, unless it is there."""
        if self.database.execute(statement, row).rowcount:
            self._count(added=checksum(row))

    def _count(self, added: str, removed: str | None = None) -> None:
        """Write down that a row is there, maybe in the place of another one."""
        ((rows, total),) = self.database.execute("SELECT rows, total FROM contents").fetchall()
        value = _number(total) + _number(added)
        if removed is None:
            rows += 1
        else:
            value -= _number(removed)
        pair = (rows, _text(value))
        self.database.execute("UPDATE contents SET rows = ?, total = ?", pair)

    def _run(self, number: int, row: Sequence[Any]) -> Run:
        try:
            return run_of(tuple(row))
        except InvalidRow as error:
            where = f"table runs, row {number} (key {str(row[0])[:40]!r}): {error}"
            raise InvalidStore(damaged(self.path, where)) from error

    def _write(self, key: str, finished: FinishedRun) -> str:
        steps = [(s.iteration, s.seconds, s.lower, s.upper) for s in finished.trace]
        content = {TRACE: np.array(steps, dtype=float).reshape(-1, 4)}
        content |= {f"point_{name}": array for name, array in finished.arrays.items()}
        certificate = finished.certificate
        if certificate.content:
            content[CERTIFICATE] = as_array(certificate.content)
        if certificate.reason:
            content[NO_CERTIFICATE] = as_array(packed(certificate.reason))
        return self.files.write(key, content)

    def _read(self, key: str, *wanted: str) -> dict[str, FloatArray]:
        """The arrays of a run whose names begin so, and its trace."""
        with reading(self.path):
            row = self.database.execute("SELECT arrays FROM runs WHERE key = ?", (key,)).fetchone()
            return (
                {}
                if row is None
                else self.files.read(key, str(row[0]), lambda name: name.startswith(wanted))
            )

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[None]:
        """One transaction, one writer at a time, of files too; errors explained."""
        with self.lock, self._explained():
            if not durable:
                self.database.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.database:
                    self.database.execute("BEGIN IMMEDIATE")
                    yield
            finally:
                if not durable:
                    self.database.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = str(error)
            if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
                raise InvalidStore(damaged(self.path, reason)) from error
            advice = "call again with the same store to do what is missing."
            if getattr(error, "errno", None) in _DISK_FULL or "full" in reason:
                reason = "the disk is full"
                advice = f"free some space and {advice}"
            raise StoreFailed(
                f"the store {self.path} could not take a run: {reason}. "
                f"The runs before it are kept; {advice}"
            ) from error


def _sum(sums: Sequence[Any]) -> str:
    """The sum of checksums, in which their order does not count."""
    return _text(sum(map(_number, sums)))


def _number(digest: Any) -> int:
    """A checksum as a number; of what is none, one that fits nothing."""
    text = str(digest)
    if not _DIGEST.fullmatch(text):
        text = checksum((text,))
    return int(text, 16)


def _text(number: int) -> str:
    return f"{number % _MODULUS:032x}"
