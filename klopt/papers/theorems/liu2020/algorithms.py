"""Algorithms 1 and 2, printed and corrected, and two first-order methods (Liu et al., 2020).

    theta = P(alpha + grad / L),   beta = P(alpha_0 -+ (1/2L) sum_i (i+1) grad_i)
    alpha <- ((t+1) theta + 2 beta) / (t+3)

The paper prints the minus sign, which descends although h is to be maximised. Runs start at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klopt.arrays import FloatArray
from klopt.model.sets import BoxPlane
from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.evidence import Evidence, Interval, at_most, reached
from klopt.papers.theorems.liu2020.quantities import domain, gradient, sharp, solved, value, weights

__all__ = [
    "AcceleratedRun",
    "accelerated",
    "against",
    "alternating",
    "extragradient",
    "nearest",
    "nesterov",
    "paper_constant",
    "projected",
    "stopped",
]

RECORDED_STEPS = 60
"""Steps at which a run is measured, spread evenly on a logarithmic scale."""
MIN_STEP = 1e-12
"""Length below which the extra-gradient method shortens its step no more."""


@dataclass(frozen=True, eq=False)
class AcceleratedRun:
    """The steps t that were recorded and the sequences theta and beta there."""

    steps: list[int]
    theta: list[FloatArray]
    beta: list[FloatArray]


def paper_constant(case: Case) -> float:
    """Return L of Theorem 4."""
    K = case["K"]
    n = len(case["y"])
    quartic = 3 * n * case["C"] ** 2 * np.linalg.norm(K) / (4 * case["eta"])
    return float(np.abs(K).max() * (n + quartic))


def marks(total: int) -> set[int]:
    """Return which of so many steps are recorded."""
    return set(np.unique(np.rint(np.geomspace(1, total, RECORDED_STEPS)).astype(int)) - 1)


def project(within: BoxPlane, v: FloatArray) -> FloatArray:
    """Return the projection of v on the box and plane.

    The projection on the plane alone is cheaper, and is the same wherever it lies in the box.
    """
    if within.normal is None:
        return within.project(v)
    flat = v - (within.normal @ v) / (within.normal @ within.normal) * within.normal
    if (flat >= within.lower).all() and (flat <= within.upper).all():
        return flat
    return within.project(v)


def accelerated(
    gradient: Callable[[FloatArray], FloatArray],
    within: BoxPlane,
    L: float,
    total: int,
    sign: float,
    best: Callable[[FloatArray], float] | None = None,
) -> AcceleratedRun:
    """Return the run of lines 4 to 8.

    With `best` theta is the best of three points, which makes the run monotone.
    """
    start = np.zeros(within.size)
    alpha = start
    gathered = np.zeros(within.size)
    kept = marks(total)
    run = AcceleratedRun([], [], [])
    theta = start
    for t in range(total):
        g = gradient(alpha)
        step = project(within, alpha + g / L)
        theta = step if best is None else max((theta, step, alpha), key=best)
        gathered = gathered + (t + 1) * g
        beta = project(within, start + sign * gathered / (2 * L))
        alpha = (t + 1) / (t + 3) * theta + 2 / (t + 3) * beta
        if t in kept:
            run.steps.append(t)
            run.theta.append(theta)
            run.beta.append(beta)
    return run


def nesterov(case: Case, sign: float, *, monotone: bool = False) -> AcceleratedRun:
    """Return a run of Algorithm 1 with L of Theorem 4."""
    best = (lambda alpha: value(case, alpha)) if monotone else None
    within = domain(case)
    L = paper_constant(case)
    return accelerated(
        lambda alpha: gradient(case, alpha), within, L, int(case["steps"]), sign, best
    )


def against(
    case: Case, steps: list[int], points: list[FloatArray], factor: float, label: str
) -> Evidence:
    """Return the evidence for gap <= factor L |alpha*|^2 / ((t+1)(t+2)) along a run.

    The run starts at alpha_0 = 0.
    """
    best = solved(case)
    reach = factor * paper_constant(case) * float(best.alpha @ best.alpha)
    bounds = [reach / ((t + 1) * (t + 2)) for t in steps]
    return reached([t + 1 for t in steps], gaps(case, best.interval, points), bounds, -2.0, label)


def gaps(case: Case, optimum: Interval, points: list[FloatArray]) -> list[float | Interval]:
    """Return how far the points are from the optimum, as intervals."""
    size = 1 + abs(optimum.upper) + case["eta"] * len(case["y"])
    return [gap(optimum, value(case, point), size) for point in points]


def gap(optimum: Interval, h: float, size: float) -> Interval:
    """Return how far a value is below the optimum; infinite if it is above, which none can be."""
    if h > optimum.upper + 1e-9 * size:
        return Interval(np.inf, np.inf)
    rounding = 1e-13 * size
    return Interval(max(optimum.lower - h - rounding, 0.0), max(optimum.upper - h, 0.0) + rounding)


def projected(case: Case) -> Evidence:
    """Return the evidence for gap <= L |alpha*|^2 / (2t) of projected gradient.

    The step is 1/L with a valid L.
    """
    best = solved(case)
    within = domain(case)
    L = sharp(case)
    alpha = np.zeros(len(case["y"]))
    total = int(case["steps"])
    kept = marks(int(case["steps"]))
    points = []
    for t in range(total):
        alpha = within.project(alpha + gradient(case, alpha) / L)
        if t in kept:
            points.append(alpha)
    steps = sorted(kept)
    bounds = [L * float(best.alpha @ best.alpha) / (2 * (t + 1)) for t in steps]
    return reached([t + 1 for t in steps], gaps(case, best.interval, points), bounds, -1.0, "gap")


def extragradient(case: Case) -> Evidence:
    """Return the evidence for Nemirovski's bound gap <= |z_0 - u|^2 / (2 sum of steps).

    u is alpha* with the best F for the average; a step is halved until it is short enough for the
    operator there.
    """
    best = solved(case)
    within = domain(case)
    y = case["y"]
    K = case["K"]
    alpha = np.zeros(len(y))
    F = np.ones_like(K)
    step = 1.0
    total = int(case["steps"])
    kept = marks(int(case["steps"]))
    mean = np.zeros(len(y))
    length = 0.0
    points = []
    bounds = []
    for t in range(total):
        up, down = _ascent(case, alpha, F)
        step *= 2
        while True:
            x = within.project(alpha + step * up)
            X = _psd(F - step * down)
            up2, down2 = _ascent(case, x, X)
            # The step is short enough where step |G(z') - G(z)| <= |z' - z|.
            moved = np.hypot(np.linalg.norm(x - alpha), np.linalg.norm(X - F))
            changed = np.hypot(np.linalg.norm(up2 - up), np.linalg.norm(down2 - down))
            if step * changed <= moved or step < MIN_STEP:
                break
            step /= 2
        alpha = within.project(alpha + step * up2)
        F = _psd(F - step * down2)
        mean = mean + step * x
        length = length + step
        if t in kept:
            point = mean / length
            away = float(best.alpha @ best.alpha + np.sum((weights(case, y * point) - 1.0) ** 2))
            points.append(point)
            bounds.append(away / (2 * length))
    steps = [t + 1 for t in sorted(kept)]
    return reached(steps, gaps(case, best.interval, points), bounds, -1.0, "gap")


def _ascent(case: Case, alpha: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The derivatives of H by alpha and by F."""
    y = case["y"]
    K = case["K"]
    eta = case["eta"]
    a = y * alpha
    trace = case["tau"] * eta * np.eye(len(y))
    by_F = -np.outer(a, a) * K / 2 + 2 * eta * (F - 1.0) + trace
    return 1.0 - y * ((F * K) @ a), by_F


def _psd(M: FloatArray) -> FloatArray:
    values, Q = np.linalg.eigh(M)
    return np.asarray((Q * np.maximum(values, 0.0)) @ Q.T)


def alternating(case: Case, sweeps: int = 2000) -> FloatArray:
    """Return the limit of alternating projections from `v` on the box and on the plane."""
    v = case["v"]
    y = case["y"]
    C = case["C"]
    for _ in range(sweeps):
        v = np.clip(v, 0.0, C)
        v = v - y @ v / len(y) * y
    return np.asarray(v)


def nearest(case: Case, point: FloatArray) -> Evidence:
    """Return whether `point` is the projection of `v` on A: <v - point, x - point> <= 0 on A."""
    away = case["v"] - point
    within = domain(case)
    farthest = float(away @ within.linear_minimiser(-away))
    entries = np.abs(case["v"])
    size = float(entries.sum()) * (case["C"] + float(entries.max()))
    return at_most(farthest - float(away @ point), 1e-9 * size)


def stopped(case: Case) -> tuple[float, FloatArray]:
    """Return the length of the first step of the corrected Algorithm 1 and where it leads."""
    L = paper_constant(case)
    start = np.zeros(len(case["y"]))
    within = domain(case)
    g = gradient(case, start)
    alpha = within.project(g / L) / 3 + 2 / 3 * within.project(g / (2 * L))
    return float(np.linalg.norm(alpha)), alpha
