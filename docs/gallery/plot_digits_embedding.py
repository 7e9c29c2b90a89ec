"""
Handwritten digits in the plane
===============================

Ten classes in two dimensions are crowded. The plane of PCA has no idea which differences between images matter;
SCG-LDK is told by labels (as Pan et al. 2016 do with USPS in their Figure 2). Only training images need them: the
learned kernel is a function, and all images drawn here are new to it.
"""

# %%
# Learn from the first 800 images
# -------------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from klopt.learners import ScgLDK
from klopt.learners.kernels import rbf

X, y = load_digits(return_X_y=True)
learned = ScgLDK(rbf("scale"), gamma=10.0, n_components=7).fit(X[:800], y[:800])
unseen = X[800:]
truth = y[800:]
print(learned.result_)
print(f"{learned.score(unseen, truth):.1%} of the other images are named right")

# %%
# Draw 500 others
# ---------------
# Each pair of learned features parts some digits from all others, zero first. The very first feature is nearly
# constant, so the pairs begin with the second.

drawn = unseen[:500]
names = truth[:500]
features = learned.transform(drawn)
planes = {
    "PCA": PCA(2).fit(X[:800]).transform(drawn),
    "Learned features 2 and 3": features[:, 1:3],
    "Learned features 4 and 5": features[:, 3:5],
    "Learned features 6 and 7": features[:, 5:7],
}
palette = [
    "#332288", "#0077BB", "#44AA99", "#117733", "#999933", "#BB8800", "#CC6677", "#882255", "#AA4499", "#555555",
]  # fmt: skip
figure, axes = plt.subplots(2, 2, figsize=(7, 6.8), layout="constrained")
for axis, (title, plane) in zip(axes.flat, planes.items(), strict=True):
    for digit, colour in enumerate(palette):
        axis.plot(*plane[names == digit].T, ls="", marker=f"${digit}$", ms=5, mew=0.3, color=colour)
    axis.set(
        title=title, xlabel="first of the two", ylabel="second of the two", xticks=[], yticks=[]
    )
plt.show()
