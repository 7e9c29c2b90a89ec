"""What the values of options mean: durations, amounts of memory, lists of numbers, native options.

    DURATION   30, 30s, 5m, 2h
    MEMORY     bytes, or 500M, 2G, 2GB
    NUMBERS    50,100,200
    KEY=VALUE  a native option; the value is a Python literal, or else plain text

What problems and backends are called is the matter of `klopt.engine.lookup`.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from klopt.errors import InvalidSettings

__all__ = ["read_duration", "read_memory", "read_numbers", "read_options"]

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)\s*([smh]?)")


def read_duration(text: str) -> float:
    """Return the seconds that a text like 30, 30s, 5m or 2h means.

    >>> read_duration("1.5m")
    90.0
    """
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidSettings(f"{text!r} is no duration; write seconds (30), or 30s, 5m, 2h")
    number, unit = found.groups()
    return float(number) * _SECONDS[unit]


def read_memory(text: str) -> int:
    """Return the bytes that a text like 500M or 2G means.

    >>> read_memory("1.5G")
    1500000000
    """
    from klopt.arrays import bytes_of

    return bytes_of(text)


def read_numbers(text: str, what: str) -> list[float]:
    """Return the numbers in a text like 50,100,200.

    >>> read_numbers("1e-6, 1e-9", "tolerances")
    [1e-06, 1e-09]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSettings(
            f"{text!r} is no list of {what}; write numbers with commas between them"
        ) from None


def read_options(texts: tuple[str, ...]) -> dict[str, Any]:
    """Return native options from texts KEY=VALUE.

    >>> read_options(("max_step_fraction=0.9", "presolve_enable=False", "solver=ipm"))
    {'max_step_fraction': 0.9, 'presolve_enable': False, 'solver': 'ipm'}
    """
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InvalidSettings(f"raw option {text!r} is not of the form KEY=VALUE")
        if key in options:
            raise InvalidSettings(
                f"raw option {key!r} is given twice; one of the values would be lost"
            )
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = value
    return options
