"""MKL: one machine and the best mixture of several kernels, in the two meanings that "best" has in the literature.

    maximise  y'a - ||r||_s^2 / 2 - loss        r_i = (a'K_i a)^1/2

    loss "hinge"     0 <= y_i a_i <= C, 1'a = 0        a_i = y_i alpha_i: the support vector machine with a bias
    loss "squared"   a'a / (2C)                        regularised least squares, y any numbers, no bias

    norm "block-l1"     s = inf   (5) of [1]: the least value, over weights theta >= 0 of sum 1, of the machine with the
                                  kernel sum theta_i K_i; few weights are not zero
    norm "block-linf"   s = 1     (10) of [1]: the largest value, over gamma >= 0 of sum 1, of the machine with the
                                  kernel sum K_i / gamma_i; no kernel is left out
    norm p > 1          s = p / (p - 1)   in between; p = 2 is the plain sum of the kernels

[1] prints (5) and (10) as if they were the same. (4) of [2] has the squared loss and only theta >=
0; but a larger kernel always fits better, so that there is no best one: the sum must be bounded.

[1] Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
multiple similarity
    matrices with general convex loss functions, 2010. [2] Mao, Tsang, Parameter-free spectral kernel learning, 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive, vector
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram, binary_labels
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._margin.data import refuse_large
from klopt.problems._mkl.forms import Forms
from klopt.problems._mkl.function import dual_exponent, kernel_list
from klopt.problems._mkl.proof import Machine

__all__ = ["MultipleKernel"]

Loss = Literal["hinge", "squared"]
Norm = Literal["block-l1", "block-linf"] | float


@dataclass(frozen=True, eq=False)
class MultipleKernel(Problem):
    """Learn a machine and the weights of its kernels, a list of matrices or an array of shape (n, n, m).

    C is the penalty of an error by `loss`: "hinge", labels y of -1 and +1, or "squared", any y.
    `norm` says how kernels are mixed: "block-l1" (few of them), "block-linf" (all of them) or an
    exponent of at least 1 in between. Solutions have `alpha`, `weights` (the learned kernel is the
    sum of the kernels with them; for "block-linf" they are 1 / gamma_i) and, with the hinge loss,
    `bias`.

    >>> problem = MultipleKernel([[[2, 1], [1, 2]], [[1, 0], [0, 1]]], [1, -1], C=10, norm="block-linf")
    >>> bracket = problem.bracket(Point({"alpha": [0.25, 0.25]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.weights
    (0.25, 0.25, array([2., 2.]))
    """

    statement = Statement(
        r"\max_{a}\; y^\top a-\tfrac12\lVert r\rVert_s^2-\mathrm{loss}(a),\qquad "
        r"r_i=\sqrt{a^\top K_ia}",
        words=(
            "The hinge loss is 0 on 0 ≤ y_i a_i ≤ C, 1'a = 0 and infinite elsewhere, the "
            "squared loss a'a / (2C). s = ∞ mixes few kernels (block-l1), s = 1 leaves "
            "none out (block-linf)."
        ),
        weights="weights",
    )
    references = ("kundu2010", "mao2010")
    examples = (
        Example(
            "breast",
            lambda d: MultipleKernel(d.kernels, d.signs, 1.0),
            demo=(100,),
            full=(100, 200, 400),
        ),
    )

    kernels: tuple[Gram, ...]
    y: FloatArray
    C: float
    loss: Loss = "hinge"
    norm: Norm = "block-l1"

    sense = "max"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self,
            kernels: Sequence[Gram | MatrixLike] | npt.NDArray[Any],
            y: npt.ArrayLike,
            C: float,
            loss: Loss = "hinge",
            norm: Norm = "block-l1",
        ) -> None: ...

    def __post_init__(self) -> None:
        kernels = kernel_list(self.kernels)
        if self.loss not in get_args(Loss):
            raise InvalidProblem(
                f"loss is {self.loss!r}; expected one of {', '.join(get_args(Loss))}"
            )
        n, hinge = kernels[0].size, self.loss == "hinge"
        y = binary_labels(self.y, n) if hinge else vector("y", self.y, n)
        C = positive("C", self.C)
        refuse_large(C, max(K.scale for K in kernels))
        for name, value in (("kernels", kernels), ("y", y), ("C", C)):
            object.__setattr__(self, name, value)
        dual_exponent(self.norm)

    @cached_property
    def machine(self) -> Machine:
        """The checked data, which brackets the optimum."""
        return Machine(self.kernels, self.y, self.C, self.loss == "hinge", dual_exponent(self.norm))

    def describe(self) -> str:
        n, m = self.y.size, len(self.kernels)
        return f"MultipleKernel(n={n}, m={m}, C={self.C:g}, {self.loss}, norm={self.norm})"

    def kernel(self, point: Point) -> FloatArray:
        """Return the sum of the kernels with their weights."""
        return np.asarray(
            sum(w * K.matrix for w, K in zip(point.weights, self.kernels, strict=True))
        )

    def bracket(self, point: Point) -> Bracket:
        return self.machine.bracket(point)

    def formulations(self) -> tuple[Formulation, ...]:
        return Forms(self.machine).formulations()

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        norm: Norm = "block-l1" if rng.random() < 0.5 else "block-linf"
        kernels = [np.exp(-squares / width) for width in (0.3, 3.0, 30.0)]
        return cls(kernels, y, C=float(rng.choice([0.1, 1.0, 10.0])), norm=norm)
