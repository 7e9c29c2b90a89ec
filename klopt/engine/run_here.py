"""Runs a backend in this process so that nothing it raises, prints or returns can hurt the caller.

Native exceptions become a `Stop`, printed text goes to the answer's log, and an answer of the wrong
shape or with numbers that are none loses the offending part. A backend that changes its input,
which native code can do to read-only arrays, has crashed. Ctrl-C and bad settings always reach the
caller.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from copy import copy
from dataclasses import replace
from functools import cache
from math import gcd
from numbers import Integral
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Step, Stop
from klopt.model.forms import Form
from klopt.model.records import field_names

__all__ = ["CHANGED", "blas_threads", "flush_c", "run_here"]


def run_here(
    backend: Backend,
    form: Form,
    settings: Settings,
    start: Start | None = None,
    *,
    capture: bool | None = None,
) -> Answer:
    """Return the backend's answer, contained.

    Output is captured where the backend does not keep silent by itself (or as `capture` says),
    unless a log is wanted.
    """
    if capture is None:
        capture = not settings.log and "log" not in backend.honours
    before = _fingerprint(form)
    began = time.perf_counter()
    with _captured(capture) as log, blas_threads(settings.threads):
        try:
            answer = backend.run(form, copy(settings), start)  # klopt judges by its own
        except (KeyboardInterrupt, SystemExit, InvalidSettings):
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
            stop = Stop.CRASHED if isinstance(error, RecursionError) else Stop.REJECTED
            answer = Answer(stop, native=_text(error))
        except BaseException as error:
            answer = Answer(Stop.CRASHED, native=_text(error))
    seconds = time.perf_counter() - began
    if _fingerprint(form) != before:
        answer = Answer(Stop.CRASHED, native=CHANGED)
    return _cleaned(answer, form, seconds, "".join(log))


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


CHANGED = "changed its input; build the problem anew before you solve it again"
SAMPLE = 2**14
LARGEST = 1e100  # squares and products of larger entries leave the range of floats


def _fingerprint(thing: object) -> list[int]:
    """Checksums of all arrays in a form: the sum of all bits, and evenly spaced entries in their order."""
    numbers: list[int] = []
    _add_checksums(thing, numbers)
    return numbers


def _add_checksums(thing: object, numbers: list[int]) -> None:
    if isinstance(thing, np.ndarray):
        flat = thing.ravel(order="K")
        bits = flat.view(f"u{gcd(8, flat.nbytes)}")
        sample = flat[:: 1 + flat.size // SAMPLE]
        numbers += flat.size, int(thing.flags.writeable), int(bits.sum()), crc32(sample.tobytes())
    elif isinstance(thing, tuple):
        for part in thing:
            _add_checksums(part, numbers)
    else:
        kind: type = type(thing)
        for name in _parts(kind):
            _add_checksums(getattr(thing, name), numbers)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The attributes that hold the data of a form or of a part of one."""
    if issubclass(kind, sparse.csc_array):
        return "data", "indices", "indptr"
    return field_names(kind)


class _Blas:
    """The BLAS pools of the whole process: the first of several threads sets their size, the last one resets it."""

    def __init__(self) -> None:
        # Looking for the pools takes milliseconds, setting their size takes none; those of numpy
        # and scipy are loaded.
        import scipy.linalg  # noqa: F401

        self.pools = ThreadpoolController()
        self.lock = threading.Lock()
        self.users = 0
        self.changed = False

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        with self.lock:
            if not self.users:
                # Asking takes a tenth of the time of setting, and mostly there is nothing to set.
                self.changed = any(
                    library.num_threads != threads for library in self.pools.lib_controllers
                )
                if self.changed:
                    self._take()
                    self.limit = self.pools.limit(limits=threads)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users and self.changed:
                    self._take()
                    self.limit.restore_original_limits()
                    self._take()

    def _take(self) -> None:
        """From version 3.8 on a pool obeys only the thread that set it first; the last one here may be another."""
        for library in self.pools.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


@cache
def _blas() -> _Blas:
    return _Blas()


def blas_threads(threads: int) -> AbstractContextManager[None]:
    """Return a context in which NumPy and SciPy use that many threads: on a busy machine more are slower."""
    return _blas().limited(threads)


def _cleaned(given: Any, form: Form, seconds: float, log: str) -> Answer:
    """The answer without vectors of a wrong shape or with entries that are no numbers; `native` says what went."""
    answer = Answer(Stop.CRASHED, native=f"returned {type(given).__name__}, not an Answer")
    if isinstance(given, Answer):
        answer = given
    try:
        stop = Stop(answer.stop)
    except ValueError:
        answer = Answer(
            Stop.CRASHED, native=f"returned the stop {answer.stop!r}, which is no member of Stop"
        )
        stop = answer.stop
    rows, columns = form.shape
    flaws: list[str] = []
    x = _vector("x", answer.x, columns, flaws)
    y = _vector("y", answer.y, rows, flaws)
    farkas = _vector("farkas", answer.farkas, rows, flaws)
    ray = _vector("ray", answer.ray, columns, flaws)
    native = "; ".join(str(text) for text in (answer.native, *flaws) if text)
    told = answer.seconds
    return replace(
        answer,
        stop=stop,
        native=native,
        x=x,
        y=y,
        farkas=farkas,
        ray=ray,
        iterations=int(answer.iterations) if isinstance(answer.iterations, Integral) else None,
        seconds=float(told) if isinstance(told, int | float) and 0 < told < np.inf else seconds,
        log=f"{answer.log}{log}",
        history=tuple(step for step in _listed(answer.history) if isinstance(step, Step)),
        notes=tuple(map(str, _listed(answer.notes))),
    )


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _vector(name: str, value: object, size: int | None, flaws: list[str]) -> FloatArray | None:
    if value is None:
        return None
    try:
        array = np.array(value)
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        flaws.append(f"{name} is no vector of numbers")
        return None
    if array.ndim != 1 or (size is not None and array.size != size):
        flaws.append(f"{name} has shape {array.shape}, not ({size},)")
    elif not np.isfinite(array).all():
        flaws.append(
            f"{name} holds {int((~np.isfinite(array)).sum())} entries that are no finite numbers"
        )
    elif np.abs(array).max(initial=0.0) > LARGEST:
        flaws.append(f"{name} has entries up to {np.abs(array).max():.0e}, too large to measure")
    else:
        return array
    return None


def flush_c() -> None:
    """Write out what C code has printed: its buffers would otherwise come out later, in the wrong place."""
    with suppress(
        OSError, AttributeError, TypeError
    ):  # no C library to be had: nothing of it can have printed
        ctypes.CDLL(None).fflush(None)


_one_at_a_time = threading.Lock()


@contextmanager
def _captured(wanted: bool) -> Iterator[list[str]]:
    """Collect what is written to the process's standard streams, by C code too.

    The streams belong to the whole process, so while one thread captures, others run uncaptured.
    """
    text: list[str] = []
    if not (wanted and _one_at_a_time.acquire(blocking=False)):
        yield text
        return
    try:
        with tempfile.TemporaryFile() as sink:
            flush_c()
            saved = os.dup(1), os.dup(2)
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            try:
                with (
                    open(os.dup(sink.fileno()), "w") as stream,
                    redirect_stdout(stream),
                    redirect_stderr(stream),
                ):
                    yield text
            finally:
                flush_c()
                for keep, number in zip(saved, (1, 2), strict=True):
                    os.dup2(keep, number)
                    os.close(keep)
                sink.seek(0)
                text.append(sink.read().decode(errors="replace"))
    finally:
        _one_at_a_time.release()
