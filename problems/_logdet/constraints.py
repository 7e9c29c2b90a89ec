"""Pairs of points with bounds on their distances, and the dual function that solvers see.

R'R is the given kernel on m points, up to rounding, and z_c = e_i - e_j the c-th pair: s_c = +1
asks for a squared distance of at most t_c, s_c = -1 for at least t_c.

    minimise over W > 0   tr W - log det W - r   subject to   s_c (q_c - 1) <= 0

with K = R'WR and q_c = z_c'K z_c / t_c. Multipliers x_c / t_c make of it

    W = M^-1,   M = I + R A R',   A = sum_c s_c x_c z_c z_c' / t_c,
    f(x) = sum_c s_c x_c - log det M,    f''_cd = s_c s_d (z_c'K z_d)^2 / (t_c t_d)

(K^-1 is the given inverse plus A, which is said here without inverses). All of it needs A and m x m
matrices only, however many pairs there are. Only differences of points count, so the columns of R
are centred: distances are then no small differences of large numbers.

Slack: the targets t_c may move to u_c t_c at the price weight (u - log u - 1). Then s_c x_c becomes
-weight log(1 - s_c x_c / weight).

Nothing here is a proof: `proof` has the bounds that hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import attrs
import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray, freeze, matrix, positive, vector
from klopt.errors import InvalidProblem
from klopt.model.functions import IntArray
from klopt.model.memo import lock
from klopt.problems._logdet.proof import PairData

__all__ = [
    "DistanceConstraints",
    "PairEvaluation",
    "equal_points",
    "evaluation_in_domain",
    "squared_distances",
]

CLOSE_SHARE = 1e-4
"""Squared distances below this share of the points' size are computed from differences."""
NEARLY_EQUAL_SHARE = 1e-10
"""Points whose squared distance is above this share of their size are different."""
MAX_HALVINGS = 60
"""Multipliers outside the domain of f are halved this often before they are given up for 0."""


def _points(R: npt.ArrayLike) -> FloatArray:
    return matrix("R", R)


def _signs(sign: npt.ArrayLike) -> FloatArray:
    return vector("sign", sign)


def _targets(target: npt.ArrayLike) -> FloatArray:
    return vector("target", target)


def _indices(indices: npt.ArrayLike) -> IntArray:
    return cast(IntArray, freeze(np.array(indices, dtype=np.intp)))


def _weight(weight: float) -> float:
    return positive("weight", weight, infinite=True)


@attrs.frozen(eq=False, slots=False)
class DistanceConstraints:
    """Bounds of the squared distances of pairs of points, the columns of R.

    Parameters
    ----------
    R
        The points.
    first, second
        The two points of each pair.
    sign
        +1 for similar pairs, -1 for dissimilar ones.
    target
        The bound of each pair, positive.
    weight
        The price of moving a bound; infinite where they are hard.
    names
        What the points are called in words, by default their own numbers.
    rounding
        Points of this squared distance or less are equal: R is known no better.
    gram, floor
        The stored kernel matrix that R is a factor of, with a proven lower bound of its
        eigenvalues; without it the columns of R are the points, exactly.

    >>> pairs = DistanceConstraints(np.eye(2), [0], [1], [1.0], [1.0])
    >>> PairEvaluation.at(pairs, np.array([0.5])).ratios
    array([1.])
    """

    R: FloatArray = attrs.field(converter=_points)
    first: IntArray = attrs.field(converter=_indices)
    second: IntArray = attrs.field(converter=_indices)
    sign: FloatArray = attrs.field(converter=_signs)
    target: FloatArray = attrs.field(converter=_targets)
    weight: float = attrs.field(default=np.inf, converter=_weight)
    names: IntArray = attrs.field(converter=_indices)
    rounding: float = 0.0
    gram: FloatArray | None = None
    floor: float = 0.0

    @names.default
    def _own_numbers(self) -> IntArray:
        return np.arange(self.R.shape[1])

    def __attrs_post_init__(self) -> None:
        if self.sign.size != self.size:
            raise InvalidProblem(f"sign has {self.sign.size} entries; expected {self.size}")
        if not self.first.shape == self.second.shape == (self.size,):
            raise InvalidProblem(
                f"first and second must name the {self.size} pairs that target has"
            )
        if not ((np.abs(self.sign) == 1).all() and (self.target > 0).all()):
            raise InvalidProblem("sign must hold +1 and -1, target positive numbers")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A pickle forgets that arrays are read-only.
        lock(self)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return int(self.target.size)

    @property
    def is_hard(self) -> bool:
        """Whether no bound may move at a price."""
        return not np.isfinite(self.weight)

    @property
    def data(self) -> PairData:
        """What a proof is about."""
        return PairData(
            gram=self.gram,
            features=self.R.T if self.gram is None else None,
            floor=self.floor,
            first=self.first,
            second=self.second,
            sign=self.sign,
            target=self.target,
            weight=self.weight,
        )

    @cached_property
    def centred(self) -> FloatArray:
        """R with rows of mean zero."""
        return cast(FloatArray, freeze(self.R - self.R.mean(axis=1, keepdims=True)))

    @cached_property
    def inseparable(self) -> IntArray:
        """The dissimilar pairs of equal points, which no W separates, at no finite price either."""
        apart = np.flatnonzero(self.sign < 0)
        equal = equal_points(self.R, self.first[apart], self.second[apart], self.rounding)
        return cast(IntArray, freeze(apart[equal]))

    @cached_property
    def close_pairs(self) -> IntArray:
        """The dissimilar pairs of tiny distances, which large multipliers meet."""
        R = self.centred
        apart = np.flatnonzero(self.sign < 0)
        i = self.first[apart]
        j = self.second[apart]
        size = np.einsum("ij,ij->j", R, R)
        scale = size[i] + size[j]
        close = scale - 2 * (R.T @ R)[i, j] <= CLOSE_SHARE * scale
        return cast(IntArray, freeze(apart[close]))

    @cached_property
    def close_differences(self) -> FloatArray:
        """R z of the close pairs, which as a difference loses no digits."""
        close = self.close_pairs
        return cast(
            FloatArray, freeze(self.R[:, self.first[close]] - self.R[:, self.second[close]])
        )

    def laplacian(self, x: FloatArray) -> FloatArray:
        """Return A = sum_c s_c x_c z_c z_c' / t_c."""
        m = self.R.shape[1]
        used = np.flatnonzero(x)
        i = self.first[used]
        j = self.second[used]
        weights = (self.sign * x / self.target)[used]
        places = np.concatenate((i * m + j, j * m + i))
        sums = np.bincount(places, np.concatenate((weights, weights)), m * m)
        A = -sums.astype(float, copy=False).reshape(m, m)
        A.flat[:: m + 1] = -A.sum(axis=1)
        return A

    def projected_laplacian(self, x: FloatArray) -> FloatArray:
        """Return R A R'."""
        R = self.centred
        close = self.close_pairs
        if not close.size:
            return np.asarray(R @ self.laplacian(x) @ R.T)
        far = x.copy()
        far[close] = 0.0
        Rz = self.close_differences
        weights = self.sign[close] * x[close] / self.target[close]
        return np.asarray(R @ self.laplacian(far) @ R.T + (Rz * weights) @ Rz.T)

    def ratios(self, K: FloatArray) -> FloatArray:
        """Return q, the squared distances in K over their targets."""
        return squared_distances(K, self.first, self.second) / self.target

    def ratio_rounding(self, K: FloatArray) -> FloatArray:
        """Return what rounding may do to each ratio."""
        diagonal = K.diagonal()
        size = (diagonal[self.first] + diagonal[self.second]) / self.target
        rounding: FloatArray = 8 * EPS * (1 + size)
        return rounding

    def violation(self, q: FloatArray) -> FloatArray:
        """Return s (q - 1), positive where a constraint is violated."""
        violation: FloatArray = self.sign * (q - 1)
        return violation

    @cached_property
    def components(self) -> IntArray:
        """The component of each point in the graph of the similar pairs."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        similar = self.sign > 0
        m = self.R.shape[1]
        ends = (self.first[similar], self.second[similar])
        graph = csr_array((np.ones(ends[0].size), ends), shape=(m, m))
        found = connected_components(graph, directed=False)[1]
        return cast(IntArray, freeze(np.asarray(found, dtype=np.intp)))


def squared_distances(K: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Return K_ii + K_jj - 2 K_ij of each pair."""
    diagonal = K.diagonal()
    found: FloatArray = diagonal[first] + diagonal[second] - 2 * K[first, second]
    return found


def equal_points(
    R: FloatArray, first: IntArray, second: IntArray, rounding: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return which pairs are of columns of R that are equal up to rounding.

    Parameters
    ----------
    R
        The points as columns.
    first, second
        The two points of each pair.
    rounding
        Squared distances up to this one are rounding, too, beside that of the difference itself.

    >>> equal_points(np.array([[1.0, 1.0, 2.0]]), np.array([0, 0]), np.array([1, 2]))
    array([ True, False])
    """
    size = np.einsum("ij,ij->j", R, R)
    scale = size[first] + size[second]
    rough = np.abs(scale - 2 * (R.T @ R)[first, second])
    equal: npt.NDArray[np.bool_] = rough <= NEARLY_EQUAL_SHARE * scale + rounding

    # Those left are few, and their differences lose no digits.
    near = np.flatnonzero(equal)
    z = R[:, first[near]] - R[:, second[near]]
    largest = np.maximum(rounding, (32 * EPS) ** 2 * scale[near])
    equal[near] = np.einsum("ij,ij->j", z, z) <= largest
    return equal


# ---- the dual value


@dataclass(frozen=True, eq=False)
class PairEvaluation:
    """f at one x, and the kernel that belongs to it.

    Parameters
    ----------
    constraints
        The pairs.
    x
        Their multipliers times their targets.
    value
        f(x), infinite outside the domain.
    L, Y
        M = LL' and Y = L^-1 R; None outside the domain.
    """

    constraints: DistanceConstraints
    x: FloatArray
    value: float
    L: FloatArray | None = None
    Y: FloatArray | None = None

    @classmethod
    def at(cls, constraints: DistanceConstraints, x: FloatArray) -> Self:
        """Factor M at x."""
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dpotrf

        x = x.copy()
        slack = 1 - constraints.sign * x / constraints.weight
        if not (np.isfinite(x).all() and (slack > 0).all()):
            return cls(constraints, x, np.inf)

        R = constraints.centred
        M = constraints.projected_laplacian(x)
        M.flat[:: len(R) + 1] += 1.0
        L, failed = dpotrf(M.T, lower=1, clean=1)
        if failed:
            return cls(constraints, x, np.inf)

        if constraints.is_hard:
            linear = float(constraints.sign @ x)
        else:
            linear = -constraints.weight * float(np.log(slack).sum())
        value = linear - 2 * float(np.log(L.diagonal()).sum())
        return cls(constraints, x, value, L, solve_triangular(L, R, lower=True))

    @cached_property
    def kernel(self) -> FloatArray:
        """K = R'WR of the centred points; NaN outside the domain."""
        if self.Y is None:
            K = np.full((self.constraints.R.shape[1],) * 2, np.nan)
        else:
            K = self.Y.T @ self.Y
        return cast(FloatArray, freeze(K))

    @cached_property
    def ratios(self) -> FloatArray:
        """q, the squared distances over their targets."""
        constraints = self.constraints
        close = constraints.close_pairs
        ratios = constraints.ratios(self.kernel)
        if close.size and self.L is not None:
            differences = self._close_differences
            squares = np.einsum("ij,ij->j", differences, differences)
            ratios[close] = squares / constraints.target[close]
        return cast(FloatArray, freeze(ratios))

    @cached_property
    def _close_differences(self) -> FloatArray:
        """L^-1 R z of the close pairs."""
        from scipy.linalg import solve_triangular

        assert self.L is not None
        return np.asarray(solve_triangular(self.L, self.constraints.close_differences, lower=True))

    def differences(self, chosen: IntArray) -> FloatArray:
        """Return L^-1 R z of some pairs."""
        assert self.Y is not None
        constraints = self.constraints
        i = constraints.first[chosen]
        j = constraints.second[chosen]
        y: FloatArray = self.Y[:, i] - self.Y[:, j]
        _, here, there = np.intersect1d(chosen, constraints.close_pairs, return_indices=True)
        if here.size:
            y[:, here] = self._close_differences[:, there]
        return y

    def hessian(self, chosen: IntArray) -> FloatArray:
        """Return the second derivatives of f among some of the pairs."""
        return self.scaled_hessian(chosen, np.ones(chosen.size))

    def scaled_hessian(self, chosen: IntArray, share: FloatArray) -> FloatArray:
        """Return the second derivatives with rows and columns times share^1/2.

        The part that slack adds, a diagonal, is divided by the share instead.
        """
        constraints = self.constraints
        i = constraints.first[chosen]
        j = constraints.second[chosen]
        sign = constraints.sign[chosen]

        # z_c'K z_d
        B = self.kernel[i] - self.kernel[j]
        H = np.take(B, i, axis=1)
        H -= np.take(B, j, axis=1)
        close = np.flatnonzero(np.isin(chosen, constraints.close_pairs))
        if close.size:
            y = self.differences(chosen)
            H[close] = y[:, close].T @ y
            H[:, close] = H[close].T

        scale = sign * np.sqrt(share) / constraints.target[chosen]
        H *= H
        H *= scale[:, None]
        H *= scale
        if not constraints.is_hard:
            slack = 1 - sign * self.x[chosen] / constraints.weight
            H.flat[:: chosen.size + 1] += 1 / (share * constraints.weight * slack**2)
        return H


def evaluation_in_domain(constraints: DistanceConstraints, x: FloatArray) -> PairEvaluation:
    """Return f at x >= 0, halved until f is finite there."""
    for _ in range(MAX_HALVINGS):
        evaluation = PairEvaluation.at(constraints, x)
        if np.isfinite(evaluation.value):
            return evaluation
        x = x / 2
    return PairEvaluation.at(constraints, np.zeros_like(x))
