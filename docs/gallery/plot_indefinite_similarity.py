"""
A similarity that is no kernel
==============================

Many similarities have negative eigenvalues, and training a support vector machine with them is no convex problem. One
can repair the matrix without a look at the labels (denoise, flip, shift), or learn the kernel near it together with
the support vector machine (ESKL, Kundu et al. 2010).
"""

# %%
# Threes and eights
# -----------------
# Two images are similar if no pixel differs much.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import klopt

X, digit = load_digits(return_X_y=True)
some = np.flatnonzero((digit == 3) | (digit == 8))[:100]
y = np.where(digit[some] == 3, 1.0, -1.0)
S = 1 - np.abs(X[some][:, None] - X[some]).max(axis=2) / 16
lowest = np.linalg.eigvalsh(S)[0]
print(f"smallest eigenvalue {lowest:.2f}, {np.sum(np.linalg.eigvalsh(S) < 0)} of 100 are negative")

# %%
# Repaired, and learned
# ---------------------
# ``rho`` is the price of leaving the similarity; the trace is that of the nearest kernel.

kernels = {name: klopt.Gram.of(S, repair=how).matrix for name, how in
           (("denoise", "clip"), ("flip", "flip"), ("shift", "shift"))}  # fmt: skip
for rho in (1.0, 0.01):
    problem = klopt.problems.SimilarityKernel(
        S, y, C=1.0, rho=rho, trace=np.trace(kernels["denoise"])
    )
    result = klopt.solve(problem).require()
    kernels[f"ESKL, rho = {rho:g}"] = result.kernel
print(result)

# %%
# The eigenvalues, and how well each kernel is aligned with the labels it was, or was not, learned from. At a high price
# the learned kernel is nearly the denoised one. At a low price weight moves to the direction that tells the classes.


def alignment(K):
    """Return the cosine of the angle between K and yy'."""
    return y @ K @ y / (len(y) * np.linalg.norm(K))


plt.style.use("tableau-colorblind10")
figure, (large, small, bars) = plt.subplots(1, 3, figsize=(7, 4.1), layout="constrained")
rank = np.arange(1, len(y) + 1)
colours = ("C4", "C1", "C3", "C0", "C5")
marks = ("o--", "^--", "s--", "D-", "v-")
for axis, part in ((large, slice(0, 4)), (small, slice(80, 100))):
    axis.plot(
        rank[part], np.linalg.eigvalsh(S)[::-1][part], "k", lw=5, alpha=0.2, label="similarity"
    )
    for (name, K), colour, mark in zip(kernels.items(), colours, marks, strict=True):
        axis.plot(
            rank[part], np.linalg.eigvalsh(K)[::-1][part], mark, color=colour, ms=4, label=name
        )
    axis.set(xlabel="number of the eigenvalue", ylabel="eigenvalue")
large.set(title="Largest eigenvalues", xticks=rank[:4])
small.set(title="Smallest eigenvalues")
small.axhline(0, color="black", lw=0.6)
bars.barh([*kernels], [alignment(K) for K in kernels.values()], color=colours)
bars.set(xlabel="alignment with the labels", title="Alignment", yticks=[])
bars.invert_yaxis()
figure.get_layout_engine().set(w_pad=0.12)
figure.legend(
    *large.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
)
plt.show()
