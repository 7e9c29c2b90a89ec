"""What klopt adds to a solver: klopt end to end against the native call, CVXPY, scikit-learn and bare imports.

    python benchmarks/overhead.py

Every figure is a ratio of times taken in this run, one BLAS thread, least of several repeats. The native call gets the
very matrices and settings that klopt's backend would give it; CVXPY gets the same problem, solver and tolerances. Both
klopt and CVXPY check that K is positive semidefinite; like against like is klopt with the check in the timing against
CVXPY as its documentation states the problem. A user who knows K beforehand can spare it in both: the other columns.
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

RATIOS = ("checked/native", "fresh/native", "plain/fresh", "told/fresh", "told/checked")


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


def wrapper(name: str, n: int, kernel: str, repeats: int = 5) -> tuple[float, ...]:
    """klopt end to end against the native call inside it, and CVXPY end to end with the same solver: the RATIOS."""
    K, y = digits(n, kernel)
    gram, tol = klopt.Gram.of(K), 1e-6
    formulation = next(f for f in SoftMargin(gram, y, 1.0).formulations() if f.name == "dual QP")
    form, backend = reduce_rows(formulation.build()).form, backend_named(name)
    (native, checked, fresh), (_, result, _) = race(
        repeats,
        lambda: backend.run(form, Settings(tol=tol)),
        lambda: klopt.solve(SoftMargin(gram, y, 1.0), name, formulation="dual QP", tol=tol),
        lambda: klopt.solve(SoftMargin(K, y, 1.0), name, formulation="dual QP", tol=tol),
    )
    (plain, told), (taken, value) = race(
        min(repeats, 3), lambda: by_cvxpy(K, y, name, tol, told=False), lambda: by_cvxpy(K, y, name, tol, told=True)
    )
    plain = plain if np.isfinite(taken) else np.nan
    seconds, ratios = (
        (native, checked, fresh, plain, told),
        (
            *(checked / native, fresh / native),
            *(plain / fresh, told / fresh, told / checked),
        ),
    )
    print(f"{kernel:6} {n:5} {name:9}", *(f"{t:8.3f}" for t in seconds), " ", *(f"{ratio:7.2f}" for ratio in ratios))
    off = abs(value - result.value) / (1 + abs(value))
    refused = "" if np.isfinite(taken) else "; CVXPY, not told, refuses K: not PSD by rounding"
    width = f"width {result.certificate.relative_width:.0e}"
    print(f"{'':22} {result.verdict.name}, {width}; CVXPY is off by {off:.0e}{refused}")
    return ratios


def by_cvxpy(K: np.ndarray, y: np.ndarray, name: str, tol: float, *, told: bool) -> float:
    """The same dual stated in CVXPY as its documentation does; or told, by `psd_wrap`, that the matrix is PSD."""
    import cvxpy as cp

    a = cp.Variable(len(y))
    Q = K * np.outer(y, y)
    curve = cp.quad_form(a, cp.psd_wrap(Q) if told else Q)
    problem = cp.Problem(cp.Maximize(cp.sum(a) - curve / 2), [a >= 0, a <= 1.0, y @ a == 0])
    try:
        if name == "scs":
            problem.solve(solver="SCS", eps_abs=tol / 10, eps_rel=tol / 100, max_iters=100_000)
        else:
            tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol / 100)
            problem.solve(solver="CLARABEL", max_threads=1, **tolerances)
    except cp.error.DCPError:  # its check found an eigenvalue that is negative by rounding
        return float("nan")
    return float(problem.value)


def gates(table: dict[str, tuple[float, ...]]) -> None:
    """Print which rows keep to what klopt promises: at most 1.3 x the native call, at least 3 x as fast as CVXPY."""
    for column, name in enumerate(RATIOS):
        rows = {row: ratios[column] for row, ratios in table.items() if np.isfinite(ratios[column])}
        met = {row: ratio <= 1.3 if "native" in name else ratio >= 3.0 for row, ratio in rows.items()}
        missed = ", ".join(f"{row} ({rows[row]:.2f})" for row, good in met.items() if not good)
        limit = "<= 1.3" if "native" in name else ">= 3"
        print(f"{name:14} {limit:6}: {sum(met.values())} of {len(met)}{', not ' if missed else ''}{missed}")


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
    times, _ = race(
        repeats,
        *(process(sys.executable, "-c", code) for code in codes),
        process(sys.executable, "-m", "klopt", "--help"),
    )
    nothing, numeric, ours, verbs, command = times
    base = numeric - nothing
    print(f"import klopt / import numpy, scipy.sparse          {(ours - nothing) / base:.2f}")
    print(f"the same with klopt.solve and klopt.plan looked up {(verbs - nothing) / base:.2f}")
    print(f"klopt --help                                       {command:.2f} s, of which Python itself {nothing:.2f} s")


if __name__ == "__main__":
    print("SoftMargin QP, seconds: the native call, klopt with K checked before, fresh klopt (K proven PSD as well),")
    print("CVXPY plain (it checks PSD too), CVXPY told by psd_wrap; ratios: " + ", ".join(RATIOS))
    print("kernel     n solver      native  checked    fresh    plain     told")
    cases = [(solver, n, kernel) for kernel in ("rbf", "linear") for solver in ("clarabel", "scs") for n in (500, 1000)]
    gates({f"{kernel} {solver} {n}": wrapper(solver, n, kernel) for solver, n, kernel in cases})
    print("\nSoftMargin n = 2000, ms: klopt's own route, the same with K checked before, SVC at tol 1e-6; ratios")
    print("penalty   klopt  checked    SVC   klopt/SVC    checked/SVC")
    for penalty in (1.0, 10.0, 100.0):
        against_svc(2000, penalty)
    print()
    imports()
