"""What judging an answer costs: klopt.judge against the fit that made the answer and the proof that K is a kernel.

    python benchmarks/judging.py [--points N] [--repeats K]

An estimator of scikit-learn is fitted to N points, then judged on them. The baseline is one fit plus
one proof by factorisation that the kernel matrix is positive semidefinite (`Gram.of`): what judging
may cost at most. One BLAS thread, CPU seconds, smallest of several repeats; the parts take turns, so
that all meet the same computer.
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
from _rows import Table, cpu
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR, NuSVC

import klopt

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


def main() -> None:
    """Print the ratios, and exit with 1 where a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_classification(options.points, 20, n_informative=6, flip_y=0.1, random_state=0)
    table = Table()
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
    table.close()


if __name__ == "__main__":
    main()
