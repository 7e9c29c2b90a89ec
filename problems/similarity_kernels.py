"""EMKL: several kernels, each like a similarity of its own, that serve a multiple kernel machine best.

    minimise  max over alpha, gamma of  1'alpha - sum_i a'K_i a / (2 gamma_i)  +  rho sum_i L(K_i - S_i)

    over K_i positive semidefinite of the given trace;
    a = y o alpha, 0 <= alpha <= C, y'alpha = 0;   gamma >= 0 of sum 1

(6) with (10) of Kundu, Tankasali, Bhattacharyya, Ben-Tal, Efficient algorithms for learning kernels
from multiple similarity matrices with general convex loss functions, 2010. With (5), which the
paper prints as if it were the same, the problem would not be convex. Losses as in
`SimilarityKernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike
from klopt.kernels.similarities import Similarity
from klopt.model.problem import Example, Statement
from klopt.problems._similarity.data import Losses, noisy_similarities
from klopt.problems._similarity.machine import SimilarityMachine

__all__ = ["SimilarityKernels"]


@dataclass(frozen=True, eq=False)
class SimilarityKernels(SimilarityMachine):
    """Learn a kernel from each similarity matrix, for one machine with the kernel sum K_i / gamma_i.

    S, C, `rho` and `loss` are those of `SimilarityKernel`; each kernel has the given `trace`.
    Solutions have `alpha`, `bias`, `gamma` and `kernels`, of shape (m, n, n); but for the squared
    loss also `gradients`.

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
            "S_i are similarities that need not be positive semidefinite; the machine "
            "has the kernel sum K_i / gamma_i."
        ),
        weights="gamma",
    )
    references = ("kundu2010",)
    examples = (
        Example(
            "wine",
            lambda d: SimilarityKernels(d.similarities, d.signs, 1.0, 0.1, d.size),
            demo=(30,),
            full=(30, 60, 120),
        ),
    )

    S: tuple[Similarity, ...]
    y: FloatArray
    C: float
    rho: float
    trace: float
    loss: Losses = "squared"

    if (
        TYPE_CHECKING
    ):  # matrices are taken as they come; the fields hold what they were converted to

        def __init__(
            self,
            S: Sequence[Similarity | MatrixLike] | npt.NDArray[Any],
            y: npt.ArrayLike,
            C: float,
            rho: float,
            trace: float,
            loss: Losses = "squared",
        ) -> None: ...

    def describe(self) -> str:
        loss = self.loss if isinstance(self.loss, str) else type(self.loss).__name__
        return f"{super().describe()[:-1]}, {loss})"

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        S, y = noisy_similarities(rng, max(size, 2), 2)
        loss: Any = rng.choice(["squared", "frobenius", "l1"])
        return cls(
            S,
            y,
            float(rng.choice([0.1, 1.0, 10.0])),
            float(rng.choice([0.05, 0.5])),
            float(y.size),
            loss,
        )
