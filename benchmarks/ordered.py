"""Ordered and spectral kernels: klopt's choice against the papers' methods and against general solvers.

    python benchmarks/ordered.py            about five minutes, most of it baselines and eigenvectors
    python benchmarks/ordered.py quick      leaves out what takes more than a few seconds

Every figure is a ratio of times of this run: CPU seconds of one BLAS thread, least of several repeats, a lower bound
where the baseline was stopped (the line says so). Data: handwritten digits (with noisy copies above 1797 points), the
normalised Laplacian of ten neighbours, 100 labels; F, its factors and whatever else a method starts from are given,
where klopt uses F at all. A baseline that models (CVXPY) is compared with klopt.solve, from the problem to the
certificate; a solver called by its own interface, with its matrix at hand, with the backend in klopt.solve. Rows (1a)
compare CVXPY with the backend and note the ratio to klopt.solve. `off` is how far a baseline's alignment is below
klopt's upper bound.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import multiprocessing
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import klopt
from klopt.backend import Settings
from klopt.eigenpairs import smoothest_eigenpairs
from klopt.forms import SimplexForm
from klopt.graphs import knn_graph, laplacian
from klopt.objectives import Quadratic
from klopt.problems import OrderedAlignment, ScgOrdered, SpectralAlignment, SpectralRls
from klopt.registry import backend_named
from klopt.sets import BoxPlane

QUICK = "quick" in sys.argv[1:]
TOL = 1e-8
LABELS = 100
POINTS = {2000: 2400, 5000: 5400}
verdicts: list[bool] = []


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def least(repeats: int, run: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None) -> tuple[float, Any]:
    """Return the least CPU seconds of several runs, each on something freshly prepared, and the last result."""
    runs = [cpu(partial(run, prepare())) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def limited(seconds: float, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return (CPU seconds, result) of a run in a child process; (seconds, None) where it had to be stopped."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=lambda: send.send(cpu(run)))
    child.start()
    found = receive.recv() if receive.poll(seconds) else (seconds, None)
    child.terminate()
    child.join()
    return found


def row(what: str, against: str, gate: float, measured: float, note: str = "", at_most: bool = False) -> None:
    """Print a line of the table; `at_most` turns the gate around."""
    passed = measured <= gate if at_most else measured >= gate
    verdicts.append(bool(passed))
    sign = "<=" if at_most else ">="
    verdict = "PASS" if passed else "FAIL"
    print(f"{verdict}  {what:26} {against:34} {sign} {gate:<7g} {measured:9.3g}   {note}", flush=True)


def points(n: int) -> tuple[Any, np.ndarray]:
    """Return the Laplacian of n digits and their classes."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = np.concatenate([np.arange(min(n, len(X))), rng.integers(0, len(X), max(n - len(X), 0))])
    noise = rng.normal(size=(n, X.shape[1])) * (np.arange(n) >= len(X))[:, None]
    return laplacian(knn_graph(X[chosen] + noise, 10)), digit[chosen]


@cache
def eigenvectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of all eigenvectors of n digits at the labelled ones, and the labels."""
    L, digit = points(n)
    labelled = np.random.default_rng(1).permutation(n)[:LABELS]
    return np.ascontiguousarray(smoothest_eigenpairs(L, n)[1][labelled]), digit[labelled]


def data(r: int) -> tuple[np.ndarray, np.ndarray]:
    V, labels = eigenvectors(POINTS.get(r, 1797))
    return np.ascontiguousarray(V[:, :r]), labels


def form_of(problem: Any, formulation: str) -> Any:
    return next(f for f in problem.formulations() if f.name == formulation).build()


def ours(r: int) -> tuple[float, float, Any]:
    """Return CPU seconds of klopt.solve from the eigenvectors on, of its backend on the form, and the result."""
    V, labels = data(r)

    def given() -> OrderedAlignment:
        problem = OrderedAlignment(V, labels)
        if problem.reduced.columns.is_small:
            problem.reduced.columns.F  # noqa: B018 - F is given
        return problem

    whole, result = least(7, lambda problem: klopt.solve(problem, tol=TOL), given)
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
    name, backend = result.route.formulation.name, result.route.backend
    native, _ = least(7, lambda form: backend.run(form, Settings(tol=TOL)), lambda: form_of(given(), name))
    return whole, native, result


def by_cvxpy(b: np.ndarray, factor: np.ndarray, solver: str) -> np.ndarray:
    """The ordered alignment in CVXPY: the largest b'alpha with ||factor alpha|| <= 1."""
    import cvxpy as cp

    a = cp.Variable(b.size)
    constraints = [cp.norm(factor @ a) <= 1, a[:-1] >= a[1:], a[-1] >= 0]
    cp.Problem(cp.Maximize(b @ a), constraints).solve(solver=solver)
    return np.asarray(a.value)


def direct(r: int, solvers: tuple[str, ...]) -> tuple[float, str]:
    """Return the least CPU seconds of general solvers called directly on the slack form, and what each took."""
    V, labels = data(r)
    problem = OrderedAlignment(V, labels)
    form = form_of(problem, "slack QP")
    best, notes = problem.bracket(klopt.solve(problem, tol=TOL).point).upper, []
    times = []
    for solver in solvers:
        if solver == "piqp":
            P = np.asfortranarray(form.P.toarray())
            seconds, x = least(5 if r <= 500 else 1, lambda _, P=P: by_piqp(P, form.c))
        else:
            seconds, answer = cpu(lambda name=solver: backend_named(name).run(form, Settings(tol=TOL, time_limit=60)))
            x = answer.x
        if x is None:
            continue
        point = next(f for f in problem.formulations() if f.name == "slack QP").recover(x, None)
        off = 1 - problem.bracket(point).lower / best
        notes.append(f"{solver} {seconds * 1e3:.3g} ms (off {off:.0e})")
        times.append(seconds)
    return min(times), ", ".join(notes)


def by_piqp(P: np.ndarray, c: np.ndarray) -> np.ndarray | None:
    try:
        import piqp
    except ImportError:
        return None
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = solver.settings.eps_duality_gap_abs = 1e-9
    solver.settings.eps_duality_gap_rel = 1e-9
    solver.setup(P, c, x_l=np.zeros(c.size))
    solver.solve()
    return np.asarray(solver.result.x)


def paper(r: int, tol: float, limit: float) -> tuple[float, str]:
    """Return CPU seconds of the paper's update to a certified gap, its matrix formed beforehand, and the iterations."""
    V, labels = data(r)
    f = form_of(OrderedAlignment(V, labels), "NNLS").objective
    every = np.arange(r)
    orthant = BoxPlane(np.zeros(r), np.full(r, np.inf))
    form = SimplexForm(Quadratic(f.block(every, every), f.linear), orthant)
    settings = Settings(tol=tol, max_iter=10_000_000, time_limit=limit)
    seconds, answer = cpu(lambda: backend_named("multiplicative").run(form, settings))
    last = answer.history[-1]
    gap = (last.upper - last.lower) / (1 + abs(last.upper))
    return seconds, f"{answer.iterations} iterations, certified gap {gap:.0e} ({answer.stop.words})"


def alignment() -> None:
    whole, native, result = ours(200)
    upper = result.certificate.upper
    print(f"KA1 r = 200: {result.route}, klopt.solve {whole * 1e3:.2f} ms, backend {native * 1e3:.2f} ms\n")
    V, labels = data(200)
    problem = OrderedAlignment(V, labels)
    b, F = problem.reduced.b, problem.reduced.columns.F
    values, vectors = np.linalg.eigh(F)

    def off(alpha: np.ndarray | None) -> str:
        if alpha is None:
            return "stopped"
        return f"off {1 - problem.bracket(klopt.Point({'alpha': alpha})).lower / upper:.0e}"

    if not QUICK:
        pairs = np.einsum("pi,qi->pqi", V, V).reshape(-1, 200)
        seconds, alpha = limited(120, partial(by_cvxpy, b, pairs, "ECOS"))
        row("KA1 r = 200", "CVXPY+ECOS on vec(vv')", 5000, seconds / whole, off(alpha))
    factor = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    cvxpy = {solver: cpu(partial(by_cvxpy, b, factor, solver)) for solver in ("ECOS", "CLARABEL")}
    for solver, gate in (("ECOS", 40), ("CLARABEL", 60)):
        seconds, alpha = cvxpy[solver]
        row(
            "KA1 r = 200 (1a)",
            f"CVXPY+{solver} QCQP, factor",
            gate,
            seconds / native,
            f"{off(alpha)}, klopt.solve {seconds / whole:.0f}",
        )
    row("KA1 r = 200", "CVXPY QCQP, the better", 30, min(s for s, _ in cvxpy.values()) / whole)
    seconds, note = direct(200, ("piqp", "clarabel", "highs"))
    row("KA1 r = 200", "best direct QP", 1.5, seconds / native, note)
    times, others = {200: native}, {200: seconds}
    times[500] = ours(500)[1]
    seconds, note = paper(500, 1e-6, 60)
    row("KA1 r = 500 (1d)", "multiplicative to 1e-6", 100, seconds / times[500], note)
    others[500] = direct(500, ("piqp",))[0]
    times[1000] = ours(1000)[1]
    others[1000], note = direct(1000, ("piqp", "clarabel"))
    row("KA1 r = 1000 (1b)", "best direct QP", 15, others[1000] / times[1000], note)
    if not QUICK:
        seconds, note = paper(1000, TOL, 60)
        row("KA1 r = 1000", "multiplicative to 1e-8", 2000, seconds / times[1000], note)
        large(times, others)
    for who, taken in (("klopt", times), ("best direct QP", others)):
        exponent = np.polyfit(np.log(list(taken)), np.log(list(taken.values())), 1)[0]
        print(f"      {who} grows as r^{exponent:.2f} over r = {', '.join(map(str, taken))}")


def large(times: dict[int, float], others: dict[int, float]) -> None:
    whole, times[2000], result = ours(2000)
    W = np.ascontiguousarray(OrderedAlignment(*data(2000)).reduced.columns.W)
    build = least(3, lambda _: np.square(W.T @ W))[0]
    others[2000], note = direct(2000, ("piqp", "clarabel"))
    row("KA1 r = 2000", "best direct QP", 200, others[2000] / times[2000], note)
    row("KA1 r = 2000", "forming F", 1, times[2000] / build, f"klopt.solve {whole / build:.2f}", at_most=True)
    whole, times[5000], result = ours(5000)
    W = np.ascontiguousarray(OrderedAlignment(*data(5000)).reduced.columns.W)
    K = W @ W.T
    one = least(9, lambda _: np.einsum("ij,ij->j", W, K @ W))[0]
    note = f"klopt.solve {whole / one:.1f}, width {result.certificate.relative_width:.0e}"
    row("KA1 r = 5000 (1c)", "pricing passes", 6, times[5000] / one, note, at_most=True)
    problem = OrderedAlignment(*data(5000))
    tracemalloc.start()
    klopt.solve(problem, tol=TOL)
    row("KA1 r = 5000", "peak MB", 16, tracemalloc.get_traced_memory()[1] / 1e6, at_most=True)
    tracemalloc.stop()


def prefix_means() -> None:
    def problem(r: int) -> ScgOrdered:
        rng = np.random.default_rng(0)
        made = ScgOrdered(rng.normal(size=(10, r)) * np.linspace(2, 1, r), side=np.arange(10) % 3)
        made.coefficients  # noqa: B018 - given
        return made

    for r, gate in ((20_000, 500), (100_000, 500)):
        seconds, result = least(5, lambda given: klopt.solve(given, tol=TOL), partial(problem, r))
        form = form_of(problem(r), "LP")
        theirs, answer = cpu(lambda form=form: backend_named("highs").run(form, Settings(tol=TOL, time_limit=60)))
        off = abs(float(form.c @ answer.x) - result.value) if answer.x is not None else np.nan
        row(f"SCG-OSK r = {r:.0e}", "HiGHS direct", gate, theirs / seconds, f"{answer.stop.words}, off {off:.0e}")
    seconds, result = least(3, lambda given: klopt.solve(given, tol=TOL), partial(problem, 1_000_000))
    row("SCG-OSK r = 1e+06", "ms", 50, seconds * 1e3, f"{result.route}, {result.verdict.name}", at_most=True)


def spectral() -> None:
    L, digit = points(40)
    labels = np.where(np.arange(40) < 20, digit % 2, -1)
    problem = SpectralRls(L, labels, C=1.0, mu=0.1, basis="labelled")
    result = klopt.solve(problem, tol=TOL)
    fresh = partial(SpectralRls, L, labels, C=1.0, mu=0.1, basis="labelled")
    seconds, _ = least(9, lambda given: form_of(given, "explicit").rule(), fresh)
    form, theirs = form_of(problem, "SDP"), []
    for solver in ("clarabel", "scs"):
        taken, answer = cpu(lambda s=solver: backend_named(s).run(form, Settings(tol=1e-7)))
        theirs.append((taken, solver, f"off {abs(form.value(answer.x) / result.value - 1):.0e}"))
    note = ", ".join(f"{solver} {taken * 1e3:.0f} ms ({off})" for taken, solver, off in theirs)
    row("SKL (6) n = 40", f"SDP by {min(theirs)[1]}", 500, min(theirs)[0] / seconds, f"{seconds * 1e3:.2f} ms, {note}")
    if QUICK:
        return
    L, digit = points(20_000)
    labels = np.where(np.arange(20_000) < 200, digit % 2, -1)
    seconds, _ = cpu(lambda: klopt.solve(SpectralAlignment(L, labels, rank=50)))
    dense = points(1797)[0].toarray()
    full = cpu(lambda: np.linalg.eigh(dense))[0] * (20_000 / 1797) ** 3
    row("SKL_KTA n = 20000", "full eigh, extrapolated", 50, full / seconds, f"{seconds:.1f} s for 50 eigenpairs")


if __name__ == "__main__":
    print("      instance                   against                               gate  measured")
    alignment()
    prefix_means()
    spectral()
    print(f"{sum(verdicts)} of {len(verdicts)} gates hold")
