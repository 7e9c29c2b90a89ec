"""Data-adaptive problems made from points: the eta that parts share, and the zero solution.

Problems of some of the points are parts of the problem of all of them only under one eta. Where
none is given it is that of the largest K_ii over all points, for which a few rows of the kernel at
a time are enough. With a bias, points of one class leave alpha = 0 alone; F is then (11' - (tau/2)
I)_+, and the value, t = min(tau/2, n),

    eta ||F - 11'||^2 + tau eta tr F = eta n^2 - eta (n - t)^2 = eta t (2n - t).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, flag, matrix, positive, symmetric, vector
from klopt.errors import InvalidProblem
from klopt.model.problem import Problem
from klopt.problems._adaptive.data import default_eta, given_eta, given_labels
from klopt.problems._margin.data import given_penalty, given_tube

__all__ = ["AdaptiveFactory", "Kernel"]

Kernel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A function of two sets of points (rows)."""
Made = TypeVar("Made", bound=Problem)

DIAGONAL_BLOCK_ROWS = 64
"""Points whose kernel is computed at a time for its diagonal: most of it is thrown away."""
MAX_RELATIVE_ASYMMETRY = 1e-8
"""Asymmetry, as a share of max K_ii, that is rounding: distances lose half the digits."""


def _given_function(kernel: Kernel) -> Kernel:
    if not callable(kernel):
        raise InvalidProblem(
            f"kernel is {kernel!r}; expected a function of two sets of points, such as "
            "sklearn.metrics.pairwise.rbf_kernel"
        )
    return kernel


def _given_tau(tau: float) -> float:
    return positive("tau", tau, zero=True)


def _given_bias(bias: bool) -> bool:
    return flag("bias", bias)


@attrs.frozen(eq=False, slots=False)
class AdaptiveFactory(Generic[Made]):
    """Makes the problem of points X with targets y, None where zero is its only solution.

    Parameters
    ----------
    problem
        The class of the problem.
    kernel
        A function of two sets of points.
    C, eta, tau, bias
        As in `klopt.problems.AdaptiveKernel`.
    epsilon
        The half-width of the tube; None for classification.
    """

    problem: Callable[..., Made]
    kernel: Kernel = attrs.field(converter=_given_function)
    C: float = attrs.field(converter=given_penalty)
    eta: float | None = attrs.field(converter=attrs.converters.optional(given_eta))
    tau: float = attrs.field(converter=_given_tau)
    bias: bool = attrs.field(converter=_given_bias)
    epsilon: float | None = attrs.field(
        default=None, converter=attrs.converters.optional(given_tube)
    )

    def __call__(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Made | None:
        """Return the problem of these points."""
        points = matrix("X", X)
        targets = self._targets(y, len(points))
        if self.epsilon is None and self.bias and abs(float(targets.sum())) == targets.size:
            # One class alone: y'alpha = 0 leaves alpha = 0.
            return None
        given: dict[str, Any] = {"eta": self.eta, "tau": self.tau, "bias": self.bias}
        if self.epsilon is not None:
            given["epsilon"] = self.epsilon
        return self.problem(self._matrix(points), targets, self.C, **given)

    def fix(self, X: npt.ArrayLike, y: npt.ArrayLike) -> AdaptiveFactory[Made]:
        """Return the same with the eta of all points X, for problems of some of them.

        Targets y that no problem would take are refused.
        """
        points = matrix("X", X)
        self._targets(y, len(points))
        if self.eta is not None:
            return self
        return attrs.evolve(self, eta=default_eta(self.C, self._diagonal(points)))

    def zero(self, size: int) -> tuple[float, dict[str, FloatArray]]:
        """Return the value and the arrays of zero coefficients, once eta is known."""
        assert self.eta is not None
        t = min(self.tau / 2, size)
        name = "alpha" if self.epsilon is None else "beta"
        return self.eta * t * (2 * size - t), {name: np.zeros(size)}

    def _targets(self, y: npt.ArrayLike, size: int) -> FloatArray:
        if self.epsilon is None:
            return given_labels(y, size, bias=False)
        return vector("y", y, size)

    def _matrix(self, points: FloatArray) -> FloatArray:
        """The kernel of points, averaged with its transpose where they differ by rounding alone."""
        n = len(points)
        name = "kernel(X, X)"
        K = matrix(name, self.kernel(points, points), (n, n))
        mean: FloatArray = (K + K.T) / 2
        # K - mean is antisymmetric: its largest entry is as far from 0 as its smallest.
        asymmetry = (K - mean).max(initial=0.0)
        if asymmetry <= MAX_RELATIVE_ASYMMETRY * K.diagonal().max(initial=0.0):
            return mean
        return symmetric(name, K)

    def _diagonal(self, points: FloatArray) -> FloatArray:
        """The K_ii of all points."""
        step = DIAGONAL_BLOCK_ROWS
        blocks = (points[start : start + step] for start in range(0, len(points), step))
        return np.concatenate([np.zeros(0), *(self._matrix(block).diagonal() for block in blocks)])
