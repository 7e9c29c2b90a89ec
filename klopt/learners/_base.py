"""The base of all learners: labels in, a certified result out, a warning without a certificate.

Labels are any that scikit-learn takes. For learners that also learn from unlabelled points the
label `unlabelled`, by default -1 (among strings "-1"), means that the label is not known; for the
others it is a class like any other. With unlabelled=0 labels may be -1, 0 and +1, as in the papers.

Weights of points multiply C: a point of weight 2 is two points at one place wherever the kernel
does not depend on how often a point occurs. Points of weight 0 are not trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from klopt.arrays import FloatArray, freeze, sound_sparse
from klopt.engine.pipeline import solve
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, NotCertified, UncertifiedFit, UnhelpfulKernel
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import UNLABELLED
from klopt.model.backend import Backend
from klopt.model.problem import Problem
from klopt.proof.certificate import Verdict

__all__ = [
    "PRECOMPUTED",
    "ClassWeight",
    "Classifier",
    "Codes",
    "Learner",
    "Unlabelled",
    "entries",
    "is_mark",
    "part",
]

Codes = npt.NDArray[np.int64]
ClassWeight = dict[Any, float] | Literal["balanced"] | None
Unlabelled = int | str | None
PRECOMPUTED = "precomputed"


class Learner(BaseEstimator):  # type: ignore[misc]
    """An estimator that solves klopt's problems."""

    backend: str | Backend | None
    tol: float
    time_limit: float | None
    n_jobs: int | None
    n_features_in_: int

    def _certified(self, problem: Problem) -> Result:
        """Return the result of a problem; warn without a proven optimum, raise without a point."""
        result = solve(problem, self.backend, tol=self.tol, time_limit=self.time_limit)
        self._require_point(result)
        return result

    def _certified_each(self, problems: Iterable[Problem]) -> list[Result]:
        """Return the results of independent problems in their order, `n_jobs` of them at a time.

        Each is solved by itself, so that the results do not depend on `n_jobs`.
        """
        settings = (self.backend, self.tol, self.time_limit)
        # One job needs no processes.
        if effective_n_jobs(self.n_jobs) == 1:
            results = [_solved(problem, *settings) for problem in problems]
        else:
            run = delayed(_solved)
            results = Parallel(n_jobs=self.n_jobs)(run(problem, *settings) for problem in problems)
        for result in results:
            self._require_point(result)
        return results

    def _require_point(self, result: Result) -> None:
        """Warn without a proven optimum, raise without a point."""
        who = type(self).__name__
        if result.verdict is Verdict.INFEASIBLE:
            raise InvalidProblem(
                f"{who}: no kernel satisfies what was asked for\n{result.explain()}"
            )
        if result.point is None:
            raise NotCertified(f"{who}: nothing was learned\n{result.explain()}")
        # A point without proof is of use, too: its owner is told how far from optimal it may be.
        if result.verdict is not Verdict.OPTIMAL:
            known = f"known to a relative gap of {result.certificate.relative_gap:.1e}"
            if result.verdict is Verdict.ESTIMATED:
                known = "estimated without proof"
            warnings.warn(
                f"{who} is not certified: its optimum is {known}, {self.tol:.1e} was asked for; "
                f"try another backend or a larger tol\n{result.explain()}",
                UncertifiedFit,
                stacklevel=4,
            )

    def _warn_of_kernel(self, what: str) -> None:
        """Tell the caller of `fit` what the learned kernel does not do."""
        warnings.warn(f"{type(self).__name__}: {what}", UnhelpfulKernel, stacklevel=4)

    def _points(self, X: Any, *, reset: bool = False) -> FloatArray:
        """X checked as scikit-learn does, in float64."""
        if sparse.issparse(X):
            sound_sparse("X", X)
        accepted = self._accepts_sparse
        return cast(
            FloatArray,
            validate_data(self, X, reset=reset, dtype=np.float64, accept_sparse=accepted),
        )

    @property
    def _accepts_sparse(self) -> str | bool:
        """The format of sparse points, False where X is a matrix of kernels."""
        return False if getattr(self, "_is_precomputed", False) else "csr"

    @staticmethod
    def _checked_weights(sample_weight: Any, X: Any) -> FloatArray:
        """Finite weights of the points, not negative and not all 0; by default all are 1."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            at = int(np.argmin(weights))
            raise ValueError(
                f"Negative values in data passed to `sample_weight`: sample_weight[{at}] is "
                f"{weights[at]:g}; weights are 0 or positive"
            )
        if not weights.any():
            raise ValueError("sample_weight is 0 for every point; nothing is left to learn from")
        return cast(FloatArray, weights)


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of classes."""

    classes_: npt.NDArray[Any]
    class_weight: ClassWeight
    unlabelled: Unlabelled

    def _point_weights(self, sample_weight: Any, X: Any, codes: Codes) -> FloatArray:
        """The weight of each point: its own times that of its class, 1 where it has no label."""
        weights = self._checked_weights(sample_weight, X).copy()
        known = codes >= 0
        each = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[codes[known]]
        )
        weights[known] *= each[codes[known]]
        for code, label in enumerate(self.classes_.tolist()):
            if not weights[codes == code].any():
                raise ValueError(
                    f"all points of the class {label!r} have the weight 0; "
                    f"{type(self).__name__} needs a point of each class: leave the class out of y"
                )
        return weights

    def _labelled(
        self, X: Any, y: Any, *, unlabelled: bool, **checks: Any
    ) -> tuple[FloatArray, Codes]:
        """X checked, and y as class numbers; with `unlabelled`, -1 where the label is unknown."""
        if sparse.issparse(X):
            sound_sparse("X", X)
        checks = {"accept_sparse": self._accepts_sparse, "ensure_min_samples": 2, **checks}
        X, y = validate_data(self, X, y, dtype=np.float64, **checks)
        check_classification_targets(y)
        mark = self.unlabelled if unlabelled else None
        unknown = is_mark(y, mark)
        self.classes_, known = np.unique(y[~unknown], return_inverse=True)
        if self.classes_.size < 2:
            aside = ""
            if mark is not None:
                aside = f" besides {mark}, which marks points without label,"
            found = "no class"
            if self.classes_.size:
                found = f"one class only, {self.classes_.tolist()[0]!r}"
            raise ValueError(
                f"y has{aside} {found}; {type(self).__name__} needs at least two classes{_hint(mark)}"
            )
        codes = np.full(len(y), UNLABELLED, dtype=np.int64)
        codes[~unknown] = known
        return X, codes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; points without label are left out, with a warning.

        Parameters
        ----------
        X, y
            Points and their labels.
        sample_weight
            The weights of the points in the mean.
        """
        unknown = is_mark(np.asarray(y), getattr(self, "unlabelled", None))
        if not unknown.any():
            return float(super().score(X, y, sample_weight))
        known = np.flatnonzero(~unknown)
        if not known.size:
            raise ValueError(f"every label is {self.unlabelled!r}: there is nothing to score")
        warnings.warn(
            f"{unknown.sum()} of {unknown.size} points have no label and are left out of the score; "
            "klopt.learners.selection has folds of labelled points only",
            UserWarning,
            stacklevel=2,
        )
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        found = self.predict(X)[known]
        return float(accuracy_score(np.asarray(y)[known], found, sample_weight=weights))

    def _named(self, scores: FloatArray) -> npt.NDArray[Any]:
        """The class of the largest score, or for two classes of the sign."""
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[best])


def _solved(
    problem: Problem, backend: str | Backend | None, tol: float, time_limit: float | None
) -> Result:
    """`solve`, as processes call it."""
    return solve(problem, backend, tol=tol, time_limit=time_limit)


def entries(K: FloatArray | Gram) -> FloatArray:
    """Return the matrix of a kernel, whether it was checked or not."""
    return K.matrix if isinstance(K, Gram) else K


@overload
def part(K: FloatArray, used: npt.NDArray[np.intp]) -> FloatArray: ...
@overload
def part(K: Gram, used: npt.NDArray[np.intp]) -> Gram: ...
def part(K: FloatArray | Gram, used: npt.NDArray[np.intp]) -> FloatArray | Gram:
    """Return the matrix of some of the points; a checked one needs no second check.

    >>> part(Gram.of([[2, 1], [1, 3]]), np.array([1])).matrix
    array([[3.]])
    """
    if not isinstance(K, Gram):
        return K[np.ix_(used, used)]
    cut = cast(FloatArray, freeze(K.matrix[np.ix_(used, used)]))
    # No principal submatrix has an eigenvalue below the smallest of the whole (Cauchy interlacing).
    return Gram(cut, float(cut.diagonal().mean()) or 1.0, K.floor, K.repair)


def _hint(mark: Unlabelled) -> str:
    """What helps who gave -1 and +1 as two classes."""
    if mark != UNLABELLED:
        return ""
    return "; for classes -1 and +1 choose another mark, such as unlabelled=0"


def is_mark(y: npt.NDArray[Any], mark: Unlabelled) -> npt.NDArray[np.bool_]:
    """Return which labels are the mark of points without label, as a number or as text."""
    if mark is None:
        return np.zeros(len(y), dtype=bool)
    word = str(mark)
    kind = y.dtype.kind
    if kind == "U":
        return np.asarray(y == word)
    if kind == "S":
        return np.asarray(y == word.encode())
    if kind == "O":
        return np.asarray((y == mark) | (y == word))
    # A text marks no number.
    if isinstance(mark, str):
        return np.zeros(len(y), dtype=bool)
    return np.asarray(y == mark)
