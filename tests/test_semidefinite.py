"""No matrix with a negative eigenvalue is taken for positive semidefinite: truth from exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from klopt.proof.semidefinite import (
    cholesky_shift,
    eigenvalue_floor,
    is_positive_semidefinite,
    radius_norm,
    spectral_norm_bound,
)

seeds = st.integers(0, 10**9).map(np.random.default_rng)


def is_psd(A: np.ndarray, margin: float = 0.0) -> bool:
    """Whether A - margin I is positive semidefinite, by elimination in rationals (lower triangle)."""
    n = len(A)
    M = [[Fraction(float(A[max(i, j), min(i, j)])) for j in range(n)] for i in range(n)]
    for i in range(n):
        M[i][i] -= Fraction(margin)
    return is_eliminated(M)


def is_eliminated(M: list[list[Fraction]]) -> bool:
    """Whether no pivot of a symmetric matrix is negative, nor 0 above anything else."""
    n = len(M)
    for k in range(n):
        pivot = M[k][k]
        if pivot < 0 or (pivot == 0 and any(M[i][k] for i in range(k + 1, n))):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, n):
            share = M[i][k] / pivot
            for j in range(k + 1, n):
                M[i][j] -= share * M[k][j]
    return True


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    """Integer, low rank, nearly singular, badly scaled: all symmetric."""
    kind = rng.integers(5)
    factor = rng.integers(-9, 10, size=(int(rng.integers(1, n + 2)), n)).astype(float)
    A = factor.T @ factor
    if kind == 1:
        A = A + np.diag(rng.integers(-2, 3, n)).astype(float)
    if kind == 2:
        A = A - 10.0 ** rng.integers(-20, 1) * np.eye(n)
    if kind == 3:
        factor = rng.normal(size=factor.shape)
        A = factor.T @ factor
    if kind == 4:
        unit = 10.0 ** rng.integers(-6, 7, n)
        A = A * np.outer(unit, unit)
    return (A + A.T) / 2


@given(seeds, st.integers(1, 7), st.sampled_from([1.0, 1e-150, 1e150, 1e-300, 2.0**-1060]))
def test_what_is_proven_is_true(rng, n, scale) -> None:
    A = symmetric(rng, n) * scale
    if is_positive_semidefinite(A):
        assert is_psd(A)
    for share in (1e-18, 1e-14, 1e-8, 1.0):
        for margin in (share * float(np.abs(A).max()), -share * float(np.abs(A).max())):
            if is_positive_semidefinite(A, margin):
                assert is_psd(A, margin)


@given(seeds, st.integers(1, 7), st.sampled_from([1.0, 1e-150, 1e150]))
def test_floors_of_the_spectrum_are_true(rng, n, scale) -> None:
    A = symmetric(rng, n) * scale
    floor = eigenvalue_floor(A)
    assert floor == -math.inf or is_psd(A, floor)
    wrong = eigenvalue_floor(A, guess=abs(float(rng.normal())) * scale * 10)
    assert wrong == -math.inf or is_psd(A, wrong)


@given(seeds, st.integers(1, 12))
def test_what_is_inside_by_a_margin_is_proven(rng, n) -> None:
    """Not by giving up: an eigenvalue of 1e-10 of the largest one is enough, and floors are sharp."""
    factor = rng.normal(size=(n, n))
    A = factor @ factor.T
    A += 1e-10 * np.trace(A) * np.eye(n)
    assert is_positive_semidefinite(A)
    assert eigenvalue_floor(A) >= np.linalg.eigvalsh(A)[0] - 1e-12 * np.trace(A)


@pytest.mark.parametrize("below", [1e-17, 1e-20, 1e-300, 5e-324])
def test_an_eigenvalue_below_zero_by_next_to_nothing(below) -> None:
    for A in (
        np.diag([1.0, -below]),
        np.array([[-below]]),
        np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 0.0)]]),
        np.array([[0.0, below], [below, 1.0]]),
    ):
        assert not is_psd(A)
        assert not is_positive_semidefinite(A)
        assert eigenvalue_floor(A) < 0


@pytest.mark.parametrize("n", [2, 3, 5, 20, 70, 130, 200])
def test_overflow_proves_nothing(n) -> None:
    """BLAS goes on where a pivot is not a number: a row with infinite entries once passed."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        A = np.eye(n) * 10.0 ** rng.integers(-300, 300)
        A[0, 0] = 10.0 ** rng.integers(-300, -100)
        i = int(rng.integers(1, n))
        A[i, 0] = A[0, i] = 10.0 ** rng.integers(250, 308)
        assert Fraction(A[i, 0]) ** 2 > Fraction(A[0, 0]) * Fraction(A[i, i])
        assert not is_positive_semidefinite(A)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_proves_nothing(number) -> None:
    for place in ((0, 0), (1, 0), (2, 2)):
        A = np.eye(3)
        A[place] = number
        assert not is_positive_semidefinite(A)
        assert eigenvalue_floor(A) == -math.inf
    assert not is_positive_semidefinite(np.eye(3), number) or number == -math.inf


def test_no_rows() -> None:
    assert is_positive_semidefinite(np.zeros((0, 0)))
    assert cholesky_shift(np.zeros((0, 0))) >= 0
    assert spectral_norm_bound(np.zeros((0, 0))) == 0


@given(seeds, st.integers(1, 6))
def test_norms_bound_every_matrix_within_the_radius(rng, n) -> None:
    """||A + E|| <= t if and only if t I - (A + E) and t I + (A + E) are positive semidefinite."""
    A = symmetric(rng, n)
    R = np.abs(rng.normal(size=(n, n)))
    R = R + R.T
    signs = np.triu(rng.choice([-1.0, 1.0], (n, n)))
    E = R * (signs + np.triu(signs, 1).T)
    t = spectral_norm_bound(A, R)
    for sign in (1, -1):
        M = [[Fraction(0)] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                M[i][j] = -sign * (Fraction(A[i, j]) + Fraction(E[i, j])) + (i == j) * Fraction(t)
        assert is_eliminated(M)
    bound = radius_norm(R)
    assert all(sum(map(Fraction, row), Fraction(0)) <= Fraction(bound) for row in R.tolist())
