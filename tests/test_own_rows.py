"""Multipliers of rows that variables have for themselves: no bound exceeds the value of a feasible point.

The truth is the objective at points that are feasible by construction, in rationals (1-norms) or with 60
digits (entropies and logarithms), at good and at absurd multipliers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from klopt.model.cones import Cones
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_witnesses import DualWitness
from klopt.proof.enclosure import Enclosure
from klopt.proof.own_rows import own_rows
from klopt.proof.statement import ConeStatement
from klopt.witness.own_multipliers import beside_own_rows

SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([1e-12, 1e-6, 1.0, 1e6, 1e12])


def regression(rng: np.random.Generator, scale: float = 1.0) -> tuple[ConeStatement, np.ndarray]:
    """sum of squares of D x - b plus costs times |x - h|, as a modelling language writes it: (x, r, t)."""
    m, n = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    D = rng.normal(size=(m, n)) * scale
    b = rng.normal(size=m)
    costs = rng.uniform(0.1, 1.0, n)
    eye = sparse.eye_array(n)
    A = sparse.block_array(
        [
            [sparse.csc_array(D), -sparse.eye_array(m), sparse.csc_array((m, n))],
            [eye, None, -eye],
            [-eye, None, -eye],
        ],
        format="csc",
    )
    P = sparse.diags_array(np.r_[np.zeros(n), np.full(m, 2.0), np.zeros(n)], format="csc")
    c = np.r_[np.zeros(n + m), costs]
    centre = rng.normal(size=n)
    right = np.r_[b, centre, -centre]
    statement = ConeStatement(
        c, sparse.csc_array(A), right, Cones(zero=m, nonneg=2 * n), sparse.csc_array(P)
    )
    return statement, D


def value_of_regression(statement: ConeStatement, D: np.ndarray, x: np.ndarray) -> Fraction:
    """The objective at x, r = D x - b and t = |x - h|, a feasible point, in rationals."""
    m, n = D.shape[0], (statement.b.size - D.shape[0]) // 2
    point = [Fraction(entry) for entry in x.tolist()]
    total = Fraction(0)
    for row, right in zip(D.tolist(), statement.b[:m].tolist(), strict=True):
        r = sum((Fraction(a) * p for a, p in zip(row, point, strict=True)), Fraction(0)) - Fraction(
            right
        )
        total += r * r
    costs = statement.c[n + m : n + m + n].tolist()
    centre = statement.b[m : m + n].tolist()
    for c, h, p in zip(costs, centre, point[:n], strict=True):
        total += Fraction(c) * abs(p - Fraction(h))
    return total


@given(SEEDS, SCALES, SCALES)
def test_no_bound_of_a_regression_exceeds_its_objective(
    seed: int, scale: float, size: float
) -> None:
    rng = np.random.default_rng(seed)
    statement, D = regression(rng, scale)
    m, n = D.shape
    x = rng.normal(size=n) * rng.integers(0, 2, n) / scale
    truth = value_of_regression(statement, D, x)
    # Multipliers at the point, those of its own residual, and absurd ones.
    for y in (2 * (D @ x - statement.b[:m]), rng.normal(size=m) * size, np.zeros(m)):
        full = np.r_[y, np.abs(rng.normal(size=2 * n)) * size]
        w = np.r_[x, D @ x - statement.b[:m], np.abs(x)]
        for witness in (full, beside_own_rows(statement, w, full)):
            assert lower_bound(statement, DualWitness(w, witness)).value <= truth


@given(st.floats(-50, 50), st.floats(1e-3, 1e3))
def test_the_bound_of_one_variable_is_its_soft_threshold(target: float, cost: float) -> None:
    """min (x - a)^2 + c |x| is known: at x = sign(a) max(|a| - c/2, 0)."""
    A = sparse.csc_array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]])
    P = sparse.csc_array(np.diag([0.0, 2.0, 0.0]))
    right = np.array([target, 0.0, 0.0])
    statement = ConeStatement(np.array([0.0, 0.0, cost]), A, right, Cones(zero=1, nonneg=2), P)
    x = np.sign(target) * max(abs(target) - cost / 2, 0.0)
    w = np.array([x, x - target, abs(x)])
    y = beside_own_rows(statement, w, np.array([2 * (x - target), 0.0, 0.0]))
    found = lower_bound(statement, DualWitness(w, y)).value
    a, c = abs(Fraction(target)), Fraction(cost)
    optimum = a * a if a <= c / 2 else c * a - c * c / 4
    assert found <= optimum
    assert found >= float(optimum) - 1e-12 * (1 + float(optimum))


def test_multipliers_that_a_norm_cannot_take_prove_nothing() -> None:
    """|g| <= c: at one unit in the last place too much there are no multipliers."""
    A = sparse.csc_array([[1.0, -1.0], [-1.0, -1.0]])
    statement = ConeStatement(np.array([0.0, 1.0]), A, np.zeros(2), Cones(nonneg=2))
    own = own_rows(statement)
    assert own is not None
    for g in (-np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0), 5.0, np.inf, np.nan):
        assert own.loss(np.zeros(2), Enclosure.of(np.array([g, 1.0]))) is None
    for g in (-(1 - 1e-15), 0.0, 1 - 1e-15):
        assert own.loss(np.zeros(2), Enclosure.of(np.array([g, 1.0]))) is not None


def test_rows_without_a_determinant_are_no_pair() -> None:
    A = sparse.csc_array([[1.0, -1.0], [2.0, -2.0]])
    statement = ConeStatement(np.array([0.0, 1.0]), A, np.zeros(2), Cones(nonneg=2))
    assert own_rows(statement) is None


def test_columns_are_in_one_pair_only() -> None:
    """|x| <= t and |x| <= s: x belongs to one of them."""
    A = sparse.csc_array([[1.0, -1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]])
    statement = ConeStatement(np.array([0.0, 1.0, 1.0]), A, np.zeros(4), Cones(nonneg=4))
    own = own_rows(statement)
    assert own is not None
    assert np.unique(own.columns).size == own.columns.size == 2


# Exponential cones: (t, x, 1) is t <= -x log x


def entropy_program(A: np.ndarray, b: np.ndarray, shift: float = 0.0) -> ConeStatement:
    """Minimise -sum t over A x = b and t_i <= -h(x_i + shift), h(x) = x log x, variables (t, x)."""
    m, n = A.shape
    equations = np.hstack([np.zeros((m, n)), A])
    triples = np.zeros((3 * n, 2 * n))
    triples[3 * np.arange(n), np.arange(n)] = -1.0
    triples[3 * np.arange(n) + 1, n + np.arange(n)] = -1.0
    right = np.r_[b, np.tile([0.0, shift, 1.0], n)]
    rows = sparse.csc_array(np.vstack([equations, triples]))
    return ConeStatement(np.r_[-np.ones(n), np.zeros(n)], rows, right, Cones(zero=m, exp=n))


@given(SEEDS, SCALES)
def test_no_bound_of_an_entropy_exceeds_its_objective(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    # Powers of two that add up to 1, so that the point is feasible in floats.
    x = np.ldexp(1.0, -np.arange(1, n + 1))
    x[-1] *= 2.0
    shift = float(rng.integers(0, 3))
    statement = entropy_program(np.ones((1, n)), np.ones(1), shift)
    with mpmath.workdps(60):
        moved = [mpmath.mpf(v) + mpmath.mpf(shift) for v in x.tolist()]
        truth = sum(v * mpmath.log(v) for v in moved)
        for price in (np.log(n) - 1, rng.normal() * size, 0.0):
            y = np.r_[price, rng.normal(size=3 * n) * size]
            for witness in (y, beside_own_rows(statement, np.zeros(2 * n), y)):
                found = lower_bound(statement, DualWitness(np.zeros(2 * n), witness)).value
                assert mpmath.mpf(found) <= truth


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_the_bound_of_an_entropy_is_the_logarithm(n: int) -> None:
    """Over the simplex the largest entropy is log n; the multiplier of the sum is log n - 1."""
    statement = entropy_program(np.ones((1, n)), np.ones(1))
    zero = np.zeros(2 * n)
    y = beside_own_rows(statement, zero, np.r_[np.log(n) - 1, np.tile([-1.0, -1.0, 1.0], n)])
    found = lower_bound(statement, DualWitness(zero, y)).value
    with mpmath.workdps(60):
        assert -1e-11 <= mpmath.mpf(found) + mpmath.log(n) <= 0


@given(SEEDS)
def test_a_triple_outside_the_dual_cone_proves_nothing(seed: int) -> None:
    """The multiplier of the constant row a little smaller than the other two allow."""
    rng = np.random.default_rng(seed)
    n = 3
    statement = entropy_program(np.ones((1, n)), np.ones(1))
    zero = np.zeros(2 * n)
    y = beside_own_rows(statement, zero, np.r_[rng.normal(), np.tile([-1.0, -1.0, 1.0], n)])
    assert np.isfinite(lower_bound(statement, DualWitness(zero, y)).value)
    y[1 + 2 + 3 * int(rng.integers(n))] *= 1 - 1e-9
    assert lower_bound(statement, DualWitness(zero, y)).value == -np.inf


@given(SEEDS)
def test_what_is_corrected_beside_own_rows_stays_true(seed: int) -> None:
    """A column without own rows, solved for by Lemma S1, moves the gradients of those that have them."""
    rng = np.random.default_rng(seed)
    statement, D = regression(rng)
    m, n = D.shape
    # A free column z in all equations, without a cost: multipliers must be orthogonal to it.
    z = rng.normal(size=m)
    A = sparse.hstack(
        [statement.A, sparse.csc_array(np.r_[z, np.zeros(2 * n)][:, None])], format="csc"
    )
    P = sparse.block_diag([statement.P, sparse.csc_array((1, 1))], format="csc")
    larger = ConeStatement(
        np.append(statement.c, 0.0),
        sparse.csc_array(A),
        statement.b,
        statement.cones,
        sparse.csc_array(P),
    )
    x = rng.normal(size=n)
    best = float(z @ (statement.b[:m] - D @ x) / (z @ z))
    r = D @ x + z * best - statement.b[:m]
    y = 2 * r + rng.normal(size=m) * 1e-13
    w = np.r_[x, r, np.abs(x), best]
    full = beside_own_rows(larger, w, np.r_[y, np.zeros(2 * n)])
    found = lower_bound(larger, DualWitness(w, full)).value
    truth = value_of_regression(larger, np.hstack([D, z[:, None]]), np.append(x, best))
    assert found <= truth


def test_no_multiplier_of_a_cone_with_an_own_row_moves() -> None:
    """s exp((z_1 + z_2) / s) <= 1: s has a row for itself, and all three rows stay as they are."""
    A = sparse.csc_array([[-1.0, -1.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    statement = ConeStatement(np.zeros(3), A, np.array([0.0, 0.0, 1.0]), Cones(exp=1))
    own = own_rows(statement)
    assert own is not None
    assert own.rows.tolist() == [1]
    assert own.cone_rows.tolist() == [0, 1, 2]


def test_what_own_rows_cost_is_enclosed_for_every_gradient() -> None:
    """|x - 3| <= t with cost 1: the multipliers (1 - g)/2 and (1 + g)/2 cost 3 (1 - g)/2 - 3 (1 + g)/2 = -3 g."""
    A = sparse.csc_array([[1.0, -1.0], [-1.0, -1.0]])
    statement = ConeStatement(np.array([0.0, 1.0]), A, np.array([3.0, -3.0]), Cones(nonneg=2))
    own = own_rows(statement)
    assert own is not None
    cost = own.loss(np.zeros(2), Enclosure(np.array([0.25, 1.0]), np.array([0.5, 0.0])))
    assert cost is not None
    for g in (-0.25, 0.25, 0.75):
        assert cost.lower <= -3 * g <= cost.upper


def test_a_triple_must_lie_in_its_cone_for_every_gradient() -> None:
    """(u, v, w) = (-1, -1 + g, 1) is in the dual cone, -u exp(v / u - 1) <= w, for g >= 0 only."""
    statement = entropy_program(np.ones((1, 2)), np.ones(1))
    own = own_rows(statement)
    assert own is not None
    y = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    for middle, radius, inside in ((0.1, 0.0, True), (0.1, 0.05, True), (0.1, 0.2, False)):
        v = -1.0 + middle
        gradient = Enclosure(np.array([-1.0, -1.0, v, v]), np.array([0.0, 0.0, 0.0, radius]))
        assert (own.loss(y, gradient) is not None) is inside


def test_cones_without_own_rows_are_looked_at_too() -> None:
    """|x| <= t beside an exponential cone: (1, 0, 0) is not in its dual, whatever the pair gets."""
    A = sparse.csc_array(
        [[1.0, -1.0, 0.0], [-1.0, -1.0, 0.0], [-1.0, 0.0, -1.0], [-1.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
    )
    statement = ConeStatement(
        np.array([0.0, 1.0, 0.0]), A, np.array([0.0, 0.0, 5.0, 0.0, 0.0]), Cones(nonneg=2, exp=1)
    )
    own = own_rows(statement)
    assert own is not None
    assert not np.isin(own.rows, [2, 3]).any()
    gradient = Enclosure.of(np.array([0.5, 1.0, 0.0]))
    outside = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    assert own.loss(outside, gradient) is None
    pairs = replace(
        own,
        single_rows=own.single_rows[:0],
        single_columns=own.single_columns[:0],
        single_entries=own.single_entries[:0],
    )
    assert pairs.loss(outside, gradient) is None
    assert pairs.loss(np.zeros(5), gradient) is not None
