"""
Learned spectra, smooth before rough
====================================

A kernel on a graph is a sum of the graph's eigenvectors, each with a weight. OSK asks that the smoother have the
larger weight and aligns the kernel with the few labels; SCG-OSK minimises the loss of a graph of the labels instead,
which is a linear program, and takes a corner of it.
"""

# %%
# 600 images of digits, 60 labels
# -------------------------------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from klopt.errors import UnhelpfulKernel
from klopt.learners import OSK, ScgOSK

X, y = load_digits(return_X_y=True)
X = X[:600]
y = y[:600]
known = np.random.default_rng(0).permutation(600) < 60
few = np.where(known, y, -1)  # -1: no label

# %%
# Three spectra
# -------------
# Without the order OSK fits the labels better and the other images worse. SCG-OSK as printed keeps fewer
# eigenvectors than there are classes, of which klopt warns.

warnings.simplefilter("ignore", UnhelpfulKernel)

learners = {
    "OSK": OSK(rank=60, prior=0.0),
    "OSK, no order": OSK(rank=60, prior=0.0, ordered=False),
    "SCG-OSK": ScgOSK(rank=60, floor=0.0),
}
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(3, 1, figsize=(7, 5.6), sharex=True, layout="constrained")
for axis, (name, learner) in zip(axes, learners.items(), strict=True):
    learner.fit(X, few)
    right = np.mean(learner.transduction_[~known] == y[~known])
    used = np.count_nonzero(learner.spectrum_)
    axis.bar(np.arange(1, 61), learner.spectrum_, color="C0", width=0.8)
    axis.set_title(
        f"{name}: {used} of 60 eigenvectors, {right:.1%} of the other images right", size=11
    )
    axis.set(ylabel="weight")
    print(f"{name:14}", learner.result_.verdict.name, learner.result_.route)
axes[-1].set(xlabel="eigenvector, smoothest first")
plt.show()
