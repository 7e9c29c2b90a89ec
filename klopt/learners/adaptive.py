"""DANK: support vector classification and regression with a kernel F o K learned by entries.

F, positive semidefinite and near 11', is learned with the model
(`klopt.problems.AdaptiveKernel`). A new point x borrows the column of F of one training point b(x),
and the model decides by

    sum_i a_i F_(i, b(x)) k(x_i, x) + bias.

Liu et al. (2020) rank the new points of a batch among each other (rule "reciprocal", (11)); then
the prediction at a point depends on the others of the batch. For one point at a time their rule is
that of the nearest training point, "nearest", which is the default here. Ties go to the first
point, so no point is left without a match (`klopt.kernels.neighbour_extension`).

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
    """A model on the training points `used`, of which `support` have coefficients."""

    used: npt.NDArray[np.intp]
    support: npt.NDArray[np.intp]
    weighted: FloatArray
    """a_i F_ij, i in the support, j in the used points."""
    bias: float

    @classmethod
    def of(cls, result: Result, used: npt.NDArray[np.intp], a: FloatArray) -> _KernelModel:
        point = cast(Any, result.point)
        own = np.flatnonzero(a)
        F = cast(Any, result.problem).weights(point)
        return cls(used, used[own], a[own, None] * F[own], float(point.bias))

    def values(self, K: FloatArray, D: FloatArray, rule: Rule) -> FloatArray:
        """The values at new points from k to the training points and D from them."""
        borrowed = neighbours(D[self.used], rule)
        return np.asarray(
            np.einsum("ij,ji->i", K[:, self.support], self.weighted[:, borrowed]) + self.bias
        )


class _Adaptive(Learner):
    kernel: Any
    C: float
    influence: float
    deviation: float | None
    eta: float | None
    tau: float
    rule: Rule
    result_: Result
    _kernel: Kernel | None

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    def _matrix(self, X: FloatArray) -> Gram:
        """The given kernel on the training points."""
        self._kernel = None
        if self._is_precomputed:
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a precomputed kernel is square; X has shape {X.shape}")
            if self.rule == "reciprocal":
                raise InvalidProblem(
                    "rule 'reciprocal' needs points; with a precomputed kernel take 'nearest'"
                )
            self._diagonal = X.diagonal().copy()
            return Gram.of(X, "X")
        self._kernel = as_kernel(self.kernel).fix(X, getattr(self, "feature_names_in_", None))
        self._X = X
        return self._kernel.gram(X, "K")

    def _eta(self, K: Gram) -> float:
        if self.eta is not None:
            return self.eta
        if self.deviation is not None:
            return AdaptiveKernel.eta_for(self.deviation, self.C, _largest(K))
        # C^2 sum_i K_ib^2 / (4 eta) is the most that F can add to k(x_b, x_b) in f(x_b).
        reach = float(np.square(K.matrix).sum(axis=0).max())
        largest = _largest(K)
        deviation = positive("influence", self.influence) * largest**2 / (reach or 1.0)
        return AdaptiveKernel.eta_for(deviation, self.C, largest)

    def _check_gains(self, results: list[Result]) -> None:
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

    def _decide(self, X: Any, models: tuple[_KernelModel, ...]) -> FloatArray:
        """The values of models at the rows of X."""
        points = self._points(X)
        values = np.empty((points.shape[0], len(models)))
        batches = blocks(points.shape[0], 16 * self._size)
        # "reciprocal" ranks all new points among each other: they must not be cut into blocks.
        if self.rule == "reciprocal":
            batches = iter([slice(None)])
        for rows in batches:
            K, D = self._seen(points[rows])
            for index, model in enumerate(models):
                values[rows, index] = model.values(K, D, self.rule)
        return values

    @property
    def _size(self) -> int:
        return int(self._diagonal.size if self._kernel is None else self._X.shape[0])

    def _seen(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """k between points and training points, and distances of training points and points."""
        # |phi(x_i) - phi(x)|^2 without k(x, x), which does not change which point is nearest.
        if self._kernel is None:
            return points, self._diagonal[:, None] - 2 * points.T
        if sparse.issparse(self._X) or sparse.issparse(points):
            distances = euclidean_distances(self._X, points, squared=True)
        else:
            distances = squared_distances(self._X, points)
        return self._kernel(points, self._X), distances

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
    backend
        The solver, or None for the planned ones.
    tol
        The relative gap up to which the optimum is certified.
    time_limit
        Seconds that a solver may take for one model; None for no limit.

    Attributes
    ----------
    classes_
        The class labels.
    result_, results_
        The result with the largest relative gap, and those of all models.
    kernel_
        The learned F o K on the training points.

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
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.influence = influence
        self.deviation = deviation
        self.eta = eta
        self.tau = tau
        self.rule = rule
        self.multi_class = multi_class
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the models and their kernels."""
        X, codes = self._labelled(X, y, unlabelled=False)
        K = self._matrix(X)
        eta = self._eta(K)
        self._scheme = MulticlassScheme(self.classes_.size, self.multi_class)
        results = []
        models = []
        for model in range(len(self._scheme.pairs)):
            signs = self._scheme.signs(codes, model)
            used = np.flatnonzero(signs)
            own = K if used.size == signs.size else part(K, used)
            result = self._certified(AdaptiveKernel(own, signs[used], self.C, eta, self.tau))
            results.append(result)
            models.append(
                _KernelModel.of(result, used, signs[used] * cast(Any, result.point).alpha)
            )
        self._check_gains(results)
        self.results_ = tuple(results)
        self._models = tuple(models)
        self.result_ = max(results, key=lambda result: result.certificate.relative_gap)
        return self

    @property
    def kernel_(self) -> FloatArray:
        """The learned F o K on the training points, (n, n); of several models a stack, models last.

        Rows of points that a model does not use are 0.
        """
        if len(self.results_) == 1:
            return cast(FloatArray, self.result_.kernel)
        found = np.zeros((self._size, self._size, len(self.results_)))
        for index, (model, result) in enumerate(zip(self._models, self.results_, strict=True)):
            found[model.used[:, None], model.used, index] = cast(FloatArray, result.kernel)
        return found

    def decision_function(self, X: Any) -> FloatArray:
        """Return one score a class; for two classes one number, positive for the second."""
        check_is_fitted(self)
        return self._scheme.scores(self._decide(X, self._models))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the classes of points."""
        return self._named(self.decision_function(X))


class DankSVR(RegressorMixin, _Adaptive):  # type: ignore[misc]
    """Support vector regression with a data-adaptive kernel F o K.

    Parameters
    ----------
    kernel, C, influence, deviation, eta, tau, rule, backend, tol, time_limit
        As in `DankSVC`.
    epsilon
        Residuals up to this size cost nothing.

    Attributes
    ----------
    result_
        The certified result.
    kernel_
        The learned F o K on the training points.

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
        backend: str | Backend | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.influence = influence
        self.deviation = deviation
        self.eta = eta
        self.tau = tau
        self.rule = rule
        self.backend = backend
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the regression and its kernel."""
        if sparse.issparse(X):
            sound_sparse("X", X)
        checks = {"accept_sparse": self._accepts_sparse, "ensure_min_samples": 2}
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, **checks)
        K = self._matrix(X)
        targets = np.asarray(y, dtype=float)
        problem = AdaptiveKernelRegression(K, targets, self.C, self.epsilon, self._eta(K), self.tau)
        self.result_ = self._certified(problem)
        self._check_gains([self.result_])
        self._model = _KernelModel.of(
            self.result_, np.arange(len(targets)), cast(Any, self.result_.point).beta
        )
        return self

    @property
    def kernel_(self) -> FloatArray:
        """The learned F o K on the training points."""
        return cast(FloatArray, self.result_.kernel)

    def predict(self, X: Any) -> FloatArray:
        """Return the values at points."""
        check_is_fitted(self)
        return self._decide(X, (self._model,))[:, 0]
