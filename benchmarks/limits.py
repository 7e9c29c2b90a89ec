"""Time limits: how long after its limit does a solve return?

    python benchmarks/limits.py [FOLDER] [--limits 1,2,5] [--only NAME]

Large programs, most of which cannot be solved and proven in the time they get, and the public ones of
FOLDER (`lp/*.mps`, `qp/*.npz`, `socp/*.npz`, `sdp/*.dat-s`). A solve with `time_limit=T` is to return by
T + 1 s of the clock on an otherwise quiet computer. Where it does not, a second thread says what was
running half a second after the limit. The clock counts here, so nothing else should run.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np
from scipy import sparse

import klopt
from klopt.model.cones import Cones
from klopt.model.problem import Problem
from klopt.problems import LP, QCQP, SDP, ConeProgram, MultipleKernel, SoftMargin

GATE_S = 1.0
LOOK_AFTER_S = 0.5
"""How long after the limit the second thread looks at the first."""


def staircase(rows: int, columns: int, stages: int) -> LP:
    """Return a linear program of linked stages, whose factors fill; dfl001 is of this kind."""
    rng = np.random.default_rng(0)
    m, n = rows // stages, columns // stages
    i = np.concatenate([rng.integers(stage * m, (stage + 1) * m, 3 * n) for stage in range(stages)])
    j = np.repeat(np.arange(n * stages), 3)
    links = np.arange(0, n * (stages - 1), 2)
    i = np.concatenate([i, (links // n + 1) * m + rng.integers(0, m, links.size)])
    j = np.concatenate([j, links])
    entries = rng.choice([-1.0, 1.0], i.size)
    A = sparse.csc_array((entries, (i, j)), shape=(m * stages, n * stages))
    x = rng.integers(0, 4, A.shape[1]) * (rng.random(A.shape[1]) < 0.4)
    y = rng.integers(-5, 6, A.shape[0])
    c = A.T @ y + np.where(x > 0, 0, rng.integers(0, 5, A.shape[1]))
    return LP(c, A_eq=A, b_eq=A @ x.astype(float))


def transport(size: int) -> LP:
    """Return a transportation problem with real costs."""
    rng = np.random.default_rng(0)
    one = np.ones((1, size))
    eye = sparse.eye_array(size)
    A = sparse.vstack([sparse.kron(eye, one), sparse.kron(one, eye)], format="csc")
    return LP(rng.random(size * size), A_eq=A, b_eq=np.ones(2 * size))


def chain(n: int) -> QCQP:
    """Return the quadratic program of POWELL20: a chain of differences."""
    k = np.arange(1, n)
    ones = np.ones(n - 1)
    steps = sparse.diags_array([-ones, ones], offsets=[0, 1], shape=(n - 1, n))
    last = sparse.csr_array(([1.0, -1.0], ([0, 0], [0, n - 1])), shape=(1, n))
    A = sparse.vstack([steps, last])
    b = np.append((-1.0) ** k * k - 0.5, n - 0.5)
    return QCQP(sparse.eye_array(n, format="csc"), np.zeros(n), A_ub=-A, b_ub=-b)


def dense_quadratic(n: int) -> QCQP:
    """Return a quadratic program with a dense Hessian in a box."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(n // 2, n))
    return QCQP(F.T @ F, rng.normal(size=n), bounds=(-1, 1))


def small_cones(side: int) -> ConeProgram:
    """Return a program of many small second-order cones on a grid, as nql and qssp have them."""
    rng = np.random.default_rng(0)
    n = side * side
    down = sparse.diags_array([-np.ones(n), np.ones(n - 1)], offsets=[0, 1])
    right = sparse.diags_array([-np.ones(n), np.ones(n - side)], offsets=[0, side])
    # |(x_below - x, x_right - x)| <= 1 + x / 2 at each point.
    radius = -0.5 * sparse.eye_array(n)
    rows = sparse.vstack([radius, -down, -right], format="csr")
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    b = np.tile([1.0, 0.0, 0.0], n)
    return ConeProgram(None, rng.random(n), rows[order], b, Cones(soc=(3,) * n))


def max_cut(n: int) -> SDP:
    """Return the relaxation of a maximum cut, with a matrix of order n."""
    rng = np.random.default_rng(0)
    W = np.triu((rng.random((n, n)) < 0.1) * 1.0, 1)
    L = np.diag((W + W.T).sum(axis=0)) - W - W.T
    units = [sparse.csr_array(([1.0], ([k], [k])), shape=(n, n)) for k in range(n)]
    return SDP(np.ones(n), [sparse.csr_array(-L / 4), *units])


def margin(n: int) -> SoftMargin:
    """Return a support vector machine of n points with a Gaussian kernel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    squares = (X**2).sum(axis=1)
    K = np.exp(-(squares[:, None] + squares - 2 * X @ X.T) / 10)
    return SoftMargin((K + K.T) / 2, np.sign(X[:, 0] + 0.5 * rng.normal(size=n)), 10.0)


def kernels(n: int) -> MultipleKernel:
    """Return a weighting of five kernels of n points."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for _ in range(5)]
    return MultipleKernel([x @ x.T for x in X], np.sign(X[0][:, 0]), 1.0)


MADE: dict[str, Callable[[], Problem]] = {
    "staircase LP 6000 x 12000": lambda: staircase(6000, 12000, 30),
    "transport LP 300 x 300": lambda: transport(300),
    "transport LP 700 x 700": lambda: transport(700),
    "staircase LP 40000 x 80000": lambda: staircase(40_000, 80_000, 200),
    "chain QP 10000": lambda: chain(10_000),
    "chain QP 200000": lambda: chain(200_000),
    "dense QP 1000": lambda: dense_quadratic(1000),
    "dense QP 3000": lambda: dense_quadratic(3000),
    "SOCP of 2500 cones": lambda: small_cones(50),
    "SOCP of 40000 cones": lambda: small_cones(200),
    "max-cut SDP 150": lambda: max_cut(150),
    "max-cut SDP 400": lambda: max_cut(400),
    "SVM of 2000 points": lambda: margin(2000),
    "SVM of 6000 points": lambda: margin(6000),
    "five kernels, 400 points": lambda: kernels(400),
    "five kernels, 1500 points": lambda: kernels(1500),
}


def found(folder: Path) -> Iterator[tuple[str, Callable[[], Problem]]]:
    """Yield the public programs of a folder."""
    kinds = {"lp": (LP, "*.mps"), "qp": (QCQP, "*.npz"), "socp": (ConeProgram, "*.npz")}
    kinds["sdp"] = (SDP, "*.dat-s")
    for part, (kind, pattern) in kinds.items():
        for path in sorted((folder / part).glob(pattern)):
            yield f"{part} {path.stem}", lambda kind=kind, path=path: kind.from_file(path)


def running(frame: FrameType | None) -> str:
    """Return the innermost functions of klopt on a stack."""
    names: list[str] = []
    while frame is not None and len(names) < 3:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("klopt"):
            place = f"{module.rpartition('.')[2]}.{frame.f_code.co_name}:{frame.f_lineno}"
            names.append(place)
        frame = frame.f_back
    return " < ".join(names)


def timed(problem: Problem, limit: float) -> tuple[klopt.Result, float, str]:
    """Return a result, the seconds it took, and what was running soon after the limit."""
    seen: list[str] = []
    ended = threading.Event()
    solving = threading.get_ident()

    def look() -> None:
        if not ended.wait(limit + LOOK_AFTER_S):
            seen.append(running(sys._current_frames().get(solving)))

    watcher = threading.Thread(target=look)
    watcher.start()
    began = time.perf_counter()
    result = klopt.solve(problem, time_limit=limit)
    took = time.perf_counter() - began
    ended.set()
    watcher.join()
    return result, took, "".join(seen)


def main() -> int:
    """Print the table; the exit status says whether every limit was kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--limits", default="1,2,5")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    programs = list(MADE.items()) + (list(found(given.folder)) if given.folder else [])
    # The first solve of a process loads libraries, and the first child starts: not what is measured.
    klopt.solve(LP([1.0], bounds=(0, 1)), time_limit=30.0, isolate=True)

    print(f"{'program':28} {'limit':>5} {'took':>6} {'over':>6}  {'verdict':10} what was running")
    overruns = []
    for label, make in programs:
        if given.only not in label:
            continue
        for limit in map(float, given.limits.split(",")):
            problem = make()
            result, took, what = timed(problem, limit)
            over = max(0.0, took - limit)
            overruns.append(over)
            mark = "*" if over > GATE_S else " "
            print(
                f"{label:28} {limit:5g} {took:6.2f} {over:6.2f}{mark} {result.verdict.name:10} {what}",
                flush=True,
            )
    late = sum(over > GATE_S for over in overruns)
    print(f"{late} of {len(overruns)} more than {GATE_S:g} s late; latest {max(overruns):.2f} s")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
