"""The store of finished trials: one SQLite database, one row committed per trial."""

from __future__ import annotations

import sqlite3
import typing
from collections.abc import Collection
from dataclasses import astuple, fields
from math import isnan, nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from klopt.bench.store import StoreFailed, check_writable
from klopt.errors import InvalidSettings
from klopt.papers.experiments.trial import SplitTrial

__all__ = ["TrialStore"]

SCHEMA_VERSION = 1
"""The version of the table of trials, raised where its columns change."""
APPLICATION_ID = 0x6B6C6F65
"""What marks a database as klopt's store of experiments: the letters `kloe`."""
WRITER_TIMEOUT_S = 30.0
"""Seconds to wait for another writer."""
_KINDS = {str: "TEXT", float: "REAL", int: "INTEGER"}
_TYPES = {
    name: kind
    for name, kind in typing.get_type_hints(SplitTrial).items()
    if name in {f.name for f in fields(SplitTrial)}
}
_COLUMNS = ", ".join(_TYPES)


class TrialStore:
    """A file of trials, made where it is not there.

    >>> with TrialStore(":memory:") as store:
    ...     store.trials()
    ()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        if self.path != ":memory:":
            check_writable(Path(path))
        try:
            self.database = sqlite3.connect(
                self.path, timeout=WRITER_TIMEOUT_S, isolation_level=None
            )
            self._prepare()
        except sqlite3.Error as error:
            raise InvalidSettings(f"{path} cannot be used as a store: {error}") from error

    def _prepare(self) -> None:
        empty = not self.database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        mark = self.database.execute("PRAGMA application_id").fetchone()[0]
        found = self.database.execute("PRAGMA user_version").fetchone()[0]
        if not empty and mark != APPLICATION_ID:
            raise InvalidSettings(
                f"{self.path} is a database of something else than experiments; choose another name"
            )
        if not empty and found != SCHEMA_VERSION:
            raise InvalidSettings(
                f"{self.path} has schema {found} and this klopt knows {SCHEMA_VERSION}; use the "
                "klopt that wrote it"
            )
        if empty:
            columns = ", ".join(f"{name} {_KINDS[kind]}" for name, kind in _TYPES.items())
            self.database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self.database.execute(
                f"CREATE TABLE IF NOT EXISTS trials ({columns}, PRIMARY KEY (key))"
            )

    def add(self, trial: SplitTrial) -> None:
        """Keep a trial; one of the same key is replaced."""
        values = [
            None if isinstance(value, float) and isnan(value) else value for value in astuple(trial)
        ]
        try:
            marks = ", ".join("?" for _ in values)
            self.database.execute(f"INSERT OR REPLACE INTO trials VALUES ({marks})", values)
        except sqlite3.Error as error:
            raise StoreFailed(
                f"the store {self.path} could not take a trial: {error}. Those before it are "
                "kept; call again with --resume to do what is missing."
            ) from error

    def trials(self, keys: Collection[str] | None = None) -> tuple[SplitTrial, ...]:
        """Return all trials, or those of the keys, in the order of their writing."""
        rows = self.database.execute(f"SELECT {_COLUMNS} FROM trials ORDER BY rowid")
        return tuple(_trial(row) for row in rows if keys is None or row[0] in keys)

    def close(self) -> None:
        """Let go of the database."""
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


def _trial(row: tuple[Any, ...]) -> SplitTrial:
    values: list[Any] = [nan if value is None else value for value in row]
    return SplitTrial(*values)
