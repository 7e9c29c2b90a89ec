"""Support vector machines of many points with a Gaussian kernel, proven for the true kernel.

The matrix of the kernel is never stored: a decomposition finds the coefficients
(`klopt.numerics.margin_decomposition`), and one product in tiles, with the errors of distances,
exponentials and sums counted (`klopt.proof.gaussian_product`), proves both ends of the optimum. They
hold for exp(-gamma ||x - x'||^2) of the points as stored, in exact arithmetic: nothing is
approximated by features.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, matrix, positive, require_memory
from klopt.errors import InvalidProblem, InvalidSettings
from klopt.kernels.gram import binary_labels
from klopt.kernels.rbf import gamma_scale
from klopt.model.sets import BoxPlane
from klopt.numerics.margin_decomposition import Round, decompose, from_sample
from klopt.problems._margin.proof import proof_from_values
from klopt.proof.dyadic import balanced
from klopt.proof.gaussian_product import GaussianPoints, Mapper

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["LargeMargin", "solve_rbf_margin"]

AIM = 0.5
"""The decomposition aims at this part of the gap that is asked for: the rest is for the proof."""
MAX_PENALTY = 1e18
"""Beyond it C cannot be told from infinity."""
PROOF_SHARE = 0.8
"""The part of a time limit after which the decomposition leaves the rest to the proof."""


@dataclass(frozen=True, eq=False)
class LargeMargin:
    """A support vector machine and what is proven of it.

    Parameters
    ----------
    lower, upper
        Proven bounds of the optimum of max 1'a - a'Qa/2 over 0 <= a <= C, y'a = 0.
    alpha
        The coefficients, exactly feasible; `lower` is their value or less.
    bias
        The bias of the classifier; `upper` is its primal value or more.
    rounds
        The rounds of the decomposition, with estimates of the gap.
    seconds
        How long all of it took.
    """

    lower: float
    upper: float
    alpha: FloatArray
    bias: float
    rounds: tuple[Round, ...]
    seconds: float
    _gamma: float
    _X: FloatArray
    _y: FloatArray

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / upper."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    @property
    def support(self) -> npt.NDArray[np.intp]:
        """The points with a coefficient that is not 0."""
        return np.flatnonzero(self.alpha)

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Return the values of the classifier at new points; its sign is the class."""
        from sklearn.metrics.pairwise import rbf_kernel

        new = matrix("X", X, (None, self._X.shape[1]))
        support = self.support
        weights = self._y[support] * self.alpha[support]
        parts = (new[start : start + 1024] for start in range(0, len(new), 1024))
        found = [rbf_kernel(part, self._X[support], gamma=self._gamma) @ weights for part in parts]
        return np.concatenate([np.zeros(0), *found]) + self.bias

    def explain(self) -> str:
        """Return what is proven, in a sentence."""
        return (
            f"The optimum lies in [{self.lower:.10g}, {self.upper:.10g}], a relative gap of "
            f"{self.relative_gap:.1e}, for the Gaussian kernel of the {self._y.size} points as "
            f"stored; {self.support.size} support vectors, {len(self.rounds) - 1} rounds, "
            f"{self.seconds:.1f} s."
        )


def solve_rbf_margin(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    C: float = 1.0,
    *,
    gamma: float | None = None,
    tol: float = 1e-3,
    time_limit: float | None = None,
    threads: int = 1,
    cluster: str | Client | None = None,
    start: npt.ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[Round], None] | None = None,
) -> LargeMargin:
    """Solve the support vector machine of a Gaussian kernel and prove its optimum; K is not stored.

    Memory is a few vectors of n numbers and tiles of fixed size. The answer does not depend on
    `threads` or `cluster`. Where time runs out, what is returned is proven, and the gap is wider.

    Parameters
    ----------
    X, y
        The points, one in each row, and their labels -1 and +1.
    C
        The penalty, finite.
    gamma
        The kernel is exp(-gamma ||x - x'||^2); by default scikit-learn's "scale".
    tol
        The relative gap (upper - lower) / upper to reach.
    time_limit
        Seconds for all of it; the proof itself takes as long as a product with the support vectors.
    threads
        Threads for the tiles.
    cluster
        A Dask client, or the address of a scheduler, for the tiles instead of threads.
    start
        Coefficients alpha to start from, such as those of another solver.
    seed
        The seed of the sample that the start comes from.
    progress
        Called after each round.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(np.arange(200) % 2, 1.0, -1.0)
    >>> found = solve_rbf_margin(rng.normal(size=(200, 3)) + y[:, None], y)
    >>> found.lower <= found.upper, found.relative_gap < 1e-3
    (True, True)
    """
    began = time.perf_counter()
    points = matrix("X", X)
    signs = binary_labels(y, len(points))
    penalty = positive("C", C)
    if penalty > MAX_PENALTY:
        raise InvalidProblem(f"C is {penalty:g}; expected at most {MAX_PENALTY:g}")
    wanted = positive("tol", tol)
    width = gamma_scale(points) if gamma is None else positive("gamma", gamma)
    require_memory(64.0 * points.size + 512e6, f"the tiles of {len(points)} points")
    kernel = _Tiles.of(GaussianPoints.of(points, width), threads, cluster)
    deadline = math.inf
    if time_limit is not None:
        deadline = began + PROOF_SHARE * positive("time_limit", time_limit)

    if start is None:
        z = from_sample(kernel, signs, penalty, seed)
    else:
        z = signs * _given_start(start, signs, penalty)
    rounds: list[Round] = []

    def report(round_: Round) -> None:
        rounds.append(round_)
        if progress is not None:
            progress(round_)

    z = _exactly_feasible(z, signs, penalty)
    found = decompose(kernel, signs, penalty, z, AIM * wanted, deadline, report)
    z = _exactly_feasible(found.z, signs, penalty)
    f = kernel.points.enclose_product(z, kernel.mapper)
    bracket = proof_from_values(signs, penalty, signs * z, f)
    return LargeMargin(
        bracket.lower,
        bracket.upper,
        bracket.point.alpha,
        float(bracket.point.bias),
        tuple(rounds),
        time.perf_counter() - began,
        width,
        points,
        signs,
    )


def _given_start(start: npt.ArrayLike, y: FloatArray, C: float) -> FloatArray:
    a = np.asarray(start, dtype=float)
    if a.shape != y.shape or not np.isfinite(a).all():
        raise InvalidProblem(
            f"start has the shape {a.shape}; expected {y.size} finite numbers, one for each point"
        )
    return BoxPlane(np.zeros(y.size), np.full(y.size, C), y).project(a)


def _exactly_feasible(z: FloatArray, y: FloatArray, C: float) -> FloatArray:
    """z with the sum 0 exactly, inside its box."""
    clipped = y * np.clip(y * z, 0.0, C)
    total = float(clipped.sum())
    # The side that has too much is scaled down: by rounding only, after a decomposition.
    heavy = np.sign(total) * clipped > 0
    mass = float(np.abs(clipped[heavy]).sum())
    if mass:
        clipped[heavy] *= max(0.0, 1 - abs(total) / mass)
    return balanced(clipped)


@dataclass(frozen=True, eq=False)
class _Tiles:
    """The kernel of points, whose products are computed by a mapper."""

    points: GaussianPoints
    mapper: Mapper

    @classmethod
    def of(cls, points: GaussianPoints, threads: int, cluster: str | Client | None) -> _Tiles:
        if cluster is not None:
            from klopt.bench.dask_cluster import connected

            return cls(points, partial(_over_cluster, connected(cluster)))
        if not isinstance(threads, int) or threads < 1:
            raise InvalidSettings(f"threads is {threads!r}; expected a whole number from 1 on")
        return cls(points, map if threads == 1 else partial(_over_threads, threads))

    @property
    def size(self) -> int:
        return self.points.size

    def tile(self, rows: Any, columns: Any) -> FloatArray:
        return self.points.tile(rows, columns)

    def product(self, columns: npt.NDArray[np.intp], values: FloatArray) -> FloatArray:
        return self.points.product(columns, values, mapper=self.mapper)


def _over_threads(
    threads: int, function: Callable[[Any], Any], items: Iterable[Any]
) -> Sequence[Any]:
    """NumPy's loops run beside each other."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def _over_cluster(
    client: Client, function: Callable[[Any], Any], items: Iterable[Any]
) -> Sequence[Any]:
    """The function, with the points that it holds, goes to each worker once."""
    there = client.scatter(function, broadcast=True, hash=False)
    futures = client.map(_call, list(items), function=there, pure=False)
    return list(client.gather(futures))


def _call(item: Any, function: Callable[[Any], Any]) -> Any:
    return function(item)
