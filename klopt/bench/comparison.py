"""Many routes on many problems: who is fast, who is right, do they agree.

Each run is made in a child process under hard limits, judged by klopt's own certificate, and kept
in a store as soon as it is finished. The order of the runs is shuffled by the seed, so that a
machine that slows down slows all alike.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from klopt.arrays import FloatArray
from klopt.bench.environment import Environment, environment
from klopt.bench.record import Run, Trace
from klopt.bench.scores import Score, fastest, scores, verdict_sentence
from klopt.bench.store import Store
from klopt.bench.task import Task
from klopt.bench.task_list import Target, TaskList, ask
from klopt.bench.worker import Outcome
from klopt.bench.worker_pool import run_all
from klopt.errors import InvalidSettings
from klopt.model.backend import Backend, Settings

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The runs of a comparison, with what they were made in and where they are kept.

    `command` is what makes it again, `limits` what every run was held to. `refusals` says which
    backends took no part and why, `reused` holds the keys of the runs that were found in the store.
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
            runs, environments, command = (
                store.runs(),
                store.environments(),
                "\n".join(store.commands()),
            )
            traces = {run.key: store.trace(run.key) for run in runs}
        if not runs:
            raise InvalidSettings(
                f"{path} holds no runs; klopt.compare(..., store={str(path)!r}) puts some there"
            )
        runs = _told_apart(runs)
        made_in = environments.get(runs[-1].machine, environment())
        return cls(
            runs, traces, made_in, command, Path(path), limits_of(runs), environments=environments
        )

    def arrays(self, key: str) -> Mapping[str, FloatArray]:
        """Return the arrays of a run's point by their names, and `kernel` where it has learned a small one."""
        with Store(self.store, read_only=True) as store:
            return store.arrays(key)

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

    def report(self, path: str | Path) -> Path:
        """Write the page, one file that needs nothing else, and return its path."""
        from klopt.bench.report.figures import bounds_of
        from klopt.bench.report.page import write_page

        write_page(self, Path(path), bounds_of(self.runs))
        return Path(path)

    def to_frame(self) -> Any:
        """Return one row a run as a pandas frame."""
        from klopt.bench.export import to_frame

        return to_frame(self.runs)

    def _repr_html_(self) -> str:
        from klopt.bench.report.notebook import comparison_html

        return comparison_html(self)

    def __repr__(self) -> str:
        return f"Comparison of {len(self.runs)} runs: {verdict_sentence(self.runs)}"


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
    command: str = "",
) -> Comparison:
    """Return the comparison of all capable backends, or of those named, on one problem or many.

    A problem is an instance, a pair (label, instance), the name of a class (a random instance for
    each of `sizes`), a file or `module:function`.

    - `backends`: names or instances. None stands for all that can.
    - `tol`: one tolerance or several; `time_limit`: seconds of each run; `memory_limit`: bytes of each run, 0 for none.
    - `repeat`: how often each run is made; `threads`, `seed`: as in `klopt.solve`.
    - `jobs`: how many runs to make at once, or a Dask client or its address.
    - `store`: a file that keeps each finished run; with `resume` those that it holds already are not made again.
    - `formulation`: one by name, or "all" that a backend takes. None is the first that it takes.
    - `progress`: whether a bar is shown on a terminal; `command`: what is noted as the call.

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
    asked = ask(
        problems, backends, formulation=formulation, settings=settings, memory_limit=memory_limit, repeat=repeat,
        sizes=sizes,
    )  # fmt: skip
    folder = tempfile.TemporaryDirectory(prefix="klopt-") if store is None else None
    path = Path(folder.name, "runs.db") if folder is not None else Path(str(store))
    command = command or _call(asked, path)
    with Store(path) as kept:
        kept.note(command)
        done = kept.keys() if resume else frozenset()
        missing = [task for task in asked.tasks if task.key not in done]
        random.Random(seed).shuffle(missing)
        reused = frozenset(task.key for task in asked.tasks) & done
        with _progress(progress, len(asked.tasks), len(reused)) as tell:
            _keep(kept, run(missing), tell)
        return _comparison(kept, asked, command, reused, folder)


def _keep(
    store: Store, outcomes: Generator[Outcome, None, None], tell: Callable[[Run], None]
) -> None:
    """Put each outcome into the store as it comes; whatever goes wrong here ends what is running."""
    with closing(outcomes):
        for outcome in outcomes:
            store.add(outcome)
            tell(outcome.run)


def _comparison(
    store: Store, asked: TaskList, command: str, reused: frozenset[str], kept: object
) -> Comparison:
    runs = tuple(_relabelled(store, task) for task in asked.tasks)
    traces = {run.key: store.trace(run.key) for run in runs}
    return Comparison(
        runs, traces, environment(), command, store.path, limits_of(runs), asked.refusals, reused,
        store.environments(), kept,
    )  # fmt: skip


def _relabelled(store: Store, task: Task) -> Run:
    run = store.run(task.key)
    assert run is not None
    return replace(run, problem=task.label)


def _told_apart(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs with labels that mean one problem each: two seeds, or an edited file, have the same label in a store."""
    data: dict[str, set[str]] = {}
    for run in runs:
        data.setdefault(run.problem, set()).add(run.data)
    return tuple(
        replace(run, problem=f"{run.problem} ({run.data[:8]})")
        if len(data[run.problem]) > 1
        else run
        for run in runs
    )


def limits_of(runs: Sequence[Run]) -> str:
    """Return in words what the runs were held to."""
    seconds = "/".join(f"{limit:g}" for limit in sorted({run.time_limit for run in runs}))
    memory = "/".join(
        f"{limit / 1e9:.3g} GB" for limit in sorted({run.memory_limit for run in runs}) if limit
    )
    threads = "/".join(str(count) for count in sorted({run.threads for run in runs}))
    kept = next((f" ({run.unenforced})" for run in runs if run.unenforced), "")
    return f"{seconds} s, {memory or 'no memory limit'}{kept}, {threads} thread(s), each run in a child process"


def _call(asked: TaskList, path: Path) -> str:
    """The call in Python, as far as it can be written down."""
    labels = list(dict.fromkeys(task.label for task in asked.tasks))
    first = asked.tasks[0]
    tolerances = sorted({task.settings.tol for task in asked.tasks}, reverse=True)
    return (
        f"klopt.compare({labels!r}, {sorted({task.backend.name for task in asked.tasks})!r}, "
        f"tol={tolerances!r}, time_limit={first.settings.time_limit!r}, repeat={1 + asked.tasks[-1].repeat}, "
        f"threads={first.settings.threads}, seed={first.settings.seed}, store={path.name!r})"
    )


def _runner(jobs: Any) -> Callable[[Sequence[Task]], Generator[Outcome, None, None]]:
    """What runs the tasks: seats on this machine, or a cluster."""
    if isinstance(jobs, int) and not isinstance(jobs, bool):
        if jobs < 1:
            raise InvalidSettings(
                f"jobs is {jobs}; expected a whole number of at least 1, or a Dask client"
            )
        return lambda tasks: run_all(tasks, jobs)
    from klopt.bench.dask_cluster import connected, run_on

    client = connected(jobs)
    return lambda tasks: run_on(client, tasks, close=client is not jobs)


@contextmanager
def _progress(wanted: bool, total: int, done: int) -> Iterator[Callable[[Run], None]]:
    """A bar on standard error that names the run just finished; nothing where nobody watches."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield lambda run: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        number = bar.add_task("", total=total, completed=done)

        def tell(run: Run) -> None:
            text = f"{run.problem}  {run.backend} on {run.formulation}  {run.verdict.name}"
            bar.update(number, advance=1, description=text)

        yield tell
