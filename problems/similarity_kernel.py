"""ESKL and IndSVM: the kernel that serves a support vector machine best and is like given similarities.

    minimise  max over alpha of  1'alpha - (y o alpha)'K(y o alpha) / 2   +   rho sum_i L(K - S_i)

    over K positive semidefinite, of the given trace or, with trace=None, of any;   0 <= alpha <= C, y'alpha = 0

The similarities S_i may have negative eigenvalues. Losses: "l1", the sum of all |entries|;
"frobenius", the norm; "squared", its square; or an object of yours with value(X), subgradient(X)
and conjugate(Z). With the squared loss only the mean of the S_i matters, and trace=None with one S
is IndSVM.

(4) of Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from
multiple similarity matrices with general convex loss functions, 2010. IndSVM: Luss, d'Aspremont,
Support vector machine classification with indefinite kernels, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive
from klopt.errors import InvalidProblem
from klopt.kernels.gram import binary_labels
from klopt.kernels.similarities import LinearExtension, Similarity
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._margin.data import refuse_large
from klopt.problems._similarity.data import (
    Losses,
    checked_loss,
    noisy_similarities,
    similarity_list,
)
from klopt.problems._similarity.forms import Forms
from klopt.problems._similarity.proof import Data, Single

__all__ = ["SimilarityKernel"]


@dataclass(frozen=True, eq=False)
class SimilarityKernel(Problem):
    """Learn one kernel from one similarity matrix S or several, a list of matrices or an array of shape (n, n, m).

    C is the penalty of the machine, for labels y of -1 and +1; `rho` the price of not being like S,
    by `loss`: "l1", "frobenius", "squared" or one of your own; `trace` that of the kernel, None for
    any. Solutions have `alpha`, `bias` and `kernel`; but for the squared loss also `gradients`, of
    shape (m, n, n), which prove the lower bound.

    >>> problem = SimilarityKernel([[1, 2], [2, 1]], [1, -1], C=1, rho=1, trace=2)
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6), bracket.point.kernel.round(3)
    (4.0, 4.0, array([[1., 1.],
           [1., 1.]]))
    """

    statement = Statement(
        r"\min_{K\succeq 0}\;\max_{\alpha}\; \mathbf{1}^\top\alpha-\tfrac12 a^\top "
        r"Ka+\rho\sum_i L(K-S_i)\quad\text{subject to}\quad \mathrm{tr}\,K=\tau,\quad "
        r"0\le\alpha\le C,\quad y^\top\alpha=0,\quad a_i=y_i\alpha_i",
        words=(
            "S_i are similarities that need not be positive semidefinite; L is the l1, "
            "Frobenius or squared loss. The trace may be left free."
        ),
    )
    references = ("kundu2010", "luss2009")
    examples = (
        Example(
            "wine",
            lambda d: SimilarityKernel(d.similarities, d.signs, 1.0, 0.1, d.size, "l1"),
            demo=(30,),
            full=(30, 60, 120),
        ),
    )

    S: tuple[Similarity, ...]
    y: FloatArray
    C: float
    rho: float
    trace: float | None
    loss: Losses = "squared"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self,
            S: Similarity | MatrixLike | Sequence[Similarity | MatrixLike],
            y: npt.ArrayLike,
            C: float,
            rho: float,
            trace: float | None,
            loss: Losses = "squared",
        ) -> None: ...

    def __post_init__(self) -> None:
        S = similarity_list(self.S)
        y, C = binary_labels(self.y, S[0].size), positive("C", self.C)
        rho = positive("rho", self.rho, zero=True)
        trace = None if self.trace is None else positive("trace", self.trace)
        if trace is None and rho == 0:
            raise InvalidProblem(
                "rho is 0 and trace is None: the larger the kernel the better, there is no best one"
            )
        for name, value in (("S", S), ("y", y), ("C", C), ("rho", rho), ("trace", trace)):
            object.__setattr__(self, name, value)
        refuse_large(C, self.single.data.scale)

    @cached_property
    def single(self) -> Single:
        """The checked data, which brackets the optimum."""
        matrices = tuple(S.matrix for S in self.S)
        return Single(
            Data(
                matrices, self.y, self.C, self.rho, self.trace, checked_loss(self.loss, self.y.size)
            )
        )

    @property
    def provable(self) -> bool:
        return self.single.data.provable

    def describe(self) -> str:
        loss = self.loss if isinstance(self.loss, str) else type(self.loss).__name__
        trace = "none" if self.trace is None else f"{self.trace:g}"
        return f"SimilarityKernel(n={self.y.size}, m={len(self.S)}, C={self.C:g}, rho={self.rho:g}, {trace=!s}, {loss})"

    def kernel(self, point: Point) -> FloatArray:
        return point.kernel

    def extension(self, point: Point) -> LinearExtension:
        """Return the learned kernel for new points, by the mean of their similarities to the training points."""
        return LinearExtension(Similarity.of(self.single.data.mean), point.kernel)

    def bracket(self, point: Point) -> Bracket:
        return self.single.bracket(point)

    def formulations(self) -> tuple[Formulation, ...]:
        return Forms(self.single).formulations()

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        S, y = noisy_similarities(rng, max(size, 2), 1)
        loss: Any = rng.choice(["squared", "frobenius", "l1"])
        trace = None if rng.random() < 0.3 else float(y.size)
        return cls(
            S, y, float(rng.choice([0.1, 1.0, 10.0])), float(rng.choice([0.05, 0.5])), trace, loss
        )
