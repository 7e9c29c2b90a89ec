"""Kernels of low rank by their features, K0 = Phi Phi', and the Nystroem approximation.

From landmarks L (m points) and K_LL = V diag(w) V', the features phi(x) = diag(w)^-1/2 V'k(L, x)
give the best approximation of k on the landmarks only. The residual is itself a kernel,

    k(x, y) - phi(x)'phi(y)   is positive semidefinite,

so that ||K - Phi Phi'|| in the nuclear norm is the sum of k(x_i, x_i) - |phi(x_i)|^2, O(n m) to
compute and reported as `missing`. Landmarks are centres of k-means [1], or points drawn one half
uniformly and the other by its ridge leverage as the first sees it [2]. Both are the same on every
run of a seed. scikit-learn does the k-means and the kernels; its own `Nystroem` only draws
landmarks uniformly, holds an n x m matrix more and divides by small w that are rounding.

[1] Zhang, Tsang, Kwok, Improved Nystroem low-rank approximation and error analysis, 2008.
[2] Alaoui, Mahoney, Fast randomized kernel ridge regression with statistical guarantees, 2015.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias, TypeGuard, cast, get_args

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, freeze, is_locked, matrix, require_memory
from klopt.errors import InvalidProblem

__all__ = ["Kernel", "LowRank", "Nystrom", "nystrom"]

Kernel: TypeAlias = str | Callable[[FloatArray, FloatArray], FloatArray]
"""A metric of scikit-learn's `pairwise_kernels`, or a function of two sets of points (rows)."""
Landmarks = Literal["kmeans", "leverage"]

MIN_EIGENVALUE_SHARE = 1e-12
"""Eigenvalues of K_LL below this share of the largest are rounding."""
POINTS_AT_ONCE = 4096
"""Points that are worked on at a time: the memory beyond the features."""
KMEANS_POINTS_PER_LANDMARK = 20
"""Points per landmark that k-means looks at."""


def _checked_features(value: npt.ArrayLike) -> FloatArray:
    """Phi checked; a matrix that klopt made and froze is not copied again."""
    Phi = value if _is_frozen(value) else matrix("Phi", value)
    if not Phi.any():
        raise InvalidProblem(
            f"Phi is {Phi.shape[0]} x {Phi.shape[1]} and has no entry but 0; a kernel needs features"
        )
    return Phi


@attrs.frozen(eq=False, slots=False)
class LowRank:
    """The kernel matrix Phi Phi' of n points with r features each; n x n is never formed.

    >>> LowRank([[1.0], [2.0], [3.0]]).size
    3
    """

    Phi: FloatArray = attrs.field(converter=_checked_features)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.Phi)

    @property
    def rank(self) -> int:
        """The number of features."""
        return int(self.Phi.shape[1])


@attrs.frozen(eq=False, slots=False)
class Nystrom(LowRank):
    """Features of training points, and the way to those of new points."""

    kernel: Kernel
    landmarks: FloatArray
    whitening: FloatArray
    """V diag(w)^-1/2 (landmarks x rank)."""
    missing: float
    """||K - Phi Phi'|| / ||K|| in the nuclear norm, the share of the trace that is missing."""

    def features(self, X: npt.ArrayLike) -> FloatArray:
        """Return phi of points (rows): k(X, landmarks) times the whitening."""
        points = matrix("X", X, (None, int(self.landmarks.shape[1])))
        return _features(points, self.kernel, self.landmarks, self.whitening)


def nystrom(
    X: npt.ArrayLike,
    kernel: Kernel = "rbf",
    rank: int = 500,
    landmarks: Landmarks = "kmeans",
    seed: int = 0,
) -> Nystrom:
    """Return at most `rank` features of each point, from that many landmarks.

    Parameters
    ----------
    X
        The points, one in each row.
    kernel
        A name that scikit-learn knows, or a function of two sets of points.
    rank
        The number of landmarks; the rank of their kernel may be smaller.
    landmarks
        "kmeans" for cluster centres, "leverage" for points drawn by ridge leverage.
    seed
        The seed of all random choices.

    >>> points = np.linspace(0.0, 1.0, 50)[:, None]
    >>> few = nystrom(points, rank=5)
    >>> few.Phi.shape, few.missing < 1e-4
    ((50, 5), True)
    """
    points = matrix("X", X)
    n = len(points)
    m = _count(rank, n)
    if landmarks not in get_args(Landmarks):
        raise InvalidProblem(
            f"landmarks is {landmarks!r}; expected one of {', '.join(get_args(Landmarks))}"
        )

    require_memory(8.0 * n * m, f"{m} features of {n} points")
    choose = _centres if landmarks == "kmeans" else _leveraged
    L = choose(points, kernel, m, np.random.default_rng(seed))
    whitening = _whitening(kernel, L)
    Phi = _features(points, kernel, L, whitening)

    whole = sum(float(part.sum()) for part in _diagonal(points, kernel))
    missing = max(0.0, 1 - float(np.einsum("ij,ij->", Phi, Phi)) / whole)
    return Nystrom(cast(FloatArray, freeze(Phi)), kernel, L, whitening, missing)


def _count(rank: object, n: int) -> int:
    if isinstance(rank, bool) or not isinstance(rank, numbers.Integral) or not 0 < int(rank) <= n:
        raise InvalidProblem(
            f"rank is {rank!r}; expected a whole number from 1 to {n}, the number of points"
        )
    return int(rank)


def _evaluate(kernel: Kernel, X: FloatArray, Y: FloatArray) -> FloatArray:
    if isinstance(kernel, str):
        from sklearn.metrics.pairwise import pairwise_kernels

        try:
            found = pairwise_kernels(X, Y, metric=kernel)
        except ValueError as error:
            raise InvalidProblem(
                f"kernel is {kernel!r}, which scikit-learn refuses: {error}"
            ) from None
    else:
        found = kernel(X, Y)
    values = np.asarray(found, dtype=float)
    if values.shape != (len(X), len(Y)) or not np.isfinite(values).all():
        raise InvalidProblem(
            f"kernel gives an array of shape {values.shape} for {len(X)} by {len(Y)} points; "
            f"expected {len(X)} x {len(Y)} finite numbers"
        )
    return values


def _blocks(points: FloatArray, rows: int = POINTS_AT_ONCE) -> Iterator[FloatArray]:
    return (points[start : start + rows] for start in range(0, len(points), rows))


def _diagonal(points: FloatArray, kernel: Kernel) -> Iterator[FloatArray]:
    """k(x, x), block by block; few points at a time, since only the diagonal of each is used."""
    return (_evaluate(kernel, part, part).diagonal() for part in _blocks(points, 64))


def _features(
    points: FloatArray, kernel: Kernel, L: FloatArray, whitening: FloatArray
) -> FloatArray:
    Phi = np.empty((len(points), whitening.shape[1]))
    for part, rows in zip(_blocks(points), _blocks(Phi), strict=True):
        np.matmul(_evaluate(kernel, part, L), whitening, out=rows)
    return Phi


def _whitening(kernel: Kernel, L: FloatArray) -> FloatArray:
    K = _evaluate(kernel, L, L)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    largest = float(values[-1])
    # Rounding makes eigenvalues negative by far less than the root of the share that is cut off.
    if not largest > 0 or values[0] < -np.sqrt(MIN_EIGENVALUE_SHARE) * largest:
        raise InvalidProblem(
            f"kernel is no kernel: its eigenvalues on the landmarks go from {values[0]:.3g} to {largest:.3g}"
        )
    kept = values > MIN_EIGENVALUE_SHARE * largest
    return cast(FloatArray, freeze(vectors[:, kept] / np.sqrt(values[kept])))


def _centres(points: FloatArray, kernel: Kernel, m: int, rng: np.random.Generator) -> FloatArray:
    """Centres of k-means of a sample of the points."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    sample = points
    wanted = KMEANS_POINTS_PER_LANDMARK * m
    if len(points) > wanted:
        sample = points[rng.permutation(len(points))[:wanted]]
    # Two centres cannot differ where points coincide.
    m = min(m, len(np.unique(sample, axis=0)))
    # One thread: several add up in an order that changes from run to run.
    with threadpool_limits(limits=1):
        found = KMeans(m, n_init=1, max_iter=20, random_state=int(rng.integers(2**31))).fit(sample)
    return cast(FloatArray, freeze(np.asarray(found.cluster_centers_, dtype=float)))


def _leveraged(points: FloatArray, kernel: Kernel, m: int, rng: np.random.Generator) -> FloatArray:
    """One half drawn uniformly, the other by the ridge leverage that the first half estimates.

    The ridge is the part of the trace that the first half misses, divided by the number of
    landmarks.
    """
    order = rng.permutation(len(points))
    first = order[: (m + 1) // 2]
    pilot = points[first]
    whitening = _whitening(kernel, pilot)
    r = whitening.shape[1]
    moments = np.zeros((r, r))
    missed = []
    for part, diagonal in zip(_blocks(points), _joined(points, kernel), strict=True):
        Phi = _features(part, kernel, pilot, whitening)
        moments += Phi.T @ Phi
        missed.append(np.maximum(diagonal - np.einsum("ij,ij->i", Phi, Phi), 0.0))

    left = np.concatenate(missed)
    ridge = float(left.sum()) / m + MIN_EIGENVALUE_SHARE * float(moments.trace())
    half = np.linalg.inv(np.linalg.cholesky(moments + ridge * np.eye(r)))
    # The features are computed a second time rather than kept: they are as large as the answer.
    seen = (_features(part, kernel, pilot, whitening) @ half.T for part in _blocks(points))
    leverage = np.concatenate([np.einsum("ij,ij->i", part, part) for part in seen])
    scores = leverage + left / ridge + MIN_EIGENVALUE_SHARE
    scores[first] = 0.0

    count = m - first.size
    second = first[:0]
    if count:
        second = rng.choice(len(points), count, replace=False, p=scores / scores.sum())
    return cast(FloatArray, freeze(points[np.sort(np.concatenate([first, second]))]))


def _joined(points: FloatArray, kernel: Kernel) -> Iterator[FloatArray]:
    """The diagonal in the same blocks as the points."""
    return (np.concatenate(list(_diagonal(part, kernel))) for part in _blocks(points))


def _is_frozen(array: object) -> TypeGuard[FloatArray]:
    """Whether this is a finite, read-only matrix."""
    return (
        isinstance(array, np.ndarray)
        and array.ndim == 2
        and array.dtype == np.float64
        and is_locked(array)
        and bool(np.isfinite(array.sum()))
    )
