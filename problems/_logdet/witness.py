"""What is proposed to the proof of a LogDet problem with pairs: coordinates, and a feasible kernel.

**A feasible W** is made from the W of any multipliers. Near the optimum, with S the violated pairs,
and those that the move itself would violate, and C = sum_c s_c mu_c z_c z_c' / t_c,

    W' = W - W R C R' W,    H_SS mu = s (q - 1) + a margin for rounding

moves exactly these onto their bounds. Far from it, W' = (1 - t) W + t W_0 with a W_0 that is
strictly feasible: points that similar pairs connect fall together, the others are far apart. There
is no such W_0 where similar pairs connect a dissimilar one. With slack every W > 0 is feasible, at
a price.

**As a change of the kernel**, W = I + RQR' has Q = -(A - AKA) - (I - AK) C (I - KA): no inverse of R,
which may have none.

**Coordinates**: a tree of shortest edges (Prim), and the Cholesky factor of the scaled edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from klopt.arrays import EPS, FloatArray
from klopt.kernels.gram import Gram
from klopt.model.functions import IntArray
from klopt.problems._logdet.constraints import DistanceConstraints, PairEvaluation
from klopt.problems._logdet.proof import (
    BITS,
    BallKernel,
    EdgeCoordinates,
    PairData,
    dual_bound,
    precise_distances,
)
from klopt.proof.balls import ball_matrix, elimination, working_bits
from klopt.proof.enclosure import Enclosure

__all__ = [
    "FeasibleKernel",
    "edge_coordinates",
    "factor_of_points",
    "feasible_kernel",
    "proposed_kernel",
    "proven_multipliers",
]

MAX_TIGHT_PAIRS = 3000
"""Up to this many pairs are moved onto their bounds by a system of equations."""
MAX_TIGHTENINGS = 8
"""The number of times that pairs may join those that are moved."""
NEAR_BOUND = 1e-6
"""Pairs with a multiplier whose ratio is this near to 1 are moved onto their bounds, too."""
SHORTENINGS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
"""Multipliers at the verge of the domain are shortened by such a share until rounding allows."""
MAX_PRECISE_POINTS = 100
"""Up to this many points are worth the time of balls."""
MAX_MARGIN = 1e-10
"""Distances known worse than this, as a share of their bound, are worth balls for few points."""
USUAL_MARGIN = 1e-12
"""A share of the bounds that the proof of most kernels does not exceed by its rounding."""
MARGIN_SHARE = 1e-3
"""A kernel that is moved again is moved by this share of the largest violation more."""
MAX_MARGINS = 6
"""The number of times that a kernel is moved by what the proof has found missing."""


# ---- coordinates


def edge_coordinates(data: PairData) -> EdgeCoordinates:
    """Return coordinates along a tree of shortest edges, with a factor."""
    parent = _shortest_tree(data)
    unscaled = EdgeCoordinates(data, parent, np.zeros(data.points, dtype=np.intp))
    if data.gram is None:
        R = unscaled.R.mid
        squares = np.einsum("ij,ij->j", R, R)
    else:
        squares = unscaled.gram.mid.diagonal()
    known = np.isfinite(squares) & (squares > 0)
    exponent = np.where(known, np.round(np.log2(np.where(known, squares, 1.0)) / 2), 0.0)
    coordinates = replace(unscaled, exponent=exponent.astype(np.intp))
    if data.gram is None:
        return coordinates
    if not coordinates.is_semidefinite:
        # Edges that are rounding are not enlarged: their scale is that of the others.
        noise = max(data.points, 32) * EPS * float(data.gram.diagonal().max())
        exponent[squares <= noise] = exponent[squares > noise].max(initial=0.0)
        coordinates = replace(unscaled, exponent=exponent.astype(np.intp))
    return coordinates.with_factor(_factor(coordinates, data.gram))


def _shortest_tree(data: PairData) -> IntArray:
    """The parents in a minimum spanning tree by Prim's rule; the root is the smallest point."""
    m = data.points
    if data.gram is not None:
        G = data.gram
        size = G.diagonal()
        distances = size[:, None] + size - 2 * G
    else:
        Phi = data.features
        assert Phi is not None
        centred = Phi - Phi.mean(axis=0)
        size = np.einsum("ij,ij->i", centred, centred)
        distances = size[:, None] + size - 2 * centred @ centred.T
    root = int(np.argmin(size))
    parent = np.full(m, root)
    parent[root] = -1
    nearest = distances[root].copy()
    nearest[root] = np.inf
    outside = np.ones(m, dtype=bool)
    outside[root] = False
    for _ in range(m - 1):
        joins = int(np.argmin(nearest))
        if not outside[joins]:
            break
        outside[joins] = False
        nearest[joins] = np.inf
        closer = outside & (distances[joins] < nearest)
        parent[closer] = joins
        nearest[closer] = distances[joins][closer]
    return parent


def _factor(coordinates: EdgeCoordinates, gram: FloatArray) -> FloatArray:
    """R with R'R about the Gram matrix of the edges."""
    if coordinates.is_semidefinite:
        return np.asarray(np.linalg.cholesky(coordinates.gram.mid).T)
    if len(gram) <= MAX_PRECISE_POINTS:
        precise = _precise_factor(coordinates, gram)
        if precise is not None:
            return precise
    # Singular up to rounding: the pivoted factor of the points has the rank that is seen.
    if not gram.any():
        return np.zeros((1, len(gram)))
    R = Gram.of(gram, "K0 on the points in pairs").factor()
    padded = np.column_stack([R, np.zeros(len(R))])
    edges = R - padded[:, coordinates.parent]
    return np.asarray(edges * 2.0 ** -coordinates.exponent.astype(float))


def _precise_factor(coordinates: EdgeCoordinates, gram: FloatArray) -> FloatArray | None:
    """The factor of a stored matrix that is positive definite, but by less than rounding."""
    with working_bits(BITS):
        G = ball_matrix(gram)
        # Edges in terms of points: the inverse of the paths, which is a difference of two.
        D = np.eye(len(gram))
        below = np.flatnonzero(coordinates.parent >= 0)
        D[below, coordinates.parent[below]] = -1.0
        edges = ball_matrix(D * 2.0 ** -coordinates.exponent.astype(float)[:, None])
        return nearest_factor(edges * G * edges.transpose())


def nearest_factor(A: Any) -> FloatArray | None:
    """Return R, upper triangular and rounded to floats, with R'R about A; None as above.

    >>> with working_bits(100):
    ...     nearest_factor(ball_matrix(np.array([[4.0, 2.0], [2.0, 5.0]])))
    array([[2., 1.],
           [0., 2.]])
    """
    eliminated = elimination(A)
    if eliminated is None:
        return None
    n = len(eliminated)
    R = np.zeros((n, n))
    for k in range(n):
        root = eliminated[k][k].sqrt()
        for i in range(k, n):
            R[k, i] = float((eliminated[i][k] / root).mid())
    return R


def factor_of_points(coordinates: EdgeCoordinates) -> FloatArray:
    """Return the points as columns, sums of edges: R'R is the given kernel on them."""
    if coordinates.data.features is not None:
        return np.ascontiguousarray(coordinates.data.features.T)
    return np.ascontiguousarray(coordinates.R.mid @ coordinates.paths_of_points.T)


# ---- a feasible kernel


@dataclass(frozen=True, eq=False)
class FeasibleKernel:
    """A W that is feasible up to rounding, its objective, and how it was made.

    Parameters
    ----------
    value
        The objective.
    W
        The kernel in the coordinates of R.
    evaluation
        The multipliers that it was made from.
    moved
        mu, for which W was moved.
    share, other
        t and W_0; None where W was not mixed.
    """

    value: float
    W: FloatArray
    evaluation: PairEvaluation
    moved: FloatArray
    share: float = 0.0
    other: FloatArray | None = None


def feasible_kernel(
    evaluation: PairEvaluation, margin: FloatArray | float = 0.0, *, measured: bool = True
) -> FeasibleKernel | None:
    """Return a feasible W near the one of the evaluation, None where none was found.

    Parameters
    ----------
    evaluation
        The multipliers that it is made from.
    margin
        How much more than by rounding each ratio is kept inside its bound.
    measured
        Whether W is measured here; a proof does so itself.
    """
    constraints = evaluation.constraints
    # No W separates equal points, at no finite price either.
    if constraints.inseparable.size:
        return None
    if evaluation.L is None:
        # Outside the domain there is no W; at x = 0, which is inside, it is I.
        if not evaluation.x.any():
            return None
        origin = PairEvaluation.at(constraints, np.zeros_like(evaluation.x))
        return feasible_kernel(origin, margin, measured=measured)
    if not constraints.is_hard:
        return _with_slack(evaluation)

    # Whatever a move promises is measured on the W that it made.
    for move in (_tightened, _mixed):
        found = move(evaluation, margin)
        if found is None or not np.isfinite(found.value):
            continue
        if not measured or _is_feasible(found.W, constraints):
            return found
    return None


def _is_feasible(W: FloatArray, constraints: DistanceConstraints) -> bool:
    """Whether W satisfies every constraint, as measured on itself and up to rounding."""
    K = constraints.centred.T @ W @ constraints.centred
    close = constraints.close_pairs
    Rz = constraints.close_differences
    q = constraints.ratios(K)
    q[close] = np.einsum("ij,ij->j", Rz, W @ Rz) / constraints.target[close]
    return bool((constraints.violation(q) <= constraints.ratio_rounding(K)).all())


def _with_slack(evaluation: PairEvaluation) -> FeasibleKernel:
    """W as it is; the targets move as far as they must."""
    constraints = evaluation.constraints
    q = evaluation.ratios
    u = np.where(constraints.sign > 0, np.maximum(q, 1.0), np.minimum(q, 1.0))
    with np.errstate(divide="ignore"):
        price = float((u - np.log(u) - 1).sum())
    W = _inverse(evaluation)
    value = _divergence(W) + constraints.weight * price
    return FeasibleKernel(value, W, evaluation, np.zeros(constraints.size))


def _tightened(evaluation: PairEvaluation, margin: FloatArray | float) -> FeasibleKernel | None:
    """W - W R C R' W, which moves the violated pairs onto their bounds."""
    from scipy.linalg.lapack import dposv

    constraints = evaluation.constraints
    K = evaluation.kernel
    rounding = constraints.ratio_rounding(K) + margin
    violation = constraints.violation(evaluation.ratios)
    # Pairs with multipliers belong on their bounds, where they nearly are.
    chosen = violation > np.where(evaluation.x > 0, -NEAR_BOUND, -rounding)
    mu = np.zeros(constraints.size)
    for _ in range(MAX_TIGHTENINGS):
        tight = np.flatnonzero(chosen)
        # The system takes the cube of their number.
        if tight.size > MAX_TIGHT_PAIRS:
            return None
        if tight.size:
            wanted = (violation + 2 * rounding)[tight]
            _, step, failed = dposv(evaluation.hessian(tight), wanted, overwrite_a=1)
            if failed:
                return None
            mu[tight] += step

        C = constraints.laplacian(mu)
        violation = constraints.violation(constraints.ratios(K - K @ C @ K))
        if (violation <= -rounding / 2).all():
            return _moved(evaluation, C, mu)
        # The move itself has violated others: they join.
        chosen = chosen | (violation > -rounding / 2)
    return None


def _moved(evaluation: PairEvaluation, C: FloatArray, mu: FloatArray) -> FeasibleKernel | None:
    """W - W R C R' W = L^-T (I - Y C Y') L^-1, if it is positive definite."""
    from scipy.linalg import solve_triangular

    assert evaluation.L is not None
    assert evaluation.Y is not None
    Y = evaluation.Y
    try:
        root = np.linalg.cholesky(np.eye(len(Y)) - Y @ C @ Y.T)
    except np.linalg.LinAlgError:
        return None
    half = solve_triangular(evaluation.L, root, lower=True, trans="T")
    W: FloatArray = half @ half.T
    return FeasibleKernel(_divergence(W), W, evaluation, mu)


def _mixed(evaluation: PairEvaluation, margin: FloatArray | float) -> FeasibleKernel | None:
    """The first W on the way to W_0 that satisfies every constraint."""
    constraints = evaluation.constraints
    W_0 = _strictly_feasible(constraints)
    if W_0 is None:
        return None
    margin = 2 * constraints.ratio_rounding(evaluation.kernel) + margin
    K_0 = constraints.centred.T @ W_0 @ constraints.centred
    spare = -constraints.sign * (constraints.ratios(K_0) - 1)
    if not (spare > margin).all():
        return None

    excess = np.maximum(constraints.violation(evaluation.ratios) + margin, 0.0)
    t = float(np.max(excess / (excess + spare), initial=0.0))
    t = min(1.0, t * (1 + 4 * EPS))
    W = (1 - t) * _inverse(evaluation) + t * W_0
    return FeasibleKernel(_divergence(W), W, evaluation, np.zeros(constraints.size), t, W_0)


def _strictly_feasible(constraints: DistanceConstraints) -> FloatArray | None:
    """W_0: points that similar pairs connect fall together, the others are far apart."""
    R = constraints.R
    similar = constraints.sign > 0
    # Only a square R can put the points anywhere.
    if R.shape[0] != R.shape[1]:
        return None
    component = constraints.components
    separate = component[constraints.first] != component[constraints.second]
    if not separate[~similar].all():
        return None

    given = constraints.ratios(constraints.centred.T @ constraints.centred)
    shrink = min(1.0, 0.5 / float(np.max(given[similar], initial=0.5)))
    apart = float(np.max(constraints.target[~similar], initial=0.0))
    # A similar pair never joins two components, so that only their size is left to choose.
    G = np.sqrt(apart) * np.equal.outer(np.arange(component.max() + 1), component)
    try:
        half = np.linalg.solve(R.T, G.T)
    except np.linalg.LinAlgError:
        return None
    W_0: FloatArray = half @ half.T + shrink * np.eye(len(R))
    return W_0


def _inverse(evaluation: PairEvaluation) -> FloatArray:
    """W = M^-1."""
    from scipy.linalg import solve_triangular

    assert evaluation.L is not None
    half = solve_triangular(evaluation.L, np.eye(len(evaluation.L)), lower=True)
    W: FloatArray = half.T @ half
    return W


def _divergence(W: FloatArray) -> float:
    """tr W - log det W - r, rounded upwards; infinite where W is not positive definite."""
    try:
        logs = 2 * np.log(np.linalg.cholesky(W).diagonal())
    except np.linalg.LinAlgError:
        return np.inf
    size = float(W.trace() + np.abs(logs).sum() + len(W))
    return float((W.diagonal() - 1 - logs).sum()) + 8 * EPS * size


# ---- as a change of the stored kernel


def proven_multipliers(coordinates: EdgeCoordinates, multipliers: FloatArray) -> FloatArray:
    """Return the multipliers, shortened where the proof would not tell that they are in the domain."""
    for share in SHORTENINGS:
        shortened = multipliers * (1 - share)
        if np.isfinite(dual_bound(coordinates, shortened).lower):
            return shortened
    return multipliers


@dataclass(frozen=True, eq=False)
class Proposal:
    """A kernel as the proof takes it.

    Parameters
    ----------
    W
        The kernel in the coordinates of R.
    change
        Q, or of features W.
    kernel
        The same for balls.
    """

    W: FloatArray
    change: FloatArray
    kernel: BallKernel


def proposed_kernel(
    evaluation: PairEvaluation,
    coordinates: EdgeCoordinates,
    kept: npt.NDArray[np.bool_],
    *,
    measured: bool = True,
) -> Proposal | None:
    """Return a kernel that is feasible by more than the proof rounds, if that is possible.

    Parameters
    ----------
    evaluation
        The multipliers that it is made from.
    coordinates
        Those of the proof.
    kept
        The pairs of the problem that are constraints of the evaluation.
    measured
        Whether its distances are measured as the proof does; else the usual margin is taken.
    """
    changes: dict[FeasibleKernel, FloatArray] = {}

    def in_floats(found: FeasibleKernel) -> Enclosure | None:
        changes[found] = _kernel_change(found, coordinates)
        return coordinates.distances(changes[found])

    def in_balls(found: FeasibleKernel) -> Enclosure | None:
        data = coordinates.data
        multipliers = _for_all_pairs(evaluation.constraints, evaluation.x, kept)
        correction = _for_all_pairs(evaluation.constraints, found.moved, kept)
        kernel = BallKernel(correction, _mixed_with(found), found.share)
        return precise_distances(data, multipliers, kernel)

    data = coordinates.data
    if measured:
        found, lost = _with_margin(evaluation, kept, in_floats)
    else:
        found = feasible_kernel(evaluation, USUAL_MARGIN, measured=False)
        lost = 0.0
    few = measured and data.gram is not None and data.points <= MAX_PRECISE_POINTS
    if few and (found is None or lost > MAX_MARGIN):
        precise, less = _with_margin(evaluation, kept, in_balls)
        if precise is not None and less < lost:
            found = precise
    if found is None:
        return None
    change = changes.get(found)
    return Proposal(
        W=found.W,
        change=_kernel_change(found, coordinates) if change is None else change,
        kernel=BallKernel(
            _for_all_pairs(evaluation.constraints, found.moved, kept),
            _mixed_with(found),
            found.share,
        ),
    )


def _with_margin(
    evaluation: PairEvaluation,
    kept: npt.NDArray[np.bool_],
    distances: Callable[[FeasibleKernel], Enclosure | None],
) -> tuple[FeasibleKernel | None, float]:
    """A feasible kernel with margins for the rounding of its distances, and the rounding of the tight ones.

    Parameters
    ----------
    evaluation
        The multipliers that it is made from.
    kept
        The pairs of the problem that are constraints of the evaluation.
    distances
        Encloses the squared distances of all pairs of the problem.
    """
    constraints = evaluation.constraints
    found = feasible_kernel(evaluation, measured=False)
    lost = 0.0
    worst = 0.0
    for _ in range(MAX_MARGINS):
        if found is None or not np.isfinite(found.value):
            return None, np.inf
        if not constraints.is_hard:
            break
        d = distances(found)
        if d is None:
            return None, np.inf
        d = d[kept]
        violation = _proven_violation(constraints, d)
        tight = (found.moved != 0) | (violation > 0)
        lost = float(np.max((d.rad / constraints.target)[tight], initial=0.0))
        if (violation <= 0).all():
            break
        if found.other is None:
            worst = max(worst, float(violation.max()))
            spare = d.rad / constraints.target + MARGIN_SHARE * worst
            found = _moved_again(found, violation + spare)
        else:
            margin = 2 * float(violation.max())
            found = feasible_kernel(evaluation, margin, measured=False)
    return found, lost


def _proven_violation(constraints: DistanceConstraints, d: Enclosure) -> FloatArray:
    """The violation at the end of each enclosure that is worse."""
    worst = np.where(constraints.sign > 0, d.upper, d.lower) / constraints.target
    return np.nan_to_num(constraints.violation(worst), nan=0.0, posinf=0.0, neginf=0.0)


def _moved_again(found: FeasibleKernel, violation: FloatArray) -> FeasibleKernel | None:
    """One more step towards the bounds, for the violation that was measured."""
    from scipy.linalg.lapack import dposv

    evaluation = found.evaluation
    tight = np.flatnonzero((found.moved != 0) | (violation > 0))
    if tight.size > MAX_TIGHT_PAIRS:
        return None
    wanted = violation[tight] + EPS
    _, step, failed = dposv(evaluation.hessian(tight), wanted, overwrite_a=1)
    if failed:
        return None
    mu = found.moved.copy()
    mu[tight] += step
    return _moved(evaluation, evaluation.constraints.laplacian(mu), mu)


def _for_all_pairs(
    constraints: DistanceConstraints, x: FloatArray, kept: npt.NDArray[np.bool_]
) -> FloatArray:
    """x / t of the constraints as weights of all pairs of the problem."""
    weights = np.zeros(kept.size)
    weights[kept] = x / constraints.target
    return weights


def _mixed_with(found: FeasibleKernel) -> FloatArray:
    """t K_0 on the points."""
    if found.other is None:
        return np.zeros((0, 0))
    R = found.evaluation.constraints.R
    K_0 = found.share * (R.T @ found.other @ R)
    return (K_0 + K_0.T) / 2


def _kernel_change(found: FeasibleKernel, coordinates: EdgeCoordinates) -> FloatArray:
    """Return Q with W = I + RQR' in the coordinates of edges; of features, W itself."""
    if coordinates.data.gram is None:
        W = found.W
        return (W + W.T) / 2
    constraints = found.evaluation.constraints
    R = coordinates.R.mid
    A = _along_edges(coordinates, constraints, found.evaluation.x)
    C = _along_edges(coordinates, constraints, found.moved)
    M = np.eye(len(R)) + R @ A @ R.T
    K = R.T @ np.linalg.solve(M, R)
    AK = A @ K
    rest = np.eye(len(A)) - AK
    Q = AK @ A - A - rest @ C @ rest.T
    if found.other is not None:
        # W_0 exists for a square R only.
        half = np.linalg.solve(R, found.other - np.eye(len(R)))
        Q = (1 - found.share) * Q + found.share * np.linalg.solve(R, half.T)
    return np.asarray((Q + Q.T) / 2)


def _along_edges(
    coordinates: EdgeCoordinates, constraints: DistanceConstraints, x: FloatArray
) -> FloatArray:
    """sum_c s_c x_c p_c p_c' / t_c."""
    used = np.flatnonzero(x)
    B = coordinates.paths_of_points
    P = B[constraints.first[used]] - B[constraints.second[used]]
    weights = (constraints.sign * x / constraints.target)[used]
    return np.asarray(P.T @ (P * weights[:, None]))
