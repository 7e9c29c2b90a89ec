"""Power cones in the trusted core: membership decided in rationals, forged points an ulp outside."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

import klopt
from klopt import Cones, Verdict
from klopt.model.cones.power import exponents
from klopt.problems import ConeProgram
from klopt.proof.cone_infeasibility import is_infeasible, is_ray
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_upper_bound import upper_bound
from klopt.proof.cone_witnesses import DualWitness, PrimalWitness
from klopt.proof.enclosure import Enclosure
from klopt.proof.power_cones import dual_power_room, in_dual_power_cones, in_power_cones
from klopt.proof.statement import ConeStatement

WEIGHTS = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
ENTRIES = st.floats(2.0**-40, 2.0**40)


def largest_member(weights, x, dual=False):
    """The largest float z with z^W <= x^w, or for the dual <= (u/a)^w, found in rationals."""
    total = sum(weights)
    product = Fraction(1)
    for weight, entry in zip(weights, x, strict=True):
        share = Fraction(entry) * total / weight if dual else Fraction(entry)
        product *= share**weight
    z = math.exp(
        sum(weight * math.log(entry) for weight, entry in zip(weights, x, strict=True)) / total
    )
    if dual:
        z *= math.exp(sum(w * math.log(total / w) for w in weights) / total)
    z = Fraction(z)
    ulps = 64
    found = float(z)
    for _ in range(ulps):
        found = math.nextafter(found, 0.0)
    while Fraction(math.nextafter(found, math.inf)) ** total <= product:
        found = math.nextafter(found, math.inf)
    assert Fraction(found) ** total <= product
    return found


@given(WEIGHTS, st.data(), st.sampled_from([-1.0, 1.0]))
def test_membership_is_decided_to_the_last_bit(weights, data, sign):
    x = data.draw(st.lists(ENTRIES, min_size=len(weights), max_size=len(weights)))
    for dual, inside in ((False, in_power_cones), (True, in_dual_power_cones)):
        # Whole numbers without a common divisor are what `Cones` keeps; others mean the same.
        z = largest_member(weights, x, dual)
        member = np.array([*x, sign * z])
        forged = np.array([*x, sign * math.nextafter(z, math.inf)])
        assert inside((weights,), Enclosure.of(member))
        assert not inside((weights,), Enclosure.of(forged))


@given(st.floats(0.001, 0.999), ENTRIES, ENTRIES)
def test_exponents_that_are_floats_are_taken_as_they_are(alpha, x, y):
    """x^alpha y^(1 - alpha) by 80 digits, against the floats next to it."""
    cones = Cones(power=(alpha,)).power
    with mpmath.workdps(80):
        a = mpmath.mpf(alpha)
        mean = mpmath.mpf(x) ** a * mpmath.mpf(y) ** (1 - a)
        dual = (mpmath.mpf(x) / a) ** a * (mpmath.mpf(y) / (1 - a)) ** (1 - a)
        for true, inside in ((mean, in_power_cones), (dual, in_dual_power_cones)):
            near = float(true)
            for z in (math.nextafter(near, 0.0), near, math.nextafter(near, math.inf)):
                # x = y is on the boundary for every alpha, and decided without logarithms.
                expected = mpmath.mpf(z) <= true
                assert inside(cones, Enclosure.of(np.array([x, y, -z]))) == expected


def test_at_the_boundary_only_exact_numbers_decide():
    half = Cones(power=(0.5,)).power
    assert in_power_cones(half, Enclosure.of(np.array([2.0, 8.0, 4.0])))
    assert not in_power_cones(half, Enclosure.of(np.array([2.0, 8.0, np.nextafter(4.0, 5.0)])))
    third = Cones(power=((1, 1, 1),)).power
    assert in_power_cones(third, Enclosure.of(np.array([1.0, 4.0, 2.0, -2.0])))
    for point, true in (
        ([0.0, 1.0, 0.0], True),
        ([0.0, 1.0, 5e-324], False),
        ([-5e-324, 1.0, 0.0], False),
        ([5e-324, 5e-324, 5e-324], True),
        ([0.0, 0.0, 0.0], True),
        ([np.inf, 1.0, 1.0], False),
        ([1.0, 1.0, np.nan], False),
    ):
        assert in_power_cones(half, Enclosure.of(np.array(point))) is true
        assert in_dual_power_cones(half, Enclosure.of(np.array(point))) is true


@given(WEIGHTS, st.integers(0, 2**32 - 1))
def test_no_number_enclosed_may_leave_the_cone(weights, seed):
    rng = np.random.default_rng(seed)
    k = len(weights)
    x = rng.uniform(0.5, 2.0, k)
    rad = rng.uniform(0.0, 0.2, k + 1) * rng.integers(0, 2, k + 1)
    z = rng.uniform(0.1, 2.0)
    mid = np.append(x, z)
    if not in_power_cones((weights,), Enclosure(mid, rad)):
        # The worst corner, in rationals, is outside or next to the boundary.
        corner = [Fraction(m) - Fraction(r) for m, r in zip(x, rad[:-1], strict=True)]
        top = Fraction(z) + Fraction(rad[-1])
        product = math.prod(c**w for c, w in zip(corner, weights, strict=True))
        assert float(product / top ** sum(weights)) < 1 + 1e-12
        return
    for _ in range(20):
        point = mid + rng.choice([-1.0, 0.0, 1.0], k + 1) * rad * (1 - 1e-12)
        product = math.prod(
            Fraction(c) ** w for c, w in zip(point[:-1].tolist(), weights, strict=True)
        )
        assert product >= abs(Fraction(point[-1])) ** sum(weights)


@given(WEIGHTS, st.integers(0, 2**32 - 1))
def test_no_change_of_the_length_of_the_room_leaves_the_dual_cone(weights, seed):
    rng = np.random.default_rng(seed)
    k = len(weights)
    u = rng.uniform(0.1, 2.0, k)
    y = np.append(u, 0.9 * largest_member(weights, u.tolist(), dual=True))
    room = dual_power_room((weights,), y)
    assert (room == room[0]).all()
    assert room[0] > 0
    for _ in range(20):
        d = rng.normal(size=k + 1)
        moved = y + d / np.linalg.norm(d) * room[0] * (1 - 1e-12)
        assert in_dual_power_cones((weights,), Enclosure.of(moved))
    outside = np.append(u, 2 * y[-1])
    assert not dual_power_room((weights,), outside).any()


def means(alpha):
    """Maximise z over z <= x^alpha y^(1 - alpha), x + y = 1: the optimum is alpha^alpha (1-alpha)^(1-alpha)."""
    A = sparse.csc_array([[1.0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]])
    return ConeStatement(
        np.array([0.0, 0, -1]), A, np.array([1.0, 0, 0, 0]), Cones(zero=1, power=(alpha,))
    )


@given(st.floats(0.01, 0.99))
def test_bounds_of_a_weighted_mean(alpha):
    """Both ends hold by 60 digits, are tight at the true pair, and are missing at forged ones."""
    statement = means(alpha)
    with mpmath.workdps(60):
        a = mpmath.mpf(alpha)
        best = a**a * (1 - a) ** (1 - a)
    rest = 1 - alpha
    # x, y and their mean, a little lower; multipliers (l, l, -1) with (l/a)^a (l/(1-a))^(1-a) = 1.
    z = float(best) * (1 - 1e-12)
    upper = upper_bound(statement, PrimalWitness(np.array([alpha, rest, z])))
    assert -best <= upper.value <= -best + 2e-12
    high = float(best) * (1 + 1e-12)
    y = np.array([high, high, high, -1.0])
    lower = lower_bound(statement, DualWitness(np.zeros(3), y))
    assert -best >= lower.value >= -best - 2e-12
    # Forged: a mean too large, multipliers outside the dual cone.
    forged = np.array([alpha, rest, float(best) * (1 + 1e-9)])
    assert upper_bound(statement, PrimalWitness(forged)).value == np.inf
    low = float(best) * (1 - 1e-9)
    outside = np.array([low, low, low, -1.0])
    assert lower_bound(statement, DualWitness(np.zeros(3), outside)).value == -np.inf


def test_a_constant_outside_the_cone_is_a_contradiction_by_the_dual_cone_only():
    """(1, 1, 1 + ulp) is no member; y = (1/2, 1/2, -1) refutes it, what lies outside K* does not."""
    A = sparse.csc_array((3, 1))
    b = np.array([1.0, 1.0, np.nextafter(1.0, 2.0)])
    statement = ConeStatement(np.zeros(1), A, b, Cones(power=(0.5,)))
    assert is_infeasible(statement, DualWitness(np.zeros(1), np.array([0.5, 0.5, -1.0])))
    forged = np.array([np.nextafter(0.5, 0.0), 0.5, -1.0])
    assert not is_infeasible(statement, DualWitness(np.zeros(1), forged))
    true = ConeStatement(np.zeros(1), A, np.ones(3), Cones(power=(0.5,)))
    assert not is_infeasible(true, DualWitness(np.zeros(1), np.array([0.5, 0.5, -1.0])))


def test_rays_lie_in_the_cone():
    """Minimise -z over (x, y, z) in the cone: (1, 1, 1) is a ray, (1, 1, 1 + ulp) is none."""
    statement = ConeStatement(
        np.array([0.0, 0.0, -1.0]),
        -sparse.eye_array(3, format="csc"),
        np.zeros(3),
        Cones(power=(0.25,)),
    )
    assert is_ray(statement, np.array([1.0, 1.0, 1.0]))
    assert not is_ray(statement, np.array([1.0, 1.0, np.nextafter(1.0, 2.0)]))


SHORT = (0.25, 0.6)
LONG = (0.3, (1, 2, 3))


@pytest.mark.parametrize(
    ("backend", "power"),
    [("scs", SHORT), ("clarabel", SHORT), ("clarabel", LONG), ("cvxpy", SHORT), ("cvxpy", LONG)],
)
def test_programs_over_power_cones_are_proven_optimal(backend, power):
    """The largest weighted sum of means over a simplex, whose optimum lies inside."""
    cones = Cones(power=power)
    widths = [len(weights) for weights in cones.power]
    n = sum(widths) + len(widths)
    A = np.zeros((2 + cones.size, n))
    A[0, : sum(widths)] = 1.0
    A[1, 0] = 1.0
    row, column = 2, 0
    for index, width in enumerate(widths):
        A[row : row + width, column : column + width] = -np.eye(width)
        A[row + width, sum(widths) + index] = -1.0
        row += width + 1
        column += width
    c = np.zeros(n)
    c[sum(widths) :] = [1.0, 2.0]
    b = np.zeros(len(A))
    b[:2] = [1.0, 0.5]
    program = ConeProgram(None, c, A, b, Cones(zero=1, nonneg=1, power=power), sense="max")
    result = klopt.solve(program, backend)
    assert result.verdict is Verdict.OPTIMAL
    # All of the simplex goes to the larger of w_k a^a, since a mean of shares t x is t times theirs.
    with mpmath.workdps(40):
        best = max(
            weight
            * mpmath.fprod(mpmath.mpf(float(a)) ** mpmath.mpf(float(a)) for a in exponents(w))
            for weight, w in zip((1, 2), cones.power, strict=True)
        )
    assert result.lower - 1e-12 <= best <= result.upper + 1e-12
