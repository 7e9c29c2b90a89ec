"""Support vector regression with a data-adaptive kernel F o K: F is learned with the regression.

    maximise over beta, minimise over F psd              -C <= beta <= C,  1'beta = 0
        y'beta - epsilon ||beta||_1 - beta'(F o K)beta/2 + eta ||F - 11'||^2 + tau eta tr F

This is (22) of Liu et al. (2020) with its constraint corrected: the printed one, y'beta = 0, takes
the linear term away, and beta = 0 is best for all data. beta is the difference of the two
multipliers of a point, of which one is zero. F is eliminated as in
`klopt.problems.adaptive_kernel`, and eta is chosen in the same way. Both bounds are in
`klopt.problems._adaptive.proof`.

Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, vector
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Example, Point, Statement
from klopt.problems._adaptive.data import given_kernel, given_penalties
from klopt.problems._adaptive.forms import AdaptiveProblem
from klopt.problems._adaptive.points import AdaptiveFactory, Kernel
from klopt.problems._adaptive.screening import Mask, screened
from klopt.problems._margin.data import given_tube

__all__ = ["AdaptiveKernelRegression"]


@attrs.frozen(eq=False, slots=False, init=False)
class AdaptiveKernelRegression(AdaptiveProblem):
    """Learn F and a support vector regression with kernel F o K.

    Solutions have `beta` and, with a bias, `bias`; F is `problem.weights(point)`, F o K is
    `result.kernel`.

    Parameters
    ----------
    K, C, eta, tau, bias
        As in `AdaptiveKernel`.
    y : (n,) array
        Targets.
    epsilon : float
        The half-width of the tube: errors up to it cost nothing.

    References
    ----------
    Liu et al. (2020). Learning Data-adaptive Non-parametric Kernels.

    Examples
    --------
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
        area="Kernel learning",
    )
    references = ("liu2020",)
    has_optimum = True
    sense = "max"

    K: Gram | LowRank
    y: FloatArray
    C: float
    epsilon: float
    eta: float = attrs.field(default=None)
    tau: float = 0.0
    bias: bool = True

    def __init__(
        self,
        K: Gram | LowRank | MatrixLike,
        y: npt.ArrayLike,
        C: float,
        epsilon: float,
        eta: float | None = None,
        tau: float = 0.0,
        bias: bool = True,
    ) -> None:
        kernel = given_kernel(K)
        targets = vector("y", y, kernel.size)
        C, eta, tau, bias = given_penalties(kernel, C, eta, tau, bias)
        self.__attrs_init__(kernel, targets, C, given_tube(epsilon), eta, tau, bias)

    @property
    def _tube(self) -> float:
        return self.epsilon

    def describe(self) -> str:
        sizes = f"n={self.y.size}, C={self.C:g}, epsilon={self.epsilon:g}"
        penalties = f"eta={self.eta:g}, tau={self.tau:g}"
        bias = "" if self.bias else ", no bias"
        return f"AdaptiveKernelRegression({sizes}, {penalties}{bias})"

    # What a point proves beside its bracket

    def screen(self, point: Point) -> tuple[Mask, Mask, Mask]:
        """Return which points are proven to have beta = 0, which C and which -C, in the solution.

        Without bias only.
        """
        return screened(self.machine, point)

    # From points

    @staticmethod
    def on_points(
        kernel: Kernel,
        C: float,
        epsilon: float,
        eta: float | None = None,
        tau: float = 0.0,
        bias: bool = True,
    ) -> AdaptiveFactory[AdaptiveKernelRegression]:
        """Return the function that makes the problem of points X with targets y.

        For `klopt.learners.decomposition.decompose`.

        Parameters
        ----------
        kernel
            A function of two sets of points.
        C, epsilon, eta, tau, bias
            As above.
        """
        # A factory without epsilon is one of classification, so None is refused here.
        tube = given_tube(epsilon)
        return AdaptiveFactory(AdaptiveKernelRegression, kernel, C, eta, tau, bias, tube)

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        X = rng.normal(size=(n, 2))
        squares = np.square(X[:, None] - X).sum(axis=2)
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
        C = float(rng.choice([0.3, 1.0, 3.0]))
        epsilon = float(rng.choice([0.0, 0.1]))
        tau = float(rng.choice([0.0, 0.05]))
        bias = bool(rng.random() < 0.5)
        return cls(np.exp(-squares / 2), y, C, epsilon, eta=C * C, tau=tau, bias=bias)

    examples = (
        Example(
            "diabetes",
            lambda d: AdaptiveKernelRegression(d.kernel(), d.y, 1.0, 0.1, 0.5),
            demo=(60,),
            full=(60, 120, 240),
        ),
    )
