"""
Who is fast, and who is right?
==============================

One support vector machine, every backend that can solve it, one tolerance. Each run is a child process of its own; what
counts as accuracy is not what a backend reports but the width of the interval that klopt proves around the optimum.
"""

# %%
# The comparison
# --------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import klopt

X, kind = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
X = X[:200]
y = np.where(kind[:200] == 1, 1.0, -1.0)
K = np.exp(-((X[:, None] - X) ** 2).mean(axis=2))

problem = klopt.problems.SoftMargin(K, y, C=1.0)
backends = ["libsvm", "active_set", "highs", "scs", "nesterov"]
comparison = klopt.compare(problem, backends, repeat=1, time_limit=20, progress=False)
print(comparison.table())

# %%
# Time against accuracy
# ---------------------
# Below the line an answer is as good as was asked for. Filled marks are certified.

plt.style.use("tableau-colorblind10")
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for number, run in enumerate(sorted(comparison.runs, key=lambda run: run.seconds)):
    width = max((run.upper - run.lower) / (1 + abs(run.upper)), 1e-16)
    fill = "C0" if run.verdict.conclusive else "none"
    axis.plot(run.seconds, width, "o", ms=9, mfc=fill, mec="C0")
    place = {
        "xytext": (0, 10 if number % 2 else -18),
        "textcoords": "offset points",
        "ha": "center",
    }
    axis.annotate(run.backend, (run.seconds, width), **place)
axis.axhline(1e-6, color="C1", ls="--")
axis.text(0.99, 1.5e-6, "asked for", color="C5", ha="right", transform=axis.get_yaxis_transform())
axis.set(xscale="log", yscale="log", title=problem.describe())
axis.set(xlabel="seconds: build, solve and certify", ylabel="relative width of the proven interval")
axis.margins(0.12)
plt.show()
