"""Kernels from indefinite similarities: Newton's method and ADMM against other solvers.

    python benchmarks/similarity.py            ten minutes, nearly all of it the baselines
    python benchmarks/similarity.py quick      leaves out what takes a minute or more

Every figure is a ratio of times of this run: CPU seconds of one BLAS thread, the smallest of thirty runs for klopt, one
run for what takes seconds. klopt is timed with its proof (klopt.solve on a problem that is built). Data: breast cancer,
a subset of n standardised points, S = Gaussian kernel + 0.3 symmetric noise, trace n, (rho, C) = (0.05, 1) where
nothing else is said. With KLOPT_DATA set to a folder that has similarity/AuralSonar.npz and similarity/Yeast_SW_200.npz
these are run as well. Mirror descent keeps its dual iterate, log K_t = -eta (f'_1 + .. + f'_t) up to the trace; it is
given the best of six fixed steps in hindsight and stops when its best value is within 1e-2 of the optimum, which it is
told.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _rows import Table, best_of, cpu

import klopt
from klopt.problems import SimilarityKernel, SimilarityKernels, SimilaritySpectra

QUICK = "quick" in sys.argv[1:]
RHO = 0.05
C = 1.0
GAP = 1e-2
LIMIT = 60.0
STEPS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The steps of mirror descent that the best is taken of, as multiples of the paper's."""
FINER = 50.0
"""Of 20, 30, 40, 50, 60 and 80 times the paper's the best step of spectra."""


def instance(n: int, seed: int = 0, width: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer

    X, target = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    X = ((X - X.mean(0)) / X.std(0))[chosen]
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / (width * X.shape[1]))
    noise = rng.normal(size=(n, n))
    return K + 0.3 * (noise + noise.T) / np.sqrt(2), 2.0 * target[chosen] - 1


def several(n: int, m: int = 3) -> tuple[list[np.ndarray], np.ndarray]:
    return [instance(n, seed, 4.0 ** (seed - 1))[0] for seed in range(m)], instance(n)[1]


def solved(problem: Any, tol: float) -> tuple[float, Any]:
    return best_of(30, lambda: klopt.solve(problem, tol=tol).require())


def optimum(problem: Any) -> float:
    """What mirror descent is told."""
    return float(klopt.solve(problem, tol=1e-8).require().value)


def by_cvxpy(
    S: list[np.ndarray], y: np.ndarray, loss: str, solver: str, apart: bool
) -> tuple[float, float]:
    """Seconds and value of the semidefinite program as one would write it."""
    import cvxpy as cp

    n = y.size

    def run() -> float:
        t = cp.Variable()
        xi = cp.Variable(n, nonneg=True)
        b = cp.Variable()
        blocks = [cp.Variable((n + 1, n + 1), PSD=True) for _ in (S if apart else S[:1])]
        kernels = [X[:n, :n] for X in blocks]
        margin = cp.multiply(y, sum(X[:n, n] for X in blocks) + b) >= 1 - xi
        fixed = [cp.trace(K) == n for K in kernels] + [X[n, n] == t for X in blocks]
        losses = {
            "squared": cp.sum_squares,
            "frobenius": lambda X: cp.norm(X, "fro"),
            "l1": lambda X: cp.sum(cp.abs(X)),
        }
        pairs = zip(kernels, S, strict=True) if apart else [(kernels[0], Si) for Si in S]
        cost = t / 2 + C * cp.sum(xi) + RHO * sum(losses[loss](K - Si) for K, Si in pairs)
        settings = {"eps": 1e-7, "max_iters": 20000} if solver == "SCS" else {}
        return float(
            cp.Problem(cp.Minimize(cost), [margin, *fixed]).solve(solver=solver, **settings)
        )

    return cpu(run)


def spectra_by_cvxpy(S: list[np.ndarray], y: np.ndarray, solver: str) -> tuple[float, float]:
    import cvxpy as cp

    n = y.size
    bases = [np.linalg.eigh(Si) for Si in S]

    def run() -> float:
        t = cp.Variable()
        xi = cp.Variable(n, nonneg=True)
        b = cp.Variable()
        mu = cp.Variable((len(S), n))
        u = cp.Variable((len(S), n))
        r = cp.Variable((len(S), n))
        cones = [
            cp.SOC(mu[i] + r[i], cp.vstack([mu[i] - r[i], 2 * u[i]]), axis=0) for i in range(len(S))
        ]
        f = sum(V @ u[i] for i, (_, V) in enumerate(bases))
        rows = [
            cp.multiply(y, f + b) >= 1 - xi,
            cp.sum(mu, axis=1) == n,
            cp.sum(r, axis=1) <= t,
            *cones,
        ]
        loss = sum(cp.sum_squares(mu[i] - lam) for i, (lam, _) in enumerate(bases))
        return float(
            cp.Problem(cp.Minimize(t / 2 + C * cp.sum(xi) + RHO * loss), rows).solve(solver=solver)
        )

    return cpu(run)


def compared(
    table: Table, what: str, against: str, gate: float, ours: tuple[float, Any], theirs: Any
) -> None:
    seconds, result = ours
    slow, value = theirs
    error = abs(value - result.value) / (1 + abs(result.value))
    gap = result.certificate.relative_gap
    note = f"{1e3 * seconds:.1f} ms, {result.route}, gap {gap:.0e}; {slow:.2f} s, values differ by {error:.0e}"
    table.add(what, against, gate, slow / seconds, note)


def mirror_descent(
    n: int, f: Callable[[np.ndarray], tuple[float, np.ndarray]], step: float, goal: float
) -> float:
    """Seconds until a value below the goal; inf where the limit comes first."""
    began = time.process_time()
    G = np.zeros((n, n))
    K = np.eye(n)
    while time.process_time() - began < LIMIT / 4:
        value, gradient = f(K)
        if value <= goal:
            return time.process_time() - began
        G -= step * gradient
        lam, V = np.linalg.eigh(G)
        mu = np.exp(lam - lam.max())
        K = V * (n * mu / mu.sum()) @ V.T
    return np.inf


def svm(K: np.ndarray, y: np.ndarray, box: float) -> tuple[float, np.ndarray]:
    """The value of the support vector machine of a kernel and its signed multipliers, by LIBSVM."""
    from sklearn.svm import SVC

    with warnings.catch_warnings():  # on a kernel of low rank it may never end
        warnings.simplefilter("ignore")
        fit = SVC(C=box, kernel="precomputed", tol=1e-4, max_iter=20_000).fit(K, y)
    a = np.zeros(y.size)
    a[fit.support_] = fit.dual_coef_[0]
    return float(a @ y - a @ K @ a / 2), a


def tuned(
    n: int, S: np.ndarray, y: np.ndarray, loss: str, rho: float, box: float, best: float
) -> tuple[float, float]:
    """The smallest seconds of six step sizes to within GAP, and that step over the paper's."""

    def f(K: np.ndarray) -> tuple[float, np.ndarray]:
        value, a = svm(K, y, box)
        X = K - S
        term, gradient = (
            (np.sum(X**2), 2 * X) if loss == "squared" else (np.abs(X).sum(), np.sign(X))
        )
        return value + rho * term, rho * gradient - np.outer(a, a) / 2

    size = float(np.linalg.norm(f(np.eye(n))[1]))
    paper = np.sqrt(2 * np.log(n) / 1000) / size
    times = {c: mirror_descent(n, f, c * paper, best + GAP * (1 + abs(best))) for c in STEPS}
    c = min(times, key=times.__getitem__)
    return times[c], c


def squared(table: Table) -> None:
    for n, gates in (
        (50, {"SCS": 10.0, "CLARABEL": 300.0}),
        (100, {"SCS": 15.0}),
        (200, {"SCS": 30.0}),
    ):
        S, y = instance(n)
        ours = solved(SimilarityKernel(S, y, C, RHO, float(n)), 1e-6)
        for solver, gate in gates.items():
            theirs = by_cvxpy([S], y, "squared", solver, False)
            compared(table, f"ESKL squared, n={n}", f"CVXPY SDP {solver}", gate, ours, theirs)
    n = 400
    S, y = instance(n)
    seconds, result = solved(SimilarityKernel(S, y, C, RHO, float(n)), 1e-6)
    unit, _ = best_of(3, lambda: np.linalg.eigh(S))
    table.add(
        f"ESKL squared, n={n}",
        "one eigh(400)",
        22.0,
        seconds / unit,
        f"{result.iterations} steps",
        at_most=True,
    )
    n = 100 if QUICK else n
    S, y = instance(n)
    problem = SimilarityKernel(S, y, C, RHO, float(n))
    rough, _ = solved(problem, GAP)
    slow, c = tuned(n, S, y, "squared", RHO, C, optimum(problem))
    table.add(
        f"ESKL squared, n={n}",
        "mirror descent, tuned, to 1e-2",
        6.0,
        slow / rough,
        f"{slow:.2f} s at step x {c:g}",
    )


def other_losses(table: Table) -> None:
    for n in (50, 100):
        S, y = instance(n)
        ours = solved(SimilarityKernel(S, y, C, RHO, float(n), "frobenius"), 1e-6)
        compared(
            table,
            f"ESKL frobenius, n={n}",
            "CVXPY SDP SCS",
            8.0,
            ours,
            by_cvxpy([S], y, "frobenius", "SCS", False),
        )
    for n in (100, 200):
        S, y = instance(n)
        problem = SimilarityKernel(S, y, C, RHO, float(n), "l1")
        seconds, result = best_of(3, lambda p=problem: klopt.solve(p, "admm", tol=1e-4).require())
        note = (
            f"{seconds:.2f} s, {result.iterations} steps, gap {result.certificate.relative_gap:.0e}"
        )
        slow, conic = best_of(
            2, lambda p=problem: klopt.solve(p, "scs", formulation="SDP", tol=1e-4)
        )
        table.add(
            f"ESKL l1, n={n}",
            "SDP, scs through klopt",
            2.0,
            slow / seconds,
            f"{note}; {conic.verdict.name}",
        )
        rough, _ = cpu(lambda p=problem: klopt.solve(p, "admm", tol=GAP).require())
        slow, c = tuned(n, S, y, "l1", RHO, C, result.upper)
        table.add(
            f"ESKL l1, n={n}",
            "mirror descent, tuned, to 1e-2",
            2.0,
            slow / rough,
            f"{slow:.2f} s, step x {c:g}",
        )


def many_kernels(table: Table) -> None:
    S, y = several(100)
    ours = solved(SimilarityKernels(S, y, C, RHO, 100.0), 1e-6)
    compared(
        table,
        "EMKL, n=100, m=3",
        "CVXPY SDP SCS",
        8.0,
        ours,
        by_cvxpy(S, y, "squared", "SCS", True),
    )
    S, y = several(400)
    seconds, result = best_of(
        2, lambda: klopt.solve(SimilarityKernels(S, y, C, RHO, 400.0), tol=1e-6).require()
    )
    table.add(
        "EMKL, n=400, m=3", "seconds", 1.5, seconds, f"{result.iterations} steps", at_most=True
    )
    S, y = several(200)
    ours = solved(SimilaritySpectra(S, y, C, RHO, 200.0), 1e-6)
    for solver in ("CLARABEL", "ECOS"):
        compared(
            table,
            "REKL, n=200, m=3",
            f"CVXPY SOCP {solver}",
            8.0,
            ours,
            spectra_by_cvxpy(S, y, solver),
        )
    S, y = several(100)
    problem = SimilaritySpectra(S, y, C, RHO, 100.0)
    rough, _ = solved(problem, GAP)
    times = _spectra_descent(S, y, optimum(problem), STEPS)
    c = min(times, key=times.__getitem__)
    note = f"{1e3 * rough:.1f} ms; {times[c]:.2f} s at step x {c:g}"
    for finer, slow in _spectra_descent(S, y, optimum(problem), (FINER,)).items():
        note += f"; at x {finer:g}, the best of a finer grid, {slow / rough:.0f}"
    table.add("REKL, n=100, m=3", "mirror descent, tuned, to 1e-2", 50.0, times[c] / rough, note)


def _spectra_descent(
    S: list[np.ndarray], y: np.ndarray, best: float, steps: tuple[float, ...]
) -> dict[float, float]:
    """Mirror descent over the spectra: seconds by multiple of the paper's step."""
    n = y.size
    bases = [np.linalg.eigh(Si) for Si in S]
    lam = np.array([values for values, _ in bases])
    goal = best + GAP * (1 + abs(best))

    def at(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mu = np.exp(theta - theta.max(axis=1, keepdims=True))
        mu *= n / mu.sum(axis=1, keepdims=True)
        value, a, gamma = _alternation(
            [V * m @ V.T for m, (_, V) in zip(mu, bases, strict=True)], y
        )
        pull = np.array([(V.T @ a) ** 2 / (2 * g) for g, (_, V) in zip(gamma, bases, strict=True)])
        return value + RHO * float(np.sum((mu - lam) ** 2)), 2 * RHO * (mu - lam) - pull

    def run(step: float) -> float:
        began = time.process_time()
        theta = np.zeros_like(lam)
        while time.process_time() - began < LIMIT / 6:
            value, gradient = at(theta)
            if value <= goal:
                return time.process_time() - began
            theta -= step * gradient
        return np.inf

    paper = float(np.sqrt(2 * np.log(n) / 1000) / np.abs(at(np.zeros_like(lam))[1]).max())
    return {c: min(run(c * paper) for _ in range(2)) for c in steps}


def _alternation(kernels: list[np.ndarray], y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Multiple kernel learning as in the paper: alternate SVC and the closed form of gamma."""
    gamma = np.full(len(kernels), 1 / len(kernels))
    last = -np.inf
    for _ in range(20):
        value, a = svm(sum(K / g for K, g in zip(kernels, gamma, strict=True)), y, C)
        r = np.sqrt([max(a @ K @ a, 1e-12) for K in kernels])
        gamma = r / r.sum()
        if abs(value - last) <= 1e-4 * abs(value):
            break
        last = value
    return value, a, gamma


def inner_machines(table: Table) -> None:
    """Mirror descent's cold fits of SVC alone against all of Newton's method."""
    S, y = instance(100)
    problem = SimilarityKernel(S, y, C, RHO, 100.0)
    rough, _ = solved(problem, GAP)
    best_value = optimum(problem)
    spent = []

    def timed(K: np.ndarray) -> tuple[float, np.ndarray]:
        seconds, found = cpu(lambda: svm(K, y, C))
        spent.append(seconds)
        return found[0] + RHO * np.sum((K - S) ** 2), 2 * RHO * (K - S) - np.outer(
            found[1], found[1]
        ) / 2

    step = np.sqrt(2 * np.log(100) / 1000) / np.linalg.norm(timed(np.eye(100))[1])
    best = np.inf
    count = 0
    for c in STEPS:
        spent.clear()
        if np.isfinite(mirror_descent(100, timed, c * step, best_value + GAP * (1 + best_value))):
            best, count = min((best, count), (sum(spent), len(spent)))
    table.add(
        "inner SVM, n=100",
        "cold SVC in mirror descent",
        3.0,
        best / rough,
        f"{count} fits, ours none",
    )


def real(table: Table, folder: Path) -> None:
    for name in ("AuralSonar", "Yeast_SW_200"):
        data = np.load(folder / "similarity" / f"{name}.npz")
        S = (data["S"] + data["S"].T) / 2
        y = np.where(data["y"] == data["y"].min(), -1.0, 1.0)
        n = y.size
        ours = solved(SimilarityKernel(S, y, C, RHO, float(n)), 1e-6)
        compared(
            table, name, "CVXPY SDP SCS", 10.0, ours, by_cvxpy([S], y, "squared", "SCS", False)
        )
        problem = SimilarityKernel(S, y, C, RHO, float(n), "l1")
        seconds, _ = cpu(lambda p=problem: klopt.solve(p, "admm", tol=1e-4).require())
        slow, _ = cpu(lambda p=problem: klopt.solve(p, "scs", formulation="SDP", tol=1e-4))
        table.add(f"{name}, l1", "SDP, scs through klopt", 2.0, slow / seconds, f"{seconds:.2f} s")


def main() -> None:
    klopt.solve(SimilarityKernel.sample(np.random.default_rng(0), 10))  # imports
    table = Table()
    squared(table)
    other_losses(table)
    many_kernels(table)
    inner_machines(table)
    if "KLOPT_DATA" in os.environ:
        real(table, Path(os.environ["KLOPT_DATA"]))
    table.close()


if __name__ == "__main__":
    main()
