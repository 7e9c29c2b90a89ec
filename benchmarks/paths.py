"""Cross-validation over the penalty C with proof, against the time of single SVC fits.

    python benchmarks/paths.py           some minutes
    python benchmarks/paths.py quick     800 points instead of 2000

Five folds, 50 penalties over six decades, so 250 support vector machines:

    10 SVC fits     at most 10 times the mean time of SVC.fit on all points over the 50 penalties
    GridSearchCV    the same folds and penalties by scikit-learn, kernel given by its gamma

The scores must be those of SVC, up to the points that SVC's tolerance of 1e-3 leaves undecided: its
decision value there is below 1e-2. All optima must be proven to 1e-6. CPU seconds of one BLAS
thread, in one run.
"""

from __future__ import annotations

import os

for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
from _rows import Table, best_of, cpu
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from klopt.kernels.rbf import gamma_scale
from klopt.learners.paths import cross_validate_path

N = 800 if "quick" in sys.argv[1:] else 2000
PENALTIES = np.logspace(-3, 3, 50)
FOLDS = StratifiedKFold(5)
GATE = 10.0
SVC_TOLERANCE = 1e-2


def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    X, y = make_classification(N, 20, n_informative=8, flip_y=0.05, random_state=0)
    yield "5 % of labels flipped", X, y
    X, y = make_classification(N, 10, n_informative=5, flip_y=0.2, random_state=0)
    yield "20 % of labels flipped", X, y
    X, y = load_digits(return_X_y=True)
    yield "digits 4 and 9", StandardScaler().fit_transform(X)[:N], (y % 5 == 4)[:N].astype(int)


def unexplained(X: np.ndarray, y: np.ndarray, gamma: float, differing: np.ndarray) -> int:
    """Return how many decisions differ beyond those that SVC leaves within its tolerance."""
    beyond = 0
    for fold, (train, test) in enumerate(FOLDS.split(X, y)):
        for place in np.flatnonzero(differing[fold]):
            model = SVC(C=PENALTIES[place], gamma=gamma).fit(X[train], y[train])
            open_points = np.abs(model.decision_function(X[test])) < SVC_TOLERANCE
            beyond += max(0, int(differing[fold, place]) - int(np.count_nonzero(open_points)))
    return beyond


def measure(table: Table, name: str, X: np.ndarray, y: np.ndarray) -> None:
    """Enter the rows of one data set."""
    gamma = gamma_scale(X)
    fits = [cpu(partial(SVC(C=C, gamma=gamma).fit, X, y))[0] for C in PENALTIES]
    ours, found = best_of(2, lambda: cross_validate_path(X, y, PENALTIES, gamma=gamma, cv=FOLDS))
    search = GridSearchCV(SVC(gamma=gamma), {"C": PENALTIES}, cv=FOLDS, refit=False)
    theirs, _ = cpu(lambda: search.fit(X, y))
    mean = float(np.mean(fits))
    note = f"{ours:.2f} s; SVC.fit {1e3 * mean:.0f} ms, {1e3 * np.median(fits):.0f} in the median"
    table.add(name, "cross-validation / SVC.fit", GATE, ours / mean, note, at_most=True)
    table.add(name, "GridSearchCV / ours", 10.0, theirs / ours, f"{theirs:.1f} s")
    table.add(name, "largest relative gap", 1e-6, found.relative_gap, at_most=True)
    by_fold = [search.cv_results_[f"split{i}_test_score"] for i in range(5)]
    differing = np.rint(np.abs(found.scores - np.array(by_fold)) * found.test_sizes[:, None])
    beyond = unexplained(X, y, gamma, differing)
    note = f"{differing.sum():.0f} of {PENALTIES.size * len(y)} test decisions differ"
    table.add(name, "decisions not explained", 0.0, beyond, note, at_most=True)
    print("     ", found.explain().replace("\n", "\n      "), flush=True)


def main() -> None:
    table = Table()
    for name, X, y in sets():
        measure(table, name, X, y)
    table.close()


if __name__ == "__main__":
    main()
