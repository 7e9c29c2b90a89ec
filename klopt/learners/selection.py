"""Model selection with few labels: folds and a score that know points without label.

scikit-learn's folds put unlabelled points into test sets, and its scores count their mark as a
class that every prediction misses. Here test sets hold labelled points only, and unlabelled ones
stay in every training set: there they tell the shape of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from klopt.learners._base import Unlabelled, is_mark

__all__ = ["LabelledKFold", "labelled_score"]

Indices = npt.NDArray[np.intp]


class LabelledKFold(BaseCrossValidator):  # type: ignore[misc]
    """Stratified folds of the labelled points; unlabelled points are in every training set.

    Parameters
    ----------
    n_splits
        The number of folds; no class may have fewer labelled points.
    shuffle
        Whether the labelled points are shuffled before they are split.
    random_state
        The seed of the shuffling.
    unlabelled
        The label of points without label.

    Examples
    --------
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabelledKFold(2).split(y[:, None], y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        unlabelled: Unlabelled = -1,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.unlabelled = unlabelled

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Return training and test points of each fold."""
        labels = np.asarray(y)
        unknown = is_mark(labels, self.unlabelled)
        known = np.flatnonzero(~unknown)
        if not known.size:
            raise ValueError(f"every label is {self.unlabelled!r}; there is nothing to test with")
        seed = self.random_state if self.shuffle else None
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=seed)
        for _, held_out in folds.split(np.zeros((known.size, 1)), labels[known]):
            test = known[held_out]
            yield np.setdiff1d(np.arange(labels.size), test), test


def labelled_score(estimator: Any, X: Any, y: Any) -> float:
    """Return the accuracy on the labelled points, for `scoring` of scikit-learn's searches.

    The mark of points without label is the estimator's own `unlabelled`, of a pipeline that of its
    last step; -1 where it has none.

    >>> from sklearn.dummy import DummyClassifier
    >>> constant = DummyClassifier().fit([[0], [1]], [7, 7])
    >>> labelled_score(constant, [[0], [1], [2]], [7, 3, -1])
    0.5
    """
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    labels = np.asarray(y)
    known = np.flatnonzero(~is_mark(labels, getattr(last, "unlabelled", -1)))
    if not known.size:
        raise ValueError(
            "no point has a label, so that there is nothing to score; split by LabelledKFold"
        )
    return float(accuracy_score(labels[known], np.asarray(estimator.predict(X))[known]))
