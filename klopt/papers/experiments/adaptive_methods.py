"""Methods of the tables on DANK: classification and regression with Gaussian kernels.

`width` is sigma: k(x, x') = exp(-|x - x'|^2 / (2 sigma^2)). DANK gets the width and the cost that
cross-validation finds for the kernel that is not learned, tau = 0.01, and eta = |alpha|^2 of that
support vector machine (the mean where there are several), as [1] does. In regression targets are
scaled to mean 0 and deviation 1, and epsilon is 0.1.

[1] Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020, section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.methods import rbf_matrix, svm_decisions
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, Labels, LearningTask, Scale

__all__ = [
    "SIGMAS",
    "adaptive",
    "adaptive_regression",
    "adaptive_with_tau",
    "gaussian",
    "logdet",
    "logdet_of_pairs",
    "nadaraya_watson",
    "nearest",
    "regression",
    "regression_of_targets",
    "uniform",
]

Costs = tuple[float, ...]
SIGMAS = tuple(2.0**power for power in range(-5, 6))
"""Widths of the Gaussian kernels, in the units of the scaled features."""
DANK_TAU = 0.01
"""Weight of the trace of F in DANK."""
TUBE_EPSILON = 0.1
"""Half the width of the insensitive tube, in deviations of the targets."""


def gaussian(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with a Gaussian kernel of width sigma."""
    return svm_decisions(rbf_matrix(given.X, _gamma(choice)), given, costs)


def uniform(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the mean of the Gaussian kernels of all widths."""
    kernels = [rbf_matrix(given.X, _gamma(Choice(sigma))) for sigma in SIGMAS]
    return svm_decisions(np.mean(kernels, axis=0), given, costs)


def adaptive(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with a data-adaptive kernel."""
    return _adaptive(DANK_TAU, given, choice, costs)


def adaptive_with_tau(tau: float) -> Decide:
    """Return the same with another weight of the trace of F."""
    return partial(_adaptive, tau)


def _adaptive(tau: float, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from sklearn.svm import SVC

    from klopt.learners import DankSVC
    from klopt.learners.kernels import rbf

    X = given.X[given.known]
    y = given.labels[given.known]
    gamma = _gamma(choice)
    classes = np.unique(y).size
    pairs_of_classes = classes * (classes - 1) / 2

    found = []
    for C in costs:
        # eta = |alpha|^2 of the SVM without a learned kernel, the mean over one-against-one SVMs.
        alpha = SVC(C=C, gamma=gamma).fit(X, y).dual_coef_
        eta = float((alpha**2).sum()) / pairs_of_classes
        learner = DankSVC(rbf(gamma), C=C, eta=eta, tau=tau, rule="reciprocal")
        learner.fit(X, y)
        found.append(learner.predict(given.X[given.asked]))
    return np.array(found, dtype=np.int64)


def logdet(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by the LogDet kernel near the Gaussian one that keeps pairs near or apart.

    It is learned on the labelled points.
    """
    from klopt.learners import LDK
    from klopt.learners.kernels import rbf

    learner = LDK(rbf(_gamma(choice)), random_state=given.seed)
    learner.fit(given.X, given.labels)
    return svm_decisions(np.asarray(learner.kernel_), given, costs)


def logdet_of_pairs(number: int) -> Decide:
    """Return the same with another number of pairs; `weight` is the slack."""
    return partial(_logdet_of_pairs, number)


def _logdet_of_pairs(number: int, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from klopt.learners import LDK
    from klopt.learners.kernels import rbf

    kernel = rbf(_gamma(choice))
    learner = LDK(kernel, slack=choice.weight, n_pairs=number, random_state=given.seed)
    learner.fit(given.X, given.labels)
    return svm_decisions(np.asarray(learner.kernel_), given, costs)


def nearest(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Return the class of the nearest labelled point."""
    from sklearn.neighbors import KNeighborsClassifier

    classifier = KNeighborsClassifier(1)
    classifier.fit(given.X[given.known], given.labels[given.known])
    decided = classifier.predict(given.X[given.asked])
    return np.tile(decided, (len(costs), 1))


def regression(given: LearningTask, choice: Choice, costs: Costs) -> Labels:
    """Support vector regression with a Gaussian kernel."""
    return _regression("deviation", given, choice, costs)


def adaptive_regression(given: LearningTask, choice: Choice, costs: Costs) -> Labels:
    """Support vector regression with a data-adaptive kernel."""
    return _adaptive_regression("deviation", given, choice, costs)


def regression_of_targets(scale: Scale) -> tuple[Decide, Decide]:
    """Return both regressions with targets of another scale.

    epsilon stays, and so is another one relative to the targets.
    """
    return partial(_regression, scale), partial(_adaptive_regression, scale)


def _regression(scale: Scale, given: LearningTask, choice: Choice, costs: Costs) -> Labels:
    from sklearn.svm import SVR

    def learner(C: float, X: FloatArray, y: FloatArray) -> Any:
        return SVR(C=C, gamma=_gamma(choice), epsilon=TUBE_EPSILON)

    return _fitted(scale, given, costs, learner)


def _adaptive_regression(scale: Scale, given: LearningTask, choice: Choice, costs: Costs) -> Labels:
    from sklearn.svm import SVR

    from klopt.learners import DankSVR
    from klopt.learners.kernels import rbf

    def learner(C: float, X: FloatArray, y: FloatArray) -> Any:
        gamma = _gamma(choice)
        alpha = SVR(C=C, gamma=gamma, epsilon=TUBE_EPSILON).fit(X, y).dual_coef_
        # Where every target lies within the tube, alpha is 0 and eta any positive number.
        eta = float((alpha**2).sum()) or 1.0
        return DankSVR(
            rbf(gamma),
            C=C,
            epsilon=TUBE_EPSILON,
            eta=eta,
            tau=DANK_TAU,
            rule="reciprocal",
        )

    return _fitted(scale, given, costs, learner)


def nadaraya_watson(given: LearningTask, choice: Choice, costs: Costs) -> Labels:
    """The mean of the known numbers, weighed by a Gaussian kernel; no metric is learned."""
    from sklearn.metrics.pairwise import euclidean_distances

    D = euclidean_distances(given.X[given.asked], given.X[given.known], squared=True)
    # Distances are shifted so that the largest weight is 1: the sum of weights does not underflow.
    shifted = D - D.min(axis=1, keepdims=True)
    weights = np.exp(-_gamma(choice) * shifted)
    values = weights @ given.labels[given.known] / weights.sum(axis=1)
    return np.tile(values, (len(costs), 1))


def _gamma(choice: Choice) -> float:
    return 1 / (2 * choice.width**2)


def _fitted(
    scale: Scale,
    given: LearningTask,
    costs: Costs,
    learner: Callable[[float, FloatArray, FloatArray], Any],
) -> Labels:
    """The predictions for each cost, with targets of mean 0 and deviation 1 or in [0, 1]."""
    X = given.X[given.known]
    y = given.labels[given.known]
    if scale == "range":
        offset = float(y.min())
        unit = float(np.ptp(y)) or 1.0
    else:
        offset = float(y.mean())
        unit = float(y.std()) or 1.0

    scaled = (y - offset) / unit
    asked = given.X[given.asked]
    found = [learner(C, X, scaled).fit(X, scaled).predict(asked) for C in costs]
    return offset + unit * np.array(found)
