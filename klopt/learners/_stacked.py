"""Models with several kernels or similarities, from points or from a stack of matrices.

A model decides by sum_i s_i(x)'b_i + bias, s_i(x) the values of kernel i between x and the
training points. A learner adds two methods: `_posed` states the problem of one model from the
matrices of the points that it uses and their signs or values, and `_columns` computes the b_i from
the solution, on demand. The problems of several models are independent: `n_jobs` of them are solved
at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from klopt.arrays import FloatArray
from klopt.engine.result import Result
from klopt.kernels.gram import Gram
from klopt.kernels.rbf import gaussians
from klopt.learners._base import PRECOMPUTED, Classifier, Learner, entries, part
from klopt.learners._multiclass import MultiClass, MulticlassScheme
from klopt.learners.kernels import Kernel, Radial, blocks, flat, rbf
from klopt.model.problem import Problem

__all__ = ["DEFAULT_GAMMAS", "Columns", "Matrices", "StackClassifier", "StackLearner"]

Matrices = list[Any]
"""Kernels on the training points, as arrays or, where they were checked, as `Gram`."""

Part = tuple[npt.NDArray[np.intp], FloatArray]
"""The points that a model uses, and their signs or values."""

Columns = Callable[[Result, FloatArray], FloatArray]

DEFAULT_GAMMAS = ("0.25 scale", "scale", "4 scale")
"""gamma of the Gaussian kernels that are the default."""


@dataclass(frozen=True, eq=False)
class _KernelModels:
    """What new points need of the models: computed when it is first used."""

    results: tuple[Result, ...]
    parts: tuple[Part, ...]
    columns: Columns
    scales: FloatArray
    size: int

    @cached_property
    def coefficients(self) -> FloatArray:
        """The b_i, of kernels that are not scaled (points x kernels x models)."""
        found = np.zeros((self.size, self.scales.size, len(self.results)))
        for model, (result, (used, targets)) in enumerate(
            zip(self.results, self.parts, strict=True)
        ):
            found[used, :, model] = self.columns(result, targets)
        return found / self.scales[:, None]

    @cached_property
    def support(self) -> npt.NDArray[np.intp]:
        """The points that have coefficients."""
        return np.flatnonzero(self.coefficients.any(axis=(1, 2)))


class StackLearner(Learner):
    """A learner of models with several kernels."""

    normalize: bool
    result_: Result
    results_: tuple[Result, ...]
    kernel_names_: list[str]
    scales_: FloatArray

    @property
    def _sources(self) -> Any:
        """The parameter that names the kernels."""
        raise NotImplementedError

    def _posed(self, matrices: Matrices, targets: FloatArray, weights: FloatArray) -> Problem:
        """Return the problem of one model, whose points have weights."""
        raise NotImplementedError

    @property
    def _columns(self) -> Columns:
        """The function that makes the columns b_i from the result of a model and its targets."""
        raise NotImplementedError

    def _keep(self, results: list[Result], parts: list[Part], bias: FloatArray) -> Self:
        """Keep the results of the models, their points with signs or values, and their biases."""
        self.results_ = tuple(results)
        # The result with the largest relative gap stands for all.
        self.result_ = max(results, key=lambda result: result.certificate.relative_gap)
        self._bias = bias
        self._models = _KernelModels(
            self.results_, tuple(parts), self._columns, self.scales_, self._X.shape[0]
        )
        return self

    @property
    def support_(self) -> npt.NDArray[np.intp]:
        """The training points that new points are compared with."""
        return self._models.support

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self._sources, str) and self._sources == PRECOMPUTED

    def _matrices(self, X: FloatArray, weights: FloatArray) -> Matrices:
        """The kernels on the training points, each divided by its scale."""
        self._X = X
        if not self._is_precomputed:
            given = flat(rbf(DEFAULT_GAMMAS) if self._sources is None else self._sources)
            self.kernel_names_ = [kernel.name for kernel in given]
            names = getattr(self, "feature_names_in_", None)
            self._kernels: list[Kernel] = [
                kernel.fix(X, names, _unless_equal(weights)) for kernel in given
            ]
        matrices = self._on_training_points()
        if self._is_precomputed:
            self.kernel_names_ = [f"kernel {index}" for index in range(len(matrices))]
        self.scales_ = np.ones(len(matrices))
        if self.normalize:
            # The diagonal of an indefinite similarity may be negative, that of a zero matrix is 0.
            counted = _unless_equal(weights)
            means = [np.average(np.abs(entries(K).diagonal()), weights=counted) for K in matrices]
            self.scales_ = np.array([float(mean) or 1.0 for mean in means])
        return [
            K if scale == 1.0 else entries(K) / scale
            for K, scale in zip(matrices, self.scales_, strict=True)
        ]

    def _grams(self, matrices: Matrices) -> Matrices:
        """The matrices as checked kernels; rounding of kernels known to be positive is clipped."""
        own = self._is_precomputed
        repairs = [None] * len(matrices) if own else [kernel.repair() for kernel in self._kernels]
        return [Gram.of(*each) for each in zip(matrices, self.kernel_names_, repairs, strict=True)]

    def _on_training_points(self) -> Matrices:
        X = self._X
        if not self._is_precomputed:
            return _among(X, self._kernels)
        stacked = X[:, :, None] if X.ndim == 2 else X
        if stacked.ndim != 3 or stacked.shape[0] != stacked.shape[1]:
            hint = ""
            if X.ndim == 3 and X.shape[1] == X.shape[2]:
                hint = "; kernels come last: np.moveaxis(X, 0, -1)"
            raise ValueError(
                f"precomputed kernels have the shape (n, n, kernels); X has {X.shape}{hint}"
            )
        return [np.ascontiguousarray(stacked[:, :, index]) for index in range(stacked.shape[2])]

    def _stacked(self, X: Any) -> FloatArray:
        """Kernels of new and training points."""
        X = validate_data(self, X, reset=False, dtype=np.float64, allow_nd=True)
        stacked = X[:, :, None] if X.ndim == 2 else X
        if stacked.shape[2] != self.scales_.size:
            raise ValueError(
                f"X has {stacked.shape[2]} kernels; the model was fitted with {self.scales_.size}"
            )
        return cast(FloatArray, stacked)

    def _values(self, X: Any) -> FloatArray:
        """The values at the rows of X (points x models)."""
        b = self._models.coefficients[self.support_]
        if self._is_precomputed:
            seen = self._stacked(X)[:, self.support_]
            return np.asarray(np.tensordot(seen, b, axes=([1, 2], [0, 1])) + self._bias)
        points = self._points(X)
        support = self._X[self.support_]
        values = np.tile(self._bias, (points.shape[0], 1))
        for index in np.flatnonzero(b.any(axis=(0, 2))):
            for rows in blocks(points.shape[0], 8 * support.shape[0]):
                values[rows] += self._kernels[index](points[rows], support) @ b[:, index]
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = tags.input_tags.three_d_array = self._is_precomputed
        return tags


class StackClassifier(Classifier, StackLearner):
    """A learner of classes by models with several kernels."""

    multi_class: MultiClass

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the models and their kernels.

        Parameters
        ----------
        X, y
            Points, or kernels, and their labels.
        sample_weight
            What multiplies C of each point.
        """
        X, self._codes = self._labelled(X, y, unlabelled=False, allow_nd=self._is_precomputed)
        weights = self._point_weights(sample_weight, X, self._codes)
        matrices = self._matrices(X, weights)
        self._scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        parts = []
        for model in range(len(self._scheme.pairs)):
            signs = self._scheme.signs(self._codes, model)
            used = np.flatnonzero((signs != 0) & (weights > 0))
            parts.append((used, signs[used]))

        # A generator: with one job there is no more than one problem at a time.
        results = self._certified_each(
            self._posed(_cut(matrices, used, len(weights)), signs, weights[used])
            for used, signs in parts
        )
        bias = [float(cast(Any, result.point).bias) for result in results]
        return self._keep(results, parts, np.array(bias))

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        return self._scheme.scores(self._values(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points."""
        return self._named(self.decision_function(X))


def _cut(matrices: Matrices, used: npt.NDArray[np.intp], size: int) -> Matrices:
    """The matrices of some of so many points."""
    return matrices if used.size == size else [part(K, used) for K in matrices]


def _unless_equal(weights: FloatArray) -> FloatArray | None:
    """The weights, or None where all are equal: then they change no mean."""
    return None if (weights == weights[0]).all() else weights


def _among(X: FloatArray, kernels: list[Kernel]) -> Matrices:
    """The kernels among points; Gaussian ones of the same columns share the distances."""
    families: dict[str, list[Radial]] = {}
    for kernel in kernels:
        if isinstance(kernel, Radial):
            families.setdefault(str(kernel.columns), []).append(kernel)
    found: dict[int, Gram] = {}
    for family in families.values():
        shared = gaussians(family[0].seen(X), [cast(float, kernel.gamma) for kernel in family])
        found |= {
            id(kernel): Gram.gaussian(*each) for kernel, each in zip(family, shared, strict=True)
        }
    return [found[id(kernel)] if id(kernel) in found else kernel(X) for kernel in kernels]
