"""Learned kernels on new points: the change on the training block says it all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import generators

from klopt.errors import InvalidProblem
from klopt.kernels.out_of_sample import ExtendedFeatures, ExtendedKernel


def change(rng, K0, rank):
    """A change Q of some points J with I + F Q F' positive definite: that of K^-1 = K0^-1 + E E', say."""
    J = np.sort(rng.permutation(len(K0))[:rank])
    E = rng.normal(size=(rank, rank))
    return J, -E @ np.linalg.inv(np.eye(rank) + E.T @ K0[np.ix_(J, J)] @ E) @ E.T


@given(rng=generators)
def test_a_change_of_some_points_is_recovered_and_stays_a_kernel(rng):
    F = rng.normal(size=(12, 12))
    K_all = F @ F.T
    K0, cross0, new0 = K_all[:8, :8], K_all[8:, :8], K_all[8:, 8:]
    J, Q = change(rng, K0, 3)
    learned = ExtendedKernel(K0, Q, J)
    K = K0 + K0[:, J] @ Q @ K0[J]
    np.testing.assert_allclose(learned.cross(K0), K, atol=1e-12 * np.abs(K0).max())
    np.testing.assert_allclose(learned.among(K0, K0), K, atol=1e-12 * np.abs(K0).max())
    cross, new = learned.cross(cross0), learned.among(cross0, new0)
    assert (new == new.T).all()
    joint = np.block([[K, cross.T], [cross, new]])
    assert np.linalg.eigvalsh(joint)[0] >= -1e-12 * np.trace(joint)
    padded = np.zeros((8, 8))
    padded[np.ix_(J, J)] = Q
    whole = ExtendedKernel(K0, padded)
    np.testing.assert_allclose(whole.cross(cross0), cross, atol=1e-10)
    np.testing.assert_allclose(whole.among(cross0, new0), new, atol=1e-10)


@given(rng=generators)
def test_the_printed_change_is_the_same_function(rng):
    # Q = K0^-1 (K - K0) K0^-1 of (6), which needs a definite K0.
    F = rng.normal(size=(9, 9))
    K_all = F @ F.T + 0.1 * np.eye(9)
    K0 = K_all[:6, :6]
    J, Q = change(rng, K0, 2)
    learned = ExtendedKernel(K0, Q, J)
    inverse = np.linalg.inv(K0)
    printed = inverse @ (learned.cross(K0) - K0) @ inverse
    expected = K_all[6:, 6:] + K_all[6:, :6] @ printed @ K_all[:6, 6:]
    np.testing.assert_allclose(learned.among(K_all[6:, :6], K_all[6:, 6:]), expected, atol=1e-6)


@given(rng=generators)
def test_features_make_a_kernel_of_any_points(rng):
    phi, C = rng.normal(size=(7, 4)), rng.normal(size=(4, 3))
    learned = ExtendedFeatures(C)
    K = learned.among(phi)
    assert (K == K.T).all()
    np.testing.assert_allclose(K, phi @ C @ C.T @ phi.T, atol=1e-12)
    np.testing.assert_allclose(learned.cross(phi[:2], phi), K[:2], atol=1e-12)
    np.testing.assert_allclose(learned.features(phi) @ learned.features(phi).T, K, atol=1e-12)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: ExtendedKernel(np.eye(3), np.eye(2)), "Q is 2 x 2; expected 3 x 3"),
        (lambda: ExtendedKernel(np.eye(3), np.eye(3), np.array([0])), "expected 1 x 1"),
        (
            lambda: ExtendedKernel(np.eye(3), np.eye(3)).cross(np.ones((1, 2))),
            "cross0 is 1 x 2; expected any x 3",
        ),
        (lambda: ExtendedKernel(np.eye(3), np.eye(3)).cross([[np.nan, 0, 0]]), "cross0"),
        (
            lambda: ExtendedKernel(np.eye(3), np.eye(3)).among(np.ones((1, 3)), np.eye(2)),
            "new0 is 2 x 2",
        ),
        (
            lambda: ExtendedKernel(np.eye(1), np.eye(1)).among(np.ones((2, 1)), [[1, 2], [0, 1]]),
            "not symmetric",
        ),
        (lambda: ExtendedFeatures(np.eye(2)).features(np.ones((1, 3))), "phi is 1 x 3"),
        (
            lambda: ExtendedFeatures(np.eye(2)).cross(np.ones((1, 2)), np.ones((4, 3))),
            "others has shape",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(run, message):
    with pytest.raises(InvalidProblem, match=message):
        run()
