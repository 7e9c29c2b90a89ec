"""Slack transform, quadratic programs and the multiplicative update (Xie et al., 2017).

A case has the labelled rows V of the eigenvectors, the classes and sigma; or F and b alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every
from klopt.problems import QCQP, OrderedAlignment

DIVERGENCE_THRESHOLD = 1e12
"""Growth of an iterate above which a run has diverged."""


def random_labelled(rng: np.random.Generator, m: int) -> Case:
    """Return the labelled rows of m vectors, classes and sigma."""
    rows = int(rng.integers(1, m + 2))
    return {
        "V": rng.normal(size=(rows, m)),
        "classes": rng.integers(0, 3, rows),
        "sigma": float(rng.choice([1.0, 1.05, 1.2, 1.5])),
    }


def random_scores(rng: np.random.Generator, m: int) -> Case:
    """Return slacks and sigma."""
    return {"s": rng.random(m), "sigma": float(rng.choice([1.0, 1.1, 2.0]))}


def random_quadratic(rng: np.random.Generator, m: int) -> Case:
    """Return F >= 0 entrywise and positive semidefinite, b > 0 and a positive start."""
    R = rng.random((m, m))
    return {"F": R @ R.T, "b": rng.random(m) + 0.1, "a": rng.random(m) + 0.01}


def transform(case: Case, m: int) -> FloatArray:
    """Return C of (12): C_ik = sigma^(k - i) for k >= i."""
    power = np.arange(m)[None, :] - np.arange(m)[:, None]
    return np.triu(float(case["sigma"]) ** np.maximum(power, 0))


def indicators(case: Case) -> FloatArray:
    """Return the class indicator matrix Y^L."""
    return np.asarray((case["classes"][:, None] == np.arange(3)).astype(float))


def products(case: Case) -> tuple[FloatArray, FloatArray]:
    """Return F_ij = (v_i'v_j)^2 and b_i = |Y'v_i|^2."""
    V = case["V"]
    return (V.T @ V) ** 2, np.sum((indicators(case).T @ V) ** 2, axis=0)


def alignment(case: Case, alpha: FloatArray) -> float:
    """Return <K, YY'> / (||K|| ||YY'||) for K = sum_i alpha_i v_i v_i'."""
    K = (case["V"] * alpha) @ case["V"].T
    T = indicators(case) @ indicators(case).T
    return float(np.sum(K * T) / (np.linalg.norm(K) * np.linalg.norm(T)))


def best_alignment(case: Case, *, ordered: bool, formulation: str | None = None) -> Interval:
    """Return klopt's interval for the best alignment."""
    sigma = case["sigma"] if ordered else 1.0
    result = solve(
        OrderedAlignment(case["V"], case["classes"], sigma, ordered=ordered),
        formulation=formulation,
    )
    return Interval(result.lower, result.upper)


def minimal_quadratic(F: FloatArray, b: FloatArray, G: FloatArray) -> Interval:
    """Return klopt's interval for the minimal a'Fa with b'a = 1 and Ga >= 0."""
    scale = float(np.max(b))
    none = np.zeros(len(b))
    program = QCQP(
        2 * F,
        none,
        A_ub=-G,
        b_ub=np.zeros(len(G)),
        A_eq=b[None] / scale,
        b_eq=[1.0],
    )
    result = solve(program, tol=1e-7)
    return Interval(result.lower / scale**2, result.upper / scale**2)


def order_rows(case: Case, m: int) -> FloatArray:
    """Return the rows alpha_i - sigma alpha_(i+1), the last one alpha_m."""
    return np.eye(m) - float(case["sigma"]) * np.eye(m, k=1)


def update(F: FloatArray, b: FloatArray, a: FloatArray) -> FloatArray:
    """Return (33): a_i lam b_i / (Fa)_i with lam = a'Fa, all entries at once."""
    Fa = F @ a
    with np.errstate(all="ignore"):
        return np.asarray(a * ((a @ Fa) * b / Fa))


def iterates(case: Case, *, rescale: bool = True) -> Iterator[FloatArray]:
    """Yield the iterates of (28), with or without step (3), from the case's start with b'a = 1."""
    F = case["F"]
    b = case["b"]
    a = case["a"] / float(b @ case["a"])
    while True:
        yield a
        a = update(F, b, a)
        if rescale:
            a = a / float(b @ a)


def objective(case: Case, a: FloatArray) -> float:
    """Return a'Fa / (b'a)^2."""
    return float(a @ case["F"] @ a) / float(case["b"] @ a) ** 2


def kkt_multipliers(case: Case, a: FloatArray) -> FloatArray:
    """Return xi = 2 Fa - 2 lam b."""
    Fa = case["F"] @ a
    return np.asarray(2 * Fa - 2 * float(a @ Fa) * case["b"])


def certified_gap(case: Case, a: FloatArray) -> float:
    """Return 1 - rho^2, rho = min (Fa)_i / (lam b_i): the relative error that is left at most."""
    Fa = case["F"] @ a
    rho = float(np.min(Fa / (float(a @ Fa) * case["b"])))
    return 1 - min(rho, 1.0) ** 2


def lagrangian_falls(case: Case, steps: int) -> Evidence:
    """Return whether L = a'Fa - 2 lam (b'a - 1) falls in every update (33), lam fixed."""
    F = case["F"]
    b = case["b"]
    parts = []
    for a in islice(iterates(case), steps):
        lam = float(a @ F @ a)
        new = update(F, b, a)
        after = float(new @ F @ new) - 2 * lam * (float(b @ new) - 1)
        # Both may be negative: shifted by 3 lam, which bounds the fall of one step, they are
        # compared as they are.
        parts.append(at_most(after + 3 * lam, 4 * lam, scale=10 * lam))
    return every(parts)


def exact_dot(a: Any, b: Any) -> Any:
    """Return a'b of fractions."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def exact_objective(F: Any, a: Any) -> Any:
    """Return a'Fa of fractions."""
    return exact_dot(a, [exact_dot(row, a) for row in F])


def values_along(case: Case, steps: int) -> list[float]:
    """Return a'Fa / (b'a)^2 along the iterates of (28)."""
    return [objective(case, a) for a in islice(iterates(case), steps)]


def values_fall(values: Sequence[float]) -> Evidence:
    """Return the evidence that no value is above the one before it."""
    return every(at_most(after, before, tol=1e-12) for before, after in pairwise(values))


def entries_along(case: Case, steps: Iterable[int]) -> list[float]:
    """Return the second entry of the iterates of (28) after so many steps."""
    wanted = sorted(set(map(int, steps)))
    run = list(islice(iterates(case), wanted[-1] + 1))
    return [float(run[t][1]) for t in wanted]


def scaled_transform(case: Case) -> Evidence:
    """Return whether D^-1 C D, D_ii = sigma^-(i-1), is C of the plain order, well conditioned.

    The singular values of the triangle of ones are known: their ratio is cos(x) / sin(x / 2) with
    x = pi / (2m + 1).
    """
    m = int(case["m"])
    scales = float(case["sigma"]) ** -np.arange(m)
    scaled = transform(case, m) * scales[None, :] / scales[:, None]
    plain = transform({"sigma": 1.0}, m)
    x = np.pi / (2 * m + 1)
    condition = float(np.cos(x) / np.sin(x / 2))
    measured = float(np.linalg.cond(scaled))
    return every([
        equal(scaled, plain, tol=1e-9),
        equal(measured, condition, tol=1e-8),
        at_most(measured**2, 1 / float(np.finfo(float).eps)),
    ])  # fmt: skip


def sweep(case: Case, a: FloatArray, *, refresh: bool) -> FloatArray:
    """Return a after one pass over the entries one by one, lam kept or computed anew for each."""
    F = case["F"]
    b = case["b"]
    a = a.copy()
    lam = float(a @ F @ a)
    for i in range(len(a)):
        a[i] *= (float(a @ F @ a) if refresh else lam) * b[i] / float(F[i] @ a)
    return a
