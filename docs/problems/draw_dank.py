"""Draw how fast each method for data-adaptive kernels closes the gap, with the proven bound.

    python docs/problems/draw_dank.py [FOLDER] [svg|png]

60 points of two classes, C = 1, eta for a deviation of 0.1. The published methods start at zero,
with one constant L; the two backends start where they do without a hint, Newton at the minimiser of
its rough model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from look import BLUE, GREEN, GREY, ORANGE, RED, STYLE

import klopt
from klopt.model.sets import BoxPlane
from klopt.problems import AdaptiveKernel

STEPS = 400


def problem() -> AdaptiveKernel:
    """Two Gaussian classes in three dimensions."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(60, 3)) + 0.4 * y[:, None]
    return AdaptiveKernel(np.exp(-np.square(X[:, None] - X).sum(axis=2) / 3), y, 1.0)


def gradient(p: AdaptiveKernel, a: np.ndarray) -> np.ndarray:
    """The gradient of h."""
    return p.y - p.machine.function.at(a).product


def value(p: AdaptiveKernel, a: np.ndarray) -> float:
    """h."""
    return float(p.y @ a) - p.machine.function.at(a).value


def projected_gradient(p: AdaptiveKernel, domain: BoxPlane, L: float) -> Iterator[np.ndarray]:
    """Steps of 1 / L."""
    a = np.zeros(p.y.size)
    while True:
        yield a
        a = domain.project(a + gradient(p, a) / L)


def accelerated(p: AdaptiveKernel, domain: BoxPlane, L: float, sign: float) -> Iterator[np.ndarray]:
    """Algorithm 1 with the sign of its line 7; the proof is for theta."""
    start = beta = theta = np.zeros(p.y.size)
    total = np.zeros(p.y.size)
    t = 0
    while True:
        a = 2 / (t + 3) * beta + (t + 1) / (t + 3) * theta if t else start
        g = gradient(p, a)
        theta = domain.project(a + g / L)
        total += (t + 1) / 2 * g
        beta = domain.project(start + sign * total / L)
        t += 1
        yield theta


def main() -> None:
    """Write adaptive-kernel.svg."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    kind = sys.argv[2] if len(sys.argv) > 2 else "svg"
    p = problem()
    best = klopt.solve(p, tol=1e-13, backend="newton")
    domain = p.machine.domain()
    L = p.machine.function.lipschitz(1.0)
    runs = (
        ("projected gradient", GREY, projected_gradient(p, domain, L)),
        ("Nesterov as printed (sign -)", RED, accelerated(p, domain, L, -1.0)),
        ("Nesterov, corrected", ORANGE, accelerated(p, domain, L, 1.0)),
    )
    mpl.rcParams.update(STYLE)
    figure, ax = plt.subplots(figsize=(8.2, 3.8))
    steps = np.arange(1, STEPS + 1)
    for name, colour, iterates in runs:
        gaps = [best.upper - value(p, a) for a, _ in zip(iterates, steps, strict=False)]
        ax.semilogy(steps, np.maximum(gaps, 1e-11), color=colour, label=name)
    distance = float(np.square(best.point.alpha).sum())
    ax.semilogy(
        steps,
        2 * L * distance / (steps * (steps + 1.0)),
        ":",
        color=ORANGE,
        label="its proven bound",
    )
    for name, colour, backend in (
        ("restarted (nesterov)", BLUE, "nesterov"),
        ("Newton (newton)", GREEN, "newton"),
    ):
        history = klopt.solve(p, backend, tol=1e-11).history
        gaps = [max(best.upper - step.lower, 1e-11) for step in history]
        ax.semilogy([step.iteration + 1 for step in history], gaps, ".-", color=colour, label=name)
    ax.set(xlabel="iteration", ylabel="h* - h", xscale="log", ylim=(5e-12, 1e3))
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    figure.savefig(
        folder / f"adaptive-kernel.{kind}", metadata={"Date": None} if kind == "svg" else None
    )


if __name__ == "__main__":
    main()
