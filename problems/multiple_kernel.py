"""Multiple kernel learning: a support vector machine and the best mixture of several kernels.

    maximise  y'a - ||r||_s^2 / 2 - loss        r_i = (a'K_i a)^1/2

    loss "hinge"     0 <= y_i a_i <= C, 1'a = 0    SVM with a bias, a_i = y_i alpha_i
    loss "squared"   a'a / (2C)                    regularised least squares, any y, no bias
    loss "epsilon"   epsilon ||a||_1, |a_i| <= C,  support vector regression with a bias
                     1'a = 0

C may differ from point to point. "Best" has two meanings in the literature, and exponents between them:

    norm "block-l1"     s = inf             the smallest value, over weights theta >= 0 of sum 1,
                                            with the kernel sum theta_i K_i: few weights are not 0
    norm "block-linf"   s = 1               the largest value, over gamma >= 0 of sum 1,
                                            with the kernel sum K_i / gamma_i: none is left out
    norm p > 1          s = p / (p - 1)     in between; p = 2 is the plain sum of the kernels

The first two are (5) and (10) of Kundu et al. (2010), printed as if they were the same. (4) of Mao
and Tsang (2010) has the squared loss and only theta >= 0; but a larger kernel always fits better,
so that there is no best one: the sum must be bounded. Both bounds are in
`klopt.problems._mkl.proof`.

Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels from multiple
similarity matrices with general convex loss functions, 2010. Mao, Tsang, Parameter-free spectral
kernel learning, 2010.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.kernels.gram import Gram
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._margin.data import (
    PenaltyLike,
    given_penalty,
    given_tube,
    penalty_text,
    require_penalty_of_each_point,
)
from klopt.problems._margin.forms import refuse_large_penalty
from klopt.problems._margin.proof import Penalty
from klopt.problems._mkl.data import (
    Kernels,
    Loss as Loss,
    Norm as Norm,
    given_kernels,
    given_loss,
    given_y,
    primal_exponent,
)
from klopt.problems._mkl.exact_claim import multiple_kernel_claim
from klopt.problems._mkl.forms import MultipleKernelForms
from klopt.problems._mkl.proof import MultipleKernelDual
from klopt.problems._mkl.witness import multiple_kernel_witness
from klopt.witness.exact_claims import ExactClaim

__all__ = ["MultipleKernel"]


@attrs.frozen(eq=False, slots=False, init=False)
class MultipleKernel(Problem):
    """Learn a support vector machine and the weights of its kernels.

    A kernel that is negative by rounding, which `Gram` allows and notes, stands for its positive
    part: its negative eigenvalues count as 0.

    Solutions have `alpha`, `weights` (the learned kernel is the sum of the kernels with them; for
    "block-linf" they are 1 / gamma_i) and, but for the squared loss, `bias`.

    Parameters
    ----------
    kernels : list of (n, n) matrices or array of shape (n, n, m)
        A list of matrices or an array of shape (n, n, m).
    y : (n,) array
        Labels -1 and +1 for the hinge loss, any numbers for the others.
    C : float or (n,) array
        The penalty of an error: one number, or one for each point.
    loss : "hinge", "squared" or "epsilon"
        "hinge", "squared", or "epsilon" for support vector regression.
    norm : "block-l1", "block-linf" or float
        How kernels are mixed: "block-l1" (few of them), "block-linf" (all of them) or an exponent
        of at least 1 in between.
    epsilon : float
        The half-width of the tube in which errors cost nothing; used by the loss "epsilon".

    References
    ----------
    Kundu et al. (2010). Efficient algorithms for learning kernels from multiple similarity
    matrices with general convex loss functions.

    Mao and Tsang (2010). Parameter-Free Spectral Kernel Learning.

    Examples
    --------
    >>> kernels = [[[2, 1], [1, 2]], [[1, 0], [0, 1]]]
    >>> problem = MultipleKernel(kernels, [1, -1], C=10, norm="block-linf")
    >>> bracket = problem.bracket(Point({"alpha": [0.25, 0.25]}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9), bracket.point.weights
    (0.25, 0.25, array([2., 2.]))
    """

    statement = Statement(
        r"\max_{a}\; y^\top a-\tfrac12\lVert r\rVert_s^2-\mathrm{loss}(a),\qquad "
        r"r_i=\sqrt{a^\top K_ia}",
        words=(
            "The hinge loss is 0 on 0 ≤ y_i a_i ≤ C, 1'a = 0 and infinite elsewhere, the "
            "squared loss a'a / (2C), the epsilon-insensitive loss ε ‖a‖₁ on |a_i| ≤ C, "
            "1'a = 0. s = ∞ mixes few kernels (block-l1), s = 1 leaves none out (block-linf)."
        ),
        data="A kernel that is indefinite by rounding stands for its positive part.",
        weights="weights",
        area="Kernel learning",
    )
    references = ("kundu2010", "mao2010")
    has_optimum = True
    sense = "max"

    kernels: tuple[Gram, ...]
    y: FloatArray
    C: Penalty
    loss: Loss = "hinge"
    norm: Norm = "block-l1"
    epsilon: float = 0.1

    def __init__(
        self,
        kernels: Kernels,
        y: npt.ArrayLike,
        C: PenaltyLike,
        loss: Loss = "hinge",
        norm: Norm = "block-l1",
        epsilon: float = 0.1,
    ) -> None:
        grams = given_kernels(kernels)
        loss = given_loss(loss)
        targets = given_y(y, grams[0].size, loss)
        penalty = given_penalty(C)
        require_penalty_of_each_point(penalty, targets.size)
        refuse_large_penalty(penalty, max(K.scale for K in grams))
        primal_exponent(norm)  # refuses what is no norm
        self.__attrs_init__(grams, targets, penalty, loss, norm, given_tube(epsilon))

    def describe(self) -> str:
        sizes = f"n={self.y.size}, m={len(self.kernels)}, {penalty_text(self.C)}"
        return f"MultipleKernel({sizes}, {self.loss}, norm={self.norm})"

    @cached_property
    def machine(self) -> MultipleKernelDual:
        """The dual in signed coefficients, which brackets the optimum."""
        p = primal_exponent(self.norm)
        epsilon = self.epsilon if self.loss == "epsilon" else None
        return MultipleKernelDual(self.kernels, self.y, self.C, self.loss == "hinge", p, epsilon)

    # The formulations

    def formulations(self) -> tuple[Formulation, ...]:
        return MultipleKernelForms(self.machine).formulations()

    def kernel(self, point: Point) -> FloatArray:
        """Return the sum of the kernels with their weights."""
        pairs = zip(point.weights, self.kernels, strict=True)
        return np.asarray(sum(weight * K.matrix for weight, K in pairs))

    # The bracket

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return exactly feasible `coefficients` near the point's, and its weights: a proposal."""
        return multiple_kernel_witness(self.machine, point)

    def proof(self, witness: Point) -> Bracket:
        """Return what a witness proves."""
        return self.machine.proof(witness)

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the saddle program of weights and coefficients, each kernel its positive part."""
        return multiple_kernel_claim(self.machine, point)

    # The sample and the examples

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        n = max(size, 2)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(n, 3)) + y[:, None] / 2
        squares = np.square(X[:, None] - X).sum(axis=2)
        norm: Norm = "block-l1" if rng.random() < 0.5 else "block-linf"
        kernels = [np.exp(-squares / width) for width in (0.3, 3.0, 30.0)]
        return cls(kernels, y, C=float(rng.choice([0.1, 1.0, 10.0])), norm=norm)

    examples = (
        Example(
            "breast",
            lambda d: MultipleKernel(d.kernels, d.signs, 1.0),
            demo=(100,),
            full=(100, 200, 400),
        ),
    )
