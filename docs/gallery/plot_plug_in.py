"""
Plug in a solver in twenty lines
================================

SciPy's ``linprog`` as a backend. It has one method, checks nothing and translates its answer into klopt's signs. The
conformance suite then tries it on programs solved on paper, random programs with known solutions, limits, and programs
that are permuted, scaled and split.
"""

# %%
# The backend
# -----------

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import klopt
from klopt import Answer, Backend, Feature, Status, Stop
from klopt.model.backend import check_raw


class Linprog(Backend):
    """Linear programs by SciPy."""

    name = "linprog"
    library = "scipy"
    offers = frozenset({Feature.CONE})
    proves = frozenset({"dual"})
    sign = -1.0

    def run(self, form, settings, start=None):
        from scipy.optimize import linprog

        check_raw(self.name, settings.raw, known=(), reserved={})
        # equalities first
        rows = form.cones.zero
        A = form.A.tocsr()
        b = form.b
        found = linprog(form.c, A[rows:], b[rows:], A[:rows], b[:rows], bounds=(None, None))
        if found.x is None:
            return Answer(Stop.STALLED, native=found.message)
        y = np.concatenate([found.eqlin.marginals, found.ineqlin.marginals])
        return Answer(Stop.OPTIMAL, found.x, self.sign * y)


# %%
# The same with a mistake that is easily made: SciPy's signs instead of klopt's.


class WrongSigns(Linprog):
    """The multipliers as SciPy has them."""

    name = "wrong_signs"
    sign = 1.0


# %%
# The suite
# ---------

checks = {
    backend.name: klopt.check_backend(backend, show=False) for backend in (Linprog(), WrongSigns())
}
failed = [check for check in checks["wrong_signs"] if check.status is Status.FAILED]
print(f"{failed[0].name}:\n{failed[0].detail}")

# %%
# The suite finds the mistake. Without it a user would still be safe: wrong multipliers can cost a proof, but klopt says
# "optimal" only of what it has proven.

kinds = {"contract": "is what it says", "truth": "solved on paper", "proof": "known solutions", "limit": "limits",
         "meta": "rewritten programs", "start": "warm starts", "agree": "agrees with others"}  # fmt: skip
looks = {Status.PASSED: ("C0", ""), Status.FAILED: ("C1", "///"), Status.SKIPPED: ("C9", "")}
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), sharex=True, sharey=True, layout="constrained")
for axis, (name, found) in zip(axes, checks.items(), strict=True):
    counts = Counter((check.name.partition("_")[0], check.status) for check in found)
    start = np.zeros(len(kinds))
    for status, (colour, hatch) in looks.items():
        wide = np.array([counts[kind, status] for kind in kinds])
        axis.barh(
            [*kinds.values()],
            wide,
            left=start,
            color=colour,
            hatch=hatch,
            ec="white",
            label=status.value,
        )
        start += wide
    axis.set(title=name, xlabel="checks", xticks=range(0, 14, 3))
axes[0].invert_yaxis()
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
)
plt.show()
