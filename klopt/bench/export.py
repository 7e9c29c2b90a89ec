"""Runs as tables: CSV, JSON and Parquet with one row for each run, LaTeX and Markdown by class.

The columns are the fields of `Run` and what follows from them: seconds, relative_gap, and
status_confirmed (whether klopt confirms all claims of the backend). In CSV a number that is not known is an empty
cell, in JSON null; infinities are written `inf` and `-inf` in both. Numbers keep all digits, so
that reading them back gives the same ones. A text that a spreadsheet would take for a formula begins
with an apostrophe in CSV, and in CSV only.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from klopt.bench.paper_tables import to_latex, to_markdown
from klopt.bench.record import Run
from klopt.engine.format import document
from klopt.errors import InvalidSettings

__all__ = ["FORMATS", "cell_text", "rows", "to_csv", "to_frame", "to_json", "write"]

DERIVED = ("seconds", "relative_gap", "status_confirmed")
_FORMULA = tuple(
    "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)
"""What a formula begins with; Excel takes the wide forms for the narrow ones."""
_CONTROL = ("\t", "\r", "\n")
"""What spreadsheets skip at the beginning of a cell."""
COLUMNS = (*(field.name for field in fields(Run)), *DERIVED)


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one mapping of column names to values for each run; enums are their names."""
    return [{name: _value(getattr(run, name)) for name in COLUMNS} for run in runs]


def to_csv(runs: Sequence[Run]) -> str:
    """Return the runs as CSV with a header.

    >>> to_csv([]).split(",")[:3]
    ['key', 'problem', 'family']
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows(runs))
    return text.getvalue()


def cell_text(text: str) -> str:
    """Return a text as a CSV cell that no spreadsheet evaluates: after an apostrophe if need be.

    >>> cell_text("=1+1"), cell_text("a = b"), cell_text(" @SUM(1)")
    ("'=1+1", 'a = b', "' @SUM(1)")
    """
    begins = text.lstrip()[:1]
    return f"'{text}" if text[:1] in _CONTROL or begins in _FORMULA else text


def to_json(runs: Sequence[Run]) -> str:
    """Return the runs as one JSON document."""
    return document("export", {"runs": rows(runs)})


def to_frame(runs: Sequence[Run]) -> Any:
    """Return the runs as a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise InvalidSettings(
            "a data frame needs pandas, which is not installed; pip install pandas"
        ) from error
    return pandas.DataFrame(rows(runs), columns=list(COLUMNS))


def write(runs: Sequence[Run], path: str | os.PathLike[str]) -> int:
    """Write the runs as .csv, .json or .parquet, by the suffix, and return the number of bytes."""
    target = Path(path)
    if target.suffix not in FORMATS:
        raise InvalidSettings(
            f"{target.name!r} has no suffix that klopt writes; use one of {', '.join(FORMATS)}"
        )
    content = FORMATS[target.suffix](runs)
    try:
        return target.write_bytes(content)
    except OSError as error:
        raise InvalidSettings(f"cannot write {target}: {error.strerror}") from error


def _to_parquet(runs: Sequence[Run]) -> bytes:
    whole = {"status_confirmed": "boolean", "iterations": "Int64", "memory": "Int64"}
    frame = to_frame(runs).astype(whole)
    sink = io.BytesIO()
    try:
        frame.to_parquet(sink, index=False)
    except ImportError as error:
        raise InvalidSettings(
            "parquet needs pyarrow, which is not installed; "
            "pip install pyarrow, or write .csv or .json"
        ) from error
    return sink.getvalue()


FORMATS: Mapping[str, Callable[[Sequence[Run]], bytes]] = MappingProxyType(
    {
        ".csv": lambda runs: to_csv(runs).encode(),
        ".json": lambda runs: to_json(runs).encode(),
        ".parquet": _to_parquet,
        ".tex": lambda runs: to_latex(runs).encode(),
        ".md": lambda runs: to_markdown(runs).encode(),
    }
)


def _value(value: Any) -> Any:
    return value.value if hasattr(value, "value") else value


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return cell_text(value)
    return "" if value is None or value != value else value
