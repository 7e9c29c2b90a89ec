"""Draw the picture of the nu-SVM: margin errors and support vectors over nu.

python docs/problems/draw_nu.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from look import BLUE, GREY, ORANGE, STYLE
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel

import klopt


def main() -> None:
    """Solve for several nu and draw both fractions."""
    X, target = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    K = klopt.Gram.of(rbf_kernel(X, gamma=1 / 30))
    y = np.where(target == 1, 1.0, -1.0)
    shares = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    errors = []
    supports = []
    for nu in shares:
        point = klopt.solve(klopt.problems.NuMargin(K, y, nu=nu)).require().point
        margins = y * (np.asarray(K.matrix) @ (y * point.alpha) + point.bias)
        errors.append(np.mean(margins < point.rho - 1e-9))
        supports.append(np.mean(point.alpha > 1e-9))
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
        ax.plot(shares, supports, "o-", color=BLUE, label="support vectors")
        ax.plot(shares, shares, color=GREY, label=r"$\nu$")
        ax.plot(shares, errors, "o-", color=ORANGE, label="margin errors")
        ax.set(xlabel=r"$\nu$", ylabel="fraction of the points")
        ax.legend()
        figure.savefig(Path(__file__).with_name("nu-margin.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
