"""Proven support vector machines of the true Gaussian kernel, without the matrix of the kernel.

    python benchmarks/true_kernel.py                    10,000 and 30,000 points
    python benchmarks/true_kernel.py 1e4 3e4 1e5        these numbers of points
    python benchmarks/true_kernel.py --svc 1e4          SVC too
    python benchmarks/true_kernel.py --cluster 1e4      on a Dask LocalCluster of two processes too

Points are scikit-learn's `make_classification` in 10 dimensions, 5 % of the labels flipped,
standardised; C = 1, gamma by "scale". The gates: a relative gap of at most 1e-3 within 15 minutes
of two processors, 1800 s of CPU time, and 4 GiB. The law is the exponent of the CPU time in n.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import resource
import sys
import time

import numpy as np
from _rows import Table, cpu
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from klopt.learners.large import solve_rbf_margin

MAX_GAP = 1e-3
MAX_CPU_S = 1800.0
MAX_GIB = 4.0


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(n, 10, n_informative=6, flip_y=0.05, class_sep=1.0, random_state=0)
    return StandardScaler().fit_transform(X), 2.0 * y - 1


def main(arguments: list[str]) -> None:
    sizes = [int(float(text)) for text in arguments if not text.startswith("-")]
    table = Table()
    times: dict[int, float] = {}
    for n in sizes or [10_000, 30_000]:
        X, y = points(n)
        began = time.perf_counter()
        seconds, found = cpu(lambda X=X, y=y: solve_rbf_margin(X, y, tol=MAX_GAP, threads=2))
        wall = time.perf_counter() - began
        times[n] = seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print("     ", found.explain(), flush=True)
        table.add(f"n = {n}", "relative gap", MAX_GAP, found.relative_gap, at_most=True)
        note = f"{wall:.0f} s of wall time, {len(found.rounds) - 1} rounds"
        table.add(f"n = {n}", "CPU s", MAX_CPU_S, seconds, note, at_most=True)
        table.add(f"n = {n}", "peak GiB of the process", MAX_GIB, peak, at_most=True)
        if "--svc" in arguments:
            print(f"      SVC.fit, tol 1e-3: {cpu(lambda X=X, y=y: SVC().fit(X, y))[0]:.1f} CPU s")
        if "--cluster" in arguments:
            on_cluster(X, y, found.alpha)
    if len(times) > 1:
        table.grows("CPU time", "n", times)
    table.close()


def on_cluster(X: np.ndarray, y: np.ndarray, expected: np.ndarray) -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as here,
        Client(here) as client,
    ):
        began = time.perf_counter()
        found = solve_rbf_margin(X, y, tol=MAX_GAP, cluster=client)
        same = np.array_equal(found.alpha, expected)
        print(f"      LocalCluster: {time.perf_counter() - began:.1f} s, same answer: {same}")


if __name__ == "__main__":
    main(sys.argv[1:])
