"""Draw mirror descent for ESKL as printed and as corrected, and print the table of the page.

    python docs/draw_mirror_descent.py [FOLDER] [svg|png]

Steps, start and bound are those of Proposition 3.1 of Kundu et al. (2010): eta_t = sqrt(2 log n /
t) / L, from (tau/n) I, L the a-priori bound of the gradients, smallest value so far within tau L
sqrt(2 log n / T). Both updates are the variants that the theorem checks run
(`klopt.papers.theorems`); optima are klopt's intervals, gaps are measured from their lower ends.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice
from math import log, sqrt
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from klopt.papers.theorems.claim import Case
from klopt.papers.theorems.kundu2010.algorithms import (
    as_printed,
    decreasing,
    middle,
    mirror_descent,
)
from klopt.papers.theorems.kundu2010.descent_claims import PAIR
from klopt.papers.theorems.kundu2010.quantities import Gradients, eskl, kernel_optimum, lipschitz

BLUE = "#0060a8"
RED = "#b00020"
GREY = "#8a8a8a"
STYLE = {
    "svg.hashsalt": "klopt",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
SHOWN = 60  # points of a curve


def case(
    S: np.ndarray, y: np.ndarray, loss: str, steps: int, rho: float = 1.0, C: float = 1.0
) -> Case:
    """An instance with tau = 1; similarities are divided by their mean trace."""
    S = S / np.mean(np.trace(S, axis1=1, axis2=2))
    return {"S": S, "y": y, "C": C, "rho": rho, "tau": 1.0, "loss": loss, "steps": steps}


def random_similarities(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices without any structure but a positive diagonal."""
    A = np.random.default_rng(seed).normal(size=(m, n, n))
    return (A + A.transpose(0, 2, 1)) / 2 + 2 * np.eye(n), np.where(
        np.arange(n) % 2 == 0, 1.0, -1.0
    )


def like_sonar(seed: int, n: int, judges: int) -> tuple[np.ndarray, np.ndarray]:
    """Made to look like AuralSonar: pairs of echoes rated 1 to 5 by noisy judges.

    Two kinds of echoes; the rating falls with their distance, is rounded, and is not the same in
    both orders. It is symmetrised here, and indefinite.
    """
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.6 * y[:, None]
    far = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    ratings = np.clip(np.rint(5 - 1.2 * far + 0.7 * rng.normal(size=(judges, n, n))), 1, 5) / 5
    ratings[:, np.arange(n), np.arange(n)] = 1.0
    return (ratings + ratings.transpose(0, 2, 1)) / 2, y


def instances() -> dict[str, Case]:
    """What is drawn, by name."""
    sonar = like_sonar(0, 40, 1)
    several = like_sonar(1, 30, 3)
    return {
        "two points, l1 (kundu2010-prop3.1)": {**PAIR, "steps": 10_000},
        "random, n = 12, l1": case(*random_similarities(0, 12, 1), "l1", 1000),
        "random, n = 20, m = 2, frobenius": case(*random_similarities(1, 20, 2), "frobenius", 400),
        "like AuralSonar, n = 40, squared": case(*sonar, "squared", 400),
        "like AuralSonar, n = 40, frobenius": case(*sonar, "frobenius", 400, rho=10.0),
        "like AuralSonar, n = 30, m = 3, squared": case(*several, "squared", 400, rho=5.0),
    }


def gradients(one: Case, K: np.ndarray) -> Gradients:
    """f and its gradient at the only kernel."""
    return eskl(one, K[0])


def best_gaps(one: Case, *, printed: bool) -> np.ndarray:
    """How far the least value so far is from the optimum, step by step."""
    n = len(one["y"])
    tau = one["tau"]
    L = lipschitz(one)
    oracle = partial(gradients, one)
    start = middle(one, 1)
    steps = decreasing(n, L)
    run = (
        as_printed(oracle, start, tau, steps, 1.0)
        if printed
        else mirror_descent(oracle, start, tau, steps)
    )
    values = np.array([seen.value.upper for seen in islice(run, int(one["steps"]))])
    return np.asarray(np.minimum.accumulate(values) - kernel_optimum(one)[0].lower)


def main() -> None:
    """Write mirror-descent.svg and print a row of the page's table for each instance."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    kind = sys.argv[2] if len(sys.argv) > 2 else "svg"
    mpl.rcParams.update(STYLE)
    figure, panels = plt.subplots(2, 3, figsize=(9.6, 5.4))
    for (name, one), ax in zip(instances().items(), panels.flat, strict=True):
        n = len(one["y"])
        L = lipschitz(one)
        total = int(one["steps"])
        steps = np.arange(1, total + 1)
        bound = one["tau"] * L * np.sqrt(2 * log(n) / steps)
        right = best_gaps(one, printed=False)
        wrong = best_gaps(one, printed=True)
        shown = np.unique(np.rint(np.geomspace(1, total, SHOWN)).astype(int)) - 1
        for curve, colour, style, label in (
            (bound, GREY, ":", "the paper's bound"),
            (wrong, RED, "-", "as printed"),
            (right, BLUE, "-", "as corrected"),
        ):
            ax.loglog(steps[shown], curve[shown], style, color=colour, label=label)
        ax.minorticks_off()
        ax.set_title(name, fontsize=9)
        last = (
            int(np.flatnonzero(wrong > wrong[-1] * (1 + 1e-9))[-1]) + 2
            if wrong[0] > wrong[-1]
            else 1
        )
        below = float((right / bound).max())
        print(
            f"| {name} | {L:.3g} | {total} | {one['tau'] * L * sqrt(2 * log(n) / total):.3g} | {right[-1]:.2g} | "
            f"{wrong[-1]:.2g} | {last} | {wrong[-1] / right[-1]:.0f} | {below:.2g} |"
        )
    for ax in panels[1]:
        ax.set_xlabel("steps")
    for ax in panels[:, 0]:
        ax.set_ylabel("least value so far - optimum")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="upper center", ncol=3)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(
        folder / f"mirror-descent.{kind}", metadata={"Date": None} if kind == "svg" else None
    )


if __name__ == "__main__":
    main()
