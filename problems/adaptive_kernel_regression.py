"""DANK in support vector regression: a matrix F that multiplies the kernel entrywise, learned with the regression.

    maximise over beta, minimise over F psd                                                 -C <= beta <= C,  1'beta = 0
        y'beta - epsilon ||beta||_1 - beta'(F o K)beta/2 + eta ||F - 11'||^2 + tau eta tr F

(22) of [1] with its constraint corrected: the printed one, y'beta = 0, takes the linear term away,
and beta = 0 is best for all data. beta is the difference of the two multipliers of a point, of
which one is zero. F is eliminated as in `klopt.problems.adaptive_kernel`, and eta is chosen in the
same way.

[1] Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, flag, positive, vector
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._adaptive.data import checked_eta, eta_for, eta_of_paper
from klopt.problems._adaptive.forms import Forms
from klopt.problems._adaptive.points import Kernel, OnPoints
from klopt.problems._adaptive.proof import Machine
from klopt.problems._adaptive.screening import Mask, screened
from klopt.problems._margin.data import refuse_large

__all__ = ["AdaptiveKernelRegression"]


@dataclass(frozen=True, eq=False)
class AdaptiveKernelRegression(Problem):
    """Learn F and a support vector regression with kernel F o K, targets y and tube half-width epsilon.

    `eta`, `tau` and `bias` are those of `AdaptiveKernel`. Solutions have `beta` and, with a bias,
    `bias`; F is `problem.weights(point)`, F o K is `result.kernel`.

    >>> problem = AdaptiveKernelRegression([[2, 1], [1, 2]], [1, -1], C=10, epsilon=0.5, eta=1e9)
    >>> bracket = problem.bracket(Point({"beta": [0.5, -0.5]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (0.25, 0.25)
    """

    statement = Statement(
        r"\max_{\beta}\;\min_{F\succeq 0}\; "
        r"y^\top\beta-\varepsilon\lVert\beta\rVert_1-\tfrac12\beta^\top(F\circ "
        r"K)\beta+\eta\lVert F-\mathbf{1}\mathbf{1}^\top\rVert^2+\tau\eta\,\mathrm{tr}\,"
        r"F\quad\text{subject to}\quad -C\le\beta\le C,\quad\mathbf{1}^\top\beta=0",
    )
    references = ("liu2020",)
    examples = (
        Example(
            "diabetes",
            lambda d: AdaptiveKernelRegression(d.kernel(), d.y, 1.0, 0.1, 0.5),
            demo=(60,),
            full=(60, 120, 240),
        ),
    )

    K: Gram | LowRank
    y: FloatArray
    C: float
    epsilon: float
    eta: float = None  # type: ignore[assignment]
    tau: float = 0.0
    bias: bool = True

    sense = "max"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self,
            K: Gram | LowRank | MatrixLike,
            y: npt.ArrayLike,
            C: float,
            epsilon: float,
            eta: float | None = None,
            tau: float = 0.0,
            bias: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", self.K if isinstance(self.K, LowRank) else Gram.of(self.K))
        object.__setattr__(self, "y", vector("y", self.y, self.K.size))
        object.__setattr__(self, "C", positive("C", self.C))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon, zero=True))
        object.__setattr__(self, "tau", positive("tau", self.tau, zero=True))
        object.__setattr__(self, "bias", flag("bias", self.bias))
        object.__setattr__(self, "eta", checked_eta(self.eta, self.C, self.K))
        refuse_large(self.C, self.machine.scale)

    @cached_property
    def machine(self) -> Machine:
        """The checked data, which brackets the optimum."""
        return Machine(self.K, self.y, self.C, self.eta, self.tau, self.bias, self.epsilon)

    def describe(self) -> str:
        bias = "" if self.bias else ", no bias"
        return (
            f"AdaptiveKernelRegression(n={self.y.size}, C={self.C:g}, epsilon={self.epsilon:g}, eta={self.eta:g}, "
            f"tau={self.tau:g}{bias})"
        )

    def formulations(self) -> tuple[Formulation, ...]:
        return Forms(self.machine).formulations()

    def bracket(self, point: Point) -> Bracket:
        return self.machine.bracket(point.beta, point.dual.get("machine"))

    def kernel(self, point: Point) -> FloatArray:
        """Return F o K."""
        return self.machine.function.kernel(point.beta)

    def weights(self, point: Point) -> FloatArray:
        """Return F."""
        return self.machine.function.weights(point.beta)

    def screen(self, point: Point) -> tuple[Mask, Mask, Mask]:
        """Return which points are proven to have beta = 0, which C and which -C, in the solution; without bias only."""
        return screened(self.machine, point)

    @staticmethod
    def on_points(
        kernel: Kernel,
        C: float,
        epsilon: float,
        eta: float | None = None,
        tau: float = 0.0,
        bias: bool = True,
    ) -> OnPoints[AdaptiveKernelRegression]:
        """Return the function that makes the problem of points X with targets y, for `klopt.learners.decomposition.decompose`."""
        return OnPoints(
            AdaptiveKernelRegression,
            kernel,
            C,
            eta,
            tau,
            bias,
            positive("epsilon", epsilon, zero=True),
        )

    eta_for = staticmethod(eta_for)
    eta_of_paper = staticmethod(eta_of_paper)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        X = rng.normal(size=(n, 2))
        squares = np.square(X[:, None] - X).sum(axis=2)
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
        C, epsilon = float(rng.choice([0.3, 1.0, 3.0])), float(rng.choice([0.0, 0.1]))
        tau, bias = float(rng.choice([0.0, 0.05])), bool(rng.random() < 0.5)
        return cls(np.exp(-squares / 2), y, C, epsilon, eta=C * C, tau=tau, bias=bias)
