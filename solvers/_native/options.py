"""The raw options of libraries and methods: their names and the values they take."""

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
    "INT32_MAX",
    "NUMBER",
    "POSITIVE",
    "SWITCH",
    "OptionKind",
    "between",
    "check_options",
    "one_of",
    "option_names",
    "refusal",
    "set_options",
    "whole",
    "within",
]

INT32_MAX = 2**31 - 1
"""The largest whole number that every library takes, as an option or as a limit of iterations."""


@dataclass(frozen=True)
class OptionKind:
    """Which values an option takes, in words and as a test."""

    words: str
    takes: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    # A bool is an int for Python, and NaN and infinity are floats; nobody means them.
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and bool(abs(value) <= sys.float_info.max)


def _is_switch(value: Any) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _is_file(value: Any) -> bool:
    return value is None or isinstance(value, str)


FLAG = OptionKind("True or False", lambda value: isinstance(value, bool))
SWITCH = OptionKind("True or False, or 1 or 0", _is_switch)
NUMBER = OptionKind("a finite number", _is_number)
POSITIVE = OptionKind("a positive number", lambda value: _is_number(value) and value > 0)
FILE = OptionKind("the name of a file, or None", _is_file)


def between(low: float, high: float) -> OptionKind:
    """Return the kind of the numbers strictly between two others."""

    def takes(value: Any) -> bool:
        return _is_number(value) and low < value < high

    return OptionKind(f"a number between {low:g} and {high:g}", takes)


def within(low: float, high: float) -> OptionKind:
    """Return the kind of the numbers from one to another, both among them."""

    def takes(value: Any) -> bool:
        return _is_number(value) and low <= value <= high

    return OptionKind(f"a number from {low:g} to {high:g}", takes)


def whole(low: int) -> OptionKind:
    """Return the kind of the whole numbers from `low` to the largest that every library takes."""

    def takes(value: Any) -> bool:
        is_whole = isinstance(value, Integral) and _is_number(value)
        return is_whole and low <= int(value) <= INT32_MAX

    return OptionKind(f"a whole number from {low} to {INT32_MAX}", takes)


def one_of(*names: str) -> OptionKind:
    """Return the kind of some names."""

    def takes(value: Any) -> bool:
        return isinstance(value, str) and value in names

    return OptionKind(f"one of {', '.join(names)}", takes)


def check_options(
    backend: str,
    raw: Mapping[str, Any],
    kinds: Mapping[str, OptionKind],
    reserved: Mapping[str, str],
) -> None:
    """Refuse options that do not exist, that a setting covers, or whose value is not of their kind.

    Parameters
    ----------
    backend
        The name of the backend, for the message.
    raw
        The options that the user gave.
    kinds
        The options that exist and what each takes.
    reserved
        The native names that a setting of klopt covers, with that setting.

    Examples
    --------
    >>> check_options("scs", {"alpha": 3}, {"alpha": between(0, 2)}, {})
    Traceback (most recent call last):
    klopt.errors.InvalidSettings: scs option 'alpha' is 3; expected a number between 0 and 2
    """
    check_raw(backend, raw, kinds, reserved)
    for name, value in raw.items():
        kind = kinds[name]
        if not kind.takes(value):
            raise InvalidSettings(f"{backend} option {name!r} is {value!r}; expected {kind.words}")


def option_names(options: object) -> list[str]:
    """Return the names of the options that an object of a library holds, without its methods."""
    public = [name for name in dir(options) if not name.startswith("_")]
    return [name for name in public if not callable(getattr(options, name))]


def set_options(backend: str, options: Any, raw: Mapping[str, Any]) -> None:
    """Set the attributes of a library's own object of options, which knows the type of each."""
    for name, value in raw.items():
        default = getattr(options, name)
        # The library's own attribute refuses a value of the wrong type or range.
        try:
            setattr(options, name, value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidSettings(refusal(backend, name, value, default)) from None


def refusal(backend: str, name: str, value: object, default: object) -> str:
    """Return in which words a value is refused that a library does not take."""
    expected = f"expected a value like {shortened(default)}"
    return f"{backend} refused the option {name} = {value!r}; {expected}"
