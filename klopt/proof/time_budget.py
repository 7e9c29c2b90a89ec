"""How long klopt's own checks may take: a solve with a time limit says so, the repairs of a proof ask.

The limit belongs to the person who waits, so it is passed around the mathematics, not through it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["budget", "exhausted"]

_moment: ContextVar[float] = ContextVar("moment", default=float("inf"))


@contextmanager
def budget(moment: float) -> Iterator[None]:
    """Let checks in the block begin no further repair after a moment of `time.perf_counter`.

    >>> with budget(time.perf_counter() - 1.0):
    ...     exhausted()
    True
    """
    token = _moment.set(moment)
    try:
        yield
    finally:
        _moment.reset(token)


def exhausted() -> bool:
    """Return whether a check should go on with what it has.

    >>> exhausted()
    False
    """
    return time.perf_counter() > _moment.get()
