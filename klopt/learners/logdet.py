"""LDK and SCG-LDK: the kernel function near a given one that knows the labels, then support vector machines with it.

LDK keeps drawn pairs of one class near and pairs of different classes apart
(`klopt.problems.LogDetPairs`), as in [2]: the bounds are quantiles of the distances that the given
kernel has. SCG-LDK minimises the loss of the supervised graph instead of keeping pairs
(`klopt.problems.ScgLogDet`). Both are functions of any point; -1 marks points without label.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016, (4) and (27). [2] Davis, Kulis, Jain, Sra, Dhillon, Information-theoretic metric learning,
2007.
"""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import Nystrom
from klopt.kernels.out_of_sample import ExtendedFeatures
from klopt.learners._base import Codes, part
from klopt.learners._multiclass import MultiClass
from klopt.learners._near_kernel import NearKernelLearner
from klopt.model.backend import Backend
from klopt.problems.logdet_pairs import LogDetPairs
from klopt.problems.scg_logdet import ScgLogDet

__all__ = ["LDK", "ScgLDK"]

MAX_POINTS_FOR_BOUNDS = 1000
"""Labelled points whose distances the bounds are taken from."""


class LDK(NearKernelLearner):
    """The kernel nearest to `kernel` in LogDet divergence that keeps pairs near or apart as their labels say.

    `n_pairs` pairs of labelled points are drawn (None: 20 for each pair of classes), `quantiles` of
    the given distances are the bounds, and `slack` is the price of moving them (None: they hold,
    where that is possible at all). With slack, pairs of different classes whose points `kernel`
    cannot tell apart are left out: no kernel near it can. `rank` replaces the kernel of many points
    by so many features. `backend` None tries one route after the other until one proves the
    optimum, however long that takes.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = LDK(random_state=0).fit(X[::2], y[::2])
    >>> learner.result_.verdict.name, learner.score(X[1::2], y[1::2]) > 0.9
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        slack: float | None = 1.0,
        n_pairs: int | None = None,
        quantiles: tuple[float, float] = (0.05, 0.95),
        C: float = 10.0,
        multi_class: MultiClass = "ovo",
        rank: int | None = None,
        n_components: int | None = None,
        backend: str | Backend | None = "sparse_newton",
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.slack = slack
        self.n_pairs = n_pairs
        self.quantiles = quantiles
        self.C = C
        self.multi_class = multi_class
        self.rank = rank
        self.n_components = n_components
        self.backend = backend
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel from pairs of labelled points, and the models from these points."""
        K0, codes = self._given(X, y)
        problem = self._problem(K0, codes)
        self.result_ = self._certified(problem)
        return self._finish(codes)

    def _learned(self, known: npt.NDArray[np.intp], count: int) -> FloatArray:
        assert self.result_.point is not None
        function = cast(LogDetPairs, self.result_.problem).extend(self.result_.point)
        if isinstance(function, ExtendedFeatures) or known.size == count:
            return super()._learned(known, count)
        return function.among(
            function.K0[known], part(function.K0, known)
        )  # less than the whole kernel

    def _problem(self, K0: Gram | Nystrom, codes: Codes) -> LogDetPairs:
        pairs = self._pairs(codes)
        same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        near = pairs[same]
        far = pairs[~same]
        bounds = self._bounds(K0, np.flatnonzero(codes >= 0))
        problem = LogDetPairs(K0, near, far, *bounds, self.slack)
        if self.slack is None or not problem.inseparable.size:
            return problem
        if problem.inseparable.size == len(pairs):
            raise InvalidProblem(
                f"all {len(pairs)} pairs drawn are of different classes and at distance 0 in the kernel; draw more "
                "(n_pairs), or choose a kernel that tells the points apart"
            )
        return LogDetPairs(
            K0, near, np.delete(far, problem.inseparable, axis=0), *bounds, self.slack
        )

    def _pairs(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Different pairs of labelled points, drawn evenly."""
        known = np.flatnonzero(codes >= 0)
        count = known.size * (known.size - 1) // 2
        wanted = 20 * self.classes_.size**2 if self.n_pairs is None else self.n_pairs
        if wanted < 1:
            raise InvalidProblem(f"n_pairs is {wanted}; give at least one pair")
        random = check_random_state(self.random_state)
        drawn = (
            np.arange(count)
            if wanted >= count
            else np.sort(random.choice(count, wanted, replace=False))
        )
        # Pair number p of the pairs (i, j), j < i, is i (i - 1) / 2 + j.
        i = np.floor((1 + np.sqrt(1 + 8.0 * drawn)) / 2).astype(np.int64)
        return np.column_stack([known[drawn - i * (i - 1) // 2], known[i]])

    def _bounds(self, K0: Gram | Nystrom, known: npt.NDArray[np.intp]) -> tuple[float, float]:
        """The quantiles of the distances among labelled points that are not 0."""
        some = known[:: -(-known.size // MAX_POINTS_FOR_BOUNDS)]
        K = (
            K0.Phi[some] @ K0.Phi[some].T
            if isinstance(K0, Nystrom)
            else K0.matrix[np.ix_(some, some)]
        )
        distances = (K.diagonal()[:, None] + K.diagonal() - 2 * K)[np.triu_indices(some.size, 1)]
        distances = distances[distances > 1e-12 * max(float(K.diagonal().max()), 0.0)]
        if not distances.size:
            raise InvalidProblem(
                "the kernel gives all labelled points the distance 0; there is nothing to keep apart"
            )
        upper, lower = np.quantile(distances, self.quantiles)
        return float(upper), float(lower)


class ScgLDK(NearKernelLearner):
    """The kernel near `kernel` in LogDet divergence of least graph-based loss, whose weight is `gamma`.

    `rank` replaces the kernel of many points by so many features: then no matrix of the order of
    the points is formed.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ScgLDK().fit(X[::2], y[::2])
    >>> learner.result_.verdict.name, learner.score(X[1::2], y[1::2]) > 0.9
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float = 1.0,
        C: float = 10.0,
        multi_class: MultiClass = "ovo",
        rank: int | None = None,
        n_components: int | None = None,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.multi_class = multi_class
        self.rank = rank
        self.n_components = n_components
        self.backend = backend
        self.tol = tol

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel from all points, and the models from the labelled ones."""
        K0, codes = self._given(X, y)
        self.result_ = self._certified(ScgLogDet(K0, codes, self.gamma))
        return self._finish(codes)
