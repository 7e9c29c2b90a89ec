"""Block Lanczos finds the largest eigenpairs, copies included, the same each time, and says where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from klopt.kernels.eigenpairs import smoothest_eigenpairs
from klopt.kernels.graphs import laplacian
from klopt.numerics.lanczos import BLOCK, largest_eigenpairs


def diagonal(values):
    """An operator with given eigenvalues in a random basis, and that basis."""
    Q = np.linalg.qr(np.random.default_rng(3).normal(size=(values.size, values.size)))[0]
    return (lambda X: Q @ (values[:, None] * (Q.T @ X))), Q


@given(st.integers(0, 1000), st.integers(1, 60))
def test_pairs_are_the_largest_ones(seed, r):
    values = np.sort(np.random.default_rng(seed).normal(size=300))[::-1]
    apply, _ = diagonal(values)
    theta, V = largest_eigenpairs(apply, 300, r, norm=float(np.abs(values).max()))
    np.testing.assert_allclose(theta, values[:r], atol=1e-11)
    np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-11)
    np.testing.assert_allclose(apply(V), V * theta, atol=1e-10)


@pytest.mark.parametrize("copies", [2, BLOCK])
def test_as_many_copies_as_a_block_has_vectors_are_found(copies):
    values = np.concatenate([np.full(copies, 2.0), np.linspace(1, -1, 400)])
    theta, V = largest_eigenpairs(diagonal(values)[0], values.size, copies + 3, norm=2.0)
    np.testing.assert_allclose(theta, values[: copies + 3], atol=1e-11)
    np.testing.assert_allclose(V.T @ V, np.eye(copies + 3), atol=1e-11)


def test_a_space_that_ends_early_goes_on_in_random_directions():
    values = np.concatenate(
        [[3.0, 2.0], np.zeros(398)]
    )  # the Krylov space of any block has few dimensions
    theta, V = largest_eigenpairs(diagonal(values)[0], 400, 20, norm=3.0)
    np.testing.assert_allclose(theta, values[:20], atol=1e-11)
    np.testing.assert_allclose(V.T @ V, np.eye(20), atol=1e-11)


@pytest.mark.slow
def test_eigenvalues_too_close_are_admitted():
    n = 8_000
    path = laplacian(sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1])).tocsr()
    assert largest_eigenpairs(lambda X: X - path @ X, n, 2, norm=2.0) is None


@pytest.mark.slow
def test_long_paths_are_factorised():
    n = 8_000
    path = laplacian(sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]))
    values, V = smoothest_eigenpairs(path, 4)
    np.testing.assert_allclose(values, 1 - np.cos(np.pi * np.arange(4) / (n - 1)), atol=1e-13)
    assert np.linalg.norm(path @ V - V * values, axis=0).max() <= 1e-10


def test_more_components_than_a_block_has_vectors_are_found():
    ring = np.roll(np.eye(60), 1, axis=0)
    L = laplacian(sparse.block_diag([sparse.csr_array(ring + ring.T)] * 15))
    values, V = smoothest_eigenpairs(L, 30)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[:30], atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(30), atol=1e-9)
