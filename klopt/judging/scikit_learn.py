"""Fitted kernel estimators of scikit-learn, judged on the data that they were fitted to.

What is judged is the problem that the estimator states: its own C, nu, epsilon, alpha, weights of
classes and samples, and the kernel matrix that `sklearn.metrics.pairwise.pairwise_kernels` computes
from X with the estimator's own parameters. With the coefficients a of the support vectors:

    SVC          max 1'a - a'Qa/2        0 <= a <= C_i, y'a = 0              SoftMargin
    NuSVC        min a'Qa/2              0 <= a <= 1/n, y'a = 0, 1'a >= nu   NuMargin
    SVR          max y'a - epsilon ||a||_1 - a'Ka/2    |a| <= C_i, 1'a = 0   EpsilonMargin
    NuSVR        min a'Ka/2 - y'a        |a| <= C_i, 1'a = 0, ||a||_1 <= nu sum_i C_i
    KernelRidge  max y'a - a'(K + alpha I)a/2                                MultipleKernel

Where the C_i differ, and for NuSVR, the problem is stated as a quadratic program (`QCQP`).

The bias `intercept_` is judged as well: together with the coefficients it is a point of the primal
problem, whose value bounds the optimum from the other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, vector
from klopt.engine.result import Result
from klopt.errors import InvalidProblem
from klopt.judging.given import Claim, judged
from klopt.judging.joint import joined
from klopt.kernels.gram import Gram
from klopt.model.backend import Settings, Stop
from klopt.model.problem import Point, Problem
from klopt.problems import QCQP, EpsilonMargin, MultipleKernel, NuMargin, SoftMargin

__all__ = ["judge_kernel_ridge", "judge_nu_svc", "judge_nu_svr", "judge_svc", "judge_svr"]

CLASSIFIER = "the classifier of dual_coef_ and intercept_"
REGRESSION = "the regression of dual_coef_ and intercept_"


# Classification


def judge_svc(svc: Any, X: Any, y: Any, sample_weight: Any = None, *, settings: Settings) -> Result:
    """Return what is proven of a fitted `SVC`, each of its machines judged by itself.

    Parameters
    ----------
    svc
        The fitted estimator.
    X, y, sample_weight
        What it was fitted to.
    settings
        The tolerance and the time limit.

    >>> from sklearn.svm import SVC
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = [0, 0, 1, 1]
    >>> judge_svc(SVC(tol=1e-9).fit(X, y), X, y, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    return _judge_classifier(svc, X, y, sample_weight, settings, has_nu=False)


def judge_nu_svc(
    svc: Any, X: Any, y: Any, sample_weight: Any = None, *, settings: Settings
) -> Result:
    """Return what is proven of a fitted `NuSVC`, each of its machines judged by itself.

    Parameters
    ----------
    svc, X, y, sample_weight, settings
        As in `judge_svc`.

    >>> from sklearn.svm import NuSVC
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = [0, 0, 1, 1]
    >>> judge_nu_svc(NuSVC(tol=1e-9).fit(X, y), X, y, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    return _judge_classifier(svc, X, y, sample_weight, settings, has_nu=True)


def _judge_classifier(
    svc: Any, X: Any, y: Any, sample_weight: Any, settings: Settings, *, has_nu: bool
) -> Result:
    """What is proven of each machine of one class against another.

    Parameters
    ----------
    svc, X, y, sample_weight, settings
        As in `judge_svc`.
    has_nu
        Whether the estimator has nu in place of C.
    """
    data = _training_data(svc, X, sample_weight)
    labels = _labels(svc, y, data)
    penalties = np.ones(len(svc.classes_))
    if not has_nu:
        penalties = float(svc.C) * np.asarray(svc.class_weight_, dtype=float)
    parts = {}
    for pair in _pairs(svc, data.support):
        first, second = svc.classes_[sorted((pair.negative, pair.positive))].tolist()
        name = f"{first!r} against {second!r}"
        is_member = np.isin(labels, (pair.negative, pair.positive)) & (data.weights > 0)
        members = np.flatnonzero(is_member)
        signs = np.where(labels[members] == pair.positive, 1.0, -1.0)
        coefficients = pair.coefficients(data.size)[members]
        machine = _Machine(
            data.kernel(members, name),
            signs,
            coefficients,
            pair.intercept,
            data.weights[members] * penalties[labels[members]],
        )
        claim, problem = machine.nu_claim(svc) if has_nu else machine.claim(svc)
        parts[name] = judged(problem, claim, settings)
    return joined(parts)


@dataclass(frozen=True, eq=False)
class _Pair:
    """One machine of a classifier: two classes by number, and its part of `dual_coef_`.

    Parameters
    ----------
    negative, positive
        The classes that it calls -1 and +1.
    support, values
        The points with coefficients, and these: y_i a_i.
    intercept
        Its bias.
    """

    negative: int
    positive: int
    support: npt.NDArray[np.intp]
    values: FloatArray
    intercept: float

    def coefficients(self, size: int) -> FloatArray:
        """Return y o a for all points."""
        z = np.zeros(size)
        z[self.support] = self.values
        return z


def _pairs(svc: Any, all_support: npt.NDArray[np.intp]) -> Iterator[_Pair]:
    """The machines of one class against another, in LIBSVM's order.

    `dual_coef_` has a row for each other class: the support vectors of class i have their
    coefficients against class j > i in row j - 1, those of class j theirs against i in row i. The
    first class of a pair is +1, but for two classes scikit-learn turns the signs.
    """
    dual = svc.dual_coef_
    if hasattr(dual, "toarray"):
        dual = dual.toarray()
    starts = np.concatenate(([0], np.cumsum(svc.n_support_)))
    classes = len(svc.classes_)
    for number, (i, j) in enumerate(combinations(range(classes), 2)):
        of_first = slice(starts[i], starts[i + 1])
        of_second = slice(starts[j], starts[j + 1])
        support = np.concatenate((all_support[of_first], all_support[of_second]))
        values = np.concatenate((dual[j - 1, of_first], dual[i, of_second]))
        intercept = float(svc.intercept_[number])
        positive, negative = (j, i) if classes == 2 else (i, j)
        yield _Pair(negative, positive, support, values, intercept)


@dataclass(frozen=True, eq=False)
class _Machine:
    """A classifier of two classes: its kernel, signs, coefficients z = y o a, bias and penalties."""

    K: Gram
    y: FloatArray
    z: FloatArray
    intercept: float
    C: FloatArray

    def claim(self, svc: Any) -> tuple[Claim, Problem]:
        """Return what a fitted `SVC` claims, and of which problem."""
        alpha = self.y * self.z
        f = self.K.matrix @ self.z
        losses = np.maximum(1 - self.y * (f + self.intercept), 0.0)
        primal = float(self.z @ f) / 2 + float(self.C @ losses)
        native, stop = _status(svc)
        if np.ptp(self.C) == 0:
            bias = self.intercept
            point = Point({"alpha": alpha, "bias": bias})
            claim = Claim(point, stop, native, bound=primal, bound_of=CLASSIFIER)
            return claim, SoftMargin(self.K, self.y, float(self.C[0]))
        # Penalties of their own: a quadratic program, which minimises the negative.
        Q = self.y[:, None] * self.K.matrix * self.y
        bounds = np.column_stack((np.zeros(self.y.size), self.C))
        problem = QCQP(
            Q, np.full(self.y.size, -1.0), A_eq=self.y[None, :], b_eq=[0.0], bounds=bounds
        )
        point = Point({"x": alpha}, {"eq": np.array([self.intercept])})
        return Claim(point, stop, native, bound=-primal, bound_of=CLASSIFIER), problem

    def nu_claim(self, svc: Any) -> tuple[Claim, Problem]:
        """Return what a fitted `NuSVC` claims, and of which problem.

        LIBSVM divides its coefficients by the margin. Their sum is known, so that it is undone.
        """
        n = self.y.size
        nu = float(svc.nu)
        alpha = self.y * self.z
        total = float(np.abs(alpha).sum())
        unit = nu / total if total else 1.0
        alpha = unit * alpha
        f = self.K.matrix @ (self.y * alpha)
        margins = self.y * (f + unit * self.intercept)
        native, stop = _status(svc)
        weights = self.C / self.C.sum()
        # For the best margin rho the losses are the nu smallest margins.
        sum_of_smallest, rho = _smallest(margins, weights, nu)
        bound = sum_of_smallest - float(self.y * alpha @ f) / 2
        if np.ptp(self.C) == 0:
            claim = Claim(Point({"alpha": alpha}), stop, native, bound=bound, bound_of=CLASSIFIER)
            return claim, NuMargin(self.K, self.y, nu)
        # The weights themselves are the bounds, as in LIBSVM.
        length = float(self.C.sum())
        Q = self.y[:, None] * self.K.matrix * self.y
        bounds = np.column_stack((np.zeros(n), self.C))
        problem = QCQP(
            Q,
            np.zeros(n),
            A_ub=np.full((1, n), -1.0),
            b_ub=[-nu * length],
            A_eq=self.y[None, :],
            b_eq=[0.0],
            bounds=bounds,
        )
        bias = length * unit * self.intercept
        multipliers = {"eq": np.array([bias]), "ub": np.array([max(length * rho, 0.0)])}
        point = Point({"x": length * alpha}, multipliers)
        claim = Claim(point, stop, native, bound=length**2 * bound, bound_of=CLASSIFIER)
        return claim, problem


def _smallest(values: FloatArray, weights: FloatArray, share: float) -> tuple[float, float]:
    """The least sum of w_i v_i over 0 <= w <= weights, 1'w = share, and the largest v_i in it."""
    order = np.argsort(values)
    before = np.cumsum(weights[order]) - weights[order]
    taken = np.clip(share - before, 0.0, weights[order])
    last = max(int(np.count_nonzero(taken > 0)) - 1, 0)
    return float(taken @ values[order]), float(values[order[last]])


def _labels(svc: Any, y: Any, data: _TrainingData) -> npt.NDArray[np.intp]:
    """The class of each point by number; it must be that of the support vectors as well."""
    given = np.asarray(y)
    if given.shape != (data.size,):
        raise InvalidProblem(f"y has shape {given.shape}; expected ({data.size},)")
    unknown = np.flatnonzero(~np.isin(given, svc.classes_))
    if unknown.size:
        raise InvalidProblem(
            f"y[{unknown[0]}] is {given[unknown[0]]!r}, which is none of the classes "
            f"{svc.classes_.tolist()} of the {type(svc).__name__}; give the y that it was fitted to"
        )
    labels = np.searchsorted(svc.classes_, given)
    kept = np.repeat(np.arange(len(svc.classes_)), svc.n_support_)
    wrong = np.flatnonzero(labels[data.support] != kept)
    if wrong.size:
        place = int(data.support[wrong[0]])
        raise InvalidProblem(
            f"y[{place}] is {given[place]!r}, but its support vector was of class "
            f"{svc.classes_[kept[wrong[0]]]!r}; give the y that it was fitted to"
        )
    return labels.astype(np.intp)


# Regression


def judge_svr(svr: Any, X: Any, y: Any, sample_weight: Any = None, *, settings: Settings) -> Result:
    """Return what is proven of a fitted `SVR`.

    Parameters
    ----------
    svr
        The fitted estimator.
    X, y, sample_weight
        What it was fitted to.
    settings
        The tolerance and the time limit.

    >>> from sklearn.svm import SVR
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = [0.0, 1.0, 0.0, 1.0]
    >>> judge_svr(SVR(tol=1e-9).fit(X, y), X, y, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    fitted = _Regression.of(svr, X, y, sample_weight)
    epsilon = float(svr.epsilon)
    misses = np.abs(fitted.residuals) - epsilon
    primal = fitted.half_square + float(fitted.C @ np.maximum(misses, 0.0))
    native, stop = _status(svr)
    if np.ptp(fitted.C) == 0:
        point = Point({"beta": fitted.beta, "bias": fitted.intercept})
        claim = Claim(point, stop, native, bound=primal, bound_of=REGRESSION)
        problem: Problem = EpsilonMargin(fitted.K, fitted.y, float(fitted.C[0]), epsilon)
    else:
        problem = fitted.program(epsilon)
        claim = Claim(fitted.halves(), stop, native, bound=-primal, bound_of=REGRESSION)
    return judged(problem, claim, settings)


def judge_nu_svr(
    svr: Any, X: Any, y: Any, sample_weight: Any = None, *, settings: Settings
) -> Result:
    """Return what is proven of a fitted `NuSVR`.

    Parameters
    ----------
    svr, X, y, sample_weight, settings
        As in `judge_svr`.

    >>> from sklearn.svm import NuSVR
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = [0.0, 1.0, 0.0, 1.0]
    >>> judge_nu_svr(NuSVR(tol=1e-9).fit(X, y), X, y, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    fitted = _Regression.of(svr, X, y, sample_weight)
    budget = float(svr.nu) * float(fitted.C.sum())
    # For the best tube the losses are the largest residuals, as many as the budget allows.
    losses, smallest = _smallest(-np.abs(fitted.residuals), fitted.C, budget)
    native, stop = _status(svr)
    bound = losses - fitted.half_square
    point = fitted.halves(epsilon=-smallest)
    claim = Claim(point, stop, native, bound=bound, bound_of=REGRESSION)
    return judged(fitted.program(0.0, budget), claim, settings)


@dataclass(frozen=True, eq=False)
class _Regression:
    """A fitted regression: its kernel, targets, coefficients, bias and penalties."""

    K: Gram
    y: FloatArray
    beta: FloatArray
    intercept: float
    C: FloatArray

    @classmethod
    def of(cls, svr: Any, X: Any, y: Any, sample_weight: Any) -> _Regression:
        """Return what a fitted estimator holds, on the points that count."""
        data = _training_data(svr, X, sample_weight)
        targets = vector("y", y, data.size)
        beta = np.zeros(data.size)
        dual = svr.dual_coef_.toarray() if hasattr(svr.dual_coef_, "toarray") else svr.dual_coef_
        beta[data.support] = dual[0]
        members = np.flatnonzero(data.weights > 0)
        K = data.kernel(members, "the regression")
        C = float(svr.C) * data.weights[members]
        return cls(K, targets[members], beta[members], float(svr.intercept_[0]), C)

    @property
    def _product(self) -> FloatArray:
        return self.K.matrix @ self.beta

    @property
    def half_square(self) -> float:
        """beta'K beta / 2."""
        return float(self.beta @ self._product) / 2

    @property
    def residuals(self) -> FloatArray:
        """What the regression misses of each target."""
        return self.y - self._product - self.intercept

    def halves(self, epsilon: float = 0.0) -> Point:
        """Return (u, v) of `program`, beta = u - v; a tube that is learned prices its budget."""
        x = np.concatenate((np.maximum(self.beta, 0.0), np.maximum(-self.beta, 0.0)))
        return Point({"x": x}, {"eq": np.array([self.intercept]), "ub": np.array([epsilon])})

    def program(self, epsilon: float, budget: float = np.inf) -> QCQP:
        """Return the problem in u, v >= 0, minimised, with 1'(u + v) <= budget."""
        n = self.y.size
        K = self.K.matrix
        signs = np.repeat([1.0, -1.0], n)
        bounds = np.column_stack((np.zeros(2 * n), np.tile(self.C, 2)))
        return QCQP(
            np.block([[K, -K], [-K, K]]),
            epsilon - signs * np.tile(self.y, 2),
            A_ub=np.ones((1, 2 * n)),
            b_ub=[budget],
            A_eq=signs[None, :],
            b_eq=[0.0],
            bounds=bounds,
        )


def judge_kernel_ridge(
    ridge: Any, X: Any, y: Any, sample_weight: Any = None, *, settings: Settings
) -> Result:
    """Return what is proven of a fitted `KernelRidge`, each target judged by itself.

    Parameters
    ----------
    ridge
        The fitted estimator.
    X, y, sample_weight
        What it was fitted to.
    settings
        The tolerance and the time limit.

    >>> from sklearn.kernel_ridge import KernelRidge
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> y = [0.0, 1.0, 0.0, 1.0]
    >>> judge_kernel_ridge(KernelRidge().fit(X, y), X, y, settings=Settings()).verdict.name
    'OPTIMAL'
    """
    from sklearn.utils.validation import check_is_fitted

    check_fitted(ridge, check_is_fitted)
    points = _rows(X)
    _require_same_rows("X", points, ridge.X_fit_)
    n = points.shape[0]
    coefficients = np.asarray(ridge.dual_coef_, dtype=float).reshape(n, -1)
    targets = np.asarray(y, dtype=float)
    if targets.shape[0] != n or targets.reshape(n, -1).shape != coefficients.shape:
        raise InvalidProblem(
            f"y has shape {targets.shape}; expected {np.shape(ridge.dual_coef_)}, as dual_coef_"
        )
    targets = targets.reshape(n, -1)
    weights = _weights(sample_weight, n)
    kept = np.flatnonzero(weights > 0)
    # As scikit-learn has it: data times the roots of the weights, and alpha as it is.
    root = np.sqrt(weights[kept])
    K = _kernel_matrix(ridge, points, ridge.gamma)
    if np.ptp(weights) > 0 or weights[0] != 1:
        K = K[np.ix_(kept, kept)] * np.outer(root, root)
    kernel = _checked_kernel(K, "the ridge regression")
    alphas = np.broadcast_to(np.asarray(ridge.alpha, dtype=float), (targets.shape[1],))
    notes: tuple[str, ...]
    parts = {}
    for column, alpha in enumerate(alphas.tolist()):
        if not alpha > 0:
            raise InvalidProblem(
                f"alpha is {alpha:g}; klopt judges a ridge regression with alpha > 0"
            )
        problem = MultipleKernel(
            [kernel], root * targets[kept, column], C=1 / alpha, loss="squared"
        )
        a = coefficients[kept, column] / root
        point = Point({"alpha": a, "weights": np.ones(1)})
        notes = ()
        if Fraction(1 / alpha) * Fraction(alpha) != 1:
            notes = (f"the problem judged has C = {1 / alpha!r}, which is 1 / alpha rounded",)
        claim = Claim(point, native=_version(ridge), notes=notes)
        parts[f"target {column}"] = judged(problem, claim, settings)
    return joined(parts)


# What all of them were fitted to


@dataclass(frozen=True, eq=False)
class _TrainingData:
    """The points, their kernel matrix, the weight of each, and which are support vectors."""

    points: Any
    gamma: float | None
    """That of a Gaussian kernel of dense points; None for any other kernel."""
    matrix: FloatArray
    weights: FloatArray
    support: npt.NDArray[np.intp]

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.matrix)

    def kernel(self, members: npt.NDArray[np.intp], name: str) -> Gram:
        """Return the kernel matrix of some of the points, positive semidefinite by proof."""
        K = self.matrix
        if members.size < self.size:
            K = K[np.ix_(members, members)]
        if self.gamma is None:
            return _checked_kernel(K, name)
        # klopt's own matrix of the same kernel has a floor without a factorisation.
        return Gram.near(K, Gram.rbf(self.points[members], self.gamma))


def _training_data(svm: Any, X: Any, sample_weight: Any) -> _TrainingData:
    """The data that a support vector machine was fitted to, compared with what it keeps of them."""
    from sklearn.utils.validation import check_is_fitted

    check_fitted(svm, check_is_fitted)
    points = _rows(X)
    if points.shape != tuple(svm.shape_fit_):
        raise InvalidProblem(
            f"X has shape {points.shape}; the {type(svm).__name__} was fitted to {svm.shape_fit_}"
        )
    weights = _weights(sample_weight, points.shape[0])
    # LIBSVM leaves out points without weight, and numbers the others.
    support = np.flatnonzero(weights > 0)[svm.support_]
    # A precomputed kernel has no vectors to keep.
    if svm.kernel != "precomputed" and not callable(svm.kernel):
        _require_same_rows("X", points[support], svm.support_vectors_, support)
    is_gaussian = svm.kernel == "rbf" and isinstance(points, np.ndarray)
    gamma = float(svm._gamma) if is_gaussian else None
    return _TrainingData(points, gamma, _kernel_matrix(svm, points, svm._gamma), weights, support)


def check_fitted(estimator: Any, check: Any) -> None:
    """Refuse an estimator that was not fitted."""
    from sklearn.exceptions import NotFittedError

    try:
        check(estimator)
    except NotFittedError:
        raise InvalidProblem(f"this {type(estimator).__name__} is not fitted; call fit") from None


def _rows(X: Any) -> Any:
    """X as scikit-learn sees it: an array of floats, or a sparse matrix of rows."""
    from sklearn.utils import check_array

    try:
        return check_array(X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=False)
    except ValueError as error:
        raise InvalidProblem(f"X: {error}") from None


def _require_same_rows(
    name: str, given: Any, kept: Any, places: npt.NDArray[np.intp] | None = None
) -> None:
    """Refuse data that differ from what the estimator keeps of them.

    Parameters
    ----------
    name
        What the data are called.
    given, kept
        Rows of the data, and the same rows as the estimator has them.
    places
        Where the rows stand in the data; all of them where it is None.
    """
    if given.shape != kept.shape:
        raise InvalidProblem(
            f"{name} has rows of shape {given.shape}; the estimator keeps {kept.shape}"
        )
    difference = abs(given - kept)
    if hasattr(difference, "toarray"):
        difference = difference.toarray()
    different = np.flatnonzero(np.asarray(difference).any(axis=1))
    if different.size:
        row = int(different[0] if places is None else places[different[0]])
        raise InvalidProblem(
            f"{name}[{row}] differs from what the estimator keeps of it; "
            f"give the {name} that it was fitted to"
        )


def _weights(sample_weight: Any, size: int) -> FloatArray:
    """The weight of each point, 1 without weights."""
    if sample_weight is None:
        return np.ones(size)
    weights = np.broadcast_to(np.asarray(sample_weight, dtype=float), (size,))
    return vector("sample_weight", np.array(weights), size)


def _kernel_matrix(estimator: Any, points: Any, gamma: float | None) -> FloatArray:
    """The kernel matrix by scikit-learn's own functions, or as it was given."""
    from sklearn.metrics.pairwise import pairwise_kernels

    kernel = estimator.kernel
    if kernel == "precomputed":
        dense = points.toarray() if hasattr(points, "toarray") else points
        return np.array(dense, dtype=float)
    if callable(kernel) and hasattr(estimator, "support_"):
        return np.array(kernel(points, points), dtype=float)
    if callable(kernel):
        more = estimator.kernel_params or {}
        return np.array(pairwise_kernels(points, metric=kernel, **more), dtype=float)
    K = pairwise_kernels(
        points,
        metric=kernel,
        filter_params=True,
        gamma=gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
    )
    return np.array(K, dtype=float)


def _checked_kernel(K: FloatArray, name: str) -> Gram:
    """A kernel matrix that is positive semidefinite up to rounding: else there is no optimum to prove."""
    try:
        return Gram.of(K)
    except InvalidProblem as error:
        raise InvalidProblem(
            f"the problem of {name} is not convex, so that klopt cannot judge it: {error}"
        ) from None


def _status(svm: Any) -> tuple[str, Stop]:
    """What the estimator says of its own fit."""
    told = f"{_version(svm)}, tol {svm.tol:g}"
    if svm.fit_status_:
        return f"{told}, not converged", Stop.ITERATION_LIMIT
    return told, Stop.OPTIMAL


def _version(estimator: Any) -> str:
    import sklearn

    return f"{type(estimator).__name__} of scikit-learn {sklearn.__version__}"
