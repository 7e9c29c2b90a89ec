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

from klopt.bench.database import (
    InvalidStore,
    Layout,
    StoreFailed,
    check_content,
    check_writable,
    damaged,
    make_tables,
    reading,
)
from klopt.papers.experiments.trial import SplitTrial

__all__ = ["TrialStore"]

SCHEMA_VERSION = 1
"""The version of the table of trials, raised where its columns change."""
WRITER_TIMEOUT_S = 30.0
"""Seconds to wait for another writer."""
_KINDS = {str: "TEXT", float: "REAL", int: "INTEGER"}
_TYPES = {
    name: kind
    for name, kind in typing.get_type_hints(SplitTrial).items()
    if name in {f.name for f in fields(SplitTrial)}
}
_COLUMNS = ", ".join(_TYPES)


LAYOUT = Layout(
    content="experiments",
    application=0x6B6C6F65,  # the letters `kloe`
    version=SCHEMA_VERSION,
    statements=(
        "CREATE TABLE trials ("
        + ", ".join(f"{name} {_KINDS[kind]}" for name, kind in _TYPES.items())
        + ", PRIMARY KEY (key))",
    ),
)


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
        with reading(Path(path)):
            self.database = sqlite3.connect(
                self.path, timeout=WRITER_TIMEOUT_S, isolation_level=None
            )
            self.database.execute("PRAGMA trusted_schema = OFF")
            if not check_content(Path(path), self.database, LAYOUT):
                make_tables(Path(path), self.database, LAYOUT)

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
        with reading(Path(self.path)):
            rows = self.database.execute(f"SELECT {_COLUMNS} FROM trials ORDER BY rowid").fetchall()
        return tuple(self._trial(row) for row in rows if keys is None or row[0] in keys)

    def _trial(self, row: tuple[Any, ...]) -> SplitTrial:
        values: list[Any] = []
        for (name, kind), value in zip(_TYPES.items(), row, strict=True):
            found = nan if value is None and kind is float else value
            if not isinstance(found, kind):
                where = f"table trials, key {str(row[0])[:40]!r}: {name} is {found!r}"
                raise InvalidStore(damaged(Path(self.path), where))
            values.append(found)
        return SplitTrial(*values)

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
