"""
How time grows with the number of points
========================================

The same support vector machine with more and more points, by four backends. The time is that of all of ``klopt.solve``:
building the form, solving it and proving the answer. A straight line of gradient p in this picture is time ~ n^p.
"""

# %%
# Solve and time
# --------------
# Every time in the picture is the shortest of three, and every answer a certified optimum. Each backend stops at a size
# that it solves in about a second.

import matplotlib.pyplot as plt
import numpy as np

import klopt

rng = np.random.default_rng(0)
X = rng.normal(size=(1600, 2))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=1600) > 0, 1.0, -1.0)
K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
sizes = [100, 200, 400, 800, 1600]
largest = {"libsvm": 1600, "active_set": 800, "nesterov": 800, "clarabel": 400}


def seconds(backend, n):
    """Return the shortest of three times of a proven answer for the first n points."""
    problem = klopt.problems.SoftMargin(K[:n, :n], y[:n], C=1.0)
    return min(klopt.solve(problem, backend).require().timings.total for _ in range(3))


times = {
    backend: {n: seconds(backend, n) for n in sizes if n <= limit}
    for backend, limit in largest.items()
}

# %%
# The exponents are fitted to the last three points of each line.

plt.style.use("tableau-colorblind10")
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (backend, found), mark in zip(times.items(), ("C0o-", "C1s-", "C3^-", "C5D-"), strict=True):
    n = np.array([*found])
    spent = np.array([*found.values()])
    gradient = np.polyfit(np.log(n[-3:]), np.log(spent[-3:]), 1)[0]
    axis.plot(n, spent, mark, label=f"{backend}: n^{gradient:.1f}")
axis.set(
    xscale="log",
    yscale="log",
    xlabel="points n",
    ylabel="seconds, proof included",
    title="SoftMargin, C = 1",
)
axis.set_xticks(sizes, sizes)
axis.minorticks_off()
axis.legend(frameon=False)
plt.show()
