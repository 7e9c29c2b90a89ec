"""The cones: every projection is the nearest point, every dual is the dual, svec is an isometry."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from klopt.errors import InvalidProblem
from klopt.model.cones import Cones, order_of, smat, svec, svec_size
from klopt.model.cones.exponential import project_exponential
from klopt.model.cones.power import exponents, project_power
from klopt.model.features import Feature

products = st.builds(
    Cones,
    zero=st.integers(0, 2),
    nonneg=st.integers(0, 3),
    soc=st.lists(st.integers(0, 4), max_size=2),
    psd=st.lists(st.integers(0, 4), max_size=2),
    exp=st.integers(0, 2),
    power=st.lists(
        st.floats(0.01, 0.99) | st.lists(st.floats(0.1, 9.0), min_size=1, max_size=4), max_size=2
    ),
)
seeds = st.integers(0, 2**32 - 1)


def numbers_of_any_size(rng, size):
    return rng.normal(size=size) * 10.0 ** rng.uniform(-6, 4, size=size) * (rng.random(size) > 0.1)


def member(K, rng, *, dual=False):
    """A point of K (or of K*), made from the definition of each cone."""
    s = np.empty(K.size)
    for kind, rows in K.blocks():
        count = rows.stop - rows.start
        if kind == "zero":
            s[rows] = rng.normal(size=count) if dual else 0.0
        elif kind == "nonneg":
            s[rows] = rng.exponential(size=count) * rng.integers(0, 2, count)
        elif kind == "soc":
            tail = rng.normal(size=count - 1)
            s[rows] = [np.linalg.norm(tail) + rng.choice([0.0, 1.0]), *tail]
        elif kind == "psd":
            factor = rng.normal(size=(order_of(count), int(rng.integers(1, 4))))
            s[rows] = svec(factor @ factor.T)
        elif kind == "power":
            s[rows] = np.concatenate([power_member(weights, rng, dual) for weights in K.power])
        else:
            s[rows] = np.concatenate([exponential_member(rng, dual) for _ in range(count // 3)])
    return s


def power_member(weights, rng, dual):
    a = exponents(weights)
    x = rng.exponential(size=a.size)
    z = np.prod(x**a) * rng.choice([-1.0, 0.5, 1.0])
    return np.append(a * x if dual else x, z)


def exponential_member(rng, dual):
    x, y = rng.normal(), rng.exponential() + 0.05
    if dual:
        return np.array([-y, x, y * np.exp(-x / y - 1) + rng.choice([0.0, 1.0])])
    return np.array([x, y, y * np.exp(x / y) + rng.choice([0.0, 1.0])])


@given(products, seeds)
def test_projection_is_idempotent(K, seed):
    v = numbers_of_any_size(np.random.default_rng(seed), K.size)
    p = K.project(v)
    np.testing.assert_allclose(K.project(p), p, rtol=0, atol=1e-13 * (1 + np.abs(v).max(initial=0)))
    assert K.distance(p) <= 1e-13 * (1 + np.abs(v).max(initial=0))


@given(products, seeds)
def test_moreau_decomposition_is_orthogonal(K, seed):
    v = numbers_of_any_size(np.random.default_rng(seed), K.size)
    near, dual = K.project(v), K.project_dual(-v)
    scale = 1 + float(v @ v)
    np.testing.assert_allclose(near - dual, v, rtol=0, atol=1e-14 * scale)
    assert abs(near @ dual) <= 1e-13 * scale


@given(products, seeds)
def test_projection_is_nearest_point(K, seed):
    rng = np.random.default_rng(seed)
    v = numbers_of_any_size(rng, K.size)
    p = K.project(v)
    for _ in range(5):
        z = member(K, rng)
        assert (v - p) @ (z - p) <= 1e-13 * (1 + np.linalg.norm(v)) * (
            1 + np.linalg.norm(v) + np.linalg.norm(z)
        )


@given(products, seeds)
def test_members_are_at_distance_zero_and_have_nonnegative_products_with_dual_members(K, seed):
    rng = np.random.default_rng(seed)
    s, y = member(K, rng), member(K, rng, dual=True)
    scale = 1 + np.linalg.norm(s) + np.linalg.norm(y)
    assert K.distance(s) <= 1e-13 * scale
    assert K.dual_distance(y) <= 1e-13 * scale
    assert s @ y >= -1e-13 * scale**2


@given(products, seeds)
def test_dual_distance_comes_with_a_member_that_proves_it(K, seed):
    y = numbers_of_any_size(np.random.default_rng(seed), K.size)
    witness = K.project(-y)
    far = K.dual_distance(y)
    assert far <= np.linalg.norm(witness) * (1 + 1e-12)
    assert witness @ y <= -(far**2) + 1e-12 * (1 + y @ y)


def test_distance_of_a_product_is_that_of_its_worst_cone():
    K = Cones(zero=1, nonneg=2, soc=(3,), psd=(2,), exp=1, power=(0.5,))
    s = np.concatenate(
        (
            [0.25],
            [1.0, -0.5],
            [0.0, 3.0, 4.0],
            svec(np.diag([1.0, -2.0])),
            [-1.0, -3.0, 1.0],
            [0, 0, 2],
        )
    )
    single = [0.25, 0.5, 5.0 / np.sqrt(2.0), 2.0, 3.0, np.sqrt(2.0)]
    assert K.distance(s) == pytest.approx(max(single), rel=1e-14)
    assert [kind for kind, _ in K.blocks()] == ["zero", "nonneg", "soc", "psd", "exp", "power"]
    assert K.features == {Feature.SOC, Feature.PSD, Feature.EXP, Feature.POWER}


def test_a_cone_of_one_row_is_the_half_line():
    for K in (Cones(nonneg=1), Cones(soc=(1,)), Cones(psd=(1,))):
        assert K.project(np.array([-2.0])) == [0.0]
        assert K.project(np.array([2.0])) == [2.0]


def test_the_dual_of_the_zero_cone_is_everything():
    K = Cones(zero=2)
    assert K.dual_distance(np.array([-1e9, 1e9])) == 0.0
    assert K.distance(np.array([-3.0, 2.0])) == 3.0


@given(st.integers(0, 6), seeds)
def test_svec_is_an_isometry_and_smat_its_inverse(order, seed):
    M, N = (A + A.T for A in np.random.default_rng(seed).normal(size=(2, order, order)))
    assert svec(M) @ svec(N) == pytest.approx(np.sum(M * N), rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(smat(svec(M)), M, rtol=1e-15)
    assert order_of(svec_size(order)) == order


def test_svec_stacks_the_lower_triangle_by_columns():
    M = np.array([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [4.0, 5.0, 6.0]])
    root = np.sqrt(2.0)
    np.testing.assert_allclose(svec(M), [1.0, 2 * root, 4 * root, 3.0, 5 * root, 6.0])


def test_a_size_that_is_no_triangle_is_refused():
    with pytest.raises(InvalidProblem, match="5 entries are no triangle"):
        order_of(5)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"zero": -1}, "cones.zero is -1"),
        ({"nonneg": -2}, "cones.nonneg is -2"),
        ({"exp": -1}, "cones.exp is -1"),
        ({"soc": (3, -1)}, r"cones.soc\[1\] is -1"),
        ({"psd": (-4,)}, r"cones.psd\[0\] is -4"),
    ],
)
def test_negative_sizes_are_refused_by_name(sizes, text):
    with pytest.raises(InvalidProblem, match=text):
        Cones(**sizes)


@pytest.mark.parametrize(
    ("power", "text"),
    [
        (0.5, "cones.power is 0.5; expected the exponents"),
        ((1.0,), r"cones.power\[0\] is 1.0; expected an exponent between 0 and 1"),
        ((0.5, (1, 0)), r"cones.power\[1\]\[1\] is 0; expected a positive exponent"),
        (((),), r"cones.power\[0\] is empty"),
        ((np.nan,), r"cones.power\[0\] is nan; expected a finite number"),
        (("half",), r"cones.power\[0\] is 'half'; expected a number or a sequence"),
    ],
)
def test_bad_exponents_are_refused_by_place(power, text):
    with pytest.raises(InvalidProblem, match=text):
        Cones(power=power)


@given(st.floats(2.0**-60, 1 - 2.0**-53))
def test_the_two_exponents_of_a_number_sum_to_one_exactly(alpha):
    ((first, second),) = Cones(power=(alpha,)).power
    assert Fraction(first, first + second) == Fraction(alpha)
    assert Cones(power=((first, second),)) == Cones(power=(alpha,))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_power_projection_agrees_with_fifty_digits(seed, k):
    """The nearest point by Newton's equation in r, bisected with many digits."""
    rng = np.random.default_rng(seed)
    weights = tuple(int(w) for w in rng.integers(1, 9, k))
    v = rng.choice([-1, 1], k + 1) * 10.0 ** rng.uniform(-3, 3, k + 1)
    with mpmath.workdps(50):
        a = [mpmath.mpf(w) / sum(weights) for w in weights]
        *x, z = (mpmath.mpf(entry) for entry in v.tolist())

        def mean(entries):
            return mpmath.fprod(e**p for e, p in zip(entries, a, strict=True))

        def at(r):
            return [
                (e + mpmath.sqrt(e * e + 4 * p * r * (abs(z) - r))) / 2
                for e, p in zip(x, a, strict=True)
            ]

        if min(x) >= 0 and mean(x) >= abs(z):
            true = [*x, z]
        elif max(x) <= 0 and mean([-e / p for e, p in zip(x, a, strict=True)]) >= abs(z):
            true = [0] * (k + 1)
        else:
            low, high = mpmath.mpf(0), abs(z)
            for _ in range(150):
                middle = (low + high) / 2
                low, high = (low, middle) if mean(at(middle)) < middle else (middle, high)
            true = [*at(low), mpmath.sign(z) * low]
        found = project_power([weights], v)
        error = max(abs(f - t) for f, t in zip(found.tolist(), true, strict=True))
        assert error <= 1e-14 * np.abs(v).max()


# The exponential cone. Its rays and those of its polar cone, normalised, at parameters of every
# magnitude.
RHO = np.sinh(np.linspace(-40.0, 40.0, 4001))
with np.errstate(over="ignore", invalid="ignore"):
    _small, _large = np.exp(np.minimum(RHO, 0.0)), np.exp(-np.maximum(RHO, 0.0))
    RAYS = np.column_stack((RHO * _large, _large, _small))
    POLAR_RAYS = np.column_stack((_small, (1 - RHO) * _small, -_large))
RAYS = np.vstack((RAYS, [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
POLAR_RAYS = np.vstack((POLAR_RAYS, [[0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]))
RAYS /= np.linalg.norm(RAYS, axis=1, keepdims=True)
POLAR_RAYS /= np.linalg.norm(POLAR_RAYS, axis=1, keepdims=True)

magnitudes = st.floats(1e-10, 1e10) | st.just(0.0)
triples = arrays(float, 3, elements=magnitudes | magnitudes.map(lambda a: -a))


@given(triples)
def test_exponential_projection_satisfies_its_optimality_conditions(v):
    p = project_exponential(v[None])[0]
    scale = np.linalg.norm(v)
    assert np.isfinite(p).all()
    assert (POLAR_RAYS @ p).max() <= 1e-14 * scale
    assert (RAYS @ (v - p)).max() <= 1e-14 * scale
    assert abs(p @ (v - p)) <= 1e-14 * scale**2


@given(triples, st.floats(1e-8, 1e8))
def test_exponential_projection_scales_with_its_point(v, factor):
    one, other = project_exponential(np.array([v, factor * v]))
    np.testing.assert_allclose(other, factor * one, rtol=0, atol=1e-14 * factor * np.linalg.norm(v))


def exact_exponential_projection(v):
    """The same by plain bisection of the equation in 60 digits."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**15), 10**15
        x, y, z = (Decimal(float(entry)) for entry in v)
        if y > 0 and y * (x / y).exp() <= z:
            return np.array(v)
        if x > 0 and x * (y / x - 1).exp() <= -z:
            return np.zeros(3)
        if x <= 0 and y <= 0:
            return np.array([v[0], 0.0, max(v[2], 0.0)])

        def parts(rho):
            q = rho * rho - rho + 1
            return ((rho - 1) * x + y) / q, (x - rho * y) / q

        def h(rho):
            t, S = parts(rho)
            return t * rho.exp() - S * (-rho).exp() - z

        low = 1 - y / x if x > 0 else min(x / y, Decimal(0)) - 100
        high = x / y if y > 0 else 1 - y / x + 100
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if h(middle) < 0 else (low, middle)
        t = parts(low)[0]
        return np.array([float(t * low), float(t), float(t * low.exp())])


def test_exponential_projection_agrees_with_sixty_digits():
    rng = np.random.default_rng(3)
    V = np.vstack(
        (
            rng.normal(size=(25, 3)),
            rng.choice([-1, 1], (25, 3)) * 10.0 ** rng.uniform(-1.5, 1.5, (25, 3)),
        )
    )
    V = np.vstack(
        (
            V,
            [
                [1.0, 0.0, 0.0],
                [0.0, 1.0, 0.0],
                [1.0, 1.0, np.e],
                [1.0, 1.0, 2.7182],
                [1e-3, 1.0, -1.0],
            ],
        )
    )
    exact = np.array([exact_exponential_projection(v) for v in V])
    error = np.abs(project_exponential(V) - exact).max(axis=1) / np.linalg.norm(V, axis=1)
    assert error.max() <= 1e-14


def test_exponential_projection_agrees_with_a_conic_solver():
    import cvxpy as cp

    V = np.array([[1.0, 0.5, -0.3], [-2.0, 1.0, -1.0], [0.5, -1.0, 0.2], [2.0, 1.0, 1.0]])
    X = cp.Variable((4, 3))
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(X - V)), [cp.constraints.ExpCone(X[:, 0], X[:, 1], X[:, 2])]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(project_exponential(V), X.value, atol=1e-6)


@pytest.mark.parametrize(
    ("v", "p"),
    [
        ([0.0, 1.0, 1.0], [0.0, 1.0, 1.0]),  # on the surface
        ([-1.0, 0.0, 2.0], [-1.0, 0.0, 2.0]),  # on the face y = 0
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([-3.0, -2.0, -1.0], [-3.0, 0.0, 0.0]),
        ([1.0, -1e12, -1e-9], [0.0, 0.0, 0.0]),  # in the polar cone
        ([1e-10, -1e10, 1e-10], [0.0, 0.0, 1e-10]),  # rho = 1e20
        ([-1e10, 1e-10, -1.0], [-1e10, 1e-10, 0.0]),  # rho = -1e20
        ([-1e300, 1e-300, -1e300], [-1e300, 0.0, 0.0]),
        ([1e308, -1e308, 1e308], None),
        ([5e-324, 5e-324, -5e-324], None),
        ([1e-300, 1e300, 0.0], None),
    ],
)
def test_exponential_projection_at_the_corners_of_floating_point(v, p):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        got = project_exponential(np.array([v]))[0]
    assert np.isfinite(got).all()
    if p is not None:
        np.testing.assert_allclose(got, p, rtol=1e-15, atol=1e-300)


def test_exponential_projection_of_no_rows_is_no_rows():
    assert project_exponential(np.empty((0, 3))).shape == (0, 3)
