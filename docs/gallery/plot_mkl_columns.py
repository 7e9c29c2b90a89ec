"""
Which group of columns matters?
===============================

Multiple kernel learning gives each kernel a weight. With one kernel for each group of columns the weights say which
measurements a decision needs. Every fit comes with a certificate: no other weights improve the
objective by more than 1e-6.
"""

# %%
# Wine, by groups of measurements
# -------------------------------
# A few columns of noise are added, which ought to get no weight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from klopt.learners import MklSVC
from klopt.learners.kernels import rbf

data = load_wine()
noise = np.random.default_rng(0).normal(size=(len(data.target), 4))
X = StandardScaler().fit_transform(np.hstack([data.data, noise]))
groups = {
    "alcohol and acid": [0, 1],
    "minerals": [2, 3, 4],
    "phenols": [5, 6, 7, 8],
    "colour": [9, 10, 11],
    "proline": [12],
    "noise": [13, 14, 15, 16],
}
kernels = [rbf("scale", columns=columns) for columns in groups.values()]

# %%
# Sparse or not
# -------------
# The norm says how evenly the weights are shared: "block-l1" uses few kernels, and at 2 all weights would be the same.

learners = {norm: MklSVC(kernels, norm=norm).fit(X, data.target) for norm in ("block-l1", 1.1, 1.5)}
for norm, learner in learners.items():
    print(norm, [result.verdict.name for result in learner.results_])

# %%
# One column for each binary problem: each class against each other.

duels = ["0, 1", "0, 2", "1, 2"]
figure, axes = plt.subplots(1, 3, figsize=(7, 3.6), sharey=True, layout="constrained")
for axis, (norm, learner) in zip(axes, learners.items(), strict=True):
    share = (learner.weights_ / learner.weights_.sum(axis=1, keepdims=True)).T
    shown = axis.imshow(share, cmap="cividis", vmin=0, vmax=0.6, aspect="auto")
    for (row, column), value in np.ndenumerate(share):
        axis.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="black" if value > 0.35 else "white",
        )
    axis.set_xticks(range(3), duels)
    axis.set_yticks(range(len(groups)), groups)
    axis.set_title(f"norm {norm}", size=11)
axes[0].set(ylabel="kernel of the columns")
figure.supxlabel("the two classes of a binary problem", size=10)
figure.colorbar(shown, ax=axes, label="share of the weights")
plt.show()
