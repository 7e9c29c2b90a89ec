"""MKL: a support vector machine that learns the weights of several kernels with itself.

Each machine of `klopt.problems.MultipleKernel` has weights of its own; several classes are several machines. A new
point costs one row of each kernel that some machine uses, on the support vectors only.

Kernels of different size are not comparable (for "block-l1" a larger one is a better one): each is divided by the mean
of its diagonal on the training points, unless `normalize=False`.

Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from multiple similarity matrices
with general convex loss functions, 2010, (5) and (10).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.backend import Backend
from klopt.gram import Gram
from klopt.learners._duels import MultiClass
from klopt.learners._stacked import StackLearner
from klopt.problems.multiple_kernel import MultipleKernel, Norm
from klopt.result import Result

__all__ = ["MklSVC"]


class MklSVC(StackLearner):
    """A support vector machine with the best mixture of kernels.

    `kernels` is a list from `klopt.learners.kernels` (None: three Gaussian ones), or "precomputed": then X is a stack
    of shape (points, training points, kernels), kernels last. `norm` is "block-l1" (few kernels are used),
    "block-linf" (all are) or a number p > 1 in between, which is the fastest.

    Fitted, `weights_` has a row a machine and a column a kernel (of the kernels as divided by `scales_`), `result_` is
    the result of the machine whose optimum is known least well, `results_` are all.

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
        backend: str | Backend | None = None,
        tol: float = 1e-6,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.norm = norm
        self.normalize = normalize
        self.multi_class = multi_class
        self.backend = backend
        self.tol = tol

    @property
    def _sources(self) -> Any:
        return self.kernels

    def _learn(self, matrices: list[FloatArray], signs: FloatArray) -> tuple[Result, FloatArray]:
        some = [Gram.of(*each) for each in zip(matrices, self.kernel_names_, self._repairs, strict=True)]
        result = self._certified(MultipleKernel(some, signs, self.C, norm=self.norm))
        point = cast(Any, result.point)
        return result, np.outer(signs * point.alpha, point.weights)

    @property
    def weights_(self) -> FloatArray:
        """The weights of the kernels (machines x kernels)."""
        return np.array([cast(Any, result.point).weights for result in self.results_])

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points, (n, n); of several machines a stack, machines last."""
        matrices, mixing = self._on_training_points(), self.weights_ / self.scales_
        found = np.zeros((*matrices[0].shape, len(mixing)))
        for K, weights in zip(matrices, mixing.T, strict=True):
            found += K[:, :, None] * weights
        return found[:, :, 0] if len(mixing) == 1 else found
