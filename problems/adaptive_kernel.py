"""DANK in a support vector machine: a matrix F that multiplies the kernel entrywise, learned with the machine.

    maximise over alpha, minimise over F psd
        1'alpha - alpha'Y(F o K)Y alpha/2 + eta ||F - 11'||^2 + tau eta tr F       0 <= alpha <= C,  y'alpha = 0

(4) of [1]. For given alpha the best F is the positive part of 11' + Gamma - (tau/2) I, Gamma_ij = a_i a_j K_ij/(4 eta),
a = Y alpha; what is left is smooth and concave in alpha, for tau = 0 a quartic. tau > 0 makes F of low rank. Each entry
of F differs from 1 by at most C^2 max K / (4 eta) + tau/2: `eta_for` turns a wished deviation into eta. [1] takes
eta = ||alpha_svm||^2 (`eta_of_paper`): then tr Gamma = 1/4 however many points there are, and F does nothing.

[1] Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, flag, positive
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._adaptive.data import checked_eta, checked_labels, eta_for, eta_of_paper
from klopt.problems._adaptive.forms import Forms
from klopt.problems._adaptive.points import Kernel, OnPoints
from klopt.problems._adaptive.proof import Machine
from klopt.problems._adaptive.screening import Mask, screened
from klopt.problems._margin.data import refuse_large

__all__ = ["AdaptiveKernel"]


@dataclass(frozen=True, eq=False)
class AdaptiveKernel(Problem):
    """Learn F and a support vector machine with kernel F o K; labels y of -1 and +1.

    K is a kernel matrix or features of low rank (`klopt.kernels.nystroem`). `eta` is the price of
    moving F away from 1; None takes one that keeps F within 0.1 of 1. `tau > 0` makes F of low
    rank; `bias=False` leaves the bias out. Solutions have `alpha` and, with a bias, `bias`; F is
    `problem.weights(point)`, F o K is `result.kernel`.

    >>> problem = AdaptiveKernel([[2, 1], [1, 2]], [1, -1], C=10, eta=1.0)
    >>> bracket = problem.bracket(Point({"alpha": [0.8, 0.8]}))
    >>> round(bracket.lower, 3), round(bracket.upper, 3)
    (0.704, 0.812)
    """

    statement = Statement(
        r"\max_{\alpha}\;\min_{F\succeq 0}\; \mathbf{1}^\top\alpha-\tfrac12 "
        r"a^\top(F\circ K)a+\eta\lVert F-\mathbf{1}\mathbf{1}^\top\rVert^2+\tau\eta\,"
        r"\mathrm{tr}\,F\quad\text{subject to}\quad 0\le\alpha\le C,\quad "
        r"y^\top\alpha=0,\quad a_i=y_i\alpha_i",
    )
    references = ("liu2020",)
    examples = (
        Example(
            "breast",
            lambda d: AdaptiveKernel(d.kernel(), d.signs, 1.0, 0.5),
            demo=(60,),
            full=(60, 120, 240),
        ),
        Example(
            "digits",
            lambda d: AdaptiveKernel(d.features, d.signs, 1.0, 0.5),
            demo=(600,),
            full=(600, 1200),
        ),
    )

    K: Gram | LowRank
    y: FloatArray
    C: float
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
            eta: float | None = None,
            tau: float = 0.0,
            bias: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", self.K if isinstance(self.K, LowRank) else Gram.of(self.K))
        object.__setattr__(self, "y", checked_labels(self.y, self.K.size, self.bias))
        object.__setattr__(self, "C", positive("C", self.C))
        object.__setattr__(self, "tau", positive("tau", self.tau, zero=True))
        object.__setattr__(self, "bias", flag("bias", self.bias))
        object.__setattr__(self, "eta", checked_eta(self.eta, self.C, self.K))
        refuse_large(self.C, self.machine.scale)

    @cached_property
    def machine(self) -> Machine:
        """The checked data, which brackets the optimum."""
        return Machine(self.K, self.y, self.C, self.eta, self.tau, self.bias)

    def describe(self) -> str:
        bias = "" if self.bias else ", no bias"
        return f"AdaptiveKernel(n={self.y.size}, C={self.C:g}, eta={self.eta:g}, tau={self.tau:g}{bias})"

    def formulations(self) -> tuple[Formulation, ...]:
        return Forms(self.machine).formulations()

    def bracket(self, point: Point) -> Bracket:
        return self.machine.bracket(self.y * point.alpha, point.dual.get("machine"))

    def kernel(self, point: Point) -> FloatArray:
        """Return F o K."""
        return self.machine.function.kernel(self.y * point.alpha)

    def weights(self, point: Point) -> FloatArray:
        """Return F."""
        return self.machine.function.weights(self.y * point.alpha)

    def screen(self, point: Point) -> tuple[Mask, Mask]:
        """Return which points are proven to have alpha = 0, and which alpha = C, in the solution; without bias only."""
        zero, top, bottom = screened(self.machine, point)
        return zero, top | bottom

    @staticmethod
    def on_points(
        kernel: Kernel, C: float, eta: float | None = None, tau: float = 0.0, bias: bool = True
    ) -> OnPoints[AdaptiveKernel]:
        """Return the function that makes the problem of points X with labels y, for `klopt.learners.decomposition.decompose`.

        With a bias, points of one class leave alpha = 0 alone: then there is no problem, and it
        returns None.
        """
        return OnPoints(AdaptiveKernel, kernel, C, eta, tau, bias)

    eta_for = staticmethod(eta_for)
    eta_of_paper = staticmethod(eta_of_paper)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        C, tau = float(rng.choice([0.3, 1.0, 3.0])), float(rng.choice([0.0, 0.05]))
        return cls(np.exp(-squares / 3), y, C, eta=C * C, tau=tau, bias=bool(rng.random() < 0.5))
