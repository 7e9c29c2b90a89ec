"""Measures what each backend takes for cone programs of growing size and fits the laws of `klopt.plan`.

    python benchmarks/route_costs.py --runs runs.csv           measure; what is in the file is kept
    python benchmarks/route_costs.py --runs runs.csv --fit     write klopt/engine/route_costs.json

A run is `klopt.solve` with one backend, one thread and a time limit, in processor seconds. A run
that ends without a proof costs `FAILED` times what it took: another route must then be taken as
well. The programs are made here, none is of a public collection: on those the laws are judged
(`benchmarks/regret.py`).
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

import klopt
from klopt.engine.route_costs import ProgramSize
from klopt.problems import LP, QCQP, SDP
from klopt.programs.program import Program

TIME_LIMIT_S = 15.0
FAILED = 4.0
TARGET = Path(__file__).parent.parent / "klopt" / "engine" / "route_costs.json"
BACKENDS = {
    "LP": ("highs", "clarabel", "ecos", "scs"),
    "QP": ("highs", "clarabel", "scs"),
    "SOCP": ("clarabel", "ecos", "scs"),
    "SDP": ("clarabel", "sdpa", "scs", "low_rank_sdp"),
    "diagonal SDP": ("clarabel", "sdpa", "scs", "low_rank_sdp"),
}
FIELDS = (
    "family",
    "size",
    "backend",
    "kind",
    "seconds",
    "proven",
    "entries",
    "normal",
    "matrices",
    "scalings",
)

Maker = Callable[[np.random.Generator, int], Program]


def sparse_matrix(rng: np.random.Generator, m: int, n: int, per_row: int) -> sparse.csr_array:
    """Random places, normal entries."""
    rows = np.repeat(np.arange(m), per_row)
    columns = rng.integers(0, n, rows.size)
    return sparse.csr_array((rng.normal(size=rows.size), (rows, columns)), shape=(m, n))


def random_lp(rng: np.random.Generator, n: int) -> Program:
    """A sparse program with a known feasible point, in a box."""
    A = sparse_matrix(rng, n // 2, n, 5)
    x = rng.random(n)
    return LP(rng.normal(size=n), A, A @ x + rng.random(n // 2), bounds=(0.0, 3.0))


def transport(rng: np.random.Generator, n: int) -> Program:
    """k suppliers, k customers."""
    k = int(np.sqrt(n)) + 1
    eye = sparse.eye_array(k)
    ones = np.ones((1, k))
    A = sparse.vstack([sparse.kron(eye, ones), sparse.kron(ones, eye)[:-1]], format="csr")
    plan = rng.random(k * k)
    return LP(rng.random(k * k), A_eq=A, b_eq=A @ plan)


def staircase(rng: np.random.Generator, n: int) -> Program:
    """Periods of ten goods, each with a stock carried over."""
    periods = n // 20 + 1
    made = sparse.eye_array(10 * periods)
    carried = sparse.eye_array(10 * periods) - sparse.eye_array(10 * periods, k=-10)
    A = sparse.hstack([made, -carried], format="csr")
    capacity = sparse.kron(sparse.eye_array(periods), np.ones((1, 10)))
    limits = sparse.hstack([capacity, sparse.csr_array(capacity.shape)], format="csr")
    demand = rng.uniform(0.5, 1.5, 10 * periods)
    cost = np.concatenate([rng.uniform(1, 3, 10 * periods), np.full(10 * periods, 0.1)])
    return LP(cost, limits, np.full(periods, 16.0), A, demand)


def dense_lp(rng: np.random.Generator, n: int) -> Program:
    """Every entry of A is in use."""
    n = n // 4 + 4
    A = rng.normal(size=(n, n))
    return LP(rng.normal(size=n), A, A @ rng.random(n) + rng.random(n), bounds=(0.0, 3.0))


def random_qp(rng: np.random.Generator, n: int) -> Program:
    """A sparse convex program with equations and a box."""
    F = sparse_matrix(rng, n // 2, n, 4)
    A = sparse_matrix(rng, n // 4 + 1, n, 4)
    x = rng.random(n)
    return QCQP(
        F.T @ F + 0.01 * sparse.eye_array(n),
        rng.normal(size=n),
        A_eq=A,
        b_eq=A @ x,
        bounds=(0.0, 3.0),
    )


def portfolio(rng: np.random.Generator, n: int) -> Program:
    """A factor model: few dense columns, a simplex."""
    k = n // 20 + 2
    F = rng.normal(size=(n, k)) * (rng.random((n, k)) < 0.5)
    P = sparse.block_diag(
        [sparse.diags_array(rng.uniform(0.1, 1.0, n)), sparse.eye_array(k)], format="csc"
    )
    links = sparse.hstack([sparse.csr_array(F.T), -sparse.eye_array(k)])
    budget = sparse.csr_array(np.concatenate([np.ones(n), np.zeros(k)])[None])
    A = sparse.vstack([links, budget], format="csr")
    c = np.concatenate([-rng.normal(size=n), np.zeros(k)])
    bounds = [(0.0, None)] * n + [(None, None)] * k
    return QCQP(P, c, A_eq=A, b_eq=np.concatenate([np.zeros(k), [1.0]]), bounds=bounds)


def network(rng: np.random.Generator, n: int) -> Program:
    """Flows of least energy; dependent equations, which whole numbers keep consistent."""
    m = n // 4 + 2
    tail, head = rng.integers(0, m, (2, n))
    head = np.where(head == tail, (head + 1) % m, head)
    arcs = np.arange(n)
    values = np.concatenate([np.ones(n), -np.ones(n)])
    A = sparse.csr_array(
        (values, (np.concatenate([tail, head]), np.concatenate([arcs, arcs]))), shape=(m, n)
    )
    return QCQP(sparse.eye_array(n), np.zeros(n), A_eq=A, b_eq=A @ rng.integers(-3, 4, n))


def box_qp(rng: np.random.Generator, n: int) -> Program:
    """A dense singular Hessian in a box."""
    n = n // 4 + 4
    F = rng.normal(size=(n // 2, n))
    return QCQP(F.T @ F, rng.normal(size=n), bounds=(-1.0, 1.0))


def regression(rng: np.random.Generator, n: int) -> Program:
    """The lasso: columns with a sign constraint by splitting."""
    m = n // 2 + 4
    k = n // 8 + 2
    X = rng.normal(size=(m, k))
    y = X[:, :2].sum(axis=1) + rng.normal(size=m)
    G = X.T @ X
    P = np.block([[G, -G], [-G, G]])
    g = X.T @ y
    return QCQP(P, np.concatenate([-g, g]) + 0.1 * np.abs(g).max(), bounds=(0.0, None))


def norms(rng: np.random.Generator, n: int) -> Program:
    """The sum of many distances."""
    k = n // 3 + 1
    places = rng.normal(size=(k, 2))
    eye = sparse.eye_array(k)
    zero = sparse.csr_array((k, 1))
    rows = sparse.csr_array((np.ones(k), (np.arange(k), np.zeros(k, dtype=int))), shape=(k, 1))
    first = sparse.hstack([-eye, zero, zero])
    second = sparse.hstack([sparse.csr_array((k, k)), -rows, zero])
    third = sparse.hstack([sparse.csr_array((k, k)), zero, -rows])
    stacked = sparse.vstack([first, second, third], format="csr")
    order = np.arange(3 * k).reshape(3, k).T.ravel()
    b = np.concatenate([np.zeros(k), -places[:, 0], -places[:, 1]])
    c = np.concatenate([np.ones(k), np.zeros(2)])
    return QCQP(None, c, A_soc=stacked[order], b_soc=b[order], soc=(3,) * k)


def max_cut(rng: np.random.Generator, n: int) -> Program:
    """The relaxation of a maximal cut."""
    k = max(int(n**0.75), 6)
    graph = np.triu(rng.random((k, k)) < 4 / k, 1).astype(float)
    W = graph + graph.T
    L = np.diag(W.sum(axis=1)) - W
    units = [sparse.csc_array(([1.0], ([i], [i])), shape=(k, k)) for i in range(k)]
    return SDP(np.ones(k), [L / 4, *units])


def theta(rng: np.random.Generator, n: int) -> Program:
    """The theta function of a random graph."""
    k = max(int(n**0.5), 6)
    pairs = [(i, j) for j in range(k) for i in range(j) if rng.random() < 0.15]
    matrices = [np.eye(k)]
    for i, j in pairs:
        E = np.zeros((k, k))
        E[i, j] = E[j, i] = 1.0
        matrices.append(E)
    c = np.zeros(len(matrices))
    c[0] = 1.0
    return SDP(c, [np.ones((k, k)), *matrices])


def inequality(rng: np.random.Generator, n: int) -> Program:
    """A dense linear matrix inequality."""
    m = max(int(n**0.5), 4)
    k = max(m // 2, 4)
    F = [rng.normal(size=(k, k)) for _ in range(m)]
    F = [(M + M.T) / 2 for M in F]
    Z = rng.normal(size=(k, k))
    Z = Z @ Z.T
    c = np.array([np.sum(M * Z) for M in F])
    return SDP(c, [-k * np.eye(k), *F])


FAMILIES: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        random_lp, transport, staircase, dense_lp,
        random_qp, portfolio, network, box_qp, regression,
        norms, max_cut, theta, inequality,
    )
}  # fmt: skip
SIZES = (30, 100, 300, 1000, 3000)
LARGER = {"max_cut": (10_000, 25_000)}
"""Sizes that only some backend can take: orders of 1000 and 1990."""
KINDS_OF_LAW = {"SDP": ("SDP", "diagonal SDP")}
"""A diagonal program is a semidefinite one, too ..."""
TAKES_DIAGONALS_APART = ("low_rank_sdp",)
"""... but says nothing of how a backend takes others that moves on spheres there."""


def measured(done: dict[tuple[str, str, str], float]) -> Iterator[dict[str, object]]:
    """Run what is not done yet; a backend that ran out of time is not asked for more of a family."""
    for family, make in FAMILIES.items():
        hopeless: set[str] = set()
        for size in (*SIZES, *LARGER.get(family, ())):
            problem = make(np.random.default_rng(size), size)
            form = problem.form
            at = ProgramSize.of(form)
            for backend in BACKENDS[at.kind]:
                known = done.get((family, str(size), backend))
                if known is not None and known > TIME_LIMIT_S / 3:
                    hopeless.add(backend)
                if backend in hopeless or known is not None:
                    continue
                if next(b for b in klopt.backends() if b.name == backend).missing:
                    continue
                began = time.process_time()
                route = next(r for r in klopt.plan(problem).routes if r.backend.name == backend)
                result = klopt.solve(
                    problem,
                    backend,
                    formulation=route.formulation.name,
                    time_limit=TIME_LIMIT_S,
                    isolate=False,
                )
                seconds = time.process_time() - began
                proven = result.verdict.conclusive
                if seconds > TIME_LIMIT_S / 3:
                    hopeless.add(backend)
                sizes = (at.entries, at.normal, at.matrices, at.scalings)
                row = (family, size, backend, at.kind, round(seconds, 5), int(proven), *sizes)
                yield dict(zip(FIELDS, row, strict=True))


def fitted(rows: list[dict[str, str]]) -> dict[str, object]:
    """The laws: least squares of log t with weights that are not negative."""
    # A program that nothing proves says nothing about the choice.
    provable = {(row["family"], row["size"]) for row in rows if row["proven"] == "1"}
    rows = [row for row in rows if (row["family"], row["size"]) in provable]
    laws: dict[str, dict[str, object]] = {}
    for backend in sorted({row["backend"] for row in rows}):
        for kind in BACKENDS:
            kinds = (kind,)
            if backend not in TAKES_DIAGONALS_APART:
                kinds = KINDS_OF_LAW.get(kind, kinds)
            own = [row for row in rows if row["backend"] == backend and row["kind"] in kinds]
            if len(own) < 4:
                continue
            cost = [float(r["seconds"]) * (1.0 if r["proven"] == "1" else FAILED) for r in own]
            t = np.log10(np.maximum(cost, 1e-4))
            names = ("entries", "normal", "matrices", "scalings")
            X = np.log10(1 + np.array([[float(row[name]) for name in names] for row in own]))
            ones = np.ones((len(own), 1))
            weights, _ = nnls(np.hstack([X, ones, -ones]), t)
            constant = weights[-2] - weights[-1]
            spread = float(np.std(t - X @ weights[:4] - constant))
            # The mean of a time whose logarithm is normal: who is less certain costs more.
            constant += np.log(10.0) / 2 * spread**2
            law = {
                "constant": round(float(constant), 3),
                "weights": [round(float(w), 3) for w in weights[:4]],
                "spread": round(spread, 2),
                "runs": len(own),
                "unproven": sum(row["proven"] == "0" for row in own),
            }
            laws.setdefault(backend, {})[kind] = law
            print(f"{backend:9} {kind:5} {law}", file=sys.stderr)
    return laws


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(arguments.runs.open())) if arguments.runs.exists() else []
    if not arguments.fit:
        done = {(row["family"], row["size"], row["backend"]): float(row["seconds"]) for row in rows}
        with arguments.runs.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if not rows:
                writer.writeheader()
            for row in measured(done):
                writer.writerow(row)
                file.flush()
        return
    versions = {
        name: version(name)
        for name in ("highspy", "clarabel", "scs", "ecos", "sdpa-python")
        if _has(name)
    }
    data = {"versions": versions, "machine": platform.machine(), "laws": fitted(rows)}
    TARGET.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _has(name: str) -> bool:
    try:
        version(name)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
