"""What klopt adds to a solver: klopt end to end against the native call, CVXPY, scikit-learn and bare imports.

    python benchmarks/overhead.py

Every figure is a ratio of times taken in this run, one BLAS thread, least of several repeats. The native call gets the
very matrices and settings that klopt's backend would give it; CVXPY gets the same problem, solver and tolerances.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import klopt
from klopt.backend import Settings
from klopt.presolve import reduce_rows
from klopt.problems import SoftMargin
from klopt.registry import backend_named


def race(repeats: int, *runs: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Return the least wall-clock seconds of each, taken in turns so that a busy moment hits all, and the results."""
    best, results = [np.inf] * len(runs), [None] * len(runs)
    for _ in range(repeats):
        for index, run in enumerate(runs):
            began = time.perf_counter()
            results[index] = run()
            best[index] = min(best[index], time.perf_counter() - began)
    return best, results


def digits(n: int, kernel: str = "rbf") -> tuple[np.ndarray, np.ndarray]:
    """Return a Gram matrix and labels (odd or even) of n handwritten digits, noisy repeats above 1797."""
    from sklearn.datasets import load_digits
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

    X, digit = load_digits(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(X))[:n] if n <= len(X) else rng.integers(0, len(X), n)
    points = X[chosen] + (0.0 if n <= len(X) else 0.3 * rng.normal(size=(n, X.shape[1])))
    K = rbf_kernel(points, gamma=1 / 64) if kernel == "rbf" else linear_kernel(points) / 64
    return (K + K.T) / 2, np.where(digit[chosen] % 2, 1.0, -1.0)


def wrapper(name: str, n: int, kernel: str, repeats: int = 5) -> None:
    """klopt end to end against the native call inside it, and against CVXPY end to end with the same solver."""
    K, y = digits(n, kernel)
    gram, tol = klopt.Gram.of(K), 1e-6
    formulation = next(f for f in SoftMargin(gram, y, 1.0).formulations() if f.name == "dual QP")
    form, backend = reduce_rows(formulation.build()).form, backend_named(name)
    times, results = race(
        repeats,
        lambda: klopt.solve(SoftMargin(gram, y, 1.0), name, formulation="dual QP", tol=tol),
        lambda: backend.run(form, Settings(tol=tol)),
        lambda: klopt.solve(SoftMargin(K, y, 1.0), name, formulation="dual QP", tol=tol),
        lambda: by_cvxpy(K, y, name, tol),
    )
    whole, native, fresh, other = times
    result, value = results[0], results[3]
    off = abs(value - result.value) / (1 + abs(value))
    print(
        f"{kernel:6} {n:5} {name:9} {whole:7.3f} {native:7.3f} {other:7.3f} {whole / native:13.2f} "
        f"{fresh / native:10.2f} {other / whole:12.2f}   "
        f"{result.verdict.name} {result.certificate.relative_width:.0e}, CVXPY off by {off:.0e}"
    )


def by_cvxpy(K: np.ndarray, y: np.ndarray, name: str, tol: float) -> float:
    """The same dual stated in CVXPY as its documentation does, told that the matrix is PSD."""
    import cvxpy as cp

    a = cp.Variable(len(y))
    Q = K * np.outer(y, y)
    problem = cp.Problem(cp.Maximize(cp.sum(a) - cp.quad_form(a, cp.psd_wrap(Q)) / 2), [a >= 0, a <= 1.0, y @ a == 0])
    if name == "scs":
        problem.solve(solver="SCS", eps_abs=tol / 10, eps_rel=tol / 10, max_iters=100_000)
    else:
        problem.solve(solver="CLARABEL", tol_gap_abs=tol / 10, tol_gap_rel=tol / 10, tol_feas=tol / 10, max_threads=1)
    return float(problem.value)


def against_svc(n: int, C: float, repeats: int = 5) -> None:
    """klopt's own choice of route against scikit-learn's SVC at a tolerance that gives a comparable gap."""
    from sklearn.svm import SVC

    K, y = digits(n)
    gram = klopt.Gram.of(K)
    times, results = race(
        repeats,
        lambda: klopt.solve(SoftMargin(K, y, C)),
        lambda: klopt.solve(SoftMargin(gram, y, C)),
        lambda: SVC(C=C, kernel="precomputed", tol=1e-6, cache_size=500).fit(K, y),
        lambda: SVC(C=C, kernel="precomputed", cache_size=500).fit(K, y),
    )
    ours, known, theirs, plain = (1e3 * seconds for seconds in times)
    result, machine = results[0], results[2]
    alpha = np.zeros(n)
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    bracket = SoftMargin(gram, y, C).bracket(klopt.Point({"alpha": alpha}))
    left = bracket.width / (1 + abs(bracket.upper))
    print(
        f"C = {C:<5g} {ours:6.0f} {known:8.0f} {theirs:6.0f} {ours / theirs:11.2f} {known / theirs:14.2f}   "
        f"{result.route}, width {result.certificate.relative_width:.0e}; SVC leaves {left:.0e} "
        f"(at tol 1e-3: {plain:.0f} ms)"
    )


def imports(repeats: int = 7) -> None:
    """Interpreter and import, whole processes."""

    def process(*command: str) -> Callable[[], Any]:
        return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    codes = ("pass", "import numpy, scipy.sparse", "import klopt", "import klopt; klopt.solve, klopt.plan")
    times, _ = race(repeats, *(process(sys.executable, "-c", code) for code in codes), process("klopt", "--help"))
    nothing, numeric, ours, verbs, command = times
    base = numeric - nothing
    print(f"import klopt / import numpy, scipy.sparse          {(ours - nothing) / base:.2f}")
    print(f"the same with klopt.solve and klopt.plan looked up {(verbs - nothing) / base:.2f}")
    print(f"klopt --help                                       {command:.2f} s, of which Python itself {nothing:.2f} s")


if __name__ == "__main__":
    print("SoftMargin QP, seconds: klopt with K checked before, the native call, CVXPY; ratios (fresh: K checked too)")
    print("kernel     n solver      klopt  native   CVXPY  klopt/native      fresh  CVXPY/klopt")
    for kernel in ("rbf", "linear"):
        for solver in ("clarabel", "scs"):
            for size in (500, 1000):
                wrapper(solver, size, kernel)
    print("\nSoftMargin n = 2000, ms: klopt's own route, the same with K checked before, SVC at tol 1e-6; ratios")
    print("penalty   klopt  checked    SVC   klopt/SVC    checked/SVC")
    for penalty in (1.0, 10.0, 100.0):
        against_svc(2000, penalty)
    print()
    imports()
