"""Problems divided into clusters, as the claims of section 4 measure them (Liu et al., 2020).

A case has `groups`, the cluster of each point. Kbar is K where two points share a cluster and 0
elsewhere; problem (18) has neither tau nor bias:

    H(alpha, F)    = 1'alpha - a'(F o K)a / 2 + eta ||F - 11'||^2           a = Y alpha
    Hbar(alpha, F) = the same with Kbar
    (abar, Fbar)   = the solutions of the subproblems (19), concatenated

Functions `exact_...` return both sides of a statement as balls, for two points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klopt.arrays import FloatArray
from klopt.errors import InvalidSettings
from klopt.model.problem import Point
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every, overlap
from klopt.papers.theorems.liu2020 import quantities
from klopt.papers.theorems.liu2020.quantities import (
    exact_value,
    gamma,
    gradient,
    problem,
    random_problem,
    solved,
    weights,
)

__all__ = [
    "block_kernel",
    "clusters",
    "concatenation",
    "difference30",
    "dropped",
    "exact_concatenation",
    "exact_dropped",
    "exact_proof_step",
    "exact_screening",
    "exact_theorem6",
    "gap_safe",
    "none_lost",
    "off_block_kernel",
    "proof_step",
    "random_clusters",
    "screening",
    "theorem6",
    "theorem6_corrected",
]

PointMask = npt.NDArray[np.bool_]
"""Which points are meant, one entry per point."""

ZERO_WEIGHT = 1e-9
"""A multiplier of at most this share of C counts as zero."""

LOST_WEIGHT = 1e-4
"""A screened point with more than this share of C at the optimum is a support vector lost."""

BISECTIONS = 60
"""Halvings of [0, C] that enclose a stationary point."""


class Clusters(NamedTuple):
    """The concatenated solutions of the subproblems (19)."""

    alpha: FloatArray
    F: FloatArray
    """Fbar with ones between clusters."""
    printed: FloatArray
    """Fbar with zeros between clusters, as the paper prints it."""
    same: FloatArray
    """1 where two points share a cluster, else 0."""


def random_clusters(rng: np.random.Generator, n: int) -> Case:
    """Return a problem (18) with clusters."""
    case = random_problem(rng, n)
    return {
        **case,
        "tau": 0.0,
        "bias": False,
        "groups": np.sort(rng.integers(0, 2, size=n)).astype(float),
    }


def clusters(case: Case) -> Clusters:
    """Return the concatenated solutions of the subproblems (19)."""
    groups = case["groups"]
    n = len(case["y"])
    alpha = np.zeros(n)
    for name in np.unique(groups):
        own = np.flatnonzero(groups == name)
        subproblem = {**case, "K": case["K"][np.ix_(own, own)], "y": case["y"][own]}
        alpha[own] = solved(subproblem).alpha

    same = (groups[:, None] == groups).astype(float)
    F = 1.0 + gamma(case, case["y"] * alpha) * same
    return Clusters(alpha, F, F * same, same)


def block_kernel(case: Case) -> FloatArray:
    """Return Kbar: K within clusters, 0 between them."""
    return np.asarray(case["K"] * (case["groups"][:, None] == case["groups"]))


def off_block_kernel(case: Case) -> FloatArray:
    """Return K - Kbar: K between clusters, 0 within."""
    return np.asarray(case["K"] * (case["groups"][:, None] != case["groups"]))


def block_problem(case: Case) -> Case:
    """Return problem (20): the case with Kbar in the place of K."""
    return {**case, "K": block_kernel(case)}


def lagrangian(case: Case, alpha: FloatArray, F: FloatArray) -> float:
    """Return H(alpha, F)."""
    return quantities.lagrangian(case, case["y"] * alpha, F, float(alpha.sum()))


def concatenation(case: Case, *, ones: bool) -> Evidence:
    """Return whether (abar, Fbar), with ones or zeros between clusters, solves (20) (Lemma 5)."""
    found = clusters(case)
    whole = block_problem(case)
    optimum = solved(whole).interval

    F = found.F if ones else found.printed
    own = lagrangian(whole, found.alpha, F)
    # The subproblems are solved to a tolerance, so the concatenated value is an interval as well.
    margin = 1e-7 * (1 + abs(own))
    return overlap(Interval(own - margin, own + margin), optimum, tol=1e-6)


def spread(found: Clusters, F: FloatArray) -> float:
    """Return the smallest B = B2 - B1 that Theorem 6 allows."""
    entries = np.maximum(found.F, F)
    return float(entries.max() - entries.min())


def theorem6(case: Case) -> Evidence:
    """Return the evidence for |h* - H(abar, Fbar)| <= (B2 - B1) C^2 Q / 2 (Theorem 6).

    Fbar has ones between clusters: with zeros not even Lemma 5 holds.
    """
    found = clusters(case)
    optimum = solved(case)
    own = lagrangian(case, found.alpha, found.F)

    low = optimum.interval.lower - own
    high = optimum.interval.upper - own
    distance = Interval(max(low, -high, 0.0), max(abs(low), abs(high)))

    Q = float(np.abs(off_block_kernel(case)).sum())
    bound = spread(found, optimum.F) * case["C"] ** 2 * Q / 2
    return at_most(distance, bound, scale=1 + abs(own), tol=1e-8)


def theorem6_corrected(case: Case) -> Evidence:
    """Return the evidence for -(C^4 / 16 eta) sum K^2 <= h* - H(abar, Fbar) <= C^2 Q / 2.

    Theorem 6 as corrected; the sum is over pairs of different clusters.
    """
    found = clusters(case)
    (low, high) = solved(case).interval
    own = lagrangian(case, found.alpha, found.F)
    size = 1 + abs(own)

    C = case["C"]
    K = off_block_kernel(case)
    above = C * C * float(np.abs(K).sum()) / 2
    below = C**4 / (16 * case["eta"]) * float(np.sum(K * K))
    return every(
        [
            at_most(Interval(low - own, high - own), above, scale=size, tol=1e-8),
            at_most(Interval(own - high, own - low), below, scale=size, tol=1e-8),
        ]
    )


def difference30(case: Case) -> Evidence:
    """Return whether Hbar - H = a'(F o (K - Kbar))a / 2, equation (30)."""
    alpha = case["alpha"]
    a = case["y"] * alpha
    F = weights(case, a)

    H = lagrangian(case, alpha, F)
    Hbar = lagrangian(block_problem(case), alpha, F)
    right = a @ (F * off_block_kernel(case)) @ a / 2
    return equal(Hbar - H, right, tol=1e-11, scale=1 + abs(H))


def proof_step(case: Case) -> Evidence:
    """Return whether H(abar, F*) <= H(abar, Fbar), the second step of the proof of Theorem 6."""
    found = clusters(case)
    optimum = solved(case)
    left = lagrangian(case, found.alpha, optimum.F)
    right = lagrangian(case, found.alpha, found.F)
    return at_most(left + 1, right + 1, tol=1e-7)


def screening(case: Case) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the quantities of the screening rule (21).

    Returns
    -------
    gradient
        The gradient of Hbar by alpha at (abar, Fbar).
    threshold
        (B + B2) C (|Kbar_i|_1 + kappa) of each point i.
    alpha
        abar.
    """
    found = clusters(case)
    optimum = solved(case)
    K = case["K"]

    B = spread(found, optimum.F)
    B2 = float(np.maximum(found.F, optimum.F).max())
    column_norms = np.abs(K * found.same).sum(axis=0)
    kappa = np.abs(K).max()
    threshold = (B + B2) * case["C"] * (column_norms + kappa)
    return gradient(block_problem(case), found.alpha), threshold, found.alpha


def dropped(case: Case, sign: float) -> PointMask:
    """Return which points of abar_i = 0 have a gradient of at most `sign` times the threshold."""
    g, threshold, alpha = screening(case)
    return np.asarray((alpha <= ZERO_WEIGHT * case["C"]) & (g <= sign * threshold))


def none_lost(case: Case, screened: PointMask) -> Evidence:
    """Return whether no screened point is a support vector."""
    alpha = solved(case).alpha
    return at_most(float(alpha[screened].max(initial=0.0)), LOST_WEIGHT * case["C"])


def gap_safe(case: Case) -> Evidence:
    """Return whether the gap-safe rule loses no support vector, from abar up to the optimum."""
    far = clusters(case).alpha
    near = solved(case).alpha
    return every(
        none_lost(case, safe(case, near + share * (far - near)))
        for share in (1.0, 0.1, 0.01, 0.001)
    )


def safe(case: Case, alpha: FloatArray) -> PointMask:
    """Return which points a feasible alpha, its gap and its gradient prove to have no weight.

    phi = -h is convex and has curvature at most L_i along coordinate i, alpha_i moving within
    [0, C]. Hence grad_i phi(alpha) - grad_i phi(alpha*) <= max(sqrt(2 L_i gap), 2 gap / C); where
    grad_i phi(alpha) is larger, grad_i phi(alpha*) is positive and alpha*_i = 0.
    """
    K = case["K"]
    C = case["C"]
    eta = case["eta"]
    proven = problem(case).bracket(Point({"alpha": alpha}))
    gap = proven.upper - proven.lower

    diagonal = np.diag(K)
    rest = (K * K) @ (alpha * alpha) - diagonal**2 * alpha**2
    L = diagonal + rest / (4 * eta) + 3 * C * C / (4 * eta) * diagonal**2
    threshold = np.maximum(np.sqrt(2 * L * gap), 2 * gap / C)
    return np.asarray(-gradient(case, alpha) > threshold)


def _require_two_points(case: Case, *, together: bool = False) -> None:
    """Raise unless there are two points, in one cluster or in two, and neither tau nor bias."""
    two_points = len(case["y"]) == 2
    if (
        not two_points
        or case["tau"]
        or case.get("bias", True)
        or min(case["K"][0, 0], case["K"][1, 1]) <= 0
    ):
        raise InvalidSettings("decided exactly for two points without tau and bias only")

    if (case["groups"][0] == case["groups"][1]) is not together:
        where = "one cluster" if together else "two clusters"
        raise InvalidSettings(f"decided exactly for two points in {where} only")


def single_point_optimum(case: Case, i: int) -> Any:
    """Return the solution of (19) for a cluster of point i alone, as a ball.

    It maximises s - k s^2 / 2 - k^2 s^4 / (16 eta) over 0 <= s <= C, k = K_ii.
    """
    k = case["K"][i, i]
    return _stationary_point(case, k, k * k)


def _single_point_optima(case: Case) -> list[Any]:
    return [single_point_optimum(case, 0), single_point_optimum(case, 1)]


def _stationary_point(case: Case, linear: Any, cubic: Any) -> Any:
    """The s in [0, C] where 1 - linear s - cubic s^3 / (4 eta) turns negative, as a ball."""
    eta = case["eta"]
    low = 0 * case["C"]
    high = case["C"]

    def rises(s: Any) -> bool:
        return bool(1 - linear * s - cubic * s**3 / (4 * eta) >= 0)

    # The concave function still rises at C: the bound is the maximiser.
    if rises(high):
        return ball(high)

    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if rises(middle):
            low = middle
        else:
            high = middle
    return ball(low).union(ball(high))


def exact_lagrangian(case: Case, alpha: list[Any], F: list[list[Any]], K: Any) -> Any:
    """Return H(alpha, F) with tau = 0 as a ball."""
    y = case["y"]
    points = range(len(alpha))
    pairs = [(i, j) for i in points for j in points]
    square = sum(alpha[i] * alpha[j] * F[i][j] * ball(y[i] * y[j] * K[i, j]) for i, j in pairs)
    distance = sum((F[i][j] - 1) ** 2 for i, j in pairs)
    return sum(alpha) - square / 2 + ball(case["eta"]) * distance


def _concatenated_weights(case: Case, alpha: list[Any], between: int) -> list[list[Any]]:
    """Fbar of two clusters of one point, F = `between` between them."""
    diagonal = [1 + alpha[i] ** 2 * ball(case["K"][i, i] / (4 * case["eta"])) for i in range(2)]
    return [[diagonal[0], ball(between)], [ball(between), diagonal[1]]]


def exact_concatenation(case: Case) -> tuple[Any, Any]:
    """Return Hbar(abar, F) with zeros and with ones between two clusters of one point.

    Where the first is above the second, zeros do not minimise: Lemma 5 fails as printed.
    """
    _require_two_points(case)
    alpha = _single_point_optima(case)
    K = np.array([[case["K"][0, 0], 0], [0, case["K"][1, 1]]], dtype=object)
    zeros = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 0), K)
    ones = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 1), K)
    return zeros, ones


def exact_theorem6(case: Case) -> tuple[Any, Any]:
    """Return a lower bound of h* - H(abar, Fbar) and an upper bound of (B2 - B1) C^2 Q / 2.

    h at any feasible alpha is at most h*; `alpha` of the case is such a point. B2 - B1 is at most
    the range of C^2 K / (4 eta).
    """
    _require_two_points(case)
    K = case["K"]
    C = case["C"]
    eta = case["eta"]
    y = case["y"]
    feasible = case["alpha"]
    if not all(0 <= s <= C for s in feasible):
        raise InvalidSettings("alpha of the case is not feasible")

    alpha = _single_point_optima(case)
    value = exact_value(case, [y[i] * feasible[i] for i in range(2)], sum(feasible))
    own = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 1), K)

    entries = [K[0, 0], K[1, 1], y[0] * y[1] * K[0, 1]]
    B = C * C / (4 * eta) * (max(*entries, 0) - min(*entries, 0))
    return ball(value) - own, ball(B * C * C * abs(K[0, 1]))


def exact_proof_step(case: Case) -> tuple[Any, Any]:
    """Return H(abar, F*) and H(abar, Fbar) for two identical points, so that alpha* = (s, s)."""
    _require_two_points(case)
    K = case["K"]
    y = case["y"]
    if K[0, 0] != K[1, 1]:
        raise InvalidSettings("decided exactly for two points alike only")

    k = K[0, 0]
    between = y[0] * y[1] * K[0, 1]
    s = _stationary_point(case, k + between, k * k + between * between)
    gains = [ball(entry / (4 * case["eta"])) * s * s for entry in (k, between)]
    best = [[1 + gains[i != j] for j in range(2)] for i in range(2)]

    alpha = _single_point_optima(case)
    left = exact_lagrangian(case, alpha, best, K)
    right = exact_lagrangian(case, alpha, _concatenated_weights(case, alpha, 1), K)
    return left, right


def exact_screening(case: Case) -> tuple[Any, Any]:
    """Return the gradient of a point without weight and -C (|Kbar_i|_1 + kappa).

    The two points share a cluster. The solution has alpha_2 = 0 if the derivative there is
    negative; row 2 of F is then 1, and B2 is at least 1.
    """
    _require_two_points(case, together=True)
    K = case["K"]
    y = case["y"]
    derivative = 1 - ball(y[0] * y[1] * K[0, 1]) * single_point_optimum(case, 0)
    if not derivative < 0:
        raise InvalidSettings("the second point has weight")

    column_norm = abs(K[0, 1]) + abs(K[1, 1])
    kappa = max(abs(entry) for entry in K.ravel())
    return derivative, ball(-case["C"] * (column_norm + kappa))


def exact_dropped(case: Case) -> tuple[Any, Any]:
    """Return the weight of a point in the whole problem and 0, its weight by the screening rule.

    For two clusters of one point and a diagonal K the clusters solve the whole problem. The
    gradient is at most 1 - C K_ii or 0, the threshold at least 2 C K_ii since B2 >= 1.
    """
    _require_two_points(case)
    k = case["K"][0, 0]
    C = case["C"]
    if case["K"][0, 1] != 0 or max(1 - C * k, 0) > 2 * C * k:
        raise InvalidSettings("decided exactly for a diagonal K and C K_11 >= 1/3 only")
    return single_point_optimum(case, 0), ball(0)
