"""Bounds of a LogDet problem with pairs that hold in exact arithmetic about the stored data.

The data are a kernel matrix G on m points (the stored block of K0), or features Phi with G = Phi
Phi', and pairs z_c = e_i - e_j with s_c = +1 for a squared distance of at most t_c, -1 for at least
t_c. A stored G with negative eigenvalues stands for G + N, 0 <= N <= -floor I: they count as 0.

**Coordinates.** Points are sums of the edges of a rooted tree, each edge the difference of a point
and its parent, over 2^k_e. Edges between near points are short: the Gram matrix of the scaled
edges, four stored numbers an entry, keeps the digits of small distances that a factor of G loses.
Below G is that matrix, p_c the path of pair c, R a proposed factor with G = R'R + E, ||E||_F
bounded. Features have R itself, and no E.

**Lower bound (weak duality).** For lambda >= 0 and A = sum_c s_c lambda_c p_c p_c', if I + RAR' is
positive definite,

    optimum  >=  log det(I + AG) - sum_c s_c lambda_c t_c.

With slack at the price w (u - log u - 1) of moving t_c to u t_c, s lambda t becomes
-w log(1 - s lambda t / w). log det(I + AG) is that of I + RAR' (Lemma D1) up to Lemma D2.

**Upper bound (a feasible kernel).** For a symmetric Q with I + RQR' positive definite the kernel
K = G + GQG has the divergence tr(QG) - log det(I + QG); it is feasible if s_c (p_c'K p_c - t_c) <=
0 for all c. Of features, K = R'WR has tr W - log det W - r.

**In balls.** Where floats leave a wide interval and points are few, the same bounds are computed in
320 bits, for a G that is positive definite: log det(I + AG) = log det(G + GAG) - log det G, and
for the kernel L - LCL, L = (G^-1 + A)^-1, D = tr(G^-1 K) - log det K + log det G - m.

**Infeasibility.** No kernel at a finite divergence is feasible where lambda >= 0 has A positive
semidefinite (of features: RAR'), and sum_c s_c lambda_c t_c < 0, or = 0 and tr(AG) > 0: with W > 0,
<W, RAR'> = sum_c s_c lambda_c d_c <= sum_c s_c lambda_c t_c. A dissimilar pair of equal points does
it alone, also with slack, whose price -log u is infinite at u = 0. All of it is decided in rational
numbers, or by Rump's test with a margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.model.functions import IntArray
from klopt.proof.balls import ball_matrix, definite_log_det, enclosure_of_ball, working_bits
from klopt.proof.directed import product_up, sum_up, total_up
from klopt.proof.enclosure import ETA, UNIT_ROUNDOFF, Enclosure, enclose_norm, enclose_sum, gamma
from klopt.proof.log_det import (
    NOTHING,
    enclose_congruence,
    enclose_log_det,
    enclose_relative_log_det,
)
from klopt.proof.semidefinite import is_positive_semidefinite, radius_norm

__all__ = [
    "BallKernel",
    "EdgeCoordinates",
    "PairData",
    "dual_bound",
    "primal_bound",
    "ray_flaw",
]

MAX_RATIONAL_ORDER = 80
"""Up to this order a matrix is proven positive semidefinite in rational numbers."""
MAX_BALL_POINTS = 100
"""Up to this many points are worth the time of balls."""
WIDE_SHARE = 1e-9
"""An enclosure with a larger radius, as a share of 1 + |value|, is computed again in balls."""
BITS = 320
"""The precision of balls: six times that of floats."""
ROWS_AT_A_TIME = 4096
"""Paths of pairs are dense rows, so many at a time."""
COARSE_SHARE = 2.0**-44
"""Distances known to this share of their bound, or better, are not computed again by paths."""


@dataclass(frozen=True, eq=False)
class PairData:
    """The problem: exact numbers, as stored.

    Parameters
    ----------
    gram, features
        G, or Phi by rows; one of them.
    floor
        A proven lower bound of the eigenvalues of the matrix that G is a block of; at most 0.
    first, second
        The two points of each pair.
    sign
        +1 for similar pairs, -1 for dissimilar ones.
    target
        The bound of each pair, positive.
    weight
        The price of moving a bound; infinite where they are hard.
    """

    gram: FloatArray | None
    features: FloatArray | None
    floor: float
    first: IntArray
    second: IntArray
    sign: FloatArray
    target: FloatArray
    weight: float

    @property
    def points(self) -> int:
        """The number of points."""
        return len(self._rows)

    @property
    def is_hard(self) -> bool:
        """Whether no bound may move at a price."""
        return not math.isfinite(self.weight)

    def are_equal(self, i: int, j: int) -> bool:
        """Return whether two points are equal, exactly: G or Phi has the same row for both."""
        return bool((self._rows[i] == self._rows[j]).all())

    def squared_distance(self, pair: int) -> Fraction:
        """Return the squared distance of a pair in the given kernel, exactly."""
        i = self.first[pair]
        j = self.second[pair]
        if self.gram is not None:
            G = self.gram
            return Fraction(G[i, i]) + Fraction(G[j, j]) - 2 * Fraction(G[i, j])
        assert self.features is not None
        steps = zip(self.features[i].tolist(), self.features[j].tolist(), strict=True)
        return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in steps), Fraction(0))

    @property
    def _rows(self) -> FloatArray:
        rows = self.features if self.gram is None else self.gram
        assert rows is not None
        return rows


# ---- coordinates


@dataclass(frozen=True, eq=False)
class EdgeCoordinates:
    """The points as sums of scaled edges.

    Parameters
    ----------
    data
        The problem.
    parent
        The parent of each point in the tree, -1 at a root. Any choice is right.
    exponent
        k_e of the edge above each point.
    factor
        The proposed R, r x m; that of features is computed here.
    """

    data: PairData
    parent: IntArray
    exponent: IntArray
    factor: FloatArray | None = None

    def with_factor(self, factor: FloatArray) -> EdgeCoordinates:
        """Return the same coordinates with a factor; what does not depend on it is kept."""
        made = replace(self, factor=factor)
        for name in ("gram", "is_semidefinite", "paths_of_points"):
            if name in vars(self):
                vars(made)[name] = vars(self)[name]
        return made

    @cached_property
    def paths_of_points(self) -> FloatArray:
        """B: the edges from the origin to each point, times 2^k; each entry is exact."""
        m = self.data.points
        B = np.zeros((m, m))
        known = np.zeros(m, dtype=bool)
        for start in range(m):
            branch: list[int] = []
            point = start
            while point >= 0 and not known[point]:
                # A branch longer than the tree has points would go round in a circle.
                assert len(branch) < m, "parent is no tree"
                branch.append(point)
                point = int(self.parent[point])
            for child in reversed(branch):
                above = int(self.parent[child])
                if above >= 0:
                    B[child] = B[above]
                B[child, child] = 2.0 ** int(self.exponent[child])
                known[child] = True
        return B

    def paths(self, chosen: Any) -> FloatArray:
        """Return the rows p_c of some pairs; where two paths meet they cancel exactly."""
        B = self.paths_of_points
        found: FloatArray = B[self.data.first[chosen]] - B[self.data.second[chosen]]
        return found

    @cached_property
    def gram(self) -> Enclosure:
        """G, the inner products of the scaled edges, of four stored numbers each."""
        stored = self.data.gram
        assert stored is not None
        m = len(stored)
        # Row and column m are those of the origin.
        G = np.zeros((m + 1, m + 1))
        G[:m, :m] = stored
        child = np.arange(m)
        above = np.where(self.parent < 0, m, self.parent)

        # Error-free sums (Knuth): the four numbers cancel where points are near.
        one, lost_one = _two_sum(G[np.ix_(child, child)], -G[np.ix_(child, above)])
        two, lost_two = _two_sum(G[np.ix_(above, above)], -G[np.ix_(above, child)])
        total, lost = _two_sum(one, two)
        rest = lost_one + lost_two + lost
        mid = total + rest
        size = np.abs(lost_one) + np.abs(lost_two) + np.abs(lost)
        rad = UNIT_ROUNDOFF * np.abs(mid) + 4 * UNIT_ROUNDOFF * size
        # By both powers of two at once: one of them alone may underflow.
        exponent = -(self.exponent[:, None] + self.exponent)
        mid = np.ldexp(mid, exponent)
        rad = np.ldexp(rad * (1 + 8 * UNIT_ROUNDOFF), exponent) + 2 * ETA
        return Enclosure((mid + mid.T) / 2, np.maximum(rad, rad.T) * 2)

    @cached_property
    def kernel(self) -> Enclosure:
        """G, or all that a stored G with negative eigenvalues may stand for."""
        if self.is_semidefinite:
            return self.gram
        # |N_ef| <= ||N||_F.
        return Enclosure(self.gram.mid, self.gram.rad + self.remainder)

    @cached_property
    def is_semidefinite(self) -> bool:
        """Whether the stored matrix is proven positive semidefinite."""
        G = self.gram
        return is_positive_semidefinite(G.mid, radius_norm(G.rad))

    @cached_property
    def R(self) -> Enclosure:
        """The factor: as proposed, or the edges of the features."""
        if self.data.features is None:
            assert self.factor is not None
            return Enclosure.of(self.factor)
        Phi = self.data.features
        m = len(Phi)
        padded = np.vstack([Phi, np.zeros(Phi.shape[1])])
        above = np.where(self.parent < 0, m, self.parent)
        exponent = -self.exponent[:, None]
        edges = Enclosure.of(Phi) - padded[above]
        mid = np.ldexp(edges.mid, exponent)
        # A power of two is exact but for underflow.
        rad = np.ldexp(edges.rad, exponent) + 2 * ETA
        return Enclosure(mid.T, rad.T)

    @cached_property
    def remainder(self) -> float:
        """A bound of ||G - R'R||_F, for the G that a stored one stands for."""
        if self.data.gram is None:
            return 0.0
        R = self.R.mid
        E = self.gram - enclose_congruence(R.T, np.eye(len(R)))
        distance = float(enclose_norm(E).upper)
        if self.is_semidefinite:
            return distance
        # 0 <= N <= -floor I adds at most its trace, over all edges.
        scale = 4.0 ** -self.exponent.astype(float)
        lengths = np.where(self.parent < 0, 1.0, 2.0) * scale
        return sum_up(distance, product_up(total_up(lengths), -self.data.floor))

    def weighted(self, weights: FloatArray) -> Enclosure:
        """Return sum_c w_c p_c p_c'."""
        m = self.data.points
        used = np.flatnonzero(weights)
        mid = np.zeros((m, m))
        terms = np.zeros((m, m))
        for start in range(0, used.size, ROWS_AT_A_TIME):
            rows = used[start : start + ROWS_AT_A_TIME]
            P = self.paths(rows)
            mid += P.T @ (P * weights[rows, None])
            P = np.abs(P)
            terms += P.T @ (P * np.abs(weights[rows, None]))
        # Powers of two: the products are exact, and the sums are Lemma E2 in any order.
        rad = 2 * gamma(used.size + 8) * terms
        return Enclosure((mid + mid.T) / 2, np.maximum(rad, rad.T))

    def log_det(self, A: Enclosure) -> Enclosure:
        """Return log det(I + AG), of infinite radius where I + RAR' may not be definite."""
        return enclose_relative_log_det(A, self.R, self.remainder)

    def distances(self, change: FloatArray) -> Enclosure:
        """Return the squared distances of all pairs in G + GQG, or of features in R'WR."""
        data = self.data
        if data.gram is None:
            K = enclose_congruence(self.R.T, change)
        else:
            K = self.kernel + enclose_congruence(self.kernel, change)
        everything = enclose_congruence(self.paths_of_points, K)
        diagonal = Enclosure(everything.mid.diagonal(), everything.rad.diagonal())
        i = data.first
        j = data.second
        coarse = diagonal[i] + diagonal[j] - everything[i, j] * 2.0
        mid = np.array(coarse.mid)
        rad = np.array(coarse.rad)

        # Where points are near, or bounds tight, by v = Gp (or Rp): little cancels there.
        doubtful = rad > COARSE_SHARE * np.minimum(data.target, np.abs(mid))
        if data.is_hard:
            doubtful &= ~self.within(coarse)
        again = np.flatnonzero(doubtful)
        for start in range(0, again.size, ROWS_AT_A_TIME):
            rows = again[start : start + ROWS_AT_A_TIME]
            found = self._distances_by_paths(rows, change)
            mid[rows] = found.mid
            rad[rows] = found.rad
        return Enclosure(mid, rad)

    def _distances_by_paths(self, rows: IntArray, change: FloatArray) -> Enclosure:
        """p'Gp + v'Qv of some pairs, or of features v'Wv."""
        P = self.paths(rows)
        if self.data.gram is None:
            return _squares(_sparse_product(P, self.R.T), change)
        v = _sparse_product(P, self.kernel)
        given = Enclosure(v.mid * P, v.rad * np.abs(P)).sum(axis=1)
        return given + _squares(v, change)

    def within(self, d: Enclosure) -> npt.NDArray[np.bool_]:
        """Which pairs are proven to satisfy their bounds."""
        data = self.data
        below = (data.sign > 0) & (d.upper <= data.target)
        above = (data.sign < 0) & (d.lower >= data.target)
        return cast(npt.NDArray[np.bool_], below | above)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum and what it lost, exactly (Knuth)."""
    total = a + b
    b_seen = total - a
    lost = (a - (total - b_seen)) + (b - b_seen)
    return total, lost


def _sparse_product(P: FloatArray, G: Enclosure) -> Enclosure:
    """P G for paths P, whose few entries not zero are powers of two: only sums round."""
    terms = int(np.count_nonzero(P, axis=1).max(initial=0))
    size = np.abs(P)
    # Rounded up where it underflows: a power of two may be large.
    rad = size @ (G.rad + gamma(terms + 4) * np.abs(G.mid) + ETA)
    return Enclosure(P @ G.mid, rad * (1 + 2 * gamma(len(G) + 8)) + (2 * terms + 2) * ETA)


def _squares(v: Enclosure, Q: FloatArray) -> Enclosure:
    """v'Qv of each row."""
    n = len(Q)
    half = v.mid @ Q
    size = np.abs(v.mid)
    # gamma_2n |v|'|Q||v|, and what the radius of v adds on either side.
    inner = (gamma(2 * n + 8) * size + 2 * v.rad + ETA) @ np.abs(Q) + 4 * n * ETA
    rad = np.sum(inner * (size + v.rad), axis=1)
    rad = rad * (1 + 4 * gamma(2 * n + 16)) + 4 * n * ETA
    return Enclosure(np.sum(half * v.mid, axis=1), rad)


def _norm(A: Enclosure | FloatArray) -> float:
    return float(enclose_norm(A).upper)


def _total(terms: Enclosure) -> Enclosure:
    """The sum of a vector, its midpoint correctly rounded."""
    spread = float(np.sum(terms.rad)) * (1 + gamma(terms.size + 2))
    if not (math.isfinite(spread) and np.isfinite(terms.mid).all()):
        return NOTHING
    return enclose_sum([*map(float, terms.mid), Enclosure(0.0, spread)])


# ---- the two bounds


def dual_bound(coordinates: EdgeCoordinates, multipliers: FloatArray) -> Enclosure:
    """Return the dual value of multipliers; no feasible kernel falls below its lower end."""
    data = coordinates.data
    if not (np.isfinite(multipliers).all() and (multipliers >= 0).all()):
        return NOTHING
    signed = data.sign * multipliers
    used = np.flatnonzero(multipliers)
    linear = Enclosure.of(signed[used]) * data.target[used]
    if not data.is_hard:
        left = 1.0 - linear / data.weight
        # -log is the price where 1 - s lambda t / w is positive; beyond, the bound is -inf.
        if not np.all(left.lower > 0):
            return NOTHING
        linear = left.log() * -data.weight
    return coordinates.log_det(coordinates.weighted(signed)) - _total(linear)


def primal_bound(coordinates: EdgeCoordinates, change: FloatArray) -> Enclosure:
    """Return the objective of a feasible kernel; of infinite radius where none is proven.

    `change` is Q, or for features W.
    """
    if not np.isfinite(change).all() or (change != change.T).any():
        return NOTHING
    if coordinates.data.gram is None:
        divergence = _total(Enclosure.of(change.diagonal())) - float(len(change))
        divergence = divergence - enclose_log_det(change).value
    else:
        G = coordinates.gram
        by_rows = (G * change).sum(axis=1)
        trace = _total(by_rows) + Enclosure(0.0, _missing_trace(coordinates, change))
        divergence = trace - coordinates.log_det(Enclosure.of(change))
    if not math.isfinite(divergence.rad):
        return NOTHING
    return divergence + _price(coordinates, coordinates.distances(change))


def _missing_trace(coordinates: EdgeCoordinates, Q: FloatArray) -> float:
    """A bound of tr(QN), 0 where the stored matrix is positive semidefinite."""
    if coordinates.is_semidefinite:
        return 0.0
    return product_up(coordinates.remainder, _norm(Q))


def _price(coordinates: EdgeCoordinates, d: Enclosure) -> Enclosure:
    """What the bounds cost: 0 or everything where they are hard, else the price of moving them."""
    data = coordinates.data
    if data.is_hard:
        return Enclosure(0.0, 0.0) if coordinates.within(d).all() else NOTHING
    q = d / data.target
    # u - log u - 1 falls up to u = 1 and rises from there on; u moves no further than it must.
    u = np.where(data.sign > 0, np.maximum(q.upper, 1.0), np.minimum(q.lower, 1.0))
    if not (np.isfinite(u).all() and (u > 0).all()):
        return NOTHING
    moved = Enclosure.of(u[u != 1])
    return _total(moved - moved.log() - 1.0) * data.weight


def proven_interval(
    coordinates: EdgeCoordinates,
    multipliers: FloatArray,
    change: FloatArray,
    kernel: BallKernel,
    *,
    in_balls: bool = True,
) -> tuple[float, float]:
    """Return proven bounds of the optimum, infinite where nothing is proven.

    Parameters
    ----------
    coordinates
        The problem in its coordinates.
    multipliers
        lambda, for each pair.
    change
        Q, or of features W; empty where there is none.
    kernel
        About the same kernel as `change` makes, for balls.
    in_balls
        Whether balls are tried where floats prove too little of a few points.
    """
    data = coordinates.data
    few = in_balls and data.gram is not None and data.points <= MAX_BALL_POINTS
    lower = dual_bound(coordinates, multipliers)
    if few and _is_wide(lower):
        lower = _narrower(lower, precise_dual_bound(data, multipliers))
    upper = NOTHING
    if change.size:
        upper = primal_bound(coordinates, change)
    if few and change.size and _is_wide(upper):
        upper = _narrower(upper, precise_primal_bound(data, multipliers, kernel))
    return float(lower.lower), float(upper.upper)


def _is_wide(value: Enclosure) -> bool:
    return not value.rad <= WIDE_SHARE * (1 + abs(value.mid))


def _narrower(one: Enclosure, other: Enclosure) -> Enclosure:
    return one if one.rad <= other.rad else other


# ---- the same in balls


def precise_dual_bound(data: PairData, multipliers: FloatArray) -> Enclosure:
    """Return the dual value by log det(G + GAG) - log det G, if the stored G is definite."""
    if not (np.isfinite(multipliers).all() and (multipliers >= 0).all()):
        return NOTHING
    with working_bits(BITS):
        G = ball_matrix(cast(FloatArray, data.gram))
        given = definite_log_det(G)
        changed = definite_log_det(G + G * _ball_laplacian(data, multipliers) * G)
        if given is None or changed is None:
            return NOTHING
        value = changed - given
        for s, x, t in _pairs(data, multipliers):
            if data.is_hard:
                value -= s * x * t
                continue
            left = 1 - s * x * t / data.weight
            if not left > 0:
                return NOTHING
            value += data.weight * left.log()
        return enclosure_of_ball(value)


@dataclass(frozen=True, eq=False)
class BallKernel:
    """(1 - t) (L - LCL) + tK_0 with L = (G^-1 + A)^-1 of the multipliers.

    Parameters
    ----------
    correction
        The weights of C, for each pair.
    other
        tK_0 on the points; empty where t = 0.
    share
        t.
    """

    correction: FloatArray
    other: FloatArray
    share: float

    def formed(self, data: PairData, multipliers: FloatArray) -> Any | None:
        """Return the kernel in balls; None where there is none."""
        arrays = (multipliers, self.correction, self.other, np.array(self.share))
        if not all(np.isfinite(array).all() for array in arrays):
            return None
        G = ball_matrix(cast(FloatArray, data.gram))
        one = ball_matrix(np.eye(data.points))
        try:
            L = (one + G * _ball_laplacian(data, multipliers)).solve(G)
        except ZeroDivisionError:
            return None
        K = L - L * _ball_laplacian(data, self.correction) * L
        if not self.other.size:
            return K
        # Symmetric, as the elimination and the distances take the lower triangle for the whole.
        other = np.tril(self.other) + np.tril(self.other, -1).T
        return K * (1 - ball_matrix(np.array([[self.share]]))[0, 0]) + ball_matrix(other)


def precise_primal_bound(data: PairData, multipliers: FloatArray, kernel: BallKernel) -> Enclosure:
    """Return the objective of a kernel in balls, if it is definite and feasible."""
    with working_bits(BITS):
        G = ball_matrix(cast(FloatArray, data.gram))
        K = kernel.formed(data, multipliers)
        given = definite_log_det(G)
        if K is None or given is None:
            return NOTHING
        found = definite_log_det(K)
        if found is None:
            return NOTHING
        value = G.solve(K).trace() - (found - given) - data.points
        for s, t, d in zip(data.sign, data.target.tolist(), _ball_distances(data, K), strict=True):
            if (s > 0 and d <= t) or (s < 0 and d >= t):
                continue
            # The bound moves at a price that rises with the distance from it.
            u = (d / t).upper() if s > 0 else (d / t).lower()
            if data.is_hard or not u > 0:
                return NOTHING
            value += data.weight * (u - u.log() - 1)
        return enclosure_of_ball(value)


def precise_distances(
    data: PairData, multipliers: FloatArray, kernel: BallKernel
) -> Enclosure | None:
    """Return the squared distances of all pairs in the same kernel; None where there is none."""
    with working_bits(BITS):
        K = kernel.formed(data, multipliers)
        if K is None:
            return None
        found = [enclosure_of_ball(d) for d in _ball_distances(data, K)]
    return Enclosure(np.array([d.mid for d in found]), np.array([d.rad for d in found]))


def _pairs(data: PairData, weights: FloatArray) -> list[tuple[int, Any, Any]]:
    """Sign, weight and bound of the pairs whose weight is not 0, as balls."""
    from flint import arb

    return [
        (int(data.sign[c]), arb(float(weights[c])), arb(float(data.target[c])))
        for c in np.flatnonzero(weights)
    ]


def _ball_laplacian(data: PairData, weights: FloatArray) -> Any:
    """sum_c s_c w_c z_c z_c'."""
    from flint import arb, arb_mat

    m = data.points
    A = [[arb(0)] * m for _ in range(m)]
    for c in np.flatnonzero(weights):
        w = arb(float(data.sign[c] * weights[c]))
        i = int(data.first[c])
        j = int(data.second[c])
        A[i][i] += w
        A[j][j] += w
        A[i][j] -= w
        A[j][i] -= w
    return arb_mat(A)


def _ball_distances(data: PairData, K: Any) -> list[Any]:
    rows = K.tolist()
    ends = zip(data.first.tolist(), data.second.tolist(), strict=True)
    return [rows[i][i] + rows[j][j] - 2 * rows[max(i, j)][min(i, j)] for i, j in ends]


# ---- infeasibility


def ray_flaw(data: PairData, ray: FloatArray) -> str:
    """Return what is wrong with multipliers; "" if they prove that no kernel is feasible."""
    if ray.shape != data.target.shape or not np.isfinite(ray).all():
        return _NO_RAY
    if (ray < 0).any() or not ray.any():
        return _NO_RAY
    used = np.flatnonzero(ray)
    apart = (data.sign[used] < 0).all()
    if apart and all(data.are_equal(int(data.first[c]), int(data.second[c])) for c in used):
        return ""
    if not data.is_hard:
        return "with slack every kernel is feasible that parts dissimilar points"

    signed = [Fraction(float(data.sign[c])) * Fraction(float(ray[c])) for c in used]
    bounds = (Fraction(float(t)) for t in data.target[used])
    total = sum((w * t for w, t in zip(signed, bounds, strict=True)), Fraction(0))
    if total > 0:
        return "the sum of s_c x_c is not negative"
    if total == 0:
        trace = sum(
            (w * data.squared_distance(int(c)) for w, c in zip(signed, used, strict=True)),
            Fraction(0),
        )
        if trace <= 0:
            return "the sum of s_c x_c is not negative"
    if _is_laplacian_semidefinite(data, ray, used) or _is_semidefinite_on_features(data, ray, used):
        return ""
    return "the matrix of the multipliers is not proven positive semidefinite"


def _is_laplacian_semidefinite(data: PairData, ray: FloatArray, used: IntArray) -> bool:
    """Whether A = sum_c s_c lambda_c z_c z_c' is proven positive semidefinite."""
    points, ends = np.unique([data.first[used], data.second[used]], return_inverse=True)
    i, j = ends.reshape(2, -1)
    # A1 = 0: A is semidefinite if it is without the row and column of one point.
    n = len(points)
    Z = np.zeros((used.size, n))
    rows = np.arange(used.size)
    Z[rows, i] = 1.0
    Z[rows, j] -= 1.0
    Z = Z[:, :-1]
    weights = data.sign[used] * ray[used]
    mid = Z.T @ (Z * weights[:, None])
    size = np.abs(Z).T @ (np.abs(Z) * np.abs(weights)[:, None])
    if is_positive_semidefinite(mid, radius_norm(2 * gamma(used.size + 8) * size)):
        return True
    # Singular, or nearly: rational numbers tell.
    return n <= MAX_RATIONAL_ORDER and _is_rational_laplacian_semidefinite(weights, i, j, n)


def _is_rational_laplacian_semidefinite(
    weights: FloatArray, i: IntArray, j: IntArray, size: int
) -> bool:
    """Whether sum_c w_c (e_i - e_j)(e_i - e_j)' is positive semidefinite, in rational numbers."""
    from flint import fmpq

    A = [[fmpq(0)] * size for _ in range(size)]
    for w, a, b in zip(weights.tolist(), i.tolist(), j.tolist(), strict=True):
        exact = fmpq(*w.as_integer_ratio())
        A[a][a] += exact
        A[b][b] += exact
        A[a][b] -= exact
        A[b][a] -= exact
    return _is_rational_semidefinite(A)


def _is_semidefinite_on_features(data: PairData, ray: FloatArray, used: IntArray) -> bool:
    """Whether Phi'A Phi is positive semidefinite, in rational numbers."""
    if data.features is None or data.features.shape[1] > MAX_RATIONAL_ORDER:
        return False
    from flint import fmpq, fmpq_mat

    def exact(x: float) -> Any:
        return fmpq(*x.as_integer_ratio())

    first = data.features[data.first[used]].tolist()
    second = data.features[data.second[used]].tolist()
    steps = [
        [exact(a) - exact(b) for a, b in zip(*ends, strict=True)]
        for ends in zip(first, second, strict=True)
    ]
    weights = [exact(w) for w in (data.sign[used] * ray[used]).tolist()]
    scaled = [[w * z for z in row] for w, row in zip(weights, steps, strict=True)]
    product = fmpq_mat(steps).transpose() * fmpq_mat(scaled)
    return _is_rational_semidefinite(product.tolist())


def _is_rational_semidefinite(A: list[list[Any]]) -> bool:
    """Whether a symmetric matrix of rationals is positive semidefinite: Gauss with diagonal pivots.

    >>> from flint import fmpq
    >>> one, two = fmpq(1), fmpq(2)
    >>> _is_rational_semidefinite([[one, -one], [-one, one]])
    True
    >>> _is_rational_semidefinite([[one, -two], [-two, one]])
    False
    """
    left = list(range(len(A)))
    while left:
        if any(A[k][k] < 0 for k in left):
            return False
        pivot = next((k for k in left if A[k][k] > 0), None)
        # A semidefinite matrix of zero diagonal is zero.
        if pivot is None:
            return all(A[a][b] == 0 for a in left for b in left)
        left.remove(pivot)
        row = A[pivot]
        touched = [b for b in left if row[b] != 0]
        for a in touched:
            share = A[a][pivot] / row[pivot]
            for b in touched:
                A[a][b] -= share * row[b]
    return True


_NO_RAY = "a ray must hold one finite multiplier for each pair, none negative, not all zero"
