"""
A claim refuted by two points
=============================

Kundu et al. (2010) let Omega of their (5) stand in problem (6), which is convex only if Omega is convex in the kernels.
``klopt verify`` finds two pairs of kernels between which it is not, and confirms them in exact arithmetic.
"""

# %%
# The verdict
# -----------

import matplotlib.pyplot as plt
import numpy as np

import klopt

finding = klopt.verify("kundu2010-eq5", trials=2)["kundu2010-eq5"]
case = finding.counterexample
print(finding.outcome.value, "-", finding.claim.correction)
print("confirmed in exact arithmetic:", finding.proven)

# %%
# Walk from one pair of kernels to the other
# ------------------------------------------
# A convex function lies below its chord. Every value is an interval that klopt proved, far too narrow to be seen.

t = np.linspace(0, 1, 21)


def along(norm):
    """Return the lower and upper bounds of Omega on the way."""
    mixes = [(1 - s) * case["K"] + s * case["other"] for s in t]
    machines = [
        klopt.problems.MultipleKernel(list(mix), case["y"], case["C"], norm=norm) for mix in mixes
    ]
    results = [klopt.solve(machine).require() for machine in machines]
    return np.array([(result.lower, result.upper) for result in results]).T


plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
for axis, norm, title in zip(
    axes, ("block-l1", "block-linf"), ("(5) is not convex", "(10) is convex"), strict=True
):
    lower, upper = along(norm)
    axis.fill_between(t, lower, upper, color="C0", alpha=0.5)
    axis.plot(t, upper, "C0o-", ms=4, label="Omega")
    axis.plot(t[[0, -1]], upper[[0, -1]], "C5--", label="chord")
    axis.set(title=title, xlabel="from one pair of kernels to the other", ylabel="value")
    axis.legend(frameon=False)
plt.show()
