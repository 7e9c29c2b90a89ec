"""SCG-LDK: a kernel near a given one in LogDet divergence that is smooth on a supervised graph.

    minimise over K   D(K, K0) + gamma tr(K S),   D(K, K0) = tr(K K0^-1) - log det(K K0^-1) - n

((27) of Pan et al. (2016)). S is the Laplacian of the supervised complete graph
(`klopt.kernels.side_information`). The solution

    K = (K0^-1 + gamma S)^-1 = K0 (I + gamma S K0)^-1                                      (29)

has the value log det(I + gamma S K0), but is never computed as printed: K0 is nearly singular as a
rule, and the inverse of an inverse is then wrong in every digit. Without that inverse K0 may be
singular: D is infinite unless K has the range of K0, and there (29) is the limit of K0 + e I, e ->
0. Two ways lead to K,

    by groups     S = I - U R U', few columns    n^3 flops, no S
    by features   K0 = Phi Phi', any S           n r^2 flops, no n x n

and weak duality proves either: log det(I + gamma S K0) is computed apart from K, and no kernel
falls below it (`klopt.problems._scg.proof`).

(10) of Pan et al. (2016) equates the scg-loss with tr(KS); it is twice that, so that gamma here is
twice the weight of the loss. D^1/2 1 is in the kernel of S: S is never definite, as they say it is,
and a large gamma leaves a kernel of rank one.

Pan, Chen, Chen, Xu (2016), Efficient learning of supervised kernels with a graph-based loss
function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, cast

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, matrix, positive, require_memory
from klopt.errors import NotCertified
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.kernels.out_of_sample import ExtendedFeatures, ExtendedKernel
from klopt.kernels.side_information import SideGraph, SideLike, side_graph
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, ExplicitForm
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.numerics.householder import householder
from klopt.problems._logdet.exact_claim import MAX_ORDER
from klopt.problems._scg.data import (
    given_kernel,
    laplacian_of,
)
from klopt.problems._scg.exact_claim import scg_claim
from klopt.problems._scg.forms import core_of_program, log_det_program
from klopt.problems._scg.function import (
    feature_kernel,
    feature_products,
    group_change,
    group_kernel,
    group_products,
    solution_change,
)
from klopt.problems._scg.gamma_path import GammaPath
from klopt.problems._scg.proof import (
    BandKernel,
    FeatureObjective,
    GroupObjective,
    LowRankLaplacian,
    ShiftedInverse,
    factored_objective,
)
from klopt.witness.exact_claims import ExactClaim

__all__ = ["ScgLogDet"]

MIN_POINTS_PER_GROUP = 4
"""Groups pay while there is one for this many points or more."""
SMALL_KERNEL_SIZE = 64
"""For this many points or fewer groups always pay."""
MAX_PROGRAM_ORDER = 100
"""The largest order of a cone program that is offered."""


@attrs.frozen(eq=False, slots=False, init=False)
class ScgLogDet(Problem):
    """Learn a kernel near K0 that is smooth on the graph of what is known of pairs of points.

    Solutions hold a small array, `change` or `core`; `kernel` forms K, `apply` multiplies by it,
    `extend` makes it a function.

    Parameters
    ----------
    K0 : (n, n) matrix, Gram or LowRank
        A kernel matrix, or features of low rank (`klopt.kernels.nystroem`) for as many points as
        they fit for.
    side : (n,) array, (n, n) matrix or pair of lists
        Class labels (-1: unlabelled), a matrix T, or a tuple of two lists of pairs (similar,
        dissimilar); kept as the graph they make, whose stored arrays define S. A point that they
        speak of is similar to itself, T_ii = 1, in all three; for T_ii = 0, which (7) of the paper
        has, give `side_graph(side, n, self_similar=False)` of `klopt.kernels.side_information`.
    gamma : float
        The weight of the graph: small stays near K0, large leaves a kernel of rank one.

    References
    ----------
    Pan et al. (2016). Efficient learning of supervised kernels with a graph-based loss
    function.

    Examples
    --------
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
        data=(
            "S is the Laplacian as stored; a K0 that is indefinite by rounding stands for its "
            "positive part."
        ),
        area="Kernel learning",
    )
    references = ("pan2016",)
    has_optimum = True

    K0: Gram | LowRank
    side: SideGraph
    gamma: float

    def __init__(
        self, K0: Gram | LowRank | MatrixLike, side: SideGraph | SideLike, gamma: float
    ) -> None:
        kernel = given_kernel(K0)
        weight = positive("gamma", gamma)
        self.__attrs_init__(kernel, side_graph(side, kernel.size), weight)

    def describe(self) -> str:
        """Return the sizes and gamma."""
        rank = f", rank {self.K0.rank}" if isinstance(self.K0, LowRank) else ""
        return f"ScgLogDet({self.K0.size} points{rank}, gamma = {self.gamma:g})"

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the closed forms that suit the data, and for small kernels the cone program."""
        found = []
        if self._grouped:
            found.append(self._by_groups())
        found.append(self._by_features())
        order = self.K0.rank if isinstance(self.K0, LowRank) else self.K0.size
        if order <= MAX_PROGRAM_ORDER:
            found.append(self._by_program())
        return tuple(found)

    def _by_groups(self) -> Formulation:
        form = ExplicitForm(self._best_change)
        woodbury = "S = I - U R U': the inverse of I + gamma K0 is corrected by few columns"
        return Formulation("by groups", form.needs, lambda: form, self._to_change, because=woodbury)

    def _by_features(self) -> Formulation:
        form = ExplicitForm(self._best_core)
        stationary = "tr(AM) - log det(AM) >= r, with equality at M = A^-1"
        return Formulation(
            "by features", form.needs, lambda: form, self._to_core, because=stationary
        )

    def _by_program(self) -> Formulation:
        return Formulation(
            "log det program",
            frozenset({Feature.CONE, Feature.PSD, Feature.EXP}),
            self._program,
            self._from_program,
            because="log det M is the largest sum of log Z_ii with M >= Z diag(Z)^-1 Z'",
            shift=-float(len(self._features.A)),
        )

    def _best_change(self) -> tuple[FloatArray, None]:
        return self._group.minimiser().ravel(), None

    def _best_core(self) -> tuple[FloatArray, None]:
        return self._features.minimiser().ravel(), None

    def _program(self) -> ConeForm:
        return log_det_program(self._features.A)

    def _to_change(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"change": _square(x)})

    def _to_core(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({"core": _square(x)})

    def _from_program(self, x: FloatArray, y: FloatArray | None) -> Point:
        return core_of_program(x, len(self._features.A))

    @cached_property
    def _laplacian(self) -> LowRankLaplacian | FloatArray:
        return laplacian_of(self.side)

    @cached_property
    def _grouped(self) -> bool:
        """Whether groups beat features: few columns, and K0 of full rank."""
        if not isinstance(self._laplacian, LowRankLaplacian):
            return False
        groups = len(self._laplacian.R)
        n = self.K0.size
        few = n <= SMALL_KERNEL_SIZE or MIN_POINTS_PER_GROUP * groups <= n
        return few and isinstance(self.K0, Gram) and not self.K0.thin

    @cached_property
    def _inverse(self) -> ShiftedInverse:
        return ShiftedInverse.of(cast(Gram, self.K0), self.gamma)

    @cached_property
    def _direct(self) -> GroupObjective:
        return self._inverse.objective(cast(LowRankLaplacian, self._laplacian))

    @cached_property
    def _shared(self) -> GroupObjective | None:
        """The objective that `path` puts in, by a form of K0 that serves other gammas too."""
        return None

    @property
    def _group(self) -> GroupObjective:
        """The objective by groups."""
        return self._direct if self._shared is None else self._shared

    @cached_property
    def _features(self) -> FeatureObjective:
        if isinstance(self.K0, LowRank):
            return FeatureObjective.of_features(self.K0.Phi, self._laplacian, self.gamma)
        return FeatureObjective.of_matrix(self.K0, self._laplacian, self.gamma)

    def witness(self, point: Point) -> Point:
        """Return the small array of a kernel that is positive definite."""
        if "change" in point.primal:
            return Point({"change": self._group.witness(point.change)})
        return Point({"core": np.nan_to_num(point.core)})

    def proof(self, witness: Point) -> Bracket:
        """Return the bounds that log det(I + gamma S K0) and the objective of a kernel prove."""
        if "change" in witness.primal:
            return self._group.proof(witness.change)
        return self._features.proof(witness.core)

    def sharper_bracket(self, bracket: Bracket) -> Bracket:
        """Return the bracket by a Cholesky factor of this gamma alone, where a path made the first."""
        if self._shared is None or "change" not in bracket.point.primal:
            return bracket
        laplacian = cast(LowRankLaplacian, self._laplacian)
        alone = factored_objective(cast(Gram, self.K0), self.gamma, laplacian)
        found = alone.bracket(bracket.point.change)
        return found if found.gap < bracket.gap else bracket

    def bracket(self, point: Point) -> Bracket:
        """Return the dual value log det(I + gamma S K0) and the objective of the kernel."""
        return self.proof(self.witness(point))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the log det program of the stored Laplacian; its best kernel has a closed form."""
        order = self.K0.rank if isinstance(self.K0, LowRank) else self.K0.size
        if order > MAX_ORDER:
            raise NotCertified(
                f"log det certificates are of at most {MAX_ORDER} points or features, not {order}"
            )
        return scg_claim(self.K0, self._laplacian, self.gamma)

    def kernel(self, point: Point) -> FloatArray:
        """Return K on the training points."""
        require_memory(8.0 * self.K0.size**2, f"the kernel of {self.K0.size} points")
        if "change" in point.primal:
            return group_kernel(self._inverse, self._direct, point.change)
        return feature_kernel(self._features.Phi, point.core)

    def apply(self, point: Point, C: npt.ArrayLike) -> FloatArray:
        """Return K C for a vector or the columns of a matrix; K is not formed."""
        given = np.asarray(C, dtype=float)
        columns = matrix("C", given[:, None] if given.ndim == 1 else given, (self.K0.size, None))
        if "change" in point.primal:
            product = group_products(self._inverse, self._direct, point.change, columns)
        else:
            product = feature_products(self._features.Phi, point.core, columns)
        return product.reshape(given.shape)

    def extend(self, point: Point) -> ExtendedKernel | ExtendedFeatures:
        """Return K as a function of any points.

        For a K0 of low rank it is one of their features, else one of k0 on them. The latter needs Q
        = -gamma (I + gamma S K0)^-1 S, which is that of the solution.
        """
        if isinstance(self.K0, LowRank):
            return ExtendedFeatures(point.core)
        K0 = self.K0.matrix
        if "change" in point.primal:
            return ExtendedKernel(K0, group_change(self._inverse, self._direct, point.change))
        return ExtendedKernel(K0, solution_change(K0, self.side, self.gamma))

    def path(self, gammas: Sequence[float]) -> GammaPath[Self]:
        """Return the problems of several gammas, which share all that does not depend on gamma."""
        problems = tuple(attrs.evolve(self, gamma=gamma) for gamma in gammas)
        # What a cached property would compute from scratch.
        objectives: tuple[GroupObjective | FeatureObjective, ...]
        if not self._grouped:
            for problem in problems:
                vars(problem)["_features"] = replace(self._features, gamma=problem.gamma)
            objectives = tuple(problem._features for problem in problems)
            return GammaPath(problems, objectives, ())
        laplacian = cast(LowRankLaplacian, self._laplacian)
        kernel = BandKernel.of(cast(Gram, self.K0), laplacian, householder)
        bands = tuple(kernel.form.factor(problem.gamma) for problem in problems)
        groups = kernel.objectives(bands)
        for problem, objective in zip(problems, groups, strict=True):
            vars(problem)["_shared"] = objective
        return GammaPath(problems, groups, bands)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a kernel of random features, and labels, pairs or a matrix T.

        For even sizes there are fewer features than points.
        """
        n = max(size, 3)
        features = n if size % 2 else n - 1
        F = rng.normal(size=(n, features)) / np.sqrt(n)
        labels = np.append(rng.permutation(np.arange(n - 1) % 2), -1)
        pairs = ([(0, 1)], [(1, 2)])
        T = np.where(labels[:, None] == labels, 0.5, -0.5)
        side: Any = (labels, pairs, T)[size % 3]
        return cls(F @ F.T, side, gamma=1.5)

    examples = (
        Example(
            "iris",
            lambda data: ScgLogDet(data.kernel(), data.classes, 1.0),
            demo=(20,),
            full=(50, 100, 150),
        ),
    )


def _square(x: FloatArray) -> FloatArray:
    order = int(np.sqrt(x.size) + 0.5)
    return x.reshape(order, order)
