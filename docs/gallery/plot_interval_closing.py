"""
An interval that closes
=======================

klopt's own iterative methods report certified bounds as they go: a feasible point on one side, a dual bound on the
other. The optimum is between the two all the time, so that stopping early costs accuracy and never truth.
"""

# %%
# A support vector machine that learns the weights of five kernels
# ----------------------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

import klopt

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 2))
y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
distances = ((X[:, None] - X) ** 2).sum(axis=2)
kernels = [np.exp(-gamma * distances) for gamma in (0.1, 0.3, 1.0, 3.0, 10.0)]
problem = klopt.problems.MultipleKernel(kernels, y, C=1.0)

# %%
# Three methods, stopped early
# ----------------------------
# The optimum, for comparison only, comes from the route that klopt chooses itself.

limits = {"nesterov": 100, "mirror_descent": 100, "mirror_prox": 300}
results = {name: klopt.solve(problem, name, max_iter=steps) for name, steps in limits.items()}
optimum = klopt.solve(problem, tol=1e-9).require()
for name, result in results.items():
    print(f"{name:15} {result.verdict.name:9} {result.lower:.6f} <= optimum <= {result.upper:.6f}")

# %%
# Left, the bounds; right, how far they are apart.

plt.style.use("tableau-colorblind10")
figure, (bounds, widths) = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained")
for (name, result), colour, style in zip(
    results.items(), ("C0", "C1", "C3"), ("-", "--", ":"), strict=True
):
    k, lower, upper = np.array(
        [(step.iteration, step.lower, step.upper) for step in result.history]
    ).T
    bounds.fill_between(k + 1, lower, upper, color=colour, alpha=0.2)
    for end in (lower, upper):
        bounds.plot(k + 1, end, color=colour, ls=style)
    widths.plot(k + 1, (upper - lower) / (1 + np.abs(upper)), color=colour, ls=style, label=name)
bounds.axhline(optimum.value, color="black", lw=0.8)
bounds.text(40, optimum.value * 1.01, "optimum", va="bottom")
bounds.set(xscale="log", xlabel="iterations + 1", ylabel="value", title="Proven bounds")
bounds.set(ylim=(0.6 * optimum.value, 1.4 * optimum.value))
widths.axhline(1e-6, color="black", lw=0.8)
widths.text(60, 1.5e-6, "asked for")
widths.set(
    xscale="log",
    yscale="log",
    xlabel="iterations + 1",
    ylabel="relative width",
    title="What is left open",
)
figure.legend(
    *widths.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
)
plt.show()
