"""SKL: the kernel on a graph that is best for regularised least squares and smooth on the graph.

    minimise over K >= 0   tr Y'(K_JJ + I/C)^-1 Y / 2 + mu tr(K (L + ridge I))

Y holds the targets of the labelled points (-1 and +1 for two classes, indicators for more). The
basis is what K may be:

    "spectral"   K commutes with L, and Y is 0 on the unlabelled points    (8) of [1]: lam = [(A / 2 mu B)^1/2 - 1/C]_+
    "padded"     any K, and Y is 0 on the unlabelled points                (7)
    "labelled"   any K, and J are the labelled points only                 (6)

The first has a closed form for each eigenspace (`klopt.problems._spectral.function`), the others
for the whole kernel, which has the rank of Y (`klopt.problems._spectral.free_kernel`). The optimal
values fall from the first to the last: (7) bounds (6) from above (Proposition 1), and to let K out
of the spectral family can only help.

L is singular, and on its null space a kernel costs nothing, so that without a ridge there is no
best K. A ridge of 0.01 to 0.001 suits normalised Laplacians.

[1] Mao, Tsang, Parameter-free spectral kernel learning, 2010, (6), (7), (8).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klopt.arrays import FloatArray, MatrixLike, SparseMatrix, csc, freeze, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._spectral.eigenspaces import Directions, check_graph, targets
from klopt.problems._spectral.free_kernel import FreeKernel
from klopt.problems._spectral.function import SpectralFamily

__all__ = ["SpectralRls"]

Basis = Literal["spectral", "padded", "labelled"]


@dataclass(frozen=True, eq=False)
class SpectralRls(Problem):
    """Learn a kernel from a graph Laplacian and some labels (0, 1, 2, .. or -1 for unlabelled).

    C is the penalty of an error, `mu` that of a kernel that is rough on the graph; `ridge` is added
    to the Laplacian, whose smallest eigenvalue is 0. `basis` is what the kernel may be: "spectral"
    (commutes with the Laplacian), "padded" (any, targets 0 where there is no label) or "labelled"
    (any, fitted to the labelled points only). Solutions have the array `spectrum`, the eigenvalues
    of K along `directions`, for the spectral basis and `factor`, F with K = FF', for the others.
    `rank` keeps the smoothest eigenvectors only (spectral basis).

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
        weights="spectrum",
    )
    references = ("mao2010",)
    examples = (
        Example(
            "wine",
            lambda d: SpectralRls(d.laplacian, d.classes, 1.0, 0.1),
            demo=(150,),
            full=(90, 130, 178),
        ),
    )

    laplacian: SparseMatrix
    labels: npt.NDArray[np.int64]
    C: float
    mu: float
    basis: Basis = "spectral"
    ridge: float = 1e-2
    rank: int | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            laplacian: MatrixLike,
            labels: npt.ArrayLike,
            C: float,
            mu: float,
            basis: Basis = "spectral",
            ridge: float = 1e-2,
            rank: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        L, labels, ridge = check_graph(self.laplacian, self.labels, self.ridge)
        for name, value in (("laplacian", L), ("labels", freeze(labels)), ("ridge", ridge)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "C", positive("C", self.C))
        object.__setattr__(self, "mu", positive("mu", self.mu))
        if self.basis not in get_args(Basis):
            raise InvalidProblem(
                f"basis is {self.basis!r}; expected one of {', '.join(get_args(Basis))}"
            )
        if self.rank is not None and self.basis != "spectral":
            raise InvalidProblem(
                f"rank is {self.rank} but basis {self.basis!r} uses no eigenvectors; leave it out"
            )
        self.model  # noqa: B018 - a Laplacian that is singular even with its ridge is refused now

    @cached_property
    def directions(self) -> Directions:
        """What the labelled points see of the eigenspaces of the Laplacian."""
        return Directions.of(self.laplacian, self.labels, self.ridge, self.rank)

    @cached_property
    def model(self) -> SpectralFamily | FreeKernel:
        """The problem over the kernels that the basis allows."""
        if self.basis == "spectral":
            return SpectralFamily(self.directions, self.C, self.mu)
        n = self.labels.size
        points, Y = targets(self.labels)
        if self.basis == "padded":
            padded = np.zeros((n, Y.shape[1]))
            padded[points] = Y
            points, Y = np.arange(n), padded
        L = csc("L", self.laplacian + self.ridge * sparse.eye_array(n))
        model = FreeKernel(L, points, Y, self.C, self.mu)
        model.R  # noqa: B018 - refuses a singular Laplacian
        return model

    def describe(self) -> str:
        """Return the sizes and the basis."""
        known = int((self.labels >= 0).sum())
        return f"SpectralRls({known} of {self.labels.size} points labelled, {self.basis} basis)"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed form and the cone program that it saves."""
        return self.model.formulations()

    def bracket(self, point: Point) -> Bracket:
        """Return the value of the nearest kernel and a dual value."""
        return self.model.bracket(point)

    def kernel(self, point: Point) -> FloatArray:
        """Return K on all points."""
        require_memory(8.0 * self.labels.size**2, f"the kernel of {self.labels.size} points")
        return self.model.kernel(point)

    def decide(self, point: Point) -> FloatArray:
        """Return K_:l (K_ll + I/C)^-1 Y_l, the decision values of all points, without forming K.

        One column a class; for two classes one number a point, whose sign is the class.
        """
        if isinstance(self.model, SpectralFamily):
            return self.model.decide(point)
        return self.model.decide(point, np.flatnonzero(self.labels >= 0))

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a random connected graph, two or three classes and some points without label."""
        n = max(size, 4)
        W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1) + np.eye(n, k=1)
        W += W.T
        roots = 1 / np.sqrt(W.sum(axis=0))
        labels = np.concatenate([np.arange(n - 1) % (2 + size % 2), [-1]])
        basis: Basis = "labelled" if size % 2 else "spectral"
        return cls(
            np.eye(n) - W * np.outer(roots, roots), labels, C=2.0, mu=0.1, basis=basis, ridge=0.1
        )
