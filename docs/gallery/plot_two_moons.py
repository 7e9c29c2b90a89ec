"""
Two moons, ten labels
=====================

From five labels for each class a support vector machine with a Gaussian kernel misses much of the moons.
A spectral kernel on the graph of all points, labelled or not, follows them. With
kernel alignment SKL has neither C nor mu to choose.
"""

# %%
# Draw labels, learn, repeat
# --------------------------
# SKL learns from all points and ten labels; the support vector machine from ten points. The width of the
# one and the ridge of the other were set by hand, for ten labels are too few to tune anything.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from klopt.learners import SKL

X, y = make_moons(300, noise=0.06, random_state=0)


def classifiers(seed):
    """Return the labelled points that were drawn, and both classifiers."""
    rng = np.random.default_rng(seed)
    known = np.concatenate(
        [rng.choice(np.flatnonzero(y == label), 5, replace=False) for label in (0, 1)]
    )
    few = np.full(len(y), -1)
    few[known] = y[known]
    plain = SVC(C=10.0, gamma=2.0).fit(X[known], y[known])
    return known, {"SVM": plain, "SKL": SKL(n_neighbors=10).fit(X, few)}


draws = [classifiers(seed)[1] for seed in range(10)]
mean = {
    name: np.mean([np.mean(draw[name].predict(X) == y) for draw in draws])
    for name in ("SVM", "SKL")
}
print(draws[0]["SKL"].result_)

# %%
# The first of the ten draws. The colour is the decision value, each scaled to its largest; the line is where it
# changes sign.

known, fitted = classifiers(0)
across, up = np.meshgrid(np.linspace(-1.4, 2.4, 120), np.linspace(-0.9, 1.4, 80))
grid = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(2, 1, figsize=(7, 7.2), sharex=True, layout="constrained")
for axis, (name, classifier) in zip(axes, fitted.items(), strict=True):
    height = classifier.decision_function(grid).reshape(across.shape)
    shown = axis.pcolormesh(across, up, height / np.abs(height).max(), cmap="PuOr", vmin=-1, vmax=1)
    axis.contour(across, up, height, levels=[0], colors="black")
    for label, marker in ((0, "o"), (1, "^")):
        own = known[y[known] == label]
        axis.plot(*X[y == label].T, marker, color="0.3", ms=4, mfc="none", label=f"class {label}")
        axis.plot(*X[own].T, marker, color="black", ms=11, mec="white", label=f"labelled {label}")
    right = np.mean(classifier.predict(X) == y)
    axis.set(
        title=f"{name}: {right:.1%} right, {mean[name]:.1%} in the mean of ten draws",
        ylabel="second coordinate",
    )
axes[1].set(xlabel="first coordinate")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
)
figure.colorbar(shown, ax=axes, label="decision value", shrink=0.6)
plt.show()
