"""Learners on a graph of the points, and the rule that extends their values to new points.

K = V diag(w) V' on the smoothest eigenvectors V of the graph is known at the training points only.
There it decides by the models' values F (points x models). There are two rules for a new point x.

    extension="kernel"        kernel ridge regression of F (`klopt.learners._ridge`)
    extension="neighbours"    f(x) = sum_i p_i F_i,    p_i ~ 1 / ||x - x_i||

The second is the mean of the nearest training points, which is what the kernel
k(x, .) = sum_i p_i k(x_i, .) gives; at a training point it is the own value, as in scikit-learn's
`LabelSpreading`. The first smooths noisy labels and decides as a support vector machine would
where all points have labels. Features of new points always follow the second. Where the graph
itself is given (graph="precomputed"), X is the matrix of its weights and p_i are those from x to
the training points; the values at these are `transduction_` only.

A component of the graph without labels has no decision of its own: every kernel on the graph is 0
between it and the labelled points. Its points take the mean of their nearest points in the other
components, unless the graph is given: they lie far from these, where a regression is not to be
trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from klopt.arrays import FloatArray, SparseMatrix, csc, sound_sparse
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.kernels.graphs import Weights, knn_graph, sparse_norms
from klopt.learners._base import PRECOMPUTED, Classifier, Codes
from klopt.learners._calibration import SoftDecision
from klopt.learners._multiclass import MultiClass, MulticlassScheme, support_vector_machines
from klopt.learners._ridge import MAX_EXACT_POINTS, RidgeExtension
from klopt.learners.kernels import blocks

__all__ = ["Extension", "GraphClassifier", "GraphLearner"]

Extension = Literal["kernel", "neighbours"]


@dataclass(frozen=True, eq=False)
class _Nearby:
    """The training points, dense or sparse, to be searched for neighbours."""

    X: Any
    count: int

    @property
    def is_large(self) -> bool:
        """Whether there are too many sparse points for a regression: features need dense ones."""
        return not isinstance(self.X, np.ndarray) and self.X.shape[0] > MAX_EXACT_POINTS

    @cached_property
    def centre(self) -> FloatArray | float:
        # Sparse points stay where they are: moved ones would be dense.
        return 0.0 if sparse.issparse(self.X) else np.asarray(self.X.mean(axis=0))

    @cached_property
    def search(self) -> NearestNeighbors:
        """The search among the training points, made ready when the first new point comes."""
        return NearestNeighbors(n_neighbors=self.count).fit(self._moved(self.X))

    def _moved(self, points: Any) -> Any:
        return points if sparse.issparse(points) else points - self.centre

    def shares(self, new: Any) -> sparse.csr_array:
        """p of each new point (new x training points)."""
        if sparse.issparse(self.X):
            new = sparse.csr_matrix(new)
        elif not isinstance(new, np.ndarray):
            new = new.toarray()
        near = self.search.kneighbors(self._moved(new), return_distance=False)
        lengths = self._lengths(new, near)
        nearest = lengths.min(axis=1, keepdims=True)
        # At a training point, distance 0, the weight is all its own.
        with np.errstate(invalid="ignore"):
            p = np.where(nearest == 0, lengths == 0, nearest / lengths)
        p /= p.sum(axis=1, keepdims=True)
        ends = np.arange(0, near.size + 1, near.shape[1])
        shape = (new.shape[0], self.X.shape[0])
        return sparse.csr_array((p.ravel(), near.ravel(), ends), shape=shape)

    def _lengths(self, new: Any, near: npt.NDArray[np.intp]) -> FloatArray:
        """The distances of new points to their neighbours.

        From differences: distances by inner products are not 0 at a training point.
        """
        lengths = np.empty(near.shape)
        if sparse.issparse(new):
            for column, neighbours in enumerate(near.T):
                lengths[:, column] = sparse_norms(new - self.X[neighbours])
            return lengths
        for rows in blocks(len(new), 8 * near.shape[1] * new.shape[1]):
            lengths[rows] = np.linalg.norm(new[rows, None, :] - self.X[near[rows]], axis=2)
        return lengths


@dataclass(frozen=True, eq=False)
class _Carrier:
    """Values at the training points, and the regression that carries them, if there is one."""

    values: FloatArray
    ridge: RidgeExtension | None
    codes: Codes
    scheme: MulticlassScheme

    @cached_property
    def soft_decision(self) -> SoftDecision:
        """The probabilities of the scores of labelled points, each left out of the regression."""
        if self.ridge is None:
            raise InvalidProblem(
                "there are no probabilities of so many sparse points; CalibratedClassifierCV of "
                "scikit-learn makes them of decision values"
            )
        known = self.codes >= 0
        return SoftDecision.of(self.scheme.scores(self.ridge.left_out[known]), self.codes[known])


class GraphClassifier(Classifier):
    """A classifier that is known at the points of a graph, and carried to others."""

    graph: str
    n_neighbors: int
    weights: Weights
    extension: Extension
    transduction_: npt.NDArray[Any]

    def _graph_of(self, X: Any, y: Any) -> tuple[SparseMatrix, Codes]:
        """The weights of the graph of the training points, and their classes."""
        given = self.graph == PRECOMPUTED
        if not given and self.graph != "knn":
            raise InvalidProblem(
                f"graph is {self.graph!r}; expected 'knn', or 'precomputed' for a matrix of weights"
            )
        if self.extension not in get_args(Extension):
            raise InvalidProblem(
                f"extension is {self.extension!r}; expected one of {', '.join(get_args(Extension))}"
            )
        if sparse.issparse(X):
            sound_sparse("X", X)
        X, codes = self._labelled(X, y, unlabelled=True, accept_sparse="csr")
        self._codes = codes
        if given:
            self._nearby = None
            return csc("X", X), codes
        neighbours = min(self.n_neighbors, X.shape[0] - 1)
        self._nearby = _Nearby(X, neighbours)
        W = knn_graph(X, neighbours, self.weights)
        component = connected_components(W, directed=False)[1]
        self._reached = np.isin(component, component[codes >= 0])
        return W, codes

    def _decide(self, values: FloatArray, scheme: MulticlassScheme) -> Self:
        """Keep the models' values at the training points and the classes that they predict."""
        self._scheme = scheme
        if self._nearby is not None and not self._reached.all():
            values = values.copy()
            values[~self._reached] = self._carried_from_reached(self._nearby, values)
        self.transduction_ = self._named(scheme.scores(values))
        self._carrier = self._carrier_of(values, scheme)
        return self

    def _carried_from_reached(self, nearby: _Nearby, values: FloatArray) -> FloatArray:
        """The values at points without a way to a label, from those at the others."""
        near = _Nearby(nearby.X[self._reached], min(nearby.count, int(self._reached.sum())))
        return cast(FloatArray, near.shares(nearby.X[~self._reached]) @ values[self._reached])

    def _carrier_of(self, values: FloatArray, scheme: MulticlassScheme) -> _Carrier:
        """What carries values at the training points to others; nothing is computed yet."""
        ridge = None
        if self._nearby is not None and self.extension == "kernel" and not self._nearby.is_large:
            ridge = RidgeExtension(self._nearby.X, values)
        return _Carrier(values, ridge, self._codes, scheme)

    def _at(self, X: Any, carrier: _Carrier) -> FloatArray:
        """Values, known at the training points, at the rows of X, by the rule of the fit."""
        if carrier.ridge is None:
            return self._averaged(X, carrier.values)
        return carrier.ridge(self._seen_points(X))

    def _seen_points(self, X: Any) -> Any:
        if sparse.issparse(X):
            sound_sparse("X", X)
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr")

    def _averaged(self, X: Any, F: FloatArray) -> FloatArray:
        """F, known at the training points, at the rows of X: the mean of their neighbours."""
        W = self._seen_points(X)
        # Otherwise the graph is given, and X holds the weights to the training points.
        if self._nearby is not None:
            return cast(FloatArray, self._nearby.shares(W) @ F)
        total = np.asarray(W.sum(axis=1), dtype=float).ravel()
        # A point without edges takes the mean of all.
        found = (W @ F) / np.where(total > 0, total, 1.0)[:, None]
        return np.where(total[:, None] > 0, np.asarray(found, dtype=float), F.mean(axis=0))

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        return self._scheme.scores(self._at(X, self._carrier))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points; those of training points are in `transduction_`."""
        return self._named(self.decision_function(X))

    def _has_regression(self) -> bool:
        """Whether values come from a regression; `available_if` shows the reason."""
        if self.graph != PRECOMPUTED and self.extension == "kernel":
            return True
        raise AttributeError(
            f"{type(self).__name__} has probabilities with graph='knn' and extension='kernel' only; "
            "scikit-learn's CalibratedClassifierCV makes them of decision values"
        )

    @available_if(_has_regression)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, by a sigmoid of the decision values.

        The sigmoid is fitted to the values at the labelled points, each left out of the regression
        that carries values to new points. With few labels they are too sure: the values at the
        other points were learned with the label of the one that is left out.
        """
        check_is_fitted(self)
        return self._carrier.soft_decision(self.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.graph == PRECOMPUTED
        tags.input_tags.sparse = True
        return tags


class GraphLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphClassifier):  # type: ignore[misc]
    """A learner of a kernel V diag(w) V' on a graph and of its values at the training points."""

    multi_class: MultiClass
    result_: Result

    def _decide_by_svm(
        self, V: FloatArray, w: FloatArray, codes: Codes, C: float, weights: FloatArray
    ) -> Self:
        """Train models on the labelled points with V diag(w) V'; weights multiply C."""
        known = np.flatnonzero((codes >= 0) & (weights > 0))
        used = np.flatnonzero(w > 0)
        half = V[:, used] * np.sqrt(w[used])
        some = half[known]
        if used.size < self.classes_.size - 1:
            self._warn_of_kernel(
                f"the learned kernel has {used.size} eigenvectors for {self.classes_.size} classes, "
                "which it cannot tell apart; take another learner, such as OSK, or a graph of more "
                "neighbours"
            )
        scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        coefficients, bias = support_vector_machines(
            some @ some.T, codes[known], scheme, C, weights[known]
        )
        return self._decide(half @ (some.T @ coefficients) + bias, scheme)

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points; formed on demand."""
        return cast(FloatArray, self.result_.kernel)

    def _features(self) -> FloatArray:
        """V diag(w)^1/2 at the training points, without columns of zeros."""
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return int(self._features().shape[1])

    def transform(self, X: Any) -> FloatArray:
        """Return features whose inner products are the learned kernel."""
        check_is_fitted(self)
        return self._averaged(X, self._features())
