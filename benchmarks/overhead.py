"""What klopt adds to a solver: build, certify and pipeline against the native call, CVXPY, scikit-learn and bare imports.

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


def least(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least wall-clock seconds of several runs, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - began)
    return best, result


def digits(n: int, gamma: float = 1 / 64) -> tuple[np.ndarray, np.ndarray]:
    """Return an RBF Gram matrix and labels (odd or even) of n handwritten digits, with repeats above 1797."""
    from sklearn.datasets import load_digits
    from sklearn.metrics.pairwise import rbf_kernel

    X, digit = load_digits(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(X))[:n] if n <= len(X) else rng.integers(0, len(X), n)
    points = X[chosen] + (0.0 if n <= len(X) else 0.3 * rng.normal(size=(n, X.shape[1])))
    K = rbf_kernel(points, gamma=gamma)
    return (K + K.T) / 2, np.where(digit[chosen] % 2, 1.0, -1.0)


def wrapper(name: str, n: int, repeats: int = 5) -> None:
    """klopt end to end against the native call inside it, and against CVXPY end to end with the same solver."""
    K, y = digits(n)
    gram = klopt.Gram.of(K)
    tol = 1e-6
    whole, result = least(repeats, lambda: klopt.solve(SoftMargin(gram, y, 1.0), name, formulation="dual QP", tol=tol))
    fresh, _ = least(2, lambda: klopt.solve(SoftMargin(K, y, 1.0), name, formulation="dual QP", tol=tol))
    formulation = next(f for f in SoftMargin(gram, y, 1.0).formulations() if f.name == "dual QP")
    form, backend = reduce_rows(formulation.build()).form, backend_named(name)
    answers = [backend.run(form, Settings(tol=tol)) for _ in range(repeats)]
    native = min(answer.seconds for answer in answers)
    other, value = least(2, lambda: by_cvxpy(K, y, name, tol))
    print(
        f"SoftMargin QP n = {n:4}  {name:8}  klopt {whole:.3f} s  native {native:.3f} s  CVXPY {other:.3f} s   "
        f"klopt/native {whole / native:.2f}  CVXPY/klopt {other / whole:.2f}   "
        f"(with the check that K is PSD: klopt/native {fresh / native:.2f})   "
        f"{result.verdict.name}, width {result.certificate.relative_width:.0e}, CVXPY off by {abs(value - result.value):.0e}"
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
    theirs, machine = least(repeats, lambda: SVC(C=C, kernel="precomputed", tol=1e-6, cache_size=500).fit(K, y))
    plain, _ = least(repeats, lambda: SVC(C=C, kernel="precomputed", cache_size=500).fit(K, y))
    ours, result = least(repeats, lambda: klopt.solve(SoftMargin(K, y, C)))
    known, _ = least(repeats, lambda: klopt.solve(SoftMargin(gram, y, C)))
    alpha = np.zeros(n)
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    bracket = SoftMargin(gram, y, C).bracket(klopt.Point({"alpha": alpha}))
    print(
        f"SoftMargin n = {n}, C = {C:g}: {result.route}, {result.verdict.name}, width "
        f"{result.certificate.relative_width:.0e} (SVC at tol 1e-6 leaves {bracket.width / (1 + abs(bracket.upper)):.0e})"
        f"   klopt {ours * 1e3:.0f} ms, checked Gram {known * 1e3:.0f} ms, SVC {theirs * 1e3:.0f} ms (tol 1e-3: "
        f"{plain * 1e3:.0f} ms)   klopt/SVC {ours / theirs:.2f}, with a checked Gram {known / theirs:.2f}"
    )


def imports(repeats: int = 7) -> None:
    """Interpreter and import, whole processes."""

    def seconds(code: str) -> float:
        return least(repeats, lambda: subprocess.run([sys.executable, "-c", code], check=True))[0]

    nothing, numeric, ours = seconds("pass"), seconds("import numpy, scipy.sparse"), seconds("import klopt")
    verbs = seconds("import klopt; klopt.solve, klopt.plan")
    print(
        f"import klopt / import numpy, scipy.sparse: {(ours - nothing) / (numeric - nothing):.2f}; with klopt.solve "
        f"looked up: {(verbs - nothing) / (numeric - nothing):.2f}   (interpreter {nothing:.2f} s, numeric {numeric:.2f} s)"
    )
    command = least(repeats, lambda: subprocess.run(["klopt", "--help"], check=True, stdout=subprocess.DEVNULL))[0]
    print(f"klopt --help: {command:.2f} s")


if __name__ == "__main__":
    for solver in ("clarabel", "scs"):
        for size in (500, 1000):
            wrapper(solver, size)
    for penalty in (1.0, 10.0, 100.0):
        against_svc(2000, penalty)
    imports()
