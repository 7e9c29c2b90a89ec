"""Methods that decide by several similarities at once, which need not be kernels.

The m similarities S_k of n points are the columns of X = [S_1 .. S_m], n x mn. Those that the paper
extends to several by averaging get their mean.

Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from multiple
similarity matrices with general convex loss functions, 2010, Table 3.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.methods import svm_decisions
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, LearningTask

__all__ = ["features", "kernel_each", "mean_of", "repaired_mkl", "stacked"]

Costs = tuple[float, ...]


def stacked(X: FloatArray) -> FloatArray:
    """Return the similarities as an array points x points x similarities.

    >>> stacked(np.array([[1.0, 2.0, 5.0, 6.0], [3.0, 4.0, 7.0, 8.0]]))[:, :, 1]
    array([[5., 6.],
           [7., 8.]])
    """
    n = len(X)
    return np.asarray(X.reshape(n, X.shape[1] // n, n).transpose(0, 2, 1))


def features(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by a linear machine whose features are the similarities to the labelled points."""
    S = stacked(given.X)[:, given.known]
    Z = S.reshape(len(S), -1)
    return svm_decisions(Z @ Z.T, given, costs)


def mean_of(decide: Decide) -> Decide:
    """Return a method for one similarity, applied to the mean of all."""
    return partial(_mean_of, decide)


def _mean_of(decide: Decide, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from dataclasses import replace

    return decide(replace(given, X=stacked(given.X).mean(axis=2), kept={}), choice, costs)


def repaired_mkl(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by the best sparse mixture of the similarities without their negative eigenvalues."""
    from klopt.learners import MklSVC

    S = stacked(given.X)
    kernels = np.stack([_positive_part(S[:, :, k]) for k in range(S.shape[2])], axis=2)
    return _fitted(lambda C: MklSVC("precomputed", C=C, norm="block-l1"), kernels, given, costs)


def kernel_each(name: str, loss: str) -> Decide:
    """Return a learner of kernels from all similarities (ESKL, EMKL, REKL); `weight` is rho."""
    return partial(_kernel_each, name, loss)


def _kernel_each(
    name: str, loss: str, given: LearningTask, choice: Choice, costs: Costs
) -> IntArray:
    from klopt import learners

    def learner(C: float) -> Any:
        return getattr(learners, name)("precomputed", C=C, rho=choice.weight, loss=loss)

    return _fitted(learner, stacked(given.X), given, costs)


def _fitted(learner: Any, S: FloatArray, given: LearningTask, costs: Costs) -> IntArray:
    known = given.known
    among = S[np.ix_(known, known)]
    seen = S[np.ix_(given.asked, known)]
    labels = given.labels[known]
    found = [learner(C).fit(among, labels).predict(seen) for C in costs]
    return np.array(found, dtype=np.int64)


def _positive_part(S: FloatArray) -> FloatArray:
    values, V = np.linalg.eigh((S + S.T) / 2)
    return np.asarray((V * np.maximum(values, 0.0)) @ V.T)
