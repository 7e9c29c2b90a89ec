"""
An algorithm as printed, and as it should be
============================================

Algorithm 1 of Kundu et al. (2010) updates the eigenvalues of the kernel with those of the gradient, as if both had the
same eigenvectors. Their Proposition 3.1 promises that it comes near the optimum like 1 / sqrt(T). It stalls; mirror
descent, which the algorithm was meant to be, keeps the promise.
"""

# %%
# Check the proposition
# ---------------------
# The optimum is an interval that klopt proved, and every comparison uses its pessimistic end.

import matplotlib.pyplot as plt

import klopt

finding = klopt.verify("kundu2010-prop3.1", trials=1)["kundu2010-prop3.1"]
print(finding.claim.says)
print(finding.outcome.value, "-", finding.claim.correction)
print(
    "counterexample:",
    {name: finding.counterexample[name] for name in ("S", "y", "C", "rho", "tau", "loss")},
)
print("confirmed in exact arithmetic:", finding.proven)

# %%
# Two runs and the promised bound, on the counterexample: two points, one similarity.

example = finding.claim.example
runs = {
    "as printed": finding.claim.printed(example).curve,
    "mirror descent": finding.claim.corrected(example).curve,
}

plt.style.use("tableau-colorblind10")
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, curve), style in zip(runs.items(), ("C5o-", "C0s--"), strict=True):
    axis.plot(curve.steps, curve.measured, style, ms=5, label=name)
axis.plot(curve.steps, curve.bound, "k:", label="promised bound")
axis.set(
    xscale="log", yscale="log", xlabel="steps T", ylabel="best value so far, above the optimum"
)
axis.set(title="Proposition 3.1 on its counterexample")
axis.legend(frameon=False)
plt.show()
