"""What happens inside the child process: limits set, one route solved and certified, all of it measured.

Seconds are those of this process. Of a time limit the backend is given 95 %, so that what it has by
then can still be certified before the parent ends the run. A memory limit M is kept by the system's
limit of the address space, set for the time of the run to what is mapped now plus M less what is
resident now: libraries map far more than they touch. Peak memory is the high-water mark of resident
memory, reset before the run where the system lets us.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.environment import Environment
from klopt.bench.record import Run, Trace
from klopt.bench.task import Task
from klopt.engine.pipeline import solve
from klopt.engine.result import Attempt, Result
from klopt.engine.run_here import blas_threads
from klopt.errors import KloptError
from klopt.model.backend import Backend, Step, Stop
from klopt.model.problem import Problem

try:
    import resource
except ImportError:  # Windows has neither limits nor a count of pages
    resource = None  # type: ignore[assignment]

__all__ = ["Outcome", "make_ready", "perform", "unenforced", "warm_up"]

WARM_UP = 8
"""The size of the instance that loads a backend's library before the clock runs."""
FOR_CERTIFYING = 0.05
"""The share of the time limit that is kept for the certificate."""
LARGEST_ARRAY = 100_000
"""Entries of an array that is kept beside the record."""
LOG_TAIL = 4000
QUICKLY_BUILT = 0.1
"""Seconds that a form may take to be built once more for what a theorem says of it."""
_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished run with the bounds along its way and the arrays of its point."""

    run: Run
    trace: Trace = ()
    arrays: Mapping[str, FloatArray] = field(default_factory=dict)
    environment: Environment | None = None


def unenforced(task: Task) -> str:
    """Return which of the task's limits this system cannot enforce, in words; "" where it enforces all."""
    if task.memory_limit and (resource is None or "VmSize" not in _memory()):
        return "the memory limit is not enforced on this system"
    return ""


def warm_up(
    kind: type[Problem], formulation: str, backend: Backend, memory_limit: int, seconds: float
) -> bool:
    """Solve a small instance of the class by the same route, for no other purpose than to have done so."""
    small = kind.sample(np.random.default_rng(0), WARM_UP)
    names = {each.name for each in small.formulations()}
    pinned = formulation if formulation in names else None
    with _limited(memory_limit):
        solve(small, backend, formulation=pinned, tol=1e-3, time_limit=seconds, isolate=False)
    return True


def make_ready(kind: type[Problem], backend: Backend, threads: int) -> str:
    """Load what a run would load anyway, the class by coming here: the next best thing where a warm-up ends badly."""
    if backend.library is not None:
        importlib.import_module(backend.library)
    with blas_threads(threads):
        return kind.__name__


def perform(task: Task) -> Outcome:
    """Return what came of the task, whatever came of it; only the end of this process can prevent that."""
    s = task.settings
    given = None if s.time_limit is None else (1 - FOR_CERTIFYING) * s.time_limit
    began = datetime.now(UTC).isoformat(timespec="seconds")
    _forget_peak()
    try:
        with _limited(task.memory_limit):
            result = solve(
                task.problem, task.backend, formulation=task.formulation, tol=s.tol, time_limit=given,
                max_iter=s.max_iter, threads=s.threads, seed=s.seed, isolate=False, raw=s.raw,
            )  # fmt: skip
        outcome = _of_result(task, result)
    except BaseException as error:
        outcome = Outcome(task.outcome(*_failure(task, error)))
    memory = _memory().get("VmHWM", _peak_of_the_process())
    return replace(outcome, run=replace(outcome.run, began=began, memory=memory))


def _failure(task: Task, error: BaseException) -> tuple[Stop, str]:
    if isinstance(error, MemoryError) and task.memory_limit:
        return Stop.CRASHED, f"out of memory under the limit of {task.memory_limit / 1e9:.3g} GB"
    stop = Stop.REJECTED if isinstance(error, KloptError) else Stop.CRASHED
    return stop, f"{type(error).__name__}: {error}"


def _of_result(task: Task, result: Result) -> Outcome:
    answer, certificate, attempts = result.chosen.answer, result.certificate, result.attempts
    residuals = certificate.residuals
    native = answer.native
    if answer.stop is Stop.CRASHED and native.startswith("MemoryError") and task.memory_limit:
        native = f"{native} (under the limit of {task.memory_limit / 1e9:.3g} GB)"
    run = replace(
        task.outcome(_claim(result.chosen), native),
        verdict=certificate.verdict,
        lower=certificate.lower,
        upper=certificate.upper,
        proof=certificate.proof,
        primal=np.nan if residuals is None else float(residuals.primal),
        dual=np.nan if residuals is None else float(residuals.dual),
        gap=np.nan if residuals is None else float(residuals.gap),
        build=sum(attempt.timings.build for attempt in attempts),
        solve=sum(attempt.timings.solve for attempt in attempts),
        certify=sum(attempt.timings.certify for attempt in attempts),
        native_seconds=sum(attempt.timings.native for attempt in attempts),
        first_width=np.nan if len(attempts) == 1 else _width(attempts[0]),
        promise=_promise(result.chosen),
        iterations=_iterations(attempts),
        notes="; ".join(certificate.notes),
        log=answer.log[-LOG_TAIL:],
    )
    return Outcome(run, tuple(_trace(result)), dict(_arrays(result)))


def _claim(attempt: Attempt) -> Stop:
    """What an answer says of the problem: where a dual form is unbounded the problem is infeasible."""
    stop = attempt.answer.stop
    if not attempt.route.formulation.dual:
        return stop
    return {Stop.UNBOUNDED: Stop.INFEASIBLE, Stop.INFEASIBLE: Stop.INFEASIBLE_OR_UNBOUNDED}.get(
        stop, stop
    )


def _promise(attempt: Attempt) -> float:
    if attempt.timings.build > QUICKLY_BUILT:
        return float(np.nan)
    return attempt.route.backend.rate_constant(attempt.route.formulation.build())


def _width(attempt: Attempt) -> float:
    width = attempt.certificate.relative_width
    return float(np.inf if np.isnan(width) else width)


def _iterations(attempts: tuple[Attempt, ...]) -> int | None:
    counts = [
        attempt.answer.iterations for attempt in attempts if attempt.answer.iterations is not None
    ]
    return sum(counts) if counts else None


def _trace(result: Result) -> Iterator[Step]:
    """The bounds that the backend recorded, from the start of the run on, then what klopt proves at its end."""
    seconds, count = 0.0, 0
    for attempt in result.attempts:
        formulation, answer, timings = attempt.route.formulation, attempt.answer, attempt.timings
        for step in answer.history:
            bounds = formulation.to_user(step.lower, step.upper)
            yield Step(count + step.iteration, seconds + timings.build + step.seconds, *bounds)
        seconds, count = seconds + timings.total, count + (answer.iterations or 0)
    yield Step(count, seconds, result.lower, result.upper)


def _arrays(result: Result) -> Iterator[tuple[str, FloatArray]]:
    """The point's primal arrays and the kernel it has learned, where they are small."""
    if result.point is None:
        return
    yield from (
        (name, array) for name, array in result.point.primal.items() if array.size <= LARGEST_ARRAY
    )
    with suppress(Exception):  # a picture of the kernel is no reason to lose the run
        kernel = result.kernel
        if kernel is not None and kernel.size <= LARGEST_ARRAY:
            yield "kernel", kernel


@contextmanager
def _limited(bytes_more: int) -> Iterator[None]:
    now = _memory()
    if not bytes_more or resource is None or "VmSize" not in now:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now["VmSize"] + max(0, bytes_more - now["VmRSS"])
    resource.setrlimit(
        resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _memory() -> dict[str, int]:
    """What Linux says of this process's memory, in bytes; nothing elsewhere."""
    with suppress(OSError):
        rows = (line.split() for line in _STATUS.read_text().splitlines() if line.startswith("Vm"))
        return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows}
    return {}


def _forget_peak() -> None:
    with suppress(OSError):
        _PEAK.write_text("5")


def _peak_of_the_process() -> int | None:
    """The peak since this process started, which on macOS is counted in bytes."""
    return None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
