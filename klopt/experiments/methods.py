"""The methods of the tables: klopt's learners, and what the papers compare them with.

A kernel K on all points, divided by the mean of its diagonal at the labelled ones, is followed by support vector
machines of LIBSVM, one against one, as [1] does it. The manifold methods of [2] are machines, and least squares, with

    K~ = K (I + r M K)^-1,    M = L^p,  r = gamma_I / (gamma_A n^2),

the kernel of the norm gamma_A ||f||^2 + gamma_I f'Mf / n^2 [3]. Costs C stand for 1 / gamma_A there.

Not here: Fisher-score kernels and SimpleNPK of [1], whose settings [1] does not state.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function, 2016.
[2] Belkin, Niyogi, Sindhwani, Manifold regularization, 2006.
[3] Sindhwani, Niyogi, Belkin, Beyond the point cloud, 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.experiments.protocol import Choice, Decide, Given, IntArray
from klopt.graphs import knn_graph, laplacian

__all__ = [
    "default_svm",
    "eskl",
    "gaussian",
    "harmonic_function",
    "label_spreading",
    "lap_rls",
    "lap_svm",
    "ldk",
    "osk",
    "repaired",
    "scg_ldk",
    "scg_osk",
    "simple_mkl",
    "skl_kta",
    "uniform_mkl",
]

Costs = tuple[float, ...]
BANDWIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
"""Of the Gaussian kernels of SimpleMKL; its others are polynomials of degree 1, 2 and 3."""
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
"""Of the Gaussian kernels that the uniform mixture has, in units of scale."""


def gaussian(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with a Gaussian kernel."""
    return _machines(_rbf(given.X, _gamma(given, choice)), given, costs)


def default_svm(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the Gaussian kernel of LIBSVM's default, gamma = 1 / features."""
    return _machines(_rbf(given.X, 1 / given.X.shape[1]), given, costs)


def uniform_mkl(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the mean of Gaussian kernels."""
    kernels = (_rbf(given.X, _gamma(given, Choice(width))) for width in WIDTHS)
    return _machines(np.mean(list(kernels), axis=0), given, costs)


def simple_mkl(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the best sparse mixture of kernels."""
    from klopt.learners import MklSVC
    from klopt.learners.kernels import poly, rbf

    kernels = [rbf([1 / (2 * width**2) for width in BANDWIDTHS]), *(poly(degree, gamma=1.0) for degree in (1, 2, 3))]
    known, found = given.known, []
    for C in costs:
        learner = MklSVC(kernels, C=C, norm="block-l1", multi_class="ovr")
        found.append(learner.fit(given.X[known], given.labels[known]).predict(given.X[given.asked]))
    return np.array(found, dtype=np.int64)


def osk(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the ordered spectral kernel that is aligned best."""
    from klopt.learners import OSK

    return _by_learner(OSK(n_neighbors=given.graph.neighbours, weights=given.graph.weights), given, costs)


def scg_osk(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the ordered spectral kernel of least graph-based loss."""
    from klopt.learners import ScgOSK

    return _by_learner(ScgOSK(n_neighbors=given.graph.neighbours, weights=given.graph.weights), given, costs)


def ldk(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the kernel near the Gaussian one that keeps pairs near or apart."""
    from klopt.learners import LDK
    from klopt.learners.kernels import rbf

    return _by_learner(LDK(rbf(_gamma(given, choice)), random_state=given.seed), given, costs)


def scg_ldk(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines with the kernel near the Gaussian one of least graph-based loss."""
    from klopt.learners import ScgLDK
    from klopt.learners.kernels import rbf

    return _by_learner(ScgLDK(rbf(_gamma(given, choice)), gamma=choice.weight), given, costs)


def skl_kta(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Return the decision of the spectral kernel that has no parameter."""
    from klopt.problems.spectral_alignment import SpectralAlignment
    from klopt.solve import solve

    classes, labels = _consecutive(given.labels)
    problem = SpectralAlignment(_laplacian(given), labels)
    values = problem.decide(solve(problem).require().point)
    best = (values > 0).astype(np.int64) if values.ndim == 1 else np.argmax(values, axis=1)
    return _constant(classes[best], given, costs)


def harmonic_function(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Return the class that a random walk on the graph most probably meets first."""
    from klopt.transduction import harmonic

    return _constant(harmonic(_weights(given), given.labels).labels, given, costs)


def label_spreading(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Return what labels say that spread on the graph; `weight` is the say of neighbours."""
    from klopt.transduction import spread

    return _constant(spread(_weights(given), given.labels, choice.weight).labels, given, costs)


def lap_rls(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Regularised least squares with the norm that the graph deforms."""
    known, found = given.known, []
    classes = np.unique(given.labels[known])
    Y = np.where(given.labels[known][:, None] == classes, 1.0, -1.0)
    for C, K in _deformed(given, choice, costs):
        scores = K[given.asked] @ np.linalg.solve(K[known] + known.size / C * np.eye(known.size), Y)
        found.append(classes[np.argmax(scores, axis=1)])
    return np.array(found)


def lap_svm(given: Given, choice: Choice, costs: Costs) -> IntArray:
    """Machines, one against the rest, with the norm that the graph deforms."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    known, found = given.known, []
    for C, K in _deformed(given, choice, costs):
        machine = OneVsRestClassifier(SVC(C=C / (2 * known.size), kernel="precomputed"))
        found.append(machine.fit(K[known], given.labels[known]).predict(K[given.asked]))
    return np.array(found, dtype=np.int64)


def _repaired(by: Any, given: Given, choice: Choice, costs: Costs) -> IntArray:
    from klopt.indefinite import Similarity

    return _machines(Similarity.of(given.X, symmetrise=True).repaired(by).matrix, given, costs)


def repaired(by: str) -> Decide:
    """Return machines with a similarity, which X then is, made a kernel by "denoise", "flip" or "shift"."""
    return partial(_repaired, by)


def _eskl(loss: Any, trace: Any, given: Given, choice: Choice, costs: Costs) -> IntArray:
    from klopt.learners import ESKL

    known, found = given.known, []
    among, seen = given.X[np.ix_(known, known)], given.X[np.ix_(given.asked, known)]
    for C in costs:
        learner = ESKL("precomputed", C=C, rho=choice.weight, loss=loss, trace=trace)
        found.append(learner.fit(among, given.labels[known]).predict(seen))
    return np.array(found, dtype=np.int64)


def eskl(loss: str, trace: str | None = "points") -> Decide:
    """Return machines that learn a kernel near a similarity, which X is, at the price `weight`."""
    return partial(_eskl, loss, trace)


def _machines(K: FloatArray, given: Given, costs: Costs) -> IntArray:
    from sklearn.svm import SVC

    known, labels = given.known, given.labels[given.known]
    scale = float(K.diagonal()[known].mean()) or 1.0
    among, seen = K[np.ix_(known, known)] / scale, K[np.ix_(given.asked, known)] / scale
    found = [SVC(C=C, kernel="precomputed").fit(among, labels).predict(seen) for C in costs]
    return np.array(found, dtype=np.int64)


def _by_learner(learner: Any, given: Given, costs: Costs) -> IntArray:
    return _machines(cast(FloatArray, learner.fit(given.X, given.labels).kernel_), given, costs)


def _rbf(X: FloatArray, gamma: float) -> FloatArray:
    from sklearn.metrics.pairwise import rbf_kernel

    return cast(FloatArray, rbf_kernel(X, gamma=gamma))


def _gamma(given: Given, choice: Choice) -> float:
    some = given.X[given.known]
    return float(choice.width / (some.shape[1] * (float(some.var()) or 1.0)))


def _weights(given: Given) -> Any:
    return knn_graph(given.X, min(given.graph.neighbours, len(given.X) - 1), given.graph.weights)


def _laplacian(given: Given) -> Any:
    return laplacian(_weights(given), power=given.graph.power)


def _deformed(given: Given, choice: Choice, costs: Costs) -> Iterator[tuple[float, FloatArray]]:
    """Each cost 1 / gamma_A with the columns of K~ of the labelled points; the width is the mean norm, as in [2]."""
    n, M = len(given.X), _laplacian(given)
    K = _rbf(given.X, 1 / (2 * float(np.linalg.norm(given.X, axis=1).mean()) ** 2))
    KM = np.ascontiguousarray((M @ K).T)
    for C in costs:
        system = np.eye(n) + choice.weight * C / n**2 * KM
        yield C, np.asarray(np.linalg.solve(system, K[:, given.known]), dtype=np.float64)


def _consecutive(labels: IntArray) -> tuple[IntArray, IntArray]:
    """The classes among the labels, and the labels as their numbers."""
    classes = np.unique(labels[labels >= 0])
    return classes, np.where(labels < 0, -1, np.searchsorted(classes, labels))


def _constant(labels: IntArray, given: Given, costs: Costs) -> IntArray:
    return np.tile(labels[given.asked], (len(costs), 1))
