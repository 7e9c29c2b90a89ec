"""Algorithms 1, 2 and 3, printed and corrected, beside their bounds (Kundu et al., 2010).

    mirror descent   log K <- log K - eta f'(K),  K <- tau K / tr K
    as printed       f' = V diag(d) V',  lam_j <- lam_j exp(-eta d_j),  K <- V diag(lam) V'      lam_j of K

The two are the same only where K and f' commute, as in the first step from (tau/n) I. Runs keep the
best value so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, every, reached
from klopt.papers.theorems.kundu2010.entropy import exponential
from klopt.papers.theorems.kundu2010.quantities import (
    MIN_GAMMA,
    Gradients,
    composed,
    eskl,
    joint,
    kernel_optimum,
    lipschitz,
    plus,
    svm_optimum,
)
from klopt.problems import SimilarityKernels, SimilaritySpectra

__all__ = [
    "averaged",
    "decreasing",
    "emkl_run",
    "eskl_run",
    "fixed_horizon",
    "joint_optimum",
    "random_cuts",
    "random_run",
    "rekl_run",
    "spectral_optimum",
    "subgradient",
]

TIME_LIMIT_S = 5.0
"""Seconds after which a solver's interval is taken as it is."""

Oracle = Callable[[FloatArray], Gradients]


class IterateRecord(NamedTuple):
    """One step of a run: the value, and the largest norm of a gradient."""

    value: Interval
    gradient_norm: float


def _largest_norm(matrices: FloatArray) -> float:
    return float(np.linalg.norm(matrices, axis=(1, 2)).max())


def mirror_descent(
    oracle: Oracle, start: FloatArray, tau: float, step: Callable[[int], float]
) -> Iterator[IterateRecord]:
    """Yield the steps of mirror descent with the entropy, over one kernel or several."""
    # The run starts at (tau/n) I. The logarithm G of K is kept, which loses no small eigenvalue.
    G = np.zeros_like(start)
    K = start
    t = 0
    while True:
        t += 1
        found = oracle(K)
        gradients = found.svm + found.losses
        yield IterateRecord(found.value, _largest_norm(gradients))
        G = G - step(t) * gradients
        K = np.array([exponential(g, tau) for g in G])


def as_printed(
    oracle: Oracle, start: FloatArray, tau: float, step: Callable[[int], float], weight: float
) -> Iterator[IterateRecord]:
    """Yield the steps of Algorithms 1 and 2.

    `weight` multiplies rho L'; it is 1 / rho where the paper omits rho.
    """
    lam = np.full(start.shape[:2], tau / start.shape[1])
    K = start
    t = 0
    while True:
        t += 1
        found = oracle(K)
        yield IterateRecord(found.value, _largest_norm(found.svm + found.losses))
        d, V = np.linalg.eigh(found.svm + weight * found.losses)
        lam = lam * np.exp(-step(t) * (d - d[:, :1]))
        lam = tau * lam / lam.sum(axis=1, keepdims=True)
        K = np.array([composed(*pair) for pair in zip(lam, V, strict=True)])


def random_run(rng: np.random.Generator, n: int) -> Case:
    """Return similarities of n points, labels and the number of steps.

    There are few steps where each one calls a solver.
    """
    m = int(rng.integers(1, 4))
    A = rng.normal(size=(m, n, n))
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    name = str(rng.choice(["l1", "frobenius", "squared"]))
    C, rho = (float(x) for x in np.exp(rng.normal(size=2) / 2))
    return {
        "S": (A + A.transpose(0, 2, 1)) / 2, "y": y, "C": C, "rho": rho, "tau": 1.0, "loss": name,
        "steps": 400 if n == 2 else 20,
    }  # fmt: skip


def horizons(total: int) -> list[int]:
    """Return the numbers of steps at which a run is measured."""
    return sorted({int(t) for t in np.rint(np.geomspace(2, total, 12))})


def middle(case: Case, count: int) -> FloatArray:
    """Return (tau/n) I, so many times."""
    n = len(case["y"])
    return np.repeat(case["tau"] / n * np.eye(n)[None], count, axis=0)


def measured(
    records: Sequence[IterateRecord],
    optimum: Interval,
    bound: Callable[[int], float],
    total: int,
    label: str,
) -> Evidence:
    """Return the evidence for best value - optimum <= bound(T) at some T."""
    steps = horizons(total)
    gaps = [apart(_best_value(records[:t]), optimum) for t in steps]
    bounds = [bound(t) for t in steps]
    return reached(steps, gaps, bounds, -0.5, label)


def _best_value(records: Sequence[IterateRecord]) -> Interval:
    lower = min(record.value.lower for record in records)
    upper = min(record.value.upper for record in records)
    return Interval(lower, upper)


def apart(value: Interval, optimum: Interval) -> Interval:
    """Return how far a value is above the optimum; infinite if it is below, which none can be."""
    if value.upper < optimum.lower - 1e-6 * (1 + abs(optimum.lower)):
        return Interval(inf, inf)
    return Interval(max(value.lower - optimum.upper, 0.0), max(value.upper - optimum.lower, 0.0))


def decreasing(n: int, L: float, m: int = 1) -> Callable[[int], float]:
    """Return the printed steps (1/L) sqrt(2 log n / (m t))."""
    return lambda t: sqrt(2 * log(n) / (m * t)) / L


def eskl_run(case: Case, *, printed: bool) -> Evidence:
    """Return Algorithm 1, or mirror descent, with the steps of Proposition 3.1 beside its bound."""
    n = len(case["y"])
    L = lipschitz(case)
    tau = case["tau"]
    total = int(case["steps"])
    oracle = partial(_single, case)
    start = middle(case, 1)
    steps = decreasing(n, L)
    if printed:
        run = as_printed(oracle, start, tau, steps, 1.0)
        label = "Algorithm 1 as printed"
    else:
        run = mirror_descent(oracle, start, tau, steps)
        label = "mirror descent"

    records = list(islice(run, total))
    optimum = kernel_optimum(case)[0]
    rate = measured(records, optimum, lambda t: tau * L * sqrt(2 * log(n) / t), total, label)
    return _with_premise(rate, records, L)


def _with_premise(rate: Evidence, records: Sequence[IterateRecord], L: float) -> Evidence:
    """The evidence for a rate and for its premise, that L bounds the gradients along the run."""
    bounded = at_most(max(record.gradient_norm for record in records), L, tol=1e-9)
    return replace(every([rate, bounded]), curve=rate.curve)


def _single(case: Case, K: FloatArray) -> Gradients:
    return eskl(case, K[0])


def fixed_horizon(case: Case) -> Evidence:
    """Return mirror descent of constant step beside tau L sqrt(log n / T), for several T.

    The step is (2/L) sqrt(log n / T).
    """
    n = len(case["y"])
    L = lipschitz(case)
    tau = case["tau"]
    optimum, _, _ = kernel_optimum(case)
    oracle = partial(_single, case)
    start = middle(case, 1)

    # More than two points need a solver in each step.
    longest = min(150 if n == 2 else 25, int(case["steps"]))
    steps = [t for t in (4, 10, 25, 60, 150) if t <= longest]
    gaps: list[float | Interval] = []
    records: list[IterateRecord] = []
    for total in steps:
        size = 2 / L * sqrt(log(n) / total)
        run = mirror_descent(oracle, start, tau, fixed(size))
        own = list(islice(run, total))
        gaps.append(apart(_best_value(own), optimum))
        records += own
    bounds = [tau * L * sqrt(log(n) / t) for t in steps]
    return _with_premise(reached(steps, gaps, bounds, -0.5, "fixed horizon"), records, L)


def averaged(case: Case) -> Evidence:
    """Return dual averaging beside its bound.

    K_t = tau exp(-eta_t G_t) / tr(..), G_t the sum of the gradients so far and eta_t = (1/L)
    sqrt(log n / t).
    """
    n = len(case["y"])
    L = lipschitz(case)
    tau = case["tau"]
    total = int(case["steps"])
    gathered = np.zeros((n, n))
    records = []
    for t in range(1, total + 1):
        eta = sqrt(log(n) / t) / L
        found = eskl(case, exponential(-eta * gathered, tau))
        gradients = found.svm[0] + found.losses[0]
        records.append(IterateRecord(found.value, float(np.linalg.norm(gradients))))
        gathered = gathered + gradients
    optimum = kernel_optimum(case)[0]
    rate = measured(
        records, optimum, lambda t: 2 * tau * L * sqrt(log(n) / t), total, "dual averaging"
    )
    return _with_premise(rate, records, L)


def fixed(size: float) -> Callable[[int], float]:
    """Return a constant step."""
    return lambda t: size


def emkl_run(case: Case, *, printed: bool, divided: bool) -> Evidence:
    """Return Algorithm 2, or mirror descent, beside the bound of Theorem 3.2.

    The steps may be `divided` by sqrt(m).
    """
    n = len(case["y"])
    m = len(case["S"])
    tau = case["tau"]
    total = int(case["steps"])
    start = middle(case, m)
    oracle = partial(joint, case)
    L = float(case.get("L", 2 * initial_gradient_norm(case)))
    while True:
        steps = decreasing(n, L, m if divided else 1)
        if printed:
            run = as_printed(oracle, start, tau, steps, 1 / case["rho"])
        else:
            run = mirror_descent(oracle, start, tau, steps)
        records = list(islice(run, total))

        # Theorem 3.2 asks for an L that bounds the gradients along the run.
        gradient_norm = max(step.gradient_norm for step in records)
        if gradient_norm <= L:
            break
        L = 2 * gradient_norm
    label = "Algorithm 2 as printed" if printed else "mirror descent"
    bound = [tau * m * L * sqrt(2 * log(n) / t) for t in range(1, total + 1)]
    return measured(records, joint_optimum(case), lambda t: bound[t - 1], total, label)


def initial_gradient_norm(case: Case) -> float:
    """Return the largest norm of a gradient of F at the start."""
    found = joint(case, middle(case, len(case["S"])))
    return _largest_norm(found.svm + found.losses)


def joint_optimum(case: Case) -> Interval:
    """Return klopt's interval for F*."""
    problem = SimilarityKernels(
        list(case["S"]), case["y"], case["C"], case["rho"], case["tau"], case["loss"]
    )
    result = solve(problem, tol=1e-7, time_limit=TIME_LIMIT_S)
    return Interval(result.lower, result.upper)


def spectral_optimum(case: Case) -> Interval:
    """Return klopt's interval for g* with the loss |mu - lambda|^2."""
    result = solve(
        SimilaritySpectra(list(case["S"]), case["y"], case["C"], case["rho"], case["tau"]),
        tol=1e-7,
        time_limit=TIME_LIMIT_S,
    )
    return Interval(result.lower, result.upper)


def rekl_run(case: Case, *, printed: bool) -> Evidence:
    """Return Algorithm 3 beside the bound of Proposition 3.2, for the loss |mu - lambda|^2.

    As printed it omits rho.
    """
    n = len(case["y"])
    m = len(case["S"])
    tau = case["tau"]
    total = int(case["steps"])
    weight = 1 / case["rho"] if printed else 1.0
    first = next(spectral(case, weight, fixed(0.0)))
    L = float(case.get("L", 2 * first.gradient_norm))
    while True:
        steps = decreasing(n, L, m if printed else 1)
        records = list(islice(spectral(case, weight, steps), total))

        # Proposition 3.2 asks for an L that bounds the gradients along the run.
        gradient_norm = max(step.gradient_norm for step in records)
        if gradient_norm <= L:
            break
        L = 2 * gradient_norm
    label = "Algorithm 3 as printed" if printed else "with rho"
    bound = [tau * m * L * sqrt(2 * log(n) / t) for t in range(1, total + 1)]
    return measured(records, spectral_optimum(case), lambda t: bound[t - 1], total, label)


def spectral(case: Case, weight: float, step: Callable[[int], float]) -> Iterator[IterateRecord]:
    """Yield the steps of exponentiated gradient on the spectra.

    `weight` multiplies the gradient of the loss.
    """
    lam, V = np.linalg.eigh(case["S"])
    logs = np.zeros_like(lam)
    t = 0
    while True:
        t += 1
        mu = np.exp(logs - logs.max(axis=1, keepdims=True))
        mu = case["tau"] * mu / mu.sum(axis=1, keepdims=True)
        kernels = np.array([composed(*pair) for pair in zip(mu, V, strict=True)])
        found = svm_optimum(case, kernels)

        gamma = np.maximum(found.gamma, MIN_GAMMA)[:, None]
        fit = -(np.einsum("mij,i->mj", V, found.a) ** 2) / (2 * gamma)
        losses = 2 * case["rho"] * (mu - lam)
        value = plus(found.value, case["rho"] * float(np.sum((mu - lam) ** 2)))
        yield IterateRecord(value, float(np.abs(fit + losses).max()))
        logs = logs - step(t) * (fit + weight * losses)


def random_cuts(rng: np.random.Generator, n: int) -> Case:
    """Return f(x) = max(max_j g_j'x + c_j, floor) whose floor is reached at `best`."""
    G = rng.normal(size=(4, n))
    c = rng.normal(size=4)
    best = rng.normal(size=n)
    return {"G": G, "c": c, "best": best, "T": int(rng.integers(2, 30))}


def subgradient(case: Case, *, fixed: bool) -> Evidence:
    """Return the evidence for (15), gap <= L R / sqrt(T), with psi = |x|^2 / 2.

    Mirror descent from 0 is then the subgradient method.
    """
    G = case["G"]
    c = case["c"]
    best = case["best"]
    T = int(case["T"])
    floor = float((G @ best + c).max())
    R = float(np.linalg.norm(best))
    L = float(np.linalg.norm(G, axis=1).max())
    x = np.zeros(len(best))
    values = []
    for t in range(1, T + 1):
        cuts = G @ x + c
        values.append(max(float(cuts.max()), floor))
        if values[-1] > floor:
            x = x - R / L / sqrt(T if fixed else t) * G[int(cuts.argmax())]
    scale = abs(floor) + L * R
    return at_most(min(values) - floor, L * R / sqrt(T), scale=scale)
