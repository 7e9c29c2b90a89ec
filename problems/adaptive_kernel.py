"""A support vector machine with a data-adaptive kernel F o K: F is learned with the machine.

    maximise over alpha, minimise over F psd             0 <= alpha <= C,  y'alpha = 0
        1'alpha - alpha'Y(F o K)Y alpha/2 + eta ||F - 11'||^2 + tau eta tr F

This is the method DANK, (4) of Liu et al. (2020); o is the entrywise product. For given alpha the
best F is the positive part of 11' + Gamma - (tau/2) I, Gamma_ij = a_i a_j K_ij/(4 eta), a = Y
alpha; what is left is smooth and concave in alpha, for tau = 0 a quartic. tau > 0 makes F of low
rank. Each entry of F differs from 1 by at most C^2 max K / (4 eta) + tau/2: `eta_for` turns a
wished deviation into eta. Liu et al. (2020) take eta = ||alpha_svm||^2 (`eta_of_paper`): then tr
Gamma = 1/4 however many points there are, and F does nothing. Both bounds are in
`klopt.problems._adaptive.proof`.

Liu, Huang, Gong, Yang, Li, Learning data-adaptive non-parametric kernels, 2020.
"""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.model.problem import Example, Point, Statement
from klopt.problems._adaptive.data import given_kernel, given_labels, given_penalties
from klopt.problems._adaptive.forms import AdaptiveProblem
from klopt.problems._adaptive.points import AdaptiveFactory, Kernel
from klopt.problems._adaptive.screening import Mask, screened

__all__ = ["AdaptiveKernel"]


@attrs.frozen(eq=False, slots=False, init=False)
class AdaptiveKernel(AdaptiveProblem):
    """Learn F and a support vector machine with kernel F o K.

    Solutions have `alpha` and, with a bias, `bias`; F is `problem.weights(point)`, F o K is
    `result.kernel`. The data are the stored numbers: the matrix K, or the features of K = Phi Phi'.

    Parameters
    ----------
    K : (n, n) matrix, Gram or LowRank
        A kernel matrix, or features of low rank (`klopt.kernels.nystroem`).
    y : (n,) array
        Labels -1 and +1.
    C : float
        The penalty of errors.
    eta : float or None
        The price of moving F away from 1; None takes one that keeps F within 0.1 of 1.
    tau : float
        Above zero it makes F of low rank.
    bias : bool
        Whether there is one.

    References
    ----------
    Liu et al. (2020). Learning Data-adaptive Non-parametric Kernels.

    Examples
    --------
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
        area="Kernel learning",
    )
    references = ("liu2020",)
    has_optimum = True
    sense = "max"

    K: Gram | LowRank
    y: FloatArray
    C: float
    eta: float = attrs.field(default=None)
    tau: float = 0.0
    bias: bool = True

    def __init__(
        self,
        K: Gram | LowRank | MatrixLike,
        y: npt.ArrayLike,
        C: float,
        eta: float | None = None,
        tau: float = 0.0,
        bias: bool = True,
    ) -> None:
        kernel = given_kernel(K)
        labels = given_labels(y, kernel.size, bias)
        self.__attrs_init__(kernel, labels, *given_penalties(kernel, C, eta, tau, bias))

    def describe(self) -> str:
        sizes = f"n={self.y.size}, C={self.C:g}, eta={self.eta:g}, tau={self.tau:g}"
        bias = "" if self.bias else ", no bias"
        return f"AdaptiveKernel({sizes}{bias})"

    # What a point proves beside its bracket

    def screen(self, point: Point) -> tuple[Mask, Mask]:
        """Return which points are proven to have alpha = 0, and which alpha = C, in the solution.

        Without bias only.
        """
        zero, top, bottom = screened(self.machine, point)
        return zero, top | bottom

    # From points

    @staticmethod
    def on_points(
        kernel: Kernel, C: float, eta: float | None = None, tau: float = 0.0, bias: bool = True
    ) -> AdaptiveFactory[AdaptiveKernel]:
        """Return the function that makes the problem of points X with labels y.

        For `klopt.learners.decomposition.decompose`. With a bias, points of one class leave alpha =
        0 alone: then there is no problem, and it returns None.

        Parameters
        ----------
        kernel
            A function of two sets of points.
        C, eta, tau, bias
            As above.
        """
        return AdaptiveFactory(AdaptiveKernel, kernel, C, eta, tau, bias)

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        C = float(rng.choice([0.3, 1.0, 3.0]))
        tau = float(rng.choice([0.0, 0.05]))
        bias = bool(rng.random() < 0.5)
        return cls(np.exp(-squares / 3), y, C, eta=C * C, tau=tau, bias=bias)

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
