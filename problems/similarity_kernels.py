"""EMKL: kernels near similarities, one for each, that are best for multiple kernel learning.

    minimise  max over alpha, gamma of
        1'alpha - sum_i a'K_i a / (2 gamma_i)  +  rho sum_i L(K_i - S_i)

    over K_i positive semidefinite of the given trace;
    a = y o alpha, 0 <= alpha <= C, y'alpha = 0;   gamma >= 0 of sum 1

Kundu, Tankasali, Bhattacharyya, Ben-Tal (2010), Efficient algorithms for learning kernels from
multiple similarity matrices with general convex loss functions, (6) with (10). With (5), which the
paper prints as if it were the same, the problem would not be convex. Losses as in
`SimilarityKernel`.
"""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from klopt.model.problem import Example, Statement
from klopt.problems._similarity.base import SeveralKernelsProblem
from klopt.problems._similarity.data import Losses, loss_name, noisy_similarities

__all__ = ["SimilarityKernels"]


@attrs.frozen(eq=False, slots=False)
class SimilarityKernels(SeveralKernelsProblem):
    """Learn a kernel from each similarity matrix, for one support vector machine.

    It has the kernel sum K_i / gamma_i. Solutions have `alpha`, `bias`, `gamma` and `kernels`, of
    shape (m, n, n); but for the squared loss also `gradients`.

    Parameters
    ----------
    S : list of (n, n) matrices or array of shape (n, n, m)
        The similarities.
    y : (n,) array
        Labels -1 and +1.
    C : float
        Penalty of the support vector machine.
    rho : float
        Weight of the losses.
    trace : float
        Trace of each kernel.
    loss : "l1", "frobenius", "squared" or an object
        The loss L, as in `SimilarityKernel`.

    References
    ----------
    Kundu et al. (2010). Efficient algorithms for learning kernels from multiple similarity
    matrices with general convex loss functions.

    Examples
    --------
    >>> from klopt.model.problem import Point
    >>> problem = SimilarityKernels([[[1, 2], [2, 1]]], [1, -1], C=1, rho=1, trace=2)
    >>> bracket = problem.bracket(Point({"alpha": [1.0, 1.0], "gamma": [1.0]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (4.0, 4.0)
    """

    statement = Statement(
        r"\min_{K_i\succeq 0}\;\max_{\alpha,\gamma}\; "
        r"\mathbf{1}^\top\alpha-\sum_i\frac{a^\top K_ia}{2\gamma_i}+\rho\sum_i "
        r"L(K_i-S_i)\quad\text{subject to}\quad \mathrm{tr}\,K_i=\tau,\quad "
        r"0\le\alpha\le C,\quad y^\top\alpha=0,\quad a_i=y_i\alpha_i,\quad\gamma\ge 0,"
        r"\quad\mathbf{1}^\top\gamma=1",
        words=(
            "S_i are similarities that need not be positive semidefinite; the support "
            "vector machine has the kernel sum K_i / gamma_i."
        ),
        weights="gamma",
        area="Kernel learning",
    )
    references = ("kundu2010",)
    has_optimum = True

    loss: Losses = "squared"

    def _given_loss(self) -> Losses:
        return self.loss

    def describe(self) -> str:
        return f"{super().describe()[:-1]}, {loss_name(self.loss)})"

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        S, y = noisy_similarities(rng, max(size, 2), 2)
        loss: Any = rng.choice(["squared", "frobenius", "l1"])
        C = float(rng.choice([0.1, 1.0, 10.0]))
        rho = float(rng.choice([0.05, 0.5]))
        return cls(S, y, C, rho, float(y.size), loss)

    examples = (
        Example(
            "wine",
            lambda d: SimilarityKernels(d.similarities, d.signs, 1.0, 0.1, d.size),
            demo=(30,),
            full=(30, 60, 120),
        ),
    )
