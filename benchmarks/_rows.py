"""Clocks, instances and the table of gates that the benchmarks share."""

from __future__ import annotations

import multiprocessing
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import klopt
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import knn_graph, laplacian

TOL = 1e-8
LABELS = 100
POINTS = {2000: 2400, 5000: 5400}
"""How many digits have so many eigenvectors taken; all 1797 otherwise."""


@dataclass(frozen=True)
class Row:
    """A gate, what was measured, and what else should be known."""

    what: str
    against: str
    gate: float
    measured: float
    note: str
    at_most: bool

    @property
    def passed(self) -> bool:
        return bool(self.measured <= self.gate if self.at_most else self.measured >= self.gate)

    def __str__(self) -> str:
        bound = f"{'<=' if self.at_most else '>='} {self.gate:g}"
        verdict = "PASS" if self.passed else "FAIL"
        return f"{verdict}  {self.what:21} {self.against:30} {self.measured:9.4g} {bound:>9}   {self.note}"


class Table:
    """Rows, printed as they come in."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        print(
            f"      {'instance':21} {'baseline':30} {'ratio':>9} {'gate':>9}   remarks", flush=True
        )

    def add(
        self,
        what: str,
        against: str,
        gate: float,
        measured: float,
        note: str = "",
        *,
        at_most: bool = False,
    ) -> None:
        """Enter a measurement; `at_most` turns the gate around."""
        self.rows.append(Row(what, against, gate, float(measured), note, at_most))
        print(self.rows[-1], flush=True)

    def grows(self, who: str, letter: str, times: dict[int, float]) -> None:
        """Print the exponent of growth, the gradient of a line through the logarithms."""
        gradient = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
        print(
            f"      {who} grows as {letter}^{gradient:.2f} over {letter} = {', '.join(map(str, times))}",
            flush=True,
        )

    def close(self) -> None:
        """Print how many gates hold, and those that do not; the exit status says whether all do."""
        failed = [row for row in self.rows if not row.passed]
        print(f"\n{len(self.rows) - len(failed)} of {len(self.rows)} gates hold")
        for row in failed:
            print(row)
        sys.exit(bool(failed))


def solved(problem: Any) -> Any:
    """Return the proven result by the route that klopt picks itself."""
    result = klopt.solve(problem, tol=TOL)
    assert result.verdict is klopt.Verdict.OPTIMAL, result.explain()
    return result


def proven(problem: Any) -> Any:
    """Return the bracket of a closed form."""
    formulation = problem.formulations()[0]
    assert formulation.name == "explicit"
    bracket = problem.bracket(formulation.recover(*formulation.build().rule()))
    assert bracket.gap <= TOL * (1 + abs(bracket.upper))
    return bracket


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds and result."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def best_of(
    repeats: int, run: Callable[..., Any], prepare: Callable[[], tuple[Any, ...]] = tuple
) -> tuple[float, Any]:
    """Return the smallest CPU seconds of several runs, each freshly prepared, and a result."""
    best = np.inf
    result = None
    for given in [prepare() for _ in range(repeats)]:
        result = None  # results that are kept would make each run pay for fresh memory
        seconds, result = cpu(partial(run, *given))
        best = min(best, seconds)
    return best, result


def limited(seconds: float, run: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds and result of a run in a child process; None if it was stopped."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=lambda: send.send(cpu(run)))
    child.start()
    found = receive.recv() if receive.poll(seconds) else (seconds, None)
    child.terminate()
    child.join()
    return found


def peak(run: Callable[[], Any]) -> float:
    """Return the megabytes that a run has allocated at most."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def form_of(problem: Any, formulation: str) -> Any:
    """Return a form of a problem by its name."""
    return next(f for f in problem.formulations() if f.name == formulation).build()


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n handwritten digits and their classes, beyond 1797 noisy copies."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = (
        np.arange(n)
        if n <= len(X)
        else np.append(np.arange(len(X)), rng.integers(0, len(X), n - len(X)))
    )
    noise = rng.normal(size=(n, X.shape[1])) * (np.arange(n) >= len(X))[:, None]
    return X[chosen] + noise, digit[chosen]


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of two classes in 20 dimensions."""
    side = np.arange(n) % 2
    return np.random.default_rng(0).normal(size=(n, 20)) + 3.0 * side[:, None] * np.eye(1, 20), side


def graph(X: np.ndarray) -> Any:
    """Return the normalised Laplacian of ten neighbours."""
    return laplacian(knn_graph(X, 10))


def some(digit: np.ndarray, count: int = LABELS, seed: int = 0) -> np.ndarray:
    """Return the labels of `count` points, -1 elsewhere."""
    known = np.random.default_rng(seed).permutation(digit.size)[:count]
    return np.where(np.isin(np.arange(digit.size), known), digit, -1)


@cache
def _eigenvectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, digit = digits(n)
    labelled = np.random.default_rng(1).permutation(n)[:LABELS]
    return np.ascontiguousarray(smoothest_eigenpairs(graph(X), n)[1][labelled]), digit[labelled]


def aligned(r: int) -> tuple[np.ndarray, np.ndarray]:
    """Return r eigenvectors at the labelled points, and the labels."""
    V, labels = _eigenvectors(POINTS.get(r, 1797))
    return np.ascontiguousarray(V[:, :r]), labels
