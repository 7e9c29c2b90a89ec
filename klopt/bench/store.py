"""`Store`: finished runs in one SQLite database, with their arrays in `.npz` files beside it.

One row is committed per run. The files of a run are written whole (to another name, then renamed)
before its row is committed, so a row never lacks its files, and whatever kills the process loses at
most the run in flight. The database is in write-ahead mode: several comparisons may write to it
while others read. NaN is NULL; enums are their values.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from enum import Enum
from math import isnan, nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.environment import Environment
from klopt.bench.record import Run, Trace
from klopt.bench.worker import FinishedRun
from klopt.errors import InvalidSettings, KloptError
from klopt.model.backend import Step

__all__ = ["Store", "StoreFailed", "check_writable"]

SCHEMA = 3
"""The version of the tables."""
APPLICATION = 0x6B6C6F70
"""What marks a database as klopt's: the letters `klop`."""
LOCK_TIMEOUT_S = 30.0
"""How long another writer is waited for."""
LOCK_RETRY_S = 0.01
"""How long to wait before write-ahead mode is asked for again."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SQL_TYPES: dict[Any, str] = {str: "TEXT", float: "REAL", int: "INTEGER", int | None: "INTEGER"}


class StoreFailed(KloptError):
    """The store could not take a run; all that it took before are safe."""


class Store:
    """A file of runs; `Store(path)` creates it where it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.db") as store:
    ...     store.runs()
    ()
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not self.path.is_file():
            raise InvalidSettings(f"no store {str(path)!r}")
        if not read_only:
            check_writable(self.path)
        self.folder = self.path.with_name(f"{self.path.name}.arrays")
        try:
            self.database = self._connect(read_only)
        except sqlite3.Error as error:
            raise InvalidSettings(f"{path} cannot be used as a store: {error}") from error

    def add(self, finished: FinishedRun) -> None:
        """Keep a finished run: its files first, then its row; a run of the same key is replaced."""
        run = finished.run
        with self._explained(), self.database:
            self.database.execute("BEGIN IMMEDIATE")  # one writer at a time, of files too
            self._write(run.key, finished)
            if finished.environment is not None:
                pair = (finished.environment.key, finished.environment.to_json())
                self.database.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", pair)
            marks = ", ".join("?" for _ in fields(Run))
            self.database.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", _row(run))

    def note(self, command: str) -> None:
        """Keep the command that is about to add runs."""
        with self._explained(), self.database:
            self.database.execute("INSERT OR IGNORE INTO commands VALUES (?)", (command,))

    def commands(self) -> tuple[str, ...]:
        """Return the commands that have added runs, the first one first."""
        rows = self.database.execute("SELECT command FROM commands ORDER BY rowid")
        return tuple(command for (command,) in rows)

    def runs(self) -> tuple[Run, ...]:
        """Return every run, in the order of their writing."""
        rows = self.database.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY rowid")
        return tuple(map(_run, rows))

    def run(self, key: str) -> Run | None:
        """Return the run of that key, None where there is none."""
        row = self.database.execute(f"SELECT {_COLUMNS} FROM runs WHERE key = ?", (key,)).fetchone()
        return None if row is None else _run(row)

    def keys(self) -> frozenset[str]:
        """Return the keys of all runs."""
        return frozenset(key for (key,) in self.database.execute("SELECT key FROM runs"))

    def environments(self) -> Mapping[str, Environment]:
        """Return the environments that the runs were made in, by their keys."""
        rows = self.database.execute("SELECT key, content FROM environments")
        return {key: Environment.from_json(content) for key, content in rows}

    def trace(self, key: str) -> Trace:
        """Return the bounds along the way of a run; none where its file is gone."""
        table = self._read(key).get("trace", np.zeros((0, 4)))
        return tuple(Step(int(row[0]), *map(float, row[1:])) for row in table)

    def arrays(self, key: str) -> Mapping[str, FloatArray]:
        """Return the arrays of a run's point by their names."""
        content = self._read(key).items()
        prefix = "point_"
        return {name.removeprefix(prefix): a for name, a in content if name.startswith(prefix)}

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

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        # A reader in write-ahead mode writes beside the database; on a read-only disk it may not.
        if not read_only:
            mode = "mode=rwc"
        elif self._nobody_can_write():
            mode = "immutable=1"
        else:
            mode = "mode=ro"
        database = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?{mode}",
            uri=True,
            timeout=LOCK_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        is_empty = self._check(database)
        if not read_only:
            _write_ahead(database)
            database.execute("PRAGMA synchronous = FULL")
            if is_empty:
                self._create(database)
        return database

    def _check(self, database: sqlite3.Connection) -> bool:
        """Refuse what this klopt did not write; return whether the database is empty."""
        with database:
            database.execute("BEGIN")  # another comparison may be creating it at this moment
            mark = database.execute("PRAGMA application_id").fetchone()[0]
            version = database.execute("PRAGMA user_version").fetchone()[0]
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and mark != APPLICATION:
            raise InvalidSettings(
                f"{self.path} is a database of something else than klopt; choose another name"
            )
        if tables and version != SCHEMA:
            raise InvalidSettings(
                f"{self.path} has schema {version} and this klopt knows {SCHEMA}; "
                "use the klopt that wrote it"
            )
        return not tables

    def _nobody_can_write(self) -> bool:
        """Whether nobody can write here; otherwise readers in write-ahead mode write, too."""
        if os.access(self.path.parent, os.W_OK):
            return False
        ahead = self.path.with_name(f"{self.path.name}-wal")
        return not (ahead.exists() and ahead.stat().st_size)

    def _create(self, database: sqlite3.Connection) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            types = ((name, _SQL_TYPES.get(kind, "TEXT")) for name, kind in _TYPES.items())
            columns = ", ".join(f"{name} {kind}" for name, kind in types)
            database.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns}, PRIMARY KEY (key))")
            database.execute(
                "CREATE TABLE IF NOT EXISTS environments (key TEXT PRIMARY KEY, content TEXT)"
            )
            database.execute("CREATE TABLE IF NOT EXISTS commands (command TEXT PRIMARY KEY)")
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {SCHEMA}")

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.npz"

    def _write(self, key: str, finished: FinishedRun) -> None:
        steps = [(s.iteration, s.seconds, s.lower, s.upper) for s in finished.trace]
        content = {"trace": np.array(steps).reshape(-1, 4)}
        content |= {f"point_{name}": array for name, array in finished.arrays.items()}
        self.folder.mkdir(exist_ok=True)
        unfinished = self.folder / "unfinished"
        try:
            with open(unfinished, "wb") as file:
                np.savez_compressed(file, **content)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self._file(key))
        finally:
            unfinished.unlink(missing_ok=True)

    def _read(self, key: str) -> dict[str, FloatArray]:
        with suppress(FileNotFoundError), np.load(self._file(key)) as content:
            return dict(content)
        return {}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = str(error)
            advice = "call again with the same store to do what is missing."
            if getattr(error, "errno", None) in _DISK_FULL or "full" in reason:
                reason = "the disk is full"
                advice = f"free some space and {advice}"
            raise StoreFailed(
                f"the store {self.path} could not take a run: {reason}. "
                f"The runs before it are kept; {advice}"
            ) from error


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if path.is_dir():
        raise InvalidSettings(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InvalidSettings(
            f"there is no folder {str(path.parent)!r} for {path.name}; make it first"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidSettings(f"{path} cannot be written: no permission")


def _write_ahead(database: sqlite3.Connection) -> None:
    """Turn on write-ahead mode, which SQLite refuses at once while another opens the file."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(LOCK_RETRY_S)


_TYPES: Mapping[str, Any] = typing.get_type_hints(Run)
_TYPES = {field.name: _TYPES[field.name] for field in fields(Run)}
_COLUMNS = ", ".join(_TYPES)


def _row(run: Run) -> tuple[Any, ...]:
    return tuple(_stored(getattr(run, name)) for name in _TYPES)


def _stored(value: Any) -> Any:
    if isinstance(value, float) and isnan(value):
        return None
    return value.value if isinstance(value, Enum) else value


def _run(row: tuple[Any, ...]) -> Run:
    return Run(*map(_restored, row, _TYPES.values()))


def _restored(value: Any, kind: Any) -> Any:
    if kind is float:
        return nan if value is None else float(value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    return value
