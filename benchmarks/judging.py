"""What judging an answer costs: klopt.judge against what made the answer.

    python benchmarks/judging.py [--points N] [--repeats K] [--only cvxpy|sklearn]

**CVXPY.** `klopt.judge(problem)` against the `problem.solve()` before it, compilation included, with
the solver that CVXPY chooses, over its library of test programs and 50 random programs of 100 to
2000 variables. The median may be 0.2. The time goes to reading what CVXPY keeps (the compiled
program and the solver's own solution), to building klopt's program, and to the proof.

**scikit-learn.** An estimator is fitted to N points, then judged on them. The baseline is one fit plus
one proof by factorisation that the kernel matrix is positive semidefinite (`Gram.of`): what judging
may cost at most.

One BLAS thread, CPU seconds, smallest of several repeats; the parts take turns, so that all meet the
same computer.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _cvxpy_programs import library, random_programs
from _rows import Table, cpu
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR, NuSVC

import klopt
from klopt.errors import InvalidProblem
from klopt.judging.cvxpy_answers import reduced_and_kept
from klopt.problems import ConeProgram

CVXPY_GATE = 0.2
"""What judging a solved problem of CVXPY may cost in the median, relative to its solve."""
JUDGE_SECONDS = 20.0
GATES = {"SVC": 1.0}
"""What a support vector classifier may cost, relative to its fit and one factorisation ..."""
OTHERS = 1.5
"""... and any other estimator."""
TOL = 1e-2


def estimators(X: Any, y: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Return estimators with the data that they are fitted to, by name."""
    gamma = 1 / (X.shape[1] * X.var())
    K = pairwise_kernels(X, metric="rbf", gamma=gamma)
    target = X[:, 0] + y
    return {
        "SVC C=1": (SVC(C=1.0), X, y),
        "SVC C=100": (SVC(C=100.0), X, y),
        "SVC linear": (SVC(kernel="linear", C=0.1), X, y),
        "SVC poly": (SVC(kernel="poly", degree=2, coef0=1.0), X, y),
        "SVC precomputed": (SVC(kernel="precomputed"), K, y),
        "NuSVC": (NuSVC(nu=0.2), X, y),
        "SVR": (SVR(), X, target),
        "KernelRidge": (KernelRidge(kernel="rbf", gamma=gamma), X, target),
    }


def kernel_of(fitted: Any, X: Any) -> np.ndarray:
    """Return the kernel matrix of a fitted estimator."""
    if fitted.kernel == "precomputed":
        return np.asarray(X)
    K = pairwise_kernels(
        X,
        metric=fitted.kernel,
        filter_params=True,
        gamma=getattr(fitted, "_gamma", fitted.gamma),
        degree=fitted.degree,
        coef0=fitted.coef0,
    )
    return np.asarray(K)


def cvxpy_costs(make: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Return the CPU seconds of solve and judge of a program, and of the parts of judge."""
    seconds = dict.fromkeys(("solve", "judge", "read", "build"), np.inf)
    for _ in range(repeats):
        problem = make()
        took, _ = cpu(problem.solve)
        seconds["solve"] = min(seconds["solve"], took)
        took, result = cpu(lambda p=problem: klopt.judge(p, time_limit=JUDGE_SECONDS))
        seconds["judge"] = min(seconds["judge"], took)
        took, (reduction, _) = cpu(lambda p=problem: reduced_and_kept(p))
        seconds["read"] = min(seconds["read"], took)
        took, _ = cpu(lambda r=reduction: ConeProgram(**r.arguments).form)
        seconds["build"] = min(seconds["build"], took)
    stats = problem.solver_stats
    return {**seconds, "verdict": result.verdict.name, "solver": stats.solver_name}


def measure_cvxpy(table: Table, repeats: int) -> None:
    """Print the ratios of all programs, their median and 90th percentile, and where the time goes."""
    programs = [(name, lambda m=make: m().prob) for name, make in library().items()]
    rows = []
    for name, make in (*programs, *random_programs()):
        try:
            row = cvxpy_costs(make, repeats)
        except InvalidProblem as error:
            print(f"      {name}: {error}", flush=True)
            continue
        row |= {"name": name, "ratio": row["judge"] / row["solve"]}
        rows.append(row)
        print(
            f"      {name:30} {row['solver']:9} solve {1e3 * row['solve']:8.1f} ms   "
            f"judge {1e3 * row['judge']:8.1f} ms   ratio {row['ratio']:7.2f}   {row['verdict']}",
            flush=True,
        )
    names = set(library())
    for label, chosen in (
        ("test library", [row for row in rows if row["name"] in names]),
        ("random programs", [row for row in rows if row["name"] not in names]),
        ("solve > 50 ms", [row for row in rows if row["solve"] > 0.05]),
        ("all", rows),
    ):
        ratios = [row["ratio"] for row in chosen]
        proof = [row["judge"] - row["read"] - row["build"] for row in chosen]
        shares = [
            float(np.median([part / row["solve"] for part, row in zip(parts, chosen, strict=True)]))
            for parts in (
                [row["read"] for row in chosen],
                [row["build"] for row in chosen],
                proof,
            )
        ]
        conclusive = sum(row["verdict"] in ("OPTIMAL", "INFEASIBLE", "UNBOUNDED") for row in chosen)
        print(
            f"      {label}: {len(chosen)} programs, {conclusive} proven; judge / solve: median "
            f"{np.median(ratios):.2f}, 90th percentile {np.percentile(ratios, 90):.2f}, at most "
            f"{CVXPY_GATE} for {sum(ratio <= CVXPY_GATE for ratio in ratios)}; medians of the parts: "
            f"read {shares[0]:.2f}, build {shares[1]:.2f}, proof {shares[2]:.2f}",
            flush=True,
        )
    ratio = float(np.median([row["ratio"] for row in rows]))
    share = float(np.percentile([row["ratio"] for row in rows], 90))
    note = f"median of {len(rows)} programs; 90th percentile {share:.2f}"
    table.add("CVXPY", "problem.solve()", CVXPY_GATE, ratio, note, at_most=True)


def main() -> None:
    """Print the ratios, and exit with 1 where a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("cvxpy", "sklearn"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table()
    if options.only != "sklearn":
        measure_cvxpy(table, min(options.repeats, 3))
    if options.only != "cvxpy":
        measure_estimators(table, options)
    table.close()


def measure_estimators(table: Table, options: argparse.Namespace) -> None:
    """Print the ratios of scikit-learn's estimators."""
    X, y = make_classification(options.points, 20, n_informative=6, flip_y=0.1, random_state=0)
    for name, (estimator, data, target) in estimators(X, y).items():
        fitted = estimator.fit(data, target)
        K = kernel_of(fitted, data)
        parts: dict[str, Callable[[], Any]] = {
            "fit": lambda e=estimator, d=data, t=target: e.fit(d, t),
            "proof": lambda K=K: klopt.Gram.of(K),
            "judge": lambda f=fitted, d=data, t=target: klopt.judge(f, d, t, tol=TOL),
        }
        seconds = dict.fromkeys(parts, np.inf)
        for _ in range(options.repeats):
            for part, run in parts.items():
                took, result = cpu(run)
                seconds[part] = min(seconds[part], took)
        note = ", ".join(f"{part} {value:.3g} s" for part, value in seconds.items())
        ratio = seconds["judge"] / (seconds["fit"] + seconds["proof"])
        what = f"{name}, n = {options.points}"
        verdict = result.verdict.name
        gate = GATES.get(type(estimator).__name__, OTHERS)
        remark = f"{note}; {verdict}"
        table.add(what, "one fit and one proof of K", gate, ratio, remark, at_most=True)


if __name__ == "__main__":
    main()
