"""Decomposition by clusters: independent problems, their concatenated solution, what it proves.

Points are divided into clusters V_1 .. V_v, by k-means or as given; each cluster is a problem of
its own, which a factory makes from its points in the process that solves it: points are sent there,
kernel matrices are not. The concatenated solutions solve the problem whose kernel is zero between
clusters. For a data-adaptive model without bias and tau its F is 11' + Gamma inside the clusters
and *one* between them (Lemma 5 of Liu et al. (2020) prints zero, which costs eta for each entry),
and with h the value of the whole problem, h* its optimum, H the sum of the clusters' values, C the
box, and sums over pairs of different clusters

    - B  <=  h* - H  <=  C^2/2 sum |K_ij|
    0  <=  h* - h(concatenation)  <=  B = C^2/2 sum |K_ij| + C^4 / (16 eta) sum K_ij^2.

Left: h* >= h(concatenation) = H - sum a_i a_j K_ij / 2 - sum (a_i a_j K_ij)^2 / (16 eta). Theorem 6
of Liu et al. has a smaller right hand side, which is not true. In regression, where a_i has either
sign, the first line holds as it is, the second with 2B. Both need one eta for all clusters: a
`KernelFactory` is fixed on all points first. Where the bounds are loose, the concatenation still is
a start for the whole problem.

Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, matrix, positive, vector
from klopt.engine.pipeline import solve
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.model.backend import whole_number
from klopt.model.problem import Bracket, Point, Problem
from klopt.proof.certificate import Verdict
from klopt.proof.enclosure import UNIT_ROUNDOFF

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
    "kmeans_centres",
    "off_blocks",
]

Factory: TypeAlias = Callable[[FloatArray, FloatArray], Problem | None]
"""Makes the problem of points and labels, None where the solution is zero; must be picklable."""
Kernel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
Indices: TypeAlias = npt.NDArray[np.intp]

ROUNDED_UP = 1 + 2.0**-20
"""Covers the rounding of sums of up to 2^30 terms, none of them negative."""
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
        """Return the same factory with the eta of all points, after a check of their targets."""
        ...

    def zero(self, size: int) -> tuple[float, dict[str, FloatArray]]:
        """Return the value and the arrays of `size` points whose only solution is zero."""
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
    """Sums of |K_ij| and K_ij^2 over ordered pairs of points in different clusters."""

    absolute: float
    squares: float

    def bounds(self, C: float, eta: float) -> tuple[float, float]:
        """Return lower and upper bound of h* - H: -B and C^2/2 sum |K_ij|."""
        C = positive("C", C)
        eta = positive("eta", eta)
        upper = ROUNDED_UP * (C * C / 2 * self.absolute)
        return -(upper + ROUNDED_UP * (C**4 / (16 * eta) * self.squares)) * ROUNDED_UP, upper


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The solutions of the clusters, their concatenation, and its bounds of the whole problem."""

    parts: tuple[Part, ...]
    point: Point
    whole: Bracket | None = None
    """Bounds of the whole problem at the concatenation; None without a problem or arrays."""
    polished: Result | None = None
    """The whole problem solved from there."""
    bounds: tuple[float, float] | None = None
    """Lower and upper bound of h* - H, where they were requested."""

    @property
    def lower(self) -> float:
        """A proven lower bound of the sum of the parts' optima."""
        return _rounded_sum((part.lower for part in self.parts), -math.inf)

    @property
    def upper(self) -> float:
        """A proven upper bound of it."""
        return _rounded_sum((part.upper for part in self.parts), math.inf)

    @property
    def certified(self) -> bool:
        """Whether every part is solved to its tolerance."""
        return all(part.verdict is Verdict.OPTIMAL for part in self.parts)

    def completed(self, blocks: Iterable[FloatArray]) -> FloatArray:
        """Return the matrix with these blocks, one for each of `parts`, and ones elsewhere."""
        F = np.ones((sum(part.points.size for part in self.parts),) * 2)
        for part, block in zip(self.parts, blocks, strict=True):
            F[np.ix_(part.points, part.points)] = block
        return F


def _rounded_sum(terms: Iterable[float], direction: float) -> float:
    """The sum, rounded in a direction; `fsum` is 0 only where the sum is."""
    total = math.fsum(terms)
    return math.nextafter(total, direction) if total else total


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
    """Solve each cluster by itself and concatenate the solutions.

    Parameters
    ----------
    factory
        Makes the problem of a cluster from its points and targets.
    X, y
        All points, one in each row, and their targets.
    clusters
        The number of clusters (k-means), a label for each point, or a list of index arrays.
    tol
        The relative tolerance of each solve.
    jobs
        A number of processes, a Dask client or its address.
    retries
        How often a cluster whose process died is tried again.
    seed
        Of k-means.
    whole
        The problem of all points, bracketed at the concatenation.
    polish
        Solve `whole` from there.
    bounds
        Report the bounds of h* - H, for which all n^2 entries of the kernel are computed, a block
        at a time.
    """
    points, targets = _checked_data(X, y)
    if polish and whole is None:
        raise InvalidSettings("polish needs the whole problem; pass whole=")
    whole_number("retries", retries, 0)
    groups = _groups(clusters, points, seed)
    # One eta for all clusters, without which neither bound holds.
    if isinstance(factory, KernelFactory):
        factory = factory.fix(points, targets)
    between = _bounds(factory, points, groups) if bounds else None

    tasks = [_Task(factory, points[rows], targets[rows], tol) for rows in groups]
    solved = _run(tasks, jobs, retries)
    parts = tuple(Part(rows, *found) for rows, found in zip(groups, solved, strict=True))
    point = _concatenated(parts, len(points))
    if whole is None:
        return Decomposition(parts, point, bounds=between)

    # Where no cluster gave arrays there is nothing to start from.
    start = point if point.primal else None
    bracket = None if start is None else whole.bracket(start)
    polished = solve(whole, tol=tol, start=start) if polish else None
    return Decomposition(parts, point, bracket, polished, between)


def _checked_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    points = matrix("X", X)
    targets = vector("y", y)
    if targets.size != len(points):
        raise InvalidProblem(
            f"y has {targets.size} entries for {len(points)} points; expected one each"
        )
    return points, targets


def kmeans(X: npt.ArrayLike, count: int, seed: int = 0) -> Indices:
    """Return a cluster for each point by mini-batch k-means, reproducible for a seed."""
    return np.asarray(_fitted_kmeans(matrix("X", X), count, seed).labels_, dtype=np.intp)


def kmeans_centres(X: Any, count: int, seed: int = 0) -> FloatArray:
    """Return the centres of the clusters of `kmeans`; X may be sparse.

    >>> kmeans_centres([[2.0, 5.0], [2.0, 5.0]], 1)
    array([[2., 5.]])
    """
    points = X if sparse.issparse(X) else matrix("X", X)
    return np.asarray(_fitted_kmeans(points, count, seed).cluster_centers_, dtype=float)


def _fitted_kmeans(points: Any, count: int, seed: int) -> Any:
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    size = points.shape[0]
    if isinstance(count, bool) or not 0 < count <= size or int(count) != count:
        raise InvalidProblem(f"clusters is {count!r}; expected a whole number from 1 to {size}")
    # One thread: several add up in an order that changes from run to run.
    with threadpool_limits(limits=1):
        kmeans = MiniBatchKMeans(
            int(count), n_init=1, batch_size=4096, max_iter=20, random_state=seed
        )
        return kmeans.fit(points)


def off_blocks(kernel: Kernel, X: npt.ArrayLike, labels: npt.ArrayLike) -> OffBlocks:
    """Return the sums over the kernel between clusters, computed a block of rows at a time."""
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
    """Bounds of h* - H from the kernel, C and eta of the factory."""
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
        # An empty cluster, or one whose only solution is zero: its optimum is known.
        if problem is None:
            if not isinstance(self.factory, KernelFactory):
                return 0.0, 0.0, Verdict.OPTIMAL, {}
            value, arrays = self.factory.zero(len(self.X))
            # A product of a few numbers, each operation rounded once.
            rounding = 16 * UNIT_ROUNDOFF * abs(value)
            return value - rounding, value + rounding, Verdict.OPTIMAL, arrays
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
    if jobs == 1 or len(tasks) < 2:
        return [_call(task) for task in tasks]
    return _on_processes(tasks, jobs, retries)


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
    """Longest first, so that the run does not end with one process on a large cluster."""
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
    """The points of each cluster from a number of clusters, labels, or index arrays."""
    if isinstance(clusters, int | float | np.number):
        labels = kmeans(points, clusters, seed)  # type: ignore[arg-type]  # it refuses a fraction
        return [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
    if isinstance(clusters, list | tuple) and all(np.ndim(rows) == 1 for rows in clusters):
        return _partition(clusters, len(points))
    return _groups_of_labels(np.asarray(clusters), len(points))


def _groups_of_labels(labels: npt.NDArray[Any], n: int) -> list[Indices]:
    """The points of each label."""
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


def _partition(clusters: Sequence[npt.ArrayLike], n: int) -> list[Indices]:
    """Index arrays that hold each of n points exactly once."""
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
    """The arrays with one entry per point, concatenated; 0 where a cluster lacks one."""
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
