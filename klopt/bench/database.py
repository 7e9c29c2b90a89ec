"""SQLite files that klopt alone has written: opened without trust, checked whole, errors explained.

Any file may be handed to klopt under the name of a store. Before a row is read,

- the file and what SQLite keeps beside it (`-wal`, `-shm`, `-journal`) must be ordinary files, never
  links: nothing outside their folder is read, written or removed;
- its tables must be word by word those that klopt makes: no view, trigger, index or expression of
  somebody else's is ever run;
- SQLite's own check of its pages must find nothing.

Everything that is wrong with a store is an `InvalidStore`. A statement that takes longer than any
store of klopt's needs is ended, and a cell larger than klopt writes is not read.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klopt.bench.record import printable
from klopt.errors import InvalidSettings, KloptError

__all__ = [
    "InvalidStore",
    "Layout",
    "StoreFailed",
    "check_content",
    "check_writable",
    "damaged",
    "make_tables",
    "open_database",
    "reading",
]

LOCK_TIMEOUT_S = 30.0
"""How long another writer is waited for."""
LOCK_RETRY_S = 0.01
"""How long to wait before write-ahead mode is asked for again."""
MAX_CELL_BYTES = 2**24
"""No cell that klopt writes is larger."""
MAX_STATEMENT_S = 60.0
"""A statement that takes longer is ended: klopt's own take milliseconds."""
STEPS_BETWEEN_CHECKS = 100_000
"""How many steps of SQLite's machine are made between two looks at the clock."""
MAX_REASON_CHARACTERS = 300
"""What is shown of an error of SQLite's."""
EMPTY = "{path} is empty; klopt.compare(..., store=...) fills a store"
"""What is said of a store without tables."""
BESIDE = ("-wal", "-shm", "-journal")
"""How the names of the files end that SQLite keeps beside a database."""
PAGE_BYTES = 4096
"""The size of a page, which is all that a database has until its tables are made."""


class InvalidStore(InvalidSettings):
    """A file that is no store of klopt's, or is damaged; the text says where and what to do."""


class StoreFailed(KloptError):
    """The store could not take a run; all that it took before are safe."""


@dataclass(frozen=True)
class Layout:
    """What marks a kind of store, and the statements that make its tables."""

    content: str
    """What it keeps, in a word."""
    application: int
    """What marks a database as one of klopt's."""
    version: int
    """The version of the tables."""
    statements: tuple[str, ...]

    def tables(self) -> list[tuple[str, ...]]:
        """Return what `sqlite_master` holds where these statements alone were run."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            for statement in self.statements:
                database.execute(statement)
            return _tables(database)


class _Connection(sqlite3.Connection):
    """A connection that ends a statement which takes too long."""

    until = 0.0

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Run a statement, which has the whole time from now on."""
        self.until = time.monotonic() + MAX_STATEMENT_S
        return super().execute(*arguments)

    def is_late(self) -> bool:
        """Whether the time of the last statement has passed."""
        return time.monotonic() > self.until


def open_database(
    path: Path,
    layout: Layout,
    *,
    read_only: bool,
    check: Callable[[sqlite3.Connection], None],
) -> sqlite3.Connection:
    """Return a connection to a store that has been checked; it is made where it does not exist.

    Parameters
    ----------
    path
        The file.
    layout
        What it must be.
    read_only
        Whether it is only read; then it must exist.
    check
        What else to check, on a connection that cannot write.
    """
    with reading(path):
        if _check_files(path):
            # By a connection that cannot write: closing one that can would copy a write-ahead file
            # into the database, and that may be another store's.
            database = _connect(path, read_only=True)
            try:
                if check_content(path, database, layout):
                    check(database)
                elif read_only:
                    raise InvalidStore(EMPTY.format(path=path))
            except BaseException:
                database.close()
                raise
            if read_only:
                return database
            database.close()
        elif read_only:
            raise InvalidStore(EMPTY.format(path=path))

        database = _connect(path, read_only=False)
        try:
            _write_ahead(database)
            database.execute("PRAGMA synchronous = FULL")
            make_tables(path, database, layout)
        except BaseException:
            database.close()
            raise
        return database


def check_content(path: Path, database: sqlite3.Connection, layout: Layout) -> bool:
    """Refuse what is no such store; return whether it has tables at all."""
    with database:
        database.execute("BEGIN")  # another process may be making it at this moment
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        tables = _tables(database)
        if not tables:
            return False
        if mark != layout.application:
            raise InvalidStore(
                f"{path} is a database of something else than klopt's {layout.content}; "
                "choose another name"
            )
        if version != layout.version:
            raise InvalidStore(
                f"{path} has schema {version} and this klopt knows {layout.version}; "
                "use the klopt that wrote it"
            )
        _check_tables(path, tables, layout.tables())
        found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise InvalidStore(damaged(path, _short("; ".join(found))))
    return True


def damaged(path: Path, where: str) -> str:
    """Return the sentence about a store that is not as klopt wrote it."""
    return (
        f"the store {path} is damaged or was changed by something else than klopt: {where}; "
        "restore it from a copy, or name another file and run the comparison again"
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a store is read into `InvalidStore`."""
    try:
        yield
    except KloptError:
        raise
    except (sqlite3.Error, OSError, ValueError, OverflowError, MemoryError) as error:
        reason = _short(getattr(error, "strerror", None) or str(error))
        if reason == "interrupted":
            reason = f"a statement took longer than {MAX_STATEMENT_S:g} s"
        raise InvalidStore(
            f"{path} cannot be used as a store: {reason}; "
            "restore it from a copy, or name another file"
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


def _is_link_or_special(path: Path) -> str:
    """Return in words why a path is no ordinary file ("" if it is one, or is not there)."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "" if stat.S_ISREG(mode) else "no ordinary file"


def _short(reason: str) -> str:
    """What SQLite says, which may quote the file."""
    return printable(reason)[:MAX_REASON_CHARACTERS]


def _check_files(path: Path) -> bool:
    """Refuse links and special files; return whether the database has any content."""
    for name in (path.name, *(f"{path.name}{end}" for end in BESIDE)):
        file = path.with_name(name)
        if flaw := _is_link_or_special(file):
            raise InvalidStore(
                f"{file} is {flaw}; a store and the files beside it must be ordinary files: "
                "name the file itself, or remove what stands in its place"
            )
    if not path.exists():
        return False
    # Its size alone is looked at: closing the file would take away locks that SQLite has on it.
    size = path.stat().st_size
    journal = path.with_name(f"{path.name}-journal")
    # Only a store that is being made has one; SQLite would undo, in this file, what that of another
    # one says.
    if size > PAGE_BYTES and journal.exists():
        raise InvalidStore(
            f"{journal} is not of this store, which keeps no journal; remove it, or put it back "
            "beside the database that it belongs to"
        )
    return bool(size)


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    # A reader in write-ahead mode writes beside the database; on a read-only disk it may not.
    if not read_only:
        mode = "mode=rwc"
    elif _nobody_can_write(path):
        mode = "immutable=1"
    else:
        mode = "mode=ro"
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=LOCK_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    database.set_progress_handler(database.is_late, STEPS_BETWEEN_CHECKS)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def _nobody_can_write(path: Path) -> bool:
    """Whether nobody can write here; otherwise readers in write-ahead mode write, too."""
    if os.access(path.parent, os.W_OK):
        return False
    ahead = path.with_name(f"{path.name}-wal")
    return not (ahead.exists() and ahead.stat().st_size)


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


def make_tables(path: Path, database: sqlite3.Connection, layout: Layout) -> None:
    """Make the tables, unless another process has just done so."""
    with database:
        database.execute("BEGIN IMMEDIATE")
        if tables := _tables(database):
            _check_tables(path, tables, layout.tables())
            return
        for statement in layout.statements:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {layout.application}")
        database.execute(f"PRAGMA user_version = {layout.version}")


def _tables(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    """What the database is made of, in words."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return sorted(tuple(map(str, row)) for row in rows)


def _check_tables(
    path: Path, found: list[tuple[str, ...]], expected: list[tuple[str, ...]]
) -> None:
    """Refuse what klopt has not made, and name it."""
    foreign = [row for row in found if row not in expected]
    if foreign:
        kind, name, *_ = foreign[0]
        raise InvalidStore(damaged(path, f"its {kind} {name!r} is none that klopt makes"))
    lacking = [row for row in expected if row not in found]
    if lacking:
        kind, name, *_ = lacking[0]
        raise InvalidStore(damaged(path, f"it has no {kind} {name!r}"))
