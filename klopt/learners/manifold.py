"""LapRLS, LapSVM and harmonic functions: classifiers that are smooth on a graph of all points.

    LapRLS     minimise  sum_l (f(x_i) - y_i)^2 / l + A ||f||^2 + I f'Mf / n^2
    LapSVM     minimise  sum_l max(0, 1 - y_i (f(x_i) + b)) / l + A ||f||^2 + I f'Mf / n^2
    Harmonic   f equals the labels, and elsewhere the weighted mean of its neighbours

over l labelled and n points in all, with a kernel's norm ||f||, a power M of the graph's Laplacian,
and the penalties A = gamma_ambient and I = gamma_intrinsic. The first two decide by a function of
any point, f(x) = k(x, X) a + b (`klopt.kernels.manifold`): least squares are a linear system, the
margin is left to LIBSVM. A harmonic function is known on the graph only; new points take the mean
of their nearest neighbours (`klopt.learners._graph`). None of them optimises a kernel, so none has
a certificate: they are what learned kernels have to beat.

Belkin, Niyogi, Sindhwani, Manifold regularization, 2006. Zhu, Ghahramani, Lafferty,
Semi-supervised learning using Gaussian fields and harmonic functions, 2003.
"""

from __future__ import annotations

import warnings
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from klopt.arrays import FloatArray, SparseMatrix, csc, positive
from klopt.kernels.graphs import Weights, knn_graph, laplacian
from klopt.kernels.manifold import DeformedKernel
from klopt.kernels.transduction import harmonic
from klopt.learners._base import Classifier, ClassWeight, Codes, Unlabelled
from klopt.learners._graph import Extension, GraphClassifier
from klopt.learners._multiclass import MultiClass, MulticlassScheme, support_vector_machines
from klopt.learners.kernels import as_kernel, blocks

__all__ = ["Harmonic", "LapRLS", "LapSVM"]


class _Manifold(Classifier):
    """A classifier whose functions a graph makes smooth."""

    kernel: Any
    gamma_ambient: float
    gamma_intrinsic: float | None
    n_neighbors: int
    weights: Weights
    power: int
    unlabelled: Unlabelled
    class_weight: ClassWeight
    multi_class: MultiClass = "ovr"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all points; the labelled ones may have weights.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            The weight of the loss of each point; weights of unlabelled points are ignored.
        """
        gamma_ambient = positive("gamma_ambient", self.gamma_ambient)
        X, codes = self._labelled(X, y, unlabelled=True)
        gamma_intrinsic = self.gamma_intrinsic
        if gamma_intrinsic is None:
            # Where all points have labels, the graph has little to add to them.
            gamma_intrinsic = max(10.0, 1000.0 * float(np.mean(codes < 0)))
        gamma_intrinsic = positive("gamma_intrinsic", gamma_intrinsic, zero=True)
        given = self._point_weights(sample_weight, X, codes)
        known = np.flatnonzero((codes >= 0) & (given > 0))
        n = X.shape[0]
        W = knn_graph(X, min(self.n_neighbors, n - 1), self.weights)
        self._X = X
        self._kernel = as_kernel(self.kernel).fix(X, getattr(self, "feature_names_in_", None))
        self.n_iter_ = 1

        deformed = DeformedKernel.of(self._kernel(X), laplacian(W, power=self.power))
        r = gamma_intrinsic / gamma_ambient / n**2
        self._scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        among = deformed.block(r, known, known)
        c = np.zeros((n, len(self._scheme.pairs)))
        # The mean loss is over the labelled points, counted by their weights.
        ridge = gamma_ambient * float(given[known].sum())
        c[known], self._bias = self._coefficients(among, codes[known], given[known], ridge)
        self._a = deformed.coefficients(r, c)
        self.transduction_ = self._named(
            self._scheme.scores(deformed.block(r, slice(None), known) @ c[known] + self._bias)
        )
        return self

    def _coefficients(
        self, K: FloatArray, codes: Codes, weights: FloatArray, ridge: float
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients (labelled points x models) and biases of the models.

        Their loss is the weighted sum of the points' losses plus ridge ||f||~^2.
        """
        raise NotImplementedError

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        points = self._points(X)
        values = np.empty((points.shape[0], self._a.shape[1]))
        for rows in blocks(points.shape[0], 8 * self._X.shape[0]):
            values[rows] = self._kernel(points[rows], self._X) @ self._a + self._bias
        return self._scheme.scores(values)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points."""
        return self._named(self.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LapRLS(_Manifold):
    """Laplacian regularised least squares: a kernel machine that is smooth on a graph.

    Labels of -1 mark points without label. Classes have targets -1 and +1, each against the rest.

    Parameters
    ----------
    kernel
        The kernel: "rbf", "linear", "poly", one of `klopt.learners.kernels`, or a function of two
        sets of points.
    gamma_ambient
        The penalty of ||f||^2, the norm of the kernel.
    gamma_intrinsic
        The penalty of f'Mf / n^2, the roughness on the graph; None for 1000 times the share of
        points without label, and at least 10.
    n_neighbors
        The number of nearest neighbours of a point in the graph.
    weights
        The weights of the edges, "binary" or "gaussian".
    power
        The power of the normalised Laplacian that measures roughness.
    unlabelled
        The label of points without label; None where every point has one.
    class_weight
        The weights of the classes: None, "balanced", or {class: weight}.

    Attributes
    ----------
    classes_
        The class labels.
    transduction_
        The predicted classes of the training points.

    Notes
    -----
    It minimises the mean of (f(x_i) - y_i)^2 over the labelled points + gamma_ambient ||f||^2 +
    gamma_intrinsic f'Mf / n^2, M a power of the normalised graph Laplacian: a linear system. No
    kernel is learned, and nothing is certified.

    References
    ----------
    Belkin, Niyogi, Sindhwani, Manifold regularization: a geometric framework for learning from
    labeled and unlabeled examples, Journal of Machine Learning Research, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> learner = LapRLS().fit((X - X.mean(axis=0)) / X.std(axis=0), few)
    >>> bool(np.mean(learner.transduction_ == y) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma_ambient: float = 1e-3,
        gamma_intrinsic: float | None = None,
        n_neighbors: int = 5,
        weights: Weights = "gaussian",
        power: int = 1,
        unlabelled: Unlabelled = -1,
        class_weight: ClassWeight = None,
    ) -> None:
        self.kernel = kernel
        self.gamma_ambient = gamma_ambient
        self.gamma_intrinsic = gamma_intrinsic
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.power = power
        self.unlabelled = unlabelled
        self.class_weight = class_weight

    def _coefficients(
        self, K: FloatArray, codes: Codes, weights: FloatArray, ridge: float
    ) -> tuple[FloatArray, FloatArray]:
        """c = (K~ + ridge W^-1)^-1 Y, the solution of the normal equations."""
        models = range(len(self._scheme.pairs))
        Y = np.column_stack([self._scheme.signs(codes, model) for model in models])
        system = K + np.diag(ridge / weights)
        return np.asarray(np.linalg.solve(system, Y), dtype=float), np.zeros(Y.shape[1])


class LapSVM(_Manifold):
    """The Laplacian support vector machine: a margin that is smooth on a graph.

    Labels of -1 mark points without label.

    Parameters
    ----------
    kernel, gamma_ambient, gamma_intrinsic, n_neighbors, weights, power, unlabelled, class_weight
        As in `LapRLS`.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.

    Attributes
    ----------
    classes_, transduction_
        As in `LapRLS`.

    Notes
    -----
    It minimises the mean hinge loss of the labelled points + gamma_ambient ||f||^2 +
    gamma_intrinsic f'Mf / n^2, M a power of the normalised graph Laplacian, by LIBSVM with a
    deformed kernel. No kernel is learned, and nothing is certified.

    References
    ----------
    Belkin, Niyogi, Sindhwani, Manifold regularization: a geometric framework for learning from
    labeled and unlabeled examples, Journal of Machine Learning Research, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> learner = LapSVM().fit((X - X.mean(axis=0)) / X.std(axis=0), few)
    >>> bool(np.mean(learner.transduction_ == y) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma_ambient: float = 1e-3,
        gamma_intrinsic: float | None = None,
        n_neighbors: int = 5,
        weights: Weights = "gaussian",
        power: int = 1,
        multi_class: MultiClass = "ovr",
        unlabelled: Unlabelled = -1,
        class_weight: ClassWeight = None,
    ) -> None:
        self.kernel = kernel
        self.gamma_ambient = gamma_ambient
        self.gamma_intrinsic = gamma_intrinsic
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.power = power
        self.multi_class = multi_class
        self.unlabelled = unlabelled
        self.class_weight = class_weight

    def _coefficients(
        self, K: FloatArray, codes: Codes, weights: FloatArray, ridge: float
    ) -> tuple[FloatArray, FloatArray]:
        """Those of LIBSVM, which minimises ||f||^2 / 2 + C sum_i w_i loss_i."""
        # C belongs to a kernel whose diagonal has mean 1.
        C = float(K.diagonal().mean()) / (2 * ridge)
        return support_vector_machines(K, codes, self._scheme, C, weights)


class Harmonic(GraphClassifier):
    """The harmonic function of a graph: every point takes the mean of its neighbours.

    Labels of -1 mark points without label. Scores are the probabilities that a random walk from a
    point meets each class first; given labels are kept.

    Parameters
    ----------
    graph
        "knn" for the graph of nearest neighbours, "precomputed" where X holds its weights.
    n_neighbors
        The number of nearest neighbours of a point.
    weights
        The weights of the edges, "binary" or "gaussian".
    extension
        How values are carried to new points: "kernel" for kernel ridge regression, "neighbours"
        for the mean of the nearest training points.
    unlabelled
        The label of points without label; None where every point has one.

    Attributes
    ----------
    classes_
        The class labels.
    transduction_
        The predicted classes of the training points.

    Notes
    -----
    The function equals the labels where they are known; elsewhere it is the weighted mean of its
    neighbours. `predict_proba` has the probabilities that a random walk on the graph first meets a
    label of each class. Nothing is optimised, and nothing is certified.

    References
    ----------
    Zhu, Ghahramani, Lafferty, Semi-supervised learning using Gaussian fields and harmonic
    functions, International Conference on Machine Learning, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> few = np.where(np.arange(150) % 10 == 0, y, -1)
    >>> learner = Harmonic().fit(X, few)
    >>> bool(np.mean(learner.transduction_ == y) > 0.9)
    True
    >>> learner.predict_proba(X[:1]).round(3) + 0.0
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        *,
        graph: str = "knn",
        n_neighbors: int = 5,
        weights: Weights = "gaussian",
        extension: Extension = "kernel",
        unlabelled: Unlabelled = -1,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.extension = extension
        self.unlabelled = unlabelled

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels over the graph."""
        W, codes = self._graph_of(X, y)
        self._probabilities = self._spread(W, codes)
        scheme = MulticlassScheme(self.classes_.size, "ovr")
        values = self._probabilities
        # Two classes have one score, positive for the second.
        if self.classes_.size == 2:
            values = values[:, 1:] - values[:, :1]
        self._carried_probabilities = self._carrier_of(self._probabilities, scheme)
        return self._decide(values, scheme)

    def _spread(self, W: SparseMatrix, codes: Codes) -> FloatArray:
        """The probabilities at all points; where no walk meets a label, the shares of the labels."""
        _, component = connected_components(W, directed=False)
        reached = np.flatnonzero(np.isin(component, component[codes >= 0]))
        scores = np.tile(np.bincount(codes[codes >= 0]).astype(float), (codes.size, 1))
        if reached.size < codes.size:
            warnings.warn(
                f"{codes.size - reached.size} of {codes.size} points have no way to a labelled point "
                "and get the shares of the labels; take more neighbours, or label a point of each "
                "component",
                UserWarning,
                stacklevel=3,
            )
        among = csc("W", W.tocsr()[reached][:, reached])
        scores[reached] = np.maximum(harmonic(among, codes[reached]).values, 0.0)
        return cast(FloatArray, scores / scores.sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability that a random walk meets each class first."""
        check_is_fitted(self)
        found = np.maximum(self._at(X, self._carried_probabilities), 0.0)
        return cast(FloatArray, found / found.sum(axis=1, keepdims=True))
