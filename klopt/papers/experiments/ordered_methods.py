"""Spectral kernels aligned with and without an order, and two ways to decide by them.

KA0 weighs the smoothest eigenvectors of a graph freely, KA1 in their order; both are
`klopt.problems.OrderedAlignment`, solved with proof. A support vector machine decides by the kernel
K = V diag(alpha) V', or the Gaussian field of covariance K, whose mean given the labels is

    f_u = K_ul (K_ll + I/C)^-1 Y_l.

For K the inverse of a Laplacian and no noise 1/C this is the harmonic function of [1]; [2] does not
say how it takes a kernel whose inverse is no Laplacian. The other reading, K as weights of a graph,
needs nonnegative entries; its negative ones are left out.

[1] Zhu, Ghahramani, Lafferty, Semi-supervised learning using Gaussian fields and harmonic
functions, 2003. [2] Xie, Ding, Gong, Wu, Rank ordering constraints elimination with application for
kernel learning, 2017.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import UncertifiedFit
from klopt.papers.experiments.graph_methods import consecutive, graph_laplacian
from klopt.papers.experiments.methods import svm_on_blocks
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, LearningTask

__all__ = ["EIGENVECTORS", "aligned_field", "aligned_svm", "aligned_walk"]

Costs = tuple[float, ...]
EIGENVECTORS = 200
"""As in Figure 1 of the paper."""


def aligned_svm(ordered: bool, sigma: float = 1.0) -> Decide:
    """Return the support vector machine with the aligned kernel."""
    return partial(_aligned_svm, ordered, sigma)


def aligned_field(ordered: bool, sigma: float = 1.0) -> Decide:
    """Return the mean of the Gaussian field whose covariance is the aligned kernel."""
    return partial(_aligned_field, ordered, sigma)


def aligned_walk(ordered: bool, sigma: float = 1.0) -> Decide:
    """Return the harmonic function of the graph whose weights are the aligned kernel's."""
    return partial(_aligned_walk, ordered, sigma)


def _aligned_svm(
    ordered: bool, sigma: float, given: LearningTask, choice: Choice, costs: Costs
) -> IntArray:
    V, alpha = _aligned(ordered, sigma, given)
    known = given.known
    half = V[known] * alpha
    return svm_on_blocks(half @ V[known].T, V[given.asked] @ half.T, given.labels[known], costs)


def _aligned_field(
    ordered: bool, sigma: float, given: LearningTask, choice: Choice, costs: Costs
) -> IntArray:
    from klopt.kernels.transduction import least_squares

    V, alpha = _aligned(ordered, sigma, given)
    # The noise is comparable across kernels where the labelled diagonal has mean 1.
    scale = float(np.mean(V[given.known] ** 2 @ alpha)) or 1.0
    found = [least_squares((V, alpha / scale), given.labels, C).labels for C in costs]
    return np.array(found)[:, given.asked]


def _aligned_walk(
    ordered: bool, sigma: float, given: LearningTask, choice: Choice, costs: Costs
) -> IntArray:
    from klopt.kernels.transduction import harmonic

    V, alpha = _aligned(ordered, sigma, given)
    W = np.maximum((V * alpha) @ V.T, 0.0)
    np.fill_diagonal(W, 0.0)
    labels = harmonic(W, given.labels).labels
    return np.tile(labels[given.asked], (len(costs), 1))


def _aligned(ordered: bool, sigma: float, given: LearningTask) -> tuple[FloatArray, FloatArray]:
    """The eigenvectors and their weights, proven to be best up to klopt's tolerance."""
    import klopt
    from klopt.problems.ordered_alignment import OrderedAlignment

    _, labels = consecutive(given.labels)
    V = given.once("eigenvectors", lambda: _eigenvectors(given))
    result = klopt.solve(OrderedAlignment(V, labels, sigma, ordered))
    if not result.verdict.conclusive or result.point is None:
        warnings.warn(result.explain(), UncertifiedFit, stacklevel=2)
    assert result.point is not None
    return V, result.point.alpha


def _eigenvectors(given: LearningTask) -> FloatArray:
    from klopt.kernels.eigenpairs import smoothest_eigenpairs

    return smoothest_eigenpairs(graph_laplacian(given), min(EIGENVECTORS, len(given.X)))[1]
