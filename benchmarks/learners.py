"""What a fit costs beyond solving its problem.

    python benchmarks/learners.py           two minutes
    python benchmarks/learners.py quick     smaller sets

The time of learner.fit(X, y) is divided by two others, of the same data in the same run:

    problem + solve   the problem from matrices that are there (arrays of kernels, eigenvectors, a Laplacian), with its
                      checks of them, and klopt.solve; no kernel or eigenvector is computed, no SVM is trained
    all by hand       what must be done without the learner: the graph and its eigenvectors, or the kernels by
                      `Gram.rbf`; the problem and klopt.solve; and for those that end in SVMs the learned kernel on
                      the labelled points and one SVC.fit on it

Both shall be at most 1.3. Where a solver is much faster than the eigenvectors or the SVMs
around it, no fit can keep the first; how long these take stands in the remarks. DankSVC of 1000
points shall take at most 20 times as long as scikit-learn's SVC, and points in a batch a small part
of the time that they take one by one. All are CPU seconds of one BLAS thread, the smallest of several
runs that alternate.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ[
    "MKL_NUM_THREADS"
] = "1"

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _rows import Table, best_of, cpu
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import klopt
from klopt import learners, problems
from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.gram import Gram
from klopt.kernels.graphs import UNLABELLED, knn_graph, laplacian
from klopt.learners.kernels import rbf

QUICK = "quick" in sys.argv[1:]
REPEATS = 3 if QUICK else 7
GATE = 1.3
ENOUGH = 10.0
"""CPU seconds after which a row is not repeated any more."""
ALONE = 20
"""Points that are predicted one by one."""
MEANINGS = {
    "(problem + solve)": "klopt.solve of the problem, made of arrays that are there and checked; no kernel or "
    "eigenvector is computed and no SVM is trained, which a fit must do as well",
    "all by hand": "the graph and its eigenvectors, or `Gram.rbf`; the problem and klopt.solve; and where SVMs "
    "decide the learned kernel on the labelled points and SVC.fit",
}
table = Table()
batches: list[tuple[float, str]] = []
"""How many times as long points take one by one, and whose they are."""


@dataclass(frozen=True)
class Steps:
    """What a learner does, by hand."""

    matrices: Callable[[], Any]
    problem: Callable[[Any], klopt.Problem]
    finish: Callable[[Any, Any], None] | None = None

    def all(self) -> None:
        given = self.matrices()
        result = klopt.solve(self.problem(given))
        if self.finish is not None:
            self.finish(given, result)

    def apart(self) -> str:
        """How long all but the problem takes."""
        making, given = best_of(3, self.matrices)
        text = f"matrices {1e3 * making:.1f}"
        if self.finish is None:
            return text
        result = klopt.solve(self.problem(given))
        return f"{text}, decision {1e3 * cpu(lambda: self.finish(given, result))[0]:.1f}"


def arrays(given: Any) -> Any:
    """Checked matrices as plain ones."""
    if isinstance(given, list):
        return [arrays(each) for each in given]
    return given.matrix.copy() if isinstance(given, Gram) else given


def train_svm(K: np.ndarray, labels: np.ndarray, C: float = 10.0) -> None:
    SVC(C=C, kernel="precomputed").fit(K / K.diagonal().mean(), labels)


def on_graph(
    X: np.ndarray, labels: np.ndarray, make: Callable[[np.ndarray], klopt.Problem], name: str
) -> Steps:
    def decide(V: np.ndarray, result: Any) -> None:
        half = V[labels >= 0] * np.sqrt(getattr(result.point, name))
        train_svm(half @ half.T, labels[labels >= 0])

    return Steps(
        lambda: smoothest_eigenpairs(laplacian(knn_graph(X, 5, "gaussian")), min(200, len(X)))[1],
        make,
        decide,
    )


def spectral(X: np.ndarray, make: Callable[[Any], Any]) -> Steps:
    return Steps(
        lambda: laplacian(knn_graph(X, 5, "gaussian"), power=2),
        make,
        lambda _, result: result.problem.decide(result.point),
    )


def near(X: np.ndarray, labels: np.ndarray, make: Callable[[Any], klopt.Problem]) -> Steps:
    known = np.flatnonzero(labels >= 0)
    return Steps(
        lambda: Gram.rbf(X),
        make,
        lambda _, result: train_svm(result.kernel[np.ix_(known, known)], labels[known], 1.0),
    )


def several(X: np.ndarray, make: Callable[[Any], klopt.Problem]) -> Steps:
    widths = [kernel.fix(X).gamma for kernel in rbf(["0.25 scale", "scale", "4 scale"])]
    return Steps(lambda: [Gram.rbf(X, width) for width in widths], make)


def adapted(X: np.ndarray, make: Callable[[Any], Any]) -> Steps:
    return Steps(lambda: Gram.rbf(X), make, lambda _, result: result.problem.weights(result.point))


def eta(K: Any) -> float:
    """Return the price at which F adds at most 0.5 to the weight of the nearest point."""
    entries = K.matrix if isinstance(K, Gram) else K
    return float(np.square(entries).sum(axis=0).max()) / (4 * 0.5)


def alternating(*runs: Callable[[], Any]) -> list[float]:
    """Return the smallest CPU seconds of each."""
    times: list[list[float]] = []
    while len(times) < 2 or (len(times) < REPEATS and sum(map(sum, times)) < ENOUGH):
        times.append([cpu(run)[0] for run in runs])
    return np.min(times, axis=0).tolist()


def row(learner: Any, X: np.ndarray, labels: np.ndarray, steps: Steps, new: np.ndarray) -> None:
    given = arrays(steps.matrices())
    solve, hand, fit = alternating(
        lambda: klopt.solve(steps.problem(given)), steps.all, lambda: clone(learner).fit(X, labels)
    )
    known = np.count_nonzero(labels != UNLABELLED)
    what = f"{learner!s}, n = {len(X)}" + (f", {known} labels" if known < len(X) else "")
    model = clone(learner).fit(X, labels)
    first = cpu(lambda: model.predict(new))[0]
    each = cpu(lambda: model.predict(new))[0] / len(new)
    alone = cpu(lambda: [model.predict(point[None]) for point in new[:ALONE]])[0] / ALONE
    batches.append((alone / each, what))
    note = f"fit {1e3 * fit:.1f} ms, problem + solve {1e3 * solve:.1f}, {steps.apart()}"
    table.add(what, "fit / (problem + solve)", GATE, fit / solve, note, at_most=True)
    note = f"first {len(new)} predictions {1e3 * first:.1f} ms, then {1e6 * each:.0f} us a point"
    table.add(what, "fit / all by hand", GATE, fit / hand, note, at_most=True)


def against_svc(n: int) -> None:
    """DankSVC and SVC on digits, 4 and 9 against the others."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:n]
    y = (y[:n] % 5 == 4).astype(int)
    ours, theirs = alternating(lambda: learners.DankSVC().fit(X, y), lambda: SVC().fit(X, y))
    table.add(
        f"DankSVC, n = {n}",
        "fit / SVC.fit",
        20,
        ours / theirs,
        f"fit {1e3 * ours:.0f} ms",
        at_most=True,
    )


def of_digits() -> None:
    """Ten classes, some or all of the labels."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    count = 500 if QUICK else 1500
    new = X[count:]
    X = X[:count]
    y = y[:count]
    few = np.where(np.random.default_rng(0).random(count) < 0.2, y, UNLABELLED)
    row(
        learners.OSK(prior=0.0),
        X,
        few,
        on_graph(X, few, lambda V: problems.OrderedAlignment(V, few), "alpha"),
        new,
    )
    scg = on_graph(X, few, lambda V: problems.ScgOrdered(V, few, skip_constant=True), "mu")
    row(learners.ScgOSK(floor=0.0), X, few, scg, new)
    row(
        learners.SKL(), X, few, spectral(X, lambda L: problems.SpectralAlignment(L, few, 1e-6)), new
    )
    rls = spectral(X, lambda L: problems.SpectralRls(L, few, 10.0, 1e-2, ridge=1e-6))
    row(learners.SKL(kta=False), X, few, rls, new)
    for labels in (few, y):
        ldk = learners.LDK(random_state=0)
        found: Any = clone(ldk).fit(X, labels).result_.problem
        drawn = (found.similar, found.dissimilar, found.upper, found.lower, found.slack)
        row(
            ldk,
            X,
            labels,
            near(X, labels, lambda K, drawn=drawn: problems.LogDetPairs(K, *drawn)),
            new,
        )
        gamma = 0.3 * float(np.mean(labels >= 0))
        scg = near(
            X, labels, lambda K, labels=labels, gamma=gamma: problems.ScgLogDet(K, labels, gamma)
        )
        row(learners.ScgLDK(), X, labels, scg, new)


def of_tumours() -> None:
    """Two classes, or a feature as the value to be told from the others."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    signs = 2.0 * y - 1
    for norm, n in ((1.2, 400), ("block-linf", 400), ("block-l1", 100 if QUICK else 200)):
        make = lambda K, n=n, norm=norm: problems.MultipleKernel(K, signs[:n], 1.0, "hinge", norm)  # noqa: E731
        row(learners.MklSVC(norm=norm), X[:n], y[:n], several(X[:n], make), X[n:])
    features = X[:, 1:]
    values = X[:400, 0]
    ridge = several(
        features[:400],
        lambda K: problems.MultipleKernel(K, values - values.mean(), 1.0, "squared", 1.2),
    )
    row(learners.MklRidge(), features[:400], values, ridge, features[400:])
    n = 100 if QUICK else 200
    for learner, problem in (
        (learners.ESKL(), problems.SimilarityKernel),
        (learners.EMKL(), problems.SimilarityKernels),
        (learners.REKL(), problems.SimilaritySpectra),
    ):
        make = lambda K, problem=problem, C=learner.C: problem(K, signs[:n], C, 1.0, float(n))  # noqa: E731
        row(learner, X[:n], y[:n], several(X[:n], make), X[n:])
    svc = adapted(X[:400], lambda K: problems.AdaptiveKernel(K, signs[:400], 1.0, eta(K)))
    row(learners.DankSVC(), X[:400], y[:400], svc, X[400:])
    svr = adapted(
        features[:400],
        lambda K: problems.AdaptiveKernelRegression(K, values, 1.0, 0.1, eta(K)),
    )
    row(learners.DankSVR(), features[:400], values, svr, features[400:])


def main() -> None:
    of_digits()
    of_tumours()
    ratio, who = min(batches)
    table.add("predict, the worst", "one by one / in a batch", 5, ratio, who)
    against_svc(500 if QUICK else 1000)
    for kind, meaning in MEANINGS.items():
        found = [entry.passed for entry in table.rows if entry.against == f"fit / {kind}"]
        print(
            f"      fit / {kind} is at most {GATE} in {sum(found)} of {len(found)} rows: {meaning}"
        )
    table.close()


if __name__ == "__main__":
    main()
