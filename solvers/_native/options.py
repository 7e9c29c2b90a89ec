"""The options of libraries and methods: their names, the values they take, and limits that fit a library's numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any

from klopt.errors import InvalidSettings
from klopt.model.backend import check_raw

__all__ = [
    "FILE",
    "FLAG",
    "NUMBER",
    "POSITIVE",
    "SWITCH",
    "Kind",
    "between",
    "check_options",
    "iteration_limit",
    "one_of",
    "option_names",
    "refusal",
    "set_options",
    "whole",
    "within",
]

MOST = 2**31 - 1  # the largest whole number of every library


@dataclass(frozen=True)
class Kind:
    """Which values an option takes, in words and as a test."""

    words: str
    takes: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and bool(abs(value) <= sys.float_info.max)


FLAG = Kind("True or False", lambda value: isinstance(value, bool))
SWITCH = Kind("True or False, or 1 or 0", lambda value: isinstance(value, int) and value in (0, 1))
NUMBER = Kind("a finite number", _is_number)
POSITIVE = Kind("a positive number", lambda value: _is_number(value) and value > 0)
FILE = Kind("the name of a file, or None", lambda value: value is None or isinstance(value, str))


def between(low: float, high: float) -> Kind:
    """Return the kind of the numbers strictly between two others."""
    return Kind(
        f"a number between {low:g} and {high:g}",
        lambda value: _is_number(value) and low < value < high,
    )


def within(low: float, high: float) -> Kind:
    """Return the kind of the numbers from one to another, both among them."""
    return Kind(
        f"a number from {low:g} to {high:g}",
        lambda value: _is_number(value) and low <= value <= high,
    )


def whole(low: int) -> Kind:
    """Return the kind of the whole numbers from `low` to the largest that every library takes."""
    words = f"a whole number from {low} to {MOST}"
    return Kind(
        words,
        lambda value: (
            isinstance(value, Integral) and _is_number(value) and low <= int(value) <= MOST
        ),
    )


def one_of(*names: str) -> Kind:
    """Return the kind of some names."""
    return Kind(
        f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names
    )


def check_options(
    backend: str, raw: Mapping[str, Any], kinds: Mapping[str, Kind], reserved: Mapping[str, str]
) -> None:
    """Refuse options that do not exist, that a setting already covers, or whose value is not of their kind.

    >>> check_options("scs", {"alpha": 3}, {"alpha": between(0, 2)}, {})
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: scs option 'alpha' is 3; expected a number between 0 and 2
    """
    check_raw(backend, raw, kinds, reserved)
    for name, value in raw.items():
        if not kinds[name].takes(value):
            raise InvalidSettings(
                f"{backend} option {name!r} is {value!r}; expected {kinds[name].words}"
            )


def option_names(options: object) -> list[str]:
    """Return the names of the options that an object of a library holds: no internals, no methods."""
    return [
        name
        for name in dir(options)
        if not name.startswith("_") and not callable(getattr(options, name))
    ]


def set_options(backend: str, options: Any, raw: Mapping[str, Any]) -> None:
    """Set the attributes of a library's own object of options, which knows the type of each."""
    for name, value in raw.items():
        usual = getattr(options, name)
        try:
            setattr(options, name, value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidSettings(refusal(backend, name, value, usual)) from None


def refusal(backend: str, name: str, value: object, usual: object) -> str:
    """Return in which words a value is refused that a library does not take."""
    return (
        f"{backend} refused the option {name} = {value!r}; expected a value like {shortened(usual)}"
    )


def iteration_limit(wanted: int) -> int:
    """Return the limit that a library is given: no more than it can count to.

    >>> iteration_limit(200), iteration_limit(10**10)
    (200, 2147483647)
    """
    return min(wanted, MOST)
