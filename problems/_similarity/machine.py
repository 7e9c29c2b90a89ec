"""What the two machines with a kernel for each similarity matrix share: data, bracket, formulations, new points."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from klopt.arrays import FloatArray, positive
from klopt.kernels.gram import binary_labels
from klopt.kernels.similarities import LinearExtension, Similarity
from klopt.model.problem import Bracket, Formulation, Point, Problem
from klopt.problems._margin.data import refuse_large
from klopt.problems._similarity.data import Losses, checked_loss, similarity_list
from klopt.problems._similarity.proof import Data
from klopt.problems._similarity.several import Several
from klopt.problems._similarity.several_forms import Forms

__all__ = ["SimilarityMachine"]


class SimilarityMachine(Problem):
    """One machine with the kernel sum K_i / gamma_i, each K_i of the given trace and learned from S_i."""

    S: tuple[Similarity, ...]
    y: FloatArray
    C: float
    rho: float
    trace: float
    loss: Losses = "squared"

    keeps_eigenvectors: ClassVar[bool] = False
    """Whether K_i has the eigenvectors of S_i."""

    def __post_init__(self) -> None:
        S = similarity_list(self.S, many=True)
        y, C, trace = (
            binary_labels(self.y, S[0].size),
            positive("C", self.C),
            positive("trace", self.trace),
        )
        rho = positive("rho", self.rho, zero=True)
        for name, value in (("S", S), ("y", y), ("C", C), ("rho", rho), ("trace", trace)):
            object.__setattr__(self, name, value)
        refuse_large(C, self.several.data.scale)

    @cached_property
    def several(self) -> Several:
        """The checked data, which brackets the optimum."""
        matrices = tuple(S.matrix for S in self.S)
        data = Data(
            matrices, self.y, self.C, self.rho, self.trace, checked_loss(self.loss, self.y.size)
        )
        return Several(data, fixed=self.keeps_eigenvectors)

    @property
    def provable(self) -> bool:
        return self.several.data.provable

    def describe(self) -> str:
        n, m = self.y.size, len(self.S)
        return f"{type(self).__name__}(n={n}, m={m}, C={self.C:g}, rho={self.rho:g}, trace={self.trace:g})"

    def kernel(self, point: Point) -> FloatArray:
        """Return the kernel of the machine, sum K_i / gamma_i."""
        return np.asarray(np.tensordot(1 / point.gamma, point.kernels, 1))

    def extensions(self, point: Point) -> tuple[LinearExtension, ...]:
        """Return each learned kernel for new points; the machine's is their sum with the weights 1 / gamma_i."""
        return tuple(LinearExtension(S, K) for S, K in zip(self.S, point.kernels, strict=True))

    def bracket(self, point: Point) -> Bracket:
        return self.several.bracket(point)

    def formulations(self) -> tuple[Formulation, ...]:
        return Forms(self.several).formulations()
