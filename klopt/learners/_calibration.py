"""Probabilities from decision values at points that a model has not seen.

    p(x) = 1 / (1 + exp(-(a f(x) + b))),

a and b of maximum likelihood against the targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2) of n+ and n-
points, which keep a finite where the values separate the classes. Several classes have a sigmoid
each, of their own score against the rest, and the probabilities are divided by their sum.

Platt, Probabilistic outputs for support vector machines, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from klopt.arrays import FloatArray

__all__ = ["Sigmoid", "Sigmoids"]

MIN_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Sigmoid:
    """1 / (1 + exp(-(a f + b))).

    >>> fitted = Sigmoid.of(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    >>> fitted(np.array([-2.0, 0.0, 2.0])).round(2)
    array([0.21, 0.5 , 0.79])
    """

    a: float
    b: float

    @classmethod
    def of(cls, values: FloatArray, positive: npt.NDArray[np.bool_]) -> Sigmoid:
        """Return the sigmoid of values whose classes are known."""
        above = int(positive.sum())
        below = positive.size - above
        targets = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
        # Values of any size: a is found for values of size 1.
        scale = float(np.abs(values).max()) or 1.0
        unit = values / scale

        def loss(ab: FloatArray) -> tuple[float, FloatArray]:
            z = ab[0] * unit + ab[1]
            residual = expit(z) - targets
            value = float(np.sum(np.logaddexp(0.0, z) - targets * z))
            return value, np.array([residual @ unit, residual.sum()])

        start = np.array([1.0, np.log((above + 1) / (below + 1))])
        found = minimize(loss, start, jac=True, method="BFGS").x
        return cls(float(found[0]) / scale, float(found[1]))

    def __call__(self, values: FloatArray) -> FloatArray:
        return np.asarray(expit(self.a * values + self.b), dtype=float)


@dataclass(frozen=True)
class Sigmoids:
    """A sigmoid for each class, or one for two classes."""

    each: tuple[Sigmoid, ...]

    @classmethod
    def of(cls, scores: FloatArray, codes: npt.NDArray[np.int64]) -> Sigmoids:
        """Return the sigmoids of scores (points, or points x classes) whose classes are known."""
        if scores.ndim == 1:
            return cls((Sigmoid.of(scores, codes == 1),))
        return cls(tuple(Sigmoid.of(column, codes == c) for c, column in enumerate(scores.T)))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of the classes (points x classes)."""
        if scores.ndim == 1:
            second = self.each[0](scores)
            return np.column_stack([1 - second, second])
        found = np.column_stack([f(column) for f, column in zip(self.each, scores.T, strict=True)])
        found = np.maximum(found, MIN_PROBABILITY)
        return np.asarray(found / found.sum(axis=1, keepdims=True))
