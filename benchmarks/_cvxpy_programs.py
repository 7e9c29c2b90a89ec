"""Programs of CVXPY for measurements: its library of test programs, and random ones of the usual kinds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.tests import solver_test_helpers as suites
from scipy import sparse

PLAIN = re.compile(r"(expcone|expcone_socp|lp|pcp|qp|sdp|sdp_pcp|socp)_(\d|bounds?_attr|batched)")
EACH = 5
"""Random programs of each kind."""


def library() -> dict[str, Callable[[], Any]]:
    """Return what makes the continuous programs of CVXPY's test library, by name."""
    found: dict[str, Callable[[], Any]] = {
        name: make
        for name, make in inspect.getmembers(suites, inspect.isfunction)
        if PLAIN.fullmatch(name) and not inspect.signature(make).parameters
    }
    return found | {
        "sdp_1max": lambda: suites.sdp_1("max"),
        "sdp_1min": lambda: suites.sdp_1("min"),
        "socp_3ax0": lambda: suites.socp_3(axis=0),
        "socp_3ax1": lambda: suites.socp_3(axis=1),
    }


# Random programs; n is the number of variables.


def _inequality_lp(n: int, rng: np.random.Generator) -> cp.Problem:
    A = sparse.random_array((n // 2, n), density=10 / n, rng=rng, format="csr")
    x = cp.Variable(n)
    b = A @ np.ones(n) + 0.1
    return cp.Problem(cp.Maximize(rng.uniform(0.5, 1.5, n) @ x), [A @ x <= b, x >= 0, x <= 3])


def _transport(n: int, rng: np.random.Generator) -> cp.Problem:
    side = int(np.sqrt(n))
    cost = rng.uniform(size=(side, side))
    X = cp.Variable((side, side), nonneg=True)
    supply = rng.dirichlet(np.ones(side))
    demand = rng.dirichlet(np.ones(side))
    rows = [cp.sum(X, axis=1) == supply, cp.sum(X, axis=0) >= demand - 0.01 / side]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(cost, X))), rows)


def _portfolio(n: int, rng: np.random.Generator) -> cp.Problem:
    factors = max(n // 20, 2)
    F = rng.normal(size=(n, factors)) / np.sqrt(factors)
    D = rng.uniform(0.1, 0.5, n)
    x = cp.Variable(n)
    risk = cp.sum_squares(F.T @ x) + cp.sum_squares(cp.multiply(D, x))
    gain = rng.normal(size=n) * 0.2 @ x
    return cp.Problem(cp.Maximize(gain - risk), [cp.sum(x) == 1, x >= 0])


def _nonnegative_least_squares(n: int, rng: np.random.Generator) -> cp.Problem:
    A = sparse.random_array((2 * n, n), density=10 / n, rng=rng, format="csr")
    x = cp.Variable(n)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - rng.normal(size=2 * n))), [x >= 0])


def _lasso(n: int, rng: np.random.Generator) -> cp.Problem:
    A = rng.normal(size=(n // 2, n)) / np.sqrt(n)
    target = A @ (rng.normal(size=n) * (rng.uniform(size=n) < 0.05)) + 0.1 * rng.normal(size=n // 2)
    x = cp.Variable(n)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - target) + 0.1 * cp.norm1(x)))


def _robust_lp(n: int, rng: np.random.Generator) -> cp.Problem:
    x = cp.Variable(n)
    rows = [x >= -2, x <= 2]
    for _ in range(5):
        a = rng.normal(size=n) / np.sqrt(n)
        S = sparse.diags_array(rng.uniform(0.05, 0.2, n))
        rows.append(a @ x + cp.norm(S @ x) <= 1)
    return cp.Problem(cp.Minimize(rng.normal(size=n) / np.sqrt(n) @ x), rows)


def _huber(n: int, rng: np.random.Generator) -> cp.Problem:
    A = sparse.random_array((n, n // 4), density=min(1.0, 20 / n), rng=rng, format="csr")
    target = A @ rng.normal(size=n // 4) + rng.standard_t(2, n)
    x = cp.Variable(n // 4)
    return cp.Problem(cp.Minimize(cp.sum(cp.huber(A @ x - target))))


def _logistic(n: int, rng: np.random.Generator) -> cp.Problem:
    points = n // 2
    A = rng.normal(size=(points, n // 10))
    sign = np.sign(A @ rng.normal(size=n // 10) + rng.normal(size=points))
    w = cp.Variable(n // 10)
    loss = cp.sum(cp.logistic(-cp.multiply(sign, A @ w))) / points
    return cp.Problem(cp.Minimize(loss + 0.01 * cp.norm1(w)))


def _entropy(n: int, rng: np.random.Generator) -> cp.Problem:
    A = rng.uniform(size=(max(n // 50, 2), n))
    x = cp.Variable(n)
    p = rng.dirichlet(np.ones(n))
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [A @ x == A @ p, cp.sum(x) == 1])


def _nearest_correlation(n: int, rng: np.random.Generator) -> cp.Problem:
    order = int(np.sqrt(2 * n))
    G = rng.uniform(-1, 1, (order, order))
    X = cp.Variable((order, order), PSD=True)
    return cp.Problem(cp.Minimize(cp.norm(X - (G + G.T) / 2, "fro")), [cp.diag(X) == 1])


KINDS = {
    "inequality LP": _inequality_lp,
    "transport LP": _transport,
    "portfolio QP": _portfolio,
    "nonnegative least squares": _nonnegative_least_squares,
    "lasso": _lasso,
    "robust LP": _robust_lp,
    "Huber regression": _huber,
    "logistic regression": _logistic,
    "entropy": _entropy,
    "nearest correlation": _nearest_correlation,
}


def random_programs() -> Iterator[tuple[str, Callable[[], cp.Problem]]]:
    """Yield what makes 50 random programs, by name: 10 kinds, 100 to 2000 variables each."""
    for number, (kind, make) in enumerate(KINDS.items()):
        sizes = np.random.default_rng(number).integers(100, 2001, EACH)
        for n in sorted(sizes.tolist()):
            yield f"{kind} {n}", lambda m=make, n=n, s=number: m(n, np.random.default_rng((n, s)))
