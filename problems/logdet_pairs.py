"""LDK: the kernel nearest to a given one in LogDet divergence under bounds on distances of pairs.

    minimise over K   D(K, K0) = tr(K K0^-1) - log det(K K0^-1) - n
    subject to        d_K(i, j) <= upper   for similar pairs
                      d_K(i, j) >= lower   for dissimilar pairs

((4) of Pan et al. (2016)), where d_K(i, j) = K_ii + K_jj - 2 K_ij. With `slack` the bounds may move
to u_c times themselves at the price slack times sum_c (u_c - log u_c - 1), as in Davis et al.
(2007).

Only the points that occur in pairs count. With J those points and K0_JJ = R'R, R of r rows, K_JJ =
R'WR and the other points follow: D(K, K0) = D(K_JJ, K0_JJ) = tr W - log det W - r, and what W does
to the features of J it does to those of any point (`klopt.problems._logdet.extension`). K0 may be
singular: kernels that do not have its range are infinitely far away.

The dual has one variable for each pair but needs only m x m matrices
(`klopt.problems._logdet.function`); it is solved by Newton's method among the pairs that are tight,
or by Bregman's projections. A triangle, or a longer cycle, that is violated proves that pairs
contradict each other (`klopt.problems._logdet.contradictions`). Dissimilar points that K0 cannot
tell apart do so even with slack: the price of u = 0 is infinite.

Pan, Chen, Chen, Xu (2016), Efficient learning of supervised kernels with a graph-based loss
function.

Davis, Kulis, Jain, Sra, Dhillon (2007), Information-theoretic metric learning.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, MatrixLike, require_memory
from klopt.errors import InvalidProblem
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank, Nystrom
from klopt.kernels.out_of_sample import ExtendedFeatures
from klopt.model.features import Feature
from klopt.model.forms import ConeForm, SimplexForm, Start
from klopt.model.functions import IntArray
from klopt.model.problem import Bracket, Example, Formulation, Point, Problem, Statement
from klopt.model.sets import BoxPlane
from klopt.problems._logdet.constraints import (
    DistanceConstraints,
    equal_points,
    evaluation_in_domain,
)
from klopt.problems._logdet.data import (
    distance_bounds,
    given_kernel,
    pair_rows,
    refuse_unknown_points,
    slack_price,
)
from klopt.problems._logdet.exact_claim import pair_claim
from klopt.problems._logdet.extension import FactoredKernel
from klopt.problems._logdet.forms import pair_program
from klopt.problems._logdet.function import LogDetDual
from klopt.problems._logdet.proof import BallKernel, EdgeCoordinates, PairData, proven_interval
from klopt.problems._logdet.witness import (
    MAX_PRECISE_POINTS,
    edge_coordinates,
    factor_of_points,
    proposed_kernel,
    proven_multipliers,
)
from klopt.witness.exact_claims import ExactClaim

__all__ = ["LogDetPairs"]

NARROW = 1e-9
"""A relative gap below which no better kernel is looked for."""
NOISE_LEVELS = (0.0, 1e-9, 1e-6, 1e-3)
"""Shares of the largest multiplier below which others are dropped, one after the other."""
MAX_PROGRAM_ORDER = 60
"""The largest order of a cone program that is offered."""
MAX_PROGRAM_PAIRS = 2000
"""The largest number of pairs of a cone program that is offered."""


@attrs.frozen(eq=False, slots=False, init=False)
class LogDetPairs(Problem):
    """Learn a kernel near K0 from pairs of similar and dissimilar points.

    Solutions have W and the multipliers `similar` and `dissimilar`; `kernel` forms K on all points,
    `extend` makes it a function.

    Parameters
    ----------
    K0 : (n, n) matrix, Gram or LowRank
        A kernel matrix, or features of low rank, which then are the data. Negative eigenvalues of a
        matrix, within its proven floor, count as 0.
    similar, dissimilar : (k, 2) arrays
        Pairs as rows (i, j).
    upper : float or array
        Bounds the squared distances of similar pairs from above: one number, or one for each.
    lower : float or array
        Bounds those of dissimilar pairs from below, likewise.
    slack : float or None
        The price of moving a bound; None keeps them all.

    References
    ----------
    Pan et al. (2016). Efficient learning of supervised kernels with a graph-based loss
    function.

    Examples
    --------
    >>> problem = LogDetPairs(np.eye(3), [(0, 1)], [(0, 2)], upper=1.0, lower=2.0)
    >>> bracket = problem.bracket(Point({}, {"similar": [0.5], "dissimilar": [0.0]}))
    >>> f"{bracket.lower:.6f} <= optimum <= {bracket.upper:.6f}"
    '0.193147 <= optimum <= 0.202682'
    """

    statement = Statement(
        r"\min_{K}\; D(K,K_0)=\mathrm{tr}(KK_0^{-1})-\log\det(KK_0^{-1})-n"
        r"\quad\text{subject to}\quad d_K(i,j)\le u\ \text{if similar},\quad d_K(i,"
        r"j)\ge l\ \text{if dissimilar}",
        words="d_K(i, j) = K_ii + K_jj - 2 K_ij; with slack the bounds may move at a price.",
        data="A K0 that is indefinite by rounding stands for its positive part.",
        area="Kernel learning",
    )
    references = ("pan2016",)

    K0: Gram | LowRank
    similar: IntArray
    dissimilar: IntArray
    upper: FloatArray
    lower: FloatArray
    slack: float | None

    def __init__(
        self,
        K0: Gram | LowRank | MatrixLike,
        similar: npt.ArrayLike,
        dissimilar: npt.ArrayLike,
        upper: npt.ArrayLike,
        lower: npt.ArrayLike,
        slack: float | None = None,
    ) -> None:
        kernel = given_kernel(K0)
        near = pair_rows("similar", similar)
        far = pair_rows("dissimilar", dissimilar)
        price = slack_price(slack)
        refuse_unknown_points("similar", near, kernel.size)
        highest = distance_bounds("upper", upper, len(near), zero=False)
        refuse_unknown_points("dissimilar", far, kernel.size)
        lowest = distance_bounds("lower", lower, len(far), zero=True)
        if not len(near) + len(far):
            raise InvalidProblem("both lists of pairs are empty; give at least one pair")
        self.__attrs_init__(kernel, near, far, highest, lowest, price)

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
    def constraints(self) -> DistanceConstraints:
        """The constraints on the points in pairs; pairs that no kernel can violate have none."""
        kept = self._constraining
        sign = np.repeat([1.0, -1.0], [len(self.similar), len(self.dissimilar)])
        target = np.append(self.upper, self.lower)
        first, second = self._ends[kept].T
        return DistanceConstraints(
            R=self._R,
            first=first,
            second=second,
            sign=sign[kept],
            target=target[kept],
            weight=np.inf if self.slack is None else self.slack,
            names=self.points,
            rounding=self._rounding,
            gram=self._data.gram,
            floor=self._data.floor,
        )

    @cached_property
    def dual(self) -> LogDetDual:
        """Minus the dual function."""
        return LogDetDual(self.constraints)

    @property
    def inseparable(self) -> IntArray:
        """The dissimilar pairs, by number, that K0 cannot tell apart; any makes it infeasible."""
        similar, dissimilar = np.split(self._constraining, [len(self.similar)])
        among_dissimilar = self.constraints.inseparable - int(similar.sum())
        return np.flatnonzero(dissimilar)[among_dissimilar]

    @cached_property
    def _data(self) -> PairData:
        """The exact data: the stored block of K0, or features, and every pair that has a bound."""
        gram = features = None
        floor = 0.0
        if isinstance(self.K0, LowRank):
            features = self.K0.Phi[self.points]
        else:
            gram = self.K0.matrix[np.ix_(self.points, self.points)]
            floor = self.K0.floor
        bounded = self._bounded
        first, second = self._ends[bounded].T
        sign = np.repeat([1.0, -1.0], [len(self.similar), len(self.dissimilar)])
        return PairData(
            gram=gram,
            features=features,
            floor=floor,
            first=first,
            second=second,
            sign=sign[bounded],
            target=np.append(self.upper, self.lower)[bounded],
            weight=np.inf if self.slack is None else self.slack,
        )

    @cached_property
    def _bounded(self) -> npt.NDArray[np.bool_]:
        """Which pairs have a bound: all but distances of at least 0."""
        return np.append(np.ones(len(self.similar), dtype=bool), self.lower > 0)

    @cached_property
    def _coordinates(self) -> EdgeCoordinates:
        return edge_coordinates(self._data)

    @cached_property
    def _R(self) -> FloatArray:
        """The points in pairs as columns: K0 on them is R'R, up to rounding."""
        return factor_of_points(self._coordinates)

    @property
    def _rounding(self) -> float:
        """The accuracy of squared distances: given features are exact, computed ones are not."""
        if isinstance(self.K0, LowRank) and not isinstance(self.K0, Nystrom):
            return 0.0
        largest = float(np.einsum("ij,ij->j", self._R, self._R).max())
        return max(self.points.size, 32) * EPS * largest

    @cached_property
    def _ends(self) -> IntArray:
        """All pairs as columns of R."""
        return np.searchsorted(self.points, np.concatenate((self.similar, self.dissimilar)))

    @cached_property
    def _constraining(self) -> npt.NDArray[np.bool_]:
        """Which pairs are constraints: not similar equal points, nor distances of at least 0."""
        first, second = self._ends[: len(self.similar)].T
        equal = equal_points(self._R, first, second, self._rounding)
        # A bound below the distance that rounding leaves is one all the same.
        near = np.flatnonzero(equal)
        z = self._R[:, first[near]] - self._R[:, second[near]]
        equal[near] = np.einsum("ij,ij->j", z, z) <= self.upper[near]
        return np.append(~equal, self.lower > 0)

    def formulations(self) -> tuple[Formulation, ...]:
        """Return the dual over the orthant and, for few points, the cone program."""
        few = len(self._R) <= MAX_PROGRAM_ORDER and self.constraints.size <= MAX_PROGRAM_PAIRS
        return (self._dual_form(), self._program_form()) if few else (self._dual_form(),)

    def _dual_form(self) -> Formulation:
        return Formulation(
            "dual",
            frozenset({Feature.SIMPLEX, Feature.ROWS, Feature.BOX}),
            self._over_orthant,
            self._from_dual,
            self._to_dual,
            "the Lagrangian is minimal at W = (I + RAR')^-1, and the constraints are linear in W",
            dual=True,
            scale=-1.0,
        )

    def _program_form(self) -> Formulation:
        features = {Feature.CONE}
        if self.constraints.size:
            features |= {Feature.PSD, Feature.EXP}
        shift = -float(len(self._R))
        if self.slack is not None:
            shift -= self.slack * self.constraints.size
        return Formulation(
            "log det program",
            frozenset(features),
            self._program,
            self._from_program,
            because="log det W is the largest sum of log Z_ii with W >= Z diag(Z)^-1 Z'",
            shift=shift,
        )

    def _over_orthant(self) -> SimplexForm:
        count = self.constraints.size
        return SimplexForm(self.dual, BoxPlane(np.zeros(count), np.full(count, np.inf)))

    def _program(self) -> ConeForm:
        return pair_program(self.constraints)

    def _from_dual(self, x: FloatArray, y: FloatArray | None) -> Point:
        return Point({}, self._multipliers(x))

    def _from_program(self, x: FloatArray, y: FloatArray | None) -> Point:
        count = self.constraints.size
        return Point({}, self._multipliers(np.zeros(count) if y is None else y[:count]))

    def _to_dual(self, point: Point) -> Start:
        multipliers = np.append(point.similar, point.dissimilar)
        return Start(multipliers[self._constraining] * self.constraints.target)

    def _multipliers(self, x: FloatArray) -> dict[str, FloatArray]:
        multipliers = np.zeros(len(self._constraining))
        multipliers[self._constraining] = x / self.constraints.target
        similar, dissimilar = np.split(multipliers, [len(self.similar)])
        return {"similar": similar, "dissimilar": dissimilar}

    def proves_infeasible(self, point: Point) -> bool:
        """Return whether the multipliers contradict the pairs, exactly.

        It is asked of the pairs and K0 as stored: the cone program holds a computed factor.
        """
        ray = np.maximum(np.nan_to_num(self._to_dual(point).x, posinf=0.0), 0.0)
        largest = float(ray.max(initial=0.0))
        # Solvers leave noise in entries that are 0.
        kept = (np.where(ray > level * largest, ray, 0.0) for level in NOISE_LEVELS)
        return any(not self.dual.ray_flaw(candidate) for candidate in kept)

    def witness(self, point: Point) -> Point:
        """Return multipliers of a finite dual value, and a kernel near theirs that is feasible.

        `change` is the kernel as the proof takes it, empty where none was found.
        """
        return self._witness(point, measured=True)

    def _witness(self, point: Point, *, measured: bool) -> Point:
        """The same, maybe with a kernel whose distances only the proof will measure."""
        x = np.maximum(np.nan_to_num(self._to_dual(point).x, posinf=0.0), 0.0)
        evaluation = evaluation_in_domain(self.constraints, x)
        multipliers = self._multipliers(evaluation.x)
        kept = self._constraining[self._bounded]
        found = proposed_kernel(evaluation, self._coordinates, kept, measured=measured)
        if found is None:
            nothing = {"W": np.eye(len(self._R)), "change": np.zeros((0, 0))}
            return Point(nothing, multipliers)
        kernel = found.kernel
        arrays = {
            "W": found.W,
            "change": found.change,
            "correction": kernel.correction,
            "other": kernel.other,
            "share": kernel.share,
        }
        return Point(arrays, multipliers)

    def proof(self, witness: Point) -> Bracket:
        """Return the bounds that the multipliers and the kernel of a witness prove."""
        return self._proof(witness, in_balls=True)

    def _proof(self, witness: Point, *, in_balls: bool) -> Bracket:
        """The same, maybe in floats alone."""
        multipliers = np.append(witness.similar, witness.dissimilar)[self._bounded]
        kernel = BallKernel(np.zeros(multipliers.size), np.zeros((0, 0)), 0.0)
        if "correction" in witness.primal:
            kernel = BallKernel(witness.correction, witness.other, float(witness.share))
        interval = proven_interval(
            self._coordinates, multipliers, witness.change, kernel, in_balls=in_balls
        )
        point = Point({"W": witness.W}, dict(witness.dual))
        note = "" if np.isfinite(interval[1]) else "no feasible kernel was found from this point"
        return Bracket(
            *interval,
            point,
            note,
            lower_by="weak duality: log det of the multipliers",
            upper_by="divergence of an exactly feasible kernel",
        )

    def bracket(self, point: Point) -> Bracket:
        """Return the dual value of the multipliers and the divergence of a feasible kernel."""
        # A kernel with the usual margin is mostly proven feasible, at half the cost.
        found = self._proof(self._witness(point, measured=False), in_balls=False)
        if np.isfinite(found.gap):
            # Balls, which are for few points, may prove more where rounding is what is left.
            many = self._data.points > MAX_PRECISE_POINTS
            if many or found.gap <= NARROW * (1 + abs(found.upper)):
                return found
        witness = self.witness(point)
        found = self.proof(witness)
        if np.isfinite(found.lower):
            return found
        # At the verge of the domain rounding decides: multipliers a little shorter are inside.
        multipliers = np.append(witness.similar, witness.dissimilar)
        multipliers[self._bounded] = proven_multipliers(
            self._coordinates, multipliers[self._bounded]
        )
        similar, dissimilar = np.split(multipliers, [len(self.similar)])
        shorter = {"similar": similar, "dissimilar": dissimilar}
        return self.proof(Point(dict(witness.primal), shorter))

    def exact_claim(self, point: Point, verdict: str) -> ExactClaim:
        """Return the log det program with the multipliers of a point."""
        multipliers = np.append(point.similar, point.dissimilar)[self._bounded]
        return pair_claim(self._data, multipliers, verdict)

    def kernel(self, point: Point) -> FloatArray:
        """Return K on all training points."""
        function = self.extend(point)
        if isinstance(function, FactoredKernel):
            return function.training()
        assert isinstance(self.K0, LowRank)
        require_memory(8.0 * self.K0.size**2, f"the kernel of {self.K0.size} points")
        return function.among(self.K0.Phi)

    def extend(self, point: Point) -> FactoredKernel | ExtendedFeatures:
        """Return K as a function of any points.

        For a K0 of low rank it is one of their features, else one of k0 on them.
        """
        if isinstance(self.K0, LowRank):
            return ExtendedFeatures(np.asarray(np.linalg.cholesky(point.W), dtype=float))
        return FactoredKernel(self.K0.matrix, self._R, self.points, point.W)

    @classmethod
    def sample(cls, rng: np.random.Generator, size: int) -> Self:
        """Return a radial kernel and the pairs of two classes, which some kernel satisfies.

        The bounds are hard for odd sizes and have slack for even ones.
        """
        m = min(max(size, 3), 7)
        X = rng.normal(size=(m + 2, 3))
        K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 3)
        i, j = np.triu_indices(m, 1)
        pairs = np.column_stack((i, j))
        same = i % 2 == j % 2
        slack = None if size % 2 else 2.0
        return cls(K0, pairs[same], pairs[~same], upper=0.7, lower=1.5, slack=slack)

    examples = (
        Example(
            "wine",
            lambda data: LogDetPairs(data.kernel(), data.pairs[0], data.pairs[1], 0.7, 1.5),
            demo=(40,),
            full=(40, 80, 160),
        ),
    )
