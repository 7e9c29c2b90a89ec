"""The base of all learners: labels in, a certified result out, a warning without a certificate.

Labels are any that scikit-learn takes. For learners that also learn from unlabelled points -1
(among strings "-1") means that the label is not known; for the others it is a class like any other.
"""

from __future__ import annotations

import warnings
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from klopt.arrays import FloatArray, freeze
from klopt.engine.pipeline import solve
from klopt.engine.result import Result
from klopt.errors import InvalidProblem, NotCertified, UncertifiedFit
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import UNLABELLED
from klopt.model.backend import Backend
from klopt.model.problem import Problem
from klopt.proof.certificate import Verdict

__all__ = ["PRECOMPUTED", "Classifier", "Codes", "Learner", "entries", "part"]

Codes = npt.NDArray[np.int64]
PRECOMPUTED = "precomputed"


class Learner(BaseEstimator):  # type: ignore[misc]
    """An estimator that solves klopt's problems."""

    backend: str | Backend | None
    tol: float
    n_features_in_: int

    def _certified(self, problem: Problem) -> Result:
        """Return the result of a problem; warn without a proven optimum, raise without a point."""
        result = solve(problem, self.backend, tol=self.tol)
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
                stacklevel=3,
            )
        return result

    def _points(self, X: Any, *, reset: bool = False) -> FloatArray:
        """X checked as scikit-learn does, in float64."""
        return cast(FloatArray, validate_data(self, X, reset=reset, dtype=np.float64))


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of classes."""

    classes_: npt.NDArray[Any]

    def _labelled(
        self, X: Any, y: Any, *, unlabelled: bool, **checks: Any
    ) -> tuple[FloatArray, Codes]:
        """X checked, and y as class numbers; with `unlabelled`, -1 where the label is unknown."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, **checks)
        check_classification_targets(y)
        unknown = _unknown(y) if unlabelled else np.zeros(len(y), dtype=bool)
        self.classes_, known = np.unique(y[~unknown], return_inverse=True)
        if self.classes_.size < 2:
            aside = ""
            if unlabelled:
                aside = f" besides {UNLABELLED}, which marks points without label,"
            found = "no class"
            if self.classes_.size:
                found = f"one class only, {self.classes_.tolist()[0]!r}"
            raise ValueError(
                f"y has{aside} {found}; {type(self).__name__} needs at least two classes"
            )
        codes = np.full(len(y), UNLABELLED, dtype=np.int64)
        codes[~unknown] = known
        return X, codes

    def _named(self, scores: FloatArray) -> npt.NDArray[Any]:
        """The class of the largest score, or for two classes of the sign."""
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[best])


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


def _unknown(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which labels are -1, as a number or as text."""
    word = str(UNLABELLED)
    kind = y.dtype.kind
    if kind == "U":
        return np.asarray(y == word)
    if kind == "S":
        return np.asarray(y == word.encode())
    if kind == "O":
        return np.asarray((y == UNLABELLED) | (y == word))
    return np.asarray(y == UNLABELLED)
