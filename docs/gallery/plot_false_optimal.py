"""
A false "optimal", exposed
==========================

A solver status is a claim. The five solvers below all report "optimal"; three of them are wrong. klopt computes
bounds of the optimum from each answer, so a wrong status never becomes a wrong verdict.
"""

# %%
# A backend that always says "optimal"
# ------------------------------------
# Projected gradient descent, however few steps it takes. With none it returns a random point.

import matplotlib.pyplot as plt
import numpy as np

import klopt
from klopt import Answer, Backend, Feature, Stop


class Confident(Backend):
    """So many steps of projected gradient descent from a random point."""

    offers = frozenset({Feature.SIMPLEX, Feature.BOX, Feature.MARGIN})

    def __init__(self, steps):
        self.name = f"{steps} steps"
        self.steps = steps

    def run(self, form, settings, start=None):
        """Take the steps and call the result optimal."""
        x = form.domain.project(np.random.default_rng(0).normal(size=form.domain.size))
        for _ in range(self.steps):
            x = form.domain.project(x - 0.05 * form.objective.gradient(x))
        return Answer(Stop.OPTIMAL, x)


# %%
# What it says and what is proven
# -------------------------------

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
problem = klopt.problems.SoftMargin(K, y, C=1.0)

results = {steps: klopt.solve(problem, Confident(steps)) for steps in (0, 20, 200, 2000, 5000)}
for result in results.values():
    print(
        f"{result.route.backend.name:>10} says {result.stop.words}, klopt proves {result.verdict.name}"
    )

# %%
# The interval is what klopt proves from each point. All contain the optimum; narrow enough are only the last two.

plt.style.use("tableau-colorblind10")
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
for row, result in enumerate(results.values()):
    colour = "C0" if result.verdict.conclusive else "C5"
    axis.plot([result.lower, result.upper], [row, row], color=colour, marker="|", ms=14, lw=3)
    axis.plot(result.value, row, "o", color=colour, ms=7)
    words = f"{result.verdict.name}, width {result.certificate.relative_gap:.0e}"
    axis.text(1.02, row, words, color=colour, va="center", transform=axis.get_yaxis_transform())
axis.axvline(results[5000].value, color="black", lw=0.8, zorder=0)
axis.set(
    yticks=range(len(results)),
    yticklabels=[f'{steps} steps: "optimal"' for steps in results],
    ylim=(4.6, -0.6),
)
axis.set(
    xlabel="value (dots: of the point returned; line: optimum)", title="What each answer proves"
)
plt.show()
