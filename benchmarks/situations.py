"""Three situations in which a learned kernel may pay, against what an expert would take first.

    python benchmarks/situations.py [few-labels | kernel-groups | similarities]

Writes docs/situations.json, by default all three, in about ten minutes on one processor;
`python docs/write_situations.py` makes the pages of it. All data come with scikit-learn or are made
here from fixed seeds. Accuracies are in % on points whose labels a method has not seen; each method
sees the same splits. A search chooses by cross-validation on the labelled points, and its time
counts. Seconds are of fit and prediction, processor time of one process.

    few labels       1, 2, 5 or 10 labels a class; accuracy on the unlabelled points
    kernel groups    columns that come in groups, some of them noise; 70 % of the points to learn from
    similarities     images compared up to a shift, curves compared by warping; half to learn from
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_swiss_roll
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC

from klopt import __version__
from klopt.learners import ESKL, OSK, SKL, Harmonic, MklSVC, SimilarityFeatures
from klopt.learners.kernels import rbf

FILE = Path(__file__).parent.parent / "docs" / "situations.json"
DRAWS = 10
PENALTIES = [0.1, 1.0, 10.0, 100.0]
WIDTHS = [0.1, 0.3, 1.0, 3.0]
"""Of a Gaussian kernel, in units of gamma="scale"."""

Array = np.ndarray[Any, Any]
Rows = list[dict[str, Any]]


def timed(method: Callable[..., Array], *data: Any) -> tuple[Array, float]:
    """Return what a method predicts, and its seconds."""
    start = time.process_time()
    found = method(*data)
    return found, time.process_time() - start


def measured(
    methods: dict[str, Callable[..., Array]], tasks: Iterator[tuple[Any, ...]], **label: Any
) -> Rows:
    """Return a row for each method: accuracies and seconds over the tasks, whose last is the truth."""
    rows: dict[str, dict[str, Any]] = {
        name: {**label, "method": name, "accuracy": [], "seconds": []} for name in methods
    }
    for *data, truth in tasks:
        for name, method in methods.items():
            found, seconds = timed(method, *data)
            rows[name]["accuracy"].append(round(100 * float(np.mean(found == truth)), 3))
            rows[name]["seconds"].append(round(seconds, 4))
    for row in rows.values():
        print(label, row["method"], np.mean(row["accuracy"]).round(2), flush=True)
    return list(rows.values())


def folds(y: Array) -> StratifiedKFold:
    """Return three folds, or two where a class has no more points."""
    smallest = int(np.bincount(y).min())
    return StratifiedKFold(int(np.clip(smallest, 2, 3)), shuffle=True, random_state=0)


def scaled_widths(X: Array) -> list[float]:
    """Return the gammas of the search."""
    return [width / (X.shape[1] * float(X.var())) for width in WIDTHS]


def tuned_svc(X: Array, y: Array, new: Array) -> Array:
    """Predict by a Gaussian SVM whose C and gamma are chosen by cross-validation."""
    # Folds need two points of each class.
    if np.bincount(y).min() < 2:
        return np.asarray(SVC(C=10.0).fit(X, y).predict(new))
    grid = {"C": PENALTIES, "gamma": scaled_widths(X)}
    return np.asarray(GridSearchCV(SVC(), grid, cv=folds(y)).fit(X, y).predict(new))


# --- few labels on a manifold


def few_labels() -> dict[str, Any]:
    """Measure learners from few labels on three sets."""

    def on_labelled(fit: Callable[[Array, Array, Array], Array]) -> Callable[..., Array]:
        def method(X: Array, few: Array) -> Array:
            known = few >= 0
            return fit(X[known], few[known], X[~known])

        return method

    def nearest(X: Array, y: Array, new: Array) -> Array:
        return np.asarray(KNeighborsClassifier(1).fit(X, y).predict(new))

    def spreading(X: Array, few: Array) -> Array:
        found = LabelSpreading(kernel="knn", n_neighbors=5, alpha=0.9, max_iter=1000).fit(X, few)
        return np.asarray(found.transduction_[few < 0])

    def learner(estimator: Any) -> Callable[..., Array]:
        def method(X: Array, few: Array) -> Array:
            return np.asarray(estimator.fit(X, few).transduction_[few < 0])

        return method

    methods = {
        "1-NN": on_labelled(nearest),
        "SVC, tuned": on_labelled(tuned_svc),
        "LabelSpreading": spreading,
        "Harmonic()": learner(Harmonic()),
        "OSK()": learner(OSK()),
        "SKL()": learner(SKL()),
    }
    rows: Rows = []
    for name, (X, y) in manifolds().items():
        for labels in (1, 2, 5, 10):
            tasks = list(_draws_of_labels(X, y, labels))
            rows += measured(methods, iter(tasks), set=name, labels=labels)
    return {"rows": rows}


def manifolds() -> dict[str, tuple[Array, Array]]:
    """Return digits, bands along a rolled sheet, and two clouds without a manifold."""
    digits, classes = load_digits(return_X_y=True)
    roll, along = make_swiss_roll(600, noise=0.3, random_state=0)
    bands = np.digitize(along, np.quantile(along, [0.25, 0.5, 0.75]))
    cancer, benign = load_breast_cancer(return_X_y=True)
    return {
        "digits": (digits[:800], classes[:800]),
        "Swiss roll": (roll, bands),
        "breast cancer": (StandardScaler().fit_transform(cancer), benign),
    }


def _draws_of_labels(X: Array, y: Array, labels: int) -> Iterator[tuple[Array, Array, Array]]:
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        known = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), labels, replace=False) for c in np.unique(y)]
        )
        few = np.full(len(y), -1)
        few[known] = y[known]
        yield X, few, y[few < 0]


# --- several kernels, groups of columns


def kernel_groups() -> dict[str, Any]:
    """Measure mixtures of a kernel for each group of columns."""
    rows: Rows = []
    weights: dict[str, Any] = {}
    for name, (X, y, groups) in grouped_sets().items():
        kernels = [rbf(columns=list(columns)) for columns in groups.values()]

        def plain(X: Array, y: Array, new: Array) -> Array:
            model = make_pipeline(StandardScaler(), SVC())
            grid = {"svc__C": PENALTIES, "svc__gamma": [w / X.shape[1] for w in WIDTHS]}
            return np.asarray(GridSearchCV(model, grid, cv=folds(y)).fit(X, y).predict(new))

        def selected(X: Array, y: Array, new: Array) -> Array:
            model = make_pipeline(StandardScaler(), SelectKBest(), SVC())
            counts = sorted({min(k, X.shape[1]) for k in (5, 10, 20, X.shape[1])})
            grid = {"selectkbest__k": counts, "svc__C": PENALTIES}
            return np.asarray(GridSearchCV(model, grid, cv=folds(y)).fit(X, y).predict(new))

        def forest(X: Array, y: Array, new: Array) -> Array:
            return np.asarray(RandomForestClassifier(200, random_state=0).fit(X, y).predict(new))

        def mixture(X: Array, y: Array, new: Array, kernels: list[Any] = kernels) -> Array:
            model = make_pipeline(StandardScaler(), MklSVC(kernels))
            return np.asarray(model.fit(X, y).predict(new))

        def sparse_mixture(X: Array, y: Array, new: Array, kernels: list[Any] = kernels) -> Array:
            model = make_pipeline(StandardScaler(), MklSVC(kernels, norm="block-l1"))
            return np.asarray(model.fit(X, y).predict(new))

        def searched(X: Array, y: Array, new: Array, kernels: list[Any] = kernels) -> Array:
            model = make_pipeline(StandardScaler(), MklSVC(kernels, tol=1e-4))
            grid = {"mklsvc__C": PENALTIES}
            return np.asarray(GridSearchCV(model, grid, cv=folds(y)).fit(X, y).predict(new))

        methods = {
            "SVC, tuned": plain,
            "SVC on selected columns, tuned": selected,
            "random forest": forest,
            "MklSVC()": mixture,
            'MklSVC(norm="block-l1")': sparse_mixture,
            "MklSVC, tuned": searched,
        }
        rows += measured(methods, _splits(X, y, 0.7), set=name)
        learner = MklSVC(kernels).fit(StandardScaler().fit_transform(X), y)
        mean = learner.weights_.mean(axis=0)
        weights[name] = {
            "groups": list(groups),
            "weights": (mean / mean.sum()).round(5).tolist(),
            "verdict": learner.result_.verdict.name,
        }
    return {"rows": rows, "weights": weights}


def grouped_sets() -> dict[str, tuple[Array, Array, dict[str, range]]]:
    """Return points, classes and named groups of columns of three sets."""
    cancer = load_breast_cancer()
    parts = {"mean": range(10), "error": range(10, 20), "worst": range(20, 30)}
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(cancer.target), 100))
    noisy = {**parts, **{f"noise {i}": range(30 + 10 * i, 40 + 10 * i) for i in range(10)}}
    digits, classes = load_digits(return_X_y=True)
    some = np.flatnonzero(np.isin(classes, (3, 5, 8)))[:400]
    rows = {f"rows {r} and {r + 1}": range(8 * r, 8 * r + 16) for r in range(0, 8, 2)}
    # Half of the sensors are dead: their readings are those of other images.
    shuffled = np.column_stack([rng.permutation(column) for column in digits[some].T])
    dead = {f"dead {name}": range(64 + span.start, 64 + span.stop) for name, span in rows.items()}
    return {
        "breast cancer": (cancer.data, cancer.target, parts),
        "breast cancer and noise": (np.hstack([cancer.data, noise]), cancer.target, noisy),
        "digits and dead sensors": (
            np.hstack([digits[some], shuffled]),
            np.unique(classes[some], return_inverse=True)[1],
            {**rows, **dead},
        ),
        "wine": (*load_wine(return_X_y=True), {name: range(i, i + 1) for i, name in _wine_names()}),
    }


def _wine_names() -> Iterator[tuple[int, str]]:
    return enumerate(load_wine().feature_names)


def _splits(X: Array, y: Array, share: float) -> Iterator[tuple[Array, Array, Array, Array]]:
    cut = StratifiedShuffleSplit(DRAWS, train_size=share, random_state=0)
    for train, test in cut.split(X, y):
        yield X[train], y[train], X[test], y[test]


# --- similarities that are no kernels


def similarities() -> dict[str, Any]:
    """Measure what learns from a matrix of similarities."""
    rows: Rows = []
    spectra: dict[str, Any] = {}
    for name, (S, X, y) in compared_sets().items():
        methods = {
            "1-NN by similarity": _nearest,
            "SVC on the vectors, tuned": lambda S, X, y, train, test: tuned_svc(
                X[train], y[train], X[test]
            ),
            "SVC, S as it is": _by_kernel(lambda values: values),
            "SVC, negative eigenvalues clipped": _by_kernel(lambda v: np.maximum(v, 0.0)),
            "SVC, eigenvalues flipped": _by_kernel(np.abs),
            "linear SVC, similarities as features": _by_features,
            "ESKL()": _by_eskl(ESKL("precomputed")),
            "ESKL, tuned": _by_eskl(
                GridSearchCV(
                    ESKL("precomputed", tol=1e-4), {"C": PENALTIES, "rho": [0.1, 1.0]}, cv=3
                )
            ),
        }
        cut = StratifiedShuffleSplit(DRAWS, train_size=0.5, random_state=0)
        tasks = ((S, X, y, train, test, y[test]) for train, test in cut.split(X, y))
        rows += measured(methods, tasks, set=name)
        two = np.flatnonzero(y < 2)
        learner = ESKL("precomputed").fit(S[np.ix_(two, two)], y[two])
        values = np.linalg.eigvalsh(S[np.ix_(two, two)] / learner.scales_[0])
        learned = np.linalg.eigvalsh(learner.kernel_)
        spectra[name] = {
            "similarity": values.round(6).tolist(),
            "kernel": learned.round(6).tolist(),
            "negative": round(float(-values[values < 0].sum() / np.abs(values).sum()), 4),
            "verdict": learner.result_.verdict.name,
        }
    return {"rows": rows, "spectra": spectra}


def compared_sets() -> dict[str, tuple[Array, Array, Array]]:
    """Return similarities, vectors and classes of images and of curves."""
    digits, classes = load_digits(return_X_y=True)
    some = np.flatnonzero(np.isin(classes, (3, 5, 8, 9)))[:360]
    images = digits[some]
    curves, kinds = cylinder_bell_funnel(240)
    return {
        "shifted digits": (
            from_distances(shift_distances(images)),
            images,
            np.unique(classes[some], return_inverse=True)[1],
        ),
        "warped curves": (from_distances(warping_distances(curves)), curves, kinds),
    }


def from_distances(D: Array) -> Array:
    """Return exp(-D / median): a similarity, and no kernel where D is no squared distance."""
    return np.exp(-D / np.median(D[D > 0]))


def shift_distances(images: Array) -> Array:
    """Return the smallest squared distance of two images when one moves by a pixel at most."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    flat = padded.reshape(len(images), -1)
    best = np.full((len(images), len(images)), np.inf)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            moved = np.roll(padded, (down, right), axis=(1, 2)).reshape(len(images), -1)
            squares = (flat**2).sum(1)[:, None] + (moved**2).sum(1) - 2 * flat @ moved.T
            best = np.minimum(best, squares)
    return np.maximum(np.minimum(best, best.T), 0.0)


def cylinder_bell_funnel(count: int) -> tuple[Array, Array]:
    """Return the curves of Saito (1994): a plateau, a rise or a fall at a random place, with noise."""
    rng = np.random.default_rng(0)
    t = np.arange(64)
    curves = np.empty((count, t.size))
    kinds = np.arange(count) % 3
    for row, kind in zip(curves, kinds, strict=True):
        begin = rng.integers(8, 16)
        end = begin + rng.integers(16, 44)
        inside = (t >= begin) & (t <= end)
        shape = [np.ones(t.size), (t - begin) / (end - begin), (end - t) / (end - begin)][kind]
        row[:] = (6 + rng.normal()) * inside * shape + rng.normal(size=t.size)
    return curves, kinds


def warping_distances(curves: Array) -> Array:
    """Return the distances by dynamic time warping, all pairs at once."""
    first, second = np.triu_indices(len(curves), 1)
    A, B = curves[first], curves[second]
    length = curves.shape[1]
    above = np.full((length + 1, first.size), np.inf)
    above[0] = 0.0
    for i in range(length):
        row = np.full((length + 1, first.size), np.inf)
        for j in range(length):
            step = np.minimum(np.minimum(above[j], above[j + 1]), row[j])
            row[j + 1] = (A[:, i] - B[:, j]) ** 2 + step
        above = row
    D = np.zeros((len(curves),) * 2)
    D[first, second] = D[second, first] = above[length]
    return D


def _nearest(S: Array, X: Array, y: Array, train: Array, test: Array) -> Array:
    return np.asarray(y[train][np.argmax(S[np.ix_(test, train)], axis=1)])


def _by_kernel(change: Callable[[Array], Array]) -> Callable[..., Array]:
    """Return an SVM, C by cross-validation, with the eigenvalues of S changed.

    New points go through the same linear map as the training points (Chen et al., 2009).
    """

    def method(S: Array, X: Array, y: Array, train: Array, test: Array) -> Array:
        own = S[np.ix_(train, train)]
        values, V = np.linalg.eigh(own)
        changed = change(values)
        ratio = np.divide(changed, values, out=np.zeros_like(values), where=values != 0)
        seen = S[np.ix_(test, train)] @ (V * ratio) @ V.T
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": PENALTIES}, cv=3)
        return np.asarray(search.fit((V * changed) @ V.T, y[train]).predict(seen))

    return method


def _by_features(S: Array, X: Array, y: Array, train: Array, test: Array) -> Array:
    model = make_pipeline(SimilarityFeatures("precomputed"), StandardScaler(), LinearSVC())
    search = GridSearchCV(model[1:], {"linearsvc__C": [0.001, 0.01, 0.1, 1.0]}, cv=3)
    features = SimilarityFeatures("precomputed").fit(S[np.ix_(train, train)])
    search.fit(features.transform(S[np.ix_(train, train)]), y[train])
    return np.asarray(search.predict(features.transform(S[np.ix_(test, train)])))


def _by_eskl(estimator: Any) -> Callable[..., Array]:
    def method(S: Array, X: Array, y: Array, train: Array, test: Array) -> Array:
        model = estimator.fit(S[np.ix_(train, train)], y[train])
        return np.asarray(model.predict(S[np.ix_(test, train)]))

    return method


SITUATIONS = {
    "few-labels": few_labels,
    "kernel-groups": kernel_groups,
    "similarities": similarities,
}


def main() -> None:
    warnings.simplefilter("ignore")
    asked = sys.argv[1:] or list(SITUATIONS)
    if not set(asked) <= set(SITUATIONS):
        sys.exit(__doc__)
    content = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in asked:
        content[name] = SITUATIONS[name]()
        content["klopt"] = __version__
        content["draws"] = DRAWS
        FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
