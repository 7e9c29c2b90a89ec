"""Draw the pictures of the pages: handwritten digits, ten neighbours, 100 labels, 200 eigenvectors.

    python docs/problems/draw.py [FOLDER] [svg|png]

The pictures are the same each time: no dates, fixed identifiers, text as text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from look import BLUE, GREEN, GREY, ORANGE, STYLE
from sklearn.datasets import load_breast_cancer, load_digits

import klopt
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import knn_graph, laplacian
from klopt.kernels.side_information import side_graph
from klopt.problems import (
    MultipleKernel,
    OrderedAlignment,
    ScgLogDet,
    ScgOrdered,
    SimilarityKernel,
    SpectralAlignment,
    SpectralRls,
)


def data() -> tuple[Any, np.ndarray]:
    """The Laplacian and the labels of 100 digits."""
    X, digit = load_digits(return_X_y=True)
    known = np.random.default_rng(0).permutation(len(X))[:100]
    return laplacian(knn_graph(X, 10)), np.where(np.isin(np.arange(len(X)), known), digit, -1)


def ordered_alignment(ax: Any, L: Any, labels: np.ndarray) -> None:
    """Weights with and without the order."""
    V = smoothest_eigenpairs(L, 200)[1]
    choices = (
        ("no order (KA0)", GREY, {"ordered": False}),
        ("ordered (KA1)", BLUE, {}),
        ("ordered, sigma = 1.05", ORANGE, {"sigma": 1.05}),
    )
    for name, colour, options in choices:
        result = klopt.solve(OrderedAlignment(V, labels, **options)).require()
        alpha = result.point.alpha / result.point.alpha.max()
        where = np.arange(1, alpha.size + 1)
        if name.startswith("no"):
            ax.vlines(
                where,
                0,
                alpha,
                color=colour,
                linewidth=1,
                label=f"{name}: alignment {result.value:.3f}",
            )
        else:
            ax.step(
                where,
                alpha,
                where="mid",
                color=colour,
                label=f"{name}: alignment {result.value:.3f}",
            )
    ax.set(
        xlabel="eigenvector, smoothest first",
        ylabel="weight / largest weight",
        xlim=(0, 200),
        ylim=(0, 1.05),
    )
    ax.legend()


def scg_ordered(ax: Any, L: Any, labels: np.ndarray) -> None:
    """Energies and their prefix means."""
    every = load_digits().target  # few labels change few energies: the picture has all of them
    problem = ScgOrdered(smoothest_eigenpairs(L, 60)[1], side=every, skip_constant=True)
    c = problem.coefficients
    mu = klopt.solve(problem).require().point.mu
    means = np.cumsum(c[1:]) / np.arange(1, c.size)
    k = int(np.flatnonzero(mu)[-1]) + 1
    ax.plot(
        np.arange(1, c.size + 1),
        c,
        "o",
        color=GREY,
        markersize=4,
        label="energy $c_i$ of each eigenvector",
    )
    ax.plot(np.arange(2, c.size + 1), means, color=BLUE, label="mean of $c_2$ to $c_k$")
    ax.plot([k], [means[k - 2]], "o", color=ORANGE, label=f"least mean: k = {k}")
    ax.annotate(
        "$c_1$: the constant",
        (1, c[0]),
        (5, c[0] + 0.03),
        arrowprops={"arrowstyle": "-", "color": GREY},
    )
    ax.set(
        xlabel="eigenvector, smoothest first", ylabel="energy", xlim=(0, c.size + 1), ylim=(0, 1.05)
    )
    ax.legend(loc="lower right")


def spectral_rls(ax: Any, L: Any, labels: np.ndarray) -> None:
    """Spectra for three prices of roughness."""
    for mu, colour in ((0.1, GREEN), (1.0, ORANGE), (10.0, BLUE)):
        problem = SpectralRls(L, labels, C=10.0, mu=mu, rank=200)
        spectrum = klopt.solve(problem).require().point.spectrum
        used = spectrum > 0
        gamma = problem.directions.B - problem.ridge
        ax.plot(
            gamma[used],
            spectrum[used],
            ".",
            color=colour,
            markersize=5,
            label=f"mu = {mu:g}: rank {used.sum()}",
        )
    ax.set(
        xlabel="eigenvalue of the Laplacian",
        ylabel="learned eigenvalue",
        yscale="log",
        ylim=(1e-3, None),
    )
    ax.legend(loc="upper right")


def spectral_alignment(ax: Any, L: Any, labels: np.ndarray) -> None:
    """The curve of alignments over the level."""
    labels = np.where(labels >= 0, labels % 2, -1)
    problem = SpectralAlignment(L, labels)
    result = klopt.solve(problem).require()
    r = np.sqrt(problem.directions.A / (2 * problem.directions.B))
    levels = np.linspace(0, r.max() * (1 - 1e-9), 2000)
    curve = [problem.bracket(klopt.Point({"level": level})).lower for level in levels]
    ax.plot(levels, curve, color=BLUE, label="alignment of the kernel at this level")
    ax.plot(
        [result.point.level], [result.value], "o", color=ORANGE, label=f"best: {result.value:.3f}"
    )
    bottom = {"transform": ax.get_xaxis_transform(), "color": GREY, "markersize": 7}
    ax.plot(
        np.sort(r)[-100:],
        np.full(100, 0.03),
        "|",
        **bottom,
        label="largest $r_i$, where pieces of the curve meet",
    )
    ax.set(
        xlabel="level", ylabel="alignment", xlim=(-0.02 * r.max(), 1.02 * r.max()), ylim=(0, None)
    )
    ax.legend()


def scg_logdet(ax: Any, L: Any, labels: np.ndarray) -> None:
    """Residuals of the solution as printed and as computed, the worse K0 is conditioned."""
    labels = labels[:200]
    conditions = np.geomspace(1e1, 1e20, 20)
    S = side_graph(labels, 200).apply(np.eye(200))
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 200)))[0]
    lines: dict[str, list[float]] = {"printed": [], "klopt": []}
    for condition in conditions:
        K0 = (Q * np.geomspace(1.0, 1 / condition, 200)) @ Q.T
        K0 = (K0 + K0.T) / 2
        kernel = klopt.solve(ScgLogDet(K0, labels, 1.0)).require().kernel
        for name, K in (("printed", np.linalg.inv(np.linalg.inv(K0) + S)), ("klopt", kernel)):
            lines[name].append(float(np.linalg.norm(K + K @ S @ K0 - K0) / np.linalg.norm(K0)))
    ax.plot(
        conditions, lines["printed"], ".-", color=ORANGE, label="$(K_0^{-1} + S)^{-1}$ as printed"
    )
    ax.plot(conditions, lines["klopt"], ".-", color=BLUE, label="by groups, $K_0$ not inverted")
    ax.set(xlabel="condition of $K_0$", ylabel="residual", xscale="log", yscale="log")
    ax.legend()


def multiple_kernel(ax: Any, L: Any, labels: np.ndarray) -> None:
    """The norms |w_i| that nine kernels have in the classifier, for three norms of these norms."""
    X, target = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(0)) / X.std(0))[:300]
    y = 2.0 * target[:300] - 1
    squares = np.square(X[:, None] - X).sum(axis=2) / X.shape[1]
    widths = np.logspace(-3, 5, 9, base=2)
    kernels = [np.exp(-squares / width) for width in widths]
    for norm, colour in (("block-l1", BLUE), (2.0, GREEN), ("block-linf", ORANGE)):
        point = klopt.solve(MultipleKernel(kernels, y, C=1.0, norm=norm)).require().point
        a = y * point.alpha
        w = point.weights * np.sqrt([a @ K @ a for K in kernels])
        ax.plot(
            widths,
            w / w.max(),
            "o-",
            color=colour,
            label="sum of kernels, p = 2" if norm == 2.0 else norm,
        )
    ax.set(
        xlabel="width of the kernel",
        ylabel="$|w_i|$ / largest $|w_i|$",
        xscale="log",
        ylim=(-0.02, None),
    )
    ax.set_xticks(widths, [f"{width:g}" for width in widths])
    ax.minorticks_off()
    ax.legend()


def similarity(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian kernel of breast cancer data with symmetric noise, and the labels."""
    X, target = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(0)) / X.std(0))[:n]
    y = 2.0 * target[:n] - 1
    noise = np.random.default_rng(0).normal(size=(n, n))
    return np.exp(-np.square(X[:, None] - X).sum(axis=2) / X.shape[1]) + 0.2 * (noise + noise.T), y


def similarity_kernel(ax: Any, L: Any, labels: np.ndarray) -> None:
    """The eigenvalues of an indefinite similarity and of the kernels learned from it."""
    S, y = similarity()
    where = np.arange(1, y.size + 1)
    ax.plot(where, np.linalg.eigvalsh(S)[::-1], color=GREY, label="similarity S")
    choices = (("squared", None, BLUE), ("squared", 120.0, GREEN), ("l1", 120.0, ORANGE))
    for loss, trace, colour in choices:
        K = klopt.solve(SimilarityKernel(S, y, 1.0, 0.05, trace, loss), tol=1e-4).require().kernel
        name = f"{loss}, {'no trace (IndSVM)' if trace is None else 'trace n'}"
        ax.plot(where, np.linalg.eigvalsh(K)[::-1], color=colour, label=name)
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set(xlabel="eigenvalue, largest first", ylabel="eigenvalue", ylim=(-8, 25))
    ax.legend()


PICTURES: dict[str, Callable[[Any, Any, np.ndarray], None]] = {
    "ordered-alignment": ordered_alignment,
    "scg-ordered": scg_ordered,
    "scg-logdet": scg_logdet,
    "multiple-kernel": multiple_kernel,
    "similarity-kernel": similarity_kernel,
    "spectral-rls": spectral_rls,
    "spectral-alignment": spectral_alignment,
}


def main(folder: Path, kind: str) -> None:
    """Write all pictures."""
    L, labels = data()
    with mpl.rc_context(STYLE):
        for name, draw in PICTURES.items():
            figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
            draw(ax, L, labels)
            figure.savefig(
                folder / f"{name}.{kind}", metadata={"Date": None} if kind == "svg" else None
            )
            plt.close(figure)


if __name__ == "__main__":
    given = [*sys.argv[1:], *(str(Path(__file__).parent), "svg")[len(sys.argv) - 1 :]]
    main(Path(given[0]), given[1])
