"""SCG-LDK: a kernel near a given one in LogDet divergence that is smooth on the graph of what is known of pairs.

    minimise over K   D(K, K0) + gamma tr(K S),   D(K, K0) = tr(K K0^-1) - log det(K K0^-1) - n          (27) of [1]

S is the Laplacian of the supervised complete graph (`klopt.kernels.side_information`). The solution

    K = (K0^-1 + gamma S)^-1 = K0 (I + gamma S K0)^-1                                                          (29)

has the value log det(I + gamma S K0), but is never computed as printed: K0 is nearly singular as a rule, and the
inverse of an inverse is then wrong in every digit. Without that inverse K0 may be singular: D is infinite unless K has
the range of K0, and there (29) is the limit of K0 + e I, e -> 0. Two ways lead to K,

    by groups     S = I - U R U', few columns    n^3 flops, no S           `klopt.problems._scg.group`
    by features   K0 = Phi Phi', any S           n r^2 flops, no n x n     `klopt.problems._scg.features`

and weak duality proves either: log det(I + gamma S K0) is computed apart from K, and no kernel
falls below it.

(10) of [1] equates the scg-loss with tr(KS); it is twice that, so that gamma here is twice the
weight of the loss. D^1/2 1 is in the kernel of S: S is never definite, as [1] says it is, and a
large gamma leaves a kernel of rank one.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function,
2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, matrix, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import SupervisedGraph
from klopt.kernels.nystroem import LowRank
from klopt.kernels.out_of_sample import ExtendedFeatures, ExtendedKernel
from klopt.kernels.side_information import DenseGraph, PairGraph, SideGraph, SideLike, side_graph
from klopt.model.cones import Feature
from klopt.model.forms import ExplicitForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.problems._scg.features import FactorModel, change_of
from klopt.problems._scg.group import GroupModel, Inverse
from klopt.problems._scg.path import GammaPath, Tridiagonal
from klopt.problems._scg.split import Split, split

__all__ = ["ScgLogDet"]

FEW = 4
"""Groups pay while there is one for this many points or more."""
PROGRAM = 100
"""The largest order of a cone program that is offered."""


@dataclass(frozen=True, eq=False)
class ScgLogDet(Problem):
    """Learn a kernel near K0 from class labels (-1: unlabelled), a matrix T, or two lists of pairs, for any gamma > 0.

    K0 is a kernel matrix, or features of low rank (`klopt.kernels.nystroem`) for as many points as
    they fit for. `gamma` is the weight of what is known of pairs: small stays near K0, large leaves
    a kernel of rank one. Solutions hold a small array, `change` or `core`; `kernel` forms K,
    `apply` multiplies by it, `extend` makes it a function.

    >>> problem = ScgLogDet(np.eye(3), side=[0, 0, 1], gamma=2.0)
    >>> H = problem.formulations()[0].build().rule()[0]
    >>> problem.kernel(Point({"change": H.reshape(2, 2)})).round(3)
    array([[0.626, 0.293, 0.106],
           [0.293, 0.626, 0.106],
           [0.106, 0.106, 0.726]])
    """

    statement = Statement(
        r"\min_{K}\; D(K,K_0)+\gamma\,\mathrm{tr}(KS),\qquad D(K,"
        r"K_0)=\mathrm{tr}(KK_0^{-1})-\log\det(KK_0^{-1})-n",
        words="S is the Laplacian of the supervised graph.",
    )
    references = ("pan2016",)
    examples = (
        Example(
            "iris", lambda d: ScgLogDet(d.kernel(), d.classes, 1.0), demo=(20,), full=(50, 100, 150)
        ),
    )

    K0: Gram | LowRank
    side: SideGraph
    """The graph of what was given."""
    gamma: float

    if TYPE_CHECKING:

        def __init__(
            self, K0: Gram | LowRank | MatrixLike, side: SideGraph | SideLike, gamma: float
        ) -> None: ...

    def __post_init__(self) -> None:
        K0 = self.K0 if isinstance(self.K0, LowRank) else Gram.of(self.K0, "K0")
        if isinstance(K0, Gram) and not K0.matrix.any():
            raise InvalidProblem("K0 has no entry but 0; there is no kernel near it but 0")
        object.__setattr__(self, "K0", K0)
        object.__setattr__(self, "gamma", positive("gamma", self.gamma))
        side: object = self.side
        graph = (
            side
            if isinstance(side, SupervisedGraph | PairGraph | DenseGraph)
            else side_graph(side, K0.size)
        )
        object.__setattr__(self, "side", graph)
        about = len(graph.S) if isinstance(graph, DenseGraph) else graph.degrees.size
        if about != K0.size:
            raise InvalidProblem(f"side is about {about} points; K0 has {K0.size}")

    def describe(self) -> str:
        """Return the sizes and gamma."""
        rank = f", rank {self.K0.rank}" if isinstance(self.K0, LowRank) else ""
        return f"ScgLogDet({self.K0.size} points{rank}, gamma = {self.gamma:g})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed forms that suit the data, and for small kernels the cone program that they save."""
        groups, features, found = ExplicitForm(self._best_change), ExplicitForm(self._best_core), []
        if self._grouped:
            woodbury = "S = I - U R U': the inverse of I + gamma K0 is corrected by few columns"
            found.append(
                Formulation(
                    "by groups", groups.needs, lambda: groups, self._to_change, because=woodbury
                )
            )
        stationary = "tr(AM) - log det(AM) >= r, with equality at M = A^-1"
        found.append(
            Formulation(
                "by features", features.needs, lambda: features, self._to_core, because=stationary
            )
        )
        if (self.K0.rank if isinstance(self.K0, LowRank) else self.K0.size) <= PROGRAM:
            cones = frozenset({Feature.CONE, Feature.PSD, Feature.EXP})
            log = "log det M is the largest sum of log Z_ii with M >= Z diag(Z)^-1 Z'"
            program, rank = self._features, len(self._features.B)
            form = (program.cone_program, program.from_cone)
            found.append(
                Formulation("log det program", cones, *form, because=log, shift=-float(rank))
            )
        return tuple(found)

    def bracket(self, point: Point) -> Bracket:
        """Return the objective of the kernel and the dual value log det(I + gamma S K0)."""
        if "change" in point.primal:
            return self._group.bracket(point.change)
        return self._features.bracket(point.core)

    def kernel(self, point: Point) -> FloatArray:
        """Return K on the training points."""
        require_memory(8.0 * self.K0.size**2, f"the kernel of {self.K0.size} points")
        if "change" in point.primal:
            return self._inverse.kernel(self._direct, point.change)
        return self._features.kernel(point.core)

    def apply(self, point: Point, C: npt.ArrayLike) -> FloatArray:
        """Return K C for a vector or the columns of a matrix; K is not formed."""
        given = np.asarray(C, dtype=float)
        columns = matrix("C", given[:, None] if given.ndim == 1 else given, (self.K0.size, None))
        if "change" in point.primal:
            M = self._inverse.K0 @ (self._inverse.X @ columns)
            B, H = self._direct.B, self.gamma * point.change
            found = M + B @ (H @ (B.T @ columns))
        else:
            Phi = self._features.Phi
            found = Phi @ (point.core @ (point.core.T @ (Phi.T @ columns)))
        return cast(FloatArray, found.reshape(given.shape))

    def extend(self, point: Point) -> ExtendedKernel | ExtendedFeatures:
        """Return K as a function of any points: of their features for a K0 of low rank, else of k0 on them.

        The latter needs Q = -gamma (I + gamma S K0)^-1 S, which is that of the solution.
        """
        if isinstance(self.K0, LowRank):
            return ExtendedFeatures(point.core)
        K0 = self.K0.matrix
        if "change" in point.primal:
            return ExtendedKernel(K0, self._inverse.change(self._direct, point.change))
        return ExtendedKernel(K0, change_of(K0, self.side, self.gamma))

    def path(self, gammas: Sequence[float]) -> GammaPath[Self]:
        """Return the problems of several gammas, which share all that does not depend on gamma."""
        problems = tuple(replace(self, gamma=gamma) for gamma in gammas)
        reduced = (
            Tridiagonal.of(cast(Gram, self.K0), cast(Split, self._parts)) if self._grouped else None
        )
        model = partial(replace, self._features) if reduced is None else reduced.model
        models = tuple(model(gamma=problem.gamma) for problem in problems)
        for problem, shared in zip(
            problems, models, strict=True
        ):  # what a cached property would compute from scratch
            vars(problem)["_features" if reduced is None else "_group"] = shared
        return GammaPath(problems, models, reduced)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a kernel of random features, fewer than points at times, and labels, pairs or a matrix T."""
        n = max(size, 3)
        F = rng.normal(size=(n, n if size % 2 else n - 1)) / np.sqrt(n)
        labels = np.append(rng.permutation(np.arange(n - 1) % 2), -1)
        T = np.where(labels[:, None] == labels, 0.5, -0.5)
        side: Any = (labels, ([(0, 1)], [(1, 2)]), T)[size % 3]
        return cls(F @ F.T, side, gamma=1.5)

    @cached_property
    def _parts(self) -> Split | None:
        return split(self.side)

    @cached_property
    def _grouped(self) -> bool:
        """Whether groups beat features: few columns, and K0 of full rank."""
        few = self._parts is not None and (
            self.K0.size <= 64 or FEW * len(self._parts.R) <= self.K0.size
        )
        return few and isinstance(self.K0, Gram) and not self.K0.thin

    @cached_property
    def _inverse(self) -> Inverse:
        return Inverse.of(cast(Gram, self.K0), self.gamma)

    @cached_property
    def _direct(self) -> GroupModel:
        return self._inverse.model(cast(Split, self._parts))

    @cached_property
    def _group(self) -> GroupModel:
        return self._direct

    @cached_property
    def _features(self) -> FactorModel:
        return FactorModel.of(self.K0, self.side, self.gamma)

    def _best_change(self) -> tuple[FloatArray, None]:
        return self._group.closed_form().ravel(), None

    def _best_core(self) -> tuple[FloatArray, None]:
        return self._features.closed_form().ravel(), None

    def _to_change(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"change": _square(x)})

    def _to_core(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"core": _square(x)})


def _square(x: FloatArray) -> FloatArray:
    order = int(np.sqrt(x.size) + 0.5)
    return x.reshape(order, order)
