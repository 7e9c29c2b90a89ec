"""One bundled kernel problem solved along every route: what each backend says beside what klopt proves.

The problem is a soft-margin SVM on tumours of scikit-learn's breast-cancer data, 30 standardised features, with
the kernel K_ij = exp(-|x_i - x_j|^2 / 30) and C = 100. Each route first solves a small instance,
untimed, so that loading a library is not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import numpy as np

from klopt.backend import Stop
from klopt.certify import Verdict
from klopt.plan import plan
from klopt.registry import problem_named
from klopt.show import STYLES, console, lines, table
from klopt.solve import solve

if TYPE_CHECKING:
    from klopt.problem import Problem
    from klopt.result import Result

__all__ = ["demo_problem", "print_runs", "run_demo"]

WARM_UP = 12
C = 100.0
TOL = 1e-6
SECONDS_EACH = 10.0


def demo_problem(points: int) -> Problem:
    """Return the soft-margin problem on so many tumours of the breast-cancer data, drawn with a fixed seed."""
    from sklearn.datasets import load_breast_cancer

    X, labels = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:points]
    X = X[chosen]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = (X**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0)
    np.fill_diagonal(distances, 0.0)
    K = np.exp(-distances / X.shape[1])
    return problem_named("SoftMargin")(K, np.where(labels[chosen] == 1, 1.0, -1.0), C)  # type: ignore[call-arg]


def run_demo(points: int) -> tuple[Result, ...]:
    """Return the result of every route, best verdict first, then fastest; progress goes to standard error."""
    problem, warm_up = demo_problem(points), demo_problem(WARM_UP)
    routes = plan(problem).routes
    results = []
    for number, route in enumerate(routes, 1):
        _progress(f"{number}/{len(routes)}  {route}")
        for instance in (warm_up, problem):
            name = route.formulation.name
            result = solve(instance, route.backend, formulation=name, tol=TOL, time_limit=SECONDS_EACH)
        results.append(result)
    _progress("")
    order = list(Verdict)
    return tuple(sorted(results, key=lambda result: (order.index(result.verdict), result.timings.total)))


def _progress(text: str) -> None:
    """Show where the work is: one line that replaces itself on a terminal, a line each elsewhere."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", err=True, nl=False)
    elif text:
        click.echo(text, err=True)


def print_runs(results: Sequence[Result]) -> None:
    """Print the table of results and what it teaches."""
    out = console()
    out.print(f"{results[0].problem.describe()}, breast-cancer data, RBF kernel; tol {TOL:.0e}\n")
    rows = table(
        ["backend", "formulation", "it says", "klopt proves", "value", "width", "seconds"],
        right=("value", "width", "seconds"),
    )
    for result in results:
        rows.add_row(
            result.route.backend.name,
            result.route.formulation.name,
            result.stop.words,
            result.verdict.name,
            f"{result.value:.6f}",
            f"{result.certificate.relative_width:.0e}",
            f"{result.timings.total:.3f}",
            style=STYLES[result.verdict].removeprefix("bold "),
        )
    out.print(rows)
    out.print("\n" + lines(_lessons(results)))


def _lessons(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Where the optimum lies by all proofs together, who was first, and whose claims were not borne out."""
    lower, upper = max(result.lower for result in results), min(result.upper for result in results)
    proven = [result for result in results if result.verdict is Verdict.OPTIMAL]
    claimed = [result for result in results if result.stop is Stop.OPTIMAL]
    unproven = [result for result in claimed if result.verdict is not Verdict.OPTIMAL]
    said = [("optimum", f"{lower:.10g} <= optimum <= {upper:.10g} by all proofs together")]
    if lower > upper + 1e-9 * (1 + abs(upper)):
        said = [("optimum", "two proven intervals do not overlap: one of the proofs is wrong")]
    if proven:
        said.append(("fastest", f"{proven[0].route}, {proven[0].timings.total:.3g} s, certified"))
    borne_out = len(claimed) - len(unproven)
    said.append(("claims", f"{len(claimed)} of {len(results)} say optimal; {borne_out} of these are proven"))
    for result in unproven:
        times = result.certificate.relative_width / result.settings.tol
        flaw = f"its interval is {times:.2g} times as wide as asked for" if np.isfinite(times) else "no interval"
        said.append(("not proven", f"{result.route}: {flaw}"))
    return said
