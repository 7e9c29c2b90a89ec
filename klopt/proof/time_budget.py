"""The time budget of klopt's own checks, which the repairs of a proof ask for.

A time limit belongs to the person who waits, so it is passed around the mathematics, not through
it: a solve with a limit enters `budget`, a repair asks `exhausted`. Without a limit nobody need
enter it, and `exhausted` is False.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["budget", "exhausted", "remaining"]

_end: ContextVar[float] = ContextVar("end", default=float("inf"))


@contextmanager
def budget(moment: float) -> Iterator[None]:
    """Let checks in the block begin no further repair after a moment of `time.perf_counter`.

    >>> with budget(time.perf_counter() - 1.0):
    ...     exhausted()
    True
    """
    token = _end.set(moment)
    try:
        yield
    finally:
        _end.reset(token)


def exhausted() -> bool:
    """Return whether a check should go on with what it has.

    >>> exhausted()
    False
    """
    return time.perf_counter() > _end.get()


def remaining() -> float:
    """Return the seconds that are left for checks, inf without a limit.

    >>> remaining()
    inf
    """
    return _end.get() - time.perf_counter()
