"""The value h, the best F, gradients and optima that the claims measure (Liu et al., 2020).

    H(alpha, F) = 1'alpha - a'(F o K)a / 2 + eta |F - 11'|^2 + tau eta tr F        a = Y alpha
    h(alpha)    = min over psd F of H,  attained at F = (11' + Gamma - (tau/2) I)_+,  Gamma = D_a K D_a / (4 eta)

A case has K, y, C, eta, tau and, where a claim speaks of them, points `alpha`, `other`. `bias` asks
for y'alpha = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from klopt.arrays import FloatArray
from klopt.engine.pipeline import solve
from klopt.kernels.gram import Gram
from klopt.model.problem import Point
from klopt.model.sets import BoxPlane
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, equal, every
from klopt.problems import QCQP, AdaptiveKernel, SoftMargin

__all__ = [
    "AdaptiveOptimum",
    "domain",
    "exact_gradient",
    "exact_value",
    "feasible",
    "gamma",
    "gradient",
    "lagrangian",
    "primal_svm",
    "problem",
    "random_matrices",
    "random_problem",
    "random_psd",
    "random_regression",
    "sharp",
    "solved",
    "svm",
    "thresholded",
    "value",
    "weights",
]


def random_psd(rng: np.random.Generator, n: int) -> FloatArray:
    """Return a psd matrix, of full rank or not."""
    B = rng.normal(size=(n, int(rng.integers(1, n + 1))))
    return np.asarray(B @ B.T)


def random_problem(rng: np.random.Generator, n: int) -> Case:
    """Return a problem (4) with two feasible points.

    K is Gaussian or any psd matrix; tau is 0 in half of the draws.
    """
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + y[:, None] / 2
    K = (
        np.exp(-np.square(X[:, None] - X).sum(axis=2) / 2)
        if rng.random() < 0.5
        else random_psd(rng, n)
    )
    C, eta = np.exp(rng.normal(size=2))
    case = {
        "K": K,
        "y": y,
        "C": float(C),
        "eta": float(eta),
        "tau": float(rng.choice([0.0, 0.5 * rng.random()])),
    }
    case["alpha"] = feasible(case, C * rng.random(n))
    # Lipschitz constants are tight between points that are close.
    step = rng.normal(size=n) * float(rng.choice([1.0, 0.01]))
    case["other"] = feasible(case, case["alpha"] + C * step)
    return case


def random_matrices(rng: np.random.Generator, n: int) -> Case:
    """Return symmetric matrices A and B, psd matrices K and F, and vectors x and z.

    All entries are small integers.
    """
    rank = max(n // 2, 1)
    A, B = (M + M.T for M in rng.integers(-2, 3, size=(2, n, n)).astype(float))
    U, V = (rng.integers(-2, 3, size=(n, rank)).astype(float) for _ in range(2))
    x, z = rng.integers(-3, 4, size=(2, n)).astype(float)
    return {"A": A, "B": B, "K": U @ U.T, "F": V @ V.T, "x": x, "z": z}


def random_regression(rng: np.random.Generator, n: int) -> Case:
    """Return a problem (22) with two points (up, down), each between 0 and C."""
    case = random_problem(rng, n)
    up, down, up2, down2 = case["C"] * rng.random((4, n))
    more = {
        "y": rng.normal(size=n),
        "epsilon": 0.1,
        "up": up,
        "down": down,
        "up2": up2,
        "down2": down2,
    }
    return {**case, **more}


def domain(case: Case) -> BoxPlane:
    """Return the set A."""
    n = len(case["y"])
    return BoxPlane(
        np.zeros(n), np.full(n, case["C"]), case["y"] if case.get("bias", True) else None
    )


def feasible(case: Case, v: FloatArray) -> FloatArray:
    """Return the point of A nearest to v."""
    return domain(case).project(v)


def gamma(case: Case, a: FloatArray) -> FloatArray:
    """Return D_a K D_a / (4 eta)."""
    return np.asarray(np.outer(a, a) * case["K"] / (4 * case["eta"]))


def weights(case: Case, a: FloatArray) -> FloatArray:
    """Return the best F: the positive part of 11' + Gamma - (tau/2) I, for a psd K."""
    if not case["tau"]:
        return 1.0 + gamma(case, a)
    values, Q = np.linalg.eigh(1.0 + gamma(case, a))
    return np.asarray((Q * np.maximum(values - case["tau"] / 2, 0.0)) @ Q.T)


def thresholded(M: FloatArray, level: float) -> FloatArray:
    """Return J_level(M): singular values less the level, as printed."""
    U, s, V = np.linalg.svd(M)
    return np.asarray((U * np.maximum(s - level, 0.0)) @ V)


def lagrangian(case: Case, a: FloatArray, F: FloatArray, gain: float) -> float:
    """Return H for coefficients a with the linear term `gain`."""
    penalty = case["eta"] * (np.sum((F - 1.0) ** 2) + case["tau"] * np.trace(F))
    return float(gain - a @ (F * case["K"]) @ a / 2 + penalty)


def value(case: Case, alpha: FloatArray) -> float:
    """Return h(alpha)."""
    a = case["y"] * alpha
    return lagrangian(case, a, weights(case, a), float(alpha.sum()))


def gradient(case: Case, alpha: FloatArray) -> FloatArray:
    """Return (26)."""
    a = case["y"] * alpha
    return np.asarray(1.0 - case["y"] * ((weights(case, a) * case["K"]) @ a))


def sharp(case: Case) -> float:
    """Return a Lipschitz constant of the gradient on |a_i| <= C that is nearly attained."""
    K = case["K"]
    C = case["C"]
    eta = case["eta"]
    squares = K * K
    quadratic = np.linalg.eigvalsh(K)[-1]
    quartic = C * C / (4 * eta) * np.linalg.eigvalsh(squares)[-1]
    diagonal = C * C / (2 * eta) * squares.sum(axis=1).max()
    return float(quadratic + quartic + diagonal)


class AdaptiveOptimum(NamedTuple):
    """klopt's interval for the optimum of (4) or (18), and where it is attained."""

    interval: Interval
    alpha: FloatArray
    F: FloatArray


def problem(case: Case) -> AdaptiveKernel:
    """Return klopt's problem."""
    return AdaptiveKernel(
        case["K"], case["y"], case["C"], case["eta"], case["tau"], case.get("bias", True)
    )


def solved(case: Case, tol: float = 1e-9) -> AdaptiveOptimum:
    """Return the optimum of (4); with `bias` False of (18)."""
    declared = problem(case)
    result = solve(declared, tol=tol)
    assert result.point is not None
    return AdaptiveOptimum(
        Interval(result.lower, result.upper), result.point.alpha, declared.weights(result.point)
    )


def svm(case: Case, K: FloatArray) -> tuple[Interval, float]:
    """Return the optimum of the support vector machine (2) with kernel K, and |w|^2 there."""
    result = solve(SoftMargin(Gram.of(K), case["y"], case["C"]), tol=1e-9)
    assert result.point is not None
    a = case["y"] * result.point.alpha
    return Interval(result.lower, result.upper), float(a @ K @ a)


def primal_svm(case: Case) -> Interval:
    """Return the optimum of the support vector machine (1), in features of which K is the Gram matrix.

    The variables are w, b and the slacks.
    """
    n = len(case["y"])
    values, vectors = np.linalg.eigh(case["K"])
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    margins = case["y"][:, None] * np.hstack([features, np.ones((n, 1))])
    program = QCQP(
        np.diag(np.repeat([1.0, 0.0], [n, n + 1])),
        np.concatenate([np.zeros(n + 1), np.full(n, case["C"])]),
        A_ub=-np.hstack([margins, np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * (n + 1) + [(0.0, None)] * n,
    )
    result = solve(program, tol=1e-8)
    return Interval(result.lower, result.upper)


def best_weights(case: Case) -> Evidence:
    """Return whether J_{tau/2}(11' + Gamma) minimises (9), by its optimality conditions.

    klopt's F is compared with it.
    """
    a = case["y"] * case["alpha"]
    F = thresholded(1.0 + gamma(case, a), case["tau"] / 2)
    own = problem(case).weights(Point({"alpha": case["alpha"]}))
    # F minimises |F - M|^2 + tau tr F over psd F exactly if R = F - M + (tau/2) I is psd and <R, F>
    # = 0.
    R = F - 1.0 - gamma(case, a) + case["tau"] / 2 * np.eye(len(F))
    size = float(np.linalg.norm(F)) + len(F)
    least = float(min(np.linalg.eigvalsh(R)[0], np.linalg.eigvalsh(F)[0]))
    complementary = abs(float(np.sum(R * F)))
    return every(
        [
            equal(F, own, tol=1e-9, scale=1.0),
            at_most(-least, 1e-10 * size),
            at_most(complementary, 1e-10 * size * size),
        ]
    )


def gradients_agree(case: Case) -> Evidence:
    """Return whether (26) is the gradient of h.

    h lies below its tangents, and central differences agree with them.
    """
    alpha = case["alpha"]
    other = case["other"]
    g = gradient(case, alpha)
    step = other - alpha
    middle = (value(case, alpha) + value(case, other)) / 2
    size = 1 + abs(value(case, alpha)) + abs(value(case, other)) + case["eta"] * len(alpha) ** 2
    h = 1e-4 / (1 + float(np.linalg.norm(step)))
    measured = (value(case, alpha + h * step) - value(case, alpha - h * step)) / (2 * h)
    return every(
        [
            at_most(middle - value(case, (alpha + other) / 2), 1e-12 * size),
            at_most(value(case, other) - value(case, alpha) - float(g @ step), 1e-12 * size),
            equal(measured, g @ step, tol=1e-5, scale=size),
        ]
    )


def closed_forms(case: Case) -> Evidence:
    """Return whether h = 1'alpha + eta n^2 - eta |M_+|^2, a quartic for tau = 0.

    klopt's lower bound is compared with it.
    """
    alpha = case["alpha"]
    a = case["y"] * alpha
    n = len(alpha)
    eta = case["eta"]
    direct = value(case, alpha)
    F = weights(case, a)
    size = 1 + eta * n * n + abs(direct)
    u = alpha * alpha
    quartic = alpha.sum() - a @ case["K"] @ a / 2 - u @ (case["K"] ** 2) @ u / (16 * eta)
    bound = problem(case).bracket(Point({"alpha": alpha})).lower
    return every(
        [
            equal(direct, alpha.sum() + eta * n * n - eta * np.sum(F * F), tol=1e-12, scale=size),
            equal(value({**case, "tau": 0.0}, alpha), quartic, tol=1e-12, scale=size),
            equal(direct, bound, tol=1e-9, scale=size),
        ]
    )


def exact_value(case: Case, a: Any, gain: Any) -> Any:
    """Return h for tau = 0, the quartic, in the arithmetic of a and the case."""
    points = range(len(a))
    K = case["K"]
    eta = case["eta"]
    square = sum(a[i] * a[j] * K[i, j] for i in points for j in points)
    fourth = sum((a[i] * a[j] * K[i, j]) ** 2 for i in points for j in points)
    return gain - square / 2 - fourth / (16 * eta)


def exact_gradient(case: Case, alpha: Any) -> list[Any]:
    """Return (26) for tau = 0, where F = 11' + Gamma, in the arithmetic of alpha and the case."""
    y = case["y"]
    K = case["K"]
    eta = case["eta"]
    points = range(len(alpha))
    a = [y[i] * alpha[i] for i in points]

    def weight(i: int, j: int) -> Any:
        return 1 + a[i] * a[j] * K[i, j] / (4 * eta)

    return [1 - y[i] * sum(weight(i, j) * K[i, j] * a[j] for j in points) for i in points]
