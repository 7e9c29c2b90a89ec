"""Methods of the tables that decide on a neighbour graph of all points, labelled or not.

The manifold methods of [1] are support vector machines, and least squares, with

    K~ = K (I + r M K)^-1,    M = L^p,  r = gamma_I / gamma_A,

the kernel of the norm gamma_A ||f||^2 + gamma_I f'Mf (`klopt.kernels.manifold`); [1] divides
gamma_I by n^2. Costs C stand for 1 / gamma_A. One decomposition does for every r and, where points
are not scaled, for every split.

[1] Belkin, Niyogi, Sindhwani, Manifold regularization, 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.graphs import knn_graph, laplacian
from klopt.kernels.manifold import DeformedKernel
from klopt.papers.experiments.methods import rbf_matrix
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, LearningTask

__all__ = [
    "consecutive",
    "graph_laplacian",
    "harmonic_function",
    "label_spreading",
    "lap_rls",
    "lap_svm",
    "skl",
    "skl_kta",
    "skl_kta_with_ridge",
]

Costs = tuple[float, ...]
LAPLACIAN_RIDGE = 1e-6
"""Ridge of the Laplacian of SKL_KTA, small beside the smallest eigenvalues of its powers."""


def skl_kta(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Return the decision of the spectral kernel that has no parameter."""
    return _skl_kta(LAPLACIAN_RIDGE, given, choice, costs)


def skl_kta_with_ridge(ridge: float) -> Decide:
    """Return the same with another ridge."""
    return partial(_skl_kta, ridge)


def _skl_kta(ridge: float, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from klopt.problems.spectral_alignment import SpectralAlignment

    classes, labels = consecutive(given.labels)
    # Algorithm 1 of the paper: nothing is clipped, and there is nothing to optimise.
    values = SpectralAlignment(graph_laplacian(given), labels, ridge=ridge).decide()
    # Two classes have one score, more have one each.
    if values.ndim == 1:
        best = (values > 0).astype(np.int64)
    else:
        best = np.argmax(values, axis=1)
    return _constant(classes[best], given, costs)


def skl(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Return the decision of the spectral kernel with mu = `weight`, for each C."""
    classes, labels = consecutive(given.labels)
    directions = _directions(given, labels)
    found = []
    for C in costs:
        # (8) of the paper, which solves its problem (7).
        best = np.sqrt(directions.A / (2 * choice.weight * directions.B)) - 1 / C
        values = directions.decide(np.maximum(best, 0.0), 1 / C)
        if values.ndim == 1:
            decided = (values > 0).astype(np.int64)
        else:
            decided = np.argmax(values, axis=1)
        found.append(classes[decided][given.asked])
    return np.array(found)


def _directions(given: LearningTask, labels: IntArray) -> Any:
    """What the labelled points see of the spectrum; the last one is kept for other mu and C."""
    from klopt.problems.spectral_rls import SpectralRls

    name = "directions of labels"
    key = labels.tobytes()
    if name not in given.kept or given.kept[name][0] != key:
        problem = SpectralRls(graph_laplacian(given), labels, 1.0, 1.0, ridge=LAPLACIAN_RIDGE)
        given.kept[name] = (key, problem.directions)
    return given.kept[name][1]


def harmonic_function(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Return the class that a random walk on the graph most probably meets first.

    Points without a way to a label get the commonest one.
    """
    from scipy.sparse.csgraph import connected_components

    from klopt.kernels.transduction import harmonic

    W = _weights(given)
    _, component = connected_components(W, directed=False)
    reached = np.flatnonzero(np.isin(component, component[given.known]))
    found = np.full(len(given.X), np.argmax(np.bincount(given.labels[given.known])))
    among = W.tocsr()[reached][:, reached]
    found[reached] = harmonic(among, given.labels[reached]).labels
    return _constant(found, given, costs)


def label_spreading(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by label spreading on the graph; `weight` is the influence of neighbours."""
    from klopt.kernels.transduction import spread

    found = spread(_weights(given), given.labels, choice.weight)
    return _constant(found.labels, given, costs)


def lap_rls(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Regularised least squares with the norm that the graph deforms."""
    known = given.known
    labels = given.labels[known]
    classes = np.unique(labels)
    Y = np.where(labels[:, None] == classes, 1.0, -1.0)
    found = []
    for C, among, seen in _deformed(given, choice, costs):
        ridge = known.size / C * np.eye(known.size)
        scores = seen @ np.linalg.solve(among + ridge, Y)
        found.append(classes[np.argmax(scores, axis=1)])
    return np.array(found)


def lap_svm(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by one-against-rest SVMs with the norm that the graph deforms."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    known = given.known
    found = []
    for C, among, seen in _deformed(given, choice, costs):
        classifier = OneVsRestClassifier(SVC(C=C / (2 * known.size), kernel="precomputed"))
        found.append(classifier.fit(among, given.labels[known]).predict(seen))
    return np.array(found, dtype=np.int64)


def _weights(given: LearningTask) -> Any:
    count = min(given.graph.neighbours, len(given.X) - 1)
    return given.once("weights", lambda: knn_graph(given.X, count, given.graph.weights))


def graph_laplacian(given: LearningTask) -> Any:
    """Return the Laplacian of the neighbour graph, to its power."""
    return given.once("laplacian", lambda: laplacian(_weights(given), power=given.graph.power))


def _deformed(
    given: LearningTask, choice: Choice, costs: Costs
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """Each cost 1 / gamma_A with K~ among labelled points, and from those asked about to them."""
    kernel = given.once("deformation", lambda: _deformation(given.X, graph_laplacian(given)))
    for C in costs:
        r = choice.weight * C
        among = kernel.block(r, given.known, given.known)
        yield C, among, kernel.block(r, given.asked, given.known)


def _deformation(X: FloatArray, M: Any) -> DeformedKernel:
    """The decomposition for a Gaussian kernel whose width is the mean norm, as in [1]."""
    width = float(np.linalg.norm(X, axis=1).mean())
    return DeformedKernel.of(rbf_matrix(X, 1 / (2 * width**2)), M)


def consecutive(labels: IntArray) -> tuple[IntArray, IntArray]:
    """The classes among the labels, and the labels as their numbers."""
    classes = np.unique(labels[labels >= 0])
    return classes, np.where(labels < 0, -1, np.searchsorted(classes, labels))


def _constant(labels: IntArray, given: LearningTask, costs: Costs) -> IntArray:
    return np.tile(labels[given.asked], (len(costs), 1))
