"""LDK: the kernel nearest to a given one in LogDet divergence that keeps similar points near and dissimilar ones apart.

    minimise over K   D(K, K0) = tr(K K0^-1) - log det(K K0^-1) - n                                        (4) of [1]
    subject to        d_K(i, j) <= upper   for similar pairs,      d_K(i, j) >= lower   for dissimilar pairs

d_K(i, j) = K_ii + K_jj - 2 K_ij. With `slack` the bounds may move to u_c times themselves at the
price slack times sum_c (u_c - log u_c - 1), as in [2].

Only the points that occur in pairs count. With J those points and K0_JJ = R'R, R of r rows, K_JJ =
R'WR and the other points follow: D(K, K0) = D(K_JJ, K0_JJ) = tr W - log det W - r, and what W does
to the features of J it does to those of any point (`klopt.problems._logdet.extension`). K0 may be
singular: kernels that do not have its range are infinitely far away. The dual has one variable a
pair but needs only m x m matrices (`klopt.problems._logdet.function`); it is solved by Newton's
method among the pairs that are tight, or by Bregman's projections. Contradictory pairs are proven
to be so by the triangle, or the longer way, that is violated (`klopt.problems._logdet.proof`).
Dissimilar points that K0 cannot tell apart are so even with slack: the price of u = 0 is infinite.

[1] Pan, Chen, Chen, Xu, Efficient learning of supervised kernels with a graph-based loss function, 2016.
[2] Davis, Kulis, Jain, Sra, Dhillon, Information-theoretic metric learning, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray, MatrixLike, positive, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank, Nystrom
from klopt.kernels.out_of_sample import ExtendedFeatures
from klopt.model.cones import Feature
from klopt.model.forms import SimplexForm, Start
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import BoxPlane
from klopt.problems._logdet.data import equal_points
from klopt.problems._logdet.extension import FactoredKernel
from klopt.problems._logdet.forms import cone_program
from klopt.problems._logdet.function import LogDetDual
from klopt.problems._logdet.pair_bounds import IntArray, bounds, pair_list

__all__ = ["LogDetPairs"]

PROGRAM, ROWS = 60, 2000
"""The largest order and number of pairs of a cone program that is offered."""
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class LogDetPairs(Problem):
    """Learn a kernel near K0 (a kernel matrix, or features of low rank) from pairs of similar and dissimilar points.

    Pairs are rows (i, j). `upper` bounds the squared distances of similar ones from above, `lower`
    those of dissimilar ones from below, by one number or one a pair. `slack` is the price of moving
    a bound; None keeps them all. Solutions have W and the multipliers `similar` and `dissimilar`;
    `kernel` forms K on all points, `extend` makes it a function.

    >>> problem = LogDetPairs(np.eye(3), similar=[(0, 1)], dissimilar=[(0, 2)], upper=1.0, lower=2.0)
    >>> bracket = problem.bracket(Point({}, {"similar": [0.5], "dissimilar": [0.0]}))
    >>> f"{bracket.lower:.6f} <= optimum <= {bracket.upper:.6f}"
    '0.193147 <= optimum <= 0.202682'
    """

    statement = Statement(
        r"\min_{K}\; D(K,K_0)=\mathrm{tr}(KK_0^{-1})-\log\det(KK_0^{-1})-n"
        r"\quad\text{subject to}\quad d_K(i,j)\le u\ \text{if similar},\quad d_K(i,"
        r"j)\ge l\ \text{if dissimilar}",
        words="d_K(i, j) = K_ii + K_jj - 2 K_ij; with slack the bounds may move at a price.",
    )
    references = ("pan2016",)
    examples = (
        Example(
            "wine",
            lambda d: LogDetPairs(d.kernel(), d.pairs[0], d.pairs[1], 0.7, 1.5),
            demo=(40,),
            full=(40, 80, 160),
        ),
    )

    K0: Gram | LowRank
    similar: IntArray
    dissimilar: IntArray
    upper: FloatArray
    lower: FloatArray
    slack: float | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            K0: Gram | LowRank | MatrixLike,
            similar: npt.ArrayLike,
            dissimilar: npt.ArrayLike,
            upper: npt.ArrayLike,
            lower: npt.ArrayLike,
            slack: float | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "K0", self.K0 if isinstance(self.K0, LowRank) else Gram.of(self.K0, "K0")
        )
        for pairs, bound in (("similar", "upper"), ("dissimilar", "lower")):
            found = pair_list(pairs, getattr(self, pairs), self.K0.size)
            object.__setattr__(self, pairs, found)
            object.__setattr__(
                self, bound, bounds(bound, getattr(self, bound), len(found), zero=bound == "lower")
            )
        if not len(self.similar) + len(self.dissimilar):
            raise InvalidProblem("both lists of pairs are empty; give at least one pair")
        if self.slack is not None:
            object.__setattr__(self, "slack", positive("slack", self.slack))

    def describe(self) -> str:
        """Return the sizes and the slack."""
        kind = "hard" if self.slack is None else f"slack = {self.slack:g}"
        count = len(self.similar) + len(self.dissimilar)
        return f"LogDetPairs({self.points.size} of {self.K0.size} points in {count} pairs, {kind})"

    @cached_property
    def points(self) -> IntArray:
        """The points that occur in pairs, in order."""
        return np.unique(np.concatenate((self.similar, self.dissimilar)))

    @cached_property
    def dual(self) -> LogDetDual:
        """Minus the dual function; pairs that no kernel can break have no row."""
        weight = np.inf if self.slack is None else self.slack
        sign = np.repeat([1.0, -1.0], [len(self.similar), len(self.dissimilar)])[self._told]
        target = np.append(self.upper, self.lower)[self._told]
        first, second = self._ends[self._told].T
        return LogDetDual(self._R, first, second, sign, target, weight, self.points, self._rounding)

    @property
    def inseparable(self) -> IntArray:
        """Which dissimilar pairs, by number, are of points that K0 cannot tell apart: with one there is no solution."""
        told = self._told[len(self.similar) :]
        return np.flatnonzero(told)[
            self.dual.inseparable - int(self._told[: len(self.similar)].sum())
        ]

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the dual over the orthant and, for few points, the cone program."""
        rows = frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX})
        lagrange = (
            "the Lagrangian is least at W = (I + RAR')^-1, and the constraints are linear in W"
        )
        back, to = self._from_dual, self._to_dual
        found = [Formulation("dual", rows, self._form, back, to, lagrange, dual=True, scale=-1.0)]
        if len(self._R) <= PROGRAM and self.dual.size <= ROWS:
            cones = frozenset(
                {Feature.CONE, Feature.PSD, Feature.EXP} if self.dual.size else {Feature.CONE}
            )
            log = "log det W is the largest sum of log Z_ii with W >= Z diag(Z)^-1 Z'"
            shift = -float(len(self._R)) - (
                0.0 if self.slack is None else self.slack * self.dual.size
            )
            build = lambda: cone_program(self.dual)  # noqa: E731
            found.append(
                Formulation(
                    "log det program", cones, build, self._from_cone, because=log, shift=shift
                )
            )
        return tuple(found)

    def bracket(self, point: Point) -> Bracket:
        """Return the dual value of the multipliers and the divergence of a kernel made from them that is feasible."""
        x = np.maximum(np.nan_to_num(self._to_dual(point).x, posinf=0.0), 0.0)
        for _ in range(HALVINGS):
            if np.isfinite(value := self.dual.value(x)):
                break
            x = x / 2
        else:
            x = np.zeros_like(x)
            value = self.dual.value(x)
        rounding = self.dual.near(x).rounding
        found, multipliers = self.dual.feasible(x), self._multipliers(x)
        if found is None or not np.isfinite(found.value):
            nothing = Point({"W": np.eye(len(self._R))}, multipliers)
            return Bracket(
                -value - rounding, np.inf, nothing, "no feasible kernel was found from this point"
            )
        return Bracket(-value - rounding, found.value, Point({"W": found.W}, multipliers))

    def kernel(self, point: Point) -> FloatArray:
        """Return K on all training points."""
        function = self.extend(point)
        if isinstance(function, FactoredKernel):
            return function.training()
        assert isinstance(self.K0, LowRank)
        require_memory(8.0 * self.K0.size**2, f"the kernel of {self.K0.size} points")
        return function.among(self.K0.Phi)

    def extend(self, point: Point) -> FactoredKernel | ExtendedFeatures:
        """Return K as a function of any points: of their features for a K0 of low rank, else of k0 on them."""
        if isinstance(self.K0, LowRank):
            return ExtendedFeatures(np.asarray(np.linalg.cholesky(point.W), dtype=float))
        return FactoredKernel(self.K0.matrix, self._R, self.points, point.W)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a radial kernel and the pairs of two classes, hard or with slack, that some kernel satisfies."""
        m = min(max(size, 3), 7)
        X = rng.normal(size=(m + 2, 3))
        K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 3)
        i, j = np.triu_indices(m, 1)
        same = i % 2 == j % 2
        pairs = np.column_stack((i, j))
        return cls(
            K0, pairs[same], pairs[~same], upper=0.7, lower=1.5, slack=None if size % 2 else 2.0
        )

    @cached_property
    def _R(self) -> FloatArray:
        if isinstance(self.K0, LowRank):
            return np.ascontiguousarray(self.K0.Phi[self.points].T)
        block = self.K0.matrix[np.ix_(self.points, self.points)]
        return (
            Gram.of(block, "K0 on the points in pairs").factor()
            if block.any()
            else np.zeros((1, len(block)))
        )

    @property
    def _rounding(self) -> float:
        """What squared distances are known to: features that are given are exact, what was computed is rounded."""
        if isinstance(self.K0, LowRank) and not isinstance(self.K0, Nystrom):
            return 0.0
        largest = float(np.einsum("ij,ij->j", self._R, self._R).max())
        return max(self.points.size, 32) * float(np.finfo(float).eps) * largest

    @cached_property
    def _ends(self) -> IntArray:
        """All pairs as columns of R."""
        return np.searchsorted(self.points, np.concatenate((self.similar, self.dissimilar)))

    @cached_property
    def _told(self) -> npt.NDArray[np.bool_]:
        """Which pairs say something: equal points are similar, and a distance of at least 0 is no constraint."""
        first, second = self._ends[: len(self.similar)].T
        return np.append(~equal_points(self._R, first, second, self._rounding), self.lower > 0)

    def _form(self) -> SimplexForm:
        return SimplexForm(
            self.dual, BoxPlane(np.zeros(self.dual.size), np.full(self.dual.size, np.inf))
        )

    def _multipliers(self, x: FloatArray) -> dict[str, FloatArray]:
        y, count = np.zeros(len(self._told)), len(self.similar)
        y[self._told] = x / self.dual.target
        return {"similar": y[:count], "dissimilar": y[count:]}

    def _from_dual(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({}, self._multipliers(x))

    def _from_cone(self, x: FloatArray, y: FloatArray | None) -> Point:
        return self._from_dual(np.zeros(self.dual.size) if y is None else y[: self.dual.size], None)

    def _to_dual(self, point: Point) -> Start:
        return Start(np.append(point.similar, point.dissimilar)[self._told] * self.dual.target)
