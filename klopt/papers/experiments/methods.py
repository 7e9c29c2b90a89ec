"""Methods of the tables that learn a kernel for support vector machines, and simple kernels.

A kernel K on all points, divided by the mean of its diagonal at the labelled ones, is followed by
support vector machines of LIBSVM, one against one, as [1] does it.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.protocol import Choice, Decide, IntArray, LearningTask

__all__ = [
    "default_svm",
    "eskl",
    "gaussian",
    "kernel_pca",
    "ldk",
    "osk",
    "rbf_matrix",
    "repaired",
    "scaled_gamma",
    "scg_ldk",
    "scg_ldk_of_seen",
    "scg_osk",
    "simple_mkl",
    "svm_decisions",
    "svm_on_blocks",
    "uniform_mkl",
]

Costs = tuple[float, ...]
BANDWIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
"""Of the Gaussian kernels of SimpleMKL; its others are polynomials of degree 1, 2 and 3."""
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
"""Of the Gaussian kernels that the uniform mixture has, in units of scale."""


def gaussian(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with a Gaussian kernel."""
    return svm_decisions(rbf_matrix(given.X, scaled_gamma(given, choice)), given, costs)


def default_svm(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with LIBSVM's default kernel, gamma = 1 / features."""
    K = given.once("default Gaussian", lambda: rbf_matrix(given.X, 1 / given.X.shape[1]))
    return svm_decisions(K, given, costs)


def kernel_pca(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide on the first principal components of a Gaussian kernel; `weight` is their number."""
    from sklearn.decomposition import KernelPCA

    known = given.known
    number = min(round(choice.weight), known.size - 1)
    # LAPACK finds the same components in every run; ARPACK, the default for few of many, starts at
    # random.
    learner = KernelPCA(
        number, kernel="rbf", gamma=scaled_gamma(given, choice), eigen_solver="dense"
    )
    Z = learner.fit(given.X[known]).transform(given.X)
    return svm_decisions(Z @ Z.T, given, costs)


def uniform_mkl(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the mean of Gaussian kernels."""
    kernels = (rbf_matrix(given.X, scaled_gamma(given, Choice(width))) for width in WIDTHS)
    return svm_decisions(np.mean(list(kernels), axis=0), given, costs)


def simple_mkl(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the best sparse mixture of kernels."""
    from klopt.learners import MklSVC
    from klopt.learners.kernels import poly, rbf

    kernels = [
        rbf([1 / (2 * width**2) for width in BANDWIDTHS]),
        *(poly(degree, gamma=1.0) for degree in (1, 2, 3)),
    ]
    known = given.known
    found = []
    for C in costs:
        learner = MklSVC(kernels, C=C, norm="block-l1", multi_class="ovr")
        learner.fit(given.X[known], given.labels[known])
        found.append(learner.predict(given.X[given.asked]))
    return np.array(found, dtype=np.int64)


def osk(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the ordered spectral kernel that is aligned best."""
    from klopt.learners import OSK

    # prior=0: the kernel of best alignment as printed.
    learner = OSK(n_neighbors=given.graph.neighbours, weights=given.graph.weights, prior=0.0)
    return _by_problem(learner, given, costs)


def scg_osk(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the ordered spectral kernel of minimal graph-based loss."""
    from klopt.learners import ScgOSK

    # floor=0: the linear program as printed.
    learner = ScgOSK(n_neighbors=given.graph.neighbours, weights=given.graph.weights, floor=0.0)
    return _by_problem(learner, given, costs)


def ldk(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the LogDet kernel that keeps pairs near or apart."""
    from klopt.learners import LDK
    from klopt.learners.kernels import rbf

    learner = LDK(rbf(scaled_gamma(given, choice)), random_state=given.seed)
    return _by_learner(learner, given, costs)


def scg_ldk(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by SVMs with the kernel near the Gaussian one of minimal graph-based loss."""
    from klopt.learners import ScgLDK
    from klopt.learners.kernels import rbf

    learner = ScgLDK(rbf(scaled_gamma(given, choice)), gamma=choice.weight)
    return _by_learner(learner, given, costs)


def scg_ldk_of_seen(given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    """Decide by the same kernel, learned without the withheld points and extended to them."""
    from klopt.kernels.out_of_sample import ExtendedKernel
    from klopt.learners import ScgLDK
    from klopt.learners.kernels import rbf

    n = len(given.X)
    seen = np.setdiff1d(np.arange(n), given.withheld)
    gamma = scaled_gamma(given, choice)
    learner = ScgLDK(rbf(gamma), gamma=choice.weight)
    learner.fit(given.X[seen], given.labels[seen])
    K = np.asarray(learner.kernel_)

    # (32) of [1]: k = k0 + k0 Q k0 with Q = K0^-1 (K - K0) K0^-1, which is K itself on seen points.
    K0 = rbf_matrix(given.X[seen], gamma)
    half = np.linalg.lstsq(K0, K - K0, rcond=None)[0]
    Q = np.linalg.lstsq(K0, half.T, rcond=None)[0]
    extended = ExtendedKernel(K0, (Q + Q.T) / 2)
    place = np.full(n, -1)
    place[seen] = np.arange(seen.size)
    known = place[given.known]
    new = given.X[given.asked]
    if (place[given.asked] >= 0).all():
        rows = K[place[given.asked]]
    else:
        rows = extended.cross(_rbf_between(new, given.X[seen], gamma))
    return svm_on_blocks(K[np.ix_(known, known)], rows[:, known], given.labels[given.known], costs)


def _rbf_between(new: FloatArray, points: FloatArray, gamma: float) -> FloatArray:
    from sklearn.metrics.pairwise import rbf_kernel

    return cast(FloatArray, rbf_kernel(new, points, gamma=gamma))


def _repaired(by: Any, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from klopt.kernels.similarities import Similarity

    similarity = Similarity.of(given.X, symmetrise=True)
    return svm_decisions(similarity.repaired(by).matrix, given, costs)


def repaired(by: str) -> Decide:
    """Return the method for a similarity X made a kernel by "denoise", "flip" or "shift"."""
    return partial(_repaired, by)


def _eskl(loss: Any, trace: Any, given: LearningTask, choice: Choice, costs: Costs) -> IntArray:
    from klopt.learners import ESKL

    known = given.known
    found = []
    among = given.X[np.ix_(known, known)]
    seen = given.X[np.ix_(given.asked, known)]
    for C in costs:
        learner = ESKL("precomputed", C=C, rho=choice.weight, loss=loss, trace=trace)
        found.append(learner.fit(among, given.labels[known]).predict(seen))
    return np.array(found, dtype=np.int64)


def eskl(loss: str, trace: str | None = "points") -> Decide:
    """Return the method that learns a kernel near a similarity X at the price `weight`."""
    return partial(_eskl, loss, trace)


def svm_decisions(K: FloatArray, given: LearningTask, costs: Costs) -> IntArray:
    """Return what support vector machines with the kernel decide for the points asked about."""
    known = given.known
    among = K[np.ix_(known, known)]
    seen = K[np.ix_(given.asked, known)]
    return svm_on_blocks(among, seen, given.labels[known], costs)


def svm_on_blocks(among: FloatArray, seen: FloatArray, labels: IntArray, costs: Costs) -> IntArray:
    """Return the same from the kernel among labelled points and from those asked about to them."""
    from sklearn.svm import SVC

    # C is comparable across kernels where the labelled diagonal has mean 1.
    scale = float(among.diagonal().mean()) or 1.0
    found = [
        SVC(C=C, kernel="precomputed").fit(among / scale, labels).predict(seen / scale)
        for C in costs
    ]
    return np.array(found, dtype=np.int64)


def _by_learner(learner: Any, given: LearningTask, costs: Costs) -> IntArray:
    learner.fit(given.X, given.labels)
    return svm_decisions(cast(FloatArray, learner.kernel_), given, costs)


def _by_problem(learner: Any, given: LearningTask, costs: Costs) -> IntArray:
    """The same by the solution of the paper's problem, whatever else the learner adds to it."""
    result = learner.fit(given.X, given.labels).result_
    return svm_decisions(cast(FloatArray, result.problem.kernel(result.point)), given, costs)


def rbf_matrix(X: FloatArray, gamma: float) -> FloatArray:
    """Return exp(-gamma |x - x'|^2)."""
    from sklearn.metrics.pairwise import rbf_kernel

    return cast(FloatArray, rbf_kernel(X, gamma=gamma))


def scaled_gamma(given: LearningTask, choice: Choice) -> float:
    """Return gamma of the Gaussian kernel of the chosen width."""
    some = given.X[given.known]
    variance = float(some.var()) or 1.0
    return float(choice.width / (some.shape[1] * variance))
