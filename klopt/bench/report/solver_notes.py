"""What a solver is, in a few words: its library and version, or that it is klopt's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from klopt.bench.record import Run
from klopt.engine.registry import backends

__all__ = ["SolverNote", "solver_notes"]


@dataclass(frozen=True)
class SolverNote:
    """Where a solver comes from, and what it is for."""

    origin: str
    words: str


def solver_notes(runs: Sequence[Run]) -> Mapping[str, SolverNote]:
    """Return a note for each solver of a comparison; one that is not installed here has no words."""
    known = {backend.name: backend for backend in backends()}
    notes = {}
    for run in runs:
        backend = known.get(run.backend.partition(":")[0])
        if backend is None:
            notes[run.backend] = SolverNote(run.version, "")
            continue
        words = (type(backend).__doc__ or "").partition("\n")[0]
        origin = "klopt’s own"
        if backend.library is not None:
            origin = f"{backend.library} {run.version}".rstrip()
        notes[run.backend] = SolverNote(origin, words)
    return notes
