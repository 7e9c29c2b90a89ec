"""Coloured maximum variance unfolding, against the same program in CVXPY."""

from __future__ import annotations

import numpy as np
import pytest

import klopt
from klopt.kernels.graphs import knn_graph
from klopt.papers.experiments.unfolding import coloured_unfolding


def test_the_program_is_the_papers() -> None:
    cp = pytest.importorskip("cvxpy")
    X = np.random.default_rng(0).normal(size=(9, 6))
    labels = np.arange(9) % 2
    unfolding = coloured_unfolding(X, labels, 3)
    result = klopt.solve(unfolding.program).require()

    K = cp.Variable((9, 9), PSD=True)
    H = np.eye(9) - 1 / 9
    L = (labels[:, None] == labels).astype(float)
    i, j = np.nonzero(np.triu(knn_graph(X, 3).toarray()))
    near = [
        K[p, p] + K[q, q] - 2 * K[p, q] == np.sum((X[p] - X[q]) ** 2)
        for p, q in zip(i, j, strict=True)
    ]
    program = cp.Problem(cp.Maximize(cp.trace(H @ K @ H @ L)), [*near, cp.sum(K) == 0])
    assert program.solve(solver="CLARABEL") == pytest.approx(result.value, rel=1e-5)
    assert result.point is not None
    found = unfolding.kernel(result.point)
    assert found.sum() == pytest.approx(0, abs=1e-9)
    assert np.sum((H @ found @ H) * L) == pytest.approx(result.value, rel=1e-6)
