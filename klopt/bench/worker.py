"""What happens inside a child process: limits are set, one route is solved, certified and measured.

Seconds are those of this process. Of a time limit the backend is given 95 %, so that what it has by
then can still be certified before the parent kills the run (`klopt.bench.worker_pool`). A memory
limit holds for building and certifying, too (`klopt.engine.memory`). The memory of a run is what
resident memory rises by: a child that is used again gives back what it can before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from klopt.arrays import FloatArray
from klopt.bench.environment import Environment, relative_load
from klopt.bench.record import Run, Trace
from klopt.bench.run_certificates import Evidence, RunCertificate, evidence_of
from klopt.bench.task import Task
from klopt.engine.clean_answer import error_text
from klopt.engine.memory import MemoryRise, limited_memory, limits_are_enforced
from klopt.engine.pipeline import solve
from klopt.engine.result import Attempt, Result
from klopt.engine.run_here import blas_threads
from klopt.engine.run_in_child import under_limit
from klopt.errors import KloptError
from klopt.model.backend import Backend, Step, Stop
from klopt.model.problem import Problem

__all__ = ["FinishedRun", "make_ready", "perform", "unenforced", "warm_up"]

WARM_UP_SIZE = 8
"""That of the instance that loads a backend's library before the clock runs."""
WARM_UP_TOL = 1e-3
"""The relative gap to which it is solved."""
CERTIFY_FRACTION = 0.05
"""The fraction of the time limit that is kept for the certificate."""
MAX_ARRAY_ENTRIES = 100_000
"""Larger arrays are not kept beside the record."""
MAX_LOG_CHARACTERS = 4000
"""What is kept of a log: its end."""
MAX_REBUILD_S = 0.1
"""A form that took longer to build is not built again for the bound that a theorem gives."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run with the bounds along its way and the arrays of its point."""

    run: Run
    trace: Trace = ()
    arrays: Mapping[str, FloatArray] = field(default_factory=dict)
    environment: Environment | None = None
    evidence: Evidence | None = None
    """What the certificate is written from; it is not kept."""
    certificate: RunCertificate = field(default_factory=RunCertificate)


def unenforced(task: Task) -> str:
    """Return in words which limits of the task this system cannot enforce, "" if none."""
    if task.memory_limit and not limits_are_enforced():
        return "the memory limit is not enforced on this system"
    return ""


def warm_up(
    kind: type[Problem], formulation: str, backend: Backend, memory_limit: int, seconds: float
) -> bool:
    """Solve a small instance by the same route: loading a library is not the run's time."""
    small = kind.sample(np.random.default_rng(0), WARM_UP_SIZE)
    names = {each.name for each in small.formulations()}
    # Options of the real instance may give it a formulation that the small one lacks.
    pinned = formulation if formulation in names else None
    with limited_memory(memory_limit):
        solve(
            small,
            backend,
            formulation=pinned,
            tol=WARM_UP_TOL,
            time_limit=seconds,
            isolate=False,
        )
    return True


def make_ready(kind: type[Problem], backend: Backend, threads: int) -> str:
    """Import what the run will need; the class was imported when the arguments were unpickled."""
    backend.load()
    with blas_threads(threads):
        return kind.__name__


def perform(task: Task) -> FinishedRun:
    """Return what came of the task; nothing but the end of this process can prevent that."""
    s = task.settings
    time_limit = None if s.time_limit is None else (1 - CERTIFY_FRACTION) * s.time_limit
    began = datetime.now(UTC).isoformat(timespec="seconds")
    load = relative_load()
    memory = MemoryRise()
    cpu = np.nan
    try:
        processor_began = time.process_time()
        with limited_memory(task.memory_limit):
            result = solve(
                task.problem,
                task.backend,
                formulation=task.formulation,
                tol=s.tol,
                time_limit=time_limit,
                max_iter=s.max_iter,
                threads=s.threads,
                seed=s.seed,
                isolate=False,
                raw=s.raw,
                memory_limit=task.memory_limit,
            )
        cpu = time.process_time() - processor_began
        finished = _of_result(task, result)
    except BaseException as error:  # a panic of a Rust library is no Exception
        finished = FinishedRun(task.unproven_run(*_failure(task, error)))
    run = replace(
        finished.run,
        began=began,
        load=load,
        cpu=cpu,
        memory=memory.bytes(),
    )
    return replace(finished, run=run)


def _failure(task: Task, error: BaseException) -> tuple[Stop, str]:
    # Without a limit a MemoryError is the computer's, and its own text says more.
    if isinstance(error, MemoryError) and task.memory_limit:
        return Stop.CRASHED, f"out of memory{under_limit(task.memory_limit)}"
    stop = Stop.REJECTED if isinstance(error, KloptError) else Stop.CRASHED
    return stop, error_text(error)


def _of_result(task: Task, result: Result) -> FinishedRun:
    answer = result.chosen.answer
    certificate = result.certificate
    attempts = result.attempts
    estimate = certificate.estimate or (np.nan, np.nan)
    native = answer.native
    if answer.stop is Stop.CRASHED and native.startswith("MemoryError"):
        native += under_limit(task.memory_limit)
    run = replace(
        task.unproven_run(_claim(result.chosen), native),
        verdict=certificate.verdict,
        lower=certificate.lower,
        upper=certificate.upper,
        proof=certificate.proof,
        estimate_lower=estimate[0],
        estimate_upper=estimate[1],
        build=sum(attempt.timings.build for attempt in attempts),
        solve=sum(attempt.timings.solve for attempt in attempts),
        certify=sum(attempt.timings.certify for attempt in attempts),
        native_seconds=sum(attempt.timings.native for attempt in attempts),
        first_gap=_first_claimed(attempts),
        promise=_promise(result.chosen),
        iterations=_iterations(attempts),
        notes="; ".join(certificate.notes),
        log=answer.log[-MAX_LOG_CHARACTERS:],
    )
    residuals = certificate.residuals
    if residuals is not None:
        run = replace(
            run,
            primal=float(residuals.primal),
            dual=float(residuals.dual),
            gap_residual=float(residuals.gap),
        )
    return FinishedRun(
        run, tuple(_trace(result)), dict(_arrays(result)), evidence=_evidence(task, result)
    )


def _evidence(task: Task, result: Result) -> Evidence | None:
    chosen = result.chosen
    limit = task.settings.time_limit
    # Without a point the form or the proof is made again: the run must not miss its deadline by it.
    is_late = limit is not None and 2 * chosen.timings.total > limit
    if not task.certificate or (chosen.point is None and is_late):
        return None
    with suppress(Exception):  # without it there is no certificate, but the run is as good
        return evidence_of(result)
    return None


def _claim(attempt: Attempt) -> Stop:
    """What an answer says of the problem: it is infeasible where a dual form is unbounded."""
    stop = attempt.answer.stop
    if attempt.route.formulation.dual:
        of_the_problem = {
            Stop.UNBOUNDED: Stop.INFEASIBLE,
            Stop.INFEASIBLE: Stop.INFEASIBLE_OR_UNBOUNDED,
        }
        return of_the_problem.get(stop, stop)
    return stop


def _promise(attempt: Attempt) -> float:
    # The form of the run is gone; it is built again only where that is cheap.
    if attempt.timings.build > MAX_REBUILD_S:
        return float(np.nan)
    return attempt.route.backend.rate_constant(attempt.route.formulation.build())


def _first_claimed(attempts: tuple[Attempt, ...]) -> float:
    """The gap of a first claim of optimality that did not hold; "almost" is no claim."""
    if len(attempts) == 1 or attempts[0].answer.stop is not Stop.OPTIMAL:
        return float(np.nan)
    gap = attempts[0].certificate.relative_gap
    return float(np.inf if np.isnan(gap) else gap)


def _iterations(attempts: tuple[Attempt, ...]) -> int | None:
    counts = [attempt.answer.iterations for attempt in attempts]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _trace(result: Result) -> Iterator[Step]:
    """The bounds that the backend recorded, then what klopt proves at the end."""
    seconds = 0.0
    iterations = 0
    for attempt in result.attempts:
        # The clock of an answer starts when the backend is called, after the form was built.
        began = seconds + attempt.timings.build
        for step in attempt.answer.history:
            bounds = attempt.route.formulation.to_user(step.lower, step.upper)
            yield Step(iterations + step.iteration, began + step.seconds, *bounds)
        seconds += attempt.timings.total
        iterations += attempt.answer.iterations or 0
    yield Step(iterations, seconds, result.lower, result.upper)


def _arrays(result: Result) -> Iterator[tuple[str, FloatArray]]:
    """The point's primal arrays and the kernel it has learned, where they are small."""
    if result.point is None:
        return
    for name, array in result.point.primal.items():
        if array.size <= MAX_ARRAY_ENTRIES:
            yield name, array
    with suppress(Exception):  # a picture of the kernel is no reason to lose the run
        kernel = result.kernel
        if kernel is not None and kernel.size <= MAX_ARRAY_ENTRIES:
            yield "kernel", kernel
