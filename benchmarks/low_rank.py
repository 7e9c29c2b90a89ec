"""Maximum cuts: the low-rank semidefinite solver with its proof, against Clarabel and SCS without.

    python benchmarks/low_rank.py            about three minutes

The semidefinite bound of the maximum cut of a random graph with four edges a point on average, to a
relative gap of 1e-4. klopt's figure is all of `klopt.solve` by the route that it picks, proof included;
that of Clarabel and SCS is their run alone, asked for the same tolerance: what they return is not
checked. CPU seconds of one thread, in one run. Peak memory is that of a process of its own, problem
included.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import multiprocessing
import time

import numpy as np
from _rows import Table, cpu
from scipy import sparse

import klopt
from klopt.engine.memory import peak_memory
from klopt.engine.registry import backend_named
from klopt.model.backend import Settings
from klopt.problems import SDP

TOL = 1e-4
SIZES = (100, 200, 400)
LARGE = 2000
MAX_SECONDS = 120.0
MAX_GIB = 2.0
BASELINES = ("clarabel", "scs")


def cut(n: int) -> SDP:
    """Minimise 1'x subject to diag(x) - L/4 psd, L the Laplacian of a random graph."""
    rng = np.random.default_rng(n)
    tail, head = rng.integers(0, n, (2, 2 * n))
    kept = tail != head
    W = sparse.csr_array((np.ones(kept.sum()), (tail[kept], head[kept])), shape=(n, n))
    W = ((W + W.T) != 0).astype(float)
    L = sparse.csc_array(sparse.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)
    units = [sparse.csc_array(([1.0], ([i], [i])), shape=(n, n)) for i in range(n)]
    return SDP(np.ones(n), [L / 4, *units])


def proven(n: int, tol: float = TOL) -> tuple[float, klopt.Result]:
    """CPU seconds of a proven solve."""
    problem = cut(n)
    seconds, result = cpu(lambda: klopt.solve(problem, tol=tol))
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
    return seconds, result


def alone(n: int, backend: str) -> tuple[float, str]:
    """CPU seconds of a backend's run and what it says."""
    form = cut(n).form
    settings = Settings(tol=TOL)
    seconds, answer = cpu(lambda: backend_named(backend).run(form, settings))
    return seconds, answer.native


def large(results: multiprocessing.Queue[tuple[float, float, float, str]]) -> None:
    """The large cut in a process of its own: wall seconds, GiB, relative gap, route."""
    began = time.perf_counter()
    _, result = proven(LARGE)
    seconds = time.perf_counter() - began
    # What `getrusage` counts begins with the process that started this one.
    peak = (peak_memory() or np.nan) / 2**30
    results.put((seconds, peak, result.certificate.relative_gap, str(result.route)))


def main() -> None:
    table = Table()
    proven(50)  # imports
    for n in SIZES:
        own, result = proven(n)
        gap = result.certificate.relative_gap
        for backend in BASELINES:
            seconds, said = alone(n, backend)
            note = f"{own:.2f} s, gap {gap:.0e}, by {result.route}; {seconds:.2f} s, {said}"
            table.add(f"n = {n}", f"{backend}, not checked", 1, seconds / own, note)

    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=large, args=(results,))
    child.start()
    seconds, peak, gap, route = results.get()
    child.join()
    note = f"proven gap {gap:.1e}, by {route}"
    table.add(f"n = {LARGE} to 1e-4", "wall seconds", MAX_SECONDS, seconds, note, at_most=True)
    table.add(f"n = {LARGE} to 1e-4", "GiB, peak", MAX_GIB, peak, "", at_most=True)
    finer, result = proven(LARGE, 1e-6)
    table.add(f"n = {LARGE} to 1e-6", "CPU seconds", MAX_SECONDS, finer, "", at_most=True)
    table.close()


if __name__ == "__main__":
    main()
