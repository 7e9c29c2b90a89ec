"""Data-adaptive kernels: Newton's method against the published one, conic solvers and FISTA.

    python benchmarks/dank.py            all rows, about ten minutes
    python benchmarks/dank.py ROW ..     some of: paper svc conic fista lowrank clusters jobs dask

Every figure is a ratio of times of this run, one BLAS thread: CPU seconds, for several processes
wall seconds; beside these, "busy" are the CPU seconds of this process and of the busiest other,
which is what an idle computer would take. klopt is timed with its proof (klopt.solve on
a problem that is built), the smallest of several repeats. Data: two Gaussian classes in 20 dimensions,
k(x, y) = exp(-|x - y|^2 / 20), C = 1. eta = |alpha_svm|^2 as published, and then klopt starts at
the alpha_svm that eta is made of, where nothing else is said; else `eta_for(0.1)`. The published
method is Algorithm 1 with its sign corrected, exact projection, the L of Theorem 4, from the same
start.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import resource
import sys
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import psutil
from _rows import Row

import klopt
from klopt.kernels.gram import Gram
from klopt.kernels.neighbour_extension import squared_distances
from klopt.kernels.nystroem import nystrom
from klopt.learners.decomposition import decompose, kmeans, off_blocks
from klopt.model.problem import Point
from klopt.problems import AdaptiveKernel

LOOK = 10
"""The published method is stopped at most so many iterations late; its proofs are not counted."""
verdicts: list[bool] = []


def timed(
    run: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    began = clock()
    result = run()
    return clock() - began, result


def spread(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds; CPU seconds of this process and of the busiest of its children; the result."""

    def used() -> dict[int, float]:
        here = psutil.Process()
        return {p.pid: sum(p.cpu_times()[:2]) for p in (here, *here.children(recursive=True))}

    before = used()
    wall, result = timed(run, time.perf_counter)
    busy = {pid: seconds - before.get(pid, 0.0) for pid, seconds in used().items()}
    return wall, busy.pop(os.getpid()) + max(busy.values(), default=0.0), result


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    runs = [timed(run) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def row(
    what: str, against: str, gate: float, measured: float, note: str = "", most: bool = False
) -> None:
    entered = Row(what, against, gate, measured, note, most)
    verdicts.append(entered.passed)
    print(entered, flush=True)


def gaussian(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    K = squared_distances(X, Y)
    K /= -20.0
    return np.exp(K, out=K)


def data(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, 20)) + 0.25 * y[:, None], y


def dense(n: int) -> tuple[Gram, np.ndarray]:
    X, y = data(n)
    K = gaussian(X, X)
    return Gram.of((K + K.T) / 2), y


def svm(K: Gram, y: np.ndarray, C: float, tol: float) -> np.ndarray:
    from sklearn.svm import SVC

    found = SVC(C=C, kernel="precomputed", tol=tol).fit(K.matrix, y)
    alpha = np.zeros(y.size)
    alpha[found.support_] = np.abs(found.dual_coef_[0])
    return alpha


def published(
    problem: AdaptiveKernel, alpha: np.ndarray, tol: float, limit: float, eigen: bool
) -> tuple[float, float]:
    """Seconds of Algorithm 1, corrected, without its proofs, and the relative gap reached."""
    K = problem.K.matrix
    y = problem.y
    C = problem.C
    eta = problem.eta
    tau = problem.tau
    n = y.size
    domain = problem.machine.domain()
    L = np.abs(K).max() * (n + 3 * n * C * C * np.linalg.norm(K) / (4 * eta))
    start = beta = theta = y * alpha
    total = np.zeros(n)
    squares = K * K
    spent = 0.0
    t = 0
    while True:
        if t % LOOK == 0:
            bracket = problem.bracket(Point({"alpha": y * theta}))
            gap = bracket.gap / (1 + abs(bracket.upper))
            if gap <= tol or spent > limit:
                return spent, gap
        began = time.process_time()
        a = 2 / (t + 3) * beta + (t + 1) / (t + 3) * theta if t else start
        if eigen:
            w, V = np.linalg.eigh(1 + np.multiply.outer(a, a) * K / (4 * eta))
            F = (V * np.maximum(w - tau / 2, 0.0)) @ V.T
            gradient = y - (F * K) @ a
        else:
            gradient = y - K @ a - a * (squares @ (a * a)) / (4 * eta)
        theta = domain.project(a + gradient / L)
        total += (t + 1) / 2 * gradient
        beta = domain.project(start + total / L)
        spent += time.process_time() - began
        t += 1


def against_paper() -> None:
    for n, gate, limit in ((200, 70.0, 20.0), (1000, 70.0, 60.0)):
        K, y = dense(n)
        alpha = svm(K, y, 1.0, 1e-8)
        for tau in (0.0, 0.01):
            problem = AdaptiveKernel(K, y, 1.0, AdaptiveKernel.eta_of_paper(alpha), tau)
            start = Point({"alpha": alpha})
            seconds, _ = best_of(
                3, lambda p=problem, s=start: klopt.solve(p, tol=1e-6, start=s).require()
            )
            slow, gap = published(problem, alpha, 1e-6, limit, eigen=tau > 0)
            note = f"{1e3 * seconds:.0f} ms; {'reached' if gap <= 1e-6 else 'stopped at'} {gap:.0e} in {slow:.1f} s"
            row(f"n = {n}, tau = {tau:g}", "Algorithm 1, Theorem 4's L", gate, slow / seconds, note)


def against_svc() -> None:
    from sklearn.svm import SVC

    K, y = dense(1000)
    for C in (1.0, 10.0):
        fit, _ = best_of(5, lambda C=C: SVC(C=C, kernel="precomputed").fit(K.matrix, y))
        alpha = svm(K, y, C, 1e-8)
        for tau in (0.0, 0.01):
            problem = AdaptiveKernel(K, y, C, AdaptiveKernel.eta_of_paper(alpha), tau)
            seconds, _ = best_of(5, lambda p=problem: klopt.solve(p, tol=1e-8).require())
            note = f"{1e3 * seconds:.0f} ms to 1e-8 from nothing, SVC {1e3 * fit:.1f} ms"
            row(
                f"n = 1000, C = {C:g}, tau = {tau:g}",
                "one SVC fit, times",
                15.0,
                seconds / fit,
                note,
                most=True,
            )


def against_conic() -> None:
    import cvxpy as cp

    K, y = dense(50)
    alpha = svm(K, y, 1.0, 1e-8)
    eta = AdaptiveKernel.eta_of_paper(alpha)
    tau = 0.01
    n = 50
    problem = AdaptiveKernel(K, y, 1.0, eta, tau)
    start = Point({"alpha": alpha})
    seconds, result = best_of(60, lambda: klopt.solve(problem, tol=1e-6, start=start).require())
    cold, _ = best_of(60, lambda: klopt.solve(problem, tol=1e-6).require())
    for solver, gate, options in (("SCS", 150.0, {"eps": 1e-6}), ("CLARABEL", 1000.0, {})):

        def run(solver: str = solver, options: dict[str, float] = options) -> float:
            F = cp.Variable((n, n), PSD=True)
            f = cp.Variable((n, 1))
            t = cp.Variable((1, 1))
            b = cp.Variable()
            xi = cp.Variable(n)
            block = cp.bmat([[cp.multiply(F, K.matrix), f], [f.T, t]])
            penalty = eta * cp.sum_squares(F - np.ones((n, n))) + tau * eta * cp.trace(F)
            rows = [block >> 0, xi >= 0, cp.multiply(y, f[:, 0] + b) >= 1 - xi]
            return float(
                cp.Problem(cp.Minimize(t[0, 0] / 2 + cp.sum(xi) + penalty), rows).solve(
                    solver, **options
                )
            )

        slow, value = best_of(3 if solver == "SCS" else 1, run)
        error = abs(value - result.value) / (1 + abs(result.value))
        note = f"{1e3 * seconds:.1f} ms; {slow:.2f} s, differs by {error:.0e}; klopt from nothing: {slow / cold:.0f}"
        row("n = 50, tau = 0.01", f"CVXPY SDP {solver}", gate, slow / seconds, note)


def against_fista() -> None:
    K, y = dense(2000)
    alpha = svm(K, y, 1.0, 1e-8)
    problem = AdaptiveKernel(K, y, 1.0, AdaptiveKernel.eta_of_paper(alpha), 0.01)
    start = Point({"alpha": alpha})
    seconds, _ = best_of(2, lambda: klopt.solve(problem, "newton", tol=1e-6, start=start).require())
    slow, result = timed(
        lambda: klopt.solve(problem, "nesterov", tol=1e-6, start=start, time_limit=60)
    )
    eigh, _ = timed(lambda: np.linalg.eigh(K.matrix))
    note = f"{seconds:.2f} s; FISTA {slow:.1f} s, {result.verdict}"
    row("n = 2000, tau = 0.01", "FISTA, same oracle, to 1e-6", 10.0, slow / seconds, note)
    row(
        "n = 2000, tau = 0.01",
        "eigh(2000), times",
        1.0,
        seconds / eigh,
        f"eigh {eigh:.2f} s",
        most=True,
    )


def low_rank() -> None:
    sizes = (1000, 2000, 3000)
    seconds = []
    for n in sizes:
        K, y = dense(n)
        problem = AdaptiveKernel(K, y, 1.0)
        seconds.append(
            best_of(1, lambda p=problem: klopt.solve(p, "newton", tol=1e-6).require())[0]
        )
    growth = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    print(
        f"      dense: {', '.join(f'{s:.2f}' for s in seconds)} s for n = {sizes}, exponent {growth:.2f}"
    )
    for n, rank in ((5000, 50), (5000, 100), (20_000, 100), (50_000, 100)):
        X, y = data(n)
        made, features = timed(lambda X=X, rank=rank: nystrom(X, gaussian, rank=rank))
        fast, result = timed(
            lambda f=features, y=y: klopt.solve(AdaptiveKernel(f, y, 1.0), tol=1e-6).require()
        )
        slow = seconds[-1] * (n / sizes[-1]) ** growth
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        note = f"{fast:.2f} s ({made:.1f} s features, missing {features.missing:.0%}), "
        note += f"{result.route}, peak {peak:.2f} GiB"
        row(f"n = {n}, rank {rank}", f"dense, {slow:.0f} s extrapolated", 20.0, slow / fast, note)
    X, y = data(5000)
    problem = AdaptiveKernel(nystrom(X, gaussian, rank=50), y, 1.0, tau=0.01)
    fast, _ = timed(lambda: klopt.solve(problem, tol=1e-6).require())
    slow, result = timed(lambda: klopt.solve(problem, "nesterov", tol=1e-6, time_limit=60))
    note = f"{fast:.2f} s; FISTA {slow:.1f} s, {result.verdict}"
    row("n = 5000, rank 50, tau = 0.01", "FISTA, same features, to 1e-6", 5.0, slow / fast, note)


def clusters() -> None:
    n = 50_000
    v = 50
    X, y = data(n)
    factory = AdaptiveKernel.on_points(gaussian, 1.0, bias=False)
    grouping, alone, labels = spread(lambda: kmeans(X, v))
    decompose(factory, X[:400], y[:400], 2, jobs=2)  # processes start
    fast, busy, found = spread(lambda: decompose(factory, X, y, labels, jobs=2))
    note = f"busy {busy + alone:.1f} s, certified {found.certified}"
    row(
        f"n = {n}, {v} clusters",
        "seconds, 2 processes, k-means",
        15.0,
        fast + grouping,
        note,
        most=True,
    )
    typical = int(np.argsort(np.bincount(labels))[v // 2])
    rows = np.flatnonzero(labels == typical)
    single = factory(X[rows], y[rows])
    assert single is not None
    mine, _ = best_of(3, lambda: klopt.solve(single, tol=1e-6).require())
    plain = klopt.solve(
        klopt.problems.AdaptiveKernel(single.K, single.y, 1.0, 1e9, bias=False), tol=1e-6
    ).point.alpha
    slow, gap = published(single, plain, 1e-6, 60 * mine, eigen=False)
    note = f"cluster of {rows.size}: {1e3 * mine:.0f} ms; published stopped at {gap:.0e} in {slow:.1f} s"
    row("one cluster, same start", "Algorithm 1 without eigh", 30.0, slow / mine, note)
    whole_against_parts(20_000, 20)


def whole_against_parts(n: int, v: int) -> None:
    X, y = data(n)
    labels = kmeans(X, v)
    features = nystrom(X, gaussian, rank=100)

    class Same:
        """The features as points: the whole and the parts have one kernel."""

        def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
            return A @ B.T

    whole = AdaptiveKernel(features, y, 1.0, 2.5, bias=False)
    factory = AdaptiveKernel.on_points(Same(), 1.0, 2.5, bias=False)
    took, found = timed(
        lambda: decompose(factory, features.Phi, y, labels, whole=whole, polish=True)
    )
    least_off, most_off = off_blocks(Same(), features.Phi, labels).bounds(1.0, 2.5)
    assert found.whole is not None
    assert found.polished is not None
    print(
        f"      n = {n}, {v} clusters, rank 100, {took:.1f} s: parts {found.lower:.4f}, h of concatenation in "
        f"[{found.whole.lower:.4f}, {found.whole.upper:.4f}], whole {found.polished.value:.4f}, "
        f"h* - parts in [{least_off:.3g}, {most_off:.3g}] by the corrected bound"
    )


def jobs() -> None:
    X, y = data(20_000)
    factory = AdaptiveKernel.on_points(gaussian, 1.0, bias=False)
    labels = kmeans(X, 20)
    decompose(factory, X[:400], y[:400], 2, jobs=2)
    runs = [
        [spread(lambda k=k: decompose(factory, X, y, labels, jobs=k)) for k in (1, 2)]
        for _ in range(3)
    ]
    (one, one_busy, here), (two, two_busy, there) = (
        min(side, key=itemgetter(0)) for side in zip(*runs, strict=True)
    )
    assert np.array_equal(here.point.alpha, there.point.alpha)
    note = f"{one:.1f} s, {two:.1f} s; busy {one_busy:.2f} s, {two_busy:.2f} s: {one_busy / two_busy:.2f}"
    row("n = 20000, 20 clusters", "2 processes over 1, wall", 1.6, one / two, note)
    if "dask" in sys.argv[1:] or len(sys.argv) == 1:
        on_dask(factory, X, y, labels, two, two_busy)


def on_dask(
    factory: Any,
    X: np.ndarray,
    y: np.ndarray,
    labels: np.ndarray,
    joblib_seconds: float,
    joblib_busy: float,
) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        decompose(factory, X[:400], y[:400], 2, jobs=client)
        runs = [spread(lambda: decompose(factory, X, y, labels, jobs=client)) for _ in range(3)]
    seconds, busy, _ = min(runs, key=itemgetter(0))
    note = f"{seconds:.1f} s; busy {busy:.2f} s: {busy / joblib_busy:.2f}"
    row("same, 2 Dask workers", "joblib, times", 1.2, seconds / joblib_seconds, note, most=True)


ROWS = {
    "paper": against_paper,
    "svc": against_svc,
    "conic": against_conic,
    "fista": against_fista,
    "lowrank": low_rank,
    "clusters": clusters,
    "jobs": jobs,
}


def main() -> int:
    klopt.solve(AdaptiveKernel.sample(np.random.default_rng(0), 10))  # imports
    for name, run in ROWS.items():
        if (
            len(sys.argv) == 1
            or name in sys.argv[1:]
            or (name == "jobs" and "dask" in sys.argv[1:])
        ):
            run()
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
