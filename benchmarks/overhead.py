"""What klopt adds to a solver: against the native call, CVXPY, scikit-learn and bare imports.

    python benchmarks/overhead.py

Every figure is a ratio of times taken in this run, one BLAS thread, smallest of several repeats. The
native call gets the quadratic program as it is stated, ready made, with the settings of klopt's
backend; CVXPY gets the same problem, solver and tolerances. A kernel of low rank klopt hands over
as a shorter program; the native call on that stands in a remark.

A kernel matrix that comes as an array must be proven positive semidefinite, which is a
factorisation. CVXPY as its documentation states the problem checks it too, and is compared with
that; told by `psd_wrap` it does not, and is compared with klopt on a `Gram` that was checked
before. SVC never checks: at n = 2000 the proof alone takes three times as long as its fit, however
fast it runs. So SVC is compared with klopt.solve of a problem that is declared (build, run,
certify), and beside it with declaring and solving; `Gram.rbf` of points is positive by construction
and needs no proof.
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
from _rows import Table
from scipy import sparse

import klopt
from klopt.engine.registry import backend_named
from klopt.model.backend import Settings
from klopt.problems import SoftMargin

GAMMA = 1 / 64


def race(repeats: int, *runs: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Return the smallest wall-clock seconds of each, taken in turns, and the results."""
    best = [np.inf] * len(runs)
    results = [None] * len(runs)
    for _ in range(repeats):
        for index, run in enumerate(runs):
            began = time.perf_counter()
            results[index] = run()
            best[index] = min(best[index], time.perf_counter() - began)
    return best, results


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n handwritten digits, noisy repeats above 1797, and labels (odd or even)."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(X))[:n] if n <= len(X) else rng.integers(0, len(X), n)
    noise = 0.0 if n <= len(X) else 0.3 * rng.normal(size=(n, X.shape[1]))
    return X[chosen] + noise, np.where(digit[chosen] % 2, 1.0, -1.0)


def kernel_of(X: np.ndarray, kernel: str) -> np.ndarray:
    """Return the Gram matrix of points."""
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

    K = rbf_kernel(X, gamma=GAMMA) if kernel == "rbf" else linear_kernel(X) * GAMMA
    return (K + K.T) / 2


def wrapper(table: Table, name: str, n: int, kernel: str, repeats: int = 5) -> None:
    """klopt end to end against its native call, and CVXPY with the same solver."""
    X, y = points(n)
    K = kernel_of(X, kernel)
    gram = klopt.Gram.of(K)
    tol = 1e-6
    formulation = next(f for f in SoftMargin(gram, y, 1.0).formulations() if f.name == "dual QP")
    form = stated(K, y)
    short = formulation.build()
    backend = backend_named(name)
    (native, thin, checked, fresh, plain, told), (*_, result, taken, value) = race(
        repeats,
        lambda: backend.run(form, Settings(tol=tol)),
        lambda: backend.run(short, Settings(tol=tol)),
        lambda: klopt.solve(SoftMargin(gram, y, 1.0), name, formulation="dual QP", tol=tol),
        lambda: klopt.solve(SoftMargin(K, y, 1.0), name, formulation="dual QP", tol=tol),
        lambda: by_cvxpy(K, y, name, tol, told=False),
        lambda: by_cvxpy(K, y, name, tol, told=True),
    )
    row = f"{kernel} {n}, {name}"
    remarks = f"gap {result.certificate.relative_gap:.0e}"
    remarks += f"; {fresh / thin:.2f} of the call on klopt's short form" if gram.thin else ""
    table.add(
        row,
        "native call",
        1.3,
        fresh / native,
        f"{fresh:.3f} s, {result.verdict.name}, {remarks}",
        at_most=True,
    )
    table.add(
        f"{row}, Gram", "native call", 1.3, checked / native, f"{checked:.3f} s", at_most=True
    )
    off = abs(value - result.value) / (1 + abs(value))
    remark = f"differs by {off:.0e}; told by psd_wrap that K is PSD, over klopt on a Gram: {told / checked:.1f}"
    if np.isfinite(
        taken
    ):  # else its check finds an eigenvalue that is negative by rounding, and refuses
        table.add(row, "CVXPY", 3.0, plain / fresh, f"{plain:.3f} s, {remark}")
    else:
        table.add(
            f"{row}, Gram",
            "CVXPY, psd_wrap",
            3.0,
            told / checked,
            f"{told:.3f} s; it refuses K else",
        )


def stated(K: np.ndarray, y: np.ndarray) -> klopt.ConeForm:
    """The dual as textbooks state it: minimise a'Qa/2 - 1'a over 0 <= a <= 1, y'a = 0."""
    n = y.size
    A = sparse.vstack(
        [sparse.csr_array(y[None, :]), -sparse.eye_array(n), sparse.eye_array(n)], format="csc"
    )
    b = np.concatenate([np.zeros(n + 1), np.ones(n)])
    return klopt.ConeForm(
        np.full(n, -1.0), A, b, klopt.Cones(zero=1, nonneg=2 * n), K * np.outer(y, y)
    )


def by_cvxpy(K: np.ndarray, y: np.ndarray, name: str, tol: float, *, told: bool) -> float:
    """The same dual in CVXPY, with `psd_wrap` or as its documentation states it."""
    import cvxpy as cp

    a = cp.Variable(len(y))
    Q = K * np.outer(y, y)
    curve = cp.quad_form(a, cp.psd_wrap(Q) if told else Q)
    problem = cp.Problem(cp.Maximize(cp.sum(a) - curve / 2), [a >= 0, a <= 1.0, y @ a == 0])
    try:
        if name == "scs":
            problem.solve(solver="SCS", eps_abs=tol / 10, eps_rel=tol / 100, max_iters=100_000)
        else:
            tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol / 10)
            problem.solve(solver="CLARABEL", max_threads=1, **tolerances)
    except cp.error.DCPError:  # its check found an eigenvalue that is negative by rounding
        return float("nan")
    return float(problem.value)


def against_svc(table: Table, n: int, C: float, repeats: int = 7) -> None:
    """klopt's choice of route against scikit-learn's SVC at a comparable gap."""
    from sklearn.svm import SVC

    X, y = points(n)
    K = kernel_of(X, "rbf")
    declared = SoftMargin(K, y, C)
    times, results = race(
        repeats,
        lambda: klopt.solve(SoftMargin(klopt.Gram.rbf(X, GAMMA), y, C)),
        lambda: SVC(C=C, gamma=GAMMA, tol=1e-6, cache_size=500).fit(X, y),
        lambda: klopt.solve(declared),
        lambda: klopt.solve(SoftMargin(K, y, C)),
        lambda: SVC(C=C, kernel="precomputed", tol=1e-6, cache_size=500).fit(K, y),
    )
    whole, direct, known, fresh, libsvm = times
    fitted = results[-1]
    alpha = np.zeros(n)
    alpha[fitted.support_] = np.abs(fitted.dual_coef_[0])
    bracket = declared.bracket(klopt.Point({"alpha": alpha}))
    left = f"SVC leaves {bracket.gap / (1 + abs(bracket.upper)):.0e}"

    def remark(seconds: float, result: Any) -> str:
        return f"{1e3 * seconds:.0f} ms, {result.route}, gap {result.certificate.relative_gap:.0e}; {left}"

    row = f"n = {n}, C = {C:g}"
    table.add(
        f"{row}, points",
        "SVC on points",
        2.0,
        whole / direct,
        remark(whole, results[0]),
        at_most=True,
    )
    table.add(
        f"{row}, declared",
        "SVC on K",
        2.0,
        known / libsvm,
        remark(known, results[2]),
        at_most=True,
    )
    table.add(
        f"{row}, declaring",
        "SVC on K",
        2.0,
        fresh / libsvm,
        remark(fresh, results[3]),
        at_most=True,
    )


def imports(table: Table, repeats: int = 7) -> None:
    """Interpreter and import, whole processes; with bytecode, which an installed package has."""
    compiled = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }

    def process(*command: str) -> Callable[[], Any]:
        return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=compiled)

    codes = (
        "pass",
        "import numpy, scipy.sparse",
        "import klopt",
        "import klopt; klopt.solve, klopt.plan",
    )
    times, _ = race(
        repeats,
        *(process(sys.executable, "-c", code) for code in codes),
        process(sys.executable, "-m", "klopt", "--help"),
    )
    nothing, numeric, ours, verbs, command = times
    base = numeric - nothing
    table.add(
        "import klopt", "import numpy, scipy.sparse", 1.5, (ours - nothing) / base, at_most=True
    )
    table.add(
        "klopt.solve, klopt.plan",
        "import numpy, scipy.sparse",
        1.5,
        (verbs - nothing) / base,
        at_most=True,
    )
    table.add(
        "klopt --help",
        "seconds",
        0.5,
        command,
        f"of which Python itself {nothing:.2f} s",
        at_most=True,
    )


if __name__ == "__main__":
    gates = Table()
    for kernel in ("rbf", "linear"):
        for solver in ("clarabel", "scs"):
            for n in (500, 1000):
                wrapper(gates, solver, n, kernel)
    for penalty in (1.0, 10.0, 100.0):
        against_svc(gates, 2000, penalty)
    imports(gates)
    gates.close()
