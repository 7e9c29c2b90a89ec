"""ESKL, EMKL, REKL: support vector machines with kernels learned from indefinite similarities.

    ESKL   one kernel near all similarities                  `klopt.problems.SimilarityKernel`
    EMKL   a kernel near each, and a model with all of them  `klopt.problems.SimilarityKernels`
    REKL   as EMKL, but only the eigenvalues are learned     `klopt.problems.SimilaritySpectra`

New points are left open by Kundu et al. (2010). The linear map s -> s S^+ K of
`klopt.kernels.similarities` gives training points their own rows of K, but divides by the small
eigenvalues of S, which for new points are noise: on the two similarity data sets tried it is no
better than chance. Here only the difference from a multiple of S goes through it, damped,

    k(x, training) = c s + s S (S^2 + damping^2 |S|^2 I)^-1 (K - c S),    c = tr(SK) / tr(S^2),

so that eigenvectors whose eigenvalues are below `damping` times the largest keep c s, and without
damping it is s S^+ K. It may be tuned (`docs/learners.md` explains the default). At training points
`predict` is damped, too; their undamped values are those of `results_`.

Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from multiple
similarity matrices with general convex loss functions, 2010, (4), (6), (7).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, cast

import numpy as np

from klopt.arrays import FloatArray, positive
from klopt.engine.result import Result
from klopt.kernels.similarities import Similarity
from klopt.learners._base import ClassWeight
from klopt.learners._multiclass import MultiClass
from klopt.learners._stacked import Columns, Matrices, StackClassifier
from klopt.model.backend import Backend
from klopt.model.problem import Problem
from klopt.problems._similarity.data import Losses
from klopt.problems.similarity_kernel import SimilarityKernel
from klopt.problems.similarity_kernels import SimilarityKernels
from klopt.problems.similarity_spectra import SimilaritySpectra, SpectralLoss

__all__ = ["EMKL", "ESKL", "REKL"]

Trace = float | Literal["points"] | None
Eigen = tuple[FloatArray, FloatArray]


class _SimilarityLearner(StackClassifier):
    def __init__(
        self,
        similarities: Any = None,
        *,
        C: float = 1.0,
        rho: float = 1.0,
        trace: Trace = "points",
        loss: Losses = "squared",
        damping: float = 0.2,
        normalize: bool = True,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.similarities = similarities
        self.C = C
        self.rho = rho
        self.trace = trace
        self.loss = loss
        self.damping = damping
        self.normalize = normalize
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    @property
    def _sources(self) -> Any:
        return self.similarities

    def _problem(
        self, S: tuple[Similarity, ...], signs: FloatArray, C: FloatArray, trace: float | None
    ) -> Problem:
        raise NotImplementedError

    @classmethod
    def _parts(cls, result: Result) -> list[tuple[Eigen, FloatArray, float]]:
        """The eigenpairs of a similarity, the kernel learned from it and its weight, for each."""
        point = cast(Any, result.point)
        return list(zip(cls._eigenpairs(result), point.kernels, 1 / point.gamma, strict=True))

    @classmethod
    def _eigenpairs(cls, result: Result) -> list[Eigen]:
        return [S.eigen for S in cast(Any, result.problem).S]

    def _posed(self, matrices: Matrices, signs: FloatArray, weights: FloatArray) -> Problem:
        S = tuple(
            Similarity.of(K, name) for K, name in zip(matrices, self.kernel_names_, strict=True)
        )
        trace = float(signs.size) if self.trace == "points" else self.trace
        return self._problem(S, signs, self.C * weights, trace)

    @property
    def _columns(self) -> Columns:
        return partial(self._extended, positive("damping", self.damping, zero=True))

    @classmethod
    def _extended(cls, damping: float, result: Result, signs: FloatArray) -> FloatArray:
        """c a + S (S^2 + damping^2 |S|^2 I)^-1 (K - c S) a of each similarity."""
        a = signs * cast(Any, result.point).alpha
        count = len(cast(Any, result.problem).S)
        found = np.column_stack(
            [w * _corrected(part, K, a, damping) for part, K, w in cls._parts(result)]
        )
        # One kernel for several similarities is extended through their mean.
        return found if found.shape[1] == count else np.tile(found / count, count)

    @property
    def kernel_(self) -> FloatArray:
        """The learned kernel matrix of the training points; of several models a stack, models last.

        Rows of points that a model does not use are 0.
        """
        size = self._X.shape[0]
        if len(self.results_) == 1 and self._models.parts[0][0].size == size:
            return cast(FloatArray, self.result_.kernel)
        found = np.zeros((size, size, len(self.results_)))
        for model, result in enumerate(self.results_):
            used = self._models.parts[model][0]
            found[used[:, None], used, model] = cast(FloatArray, result.kernel)
        return found[:, :, 0] if len(self.results_) == 1 else found


class _KernelEach(_SimilarityLearner):
    """A learner of a kernel near each similarity."""

    @property
    def weights_(self) -> FloatArray:
        """1 / gamma, the weights of the kernels (models x kernels)."""
        return np.array([1 / cast(Any, result.point).gamma for result in self.results_])


def _corrected(S: Eigen, K: FloatArray, a: FloatArray, damping: float) -> FloatArray:
    """c a + S (S^2 + damping^2 |S|^2 I)^-1 (K - c S) a, c S the multiple of S nearest to K."""
    values, V = S
    squares = values**2
    floor = max(damping, 1e-12) * float(np.abs(values).max()) or 1.0
    inner = float(values @ np.einsum("ij,ij->j", V, K @ V))
    # A negative multiple of a similarity would turn it around.
    c = max(inner, 0.0) / (float(squares.sum()) or 1.0)
    own = c * (V.T @ a)
    return V @ (own + values / (squares + floor**2) * (V.T @ (K @ a) - values * own))


class ESKL(_SimilarityLearner):
    """A support vector machine with a kernel that is learned from similarities.

    Parameters
    ----------
    similarities
        A list from `klopt.learners.kernels`, which may hold functions that are no kernels (None:
        three Gaussian ones), or "precomputed", where X is a matrix or a stack of shape (points,
        training points, similarities).
    C
        The penalty of the margin violations.
    rho
        The penalty of the distance between kernel and similarities.
    trace
        The trace of the kernel: a number, "points" for the number of points, or None for any (then
        with one similarity and the squared loss it is IndSVM).
    loss
        The measure of that distance: "squared", "frobenius", "l1", or an object with value(X),
        subgradient(X) and conjugate(Z).
    damping
        Of the pseudoinverse that extends the kernel to new points.
    normalize
        Divide each similarity by the mean size of its diagonal on the training points.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.
    class_weight
        The weights of the classes, which multiply C: None, "balanced", or {class: weight}.
    backend
        The solver, or None for the planned ones.
    tol
        The relative gap up to which the optimum is certified.
    time_limit
        Seconds that a solver may take for one model; None for no limit.
    n_jobs
        How many models are solved at a time, in processes; None for 1, -1 for all processors.
        The models are the same.

    Attributes
    ----------
    classes_
        The class labels.
    scales_, kernel_names_
        The divisors and the names of the similarities.
    result_, results_
        The result with the largest relative gap, and those of all models.
    kernel_
        The learned kernel matrix of the training points.

    Notes
    -----
    Kernel and support vector machine are learned in one convex problem: the value of the machine +
    `rho` times the distance of the kernel from the similarities, over positive semidefinite kernels
    of the given trace. The paper leaves new points open: here their similarities go through a
    damped linear map. Weights of points multiply C; the distance counts each pair of training
    points once.

    References
    ----------
    Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
    multiple similarity matrices with general convex loss functions, Advances in Neural Information
    Processing Systems 23, 2010, (4).

    Luss, d'Aspremont, Support vector machine classification with indefinite kernels, Mathematical
    Programming Computation, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ESKL(lambda A, B: -np.abs(A[:, None] - B).sum(axis=2)).fit(X[:100:2], y[:100:2])
    >>> learner.result_.verdict.name, learner.score(X[1:100:2], y[1:100:2]) > 0.9
    ('OPTIMAL', True)
    """

    def _problem(
        self, S: tuple[Similarity, ...], signs: FloatArray, C: FloatArray, trace: float | None
    ) -> Problem:
        return SimilarityKernel(S, signs, C, self.rho, trace, self.loss)

    @classmethod
    def _parts(cls, result: Result) -> list[tuple[Eigen, FloatArray, float]]:
        point = cast(Any, result.point)
        extension = cast(SimilarityKernel, result.problem).extension(point)
        return [(extension.S.eigen, point.kernel, 1.0)]


class EMKL(_KernelEach):
    """A support vector machine with several kernels, each learned from a similarity.

    Parameters
    ----------
    similarities, C, rho, trace, loss, damping, normalize, multi_class, class_weight
        As in `ESKL`.
    backend, tol, time_limit, n_jobs
        As in `ESKL`.

    Attributes
    ----------
    weights_
        The weights of the kernels, one row per model, one column per kernel.
    classes_, scales_, kernel_names_, result_, results_, kernel_
        As in `ESKL`.

    Notes
    -----
    There is a kernel K_i near each similarity, and the support vector machine has the kernel sum_i
    K_i / gamma_i, gamma >= 0 of sum 1. Weights of points multiply C only, as in `ESKL`.

    References
    ----------
    Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
    multiple similarity matrices with general convex loss functions, Advances in Neural Information
    Processing Systems 23, 2010, (6).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = EMKL().fit(X[:100:2], y[:100:2])
    >>> learner.result_.verdict.name, learner.weights_.shape
    ('OPTIMAL', (1, 3))
    >>> learner.score(X[1:100:2], y[1:100:2]) > 0.9
    True
    """

    def _problem(
        self, S: tuple[Similarity, ...], signs: FloatArray, C: FloatArray, trace: float | None
    ) -> Problem:
        return SimilarityKernels(S, signs, C, self.rho, cast(float, trace), self.loss)


class REKL(_KernelEach):
    """A support vector machine with kernels that share the eigenvectors of similarities.

    Only the eigenvalues are learned. A similarity of low rank, such as a
    linear kernel, has the eigenvalue 0 many times, so that its eigenvectors are not unique and the
    result depends on rounding: use `EMKL` for it.

    Parameters
    ----------
    similarities, rho, trace, damping, normalize, multi_class, class_weight
        As in `ESKL`.
    C
        The penalty of the margin violations. The kernel is the sum of kernels of weights 1 / gamma,
        which for m similarities is about m^2 times as large as each: hence the smaller default.
    loss
        The distance of the eigenvalues from those of the similarity: "euclidean", as in Kundu et
        al. (2010), "squared", its square, which is the fastest, or "l1", the sum of the absolute
        differences. A one-sided (hinge) loss of the eigenvalues is "l1" with another `rho`, as
        their sum is given.
    backend, tol, time_limit, n_jobs
        As in `ESKL`.

    Attributes
    ----------
    weights_, classes_, scales_, kernel_names_, result_, results_, kernel_
        As in `EMKL`.

    Notes
    -----
    Each kernel K_i = V_i diag(mu_i) V_i' keeps the eigenvectors of its similarity V_i
    diag(lambda_i) V_i'. The loss l(mu_i - lambda_i) may be any convex function in the paper; here
    it is the Euclidean norm of its section 4, the square of it, or the sum of absolute values.
    Weights of points multiply C only.

    References
    ----------
    Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
    multiple similarity matrices with general convex loss functions, Advances in Neural Information
    Processing Systems 23, 2010, (7).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = REKL().fit(X[:100:2], y[:100:2])
    >>> learner.result_.verdict.name, learner.score(X[1:100:2], y[1:100:2]) > 0.9
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        similarities: Any = None,
        *,
        C: float = 0.3,
        rho: float = 1.0,
        trace: Trace = "points",
        loss: SpectralLoss = "squared",
        damping: float = 0.2,
        normalize: bool = True,
        multi_class: MultiClass = "ovo",
        class_weight: ClassWeight = None,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            similarities,
            C=C,
            rho=rho,
            trace=trace,
            loss=cast(Losses, loss),
            damping=damping,
            normalize=normalize,
            multi_class=multi_class,
            class_weight=class_weight,
            backend=backend,
            tol=tol,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

    def _problem(
        self, S: tuple[Similarity, ...], signs: FloatArray, C: FloatArray, trace: float | None
    ) -> Problem:
        loss = cast(SpectralLoss, self.loss)
        return SimilaritySpectra(S, signs, C, self.rho, cast(float, trace), loss)

    @classmethod
    def _eigenpairs(cls, result: Result) -> list[Eigen]:
        """Those that the problem has computed already."""
        spectra = cast(SimilaritySpectra, result.problem).several.spectra
        return list(zip(spectra.values, spectra.bases, strict=True))
