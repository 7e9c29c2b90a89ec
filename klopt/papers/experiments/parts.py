"""Data sets that are parts of another one: some classes, some points of each, some columns.

    one_two, odd_even, usps_400     digits of usps_11000, 1100 points of each
    baseball_hockey                 basehock, whose counts of words become tf-idf vectors of length 1
    webkb_page                      the first 3000 columns of webkb_page_link

Points of a class are drawn with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.experiments.protocol import IntArray, Labels

__all__ = ["PARTS", "DataSetPart", "cut"]

SEED = 2005
"""Of the points that are drawn."""


@dataclass(frozen=True)
class DataSetPart:
    """What is taken of a data set."""

    of: str
    groups: tuple[tuple[int, ...], ...] = ()
    """The classes that become class 0, 1, ..; all, as they are, where none is named."""
    each: int = 0
    """How many points of each class of the whole are drawn; all for 0."""
    columns: int = 0
    """How many of the first columns are taken; all for 0."""
    tf_idf: bool = False
    """Whether counts of words become tf-idf vectors of length 1."""


PARTS = {
    "one_two": DataSetPart("usps_11000", groups=((1,), (2,))),
    "odd_even": DataSetPart("usps_11000", groups=((1, 3, 5, 7, 9), (0, 2, 4, 6, 8)), each=400),
    "usps_400": DataSetPart("usps_11000", each=40),
    "baseball_hockey": DataSetPart("basehock", tf_idf=True),
    "webkb_page": DataSetPart("webkb_page_link", columns=3000),
}


def cut(X: FloatArray, y: Labels, part: DataSetPart) -> tuple[IntArray, FloatArray, IntArray]:
    """Return which points of a data set are taken, their features and their classes.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> kept, few, labels = cut(X, y, DataSetPart("digits", groups=((1,), (2,)), each=5))
    >>> few.shape, np.bincount(labels), np.unique(y[kept])
    ((10, 64), array([5, 5]), array([1, 2]))
    """
    groups = part.groups or tuple((int(k),) for k in np.unique(y))
    wanted = sorted(k for group in groups for k in group)
    if part.each:
        random = np.random.default_rng(SEED)
        drawn = [random.permutation(np.flatnonzero(y == k))[: part.each] for k in wanted]
        kept = np.sort(np.concatenate(drawn))
    else:
        kept = np.flatnonzero(np.isin(y, wanted))

    group_of = {k: number for number, group in enumerate(groups) for k in group}
    labels = np.array([group_of[int(k)] for k in y[kept]], dtype=np.int64)
    points = X[kept]
    if part.columns:
        points = points[:, : part.columns]
    if part.tf_idf:
        points = _tf_idf(points)
    return kept, points, labels


def _tf_idf(counts: FloatArray) -> FloatArray:
    from sklearn.feature_extraction.text import TfidfTransformer

    return np.asarray(TfidfTransformer().fit_transform(counts).toarray(), dtype=np.float64)
