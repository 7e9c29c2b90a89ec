"""Measures how time and memory grow with the number of points, and writes docs/scaling.md.

    python docs/measure_scaling.py           two minutes, one thread; keeps the figures in docs/performance/
    python docs/measure_scaling.py page      writes the page anew from what is kept

Every measurement is a process of its own: CPU seconds of the step, and the most memory it held,
points and features included, beyond that of an interpreter that has klopt loaded. Data: two
Gaussian classes in 20 dimensions, k(x, y) = exp(-|x - y|^2 / 20), C = 1. Laws are least squares on
logarithms.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import klopt
from klopt.bench.environment import environment
from klopt.kernels.neighbour_extension import squared_distances
from klopt.kernels.nystroem import nystrom
from klopt.learners.decomposition import kmeans
from klopt.problems import AdaptiveKernel, ScgLogDet

KEPT = Path(__file__).parent / "performance" / "scaling.json"
DIMENSIONS = 20
RANK = 100
SIZES = {
    "features": (10_000, 100_000, 1_000_000),
    "logdet": (10_000, 100_000, 1_000_000),
    "dank": (10_000, 100_000, 300_000),
    "kmeans": (100_000, 300_000, 600_000),
    "cluster": (500, 1000, 2000),
}
WORDS = {
    "features": f"Nyström features, rank {RANK}",
    "logdet": f"`ScgLogDet` of rank {RANK}, with its proof",
    "dank": f"`AdaptiveKernel` of rank {RANK}, to 1e-6, with its proof",
    "kmeans": "k-means of the points, 1000 points a cluster",
    "cluster": "`AdaptiveKernel` of one cluster, dense, to 1e-6, with its proof",
}
Figures = dict[int, tuple[float, float]]
"""By size: CPU seconds and bytes."""


def gaussian(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The kernel."""
    K = squared_distances(X, Y)
    K /= -20.0
    return np.exp(K, out=K)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and labels."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return np.random.default_rng(0).normal(size=(n, DIMENSIONS)) + 0.25 * y[:, None], y


def task(what: str, n: int) -> Callable[[], object]:
    """Return what is measured, with what it starts from at hand."""
    X, y = data(n)
    if what == "features":
        return lambda: nystrom(X, gaussian, RANK, landmarks="leverage")
    if what == "kmeans":
        return lambda: kmeans(X, n // 1000)
    if what == "cluster":
        return lambda: klopt.solve(AdaptiveKernel(gaussian(X, X), y, 1.0, bias=False)).require()
    features = nystrom(X, gaussian, RANK, landmarks="leverage")
    if what == "logdet":
        side = np.where(np.arange(n) % 10 == 0, y > 0, -1).astype(int)
        return lambda: klopt.solve(ScgLogDet(features, side, gamma=0.1)).require()
    return lambda: klopt.solve(AdaptiveKernel(features, y, 1.0, bias=False)).require()


def peak() -> int:
    """Return the most bytes that this process has held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(what: str, n: int) -> None:
    """Print one measurement as JSON."""
    klopt.solve(ScgLogDet(np.eye(4), [0, 0, 1, 1], gamma=1.0))  # imports are not what is measured
    kmeans(np.eye(4), 2)
    before = peak()
    run = task(what, n)
    began = time.process_time()
    run()
    json.dump([time.process_time() - began, peak() - before], sys.stdout)


def figures(what: str) -> Figures:
    """Return what each size takes."""
    found = {}
    one_thread = os.environ | {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "OPENBLAS", "MKL")}
    for n in SIZES[what]:
        call = [sys.executable, __file__, what, str(n)]
        made = subprocess.run(call, capture_output=True, text=True, check=True, env=one_thread)
        seconds, held = json.loads(made.stdout)
        found[n] = (seconds, held)
        sys.stderr.write(f"{what:9} n = {n:7}  {seconds:7.2f} s  {held / 2**20:7.0f} MiB\n")
    return found


def exponent(found: Figures, which: int) -> float:
    """Return the gradient of the logarithm over that of n."""
    return float(
        np.polyfit(
            np.log(list(found)), np.log([max(pair[which], 1e-9) for pair in found.values()]), 1
        )[0]
    )


def length(seconds: float) -> str:
    """Return a duration in words."""
    for unit, most in (("s", 90), ("min", 90), ("h", 48)):
        if seconds < most:
            return f"{seconds:.2g} {unit}"
        seconds /= 60 if unit != "h" else 24
    return f"{seconds:.2g} days"


def size(count: float) -> str:
    """Return a number of bytes in words."""
    power = min(max(int(np.log(max(count, 1)) / np.log(1024)), 2), 4)
    return f"{count / 1024**power:.3g} {['MiB', 'GiB', 'TiB'][power - 2]}"


HEAD = """# Scaling

Measured by `python docs/measure_scaling.py` ({cpu}; klopt {version}, NumPy {numpy}; one thread, CPU seconds, other work
going on beside), never written by hand. Laws are fitted to what was measured; everything beyond the first table is
extrapolated from them, with the arithmetic beside it.

A kernel matrix of n points has 8n² bytes: 75 GiB for 10⁵ points, 65 TiB for 3 · 10⁶. Two ways around it are in klopt:

- **features**: K₀ = ΦΦ' with n × m numbers, by [Nyström](reference/tools.md) or your own; n × n is never formed, and
  the problem *of those features* is solved exactly, with proof;
- **clusters**: [`decompose`](howto/run-on-a-dask-cluster.md) solves a problem for each cluster of points, on processes
  or a Dask cluster, and brackets the whole problem at what they give together.

## Measured

| what | n | seconds | memory | law of time | law of memory |
|---|---|---|---|---|---|
{rows}
"""
BEYOND = """
Memory is the most that the process held, points and features included.

## What follows, with the arithmetic

### By features, on one computer

A step is a product of n × m with m × m numbers, O(nm²). The closed form takes one; the interior-point method of the
support vector machine takes more of them the more points there are. What is held is Φ, 8nm = {phi} bytes a point, the
points, 8d = {xs}, and some vectors: {logdet:.0f} and {dank:.0f} bytes a point, fitted to the measurements. Beyond the
largest n that was measured, N, t(n) = t(N) (n / N)^p with the fitted p, but at least 1. For m = {rank}, time and memory
of the features included:

| n | Φ alone | `ScgLogDet` | memory | `AdaptiveKernel` | memory |
|---|---|---|---|---|---|
{features}

klopt holds Φ in one process. 10⁶ points fit into a laptop, 10⁷ into a server, 10⁸ into a few servers, and klopt does
not spread one Φ over several: that needs sums of m × m matrices over workers, which are not there. What the features
miss of the kernel's trace is reported as `missing`; no law says that a fixed rank is enough.

### By clusters, on a Dask cluster

A cluster of 1000 points took {t1000:.2f} s (law s^{ts:.1f}) and {m1000}. n points are n / 1000 clusters, each
independent: n / 1000 · {t1000:.2f} CPU seconds in all, divided by the workers. Sent are 8(d + 1) bytes a point, and 8
come back, d = {d} here. The client holds the points twice, its own and those of the tasks.

| n | clusters | CPU time | 64 workers | 512 workers | scheduler | k-means by the client | sent | client's memory |
|---|---|---|---|---|---|---|---|---|
{clusters}

- Twice the cluster size costs {twice:.1f} times the time in all.
- *scheduler*: a task costs a Dask scheduler about a millisecond, whatever it does. So {busy} workers keep one
  scheduler busy with clusters of 1000; with more workers take larger clusters.
- *k-means* compares each point with each centre, n · n / 1000 distances: seconds = a + b n², fitted. From 10⁷ points on
  it is what is waited for; pass labels of your own then (`clusters=labels`: a region, a hash, a coarser clustering).
- Points travel through the client. A network of 1 GB/s takes {wire} for 10⁸.

What decomposition does *not* give is a tight bracket of the whole problem: that is as good as the kernel between
clusters is small. `whole=` with features brackets it, at the cost of the table before.
"""


def seconds_for(found: Figures, n: float) -> float:
    """Extrapolate from the largest measurement by the fitted power, at least 1."""
    last = max(found)
    return float(found[last][0] * (n / last) ** max(1.0, exponent(found, 0)))


def a_point(found: Figures) -> float:
    """Return the bytes that one more point takes."""
    return float(np.polyfit(list(found), [pair[1] for pair in found.values()], 1)[0])


def page(found: dict[str, Figures]) -> str:
    """Return the page."""
    here = environment()
    rows = []
    for what, by_size in found.items():
        power = exponent(by_size, 1)
        laws = f"n^{exponent(by_size, 0):.2f} | " + (
            f"n^{power:.2f}" if power > 1.2 else f"{a_point(by_size):.0f} bytes n"
        )
        for place, (n, (seconds, held)) in enumerate(by_size.items()):
            count = f"{n:,}".replace(",", " ")
            first = (
                f"| {WORDS[what] if not place else ''} | {count} | {seconds:.2f} | {size(held)} |"
            )
            rows.append(f"{first} {laws if not place else '|'} |")
    return HEAD.format(
        cpu=here.cpu, version=here.klopt, numpy=here.numpy, rows="\n".join(rows)
    ) + beyond(found)


def beyond(found: dict[str, Figures]) -> str:
    """Return what follows for many points."""
    features = []
    clusters = []
    t1000, m1000 = found["cluster"][1000]
    ts = exponent(found["cluster"], 0)
    squares, fixed = np.polyfit(
        np.square(list(found["kmeans"])), [pair[0] for pair in found["kmeans"].values()], 1
    )
    for n, shown, parts in ((10**6, "10⁶", "10³"), (10**7, "10⁷", "10⁴"), (10**8, "10⁸", "10⁵")):
        cells = [
            f"{length(seconds_for(found['features'], n) + seconds_for(by_size, n))} | {size(n * a_point(by_size))}"
            for by_size in (found["logdet"], found["dank"])
        ]
        features.append(f"| {shown} | {size(8.0 * n * RANK)} | {' | '.join(cells)} |")
        whole = n / 1000 * t1000
        times = (whole, whole / 64, whole / 512, n / 1e6, fixed + squares * float(n) ** 2)
        held = (8.0 * n * (DIMENSIONS + 2), 16.0 * n * (DIMENSIONS + 1))
        clusters.append(
            f"| {shown} | {parts} | {' | '.join([*map(length, times), *map(size, held)])} |"
        )
    return BEYOND.format(
        rank=RANK, phi=8 * RANK, xs=8 * DIMENSIONS, logdet=a_point(found["logdet"]), dank=a_point(found["dank"]),
        features="\n".join(features), clusters="\n".join(clusters), t1000=t1000, m1000=size(m1000), ts=ts,
        twice=2 ** (ts - 1), d=DIMENSIONS, busy=round(1000 * t1000), wire=length(8e8 * (DIMENSIONS + 2) / 1e9),
    )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        if "page" not in sys.argv[1:]:
            KEPT.write_text(
                json.dumps({what: list(figures(what).items()) for what in SIZES}), encoding="utf-8"
            )
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        text = page(
            {
                what: {n: (seconds, held) for n, (seconds, held) in rows}
                for what, rows in kept.items()
            }
        )
        Path(__file__).with_name("scaling.md").write_text(text, encoding="utf-8")
