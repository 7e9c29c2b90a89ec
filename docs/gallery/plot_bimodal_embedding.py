"""
Two classes with two centres each
=================================

Each class is a mixture of two Gaussians, placed crosswise, so that no line separates them (Pan et al. 2016, Figure 1).
A Gaussian kernel shows what is near to what: it draws the centres, not the classes. SCG-LDK learns the kernel nearest
to it, in LogDet divergence, that is smooth on the graph of the labels.
"""

# %%
# Four clouds of 50 points; opposite clouds have the same label.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from klopt.errors import UnhelpfulKernel
from klopt.learners import ScgLDK
from klopt.learners.kernels import rbf

rng = np.random.default_rng(0)
centres = np.repeat([[-2, -2], [2, 2], [-2, 2], [2, -2]], 50, axis=0)
X, new = (centres + rng.normal(scale=0.8, size=(200, 2)) for _ in range(2))
y = np.repeat([0, 0, 1, 1], 50)

# %%
# Before and after
# ----------------
# The axes are those of kernel PCA; the first, which is nearly constant, is left out. With next to no weight on the
# labels (``gamma``) the learned kernel is the given one, of which klopt warns.

warnings.simplefilter("ignore", UnhelpfulKernel)

given = ScgLDK(rbf(0.1), gamma=1e-9, n_components=3).fit(X, y)
learned = ScgLDK(rbf(0.1), gamma=10.0, n_components=3).fit(X, y)
print(learned.result_)

# %%
# The second feature, the widest, now tells the classes; which cloud of its class a point is from is left to the third,
# half as wide. The learned kernel is a function: the last picture has new points, whose labels it never saw.

right = learned.score(new, y)
panels = [
    ("The points", X, "coordinate"),
    ("Given kernel", given.transform(X)[:, 1:], "feature"),
    ("Learned kernel", learned.transform(X)[:, 1:], "feature"),
    (f"New points: {right:.0%} right", learned.transform(new)[:, 1:], "feature"),
]
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(2, 2, figsize=(7, 6.6), layout="constrained")
for axis, (title, points, word) in zip(axes.flat, panels, strict=True):
    for label, marker in ((0, "o"), (1, "^")):
        axis.plot(*points[y == label].T, marker, ms=4, alpha=0.7, label=f"class {label}")
    names = ("first", "second") if word == "coordinate" else ("second", "third")
    axis.set(title=title, xlabel=f"{names[0]} {word}", ylabel=f"{names[1]} {word}")
    axis.axis("equal")
    axis.locator_params(nbins=4)
figure.get_layout_engine().set(w_pad=0.15)
figure.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
)
plt.show()
