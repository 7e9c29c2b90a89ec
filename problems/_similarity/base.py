"""The problem class that EMKL and REKL share, with a kernel for each similarity."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import attrs
import numpy as np

from klopt.arrays import FloatArray
from klopt.kernels.similarities import LinearExtension, Similarity
from klopt.model.problem import Bracket, Formulation, Point, Problem
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
    as_rho,
    as_several_similarities,
    as_trace,
    checked_loss,
    require_labels,
)
from klopt.problems._similarity.exact_claim import similarity_claim, spectra_claim
from klopt.problems._similarity.forms import SeveralKernelsForms
from klopt.problems._similarity.instance import SimilarityData
from klopt.problems._similarity.witness import SeveralKernels
from klopt.witness.exact_claims import ExactClaim

__all__ = ["SeveralKernelsProblem"]


@attrs.frozen(eq=False, slots=False)
class SeveralKernelsProblem(Problem):
    """A support vector machine with the kernel sum K_i / gamma_i, each K_i learned from S_i.

    Parameters
    ----------
    S : list of (n, n) matrices or array of shape (n, n, m)
        The similarities.
    y : (n,) array
        Labels -1 and +1.
    C : float or (n,) array
        Penalty of the support vector machine, for all points or for each.
    rho : float
        Weight of the losses.
    trace : float
        Trace of each kernel.
    """

    keeps_eigenvectors: ClassVar[bool] = False
    """Whether K_i has the eigenvectors of S_i."""

    S: tuple[Similarity, ...] = attrs.field(converter=as_several_similarities)
    y: FloatArray = attrs.field(converter=as_labels)
    C: Penalty = attrs.field(converter=given_penalty)
    rho: float = attrs.field(converter=as_rho)
    trace: float = attrs.field(converter=as_trace)

    def __attrs_post_init__(self) -> None:
        require_labels(self.y, self.S)
        require_penalty_of_each_point(self.C, self.y.size)
        refuse_large_penalty(self.C, self.several.data.scale)

    def _given_loss(self) -> Losses:
        return "squared"

    @cached_property
    def several(self) -> SeveralKernels:
        """The checked data and the best kernels for given multipliers."""
        matrices = tuple(S.matrix for S in self.S)
        loss = checked_loss(self._given_loss(), self.y.size)
        data = SimilarityData(matrices, self.y, self.C, self.rho, self.trace, loss)
        return SeveralKernels(data, self.keeps_eigenvectors)

    @property
    def provable(self) -> bool:
        return self.several.data.provable

    def describe(self) -> str:
        sizes = f"n={self.y.size}, m={len(self.S)}"
        penalties = f"{penalty_text(self.C)}, rho={self.rho:g}, trace={self.trace:g}"
        return f"{type(self).__name__}({sizes}, {penalties})"

    def formulations(self) -> tuple[Formulation, ...]:
        return SeveralKernelsForms(self.several).formulations()

    def witness(self, point: Point) -> Point:
        """Return what `proof` takes, from any point that has alpha."""
        return self.several.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return the bounds that a witness proves, whoever made it."""
        return self.several.proof(witness)

    def bracket(self, point: Point) -> Bracket:
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the saddle program of the kernels, gamma and the coefficients."""
        if not self.keeps_eigenvectors:
            return similarity_claim(self.several.data, [[S] for S in self.several.data.S], point)
        values = self.several.spectra.values
        m, n = values.shape
        vectors = self.several.spectra.vectors.reshape(m, n, n).transpose(0, 2, 1)
        signs = None
        if self.rho and self.several.data.loss.name == "l1":
            signs = self.several.best_signs(self.y * point.alpha, (point.gamma,))[1]
        return spectra_claim(self.several.data, values, vectors, point, signs)

    def kernel(self, point: Point) -> FloatArray:
        """Return the kernel of the support vector machine, sum K_i / gamma_i."""
        return np.asarray(np.tensordot(1 / point.gamma, point.kernels, 1))

    def extensions(self, point: Point) -> tuple[LinearExtension, ...]:
        """Return each learned kernel for new points.

        The support vector machine's kernel is their sum with the weights 1 / gamma_i.
        """
        return tuple(LinearExtension(S, K) for S, K in zip(self.S, point.kernels, strict=True))
