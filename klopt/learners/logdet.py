"""LDK and SCG-LDK: a kernel function near a given one learned from labels, and SVMs with it.

LDK keeps drawn pairs of one class near and pairs of different classes apart
(`klopt.problems.LogDetPairs`), as in Davis et al. (2007): the bounds are quantiles of the distances
in the given kernel. SCG-LDK minimises the loss of the supervised graph instead of keeping pairs
(`klopt.problems.ScgLogDet`). Both are functions of any point; -1 marks points without label. Where
pairs are given to `fit`, the kernel is learned from them in place of the labels.

Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016, (4) and (27). Davis, Kulis, Jain, Sra, Dhillon, Information-theoretic metric learning,
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
from klopt.learners._base import ClassWeight, Codes, Unlabelled, part
from klopt.learners._multiclass import MultiClass
from klopt.learners._near_kernel import NearKernelLearner
from klopt.model.backend import Backend
from klopt.problems.logdet_pairs import LogDetPairs
from klopt.problems.scg_logdet import ScgLogDet

__all__ = ["LDK", "ScgLDK"]

MAX_POINTS_FOR_BOUNDS = 1000
"""Labelled points whose distances the bounds are taken from."""
DEFAULT_GAMMA = 0.3
"""The weight of the graph-based loss where every point has a label."""


Pairs = tuple[npt.ArrayLike, npt.ArrayLike]
"""Similar pairs of points and dissimilar ones, by the numbers of their rows."""


def as_pairs(given: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return similar and dissimilar pairs as arrays of two columns.

    >>> [pairs.tolist() for pairs in as_pairs(([(0, 1)], []))]
    [[[0, 1]], []]
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidProblem(
            "pairs is not (similar, dissimilar); expected two lists of pairs of row numbers"
        )
    found = []
    for name, listed in zip(("similar", "dissimilar"), given, strict=True):
        array = np.asarray(listed)
        if not array.size:
            array = np.empty((0, 2), dtype=np.int64)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise InvalidProblem(
                f"the {name} pairs have shape {array.shape} and type {array.dtype}; expected two "
                "whole numbers for each pair, the rows of its points"
            )
        found.append(array.astype(np.int64))
    if not found[0].size and not found[1].size:
        raise InvalidProblem("pairs has neither similar nor dissimilar pairs; give one at least")
    return found[0], found[1]


class LDK(NearKernelLearner):
    """The kernel nearest to `kernel` in LogDet divergence that satisfies bounds on labelled pairs.

    Labels of -1 mark points without label.

    Parameters
    ----------
    kernel
        The given kernel: a name, a kernel of `klopt.learners.kernels`, a function of two sets of
        points, or "precomputed", where X is the kernel matrix.
    slack
        The penalty of moving the bounds; None keeps them as they are, where that is feasible. With
        slack, pairs of different classes at distance 0 in `kernel` are left out: no kernel near it
        can separate them.
    n_pairs
        The number of pairs of labelled points that are drawn; None for 20 per pair of classes.
    quantiles
        Those of the given distances that bound pairs of one class and of different classes.
    C
        The penalty of the support vector machines, for a kernel whose diagonal has mean 1.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.
    class_weight
        The weights of the classes, which multiply C: None, "balanced", or {class: weight}.
    rank
        The number of Nystroem features that replace the kernel of many points.
    n_components
        The number of features of `transform`; None for all.
    unlabelled
        The label of points without label; None where every point has one.
    backend
        The solver; None tries one route after the other until the optimum is proven.
    tol
        The relative gap up to which the optimum is certified.
    time_limit
        Seconds that a solver may take for one model; None for no limit.
    random_state
        The seed or generator that draws the pairs.

    Attributes
    ----------
    classes_
        The class labels.
    result_
        The certified result.
    kernel_
        The learned kernel matrix of the training points.

    Notes
    -----
    The LogDet divergence is D(K, K0) = tr(K K0^-1) - log det(K K0^-1) - n. Pairs of one class are
    kept at most, pairs of different classes at least at a distance, up to slack. The learned kernel
    is a function of any two points. The divergence does not depend on how often a point occurs, so
    weights multiply C only.

    References
    ----------
    Kulis, Sustik, Dhillon, Low-rank kernel learning with Bregman matrix divergences, Journal of
    Machine Learning Research, 2009.

    Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
    Information Sciences, 2016.

    Examples
    --------
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
        C: float = 1.0,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        rank: int | None = None,
        n_components: int | None = None,
        unlabelled: Unlabelled = -1,
        backend: str | Backend | None = "sparse_newton",
        tol: float = 1e-6,
        time_limit: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.slack = slack
        self.n_pairs = n_pairs
        self.quantiles = quantiles
        self.C = C
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.rank = rank
        self.n_components = n_components
        self.unlabelled = unlabelled
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, pairs: Pairs | None = None) -> Self:
        """Learn the kernel from pairs of labelled points, and the models from these points.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            What multiplies C of each labelled point; the kernel is learned without weights.
        pairs
            Similar and dissimilar pairs of points, two lists of pairs of row numbers: then the
            kernel is learned from them, and labels are for the models only.
        """
        K0, codes = self._given(X, y)
        weights = self._point_weights(sample_weight, X, codes)
        problem = self._problem(K0, codes, pairs)
        self.result_ = self._certified(problem)
        return self._finish(codes, weights)

    @property
    def _more(self) -> str:
        return "draw more pairs (n_pairs), or take a larger slack"

    def _learned(self, known: npt.NDArray[np.intp], count: int) -> FloatArray:
        assert self.result_.point is not None
        function = cast(LogDetPairs, self.result_.problem).extend(self.result_.point)
        if isinstance(function, ExtendedFeatures) or known.size == count:
            return super()._learned(known, count)
        # The block of the labelled points costs less than the whole kernel matrix.
        return function.among(function.K0[known], part(function.K0, known))

    def _problem(self, K0: Gram | Nystrom, codes: Codes, given: Pairs | None) -> LogDetPairs:
        if given is None:
            pairs = self._pairs(codes)
            same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
            near = pairs[same]
            far = pairs[~same]
            bounds = self._bounds(K0, np.flatnonzero(codes >= 0))
        else:
            near, far = as_pairs(given)
            pairs = np.vstack([near, far])
            bounds = self._bounds(K0, np.arange(codes.size))
        problem = LogDetPairs(K0, near, far, *bounds, self.slack)
        if self.slack is None or not problem.inseparable.size:
            return problem
        if problem.inseparable.size == len(pairs):
            raise InvalidProblem(
                f"all {len(pairs)} pairs drawn are of different classes and at distance 0 in the kernel; draw more "
                "(n_pairs), or choose a kernel that tells the points apart"
            )
        separable = np.delete(far, problem.inseparable, axis=0)
        return LogDetPairs(K0, near, separable, *bounds, self.slack)

    def _pairs(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Distinct pairs of labelled points, drawn uniformly."""
        known = np.flatnonzero(codes >= 0)
        count = known.size * (known.size - 1) // 2
        wanted = 20 * self.classes_.size**2 if self.n_pairs is None else self.n_pairs
        if wanted < 1:
            raise InvalidProblem(f"n_pairs is {wanted}; give at least one pair")
        random = check_random_state(self.random_state)
        drawn = np.arange(count)
        if wanted < count:
            drawn = np.sort(random.choice(count, wanted, replace=False))
        # Pair number p of the pairs (i, j), j < i, is i (i - 1) / 2 + j.
        i = np.floor((1 + np.sqrt(1 + 8.0 * drawn)) / 2).astype(np.int64)
        return np.column_stack([known[drawn - i * (i - 1) // 2], known[i]])

    def _bounds(self, K0: Gram | Nystrom, known: npt.NDArray[np.intp]) -> tuple[float, float]:
        """The quantiles of the distances among labelled points that are not 0."""
        some = known[:: -(-known.size // MAX_POINTS_FOR_BOUNDS)]
        if isinstance(K0, Nystrom):
            K = K0.Phi[some] @ K0.Phi[some].T
        else:
            K = K0.matrix[np.ix_(some, some)]
        squares = K.diagonal()
        distances = (squares[:, None] + squares - 2 * K)[np.triu_indices(some.size, 1)]
        # What is 0 up to rounding tells nothing of the scale.
        distances = distances[distances > 1e-12 * max(float(K.diagonal().max()), 0.0)]
        if not distances.size:
            raise InvalidProblem(
                "the kernel gives all points that it is learned from the distance 0; there is nothing to keep apart"
            )
        upper, lower = np.quantile(distances, self.quantiles)
        return float(upper), float(lower)


class ScgLDK(NearKernelLearner):
    """The kernel near `kernel` in LogDet divergence that minimises the graph-based loss.

    Labels of -1 mark points without label.

    Parameters
    ----------
    kernel, C, multi_class, class_weight, n_components, unlabelled, backend, tol, time_limit
        As in `LDK`.
    gamma
        The weight of the graph-based loss; None for 0.3 times the share of points with labels, as
        the loss draws points without label together whatever their classes are.
    rank
        The number of Nystroem features that replace the kernel of many points: then no n x n matrix
        is formed.

    Attributes
    ----------
    classes_, result_, kernel_
        As in `LDK`.
    gamma_
        The weight of the graph-based loss that was used.

    Notes
    -----
    The kernel minimises D(K, K0) + gamma tr(KS), D the LogDet divergence from the given kernel and
    S the Laplacian of the graph that joins points by their classes; it has a closed form, K =
    (K0^-1 + gamma S)^-1, which is proven to be optimal, and is a function of any two points.

    References
    ----------
    Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
    Information Sciences, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ScgLDK().fit(X[::2], y[::2])
    >>> learner.result_.verdict.name, learner.score(X[1::2], y[1::2]) > 0.9
    ('OPTIMAL', True)
    """

    gamma_: float

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        C: float = 1.0,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        rank: int | None = None,
        n_components: int | None = None,
        unlabelled: Unlabelled = -1,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.rank = rank
        self.n_components = n_components
        self.unlabelled = unlabelled
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, pairs: Pairs | None = None) -> Self:
        """Learn the kernel from all points, and the models from the labelled ones.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            What multiplies C of each labelled point; the kernel is learned without weights.
        pairs
            Similar and dissimilar pairs of points, two lists of pairs of row numbers: then the
            kernel is learned from them, and labels are for the models only.
        """
        K0, codes = self._given(X, y)
        weights = self._point_weights(sample_weight, X, codes)
        side: Any = codes if pairs is None else as_pairs(pairs)
        gamma = self.gamma
        if gamma is None:
            gamma = DEFAULT_GAMMA * float(np.mean(codes >= 0))
        self.gamma_ = gamma
        self.result_ = self._certified(ScgLogDet(K0, side, self.gamma_))
        return self._finish(codes, weights)

    @property
    def _more(self) -> str:
        return "take a larger gamma"
