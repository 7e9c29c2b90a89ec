"""Several classes by binary models: each class against each other, or each against the rest.

    "ovo"   k (k - 1) / 2 models, one per pair of classes; each votes, sums of values break ties
    "ovr"   k models; the largest value wins

Two classes are one model either way. A model has coefficients a of the training points and a
bias b; its value at x is sum_i a_i k(x_i, x) + b, so that all models decide at many points by one
product of matrices.

Pan et al. (2016) use the first scheme, Mao and Tsang (2010) the second for the methods they compare
with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, positive
from klopt.errors import InvalidProblem

__all__ = ["MultiClass", "MulticlassScheme", "support_vector_machines"]

MultiClass = Literal["ovo", "ovr"]


@dataclass(frozen=True)
class MulticlassScheme:
    """The problems of two classes that k classes make.

    >>> MulticlassScheme(3, "ovo").pairs
    ((0, 1), (0, 2), (1, 2))
    >>> MulticlassScheme(3, "ovr").signs(np.array([0, 1, 2, -1]), 1)
    array([-1.,  1., -1.,  0.])
    """

    classes: int
    kind: MultiClass

    def __post_init__(self) -> None:
        if self.kind not in get_args(MultiClass):
            raise InvalidProblem(
                f"multi_class is {self.kind!r}; expected one of {', '.join(get_args(MultiClass))}"
            )

    @property
    def by_votes(self) -> bool:
        """Whether models vote."""
        return self.kind == "ovo" and self.classes > 2

    @cached_property
    def pairs(self) -> tuple[tuple[int | None, int], ...]:
        """The class of -1, None for the rest, and the class of +1 of each model."""
        if self.classes == 2:
            return ((0, 1),)
        if self.kind == "ovr":
            return tuple((None, plus) for plus in range(self.classes))
        return tuple(combinations(range(self.classes), 2))

    def signs(self, codes: npt.NDArray[np.int64], model: int) -> FloatArray:
        """Return +1, -1, or 0 for points that the model does not use."""
        minus, plus = self.pairs[model]
        others = (codes >= 0) & (codes != plus) if minus is None else codes == minus
        return np.where(codes == plus, 1.0, np.where(others, -1.0, 0.0))

    def scores(self, values: FloatArray) -> FloatArray:
        """Return one score per class from one value per model; for two classes one number."""
        if self.classes == 2:
            return values[:, 0]
        # One model per class: its value is the score.
        if not self.by_votes:
            return values
        sides = np.zeros((len(self.pairs), self.classes))
        for model, (minus, plus) in enumerate(self.pairs):
            sides[model, plus] = 1.0
            sides[model, minus] = -1.0
        votes = (values > 0) @ np.maximum(sides, 0.0) + (values <= 0) @ np.maximum(-sides, 0.0)
        sums = values @ sides
        # Less than half a vote, so that sums only break ties.
        return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))


def support_vector_machines(
    K: FloatArray,
    codes: npt.NDArray[np.int64],
    scheme: MulticlassScheme,
    C: float,
    weights: FloatArray | None = None,
    *,
    by_features: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (points x models) and biases of all models, trained by LIBSVM.

    Parameters
    ----------
    K
        The kernel matrix of the training points, or their features.
    codes
        The classes 0, 1, .. of the points, all of them labelled, every class at least once.
    scheme
        The binary problems.
    C
        The penalty for a kernel whose diagonal has mean 1. Another one, K = s K1, takes C / s, and
        its coefficients are those of K1 divided by s.
    weights
        Of the points, positive: they multiply C, and the mean of the diagonal counts by them.
    by_features
        Whether K holds features, whose products are the kernel: LIBSVM computes those it needs.

    >>> scheme = MulticlassScheme(2, "ovo")
    >>> coefficients, bias = support_vector_machines(np.eye(2), np.array([0, 1]), scheme, C=10.0)
    >>> coefficients.ravel(), bias + 0.0
    (array([-1.,  1.]), array([0.]))
    """
    from sklearn import config_context
    from sklearn.svm import SVC

    # Counted by weights, so that a point of weight 2 is two points.
    diagonal = np.einsum("ij,ij->i", K, K) if by_features else K.diagonal()
    mean = float(np.average(diagonal, weights=weights))
    kernel = "linear" if by_features else "precomputed"
    scaled_C = positive("C", C, infinite=True) / (mean or 1.0)

    def trained(labels: npt.NDArray[Any]) -> SVC:
        with config_context(assume_finite=True):  # klopt has checked every entry
            return SVC(C=scaled_C, kernel=kernel).fit(K, labels, sample_weight=weights)

    coefficients = np.zeros((len(K), len(scheme.pairs)))
    bias = np.zeros(len(scheme.pairs))

    # LIBSVM itself trains one model per pair of classes, the same ones, in one call.
    if scheme.by_votes:
        found = trained(codes)
        support = found.support_
        group = codes[found.support_]
        for model, (i, j) in enumerate(combinations(range(scheme.classes), 2)):
            # LIBSVM has one row fewer than classes: the coefficients of class i against j > i are
            # in row j - 1, those of class j against i in row i.
            for own, row in ((group == i, j - 1), (group == j, i)):
                coefficients[support[own], model] = -found.dual_coef_[row, own]
        return coefficients, -found.intercept_

    for model in range(len(scheme.pairs)):
        found = trained(scheme.signs(codes, model))
        coefficients[found.support_, model] = found.dual_coef_[0]
        bias[model] = found.intercept_[0]
    return coefficients, bias
