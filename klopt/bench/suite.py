"""The bundled suite: every family of problems on real data that comes with scikit-learn.

One entry is one line: family, data, sizes, and how to make the problem from the data. Points are
drawn once with a fixed seed, classes in proportion, and features standardised; the kernel is K_ij =
exp(-|x_i - x_j|^2 / features). Where a problem learns from some labels, those of every second point
of a class are hidden; graphs join five neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from klopt.arrays import FloatArray, SparseMatrix
from klopt.engine.registry import problem_named
from klopt.errors import InvalidSettings
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import UNLABELLED, knn_graph, laplacian
from klopt.kernels.nystroem import LowRank
from klopt.model.functions import Quadratic
from klopt.model.problem import Problem
from klopt.model.sets import Simplex
from klopt.model.smooth_functions import LocalModel, SmoothFunction

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ENTRIES", "Data", "Entry", "data", "suite"]

NEIGHBOURS = 5
RANK = 40
"""The smoothest eigenvectors that ordered kernels are made of."""


@dataclass(frozen=True, eq=False)
class Data:
    """Standardised points with class labels 0, 1, 2, .., or standardised targets where the data are for regression."""

    X: FloatArray
    y: FloatArray

    @property
    def signs(self) -> FloatArray:
        """+1 for the first class, -1 for the others."""
        return np.where(self.y == 0, 1.0, -1.0)

    @property
    def classes(self) -> npt.NDArray[np.int64]:
        """The labels, those of every second point of each class hidden."""
        known = np.zeros(self.y.size, dtype=bool)
        for label in np.unique(self.y):
            known[np.flatnonzero(self.y == label)[::2]] = True
        return np.where(known, self.y, UNLABELLED).astype(np.int64)

    @property
    def pairs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All pairs of labelled points, similar ones and dissimilar ones."""
        known = np.flatnonzero(self.classes != UNLABELLED)
        i, j = known[np.array(np.triu_indices(known.size, 1))]
        same = self.y[i] == self.y[j]
        return np.column_stack([i, j])[same], np.column_stack([i, j])[~same]

    @property
    def distances(self) -> FloatArray:
        """|x_i - x_j|^2 / features."""
        squares = np.square(self.X).sum(axis=1)
        distances = np.maximum(squares[:, None] + squares - 2 * self.X @ self.X.T, 0.0)
        np.fill_diagonal(distances, 0.0)
        return np.asarray(distances / self.X.shape[1])

    def kernel(self, width: float = 1.0) -> FloatArray:
        """Return exp(-|x_i - x_j|^2 / (width features))."""
        return np.asarray(np.exp(-self.distances / width))

    @property
    def kernels(self) -> list[FloatArray]:
        """Kernels of three widths, from local to smooth."""
        return [self.kernel(width) for width in (0.3, 1.0, 3.0)]

    @property
    def similarities(self) -> list[FloatArray]:
        """Two that are no kernels: tanh(x_i'x_j / features) and 1 - |x_i - x_j|^2 / (2 features)."""
        return [np.tanh(self.X @ self.X.T / self.X.shape[1]), 1 - self.distances / 2]

    @property
    def features(self) -> LowRank:
        """The linear kernel by its features, without the matrix."""
        return LowRank(self.X / np.sqrt(self.X.shape[1]))

    @property
    def laplacian(self) -> SparseMatrix:
        """The normalised Laplacian of the neighbour graph."""
        return laplacian(knn_graph(self.X, NEIGHBOURS))

    @property
    def smooth(self) -> FloatArray:
        """The smoothest eigenvectors of that graph, as columns."""
        return smoothest_eigenpairs(self.laplacian, RANK)[1]


@cache
def data(name: str, points: int) -> Data:
    """Return so many points of one of scikit-learn's bundled sets: breast, diabetes, digits, iris, wine.

    >>> data("iris", 30).X.shape
    (30, 4)
    """
    from sklearn import datasets

    load = datasets.load_breast_cancer if name == "breast" else getattr(datasets, f"load_{name}")
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))
    if name != "diabetes":  # one of each class in turn, so that a small sample has them all
        rank = np.empty(len(X), dtype=int)
        for label in np.unique(y):
            own = chosen[y[chosen] == label]
            rank[own] = np.arange(own.size) * (y.size / own.size)
        chosen = chosen[np.argsort(rank[chosen], kind="stable")]
    chosen = chosen[:points]
    X = X[chosen].astype(float)
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    targets = y[chosen].astype(float)
    if name == "diabetes":
        targets = (targets - targets.mean()) / targets.std()
    return Data(X, targets)


@dataclass(frozen=True)
class Entry:
    """One family on one data set at some sizes."""

    family: str
    data: str
    demo: tuple[int, ...]
    """Numbers of points that all backends together get done in seconds."""
    full: tuple[int, ...]
    """Numbers of points that show differences; minutes."""
    make: Callable[[Callable[..., Any], Data], Problem]
    """The problem from its class and the data."""

    def problems(self, size: str) -> list[tuple[str, Problem]]:
        """Return the entry's problems with their labels."""
        points = {"quick": self.demo[:1], "demo": self.demo, "full": self.full}[size]
        kind = problem_named(self.family)
        return [
            (f"{self.family} {self.data} n={n}", self.make(kind, data(self.data, n)))
            for n in points
        ]


def suite(size: str = "demo") -> list[tuple[str, Problem]]:
    """Return the labels and problems of the suite: `quick` has one of each family, `demo` takes a minute.

    >>> suite("quick")[0][0]
    'LP diabetes n=110'
    """
    if size not in ("quick", "demo", "full"):
        raise InvalidSettings(f"there is no suite {size!r}; expected quick, demo or full")
    first = {entry.family: entry for entry in reversed(ENTRIES)}
    chosen = [entry for entry in ENTRIES if size != "quick" or entry is first[entry.family]]
    return [pair for entry in chosen for pair in entry.problems(size)]


def _least_absolute(lp: Callable[..., Any], d: Data) -> Problem:
    """Regression by least absolute deviations: minimise mean t subject to |Xw + b - y| <= t."""
    n, features = d.X.shape
    design = np.hstack([d.X, np.ones((n, 1))])
    A = np.block([[design, -np.eye(n)], [-design, -np.eye(n)]])
    cost = np.concatenate([np.zeros(features + 1), np.full(n, 1 / n)])
    bounds = [(-10.0, 10.0)] * (features + 1) + [(0.0, None)] * n
    made: Problem = lp(cost, A, np.concatenate([d.y, -d.y]), bounds=bounds)
    return made


def _kernel_mixture(qcqp: Callable[..., Any], d: Data) -> Problem:
    """Multiple kernel learning: minimise t - 1'a subject to a'(yy' * K_i)a / 2 <= t, y'a = 0, 0 <= a <= 1."""
    n, y = d.signs.size, d.signs
    rows = []
    for K in d.kernels:
        P = np.zeros((n + 1, n + 1))
        P[:n, :n] = K * np.outer(y, y)
        rows.append((P, np.append(np.zeros(n), -1.0), 0.0))
    bounds = [(0.0, 1.0)] * n + [(0.0, float(n * n))]
    cost = np.append(-np.ones(n), 1.0)
    made: Problem = qcqp(
        None, cost, rows, A_eq=np.append(y, 0.0)[None, :], b_eq=[0.0], bounds=bounds
    )
    return made


def _largest_cut(sdp: Callable[..., Any], d: Data) -> Problem:
    """The semidefinite bound on the largest cut of the neighbour graph: minimise 1'x subject to diag(x) - L/4 psd."""
    L = laplacian(knn_graph(d.X, NEIGHBOURS), normalised=False).toarray()
    made: Problem = sdp(np.ones(len(L)), [L / 4, *(np.diag(row) for row in np.eye(len(L)))])
    return made


def _trace_factors(sdp: Callable[..., Any], d: Data) -> Problem:
    """Minimum trace factor analysis: maximise 1'x subject to covariance - diag(x) positive semidefinite, x >= 0."""
    covariance = d.X.T @ d.X / len(d.X)
    order = len(covariance)
    F = [-covariance, *(-np.diag(row) for row in np.eye(order))]
    made: Problem = sdp(-np.ones(order), F, A_ub=-np.eye(order), b_ub=np.zeros(order))
    return made


def _enclosing_ball(program: Any, d: Data) -> Problem:
    """The smallest ball around the points in feature space: minimise a'Ka - diag(K)'a over the simplex."""
    K = d.kernel() + 0.05 * d.X @ d.X.T
    made: Problem = program.of(Quadratic(2 * K, -np.diag(K)), Simplex(len(K)))
    return made


@dataclass(frozen=True, eq=False)
class _Design:
    """-log det(X' diag(x) X), convex in the weights x of the rows of X, with its gradient and its curvature."""

    X: FloatArray

    def __call__(self, x: FloatArray) -> LocalModel:
        """Return the function near x; infinite where the weighted rows do not span."""
        sign, size = np.linalg.slogdet(self.X.T @ (x[:, None] * self.X))
        if sign <= 0:
            return LocalModel(np.inf, np.zeros(x.size), lambda: np.eye(x.size))
        G = self.X @ np.linalg.solve(self.X.T @ (x[:, None] * self.X), self.X.T)
        return LocalModel(-float(size), -np.diag(G), lambda: np.square((G + G.T) / 2))


def _optimal_design(program: Any, d: Data) -> Problem:
    """D-optimal design: how often to measure at each point so that the volume of what stays unknown is least."""
    made: Problem = program.of(SmoothFunction(len(d.X), _Design(d.X)), Simplex(len(d.X)))
    return made


def _boosting_game(saddle: Any, d: Data) -> Problem:
    """The game behind boosting: features and their negatives against the points that they classify worst."""
    votes = np.clip(d.signs[:, None] * d.X, -2.0, 2.0)
    made: Problem = saddle.game(np.hstack([votes, -votes]))
    return made


# fmt: off
ENTRIES = (
    Entry("LP", "diabetes", (110, 220, 440), (200, 300, 442), _least_absolute),
    Entry("QCQP", "wine", (40, 80, 160), (60, 120, 178), _kernel_mixture),
    Entry("SDP", "iris", (12, 24, 40), (50, 100, 150), _largest_cut),
    Entry("SDP", "breast", (569,), (569,), _trace_factors),
    Entry("SimplexProgram", "iris", (150,), (50, 100, 150), _enclosing_ball),
    Entry("SimplexProgram", "wine", (60,), (60, 120, 178), _optimal_design),
    Entry("SaddlePoint", "breast", (100, 200, 400), (100, 200, 400), _boosting_game),
    Entry("SoftMargin", "breast", (100, 200, 400), (150, 300, 569), lambda make, d: make(d.kernel(), d.signs, 100)),
    Entry("NuMargin", "wine", (150,), (50, 100, 178), lambda make, d: make(d.kernel(), d.signs, 0.2)),
    Entry(
        "EpsilonMargin", "diabetes", (100, 200, 400), (100, 200, 400), lambda make, d: make(d.kernel(), d.y, 10, 0.05)
    ),
    Entry("MultipleKernel", "breast", (100,), (100, 200, 400), lambda make, d: make(d.kernels, d.signs, 1.0)),
    Entry(
        "SimilarityKernel", "wine", (30,), (30, 60, 120),
        lambda make, d: make(d.similarities, d.signs, 1.0, 0.1, float(len(d.X)), "l1"),
    ),
    Entry(
        "SimilarityKernels", "wine", (30,), (30, 60, 120),
        lambda make, d: make(d.similarities, d.signs, 1.0, 0.1, float(len(d.X))),
    ),
    Entry(
        "SimilaritySpectra", "wine", (60,), (60, 120, 178),
        lambda make, d: make(d.similarities, d.signs, 1.0, 0.1, float(len(d.X))),
    ),
    Entry("AdaptiveKernel", "breast", (60,), (60, 120, 240), lambda make, d: make(d.kernel(), d.signs, 1.0, 0.5)),
    Entry("AdaptiveKernel", "digits", (600,), (600, 1200), lambda make, d: make(d.features, d.signs, 1.0, 0.5)),
    Entry(
        "AdaptiveKernelRegression", "diabetes", (60,), (60, 120, 240),
        lambda make, d: make(d.kernel(), d.y, 1.0, 0.1, 0.5),
    ),
    Entry("OrderedAlignment", "digits", (300,), (300, 600, 1200), lambda make, d: make(d.smooth, d.classes)),
    Entry("ScgOrdered", "digits", (300,), (300, 600, 1200), lambda make, d: make(d.smooth, d.classes)),
    Entry("ScgLogDet", "iris", (20,), (50, 100, 150), lambda make, d: make(d.kernel(), d.classes, 1.0)),
    Entry("LogDetPairs", "wine", (40,), (40, 80, 160), lambda make, d: make(d.kernel(), *d.pairs, 0.7, 1.5)),
    Entry("SpectralRls", "wine", (150,), (90, 130, 178), lambda make, d: make(d.laplacian, d.classes, 1.0, 0.1)),
    Entry("SpectralAlignment", "iris", (150,), (90, 120, 150), lambda make, d: make(d.laplacian, d.classes)),
)
# fmt: on
"""Every family that klopt has; tests/test_suite.py fails where one is missing."""
