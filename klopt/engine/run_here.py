"""Runs a backend in this process so that nothing it raises, prints or returns can hurt the caller.

Native exceptions become a `Stop`, printed text goes to the answer's log, and a vector of the wrong
shape, with NaN or with infinite entries is taken out of the answer. A backend works on a form of
its own: what is cached or remembered while it runs stays there, so the proof never reads it. The
arrays are shared and read-only; a backend that changes them all the same, as native code can, has
crashed. Ctrl-C and bad settings always reach the caller.
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
from dataclasses import replace
from functools import cache, cached_property
from math import gcd
from numbers import Integral
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import ThreadpoolController

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Step, Stop
from klopt.model.forms import Form
from klopt.model.memo import LastAnswer
from klopt.model.records import field_names

__all__ = ["CHANGED", "blas_threads", "flush_c", "pristine", "run_here"]

CHANGED = "changed its input; build the problem anew before you solve it again"
"""The native status of a backend that has changed the arrays of its form."""

CHUNK = 2**15
"""Entries of an array that are added up at a time to notice changes."""
CHUNK_COLUMNS = 2**8
"""Columns of the table that a chunk is added up in."""

MAX_MAGNITUDE = 1e100
"""Squares and products of larger entries leave the range of floats."""

_fields = cache(field_names)


def run_here(
    backend: Backend,
    form: Form,
    settings: Settings,
    start: Start | None = None,
    *,
    capture: bool | None = None,
) -> Answer:
    """Return the backend's answer, contained.

    Parameters
    ----------
    backend, form, settings, start
        Who answers what, and how.
    capture
        Whether to collect what is printed. None does so where the backend does not keep silent by
        itself, unless a log is wanted.
    """
    if capture is None:
        capture = not settings.log and "log" not in backend.honours
    own_form = pristine(form)
    own_settings = pristine(settings)
    with _read_only(list(_arrays_of(form))):
        before = list(map(_checksum, _arrays_of(form)))
        began = time.perf_counter()
        with _captured(capture) as log, blas_threads(settings.threads):
            answer = _run(backend, own_form, own_settings, start)
        seconds = time.perf_counter() - began

        # Looked up afresh: a backend may have exchanged the parts of a sparse matrix.
        if list(map(_checksum, _arrays_of(form))) != before:
            answer = Answer(Stop.CRASHED, native=CHANGED)
    return _cleaned(answer, form, seconds, "".join(log))


def _run(backend: Backend, form: Form, settings: Settings, start: Start | None) -> Answer:
    """What the backend returns, or an answer that says what it raised."""
    try:
        return backend.run(form, settings, start)
    # The user ends the solve or asked for something impossible: no outcome of this route.
    except (KeyboardInterrupt, SystemExit, InvalidSettings):
        raise
    # An error about the input; too deep a recursion is none.
    except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
        stop = Stop.CRASHED if isinstance(error, RecursionError) else Stop.REJECTED
        return Answer(stop, native=_text(error))
    except BaseException as error:  # a Rust panic, say, is no Exception
        return Answer(Stop.CRASHED, native=_text(error))


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# What a backend is given.


def pristine(thing: Any) -> Any:
    """Return a copy of a frozen object without what it has cached; the arrays are shared.

    What `klopt.model.memo.remember_last` keeps belongs to one object, so the copy starts without
    that too.

    >>> from klopt.model.functions import Linear
    >>> f = Linear([1.0, 2.0])
    >>> pristine(f) is f, pristine(f).c is f.c
    (False, True)
    """
    kind: type = type(thing)
    if kind is tuple:
        return tuple(map(pristine, thing))
    if not _fields(kind) or not hasattr(thing, "__dict__"):
        return thing
    copy: Any = object.__new__(kind)
    for name, value in vars(thing).items():
        is_cache = isinstance(value, LastAnswer)
        if not (is_cache or isinstance(getattr(kind, name, None), cached_property)):
            copy.__dict__[name] = pristine(value)
    return copy


def _arrays_of(thing: object) -> Iterator[npt.NDArray[Any]]:
    """Every array in a form and in the objects that it is made of."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple):
        for part in thing:
            yield from _arrays_of(part)
    elif isinstance(thing, sparse.csc_array):
        yield from (thing.data, thing.indices, thing.indptr)
    else:
        kind: type = type(thing)
        for name in _fields(kind):
            yield from _arrays_of(getattr(thing, name))


@contextmanager
def _read_only(arrays: list[npt.NDArray[Any]]) -> Iterator[None]:
    """Lock arrays for the time of a run.

    klopt's own are locked for good, but come writable out of a pickle; those inside a user's own
    function are the user's, who gets them back as they were.
    """
    writable = [array for array in arrays if array.flags.writeable]
    for array in writable:
        array.flags.writeable = False
    try:
        yield
    finally:
        # Owners of their data first: a view is writable only where its base is.
        for array in sorted(writable, key=lambda array: array.base is not None):
            with suppress(ValueError):  # its base has been locked for good meanwhile
                array.flags.writeable = True


def _checksum(array: npt.NDArray[Any]) -> tuple[int, ...]:
    """Whether an array is locked, and a sum of its bits that knows their order.

    In chunks that a processor keeps at hand, the bits are added along the rows and the columns of a
    table: two entries that change places change both, wherever they stand.
    """
    flat = array.ravel(order="K")
    words = flat.view(f"u{gcd(8, flat.nbytes)}")
    whole = words.size // CHUNK * CHUNK
    total = crc32(words[whole:].tobytes())
    for start in range(0, whole, CHUNK):
        table = words[start : start + CHUNK].reshape(-1, CHUNK_COLUMNS)
        total = crc32(table.sum(axis=0).tobytes(), total)
        total = crc32(table.sum(axis=1).tobytes(), total)
    return flat.size, int(array.flags.writeable), total


# What a backend returns.


def _cleaned(given: object, form: Form, seconds: float, log: str) -> Answer:
    """The answer without vectors that cannot be measured; `native` says which were taken out.

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
    answer = _as_answer(given)
    rows, columns = form.shape
    flaws: list[str] = []
    x = _vector("x", answer.x, columns, flaws)
    y = _vector("y", answer.y, rows, flaws)
    farkas = _vector("farkas", answer.farkas, rows, flaws)
    ray = _vector("ray", answer.ray, columns, flaws)
    native = "; ".join(str(text) for text in (answer.native, *flaws) if text)
    return replace(
        answer,
        stop=Stop(answer.stop),
        native=native,
        x=x,
        y=y,
        farkas=farkas,
        ray=ray,
        iterations=_count(answer.iterations),
        seconds=_duration(answer.seconds, seconds),
        log=f"{answer.log}{log}",
        history=tuple(step for step in _listed(answer.history) if isinstance(step, Step)),
        notes=tuple(map(str, _listed(answer.notes))),
    )


def _as_answer(given: object) -> Answer:
    """What was returned if it is an answer with a known status, else an answer that says so."""
    if not isinstance(given, Answer):
        return Answer(Stop.CRASHED, native=f"returned {type(given).__name__}, not an Answer")
    try:
        Stop(given.stop)
    except ValueError:
        text = f"returned the stop {given.stop!r}, which is no member of Stop"
        return Answer(Stop.CRASHED, native=text)
    return given


def _count(told: object) -> int | None:
    return int(told) if isinstance(told, Integral) else None


def _duration(told: object, measured: float) -> float:
    """The seconds of the native call as the backend tells them, if it does, else as measured."""
    if isinstance(told, int | float) and 0 < told < np.inf:
        return float(told)
    return measured


def _listed(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


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
    try:
        # A copy, so that a backend which keeps its vectors cannot change them later.
        array = np.array(value)
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        flaws.append(f"{name} is no vector of numbers")
        return None

    finite = np.isfinite(array)
    largest = np.abs(array).max(initial=0.0)
    if array.ndim != 1 or (size is not None and array.size != size):
        flaws.append(f"{name} has shape {array.shape}, not ({size},)")
    elif not finite.all():
        flaws.append(f"{name} holds {int((~finite).sum())} entries that are NaN or infinite")
    elif largest > MAX_MAGNITUDE:
        flaws.append(f"{name} has entries up to {largest:.0e}, too large to measure")
    else:
        return array
    return None


# What a backend uses of the process: the threads of BLAS and the standard streams.


class _BlasPools:
    """The BLAS pools of the process: the first user sets their size, the last one resets it."""

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
                self._set(threads)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users and self.changed:
                    self._reset()

    def _set(self, threads: int) -> None:
        # Asking takes a tenth of the time of setting, and mostly there is nothing to set.
        libraries = self.pools.lib_controllers
        self.changed = any(library.num_threads != threads for library in libraries)
        if self.changed:
            self._take_control()
            self.limit = self.pools.limit(limits=threads)

    def _reset(self) -> None:
        self._take_control()
        self.limit.restore_original_limits()
        self._take_control()

    def _take_control(self) -> None:
        """Let this thread set the pools: since threadpoolctl 3.8 only the first that did may."""
        for library in self.pools.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


@cache
def _blas_pools() -> _BlasPools:
    return _BlasPools()


def blas_threads(threads: int) -> AbstractContextManager[None]:
    """Return a context in which NumPy and SciPy use that many threads."""
    return _blas_pools().limited(threads)


def flush_c() -> None:
    """Write out what C code has printed: left in its buffers it would appear later, elsewhere."""
    # Where there is no C library to be had, nothing of it can have printed.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


_capturing = threading.Lock()


@contextmanager
def _captured(wanted: bool) -> Iterator[list[str]]:
    """Collect what is written to the process's standard streams, by C code too.

    The streams belong to the whole process, so while one thread captures, others run uncaptured.
    """
    text: list[str] = []
    if not (wanted and _capturing.acquire(blocking=False)):
        yield text
        return
    try:
        with tempfile.TemporaryFile() as sink:
            # What was printed before belongs to the caller.
            flush_c()
            saved = [os.dup(1), os.dup(2)]
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
        _capturing.release()
