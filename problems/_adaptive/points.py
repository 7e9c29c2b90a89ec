"""Data-adaptive problems made from points: what the parts of one whole share, and the solution that needs no solver.

Problems of some of the points are parts of the problem of all of them only under one eta. Where
none is given it is that of the largest K_ii over all points, for which a few rows of the kernel at
a time are enough. With a bias, points of one class leave alpha = 0 alone; F is then (11' - (tau/2)
I)_+, and the value, t = min(tau/2, n),

    eta ||F - 11'||^2 + tau eta tr F = eta n^2 - eta (n - t)^2 = eta t (2n - t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, flag, matrix, positive, symmetric, vector
from klopt.errors import InvalidProblem
from klopt.model.problem import Problem
from klopt.problems._adaptive.data import checked_labels, default_eta, given_eta

__all__ = ["Kernel", "OnPoints"]

Kernel: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A function of two sets of points (rows)."""
Made = TypeVar("Made", bound=Problem)

ROWS = 64
"""Points whose kernel is computed at a time for its diagonal: most of it is thrown away."""
ROUNDING = 1e-8
"""Asymmetry, as a share of the largest K_ii, that a function may have by rounding: distances lose half the digits."""


@dataclass(frozen=True, eq=False)
class OnPoints(Generic[Made]):
    """Makes the problem of points X with targets y, None where zero is its only solution; `epsilon` as in `Machine`."""

    problem: Callable[..., Made]
    kernel: Kernel
    C: float
    eta: float | None
    tau: float
    bias: bool
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.kernel):
            raise InvalidProblem(
                f"kernel is {self.kernel!r}; expected a function of two sets of points, such as "
                "sklearn.metrics.pairwise.rbf_kernel"
            )
        object.__setattr__(self, "C", positive("C", self.C))
        object.__setattr__(self, "eta", None if self.eta is None else given_eta(self.eta))
        object.__setattr__(self, "tau", positive("tau", self.tau, zero=True))
        object.__setattr__(self, "bias", flag("bias", self.bias))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon, zero=True))

    def __call__(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Made | None:
        """Return the problem of these points."""
        points = matrix("X", X)
        targets = self._targets(y, len(points))
        if self.bias and self.epsilon is None and abs(float(targets.sum())) == targets.size:
            return None
        given: dict[str, Any] = {} if self.epsilon is None else {"epsilon": self.epsilon}
        return self.problem(
            self._matrix(points),
            targets,
            self.C,
            eta=self.eta,
            tau=self.tau,
            bias=self.bias,
            **given,
        )

    def fix(self, X: npt.ArrayLike, y: npt.ArrayLike) -> OnPoints[Made]:
        """Return the same with the eta of all points X, for problems of some of them; targets that are none fail."""
        points = matrix("X", X)
        self._targets(y, len(points))
        return (
            self
            if self.eta is not None
            else replace(self, eta=default_eta(self.C, self._diagonal(points)))
        )

    def zero(self, size: int) -> tuple[float, dict[str, FloatArray]]:
        """Return the value and the arrays of zero coefficients for so many points, once eta is known."""
        assert self.eta is not None
        cut = min(self.tau / 2, size)
        name = "alpha" if self.epsilon is None else "beta"
        return self.eta * cut * (2 * size - cut), {name: np.zeros(size)}

    def _targets(self, y: npt.ArrayLike, size: int) -> FloatArray:
        return checked_labels(y, size, bias=False) if self.epsilon is None else vector("y", y, size)

    def _matrix(self, points: FloatArray) -> FloatArray:
        """The kernel of points, of which rounding alone is averaged."""
        n, name = len(points), "kernel(X, X)"
        K = matrix(name, self.kernel(points, points), (n, n))
        mean: FloatArray = (K + K.T) / 2
        # K - mean is antisymmetric: its largest entry is as far from 0 as its least.
        is_rounding = (K - mean).max(initial=0.0) <= ROUNDING * K.diagonal().max(initial=0.0)
        return mean if is_rounding else symmetric(name, K)

    def _diagonal(self, points: FloatArray) -> FloatArray:
        """The K_ii of all points."""
        blocks = (points[start : start + ROWS] for start in range(0, len(points), ROWS))
        return np.concatenate([np.zeros(0), *(self._matrix(block).diagonal() for block in blocks)])
