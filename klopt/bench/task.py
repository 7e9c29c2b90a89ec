"""`Task`: one route on one problem, to be run once, and the key by which equal runs are recognised.

The key is the hash of all that determines the outcome: the problem's data, class and version, the
formulation, the backend with its version, source text and state, the settings, the limits and the number of the
repeat. Labels do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy import sparse

from klopt.bench.digest import digest
from klopt.bench.record import Run
from klopt.bench.run_certificates import MAX_SECONDS
from klopt.bench.source_digest import source_digest
from klopt.model.backend import Backend, Settings, Stop
from klopt.model.problem import Problem
from klopt.proof.certificate import Verdict

__all__ = ["Task", "size_of"]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be run: `repeat` counts from 0, `memory_limit` is in bytes, 0 for none."""

    problem: Problem
    label: str
    data: str
    """The hash of the problem, made once for all its tasks."""
    formulation: str
    backend: Backend
    settings: Settings
    memory_limit: int = 0
    repeat: int = 0
    size: int = 0
    """What growth is measured in."""
    certificate: float = MAX_SECONDS
    """Seconds for a certificate of what is proven, after the run; 0 for none. It does not count for the key."""

    @cached_property
    def key(self) -> str:
        """The hash of all that determines the outcome."""
        s = self.settings
        backend = self.backend
        limits = (s.time_limit, s.max_iter, s.threads, s.seed, dict(s.raw), self.memory_limit)
        asked = (s.tol, *limits, self.repeat)
        # Named here, where the files are: a child may find others, or none.
        version = (backend.name, backend.version, self.source)
        return digest(self.data, self.formulation, *version, backend, asked)

    @cached_property
    def source(self) -> str:
        """The digest of the backend's source text."""
        return source_digest(type(self.backend))

    @property
    def route(self) -> str:
        """The backend and the formulation, as a plan names them."""
        return f"{self.backend.name} on {self.formulation}"

    def unproven_run(self, says: Stop, native: str) -> Run:
        """Return the record of a run that proved nothing: what was asked, and what happened."""
        limit = self.settings.time_limit
        return Run(
            key=self.key,
            problem=self.label,
            family=type(self.problem).__name__,
            size=self.size,
            data=self.data,
            sense=self.problem.sense,
            formulation=self.formulation,
            backend=self.backend.name,
            version=self.backend.version,
            tol=self.settings.tol,
            time_limit=inf if limit is None else limit,
            memory_limit=self.memory_limit,
            threads=self.settings.threads,
            seed=self.settings.seed,
            repeat=self.repeat,
            says=says,
            native=native,
            verdict=Verdict.UNPROVEN,
            lower=-inf,
            upper=inf,
            proof="none",
            source=self.source,
        )


def size_of(problem: Problem) -> int:
    """Return the number of points or variables: the extent of the first field that has one.

    >>> from klopt.engine.registry import problem_named
    >>> size_of(problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0]))
    2
    """
    for value in vars(problem).values():
        if isinstance(value, np.ndarray | sparse.csc_array):
            return int(value.shape[0]) if value.shape else 1
        shape = getattr(value, "shape", None) or (0, 0)
        extent = getattr(value, "size", None) or shape[-1]
        if isinstance(extent, int) and extent:
            return extent
    return 0
