"""Cross-validation of support vector machines over a grid of penalties C, with proof.

For each fold the whole path is solved from one penalty to the next, every optimum is proven, and
the kernel matrix is computed once for all folds (`klopt.problems.SoftMargin.path`). Between two
penalties of the grid the errors of all machines are bounded: what is wrong for all C of a range
cannot be mended by any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv

from klopt.arrays import FloatArray, freeze, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.problems.epsilon_margin import EpsilonMargin
from klopt.problems.soft_margin import SoftMargin

__all__ = ["PathScores", "cross_validate_path"]


@dataclass(frozen=True, eq=False)
class PathScores:
    """What cross-validation over penalties found.

    Parameters
    ----------
    penalties
        The penalties C, rising.
    scores
        Folds x penalties: the accuracy of classifiers, R^2 of regressions.
    lower, upper
        Folds x penalties: proven bounds of the optimum of each machine.
    fewest_errors, most_errors
        For classifiers, folds x (penalties - 1): no C between two penalties of the grid makes fewer,
        or more, errors on the test points of the fold. Empty for regressions.
    test_sizes
        The number of test points of each fold.
    """

    penalties: FloatArray
    scores: FloatArray
    lower: FloatArray
    upper: FloatArray
    fewest_errors: FloatArray
    most_errors: FloatArray
    test_sizes: FloatArray

    @cached_property
    def mean_scores(self) -> FloatArray:
        """The mean score of each penalty over the folds."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def best_C(self) -> float:
        """The smallest penalty with the best mean score."""
        return float(self.penalties[int(np.argmax(self.mean_scores))])

    @property
    def relative_gap(self) -> float:
        """The largest (upper - lower) / (1 + |upper|) of all machines."""
        return float(np.max((self.upper - self.lower) / (1 + np.abs(self.upper))))

    @property
    def best_possible(self) -> FloatArray:
        """For classifiers: upper bounds of the mean accuracy of any C between two penalties."""
        shares = 1 - self.fewest_errors / self.test_sizes[:, None]
        return np.asarray(shares.mean(axis=0))

    def explain(self) -> str:
        """Return what is proven, in sentences."""
        best = float(self.mean_scores.max())
        lines = [
            f"{self.scores.size} machines, each optimum proven to {self.relative_gap:.1e}; "
            f"best mean score {best:.4f} at C = {self.best_C:.4g}."
        ]
        if self.fewest_errors.size:
            ceiling = self.best_possible
            settled = int(np.count_nonzero(ceiling <= best))
            lines.append(
                f"No C between {self.penalties[0]:.4g} and {self.penalties[-1]:.4g} has a mean "
                f"accuracy above {float(ceiling.max()):.4f}; in {settled} of {ceiling.size} ranges "
                "between neighbours none is above the best of the grid."
            )
        return "\n".join(lines)


def cross_validate_path(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    penalties: npt.ArrayLike,
    *,
    gamma: float | None = None,
    epsilon: float | None = None,
    cv: Any = 5,
) -> PathScores:
    """Return scores and proven optima of support vector machines for all penalties and folds.

    Parameters
    ----------
    X
        The points, one in each row, or a `Gram` of all of them.
    y
        Two classes; targets if `epsilon` is given.
    penalties
        The penalties C, rising.
    gamma
        The kernel is exp(-gamma ||x - x'||^2); by default scikit-learn's "scale" of all of X.
    epsilon
        The half-width of the tube of a regression; None for a classifier.
    cv
        The number of folds, or what scikit-learn's `check_cv` takes: a splitter or pairs of indices.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate_path(X[50:], y[50:], np.logspace(-1, 2, 7))
    >>> found.scores.shape, found.relative_gap < 1e-6, bool(found.mean_scores.max() > 0.9)
    ((5, 7), True, True)
    """
    K = X if isinstance(X, Gram) else Gram.rbf(X, gamma)
    is_classifier = epsilon is None
    targets = _signs(y, K.size) if is_classifier else vector("y", y, K.size)
    splitter = check_cv(cv, np.asarray(y), classifier=is_classifier)
    folds = list(splitter.split(np.zeros((K.size, 1)), np.asarray(y)))

    parts = [_fold(K, targets, train, test, penalties, epsilon) for train, test in folds]
    return PathScores(
        parts[0].penalties,
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.lower for part in parts]),
        np.concatenate([part.upper for part in parts]),
        np.concatenate([part.fewest_errors for part in parts]),
        np.concatenate([part.most_errors for part in parts]),
        np.concatenate([part.test_sizes for part in parts]),
    )


def _signs(y: npt.ArrayLike, n: int) -> FloatArray:
    """-1 for the first class, +1 for the second."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidProblem(f"y has the shape {labels.shape}; expected ({n},), one label a point")
    classes, places = np.unique(labels, return_inverse=True)
    if classes.size != 2:
        raise InvalidProblem(
            f"y has {classes.size} classes; expected 2 (give epsilon for a regression)"
        )
    return np.where(places == 1, 1.0, -1.0)


def _fold(
    K: Gram, y: FloatArray, train: Any, test: Any, penalties: npt.ArrayLike, epsilon: float | None
) -> PathScores:
    """The scores of one fold."""
    part = np.ascontiguousarray(K.matrix[train][:, train])
    # A principal part of K has no smaller eigenvalue than K.
    kernel = Gram(freeze(part), K.scale, K.floor, K.repair)
    cross = K.matrix[test][:, train]
    problem: SoftMargin | EpsilonMargin
    if epsilon is None:
        problem = SoftMargin(kernel, y[train], 1.0)
    else:
        problem = EpsilonMargin(kernel, y[train], 1.0, epsilon)
    path = problem.path(penalties)
    values = path.values(cross)
    wanted = y[test]
    if epsilon is None:
        scores = ((values > 0) == (wanted > 0)).mean(axis=1)
        low, high = path.values_between(cross, K.matrix.diagonal()[test])
        positive = wanted > 0
        # A value of 0 is decided for the first class.
        fewest = np.where(positive, high <= 0, low > 0).sum(axis=1)
        most = np.where(positive, low <= 0, high > 0).sum(axis=1)
    else:
        scores = np.array([r2_score(wanted, row) for row in values])
        fewest = most = np.zeros(0)
    return PathScores(
        path.penalties,
        scores[None],
        path.lower[None],
        path.upper[None],
        fewest[None].astype(float),
        most[None].astype(float),
        np.array([wanted.size], dtype=float),
    )
