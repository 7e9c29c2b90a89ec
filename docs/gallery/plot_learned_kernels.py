"""
What a learned kernel matrix looks like
=======================================

Points sorted by class: a perfect kernel has bright blocks on its diagonal and nothing elsewhere. SKL learns from 50
labels and from where the other points lie; a mixture of given kernels can only weigh what it was given (Mao and Tsang
2010, Figure 2, on USPS; here it is 500 of scikit-learn's digits).
"""

# %%
# 500 digits, five labels of each class
# -------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from klopt.kernels.alignment import alignment, centred, ideal_kernel
from klopt.learners import SKL, MklSVC
from klopt.learners.kernels import rbf

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
some = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:50] for k in range(10)])
X = X[some] / 16
y = y[some]
known = np.concatenate([np.arange(50 * k, 50 * k + 5) for k in range(10)])
few = np.full(y.size, -1)
few[known] = y[known]

# %%
# Two kernels
# -----------
# SKL decides by Algorithm 1 of the paper. The mixture is learned on the 50 labelled points.

spectral = SKL(n_neighbors=10, power=2).fit(X, few)
widths = [1 / (2 * width**2) for width in (0.5, 1, 2, 5, 10)]
mixture = MklSVC([rbf(widths)], multi_class="ovr").fit(X[known], y[known])
weights = np.atleast_2d(mixture.weights_).mean(axis=0)
distances = ((X[:, None] - X) ** 2).sum(axis=2)
mixed = sum(w * np.exp(-gamma * distances) for w, gamma in zip(weights, widths, strict=True))
print("right: SKL %.1f %%" % (100 * np.mean(spectral.transduction_[few < 0] == y[few < 0])))
print("right: mixture %.1f %%" % (100 * mixture.score(X[few < 0], y[few < 0])))

# %%
# Side by side, with the alignment to the perfect kernel
# ------------------------------------------------------
# Both are centred: a part that is the same for all points separates none.

plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
perfect = centred(ideal_kernel(y))
for axis, (name, K) in zip(
    axes, {"SKL": np.asarray(spectral.kernel_), "mixture": mixed}.items(), strict=True
):
    unit = K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    shown = centred(unit)
    axis.imshow(shown, cmap="gray", vmin=0, vmax=np.quantile(shown, 0.97))
    axis.set_title(f"{name}: alignment {alignment(shown, perfect):.2f}")
    axis.set_xticks(np.arange(25, 500, 50), range(10))
    axis.set_yticks(np.arange(25, 500, 50), range(10))
plt.show()
