"""The gap at which a proof is good enough, which the search for better witnesses asks for.

A solve looks for the best proof that an answer allows, since repairs cost little beside it. Who only
wants to know whether an answer holds to a tolerance enters `sufficient`, and the search ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["sufficient", "sufficient_gap"]

_gap: ContextVar[float] = ContextVar("gap", default=0.0)


@contextmanager
def sufficient(gap: float) -> Iterator[None]:
    """Let the search for witnesses in the block end at a relative gap.

    >>> with sufficient(1e-6):
    ...     sufficient_gap()
    1e-06
    """
    token = _gap.set(gap)
    try:
        yield
    finally:
        _gap.reset(token)


def sufficient_gap() -> float:
    """Return the relative gap that is enough; 0 where the best proof is wanted.

    >>> sufficient_gap()
    0.0
    """
    return _gap.get()
