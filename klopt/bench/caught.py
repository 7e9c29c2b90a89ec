"""The demo's example: solvers that report success with a portfolio that is far from the best.

A minimum-variance portfolio is the quadratic program

    minimise  w'Sw   subject to   sum(w) = 1,  w >= 0

with the covariance matrix S of daily returns, here those of 50 assets that follow one market,
simulated from a fixed seed. Its optimum is about 3e-5: smaller than the absolute part of the
stopping rule of several solvers. Each is called through its own library with nothing set but that it
is silent. Its rule is met and its status says so; how far its portfolio is from the optimum
is measured against an interval that klopt proves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.engine.registry import problem_named
from klopt.model.cones import Cones
from klopt.model.problem import Point, Problem
from klopt.proof.certificate import is_narrow

__all__ = ["CODE", "Caught", "Portfolio", "caught", "covariance"]

ASSETS = 50
DAYS = 500
SEED = 0
TOL = 1e-6
"""The relative gap to which an answer is confirmed, klopt's own by default."""
PROOF_TOL = 1e-12
"""That of the proven minimum, far below its value."""
CODE = """import numpy as np, scs, klopt
from scipy import sparse
from klopt.bench.caught import covariance

S, n = covariance(), 50          # daily returns of 50 assets
A = sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)]))
b = np.append(1.0, np.zeros(n))  # sum(w) = 1, w >= 0
data = {"P": sparse.csc_matrix(np.triu(2 * S)),
        "A": A, "b": b, "c": np.zeros(n)}
found = scs.SCS(data, {"z": 1, "l": n}, verbose=False).solve()
print(found["info"]["status"])   # solved

problem = klopt.problems.ConeProgram(
    2 * S, np.zeros(n), A, b, klopt.Cones(zero=1, nonneg=n))
print(klopt.judge(problem, found["x"], found["y"]))  # UNPROVEN
print(klopt.solve(problem, tol=1e-12))     # the proven minimum
"""
"""How a reader repeats the example."""


class _Answer(NamedTuple):
    """What a solver returned: its status, the point, multipliers where it has them."""

    status: str
    x: FloatArray
    y: FloatArray | None


@dataclass(frozen=True)
class Caught:
    """What one solver says, and what is proven of its portfolio."""

    solver: str
    status: str
    """As the library has it."""
    asked: float
    """The relative tolerance by default."""
    excess: float
    """The variance of its portfolio over the proven minimum, less 1."""
    confirmed: bool
    """Whether the answer itself proves that it is optimal, to klopt's tolerance."""


@dataclass(frozen=True)
class Portfolio:
    """The example: the proven interval of the least variance, and every solver's answer."""

    lower: float
    upper: float
    answers: tuple[Caught, ...]


def covariance(assets: int = ASSETS, days: int = DAYS, seed: int = SEED) -> FloatArray:
    """Return the covariance matrix of simulated daily returns.

    An asset follows the market, whose daily deviation is 1 %, by its own factor, and has a
    deviation of its own from .5 to 2 %.

    >>> S = covariance()
    >>> S.shape, bool(np.linalg.eigvalsh(S)[0] > 0)
    ((50, 50), True)
    """
    rng = np.random.default_rng(seed)
    market = rng.normal(scale=0.01, size=days)
    factors = rng.uniform(0.3, 1.5, size=assets)
    deviations = rng.uniform(0.005, 0.02, size=assets)
    returns = np.outer(market, factors) + deviations * rng.normal(size=(days, assets))
    return np.asarray(np.cov(returns, rowvar=False), dtype=float)


@cache
def caught() -> Portfolio:
    """Return what the solvers that are installed say of the example, and what is proven."""
    S = covariance()
    n = len(S)
    rows = sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)]))
    right = np.append(1.0, np.zeros(n))
    stated: Any = problem_named("ConeProgram")
    problem = stated(2 * S, np.zeros(n), rows, right, Cones(zero=1, nonneg=n))
    proven = solve(problem, tol=PROOF_TOL).require()
    answers = []
    for name, package, asked, run in SOLVERS:
        try:
            number = version(package)
        except PackageNotFoundError:
            continue
        answer = run(S, rows, right)
        answers.append(
            Caught(
                solver=f"{name} {number}",
                status=answer.status,
                asked=asked,
                excess=_variance(S, answer.x) / proven.upper - 1,
                confirmed=_is_confirmed(problem, answer),
            )
        )
    return Portfolio(proven.lower, proven.upper, tuple(answers))


def _variance(S: FloatArray, w: FloatArray) -> float:
    """The variance of the portfolio nearest to w: no weight below 0, and their sum 1."""
    feasible = np.maximum(w, 0.0)
    feasible = feasible / feasible.sum()
    return float(feasible @ S @ feasible)


def _is_confirmed(problem: Problem, answer: _Answer) -> bool:
    """Whether the answer brackets the optimum as narrowly as klopt asks of any solver."""
    duals = {} if answer.y is None else {"y": answer.y}
    bracket = problem.bracket(Point({"x": answer.x}, duals))
    return is_narrow(bracket.lower, bracket.upper, TOL)


def _slsqp(S: FloatArray, rows: Any, right: FloatArray) -> _Answer:
    n = len(S)
    # SciPy's stubs do not know constraints that are dictionaries.
    minimize: Any = optimize.minimize
    found = minimize(
        lambda w: w @ S @ w,
        np.full(n, 1 / n),
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )
    return _Answer(found.message, found.x, None)


def _scs(S: FloatArray, rows: Any, right: FloatArray) -> _Answer:
    import scs

    n = len(S)
    data = {"P": sparse.csc_matrix(np.triu(2 * S)), "A": rows, "b": right, "c": np.zeros(n)}
    found = scs.SCS(data, {"z": 1, "l": n}, verbose=False).solve()
    return _Answer(found["info"]["status"], found["x"], found["y"])


def _osqp(S: FloatArray, rows: Any, right: FloatArray) -> _Answer:
    osqp = import_module("osqp")
    n = len(S)
    least = np.append(1.0, np.full(n, -np.inf))
    solver = osqp.OSQP()
    solver.setup(sparse.csc_matrix(np.triu(2 * S)), np.zeros(n), rows, least, right, verbose=False)
    with warnings.catch_warnings():
        # Some versions tell of what a later one will do.
        warnings.simplefilter("ignore")
        found = solver.solve()
    return _Answer(found.info.status, found.x, found.y)


def _clarabel(S: FloatArray, rows: Any, right: FloatArray) -> _Answer:
    import clarabel

    n = len(S)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    quadratic = sparse.csc_matrix(np.triu(2 * S))
    found = clarabel.DefaultSolver(quadratic, np.zeros(n), rows, right, cones, settings).solve()
    return _Answer(str(found.status), np.array(found.x), np.array(found.z))


SOLVERS: Sequence[tuple[str, str, float, Callable[..., _Answer]]] = (
    ("SciPy SLSQP", "scipy", 1e-6, _slsqp),
    ("SCS", "scs", 1e-4, _scs),
    ("OSQP", "osqp", 1e-3, _osqp),
    ("Clarabel", "clarabel", 1e-8, _clarabel),
)
"""Names, packages, tolerances by default, and how each is called."""
