"""Losses of kernels with respect to pairs, against their definitions term by term."""

from __future__ import annotations

from math import exp, log1p

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.errors import InvalidProblem
from klopt.kernels.graphs import supervised_targets
from klopt.kernels.pair_losses import hinge_loss, log_loss, scg_loss


@given(st.integers(0, 10**6))
def test_losses_are_their_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    A = random.normal(size=(5, 5))
    K = A @ A.T
    T = np.triu(random.integers(-1, 2, (5, 5)), 1)
    T = (T + T.T).astype(float)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j and T[i, j]]
    hinge = sum(max(0.0, 1 - T[i, j] * K[i, j]) for i, j in pairs)
    assert hinge_loss(K, T) == pytest.approx(hinge)
    logistic = sum(log1p(exp(-T[i, j] * K[i, j])) for i, j in pairs)
    assert log_loss(K, T) == pytest.approx(logistic)


def test_the_loss_of_the_graph_is_the_sum_over_its_edges() -> None:
    """(10) over unordered pairs: W_ij |phi_i / sqrt(D_ii) - phi_j / sqrt(D_jj)|^2."""
    random = np.random.default_rng(3)
    phi = random.normal(size=(6, 3))
    T = supervised_targets([0, 0, 1, 1, 2, -1])
    W = np.exp(T)
    scaled = phi / np.sqrt(W.sum(axis=1))[:, None]
    edges = [
        W[i, j] * np.sum((scaled[i] - scaled[j]) ** 2) for i in range(6) for j in range(i + 1, 6)
    ]
    assert scg_loss(phi @ phi.T, T) == pytest.approx(sum(edges))


def test_targets_are_signs() -> None:
    with pytest.raises(InvalidProblem, match=r"T\[0, 1\] is 2; expected -1, 0 or 1"):
        hinge_loss(np.eye(2), [[0, 2], [2, 0]])
