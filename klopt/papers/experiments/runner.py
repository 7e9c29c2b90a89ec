"""Runs an experiment: one job per data set, split and method, in parallel, stored when finished.

Jobs go through joblib: inside `with joblib.parallel_config(backend="dask")` they run on a Dask
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

from klopt.errors import InvalidSettings
from klopt.papers.experiments.datasets import DataSet, Unavailable, load, noisy_similarity
from klopt.papers.experiments.protocol import Method, Protocol, TableRow
from klopt.papers.experiments.splits import splits_of
from klopt.papers.experiments.store import TrialStore
from klopt.papers.experiments.trial import SplitTrial, TrialJob, run_job

__all__ = ["Experiment", "protocol_named", "run_experiment"]

PROTOCOLS = (
    "000", "000-adult", "000-best", "000-unscaled", "000-unseen", "000-wider", "000-width", "001", "001-f",
    "001-several",    "002", "002-sigma", "002-walk",
    "003", "003-best", "003-features", "003-own", "003-pairs", "003-regression", "003-regression-range",
    "003-tau", "003-training", "004", "004-best", "004-cv", "004-ridge",
)  # fmt: skip
MODULES = {
    "000": "pan2016",
    "001": "kundu2010",
    "002": "xie2017",
    "003": "liu2020",
    "004": "mao2010",
}
NUMBERS = {module: number for number, module in MODULES.items()}


@dataclass(frozen=True)
class Experiment:
    """The trials of a protocol, in the order of its rows, splits and methods."""

    protocol: Protocol
    """With the rows and methods that were run."""
    trials: tuple[SplitTrial, ...]
    splits: int
    seed: int
    missing: tuple[str, ...] = ()
    """Why sets of the protocol were not run."""
    sources: tuple[str, ...] = ()
    """Where the data of each row come from."""
    reused: int = 0

    def __repr__(self) -> str:
        failed = sum(bool(trial.trouble) for trial in self.trials)
        told = f", {failed} failed" if failed else ""
        return f"Experiment {self.protocol.name}: {len(self.trials)} trials of {self.splits} splits{told}"

    def accuracies(self, row: TableRow, method: Method) -> tuple[float, ...]:
        """Return the accuracy of each split, NaN where there is none."""
        mine = [
            trial for trial in self.trials if (trial.row, trial.method) == (row.name, method.name)
        ]
        return tuple(trial.accuracy for trial in sorted(mine, key=lambda trial: trial.split))


def protocol_named(name: str) -> Protocol:
    """Return the protocol of a paper, named by author and year or by its number here.

    >>> protocol_named("mao2010").reference
    'SVM'
    >>> protocol_named("004-ridge") is protocol_named("mao2010-ridge")
    True
    """
    from importlib import import_module

    paper, dash, part = name.partition("-")
    paper = NUMBERS.get(paper, paper)
    if paper + dash + part not in PROTOCOLS:
        known = (MODULES[known[:3]] + known[3:] for known in PROTOCOLS)
        raise InvalidSettings(f"no experiment {name!r}; there are: {', '.join(known)}")
    module = import_module(f"klopt.papers.experiments.{MODULES[paper]}")
    found = getattr(module, part.upper().replace("-", "_") or "PROTOCOL")
    assert isinstance(found, Protocol)
    return found


def run_experiment(
    protocol: Protocol | str,
    *,
    splits: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    store: str | Path = ":memory:",
    resume: bool = False,
    data: str | Path | None = None,
    sets: Sequence[str] = (),
    methods: Sequence[str] = (),
    told: Callable[[SplitTrial, int, int], None] | None = None,
) -> Experiment:
    """Run a protocol on the sets that are here, or on those named, and return all trials.

    Parameters
    ----------
    protocol : Protocol or str
        What to run, or its name.
    splits : int, optional
        Random splits of each set; by default those of the protocol.
    seed : int
        Seed of the splits.
    jobs : int
        Processes that run trials at the same time.
    store : str or Path
        Where finished trials are kept; in memory by default.
    resume : bool
        Whether trials in the store are taken from there. Failed ones are repeated.
    data : str or Path, optional
        A folder with data sets of one's own.
    sets, methods : sequence of str
        Names to run instead of all; sets that the protocol does not have are run by its rule.
    told : callable, optional
        Called with each finished trial, its number and the count of all.
    """
    chosen = protocol_named(protocol) if isinstance(protocol, str) else protocol
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise InvalidSettings(f"{data} is no folder")
    count = chosen.splits if splits is None else splits
    if count < 1:
        raise InvalidSettings(f"splits is {count}; expected at least 1")

    asked = replace(chosen, rows=_rows(chosen, sets), methods=_methods(chosen, methods))
    found, missing = _loaded(asked, folder, bool(sets))
    if others := [row.name for row in chosen.rows if row not in asked.rows]:
        missing = (*missing, f"{', '.join(others)}: not asked for")

    every = list(_jobs(asked, found, count, seed))
    trials, reused = _run_jobs(every, store, resume, jobs, told)
    sources = tuple(
        f"{row.name}: {item.source}, {item.X.shape[0]} x {item.X.shape[1]}" for row, item in found
    )
    as_run = replace(asked, rows=tuple(row for row, _ in found))
    return Experiment(as_run, trials, count, seed, missing, sources, reused)


def _run_jobs(
    every: Sequence[TrialJob],
    store: str | Path,
    resume: bool,
    processes: int,
    told: Callable[[SplitTrial, int, int], None] | None,
) -> tuple[tuple[SplitTrial, ...], int]:
    """The trials of the jobs in order, stored as they finish, and how many were reused."""
    keys = [job.key for job in every]
    with TrialStore(store) as kept:
        done: set[str] = set()
        if resume:
            # A trial without an accuracy failed: it is run again.
            known = kept.trials(set(keys))
            done = {trial.key for trial in known if not isnan(trial.accuracy)}
        left = [job for job in every if job.key not in done]
        for number, trial in enumerate(_finished(left, processes), 1):
            kept.add(trial)
            if told is not None:
                told(trial, number, len(left))
        trials = {trial.key: trial for trial in kept.trials(set(keys))}
    return tuple(trials[key] for key in keys), len(done)


def _rows(protocol: Protocol, sets: Sequence[str]) -> tuple[TableRow, ...]:
    if not sets:
        return protocol.rows
    first = protocol.rows[0]
    own = {
        name: tuple(row for row in protocol.rows if name in (row.data, row.name)) for name in sets
    }
    return tuple(
        row for name in own for row in own[name] or (replace(first, data=name, reported=()),)
    )


def _methods(protocol: Protocol, names: Sequence[str]) -> tuple[Method, ...]:
    known = {method.name: method for method in protocol.methods}
    for name in names:
        if name not in known:
            raise InvalidSettings(
                f"no method {name!r} in experiment {protocol.name}; there are: {', '.join(known)}"
            )
    wanted = {*names, protocol.reference}
    return tuple(method for method in protocol.methods if not names or method.name in wanted)


def _loaded(
    protocol: Protocol, folder: Path | None, strict: bool
) -> tuple[list[tuple[TableRow, DataSet]], tuple[str, ...]]:
    found = []
    missing = []
    for row in protocol.rows:
        try:
            data = load(row.data, folder, protocol.regression)
            if row.noise:
                data = noisy_similarity(data, row.noise, widths=row.widths)
            found.append((row, data))
        except Unavailable as error:
            if strict:
                raise
            missing.append(str(error))
    if not found:
        raise Unavailable("none of the data sets is here:\n" + "\n".join(dict.fromkeys(missing)))
    return found, tuple(dict.fromkeys(missing))


def _jobs(
    protocol: Protocol, found: Iterable[tuple[TableRow, DataSet]], count: int, seed: int
) -> Iterator[TrialJob]:
    for row, data in found:
        kept: dict[str, Any] = {}
        for number, split in enumerate(splits_of(data, row, count, seed)):
            for method in protocol.methods:
                yield TrialJob(protocol, row, method, data, split, number, seed, kept)


def _finished(jobs: Sequence[TrialJob], processes: int) -> Iterator[SplitTrial]:
    """Trials as they finish; leaving early ends those that wait."""
    from joblib import Parallel, delayed

    if not jobs:
        return
    running = Parallel(n_jobs=processes, return_as="generator_unordered")(
        delayed(run_job)(job) for job in jobs
    )
    with closing(running):
        yield from running
