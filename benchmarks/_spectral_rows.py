"""The rows of `ordered.py` about spectral kernels: closed forms and eigenvectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _rows import TOL, Table, best_of, blobs, cpu, digits, form_of, graph, proven, solved, some

from klopt.engine.registry import backend_named
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import supervised_laplacian, supervised_targets
from klopt.kernels.side_information import energies, side_graph
from klopt.model.backend import Settings
from klopt.problems import SpectralAlignment, SpectralRls


def coefficients(table: Table) -> None:
    X, digit = digits(1797)
    V = smoothest_eigenpairs(graph(X), 200)[1]
    labels = some(digit, 500)
    seconds, c = best_of(9, lambda: energies(side_graph(labels, 1797), V))
    full, d = best_of(
        3, lambda: np.einsum("ij,ij->j", V, supervised_laplacian(supervised_targets(labels)) @ V)
    )
    note = f"{seconds * 1e3:.2f} ms, differ by {abs(c - d).max():.0e}"
    table.add("2b  c_i, n = 1797", "dense S", 80, full / seconds, note)


def least_squares(table: Table) -> None:
    times: dict[int, float] = {}
    for n in (800, 200, 40):
        X, digit = digits(n)
        fresh = partial(SpectralRls, graph(X), some(digit % 2, n // 2), 1.0, 0.1, "labelled")
        times[n], best = best_of(30 if n < 800 else 3, proven, lambda fresh=fresh: (fresh(),))
    whole = best_of(30, solved, lambda: (fresh(),))[0]
    explicit = partial(backend_named("explicit").run, settings=Settings(tol=TOL))
    native = best_of(30, explicit, lambda: (form_of(fresh(), "explicit"),))[0]
    form = form_of(fresh(), "SDP")
    found = []
    for name in ("clarabel", "scs"):
        taken, answer = best_of(3, partial(backend_named(name).run, form, Settings(tol=1e-7)))
        found.append((taken, name, abs(form.value(answer.x) / best.upper - 1)))
    good = min(found)
    note = ", ".join(f"{name} {taken * 1e3:.0f} ms (off {off:.0e})" for taken, name, off in found)
    built = best_of(30, lambda: explicit(form_of(fresh(), "explicit")))[0]
    note += f"; with its proof {good[0] / times[40]:.0f}, klopt.solve {good[0] / whole:.0f}"
    note += f", with the checks of the Laplacian and its inverse {good[0] / built:.0f}"
    table.add("SKL (6) n = 40", f"SDP by {good[1]}", 500, good[0] / native, note)
    table.add("SKL (6) n = 40", "objectives differ by", 1e-7, good[2], at_most=True)
    table.grows("klopt", "n", times)


def as_written(problem: SpectralAlignment) -> tuple[float, float, float]:
    """The slowdown by an n x n kernel, klopt's seconds, and how far the decisions differ."""
    d = problem.directions

    def dense() -> np.ndarray:
        R = d.U @ np.diag(np.sqrt(d.A / d.B)) @ d.U.T
        return R[:, d.known] @ np.linalg.solve(R[np.ix_(d.known, d.known)], d.Y[:, 0])

    seconds, scores = best_of(20, problem.decide)
    full, reference = best_of(3, dense)
    return full / seconds, seconds, float(abs(scores - reference).max())


def decided(L: Any, labels: np.ndarray, rank: int | None) -> tuple[SpectralAlignment, np.ndarray]:
    """All of SKL_KTA: eigenvectors, best level with its proof, decision of all points."""
    problem = SpectralAlignment(L, labels, rank=rank)
    proven(problem)
    return problem, problem.decide()


def laplacian_least_squares(
    X: np.ndarray, L: Any, known: np.ndarray, Y: np.ndarray
) -> Callable[[], np.ndarray]:
    """One fit of Laplacian regularised least squares, all that a grid can share made beforehand."""
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(X, gamma=1 / X.shape[1] / X.var())
    smooth = L @ K
    targets = np.zeros((len(X), Y.shape[1]))
    targets[known] = Y

    def fit() -> np.ndarray:
        system = 0.1 * smooth
        system[known] += K[known]
        system.flat[:: len(X) + 1] += 0.01 * known.size
        return K @ np.linalg.solve(system, targets)

    return fit


def decisions(table: Table) -> None:
    X, digit = digits(1500)
    L = graph(X)
    draws = range(5)
    problems = [SpectralAlignment(L, some(digit % 2, seed=seed)) for seed in draws]
    found = sorted(as_written(problem) for problem in problems)
    worst = found[0]
    middle = found[len(found) // 2]
    note = f"{middle[1] * 1e3:.2f} ms, off {middle[2]:.0e}; "
    note += f"median of {len(found)} draws of labels, worst {worst[0]:.0f}"
    # Twin points, both labelled, make R_ll singular: the rule as written breaks down, klopt takes
    # the smallest norm.
    note += f" (off {worst[2]:.0e}, R_ll singular)" if worst[2] > 1e-6 else ""
    table.add("4a  decision n = 1500", "n x n kernel as written", 100, middle[0], note)
    labels = some(digit % 2)
    d = problems[0].directions
    whole = best_of(4, partial(decided, L, labels, None))[0]
    laprls = best_of(6, laplacian_least_squares(X, L, d.known, d.Y))[0]
    few = best_of(3, partial(decided, L, labels, 200))[0]
    note = f"{whole:.2f} s against {laprls * 1e3:.0f} ms a fit; with 200 eigenvectors {245 * laprls / few:.0f}"
    table.add("4c  SKL_KTA n = 1500", "LapRLS, 7 x 7 grid, 5 folds", 25, 245 * laprls / whole, note)


def eigenpairs(table: Table) -> float:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import eigsh

    L = graph(digits(1797)[0])
    dense = L.toarray()
    adjacency = (eye_array(1797) - L).tocsr()
    full, (values, _) = best_of(4, partial(np.linalg.eigh, dense))
    seconds, (few, V) = best_of(4, partial(smoothest_eigenpairs, L, 200))
    start = np.random.default_rng(0).normal(size=1797)
    arpack = best_of(2, partial(eigsh, adjacency, 200, which="LA", ncv=320, v0=start))[0]
    residual = np.linalg.norm(L @ V - V * few, axis=0).max()
    note = f"residual {residual:.0e}, eigenvalues off {abs(few - values[:200]).max():.0e}; ARPACK {full / arpack:.1f}"
    table.add("4b  n = 1797, r = 200", "dense eigh", 2, full / seconds, note)
    return full


def distance(d: Any, r: int, scores: np.ndarray) -> float:
    """How far scores are from R_:l R_ll^-1 Y, R from the first r directions as they are."""
    R = (d.U[:, :r] * np.sqrt(d.A / d.B)[:r]) @ d.U[d.known, :r].T
    return float(abs(R @ np.linalg.solve(R[d.known], d.Y[:, 0]) - scores).max() / abs(scores).max())


def sparse_graphs(table: Table, full: float) -> None:
    """SKL_KTA by few eigenpairs; `full` is what eigh takes at n = 1797."""
    from scipy.sparse.csgraph import connected_components

    full = full * (20_000 / 1797) ** 3
    times = {}
    for n in (5000, 20_000):
        X, side = blobs(n)
        times[n], (problem, scores) = cpu(partial(decided, graph(X), some(side), 200))
    X, digit = digits(1797)
    L = graph(X)
    labels = some(digit % 2)
    same = distance(SpectralAlignment(L, labels).directions, 200, decided(L, labels, 200)[1])
    off = distance(problem.directions, 200, scores)
    note = f"{times[20_000]:.1f} s for 200 pairs; decision off {off:.0e}, at n = 1797 from eigh's first 200 {same:.0e}"
    table.add("SKL_KTA n = 20000", "full eigh, extrapolated n^3", 50, full / times[20_000], note)
    table.grows("klopt", "n", times)
    X, digit = digits(20_000)
    L = graph(X)
    seconds = cpu(partial(decided, L, some(digit % 2, 200), 500))[0]
    note = f"{seconds:.1f} s for 500 pairs of noisy digits, {connected_components(L)[0]} components"
    table.add("SKL_KTA in pieces", "full eigh, extrapolated n^3", 50, full / seconds, note)
