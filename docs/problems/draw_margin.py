"""Draw how the proven interval closes: an accelerated gradient method on a support vector machine.

python docs/problems/draw_margin.py [FOLDER] [svg|png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from look import BLUE, GREY, ORANGE, STYLE
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel

import klopt


def main(folder: str = "docs/problems", kind: str = "svg") -> None:
    """Solve and draw."""
    X, target = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:200]
    problem = klopt.problems.SoftMargin(rbf_kernel(X, gamma=1 / 30), 2.0 * target[:200] - 1, C=1.0)
    steps = [
        s
        for s in klopt.solve(problem, "nesterov", tol=1e-7).require().history
        if np.isfinite(s.lower + s.upper)
    ]
    best = klopt.solve(problem, tol=1e-11).value
    k = [step.iteration for step in steps]
    with mpl.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2))
        left.plot(
            k, [step.upper for step in steps], ".-", color=ORANGE, label="upper: a classifier"
        )
        left.plot(k, [step.lower for step in steps], ".-", color=BLUE, label="lower: a dual point")
        left.axhline(best, color=GREY, linewidth=0.8)
        left.set(
            xlabel="iteration", ylabel="objective", xlim=(0, 40), ylim=(0.6 * best, 1.5 * best)
        )
        left.legend()
        right.semilogy(
            k, [(s.upper - s.lower) / (1 + abs(s.upper)) for s in steps], ".-", color=BLUE
        )
        right.axhline(1e-6, color=GREY, linewidth=0.8)
        right.text(0, 1e-6, " tol", color=GREY, va="bottom")
        right.set(xlabel="iteration", ylabel="relative gap")
        figure.tight_layout()
        figure.savefig(
            Path(folder) / f"margin.{kind}", metadata={"Date": None} if kind == "svg" else None
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
