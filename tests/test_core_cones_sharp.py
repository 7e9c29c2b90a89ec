"""Bounds of cone programs, term by term: what is false, or not proven any more, if one of them changes.

Truth from closed forms and rationals: programs whose optimum is known, a point that lies outside its
cone by one unit in the last place, rows whose exact sum is known.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction as Q
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from klopt.model.cones import Cones
from klopt.proof import cone_lower_bound, cone_upper_bound, convexity, linear_systems
from klopt.proof.cone_lower_bound import lower_bound
from klopt.proof.cone_membership import (
    block_matrix,
    dual_room,
    in_cone,
    in_dual_cone,
    in_second_order_cones,
    norms_of_blocks,
    second_order_depths,
)
from klopt.proof.cone_slack import enclose_slack, slack_summed_exactly
from klopt.proof.cone_upper_bound import NO_SOLUTION, upper_bound
from klopt.proof.cone_witnesses import ConeClaim, DualWitness, PrimalWitness
from klopt.proof.convexity import curvature_beside, negative_curvature
from klopt.proof.enclosure import Enclosure
from klopt.proof.exact_sums import exact_dot, exact_row_sums
from klopt.proof.faces import compressed, turned
from klopt.proof.linear_systems import _by_disjoint_rows, _by_sparse_factor, shortest_correction
from klopt.proof.split_columns import merged_columns
from klopt.proof.statement import ConeStatement, QuadraticConstraint
from klopt.proof.time_budget import budget

U = Q(2) ** -53


def stated(c: Any, A: Any, b: Any, cones: Cones, **more: Any) -> ConeStatement:
    """A statement from lists."""
    columns = np.size(c)
    matrix = sparse.csc_array(np.asarray(A, float).reshape(-1, columns))
    if more.get("P") is not None:
        more["P"] = sparse.csc_array(np.asarray(more["P"], float))
    return ConeStatement(np.asarray(c, float), matrix, np.asarray(b, float), cones, **more)


def lower(statement: ConeStatement, y: Any, w: Any = None, quadratic: Any = ()) -> float:
    """The lower end that multipliers prove."""
    point = np.zeros(statement.c.size) if w is None else np.asarray(w, float)
    witness = DualWitness(point, np.asarray(y, float), np.asarray(quadratic, float))
    return lower_bound(statement, witness).value


def upper(statement: ConeStatement, x: Any, tight: Any = ()) -> float:
    """The upper end that a point proves."""
    witness = PrimalWitness(np.asarray(x, float), np.asarray(tight, np.intp))
    return upper_bound(statement, witness).value


# ---- lower bounds: corrections of multipliers


@pytest.mark.parametrize("y", [0.25, 1.0, 2.0, 1e3, 1e6])
def test_a_correction_that_leaves_the_cone_proves_nothing(y: float) -> None:
    """Minimise -x over x >= 0, which is unbounded: the y next to it that is stationary is -1."""
    assert lower(stated([-1.0], [[-1.0]], [0.0], Cones(nonneg=1)), [y]) == -math.inf
    # Of two columns that say the same one is enough, and as wrong.
    twice = stated([-1.0, -1.0], [[-1.0, -1.0], [0.0, 0.0]], [0.0, 5.0], Cones(nonneg=2))
    assert lower(twice, [y, 0.0]) == -math.inf


@pytest.mark.parametrize("y", [2.0**-3, 1.0, 1e3])
def test_a_correction_inside_the_cone_is_enough(y: float) -> None:
    """Minimise y x over x = x_1 + x_2 >= -1, whose multiplier is y: one next to it is corrected."""
    twice = stated([y, y], [[-1.0, -1.0], [0.0, 0.0]], [1.0, 5.0], Cones(nonneg=2))
    for share in (2.0**-40, -(2.0**-40), 2.0**-4, 0.5, -0.25):
        found = lower(twice, [y * (1 + share), 0.0])
        assert -y * (1.00001 + 2 * abs(share)) < found <= -y
    # Half of the multiplier has no room to grow to twice of itself, or more.
    assert lower(twice, [y * 0.49, 0.0]) == -math.inf


def test_curvature_pays_for_a_correction_of_the_point() -> None:
    """Minimise x^2/2 + x/2 = -1/8 next to a cone: w moves from 0 to -1/2, at 1/8 and no more."""
    program = stated([0.5], np.zeros((2, 1)), [1.0, 0.0], Cones(soc=(2,)), P=[[1.0]])
    found = lower(program, [0.0, 0.0])
    assert -0.12501 < found <= -0.125


def test_multipliers_without_a_sign_move_by_their_own_size() -> None:
    """Minimise (x_1 + x_2)/2 subject to x_1 + x_2 = 3: multipliers of 0 and 1 are corrected to -1/2."""
    program = stated([0.5, 0.5], [[1.0, 1.0]], [3.0], Cones(zero=1))
    for y in (0.0, -1.0, 0.2):
        assert -10.0 < lower(program, [y], [3.0, 0.0]) <= 1.5
    # Here a tenth of the multiplier is the room that is needed.
    far = stated([1000.0, 1000.0], [[1.0, 1.0]], [3.0], Cones(zero=1))
    assert -1e4 < lower(far, [-900.0], [3.0, 0.0]) <= 3000


def test_another_matrix_makes_up_for_one_that_is_not_convex() -> None:
    """Minimise -x^2/2 over x^2 <= 1 with the multiplier 1: the Lagrangian x^2/2 - 1 is at least -1."""
    ball = QuadraticConstraint(sparse.csc_array(np.diag([0.0, 2.0])), np.zeros(2), 1.0)
    box = np.vstack((np.eye(2), -np.eye(2)))
    P = np.diag([0.0, -1.0])
    program = stated([0.0, 0.0], box, np.full(4, 5.0), Cones(nonneg=4), P=P, quadratics=(ball,))
    assert -1.00001 < lower(program, np.zeros(4), quadratic=[1.0]) <= -1
    # With less of it -x^2/4 - 1/4 is left, over -5 <= x <= 5.
    assert -13.0 < lower(program, np.zeros(4), quadratic=[0.25]) <= -0.5


def chain(gradients: list[float]) -> ConeStatement:
    """Minimise (1 + g_j) x_j + z_j over x_j + z_j >= 0 and 0 <= z_j <= 1: the sum of min(0, -g_j).

    With y = 1 the gradients are g_j. A correction of length t moves each by t: columns whose x_j has no
    upper bound and whose g_j is smaller are solved next.
    """
    n = len(gradients)
    eye, none = np.eye(n), np.zeros((n, n))
    A = np.vstack((np.hstack((-eye, -eye)), np.hstack((none, eye)), np.hstack((none, -eye))))
    b = np.concatenate((np.zeros(n), np.ones(n), np.zeros(n)))
    return stated([*(1.0 + np.array(gradients)), *np.ones(n)], A, b, Cones(nonneg=3 * n))


def test_columns_that_a_correction_moves_are_solved_too() -> None:
    """Each of these gradients lies between the lengths of two corrections; four are made."""
    d = 2.0**-10
    gradients = [-d, 0.5 * d, 1.05 * d, 1.3 * d]
    y = np.concatenate((np.ones(4), np.zeros(8)))
    optimum = -sum(gradients[1:])
    assert optimum - 10 * d < lower(chain(gradients), y) <= optimum + 1e-15


def test_columns_that_are_solved_are_not_charged_for_what_others_need() -> None:
    """x + z + t = x - z + t = x - t = 1 and |z| <= 2^20: the optimum of x is 1, y = (-1, -1, -2)/4."""
    d = 2.0**-21
    equations = [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 0.0, -1.0]]
    rows = [*equations, [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]
    b = [1.0, 1.0, 1.0, 2.0**20, 2.0**20]
    program = stated([1.0, 0.0, 0.0], rows, b, Cones(zero=3, nonneg=2))
    y = [-0.25 + d, -0.25 + d, -0.5, 0.0, 0.0]
    assert 0.999 < lower(program, y, [1.0, 0.0, 0.0]) <= 1


def test_a_correction_is_as_small_as_the_smallest_cone() -> None:
    """100 x over x >= -1, and a cone that x does not see, of much larger multipliers."""
    rows = [[-1.0], [0.0], [0.0], [0.0]]
    program = stated([100.0], rows, [1.0, 0.0, 1.0, 1.0], Cones(soc=(2, 2)))
    y = [97.0, 0.0, 1e8, -1e8 + 1e6]
    # 1e6 for the second cone and 97 for the first; 3 must be made up for, by at most eight times the
    # room of the first cone in either, though the second has ten thousand times as much.
    assert -1e6 - 133.0 < lower(program, y) <= -100.0
    # Rows without a cone have rooms of their own.
    more = stated(
        [100.0], [[0.0], [0.0], *rows], [0.0, 0.0, *program.b], Cones(zero=1, nonneg=1, soc=(2, 2))
    )
    assert -1e6 - 133.0 < lower(more, [0.0, 1e-6, *y]) <= -100.0


@pytest.mark.parametrize("bound", [1.0, -5.0])
def test_columns_that_curvature_bounds_are_charged_once(bound: float) -> None:
    """x^2/2 - 3x = -9/2 at 3, over x >= bound: next to 3 the gradient is small, and has no bound."""
    program = stated([-3.0], [[-1.0]], [-bound], Cones(nonneg=1), P=[[1.0]])
    assert -4.51 < lower(program, [0.0], [2.999]) <= -4.5


def test_every_matrix_that_is_not_convex_is_charged() -> None:
    """x^2/2 over 1 <= |x| <= 2 is at least 1/2; with the multiplier 5 the Lagrangian is 5/2 - 2x^2."""
    outside = QuadraticConstraint(sparse.csc_array([[-1.0]]), np.zeros(1), -0.5)
    box = [[1.0], [-1.0]]
    program = stated([0.0], box, [2.0, 2.0], Cones(nonneg=2), P=[[1.0]], quadratics=(outside,))
    # The concave part alone: 5/2 - 5 * 2^2 / 2.
    assert -7.501 < lower(program, [0.0, 0.0], quadratic=[5.0]) <= -5.5


def test_multipliers_off_the_diagonal_count_twice() -> None:
    """[[1, x], [x, 1]] >= 0 with the multiplier [[1, y], [y, 1]]: a correction by -y, sqrt(2) y long."""
    rows = [[0.0], [-1.0], [0.0]]
    program = stated([0.0], rows, [1.0, 0.0, 1.0], Cones(psd=(2,)), plain=True)
    for y in (0.35, 0.4):
        # The room is 1 - y, the loss 2 and at most half of it for the correction.
        assert -3.5 < lower(program, [1.0, y, 1.0]) <= 0
    # sqrt(2) y is longer than 1 - y.
    assert lower(program, [1.0, 0.45, 1.0]) == -math.inf
    scaled = stated([0.0], rows, [1.0, 0.0, 1.0], Cones(psd=(2,)))
    assert -3.5 < lower(scaled, [1.0, 0.35 * math.sqrt(2), 1.0]) <= 0
    assert lower(scaled, [1.0, 0.45 * math.sqrt(2), 1.0]) == -math.inf


def test_corrections_move_the_gradients_of_other_columns() -> None:
    """Points prove how low the optimum is: with x_2 far out a change of its gradient is worth much."""
    d, far, p = 2.0**-10, 1000.0, 2.0**-30
    rows = [[0.0, 1.0], [0.0, -1.0], [1.0, 1.0], [0.0, 0.0]]
    cones = Cones(nonneg=2, soc=(2,))
    # (d - 1) x_1 - x_2 + p x_1^2 / 2 over x_1 + x_2 <= 1 and |x_2| <= far, at (1 - far, far).
    program = stated([d - 1.0, -1.0], rows, [far, far, 1.0, 0.0], cones, P=[[p, 0.0], [0.0, 0.0]])
    value = (Q(d) - 1) * (1 - Q(far)) - Q(far) + Q(p) * (1 - Q(far)) ** 2 / 2
    assert -10.0 < lower(program, [0.0, 0.0, 1.0, 0.0]) <= value
    # 2 d x_2 over |x_1 + x_2| <= 1 as a plain matrix, at (far, -far).
    d, far = 2.0**-4, 2.0**10
    rows = [[0.0, 1.0], [0.0, -1.0], [0.0, 0.0], [-1.0, -1.0], [0.0, 0.0]]
    program = stated(
        [0.0, 2 * d], rows, [far, far, 1.0, 0.0, 1.0], Cones(nonneg=2, psd=(2,)), plain=True
    )
    assert -400.0 < lower(program, [0.0, 0.0, 1.0, d, 1.0]) <= -2 * d * far


def test_dependent_columns_must_agree_in_the_objective() -> None:
    """x_1 and x_2 with one column: x_1 + x_2 >= -1 bounds y (x_1 + x_2), not x_1 + 2 x_2, nor x_1 - x_2."""
    rows = [[-1.0, -1.0], [0.0, 0.0]]
    for c, bounded in (([1.0, 1.0], True), ([1.0, 2.0], False), ([1.0, -1.0], False)):
        program = stated(c, rows, [1.0, 5.0], Cones(nonneg=2))
        found = lower(program, [1.0 + 2.0**-30, 0.0])
        assert (-1.00001 < found <= -1.0) if bounded else found == -math.inf
    # A column of the double: 2 x_1 + x_2 >= -1 and 4 x_1 + 2 x_2.
    double = stated([4.0, 2.0], [[-2.0, -1.0], [0.0, 0.0]], [1.0, 5.0], Cones(nonneg=2))
    assert -2.00001 < lower(double, [2.0 + 2.0**-30, 0.0]) <= -2.0
    opposite = stated([4.0, -2.0], [[-2.0, -1.0], [0.0, 0.0]], [1.0, 5.0], Cones(nonneg=2))
    assert lower(opposite, [2.0 + 2.0**-30, 0.0]) == -math.inf


def test_exact_sums_are_tried_up_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 (0.1) - 3 (0.1) = 0, with multipliers at the boundary of their cone, without any room."""
    program = stated([0.0], [[3.0], [-3.0]], [1.0, 1.0], Cones(soc=(2,)))
    twice = stated([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], [0.1, 0.1], Cones(zero=2))
    for limit, proven in ((1, False), (2, True), (3, True)):
        monkeypatch.setattr(cone_lower_bound, "MAX_EXACT_TERMS", limit)
        monkeypatch.setattr(cone_upper_bound, "MAX_EXACT_TERMS", 2 * limit)
        assert (lower(program, [0.1, 0.1]) > -math.inf) is proven
        # Two equations of two terms each.
        assert (upper(twice, [0.05, 0.06]) < math.inf) is proven


def test_bounds_that_overflow_are_none() -> None:
    """Minimise 0: no bound above 0 is true, whatever overflows on the way."""
    program = stated([0.0], np.zeros((2, 1)), [1e300, -1e300], Cones(zero=2))
    for y in ([1e300, 1e300], [-1e300, -1e300], [-1e300, 1e300]):
        assert lower(program, y) == -math.inf
    box = stated([1e300], [[1.0], [-1.0]], [1e300, 1e300], Cones(nonneg=2))
    assert lower(box, [0.0, 0.0]) == -math.inf
    assert lower(program, [math.inf, 0.0]) == -math.inf
    assert lower(program, [0.0, math.nan]) == -math.inf
    assert lower(program, [0.0, 0.0], [math.inf]) == -math.inf


def test_products_with_known_ranges() -> None:
    """c x over an interval: the smaller of two ends, and nothing where the end that counts is open."""
    eye = np.vstack((np.eye(1), -np.eye(1)))
    for c in (1.0, -1.0, 0.5, -3.0):
        for low, high in ((-1.0, 2.0), (-2.0, -1.0), (1.0, 4.0), (0.0, 1.0), (-1.0, 0.0)):
            both = stated([c], eye, [high, -low], Cones(nonneg=2))
            least = min(c * low, c * high)
            assert least - 1e-14 < lower(both, [0.0, 0.0]) <= least
            upper_only = stated([c], eye[:1], [high], Cones(nonneg=1))
            lower_only = stated([c], eye[1:], [-low], Cones(nonneg=1))
            assert (lower(upper_only, [0.0]) == -math.inf) is (c > 0)
            assert (lower(lower_only, [0.0]) == -math.inf) is (c < 0)
            if c < 0:
                assert c * high - 1e-14 < lower(upper_only, [0.0]) <= c * high
            else:
                assert c * low - 1e-14 < lower(lower_only, [0.0]) <= c * low


# ---- membership in cones


def test_matrices_of_scaled_entries_are_off_by_two_roundings() -> None:
    """Entries off the diagonal are v / sqrt(2): their squares are compared in rationals."""
    rng = np.random.default_rng(3)
    statement = stated(np.zeros(1), np.zeros((6, 1)), np.zeros(6), Cones(psd=(3,)))
    for _ in range(200):
        v = rng.normal(size=6) * 10.0 ** rng.integers(-9, 9)
        rad = np.where(rng.random(6) < 0.5, 0.0, np.abs(v) * 1e-12)
        M = block_matrix(statement, Enclosure(v, rad))
        for place, (i, j) in enumerate(((0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2))):
            mid, radius = Q(float(M.mid[i, j])), Q(float(M.rad[i, j]))
            given, around = abs(Q(float(v[place]))), Q(float(rad[place]))
            if i == j:
                assert (mid, radius) == (Q(float(v[place])), around)
                continue
            assert M.mid[j, i] == M.mid[i, j]
            assert M.rad[j, i] == M.rad[i, j]
            assert (abs(mid) - radius) ** 2 * 2 <= (given - around) ** 2
            assert (abs(mid) + radius) ** 2 * 2 >= (given + around) ** 2
            assert radius <= Q("2.01") * U * abs(mid) + around * Q("0.7072")
    tiny = block_matrix(statement, Enclosure.of(np.array([0.0, 5e-324, 0.0, 0.0, 0.0, 1.0])))
    assert tiny.rad[1, 0] >= 5e-324
    assert not tiny.rad[2].any()


def test_norms_of_blocks_at_both_ends_of_the_range() -> None:
    heads, sizes = np.array([0, 2, 4]), np.array([2, 2, 3])
    eta = 5e-324
    v = np.array([1.2e308, 0.9e308, 3 * eta, 4 * eta, 2.0**-537, 2.0**-537, 2.0**-538])
    found = norms_of_blocks(v, heads, sizes)
    assert Q(float(found[0])) >= 15 * Q(10) ** 307 * (1 - 2 * U)
    assert found[0] < 1.5e308 * (1 + 1e-14)
    assert 5 * eta <= found[1] <= 20 * eta
    assert 2.25 * Q(2) ** -1074 <= Q(float(found[2])) ** 2
    assert found[2] < 1.5 * 2.0**-537 * (1 + 1e-14)


@pytest.mark.parametrize("half", [0.5, -0.5])
def test_scaled_matrices_in_and_out_of_their_cone(half: float) -> None:
    """[[t, h], [h, 1/t]] with h = 1/2 has the smallest eigenvalue 3t/4, up to t^2."""
    statement = stated(np.zeros(1), np.zeros((3, 1)), np.zeros(3), Cones(psd=(2,)), plain=True)
    for t in (2.0**-40, 2.0**-200, 2.0**-500, 2.0**300):
        inside = Enclosure.of(np.array([t, half, 1 / t]))
        least = min(t, 1 / t)
        assert in_cone(statement, "psd", inside, 0.0)
        assert in_cone(statement, "psd", inside, 0.12 * least)
        assert not in_cone(statement, "psd", inside, 0.76 * least)
        # All of |h| <= 0.9 lie inside, not all of |h| <= 1.1.
        some = np.array([0.0, 0.4, 0.0])
        assert in_cone(statement, "psd", Enclosure(inside.mid, some), 0.0)
        assert not in_cone(statement, "psd", Enclosure(inside.mid, 1.5 * some), 0.0)
        assert not in_cone(statement, "psd", Enclosure.of(np.array([t, 2.1 * half, 1 / t])), 0.0)


def test_room_in_second_order_cones() -> None:
    """(2, 0, 0) is sqrt(2) from the boundary; (5, 3, 4) lies on it."""
    cones = Cones(zero=1, nonneg=1, soc=(3, 3, 1))
    statement = stated(np.zeros(1), np.zeros((9, 1)), np.zeros(9), cones)
    room = dual_room(statement, np.array([0.0, 7.0, 2.0, 0.0, 0.0, 5.0, 3.0, 4.0, 3.0]))
    assert room[0] == math.inf
    assert room[1] == 7.0
    assert 1.41 < room[2] == room[3] == room[4] <= math.sqrt(2)
    assert not room[5:8].any()
    assert 2.0 < room[8] <= 3.0
    outside = dual_room(statement, np.array([0.0, 7.0, -2.0, 0.0, 0.0, 5.0, 3.1, 4.0, -3.0]))
    assert not outside[2:].any()


def test_boundaries_of_long_cones_are_decided_up_to_their_limit() -> None:
    """11^2 = 117 + 2^2: on the boundary, which no float decides."""
    for size, decided in ((119, True), (120, True), (121, False)):
        y = np.concatenate(([11.0, 2.0], np.ones(117), np.zeros(size - 119)))
        statement = stated(np.zeros(1), np.zeros((size, 1)), np.zeros(size), Cones(soc=(size,)))
        assert in_second_order_cones(statement, y) is decided
        y[0] = np.nextafter(11.0, 0.0)
        assert not in_second_order_cones(statement, y)
        y[0] = 11.0 + 1e-12
        assert in_second_order_cones(statement, y)


def test_depths_are_not_lost() -> None:
    cones = Cones(soc=(2, 2, 2))
    tiny = 5e-324
    depths = second_order_depths(cones, Enclosure.of(np.array([1.0, 0.25, tiny, 0.0, 1.0, 1.5])))
    assert 0.75 - 1e-15 < depths[0] <= 0.75
    assert depths[1] == 0.0
    assert -0.5 - 1e-15 < depths[2] <= -0.5
    wide = Enclosure(
        np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0]), np.array([0, math.inf, 0.5, 0, 0, 0])
    )
    assert second_order_depths(cones, wide)[0] == -math.inf
    assert second_order_depths(cones, wide)[1] <= 0.5


def exponential_reach(y: npt.NDArray[np.float64], t: float) -> bool:
    """Whether -u exp(v / u - 1) <= w for all of y within t, with the two u chosen one by one."""
    u, v, w = y
    if not u + t < 0:
        return False
    exponent = max((v + s) / a for a in (u - t, u + t) for s in (-t, t)) - 1
    return (t - u) * math.exp(min(exponent, 700.0)) <= w - t


def test_room_in_dual_exponential_cones_is_found_in_eighths() -> None:
    rng = np.random.default_rng(5)
    count = 60
    y = rng.normal(size=(count, 3)) * 2.0 ** rng.integers(-3, 3, size=(count, 1))
    y[:, 0] = -np.abs(y[:, 0])
    boundary = -y[:, 0] * np.exp(y[:, 1] / y[:, 0] - 1)
    y[:, 2] = np.minimum(boundary * (1 + 2.0 ** -rng.integers(0, 9, count)), 1e9)
    cones = Cones(exp=count)
    statement = stated(np.zeros(1), np.zeros((3 * count, 1)), np.zeros(3 * count), cones)
    room = dual_room(statement, y.ravel()).reshape(count, 3)
    for row, found in zip(y, room, strict=True):
        trials = np.abs(row).max() * 8.0 ** -np.arange(1, 21)
        sure = [t for t in trials if exponential_reach(row, t * 1.001)]
        possible = [t for t in trials if exponential_reach(row, t * 0.999)]
        assert found[0] == found[1] == found[2]
        assert max(sure, default=0.0) <= found[0] <= max(possible, default=0.0)
    # Outside of the cone, and where u is not negative, there is none.
    outside = np.column_stack((y[:, 0], y[:, 1], boundary * 0.99))
    assert not dual_room(statement, outside.ravel()).any()
    outside = np.column_stack((np.abs(y[:, 0]), np.abs(y[:, 1]), np.abs(y[:, 2])))
    assert not dual_room(statement, outside.ravel()).any()


def test_corners_of_exponential_cones() -> None:
    statement = stated(np.zeros(1), np.zeros((3, 1)), np.zeros(3), Cones(exp=1))

    def inside(x: float, y: float, z: float, rad: float = 0.0, margin: float = 0.0) -> bool:
        point = Enclosure(np.array([x, y, z]), np.full(3, rad))
        return in_cone(statement, "exp", point, margin)

    # y = 0: the face x <= 0, z >= 0.
    assert inside(-1.0, 0.0, 0.0)
    assert inside(0.0, 0.0, 1.0)
    assert not inside(1e-9, 0.0, 5.0)
    assert not inside(-1.0, 0.0, -1e-9)
    assert not inside(-1.0, -1.0, 5.0)
    assert not inside(1.0, -1.0, 5.0)
    # exp(1) = 2.718...
    assert inside(1.0, 1.0, 2.7183)
    assert not inside(1.0, 1.0, 2.7182)
    assert inside(2.0, 2.0, 5.4366)
    assert not inside(2.0, 2.0, 5.4364)
    assert inside(1.0, 1.0, 3.0, margin=0.02)
    assert not inside(1.0, 1.0, 3.0, margin=0.2)
    assert inside(1.0, 1.0, 3.0, rad=0.02)
    assert not inside(1.0, 1.0, 3.0, rad=0.2)
    assert not inside(-5.0, 0.1, 5.0, rad=0.1)

    def dual(u: float, v: float, w: float) -> bool:
        return in_dual_cone(statement, "exp", np.array([u, v, w]))

    assert dual(0.0, 0.0, 1.0)
    assert dual(0.0, 1.0, 0.0)
    assert dual(0.0, 0.0, 0.0)
    assert not dual(0.0, -1e-9, 1.0)
    assert not dual(0.0, 1.0, -1e-9)
    assert not dual(1.0, 1.0, 9.0)
    # -u exp(v/u - 1) at u = -1, v = -1 is 1.
    assert dual(-1.0, -1.0, 1.0000001)
    assert not dual(-1.0, -1.0, 0.9999999)


# ---- upper bounds


def moved_into_a_cone(depth: float) -> float:
    """t + z = 4 is missed by 2^-20; (t, a + z) has this depth in units of that; 0 if it is proven."""
    step = 2.0**-20
    rows = [[1, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [-1, 0, 0], [0, -1, -1]]
    a = 2.0 + step - depth * step
    b = [4.0, 3.0, -3.0, a, -a, 0.0, 0.0]
    return upper(stated([0.0, 0.0, 0.0], rows, b, Cones(1, 4, (2,))), [3.0, a, 1.0 - step])


def test_a_cone_must_be_deeper_than_its_points_move() -> None:
    """The one solution has z = 1, where the depth has fallen by 1."""
    assert moved_into_a_cone(0.75) == math.inf
    assert moved_into_a_cone(0.99) == math.inf
    assert moved_into_a_cone(1.6) < 1e-12
    assert moved_into_a_cone(2.0) < 1e-12


def test_variables_keep_to_their_bounds_on_the_way() -> None:
    """x_1 + x_2 = 3/2 is missed by 0.02, and x_1 = 0.99 has 0.01 to its bound 1."""
    rows = [[1.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]
    program = stated([1.0, 0.0], rows, [1.5, 1.0, 0.0], Cones(zero=1, nonneg=2))
    assert 0.99 <= upper(program, [0.99, 0.49]) < 0.9905
    mirrored = stated([-1.0, 0.0], -np.array(rows), [-1.5, 0.0, 1.0], Cones(zero=1, nonneg=2))
    # x_1 >= 0 and x_1 <= 1 change places: from 0.01 above its bound.
    assert upper(mirrored, [0.01, 1.47]) < math.inf
    # Without any room: x_1 = 1 stays, x_2 = 1/2 solves it.
    assert 1.0 <= upper(program, [1.0, 0.49]) < 1.0001
    # Free variables move in the units 1 + |x|: x_1 = 0 by a hundredth of what x_2 = 100 does.
    step = 2.0**-10
    free = stated([1.0, 0.0], [[1.0, 1.0]], [100.0 + step], Cones(zero=1))
    assert 0.0 < upper(free, [0.0, 100.0]) < 1.5 * step / 101
    # x_1 + x_2 = 3/2 has no solution with both at their bounds.
    both = [*rows, [0.0, 1.0]]
    fixed = stated([1.0, 0.0], both, [1.5, 1.0, 0.0, 0.25], Cones(zero=1, nonneg=3))
    assert upper(fixed, [1.0, 0.25]) == math.inf


def test_many_rows_that_rounding_leaves_open() -> None:
    """3 a_i <= b_i with b_i the float next above: all hold, by less than rounding can tell."""
    a = [0.1 * k for k in range(1, 60) if Q(float(np.float64(0.1 * k) * 3)) > 3 * Q(0.1 * k)][:9]
    assert len(a) == 9
    b = [3 * entry for entry in a]
    program = stated([1.0], np.array(a)[:, None], b, Cones(nonneg=9))
    assert upper(program, [3.0]) == 3.0
    # One of them violated, in exact arithmetic, by as little.
    wrong = [1.0 - 2.0**-53 if k == 5 else entry for k, entry in enumerate(a)]
    below = list(b)
    below[5] = float(np.nextafter(3 * wrong[5], 0.0))
    assert Q(below[5]) < 3 * Q(wrong[5])
    program = stated([1.0], np.array(wrong)[:, None], below, Cones(nonneg=9))
    assert upper(program, [3.0]) == math.inf


def test_inequalities_that_follow_from_equations_are_met_with_them() -> None:
    """x + y = 1/10 twice, and x + y <= 1/10, which x and y meet only up to rounding."""
    rows = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]
    program = stated([1.0, 1.0], rows, [0.1, 0.1, 0.1, 0.0], Cones(zero=2, nonneg=2))
    assert upper(program, [0.05, 0.06]) == math.inf
    for point in ([0.05, 0.05 + 2.0**-40], [0.05, 0.05 - 2.0**-40]):
        assert abs(upper(program, point, [2]) - 0.1) < 1e-11
    # Equations that contradict each other have no solution, however small the contradiction.
    wrong = stated([1.0, 1.0], rows, [0.1, 0.1 + 2.0**-56, 0.1, 0.0], Cones(zero=2, nonneg=2))
    assert wrong.b[1] != wrong.b[0]
    assert upper(wrong, [0.05, 0.05], [2]) == math.inf
    # An inequality that contradicts them is left to be proven as one.
    loose = stated([1.0, 1.0], rows, [0.1, 0.1, 0.2, 0.0], Cones(zero=2, nonneg=2))
    assert abs(upper(loose, [0.05, 0.05 + 2.0**-40], [2]) - 0.1) < 1e-11
    strict = stated([1.0, 1.0], rows, [0.1, 0.1, 0.05, 0.0], Cones(zero=2, nonneg=2))
    assert upper(strict, [0.05, 0.05 + 2.0**-40], [2]) == math.inf


@pytest.mark.parametrize("rows", [1, 4, 5, 8])
def test_what_keeps_a_point_from_a_proof_is_named(rows: int) -> None:
    """x = 1 twice and x = 2 have no solution; of many inequalities one that is violated comes first."""
    A = [[1.0], [1.0], *([[1.0]] * rows)]
    slacks = np.linspace(-0.5, -1.0, rows)
    program = stated([1.0], A, [1.0, 2.0, *(1.5 + slacks)], Cones(zero=2, nonneg=rows))
    end = upper_bound(program, PrimalWitness(np.array([1.5])))
    assert end.value == math.inf
    worst = f"inequality {rows + 1} is not proven at the point"
    assert end.by == (NO_SOLUTION if rows < 5 else worst)
    # Without the equations the first one is named, where there are few.
    program = stated([1.0], A[2:], 1.5 + slacks, Cones(nonneg=rows))
    end = upper_bound(program, PrimalWitness(np.array([1.5])))
    first = "inequality 0 is not proven at the point"
    assert end.by == (first if rows < 5 else f"inequality {rows - 1} is not proven at the point")


def test_balls_have_matrices_of_their_own() -> None:
    """x^2 <= 1 beside an objective of the curvature 1/1000."""
    for x, feasible in ((1.5, False), (0.5, True), (-1.5, False)):
        program = stated(
            [0.0],
            np.zeros((0, 1)),
            [],
            Cones(),
            P=[[1e-3]],
            quadratics=(ball([[0.0]], [0.0], 1.0), ball([[2.0]], [0.0], 1.0)),
        )
        assert (upper(program, [x]) < math.inf) is feasible
    # x_1^2 <= 1 with x_1 + x_2 = 1 next to (0.9, 0.1): nothing is exact, and 0.81 is less than 1.
    step = 2.0**-30
    equation = stated(
        [1.0, 0.0],
        [[1.0, 1.0]],
        [1.0],
        Cones(zero=1),
        quadratics=(ball(np.diag([2.0, 0.0]), [0.0, 0.0], 1.0),),
    )
    assert upper(equation, [0.9, 0.1 + step]) < 0.9001
    assert upper(equation, [1.1, step - 0.1]) == math.inf


def test_nothing_exact_is_begun_after_the_time() -> None:
    """x + y = 1/10 twice: that one follows from the other takes rationals."""
    program = stated([1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], [0.1, 0.1], Cones(zero=2))
    with budget(time.perf_counter() - 1.0):
        assert upper(program, [0.05, 0.06]) == math.inf
    assert abs(upper(program, [0.05, 0.06]) - 0.1) < 0.1


def ball(P: Any, q: Any, r: float) -> QuadraticConstraint:
    return QuadraticConstraint(sparse.csc_array(np.asarray(P, float)), np.asarray(q, float), r)


def test_boundaries_of_balls_are_decided_exactly() -> None:
    """x^2/2 + q x <= r in rationals at points of its boundary, with a linear part of either sign."""
    for x, q in ((0.1, 0.3), (0.1, -0.3), (-0.7, 0.9), (1.1, -2.3)):
        value = Q(x) ** 2 / 2 + Q(q) * Q(x)
        r = float(value)
        up = r if Q(r) >= value else float(np.nextafter(r, math.inf))
        down = float(np.nextafter(up, -math.inf))
        for right, holds in ((up, True), (down, False)):
            program = stated(
                [1.0], np.zeros((0, 1)), [], Cones(), quadratics=(ball([[1.0]], [q], right),)
            )
            assert (upper(program, [x]) < math.inf) is holds
    # 100 entries are summed, 121 are not.
    for n, decided in ((10, True), (11, False)):
        x = np.full(n, 0.1)
        r = float(n * n * Q(0.1) ** 2 / 2)
        r = r if Q(r) >= n * n * Q(0.1) ** 2 / 2 else float(np.nextafter(r, math.inf))
        program = stated(
            np.ones(n),
            np.zeros((0, n)),
            [],
            Cones(),
            quadratics=(ball(np.ones((n, n)), np.zeros(n), r),),
        )
        assert (upper(program, x) < math.inf) is decided


def test_exact_slacks_of_exponential_and_power_cones() -> None:
    """At (-1, 0, 1) no float decides, rationals do; (1, 0, 1) is outside, though diag(1, 1) >= 0."""
    rows = [[1.0], [1.0], [0.0]]
    face = stated([0.0], rows, [0.0, 1.0, 1.0], Cones(exp=1))
    assert upper(face, [1.0]) == 0.0
    outside = stated([0.0], rows, [2.0, 1.0, 1.0], Cones(exp=1))
    assert upper(outside, [1.0]) == math.inf
    # x^(1/2) y^(1/2) >= |z|: (1, 0, 1) is not inside.
    power = stated([0.0], rows, [2.0, 1.0, 1.0], Cones(power=(0.5,)))
    assert upper(power, [1.0]) == math.inf
    two = stated(np.zeros(1), np.zeros((6, 1)), np.zeros(6), Cones(exp=2))
    inside, out = [1.0, 1.0, 3.0], [1.0, 1.0, 2.0]
    assert in_cone(two, "exp", Enclosure.of(np.array(inside + inside)), 0.0)
    assert not in_cone(two, "exp", Enclosure.of(np.array(inside + out)), 0.0)
    assert not in_cone(two, "exp", Enclosure.of(np.array(out + inside)), 0.0)
    # u = -1e-18 has room for the last of 20 trials.
    one = stated(np.zeros(1), np.zeros((3, 1)), np.zeros(3), Cones(exp=1))
    assert dual_room(one, np.array([-1e-18, 0.0, 1.0]))[0] == 8.0**-20


def test_defaults_of_witnesses_and_claims() -> None:
    """No multipliers, no tight rows, and the value of the cone program itself."""
    assert DualWitness(np.zeros(1), np.zeros(2)).quadratic.size == 0
    assert PrimalWitness(np.zeros(1)).tight.size == 0
    program = stated([1.0], [[-1.0]], [0.0], Cones(nonneg=1))
    claim = ConeClaim(program, np.zeros(1), np.ones(1), np.zeros(0))
    assert (claim.scale, claim.shift) == (1.0, 0.0)


# ---- linear systems: what is proposed is checked, and every rounding is charged


def forged(monkeypatch: pytest.MonkeyPatch, t: float, L: Any, D: Any, order: Any = (0, 1)) -> float:
    """The length that Lemma S2b proves for B = I and r = (1, 0) from these factors."""
    proposed = (t, np.array(order), sparse.csr_array(np.asarray(L, float)), np.array(D, float))
    monkeypatch.setattr(linear_systems, "shifted_factors", lambda *_: iter([proposed]))
    one = Enclosure.of(np.array([1.0, 0.0]))
    return _by_sparse_factor(sparse.csr_array(np.eye(2)), one, 0.0)


def test_sparse_factors_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest solution for B = I has the length 1, which no factor may undercut."""
    half = [0.5, 0.5]
    assert 1.414 < forged(monkeypatch, 0.5, np.eye(2), half) < 1.4143
    # E = I (1 - t - D), so that t - |1 - t - D| is left.
    assert 1.414 < forged(monkeypatch, 0.75, np.eye(2), half) < 1.4143
    assert 1.99 < forged(monkeypatch, 0.5, np.eye(2), [0.75, 0.5]) < 2.001
    assert forged(monkeypatch, 4.0, np.eye(2), [1.0, 1.0]) == math.inf
    # With a negative D the factors would be right, and t wrong.
    assert forged(monkeypatch, 4.0, np.eye(2), [-3.0, -3.0]) == math.inf
    assert forged(monkeypatch, 4.0, np.eye(2), [-3.0, 0.0]) == math.inf
    assert 0.999 < forged(monkeypatch, 1.0, np.eye(2), [0.0, 0.0]) < 1.001
    # No permutation: one row twice.
    assert forged(monkeypatch, 0.5, np.eye(2), half, (0, 0)) == math.inf
    assert 1.414 < forged(monkeypatch, 0.5, np.eye(2), half, (1, 0)) < 1.4143
    assert forged(monkeypatch, 0.5, np.full((2, 2), math.nan), half) == math.inf


def test_sparse_factors_are_charged_for_every_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """B = I: one rounding for BB', two for LDL', one for G - t I; with 1 - t exact, E = 0."""
    u = 2.0**-53
    for roundings, proven in ((3.75, False), (4.25, True)):
        t = roundings * u
        D = [1.0 - t, 1.0 - t]
        found = forged(monkeypatch, t, np.eye(2), D)
        # 1 - t is rounded to a multiple of u, on both sides alike.
        assert (found < math.inf) is proven
    e = 0.25
    proposed = (1.0, np.arange(2), sparse.csr_array(np.eye(2)), np.zeros(2))
    monkeypatch.setattr(linear_systems, "shifted_factors", lambda *_: iter([proposed]))
    one = Enclosure.of(np.array([1.0, 0.0]))
    found = _by_sparse_factor(sparse.csr_array(np.eye(2)), one, e)
    # Entries of BB' may be off by (1 + e)^2 - 1.
    assert 1 / (2 - (1 + Q(e)) ** 2) <= Q(found) ** 2 <= 1 / (2 - (1 + Q(e)) ** 2) * Q("1.00001")


def test_rows_of_their_own_with_large_errors() -> None:
    """Entries that may be 0, or have another sign, solve nothing."""
    B = sparse.csr_array(np.eye(2))
    r = Enclosure.of(np.ones(2))
    for error in (1.0, 1.5, 3.0):
        assert _by_disjoint_rows(B, r, error) == math.inf
        assert shortest_correction(B, r, error) == math.inf
    # Tiny entries make long corrections, which other lemmas avoid.
    tiny = sparse.csr_array(np.array([[1e-13, 1.0, 0.0], [0.0, 1.0, 1.0]]))
    assert shortest_correction(tiny, Enclosure.of(np.array([1.0, 0.0]))) < 2.0


def test_the_evaluation_of_gram_matrices_is_charged() -> None:
    """B = I of order 40: alpha = ||T||^2 (gamma_40 ||B||^2 + gamma_81 ||G||) and 4 roundings of B."""
    m = 40
    found = shortest_correction(np.eye(m), Enclosure.of(np.ones(m)), 0.0) / math.sqrt(m)
    alpha = m * (m * m + (2 * m + 1) * math.sqrt(m)) * 2.0**-53
    assert 0.98 * alpha / 2 < found - 1 < 1.15 * alpha / 2
    share = 2.0**-40
    found = shortest_correction(np.eye(m), Enclosure.of(np.ones(m)), share) / math.sqrt(m)
    assert 0.98 * m * m * share < found - 1 < 1.05 * m * m * share
    # What has a default is charged as much as four roundings.
    assert found > shortest_correction(np.eye(m), Enclosure.of(np.ones(m))) / math.sqrt(m)


def test_chains_are_solved_by_their_shortest_correction() -> None:
    """d_k + d_{k+1} / 2 = -r_k in 30 rows: no longer than the least norm of a solution."""
    m = 30
    B = np.eye(m, m + 1) + 0.5 * np.eye(m, m + 1, 1)
    r = np.cos(np.arange(m))
    least = np.linalg.norm(np.linalg.lstsq(B, r, rcond=None)[0])
    for matrix in (B, sparse.csr_array(B)):
        assert least * (1 - 1e-9) <= shortest_correction(matrix, Enclosure.of(r)) < least * 1.0001


def test_what_underflows_is_no_solution() -> None:
    """Rows below 1e-250 may have lost all digits; above, what underflows is nothing."""
    one = Enclosure.of(np.ones(1))
    assert shortest_correction(np.array([[1e-251, 0.0]]), one) == math.inf
    found = shortest_correction(np.array([[1e-249, 0.0]]), one)
    assert Q(10) ** 249 * (1 - 4 * U) <= Q(found) <= Q(10) ** 249 * Q("1.00001")


def test_curvature_that_underflows_is_none() -> None:
    """1e-200 [[1, 2], [2, 1]] 1e-200 is not semidefinite, though its floats are 0."""
    P = sparse.csc_array(1e-200 * np.array([[1.0, 2.0], [2.0, 1.0]]))
    none = np.zeros(0, np.intp)
    assert curvature_beside([(P, 1e-200)], none) is None
    assert curvature_beside([(P, 1e-200), (P, 1e-210)], none) is None
    good = sparse.csc_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert curvature_beside([(good, 1e-200), (P, 1e-200)], none) is not None
    # The eigenvalues of 3 [[1, 1 - e], [1 - e, 1]] are 6 and 3e: 5 roundings are charged, no more.
    for e, proven in ((2.0**-52, False), (2.0**-48, True)):
        near = sparse.csc_array(np.array([[1.0, 1.0 - e], [1.0 - e, 1.0]]))
        assert (curvature_beside([(near, 3.0)], none) is not None) is proven


def test_matrices_are_factored_up_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """[[2, 1], [1, 2]] and a third variable on the diagonal, or in the chain."""
    monkeypatch.setattr(convexity, "MAX_ORDER", 2)
    two = sparse.csc_array(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]))
    chain = sparse.csc_array(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]))
    apart = sparse.csc_array(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]]))
    assert negative_curvature(two) == negative_curvature(apart) == 0.0
    assert negative_curvature(chain) == math.inf
    assert curvature_beside([(two, 1.0)], np.array([0])) is not None
    assert curvature_beside([(chain, 1.0)], np.array([0])) is None


# ---- slacks


def test_rows_that_say_nothing_have_no_slack() -> None:
    program = stated([1.0], [[2.0], [3.0]], [math.inf, 1.0], Cones(nonneg=2))
    assert enclose_slack(program, np.zeros(1)).mid.tolist() == [0.0, 1.0]
    assert enclose_slack(program, np.ones(1)).mid.tolist() == [-2.0, -2.0]


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 9])
def test_exact_sums_replace_wider_slacks_only(rows: int) -> None:
    """0.1 x - 0.1 at x = 1 is 0; products of 1e-300 are not summed exactly, but enclosed."""
    A = np.full((rows, 2), 0.1)
    A[:, 1] = 0.2
    A[0] = 1e-300
    b = np.full(rows, float(np.float64(0.1) + np.float64(0.2)))
    b[0] = 1.0
    x = np.array([1.0, 1.0])
    x_tiny = np.array([1e-300, 1e-300])
    program = stated(np.zeros(2), A, b, Cones(nonneg=rows))
    for point in (x, x_tiny):
        slack = enclose_slack(program, point)
        found = slack_summed_exactly(program, point, slack, np.arange(rows))
        for i in range(rows):
            truth = Q(float(b[i])) - sum(
                Q(float(a)) * Q(float(v)) for a, v in zip(A[i], point, strict=True)
            )
            mid, rad = Q(float(found.mid[i])), float(found.rad[i])
            assert abs(mid - truth) <= Q(rad)
            assert rad <= slack.rad[i]
            if i and point is x:
                assert mid == truth
                assert rad == 0.0


# ---- free variables that are split


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_split_variables_are_found_whatever_the_sign_of_zero(zero: float) -> None:
    """x_1 - x_2 with c = 0, and an entry 0 that is stored with a sign."""
    for other in (0.0, -0.0):
        A = sparse.csc_array(
            (np.array([-1.0, 1.0, zero, -1.0, -1.0, other]), [0, 2, 3, 1, 2, 3], [0, 3, 6]),
            shape=(4, 2),
        )
        for c in ([zero, other], [other, zero], [2.0, -2.0]):
            program = ConeStatement(np.array(c), A, np.array([0.0, 0.0, 1.0, 1.0]), Cones(nonneg=4))
            merged = merged_columns(program)
            assert merged is not None
            assert merged.rows.tolist() == [2, 3]
            assert merged.columns.tolist() == [0]
            assert (merged.plus.tolist(), merged.minus.tolist()) == ([0], [1])
            assert merged.statement.cones.nonneg == 2


def test_variables_of_other_signs_are_not_split() -> None:
    """x_1 >= 0 and x_2 <= 0: their difference is not negative, so that it is not free."""
    for bound in (0.5, 1.0, 2.0):
        rows = [[-1.0, 0.0], [0.0, bound], [1.0, -1.0]]
        program = stated([1.0, -1.0], rows, [0.0, 0.0, 1.0], Cones(nonneg=3))
        assert merged_columns(program) is None
    for b in (1.0, -1.0, 1e-300):
        rows = [[-1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]
        program = stated([1.0, -1.0], rows, [0.0, b, 1.0], Cones(nonneg=3))
        assert merged_columns(program) is None
    rows = [[-1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]
    assert merged_columns(stated([1.0, -1.0], rows, [0, 0, 1], Cones(nonneg=3))) is not None
    # A row x_2 = 0 is no bound, nor is one of another cone.
    assert merged_columns(stated([1.0, -1.0], rows, [0, 0, 1], Cones(zero=1, nonneg=2))) is None
    assert merged_columns(stated([1.0, -1.0], rows, [0, 0, 1], Cones(soc=(3,)))) is None
    for more in ({"within": 5.0}, {"radius": 5.0}, {"P": np.eye(2)}):
        assert merged_columns(stated([1.0, -1.0], rows, [0, 0, 1], Cones(nonneg=3), **more)) is None


# ---- compressions of semidefinite blocks


def compressed_sum(units: int, bits: int) -> tuple[ConeStatement | None, Q]:
    """1'F1 of a matrix of order 4 with entries 1 + 2^-bits, but F_11 smaller by `units` of these."""
    F = np.full(10, -1.0 - 2.0**-bits)
    F[0] += units * 2.0**-bits
    program = stated([0.0], np.zeros((10, 1)), F, Cones(psd=(4,)), plain=True)
    exact = sum(Q(float(v)) * (1 if k in (0, 4, 7, 9) else 2) for k, v in enumerate(F))
    return compressed(program, 0, np.ones((4, 1))), exact


def test_compressions_do_not_round() -> None:
    """16 + 15 2^-49 is no float; all of these entries are negative."""
    for bits in (10, 30, 47, 48):
        smaller, exact = compressed_sum(1, bits)
        assert smaller is not None
        assert Q(float(smaller.b[0])) == exact
    # Multiples of a small and of a large power of two; smaller ones are not tried.
    tiny = stated([0.0], np.zeros((3, 1)), np.full(3, 2.0**-1000), Cones(psd=(2,)), plain=True)
    assert compressed(tiny, 0, np.array([[2.0], [1.0]])) is None
    for unit in (2.0**-999, 2.0**970):
        program = stated(
            [0.0], np.zeros((3, 1)), [unit, unit, 3 * unit], Cones(psd=(2,)), plain=True
        )
        smaller = compressed(program, 0, np.array([[2.0], [1.0]]))
        assert smaller is not None
        assert smaller.b.tolist() == [11 * unit]
    for bits in (49, 50, 52):
        smaller, exact = compressed_sum(1, bits)
        assert smaller is None
        assert bits > 49 or Q(float(exact)) != exact


def test_compressions_by_matrices_of_the_wrong_kind() -> None:
    program = stated([0.0], np.zeros((6, 1)), np.ones(6), Cones(psd=(3,)), plain=True)
    assert compressed(program, 0, np.ones((3, 1))) is not None
    for V in (np.ones((2, 1)), np.ones((4, 1)), np.full((3, 1), 1.5), np.full((3, 1), 0.5)):
        assert compressed(program, 0, V) is None
    assert compressed(program, 0, np.array([[1.0], [2.0], [-1.5]])) is None
    V = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    assert turned(program, 0, V, np.ones(3)) is not None
    for w in (np.ones(2), np.ones(4), np.ones((3, 1)), np.zeros(3), np.array([1.0, 1.0, 2.0])):
        assert turned(program, 0, V, w) is None
    pair = stated([0.0], np.zeros((3, 1)), np.ones(3), Cones(psd=(2,)), plain=True)
    for large, taken in ((2.0**24, True), (2.0**24 + 1, False)):
        found = turned(pair, 0, np.array([[1.0], [large]]), np.array([large, -1.0]))
        assert (found is not None) is taken
    # Columns without a unit matrix among their rows: nothing says that they are independent.
    assert turned(program, 0, np.array([[1.0, 1.0], [1.0, 1.0], [-2.0, -2.0]]), np.ones(3)) is None


# ---- sums without rounding


def test_exact_sums_next_to_underflow_and_overflow() -> None:
    """Up to 1e-280 and from 1e290 on Dekker's product is not taken for exact."""
    one = np.ones(1)
    for size, safe in ((1e-280, False), (1.1e-280, True), (1e290, False), (9e289, True)):
        assert (exact_dot(np.array([size]), one).rad == 0.0) is safe
        found = exact_row_sums([(sparse.csr_array([[size]]), one)], np.zeros(1))
        assert bool(found.rad[0] == 0.0) is safe
    assert exact_dot(np.array([0.0]), np.array([1e-300])).rad == 0.0
    for large, safe in ((9e289, True), (1e290, False), (1e295, False)):
        assert (exact_dot(np.array([large]), np.array([1e-100])).rad < 1e200) is safe
    # What is left of 1 + 2^-60 + 2^-120 after one rounding needs another one.
    third = exact_dot(np.array([1.0, 2.0**-60, 2.0**-120]), np.ones(3))
    assert Q(third.rad) >= Q(2) ** -60 + Q(2) ** -120
    assert third.rad <= 2.0**-60 * (1 + 1e-15)
