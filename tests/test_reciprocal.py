"""Borrowed columns: the reciprocal rule against its definition, ties, batches of one, positive semidefiniteness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from strategies import generators, radial_gram, signs

import klopt
from klopt.errors import InvalidProblem
from klopt.kernels.neighbour_extension import extend_weights, neighbours, squared_distances
from klopt.problems import AdaptiveKernel


def by_definition(D: np.ndarray) -> list[int]:
    n, m = D.shape
    chosen = []
    for j in range(m):
        keys = []
        for i in range(n):
            r = 1 + sum((D[i, k], k) < (D[i, j], j) for k in range(m))
            s = 1 + sum((D[k, j], k) < (D[i, j], i) for k in range(n))
            keys.append((r * s, D[i, j], i))
        chosen.append(min(keys)[2])
    return chosen


@given(generators, st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_the_reciprocal_rule_is_its_definition_also_with_equal_distances(
    rng: np.random.Generator, n: int, m: int, ties: bool
) -> None:
    D = rng.integers(0, 4, size=(n, m)).astype(float) if ties else rng.random((n, m))
    assert neighbours(D).tolist() == by_definition(D)


@given(generators, st.integers(1, 9))
def test_one_new_point_borrows_from_its_nearest_neighbour(rng: np.random.Generator, n: int) -> None:
    D = rng.random((n, 1))
    assert neighbours(D).tolist() == neighbours(D, "nearest").tolist() == [int(D.argmin())]


@given(generators)
def test_the_nearest_rule_does_not_depend_on_the_batch(rng: np.random.Generator) -> None:
    D = rng.random((12, 7))
    alone = [int(neighbours(D[:, [j]], "nearest")[0]) for j in range(7)]
    assert neighbours(D, "nearest").tolist() == alone


@given(generators, st.sampled_from(["reciprocal", "nearest"]))
def test_training_points_borrow_from_themselves(rng: np.random.Generator, rule: str) -> None:
    X = rng.normal(size=(10, 3))
    D = squared_distances(X, X)
    np.fill_diagonal(D, 0.0)
    assert neighbours(D, rule).tolist() == list(range(10))


@given(generators, st.sampled_from([0.0, 0.1]), st.sampled_from(["reciprocal", "nearest"]))
def test_extended_kernel_stays_positive_semidefinite(
    rng: np.random.Generator, tau: float, rule: str
) -> None:
    X, new = rng.normal(size=(12, 2)), rng.normal(size=(8, 2))
    every = np.vstack([X, new])
    K = np.exp(-squared_distances(every, every))
    problem = AdaptiveKernel(K[:12, :12], signs(rng, 12), 2.0, 1.0, tau)
    F = problem.weights(klopt.solve(problem).require().point)
    cross, among = extend_weights(F, neighbours(squared_distances(X, new), rule))
    extended = np.block([[F, cross], [cross.T, among]])
    assert np.linalg.eigvalsh(extended)[0] > -1e-10
    assert np.linalg.eigvalsh(extended * K)[0] > -1e-10


def test_distances_are_those_between_points() -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(
        squared_distances(X, new), np.square(X[:, None] - new).sum(axis=2), atol=1e-12
    )


def test_points_far_from_the_origin_keep_their_neighbours() -> None:
    X = 1.7e9 + np.arange(100.0)[:, None]  # seconds since 1970, say
    assert neighbours(squared_distances(X, X + 0.25), "nearest").tolist() == list(range(100))
    assert squared_distances(X[:0], X).shape == (0, 100)


def test_no_new_points_borrow_nothing() -> None:
    assert neighbours(np.zeros((3, 0))).size == 0
    cross, among = extend_weights(np.eye(3), np.zeros(0, dtype=int))
    assert cross.shape == (3, 0)
    assert among.shape == (0, 0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: neighbours(np.zeros((0, 2))), "no rows"),
        (lambda: neighbours([[np.nan]]), r"distances\[0, 0\] is nan"),
        (lambda: neighbours([[1.0]], "farthest"), "rule is 'farthest'"),
        (lambda: extend_weights(np.eye(2), [2]), "expected 0 to 1"),
        (lambda: extend_weights(np.eye(2), [0.5]), "whole number"),
        (lambda: extend_weights(radial_gram(np.random.default_rng(0), 3)[:2], [0]), "square"),
        (lambda: squared_distances(np.eye(2), np.eye(3)), "expected"),
    ],
)
def test_bad_input_is_refused(call: object, text: str) -> None:
    with pytest.raises(InvalidProblem, match=text):
        call()  # type: ignore[operator]
