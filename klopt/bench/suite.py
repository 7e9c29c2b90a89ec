"""The bundled suite: every family of problems on real data that comes with scikit-learn.

The problems are the `examples` of the problem classes, in the order of the classes' names; a class
without examples takes part with a random instance. Points are drawn once with a fixed seed, classes
in proportion, and features are standardised.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.registry import problems
from klopt.errors import InvalidSettings
from klopt.kernels.datasets import Dataset
from klopt.model.functions import IntArray
from klopt.model.problem import Problem

__all__ = ["data", "suite"]

SAMPLE_SIZE = 20
"""The size of the random instance of a class that has no example."""


@cache
def data(name: str, points: int) -> Dataset:
    """Return so many points of a set of scikit-learn's: breast, diabetes, digits, iris or wine.

    >>> data("iris", 30).X.shape
    (30, 4)
    """
    from sklearn import datasets

    load = datasets.load_breast_cancer if name == "breast" else getattr(datasets, f"load_{name}")
    X, y = load(return_X_y=True)
    is_regression = name == "diabetes"
    order = np.random.default_rng(0).permutation(len(X))
    # Even a small sample must hold every class.
    if not is_regression:
        order = _in_proportion(order, y)
    chosen = order[:points]
    targets = y[chosen].astype(float)
    if is_regression:
        targets = (targets - targets.mean()) / targets.std()
    return Dataset(_standardised(X[chosen].astype(float)), targets)


def _in_proportion(order: IntArray, labels: IntArray) -> IntArray:
    """The points in an order in which every beginning has the classes in proportion."""
    rank = np.empty(len(labels), dtype=int)
    for label in np.unique(labels):
        own = order[labels[order] == label]
        rank[own] = np.arange(own.size) * (labels.size / own.size)
    return order[np.argsort(rank[order], kind="stable")]


def _standardised(X: FloatArray) -> FloatArray:
    """Features of mean 0 and deviation 1, without those that are constant."""
    deviation = X.std(axis=0)
    varying = deviation > 0
    standardised: FloatArray = (X - X.mean(axis=0))[:, varying] / deviation[varying]
    return standardised


def suite(size: str = "demo") -> list[tuple[str, Problem]]:
    """Return labels and problems: `quick` has one of each family, `demo` takes about a minute.

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
    for example in kind.examples:
        sizes = example.full if size == "full" else example.demo
        for points in sizes:
            label = f"{kind.__name__} {example.data} n={points}"
            yield label, example.make(data(example.data, points))
            if size == "quick":
                return
