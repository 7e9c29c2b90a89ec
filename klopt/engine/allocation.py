"""Memory that stays in a process while matrices of one size come and go.

Dask starts its workers with `MALLOC_TRIM_THRESHOLD_`, so that glibc hands every freed matrix back
to the system, which has to give and clear the same pages for the next one: half of the time of a
small kernel problem.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

TRIM, MMAP = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""
KEPT = 1 << 30
LARGEST, USUAL = 32 << 20, 128 << 10
"""The size from which an array has pages of its own: the most that glibc takes, and what it has by itself."""
VARIABLE = "MALLOC_TRIM_THRESHOLD_"


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep the memory of freed arrays for the next ones where the environment forbids it; at the end give it back."""
    usual = os.environ.get(VARIABLE, "")
    libc = ctypes.CDLL(None) if sys.platform == "linux" and usual.isdigit() else None
    if (
        libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim")
    ):  # as in musl
        yield
        return
    libc.mallopt(MMAP, LARGEST)
    libc.mallopt(TRIM, KEPT)
    try:
        yield
    finally:
        libc.mallopt(MMAP, USUAL)
        libc.mallopt(TRIM, int(usual))
        libc.malloc_trim(0)
