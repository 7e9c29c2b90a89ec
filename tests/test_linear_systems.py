"""Corrections of linear systems exist within their bound: the shortest ones, in exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, strategies as st
from scipy import sparse

from klopt.proof.enclosure import Enclosure
from klopt.proof.exact_sums import exact_dot, exact_row_sums, two_products
from klopt.proof.linear_systems import shortest_correction

seeds = st.integers(0, 10**9).map(np.random.default_rng)


def exactly(values: np.ndarray) -> fmpq_mat:
    rows = [[fmpq(*float(v).as_integer_ratio()) for v in row] for row in values.tolist()]
    return fmpq_mat(rows)


def shortest_square(B: np.ndarray, r: np.ndarray) -> Fraction:
    """||d||^2 = r'(BB')^-1 r of the shortest d with B d = -r, for independent rows."""
    exact = exactly(B)
    right = exactly(r[:, None])
    square = right.transpose() * (exact * exact.transpose()).solve(right)
    return Fraction(int(square[0, 0].p), int(square[0, 0].q))


@given(seeds, st.integers(1, 5), st.integers(0, 4), st.integers(-8, 8), st.booleans())
def test_the_shortest_correction_is_within_the_bound(rng, m, more, power, as_sparse) -> None:
    B = rng.integers(-9, 10, size=(m, m + more)) * 10.0 ** rng.integers(
        -power - 8, 8 - power, (m, 1)
    )
    r = rng.normal(size=m) * 10.0**power
    bound = shortest_correction(sparse.csr_array(B) if as_sparse else B, Enclosure.of(r))
    if math.isfinite(bound):
        square = shortest_square(B, r)
        assert Fraction(bound) ** 2 >= square
        # Rows that have columns of their own are solved there, which need not be the shortest way.
        if not as_sparse:
            assert bound**2 <= 1.01 * float(square)


@given(seeds, st.integers(1, 4), st.integers(0, 3))
def test_it_holds_for_every_right_hand_side_and_matrix_within_the_radius(rng, m, more) -> None:
    B = rng.normal(size=(m, m + more))
    r, rad = rng.normal(size=m), 0.1 * np.abs(rng.normal(size=m))
    share = float(rng.choice([1e-15, 1e-3]))
    bound = shortest_correction(B, Enclosure(r, rad), share)
    if math.isfinite(bound):
        for _ in range(5):
            near = B * (1 + share * rng.choice([-0.999, 0.0, 0.999], B.shape))
            moved = r + 0.999 * rad * rng.choice([-1.0, 1.0], m)
            assert Fraction(bound) ** 2 >= shortest_square(near, moved)


@given(seeds, st.integers(2, 5))
def test_dependent_rows_have_no_bound(rng, m) -> None:
    """Exactly singular, though rounding makes a factor look regular."""
    B = rng.integers(-9, 10, size=(m, m + 2)).astype(float) / 7
    B[-1] = 4 * B[0] if rng.integers(2) else 0.0
    assert shortest_correction(B, Enclosure.of(rng.normal(size=m))) == math.inf
    assert shortest_correction(B[:, : m - 1], Enclosure.of(np.ones(m))) == math.inf


def test_nearly_singular_systems_are_bounded_truly_or_not_at_all() -> None:
    for gap in 10.0 ** np.arange(-18.0, 0.0):
        B = np.array([[1.0, 1.0], [1.0, 1.0 + gap]])
        bound = shortest_correction(B, Enclosure.of(np.array([1.0, 0.0])))
        if math.isfinite(bound):
            assert Fraction(bound) ** 2 >= shortest_square(B, np.array([1.0, 0.0]))
    assert math.isfinite(bound)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-200, 1e-100, 1e100, 1e200, 1e300])
def test_tiny_and_huge_systems(scale) -> None:
    """Scaling rows to unit size must not lose what underflows."""
    B, r = np.array([[3.0 * scale, scale * 1e-9]]), np.array([scale])
    bound = shortest_correction(B, Enclosure.of(r))
    assert bound == math.inf or Fraction(bound) ** 2 >= shortest_square(B, r)
    wide = np.array([[1e300, 1e-300], [0.0, 1e-300]])
    bound = shortest_correction(wide, Enclosure.of(np.array([1.0, 1e-300])))
    assert bound == math.inf or Fraction(bound) ** 2 >= shortest_square(
        wide, np.array([1.0, 1e-300])
    )


def test_what_is_no_number_has_no_bound() -> None:
    one = Enclosure.of(np.ones(1))
    assert shortest_correction(np.array([[math.nan, 1.0]]), one) == math.inf
    assert (
        shortest_correction(np.array([[1.0]]), Enclosure(np.ones(1), np.array([math.inf])))
        == math.inf
    )
    assert shortest_correction(np.zeros((0, 3)), Enclosure.of(np.zeros(0))) == 0.0


ordinary = st.floats(-1e140, 1e140).filter(lambda v: v == 0 or abs(v) > 1e-130)
anything = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=8))
def test_products_are_sums_of_two_floats(pairs) -> None:
    a, b = np.array(pairs).T
    p, e = two_products(a, b)
    for x, y, high, low in zip(a.tolist(), b.tolist(), p.tolist(), e.tolist(), strict=True):
        assert Fraction(x) * Fraction(y) == Fraction(high) + Fraction(low)


@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=8), st.booleans())
def test_sums_of_products_hold_and_are_zero_only_where_they_are(pairs, cancel) -> None:
    a, b = np.array(pairs).T
    if cancel:
        a, b = np.concatenate([a, -a]), np.concatenate([b, b])
    truth = sum(
        (Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)),
        Fraction(0),
    )
    row = sparse.csr_array((a, np.arange(a.size), np.array([0, a.size])), shape=(1, a.size))
    by_row = exact_row_sums([(row, b)], np.zeros(1))
    for found in (exact_dot(a, b), by_row[0]):
        mid, rad = float(found.mid), float(found.rad)
        assert rad == math.inf or abs(Fraction(mid) - truth) <= Fraction(rad)
        assert rad != 0.0 or Fraction(mid) == truth


def test_a_sum_that_cancels_is_exactly_zero_and_one_that_nearly_does_is_not() -> None:
    big, one = np.array([1e16, 1.0, -1e16, -1.0]), np.ones(4)
    assert exact_dot(big, one).mid == 0.0
    off = big + np.array([0.0, 2.0**-52, 0.0, 0.0])
    found = exact_dot(off, one)
    assert (found.mid, found.rad) == (2.0**-52, 0.0)
    # 0.1 * 3 - 0.3 is not 0 as exact numbers.
    assert exact_dot(np.array([0.1, -0.3]), np.array([3.0, 1.0])).mid != 0.0
