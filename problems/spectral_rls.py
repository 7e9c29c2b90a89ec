"""SKL: the kernel on a graph that is best for regularised least squares and smooth on the graph.

    minimise over K >= 0   tr Y'(K_JJ + I/C)^-1 Y / 2 + mu tr(K (L + ridge I))

Y holds the targets of the labelled points (-1 and +1 for two classes, indicators for more). The
basis is what K may be:

    "spectral"   K commutes with L, and Y is 0 on the unlabelled points    (8)
    "padded"     any K, and Y is 0 on the unlabelled points                (7)
    "labelled"   any K, and J are the labelled points only                 (6)

The first has a closed form for each eigenspace, lam = [(A / 2 mu B)^1/2 - 1/C]_+, the others for
the whole kernel, which has the rank of Y (`klopt.problems._spectral.forms`). The optimal values
fall from the first to the last: (7) bounds (6) from above (Proposition 1), and to let K out of the
spectral family can only help.

L is singular, and on its null space a kernel costs nothing, so that without a ridge there is no
best K. A ridge of 0.01 to 0.001 suits normalised Laplacians.

Mao, Tsang (2010), Parameter-free spectral kernel learning, (6), (7), (8).
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self, get_args

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, SparseMatrix, csc, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._spectral.data import (
    Directions,
    as_class_labels,
    as_laplacian,
    as_ridge,
    decide_by_factor,
    require_classes,
    sample_graph,
    targets,
)
from klopt.problems._spectral.exact_claim import commuting_claim, free_claim
from klopt.problems._spectral.forms import FreeKernelForms, SpectralKernelForms
from klopt.problems._spectral.witness import FreeLeastSquares, SpectralLeastSquares
from klopt.witness.exact_claims import ExactClaim

__all__ = ["SpectralRls"]

Basis = Literal["spectral", "padded", "labelled"]


def _as_C(value: float) -> float:
    return positive("C", value)


def _as_mu(value: float) -> float:
    return positive("mu", value)


@attrs.frozen(eq=False, slots=False)
class SpectralRls(Problem):
    """Learn a kernel from a graph Laplacian and some labels.

    Solutions have the array `spectrum`, the eigenvalues of K along `directions`, for the spectral
    basis and `factor`, F with K = FF', for the others.

    For the spectral basis the data are the directions as computed from the Laplacian (their
    strengths A and roughnesses B in `directions`): the bounds are about these numbers. For the
    others the data are the Laplacian itself, the ridge and the labels.

    Parameters
    ----------
    laplacian : (n, n) matrix
        The graph Laplacian.
    labels : (n,) array
        Classes 0, 1, 2, .., -1 for unlabelled points.
    C : float
        Penalty of errors.
    mu : float
        Penalty of a kernel that is rough on the graph.
    basis : "spectral", "padded" or "labelled"
        What the kernel may be: commuting with the Laplacian, any with targets 0 where there is no
        label, or any fitted to the labelled points only.
    ridge : float
        Added to the Laplacian, whose smallest eigenvalue is 0.
    rank : int or None
        Number of the smoothest eigenvectors that are kept (spectral basis), None for all.

    References
    ----------
    Mao and Tsang (2010). Parameter-Free Spectral Kernel Learning.

    Examples
    --------
    >>> path = [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    >>> problem = SpectralRls(path, labels=[0, -1, 1], C=1.0, mu=0.25, ridge=0.5)
    >>> problem.directions.A.round(6), problem.directions.B.round(6)
    (array([0., 2., 0.]), array([0.5, 1.5, 3.5]))
    >>> bracket = problem.bracket(Point({"spectrum": [0.0, 1.632993162 - 1.0, 0.0]}))
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (0.849745, 0.849745)
    """

    statement = Statement(
        r"\min_{K\succeq 0}\; \tfrac12\,\mathrm{tr}\,Y^\top(K_{JJ}+I/C)^{-1}Y+\mu\,"
        r"\mathrm{tr}\,K(L+\epsilon I)",
        words="K commutes with L, or is any kernel, as the basis says.",
        data=(
            "In the spectral basis the eigenvectors and eigenvalues of L, as computed, are the data."
        ),
        weights="spectrum",
        area="Kernel learning",
    )
    references = ("mao2010",)
    has_optimum = True

    laplacian: SparseMatrix = attrs.field(converter=as_laplacian)
    labels: npt.NDArray[np.int64] = attrs.field(converter=as_class_labels)
    C: float = attrs.field(converter=_as_C)
    mu: float = attrs.field(converter=_as_mu)
    basis: Basis = "spectral"
    ridge: float = attrs.field(default=1e-2, converter=as_ridge)
    rank: int | None = None

    def __attrs_post_init__(self) -> None:
        require_classes(self.labels, self.laplacian)
        if self.basis not in get_args(Basis):
            raise InvalidProblem(
                f"basis is {self.basis!r}; expected one of {', '.join(get_args(Basis))}"
            )
        if self.rank is not None and self.basis != "spectral":
            raise InvalidProblem(
                f"rank is {self.rank} but basis {self.basis!r} uses no eigenvectors; leave it out"
            )
        self.least_squares  # noqa: B018 - a Laplacian that is singular even with its ridge is refused now

    @cached_property
    def directions(self) -> Directions:
        """What the labelled points see of the eigenspaces of the Laplacian."""
        return Directions.of(self.laplacian, self.labels, self.ridge, self.rank)

    @cached_property
    def least_squares(self) -> SpectralLeastSquares | FreeLeastSquares:
        """The data of the problem over the kernels that the basis allows, and its bounds."""
        if self.basis == "spectral":
            d = self.directions
            complete = self.rank is None or self.rank >= self.labels.size
            return SpectralLeastSquares(d.A, d.B, d.Y, self.C, self.mu, complete)
        n = self.labels.size
        points, Y = targets(self.labels)
        if self.basis == "padded":
            padded = np.zeros((n, Y.shape[1]))
            padded[points] = Y
            points = np.arange(n)
            Y = padded
        L = csc("L", self.laplacian + self.ridge * sparse.eye_array(n))
        least_squares = FreeLeastSquares(L, points, Y, self.C, self.mu, self.ridge)
        least_squares.R  # noqa: B018 - refuses a singular Laplacian
        return least_squares

    @cached_property
    def forms(self) -> SpectralKernelForms | FreeKernelForms:
        """The equivalent forms, which keep what they have computed."""
        if isinstance(self.least_squares, SpectralLeastSquares):
            return SpectralKernelForms(self.least_squares)
        return FreeKernelForms(self.least_squares)

    def describe(self) -> str:
        """Return the sizes and the basis."""
        known = int((self.labels >= 0).sum())
        return f"SpectralRls({known} of {self.labels.size} points labelled, {self.basis} basis)"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form and the cone program that it saves."""
        return self.forms.formulations()

    def bracket(self, point: Point) -> Bracket:
        """Return the value of the nearest kernel and a dual value."""
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the cone program of a spectrum, or the saddle program of any kernel."""
        if isinstance(self.least_squares, SpectralLeastSquares):
            return commuting_claim(self.least_squares, point)
        return free_claim(self.least_squares, self.laplacian, self.ridge, point)

    def witness(self, point: Point) -> Point:
        """Return the nearest kernel with what proves its value and the dual value."""
        return self.least_squares.witness(point)

    def proof(self, witness: Point) -> Bracket:
        """Return what the arrays of a witness prove in exact arithmetic."""
        return self.least_squares.proof(witness)

    def kernel(self, point: Point) -> FloatArray:
        """Return K on all points: U diag(lam) U' or FF'."""
        require_memory(8.0 * self.labels.size**2, f"the kernel of {self.labels.size} points")
        if self.basis == "spectral":
            return (self.directions.U * point.spectrum) @ self.directions.U.T
        return point.factor @ point.factor.T

    def decide(self, point: Point) -> FloatArray:
        """Return K_:l (K_ll + I/C)^-1 Y_l, the decision values of all points, without forming K.

        There is one column for each class; for two classes one number for each point, whose sign
        is the class.
        """
        if self.basis == "spectral":
            return self.directions.decide(point.spectrum, 1 / self.C)
        return decide_by_factor(point.factor, self.labels, self.C)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random connected graph, two or three classes and some points without label."""
        W, labels = sample_graph(rng, size)
        roots = 1 / np.sqrt(W.sum(axis=0))
        L = np.eye(len(W)) - W * np.outer(roots, roots)
        basis: Basis = "labelled" if size % 2 else "spectral"
        return cls(L, labels, C=2.0, mu=0.1, basis=basis, ridge=0.1)

    examples = (
        Example(
            "wine",
            lambda d: SpectralRls(d.laplacian, d.classes, 1.0, 0.1),
            demo=(150,),
            full=(90, 130, 178),
        ),
    )
