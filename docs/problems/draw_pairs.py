"""Draw what LogDet learning does to distances: breast cancer, all pairs of 40 labels.

python docs/problems/draw_pairs.py [FOLDER] [svg|png]
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

import klopt
from klopt.problems._logdet.constraints import squared_distances as distances


def main(folder: str = "docs/problems", kind: str = "svg") -> None:
    """Solve and draw."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    known = np.random.default_rng(0).permutation(len(X))[:40]
    X = X[known]
    y = y[known]
    K0 = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 30)
    i, j = np.triu_indices(40, 1)
    same = y[i] == y[j]
    pairs = np.column_stack((i, j))
    before = distances(K0, i, j)
    near, far = np.percentile(before, [10, 90])
    problem = klopt.problems.LogDetPairs(K0, pairs[same], pairs[~same], near, far)
    after = distances(klopt.solve(problem, tol=1e-8).require().kernel, i, j)
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.2, 3.4))
        for chosen, name, colour in ((same, "similar", BLUE), (~same, "dissimilar", ORANGE)):
            ax.plot(before[chosen], after[chosen], ".", markersize=3.5, color=colour, label=name)
        for level, name in ((near, "upper"), (far, "lower")):
            ax.axhline(level, color=GREY, linewidth=0.8)
            ax.text(0.0, level, f"{name} ", color=GREY, va="bottom", ha="left")
        ax.set(
            xlabel="squared distance under K0",
            ylabel="under the learned K",
            xlim=(0, None),
            ylim=(0, None),
        )
        ax.legend(loc="upper left", markerscale=4)
        figure.tight_layout()
        figure.savefig(
            Path(folder) / f"logdet-pairs.{kind}",
            metadata={"Date": None} if kind == "svg" else None,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
