"""Numbers and their nouns in the sentences that klopt prints."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural where that is due.

    >>> counted(1, "claim"), counted(2, "claim")
    ('1 claim', '2 claims')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
