"""
More labels cost SCG-LDK nothing
================================

LDK keeps every pair of labelled points near or apart: twice the labels are four times the constraints. SCG-LDK puts
all labels into one matrix and inverts once (Pan et al. 2016, Figure 3, on heart; here it is wine).
"""

# %%
# Wine with 10 to 60 labels
# -------------------------

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import klopt

X, y = load_wine(return_X_y=True)
K0 = rbf_kernel(scale(X)) + 1e-3 * np.eye(len(y))
order = np.random.default_rng(0).permutation(len(y))


def pairs(known):
    """Return the pairs of one class and those of different classes."""
    i, j = np.triu_indices(known.size, 1)
    same = y[known[i]] == y[known[j]]
    both = np.column_stack([known[i], known[j]])
    return both[same], both[~same]


# %%
# Both problems, solved with proof
# --------------------------------
# LDK pays for the pairs that it cannot keep (`slack`); the bounds are quantiles of the given distances. Every solution
# is certified. The first solve of a process loads libraries and is not counted.

distances = 2 * (1 - K0[np.triu_indices(len(y), 1)])
upper, lower = np.quantile(distances, [0.3, 0.7])
klopt.solve(klopt.problems.LogDetPairs(K0, [(0, 1)], [(0, 100)], upper, lower, slack=1.0))
counts = (10, 20, 30, 40, 50, 60)
seconds = {"LDK": [], "SCG-LDK": []}
for count in counts:
    known = order[:count]
    few = np.full(len(y), -1)
    few[known] = y[known]
    similar, dissimilar = pairs(known)
    problems = {
        "LDK": klopt.problems.LogDetPairs(K0, similar, dissimilar, upper, lower, slack=1.0),
        "SCG-LDK": klopt.problems.ScgLogDet(K0, few, gamma=1.0),
    }
    for name, problem in problems.items():
        began = time.process_time()
        result = klopt.solve(problem).require()
        seconds[name].append(time.process_time() - began)
    print(f"{count} labels, {len(similar) + len(dissimilar)} pairs:", result.verdict.name)

# %%
# Time against labels
# -------------------

plt.style.use("tableau-colorblind10")
figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for (name, values), style in zip(seconds.items(), ("o--", "s-"), strict=True):
    axis.plot(counts, values, style, label=name)
axis.set(yscale="log", xlabel="labels", ylabel="seconds of processor time")
axis.legend(frameon=False)
plt.show()
