"""The bundled suite: every family of problems on real data that comes with scikit-learn.

The problems are the `examples` of the problem classes, in the order of the classes' names; a class
without any is represented by a random instance. Points are drawn once with a fixed seed, classes in
proportion, and features standardised.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from klopt.engine.registry import problems
from klopt.errors import InvalidSettings
from klopt.kernels.datasets import Dataset
from klopt.model.problem import Problem

__all__ = ["data", "suite"]

SAMPLE_SIZE = 20
"""The size of the random instance of a class that has no example."""


@cache
def data(name: str, points: int) -> Dataset:
    """Return so many points of one of scikit-learn's bundled sets: breast, diabetes, digits, iris, wine.

    >>> data("iris", 30).X.shape
    (30, 4)
    """
    from sklearn import datasets

    load = datasets.load_breast_cancer if name == "breast" else getattr(datasets, f"load_{name}")
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))
    if name != "diabetes":  # one of each class in turn, so that a small sample has them all
        rank = np.empty(len(X), dtype=int)
        for label in np.unique(y):
            own = chosen[y[chosen] == label]
            rank[own] = np.arange(own.size) * (y.size / own.size)
        chosen = chosen[np.argsort(rank[chosen], kind="stable")]
    chosen = chosen[:points]
    X = X[chosen].astype(float)
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    targets = y[chosen].astype(float)
    if name == "diabetes":
        targets = (targets - targets.mean()) / targets.std()
    return Dataset(X, targets)


def suite(size: str = "demo") -> list[tuple[str, Problem]]:
    """Return the labels and problems of the suite: `quick` has one of each family, `demo` takes a minute.

    >>> suite("quick")[0][0]
    'AdaptiveKernel breast n=60'
    """
    if size not in ("quick", "demo", "full"):
        raise InvalidSettings(f"there is no suite {size!r}; expected quick, demo or full")
    return [item for kind in problems() for item in _instances(kind, size)]


def _instances(kind: type[Problem], size: str) -> Iterator[tuple[str, Problem]]:
    """The instances of one class with their labels."""
    if not kind.examples:
        sample = kind.sample(np.random.default_rng(0), SAMPLE_SIZE)
        yield f"{kind.__name__} sample n={SAMPLE_SIZE}", sample
        return
    examples = kind.examples[:1] if size == "quick" else kind.examples
    for example in examples:
        sizes = example.full if size == "full" else example.demo
        for points in sizes[:1] if size == "quick" else sizes:
            label = f"{kind.__name__} {example.data} n={points}"
            yield label, example.make(data(example.data, points))
