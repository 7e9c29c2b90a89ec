"""The box cut by a plane: knapsack, nearest point, centre and radius against an LP solver, and its degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from members import lp

from klopt.errors import InvalidProblem
from klopt.model.sets import BoxPlane

INF = np.inf


@st.composite
def box_planes(draw):
    """Small whole numbers, so that ties, fixed variables, corners and flat directions are common."""
    n = draw(st.integers(1, 5))
    start = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    width = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    kinds = draw(
        st.lists(st.sampled_from(["box", "box", "up", "down", "free"]), min_size=n, max_size=n)
    )
    normal = draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    share = draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n) | st.just([1.0] * n)
    )
    lower, normal = np.array(start, dtype=float), np.array(normal, dtype=float)
    upper = lower + width
    inside = lower + np.array(share) * (upper - lower)
    lower[[kind in ("down", "free") for kind in kinds]] = -INF
    upper[[kind in ("up", "free") for kind in kinds]] = INF
    return BoxPlane(lower, upper, normal, float(normal @ inside))


whole = st.lists(st.integers(-4, 4), min_size=5, max_size=5).map(lambda g: np.array(g, dtype=float))


@given(box_planes(), whole)
def test_knapsack_agrees_with_an_lp_solver(domain, g):
    g = g[: domain.size]
    truth = lp(g, domain.lower, domain.upper, domain.normal, domain.offset)
    assert truth.status in (0, 3)
    minimum = domain.linear_minimum(g)
    assert minimum == (-INF if truth.status == 3 else pytest.approx(truth.fun, rel=1e-9, abs=1e-9))
    if truth.status == 0:
        assert domain.violation(domain.linear_minimiser(g)) <= 1e-13


@given(box_planes(), whole)
def test_nearest_point_of_a_box_and_a_plane_is_optimal_by_an_lp_solver(domain, x):
    x = 1.5 * x[: domain.size]
    p = domain.project(x)
    assert domain.violation(p) <= 1e-13
    truth = lp(p - x, domain.lower, domain.upper, domain.normal, domain.offset)
    assert truth.status == 0
    assert truth.fun >= (p - x) @ p - 1e-9


@given(box_planes())
def test_centre_of_a_box_and_a_plane_moves_off_every_bound_it_can(domain):
    centre = domain.centre()
    assert domain.violation(centre) <= 1e-13
    for i in range(domain.size):
        direction = np.eye(domain.size)[i]
        for sign, bound in ((1, domain.lower[i]), (-1, domain.upper[i])):
            extent = -domain.linear_minimum(-sign * direction)
            assert sign * centre[i] > sign * bound + 1e-6 or extent <= sign * bound + 1e-9


@given(box_planes())
def test_radius_of_a_box_and_a_plane_bounds_its_vertices(domain):
    for g in np.random.default_rng(12).normal(size=(10, domain.size)):
        if np.isfinite(domain.linear_minimum(g)):
            assert np.abs(domain.linear_minimiser(g)).sum() <= domain.radius + 1e-12
        else:
            assert domain.radius == INF


def test_radius_sees_what_the_plane_bounds():
    assert BoxPlane(np.zeros(3), np.full(3, INF), np.ones(3), 2.0).radius == pytest.approx(2.0)
    assert BoxPlane(np.zeros(3), np.full(3, INF), [1.0, 1.0, 0.0], 2.0).radius == INF
    assert BoxPlane([-2.0], [3.0]).radius == pytest.approx(3.0)


def test_a_set_that_is_one_point_gives_that_point():
    corner = BoxPlane(
        np.zeros(3), np.ones(3), [0.1, 0.2, 0.3], 0.6
    )  # 0.1 + 0.2 + 0.3 is not 0.6 in floating point
    fixed = BoxPlane([0.1, 0.2], [0.1, 0.2], [1.0, 1.0], 0.3)
    for domain, point in ((corner, np.ones(3)), (fixed, np.array([0.1, 0.2]))):
        for got in (
            domain.project(7 - point),
            domain.linear_minimiser(point),
            domain.centre(),
            domain.repair(-point),
        ):
            np.testing.assert_allclose(got, point, atol=1e-14)


def test_a_zero_normal_is_no_plane():
    box = BoxPlane([0.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    np.testing.assert_array_equal(box.project(np.array([2.0, 0.5])), [1.0, 0.5])
    with pytest.raises(InvalidProblem, match=r"the set is empty: normal'x runs from 0.0 to 0.0"):
        BoxPlane([0.0, 0.0], [1.0, 1.0], [0.0, 0.0], 1.0)


def test_equal_prices_of_opposite_half_lines_still_have_a_minimum():
    for order in ([0, 1], [1, 0]):
        lower, upper = np.array([-INF, 0.0])[order], np.array([0.0, INF])[order]
        assert BoxPlane(lower, upper, [1.0, 1.0], 1.0).linear_minimum(np.ones(2)) == 1.0


def test_projection_meets_the_plane_from_anywhere():
    rng = np.random.default_rng(17)
    for _ in range(500):
        n = int(rng.integers(1, 8))
        lower, normal = rng.normal(size=n), rng.normal(size=n) * rng.integers(0, 2, n)
        upper = lower + rng.exponential(size=n) * rng.integers(0, 2, n)
        offset = float(normal @ (lower + rng.random(n) * (upper - lower)))
        lower[rng.random(n) < 0.2], upper[rng.random(n) < 0.2] = -INF, INF
        domain = BoxPlane(lower, upper, normal, offset)
        p = domain.project(
            10.0 ** rng.uniform(-3, 12) * rng.normal(size=n) * rng.choice([1.0, 1e-6], n)
        )
        assert domain.violation(p) <= 1e-15 * (1 + np.abs(normal) @ np.abs(p))


def test_free_variables_bound_a_linear_function_only_along_the_normal():
    plane = BoxPlane(np.full(3, -INF), np.full(3, INF), [1.0, 2.0, -1.0], 3.0)
    assert plane.linear_minimum(np.array([2.0, 4.0, -2.0])) == pytest.approx(6.0)
    assert plane.linear_minimum(np.array([2.0, 4.0, -2.5])) == -INF
    np.testing.assert_allclose(plane.project(np.zeros(3)), np.array([1.0, 2.0, -1.0]) / 2)
