"""Splits into labelled points and points asked about: random, stratified, equal for all methods.

Published splits are used where the data have them with the row's number of labels; then random
ones. Data with a part for the test of their own are always split so; a balanced row has as many
labelled points of each class. In regression there are no classes to be stratified by.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klopt.errors import InvalidSettings
from klopt.papers.experiments.datasets import DataSet
from klopt.papers.experiments.protocol import IntArray, Labels, TableRow

__all__ = ["DataSplit", "folds_of", "splits_of"]


@dataclass(frozen=True, eq=False)
class DataSplit:
    """The labelled points; all others are asked about, or withheld."""

    labelled: IntArray
    asked: IntArray
    withheld: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Points that no method sees before it is asked about them."""


def splits_of(data: DataSet, row: TableRow, count: int, seed: int = 0) -> tuple[DataSplit, ...]:
    """Return `count` splits; the first ones of a larger count are the same.

    >>> from klopt.papers.experiments.datasets import load
    >>> split = splits_of(load("iris"), TableRow("iris", 0.7), 2)[0]
    >>> split.labelled.size, split.asked.size, np.bincount(load("iris").y[split.labelled])
    (105, 45, array([35, 35, 35]))
    """
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    whole = 1 if isinstance(row.labelled, float) else data.y.size
    if not 0 < row.labelled < whole:
        raise InvalidSettings(
            f"{row.name}: labelled is {row.labelled}; {data.y.size} points are to be split"
        )
    every = np.arange(data.y.size)
    if row.balanced:
        return tuple(
            _balanced(data.y, int(row.labelled), np.random.default_rng((seed, k)))
            for k in range(count)
        )
    if data.training:
        return count * (DataSplit(every[: data.training], every[data.training :]),)

    published = [np.sort(known) for known in data.published if known.size == row.labelled]
    found = [DataSplit(known, np.setdiff1d(every, known)) for known in published[:count]]
    if count > len(found):
        kind = StratifiedShuffleSplit if data.y.dtype.kind == "i" else ShuffleSplit
        draw = kind(n_splits=count - len(found), train_size=row.labelled, random_state=seed)
        try:
            drawn = [
                DataSplit(np.sort(known), np.sort(asked))
                for known, asked in draw.split(data.X, data.y)
            ]
        except ValueError as error:
            raise InvalidSettings(f"{row.name} cannot be split: {error}") from error
        found += drawn
    if row.withheld:
        count = round(row.withheld * data.y.size)
        found = [
            _withholding(split, count, np.random.default_rng((seed, k)))
            for k, split in enumerate(found)
        ]
    return tuple(found)


def _withholding(split: DataSplit, count: int, random: np.random.Generator) -> DataSplit:
    """The same split with some of the points asked about withheld."""
    mixed = random.permutation(split.asked)
    return DataSplit(split.labelled, np.sort(mixed[count:]), np.sort(mixed[:count]))


def _balanced(y: Labels, labelled: int, random: np.random.Generator) -> DataSplit:
    """As many points of each class, in all at most `labelled`."""
    classes = np.unique(y)
    each = labelled // classes.size
    drawn = [random.permutation(np.flatnonzero(y == k))[:each] for k in classes]
    known = np.sort(np.concatenate(drawn))
    return DataSplit(known, np.setdiff1d(np.arange(y.size), known))


def folds_of(y: Labels, folds: int, seed: int = 0) -> tuple[DataSplit, ...]:
    """Return the stratified folds of labelled points, each the `asked` of its split.

    There are as many as the smallest class has points where these are fewer; none where it has one
    only.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    if y.dtype.kind != "i":
        drawn = KFold(folds, shuffle=True, random_state=seed).split(y)
        return tuple(DataSplit(rest, fold) for rest, fold in drawn)
    fewest = int(np.bincount(y)[np.unique(y)].min())
    if fewest < 2:
        return ()
    stratified = StratifiedKFold(min(folds, fewest), shuffle=True, random_state=seed)
    drawn = stratified.split(np.zeros(y.size), y)
    return tuple(DataSplit(rest, fold) for rest, fold in drawn)
