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

M_TRIM_THRESHOLD = -1
"""The parameter of `mallopt` for how much free memory at its end the heap may keep, by malloc.h."""
M_MMAP_THRESHOLD = -3
"""The parameter of `mallopt` for the size from which an array has pages of its own."""

KEPT_BYTES = 1 << 30
"""How much free memory the heap keeps for the next arrays."""
MAX_MMAP_THRESHOLD_BYTES = 32 << 20
"""The largest size that glibc accepts, so that arrays below it come from the heap."""
DEFAULT_MMAP_THRESHOLD_BYTES = 128 << 10
"""What glibc has by itself."""

VARIABLE = "MALLOC_TRIM_THRESHOLD_"


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory for the next arrays where the environment forbids it, until the end."""
    threshold = os.environ.get(VARIABLE, "")
    libc = ctypes.CDLL(None) if sys.platform == "linux" and threshold.isdigit() else None
    # Another C library, musl say, has neither function.
    if libc is None or not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        yield
        return
    libc.mallopt(M_MMAP_THRESHOLD, MAX_MMAP_THRESHOLD_BYTES)
    libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    try:
        yield
    finally:
        libc.mallopt(M_MMAP_THRESHOLD, DEFAULT_MMAP_THRESHOLD_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, int(threshold))
        libc.malloc_trim(0)
