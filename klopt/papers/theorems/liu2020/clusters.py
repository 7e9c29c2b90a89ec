"""What the claims of section 4 of paper 003 measure: problems cut into clusters.

A case has `groups`, the cluster of each point; Kbar is K where two points share one and 0
elsewhere. (18) has no tau and no bias.
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
from klopt.papers.theorems.liu2020.quantities import (
    exact_value,
    gamma,
    gradient,
    lagrangian,
    problem,
    random_problem,
    solved,
    weights,
)

__all__ = [
    "clusters",
    "concatenation",
    "cut",
    "difference30",
    "dropped",
    "exact_concatenation",
    "exact_dropped",
    "exact_proof_step",
    "exact_screening",
    "exact_theorem6",
    "gap_safe",
    "none_lost",
    "outside",
    "proof_step",
    "random_clusters",
    "screening",
    "theorem6",
    "theorem6_mended",
]

Chosen = npt.NDArray[np.bool_]
"""Which points are meant."""


class Clusters(NamedTuple):
    """The concatenated multipliers, F with ones and with zeros between clusters, and who shares a cluster."""

    alpha: FloatArray
    F: FloatArray
    printed: FloatArray
    same: FloatArray


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
    """Return the solutions of the subproblems (19), put together."""
    groups = case["groups"]
    n = len(case["y"])
    alpha = np.zeros(n)
    for name in np.unique(groups):
        own = np.flatnonzero(groups == name)
        part = {**case, "K": case["K"][np.ix_(own, own)], "y": case["y"][own]}
        alpha[own] = solved(part).alpha
    same = (groups[:, None] == groups).astype(float)
    F = 1.0 + gamma(case, case["y"] * alpha) * same
    return Clusters(alpha, F, F * same, same)


def cut(case: Case) -> Case:
    """Return problem (20): the case with Kbar."""
    return {**case, "K": case["K"] * (case["groups"][:, None] == case["groups"])}


def outside(case: Case) -> FloatArray:
    """Return K between clusters, 0 within."""
    return np.asarray(case["K"] * (case["groups"][:, None] != case["groups"]))


def height(case: Case, alpha: FloatArray, F: FloatArray) -> float:
    """Return H(alpha, F)."""
    return lagrangian(case, case["y"] * alpha, F, float(alpha.sum()))


def concatenation(case: Case, *, ones: bool) -> Evidence:
    """Return whether the concatenated pair has the value of (20), with zeros or ones between clusters."""
    found = clusters(case)
    whole = cut(case)
    best = solved(whole).interval
    own = height(whole, found.alpha, found.F if ones else found.printed)
    width = 1e-7 * (1 + abs(own))
    return overlap(Interval(own - width, own + width), best, tol=1e-6)


def spread(found: Clusters, F: FloatArray) -> float:
    """Return the least B = B2 - B1 that Theorem 6 allows."""
    both = np.maximum(found.F, F)
    return float(both.max() - both.min())


def theorem6(case: Case) -> Evidence:
    """Return the evidence for |h* - H(abar, Fbar)| <= (B2 - B1) C^2 Q / 2, ones between clusters."""
    found = clusters(case)
    best = solved(case)
    own = height(case, found.alpha, found.F)
    low = best.interval.lower - own
    high = best.interval.upper - own
    away = Interval(max(low, -high, 0.0), max(abs(low), abs(high)))
    bound = spread(found, best.F) * case["C"] ** 2 * float(np.abs(outside(case)).sum()) / 2
    return at_most(away, bound, scale=1 + abs(own), tol=1e-8)


def theorem6_mended(case: Case) -> Evidence:
    """Return the evidence for -(C^4 / 16 eta) sum K^2 <= h* - H(abar, Fbar) <= C^2 Q / 2, sums between clusters."""
    found = clusters(case)
    (low, high) = solved(case).interval
    own = height(case, found.alpha, found.F)
    C = case["C"]
    K = outside(case)
    above = C * C * float(np.abs(K).sum()) / 2
    below = C**4 / (16 * case["eta"]) * float(np.sum(K * K))
    size = 1 + abs(own)
    return every(
        [
            at_most(Interval(low - own, high - own), above, scale=size, tol=1e-8),
            at_most(Interval(own - high, own - low), below, scale=size, tol=1e-8),
        ]
    )


def difference30(case: Case) -> Evidence:
    """Return whether Hbar - H is half the sum of alpha_i alpha_j y_i y_j F_ij K_ij between clusters, (30)."""
    a = case["y"] * case["alpha"]
    F = weights(case, a)
    left = height(cut(case), case["alpha"], F) - height(case, case["alpha"], F)
    size = 1 + abs(height(case, case["alpha"], F))
    return equal(left, a @ (F * outside(case)) @ a / 2, tol=1e-11, scale=size)


def proof_step(case: Case) -> Evidence:
    """Return whether H(abar, F*) <= H(abar, Fbar), the second step of the proof of Theorem 6."""
    found = clusters(case)
    best = solved(case)
    left = height(case, found.alpha, best.F)
    right = height(case, found.alpha, found.F)
    return at_most(left + 1, right + 1, tol=1e-7)


def screening(case: Case) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the gradient of Hbar at (abar, Fbar), the threshold (B + B2) C (|Kbar_i|_1 + kappa), and abar."""
    found = clusters(case)
    best = solved(case)
    K = case["K"]
    top = float(np.maximum(found.F, best.F).max())
    threshold = (
        (spread(found, best.F) + top)
        * case["C"]
        * (np.abs(K * found.same).sum(axis=0) + np.abs(K).max())
    )
    return gradient(cut(case), found.alpha), threshold, found.alpha


def dropped(case: Case, sign: float) -> Chosen:
    """Return which points of abar_i = 0 have a gradient of at most `sign` times the threshold."""
    g, threshold, alpha = screening(case)
    return np.asarray((alpha <= 1e-9 * case["C"]) & (g <= sign * threshold))


def none_lost(case: Case, screened: Chosen) -> Evidence:
    """Return whether the points screened are no support vectors."""
    alpha = solved(case).alpha
    return at_most(float(alpha[screened].max(initial=0.0)), 1e-4 * case["C"])


def gap_safe(case: Case) -> Evidence:
    """Return whether the gap-safe rule loses no support vector, at abar and at points ever nearer to the optimum."""
    far = clusters(case).alpha
    near = solved(case).alpha
    return every(
        none_lost(case, safe(case, near + share * (far - near)))
        for share in (1.0, 0.1, 0.01, 0.001)
    )


def safe(case: Case, alpha: FloatArray) -> Chosen:
    """Return which points a feasible alpha, its gap and its gradient prove to have no weight."""
    K = case["K"]
    C = case["C"]
    eta = case["eta"]
    proven = problem(case).bracket(Point({"alpha": alpha}))
    gap = proven.upper - proven.lower
    diagonal = np.diag(K)
    rest = (K * K) @ (alpha * alpha) - diagonal**2 * alpha**2
    L = diagonal + rest / (4 * eta) + 3 * C * C / (4 * eta) * diagonal**2
    return np.asarray(-gradient(case, alpha) > np.maximum(np.sqrt(2 * L * gap), 2 * gap / C))


def _pair(case: Case, *, together: bool = False) -> None:
    """Raise unless there are two points, in one cluster or in two, and neither tau nor bias."""
    if (
        len(case["y"]) != 2
        or case["tau"]
        or case.get("bias", True)
        or min(case["K"][0, 0], case["K"][1, 1]) <= 0
    ):
        raise InvalidSettings("decided exactly for two points without tau and bias only")
    if (case["groups"][0] == case["groups"][1]) is not together:
        raise InvalidSettings(
            f"decided exactly for two points in {'one cluster' if together else 'two clusters'} only"
        )


def alone(case: Case, i: int) -> Any:
    """Return the solution of (19) for one point, max of s - k s^2 / 2 - k^2 s^4 / (16 eta), as a ball."""
    k = case["K"][i, i]
    return _turning_point(case, k, k * k)


def _turning_point(case: Case, bend: Any, more: Any) -> Any:
    """The s in [0, C] where 1 - bend s - more s^3 / (4 eta) turns negative, as a ball."""
    eta = case["eta"]
    low = 0 * case["C"]
    high = case["C"]

    def rises(s: Any) -> bool:
        return bool(1 - bend * s - more * s**3 / (4 * eta) >= 0)

    if rises(high):
        return ball(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return ball(low).union(ball(high))


def exact_height(case: Case, alpha: list[Any], F: list[list[Any]], K: Any) -> Any:
    """Return H(alpha, F) with tau = 0 as a ball."""
    y = case["y"]
    points = range(len(alpha))
    pairs = [(i, j) for i in points for j in points]
    square = sum(alpha[i] * alpha[j] * F[i][j] * ball(y[i] * y[j] * K[i, j]) for i, j in pairs)
    return sum(alpha) - square / 2 + ball(case["eta"]) * sum((F[i][j] - 1) ** 2 for i, j in pairs)


def _adapted(case: Case, alpha: list[Any], between: int) -> list[list[Any]]:
    grown = [1 + alpha[i] ** 2 * ball(case["K"][i, i] / (4 * case["eta"])) for i in range(2)]
    return [[grown[0], ball(between)], [ball(between), grown[1]]]


def exact_concatenation(case: Case) -> tuple[Any, Any]:
    """Return Hbar(abar, F) with zeros and with ones between two single points: the first cannot be the minimum."""
    _pair(case)
    alpha = [alone(case, 0), alone(case, 1)]
    K = np.array([[case["K"][0, 0], 0], [0, case["K"][1, 1]]], dtype=object)
    zeros, ones = (
        exact_height(case, alpha, _adapted(case, alpha, between), K) for between in (0, 1)
    )
    return zeros, ones


def exact_theorem6(case: Case) -> tuple[Any, Any]:
    """Return a bound of h* - H(abar, Fbar) from below and one of (B2 - B1) C^2 Q / 2 from above, as balls.

    h at any alpha is below h*: `alpha` of the case is one. B2 - B1 is at most the range of C^2 K /
    (4 eta).
    """
    _pair(case)
    alpha = [alone(case, 0), alone(case, 1)]
    K = case["K"]
    C = case["C"]
    eta = case["eta"]
    y = case["y"]
    trial = case["alpha"]
    if not all(0 <= s <= C for s in trial):
        raise InvalidSettings("alpha of the case is not feasible")
    some = exact_value(case, [y[i] * trial[i] for i in range(2)], sum(trial))
    left = ball(some) - exact_height(case, alpha, _adapted(case, alpha, 1), K)
    entries = [K[0, 0], K[1, 1], y[0] * y[1] * K[0, 1]]
    span = C * C / (4 * eta) * (max(*entries, 0) - min(*entries, 0))
    return left, ball(span * C * C * abs(K[0, 1]))


def exact_proof_step(case: Case) -> tuple[Any, Any]:
    """Return H(abar, F*) and H(abar, Fbar) as balls, for two points that are alike, so that alpha* = (s, s)."""
    _pair(case)
    K = case["K"]
    y = case["y"]
    if K[0, 0] != K[1, 1]:
        raise InvalidSettings("decided exactly for two points alike only")
    k = K[0, 0]
    between = y[0] * y[1] * K[0, 1]
    s = _turning_point(case, k + between, k * k + between * between)
    gains = [ball(entry / (4 * case["eta"])) * s * s for entry in (k, between)]
    best = [[1 + gains[i != j] for j in range(2)] for i in range(2)]
    alpha = [alone(case, 0), alone(case, 1)]
    return exact_height(case, alpha, best, K), exact_height(
        case, alpha, _adapted(case, alpha, 1), K
    )


def exact_screening(case: Case) -> tuple[Any, Any]:
    """Return the gradient of a point without weight and -C (|Kbar_i|_1 + kappa), for two points in one cluster.

    The solution has alpha_2 = 0 if the derivative there is negative; row 2 of F is then 1, and B2
    is at least 1.
    """
    _pair(case, together=True)
    K = case["K"]
    y = case["y"]
    gradient = 1 - ball(y[0] * y[1] * K[0, 1]) * alone(case, 0)
    if not gradient < 0:
        raise InvalidSettings("the second point has weight")
    size = abs(K[0, 1]) + abs(K[1, 1]) + max(abs(entry) for entry in K.ravel())
    return gradient, ball(-case["C"] * size)


def exact_dropped(case: Case) -> tuple[Any, Any]:
    """Return the weight of a point in the whole problem, as a ball, and 0, which its gradient is said to prove.

    For two clusters of one point and a diagonal K the clusters solve the whole problem. The
    gradient is at most 1 - C K_ii or 0, the threshold at least 2 C K_ii since B2 >= 1.
    """
    _pair(case)
    k = case["K"][0, 0]
    C = case["C"]
    if case["K"][0, 1] != 0 or max(1 - C * k, 0) > 2 * C * k:
        raise InvalidSettings("decided exactly for a diagonal K and C K_11 >= 1/3 only")
    return alone(case, 0), ball(0)
