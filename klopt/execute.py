"""Runs a backend in this process so that nothing it raises, prints or returns can hurt the caller.

Native exceptions become a `Stop`, printed text goes to the answer's log, and an answer of the wrong shape or with
numbers that are none loses the offending part. Ctrl-C and bad settings always reach the caller.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from klopt.arrays import FloatArray
from klopt.backend import Answer, Backend, Settings, Start, Stop
from klopt.errors import InvalidSettings
from klopt.forms import Form

__all__ = ["run_here"]


def run_here(
    backend: Backend, form: Form, settings: Settings, start: Start | None = None, *, capture: bool | None = None
) -> Answer:
    """Return the backend's answer, contained.

    Output is captured where the backend does not keep silent by itself (or as `capture` says), unless a log was asked for.
    """
    if capture is None:
        capture = not settings.log and "log" not in backend.honours
    began = time.perf_counter()
    with _captured(capture) as log, _blas_pools().limit(limits=settings.threads):
        try:
            answer: object = backend.run(form, settings, start)
        except (KeyboardInterrupt, SystemExit, InvalidSettings):
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError) as error:
            stop = Stop.CRASHED if isinstance(error, RecursionError) else Stop.REJECTED
            answer = Answer(stop, native=_text(error))
        except BaseException as error:
            answer = Answer(Stop.CRASHED, native=_text(error))
    seconds = time.perf_counter() - began
    if not isinstance(answer, Answer):
        answer = Answer(Stop.CRASHED, native=f"returned {type(answer).__name__}, not an Answer")
    answer = _cleaned(answer, form)
    return replace(answer, seconds=answer.seconds or seconds, log=answer.log + "".join(log))


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@cache
def _blas_pools() -> ThreadpoolController:
    # Looking for the pools takes milliseconds, setting their size takes none; numpy's and scipy's are loaded by now.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def _cleaned(answer: Answer, form: Form) -> Answer:
    """The answer without vectors of a wrong shape or with entries that are no numbers; `native` says what went."""
    rows, columns = form.shape
    flaws: list[str] = []
    x = _vector("x", answer.x, columns, flaws)
    y = _vector("y", answer.y, rows, flaws)
    farkas = _vector("farkas", answer.farkas, rows, flaws)
    ray = _vector("ray", answer.ray, columns, flaws)
    native = "; ".join(text for text in (answer.native, *flaws) if text)
    return replace(answer, native=native, x=x, y=y, farkas=farkas, ray=ray)


def _vector(name: str, value: object, size: int | None, flaws: list[str]) -> FloatArray | None:
    if value is None:
        return None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        flaws.append(f"{name} is no vector of numbers")
        return None
    if array.ndim != 1 or (size is not None and array.size != size):
        flaws.append(f"{name} has shape {array.shape}, not ({size},)")
    elif not np.isfinite(array).all():
        flaws.append(f"{name} holds {int((~np.isfinite(array)).sum())} entries that are no finite numbers")
    else:
        return array
    return None


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
            saved = os.dup(1), os.dup(2)
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            try:
                with open(os.dup(sink.fileno()), "w") as stream, redirect_stdout(stream), redirect_stderr(stream):
                    yield text
            finally:
                for keep, number in zip(saved, (1, 2), strict=True):
                    os.dup2(keep, number)
                    os.close(keep)
                sink.seek(0)
                text.append(sink.read().decode(errors="replace"))
    finally:
        _one_at_a_time.release()
