"""What a backend returned, whatever it is, as an `Answer` of plain numbers and plain text.

A backend may return anything, and asking a stranger's object for its number, its text or its
entries runs the stranger's code. So everything is asked for once, here, and copied: vectors of
real numbers with the right shape and finite entries, whole numbers of 64 bits, text that can be
written anywhere. What cannot be read is left out, and `native` says so; an answer whose status
cannot be read has crashed. Only `KeyboardInterrupt` and `SystemExit` pass: they are the user's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.backend import Answer, Step, Stop
from klopt.model.forms import Form

__all__ = ["USER_ENDS", "clean_text", "cleaned", "error_text"]

Value = TypeVar("Value")

USER_ENDS = (KeyboardInterrupt, SystemExit)
"""What ends the call of the user, too; a signal handler may raise either at any moment."""

MAX_MAGNITUDE = 1e100
"""Squares and products of larger entries leave the range of floats."""
MAX_COUNT = 2**63 - 1
"""The largest whole number that a store can keep."""
MAX_TEXT_CHARACTERS = 10_000
"""What is kept of a status, a note or the text of an error: its beginning."""
MAX_NOTES = 100
"""How many notes are kept."""

NUMBER_KINDS = "biuf"
"""The kinds of NumPy types that are real numbers: no dates, records, texts or objects."""

_TYPE_NAME = type.__dict__["__name__"]
"""How a class is called, whatever its metaclass says."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, which a terminal obeys, and halves of characters, which no file takes."""


def clean_text(text: str) -> str:
    """Return the text with what cannot be printed or stored replaced.

    >>> clean_text("a\\x1b[2Jb\\ud800")
    'a\ufffd[2Jb\ufffd'
    """
    # A subclass may have methods of its own; this is the text itself.
    plain = str.__str__(text)
    return _UNPRINTABLE.sub("\ufffd", plain)


def error_text(error: BaseException) -> str:
    """Return the type and the message of an error, also of one that cannot be printed.

    >>> error_text(ValueError("no such row"))
    'ValueError: no such row'
    """
    return f"{_name(error)}: {_printed(error)}"


def _name(value: object) -> str:
    return clean_text(_TYPE_NAME.__get__(type(value)))


def cleaned(given: object, form: Form, seconds: float, log: str) -> Answer:
    """Return the answer without what cannot be read or measured; `native` says what that was.

    Parameters
    ----------
    given
        What the backend returned, which may be anything.
    form
        What it was asked; its shape is that of the vectors.
    seconds
        How long it ran, for backends that do not say.
    log
        What it printed.
    """
    try:
        return _cleaned(given, form, seconds, log)
    except USER_ENDS:
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        native = f"its answer cannot be read: {error_text(error)}"
        return Answer(Stop.CRASHED, seconds=seconds, native=native, log=clean_text(log))


def _cleaned(given: object, form: Form, seconds: float, log: str) -> Answer:
    if not issubclass(type(given), Answer):
        native = f"returned {_name(given)}, not an Answer"
        return Answer(Stop.CRASHED, seconds=seconds, native=native, log=clean_text(log))
    assert isinstance(given, Answer)
    stop = _stop(given.stop)
    if stop is None:
        native = f"returned the stop {_printed(given.stop)!r}, which is no member of Stop"
        return Answer(Stop.CRASHED, seconds=seconds, native=native, log=clean_text(log))

    rows, columns = form.shape
    flaws: list[str] = []
    x = _vector("x", given.x, columns, flaws)
    y = _vector("y", given.y, rows, flaws)
    farkas = _vector("farkas", given.farkas, rows, flaws)
    ray = _vector("ray", given.ray, columns, flaws)
    iterations = _count(given.iterations)
    notes = tuple(_printed(note) for note in _listed(given.notes)[:MAX_NOTES])
    status = "" if given.native is None else _printed(given.native)
    native = "; ".join(filter(None, (status, *flaws)))
    return Answer(
        stop=stop,
        x=x,
        y=y,
        farkas=farkas,
        ray=ray,
        iterations=iterations,
        seconds=_duration(given.seconds, seconds),
        native=native,
        log=_log(given.log) + clean_text(log),
        history=tuple(filter(None, map(_step, _listed(given.history)))),
        notes=notes,
    )


def _attempt(read: Callable[[], Value]) -> Value | None:
    """What a stranger's object says of itself, None where asking it fails in whatever way."""
    try:
        return read()
    except USER_ENDS:
        raise
    except BaseException:
        return None


def _printed(value: object) -> str:
    """The beginning of a text, or of any object as text."""
    if issubclass(type(value), str):
        text: str | None = value  # type: ignore[assignment]
    else:
        text = _attempt(lambda: str(value))
    if text is None:
        return f"(a {_name(value)} that cannot be printed)"
    return clean_text(str.__getitem__(text, slice(MAX_TEXT_CHARACTERS)))


def _log(value: object) -> str:
    """What a backend kept of its own output, which may be long."""
    if issubclass(type(value), str):
        return clean_text(value)  # type: ignore[arg-type]
    return "" if value is None else _printed(value)


def _stop(value: object) -> Stop | None:
    """The member of `Stop`, or the one of that name; None where it is neither."""
    if type(value) is Stop:
        return value
    # Anything else would be asked whether it equals each member.
    if not issubclass(type(value), str):
        return None
    return Stop.__members__.get(str.__str__(value))


def _count(value: object) -> int | None:
    """A number of iterations, None where it is none or no store could keep it."""
    if value is None or type(value) is bool:
        return None
    # The sum with 0 of a subclass of int is an int.
    number = _attempt(lambda: int.__add__(operator.index(value), 0))  # type: ignore[arg-type]
    if number is None or not 0 <= number <= MAX_COUNT:
        return None
    return number


def _number(value: object) -> float:
    """A real number, NaN where it is none."""
    if type(value) is float:
        return value
    # Text is none, although it can be read as one.
    if issubclass(type(value), str | bytes):
        return np.nan
    number = _attempt(lambda: float.__add__(float(value), 0.0))  # type: ignore[arg-type]
    return np.nan if number is None else number


def _duration(told: object, measured: float) -> float:
    """The seconds of the native call as the backend tells them, if it does, else as measured."""
    number = _number(told)
    return number if 0 < number < np.inf else measured


def _step(value: object) -> Step | None:
    """The bounds after some iteration, None where it is no step or has no count."""
    if not issubclass(type(value), Step):
        return None
    told: Any = value
    iteration = _attempt(lambda: _count(told.iteration))
    if iteration is None:
        return None
    numbers = _attempt(
        lambda: (_number(told.seconds), _number(told.lower), _number(told.upper)),
    )
    return None if numbers is None else Step(iteration, *numbers)


def _listed(value: object) -> tuple[Any, ...]:
    """The entries of a list or tuple, past any method of a subclass; else the value alone."""
    kind = type(value)
    entries: Iterator[Any]
    if issubclass(kind, tuple):
        entries = tuple.__iter__(value)  # type: ignore[arg-type]
    elif issubclass(kind, list):
        entries = list.__iter__(value)  # type: ignore[arg-type]
    else:
        return (value,)
    return tuple(entries)


def _vector(name: str, value: object, size: int | None, flaws: list[str]) -> FloatArray | None:
    """A copy of a returned vector; None, and one more flaw, where it cannot be measured.

    Parameters
    ----------
    name
        What a flaw calls it.
    value
        What the backend returned; None is no flaw.
    size
        How many entries it must have; None where any number will do.
    flaws
        Where a flaw is added.
    """
    if value is None:
        return None
    # A mask says that entries are missing, which nothing after this would know.
    if (
        issubclass(type(value), np.ma.MaskedArray)
        and _attempt(lambda: _is_masked(value)) is not False
    ):
        flaws.append(f"{name} is a masked array with entries missing")
        return None
    array = _attempt(lambda: np.asarray(value))
    if array is None or array.dtype.kind not in NUMBER_KINDS:
        flaws.append(f"{name} is no vector of numbers")
        return None
    if array.ndim != 1 or (size is not None and array.size != size):
        flaws.append(f"{name} has shape {array.shape}, not ({size},)")
        return None

    # A copy, so that a backend which keeps its vectors cannot change them later.
    with np.errstate(all="ignore"):
        entries = np.array(array, dtype=float, subok=False, copy=True, order="C")
    finite = np.isfinite(entries)
    largest = np.abs(entries).max(initial=0.0)
    if not finite.all():
        flaws.append(f"{name} holds {int((~finite).sum())} entries that are NaN or infinite")
    elif largest > MAX_MAGNITUDE:
        flaws.append(f"{name} has entries up to {largest:.0e}, too large to measure")
    else:
        return entries
    return None


def _is_masked(value: Any) -> bool:
    return bool(np.ma.getmaskarray(value).any())
