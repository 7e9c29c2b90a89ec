"""
Pairs that contradict each other
================================

Learning a kernel from pairs can be impossible: if A is near B and B is near C, then C cannot be far from A. klopt does
not run without end, nor say "infeasible" and leave it at that. It names the triangle and proves the contradiction by
numbers that anyone can add up.
"""

# %%
# Ten points, three pairs
# -----------------------
# Squared distances in the learned kernel: at most 0.1 for the similar pairs, at least 1 for the dissimilar one. Two
# steps of length sqrt(0.1) reach a squared distance of 0.4 at most.

import matplotlib.pyplot as plt
import numpy as np

import klopt

rng = np.random.default_rng(289)
X = rng.uniform(0, 1, size=(10, 2))
X[:3] = [0.15, 0.2], [0.5, 0.75], [0.85, 0.3]
K0 = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
near = [(0, 1), (1, 2)]
far = [(0, 2)]
result = klopt.solve(klopt.problems.LogDetPairs(K0, near, far, upper=0.1, lower=1.0))
print(result.explain())

# %%
# The proof
# ---------
# For every kernel d(A, C) <= w d(A, B) + w d(B, C) if w is 2 or more: that is the triangle inequality. The multipliers
# are such weights. With the bounds put in, the two sides contradict each other.

weights = np.concatenate([result.duals["similar"], result.duals["dissimilar"]])
weights = weights / weights[-1]
print("multipliers", weights.round(6))
print(f"d(A, C) is at most {weights[:2].sum() * 0.1:.2f} and must be at least 1")

# %%
# How much must be given up? With a bound below 0.4 for the dissimilar pair there is a kernel again, and the nearer the
# bound to 0.4, the farther is that kernel from the given one.

bounds = np.linspace(0.02, 0.39, 12)
price = [
    klopt.solve(klopt.problems.LogDetPairs(K0, near, far, upper=0.1, lower=b)).require().value
    for b in bounds
]

plt.style.use("tableau-colorblind10")
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
left.plot(*X.T, "o", color="C2")
for (i, j), style, text in zip(
    near + far, ("C0-", "C0-", "C5--"), ("≤ 0.1", "≤ 0.1", "≥ 1"), strict=True
):
    left.plot(*X[[i, j]].T, style, lw=2)
    left.annotate(
        text,
        X[[i, j]].mean(axis=0),
        ha="center",
        va="center",
        bbox={"fc": "white", "ec": "none", "pad": 1},
    )
for name, point in zip("ABC", X, strict=False):
    left.annotate(
        name, point, xytext=(0, 8), textcoords="offset points", ha="center", weight="bold"
    )
left.set(
    title="The violated triangle",
    xlabel="first coordinate",
    ylabel="second coordinate",
    ylim=(-0.05, 1.1),
)
right.plot(bounds, price, "C0o-", ms=4)
right.axvspan(0.4, 0.5, color="C1", alpha=0.3)
right.text(0.45, np.mean(price), "no kernel", rotation=90, ha="center", va="center")
right.set(title="What a bound costs", xlim=(0, 0.5))
right.set(xlabel="bound of the dissimilar pair", ylabel="divergence from the given kernel")
plt.show()
