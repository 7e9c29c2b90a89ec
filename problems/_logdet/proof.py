"""Proofs about LogDet problems with pairs: a feasible kernel above the optimum, or a contradiction among the pairs.

A feasible W from the W of any multipliers, for hard constraints. Near the optimum, with S the
broken pairs, and those that the move itself would break, and C = sum_c s_c mu_c z_c z_c' / t_c,

    W' = W - W R C R' W,    H_SS mu = s (q - 1) + a margin for rounding        moves exactly these onto their bounds.

Far from it, W' = (1 - t) W + t W_0 with a W_0 that keeps every constraint with room to spare:
points that similar pairs connect fall together, the others are far apart. Where a pair must be
apart that similar pairs connect there is no such W_0. With slack every W > 0 is feasible, at a
price.

No W is feasible where some x >= 0 has R A R' >= 0 and sum_c s_c x_c < 0, since 0 <= <W, RAR'> =
sum_c s_c x_c q_c <= sum_c s_c x_c. With R z_c = 0 a dissimilar pair does it alone, also with slack,
whose price -log u is infinite at u = 0. The triangle inequality is the best known case: along a
path of similar pairs of lengths l_e = sqrt(t_e) between two points, S = sum l_e,

    (sum_e d_e)^2 <= S sum_e d_e^2 / l_e,    so that   x_e = S l_e (1 + a),  x_pair = t_pair   does it

where S^2 < t_pair, a small enough. Shortest paths find such a pair. In general the multipliers
diverge along such a ray, and what the similar pairs carry of the dissimilar ones, N <= theta P,
shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klopt.arrays import EPS, FloatArray
from klopt.model.functions import IntArray
from klopt.problems._logdet.data import PairEvaluation, Pairs, distances

__all__ = ["Feasible", "feasible", "ray_at", "ray_flaw", "violated_cycle"]

MOST_TIGHT = 3000
"""Up to so many pairs a system of equations is solved to make them tight."""
ROUNDS = 8
CANCELLED = 1e-12


@dataclass(frozen=True, eq=False)
class Feasible:
    """A feasible W and its objective."""

    value: float
    W: FloatArray


def feasible(spot: PairEvaluation) -> Feasible | None:
    """Return a feasible W near the one of the spot, None where none was found."""
    if spot.pairs.inseparable.size:
        return None
    if spot.L is None:
        return (
            feasible(PairEvaluation.at(spot.pairs, np.zeros_like(spot.x))) if spot.x.any() else None
        )
    if not spot.pairs.is_hard:
        return _with_slack(spot)
    for found in (_tightened(spot), _mixed(spot)):
        if found is not None and np.isfinite(found.value) and _keeps(found.W, spot.pairs):
            return found
    return None


def _keeps(W: FloatArray, pairs: Pairs) -> bool:
    """Whether W satisfies every constraint, as measured on itself and up to rounding."""
    K, (close, Rz) = pairs.centred.T @ W @ pairs.centred, pairs.close
    q = _ratios(K, pairs)
    q[close] = np.einsum("ij,ij->j", Rz, W @ Rz) / pairs.target[close]
    return bool((pairs.sign * (q - 1) <= _rounding(K, pairs)).all())


def _with_slack(spot: PairEvaluation) -> Feasible:
    """W as it is; the targets move as far as they must."""
    pairs, q = spot.pairs, spot.ratios
    stretch = np.where(pairs.sign > 0, np.maximum(q, 1.0), np.minimum(q, 1.0))
    with np.errstate(divide="ignore"):
        price = float((stretch - np.log(stretch) - 1).sum())
    W = _inner(spot)
    return Feasible(_divergence(W) + pairs.weight * price, W)


def _tightened(spot: PairEvaluation) -> Feasible | None:
    from scipy.linalg.lapack import dposv

    pairs, K = spot.pairs, spot.kernel
    rounding = _rounding(K, pairs)
    now = pairs.sign * (spot.ratios - 1)
    chosen, mu = now > -rounding, np.zeros(pairs.size)
    for _ in range(ROUNDS):
        tight = np.flatnonzero(chosen)
        if tight.size > MOST_TIGHT:
            return None
        if tight.size:
            _, step, failed = dposv(spot.block(tight), (now + 2 * rounding)[tight], overwrite_a=1)
            if failed:
                return None
            mu[tight] += step
        C = pairs.laplacian(mu)
        now = pairs.sign * (_ratios(K - K @ C @ K, pairs) - 1)
        if (now <= -rounding / 2).all():
            return _moved(spot, C)
        chosen = chosen | (now > -rounding / 2)
    return None


def _moved(spot: PairEvaluation, C: FloatArray) -> Feasible | None:
    """W - W R C R' W, if it is positive definite."""
    from scipy.linalg import solve_triangular

    assert spot.Y is not None
    assert spot.L is not None
    inside = np.eye(len(spot.Y)) - spot.Y @ C @ spot.Y.T
    try:
        root = np.linalg.cholesky(inside)
    except np.linalg.LinAlgError:
        return None
    half = solve_triangular(spot.L, root, lower=True, trans="T")
    W: FloatArray = half @ half.T
    return Feasible(_divergence(W), W)


def _mixed(spot: PairEvaluation) -> Feasible | None:
    """The first point on the way to W_0 that keeps every constraint."""
    pairs, W_0 = spot.pairs, _ground(spot.pairs)
    if W_0 is None:
        return None
    margin = 2 * _rounding(spot.kernel, pairs)
    broken = pairs.sign * (spot.ratios - 1) + margin
    room = -pairs.sign * (_ratios(pairs.centred.T @ W_0 @ pairs.centred, pairs) - 1)
    if not (room > margin).all():
        return None
    t = float(np.max(np.maximum(broken, 0.0) / (np.maximum(broken, 0.0) + room), initial=0.0))
    t = min(1.0, t * (1 + 4 * EPS))
    W = (1 - t) * _inner(spot) + t * W_0
    return Feasible(_divergence(W), W)


def _ground(pairs: Pairs) -> FloatArray | None:
    """W_0: points that similar pairs connect fall together, the others are far apart; None where that fails."""

    R, similar = pairs.R, pairs.sign > 0
    if R.shape[0] != R.shape[1]:
        return None
    together = _components(pairs)
    far = together[pairs.first] != together[pairs.second]
    if not far[~similar].all():
        return None
    given = _ratios(pairs.centred.T @ pairs.centred, pairs)
    shrink = min(1.0, 0.5 / float(np.max(given[similar], initial=0.5)))
    apart = float(np.max(pairs.target[~similar], initial=0.0))
    # A similar pair never joins two groups, so that only their size is left to choose.
    G = np.sqrt(apart) * np.equal.outer(np.arange(together.max() + 1), together)
    try:
        half = np.linalg.solve(R.T, G.T)
    except np.linalg.LinAlgError:
        return None
    W_0: FloatArray = half @ half.T + shrink * np.eye(len(R))
    return W_0


def violated_cycle(pairs: Pairs) -> tuple[FloatArray, str] | None:
    """Return the ray and the words of a dissimilar pair that similar pairs keep too near, None where there is none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    if (equal := _equal_points(pairs)) is not None or not pairs.is_hard:
        return equal
    together, similar = _components(pairs), pairs.sign > 0
    inside = np.flatnonzero(~similar & (together[pairs.first] == together[pairs.second]))
    if not inside.size:
        return None
    m, edges = pairs.R.shape[1], np.flatnonzero(similar)
    edges = edges[np.argsort(-pairs.target[edges], kind="stable")]
    best = np.full((m, m), -1)  # of repeated pairs the last one written is the tightest
    best[pairs.first[edges], pairs.second[edges]] = best[
        pairs.second[edges], pairs.first[edges]
    ] = edges
    i, j = np.nonzero(best >= 0)
    graph = csr_array((np.sqrt(pairs.target[best[i, j]]), (i, j)), shape=(m, m))
    sources, which = np.unique(pairs.first[inside], return_inverse=True)
    length, before = dijkstra(graph, indices=sources, return_predecessors=True)
    ratio = length[which, pairs.second[inside]] ** 2 / pairs.target[inside]
    worst = int(np.argmin(ratio))
    if not ratio[worst] < 1 - CANCELLED:
        return None
    pair, path = int(inside[worst]), [int(pairs.second[inside[worst]])]
    while path[-1] != pairs.first[pair]:
        path.append(int(before[which[worst], path[-1]]))
    path.reverse()
    steps = best[path[:-1], path[1:]]
    x = np.zeros(pairs.size)
    x[steps] = float(length[which[worst], path[-1]]) * np.sqrt(pairs.target[steps])
    x[steps] *= 1 + (1 / ratio[worst] - 1) / 2
    x[pair] = pairs.target[pair]
    return x / x.max(), _short_cut_words(pairs, path, steps, pair)


def _equal_points(pairs: Pairs) -> tuple[FloatArray, str] | None:
    """A dissimilar pair of points that the given kernel cannot tell apart, and so no kernel of its range can."""
    if not pairs.inseparable.size:
        return None
    pair = pairs.inseparable[0]
    i, j = pairs.names[pairs.first[pair]], pairs.names[pairs.second[pair]]
    words = f"violated pair {i} - {j}: dissimilar, but the given kernel has them at distance 0, and so has every other"
    words += (
        " of its range"
        if pairs.is_hard
        else " of its range: the price of moving the bound there is infinite"
    )
    many = pairs.inseparable.size
    words += "; leave the pair out" if many == 1 else f"; leave out the {many} pairs of this kind"
    return (np.arange(pairs.size) == pair).astype(float), words


def _short_cut_words(pairs: Pairs, path: list[int], steps: IntArray, pair: int) -> str:
    reach = float(np.sqrt(pairs.target[steps]).sum()) ** 2
    path = pairs.names[path].tolist()
    way = " - ".join(map(str, path))
    kind = "triangle" if len(path) == 3 else "pair" if len(path) == 2 else "cycle"
    return (
        f"violated {kind} {way}: along its similar pairs the squared distance is at most {reach:.6g}, "
        f"but the dissimilar pair ({path[0]}, {path[-1]}) asks for at least {pairs.target[pair]:.6g}"
    )


def ray_at(pairs: Pairs, x: FloatArray) -> tuple[FloatArray, str] | None:
    """Return x with its dissimilar part made as small as P - theta N >= 0 asks for, if that still proves something."""
    from scipy.linalg import eigh

    # At an optimum sum s_c x_c = r - tr W: only kernels out of proportion let it fall far.
    if not pairs.is_hard or not np.isfinite(x).all() or not float(pairs.sign @ x) < -len(pairs.R):
        return None
    similar, R = pairs.sign > 0, pairs.centred
    P = R @ pairs.laplacian(np.where(similar, x, 0.0)) @ R.T
    N = -R @ pairs.laplacian(np.where(similar, 0.0, x)) @ R.T
    values, vectors = np.linalg.eigh(P)
    kept = values > 1e-12 * values[-1]
    outside = vectors[:, ~kept].T @ N @ vectors[:, ~kept]
    if not kept.any() or np.abs(outside).max(initial=0.0) > 1e-10 * float(np.abs(N).max()):
        return None
    half = vectors[:, kept] / np.sqrt(values[kept])
    theta = float(eigh(half.T @ N @ half, eigvals_only=True)[-1])
    ray = np.where(similar, x * max(theta, 0.0) * (1 + 1e-9), x)
    if not ray.any() or ray_flaw(pairs, ray / ray.max()):
        return None
    return (
        ray / ray.max(),
        f"{int((ray > 0).sum())} pairs contradict each other: no distances of points can satisfy them",
    )


def ray_flaw(pairs: Pairs, ray: FloatArray) -> str:
    """Return "" if the ray proves that the constraints contradict each other, else what is wrong with it."""
    if ray.shape != (pairs.size,) or not np.isfinite(ray).all() or (ray < 0).any() or not ray.any():
        return "a ray must hold one finite multiplier for each pair, none negative, not all zero"
    if np.isin(np.flatnonzero(ray), pairs.inseparable).all():
        return ""
    if not pairs.is_hard:
        return "with slack every kernel is feasible that parts dissimilar points"
    fall = -float(pairs.sign @ ray)
    if not fall > CANCELLED * float(ray.sum()):
        return "the sum of s_c x_c is not negative"
    R = pairs.centred
    least = float(np.linalg.eigvalsh(pairs.inner(ray))[0])
    terms = float(ray @ np.abs(_ratios(R.T @ R, pairs)))
    # <W, RAR'> >= least tr W: rounding, as long as it would take kernels out of all proportion to
    # undo the proof.
    if least < -64 * EPS * len(R) * terms:
        return f"the matrix of the multipliers has the eigenvalue {least:.1e}, which is negative beyond rounding"
    return ""


def _components(pairs: Pairs) -> IntArray:
    """The group of each point: similar pairs connect."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    similar, m = pairs.sign > 0, pairs.R.shape[1]
    ends = pairs.first[similar], pairs.second[similar]
    graph = csr_array((np.ones(ends[0].size), ends), shape=(m, m))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def _ratios(K: FloatArray, pairs: Pairs) -> FloatArray:
    return distances(K, pairs.first, pairs.second) / pairs.target


def _rounding(K: FloatArray, pairs: Pairs) -> FloatArray:
    """What rounding may do to each ratio."""
    diagonal = K.diagonal()
    rounding: FloatArray = (
        8 * EPS * (1 + (diagonal[pairs.first] + diagonal[pairs.second]) / pairs.target)
    )
    return rounding


def _inner(spot: PairEvaluation) -> FloatArray:
    """W = M^-1."""
    from scipy.linalg import solve_triangular

    assert spot.L is not None
    half = solve_triangular(spot.L, np.eye(len(spot.L)), lower=True)
    W: FloatArray = half.T @ half
    return W


def _divergence(W: FloatArray) -> float:
    """tr W - logdet W - r, rounded upwards; inf where W is not positive definite."""
    try:
        logs = 2 * np.log(np.linalg.cholesky(W).diagonal())
    except np.linalg.LinAlgError:
        return np.inf
    size = float(W.trace() + np.abs(logs).sum() + len(W))
    return float((W.diagonal() - 1 - logs).sum()) + 8 * EPS * size
