"""What is written to the standard streams of the process, by C code too, collected as text."""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import IO

__all__ = ["MAX_LOG_BYTES", "captured", "flush_c"]

MAX_LOG_BYTES = 1_000_000
"""How much of what one run prints is kept."""

_capturing = threading.Lock()


def flush_c() -> None:
    """Write out what C code has printed: left in its buffers it would appear later, elsewhere."""
    # Where there is no C library to be had, nothing of it can have printed.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


@contextmanager
def captured(text: list[str]) -> Iterator[None]:
    """Append to the list what is written to the process's standard streams.

    The streams belong to the whole process, so while one thread captures, others run uncaptured.
    To be entered where no signal can come in between, as in `call_within`.
    """
    if not (_are_open() and _capturing.acquire(blocking=False)):
        yield
        return
    with ExitStack() as undo:
        undo.callback(_capturing.release)
        sink = undo.enter_context(tempfile.TemporaryFile())
        undo.callback(_collect, sink, text)
        # What was printed before belongs to the caller.
        flush_c()
        for number in (1, 2):
            kept = os.dup(number)
            # Registered before the change is made: undoing what was not done does no harm.
            undo.callback(_put_back, kept, number)
            os.dup2(sink.fileno(), number)
        undo.callback(flush_c)
        stream = open(os.dup(sink.fileno()), "w", encoding="utf-8", errors="replace")  # noqa: SIM115
        undo.callback(_close, stream)
        undo.enter_context(redirect_stdout(stream))
        undo.enter_context(redirect_stderr(stream))
        yield


def _are_open() -> bool:
    """Whether there are standard streams: a service may have closed them."""
    try:
        os.fstat(1)
        os.fstat(2)
    except OSError:
        return False
    return True


def _put_back(kept: int, number: int) -> None:
    # A backend that closes all files of the process has closed this one too.
    with suppress(OSError):
        os.dup2(kept, number)
        os.close(kept)


def _close(stream: IO[str]) -> None:
    with suppress(OSError, ValueError):
        stream.close()


def _collect(sink: IO[bytes], text: list[str]) -> None:
    with suppress(OSError, ValueError):
        sink.seek(0)
        text.append(sink.read(MAX_LOG_BYTES).decode(errors="replace"))
