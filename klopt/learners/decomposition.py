"""A large problem as many small ones: clusters of points, independent solutions, their concatenation, what it proves.

Points are divided into clusters V_1 .. V_v, by k-means or as given; each cluster is a problem of
its own, which a factory makes from its points, where it is solved: points travel, kernel matrices
do not. The solutions put end to end solve the problem whose kernel is zero between clusters. For a
data-adaptive model without bias and tau its F is 11' + Gamma inside the clusters and *one*
between them (Lemma 5 of [1] prints zero, which costs eta for each entry), and with h the value of
the whole problem, h* its optimum, H the sum of the clusters' values, C the box

    - B  <=  h* - H  <=  C^2/2 sum |K_ij|                                     sums over pairs of different clusters
    0  <=  h* - h(concatenation)  <=  B = C^2/2 sum |K_ij| + C^4 / (16 eta) sum K_ij^2.

Left: h* >= h(concatenation) = H - sum a_i a_j K_ij / 2 - sum (a_i a_j K_ij)^2 / (16 eta). Theorem 6
of [1] has a smaller right hand side, which is not true. In regression, where a_i has either sign,
the first line holds as it is, the second with 2B. Both need one eta for all clusters: a
`KernelFactory` is fixed on all points first. A start for the whole problem is what remains of a
decomposition where the bounds are wide.

[1] Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, positive, vector
from klopt.engine.pipeline import solve
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import whole_number
from klopt.model.problem import Bracket, Point, Problem
from klopt.proof.certificate import Verdict

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "Decomposition",
    "Factory",
    "KernelFactory",
    "OffBlocks",
    "Part",
    "decompose",
    "kmeans",
    "off_blocks",
]

Factory: TypeAlias = Callable[[FloatArray, FloatArray], Problem | None]
"""Makes the problem of some points and their labels; None where zero is the only solution. It must be picklable."""
Kernel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
Indices: TypeAlias = npt.NDArray[np.intp]

POINTS_AT_ONCE = 1024
"""Points whose kernels are computed at a time."""


@runtime_checkable
class KernelFactory(Protocol):
    """A factory that knows what the clusters share: `AdaptiveKernel.on_points` makes one."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def C(self) -> float: ...
    @property
    def eta(self) -> float | None: ...
    @property
    def tau(self) -> float: ...
    @property
    def bias(self) -> bool: ...

    def __call__(self, X: FloatArray, y: FloatArray, /) -> Problem | None: ...

    def fix(self, X: FloatArray, y: FloatArray) -> Self:
        """Return the same with the eta of all points, refusing their targets where they are none."""
        ...

    def zero(self, size: int) -> tuple[float, dict[str, FloatArray]]:
        """Return the value and the arrays of so many points whose only solution is zero."""
        ...


@dataclass(frozen=True, eq=False)
class Part:
    """The solution of one cluster: its points, its value and bounds, its arrays."""

    points: Indices
    lower: float
    upper: float
    verdict: Verdict
    primal: dict[str, FloatArray]


@dataclass(frozen=True)
class OffBlocks:
    """The kernel between clusters: the sum of |K_ij| and that of K_ij^2 over ordered pairs of different clusters."""

    absolute: float
    squares: float

    def bounds(self, C: float, eta: float) -> tuple[float, float]:
        """Return (least, most) of h* - H, the formulas above."""
        C = positive("C", C)
        eta = positive("eta", eta)
        most = C * C / 2 * self.absolute
        return -most - C**4 / (16 * eta) * self.squares, most


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The parts, the concatenated point, and what was found about the whole problem where it was given."""

    parts: tuple[Part, ...]
    point: Point
    whole: Bracket | None = None
    """The bounds that the concatenation proves about the whole problem; None also where no part has arrays."""
    polished: Result | None = None
    """The whole problem solved from there."""
    bounds: tuple[float, float] | None = None
    """The least and the most of h* - H, where they were asked for."""

    @property
    def lower(self) -> float:
        """A proven lower bound of the sum of the parts' optima."""
        return float(sum(part.lower for part in self.parts))

    @property
    def upper(self) -> float:
        """A proven upper bound of it."""
        return float(sum(part.upper for part in self.parts))

    @property
    def certified(self) -> bool:
        """Whether every part is solved as asked for."""
        return all(part.verdict is Verdict.OPTIMAL for part in self.parts)

    def completed(self, blocks: Iterable[FloatArray]) -> FloatArray:
        """Return the matrix with these blocks on the clusters, in the order of `parts`, and ones between them."""
        F = np.ones((sum(part.points.size for part in self.parts),) * 2)
        for part, block in zip(self.parts, blocks, strict=True):
            F[np.ix_(part.points, part.points)] = block
        return F


def decompose(
    factory: Factory,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: int | Sequence[npt.ArrayLike] | npt.ArrayLike = 10,
    *,
    tol: float = 1e-6,
    jobs: int | str | Client = 1,
    retries: int = 2,
    seed: int = 0,
    whole: Problem | None = None,
    polish: bool = False,
    bounds: bool = False,
) -> Decomposition:
    """Solve each cluster by itself and put the solutions end to end.

    `clusters` is their number (k-means), a label for each point, or a list of index arrays. `jobs`
    is a number of processes, a Dask client or its address; a cluster whose process dies is tried
    again `retries` times. `whole`, the problem of all points, is bracketed at the concatenation
    and, with `polish`, solved from there. `bounds` has the bounds of h* - H reported, for which all
    n^2 entries of the kernel are computed, a block at a time.
    """
    points = matrix("X", X)
    targets = vector("y", y)
    if targets.size != len(points):
        raise InvalidProblem(
            f"y has {targets.size} entries for {len(points)} points; expected one each"
        )
    if polish and whole is None:
        raise InvalidSettings("polish needs the whole problem; pass whole=")
    whole_number("retries", retries, 0)
    groups = _groups(clusters, points, seed)
    if isinstance(factory, KernelFactory):
        factory = factory.fix(points, targets)
    between = _bounds(factory, points, groups) if bounds else None
    tasks = [_Task(factory, points[rows], targets[rows], tol) for rows in groups]
    solved = _run(tasks, jobs, retries)
    parts = tuple(Part(rows, *found) for rows, found in zip(groups, solved, strict=True))
    point = _concatenated(parts, len(points))
    start = point if point.primal else None
    bracket = None if whole is None or start is None else whole.bracket(start)
    polished = None if whole is None or not polish else solve(whole, tol=tol, start=start)
    return Decomposition(parts, point, bracket, polished, between)


def kmeans(X: npt.ArrayLike, count: int, seed: int = 0) -> Indices:
    """Return a cluster for each point, the same on every run of a seed; centres are found on a sample."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    points = matrix("X", X)
    if isinstance(count, bool) or not 0 < count <= len(points) or int(count) != count:
        raise InvalidProblem(
            f"clusters is {count!r}; expected a whole number from 1 to {len(points)}"
        )
    with threadpool_limits(limits=1):
        kmeans = MiniBatchKMeans(
            int(count), n_init=1, batch_size=4096, max_iter=20, random_state=seed
        )
        return np.asarray(kmeans.fit_predict(points), dtype=np.intp)


def off_blocks(kernel: Kernel, X: npt.ArrayLike, labels: npt.ArrayLike) -> OffBlocks:
    """Return the sums over the kernel between clusters, all n^2 entries of it, a block at a time."""
    points = matrix("X", X)
    which = np.asarray(labels)
    absolute = squares = 0.0
    for start in range(0, len(points), POINTS_AT_ONCE):
        rows = slice(start, start + POINTS_AT_ONCE)
        K = np.asarray(kernel(points[rows], points), dtype=float)
        K[which[rows, None] == which] = 0.0
        absolute += float(np.abs(K).sum())
        squares += float(np.vdot(K, K))
    return OffBlocks(absolute, squares)


def _bounds(factory: Factory, points: FloatArray, groups: list[Indices]) -> tuple[float, float]:
    """(least, most) of h* - H from the factory's kernel, C and eta, where these are all that counts."""
    if not isinstance(factory, KernelFactory) or factory.eta is None:
        raise InvalidSettings(
            f"bounds need the kernel, C and eta of the factory, which {factory!r} does not tell; "
            "make it by on_points of the problem, or leave bounds out"
        )
    if factory.bias or factory.tau:
        raise InvalidSettings(
            f"bounds hold for models without bias and tau only; the factory has bias={factory.bias} and "
            f"tau={factory.tau:g}; make it with bias=False and tau=0, or leave bounds out"
        )
    labels = np.empty(len(points), dtype=np.intp)
    for label, rows in enumerate(groups):
        labels[rows] = label
    return off_blocks(factory.kernel, points, labels).bounds(factory.C, factory.eta)


Found: TypeAlias = tuple[float, float, Verdict, dict[str, FloatArray]]


@dataclass(frozen=True, eq=False)
class _Task:
    factory: Factory
    X: FloatArray
    y: FloatArray
    tol: float

    def __call__(self) -> Found:
        problem = self.factory(self.X, self.y) if len(self.X) else None
        if problem is None:
            value, arrays = (
                self.factory.zero(len(self.X))
                if isinstance(self.factory, KernelFactory)
                else (0.0, {})
            )
            return value, value, Verdict.OPTIMAL, arrays
        result = solve(problem, tol=self.tol)
        primal = {} if result.point is None else dict(result.point.primal)
        return result.lower, result.upper, result.verdict, primal


def _call(task: _Task) -> Found:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return task()


def _call_there(task: _Task) -> Found:
    from klopt.engine.allocation import freed_memory_kept

    with freed_memory_kept():
        return _call(task)


def _run(tasks: list[_Task], jobs: Any, retries: int) -> list[Found]:
    if isinstance(jobs, bool) or not isinstance(jobs, int):
        return _on_dask(tasks, jobs, retries)
    if jobs < 1:
        raise InvalidSettings(
            f"jobs is {jobs}; expected a number of processes, 1 or more, or a Dask client"
        )
    return (
        [_call(task) for task in tasks]
        if jobs == 1 or len(tasks) < 2
        else _on_processes(tasks, jobs, retries)
    )


def _on_processes(tasks: list[_Task], jobs: int, retries: int) -> list[Found]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    done: dict[int, Found] = {}
    for attempt in range(retries + 1):
        left = [i for i in _large_first(tasks) if i not in done]
        try:
            found = Parallel(n_jobs=jobs, return_as="generator")(
                delayed(_call)(tasks[i]) for i in left
            )
            for i, answer in zip(left, found, strict=True):
                done[i] = answer
            break
        except BrokenProcessPool:  # a process was killed: what is done is kept
            if attempt == retries:
                raise
    return [done[i] for i in range(len(tasks))]


def _on_dask(tasks: list[_Task], cluster: Any, retries: int) -> list[Found]:
    from klopt.bench.dask_cluster import connected

    client = connected(cluster)
    order = _large_first(tasks)
    futures = client.map(_call_there, [tasks[i] for i in order], retries=retries, pure=False)
    found = dict(zip(order, client.gather(futures), strict=True))
    return [found[i] for i in range(len(tasks))]


def _large_first(tasks: list[_Task]) -> list[int]:
    """The order in which no large cluster is left to wait for at the end."""
    return sorted(range(len(tasks)), key=lambda i: -len(tasks[i].X))


def _indices(rows: npt.ArrayLike) -> Indices:
    given = np.asarray(rows)
    odd = given % 1 != 0 if given.dtype.kind in "iuf" else np.ones(given.shape, dtype=bool)
    if odd.any():
        raise InvalidProblem(
            f"clusters has the point {given[odd].tolist()[0]!r}; expected indices, whole numbers"
        )
    return given.astype(np.intp)


def _groups(clusters: Any, points: FloatArray, seed: int) -> list[Indices]:
    n = len(points)
    if isinstance(clusters, int | float | np.number):
        labels = kmeans(points, clusters, seed)  # type: ignore[arg-type]  # it refuses a fraction
        return [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
    listed = isinstance(clusters, list | tuple) and all(np.ndim(rows) == 1 for rows in clusters)
    if not listed:
        labels = np.asarray(clusters)
        if labels.shape != (n,):
            raise InvalidProblem(
                f"clusters has shape {labels.shape}; expected a label for each of {n} points"
            )
        unknown = np.flatnonzero(labels != labels)
        if unknown.size:
            raise InvalidProblem(
                f"clusters[{unknown[0]}] is nan; expected a label for each of {n} points"
            )
        return [np.flatnonzero(labels == c) for c in np.unique(labels)]
    groups = [_indices(rows) for rows in clusters]
    joined = np.concatenate([*groups, np.zeros(0, dtype=np.intp)])
    outside = joined[(joined < 0) | (joined >= n)]
    if outside.size:
        raise InvalidProblem(
            f"clusters has the point {outside[0]}; expected indices from 0 to {n - 1}"
        )
    counts = np.bincount(joined, minlength=n)
    if (counts != 1).any():
        bad = int(np.flatnonzero(counts != 1)[0])
        raise InvalidProblem(
            f"clusters do not partition the points: point {bad} is in {counts[bad]} of them"
        )
    return groups


def _concatenated(parts: tuple[Part, ...], n: int) -> Point:
    """The arrays that have an entry a point, put end to end; a cluster without one has zeros."""
    names = {
        name
        for part in parts
        for name, value in part.primal.items()
        if value.shape == (part.points.size,)
    }
    arrays = {name: np.zeros(n) for name in sorted(names)}
    for part in parts:
        for name, array in arrays.items():
            if name in part.primal and part.primal[name].shape == part.points.shape:
                array[part.points] = part.primal[name]
    return Point(arrays)
