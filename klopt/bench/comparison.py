"""`compare`: many routes on many problems; who is fast, who is right, do they agree.

Each run is made in a child process under hard limits, judged by klopt's own certificate, and kept
in a store as soon as it is finished. The order of the runs is shuffled by the seed, so that a
computer that slows down slows all backends alike.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from klopt.arrays import FloatArray
from klopt.bench.database import InvalidStore, damaged
from klopt.bench.environment import Environment, environment
from klopt.bench.record import Run, Trace, printable
from klopt.bench.run_certificates import MAX_SECONDS, RunCertificate, unpacked
from klopt.bench.scores import Score, scores
from klopt.bench.shared_work import SharedWork
from klopt.bench.store import Store
from klopt.bench.summary import verdict_sentence
from klopt.bench.task import Task
from klopt.bench.task_list import Target, TaskList, task_list
from klopt.bench.trials import fastest
from klopt.bench.worker import FinishedRun
from klopt.bench.worker_pool import run_all
from klopt.engine.progress import counting, waiting
from klopt.engine.words import counted
from klopt.errors import InvalidSettings
from klopt.model.backend import Backend, Settings

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The runs of a comparison, the environment they were made in, and where they are kept.

    `command` repeats it, `limits` says in words what every run was limited to. `refusals` says
    which backends took no part and why, `reused` holds the keys of the runs that the store had.
    """

    runs: tuple[Run, ...]
    traces: Mapping[str, Trace]
    environment: Environment
    command: str
    store: Path
    limits: str
    refusals: tuple[str, ...] = ()
    reused: frozenset[str] = frozenset()
    environments: Mapping[str, Environment] = field(default_factory=dict)
    kept: object = None
    """What keeps the store on disk where the caller named none."""

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Return all runs of a store as one comparison."""
        with Store(path, read_only=True) as store:
            runs = store.runs()
            environments = store.environments()
            command = "\n".join(store.commands())
            traces = {run.key: store.trace(run.key) for run in runs}
        if not runs:
            raise InvalidSettings(
                f"{path} holds no runs; klopt.compare(..., store={str(path)!r}) puts some there"
            )
        runs = _distinctly_labelled(runs)
        return cls(
            runs=runs,
            traces=traces,
            environment=environments.get(runs[-1].machine, environment()),
            command=command,
            store=Path(path),
            limits=limits_of(runs),
            environments=environments,
        )

    def arrays(self, key: str) -> Mapping[str, FloatArray]:
        """Return the arrays of a run's point by name, and its `kernel` where that is small."""
        with Store(self.store, read_only=True) as store:
            return store.arrays(key)

    def certificate(self, key: str) -> str:
        """Return the certificate of a run as `klopt check` reads it; empty where it has none."""
        with Store(self.store, read_only=True) as store:
            content = store.certificate(key).content
            try:
                return unpacked(content) if content else ""
            except ValueError as error:
                where = f"the certificate of run {key}: {error}"
                raise InvalidStore(damaged(store.path, where)) from error

    def certificates(self) -> Mapping[str, RunCertificate]:
        """Return by key the certificates of certified runs, compressed, or why there is none."""
        proven = [run.key for run in self.runs if run.verdict.conclusive]
        with Store(self.store, read_only=True) as store:
            return {key: store.certificate(key) for key in proven}

    @property
    def best(self) -> Mapping[str, Run]:
        """The fastest certified run of each problem; none where nothing is certified."""
        return fastest(self.runs)

    @property
    def scores(self) -> tuple[Score, ...]:
        """What the runs say of each backend."""
        return scores(self.runs)

    def table(self) -> str:
        """Return the runs and what they say together as text."""
        from klopt.bench.table import as_text

        return as_text(self)

    def figure(self, name: str, path: str | Path) -> Path:
        """Write one chart of the page as .svg, .png or .pdf and return its path."""
        from klopt.bench.report.files import save_figure

        save_figure(self, name, path)
        return Path(path)

    def report(self, path: str | Path, *, refresh: int = 0) -> Path:
        """Write the page, one file that needs nothing else, and return its path.

        With `refresh` a browser loads it again after so many seconds: for a page that is rewritten.
        """
        from klopt.bench.report.convergence_chart import rate_bounds
        from klopt.bench.report.page import write_page

        target = Path(path)
        if not refresh:
            write_page(self, target, rate_bounds(self.runs))
            return target
        # Put in place at once: a browser may be reading it.
        part = target.with_name(f"{target.name}.part")
        write_page(self, part, rate_bounds(self.runs))
        text = part.read_text(encoding="utf-8")
        again = f'<head><meta http-equiv="refresh" content="{refresh}">'
        part.write_text(text.replace("<head>", again, 1), encoding="utf-8")
        return part.replace(target)

    def to_frame(self) -> Any:
        """Return a pandas frame with one row for each run."""
        from klopt.bench.export import to_frame

        return to_frame(self.runs)

    def _repr_html_(self) -> str:
        from klopt.bench.report.notebook import comparison_html

        return comparison_html(self)

    def __repr__(self) -> str:
        return f"Comparison of {len(self.runs)} runs: {printable(verdict_sentence(self.runs))}"


def compare(
    problems: Target | Iterable[Target],
    backends: str | Backend | Iterable[str | Backend] | None = None,
    *,
    tol: float | Sequence[float] = 1e-6,
    time_limit: float = 60.0,
    repeat: int = 3,
    jobs: Any = 1,
    store: str | Path | None = None,
    progress: bool = True,
    formulation: str | None = None,
    sizes: Sequence[int] = (),
    memory_limit: int = 0,
    threads: int = 1,
    seed: int = 0,
    resume: bool = True,
    certificates: bool | float = True,
    command: str = "",
    watch: Callable[[Callable[[], Comparison]], None] | None = None,
) -> Comparison:
    """Return the comparison of all capable backends, or of those named, on one problem or many.

    Parameters
    ----------
    problems
        One problem or several: an instance, a `cvxpy.Problem`, a pair (label, instance), the name of a class (a random
        instance for each of `sizes`), a file, or `module:function`.
    backends
        Names or instances; None for all that can take the problem.
    tol
        One tolerance or several.
    time_limit, memory_limit
        Seconds and bytes of each run; a memory limit of 0 is none.
    repeat
        How often each run is made.
    threads, seed
        As in `klopt.solve`.
    jobs
        How many runs to make at once, or a Dask client or its address.
    store
        A file that keeps each finished run.
    resume
        Whether runs that the store holds already are not made again.
    formulation
        One by name, or "all" that a backend takes; None for the first that it takes.
    sizes
        Those of random instances.
    progress
        Whether a bar is shown on a terminal.
    certificates
        Whether the store keeps a certificate of each certified run, which anybody can check. It is
        written after the run, whose times it does not change; a number is the seconds that one may
        take.
    command
        What is noted as the call.
    watch
        Called after each finished run with a function that returns the comparison so far.

    >>> from klopt.engine.registry import problem_named
    >>> lp = problem_named("LP")(c=[1.0, 1.0], A_ub=[[-1.0, -2.0]], b_ub=[-1.0])
    >>> comparison = compare(lp, ["highs"], repeat=1, time_limit=10)
    >>> [run.verdict.name for run in comparison.runs]
    ['OPTIMAL']
    """
    tolerances = [tol] if isinstance(tol, int | float) else list(tol)
    settings = [Settings(each, time_limit, None, threads, seed) for each in tolerances]
    if not settings:
        raise InvalidSettings("tol is an empty list; give one tolerance at least")
    run = _runner(jobs)
    with waiting("reading the problems", wanted=progress):
        tasks = task_list(
            problems,
            backends,
            formulation=formulation,
            settings=settings,
            memory_limit=memory_limit,
            repeat=repeat,
            sizes=sizes,
        )

    folder = None
    # A store of its own lives as long as the comparison, which holds the folder (`kept`).
    if store is None:
        folder = tempfile.TemporaryDirectory(prefix="klopt-")
        store = Path(folder.name, "runs.db")
    path = Path(store)
    command = command or _call(tasks, path)
    with Store(path) as kept:
        kept.note(command)
        before = kept.checksums()
        reused = _reusable(kept, tasks) if resume else frozenset()
        missing = [
            replace(task, certificate=_certificate_seconds(certificates))
            for task in tasks.tasks
            if task.key not in reused
        ]
        # In order, a computer that slows down would slow the last backends only.
        random.Random(seed).shuffle(missing)
        with (
            counting(len(tasks.tasks), wanted=progress, done=len(reused)) as count,
            closing(SharedWork(kept, missing, before)) as work,
        ):

            def so_far() -> Comparison:
                kept_keys = kept.keys()
                done = tuple(task for task in tasks.tasks if task.key in kept_keys)
                return _comparison(kept, replace(tasks, tasks=done), command, reused, folder)

            def tell(each: Run) -> None:
                count.advance(f"{each.problem}: {each.backend} {each.verdict.name}")
                if watch is not None:
                    watch(so_far)

            _keep(work, run(work), tell)
            from_others = frozenset(each.key for each in work.from_others)
        return _comparison(kept, tasks, command, reused | from_others, folder)


def _certificate_seconds(certificates: bool | float) -> float:
    """The seconds that writing one certificate may take; 0 for none."""
    return MAX_SECONDS * certificates if isinstance(certificates, bool) else float(certificates)


def _reusable(store: Store, tasks: TaskList) -> frozenset[str]:
    """The keys of the tasks that are done; a run whose child was killed from outside is not."""
    kept = store.keys()
    found = (store.run(task.key) for task in tasks.tasks if task.key in kept)
    return frozenset(run.key for run in found if run is not None and not run.was_killed)


def _keep(
    work: SharedWork, finished: Generator[FinishedRun, None, None], tell: Callable[[Run], None]
) -> None:
    """Put each run into the store as it is finished; an error here ends those in flight."""
    told = 0
    with closing(finished), closing(work):
        for each in finished:
            if work.settle(each):
                tell(each.run)
            for run in work.from_others[told:]:
                tell(run)
                told += 1


def _comparison(
    store: Store, tasks: TaskList, command: str, reused: frozenset[str], kept: object
) -> Comparison:
    runs = tuple(_relabelled(store, task) for task in tasks.tasks)
    return Comparison(
        runs=runs,
        traces={run.key: store.trace(run.key) for run in runs},
        environment=environment(),
        command=command,
        store=store.path,
        limits=limits_of(runs),
        refusals=tasks.refusals,
        reused=reused,
        environments=store.environments(),
        kept=kept,
    )


def _relabelled(store: Store, task: Task) -> Run:
    run = store.run(task.key)
    assert run is not None
    return replace(run, problem=task.label)


def _distinctly_labelled(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs with labels that mean one problem each, and names that mean one version each.

    In a store, the instances of two seeds or of an edited file have the same label, and a backend
    that was updated or edited the same name.
    """
    data: dict[str, set[str]] = {}
    versions: dict[str, set[str]] = {}
    sources: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        data.setdefault(run.problem, set()).add(run.data)
        versions.setdefault(run.backend, set()).add(run.version)
        sources.setdefault((run.backend, run.version), set()).add(run.source)

    def labelled(run: Run) -> Run:
        which = [run.version] if len(versions[run.backend]) > 1 else []
        if len(sources[run.backend, run.version]) > 1:
            which.append(run.source[:8])
        backend = f"{run.backend} ({', '.join(which)})" if which else run.backend
        many = len(data[run.problem]) > 1
        problem = f"{run.problem} ({run.data[:8]})" if many else run.problem
        return replace(run, problem=problem, backend=backend)

    return tuple(map(labelled, runs))


def limits_of(runs: Sequence[Run]) -> str:
    """Return in words what the runs were limited to."""
    seconds = "/".join(f"{limit:g}" for limit in sorted({run.time_limit for run in runs}))
    limits = sorted({run.memory_limit for run in runs if run.memory_limit})
    memory = "/".join(f"{limit / 1e9:.3g} GB" for limit in limits) or "no memory limit"
    unenforced = next((f" ({run.unenforced})" for run in runs if run.unenforced), "")
    threads = " or ".join(counted(each, "thread") for each in sorted({run.threads for run in runs}))
    return f"{seconds} s, {memory}{unenforced}, {threads}, each run in a child process"


def _call(tasks: TaskList, path: Path) -> str:
    """The call in Python, as far as it can be written down."""
    labels = list(dict.fromkeys(task.label for task in tasks.tasks))
    names = sorted({task.backend.name for task in tasks.tasks})
    tolerances = sorted({task.settings.tol for task in tasks.tasks}, reverse=True)
    settings = tasks.tasks[0].settings
    return (
        f"klopt.compare({labels!r}, {names!r}, tol={tolerances!r}, "
        f"time_limit={settings.time_limit!r}, repeat={1 + tasks.tasks[-1].repeat}, "
        f"threads={settings.threads}, seed={settings.seed}, store={path.name!r})"
    )


def _runner(jobs: Any) -> Callable[[SharedWork], Generator[FinishedRun, None, None]]:
    """What runs the tasks: child processes here, or the workers of a cluster."""
    # True is an int in Python, but no number of jobs.
    if isinstance(jobs, int) and not isinstance(jobs, bool):
        if jobs < 1:
            raise InvalidSettings(
                f"jobs is {jobs}; expected a whole number of at least 1, or a Dask client"
            )
        return lambda work: run_all(work, jobs)
    from klopt.bench.dask_cluster import connected, run_on

    client = connected(jobs)

    # A cluster is given all that is free at once, and what others did not finish afterwards.
    def rounds(work: SharedWork) -> Generator[FinishedRun, None, None]:
        try:
            while tasks := work.all_free():
                yield from run_on(client, tasks)
        finally:
            if client is not jobs:
                client.close()

    return rounds
