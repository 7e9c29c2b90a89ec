"""DANK: support vector classification and regression with a kernel F o K learned by entries.

F, positive semidefinite and near 11', is learned with the model
(`klopt.problems.AdaptiveKernel`). A new point x borrows the column of F of one training point b(x),
and the model decides by

    sum_i a_i F_(i, b(x)) k(x_i, x) + bias.

Liu et al. (2020) rank the new points of a batch among each other (rule "reciprocal", (11)); then
the prediction at a point depends on the others of the batch. For one point at a time their rule is
that of the nearest training point, "nearest", which is the default here. Ties go to the first
point, so no point is left without a match (`klopt.kernels.neighbour_extension`).

Many points are divided into clusters by k-means (`clusters`), each of which is a problem of its own
(section 4 of the paper); no matrix of all points is formed. The paper concatenates the solutions
with an F that is 0 between clusters, so that a new point is decided by the model of one cluster;
here it is that of the nearest centre. As each cluster then decides alone, it keeps its own bias and
its own penalty of tr F, which the paper leaves out, and one cluster is the undivided model. What
the concatenation proves of the undivided problem is in `klopt.learners.decomposition`.

Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from klopt.arrays import FloatArray, positive, sound_sparse
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.neighbour_extension import Rule, neighbours, squared_distances
from klopt.learners._base import PRECOMPUTED, Classifier, Learner, part
from klopt.learners._clusters import Division
from klopt.learners._multiclass import MultiClass, MulticlassScheme
from klopt.learners.kernels import Kernel, as_kernel, blocks
from klopt.model.backend import Backend
from klopt.problems.adaptive_kernel import AdaptiveKernel
from klopt.problems.adaptive_kernel_regression import AdaptiveKernelRegression

__all__ = ["DankSVC", "DankSVR"]

MEMORY = 0.4
"""Above this median gain more than 95 % of the decisions on five sets were those of 1-NN."""
NOTHING = 1e-3
"""Below this gain, everywhere, F is 1 for all that decisions tell."""


@dataclass(frozen=True, eq=False)
class _KernelModel:
    """A model on the points `used` of a cluster, of which `support` have coefficients."""

    used: npt.NDArray[np.intp]
    support: npt.NDArray[np.intp]
    weighted: FloatArray
    """a_i F_ij, i in the support, j in the used points."""
    bias: float
    result: Result | None = None

    @classmethod
    def of(cls, result: Result, used: npt.NDArray[np.intp], a: FloatArray) -> _KernelModel:
        point = cast(Any, result.point)
        own = np.flatnonzero(a)
        F = cast(Any, result.problem).weights(point)
        return cls(used, used[own], a[own, None] * F[own], float(point.bias), result)

    @classmethod
    def constant(cls, value: float) -> _KernelModel:
        """Return the model of points of one class, or of none: nothing is to be learned."""
        none = np.zeros(0, dtype=np.intp)
        return cls(none, none, np.zeros((0, 0)), value)

    def values(self, K: FloatArray, D: FloatArray, rule: Rule) -> FloatArray:
        """The values at new points from k to the cluster's points and D from them."""
        if not self.support.size:
            return np.full(len(K), self.bias)
        borrowed = neighbours(D[self.used], rule)
        return np.asarray(
            np.einsum("ij,ji->i", K[:, self.support], self.weighted[:, borrowed]) + self.bias
        )


Models = tuple[_KernelModel, ...]
"""Those of one cluster."""


class _Adaptive(Learner):
    kernel: Any
    C: float
    influence: float
    deviation: float | None
    eta: float | None
    tau: float
    rule: Rule
    clusters: int | None
    random_state: int
    result_: Result
    results_: tuple[Result, ...]
    _kernel: Kernel | None
    _models: tuple[Models, ...]

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    def _grams(self, X: FloatArray) -> list[Gram]:
        """The given kernel on the training points of each cluster."""
        self._kernel = None
        self._division = Division((np.arange(X.shape[0]),))
        if self._is_precomputed:
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a precomputed kernel is square; X has shape {X.shape}")
            if self.rule == "reciprocal":
                raise InvalidProblem(
                    "rule 'reciprocal' needs points; with a precomputed kernel take 'nearest'"
                )
            if self.clusters is not None:
                raise InvalidProblem(
                    f"clusters is {self.clusters!r}, but k-means needs points; with a precomputed "
                    "kernel leave clusters out"
                )
            self._diagonal = X.diagonal().copy()
            return [Gram.of(X, "X")]
        self._kernel = as_kernel(self.kernel).fix(X, getattr(self, "feature_names_in_", None))
        self._X = X
        if self.clusters is not None:
            self._division = Division.of(X, self.clusters, self.random_state)
        return [self._kernel.gram(X[rows], "K") for rows in self._division.rows]

    def _eta(self, grams: list[Gram]) -> float:
        """One eta for all clusters: the largest that one of them asks for."""
        return max(self._eta_of(K) for K in grams)

    def _eta_of(self, K: Gram) -> float:
        if self.eta is not None:
            return self.eta
        if self.deviation is not None:
            return AdaptiveKernel.eta_for(self.deviation, self.C, _largest(K))
        # C^2 sum_i K_ib^2 / (4 eta) is the most that F can add to k(x_b, x_b) in f(x_b).
        reach = float(np.square(K.matrix).sum(axis=0).max())
        largest = _largest(K)
        deviation = positive("influence", self.influence) * largest**2 / (reach or 1.0)
        return AdaptiveKernel.eta_for(deviation, self.C, largest)

    def _keep(self, models: list[Models]) -> None:
        """Keep the models of each cluster and their results."""
        self._models = tuple(models)
        found = [model.result for own in models for model in own]
        self.results_ = tuple(result for result in found if result is not None)
        # The result with the largest relative gap stands for all.
        self.result_ = max(self.results_, key=lambda result: result.certificate.relative_gap)

    @property
    def kernel_(self) -> FloatArray:
        """The learned F o K on the training points, (n, n); of several models a stack, models last.

        It is 0 between clusters, and for points that a model does not use.
        """
        found = np.zeros((self._size, self._size, len(self._models[0])))
        for rows, models in zip(self._division.rows, self._models, strict=True):
            for index, model in enumerate(models):
                if model.result is not None:
                    used = rows[model.used]
                    found[used[:, None], used, index] = cast(FloatArray, model.result.kernel)
        return found[:, :, 0] if found.shape[2] == 1 else found

    def _check_gains(self, results: tuple[Result, ...]) -> None:
        """Warn where F does nothing, or where the nearest point alone decides.

        F adds sum_i a_i^2 K_ib^2 / (4 eta) to k(x_b, x_b) in the value at x_b: that gain is what a
        new point borrows with the column of x_b, its nearest.
        """
        gains = np.concatenate([_gains(result) for result in results])
        if float(np.median(gains)) > MEMORY:
            self._warn_of_kernel(
                f"the learned kernel only memorises: F adds {np.median(gains):.2g} times k(x, x) to "
                "the weight of the nearest training point, which then decides alone; take a smaller "
                "influence or deviation, or a larger eta"
            )
        elif float(gains.max()) < NOTHING:
            self._warn_of_kernel(
                f"the learned kernel does nothing: F adds at most {gains.max():.1e} times k(x, x); "
                "take a larger influence or deviation, or a smaller eta"
            )

    def _decide(self, X: Any) -> FloatArray:
        """The values of the models at the rows of X, each by the models of its cluster."""
        points = self._points(X)
        values = np.empty((points.shape[0], len(self._models[0])))
        clusters = self._division.assigned(points)
        for cluster, models in enumerate(self._models):
            mine = np.flatnonzero(clusters == cluster)
            for rows in self._batches(mine):
                K, D = self._seen(points[rows], cluster)
                for index, model in enumerate(models):
                    values[rows, index] = model.values(K, D, self.rule)
        return values

    def _batches(self, rows: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
        """Points that are decided at a time."""
        # "reciprocal" ranks all new points among each other: they must not be cut into blocks.
        if self.rule == "reciprocal":
            return [rows] if rows.size else []
        return [rows[block] for block in blocks(rows.size, 16 * self._size)]

    @property
    def _size(self) -> int:
        return int(self._diagonal.size if self._kernel is None else self._X.shape[0])

    def _seen(self, points: FloatArray, cluster: int) -> tuple[FloatArray, FloatArray]:
        """k between points and those of a cluster, and distances of these and the points."""
        # |phi(x_i) - phi(x)|^2 without k(x, x), which does not change which point is nearest.
        if self._kernel is None:
            return points, self._diagonal[:, None] - 2 * points.T
        own = self._X if len(self._models) == 1 else self._X[self._division.rows[cluster]]
        if sparse.issparse(own) or sparse.issparse(points):
            distances = euclidean_distances(own, points, squared=True)
        else:
            distances = squared_distances(own, points)
        return self._kernel(points, own), distances

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        return tags


def _gains(result: Result) -> FloatArray:
    """sum_i a_i^2 K_ib^2 / (4 eta K_bb) of each point b."""
    problem = cast(Any, result.problem)
    point = cast(Any, result.point)
    a = point.beta if isinstance(problem, AdaptiveKernelRegression) else point.alpha
    K = problem.K.matrix
    diagonal = np.where(K.diagonal() > 0, K.diagonal(), 1.0)
    return np.asarray((a**2) @ K**2 / (4 * problem.eta * diagonal))


def _cut(K: Gram, used: npt.NDArray[np.intp]) -> Gram:
    return K if used.size == len(K.matrix) else part(K, used)


def _largest(K: Gram) -> float:
    return float(K.matrix.diagonal().max()) or 1.0


class DankSVC(Classifier, _Adaptive):
    """A support vector machine with a data-adaptive kernel F o K.

    Several classes are several models, each with an F of its own.

    Parameters
    ----------
    kernel
        The kernel k: "rbf", "linear", "poly", a kernel of `klopt.learners.kernels`, a function of
        two sets of points, or "precomputed", where X is the kernel matrix.
    C
        The penalty of the margin violations.
    influence
        The most that F may add to the weight of the nearest training point, in units of its
        k(x, x), where `eta` and `deviation` are None. It does not depend on the number of points.
    deviation
        How far an entry of F may be from 1, apart from `tau` / 2, where `eta` is None; the more
        points there are, the more the nearest one decides.
    eta
        The penalty of ||F - 11'||^2; None takes it from `deviation` or `influence`.
    tau
        The penalty of tr F in units of `eta`; above 0 it makes F of low rank.
    rule
        How a new point finds the training point whose column of F it borrows.
    multi_class
        "ovo" for a model per pair of classes, "ovr" for a model per class.
    clusters
        The number of clusters that k-means divides the points into, each with models of its own;
        None for no division. A new point is decided by the models of the nearest centre. For many
        points: time and memory fall with the number of clusters, and so may the accuracy.
    random_state
        The seed of k-means.
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
    result_, results_
        The result with the largest relative gap, and those of all models, cluster by cluster.
    kernel_
        The learned F o K on the training points, 0 between clusters.

    Notes
    -----
    The kernel is F o K, entry by entry. F is positive semidefinite, and eta ||F - 11'||^2 + tau eta
    tr F is part of the objective; kernel and support vector machine are one convex problem whose
    optimum is proven. A new point borrows the column of F of its nearest training point. With
    `clusters` each cluster is such a problem of its own.

    References
    ----------
    Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, Journal of Machine
    Learning Research, 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = DankSVC(C=10.0).fit(X[::2], y[::2])
    >>> learner.result_.verdict.name, learner.score(X[1::2], y[1::2]) > 0.9
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        influence: float = 0.5,
        deviation: float | None = None,
        eta: float | None = None,
        tau: float = 0.0,
        rule: Rule = "nearest",
        multi_class: MultiClass = "ovo",
        clusters: int | None = None,
        random_state: int = 0,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.influence = influence
        self.deviation = deviation
        self.eta = eta
        self.tau = tau
        self.rule = rule
        self.multi_class = multi_class
        self.clusters = clusters
        self.random_state = random_state
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the models and their kernels."""
        X, codes = self._labelled(X, y, unlabelled=False)
        grams = self._grams(X)
        eta = self._eta(grams)
        self._scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        count = len(self._scheme.pairs)
        all_signs = [
            self._scheme.signs(codes[rows], model)
            for rows in self._division.rows
            for model in range(count)
        ]
        parts = [np.flatnonzero(signs) for signs in all_signs]
        open_ = [i for i, signs in enumerate(all_signs) if {-1.0, 1.0} <= set(signs.tolist())]
        if not open_:
            raise InvalidProblem(
                f"each of the {len(grams)} clusters holds one class only: there is nothing to "
                "learn; take fewer clusters"
            )
        results = self._certified_each(
            AdaptiveKernel(
                _cut(grams[i // count], parts[i]), all_signs[i][parts[i]], self.C, eta, self.tau
            )
            for i in open_
        )
        found = dict(zip(open_, results, strict=True))

        def model(i: int) -> _KernelModel:
            signs = all_signs[i]
            # One class alone, +1 or -1, decides everywhere; 0 where there is none.
            if i not in found:
                return _KernelModel.constant(float(np.sign(signs.sum())))
            a = signs[parts[i]] * cast(Any, found[i].point).alpha
            return _KernelModel.of(found[i], parts[i], a)

        clusters = range(len(grams))
        self._keep([tuple(model(c * count + m) for m in range(count)) for c in clusters])
        self._check_gains(self.results_)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        return self._scheme.scores(self._decide(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points."""
        return self._named(self.decision_function(X))


class DankSVR(RegressorMixin, _Adaptive):  # type: ignore[misc]
    """Support vector regression with a data-adaptive kernel F o K.

    Parameters
    ----------
    kernel, C, influence, deviation, eta, tau, rule, clusters, random_state
        As in `DankSVC`.
    backend, tol, time_limit, n_jobs
        As in `DankSVC`.
    epsilon
        Residuals up to this size cost nothing.

    Attributes
    ----------
    result_, results_
        The result with the largest relative gap, and those of all clusters.
    kernel_
        The learned F o K on the training points, 0 between clusters.

    Notes
    -----
    The kernel is F o K as in `DankSVC`, learned together with an epsilon-insensitive regression.

    References
    ----------
    Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, Journal of Machine
    Learning Research, 2020.

    Examples
    --------
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> learner = DankSVR(C=10.0).fit(X, np.sin(X.ravel()))
    >>> learner.result_.verdict.name, learner.score(X + 0.05, np.sin(X.ravel() + 0.05)) > 0.95
    ('OPTIMAL', True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        influence: float = 0.5,
        deviation: float | None = None,
        eta: float | None = None,
        tau: float = 0.0,
        rule: Rule = "nearest",
        clusters: int | None = None,
        random_state: int = 0,
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.influence = influence
        self.deviation = deviation
        self.eta = eta
        self.tau = tau
        self.rule = rule
        self.clusters = clusters
        self.random_state = random_state
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the regression and its kernel."""
        if sparse.issparse(X):
            sound_sparse("X", X)
        checks = {"accept_sparse": self._accepts_sparse, "ensure_min_samples": 2}
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, **checks)
        targets = np.asarray(y, dtype=float)
        grams = self._grams(X)
        eta = self._eta(grams)
        groups = self._division.rows
        results = self._certified_each(
            AdaptiveKernelRegression(K, targets[rows], self.C, self.epsilon, eta, self.tau)
            for K, rows in zip(grams, groups, strict=True)
        )
        models = [
            _KernelModel.of(result, np.arange(rows.size), cast(Any, result.point).beta)
            for result, rows in zip(results, groups, strict=True)
        ]
        self._keep([(model,) for model in models])
        self._check_gains(self.results_)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the values at points."""
        check_is_fitted(self)
        return self._decide(X)[:, 0]
