"""LDK: LogDet kernels from pairs, against projections of the whole kernel and metric-learn.

    python benchmarks/logdet_pairs.py            about three minutes
    python benchmarks/logdet_pairs.py quick      leaves out the 79,003 pairs and the long runs of ITML

Every ratio is of CPU seconds of one BLAS thread in this run. klopt's figures are those of all of
`klopt.solve`: the factor of K0 on the labelled block, the solve, and the proof that the optimum is
as near as asked for. The baseline of the first row is the method of the paper, corrected:
projections of the n x n kernel, one pair after the other. It is told the optimum and stops as soon
as its dual value is within 1 % of it. Bounds are the 10th and 90th percentile of the distances.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import sys
import time
from typing import Any

import numpy as np
from _rows import Table
from sklearn.datasets import load_breast_cancer

import klopt
from klopt.kernels.gram import Gram
from klopt.kernels.nystroem import LowRank
from klopt.problems import LogDetPairs
from klopt.problems._logdet.constraints import squared_distances as distances

QUICK = "quick" in sys.argv[1:]


def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def rbf(X: np.ndarray) -> np.ndarray:
    square = np.sum(X**2, axis=1)
    return np.exp(-np.maximum(square[:, None] + square - 2 * X @ X.T, 0.0) / X.shape[1])


def pairs_of(y: np.ndarray, labels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of so many points with labels, and whether they are of one class."""
    known = np.sort(np.random.default_rng(seed).permutation(len(y))[:labels])
    i, j = np.triu_indices(labels, 1)
    return np.column_stack((known[i], known[j])), y[known[i]] == y[known[j]]


def ldk(
    K0: Any, pairs: np.ndarray, same: np.ndarray, d: np.ndarray, slack: float | None = None
) -> LogDetPairs:
    near, far = np.percentile(d, [10, 90])
    return LogDetPairs(K0, pairs[same], pairs[~same], near, far, slack)


def timed(
    problem: LogDetPairs, tol: float, repeats: int = 3, **options: Any
) -> tuple[float, klopt.Result]:
    """The smallest CPU seconds of some solves, each of a fresh problem, and the last result."""
    best = np.inf
    for _ in range(repeats):
        fresh = LogDetPairs(
            problem.K0,
            problem.similar,
            problem.dissimilar,
            problem.upper,
            problem.lower,
            problem.slack,
        )
        began = time.process_time()
        result = klopt.solve(fresh, tol=tol, **options)
        best = min(best, time.process_time() - began)
    return best, result


def kkt(problem: LogDetPairs, result: klopt.Result) -> float:
    """The largest |min(x, f')| in units of the bounds: violations and complementarity."""
    x = problem.formulations()[0].lift(result.point).x
    return float(np.abs(np.minimum(x, problem.dual.gradient(x))).max())


def whole_kernel(
    K0: np.ndarray, problem: LogDetPairs, optimum: float, accuracy: float, limit: float
) -> float:
    """CPU seconds of corrected n x n projections until the dual is within `accuracy`."""
    ends = np.concatenate((problem.similar, problem.dissimilar))
    signs = np.repeat([1.0, -1.0], [len(problem.similar), len(problem.dissimilar)])
    bounds = np.append(problem.upper, problem.lower)
    K = K0.copy()
    buffer = np.empty_like(K0)
    dual = np.zeros(len(ends))
    spent = 0.0
    while spent < limit:
        began = time.process_time()
        for pair, ((a, b), sign, bound) in enumerate(
            zip(ends.tolist(), signs, bounds, strict=True)
        ):
            p = K[a, a] + K[b, b] - 2 * K[a, b]
            step = max(-dual[pair], sign * (1 / bound - 1 / p))
            if step:
                v = K[a] - K[b]
                np.multiply((sign * step / (1 + sign * step * p) * v)[:, None], v, out=buffer)
                K -= buffer
                dual[pair] += step
        spent += time.process_time() - began
        if -problem.dual.value(dual * bounds) >= optimum - accuracy * optimum:
            return spent
    return np.inf


def hundred(table: Table, X: np.ndarray, y: np.ndarray) -> None:
    K0 = rbf(X)
    pairs, same = pairs_of(y, 100)
    problem = ldk(Gram.of(K0), pairs, same, distances(K0, *pairs.T))
    fine, result = timed(problem, 1e-6)
    rough, _ = timed(problem, 1e-2)
    plain = whole_kernel(K0, problem, result.require().value, 1e-2, 300)
    note = f"{rough * 1e3:.0f} ms, proven, against {plain:.1f} s, told the optimum"
    table.add("4,950 pairs to 1e-2", "n x n projections", 30, plain / rough, note)
    note = f"{result.iterations} steps, KKT {kkt(problem, result):.0e}, {result.certificate.relative_gap:.0e} wide"
    table.add("4,950 pairs to 1e-6", "one second", 1, fine, note, at_most=True)


def two_thousand(table: Table, X: np.ndarray, y: np.ndarray) -> None:
    K0 = rbf(X)
    pairs, same = pairs_of(y, 100, seed=1)
    some = np.random.default_rng(0).permutation(len(pairs))[:2000]
    problem = ldk(Gram.of(K0), pairs[some], same[some], distances(K0, *pairs.T))
    ours, result = timed(problem, 1e-6)
    theirs, slow = timed(problem, 1e-6, 1, backend="bregman", time_limit=200)
    errors = f"KKT {kkt(problem, result):.0e} and {kkt(problem, slow):.0e} ({slow.verdict.name})"
    table.add("n = 100, 2000 pairs", "bregman, both proven to 1e-6", 10, theirs / ours, errors)


def many(table: Table, X: np.ndarray, y: np.ndarray) -> None:
    K0 = rbf(X)
    pairs, same = pairs_of(y, 398)
    problem = ldk(Gram.of(K0), pairs, same, distances(K0, *pairs.T))
    for tol, gate in ((1e-4, 40.0), (1e-8, 40.0)):
        seconds, result = timed(problem, tol, 1)
        tight = np.count_nonzero(result.point.similar) + np.count_nonzero(result.point.dissimilar)
        width = result.certificate.relative_gap
        note = f"{result.verdict.name}, {result.iterations} steps, {tight} tight, {width:.0e} wide"
        table.add(
            f"79,003 pairs to {tol:.0e}",
            "seconds; others fail in 40",
            gate,
            seconds,
            note,
            at_most=True,
        )


def itml(X: np.ndarray, y: np.ndarray) -> None:
    """The metric of 30 features, the same problem as LogDetPairs on the linear kernel."""
    try:
        fit = _itml()
    except ImportError:
        print("      metric-learn is not installed: its row is left out")
        return
    pairs, same = pairs_of(y, 100)
    d = np.sum((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2, axis=1)
    problem = ldk(LowRank(X), pairs, same, d, slack=1.0)
    ours, result = timed(problem, 1e-6, 1)
    print(f"      ITML's problem, 4,950 pairs of 30 features: klopt proves 1e-6 in {ours:.1f} s")
    for sweeps in (10, 100) if QUICK else (10, 100, 500):
        began = time.process_time()
        A = fit(X[pairs], np.where(same, 1, -1), np.percentile(d, [10, 90]), sweeps)
        theirs = time.process_time() - began
        off = _objective(problem, X, A) / result.require().value - 1
        print(
            f"      metric-learn's ITML after {sweeps:4} sweeps and {theirs:5.1f} s: {off:.1e} above the optimum"
        )


def _objective(problem: LogDetPairs, X: np.ndarray, A: np.ndarray) -> float:
    K = X @ A @ X.T
    above = np.maximum(distances(K, *problem.similar.T) / problem.upper, 1.0)
    below = np.minimum(distances(K, *problem.dissimilar.T) / problem.lower, 1.0)
    moved = np.append(above, below)
    divergence = np.trace(A) - np.linalg.slogdet(A)[1] - len(A)
    return float(divergence + problem.slack * np.sum(moved - np.log(moved) - 1))


def _itml() -> Any:
    """metric-learn's ITML; scikit-learn has renamed an argument that it passes."""
    import metric_learn
    from metric_learn import _util, itml as module
    from sklearn.utils import check_array, check_X_y

    def renamed(check: Any) -> Any:
        def call(*args: Any, force_all_finite: Any = True, **options: Any) -> Any:
            return check(*args, ensure_all_finite=force_all_finite, **options)

        return call

    for home in (_util, module, sys.modules["metric_learn.base_metric"]):
        for check in (check_array, check_X_y):
            if hasattr(home, check.__name__):
                setattr(home, check.__name__, renamed(check))

    def fit(pairs: np.ndarray, y: np.ndarray, bounds: np.ndarray, sweeps: int) -> np.ndarray:
        model = metric_learn.ITML(gamma=1.0, max_iter=sweeps, tol=1e-12, prior="identity")
        return np.asarray(model.fit(pairs, y, bounds=bounds).get_mahalanobis_matrix())

    return fit


def main() -> None:
    table = Table()
    X, y = data()
    hundred(table, X, y)
    two_thousand(table, X, y)
    itml(X, y)
    if not QUICK:
        many(table, X, y)
    table.close()


if __name__ == "__main__":
    main()
