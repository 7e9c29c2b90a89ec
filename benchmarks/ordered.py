"""Ordered and spectral kernels: klopt's choice against the papers' methods and other solvers.

    python benchmarks/ordered.py            about ten minutes, most of it baselines and eigenvectors
    python benchmarks/ordered.py quick      leaves out what takes more than a few seconds

Every figure is a ratio of times of this run: CPU seconds of one BLAS thread, smallest of several
repeats, a lower bound where the baseline was stopped (the line says so). Data: handwritten digits
(with noisy copies above 1797 points), the normalised Laplacian of ten neighbours, 100 labels; F,
its factors and whatever else a method starts from are given, where klopt uses F at all. The route
is always the one that klopt.solve picks by itself.

What is compared with what. A baseline that models (CVXPY) is compared with klopt.solve, from the
problem to the proven result; a solver called by its own interface, with its matrices at hand, with
the backend in klopt.solve on its form. Rows (1a) compare CVXPY with the backend. Prefix means are
timed with the bracket that proves them. What other readings would give stands beside it. `off` is
how far a baseline is from klopt's bound.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import sys
from functools import partial
from typing import Any

import numpy as np
from _rows import TOL, Table, aligned, best_of, cpu, form_of, limited, peak, proven, solved
from _spectral_rows import coefficients, decisions, eigenpairs, least_squares, sparse_graphs

import klopt
from klopt.engine.registry import backend_named
from klopt.model.backend import Settings
from klopt.model.forms import SimplexForm
from klopt.model.functions import Quadratic
from klopt.model.sets import BoxPlane
from klopt.problems import OrderedAlignment, ScgOrdered

QUICK = "quick" in sys.argv[1:]
table = Table()


def ours(r: int) -> tuple[float, float, Any]:
    """Return CPU seconds of klopt.solve, those of its backend alone, and the result."""

    def given() -> tuple[OrderedAlignment]:
        problem = OrderedAlignment(*aligned(r))
        if problem.reduced.columns.is_small:
            problem.reduced.columns.F  # noqa: B018 - F is given
        return (problem,)

    whole, result = best_of(9, solved, given)
    name = result.route.formulation.name
    backend = result.route.backend
    native = best_of(
        9, lambda form: backend.run(form, Settings(tol=TOL)), lambda: (form_of(given()[0], name),)
    )[0]
    return whole, native, result


def by_cvxpy(b: np.ndarray, factor: np.ndarray, solver: str) -> np.ndarray:
    """The ordered alignment in CVXPY: the largest b'alpha with ||factor alpha|| <= 1."""
    import cvxpy as cp

    a = cp.Variable(b.size)
    constraints = [cp.norm(factor @ a) <= 1, a[:-1] >= a[1:], a[-1] >= 0]
    cp.Problem(cp.Maximize(b @ a), constraints).solve(solver=solver)
    return np.asarray(a.value)


def by_piqp(P: np.ndarray, c: np.ndarray) -> np.ndarray:
    import piqp

    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = solver.settings.eps_duality_gap_abs = 1e-9
    solver.settings.eps_duality_gap_rel = 1e-9
    solver.setup(P, c, x_l=np.zeros(c.size))
    solver.solve()
    return np.asarray(solver.result.x)


def direct(r: int, solvers: tuple[str, ...]) -> tuple[float, str]:
    """Return the smallest CPU seconds of general solvers on the slack form, and each one."""
    problem = OrderedAlignment(*aligned(r))
    formulation = next(f for f in problem.formulations() if f.name == "slack QP")
    form = formulation.build()
    upper = solved(problem).upper
    times = []
    notes = []
    for solver in solvers:
        try:
            if solver == "piqp":
                given = (np.asfortranarray(form.P.toarray()), form.c)
                seconds, x = best_of(5 if r <= 500 else 2, by_piqp, lambda given=given: given)
            else:
                settings = Settings(tol=TOL, time_limit=60)
                seconds, x = cpu(
                    lambda s=solver, settings=settings: backend_named(s).run(form, settings).x
                )
        except ImportError:
            notes.append(f"{solver} not installed")
            continue
        off = 1 - problem.bracket(formulation.recover(x, None)).lower / upper
        notes.append(f"{solver} {seconds * 1e3:.3g} ms (off {off:.0e})")
        times.append(seconds)
    return min(times), ", ".join(notes)


def published(r: int, tol: float, limit: float) -> tuple[float, str]:
    """Return CPU seconds and iterations of the paper's update to a certified gap."""
    f = form_of(OrderedAlignment(*aligned(r)), "NNLS").objective
    every = np.arange(r)
    form = SimplexForm(
        Quadratic(f.block(every, every), f.linear), BoxPlane(np.zeros(r), np.full(r, np.inf))
    )
    settings = Settings(tol=tol, max_iter=10_000_000, time_limit=limit)
    seconds, answer = cpu(lambda: backend_named("multiplicative").run(form, settings))
    last = answer.history[-1]
    gap = (last.upper - last.lower) / (1 + abs(last.upper))
    return seconds, f"{answer.iterations} iterations, gap {gap:.0e} ({answer.stop.words})"


def small_alignment() -> tuple[float, float]:
    whole, native, result = ours(200)
    print(
        f"      KA1 r = 200: {result.route}, klopt.solve {whole * 1e3:.2f} ms, backend {native * 1e3:.2f} ms"
    )
    V, labels = aligned(200)
    problem = OrderedAlignment(V, labels)
    b = problem.reduced.b
    values, vectors = np.linalg.eigh(problem.reduced.columns.F)

    def off(alpha: np.ndarray | None) -> str:
        if alpha is None:
            return "stopped"
        return f"off {1 - problem.bracket(klopt.Point({'alpha': alpha})).lower / result.upper:.0e}"

    if not QUICK:
        pairs = np.einsum("pi,qi->pqi", V, V).reshape(-1, 200)
        seconds, alpha = limited(180, partial(by_cvxpy, b, pairs, "ECOS"))
        note = f"{off(alpha)}; the backend alone {seconds / native:.0f}"
        table.add("KA1 r = 200", "CVXPY+ECOS on vec(vv')", 5000, seconds / whole, note)
    factor = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    cvxpy = {
        solver: best_of(2, partial(by_cvxpy, b, factor, solver)) for solver in ("ECOS", "CLARABEL")
    }
    for solver, gate in (("ECOS", 40), ("CLARABEL", 60)):
        seconds, alpha = cvxpy[solver]
        note = f"{off(alpha)}; klopt.solve {seconds / whole:.0f}"
        table.add("1a  KA1 r = 200", f"CVXPY+{solver} QCQP, factor", gate, seconds / native, note)
    table.add(
        "KA1 r = 200", "CVXPY QCQP, the better", 30, min(s for s, _ in cvxpy.values()) / whole
    )
    seconds, note = direct(200, ("piqp", "clarabel", "highs"))
    table.add(
        "KA1 r = 200",
        "best direct QP",
        1.5,
        seconds / native,
        f"{note}; klopt.solve {seconds / whole:.1f}",
    )
    return native, seconds


def alignment() -> None:
    times = {}
    others = {}
    times[200], others[200] = small_alignment()
    times[500] = ours(500)[1]
    others[500] = direct(500, ("piqp", "clarabel"))[0]
    seconds, note = published(500, 1e-6, 60)
    table.add("1d  KA1 r = 500", "multiplicative to 1e-6", 100, seconds / times[500], note)
    times[1000] = ours(1000)[1]
    others[1000], note = direct(1000, ("piqp", "clarabel"))
    table.add("1b  KA1 r = 1000", "best direct QP", 15, others[1000] / times[1000], note)
    memory = peak(partial(solved, OrderedAlignment(*aligned(1000))))
    table.add("1b  KA1 r = 1000", "peak MB", 16, memory, at_most=True)
    if not QUICK:
        seconds, note = published(1000, TOL, 120)
        table.add("KA1 r = 1000", "multiplicative to 1e-8", 2000, seconds / times[1000], note)
        large_alignment(times, others)
    table.grows("klopt", "r", times)
    table.grows("the best direct QP solver", "r", others)


def large_alignment(times: dict[int, float], others: dict[int, float]) -> None:
    whole, times[2000], _ = ours(2000)
    W = OrderedAlignment(*aligned(2000)).reduced.columns.W
    build = best_of(5, lambda: np.square(W.T @ W))[0]
    others[2000], note = direct(2000, ("piqp", "clarabel"))
    note += f"; klopt.solve {others[2000] / whole:.0f}"
    table.add("KA1 r = 2000", "best direct QP", 200, others[2000] / times[2000], note)
    note = f"klopt.solve {whole / build:.2f}"
    table.add("KA1 r = 2000", "times forming F", 1, times[2000] / build, note, at_most=True)
    whole, times[5000], result = ours(5000)
    problem = OrderedAlignment(*aligned(5000))
    W = problem.reduced.columns.W
    K = W @ W.T
    one = best_of(15, lambda: np.einsum("ij,ij->j", W, K @ W))[0]
    note = f"{one * 1e3:.1f} ms each; klopt.solve {whole / one:.1f}, gap {result.certificate.relative_gap:.0e}"
    table.add("1c  KA1 r = 5000", "pricing passes", 6, times[5000] / one, note, at_most=True)
    memory = peak(partial(solved, problem))
    formed = "F" in problem.reduced.columns.__dict__
    table.add(
        "1c  KA1 r = 5000",
        "peak MB",
        16,
        memory,
        f"F was {'' if formed else 'never '}formed",
        at_most=True,
    )


def prefix_means() -> None:
    def given(r: int) -> tuple[ScgOrdered]:
        c = np.linspace(1.0, 0.5, r) + 0.1 * np.random.default_rng(0).normal(size=r)
        problem = ScgOrdered(np.ones((2, r)), side=[0, 1])
        problem.__dict__["coefficients"] = (
            c  # decreasing and noisy, the hard case: the best prefix is long
        )
        return (problem,)

    times = {}
    others = {}
    for r in (1000, 20_000) if QUICK else (1000, 20_000, 100_000):
        times[r], bracket = best_of(9, proven, partial(given, r))
        whole = best_of(5, solved, partial(given, r))[0]
        form = form_of(given(r)[0], "LP")
        settings = Settings(tol=TOL, time_limit=120)
        others[r], answer = best_of(
            3 if r == 1000 else 1, partial(backend_named("highs").run, form, settings)
        )
        off = np.nan if answer.x is None else abs(float(form.c @ answer.x) - bracket.upper)
        note = f"{answer.stop.words}, off {off:.0e}; klopt.solve {others[r] / whole:.0f}"
        if r > 1000:
            table.add(f"2   SCG-OSK r = {r}", "HiGHS direct", 500, others[r] / times[r], note)
    seconds, result = best_of(5, solved, partial(given, 1_000_000))
    kept = [cpu(partial(solved, *given(1_000_000))) for _ in range(5)]
    note = f"{result.route}; {max(kept)[0] * 1e3:.0f} ms at worst where results are kept, so that memory is fresh"
    table.add("SCG-OSK r = 1000000", "milliseconds", 50, seconds * 1e3, note, at_most=True)
    table.grows("klopt", "r", times)
    table.grows("HiGHS", "r", others)


if __name__ == "__main__":
    alignment()
    prefix_means()
    coefficients(table)
    least_squares(table)
    decisions(table)
    seconds = eigenpairs(table)
    if not QUICK:
        sparse_graphs(table, seconds)
    table.close()
