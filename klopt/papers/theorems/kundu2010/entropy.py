"""The entropy psi, its Bregman distance, and kernels by their logarithm (Kundu et al., 2010)."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from klopt.arrays import FloatArray
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, at_most, every
from klopt.papers.theorems.kundu2010.quantities import composed, eskl, lipschitz, random_kernels

__all__ = [
    "bregman",
    "exponential",
    "far",
    "log_matrix",
    "printed_step",
    "random_spectra",
    "strongly_convex",
]


def random_spectra(rng: np.random.Generator, n: int) -> Case:
    """Return two lists of kernels of one trace.

    The first may have zero eigenvalues, the second may not.
    """
    tau = float(np.exp(rng.normal()))
    m = int(rng.integers(1, 4))
    return {
        "tau": tau,
        "K": random_kernels(rng, m, n, tau),
        "other": random_kernels(rng, m, n, tau, full=True),
    }


def log_matrix(K: FloatArray) -> FloatArray:
    """Return the logarithm of a positive definite matrix."""
    values, V = np.linalg.eigh(K)
    return composed(np.log(values), V)


def bregman(K: FloatArray, at: FloatArray) -> float:
    """Return B(K, at) = tr K log K - tr K log at - tr K + tr at, 0 log 0 being 0."""
    values = np.maximum(np.linalg.eigvalsh(K), 0.0)
    entropy = float(np.sum(values[values > 0] * np.log(values[values > 0])))
    return entropy - float(np.sum(K * log_matrix(at))) - float(np.trace(K) - np.trace(at))


def strongly_convex(case: Case) -> Evidence:
    """Return whether psi is strongly convex, for one kernel and for several.

    B is at least ||.||^2 / (2 tau) in the trace norm and ||.||_F^2 / tau.
    """
    tau = case["tau"]
    pairs = list(zip(case["K"], case["other"], strict=True))
    parts = [bregman(K, at) for K, at in pairs]
    nuclear = [float(np.abs(np.linalg.eigvalsh(K - at)).sum()) for K, at in pairs]
    frobenius = [float(np.linalg.norm(K - at)) for K, at in pairs]
    one = [
        at_most(max(x**2 / (2 * tau), y**2 / tau), b, scale=tau)
        for x, y, b in zip(nuclear, frobenius, parts, strict=True)
    ]
    return every([*one, at_most(sum(frobenius) ** 2 / (len(pairs) * tau), sum(parts), scale=tau)])


def far(case: Case) -> Evidence:
    """Return whether B(K, (tau/n) I) <= tau log n for each kernel."""
    n = case["K"].shape[1]
    tau = case["tau"]
    return every(
        at_most(bregman(K, tau / n * np.eye(n)), tau * float(np.log(n)), scale=tau)
        for K in case["K"]
    )


def exponential(G: FloatArray, tau: float) -> FloatArray:
    """Return tau exp(G) / tr exp(G)."""
    values, V = np.linalg.eigh(G)
    weights = np.exp(values - values[-1])
    return composed(tau * weights / weights.sum(), V)


def prox(gradients: FloatArray, K: FloatArray, at: FloatArray, eta: float) -> float:
    """Return eta <f', K> + B(K, at), which a step of mirror descent minimises."""
    return eta * float(np.sum(gradients * K)) + bregman(K, at)


def printed_step(case: Case, *, printed: bool) -> Evidence:
    """Return whether a step of Algorithm 1 from K minimises the prox objective.

    Eigenvalues are paired in the way that is best for the algorithm.

    The paper does not say which eigenvalue of K goes with which of f'; all pairings are tried.
    """
    K = case["K"][0]
    tau = case["tau"]
    eta = 1 / float(case.get("L", lipschitz(case)))
    found = eskl(case, K)
    gradients = found.svm[0] + found.losses[0]
    right = exponential(log_matrix(K) - eta * gradients, tau)
    optimal = prox(gradients, right, K, eta)
    size = 1 + abs(optimal) + tau
    if not printed:
        mixed = np.random.default_rng(0).dirichlet(np.ones(3), 50)
        corners = (right, K, tau / len(K) * np.eye(len(K)))
        others = (
            prox(gradients, sum(w * c for w, c in zip(ws, corners, strict=True)), K, eta)
            for ws in mixed
        )
        return at_most(optimal + size, min(others) + size)
    d, V = np.linalg.eigh(gradients)
    values = np.linalg.eigvalsh(K)
    tried = []
    for order in permutations(range(len(K))):
        lam = values[list(order)] * np.exp(-eta * (d - d[0]))
        tried.append(prox(gradients, composed(tau * lam / lam.sum(), V), K, eta))
    return at_most(min(tried) + size, optimal + size)
