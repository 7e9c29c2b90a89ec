"""Kernels and features made of given similarities in one step: what learned mixtures have to beat.

    aligned_weights        the weights, ordered or not, whose mixture is best aligned with a target
    alternating_weights    weights in a ball for ridge regression, by turns with its coefficients
    SimilarityFeatures     the similarities to the training points as features of a point

Alignment of K = sum_i w_i K_i with a target T, over w >= 0, ordered w_1 >= sigma w_2 >= .. where
kernels come from smooth to rough as in (15) of Xie et al. (2017): the direction of

    minimise  w'N w / 2 - t'w    over those w,        N_ij = <K_i, K_j>,    t_i = <K_i, T>

is the best one, as alignment does not depend on the length of w. It is solved as a quadratic
program of klopt, so that its optimum is proven.

Alternating weights are those of Cortes, Mohri and Rostamizadeh (2009): minimise over w >= 0,
||w - c|| <= radius, the optimal value of kernel ridge regression with the kernel sum_i w_i K_i,

    a = (sum_i w_i K_i + ridge I)^-1 y,      v_i = a'K_i a,      w = c + radius v / ||v||,

by turns, each new a mixed with the last one. With c = 0 and one column y it is `MklRidge` with the
exponent 4/3, whose optimum is proven.

Xie, Ding, Gong, Wu, Rank ordering constraints elimination with application for kernel learning, 2017.
Cortes, Mohri, Rostamizadeh, L2 regularization for learning kernels, 2009. Kundu et al. (2010), Table
3, has a linear support vector machine on similarities as features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from klopt.arrays import FloatArray, matrix, positive, symmetric, vector
from klopt.engine.pipeline import solve
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, NotCertified
from klopt.kernels.gram import Gram
from klopt.learners._base import PRECOMPUTED
from klopt.learners.kernels import Kernel, flat, rbf
from klopt.problems.qcqp import QCQP

__all__ = ["AlignedWeights", "SimilarityFeatures", "aligned_weights", "alternating_weights"]

MAX_TURNS = 10_000
"""Turns after which alternating weights are given up."""


@dataclass(frozen=True, eq=False)
class AlignedWeights:
    """The weights of a mixture, its alignment with the target, and the proven quadratic program."""

    weights: FloatArray
    """Of sum 1."""
    alignment: float
    result: Result


def aligned_weights(
    kernels: Sequence[object],
    target: object,
    *,
    ordered: bool = True,
    sigma: float = 1.0,
    tol: float = 1e-8,
) -> AlignedWeights:
    """Return the weights of kernels whose mixture is best aligned with a target.

    Parameters
    ----------
    kernels
        Kernel matrices of the same points; with `ordered`, the one to trust most first.
    target
        The matrix to be aligned with, such as `klopt.kernels.alignment.ideal_kernel(labels)`.
    ordered
        Whether w_i >= sigma w_{i+1}; otherwise weights are only not negative.
    sigma
        The ratio of the order, at least 1.
    tol
        The relative gap up to which the optimum is certified.

    >>> smooth, rough = np.ones((2, 2)), np.eye(2)
    >>> found = aligned_weights([smooth, rough], [[1.0, -1.0], [-1.0, 1.0]])
    >>> found.weights.round(6), round(found.alignment, 6)
    (array([0.5, 0.5]), 0.316228)
    >>> aligned_weights([smooth, rough], np.eye(2), ordered=False).weights.round(6) + 0.0
    array([0., 1.])
    """
    matrices = [_symmetric(f"kernels[{i}]", K) for i, K in enumerate(kernels)]
    if not matrices:
        raise InvalidProblem("kernels is empty; give one kernel at least")
    T = _symmetric("target", target)
    for i, K in enumerate(matrices):
        if K.shape != T.shape:
            raise InvalidProblem(
                f"kernels[{i}] is {len(K)} x {len(K)} and target is {len(T)} x {len(T)}; "
                "expected matrices of the same points"
            )
    sizes = np.array([np.linalg.norm(K) for K in matrices])
    size = float(np.linalg.norm(T))
    if not (size and sizes.all()):
        raise InvalidProblem("a kernel or the target is zero; it has no direction")

    # Kernels of norm 1: the order is kept by the rows, whose coefficients have the norms.
    units = [K / length for K, length in zip(matrices, sizes, strict=True)]
    N = np.array([[float(np.vdot(A, B)) for B in units] for A in units])
    t = np.array([float(np.vdot(A, T)) for A in units]) / size
    m = len(units)
    rows = None
    if ordered and m > 1:
        sigma = positive("sigma", sigma)
        # sigma w_{i+1} - w_i <= 0 for w = u / norm.
        rows = np.zeros((m - 1, m))
        steps = np.arange(m - 1)
        rows[steps, steps] = -1 / sizes[:-1]
        rows[steps, steps + 1] = sigma / sizes[1:]
        rows /= np.abs(rows).max(axis=1, keepdims=True)
    problem = QCQP(
        N, -t, A_ub=rows, b_ub=None if rows is None else np.zeros(m - 1), bounds=(0, None)
    )
    result = solve(problem, tol=tol)
    if result.point is None:
        raise NotCertified(f"no weights were found\\n{result.explain()}")
    u = np.maximum(result.point.x, 0.0)
    # Where no mixture has a positive inner product with the target the best one is the least bad.
    if not t @ u > 0:
        raise InvalidProblem("no mixture of these kernels has a positive alignment with the target")
    w = u / sizes
    return AlignedWeights(w / w.sum(), float(t @ u / np.sqrt(u @ N @ u)), result)


def alternating_weights(
    kernels: Sequence[object],
    y: npt.ArrayLike,
    *,
    ridge: float = 1.0,
    radius: float = 1.0,
    centre: npt.ArrayLike | None = None,
    mixing: float = 0.5,
    tol: float = 1e-10,
) -> tuple[FloatArray, FloatArray]:
    """Return weights and coefficients of the alternating algorithm of Cortes et al. (2009).

    Nothing is certified: `klopt.problems.MultipleKernel` with the squared loss proves its optimum.

    Parameters
    ----------
    kernels
        Kernel matrices of the training points.
    y
        Their values.
    ridge
        What is added to the diagonal of the kernel.
    radius
        How far weights may be from the centre.
    centre
        Weights that are not negative; None for zeros.
    mixing
        The share of the last coefficients in the next ones, from 0 to 1.
    tol
        The relative change of the coefficients at which the turns end.

    >>> w, a = alternating_weights([np.eye(2), np.ones((2, 2))], [1.0, -1.0])
    >>> w.round(6), a.round(6)
    (array([1., 0.]), array([ 0.5, -0.5]))
    """
    matrices = np.array([_symmetric(f"kernels[{i}]", K) for i, K in enumerate(kernels)])
    values = vector("y", y, matrices.shape[1])
    ridge = positive("ridge", ridge)
    radius = positive("radius", radius)
    middle = np.zeros(len(matrices)) if centre is None else vector("centre", centre, len(matrices))
    if (middle < 0).any() or not 0 <= mixing < 1:
        raise InvalidProblem(
            f"centre is {middle.tolist()} and mixing is {mixing}; expected weights that are not "
            "negative and a share from 0 up to below 1"
        )
    diagonal = ridge * np.eye(values.size)
    weights = middle + radius / np.sqrt(len(matrices))
    a = np.linalg.solve(np.tensordot(weights, matrices, 1) + diagonal, values)
    for _ in range(MAX_TURNS):
        v = np.maximum(np.einsum("i,kij,j->k", a, matrices, a), 0.0)
        length = float(np.linalg.norm(v))
        # No kernel sees the coefficients: all weights are as good.
        weights = middle + radius * v / length if length else middle
        best = np.linalg.solve(np.tensordot(weights, matrices, 1) + diagonal, values)
        change = float(np.linalg.norm(best - a))
        if change <= tol * float(np.linalg.norm(best)):
            return weights, np.asarray(best)
        a = mixing * a + (1 - mixing) * best
    raise NotCertified(f"the weights still change after {MAX_TURNS} turns; raise mixing or ridge")


class SimilarityFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The similarities of a point to the training points as its features.

    Any model may follow, such as a linear support vector machine; the similarities need be neither
    symmetric nor positive semidefinite.

    Parameters
    ----------
    similarities
        A list from `klopt.learners.kernels`, which may hold functions that are no kernels (None:
        one Gaussian kernel), or "precomputed", where X is a matrix of similarities to the training
        points, or a stack of them, similarities last.

    Attributes
    ----------
    n_features_out_
        The number of features: similarities times training points.

    Notes
    -----
    The similarities to n training points are n features. Training points are their own neighbours,
    so that features of a training point and of a new one may differ in kind: standardise them, and
    choose penalties by cross-validation.

    References
    ----------
    Chen, Garcia, Gupta, Rahimi, Cazzanti, Similarity-based classification: concepts and algorithms,
    Journal of Machine Learning Research, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(SimilarityFeatures(), LinearSVC()).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(self, similarities: Any = None) -> None:
        self.similarities = similarities

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.similarities, str) and self.similarities == PRECOMPUTED

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the points that others are compared with."""
        points = validate_data(self, X, dtype=np.float64, allow_nd=self._is_precomputed)
        self._columns = points.shape[1:]
        self._names: list[str] = [""]
        if self._is_precomputed:
            depth = 1 if points.ndim == 2 else points.shape[2]
            if depth > 1:
                self._names = [f"similarity {index} " for index in range(depth)]
            self.n_features_out_ = points.shape[1] * depth
            return self
        given = flat(rbf() if self.similarities is None else self.similarities)
        names = getattr(self, "feature_names_in_", None)
        self._kernels: list[Kernel] = [kernel.fix(points, names) for kernel in given]
        self._X = points
        if len(given) > 1:
            self._names = [f"{kernel.name} " for kernel in given]
        self.n_features_out_ = len(points) * len(given)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return one column for each similarity to each training point."""
        check_is_fitted(self)
        points = validate_data(
            self, X, reset=False, dtype=np.float64, allow_nd=self._is_precomputed
        )
        if not self._is_precomputed:
            return np.hstack([kernel(points, self._X) for kernel in self._kernels])
        if points.shape[1:] != self._columns:
            raise ValueError(
                f"X has the shape {points.shape}; expected similarities of shape "
                f"(points, {', '.join(map(str, self._columns))})"
            )
        if points.ndim == 2:
            return cast(FloatArray, points)
        return np.hstack(list(np.moveaxis(points, 2, 0)))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns: the similarity, and the number of the training point."""
        check_is_fitted(self)
        count = self.n_features_out_ // len(self._names)
        return np.array(
            [f"{name}to {point}" for name in self._names for point in range(count)], dtype=object
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.three_d_array = self._is_precomputed
        return tags


def _symmetric(name: str, K: object) -> FloatArray:
    return K.matrix if isinstance(K, Gram) else symmetric(name, matrix(name, K))
