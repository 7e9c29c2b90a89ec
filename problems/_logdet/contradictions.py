"""The search for contradictions among pairs: rays that `proof.ray_flaw` then checks exactly.

The triangle inequality is the best known one: along a path of similar pairs of lengths l_e =
sqrt(t_e) between the points of a dissimilar pair, S = sum l_e,

    (sum_e d_e)^2 <= S sum_e d_e^2 / l_e,    so that   x_e = S l_e (1 + a),  x_pair = t_pair

is a ray where S^2 < t_pair, a small enough. At S^2 = t_pair the points must lie on a line, which
only singular kernels do; there the multipliers S / l_e are a ray where they are rational. Shortest
paths find such a pair. In general the
multipliers diverge along a ray, and what the similar pairs carry of the dissimilar ones, N <= theta
P, shows it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.functions import IntArray
from klopt.problems._logdet.constraints import DistanceConstraints
from klopt.problems._logdet.proof import ray_flaw

__all__ = ["Contradiction", "diverging_ray", "violated_cycle"]

Contradiction = tuple[FloatArray, str]
"""A ray that proves that no kernel is feasible, and why in words."""

KERNEL_SHARE = 1e-12
"""Eigenvalues of P below this share of the largest count as 0."""
OUTSIDE_SHARE = 1e-10
"""N is carried by P if what it has outside the range of P is below this share of it."""
MIN_FALL = 1e-12
"""A path is shorter than its pair asks for if its square is, by this share; else they are equal."""
MAX_DENOMINATOR = 1000
"""Ratios of lengths with a larger denominator do not count as rational."""
RAY_MARGIN = 1e-9
"""How much more than theta the similar pairs get, for the rounding of theta."""


def violated_cycle(constraints: DistanceConstraints) -> Contradiction | None:
    """Return the ray of a dissimilar pair that similar pairs keep too near, if there is one."""
    if constraints.inseparable.size:
        return _inseparable_pair(constraints)
    # With slack, a path of similar pairs may grow to any length.
    if not constraints.is_hard:
        return None
    component = constraints.components
    connected = component[constraints.first] == component[constraints.second]
    inside = np.flatnonzero((constraints.sign < 0) & connected)
    if not inside.size:
        return None
    return _shortest_cycle(constraints, inside)


def _shortest_cycle(constraints: DistanceConstraints, inside: IntArray) -> Contradiction | None:
    """The most violated of the dissimilar pairs that similar ones connect."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    m = constraints.R.shape[1]
    edge = _tightest_pairs(constraints)
    i, j = np.nonzero(edge >= 0)
    graph = csr_array((np.sqrt(constraints.target[edge[i, j]]), (i, j)), shape=(m, m))
    sources, which = np.unique(constraints.first[inside], return_inverse=True)
    length, before = dijkstra(graph, indices=sources, return_predecessors=True)

    ratio = length[which, constraints.second[inside]] ** 2 / constraints.target[inside]
    worst = int(np.argmin(ratio))
    if not ratio[worst] < 1 + MIN_FALL:
        return None

    pair = int(inside[worst])
    path = [int(constraints.second[pair])]
    while path[-1] != constraints.first[pair]:
        path.append(int(before[which[worst], path[-1]]))
    path.reverse()
    edges = edge[path[:-1], path[1:]]

    x = np.zeros(constraints.size)
    lengths = np.sqrt(constraints.target[edges])
    shares = float(length[which[worst], path[-1]]) / lengths
    if ratio[worst] < 1 - MIN_FALL:
        shares = shares * (1 + (1 / ratio[worst] - 1) / 2)
    else:
        shares = np.array([_rational(share) for share in shares])
    x[edges] = shares * constraints.target[edges]
    x[pair] = constraints.target[pair]
    # A power of two keeps what is rational.
    x = x / 2.0 ** np.ceil(np.log2(x.max()))
    # On the verge only exact numbers tell.
    if ratio[worst] >= 1 - MIN_FALL and ray_flaw(constraints.data, x / constraints.target):
        return None
    return x, _cycle_words(constraints, path, edges, pair)


def _rational(x: float) -> float:
    """The float next to a fraction of a small denominator that is nearly x.

    >>> _rational(2.0000000000000004)
    2.0
    """
    return float(Fraction(x).limit_denominator(MAX_DENOMINATOR))


def _tightest_pairs(constraints: DistanceConstraints) -> IntArray:
    """The similar pair of each two points, of several the one of the smallest bound; else -1."""
    m = constraints.R.shape[1]
    similar = np.flatnonzero(constraints.sign > 0)
    # Of repeated pairs the last one written stays.
    similar = similar[np.argsort(-constraints.target[similar], kind="stable")]
    i = constraints.first[similar]
    j = constraints.second[similar]
    edge = np.full((m, m), -1)
    edge[i, j] = similar
    edge[j, i] = similar
    return edge


def _cycle_words(
    constraints: DistanceConstraints, path: list[int], edges: IntArray, pair: int
) -> str:
    """What is violated, in words.

    Parameters
    ----------
    constraints
        The pairs.
    path
        The points along the similar pairs.
    edges
        These pairs.
    pair
        The dissimilar pair of the two ends.
    """
    reach = float(np.sqrt(constraints.target[edges]).sum()) ** 2
    names = constraints.names[path].tolist()
    kind = {2: "pair", 3: "triangle"}.get(len(names), "cycle")
    return (
        f"violated {kind} {' - '.join(map(str, names))}: along its similar pairs the squared "
        f"distance is at most {reach:.6g}, but the dissimilar pair ({names[0]}, {names[-1]}) "
        f"asks for at least {constraints.target[pair]:.6g}"
    )


def _inseparable_pair(constraints: DistanceConstraints) -> Contradiction:
    """A dissimilar pair of points that no kernel of the range of the given one separates."""
    count = constraints.inseparable.size
    pair = constraints.inseparable[0]
    i = constraints.names[constraints.first[pair]]
    j = constraints.names[constraints.second[pair]]
    price = "" if constraints.is_hard else ": the price of moving the bound there is infinite"
    advice = "leave the pair out" if count == 1 else f"leave out the {count} pairs of this kind"
    words = (
        f"violated pair {i} - {j}: dissimilar, but the given kernel has them at distance 0, "
        f"and so has every other of its range{price}; {advice}"
    )
    ray = (np.arange(constraints.size) == pair).astype(float)
    return ray, words


def diverging_ray(constraints: DistanceConstraints, x: FloatArray) -> Contradiction | None:
    """Return x with its similar part as small as theta P - N >= 0 allows, if that is a ray."""
    from scipy.linalg import eigh

    if not constraints.is_hard or not np.isfinite(x).all():
        return None
    # At an optimum sum s_c x_c = r - tr W: only kernels out of proportion let it fall far.
    if not float(constraints.sign @ x) < -len(constraints.R):
        return None

    similar = constraints.sign > 0
    R = constraints.centred
    P = R @ constraints.laplacian(np.where(similar, x, 0.0)) @ R.T
    N = -R @ constraints.laplacian(np.where(similar, 0.0, x)) @ R.T
    values, vectors = np.linalg.eigh(P)
    kept = values > KERNEL_SHARE * values[-1]
    outside = vectors[:, ~kept].T @ N @ vectors[:, ~kept]
    # Where N reaches outside the range of P, no theta is large enough.
    outside_size = np.abs(outside).max(initial=0.0)
    if not kept.any() or outside_size > OUTSIDE_SHARE * float(np.abs(N).max()):
        return None

    half = vectors[:, kept] / np.sqrt(values[kept])
    theta = float(eigh(half.T @ N @ half, eigvals_only=True)[-1])
    ray = np.where(similar, x * max(theta, 0.0) * (1 + RAY_MARGIN), x)
    if not ray.any():
        return None
    ray = ray / ray.max()
    if ray_flaw(constraints.data, ray / constraints.target):
        return None
    count = int((ray > 0).sum())
    words = f"{count} pairs contradict each other: no distances of points can satisfy them"
    return ray, words
