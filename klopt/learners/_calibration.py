"""Probabilities from decision values at points that a model has not seen.

    p_c(x) = exp(a f_c(x)) / sum over k of exp(a f_k(x)),    two classes: p(x) = 1 / (1 + exp(-a f(x))),

with one a > 0 of maximum likelihood. A class that is decided for is the most probable one, whatever
a is. The known classes count as (n + 1) / (n + classes) each, the others share the rest: that keeps a
finite where the values separate the classes.

Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, 2017 (temperature
scaling); Platt, Probabilistic outputs for support vector machines, 1999 (the targets).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from klopt.arrays import FloatArray

__all__ = ["SoftDecision"]

LOGARITHMS = (-12.0, 12.0)
"""Between which the logarithm of a lies, for scores of size 1."""


@dataclass(frozen=True)
class SoftDecision:
    """Probabilities of scores: points, or points x classes.

    >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> soft = SoftDecision.of(scores, np.array([0, 0, 1, 1]))
    >>> soft(np.array([-2.0, 0.0, 2.0])).round(2)
    array([[0.79, 0.21],
           [0.5 , 0.5 ],
           [0.21, 0.79]])
    """

    a: float

    @classmethod
    def of(cls, scores: FloatArray, codes: npt.NDArray[np.int64]) -> SoftDecision:
        """Return the most likely one for scores whose classes are known."""
        logits = _logits(scores)
        points, classes = logits.shape
        counts = np.bincount(codes, minlength=classes)[codes]
        sure = (counts + 1) / (counts + classes)
        targets = np.repeat(((1 - sure) / (classes - 1))[:, None], classes, axis=1)
        targets[np.arange(points), codes] = sure
        scale = float(np.abs(logits).max()) or 1.0

        def loss(logarithm: float) -> float:
            return -float(np.sum(targets * log_softmax(np.exp(logarithm) / scale * logits, axis=1)))

        found = minimize_scalar(loss, bounds=LOGARITHMS, method="bounded")
        return cls(float(np.exp(found.x)) / scale)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of the classes (points x classes)."""
        return np.asarray(softmax(self.a * _logits(scores), axis=1), dtype=float)


def _logits(scores: FloatArray) -> FloatArray:
    """Scores of each class; those of two classes are given by one number."""
    if scores.ndim > 1:
        return scores
    return np.column_stack([np.zeros_like(scores), scores])
