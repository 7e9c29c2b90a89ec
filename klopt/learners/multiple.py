"""MKL: support vector machines and ridge regressions that learn the weights of their kernels.

Each model of `klopt.problems.MultipleKernel` has weights of its own; several classes are several
models. A new point costs one row of each kernel that some model uses, on the support vectors
only.

Kernels of different size are not comparable (for "block-l1" a larger one is a better one): each is
divided by the mean of its diagonal on the training points, unless `normalize=False`.

There are two regressions. `MklSVR` has the epsilon-insensitive loss and a bias: with one kernel it
is scikit-learn's `SVR`. `MklRidge` has the squared loss: with one kernel it is scikit-learn's
`KernelRidge(alpha=1/C)` of the values less their mean.

Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from multiple
similarity matrices with general convex loss functions, 2010, (5) and (10).
"""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from klopt.arrays import FloatArray, sound_sparse
from klopt.engine.result import Result
from klopt.learners._base import ClassWeight, entries, part
from klopt.learners._multiclass import MultiClass
from klopt.learners._stacked import Columns, Matrices, StackClassifier, StackLearner
from klopt.model.backend import Backend
from klopt.model.problem import Problem
from klopt.problems.multiple_kernel import MultipleKernel, Norm

__all__ = ["MklRidge", "MklSVC", "MklSVR"]


class _KernelMixture(StackLearner):
    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        norm: Norm = 1.2,
        normalize: bool = True,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.norm = norm
        self.normalize = normalize
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    @property
    def _sources(self) -> Any:
        return self.kernels

    def _matrices(self, X: FloatArray, weights: FloatArray) -> Matrices:
        return self._grams(super()._matrices(X, weights))

    @property
    def weights_(self) -> FloatArray:
        """The weights of the kernels (models x kernels)."""
        return np.array([cast(Any, result.point).weights for result in self.results_])

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points; with several models, models last."""
        mixing = self.weights_ / self.scales_
        matrices = [entries(K) for K in self._on_training_points()]
        found = np.zeros((*matrices[0].shape, len(mixing)))
        for K, weights in zip(matrices, mixing.T, strict=True):
            found += K[:, :, None] * weights
        return found[:, :, 0] if len(mixing) == 1 else found


class MklSVC(StackClassifier, _KernelMixture):
    """A support vector machine with the best mixture of kernels.

    Parameters
    ----------
    kernels
        A list from `klopt.learners.kernels` (None: three Gaussian ones), or "precomputed", where X
        is a stack of shape (points, training points, kernels), kernels last.
    C
        The penalty of the margin violations.
    norm
        "block-l1" (few kernels are used), "block-linf" (all are) or a number p > 1, which is the
        fastest: below 2 it is in between, 2 is the plain sum of the kernels, and a larger p gives
        the less useful kernels the larger weights.
    normalize
        Divide each kernel by the mean of its diagonal on the training points.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.
    class_weight
        The weights of the classes, which multiply C: None, "balanced", or {class: weight}.
    backend
        The solver, or None for the planned ones.
    tol
        The relative gap up to which the optimum is certified.
    time_limit
        Seconds that a solver may take for one model; None for no limit.
    n_jobs
        How many models are solved at a time, in processes; None for 1, -1 for all processors.
        The models are the same.

    Attributes
    ----------
    classes_
        The class labels.
    weights_
        One row per model, one column per kernel, of the kernels divided by `scales_`.
    scales_, kernel_names_
        The divisors and the names of the kernels.
    result_, results_
        The result with the largest relative gap, and those of all models.
    kernel_
        The learned kernel matrix of the training points.

    Notes
    -----
    The support vector machine has the kernel sum_i d_i K_i; its weights d are learned with it, in
    one convex problem whose optimum is proven. With p = `norm` it penalises (sum_i
    ||f_i||^p)^(2/p), f_i the part of the function in the space of kernel i. A point of weight 2 is
    two points at one place.

    References
    ----------
    Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
    multiple similarity matrices with general convex loss functions, Advances in Neural Information
    Processing Systems 23, 2010, (5) and (10).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from klopt.learners.kernels import linear, rbf
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> learner = MklSVC([linear(), rbf(["0.5 scale", "2 scale"])]).fit(X[:200], y[:200])
    >>> learner.kernel_names_, learner.weights_.shape, learner.score(X[200:], y[200:]) > 0.95
    (['linear', 'rbf(0.5 scale)', 'rbf(2 scale)'], (1, 3), True)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        norm: Norm = 1.2,
        normalize: bool = True,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            kernels,
            C=C,
            norm=norm,
            normalize=normalize,
            backend=backend,
            tol=tol,
            time_limit=time_limit,
        )
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def _posed(self, matrices: Matrices, signs: FloatArray, weights: FloatArray) -> Problem:
        return MultipleKernel(matrices, signs, self.C * weights, norm=self.norm)

    @property
    def _columns(self) -> Columns:
        return _of_signs


class _MixtureRegressor(RegressorMixin, _KernelMixture):  # type: ignore[misc]
    """A regression with the best mixture of kernels."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the regression and its kernel.

        Parameters
        ----------
        X, y
            Points, or kernels, and their values.
        sample_weight
            What multiplies C of each point.
        """
        if sparse.issparse(X):
            sound_sparse("X", X)
        checks = {
            "y_numeric": True,
            "ensure_min_samples": 2,
            "allow_nd": self._is_precomputed,
            "accept_sparse": self._accepts_sparse,
        }
        X, y = validate_data(self, X, y, dtype=np.float64, **checks)
        weights = self._checked_weights(sample_weight, X)
        matrices = self._matrices(X, weights)
        used = np.flatnonzero(weights > 0)
        if used.size < weights.size:
            matrices = [part(K, used) for K in matrices]
        return self._fit_values(matrices, np.asarray(y, dtype=float)[used], weights[used], used)

    def _fit_values(
        self,
        matrices: Matrices,
        y: FloatArray,
        weights: FloatArray,
        used: npt.NDArray[np.intp],
    ) -> Self:
        raise NotImplementedError

    @property
    def _columns(self) -> Columns:
        return _of_values

    def predict(self, X: Any) -> FloatArray:
        """Return the values at points."""
        check_is_fitted(self)
        return self._values(X)[:, 0]


class MklRidge(_MixtureRegressor):
    """Ridge regression with the best mixture of kernels.

    Parameters
    ----------
    kernels, norm, normalize, backend, tol, time_limit
        As in `MklSVC`.
    C
        The penalty of the squared residuals.

    Attributes
    ----------
    weights_, scales_, kernel_names_, result_, kernel_
        As in `MklSVC`.

    Notes
    -----
    The kernel is sum_i d_i K_i with learned weights d. With one kernel it is scikit-learn's
    `KernelRidge(alpha=1/C)` of the values less their mean.

    References
    ----------
    Cortes, Mohri, Rostamizadeh, L2 regularization for learning kernels, Uncertainty in Artificial
    Intelligence, 2009.

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> learner = MklRidge(C=100.0).fit(X, np.sin(X.ravel()))
    >>> learner.result_.verdict.name, learner.score(X + 0.05, np.sin(X.ravel() + 0.05)) > 0.95
    ('OPTIMAL', True)
    """

    def _fit_values(
        self,
        matrices: Matrices,
        y: FloatArray,
        weights: FloatArray,
        used: npt.NDArray[np.intp],
    ) -> Self:
        mean = float(np.average(y, weights=weights))
        targets = y - mean
        result = self._certified(self._posed(matrices, targets, weights))
        return self._keep([result], [(used, targets)], np.array([mean]))

    def _posed(self, matrices: Matrices, targets: FloatArray, weights: FloatArray) -> Problem:
        return MultipleKernel(matrices, targets, self.C * weights, "squared", self.norm)


class MklSVR(_MixtureRegressor):
    """Support vector regression with the best mixture of kernels.

    Parameters
    ----------
    kernels, norm, normalize, backend, tol, time_limit
        As in `MklSVC`.
    C
        The penalty of the residuals beyond `epsilon`.
    epsilon
        Residuals up to this size cost nothing.

    Attributes
    ----------
    weights_, scales_, kernel_names_, result_, kernel_
        As in `MklSVC`.

    Notes
    -----
    The kernel is sum_i d_i K_i with learned weights d. With one kernel it is scikit-learn's `SVR`.

    References
    ----------
    Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
    multiple similarity matrices with general convex loss functions, Advances in Neural Information
    Processing Systems 23, 2010, (5).

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> learner = MklSVR(C=100.0, epsilon=0.01).fit(X, np.sin(X.ravel()))
    >>> learner.result_.verdict.name, learner.score(X + 0.05, np.sin(X.ravel() + 0.05)) > 0.95
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        norm: Norm = 1.2,
        normalize: bool = True,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            kernels,
            C=C,
            norm=norm,
            normalize=normalize,
            backend=backend,
            tol=tol,
            time_limit=time_limit,
        )
        self.epsilon = epsilon

    def _fit_values(
        self,
        matrices: Matrices,
        y: FloatArray,
        weights: FloatArray,
        used: npt.NDArray[np.intp],
    ) -> Self:
        result = self._certified(self._posed(matrices, y, weights))
        bias = float(cast(Any, result.point).bias)
        return self._keep([result], [(used, y)], np.array([bias]))

    def _posed(self, matrices: Matrices, targets: FloatArray, weights: FloatArray) -> Problem:
        C = self.C * weights
        return MultipleKernel(matrices, targets, C, "epsilon", self.norm, self.epsilon)


def _of_signs(result: Result, signs: FloatArray) -> FloatArray:
    """a_i = y_i alpha_i times the weight of each kernel."""
    point = cast(Any, result.point)
    return np.outer(signs * point.alpha, point.weights)


def _of_values(result: Result, targets: FloatArray) -> FloatArray:
    point = cast(Any, result.point)
    return np.outer(point.alpha, point.weights)
