"""What a fit costs beyond solving its problem.

    python benchmarks/learners.py           a minute
    python benchmarks/learners.py quick     smaller sets

    solve   by hand, without the learner: the graph's eigenvectors or the kernel matrices, the problem, klopt.solve, and
            for those that end in a machine the learned kernel on the labelled points and one SVC.fit on it
    fit     learner.fit(X, y) of the same data

The rules: fit <= 1.3 solve; DankSVC of 1000 points <= 20 times scikit-learn's SVC. All are CPU seconds of one BLAS
thread, the least of several runs that alternate. `learn` is the share of klopt's own part (problem and solve) in
`solve`. `predict` is the time for one new point, in batch.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import klopt
from klopt import learners, problems
from klopt.eigenpairs import smoothest_eigenpairs
from klopt.graphs import knn_graph, laplacian
from klopt.learners.kernels import rbf

QUICK = "quick" in sys.argv[1:]
REPEATS = 3 if QUICK else 7
GATE = 1.3
verdicts: list[bool] = []
spent: list[float] = []


def solved(problem: Callable[[], klopt.Problem]) -> klopt.Result:
    """Build and solve a problem, and note the time."""
    began = time.process_time()
    result = klopt.solve(problem())
    spent.append(time.process_time() - began)
    return result


def machines(K: np.ndarray, labels: np.ndarray, C: float = 10.0) -> None:
    known = labels >= 0
    K = K[np.ix_(known, known)]
    SVC(C=C, kernel="precomputed").fit(K / K.diagonal().mean(), labels[known])


def on_graph(X: np.ndarray, labels: np.ndarray, make: Callable[[np.ndarray], klopt.Problem], name: str) -> None:
    V = smoothest_eigenpairs(laplacian(knn_graph(X, 10)), min(200, len(X)))[1]
    weights = getattr(solved(lambda: make(V)).point, name)
    half = V[labels >= 0] * np.sqrt(weights)
    machines(half @ half.T, labels[labels >= 0])


def spectral(X: np.ndarray, labels: np.ndarray, make: Callable[[Any], Any]) -> None:
    result = solved(lambda: make(laplacian(knn_graph(X, 10))))
    result.problem.decide(result.point)


def near(X: np.ndarray, labels: np.ndarray, make: Callable[[np.ndarray], Any]) -> None:
    result = solved(lambda: make(rbf("scale").fix(X)(X)))
    machines(result.kernel, labels)
    result.problem.extend(result.point)


def mixed(X: np.ndarray, labels: np.ndarray, norm: Any) -> None:
    signs = 2.0 * labels - 1
    widths = ["0.25 scale", "scale", "4 scale"]
    solved(lambda: problems.MultipleKernel([k.fix(X)(X) for k in rbf(widths)], signs, 1.0, norm=norm))


def alike(X: np.ndarray, labels: np.ndarray, problem: Any) -> None:
    n, signs = len(X), 2.0 * labels - 1
    solved(lambda: problem([k.fix(X)(X) for k in rbf(["0.25 scale", "scale", "4 scale"])], signs, 1.0, 1.0, float(n)))


def adapted(X: np.ndarray, y: np.ndarray, problem: Any, *more: float) -> None:
    result = solved(lambda: problem(rbf("scale").fix(X)(X), y, 1.0, *more))
    result.problem.weights(result.point)


def against_svc(n: int) -> None:
    """DankSVC and SVC on digits, 4 and 9 against the others."""
    X, y = load_digits(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:n], (y[:n] % 5 == 4).astype(int)
    times: dict[str, list[float]] = {"DankSVC": [], "SVC": []}
    for _ in range(REPEATS):
        for name, learner in (("DankSVC", learners.DankSVC()), ("SVC", SVC())):
            began = time.process_time()
            learner.fit(X, y)
            times[name].append(time.process_time() - began)
    ratio = min(times["DankSVC"]) / min(times["SVC"])
    verdicts.append(ratio <= 20)
    word = "PASS" if verdicts[-1] else "FAIL"
    print(f"{word}  DankSVC / SVC, n = {n}: {ratio:.1f} <= 20 ({1e3 * min(times['DankSVC']):.0f} ms)", flush=True)


def row(learner: Any, X: np.ndarray, labels: np.ndarray, by_hand: Callable[[], None], new: np.ndarray) -> None:
    fits, solves = [], []
    spent.clear()
    for _ in range(REPEATS):
        for times, run in ((solves, by_hand), (fits, lambda: learner.fit(X, labels))):
            began = time.process_time()
            run()
            times.append(time.process_time() - began)
    began = time.process_time()
    learner.predict(new)
    each = (time.process_time() - began) / len(new)
    ratio, share = min(fits) / min(solves), min(spent) / min(solves)
    verdicts.append(ratio <= GATE)
    print(
        f"{'PASS' if verdicts[-1] else 'FAIL'}  {learner!s:44} n = {len(X):5}  fit {1e3 * min(fits):8.1f} ms  "
        f"fit/solve {ratio:5.2f} <= {GATE}  learn {share:4.0%}  predict {1e6 * each:6.1f} us",
        flush=True,
    )


def near_rows(X: np.ndarray, labels: np.ndarray, new: np.ndarray) -> None:
    learner = learners.LDK(random_state=0)
    ldk = learner.fit(X, labels).result_.problem
    drawn = (ldk.similar, ldk.dissimilar, ldk.upper, ldk.lower, ldk.slack)
    row(learner, X, labels, lambda: near(X, labels, lambda K: problems.LogDetPairs(K, *drawn)), new)
    row(learners.ScgLDK(), X, labels, lambda: near(X, labels, lambda K: problems.ScgLogDet(K, labels, 1.0)), new)


def main() -> int:
    X, y = load_digits(return_X_y=True)
    X, count = StandardScaler().fit_transform(X), 500 if QUICK else 1500
    new, X, y = X[count:], X[:count], y[:count]
    few = np.where(np.random.default_rng(0).random(count) < 0.2, y, -1)
    osk = lambda V: problems.OrderedAlignment(V, few)  # noqa: E731
    row(learners.OSK(), X, few, lambda: on_graph(X, few, osk, "alpha"), new)
    scg = lambda V: problems.ScgOrdered(V, few, skip_constant=True)  # noqa: E731
    row(learners.ScgOSK(), X, few, lambda: on_graph(X, few, scg, "mu"), new)
    kta = lambda L: problems.SpectralAlignment(L, few)  # noqa: E731
    row(learners.SKL(), X, few, lambda: spectral(X, few, kta), new)
    rls = lambda L: problems.SpectralRls(L, few, 10.0, 1e-2)  # noqa: E731
    row(learners.SKL(kta=False), X, few, lambda: spectral(X, few, rls), new)
    for labels in (few, y):  # some, all
        near_rows(X, labels, new)
    Z, t = load_breast_cancer(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    for norm, n in ((1.2, 400), ("block-linf", 400), ("block-l1", 100 if QUICK else 200)):
        row(learners.MklSVC(norm=norm), Z[:n], t[:n], lambda n=n, norm=norm: mixed(Z[:n], t[:n], norm), Z[n:])
    n = 100 if QUICK else 200
    for learner, problem in (
        (learners.ESKL(), problems.SimilarityKernel),
        (learners.EMKL(), problems.SimilarityKernels),
        (learners.REKL(), problems.SimilaritySpectra),
    ):
        row(learner, Z[:n], t[:n], lambda problem=problem: alike(Z[:n], t[:n], problem), Z[n:])
    signs = 2.0 * t[:400] - 1
    row(learners.DankSVC(), Z[:400], t[:400], lambda: adapted(Z[:400], signs, problems.AdaptiveKernel), Z[400:])
    target = Z[:400, 0]
    by_hand = lambda: adapted(Z[:400, 1:], target, problems.AdaptiveKernelRegression, 0.1)  # noqa: E731
    row(learners.DankSVR(), Z[:400, 1:], target, by_hand, Z[400:, 1:])
    against_svc(500 if QUICK else 1000)
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
