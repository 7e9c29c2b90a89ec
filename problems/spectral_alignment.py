"""SKL_KTA: the spectral kernel of least squares whose regularisation is chosen by kernel alignment.

The kernels of `SpectralRls`, K = U diag(lam) U' with lam_i = [(A_i / (2 mu B_i))^1/2 - 1/C]_+, form
one curve but for their scale: with r_i = (A_i / (2 B_i))^1/2 and the level t = mu^1/2 / C it is
lam_i ~ [r_i - t]_+, and

    maximise over 0 <= t < max r   h(t) = <K, T> / (||K|| ||T||) = sum_i lam_i A_i / (||lam|| ||T||)

where T = YY' is the target of the labelled points; the directions U, A, B are those of
`klopt.problems._spectral.data`. Mao, Tsang (2010) take the stationary point of the unclipped curve
for its maximum; often it is not, and there are local maxima. The exact maximum is found by
enumerating the pieces of the curve (`klopt.problems._spectral.proof`).

The decision f = K_ul (K_ll + I/C)^-1 Y_l depends on the level alone, not on C. At t = 0 it is R_ul
R_ll^-1 Y_l with R = U diag(r) U', the rule that the paper arrives at for every mu.

Mao, Tsang (2010), Parameter-free spectral kernel learning, Propositions 2 to 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, SparseMatrix, require_memory
from klopt.errors import InvalidProblem
from klopt.model.forms import ExplicitForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._spectral.data import (
    Directions,
    as_class_labels,
    as_laplacian,
    as_ridge,
    require_classes,
    sample_graph,
)
from klopt.problems._spectral.witness import AlignmentCurve
from klopt.witness.exact_claims import ExactClaim, LevelData, fractions

__all__ = ["SpectralAlignment"]


@attrs.frozen(eq=False, slots=False)
class SpectralAlignment(Problem):
    """Choose the level of a spectral kernel by its alignment with the labels.

    The value is the alignment, which is maximised; the solution is the number `level`. The data are
    the directions as computed from the Laplacian, by their strengths A and their r (`curve`), where
    r_i that agree to 1e-12 are equal: the bounds are about these numbers.

    Parameters
    ----------
    laplacian : (n, n) matrix
        The graph Laplacian.
    labels : (n,) array
        Classes 0, 1, 2, .., -1 for unlabelled points.
    ridge : float
        Added to the Laplacian, whose smallest eigenvalue is 0.
    rank : int or None
        Number of the smoothest eigenvectors that are kept, None for all.

    References
    ----------
    Mao and Tsang (2010). Parameter-Free Spectral Kernel Learning.

    Examples
    --------
    >>> path = [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    >>> problem = SpectralAlignment(path, labels=[0, -1, 1])
    >>> bracket = problem.bracket(Point({"level": 0.0}))
    >>> round(bracket.lower, 9), round(bracket.upper, 9)
    (1.0, 1.0)
    >>> problem.decide().round(9) + 0.0
    array([-1.,  0.,  1.])
    """

    statement = Statement(
        r"\max_{0\le t<\max r}\; \frac{\langle K,T\rangle}{\lVert K\rVert\,\lVert "
        r"T\rVert},\quad K=\sum_i[r_i-t]_+\,u_iu_i^\top,\quad r_i=\sqrt{A_i/(2B_i)}",
        words=(
            "The level t chooses among the spectral kernels of regularised least squares,"
            " which form one curve."
        ),
        data="The eigenvectors and eigenvalues of the Laplacian, as computed, are the data.",
        area="Kernel learning",
    )
    references = ("mao2010",)
    has_optimum = True
    sense = "max"

    laplacian: SparseMatrix = attrs.field(converter=as_laplacian)
    labels: npt.NDArray[np.int64] = attrs.field(converter=as_class_labels)
    ridge: float = attrs.field(default=1e-2, converter=as_ridge)
    rank: int | None = None

    def __attrs_post_init__(self) -> None:
        require_classes(self.labels, self.laplacian)
        if not self.directions.A.max() > 0:
            raise InvalidProblem(
                "every eigenvector that was kept is orthogonal to the labels; raise the rank"
            )

    @cached_property
    def directions(self) -> Directions:
        """What the labelled points see of the eigenspaces."""
        return Directions.of(self.laplacian, self.labels, self.ridge, self.rank)

    @cached_property
    def curve(self) -> AlignmentCurve:
        """The alignment as a function of the level, which brackets the optimum."""
        d = self.directions
        return AlignmentCurve.of_directions(d.A, d.B, float(np.linalg.norm(d.Y.T @ d.Y)))

    def describe(self) -> str:
        """Return the sizes."""
        known = self.directions.known.size
        n = self.labels.size
        return f"SpectralAlignment({known} of {n} points labelled, {self.curve.r.size} directions)"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the enumeration of the pieces, the only form: the alignment is not concave."""
        rule = ExplicitForm(self._best_level)
        because = (
            "on each piece of the curve the alignment has at most one stationary point, "
            "known in closed form"
        )
        return (Formulation("explicit", rule.needs, lambda: rule, _recover, because=because),)

    def _best_level(self) -> tuple[FloatArray, None]:
        return np.array([self.curve.best_level]), None

    def bracket(self, point: Point) -> Bracket:
        """Return the alignment at the level and the largest over all pieces."""
        return self.proof(self.witness(point))

    def witness(self, point: Point) -> Point:
        """Return the nearest level of the curve."""
        return self.curve.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return what a level proves in exact arithmetic; the upper end needs no witness."""
        return self.curve.proof(witness)

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the curve by its numbers, with the level of a point."""
        curve = self.curve
        level = min(max(float(point.level), 0.0), math.nextafter(float(curve.r.max()), 0.0))
        norm = Fraction(curve.target_norm)
        return ExactClaim(LevelData(fractions(curve.r), fractions(curve.A), norm, Fraction(level)))

    def spectrum(self, point: Point) -> FloatArray:
        """Return lam_i ~ [r_i - level]_+ of the directions, with sum 1."""
        weights = self.curve.weights(float(point.level))
        return weights / float(weights.sum())

    def kernel(self, point: Point) -> FloatArray:
        """Return U diag(lam) U'."""
        require_memory(8.0 * self.labels.size**2, f"the kernel of {self.labels.size} points")
        return (self.directions.U * self.spectrum(point)) @ self.directions.U.T

    def decide(self, point: Point | None = None) -> FloatArray:
        """Return the scores of all points, by default at level 0.

        There is one column for each class; for two classes one number for each point.
        """
        level = 0.0 if point is None else float(point.level)
        return self.directions.decide(self.curve.weights(level), level)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random connected graph, two or three classes and some points without label."""
        W, labels = sample_graph(rng, size)
        return cls(np.diag(W.sum(axis=0)) - W, labels)

    examples = (
        Example(
            "iris",
            lambda d: SpectralAlignment(d.laplacian, d.classes),
            demo=(150,),
            full=(90, 120, 150),
        ),
    )


def _recover(x: FloatArray, y: FloatArray | None) -> Point:
    return Point({"level": x[0]})
