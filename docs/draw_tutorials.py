"""Draw the pictures of the tutorials and of the landing page.

    python docs/draw_tutorials.py [NAME ...]      all, or the named ones

The pictures are the same each time: no dates, fixed identifiers, text as text.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "problems"))

from look import BLUE, GREEN, GREY, ORANGE, RED, STYLE  # noqa: E402 - the folder comes first

import klopt  # noqa: E402


def certify_cvxpy(ax: Any) -> None:
    """What five solvers report for one best polynomial approximation, and its proven optimum."""
    import cvxpy as cp

    t = np.arange(1, 31) / 30
    z = cp.Variable(12)
    problem = cp.Problem(cp.Minimize(cp.norm_inf(np.vander(t, 12) @ z - abs(t - 0.4))))
    optimum = klopt.solve(problem).require().value
    names = {
        "HIGHS": "HiGHS",
        "SCIPY": "SciPy",
        "CLARABEL": "Clarabel",
        "ECOS": "ECOS",
        "OSQP": "OSQP",
    }
    for row, solver in enumerate(names):
        problem.solve(solver=solver)
        claimed = problem.status == "optimal"
        colour = RED if claimed and problem.value > 1.001 * optimum else GREY
        if math.isfinite(problem.value):
            ax.plot(problem.value, row, "o", color=colour, ms=8)
            off = f"{problem.value / optimum - 1:+.1%}"
            ax.annotate(
                f'"{problem.status}", {off}',
                (problem.value, row),
                (8, -3),
                textcoords="offset points",
            )
        else:
            ax.annotate(f'"{problem.status}"', (optimum, row), (8, -3), textcoords="offset points")
    ax.axvline(optimum, color=GREEN, lw=2)
    ax.annotate(
        "proven optimum",
        (optimum, -0.7),
        (6, 0),
        textcoords="offset points",
        color=GREEN,
        va="center",
    )
    ax.set(yticks=range(len(names)), yticklabels=names.values(), ylim=(len(names) - 0.4, -1.0))
    ax.set(
        xlabel="largest error of the polynomial, as reported",
        xlim=(0.012, 0.019),
        xticks=(0.012, 0.014, 0.016, 0.018),
    )


def worst_cases(ax: Any) -> None:
    """The worst case of two gradient steps over the step size."""
    from PEPit import PEP
    from PEPit.functions import SmoothConvexFunction

    def two_steps(size: float) -> PEP:
        pep = PEP()
        f = pep.declare_function(SmoothConvexFunction, L=1.0, name="f")
        minimiser = f.stationary_point(name="x*")
        x = pep.set_initial_point(name="x0")
        pep.set_initial_condition((x - minimiser) ** 2 <= 1, name="start")
        for _ in range(2):
            x = x - size * f.gradient(x)
        pep.set_performance_metric(f(x) - f(minimiser))
        return pep

    sizes = np.linspace(0.25, 1.9, 400)
    rate = np.maximum(1 / (4 * sizes + 1), (1 - sizes) ** 4) / 2
    ax.plot(sizes, rate, color=GREY, label="formula of Taylor et al. (2017)")
    for size in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.6, 1.7, 1.8, 1.9):
        found = klopt.worst_case(lambda size=size: two_steps(size)).require()
        ax.plot(
            size, found.upper, "o", color=BLUE, ms=6, label="proven by klopt" if size == 1 else None
        )
    ax.set(xlabel="step size times L", ylabel=r"worst $f(x_2) - f^*$", ylim=(0, 0.35))
    ax.legend(loc="upper center")


def few_labels(ax: Any) -> None:
    """Accuracy on the unlabelled digits over the number of labels, ten draws each."""
    from sklearn.datasets import load_digits
    from sklearn.semi_supervised import LabelSpreading
    from sklearn.svm import SVC

    from klopt.learners import OSK, SKL, Harmonic

    X, y = load_digits(return_X_y=True)
    counts = (20, 50, 100, 200)
    found: dict[str, list[list[float]]] = {
        name: [] for name in ("SKL", "OSK", "Harmonic", "LabelSpreading", "SVC")
    }
    for count in counts:
        for scores in found.values():
            scores.append([])
        for seed in range(10):
            known = np.random.default_rng(seed).permutation(len(y))[:count]
            rest = np.setdiff1d(np.arange(len(y)), known)
            labels = np.full(len(y), -1)
            labels[known] = y[known]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a class without a label in a draw
                spreading = LabelSpreading(kernel="knn").fit(X, labels)
            made = {
                "SKL": SKL().fit(X, labels).transduction_[rest],
                "OSK": OSK().fit(X, labels).transduction_[rest],
                "Harmonic": Harmonic().fit(X, labels).transduction_[rest],
                "LabelSpreading": spreading.transduction_[rest],
                "SVC": SVC().fit(X[known], y[known]).predict(X[rest]),
            }
            for name, predicted in made.items():
                found[name][-1].append(float(np.mean(predicted == y[rest])))
    colours = (BLUE, GREEN, RED, ORANGE, GREY)
    shifts = (0.96, 1.0, 1.04, 1.0, 1.0)  # so that bars of equal height stand side by side
    for (name, scores), colour, shift in zip(found.items(), colours, shifts, strict=True):
        mean = 100 * np.mean(scores, axis=1)
        deviation = 100 * np.std(scores, axis=1)
        ax.errorbar(
            shift * np.array(counts),
            mean,
            deviation,
            marker="o",
            capsize=3,
            color=colour,
            label=name,
        )
        print(name, *(f"{m:.1f} ± {d:.1f}" for m, d in zip(mean, deviation, strict=True)))
    ax.set(
        xscale="log",
        xticks=counts,
        xticklabels=counts,
        xlabel="labels, of 1797 digits",
        ylabel="accuracy, %",
    )
    ax.minorticks_off()
    ax.legend(loc="lower right")


def certificates(ax: Any) -> None:
    """A linear program in the plane, its optimum, and the sum of its rows that proves it."""
    x = np.linspace(-0.1, 1.9, 200)
    first = 1 - 3 * x
    second = (1 - x) / 3
    ax.fill_between(x, np.maximum(first, second), 2, color=BLUE, alpha=0.12, lw=0)
    ax.plot(x, first, color=GREY, lw=1)
    ax.plot(x, second, color=GREY, lw=1)
    ax.plot(x, 0.5 - x, color=ORANGE, lw=2)
    ax.plot(0.25, 0.25, "o", color=BLUE, ms=8)
    ax.annotate(
        "feasible point: optimum ≤ 1/2",
        (0.25, 0.25),
        (12, 22),
        textcoords="offset points",
        color=BLUE,
    )
    ax.text(0.62, -0.09, "¼ (row 1) + ¼ (row 2): optimum ≥ 1/2", color=ORANGE, va="center")
    ax.text(0.06, 0.88, r"$3x_1 + x_2 \geq 1$", color=GREY)
    ax.text(0.98, 0.08, r"$x_1 + 3x_2 \geq 1$", color=GREY)
    ax.set(xlim=(-0.1, 1.9), ylim=(-0.2, 1.0), xlabel="$x_1$", ylabel="$x_2$")


PICTURES: dict[str, Callable[[Any], None]] = {
    "certify-cvxpy": certify_cvxpy,
    "worst-cases": worst_cases,
    "few-labels": few_labels,
    "certificates": certificates,
}


def main(names: list[str]) -> None:
    """Write the pictures beside the tutorials."""
    for name in names or PICTURES:
        with plt.rc_context(STYLE):
            figure, ax = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
            PICTURES[name](ax)
            figure.savefig(HERE / "tutorials" / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
