"""Regression, its algorithm and the test function of sections 5 and 6 (Liu et al., 2020).

`up` and `down` are the two vectors of multipliers, beta = up - down, and with F the best one

    h(up, down) = beta'y - epsilon 1'(up + down) - beta'(F o K)beta / 2 + eta |F - 11'|^2 + tau eta tr F.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.errors import InvalidSettings
from klopt.model.sets import BoxPlane
from klopt.papers.theorems.cases import ball
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every, reached
from klopt.papers.theorems.liu2020.algorithms import accelerated, gap
from klopt.papers.theorems.liu2020.quantities import exact_value, lagrangian, sharp, weights
from klopt.problems import AdaptiveKernelRegression

__all__ = [
    "algorithm2",
    "constant10",
    "direct_optimum",
    "exact_constraint",
    "exact_gradient",
    "exact_step",
    "gradient",
    "halves",
    "optimum",
    "optimum_is_attained",
    "same_gradient",
    "step_function",
    "value",
]


def value(case: Case, up: FloatArray, down: FloatArray) -> float:
    """Return h(up, down)."""
    beta = up - down
    gain = float(beta @ case["y"] - case["epsilon"] * (up + down).sum())
    return lagrangian(case, beta, weights(case, beta), gain)


def gradient(case: Case, x: FloatArray) -> FloatArray:
    """Return the two halves of the gradient of h at x = (up, down).

    The second has its sign corrected.
    """
    n = len(case["y"])
    beta = x[:n] - x[n:]
    rest = case["y"] - (weights(case, beta) * case["K"]) @ beta
    return np.asarray(np.concatenate([rest, -rest]) - case["epsilon"])


def halves(case: Case) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of h by `up` and by `down`."""
    n = len(case["y"])
    both = gradient(case, np.concatenate([case["up"], case["down"]]))
    return both[:n], both[n:]


def constant10(case: Case) -> float:
    """Return 2 L of Theorem 10."""
    K = case["K"]
    n = len(case["y"])
    quartic = 9 * n * case["C"] ** 2 * np.linalg.norm(K) / (4 * case["eta"])
    return float(4 * np.abs(K).max() * (n + quartic))


def derivative_along(case: Case, side: str) -> FloatArray:
    """Return the derivatives of h by `up` or `down`, by differences."""
    n = len(case["y"])
    out = []
    for i in range(n):
        e = np.zeros(n)
        e[i] = 1e-5 * case["C"]
        below, above = ({**case, side: case[side] + sign * e} for sign in (-1, 1))
        ends = [value(at, at["up"], at["down"]) for at in (below, above)]
        out.append((ends[1] - ends[0]) / (2 * e[i]))
    return np.array(out)


def same_gradient(case: Case, side: str, gradient: FloatArray) -> Evidence:
    """Return whether that is the derivative, by differences.

    With tau the second derivative jumps, which differences show.
    """
    return equal(
        derivative_along(case, side), gradient, tol=1e-4, scale=1 + sharp(case) * case["C"]
    )


def exact_gradient(case: Case) -> tuple[Any, Any]:
    """Return |printed - true derivative by `down`| and 0, in fractions, without tau.

    h is a quartic, and for those the difference of five points is exact.
    """
    if case["tau"]:
        raise InvalidSettings("decided exactly for tau = 0 only")
    up = case["up"]
    down = case["down"]
    y = case["y"]
    K = case["K"]
    n = len(case["y"])
    beta = [up[i] - down[i] for i in range(n)]
    F = [[1 + beta[i] * beta[j] * K[i, j] / (4 * case["eta"]) for j in range(n)] for i in range(n)]
    fitted = sum(F[0][j] * K[0, j] * beta[j] for j in range(n))
    printed = -case["epsilon"] - fitted - y[0]

    def h(step: int) -> Any:
        moved = [beta[i] - step * (i == 0) for i in range(n)]
        fit = sum(moved[i] * y[i] for i in range(n))
        tube = case["epsilon"] * (sum(up) + sum(down) + step)
        return exact_value(case, moved, fit - tube)

    derivative = (h(-2) - 8 * h(-1) + 8 * h(1) - h(2)) / 12
    return abs(printed - derivative), 0


def exact_constraint(case: Case) -> tuple[Any, Any]:
    """Return h at the case's point and the optimum under the printed constraint.

    At that point 1'beta = 0; tau is 0.

    With beta'y = 0 nothing is left to gain, every other term is negative, and 0 is the best there
    is.
    """
    up = case["up"]
    down = case["down"]
    y = case["y"]
    n = len(case["y"])
    beta = [up[i] - down[i] for i in range(n)]
    if case["tau"] or sum(beta):
        raise InvalidSettings("decided exactly for tau = 0 and 1'(up - down) = 0 only")
    gain = sum(beta[i] * y[i] for i in range(n)) - case["epsilon"] * (sum(up) + sum(down))
    return exact_value(case, beta, gain), exact_value(case, [0 * b for b in beta], 0)


def step_function(case: Case) -> float:
    """Return g at a quarter of the first period."""
    a = case["a"]
    return float(case["s"] * (np.tanh(a / 4 - a / 2) / (2 * np.tanh(a / 2)) + 0.5))


def exact_step(case: Case) -> Any:
    """Return g / s there as a ball."""
    a = ball(case["a"])
    return (-a / 4).tanh() / (2 * (a / 2).tanh()) + ball(1) / 2


def optimum(case: Case) -> tuple[Interval, FloatArray]:
    """Return the optimum of (22) under 1'beta = 0, and beta there."""
    K = case["K"]
    y = case["y"]
    C = case["C"]
    epsilon = case["epsilon"]
    result = solve(AdaptiveKernelRegression(K, y, C, epsilon, case["eta"], case["tau"]), tol=1e-9)
    assert result.point is not None
    return Interval(result.lower, result.upper), result.point.beta


def direct_optimum(case: Case) -> float:
    """Return the largest h(up, down) under 1'(up - down) = 0, by sequential quadratic programming.

    It rests on the formulas of `value` and `gradient` alone.
    """
    from scipy.optimize import LinearConstraint, minimize

    n = len(case["y"])
    balance = np.repeat([1.0, -1.0], n)

    def negative(x: FloatArray) -> tuple[float, FloatArray]:
        return -value(case, x[:n], x[n:]), -gradient(case, x)

    found = minimize(
        negative,
        np.zeros(2 * n),
        jac=True,
        bounds=[(0.0, float(case["C"]))] * (2 * n),
        constraints=LinearConstraint(balance[None], 0.0, 0.0),
        method="SLSQP",
        tol=1e-14,
    )
    return -float(found.fun)


def optimum_is_attained(case: Case) -> Evidence:
    """Return whether klopt's interval for (22) is where a general method ends."""
    best, _ = optimum(case)
    found = direct_optimum(case)
    # The terms of the penalty are of the size of eta before they cancel.
    near = 1e-7 * (1 + abs(best.upper) + case["eta"])
    return every([at_most(best.upper - found, near), at_most(found - best.lower, near)])


def algorithm2(case: Case, sign: float) -> Evidence:
    """Return the evidence for the rate of Algorithm 1 of the corrected Algorithm 2."""
    n = len(case["y"])
    total = int(case["steps"])
    (best, beta) = optimum(case)
    normal = np.repeat([1.0, -1.0], n)
    within = BoxPlane(np.zeros(2 * n), np.full(2 * n, case["C"]), normal)
    L = constant10(case)
    run = accelerated(lambda x: gradient(case, x), within, L, total, sign)
    found = [value(case, x[:n], x[n:]) for x in run.theta]
    size = 1 + abs(best.upper) + case["eta"] * n
    gaps: list[float | Interval] = [gap(best, h, size) for h in found]
    bounds = [8 * L * float(beta @ beta) / ((t + 1) * (t + 2)) for t in run.steps]
    return reached([t + 1 for t in run.steps], gaps, bounds, -2.0, "gap")
