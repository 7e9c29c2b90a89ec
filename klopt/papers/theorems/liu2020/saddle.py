"""Saddle point, ranks, neighbours and margins of section 2 (Liu et al., 2020)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from klopt.engine.pipeline import solve
from klopt.errors import InvalidSettings
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every, overlap
from klopt.papers.theorems.liu2020.quantities import (
    exact_gradient,
    exact_value,
    lagrangian,
    problem,
    random_psd,
    solved,
    svm,
    value,
    weights,
)

__all__ = [
    "exact_bound",
    "exact_diagonal",
    "exact_lost",
    "exact_margin",
    "exact_trace",
    "exact_vanishing",
    "form",
    "kept",
    "machine_improves",
    "neighbours",
    "random_neighbours",
    "random_points",
    "random_projection",
    "ranks",
    "saddle",
    "top_and_bound",
    "trace",
]

RANDOM_POINTS = 20
"""Random points at which the inequalities of a saddle point are tested."""


def random_points(rng: np.random.Generator, n: int) -> Case:
    """Return the Gaussian kernel of random points."""
    X = rng.normal(size=(n, 2))
    return {
        "K": np.exp(-np.square(X[:, None] - X).sum(axis=2) / 2),
        "sigma": float(np.exp(rng.normal())),
    }


def random_neighbours(rng: np.random.Generator, n: int) -> Case:
    """Return training points, test points and a psd F."""
    return {
        "X": rng.normal(size=(n, 2)),
        "T": rng.normal(size=(n + 3, 2)),
        "F": random_psd(rng, n),
    }


def random_projection(rng: np.random.Generator, n: int) -> Case:
    """Return a constant, an accuracy and a probability."""
    epsilon, delta = (float(rng.choice([0.001, 0.01, 0.1])) for _ in range(2))
    return {"constant": float(n), "epsilon": epsilon, "delta": delta}


def form(case: Case, x: Any, z: Any) -> Any:
    """Return x'(F o K)z in the arithmetic of the case."""
    F = case["F"]
    K = case["K"]
    pairs = [(i, j) for i in range(len(x)) for j in range(len(z))]
    return sum(x[i] * F[i, j] * K[i, j] * z[j] for i, j in pairs)


def trace(case: Case, x: Any) -> Any:
    """Return tr(D_x K D_x F) in the arithmetic of the case."""
    scaled = x[:, None] * case["K"] * x[None, :]
    return sum((scaled @ case["F"])[i, i] for i in range(len(x)))


def saddle(case: Case) -> Evidence:
    """Return whether two formulations agree and H has a saddle point at the optimum."""
    best = solved(case)
    y = case["y"]
    program = solve(problem(case), formulation="SDP primal", tol=1e-6)
    rng = np.random.default_rng(0)
    size = 1 + abs(best.interval.upper)
    # The value h at alpha*, by its formula, and the optimum of the primal, by another program.
    own = value(case, best.alpha)
    parts = [
        overlap(best.interval, Interval(own - 1e-8 * size, own + 1e-8 * size), tol=1e-7),
        overlap(Interval(program.lower, program.upper), best.interval, tol=1e-4),
    ]
    for _ in range(RANDOM_POINTS):
        other = problem(case).machine.domain().project(y * case["C"] * rng.random(len(y)))
        F = best.F + 0.1 * random_psd(rng, len(y))
        low = lagrangian(case, other, best.F, float(y @ other))
        high = lagrangian(case, y * best.alpha, F, float(best.alpha.sum()))
        parts += [
            at_most(low - best.interval.lower, 1e-7 * size),
            at_most(best.interval.upper - high, 1e-7 * size),
        ]
    return every(parts)


def machine_improves(case: Case) -> Evidence:
    """Return whether the support vector machine has a smaller value with F* o K than with K."""
    learned = svm(case, solved(case).F * case["K"])[0]
    plain = svm(case, case["K"])[0]
    return at_most(learned, plain, tol=1e-7, scale=1 + plain.upper)


def exact_margin(case: Case) -> tuple[Any, Any]:
    """Return |w|^2 with F* o K and with K, where all multipliers are C; tau = 0.

    They are where the gradients at C are not negative and C 1 is feasible.
    """
    n = len(case["y"])
    C = case["C"]
    K = case["K"]
    y = case["y"]
    a = [C * y[i] for i in range(n)]
    plain = [1 - y[i] * sum(K[i, j] * a[j] for j in range(n)) for i in range(n)]
    if case["tau"] or sum(y) or min(*plain, *exact_gradient(case, [C] * n)) < 0:
        raise InvalidSettings("decided exactly where every multiplier is C only")

    terms = [a[i] * a[j] * K[i, j] for i in range(n) for j in range(n)]
    adapted = sum(term * (1 + term / (4 * case["eta"])) for term in terms)
    return adapted, sum(terms)


def exact_vanishing(case: Case) -> tuple[Any, Any]:
    """Return the optimal value nC for F* o K = 0 and n / 2, that for K = I where C >= 1.

    F vanishes at alpha = C 1 where n + tr Gamma <= tau / 2; the gradient there is 1, so that alpha
    is optimal.
    """
    n = len(case["y"])
    C = case["C"]
    K = case["K"]
    trace_gamma = C * C * sum(K[i, i] for i in range(n)) / (4 * case["eta"])
    vanishes = n + trace_gamma <= case["tau"] / 2
    identity = all(K[i, j] == (i == j) for i in range(n) for j in range(n))
    if not vanishes or sum(case["y"]) or not identity:
        raise InvalidSettings("decided exactly where F vanishes and K = I only")

    s = min(C, 1)
    return n * C, n * (s - s**2 / 2)


def exact_diagonal(case: Case) -> tuple[Any, Any]:
    """Return h at a multiple of (2, 1, 1) and at 0, the only alpha of constant diagonal.

    With one point in one class and two in the other alpha_1 = alpha_2 + alpha_3; for K = I and tau
    = 0 the diagonal of F o K is 1 + alpha_i^2 / (4 eta), constant only if alpha_1 = alpha_2 =
    alpha_3, hence 0.
    """
    n = len(case["y"])
    y = case["y"]
    one = n == 3 and y[0] == -y[1] == -y[2]
    if (
        not one
        or case["tau"]
        or any(case["K"][i, j] != (i == j) for i in range(n) for j in range(n))
    ):
        raise InvalidSettings("decided exactly for K = I, one point against two, only")
    s = min(case["C"], 1) / 4
    better = exact_value(case, [2 * s * y[0], s * y[1], s * y[2]], 4 * s)
    return better, exact_value(case, [0 * s, 0 * s, 0 * s], 0)


def exact_bound(case: Case) -> Any:
    """Return the bound of Lemma 1 for a diagonal K.

    The largest eigenvalue of a psd F is at least 0.
    """
    n = len(case["y"])
    K = case["K"]
    if any(K[i, j] != 0 for i in range(n) for j in range(n) if i != j):
        raise InvalidSettings("decided exactly for a diagonal K only")
    return (
        n
        - case["tau"] / 2
        + n * case["C"] ** 2 / (4 * case["eta"]) * max(K[i, i] for i in range(n))
    )


def exact_trace(case: Case) -> tuple[Any, Any]:
    """Return n times the least K_ii / 4, and tr Gamma for eta = |alpha|^2."""
    n = len(case["y"])
    K = case["K"]
    alpha = case["alpha"]
    trace = sum(alpha[i] ** 2 * K[i, i] for i in range(n)) / (
        4 * sum(alpha[i] ** 2 for i in range(n))
    )
    return n * min(K[i, i] for i in range(n)) / 4, trace


def top_and_bound(case: Case, alpha: Any) -> tuple[float, float]:
    """Return the largest eigenvalue of the best F, and the bound of Lemma 1."""
    n = len(case["y"])
    top = float(np.linalg.eigvalsh(weights(case, case["y"] * alpha))[-1])
    grown = n * case["C"] ** 2 / (4 * case["eta"]) * float(np.linalg.eigvalsh(case["K"])[-1])
    return top, n - case["tau"] / 2 + grown


def ranks(case: Case) -> Evidence:
    """Return whether rank F* <= support vectors + 1, and whether it falls with tau, to 0."""
    case = {**case, "tau": 0.0}
    best = solved(case)
    support = int(np.sum(best.alpha > 1e-7 * case["C"]))
    counts = [
        int(
            np.linalg.matrix_rank(
                weights({**case, "tau": tau}, case["y"] * best.alpha), tol=1e-9, hermitian=True
            )
        )
        for tau in (0.0, 0.01, 0.1, 1.0, 4 * float(np.linalg.eigvalsh(best.F)[-1]))
    ]
    falls = [at_most(after, before) for before, after in pairwise(counts)]
    return every([at_most(counts[0], support + 1), *falls, at_most(counts[-1], 0)])


def neighbours(case: Case) -> Evidence:
    """Return whether reciprocal neighbours reach every test point.

    Training points must get their own column back.
    """
    X = case["X"]
    T = case["T"]
    F = case["F"]
    M, own = (reciprocal(X, points) for points in (T, X))
    n, m = M.shape
    return every(
        [
            at_most(1 / (n * m), float(M.min())),
            at_most(1 / m, float(M.max(axis=0).min())),
            equal(F[:, own.argmax(axis=0)], F),
        ]
    )


def reciprocal(X: Any, T: Any) -> Any:
    """Return 1 / (r s): T_j is the r-th neighbour of X_i, and X_i the s-th of T_j."""
    D = np.linalg.norm(X[:, None] - T[None], axis=2)
    r = _ranks(D, axis=1)
    s = _ranks(D, axis=0)
    return 1 / (r * s)


def _ranks(D: Any, axis: int) -> Any:
    """The rank of each distance along an axis, 1 for the nearest."""
    order = np.argsort(D, axis=axis, kind="stable")
    return 1 + np.argsort(order, axis=axis)


def kept(case: Case, dimension: float) -> Evidence:
    """Return whether a Gaussian projection keeps a squared distance within 1 +- epsilon.

    The probability has to be 1 - delta at least.

    The ratio has the distribution of chi^2 / d, so that nothing has to be sampled.
    """
    from scipy.stats import chi2

    d = int(np.ceil(dimension))
    epsilon = case["epsilon"]
    inside = chi2.cdf(d * (1 + epsilon), d) - chi2.cdf(d * (1 - epsilon), d)
    return at_most(1 - case["delta"], float(inside))


def exact_lost(case: Case) -> tuple[Any, Any]:
    """Return the probability that the distance is not kept, as a ball, and delta.

    The dimension is the printed one.
    """
    epsilon = case["epsilon"]
    delta = case["delta"]
    d = math.ceil(float(case["constant"]) * math.log(1 / (epsilon * delta)))
    high, low = (
        ball(Fraction(d, 2)).gamma_lower(ball(d * (1 + e) / 2), regularized=1)
        for e in (epsilon, -epsilon)
    )
    return 1 - (high - low), ball(delta)
