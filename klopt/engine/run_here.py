"""Runs a backend in this process so that nothing it raises, prints or returns can hurt the caller.

Native exceptions become a `Stop`, printed text goes to the answer's log, and what is returned is
read by `klopt.engine.clean_answer`. A backend works on a form and on settings of its own: what is
cached or remembered while it runs stays there, so the proof never reads it. The arrays are shared
and read-only; a backend that changes them all the same, as native code can, has crashed. Ctrl-C,
`SystemExit` and bad settings always reach the caller.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache, cached_property
from math import gcd
from typing import Any
from zlib import crc32

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import ThreadpoolController

from klopt.engine.clean_answer import USER_ENDS, cleaned, error_text
from klopt.engine.interrupts import call_within
from klopt.engine.standard_streams import captured
from klopt.errors import InvalidSettings
from klopt.model.backend import Answer, Backend, Settings, Start, Stop
from klopt.model.forms import ExplicitForm, Form
from klopt.model.memo import LastAnswer
from klopt.model.records import field_names

__all__ = ["CHANGED", "blas_threads", "pristine", "run_here"]

CHANGED = "changed its input; build the problem anew before you solve it again"
"""The native status of a backend that has changed the arrays of its form."""

CHUNK = 2**15
"""Entries of an array that are added up at a time to notice changes."""
CHUNK_COLUMNS = 2**8
"""Columns of the table that a chunk is added up in."""

SPARSE_PARTS = ("data", "indices", "indptr", "row", "col")
"""The arrays of a sparse matrix, by their names in SciPy's formats."""

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
    own_settings = _own_settings(settings)
    arrays = list(_arrays_of(form))
    printed: list[str] = []
    began = time.perf_counter()
    _blas_pools()
    looking = time.perf_counter() - began

    def enter(undo: ExitStack) -> None:
        undo.enter_context(_read_only(arrays))
        if capture:
            undo.enter_context(captured(printed))
        undo.enter_context(blas_threads(settings.threads))

    def call() -> tuple[object, float, float]:
        began = time.perf_counter()
        _load(backend)
        load = time.perf_counter() - began
        before = list(map(_checksum, arrays))
        began = time.perf_counter()
        answer = _run(backend, own_form, own_settings, start)
        seconds = time.perf_counter() - began

        # Looked up afresh: a backend may have exchanged the parts of a sparse matrix.
        if list(map(_checksum, _arrays_of(form))) != before:
            answer = Answer(Stop.CRASHED, native=CHANGED)
        return answer, seconds, load

    answer, seconds, load = call_within(enter, call)
    return replace(cleaned(answer, form, seconds, "".join(printed)), load=looking + load)


def _load(backend: Backend) -> None:
    """Import what the backend needs; what cannot be imported is told by its run."""
    try:
        backend.load()
    except USER_ENDS:
        raise
    except BaseException:  # a panic of a Rust library is no Exception
        return


def _run(backend: Backend, form: Form, settings: Settings, start: Start | None) -> object:
    """What the backend returns, or an answer that says what it raised."""
    try:
        return backend.run(form, settings, start)
    # The user ends the solve.
    except USER_ENDS:
        raise
    # The user asked for something impossible: no outcome of this route.
    except InvalidSettings as error:
        raise InvalidSettings(error_text(error).partition(": ")[2]) from error
    # An error about the input; too deep a recursion is none.
    except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
        stop = Stop.CRASHED if isinstance(error, RecursionError) else Stop.REJECTED
        return Answer(stop, native=error_text(error))
    except BaseException as error:  # a Rust panic, say, is no Exception
        return Answer(Stop.CRASHED, native=error_text(error))


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


def _own_settings(settings: Settings) -> Settings:
    """A copy of the settings; native options may be lists that a library writes into."""
    own: Settings = pristine(settings)
    if settings.raw:
        # What cannot be copied, such as an open file, is the user's to share.
        with suppress(Exception):
            own = attrs.evolve(own, raw=deepcopy(dict(settings.raw)))
    return own


def _arrays_of(thing: object) -> Iterator[npt.NDArray[Any]]:
    """Every array in a form and in the objects that it is made of."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from _arrays_of(part)
    elif isinstance(thing, dict):
        yield from _arrays_of(list(thing.values()))
    elif sparse.issparse(thing):
        parts = (getattr(thing, name, None) for name in SPARSE_PARTS)
        yield from (part for part in parts if isinstance(part, np.ndarray))
    # Its rule is a method of a problem or of a part of one. Of a user's own function nothing is
    # asked: it may keep arrays to write into.
    elif isinstance(thing, ExplicitForm):
        yield from _arrays_of(getattr(thing.rule, "__self__", None))
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


# What a backend uses of the process: the threads of BLAS.


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

    # To be entered where no signal can come in between: the number of users must stay right.
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
