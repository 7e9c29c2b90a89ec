"""The runs of a page as JSON inside it, column by column, and the way back.

A column is a list of values, or where all are the same {"all": value}, or where texts repeat
{"texts": [...], "at": [...]} with an index for each run. Numbers that JSON lacks are written as in
`klopt.engine.format`: NaN is null, infinities are texts. Seconds are rounded to microseconds,
everything else keeps all its digits. The log, which the page has in its details, is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from klopt.bench.record import Run
from klopt.errors import InvalidProblem
from klopt.model.backend import Stop
from klopt.proof.certificate import Verdict

__all__ = ["embedded", "extracted"]

SCHEMA = 2
SECONDS = ("build", "solve", "certify", "native_seconds", "wall", "cpu", "load")
"""The columns that are rounded to six decimals."""
COLUMNS = tuple(field.name for field in fields(Run) if field.name != "log")
_BLOCK = re.compile(r'<script type="application/json" id="klopt-runs">(.*?)</script>', re.DOTALL)


def embedded(runs: Sequence[Run], command: str) -> str:
    """Return the runs as JSON that is safe inside a `<script>` element, whatever the texts."""
    columns = {name: _column(name, [getattr(run, name) for run in runs]) for name in COLUMNS}
    content = {"schema": SCHEMA, "command": command, "count": len(runs), "runs": columns}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def extracted(page: str) -> tuple[Run, ...]:
    """Return the runs that a page holds, their logs empty.

    >>> extracted("<p>no data")
    Traceback (most recent call last):
    klopt.errors.InvalidProblem: the page holds no runs; expected one that klopt wrote
    """
    block = _BLOCK.search(page)
    if block is None:
        raise InvalidProblem("the page holds no runs; expected one that klopt wrote")
    # Whoever wrote the page may have written anything.
    try:
        content = json.loads(block[1])
        count = content["count"]
        columns = {name: _values(name, column, count) for name, column in content["runs"].items()}
        # A page of schema 1 lacks the columns of estimates.
        known = [name for name in COLUMNS if name in columns]
        return tuple(Run(**{name: columns[name][i] for name in known}) for i in range(count))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InvalidProblem(
            f"the page holds no runs as klopt writes them: {type(error).__name__}: {error}"
        ) from error


def _column(name: str, values: list[Any]) -> Any:
    plain = [_plain(name, value) for value in values]
    if plain and all(value == plain[0] for value in plain):
        return {"all": plain[0]}
    if values and isinstance(values[0], str):
        texts = list(dict.fromkeys(str(value) for value in values))
        if 2 * len(texts) <= len(values):
            place = {text: i for i, text in enumerate(texts)}
            return {"texts": texts, "at": [place[str(value)] for value in values]}
    return plain


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, float):
        return str(value) if isinstance(value, str) else value
    if math.isfinite(value):
        return round(value, 6) if name in SECONDS else value
    return None if math.isnan(value) else str(value)


def _values(name: str, column: Any, count: int) -> list[Any]:
    if isinstance(column, dict) and "all" in column:
        column = [column["all"]] * count
    elif isinstance(column, dict):
        column = [column["texts"][i] for i in column["at"]]
    if name == "says":
        return [Stop(value) for value in column]
    if name == "verdict":
        return [Verdict[value] for value in column]
    kind = str(Run.__annotations__[name])
    if kind == "float":
        return [math.nan if value is None else float(value) for value in column]
    return list(column)
