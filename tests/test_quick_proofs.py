"""Cheap ways to a proof say what exact rationals say: norms, narrow intervals, lifted points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, strategies as st
from scipy import sparse

from klopt.model.cones import Cones
from klopt.proof.certificate import is_narrow
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import PrimalWitness
from klopt.proof.directed import norm_up
from klopt.proof.enclosure import Enclosure, enclose_norm
from klopt.proof.log_det import enclose_log_det
from klopt.proof.statement import ConeStatement
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
