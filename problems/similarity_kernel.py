"""ESKL and IndSVM: the kernel near given similarities that is best for a support vector machine.

    minimise  max over alpha of  1'alpha - (y o alpha)'K(y o alpha) / 2   +   rho sum_i L(K - S_i)

    over K positive semidefinite, of the given trace or, with trace=None, of any;
    0 <= alpha <= C, y'alpha = 0

The similarities S_i may have negative eigenvalues. Losses: "l1", the sum of all |entries|;
"frobenius", the norm; "squared", its square; or an object of yours with value(X), subgradient(X)
and conjugate(Z). With the squared loss only the mean of the S_i matters, and trace=None with one S
is IndSVM.

ESKL: Kundu, Tankasali, Bhattacharyya, Ben-Tal (2010), Efficient algorithms for learning kernels
from multiple similarity matrices with general convex loss functions, (4). IndSVM: Luss, d'Aspremont
(2009), Support vector machine classification with indefinite kernels.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.errors import InvalidProblem
from klopt.kernels.similarities import LinearExtension, Similarity
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._margin.data import (
    given_penalty,
    penalty_text,
    require_penalty_of_each_point,
)
from klopt.problems._margin.forms import refuse_large_penalty
from klopt.problems._margin.proof import Penalty
from klopt.problems._similarity.data import (
    Losses,
    as_labels,
    as_optional_trace,
    as_rho,
    as_similarities,
    checked_loss,
    loss_name,
    noisy_similarities,
    require_labels,
)
from klopt.problems._similarity.exact_claim import similarity_claim
from klopt.problems._similarity.forms import SingleKernelForms
from klopt.problems._similarity.instance import SimilarityData
from klopt.problems._similarity.witness import SingleKernel
from klopt.witness.exact_claims import ExactClaim

__all__ = ["SimilarityKernel"]


@attrs.frozen(eq=False, slots=False)
class SimilarityKernel(Problem):
    """Learn one kernel from one similarity matrix or several.

    Solutions have `alpha`, `bias` and `kernel`; but for the squared loss also `gradients`, of shape
    (m, n, n), which prove the lower bound.

    Parameters
    ----------
    S : (n, n) matrix, list of matrices, or array of shape (n, n, m)
        The similarities.
    y : (n,) array
        Labels -1 and +1.
    C : float
        Penalty of the support vector machine.
    rho : float
        Weight of the losses.
    trace : float or None
        Trace of the kernel, None for any.
    loss : "l1", "frobenius", "squared" or an object
        The loss L; an object has value(X), subgradient(X) and, for a lower end, conjugate(Z). What
        such values give is an estimate: their accuracy is unknown.

    References
    ----------
    Kundu et al. (2010). Efficient algorithms for learning kernels from multiple similarity
    matrices with general convex loss functions.

    Luss and d'Aspremont (2009). Support vector machine classification with indefinite kernels.

    Examples
    --------
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
        area="Kernel learning",
    )
    references = ("kundu2010", "luss2009")
    has_optimum = True

    S: tuple[Similarity, ...] = attrs.field(converter=as_similarities)
    y: FloatArray = attrs.field(converter=as_labels)
    C: Penalty = attrs.field(converter=given_penalty)
    rho: float = attrs.field(converter=as_rho)
    trace: float | None = attrs.field(converter=as_optional_trace)
    loss: Losses = "squared"

    def __attrs_post_init__(self) -> None:
        require_labels(self.y, self.S)
        require_penalty_of_each_point(self.C, self.y.size)
        if self.trace is None and self.rho == 0:
            raise InvalidProblem(
                "rho is 0 and trace is None: the larger the kernel the better, there is no best one"
            )
        refuse_large_penalty(self.C, self.single.data.scale)

    @cached_property
    def single(self) -> SingleKernel:
        """The checked data and the best kernel for given multipliers."""
        matrices = tuple(S.matrix for S in self.S)
        loss = checked_loss(self.loss, self.y.size)
        return SingleKernel(SimilarityData(matrices, self.y, self.C, self.rho, self.trace, loss))

    @property
    def provable(self) -> bool:
        return self.single.data.provable

    def describe(self) -> str:
        trace = "none" if self.trace is None else f"{self.trace:g}"
        sizes = f"n={self.y.size}, m={len(self.S)}"
        penalties = f"{penalty_text(self.C)}, rho={self.rho:g}, trace={trace}"
        return f"SimilarityKernel({sizes}, {penalties}, {loss_name(self.loss)})"

    def formulations(self) -> tuple[Formulation, ...]:
        return SingleKernelForms(self.single).formulations()

    def witness(self, point: Point) -> Point:
        """Return what `proof` takes, from any point that has alpha."""
        return self.single.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return the bounds that a witness proves, whoever made it."""
        return self.single.proof(witness)

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the saddle program of the kernel and the coefficients."""
        return similarity_claim(self.single.data, [self.single.data.S], point)

    def kernel(self, point: Point) -> FloatArray:
        return point.kernel

    def extension(self, point: Point) -> LinearExtension:
        """Return the learned kernel for new points, by the mean of their similarities."""
        return LinearExtension(Similarity.of(self.single.data.mean), point.kernel)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        S, y = noisy_similarities(rng, max(size, 2), 1)
        loss: Any = rng.choice(["squared", "frobenius", "l1"])
        trace = None if rng.random() < 0.3 else float(y.size)
        C = float(rng.choice([0.1, 1.0, 10.0]))
        rho = float(rng.choice([0.05, 0.5]))
        return cls(S, y, C, rho, trace, loss)

    examples = (
        Example(
            "wine",
            lambda d: SimilarityKernel(d.similarities, d.signs, 1.0, 0.1, d.size, "l1"),
            demo=(30,),
            full=(30, 60, 120),
        ),
    )
