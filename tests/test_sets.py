"""The simple sets: nearest points, linear minimisers and mirror maps are what they say, also at the edges."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, strategies as st
from members import member, members

from klopt.errors import InvalidProblem
from klopt.model.cones import smat, svec
from klopt.model.features import Feature
from klopt.model.sets import (
    BoxPlane,
    OrderedSimplex,
    Product,
    Simplex,
    Spectrahedron,
    simplex_projection,
)

INF = np.inf
BOXES = {
    "box": BoxPlane([-1.0, 0.0, 2.0], [1.0, 0.5, 5.0]),
    "orthant": BoxPlane(np.zeros(3), np.full(3, INF)),
    "svm dual": BoxPlane(np.zeros(5), np.full(5, 2.0), [1.0, -1.0, 1.0, 1.0, -1.0]),
    "half-lines": BoxPlane([0.0, -INF, 0.0], [INF, 3.0, INF], [1.0, 2.0, 0.5], 4.0),
    "free": BoxPlane([-INF, -INF, 0.0], [INF, INF, 1.0], [1.0, -2.0, 3.0], -1.0),
    "fixed": BoxPlane([1.0, 0.0, -2.0], [1.0, 4.0, 2.0], [5.0, 1.0, 1.0], 6.0),
    "flat": BoxPlane([0.0, -1.0, -INF], [1.0, 1.0, INF], [1.0, 1.0, 0.0], 0.5),
    "corner": BoxPlane(np.zeros(3), np.ones(3), [0.1, 0.2, 0.3], 0.6),
}
MIRRORED = {
    "one": Simplex(1, 3.0),
    "simplex": Simplex(5),
    "scaled": Simplex(4, 2.5),
    "number": Spectrahedron(1),
    "spectrahedron": Spectrahedron(3),
    "small": Spectrahedron(4, 0.5),
    "pair": Product((Simplex(3), Spectrahedron(2, 2.0))),
}
SETS = {
    **BOXES,
    **MIRRORED,
    "ordered one": OrderedSimplex(1, 1.5, 2.0),
    "ordered": OrderedSimplex(6),
    "falling": OrderedSimplex(5, 1.3, 2.0),
    "steep": OrderedSimplex(4, 50.0),
    "product": Product((OrderedSimplex(3, 1.1), BoxPlane([0.0, 0.0], [1.0, INF]), Simplex(2, 0.5))),
}
every_set = pytest.mark.parametrize("domain", SETS.values(), ids=SETS.keys())
every_mirror = pytest.mark.parametrize("domain", MIRRORED.values(), ids=MIRRORED.keys())
seeds = st.integers(0, 2**32 - 1)


@every_set
@given(seed=seeds)
def test_projection_is_feasible_and_idempotent(domain, seed):
    x = 10 * np.random.default_rng(seed).normal(size=domain.size)
    p = domain.project(x)
    assert p.shape == (domain.size,)
    assert domain.violation(p) <= 1e-13
    np.testing.assert_allclose(domain.project(p), p, rtol=0, atol=1e-13)


@every_set
@given(seed=seeds)
def test_projection_is_nearest_point(domain, seed):
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=domain.size)
    p = domain.project(x)
    for z in members(domain, rng, 10):
        assert (x - p) @ (z - p) <= 1e-11 * (1 + np.linalg.norm(x)) * (1 + np.linalg.norm(z))


@every_set
@given(seed=seeds)
def test_linear_minimiser_attains_the_minimum(domain, seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=domain.size)
    minimum = domain.linear_minimum(g)
    if minimum == -INF:
        with pytest.raises(InvalidProblem, match="unbounded below"):
            domain.linear_minimiser(g)
        return
    z = domain.linear_minimiser(g)
    assert domain.violation(z) <= 1e-13
    assert g @ z == pytest.approx(minimum, rel=1e-12, abs=1e-13)
    assert minimum <= (members(domain, rng, 20) @ g).min() + 1e-9


@every_set
@given(seed=seeds)
def test_members_do_not_violate_and_stay_within_the_radius(domain, seed):
    for z in members(domain, np.random.default_rng(seed), 5):
        assert domain.violation(z) <= 1e-9
        assert np.abs(z).sum() <= domain.radius * (1 + 1e-9)


@every_set
def test_centre_is_in_the_relative_interior(domain):
    centre = domain.centre()
    assert domain.violation(centre) <= 1e-14
    np.testing.assert_array_equal(centre, domain.centre())
    # From a point of the relative interior every segment to a member can be prolonged a little.
    for z in members(domain, np.random.default_rng(1), 10):
        assert domain.violation(centre + 1e-4 * (centre - z)) <= 1e-10


@every_set
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8, 1e12])
def test_repair_leaves_only_the_last_rounding(domain, scale):
    x = scale * np.random.default_rng(2).normal(size=domain.size)
    largest = 1 + np.abs(domain.project(x)).max()
    assert domain.violation(domain.repair(x)) <= 1e-14 * largest


@every_set
def test_violation_grows_with_the_step_out_of_the_set(domain):
    x, rng = domain.centre(), np.random.default_rng(4)
    direction = rng.normal(size=domain.size)
    far = [domain.violation(x + step * direction) for step in (0.0, 10.0, 1000.0, 1e5)]
    assert far[0] <= 1e-14 < far[1] < far[2] < far[3]


@every_set
def test_what_is_no_number_is_not_inside(domain):
    for i in range(domain.size):
        x = domain.centre()
        x[i] = np.nan
        assert not domain.violation(x) <= 1.0


@pytest.mark.parametrize(
    "name", ["scaled", "ordered", "falling", "spectrahedron", "svm dual", "half-lines", "free"]
)
def test_projection_agrees_with_a_conic_solver(name):
    import cvxpy as cp

    domain, rng = SETS[name], np.random.default_rng(5)
    for x in 2 * rng.normal(size=(3, domain.size)):
        match domain:
            case Spectrahedron():
                z = cp.Variable((domain.order, domain.order), PSD=True)
                rules, distance = [cp.trace(z) == domain.total], cp.sum_squares(z - smat(x))
            case BoxPlane():
                z = cp.Variable(domain.size)
                low, high = np.isfinite(domain.lower), np.isfinite(domain.upper)
                rules = [
                    z[low] >= domain.lower[low],
                    z[high] <= domain.upper[high],
                    domain.normal @ z == domain.offset,
                ]
                distance = cp.sum_squares(z - x)
            case _:
                z = cp.Variable(domain.size)
                sigma = domain.sigma if isinstance(domain, OrderedSimplex) else 0.0
                rules = [z[:-1] >= sigma * z[1:], z >= 0, cp.sum(z) == domain.total]
                distance = cp.sum_squares(z - x)
        cp.Problem(cp.Minimize(distance), rules).solve(
            solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        p = domain.project(x)
        np.testing.assert_allclose(
            smat(p) if isinstance(domain, Spectrahedron) else p, z.value, atol=1e-6
        )


# The mirror map.


@every_mirror
@given(seed=seeds)
def test_mirror_undoes_mirror_dual_in_the_interior(domain, seed):
    x = (member(domain, np.random.default_rng(seed)) + domain.centre()) / 2
    np.testing.assert_allclose(domain.mirror(domain.mirror_dual(x)), x, rtol=0, atol=1e-13)


@every_mirror
@given(seed=seeds)
def test_mirror_point_maximises_linear_function_plus_entropy(domain, seed):
    rng = np.random.default_rng(seed)
    theta = 3 * rng.normal(size=domain.size)
    x = domain.mirror(theta)
    assert domain.violation(x) <= 1e-14
    best = theta @ x + entropy(domain, x)
    for z in members(domain, rng, 10):
        assert theta @ z + entropy(domain, z) <= best + 1e-11


def entropy(domain, x):
    """-sum of x log x over the entries or the eigenvalues."""
    if isinstance(domain, Product):
        return sum(
            entropy(part, block) for part, block in zip(domain.sets, domain.split(x), strict=True)
        )
    values = np.linalg.eigvalsh(smat(x)) if isinstance(domain, Spectrahedron) else x
    values = values[values > 0]
    return -float(values @ np.log(values))


@every_mirror
def test_mirror_depth_is_the_divergence_of_a_vertex_from_the_centre(domain):
    rng = np.random.default_rng(6)
    theta = domain.mirror_dual(domain.centre())

    def divergence(x):
        # theta is -log of the number of entries in each block, so theta'(x - centre) = 0
        return entropy(domain, domain.centre()) - entropy(domain, x) - theta @ (x - domain.centre())

    vertex = domain.linear_minimiser(rng.normal(size=domain.size))
    assert divergence(vertex) == pytest.approx(domain.mirror_depth, rel=1e-12, abs=1e-12)
    assert max(divergence(z) for z in members(domain, rng, 30)) <= domain.mirror_depth + 1e-12


@pytest.mark.parametrize("size", [1e3, 1e6])
@every_mirror
def test_mirror_is_safe_far_away(domain, size):
    theta = size * np.random.default_rng(7).normal(size=domain.size)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        x = domain.mirror(theta)
        back = domain.mirror_dual(x)
    assert domain.violation(x) <= 1e-14
    assert np.isfinite(back).all()
    # so far out, the mirror point is the maximiser of the linear function itself
    np.testing.assert_allclose(x, domain.linear_minimiser(-theta), atol=1e-9)


def test_mirror_dual_of_a_vertex_is_finite_and_very_negative():
    theta = Simplex(3).mirror_dual(np.array([1.0, 0.0, 0.0]))
    assert theta[0] == 0.0
    assert np.isfinite(theta).all()
    assert (theta[1:] < -600).all()
    np.testing.assert_allclose(Simplex(3).mirror(theta), [1.0, 0.0, 0.0], atol=1e-290)


@pytest.mark.parametrize("domain", [Simplex(4, 2.5), Spectrahedron(3, 0.5)])
def test_dual_norm_is_the_largest_linear_value_per_unit_of_total(domain):
    g = np.random.default_rng(8).normal(size=domain.size)
    largest = max(-domain.linear_minimum(g), -domain.linear_minimum(-g))
    assert domain.total * domain.dual_norm(g) == pytest.approx(largest, rel=1e-13)


@pytest.mark.parametrize("domain", [OrderedSimplex(3), BOXES["box"], SETS["product"]])
def test_sets_without_a_mirror_say_so(domain):
    assert not domain.has_mirror
    for ask in (domain.mirror, domain.mirror_dual):
        with pytest.raises(InvalidProblem, match="has no mirror map; use a method that projects"):
            ask(domain.centre())
    with pytest.raises(InvalidProblem, match="has no mirror map"):
        _ = domain.mirror_depth


# Simplex and ordered simplex.


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e10])
def test_simplex_projection_does_not_see_a_common_offset(offset):
    moved = np.random.default_rng(16).normal(size=50) + offset
    np.testing.assert_allclose(
        simplex_projection(moved), simplex_projection(moved - offset), rtol=0, atol=1e-15
    )


def test_ordered_projection_pools_what_is_out_of_order():
    np.testing.assert_allclose(
        OrderedSimplex(3).project(np.array([0.0, 1.0, 0.5])), np.full(3, 1 / 3)
    )
    np.testing.assert_allclose(
        OrderedSimplex(3).project(np.array([0.7, 0.1, 0.3])), [0.7 - 1 / 30, 0.5 / 3, 0.5 / 3]
    )


@pytest.mark.parametrize("sigma", [1.0, 1.05, 1.2])
def test_ordered_projection_keeps_a_long_tail(sigma):
    centre = OrderedSimplex(150, sigma).centre()
    assert centre[-1] > 0
    np.testing.assert_allclose(
        OrderedSimplex(150, sigma).project(centre), centre, rtol=0, atol=1e-16
    )


def test_ordered_projection_tends_to_the_plain_order_as_sigma_falls_to_one():
    x = np.random.default_rng(9).normal(size=40)
    near = OrderedSimplex(40, 1 + 1e-9).project(x)
    np.testing.assert_allclose(near, OrderedSimplex(40).project(x), atol=1e-7)


@given(seeds, st.sampled_from([1.0, 1.0001, 1.2, 3.0]), st.sampled_from([1e-6, 1.0, 1e6]))
def test_ordered_projection_leaves_no_better_vertex(seed, sigma, total):
    n = 200
    x = total * np.random.default_rng(seed).normal(size=n)
    domain = OrderedSimplex(n, sigma, total)
    p = domain.project(x)
    vertices = np.tril(np.ones((n, n))) * sigma ** -np.arange(float(n))
    vertices *= total / vertices.sum(axis=1, keepdims=True)
    assert ((vertices - p) @ (x - p)).max() <= 1e-12 * total**2
    assert domain.violation(p) <= 1e-14 * total


def test_a_long_steep_order_does_not_overflow():
    n, rng = 5000, np.random.default_rng(10)
    domain, x = OrderedSimplex(n, 1.2), rng.normal(size=n)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        p, z, centre = domain.project(x), domain.linear_minimiser(x), domain.centre()
    for point in (p, z, centre):
        assert np.isfinite(point).all()
        assert domain.violation(point) <= 1e-14
    # what comes later than sigma^-400 = 1e-32 has no say
    np.testing.assert_allclose(p[:400], OrderedSimplex(400, 1.2).project(x[:400]), atol=1e-15)


@pytest.mark.parametrize("sigma", [1.0, 1.05, 1.2, 2.0])
def test_best_prefix_follows_the_recurrence_of_the_prefix_means(sigma):
    c = np.random.default_rng(11).normal(size=5000)
    weight, mean, best = 1.0, c[0], c[0]
    for entry in c[1:]:
        weight = weight / (sigma + weight)
        mean += (entry - mean) * weight
        best = min(best, mean)
    assert OrderedSimplex(c.size, sigma).linear_minimum(c) == pytest.approx(best, rel=1e-12)


def test_radius_of_a_spectrahedron_is_attained():
    domain = Spectrahedron(4, 2.0)
    assert np.abs(svec(np.full((4, 4), 0.5))).sum() == pytest.approx(domain.radius, rel=1e-14)


@pytest.mark.slow
def test_a_million_variables_take_a_moment():
    n, rng = 10**6, np.random.default_rng(13)
    box, ordered = (
        BoxPlane(np.zeros(n), np.ones(n), rng.choice([-1.0, 1.0], n)),
        OrderedSimplex(n, 1.0001),
    )
    x = rng.normal(size=n)
    for domain in (box, ordered):
        for step in (domain.project, domain.linear_minimiser):
            start = time.process_time()
            point = step(x)
            seconds = time.process_time() - start
            assert domain.violation(point) <= 1e-10
            assert seconds < 3.0  # about 0.5 on an idle machine


# Products and refusals.


def test_a_product_acts_block_by_block():
    parts = (OrderedSimplex(2, 1.5), Simplex(3, 2.0), Spectrahedron(2))
    domain, x = Product(parts), np.random.default_rng(14).normal(size=8)
    blocks = domain.split(x)
    assert [block.size for block in blocks] == [2, 3, 3]
    np.testing.assert_array_equal(np.concatenate(blocks), x)
    pairs = list(zip(parts, blocks, strict=True))
    np.testing.assert_array_equal(
        domain.project(x), np.concatenate([part.project(block) for part, block in pairs])
    )
    assert domain.linear_minimum(x) == pytest.approx(
        sum(part.linear_minimum(block) for part, block in pairs)
    )
    assert domain.radius == sum(part.radius for part in parts)
    assert domain.dual_norm(x) == pytest.approx(
        np.sqrt(sum(part.dual_norm(block) ** 2 for part, block in pairs))
    )
    assert Product((Simplex(2), BOXES["orthant"])).linear_minimum(-np.ones(5)) == -INF


@pytest.mark.parametrize(
    ("domain", "features"),
    [
        (Simplex(2), set()),
        (OrderedSimplex(2), {Feature.ORDERED}),
        (Spectrahedron(2), {Feature.SPECTRAL}),
        (BOXES["box"], {Feature.BOX}),
        (SETS["product"], {Feature.PRODUCT, Feature.ORDERED, Feature.BOX}),
        (MIRRORED["pair"], {Feature.PRODUCT, Feature.SPECTRAL}),
    ],
)
def test_features_name_what_is_beyond_the_plain_simplex(domain, features):
    assert domain.features == frozenset(features)
    assert isinstance(domain.features, frozenset)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Simplex(0), "n is 0; expected a whole number of at least 1"),
        (lambda: Simplex(2.5), "n is 2.5; expected a whole number"),
        (lambda: Simplex(3, 0.0), "total is 0.0; expected a positive number"),
        (lambda: OrderedSimplex(3, 0.9), "sigma is 0.9; an order .* needs sigma >= 1"),
        (lambda: OrderedSimplex(3, INF), "sigma is inf; expected a positive number"),
        (lambda: Spectrahedron(-1), "order is -1; expected a whole number"),
        (lambda: Spectrahedron(2, float("nan")), "total is nan"),
        (lambda: BoxPlane([0.0, 3.0], [1.0, 2.0]), r"lower\[1\] = 3.0 and upper\[1\] = 2.0"),
        (lambda: BoxPlane([INF], [INF]), r"lower\[0\] = inf"),
        (lambda: BoxPlane([0.0], [1.0, 2.0]), "upper has 2 entries; expected 1"),
        (lambda: BoxPlane([0.0], [float("nan")]), r"upper\[0\] is nan"),
        (lambda: BoxPlane([0.0], [1.0], [INF]), r"normal\[0\] is inf"),
        (lambda: BoxPlane([0.0], [1.0], offset=1.0), "offset is 1.0 but there is no normal"),
        (
            lambda: BoxPlane([0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 2.1),
            "runs from 0.0 to 2.0 .* offset = 2.1",
        ),
        (lambda: BoxPlane([0.0, 0.0], [INF, INF], [1.0, 1.0], -1.0), "runs from 0.0 to inf"),
        (lambda: Product(()), "sets is empty"),
        (lambda: Product((Simplex(2), 3)), r"sets\[1\] is a int; expected a simple set"),
    ],
)
def test_sets_that_mean_nothing_are_refused(build, text):
    with pytest.raises(InvalidProblem, match=text):
        build()


def test_a_set_keeps_its_own_frozen_copy():
    lower = np.zeros(2)
    box = BoxPlane(lower, np.ones(2))
    lower[0] = 5.0
    assert box.lower[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 1.0


@every_set
def test_methods_leave_their_argument_alone(domain):
    x = np.random.default_rng(15).normal(size=domain.size)
    x.flags.writeable = False
    domain.project(x)
    domain.linear_minimum(x)
    domain.violation(x)
    domain.repair(x)
