"""Multiple kernel learning: Newton's method against conic solvers and alternation with SVC.

    python benchmarks/mkl.py            three minutes, nearly all of it CVXPY
    python benchmarks/mkl.py quick      leaves out n = 400

Every figure is a ratio of times of this run: CPU seconds of one BLAS thread, smallest of several
repeats for klopt, one run for what takes seconds. klopt is timed with its proof (klopt.solve on a
problem that is built); the checks of the kernels are noted beside it. Data: breast cancer (569 x
30, standardised), m Gaussian kernels of widths 2^-2 .. 2^2 times the dimension, C = 1, norm
block-linf, (10) of Kundu et al., and block-l1, (5). CVXPY gets the symmetric roots K_i^1/2; with
triangular ones, which have half the entries, it is faster: noted too. Block-l1 is also measured
against klopt's own call of Clarabel, its best route but for the weights, and against cutting
planes.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _rows import Row

import klopt
from klopt.model.problem import Point
from klopt.problems import MultipleKernel

QUICK = "quick" in sys.argv[1:]
verdicts: list[bool] = []


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    runs = [cpu(run) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def row(what: str, against: str, gate: float, measured: float, note: str = "") -> None:
    entered = Row(what, against, gate, measured, note, at_most=False)
    verdicts.append(entered.passed)
    print(entered, flush=True)


def kernels(n: int, m: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    from sklearn.datasets import load_breast_cancer

    X, target = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(X))[:n]
    X = ((X - X.mean(0)) / X.std(0))[chosen]
    squares = np.sum(X**2, axis=1)
    squares = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0)
    np.fill_diagonal(squares, 0.0)
    return [
        np.exp(-squares / (X.shape[1] * w)) for w in np.logspace(-2, 2, m, base=2)
    ], 2.0 * target[chosen] - 1


def _root(K: np.ndarray) -> np.ndarray:
    """The symmetric root."""
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _triangle(K: np.ndarray) -> np.ndarray:
    """A triangular root: half the entries."""
    return np.linalg.cholesky(K + 1e-12 * np.eye(len(K))).T


def by_cvxpy(
    K: list[np.ndarray],
    y: np.ndarray,
    C: float,
    solver: str,
    root: Callable[[np.ndarray], np.ndarray],
    norm: str = "block-linf",
) -> tuple[float, float]:
    """Seconds and value of the SOCP with |K_i^1/2 a| <= r_i, one r for all in block-l1."""
    import cvxpy as cp

    factors = [root(k) for k in K]

    def run() -> float:
        alpha = cp.Variable(y.size)
        r = cp.Variable(len(K) if norm == "block-linf" else 1)
        norms = [cp.norm(R @ cp.multiply(y, alpha)) <= r[i % r.size] for i, R in enumerate(factors)]
        objective = cp.Maximize(cp.sum(alpha) - cp.square(cp.sum(r)) / 2)
        return float(
            cp.Problem(objective, [alpha >= 0, alpha <= C, y @ alpha == 0, *norms]).solve(
                solver=solver
            )
        )

    return cpu(run)


def by_alternation(
    problem: MultipleKernel, K: list[np.ndarray], y: np.ndarray, limit: float
) -> tuple[dict[float, float], float, float]:
    """SVC with the kernel sum K_i / gamma_i, then gamma in closed form.

    Seconds, without those of the proofs, to each gap that is reached, seconds in all, and the smallest
    gap.
    """
    from sklearn.svm import SVC

    gamma = np.full(len(K), 1 / len(K))
    spent = 0.0
    best = np.inf
    reached: dict[float, float] = {}
    while spent < limit and best > 1e-6:
        began = time.process_time()
        mixed = sum(k / g for k, g in zip(K, gamma, strict=True))
        svm = SVC(C=problem.C, kernel="precomputed", tol=1e-8).fit(mixed, y)
        a = np.zeros(y.size)
        a[svm.support_] = svm.dual_coef_[0]
        r = np.sqrt([a @ (k @ a) for k in K])
        gamma = r / r.sum()
        spent += time.process_time() - began
        bracket = problem.bracket(Point({"alpha": a * y}))
        best = min(best, bracket.gap / (1 + abs(bracket.upper)))
        for gap in (1e-2, 1e-4, 1e-5, 1e-6):
            if best <= gap:
                reached.setdefault(gap, spent)
    return reached, spent, best


def block_linf(
    n: int, m: int, gates: tuple[tuple[str, float], ...], alternation: float | None
) -> None:
    K, y = kernels(n, m)
    built, problem = best_of(3, lambda: MultipleKernel(K, y, 1.0, norm="block-linf"))
    seconds, result = best_of(5, lambda: klopt.solve(problem, tol=1e-8).require())
    width = result.certificate.relative_gap
    name = f"n = {n}, m = {m}"
    print(
        f"      {name}: {1e3 * seconds:.1f} ms + {1e3 * built:.1f} ms for the checks, {result.route}, gap {width:.0e}"
    )
    for solver, gate in gates:
        slow, value = by_cvxpy(K, y, 1.0, solver, _root)
        error = abs(value - result.value) / (1 + abs(result.value))
        half, _ = by_cvxpy(K, y, 1.0, solver, _triangle)
        note = f"{slow:.2f} s, objectives differ by {error:.0e}; with triangular roots {half / seconds:.0f}"
        row(name, f"CVXPY SOCP {solver}", gate, slow / seconds, note)
    if alternation is not None:
        reached, spent, best = by_alternation(problem, K, y, 3 * alternation * seconds)
        times = ", ".join(f"{gap:.0e}: {taken / seconds:.1f}" for gap, taken in reached.items())
        note = (
            f"{'reached' if best <= 1e-6 else 'stalls at'} {best:.1e}; ratio at each gap: {times}"
        )
        row(name, "alternation, SVC, to 1e-6", alternation, spent / seconds, note)


def block_l1(n: int, m: int, solver: str, gates: tuple[float, float]) -> None:
    K, y = kernels(n, m)
    problem = MultipleKernel(K, y, 1.0)
    seconds, result = best_of(5, lambda: klopt.solve(problem, tol=1e-8).require())
    name = f"(5) n = {n}, m = {m}"
    print(
        f"      {name}: {1e3 * seconds:.1f} ms, {result.route}, gap {result.certificate.relative_gap:.0e}"
    )
    slow, value = by_cvxpy(K, y, 1.0, solver, _root, "block-l1")
    half, _ = by_cvxpy(K, y, 1.0, solver, _triangle, "block-l1")
    error = abs(value - result.value) / (1 + abs(result.value))
    note = f"{slow:.2f} s, objectives differ by {error:.0e}; with triangular roots {half / seconds:.0f}"
    row(name, f"CVXPY SOCP {solver}", gates[0], slow / seconds, note)
    conic, _ = cpu(lambda: klopt.solve(problem, "clarabel", tol=1e-8).require())
    row(name, "klopt, Clarabel on SOCP", gates[1], conic / seconds, f"{conic:.2f} s")
    cuts, other = cpu(lambda: klopt.solve(problem, "cutting_planes", tol=1e-6).require())
    note = f"{cuts:.2f} s to 1e-6, {other.iterations} SVMs"
    row(name, "klopt, cutting planes", 1.0, cuts / seconds, note)


def main() -> int:
    klopt.solve(MultipleKernel.sample(np.random.default_rng(0), 10))  # imports
    block_linf(200, 5, (("ECOS", 100.0), ("CLARABEL", 100.0)), None)
    block_l1(200, 5, "CLARABEL", (50.0, 10.0))
    if not QUICK:
        block_l1(400, 5, "CLARABEL", (100.0, 20.0))
        block_linf(400, 5, (("ECOS", 300.0), ("CLARABEL", 300.0)), 20.0)
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
