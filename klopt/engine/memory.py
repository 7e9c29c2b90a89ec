"""Memory limits of a process, what memory there is, and what a backend is foreseen to need.

A memory limit M is kept by the system's limit of the address space, set for the time of a run to
what is mapped now plus M less what is resident now: libraries map far more than they touch.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from klopt.model.backend import Backend
from klopt.model.forms import Form

try:
    import resource
except ImportError:  # Windows has neither limits nor a count of pages
    resource = None  # type: ignore[assignment]

__all__ = [
    "MemoryRise",
    "available_memory",
    "gigabytes",
    "limited_memory",
    "limits_are_enforced",
    "memory_refusal",
    "peak_memory",
    "reset_peak",
]

_STATUS_FILE = Path("/proc/self/status")
_CLEAR_FILE = Path("/proc/self/clear_refs")
_CLEAR_PEAK = "5"
"""Written to that file, it resets the peak of resident memory: `man 5 proc`."""
_SYSTEM_FILE = Path("/proc/meminfo")
_GROUP_FOLDER = Path("/sys/fs/cgroup")
"""Where Linux tells a container how much memory it may have."""

_RESET_SLACK_BYTES = 2**20
"""By how much a mark that was reset a moment ago may exceed what is resident."""
MIN_FORESEEN_BYTES = 5e8
"""Without a limit, what needs less is not compared with what the computer has left."""


def gigabytes(size: float) -> str:
    """Return a number of bytes in words.

    >>> gigabytes(1.25e9)
    '1.25 GB'
    """
    return f"{size / 1e9:.3g} GB"


def limits_are_enforced() -> bool:
    """Return whether this system can keep a memory limit."""
    return resource is not None and "VmSize" in _memory(_STATUS_FILE, "Vm")


@contextmanager
def limited_memory(memory_limit: int) -> Iterator[None]:
    """Limit the address space so that so many bytes may be resident; 0 for no limit."""
    now = _memory(_STATUS_FILE, "Vm") if memory_limit else {}
    if resource is None or "VmSize" not in now:
        yield
        return
    _load_linear_algebra()
    now = _memory(_STATUS_FILE, "Vm")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now["VmSize"] + max(0, memory_limit - now["VmRSS"])
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _load_linear_algebra() -> None:
    """Let NumPy's and SciPy's BLAS take their buffers: denied one, OpenBLAS asks again without end."""
    import numpy as np
    from scipy.linalg import blas

    one = np.ones((1, 1))
    blas.dgemm(1.0, one, one @ one)


def memory_refusal(backend: Backend, form: Form, memory_limit: int | None) -> str:
    """Return why a backend should not be given a form, by the memory that it needs; "" if it may.

    Parameters
    ----------
    backend, form
        Who would be asked what.
    memory_limit
        The user's limit in bytes; None compares with what the computer has left.
    """
    try:
        needed = float(backend.memory(form))
    except Exception:  # a stranger's estimate is no reason to refuse its backend
        return ""
    if memory_limit is not None:
        if needed > memory_limit:
            return f"needs about {gigabytes(needed)}; the limit is {gigabytes(memory_limit)}"
        return ""
    # Asking takes longer than a small solve.
    left = available_memory() if needed > MIN_FORESEEN_BYTES else None
    if left is not None and needed > left:
        return f"needs about {gigabytes(needed)}; the computer has {gigabytes(left)} left"
    return ""


def available_memory() -> int | None:
    """Return the bytes that a process can still have without swapping; None where unknown."""
    left = _memory(_SYSTEM_FILE, "MemAvailable").get("MemAvailable")
    # There may be no such file, and "max" is no number.
    with suppress(OSError, ValueError):
        most = int((_GROUP_FOLDER / "memory.max").read_text())
        used = int((_GROUP_FOLDER / "memory.current").read_text())
        left = most - used if left is None else min(left, most - used)
    return left


def reset_peak() -> None:
    """Begin a new high-water mark of resident memory, where the system allows it."""
    with suppress(OSError):
        _CLEAR_FILE.write_text(_CLEAR_PEAK)


def peak_memory() -> int | None:
    """Return the high-water mark of resident memory in bytes; None where it is not counted."""
    known = _memory(_STATUS_FILE, "VmHWM").get("VmHWM")
    if known is not None or resource is None:
        return known
    # Since the process started; on macOS this is in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class MemoryRise:
    """How far resident memory rises from now on, at its peak.

    What Python and the C library hold but do not use is given back first: else a run would fill what
    an earlier one has left, and seem to need nothing.
    """

    def __init__(self) -> None:
        gc.collect()
        with suppress(OSError, AttributeError):  # other systems have another C library
            ctypes.CDLL(None).malloc_trim(0)
        reset_peak()
        now = _memory(_STATUS_FILE, "Vm")
        peak = now.get("VmHWM", 0)
        resident = now.get("VmRSS", 0)
        # Where the mark was not reset, it is that of an earlier run.
        is_reset = 0 < peak <= resident + _RESET_SLACK_BYTES
        self._before = resident if is_reset else None

    def bytes(self) -> int | None:
        """Return the rise so far; None where the system does not tell."""
        peak = _memory(_STATUS_FILE, "VmHWM").get("VmHWM")
        if peak is None or self._before is None:
            return None
        return max(0, peak - self._before)


def _memory(file: Path, prefix: str) -> dict[str, int]:
    """What Linux says of memory, in bytes, by the names that begin so; nothing elsewhere."""
    with suppress(OSError):
        lines = file.read_text().splitlines()
        rows = (line.split() for line in lines if line.startswith(prefix))
        return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows}
    return {}
