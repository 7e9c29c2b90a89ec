"""Enclosures hold what exact rationals give, at every scale; elementary functions what mpmath gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import sparse

from klopt.proof.enclosure import (
    ETA,
    Enclosure,
    enclose_dot,
    enclose_kernel_product,
    enclose_norm,
    enclose_product,
    enclose_sum,
    gamma,
    round_down,
    round_up,
)

floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10.0, 10.0),
    st.floats(-1e-290, 1e-290),
    st.integers(-1000, 1000).map(lambda k: k * ETA),
    st.sampled_from([1e16, -1e16, 1.0, 3.0, 0.1, 1e308, -1e308, 5e-324, 2.0**-1022]),
)
radii = st.one_of(st.just(0.0), floats.map(abs))
sides = st.sampled_from([-1, 0, 1])


def rationals(values: np.ndarray) -> list[Fraction]:
    return [Fraction(v) for v in np.ravel(values).tolist()]


def holds(found: Enclosure, truth: Fraction, index: tuple[int, ...] | None = None) -> bool:
    """Whether the exact |truth - mid| <= rad, and the ends are on the right sides."""
    lower, upper = found.lower, found.upper
    mid, rad = found.mid, found.rad
    if index is not None:
        lower, upper, mid, rad = lower[index], upper[index], mid[index], rad[index]
    # Where nothing is known the ends are infinite or not numbers: no comparison succeeds.
    if not (math.isfinite(mid) and math.isfinite(rad)):
        return not (math.isfinite(lower) and math.isfinite(upper))
    if not abs(truth - Fraction(float(mid))) <= Fraction(float(rad)):
        return False
    below = lower == -math.inf or Fraction(float(lower)) <= truth
    above = upper == math.inf or truth <= Fraction(float(upper))
    return below and above


def corner(mid: float, rad: float, side: int) -> Fraction:
    """An exact number that Enclosure(mid, rad) holds."""
    return Fraction(mid) + side * Fraction(rad)


OPERATIONS: dict[str, tuple[Callable, Callable]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "/": (lambda a, b: a / b, lambda a, b: a / b),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(a=floats, ra=radii, b=floats, rb=radii, sa=sides, sb=sides)
@example(a=5e-324, ra=0.0, b=0.5, rb=0.0, sa=0, sb=0)
@example(a=1.0, ra=0.0, b=3.0, rb=0.0, sa=0, sb=0)
@example(a=1e308, ra=1e300, b=1e-310, rb=5e-324, sa=1, sb=-1)
@example(a=2.0**-1022, ra=5e-324, b=-(2.0**-1022), rb=5e-324, sa=1, sb=1)
@np.errstate(all="ignore")
def test_one_operation(name, a, ra, b, rb, sa, sb) -> None:
    on_enclosures, on_rationals = OPERATIONS[name]
    exact_a, exact_b = corner(a, ra, sa), corner(b, rb, sb)
    if name == "/" and exact_b == 0:
        found = on_enclosures(Enclosure(a, ra), Enclosure(b, rb))
        assert found.rad == math.inf
        return
    truth = on_rationals(exact_a, exact_b)
    assert holds(on_enclosures(Enclosure(a, ra), Enclosure(b, rb)), truth)
    vector = on_enclosures(
        Enclosure(np.array([a, a]), np.array([ra, ra])), Enclosure(np.array([b, b]), np.full(2, rb))
    )
    assert holds(vector, truth, (1,))
    if not rb and not sb:
        assert holds(on_enclosures(Enclosure(a, ra), b), truth)
    if not ra and not sa:
        assert holds(on_enclosures(a, Enclosure(b, rb)), truth)


@given(a=floats, ra=radii, sa=sides)
@np.errstate(all="ignore")
def test_unary_operations(a, ra, sa) -> None:
    x, truth = Enclosure(a, ra), corner(a, ra, sa)
    assert holds(-x, -truth)
    assert holds(abs(x), abs(truth))
    assert holds(x.positive_part(), max(truth, Fraction(0)))
    assert holds(x.square(), truth**2)
    magnitude = x.magnitude
    assert magnitude == math.inf or abs(truth) <= Fraction(magnitude)
    root = Enclosure(abs(a), 0.0).sqrt()
    assert max(Fraction(root.lower), Fraction(0)) ** 2 <= abs(Fraction(a))
    assert Fraction(root.upper) ** 2 >= abs(Fraction(a))


@given(st.lists(floats, min_size=2, max_size=2))
@np.errstate(all="ignore")
def test_what_lies_between_two_floats(ends) -> None:
    lower, upper = sorted(ends)
    found = Enclosure.between(lower, upper)
    for truth in (Fraction(lower), Fraction(upper), (Fraction(lower) + Fraction(upper)) / 2):
        assert holds(found, truth)
    both = Enclosure(np.array([lower, upper]), np.zeros(2))
    assert holds(both.maximum(), Fraction(upper))
    assert holds(both.minimum(), Fraction(lower))


vectors = st.integers(1, 40).flatmap(lambda n: st.lists(floats, min_size=n, max_size=n))


@given(vectors, st.data())
@np.errstate(all="ignore")
def test_sums(values, data) -> None:
    x = np.array(values)
    rad = np.array(data.draw(st.lists(radii, min_size=x.size, max_size=x.size)))
    side = data.draw(sides)
    truth = sum(rationals(x), Fraction(0)) + side * sum(rationals(rad), Fraction(0))
    assert holds(Enclosure(x, rad).sum(), truth)
    assert holds(Enclosure(x[None, :], rad[None, :]).sum(axis=1), truth, (0,))
    assert holds(
        enclose_sum([Enclosure(*pair) for pair in zip(values, rad.tolist(), strict=True)]), truth
    )
    exact = enclose_sum(values)
    if exact.rad == 0.0:
        assert Fraction(exact.mid) == sum(rationals(x), Fraction(0))


def test_a_sum_that_is_a_float_has_no_radius() -> None:
    assert enclose_sum([1e16, 1.0, -1e16]).rad == 0.0
    assert enclose_sum([1.0, 2.0**-60]).rad > 0.0
    assert enclose_sum([1e308, 1e308]).rad == math.inf
    assert enclose_sum([math.inf, -math.inf]).rad == math.inf
    assert enclose_sum([]).upper == 0.0


def draw_matrix(data: st.DataObject, rows: int, columns: int) -> np.ndarray:
    entries = data.draw(st.lists(floats, min_size=rows * columns, max_size=rows * columns))
    return np.array(entries).reshape(rows, columns)


@given(st.integers(1, 3), st.integers(1, 30), st.integers(1, 2), st.data())
@np.errstate(all="ignore")
def test_products(rows, inner, columns, data) -> None:
    A, B = draw_matrix(data, rows, inner), draw_matrix(data, inner, columns)
    rad_A, rad_B = np.abs(draw_matrix(data, rows, inner)), np.abs(draw_matrix(data, inner, columns))
    side = data.draw(sides)
    exact_B = [
        [corner(b, r, side) for b, r in zip(*pair, strict=True)]
        for pair in zip(B.tolist(), rad_B.tolist(), strict=True)
    ]
    exact_A = [
        [corner(a, r, side) for a, r in zip(*pair, strict=True)]
        for pair in zip(A.tolist(), rad_A.tolist(), strict=True)
    ]
    plain_A = [[Fraction(a) for a in row] for row in A.tolist()]
    with_radii = enclose_product(Enclosure(A, rad_A), Enclosure(B, rad_B))
    dense = enclose_product(A, Enclosure(B, rad_B))
    thin = enclose_product(sparse.csr_array(A), Enclosure(B, rad_B))
    for i in range(rows):
        for j in range(columns):
            truth = sum((exact_A[i][k] * exact_B[k][j] for k in range(inner)), Fraction(0))
            assert holds(with_radii, truth, (i, j))
            truth = sum((plain_A[i][k] * exact_B[k][j] for k in range(inner)), Fraction(0))
            assert holds(dense, truth, (i, j))
            assert holds(thin, truth, (i, j))
    truth = sum((plain_A[0][k] * Fraction(B[k, 0]) for k in range(inner)), Fraction(0))
    assert holds(enclose_dot(A[0], B[:, 0]), truth)


def test_many_products_that_underflow() -> None:
    """Each of them loses up to half of eta, and so does each radius: none may be forgotten."""
    n = 1000
    a = np.full(n, 1.5 * 2.0**-537)
    truth = n * Fraction(a[0]) ** 2
    for found in (
        enclose_dot(a, a),
        enclose_dot(Enclosure(a, a / 2), Enclosure(a, a / 2)),
        (Enclosure.of(a) * a).sum(),
    ):
        assert holds(found, truth)
    spread = enclose_dot(Enclosure(np.zeros(n), a), Enclosure(np.zeros(n), a))
    assert holds(spread, truth)
    assert holds(spread, -truth)


@given(vectors)
@np.errstate(all="ignore")
def test_norms(values) -> None:
    x = np.array(values)
    found = enclose_norm(x)
    square = sum((v * v for v in rationals(x)), Fraction(0))
    lower, upper = found.lower, found.upper
    assert not math.isfinite(lower) or max(Fraction(lower), Fraction(0)) ** 2 <= square
    assert not math.isfinite(upper) or Fraction(upper) ** 2 >= square


@given(floats, st.floats(0.0, 10.0))
def test_elementary_functions(x, rad) -> None:
    mpmath.mp.prec = 200
    with np.errstate(all="ignore"):
        exponential, logarithm = Enclosure(x, rad).exp(), Enclosure(abs(x), 0.0).log()
    for side in (-1, 1):
        point = mpmath.mpf(x) + side * mpmath.mpf(rad)
        if abs(point) < 1e6:
            truth = mpmath.exp(point)
            assert not math.isfinite(exponential.lower) or exponential.lower <= truth
            assert not math.isfinite(exponential.upper) or truth <= exponential.upper
    if x:
        truth = mpmath.log(abs(mpmath.mpf(x)))
        assert logarithm.lower <= truth <= logarithm.upper
    else:
        assert logarithm.rad == math.inf


@pytest.mark.parametrize("function", ["exp", "log"])
def test_elementary_functions_are_within_their_bound(function) -> None:
    """Lemma E3 on many points, next to 1 and at the ends of the range too."""
    mpmath.mp.prec = 120
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-700, 700, 500), rng.normal(size=500), 1 + 1e-9 * rng.normal(size=500)]
    )
    if function == "log":
        x = np.concatenate([np.exp(x[:500]), np.abs(x[500:]), [5e-324, 1e308, 1.0]])
    found = getattr(Enclosure(x, np.zeros(x.size)), function)()
    for point, low, high in zip(
        x.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True
    ):
        truth = getattr(mpmath, function)(mpmath.mpf(point))
        assert low <= truth <= high
        # An argument without room below has a logarithm without a lower bound.
        assert point == 5e-324 or high - low <= 1e-12 * abs(truth) + 1e-15


@given(st.integers(1, 8), st.integers(0, 10**6), st.integers(-3, 3))
def test_products_with_a_kernel(n, seed, power) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.integers(-9, 10, size=(n, n))
    K = 10.0**power * (factor @ factor.T).astype(float)
    v, rad = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n), np.abs(rng.normal(size=n))
    floor = -1e-12 * float(K.trace())  # more than the rounding of 10^power K
    found = enclose_kernel_product(K, Enclosure(v, rad), floor)
    side = [Fraction(int(s)) for s in rng.choice([-1, 1], n)]
    moved = [a + s * r for a, s, r in zip(rationals(v), side, rationals(rad), strict=True)]
    for i in range(n):
        truth = sum((k * a for k, a in zip(rationals(K[i]), moved, strict=True)), Fraction(0))
        assert holds(found, truth, (i,))


def test_a_kernel_with_a_negative_diagonal_is_bounded_by_its_size() -> None:
    K = np.array([[-0.1]])
    found = enclose_kernel_product(K, np.array([0.3]), -0.1)
    assert holds(found, Fraction(-0.1) * Fraction(0.3), (0,))


def test_directed_rounding_and_gamma() -> None:
    assert round_down(1.0) < 1.0 < round_up(1.0)
    for n in (1, 10, 10**6):
        share = Fraction(n, 2**53)
        assert share / (1 - share) <= Fraction(gamma(n))
    assert gamma(2**53) == math.inf


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_proves_no_comparison(number) -> None:
    with np.errstate(all="ignore"):
        for x in (
            Enclosure.of(number) - number,
            Enclosure.of(number) * 0.0,
            Enclosure.of(1.0) / 0.0,
        ):
            assert not (x.lower > -1e300 and x.upper < 1e300)
