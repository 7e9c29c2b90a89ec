"""Kernel learners that the papers compare with and klopt has no problem for, each in closed form.

    FSK          k(x, x') = f(x) f(x') k0(x, x'), f = a_0 + sum_j a_j k0(x, x_j): a maximises the ratio of the scatter
                 between classes to the scatter within, a generalised eigenvector [1]
    SimpleNPK    the positive part of w T - L, with the Laplacian L of a graph and targets T: +1 for two labelled points
                 of one class, -1 of two classes, 0 where a label is missing [2]
    IR-Gaussian  exp(log K0 + w T), nearest to K0 in von Neumann's divergence less w <K, T> [3]
    RF           random features phi_i, each weighed by q_i, which maximise the alignment sum_i q_i |Y'phi_i|^2 over
                 q >= 0, sum q = 1, sum (d q_i - 1)^2 <= w d [4]

[1] Li, Wang, Chu, Roddick, Kernel self-optimization learning for kernel-based feature extraction, 2014.
[2] Zhuang, Tsang, Hoi, A family of simple non-parametric kernel learning algorithms, 2011.
[3] Pan, Lai, Shen, Ideal regularization for learning kernels from labels, 2014.
[4] Sinha, Duchi, Learning kernels with random features, 2016.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.graphs import supervised_targets
from klopt.model.sets.projections import simplex_projection
from klopt.papers.experiments.graph_methods import graph_laplacian
from klopt.papers.experiments.methods import rbf_matrix, scaled_gamma, svm_decisions
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, LearningTask

__all__ = ["fisher_score", "ideal_gaussian", "random_features", "random_features_of", "simple_npk"]

Costs = tuple[float, ...]
RANDOM_FEATURES = 300
"""Number of random features where a protocol names none."""


def fisher_score(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by the conformal kernel of the best ratio of scatters.

    The within-class scatter gets a ridge `weight`.
    """
    from scipy.linalg import eigh

    known = given.known
    K = rbf_matrix(given.X, scaled_gamma(given, choice))
    basis = np.column_stack([np.ones(len(K)), K[:, known]])
    classes = given.labels[known][:, None] == np.unique(given.labels[known])
    among = K[np.ix_(known, known)]
    E = basis[known]
    own = among * ((classes / classes.sum(axis=0)) @ classes.T)
    between = E.T @ (own - among / known.size) @ E
    within = E.T @ (np.diag(among.diagonal()) - own) @ E
    ridge = choice.weight * float(within.trace()) / len(within)
    # The generalised eigenvector of the largest eigenvalue maximises the ratio of scatters.
    last = len(within) - 1
    _, a = eigh(between, within + ridge * np.eye(len(within)), subset_by_index=[last, last])
    f = basis @ a[:, 0]
    return svm_decisions(K * np.outer(f, f), given, costs)


def simple_npk(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the positive part of w T - L."""
    indefinite = choice.weight * _targets(given) - graph_laplacian(given)
    return svm_decisions(_of_spectrum(indefinite, "positive"), given, costs)


def ideal_gaussian(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by the Gaussian kernel that is drawn towards the targets.

    w is in units of 1 / labelled points.
    """
    gamma = scaled_gamma(given, choice)
    weight = choice.weight / given.known.size
    log = given.once(f"log of {gamma}", lambda: _of_spectrum(rbf_matrix(given.X, gamma), "log"))
    return svm_decisions(_of_spectrum(log + weight * _targets(given), "exp"), given, costs)


def random_features(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with weighted random features of a Gaussian kernel of sigma `width`."""
    return _random_features(RANDOM_FEATURES, given, choice, costs)


def random_features_of(number: int) -> Decide:
    """Return the same with another number of features."""
    return partial(_random_features, number)


def _random_features(number: int, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    random = np.random.default_rng(given.seed)
    known = given.known
    W = random.standard_normal((given.X.shape[1], number)) / choice.width
    phi = np.cos(given.X @ W + random.uniform(0, 2 * np.pi, number))

    labels = given.labels[known]
    Y = np.where(labels[:, None] == np.unique(labels), 1.0, -1.0)
    alignments = ((Y.T @ phi[known]) ** 2).sum(axis=0)
    q = _aligned(alignments, choice.weight)
    return svm_decisions((phi * q) @ phi.T, given, costs)


def _aligned(v: FloatArray, radius: float) -> FloatArray:
    """The q of largest v'q in the ball.

    It is the projection of 1/d + t v for the largest t that the ball allows, by bisection.
    """
    d = v.size
    low = 0.0
    high = 1.0 / (float(np.ptp(v)) or 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        q = simplex_projection(1 / d + middle * v)
        distance = float(((d * q - 1) ** 2).sum())
        if distance <= radius * d:
            low = middle
        else:
            high = middle
    return simplex_projection(1 / d + low * v)


def _targets(given: LearningTask) -> FloatArray:
    return supervised_targets(given.labels)


def _of_spectrum(matrix: FloatArray, function: str) -> FloatArray:
    """The "positive" part, the "log" or the "exp" of a symmetric matrix.

    Eigenvalues under the logarithm are at least 1e-8 of the largest.
    """
    values, U = np.linalg.eigh(matrix)
    if function == "positive":
        values = np.maximum(values, 0.0)
    elif function == "log":
        values = np.log(np.maximum(values, 1e-8 * values[-1]))
    else:
        values = np.exp(values)
    return np.asarray((U * values) @ U.T)
