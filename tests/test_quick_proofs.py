"""Cheap ways to a proof say what exact rationals say: norms, narrow intervals, lifted points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from scipy import sparse

from klopt.model.cones import Cones, svec, svec_size
from klopt.model.forms import ConeForm
from klopt.proof.certificate import is_narrow
from klopt.proof.cone_slack import enclose_slack, slack_summed_exactly
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import PrimalWitness
from klopt.proof.convexity import negative_curvature
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import Enclosure, enclose_norm, enclose_product
from klopt.proof.log_det import enclose_log_det
from klopt.proof.statement import ConeStatement, QuadraticConstraint
from klopt.witness.inward import inward_point
from klopt.witness.lifting import lifted_point

sizes = st.floats(-1e150, 1e150, allow_nan=False).filter(lambda v: v == 0 or abs(v) > 1e-200)
vectors = st.lists(sizes, min_size=1, max_size=6).map(np.array)
values = st.floats(-1e6, 1e6, allow_nan=False)


def squares(x: np.ndarray) -> Fraction:
    return sum((Fraction(v) ** 2 for v in x.tolist()), Fraction(0))


@given(vectors)
@example(np.array([3e-200, 4e-200]))
@example(np.zeros(3))
def test_norms_hold_for_exact_squares(x: np.ndarray) -> None:
    exact = squares(x)
    assert Fraction(norm_up(x)) ** 2 >= exact
    found = enclose_norm(x)
    assert Fraction(max(found.lower, 0.0)) ** 2 <= exact <= Fraction(found.upper) ** 2
    assert norm_up(x) <= found.upper * (1 + 1e-12)


@given(vectors, st.floats(0, 1e10))
def test_norms_hold_for_all_that_is_enclosed(x: np.ndarray, reach: float) -> None:
    found = enclose_norm(Enclosure(x, np.full(x.size, reach)))
    farthest = [Fraction(abs(v)) + Fraction(reach) for v in x.tolist()]
    assert Fraction(found.upper) ** 2 >= sum((v**2 for v in farthest), Fraction(0))
    nearest = [max(Fraction(abs(v)) - Fraction(reach), Fraction(0)) for v in x.tolist()]
    assert Fraction(max(found.lower, 0.0)) ** 2 <= sum((v**2 for v in nearest), Fraction(0))


@given(values, st.floats(0, 2), st.floats(1e-13, 0.1))
def test_narrow_is_decided_as_in_rationals(upper: float, share: float, tol: float) -> None:
    lower = upper - share * tol * (1 + abs(upper))
    for end in (lower, np.nextafter(lower, -np.inf), np.nextafter(lower, np.inf)):
        gap = Fraction(upper) - Fraction(float(end))
        exact = gap <= Fraction(tol) * (1 + abs(Fraction(upper)))
        assert is_narrow(float(end), upper, tol) == exact


@given(st.integers(0, 10_000))
def test_a_lifted_point_is_feasible_in_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 6, 3
    X = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-3, 4)
    y = rng.normal(size=n)
    # |Xw - y| <= t, met with equality but for rounding.
    A = np.block([[X, -np.eye(n)], [-X, -np.eye(n)]])
    b = np.append(y, -y)
    c = np.append(np.zeros(k), np.ones(n))
    statement = ConeStatement(c, sparse.csc_array(A), b, Cones(nonneg=2 * n))
    w = rng.normal(size=k)
    point = lifted_point(statement, np.append(w, np.abs(X @ w - y)))
    for row, right in zip(A.tolist(), b.tolist(), strict=True):
        left = sum(Fraction(a) * Fraction(v) for a, v in zip(row, point.tolist(), strict=True))
        assert left <= Fraction(right)
    value = sum((Fraction(v) for v in point[k:].tolist()), Fraction(0))
    end = upper_bound(statement, PrimalWitness(point)).value
    assert value <= Fraction(end) <= value + Fraction(1e-9) * (1 + value)


@given(st.integers(0, 10_000))
def test_log_det_holds_in_balls(seed: int) -> None:
    from flint import arb_mat, ctx

    rng = np.random.default_rng(seed)
    F = rng.normal(size=(4, 5)) * 10.0 ** rng.integers(-4, 5, size=(4, 1))
    A = F @ F.T
    A = (A + A.T) / 2
    found = enclose_log_det(A).value
    with ctx.workprec(300):
        exact = arb_mat(A.tolist()).det().log()
        if np.isfinite(found.rad):
            assert exact.lower() >= float(found.lower)
            assert exact.upper() <= float(found.upper)


def within(found: Enclosure, exact: Fraction) -> bool:
    return abs(exact - Fraction(found.mid)) <= Fraction(found.rad)


def dot(x: np.ndarray, y: np.ndarray) -> Fraction:
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


scalars = st.floats(-1e100, 1e100, allow_nan=False).filter(lambda v: v == 0 or abs(v) > 1e-100)
shares = st.sampled_from([0.0, 2.0**-53, 1e-3, 0.5, 1.0])


@given(scalars, shares, scalars, shares, st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 0, 1]))
def test_single_numbers_are_enclosed_as_arrays_are(
    a: float, share_a: float, b: float, share_b: float, side_a: int, side_b: int
) -> None:
    x = Enclosure(a, abs(a) * share_a)
    y = Enclosure(b, abs(b) * share_b)
    exact_x = Fraction(a) + side_a * Fraction(x.rad)
    exact_y = Fraction(b) + side_b * Fraction(y.rad)
    assert Fraction(x.lower) <= exact_x <= Fraction(x.upper)
    assert abs(exact_x) <= Fraction(x.magnitude)
    assert within(x + y, exact_x + exact_y)
    assert within(x - y, exact_x - exact_y)
    assert within(x * y, exact_x * exact_y)
    quotient = x / y
    if y.rad >= abs(b):
        # The divisor may be 0.
        assert quotient.rad == np.inf
    elif np.isfinite(quotient.rad):
        assert within(quotient, exact_x / exact_y)
        narrow = 4 * (share_a + share_b + 2.0**-52) / (1 - share_b) + 1e-15
        assert quotient.rad <= narrow * abs(quotient.mid) + 1e-300
    if exact_x >= 0:
        root = x.sqrt()
        assert Fraction(max(root.lower, 0.0)) ** 2 <= exact_x <= Fraction(root.upper) ** 2


@given(st.integers(0, 10_000))
def test_dot_products_of_vectors_hold_in_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-8, 9, size=(2, 7))
    x, y = rng.normal(size=(2, 7)) * scale
    reach = np.abs(rng.normal(size=7)) * 10.0 ** rng.integers(-20, -2, size=7)
    assert within(enclose_product(x, y), dot(x, y))
    assert within(enclose_product(x, x), dot(x, x))
    wide = enclose_product(x, Enclosure(y, reach))
    # The farthest vectors enclosed, in rationals.
    spread = dot(np.abs(x), reach)
    assert within(wide, dot(x, y) + spread)
    assert within(wide, dot(x, y) - spread)


def sparse_statement(rng: np.random.Generator) -> ConeStatement:
    """Too large to be kept dense, some rows and columns empty, sizes of all kinds."""
    m, n = 90, 60
    A = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-6, 7, size=(m, 1))
    A *= rng.random((m, n)) < 0.1
    A[3] = 0.0
    A[:, 5] = 0.0
    return ConeStatement(
        rng.normal(size=n), sparse.csc_array(A), rng.normal(size=m), Cones(zero=2, nonneg=m - 2)
    )


@given(st.integers(0, 10_000))
def test_sparse_products_hold_in_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    statement = sparse_statement(rng)
    x = rng.normal(size=60) * (rng.random(60) < 0.7)
    y = rng.normal(size=90)
    A = statement.A.toarray()
    slack = enclose_slack(statement, x)
    columns, terms = statement.column_products.of(y)
    for i in range(90):
        assert within(
            Enclosure(float(slack.mid[i]), float(slack.rad[i])), exact_slack(statement, x, i)
        )
    for j in range(60):
        exact = dot(A[:, j], y)
        assert abs(exact - Fraction(columns[j])) <= Fraction(100 * 2.0**-53) * Fraction(terms[j])
    zeros = statement.row_products.are_zeros(x)
    assert zeros.tolist() == [not (A[i] * x).any() for i in range(90)]
    # A few rows summed exactly are what many rows are.
    few = slack_summed_exactly(statement, x, slack, np.array([0, 1, 7]))
    many = slack_summed_exactly(statement, x, slack, np.arange(90))
    assert few.mid[[0, 1, 7]].tolist() == many.mid[[0, 1, 7]].tolist()
    assert few.rad[[0, 1, 7]].tolist() == many.rad[[0, 1, 7]].tolist()
    assert np.array_equal(statement.few_rows(np.array([3, 8])), A[[3, 8]])


def exact_slack(statement: ConeStatement, x: np.ndarray, row: int) -> Fraction:
    return Fraction(float(statement.b[row])) - dot(statement.A.toarray()[row], x)


@given(st.integers(0, 10_000), st.booleans())
def test_products_with_curvatures_hold_in_rationals(seed: int, dense: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 6 if dense else 70
    P = rng.normal(size=(n, n)) * (1.0 if dense else rng.random((n, n)) < 0.1)
    P = P + P.T
    ball = QuadraticConstraint(sparse.csc_array(P), np.zeros(n), 1.0)
    statement = ConeStatement(
        np.zeros(n), sparse.csc_array((0, n)), np.zeros(0), Cones(), quadratics=(ball,)
    )
    x = rng.normal(size=n) * 10.0 ** rng.integers(-5, 6, size=n)
    found = statement.enclose_curvature(0, x)
    for i in range(n):
        assert within(Enclosure(float(found.mid[i]), float(found.rad[i])), dot(P[i], x))


def test_dense_matrices_without_some_variables_are_proven_convex() -> None:
    rng = np.random.default_rng(0)
    F = rng.normal(size=(5, 8))
    P = np.zeros((7, 7))
    P[1:6, 1:6] = F @ F.T
    P = (P + P.T) / 2
    assert negative_curvature(sparse.csc_array(P)) == 0.0
    P[1, 1] = -1.0
    assert negative_curvature(sparse.csc_array(P)) >= 1.0


@given(st.integers(0, 10_000))
def test_a_vertex_is_refused_exactly_where_rationals_refuse_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    B = rng.normal(size=(n, n))
    x = rng.normal(size=n)
    # All rows hold with equality but for rounding, which may go either way.
    b = B @ x
    statement = ConeStatement(np.ones(n), sparse.csc_array(B), b, Cones(nonneg=n))
    feasible = all(exact_slack(statement, x, row) >= 0 for row in range(n))
    assert np.isfinite(upper_bound(statement, PrimalWitness(x)).value) == feasible
    inside = ConeStatement(np.ones(n), sparse.csc_array(B), b + 1e-9, Cones(nonneg=n))
    assert np.isfinite(upper_bound(inside, PrimalWitness(x)).value)


@given(st.integers(0, 10_000), st.floats(1e-12, 1e-7))
def test_a_point_moved_inward_is_feasible_in_rationals(seed: int, missed: float) -> None:
    rng = np.random.default_rng(seed)
    order = 4
    V = np.linalg.qr(rng.normal(size=(order, order)))[0]
    S = (V * np.array([-missed, 0.0, 1.0, 2.0])) @ V.T
    rows = svec_size(order)
    # x is the diagonal that is added; one of its entries is bounded by what it is.
    A = np.zeros((1 + rows, order))
    A[0, 0] = 1.0
    A[1:] = -np.array([svec(np.diag(e)) for e in np.eye(order)]).T
    b = np.append(missed / 2, svec((S + S.T) / 2))
    form = ConeForm(np.ones(order), sparse.csc_array(A), b, Cones(nonneg=1, psd=(order,)))
    moved = inward_point(form, np.zeros(order))
    # A short step need not exist; where there is one, it leads inside.
    assume(moved is not None)
    assert moved is not None
    assert np.abs(moved).max() <= 1e3 * (missed + 1e-12)
    end = upper_bound(ConeStatement.of_form(form), PrimalWitness(moved))
    value = sum((Fraction(v) for v in moved.tolist()), Fraction(0))
    assert value <= Fraction(end.value) <= value + Fraction(1e-12)


def test_no_point_is_moved_inward_where_there_is_no_interior() -> None:
    # x = 0 is the only point with -x, x >= 0: no step makes both larger.
    A = sparse.csc_array([[1.0], [-1.0]])
    form = ConeForm(np.ones(1), A, np.zeros(2), Cones(nonneg=2))
    assert inward_point(form, np.array([1e-9])) is None
    # Equations leave no room.
    held = ConeForm(np.ones(1), A, np.zeros(2), Cones(zero=1, nonneg=1))
    assert inward_point(held, np.zeros(1)) is None


def test_dependent_equations_are_left_to_rationals_where_these_come_next() -> None:
    A = sparse.csc_array([[1.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    b = np.array([1.0, 1.0, 0.0, 0.0])
    statement = ConeStatement(np.array([1.0, 2.0]), A, b, Cones(zero=2, nonneg=2))
    near = PrimalWitness(np.array([0.3, 0.7 + 1e-9]))
    assert upper_bound(statement, near, ranking=False).value == np.inf
    assert upper_bound(statement, near).value == pytest.approx(1.7, abs=1e-6)
