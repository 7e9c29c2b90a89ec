"""Values, losses, gradients and optima that the claims measure (Kundu et al., 2010).

    omega(K)             = max over alpha of  1'alpha - a'Ka / 2                        a = Y alpha, 0 <= alpha <= C
    Omega (10)           = max over alpha of  1'alpha - (sum_i sqrt(a'K_i a))^2 / 2
    f(K)  = omega(K) + rho sum_i L(K - S_i)         F(K_1..K_m) = Omega + rho sum_i L(K_i - S_i)        tr K = tau

A case has S of shape (m, n, n), y, C, rho, tau and the name of the loss; where a claim speaks of
kernels, `K` and `other`, of the same shape. Two points with labels +1 and -1 need no solver: a =
amount (1, -1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every
from klopt.problems import MultipleKernel, SimilarityKernel, SoftMargin

__all__ = [
    "MIN_GAMMA",
    "Gradients",
    "SvmOptimum",
    "attained",
    "chained",
    "clipped",
    "composed",
    "convex_between",
    "divided",
    "eskl",
    "gamma_is_best",
    "gradient",
    "inner_duality",
    "inner_value",
    "joint",
    "kernel_optimum",
    "lipschitz",
    "loss",
    "midpoint",
    "mixture",
    "on_simplex",
    "plus",
    "random_kernels",
    "random_pair",
    "random_problem",
    "svm_optimum",
]

OPTIMUM_TOLERANCE = 1e-7
"""Relative error allowed to an optimum that is known as an interval of that relative size."""
MIN_GAMMA = 1e-12
"""The smallest gamma_i that gradients are computed with: F is not differentiable at 0."""


class SvmOptimum(NamedTuple):
    """The value of a support vector machine, a = Y alpha and the weights gamma of its kernels."""

    value: Interval
    a: FloatArray
    gamma: FloatArray


class Gradients(NamedTuple):
    """The value of f or F and its gradients, one for each kernel."""

    value: Interval
    svm: FloatArray
    losses: FloatArray


def random_kernels(
    rng: np.random.Generator, count: int, n: int, tau: float, *, full: bool = False
) -> FloatArray:
    """Return psd matrices of trace tau, of full rank if asked for."""
    kernels = []
    for _ in range(count):
        B = rng.normal(size=(n, n if full else int(rng.integers(1, n + 1))))
        K = B @ B.T + (0.01 * np.eye(n) if full else 0.0)
        kernels.append(tau * K / np.trace(K))
    return np.array(kernels)


def random_problem(rng: np.random.Generator, n: int) -> Case:
    """Return one to three indefinite similarities of n points, labels, C, rho, tau and a loss."""
    A = rng.normal(size=(int(rng.integers(1, 4)), n, n))
    C, rho, tau = (float(x) for x in np.exp(rng.normal(size=3) / 2))
    return {
        "S": tau * (A + A.transpose(0, 2, 1)) / 2,
        "y": np.where(np.arange(n) % 2 == 0, 1.0, -1.0),
        "C": C, "rho": rho, "tau": tau, "loss": str(rng.choice(["l1", "frobenius", "squared"])),
    }  # fmt: skip


def random_pair(rng: np.random.Generator, n: int) -> Case:
    """Return a problem with two lists of kernels of trace tau and a feasible alpha.

    There are as many kernels as similarities.
    """
    case = random_problem(rng, n)
    K, other = (random_kernels(rng, len(case["S"]), n, case["tau"], full=True) for _ in range(2))
    # Gradients are tight, and curvature is seen, between points that are close.
    if rng.random() < 0.5:
        other = 0.9 * K + 0.1 * other
    half = case["C"] * rng.random(n // 2)
    alpha = np.append(np.repeat(half, 2), np.zeros(n % 2))
    return {**case, "K": K, "other": other, "alpha": alpha}


def loss(case: Case, X: FloatArray) -> float:
    """Return L(X)."""
    if case["loss"] == "l1":
        return float(np.abs(X).sum())
    return float(np.linalg.norm(X) ** (2 if case["loss"] == "squared" else 1))


def gradient(case: Case, X: FloatArray) -> FloatArray:
    """Return a subgradient of L at X."""
    if case["loss"] == "l1":
        return np.sign(X)
    return 2 * X if case["loss"] == "squared" else X / (float(np.linalg.norm(X)) or 1.0)


def lipschitz(case: Case) -> float:
    """Return a bound of ||f'||.

    ||alpha||^2 <= C 1'alpha <= 2 C^2 min(n_+, n_-), and L' has a largest norm on kernels of trace
    tau.
    """
    n = len(case["y"])
    S = case["S"]
    fewer = min(int((case["y"] > 0).sum()), int((case["y"] < 0).sum()))
    norms = np.linalg.norm(S, axis=(1, 2))
    most = {
        "l1": n * len(S),
        "frobenius": len(S),
        "squared": 2 * float(np.sum(case["tau"] + norms)),
    }
    return float(case["C"] ** 2 * fewer + case["rho"] * most[case["loss"]])


def svm_optimum(case: Case, kernels: FloatArray) -> SvmOptimum:
    """Return omega of one kernel, Omega (10) of several."""
    y = case["y"]
    C = case["C"]
    m = len(kernels)
    if len(y) == 2:
        return _pair(C, kernels, y)
    if m == 1:
        result = solve(SoftMargin(kernels[0], y, C), tol=1e-9)
    else:
        result = solve(MultipleKernel(list(kernels), y, C, norm="block-linf"), tol=1e-9)
    assert result.point is not None
    gamma = np.ones(1) if m == 1 else 1 / np.asarray(result.point.weights)
    return SvmOptimum(Interval(result.lower, result.upper), y * result.point.alpha, gamma)


def _pair(C: float, kernels: FloatArray, y: FloatArray) -> SvmOptimum:
    k = np.maximum(kernels[:, 0, 0] + kernels[:, 1, 1] - 2 * kernels[:, 0, 1], 0.0)
    s = float(np.sqrt(k).sum())
    amount = min(C, 2 / s**2) if s else C
    value = 2 * amount - (amount * s) ** 2 / 2
    gamma = np.sqrt(k) / s if s else np.full(len(k), 1 / len(k))
    return SvmOptimum(Interval(value, value), amount * y, gamma)


def eskl(case: Case, K: FloatArray) -> Gradients:
    """Return f and its gradient (8) at one kernel."""
    found = svm_optimum(case, K[None])
    parts = [K - S for S in case["S"]]
    total = case["rho"] * sum(loss(case, X) for X in parts)
    gradients = case["rho"] * np.sum([gradient(case, X) for X in parts], axis=0)
    svm = -np.outer(found.a, found.a)[None] / 2
    return Gradients(plus(found.value, total), svm, gradients[None])


def joint(case: Case, kernels: FloatArray) -> Gradients:
    """Return F and its gradients: -aa' / (2 gamma_i) and rho L'(K_i - S_i), (12) as corrected."""
    found = svm_optimum(case, kernels)
    parts = [K - S for K, S in zip(kernels, case["S"], strict=True)]
    total = case["rho"] * sum(loss(case, X) for X in parts)
    outer = np.outer(found.a, found.a)
    svm = np.array([-outer / (2 * max(gamma, MIN_GAMMA)) for gamma in found.gamma])
    losses = case["rho"] * np.array([gradient(case, X) for X in parts])
    return Gradients(plus(found.value, total), svm, losses)


def kernel_optimum(case: Case, **changed: Any) -> tuple[Interval, FloatArray, FloatArray]:
    """Return klopt's interval for the optimum f* of (4), the kernel and alpha.

    `changed` replaces entries of the case.
    """
    one = {**case, **changed}
    problem = SimilarityKernel(
        list(one["S"]), one["y"], one["C"], one["rho"], one["tau"], one["loss"]
    )
    result = solve(problem, tol=OPTIMUM_TOLERANCE / 10, time_limit=5.0)
    assert result.point is not None
    return Interval(result.lower, result.upper), result.point.kernel, result.point.alpha


def plus(value: Interval, number: float) -> Interval:
    """Return the interval moved."""
    return Interval(value.lower + number, value.upper + number)


def midpoint(one: Interval, two: Interval) -> Interval:
    """Return the mean of two intervals."""
    return Interval((one.lower + two.lower) / 2, (one.upper + two.upper) / 2)


def convex_between(middle: Interval, one: Interval, two: Interval) -> Evidence:
    """Return whether the value in the middle is at most the mean of the values at the ends."""
    return at_most(middle, midpoint(one, two), tol=OPTIMUM_TOLERANCE)


def chained(case: Case, first: Gradients, second: Gradients, gradients: FloatArray) -> Evidence:
    """Return whether value + <gradients, other - K> is at most the value at `other`."""
    line = float(np.sum(gradients * (case["other"] - case["K"])))
    size = abs(first.value.upper) + abs(line) + abs(second.value.upper)
    # Both sides may be negative: shifted by their size they are compared as they are.
    return at_most(
        plus(first.value, line + 2 * size), plus(second.value, 2 * size), tol=OPTIMUM_TOLERANCE
    )


def composed(values: FloatArray, V: FloatArray) -> FloatArray:
    """Return V diag(values) V'."""
    return np.asarray((V * values) @ V.T)


def clipped(M: FloatArray) -> FloatArray:
    """Return M_+."""
    values, V = np.linalg.eigh(M)
    return composed(np.maximum(values, 0.0), V)


def on_simplex(M: FloatArray, tau: float) -> FloatArray:
    """Return the psd matrix of trace tau nearest to M.

    Its eigenvalues are those of M, projected on the simplex.
    """
    values, V = np.linalg.eigh(M)
    down = values[::-1]
    levels = (np.cumsum(down) - tau) / np.arange(1, len(down) + 1)
    level = levels[np.flatnonzero(down > levels)[-1]]
    return composed(np.maximum(values - level, 0.0), V)


def divided(case: Case) -> FloatArray:
    """Return Sbar + aa' / (4 rho m), whose projection minimises over K for a given alpha."""
    a = case["y"] * case["alpha"]
    weight = 4 * case["rho"] * len(case["S"])
    return np.asarray(case["S"].mean(axis=0) + np.outer(a, a) / weight)


def inner_value(case: Case, K: FloatArray) -> float:
    """Return -a'Ka / 2 + rho sum_i ||K - S_i||^2."""
    a = case["y"] * case["alpha"]
    return float(-a @ K @ a / 2 + case["rho"] * np.sum((K - case["S"]) ** 2))


def inner_duality(case: Case, K: FloatArray, *, fixed: bool) -> Evidence:
    """Return whether K minimises the inner problem, by the bound of a multiplier Z of K psd.

    With M = Sbar + aa' / (4 rho m) the value is rho m ||K - M||^2 + c. For any psd Z and any s, W =
    Z - sI, it is at least c - <W, M> - ||W||^2 / (4 rho m) - s tau on kernels of trace tau; where
    the trace is free, s = 0.
    """
    M = divided(case)
    weight = case["rho"] * len(case["S"])
    n = len(K)
    constant = inner_value(case, np.zeros((n, n))) - weight * float(np.sum(M**2))
    G = 2 * weight * (K - M)  # the gradient at K: Z - s I with Z >= 0 at the minimiser
    s = -float(np.linalg.eigvalsh(G)[0]) if fixed else 0.0
    Z = clipped(G + s * np.eye(n))
    W = Z - s * np.eye(n)
    lower = (
        constant
        - float(np.sum(W * M))
        - float(np.sum(W**2)) / (4 * weight)
        - (s * case["tau"] if fixed else 0.0)
    )
    size = abs(constant) + weight * float(np.sum(M**2)) + abs(lower)
    return at_most(inner_value(case, K) + 2 * size, lower + 2 * size, tol=1e-10)


def gamma_is_best(case: Case) -> Evidence:
    """Return whether gamma_i = sqrt(q_i) / sum_j sqrt(q_j) minimises sum_i q_i / gamma_i.

    So do klopt's weights.
    """
    a = case["y"] * case["alpha"]
    r = np.sqrt(np.maximum(np.einsum("i,mij,j->m", a, case["K"], a), 0.0))
    tried = np.random.default_rng(0).dirichlet(np.ones(len(r)), 500)
    least = every(
        at_most(float(r.sum()) ** 2, float(np.sum(r**2 / gamma)), tol=1e-12)
        for gamma in np.maximum(tried, 1e-300)
    )
    found = svm_optimum(case, case["K"])
    q = np.sqrt(np.einsum("i,mij,j->m", found.a, case["K"], found.a))
    return every([least, equal(found.gamma * q.sum(), q, tol=1e-3, scale=float(q.sum()))])


def mixture(case: Case, kernels: FloatArray) -> Interval:
    """Return Omega (5), the minimum over mixtures of kernels of one trace."""
    result = solve(MultipleKernel(list(kernels), case["y"], case["C"], norm="block-l1"), tol=1e-9)
    return Interval(result.lower, result.upper)


def attained(case: Case, found: SvmOptimum) -> Evidence:
    """Return whether sum_i F_i at the optimal alpha and gamma is the optimal value."""
    squares = np.einsum("i,mij,j->m", found.a, case["K"], found.a)
    parts = squares / (2 * np.maximum(found.gamma, MIN_GAMMA))
    value = float(np.abs(found.a).sum() - parts.sum())
    return equal(value, found.value.upper, tol=1e-5, scale=1.0)
